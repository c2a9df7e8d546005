/* desk.h - one scheduler in the real world, for the tests of the room. */
#ifndef TESTS_UNIT_SCHED_DESK_H
#define TESTS_UNIT_SCHED_DESK_H

#include "sched/worker.h"
#include "tests/unit/unit.h"

static trpi_world *world;
static trpi_sched *sched;

static inline void
desk_open(trpi_sched_options options)
{
    UNIT_REQUIRE(trpi_world_real_new(&world) == TRP_OK);
    options.world = world;
    UNIT_REQUIRE(trpi_sched_new(&options, &sched) == TRP_OK);
    UNIT_REQUIRE(trpi_sched_start(sched) == TRP_OK);
}

static inline void
desk_close(void)
{
    UNIT_TRUE(trpi_sched_stop(sched, 10000));
    trpi_sched_free(sched);
    trpi_world_free(world);
}

#endif
