/* stall_test.c - an actor that holds its worker is named, once; one that may block is not. */
#include "tests/unit/actor/dispatch.h"

static _Atomic int warnings, events;
static char warned_path[256];
static _Atomic uint32_t held_ms;

static void
log_line(void *arg, const trp_log_line *line)
{
    (void)arg;
    /* Others may be named, too, and rightly so: the machine did not run their threads. */
    if (line->level == TRP_LOG_WARNING && strstr(line->text, "holds its worker") != NULL &&
        strncmp(line->source, "/user/at-", 9) == 0) {
        snprintf(warned_path, sizeof warned_path, "%s", line->source);
        atomic_fetch_add(&warnings, 1);
    }
}

static trp_err
listen(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    atomic_store(&held_ms, ((const trp_stalled *)trp_msg_payload(msg))->held_ms);
    atomic_fetch_add(&events, 1);
    return TRP_OK;
}
static const trp_behaviour listener = {
    .size = sizeof(trp_behaviour), .name = "listener", .version = 1, .receive = listen
};

static void
start_watched(uint32_t stall_warning_ms)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_ref ref;

    UNIT_REQUIRE(trp_protocol_register(&dispatched_protocol) == TRP_OK);
    options.workers = 3; /* two are held, one carries the log line and the event */
    options.log = log_line;
    options.stall_warning_ms = stall_warning_ms;
    UNIT_REQUIRE(trp_system_new("stall", &options, &system_) == TRP_OK);
    reset();
    atomic_store(&warnings, 0);
    atomic_store(&events, 0);
    ref = spawn(&listener, NULL);
    UNIT_EQUAL(trp_system_subscribe(system_, ref, &trp_stalled_type), TRP_OK);
}

static trp_ref
spawn_named(const char *name, const char *dispatcher)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;

    options.name = name;
    options.dispatcher = dispatcher;
    UNIT_EQUAL(trp_system_spawn(system_, &noter, &options, &ref), TRP_OK);
    return ref;
}

/* Issue 3, stall-warning: with the path, as a log line and an event, once. */
static void
an_actor_that_holds_its_worker_is_named_once(void)
{
    trp_ref ref;

    start_watched(300);
    ref = spawn_named("at-slow", NULL);
    tell(ref, &dispatched_block_type, 0, nobody);
    UNIT_WAIT(atomic_load(&warnings) == 1 && atomic_load(&events) >= 1, 5000);
    UNIT_TEXT(warned_path, "/user/at-slow");
    UNIT_TRUE(atomic_load(&held_ms) >= 300);
    tell(spawn_named("at-also", NULL), &dispatched_block_type, 0, nobody); /* some looks later */
    UNIT_WAIT(atomic_load(&gate_waiting) == 2, 5000);
    UNIT_WAIT(atomic_load(&warnings) == 2, 5000);
    UNIT_TEXT(warned_path, "/user/at-also");
    atomic_store(&gate_open, 1);
    end();
    UNIT_EQUAL(atomic_load(&warnings), 2);
}

/* Those of pinned and blocking dispatchers may block; the others are named meanwhile. */
static void
actors_that_may_block_are_not_named(void)
{
    start_watched(200);
    tell(spawn_named("at-may", "blocking"), &dispatched_block_type, 0, nobody);
    tell(spawn_named("at-too", "pinned"), &dispatched_block_type, 0, nobody);
    UNIT_WAIT(atomic_load(&gate_waiting) == 2, 5000);
    tell(spawn_named("at-may-not", "affinity"), &dispatched_block_type, 0, nobody);
    UNIT_WAIT(atomic_load(&warnings) == 1, 5000);
    UNIT_TEXT(warned_path, "/user/at-may-not");
    atomic_store(&gate_open, 1);
    end();
    UNIT_EQUAL(atomic_load(&warnings), 1);
}

/* 0 is the default of a second; UINT32_MAX is off. */
static void
the_warning_can_be_off(void)
{
    start_watched(UINT32_MAX);
    tell(spawn_named("at-slow", NULL), &dispatched_block_type, 0, nobody);
    UNIT_WAIT(atomic_load(&gate_waiting) == 1, 5000);
    for (int i = 0; i < 100; i++) { /* others go on meanwhile */
        tell(spawn(&noter, NULL), &dispatched_work_type, 0, nobody);
        UNIT_WAIT(atomic_load(&handled) == (uint64_t)i + 1, 5000);
    }
    atomic_store(&gate_open, 1);
    end();
    UNIT_EQUAL(atomic_load(&warnings), 0);
}

UNIT_BEGIN("stall")
UNIT(an_actor_that_holds_its_worker_is_named_once)
UNIT(actors_that_may_block_are_not_named)
UNIT(the_warning_can_be_off)
UNIT_END
