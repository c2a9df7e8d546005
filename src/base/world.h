/* world.h - everything a system may learn from outside itself comes through here.
 *
 * The real world reads the machine; the simulated one has one seed and virtual time. Nothing else
 * in the library reads a clock or a random source. One world may hold many systems; a system made
 * without one gets its own real world.
 */
#ifndef TRPI_BASE_WORLD_H
#define TRPI_BASE_WORLD_H

#include <stddef.h>
#include <stdint.h>

#include <troupe/base.h>

typedef struct trpi_world trpi_world;

typedef struct trpi_world_ops {
    const char *name;                             /* "real", "sim" */
    uint64_t (*mono_ns)(trpi_world *world);       /* monotonic; any thread */
    int64_t (*wall_ms)(trpi_world *world);        /* stamps and logs only */
    uint64_t (*random_u64)(trpi_world *world);    /* any thread */
    void (*free)(trpi_world *world);
} trpi_world_ops;

struct trpi_world {
    const trpi_world_ops *ops;
};

/* Gives *ret_world (trpi_world_free). Errors: TRP_ENOMEM, TRP_EIO (no random source). */
trp_err trpi_world_real_new(trpi_world **ret_world);
void trpi_world_free(trpi_world *world); /* NULL is fine */

static inline uint64_t
trpi_world_mono_ns(trpi_world *world)
{
    return world->ops->mono_ns(world);
}
static inline int64_t
trpi_world_wall_ms(trpi_world *world)
{
    return world->ops->wall_ms(world);
}
static inline uint64_t
trpi_world_random(trpi_world *world)
{
    return world->ops->random_u64(world);
}

#endif
