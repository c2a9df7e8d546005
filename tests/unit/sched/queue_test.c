/* queue_test.c - the run queues of one worker, under a clock that the test moves: how long a
 * deferred task waits, how many of them thieves steal. */
#include <string.h>

#include "tests/unit/sched/still.h"

/* queue-Q1: else no thief gets in any more. */
static void
an_owner_that_took_from_its_ring_leaves_it_to_thieves(void)
{
    trpi_task task = { 0 };
    trpi_worker *worker;
    still s;

    still_open(&s, 2);
    worker = trpi_sched_worker(s.sched, 0);
    UNIT_TRUE(trpi_ring_pop(worker) == NULL);
    UNIT_EQUAL(atomic_load(&worker->handoff.busy), 0);
    trpi_ring_push(worker, &task);
    UNIT_TRUE(trpi_ring_pop(worker) == &task);
    UNIT_EQUAL(atomic_load(&worker->handoff.busy), 0);
    trpi_sched_free(s.sched);
}

/* It goes to the ring between half a bound and the whole of it, though nobody is idle. */
static void
a_deferred_task_becomes_due_in_two_ages(void)
{
    trpi_task deferred = { 0 }, before = { 0 };
    trpi_worker *worker;
    still s;

    still_open(&s, 1);
    worker = trpi_sched_worker(s.sched, 0);
    trpi_ring_push(worker, &before);
    UNIT_TRUE(trpi_ring_pop(worker) ==
              &before); /* the place of the last one that was due is past */
    trpi_defer_age(worker);
    trpi_defer_push(worker, &deferred);
    for (uint32_t age = 1; age <= 2; age++) {
        s.now_ns += TRPI_DEFER_NS_MAX / 2 - 1;
        trpi_defer_age(worker);
        UNIT_EQUAL(trpi_ring_length(worker), 0);
        s.now_ns += 1;
        trpi_defer_age(worker);
        UNIT_EQUAL(trpi_ring_length(worker), age - 1);
    }
    UNIT_TRUE(trpi_ring_pop(worker) == &deferred);
    UNIT_EQUAL(atomic_load(&worker->deferred.count), 0);
    trpi_sched_free(s.sched);
}

/* At the bound, and a nanosecond before. */
static void
thieves_take_one_deferred_task_in_a_millisecond(void)
{
    trpi_task tasks[2] = { 0 };
    trpi_worker *worker;
    still s;

    still_open(&s, 2);
    worker = trpi_sched_worker(s.sched, 0);
    trpi_defer_push(worker, &tasks[0]);
    trpi_defer_push(worker, &tasks[1]);
    UNIT_TRUE(trpi_defer_steal(worker) == &tasks[0]);
    UNIT_TRUE(trpi_defer_steal(worker) == NULL);
    s.now_ns += TRPI_DEFER_NS_MAX - 1;
    UNIT_TRUE(trpi_defer_steal(worker) == NULL);
    s.now_ns += 1;
    UNIT_TRUE(trpi_defer_steal(worker) == &tasks[1]);
    s.now_ns += TRPI_DEFER_NS_MAX;
    UNIT_TRUE(trpi_defer_steal(worker) == NULL); /* there is none */
    trpi_sched_free(s.sched);
}

static void
a_check_names_what_is_broken_in_a_run_queue(void)
{
    trpi_task tasks[3] = { 0 };
    trpi_worker *worker;
    trpi_check check;
    still s;

    still_open(&s, 2);
    worker = trpi_sched_worker(s.sched, 0);
    for (int i = 0; i < 3; i++) {
        trpi_ring_push(worker, &tasks[i]);
    }
#define SEES(label) UNIT_TRUE(strstr(trpi_run_queue_check(worker, &check), label ": ") != NULL)
    SEES("queue-Q1"); /* the owner has not entered */
    trpi_slot_enter(worker);
    UNIT_TRUE(trpi_run_queue_check(worker, &check) == NULL);
    atomic_store(&worker->ring[1], &tasks[0]);
    SEES("sched-S1");
    atomic_store(&worker->ring[1], NULL);
    SEES("queue-Q2");
    atomic_store(&worker->ring[1], &tasks[1]);
    atomic_store(&worker->slot, &tasks[2]);
    SEES("sched-S1");
    atomic_store(&worker->slot, NULL);
    atomic_store(&worker->handoff.task, &tasks[0]);
    SEES("sched-S1");
    atomic_store(&worker->handoff.task, NULL);
    atomic_store(&worker->ring_tail, atomic_load(&worker->ring_head) + TRPI_RING_TASKS + 1);
    SEES("queue-Q2");
    atomic_store(&worker->ring_tail, atomic_load(&worker->ring_head));
    UNIT_TRUE(trpi_run_queue_check(worker, &check) == NULL);
    trpi_slot_leave(worker);
#undef SEES
    trpi_sched_free(s.sched);
}

UNIT_BEGIN("queue")
UNIT(an_owner_that_took_from_its_ring_leaves_it_to_thieves)
UNIT(a_deferred_task_becomes_due_in_two_ages)
UNIT(thieves_take_one_deferred_task_in_a_millisecond)
UNIT(a_check_names_what_is_broken_in_a_run_queue)
UNIT_END
