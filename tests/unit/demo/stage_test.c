/* stage_test.c - the screen of a demonstration: messages, threads, rates, trace, history, and the
 * limits of each. */
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "cluster/demo/stage.h"
#include "tests/unit/unit.h"

#define SECOND UINT64_C(1000000000)

static trpi_stage *
stage_of(uint32_t threads, uint32_t actors)
{
    trpi_stage *stage = NULL;
    char name[16];
    uint32_t index = 0;
    UNIT_REQUIRE(trpi_stage_new(&stage) == TRP_OK);
    trpi_stage_reset(stage, threads, 0);
    for (uint32_t i = 0; i < actors; i++) {
        (void)snprintf(name, sizeof name, "actor%u", i);
        UNIT_REQUIRE(trpi_stage_actor_add(stage, name, TRPI_STAGE_TEST_ACTOR, &index) == TRP_OK);
        UNIT_EQUAL(index, i);
    }
    return stage;
}

/* Parse the members that the stage writes. Gives the object. */
static cJSON *
written(trpi_stage *stage, uint64_t line, uint64_t fresh)
{
    trpi_buffer buffer = { 0 };
    UNIT_REQUIRE(trpi_buffer_append_text(&buffer, "{", TRPI_STAGE_JSON_MAX) == TRP_OK);
    UNIT_REQUIRE(trpi_stage_write(stage, line, fresh, &buffer) == TRP_OK);
    UNIT_REQUIRE(trpi_buffer_append_text(&buffer, "}", TRPI_STAGE_JSON_MAX) == TRP_OK);
    char *text = trpi_buffer_take_text(&buffer);
    cJSON *json = cJSON_Parse(text);
    UNIT_REQUIRE(json != NULL);
    trpi_free(text);
    return json;
}

static const cJSON *
member(const cJSON *json, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, name);
    UNIT_REQUIRE(item != NULL);
    return item;
}

static int
number_at(const cJSON *array, int index)
{
    return cJSON_GetArrayItem(array, index)->valueint;
}

/* UJ-46: threads with their actors, actors with what waits, messages with sender and receiver. */
static void
a_message_is_a_link_until_a_thread_takes_it(void)
{
    trpi_stage *stage = stage_of(2, 3);
    trpi_stage_sent(stage, TRPI_STAGE_OUTSIDE, 0);
    trpi_stage_sent(stage, 0, 2);
    trpi_stage_sent(stage, 0, 2);
    trpi_stage_turn_begin(stage, 1, 0, 2, 5);
    cJSON *json = written(stage, 0, 0);
    UNIT_EQUAL(member(json, "waiting")->valueint, 2);
    UNIT_EQUAL(member(json, "busy")->valueint, 1);
    const cJSON *links = member(json, "links");
    UNIT_EQUAL(cJSON_GetArraySize(links), 2);
    UNIT_EQUAL(number_at(cJSON_GetArrayItem(links, 0), 0), 0);
    UNIT_EQUAL(number_at(cJSON_GetArrayItem(links, 0), 1), 2);
    UNIT_EQUAL(number_at(cJSON_GetArrayItem(links, 0), 2), 1);
    UNIT_EQUAL(number_at(cJSON_GetArrayItem(links, 1), 0), (int)TRPI_STAGE_OUTSIDE);
    UNIT_EQUAL(cJSON_GetArraySize(member(json, "fresh")), 3);
    const cJSON *busy = cJSON_GetArrayItem(member(json, "actorList"), 2);
    UNIT_TEXT(cJSON_GetArrayItem(busy, 0)->valuestring, "actor2");
    UNIT_EQUAL(number_at(busy, 2), 1); /* one still waits */
    UNIT_EQUAL(number_at(busy, 3), 1); /* thread 1 has it */
    UNIT_EQUAL(number_at(cJSON_GetArrayItem(member(json, "threadList"), 0), 0), -1);
    UNIT_EQUAL(number_at(cJSON_GetArrayItem(member(json, "threadList"), 1), 0), 2);
    uint64_t fresh = (uint64_t)member(json, "freshNext")->valueint;
    cJSON_Delete(json);
    trpi_stage_turn_end(stage, 1, 6);
    json = written(stage, 0, fresh);
    UNIT_EQUAL(cJSON_GetArraySize(member(json, "fresh")), 0); /* nothing new since that look */
    UNIT_EQUAL(member(json, "completed")->valueint, 1);
    cJSON_Delete(json);
    trpi_stage_free(stage);
}

/* UJ-45: rates and shares of threads are those of the last second. */
static void
rates_and_shares_are_of_the_last_second(void)
{
    trpi_stage *stage = stage_of(2, 1);
    trpi_stage_figures figures;
    for (int i = 0; i < 6; i++) {
        trpi_stage_sent(stage, TRPI_STAGE_OUTSIDE, 0);
    }
    trpi_stage_turn_begin(stage, 0, TRPI_STAGE_OUTSIDE, 0, 0);
    trpi_stage_turn_end(stage, 0, SECOND / 4);
    trpi_stage_turn_begin(stage, 0, TRPI_STAGE_OUTSIDE, 0, SECOND / 2); /* and goes on */
    trpi_stage_step(stage, SECOND);
    trpi_stage_figures_get(stage, &figures);
    UNIT_EQUAL(figures.accepts_per_s, 6);
    UNIT_EQUAL(figures.completions_per_s, 1);
    cJSON *json = written(stage, 0, 0);
    UNIT_EQUAL(number_at(cJSON_GetArrayItem(member(json, "threadList"), 0), 1), 750);
    UNIT_EQUAL(number_at(cJSON_GetArrayItem(member(json, "threadList"), 1), 1), 0);
    cJSON_Delete(json);
    trpi_stage_step(stage, 3 * SECOND); /* it was late: per second all the same */
    trpi_stage_turn_end(stage, 0, 3 * SECOND);
    trpi_stage_sent(stage, 0, 0);
    trpi_stage_step(stage, 3 * SECOND + SECOND / 2);
    trpi_stage_figures_get(stage, &figures);
    UNIT_EQUAL(figures.accepts_per_s, 2);
    UNIT_EQUAL(figures.completions_per_s, 2);
    trpi_stage_free(stage);
}

/* UJ-44: threads that come are idle, and those that stay keep their turn and their share. */
static void
threads_come_and_go(void)
{
    trpi_stage *stage = stage_of(1, 1);
    trpi_stage_sent(stage, TRPI_STAGE_OUTSIDE, 0);
    trpi_stage_turn_begin(stage, 0, TRPI_STAGE_OUTSIDE, 0, 0);
    trpi_stage_threads_set(stage, TRPI_STAGE_THREADS_MAX);
    trpi_stage_step(stage, SECOND);
    cJSON *json = written(stage, 0, 0);
    const cJSON *list = member(json, "threadList");
    UNIT_EQUAL(cJSON_GetArraySize(list), (int)TRPI_STAGE_THREADS_MAX);
    UNIT_EQUAL(number_at(cJSON_GetArrayItem(list, 0), 0), 0);
    UNIT_EQUAL(number_at(cJSON_GetArrayItem(list, 0), 1), 1000);
    UNIT_EQUAL(number_at(cJSON_GetArrayItem(list, (int)TRPI_STAGE_THREADS_MAX - 1), 0), -1);
    cJSON_Delete(json);
    trpi_stage_threads_set(stage, 1);
    trpi_stage_turn_end(stage, 0, SECOND);
    json = written(stage, 0, 0);
    UNIT_EQUAL(cJSON_GetArraySize(member(json, "threadList")), 1);
    UNIT_EQUAL(number_at(cJSON_GetArrayItem(member(json, "threadList"), 0), 0), -1);
    cJSON_Delete(json);
    trpi_stage_free(stage);
}

/* UJ-32: "HH:MM:SS.mmm T [thread] - text", and nothing in it that JSON or a terminal minds. */
static void
a_line_of_the_trace_has_the_form_of_the_article(void)
{
    trpi_stage *stage = stage_of(8, 1);
    char line[TRPI_STAGE_LINE_BYTES];
    trpi_stage_trace(stage, 34812, 'T', 7, "TestActor:%s repeat(%u)", "actor15", 7u);
    trpi_stage_trace(stage, 34812, 'W', TRPI_STAGE_NOBODY, "a\"b\\c\n\x1b\xc3");
    UNIT_TRUE(trpi_stage_line(stage, 0, line));
    UNIT_TEXT(line + 6, "34.812 T [actor7] - TestActor:actor15 repeat(7)");
    UNIT_TRUE(line[2] == ':' && line[5] == ':');
    UNIT_TRUE(trpi_stage_line(stage, 1, line));
    UNIT_TEXT(line + 12, " W [main] - a?b?c???");
    UNIT_FALSE(trpi_stage_line(stage, 2, line));
    cJSON *json = written(stage, 1, 0);
    UNIT_EQUAL(cJSON_GetArraySize(member(json, "trace")), 1); /* from that line on */
    UNIT_EQUAL(member(json, "traceNext")->valueint, 2);
    cJSON_Delete(json);
    trpi_stage_free(stage);
}

/* UJ-47: at the limit of the trace all lines are there, one past it the oldest is not. A long line
 * is cut. */
static void
the_trace_keeps_the_latest_lines(void)
{
    trpi_stage *stage = stage_of(1, 1);
    char line[TRPI_STAGE_LINE_BYTES], text[2 * TRPI_STAGE_LINE_BYTES];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    for (uint32_t i = 0; i < TRPI_STAGE_LINES_MAX; i++) {
        trpi_stage_trace(stage, 0, 'T', 0, "%s", text);
    }
    UNIT_TRUE(trpi_stage_line(stage, 0, line));
    UNIT_EQUAL(strlen(line), TRPI_STAGE_LINE_BYTES - 1);
    trpi_stage_trace(stage, 0, 'T', 0, "last");
    UNIT_TRUE(trpi_stage_line(stage, 0, line));
    UNIT_TEXT(line, "");
    UNIT_TRUE(trpi_stage_line(stage, 1, line));
    UNIT_TRUE(line[0] != '\0');
    cJSON *json = written(stage, 0, 0);
    UNIT_EQUAL(cJSON_GetArraySize(member(json, "trace")), (int)TRPI_STAGE_LINES_MAX);
    cJSON_Delete(json);
    trpi_stage_free(stage);
}

/* UJ-46: 200 actors are shown; there is no room for one more, and those that are there stay. */
static void
at_most_200_actors_are_there(void)
{
    trpi_stage *stage = stage_of(TRPI_STAGE_THREADS_MAX, TRPI_STAGE_ACTORS_MAX);
    uint32_t index = 7;
    UNIT_EQUAL(TRPI_STAGE_ACTORS_MAX, 200);
    UNIT_EQUAL(trpi_stage_actor_add(stage, "more", TRPI_STAGE_WORKER, &index), TRP_ELIMIT);
    UNIT_EQUAL(index, 7);
    for (uint32_t from = 0; from <= TRPI_STAGE_ACTORS_MAX; from++) { /* beyond the links shown */
        for (uint32_t to = 0; to < 8; to++) {
            trpi_stage_sent(stage, from, to);
        }
    }
    cJSON *json = written(stage, 0, 0);
    UNIT_EQUAL(cJSON_GetArraySize(member(json, "actorList")), 200);
    UNIT_EQUAL(cJSON_GetArraySize(member(json, "links")), (int)TRPI_STAGE_LINKS_MAX);
    UNIT_EQUAL(cJSON_GetArraySize(member(json, "fresh")), (int)TRPI_STAGE_FRESH_MAX);
    UNIT_EQUAL(member(json, "waiting")->valueint, 201 * 8);
    cJSON_Delete(json);
    trpi_stage_reset(stage, 1, 0);
    UNIT_EQUAL(trpi_stage_actor_add(stage, "first", TRPI_STAGE_WORKER, &index), TRP_OK);
    UNIT_EQUAL(index, 0);
    json = written(stage, 0, 0);
    UNIT_EQUAL(cJSON_GetArraySize(member(json, "links")), 0); /* nothing of the run before */
    UNIT_EQUAL(cJSON_GetArraySize(member(json, "fresh")), 0);
    cJSON_Delete(json);
    trpi_stage_free(stage);
}

static void
the_least_loaded_is_the_first_with_the_fewest(void)
{
    trpi_stage *stage = stage_of(1, 4);
    const uint32_t of[] = { 3, 1, 2 };
    UNIT_EQUAL(trpi_stage_least(stage, of, 3), 3);
    trpi_stage_sent(stage, 0, 3);
    UNIT_EQUAL(trpi_stage_least(stage, of, 3), 1);
    trpi_stage_sent(stage, 0, 1);
    trpi_stage_sent(stage, 0, 1);
    trpi_stage_sent(stage, 0, 2);
    UNIT_EQUAL(trpi_stage_least(stage, of, 3), 3);
    trpi_stage_free(stage);
}

/* UJ-47: the backlog of each second, and snapshots that stay evenly apart, whatever the length.
 * stage-S3. */
static void
the_past_is_there_at_any_length(void)
{
    trpi_stage *stage = stage_of(1, 2);
    for (uint32_t step = 1; step <= TRPI_STAGE_STEPS_MAX + 1; step++) {
        trpi_stage_sent(stage, 0, 1);
        trpi_stage_step(stage, step * SECOND);
        cJSON *json = written(stage, 0, 0);
        uint32_t steps = step < TRPI_STAGE_STEPS_MAX ? step : TRPI_STAGE_STEPS_MAX;
        const cJSON *past = member(json, "snapshots");
        int count = cJSON_GetArraySize(past);
        UNIT_EQUAL(cJSON_GetArraySize(member(json, "backlog")), (int)steps);
        UNIT_EQUAL(number_at(member(json, "backlog"), (int)steps - 1), (int)steps);
        UNIT_TRUE(count > 0 && count <= (int)TRPI_STAGE_SNAPSHOTS_MAX);
        UNIT_TRUE(step < 8 || count >= (int)TRPI_STAGE_SNAPSHOTS_MAX / 2);
        int every = member(cJSON_GetArrayItem(past, 0), "step")->valueint;
        for (int i = 0; i < count; i++) {
            const cJSON *one = cJSON_GetArrayItem(past, i);
            UNIT_EQUAL(member(one, "step")->valueint, (i + 1) * every);
            UNIT_EQUAL(member(one, "waiting")->valueint, (i + 1) * every);
        }
        cJSON_Delete(json);
    }
    trpi_stage_free(stage);
}

UNIT_BEGIN("demo_stage")
UNIT(a_message_is_a_link_until_a_thread_takes_it)
UNIT(rates_and_shares_are_of_the_last_second)
UNIT(threads_come_and_go)
UNIT(a_line_of_the_trace_has_the_form_of_the_article)
UNIT(the_trace_keeps_the_latest_lines)
UNIT(at_most_200_actors_are_there)
UNIT(the_least_loaded_is_the_first_with_the_fewest)
UNIT(the_past_is_there_at_any_length)
UNIT_END
