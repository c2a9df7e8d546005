/* world.h - clocks, random numbers, storage and sockets, real or simulated: all that a system
 * learns from outside.
 *
 * The real world reads the machine; the simulated one has one seed and virtual time. Nothing else
 * in the library reads a clock or a random source. One world may hold many systems; a system made
 * without one gets its own real world.
 */
#ifndef TRPI_BASE_WORLD_H
#define TRPI_BASE_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/base.h>

typedef struct trpi_world trpi_world;
struct trp_durable_storage; /* troupe/durable.h */

/* The decisions of a driven world before each turn, each at most once and in this order; 0 is the
 * calm answer to each. */
typedef enum trpi_choice {
    TRPI_CHOICE_STALL = 0, /* milliseconds that pass although tasks are ready; 0: none */
    TRPI_CHOICE_TASK = 1,  /* which of count ready tasks runs next; 0: the one that waits longest */
    TRPI_CHOICE_BATCH = 2  /* how many messages its turn may handle; 0: as many as it is due */
} trpi_choice;

typedef struct trpi_world_ops {
    const char *name;                       /* "real", "virtual", "sim" */
    uint64_t (*mono_ns)(trpi_world *world); /* monotonic; any thread */
    int64_t (*wall_ms)(trpi_world *world);  /* stamps and logs only */
    uint64_t (*wall_ns)(trpi_world *world); /* the same, finer; NULL: wall_ms */
    /* A clock that costs little, to be compared with itself only: its zero and its rate are not
     * those of mono_ns. NULL: mono_ns. Any thread, after quick_open. */
    uint64_t (*quick_ns)(trpi_world *world);
    void (*quick_open)(trpi_world *world);     /* prepare it; twice is fine; NULL: nothing to do */
    uint64_t (*random_u64)(trpi_world *world); /* any thread */
    void (*free)(trpi_world *world);
    /* ---- a driven world: its systems have no threads, blocking calls run them (sched/driven.h).
     * All three NULL: a world with threads. Thread: the one that drives. */
    uint32_t (*choose)(trpi_world *world, trpi_choice what, uint32_t count); /* 0 .. count - 1 */
    void (*advance)(trpi_world *world, uint64_t mono_ns); /* set the clock; never back */
    /* A turn has ended. False: run nothing more. */
    bool (*ran)(trpi_world *world, uint32_t task, uint32_t result);
    /* Give the storage of durable mailboxes in a directory, owned by the world. NULL: the machine's
     * disk. Errors: TRP_ENOMEM. Any thread. */
    trp_err (*storage)(trpi_world *world, const char *directory,
                       const struct trp_durable_storage **ret_storage);
    const struct trpi_net_ops *net; /* its sockets (base/net.h); NULL: it has none */
} trpi_world_ops;

struct trpi_world {
    const trpi_world_ops *ops;
    bool manual;              /* driven, and the clock moves only when the test says so */
    struct trpi_drive *drive; /* sched/driven.c's; NULL at first */
    /* of a driven world: the host whose code runs now. A scheduler is of the host that it is made
     * on; sched/driven.c sets it for each turn and timer. */
    uint32_t host;
    void *net; /* what ops->net works on; NULL: the machine's sockets, or none */
};

/* Gives *ret_world (trpi_world_free). Errors: TRP_ENOMEM, TRP_EIO (no random source). */
trp_err trpi_world_real_new(trpi_world **ret_world);
void trpi_world_free(trpi_world *world); /* NULL is fine */

/* While this thread is inside a driven world, reading the machine's clock or random source is a
 * mistake, and an assertion: a seed would not repeat. Nests. */
void trpi_world_virtual_enter(void);
void trpi_world_virtual_leave(void);

static inline bool
trpi_world_is_driven(const trpi_world *world)
{
    return world->ops->choose != NULL;
}

static inline uint64_t
trpi_world_mono_ns(trpi_world *world)
{
    return world->ops->mono_ns(world);
}
static inline uint64_t
trpi_world_quick_ns(trpi_world *world)
{
    return world->ops->quick_ns != NULL ? world->ops->quick_ns(world) : world->ops->mono_ns(world);
}
static inline void
trpi_world_quick_open(trpi_world *world)
{
    if (world->ops->quick_open != NULL) {
        world->ops->quick_open(world);
    }
}
static inline int64_t
trpi_world_wall_ms(trpi_world *world)
{
    return world->ops->wall_ms(world);
}
static inline uint64_t
trpi_world_wall_ns(trpi_world *world)
{
    return world->ops->wall_ns != NULL ? world->ops->wall_ns(world)
                                       : (uint64_t)world->ops->wall_ms(world) * 1000000;
}
static inline uint64_t
trpi_world_random(trpi_world *world)
{
    return world->ops->random_u64(world);
}

#endif
