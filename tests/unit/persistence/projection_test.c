/* projection_test.c - handled in order, continued behind the stored offset, by one at a time. */
#include <inttypes.h>

#include <troupe/projection.h>

#include "tests/unit/persistence/book.h"

static book b;

/* The orders of the handler, and the events that it has seen. */
static struct hand {
    uint64_t seen[512];
    uint32_t count;
    uint32_t failures; /* of the next calls */
    uint64_t bad;      /* the event of this number always fails */
    uint32_t emits;    /* for each event */
    trp_err emitted;   /* last result */
} hand;

static trp_err
hand_handle(trp_projection *projection, trp_ctx *ctx, void *arg, const trp_journal_event *event)
{
    trp_journal_event out;

    (void)ctx;
    UNIT_TRUE(arg == &hand);
    memset(&out, 0, sizeof out);
    out.type = "report.line";
    out.data = event->data;
    out.bytes = event->bytes;
    for (uint32_t i = 0; i < hand.emits; i++) {
        hand.emitted = trp_projection_emit(projection, &out);
    }
    if (hand.failures != 0 || event->number == hand.bad) {
        hand.failures -= hand.failures != 0;
        return TRP_EIO;
    }
    hand.seen[hand.count++ % 512] = event->number;
    return TRP_OK;
}

static trp_projection_options
options_of(const char *name)
{
    trp_projection_options options = TRP_PROJECTION_OPTIONS_INIT;

    options.name = name;
    options.tag = "red";
    options.handler = hand_handle;
    options.arg = &hand;
    options.save_events = 10;
    options.retry_ms = 100;
    return options;
}

static trp_ref
projection_open(trp_projection_options options)
{
    trp_ref ref = TRP_REF_NONE;

    UNIT_REQUIRE(trp_system_projection_spawn(b.system, &options, &ref) == TRP_OK);
    book_run(&b, 0);
    return ref;
}

static void
expect_seen(uint64_t first, uint64_t last)
{
    UNIT_EQUAL(hand.count, last - first + 1);
    for (uint32_t i = 0; i < hand.count; i++) {
        UNIT_EQUAL(hand.seen[i], first + i);
    }
    hand.count = 0;
}

static trp_projection_status
status_of(trp_ref projection)
{
    trp_projection_status status;

    memset(&status, 0, sizeof status);
    trp_probe_tell(b.probe, projection, &trp_projection_ask_status_type, NULL, 0);
    book_run(&b, 0);
    const trp_msg *msg = trp_probe_receive(b.probe, TRP_TEST_TIME);
    UNIT_REQUIRE(msg != NULL && trp_msg_is(msg, &trp_projection_status_type));
    memcpy(&status, trp_msg_payload(msg), sizeof status);
    return status;
}

static void
expect_end(trp_ref projection)
{
    UNIT_EQUAL(trp_probe_watch(b.probe, projection), TRP_OK);
    book_run(&b, 0);
    UNIT_TRUE(trp_probe_expect_terminated(b.probe, TRP_TEST_TIME, projection) != NULL);
}

static void
begin(void)
{
    memset(&hand, 0, sizeof hand);
    book_open(&b);
}

static void
it_handles_in_order_and_continues_behind_what_it_has_handled(void)
{
    trp_projection_status status;
    trp_ref projection;

    begin();
    book_append(&b, "a", "red", 1, 25, false);
    projection = projection_open(options_of("days"));
    expect_seen(1, 25);
    status = status_of(projection);
    UNIT_EQUAL(status.phase, TRP_PROJECTION_RUNS);
    UNIT_EQUAL(status.handled, 25);
    UNIT_EQUAL(status.position, 25);
    UNIT_EQUAL(status.saved, 20);
    book_run(&b, TRP_PROJECTION_SAVE_MS_DEFAULT);
    UNIT_EQUAL(status_of(projection).saved, 25);
    book_append(&b, "a", "red", 26, 28, true);
    book_run(&b, 10);
    expect_seen(26, 28);
    UNIT_EQUAL(trp_testkit_close(b.kit), TRP_OK); /* stopped: it stores where it is */
    book_open_again(&b);
    book_append(&b, "a", "red", 29, 30, false);
    (void)projection_open(options_of("days"));
    expect_seen(29, 30);
    (void)projection_open(options_of("weeks")); /* another one has an offset of its own */
    expect_seen(1, 30);
    book_close(&b);
}

/* At least once: what was handled and not stored is handled again, and nothing is left out. */
static void
a_lost_save_repeats_and_loses_nothing(void)
{
    begin();
    book_append(&b, "a", "red", 1, 15, false);
    trp_journal_memory_fail(b.memory, TRP_JOURNAL_SNAPSHOT_SAVE, 0, 1, TRP_JOURNAL_REFUSED,
                            TRP_EAGAIN);
    (void)projection_open(options_of("days"));
    hand.count = 0;
    book_run(&b, 100); /* it begins again */
    expect_seen(1, 15);
    book_close(&b);
}

/* The lines that an exactly-once projection has emitted: those of events 1 .. last, once each. */
static uint64_t line_next;

static trp_err
line_check(trp_journal_op *op, const trp_journal_event *event)
{
    char text[24];

    (void)op;
    if (strcmp(event->type, "report.line") == 0) {
        int bytes = snprintf(text, sizeof text, "%" PRIu64, line_next++);

        UNIT_EQUAL(event->bytes, (size_t)bytes);
        UNIT_EQUAL(memcmp(event->data, text, (size_t)bytes), 0);
    }
    return TRP_OK;
}

static void
expect_lines(const char *id, uint64_t last)
{
    trp_journal_op op = TRP_JOURNAL_OP_INIT;

    op.kind = TRP_JOURNAL_EVENTS;
    op.id = id;
    op.from = 1;
    op.give = line_check;
    line_next = 1;
    book_call(&b, &op);
    UNIT_EQUAL(line_next - 1, last);
}

/* Appends whose outcome is unknown, each second of which was carried out. */
static void
exactly_once_repeats_nothing_whatever_the_journal_does(void)
{
    trp_projection_options options = options_of("lines");

    begin();
    options.exactly_once = 1;
    hand.emits = 1;
    book_append(&b, "a", "red", 1, 95, false);
    trp_journal_memory_fail(b.memory, TRP_JOURNAL_APPEND, 2, 4, TRP_JOURNAL_FAILED, TRP_ETIMEDOUT);
    (void)projection_open(options);
    book_run(&b, 10000);
    expect_lines("projection/lines", 95);
    hand.emits = 0; /* only the offset moves, as a snapshot */
    book_append(&b, "a", "red", 96, 99, true);
    book_run(&b, 1000);
    UNIT_EQUAL(trp_testkit_close(b.kit), TRP_OK);
    book_open_again(&b);
    hand.count = 0;
    (void)projection_open(options);
    expect_seen(1, 0);
    book_close(&b);
}

static void
what_a_failed_call_emitted_is_forgotten(void)
{
    trp_projection_options options = options_of("lines");

    begin();
    options.exactly_once = 1;
    options.ends = 1;
    hand.emits = 1;
    hand.failures = 3;
    book_append(&b, "a", "red", 1, 5, false);
    trp_ref projection = projection_open(options);
    UNIT_EQUAL(status_of(projection).phase, TRP_PROJECTION_RETRIES);
    expect_seen(1, 0);
    book_run(&b, 100 + 200 + 400);
    expect_seen(1, 5);
    expect_end(projection); /* it has handled all */
    expect_lines("projection/lines", 5);
    book_close(&b);
}

static void
a_second_one_of_the_name_takes_over_and_the_first_stops(void)
{
    trp_projection_options options = options_of("days");
    trp_testkit *first = NULL;
    trp_ref old;
    book other;

    begin();
    book_append(&b, "a", "red", 1, 5, false);
    old = projection_open(options);
    book_run(&b, 1000);
    expect_seen(1, 5);
    first = b.kit;
    other = b;
    book_open_again(&b); /* a second node over the same journal */
    (void)projection_open(options);
    expect_seen(1, 0);
    book_append(&b, "a", "red", 6, 6, true);
    book_run(&b, 1000);
    expect_seen(6, 6);
    b = other; /* the first node: it finds the event, and its offset is refused */
    UNIT_EQUAL(trp_probe_watch(b.probe, old), TRP_OK);
    book_run(&b, 2000);
    UNIT_TRUE(trp_probe_expect_terminated(b.probe, TRP_TEST_TIME, old) != NULL);
    UNIT_EQUAL(trp_testkit_close(first), TRP_OK);
    trp_journal_memory_free(b.memory);
}

static void
on_failure_says_what_happens(void)
{
    trp_projection_options options = options_of("days");
    trp_ref projection;

    for (uint32_t policy = 0; policy <= TRP_PROJECTION_STOP; policy++) {
        bool again = policy <= TRP_PROJECTION_RETRY_THEN_SKIP;

        begin();
        hand.bad = 3;
        book_append(&b, "a", "red", 1, 4, false);
        options.on_failure = (trp_projection_on_failure)policy;
        options.retries = 2;
        options.retry_ms_max = 100;
        projection = projection_open(options);
        UNIT_EQUAL(trp_probe_watch(b.probe, projection), TRP_OK);
        if (again) {
            expect_seen(1, 2);
            book_run(&b, 199);
            UNIT_EQUAL(status_of(projection).failures, 2);
            book_run(&b, 1);
        }
        if (policy == TRP_PROJECTION_SKIP || policy == TRP_PROJECTION_RETRY_THEN_SKIP) {
            UNIT_EQUAL(hand.seen[hand.count - 1], 4);
            UNIT_EQUAL(status_of(projection).skipped, 1);
            UNIT_EQUAL(status_of(projection).failures, again ? 3 : 1);
        } else {
            book_run(&b, 0);
            UNIT_TRUE(trp_probe_expect_terminated(b.probe, TRP_TEST_TIME, projection) != NULL);
        }
        book_close(&b);
    }
}

/* The offset of a projection that has stopped at an event is that of the one before. */
static void
a_stopped_one_begins_with_the_event_that_stopped_it(void)
{
    trp_projection_options options = options_of("days");

    begin();
    hand.bad = 3;
    book_append(&b, "a", "red", 1, 4, false);
    options.on_failure = TRP_PROJECTION_STOP;
    trp_ref projection = projection_open(options);
    expect_end(projection);
    expect_seen(1, 2);
    hand.bad = 0;
    (void)projection_open(options);
    expect_seen(3, 4);
    book_close(&b);
}

static void
emitting_has_limits(void)
{
    trp_projection_options options = options_of("lines");

    begin();
    book_append(&b, "a", "red", 1, 2, false);
    hand.emits = 1;
    trp_ref projection = projection_open(options);
    UNIT_EQUAL(hand.emitted, TRP_ESTATE); /* not exactly once */
    trp_system_stop_actor(b.system, projection);
    book_run(&b, 0);
    options.exactly_once = 1;
    options.name = "other";
    hand.emits = TRP_PROJECTION_EMITTED_MAX;
    (void)projection_open(options);
    UNIT_EQUAL(hand.emitted, TRP_OK);
    hand.emits++;
    book_append(&b, "a", "red", 3, 3, true);
    book_run(&b, 10);
    UNIT_EQUAL(hand.emitted, TRP_ELIMIT);
    book_close(&b);
}

static void
options_have_limits(void)
{
    char name[TRP_PROJECTION_NAME_BYTES_MAX + 2];
    trp_projection_options options;
    trp_ref ref;

    begin();
    memset(name, 'n', sizeof name);
    for (int over = 0; over <= 1; over++) {
        name[TRP_PROJECTION_NAME_BYTES_MAX + (uint32_t)over] = '\0';
        options = options_of(name);
        UNIT_EQUAL(trp_system_projection_spawn(b.system, &options, &ref),
                   over ? TRP_EMSGSIZE : TRP_OK);
        name[TRP_PROJECTION_NAME_BYTES_MAX] = 'n';
#define LIMIT(text, member, most)                                                                  \
    options = options_of(text);                                                                    \
    options.member = (most) + (uint32_t)over;                                                      \
    UNIT_EQUAL(trp_system_projection_spawn(b.system, &options, &ref), over ? TRP_EINVAL : TRP_OK)
        LIMIT("1", save_events, TRP_PROJECTION_SAVE_EVENTS_MAX);
        LIMIT("2", save_ms, TRP_PROJECTION_DELAY_MS_MAX);
        LIMIT("3", poll_ms, TRP_PROJECTION_DELAY_MS_MAX);
        LIMIT("4", retry_ms, TRP_PROJECTION_DELAY_MS_MAX);
        LIMIT("5", retry_ms_max, TRP_PROJECTION_DELAY_MS_MAX);
        LIMIT("6", exactly_once, 1);
        LIMIT("7", ends, 1);
    }
    options = options_of(NULL);
    UNIT_EQUAL(trp_system_projection_spawn(b.system, &options, &ref), TRP_EINVAL);
    options = options_of("x");
    options.handler = NULL;
    UNIT_EQUAL(trp_system_projection_spawn(b.system, &options, &ref), TRP_EINVAL);
    options = options_of("x");
    options.id = "a";
    UNIT_EQUAL(trp_system_projection_spawn(b.system, &options, &ref), TRP_EINVAL);
    UNIT_EQUAL(trp_system_projection_spawn(b.system, NULL, &ref), TRP_EINVAL);
    book_close(&b);
}

/* Over a journal that only this node sees, it would begin anew elsewhere. */
static void
it_is_refused_over_a_journal_of_one_node(void)
{
    trp_projection_options options = options_of("days");
    trp_system *bare = stage_open();
    trp_ref ref;

    begin();
    UNIT_EQUAL(trp_system_projection_spawn(bare, &options, &ref), TRP_ESTATE);
    trp_journal_memory_shared(b.memory, 0);
    UNIT_EQUAL(trp_persistence_start(bare, b.journal, NULL), TRP_OK);
    UNIT_EQUAL(trp_system_projection_spawn(bare, &options, &ref), TRP_ECONFIG);
    STAGE_LOGGED("projection 'days' may move between hosts");
    stage_close(bare);
    book_close(&b);
}

UNIT_BEGIN("projection")
UNIT(it_handles_in_order_and_continues_behind_what_it_has_handled)
UNIT(a_lost_save_repeats_and_loses_nothing)
UNIT(exactly_once_repeats_nothing_whatever_the_journal_does)
UNIT(what_a_failed_call_emitted_is_forgotten)
UNIT(a_second_one_of_the_name_takes_over_and_the_first_stops)
UNIT(on_failure_says_what_happens)
UNIT(a_stopped_one_begins_with_the_event_that_stopped_it)
UNIT(emitting_has_limits)
UNIT(options_have_limits)
UNIT(it_is_refused_over_a_journal_of_one_node)
UNIT_END
