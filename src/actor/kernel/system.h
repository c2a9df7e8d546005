/* system.h - the fields of a system, which all rooms of src/actor share. */
#ifndef TRPI_ACTOR_KERNEL_SYSTEM_H
#define TRPI_ACTOR_KERNEL_SYSTEM_H

#include <pthread.h>
#include <stdatomic.h>

#include <troupe/dispatcher.h>
#include <troupe/log.h>
#include <troupe/scheduler.h>
#include <troupe/system.h>

#include "actor/kernel/open.h"
#include "actor/kernel/cell.h"
#include "base/world.h"
#include "sched/sched.h"

#define TRPI_SYSTEM_MAGIC 0x7472705f73797374ull

struct trpi_nodes;                          /* nodes.c */
struct trpi_remote_ops;                     /* nodes/open.h */
struct trpi_directory;                      /* directory.h */
struct trpi_dispatchers;                    /* dispatcher.h */
struct trpi_mailbox_types;                  /* bounded_mailbox.h */
struct trpi_stall;                          /* stall.h */
struct trpi_guard;                          /* guard.h */
struct trpi_versions;                       /* life/versions.c */
struct trpi_behaviours;                     /* distribution.h */
typedef struct trpi_settings trpi_settings; /* settings.c */
struct trpi_life_system;                    /* actor/life/life.h: guardians, shutdown */

/* Sums over all threads: trpi_system_stats_sum(). Relaxed throughout. */
typedef struct trpi_stats {
    _Atomic uint64_t processed, spawned, stopped, restarts;
    _Atomic uint64_t dead[TRP_DEAD_REASON_COUNT];
} trpi_stats;

struct trp_system {
    uint64_t magic;
    const struct trpi_kernel_ops *hooks;    /* functions above the kernel that it calls */
    const struct trpi_life_ops *life_hooks; /* functions above the room life that it calls */
    char name[TRP_SYSTEM_NAME_BYTES_MAX + 1];
    trp_system_options options; /* defaults filled in */
    trp_log_options logging;    /* the same; levels: 0 is off */
    trp_scheduler_options scheduling;
    trp_log_priv_gate log_gate; /* any thread, relaxed */
    trpi_world *world;
    bool world_owned;
    trpi_sched *sched;
    trpi_cells *cells;
    struct trpi_nodes *nodes;
    struct trpi_dispatchers *dispatchers;
    struct trpi_mailbox_types *mailbox_types;
    struct trpi_stall *stall; /* NULL: off */
    /* observe.h; NULL: nobody has looked; release/acquire, set once */
    _Atomic(struct trpi_observe *) observe;
    struct trpi_guard *guard; /* guard.h */
    struct trpi_trace *trace; /* trace.h */
    struct trpi_directory *directory;
    struct trpi_behaviours *behaviours; /* by name, for other nodes */
    /* versions.c; NULL: nothing was upgraded; release/acquire */
    _Atomic(struct trpi_versions *) versions;
    struct trpi_registry *registry;   /* names */
    struct trpi_paths *paths;         /* of ended actors, and of actors of other nodes */
    struct trpi_event_stream *events; /* NULL: being made, or taken apart */
    struct trpi_loggers *loggers;     /* set once, when the guardians run */
    struct {
        trp_ref root, user, temp;
    } top; /* guardians: set once, before the system is given out */
    struct trpi_life_system *life;
    /* ctx->fast_path_node while no trailer is carried: TRPI_NODE_SELF; 0 with
     * serialize-messages, where no tell takes the fast path (round_trip.c) */
    uint32_t fast_path_node;
    uint32_t stash_max; /* default of actors; 0: unbounded */
    struct trpi_extensions *extensions;
    trpi_settings *settings; /* NULL: no configuration, and no deployment sections */
    /* Registered by remoting; NULL: none. Written by the owner, read by any thread
     * (release/acquire). */
    _Atomic(const struct trpi_remote_ops *) remote_ops;
    void *_Atomic remote_arg;
    void *_Atomic cluster; /* used by the cluster room; release/acquire, as remote_ops */
    /* Set once by the room of entities; NULL: none. ops: release/acquire, arg before it. */
    _Atomic(const trpi_entity_ops *) entity_ops;
    void *_Atomic entity_arg;
    trpi_stats foreign_stats; /* counted here by foreign threads; workers count in their ctx (run.h,
                                 trpi_count) */
    bool faults_open;         /* fault.c; owner */
    _Atomic uint32_t refusals_said; /* spawn.c; relaxed */
    _Atomic bool stuck; /* a stop timed out: threads may still run, nothing may be freed */
};

/* For trp_system_stats_get: a snapshot that is exact when nothing runs. */
void trpi_system_stats_sum(trp_system *system, trpi_stats *ret_stats);

static inline bool
trpi_system_is_valid(const trp_system *system)
{
    return system != NULL && system->magic == TRPI_SYSTEM_MAGIC;
}

/* Return the longest delay, TRP_DELAY_TICKS_MAX ticks, in ms. */
static inline uint64_t
trpi_delay_ms_max(const trp_system *system)
{
    return (uint64_t)TRP_DELAY_TICKS_MAX * system->scheduling.tick_ms;
}

#endif
