/* restart_test.c - restarts: the order of the steps, what is kept and what is new. */
#include "tests/unit/actor/stage.h"

typedef struct node_state {
    char name[32];
    int count;
} node_state;

static _Atomic bool keep_children; /* pre_restart and post_restart of LIFE-7 */

static void
name_of(trp_ctx *ctx, node_state *s)
{
    char path[128];

    snprintf(s->name, sizeof s->name, "%.31s",
             stage_name(trp_ctx_system(ctx), trp_self(ctx), path, sizeof path));
}

static trp_err
node_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)args;
    name_of(ctx, state);
    stage_note("%s+", ((node_state *)state)->name);
    return TRP_OK;
}

static void
node_post_stop(trp_ctx *ctx, void *state)
{
    (void)ctx;
    stage_note("%s-", ((node_state *)state)->name);
}

static trp_err
node_pre_restart(trp_ctx *ctx, void *state, const trp_failure *why, const trp_msg *msg)
{
    node_state *s = state;
    char text[64] = "none";

    if (msg != NULL) {
        snprintf(text, sizeof text, "%.*s,%s", (int)trp_msg_bytes(msg),
                 (const char *)trp_msg_payload(msg),
                 trp_ref_is_none(trp_sender(ctx)) ? "nobody" : "sender");
    }
    stage_note("%s!pre(%s:%s)", s->name, why->reason, text);
    if (!atomic_load(&keep_children)) {
        for (trp_ref c = trp_child_next(ctx, (trp_ref)TRP_REF_NONE); !trp_ref_is_none(c);
             c = trp_child_next(ctx, c)) {
            trp_unwatch(ctx, c);
            trp_stop(ctx, c);
        }
    }
    node_post_stop(ctx, state);
    return TRP_OK;
}

static trp_err
node_post_restart(trp_ctx *ctx, void *state, const trp_failure *why, const trp_msg *args)
{
    (void)args;
    name_of(ctx, state);
    stage_note("%s!post(%s)", ((node_state *)state)->name, why->reason);
    return TRP_OK;
}

static const trp_behaviour node_behaviour;

static trp_err
node_receive_other(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)msg;
    stage_note("%s:other", ((node_state *)state)->name);
    if (stage_said(msg, "fail")) {
        return TRP_EIO;
    }
    return TRP_OK;
}

static trp_err
node_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    node_state *s = state;

    if (stage_said(msg, "kid") || stage_said(msg, "kid2")) {
        stage_child(ctx, &node_behaviour, stage_said(msg, "kid") ? "kid" : "kid2");
        trp_reply_text(ctx, "ok");
    } else if (stage_said(msg, "fail")) {
        trp_fail(ctx, 1, "oops");
    } else if (stage_said(msg, "count")) {
        char text[16];

        snprintf(text, sizeof text, "%d", ++s->count);
        trp_reply_text(ctx, text);
    } else if (stage_said(msg, "become")) {
        UNIT_EQUAL(trp_become(ctx, node_receive_other, 0), TRP_OK);
        trp_reply_text(ctx, "ok");
    } else if (stage_said(msg, "tell self then fail")) {
        trp_tell_text(ctx, trp_self(ctx), "noted");
        trp_fail(ctx, 1, "oops");
    } else if (stage_said(msg, "noted")) {
        stage_note("%s:noted", s->name);
    } else if (stage_said(msg, "children")) {
        char text[16];

        snprintf(text, sizeof text, "%u", trp_children_count(ctx));
        trp_reply_text(ctx, text);
    }
    return TRP_OK;
}

static const trp_behaviour node_behaviour = { .size = sizeof(trp_behaviour),
                                              .name = "node",
                                              .version = 1,
                                              .state_bytes = sizeof(node_state),
                                              .receive = node_receive,
                                              .pre_start = node_pre_start,
                                              .post_stop = node_post_stop,
                                              .pre_restart = node_pre_restart,
                                              .post_restart = node_post_restart };
static const trp_behaviour plain_behaviour = { .size = sizeof(trp_behaviour),
                                               .name = "plain",
                                               .version = 1,
                                               .state_bytes = sizeof(node_state),
                                               .receive = node_receive,
                                               .pre_start = node_pre_start,
                                               .post_stop = node_post_stop };

static char answer[64];

/* A4J-19, LIFE-3, LIFE-4 (2, 4, 5, 7), LIFE-5 with the failing message */
static void
hooks_run_in_order_on_the_old_and_the_new_instance(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &node_behaviour, "a");

    stage_tell(system, a, "fail");
    stage_tell(system, a, "noted");
    STAGE_EXPECT("a+ a!pre(oops:fail,nobody) a- a!post(oops) a:noted");
    stage_close(system);
}

/* LIFE-3, SYS-16, A4J-03: ref, mailbox and its messages stay; the failing message is not handled
 * again; the state is new */
static void
a_restart_keeps_the_ref_and_the_mailbox_but_not_the_state(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &node_behaviour, "a");
    trp_ref again;

    UNIT_EQUAL(stage_ask(system, a, "count", answer, sizeof answer), TRP_OK);
    UNIT_EQUAL(stage_ask(system, a, "count", answer, sizeof answer), TRP_OK);
    UNIT_TEXT(answer, "2");
    stage_tell(system, a, "tell self then fail");
    UNIT_WAIT(stage_has("a:noted"), 5000);
    UNIT_EQUAL(stage_count("a!pre"), 1);
    UNIT_EQUAL(stage_ask(system, a, "count", answer, sizeof answer), TRP_OK);
    UNIT_TEXT(answer, "1");
    UNIT_EQUAL(trp_system_resolve(system, "/user/a", 60000, &again), TRP_OK);
    UNIT_TRUE(trp_ref_equal(a, again)); /* SYS-16, SYS-17 */
    stage_close(system);
}

/* LIFE-1: unwatch and stop all children, then post_stop; pre_start afterwards */
static void
the_default_hooks_stop_the_children_and_start_again(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &plain_behaviour, "a");

    UNIT_EQUAL(stage_ask(system, a, "kid", answer, sizeof answer), TRP_OK);
    UNIT_WAIT(stage_has("kid+"), 5000);
    stage_tell(system, a, "fail");
    UNIT_WAIT(stage_count("a+") == 2, 5000);
    /* told to stop first, but on a worker of its own it may be done later */
    UNIT_TRUE(stage_is("a+ kid+ a- kid- a+") || stage_is("a+ kid+ kid- a- a+"));
    UNIT_EQUAL(stage_ask(system, a, "children", answer, sizeof answer), TRP_OK);
    UNIT_TEXT(answer, "0");
    stage_close(system);
}

/* A4J-23, TRP-05, LIFE-4 (3): the new instance does not start before the children that were stopped
 * have ended; their names are free for it */
static void
the_new_instance_waits_for_the_children_that_were_stopped(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &node_behaviour, "a");
    trp_ref kid;

    UNIT_EQUAL(stage_ask(system, a, "kid", answer, sizeof answer), TRP_OK);
    UNIT_EQUAL(trp_system_resolve(system, "/user/a/kid", 60000, &kid), TRP_OK);
    UNIT_EQUAL(stage_ask(system, kid, "kid", answer, sizeof answer), TRP_OK);
    UNIT_EQUAL(stage_ask(system, kid, "kid2", answer, sizeof answer), TRP_OK);
    UNIT_WAIT(stage_has("kid2+"), 5000);
    stage_clear(&stage_events);
    stage_tell(system, a, "fail");
    stage_tell(system, a, "kid");
    UNIT_WAIT(stage_has("kid+"), 5000);
    UNIT_TRUE(stage_has("kid- a!post(oops) kid+"));
    UNIT_EQUAL(stage_count("kid-"), 2); /* kid and its child */
    UNIT_EQUAL(stage_count("kid2-"), 1);
    stage_close(system);
}

/* SUP-3, LIFE-4 (6), LIFE-5 (no message), LIFE-7: surviving children keep their refs and are
 * restarted, after their parent */
static void
surviving_children_are_restarted_and_keep_their_refs(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &node_behaviour, "a");
    trp_ref kid;

    atomic_store(&keep_children, true);
    UNIT_EQUAL(stage_ask(system, a, "kid", answer, sizeof answer), TRP_OK);
    UNIT_EQUAL(trp_system_resolve(system, "/user/a/kid", 60000, &kid), TRP_OK);
    UNIT_EQUAL(stage_ask(system, kid, "kid2", answer, sizeof answer), TRP_OK);
    UNIT_WAIT(stage_has("kid2+"), 5000);
    UNIT_EQUAL(stage_ask(system, kid, "count", answer, sizeof answer), TRP_OK);
    stage_clear(&stage_events);
    stage_tell(system, a, "fail");
    STAGE_EXPECT("a!pre(oops:fail,nobody) a- a!post(oops) kid!pre(oops:none) kid- kid!post(oops) "
                 "kid2!pre(oops:none) kid2- kid2!post(oops)");
    UNIT_EQUAL(stage_ask(system, kid, "count", answer, sizeof answer), TRP_OK);
    UNIT_TEXT(answer, "1");
    atomic_store(&keep_children, false);
    stage_close(system);
}

/* LIFE-6, BEH-4 */
static void
a_restart_resets_the_behaviour(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &node_behaviour, "a");

    UNIT_EQUAL(stage_ask(system, a, "become", answer, sizeof answer), TRP_OK);
    stage_tell(system, a, "x");
    stage_tell(system, a, "fail");
    stage_tell(system, a, "noted");
    UNIT_WAIT(stage_has("a:noted"), 5000);
    UNIT_EQUAL(stage_count("a:other"), 2);
    stage_close(system);
}

/* ---- suspension ------------------------------------------------------------------------------ */

static _Atomic bool decider_waits;
static trp_directive
slow_decider(trp_ctx *ctx, void *state, const trp_failure *failure)
{
    (void)ctx;
    (void)state;
    (void)failure;
    stage_note("deciding");
    while (atomic_load(&decider_waits)) {
        unit_pause();
    }
    return TRP_RESUME;
}
static const trp_strategy slow_strategy = { sizeof(trp_strategy), 0, 0, slow_decider, 0, 0 };
static const trp_behaviour top_behaviour = { .size = sizeof(trp_behaviour),
                                             .name = "top",
                                             .version = 1,
                                             .state_bytes = sizeof(node_state),
                                             .receive = node_receive,
                                             .pre_start = node_pre_start,
                                             .post_stop = node_post_stop,
                                             .strategy = &slow_strategy };

/* LIFE-4, MSG-8, SUP-16, A4J-33, SUP-2, SUP-3 (resume): the failed actor and all below it wait for
 * the decision, and go on with their state */
static void
a_failure_suspends_the_whole_subtree_until_the_supervisor_has_decided(void)
{
    trp_system *system = stage_open();
    trp_ref top = stage_spawn(system, &top_behaviour, "top");
    trp_ref kid, grandkid;

    UNIT_EQUAL(stage_ask(system, top, "kid", answer, sizeof answer), TRP_OK);
    UNIT_EQUAL(trp_system_resolve(system, "/user/top/kid", 60000, &kid), TRP_OK);
    UNIT_EQUAL(stage_ask(system, kid, "kid2", answer, sizeof answer), TRP_OK);
    UNIT_EQUAL(trp_system_resolve(system, "/user/top/kid/kid2", 60000, &grandkid), TRP_OK);
    UNIT_EQUAL(stage_ask(system, kid, "count", answer, sizeof answer), TRP_OK);
    atomic_store(&decider_waits, true);
    stage_clear(&stage_events);
    stage_tell(system, kid, "fail");
    UNIT_WAIT(stage_has("deciding"), 5000);
    stage_tell(system, kid, "noted");
    /* the grandchild's suspension is on its way: it is a system message, so it is seen before what
     * follows */
    stage_tell(system, grandkid, "noted");
    for (int i = 0; i < 20; i++) {
        unit_pause();
    }
    UNIT_FALSE(stage_has(":noted"));
    atomic_store(&decider_waits, false);
    UNIT_WAIT(stage_has("kid:noted") && stage_has("kid2:noted"), 5000);
    UNIT_EQUAL(stage_ask(system, kid, "count", answer, sizeof answer), TRP_OK);
    UNIT_TEXT(answer, "2");
    /* SUP-11: resume is a warning */
    UNIT_WAIT(stage_book_has(&stage_lines, "[2 /user/top/kid: failed: oops"), 5000);
    stage_close(system);
}

UNIT_BEGIN("restart")
UNIT(hooks_run_in_order_on_the_old_and_the_new_instance)
UNIT(a_restart_keeps_the_ref_and_the_mailbox_but_not_the_state)
UNIT(the_default_hooks_stop_the_children_and_start_again)
UNIT(the_new_instance_waits_for_the_children_that_were_stopped)
UNIT(surviving_children_are_restarted_and_keep_their_refs)
UNIT(a_restart_resets_the_behaviour)
UNIT(a_failure_suspends_the_whole_subtree_until_the_supervisor_has_decided)
UNIT_END
