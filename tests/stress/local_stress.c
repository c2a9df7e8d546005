/* local_stress.c - the random actor programs of tests/sim, on real threads: what a seed cannot
 * reach are races inside a turn. Run under the thread sanitizer, too.
 *
 *   local_stress --seconds N [--seed S]
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/sim/local_program.h"
#include "tests/unit/unit.h"

#define SETTLE_MS 20000 /* to come to rest, at most; stretched by the kit */

static local_totals totals;
static char failure[1024];

static void
keep_failure(void *arg, const char *file, int line, const char *text)
{
    (void)arg;
    snprintf(failure, sizeof failure, "%s:%d: %s", file, line, text);
}

static void
drop_line(void *arg, const trp_log_line *line)
{
    (void)arg;
    (void)line;
}

static void
one_program(trp_testkit *kit, void *arg)
{
    local_program(kit, arg, &totals);
}

static bool
program_run(uint64_t seed)
{
    local_options options = { seed, 12 + (uint32_t)(seed % 80), 100 + (uint32_t)(seed % 400),
                              3 + (uint32_t)(seed % 7), SETTLE_MS };
    trp_testkit_options kit_options = TRP_TESTKIT_OPTIONS_INIT;
    trp_system_options system_options = TRP_SYSTEM_OPTIONS_INIT;
    trp_testkit *kit;
    uint32_t failed;

    system_options.workers = 2 + (uint32_t)(seed % 3);
    system_options.throughput = seed % 2 == 0 ? 5 : 0;
    system_options.log = drop_line;
    system_options.log_level = TRP_LOG_ERROR;
    kit_options.system_options = &system_options;
    kit_options.quiet_dead_letters = 1;
    kit_options.on_fail = TRP_FAIL_JUMP;
    kit_options.fail = keep_failure;
    kit_options.timefactor = UNIT_STRETCH;
    if (trp_testkit_open(&kit_options, &kit) != TRP_OK) {
        printf("cannot make a system\n");
        return false;
    }
    failed = trp_testkit_run(kit, one_program, &options);
    return trp_testkit_close(kit) == TRP_OK && failed == 0;
}

int
main(int argc, char **argv)
{
    uint64_t seconds = 10, seed = 1, programs = 0;
    uint64_t end;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seconds") == 0) {
            seconds = strtoull(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--seed") == 0) {
            seed = strtoull(argv[i + 1], NULL, 10);
        }
    }
    end = unit_now_ms() + seconds * 1000;
    while (unit_now_ms() < end) {
        if (!program_run(seed)) {
            printf("FAIL local_stress seed %llu: %s\n  replay (may need several runs): %s --seed "
                   "%llu --seconds 10\n",
                   (unsigned long long)seed, failure, argv[0], (unsigned long long)seed);
            return 1;
        }
        seed++;
        programs++;
    }
    printf("%llu programs: jobs %llu = handled %llu + dead %llu + stashed %llu; spawned %llu, "
           "restarts %llu, watches %llu, terminated %llu, asks %llu\n",
           (unsigned long long)programs, (unsigned long long)totals.sent,
           (unsigned long long)totals.received, (unsigned long long)totals.dead,
           (unsigned long long)totals.stashed, (unsigned long long)totals.spawned,
           (unsigned long long)totals.restarts, (unsigned long long)totals.watches,
           (unsigned long long)totals.terminated, (unsigned long long)totals.asks);
    printf("PASS local_stress\n");
    return 0;
}
