/* peek_test.c - the mailbox that gives a message again until it is acknowledged (CONTRIB-40,
 * -41). */
#include <troupe/mailbox.h>

#include "tests/unit/actor/hops.h"

/* "ack": acknowledged twice; "fail": fails; "once": fails at the first time, then acknowledged;
 * "late": acknowledged at the second time; "end": stops without a word. Others are not
 * acknowledged. */
static trp_err
peeker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int *times = state;

    if (trp_msg_is(msg, &trp_string_type)) {
        stage_note("%.*s", (int)trp_msg_bytes(msg), (const char *)trp_msg_payload(msg));
    } else {
        stage_note("%zu%s", trp_msg_bytes(msg),
                   ((const char *)trp_msg_payload(msg))[trp_msg_bytes(msg) - 1] == 'b' ? "" : "!");
    }
    if (stage_said(msg, "ack")) {
        UNIT_EQUAL(trp_mailbox_ack(ctx), TRP_OK);
        UNIT_EQUAL(trp_mailbox_ack(ctx), TRP_OK);
        trp_reply_text(ctx, "done");
    } else if (stage_said(msg, "late") && ++*times == 2) {
        UNIT_EQUAL(trp_mailbox_ack(ctx), TRP_OK);
    } else if (stage_said(msg, "end")) {
        trp_tell(ctx, trp_self(ctx), &trp_string_type, "ack", 3); /* waits when the end comes */
        trp_flush(ctx);
        trp_stop(ctx, trp_self(ctx));
    }
    return stage_said(msg, "fail") ? TRP_EIO : TRP_OK;
}

static _Atomic int once;

static trp_err
doubter_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    if (stage_said(msg, "once") && atomic_fetch_add(&once, 1) == 0) {
        stage_note("once");
        return TRP_EIO;
    }
    (void)peeker_receive(ctx, state, msg);
    return trp_mailbox_ack(ctx);
}

static void
peeker_stopped(trp_ctx *ctx, void *state)
{
    (void)ctx;
    (void)state;
    stage_note("stopped");
}

static const trp_behaviour peeker = { .size = sizeof(trp_behaviour),
                                      .name = "peeker",
                                      .version = 1,
                                      .state_bytes = sizeof(int),
                                      .receive = peeker_receive,
                                      .post_stop = peeker_stopped };
static const trp_behaviour doubter = { .size = sizeof(trp_behaviour),
                                       .name = "doubter",
                                       .version = 1,
                                       .state_bytes = sizeof(int),
                                       .receive = doubter_receive,
                                       .post_stop = peeker_stopped };

static trp_err
peek_register(trp_system *system, const char *id, uint32_t max_retries)
{
    trp_mailbox_options options = TRP_MAILBOX_OPTIONS_INIT;

    options.kind = TRP_MAILBOX_KIND_PEEK;
    options.max_retries = max_retries;
    return trp_mailbox_register(system, id, &options);
}

static trp_ref
peek_spawn(trp_system *system, const trp_behaviour *behaviour, const char *mailbox)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;

    options.mailbox = mailbox;
    UNIT_EQUAL(trp_system_spawn(system, behaviour, &options, &ref), TRP_OK);
    return ref;
}

/* CONTRIB-41: the document's demonstration; the pill is given once, behind what was told before */
static void
a_message_at_which_the_actor_failed_is_given_again(void)
{
    trp_system *system = stage_open();
    trp_ref ref;

    atomic_store(&once, 0);
    UNIT_EQUAL(peek_register(system, "peek", 2), TRP_OK);
    ref = peek_spawn(system, &doubter, "peek");
    stage_tell(system, ref, "Hello");
    stage_tell(system, ref, "once");
    trp_system_tell(system, ref, &trp_poison_pill_type, NULL, 0);
    STAGE_EXPECT("Hello once stopped once stopped"); /* stopped: also by its restart */
    stage_close(system);
    UNIT_EQUAL(stage_count("stopped"), 2);
}

/* HOW-09: each delivery of a traced message is a hop with a span and a number of its own (peek-K4).
 */
static void
each_delivery_of_a_traced_message_is_a_hop_of_its_trace(void)
{
    trp_system *system = stage_open();
    static const char *const said[] = { "once", "silent", "plain" };
    const trp_hop_end ends[] = { TRP_HOP_FAILED, TRP_HOP_HANDLED, TRP_HOP_HANDLED, TRP_HOP_HANDLED,
                                 TRP_HOP_HANDLED };
    const uint32_t attempts[] = { 1, 2, 1, 2, 3 };
    char answer[16];
    hops h;

    atomic_store(&once, 0);
    UNIT_EQUAL(peek_register(system, "peek", 2), TRP_OK);
    trp_ref refs[] = { peek_spawn(system, &doubter, "peek"), peek_spawn(system, &peeker, "peek") };
    for (int i = 0; i < 2; i++) {
        trp_system_tell_traced(system, refs[i], (trp_ref)TRP_REF_NONE, &outside, &trp_string_type,
                               said[i], strlen(said[i]));
        stage_tell(system, refs[i], said[2]); /* in none */
        UNIT_EQUAL(stage_ask(system, refs[i], "ack", answer, sizeof answer), TRP_OK);
    }
    hops_take(system, &h);
    UNIT_EQUAL(h.count, 5);
    for (uint32_t i = 0; i < h.count; i++) {
        UNIT_EQUAL(h.all[i].trace.id_low, outside.id_low);
        UNIT_EQUAL(h.all[i].parent, outside.span);
        UNIT_EQUAL(h.all[i].trace.attempt, attempts[i]);
        UNIT_EQUAL(h.all[i].end, ends[i]);
        for (uint32_t k = 0; k < i; k++) {
            UNIT_TRUE(h.all[k].trace.span != h.all[i].trace.span);
        }
    }
    stage_close(system);
}

/* CONTRIB-40: max_retries more times, with a failure or without; then it is dropped */
static void
what_is_never_acknowledged_is_given_up_after_the_last_retry(void)
{
    trp_system *system = stage_open();
    trp_ref ref;
    char answer[16];

    UNIT_EQUAL(peek_register(system, "peek", 0), TRP_OK); /* 2 */
    UNIT_EQUAL(peek_register(system, "one", 1), TRP_OK);
    ref = peek_spawn(system, &peeker, "peek");
    stage_tell(system, ref, "silent");
    UNIT_EQUAL(stage_ask(system, ref, "ack", answer, sizeof answer), TRP_OK);
    STAGE_EXPECT("silent silent silent ack");
    stage_tell(system, ref, "late"); /* in between is soon enough, and the next begins anew */
    stage_tell(system, ref, "fail");
    UNIT_EQUAL(stage_ask(system, ref, "ack", answer, sizeof answer), TRP_OK);
    STAGE_EXPECT("silent silent silent ack late late fail stopped fail stopped fail stopped ack");
    UNIT_EQUAL(stage_dead_sum(system), 0);
    stage_clear(&stage_events);
    ref = peek_spawn(system, &peeker, "one");
    stage_tell(system, ref, "silent");
    UNIT_EQUAL(stage_ask(system, ref, "ack", answer, sizeof answer), TRP_OK);
    STAGE_EXPECT("silent silent ack");
    stage_close(system);
}

/* CONTRIB-41: what waits at the end, the unacknowledged one included, is dead letters; what was
 * acknowledged is not counted any more, not even while it is handled */
static void
what_waits_at_the_end_is_dead_letters(void)
{
    trp_system *system = stage_open();
    trp_mailbox_view view;
    trp_ref ref;
    char answer[16];

    UNIT_EQUAL(peek_register(system, "peek", 5), TRP_OK);
    ref = peek_spawn(system, &peeker, "peek");
    UNIT_EQUAL(stage_ask(system, ref, "ack", answer, sizeof answer), TRP_OK);
    UNIT_TEXT(answer, "done");
    UNIT_WAIT(trp_mailbox_look(system, ref, &view) == TRP_OK && view.idle, 60000);
    UNIT_EQUAL(view.messages, 0);
    stage_tell(system, ref, "end");
    STAGE_EXPECT("ack end stopped");
    UNIT_WAIT(stage_dead(system, TRP_DEAD_STOPPED) == 2, 60000);
    stage_close(system);
    UNIT_EQUAL(stage_count("end"), 1);
}

/* CONTRIB-40: A payload that is held out of line is copied, too. */
static void
a_large_message_is_given_again_whole(void)
{
    static char data[TRP_INLINE_PAYLOAD_MAX + 1];
    trp_system *system = stage_open();
    trp_ref ref;
    char answer[16];

    memset(data, 'b', sizeof data);
    UNIT_EQUAL(peek_register(system, "peek", 1), TRP_OK);
    ref = peek_spawn(system, &peeker, "peek");
    trp_system_tell(system, ref, &trp_bytes_type, data, sizeof data);
    UNIT_EQUAL(stage_ask(system, ref, "ack", answer, sizeof answer), TRP_OK);
    STAGE_EXPECT("61441 61441 ack");
    stage_close(system);
}

static trp_err
plain_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    (void)msg;
    trp_reply_text(ctx, trp_err_name(trp_mailbox_ack(ctx)));
    return TRP_OK;
}
static const trp_behaviour plain = {
    .size = sizeof(trp_behaviour), .name = "plain", .version = 1, .receive = plain_receive
};

/* CONTRIB-41: elsewhere it is an error; TRP_MAILBOX_RETRIES_MAX */
static void
misuse_is_an_error_and_the_retries_have_a_limit(void)
{
    trp_system *system = stage_open();
    trp_mailbox_options options = TRP_MAILBOX_OPTIONS_INIT;
    trp_mailbox_info info = { .size = sizeof info };
    char answer[32];

    UNIT_EQUAL(stage_ask(system, stage_spawn(system, &plain, "p"), "ack", answer, sizeof answer),
               TRP_OK);
    UNIT_TEXT(answer, "TRP_ESTATE");
    UNIT_EQUAL(
        stage_ask(system, peek_spawn(system, &plain, "counted"), "ack", answer, sizeof answer),
        TRP_OK);
    UNIT_TEXT(answer, "TRP_ESTATE");
    UNIT_EQUAL(peek_register(system, "most", TRP_MAILBOX_RETRIES_MAX), TRP_OK);
    UNIT_EQUAL(peek_register(system, "more", TRP_MAILBOX_RETRIES_MAX + 1), TRP_EINVAL);
    options.kind = TRP_MAILBOX_KIND_COUNTED;
    options.max_retries = 1;
    UNIT_EQUAL(trp_mailbox_register(system, "other", &options), TRP_EINVAL);
    UNIT_EQUAL(trp_mailbox_find(system, "most", &info), TRP_OK);
    UNIT_EQUAL(info.kind, TRP_MAILBOX_KIND_PEEK);
    UNIT_EQUAL(info.capabilities & TRP_MAILBOX_MULTI_CONSUMER, 0); /* each has its own retries */
    stage_close(system);
}

/* GAP-09: both spellings; of both the one that is documented. The dispatcher brings it, as in
 * Akka's document. */
static void
the_retries_are_configured_by_either_name(void)
{
    const char *const mailboxes[] = { "akka", "ours", "both", "none" };
    const size_t given[] = { 2, 4, 3, 3 };
    char answer[16];
    trp_system *system = stage_open_config(
        "mailbox \"akka\" { mailbox-type = peek  max-tries = 1 }\n"
        "mailbox \"ours\" { mailbox-type = peek  max-retries = 3 }\n"
        "mailbox \"both\" { mailbox-type = peek  max-tries = 7  max-retries = 2 }\n"
        "mailbox \"none\" { mailbox-type = peek }\n"
        "dispatcher \"peek-dispatcher\" { mailbox-type = akka }");
    for (size_t i = 0; i < 5; i++) {
        trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
        trp_ref ref = TRP_REF_NONE;

        spawn.mailbox = i < 4 ? mailboxes[i] : NULL;
        spawn.dispatcher = i < 4 ? NULL : "peek-dispatcher";
        UNIT_EQUAL(trp_system_spawn(system, &peeker, &spawn, &ref), TRP_OK);
        stage_clear(&stage_events);
        stage_tell(system, ref, "silent");
        UNIT_EQUAL(stage_ask(system, ref, "ack", answer, sizeof answer), TRP_OK);
        UNIT_EQUAL(stage_count("silent"), given[i % 4]);
    }
    stage_close(system);
}

/* Of one length each, so that a copy may lie where another one lay. "a" is stashed and
 * acknowledged, then put aside once more before it is done; "m" is given twice. */
#define PAD "........................................"

static trp_err
stasher_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct {
        int a, m;
    } *times = state;

    if (stage_said(msg, "a" PAD)) {
        stage_note("a");
        if (++times->a < 3) {
            UNIT_EQUAL(trp_stash(ctx, msg), TRP_OK);
        }
        if (times->a == 2) {
            trp_unstash_all(ctx);
        } else {
            UNIT_EQUAL(trp_mailbox_ack(ctx), TRP_OK);
        }
    } else if (stage_said(msg, "m" PAD)) {
        stage_note("m");
        if (++times->m == 1) {
            trp_unstash_all(ctx);
        } else {
            UNIT_EQUAL(trp_mailbox_ack(ctx), TRP_OK);
        }
    } else {
        return trp_mailbox_ack(ctx);
    }
    return TRP_OK;
}
static const trp_behaviour stasher = { .size = sizeof(trp_behaviour),
                                       .name = "stasher",
                                       .version = 1,
                                       .state_bytes = 2 * sizeof(int),
                                       .receive = stasher_receive };

/* CONTRIB-41: what comes out of the stash is not what is first in the mailbox. */
static void
a_message_out_of_the_stash_acknowledges_no_other(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *system;
    trp_ref ref;

    options.workers = 1;
    options.throughput = 1;
    system = stage_open_with(options);
    UNIT_EQUAL(peek_register(system, "peek", 5), TRP_OK);
    ref = peek_spawn(system, &stasher, "peek");
    stage_tell(system, ref, "a" PAD);
    stage_tell(system, ref, "m" PAD);
    STAGE_EXPECT("a m a a m");
    stage_close(system);
    UNIT_EQUAL(stage_count("m"), 2);
}

UNIT_BEGIN("peek")
UNIT(a_message_at_which_the_actor_failed_is_given_again)
UNIT(each_delivery_of_a_traced_message_is_a_hop_of_its_trace)
UNIT(what_is_never_acknowledged_is_given_up_after_the_last_retry)
UNIT(what_waits_at_the_end_is_dead_letters)
UNIT(a_large_message_is_given_again_whole)
UNIT(misuse_is_an_error_and_the_retries_have_a_limit)
UNIT(a_message_out_of_the_stash_acknowledges_no_other)
UNIT(the_retries_are_configured_by_either_name)
UNIT_END
