/* tell_test.c - telling through the public API: order, senders, stale and impossible targets,
 * overload. */
#include "tests/unit/unit.h"

#include <stdatomic.h>
#include <stdlib.h>

#include <troupe/troupe.h>

#include "actor/actor.h"

static trp_system *system_;

static void
start(uint32_t workers)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;

    options.workers = workers;
    options.log_dead_letters = TRP_OFF;
    options.log_level = TRP_LOG_ERROR;
    UNIT_REQUIRE(trp_system_new("tell", &options, &system_) == TRP_OK);
}

static void
end(void)
{
    UNIT_EQUAL(trp_system_stop(system_, 60000), TRP_OK);
    trp_system_free(system_);
}

static trp_ref
spawn(const trp_behaviour *behaviour, const char *dispatcher)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;

    options.dispatcher = dispatcher;
    UNIT_REQUIRE(trp_system_spawn(system_, behaviour, &options, &ref) == TRP_OK);
    return ref;
}

static uint64_t
dead(trp_dead_reason reason)
{
    trp_system_stats stats = { .size = sizeof stats };

    trp_system_stats_get(system_, &stats);
    return stats.dead_letters[reason];
}

/* ---- a listener that notes what it hears ----------------------------------------------------- */

static _Atomic int64_t heard_sum, heard_count, heard_last;
static _Atomic int heard_wrong_order, heard_sender_none, heard_bytes;
static _Atomic uint32_t heard_sender; /* its slot */

static trp_err
listen(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    atomic_store(&heard_sender_none, trp_ref_is_none(trp_sender(ctx)));
    atomic_store(&heard_sender, trp_sender(ctx).slot);
    atomic_store(&heard_bytes, (int)trp_msg_bytes(msg));
    if (trp_msg_is(msg, &trp_i64_type)) {
        int64_t value = *(const int64_t *)trp_msg_payload(msg);

        if (value <= atomic_load(&heard_last)) {
            atomic_store(&heard_wrong_order, 1);
        }
        atomic_store(&heard_last, value);
        atomic_fetch_add(&heard_sum, value);
    }
    atomic_fetch_add(&heard_count, 1);
    return TRP_OK;
}

static const trp_behaviour listener = {
    .size = sizeof(trp_behaviour), .name = "listener", .version = 1, .receive = listen
};

static void
forget(void)
{
    atomic_store(&heard_sum, 0);
    atomic_store(&heard_count, 0);
    atomic_store(&heard_last, 0);
    atomic_store(&heard_wrong_order, 0);
}

/* MSG-2 */
static void
a_message_told_from_outside_has_no_sender(void)
{
    int64_t value = 7;
    trp_ref ref;

    forget();
    start(2);
    ref = spawn(&listener, NULL);
    trp_system_tell(system_, ref, &trp_i64_type, &value, sizeof value);
    UNIT_WAIT(atomic_load(&heard_count) == 1, 5000);
    UNIT_EQUAL(atomic_load(&heard_sum), 7);
    UNIT_EQUAL(atomic_load(&heard_sender_none), 1);
    end();
}

/* UJ-01, A4J-06 */
static void
payloads_of_all_sizes_arrive(void)
{
    static char payload[100000];
    static const int sizes[] = { 0, 1, 7, 9, 15, 16, 17, 31, 32, 33, 500, 70000, 100000 };
    trp_ref ref;

    forget();
    start(1);
    ref = spawn(&listener, NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        trp_system_tell(system_, ref, &trp_bytes_type, payload, (size_t)sizes[i]);
        UNIT_WAIT(atomic_load(&heard_count) == (int64_t)i + 1, 5000);
        UNIT_EQUAL(atomic_load(&heard_bytes), sizes[i]);
    }
    end();
}

/* ---- from an actor, with blocks of each class, fresh and used -------------------------------- */

static const size_t told_sizes[] = { 0,
                                     1,
                                     31,
                                     32,
                                     33,
                                     95,
                                     96,
                                     97,
                                     1024,
                                     2016,
                                     2017,
                                     TRP_INLINE_PAYLOAD_MAX,
                                     TRP_INLINE_PAYLOAD_MAX + 1 };
enum { TOLD_SIZES = sizeof told_sizes / sizeof told_sizes[0], TOLD_TIMES = 3 };
static _Atomic int told_right, told_wrong;

static trp_err
check_bytes(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int *at = state; /* all sizes, and all of them again */
    size_t bytes = told_sizes[*at % TOLD_SIZES];
    const unsigned char *payload = trp_msg_payload(msg);
    bool right = trp_msg_bytes(msg) == bytes && !trp_ref_is_none(trp_sender(ctx));

    for (size_t i = 0; right && i < bytes; i++) {
        right = payload[i] == (unsigned char)(i * 7 + (size_t)*at);
    }
    atomic_fetch_add(right ? &told_right : &told_wrong, 1);
    ++*at;
    return TRP_OK;
}

static trp_err
tell_bytes(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    static unsigned char payload[TRP_INLINE_PAYLOAD_MAX + 1];
    int *at = state;
    size_t bytes = told_sizes[*at % TOLD_SIZES];

    for (size_t i = 0; i < bytes; i++) {
        payload[i] = (unsigned char)(i * 7 + (size_t)*at);
    }
    trp_tell(ctx, *(const trp_ref *)trp_msg_payload(msg), &trp_bytes_type, payload, bytes);
    if (++*at < TOLD_SIZES * TOLD_TIMES) { /* in a turn of its own, when the last one was freed */
        trp_tell(ctx, trp_self(ctx), &trp_bytes_type, trp_msg_payload(msg), sizeof(trp_ref));
    }
    return TRP_OK;
}

static void
what_an_actor_tells_arrives_as_it_was(void)
{
    static const trp_behaviour checker = { .size = sizeof(trp_behaviour),
                                           .name = "checker",
                                           .version = 1,
                                           .state_bytes = sizeof(int),
                                           .receive = check_bytes },
                               teller = { .size = sizeof(trp_behaviour),
                                          .name = "teller",
                                          .version = 1,
                                          .state_bytes = sizeof(int),
                                          .receive = tell_bytes };
    trp_ref to;

    start(1);
    to = spawn(&checker, NULL);
    trp_system_tell(system_, spawn(&teller, NULL), &trp_bytes_type, &to, sizeof to);
    UNIT_WAIT(atomic_load(&told_right) + atomic_load(&told_wrong) == TOLD_SIZES * TOLD_TIMES,
              60000);
    UNIT_EQUAL(atomic_load(&told_wrong), 0);
    end();
}

/* MSG-7, UJ-25, A4J-33 */
static void
messages_of_one_thread_keep_their_order(void)
{
    enum { MANY = 50000 };
    trp_ref ref;

    forget();
    start(2);
    ref = spawn(&listener, NULL);
    for (int64_t i = 1; i <= MANY; i++) {
        trp_system_tell(system_, ref, &trp_i64_type, &i, sizeof i);
    }
    UNIT_WAIT(atomic_load(&heard_count) == MANY, 5000);
    UNIT_EQUAL(atomic_load(&heard_wrong_order), 0);
    UNIT_EQUAL(atomic_load(&heard_sum), (int64_t)MANY * (MANY + 1) / 2);
    end();
}

/* ---- chains: an actor that tells more receivers than the table has entries ------------------- */

enum { RECEIVERS = 200, EACH = 300 };
static trp_ref receivers[RECEIVERS];
static _Atomic int wrong;
static _Atomic uint32_t complete;

typedef struct rising {
    int64_t last;
} rising;

static trp_err
rising_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    rising *self = state;
    int64_t value = *(const int64_t *)trp_msg_payload(msg);

    (void)ctx;
    if (value != self->last + 1) {
        atomic_store(&wrong, 1);
    }
    self->last = value;
    if (value == EACH) {
        atomic_fetch_add(&complete, 1);
    }
    return TRP_OK;
}

static const trp_behaviour rising_behaviour = TRP_BEHAVIOUR_INIT("rising", rising, rising_receive);

static trp_err
scatter(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    (void)msg;
    for (int64_t value = 1; value <= EACH; value++) {
        for (int i = 0; i < RECEIVERS; i++) {
            trp_tell(ctx, receivers[i], &trp_i64_type, &value, sizeof value);
        }
    }
    return TRP_OK;
}

static const trp_behaviour scatterer = {
    .size = sizeof(trp_behaviour), .name = "scatterer", .version = 1, .receive = scatter
};

/* tell-H1, tell-H2 */
static void
chained_messages_keep_their_order_through_evictions(void)
{
    for (uint32_t workers = 1; workers <= 2; workers++) {
        for (int pinned = 0; pinned <= 1; pinned++) {
            atomic_store(&wrong, 0);
            atomic_store(&complete, 0);
            start(workers);
            for (int i = 0; i < RECEIVERS; i++) {
                receivers[i] = spawn(&rising_behaviour, NULL);
            }
            trp_system_tell(system_, spawn(&scatterer, pinned ? "pinned" : NULL), &trp_bytes_type,
                            NULL, 0);
            UNIT_WAIT(atomic_load(&complete) == RECEIVERS, 5000);
            UNIT_EQUAL(atomic_load(&wrong), 0);
            end();
        }
    }
}

/* ---- forwarding ------------------------------------------------------------------------------ */

static trp_ref target;

static trp_err
forward(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    trp_forward(ctx, target, msg);
    return TRP_OK;
}

static const trp_behaviour forwarder = {
    .size = sizeof(trp_behaviour), .name = "forwarder", .version = 1, .receive = forward
};

/* MSG-3, A4J-07 */
static void
a_forwarded_message_keeps_its_sender(void)
{
    int64_t value = 5;
    trp_ref sender, between;

    forget();
    start(2);
    target = spawn(&listener, NULL);
    sender = spawn(&listener, NULL);
    between = spawn(&forwarder, NULL);
    trp_system_tell_as(system_, between, sender, &trp_i64_type, &value, sizeof value);
    UNIT_WAIT(atomic_load(&heard_count) == 1, 5000);
    UNIT_EQUAL(atomic_load(&heard_last), 5);
    UNIT_EQUAL(atomic_load(&heard_sender), sender.slot); /* not the one between, nor the target */
    UNIT_TRUE(sender.slot != between.slot && sender.slot != target.slot);
    end();
}

/* ---- targets that are nobody ----------------------------------------------------------------- */

/* MSG-9 */
static void
what_reaches_nobody_is_a_dead_letter_with_its_reason(void)
{
    static trp_type unregistered = { "not.registered", 8, 1, 0, NULL, 0, 0 };
    trp_ref none = TRP_REF_NONE, never, stale, far;
    int64_t value = 1;

    start(1);
    stale = spawn(&listener, NULL);
    UNIT_EQUAL(trp_system_graceful_stop(system_, stale, 60000), TRP_OK);
    never = (trp_ref){ TRPI_NODE_SELF, 90000000, 1, 0 };
    far = (trp_ref){ 77777, 1, 1, 0 };
    trp_system_tell(system_, none, &trp_i64_type, &value, sizeof value);
    trp_system_tell(system_, never, &trp_i64_type, &value, sizeof value);
    trp_system_tell(system_, far, &trp_i64_type, &value, sizeof value);
    trp_system_tell(system_, stale, &trp_i64_type, &value, sizeof value);
    trp_system_tell(system_, stale, &unregistered, &value, sizeof value);
    UNIT_EQUAL(dead(TRP_DEAD_NO_SENDER), 1);
    UNIT_EQUAL(dead(TRP_DEAD_NO_SUCH_ACTOR), 1);
    UNIT_EQUAL(dead(TRP_DEAD_STALE), 2); /* far: that incarnation has ended, or never was */
    UNIT_EQUAL(dead(TRP_DEAD_NOT_ENCODABLE), 1);
    end();
}

/* ---- messages of variable length ------------------------------------------------------------- */

#define TALK_SAY(F, S) F(S, i64, number) F(S, text, body)
#define TALK_MESSAGES(M, P) M(P, say, TALK_SAY)
TRP_PROTOCOL(talk, TALK_MESSAGES)

static _Atomic int talked;

static trp_err
talk(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const talk_say *say = trp_msg_payload(msg);
    size_t bytes;
    const char *body = trp_msg_text(msg, say->body, &bytes);

    (void)state;
    if (say->number == (int64_t)bytes && strspn(body, "x") == bytes) {
        atomic_fetch_add(&talked, 1);
    }
    trp_reply(ctx, trp_msg_type(msg), trp_msg_payload(msg), trp_msg_bytes(msg));
    return TRP_OK;
}
static const trp_behaviour talker = { .size = sizeof(trp_behaviour),
                                      .name = "talker",
                                      .receive = talk };

/* In line, in a block of each class, and out of line. */
static void
a_text_of_any_length_is_told_and_asked(void)
{
    static const size_t lengths[] = { 0, 1, 7, 15, 16, 100, 479, 480, 5000, 61400, 61500, 300000 };
    enum { COUNT = sizeof lengths / sizeof lengths[0] };
    char *text = malloc(300001);
    trp_ref ref;

    UNIT_REQUIRE(text != NULL && trp_protocol_register(&talk_protocol) == TRP_OK);
    start(2);
    ref = spawn(&talker, NULL);
    for (int i = 0; i < COUNT; i++) {
        trp_msg *reply = NULL;
        trp_builder b;
        talk_say *say = TRP_BUILD(&b, talk_say);

        memset(text, 'x', lengths[i]);
        text[lengths[i]] = 0;
        say->number = (int64_t)lengths[i];
        trp_build_text(&b, &say->body, text);
        trp_system_tell(system_, ref, TRP_BUILT(&b));
        UNIT_EQUAL(trp_system_ask(system_, ref, TRP_BUILT(&b), 60000, &reply), TRP_OK);
        trp_build_free(&b);
        UNIT_REQUIRE(reply != NULL);
        UNIT_TEXT(trp_msg_text(reply, ((const talk_say *)trp_msg_payload(reply))->body, NULL),
                  text);
        trp_msg_free(reply);
    }
    UNIT_EQUAL(atomic_load(&talked), 2 * COUNT);
    free(text);
    end();
}

/* As of a builder that failed: no receiver would read behind its end. */
static void
a_payload_shorter_than_its_struct_is_not_delivered(void)
{
    trp_msg *reply = NULL;
    trp_builder b;
    talk_say *say;
    trp_ref ref;
    int before = atomic_load(&talked);

    UNIT_REQUIRE(trp_protocol_register(&talk_protocol) == TRP_OK);
    start(1);
    ref = spawn(&talker, NULL);
    say = TRP_BUILD(&b, talk_say);
    trp_build_text_n(&b, &say->body, "a\0b", 3);
    trp_system_tell(system_, ref, TRP_BUILT(&b));
    UNIT_EQUAL(dead(TRP_DEAD_NOT_ENCODABLE), 1);
    trp_system_tell(system_, ref, &talk_say_type, "12345", 5);
    UNIT_EQUAL(dead(TRP_DEAD_NOT_ENCODABLE), 2);
    UNIT_EQUAL(trp_system_try_tell(system_, ref, TRP_BUILT(&b)), TRP_EINVAL);
    UNIT_TRUE(trp_system_ask(system_, ref, TRP_BUILT(&b), 60000, &reply) != TRP_OK);
    UNIT_EQUAL(trp_schedule_once(system_, 1, ref, ref, TRP_BUILT(&b), NULL), TRP_EINVAL);
    trp_build_free(&b);
    UNIT_EQUAL(atomic_load(&talked), before);
    end();
}

/* ---- overload: producers are slowed to their receiver ---------------------------------------- */

enum { PRODUCERS = 20, PRODUCED = 100000, TURN = 1000 };
static trp_ref sink_ref;
static _Atomic uint64_t produced, consumed, ahead_max;

static trp_err
sink_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    uint64_t now = atomic_load_explicit(&consumed, memory_order_relaxed) + 1;
    uint64_t ahead = atomic_load_explicit(&produced, memory_order_relaxed) - now;

    (void)ctx;
    (void)state;
    (void)msg;
    atomic_store_explicit(&consumed, now, memory_order_relaxed);
    if ((int64_t)ahead > 0 && ahead > atomic_load_explicit(&ahead_max, memory_order_relaxed)) {
        atomic_store_explicit(&ahead_max, ahead, memory_order_relaxed);
    }
    return TRP_OK;
}

static const trp_behaviour sink = {
    .size = sizeof(trp_behaviour), .name = "sink", .version = 1, .receive = sink_receive
};

static trp_err
produce(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    uint64_t *left = state;

    (void)msg;
    if (*left == 0) {
        *left = PRODUCED;
    }
    for (int64_t i = 0; i < TURN; i++) {
        trp_tell(ctx, sink_ref, &trp_i64_type, &i, sizeof i);
    }
    atomic_fetch_add(&produced, TURN);
    *left -= TURN;
    if (*left > 0) {
        trp_tell(ctx, trp_self(ctx), &trp_bytes_type, NULL, 0);
    }
    return TRP_OK;
}

static const trp_behaviour producer = TRP_BEHAVIOUR_INIT("producer", uint64_t, produce);

/* A4J-35: A machine that takes the core from the sink's worker before the sink has seen what waits
 * for it lets them run ahead for as long. That cannot be with one worker; with two it is not seen
 * in each of five runs. */
static void
producers_are_slowed_down_to_their_receiver(void)
{
    static const uint32_t runs[] = { 1, 2, 2, 2, 2, 2 };
    const uint64_t limit = (uint64_t)PRODUCERS * PRODUCED / 2;

    for (unsigned i = 0; i < 2 || (i < 6 && atomic_load(&ahead_max) >= limit); i++) {
        atomic_store(&produced, 0);
        atomic_store(&consumed, 0);
        atomic_store(&ahead_max, 0);
        start(runs[i]);
        sink_ref = spawn(&sink, NULL);
        for (int k = 0; k < PRODUCERS; k++) {
            trp_system_tell(system_, spawn(&producer, NULL), &trp_bytes_type, NULL, 0);
        }
        UNIT_WAIT(atomic_load(&consumed) == (uint64_t)PRODUCERS * PRODUCED, 20000);
        /* one first turn of 100 messages for as many producers as run before the sink does, then a
         * turn each */
        UNIT_TRUE(i > 0 || atomic_load(&ahead_max) < limit);
        end();
    }
    UNIT_TRUE(atomic_load(&ahead_max) < limit);
}

/* The first message that it handles is held until the test lets it go. */
static _Atomic bool sink_held, sink_go;

static trp_err
held_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    atomic_store(&sink_held, true);
    while (!atomic_load(&sink_go)) {
        unit_pause();
    }
    return sink_receive(ctx, state, msg);
}

static const trp_behaviour held_sink = {
    .size = sizeof(trp_behaviour), .name = "held-sink", .version = 1, .receive = held_receive
};

/* Its backlog has not begun, so nothing marks it as overloaded; its senders see that its worker
 * makes no progress. */
static void
producers_wait_for_a_receiver_whose_worker_is_held(void)
{
    const uint64_t all = (uint64_t)PRODUCERS * PRODUCED;
    uint64_t begin;

    atomic_store(&produced, 0);
    atomic_store(&consumed, 0);
    atomic_store(&sink_held, false);
    atomic_store(&sink_go, false);
    start(2);
    sink_ref = spawn(&held_sink, NULL);
    trp_system_tell(system_, sink_ref, &trp_bytes_type, NULL, 0);
    UNIT_WAIT(atomic_load(&sink_held), 20000);
    for (int k = 0; k < PRODUCERS; k++) {
        trp_system_tell(system_, spawn(&producer, NULL), &trp_bytes_type, NULL, 0);
    }
    /* All that they tell takes 40 ms, when nothing holds them. */
    begin = unit_now_ms();
    UNIT_WAIT(unit_now_ms() - begin > 300 || atomic_load(&produced) == all, 20000);
    UNIT_TRUE(atomic_load(&produced) < all / 2);
    atomic_store(&sink_go, true);
    UNIT_WAIT(atomic_load(&consumed) == all + 1, 20000);
    end();
}

/* ---- a maker of many ------------------------------------------------------------------------- */

enum { CHILDREN = 1000 };
static _Atomic int children_ran, ran_before_more;

static trp_err
child_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    atomic_fetch_add(&children_ran, 1);
    return TRP_OK;
}

static const trp_behaviour child = {
    .size = sizeof(trp_behaviour), .name = "child", .version = 1, .receive = child_receive
};

static trp_err
make(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    (void)msg;
    if (atomic_load(&children_ran) > 0) {
        atomic_store(&ran_before_more, atomic_load(&children_ran));
        return TRP_OK;
    }
    for (int i = 0; i < CHILDREN; i++) {
        trp_ref ref;

        UNIT_EQUAL(trp_spawn(ctx, &child, NULL, &ref), TRP_OK);
        trp_tell(ctx, ref, &trp_bytes_type, NULL, 0);
    }
    trp_tell(ctx, trp_self(ctx), &trp_bytes_type, NULL, 0);
    return TRP_OK;
}

static const trp_behaviour maker = {
    .size = sizeof(trp_behaviour), .name = "maker", .version = 1, .receive = make
};

/* run-R6, and trpi_worker_settle(): it has more to do, but they were ready before. */
static void
a_thousand_children_run_before_their_maker_makes_more(void)
{
    atomic_store(&children_ran, 0);
    atomic_store(&ran_before_more, 0);
    start(1);
    trp_system_tell(system_, spawn(&maker, NULL), &trp_bytes_type, NULL, 0);
    UNIT_WAIT(atomic_load(&ran_before_more) != 0, 20000);
    UNIT_EQUAL(atomic_load(&ran_before_more), CHILDREN);
    end();
}

UNIT_BEGIN("tell")
UNIT(a_message_told_from_outside_has_no_sender)
UNIT(payloads_of_all_sizes_arrive)
UNIT(what_an_actor_tells_arrives_as_it_was)
UNIT(messages_of_one_thread_keep_their_order)
UNIT(chained_messages_keep_their_order_through_evictions)
UNIT(a_forwarded_message_keeps_its_sender)
UNIT(what_reaches_nobody_is_a_dead_letter_with_its_reason)
UNIT(a_text_of_any_length_is_told_and_asked)
UNIT(a_payload_shorter_than_its_struct_is_not_delivered)
UNIT(producers_are_slowed_down_to_their_receiver)
UNIT(producers_wait_for_a_receiver_whose_worker_is_held)
UNIT(a_thousand_children_run_before_their_maker_makes_more)
UNIT_END
