/* found_test.c - schedules in which the simulator found something wrong once, each cut down to what
 * it needs. They are files of `troupe sim`; their first line has the rest of the command:
 *
 *     troupe sim --nodes N --seed S --scenario tests/sim/found/NAME.sim --trace
 */
#include <dirent.h>
#include <stdlib.h>

#include "cluster/sim/schedule.h"
#include "cluster/sim/sim.h"
#include "tests/unit/unit.h"

static void
directory_path(char *path, size_t bytes)
{
    (void)snprintf(path, bytes, "%s/tests/sim/found", unit_srcdir());
}

static bool
replay_file(const char *path)
{
    trpi_sim_options options = { .nodes = 0 };
    trpi_sim_result result = { .failed = true };
    char error[160] = "its first line is not '# --nodes N --seed S'";
    char first[128] = "";
    unsigned long long seed = 0;
    trpi_sim_schedule *schedule = NULL;
    FILE *file = fopen(path, "r");
    bool ok = file != NULL && fgets(first, sizeof first, file) != NULL &&
              sscanf(first, "# --nodes %u --seed %llu", &options.nodes, &seed) == 2 &&
              trpi_sim_schedule_read(file, options.nodes, &schedule, error, sizeof error) == TRP_OK;
    options.seed = seed;
    options.schedule = schedule;
    if (ok) {
        ok = trpi_sim_run(&options, &result) == TRP_OK && !result.failed;
        (void)snprintf(error, sizeof error, "%.*s", (int)sizeof error - 1, result.failure);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    trpi_sim_schedule_free(schedule);
    if (!UNIT_TRUE(ok)) {
        printf("  %s\n  replay: troupe sim --nodes %u --seed %llu --scenario %s --trace\n", error,
               options.nodes, seed, path);
    }
    return ok;
}

static int
is_schedule(const struct dirent *entry)
{
    const char *end = strrchr(entry->d_name, '.');
    return end != NULL && strcmp(end, ".sim") == 0;
}

/* GAP-07: a_joiner_votes_twice.sim */
static void
what_was_found_once_is_not_found_again(void)
{
    struct dirent **entries = NULL;
    char directory[512], path[1024];
    directory_path(directory, sizeof directory);
    int count = scandir(directory, &entries, is_schedule, alphasort);
    UNIT_TRUE(count > 0);
    for (int i = 0; i < count; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", directory, entries[i]->d_name);
        (void)replay_file(path);
        free(entries[i]);
    }
    free(entries);
}

UNIT_BEGIN("found")
UNIT(what_was_found_once_is_not_found_again)
UNIT_END
