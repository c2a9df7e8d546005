/* Schedules of the simulator: text and back, what a file may not say, shrinking; and that each
 * fault put in on purpose is found (cluster/sim). */
#include <stdlib.h>

#include "base/alloc.h"
#include "cluster/engine/membership.h"
#include "cluster/sim/schedule.h"
#include "tests/unit/unit.h"

static trp_err
read_text(const char *text, uint32_t nodes, trpi_sim_schedule **ret, char *error)
{
    FILE *file = fmemopen((char *)(uintptr_t)text, strlen(text), "r");
    error[0] = '\0';
    *ret = NULL;
    trp_err err = trpi_sim_schedule_read(file, nodes, ret, error, 160);
    (void)fclose(file);
    return err;
}

static char *
text_of(const trpi_sim_schedule *schedule)
{
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);
    trpi_sim_schedule_write(schedule, file);
    (void)fclose(file);
    return text;
}

static void
what_is_written_is_read_as_the_same(void)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        uint32_t nodes = 1 + (uint32_t)(seed % 9);
        char error[160];
        trpi_sim_schedule *drawn = trpi_sim_schedule_draw(nodes, seed, 0);
        trpi_sim_schedule *again;
        UNIT_REQUIRE(drawn != NULL && drawn->count > 10);
        char *text = text_of(drawn);
        UNIT_EQUAL(read_text(text, nodes, &again, error), TRP_OK);
        UNIT_TEXT(error, "");
        UNIT_REQUIRE(again != NULL);
        char *more = text_of(again);
        UNIT_TEXT(more, text);
        free(text);
        free(more);
        trpi_sim_schedule_free(drawn);
        trpi_sim_schedule_free(again);
    }
}

static void
every_action_has_its_line(void)
{
    static const char text[] = "# a comment, and an empty line\n\n"
                               "0s stable-after 5s\n"
                               "0s down-all-when-unstable 1m\n"
                               "0s downing static-quorum\n0s quorum-size 2\n0s monitored-by 3\n"
                               "0s min-members 2\n0s delay 1ms 20ms\n0s buggify on\n"
                               "0s exiting-takes 3s\n0s careful off\n0s supervised off\n"
                               "1s kill 2   # with a comment\n"
                               "1500ms start 2\n2s pause 1 700ms\n3s leave 1 0\n4s down 2 0\n"
                               "5s cut 011 8s both\n6s link 0 2 8s one-way\n7s heal\n8s loss 10%\n"
                               "8s duplicate 0.5%\n8s corrupt 100%\n9s skew 1 -5s\n1m end\n";
    static const char complete[] =
        "0s complete on\n1s join 1 0\n2s shutdown 2\n3s leave-back 1 0 20ms\n"
        "4s down-back 1 0 20ms\n5s port 2 5s\n6s dial 0 2 5s\n7s reset 1\n8s rotate 1\n"
        "9s strangers 0 20 5s\n9s slow 1 5s\n"
        "10s start-alone 2\n11s start-wrong 2\n12s start-doubled 2 1\n";
    const char *const texts[] = { text, complete };
    uint64_t seen = 0;
    for (size_t t = 0; t < 2; t++) {
        char error[160];
        trpi_sim_schedule *schedule;
        UNIT_EQUAL(read_text(texts[t], 3, &schedule, error), TRP_OK);
        UNIT_TEXT(error, "");
        UNIT_REQUIRE(schedule != NULL);
        UNIT_EQUAL(trpi_sim_schedule_is_complete(schedule), t == 1);
        for (uint32_t i = 0; i < schedule->count; i++) {
            seen |= UINT64_C(1) << schedule->actions[i].act;
        }
        trpi_sim_schedule_free(schedule);
    }
    UNIT_EQUAL(seen, (UINT64_C(1) << TRPI_SIM_ACTS) - 1);
}

static void
a_wrong_line_is_refused_with_its_number(void)
{
    static const struct {
        const char *text, *error;
    } wrong[] = {
        { "1s kil 2\n", "line 1: 'kil' is no action; did you mean kill?" },
        { "1s join 1 0\n", "join is for complete nodes: write 0s complete on" },
        { "0s complete on\n1s loss 5%\n", "loss is not for complete nodes (complete on)" },
        { "\n1s kill 3\n", "line 2: '3' is no node: they are 0 to 2" },
        { "1s kill 4294967296\n", "line 1: '4294967296' is no node: they are 0 to 2" },
        { "1s kill\n", "line 1: kill takes 1 arguments" },
        { "1s\n", "line 1: a line is TIME ACTION ARGUMENTS" },
        { "1 kill 1\n", "line 1: '1' is no duration of at most a day: write 500ms, 5s or 2m" },
        { "86401s end\n",
          "line 1: '86401s' is no duration of at most a day: write 500ms, 5s or 2m" },
        { "1s pause 1 -5s\n",
          "line 1: '-5s' is no duration of at most a day: write 500ms, 5s or 2m" },
        { "1s cut 01 1s both\n", "line 1: '01': write 0 or 1 for each of the 3 nodes" },
        { "1s cut 012 1s both\n", "line 1: '012': write 0 or 1 for each of the 3 nodes" },
        { "1s cut 011 1s all\n", "line 1: 'all': write one-way or both" },
        { "1s loss 101%\n", "line 1: '101%': write per cent as 12% or 12.5%, at most 100%" },
        { "1s loss 100.1%\n", "line 1: '100.1%': write per cent as 12% or 12.5%, at most 100%" },
        { "0s downing keep-oldst\n", "line 1: 'keep-oldst' is no downing strategy" },
        { "0s careful maybe\n", "line 1: 'maybe': write on or off" },
        { "1s careful on\n", "line 1: careful is a setting: it stands at 0s" },
        { "0s quorum-size 100001\n", "line 1: '100001' is no number up to 100000" },
        { "2s heal\n1s heal\n", "line 2: the line above is later; write them in order of time" },
        { "1s a b c d e f g h\n", "line 1: more than 8 words" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char error[160];
        trpi_sim_schedule *schedule;
        UNIT_EQUAL(read_text(wrong[i].text, 3, &schedule, error), TRP_ECONFIG);
        UNIT_TEXT(error, wrong[i].error);
    }
}

static trp_err
read_lines(uint32_t count, char *error)
{
    trpi_sim_schedule *schedule;
    char *text = calloc(count, 8);
    for (uint32_t i = 0; i < count; i++) {
        memcpy(text + i * 8, "1s heal\n", 8);
    }
    FILE *file = fmemopen(text, count * 8, "r");
    error[0] = '\0';
    trp_err err = trpi_sim_schedule_read(file, 3, &schedule, error, 160);
    (void)fclose(file);
    free(text);
    if (err == TRP_OK) {
        UNIT_EQUAL(schedule->count, count);
        trpi_sim_schedule_free(schedule);
    }
    return err;
}

static void
limits_hold_at_the_limit_and_not_one_past_it(void)
{
    char error[160];
    UNIT_EQUAL(read_lines(TRPI_SIM_ACTIONS_MAX, error), TRP_OK);
    UNIT_EQUAL(read_lines(TRPI_SIM_ACTIONS_MAX + 1, error), TRP_ECONFIG);
    UNIT_TEXT(error, "line 10001: more than 10000 actions");
    char line[TRPI_SIM_LINE_BYTES_MAX + 2];
    trpi_sim_schedule *schedule;
    memset(line, ' ', sizeof line);
    memcpy(line, "1s heal", 7);
    line[TRPI_SIM_LINE_BYTES_MAX - 1] = '\n'; /* with its end, exactly the limit */
    line[TRPI_SIM_LINE_BYTES_MAX] = '\0';
    UNIT_EQUAL(read_text(line, 3, &schedule, error), TRP_OK);
    trpi_sim_schedule_free(schedule);
    line[TRPI_SIM_LINE_BYTES_MAX - 1] = ' ';
    line[TRPI_SIM_LINE_BYTES_MAX] = '\n';
    line[TRPI_SIM_LINE_BYTES_MAX + 1] = '\0';
    UNIT_EQUAL(read_text(line, 3, &schedule, error), TRP_ECONFIG);
    UNIT_TEXT(error, "line 1: longer than 10199 bytes");
}

/* No node starts, or is spared, that is not told to. */
static void
a_schedule_happens_as_written(void)
{
    static const char text[] = "0s stable-after 3s\n5s kill 4\n20s pause 1 2s\n30s end\n";
    char error[160];
    trpi_sim_schedule *schedule;
    UNIT_EQUAL(read_text(text, 5, &schedule, error), TRP_OK);
    trpi_sim_options options = { .nodes = 5, .seed = 3, .schedule = schedule };
    trpi_sim_result result, again;
    UNIT_EQUAL(trpi_sim_run(&options, &result), TRP_OK);
    UNIT_TEXT(result.failure, "");
    UNIT_EQUAL(result.incarnations, 5); /* no node starts that is not told to */
    UNIT_EQUAL(trpi_sim_run(&options, &again), TRP_OK);
    UNIT_TRUE(result.hash == again.hash);
    options.seed = 4;
    UNIT_EQUAL(trpi_sim_run(&options, &again), TRP_OK);
    UNIT_TRUE(result.hash != again.hash);
    trpi_sim_schedule_free(schedule);
}

/* An operator who downs the healthy on both sides of a cut makes two clusters: careful = off. */
static void
shrinking_leaves_what_the_failure_needs(void)
{
    static const char text[] = "0s careful off\n0s downing manual\n"
                               "1s pause 2 1s\n2s loss 5%\n3s cut 0011 40s both\n4s skew 1 5s\n"
                               "10s down 2 0\n10s down 3 0\n11s down 0 2\n11s down 1 2\n"
                               "30s loss 1%\n50s end\n";
    char error[160];
    trpi_sim_schedule *schedule;
    UNIT_EQUAL(read_text(text, 4, &schedule, error), TRP_OK);
    trpi_sim_options options = { .nodes = 4, .seed = 1 };
    trpi_sim_result result;
    uint32_t before = schedule->count;
    UNIT_EQUAL(trpi_sim_shrink(&options, &schedule, &result), TRP_OK);
    UNIT_TRUE(result.failed);
    UNIT_TRUE(schedule->count < before);
    options.schedule = schedule;
    trpi_sim_result again;
    UNIT_EQUAL(trpi_sim_run(&options, &again), TRP_OK);
    UNIT_TEXT(again.failure, result.failure);
    for (uint32_t i = 2; i < schedule->count; i++) { /* each of what is left is needed */
        trpi_sim_schedule *shorter = trpi_sim_schedule_without(schedule, i, 1);
        options.schedule = shorter;
        UNIT_EQUAL(trpi_sim_run(&options, &again), TRP_OK);
        UNIT_FALSE(again.failed);
        trpi_sim_schedule_free(shorter);
    }
    trpi_sim_schedule_free(schedule);
}

/* Only developer builds have them; others must run as if nothing were asked for. */
static void
faults_put_in_on_purpose_are_found(void)
{
    /* A node that stands still three times for so long would be found late, if that were its
     * rhythm. A swarm needs a thousand seeds and more to draw it (sim/README.md). */
    static const char pauses[] = "0s careful on\n0s stable-after 60s\n"
                                 "0s down-all-when-unstable 0s\n"
                                 "10s pause 4 20s\n40s pause 4 20s\n70s pause 4 20s\n100s end\n";
    static const struct {
        uint32_t broken;
        const char *schedule; /* NULL: drawn */
        const char *label;    /* of the invariant that a check function names */
    } faults[] = { { TRPI_BROKEN_NO_TOMBSTONES, NULL, ": gossip-merge-M3: " },
                   { TRPI_BROKEN_DIGEST_WITHOUT_SEEN, NULL, ": membership-gossip-W3: " },
                   { TRPI_BROKEN_LEARN_PAUSE, pauses, ": phi-P4: " } };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        trpi_sim_schedule *schedule = NULL;
        bool found = false;
        char error[160];
        if (faults[i].schedule != NULL) {
            UNIT_EQUAL(read_text(faults[i].schedule, 5, &schedule, error), TRP_OK);
        }
        for (uint64_t seed = 1; seed <= 3 && !found; seed++) {
            trpi_sim_options options = { .nodes = 5,
                                         .seed = seed,
                                         .scenario = schedule == NULL ? "swarm" : NULL,
                                         .schedule = schedule,
                                         .broken = faults[i].broken };
            trpi_sim_result result;
            UNIT_EQUAL(trpi_sim_run(&options, &result), TRP_OK);
            found = result.failed;
            UNIT_TRUE(!found || strstr(result.failure, faults[i].label) != NULL);
        }
        trpi_sim_schedule_free(schedule);
#ifdef TRPI_DEBUG
        UNIT_TRUE(found);
#else
        UNIT_FALSE(found);
#endif
    }
}

UNIT_BEGIN("schedule")
UNIT(what_is_written_is_read_as_the_same)
UNIT(every_action_has_its_line)
UNIT(a_wrong_line_is_refused_with_its_number)
UNIT(limits_hold_at_the_limit_and_not_one_past_it)
UNIT(a_schedule_happens_as_written)
UNIT(shrinking_leaves_what_the_failure_needs)
UNIT(faults_put_in_on_purpose_are_found)
UNIT_END
