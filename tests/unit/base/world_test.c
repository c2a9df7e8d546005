/* The real world: clocks run forward, random numbers differ. */
#include "base/world.h"

#include "base/alloc.h"
#include "tests/unit/unit.h"

static void
the_monotonic_clock_runs_forward(void)
{
    trpi_world *world = NULL;
    uint64_t before;

    UNIT_REQUIRE(trpi_world_real_new(&world) == TRP_OK);
    before = trpi_world_mono_ns(world);
    UNIT_WAIT(trpi_world_mono_ns(world) > before, 5000);
    UNIT_TRUE(trpi_world_wall_ms(world) > 1577836800000); /* 2020 */
    trpi_world_free(world);
}

static void
random_numbers_differ(void)
{
    trpi_world *world = NULL;
    uint64_t ones = 0;
    uint64_t zeros = 0;

    UNIT_REQUIRE(trpi_world_real_new(&world) == TRP_OK);
    for (int i = 0; i < 64; i++) { /* each bit has been 1 and 0; wrong once in 2^57 runs */
        uint64_t number = trpi_world_random(world);

        ones |= number;
        zeros |= ~number;
    }
    UNIT_TRUE(ones == UINT64_MAX);
    UNIT_TRUE(zeros == UINT64_MAX);
    trpi_world_free(world);
}

static void
without_memory_there_is_an_error_and_no_world(void)
{
    trpi_world *world = NULL;

    trpi_alloc_fail_after(0);
    UNIT_EQUAL(trpi_world_real_new(&world), TRP_ENOMEM);
    trpi_alloc_fail_after(-1);
    UNIT_TRUE(world == NULL);
    trpi_world_free(NULL);
}

UNIT_BEGIN("world")
UNIT(the_monotonic_clock_runs_forward)
UNIT(random_numbers_differ)
UNIT(without_memory_there_is_an_error_and_no_world)
UNIT_END
