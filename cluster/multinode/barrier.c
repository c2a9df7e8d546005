/* barrier.c - see the header. */
#include "cluster/multinode/barrier.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

static const trpi_barrier_step nobody = { 0, false };

static uint64_t
bit_of(uint32_t index)
{
    trpi_assert(index < TRPI_BARRIER_NODES_MAX);
    return UINT64_C(1) << index;
}

static trpi_barrier_step
all_told(trpi_barrier *barrier, bool passed)
{
    trpi_barrier_step step = { barrier->entered, passed };
    barrier->entered = 0;
    barrier->waiting = false;
    return step;
}

/* barrier-B2: fail for good; the first reason stays. */
static trpi_barrier_step
failure_step(trpi_barrier *barrier)
{
    barrier->failed = true;
    return all_told(barrier, false);
}

static trpi_barrier_step
looked_at(trpi_barrier *barrier)
{
    return barrier->waiting && (barrier->known & ~barrier->entered) == 0 ? all_told(barrier, true)
                                                                         : nobody;
}

trpi_barrier_step
trpi_barrier_add(trpi_barrier *barrier, const char *const *roles, uint32_t index)
{
    if ((barrier->known & bit_of(index)) == 0) {
        barrier->known |= bit_of(index);
        return nobody;
    }
    if (!barrier->failed) {
        (void)snprintf(barrier->why, sizeof barrier->why, "two nodes call themselves %s",
                       roles[index]);
    }
    return failure_step(barrier);
}

trpi_barrier_step
trpi_barrier_remove(trpi_barrier *barrier, uint32_t index)
{
    barrier->known &= ~bit_of(index);
    barrier->entered &= ~bit_of(index);
    if (barrier->entered == 0) {
        barrier->waiting = false; /* only the node that goes had entered */
    }
    return looked_at(barrier);
}

trpi_barrier_step
trpi_barrier_lose(trpi_barrier *barrier, const char *const *roles, uint32_t index)
{
    if ((barrier->known & bit_of(index)) == 0) {
        return nobody;
    }
    bool waits = barrier->waiting;
    barrier->known &= ~bit_of(index);
    barrier->entered &= ~bit_of(index);
    if (!waits) {
        return nobody; /* no node waited for it */
    }
    if (!barrier->failed) {
        (void)snprintf(barrier->why, sizeof barrier->why, "%s was lost before barrier '%.100s'",
                       roles[index], barrier->name);
    }
    return failure_step(barrier);
}

trpi_barrier_step
trpi_barrier_give_up(trpi_barrier *barrier, const char *const *roles, uint32_t index,
                     const char *why)
{
    if (!barrier->failed) {
        (void)snprintf(barrier->why, sizeof barrier->why, "%s failed: %.180s", roles[index], why);
    }
    barrier->known &= ~bit_of(index);
    barrier->entered &= ~bit_of(index);
    return failure_step(barrier);
}

trpi_barrier_step
trpi_barrier_enter(trpi_barrier *barrier, const char *const *roles, uint32_t index,
                   const char *name, uint64_t deadline_ms)
{
    uint64_t bit = bit_of(index);
    if (barrier->failed) {
        return (trpi_barrier_step){ bit, false };
    }
    if ((barrier->known & bit) == 0) {
        return (trpi_barrier_step){ bit, false }; /* of no interest to the others */
    }
    if (!barrier->waiting) { /* barrier-B1 */
        barrier->waiting = true;
        barrier->deadline_ms = deadline_ms;
        (void)snprintf(barrier->name, sizeof barrier->name, "%s", name);
    }
    barrier->entered |= bit;
    if (strcmp(barrier->name, name) != 0) {
        (void)snprintf(barrier->why, sizeof barrier->why,
                       "%s entered barrier '%.60s' while others wait at '%.60s'", roles[index],
                       name, barrier->name);
        return failure_step(barrier);
    }
    if (deadline_ms < barrier->deadline_ms) { /* barrier-B4 */
        barrier->deadline_ms = deadline_ms;
    }
    return looked_at(barrier);
}

trpi_barrier_step
trpi_barrier_tick(trpi_barrier *barrier, const char *const *roles, uint64_t now_ms)
{
    if (!barrier->waiting || now_ms < barrier->deadline_ms) {
        return nobody;
    }
    if (!barrier->failed) {
        int at = snprintf(barrier->why, sizeof barrier->why, "nobody waits longer at '%.60s' for",
                          barrier->name);
        for (uint32_t i = 0; i < TRPI_BARRIER_NODES_MAX; i++) {
            if ((barrier->known & ~barrier->entered & bit_of(i)) != 0 &&
                (size_t)at < sizeof barrier->why) {
                at +=
                    snprintf(barrier->why + at, sizeof barrier->why - (size_t)at, " %s", roles[i]);
            }
        }
    }
    return failure_step(barrier);
}
