/* node_log.c - one log line.
 *
 *     2026-11-20T12:03:01.204Z info  cluster       member up troupe.tcp://demo@10.0.0.1:2552
 *     {"time":"2026-11-20T12:03:01.204Z","level":"info","source":"cluster","message":"..."}
 *
 * Must hold. I1 a line is one line: control characters of the text are written as \xNN or \u00NN
 * Tests.     tests/unit/node/node_log_test.c
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
    return (trp_log_level)0;
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

/* Append text with what would break the line or the JSON string replaced. */
static size_t
escaped_put(const char *text, bool json, char *buffer, size_t at, size_t bytes)
{
    for (const unsigned char *p = (const unsigned char *)text; *p && at + 8 < bytes; p++) {
        if (json && (*p == '"' || *p == '\\')) {
            buffer[at++] = '\\';
            buffer[at++] = (char)*p;
        } else if (*p < 0x20 || *p == 0x7f) {
            at += (size_t)snprintf(buffer + at, bytes - at, json ? "\\u%04x" : "\\x%02x", *p);
        } else {
            buffer[at++] = (char)*p;
        }
    }
    return at;
}

size_t
trpi_node_log_format(const trp_log_line *line, bool json, char *buffer, size_t bytes)
{
    char time[32];
    const char *level = line->level >= TRP_LOG_ERROR && line->level <= TRP_LOG_DEBUG
                            ? level_names[line->level]
                            : level_names[0];
    trpi_assert(bytes >= 256);
    (void)trpi_time_format(line->wall_ms, time, sizeof time);
    size_t room = bytes - 8, at = 0; /* for the end of the line */
    if (json) {
        at = (size_t)snprintf(buffer, room, "{\"time\":\"%s\",\"level\":\"%s\",\"source\":\"", time,
                              level);
        at = escaped_put(line->source ? line->source : "", true, buffer, at, room);
        at += (size_t)snprintf(buffer + at, bytes - at, "\",\"message\":\"");
        at = escaped_put(line->text ? line->text : "", true, buffer, at, room);
        at += (size_t)snprintf(buffer + at, bytes - at, "\"}\n");
    } else {
        at = (size_t)snprintf(buffer, room, "%s %-7s ", time, level);
        at = escaped_put(line->source ? line->source : "", false, buffer, at, room);
        buffer[at++] = ' ';
        at = escaped_put(line->text ? line->text : "", false, buffer, at, room);
        buffer[at++] = '\n';
    }
    return at;
}

void
trpi_node_log_line(void *arg, const trp_log_line *line)
{
    trpi_node_log *log = arg;
    char buffer[TRPI_LOG_LINE_BYTES_MAX];
    if ((int)line->level > atomic_load_explicit(&log->level, memory_order_relaxed)) {
        return;
    }
    size_t bytes = trpi_node_log_format(line, log->json, buffer, sizeof buffer);
    (void)!write(log->fd, buffer, bytes); /* nowhere to complain */
}
