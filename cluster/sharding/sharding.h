/* sharding.h - the door of the sharding room: functions for the rooms above it. */
#ifndef TRPI_CLUSTER_SHARDING_SHARDING_H
#define TRPI_CLUSTER_SHARDING_SHARDING_H

#include <troupe/sharding.h>

#include "cluster/shell/commands.h"
#include "remote/remote.h"

/* Start the actor that says where shards live. The cluster's actor runs. Errors: those of a spawn,
 * TRP_ENOMEM. */
trp_err trpi_keeper_start(trpi_cluster *cluster, trp_system *system, trpi_remote *remote);
/* Before remoting and the cluster stop. */
void trpi_keeper_stop(trp_system *system);

/* A coordinator refuses a type of this node, which is to end. Called on the actor's thread. */
typedef void (*trpi_sharding_refused_fn)(void *arg, const char *type, const char *why);
/* Thread: any, before a type is started. */
void trpi_sharding_refused_set(trp_system *system, trpi_sharding_refused_fn fn, void *arg);

/* Return how many shards of this node wait for the journal, which refuses them or cannot be read.
 * Thread: any; lock-free. */
uint32_t trpi_sharding_unopened(const trp_system *system);

#endif
