/* snapshot.h - the present state of this node's cluster: members, reachability, the downing
 * forecast. */
#ifndef TRPI_CLUSTER_SHELL_SNAPSHOT_H
#define TRPI_CLUSTER_SHELL_SNAPSHOT_H

#include "cluster/metrics/metrics.h"
#include "cluster/shell/commands.h"

typedef struct trpi_cluster_member {
    trp_member member;
    double phi;             /* of this node's detector; negative: not monitored from here */
    uint64_t round_trip_us; /* of heartbeats; 0 unknown */
    uint64_t heartbeats;    /* answered since this node monitors it */
    /* by the clock of the leader that made it Up; 0: unknown, or it never was Up */
    int64_t up_since_wall_ms;
    char build[TRPI_BUILD_BYTES_MAX + 1]; /* the version of Troupe that it runs; "": unknown */
    uint64_t age_ms;                      /* since this node saw it first */
    uint64_t unreachable_ms;              /* for how long; 0: reachable */
    bool seen;                            /* has seen the present version */
    bool awaited;                         /* convergence waits until it has */
    /* it has removed this node from its cluster, and says so */
    bool remover;
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
    char seeking[TRPI_ADDRESS_TEXT_BYTES]; /* the address that a joining node asks; "" */
    char seeking_why[TRPI_SEEK_WHY_BYTES]; /* why it is not admitted; "": no node has said */
    trpi_cluster_member *members;          /* in order */
    uint32_t members_count;                /* 0: not joined */
    trpi_cluster_observation *observations;
    uint32_t observations_count;
    uint32_t clock_count, tombstones_count; /* other entries of the view */
    uint32_t self, leader, oldest;          /* index or TRPI_CLUSTER_NONE */
    /* the members that keep it from converging: those that have not seen it, those that are
     * unreachable */
    uint32_t unseen, blocking;
    bool converged;
    uint64_t converged_ms;                    /* for how long it has been so, or not */
    char lacking[TRPI_CLUSTER_LACKING_BYTES]; /* trpi_member_lacking */
    uint64_t version;     /* equal on two nodes only if they agree on members and seen set */
    const char *strategy; /* of downing; static */
    uint32_t stable_after_ms, auto_down_after_ms;
    /* for how long a member says that it has removed this node: two clusters, or this node ends in
     * some seconds; 0: none does */
    uint64_t removed_ms;
    struct {
        char address[TRP_ADDRESS_BYTES];
        uint64_t uid, since_ms;          /* for how long */
    } foreign[TRPI_CLUSTER_FOREIGN_MAX]; /* seeds that live in another cluster of this name */
    uint32_t foreign_count;
    /* this node stood still, and does not know yet which members are reachable (heartbeat.h) */
    bool waking;
    trpi_member_stats stats;
} trpi_cluster_snapshot;

/* Gives *ret_snapshot (trpi_cluster_snapshot_free). Errors: TRP_ENOMEM. Thread: any; answers from
 * memory. */
trp_err trpi_cluster_snapshot_get(trpi_cluster *cluster, trpi_cluster_snapshot **ret_snapshot);
void trpi_cluster_snapshot_free(trpi_cluster_snapshot *snapshot); /* NULL is fine */
/* Forecast the downing strategy's decision (trpi_member_forecast). Thread: any; from memory. */
bool trpi_cluster_forecast(trpi_cluster *cluster, trpi_downing_forecast *ret_forecast);

/* Once that incarnation has left: the members whose next crash would stop the rest. */
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

/* Has this node stood still for longer than its detector bears, without knowing yet which members
 * are reachable? Then cluster routers must not route. Thread: any. */
bool trpi_cluster_is_waking(trpi_cluster *cluster);

/* Is this node drained (troupe drain)? It takes no new shard and no new routee, and is not ready.
 * Thread: any; never blocks for long. */
bool trpi_cluster_is_drained(trpi_cluster *cluster);

/* The nodes' metrics as known now; borrowed until the end of the run or bracket. NULL: none.
 * Thread: any. */
trpi_metrics_table *trpi_metrics_present(const trpi_cluster *cluster);

#endif
