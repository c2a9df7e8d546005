/* run_test.c - demonstrations from start to end: what their actors reckon, what a stop leaves, and
 * what does not find room. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/demo/demo.h"
#include "tests/unit/unit.h"

#define DEADLINE_MS 120000

static trpi_demo demo;

static void
demo_open(uint32_t pace_ms)
{
    memset(&demo, 0, sizeof demo);
    demo.pace_ms = pace_ms;
    demo.actors = TRPI_DEMO_ACTORS_DEFAULT;
    UNIT_REQUIRE(trpi_world_real_new(&demo.world) == TRP_OK);
    UNIT_REQUIRE(trpi_stage_new(&demo.stage) == TRP_OK);
}

static void
demo_close(void)
{
    trpi_demo_end(&demo);
    trpi_stage_free(demo.stage);
    trpi_world_free(demo.world);
}

static bool
is_state(const char *state)
{
    trpi_demo_tick(&demo);
    return strcmp(trpi_demo_state(&demo), state) == 0;
}

/* The first line of the trace with this text, from line `from` on; "": none. */
static const char *
line_with(const char *text)
{
    static char line[TRPI_STAGE_LINE_BYTES];
    for (uint64_t i = 0; trpi_stage_line(demo.stage, i, line); i++) {
        if (strstr(line, text) != NULL) {
            return line;
        }
    }
    return "";
}

static void
play(trpi_demo_name name)
{
    UNIT_REQUIRE(trpi_demo_start(&demo, name, 10, TRPI_STAGE_STEPS_MAX) == TRP_OK);
    UNIT_WAIT(is_state("done"), DEADLINE_MS);
}

/* UJ-33, UJ-44: 34 actors on 10 threads; in the end nothing waits. */
static void
the_count_down_drains(void)
{
    trpi_stage_figures figures;
    demo_open(1);
    UNIT_TRUE(is_state("idle"));
    play(TRPI_DEMO_COUNTDOWN);
    trpi_stage_figures_get(demo.stage, &figures);
    UNIT_EQUAL(figures.actors, 34);
    UNIT_EQUAL(figures.threads, 10);
    UNIT_EQUAL(figures.waiting + figures.busy, 0);
    UNIT_EQUAL(figures.accepted, figures.completed);
    UNIT_TRUE(figures.completed > 34);
    demo_close();
}

static void
producers_get_all_that_they_ordered(void)
{
    demo_open(1);
    play(TRPI_DEMO_PRODUCER_CONSUMER);
    uint32_t consumers = 0;
    for (uint32_t i = 0; i < TRPI_STAGE_ACTORS_MAX; i++) {
        for (uint32_t item = 0; item < TRPI_DEMO_ITEMS; item++) {
            UNIT_EQUAL(demo.cells[i].expected[item], 0);
        }
        consumers += demo.cells[i].kind == TRPI_STAGE_CONSUMER;
    }
    UNIT_TRUE(consumers >= 4 && consumers <= 12);
    UNIT_TRUE(line_with("all that was ordered so far was built")[0] != '\0');
    demo_close();
}

static void
map_and_reduce_find_the_sum_of_the_squares(void)
{
    uint64_t sum = 0;
    char text[64];
    demo_open(1);
    play(TRPI_DEMO_MAP_REDUCE);
    uint32_t seed = (uint32_t)demo.run;
    for (uint32_t i = 0; i < TRPI_DEMO_VALUES; i++) {
        uint64_t value = trpi_demo_dice(&seed, TRPI_DEMO_VALUES);
        sum += value * value;
    }
    (void)snprintf(text, sizeof text, "**** mapReduce done with result %llu",
                   (unsigned long long)sum);
    UNIT_TRUE(line_with(text)[0] != '\0');
    demo_close();
}

/* Its own tree has 55 text files, of which 5 are suspicious, and is gone with the run. */
static void
the_scan_finds_what_is_suspicious(void)
{
    char tree[sizeof demo.tree];
    struct stat at;
    demo_open(1);
    play(TRPI_DEMO_VIRUS_SCAN);
    UNIT_TRUE(line_with("**** 55 files scanned, 5 suspicious")[0] != '\0');
    memcpy(tree, demo.tree, sizeof tree);
    UNIT_EQUAL(stat(tree, &at), 0);
    trpi_demo_end(&demo);
    UNIT_TRUE(stat(tree, &at) != 0);
    demo_close();
}

/* UJ-43: all at once, and one after the other. */
static void
all_play_together_and_in_turn(void)
{
    trpi_stage_figures figures;
    demo_open(1);
    play(TRPI_DEMO_ALL);
    trpi_stage_figures_get(demo.stage, &figures);
    UNIT_TRUE(figures.actors > 34 + 4 + 1 + 7);
    uint64_t run = demo.run;
    play(TRPI_DEMO_SEQUENCE);
    UNIT_EQUAL(demo.run, run + TRPI_DEMO_PLAYS);
    UNIT_EQUAL((int)demo.play, (int)TRPI_DEMO_VIRUS_SCAN);
    demo_close();
}

/* UJ-44: a stop lets what waits be handled, and nothing more is sent; then it may begin again. */
static void
a_stopped_run_ends_and_another_may_begin(void)
{
    trpi_stage_figures before, after;
    demo_open(TRPI_DEMO_PACE_MS_MAX); /* it would take an hour */
    UNIT_REQUIRE(trpi_demo_start(&demo, TRPI_DEMO_MAP_REDUCE, 3, 10) == TRP_OK);
    UNIT_WAIT((trpi_stage_figures_get(demo.stage, &before), before.busy > 0), DEADLINE_MS);
    UNIT_TRUE(is_state("running"));
    trpi_demo_stop(&demo);
    UNIT_WAIT(is_state("stopped"), DEADLINE_MS);
    trpi_stage_figures_get(demo.stage, &after);
    UNIT_EQUAL(after.waiting + after.busy, 0);
    UNIT_EQUAL(after.threads, 3);
    demo.pace_ms = 1;
    play(TRPI_DEMO_MAP_REDUCE);
    demo_close();
}

/* UJ-44. Its steps are over: it is stopped. */
static void
the_steps_end_a_run(void)
{
    demo_open(60);
    UNIT_REQUIRE(trpi_demo_start(&demo, TRPI_DEMO_PRODUCER_CONSUMER, 1, 1) == TRP_OK);
    UNIT_WAIT(is_state("stopped"), DEADLINE_MS);
    UNIT_TRUE(line_with("stop: nothing is sent any more")[0] != '\0');
    demo_close();
}

/* UJ-44: Add Task and Remove Task while it runs: only added ones are removed, one past the limit is
 * refused, and nothing of it is there when nothing runs. */
static void
tasks_are_added_and_only_added_ones_removed(void)
{
    trpi_stage_figures figures;
    demo_open(TRPI_DEMO_PACE_MS_MAX);
    UNIT_EQUAL(trpi_demo_task_add(&demo), TRP_ESTATE);
    UNIT_EQUAL(trpi_demo_task_remove(&demo), TRP_ESTATE);
    uint32_t base = TRPI_STAGE_THREADS_MAX - 2;
    UNIT_REQUIRE(trpi_demo_start(&demo, TRPI_DEMO_ALL, base, 10) == TRP_OK);
    UNIT_EQUAL(trpi_demo_task_remove(&demo), TRP_ELIMIT);
    UNIT_EQUAL(trpi_demo_task_add(&demo), TRP_OK);
    UNIT_EQUAL(trpi_demo_task_add(&demo), TRP_OK);
    UNIT_EQUAL(trpi_demo_task_add(&demo), TRP_ELIMIT);
    trpi_stage_figures_get(demo.stage, &figures);
    UNIT_EQUAL(figures.threads, TRPI_STAGE_THREADS_MAX);
    UNIT_TRUE(line_with("task added: 64 threads")[0] != '\0');
    UNIT_EQUAL(trpi_demo_task_remove(&demo), TRP_OK);
    UNIT_EQUAL(trpi_demo_task_remove(&demo), TRP_OK);
    UNIT_EQUAL(trpi_demo_task_remove(&demo), TRP_ELIMIT);
    UNIT_TRUE(line_with("task removed: 62 threads")[0] != '\0');
    trpi_demo_stop(&demo);
    UNIT_WAIT(is_state("stopped"), DEADLINE_MS);
    UNIT_WAIT((trpi_stage_figures_get(demo.stage, &figures), figures.threads == base), DEADLINE_MS);
    UNIT_EQUAL(trpi_demo_task_add(&demo), TRP_ESTATE);
    demo_close();
}

/* UJ-44: a sequence keeps its added threads from play to play; the next start has none. */
static void
a_sequence_keeps_added_tasks(void)
{
    trpi_stage_figures figures;
    demo_open(1);
    UNIT_REQUIRE(trpi_demo_start(&demo, TRPI_DEMO_SEQUENCE, 2, TRPI_STAGE_STEPS_MAX) == TRP_OK);
    UNIT_EQUAL(trpi_demo_task_add(&demo), TRP_OK);
    UNIT_WAIT(is_state("done"), DEADLINE_MS);
    UNIT_TRUE(line_with("virus-scan begins: 3 threads")[0] != '\0');
    UNIT_REQUIRE(trpi_demo_start(&demo, TRPI_DEMO_MAP_REDUCE, 2, TRPI_STAGE_STEPS_MAX) == TRP_OK);
    trpi_stage_figures_get(demo.stage, &figures);
    UNIT_EQUAL(figures.threads, 2);
    UNIT_EQUAL(demo.added, 0);
    demo_close();
}

/* 200 actors of the count-down are the limit; with other plays there is no room for one more. */
static void
a_full_stage_is_told(void)
{
    demo_open(1);
    demo.actors = TRPI_STAGE_ACTORS_MAX;
    play(TRPI_DEMO_COUNTDOWN);
    UNIT_TEXT(line_with("no room"), "");
    UNIT_TRUE(trpi_demo_start(&demo, TRPI_DEMO_ALL, 2, 10) == TRP_ELIMIT);
    UNIT_TRUE(line_with("no room for producer0: there are 200 actors")[0] != '\0');
    UNIT_TRUE(is_state("idle"));
    demo_close();
}

UNIT_BEGIN("demo_run")
UNIT(the_count_down_drains)
UNIT(producers_get_all_that_they_ordered)
UNIT(map_and_reduce_find_the_sum_of_the_squares)
UNIT(the_scan_finds_what_is_suspicious)
UNIT(all_play_together_and_in_turn)
UNIT(a_stopped_run_ends_and_another_may_begin)
UNIT(the_steps_end_a_run)
UNIT(tasks_are_added_and_only_added_ones_removed)
UNIT(a_sequence_keeps_added_tasks)
UNIT(a_full_stage_is_told)
UNIT_END
