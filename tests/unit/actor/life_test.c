/* life_test.c - birth, failure in each hook, the order of the end. */
#include "tests/unit/actor/stage.h"

typedef struct player {
    char name[32];
    bool started;
} player;

static _Atomic bool let_go; /* "hold" */

static trp_err
player_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    player *p = state;
    char path[128];

    snprintf(p->name, sizeof p->name, "%.31s",
             stage_name(trp_ctx_system(ctx), trp_self(ctx), path, sizeof path));
    p->started = true;
    if (args != NULL) {
        stage_note("%s(%.*s)", p->name, (int)trp_msg_bytes(args),
                   (const char *)trp_msg_payload(args));
    } else {
        stage_note("%s+", p->name);
    }
    return TRP_OK;
}

static void
player_post_stop(trp_ctx *ctx, void *state)
{
    (void)ctx;
    stage_note("%s-", ((player *)state)->name);
}

static const trp_behaviour player_behaviour;

static trp_err
player_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    player *p = state;

    if (stage_said(msg, "child")) {
        stage_child(ctx, &player_behaviour, "kid");
        trp_reply_text(ctx, "ok");
    } else if (stage_said(msg, "family")) {
        trp_ref kid = stage_child(ctx, &player_behaviour, "kid");

        trp_tell_text(ctx, kid, "child");
    } else if (stage_said(msg, "stop")) {
        trp_stop(ctx, trp_self(ctx));
        stage_note("%s:stopping", p->name);
    } else if (stage_said(msg, "hold")) {
        stage_hold("held", &let_go);
    } else if (stage_said(msg, "fail")) {
        trp_fail(ctx, 42, "no %s", "way");
    } else if (stage_said(msg, "error")) {
        return TRP_EIO;
    } else if (stage_said(msg, "hello")) {
        stage_note("%s:hello", p->name);
    }
    return TRP_OK;
}

static const trp_behaviour player_behaviour = { .size = sizeof(trp_behaviour),
                                                .name = "player",
                                                .version = 1,
                                                .state_bytes = sizeof(player),
                                                .receive = player_receive,
                                                .pre_start = player_pre_start,
                                                .post_stop = player_post_stop };

/* SYS-23, LIFE-2, SYS-20, A4J-01 */
static void
an_actor_starts_by_itself_and_keeps_what_it_was_told_at_once(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &player_behaviour, "a");

    stage_tell(system, a, "hello");
    STAGE_EXPECT("a+ a:hello");
    stage_close(system);
    STAGE_EXPECT("a+ a:hello a-");
}

/* LIFE-2, UJ-14, A4J-17 */
static void
pre_start_is_given_the_arguments(void)
{
    trp_system *system = stage_open();
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref a;

    options.name = "a";
    options.args_type = &trp_string_type;
    options.args = "salt";
    options.args_bytes = 4;
    UNIT_EQUAL(trp_system_spawn(system, &player_behaviour, &options, &a), TRP_OK);
    STAGE_EXPECT("a(salt)");
    stage_close(system);
}

/* LIFE-9, SUP-1, SUP-3, A4J-22 */
static void
children_end_before_their_parent(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &player_behaviour, "a");
    trp_ref kid, grandkid;
    char answer[16];

    stage_tell(system, a, "family");
    UNIT_WAIT(trp_system_resolve(system, "/user/a/kid/kid", 60000, &grandkid) == TRP_OK, 5000);
    UNIT_EQUAL(trp_system_resolve(system, "/user/a/kid", 60000, &kid), TRP_OK);
    UNIT_EQUAL(trp_system_graceful_stop(system, a, 60000), TRP_OK);
    UNIT_TRUE(stage_has("kid- kid- a-"));
    UNIT_EQUAL(stage_ask(system, kid, "hello", answer, sizeof answer), TRP_ENOENT);
    stage_close(system);
}

/* LIFE-8, LIFE-11, MSG-8, A4J-20 */
static void
stop_ends_an_actor_after_its_present_message_and_the_rest_is_dead_letters(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &player_behaviour, "a");
    trp_system_stats stats = { .size = sizeof stats };

    UNIT_WAIT(stage_has("a+"), 5000);
    stage_tell(system, a, "stop");
    for (int i = 0; i < 5; i++) {
        stage_tell(system, a, "hello");
    }
    STAGE_EXPECT("a+ a:stopping a-");
    UNIT_WAIT((trp_system_stats_get(system, &stats),
               stats.dead_letters[TRP_DEAD_STOPPED] + stats.dead_letters[TRP_DEAD_STALE] == 5),
              5000);
    stage_close(system);
}

/* LIFE-12, MSG-17, A4J-20 */
static void
a_poison_pill_stops_after_what_was_queued_before(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &player_behaviour, "a");

    stage_tell(system, a, "hello");
    trp_system_tell(system, a, &trp_poison_pill_type, NULL, 0);
    stage_tell(system, a, "hello");
    STAGE_EXPECT("a+ a:hello a-");
    stage_close(system);
}

/* LIFE-13, SUP-8, MSG-17 */
static void
kill_is_a_failure_that_stops_by_default(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &player_behaviour, "a");

    trp_system_tell(system, a, &trp_kill_type, NULL, 0);
    STAGE_EXPECT("a+ a-");
    UNIT_WAIT(stage_book_has(&stage_lines, "TRP_EKILLED"), 5000);
    stage_close(system);
}

/* LIFE-18, SUP-8, SUP-11, LOG-14, A4J-22: a failure is logged with path, reason, file and line */
static void
a_failure_restarts_and_is_logged_with_its_place(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &player_behaviour, "a");

    stage_tell(system, a, "fail");
    stage_tell(system, a, "hello");
    STAGE_EXPECT("a+ a- a+ a:hello");
    UNIT_WAIT(stage_book_has(&stage_lines, "[1 /user/a: failed: no way (TRP_EFAILED, code"), 5000);
    UNIT_WAIT(stage_book_has(&stage_lines, "life_test.c:"), 5000);
    stage_tell(system, a, "error");
    STAGE_EXPECT("a+ a- a+ a:hello a- a+");
    UNIT_WAIT(stage_book_has(&stage_lines, "TRP_EIO"), 5000);
    stage_close(system);
}

/* ---- failure in hooks ------------------------------------------------------------------------ */

static _Atomic int
    failing_hook; /* 0 none, 1 pre_start, 2 post_stop, 3 pre_restart, 4 post_restart */

static void
maybe_fail(trp_ctx *ctx, int hook)
{
    if (atomic_load(&failing_hook) == hook) {
        trp_fail(ctx, hook, "hook %d", hook);
    }
}

static trp_err
fragile_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state;
    (void)args;
    stage_note("pre_start");
    maybe_fail(ctx, 1);
    return TRP_OK;
}
static void
fragile_post_stop(trp_ctx *ctx, void *state)
{
    (void)state;
    stage_note("post_stop");
    maybe_fail(ctx, 2);
}
static trp_err
fragile_pre_restart(trp_ctx *ctx, void *state, const trp_failure *why, const trp_msg *msg)
{
    (void)state;
    (void)msg;
    stage_note("pre_restart(%s)", why->reason);
    maybe_fail(ctx, 3);
    return TRP_OK;
}
static trp_err
fragile_post_restart(trp_ctx *ctx, void *state, const trp_failure *why, const trp_msg *args)
{
    (void)state;
    (void)why;
    (void)args;
    stage_note("post_restart");
    maybe_fail(ctx, 4);
    return TRP_OK;
}
static const trp_behaviour fragile = { .size = sizeof(trp_behaviour),
                                       .name = "fragile",
                                       .version = 1,
                                       .state_bytes = sizeof(player),
                                       .receive = player_receive,
                                       .pre_start = fragile_pre_start,
                                       .post_stop = fragile_post_stop,
                                       .pre_restart = fragile_pre_restart,
                                       .post_restart = fragile_post_restart };

/* SUP-15, SUP-8: post_stop is not called for an instance that never was */
static void
a_failure_in_pre_start_stops_the_actor(void)
{
    trp_system *system = stage_open();
    trp_ref a;

    atomic_store(&failing_hook, 1);
    a = stage_spawn(system, &fragile, "a");
    UNIT_WAIT(stage_book_has(&stage_lines, "hook 1 (TRP_EINIT"), 5000);
    UNIT_EQUAL(trp_system_graceful_stop(system, a, 60000), TRP_OK);
    STAGE_EXPECT("pre_start");
    stage_close(system);
    atomic_store(&failing_hook, 0);
}

static void
a_failure_in_post_stop_is_logged_and_the_stop_goes_on(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &fragile, "a");

    UNIT_WAIT(stage_has("pre_start"), 5000);
    atomic_store(&failing_hook, 2);
    UNIT_EQUAL(trp_system_graceful_stop(system, a, 60000), TRP_OK);
    UNIT_WAIT(stage_book_has(&stage_lines, "post_stop failed: hook 2"), 5000);
    stage_close(system);
    atomic_store(&failing_hook, 0);
}

static void
a_failure_in_pre_restart_is_logged_and_the_restart_goes_on(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &fragile, "a");

    atomic_store(&failing_hook, 3);
    stage_tell(system, a, "fail");
    STAGE_EXPECT("pre_start pre_restart(no way) post_restart");
    UNIT_WAIT(stage_book_has(&stage_lines, "pre_restart failed: hook 3"), 5000);
    atomic_store(&failing_hook, 0);
    stage_close(system);
}

/* SUP-15 */
static void
a_failure_in_post_restart_stops_the_actor(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &fragile, "a");

    atomic_store(&failing_hook, 4);
    stage_tell(system, a, "fail");
    UNIT_WAIT(stage_book_has(&stage_lines, "hook 4 (TRP_EINIT"), 5000);
    UNIT_EQUAL(trp_system_graceful_stop(system, a, 60000), TRP_OK);
    STAGE_EXPECT("pre_start pre_restart(no way) post_restart");
    stage_close(system);
    atomic_store(&failing_hook, 0);
}

static _Atomic int starts_that_fail;
static trp_err
late_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    (void)state;
    (void)args;
    stage_note("pre_start");
    return atomic_fetch_sub(&starts_that_fail, 1) > 0 ? TRP_EIO : TRP_OK;
}
static const trp_behaviour late = { .size = sizeof(trp_behaviour),
                                    .name = "late",
                                    .state_bytes = sizeof(player),
                                    .receive = player_receive,
                                    .pre_start = late_pre_start,
                                    .pre_restart = fragile_pre_restart,
                                    .post_restart = fragile_post_restart };
static _Atomic int on_init;
static trp_directive
decide_on_init(trp_ctx *ctx, void *state, const trp_failure *failure)
{
    return failure->err == TRP_EINIT ? (trp_directive)atomic_load(&on_init)
                                     : trp_default_decider(ctx, state, failure);
}

/* LIFE-2, SUP-15: an actor that has never started is created when its supervisor restarts or
 * resumes it: no pre_restart, and pre_start again, not post_restart; after that it restarts as
 * usual */
static void
an_actor_that_never_started_is_created_by_a_restart(void)
{
    static const int directives[] = { TRP_RESTART, TRP_RESUME };
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_strategy strategy = TRP_STRATEGY_INIT;

    strategy.decider = decide_on_init;
    options.guardian_strategy = &strategy;
    for (int i = 0; i < 2; i++) {
        trp_system *system = stage_open_with(options);
        trp_ref a;

        atomic_store(&on_init, directives[i]);
        atomic_store(&starts_that_fail, 2);
        a = stage_spawn(system, &late, "a");
        STAGE_EXPECT("pre_start pre_start pre_start");
        stage_tell(system, a, "fail");
        STAGE_EXPECT("pre_start pre_start pre_start pre_restart(no way) post_restart");
        stage_close(system);
    }
}

/* SYS-18, SYS-22, SYS-19, LIFE-21, HOW-12 */
static void
a_name_is_free_again_only_after_the_end(void)
{
    trp_system *system = stage_open();
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref a = stage_spawn(system, &player_behaviour, "a");
    trp_ref b;

    options.name = "a";
    UNIT_EQUAL(trp_system_spawn(system, &player_behaviour, &options, &b), TRP_EEXIST);
    atomic_store(&let_go, false);
    stage_tell(system, a, "hold");
    UNIT_WAIT(stage_has("held"), 60000);
    trp_system_stop_actor(system, a); /* told to end, and not yet done */
    UNIT_EQUAL(trp_system_spawn(system, &player_behaviour, &options, &b), TRP_EEXIST);
    atomic_store(&let_go, true);
    UNIT_EQUAL(trp_system_graceful_stop(system, a, 60000), TRP_OK);
    UNIT_WAIT(trp_system_spawn(system, &player_behaviour, &options, &b) == TRP_OK, 5000);
    UNIT_FALSE(trp_ref_equal(a, b)); /* SYS-16 */
    stage_close(system);
}

/* SYS-22, UJ-14 */
static void
a_bad_name_is_refused(void)
{
    static const char *const bad[] = { "",   "$a", "a/b", "a b", ".",
                                       "..", "a*", "%2",  "%zz", "\xc3\xa4" };
    trp_system *system = stage_open();
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    char longest[TRP_NAME_BYTES_MAX + 2];
    trp_ref ref;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        options.name = bad[i];
        UNIT_EQUAL(trp_system_spawn(system, &player_behaviour, &options, &ref), TRP_EINVAL);
    }
    options.name = "%20x";
    UNIT_EQUAL(trp_system_spawn(system, &player_behaviour, &options, &ref), TRP_OK);
    memset(longest, 'x', sizeof longest);
    longest[TRP_NAME_BYTES_MAX + 1] = 0;
    options.name = longest;
    UNIT_EQUAL(trp_system_spawn(system, &player_behaviour, &options, &ref), TRP_EINVAL);
    longest[TRP_NAME_BYTES_MAX] = 0;
    UNIT_EQUAL(trp_system_spawn(system, &player_behaviour, &options, &ref), TRP_OK);
    stage_close(system);
}

static trp_err
speaker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (stage_said(msg, "log")) {
        trp_log(ctx, TRP_LOG_INFO, "said %d", 7);
        trp_log(ctx, TRP_LOG_DEBUG, "not at this level");
    } else {
        stage_note("received");
    }
    return TRP_OK;
}
static void
speaker_post_stop(trp_ctx *ctx, void *state)
{
    (void)state;
    trp_tell_text(ctx, trp_self(ctx), "too late");
    stage_note("told");
}
static const trp_behaviour speaker = { .size = sizeof(trp_behaviour),
                                       .name = "speaker",
                                       .version = 1,
                                       .receive = speaker_receive,
                                       .post_stop = speaker_post_stop };

/* LIFE-10 */
static void
what_is_told_during_post_stop_is_a_dead_letter(void)
{
    trp_system *system = stage_open();
    trp_system_stats stats = { .size = sizeof stats };
    trp_ref a = stage_spawn(system, &speaker, "a");

    UNIT_EQUAL(trp_system_graceful_stop(system, a, 60000), TRP_OK);
    UNIT_WAIT((trp_system_stats_get(system, &stats), stats.dead_letters[TRP_DEAD_STOPPED] == 1),
              5000);
    STAGE_EXPECT("told");
    stage_close(system);
}

/* MSG-22 */
static void
an_actor_logs_with_its_path(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &speaker, "a");

    stage_tell(system, a, "log");
    UNIT_WAIT(stage_book_has(&stage_lines, "[3 /user/a: said 7]"), 5000);
    UNIT_FALSE(stage_book_has(&stage_lines, "not at this level"));
    stage_close(system);
}

UNIT_BEGIN("life")
UNIT(an_actor_starts_by_itself_and_keeps_what_it_was_told_at_once)
UNIT(pre_start_is_given_the_arguments)
UNIT(children_end_before_their_parent)
UNIT(stop_ends_an_actor_after_its_present_message_and_the_rest_is_dead_letters)
UNIT(a_poison_pill_stops_after_what_was_queued_before)
UNIT(kill_is_a_failure_that_stops_by_default)
UNIT(a_failure_restarts_and_is_logged_with_its_place)
UNIT(a_failure_in_pre_start_stops_the_actor)
UNIT(a_failure_in_post_stop_is_logged_and_the_stop_goes_on)
UNIT(a_failure_in_pre_restart_is_logged_and_the_restart_goes_on)
UNIT(a_failure_in_post_restart_stops_the_actor)
UNIT(an_actor_that_never_started_is_created_by_a_restart)
UNIT(what_is_told_during_post_stop_is_a_dead_letter)
UNIT(an_actor_logs_with_its_path)
UNIT(a_name_is_free_again_only_after_the_end)
UNIT(a_bad_name_is_refused)
UNIT_END
