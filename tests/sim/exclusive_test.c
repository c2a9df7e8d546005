/* exclusive_test.c - an actor that must not live twice, on the oldest of clusters that are
 * partitioned (in one direction, too), crash, leave, join, and stop at any instant: never two nodes
 * handle its messages, and afterwards one does (cluster/sim/tenant.c).
 *
 * TROUPE_SIM_FIRST=SEED TROUPE_SIM_SEEDS=1 plays one seed again; TROUPE_SIM_TRACE=1 tells
 * everything.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cluster/engine/membership.h"
#include "cluster/sim/schedule.h"
#include "tests/unit/unit.h"

#define SEEDS 300u
static FILE *trace;

static const char *const strategies[] = { "keep-majority", "keep-oldest", "static-quorum",
                                          "keep-referee",  "down-all",    "lease" };
#define STRATEGIES (sizeof strategies / sizeof strategies[0])

static uint64_t
number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

/* Give a drawn schedule times with which a node may promise, and the strategy of this seed. */
static void
schedule_set(trpi_sim_schedule *schedule, uint64_t seed)
{
    for (uint32_t i = 0; i < schedule->count; i++) {
        trpi_sim_action *a = &schedule->actions[i];
        if (a->act == TRPI_SIM_STABLE_AFTER) {
            a->ms = 8000 + (int64_t)(seed * 7919 % 8000);
        } else if (a->act == TRPI_SIM_DOWNING) {
            trpi_free(a->text);
            a->text = trpi_strdup(strategies[seed % STRATEGIES]);
        } else if (a->act == TRPI_SIM_CUT || a->act == TRPI_SIM_LINK) {
            a->ms += seed % 3 == 0 ? 20000 : 0;
        } else if (a->act == TRPI_SIM_PAUSE) {
            a->ms += seed % 4 == 0 ? 10000 : 0;
        }
    }
}

/* Play a seed. true: it failed; *ret_result says how. */
static bool
seed_fails(uint64_t seed, uint32_t broken, trpi_sim_result *ret_result)
{
    trpi_sim_options options = { .nodes = 3 + (uint32_t)(seed / STRATEGIES % 4),
                                 .seed = seed,
                                 .tenant = true,
                                 .broken = broken,
                                 .trace = trace };
    trpi_sim_schedule *schedule = trpi_sim_schedule_draw(options.nodes, seed, 0);
    UNIT_REQUIRE(schedule != NULL);
    schedule_set(schedule, seed);
    options.schedule = schedule;
    trp_err err = trpi_sim_run(&options, ret_result);
    trpi_sim_schedule_free(schedule);
    UNIT_REQUIRE(err == TRP_OK);
    return ret_result->failed;
}

static void
never_two_handle_and_afterwards_one_does(void)
{
    uint64_t first_seed = number_of("TROUPE_SIM_FIRST", 0);
    uint64_t seeds_count = number_of("TROUPE_SIM_SEEDS", SEEDS);
    uint64_t failed = 0, virtual_ms = 0;
    trace = getenv("TROUPE_SIM_TRACE") != NULL ? stderr : NULL;
    for (uint64_t seed = first_seed; seed < first_seed + seeds_count; seed++) {
        trpi_sim_result result;
        if (seed_fails(seed, 0, &result)) {
            failed++;
            printf("    seed %llu (%s): %s\n    replay: TROUPE_SIM_FIRST=%llu TROUPE_SIM_SEEDS=1 "
                   "TROUPE_SIM_TRACE=1 tests/sim/exclusive_test\n",
                   (unsigned long long)seed, strategies[seed % STRATEGIES], result.failure,
                   (unsigned long long)seed);
        }
        virtual_ms += result.virtual_ms;
    }
    printf("    %llu seeds, %llu s of virtual time, %llu failed\n", (unsigned long long)seeds_count,
           (unsigned long long)virtual_ms / 1000, (unsigned long long)failed);
    UNIT_EQUAL(failed, 0);
}

/* 6905, 9173: an owner of the lease left. 8596: a stop was longer than the faults. 9291: two
 * leaders had let a member in at different times. */
static void
seeds_that_failed_once_do_not(void)
{
    static const uint64_t seeds[] = { 6905, 9173, 8596, 9291 };
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++) {
        trpi_sim_result result;
        if (seed_fails(seeds[i], 0, &result)) {
            printf("    seed %llu: %s\n", (unsigned long long)seeds[i], result.failure);
            UNIT_FAIL("a seed fails again");
        }
    }
}

#ifdef TRPI_DEBUG
/* Return whether one of the seeds finds two that handle. */
static bool
fault_is_found(uint32_t broken, const char *what)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        trpi_sim_result result;
        if (seed_fails(seed, broken, &result) && strstr(result.failure, "sim-S16") != NULL) {
            printf("    %s: found by seed %llu\n", what, (unsigned long long)seed);
            return true;
        }
    }
    return false;
}
#endif

static void
a_node_that_does_not_suspend_is_found(void)
{
#ifdef TRPI_DEBUG
    UNIT_TRUE(fault_is_found(TRPI_BROKEN_NO_SUSPENSION, "without suspension"));
#endif
}

static void
a_node_that_does_not_notice_its_stalls_is_found(void)
{
#ifdef TRPI_DEBUG
    UNIT_TRUE(fault_is_found(TRPI_BROKEN_NO_STALLS, "without the stall clock"));
#endif
}

/* The oldest is cut off, and an operator of the other side marks it Down at once. */
static bool
order_fails(uint32_t broken, trpi_sim_result *ret_result)
{
    trpi_sim_options options = {
        .nodes = 3, .seed = 1, .tenant = true, .broken = broken, .trace = trace
    };
    trpi_sim_schedule *schedule = trpi_alloc(sizeof *schedule);
    UNIT_REQUIRE(schedule != NULL);
    const trpi_sim_action actions[] = {
        { .act = TRPI_SIM_STABLE_AFTER, .ms = 20000 },
        { .act = TRPI_SIM_CUT, .at_ms = 5000, .text = trpi_strdup("100"), .ms = 60000 },
        { .act = TRPI_SIM_DOWN, .at_ms = 12000, .a = 0, .b = 1 },
        { .act = TRPI_SIM_END, .at_ms = 70000 },
    };
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        UNIT_REQUIRE(trpi_sim_schedule_add(schedule, actions[i]) == TRP_OK);
    }
    options.schedule = schedule;
    UNIT_REQUIRE(trpi_sim_run(&options, ret_result) == TRP_OK);
    trpi_sim_schedule_free(schedule);
    return ret_result->failed && strstr(ret_result->failure, "sim-S16") != NULL;
}

static void
an_order_waits_for_the_margin(void)
{
    trpi_sim_result result;
    UNIT_FALSE(order_fails(0, &result));
#ifdef TRPI_DEBUG
    UNIT_TRUE(order_fails(TRPI_BROKEN_NO_MARGIN, &result));
#endif
}

UNIT_BEGIN("exclusive")
UNIT(never_two_handle_and_afterwards_one_does)
UNIT(seeds_that_failed_once_do_not)
UNIT(a_node_that_does_not_suspend_is_found)
UNIT(a_node_that_does_not_notice_its_stalls_is_found)
UNIT(an_order_waits_for_the_margin)
UNIT_END
