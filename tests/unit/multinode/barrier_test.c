/* barrier_test.c - barriers: which nodes wait, when they open, and what breaks them. */
#include "cluster/multinode/barrier.h"

#include "tests/unit/unit.h"

static const char *const roles[TRPI_BARRIER_NODES_MAX] = { "a", "b", "c" };
enum { A = 1, B = 2, C = 4 };

static trpi_barrier
of_three(void)
{
    trpi_barrier barrier;
    memset(&barrier, 0, sizeof barrier);
    for (uint32_t i = 0; i < 3; i++) {
        UNIT_EQUAL(trpi_barrier_add(&barrier, roles, i).told, 0);
    }
    return barrier;
}

static void
is_step(trpi_barrier_step step, uint64_t told, bool passed)
{
    UNIT_EQUAL(step.told, told);
    UNIT_EQUAL(step.passed, passed);
}

/* Enter before 100 ms. */
static trpi_barrier_step
enter(trpi_barrier *barrier, uint32_t index, const char *name)
{
    return trpi_barrier_enter(barrier, roles, index, name, 100);
}

/* MNT-08: the first entrant names it, all known nodes must enter */
static void
it_opens_when_the_last_one_has_come(void)
{
    trpi_barrier barrier = of_three();
    for (int round = 0; round < 3; round++) {
        is_step(enter(&barrier, 1, "x"), 0, false);
        is_step(enter(&barrier, 1, "x"), 0, false); /* asked twice: no harm */
        is_step(enter(&barrier, 0, "x"), 0, false);
        is_step(enter(&barrier, 2, "x"), A | B | C, true);
    }
    is_step(trpi_barrier_tick(&barrier, roles, 1000), 0, false); /* no node waits: no timeout */
}

static void
the_only_node_passes_at_once(void)
{
    trpi_barrier barrier;
    memset(&barrier, 0, sizeof barrier);
    (void)trpi_barrier_add(&barrier, roles, 1);
    is_step(enter(&barrier, 1, "x"), B, true);
}

/* MNT-08: ... and all later ones */
static void
another_name_fails_all_who_wait(void)
{
    trpi_barrier barrier = of_three();
    (void)enter(&barrier, 0, "x");
    is_step(enter(&barrier, 1, "y"), A | B, false);
    UNIT_TRUE(strstr(barrier.why, "b entered barrier 'y' while others wait at 'x'") != NULL);
    is_step(enter(&barrier, 2, "x"), C, false);
    is_step(enter(&barrier, 0, "z"), A, false);
}

/* MNT-08 */
static void
a_lost_node_fails_who_wait_and_is_not_missed_by_who_come_later(void)
{
    trpi_barrier barrier = of_three();
    (void)enter(&barrier, 0, "x");
    is_step(trpi_barrier_lose(&barrier, roles, 1), A, false);
    UNIT_TEXT(barrier.why, "b was lost before barrier 'x'");
    barrier = of_three();
    is_step(trpi_barrier_lose(&barrier, roles, 1), 0, false);
    is_step(trpi_barrier_lose(&barrier, roles, 1), 0, false);
    (void)enter(&barrier, 0, "x");
    is_step(enter(&barrier, 2, "x"), A | C, true);
    barrier = of_three();
    (void)enter(&barrier, 1, "x"); /* lost after it had entered */
    (void)enter(&barrier, 0, "x");
    is_step(trpi_barrier_lose(&barrier, roles, 1), A, false);
}

/* MNT-08 */
static void
a_node_whose_end_is_planned_is_not_waited_for(void)
{
    trpi_barrier barrier = of_three();
    (void)enter(&barrier, 0, "x");
    (void)enter(&barrier, 2, "x");
    is_step(trpi_barrier_remove(&barrier, 1), A | C, true);
    barrier = of_three();
    (void)enter(&barrier, 1, "x");
    is_step(trpi_barrier_remove(&barrier, 1), 0, false); /* it was the only one there */
    is_step(enter(&barrier, 0, "y"), 0, false);          /* so that another name is right */
    is_step(enter(&barrier, 2, "y"), A | C, true);
}

/* MNT-08 */
static void
time_fails_it_and_can_only_become_shorter(void)
{
    trpi_barrier barrier = of_three();
    (void)trpi_barrier_enter(&barrier, roles, 0, "x", 100);
    (void)trpi_barrier_enter(&barrier, roles, 1, "x", 200);
    UNIT_EQUAL(barrier.deadline_ms, 100);
    is_step(trpi_barrier_tick(&barrier, roles, 99), 0, false);
    is_step(trpi_barrier_tick(&barrier, roles, 100), A | B, false);
    UNIT_TEXT(barrier.why, "nobody waits longer at 'x' for c");
    barrier = of_three();
    (void)trpi_barrier_enter(&barrier, roles, 0, "x", 100);
    (void)trpi_barrier_enter(&barrier, roles, 1, "x", 50);
    is_step(trpi_barrier_tick(&barrier, roles, 50), A | B, false);
}

/* MNT-16 */
static void
an_unknown_node_is_refused_alone_and_a_double_one_fails_all(void)
{
    trpi_barrier barrier = of_three();
    (void)enter(&barrier, 0, "x");
    is_step(enter(&barrier, 63, "x"), UINT64_C(1) << 63, false);
    UNIT_FALSE(barrier.failed);
    is_step(trpi_barrier_add(&barrier, roles, 1), A, false);
    UNIT_TEXT(barrier.why, "two nodes call themselves b");
}

static void
who_gives_up_fails_all_with_his_reason(void)
{
    trpi_barrier barrier = of_three();
    (void)enter(&barrier, 0, "x");
    is_step(trpi_barrier_give_up(&barrier, roles, 1, "2 + 2 == 5"), A, false);
    UNIT_TEXT(barrier.why, "b failed: 2 + 2 == 5");
    is_step(trpi_barrier_give_up(&barrier, roles, 2, "later"), 0, false);
    UNIT_TEXT(barrier.why, "b failed: 2 + 2 == 5"); /* the first reason stays */
}

UNIT_BEGIN("barrier")
UNIT(it_opens_when_the_last_one_has_come)
UNIT(the_only_node_passes_at_once)
UNIT(another_name_fails_all_who_wait)
UNIT(a_lost_node_fails_who_wait_and_is_not_missed_by_who_come_later)
UNIT(a_node_whose_end_is_planned_is_not_waited_for)
UNIT(time_fails_it_and_can_only_become_shorter)
UNIT(an_unknown_node_is_refused_alone_and_a_double_one_fails_all)
UNIT(who_gives_up_fails_all_with_his_reason)
UNIT_END
