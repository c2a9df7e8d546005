/* node_log.c - the output of a node's log lines; their format is the library's (trp_log_format()).
 *
 * Why.     Standard error is often a pipe, and a pipe without a reader blocks its writer: the
 *          logger, then the shutdown that waits for it. A node must not depend on the reader of its
 *          log.
 * Must hold.
 *   node-log-L1  No line waits for longer than TRPI_LOG_PATIENCE_MS, and after one whose wait
 *       failed none waits at all until there is room again. Lost lines, also those lost to a full
 *       disk, are counted; the count is logged when there is room, and shown by `status` until
 *       then.
 *   node-log-L2  Processes that share our standard error (a shell, other nodes) see no O_NONBLOCK
 *       on it: a pipe or terminal is opened a second time, with a description of its own.
 *   node-log-L3  Behind a line of which only a part was written, the next begins with a line feed:
 *       its buffer has room for that and for the bytes that a format asks for.
 * Tests.   tests/unit/node/node_log_test.c, tests/system/node.sh
 */
#include "cluster/node/node_log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/errno_name.h"
#include "base/mutex.h"

#define WAITS_MAX 2u /* another writer may take the room first */

static const char *const level_names[] = { "?", "error", "warning", "info", "debug" };

trp_log_level
trpi_log_level_parse(const char *name)
{
    for (int level = TRP_LOG_ERROR; level <= TRP_LOG_DEBUG; level++) {
        if (strcmp(name, level_names[level]) == 0) {
            return (trp_log_level)level;
        }
    }
    return strcmp(name, "off") == 0 ? TRP_LOG_OFF : (trp_log_level)0;
}

char *
trpi_time_format(int64_t wall_ms, char *buffer, size_t bytes)
{
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm parts;
    char text[24];
    trpi_assert(bytes >= 32);
    if (!gmtime_r(&seconds, &parts) ||
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts) == 0) {
        (void)snprintf(text, sizeof text, "1970-01-01T00:00:00");
    }
    (void)snprintf(buffer, bytes, "%s.%03dZ", text, (int)(wall_ms % 1000));
    return buffer;
}

int
trpi_log_format_parse(const char *name)
{
    return strcmp(name, "json") == 0 ? 1 : strcmp(name, "journald") == 0 ? 2 : 0;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* node-log-L2. An output that cannot be opened again is asked for room before each write; another
 * writer may take that room, and then we wait for the reader. */
static void
stderr_take(trpi_node_log *log)
{
    struct stat file;
    log->fd = STDERR_FILENO;
    if (fstat(STDERR_FILENO, &file) != 0) {
        return;
    }
    log->is_socket = S_ISSOCK(file.st_mode);
    if (S_ISFIFO(file.st_mode) || S_ISCHR(file.st_mode)) {
        int fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        log->may_block = fd < 0;
        log->is_own = fd >= 0;
        log->fd = fd >= 0 ? fd : STDERR_FILENO;
    }
}

static int
file_open(const char *path)
{
    /* O_NONBLOCK: a named pipe without a reader is refused at once */
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0640);
}

trp_err
trpi_node_log_open(trpi_node_log *log, int format, trp_log_level level, const char *file)
{
    log->format = format;
    atomic_store_explicit(&log->level, (int)level, memory_order_relaxed);
    log->file = file;
    pthread_mutex_init(&log->lock, NULL);
    if (file == NULL || *file == '\0') {
        stderr_take(log);
        return TRP_OK;
    }
    log->fd = file_open(file);
    log->is_own = log->fd >= 0;
    return log->is_own ? TRP_OK : TRP_EIO;
}

trp_err
trpi_node_log_reopen(trpi_node_log *log)
{
    if (log->file == NULL || *log->file == '\0') {
        return TRP_ESTATE;
    }
    int fd = file_open(log->file);
    if (fd < 0) {
        return TRP_EIO;
    }
    pthread_mutex_lock(&log->lock);
    int old = log->fd;
    log->fd = fd;
    log->is_full = log->is_torn = false;
    pthread_mutex_unlock(&log->lock);
    (void)close(old);
    return TRP_OK;
}

void
trpi_node_log_close(trpi_node_log *log)
{
    if (log->is_own) {
        (void)close(log->fd);
        log->is_own = false;
    }
    log->fd = STDERR_FILENO;
    trpi_mutex_destroy(&log->lock);
}

/* ---- writing: with the lock ------------------------------------------------------------------ */

static bool
has_room(const trpi_node_log *log, uint32_t ms)
{
    struct pollfd fd = { log->fd, POLLOUT, 0 };
    return poll(&fd, 1, (int)ms) > 0;
}

/* write() without blocking for want of room. */
static ssize_t
write_now(const trpi_node_log *log, const char *bytes, size_t count)
{
    if (log->is_socket) {
        return send(log->fd, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    if (log->may_block && !has_room(log, 0)) {
        errno = EAGAIN;
        return -1;
    }
    return write(log->fd, bytes, count);
}

/* Write all bytes. false: there is no room for them. */
static bool
bytes_write(trpi_node_log *log, const char *bytes, size_t count)
{
    uint32_t waits = log->is_full ? 0 : WAITS_MAX; /* node-log-L1 */
    size_t all = count;
    while (count > 0) {
        ssize_t written = write_now(log, bytes, count);
        if (written >= 0) {
            bytes += written;
            count -= (size_t)written;
        } else if (errno == EAGAIN) {
            if (waits == 0 || !has_room(log, TRPI_LOG_PATIENCE_MS / WAITS_MAX)) {
                errno = EAGAIN;
                break;
            }
            waits--;
        } else if (errno != EINTR) {
            break;
        }
    }
    log->error = count > 0 ? errno : 0;
    log->is_torn = count > 0 && (count < all || log->is_torn);
    return count == 0;
}

/* The count of lost lines comes first. */
static bool
lost_write(trpi_node_log *log, const trp_log_line *next)
{
    char text[128], buffer[512]; /* node-log-L3 */
    trp_log_line line = { .level = TRP_LOG_WARNING, .source = "log", .text = text };
    size_t torn = log->is_torn;
    line.wall_ms = next->wall_ms;
    buffer[0] = '\n'; /* behind the part of a line that was written */
    if (log->error == EAGAIN) {
        (void)snprintf(text, sizeof text, "the log was not read: lines were lost lines=%" PRIu64,
                       log->lost);
    } else {
        (void)snprintf(text, sizeof text,
                       "the log could not be written: lines were lost lines=%" PRIu64 " error=%s",
                       log->lost, trpi_errno_name(log->error));
    }
    size_t bytes = trp_log_format(&line, log->format, buffer + torn, sizeof buffer - torn);
    return bytes_write(log, buffer, torn + bytes);
}

void
trpi_node_log_always(trpi_node_log *log, const trp_log_line *line)
{
    char buffer[TRPI_LOG_LINE_BYTES_MAX];
    size_t bytes = trp_log_format(line, log->format, buffer, sizeof buffer);
    if (log->also != NULL) {
        log->also(log->also_arg, line);
    }
    pthread_mutex_lock(&log->lock);
    if (log->lost > 0 && lost_write(log, line)) {
        log->lost = 0;
        log->is_full = false;
    }
    bool is_written = log->lost == 0 && bytes_write(log, buffer, bytes);
    log->is_full = !is_written;
    log->lost += !is_written;
    log->lost_all += !is_written;
    pthread_mutex_unlock(&log->lock);
}

void
trpi_node_log_line(void *arg, const trp_log_line *line)
{
    trpi_node_log *log = arg;
    if ((int)line->level <= atomic_load_explicit(&log->level, memory_order_relaxed)) {
        trpi_node_log_always(log, line);
    }
}

bool
trpi_node_log_problem(trpi_node_log *log, char *text, size_t bytes)
{
    pthread_mutex_lock(&log->lock);
    bool is = log->lost > 0;
    if (is && log->error == EAGAIN) {
        (void)snprintf(text, bytes, "the log is not read: %" PRIu64 " lines were lost", log->lost);
    } else if (is) {
        (void)snprintf(text, bytes,
                       "the log cannot be written (%s): %" PRIu64 " lines were lost; make room, or "
                       "move it away and send SIGUSR1",
                       trpi_errno_name(log->error), log->lost);
    }
    pthread_mutex_unlock(&log->lock);
    return is;
}

uint64_t
trpi_node_log_lost(trpi_node_log *log)
{
    pthread_mutex_lock(&log->lock);
    uint64_t lost = log->lost_all;
    pthread_mutex_unlock(&log->lock);
    return lost;
}
