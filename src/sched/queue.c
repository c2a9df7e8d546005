/* queue.c - run queues: the LIFO slot, the ring, the injection queue, deferred tasks; stealing.
 *
 * Shape.   slot: the task that the present run woke last: hot in this core's cache.
 *          retained: the task that ran before and has nothing to do: it will soon be told, most
 *          likely.
 *          ring: 256 tasks, FIFO; when it is full its older half overflows to the injection queue.
 *          injection queue: unbounded, one for all workers, behind a lock: overflow and foreign
 *          wake-ups.
 *          deferred: tasks that told an overloaded receiver, at the worker that ran the
 *          receiver last.
 * Must hold.
 *   queue-Q1  The slot, the retained task and ring_head belong to the worker between busy = 1 and
 *       busy = 0; to a thief between steal_req = 1, a membarrier after which busy == 0, and
 *       steal_req = 0. The worker's side has plain stores and a compiler fence only: membarrier
 *       makes its core pass a full barrier, so that either the worker sees steal_req, or the thief
 *       sees busy (a Dekker pair with the fence on the thief's side).
 *   queue-Q2  ring_tail is the owner's. Entries ring_head .. ring_tail - 1 are not written until
 *       ring_head has passed them.
 *   queue-Q3  The order of a push is: enqueue the task, seq_cst fence, read sleepers; of a worker
 *       that goes to sleep: count itself, seq_cst fence, read the queues. One of the two sees the
 *       other.   (sleep.c)
 * Cost.    slot and ring: no atomic read-modify-write for the owner; a steal is a system call and
 *          interrupts the other cores, so it takes half a ring.
 * Tests.   tests/unit/sched/queue_test.c, sched_test.c; tests/stress/churn_test.c
 */
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/membarrier.h>

#include "base/atomics.h"
#include "base/check.h"
#include "sched/worker.h"

/* How long a thief waits for the owner, which needs a few instructions; if the owner was preempted
 * there, the thief gives up. */
#define STEAL_SPINS 1000

/* The owner's side of queue-Q1 while a thief has requested access, or without membarrier. */
void
trpi_slot_enter_slow(trpi_worker *worker)
{
    for (;;) {
        trpi_fence(worker->sched);
        if (atomic_load_explicit(&worker->handoff.steal_req, ACQUIRE) == 0) {
            return;
        }
        atomic_store_explicit(&worker->handoff.busy, 0, RELEASE);
        while (atomic_load_explicit(&worker->handoff.steal_req, ACQUIRE) != 0) {
            trpi_cpu_relax();
        }
        atomic_store_explicit(&worker->handoff.busy, 1, RELAXED);
    }
}

/* ---- work stealing --------------------------------------------------------------------------- */

/* The thief's side of queue-Q1. true: slot and ring_head are ours until thief_leave(). */
static bool
thief_enter(trpi_worker *victim)
{
    uint32_t none = 0;

    /* acquire: pairs with the release of the thief before us */
    if (!atomic_compare_exchange_strong_explicit(&victim->handoff.steal_req, &none, 1,
                                                 memory_order_seq_cst, RELAXED)) {
        return false;
    }
    if (victim->sched->membarrier) {
        (void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0,
                      0); /* registered at start: cannot fail */
    } else {
        trpi_fence(victim->sched);
    }
    for (int i = 0; i < STEAL_SPINS; i++) {
        if (atomic_load_explicit(&victim->handoff.busy, ACQUIRE) == 0) {
            return true;
        }
        trpi_cpu_relax();
    }
    atomic_store_explicit(&victim->handoff.steal_req, 0, RELEASE);
    return false;
}

static void
thief_leave(trpi_worker *victim)
{
    atomic_store_explicit(&victim->handoff.steal_req, 0, RELEASE);
}

static trpi_task *
steal_from(trpi_worker *victim, _Atomic(trpi_task *) *from)
{
    trpi_task *task;

    if (atomic_load_explicit(from, RELAXED) == NULL || !thief_enter(victim)) {
        return NULL;
    }
    task = atomic_load_explicit(from, RELAXED);
    atomic_store_explicit(from, NULL, RELAXED);
    thief_leave(victim);
    return task;
}

trpi_task *
trpi_slot_steal(trpi_worker *victim)
{
    bool slot = atomic_load_explicit(&victim->slot, RELAXED) != NULL;

    return steal_from(victim, slot ? &victim->slot : &victim->handoff.task);
}

trpi_task *
trpi_retained_steal(trpi_worker *victim)
{
    return steal_from(victim, &victim->handoff.task);
}

/* Steal half of the victim's ring, at most `at_most` tasks, if it has at_least tasks: return the
 * first, push the others to the thief's ring. */
trpi_task *
trpi_ring_steal(trpi_worker *thief, trpi_worker *victim, uint32_t at_least, uint32_t at_most)
{
    trpi_task *taken[TRPI_RING_TASKS / 2];
    uint32_t head, length, count = 0;

    if (trpi_ring_length(victim) < at_least || !thief_enter(victim)) {
        return NULL;
    }
    head = atomic_load_explicit(&victim->ring_head, RELAXED);
    /* acquire: pairs with the push's release; the entries below tail are written */
    length = atomic_load_explicit(&victim->ring_tail, ACQUIRE) - head;
    if (length >= at_least) {
        count = (length + 1) / 2;
        count = count < at_most ? count : at_most;
        for (uint32_t i = 0; i < count; i++) {
            taken[i] = atomic_load_explicit(&victim->ring[(head + i) % TRPI_RING_TASKS], RELAXED);
        }
        atomic_store_explicit(&victim->ring_head, head + count, RELEASE);
    }
    thief_leave(victim);
    for (uint32_t i = 1; i < count; i++) {
        trpi_ring_push(thief, taken[i]);
    }
    return count != 0 ? taken[0] : NULL;
}

void
trpi_run_queue_drain(trpi_worker *victim)
{
    trpi_task_list list = { NULL, NULL };
    uint32_t head, tail, count;
    trpi_task *task;

    if (!trpi_has_tasks(victim) || !thief_enter(victim)) {
        return;
    }
    head = atomic_load_explicit(&victim->ring_head, RELAXED);
    /* acquire: as in trpi_ring_steal() */
    tail = atomic_load_explicit(&victim->ring_tail, ACQUIRE);
    count = tail - head;
    for (; head != tail; head++) {
        trpi_task_list_push(&list,
                            atomic_load_explicit(&victim->ring[head % TRPI_RING_TASKS], RELAXED));
    }
    atomic_store_explicit(&victim->ring_head, tail, RELEASE);
    task = atomic_load_explicit(&victim->slot, RELAXED);
    if (task != NULL) {
        atomic_store_explicit(&victim->slot, NULL, RELAXED);
        trpi_task_list_push(&list, task);
        count++;
    }
    thief_leave(victim);
    trpi_inject_list(victim->sched, &list, count, false);
}

/* ---- ring ------------------------------------------------------------------------------------ */

/* The ring is full: its older half overflows to the injection queue, under one lock, where other
 * workers find it. Younger tasks are hot in this core's cache and stay: a tree of tasks is run
 * depth-first, not breadth-first. */
static NOINLINE void
ring_overflow(trpi_worker *worker, trpi_task *task)
{
    trpi_task_list list = { NULL, NULL };
    uint32_t tail = atomic_load_explicit(&worker->ring_tail, RELAXED);
    uint32_t head, end;

    trpi_slot_enter(worker);
    trpi_assert_hot_check(trpi_run_queue_check, worker);
    head = atomic_load_explicit(&worker->ring_head, RELAXED);
    end = head + (tail - head) / 2;
    for (uint32_t i = head; i != end; i++) {
        trpi_task_list_push(&list,
                            atomic_load_explicit(&worker->ring[i % TRPI_RING_TASKS], RELAXED));
    }
    atomic_store_explicit(&worker->ring_head, end, RELAXED);
    trpi_slot_leave(worker);
    trpi_ring_push(worker, task);
    trpi_inject_list(worker->sched, &list, end - head, false);
}

void
trpi_ring_push(trpi_worker *worker, trpi_task *task)
{
    uint32_t tail = atomic_load_explicit(&worker->ring_tail, RELAXED);
    /* acquire: pairs with the thief's release; the thief has read the entry that we overwrite */
    uint32_t head = atomic_load_explicit(&worker->ring_head, ACQUIRE);

    if (UNLIKELY(tail - head >= TRPI_RING_TASKS)) {
        ring_overflow(worker, task);
        return;
    }
    atomic_store_explicit(&worker->ring[tail % TRPI_RING_TASKS], task, RELAXED);
    /* release: pairs with the thief's acquire of ring_tail; the entry and the task are written */
    atomic_store_explicit(&worker->ring_tail, tail + 1, RELEASE);
    /* A task waited already: wake a sleeper to share. Read without a fence: a worker that goes to
     * sleep at this moment is missed; the sentinel searches within a millisecond, since this worker
     * is awake. */
    if (tail != head && atomic_load_explicit(&worker->sched->sleepers, RELAXED) != 0 &&
        atomic_load_explicit(&worker->sched->limit, RELAXED) > 1 &&
        !atomic_load_explicit(&worker->sched->wake_suppressed, RELAXED)) {
        trpi_wake_for_push(worker->sched);
    }
}

trpi_task *
trpi_ring_pop(trpi_worker *worker)
{
    trpi_task *task;

    trpi_slot_enter(worker);
    trpi_assert_hot_check(trpi_run_queue_check, worker);
    task = trpi_ring_take(worker);
    trpi_slot_leave(worker);
    return task;
}

/* ---- injection queue ------------------------------------------------------------------------- */

static NOINLINE void
inject_elsewhere(trpi_sched *sched, trpi_task *task)
{
    if (task->dispatch == TRPI_DISPATCH_HERE) {
        sched->options.ops->here(sched->options.arg, task);
    } else if (task->dispatch == TRPI_DISPATCH_PRIVATE) {
        trpi_private_push(sched, task);
    } else if (sched->driven) {
        trpi_inject_push(sched, task);
    } else {
        trpi_group_push(sched, task);
    }
}

void
trpi_sched_inject(trpi_sched *sched, trpi_task *task)
{
    if (task->dispatch != TRPI_DISPATCH_POOL) {
        inject_elsewhere(sched, task);
        return;
    }
    trpi_inject_push(sched, task);
}

void
trpi_inject_push(trpi_sched *sched, trpi_task *task)
{
    pthread_mutex_lock(&sched->inject_lock);
    trpi_task_list_push(&sched->inject, task);
    atomic_fetch_add_explicit(&sched->inject_count, 1, RELAXED);
    pthread_mutex_unlock(&sched->inject_lock);
    trpi_wake_for_push(sched); /* queue-Q3 */
}

void
trpi_inject_list(trpi_sched *sched, trpi_task_list *list, uint32_t count, bool first)
{
    if (list->first == NULL) {
        return;
    }
    pthread_mutex_lock(&sched->inject_lock);
    if (first) {
        trpi_task_list_append(list, &sched->inject);
    }
    trpi_task_list_append(&sched->inject, list);
    atomic_fetch_add_explicit(&sched->inject_count, count, RELAXED);
    pthread_mutex_unlock(&sched->inject_lock);
    trpi_wake_for_push(sched); /* queue-Q3 */
}

/* Take this worker's share, at most `most` tasks: return the first, push the others to its ring. */
trpi_task *
trpi_inject_pop(trpi_worker *worker, uint32_t most)
{
    trpi_sched *sched = worker->sched;
    trpi_task_list list = { NULL, NULL };
    uint32_t waiting = atomic_load_explicit(&sched->inject_count, RELAXED);
    uint32_t room = (TRPI_RING_TASKS - trpi_ring_length(worker)) / 2;
    uint32_t limit = atomic_load_explicit(&sched->limit, RELAXED);
    uint32_t share = waiting / (limit != 0 ? limit : 1) + 1;
    uint32_t count = 0;
    trpi_task *first, *task;

    if (waiting == 0) {
        return NULL;
    }
    share = share > most ? most : share;
    share = share > room + 1 ? room + 1 : share;
    pthread_mutex_lock(&sched->inject_lock);
    for (; count < share && (task = trpi_task_list_pop(&sched->inject)) != NULL; count++) {
        trpi_task_list_push(&list, task);
    }
    atomic_fetch_sub_explicit(&sched->inject_count, count, RELAXED);
    pthread_mutex_unlock(&sched->inject_lock);
    first = trpi_task_list_pop(&list);
    while ((task = trpi_task_list_pop(&list)) != NULL) {
        trpi_ring_push(worker, task);
    }
    return first;
}

trpi_task *
trpi_inject_take_calls(trpi_sched *sched)
{
    trpi_task_list calls = { NULL, NULL }, others = { NULL, NULL };
    uint32_t count = 0;
    trpi_task *task;

    if (atomic_load_explicit(&sched->inject_count, RELAXED) == 0) {
        return NULL;
    }
    pthread_mutex_lock(&sched->inject_lock);
    while ((task = trpi_task_list_pop(&sched->inject)) != NULL) {
        bool call = task->id == 0 && task->number == TRPI_CALL_ANYWHERE;

        trpi_task_list_push(call ? &calls : &others, task);
        count += call;
    }
    sched->inject = others;
    atomic_fetch_sub_explicit(&sched->inject_count, count, RELAXED);
    pthread_mutex_unlock(&sched->inject_lock);
    return calls.first;
}

void
trpi_sched_ready(trpi_worker *worker, trpi_task *task)
{
    trpi_assert_slow(worker == trpi_worker_current());
    if (UNLIKELY(task->dispatch != TRPI_DISPATCH_POOL || worker->is_private)) {
        trpi_sched_inject(worker->sched, task);
        return;
    }
    trpi_slot_put(worker, task);
}

/* ---- deferred -------------------------------------------------------------------------------- */

void
trpi_defer_push(trpi_worker *at, trpi_task *task)
{
    trpi_deferred_tasks *deferred = &at->deferred;

    pthread_mutex_lock(&deferred->lock);
    trpi_task_list_push(&deferred->young, task);
    atomic_fetch_add_explicit(&deferred->count, 1, RELAXED);
    pthread_mutex_unlock(&deferred->lock);
    trpi_wake_worker(at); /* queue-Q3: pairs with its last check before sleep */
    /* It may have been parked, and have handed over its tasks before this one came. The lock orders
     * its read of limit before ours. */
    if (UNLIKELY(at->index >= atomic_load_explicit(&at->sched->limit, RELAXED))) {
        trpi_defer_drain(at);
    }
}

/* Move all deferred tasks of a worker to the injection queue. */
void
trpi_defer_drain(trpi_worker *at)
{
    trpi_deferred_tasks *deferred = &at->deferred;
    trpi_task_list all = { NULL, NULL };
    uint32_t count;

    pthread_mutex_lock(&deferred->lock);
    trpi_task_list_append(&all, &deferred->due);
    trpi_task_list_append(&all, &deferred->old);
    trpi_task_list_append(&all, &deferred->young);
    count = atomic_exchange_explicit(&deferred->count, 0, RELAXED);
    pthread_mutex_unlock(&deferred->lock);
    trpi_inject_list(at->sched, &all, count, false);
}

trpi_task *
trpi_defer_pop(trpi_worker *at)
{
    trpi_deferred_tasks *deferred = &at->deferred;
    trpi_task *task;

    if (atomic_load_explicit(&deferred->count, RELAXED) == 0) {
        return NULL;
    }
    pthread_mutex_lock(&deferred->lock);
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
    pthread_mutex_unlock(&deferred->lock);
    return task;
}

/* Steal one deferred task a millisecond from a worker without progress, which may have lost its
 * core to another program. Deferred tasks are throttled senders: run as fast as thieves take
 * them, they would fill memory with messages that their receiver cannot handle. */
trpi_task *
trpi_defer_steal(trpi_worker *victim)
{
    trpi_deferred_tasks *deferred = &victim->deferred;
    uint64_t now = trpi_sched_now(victim->sched);
    uint64_t last = atomic_load_explicit(&deferred->stolen_ns, RELAXED);

    if (now - last < TRPI_DEFER_NS_MAX || !atomic_compare_exchange_strong_explicit(
                                              &deferred->stolen_ns, &last, now, RELAXED, RELAXED)) {
        return NULL;
    }
    return trpi_defer_pop(victim);
}

/* An age is half of TRPI_DEFER_NS_MAX: a task deferred just after an age began waits for two ages.
 * Due tasks go to the end of the ring one at a time: the receiver has a turn for each turn of a due
 * sender, so that a hundred of them do not flood it. */
void
trpi_defer_age(trpi_worker *worker)
{
    trpi_deferred_tasks *deferred = &worker->deferred;
    uint64_t now = trpi_sched_now(worker->sched);
    bool turn = now - deferred->age_ns >= TRPI_DEFER_NS_MAX / 2;
    uint32_t head = atomic_load_explicit(&worker->ring_head, RELAXED);
    bool passed = (int32_t)(head - deferred->due_place) > 0;
    trpi_task *task = NULL;

    if (!turn && !(passed && deferred->any_due)) {
        return;
    }
    pthread_mutex_lock(&deferred->lock);
    if (turn) {
        trpi_task_list_append(&deferred->due, &deferred->old);
        trpi_task_list_append(&deferred->old, &deferred->young);
        deferred->age_ns = now;
    }
    if (passed) {
        task = trpi_task_list_pop(&deferred->due);
        if (task != NULL) {
            atomic_fetch_sub_explicit(&deferred->count, 1, RELAXED);
        }
    }
    deferred->any_due = deferred->due.first != NULL;
    pthread_mutex_unlock(&deferred->lock);
    if (task != NULL) {
        deferred->due_place = atomic_load_explicit(&worker->ring_tail, RELAXED);
        trpi_ring_push(worker, task);
    }
}
