/* poll.c - reports of sockets: which thread waits for them, and when.
 *
 * Why.     A byte should cost one wake-up until its actor runs: the worker that the kernel wakes
 *          reads it, and runs the actor. While workers run tasks, waking another thread for each
 *          report costs more than looking now and then.
 * Shape.   The seat is the right to collect(). It is taken
 *            - for a wait, by the last worker that goes to sleep, or by a sentinel when the workers
 *              that run are stuck (sleep.c: sleep-L6, sleep-L8)
 *            - for a look, which does not wait: by a worker without tasks before it spins and in
 *              each round of its spin; by a worker that runs tasks, TRPI_POLL_BUSY_NS after its
 *              last look; by the timer thread when no worker looked for TRPI_POLL_STUCK_NS
 *          A report makes calls ready: tasks, which the collecting worker runs, the first one at
 *          once; others may steal the rest.
 * Must hold.
 *   poll-O1  One thread at a time is in collect().
 *   poll-O2  What was collected is submitted by the same thread, after it counts as awake.
 *   poll-O3  While no worker sleeps or searches and a socket is watched, the timer thread ticks
 *       every millisecond: whoever ends this state's opposite (the last searcher that leaves, with
 *       a task; the first watch) starts it. They store their change, then read poll_ticking; the
 *       tick stores that it ends, then reads the sleepers and the watches (seq_cst): one of them
 *       sees the other. So nothing ticks while the node is idle, or while one worker runs and the
 *       other looks around.
 *   poll-O4  A call waits for no worker that is stuck: when no worker has moved for STUCK_TICKS,
 *       the timer thread takes the calls out of the queues and makes them. So what ends a socket
 *       ends though actors hold all workers for ever.
 * Cost.    Nothing is watched: a relaxed load each TRPI_INJECT_RUNS runs, and at each search.
 * Limits.  A collected call waits like any task: behind a stuck run others steal it; in a pool
 *          whose workers are all stuck it waits for STUCK_TICKS ms.
 * Tests.   tests/unit/io/poller_test.c, poller_wake_test.c
 */
#include "sched/worker.h"

#include "base/assert.h"
#include "base/atomics.h"

enum { STUCK_TICKS = 10 };

static inline const trpi_poll_ops *
ops_of(trpi_sched *sched)
{
    return atomic_load_explicit(&sched->poll, memory_order_acquire); /* pair: trpi_sched_poll() */
}

static bool
is_watching(trpi_sched *sched)
{
    const trpi_poll_ops *ops = ops_of(sched);

    return ops != NULL && ops->watches(sched->poll_arg);
}

/* ---- the seat -------------------------------------------------------------------------------- */

bool
trpi_seat_take(trpi_sched *sched)
{
    uint32_t free = 0;

    return atomic_load_explicit(&sched->seat, SEQ_CST) == 0 && /* sleep-L6 */
           atomic_compare_exchange_strong_explicit(&sched->seat, &free, 1, SEQ_CST, SEQ_CST);
}

void
trpi_seat_give(trpi_sched *sched)
{
    trpi_assert(atomic_load_explicit(&sched->seat, RELAXED) == 1);
    atomic_store_explicit(&sched->seat, 0, SEQ_CST);
}

trpi_task *
trpi_seat_wait(trpi_sched *sched, uint64_t timeout_ns)
{
    trpi_task *first = NULL;

    ops_of(sched)->collect(sched->poll_arg, timeout_ns != 0 ? timeout_ns : UINT64_MAX, &first);
    return first;
}

/* Look for reports. NULL: there are none, or another thread has the seat. */
static trpi_task *
reports_look(trpi_sched *sched)
{
    trpi_task *first = NULL;

    if (trpi_seat_take(sched)) {
        ops_of(sched)->collect(sched->poll_arg, 0, &first);
        trpi_seat_give(sched);
    }
    return first;
}

trpi_task *
trpi_poll_submit(trpi_worker *worker, trpi_task *first)
{
    trpi_task *next = first->run_next;

    while (next != NULL) {
        trpi_task *task = next;

        next = task->run_next;
        trpi_ring_push(worker, task);
    }
    return first;
}

/* ---- workers --------------------------------------------------------------------------------- */

trpi_task *
trpi_poll_look(trpi_worker *worker)
{
    trpi_sched *sched = worker->sched;
    uint64_t now = trpi_sched_now(sched);
    trpi_task *first;

    if (!is_watching(sched)) {
        return NULL;
    }
    worker->poll_ns = now; /* a busy one need not look again soon */
    worker->poll_alone =
        now - atomic_load_explicit(&sched->polled_ns, RELAXED) >= TRPI_POLL_STUCK_NS;
    atomic_store_explicit(&sched->polled_ns, now, RELAXED);
    first = reports_look(sched);
    return first != NULL ? trpi_poll_submit(worker, first) : NULL;
}

trpi_task *
trpi_poll_busy(trpi_worker *worker)
{
    trpi_task *first = NULL;
    uint64_t now, since;

    if (!is_watching(worker->sched)) {
        return NULL;
    }
    now = trpi_sched_now(worker->sched);
    since = now - worker->poll_ns;
    if (since >= TRPI_POLL_BUSY_NS) {
        first = trpi_poll_look(worker);
    }
    /* runs may be long: look after fewer of them */
    if (since > 2 * TRPI_POLL_BUSY_NS && worker->poll_runs > 1) {
        worker->poll_runs /= 2;
    } else if (since < TRPI_POLL_BUSY_NS && worker->poll_runs < TRPI_INJECT_RUNS) {
        worker->poll_runs++;
    }
    atomic_store_explicit(&worker->inject_countdown, worker->poll_runs, RELAXED);
    return first;
}

/* ---- the timer thread ------------------------------------------------------------------------ */

static void poll_tick(void *arg, uint64_t a, uint64_t b);

/* poll-O3 */
static void
tick_start(trpi_sched *sched)
{
    uint64_t id;

    if (!atomic_exchange_explicit(&sched->poll_ticking, true, SEQ_CST) &&
        trpi_timer_add(sched, TRPI_POLL_STUCK_NS / 1000000u, poll_tick, sched, 0, 0, &id) !=
            TRP_OK) {
        atomic_store_explicit(&sched->poll_ticking, false, SEQ_CST); /* the next one tries again */
    }
}

/* Run calls on this thread, since all workers are stuck. */
static void
calls_run(trpi_sched *sched, trpi_task *first)
{
    while (first != NULL) {
        trpi_call_task *call = (trpi_call_task *)(void *)first;

        first = first->run_next;
        if (call->fn(call) != TRPI_RUN_IDLE) {
            trpi_sched_inject(sched, &call->task);
        }
    }
}

/* poll-O4 */
static void
calls_rescue(trpi_sched *sched)
{
    uint64_t progress = 0;

    for (uint32_t i = 0; i < sched->pool_count; i++) {
        progress += atomic_load_explicit(&trpi_sched_worker(sched, i)->progress, RELAXED);
    }
    sched->poll_ticks = progress == sched->poll_progress ? sched->poll_ticks + 1 : 0;
    sched->poll_progress = progress;
    if (sched->poll_ticks < STUCK_TICKS) {
        return;
    }
    sched->poll_ticks = 0;
    for (uint32_t i = 0; i < sched->pool_count; i++) {
        trpi_run_queue_drain(trpi_sched_worker(sched, i));
    }
    calls_run(sched, trpi_inject_take_calls(sched));
}

static void
poll_tick(void *arg, uint64_t a, uint64_t b)
{
    trpi_sched *sched = arg;
    uint64_t now;

    (void)a;
    (void)b;
    atomic_store_explicit(&sched->poll_ticking, false, SEQ_CST);
    if (!is_watching(sched) || atomic_load_explicit(&sched->sleepers, SEQ_CST) != 0) {
        return;
    }
    now = trpi_sched_now(sched);
    if (now - atomic_load_explicit(&sched->polled_ns, RELAXED) >= TRPI_POLL_STUCK_NS &&
        atomic_load_explicit(&sched->searching, RELAXED) == 0) { /* a searcher looks itself */
        atomic_store_explicit(&sched->polled_ns, now, RELAXED);
        calls_run(sched, reports_look(sched));
        calls_rescue(sched);
        if (trpi_all_asleep(sched)) { /* while this thread had the seat: sleep-L6 */
            trpi_wake_to_watch(sched);
        }
    }
    tick_start(sched);
}

void
trpi_poll_last_awake(trpi_sched *sched)
{
    if (atomic_load_explicit(&sched->sleepers, SEQ_CST) == 0 &&
        atomic_load_explicit(&sched->searching, SEQ_CST) == 0 &&
        !atomic_load_explicit(&sched->poll_ticking, SEQ_CST) && is_watching(sched)) {
        tick_start(sched);
    }
}

void
trpi_sched_poll(trpi_sched *sched, const trpi_poll_ops *ops, void *arg)
{
    trpi_assert(!sched->driven);
    trpi_assert(atomic_load_explicit(&sched->poll, RELAXED) == NULL);
    sched->poll_arg = arg;
    atomic_store_explicit(&sched->poll, ops, memory_order_release);
    trpi_fence(sched);
    trpi_wake_to_watch(sched); /* all may sleep, and none sits: sleep-L6 */
}

void
trpi_sched_poll_began(trpi_sched *sched)
{
    trpi_poll_last_awake(sched);
}
