/* exclusive.h - for rooms that run what must not live twice in a cluster (singletons, entities):
 * the guard of their node, and when they may start what another node hosted. */
#ifndef TRPI_CLUSTER_SHELL_EXCLUSIVE_H
#define TRPI_CLUSTER_SHELL_EXCLUSIVE_H

#include <troupe/cluster.h>

#include "actor/actor.h"
#include "cluster/engine/exclusive.h"
#include "cluster/shell/commands.h"

#define TRPI_EXCLUSIVE_NEVER UINT64_MAX

/* Use the guard of this node from now on: the node suspends what trpi_spawn_guarded() started when
 * others may have given it up, until it knows better. what: "the singleton x", for the log and the
 * refusal. *ret_guard is borrowed until the system is freed; again is fine.
 * Errors: TRP_ESTATE (the system is in no cluster; its times are too short: why says which).
 * Thread: any. */
trp_err trpi_exclusive_open(trp_system *system, const char *what, trpi_guard **ret_guard, char *why,
                            size_t why_bytes);

/* Return in how many milliseconds what that member hosted may be started on another node: 0: now.
 * After a removal that a resolving strategy decided, after a leave that the member confirmed and
 * after `down --dead` it is 0; after another removal the rest of cluster.down-removal-margin, to be
 * asked again then. TRPI_EXCLUSIVE_NEVER: it is a member, Down or Exiting perhaps.
 * Errors: TRP_ESTATE (the system is in no cluster), TRP_EINVAL (address). Thread: any. */
trp_err trpi_exclusive_takeover_ms(trp_system *system, const char *address, uint64_t uid,
                                   uint64_t *ret_ms);

typedef struct trpi_exclusive_view {
    bool in_use;
    bool suspended;
    uint64_t for_ms;    /* for how long it is suspended */
    const char *cause;  /* why; static */
    const char *awaits; /* what ends it; static */
} trpi_exclusive_view;
/* Thread: any. */
void trpi_exclusive_look(trpi_cluster *cluster, trpi_exclusive_view *ret_view);
/* Faults put in on purpose: TRPI_BROKEN_... bits of the simulator, in developer builds. */
uint32_t trpi_cluster_broken(const trpi_cluster *cluster);

#endif
