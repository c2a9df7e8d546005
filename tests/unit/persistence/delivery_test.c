/* delivery_test.c - both controllers on one node: demand, confirmation, workers that end, large
 * messages, limits. */
#include <troupe/delivery.h>
#include <troupe/serialization.h>

#include "base/alloc.h"
#include "persistence/delivery.h"
#include "tests/unit/persistence/book.h"

static trp_testkit *kit;
static trp_system *stage;
static trp_probe *producer;
static struct {
    trp_probe *consumer;
    trp_ref controller;
} pairs[8];
static uint32_t pairs_count;

static void
open_kit(void)
{
    trp_testkit_options options = TRP_TESTKIT_OPTIONS_INIT;

    options.clock = TRP_CLOCK_MANUAL;
    UNIT_REQUIRE(trp_testkit_open(&options, &kit) == TRP_OK);
    stage = trp_testkit_system(kit);
    producer = trp_testkit_probe(kit);
    pairs_count = 0;
}

static void
close_kit(void)
{
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
}

static void
run(uint32_t ms)
{
    UNIT_EQUAL(trp_testkit_advance(kit, ms), TRP_OK);
}

static trp_ref
open_producer(trp_delivery_producer_options options)
{
    trp_ref ref = TRP_REF_NONE;

    UNIT_REQUIRE(trp_system_delivery_producer_spawn(stage, &options, &ref) == TRP_OK);
    run(0);
    return ref;
}

static trp_probe *
open_consumer(trp_ref to, const char *path, uint32_t window)
{
    trp_delivery_consumer_options options = TRP_DELIVERY_CONSUMER_OPTIONS_INIT;
    trp_probe *probe = NULL;
    trp_ref ref;

    UNIT_REQUIRE(trp_probe_open(kit, &probe) == TRP_OK);
    options.consumer = trp_probe_ref(probe);
    options.producer = to;
    options.producer_path = path;
    options.window = window;
    UNIT_REQUIRE(trp_system_delivery_consumer_spawn(stage, &options, &ref) == TRP_OK);
    pairs[pairs_count].consumer = probe;
    pairs[pairs_count++].controller = ref;
    run(0);
    return probe;
}

static void
tell_numbers(trp_ref to, int64_t first, int64_t last)
{
    for (int64_t n = first; n <= last; n++) {
        trp_probe_tell(producer, to, &trp_i64_type, &n, sizeof n);
    }
    run(0);
}

static void
expect_granted(uint32_t messages)
{
    trp_delivery_request_next next = { messages };

    UNIT_TRUE(trp_probe_expect(producer, TRP_TEST_TIME, &trp_delivery_request_next_type, &next,
                               sizeof next) != NULL);
}

static void
expect_confirmed(uint64_t number)
{
    trp_delivery_confirmed confirmed = { number };

    UNIT_TRUE(trp_probe_expect(producer, TRP_TEST_TIME, &trp_delivery_confirmed_type, &confirmed,
                               sizeof confirmed) != NULL);
}

static void
expect_number(trp_probe *consumer, int64_t n)
{
    UNIT_TRUE(trp_probe_expect(consumer, TRP_TEST_TIME, &trp_i64_type, &n, sizeof n) != NULL);
}

static void
confirm(trp_probe *consumer)
{
    for (uint32_t i = 0; i < pairs_count; i++) {
        if (pairs[i].consumer == consumer) {
            trp_probe_tell(consumer, pairs[i].controller, &trp_delivery_confirm_type, NULL, 0);
        }
    }
    run(0);
}

static void
messages_come_one_by_one_and_are_confirmed_in_order(void)
{
    trp_delivery_producer_options options = TRP_DELIVERY_PRODUCER_OPTIONS_INIT;
    trp_probe *consumer;
    trp_ref to;

    open_kit();
    options.producer = trp_probe_ref(producer);
    options.confirms = 1;
    options.messages_max = 4;
    to = open_producer(options);
    expect_granted(4);
    consumer = open_consumer(to, NULL, 0);
    tell_numbers(to, 1, 4);
    for (int64_t n = 1; n <= 4; n++) {
        expect_number(consumer, n);
        UNIT_TRUE(trp_probe_expect_none(consumer, 0) != 0); /* one at a time */
        confirm(consumer);
    }
    for (uint64_t n = 1; n <= 4; n++) {
        expect_confirmed(n);
    }
    expect_granted(4);
    UNIT_EQUAL(stage_dead_sum(stage), 0);
    close_kit();
}

static void
one_beyond_the_grant_is_a_dead_letter(void)
{
    trp_delivery_producer_options options = TRP_DELIVERY_PRODUCER_OPTIONS_INIT;
    trp_ref to;

    open_kit();
    options.producer = trp_probe_ref(producer);
    options.messages_max = 3;
    to = open_producer(options);
    tell_numbers(to, 1, 3);
    UNIT_EQUAL(stage_dead_sum(stage), 0);
    tell_numbers(to, 4, 4);
    UNIT_EQUAL(stage_dead_sum(stage), 1);
    trp_system_stop_actor(stage, to); /* what it keeps are dead letters then */
    run(0);
    UNIT_EQUAL(stage_dead_sum(stage), 4);
    close_kit();
}

/* Of what a consumer had not confirmed, the next one gets all, in order. */
static void
the_next_consumer_gets_what_was_not_confirmed(void)
{
    trp_delivery_producer_options options = TRP_DELIVERY_PRODUCER_OPTIONS_INIT;
    trp_probe *consumer;
    trp_ref to;

    open_kit();
    to = open_producer(options);
    consumer = open_consumer(to, NULL, 0);
    tell_numbers(to, 1, 3);
    expect_number(consumer, 1);
    confirm(consumer);
    expect_number(consumer, 2);
    trp_probe_close(consumer);
    run(0);
    consumer = open_consumer(to, NULL, 0);
    expect_number(consumer, 2);
    confirm(consumer);
    expect_number(consumer, 3);
    confirm(consumer);
    close_kit();
}

static void
each_message_goes_to_one_worker_and_to_another_when_it_ends(void)
{
    trp_delivery_producer_options options = TRP_DELIVERY_PRODUCER_OPTIONS_INIT;
    trp_probe *workers[2];
    uint32_t seen = 0;
    trp_ref to;

    open_kit();
    options.workers = 1;
    options.confirms = 1;
    options.producer = trp_probe_ref(producer);
    to = open_producer(options);
    expect_granted(TRP_DELIVERY_MESSAGES_DEFAULT);
    workers[0] = open_consumer(to, NULL, 2);
    workers[1] = open_consumer(to, NULL, 2);
    tell_numbers(to, 1, 6);
    for (int i = 0; i < 2; i++) { /* each has one in hand, and one that waits */
        const trp_msg *msg = trp_probe_receive(workers[i], TRP_TEST_TIME);

        UNIT_REQUIRE(msg != NULL && trp_msg_is(msg, &trp_i64_type));
        seen |= 1u << *(const int64_t *)trp_msg_payload(msg);
        UNIT_TRUE(trp_probe_expect_none(workers[i], 0) != 0);
    }
    trp_probe_close(workers[0]);
    run(0);
    confirm(workers[1]);
    for (int i = 0; i < 5; i++) {
        const trp_msg *msg = trp_probe_receive(workers[1], TRP_TEST_TIME);

        UNIT_REQUIRE(msg != NULL);
        seen |= 1u << *(const int64_t *)trp_msg_payload(msg);
        confirm(workers[1]);
    }
    UNIT_EQUAL(seen, 0x7e); /* 1 to 6 */
    UNIT_EQUAL(trp_probe_receive_n(producer, TRP_TEST_TIME, 6), 6);
    UNIT_TRUE(trp_probe_expect_none(producer, 0) != 0);
    close_kit();
}

/* In many parts, with a window of one message: whole, and with its bytes. */
static void
a_large_message_arrives_whole(void)
{
    trp_delivery_producer_options options = TRP_DELIVERY_PRODUCER_OPTIONS_INIT;
    enum { BYTES = 300000 };
    uint8_t *data = trpi_alloc(BYTES);
    trp_probe *consumer;
    trp_ref to;

    open_kit();
    options.part_bytes = 1000;
    to = open_producer(options);
    consumer = open_consumer(to, NULL, 1);
    for (uint32_t i = 0; i < BYTES; i++) {
        data[i] = (uint8_t)(i * 7 + i / 256);
    }
    trp_probe_tell(producer, to, &trp_bytes_type, data, BYTES);
    tell_numbers(to, 2, 2);
    UNIT_TRUE(trp_probe_expect(consumer, TRP_TEST_TIME, &trp_bytes_type, data, BYTES) != NULL);
    confirm(consumer);
    expect_number(consumer, 2);
    trpi_free(data);
    close_kit();
}

static void
one_that_is_too_large_or_does_not_travel_is_a_dead_letter(void)
{
    trp_delivery_producer_options options = TRP_DELIVERY_PRODUCER_OPTIONS_INIT;
    uint8_t *data = trpi_alloc(TRP_DELIVERY_MESSAGE_BYTES_MAX + 1);
    trp_probe *consumer;
    trp_msg *probe = NULL;
    trp_ref to;

    open_kit();
    to = open_producer(options);
    consumer = open_consumer(to, NULL, 0);
    UNIT_EQUAL(trp_serialize(stage, &trp_bytes_type, data, 1000, &probe), TRP_OK);
    size_t most = TRP_DELIVERY_MESSAGE_BYTES_MAX - (trp_msg_bytes(probe) - 1000);
    trp_msg_free(probe);
    trp_probe_tell(producer, to, &trp_bytes_type, data, most + 1);
    trp_probe_tell(producer, to, &trpi_delivery_tick_type, NULL, 0); /* its own: not carried */
    run(0);
    UNIT_EQUAL(stage_dead_sum(stage), 1);
    trp_probe_tell(producer, to, &trp_bytes_type, data, most);
    run(0);
    UNIT_TRUE(trp_probe_expect(consumer, TRP_TEST_TIME, &trp_bytes_type, data, most) != NULL);
    UNIT_EQUAL(stage_dead_sum(stage), 1);
    trpi_free(data);
    close_kit();
}

/* By a path: the consumer waits for a producer controller there, and finds the next one. */
static void
a_producer_is_found_by_its_path_again_and_again(void)
{
    trp_delivery_producer_options options = TRP_DELIVERY_PRODUCER_OPTIONS_INIT;
    trp_probe *consumer;
    trp_ref to;

    open_kit();
    consumer = open_consumer((trp_ref)TRP_REF_NONE, "/user/orders", 0);
    for (int64_t n = 1; n <= 2; n++) {
        options.name = "orders";
        to = open_producer(options);
        tell_numbers(to, n, n);
        run(TRP_DELIVERY_RESEND_MS_DEFAULT);
        expect_number(consumer, n);
        confirm(consumer);
        trp_system_stop_actor(stage, to);
        run(0);
    }
    close_kit();
}

static void
options_have_limits(void)
{
    trp_delivery_producer_options p;
    trp_delivery_consumer_options c;
    trp_ref to, ref;

    open_kit();
    to = open_producer((trp_delivery_producer_options)TRP_DELIVERY_PRODUCER_OPTIONS_INIT);
    for (uint32_t over = 0; over <= 1; over++) {
#define PRODUCER(member, most)                                                                     \
    p = (trp_delivery_producer_options)TRP_DELIVERY_PRODUCER_OPTIONS_INIT;                         \
    p.member = (most) + over;                                                                      \
    UNIT_EQUAL(trp_system_delivery_producer_spawn(stage, &p, &ref), over ? TRP_EINVAL : TRP_OK)
        PRODUCER(workers, 1);
        PRODUCER(confirms, 1);
        PRODUCER(messages_max, TRP_DELIVERY_MESSAGES_MAX);
        PRODUCER(part_bytes, TRP_DELIVERY_PART_BYTES_MAX);
        PRODUCER(resend_ms, TRP_DELIVERY_RESEND_MS_MAX);
#define CONSUMER(member, most)                                                                     \
    c = (trp_delivery_consumer_options)TRP_DELIVERY_CONSUMER_OPTIONS_INIT;                         \
    c.consumer = trp_probe_ref(producer);                                                          \
    c.producer = to;                                                                               \
    c.member = (most) + over;                                                                      \
    UNIT_EQUAL(trp_system_delivery_consumer_spawn(stage, &c, &ref), over ? TRP_EINVAL : TRP_OK)
        CONSUMER(window, TRP_DELIVERY_WINDOW_MAX);
        CONSUMER(ahead, TRP_DELIVERY_AHEAD_MAX);
        CONSUMER(resend_ms, TRP_DELIVERY_RESEND_MS_MAX);
    }
    c = (trp_delivery_consumer_options)TRP_DELIVERY_CONSUMER_OPTIONS_INIT;
    c.consumer = trp_probe_ref(producer);
    UNIT_EQUAL(trp_system_delivery_consumer_spawn(stage, &c, &ref), TRP_EINVAL); /* no producer */
    c.producer = to;
    c.producer_path = "/user/x";
    UNIT_EQUAL(trp_system_delivery_consumer_spawn(stage, &c, &ref), TRP_EINVAL);
    UNIT_EQUAL(trp_system_delivery_consumer_spawn(stage, NULL, &ref), TRP_EINVAL);
    UNIT_EQUAL(trp_system_delivery_producer_spawn(stage, NULL, &ref), TRP_EINVAL);
    close_kit();
}

UNIT_BEGIN("delivery")
UNIT(messages_come_one_by_one_and_are_confirmed_in_order)
UNIT(one_beyond_the_grant_is_a_dead_letter)
UNIT(the_next_consumer_gets_what_was_not_confirmed)
UNIT(each_message_goes_to_one_worker_and_to_another_when_it_ends)
UNIT(a_large_message_arrives_whole)
UNIT(one_that_is_too_large_or_does_not_travel_is_a_dead_letter)
UNIT(a_producer_is_found_by_its_path_again_and_again)
UNIT(options_have_limits)
UNIT_END
