/* breaker.c - a circuit breaker: a small state machine, and the shell that drives it.
 *
 * Shape.   closed --failures_max in a row--> open --reset_timeout--> half-open --success--> closed
 *                                             ^-------------failure-----'
 *          trpi_breaker_step() decides; the shell holds the lock, the timer and the listeners.
 * Must hold.
 *   breaker-B1  Half-open lets one call through, until that has ended.
 *   breaker-B2  A call of an earlier epoch (each change of state is one) changes nothing.
 *   breaker-B3  Listeners are called without the lock.
 *   breaker-B4  A call that has ended leaves no alarm behind: else alarms would accumulate for
 *       call_timeout_ms.
 * Tests.   tests/unit/pattern/breaker_test.c
 * Sources. CB-01 to -08, TRP-11
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include <troupe/dispatcher.h>
#include <troupe/system.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"
#include "base/sized.h"
#include "pattern/breaker.h"
#include "pattern/future.h"

#define NS_PER_MS 1000000u

/* ---- the machine ----------------------------------------------------------------------------- */

static void
state_enter(trpi_breaker_core *core, trp_breaker_state state)
{
    core->state = state;
    core->epoch++;
    core->failures = 0;
    core->probing = false;
}

bool
trpi_breaker_step(trpi_breaker_core *core, uint64_t now_ns, trpi_breaker_event event,
                  uint64_t epoch)
{
    switch (event) {
    case TRPI_BREAKER_ASKED:
        if (core->state == TRP_BREAKER_HALF_OPEN && !core->probing) {
            core->probing = true; /* breaker-B1 */
            return true;
        }
        return core->state == TRP_BREAKER_CLOSED;
    case TRPI_BREAKER_WORKED:
        if (epoch != core->epoch) { /* breaker-B2 */
            return false;
        }
        if (core->state == TRP_BREAKER_HALF_OPEN) {
            state_enter(core, TRP_BREAKER_CLOSED);
            return true;
        }
        core->failures = 0;
        return false;
    case TRPI_BREAKER_FAILED:
        if (epoch != core->epoch || core->state == TRP_BREAKER_OPEN) { /* breaker-B2 */
            return false;
        }
        core->failures++;
        if (core->state == TRP_BREAKER_CLOSED && core->failures < core->failures_max) {
            return false;
        }
        state_enter(core, TRP_BREAKER_OPEN);
        core->opened_ns = now_ns;
        return true;
    case TRPI_BREAKER_TIME:
        if (core->state != TRP_BREAKER_OPEN || now_ns - core->opened_ns < core->reset_ns) {
            return false;
        }
        state_enter(core, TRP_BREAKER_HALF_OPEN);
        return true;
    }
    trpi_assert(false);
    return false;
}

/* ---- the shell ------------------------------------------------------------------------------- */

typedef struct listener {
    trp_breaker_state state;
    trp_breaker_fn fn;
    void *arg;
} listener;

struct trp_breaker {
    _Atomic uint32_t refs;
    trp_system *system;
    uint32_t call_timeout_ms;
    char dispatcher[TRP_DISPATCHER_ID_BYTES_MAX + 1]; /* "": none */
    pthread_mutex_t lock;                             /* guards the rest */
    trpi_breaker_core core;
    uint32_t listeners_count; /* only grows */
    listener listeners[TRP_BREAKER_LISTENERS_MAX];
};

typedef struct notice {
    trp_breaker_fn fn;
    void *arg;
    trp_breaker_state state;
} notice;

static void
notice_run(void *arg)
{
    notice n = *(notice *)arg;

    trpi_free(arg);
    n.fn(n.arg, n.state);
}

static void
listener_call(trp_breaker *breaker, const listener *l)
{
    notice *n = breaker->dispatcher[0] == '\0' ? NULL : trpi_alloc(sizeof *n);

    if (n != NULL) {
        *n = (notice){ l->fn, l->arg, l->state };
        if (trp_dispatcher_execute(breaker->system, breaker->dispatcher, notice_run, n) == TRP_OK) {
            return;
        }
        trpi_free(n);
    }
    l->fn(l->arg, l->state);
}

static void reset_arm(trp_breaker *breaker);

/* Notify the listeners of a state that was entered (breaker-B3). */
static void
listeners_notify(trp_breaker *breaker, trp_breaker_state state)
{
    uint32_t count;

    if (state == TRP_BREAKER_OPEN) {
        reset_arm(breaker);
    }
    pthread_mutex_lock(&breaker->lock);
    count = breaker->listeners_count;
    pthread_mutex_unlock(&breaker->lock);
    for (uint32_t i = 0; i < count; i++) {
        if (breaker->listeners[i].state == state) {
            listener_call(breaker, &breaker->listeners[i]);
        }
    }
}

/* Apply an event; TIME first, so that a late timer delays no call. */
static bool
event_apply(trp_breaker *breaker, trpi_breaker_event event, uint64_t epoch,
            trp_breaker_call *ret_call)
{
    uint64_t now_ns = trpi_world_mono_ns(trpi_system_world(breaker->system));
    bool half_open, did;
    trp_breaker_state state;

    pthread_mutex_lock(&breaker->lock);
    half_open = trpi_breaker_step(&breaker->core, now_ns, TRPI_BREAKER_TIME, 0);
    did = event != TRPI_BREAKER_TIME && trpi_breaker_step(&breaker->core, now_ns, event, epoch);
    state = breaker->core.state;
    if (ret_call != NULL) {
        *ret_call = (trp_breaker_call){ now_ns, breaker->core.epoch };
    }
    pthread_mutex_unlock(&breaker->lock);
    if (half_open) {
        listeners_notify(breaker, TRP_BREAKER_HALF_OPEN);
    }
    if (did && event != TRPI_BREAKER_ASKED) {
        listeners_notify(breaker, state);
    }
    return did;
}

static void
reset_rings(void *arg, const trp_outcome *outcome)
{
    (void)outcome;
    (void)event_apply(arg, TRPI_BREAKER_TIME, 0, NULL);
}

static void
reset_release(void *arg)
{
    trp_breaker_unref(arg);
}

/* Set a timer that changes the state when it is due even without a call. Without memory for it the
 * next call looks at the clock, so only a notice is lost. */
static void
reset_arm(trp_breaker *breaker)
{
    uint64_t delay_ms = breaker->core.reset_ns / NS_PER_MS; /* constant */
    trp_promise *alarm;

    if (trp_promise_new(breaker->system, NULL, &alarm) != TRP_OK) {
        return;
    }
    if (trp_future_on_success(trp_promise_future(alarm), reset_rings, trp_breaker_ref(breaker),
                              reset_release) != TRP_OK) {
        trp_breaker_unref(breaker);
    } else {
        /* the alarm was not set: releasing it releases the breaker */
        (void)trpi_promise_alarm(alarm, delay_ms, TRP_OK, NULL);
    }
    trp_promise_unref(alarm);
}

trp_err
trp_breaker_new(trp_system *system, const trp_breaker_options *options, trp_breaker **ret_breaker)
{
    trp_breaker_options given = TRP_BREAKER_OPTIONS_INIT;
    trp_dispatcher_info info = { sizeof info, 0, 0, 0, 0, 0, 0 };
    trp_breaker *breaker;

    if (system == NULL || ret_breaker == NULL || !TRPI_SIZED_COPY(options, &given, dispatcher)) {
        return TRP_EINVAL;
    }
    if (given.dispatcher != NULL &&
        trp_dispatcher_find(system, given.dispatcher, &info) != TRP_OK) {
        return TRP_ENOENT;
    }
    breaker = trpi_alloc(sizeof *breaker);
    if (breaker == NULL) {
        return TRP_ENOMEM;
    }
    atomic_init(&breaker->refs, 1);
    breaker->system = system;
    breaker->call_timeout_ms =
        given.call_timeout_ms != 0 ? given.call_timeout_ms : TRP_BREAKER_CALL_DEFAULT_MS;
    if (given.dispatcher != NULL) { /* it is registered, so it fits */
        (void)snprintf(breaker->dispatcher, sizeof breaker->dispatcher, "%s", given.dispatcher);
    }
    pthread_mutex_init(&breaker->lock, NULL);
    breaker->core.state = TRP_BREAKER_CLOSED;
    breaker->core.failures_max =
        given.failures_max != 0 ? given.failures_max : TRP_BREAKER_FAILURES_DEFAULT;
    breaker->core.reset_ns =
        (uint64_t)(given.reset_timeout_ms != 0 ? given.reset_timeout_ms
                                               : TRP_BREAKER_RESET_DEFAULT_MS) *
        NS_PER_MS;
    *ret_breaker = breaker;
    return TRP_OK;
}

trp_breaker *
trp_breaker_ref(trp_breaker *breaker)
{
    (void)atomic_fetch_add_explicit(&breaker->refs, 1, memory_order_relaxed);
    return breaker;
}

void
trp_breaker_unref(trp_breaker *breaker)
{
    if (breaker == NULL ||
        atomic_fetch_sub_explicit(&breaker->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    trpi_mutex_destroy(&breaker->lock);
    trpi_free(breaker);
}

trp_err
trp_breaker_on(trp_breaker *breaker, trp_breaker_state state, trp_breaker_fn fn, void *arg)
{
    trp_err err = TRP_OK;

    if (breaker == NULL || fn == NULL || state < TRP_BREAKER_CLOSED ||
        state > TRP_BREAKER_HALF_OPEN) {
        return TRP_EINVAL;
    }
    pthread_mutex_lock(&breaker->lock);
    if (breaker->listeners_count == TRP_BREAKER_LISTENERS_MAX) {
        err = TRP_ELIMIT;
    } else {
        breaker->listeners[breaker->listeners_count++] = (listener){ state, fn, arg };
    }
    pthread_mutex_unlock(&breaker->lock);
    return err;
}

trp_breaker_state
trp_breaker_state_get(trp_breaker *breaker)
{
    trp_breaker_state state;

    (void)event_apply(breaker, TRPI_BREAKER_TIME, 0, NULL);
    pthread_mutex_lock(&breaker->lock);
    state = breaker->core.state;
    pthread_mutex_unlock(&breaker->lock);
    return state;
}

/* ---- calls ----------------------------------------------------------------------------------- */

trp_err
trp_breaker_begin(trp_breaker *breaker, trp_breaker_call *ret_call)
{
    if (breaker == NULL || ret_call == NULL) {
        return TRP_EINVAL;
    }
    return event_apply(breaker, TRPI_BREAKER_ASKED, 0, ret_call) ? TRP_OK : TRP_EBREAKER;
}

void
trp_breaker_end(trp_breaker *breaker, trp_breaker_call call, trp_err err)
{
    uint64_t now_ns = trpi_world_mono_ns(trpi_system_world(breaker->system));
    bool late = now_ns - call.priv_began_ns > (uint64_t)breaker->call_timeout_ms * NS_PER_MS;

    (void)event_apply(breaker, err == TRP_OK && !late ? TRPI_BREAKER_WORKED : TRPI_BREAKER_FAILED,
                      call.priv_epoch, NULL);
}

trp_err
trp_breaker_sync(trp_breaker *breaker, trp_breaker_body_fn body, void *arg)
{
    trp_breaker_call call;
    trp_err err = body == NULL ? TRP_EINVAL : trp_breaker_begin(breaker, &call);

    if (err == TRP_OK) {
        err = body(arg);
        trp_breaker_end(breaker, call, err);
    }
    return err;
}

typedef struct protected_call {
    trp_breaker *breaker; /* counted */
    trp_breaker_call call;
    trpi_alarm_id late; /* breaker-B4 */
} protected_call;

/* The call has its own outcome, or is late. Only the first of both is reported: the second is stale
 * (breaker-B2), or another result of a call that has failed. */
static void
call_ended(void *arg, const trp_outcome *outcome)
{
    protected_call *p = arg;

    trpi_alarm_cancel(&p->late);
    trp_breaker_end(p->breaker, p->call, outcome->err);
}

static void
call_release(void *arg)
{
    protected_call *p = arg;

    trp_breaker_unref(p->breaker);
    trpi_free(p);
}

static trp_err
call_begin(trp_breaker *breaker, trp_breaker_begin_fn begin, void *arg, trp_promise *result)
{
    protected_call *p = trpi_alloc(sizeof *p);
    trp_future *body = NULL;
    trp_err err;

    if (p == NULL) {
        return TRP_ENOMEM;
    }
    err = trp_breaker_begin(breaker, &p->call);
    if (err != TRP_OK) {
        trpi_free(p);
        (void)trp_promise_fail(result, err, NULL);
        return TRP_OK;
    }
    p->breaker = trp_breaker_ref(breaker);
    err = trp_future_on_complete(trp_promise_future(result), call_ended, p, call_release);
    if (err != TRP_OK) { /* no call is made: it has not failed either, but must end */
        trp_breaker_end(breaker, p->call, TRP_OK);
        call_release(p);
        return err;
    }
    err = begin(arg, &body); /* CB-08: only now */
    if (err == TRP_OK) {
        err = body == NULL
                  ? TRP_EINVAL
                  : trpi_promise_alarm(result, breaker->call_timeout_ms, TRP_ETIMEDOUT, &p->late);
        /* from here p may be freed: the first outcome owns it */
        err = err == TRP_OK ? trp_promise_follow(result, body) : err;
        trp_future_unref(body);
    }
    if (err != TRP_OK) {
        (void)trp_promise_fail(result, err, NULL);
    }
    return TRP_OK;
}

trp_err
trp_breaker_async(trp_breaker *breaker, trp_breaker_begin_fn begin, void *arg,
                  trp_future **ret_future)
{
    trp_promise *result;
    trp_err err;

    if (breaker == NULL || begin == NULL || ret_future == NULL) {
        return TRP_EINVAL;
    }
    err = trp_promise_new(breaker->system, NULL, &result);
    if (err != TRP_OK) {
        return err;
    }
    err = call_begin(breaker, begin, arg, result);
    if (err == TRP_OK) {
        trpi_promise_give(result, ret_future);
    }
    trp_promise_unref(result);
    return err;
}
