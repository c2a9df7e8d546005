/* lost_test.c - dead letters hold the message: with type, payload, sender and interaction. */
#include <troupe/interaction.h>

#include "tests/unit/actor/stage.h"

#define LOST_ORDER(F, S) F(S, u32, number)
#define LOST_MESSAGES(M, P) M(P, order, LOST_ORDER)
TRP_PROTOCOL(lost, LOST_MESSAGES)

static _Atomic bool let_go;
static trp_ref backup;
static trp_ref last_words_to;

/* The type of a message, its payload, its sender. */
static void
note_letter(trp_ctx *ctx, const char *kind, const trp_msg *event)
{
    const trp_dead_letter *what = trp_msg_payload(event);
    const trp_msg *msg = trp_dead_letter_msg(event);
    char sender[TRP_PATH_BYTES_MAX + 1];

    trp_path(trp_ctx_system(ctx), what->sender, sender, sizeof sender);
    if (msg == NULL) {
        stage_note("%s-without(%u,%llu)", kind, what->reason, (unsigned long long)what->bytes);
        return;
    }
    UNIT_EQUAL(trp_msg_bytes(msg), what->bytes);
    UNIT_EQUAL(trp_msg_type(msg)->number, what->type);
    if (trp_msg_is(msg, &trp_string_type)) {
        stage_note("%s(%u,%.*s,%s)", kind, what->reason,
                   trp_msg_bytes(msg) > 16 ? 1 : (int)trp_msg_bytes(msg),
                   (const char *)trp_msg_payload(msg), sender);
    } else if (trp_msg_is(msg, &lost_order_type)) {
        stage_note("%s(%u,order%u,%s)", kind, what->reason,
                   ((const lost_order *)trp_msg_payload(msg))->number, sender);
    } else if (trp_msg_is(msg, &trp_terminated_type)) {
        char ref[TRP_PATH_BYTES_MAX + 1];

        trp_path(trp_ctx_system(ctx), ((const trp_terminated *)trp_msg_payload(msg))->ref, ref,
                 sizeof ref);
        stage_note("%s(terminated %s)", kind, ref);
    } else {
        stage_note("%s(%s)", kind, trp_msg_type(msg)->name);
    }
    if (trp_msg_interaction(msg) != NULL) {
        stage_note("of(%s)", trp_msg_interaction(msg)->protocol);
    }
    if (!trp_ref_is_none(backup)) {
        trp_forward(ctx, backup, msg);
    }
}

/* Subscribes before it is known; the event is noted when it comes. */
static trp_err
keeper_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    trp_err err = trp_subscribe(ctx, &trp_dead_letter_type);

    (void)state;
    (void)args;
    return err != TRP_OK ? err : trp_subscribe(ctx, &trp_suppressed_dead_letter_type);
}
static trp_err
keeper_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &trp_dead_letter_type)) {
        note_letter(ctx, "dead", msg);
    } else if (trp_msg_is(msg, &trp_suppressed_dead_letter_type)) {
        note_letter(ctx, "quiet", msg);
    } else {
        UNIT_TRUE(trp_dead_letter_msg(msg) == NULL); /* no dead letter */
        trp_reply_text(ctx, "ok");
    }
    return TRP_OK;
}
static const trp_behaviour keeper = { .size = sizeof(trp_behaviour),
                                      .name = "keeper",
                                      .version = 1,
                                      .receive = keeper_receive,
                                      .pre_start = keeper_start };

/* A subscriber to dead letters. */
static trp_err
backup_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    char sender[TRP_PATH_BYTES_MAX + 1];

    (void)state;
    trp_path(trp_ctx_system(ctx), trp_sender(ctx), sender, sizeof sender);
    stage_note("backup(%s,%s)", trp_msg_type(msg)->name, sender);
    return TRP_OK;
}
static const trp_behaviour backup_actor = TRP_BEHAVIOUR_INIT("backup", char, backup_receive);

/* Holds its thread, stashes, watches, or tells the dead. */
static trp_err
victim_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (stage_said(msg, "hold")) {
        stage_hold("held", &let_go);
    } else if (stage_said(msg, "watch")) {
        UNIT_EQUAL(trp_watch(ctx, last_words_to), TRP_OK);
        trp_reply_text(ctx, "ok");
    } else if (stage_said(msg, "say")) {
        lost_order order = { 7 };

        trp_tell(ctx, last_words_to, &lost_order_type, &order, sizeof order);
    } else if (stage_said(msg, "later")) {
        UNIT_EQUAL(trp_stash(ctx, msg), TRP_OK);
        stage_note("put aside");
    }
    return TRP_OK;
}
static const trp_behaviour victim = TRP_BEHAVIOUR_INIT("victim", char, victim_receive);

static trp_system *
open_with_keeper(trp_ref *ret_keeper)
{
    trp_system *system = stage_open();
    char answer[8];

    UNIT_REQUIRE(trp_protocol_register(&lost_protocol) == TRP_OK);
    atomic_store(&let_go, false);
    backup = (trp_ref)TRP_REF_NONE;
    *ret_keeper = stage_spawn(system, &keeper, "keeper");
    UNIT_EQUAL(stage_ask(system, *ret_keeper, "are you there", answer, sizeof answer), TRP_OK);
    return system;
}

/* ES-03: sent after the end, with its sender */
static void
what_is_told_to_the_dead_is_in_the_event_as_it_was_told(void)
{
    trp_ref k, a, dead;
    trp_system *system = open_with_keeper(&k);
    trp_interaction talk = { 1, 2, "haggling", "market" };

    dead = stage_spawn(system, &victim, "dead");
    a = stage_spawn(system, &victim, "a");
    UNIT_EQUAL(trp_system_graceful_stop(system, dead, 60000), TRP_OK);
    last_words_to = dead;
    stage_tell(system, a, "say");
    STAGE_EXPECT("dead(2,order7,/user/a)");
    trp_system_tell_in(system, dead, k, &talk, &trp_string_type, "nine", 4);
    STAGE_EXPECT("dead(2,order7,/user/a) dead(2,nine,/user/keeper) of(haggling)");
    trp_system_tell(system, dead, &trp_string_type, NULL, 0); /* one that is empty is one, too */
    UNIT_WAIT(stage_has("of(haggling) dead(2,,)"), 10000);
    stage_close(system);
}

/* ES-03: queued, or put aside, when the actor ended */
static void
what_was_left_behind_is_in_the_event(void)
{
    trp_ref k, a;
    trp_system *system = open_with_keeper(&k);

    a = stage_spawn(system, &victim, "a");
    stage_tell(system, a, "later");
    UNIT_WAIT(stage_has("put aside"), 10000);
    stage_tell(system, a, "hold");
    UNIT_WAIT(stage_has("held"), 10000);
    stage_tell(system, a, "queued");
    trp_system_stop_actor(system, a);
    atomic_store(&let_go, true);
    UNIT_WAIT(stage_has("dead(3,queued,)") && stage_has("dead(12,later,)"), 10000);
    UNIT_EQUAL(stage_count("dead("), 2);
    stage_close(system);
}

/* ES-03: a subscriber may pass it on, in the name of who told it */
static void
a_lost_message_can_be_forwarded_to_another(void)
{
    trp_ref k, a, dead;
    trp_system *system = open_with_keeper(&k);

    dead = stage_spawn(system, &victim, "dead");
    a = stage_spawn(system, &victim, "a");
    UNIT_EQUAL(trp_system_graceful_stop(system, dead, 60000), TRP_OK);
    backup = stage_spawn(system, &backup_actor, "b");
    last_words_to = dead;
    stage_tell(system, a, "say");
    UNIT_WAIT(stage_has("backup(lost.order,/user/a)"), 10000);
    stage_close(system);
}

/* ES-03: at the limit of what is kept, and one past it */
static void
a_payload_above_the_limit_is_told_of_without_it(void)
{
    trp_ref k, dead;
    trp_system *system = open_with_keeper(&k);
    char *large = trpi_alloc(TRP_DEAD_LETTER_PAYLOAD_MAX + 1);

    UNIT_REQUIRE(large != NULL);
    memset(large, 'x', TRP_DEAD_LETTER_PAYLOAD_MAX + 1);
    dead = stage_spawn(system, &victim, "dead");
    UNIT_EQUAL(trp_system_graceful_stop(system, dead, 60000), TRP_OK);
    trp_system_tell(system, dead, &trp_string_type, large, TRP_DEAD_LETTER_PAYLOAD_MAX);
    UNIT_WAIT(stage_has("dead(2,x,)"), 10000);
    trp_system_tell(system, dead, &trp_string_type, large, TRP_DEAD_LETTER_PAYLOAD_MAX + 1);
    STAGE_EXPECT("dead(2,x,) dead-without(2,61441)");
    trpi_free(large);
    stage_close(system);
}

/* ES-03, LIFE-17, ES-04: a loss that is no news is an event of another type, with its message, too
 */
static void
a_suppressed_dead_letter_holds_its_message_and_is_not_logged(void)
{
    trp_ref k, a;
    trp_system *system = open_with_keeper(&k);

    a = stage_spawn(system, &victim, "a");
    last_words_to = stage_spawn(system, &victim, "b");
    {
        char answer[8];

        UNIT_EQUAL(stage_ask(system, a, "watch", answer, sizeof answer), TRP_OK);
    }
    stage_tell(system, a, "hold");
    UNIT_WAIT(stage_has("held"), 10000);
    UNIT_EQUAL(trp_system_graceful_stop(system, last_words_to, 60000), TRP_OK);
    trp_system_stop_actor(system, a); /* before the Terminated that waits */
    atomic_store(&let_go, true);
    UNIT_WAIT(stage_has("quiet(terminated /user/b)"), 10000);
    UNIT_EQUAL(trp_system_graceful_stop(system, a, 60000), TRP_OK);
    trp_system_tell(system, a, &trp_poison_pill_type, NULL, 0);
    UNIT_WAIT(stage_has("quiet(troupe.poison-pill)"), 10000);
    UNIT_FALSE(stage_has("dead"));
    UNIT_EQUAL(trp_log_flush(system, 60000), TRP_OK);
    UNIT_FALSE(stage_book_has(&stage_lines, "dead letter"));
    stage_close(system);
}

/* EB-04, ES-03: both kinds at once, by their parent */
static void
the_parent_of_both_kinds_gets_each_once(void)
{
    trp_ref k, dead;
    trp_system *system = open_with_keeper(&k);

    UNIT_EQUAL(trp_system_unsubscribe(system, k, NULL), TRP_OK);
    UNIT_EQUAL(trp_system_subscribe(system, k, &trp_all_dead_letters_type), TRP_OK);
    UNIT_EQUAL(trp_system_subscribe(system, k, &trp_dead_letter_type), TRP_OK);
    dead = stage_spawn(system, &victim, "dead");
    UNIT_EQUAL(trp_system_graceful_stop(system, dead, 60000), TRP_OK);
    trp_system_tell(system, dead, &trp_kill_type, NULL, 0);
    stage_tell(system, dead, "x");
    STAGE_EXPECT("quiet(troupe.kill) dead(2,x,)");
    stage_close(system);
}

UNIT_BEGIN("lost")
UNIT(what_is_told_to_the_dead_is_in_the_event_as_it_was_told)
UNIT(what_was_left_behind_is_in_the_event)
UNIT(a_lost_message_can_be_forwarded_to_another)
UNIT(a_payload_above_the_limit_is_told_of_without_it)
UNIT(a_suppressed_dead_letter_holds_its_message_and_is_not_logged)
UNIT(the_parent_of_both_kinds_gets_each_once)
UNIT_END
