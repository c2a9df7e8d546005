/* timers.c - named timers and the receive timeout of an actor.
 *
 * Why.     The message of a cancelled timer must not be delivered, not even when it is already
 *          queued.
 * Shape.   The wheel's thread sends the actor a tick {key, number}; the message itself stays with
 *          the timer. A tick delivers the message only if a timer of the actor has that number. A
 *          repeating timer is armed again when its tick is handled, against the planned time, so
 *          it neither drifts nor floods: a slow actor has one tick in its queue, and skips those
 *          that it is too late for. The receive timeout keeps one wheel timer armed and compares
 *          the clock when it fires.
 * Must hold.
 *   timers-T1  Numbers are never reused within an incarnation.
 *   timers-T2  The wheel holds no pointer into an actor: only slot, generation and number.
 * Cost.    Starting and cancelling is O(timers of this actor).
 * Tests.   tests/unit/actor/timers_test.c
 * Sources. MSG-16, MSG-20, SCH-01, SCH-13.
 */
#include "actor/kernel/misuse.h"
#include "actor/life/life.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/payload.h"

static const trp_ref nobody = TRP_REF_NONE;

typedef struct tick {
    uint64_t number;
} tick;

uint64_t
trp_now_ns(const trp_ctx *ctx)
{
    return trpi_world_mono_ns(ctx->system->world);
}

uint64_t
trp_now_ms(const trp_ctx *ctx)
{
    return trp_now_ns(ctx) / 1000000u;
}

/* ---- named timers ---------------------------------------------------------------------------- */

/* On the wheel's thread. a: slot and generation, b: number. */
static void
timer_fired(void *arg, uint64_t a, uint64_t b)
{
    trp_system *system = arg;
    trp_ctx *ctx = trpi_enter(system);
    trp_ref to = trpi_ref_local((uint32_t)a, (uint32_t)(a >> 32));
    tick what = { b };

    trpi_tell(ctx, to, nobody, &trpi_timer_type, &what, sizeof what);
    trpi_leave(ctx);
}

static trp_err
timer_arm(trp_ctx *ctx, trpi_named_timer *timer)
{
    trpi_timer what = { 0 };

    what.due_ns = timer->due_ns;
    what.fn = timer_fired;
    what.arg = ctx->system;
    what.a = (uint64_t)ctx->self.generation << 32 | ctx->self.slot;
    what.b = timer->number;
    return trpi_timer_start(ctx->system->sched, &what, &timer->id);
}

static void
timer_free(trp_ctx *ctx, trpi_named_timer *timer)
{
    if (timer->id != 0) {
        (void)trpi_timer_cancel(ctx->system->sched,
                                timer->id); /* a late tick finds no timer (timers-T1) */
    }
    trpi_msg_drop(timer->msg);
    trpi_free(timer);
}

static trp_err
timer_start(trp_ctx *ctx, uint64_t key, uint32_t delay_ms, uint32_t interval_ms,
            const trp_type *type, const void *payload, size_t bytes)
{
    trpi_extra *extra = trpi_extra_get(ctx->cell);
    trpi_named_timer *timer;
    trp_err err;

    bytes = (type->flags & TRP_TYPE_VARIABLE) == 0 ? type->bytes : bytes;
    if ((bytes > 0 && payload == NULL) || !trpi_payload_fits(type, bytes)) {
        return TRP_EINVAL;
    }
    if (type->number == 0) {
        return TRP_ENOTYPE;
    }
    timer = extra == NULL ? NULL : trpi_alloc(sizeof *timer);
    if (timer == NULL) {
        return TRP_ENOMEM;
    }
    timer->key = key;
    timer->interval_ms = interval_ms;
    timer->number = ++extra->timers_number;
    timer->due_ns = trp_now_ns(ctx) + (uint64_t)delay_ms * 1000000u;
    timer->msg = interval_ms == 0
                     ? trpi_timed_make(ctx, ctx->self, nobody, type, payload, bytes)
                     : trpi_msg_make(ctx->cache, ctx->self, nobody, type, payload, bytes);
    err = timer->msg == NULL ? TRP_ENOMEM : timer_arm(ctx, timer);
    if (err != TRP_OK) {
        timer_free(ctx, timer);
        return err;
    }
    trp_timer_cancel(ctx, key); /* only now: on an error the previous timer stays */
    timer->next = extra->timers;
    extra->timers = timer;
    if (trpi_log_debugs(ctx->system, TRP_DEBUG_FSM)) {
        trpi_log_about(ctx, ctx->self, TRP_LOG_DEBUG, TRP_OK,
                       "sets timer %llu type=%s delay-ms=%u interval-ms=%u",
                       (unsigned long long)key, type->name, delay_ms, interval_ms);
    }
    return TRP_OK;
}

trp_err
trp_timer_once(trp_ctx *ctx, uint64_t key, uint32_t delay_ms, const trp_type *type,
               const void *payload, size_t bytes)
{
    TRPI_USE(ctx);
    return type == NULL || delay_ms > trpi_delay_ms_max(ctx->system)
               ? TRP_EINVAL
               : timer_start(ctx, key, delay_ms, 0, type, payload, bytes);
}

trp_err
trp_timer_repeat(trp_ctx *ctx, uint64_t key, uint32_t delay_ms, uint32_t interval_ms,
                 const trp_type *type, const void *payload, size_t bytes)
{
    TRPI_USE(ctx);
    if (type == NULL || interval_ms < ctx->system->scheduling.tick_ms ||
        delay_ms > trpi_delay_ms_max(ctx->system) || interval_ms > trpi_delay_ms_max(ctx->system)) {
        return TRP_EINVAL;
    }
    return timer_start(ctx, key, delay_ms, interval_ms, type, payload, bytes);
}

void
trp_timer_cancel(trp_ctx *ctx, uint64_t key)
{
    trpi_named_timer **link;

    TRPI_USE(ctx);
    link = ctx->cell->extra == NULL ? NULL : &ctx->cell->extra->timers;
    while (link != NULL && *link != NULL) {
        trpi_named_timer *timer = *link;

        if (timer->key == key) {
            *link = timer->next;
            timer_free(ctx, timer);
            if (trpi_log_debugs(ctx->system, TRP_DEBUG_FSM)) {
                trpi_log_about(ctx, ctx->self, TRP_LOG_DEBUG, TRP_OK, "cancels timer %llu",
                               (unsigned long long)key);
            }
            return;
        }
        link = &timer->next;
    }
}

int
trp_timer_is_set(const trp_ctx *ctx, uint64_t key)
{
    TRPI_USE(ctx);
    const trpi_extra *extra = ctx->cell->extra;
    const trpi_named_timer *timer = extra == NULL ? NULL : extra->timers;
    while (timer != NULL && timer->key != key) {
        timer = timer->next;
    }
    return timer != NULL;
}

static trpi_named_timer **
timer_find(trpi_extra *extra, uint64_t number)
{
    trpi_named_timer **link = &extra->timers;

    while (*link != NULL && (*link)->number != number) {
        link = &(*link)->next;
    }
    return link;
}

/* Set the due time of the next tick: the first planned time that has not passed. */
static void
timer_plan(trpi_named_timer *timer, uint64_t now_ns)
{
    uint64_t interval_ns = (uint64_t)timer->interval_ms * 1000000u;

    timer->due_ns += interval_ns;
    if (timer->due_ns <= now_ns) {
        timer->due_ns += ((now_ns - timer->due_ns) / interval_ns + 1) * interval_ns;
    }
}

trp_err
trpi_timer_tick(trp_ctx *ctx, trpi_cell *cell, const trp_msg *msg)
{
    const tick *what = trp_msg_payload(msg);
    trpi_named_timer **link, *timer;
    trp_msg *show = NULL;

    if (trp_msg_bytes(msg) != sizeof *what || cell->extra == NULL) {
        return TRP_OK;
    }
    link = timer_find(cell->extra, what->number);
    timer = *link;
    if (timer == NULL) {
        return TRP_OK; /* cancelled while the tick was queued */
    }
    timer->id = 0; /* it has fired */
    if (timer->interval_ms == 0) {
        show = timer->msg;
        timer->msg = NULL;
        *link = timer->next;
        timer_free(ctx, timer);
    } else {
        trp_err err = trp_msg_dup(timer->msg, &show);

        if (err == TRP_OK) {
            timer_plan(timer, trp_now_ns(ctx));
            err = timer_arm(ctx, timer);
        }
        if (err != TRP_OK &&
            err != TRP_ECLOSED) { /* TRP_ECLOSED: the system ends, and its timers with it */
            trpi_msg_drop(show);
            return err;
        }
    }
    trpi_run_receive(ctx, cell, show);
    trpi_msg_drop(show);
    return TRP_OK;
}

void
trpi_timers_drop(trp_ctx *ctx, trpi_cell *cell)
{
    trpi_extra *extra = cell->extra;
    trpi_named_timer *next;

    for (trpi_named_timer *timer = extra->timers; timer != NULL; timer = next) {
        next = timer->next;
        timer_free(ctx, timer);
    }
    extra->timers = NULL;
    extra->receive_timeout_ms = 0;
    if (extra->receive_timeout_id != 0) {
        (void)trpi_timer_cancel(ctx->system->sched, extra->receive_timeout_id);
        extra->receive_timeout_id = 0;
    }
    cell->marks &= (uint8_t)~TRPI_MARK_TIMEOUT;
}

/* ---- receive timeout ------------------------------------------------------------------------- */

static void
idle_fired(void *arg, uint64_t a, uint64_t b)
{
    trp_ctx *ctx = trpi_enter(arg);

    trpi_sys_tell(ctx, (uint32_t)a, (uint32_t)(a >> 32), TRPI_SYS_IDLE, 0, nobody, b, NULL);
    trpi_leave(ctx);
}

/* Arm the timer; out of memory, the timeout is off until the next message. */
static void
idle_arm(trp_ctx *ctx, trpi_extra *extra, uint64_t delay_ms)
{
    uint64_t name = (uint64_t)ctx->self.generation << 32 | ctx->self.slot;

    if (trpi_timer_add(ctx->system->sched, delay_ms, idle_fired, ctx->system, name,
                       ++extra->timers_number, &extra->receive_timeout_id) != TRP_OK) {
        extra->receive_timeout_id = 0;
    } else {
        extra->receive_timeout_number = extra->timers_number;
    }
}

void
trp_receive_timeout_set(trp_ctx *ctx, uint32_t ms)
{
    trpi_extra *extra;

    TRPI_USE(ctx);
    extra = ms == 0 ? ctx->cell->extra : trpi_extra_get(ctx->cell);
    if (extra == NULL) {
        if (ms != 0) {
            trpi_life_throw(ctx, TRP_ENOMEM, "out of memory for a receive timeout");
        }
        return;
    }
    if (extra->receive_timeout_id != 0) {
        (void)trpi_timer_cancel(ctx->system->sched, extra->receive_timeout_id);
        extra->receive_timeout_id = 0;
    }
    extra->receive_timeout_ms = ms;
    if (ms == 0) {
        ctx->cell->marks &= (uint8_t)~TRPI_MARK_TIMEOUT;
        return;
    }
    ctx->cell->marks |= TRPI_MARK_TIMEOUT;
    extra->touched_ms = trp_now_ms(ctx);
    idle_arm(ctx, extra, ms);
}

void
trpi_life_touched(trp_ctx *ctx, trpi_cell *cell)
{
    trpi_extra *extra = cell->extra;

    if (extra != NULL && extra->receive_timeout_ms != 0) {
        extra->touched_ms = trp_now_ms(ctx);
        if (extra->receive_timeout_id == 0) {
            idle_arm(ctx, extra, extra->receive_timeout_ms);
        }
    }
}

void
trpi_receive_timeout_check(trp_ctx *ctx, trpi_cell *cell, uint64_t number)
{
    trpi_extra *extra = cell->extra;
    uint64_t idle_ms;

    if (extra == NULL || extra->receive_timeout_id == 0 ||
        extra->receive_timeout_number != number) {
        return; /* set again or switched off meanwhile */
    }
    extra->receive_timeout_id = 0;
    idle_ms = trp_now_ms(ctx) - extra->touched_ms;
    if (idle_ms < extra->receive_timeout_ms) {
        idle_arm(ctx, extra, extra->receive_timeout_ms - idle_ms);
    } else if (cell->suspended > 0 || cell->life != TRPI_LIFE_RUNNING) {
        /* a suspended actor could not have handled a message */
        idle_arm(ctx, extra, extra->receive_timeout_ms);
    } else {
        trpi_tell(ctx, ctx->self, nobody, &trp_receive_timeout_type, NULL, 0);
    }
}

void
trpi_receive_timeout_deliver(trp_ctx *ctx, trpi_cell *cell, trp_msg *msg)
{
    if ((cell->marks & TRPI_MARK_TIMEOUT) != 0) {
        trpi_run_receive(ctx, cell, msg);
        if (cell->life == TRPI_LIFE_RUNNING && (cell->marks & TRPI_MARK_TIMEOUT) != 0) {
            trpi_life_touched(ctx, cell); /* repeats */
        }
    }
}
