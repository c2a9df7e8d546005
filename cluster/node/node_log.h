/* node_log.h - where the log lines of a node go: one line each, as text or as a JSON object. */
#ifndef TRPI_NODE_NODE_LOG_H
#define TRPI_NODE_NODE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <troupe/log.h>

#define TRPI_LOG_LINE_BYTES_MAX 4096 /* longer lines are cut */

typedef struct trpi_node_log {
    bool json;
    atomic_int level; /* trp_log_level; relaxed: a change may be a line late */
    int fd;
} trpi_node_log;

/* trp_log_fn; arg is a trpi_node_log. One write for a line, so that lines of threads do not mix. */
void trpi_node_log_line(void *arg, const trp_log_line *line);
/* "2026-11-20T12:01:46.000Z"; returns buffer (at least 32 bytes). */
char *trpi_time_format(int64_t wall_ms, char *buffer, size_t bytes);
/* "error" -> TRP_LOG_ERROR; 0: no level. */
trp_log_level trpi_log_level_parse(const char *name);

#endif
