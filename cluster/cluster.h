/* cluster.h - the door of the cluster room: make a system a cluster node, command it, look at its
 * view.
 *
 * What actors and programs use stands in include/troupe/cluster.h; it finds the cluster of a
 * system by itself. This header is for the node program.
 */
#ifndef TRPI_CLUSTER_CLUSTER_H
#define TRPI_CLUSTER_CLUSTER_H

#include <troupe/cluster.h>

#include "cluster/engine/heartbeat.h"
#include "cluster/shell/lease.h"
#include "cluster/engine/membership.h"
#include "cluster/metrics/metrics.h"
#include "remote/remote.h"

typedef struct trpi_cluster trpi_cluster;

#define TRPI_STATS_ALWAYS UINT32_MAX /* publish_stats_interval_ms: whenever they have changed */

/* a zero field is its default; see membership.h, heartbeat.h */
typedef struct trpi_cluster_options {
    trpi_member_options member;
    trpi_heartbeat_options heartbeat;
    trpi_metrics_options metrics;
    const char *const *roles;
    uint32_t roles_count;
    const char *app_version; /* NULL: "0.0.0" */
    /* Asked at once, in order; "self" stands for the own address. Empty: waits for a join. */
    const char *const *seed_nodes;
    uint32_t seed_nodes_count;
    uint32_t quarantine_removed_after_ms; /* 5000: of those removed after Down */
    uint32_t publish_stats_interval_ms;   /* a line with the figures of gossip; 0: none */
    const char *lease_name; /* NULL: "SYSTEM-lease" */
    bool quiet;                           /* no log line for each change (cluster.log-info = off) */
    /* Once, when this node's membership has ended, on the cluster's thread: must not block. */
    void (*stopped)(void *arg, trpi_member_stop why);
    void *stopped_arg;
} trpi_cluster_options;

/* Gives *ret_cluster. Registers it with the system. Borrows options during the call. After an error
 * *ret_cluster is NULL, or a stopped one (a seed address did not parse) that is to be freed as
 * usual.
 * Errors: TRP_EINVAL (an option; a seed address does not parse: logged), TRP_EEXIST (the system
 *         has one),
 * TRP_ENOMEM, and those of trpi_system_spawn_internal. Thread: owner. */
trp_err trpi_cluster_start(trp_system *system, trpi_remote *remote,
                           const trpi_cluster_options *options, trpi_cluster **ret_cluster);
/* Stop hearing and talking; does not leave. Before trpi_remote_stop and trp_system_stop. NULL is
 * fine. The memory is freed by trpi_cluster_free, after trp_system_stop. */
void trpi_cluster_stop(trpi_cluster *cluster);
void trpi_cluster_free(trpi_cluster *cluster); /* NULL is fine */
/* The cluster of a system; NULL: it has none. Thread: any, while the system lives. */
trpi_cluster *trpi_cluster_of(trp_system *system);

/* ---- commands -------------------------------------------------------------------------------- */
/* Order something; fn (may be NULL) hears how the engine answered, on the cluster's thread: TRP_OK
 * (ordered), TRP_EINVAL, TRP_ENOENT, TRP_ESTATE, TRP_ENOMEM, TRP_ECLOSED. It is called exactly
 * once, unless the order itself returns an error. Thread: any; never blocks.
 * Errors: TRP_EINVAL (does not parse, too many), TRP_ENOMEM, TRP_ECLOSED. */
typedef void (*trpi_cluster_done_fn)(void *arg, trp_err err);
trp_err trpi_cluster_join(trpi_cluster *cluster, const char *const *addresses, size_t count,
                          trpi_cluster_done_fn fn, void *arg);
/* All contact points that a look-up has found, sorted; may be said again and again while the node
 * joins. fn hears TRP_ESTATE when no more is wanted: it has joined or ended, or was told others. */
trp_err trpi_cluster_seeds_found(trpi_cluster *cluster, const trpi_address *addresses, size_t count,
                                 trpi_cluster_done_fn fn, void *arg);
/* address NULL: this node; uid 0: whichever incarnation is a member. */
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
trp_err trpi_cluster_down_and_wait(trpi_cluster *cluster, const char *address, uint64_t uid,
                                   const trpi_cluster_patience *patience);
/* The same without waiting: the order is under way until trpi_cluster_order_end(), which frees it,
 * returns the answer so far and takes the order back when it has not begun (TRP_ETIMEDOUT).
 * patience->arg lives until then. kind: TRPI_MEMBER_JOIN, _LEAVE or _DOWN_CMD. addresses: of a join
 * some, else one, or none for this node. Errors: as those above. Thread: any; never blocks. */
typedef struct trpi_cluster_order trpi_cluster_order;
trp_err trpi_cluster_order_begin(trpi_cluster *cluster, trpi_member_event_kind kind,
                                 const char *const *addresses, size_t count, uint64_t uid,
                                 const trpi_cluster_patience *patience,
                                 trpi_cluster_order **ret_order);
trp_err trpi_cluster_order_end(trpi_cluster_order *order);
/* Whoever set member.exiting_waits lets this node go on from Exiting. Errors: TRP_ENOMEM,
 * TRP_ECLOSED. Thread: any; never blocks. */
trp_err trpi_cluster_release(trpi_cluster *cluster);
/* Has somebody given it a lease? See troupe/lease.h. */
bool trpi_cluster_has_lease(trpi_cluster *cluster);
/* Take what the lease needs: trpi_lease_keep. */
void trpi_cluster_lease_keep(trpi_cluster *cluster, void (*end)(void *arg), void *arg);

/* A value of member.compat has changed while the node runs. Thread: any; never blocks for long. */
void trpi_cluster_compat_set(trpi_cluster *cluster, const char *key, const char *value);

/* Is that incarnation a member, and not Down, in this node's view? Thread: any; never blocks for
 * long. */
bool trpi_cluster_is_member(trpi_cluster *cluster, const trpi_node_id *id);

/* ---- looking --------------------------------------------------------------------------------- */
typedef struct trpi_cluster_member {
    trp_member member;
    double phi;              /* own detector's; negative: not monitored from here */
    uint64_t round_trip_us;  /* of heartbeats; 0 unknown */
    uint64_t heartbeats;     /* answered since this node monitors it */
    int64_t up_since_wall_ms; /* by the clock of who made it Up; 0: unknown, or it never was Up */
    char build[TRPI_BUILD_BYTES_MAX + 1]; /* the version of Troupe that it runs; "": unknown */
    uint64_t age_ms;         /* since this node saw it first */
    uint64_t unreachable_ms; /* for how long; 0: reachable */
    bool seen;               /* has seen the present version */
    bool awaited;            /* convergence waits until it has */
    bool remover;            /* says that it has removed this node from its cluster */
} trpi_cluster_member;

/* members[observer] says members[subject] is unreachable */
typedef struct trpi_cluster_observation {
    uint32_t observer, subject;
} trpi_cluster_observation;

#define TRPI_CLUSTER_NONE UINT32_MAX
#define TRPI_CLUSTER_LACKING_BYTES 160
#define TRPI_CLUSTER_FOREIGN_MAX 4

typedef struct trpi_cluster_snapshot { /* one block of memory */
    trpi_member_phase phase;
    trpi_member_stop stop;
    char seeking[TRPI_ADDRESS_TEXT_BYTES]; /* what a joining node asks; "" */
    char seeking_why[TRPI_SEEK_WHY_BYTES]; /* why it is not let in; "": nobody has said */
    trpi_cluster_member *members;          /* in order */
    uint32_t members_count;                /* 0: not joined */
    trpi_cluster_observation *observations;
    uint32_t observations_count;
    uint32_t clock_count, tombstones_count; /* what the view holds besides */
    uint32_t self, leader, oldest; /* index or TRPI_CLUSTER_NONE */
    uint32_t unseen, blocking;     /* what keeps it from converging: members that have not seen it,
                                      members that are unreachable */
    bool converged;
    uint64_t converged_ms; /* for how long it has been so, or not */
    char lacking[TRPI_CLUSTER_LACKING_BYTES]; /* trpi_member_lacking */
    uint64_t version;      /* equal on two nodes only if they agree on members and seen set */
    const char *strategy;  /* of downing; static */
    uint32_t stable_after_ms, auto_down_after_ms;
    uint64_t removed_ms;   /* for how long a member says that it has removed this node: two
                              clusters, or this node ends in some seconds; 0: nobody does */
    struct {
        char address[TRP_ADDRESS_BYTES];
        uint64_t uid, since_ms; /* for how long */
    } foreign[TRPI_CLUSTER_FOREIGN_MAX]; /* seeds that live in another cluster of this name */
    uint32_t foreign_count;
    bool waking;           /* stood still, and does not know yet who is there (heartbeat.h) */
    trpi_member_stats stats;
} trpi_cluster_snapshot;

/* Gives *ret_snapshot (trpi_cluster_snapshot_free). Errors: TRP_ENOMEM. Thread: any; answers from
 * memory. */
trp_err trpi_cluster_snapshot_get(trpi_cluster *cluster, trpi_cluster_snapshot **ret_snapshot);
void trpi_cluster_snapshot_free(trpi_cluster_snapshot *snapshot); /* NULL is fine */
/* Forecast the downing strategy's decision (trpi_member_forecast). Thread: any; from memory. */
bool trpi_cluster_forecast(trpi_cluster *cluster, trpi_downing_forecast *ret_forecast);

/* Once that incarnation has left: whose crash would stop the rest, or leave nobody? */
typedef struct trpi_cluster_next_crash {
    uint32_t votes, fatal;         /* trpi_downing_next_crash */
    char first[TRP_ADDRESS_BYTES]; /* one of them; "" */
    const char *strategy;          /* static */
} trpi_cluster_next_crash;
/* Errors: TRP_ENOENT (no such member), TRP_ENOMEM. Thread: any; answers from memory. */
trp_err trpi_cluster_next_crash_get(trpi_cluster *cluster, uint64_t uid,
                                    trpi_cluster_next_crash *ret_next);
/* First member that may lead, or the oldest, among those with role (NULL: all); index or none. */
uint32_t trpi_cluster_snapshot_leader(const trpi_cluster_snapshot *snapshot, const char *role);
uint32_t trpi_cluster_snapshot_oldest(const trpi_cluster_snapshot *snapshot, const char *role);

/* Has this node stood still for longer than its detector bears, and does not know yet who is there?
 * Then nothing is to be routed over the cluster. Thread: any. */
bool trpi_cluster_is_waking(trpi_cluster *cluster);

/* ---- events for threads that are no actors --------------------------------------------------- */
/* fn is called on the cluster's thread, in order, without a lock held: short, must not block. */
/* Not public: it began, or ended, to be waking; ask trpi_cluster_is_waking. */
#define TRPI_CLUSTER_WAKING (1u << 31)
typedef struct trpi_cluster_event {
    uint32_t event;   /* one bit of trp_cluster_events, or TRPI_CLUSTER_WAKING */
    int64_t wall_ms;
    const trp_member_event *member;     /* of member events, else NULL */
    const trp_leader_event *leader;
    const trp_seen_event *seen;
    const trp_downing_event *downing;
    const trpi_metrics_table *metrics; /* of TRP_CLUSTER_METRICS_CHANGED */
} trpi_cluster_event;
typedef void (*trpi_cluster_event_fn)(void *arg, const trpi_cluster_event *event);
/* Errors: TRP_ENOMEM, TRP_EINVAL. */
trp_err trpi_cluster_listen(trpi_cluster *cluster, uint32_t events, trpi_cluster_event_fn fn,
                            void *arg, uint64_t *ret_id);
/* Run fn on the cluster's thread, between two events, and wait for it: what it sees of the cluster
 * is what all events before have told, and nothing more. It is short and does not wait.
 * Errors: TRP_ECLOSED, TRP_ETIMEDOUT, TRP_ENOMEM: fn has not run and will not.
 * Thread: any but the cluster's; may block until the cluster actor has time. */
trp_err trpi_cluster_between(trpi_cluster *cluster, void (*fn)(void *arg), void *arg);
/* No call is in progress afterwards, unless it is made from fn. */
void trpi_cluster_unlisten(trpi_cluster *cluster, uint64_t id);

#endif
