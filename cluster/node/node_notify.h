/* node_notify.h - tells the service manager (systemd) that started this process how the node is:
 * ready, reloading, stopping, alive. Nothing happens where NOTIFY_SOCKET is not set. For the
 * program of a node only: one a process, called by its main thread. */
#ifndef TRPI_NODE_NODE_NOTIFY_H
#define TRPI_NODE_NODE_NOTIFY_H

#include <stdbool.h>

#include "cluster/node/node_private.h"

/* READY=1 once the node is Up, or now where nobody tells it whom to join (has_no_seeds); and
 * WATCHDOG=1 as often as WATCHDOG_USEC wants. A word that cannot be sent is logged. */
void trpi_notify_begin(trp_node *node, bool has_no_seeds);
/* Around what a SIGHUP does. Nothing is said while the node is not ready, or stops. */
void trpi_notify_reloading(void);
void trpi_notify_reloaded(void);
/* STOPPING=1, once. From here on the system is not touched, and beats come whatever it does: the
 * manager's time for a stop has begun. */
void trpi_notify_stopping(void);
/* No word any more. */
void trpi_notify_end(void);

#endif
