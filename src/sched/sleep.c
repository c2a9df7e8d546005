/* sleep.c - searching for tasks: work stealing, back-off, sleep and wake-up of pool workers.
 *
 * Why.     A wake-up costs 7-23 us, a futex call without a waiter 170 ns, a cache line that moves
 *          to another core 50-300 ns: so an idle worker spins for 50 us (and yields) before it
 *          sleeps, a push checks for sleepers only when it may need one, and actors that talk to
 *          each other stay on one core.
 * States.  running -> searching (spins) -> asleep -> searching ...
 *          One sleeper, the sentinel, sleeps at most 1 ms at a time while any worker is awake, and
 *          searches for workers that are stuck in a long run with tasks behind it. When all workers
 *          sleep there is no periodic wake-up.
 * Must hold.
 *   sleep-L1  A push (enqueue, fence, read sleepers and searching) and a worker that goes to sleep
 *       (count itself, leave searching, fence, read the queues) are a Dekker pair: no task waits
 *       while all workers sleep.
 *   sleep-L2  A push may rely on a searcher: the last searcher that finds a task wakes another
 *       worker if more tasks are visible; one that finds none reads all queues after it stopped
 *       searching.
 *   sleep-L3  While a worker runs and another sleeps there is a sentinel: the last searcher that
 *       finds a task appoints one.
 *   sleep-L4  A thief steals from the ring of a worker that makes progress only if its tasks would
 *       wait for 50 us and more at the rate observed over 20 us. From a worker without progress for
 *       20 us it steals slot and ring, and one deferred task a millisecond. The first steal is a
 *       probe of one task. If the stolen runs took less than 20 us, the next victim is observed for
 *       200 us: a turn that tells a thousand messages may last 20 us, and their receivers should
 *       stay on that core.
 *   sleep-L5  A searcher that finds only short backlogs (sleep-L4), or was woken for nothing, sets
 *       `wake_suppressed`: until its next search, 1 ms later, pushes to rings wake no worker.
 *   sleep-L6  While all workers sleep that may run, and reports of sockets are polled, one of them
 *       has the seat: it sleeps in the kernel's wait for reports (poll.c). A worker that goes to
 *       sleep (count itself, seq_cst; take the seat) and a thread that had the seat for a look
 *       (give it back, seq_cst; read the number of sleepers) are a Dekker pair: one of them sees
 *       the other, and the looker, if it is no worker, wakes a sleeper, which then sits; a worker
 *       that looked is awake, and sits itself when it is the last one to sleep. So no report
 *       waits while all workers sleep.
 *   sleep-L7  A wake-up of the worker on the seat is `woken`, then an edge of the set, in this
 *       order and under sleep_lock; the worker reads `woken` before each wait, and the set keeps
 *       an edge that comes before the wait. So sleep-L1 holds there too. An edge that comes too
 *       late ends the wait of the next worker that sits, which reads its own `woken` and waits
 *       again. A push wakes the worker on the seat only if no other one sleeps.
 *   sleep-L8  A sentinel that finds that nobody looked for reports for TRPI_POLL_STUCK_NS takes the
 *       seat: the workers that run are stuck.
 * Threads. sleep_lock guards the list of sleepers; only wake-ups are called under it.
 * Tests.   tests/unit/sched/sched_test.c
 */
#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <linux/futex.h>

#include "base/assert.h"
#include "base/atomics.h"
#include "sched/worker.h"

enum { WOKEN_NOT = 0, WOKEN_TO_SEARCH = 1, WOKEN_TO_WATCH = 2 };

void
trpi_futex_wake(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0); /* wakes one or none */
}

/* false: timed out. Returns spuriously, so the caller checks the word. */
bool
trpi_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
    struct timespec timeout = { (time_t)(timeout_ns / 1000000000u),
                                (long)(timeout_ns % 1000000000u) };
    long result = syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value,
                          timeout_ns != 0 ? &timeout : NULL, NULL, 0);

    return !(result == -1 && errno == ETIMEDOUT);
}

/* ---- waking ---------------------------------------------------------------------------------- */

/* Remove worker from the list of sleepers. Under sleep_lock. */
static void
sleepers_remove(trpi_sched *sched, trpi_worker *worker)
{
    trpi_worker **link = &sched->sleepers_first;

    trpi_assert(worker->in_sleepers);
    while (*link != worker) {
        link = &(*link)->sleep_next;
    }
    *link = worker->sleep_next;
    worker->in_sleepers = false;
    if (atomic_load_explicit(&sched->sentinel, RELAXED) == worker) {
        atomic_store_explicit(&sched->sentinel, NULL, RELAXED);
    }
    atomic_store_explicit(&worker->asleep, false, SEQ_CST);
    (void)atomic_fetch_sub_explicit(&sched->sleepers, 1, SEQ_CST);
}

/* Under sleep_lock. */
static void
sleeper_wake(trpi_sched *sched, trpi_worker *worker, uint32_t why)
{
    sleepers_remove(sched, worker);
    (void)atomic_fetch_add_explicit(&sched->searching, 1, SEQ_CST); /* on its behalf (sleep-L2) */
    atomic_store_explicit(&worker->woken, why, memory_order_release);
    if (worker->seated) { /* acquire: set once, before any worker sat */
        atomic_load_explicit(&sched->poll, memory_order_acquire)->wake(sched->poll_arg);
    } else {
        trpi_futex_wake(&worker->woken);
    }
}

/* Choose the sleeper to be woken: neither the sentinel nor the one on the seat, if there is another
 * (sleep-L6); the sentinel last. Under sleep_lock. */
static trpi_worker *
sleeper_choose(trpi_sched *sched)
{
    const trpi_worker *sentinel = atomic_load_explicit(&sched->sentinel, RELAXED);
    trpi_worker *chosen = NULL;

    for (trpi_worker *worker = sched->sleepers_first; worker != NULL; worker = worker->sleep_next) {
        if (worker != sentinel && !worker->seated) {
            return worker;
        }
        if (chosen == NULL || chosen == sentinel) {
            chosen = worker;
        }
    }
    return chosen;
}

static void
sleeper_wake_one(trpi_sched *sched, uint32_t why)
{
    trpi_worker *worker;

    pthread_mutex_lock(&sched->sleep_lock);
    worker = sleeper_choose(sched);
    if (worker != NULL) {
        sleeper_wake(sched, worker, why);
    }
    pthread_mutex_unlock(&sched->sleep_lock);
}

void
trpi_wake_for_push(trpi_sched *sched)
{
    trpi_fence(sched); /* sleep-L1 */
    if (LIKELY(atomic_load_explicit(&sched->sleepers, RELAXED) == 0 ||
               atomic_load_explicit(&sched->searching, RELAXED) != 0)) {
        return;
    }
    sleeper_wake_one(sched, WOKEN_TO_SEARCH);
}

void
trpi_wake_to_watch(trpi_sched *sched)
{
    sleeper_wake_one(sched, WOKEN_TO_WATCH);
}

bool
trpi_all_asleep(trpi_sched *sched)
{
    return atomic_load_explicit(&sched->sleepers, SEQ_CST) >=
           atomic_load_explicit(&sched->limit, SEQ_CST);
}

void
trpi_wake_worker(trpi_worker *worker)
{
    trpi_sched *sched = worker->sched;

    trpi_fence(sched); /* sleep-L1, for queues that only this worker reads */
    if (LIKELY(!atomic_load_explicit(&worker->asleep, RELAXED))) {
        return;
    }
    pthread_mutex_lock(&sched->sleep_lock);
    if (worker->in_sleepers) {
        sleeper_wake(sched, worker, WOKEN_TO_SEARCH);
    }
    pthread_mutex_unlock(&sched->sleep_lock);
}

void
trpi_wake_all(trpi_sched *sched)
{
    pthread_mutex_lock(&sched->sleep_lock);
    while (sched->sleepers_first != NULL) {
        sleeper_wake(sched, sched->sleepers_first, WOKEN_TO_SEARCH);
    }
    pthread_mutex_unlock(&sched->sleep_lock);
}

/* ---- work stealing --------------------------------------------------------------------------- */

/* Take a task that need not be stolen: an injected one, or one deferred to this worker. */
static trpi_task *
shared_take(trpi_worker *worker)
{
    trpi_task *task = trpi_inject_pop(worker, TRPI_INJECT_SHARE);

    return task != NULL ? task : trpi_defer_pop(worker);
}

bool
trpi_has_tasks(trpi_worker *victim)
{
    return atomic_load_explicit(&victim->slot, RELAXED) != NULL ||
           atomic_load_explicit(&victim->handoff.task, RELAXED) != NULL ||
           atomic_load_explicit(&victim->ring_head, RELAXED) !=
               atomic_load_explicit(&victim->ring_tail, RELAXED) ||
           atomic_load_explicit(&victim->deferred.count, RELAXED) != 0;
}

trpi_task *
trpi_stuck_steal(trpi_worker *thief, trpi_worker *victim, uint32_t at_most)
{
    trpi_task *task = trpi_ring_steal(thief, victim, 1, at_most);

    if (task == NULL) {
        task = trpi_slot_steal(victim);
    }
    return task != NULL ? task : trpi_defer_steal(victim);
}

/* Spin without reading cache lines of other workers, until a task is injected. */
static void
spin_until(trpi_sched *sched, uint64_t end)
{
    while (trpi_sched_now(sched) < end &&
           atomic_load_explicit(&sched->inject_count, RELAXED) == 0 &&
           !trpi_sched_is_stopping(sched)) {
        for (int i = 0; i < 8; i++) {
            trpi_cpu_relax();
        }
    }
}

typedef struct victim_state {
    uint64_t progress;
    uint32_t tasks; /* in the ring */
} victim_state;

/* sleep-L4. Steal from a victim whose state `ns` ago was `before`. NULL: nothing to be stolen;
 * *ret_short: because its backlog is short. */
static trpi_task *
backlog_steal(trpi_worker *worker, trpi_worker *victim, victim_state before, uint64_t ns,
              bool *ret_short)
{
    uint64_t runs = atomic_load_explicit(&victim->progress, RELAXED) - before.progress;
    uint32_t tasks = trpi_ring_length(victim);
    uint32_t at_most = worker->probe_run_ns == 0 ? 1 : TRPI_RING_TASKS;

    if (runs == 0) {
        return trpi_stuck_steal(worker, victim, at_most);
    }
    tasks = tasks < before.tasks ? tasks : before.tasks;
    if (tasks < 2) {
        return NULL;
    }
    if (tasks * ns < runs * TRPI_BACKLOG_NS) {
        *ret_short = true;
        return NULL;
    }
    return trpi_ring_steal(worker, victim, 2, at_most);
}

/* Observe the workers that have tasks, and steal tasks that would wait too long. */
static trpi_task *
victims_steal(trpi_worker *worker, bool *ret_short)
{
    trpi_sched *sched = worker->sched;
    victim_state before[TRPI_POOL_MAX];
    uint64_t candidates = 0, start;
    trpi_task *task = NULL;

    _Static_assert(TRPI_POOL_MAX <= 64, "candidates is a bit set");
    for (uint32_t i = 0; i < sched->pool_count; i++) {
        trpi_worker *victim = trpi_sched_worker(sched, i);

        if (victim != worker && trpi_has_tasks(victim)) {
            candidates |= 1ull << i;
            before[i].progress = atomic_load_explicit(&victim->progress, RELAXED);
            before[i].tasks = trpi_ring_length(victim);
        }
    }
    if (candidates == 0) {
        return NULL;
    }
    start = trpi_sched_now(sched);
    spin_until(sched, start + (worker->probe_run_ns == 0 || worker->probe_run_ns >= TRPI_STUCK_NS
                                   ? TRPI_STUCK_NS
                                   : TRPI_STUCK_AFTER_PROBE_NS));
    if (atomic_load_explicit(&sched->inject_count, RELAXED) != 0) {
        return trpi_inject_pop(worker, TRPI_INJECT_SHARE);
    }
    for (uint32_t i = 0; i < sched->pool_count && task == NULL; i++) {
        uint32_t index = (worker->victim + i) % sched->pool_count;

        if ((candidates & 1ull << index) != 0) {
            task = backlog_steal(worker, trpi_sched_worker(sched, index), before[index],
                                 trpi_sched_now(sched) - start, ret_short);
            worker->victim = task != NULL ? index : worker->victim;
        }
    }
    if (task != NULL) {
        worker->steal_ns = trpi_sched_now(sched);
        worker->steal_progress = atomic_load_explicit(&worker->progress, RELAXED);
    }
    return task;
}

/* ---- sleep ----------------------------------------------------------------------------------- */

static void
searching_leave(trpi_worker *worker)
{
    trpi_sched *sched = worker->sched;
    uint32_t before = atomic_fetch_sub_explicit(&sched->searching, 1, SEQ_CST);

    trpi_assert(before > 0);
    if (before != 1) {
        return;
    }
    if (atomic_load_explicit(&sched->sleepers, SEQ_CST) == 0) {
        if (UNLIKELY(atomic_load_explicit(&sched->poll, RELAXED) != NULL)) {
            trpi_poll_last_awake(sched);
        }
        return;
    }
    if (atomic_load_explicit(&sched->inject_count, RELAXED) != 0 ||
        atomic_load_explicit(&worker->ring_head, RELAXED) !=
            atomic_load_explicit(&worker->ring_tail, RELAXED)) {
        sleeper_wake_one(sched, WOKEN_TO_SEARCH); /* sleep-L2 */
    } else if (atomic_load_explicit(&sched->sentinel, RELAXED) == NULL) {
        sleeper_wake_one(sched, WOKEN_TO_WATCH); /* sleep-L3 */
    }
}

/* Count the worker as a sleeper. Return the timeout of its sleep in ns, 0: none. */
static uint64_t
sleepers_add(trpi_sched *sched, trpi_worker *worker)
{
    uint64_t timeout = 0;
    uint32_t sleepers;

    pthread_mutex_lock(&sched->sleep_lock);
    worker->sleep_next = sched->sleepers_first;
    sched->sleepers_first = worker;
    worker->in_sleepers = true;
    atomic_store_explicit(&worker->woken, WOKEN_NOT, RELAXED);
    atomic_store_explicit(&worker->asleep, true, SEQ_CST);
    sleepers = atomic_fetch_add_explicit(&sched->sleepers, 1, SEQ_CST) + 1;
    if (sleepers == sched->pool_count) {
        timeout = worker->trims < TRPI_TRIMS_ALL ? TRPI_TRIM_NS : 0;
    } else if (atomic_load_explicit(&sched->sentinel, RELAXED) == NULL) {
        atomic_store_explicit(&sched->sentinel, worker, RELAXED);
        timeout = TRPI_SENTINEL_NS;
    }
    if (UNLIKELY(atomic_load_explicit(&sched->poll, memory_order_acquire) != NULL)) {
        worker->seated = /* sleep-L6 */
            (trpi_all_asleep(sched) || (worker->poll_alone && timeout == TRPI_SENTINEL_NS)) &&
            trpi_seat_take(sched);
    }
    pthread_mutex_unlock(&sched->sleep_lock);
    return timeout;
}

/* Leave the list of sleepers, if no other thread woke us; in either case we then count as
 * searching. */
static void
sleepers_leave(trpi_sched *sched, trpi_worker *worker)
{
    pthread_mutex_lock(&sched->sleep_lock);
    if (worker->in_sleepers) {
        sleepers_remove(sched, worker);
        (void)atomic_fetch_add_explicit(&sched->searching, 1, SEQ_CST);
        atomic_store_explicit(&worker->woken, WOKEN_TO_WATCH, RELAXED);
    }
    worker->seated = false;
    pthread_mutex_unlock(&sched->sleep_lock);
}

void
trpi_trim(trpi_worker *worker, uint32_t trims)
{
    const trpi_sched_options *options = &worker->sched->options;

    if (worker->trims < trims && options->ops->sleep != NULL) {
        options->ops->sleep(options->arg, worker, trims == TRPI_TRIMS_ALL);
    }
    worker->trims = trims;
}

/* Sleep until another thread wakes the worker, or its time is over. Return the calls that a report
 * made ready, linked; NULL: none. */
static trpi_task *
sleep_now(trpi_worker *worker, uint64_t timeout)
{
    trpi_sched *sched = worker->sched;
    trpi_task *polled = NULL;

    while (!trpi_sched_is_stopping(sched) &&
           atomic_load_explicit(&worker->woken, memory_order_acquire) == WOKEN_NOT) {
        if (UNLIKELY(worker->seated)) {
            polled = trpi_seat_wait(sched, timeout);
            if (polled != NULL || timeout != 0) {
                break;
            }
        } else if (!trpi_futex_wait(&worker->woken, WOKEN_NOT, timeout)) {
            break;
        }
    }
    return polled;
}

/* Sleep once; searching before and after. Return why it ended (WOKEN_*); *ret_task: a task that was
 * found before the sleep, or a call that a report made ready. */
static uint32_t
sleep_once(trpi_worker *worker, trpi_task **ret_task)
{
    trpi_sched *sched = worker->sched;
    uint64_t timeout = sleepers_add(sched, worker);
    trpi_task *polled = NULL;

    worker->probe_run_ns = 0;
    (void)atomic_fetch_sub_explicit(&sched->searching, 1, SEQ_CST);
    trpi_fence(sched); /* sleep-L1 */
    *ret_task = shared_take(worker);
    if (*ret_task == NULL) {
        polled = sleep_now(worker, timeout);
    }
    if (worker->seated) {
        trpi_seat_give(sched);
    }
    sleepers_leave(sched, worker);
    trpi_worker_awake(worker);
    if (polled != NULL) {
        *ret_task = trpi_poll_submit(worker, polled);
    }
    if (*ret_task == NULL && timeout == TRPI_TRIM_NS &&
        atomic_load_explicit(&sched->sleepers, RELAXED) + 1 == sched->pool_count) {
        trpi_trim(worker, TRPI_TRIMS_ALL); /* no worker had anything to do meanwhile */
    }
    return atomic_load_explicit(&worker->woken, memory_order_acquire);
}

/* The worker is idle after it ran stolen tasks: note how long those runs were. */
static void
steal_judge(trpi_worker *worker, uint64_t now)
{
    uint64_t runs = atomic_load_explicit(&worker->progress, RELAXED) - worker->steal_progress;

    if (worker->steal_ns != 0 && runs != 0) {
        worker->probe_run_ns = (now - worker->steal_ns) / runs + 1;
    }
    worker->steal_ns = 0;
}

trpi_task *
trpi_search(trpi_worker *worker)
{
    trpi_sched *sched = worker->sched;
    uint64_t start = trpi_sched_now(sched);
    trpi_task *task = NULL;
    bool in_vain = false;

    steal_judge(worker, start);
    (void)atomic_fetch_add_explicit(&sched->searching, 1, SEQ_CST);
    while (task == NULL &&
           worker->index < atomic_load_explicit(&sched->limit, RELAXED)) { /* it is 0 at the end */
        /* release: a quiescent state as after a run (retire.c) */
        atomic_store_explicit(&worker->progress,
                              atomic_load_explicit(&worker->progress, RELAXED) + 1,
                              memory_order_release);
        task = shared_take(worker);
        if (task == NULL && UNLIKELY(atomic_load_explicit(&sched->poll, RELAXED) != NULL)) {
            task = trpi_poll_look(worker);
        }
        if (task == NULL) {
            bool is_short = false;

            task = victims_steal(worker, &is_short);
            atomic_store_explicit(&sched->wake_suppressed, task == NULL && (is_short || in_vain),
                                  RELAXED);
        }
        if (task != NULL) {
            break;
        }
        uint64_t now = trpi_sched_now(sched);
        if (now - start < TRPI_SPIN_NS) {
            /* a thread of ours, or another process, may need the core; if one took it, look at
             * once */
            (void)sched_yield();
            spin_until(sched, now + TRPI_SPIN_PAUSE_NS);
            continue;
        }
        if (worker->trims == 0) {
            trpi_trim(worker, TRPI_TRIMS_OWN);
        }
        in_vain = sleep_once(worker, &task) == WOKEN_TO_SEARCH;
        if (in_vain) {                     /* reset by the task that is found */
            start = trpi_sched_now(sched); /* woken for a task: spin again */
        }
    }
    searching_leave(worker);
    if (task != NULL) {
        worker->trims = 0;
    }
    return task;
}
