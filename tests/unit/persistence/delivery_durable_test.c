/* delivery_durable_test.c - a producer controller whose messages are in the journal: it ends at any
 * moment, and the next one of its id goes on.
 *
 *     TROUPE_SEED=7 TROUPE_SEEDS=1 persistence_tests delivery_durable_test
 */
#include <troupe/delivery.h>

#include "tests/unit/draw.h"
#include "tests/unit/persistence/book.h"

enum { LETTERS_MAX = 3000, SEEDS = 30 };
static struct {
    uint32_t got[LETTERS_MAX + 1];
    uint64_t last;      /* that came */
    uint32_t confirm;   /* of 100 */
    uint32_t backwards; /* in one life */
    uint64_t confirmed; /* the highest number that the producer was told */
    uint64_t granted;
} seen;
static uint64_t random_state;

static uint32_t
roll(uint32_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32) % below;
}

static trp_err
consumer_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    uint64_t n = (uint64_t) * (const int64_t *)trp_msg_payload(msg);

    (void)state;
    UNIT_REQUIRE(n >= 1 && n <= LETTERS_MAX);
    seen.got[n]++;
    seen.backwards += n <= seen.last;
    seen.last = n;
    if (roll(100) < seen.confirm) {
        trp_reply(ctx, &trp_delivery_confirm_type, NULL, 0);
    }
    return TRP_OK;
}
static const trp_behaviour consumer_behaviour =
    TRP_BEHAVIOUR_INIT("consumer", char, consumer_receive);

static trp_err
producer_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const trp_delivery_confirmed *confirmed = trp_msg_as(msg, &trp_delivery_confirmed_type);
    const trp_delivery_request_next *next = trp_msg_as(msg, &trp_delivery_request_next_type);

    (void)ctx, (void)state;
    if (confirmed != NULL && confirmed->number > seen.confirmed) {
        seen.confirmed = confirmed->number;
    }
    seen.granted += next != NULL ? next->messages : 0;
    return TRP_OK;
}
static const trp_behaviour producer_behaviour =
    TRP_BEHAVIOUR_INIT("producer", char, producer_receive);

/* Both ends, in the book's system. */
static trp_ref
ends_open(const book *b, uint32_t messages_max)
{
    trp_delivery_producer_options from = TRP_DELIVERY_PRODUCER_OPTIONS_INIT;
    trp_delivery_consumer_options to = TRP_DELIVERY_CONSUMER_OPTIONS_INIT;
    trp_ref controller = TRP_REF_NONE, other;

    seen.last = 0;
    seen.granted = 0;
    from.journal_id = "queue";
    from.messages_max = messages_max;
    from.confirms = 1;
    UNIT_REQUIRE(trp_system_spawn(b->system, &producer_behaviour, NULL, &from.producer) == TRP_OK);
    UNIT_REQUIRE(trp_system_spawn(b->system, &consumer_behaviour, NULL, &to.consumer) == TRP_OK);
    UNIT_REQUIRE(trp_system_delivery_producer_spawn(b->system, &from, &controller) == TRP_OK);
    to.producer = controller;
    UNIT_REQUIRE(trp_system_delivery_consumer_spawn(b->system, &to, &other) == TRP_OK);
    book_run(b, 0);
    return controller;
}

static trp_ref
ends_again(book *b, uint32_t messages_max)
{
    UNIT_EQUAL(trp_testkit_close(b->kit), TRP_OK);
    book_open_again(b);
    return ends_open(b, messages_max);
}

static void
letter_tell(const book *b, trp_ref to, int64_t n)
{
    trp_system_tell(b->system, to, &trp_i64_type, &n, sizeof n);
}

static uint64_t
events_left(const book *b)
{
    trp_journal_op op = TRP_JOURNAL_OP_INIT;

    op.kind = TRP_JOURNAL_EVENTS;
    op.id = "queue";
    book_call(b, &op);
    return op.ret_count;
}

static void
unconfirmed_messages_outlive_their_producer_controller(void)
{
    book b;

    memset(&seen, 0, sizeof seen);
    random_state = 1;
    book_open(&b);
    trp_ref to = ends_open(&b, 100);
    UNIT_EQUAL(seen.granted, 100);
    for (int64_t n = 1; n <= 3; n++) {
        letter_tell(&b, to, n);
    }
    book_run(&b, 0);
    UNIT_EQUAL(seen.got[1], 1); /* it has the first, and says nothing */
    UNIT_EQUAL(seen.confirmed, 0);
    to = ends_again(&b, 100);
    UNIT_EQUAL(seen.granted, 97);
    UNIT_EQUAL(seen.got[1], 2);
    seen.confirm = 100;
    to = ends_again(&b, 100);
    book_run(&b, 10);
    UNIT_EQUAL(seen.got[1], 3);
    UNIT_EQUAL(seen.got[2], 1);
    UNIT_EQUAL(seen.got[3], 1);
    UNIT_EQUAL(seen.confirmed, 3);
    to = ends_again(&b, 100);
    book_run(&b, 10000);
    UNIT_EQUAL(seen.granted, 100);
    UNIT_EQUAL(seen.got[3], 1);
    letter_tell(&b, to, 4);
    book_run(&b, 10);
    UNIT_EQUAL(seen.confirmed, 4); /* numbers go on */
    book_close(&b);
}

static void
events_of_confirmed_messages_are_deleted(void)
{
    book b;

    memset(&seen, 0, sizeof seen);
    random_state = 1;
    seen.confirm = 100;
    book_open(&b);
    trp_ref to = ends_open(&b, 10000);
    for (int64_t n = 1; n <= 2000; n++) {
        letter_tell(&b, to, n);
    }
    book_run(&b, 100);
    UNIT_EQUAL(seen.confirmed, 2000);
    UNIT_EQUAL(events_left(&b), 1); /* it has the highest number */
    to = ends_again(&b, 10000);
    letter_tell(&b, to, 2001);
    book_run(&b, 100);
    UNIT_EQUAL(seen.confirmed, 2001);
    UNIT_EQUAL(seen.got[2000], 1);
    book_close(&b);
}

static void
options_are_checked(void)
{
    trp_delivery_producer_options from = TRP_DELIVERY_PRODUCER_OPTIONS_INIT;
    trp_testkit_options options = TRP_TESTKIT_OPTIONS_INIT;
    trp_testkit *kit = NULL;
    char id[TRP_JOURNAL_ID_BYTES_MAX + 2];
    trp_ref ref;

    memset(id, 'x', sizeof id);
    id[sizeof id - 1] = '\0';
    UNIT_REQUIRE(trp_testkit_open(&options, &kit) == TRP_OK);
    from.journal_id = "queue";
    UNIT_EQUAL(trp_system_delivery_producer_spawn(trp_testkit_system(kit), &from, &ref),
               TRP_ESTATE);
    from.journal_id = id;
    UNIT_EQUAL(trp_system_delivery_producer_spawn(trp_testkit_system(kit), &from, &ref),
               TRP_EMSGSIZE);
    from.journal_id = "";
    UNIT_EQUAL(trp_system_delivery_producer_spawn(trp_testkit_system(kit), &from, &ref),
               TRP_EMSGSIZE);
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
}

static void
seed_play(uint64_t seed)
{
    uint64_t letters = 0;
    book b;

    memset(&seen, 0, sizeof seen);
    random_state = seed * 0x9e3779b97f4a7c15u + 1;
    seen.confirm = 70 + roll(30);
    book_open(&b);
    trp_ref to = ends_open(&b, 1000);
    for (uint32_t step = 0; step < 60; step++) {
        switch (roll(5)) {
        case 0:
            to = ends_again(&b, 1000);
            break;
        case 1:
            book_run(&b, roll(1000));
            break;
        default:
            for (uint32_t more = roll(8); more > 0; more--) {
                letter_tell(&b, to, (int64_t)++letters);
            }
            book_run(&b, roll(2)); /* those of a controller that ends before are stored */
        }
        UNIT_EQUAL(seen.backwards, 0); /* in order within a life */
    }
    seen.confirm = 100;
    (void)ends_again(&b, 1000);
    book_run(&b, 10000);
    for (uint64_t n = 1; n <= letters; n++) {
        UNIT_TRUE(seen.got[n] >= 1);
    }
    UNIT_EQUAL(seen.backwards, 0);
    UNIT_EQUAL(seen.confirmed, letters); /* as many as were told: no number is lost or doubled */
    (void)ends_again(&b, 1000);
    UNIT_EQUAL(seen.granted, 1000); /* nothing is left */
    UNIT_EQUAL(seen.last, 0);
    book_close(&b);
}

static void
each_message_is_handled_whenever_the_controller_ends(void)
{
    unit_seeds_play(seed_play, SEEDS, "persistence_tests", "delivery_durable_test");
}

UNIT_BEGIN("delivery_durable")
UNIT(unconfirmed_messages_outlive_their_producer_controller)
UNIT(events_of_confirmed_messages_are_deleted)
UNIT(options_are_checked)
UNIT(each_message_is_handled_whenever_the_controller_ends)
UNIT_END
