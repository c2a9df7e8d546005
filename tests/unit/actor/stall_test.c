/* stall_test.c - an actor that holds its worker is named, once; one that may block is not. */
#include "tests/unit/actor/dispatch.h"

enum { SLOW, ALSO, MAY, TOO, MAY_NOT, ACTORS_AT };
static const char *const names[ACTORS_AT] = { "at-slow", "at-also", "at-may", "at-too",
                                              "at-may-not" };
static _Atomic int warnings[ACTORS_AT], events;
static _Atomic uint32_t held_ms;

static void
log_line(void *arg, const trp_log_line *line)
{
    (void)arg;
    /* Others may be named, too, and rightly so: the machine did not run their threads. */
    if (line->level == TRP_LOG_WARNING && strstr(line->text, "holds its worker") != NULL &&
        strncmp(line->source, "/user/", 6) == 0) {
        for (int at = 0; at < ACTORS_AT; at++) {
            if (strcmp(line->source + 6, names[at]) == 0) {
                atomic_fetch_add(&warnings[at], 1);
            }
        }
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
    for (int at = 0; at < ACTORS_AT; at++) {
        atomic_store(&warnings[at], 0);
    }
    atomic_store(&events, 0);
    ref = spawn(&listener, NULL);
    UNIT_EQUAL(trp_system_subscribe(system_, ref, &trp_stalled_type), TRP_OK);
}

/* An actor that has started and is idle, and that holds a worker from here on: what was said of its
 * start, in which it may have had no core, does not count. */
static void
hold_at(int at, const char *dispatcher)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    uint64_t before = atomic_load(&handled);
    int waiting = atomic_load(&gate_waiting);
    trp_mailbox_view view;
    trp_ref ref = TRP_REF_NONE;

    options.name = names[at];
    options.dispatcher = dispatcher;
    UNIT_EQUAL(trp_system_spawn(system_, &noter, &options, &ref), TRP_OK);
    tell(ref, &dispatched_work_type, 0, nobody);
    UNIT_WAIT(atomic_load(&handled) == before + 1, 5000);
    UNIT_WAIT(trp_mailbox_look(system_, ref, &view) == TRP_OK && view.idle, 5000);
    UNIT_EQUAL(trp_log_flush(system_, 60000), TRP_OK);
    atomic_store(&warnings[at], 0);
    tell(ref, &dispatched_block_type, 0, nobody);
    UNIT_WAIT(atomic_load(&gate_waiting) == waiting + 1, 5000);
}

/* Of the held ones, before they are let go: who stops later may have no core, too. */
static void
let_go(void)
{
    UNIT_EQUAL(trp_log_flush(system_, 60000), TRP_OK);
    for (int at = 0; at < ACTORS_AT; at++) {
        UNIT_TRUE(atomic_load(&warnings[at]) <= 1);
    }
    atomic_store(&gate_open, 1);
    end();
}

/* Issue 3, stall-warning: with the path, as a log line and an event, once. */
static void
an_actor_that_holds_its_worker_is_named_once(void)
{
    start_watched(300);
    hold_at(SLOW, NULL);
    UNIT_WAIT(atomic_load(&warnings[SLOW]) == 1 && atomic_load(&events) >= 1, 5000);
    UNIT_TRUE(atomic_load(&held_ms) >= 300);
    hold_at(ALSO, NULL); /* some looks later */
    UNIT_WAIT(atomic_load(&warnings[ALSO]) == 1, 5000);
    UNIT_EQUAL(atomic_load(&warnings[SLOW]), 1);
    let_go();
}

/* Those of pinned and blocking dispatchers may block; the others are named meanwhile. */
static void
actors_that_may_block_are_not_named(void)
{
    start_watched(200);
    hold_at(MAY, "blocking");
    hold_at(TOO, "pinned");
    hold_at(MAY_NOT, "affinity");
    UNIT_WAIT(atomic_load(&warnings[MAY_NOT]) == 1, 5000);
    UNIT_EQUAL(atomic_load(&warnings[MAY]), 0);
    UNIT_EQUAL(atomic_load(&warnings[TOO]), 0);
    let_go();
}

/* 0 is the default of a second; UINT32_MAX is off. */
static void
the_warning_can_be_off(void)
{
    start_watched(UINT32_MAX);
    hold_at(SLOW, NULL);
    for (int i = 0; i < 100; i++) { /* others go on meanwhile */
        tell(spawn(&noter, NULL), &dispatched_work_type, 0, nobody);
        UNIT_WAIT(atomic_load(&handled) == (uint64_t)i + 2, 5000);
    }
    let_go();
    UNIT_EQUAL(atomic_load(&warnings[SLOW]), 0);
}

UNIT_BEGIN("stall")
UNIT(an_actor_that_holds_its_worker_is_named_once)
UNIT(actors_that_may_block_are_not_named)
UNIT(the_warning_can_be_off)
UNIT_END
