/* dataflow_wait.c - how a flow waits: for a future, an alarm, or the end of the system.
 *
 * Shape.   in the flow: wait_new, suspend --> in the turn: trpi_wait_begin registers callbacks
 *          --> whatever comes first: trpi_wait_end claims it, and the flow has its next turn
 * Must hold. dataflow-W1, dataflow-W2 (dataflow.c).
 * Tests.   tests/unit/pattern/dataflow_test.c
 * Sources. DATAFLOW-1
 */
#include "pattern/flow.h"

#include <stddef.h>
#include <string.h>

#include <troupe/system.h>

#include "base/alloc.h"

/* ---- waiting --------------------------------------------------------------------------------- */

static void
wait_unref(trpi_wait *w)
{
    if (atomic_fetch_sub_explicit(&w->refs, 1, memory_order_acq_rel) == 1) {
        trpi_free(w);
    }
}

/* Claim the wait, and let the flow go on with err (dataflow-W1). Takes a count. */
void
trpi_wait_end(trpi_wait *w, trp_err err)
{
    if (!atomic_exchange_explicit(&w->over, true, memory_order_acq_rel)) {
        w->err = err;
        trpi_flow_ready(w->flow);
    }
    wait_unref(w);
}

static void
wait_has_outcome(trpi_callback *callback, trpi_outcome *outcome)
{
    (void)outcome;
    trpi_wait_end((trpi_wait *)(void *)((char *)callback - offsetof(trpi_wait, of_future)), TRP_OK);
}

static void
wait_has_alarm(trpi_callback *callback, trpi_outcome *outcome)
{
    trpi_wait *w = (trpi_wait *)(void *)((char *)callback - offsetof(trpi_wait, of_alarm));

    trpi_wait_end(w, outcome->seen.err == TRP_OK ? w->alarm_err : outcome->seen.err);
}

/* Register what the suspended flow waits for. false: it goes on at once, since the system ends.
 * After true the flow is not the caller's (dataflow-W2). */
bool
trpi_wait_begin(trp_flow *flow)
{
    trpi_flows *all = flow->all;
    trpi_wait *w = flow->next_wait;
    trp_promise *alarm = w->alarm;
    bool closed;

    flow->next_wait = NULL;
    pthread_mutex_lock(&all->lock);
    closed = all->closed;
    if (!closed) {
        flow->waiting_for = w;
        all->waiting++;
        atomic_fetch_add_explicit(&w->refs, 1u + (w->future != NULL) + (alarm != NULL),
                                  memory_order_relaxed);
    }
    pthread_mutex_unlock(&all->lock);
    if (closed) {
        w->err = TRP_ECLOSED;
        return false;
    }
    if (alarm != NULL) {
        (void)trp_promise_ref(alarm); /* the flow may go on after the first of these */
    }
    if (w->future != NULL) {
        trpi_future_then(w->future, &w->of_future);
    }
    if (alarm != NULL) {
        trpi_future_then(trp_promise_future(alarm), &w->of_alarm);
        trp_promise_unref(alarm);
    }
    wait_unref(w);
    return true;
}

/* Make the wait, with an alarm after alarm_ms if has_alarm. */
static trp_err
wait_new(trp_flow *flow, trp_future *future, bool has_alarm, uint64_t alarm_ms,
         trpi_wait **ret_wait)
{
    trpi_flows *all = flow->all;
    trpi_wait *w = trpi_alloc(sizeof *w);
    trp_err err = TRP_OK;

    if (w == NULL) {
        return TRP_ENOMEM;
    }
    atomic_init(&w->refs, 1);
    w->flow = flow;
    w->future = future;
    w->of_future.run = wait_has_outcome;
    w->of_alarm.run = wait_has_alarm;
    w->of_future.at_once = w->of_alarm.at_once = true; /* they only queue the flow */
    if (has_alarm) {
        err = trpi_executor_enter(all->runs) ? TRP_OK : TRP_ECLOSED;
        if (err == TRP_OK) {
            err = trp_promise_new(all->system, flow->dispatcher, &w->alarm);
            trpi_executor_leave(all->runs);
        }
        if (err == TRP_OK) {
            err = trpi_promise_alarm(w->alarm, alarm_ms, TRP_OK, &w->alarm_id);
        }
    }
    if (err != TRP_OK) {
        trp_promise_unref(w->alarm);
        trpi_free(w);
        return err;
    }
    *ret_wait = w;
    return TRP_OK;
}

/* In the flow: leave the stack until the wait is over. */
static trp_err
flow_suspend(trp_flow *flow, trpi_wait *w)
{
    trpi_flows *all = flow->all;
    trp_err err;

    flow->next_wait = w;
    trpi_coroutine_suspend(flow->co); /* from here on perhaps on another thread */
    err = w->err;
    pthread_mutex_lock(&all->lock);
    all->waiting -= flow->waiting_for != NULL;
    flow->waiting_for = NULL;
    pthread_mutex_unlock(&all->lock);
    if (w->alarm != NULL) {
        trpi_alarm_cancel(&w->alarm_id);
        trp_promise_unref(w->alarm);
    }
    wait_unref(w);
    return err;
}

/* Wait for future (NULL: none) for at most ms (UINT64_MAX: as long as the flow may). */
static trp_err
flow_wait(trp_flow *flow, trp_future *future, uint64_t ms)
{
    trp_err alarm_err = TRP_OK, err;
    trpi_wait *w;

    if (flow->deadline_ns != 0) {
        uint64_t now_ns = trpi_world_mono_ns(trpi_system_world(flow->all->system));
        uint64_t left_ms =
            flow->deadline_ns <= now_ns ? 0 : (flow->deadline_ns - now_ns + 999999u) / 1000000u;

        if (left_ms == 0) {
            return TRP_ETIMEDOUT;
        }
        if (left_ms < ms) {
            ms = left_ms;
            alarm_err = TRP_ETIMEDOUT;
        }
    }
    err = wait_new(flow, future, ms != UINT64_MAX, ms, &w);
    if (err != TRP_OK) {
        return err;
    }
    w->alarm_err = alarm_err;
    return flow_suspend(flow, w);
}

bool
trpi_flow_is_here(const trp_flow *flow)
{
    return trpi_guest_here() == &flow->guest;
}

trp_err
trp_flow_wait(trp_flow *flow, trp_future *future)
{
    if (flow == NULL || future == NULL) {
        return TRP_EINVAL;
    }
    if (!trpi_flow_is_here(flow)) {
        return TRP_ESTATE;
    }
    return trp_future_outcome(future) != NULL ? TRP_OK : flow_wait(flow, future, UINT64_MAX);
}

trp_err
trp_flow_result(trp_flow *flow, trp_future *future, const trp_msg **ret_value)
{
    trp_err err = ret_value == NULL ? TRP_EINVAL : trp_flow_wait(flow, future);
    const trp_outcome *outcome;

    if (err != TRP_OK) {
        return err;
    }
    outcome = trp_future_outcome(future);
    if (outcome->err == TRP_OK && outcome->value != NULL) {
        *ret_value = outcome->value;
    }
    return outcome->err == TRP_OK && outcome->value == NULL ? TRP_ENOENT : outcome->err;
}

trp_err
trp_flow_read(trp_flow *flow, trp_future *future, const trp_type *type, void *ret_value)
{
    const trp_msg *value;
    trp_err err;

    if (type == NULL || ret_value == NULL || (type->flags & TRP_TYPE_VARIABLE) != 0) {
        return TRP_EINVAL;
    }
    if (future == NULL) {
        return TRP_EINVAL;
    }
    (void)trp_future_ref(future); /* a promise may go as soon as it was kept */
    err = trp_flow_result(flow, future, &value);
    if (err == TRP_OK && !trp_msg_is(value, type)) {
        err = TRP_EDATA;
    }
    if (err == TRP_OK && type->bytes > 0) {
        memcpy(ret_value, trp_msg_payload(value), type->bytes);
    }
    trp_future_unref(future);
    return err;
}

trp_err
trp_flow_ask(trp_flow *flow, trp_ref to, const trp_type *type, const void *payload, size_t bytes,
             uint32_t timeout_ms, const trp_type *reply_type, void *ret_reply)
{
    trp_future *reply;
    trp_err err;

    if (flow == NULL || reply_type == NULL || ret_reply == NULL) {
        return TRP_EINVAL;
    }
    if (!trpi_flow_is_here(flow)) {
        return TRP_ESTATE;
    }
    err = trp_future_ask(flow->all->system, to, type, payload, bytes, timeout_ms, &reply);
    if (err == TRP_OK) {
        err = trp_flow_read(flow, reply, reply_type, ret_reply);
        trp_future_unref(reply);
    }
    return err;
}

trp_err
trp_flow_sleep(trp_flow *flow, uint32_t ms)
{
    if (flow == NULL) {
        return TRP_EINVAL;
    }
    return trpi_flow_is_here(flow) ? flow_wait(flow, NULL, ms) : TRP_ESTATE;
}
