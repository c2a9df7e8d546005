/* apps.h - the applications of a node: --apps DIR, troupe/bootable.h. */
#ifndef TRPI_NODE_APPS_H
#define TRPI_NODE_APPS_H

#include <stdbool.h>

#include <troupe/node.h>

/* Start a thread that starts the applications of the directory that the configuration names
 * (apps.directory), looks for changes, and shuts them down in the phase service-stop. Without a
 * directory: nothing. Errors: TRP_ECONFIG (it cannot be used), TRP_ENOMEM, those of
 * trp_shutdown_add. Thread: the opener of the node. */
trp_err trpi_apps_start(trp_node *node, trp_node_error *ret_error);
/* Shut down what the phase has not, and wait. false: a shutdown did not return in its time, and
 * nothing that it may use can be freed. Thread: the closer of the node. */
bool trpi_apps_stop(trp_node *node);
/* When the system has stopped, and trpi_apps_stop() was true: the phase may use it until then. */
void trpi_apps_free(trp_node *node);

#endif
