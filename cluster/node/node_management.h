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
/* Does the API of this node speak TLS? */
bool trpi_node_management_has_tls(const trp_node *node);
/* Return when no call over HTTP runs on a thread of its own: after the server was stopped. */
void trpi_node_management_settle(trp_node *node);
/* Read the token files and those of TLS again. false: one of them will not do, and the tokens, or
 * the certificate, are as before; why says it. */
bool trpi_node_management_reload(trp_node *node, char why[TRPI_NODE_RELOAD_BYTES]);

#endif
