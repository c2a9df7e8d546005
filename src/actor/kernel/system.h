/* system.h - the fields of a system. The hot half (CORE) and the semantic half (LIFE) of the room
 * share it. */
#ifndef TRPI_ACTOR_KERNEL_SYSTEM_H
#define TRPI_ACTOR_KERNEL_SYSTEM_H

#include <pthread.h>
#include <stdatomic.h>

#include <troupe/dispatcher.h>
#include <troupe/log.h>
#include <troupe/scheduler.h>
#include <troupe/system.h>

#include "actor/actor.h"
#include "actor/kernel/cell.h"
#include "base/world.h"
#include "sched/sched.h"

#define TRPI_SYSTEM_MAGIC 0x7472705f73797374ull

struct trpi_nodes; /* nodes.c */
struct trpi_directory; /* directory.h */
struct trpi_dispatchers; /* dispatcher.h */
struct trpi_box_types;   /* box.h */
struct trpi_stall;       /* stall.h */
struct trpi_behaviours;  /* distribution.h */
typedef struct trpi_settings trpi_settings; /* settings.c */
struct trpi_life_system; /* LIFE: actor/life/life.h - registry, event stream, guardians, obituaries,
                            shutdown */

/* Sums over all threads: trpi_system_stats_sum(). Relaxed throughout. */
typedef struct trpi_stats {
    _Atomic uint64_t processed, spawned, stopped, restarts;
    _Atomic uint64_t dead[TRP_DEAD_REASON_COUNT];
} trpi_stats;

struct trp_system {
    uint64_t magic;
    const struct trpi_kernel_ops *above;    /* what the kernel calls above itself */
    const struct trpi_life_ops *life_above; /* what the room life does */
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
    struct trpi_box_types *boxes;
    struct trpi_stall *stall; /* NULL: off */
    struct trpi_directory *directory;
    struct trpi_behaviours *behaviours; /* by name, for other nodes */
    struct trpi_life_system *life;
    /* ctx->near_node while nothing is carried: TRPI_NODE_SELF; 0: with serialize-messages nobody is
     * told the short way (round_trip.c) */
    uint32_t near_node;
    uint32_t stash_max;      /* of actors whose options do not say; 0: unbounded */
    struct trpi_extensions *extensions;
    trpi_settings *settings; /* NULL: no configuration was given, so nothing is deployed by one */
    /* What remoting registered; NULL: none. Written by the owner, read by any thread
     * (release/acquire). */
    _Atomic(const trpi_remote_ops *) remote_ops;
    void *_Atomic remote_arg;
    void *_Atomic cluster; /* the cluster room's own; release/acquire, as remote_ops */
    trpi_stats foreign_stats; /* counted here by foreign threads; workers count in their ctx (run.h,
                                 trpi_count) */
    bool faults_open;        /* fault.c's; owner */
    _Atomic uint32_t refusals_said; /* spawn.c's; relaxed */
    _Atomic bool stuck;      /* a stop timed out: threads may still run, nothing may be freed */
};

/* ---- LIFE's part of birth and death (CORE calls) ------------------------------------------------
 * */
/* After tables and scheduler are made and started: make guardians and whatever life needs.
 * On failure everything that it made is gone again, but for cells. */
trp_err trpi_life_system_new(trp_system *system);
/* Before threads stop: nothing runs user code after it returned. Called by trp_system_free; the
 * tree has been stopped by trp_system_stop (LIFE), or was never used. */
void trpi_life_system_stop(trp_system *system);
/* Threads have ended: free. */
void trpi_life_system_free(trp_system *system);

/* ---- settings.c ------------------------------------------------------------------------------ */
/* Shares config. Gives *ret_settings. Errors: TRP_ENOMEM. */
trp_err trpi_settings_new(const trp_config *config, trpi_settings **ret_settings);
void trpi_settings_free(trpi_settings *settings); /* NULL is fine */
/* Fill what the configuration says, or what is zero and the reference says. */
void trpi_settings_options(const trp_config *config, trp_system_options *options);
/* Register the mailboxes that have a section, first; the errors as below. */
trp_err trpi_settings_mailboxes(trp_system *system);
/* What a list of words such as bounded, deque says, as TRP_MAILBOX_* bits. */
uint32_t trpi_settings_requirement(const trp_config *config, const char *key);
/* What the configuration says of the dispatcher "default". */
void trpi_settings_standard_dispatcher(const trp_config *config, trp_dispatcher_options *options);
/* Register the dispatchers that have a section. Errors: TRP_ECONFIG (logged), TRP_ENOMEM. */
trp_err trpi_settings_dispatchers(trp_system *system);
void trpi_settings_logging(const trp_config *config, trp_log_options *logging);
void trpi_settings_scheduling(const trp_config *config, trp_scheduler_options *scheduling);
/* Messages that an actor may stash whose options do not say; 0: unbounded. */
uint32_t trpi_settings_stash_max(const trp_config *config);
/* A line at info for each key: log-config-on-start. */
void trpi_settings_log(trp_system *system);
/* The options of a child of parent, with what a deployment section says of it: options itself, or
 * *copy. Only where system->settings is; parent's runner, or the lock of its guardian. */
const trp_spawn_options *trpi_settings_deploy(trp_ctx *ctx, const trpi_cell *parent,
                                              const trp_spawn_options *options,
                                              trp_spawn_options *copy);

/* ---- options.c ------------------------------------------------------------------------------- */
/* Fill in logging, scheduling and the log gate. */
void trpi_options_parts(trp_system *system);

/* CORE's, for trp_system_stats_get: a snapshot that is exact when nothing runs. */
void trpi_system_stats_sum(trp_system *system, trpi_stats *ret_stats);

static inline bool
trpi_system_is_valid(const trp_system *system)
{
    return system != NULL && system->magic == TRPI_SYSTEM_MAGIC;
}

/* The longest delay: TRP_DELAY_TICKS_MAX ticks. */
static inline uint64_t
trpi_delay_ms_max(const trp_system *system)
{
    return (uint64_t)TRP_DELAY_TICKS_MAX * system->scheduling.tick_ms;
}

#endif
