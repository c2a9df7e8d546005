/* queue_check.c - the invariants of a worker's run queue, as its owner sees it.
 *
 * Why.     Between trpi_slot_enter() and trpi_slot_leave() no thief touches slot, retained task and
 *          ring_head (queue-Q1), so values read there are consistent.
 * Cost.    A walk over the first WALKED tasks of the ring; in builds with a sanitizer alone.
 * Tests.   tests/unit/sched/queue_test.c
 */
#include "base/check.h"
#include "sched/worker.h"

#define WALKED 16u

const char *
trpi_run_queue_check(trpi_worker *worker, trpi_check *check)
{
    uint32_t length = trpi_ring_length(worker);
    uint32_t head = atomic_load_explicit(&worker->ring_head, memory_order_relaxed);
    const trpi_task *slot = atomic_load_explicit(&worker->slot, memory_order_relaxed);
    const trpi_task *retained = atomic_load_explicit(&worker->handoff.task, memory_order_relaxed);
    const trpi_task *before = NULL;

    if (atomic_load_explicit(&worker->handoff.busy, memory_order_relaxed) == 0) {
        return trpi_check_broken(check, "queue-Q1: worker %u reads its queue without entering it",
                                 worker->index);
    }
    if (length > TRPI_RING_TASKS) {
        return trpi_check_broken(check, "queue-Q2: %u tasks in the ring of worker %u", length,
                                 worker->index);
    }
    if (slot != NULL && slot == retained) {
        return trpi_check_broken(
            check, "sched-S1: the task in the slot of worker %u is also retained", worker->index);
    }
    for (uint32_t i = 0; i < length && i < WALKED; i++) {
        const trpi_task *task =
            atomic_load_explicit(&worker->ring[(head + i) % TRPI_RING_TASKS], memory_order_relaxed);
        if (task == NULL) {
            return trpi_check_broken(check, "queue-Q2: place %u of %u in the ring is empty", i,
                                     length);
        }
        if (task == slot || task == retained || task == before) {
            return trpi_check_broken(check, "sched-S1: the task at %u of %u in the ring is also %s",
                                     i, length,
                                     task == slot       ? "in the slot"
                                     : task == retained ? "retained"
                                                        : "before it");
        }
        before = task;
    }
    return NULL;
}
