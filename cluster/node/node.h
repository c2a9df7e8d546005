/* node.h - the door of the node room, for programs that hold a whole node. */
#ifndef TRPI_NODE_NODE_H
#define TRPI_NODE_NODE_H

#include <troupe/node.h>

#include "remote/remote.h"

/* The test adapters of a node, while it is open; NULL: remote.test-adapters is off. Thread: any. */
trpi_faults *trpi_node_faults(trp_node *node);

#endif
