/* loop.c - what a worker's thread does: the next task, its run, and the loops of other workers.
 *
 * Shape.   next(): slot (at most 64 times in a row) -> ring -> slot -> injection queue -> deferred
 *          -> search. The injection queue comes first every 61 runs, so that foreign wake-ups are
 *          not starved. A worker whose index is not below the limit sits out (gang.c).
 * Tests.   tests/unit/sched/sched_test.c
 */
#include "sched/worker.h"

#include "base/atomics.h"

static inline trpi_task *
next(trpi_worker *worker)
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
        if (worker->gang_countdown-- == 0) {
            trpi_gang_look(worker);
            worker->gang_countdown = worker->gang_stride;
        }
        task = trpi_inject_pop(worker, 1);
    }
    if (LIKELY(task == NULL)) {
        task = trpi_own_take(worker);
    }
    if (UNLIKELY(task == NULL)) {
        task = trpi_inject_pop(worker, TRPI_INJECT_SHARE);
    }
    return LIKELY(task != NULL) ? task : trpi_defer_pop(worker);
}

/* A run is over: a quiescent state, and a sign of life. */
static inline void
ran(trpi_worker *worker)
{
    /* release: what the run read is read (retire.c). Plain read: we are the only writer. */
    atomic_store_explicit(&worker->progress, atomic_load_explicit(&worker->progress, RELAXED) + 1,
                          memory_order_release);
}

static inline trpi_run_result
run(trpi_worker *worker, trpi_task *task, uint32_t offer)
{
    const trpi_sched_ops *ops = worker->sched->options.ops;
    trpi_run_result result = ops->run(worker->data, task, offer);

    while (UNLIKELY(result == TRPI_RUN_ON)) {
        ran(worker);
        trpi_worker_hurry(worker, 1);
        result = ops->run(worker->data, task, offer);
    }
    return result;
}

static void
end_run(trpi_worker *worker, trpi_task *task, trpi_run_result result)
{
    if (result == TRPI_RUN_VAIN) {
        worker->keep_pause = TRPI_KEEP_PAUSE;
    } else if (UNLIKELY(result != TRPI_RUN_IDLE)) { /* it looks, too: saves a call */
        trpi_worker_settle(worker, task, result);
    }
    ran(worker);
}

/* Keep task (NULL: none), and run the one that was kept before: two that talk to one another go
 * through no queue and give nothing up, until others have waited long enough. */
static NOINLINE void
run_kept(trpi_worker *worker, trpi_task *task)
{
    const trpi_sched *sched = worker->sched;
    trpi_run_result (*const run_task)(void *, trpi_task *, uint32_t) = sched->options.ops->run;
    const uint32_t index = worker->index;
    uint32_t kept = task != NULL ? task->id : TRPI_OFFER_KEEP;

    while ((task = trpi_keep(worker, task)) != NULL) {
        uint32_t countdown = atomic_load_explicit(&worker->inject_countdown, RELAXED);
        trpi_run_result result;

        if (UNLIKELY(countdown == 0 || index >= atomic_load_explicit(&sched->limit, RELAXED))) {
            trpi_ring_push(worker, task);
            return;
        }
        atomic_store_explicit(&worker->inject_countdown, countdown - 1, RELAXED);
        result = run_task(worker->data, task, kept);
        if (UNLIKELY(result != TRPI_RUN_KEPT)) {
            end_run(worker, task, result);
            return;
        }
        ran(worker);
        if (UNLIKELY(atomic_load_explicit(&worker->slot, RELAXED) != NULL)) {
            trpi_ring_push(worker, task);
            return;
        }
        kept = task->id;
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
            trpi_gang_sit_out(worker);
            continue;
        }
        task = next(worker);
        if (UNLIKELY(task == NULL)) {
            task = trpi_keep(worker, NULL); /* nobody told it anything, most likely */
            if (task == NULL && (task = trpi_search(worker)) == NULL) {
                continue;
            }
        }
        result = run(worker, task, worker->keep_pause == 0 ? TRPI_OFFER_KEEP : TRPI_OFFER_NONE);
        worker->keep_pause -= worker->keep_pause != 0;
        if (result == TRPI_RUN_KEPT) {
            ran(worker);
            run_kept(worker, task);
        } else {
            end_run(worker, task, result);
            if (UNLIKELY(atomic_load_explicit(&worker->keeper.task, RELAXED) != NULL)) {
                run_kept(worker, NULL);
            }
        }
    }
}
