/* stash_test.c - the behaviour stack and messages put aside. */
#include "tests/unit/actor/stage.h"

#include <troupe/testkit.h>

static trp_err closed_receive(trp_ctx *ctx, void *state, const trp_msg *msg);
static trp_err angry_receive(trp_ctx *ctx, void *state, const trp_msg *msg);

static void
note(const char *mood, const trp_msg *msg)
{
    stage_note("%s:%.*s", mood, (int)trp_msg_bytes(msg), (const char *)trp_msg_payload(msg));
}

static trp_err
open_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (stage_said(msg, "close")) {
        UNIT_EQUAL(trp_become(ctx, closed_receive, 0), TRP_OK);
    } else if (stage_said(msg, "push")) {
        UNIT_EQUAL(trp_become(ctx, angry_receive, 1), TRP_OK);
    } else if (stage_said(msg, "pop")) {
        trp_unbecome(ctx);
    } else if (stage_said(msg, "ping")) {
        trp_reply_text(ctx, "pong");
    } else if (stage_said(msg, "twice")) {
        UNIT_EQUAL(trp_stash(ctx, msg), TRP_OK);
        stage_note("%s", trp_err_name(trp_stash(ctx, msg)));
    } else if (stage_said(msg, "again") && !stage_has("aside")) {
        UNIT_EQUAL(trp_stash(ctx, msg), TRP_OK);
        stage_note("aside");
        trp_unstash_all(ctx);
    } else if (stage_said(msg, "end")) {
        trp_stop(ctx, trp_self(ctx));
    } else if (stage_said(msg, "null")) {
        UNIT_EQUAL(trp_become(ctx, NULL, 0), TRP_EINVAL);
        UNIT_EQUAL(trp_stash(ctx, NULL), TRP_EINVAL);
    } else {
        note("open", msg);
    }
    return TRP_OK;
}

/* Puts everything aside until "open" comes. */
static trp_err
closed_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (stage_said(msg, "open") || stage_said(msg, "open late")) {
        UNIT_EQUAL(trp_become(ctx, open_receive, 0), TRP_OK);
        if (stage_said(msg, "open late")) { /* these wait in the mailbox already */
            trp_tell_text(ctx, trp_self(ctx), "x");
            trp_tell_text(ctx, trp_self(ctx), "y");
        }
        trp_unstash_all(ctx);
    } else if (stage_said(msg, "fail")) {
        return TRP_EIO;
    } else if (stage_said(msg, "stop")) {
        trp_stop(ctx, trp_self(ctx));
    } else {
        trp_err err = trp_stash(ctx, msg);

        if (err != TRP_OK) {
            stage_note("%s", trp_err_name(err));
        }
    }
    return TRP_OK;
}

static trp_err
angry_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (stage_said(msg, "push")) {
        UNIT_EQUAL(trp_become(ctx, angry_receive, 1), TRP_OK);
    } else if (stage_said(msg, "pop")) {
        trp_unbecome(ctx);
    } else {
        note("angry", msg);
    }
    return TRP_OK;
}

static const trp_behaviour door = { .size = sizeof(trp_behaviour),
                                    .name = "door",
                                    .version = 1,
                                    .state_bytes = 8,
                                    .receive = open_receive };

static trp_ref
tell_all(trp_system *system, trp_ref to, const char *const *texts)
{
    for (; *texts != NULL; texts++) {
        stage_tell(system, to, *texts);
    }
    return to;
}
#define TELL(to, ...) tell_all(system, (to), (const char *const[]){ __VA_ARGS__, NULL })

/* BEH-1, BEH-2, BEH-3 */
static void
behaviours_are_replaced_pushed_and_popped_down_to_the_original(void)
{
    trp_system *system = stage_open();
    trp_ref d = stage_spawn(system, &door, "d");

    TELL(d, "null", "a", "push", "b", "push", "c", "pop", "d", "pop", "e", "pop", "pop", "f");
    STAGE_EXPECT("open:a angry:b angry:c angry:d open:e open:f");
    stage_close(system);
}

/* BEH-6, BEH-7, BEH-12 */
static void
unstashed_messages_come_before_the_mailbox_in_order(void)
{
    trp_system *system = stage_open();
    trp_ref d = stage_spawn(system, &door, "d");

    TELL(d, "close", "1", "2", "3", "open", "4", "5");
    STAGE_EXPECT("open:1 open:2 open:3 open:4 open:5");
    stage_clear(&stage_events);
    TELL(d = stage_spawn(system, &door, "late"), "close", "1", "2", "3", "open late");
    STAGE_EXPECT("open:1 open:2 open:3 open:x open:y");
    stage_close(system);
}

/* BEH-12: a stashed message keeps its sender */
static void
a_stashed_message_keeps_its_sender(void)
{
    trp_system *system = stage_open();
    trp_ref d = stage_spawn(system, &door, "d");
    trp_msg *reply = NULL;

    TELL(d, "close");
    stage_tell(system, d, "x");
    UNIT_EQUAL(trp_system_ask(system, d, &trp_string_type, "ping", 4, 20, &reply), TRP_ETIMEDOUT);
    TELL(d, "open");
    STAGE_EXPECT("open:x");
    {
        trp_system_stats stats = { .size = sizeof stats };

        /* the reply went to the promise of the ask, which has ended */
        UNIT_WAIT((trp_system_stats_get(system, &stats),
                   stats.dead_letters[TRP_DEAD_STALE] + stats.dead_letters[TRP_DEAD_STOPPED] == 1),
                  5000);
    }
    stage_close(system);
}

/* BEH-6 */
static void
stashing_the_same_message_twice_is_refused(void)
{
    trp_system *system = stage_open();
    trp_ref d = stage_spawn(system, &door, "d");

    TELL(d, "twice");
    STAGE_EXPECT("TRP_EEXIST");
    stage_close(system);
}

/* BEH-6, BEH-9: at the limit and one past it */
static void
a_full_stash_refuses(void)
{
    trp_system *system = stage_open();
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref d;

    options.stash_msgs_max = 2;
    UNIT_EQUAL(trp_system_spawn(system, &door, &options, &d), TRP_OK);
    TELL(d, "close", "1", "2");
    TELL(d, "3", "open");
    STAGE_EXPECT("TRP_ELIMIT open:1 open:2");
    stage_close(system);
}

/* BEH-10, BEH-4 */
static void
stashed_messages_outlive_a_restart(void)
{
    trp_system *system = stage_open();
    trp_ref d = stage_spawn(system, &door, "d");

    TELL(d, "close", "1", "2", "fail", "3");
    STAGE_EXPECT("open:1 open:2 open:3");
    stage_close(system);
}

/* LIFE-9: messages in the stash at the end are dead letters */
static void
what_is_stashed_at_the_end_is_dead_letters(void)
{
    trp_system *system = stage_open();
    trp_ref d = stage_spawn(system, &door, "d");
    trp_system_stats stats = { .size = sizeof stats };
    static char large[200000]; /* a block of its own, which the leak sanitizer would miss */

    memset(large, 'x', sizeof large - 1);
    TELL(d, "close", "1", "2");
    stage_tell(system, d, large);
    TELL(d, "stop");
    UNIT_WAIT((trp_system_stats_get(system, &stats), stats.dead_letters[TRP_DEAD_STASH] == 3),
              5000);
    stage_close(system);
}

/* BEH-7: also while earlier unstashed messages still wait; none is lost */
static void
a_message_that_is_unstashed_twice_comes_before_those_behind_it(void)
{
    trp_system *system = stage_open();
    trp_ref d = stage_spawn(system, &door, "d");

    TELL(d, "close", "a", "again", "b", "c", "open", "d");
    STAGE_EXPECT("open:a aside open:again open:b open:c open:d");
    stage_close(system);
}

/* BEH-11 */
static void
many_stashed_messages_are_cheap(void)
{
    trp_system *system = stage_open();
    trp_ref d = stage_spawn(system, &door, "d");
    uint64_t start_us = unit_cpu_us();
    char answer[16];

    TELL(d, "close");
    for (int i = 0; i < 100000; i++) {
        stage_tell(system, d, "pop");
    }
    TELL(d, "open");
    UNIT_EQUAL(stage_ask(system, d, "ping", answer, sizeof answer), TRP_OK);
    UNIT_TRUE(unit_cpu_us() - start_us < 5000000ull * UNIT_STRETCH);
    stage_close(system);
}

/* A turn may end with an unstashed message: its system messages to its own actor are not handled by
 * the next actor on the thread. */
static void
an_unstashed_message_may_stop_its_actor_at_the_end_of_a_turn(void)
{
    trp_system_options system_options = TRP_SYSTEM_OPTIONS_INIT;
    trp_testkit_options options = TRP_TESTKIT_OPTIONS_INIT;
    trp_testkit *kit = NULL;
    trp_system *system;
    trp_ref a, b;

    system_options.throughput = 1;
    options.system_options = &system_options;
    options.clock = TRP_CLOCK_MANUAL; /* one thread: a and b take turns */
    UNIT_REQUIRE(trp_testkit_open(&options, &kit) == TRP_OK);
    system = trp_testkit_system(kit);
    a = stage_spawn(system, &door, "a");
    b = stage_spawn(system, &door, "b");
    UNIT_EQUAL(trp_testkit_advance(kit, 0), TRP_OK);
    TELL(a, "close");
    TELL(a, "end");
    TELL(a, "open");
    for (int i = 0; i < 20; i++) {
        TELL(b, "pop");
    }
    UNIT_EQUAL(trp_testkit_advance(kit, 0), TRP_OK);
    UNIT_TRUE(trp_testkit_state(kit, a) == NULL);
    UNIT_TRUE(trp_testkit_state(kit, b) != NULL);
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
}

UNIT_BEGIN("stash")
UNIT(an_unstashed_message_may_stop_its_actor_at_the_end_of_a_turn)
UNIT(behaviours_are_replaced_pushed_and_popped_down_to_the_original)
UNIT(unstashed_messages_come_before_the_mailbox_in_order)
UNIT(a_stashed_message_keeps_its_sender)
UNIT(stashing_the_same_message_twice_is_refused)
UNIT(a_full_stash_refuses)
UNIT(stashed_messages_outlive_a_restart)
UNIT(what_is_stashed_at_the_end_is_dead_letters)
UNIT(a_message_that_is_unstashed_twice_comes_before_those_behind_it)
UNIT(many_stashed_messages_are_cheap)
UNIT_END
