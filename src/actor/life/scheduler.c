/* scheduler.c - schedule messages and functions for later.
 *
 * Shape.   Each schedule is a timer of the wheel (sched/timer.c) that owns a `scheduled`: a
 *          prepared message, or a function, which an actor of its own runs on its dispatcher.
 * Must hold.
 *   scheduler-D1  A scheduled function runs, if need be early, at the end of the system, unless it
 *       was cancelled or stop_ms was over (SCH-05).
 *   scheduler-D2  A schedule that was reported as made before the close is handled by the close.
 * Tests.   tests/unit/actor/scheduler_test.c
 * Sources. SCH-01..10, TRP-12, -15; DISP-14.
 */
#include <troupe/scheduler.h>

#include <stdio.h>
#include <string.h>

#include "actor/life/life.h"
#include "base/alloc.h"
#include "base/payload.h"

#define DISPATCHER_BYTES 64u

typedef struct call {
    void (*fn)(void *arg);
    void *arg;
} call;

typedef struct scheduled {
    trp_system *system;
    trp_ref to;
    trp_msg *msg; /* NULL: a function */
    call what;
    char dispatcher[DISPATCHER_BYTES]; /* "": default */
} scheduled;

/* ---- functions ------------------------------------------------------------------------------- */

/* The actor of one function ends after the function. */
static trp_err
call_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    const call *what = trp_msg_payload(args);

    (void)state;
    what->fn(what->arg);
    trp_stop(ctx, trp_self(ctx));
    return TRP_OK;
}

static trp_err
call_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    return TRP_OK;
}

static const trp_behaviour call_behaviour = { .size = sizeof(trp_behaviour),
                                              .name = "scheduled function",
                                              .version = 1,
                                              .receive = call_receive,
                                              .pre_start = call_start };

static void
function_due(scheduled *s)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    trp_err err;

    options.dispatcher = s->dispatcher[0] == 0 ? "default" : s->dispatcher;
    options.args_type = &trp_bytes_type;
    options.args = &s->what;
    options.args_bytes = sizeof s->what;
    err = trpi_spawn_outside(s->system, &s->system->life->system, "default", &call_behaviour,
                             &options, &ref);
    if (err == TRP_ECLOSED || err == TRP_ENOMEM || err == TRP_ELIMIT) {
        /* scheduler-D1: no actor could be made, so on the timer's thread */
        s->what.fn(s->what.arg);
    } else if (err != TRP_OK) {
        trpi_log(s->system, TRP_LOG_ERROR, "scheduler",
                 "a scheduled function cannot run on dispatcher %s: %s", options.dispatcher,
                 trp_strerror(err));
    }
}

/* ---- on the timer's thread ------------------------------------------------------------------- */

/* A repeated schedule is due. true: call again. */
static bool
schedule_repeats(void *arg, uint64_t a, uint64_t b)
{
    scheduled *s = arg;
    trp_msg *copy = NULL;
    bool lives = true;
    trp_ctx *ctx;

    (void)a;
    (void)b;
    if (s->msg == NULL) {
        function_due(s);
        return true;
    }
    ctx = trpi_enter(s->system);
    if (trp_msg_dup(s->msg, &copy) == TRP_OK) { /* out of memory: this one is skipped */
        trpi_send(ctx, s->to, copy);
    }
    if (s->to.node == TRPI_NODE_SELF) {
        /* after the message was sent, as in Akka (SCH-06) */
        lives = trpi_cell_peek(ctx, s->to) != NULL;
    }
    trpi_leave(ctx);
    return lives;
}

static void
schedule_once(void *arg, uint64_t a, uint64_t b)
{
    scheduled *s = arg;

    (void)a;
    (void)b;
    if (s->msg == NULL) {
        function_due(s);
    } else {
        trp_ctx *ctx = trpi_enter(s->system);

        trpi_send(ctx, s->to, s->msg);
        s->msg = NULL;
        trpi_leave(ctx);
    }
}

static void
scheduled_free(void *arg, uint64_t a, uint64_t b)
{
    scheduled *s = arg;

    (void)a;
    (void)b;
    if (s != NULL) {
        trpi_msg_drop(s->msg);
        trpi_free(s);
    }
}

/* ---- scheduling ------------------------------------------------------------------------------ */

/* Start the timer. Always takes s; NULL: out of memory. */
static trp_err
schedule_start(scheduled *s, trp_system *system, uint64_t delay_ms, uint64_t interval_ms,
               trp_schedule *ret_schedule)
{
    trp_schedule handle = TRP_SCHEDULE_NONE;
    trpi_timer what = { 0 };
    trp_err err;

    if (s == NULL) {
        return TRP_ENOMEM;
    }
    what.due_ns = trpi_world_mono_ns(system->world) + delay_ms * 1000000u;
    what.interval_ns = interval_ms * 1000000u;
    what.fn = interval_ms == 0 ? schedule_once : NULL;
    what.again = interval_ms == 0 ? NULL : schedule_repeats;
    what.drop = scheduled_free;
    what.arg = s;
    err = trpi_timer_start(system->sched, &what, &handle.priv_id);
    if (err != TRP_OK) {
        scheduled_free(s, 0, 0);
        return err;
    }
    /* scheduler-D2: the scheduler was closed meanwhile; if the cancel fails, the close or the timer
     * has handled it */
    if (atomic_load_explicit(&system->life->scheduler_closed, memory_order_acquire) &&
        trpi_timer_cancel(system->sched, handle.priv_id)) {
        return TRP_ECLOSED;
    }
    if (ret_schedule != NULL) {
        *ret_schedule = handle;
    }
    return TRP_OK;
}

static bool
times_are_valid(const trp_system *system, uint64_t delay_ms, uint64_t interval_ms)
{
    uint64_t max = trpi_delay_ms_max(system);

    return delay_ms <= max &&
           (interval_ms == 0 || (interval_ms >= system->scheduling.tick_ms && interval_ms <= max));
}

static trp_err
schedule_msg(trp_system *system, uint64_t delay_ms, uint64_t interval_ms, trp_ref to,
             trp_ref sender, const trp_type *type, const void *payload, size_t bytes,
             trp_schedule *ret_schedule)
{
    scheduled *s;
    trp_ctx *ctx;

    if (!trpi_system_is_valid(system) || type == NULL || trp_ref_is_none(to) ||
        !times_are_valid(system, delay_ms, interval_ms)) {
        return TRP_EINVAL;
    }
    bytes = (type->flags & TRP_TYPE_VARIABLE) == 0 ? type->bytes : bytes;
    if ((bytes > 0 && payload == NULL) || !trpi_payload_fits(type, bytes)) {
        return TRP_EINVAL;
    }
    if (type->number == 0) {
        return TRP_ENOTYPE;
    }
    s = trpi_alloc(sizeof *s);
    if (s != NULL) {
        ctx = trpi_enter(system);
        s->system = system;
        s->to = to;
        s->msg = interval_ms == 0 ? trpi_timed_make(ctx, to, sender, type, payload, bytes)
                                  : trpi_msg_make(ctx->cache, to, sender, type, payload, bytes);
        trpi_leave(ctx);
        if (s->msg == NULL) {
            trpi_free(s);
            s = NULL;
        }
    }
    return schedule_start(s, system, delay_ms, interval_ms, ret_schedule);
}

trp_err
trp_schedule_once(trp_system *system, uint64_t delay_ms, trp_ref to, trp_ref sender,
                  const trp_type *type, const void *payload, size_t bytes,
                  trp_schedule *ret_schedule)
{
    return schedule_msg(system, delay_ms, 0, to, sender, type, payload, bytes, ret_schedule);
}

trp_err
trp_schedule_repeat(trp_system *system, uint64_t delay_ms, uint64_t interval_ms, trp_ref to,
                    trp_ref sender, const trp_type *type, const void *payload, size_t bytes,
                    trp_schedule *ret_schedule)
{
    return interval_ms == 0 ? TRP_EINVAL
                            : schedule_msg(system, delay_ms, interval_ms, to, sender, type, payload,
                                           bytes, ret_schedule);
}

trp_err
trp_schedule_run(trp_system *system, uint64_t delay_ms, uint64_t interval_ms,
                 const char *dispatcher, void (*fn)(void *arg), void *arg,
                 trp_schedule *ret_schedule)
{
    scheduled *s;

    if (!trpi_system_is_valid(system) || fn == NULL ||
        !times_are_valid(system, delay_ms, interval_ms) ||
        (dispatcher != NULL && strnlen(dispatcher, DISPATCHER_BYTES) == DISPATCHER_BYTES)) {
        return TRP_EINVAL;
    }
    s = trpi_alloc(sizeof *s);
    if (s != NULL) {
        s->system = system;
        s->what.fn = fn;
        s->what.arg = arg;
        (void)snprintf(s->dispatcher, sizeof s->dispatcher, "%s",
                       dispatcher == NULL ? "" : dispatcher);
    }
    return schedule_start(s, system, delay_ms, interval_ms, ret_schedule);
}

int
trp_schedule_cancel(trp_system *system, trp_schedule *schedule)
{
    return trpi_system_is_valid(system) && schedule != NULL && schedule->priv_id != 0 &&
           trpi_timer_cancel_note(system->sched, schedule->priv_id, &schedule->priv_cancelled);
}

int
trp_schedule_is_cancelled(const trp_schedule *schedule)
{
    return schedule != NULL && __atomic_load_n(&schedule->priv_cancelled, __ATOMIC_RELAXED) != 0;
}

double
trp_scheduler_frequency_max(const trp_system *system)
{
    return trpi_system_is_valid(system) ? 1000.0 / (double)system->scheduling.tick_ms : 0;
}

/* ---- the end --------------------------------------------------------------------------------- */

struct closing {
    trp_system *system;
    uint64_t deadline_ns;
};

static void
close_one(void *user, void *arg)
{
    const struct closing *closing = user;
    scheduled *s = arg;

    if (s->msg == NULL && trpi_world_mono_ns(closing->system->world) < closing->deadline_ns) {
        s->what.fn(s->what.arg); /* scheduler-D1; the receiver of a scheduled message has ended */
    }
}

void
trpi_schedules_close(trp_system *system)
{
    struct closing closing = { system, 0 };

    closing.deadline_ns =
        trpi_world_mono_ns(system->world) + (uint64_t)system->scheduling.stop_ms * 1000000u;
    atomic_store_explicit(&system->life->scheduler_closed, true, memory_order_release);
    trpi_timers_take(system->sched, scheduled_free, close_one, &closing);
}
