/* private.c - workers with a thread and a FIFO of their own: pinned actors, the "system"
 * dispatcher.
 *
 * Why.     A pinned actor may block; the system dispatcher must not wait behind user load. Neither
 *          steals nor is stolen from.
 * Must hold.
 *   private-P1  task.home of a private task is the index of its worker as long as the task can be
 *       submitted; a released worker's thread ends only with an empty queue, and its index is
 *       reused only after that.
 *   private-P2  A task of the pool is lent only to a worker that sleeps, so nothing that runs there
 *       delays it; if it wants to run again it goes to the pool (trpi_worker_settle).
 *   private-P3  A thread is woken when the lock of its queue is free: else it goes to sleep again
 *       at once, for the lock. A worker's memory lives as long as its scheduler.
 * Threads. queue_lock guards queue and released; private_lock the table of indices. None is taken
 *          while the other is held.
 * Limits.  TRPI_PRIVATE_MAX at one time.
 * Tests.   tests/unit/sched/sched_test.c
 */
#include <stdio.h>
#include <time.h>

#include "base/assert.h"
#include "sched/worker.h"

#define NAP_NS 200000 /* within TRPI_DEFER_NS_MAX */

void
trpi_private_push(trpi_sched *sched, trpi_task *task)
{
    uint16_t home = atomic_load_explicit(&task->home, memory_order_relaxed);
    trpi_worker *worker = trpi_sched_worker(sched, home);

    if (sched->driven) {
        trpi_inject_push(sched, task);
        return;
    }
    trpi_assert(worker != NULL && worker->is_private);
    if (worker->affine != NULL) {
        trpi_affine_push(worker, task);
        return;
    }
    pthread_mutex_lock(&worker->queue_lock);
    trpi_task_list_push(&worker->queue, task);
    pthread_mutex_unlock(&worker->queue_lock);
    pthread_cond_signal(&worker->queue_cond); /* private-P3 */
}

bool
trpi_sched_lend(trpi_sched *sched, trpi_task *task)
{
    /* acquire: a worker that was made whole */
    trpi_worker *worker = atomic_load_explicit(&sched->helper, memory_order_acquire);
    bool lent = false;

    trpi_assert(task->dispatch == TRPI_DISPATCH_POOL);
    if (worker == NULL || !trpi_all_asleep(sched) ||
        pthread_mutex_trylock(&worker->queue_lock) != 0) {
        return false;
    }
    if (atomic_load_explicit(&worker->asleep, memory_order_relaxed) &&
        !trpi_sched_is_stopping(sched)) {
        trpi_task_list_push(&worker->queue, task);
        lent = true;
    }
    pthread_mutex_unlock(&worker->queue_lock);
    if (lent) {
        pthread_cond_signal(&worker->queue_cond); /* private-P3 */
    }
    return lent;
}

static trpi_task *
private_next(trpi_worker *worker)
{
    trpi_task *task = NULL;

    pthread_mutex_lock(&worker->queue_lock);
    while (!trpi_sched_is_stopping(worker->sched)) {
        task = trpi_task_list_pop(&worker->queue);
        if (task != NULL || worker->released) {
            break;
        }
        atomic_store_explicit(&worker->asleep, true,
                              memory_order_seq_cst); /* quiescent (retire.c) */
        pthread_cond_wait(&worker->queue_cond, &worker->queue_lock);
        atomic_store_explicit(&worker->asleep, false, memory_order_seq_cst);
    }
    pthread_mutex_unlock(&worker->queue_lock);
    trpi_worker_awake(worker);
    return task;
}

/* Back off: the task told an overloaded receiver and there is no other task here. */
static void
private_nap(trpi_worker *worker)
{
    uint64_t until_ns = trpi_sched_now(worker->sched) + NAP_NS;
    struct timespec until = { (time_t)(until_ns / 1000000000u), (long)(until_ns % 1000000000u) };

    pthread_mutex_lock(&worker->queue_lock);
    if (worker->queue.first == NULL && !trpi_sched_is_stopping(worker->sched)) {
        pthread_cond_timedwait(&worker->queue_cond, &worker->queue_lock, &until);
    }
    pthread_mutex_unlock(&worker->queue_lock);
}

void
trpi_private_loop(trpi_worker *worker)
{
    trpi_sched *sched = worker->sched;
    trpi_task *task;

    while ((task = private_next(worker)) != NULL) {
        trpi_run_result result = sched->options.ops->run(worker->data, task, TRPI_HANDOFF_OFF);

        if (result == TRPI_RUN_DEFER) {
            private_nap(worker);
        }
        trpi_worker_settle(worker, task, result);
        /* release: as in trpi_worker_loop() */
        atomic_store_explicit(&worker->progress,
                              atomic_load_explicit(&worker->progress, memory_order_relaxed) + 1,
                              memory_order_release);
    }
    atomic_store_explicit(&worker->asleep, true, memory_order_seq_cst); /* for good */
}

/* Take an index whose thread has ended, or a new one. */
static trp_err
private_index(trpi_sched *sched, uint16_t *ret_index)
{
    trp_err err = TRP_OK;

    pthread_mutex_lock(&sched->private_lock);
    if (sched->private_free_count > 0) {
        *ret_index = sched->private_free[--sched->private_free_count];
    } else if (sched->private_count < TRPI_PRIVATE_MAX) {
        *ret_index = (uint16_t)(sched->pool_count + sched->private_count++);
    } else {
        err = TRP_ELIMIT;
    }
    pthread_mutex_unlock(&sched->private_lock);
    return err;
}

void
trpi_private_index_free(trpi_sched *sched, uint16_t index)
{
    pthread_mutex_lock(&sched->private_lock);
    sched->private_free[sched->private_free_count++] = index;
    pthread_mutex_unlock(&sched->private_lock);
}

trp_err
trpi_private_start(trpi_sched *sched, const trpi_private_options *options, struct trpi_group *group,
                   uint16_t *ret_index)
{
    trpi_worker *worker;
    uint16_t index;
    trp_err err;

    if (trpi_sched_is_stopping(sched)) {
        return TRP_ECLOSED;
    }
    if (sched->driven) {
        *ret_index = 0; /* one worker runs all */
        return TRP_OK;
    }
    err = private_index(sched, &index);
    if (err != TRP_OK) {
        return err;
    }
    worker = trpi_sched_worker(sched, index);
    if (worker == NULL) {
        err = trpi_worker_new(sched, index, true, &worker);
        if (err != TRP_OK) {
            trpi_private_index_free(sched, index);
            return err;
        }
        atomic_store_explicit(&sched->workers[index], worker, memory_order_release);
    } else if (worker->thread_made) {
        (void)pthread_join(worker->thread, NULL); /* it has left its loop (private-P1) */
        worker->thread_made = false;
    }
    worker->released = false;
    atomic_store_explicit(&worker->asleep, false, memory_order_seq_cst);
    worker->high_priority = options->high_priority;
    atomic_store_explicit(&worker->number, options->number, memory_order_relaxed);
    worker->group = group;
    if (options->name != NULL) {
        (void)snprintf(worker->name, sizeof worker->name, "%.6s-%.8s", sched->name, options->name);
    }
    err = options->affine ? trpi_affine_new(worker, options->affine_runs) : TRP_OK;
    if (err == TRP_OK) {
        err = trpi_worker_start(worker);
    }
    if (err != TRP_OK) {
        trpi_affine_free(worker);
        trpi_private_index_free(sched, index);
        return err;
    }
    if (options->helps) {
        atomic_store_explicit(&sched->helper, worker, memory_order_release);
    }
    *ret_index = index;
    return TRP_OK;
}

trp_err
trpi_sched_private_open(trpi_sched *sched, const trpi_private_options *options, uint16_t *ret_index)
{
    return trpi_private_start(sched, options, NULL, ret_index);
}

trp_err
trpi_sched_private_new(trpi_sched *sched, const char *name, bool high_priority, uint16_t *ret_index)
{
    trpi_private_options options = { name, high_priority, false, 0, 0, false };

    return trpi_private_start(sched, &options, NULL, ret_index);
}

void
trpi_sched_private_release(trpi_sched *sched, uint16_t index)
{
    trpi_worker *worker = trpi_sched_worker(sched, index);

    if (sched->driven) {
        return;
    }
    trpi_assert(worker != NULL && worker->is_private);
    pthread_mutex_lock(&worker->queue_lock);
    trpi_assert(!worker->released);
    worker->released = true;
    pthread_cond_signal(&worker->queue_cond);
    pthread_mutex_unlock(&worker->queue_lock);
    trpi_private_index_free(sched, index);
}

void
trpi_private_wake_all(trpi_sched *sched)
{
    for (uint32_t i = sched->pool_count; i < TRPI_POOL_MAX + TRPI_PRIVATE_MAX; i++) {
        trpi_worker *worker = trpi_sched_worker(sched, i);

        if (worker == NULL) {
            continue; /* this index is taken, and its worker is being made */
        }
        pthread_mutex_lock(&worker->queue_lock);
        pthread_cond_broadcast(&worker->queue_cond);
        pthread_mutex_unlock(&worker->queue_lock);
    }
    trpi_groups_wake_all(sched);
}
