/* sim_test.c - hundreds of clusters under hundreds of seeds; prints one line a seed and, for a
 * broken invariant, the command that replays it.
 *
 *     tests/sim/sim_test [SEEDS [small]]      TROUPE_SIM_SEEDS=N does the same; default 500
 *
 * Every seed is a swarm; the other scenarios take turns. The clusters are small and of many sizes;
 * one of ten seeds is run twice, which must give the same trace hash. Then, but for `small`, each
 * scenario with 100 nodes.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cluster/sim/sim.h"

#define LARGE_NODES 100u

#define SCENARIOS_MAX 32u

static uint32_t failures;
static uint64_t nodes_run, frames_run;
static struct {
    uint32_t runs, failures;
} of_scenario[SCENARIOS_MAX]; /* as trpi_sim_scenario_names() counts them */

static void
count_run(const char *scenario, bool failed)
{
    const char *const *names = trpi_sim_scenario_names();

    failures += failed;
    for (size_t i = 0; names[i] != NULL && i < SCENARIOS_MAX; i++) {
        if (strcmp(names[i], scenario) == 0) {
            of_scenario[i].runs++;
            of_scenario[i].failures += failed;
        }
    }
}

/* One result for each scenario that ran. */
static void
print_scenarios(void)
{
    const char *const *names = trpi_sim_scenario_names();

    for (size_t i = 0; names[i] != NULL && i < SCENARIOS_MAX; i++) {
        if (of_scenario[i].runs > 0) {
            printf("  %s: %u runs\n%s sim:%s\n", names[i], of_scenario[i].runs,
                   of_scenario[i].failures == 0 ? "PASS" : "FAIL", names[i]);
        }
    }
}

static trpi_sim_options
options_of(const char *scenario, uint32_t nodes, uint64_t seed)
{
    bool is_long = strcmp(scenario, "lossy") == 0 || strcmp(scenario, TRPI_SIM_ACTORS) == 0;
    return (trpi_sim_options){ .nodes = nodes,
                               .seed = seed,
                               .scenario = scenario,
                               /* complete_test and bench/sim run them for longer */
                               .until_ms = is_long ? 20000 : 0 };
}

/* The whole of it: a run of another length is another one. */
static void
print_replay(const trpi_sim_options *options)
{
    printf("     replay: troupe sim --nodes %u --seed %llu --scenario %s", options->nodes,
           (unsigned long long)options->seed, options->scenario);
    if (options->until_ms != 0) {
        printf(" --until %llums", (unsigned long long)options->until_ms);
    }
    printf(" --trace\n");
}

/* Of a run: the hash, or 0 after a failure. */
static uint64_t
run_seed(const char *scenario, uint32_t nodes, uint64_t seed)
{
    trpi_sim_options options = options_of(scenario, nodes, seed);
    trpi_sim_result result;
    trp_err err = trpi_sim_run(&options, &result);
    count_run(scenario, err != TRP_OK || result.failed);
    if (err != TRP_OK || result.failed) {
        printf("  seed %llu: %s\n", (unsigned long long)seed,
               err == TRP_OK ? result.failure : trp_strerror(err));
        print_replay(&options);
        return 0;
    }
    nodes_run += nodes;
    frames_run += result.frames;
    return result.hash;
}

static bool
run_and_print(const char *scenario, uint32_t nodes, uint64_t seed, bool again)
{
    uint64_t hash = run_seed(scenario, nodes, seed);
    printf("%s %u nodes, seed %llu trace hash %016llx\n", scenario, nodes, (unsigned long long)seed,
           (unsigned long long)hash);
    if (again && hash != 0 && run_seed(scenario, nodes, seed) != hash) {
        trpi_sim_options options = options_of(scenario, nodes, seed);
        count_run(scenario, true);
        printf("  seed %llu: two runs of it differ\n", (unsigned long long)seed);
        print_replay(&options);
    }
    fflush(stdout);
    return hash != 0;
}

/* The scenarios that rows of docs/conformance.md name. swarm: MEMB-02, GOSSIP-08, GOSSIP-17,
 * EVENTS-13, StressSpec. sunny: GOSSIP-01, GOSSIP-05, SunnyWeatherSpec. */
int
main(int argc, char **argv)
{
    static const char *const large[] = { "sunny", "crash", "restart", "leave",
                                         "swarm", "cut",   "split" };
    static const uint32_t sizes[] = { 1, 2, 3, 3, 4, 5, 5, 6, 7, 8, 10, 12 };
    const char *from_environment = getenv("TROUPE_SIM_SEEDS");
    const char *wanted = argc > 1 ? argv[1] : from_environment != NULL ? from_environment : "500";
    uint64_t seeds = strtoull(wanted, NULL, 10);
    const char *const *names = trpi_sim_scenario_names();
    size_t scenarios = 0;
    while (names[scenarios] != NULL) {
        scenarios++;
    }
    clock_t began = clock();
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        /* every seed is a swarm, and two of three also take turns among the named scenarios */
        const char *named = names[seed % scenarios];
        uint32_t nodes = sizes[seed % (sizeof sizes / sizeof sizes[0])];
        run_and_print("swarm", nodes, seed, seed % 10 == 0);
        if (seed % 3 != 0 && strcmp(named, "swarm") != 0 &&
            strcmp(named, TRPI_SIM_OPERATED) != 0) { /* operated_test has its own seeds */
            run_and_print(named, nodes, seed, seed % 10 == 0);
        }
    }
    bool small = argc > 2 && strcmp(argv[2], "small") == 0;
    for (size_t i = 0; i < sizeof large / sizeof large[0] && !small; i++, seeds++) {
        run_and_print(large[i], LARGE_NODES, 1000 + i, false);
    }
    print_scenarios();
    printf("%llu seeds, %llu nodes, %llu frames, %.1f s of processor time, %u failures\n",
           (unsigned long long)seeds, (unsigned long long)nodes_run, (unsigned long long)frames_run,
           (double)(clock() - began) / CLOCKS_PER_SEC, failures);
    return failures == 0 ? 0 : 1;
}
