/* stall_test.c - an actor that holds its worker is named, once; one that may block is not. With
 * all workers held, lines are still written, and a stop reaches the actors that it can. */
#include "tests/unit/actor/dispatch.h"

enum { SLOW, ALSO, MAY, TOO, MAY_NOT, ACTORS_AT };
static const char *const names[ACTORS_AT] = { "at-slow", "at-also", "at-may", "at-too",
                                              "at-may-not" };
static _Atomic int warnings[ACTORS_AT], events;
static _Atomic uint32_t held_ms;

/* Notes the end of the stop, and each "told". */
static pthread_mutex_t said_lock = PTHREAD_MUTEX_INITIALIZER;
static char said[65536];

static void
note_line(const trp_log_line *line)
{
    size_t used;

    pthread_mutex_lock(&said_lock);
    used = strlen(said);
    (void)snprintf(said + used, sizeof said - used, "%s\n", line->text);
    pthread_mutex_unlock(&said_lock);
}

static bool
was_said(const char *text)
{
    bool found;

    pthread_mutex_lock(&said_lock);
    found = strstr(said, text) != NULL;
    pthread_mutex_unlock(&said_lock);
    return found;
}

static void
log_line(void *arg, const trp_log_line *line)
{
    (void)arg;
    if (strcmp(line->source, "system") == 0 || strcmp(line->source, "told") == 0) {
        note_line(line);
    }
    /* Others may be named, too: the machine did not run their threads. */
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

/* An actor that has started and is idle, and that holds a worker from here on. Lines about its
 * start, when it may have had no core, do not count. */
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

/* Count the held actors before they are released: an actor that stops later may have no core,
 * too. */
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

/* Stall warning: with the path, as a log line and an event, once. */
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

/* 0 is the default of a second; TRP_OFF is off. */
static void
the_warning_can_be_off(void)
{
    start_watched(TRP_OFF);
    hold_at(SLOW, NULL);
    for (int i = 0; i < 100; i++) { /* others go on meanwhile */
        tell(spawn(&noter, NULL), &dispatched_work_type, 0, nobody);
        UNIT_WAIT(atomic_load(&handled) == (uint64_t)i + 2, 5000);
    }
    let_go();
    UNIT_EQUAL(atomic_load(&warnings[SLOW]), 0);
}

static _Atomic int ended;

static void
note_end(trp_ctx *ctx, void *state)
{
    (void)ctx;
    (void)state;
    atomic_fetch_add(&ended, 1);
}
static const trp_behaviour ender = { .size = sizeof(trp_behaviour),
                                     .name = "ender",
                                     .version = 1,
                                     .receive = listen,
                                     .post_stop = note_end };

static void
run_held(void *arg)
{
    (void)arg;
    atomic_fetch_add(&gate_waiting, 1);
    while (!atomic_load(&gate_open)) {
        unit_pause();
    }
    atomic_fetch_sub(&gate_waiting, 1);
}

/* Two workers and the actors that hold them; others that only wait, and one with its own thread. */
static void
hold_all(bool by_function)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;

    UNIT_REQUIRE(trp_protocol_register(&dispatched_protocol) == TRP_OK);
    options.workers = 2;
    options.log = log_line;
    options.stall_warning_ms = 200;
    UNIT_REQUIRE(trp_system_new("held", &options, &system_) == TRP_OK);
    reset();
    memset(said, 0, sizeof said);
    atomic_store(&ended, 0);
    for (int at = 0; at < ACTORS_AT; at++) {
        atomic_store(&warnings[at], 0);
    }
    for (int i = 0; i < 5; i++) {
        (void)spawn(&noter, NULL);
    }
    (void)spawn(&ender, "pinned");
    hold_at(SLOW, NULL);
    if (!by_function) {
        hold_at(ALSO, NULL);
    } else {
        UNIT_EQUAL(trp_dispatcher_execute(system_, "default", run_held, NULL), TRP_OK);
        UNIT_WAIT(atomic_load(&gate_waiting) == 2, 5000);
    }
}

/* Lines and warnings are written; a stop reaches the actor with a thread, and names the holders of
 * the workers. */
static void
with_all_workers_held_lines_and_a_stop_go_on(void)
{
    hold_all(false);
    UNIT_WAIT(atomic_load(&warnings[SLOW]) == 1 && atomic_load(&warnings[ALSO]) == 1, 5000);
    trp_system_log(system_, TRP_LOG_INFO, "told", "a line of the program");
    UNIT_EQUAL(trp_log_flush(system_, 60000), TRP_OK);
    UNIT_TRUE(was_said("a line of the program"));
    UNIT_EQUAL(trp_system_stop(system_, 200), TRP_ETIMEDOUT);
    UNIT_WAIT(atomic_load(&ended) == 1, 5000); /* its thread is its own */
    UNIT_WAIT((UNIT_EQUAL(trp_system_stop(system_, 50), TRP_ETIMEDOUT),
               was_said("actor /user/at-slow is stuck in its present message and holds a worker of "
                        "dispatcher default; the system does not stop") &&
                   was_said("actor /user/at-also is stuck in its present message and holds")),
              60000);
    UNIT_FALSE(was_said("actor /user is"));
    UNIT_FALSE(was_said("actor /user/$"));
    UNIT_FALSE(was_said("actor /user/$a"));
    UNIT_FALSE(was_said("actor /deadLetters"));
    UNIT_FALSE(was_said("actor /temp"));
    UNIT_FALSE(was_said("actor /remote"));
    UNIT_FALSE(was_said("actor /system"));
    UNIT_TRUE(was_said("more actors wait for a worker of dispatcher default"));
    let_go();
}

/* A function is no actor, but it holds a worker all the same. */
static void
a_function_that_holds_a_worker_is_named(void)
{
    hold_all(true);
    UNIT_WAIT(was_said("a function that was given to trp_dispatcher_execute() holds a worker of "
                       "dispatcher default") ||
                  trp_system_stop(system_, 50) == TRP_OK,
              60000);
    UNIT_TRUE(was_said("holds a worker of dispatcher default; the system does not stop"));
    let_go();
}

UNIT_BEGIN("stall")
UNIT(an_actor_that_holds_its_worker_is_named_once)
UNIT(actors_that_may_block_are_not_named)
UNIT(the_warning_can_be_off)
UNIT(with_all_workers_held_lines_and_a_stop_go_on)
UNIT(a_function_that_holds_a_worker_is_named)
UNIT_END
