/* operated_test.c - complete nodes with an operator (`troupe sim --scenario operated`): the laws of
 * operated_laws.c under the first seeds, and that a seed is one history, traced or not.
 *
 *     TROUPE_SIM_SEEDS=1000 [TROUPE_SIM_FIRST=SEED] tests/sim/operated_test    half as many
 */
#include <stdlib.h>
#include <string.h>

#include "cluster/sim/schedule.h"
#include "cluster/sim/sim.h"
#include "tests/unit/unit.h"

static uint64_t
run_seed(uint64_t seed, FILE *trace)
{
    static const uint32_t sizes[] = { 3, 4, 5, 2 };
    trpi_sim_options options = {
        .nodes = sizes[seed % 4], .seed = seed, .scenario = TRPI_SIM_OPERATED, .trace = trace
    };
    trpi_sim_result result = { .hash = 0 };
    UNIT_EQUAL(trpi_sim_run(&options, &result), TRP_OK);
    UNIT_FALSE(result.failed);
    if (result.failed) {
        printf("  %s\n  replay: troupe sim --scenario operated --nodes %u --seed %llu --trace\n",
               result.failure, options.nodes, (unsigned long long)seed);
    }
    return result.hash;
}

static void
what_nodes_say_under_faults_and_orders_is_true(void)
{
    const char *seeds = getenv("TROUPE_SIM_SEEDS");
    const char *first = getenv("TROUPE_SIM_FIRST");
    uint64_t from = first != NULL ? strtoull(first, NULL, 10) : 1;
    uint64_t count = seeds != NULL ? strtoull(seeds, NULL, 10) / 2 : 20;
    FILE *trace = fopen("/dev/null", "w");
    UNIT_REQUIRE(trace != NULL);
    for (uint64_t seed = from; seed < from + count; seed++) {
        uint64_t hash = run_seed(seed, NULL);
        if (seed % 10 == 0 && !UNIT_TRUE(run_seed(seed, trace) == hash)) {
            printf("  seed %llu has two histories\n", (unsigned long long)seed);
        }
    }
    (void)fclose(trace);
}

/* The scenario has slow receivers indeed: their senders are slowed. operated-W1 and operated-W7
 * hold beside it. */
static void
slow_receivers_slow_their_senders(void)
{
    char text[] = "0s complete on\n1s slow 1 10s\n15s end\n", error[160];
    char *lines = NULL;
    size_t bytes = 0;
    trpi_sim_schedule *schedule = NULL;
    FILE *file = fmemopen(text, strlen(text), "r");
    FILE *trace = open_memstream(&lines, &bytes);
    UNIT_REQUIRE(file != NULL && trace != NULL);
    UNIT_EQUAL(trpi_sim_schedule_read(file, 3, &schedule, error, sizeof error), TRP_OK);
    trpi_sim_options options = { .nodes = 3, .seed = 1, .schedule = schedule, .trace = trace };
    trpi_sim_result result = { .failed = true };
    UNIT_EQUAL(trpi_sim_run(&options, &result), TRP_OK);
    UNIT_FALSE(result.failed);
    UNIT_TEXT(result.failure, "");
    (void)fclose(file);
    (void)fclose(trace);
    UNIT_TRUE(strstr(lines, "node 1: remote: receiver is slower than its senders") != NULL);
    free(lines);
    trpi_sim_schedule_free(schedule);
}

UNIT_BEGIN("operated")
UNIT(what_nodes_say_under_faults_and_orders_is_true)
UNIT(slow_receivers_slow_their_senders)
UNIT_END
