/* sim.c - figures of membership in virtual time, as lines `troupe WORKLOAD PARAM VALUE UNIT`.
 *
 *   sim                 sizes 10, 100 and 1,000: some seconds
 *   sim --long          and 2,400 nodes, and 1,000 runs under loss
 *   sim --huge [NODES ...]  only cold starts: of 10,000, or of so many
 *   sim --lossy RUNS    only the runs under loss
 *
 * Times are virtual, but for `speed`, which is virtual seconds for each second of processor time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "cluster/sim/sim.h"

#define LOSSY_NODES 20u
#define LOSSY_RUNS 1000u
#define HUGE_UNTIL_MS 1000u

static int failures;

static double
processor_s(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void
print_line(const char *workload, uint32_t param, double value, const char *unit)
{
    printf("troupe %s %u %.2f %s\n", workload, param, value, unit);
    fflush(stdout);
}

static trpi_sim_result
world_run(const char *scenario, uint32_t nodes, uint64_t seed, uint64_t until_ms)
{
    trpi_sim_options options = {
        .nodes = nodes, .seed = seed, .scenario = scenario, .until_ms = until_ms
    };
    trpi_sim_result result = { .hash = 0 };
    trp_err err = trpi_sim_run(&options, &result);
    if (err != TRP_OK || result.failed) {
        failures++;
        fprintf(stderr, "%s %u nodes, seed %llu: %s\n", scenario, nodes, (unsigned long long)seed,
                err != TRP_OK ? trp_strerror(err) : result.failure);
    }
    return result;
}

static void
sunny_run(uint32_t nodes, uint64_t until_ms)
{
    struct rusage usage;
    double began = processor_s();
    trpi_sim_result result = world_run("sunny", nodes, 1, until_ms);
    double used = processor_s() - began;
    (void)getrusage(RUSAGE_SELF, &usage);
    print_line("sim_cold_start", nodes, (double)result.up_ms / 1e3, "s");
    print_line("sim_speed", nodes, (double)result.virtual_ms / 1e3 / used, "x");
    print_line("sim_processor", nodes, used, "s");
    print_line("sim_memory", nodes, (double)usage.ru_maxrss / 1024.0, "MiB");
}

/* The worst of some seeds. */
static void
join_run(uint32_t members, uint64_t seeds)
{
    uint64_t join_ms = 0;
    uint64_t convergence_ms = 0;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        trpi_sim_result result = world_run("join", members + 1, seed, 0);
        join_ms = result.join_ms > join_ms ? result.join_ms : join_ms;
        convergence_ms =
            result.convergence_ms > convergence_ms ? result.convergence_ms : convergence_ms;
    }
    print_line("sim_join", members, (double)join_ms / 1e3, "s");
    print_line("sim_convergence", members, (double)convergence_ms / 1e3, "s");
}

static void
lossy_runs(uint64_t runs)
{
    int before = failures;
    for (uint64_t seed = 1; seed <= runs; seed++) {
        (void)world_run("lossy", LOSSY_NODES, seed, 0);
    }
    print_line("sim_lossy", LOSSY_NODES, failures - before, "failures");
}

static void
huge_run(int count, char **sizes)
{
    for (int i = 0; i < count; i++) {
        sunny_run((uint32_t)strtoul(sizes[i], NULL, 10), HUGE_UNTIL_MS);
    }
    if (count == 0) {
        sunny_run(TRPI_SIM_NODES_MAX, HUGE_UNTIL_MS);
    }
}

int
main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    if (strcmp(mode, "--huge") == 0) {
        huge_run(argc - 2, argv + 2);
    } else if (strcmp(mode, "--lossy") == 0) {
        lossy_runs(argc > 2 ? strtoull(argv[2], NULL, 10) : LOSSY_RUNS);
    } else {
        sunny_run(1000, 60000);
        join_run(10, 20);
        join_run(100, 10);
        join_run(1000, 3);
        if (strcmp(mode, "--long") == 0) {
            join_run(2400, 3);
            lossy_runs(LOSSY_RUNS);
        }
    }
    return failures == 0 ? 0 : 1;
}
