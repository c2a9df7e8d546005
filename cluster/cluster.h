/* cluster.h - the door of the cluster room: make a system a cluster node, command it, look at its
 * view.
 *
 * The API of actors and programs is include/troupe/cluster.h, which finds the cluster of a system
 * by itself. This header is for the node program. */
#ifndef TRPI_CLUSTER_CLUSTER_H
#define TRPI_CLUSTER_CLUSTER_H

#include <troupe/cluster.h>

#include "cluster/client/receptionist.h"
#include "cluster/engine/heartbeat.h"
#include "cluster/engine/membership.h"
#include "cluster/metrics/metrics.h"
#include "cluster/pubsub/pubsub.h"
#include "cluster/shell/commands.h"
#include "cluster/shell/exclusive.h"
#include "cluster/shell/lease.h"
#include "cluster/shell/listen.h"
#include "cluster/shell/snapshot.h"
#include "cluster/sharding/sharding.h"
#include "cluster/singleton/singleton.h"
#include "remote/remote.h"
#include "base/config.h"

#define TRPI_CLUSTER_APP_VERSION_DEFAULT "0.0.0"
#define TRPI_CLUSTER_QUARANTINE_AFTER_S_DEFAULT 5

/* a zero field is its default; see membership.h, heartbeat.h */
typedef struct trpi_cluster_options {
    trpi_member_options member;
    trpi_heartbeat_options heartbeat;
    trpi_metrics_options metrics;
    trpi_pubsub_options pubsub;
    const char *const *roles;
    uint32_t roles_count;
    const char *app_version; /* NULL: the default */
    /* Seed nodes, asked at the start, in this order; "self" is this node's address. Empty: the node
     * waits for a join. */
    const char *const *seed_nodes;
    uint32_t seed_nodes_count;
    uint32_t quarantine_removed_after_ms; /* 5000: from the removal after Down to the quarantine */
    /* pause between two log lines with the statistics of gossip; 0: none */
    uint32_t publish_stats_interval_ms;
    const char *lease_name; /* NULL: "SYSTEM-lease" */
    bool quiet;             /* no log line for each change (cluster.log-info = off) */
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
/* Stop sending and receiving, without leaving the cluster. Before trpi_remote_stop and
 * trp_system_stop. NULL is fine. The memory is freed by trpi_cluster_free, after
 * trp_system_stop. */
void trpi_cluster_stop(trpi_cluster *cluster);
void trpi_cluster_free(trpi_cluster *cluster); /* NULL is fine */

/* Keys of the configuration that the cluster and its routers read (keys.c). */
extern const trpi_config_part trpi_cluster_keys, trpi_cluster_router_keys;

#endif
