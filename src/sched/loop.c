/* loop.c - the loop of a pool worker: take the next task, run it, queue it again.
 *
 * Shape.   task_next(): slot (at most 64 times in a row) -> ring -> slot -> injection queue ->
 *          deferred -> search. The injection queue comes first every 61 runs, so that foreign
 *          wake-ups are not starved. A worker with an index not below the limit is parked
 *          (parallelism.c).
 * Tests.   tests/unit/sched/sched_test.c
 */
#include "sched/worker.h"

#include "base/atomics.h"

/* Look for reports of sockets, too. Return task (NULL: none), or the first that they made ready. */
static NOINLINE trpi_task *
task_polled(trpi_worker *worker, trpi_task *task)
{
    trpi_task *polled = trpi_poll_busy(worker);

    if (task == NULL || polled == NULL) {
        return task != NULL ? task : polled;
    }
    trpi_ring_push(worker, polled);
    return task;
}

static inline trpi_task *
task_next(trpi_worker *worker)
{
    trpi_task *task = NULL;
    uint32_t countdown;

    if (UNLIKELY(atomic_load_explicit(&worker->deferred.count, RELAXED) != 0)) {
        trpi_defer_age(worker);
    }
    countdown = atomic_load_explicit(&worker->inject_countdown, RELAXED);
    if (LIKELY(countdown != 0)) {
        atomic_store_explicit(&worker->inject_countdown, countdown - 1, RELAXED);
    } else {
        atomic_store_explicit(&worker->inject_countdown, TRPI_INJECT_RUNS, RELAXED);
        if (worker->parallelism_countdown-- == 0) {
            trpi_parallelism_adjust(worker);
            worker->parallelism_countdown = worker->parallelism_stride;
        }
        task = trpi_inject_pop(worker, 1);
        if (UNLIKELY(atomic_load_explicit(&worker->sched->poll, RELAXED) != NULL)) {
            task = task_polled(worker, task);
        }
    }
    if (LIKELY(task == NULL)) {
        task = trpi_local_take(worker);
    }
    if (UNLIKELY(task == NULL)) {
        task = trpi_inject_pop(worker, TRPI_INJECT_SHARE);
    }
    return LIKELY(task != NULL) ? task : trpi_defer_pop(worker);
}

/* Count an ended run: a quiescent state, and progress that thieves see. */
static inline void
run_note_end(trpi_worker *worker)
{
    /* release: the run's reads are done (retire.c). Plain read: this thread is the only writer. */
    atomic_store_explicit(&worker->progress, atomic_load_explicit(&worker->progress, RELAXED) + 1,
                          memory_order_release);
}

static inline trpi_run_result
task_run(trpi_worker *worker, trpi_task *task, uint32_t handoff)
{
    const trpi_sched_ops *ops = worker->sched->options.ops;
    trpi_run_result result = ops->run(worker->data, task, handoff);

    while (UNLIKELY(result == TRPI_RUN_CONTINUE)) {
        run_note_end(worker);
        trpi_worker_hurry(worker, 1);
        result = ops->run(worker->data, task, handoff);
    }
    return result;
}

static void
run_finish(trpi_worker *worker, trpi_task *task, trpi_run_result result)
{
    if (result == TRPI_RUN_NO_WORK) {
        worker->handoff_pause = TRPI_HANDOFF_PAUSE;
    } else if (UNLIKELY(result != TRPI_RUN_IDLE)) { /* settle tests that again: saves a call */
        trpi_worker_settle(worker, task, result);
    }
    run_note_end(worker);
}

/* Retain task (NULL: none), and run the one that was retained before: two actors that talk to each
 * other pass no queue and keep their tokens, until other tasks have waited long enough. */
static NOINLINE void
run_retained(trpi_worker *worker, trpi_task *task)
{
    const trpi_sched *sched = worker->sched;
    trpi_run_result (*const run_task)(void *, trpi_task *, uint32_t) = sched->options.ops->run;
    const uint32_t index = worker->index;
    uint32_t retained = task != NULL ? task->id : TRPI_HANDOFF_NO_PEER;

    while ((task = trpi_handoff_exchange(worker, task)) != NULL) {
        uint32_t countdown = atomic_load_explicit(&worker->inject_countdown, RELAXED);
        trpi_run_result result;

        if (UNLIKELY(countdown == 0 || index >= atomic_load_explicit(&sched->limit, RELAXED))) {
            trpi_ring_push(worker, task);
            return;
        }
        atomic_store_explicit(&worker->inject_countdown, countdown - 1, RELAXED);
        result = run_task(worker->data, task, retained);
        if (UNLIKELY(result != TRPI_RUN_RETAINED)) {
            run_finish(worker, task, result);
            return;
        }
        run_note_end(worker);
        if (UNLIKELY(atomic_load_explicit(&worker->slot, RELAXED) != NULL)) {
            trpi_ring_push(worker, task);
            return;
        }
        retained = task->id;
    }
}

void
trpi_worker_loop(trpi_worker *worker)
{
    trpi_sched *sched = worker->sched;

    if (worker->group != NULL) {
        trpi_group_loop(worker);
        return;
    }
    if (worker->affine != NULL) {
        trpi_affine_loop(worker);
        return;
    }
    if (worker->is_private) {
        trpi_private_loop(worker);
        return;
    }
    if (sched->driven) {
        trpi_driven_loop(worker);
        return;
    }
    trpi_worker_awake(worker);
    for (;;) {
        uint32_t limit = atomic_load_explicit(&sched->limit, RELAXED);
        trpi_run_result result;
        trpi_task *task;

        if (UNLIKELY(worker->index >= limit)) {
            if (limit == 0) {
                return;
            }
            trpi_parallelism_park(worker);
            continue;
        }
        task = task_next(worker);
        if (UNLIKELY(task == NULL)) {
            task = trpi_handoff_exchange(worker, NULL); /* most likely nobody told it anything */
            if (task == NULL && (task = trpi_search(worker)) == NULL) {
                continue;
            }
        }
        result = task_run(worker, task,
                          worker->handoff_pause == 0 ? TRPI_HANDOFF_NO_PEER : TRPI_HANDOFF_OFF);
        worker->handoff_pause -= worker->handoff_pause != 0;
        if (result == TRPI_RUN_RETAINED) {
            run_note_end(worker);
            run_retained(worker, task);
        } else {
            run_finish(worker, task, result);
            if (UNLIKELY(atomic_load_explicit(&worker->handoff.task, RELAXED) != NULL)) {
                run_retained(worker, NULL);
            }
        }
    }
}
