/* queue.c - where ready tasks wait: the LIFO slot, the ring, the injection queue, the deferred.
 *
 * Shape.   slot: one task, the one that the present run woke last: hot in this core's cache.
 *          ring: 256 tasks, FIFO; the owner pushes by plain store, everybody pops by CAS on
 *          ring_head. injection queue: unbounded, one for all, behind a lock: overflow and foreign
 *          wake-ups. deferred: tasks that told an overloaded receiver, at the worker that ran the
 *          receiver last.
 * Must hold.
 *   Q1  The slot belongs to its owner between busy = 1 and busy = 0; a thief owns it between
 *       steal_req = 1, a membarrier that finds busy == 0, and steal_req = 0. The owner's side has
 *       plain stores and a compiler fence only: membarrier makes the owner's core pass a full
 *       barrier, so that either the owner sees steal_req, or the thief sees busy (Dekker with the
 *       fence on the thief's side).
 *   Q2  Entries ring_head .. ring_tail - 1 are not written until ring_head has passed them, so a
 *       thief may copy them before its CAS proves that they were its.
 *   Q3  The order of a push is: task into the queue, seq_cst fence, look for sleepers; of a
 *       sleeper: be counted as sleeper, seq_cst fence, look at the queues. One of the two sees the
 *       other.   (sleep.c)
 * Cost.    slot: no atomic RMW. ring: push a store, pop a CAS (a store when the pool has one
 *          worker).
 * Tests.   tests/unit/sched/sched_test.c; tests/stress/churn_test.c
 */
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/membarrier.h>

#include "base/assert.h"
#include "sched/worker.h"

#define RELAXED memory_order_relaxed
#define ACQUIRE memory_order_acquire
#define RELEASE memory_order_release

/* How long a thief waits for the owner to leave the slot: the owner is there for a few
 * instructions; if it was preempted there, the thief gives up. */
#define STEAL_SPINS 1000

trpi_task *
trpi_slot_steal(trpi_worker *victim)
{
    trpi_task *task = NULL;
    uint32_t none = 0;

    if (!victim->sched->membarrier) {
        return atomic_exchange_explicit(&victim->slot, NULL, memory_order_acq_rel);
    }
    /* acquire: pairs with the release of the thief before us */
    if (!atomic_compare_exchange_strong_explicit(&victim->steal_req, &none, 1, memory_order_acq_rel,
                                                 RELAXED)) {
        return NULL;
    }
    (void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0,
                  0); /* registered at start: cannot fail */
    for (int i = 0; i < STEAL_SPINS; i++) {
        if (atomic_load_explicit(&victim->busy, ACQUIRE) == 0) { /* Q1: the slot is ours */
            task = atomic_load_explicit(&victim->slot, RELAXED);
            if (task != NULL) {
                atomic_store_explicit(&victim->slot, NULL, RELAXED);
            }
            break;
        }
        trpi_pause();
    }
    atomic_store_explicit(&victim->steal_req, 0, RELEASE);
    return task;
}

/* ---- ring ------------------------------------------------------------------------------------ */

void
trpi_ring_push(trpi_worker *worker, trpi_task *task)
{
    uint32_t tail = atomic_load_explicit(&worker->ring_tail, RELAXED);
    /* acquire: pairs with the pop's CAS; the entry that we overwrite was read */
    uint32_t head = atomic_load_explicit(&worker->ring_head, ACQUIRE);

    if (TRPI_UNLIKELY(tail - head >= TRPI_RING_TASKS)) {
        trpi_sched_inject(worker->sched, task);
        return;
    }
    atomic_store_explicit(&worker->ring[tail % TRPI_RING_TASKS], task, RELAXED);
    /* release: pairs with the thief's acquire of ring_tail; the entry and the task are written */
    atomic_store_explicit(&worker->ring_tail, tail + 1, RELEASE);
    if (!worker->alone && tail != head) { /* one waited already: there is something to share (Q3) */
        trpi_wake_for_push(worker->sched);
    }
}

trpi_task *
trpi_ring_pop(trpi_worker *worker)
{
    for (;;) {
        uint32_t head = atomic_load_explicit(&worker->ring_head, ACQUIRE);
        uint32_t tail = atomic_load_explicit(&worker->ring_tail, RELAXED);
        trpi_task *task;

        if (head == tail) {
            return NULL;
        }
        task = atomic_load_explicit(&worker->ring[head % TRPI_RING_TASKS], RELAXED);
        if (worker->alone) {
            atomic_store_explicit(&worker->ring_head, head + 1, RELAXED);
            return task;
        }
        if (atomic_compare_exchange_strong_explicit(&worker->ring_head, &head, head + 1,
                                                    memory_order_acq_rel, RELAXED)) {
            return task;
        }
    }
}

/* Take half of victim's ring, if it has at_least tasks: the first is returned, the others go to the
 * thief's. */
trpi_task *
trpi_ring_steal(trpi_worker *thief, trpi_worker *victim, uint32_t at_least)
{
    trpi_task *taken[TRPI_RING_TASKS / 2];
    uint32_t head = atomic_load_explicit(&victim->ring_head, ACQUIRE);
    /* acquire: pairs with the push's release; the entries below tail are written */
    uint32_t tail = atomic_load_explicit(&victim->ring_tail, ACQUIRE);
    uint32_t length = tail - head;
    uint32_t count = (length + 1) / 2;

    if (length < at_least || length == 0 ||
        length > TRPI_RING_TASKS) { /* > : head moved between the loads */
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        taken[i] = atomic_load_explicit(&victim->ring[(head + i) % TRPI_RING_TASKS], RELAXED);
    }
    if (!atomic_compare_exchange_strong_explicit(&victim->ring_head, &head, head + count,
                                                 memory_order_acq_rel, RELAXED)) { /* Q2 */
        return NULL;
    }
    for (uint32_t i = 1; i < count; i++) {
        trpi_ring_push(thief, taken[i]);
    }
    return taken[0];
}

/* ---- injection queue ------------------------------------------------------------------------- */

void
trpi_sched_inject(trpi_sched *sched, trpi_task *task)
{
    if (task->dispatch == TRPI_DISPATCH_PRIVATE) {
        trpi_private_push(sched, task);
        return;
    }
    trpi_inject_push(sched, task);
}

void
trpi_inject_push(trpi_sched *sched, trpi_task *task)
{
    (void)pthread_mutex_lock(&sched->inject_lock);
    trpi_task_list_push(&sched->inject, task);
    atomic_fetch_add_explicit(&sched->inject_count, 1, RELAXED);
    (void)pthread_mutex_unlock(&sched->inject_lock);
    trpi_wake_for_push(sched); /* Q3 */
}

trpi_task *
trpi_inject_pop(trpi_sched *sched)
{
    trpi_task *task;

    if (atomic_load_explicit(&sched->inject_count, RELAXED) == 0) {
        return NULL;
    }
    (void)pthread_mutex_lock(&sched->inject_lock);
    task = trpi_task_list_pop(&sched->inject);
    if (task != NULL) {
        atomic_fetch_sub_explicit(&sched->inject_count, 1, RELAXED);
    }
    (void)pthread_mutex_unlock(&sched->inject_lock);
    return task;
}

void
trpi_sched_ready(trpi_worker *worker, trpi_task *task)
{
    trpi_assert_slow(worker == trpi_worker_current());
    if (TRPI_UNLIKELY(task->dispatch == TRPI_DISPATCH_PRIVATE || worker->is_private)) {
        trpi_sched_inject(worker->sched, task);
        return;
    }
    trpi_slot_put(worker, task);
}

/* ---- deferred -------------------------------------------------------------------------------- */

void
trpi_defer_push(trpi_worker *at, trpi_task *task)
{
    trpi_waiting *deferred = &at->deferred;

    (void)pthread_mutex_lock(&deferred->lock);
    trpi_task_list_push(&deferred->young, task);
    atomic_fetch_add_explicit(&deferred->count, 1, RELAXED);
    (void)pthread_mutex_unlock(&deferred->lock);
    trpi_wake_worker(at); /* Q3: the pair of its last look before sleep */
}

trpi_task *
trpi_defer_pop(trpi_worker *at)
{
    trpi_waiting *deferred = &at->deferred;
    trpi_task *task;

    if (atomic_load_explicit(&deferred->count, RELAXED) == 0) {
        return NULL;
    }
    (void)pthread_mutex_lock(&deferred->lock);
    task = trpi_task_list_pop(&deferred->due);
    if (task == NULL) {
        task = trpi_task_list_pop(&deferred->old);
    }
    if (task == NULL) {
        task = trpi_task_list_pop(&deferred->young);
    }
    if (task != NULL) {
        atomic_fetch_sub_explicit(&deferred->count, 1, RELAXED);
    }
    (void)pthread_mutex_unlock(&deferred->lock);
    return task;
}

static void
list_append(trpi_task_list *list, trpi_task_list *more)
{
    if (more->first != NULL) {
        if (list->last != NULL) {
            list->last->run_next = more->first;
        } else {
            list->first = more->first;
        }
        list->last = more->last;
    }
    *more = (trpi_task_list){ NULL, NULL };
}

/* Half a bound per age: a task that becomes young just after the turn of an age waits two of them.
 * What is due goes to the end of the ring, one at a time: the receiver that it waited for has a
 * turn for each turn of a due sender, so that a hundred due senders do not bury it. */
void
trpi_defer_age(trpi_worker *worker)
{
    trpi_waiting *deferred = &worker->deferred;
    uint64_t now = trpi_sched_now(worker->sched);
    bool turn = now - deferred->age_ns >= TRPI_DEFER_NS_MAX / 2;
    uint32_t head = atomic_load_explicit(&worker->ring_head, RELAXED);
    bool passed = (int32_t)(head - deferred->due_place) > 0;
    trpi_task *task = NULL;

    if (!turn && !(passed && deferred->any_due)) {
        return;
    }
    (void)pthread_mutex_lock(&deferred->lock);
    if (turn) {
        list_append(&deferred->due, &deferred->old);
        list_append(&deferred->old, &deferred->young);
        deferred->age_ns = now;
    }
    if (passed) {
        task = trpi_task_list_pop(&deferred->due);
        if (task != NULL) {
            atomic_fetch_sub_explicit(&deferred->count, 1, RELAXED);
        }
    }
    deferred->any_due = deferred->due.first != NULL;
    (void)pthread_mutex_unlock(&deferred->lock);
    if (task != NULL) {
        deferred->due_place = atomic_load_explicit(&worker->ring_tail, RELAXED);
        trpi_ring_push(worker, task);
    }
}
