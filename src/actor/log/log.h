/* log.h - log events inside the room: how a line is made, and which actors take it.
 *
 * Shape.   log.c makes an event of a line; event_stream.c sends it to its subscribers; logger.c
 *          has the actors that write it; log_format.c formats a line; log_context.c has the
 *          actor's MDC and its mark for LoggingReceive.
 */
#ifndef TRPI_ACTOR_LOG_LOG_H
#define TRPI_ACTOR_LOG_LOG_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <troupe/log.h>

#include "actor/log/open.h"

#define TRPI_LOG_LINE_BYTES 4096u /* of a line on stderr; longer ones are cut */

struct trpi_cell;

/* The bound of events that wait for a subscriber. The publisher counts `waiting` up, the subscriber
 * down. Relaxed: the bound may be exceeded by the number of concurrent publishers. */
typedef struct trpi_event_limit {
    _Atomic uint32_t waiting;
    _Atomic uint64_t dropped;
    uint32_t max;
} trpi_event_limit;

/* ---- log.c ----------------------------------------------------------------------------------- */
bool trpi_log_wanted(const trp_system *system, trp_log_level level);
/* Is any of these TRP_DEBUG_* on, and the debug level, too? One load each. */
bool trpi_log_debugs(const trp_system *system, uint32_t debug);
/* Log a line about an actor, with its path as the source. Thread: any. */
void trpi_log_about(trp_ctx *ctx, trp_ref actor, trp_log_level level, trp_err cause,
                    const char *format, ...) TRP_PRINTF(5, 6);
/* Write a line to the sink at once, past the loggers: it must be seen even if no worker ever runs
 * again. */
void trpi_log_direct(trp_system *system, trp_log_level level, const char *source,
                     const char *format, ...) TRP_PRINTF(4, 5);
/* Give a line to the sink of the system. */
void trpi_log_sink(trp_system *system, const trp_log_line *line);

/* Log with debug.lifecycle, with the path of the running cell (LIFE-20). */
void trpi_life_trace(trp_ctx *ctx, struct trpi_cell *cell, const char *what, trp_ref other);
/* Log with debug.autoreceive: a message that the runtime handles for the actor. */
void trpi_log_auto(trp_ctx *ctx, struct trpi_cell *cell, const trp_msg *msg);

/* ---- log_types.c: internal types ------------------------------------------------------------- */
extern trp_type trpi_logger_end_type, trpi_logger_flush_type;

/* ---- logger.c -------------------------------------------------------------------------------- */
typedef struct trpi_loggers trpi_loggers;
/* Start the loggers of the options and wait for their answers. Errors: TRP_ENOMEM and those of
 * spawning. Thread: owner. */
trp_err trpi_loggers_start(trp_system *system);
void trpi_loggers_free(trp_system *system);
bool trpi_logger_is(const trp_system *system, trp_ref ref);
/* Write an event at once that came too late for its logger, if that is the first logger. */
void trpi_logger_late(trp_system *system, trp_ref to, const trp_msg *msg);
/* The level has changed: subscribe the loggers to the levels that are on. */
void trpi_loggers_follow(trp_system *system);

/* ---- log_context.c --------------------------------------------------------------------------- */
/* of both contexts, with the empty string at the end */
#define TRPI_MDC_BYTES (2 * TRP_LOG_MDC_BYTES_MAX + 1)
/* Write the context of the running cell: pairs of strings, then an empty string. */
size_t trpi_log_context_copy(const trp_ctx *ctx, char *buffer);
/* Free the context: the instance ends. Thread: runner. */
void trpi_log_context_drop(struct trpi_cell *cell);
/* Log that a cell with extra->log_receive is about to receive ctx->msg. Thread: runner. */
void trpi_log_received(trp_ctx *ctx);

#endif
