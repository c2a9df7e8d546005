/* node_log.c - where the lines of a node go; what they look like is the library's
 * (trp_log_format()).
 *
 * Tests.   tests/unit/node/node_options_test.c
 */
#include "cluster/node/node_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"

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

void
trpi_node_log_line(void *arg, const trp_log_line *line)
{
    trpi_node_log *log = arg;
    char buffer[TRPI_LOG_LINE_BYTES_MAX];
    if ((int)line->level > atomic_load_explicit(&log->level, memory_order_relaxed)) {
        return;
    }
    size_t bytes = trp_log_format(line, log->json, buffer, sizeof buffer);
    (void)!write(log->fd, buffer, bytes); /* nowhere to complain */
}
