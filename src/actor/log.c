/* log.c - log lines of a system, through the sink that its owner gave, else to stderr.
 *
 * Must hold.
 *   G1  A line below the level costs a comparison, no formatting.
 *   G2  The sink is called with no lock of ours held, by any thread.
 *   G3  A line is one line without control characters, whatever a peer or a user put into it.
 * Limits.  TRPI_LOG_TEXT_BYTES of text, then cut.
 * Tests.   tests/unit/actor/log_test.c
 */
#include "actor/life.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

bool
trpi_log_wanted(const trp_system *system, trp_log_level level)
{
    /* Relaxed: a new level (trpi_log_level_set) may be a line late. */
    uint32_t set = __atomic_load_n(&system->options.log_level, __ATOMIC_RELAXED);
    uint32_t wanted = set == 0 ? TRP_LOG_INFO : set;

    return (uint32_t)level <= wanted;
}

void
trpi_log_level_set(trp_system *system, trp_log_level level)
{
    __atomic_store_n(&system->options.log_level, (uint32_t)level,
                     __ATOMIC_RELAXED); /* pair: trpi_log_wanted */
}

static void
log_stderr(const trp_log_line *line)
{
    static const char *const names[] = { "?", "ERROR", "WARNING", "INFO", "DEBUG" };
    time_t seconds = (time_t)(line->wall_ms / 1000);
    struct tm utc;
    char stamp[32];

    gmtime_r(&seconds, &utc);
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &utc);
    /* one call: lines of several threads do not mix */
    fprintf(stderr, "%s.%03dZ %-7s %s: %s\n", stamp, (int)(line->wall_ms % 1000),
            names[(unsigned)line->level <= TRP_LOG_DEBUG ? line->level : 0], line->source,
            line->text);
}

static void
log_va(trp_system *system, trp_log_level level, const char *source, const char *format,
       va_list arguments)
{
    char text[TRPI_LOG_TEXT_BYTES];
    trp_log_line line = { level, source == NULL ? "" : source, text, 0 };

    if (vsnprintf(text, sizeof text, format, arguments) < 0) {
        return;
    }
    for (char *c = text; *c != 0; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            *c = '?'; /* G3 */
        }
    }
    line.wall_ms = trpi_world_wall_ms(system->world);
    if (system->options.log != NULL) {
        system->options.log(system->options.log_arg, &line);
    } else {
        log_stderr(&line);
    }
}

void
trpi_log(trp_system *system, trp_log_level level, const char *room, const char *format, ...)
{
    va_list arguments;

    if (trpi_log_wanted(system, level)) {
        va_start(arguments, format);
        log_va(system, level, room, format, arguments);
        va_end(arguments);
    }
}

void
trp_system_log(trp_system *system, trp_log_level level, const char *source, const char *format, ...)
{
    va_list arguments;

    if (trpi_system_is_valid(system) && format != NULL && trpi_log_wanted(system, level)) {
        va_start(arguments, format);
        log_va(system, level, source, format, arguments);
        va_end(arguments);
    }
}

void
trp_log(trp_ctx *ctx, trp_log_level level, const char *format, ...)
{
    char path[TRP_PATH_BYTES_MAX + 1];
    va_list arguments;

    if (format != NULL && trpi_log_wanted(ctx->system, level)) {
        trpi_path_local(ctx->system, ctx->self, path, sizeof path);
        va_start(arguments, format);
        log_va(ctx->system, level, path, format, arguments);
        va_end(arguments);
    }
}

void
trpi_life_trace(trp_ctx *ctx, trpi_cell *cell, const char *what, trp_ref other)
{
    char path[TRP_PATH_BYTES_MAX + 1], whom[TRP_PATH_BYTES_MAX + 1];

    if (trpi_log_wanted(ctx->system, TRP_LOG_DEBUG)) { /* G1 */
        trpi_path_local(ctx->system, trpi_cell_ref(cell), path, sizeof path);
        trp_path(ctx->system, other, whom, sizeof whom);
        trp_system_log(ctx->system, TRP_LOG_DEBUG, path, "%s%s%s", what, whom[0] == 0 ? "" : " ",
                       whom);
    }
}
