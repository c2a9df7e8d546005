/* delivery_test.c - what a tell promises: once at most, in order for each pair, accounted for when
 * it is lost, and all that was written before is seen. Run under the thread sanitizer this is the
 * proof of the memory rules: what travels and what actors own is plain memory.
 */
#include "tests/unit/actor/stage.h"

#define PARCEL_POST(F, S) F(S, u32, from) F(S, u32, id) F(S, u64, address)
#define PARCEL_MESSAGES(M, P) M(P, post, PARCEL_POST)
TRP_PROTOCOL(parcel, PARCEL_MESSAGES)

/* ---- many to many ---------------------------------------------------------------------------- */

enum { SENDERS = 6, RECEIVERS = 6, EACH = 2000, BATCH = 50 };

typedef struct parcel_content { /* plain memory: no atomics, no locks */
    uint64_t words[4];
    uint32_t received;
} parcel_content;

static parcel_content contents[SENDERS][RECEIVERS][EACH];
static uint32_t last_id[RECEIVERS][SENDERS]; /* the receiver's own, over restarts */
static trp_ref receivers[RECEIVERS];
static _Atomic uint32_t received, wrong_order, wrong_content;

static trp_err
receiver_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const parcel_post *post = trp_msg_payload(msg);
    parcel_content *content = (parcel_content *)(uintptr_t)post->address;
    uint32_t me = 0;

    (void)state;
    while (!trp_ref_equal(receivers[me], trp_self(ctx))) {
        me++;
    }
    for (uint64_t i = 0; i < 4; i++) { /* MEM-1 */
        if (content->words[i] != post->id * 10 + i) {
            atomic_fetch_add(&wrong_content, 1);
        }
    }
    content->received++;
    if (post->id <= last_id[me][post->from]) { /* MEM-2 */
        atomic_fetch_add(&wrong_order, 1);
    }
    last_id[me][post->from] = post->id;
    atomic_fetch_add(&received, 1);
    if (post->id % 499 == 0) {
        return TRP_EIO; /* a restart: mailbox and order stay */
    }
    return TRP_OK;
}
static const trp_behaviour receiver = { .size = sizeof(trp_behaviour),
                                        .name = "receiver",
                                        .receive = receiver_receive };

typedef struct sender_state {
    uint32_t id, me;
} sender_state;
static _Atomic uint32_t senders_made, senders_done;

static trp_err
sender_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    sender_state *s = state;

    (void)msg;
    if (s->id == 0) {
        s->me = atomic_fetch_add(&senders_made, 1);
    }
    for (int n = 0; n < BATCH && s->id < EACH; n++) {
        s->id++;
        for (uint32_t r = 0; r < RECEIVERS; r++) {
            parcel_content *content = &contents[s->me][r][s->id - 1];
            parcel_post post = { s->me, s->id, (uint64_t)(uintptr_t)content };

            for (uint64_t i = 0; i < 4; i++) {
                content->words[i] = s->id * 10 + i;
            }
            trp_tell(ctx, receivers[r], &parcel_post_type, &post, sizeof post);
        }
    }
    if (s->id < EACH) {
        trp_tell_text(ctx, trp_self(ctx), "more");
    } else {
        atomic_fetch_add(&senders_done, 1);
    }
    return TRP_OK;
}
static const trp_behaviour sender = { .size = sizeof(trp_behaviour),
                                      .name = "sender",
                                      .state_bytes = sizeof(sender_state),
                                      .receive = sender_receive };

/* MSG-6, MSG-7, MSG-9, MEM-1, MEM-2, HEADLINE-12: receivers fail, and one of them stops on the way.
 * Each message was received once, or is counted as lost with a reason; messages came in the order
 * of their sender, with all that the sender had written. */
static void
messages_arrive_once_at_most_in_order_and_complete(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_strategy quiet = TRP_STRATEGY_INIT;
    trp_system *system;
    uint32_t seen = 0;

    quiet.quiet = 1;
    options.workers = 4;
    options.guardian_strategy = &quiet;
    options.log_dead_letters = TRP_OFF;
    system = stage_open_with(options);
    UNIT_EQUAL(trp_protocol_register(&parcel_protocol), TRP_OK);
    for (int i = 0; i < RECEIVERS; i++) {
        receivers[i] = stage_spawn(system, &receiver, NULL);
    }
    for (int i = 0; i < SENDERS; i++) {
        stage_tell(system, stage_spawn(system, &sender, NULL), "go");
    }
    UNIT_WAIT(atomic_load(&received) > SENDERS * RECEIVERS * EACH / 4, 20000);
    trp_system_stop_actor(system, receivers[0]);
    UNIT_WAIT(atomic_load(&senders_done) == SENDERS, 20000);
    UNIT_WAIT(atomic_load(&received) + stage_dead_sum(system) == SENDERS * RECEIVERS * EACH, 20000);
    UNIT_EQUAL(atomic_load(&wrong_order), 0);
    UNIT_EQUAL(atomic_load(&wrong_content), 0);
    UNIT_TRUE(atomic_load(&received) >= SENDERS * (RECEIVERS - 1) * EACH);
    stage_close(system);
    for (int s = 0; s < SENDERS; s++) {
        for (int r = 0; r < RECEIVERS; r++) {
            for (int i = 0; i < EACH; i++) {
                UNIT_TRUE(contents[s][r][i].received <= 1);
                seen += contents[s][r][i].received;
            }
        }
    }
    UNIT_EQUAL(seen, atomic_load(&received));
}

/* ---- the end --------------------------------------------------------------------------------- */

static int ends, ends_seen; /* plain, and nothing in between that is locked or logged */

/* Takes its time, so that who is told too early reads an old count. */
static void
count_end(trp_ctx *ctx, void *state)
{
    (void)ctx;
    (void)state;
    for (int i = 0; i < 20; i++) {
        unit_pause();
    }
    ends++;
}
static _Atomic bool heard_the_end;
static trp_err
after_the_end(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    (void)ctx;
    (void)state;
    (void)arg;
    (void)reply;
    UNIT_EQUAL(err, TRP_OK);
    ends_seen = ends;
    atomic_store(&heard_the_end, true);
    return TRP_OK;
}
static trp_ref parting_ref;
static trp_err
end_it(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    (void)msg;
    return trp_graceful_stop(ctx, parting_ref, 60000, after_the_end, NULL);
}
static const trp_behaviour parting = {
    .size = sizeof(trp_behaviour), .name = "parting", .receive = end_it, .post_stop = count_end
};
static const trp_behaviour ender = { .size = sizeof(trp_behaviour),
                                     .name = "ender",
                                     .receive = end_it };

/* MEM-5, LIFE-14: who waited for an end sees all that post_stop wrote, a thread and an actor alike,
 * and so does who waited for the whole system */
static void
what_post_stop_wrote_is_seen_by_who_waited_for_the_end(void)
{
    trp_system *system = stage_open();

    parting_ref = stage_spawn(system, &parting, NULL);
    UNIT_EQUAL(trp_system_graceful_stop(system, parting_ref, 60000), TRP_OK);
    UNIT_EQUAL(ends, 1);
    parting_ref = stage_spawn(system, &parting, NULL);
    stage_tell(system, stage_spawn(system, &ender, NULL), "end it");
    UNIT_WAIT(atomic_load(&heard_the_end), 5000);
    UNIT_EQUAL(ends_seen, 2);
    (void)stage_spawn(system, &parting, NULL);
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
    UNIT_EQUAL(ends, 3);
    trp_system_free(system);
}

/* ---- senders --------------------------------------------------------------------------------- */

static trp_ref echo_ref, third_ref;

static trp_err
echo_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_ref *stored = state;
    char path[128];

    if (stage_said(msg, "ask the echo")) { /* the sender is self */
        trp_tell_text(ctx, echo_ref, "who");
    } else if (stage_said(msg, "in its name")) {
        trp_tell_as(ctx, echo_ref, third_ref, &trp_string_type, "who", 3);
    } else if (stage_said(msg, "who")) {
        trp_reply_text(ctx, "answer");
    } else if (stage_said(msg, "store")) {
        *stored = trp_sender(ctx);
    } else if (stage_said(msg, "use")) {
        trp_tell_text(ctx, *stored, "stored");
    } else if (stage_said(msg, "reply to nobody")) {
        UNIT_TRUE(trp_ref_is_none(trp_sender(ctx)));
        trp_reply_text(ctx, "lost");
    } else if (stage_said(msg, "fail")) {
        return TRP_EIO;
    } else if (stage_said(msg, "tell the failing")) {
        trp_tell_text(ctx, echo_ref, "fail");
        trp_tell_text(ctx, echo_ref, "who");
    } else {
        stage_note("%s<%.*s", stage_name(trp_ctx_system(ctx), trp_self(ctx), path, sizeof path),
                   (int)trp_msg_bytes(msg), (const char *)trp_msg_payload(msg));
    }
    return TRP_OK;
}
static const trp_behaviour echo = { .size = sizeof(trp_behaviour),
                                    .name = "echo",
                                    .state_bytes = sizeof(trp_ref),
                                    .receive = echo_receive };

static trp_system *
open_echo(trp_ref *ret_one)
{
    trp_system *system = stage_open();

    echo_ref = stage_spawn(system, &echo, "echo");
    third_ref = stage_spawn(system, &echo, "third");
    *ret_one = stage_spawn(system, &echo, "one");
    return system;
}

/* MSG-1, MSG-2, UJ-01: self is the sender, another one if it is named; a sender is a value that may
 * be kept; from outside there is none, and what is replied is a dead letter */
static void
the_sender_goes_along_and_may_be_kept(void)
{
    trp_ref one;
    trp_system *system = open_echo(&one);

    stage_tell(system, one, "ask the echo");
    STAGE_EXPECT("one<answer");
    stage_tell(system, one, "in its name");
    STAGE_EXPECT("one<answer third<answer");
    trp_system_tell_as(system, one, third_ref, &trp_string_type, "store", 5);
    stage_tell(system, one, "use");
    STAGE_EXPECT("one<answer third<answer third<stored");
    stage_tell(system, one, "reply to nobody");
    UNIT_WAIT(stage_dead_sum(system) == 1, 5000);
    stage_close(system);
}

/* MSG-1, MSG-9: a tell tells nothing back: not that the receiver is dead, not that it failed */
static void
a_sender_is_not_told_that_its_receiver_failed_or_is_dead(void)
{
    trp_ref one;
    trp_system *system = open_echo(&one);

    stage_tell(system, one, "tell the failing");
    STAGE_EXPECT("one<answer"); /* by the next instance */
    UNIT_WAIT(stage_book_has(&stage_lines, "/user/echo: failed"), 5000);
    UNIT_EQUAL(trp_system_graceful_stop(system, echo_ref, 60000), TRP_OK);
    stage_tell(system, one, "tell the failing");
    UNIT_WAIT(stage_dead_sum(system) == 2, 5000);
    UNIT_FALSE(stage_book_has(&stage_lines, "/user/one: failed"));
    STAGE_EXPECT("one<answer");
    stage_close(system);
}

/* ---- contents -------------------------------------------------------------------------------- */

static trp_err
teller_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    char *text = state;

    if (stage_said(msg, "go")) {
        memcpy(text, "first", 6);
        trp_tell_text(ctx, third_ref, text);
        memset(text, 'x', 5); /* the message is a copy */
        trp_tell_text(ctx, third_ref, text);
    } else {
        trp_forward(ctx, echo_ref, msg); /* the same content for both */
        trp_forward(ctx, third_ref, msg);
    }
    return TRP_OK;
}
static const trp_behaviour teller = {
    .size = sizeof(trp_behaviour), .name = "teller", .state_bytes = 64, .receive = teller_receive
};

/* MSG-13: receivers get a const message (the compiler says so); what the sender does with its own
 * memory afterwards, or another receiver sees, changes nothing */
static void
a_message_does_not_change_after_it_was_sent(void)
{
    trp_ref one, t;
    trp_system *system = open_echo(&one);

    t = stage_spawn(system, &teller, "t");
    stage_tell(system, t, "go");
    STAGE_EXPECT("third<first third<xxxxx");
    stage_clear(&stage_events);
    stage_tell(system, t, "both");
    UNIT_WAIT(stage_has("third<both") && stage_has("echo<both"), 5000);
    stage_close(system);
}

static _Atomic uint64_t bulk_bytes;
static trp_err
bulk_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const unsigned char *bytes = trp_msg_payload(msg);
    size_t count = trp_msg_bytes(msg);

    (void)ctx;
    (void)state;
    UNIT_EQUAL(bytes[0], 1);
    UNIT_EQUAL(bytes[count - 1], 2);
    atomic_store(&bulk_bytes, count);
    return TRP_OK;
}
static const trp_behaviour bulk = { .size = sizeof(trp_behaviour),
                                    .name = "bulk",
                                    .receive = bulk_receive };

/* MSG-12: here a message may be as large as memory; the limit is the wire's
 * (codec_test:a_message_too_large_is_refused_alone) */
static void
a_local_message_has_no_size_limit(void)
{
    size_t bytes = (size_t)64 << 20;
    trp_system *system = stage_open();
    unsigned char *payload = calloc(1, bytes);

    UNIT_REQUIRE(payload != NULL);
    payload[0] = 1;
    payload[bytes - 1] = 2;
    trp_system_tell(system, stage_spawn(system, &bulk, "b"), &trp_bytes_type, payload, bytes);
    free(payload);
    UNIT_WAIT(atomic_load(&bulk_bytes) == bytes, 10000);
    stage_close(system);
}

/* ---- order ----------------------------------------------------------------------------------- */

static trp_err
only_b(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    stage_note("%.*s", (int)trp_msg_bytes(msg), (const char *)trp_msg_payload(msg));
    return stage_said(msg, "b") ? TRP_OK : TRP_EUNHANDLED;
}
static const trp_behaviour only_b_behaviour = { .size = sizeof(trp_behaviour),
                                                .name = "only b",
                                                .receive = only_b };

/* MSG-14 */
static void
a_behaviour_is_given_the_next_message_whether_it_wants_it_or_not(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &only_b_behaviour, "a");

    stage_tell(system, a, "a");
    stage_tell(system, a, "b");
    stage_tell(system, a, "c");
    STAGE_EXPECT("a b c");
    stage_close(system);
}

static _Atomic bool relayed;
static trp_err
last_hear(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    stage_note("%.*s", (int)trp_msg_bytes(msg), (const char *)trp_msg_payload(msg));
    if (stage_said(msg, "effect")) {
        atomic_store(&relayed, true);
    }
    return TRP_OK;
}
static const trp_behaviour last_hearer = { .size = sizeof(trp_behaviour),
                                           .name = "last hearer",
                                           .receive = last_hear };
static trp_err
relay(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    (void)msg;
    trp_tell_text(ctx, third_ref, "effect");
    return TRP_OK;
}
static const trp_behaviour relay_behaviour = { .size = sizeof(trp_behaviour),
                                               .name = "relay",
                                               .receive = relay };
static trp_err
cause(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    uint64_t until = unit_now_ms() + 5000 * UNIT_STRETCH;

    (void)state;
    (void)msg;
    trp_tell_text(ctx, third_ref, "one");
    trp_tell_text(ctx, third_ref, "two");
    trp_flush(ctx);
    trp_tell_text(ctx, echo_ref, "go on");
    while (!atomic_load(&relayed) && unit_now_ms() < until) {
        unit_pause(); /* this turn lasts until the effect has arrived */
    }
    return TRP_OK;
}
static const trp_behaviour causing = { .size = sizeof(trp_behaviour),
                                       .name = "causing",
                                       .receive = cause };

/* MSG-10 (other idiom): whoever needs causes before effects across three actors says so */
static void
what_was_told_before_a_flush_arrives_before_all_its_effects(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *system;

    options.workers = 3;
    system = stage_open_with(options);
    third_ref = stage_spawn(system, &last_hearer, "last");
    echo_ref = stage_spawn(system, &relay_behaviour, "relay");
    stage_tell(system, stage_spawn(system, &causing, "first"), "go");
    STAGE_EXPECT("one two effect");
    stage_close(system);
}

/* ---- acknowledged delivery, on top ----------------------------------------------------------- */

enum { ITEMS = 50, RESEND_MS = 20 };

typedef struct ack_state {
    int64_t next; /* sender: the lowest that is not acknowledged; receiver: the next that is new */
} ack_state;
static trp_ref lossy_ref, keeper_ref;
static _Atomic int kept, duplicates;

static trp_err
push_item(trp_ctx *ctx, ack_state *s)
{
    trp_tell(ctx, lossy_ref, &trp_i64_type, &s->next, sizeof s->next);
    return trp_timer_once(ctx, 1, RESEND_MS, &trp_string_type, "again", 5);
}
static trp_err
retry_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    ack_state *s = state;

    if (trp_msg_is(msg, &trp_i64_type) && *(const int64_t *)trp_msg_payload(msg) == s->next) {
        s->next++;
        trp_timer_cancel(ctx, 1);
    } else if (trp_msg_is(msg, &trp_i64_type)) {
        return TRP_OK; /* an acknowledgement that came twice */
    }
    if (s->next > ITEMS) {
        stage_note("all acknowledged");
        return TRP_OK;
    }
    return push_item(ctx, s);
}
static trp_err
keep_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    ack_state *s = state;
    int64_t id = *(const int64_t *)trp_msg_payload(msg);

    if (id == s->next + 1) {
        s->next = id;
        atomic_fetch_add(&kept, 1);
    } else {
        atomic_fetch_add(&duplicates, 1); /* its acknowledgement was lost */
    }
    trp_tell_as(ctx, lossy_ref, trp_self(ctx), &trp_i64_type, &id, sizeof id);
    return TRP_OK;
}
static trp_ref retry_ref;
static trp_err
lossy_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    ack_state *s = state;

    if (s->next++ % 3 != 1) { /* every third is lost, either way */
        trp_forward(ctx, trp_ref_equal(trp_sender(ctx), keeper_ref) ? retry_ref : keeper_ref, msg);
    }
    return TRP_OK;
}
#define ACK(name_, receive_)                                                                       \
    static const trp_behaviour name_ = { .size = sizeof(trp_behaviour),                            \
                                         .name = #name_,                                           \
                                         .state_bytes = sizeof(ack_state),                         \
                                         .receive = receive_ };
ACK(retrying, retry_receive)
ACK(keeping, keep_receive)
ACK(losing, lossy_receive)

/* MSG-18: number, acknowledge, resend, drop duplicates: each item is kept once, in order, over a
 * way that loses every third message */
static void
acknowledging_and_repeating_make_delivery_certain(void)
{
    trp_system *system = stage_open();

    lossy_ref = stage_spawn(system, &losing, "lossy");
    keeper_ref = stage_spawn(system, &keeping, "keeper");
    retry_ref = stage_spawn(system, &retrying, "retry");
    {
        int64_t before_the_first = 0;

        trp_system_tell(system, retry_ref, &trp_i64_type, &before_the_first,
                        sizeof before_the_first);
    }
    STAGE_EXPECT("all acknowledged");
    UNIT_EQUAL(atomic_load(&kept), ITEMS);
    UNIT_TRUE(atomic_load(&duplicates) > 0);
    stage_close(system);
}

UNIT_BEGIN("delivery")
UNIT(messages_arrive_once_at_most_in_order_and_complete)
UNIT(what_post_stop_wrote_is_seen_by_who_waited_for_the_end)
UNIT(the_sender_goes_along_and_may_be_kept)
UNIT(a_sender_is_not_told_that_its_receiver_failed_or_is_dead)
UNIT(a_message_does_not_change_after_it_was_sent)
UNIT(a_local_message_has_no_size_limit)
UNIT(a_behaviour_is_given_the_next_message_whether_it_wants_it_or_not)
UNIT(what_was_told_before_a_flush_arrives_before_all_its_effects)
UNIT(acknowledging_and_repeating_make_delivery_certain)
UNIT_END
