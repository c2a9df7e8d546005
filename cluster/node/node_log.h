/* node_log.h - where the log lines of a node go: one line each, to standard error or to a file. */
#ifndef TRPI_NODE_NODE_LOG_H
#define TRPI_NODE_NODE_LOG_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/log.h>

#define TRPI_LOG_LINE_BYTES_MAX 4096 /* longer lines are cut; PIPE_BUF: a pipe takes all or none */
#define TRPI_LOG_PATIENCE_MS 250u    /* for a reader to make room, once; then lines are lost */

typedef struct trpi_node_log {
    int format;       /* of trp_log_format() */
    atomic_int level; /* trp_log_level; relaxed: a change may be a line late */
    const char *file; /* NULL or "": standard error; borrowed */
    /* Sees each line as well, before it is written; NULL: nobody. Set before the first line. */
    trp_log_fn also;
    void *also_arg;
    pthread_mutex_t lock;
    int fd;      /* with lock, as the fields below */
    bool is_own; /* opened here */
    bool is_socket;
    bool may_block; /* it could not be opened a second time with O_NONBLOCK */
    bool is_full;   /* no reader: no line waits any more */
    bool is_torn;   /* only a part of the last line was written */
    int error;      /* errno of the line that was lost last */
    uint64_t lost;  /* lines, since the last line with a count */
    uint64_t lost_all;
} trpi_node_log;

/* Open the output of the lines. Errors: TRP_EIO (the file cannot be opened; errno says why). */
trp_err trpi_node_log_open(trpi_node_log *log, int format, trp_log_level level, const char *file);
/* Open the file again, which may have been moved away. Errors: TRP_ESTATE (standard error: there is
 * nothing to open), TRP_EIO (errno; the old one stays). */
trp_err trpi_node_log_reopen(trpi_node_log *log);
void trpi_node_log_close(trpi_node_log *log);
/* trp_log_fn; arg is a trpi_node_log. One write for a line, so that lines of threads do not mix.
 * Never waits for a reader for longer than TRPI_LOG_PATIENCE_MS. */
void trpi_node_log_line(void *arg, const trp_log_line *line);
/* Write a line whatever the level is: an operator has asked for it (SIGUSR2). */
void trpi_node_log_always(trpi_node_log *log, const trp_log_line *line);
/* How many lines were lost since the start. Any thread. */
uint64_t trpi_node_log_lost(trpi_node_log *log);
/* Are lines being lost? true: text gets the reason, as a sentence for `status`. Any thread. */
bool trpi_node_log_problem(trpi_node_log *log, char *text, size_t bytes);
/* "2026-11-20T12:01:46.000Z"; returns buffer (at least 32 bytes). */
char *trpi_time_format(int64_t wall_ms, char *buffer, size_t bytes);
/* "error" -> TRP_LOG_ERROR; 0: no level. */
trp_log_level trpi_log_level_parse(const char *name);
/* "json" -> 1, the format of trp_log_format(); text is 0. */
int trpi_log_format_parse(const char *name);

#endif
