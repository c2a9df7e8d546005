/* crew.h - workers for tests of routers, and a world whose random numbers follow from a seed. */
#ifndef TESTS_UNIT_PATTERN_CREW_H
#define TESTS_UNIT_PATTERN_CREW_H

#include <troupe/router.h>

#include "actor/kernel/system.h"
#include "tests/unit/actor/stage.h"

#define CREW_MAX 64

/* ---- workers --------------------------------------------------------------------------------- */

static _Atomic int crew_started, crew_stopped, crew_restarted, crew_gate, crew_held;
static _Atomic int64_t crew_total; /* sums of those that have ended */

static inline trp_err
crew_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    (void)state;
    (void)args;
    atomic_fetch_add(&crew_started, 1);
    return TRP_OK;
}
static inline trp_err
crew_post_restart(trp_ctx *ctx, void *state, const trp_failure *why, const trp_msg *args)
{
    (void)ctx;
    (void)state;
    (void)why;
    (void)args;
    atomic_fetch_add(&crew_restarted, 1);
    return TRP_OK;
}
static inline void
crew_post_stop(trp_ctx *ctx, void *state)
{
    (void)ctx;
    atomic_fetch_add(&crew_total, *(const int64_t *)state);
    atomic_fetch_add(&crew_stopped, 1);
}
/* Long texts: their length is added up. "who": its name; "hold": until the gate opens; "fail"; "as
 * router": replies in its parent's name; all other texts are noted as "name:text"; numbers are
 * added up and asked for with "sum". */
static inline trp_err
crew_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t *sum = state;
    char path[256];
    const char *name = stage_name(trp_ctx_system(ctx), trp_self(ctx), path, sizeof path);

    if (trp_msg_is(msg, &trp_i64_type)) {
        *sum += *(const int64_t *)trp_msg_payload(msg);
    } else if (trp_msg_bytes(msg) > 100) {
        *sum += (int64_t)trp_msg_bytes(msg);
    } else if (stage_said(msg, "who")) {
        trp_reply_text(ctx, name);
    } else if (stage_said(msg, "sum")) {
        trp_reply(ctx, &trp_i64_type, sum, sizeof *sum);
    } else if (stage_said(msg, "hold")) {
        atomic_fetch_add(&crew_held, 1);
        while (atomic_load(&crew_gate) == 0) {
            unit_pause();
        }
    } else if (stage_said(msg, "fail")) {
        trp_fail(ctx, 1, "told to");
    } else if (stage_said(msg, "as router")) {
        trp_tell_as(ctx, trp_sender(ctx), trp_parent(ctx), &trp_string_type, name, strlen(name));
    } else if (trp_msg_is(msg, &trp_string_type)) {
        stage_note("%s:%.*s", name, (int)trp_msg_bytes(msg), (const char *)trp_msg_payload(msg));
    }
    return TRP_OK;
}
static const trp_behaviour crew_behaviour = { .size = sizeof(trp_behaviour),
                                              .name = "worker",
                                              .version = 1,
                                              .state_bytes = sizeof(int64_t),
                                              .receive = crew_receive,
                                              .pre_start = crew_pre_start,
                                              .post_stop = crew_post_stop,
                                              .post_restart = crew_post_restart };

static inline trp_system *
crew_open(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;

    atomic_store(&crew_started, 0);
    atomic_store(&crew_stopped, 0);
    atomic_store(&crew_restarted, 0);
    atomic_store(&crew_gate, 0);
    atomic_store(&crew_held, 0);
    atomic_store(&crew_total, 0);
    options.workers = 4;
    return stage_open_with(options);
}

static inline trp_ref
crew_router(trp_system *system, const char *name, const char *logic, uint32_t instances)
{
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;

    options.logic = logic;
    options.instances = instances;
    UNIT_EQUAL(trp_system_router_spawn(system, &crew_behaviour, NULL, name, &options, &ref),
               TRP_OK);
    return ref;
}

/* The routees, and their number. */
static inline uint32_t
crew_of(trp_system *system, trp_ref router, trp_ref refs[CREW_MAX])
{
    uint32_t count = 0;

    if (trp_router_routees(system, router, refs, CREW_MAX, &count) != TRP_OK) {
        return UINT32_MAX;
    }
    return count;
}

static inline uint32_t
crew_count(trp_system *system, trp_ref router)
{
    trp_ref refs[CREW_MAX];

    return crew_of(system, router, refs);
}

/* Where a message would go; TRP_REF_NONE: not to exactly one. */
static inline trp_ref
crew_route(trp_system *system, trp_ref router, const trp_type *type, const void *payload,
           size_t bytes)
{
    trp_ref none = TRP_REF_NONE;
    trp_destination destination;
    uint32_t count = 0;

    UNIT_EQUAL(
        trp_router_route(system, router, none, type, payload, bytes, &destination, 1, &count),
        TRP_OK);
    return count == 1 ? destination.to : none;
}

static inline int
crew_index(const trp_ref *refs, uint32_t count, trp_ref ref)
{
    for (uint32_t i = 0; i < count; i++) {
        if (trp_ref_equal(refs[i], ref)) {
            return (int)i;
        }
    }
    return -1;
}

static inline int64_t
crew_sum(trp_system *system, trp_ref ref)
{
    trp_msg *reply = NULL;
    int64_t sum = -1;

    if (UNIT_EQUAL(trp_system_ask(system, ref, &trp_string_type, "sum", 3, 60000, &reply),
                   TRP_OK)) {
        sum = *(const int64_t *)trp_msg_payload(reply);
    }
    trp_msg_free(reply);
    return sum;
}

/* ---- a world of one seed --------------------------------------------------------------------- */

typedef struct crew_world {
    trpi_world world;
    trpi_world *real;
    _Atomic uint64_t seed;
} crew_world;

static inline uint64_t
crew_mono(trpi_world *world)
{
    return trpi_world_mono_ns(((crew_world *)(void *)world)->real);
}
static inline int64_t
crew_wall(trpi_world *world)
{
    return trpi_world_wall_ms(((crew_world *)(void *)world)->real);
}
static inline uint64_t
crew_random(trpi_world *world)
{
    uint64_t v = atomic_fetch_add(&((crew_world *)(void *)world)->seed, 0x9e3779b97f4a7c15u);

    v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
    v = (v ^ v >> 27) * 0x94d049bb133111ebu;
    return v ^ v >> 31;
}
static inline void
crew_world_free(trpi_world *world)
{
    (void)world;
}

static inline trp_system *
crew_open_seeded(crew_world *world, uint64_t seed)
{
    static const trpi_world_ops ops = { .name = "seeded",
                                        .mono_ns = crew_mono,
                                        .wall_ms = crew_wall,
                                        .random_u64 = crew_random,
                                        .free = crew_world_free };
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *system = NULL;

    world->world.ops = &ops;
    atomic_init(&world->seed, seed);
    UNIT_REQUIRE(trpi_world_real_new(&world->real) == TRP_OK);
    options.workers = 2;
    options.log = stage_log;
    UNIT_REQUIRE(trpi_system_new_in(&world->world, "stage", &options, &system) == TRP_OK);
    return system;
}

static inline void
crew_close_seeded(trp_system *system, crew_world *world)
{
    stage_close(system);
    trpi_world_free(world->real);
}

#endif
