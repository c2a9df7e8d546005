/* dispatch.h - what the tests of dispatchers share: a system, and actors that note where and in
 * what order they ran. */
#ifndef TESTS_UNIT_ACTOR_DISPATCH_H
#define TESTS_UNIT_ACTOR_DISPATCH_H

#include "tests/unit/unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include <troupe/troupe.h>

#define DISPATCHED_NUMBER(F, S) F(S, u64, number) F(S, ref, to)
#define DISPATCHED_MESSAGES(M, P)                                                                  \
    M(P, work, DISPATCHED_NUMBER) M(P, block, DISPATCHED_NUMBER) M(P, pass, DISPATCHED_NUMBER)
TRP_PROTOCOL_DECLARE(dispatched, DISPATCHED_MESSAGES) /* defined in dispatcher_test.c */

static trp_system *system_;

static inline void
start(uint32_t throughput)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;

    UNIT_REQUIRE(trp_protocol_register(&dispatched_protocol) == TRP_OK);
    options.workers = 2;
    options.throughput = throughput;
    options.log_level = TRP_LOG_ERROR;
    options.log_dead_letters = TRP_OFF;
    UNIT_REQUIRE(trp_system_new("dispatch", &options, &system_) == TRP_OK);
}

static inline void
end(void)
{
    UNIT_EQUAL(trp_system_stop(system_, 60000), TRP_OK);
    trp_system_free(system_);
}

static inline trp_err
add(const char *id, trp_dispatcher_kind kind, uint32_t threads_max)
{
    trp_dispatcher_options options = TRP_DISPATCHER_OPTIONS_INIT;

    options.kind = kind;
    options.threads_max = threads_max;
    return trp_dispatcher_register(system_, id, &options);
}

static inline trp_dispatcher_info
info(const char *id)
{
    trp_dispatcher_info found = { sizeof found, 0, 0, 0, 0, 0, 0 };

    UNIT_EQUAL(trp_dispatcher_find(system_, id, &found), TRP_OK);
    return found;
}

static inline trp_ref
spawn(const trp_behaviour *behaviour, const char *dispatcher)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;

    options.dispatcher = dispatcher;
    UNIT_REQUIRE(trp_system_spawn(system_, behaviour, &options, &ref) == TRP_OK);
    return ref;
}

/* ---- an actor that says where it ran, and in what order -------------------------------------- */

enum { SEEN_MAX = 4096 };
static pthread_mutex_t seen_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint32_t seen_count;
static uint64_t seen[SEEN_MAX];
static pthread_t seen_thread[SEEN_MAX];
static _Atomic int gate_open, gate_waiting;
static _Atomic uint64_t handled;
static _Atomic uint32_t two_at_once; /* turns of one actor that met */

static inline void
note(uint64_t number)
{
    uint32_t at;

    pthread_mutex_lock(&seen_lock);
    at = atomic_load(&seen_count);
    if (at < SEEN_MAX) {
        seen[at] = number;
        seen_thread[at] = pthread_self();
    }
    atomic_store(&seen_count, at + 1); /* behind what it counts */
    pthread_mutex_unlock(&seen_lock);
}

static inline trp_err
receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const dispatched_work *work = trp_msg_payload(msg);

    if (state != NULL) { /* plain memory: what one turn writes the next one sees */
        atomic_fetch_add(&two_at_once, *(int *)state != 0);
        *(int *)state = 1;
    }
    if (trp_msg_is(msg, &dispatched_block_type)) {
        atomic_fetch_add(&gate_waiting, 1);
        while (!atomic_load(&gate_open)) {
            unit_pause();
        }
        atomic_fetch_sub(&gate_waiting, 1);
    } else if (trp_msg_is(msg, &dispatched_pass_type)) {
        trp_tell(ctx, work->to, &dispatched_work_type, work, sizeof *work);
    }
    note(work->number);
    if (trp_msg_is(msg, &dispatched_work_type)) {
        atomic_fetch_add(&handled, 1);
    }
    if (state != NULL) {
        *(int *)state = 0;
    }
    return TRP_OK;
}

static inline void
stopped(trp_ctx *ctx, void *state)
{
    (void)ctx;
    (void)state;
    note(UINT64_MAX);
}

static const trp_behaviour noter __attribute__((unused)) = { .size = sizeof(trp_behaviour),
                                                             .name = "noter",
                                                             .version = 1,
                                                             .state_bytes = sizeof(int),
                                                             .receive = receive,
                                                             .post_stop = stopped };

static inline void
reset(void)
{
    atomic_store(&seen_count, 0);
    atomic_store(&gate_open, 0);
    atomic_store(&handled, 0);
}

static inline void
reset_seen(void)
{
    atomic_store(&seen_count, 0);
}

static inline void
tell(trp_ref ref, const trp_type *type, uint64_t number, trp_ref to)
{
    dispatched_work work = { number, to };

    trp_system_tell(system_, ref, type, &work, sizeof(work));
}

static const trp_ref nobody __attribute__((unused)) = TRP_REF_NONE;

/* ---- conservation ---------------------------------------------------------------------------- */

enum { TELLERS = 4, TOLD = 3000, ACTORS = 8 };
static trp_ref targets[ACTORS];

static inline void *
tell_all(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < TOLD; i++) {
        tell(targets[i % ACTORS], i % 3 == 0 ? &dispatched_pass_type : &dispatched_work_type, i,
             targets[(i + 1) % ACTORS]);
    }
    return NULL;
}

static inline uint64_t
dead_sum(void)
{
    trp_system_stats stats = { .size = sizeof stats };
    uint64_t sum = 0;

    trp_system_stats_get(system_, &stats);
    for (int i = 0; i < TRP_DEAD_REASON_COUNT; i++) {
        sum += stats.dead_letters[i];
    }
    return sum;
}

/* Several threads tell actors that tell one another, and half of the actors are stopped meanwhile:
 * each message of type work is handled, or it is a dead letter. */
static inline void
conserve_within(const char *dispatcher, bool stops, bool drops)
{
    pthread_t threads[TELLERS];
    uint64_t want = (uint64_t)TELLERS * TOLD;

    reset();
    for (int i = 0; i < ACTORS; i++) {
        targets[i] = spawn(&noter, dispatcher);
    }
    for (int i = 0; i < TELLERS; i++) {
        UNIT_REQUIRE(pthread_create(&threads[i], NULL, tell_all, NULL) == 0);
    }
    for (int i = 0; stops && i < ACTORS; i += 2) {
        trp_system_stop_actor(system_, targets[i]);
    }
    for (int i = 0; i < TELLERS; i++) {
        UNIT_EQUAL(pthread_join(threads[i], NULL), 0);
    }
    /* a pass that is handled becomes one work; a pass that is lost is one dead letter */
    UNIT_WAIT(atomic_load(&handled) + dead_sum() == want, 10000);
    if (!stops && !drops) {
        UNIT_EQUAL(dead_sum(), 0);
    }
    UNIT_EQUAL(atomic_load(&two_at_once), 0); /* each actor handles one message at a time */
}

static inline void
conserve(const char *dispatcher, bool stops)
{
    conserve_within(dispatcher, stops, false);
}

#endif
