/* guardian_test.c - the top of the tree; the order of the end; stuck actors; several systems; fork
 * and exec. */
#include "tests/unit/actor/stage.h"

#include <sys/wait.h>
#include <troupe/category.h>
#include <troupe/mailbox.h>
#include <troupe/scheduler.h>
#include <unistd.h>

static _Atomic bool let_go, let_go_late, went_on;
static trp_system *other_system; /* the receiver of "over" */
static trp_ref other_ref;

static trp_err
actor_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (stage_said(msg, "stick")) {
        stage_hold("stuck", &let_go);
    } else if (stage_said(msg, "stick for good")) {
        stage_hold("stuck", &let_go_late);
        atomic_store(&went_on, true);
    } else if (stage_said(msg, "over")) {
        stage_tell(other_system, other_ref, "hello");
    } else if (stage_said(msg, "hello")) {
        stage_note(trp_ctx_system(ctx) == other_system ? "there" : "astray");
    } else if (stage_said(msg, "shutdown")) {
        trp_system_shutdown(trp_ctx_system(ctx));
        trp_system_shutdown(trp_ctx_system(ctx));
        stage_note("ordered");
    } else if (stage_said(msg, "fail")) {
        trp_fail(ctx, 0, "top");
    } else if (stage_said(msg, "ping")) {
        trp_reply_text(ctx, "pong");
    }
    return TRP_OK;
}
static void
actor_post_stop(trp_ctx *ctx, void *state)
{
    char path[128];

    (void)state;
    stage_note("%s-", trp_path(trp_ctx_system(ctx), trp_self(ctx), path, sizeof path));
}
static const trp_behaviour actor = { .size = sizeof(trp_behaviour),
                                     .name = "actor",
                                     .version = 1,
                                     .receive = actor_receive,
                                     .post_stop = actor_post_stop };
static char answer[64];

static trp_ref
spawn_internal(trp_system *system, const char *name)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;

    options.name = name;
    UNIT_EQUAL(trpi_system_spawn_internal(system, &actor, &options, &ref), TRP_OK);
    return ref;
}

/* SYS-7, SYS-41, UJ-24: user before system */
static void
the_user_tree_ends_before_the_system_tree(void)
{
    trp_system *system = stage_open();

    spawn_internal(system, "logger");
    stage_spawn(system, &actor, "a");
    UNIT_FALSE(trp_system_is_terminated(system));
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
    UNIT_TRUE(trp_system_is_terminated(system));
    STAGE_EXPECT("/user/a- /system/logger-");
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK); /* idempotent */
    trp_system_free(system);
}

/* SYS-41, UJ-24: from a behaviour */
static void
shutdown_can_be_ordered_by_an_actor(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &actor, "a");
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    trp_msg *reply;

    UNIT_EQUAL(trp_system_await(system, 10), TRP_ETIMEDOUT);
    stage_tell(system, a, "shutdown");
    UNIT_EQUAL(trp_system_await(system, 60000), TRP_OK);
    STAGE_EXPECT("ordered /user/a-");
    UNIT_EQUAL(trp_system_spawn(system, &actor, &options, &ref), TRP_ECLOSED);
    UNIT_EQUAL(trpi_system_spawn_internal(system, &actor, &options, &ref), TRP_ECLOSED);
    UNIT_EQUAL(trp_system_ask(system, a, &trp_string_type, "ping", 4, 1000, &reply), TRP_ECLOSED);
    trp_system_free(system);
}

/* Try to stop until the line is logged: a guardian that gets no core during the grace time is named
 * in place of the actors below it. */
static void
stop_until_said(trp_system *system, uint32_t timeout_ms, const char *line)
{
    UNIT_WAIT((UNIT_EQUAL(trp_system_stop(system, timeout_ms), TRP_ETIMEDOUT),
               stage_book_has(&stage_lines, line)),
              60000);
}

static uint64_t
actors_of(trp_system *system)
{
    trp_system_stats stats = { .size = sizeof stats };

    trp_system_stats_get(system, &stats);
    return stats.actors;
}

/* LIFE-9, SYS-41: a stuck actor is named, and the system ends when the actor returns */
static void
a_stuck_actor_is_named_when_the_deadline_has_passed(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &actor, "a");
    uint64_t without_b = actors_of(system);

    atomic_store(&let_go, false);
    stage_spawn(system, &actor, "b");
    stage_tell(system, a, "stick");
    UNIT_WAIT(stage_has("stuck"), 5000);
    trp_system_shutdown(system);
    UNIT_WAIT(stage_has("/user/b-") && actors_of(system) <= without_b, 5000);
    stop_until_said(system, 100, "[1 system: actor /user/a is stuck in its present message");
    UNIT_FALSE(stage_book_has(&stage_lines, "actor /user/b"));
    atomic_store(&let_go, true);
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
    trp_system_free(system);
}

static trp_system *leaked; /* what is leaked on purpose is still known to the leak checker */

/* SYS-41: a system with a stuck actor is leaked, not freed while it runs, and the process goes
 * on */
static void
a_system_that_stays_stuck_is_leaked_with_a_line_and_the_process_goes_on(void)
{
    trp_system *other;
    trp_ref a;

    leaked = stage_open();
    a = stage_spawn(leaked, &actor, "a");
    atomic_store(&let_go_late, false);
    stage_tell(leaked, a, "stick for good");
    UNIT_WAIT(stage_has("stuck"), 5000);
    stop_until_said(leaked, 50, "actor /user/a is stuck in its present message");
    trp_system_free(leaked);
    STAGE_LOGGED("the system is leaked, its memory is not given back "
                 "system=stage");
    UNIT_FALSE(stage_has("/user/a-"));

    other = stage_open();
    a = stage_spawn(other, &actor, "b");
    UNIT_EQUAL(stage_ask(other, a, "ping", answer, sizeof answer), TRP_OK);
    UNIT_TEXT(answer, "pong");
    atomic_store(&let_go_late, true); /* the memory that the actor uses still exists */
    UNIT_WAIT(atomic_load(&went_on), 5000);
    UNIT_EQUAL(stage_ask(other, a, "ping", answer, sizeof answer), TRP_OK);
    stage_close(other);
}

/* SYS-6, SYS-8 */
static void
when_the_user_guardian_ends_the_system_does(void)
{
    trp_system *system = stage_open();
    trp_ref user;

    stage_spawn(system, &actor, "a");
    UNIT_EQUAL(trp_system_resolve(system, "/user", 60000, &user), TRP_OK);
    trp_system_tell(system, user, &trp_kill_type, NULL, 0);
    UNIT_EQUAL(trp_system_await(system, 60000), TRP_OK);
    STAGE_EXPECT("/user/a-");
    trp_system_free(system);
}

/* SYS-7, SYS-8 */
static void
when_the_system_guardian_ends_the_system_does_in_order(void)
{
    trp_system *system = stage_open();
    trp_ref guardian, root;

    stage_spawn(system, &actor, "a");
    UNIT_EQUAL(trp_system_resolve(system, "/system", 60000, &guardian), TRP_OK);
    trp_system_stop_actor(system, guardian);
    UNIT_EQUAL(trp_system_await(system, 60000), TRP_OK);
    STAGE_EXPECT("/user/a-");
    trp_system_free(system);

    system = stage_open();
    stage_spawn(system, &actor, "a");
    UNIT_EQUAL(trp_system_resolve(system, "/", 60000, &root), TRP_OK);
    trp_system_tell(system, root, &trp_kill_type, NULL, 0);
    UNIT_EQUAL(trp_system_await(system, 60000), TRP_OK);
    STAGE_EXPECT("/user/a-");
    trp_system_free(system);
}

/* SYS-9: you may message a guardian; it discards */
static void
guardians_discard_what_they_are_told(void)
{
    trp_system *system = stage_open();
    trp_ref ref;

    UNIT_EQUAL(trp_system_resolve(system, "/system", 60000, &ref), TRP_OK);
    stage_tell(system, ref, "hello");
    UNIT_EQUAL(trp_system_resolve(system, "/deadLetters", 60000, &ref), TRP_OK);
    stage_tell(system, ref, "hello");
    UNIT_WAIT(stage_book_has(&stage_lines, "to /deadLetters: told to nobody"), 5000);
    stage_close(system);
}

/* SYS-1, HEADLINE-16, UJ-13: several systems share nothing */
static void
several_systems_live_in_one_process(void)
{
    trp_system *systems[4];
    trp_ref refs[4];
    trp_mailbox_options bounded = TRP_MAILBOX_OPTIONS_INIT;

    bounded.kind = TRP_MAILBOX_KIND_BOUNDED;
    bounded.capacity = 2;
    for (int i = 0; i < 4; i++) {
        char text[96];

        snprintf(text, sizeof text,
                 "app { number = %d } actor { default-dispatcher { workers = 1 } }", i);
        systems[i] = stage_open_config(text);
        refs[i] = stage_spawn(systems[i], &actor, "same");
    }
    for (int i = 0; i < 4; i++) {
        UNIT_EQUAL(stage_ask(systems[i], refs[i], "ping", answer, sizeof answer), TRP_OK);
    }
    /* Levels, counts and registrations belong to one system. */
    trp_log_level_set(systems[0], TRP_LOG_OFF);
    UNIT_EQUAL(trp_mailbox_register(systems[0], "two", &bounded), TRP_OK);
    UNIT_EQUAL(trp_category_join(systems[0], "crew", refs[0]), TRP_OK);
    stage_tell(systems[0], (trp_ref)TRP_REF_NONE, "lost");
    UNIT_EQUAL(stage_dead_sum(systems[0]), 1);
    for (int i = 1; i < 4; i++) {
        UNIT_EQUAL(trp_log_level_get(systems[i]), TRP_LOG_INFO);
        UNIT_EQUAL(trp_mailbox_register(systems[i], "two", &bounded), TRP_OK);
        UNIT_EQUAL(trp_category_size(systems[i], "crew"), 0);
        UNIT_EQUAL(stage_dead_sum(systems[i]), 0);
    }
    /* Each has a configuration, a scheduler and threads of its own: the only worker of one is
     * held, and another one's timer rings and its actors answer. */
    for (int i = 0; i < 4; i++) {
        trp_config *config = trp_system_config(systems[i]);
        int64_t number = -1;

        UNIT_EQUAL(trp_config_get_int(config, "app.number", &number, NULL), TRP_OK);
        UNIT_EQUAL(number, i);
        trp_config_unref(config);
    }
    atomic_store(&let_go, false);
    stage_tell(systems[2], stage_spawn(systems[2], &actor, NULL), "stick");
    UNIT_WAIT(stage_has("stuck"), 60000);
    other_system = systems[3];
    UNIT_EQUAL(trp_schedule_once(systems[3], 1, refs[3], (trp_ref)TRP_REF_NONE, &trp_string_type,
                                 "hello", 5, NULL),
               TRP_OK);
    UNIT_WAIT(stage_has("there"), 60000);
    UNIT_EQUAL(stage_ask(systems[3], refs[3], "ping", answer, sizeof answer), TRP_OK);
    atomic_store(&let_go, true);
    stage_clear(&stage_events);
    /* An actor may send to one of another system, though both have the same slot. */
    other_system = systems[1];
    other_ref = refs[1];
    stage_tell(systems[0], refs[0], "over");
    STAGE_EXPECT("there");
    stage_clear(&stage_events);
    stage_close(systems[0]);
    stage_close(systems[2]);
    UNIT_EQUAL(stage_ask(systems[1], refs[1], "ping", answer, sizeof answer), TRP_OK);
    UNIT_EQUAL(stage_ask(systems[3], refs[3], "ping", answer, sizeof answer), TRP_OK);
    stage_close(systems[1]);
    stage_close(systems[3]);
}

/* SYS-1 */
static void
a_system_that_was_never_stopped_is_stopped_by_free(void)
{
    trp_system *system = stage_open();

    stage_spawn(system, &actor, "a");
    trp_system_free(system);
    STAGE_EXPECT("/user/a-");
    trp_system_free(NULL);
}

/* Issue: survives fork followed by exec */
static void
a_system_survives_fork_and_exec(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &actor, "a");
    int status = -1;

    for (int i = 0; i < 3; i++) {
        pid_t pid = fork();

        UNIT_REQUIRE(pid >= 0);
        if (pid == 0) {
            execl("/bin/true", "true", (char *)NULL);
            _exit(127);
        }
        UNIT_EQUAL(stage_ask(system, a, "ping", answer, sizeof answer), TRP_OK);
        UNIT_EQUAL(waitpid(pid, &status, 0), pid);
        UNIT_EQUAL(status, 0);
    }
    stage_close(system);
}

static void *
spawner(void *arg)
{
    trp_system *system = arg;
    intptr_t spawned = 0;
    trp_ref ref;
    trp_err err;

    while ((err = trp_system_spawn(system, &actor, NULL, &ref)) == TRP_OK) {
        spawned++;
    }
    UNIT_EQUAL(err, TRP_ECLOSED);
    return (void *)spawned;
}

/* SYS-20: spawning from threads races with the end, and nothing is left behind */
static void
spawns_from_outside_that_race_with_the_end_are_ended_or_refused(void)
{
    trp_system *system = stage_open();
    trp_system_stats stats = { .size = sizeof stats };
    pthread_t threads[2];
    uint64_t spawned = 0;

    for (int i = 0; i < 2; i++) {
        UNIT_EQUAL(pthread_create(&threads[i], NULL, spawner, system), 0);
    }
    UNIT_WAIT((trp_system_stats_get(system, &stats), stats.spawned > 500), 5000);
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
    for (int i = 0; i < 2; i++) {
        void *count;

        UNIT_EQUAL(pthread_join(threads[i], &count), 0);
        spawned += (uint64_t)(uintptr_t)count;
    }
    trp_system_stats_get(system, &stats);
    UNIT_EQUAL(stats.actors, 0);
    UNIT_TRUE(stats.spawned >= spawned);
    trp_system_free(system);
}

UNIT_BEGIN("guardian")
UNIT(the_user_tree_ends_before_the_system_tree)
UNIT(shutdown_can_be_ordered_by_an_actor)
UNIT(a_stuck_actor_is_named_when_the_deadline_has_passed)
UNIT(a_system_that_stays_stuck_is_leaked_with_a_line_and_the_process_goes_on)
UNIT(when_the_user_guardian_ends_the_system_does)
UNIT(when_the_system_guardian_ends_the_system_does_in_order)
UNIT(guardians_discard_what_they_are_told)
UNIT(several_systems_live_in_one_process)
UNIT(a_system_that_was_never_stopped_is_stopped_by_free)
UNIT(a_system_survives_fork_and_exec)
UNIT(spawns_from_outside_that_race_with_the_end_are_ended_or_refused)
UNIT_END
