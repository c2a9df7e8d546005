/* logger.c - the actors that write log events down.
 *
 * Why.     Writing is slow, and programs have their own destinations. A logger is an actor below
 *          /system, subscribed to the levels that are on.
 * Shape.   log1 is the default logger (the sink of the system's options, or stderr) unless it is
 *          switched off; then come the program's own; or all are as the configuration names them.
 *          Each is wrapped: its receive is ours, which counts, and calls the program's.
 * States.  At the start of a system each logger in turn gets logger-init; one that does not answer
 *          in time is left out. At its end the user tree ends, then the others below /system, then
 *          the loggers by a last message, behind all earlier lines.
 * Must hold.
 *   logger-K1  At an orderly stop no line is lost: what is queued before the last message is
 *       written by the logger, and what comes later is written at once (trpi_logger_late).
 *   logger-K2  A slow logger takes memory for queue_max events; further events are dropped and
 *       counted, and it logs their number when it has caught up.
 *   logger-K3  `count` is raised behind a complete entry; entries never change but for `levels`.
 *   logger-K4  A logger has a thread of its own, from the start of the system: no actor of the
 *       program can block it, and trp_log_flush() waits for the loggers' threads only.
 * Limits.  TRP_LOGGERS_MAX; queue_max.
 * Tests.   tests/unit/actor/log_test.c, loggers_test.c
 * Sources. LOG-01, -06, -07; CONF-7; ES-02; SYS-7; TRP-14.
 */
#include <stdio.h>
#include <string.h>

#include "actor/life/life.h"
#include "actor/log/loggers.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/config.h"
#include "base/mutex.h"

#define LOGGERS_KEY "log.loggers"

/* ---- the default logger ---------------------------------------------------------------------- */

static trp_err
default_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_log_line line;

    (void)state;
    if (trp_log_event_line(msg, &line) != 0) {
        trpi_log_sink(ctx->system, &line);
    }
    return TRP_OK;
}

static const trp_behaviour default_behaviour =
    TRP_BEHAVIOUR_INIT("default logger", char, default_receive);

/* ---- the wrapper ----------------------------------------------------------------------------- */

static void
event_handled(trp_ctx *ctx, trpi_logger *self)
{
    uint32_t before = atomic_fetch_sub_explicit(&self->limit.waiting, 1, memory_order_relaxed);
    uint64_t dropped;

    if (before == 0) { /* sent by the program, not published */
        atomic_fetch_add_explicit(&self->limit.waiting, 1, memory_order_relaxed);
    } else if (before - 1 == self->limit.max / 2) { /* logger-K2 */
        dropped = atomic_load_explicit(&self->limit.dropped, memory_order_relaxed);
        if (dropped > 0) {
            trp_log(ctx, TRP_LOG_WARNING,
                    "this logger is too slow: %llu lines were dropped so far (queue_max is %u)",
                    (unsigned long long)dropped, (unsigned)self->limit.max);
        }
    }
}

/* Set the mark by which the event stream removes it when it ends. */
static trp_err
logger_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    const trpi_logger *self = (const trpi_logger *)(const void *)ctx->cell->behaviour;

    ctx->cell->subscribed = 1;
    return self->pre_start == NULL ? TRP_OK : self->pre_start(ctx, state, args);
}

static trp_err
logger_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trpi_logger *self = (trpi_logger *)(uintptr_t)ctx->cell->behaviour;

    ctx->turn.processed++; /* log events do not count as messages in the statistics */
    if (msg->priv_type == TRPI_TYPE_LOGGER_END) {
        trp_stop(ctx, ctx->self);
        return TRP_OK;
    }
    if (msg->priv_type == TRPI_TYPE_LOGGER_FLUSH) {
        return TRP_OK; /* its release is the answer */
    }
    if (trpi_type_is_log(msg->priv_type)) {
        event_handled(ctx, self);
    }
    return self->receive(ctx, state, msg);
}

/* ---- start ----------------------------------------------------------------------------------- */

/* Ask the logger whether it is ready. One that is not is stopped and left out; the system starts
 * anyway. */
static bool
logger_init(trp_system *system, trpi_logger *l)
{
    trp_msg *answer = NULL;
    trp_err err = trp_system_ask(system, l->ref, &trp_logger_init_type, NULL, 0,
                                 system->logging.start_ms, &answer);
    bool ready = err == TRP_OK && trp_msg_is(answer, &trp_logger_ready_type);

    trpi_msg_drop(answer);
    if (!ready) {
        trpi_log_direct(system, TRP_LOG_WARNING, "log",
                        "logger %s did not report within %u ms that it is ready (%s): it is not "
                        "used",
                        l->behaviour.name, (unsigned)system->logging.start_ms,
                        err == TRP_OK ? "another answer" : trp_strerror(err));
        trp_system_stop_actor(system, l->ref);
    }
    return ready;
}

static trp_err
logger_start(trp_system *system, const trp_behaviour *behaviour)
{
    trpi_loggers *loggers = trpi_loggers_of(system);
    uint32_t count = atomic_load_explicit(&loggers->count, memory_order_relaxed);
    trpi_logger *l = &loggers->items[count];
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    char name[16];
    trp_err err;

    l->behaviour = *behaviour;
    l->receive = behaviour->receive;
    l->pre_start = behaviour->pre_start;
    l->behaviour.receive = logger_receive;
    l->behaviour.pre_start = logger_pre_start;
    l->limit.max = system->logging.queue_max;
    (void)snprintf(name, sizeof name, "log%u", (unsigned)count + 1);
    options.name = name;
    options.dispatcher = system->logging.dispatcher;
    err = trpi_spawn_outside(system, &system->life->system, "troupe.logging", &l->behaviour,
                             &options, &l->ref);
    if (err != TRP_OK) {
        return err;
    }
    l->levels = UINT32_MAX;                                                  /* not yet, or never */
    atomic_store_explicit(&loggers->count, count + 1, memory_order_release); /* logger-K3 */
    if (behaviour != &default_behaviour && !logger_init(system, l)) {
        return TRP_OK;
    }
    pthread_mutex_lock(&loggers->lock);
    l->levels = 0;
    err = trpi_logger_follow(system, l, __atomic_load_n(&system->log_gate.level, __ATOMIC_RELAXED));
    pthread_mutex_unlock(&loggers->lock);
    return err;
}

static const trp_behaviour *
behaviour_named(const trp_behaviour *const *among, const char *name)
{
    while (among != NULL && *among != NULL && strcmp((*among)->name, name) != 0) {
        among++;
    }
    return among == NULL ? NULL : *among;
}

/* Start the loggers that the configuration names, and no others (CONF-7). */
static trp_err
start_named(trp_system *system, const trp_config *config)
{
    size_t count = trpi_config_list_count(config, LOGGERS_KEY);
    size_t own = 0;
    trp_err err = TRP_OK;

    for (size_t i = 0; i < count && err == TRP_OK; i++) {
        const char *name = trpi_config_list_at(config, LOGGERS_KEY, i);
        const trp_behaviour *behaviour = strcmp(name, "default") == 0
                                             ? &default_behaviour
                                             : behaviour_named(system->logging.loggers, name);

        if (behaviour == NULL) {
            behaviour = behaviour_named(system->logging.offered, name);
        }
        own += behaviour != &default_behaviour;
        if (behaviour == NULL || own > TRP_LOGGERS_MAX || i > TRP_LOGGERS_MAX) {
            trpi_config_entry entry = { .origin = "" };

            (void)trpi_config_find(config, LOGGERS_KEY, &entry);
            trpi_log_direct(
                system, TRP_LOG_ERROR, "config", "%s: " LOGGERS_KEY ": %s \"%s\"%s", entry.origin,
                behaviour == NULL ? "the program has no logger" : "too many loggers at", name,
                behaviour == NULL ? "; one that every program has is default" : "");
            return TRP_ECONFIG;
        }
        err = logger_start(system, behaviour);
    }
    return err;
}

static trp_err
start_coded(trp_system *system)
{
    const trp_behaviour *const *own = system->logging.loggers;
    trp_err err =
        system->logging.no_default == 0 ? logger_start(system, &default_behaviour) : TRP_OK;

    for (; err == TRP_OK && own != NULL && *own != NULL; own++) {
        err = logger_start(system, *own);
    }
    return err;
}

trp_err
trpi_loggers_start(trp_system *system)
{
    const trp_config *config = system->options.config;
    trp_err err;
    trpi_loggers *loggers = trpi_alloc(sizeof *loggers);

    if (loggers == NULL) {
        return TRP_ENOMEM;
    }
    pthread_mutex_init(&loggers->lock, NULL);
    __atomic_store_n(&system->loggers, loggers, __ATOMIC_RELEASE); /* pair: trpi_loggers_of() */
    err =
        trpi_config_is_set(config, LOGGERS_KEY) ? start_named(system, config) : start_coded(system);
    system->logging.loggers = NULL; /* borrowed until here */
    system->logging.offered = NULL;
    return err;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* ---- trp_log_flush --------------------------------------------------------------------------- */

/* The record that trp_log_flush() waits for: a message to each logger holds one count of it,
 * released when the message is freed, handled or not. */
typedef struct flush {
    trpi_cond cond; /* guards all */
    uint32_t owners, open;
} flush;

/* Unlocks. */
static void
flush_unref_locked(flush *f)
{
    bool last = --f->owners == 0;

    pthread_mutex_unlock(&f->cond.lock);
    if (last) {
        trpi_cond_fini(&f->cond);
        trpi_free(f);
    }
}

static void
flush_passed(void *data, void *arg)
{
    flush *f = data;

    (void)arg;
    pthread_mutex_lock(&f->cond.lock);
    if (--f->open == 0) {
        trpi_cond_broadcast(&f->cond);
    }
    flush_unref_locked(f);
}

static bool
flush_is_done(void *arg)
{
    const flush *f = arg;

    return f->open == 0;
}

/* false: no memory. */
static bool
flush_send(trp_ctx *ctx, flush *f, trp_ref logger_ref)
{
    void *payload;
    trp_msg *msg = trpi_msg_make_empty(ctx->cache, &trpi_logger_flush_type,
                                       sizeof(trp_msg_priv_moved), &payload);

    if (msg == NULL) {
        return false;
    }
    *(trp_msg_priv_moved *)payload = (trp_msg_priv_moved){ f, sizeof *f, flush_passed, NULL };
    msg->priv_from_node_flags |= TRP_MSG_PRIV_OUT_OF_LINE;
    pthread_mutex_lock(&f->cond.lock);
    f->owners++;
    f->open++;
    pthread_mutex_unlock(&f->cond.lock);
    trpi_send(ctx, logger_ref, msg); /* behind all earlier lines */
    return true;
}

trp_err
trp_log_flush(trp_system *system, uint32_t timeout_ms)
{
    uint64_t end_ns;
    trpi_loggers *loggers;
    trp_err err = TRP_OK;
    trp_ctx *ctx;
    flush *f;

    if (!trpi_system_is_valid(system)) {
        return TRP_EINVAL;
    }
    if (trpi_in_behaviour(system)) {
        return TRP_ESTATE;
    }
    end_ns = trpi_world_mono_ns(system->world) + (uint64_t)timeout_ms * 1000000u;
    f = trpi_alloc(sizeof *f);
    if (f == NULL) {
        return TRP_ENOMEM;
    }
    trpi_cond_init(&f->cond);
    f->owners = 1;
    loggers = trpi_loggers_of(system);
    ctx = trpi_enter(system);
    for (uint32_t i = 0; i < atomic_load_explicit(&loggers->count, memory_order_acquire); i++) {
        err = flush_send(ctx, f, loggers->items[i].ref) ? err : TRP_ENOMEM;
    }
    trpi_leave(ctx);
    pthread_mutex_lock(&f->cond.lock);
    if (!trpi_cond_wait(&f->cond, system->sched, flush_is_done, f, end_ns)) {
        err = TRP_ETIMEDOUT;
    }
    flush_unref_locked(f);
    return err;
}
