/* commands.h - tell the cluster of this node to join, leave or mark a member Down.
 *
 * The API of actors and programs is include/troupe/cluster.h; this is for the node program. */
#ifndef TRPI_CLUSTER_SHELL_COMMANDS_H
#define TRPI_CLUSTER_SHELL_COMMANDS_H

#include <troupe/cluster.h>

#include "cluster/engine/membership.h"

typedef struct trpi_cluster trpi_cluster;

#define TRPI_STATS_ALWAYS UINT32_MAX /* publish_stats_interval_ms: whenever they have changed */

/* The cluster of a system; NULL: it has none. Thread: any, while the system lives. */
trpi_cluster *trpi_cluster_of(trp_system *system);

/* Order a change; fn (may be NULL) is called with the engine's answer, on the cluster's thread:
 * TRP_OK (ordered), TRP_EINVAL, TRP_ENOENT, TRP_ESTATE, TRP_ENOMEM, TRP_ECLOSED. It is called
 * exactly once, unless the order itself returns an error. Thread: any; never blocks.
 * Errors: TRP_EINVAL (does not parse, too many), TRP_ENOMEM, TRP_ECLOSED. */
typedef void (*trpi_cluster_done_fn)(void *arg, trp_err err);
trp_err trpi_cluster_join(trpi_cluster *cluster, const char *const *addresses, size_t count,
                          trpi_cluster_done_fn fn, void *arg);
/* All contact points that a look-up has found, sorted; may be called again while the node joins. fn
 * gets TRP_ESTATE when no more are wanted: the node has joined or ended, or was given other seed
 * nodes. */
trp_err trpi_cluster_seeds_found(trpi_cluster *cluster, const trpi_address *addresses, size_t count,
                                 trpi_cluster_done_fn fn, void *arg);
/* address NULL: this node; uid 0: the incarnation that is a member. */
trp_err trpi_cluster_leave(trpi_cluster *cluster, const char *address, uint64_t uid,
                           trpi_cluster_done_fn fn, void *arg);
trp_err trpi_cluster_down(trpi_cluster *cluster, const char *address, uint64_t uid,
                          trpi_cluster_done_fn fn, void *arg);
/* How long an order is wanted. NULL: for 5 s. */
typedef struct trpi_cluster_patience {
    uint32_t begin_ms; /* the engine must have begun it by then; 0: 5000 */
    /* Asked once, on the cluster's thread, just before the engine begins it. NULL: it is wanted. */
    bool (*is_wanted)(void *arg);
    void *arg;
} trpi_cluster_patience;
/* The same, and wait for the engine's answer, which is returned. cluster NULL, and one that has
 * ended, are TRP_ESTATE. TRP_ETIMEDOUT (not begun in time) and TRP_ECANCELED (not wanted any more):
 * the order is dropped, it will not be carried out later. Thread: any; may block until the engine
 * answers; never from a behaviour. */
trp_err trpi_cluster_join_and_wait(trpi_cluster *cluster, const char *const *addresses,
                                   size_t count, const trpi_cluster_patience *patience);
trp_err trpi_cluster_leave_and_wait(trpi_cluster *cluster, const char *address, uint64_t uid,
                                    const trpi_cluster_patience *patience);
/* dead: the operator says that it is: what it hosted is started elsewhere at once. */
trp_err trpi_cluster_down_and_wait(trpi_cluster *cluster, const char *address, uint64_t uid,
                                   bool dead, const trpi_cluster_patience *patience);
/* Mark that incarnation drained, or (drain false) no more; NULL: this node. Idempotent. Errors
 * also: TRP_ENOENT (no such member), TRP_ESTATE (it is leaving; no member). */
trp_err trpi_cluster_drain_and_wait(trpi_cluster *cluster, const char *address, uint64_t uid,
                                    bool drain, const trpi_cluster_patience *patience);
/* The same without waiting: the order is under way until trpi_cluster_order_end(), which frees it,
 * returns the answer so far and takes the order back when it has not begun (TRP_ETIMEDOUT).
 * patience->arg lives until then. kind: TRPI_MEMBER_JOIN, _LEAVE, _DOWN_CMD, _DEAD_CMD, _DRAIN or
 * _UNDRAIN. addresses: of a join some, else one, or none for this node. Errors: as those above.
 * Thread: any; never blocks. */
typedef struct trpi_cluster_order trpi_cluster_order;
trp_err trpi_cluster_order_begin(trpi_cluster *cluster, trpi_member_event_kind kind,
                                 const char *const *addresses, size_t count, uint64_t uid,
                                 const trpi_cluster_patience *patience,
                                 trpi_cluster_order **ret_order);
trp_err trpi_cluster_order_end(trpi_cluster_order *order);
/* Let this node go on from Exiting, where member.exiting_waits has held it. Errors: TRP_ENOMEM,
 * TRP_ECLOSED. Thread: any; never blocks. */
trp_err trpi_cluster_release(trpi_cluster *cluster);
/* Is a lease set? See troupe/lease.h. */
bool trpi_cluster_has_lease(trpi_cluster *cluster);
/* Keep an object that the lease needs: trpi_lease_keep. */
void trpi_cluster_lease_keep(trpi_cluster *cluster, void (*end)(void *arg), void *arg);

/* A value of member.compat has changed while the node runs. Thread: any; never blocks for long. */
void trpi_cluster_compat_set(trpi_cluster *cluster, const char *key, const char *value);

/* Is that incarnation a member, and not Down, in this node's view? Thread: any; never blocks for
 * long. */
bool trpi_cluster_is_member(trpi_cluster *cluster, const trpi_node_id *id);

#endif
