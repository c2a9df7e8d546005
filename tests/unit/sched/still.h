/* still.h - a scheduler without threads, and a clock that only the test moves. */
#ifndef TESTS_UNIT_SCHED_STILL_H
#define TESTS_UNIT_SCHED_STILL_H

#include "base/world.h"
#include "sched/worker.h"
#include "tests/unit/unit.h"

#define MS 1000000u

typedef struct still {
    trpi_world world; /* first */
    trpi_sched *sched;
    uint64_t now_ns;
} still;

static inline uint64_t
still_mono_ns(trpi_world *world)
{
    return ((still *)(void *)world)->now_ns;
}
static inline int64_t
still_wall_ms(trpi_world *world)
{
    (void)world;
    return 0;
}
static inline uint64_t
still_random_u64(trpi_world *world)
{
    (void)world;
    return 4;
}
static inline void
still_nothing_to_free(trpi_world *world)
{
    (void)world;
}

static inline trpi_run_result
still_no_run(void *data, trpi_task *task, uint32_t handoff)
{
    (void)data;
    (void)task;
    (void)handoff;
    return TRPI_RUN_IDLE;
}
static inline void
still_no_thread(void *arg, trpi_worker *worker)
{
    (void)arg;
    (void)worker;
}
static inline uint64_t
still_work_of(void *data)
{
    return *(uint64_t *)data;
}

/* trpi_sched_free(s->sched) ends it. */
static inline void
still_open(still *s, uint32_t workers)
{
    static const trpi_world_ops world_ops = { .name = "still",
                                              .mono_ns = still_mono_ns,
                                              .wall_ms = still_wall_ms,
                                              .random_u64 = still_random_u64,
                                              .free = still_nothing_to_free };
    static const trpi_sched_ops ops = { .run = still_no_run,
                                        .thread = still_no_thread,
                                        .work = still_work_of };
    trpi_sched_options options = { workers, sizeof(uint64_t), &s->world, "still", &ops, NULL };

    *s = (still){ .world = { .ops = &world_ops }, .now_ns = 1000u * MS };
    UNIT_REQUIRE(trpi_sched_new(&options, &s->sched) == TRP_OK); /* never started: no threads */
}

#endif
