/* node_start.h - from keys of the configuration to the options of each room. */
#ifndef TRPI_NODE_NODE_START_H
#define TRPI_NODE_NODE_START_H

#include <troupe/journal_postgres.h>

#include "cluster/node/node_private.h"

/* Write why the node does not start; return err. */
trp_err trpi_node_fail(trp_node_error *ret_error, trp_err err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A key's number, within 0 and UINT32_MAX. */
uint32_t trpi_node_number(const trp_node *node, const char *key);

trp_err trpi_node_system_start(trp_node *node, const trp_node_options *options,
                               trp_node_error *ret_error);
/* node_persistence.c: give the system the journal of the configuration. */
/* Fill options from the keys persistence.postgres; texts are borrowed from config. */
void trpi_node_postgres_options(const trpi_config *config,
                                trp_journal_postgres_options *ret_options);
trp_err trpi_node_persistence_start(trp_node *node, trp_node_error *ret_error);
trp_err trpi_node_remote_start(trp_node *node, trp_node_error *ret_error);
trp_err trpi_node_cluster_start(trp_node *node, trp_node_error *ret_error);
/* Called after the plugins have begun: is there a lease where the downing strategy needs one? */
trp_err trpi_node_lease_check(trp_node *node, trp_node_error *ret_error);
/* Take part in the coordinated shutdown. */
trp_err trpi_node_shutdown_start(trp_node *node, trp_node_error *ret_error);
/* Stop the started parts in reverse order, and free them. false: actors are left (logged); they may
 * use any part, so all of the node stays. */
bool trpi_node_stop(trp_node *node);

#endif
