/* shutdown_test.c - coordinated shutdown of a system: tasks, actors that are stopped, deadlines. */
#include <troupe/shutdown.h>

#include <troupe/testkit.h>

#include <semaphore.h>

#include "pattern/pattern.h"
#include "tests/unit/actor/stage.h"

static trp_testkit *kit;
static trp_system *stage;

static void
open_kit(const char *config)
{
    trp_testkit_options options = TRP_TESTKIT_OPTIONS_INIT;
    trp_system_options system_options = TRP_SYSTEM_OPTIONS_INIT;
    trp_config_error error = { "" };
    stage_events.used = 0;
    options.clock = TRP_CLOCK_MANUAL;
    trp_config *parsed = NULL;
    UNIT_REQUIRE(trp_config_parse_text("t.conf", config, &parsed, &error) == TRP_OK);
    system_options.config = parsed;
    options.system_options = &system_options;
    UNIT_REQUIRE(trp_testkit_open(&options, &kit) == TRP_OK);
    trp_config_unref(parsed);
    stage = trp_testkit_system(kit);
}

static void
close_kit(void)
{
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
}

/* A task that is done at once. */
static void
at_once(void *arg, uint64_t task)
{
    stage_note("%s", (const char *)arg);
    trp_shutdown_done(stage, task, TRP_OK);
}

static uint64_t later_task;
static void
task_later(void *arg, uint64_t task)
{
    stage_note("%s", (const char *)arg);
    later_task = task;
}

static uint64_t
task_add(const char *phase, trp_shutdown_fn fn, const char *name)
{
    uint64_t task = 0;
    UNIT_EQUAL(trp_shutdown_add(stage, phase, name, fn, (void *)(uintptr_t)name, &task), TRP_OK);
    return task;
}

static void
phases_over(void *arg)
{
    (void)arg;
    stage_note("over");
}

static void
tasks_run_in_the_order_of_their_phases_whatever_the_order_they_were_added_in(void)
{
    open_kit("");
    UNIT_EQUAL(trpi_shutdown_over_set(stage, phases_over, NULL), TRP_OK);
    (void)task_add(TRP_SHUTDOWN_ACTOR_SYSTEM_TERMINATE, at_once, "last");
    (void)task_add(TRP_SHUTDOWN_SERVICE_STOP, task_later, "stop");
    (void)task_add(TRP_SHUTDOWN_BEFORE_SERVICE_UNBIND, at_once, "first");
    uint64_t gone = task_add(TRP_SHUTDOWN_SERVICE_STOP, at_once, "gone");
    UNIT_TRUE(trp_shutdown_remove(stage, gone) == 1);
    UNIT_TRUE(trp_shutdown_remove(stage, gone) == 0);
    UNIT_EQUAL(trp_shutdown_reason_get(stage), TRP_SHUTDOWN_NONE);
    UNIT_EQUAL(trp_shutdown_run(stage, TRP_SHUTDOWN_LEAVING, NULL), TRP_OK);
    UNIT_EQUAL(trp_shutdown_run(stage, TRP_SHUTDOWN_PROGRAM, NULL), TRP_OK);
    UNIT_EQUAL(trp_testkit_advance(kit, 10), TRP_OK);
    UNIT_EQUAL(trp_shutdown_reason_get(stage), TRP_SHUTDOWN_LEAVING);
    UNIT_TEXT(stage_events.text, "first stop");
    trp_shutdown_done(stage, later_task, TRP_OK);
    UNIT_EQUAL(trp_testkit_advance(kit, 10), TRP_OK);
    UNIT_TEXT(stage_events.text, "first stop last over");
    close_kit();
}

static void
a_task_that_never_ends_is_given_up_at_the_deadline_of_its_phase(void)
{
    char text[256];
    open_kit("coordinated-shutdown { phases \"service-stop\" { timeout = 300ms } }");
    UNIT_EQUAL(trpi_shutdown_over_set(stage, phases_over, NULL), TRP_OK);
    (void)task_add(TRP_SHUTDOWN_SERVICE_STOP, task_later, "never");
    (void)task_add(TRP_SHUTDOWN_CLUSTER_LEAVE, at_once, "next");
    UNIT_EQUAL(trp_shutdown_run(stage, TRP_SHUTDOWN_PROGRAM, NULL), TRP_OK);
    UNIT_EQUAL(trp_testkit_advance(kit, 299), TRP_OK);
    UNIT_TEXT(stage_events.text, "never");
    UNIT_TRUE(!trpi_shutdown_report(stage, 0, text, sizeof text));
    UNIT_EQUAL(trp_testkit_advance(kit, 2), TRP_OK);
    UNIT_TEXT(stage_events.text, "never next over");
    UNIT_TRUE(trpi_shutdown_report(stage, 0, text, sizeof text));
    UNIT_TRUE(strstr(text, "service-stop late after 30") == text);
    UNIT_TRUE(strstr(text, "waited for: never") != NULL);
    UNIT_TRUE(trpi_shutdown_report(stage, 1, text, sizeof text));
    UNIT_TRUE(!trpi_shutdown_report(stage, 2, text, sizeof text));
    trp_shutdown_done(stage, later_task, TRP_OK); /* too late, changes nothing */
    close_kit();
}

/* ---- actors ---------------------------------------------------------------------------------- */

static trp_err
worker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    stage_note("work%lld", (long long)*(const int64_t *)trp_msg_payload(msg));
    return TRP_OK;
}

static void
worker_stopped(trp_ctx *ctx, void *state)
{
    (void)ctx;
    (void)state;
    stage_note("worker-stopped");
}

static const trp_behaviour worker = { .size = sizeof(trp_behaviour),
                                      .name = "worker",
                                      .version = 1,
                                      .receive = worker_receive,
                                      .post_stop = worker_stopped };

static void
an_actor_handles_its_mail_and_stops_in_its_phase(void)
{
    trp_ref ref, gone;
    uint64_t task;
    open_kit("");
    UNIT_EQUAL(trpi_shutdown_over_set(stage, phases_over, NULL), TRP_OK);
    UNIT_REQUIRE(trp_system_spawn(stage, &worker, NULL, &ref) == TRP_OK);
    UNIT_REQUIRE(trp_system_spawn(stage, &worker, NULL, &gone) == TRP_OK);
    trp_system_stop_actor(stage, gone);
    UNIT_EQUAL(trp_testkit_advance(kit, 10), TRP_OK);
    stage_events.used = 0;
    UNIT_EQUAL(trp_shutdown_add_stop(stage, TRP_SHUTDOWN_SERVICE_STOP, "worker", ref, &task),
               TRP_OK);
    UNIT_EQUAL(trp_shutdown_add_stop(stage, TRP_SHUTDOWN_SERVICE_STOP, "gone", gone, &task),
               TRP_OK);
    (void)task_add(TRP_SHUTDOWN_CLUSTER_LEAVE, at_once, "next");
    int64_t number = 7;
    trp_system_tell(stage, ref, &trp_i64_type, &number, sizeof number);
    UNIT_EQUAL(trp_shutdown_run(stage, TRP_SHUTDOWN_PROGRAM, NULL), TRP_OK);
    UNIT_EQUAL(trp_testkit_advance(kit, 100), TRP_OK);
    UNIT_TEXT(stage_events.text, "work7 worker-stopped next over");
    close_kit();
}

/* ---- a default dispatcher that is blocked ---------------------------------------------------- */

static sem_t blocked, unblock;

static void
workers_block(void)
{
    sem_post(&blocked);
    while (sem_wait(&unblock) != 0) {
    }
}

static trp_err
blocker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    workers_block();
    return TRP_OK;
}

static const trp_behaviour blocker = {
    .size = sizeof(trp_behaviour), .name = "blocker", .version = 1, .receive = blocker_receive
};

static void
task_blocks(void *arg, uint64_t task)
{
    (void)arg;
    (void)task;
    workers_block();
}

/* The only worker of the default dispatcher. in_task: a task blocks it, else an actor. Returns
 * false if it was not blocked: the machine did not run the task before its phase was over. */
static bool
ends_while_blocked(bool in_task)
{
    bool is_blocked = !in_task;
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_config_error error = { "" };
    trp_config *config = NULL;
    trp_ref ref;
    stage_events.used = 0;
    stage_events.text[0] = '\0';
    UNIT_REQUIRE(trp_config_parse_text("t.conf",
                                       "coordinated-shutdown { default-phase-timeout = 100ms\n"
                                       "phases \"cluster-leave\" { timeout = 60s } }",
                                       &config, &error) == TRP_OK);
    options.config = config;
    options.workers = 1;
    UNIT_REQUIRE(trp_system_new("blocked", &options, &stage) == TRP_OK);
    trp_config_unref(config);
    sem_init(&blocked, 0, 0);
    sem_init(&unblock, 0, 0);
    UNIT_EQUAL(trpi_shutdown_over_set(stage, phases_over, NULL), TRP_OK);
    if (in_task) {
        (void)task_add(TRP_SHUTDOWN_BEFORE_SERVICE_UNBIND, task_blocks, "blocks");
    } else {
        UNIT_REQUIRE(trp_system_spawn(stage, &blocker, NULL, &ref) == TRP_OK);
        int64_t number = 1;
        trp_system_tell(stage, ref, &trp_i64_type, &number, sizeof number);
        sem_wait(&blocked);
    }
    (void)task_add(TRP_SHUTDOWN_SERVICE_STOP, at_once, "program");
    UNIT_EQUAL(trpi_shutdown_add_own(stage, TRP_SHUTDOWN_CLUSTER_LEAVE, "own", at_once,
                                     (void *)(uintptr_t) "own"),
               TRP_OK);
    UNIT_EQUAL(trp_shutdown_run(stage, TRP_SHUTDOWN_PROGRAM, NULL), TRP_OK);
    UNIT_WAIT(stage_has("over"), 60000);
    is_blocked = is_blocked || sem_trywait(&blocked) == 0;
    UNIT_TRUE(!is_blocked || stage_is("own over"));
    sem_post(&unblock);
    trp_system_shutdown(stage);
    UNIT_EQUAL(trp_system_await(stage, 60000), TRP_OK);
    UNIT_TRUE(!is_blocked || stage_is("own over")); /* too late: it does not run */
    trp_system_free(stage);
    return is_blocked;
}

static void
phases_are_over_at_their_deadlines_while_the_default_dispatcher_is_blocked(void)
{
    int tries = 0;

    UNIT_TRUE(ends_while_blocked(false));
    while (!ends_while_blocked(true) && tries < 100) {
        tries++;
    }
    UNIT_TRUE(tries < 100);
}

/* ---- misuse, and systems that are no nodes -----------------------------------------------------
 */

static void
what_cannot_be_is_refused(void)
{
    uint64_t task = 0;
    char name[TRP_SHUTDOWN_NAME_BYTES_MAX + 2];
    open_kit("");
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    UNIT_EQUAL(trp_shutdown_add(stage, "service-stop", name, at_once, NULL, &task), TRP_EINVAL);
    name[sizeof name - 2] = '\0';
    UNIT_EQUAL(trp_shutdown_add(stage, "service-stop", name, task_later, NULL, &task), TRP_OK);
    UNIT_EQUAL(trp_shutdown_add(stage, "service-stop", "", at_once, NULL, &task), TRP_EINVAL);
    UNIT_EQUAL(trp_shutdown_add(stage, "service-stop", "x", NULL, NULL, &task), TRP_EINVAL);
    UNIT_EQUAL(trp_shutdown_add(stage, "service-stop", "x", at_once, NULL, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_shutdown_add(stage, "no-such", "x", at_once, NULL, &task), TRP_ENOENT);
    UNIT_EQUAL(trp_shutdown_add_stop(stage, "service-stop", "x", (trp_ref)TRP_REF_NONE, &task),
               TRP_EINVAL);
    UNIT_EQUAL(trp_shutdown_run(stage, TRP_SHUTDOWN_NONE, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_shutdown_run(stage, (trp_shutdown_reason)(TRP_SHUTDOWN_CLUSTER + 1), NULL),
               TRP_EINVAL);
    UNIT_EQUAL(trp_shutdown_run(stage, TRP_SHUTDOWN_PROGRAM, "no-such"), TRP_ENOENT);
    UNIT_EQUAL(trp_shutdown_reason_get(stage), TRP_SHUTDOWN_NONE);
    close_kit();
}

static void
a_system_that_is_no_node_is_stopped_at_the_end(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *system = NULL;
    UNIT_REQUIRE(trp_system_new("plain", &options, &system) == TRP_OK);
    UNIT_EQUAL(
        trp_shutdown_run(system, TRP_SHUTDOWN_PROGRAM, TRP_SHUTDOWN_BEFORE_ACTOR_SYSTEM_TERMINATE),
        TRP_OK);
    UNIT_EQUAL(trp_system_await(system, 60000), TRP_OK);
    UNIT_EQUAL(trp_shutdown_run(system, TRP_SHUTDOWN_PROGRAM, NULL), TRP_OK); /* over: nothing */
    trp_system_free(system);
}

UNIT_BEGIN("shutdown")
UNIT(tasks_run_in_the_order_of_their_phases_whatever_the_order_they_were_added_in)
UNIT(a_task_that_never_ends_is_given_up_at_the_deadline_of_its_phase)
UNIT(an_actor_handles_its_mail_and_stops_in_its_phase)
UNIT(phases_are_over_at_their_deadlines_while_the_default_dispatcher_is_blocked)
UNIT(what_cannot_be_is_refused)
UNIT(a_system_that_is_no_node_is_stopped_at_the_end)
UNIT_END
