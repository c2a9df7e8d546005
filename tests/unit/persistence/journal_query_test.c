/* journal_query_test.c - events of an id or a tag, as they are and as they come, by demand. */
#include <inttypes.h>

#include <troupe/journal_query.h>

#include "tests/unit/persistence/book.h"

static book b;

static trp_journal_query_options
options_of(const char *id, const char *tag)
{
    trp_journal_query_options options = TRP_JOURNAL_QUERY_OPTIONS_INIT;

    options.receiver = trp_probe_ref(b.probe);
    options.id = id;
    options.tag = tag;
    return options;
}

static trp_ref
query_open(trp_journal_query_options options)
{
    trp_ref ref = TRP_REF_NONE;

    UNIT_REQUIRE(trp_system_journal_query_spawn(b.system, &options, &ref) == TRP_OK);
    book_run(&b, 0);
    return ref;
}

static void
request(trp_ref query, uint32_t events)
{
    trp_journal_query_request ask = { events };

    trp_system_tell(b.system, query, &trp_journal_query_request_type, &ask, sizeof ask);
    book_run(&b, 0);
}

/* The events that have come, and no more, are those of id with these numbers. */
static void
expect_events(const char *id, uint64_t first, uint64_t last)
{
    for (uint64_t n = first; n <= last; n++) {
        const trp_msg *msg = trp_probe_receive(b.probe, TRP_TEST_TIME);
        const trp_journal_event *event = msg != NULL ? trp_journal_query_event_of(msg) : NULL;
        char text[24];
        int bytes = snprintf(text, sizeof text, "%" PRIu64, n);

        UNIT_REQUIRE(event != NULL);
        UNIT_TEXT(event->id, id);
        UNIT_TEXT(event->type, "bank.deposit");
        UNIT_EQUAL(event->number, n);
        UNIT_EQUAL(event->bytes, (size_t)bytes);
        UNIT_EQUAL(memcmp(event->data, text, (size_t)bytes), 0);
    }
    UNIT_TRUE(trp_probe_expect_none(b.probe, 0) != 0);
}

static trp_journal_query_state
expect_state(trp_journal_query_status status)
{
    trp_journal_query_state state;
    const trp_msg *msg = trp_probe_receive(b.probe, TRP_TEST_TIME);

    memset(&state, 0, sizeof state);
    UNIT_REQUIRE(msg != NULL && trp_msg_is(msg, &trp_journal_query_state_type));
    memcpy(&state, trp_msg_payload(msg), sizeof state);
    UNIT_EQUAL(state.status, status);
    return state;
}

static void
it_tells_no_more_than_it_was_asked_for_and_then_the_end(void)
{
    trp_ref query;

    book_open(&b);
    book_append(&b, "a", "red", 1, 7, false);
    book_append(&b, "b", "blue", 1, 2, false);
    query = query_open(options_of("a", NULL));
    expect_events("a", 1, 0);
    request(query, 3);
    expect_events("a", 1, 3);
    request(query, 4); /* exactly the rest: whether that was all is seen by the next request */
    for (uint64_t n = 4; n <= 7; n++) {
        UNIT_TRUE(trp_probe_receive(b.probe, TRP_TEST_TIME) != NULL);
    }
    UNIT_EQUAL(expect_state(TRP_JOURNAL_QUERY_AT_END).position, 7);
    book_run(&b, 0);
    UNIT_EQUAL(trp_probe_watch(b.probe, query), TRP_OK);
    UNIT_TRUE(trp_probe_expect_terminated(b.probe, TRP_TEST_TIME, query) != NULL);
    book_close(&b);
}

static void
of_an_id_it_begins_and_ends_where_it_is_told(void)
{
    trp_journal_query_options options;

    book_open(&b);
    book_append(&b, "a", NULL, 1, 9, false);
    options = options_of("a", NULL);
    options.after = 3;
    options.to = 5;
    options.demand = 100;
    options.live = 1;
    (void)query_open(options);
    UNIT_EQUAL(trp_journal_query_event_of(trp_probe_receive(b.probe, TRP_TEST_TIME))->number, 4);
    UNIT_EQUAL(trp_journal_query_event_of(trp_probe_receive(b.probe, TRP_TEST_TIME))->number, 5);
    UNIT_EQUAL(expect_state(TRP_JOURNAL_QUERY_AT_END).position, 5);
    book_close(&b);
}

static void
a_live_one_is_woken_by_commits_of_its_node(void)
{
    trp_journal_query_options options;

    book_open(&b);
    options = options_of(NULL, "red");
    options.live = 1;
    options.demand = 100;
    options.poll_ms = 60000;
    (void)query_open(options);
    expect_events("a", 1, 0);
    book_append(&b, "a", "red", 1, 3, true);
    book_run(&b, TRP_JOURNAL_QUERY_PAUSE_MS);
    expect_events("a", 1, 3);
    book_append(&b, "b", "blue", 1, 3, true); /* of no interest */
    book_run(&b, TRP_JOURNAL_QUERY_PAUSE_MS);
    book_append(&b, "a", "red", 4, 4, true);
    book_run(&b, TRP_JOURNAL_QUERY_PAUSE_MS - 1);
    expect_events("a", 4, 3);
    book_run(&b, 1);
    expect_events("a", 4, 4);
    book_close(&b);
}

static void
what_other_nodes_write_is_found_by_polling(void)
{
    trp_journal_query_options options;

    book_open(&b);
    options = options_of(NULL, NULL);
    options.live = 1;
    options.demand = 100;
    options.poll_ms = 500;
    (void)query_open(options);
    book_append(&b, "a", NULL, 1, 2, false);
    book_run(&b, 499);
    expect_events("a", 1, 0);
    book_run(&b, 1);
    expect_events("a", 1, 2);
    book_close(&b);
}

/* The whole of a tag in batches of two, each event once. */
static void
batches_are_told_without_gap_and_none_twice(void)
{
    trp_journal_query_options options;

    book_open(&b);
    book_append(&b, "a", "red", 1, 101, false);
    options = options_of(NULL, "red");
    options.batch_events = 2;
    options.live = 1;
    options.demand = 101;
    trp_ref query = query_open(options);
    expect_events("a", 1, 101);
    request(query, 1);
    expect_events("a", 102, 101);
    book_close(&b);
}

static void
a_failed_read_is_told_and_repeated_after_pauses_that_double(void)
{
    trp_journal_query_options options;
    trp_journal_query_state state;

    book_open(&b);
    book_append(&b, "a", NULL, 1, 1, false);
    trp_journal_memory_fail(b.memory, TRP_JOURNAL_EVENTS, 0, 4, TRP_JOURNAL_FAILED, TRP_ETIMEDOUT);
    options = options_of("a", NULL);
    options.demand = 5;
    options.live = 1;
    options.retry_ms = 100;
    options.retry_ms_max = 300;
    (void)query_open(options);
    for (uint32_t i = 1, ms = 100; i <= 4; i++, ms = ms == 100 ? 200 : 300) {
        state = expect_state(TRP_JOURNAL_QUERY_RETRIES);
        UNIT_EQUAL(state.err, TRP_ETIMEDOUT);
        UNIT_EQUAL(state.failures, i);
        UNIT_EQUAL(state.retry_ms, ms);
        book_run(&b, ms - 1);
        UNIT_TRUE(trp_probe_expect_none(b.probe, 0) != 0);
        book_run(&b, 1);
    }
    UNIT_EQUAL(expect_state(TRP_JOURNAL_QUERY_RUNS).failures, 0);
    expect_events("a", 1, 1);
    book_close(&b);
}

/* A journal that stands still: the answer comes to a query that was restarted, or has ended. */
static void
an_answer_that_comes_too_late_disturbs_nobody(void)
{
    trp_journal_query_options options;
    trp_ref query;

    book_open(&b);
    book_append(&b, "a", NULL, 1, 3, false);
    trp_journal_memory_hold(b.memory, 1);
    options = options_of("a", NULL);
    options.demand = 10;
    options.live = 1;
    query = query_open(options);
    trp_system_tell(b.system, query, &trp_kill_type, NULL, 0); /* stops by the default decider */
    book_run(&b, 0);
    query = query_open(options);
    trp_journal_memory_hold(b.memory, 0);
    book_run(&b, 0);
    expect_events("a", 1, 3);
    UNIT_EQUAL(stage_dead_sum(b.system), 0);
    trp_journal_memory_hold(b.memory, 1);
    request(query, 5);
    trp_testkit_close(b.kit); /* the read is answered when no system is there */
    trp_journal_memory_hold(b.memory, 0);
    trp_journal_memory_free(b.memory);
}

static void
demand_and_options_have_limits(void)
{
    char id[TRP_JOURNAL_ID_BYTES_MAX + 2], tag[TRP_JOURNAL_TAG_BYTES_MAX + 2];
    trp_journal_query_options options;
    trp_ref ref;

    book_open(&b);
    memset(id, 'i', sizeof id);
    memset(tag, 't', sizeof tag);
    for (int over = 0; over <= 1; over++) {
        id[TRP_JOURNAL_ID_BYTES_MAX] = tag[TRP_JOURNAL_TAG_BYTES_MAX] = over ? 'x' : '\0';
        id[TRP_JOURNAL_ID_BYTES_MAX + over] = tag[TRP_JOURNAL_TAG_BYTES_MAX + over] = '\0';
        options = options_of(id, NULL);
        UNIT_EQUAL(trp_system_journal_query_spawn(b.system, &options, &ref),
                   over ? TRP_EMSGSIZE : TRP_OK);
        options = options_of(NULL, tag);
        UNIT_EQUAL(trp_system_journal_query_spawn(b.system, &options, &ref),
                   over ? TRP_EMSGSIZE : TRP_OK);
#define LIMIT(member, most)                                                                        \
    options = options_of("a", NULL);                                                               \
    options.member = (most) + (uint32_t)over;                                                      \
    UNIT_EQUAL(trp_system_journal_query_spawn(b.system, &options, &ref), over ? TRP_EINVAL : TRP_OK)
        LIMIT(demand, TRP_JOURNAL_QUERY_DEMAND_MAX);
        LIMIT(batch_events, TRP_JOURNAL_QUERY_BATCH_MAX);
        LIMIT(batch_bytes, TRP_JOURNAL_QUERY_BATCH_BYTES_MAX);
        LIMIT(poll_ms, TRP_JOURNAL_QUERY_DELAY_MS_MAX);
        LIMIT(retry_ms, TRP_JOURNAL_QUERY_DELAY_MS_MAX);
        LIMIT(retry_ms_max, TRP_JOURNAL_QUERY_DELAY_MS_MAX);
        LIMIT(live, 1);
    }
    options = options_of("a", "red");
    UNIT_EQUAL(trp_system_journal_query_spawn(b.system, &options, &ref), TRP_EINVAL);
    options = options_of(NULL, "red");
    options.to = 1;
    UNIT_EQUAL(trp_system_journal_query_spawn(b.system, &options, &ref), TRP_EINVAL);
    options.to = 0;
    options.receiver = (trp_ref)TRP_REF_NONE;
    UNIT_EQUAL(trp_system_journal_query_spawn(b.system, &options, &ref), TRP_EINVAL);
    UNIT_EQUAL(trp_system_journal_query_spawn(b.system, NULL, &ref), TRP_EINVAL);
    book_close(&b);
}

/* More than TRP_JOURNAL_QUERY_DEMAND_MAX is not counted: with it at the limit, one more changes
 * nothing, and the query goes on. */
static void
demand_above_its_limit_is_not_counted(void)
{
    trp_ref query;

    book_open(&b);
    book_append(&b, "a", NULL, 1, 2, false);
    trp_journal_query_options options = options_of("a", NULL);
    options.live = 1;
    query = query_open(options);
    request(query, UINT32_MAX);
    request(query, 1);
    expect_events("a", 1, 2);
    request(query, 0);
    UNIT_EQUAL(stage_dead_sum(b.system), 0);
    book_close(&b);
}

static void
it_needs_a_journal_and_ends_with_its_receiver(void)
{
    trp_journal_query_options options;
    trp_system *bare = stage_open();
    trp_probe *other;
    trp_ref query;

    book_open(&b);
    options = options_of("a", NULL);
    UNIT_EQUAL(trp_system_journal_query_spawn(bare, &options, &query), TRP_ESTATE);
    stage_close(bare);
    UNIT_REQUIRE(trp_probe_open(b.kit, &other) == TRP_OK);
    options.receiver = trp_probe_ref(other);
    options.live = 1;
    query = query_open(options);
    UNIT_EQUAL(trp_probe_watch(b.probe, query), TRP_OK);
    trp_probe_close(other);
    book_run(&b, 0);
    UNIT_TRUE(trp_probe_expect_terminated(b.probe, TRP_TEST_TIME, query) != NULL);
    book_close(&b);
}

UNIT_BEGIN("journal_query")
UNIT(it_tells_no_more_than_it_was_asked_for_and_then_the_end)
UNIT(of_an_id_it_begins_and_ends_where_it_is_told)
UNIT(a_live_one_is_woken_by_commits_of_its_node)
UNIT(what_other_nodes_write_is_found_by_polling)
UNIT(batches_are_told_without_gap_and_none_twice)
UNIT(a_failed_read_is_told_and_repeated_after_pauses_that_double)
UNIT(an_answer_that_comes_too_late_disturbs_nobody)
UNIT(demand_and_options_have_limits)
UNIT(demand_above_its_limit_is_not_counted)
UNIT(it_needs_a_journal_and_ends_with_its_receiver)
UNIT_END
