/* world_real.c - the machine as a world: its clocks and its random source.
 *
 * Why.     Only this file reads clocks and the random source; other code asks a trpi_world, so that
 *          the simulator can answer instead.
 * Limits.  getrandom() is asked once per number (about 0.3 us): fine for uids, jitter and gossip,
 *          not for a hot loop.
 * Tests.   tests/unit/base/world_test.c
 */
#include "base/world.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/random.h>
#include <time.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/net.h"
#include "base/quick_clock.h"

/* Depth of driven worlds that this thread is in: a thread context. */
static _Thread_local unsigned virtual_depth __attribute__((tls_model("initial-exec")));

void
trpi_world_virtual_enter(void)
{
    virtual_depth++;
}

void
trpi_world_virtual_leave(void)
{
    trpi_assert(virtual_depth > 0);
    virtual_depth--;
}

static uint64_t
real_mono_ns(trpi_world *world)
{
    struct timespec now;

    (void)world;
    trpi_assert(virtual_depth == 0); /* a driven run reads a real clock */
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t
trpi_world_coarse_ns(trpi_world *world)
{
    struct timespec now;

    (void)world;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int64_t
real_wall_ms(trpi_world *world)
{
    struct timespec now;

    (void)world;
    trpi_assert(virtual_depth == 0);
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static uint64_t
real_wall_ns(trpi_world *world)
{
    struct timespec now;

    (void)world;
    trpi_assert(virtual_depth == 0);
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Requests of up to 256 bytes are never short; EINTR can only come before the pool is seeded. */
static bool
random_fill(uint64_t *ret_number)
{
    ssize_t got;

    do {
        got = getrandom(ret_number, sizeof *ret_number, 0);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof *ret_number;
}

static uint64_t
real_random_u64(trpi_world *world)
{
    uint64_t number = 0;
    bool filled = random_fill(&number);

    (void)world;
    trpi_assert(virtual_depth == 0);
    trpi_assert(filled); /* it worked in trpi_world_real_new() */
    return number;
}

static void
real_free(trpi_world *world)
{
    trpi_free(world);
}

static const trpi_world_ops real_ops = {
    .name = "real",
    .mono_ns = real_mono_ns,
    .wall_ms = real_wall_ms,
    .wall_ns = real_wall_ns,
    .quick_ns = trpi_quick_clock_ns,
    .quick_open = trpi_quick_clock_open,
    .random_u64 = real_random_u64,
    .free = real_free,
    .net = &trpi_net_machine,
};

trp_err
trpi_world_real_new(trpi_world **ret_world)
{
    uint64_t probe;
    trpi_world *world;

    if (!random_fill(&probe)) {
        return TRP_EIO; /* a kernel without getrandom(), or a filter that refuses it */
    }
    world = trpi_alloc(sizeof *world);
    if (world == NULL) {
        return TRP_ENOMEM;
    }
    world->ops = &real_ops;
    *ret_world = world;
    return TRP_OK;
}

void
trpi_world_free(trpi_world *world)
{
    if (world != NULL) {
        world->ops->free(world);
    }
}
