/* run.c - a run of a demonstration: a system of its own, from start to end.
 *
 * Why.     The screen is to show what the actors do, and no program that uses the library is to
 *          pay for that. So the actors are the tool's, in the tool's process, and each says itself
 *          on the stage what it gets and tells.
 * Shape.   idle --start--> running --all handled--> done
 *                             |---stop, or no steps left---> stopping --all handled--> stopped
 * Must hold.
 *   demo-run-R1  A message is on the stage before it is told, and a turn tells before it ends. So
 *       when nothing waits and nobody is busy, all is over.  (trpi_demo_tell, message_receive)
 * Limits.  TRPI_STAGE_THREADS_MAX, TRPI_STAGE_ACTORS_MAX, TRPI_STAGE_STEPS_MAX.
 * Tests.   tests/unit/demo/run_test.c, tests/system/demo.sh
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "cluster/demo/demo.h"

#define STOP_MS 60000u /* a turn sees a stop within a slice of work */
#define SLICE_MS 20u   /* of work, after which a stop is seen */
#define STEP_NS UINT64_C(1000000000)

const char *const trpi_demo_subjects[TRPI_DEMO_SUBJECTS] = {
    "init",
    "repeat",
    "later",
    "produceN",
    "produce1",
    "construct",
    "constructionComplete",
    "createPartition",
    "mapWorker",
    "mapResponse",
    "reduceWorker",
    "reduceResponse",
    "scan",
    "scanned",
};

const trpi_demo_info trpi_demo_list[TRPI_DEMO_NAMES] = {
    { "countdown", "a storm of messages that counts down and quiets" },
    { "producer-consumer", "producers order items, their consumers build them" },
    { "map-reduce", "the sum of the squares of 1,000 integers, in 100 partitions" },
    { "virus-scan", "text files of a directory tree are searched for suspicious patterns" },
    { "all", "all of these at once" },
    { "sequence", "one after the other, with a pause between them" },
};

static trp_type message_type = {
    "troupe.demo.message", sizeof(trpi_demo_msg), 1, TRP_TYPE_LOCAL, NULL, 0, 0
};
static trp_type *const message_types[] = { &message_type };
static const trp_protocol protocol = { "troupe.demo", message_types, 1, 0 };
static const trp_protocol *const accepts[] = { &protocol, NULL };

/* A process has one demonstration; its actors find it here. Written before there are any. */
static trpi_demo *the_demo;

uint32_t
trpi_demo_dice(uint32_t *seed, uint32_t sides)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % sides;
}

/* ---- actors ---------------------------------------------------------------------------------- */

static trp_err
message_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trpi_demo *demo = the_demo;
    const trpi_demo_msg *m = trp_msg_payload(msg);
    trpi_demo_cell *cell = &demo->cells[m->to];
    char name[TRPI_STAGE_NAME_BYTES];
    uint32_t thread = trpi_demo_threads_current();
    (void)state;
    trpi_stage_turn_begin(demo->stage, thread, m->from, m->to, trpi_world_mono_ns(demo->world));
    trpi_stage_name(demo->stage, m->to, name);
    trpi_demo_trace(demo, 'T', "%s:%s %s(%u)", trpi_stage_kinds[cell->kind], name,
                    trpi_demo_subjects[m->subject], m->count);
    trp_err err = trpi_demo_turn(demo, ctx, cell, m);
    if (err != TRP_OK) {
        trpi_demo_trace(demo, 'W', "%s:%s failed: %s", trpi_demo_subjects[m->subject], name,
                        trp_strerror(err));
    }
    trpi_stage_turn_end(demo->stage, thread, trpi_world_mono_ns(demo->world));
    return TRP_OK; /* the warning was it: a restart would not make it better */
}

static const trp_behaviour behaviour = { .size = sizeof behaviour,
                                         .name = "troupe.demo",
                                         .version = 1,
                                         .receive = message_receive,
                                         .accepts = accepts };

trp_err
trpi_demo_spawn(trpi_demo *demo, trp_ctx *ctx, trpi_stage_kind kind, const char *name,
                uint32_t *ret_index)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    uint32_t index = 0;
    trp_err err = trpi_stage_actor_add(demo->stage, name, kind, &index);
    if (err != TRP_OK) {
        trpi_demo_trace(demo, 'W', "no room for %s: there are %u actors", name,
                        TRPI_STAGE_ACTORS_MAX);
        return err;
    }
    options.name = name;
    options.dispatcher = "demo";
    demo->cells[index] = (trpi_demo_cell){ .kind = kind, .seed = (uint32_t)demo->run + 7 * index };
    trp_ref *ref = &demo->cells[index].ref;
    err = ctx != NULL ? trp_spawn(ctx, &behaviour, &options, ref)
                      : trp_system_spawn(demo->system, &behaviour, &options, ref);
    if (err == TRP_OK) {
        *ret_index = index;
    }
    return err;
}

static bool
is_stopping(const trpi_demo *demo)
{
    return atomic_load_explicit(&demo->stopping, memory_order_relaxed);
}

void
trpi_demo_tell(trpi_demo *demo, trp_ctx *ctx, uint32_t from, uint32_t to, trpi_demo_subject subject,
               uint32_t count, uint32_t item)
{
    const trpi_demo_msg msg = { (uint32_t)subject, from, to, count, item };
    if (is_stopping(demo)) {
        return;
    }
    trpi_stage_sent(demo->stage, from, to); /* demo-run-R1 */
    if (ctx != NULL) {
        trp_tell(ctx, demo->cells[to].ref, &message_type, &msg, 0);
    } else {
        trp_system_tell(demo->system, demo->cells[to].ref, &message_type, &msg, 0);
    }
}

trp_err
trpi_demo_later(trpi_demo *demo, trp_ctx *ctx, uint32_t self, trpi_demo_subject subject,
                uint32_t count, uint32_t hundredths)
{
    const trpi_demo_msg msg = { (uint32_t)subject, self, self, count, 0 };
    uint32_t delay_ms = demo->pace_ms * hundredths / 100;
    if (is_stopping(demo)) {
        return TRP_OK;
    }
    trp_err err = trp_timer_once(ctx, ++demo->cells[self].timers, delay_ms > 0 ? delay_ms : 1,
                                 &message_type, &msg, 0);
    if (err == TRP_OK) {
        trpi_stage_sent(demo->stage, self, self); /* it is handled by this actor: not before now */
    }
    return err;
}

void
trpi_demo_work(const trpi_demo *demo, uint32_t hundredths)
{
    uint32_t left_ms = demo->pace_ms * hundredths / 100;
    while (left_ms > 0 && !is_stopping(demo)) {
        uint32_t ms = left_ms < SLICE_MS ? left_ms : SLICE_MS;
        const struct timespec pause = { 0, (long)ms * 1000000 };
        (void)nanosleep(&pause, NULL);
        left_ms -= ms;
    }
}

/* ---- start and end --------------------------------------------------------------------------- */

static void
job_run(void *arg, trp_dispatcher_job *job)
{
    const trpi_demo *demo = arg;
    trp_dispatcher_job_run(demo->system, job);
}

static trp_err
system_make(trpi_demo *demo)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_dispatcher_options dispatcher = TRP_DISPATCHER_OPTIONS_INIT;
    options.workers = 1;
    options.log_level = TRP_LOG_ERROR;
    trp_err err = trp_protocol_register(&protocol);
    err = err == TRP_OK ? trp_system_new("demo", &options, &demo->system) : err;
    err = err == TRP_OK ? trpi_demo_threads_new(demo->stage, job_run, demo, &demo->executor) : err;
    err = err == TRP_OK ? trpi_demo_threads_set(demo->executor, demo->threads + demo->added) : err;
    dispatcher.kind = TRP_DISPATCHER_CUSTOM;
    dispatcher.throughput = 1; /* the article: one message, then the next actor */
    dispatcher.execute = trpi_demo_threads_push;
    dispatcher.arg = demo->executor;
    return err == TRP_OK ? trp_dispatcher_register(demo->system, "demo", &dispatcher) : err;
}

void
trpi_demo_end(trpi_demo *demo)
{
    atomic_store_explicit(&demo->stopping, true, memory_order_relaxed);
    if (demo->system != NULL && trp_system_stop(demo->system, STOP_MS) != TRP_OK) {
        trpi_demo_trace(demo, 'W', "an actor does not end: its turn is waited for");
    }
    trpi_demo_threads_free(demo->executor); /* they have run the actors to their end */
    demo->executor = NULL;
    trp_system_free(demo->system);
    demo->system = NULL;
    trpi_demo_scan_end(demo);
}

/* Make the system, and begin with one play, or all. */
static trp_err
play_start(trpi_demo *demo, trpi_demo_name first, trpi_demo_name last)
{
    trpi_demo_end(demo);
    the_demo = demo;
    demo->run++;
    demo->is_over = false;
    demo->step_at_ns = trpi_world_mono_ns(demo->world) + STEP_NS;
    demo->pause_until_ns = 0;
    atomic_store_explicit(&demo->stopping, false, memory_order_relaxed);
    trpi_stage_reset(demo->stage, demo->threads + demo->added, trpi_world_mono_ns(demo->world));
    trp_err err = system_make(demo);
    for (trpi_demo_name name = first; name <= last && err == TRP_OK; name++) {
        trpi_demo_trace(demo, 'T', "%s begins: %u threads", trpi_demo_list[name].name,
                        demo->threads + demo->added);
        err = trpi_demo_play(demo, name);
    }
    if (err != TRP_OK) {
        trpi_demo_trace(demo, 'W', "cannot begin: %s", trp_strerror(err));
        trpi_demo_end(demo);
    }
    return err;
}

trp_err
trpi_demo_start(trpi_demo *demo, trpi_demo_name name, uint32_t threads, uint32_t steps)
{
    trpi_assert(threads > 0 && threads <= TRPI_STAGE_THREADS_MAX);
    trpi_assert(steps > 0 && steps <= TRPI_STAGE_STEPS_MAX);
    trpi_demo_end(demo);
    demo->name = name;
    demo->threads = threads;
    demo->added = 0;
    demo->steps = steps;
    demo->play = name < TRPI_DEMO_PLAYS ? name : 0;
    return play_start(demo, demo->play, name == TRPI_DEMO_ALL ? TRPI_DEMO_PLAYS - 1 : demo->play);
}

void
trpi_demo_stop(trpi_demo *demo)
{
    if (demo->system != NULL && !demo->is_over && !is_stopping(demo)) {
        trpi_demo_trace(demo, 'T', "stop: nothing is sent any more, what waits is handled");
        atomic_store_explicit(&demo->stopping, true, memory_order_relaxed);
    }
    demo->pause_until_ns = 0;
}

/* Something of the run is still to be done. */
static bool
is_running(const trpi_demo *demo)
{
    bool is_last = demo->name != TRPI_DEMO_SEQUENCE || demo->play + 1 == TRPI_DEMO_PLAYS;
    return demo->system != NULL && !(demo->is_over && (is_stopping(demo) || is_last));
}

/* Have so many threads beyond the first ones. */
static trp_err
added_set(trpi_demo *demo, uint32_t added)
{
    uint32_t count = demo->threads + added;
    bool is_more = added > demo->added;
    trp_err err = trpi_demo_threads_set(demo->executor, count);
    if (err == TRP_OK) {
        demo->added = added;
        trpi_demo_trace(demo, 'T', "task %s: %u threads", is_more ? "added" : "removed", count);
    }
    return err;
}

trp_err
trpi_demo_task_add(trpi_demo *demo)
{
    return !is_running(demo) ? TRP_ESTATE
           : demo->threads + demo->added == TRPI_STAGE_THREADS_MAX
               ? TRP_ELIMIT
               : added_set(demo, demo->added + 1);
}

trp_err
trpi_demo_task_remove(trpi_demo *demo)
{
    return !is_running(demo)  ? TRP_ESTATE
           : demo->added == 0 ? TRP_ELIMIT
                              : added_set(demo, demo->added - 1);
}

/* A run of a sequence goes on with the next play, after a pause. */
static void
sequence_step(trpi_demo *demo, uint64_t now_ns)
{
    if (demo->name != TRPI_DEMO_SEQUENCE || is_stopping(demo) ||
        demo->play + 1 == TRPI_DEMO_PLAYS) {
        return;
    }
    if (demo->pause_until_ns == 0) {
        demo->pause_until_ns = now_ns + UINT64_C(1000000) * demo->pace_ms;
    } else if (now_ns >= demo->pause_until_ns) {
        demo->play++;
        (void)play_start(demo, demo->play, demo->play); /* an error is in the trace */
    }
}

void
trpi_demo_tick(trpi_demo *demo)
{
    trpi_stage_figures figures;
    uint64_t now_ns = trpi_world_mono_ns(demo->world);
    if (demo->system == NULL) {
        return;
    }
    trpi_stage_figures_get(demo->stage, &figures);
    bool was_over = demo->is_over;
    demo->is_over = figures.waiting == 0 && figures.busy == 0; /* demo-run-R1 */
    if (demo->is_over && !was_over) {
        trpi_demo_trace(demo, 'T', "%s: all %llu messages were handled",
                        is_stopping(demo) ? "stopped" : "done",
                        (unsigned long long)figures.completed);
    }
    if (now_ns >= demo->step_at_ns) {
        demo->step_at_ns = now_ns + STEP_NS;
        if (!demo->is_over || figures.accepts_per_s + figures.completions_per_s > 0) {
            trpi_stage_step(demo->stage, now_ns);
        }
        if (figures.step + 1 >= demo->steps) {
            trpi_demo_stop(demo);
        }
    }
    if (demo->is_over) {
        sequence_step(demo, now_ns);
    }
}

const char *
trpi_demo_state(const trpi_demo *demo)
{
    if (demo->system == NULL) {
        return "idle";
    }
    if (is_stopping(demo)) {
        return demo->is_over ? "stopped" : "stopping";
    }
    return is_running(demo) ? "running" : "done";
}
