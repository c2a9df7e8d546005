/* node_start.h - from keys of the configuration to the options of each room. */
#ifndef TRPI_NODE_NODE_START_H
#define TRPI_NODE_NODE_START_H

#include "cluster/node/node_private.h"

trp_err trpi_node_system_start(trp_node *node, const trp_node_options *options,
                               trp_node_error *ret_error);
trp_err trpi_node_remote_start(trp_node *node, trp_node_error *ret_error);
trp_err trpi_node_cluster_start(trp_node *node, trp_node_error *ret_error);
/* Stop what has been started, in the other order, and free it. */
void trpi_node_stop(trp_node *node);

#endif
