/* log.c - turn a log line into an event.
 *
 * Why.     Writing a line may take long, and may fail. The caller only makes an event of it;
 *          loggers (logger.c) write it on their own threads.
 * Shape.   trp_log -> level? -> text, time, thread, path, context -> event -> event stream
 *          -> loggers. Lines go to the sink at once, by stdout_level, when no logger is subscribed
 *          (before they start, after they end), and when a logger itself logs.
 * Must hold.
 *   log-G1  A line below the level costs a load and a comparison, no formatting.
 *   log-G2  The sink is called by any thread, with no lock of the library held.
 *   log-G3  A text is one line without control characters, whatever a peer or a user put into it.
 *   log-G4  A line by or about a logger goes to no logger: a failing logger cannot feed itself.
 * Limits.  A text is cut at TRP_LOG_TEXT_BYTES_MAX; queue_max events for each logger.
 * Tests.   tests/unit/actor/log_test.c
 * Sources. LOG-01..14, TRP-14; Akka 2.2.5, "Logging".
 */
#include "actor/log/log.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "actor/log/event_stream.h"
#include "actor/naming/path.h"

#define EVENT_BYTES_MAX                                                                            \
    (sizeof(struct log_head) + TRP_PATH_BYTES_MAX + 1 + TRP_LOG_TEXT_BYTES_MAX +                   \
     TRP_TYPE_NAME_BYTES_MAX + 1 + THREAD_BYTES + TRPI_MDC_BYTES)
#define THREAD_BYTES 16u /* the kernel's limit */

/* Payload of a log event; text, source, kind and thread follow, each with its NUL, then the
 * context. */
struct log_head {
    uint32_t level;
    int32_t cause;
    int64_t wall_ms;
    uint64_t mono_ns;
    trp_ref actor;
    uint16_t source_at, kind_at, thread_at, mdc_at; /* bytes from the text's start */
};

struct log_event {
    struct log_head head;
    char strings[EVENT_BYTES_MAX - sizeof(struct log_head)];
};
_Static_assert(sizeof(struct log_event) <= TRP_INLINE_PAYLOAD_MAX, "an event is one block");

/* The thread's name, cached: to ask the kernel costs a system call. */
static _Thread_local char thread_name[THREAD_BYTES];

static trp_type *const types[] = { &trp_log_event_type, &trp_log_error_type, &trp_log_warning_type,
                                   &trp_log_info_type, &trp_log_debug_type };

bool
trpi_log_wanted(const trp_system *system, trp_log_level level)
{
    /* relaxed: another thread may see a new level one line later */
    return (uint32_t)level <= __atomic_load_n(&system->log_gate.level, __ATOMIC_RELAXED);
}

bool
trpi_log_debugs(const trp_system *system, uint32_t debug)
{
    return (__atomic_load_n(&system->log_gate.debug, __ATOMIC_RELAXED) & debug) != 0 &&
           trpi_log_wanted(system, TRP_LOG_DEBUG);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void
line_of(const struct log_head *head, const char *strings, trp_log_line *ret_line)
{
    ret_line->level = (trp_log_level)head->level;
    ret_line->text = strings;
    ret_line->source = strings + head->source_at;
    ret_line->kind = strings + head->kind_at;
    ret_line->thread = strings + head->thread_at;
    ret_line->mdc = strings + head->mdc_at;
    ret_line->wall_ms = head->wall_ms;
    ret_line->mono_ns = head->mono_ns;
    ret_line->actor = head->actor;
    ret_line->cause = (trp_err)head->cause;
}

int
trp_log_event_line(const trp_msg *msg, trp_log_line *ret_line)
{
    const char *payload;
    size_t bytes = trp_msg_bytes(msg);

    /* events are local and made here, but any code may publish a payload with this type */
    if (!trpi_type_is_log(msg->priv_type) || bytes <= sizeof(struct log_head)) {
        return 0;
    }
    payload = trp_msg_payload(msg);
    line_of((const struct log_head *)(const void *)payload, payload + sizeof(struct log_head),
            ret_line);
    return 1;
}

void
trpi_log_sink(trp_system *system, const trp_log_line *line)
{
    char buffer[TRPI_LOG_LINE_BYTES];
    size_t bytes;

    if (system->options.log != NULL) {
        system->options.log(system->options.log_arg, line);
        return;
    }
    bytes = trp_log_format(line, system->logging.json != 0, buffer, sizeof buffer);
    (void)fwrite(buffer, 1, bytes, stderr); /* one call: lines of several threads do not mix */
}

/* ---- making an event ------------------------------------------------------------------------- */

/* The parts of a line. */
struct made {
    trp_log_level level;
    trp_ref actor; /* its path is the source, if source is NULL */
    const char *source;
    trp_err cause;
};

static size_t
text_put(char *to, const struct made *what, const char *format, va_list arguments)
{
    int length = vsnprintf(to, TRP_LOG_TEXT_BYTES_MAX, format, arguments);
    size_t used;

    if (length < 0) {
        (void)snprintf(to, TRP_LOG_TEXT_BYTES_MAX, "(a line that could not be formatted: %s)",
                       format);
    }
    used = strlen(to);
    if (what->cause != TRP_OK && used < TRP_LOG_TEXT_BYTES_MAX) {
        (void)snprintf(to + used, TRP_LOG_TEXT_BYTES_MAX - used, ": %s (%s)",
                       trp_strerror(what->cause), trp_err_name(what->cause));
        used = strlen(to);
    }
    for (char *c = to; *c != 0; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            *c = '?'; /* log-G3 */
        }
    }
    return used + 1;
}

static size_t
string_put(char *to, size_t room, const char *text)
{
    size_t bytes = strnlen(text, room - 1);

    memcpy(to, text, bytes);
    to[bytes] = 0;
    return bytes + 1;
}

static const char *
thread_get(void)
{
    if (thread_name[0] == 0 &&
        pthread_getname_np(pthread_self(), thread_name, sizeof thread_name) != 0) {
        (void)snprintf(thread_name, sizeof thread_name, "?");
    }
    return thread_name;
}

/* Returns the bytes of the payload. */
static size_t
event_make(trp_system *system, const trp_ctx *ctx, const struct made *what, const char *format,
           va_list arguments, struct log_event *event)
{
    bool of_actor = ctx != NULL && ctx->cell != NULL && trp_ref_equal(ctx->self, what->actor);
    struct log_head *head = &event->head;
    char *strings = event->strings;
    size_t at = text_put(strings, what, format, arguments);

    head->level = (uint32_t)what->level;
    head->cause = (int32_t)what->cause;
    head->wall_ms = trpi_world_wall_ms(system->world);
    head->mono_ns = trpi_world_mono_ns(system->world);
    head->actor = what->actor;
    head->source_at = (uint16_t)at;
    if (what->source != NULL) {
        at += string_put(strings + at, TRP_PATH_BYTES_MAX + 1, what->source);
    } else {
        at += trpi_path_local(system, what->actor, strings + at, TRP_PATH_BYTES_MAX + 1) + 1;
    }
    head->kind_at = (uint16_t)at;
    at += string_put(strings + at, TRP_TYPE_NAME_BYTES_MAX + 1,
                     of_actor ? ctx->cell->behaviour->name : "");
    head->thread_at = (uint16_t)at;
    at += string_put(strings + at, THREAD_BYTES, thread_get());
    head->mdc_at = (uint16_t)at;
    if (of_actor) {
        at += trpi_log_context_copy(ctx, strings + at);
    } else {
        strings[at++] = 0;
    }
    return sizeof *head + at;
}

static void
sink_direct(trp_system *system, const struct log_event *event)
{
    trp_log_line line;

    if (event->head.level <= system->logging.stdout_level) {
        line_of(&event->head, event->strings, &line);
        trpi_log_sink(system, &line);
    }
}

/* Log a line; ctx NULL: the caller has none. */
static void
log_va(trp_system *system, trp_ctx *ctx, const struct made *what, const char *format,
       va_list arguments)
{
    struct log_event event;
    size_t bytes;
    bool taken = false;

    if (system->events == NULL) { /* the system is being made or freed */
        (void)event_make(system, NULL, what, format, arguments, &event);
        sink_direct(system, &event);
        return;
    }
    ctx = trpi_enter(system);
    bytes = event_make(system, ctx, what, format, arguments, &event);
    if (!trpi_logger_is(system, ctx->self) && !trpi_logger_is(system, what->actor)) { /* log-G4 */
        taken = trpi_event_publish(ctx, types[what->level], &event, bytes) > 0;
    }
    trpi_leave(ctx);
    if (!taken) {
        sink_direct(system, &event);
    }
}

static bool
is_level(trp_log_level level)
{
    return level >= TRP_LOG_ERROR && level <= TRP_LOG_DEBUG;
}

void
trpi_log(trp_system *system, trp_log_level level, const char *room, const char *format, ...)
{
    struct made what = { level, TRP_REF_NONE, room, TRP_OK };
    va_list arguments;

    if (trpi_log_wanted(system, level)) {
        va_start(arguments, format);
        log_va(system, NULL, &what, format, arguments);
        va_end(arguments);
    }
}

void
trp_system_log(trp_system *system, trp_log_level level, const char *source, const char *format, ...)
{
    struct made what = { level, TRP_REF_NONE, source == NULL ? "" : source, TRP_OK };
    va_list arguments;

    if (trpi_system_is_valid(system) && format != NULL && is_level(level) &&
        trpi_log_wanted(system, level)) {
        va_start(arguments, format);
        log_va(system, NULL, &what, format, arguments);
        va_end(arguments);
    }
}

void
trp_log(trp_ctx *ctx, trp_log_level level, const char *format, ...)
{
    struct made what = { level, ctx->self, NULL, TRP_OK };
    va_list arguments;

    if (format != NULL && is_level(level) && trpi_log_wanted(ctx->system, level)) {
        va_start(arguments, format);
        log_va(ctx->system, ctx, &what, format, arguments);
        va_end(arguments);
    }
}

void
trp_log_cause(trp_ctx *ctx, trp_log_level level, trp_err cause, const char *format, ...)
{
    struct made what = { level, ctx->self, NULL, cause };
    va_list arguments;

    if (format != NULL && is_level(level) && trpi_log_wanted(ctx->system, level)) {
        va_start(arguments, format);
        log_va(ctx->system, ctx, &what, format, arguments);
        va_end(arguments);
    }
}

void
trpi_log_about(trp_ctx *ctx, trp_ref actor, trp_log_level level, trp_err cause, const char *format,
               ...)
{
    struct made what = { level, actor, NULL, cause };
    va_list arguments;

    if (trpi_log_wanted(ctx->system, level)) {
        va_start(arguments, format);
        log_va(ctx->system, ctx, &what, format, arguments);
        va_end(arguments);
    }
}

void
trpi_log_direct(trp_system *system, trp_log_level level, const char *source, const char *format,
                ...)
{
    struct made what = { level, TRP_REF_NONE, source, TRP_OK };
    struct log_event event;
    va_list arguments;

    if (trpi_log_wanted(system, level)) {
        va_start(arguments, format);
        (void)event_make(system, NULL, &what, format, arguments, &event);
        va_end(arguments);
        sink_direct(system, &event);
    }
}

void
trpi_life_trace(trp_ctx *ctx, trpi_cell *cell, const char *what, trp_ref other)
{
    char path[TRP_PATH_BYTES_MAX + 1];

    if (trpi_log_debugs(ctx->system, TRP_DEBUG_LIFECYCLE)) { /* log-G1 */
        trp_path(ctx->system, other, path, sizeof path);
        trpi_log_about(ctx, trpi_cell_ref(cell), TRP_LOG_DEBUG, TRP_OK, "%s%s%s", what,
                       path[0] == 0 ? "" : " ", path);
    }
}

void
trpi_log_auto(trp_ctx *ctx, trpi_cell *cell, const trp_msg *msg)
{
    if (msg->priv_type <= TRPI_TYPE_RECEIVE_TIMEOUT) { /* the others are internal */
        trpi_log_about(ctx, trpi_cell_ref(cell), TRP_LOG_DEBUG, TRP_OK,
                       "received automatic message of type %s", trp_msg_type(msg)->name);
    }
}

/* ---- levels ---------------------------------------------------------------------------------- */

void
trp_log_level_set(trp_system *system, trp_log_level level)
{
    if (!trpi_system_is_valid(system) || !(is_level(level) || level == TRP_LOG_OFF)) {
        return;
    }
    __atomic_store_n(&system->log_gate.level, level == TRP_LOG_OFF ? 0 : (uint32_t)level,
                     __ATOMIC_RELAXED); /* pair: trpi_log_wanted */
    trpi_loggers_follow(system);
}

trp_log_level
trp_log_level_get(const trp_system *system)
{
    uint32_t level;

    if (!trpi_system_is_valid(system)) {
        return TRP_LOG_OFF;
    }
    level = __atomic_load_n(&system->log_gate.level, __ATOMIC_RELAXED);
    return level == 0 ? TRP_LOG_OFF : (trp_log_level)level;
}

void
trp_log_debug_set(trp_system *system, uint32_t debug)
{
    if (trpi_system_is_valid(system)) {
        __atomic_store_n(&system->log_gate.debug, debug, __ATOMIC_RELAXED);
    }
}
