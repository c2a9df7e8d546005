/* node_notify.h - tells the service manager (systemd) that started this process the state of the
 * node: ready, reloading, stopping, alive. Does nothing where NOTIFY_SOCKET is not set. For the
 * program of a node only: once a process, called by its main thread. */
#ifndef TRPI_NODE_NODE_NOTIFY_H
#define TRPI_NODE_NODE_NOTIFY_H

#include <stdbool.h>

#include "cluster/node/node_private.h"

/* Send READY=1 once the node is Up, or now where it has no seed nodes to join (has_no_seeds); and
 * WATCHDOG=1 as often as WATCHDOG_USEC demands. A message that cannot be sent is logged. */
void trpi_notify_begin(trp_node *node, bool has_no_seeds);
/* Called before and after a reload by SIGHUP. Sends nothing while the node is not ready, or
 * stops. */
void trpi_notify_reloading(void);
void trpi_notify_reloaded(void);
/* STOPPING=1, once. From here on the system is not used, and WATCHDOG=1 is sent in any case: the
 * manager's own limit for a stop runs now. */
void trpi_notify_stopping(void);
/* Send nothing any more. */
void trpi_notify_end(void);

#endif
