/* guarded.h - what singletons use of the rule "never two". */
#ifndef TRPI_CLUSTER_SINGLETON_GUARDED_H
#define TRPI_CLUSTER_SINGLETON_GUARDED_H

#include "actor/actor.h"
#if __has_include("cluster/shell/exclusive.h")
#include "cluster/shell/exclusive.h"
#define SINGLETON_GUARDED 1
#endif

#endif
