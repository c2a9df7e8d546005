/* troupe/log.h - log lines are events: how they are made, filtered and written.
 *
 * A line whose level is on becomes an event on the system's event stream (trp_log_error_type ...
 * trp_log_debug_type, all below trp_log_event_type) and is written by loggers: actors below /system
 * that the system subscribes at its start. The thread that logs does not wait for a disk. Before
 * the loggers have started and after they have ended a line goes to the sink at once, if
 * stdout_level enables its level. A line whose level is off costs one load and a comparison. Each
 * logger has a thread of its own.
 */
#ifndef TROUPE_LOG_H
#define TROUPE_LOG_H

#include <troupe/actor.h>
#include <troupe/base.h>
#include <troupe/message.h>
#include <troupe/system.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_LOG_QUEUE_DEFAULT 65536 /* events that may wait for one logger */
#define TRP_LOG_TEXT_BYTES_MAX 1024 /* of one line, with the NUL; longer ones are cut */
#define TRP_LOG_MDC_BYTES_MAX 1024  /* of one actor's context, keys, values and their NULs */
#define TRP_LOGGERS_MAX 16          /* of one system, beside the default one; as many offered */
#define TRP_LOGGER_START_MS_DEFAULT 5000

/* Kinds of debug lines about actors (LOG-13); all off by default. */
typedef enum trp_debug {
    TRP_DEBUG_RECEIVE = 1,       /* messages of actors that called trp_log_receive() */
    TRP_DEBUG_AUTORECEIVE = 2,   /* poison pills, kills, terminated and the like, of all actors */
    TRP_DEBUG_LIFECYCLE = 4,     /* started, restarted, watches, stopped */
    TRP_DEBUG_FSM = 8,           /* transitions (become, unbecome) and timers of actors */
    TRP_DEBUG_EVENT_STREAM = 16, /* changes of subscriptions */
    TRP_DEBUG_UNHANDLED = 32,    /* messages that were not handled */
    TRP_DEBUG_ROUTER = 64,       /* misconfigured routers, at warning level */
    /* Nothing is logged: a message that is sent twice, one that is used after it was freed, and a
     * ctx that was kept end the process with a line that says so. For the whole process, from the
     * start of a system on; developer builds always look */
    TRP_DEBUG_MISUSE = 128
} trp_debug;

/* All zero is the default. */
typedef struct trp_log_options {
    size_t size;
    uint32_t stdout_level; /* while no logger runs, a trp_log_level; 0: warning */
    uint32_t queue_max;    /* events that may wait for a logger, more are dropped and counted;
                              0: TRP_LOG_QUEUE_DEFAULT */
    uint32_t start_ms;     /* for the answer of a logger; 0: TRP_LOGGER_START_MS_DEFAULT */
    uint32_t debug;        /* TRP_DEBUG_* */
    uint32_t json;         /* 1: lines on stderr are JSON objects */
    uint32_t no_default;   /* 1: no default logger, which calls trp_system_options.log or stderr */
    uint32_t no_dead_letters_at_end; /* 1: dead letters of a shutdown are not logged */
    uint32_t zero;
    /* Of the loggers. NULL: "troupe.logging", a thread for each logger, which runs no other actor:
     * lines are written while the program's actors hold all other threads */
    const char *dispatcher;
    /* The program's own loggers: actors that answer trp_logger_init_type with
     * trp_logger_ready_type and are then told log events. NULL-terminated; NULL: none. */
    const trp_behaviour *const *loggers;
    /* Further ones, which are started only where the configuration names them:
     * log { loggers = { default, "my-logger" } } says which loggers there are and in which order,
     * by the names of their behaviours; "default" is the default one. NULL-terminated; NULL:
     * none */
    const trp_behaviour *const *offered;
} trp_log_options;
#define TRP_LOG_OPTIONS_INIT                                                                       \
    {                                                                                              \
        sizeof(trp_log_options), 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL                          \
    }

/* Log events, and their parent. Read one with trp_log_event_line(). */
TRP_API extern trp_type trp_log_event_type;
TRP_API extern trp_type trp_log_error_type;
TRP_API extern trp_type trp_log_warning_type;
TRP_API extern trp_type trp_log_info_type;
TRP_API extern trp_type trp_log_debug_type;
/* The first thing that a logger is told, and its answer; without payload. */
TRP_API extern trp_type trp_logger_init_type;
TRP_API extern trp_type trp_logger_ready_type;

/* The level and the switches that decide whether a line is made. Part of the ABI because the test
 * below is in line. */
typedef struct trp_log_priv_gate {
    uint32_t level; /* lines above it are off; read without order */
    uint32_t debug; /* TRP_DEBUG_* */
} trp_log_priv_gate;

/* Return non-zero when lines of this level are logged now: one load that is not ordered. */
static inline int
trp_log_wants(const trp_ctx *ctx, trp_log_level level)
{
    const trp_log_priv_gate *gate = *(const trp_log_priv_gate *const *)(const void *)ctx;

    return (uint32_t)level <= __atomic_load_n(&gate->level, __ATOMIC_RELAXED);
}

/* Log as trp_log() does; the arguments are not even computed when the level is off. */
#define TRP_LOG_AT(ctx, level, ...)                                                                \
    do {                                                                                           \
        if (trp_log_wants((ctx), (level))) {                                                       \
            trp_log((ctx), (level), __VA_ARGS__);                                                  \
        }                                                                                          \
    } while (0)
#define TRP_LOG_ERROR(ctx, ...) TRP_LOG_AT(ctx, TRP_LOG_ERROR, __VA_ARGS__)
#define TRP_LOG_WARNING(ctx, ...) TRP_LOG_AT(ctx, TRP_LOG_WARNING, __VA_ARGS__)
#define TRP_LOG_INFO(ctx, ...) TRP_LOG_AT(ctx, TRP_LOG_INFO, __VA_ARGS__)
#define TRP_LOG_DEBUG(ctx, ...) TRP_LOG_AT(ctx, TRP_LOG_DEBUG, __VA_ARGS__)

/* Log a line that has an error as its cause, which the line names behind the text.
 *
 * Ownership: borrows format and its arguments.
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    LOG-02.  Since: 0.1 */
TRP_API void trp_log_cause(trp_ctx *ctx, trp_log_level level, trp_err cause, const char *format,
                           ...) TRP_PRINTF(4, 5);

/* Put key=value into the context of each line that the running actor logs, until it stops or
 * restarts; an earlier value of the key is replaced.
 *
 * Ownership: borrows key and value.
 * Errors:    TRP_EINVAL  key is empty or an argument is NULL
 *            TRP_ELIMIT  the context would have more than TRP_LOG_MDC_BYTES_MAX
 *            TRP_ENOMEM  out of memory
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    LOG-09.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_log_mdc_put(trp_ctx *ctx, const char *key, const char *value);

/* Do as trp_log_mdc_put, for the lines of the present message only. Such a key hides one of the
 * actor's.
 *
 * Ownership: borrows key and value.
 * Errors:    as trp_log_mdc_put
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    LOG-09.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_log_mdc_put_message(trp_ctx *ctx, const char *key,
                                                       const char *value);

/* Take a key out of the actor's context; NULL: all of them.
 *
 * Ownership: borrows key.
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    LOG-09.  Since: 0.1 */
TRP_API void trp_log_mdc_remove(trp_ctx *ctx, const char *key);

/* Read the context of a line: start with at = line->mdc and go on with what is returned, until it
 * returns NULL and sets nothing.
 *
 * Ownership: lends *ret_key and *ret_value as long as the line.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    LOG-09.  Since: 0.1 */
TRP_API const char *trp_log_mdc_next(const char *at, const char **ret_key, const char **ret_value);

/* Mark the running actor: each message that it is told is logged when TRP_DEBUG_RECEIVE is on.
 * Where it is off at the time of the call, nothing is marked and nothing is paid. Ends with a stop
 * or restart: call it in pre_start. Not for loggers.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    MSG-19, LOG-13.  Since: 0.1 */
TRP_API void trp_log_receive(trp_ctx *ctx);

/* Read a log event. 0: msg is none, and nothing is set.
 *
 * Ownership: lends what *ret_line points to, as long as msg.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    LOG-07.  Since: 0.1 */
TRP_API int trp_log_event_line(const trp_msg *msg, trp_log_line *ret_line);

/* Write a line with its newline as text, with json 1 as a JSON object, or with json 2 as text for
 * journald (<4>source text, without a time); cut at bytes, which are at least 256. Words key=value
 * that end a text are "fields" of the object, too. Returns the bytes written, without the NUL.
 *
 * Ownership: borrows line.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    docs/architecture.md#logging.  Since: 0.1 */
TRP_API size_t trp_log_format(const trp_log_line *line, int json, char *buffer, size_t bytes);

/* Change the level; TRP_LOG_OFF is none. Loggers are subscribed to what is on: a line that is
 * logged after the return is made, or not, by the new level.
 *
 * Errors:    none; a level that is none is ignored
 * Thread:    any; takes a lock for a moment.
 * Source:    TRP-14, ES-02.  Since: 0.1 */
TRP_API void trp_log_level_set(trp_system *system, trp_log_level level);

/* Return the present level.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    LOG-06.  Since: 0.1 */
TRP_API trp_log_level trp_log_level_get(const trp_system *system);

/* Change which debug lines are made: a sum of TRP_DEBUG_*.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    LOG-13.  Since: 0.1 */
TRP_API void trp_log_debug_set(trp_system *system, uint32_t debug);

/* Wait until the loggers have handled every line that was logged before the call. It needs no
 * thread that actors of the program could hold.
 *
 * Errors:    TRP_ETIMEDOUT  a logger has not come so far in time
 *            TRP_ENOMEM     out of memory: a logger could not be told
 *            TRP_ESTATE     called from a behaviour
 *            TRP_EINVAL     system is none
 * Thread:    any; may block until the loggers have answered; never from a behaviour.
 * Source:    docs/architecture.md#logging.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_log_flush(trp_system *system, uint32_t timeout_ms);

/* Return how many events were dropped because too many waited for a logger.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    docs/architecture.md#principles.  Since: 0.1 */
TRP_API uint64_t trp_log_dropped(const trp_system *system);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_LOG_H */
