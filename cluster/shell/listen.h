/* listen.h - cluster events for code outside of actors. */
#ifndef TRPI_CLUSTER_SHELL_LISTEN_H
#define TRPI_CLUSTER_SHELL_LISTEN_H

#include "cluster/metrics/metrics.h"
#include "cluster/shell/commands.h"

/* fn is called on the cluster's thread, in order, without a lock held: short, must not block. */
/* Not public: this node has begun or ended to be waking; see trpi_cluster_is_waking(). */
#define TRPI_CLUSTER_WAKING (1u << 31)
/* Likewise: a member is drained, or no more; trpi_member_has_drained() of the members. */
#define TRPI_CLUSTER_DRAINED (1u << 30)
typedef struct trpi_cluster_event {
    uint32_t event; /* one bit of trp_cluster_events, or of those above */
    int64_t wall_ms;
    const trp_member_event *member; /* of member events, else NULL */
    const trp_leader_event *leader;
    const trp_seen_event *seen;
    const trp_downing_event *downing;
    const trpi_metrics_table *metrics; /* of TRP_CLUSTER_METRICS_CHANGED */
} trpi_cluster_event;
typedef void (*trpi_cluster_event_fn)(void *arg, const trpi_cluster_event *event);
/* Errors: TRP_ENOMEM, TRP_EINVAL. */
trp_err trpi_cluster_listen(trpi_cluster *cluster, uint32_t events, trpi_cluster_event_fn fn,
                            void *arg, uint64_t *ret_id);
/* Run fn on the cluster's thread, between two events, and wait for it: it sees the cluster exactly
 * as the events so far have told. fn must be short and must not wait.
 * Errors: TRP_ECLOSED, TRP_ETIMEDOUT, TRP_ENOMEM: fn has not run and will not.
 * Thread: any but the cluster's; may block until the cluster actor has time. */
trp_err trpi_cluster_between(trpi_cluster *cluster, void (*fn)(void *arg), void *arg);
/* No call is in progress afterwards, unless it is made from fn. */
void trpi_cluster_unlisten(trpi_cluster *cluster, uint64_t id);

#endif
