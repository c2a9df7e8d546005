/* receive_filter_test.c - deactivated actors, and actors that refuse some messages. */
#include "tests/unit/actor/stage.h"

#include <troupe/mailbox.h>

static const trp_behaviour worker;
static trp_ref child;

static trp_err
worker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &trp_terminated_type)) {
        stage_note("terminated");
        return TRP_OK;
    }
    if (stage_said(msg, "fail")) {
        return TRP_EIO;
    }
    if (stage_said(msg, "watch child")) {
        UNIT_EQUAL(trp_watch(ctx, child), TRP_OK);
    } else if (stage_said(msg, "stash")) {
        UNIT_EQUAL(trp_stash(ctx, msg), TRP_OK);
    } else if (stage_said(msg, "stash too")) {
        UNIT_EQUAL(trp_stash(ctx, msg), TRP_OK);
    }
    stage_note("%.*s", (int)trp_msg_bytes(msg), (const char *)trp_msg_payload(msg));
    trp_reply_text(ctx, "ok");
    return TRP_OK;
}
static const trp_behaviour worker = {
    .size = sizeof(trp_behaviour), .name = "worker", .version = 1, .receive = worker_receive
};

static char answer[16];

/* A4J-16, A4J-24, TRP-06 */
static void
who_is_deactivated_gets_the_systems_messages_and_no_others(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &worker, "a");

    child = stage_spawn(system, &worker, "b");
    UNIT_EQUAL(stage_ask(system, a, "watch child", answer, sizeof answer), TRP_OK);
    UNIT_EQUAL(trp_system_deactivate(system, a), TRP_OK);
    /* an ordinary message is lost, and its asker is notified at once */
    UNIT_EQUAL(stage_ask(system, a, "lost", answer, sizeof answer), TRP_ENOENT);
    stage_tell(system, a, "lost, too");
    UNIT_WAIT(stage_dead(system, TRP_DEAD_INACTIVE) == 2, 5000);
    trp_system_stop_actor(system, child);
    UNIT_WAIT(stage_has("terminated"), 5000); /* the watch still works */
    UNIT_EQUAL(trp_system_activate(system, a), TRP_OK);
    UNIT_EQUAL(stage_ask(system, a, "heard", answer, sizeof answer), TRP_OK);
    STAGE_EXPECT("watch child terminated heard"); /* ignored, not put aside */
    UNIT_EQUAL(trp_system_deactivate(system, a), TRP_OK);
    trp_system_tell(system, a, &trp_poison_pill_type, NULL, 0);
    UNIT_EQUAL(trp_system_graceful_stop(system, a, 60000), TRP_OK);
    UNIT_EQUAL(stage_dead(system, TRP_DEAD_INACTIVE), 2);
    UNIT_EQUAL(trp_system_deactivate(system, (trp_ref)TRP_REF_NONE), TRP_EINVAL);
    UNIT_EQUAL(trp_system_deactivate(system, (trp_ref){ 77, 1, 1, 0 }), TRP_EUNSUPPORTED);
    stage_close(system);
}

static trp_directive
decide(trp_ctx *ctx, void *state, const trp_failure *failure)
{
    (void)ctx;
    (void)state;
    return failure->err == TRP_EIO ? TRP_DEACTIVATE : TRP_ACTIVATE;
}
static const trp_strategy strategy = { .size = sizeof(trp_strategy),
                                       .decider = decide,
                                       .retries_max = TRP_FOREVER };

static trp_err
boss_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    (void)msg;
    child = stage_child(ctx, &worker, "c");
    trp_reply_text(ctx, "ok");
    return TRP_OK;
}
static const trp_behaviour boss = { .size = sizeof(trp_behaviour),
                                    .name = "boss",
                                    .version = 1,
                                    .receive = boss_receive,
                                    .strategy = &strategy };

/* A4J-21, A4J-24: ACTIVATE and DEACTIVATE as a supervisor's directives; the others stay deliverable
 */
static void
a_supervisor_deactivates_who_fails(void)
{
    trp_system *system = stage_open();
    trp_ref top = stage_spawn(system, &boss, "boss");

    UNIT_EQUAL(stage_ask(system, top, "child", answer, sizeof answer), TRP_OK);
    stage_tell(system, child, "fail");
    /* after the failure: the actor resumes, but is deactivated */
    stage_tell(system, child, "lost");
    UNIT_WAIT(stage_dead(system, TRP_DEAD_INACTIVE) == 1, 5000);
    trp_system_tell(system, child, &trp_kill_type, NULL, 0); /* the decider says: activate */
    UNIT_WAIT(stage_ask(system, child, "heard", answer, sizeof answer) == TRP_OK, 5000);
    UNIT_TRUE(stage_has("heard"));
    UNIT_WAIT(stage_book_has(&stage_lines, "; deactivating]") &&
                  stage_book_has(&stage_lines, "; activating]"),
              5000);
    stage_close(system);
}

static int
wants(const trp_msg *msg)
{
    return !stage_said(msg, "junk");
}
static const trp_behaviour picky = { .size = sizeof(trp_behaviour),
                                     .name = "picky",
                                     .version = 1,
                                     .receive = worker_receive,
                                     .will_receive = wants };

/* UJ-06: a filter before the behaviour; a refused message is a dead letter with its reason. Also
 * after a restart, and beside the stash, whose bookkeeping it must not disturb. */
static void
what_is_not_wanted_is_refused(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &picky, "a");

    UNIT_EQUAL(stage_ask(system, a, "junk", answer, sizeof answer), TRP_ENOENT);
    UNIT_EQUAL(stage_dead(system, TRP_DEAD_REFUSED), 1);
    UNIT_EQUAL(stage_ask(system, a, "stash", answer, sizeof answer), TRP_OK);
    stage_tell(system, a, "junk");
    UNIT_EQUAL(stage_ask(system, a, "stash too", answer, sizeof answer), TRP_OK);
    stage_clear(&stage_events);
    stage_tell(system, a, "fail"); /* restarts, and unstashes: both are stashed again */
    stage_tell(system, a, "junk");
    UNIT_EQUAL(stage_ask(system, a, "last", answer, sizeof answer), TRP_OK);
    STAGE_EXPECT("stash stash too last");
    UNIT_EQUAL(stage_dead(system, TRP_DEAD_REFUSED), 3);
    stage_close(system);
}

/* UJ-06: a refused message takes no place in a bounded mailbox, even while its actor is busy. */
static void
what_is_not_wanted_takes_no_room(void)
{
    trp_system *system = stage_open();
    trp_mailbox_options mailbox = TRP_MAILBOX_OPTIONS_INIT;
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref a;

    mailbox.kind = TRP_MAILBOX_BOUNDED;
    mailbox.capacity = 2;
    mailbox.push_timeout_ms = TRP_OFF;
    UNIT_EQUAL(trp_mailbox_register(system, "two", &mailbox), TRP_OK);
    options.mailbox = "two";
    options.name = "a";
    UNIT_EQUAL(trp_system_spawn(system, &picky, &options, &a), TRP_OK);
    UNIT_EQUAL(trp_system_deactivate(system, a), TRP_OK); /* so that what comes in is counted */
    for (int i = 0; i < 10; i++) {
        stage_tell(system, a, "junk");
    }
    UNIT_EQUAL(stage_dead(system, TRP_DEAD_REFUSED), 10); /* by the teller, at once */
    UNIT_EQUAL(stage_dead(system, TRP_DEAD_MAILBOX_FULL), 0);
    UNIT_EQUAL(trp_system_activate(system, a), TRP_OK);
    UNIT_WAIT(stage_ask(system, a, "heard", answer, sizeof answer) == TRP_OK, 5000);
    stage_close(system);
}

UNIT_BEGIN("receive_filter")
UNIT(who_is_deactivated_gets_the_systems_messages_and_no_others)
UNIT(a_supervisor_deactivates_who_fails)
UNIT(what_is_not_wanted_is_refused)
UNIT(what_is_not_wanted_takes_no_room)
UNIT_END
