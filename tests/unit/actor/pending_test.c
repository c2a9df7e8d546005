/* pending_test.c - list the messages of a mailbox, and take messages back. */
#include <troupe/mailbox.h>
#include <troupe/pending.h>

#include "tests/unit/actor/stage.h"

static _Atomic bool let_go;

static int
note_and_take(void *arg, const trp_msg *msg, trp_ref sender)
{
    const char *unwanted = arg;

    (void)sender;
    stage_note("<%.*s>", (int)trp_msg_bytes(msg), (const char *)trp_msg_payload(msg));
    return unwanted != NULL && stage_said(msg, unwanted) ? TRP_PENDING_REMOVE : TRP_PENDING_NEXT;
}

static int
stop_at_b(void *arg, const trp_msg *msg, trp_ref sender)
{
    (void)sender;
    ++*(int *)arg;
    return stage_said(msg, "b") ? TRP_PENDING_REMOVE | TRP_PENDING_STOP : TRP_PENDING_NEXT;
}

static trp_err
box_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int seen = 0;

    (void)state;
    if (stage_said(msg, "hold")) {
        stage_hold("held", &let_go);
        return TRP_OK;
    }
    if (stage_said(msg, "look")) { /* a message to itself is there at once */
        trp_tell_text(ctx, trp_self(ctx), "a");
        trp_tell_text(ctx, trp_self(ctx), "b");
        trp_tell_text(ctx, trp_self(ctx), "c");
        UNIT_EQUAL(trp_pending_visit(ctx, NULL, NULL), 3);
        UNIT_EQUAL(trp_pending_visit(ctx, stop_at_b, &seen), 2);
        UNIT_EQUAL(seen, 2);
        UNIT_EQUAL(trp_pending_visit(ctx, NULL, NULL), 2); /* the removed one is not seen again */
        return TRP_OK;
    }
    stage_note("%.*s", (int)trp_msg_bytes(msg), (const char *)trp_msg_payload(msg));
    return TRP_OK;
}
static const trp_behaviour box = {
    .size = sizeof(trp_behaviour), .name = "box", .version = 1, .receive = box_receive
};

/* UJ-07, UJ-08, UJ-09: by the actor itself */
static void
an_actor_looks_into_its_own_mailbox(void)
{
    trp_system *system = stage_open();
    trp_system_stats stats = { .size = sizeof stats };
    trp_ref a = stage_spawn(system, &box, "a");

    stage_tell(system, a, "look");
    STAGE_EXPECT("a c");
    UNIT_WAIT((trp_system_stats_get(system, &stats), stats.messages_processed == 3), 5000);
    stage_close(system); /* neither processed nor dead */
}

/* A caller whose time is over gets no answer. */
static void
a_look_that_comes_too_late_is_not_taken(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &box, "a");
    uint32_t count = 77;

    atomic_store(&let_go, false);
    stage_tell(system, a, "hold");
    UNIT_WAIT(stage_has("held"), 5000);
    stage_tell(system, a, "b");
    UNIT_EQUAL(trp_system_pending_visit(system, a, 20, note_and_take, "b", &count), TRP_ETIMEDOUT);
    UNIT_EQUAL(count, 77);
    atomic_store(&let_go, true);
    STAGE_EXPECT("held b"); /* fn was not called: neither noted nor removed */
    stage_close(system);
}

static trp_err
hoarder_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (stage_said(msg, "fail")) {
        return TRP_EIO;
    }
    (void)ctx;
    stage_note("%.*s", (int)trp_msg_bytes(msg), (const char *)trp_msg_payload(msg));
    return TRP_OK;
}
static const trp_behaviour hoarder = {
    .size = sizeof(trp_behaviour), .name = "hoarder", .version = 1, .receive = hoarder_receive
};
static trp_ref hoarder_ref;
static const char *mailbox;

/* Keeps its failed child suspended until it may go on, so that mail waits. */
static trp_directive
ponder(trp_ctx *ctx, void *state, const trp_failure *failure)
{
    (void)ctx;
    (void)state;
    (void)failure;
    stage_hold("pondering", &let_go);
    return TRP_RESUME;
}
static const trp_strategy slow = { .size = sizeof(trp_strategy),
                                   .decider = ponder,
                                   .retries_max = TRP_FOREVER };
static trp_err
parent_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (stage_said(msg, "child")) {
        trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;

        options.mailbox = mailbox;
        UNIT_EQUAL(trp_spawn(ctx, &hoarder, &options, &hoarder_ref), TRP_OK);
        trp_reply_text(ctx, "ok");
    }
    return TRP_OK;
}
static const trp_behaviour parent = { .size = sizeof(trp_behaviour),
                                      .name = "parent",
                                      .version = 1,
                                      .receive = parent_receive,
                                      .strategy = &slow };
static trp_err
teller_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (stage_said(msg, "tell")) {
        trp_tell_text(ctx, hoarder_ref, "mine");
        trp_tell_json(ctx, hoarder_ref, "{}");
    } else if (stage_said(msg, "take back")) {
        UNIT_EQUAL(trp_withdraw(ctx, hoarder_ref, &trp_string_type), TRP_OK);
        UNIT_EQUAL(trp_withdraw(ctx, (trp_ref)TRP_REF_NONE, NULL), TRP_EINVAL);
    } else {
        UNIT_EQUAL(trp_withdraw(ctx, hoarder_ref, NULL), TRP_OK); /* of all types */
    }
    trp_reply_text(ctx, "ok");
    return TRP_OK;
}
static const trp_behaviour teller = {
    .size = sizeof(trp_behaviour), .name = "teller", .version = 1, .receive = teller_receive
};

static bool
waits(trp_system *system, uint32_t messages)
{
    uint32_t count = UINT32_MAX;

    return trp_system_pending_visit(system, hoarder_ref, 60000, NULL, NULL, &count) == TRP_OK &&
           count == messages;
}

static _Atomic bool begun;
static _Atomic uint64_t until_ms;

static int
look_for_long(void *arg, const trp_msg *msg, trp_ref sender)
{
    (void)arg;
    (void)msg;
    (void)sender;
    atomic_store(&begun, true);
    while (unit_now_ms() < atomic_load(&until_ms)) {
        unit_pause();
    }
    return TRP_PENDING_NEXT;
}

/* actor-pending-P2: the caller's time is over during a visit, which goes on to its end; or before
 * the visit has begun. */
static void
look_beyond_the_time(trp_system *system)
{
    uint64_t deadline = unit_deadline_ms(5000);
    trp_err err = TRP_ETIMEDOUT;
    uint32_t count = 0;

    while (err == TRP_ETIMEDOUT && unit_now_ms() < deadline) {
        atomic_store(&begun, false);
        atomic_store(&until_ms, unit_now_ms() + 60);
        err = trp_system_pending_visit(system, hoarder_ref, 30, look_for_long, NULL, &count);
        UNIT_EQUAL(atomic_load(&begun), err == TRP_OK);
    }
    UNIT_EQUAL(err, TRP_OK);
    UNIT_EQUAL(count, 4);
}

/* UJ-07, UJ-08, UJ-09: by a thread and by another actor */
static void
look_count_remove(const char *of)
{
    trp_system *system = stage_open();
    trp_ref p = stage_spawn(system, &parent, "p"), t = stage_spawn(system, &teller, "t");
    uint32_t count = 0;
    char answer[8];

    mailbox = of;
    atomic_store(&let_go, false);
    UNIT_EQUAL(stage_ask(system, p, "child", answer, sizeof answer), TRP_OK);
    stage_tell(system, hoarder_ref, "fail");
    UNIT_WAIT(stage_has("pondering"), 5000);
    stage_tell(system, hoarder_ref, "a");
    stage_tell(system, hoarder_ref, "b");
    UNIT_EQUAL(stage_ask(system, t, "tell", answer, sizeof answer), TRP_OK);
    UNIT_EQUAL(trp_system_pending_visit(system, hoarder_ref, 60000, NULL, NULL, &count), TRP_OK);
    UNIT_EQUAL(count, 4);
    look_beyond_the_time(system);
    stage_clear(&stage_events);
    UNIT_EQUAL(trp_system_pending_visit(system, hoarder_ref, 60000, note_and_take, "a", &count),
               TRP_OK);
    STAGE_EXPECT("<a> <b> <mine> <{}>");
    UNIT_EQUAL(stage_ask(system, t, "take back", answer, sizeof answer), TRP_OK);
    UNIT_WAIT(waits(system, 2), 5000); /* b and {} */
    UNIT_EQUAL(stage_ask(system, t, "tell", answer, sizeof answer), TRP_OK);
    UNIT_WAIT(waits(system, 4), 5000);
    UNIT_EQUAL(stage_ask(system, t, "take all", answer, sizeof answer), TRP_OK);
    UNIT_WAIT(waits(system, 1), 5000); /* of both types; not what others told */
    stage_clear(&stage_events);
    atomic_store(&let_go, true);
    STAGE_EXPECT("b");
    UNIT_EQUAL(trp_system_graceful_stop(system, hoarder_ref, 60000), TRP_OK);
    UNIT_EQUAL(trp_system_pending_visit(system, hoarder_ref, 60000, NULL, NULL, &count),
               TRP_ENOENT);
    UNIT_EQUAL(trp_system_pending_visit(system, (trp_ref)TRP_REF_NONE, 1, NULL, NULL, &count),
               TRP_EINVAL);
    stage_close(system);
}

/* UJ-07, UJ-08, UJ-09 */
static void
mail_that_waits_is_seen_removed_and_withdrawn(void)
{
    look_count_remove(NULL);
    look_count_remove("bounded");
    look_count_remove("control-aware");
}

UNIT_BEGIN("pending")
UNIT(an_actor_looks_into_its_own_mailbox)
UNIT(a_look_that_comes_too_late_is_not_taken)
UNIT(mail_that_waits_is_seen_removed_and_withdrawn)
UNIT_END
