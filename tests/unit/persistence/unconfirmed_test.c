/* unconfirmed_test.c - at-least-once delivery of persistent actors: the engine beside a model, and
 * the actor under restarts, with a receiver that loses half of what it is told.
 *
 *     TROUPE_SEED=7 TROUPE_SEEDS=1 persistence_tests unconfirmed_test
 */
#include <troupe/persistence.h>

#include "persistence/unconfirmed.h"
#include "tests/unit/draw.h"
#include "tests/unit/persistence/book.h"

#define POST_SEND(F, S) F(S, u64, letter)
#define POST_DONE(F, S) F(S, u64, delivery)
#define POST_KEEP(F, S) F(S, u32, zero)
#define POST_MESSAGES(M, P)                                                                        \
    M(P, send, POST_SEND)                                                                          \
    M(P, sent, POST_SEND)                                                                          \
    M(P, letter, POST_SEND)                                                                        \
    M(P, done, POST_DONE)                                                                          \
    M(P, confirmed, POST_DONE) M(P, keep, POST_KEEP)
TRP_PROTOCOL(post, POST_MESSAGES)
static const trp_protocol *const post_protocols[] = { &post_protocol, NULL };

enum { LETTERS_MAX = 200, SEEDS = 30 };

/* Notes of the functions of the actor; the tests have one thread. */
static struct {
    uint64_t letter_of[LETTERS_MAX + 1]; /* of a delivery */
    uint32_t told[LETTERS_MAX + 1];
    uint32_t tells, warnings, left, refused;
} seen;

typedef struct post {
    trp_persistent_state persistent; /* the first member */
    uint64_t zero;
} post;

static trp_err
post_command(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    seen.left = trp_deliveries_count(ctx);
    switch (trp_msg_tag(msg)) {
    case post_send_tag:
        if (trp_deliveries_room(ctx) == 0) {
            seen.refused++;
            return TRP_OK;
        }
        return trp_persist(ctx, &post_sent_type, &(post_sent){ post_send_as(msg)->letter }, 0, NULL,
                           NULL);
    case post_done_tag:
        return trp_persist(ctx, &post_confirmed_type,
                           &(post_confirmed){ post_done_as(msg)->delivery }, 0, NULL, NULL);
    default:
        UNIT_EQUAL(trp_deliver(ctx, &post_letter_type, &(post_letter){ 1 }, 0, NULL), TRP_ESTATE);
        UNIT_EQUAL(trp_deliver_confirm(ctx, 1), 0);
        return trp_snapshot_save(ctx);
    }
}

static trp_err
post_event(trp_ctx *ctx, void *state, const trp_msg *event)
{
    uint64_t delivery = 0;

    (void)state;
    if (post_confirmed_as(event) != NULL) {
        (void)trp_deliver_confirm(ctx, post_confirmed_as(event)->delivery); /* twice is fine */
        return TRP_OK;
    }
    uint64_t letter = post_sent_as(event)->letter;
    trp_err err = trp_deliver(ctx, &post_letter_type, &(post_letter){ letter }, 0, &delivery);
    UNIT_REQUIRE(err == TRP_OK && delivery <= LETTERS_MAX);
    UNIT_TRUE(seen.letter_of[delivery] == 0 || seen.letter_of[delivery] == letter);
    seen.letter_of[delivery] = letter; /* persistent-V2 */
    return TRP_OK;
}

static void
post_deliver(trp_ctx *ctx, void *state, uint64_t delivery, const trp_msg *msg)
{
    (void)state;
    UNIT_FALSE(trp_persistent_recovers(ctx)); /* persistent-V1 */
    UNIT_REQUIRE(delivery <= LETTERS_MAX);
    UNIT_EQUAL(post_letter_as(msg)->letter, seen.letter_of[delivery]);
    seen.told[delivery]++;
    seen.tells++;
}

static void
post_unconfirmed(trp_ctx *ctx, void *state, uint64_t delivery, const trp_msg *msg)
{
    (void)ctx, (void)state, (void)delivery, (void)msg;
    seen.warnings++;
}

static trp_err
post_snapshot(trp_ctx *ctx, const void *state, trp_msg **ret_msg)
{
    (void)state;
    return trp_deliveries_save(ctx, ret_msg); /* all that there is */
}

static trp_err
post_restore(trp_ctx *ctx, void *state, const trp_msg *snapshot)
{
    const void *data = trp_msg_payload(snapshot);

    (void)state;
    for (size_t cut = 0; cut < trp_msg_bytes(snapshot); cut++) {
        UNIT_EQUAL(trp_deliveries_restore(ctx, data, cut), TRP_EDATA);
    }
    return trp_deliveries_restore(ctx, data, trp_msg_bytes(snapshot));
}

static trp_persistent
post_make(void)
{
    trp_persistent what = TRP_PERSISTENT_INIT("post", post, post_command, post_event);

    memset(&seen, 0, sizeof seen);
    what.deliver = post_deliver;
    what.snapshot = post_snapshot;
    what.restore = post_restore;
    what.events = post_protocols;
    what.unconfirmed = post_unconfirmed;
    UNIT_EQUAL(trp_protocol_register(&post_protocol), TRP_OK);
    return what;
}

static trp_ref
post_spawn(const book *b, const trp_persistent *what)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;

    options.name = "post";
    UNIT_REQUIRE(trp_system_spawn(b->system, &what->behaviour, &options, &ref) == TRP_OK);
    book_run(b, 0);
    return ref;
}

static void
post_tell(const book *b, trp_ref ref, const trp_type *type, uint64_t value)
{
    trp_system_tell(b->system, ref, type, &value, sizeof value);
    book_run(b, 0);
}

static void
post_keep_tell(const book *b, trp_ref ref)
{
    trp_system_tell(b->system, ref, &post_keep_type, &(post_keep){ 0 }, sizeof(post_keep));
    book_run(b, 0);
}

/* The process ends and comes back. */
static trp_ref
post_again(book *b, const trp_persistent *what)
{
    UNIT_EQUAL(trp_testkit_close(b->kit), TRP_OK);
    book_open_again(b);
    return post_spawn(b, what);
}

/* MSG-18 */
static void
a_message_is_told_again_until_its_confirmation_is_an_event(void)
{
    trp_persistent what = post_make();
    book b;

    book_open(&b);
    trp_ref ref = post_spawn(&b, &what);
    post_tell(&b, ref, &post_send_type, 7);
    UNIT_EQUAL(seen.told[1], 1);
    book_run(&b, 4000);
    UNIT_EQUAL(seen.told[1], 1);
    book_run(&b, 2000);
    UNIT_EQUAL(seen.told[1], 2);
    post_tell(&b, ref, &post_done_type, 1);
    post_tell(&b, ref, &post_done_type, 1);
    book_run(&b, 60000);
    UNIT_EQUAL(seen.told[1], 2);
    book_close(&b);
}

/* Three letters; the second one is confirmed. */
static trp_ref
post_three(const book *b, const trp_persistent *what)
{
    trp_ref ref = post_spawn(b, what);

    for (uint64_t letter = 11; letter <= 13; letter++) {
        post_tell(b, ref, &post_send_type, letter);
    }
    post_tell(b, ref, &post_done_type, 2);
    return ref;
}

static void
an_unconfirmed_message_survives_its_process_with_its_number(void)
{
    trp_persistent what = post_make();
    book b;

    book_open(&b);
    trp_ref ref = post_three(&b, &what);
    UNIT_EQUAL(seen.tells, 3);
    ref = post_again(&b, &what);
    UNIT_EQUAL(seen.tells, 5); /* 1 and 3, at once */
    UNIT_EQUAL(seen.told[2], 1);
    post_tell(&b, ref, &post_send_type, 14);
    UNIT_EQUAL(seen.letter_of[4], 14);
    book_close(&b);
}

static void
a_snapshot_has_the_unconfirmed_messages(void)
{
    trp_persistent what = post_make();
    book b;

    book_open(&b);
    trp_ref ref = post_three(&b, &what);
    post_keep_tell(&b, ref);
    post_tell(&b, ref, &post_done_type, 1); /* behind the snapshot */
    ref = post_again(&b, &what);
    UNIT_EQUAL(seen.told[1], 1);
    UNIT_EQUAL(seen.told[2], 1);
    UNIT_EQUAL(seen.told[3], 2);
    post_tell(&b, ref, &post_send_type, 14);
    UNIT_EQUAL(seen.letter_of[4], 14);
    book_close(&b);
}

static void
limits_hold_and_a_silent_receiver_is_warned_of(void)
{
    trp_persistent what = post_make();
    book b;

    what.redeliver_ms = 1000;
    what.redeliver_burst = 2;
    what.redeliver_warn = 3;
    what.deliveries_max = 5;
    book_open(&b);
    trp_ref ref = post_spawn(&b, &what);
    for (uint64_t letter = 11; letter <= 16; letter++) {
        post_tell(&b, ref, &post_send_type, letter);
    }
    UNIT_EQUAL(seen.refused, 1);
    UNIT_EQUAL(seen.tells, 5);
    what.deliveries_max = 2; /* more are there */
    ref = post_again(&b, &what);
    UNIT_EQUAL(seen.tells, 7); /* two at once */
    post_tell(&b, ref, &post_send_type, 17);
    UNIT_EQUAL(seen.refused, 2);
    book_run(&b, 150);
    UNIT_EQUAL(seen.tells, 9);
    UNIT_EQUAL(seen.warnings, 0);
    book_run(&b, 10000);
    UNIT_TRUE(seen.warnings >= 5);
    book_close(&b);
}

/* ---- random -------------------------------------------------------------------------------- */

static uint64_t random_state;

static uint32_t
roll(uint32_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32) % below;
}

static void
seed_play(uint64_t seed)
{
    trp_persistent what = post_make();
    bool has[LETTERS_MAX + 1] = { false };
    uint32_t told[LETTERS_MAX + 1] = { 0 };
    uint64_t letters = 0;
    book b;

    random_state = seed * 0x9e3779b97f4a7c15u + 1;
    what.redeliver_ms = 100 + roll(1000);
    what.redeliver_burst = 1 + roll(5);
    what.snapshot_every = roll(3) == 0 ? 5 : 0;
    book_open(&b);
    trp_ref ref = post_spawn(&b, &what);
    for (uint32_t step = 0; step < 200; step++) {
        bool is_over = step >= 100; /* no faults any more */

        switch (roll(is_over ? 2 : 5)) {
        case 2:
            post_tell(&b, ref, &post_send_type, 1000 + ++letters);
            break;
        case 3:
            ref = roll(3) == 0 ? post_again(&b, &what) : ref;
            break;
        default:
            book_run(&b, roll(2000));
        }
        for (uint64_t n = 1; n <= letters; n++) {
            bool arrives = seen.told[n] != told[n] && (is_over || roll(2) == 0);

            told[n] = seen.told[n];
            if (arrives) {
                has[n] = true;
                if (is_over || roll(2) == 0) { /* else the confirmation is lost */
                    post_tell(&b, ref, &post_done_type, n);
                }
            }
        }
    }
    for (uint64_t n = 1; n <= letters; n++) {
        UNIT_TRUE(has[n]);
        UNIT_EQUAL(seen.letter_of[n], 1000 + n);
    }
    post_tell(&b, ref, &post_done_type, 1);
    UNIT_EQUAL(seen.left, 0);
    book_close(&b);
}

/* MSG-18 */
static void
each_letter_arrives_under_restarts_and_losses(void)
{
    unit_seeds_play(seed_play, SEEDS, "persistence_tests", "unconfirmed_test");
}

static trp_msg *
engine_msg(void)
{
    trp_msg *msg = NULL;
    void *place;

    UNIT_REQUIRE(trp_msg_new(&trp_i64_type, 0, &msg, &place) == TRP_OK);
    return msg;
}

static void
the_engine_does_as_its_model(void)
{
    trpi_unconfirmed r = { 0 };
    uint64_t due[501] = { 0 }; /* 0: not there; 1: fresh; else its time, plus 2 */
    uint64_t last = 0, now = 0;
    uint32_t live = 0;

    random_state = 42;
    for (uint32_t step = 0; step < 5000; step++) {
        uint64_t number = 1 + roll(500);
        uint32_t what = roll(4);

        if (what == 0 && last < 500) {
            UNIT_EQUAL(trpi_unconfirmed_put(&r, ++last, engine_msg(), NULL), TRP_OK);
            due[last] = 1;
            live++;
        } else if (what == 1) {
            UNIT_EQUAL(trpi_unconfirmed_confirm(&r, number), due[number] != 0);
            live -= due[number] != 0;
            due[number] = 0;
        } else if (what == 2) {
            now += roll(50);
        } else {
            const trpi_unconfirmed_entry *e = trpi_unconfirmed_due(&r, now, 100);

            for (uint64_t n = 1; e == NULL && n <= last; n++) {
                UNIT_TRUE(due[n] == 0 || due[n] > now + 2);
            }
            if (e != NULL) {
                UNIT_TRUE(due[e->number] != 0 && due[e->number] <= now + 2);
                due[e->number] = now + 102;
            }
        }
        UNIT_EQUAL(r.count, live);
        trpi_unconfirmed_check(&r);
    }
    trpi_unconfirmed_fini(&r);
}

UNIT_BEGIN("unconfirmed")
UNIT(the_engine_does_as_its_model)
UNIT(a_message_is_told_again_until_its_confirmation_is_an_event)
UNIT(an_unconfirmed_message_survives_its_process_with_its_number)
UNIT(a_snapshot_has_the_unconfirmed_messages)
UNIT(limits_hold_and_a_silent_receiver_is_warned_of)
UNIT(each_letter_arrives_under_restarts_and_losses)
UNIT_END
