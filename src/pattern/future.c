/* future.c - promise and future: one outcome, and the callbacks that wait for it.
 *
 * Why.     Code that is no actor wants to go on when an answer is there, without a thread that
 *          waits.
 * Shape.   future: head --> callback --> callback --> NULL      (pushed by CAS)
 *                  head == SETTLED: the outcome is there
 *          settle:  claim, write outcome, head := SETTLED, run the callbacks of the list
 *          A callback of the user is a job of a dispatcher. Until it has run, it hangs in the list
 *          of the system's executor, too, so that a system that ends forgets none.
 * Must hold.
 *   future-F1  A future has one outcome; a thread that reads SETTLED (acquire) sees it whole.
 *   future-F2  Each callback runs once, after the outcome, whenever it was registered.
 *   future-F3  The system is not touched after the executor was closed, so futures outlive their
 *       system.
 *   future-F4  Dropping the last count of an open promise settles it: no callback waits for ever.
 * Threads. any. Lock order: the executor's lock is a leaf, and not held while a callback runs.
 * Tests.   tests/unit/pattern/future_test.c
 * Sources. FUT-1 to -9, MSG-5
 */
#include "pattern/executor.h"

#include <string.h>

#include <troupe/dispatcher.h>
#include <troupe/system.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "sched/sched.h"

struct trp_future {
    _Atomic uint32_t refs;    /* references to the future; all those to the promise count as one */
    _Atomic uint32_t writers; /* references to the promise */
    _Atomic bool claimed;     /* a thread writes the outcome, or has written it */
    trpi_executor *runs;      /* counted */
    const char *dispatcher;   /* the executor's */
    trpi_outcome *outcome;    /* written by the claimer, before SETTLED */
    _Atomic(trpi_callback *) head;
};

struct trp_promise {
    trp_future future; /* the same object: its type alone decides what a holder may do */
};

static trpi_callback settled_mark;
#define SETTLED (&settled_mark)

/* The outcome of a promise when there was no memory for another: static. */
static trpi_outcome no_memory = {
    1, 0, NULL, NULL, { TRP_ENOMEM, 0, "out of memory", NULL, NULL, 0 }
};

/* ---- callbacks ------------------------------------------------------------------------------- */

static void
callback_call(void *arg)
{
    trpi_callback *callback = arg;

    callback->run(callback, callback->source->outcome);
}

static void
callback_run(trpi_callback *callback)
{
    trp_future *source = callback->source;
    trpi_trail *trail = callback->trail; /* run frees the callback */

    if (trail != NULL && callback->at_once && trpi_executor_enter(source->runs)) {
        trpi_trail_run(trpi_executor_system(source->runs), trail, callback_call, callback);
        trpi_executor_leave(source->runs);
    } else { /* of a program: it may block, and is a job */
        trpi_trail_run(NULL, trail, callback_call, callback);
    }
    trpi_trail_free(trail);
    trp_future_unref(source);
}

void
trpi_callback_run_pending(trpi_callback *callback)
{
    trpi_executor_pending_remove(callback->source->runs, callback);
    callback_run(callback);
}

static void
callback_job(void *arg)
{
    trpi_callback_run_pending(arg);
}

/* Run a callback on this thread. One callback settles the next promise, and so on, perhaps a
 * million deep: callbacks that become ready while one runs wait for its return, so the stack stays
 * flat. */
static void
callback_here(trpi_callback *callback)
{
    static _Thread_local struct {
        bool running;
        trpi_callback *first, **last;
    } here;

    callback->next = NULL;
    if (here.running) {
        *here.last = callback;
        here.last = &callback->next;
        return;
    }
    here.running = true;
    here.first = callback;
    here.last = &callback->next;
    while (here.first != NULL) {
        callback = here.first;
        here.first = callback->next;
        if (here.first == NULL) {
            here.last = &here.first;
        }
        callback_run(callback);
    }
    here.running = false;
}

/* Run or schedule a callback whose outcome is there (future-F2). */
static void
callback_ready(trp_future *future, trpi_callback *callback)
{
    trpi_executor *runs = future->runs;

    callback->source = trp_future_ref(future);
    if (callback->at_once || !trpi_executor_enter(runs)) {
        callback_here(callback);
        return;
    }
    trpi_executor_pending_add(runs, callback);
    if (trp_dispatcher_execute(trpi_executor_system(runs), future->dispatcher, callback_job,
                               callback) !=
        TRP_OK) { /* no memory, or the threads end: run it here */
        trpi_executor_pending_remove(runs, callback);
        callback_here(callback);
    }
    trpi_executor_leave(runs);
}

void
trpi_future_then(trp_future *future, trpi_callback *callback)
{
    trpi_callback *head = atomic_load_explicit(&future->head, memory_order_acquire);

    callback->trail = trpi_trail_keep();
    do {
        if (head == SETTLED) { /* pair: the exchange of settle */
            callback_ready(future, callback);
            return;
        }
        callback->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&future->head, &head, callback,
                                                    memory_order_acq_rel, memory_order_acquire));
}

bool
trpi_promise_settle(trp_promise *promise, trpi_outcome *outcome)
{
    trp_future *future = &promise->future;
    trpi_callback *list, *in_order = NULL;

    if (atomic_exchange_explicit(&future->claimed, true, memory_order_relaxed)) { /* future-F1 */
        trpi_outcome_unref(outcome);
        return false;
    }
    future->outcome = outcome != NULL ? outcome : trpi_outcome_ref(&no_memory);
    (void)trp_future_ref(future); /* a callback may drop the last count */
    list = atomic_exchange_explicit(&future->head, SETTLED, memory_order_acq_rel); /* future-F1 */
    while (list != NULL) {
        trpi_callback *next = list->next;

        list->next = in_order;
        in_order = list;
        list = next;
    }
    while (in_order != NULL) {
        trpi_callback *next = in_order->next;

        callback_ready(future, in_order);
        in_order = next;
    }
    trp_future_unref(future);
    return true;
}

/* ---- promises -------------------------------------------------------------------------------- */

static trp_err
promise_make(trpi_executor *runs, const char *dispatcher, trp_promise **ret_promise)
{
    trp_promise *promise = trpi_alloc(sizeof *promise);

    if (promise == NULL) {
        return TRP_ENOMEM;
    }
    promise->future.runs = trpi_executor_ref(runs);
    promise->future.dispatcher = dispatcher;
    atomic_init(&promise->future.refs, 1);
    atomic_init(&promise->future.writers, 1);
    *ret_promise = promise;
    return TRP_OK;
}

trp_err
trpi_promise_like(const trp_future *model, trp_promise **ret_promise)
{
    return promise_make(model->runs, model->dispatcher, ret_promise);
}

void
trpi_promise_give(trp_promise *promise, trp_future **ret_future)
{
    *ret_future = trp_future_ref(&promise->future);
}

trp_err
trp_promise_new(trp_system *system, const char *dispatcher, trp_promise **ret_promise)
{
    trpi_executor *runs;
    const char *id;
    trp_err err;

    if (system == NULL || ret_promise == NULL) {
        return TRP_EINVAL;
    }
    err = trpi_executor_get(system, dispatcher, &runs, &id);
    return err == TRP_OK ? promise_make(runs, id, ret_promise) : err;
}

trp_err
trpi_promise_alarm(trp_promise *promise, uint64_t delay_ms, trp_err with, trpi_alarm_id *ret_id)
{
    return trpi_executor_alarm(promise->future.runs, promise, delay_ms, with, ret_id);
}

trp_future *
trp_promise_future(trp_promise *promise)
{
    return &promise->future;
}

trp_promise *
trp_promise_ref(trp_promise *promise)
{
    (void)atomic_fetch_add_explicit(&promise->future.writers, 1, memory_order_relaxed);
    return promise;
}

void
trp_promise_unref(trp_promise *promise)
{
    if (promise == NULL ||
        atomic_fetch_sub_explicit(&promise->future.writers, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (!atomic_load_explicit(&promise->future.claimed, memory_order_relaxed)) { /* future-F4 */
        (void)trpi_promise_settle(promise,
                                  trpi_outcome_failure(TRP_ECANCELED, "the promise was given up"));
    }
    trp_future_unref(&promise->future);
}

trp_err
trp_promise_succeed_msg(trp_promise *promise, trp_msg *msg)
{
    trpi_outcome *outcome;

    if (promise == NULL || msg == NULL) {
        return TRP_EINVAL;
    }
    if (atomic_load_explicit(&promise->future.claimed, memory_order_relaxed)) {
        return TRP_EEXIST;
    }
    outcome = trpi_outcome_value(msg);
    if (outcome == NULL) {
        return TRP_ENOMEM;
    }
    if (!trpi_promise_settle(promise, trpi_outcome_ref(outcome))) {
        trpi_outcome_give_up(outcome); /* msg is still the caller's */
        return TRP_EEXIST;
    }
    trpi_outcome_unref(outcome);
    return TRP_OK;
}

trp_err
trpi_msg_copied(const trp_type *type, const void *payload, size_t bytes, trp_msg **ret_msg)
{
    size_t size = (type->flags & TRP_TYPE_VARIABLE) != 0 ? bytes : type->bytes;
    void *room;
    trp_err err =
        payload == NULL && size > 0 ? TRP_EINVAL : trp_msg_new(type, size, ret_msg, &room);

    if (err == TRP_OK && size > 0) {
        memcpy(room, payload, size);
    }
    return err;
}

trp_err
trp_promise_succeed(trp_promise *promise, const trp_type *type, const void *payload, size_t bytes)
{
    trp_msg *msg;
    trp_err err;

    if (promise == NULL || type == NULL) {
        return TRP_EINVAL;
    }
    err = trpi_msg_copied(type, payload, bytes, &msg);
    if (err != TRP_OK) {
        return err;
    }
    err = trp_promise_succeed_msg(promise, msg);
    if (err != TRP_OK) {
        trpi_msg_drop(msg);
    }
    return err;
}

trp_err
trp_promise_fail(trp_promise *promise, trp_err err, const char *reason)
{
    if (promise == NULL || err == TRP_OK) {
        return TRP_EINVAL;
    }
    if (atomic_load_explicit(&promise->future.claimed, memory_order_relaxed)) {
        return TRP_EEXIST;
    }
    return trpi_promise_settle(promise, trpi_outcome_failure(err, reason)) ? TRP_OK : TRP_EEXIST;
}

/* ---- futures --------------------------------------------------------------------------------- */

trp_future *
trp_future_ref(trp_future *future)
{
    (void)atomic_fetch_add_explicit(&future->refs, 1, memory_order_relaxed);
    return future;
}

void
trp_future_unref(trp_future *future)
{
    if (future == NULL || atomic_fetch_sub_explicit(&future->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    /* future-F4 */
    trpi_assert(atomic_load_explicit(&future->head, memory_order_relaxed) == SETTLED);
    trpi_outcome_unref(future->outcome);
    trpi_executor_unref(future->runs);
    trpi_free(future);
}

trp_system *
trpi_future_enter(const trp_future *future)
{
    return trpi_executor_enter(future->runs) ? trpi_executor_system(future->runs) : NULL;
}

void
trpi_future_leave(const trp_future *future)
{
    trpi_executor_leave(future->runs);
}

const trp_outcome *
trp_future_outcome(const trp_future *future)
{
    return future != NULL &&
                   /* future-F1 */
                   atomic_load_explicit(&future->head, memory_order_acquire) == SETTLED
               ? &future->outcome->seen
               : NULL;
}

typedef struct waiter { /* a thread that waits; freed by the later of thread and callback */
    trpi_callback callback;
    trpi_cond cond; /* guards the rest */
    bool done;
    uint32_t owners;
} waiter;

static void
waiter_unref(waiter *w)
{
    bool last;

    pthread_mutex_lock(&w->cond.lock);
    last = --w->owners == 0;
    pthread_mutex_unlock(&w->cond.lock);
    if (last) {
        trpi_cond_fini(&w->cond);
        trpi_free(w);
    }
}

static void
waiter_run(trpi_callback *callback, trpi_outcome *outcome)
{
    waiter *w = (waiter *)callback;

    (void)outcome;
    pthread_mutex_lock(&w->cond.lock);
    w->done = true;
    trpi_cond_broadcast(&w->cond);
    pthread_mutex_unlock(&w->cond.lock);
    waiter_unref(w);
}

static bool
waiter_is_done(void *arg)
{
    return ((const waiter *)arg)->done;
}

/* Wait in a system that stays open until this returns. */
static trp_err
await_in(trp_system *system, trp_future *future, uint32_t timeout_ms)
{
    uint64_t deadline_ns =
        trpi_world_mono_ns(trpi_system_world(system)) + (uint64_t)timeout_ms * 1000000u;
    waiter *w;
    bool done;

    if (trpi_system_in_behaviour(system)) {
        return TRP_ESTATE;
    }
    w = trpi_alloc(sizeof *w);
    if (w == NULL) {
        return TRP_ENOMEM;
    }
    trpi_cond_init(&w->cond);
    w->owners = 2;
    w->callback.run = waiter_run;
    w->callback.at_once = true;
    trpi_future_then(future, &w->callback);
    pthread_mutex_lock(&w->cond.lock);
    done = trpi_cond_wait(&w->cond, trpi_system_sched(system), waiter_is_done, w, deadline_ns);
    pthread_mutex_unlock(&w->cond.lock);
    waiter_unref(w);
    return done ? TRP_OK : TRP_ETIMEDOUT;
}

trp_err
trp_future_await(trp_future *future, uint32_t timeout_ms)
{
    trp_err err;

    if (future == NULL) {
        return TRP_EINVAL;
    }
    if (trp_future_outcome(future) != NULL) {
        return TRP_OK;
    }
    if (!trpi_executor_enter(future->runs)) {
        return TRP_ECLOSED;
    }
    err = await_in(trpi_executor_system(future->runs), future, timeout_ms);
    trpi_executor_leave(future->runs);
    return err;
}

trp_err
trp_future_result(trp_future *future, uint32_t timeout_ms, const trp_msg **ret_value)
{
    trp_err err = trp_future_await(future, timeout_ms);
    const trp_outcome *outcome;

    if (err != TRP_OK) {
        return err;
    }
    outcome = trp_future_outcome(future);
    if (outcome->err != TRP_OK) {
        return outcome->err;
    }
    if (outcome->value == NULL) {
        return TRP_ENOENT;
    }
    if (ret_value != NULL) {
        *ret_value = outcome->value;
    }
    return TRP_OK;
}
