/* supervise_test.c - deciders, both strategies, budgets, escalation. */
#include <troupe/testkit.h>

#include "tests/unit/actor/stage.h"

static _Atomic int directive; /* what the decider answers; 0: nonsense, -1: it fails */

static trp_directive
decide(trp_ctx *ctx, void *state, const trp_failure *failure)
{
    char path[128];
    int *count = state;

    ++*count; /* SUP-4: the supervisor's own state */
    stage_note("decide(%s,%d,%d)",
               stage_name(trp_ctx_system(ctx), failure->actor, path, sizeof path),
               (int)failure->code, *count);
    if (atomic_load(&directive) == -1) {
        trp_fail(ctx, 0, "undecided");
    }
    return (trp_directive)atomic_load(&directive);
}

static trp_err
kid_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (stage_said(msg, "fail")) {
        trp_fail(ctx, 7, "oops");
    } else if (stage_said(msg, "stop")) {
        trp_stop(ctx, trp_self(ctx));
    } else if (stage_said(msg, "ping")) {
        trp_reply_text(ctx, "pong");
    }
    return TRP_OK;
}
static const trp_behaviour kid_behaviour = { .size = sizeof(trp_behaviour),
                                             .name = "kid",
                                             .version = 1,
                                             .receive = kid_receive,
                                             .pre_start = stage_started,
                                             .post_stop = stage_stopped };

static trp_err
boss_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state;
    (void)args;
    stage_child(ctx, &kid_behaviour, "k1");
    stage_child(ctx, &kid_behaviour, "k2");
    stage_child(ctx, &kid_behaviour, "k3");
    return TRP_OK;
}
static void
boss_post_stop(trp_ctx *ctx, void *state)
{
    (void)ctx;
    (void)state;
    stage_note("boss-");
}
#define BOSS(name_, strategy_)                                                                     \
    static const trp_behaviour name_ = {                                                           \
        sizeof(trp_behaviour), "boss", 1,    sizeof(int), kid_receive, boss_pre_start,             \
        boss_post_stop,        NULL,   NULL, strategy_,   NULL                                     \
    };

static const trp_strategy one = { sizeof(trp_strategy), 0, 0, decide, 0, 0 };
static const trp_strategy all = { sizeof(trp_strategy), 1, 0, decide, 0, 0 };
static const trp_strategy quiet = { sizeof(trp_strategy), 0, 1, decide, 0, 0 };
static const trp_strategy twice = { sizeof(trp_strategy), 0, 0, NULL, 2, 0 };
static const trp_strategy never = { sizeof(trp_strategy), 0, 0, NULL, TRP_OFF, 0 };
static const trp_strategy once_in_window = { sizeof(trp_strategy), 0, 0, NULL, 1, 200 };
static const trp_strategy all_twice = { sizeof(trp_strategy), 1, 0, NULL, 2, 0 };
static const trp_strategy stops = { sizeof(trp_strategy), 0, 0, trp_stopping_decider, 0, 0 };
BOSS(boss_one, &one)
BOSS(boss_all, &all)
BOSS(boss_quiet, &quiet)
BOSS(boss_twice, &twice)
BOSS(boss_never, &never)
BOSS(boss_window, &once_in_window)
BOSS(boss_all_twice, &all_twice)
BOSS(boss_stops, &stops)

static char answer[64];

/* The three children of a boss that has started; the book is empty then. */
static void
find_kids(trp_system *system, trp_ref kids[3])
{
    static const char *const paths[] = { "/user/boss/k1", "/user/boss/k2", "/user/boss/k3" };

    UNIT_WAIT(stage_has("k1+") && stage_has("k2+") && stage_has("k3+"), 60000);
    for (int i = 0; i < 3; i++) {
        UNIT_EQUAL(trp_system_resolve(system, paths[i], 60000, &kids[i]), TRP_OK);
    }
    stage_clear(&stage_events);
}

static trp_system *
open_with(const trp_behaviour *boss, trp_ref kids[3])
{
    trp_system *system = stage_open();

    stage_spawn(system, boss, "boss");
    find_kids(system, kids);
    return system;
}

/* A4J-21 SUP-3, SUP-4, SUP-6, SUP-1, A4J-22, A4J-26, A4J-27 */
static void
one_for_one_concerns_the_failed_child_alone(void)
{
    trp_ref kids[3];
    trp_system *system = open_with(&boss_one, kids);

    atomic_store(&directive, TRP_RESTART);
    stage_tell(system, kids[1], "fail");
    STAGE_EXPECT("decide(k2,7,1) k2- k2+");
    atomic_store(&directive, TRP_RESUME);
    stage_tell(system, kids[1], "fail");
    UNIT_EQUAL(stage_ask(system, kids[1], "ping", answer, sizeof answer), TRP_OK);
    STAGE_EXPECT("decide(k2,7,1) k2- k2+ decide(k2,7,2)");
    atomic_store(&directive, TRP_STOP);
    stage_tell(system, kids[1], "fail");
    STAGE_EXPECT("decide(k2,7,1) k2- k2+ decide(k2,7,2) decide(k2,7,3) k2-");
    UNIT_EQUAL(stage_ask(system, kids[1], "ping", answer, sizeof answer), TRP_ENOENT);
    UNIT_EQUAL(stage_ask(system, kids[0], "ping", answer, sizeof answer), TRP_OK);
    stage_close(system);
}

/* LIFE-13: a kill is a failure like others: the supervisor decides */
static void
a_supervisor_decides_about_a_killed_child(void)
{
    trp_ref kids[3];
    trp_system *system = open_with(&boss_one, kids);

    atomic_store(&directive, TRP_RESUME);
    trp_system_tell(system, kids[0], &trp_kill_type, NULL, 0);
    UNIT_EQUAL(stage_ask(system, kids[0], "ping", answer, sizeof answer), TRP_OK);
    STAGE_EXPECT("decide(k1,0,1)");
    atomic_store(&directive, TRP_RESTART);
    trp_system_tell(system, kids[0], &trp_kill_type, NULL, 0);
    STAGE_EXPECT("decide(k1,0,1) decide(k1,0,2) k1- k1+");
    atomic_store(&directive, TRP_STOP);
    trp_system_tell(system, kids[0], &trp_kill_type, NULL, 0);
    STAGE_EXPECT("decide(k1,0,1) decide(k1,0,2) k1- k1+ decide(k1,0,3) k1-");
    stage_close(system);
}

/* SUP-6, LIFE-5, A4J-27 */
static void
all_for_one_restarts_or_stops_all_children(void)
{
    trp_ref kids[3];
    trp_system *system = open_with(&boss_all, kids);

    atomic_store(&directive, TRP_RESTART);
    stage_tell(system, kids[0], "fail");
    UNIT_WAIT(stage_has("k1- k1+") || stage_count("+") == 3, 5000);
    UNIT_WAIT(stage_count("+") == 3 && stage_count("-") == 3, 5000);
    for (int i = 0; i < 3; i++) {
        UNIT_EQUAL(stage_ask(system, kids[i], "ping", answer, sizeof answer), TRP_OK);
    }
    atomic_store(&directive, TRP_STOP);
    stage_tell(system, kids[2], "fail");
    UNIT_WAIT(stage_count("-") == 6, 5000);
    UNIT_EQUAL(stage_count("+"), 3);
    UNIT_EQUAL(stage_count("decide"), 2);
    stage_close(system);
}

/* SUP-6: a normal stop of a child does not stop its siblings */
static void
all_for_one_ignores_a_normal_stop(void)
{
    trp_ref kids[3];
    trp_system *system = open_with(&boss_all, kids);

    stage_tell(system, kids[0], "stop");
    UNIT_WAIT(stage_has("k1-"), 5000);
    UNIT_EQUAL(stage_ask(system, kids[1], "ping", answer, sizeof answer), TRP_OK);
    UNIT_EQUAL(stage_ask(system, kids[2], "ping", answer, sizeof answer), TRP_OK);
    STAGE_EXPECT("k1-");
    stage_close(system);
}

/* SUP-7 */
static void
a_child_that_exceeds_its_restarts_is_stopped(void)
{
    trp_ref kids[3];
    trp_system *system = open_with(&boss_twice, kids);

    for (int i = 0; i < 3; i++) {
        stage_tell(system, kids[0], "fail");
    }
    STAGE_EXPECT("k1- k1+ k1- k1+ k1-");
    stage_tell(system, kids[1], "fail"); /* counted per child */
    UNIT_WAIT(stage_has("k2- k2+"), 5000);
    stage_close(system);
}

/* SUP-7 */
static void
no_retries_means_stop_at_the_first_failure(void)
{
    trp_ref kids[3];
    trp_system *system = open_with(&boss_never, kids);

    stage_tell(system, kids[0], "fail");
    STAGE_EXPECT("k1-");
    stage_close(system);
}

/* SUP-7; the window is 200 ms of a manual clock */
static void
a_window_that_has_passed_forgives(void)
{
    trp_testkit_options options = TRP_TESTKIT_OPTIONS_INIT;
    trp_testkit *kit = NULL;
    trp_system *system;
    trp_ref kids[3];

    options.clock = TRP_CLOCK_MANUAL;
    stage_clear(&stage_events);
    UNIT_REQUIRE(trp_testkit_open(&options, &kit) == TRP_OK);
    system = trp_testkit_system(kit);
    stage_spawn(system, &boss_window, "boss");
    UNIT_EQUAL(trp_testkit_advance(kit, 0), TRP_OK);
    find_kids(system, kids);
    stage_tell(system, kids[0], "fail");
    UNIT_EQUAL(trp_testkit_advance(kit, 201), TRP_OK);
    UNIT_TRUE(stage_is("k1- k1+"));
    stage_tell(system, kids[0], "fail");
    UNIT_EQUAL(trp_testkit_advance(kit, 199), TRP_OK);
    UNIT_TRUE(stage_is("k1- k1+ k1- k1+"));
    stage_tell(system, kids[0], "fail"); /* within the window that the last one opened */
    UNIT_EQUAL(trp_testkit_advance(kit, 0), TRP_OK);
    UNIT_TRUE(stage_is("k1- k1+ k1- k1+ k1-"));
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
}

/* SUP-6, SUP-7: one child without budget stops them all */
static void
all_for_one_counts_for_each_child(void)
{
    trp_ref kids[3];
    trp_system *system = open_with(&boss_all_twice, kids);

    for (size_t i = 0; i < 3; i++) {
        stage_tell(system, kids[0], "fail");
        UNIT_WAIT(stage_count("-") == 3 * (i + 1), 5000);
        UNIT_WAIT(stage_count("+") == (i < 2 ? 3 * (i + 1) : 6), 5000);
    }
    UNIT_EQUAL(stage_ask(system, kids[1], "ping", answer, sizeof answer), TRP_ENOENT);
    stage_close(system);
}

/* A4J-24 A4J-21 SUP-3, SUP-12: escalation restarts the supervisor, whose children end */
static void
escalation_makes_the_supervisor_fail_itself(void)
{
    trp_ref kids[3];
    trp_system *system = open_with(&boss_one, kids);

    atomic_store(&directive, TRP_ESCALATE);
    stage_tell(system, kids[0], "fail");
    UNIT_WAIT(stage_count("+") == 3, 5000); /* the new instance's children */
    UNIT_TRUE(stage_has("boss-"));
    UNIT_EQUAL(stage_count("k1-"), 1);
    UNIT_EQUAL(stage_count("k2-"), 1);
    UNIT_EQUAL(stage_count("k3-"), 1);
    UNIT_FALSE(stage_book_has(&stage_lines,
                              "/user/boss/k1: failed")); /* SUP-11: logged where it is decided */
    UNIT_WAIT(stage_book_has(&stage_lines, "/user/boss: failed: oops"), 5000);
    stage_close(system);
}

/* SUP-8 */
static void
a_decider_that_fails_or_answers_nonsense_escalates(void)
{
    trp_ref kids[3];
    trp_system *system = open_with(&boss_one, kids);

    atomic_store(&directive, 99);
    stage_tell(system, kids[0], "fail");
    UNIT_WAIT(stage_count("+") == 3, 5000);
    UNIT_WAIT(trp_system_resolve(system, "/user/boss/k1", 60000, &kids[0]) == TRP_OK, 5000);
    atomic_store(&directive, -1);
    stage_tell(system, kids[0], "fail");
    UNIT_WAIT(stage_count("+") == 6, 5000);
    UNIT_WAIT(stage_book_has(&stage_lines, "/user/boss: failed: undecided"), 5000);
    stage_close(system);
}

/* SUP-9 */
static trp_directive
decide_some(trp_ctx *ctx, void *state, const trp_failure *failure)
{
    return failure->code == 7 ? TRP_RESUME : trp_default_decider(ctx, state, failure);
}
static const trp_strategy some = { sizeof(trp_strategy), 0, 0, decide_some, 0, 0 };
BOSS(boss_some, &some)

/* SUP-9, SUP-4 */
static void
a_decider_can_leave_the_rest_to_the_default_one(void)
{
    trp_ref kids[3];
    trp_system *system = open_with(&boss_some, kids);

    stage_tell(system, kids[0], "fail"); /* its own: resumed */
    UNIT_EQUAL(stage_ask(system, kids[0], "ping", answer, sizeof answer), TRP_OK);
    STAGE_EXPECT("");
    trp_system_tell(system, kids[0], &trp_kill_type, NULL, 0); /* the default's: stopped */
    STAGE_EXPECT("k1-");
    stage_close(system);
}

/* SUP-10 */
static void
the_stopping_strategy_stops(void)
{
    trp_ref kids[3];
    trp_system *system = open_with(&boss_stops, kids);

    stage_tell(system, kids[0], "fail");
    STAGE_EXPECT("k1-");
    stage_close(system);
}

/* SUP-11 */
static void
a_quiet_strategy_logs_nothing(void)
{
    trp_ref kids[3];
    trp_system *system = open_with(&boss_quiet, kids);

    atomic_store(&directive, TRP_RESTART);
    stage_tell(system, kids[0], "fail");
    STAGE_EXPECT("decide(k1,7,1) k1- k1+");
    UNIT_FALSE(stage_book_has(&stage_lines, "failed:"));
    stage_close(system);
}

/* SYS-6, SUP-10, SUP-13 */
static void
the_user_guardian_can_use_the_stopping_strategy(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *system;
    trp_ref a;

    options.guardian_stops = 1;
    system = stage_open_with(options);
    a = stage_spawn(system, &kid_behaviour, "a");
    stage_tell(system, a, "fail");
    STAGE_EXPECT("a+ a-");
    stage_close(system);
}

UNIT_BEGIN("supervise")
UNIT(one_for_one_concerns_the_failed_child_alone)
UNIT(a_supervisor_decides_about_a_killed_child)
UNIT(all_for_one_restarts_or_stops_all_children)
UNIT(all_for_one_ignores_a_normal_stop)
UNIT(a_child_that_exceeds_its_restarts_is_stopped)
UNIT(no_retries_means_stop_at_the_first_failure)
UNIT(a_window_that_has_passed_forgives)
UNIT(all_for_one_counts_for_each_child)
UNIT(escalation_makes_the_supervisor_fail_itself)
UNIT(a_decider_that_fails_or_answers_nonsense_escalates)
UNIT(a_decider_can_leave_the_rest_to_the_default_one)
UNIT(the_stopping_strategy_stops)
UNIT(a_quiet_strategy_logs_nothing)
UNIT(the_user_guardian_can_use_the_stopping_strategy)
UNIT_END
