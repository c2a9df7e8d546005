/* local_test.c - random actor programs under seeds: done point 3 of the local system.
 *
 *   local_test              5 times TROUPE_SIM_SEEDS seeds (200: a thousand)
 *   local_test --seed N     one seed, with its log
 *   local_test --seeds N    so many
 *   local_test --schedule S with --seed: this schedule instead of the drawn one
 */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <troupe/seeded.h>

#include "tests/sim/local_program.h"

#define MEMORY_GROWTH_MAX (512u * 1024u) /* between the middle of the seeds and their end */

static local_totals totals;
static uint64_t seed_now;

static void
run_program(trp_testkit *kit, void *arg)
{
    uint64_t drawn = trp_seeded_random(kit);
    local_options options = { drawn, 12 + (uint32_t)(drawn % 80), 8 + (uint32_t)(drawn / 128 % 120),
                              2 + (uint32_t)(drawn / 8192 % 8), 0 };

    (void)arg;
    local_program(kit, &options, &totals);
}

static void
show_line(void *arg, const trp_log_line *line)
{
    (void)arg;
    printf("    [%d %s] %s\n", (int)line->level, line->source, line->text);
}

static bool
run_seed(uint64_t seed, const char *schedule, bool show, const char *program_name)
{
    trp_seeded_options options = TRP_SEEDED_OPTIONS_INIT;
    trp_seeded_result result = { .size = sizeof result }, again = { .size = sizeof again };
    trp_system_options system = TRP_SYSTEM_OPTIONS_INIT;
    trp_testkit_options kit = TRP_TESTKIT_OPTIONS_INIT;
    static const uint32_t throughputs[] = { 0, 0, 1, 2, 5, 30 };
    char replay[256];
    bool passed;

    snprintf(replay, sizeof replay, "%s --seed", program_name);
    seed_now = seed;
    system.throughput = throughputs[seed % (sizeof throughputs / sizeof throughputs[0])];
    system.log = show ? show_line : NULL;
    system.log_level = show ? TRP_LOG_DEBUG : TRP_LOG_ERROR;
    kit.system_options = &system;
    kit.quiet_dead_letters = 1;
    options.seed = seed;
    options.replay = replay;
    options.schedule = schedule;
    options.kit = &kit;
    passed = trp_seeded_run(run_program, NULL, &options, &result) == TRP_OK;
    if (passed && seed % 20 == 0) {
        passed = trp_seeded_run(run_program, NULL, &options, &again) == TRP_OK &&
                 again.hash == result.hash;
        if (!passed) {
            printf("FAIL local:seed_%llu two runs of it differ\n", (unsigned long long)seed);
        }
    }
    if (seed <= 20 || !passed || show) {
        printf("seed %llu trace hash %016llx, %llu turns\n", (unsigned long long)seed,
               (unsigned long long)result.hash, (unsigned long long)result.turns);
    }
    return passed;
}

static size_t
memory_in_use(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

static void
result_print(const char *name, bool passed)
{
    printf("%s local:%s\n", passed ? "PASS" : "FAIL", name);
}

int
main(int argc, char **argv)
{
    const char *from_environment = getenv("TROUPE_SIM_SEEDS");
    uint64_t seeds = from_environment != NULL ? 5 * strtoull(from_environment, NULL, 10) : 1000;
    uint64_t first = 1, failed = 0;
    const char *schedule = NULL;
    size_t in_the_middle = 0, at_the_end;
    bool one = false;
    clock_t began = clock();

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0) {
            first = strtoull(argv[i + 1], NULL, 10);
            seeds = 1;
            one = true;
        } else if (strcmp(argv[i], "--seeds") == 0) {
            seeds = strtoull(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--schedule") == 0) {
            schedule = argv[i + 1];
        }
    }
    for (uint64_t seed = first; seed < first + seeds && failed < 5; seed++) {
        if (seed == first + seeds / 2) {
            in_the_middle = memory_in_use();
        }
        failed += !run_seed(seed, schedule, one, argv[0]);
    }
    at_the_end = memory_in_use();
    printf("%llu seeds, %.1f s: jobs %llu = handled %llu + dead %llu + stashed %llu; spawned %llu, "
           "restarts %llu, watches %llu, terminated %llu, asks %llu\n",
           (unsigned long long)seeds, (double)(clock() - began) / CLOCKS_PER_SEC,
           (unsigned long long)totals.sent, (unsigned long long)totals.received,
           (unsigned long long)totals.dead, (unsigned long long)totals.stashed,
           (unsigned long long)totals.spawned, (unsigned long long)totals.restarts,
           (unsigned long long)totals.watches, (unsigned long long)totals.terminated,
           (unsigned long long)totals.asks);
    result_print("random_programs_keep_the_laws_under_all_seeds", failed == 0);
    if (!one && failed == 0) {
        printf("memory in use: %zu bytes in the middle, %zu at the end\n", in_the_middle,
               at_the_end);
        result_print("all_memory_is_given_back", at_the_end < in_the_middle + MEMORY_GROWTH_MAX);
        failed += at_the_end >= in_the_middle + MEMORY_GROWTH_MAX;
    }
    return failed == 0 ? 0 : 1;
}
