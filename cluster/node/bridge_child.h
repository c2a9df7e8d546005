/* bridge_child.h - the program that the node starts for a bridge: a process, and what it writes to
 * its standard error. */
#ifndef TRPI_NODE_BRIDGE_CHILD_H
#define TRPI_NODE_BRIDGE_CHILD_H

#include <sys/types.h>

#include "base/config.h"
#include "cluster/node/bridge.h"

#define TRPI_BRIDGE_ERROR_BYTES 1000u /* of a line of standard error in the log; more is cut */
#define TRPI_BRIDGE_BACKOFF_S_DEFAULT 1
#define TRPI_BRIDGE_BACKOFF_MAX_S_DEFAULT 30

/* All but the settings is the session's, and after its end the node's. */
typedef struct trpi_bridge_child {
    char **argv;             /* NULL-terminated */
    uint32_t min_ms, max_ms; /* pauses before it is started again */
    pid_t pid;               /* 0: none runs */
    pid_t group;             /* what an ended process has started; 0: none is left */
    char how[64];            /* the last one has ended: "ended with 1", "was killed by signal 9" */
    uint32_t pause_ms;       /* the last pause; 0: none yet */
    uint64_t started_ms, ended_ms;
} trpi_bridge_child;

/* The program of bridge NAME of a configuration. Errors: TRP_ENOMEM. */
trp_err trpi_bridge_child_new(const trpi_config *config, const char *name,
                              trpi_bridge_child **ret_child);
/* Start the process. Gives its standard input and output as one stream, and its standard error
 * (close). Returns 0 or an errno. */
int trpi_bridge_child_start(trpi_bridge_child *child, uint64_t now_ms, int *ret_stream,
                            int *ret_errors);
/* Has the process ended? It is not waited for: its group keeps its number. */
bool trpi_bridge_child_is_over(const trpi_bridge_child *child);
/* Have the process and all that it has started ended? When the process has, SIGTERM is sent to what
 * is left of its group. */
bool trpi_bridge_child_reap(trpi_bridge_child *child);
void trpi_bridge_child_signal(const trpi_bridge_child *child, int number); /* its group */
/* The pause before the next start: the first one, or twice the last one up to the longest; the
 * first one again if it has run for longer than that. */
uint32_t trpi_bridge_child_pause(trpi_bridge_child *child, uint64_t now_ms);
/* End the process: wait a little, then kill it. NULL is fine. Blocks for 2 s at most. */
void trpi_bridge_child_free(trpi_bridge_child *child);

/* An actor, child of the running session, that logs what comes from the stream. Takes stream,
 * always. */
trp_err trpi_bridge_errors_spawn(trp_ctx *ctx, trpi_bridge *bridge, int stream);

#endif
