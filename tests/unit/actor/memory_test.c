/* memory_test.c - memory and clean-up that belong to an actor; every allocation fails once. */
#include "tests/unit/actor/stage.h"

static trp_ref other;

static void
note_arg(void *arg)
{
    stage_note("%s", (const char *)arg);
}

static trp_err
nothing(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    (void)ctx;
    (void)state;
    (void)arg;
    (void)err;
    (void)reply;
    return TRP_OK;
}

static trp_err same_receive(trp_ctx *ctx, void *state, const trp_msg *msg);

static const trp_behaviour owner;

/* Call everything that can fail with TRP_ENOMEM, once. */
static trp_err
use_all(trp_ctx *ctx, const trp_msg *msg)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref kid;
    trp_err err;

    options.name = "kid";
    options.args_type = &trp_string_type;
    options.args = "x";
    options.args_bytes = 1;
    err = trp_watch(ctx, other);
    if (err == TRP_OK) {
        err = trp_ask(ctx, other, &trp_string_type, "ping", 4, 5000, nothing, NULL);
    }
    if (err == TRP_OK) {
        err = trp_timer_once(ctx, 1, 5000, &trp_string_type, "x", 1);
    }
    if (err == TRP_OK) {
        err = trp_timer_repeat(ctx, 2, 5000, 5000, &trp_string_type, "x", 1);
    }
    if (err == TRP_OK) {
        err = trp_become(ctx, same_receive, 1);
    }
    if (err == TRP_OK) {
        err = trp_stash(ctx, msg);
    }
    if (err == TRP_OK) {
        err = trp_defer(ctx, note_arg, "deferred");
    }
    if (err == TRP_OK) {
        err = trp_subscribe(ctx, &trp_dead_letter_type);
    }
    if (err == TRP_OK) {
        err = trp_spawn(ctx, &owner, &options, &kid);
    }
    if (err == TRP_OK) {
        err = trp_select_tell(ctx, "/user/other", &trp_string_type, "hello", 5);
    }
    if (err == TRP_OK) {
        err = trp_resolve(ctx, "/user/other", 5000, nothing, NULL);
    }
    if (err == TRP_OK) {
        (void)trp_alloc(ctx, 100);
        trp_receive_timeout_set(ctx, 60000);
    }
    return err;
}

static _Atomic long fail_at = -1;

static trp_err
same_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (stage_said(msg, "ping")) {
        trp_reply_text(ctx, "pong");
    } else if (stage_said(msg, "memory")) {
        char *one = trp_alloc(ctx, 10);
        char *two = trp_alloc(ctx, 1000);

        UNIT_TRUE(one[0] == 0 && two[999] == 0);
        UNIT_EQUAL((uintptr_t)two % 16, 0);
        memset(two, 1, 1000);
        trp_alloc_free(ctx, one);
        trp_alloc_free(ctx, NULL);
        UNIT_EQUAL(trp_defer(ctx, note_arg, "first"), TRP_OK);
        UNIT_EQUAL(trp_defer(ctx, note_arg, "last"), TRP_OK);
        UNIT_EQUAL(trp_defer(ctx, NULL, NULL), TRP_EINVAL);
    } else if (stage_said(msg, "fail")) {
        trp_fail(ctx, 0, "oops");
    } else if (stage_said(msg, "huge")) {
        (void)trp_alloc(ctx, SIZE_MAX - 8);
        stage_note("impossible");
    } else if (stage_said(msg, "no memory")) {
        trpi_alloc_fail_here_after(0);
        (void)trp_alloc(ctx, 10);
        stage_note("impossible");
    } else if (stage_said(msg, "use all")) {
        trp_err err;

        trpi_alloc_fail_here_after(atomic_load(&fail_at));
        err = use_all(ctx, msg);
        trpi_alloc_fail_after(-1);
        stage_note("used=%s", trp_err_name(err));
    }
    return TRP_OK;
}
static const trp_behaviour owner = { .size = sizeof(trp_behaviour),
                                     .name = "owner",
                                     .version = 1,
                                     .state_bytes = 16,
                                     .receive = same_receive };
static char answer[32];

/* Failure: what the state had is released with it. */
static void
memory_and_deferred_calls_end_with_the_instance(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &owner, "a");

    stage_tell(system, a, "memory");
    stage_tell(system, a, "fail");
    STAGE_EXPECT("last first"); /* at restart */
    stage_tell(system, a, "memory");
    UNIT_EQUAL(trp_system_graceful_stop(system, a, 60000), TRP_OK);
    UNIT_WAIT(stage_has("last first"), 5000);
    stage_close(system);
}

/* Out of memory inside a behaviour is that actor's failure */
static void
out_of_memory_is_the_failure_of_the_actor(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &owner, "a");

    stage_tell(system, a, "huge");
    UNIT_WAIT(stage_book_has(&stage_lines, "/user/a: failed: out of memory"), 5000);
    stage_tell(system, a, "no memory");
    UNIT_EQUAL(stage_ask(system, a, "ping", answer, sizeof answer), TRP_OK);
    trpi_alloc_fail_after(-1);
    UNIT_FALSE(stage_has("impossible"));
    UNIT_WAIT(stage_book_has(&stage_lines, "TRP_ENOMEM"), 5000);
    stage_close(system);
}

/* Each allocation of a behaviour fails once: an error or a failure, and the system lives and ends.
 * Only the worker's own count: a guardian may still be starting on another thread, and a system
 * whose guardian cannot start stops. */
static void
every_allocation_of_a_behaviour_may_fail(void)
{
    bool complete = false;

    for (long n = 0; n < 200 && !complete; n++) {
        trp_system *system = stage_open();
        trp_ref a;

        other = stage_spawn(system, &owner, "other");
        a = stage_spawn(system, &owner, "a");
        UNIT_EQUAL(stage_ask(system, a, "ping", answer, sizeof answer), TRP_OK);
        atomic_store(&fail_at, n);
        stage_tell(system, a, "use all");
        UNIT_WAIT(stage_has("used=") || stage_book_has(&stage_lines, "/user/a: failed"), 5000);
        trpi_alloc_fail_after(-1);
        complete = stage_has("used=TRP_OK");
        if (!complete && stage_has("used=")) {
            UNIT_TRUE(stage_has("used=TRP_ENOMEM"));
        }
        UNIT_EQUAL(stage_ask(system, a, "ping", answer, sizeof answer), TRP_OK);
        stage_close(system);
    }
    UNIT_TRUE(complete);
}

/* Each allocation of a birth fails once: an error and nothing left behind (leaks are the
 * sanitizer's to find). */
static void
every_allocation_of_a_system_may_fail(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_err err = TRP_ENOMEM;
    long n;

    options.log = stage_log;
    options.workers = 1;
    for (n = 0; n < 500 && err != TRP_OK; n++) {
        trp_system *system = NULL;

        trpi_alloc_fail_here_after(n);
        err = trp_system_new("stage", &options, &system);
        trpi_alloc_fail_after(-1);
        if (err == TRP_OK) {
            stage_close(system);
        } else {
            UNIT_TRUE(err == TRP_ENOMEM || err == TRP_EIO);
        }
    }
    UNIT_EQUAL(err, TRP_OK);
    UNIT_TRUE(n > 5);
}

/* In this program the library and the actors' code are one range of addresses, so a fault cannot be
 * attributed */
static void
a_static_library_refuses_the_fault_trap(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *system = NULL;

    options.fault_trap = TRP_FAULT_TRAP_ON;
    UNIT_EQUAL(trp_system_new("stage", &options, &system), TRP_EUNSUPPORTED);
    UNIT_TRUE(system == NULL);
    options.fault_trap = TRP_FAULT_TRAP_REPORT;
    stage_close(stage_open_with(options));
}

UNIT_BEGIN("memory")
UNIT(memory_and_deferred_calls_end_with_the_instance)
UNIT(out_of_memory_is_the_failure_of_the_actor)
UNIT(every_allocation_of_a_behaviour_may_fail)
UNIT(every_allocation_of_a_system_may_fail)
UNIT(a_static_library_refuses_the_fault_trap)
UNIT_END
