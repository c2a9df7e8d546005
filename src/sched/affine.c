/* affine.c - affine workers, which run the same tasks for life, from four queues (as in Actor4j).
 *
 * Why.     A task that never changes its thread keeps its data in one cache, and tasks that the
 *          thread submits itself need no lock and no fence.
 * Shape.   directive   tasks with an urgent directive: first of all
 *          inner       submitted on this thread: a plain list
 *          outer       submitted by other workers    } under the lock; taken over as a whole
 *          server      submitted by other threads    } into a list without a lock (two levels)
 *          inner, outer and server take turns of `runs` tasks each.
 * Must hold.
 *   affine-A1  A task is in one of the lists; the lists in_hand belong to the thread.
 *   affine-A2  A thread that makes a task urgent sets the flag afterwards; the worker clears the
 *       flag before it scans its queues, so that one of the two sees the other.
 * Threads. queue_lock guards the lists of other threads; `urgent` is an atomic flag.
 * Cost.    inner: no atomic instruction but one load. A directive for a task that waits already:
 *          a scan of the waiting tasks.
 * Tests.   tests/unit/actor/affinity_test.c, tests/unit/sched/sched_test.c
 * Sources. Actor4j specification, Execution 1 to 6 (A4J-29 to -32).
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomics.h"
#include "sched/worker.h"

enum { INNER = 0, OUTER = 1, SERVER = 2, QUEUES = 3 };

typedef struct trpi_affine {
    uint32_t runs;       /* of one queue before the next one's */
    _Atomic bool urgent; /* affine-A2: seq_cst on both sides */
    /* queue_lock */
    trpi_task_list handed[QUEUES]; /* INNER is not used */
    _Atomic uint32_t handed_count; /* relaxed hint without the lock, exact with it */
    /* used by the worker's thread only */
    trpi_task_list directive, in_hand[QUEUES];
    uint32_t turn, turn_left;
} trpi_affine;

trp_err
trpi_affine_new(trpi_worker *worker, uint32_t runs)
{
    trpi_assert(worker->affine == NULL && runs > 0);
    worker->affine = trpi_alloc(sizeof *worker->affine);
    if (worker->affine == NULL) {
        return TRP_ENOMEM;
    }
    worker->affine->runs = runs;
    worker->affine->turn_left = runs;
    return TRP_OK;
}

void
trpi_affine_free(trpi_worker *worker)
{
    trpi_free(worker->affine);
    worker->affine = NULL;
}

void
trpi_affine_push(trpi_worker *worker, trpi_task *task)
{
    trpi_affine *affine = worker->affine;
    const trpi_worker *current = trpi_worker_current();
    int queue = current != NULL && current->sched == worker->sched ? OUTER : SERVER;

    if (current == worker) {
        trpi_task_list_push(&affine->in_hand[INNER], task);
        return;
    }
    pthread_mutex_lock(&worker->queue_lock);
    trpi_task_list_push(&affine->handed[queue], task);
    atomic_fetch_add_explicit(&affine->handed_count, 1, memory_order_relaxed);
    pthread_cond_signal(&worker->queue_cond);
    pthread_mutex_unlock(&worker->queue_lock);
}

void
trpi_sched_urgent(trpi_sched *sched, uint16_t home)
{
    trpi_worker *worker =
        home < TRPI_POOL_MAX + TRPI_PRIVATE_MAX ? trpi_sched_worker(sched, home) : NULL;

    if (worker != NULL && worker->affine != NULL) {
        /* no wake-up: a task waits in a queue, so the thread is awake */
        atomic_store_explicit(&worker->affine->urgent, true, memory_order_seq_cst); /* affine-A2 */
    }
}

/* Take over the tasks that other threads submitted. With the lock. */
static void
handed_take_over(trpi_affine *affine)
{
    trpi_task_list_append(&affine->in_hand[OUTER], &affine->handed[OUTER]);
    trpi_task_list_append(&affine->in_hand[SERVER], &affine->handed[SERVER]);
    atomic_store_explicit(&affine->handed_count, 0, memory_order_relaxed);
}

/* Move urgent tasks to the directive queue, in their order. */
static void
urgent_pick(trpi_worker *worker)
{
    trpi_affine *affine = worker->affine;
    const trpi_sched_ops *ops = worker->sched->options.ops;

    /* affine-A2: before the scan */
    atomic_store_explicit(&affine->urgent, false, memory_order_seq_cst);
    pthread_mutex_lock(&worker->queue_lock);
    handed_take_over(affine);
    pthread_mutex_unlock(&worker->queue_lock);
    for (int i = 0; i < QUEUES && ops->urgent != NULL; i++) {
        trpi_task_list rest = { NULL, NULL };
        trpi_task *task;

        while ((task = trpi_task_list_pop(&affine->in_hand[i])) != NULL) {
            trpi_task_list_push(ops->urgent(task) ? &affine->directive : &rest, task);
        }
        affine->in_hand[i] = rest;
    }
}

/* Take a task from the queue whose turn it is, else from the next one that is not empty. */
static trpi_task *
fair_take(trpi_affine *affine)
{
    for (int i = 0; i <= QUEUES; i++) {
        trpi_task *task =
            affine->turn_left > 0 ? trpi_task_list_pop(&affine->in_hand[affine->turn]) : NULL;

        if (task != NULL) {
            affine->turn_left--;
            return task;
        }
        affine->turn = (affine->turn + 1) % QUEUES;
        affine->turn_left = affine->runs;
    }
    return NULL;
}

static trpi_task *
affine_next(trpi_worker *worker)
{
    trpi_affine *affine = worker->affine;
    trpi_task *task;

    if (UNLIKELY(atomic_load_explicit(&affine->urgent, memory_order_seq_cst))) {
        urgent_pick(worker);
    }
    task = trpi_task_list_pop(&affine->directive);
    if (task != NULL) {
        return task;
    }
    if (atomic_load_explicit(&affine->handed_count, memory_order_relaxed) != 0) {
        pthread_mutex_lock(&worker->queue_lock);
        handed_take_over(affine);
        pthread_mutex_unlock(&worker->queue_lock);
    }
    return fair_take(affine);
}

/* false: the scheduler stops. */
static bool
affine_wait(trpi_worker *worker)
{
    pthread_mutex_lock(&worker->queue_lock);
    while (atomic_load_explicit(&worker->affine->handed_count, memory_order_relaxed) == 0 &&
           !trpi_sched_is_stopping(worker->sched)) {
        atomic_store_explicit(&worker->asleep, true,
                              memory_order_seq_cst); /* quiescent (retire.c) */
        pthread_cond_wait(&worker->queue_cond, &worker->queue_lock);
        atomic_store_explicit(&worker->asleep, false, memory_order_seq_cst);
    }
    pthread_mutex_unlock(&worker->queue_lock);
    return !trpi_sched_is_stopping(worker->sched);
}

void
trpi_affine_loop(trpi_worker *worker)
{
    trpi_sched *sched = worker->sched;

    while (!trpi_sched_is_stopping(sched)) {
        trpi_task *task = affine_next(worker);

        if (task == NULL) {
            if (!affine_wait(worker)) {
                break;
            }
            continue;
        }
        trpi_worker_awake(worker);
        trpi_worker_settle(worker, task,
                           sched->options.ops->run(worker->data, task, TRPI_HANDOFF_OFF));
        /* release: as in trpi_worker_loop() */
        atomic_store_explicit(&worker->progress,
                              atomic_load_explicit(&worker->progress, memory_order_relaxed) + 1,
                              memory_order_release);
    }
    atomic_store_explicit(&worker->asleep, true, memory_order_seq_cst); /* for good */
}
