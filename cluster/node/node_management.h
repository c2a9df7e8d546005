/* node_management.h - the management API of a node: from keys to its server, from its requests to
 * calls. */
#ifndef TRPI_NODE_NODE_MANAGEMENT_H
#define TRPI_NODE_NODE_MANAGEMENT_H

#include "cluster/node/node_private.h"

/* Check the keys of management, without looking at a file. Errors: TRP_ECONFIG. */
trp_err trpi_node_management_keys(const trpi_config *config, trpi_config_error *ret_error);
/* Check what it needs besides: libwebsockets, files. Nothing listens after. */
trp_err trpi_node_management_check(trp_node *node, trp_node_error *ret_error);
/* Listen, where management.enabled is on. Errors: TRP_ECONFIG, TRP_EADDRINUSE, TRP_ENOMEM. */
trp_err trpi_node_management_start(trp_node *node, trp_node_error *ret_error);
/* Read the token files again. false: one of them will not do, and the tokens are as before; why
 * says it. */
bool trpi_node_management_reload(trp_node *node, char why[TRPI_NODE_RELOAD_BYTES]);

#endif
