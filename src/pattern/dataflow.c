/* dataflow.c - flows: functions written in sequence that wait for futures without a thread.
 *
 * Why.     A computation of several asks or values, each depending on the one before, is a chain of
 *          callbacks with futures alone. A flow is written as what it is, a sequence.
 * Shape.   A flow is a coroutine with a stack of its own. A turn of it is a job of a dispatcher:
 *
 *            start --> job: turn --suspends--> wait {future, alarm} --first--> job: turn ...
 *                               `--returns---> stack to the idle ones, outcome to its future
 *          A wait is registered by the turn once the flow has left its stack; whatever ends it may
 *          run the flow at once on another thread.
 * States.  QUEUED --turn--> RUNNING --suspends--> WAITING --claimed--> QUEUED;  RUNNING --> freed
 * Must hold.
 *   dataflow-W1  A flow has one turn at a time: a wait is claimed once, by its future, its alarm or
 *       the end of the system, and only the claimer makes the next turn. (trpi_wait_end)
 *   dataflow-W2  The turn does not touch the flow after its wait was registered. (trpi_wait_begin)
 *   dataflow-W3  No flow is forgotten: at the end of the system waits are claimed with TRP_ECLOSED,
 *       and turns that no dispatcher has run are run by the release. (flows_stop, flows_release)
 *   dataflow-W4  A failure jumps on the flow's own stack, to its base. (flow_run)
 * Threads. any. The lock guards the list, the counts and idle stacks; a leaf.
 * Limits.  flows.max (TRP_ELIMIT); flows.stack-size: an overflow is a fault.
 * Cost.    A wait: two switches, a job, two short critical sections.
 * Not here. Stacks and switches (coroutine.c), waits (dataflow_wait.c), values (future.c).
 * Tests.   tests/unit/pattern/dataflow_test.c, dataflow_schedules_test.c, dataflow_fault_test.c
 * Sources. DATAFLOW-1 to -3; P. Van Roy, S. Haridi, "Concepts, Techniques, and Models of Computer
 *          Programming", chapter 4 (declarative concurrency).
 */
#include "pattern/flow.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <troupe/dispatcher.h>
#include <troupe/extension.h>
#include <troupe/log.h>
#include <troupe/system.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"
#include "base/sized.h"
#include "pattern/pattern.h"

static void flow_turn(void *arg);

/* ---- stacks ---------------------------------------------------------------------------------- */

/* Take an idle stack, or map one. The caller counts it as live. */
static trp_err
stack_take(trpi_flows *all, trpi_stack *ret_stack)
{
    trpi_stack *idle;

    pthread_mutex_lock(&all->lock);
    idle = all->stacks;
    if (idle != NULL) {
        all->stacks = idle->next;
        all->idle--;
    }
    pthread_mutex_unlock(&all->lock);
    if (idle == NULL) {
        return trpi_stack_map(all->stack_bytes, ret_stack);
    }
    *ret_stack = *idle;
    ret_stack->next = NULL;
    return TRP_OK;
}

/* With the lock. The record of an idle stack stands in it. */
static bool
stack_keep(trpi_flows *all, const trpi_stack *stack)
{
    trpi_stack *record = (trpi_stack *)(void *)(stack->low + stack->bytes) - 1;

    if (all->idle == all->idle_max || all->closed) {
        return false;
    }
    *record = *stack;
    record->next = all->stacks;
    all->stacks = record;
    all->idle++;
    return true;
}

static void
stacks_drop(trpi_flows *all)
{
    while (all->stacks != NULL) {
        trpi_stack stack = *all->stacks;

        all->stacks = stack.next;
        trpi_stack_unmap(&stack);
    }
    all->idle = 0;
}

/* ---- the end of a flow ----------------------------------------------------------------------- */

static void
flow_free(trp_flow *flow)
{
    trpi_coroutine_free(flow->co);
    trpi_stack_unmap(&flow->stack);
    trp_promise_unref(flow->out);
    trpi_free(flow);
}

static void
failure_log(const trp_flow *flow)
{
    if (flow->err == TRP_EFAULT || !flow->is_wanted) {
        trp_system_log(flow->all->system, flow->err == TRP_EFAULT ? TRP_LOG_ERROR : TRP_LOG_WARNING,
                       "flow", "a flow failed name=%s reason=%s err=%s", flow->name,
                       flow->has_jumped ? flow->guest.failure.reason : trp_strerror(flow->err),
                       trp_err_name(flow->err));
    }
}

static void
flow_link(trpi_flows *all, trp_flow *flow)
{
    pthread_mutex_lock(&all->lock);
    flow->after = all->first;
    if (all->first != NULL) {
        all->first->before = flow;
    }
    all->first = flow;
    all->started++;
    pthread_mutex_unlock(&all->lock);
}

/* With the lock. */
static void
flow_unlink(trp_flow *flow)
{
    trpi_flows *all = flow->all;

    if (flow->before != NULL) {
        flow->before->after = flow->after;
    } else {
        all->first = flow->after;
    }
    if (flow->after != NULL) {
        flow->after->before = flow->before;
    }
    all->live--;
}

/* Its function has returned. On the stack of the turn. */
static void
flow_end(trp_flow *flow)
{
    trpi_flows *all = flow->all;
    bool has_failed = flow->err != TRP_OK;

    if (has_failed && trpi_executor_enter(all->runs)) {
        failure_log(flow);
        trpi_executor_leave(all->runs);
    }
    pthread_mutex_lock(&all->lock);
    flow_unlink(flow);
    all->failed += has_failed;
    if (stack_keep(all, &flow->stack)) {
        flow->stack = (trpi_stack){ NULL, NULL, 0 };
    }
    pthread_mutex_unlock(&all->lock);
    if (has_failed) { /* TRP_EEXIST: it was kept before */
        (void)trp_promise_fail(flow->out, flow->err,
                               flow->has_jumped ? flow->guest.failure.reason : NULL);
    } else if (trp_future_outcome(trp_promise_future(flow->out)) == NULL) {
        (void)trpi_promise_settle(flow->out, trpi_outcome_joined(NULL, 0)); /* likewise */
    }
    flow_free(flow);
}

/* The base of the flow's stack: each jump lands here, and goes on behind what has failed
 * (dataflow-W4). */
static void
flow_run(void *arg)
{
    trp_flow *flow = arg;

    if (_setjmp(flow->guest.jump) != 0) {
        flow->has_jumped = true;
        flow->err = flow->guest.failure.err;
    }
    if (flow->fn != NULL) {
        trp_flow_fn fn = flow->fn;

        flow->fn = NULL;
        flow->err = fn(flow, flow->arg, flow->out);
    }
    while (flow->deferred != NULL) {
        trpi_deferred d = *flow->deferred;

        trpi_free(flow->deferred);
        flow->deferred = d.next;
        d.release(d.arg);
    }
    if (flow->release != NULL) {
        trp_release_fn release = flow->release;

        flow->release = NULL;
        release(flow->arg);
    }
}

/* ---- turns ---------------------------------------------------------------------------------- */

/* Let a dispatcher run the next turn. After TRP_OK the flow may be gone. */
static trp_err
flow_queue(trp_flow *flow)
{
    trpi_executor *runs = flow->all->runs;
    trp_err err = TRP_ECLOSED;

    if (trpi_executor_enter(runs)) {
        atomic_store_explicit(&flow->is_queued, true, memory_order_relaxed);
        err = trp_dispatcher_execute(flow->all->system, flow->dispatcher, flow_turn, flow);
        trpi_executor_leave(runs);
    }
    return err;
}

/* The same, but where no dispatcher does (no memory, or the threads end) it runs here. The caller
 * holds no lock, and does not touch the flow any more. */
void
trpi_flow_ready(trp_flow *flow)
{
    if (flow_queue(flow) != TRP_OK) {
        flow_turn(flow);
    }
}

/* A job: run the flow until it waits or ends. */
static void
flow_turn(void *arg)
{
    trp_flow *flow = arg;
    bool is_alive;

    atomic_store_explicit(&flow->is_queued, false, memory_order_relaxed);
    do {
        trpi_guest *before = trpi_guest_swap(&flow->guest);

        is_alive = trpi_coroutine_resume(flow->co);
        (void)trpi_guest_swap(before);
    } while (is_alive && !trpi_wait_begin(flow));
    if (!is_alive) {
        flow_end(flow);
    }
}

/* ---- in a flow ------------------------------------------------------------------------------- */

trp_err
trp_flow_defer(trp_flow *flow, trp_release_fn release, void *arg)
{
    trpi_deferred *d;

    if (flow == NULL || release == NULL) {
        return TRP_EINVAL;
    }
    if (!trpi_flow_is_here(flow)) {
        return TRP_ESTATE;
    }
    d = trpi_alloc(sizeof *d);
    if (d == NULL) {
        return TRP_ENOMEM;
    }
    *d = (trpi_deferred){ flow->deferred, release, arg };
    flow->deferred = d;
    return TRP_OK;
}

trp_system *
trp_flow_system(const trp_flow *flow)
{
    return flow->all->system;
}

void
trp_flow_fail_at(trp_flow *flow, trp_err err, const char *file, int line, const char *format, ...)
{
    trp_failure *what = &flow->guest.failure;
    va_list arguments;

    trpi_assert(trpi_flow_is_here(flow));
    memset(what, 0, sizeof *what);
    what->err = err == TRP_OK ? TRP_EFAILED : err;
    what->file = file;
    what->line = line;
    va_start(arguments, format);
    if (vsnprintf(what->reason, sizeof what->reason, format, arguments) < 0) {
        (void)snprintf(what->reason, sizeof what->reason, "%s", trp_strerror(what->err));
    }
    va_end(arguments);
    _longjmp(flow->guest.jump, 1);
}

/* ---- the flows of a system ------------------------------------------------------------------- */

static trp_err
flows_create(trp_system *system, void *arg, void **ret_instance)
{
    const trpi_config *config = trpi_system_config(system);
    trpi_flows *all = trpi_alloc(sizeof *all);
    trpi_executor *runs;
    const char *id;
    trp_err err;

    (void)arg;
    if (all == NULL) {
        return TRP_ENOMEM;
    }
    err = trpi_executor_get(system, NULL, &runs, &id); /* it ends after the trpi_flows */
    if (err != TRP_OK) {
        trpi_free(all);
        return err;
    }
    all->system = system;
    all->runs = trpi_executor_ref(runs);
    all->live_max = (uint32_t)trpi_config_int(config, "flows.max");
    all->idle_max = (uint32_t)trpi_config_int(config, "flows.idle-stacks");
    all->stack_bytes = (size_t)trpi_config_int(config, "flows.stack-size");
    pthread_mutex_init(&all->lock, NULL);
    *ret_instance = all;
    return TRP_OK;
}

/* A flow that waits, with a count of its wait; NULL: none does. */
static trpi_wait *
waiting_take(trpi_flows *all)
{
    trpi_wait *w = NULL;

    pthread_mutex_lock(&all->lock);
    for (trp_flow *flow = all->first; flow != NULL && w == NULL; flow = flow->after) {
        if (flow->waiting_for != NULL) {
            w = flow->waiting_for;
            flow->waiting_for = NULL;
            all->waiting--;
            atomic_fetch_add_explicit(&w->refs, 1, memory_order_relaxed);
        }
    }
    pthread_mutex_unlock(&all->lock);
    return w;
}

/* dataflow-W3 */
static void
flows_stop(void *instance)
{
    trpi_flows *all = instance;
    trpi_wait *w;

    pthread_mutex_lock(&all->lock);
    all->closed = true;
    pthread_mutex_unlock(&all->lock);
    while ((w = waiting_take(all)) != NULL) {
        trpi_wait_end(w, TRP_ECLOSED);
    }
}

/* dataflow-W3. The threads have ended: what is left was queued. */
static void
flows_release(void *instance)
{
    trpi_flows *all = instance;

    while (all->first != NULL) {
        trp_flow *flow = all->first;

        trpi_assert(atomic_load_explicit(&flow->is_queued, memory_order_relaxed));
        flow_turn(flow); /* to its end, since no wait begins any more */
        trpi_assert(all->first != flow);
    }
    trpi_assert(all->live == 0);
    stacks_drop(all);
    trpi_executor_unref(all->runs);
    trpi_mutex_destroy(&all->lock);
    trpi_free(all);
}

static const trp_extension flows_extension = { sizeof(trp_extension), "flows",
                                               flows_create,          flows_stop,
                                               flows_release,         NULL };

static trp_err
flows_of(trp_system *system, trpi_flows **ret_flows)
{
    void *instance;
    trp_err err = trp_extension_get(system, &flows_extension, &instance);

    if (err == TRP_OK) {
        *ret_flows = instance;
    }
    return err;
}

/* Count one more flow, if there may be one. */
static trp_err
live_reserve(trpi_flows *all)
{
    trp_err err = TRP_OK;

    pthread_mutex_lock(&all->lock);
    if (all->closed) {
        err = TRP_ECLOSED;
    } else if (all->live == all->live_max) {
        err = TRP_ELIMIT;
    } else {
        all->live++;
    }
    pthread_mutex_unlock(&all->lock);
    return err;
}

static void
live_forgo(trpi_flows *all)
{
    pthread_mutex_lock(&all->lock);
    all->live--;
    pthread_mutex_unlock(&all->lock);
}

static trp_err
flow_make(trpi_flows *all, const trp_flow_options *options, trp_flow **ret_flow)
{
    trp_flow *flow = trpi_alloc(sizeof *flow);
    trpi_executor *runs;
    trp_err err;

    if (flow == NULL) {
        return TRP_ENOMEM;
    }
    flow->all = all;
    (void)snprintf(flow->name, sizeof flow->name, "%s",
                   options->name == NULL ? "flow" : options->name);
    flow->guest.name = flow->name;
    if (options->timeout_ms != 0) {
        flow->deadline_ns = trpi_world_mono_ns(trpi_system_world(all->system)) +
                            (uint64_t)options->timeout_ms * 1000000u;
    }
    err = trpi_executor_get(all->system, options->dispatcher, &runs, &flow->dispatcher);
    if (err == TRP_OK) {
        err = trp_promise_new(all->system, options->dispatcher, &flow->out);
    }
    if (err == TRP_OK) {
        err = stack_take(all, &flow->stack);
    }
    if (err == TRP_OK) {
        err = trpi_coroutine_new(&flow->stack, flow_run, flow, &flow->co);
    }
    if (err != TRP_OK) {
        flow_free(flow);
        return err;
    }
    flow->guest.low = (uintptr_t)flow->stack.low;
    flow->guest.high = flow->guest.low + flow->stack.bytes;
    *ret_flow = flow;
    return TRP_OK;
}

/* Link the flow, and queue its first turn. */
static trp_err
flow_begin(trpi_flows *all, trp_flow *flow)
{
    trp_err err;

    flow_link(all, flow);
    err = flow_queue(flow);
    if (err != TRP_OK) {
        pthread_mutex_lock(&all->lock);
        flow_unlink(flow);
        all->started--;
        pthread_mutex_unlock(&all->lock);
    }
    return err;
}

trp_err
trp_flow_start(trp_system *system, trp_flow_fn fn, void *arg, trp_release_fn release,
               const trp_flow_options *options, trp_future **ret_future)
{
    trp_flow_options own = TRP_FLOW_OPTIONS_INIT;
    trp_future *future = NULL;
    trp_flow *flow = NULL;
    trpi_flows *all;
    trp_err err;

    if (fn == NULL || !TRPI_SIZED_COPY(options, &own, zero) ||
        (own.name != NULL && strlen(own.name) > TRP_FLOW_NAME_BYTES_MAX)) {
        return TRP_EINVAL;
    }
    err = flows_of(system, &all);
    err = err != TRP_OK ? err : live_reserve(all);
    if (err != TRP_OK) {
        return err;
    }
    err = flow_make(all, &own, &flow);
    if (err != TRP_OK) {
        live_forgo(all);
        return err;
    }
    flow->fn = fn;
    flow->arg = arg;
    flow->release = release;
    flow->is_wanted = ret_future != NULL;
    if (ret_future != NULL) {
        future = trp_future_ref(trp_promise_future(flow->out));
    }
    err = flow_begin(all, flow);
    if (err != TRP_OK) {
        flow_free(flow);
        trp_future_unref(future);
        return err;
    }
    if (ret_future != NULL) {
        *ret_future = future;
    }
    return TRP_OK;
}

trp_err
trp_flows_get_info(trp_system *system, trp_flows_info *ret_info)
{
    trp_flows_info info = { 0 };
    trpi_flows *all;
    trp_err err = ret_info == NULL ? TRP_EINVAL : flows_of(system, &all);

    if (err != TRP_OK) {
        return err;
    }
    pthread_mutex_lock(&all->lock);
    info.started = all->started;
    info.failed = all->failed;
    info.live = all->live;
    info.waiting = all->waiting;
    info.idle_stacks = all->idle;
    info.live_max = all->live_max;
    info.stack_bytes = all->stack_bytes;
    pthread_mutex_unlock(&all->lock);
    return TRPI_SIZED_FILL(ret_info, &info, stack_bytes) ? TRP_OK : TRP_EINVAL;
}
