/* strategy_test.c - strategies as values: at the top of the tree, with their own log function;
 * failures that no restart repairs; limits of all-for-one. */
#include "tests/unit/actor/stage.h"

#include "actor/kernel/system.h"
#include "base/world_virtual.h"

static _Atomic bool hold;
static trp_err
actor_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int *count = state;

    ++*count;
    if (stage_said(msg, "fail")) {
        trp_fail(ctx, 7, "oops");
    } else if (stage_said(msg, "broken")) {
        return TRP_EINTERNAL;
    } else if (stage_said(msg, "hold")) {
        stage_note("holds");
        while (atomic_load(&hold)) {
            unit_pause();
        }
    } else if (stage_said(msg, "count")) {
        stage_note("count=%d", *count);
    } else if (stage_said(msg, "ping")) {
        trp_reply_text(ctx, "pong");
    }
    return TRP_OK;
}
static const trp_behaviour actor = { .size = sizeof(trp_behaviour),
                                     .name = "actor",
                                     .state_bytes = sizeof(int),
                                     .receive = actor_receive,
                                     .pre_start = stage_started,
                                     .post_stop = stage_stopped };
static char answer[64];

/* ---- the top --------------------------------------------------------------------------------- */

static trp_directive
resume_sevens(trp_ctx *ctx, void *state, const trp_failure *failure)
{
    UNIT_TRUE(state == NULL);
    return failure->code == 7 ? TRP_RESUME : trp_default_decider(ctx, state, failure);
}

/* SYS-6, SUP-13, SUP-4: the strategy of /user is a value of the options, copied */
static void
the_user_guardian_can_use_a_strategy_of_ones_own(void)
{
    trp_strategy strategy = TRP_STRATEGY_INIT;
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *system;
    trp_ref a;

    strategy.decider = resume_sevens;
    options.guardian_strategy = &strategy;
    options.guardian_stops = 1; /* guardian_strategy overrides it */
    system = stage_open_with(options);
    memset(&strategy, 0, sizeof strategy);
    a = stage_spawn(system, &actor, "a");
    stage_tell(system, a, "fail");
    stage_tell(system, a, "count");
    STAGE_EXPECT("a+ count=2");
    stage_close(system);

    strategy.size = 3;
    UNIT_EQUAL(trp_system_new("stage", &options, &system), TRP_EINVAL);
}

/* SUP-7, SYS-6, SUP-13: so is its limit */
static void
a_top_level_actor_has_as_many_restarts_as_the_guardian_allows(void)
{
    trp_strategy strategy = TRP_STRATEGY_INIT;
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *system;
    trp_ref a;

    strategy.retries_max = 1;
    options.guardian_strategy = &strategy;
    system = stage_open_with(options);
    a = stage_spawn(system, &actor, "a");
    stage_tell(system, a, "fail");
    stage_tell(system, a, "fail");
    STAGE_EXPECT("a+ a- a+ a-");
    stage_close(system);
}

/* SUP-8, SYS-6, SYS-8 (conflict C1, decision 19): a failure that no restart repairs escalates to
 * the root, and ends the system in order */
static void
an_internal_error_escalates_to_the_root_and_ends_the_system(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &actor, "a");

    stage_spawn(system, &actor, "b");
    UNIT_WAIT(stage_has("a+") && stage_has("b+"), 5000);
    stage_tell(system, a, "broken");
    UNIT_EQUAL(trp_system_await(system, 60000), TRP_OK);
    UNIT_EQUAL(stage_count("-"), 2);
    UNIT_EQUAL(stage_count("+"), 2);
    UNIT_WAIT(stage_book_has(&stage_lines, "the root guardian failed: internal error"), 5000);
    trp_system_free(system);
}

/* SYS-7: top-level actors of /system are restarted without a limit, stopped when killed; a worse
 * failure ends the system, the user's tree first */
static void
the_system_guardian_restarts_stops_or_escalates(void)
{
    trp_system *system = stage_open();
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref s, k;

    options.name = "s";
    UNIT_EQUAL(trpi_system_spawn_internal(system, &actor, &options, &s), TRP_OK);
    options.name = "k";
    UNIT_EQUAL(trpi_system_spawn_internal(system, &actor, &options, &k), TRP_OK);
    stage_spawn(system, &actor, "u");
    UNIT_WAIT(stage_has("s+") && stage_has("k+") && stage_has("u+"), 5000);
    stage_clear(&stage_events);
    for (int i = 0; i < 20; i++) {
        stage_tell(system, s, "fail");
    }
    UNIT_WAIT(stage_count("s+") == 20, 5000);
    trp_system_tell(system, k, &trp_kill_type, NULL, 0);
    UNIT_WAIT(stage_has("k-"), 5000);
    UNIT_FALSE(stage_has("k+"));
    UNIT_EQUAL(stage_ask(system, s, "ping", answer, sizeof answer), TRP_OK);
    stage_tell(system, s, "broken");
    UNIT_EQUAL(trp_system_await(system, 60000), TRP_OK);
    UNIT_TRUE(stage_has("u-"));
    trp_system_free(system);
}

/* ---- the log --------------------------------------------------------------------------------- */

static _Atomic bool log_fails;
static void
own_log(trp_ctx *ctx, void *state, const trp_failure *failure, trp_directive directive)
{
    char path[128];

    if (atomic_load(&log_fails)) {
        trp_fail(ctx, 0, "the log failed");
    }
    stage_note("log(%s,%s,%d,%d)",
               stage_name(trp_ctx_system(ctx), failure->actor, path, sizeof path), failure->reason,
               (int)directive, *(int *)state);
}
static trp_directive
by_code(trp_ctx *ctx, void *state, const trp_failure *failure)
{
    (void)ctx;
    *(int *)state = failure->code;
    return TRP_RESTART;
}
static const trp_strategy logging = {
    .size = sizeof(trp_strategy), .decider = by_code, .retries_max = TRP_FOREVER, .log = own_log
};
static trp_err
boss_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state;
    (void)args;
    stage_child(ctx, &actor, "kid");
    stage_child(ctx, &actor, "sister");
    return TRP_OK;
}
#define BOSS(name_, strategy_)                                                                     \
    static const trp_behaviour name_ = { .size = sizeof(trp_behaviour),                            \
                                         .name = "boss",                                           \
                                         .state_bytes = sizeof(int),                               \
                                         .receive = actor_receive,                                 \
                                         .pre_start = boss_pre_start,                              \
                                         .strategy = strategy_ };
BOSS(logging_boss, &logging)

static trp_system *
open_with(const trp_behaviour *boss, trp_ref *ret_kid, trp_ref *ret_sister)
{
    trp_system *system = stage_open();

    stage_spawn(system, boss, "boss");
    UNIT_WAIT(stage_has("kid+") && stage_has("sister+"), 5000);
    UNIT_EQUAL(trp_system_resolve(system, "/user/boss/kid", 60000, ret_kid), TRP_OK);
    UNIT_EQUAL(trp_system_resolve(system, "/user/boss/sister", 60000, ret_sister), TRP_OK);
    stage_clear(&stage_events);
    return system;
}

/* SUP-11: a supervisor can log failures itself; if its log function fails, they are logged as
 * usual */
static void
a_strategy_can_log_failures_in_its_own_way(void)
{
    trp_ref kid, sister;
    trp_system *system = open_with(&logging_boss, &kid, &sister);

    atomic_store(&log_fails, false);
    stage_tell(system, kid, "fail");
    STAGE_EXPECT("log(kid,oops,2,7) kid- kid+");
    UNIT_FALSE(stage_book_has(&stage_lines, "failed:"));
    atomic_store(&log_fails, true);
    stage_tell(system, sister, "fail");
    STAGE_EXPECT("log(kid,oops,2,7) kid- kid+ sister- sister+");
    UNIT_WAIT(stage_book_has(&stage_lines, "/user/boss/sister: failed: oops"), 5000);
    stage_close(system);
}

/* ---- all for one ----------------------------------------------------------------------------- */

static const trp_strategy all = { .size = sizeof(trp_strategy),
                                  .all_for_one = 1,
                                  .retries_max = TRP_FOREVER };
BOSS(all_boss, &all)

/* SUP-14: the sibling is restarted, but its mailbox is as it was */
static void
all_for_one_does_not_empty_the_mailboxes_of_the_siblings(void)
{
    trp_ref kid, sister;
    trp_system *system = open_with(&all_boss, &kid, &sister);

    atomic_store(&hold, true);
    stage_tell(system, sister, "hold");
    UNIT_WAIT(stage_has("holds"), 5000);
    stage_tell(system, sister, "ping");
    stage_tell(system, sister, "count"); /* two wait in its mailbox */
    stage_tell(system, kid, "fail");
    UNIT_WAIT(stage_has("kid+"), 5000);
    UNIT_FALSE(stage_has("sister-"));
    atomic_store(&hold, false);
    UNIT_WAIT(stage_has("count=2"), 5000); /* a fresh state, and both messages */
    UNIT_TRUE(stage_has("sister- sister+ count=2"));
    stage_close(system);
}

static trp_err
manager_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    trp_forward(ctx, trp_child(ctx, "temporary"), msg);
    return TRP_OK;
}
static trp_err
manager_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state;
    (void)args;
    stage_child(ctx, &actor, "temporary");
    return TRP_OK;
}
static const trp_behaviour manager = { .size = sizeof(trp_behaviour),
                                       .name = "manager",
                                       .receive = manager_receive,
                                       .pre_start = manager_pre_start };
static trp_err
top_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state;
    (void)args;
    stage_child(ctx, &actor, "permanent");
    stage_child(ctx, &actor, "temporary");
    stage_child(ctx, &manager, "between");
    return TRP_OK;
}
static const trp_behaviour top = { .size = sizeof(trp_behaviour),
                                   .name = "top",
                                   .state_bytes = sizeof(int),
                                   .receive = actor_receive,
                                   .pre_start = top_pre_start,
                                   .strategy = &all };

/* SUP-14: a temporary child restarts the permanent ones with it, unless a supervisor is between
 * them */
static void
a_supervisor_between_keeps_a_temporary_child_from_all_for_one(void)
{
    trp_system *system = stage_open();
    trp_ref between, temporary;

    stage_spawn(system, &top, "top");
    UNIT_WAIT(stage_count("temporary+") == 2 && stage_has("permanent+"), 5000);
    UNIT_EQUAL(trp_system_resolve(system, "/user/top/between", 60000, &between), TRP_OK);
    UNIT_EQUAL(trp_system_resolve(system, "/user/top/temporary", 60000, &temporary), TRP_OK);
    stage_clear(&stage_events);
    stage_tell(system, between, "fail");
    STAGE_EXPECT("temporary- temporary+");
    stage_clear(&stage_events);
    stage_tell(system, temporary, "fail");
    UNIT_WAIT(stage_has("permanent- permanent+") || stage_count("permanent") == 2, 5000);
    stage_close(system);
}

/* ---- limits, to the millisecond -------------------------------------------------------------- */

enum { FAILURES_MAX = 8 };
typedef struct plan { /* when a child fails, in ms; 0 ends the list */
    uint32_t at_ms[FAILURES_MAX];
    int who[FAILURES_MAX];
} plan;

static trp_err
planned_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    (void)msg;
    trp_fail(ctx, 1, "as planned");
}
static const trp_behaviour planned = { .size = sizeof(trp_behaviour),
                                       .name = "planned",
                                       .receive = planned_receive,
                                       .pre_start = stage_started,
                                       .post_stop = stage_stopped };
static trp_err
planner_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    const plan *p = trp_msg_payload(args);
    trp_ref kids[2] = { stage_child(ctx, &planned, "a"), stage_child(ctx, &planned, "b") };

    memcpy(state, kids, sizeof kids);
    for (int i = 0; i < FAILURES_MAX && p->at_ms[i] != 0; i++) {
        int64_t who = p->who[i];

        UNIT_EQUAL(trp_timer_once(ctx, (uint64_t)i, p->at_ms[i], &trp_i64_type, &who, sizeof who),
                   TRP_OK);
    }
    return trp_timer_once(ctx, 99, 20000, &trp_string_type, "end", 3);
}
static trp_err
planner_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const trp_ref *kids = state;

    if (trp_msg_is(msg, &trp_i64_type)) {
        trp_tell_text(ctx, kids[*(const int64_t *)trp_msg_payload(msg)], "fail");
    } else {
        trp_system_shutdown(trp_ctx_system(ctx));
    }
    return TRP_OK;
}

/* Run the plan in virtual time under this strategy; how often each child started. */
static void
play(const trp_strategy *strategy, const plan *p, size_t *ret_a, size_t *ret_b)
{
    trp_behaviour planner = { .size = sizeof(trp_behaviour),
                              .name = "planner",
                              .state_bytes = 2 * sizeof(trp_ref),
                              .receive = planner_receive,
                              .pre_start = planner_pre_start,
                              .strategy = strategy };
    trpi_virtual_options world_options = { .seed = 1 };
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    trpi_virtual *virt;
    trp_system *system;
    trp_ref ref;

    stage_clear(&stage_events);
    options.log = stage_log;
    options.workers = 1;
    UNIT_REQUIRE(trpi_virtual_new(&world_options, &virt) == TRP_OK);
    UNIT_REQUIRE(trpi_system_new_in(trpi_virtual_world(virt), "plan", &options, &system) == TRP_OK);
    spawn.args_type = &trp_bytes_type;
    spawn.args = p;
    spawn.args_bytes = sizeof *p;
    UNIT_EQUAL(trp_system_spawn(system, &planner, &spawn, &ref), TRP_OK);
    UNIT_EQUAL(trp_system_await(system, 60000), TRP_OK);
    trp_system_free(system);
    trpi_world_free(trpi_virtual_world(virt));
    *ret_a = stage_count("a+");
    *ret_b = stage_count("b+");
}

/* SUP-7: three restarts within 5 s are allowed and a fourth is not; the window opens with the first
 * restart, and the first one after its end opens the next */
static void
restarts_are_counted_within_a_window_that_opens_with_the_first(void)
{
    static const plan burst = { { 1000, 2000, 3000, 5900, 7000 }, { 0 } };
    static const plan spread = { { 1000, 2000, 3000, 6100, 7000, 8000, 9000 }, { 0 } };
    trp_strategy strategy = TRP_STRATEGY_INIT;
    size_t a, b;

    strategy.retries_max = 3;
    strategy.window_ms = 5000;
    play(&strategy, &burst, &a, &b);
    UNIT_EQUAL(a, 4); /* the failure at 5.9 s stops it */
    UNIT_EQUAL(b, 1);
    play(&strategy, &spread, &a, &b);
    UNIT_EQUAL(a, 7); /* at 6.1 s a new window has opened: three more, and then it is over */
    strategy.window_ms = 0;
    play(&strategy, &spread, &a, &b);
    UNIT_EQUAL(a, 4); /* without a window the number is absolute */
    strategy.retries_max = TRP_FOREVER;
    strategy.window_ms = 1;
    play(&strategy, &spread, &a, &b);
    UNIT_EQUAL(a, 8); /* without a number there is no limit */
    strategy.retries_max = 0;
    play(&strategy, &spread, &a, &b);
    UNIT_EQUAL(a, 8); /* which is the default */
    strategy.retries_max = TRP_OFF;
    play(&strategy, &spread, &a, &b);
    UNIT_EQUAL(a, 1);
}

/* SUP-6, SUP-7: with all-for-one each restart counts for each child, in its own window */
static void
all_for_one_counts_in_the_window_of_each_child(void)
{
    static const plan turns = { { 1000, 2000, 3000, 4000 }, { 0, 1, 0, 1 } };
    static const plan later = { { 1000, 2000, 7000, 8000 }, { 0, 1, 0, 1 } };
    trp_strategy strategy = TRP_STRATEGY_INIT;
    size_t a, b;

    strategy.all_for_one = 1;
    strategy.retries_max = 2;
    strategy.window_ms = 5000;
    play(&strategy, &turns, &a, &b);
    UNIT_EQUAL(a, 3); /* the third failure stops both */
    UNIT_EQUAL(b, 3);
    play(&strategy, &later, &a, &b);
    UNIT_EQUAL(a, 5);
    UNIT_EQUAL(b, 5);
}

/* ---- pauses ---------------------------------------------------------------------------------- */

/* SUP-7, A4J-18: 1, 2, 4 and again 4 s, and up to a fifth more; after 4 s without a failure from
 * the beginning */
static void
pauses_between_restarts_grow_and_begin_again_after_a_quiet_time(void)
{
    static const plan always = { { 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007 }, { 0 } };
    static const plan twice = { { 1000, 1001, 1002, 16500 }, { 0 } };
    trp_strategy strategy = TRP_STRATEGY_INIT;
    size_t a, b;

    strategy.backoff_min_ms = 1000;
    strategy.backoff_max_ms = 4000;
    play(&strategy, &always, &a, &b);
    UNIT_TRUE(a >= 5 && a <= 6); /* its fifth pause ends after 16 to 19 s, in 19 s */
    UNIT_EQUAL(b, 1);
    play(&strategy, &twice, &a, &b);
    UNIT_EQUAL(a, 5); /* the pause of the last one would end behind the plan, were it 4 s */
    strategy.all_for_one = 1;
    play(&strategy, &twice, &a, &b);
    UNIT_EQUAL(a, 5);
    UNIT_EQUAL(b, 5);
    strategy.all_for_one = 0;
    strategy.retries_max = 2;
    play(&strategy, &always, &a, &b);
    UNIT_EQUAL(a, 3);                                       /* a limit counts as without */
    strategy.size = offsetof(trp_strategy, backoff_min_ms); /* of a program of 0.1 */
    strategy.retries_max = 0;
    play(&strategy, &always, &a, &b);
    UNIT_EQUAL(a, 9);
    strategy.size = sizeof strategy;
    strategy.backoff_min_ms = 5000; /* the longest is at least the first */
    play(&strategy, &always, &a, &b);
    UNIT_TRUE(a >= 3 && a <= 4);
    strategy.backoff_min_ms = UINT32_MAX;
    play(&strategy, &always, &a, &b);
    UNIT_EQUAL(a, 1);
}

static const trp_strategy patient = { .size = sizeof(trp_strategy), .backoff_min_ms = 3600000 };
static trp_err
patient_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (stage_said(msg, "now")) {
        trpi_restart_now(ctx, trp_child(ctx, "sister")); /* it waits for nothing */
        trpi_restart_now(ctx, trp_child(ctx, "kid"));
        trpi_restart_now(ctx, trp_child(ctx, "kid"));
    } else {
        trp_stop(ctx, trp_child(ctx, "kid"));
    }
    return TRP_OK;
}
static const trp_behaviour patient_boss = { .size = sizeof(trp_behaviour),
                                            .name = "boss",
                                            .state_bytes = sizeof(int),
                                            .receive = patient_receive,
                                            .pre_start = boss_pre_start,
                                            .strategy = &patient };

/* SUP-7, A4J-18: who waits keeps its mailbox; a stop does not wait; the supervisor may end it */
static void
an_actor_keeps_its_mailbox_during_a_pause_that_can_be_ended(void)
{
    trp_ref kid, sister, boss;
    trp_system *system = open_with(&patient_boss, &kid, &sister);

    UNIT_EQUAL(trp_system_resolve(system, "/user/boss", 60000, &boss), TRP_OK);
    for (int i = 0; i < 2; i++) {
        stage_tell(system, kid, "fail");
    }
    stage_tell(system, kid, "count");
    UNIT_WAIT(stage_book_has(&stage_lines, "restarting in "), 60000);
    UNIT_FALSE(stage_has("kid-"));
    stage_clear(&stage_lines);
    stage_tell(system, boss, "now");
    UNIT_WAIT(stage_count("kid-") == 1 && stage_count("kid+") == 1, 60000);
    UNIT_FALSE(stage_has("count=")); /* it has failed again */
    UNIT_EQUAL(stage_count("sister+"), 0);
    UNIT_WAIT(stage_book_has(&stage_lines, "restarting in "), 60000);
    stage_tell(system, boss, "now"); /* once: another one would end the next pause */
    UNIT_WAIT(stage_has("count=1"), 60000);
    stage_tell(system, kid, "fail");
    stage_tell(system, boss, "stop");
    UNIT_WAIT(stage_count("kid-") == 3, 60000);
    stage_tell(system, sister, "fail");
    stage_close(system); /* nor does the end of the system */
}

UNIT_BEGIN("strategy")
UNIT(the_user_guardian_can_use_a_strategy_of_ones_own)
UNIT(a_top_level_actor_has_as_many_restarts_as_the_guardian_allows)
UNIT(an_internal_error_escalates_to_the_root_and_ends_the_system)
UNIT(the_system_guardian_restarts_stops_or_escalates)
UNIT(a_strategy_can_log_failures_in_its_own_way)
UNIT(all_for_one_does_not_empty_the_mailboxes_of_the_siblings)
UNIT(a_supervisor_between_keeps_a_temporary_child_from_all_for_one)
UNIT(restarts_are_counted_within_a_window_that_opens_with_the_first)
UNIT(all_for_one_counts_in_the_window_of_each_child)
UNIT(pauses_between_restarts_grow_and_begin_again_after_a_quiet_time)
UNIT(an_actor_keeps_its_mailbox_during_a_pause_that_can_be_ended)
UNIT_END
