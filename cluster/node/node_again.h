/* node_again.h - a second request to end, by a signal, while the node closes. */
#ifndef TRPI_NODE_NODE_AGAIN_H
#define TRPI_NODE_NODE_AGAIN_H

#include "cluster/node/node_private.h"

/* A terminal, a service manager and its wrapper may all send the same signal: a second one sooner
 * than that is the same request. */
#define TRPI_END_SAME_MS 500u

typedef struct trpi_end_again trpi_end_again;

/* From now on read signal_fd, on a thread of its own: TERM or INT TRPI_END_SAME_MS after since_ms
 * (CLOCK_MONOTONIC; 0: no signal has told the node to end yet, and the first one is taken for that)
 * or later ends the process with exit code 1 at once. Other signals are read, and have no effect.
 * Give the watch (trpi_end_again_stop); NULL: no memory, descriptor or thread, which is logged. */
trpi_end_again *trpi_end_again_start(trp_node *node, int signal_fd, uint64_t since_ms);
/* NULL is fine. The node may be gone. */
void trpi_end_again_stop(trpi_end_again *again);

#endif
