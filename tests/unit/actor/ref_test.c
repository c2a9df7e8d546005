/* ref_test.c - refs and paths as values; the services of a system. */
#include "tests/unit/actor/stage.h"

#include <troupe/path.h>

#define CARD_GIVE(F, S) F(S, ref, about)
#define CARD_MESSAGES(M, P) M(P, give, CARD_GIVE)
TRP_PROTOCOL(card, CARD_MESSAGES)

static trp_ref promise_seen;

static trp_err
host_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &card_give_type)) { /* a ref that came in a message is used like any */
        trp_ref about = ((const card_give *)trp_msg_payload(msg))->about;
        char path[256];

        stage_note("given(%s)", trp_path(trp_ctx_system(ctx), about, path, sizeof path));
        trp_tell_text(ctx, about, "hello");
        UNIT_EQUAL(trp_watch(ctx, about), TRP_OK);
    } else if (trp_msg_is(msg, &trp_terminated_type)) {
        const trp_terminated *what = trp_msg_payload(msg);
        char path[256];

        stage_note("ended(%s,%d,%d)", trp_path(trp_ctx_system(ctx), what->ref, path, sizeof path),
                   what->existence_confirmed, what->address_terminated);
    } else if (stage_said(msg, "hello")) {
        stage_note("hello");
    } else if (stage_said(msg, "who asks")) {
        promise_seen = trp_sender(ctx);
        trp_reply_text(ctx, "you");
    } else if (stage_said(msg, "fail")) {
        return TRP_EIO;
    }
    return TRP_OK;
}
static const trp_behaviour host = { .size = sizeof(trp_behaviour),
                                    .name = "host",
                                    .receive = host_receive };
static char answer[64];

static void
give(trp_system *system, trp_ref to, trp_ref about)
{
    card_give what = { about };

    trp_system_tell(system, to, &card_give_type, &what, sizeof what);
}

/* SYS-10, SYS-11: a living actor, the dead, a promise, dead letters, an actor on another node: each
 * is the same 16 bytes, travels in messages, can be told, watched, compared and asked for its path;
 * a message without a receiver is a dead letter, and a watch is always answered */
static void
refs_of_every_kind_are_values_that_can_be_sent_told_and_watched(void)
{
    trp_system *system = stage_open();
    trp_ref a, b, dead, far;

    UNIT_EQUAL(trp_protocol_register(&card_protocol), TRP_OK);
    a = stage_spawn(system, &host, "a");
    b = stage_spawn(system, &host, "b");
    dead = stage_spawn(system, &host, "dead");
    far = stage_far(system);
    UNIT_EQUAL(trp_system_graceful_stop(system, dead, 60000), TRP_OK);

    give(system, a, b);
    STAGE_EXPECT("given(/user/b) hello");
    UNIT_EQUAL(trp_system_graceful_stop(system, b, 60000), TRP_OK);
    STAGE_EXPECT("given(/user/b) hello ended(/user/b,1,0)");

    stage_clear(&stage_events);
    give(system, a,
         dead); /* no actor gets it, but it keeps its path: it can be sent and compared */
    STAGE_EXPECT("given(/user/dead) ended(/user/dead,0,0)");
    UNIT_WAIT(stage_dead_sum(system) == 1, 5000);

    stage_clear(&stage_events);
    give(system, a, trp_system_dead_letters(system));
    UNIT_WAIT(stage_dead_sum(system) == 2, 5000);
    STAGE_EXPECT("given(/deadLetters)");

    stage_clear(&stage_events);
    give(system, a, far); /* there is no remoting here */
    UNIT_WAIT(stage_dead_sum(system) == 3, 5000);
    UNIT_WAIT(stage_has("troupe.tcp://far@192.0.2.1:2552/#"), 5000);
    UNIT_WAIT(stage_has(",0,1)"), 5000);

    stage_clear(&stage_events);
    UNIT_EQUAL(stage_ask(system, a, "who asks", answer, sizeof answer), TRP_OK);
    UNIT_TRUE(!trp_ref_is_none(promise_seen));
    give(system, a, promise_seen); /* a promise is over with its first reply */
    UNIT_WAIT(stage_has("ended(/"), 5000);
    UNIT_TRUE(stage_has(",0,0)"));
    stage_close(system);
}

/* SYS-10, SYS-16, SYS-17, SYS-12, MSC-03: equal means the same incarnation, over restarts; the
 * same name later is another incarnation, which never gets messages to the old ref; paths ignore
 * incarnations */
static void
refs_are_equal_when_they_name_the_same_life_paths_when_they_name_the_same_place(void)
{
    trp_system *system = stage_open();
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    char first[256], second[256];
    trp_ref a = stage_spawn(system, &host, "a");
    trp_ref copy = a, found, again;

    stage_tell(system, a, "fail");
    UNIT_EQUAL(trp_system_resolve(system, "/user/a", 60000, &found), TRP_OK);
    UNIT_TRUE(trp_ref_equal(copy, found));
    trp_path(system, a, first, sizeof first);
    UNIT_EQUAL(trp_system_graceful_stop(system, a, 60000), TRP_OK);
    options.name = "a";
    UNIT_WAIT(trp_system_spawn(system, &host, &options, &again) == TRP_OK, 5000);
    UNIT_FALSE(trp_ref_equal(a, again));
    UNIT_TRUE(trp_path_equal(first, trp_path(system, again, second, sizeof second)));
    stage_tell(system, a, "hello");
    UNIT_EQUAL(stage_ask(system, again, "who asks", answer, sizeof answer), TRP_OK);
    STAGE_EXPECT("");
    stage_close(system);
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* SYS-12, SYS-13: a path needs no actor */
static void
paths_are_checked_and_compared_without_anybody_behind_them(void)
{
    static const char *const good[] = { "/",
                                        "/user/a",
                                        "/user/a/",
                                        "/user/a%20b/c",
                                        "/user/$b",
                                        "/user/a#77",
                                        "troupe.tcp://demo@host:2552/user/a",
                                        "troupe.tcp://demo@[::1]:2552/" };
    static const char *const bad[] = { "",
                                       "user/a",
                                       "//",
                                       "/a//b",
                                       "/a//",
                                       "/a///",
                                       "/a/../b",
                                       "/user/w*",
                                       "/user/?",
                                       "/user/a#",
                                       "/user/a#x",
                                       "/a b",
                                       "/user/a#1/b",
                                       "troupe.tcp://demo@host:2552",
                                       "troupe.tcp://demo@host/user" };
    char deep[4 * TRP_PATH_DEPTH_MAX + 8] = "";

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        UNIT_EQUAL(trp_path_check(good[i]), TRP_OK);
        UNIT_TRUE(trp_path_equal(good[i], good[i]));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        UNIT_EQUAL(trp_path_check(bad[i]), TRP_EINVAL);
        UNIT_FALSE(trp_path_equal(bad[i], bad[i]));
    }
    UNIT_EQUAL(trp_path_check(NULL), TRP_EINVAL);
    UNIT_TRUE(trp_path_equal("/user/a", "/user/a#4"));
    UNIT_TRUE(trp_path_equal("/user/a#3", "/user/a/"));
    UNIT_FALSE(trp_path_equal("/user/a", "/user/b"));
    UNIT_FALSE(trp_path_equal("/user/a", "/user/a/b"));
    UNIT_FALSE(trp_path_equal("/user/a", "troupe.tcp://demo@host:2552/user/a"));
    UNIT_TRUE(trp_path_equal("troupe.tcp://demo@[0:0::1]:1/user/a",
                             "troupe.tcp://demo@[::1]:1/user/a#9"));
    UNIT_FALSE(
        trp_path_equal("troupe.tcp://demo@host:1/user/a", "troupe.tcp://demo@host:2/user/a"));
    for (int i = 0; i < TRP_PATH_DEPTH_MAX; i++) {
        memcpy(deep + strlen(deep), "/n", 3);
    }
    UNIT_EQUAL(trp_path_check(deep), TRP_OK);
    memcpy(deep + strlen(deep), "/n", 3);
    UNIT_EQUAL(trp_path_check(deep), TRP_EINVAL);
}

/* SYS-12 */
static void
paths_are_put_together_and_taken_apart(void)
{
    char path[TRP_PATH_BYTES_MAX + 1] = "troupe.tcp://demo@host:2552/";
    char small[8] = "before";

    UNIT_EQUAL(trp_path_child(path, "user", path, sizeof path), TRP_OK);
    UNIT_EQUAL(trp_path_child(path, "a", path, sizeof path), TRP_OK);
    UNIT_TEXT(path, "troupe.tcp://demo@host:2552/user/a");
    UNIT_EQUAL(trp_path_child("/user/a#5", "b", path, sizeof path), TRP_OK);
    UNIT_TEXT(path, "/user/a/b");
    UNIT_EQUAL(trp_path_parent(path, path, sizeof path), TRP_OK);
    UNIT_EQUAL(trp_path_parent(path, path, sizeof path), TRP_OK);
    UNIT_TEXT(path, "/user");
    UNIT_EQUAL(trp_path_parent(path, path, sizeof path), TRP_OK);
    UNIT_TEXT(path, "/");
    UNIT_EQUAL(trp_path_parent(path, path, sizeof path), TRP_ENOENT);
    UNIT_EQUAL(trp_path_child("/user", "a/b", path, sizeof path), TRP_EINVAL);
    UNIT_EQUAL(trp_path_child("/user", "", path, sizeof path), TRP_EINVAL);
    UNIT_EQUAL(trp_path_child("user", "a", path, sizeof path), TRP_EINVAL);
    UNIT_EQUAL(trp_path_child("/user", "ab", small, sizeof small), TRP_EMSGSIZE);
    UNIT_TEXT(small, "before");
    UNIT_EQUAL(trp_path_child("/user", "a", small, sizeof small), TRP_OK);
    UNIT_TEXT(small, "/user/a");
    UNIT_EQUAL(trp_path_parent("/user/a", small, 5), TRP_EMSGSIZE);
    UNIT_EQUAL(trp_path_parent("/user/a", small, 6), TRP_OK);
    memcpy(path, "/", 2);
    for (int i = 0; i < TRP_PATH_DEPTH_MAX; i++) {
        UNIT_EQUAL(trp_path_child(path, "n", path, sizeof path), TRP_OK);
    }
    UNIT_EQUAL(trp_path_child(path, "n", path, sizeof path), TRP_ELIMIT);
}

/* ---- the system ------------------------------------------------------------------------------ */

static trp_err
clerk_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (stage_said(msg, "go")) {
        UNIT_EQUAL(trp_subscribe(ctx, &trp_dead_letter_type), TRP_OK);
        UNIT_EQUAL(trp_timer_once(ctx, 1, 1, &trp_string_type, "tick", 4), TRP_OK);
        trp_log(ctx, TRP_LOG_INFO, "a clerk of %s", trp_system_name(trp_ctx_system(ctx)));
    } else if (stage_said(msg, "tick")) {
        stage_note("tick");
    } else if (trp_msg_is(msg, &trp_dead_letter_type)) {
        stage_note("dead");
    }
    return TRP_OK;
}
static const trp_behaviour clerk = { .size = sizeof(trp_behaviour),
                                     .name = "clerk",
                                     .receive = clerk_receive };

/* SYS-2: by name and options, with defaults; and from there to every service */
static void
a_system_is_made_by_name_and_gives_access_to_its_services(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system_stats stats = { .size = sizeof stats };
    trp_system *system;
    trp_ref c;

    UNIT_EQUAL(trp_system_new("", NULL, &system), TRP_EINVAL);
    UNIT_EQUAL(trp_system_new("no blanks", NULL, &system), TRP_EINVAL);
    UNIT_EQUAL(trp_system_new("plain", NULL, &system), TRP_OK); /* all defaults */
    UNIT_TEXT(trp_system_name(system), "plain");
    UNIT_FALSE(trp_system_is_terminated(system));
    stage_close(system);

    system = stage_open_with(options);
    c = stage_spawn(system, &clerk, "c");
    stage_tell(system, c, "go"); /* log, timers, events */
    STAGE_EXPECT("tick");
    UNIT_WAIT(stage_book_has(&stage_lines, "[3 /user/c: a clerk of stage]"), 5000);
    stage_tell(system, trp_system_dead_letters(system), "lost"); /* dead letters */
    STAGE_EXPECT("tick dead");
    UNIT_EQUAL(trp_system_select_tell(system, "/user/*", &trp_string_type, "tick", 4), TRP_OK);
    STAGE_EXPECT("tick dead tick"); /* selection */
    trp_system_stats_get(system, &stats);
    UNIT_TRUE(stats.actors >= 1 && stats.dead_letters[TRP_DEAD_NO_SENDER] == 1);
    trp_system_stop_actor(system, c);
    trp_system_shutdown(system);
    UNIT_EQUAL(trp_system_await(system, 60000), TRP_OK);
    UNIT_TRUE(trp_system_is_terminated(system));
    trp_system_free(system);
}

UNIT_BEGIN("ref")
UNIT(refs_of_every_kind_are_values_that_can_be_sent_told_and_watched)
UNIT(refs_are_equal_when_they_name_the_same_life_paths_when_they_name_the_same_place)
UNIT(paths_are_checked_and_compared_without_anybody_behind_them)
UNIT(paths_are_put_together_and_taken_apart)
UNIT(a_system_is_made_by_name_and_gives_access_to_its_services)
UNIT_END
