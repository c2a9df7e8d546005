/* alive_test.c - when a node counts as alive, by counts and times alone. */
#include "cluster/node/alive.h"
#include "tests/unit/unit.h"

#define SECOND 1000000000u
#define LIMIT (30ull * SECOND)

static trpi_alive alive;
static uint64_t now_ns;

/* Look `seconds` later. */
static bool
look(uint64_t seconds, uint64_t turns, bool waits)
{
    now_ns += seconds * SECOND;
    return trpi_alive_look(&alive, now_ns, turns, waits);
}

static void
begin(void)
{
    now_ns = 1000 * (uint64_t)SECOND;
    trpi_alive_init(&alive, LIMIT);
    UNIT_TRUE(!look(0, 7, false)); /* nothing is known yet */
    UNIT_TRUE(trpi_alive_is(&alive));
}

static void
a_probe_is_sent_only_when_no_turn_has_ended(void)
{
    begin();
    UNIT_TRUE(!look(3, 8, false)); /* busy */
    UNIT_TRUE(look(3, 8, false));  /* idle: it has work now */
    UNIT_TRUE(!look(3, 8, true));  /* one is enough */
    UNIT_TRUE(!look(3, 9, false)); /* handled: a turn */
    UNIT_TRUE(look(3, 9, false));
}

static void
work_that_waits_for_the_limit_without_a_turn_is_not_alive(void)
{
    begin();
    UNIT_TRUE(look(3, 7, false));
    for (int i = 0; i < 9; i++) {
        UNIT_TRUE(!look(3, 7, true));
        UNIT_TRUE(trpi_alive_is(&alive));
    }
    UNIT_TRUE(!look(2, 7, true));
    UNIT_TRUE(trpi_alive_is(&alive)); /* 29 s */
    UNIT_TRUE(!look(1, 7, true));
    UNIT_TRUE(!trpi_alive_is(&alive)); /* 30 s */
    UNIT_TRUE(!look(1, 8, true));
    UNIT_TRUE(trpi_alive_is(&alive)); /* one turn is enough, though the probe still waits */
}

static void
an_idle_system_is_alive_for_ever(void)
{
    begin();
    for (uint64_t i = 0; i < 1000; i++) {
        UNIT_TRUE(look(3, 7 + i, false) == (i == 0));
        UNIT_TRUE(look(3, 7 + i, false));
        UNIT_TRUE(trpi_alive_is(&alive));
    }
}

static void
a_process_that_was_stopped_is_not_found_dead(void)
{
    begin();
    UNIT_TRUE(look(3, 7, false));
    UNIT_TRUE(!look(3600, 7, true)); /* the probe waited as the process did */
    UNIT_TRUE(trpi_alive_is(&alive));
    UNIT_TRUE(!look(10, 7, true));
    UNIT_TRUE(trpi_alive_is(&alive));
    UNIT_TRUE(!look(10, 7, true)); /* but three looks ten seconds apart are enough */
    UNIT_TRUE(!trpi_alive_is(&alive));
}

static void
a_clock_that_stands_still_or_goes_back_counts_for_nothing(void)
{
    begin();
    UNIT_TRUE(look(3, 7, false));
    for (int i = 0; i < 1000; i++) {
        UNIT_TRUE(!look(0, 7, true));
    }
    now_ns -= SECOND;
    UNIT_TRUE(!look(0, 7, true));
    UNIT_TRUE(trpi_alive_is(&alive));
}

UNIT_BEGIN("alive")
UNIT(a_probe_is_sent_only_when_no_turn_has_ended)
UNIT(work_that_waits_for_the_limit_without_a_turn_is_not_alive)
UNIT(an_idle_system_is_alive_for_ever)
UNIT(a_process_that_was_stopped_is_not_found_dead)
UNIT(a_clock_that_stands_still_or_goes_back_counts_for_nothing)
UNIT_END
