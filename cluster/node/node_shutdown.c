/* node_shutdown.c - how a node ends: its own tasks in the phases of the coordinated shutdown.
 *
 * Shape.   SIGTERM, trp_node_leave(), `troupe leave`  -- PROGRAM -.
 *          this member became Leaving by another one  -- LEAVING -+--> phases (troupe/shutdown.h)
 *          this member was downed                     -- DOWNED  -'      |
 *          trp_node_await() <-- left, downed or 75 -- after the last phase
 *          cluster-leave: order it, wait for Leaving. cluster-exiting: wait for Exiting.
 *          cluster-exiting-done: let the membership confirm. cluster-shutdown: wait for its end.
 * Must hold.
 *   node-shutdown-Z1  The membership stays Exiting until cluster-exiting-done: work is handed over
 *       in cluster-exiting while the node is a member.
 *   node-shutdown-Z2  cluster.leave-timeout counts from the order to leave. When it passes, these
 *       tasks give up, and the later phases run nevertheless.
 *   node-shutdown-Z3  The end of the membership, whatever its reason, ends the node through the
 *       phases.
 *   node-shutdown-Z4  A node that was told to leave ends with 0 or 75, also when it is downed
 *       meanwhile: a service manager restarts a node that ends with 76, and this one was meant to
 *       end.
 * Threads. tasks: the shutdown's actor; news: the cluster's thread; lock: node->lock, a leaf.
 * Tests.   tests/unit/node/node_end_test.c, tests/system/shutdown.sh
 */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "cluster/node/node_private.h"
#include "cluster/node/node_start.h"
#include "pattern/pattern.h"

#define DRAIN_PAUSE_MS 100u /* messages that other nodes have sent meanwhile have arrived then */

/* Take out the running tasks whose condition holds now. With the lock. */
static void
tasks_check(trp_node *node)
{
    uint64_t ready[TRPI_NODE_TASKS];
    uint32_t count = 0;
    pthread_mutex_lock(&node->lock);
    bool over = node->ending.membership_ended || node->ending.gave_up;
    trp_err err = node->ending.membership_ended ? TRP_OK : TRP_ETIMEDOUT;
    const bool done[TRPI_NODE_TASKS] = {
        [TRPI_NODE_LEAVE] = over || node->ending.own_status >= TRP_MEMBER_LEAVING,
        [TRPI_NODE_EXITING] = over || node->ending.own_status >= TRP_MEMBER_EXITING,
        [TRPI_NODE_EXITING_DONE] = true,
        [TRPI_NODE_SHUTDOWN] = over,
    };
    for (uint32_t i = 0; i < TRPI_NODE_TASKS; i++) {
        if (node->ending.tasks[i] != 0 && done[i]) {
            ready[count++] = node->ending.tasks[i];
            node->ending.tasks[i] = 0;
        }
    }
    pthread_mutex_unlock(&node->lock);
    for (uint32_t i = 0; i < count; i++) {
        trp_shutdown_done(node->system, ready[i], over ? err : TRP_OK);
    }
}

static void
wait_for(trp_node *node, trpi_node_task which, uint64_t task)
{
    pthread_mutex_lock(&node->lock);
    node->ending.tasks[which] = task;
    pthread_mutex_unlock(&node->lock);
    tasks_check(node);
}

static void
give_up(trp_node *node)
{
    pthread_mutex_lock(&node->lock);
    node->ending.gave_up = true;
    pthread_mutex_unlock(&node->lock);
    tasks_check(node);
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static void
leave_timed_out(void *arg)
{
    give_up(arg); /* node-shutdown-Z2 */
}

static void
leave_ordered(void *arg, trp_err err)
{
    trp_node *node = arg;
    /* Down, or ended: the membership reports that itself */
    if (err != TRP_OK && err != TRP_ESTATE) {
        trp_system_log(node->system, TRP_LOG_WARNING, "node", "cannot leave the cluster: %s",
                       trp_strerror(err));
        give_up(node);
    }
}

static void
leave_task(void *arg, uint64_t task)
{
    trp_node *node = arg;
    uint64_t timeout_ms = (uint64_t)trpi_config_int(node->config, "cluster.leave-timeout");
    uint64_t timer; /* ends with the system, if not before */
    if (trpi_system_after(node->system, timeout_ms, leave_timed_out, node, &timer) != TRP_OK) {
        trp_system_log(node->system, TRP_LOG_WARNING, "node",
                       "no memory for the timer of cluster.leave-timeout");
    }
    wait_for(node, TRPI_NODE_LEAVE, task);
    trp_err err = trpi_cluster_leave(node->cluster, NULL, 0, leave_ordered, node);
    if (err != TRP_OK) {
        leave_ordered(node, err);
    }
}

static void
exiting_task(void *arg, uint64_t task)
{
    wait_for(arg, TRPI_NODE_EXITING, task);
}

static void
exiting_done(void *arg, uint64_t task)
{
    trp_node *node = arg;
    (void)trpi_cluster_release(node->cluster); /* fails when the membership has ended */
    wait_for(node, TRPI_NODE_EXITING_DONE, task);
}

static void
membership_end(void *arg, uint64_t task)
{
    wait_for(arg, TRPI_NODE_SHUTDOWN, task);
}

static void
drain_done(void *arg)
{
    trp_node *node = arg;
    trp_shutdown_done(node->system, node->ending.drain_task, TRP_OK);
}

/* Handle the messages that arrived while this node was a member. A node that was downed has lost
 * the others, and when all end no node waits for answers. */
static void
drain_begin(void *arg, uint64_t task)
{
    trp_node *node = arg;
    trp_shutdown_reason why = trp_shutdown_reason_get(node->system);
    trpi_peer_info peer;
    size_t peers = 0;
    if (why == TRP_SHUTDOWN_DOWNED || why == TRP_SHUTDOWN_CLUSTER) {
        trp_shutdown_done(node->system, task, TRP_OK);
        return;
    }
    node->ending.drain_task = task;
    trpi_remote_peers(node->remote, &peer, 1, &peers);
    trp_err err = trpi_drain_start(node->system, peers > 0 ? DRAIN_PAUSE_MS : 0, drain_done, node);
    if (err != TRP_OK) {
        trp_shutdown_done(node->system, task, err);
    }
}

/* ---- news ------------------------------------------------------------------------------------ */

static void
shutdown_begin(trp_node *node, trp_shutdown_reason reason)
{
    if (reason != TRP_SHUTDOWN_DOWNED &&
        trp_shutdown_reason_get(node->system) == TRP_SHUTDOWN_NONE &&
        trpi_node_ends_with_all(node)) {
        reason = TRP_SHUTDOWN_CLUSTER;
    }
    trp_err err = trp_shutdown_run(node->system, reason, NULL);
    if (err != TRP_OK && err != TRP_ECLOSED) { /* closed: it has ended, or ends without phases */
        trp_system_log(node->system, TRP_LOG_ERROR, "node", "no coordinated shutdown: %s",
                       trp_strerror(err));
        trpi_node_end(node, TRP_NODE_TERMINATED);
    }
}

static void
own_member_changed(void *arg, const trpi_cluster_event *event)
{
    trp_node *node = arg;
    if (event->member->member.self == 0) {
        return;
    }
    pthread_mutex_lock(&node->lock);
    node->ending.own_status =
        event->event == TRP_CLUSTER_MEMBER_LEFT ? TRP_MEMBER_LEAVING : TRP_MEMBER_EXITING;
    node->ending.told_to_leave = true;
    pthread_mutex_unlock(&node->lock);
    shutdown_begin(node, TRP_SHUTDOWN_LEAVING);
    tasks_check(node);
}

void
trpi_node_membership_ended(trp_node *node, trpi_member_stop why)
{
    bool downed = why == TRPI_STOP_DOWNED;
    pthread_mutex_lock(&node->lock);
    node->ending.membership_ended = true;
    node->ending.downed = downed;
    pthread_mutex_unlock(&node->lock);
    if (why == TRPI_STOP_INCOMPATIBLE) { /* it never was a member: there is nothing to hand over */
        trpi_node_end(node, TRP_NODE_INCOMPATIBLE);
        return;
    }
    if (downed && !trpi_config_bool(node->config, "cluster.run-coordinated-shutdown-when-down")) {
        trpi_node_end(node, trpi_node_fate(node));
        return;
    }
    shutdown_begin(node,
                   downed ? TRP_SHUTDOWN_DOWNED : TRP_SHUTDOWN_LEAVING); /* node-shutdown-Z3 */
    tasks_check(node);
}

void
trpi_node_refused(trp_node *node)
{
    pthread_mutex_lock(&node->lock);
    node->ending.refused = true;
    pthread_mutex_unlock(&node->lock);
    shutdown_begin(node, TRP_SHUTDOWN_PROGRAM); /* it leaves as any member does */
}

/* node-shutdown-Z4. Under the lock. */
static trp_node_end
membership_fate(const trp_node *node)
{
    return node->ending.refused         ? TRP_NODE_INCOMPATIBLE
           : !node->ending.downed       ? TRP_NODE_LEFT
           : node->ending.told_to_leave ? TRP_NODE_LEAVE_DOWNED
                                        : TRP_NODE_DOWNED;
}

/* After the last phase, on the shutdown's actor. */
static void
phases_over(void *arg)
{
    trp_node *node = arg;
    pthread_mutex_lock(&node->lock);
    trp_node_end end = node->ending.membership_ended ? membership_fate(node)
                       : node->ending.gave_up        ? TRP_NODE_LEAVE_TIMEOUT
                                                     : TRP_NODE_SHUTDOWN_CUT;
    pthread_mutex_unlock(&node->lock);
    trpi_node_end(node, end);
}

trp_node_end
trpi_node_fate(trp_node *node)
{
    pthread_mutex_lock(&node->lock);
    trp_node_end end = node->end != 0                   ? node->end
                       : !node->ending.membership_ended ? (trp_node_end)0
                                                        : membership_fate(node);
    pthread_mutex_unlock(&node->lock);
    return end;
}

int
trpi_node_end_tell(const trp_node *node, trp_node_end end, char text[TRPI_NODE_END_BYTES])
{
    static const struct {
        int code;
        const char *text;
    } ends[] = {
        [TRP_NODE_LEFT] = { TRPI_CTL_EXIT_OK, "left the cluster" },
        [TRP_NODE_DOWNED] = { TRPI_CTL_EXIT_DOWNED,
                              "this node was downed, by the others or by its own strategy (its log "
                              "has the reason); look at the others with `troupe members`, and "
                              "start this node again to join them anew" },
        [TRP_NODE_TERMINATED] = { TRPI_CTL_EXIT_INTERNAL, "the actor system has ended" },
        [TRP_NODE_LEAVE_TIMEOUT] = { TRPI_CTL_EXIT_TIMEOUT,
                                     "leaving took longer than cluster.leave-timeout" },
        [TRP_NODE_INCOMPATIBLE] = { TRPI_CTL_EXIT_CONFIG, "the cluster refuses this configuration "
                                                          "(the log has the reason)" },
        [TRP_NODE_SHUTDOWN_CUT] = { TRPI_CTL_EXIT_TIMEOUT,
                                    "a phase of the shutdown whose recover is off failed or was "
                                    "late (the log names it): this node has not left, and the "
                                    "others will find it unreachable" },
        [TRP_NODE_LEAVE_DOWNED] = { TRPI_CTL_EXIT_TIMEOUT,
                                    "this node was told to leave, and was downed before it had "
                                    "left (its log has the reason): it may not have handed over "
                                    "all work" },
    };
    trpi_assert(end >= TRP_NODE_LEFT && end <= TRP_NODE_LEAVE_DOWNED);
    bool late = end == TRP_NODE_LEAVE_TIMEOUT;
    (void)snprintf(text, TRPI_NODE_END_BYTES, "%s%s%s%s", ends[end].text, late ? " (" : "",
                   late ? trpi_config_text(node->config, "cluster.leave-timeout") : "",
                   late ? "); the others will find this node unreachable" : "");
    return ends[end].code;
}

/* ---- from outside ---------------------------------------------------------------------------- */

void
trp_node_leave(trp_node *node)
{
    trpi_assert(node->magic == TRPI_NODE_MAGIC);
    pthread_mutex_lock(&node->lock);
    node->ending.told_to_leave = true;
    pthread_mutex_unlock(&node->lock);
    shutdown_begin(node, TRP_SHUTDOWN_PROGRAM);
}

trp_err
trpi_node_shutdown_start(trp_node *node, trp_node_error *ret_error)
{
    static const struct {
        const char *phase, *name;
        trp_shutdown_fn fn;
    } tasks[] = { { TRP_SHUTDOWN_CLUSTER_LEAVE, "leave", leave_task },
                  { TRP_SHUTDOWN_CLUSTER_EXITING, "exiting", exiting_task },
                  { TRP_SHUTDOWN_CLUSTER_EXITING_DONE, "exiting-done", exiting_done },
                  { TRP_SHUTDOWN_CLUSTER_SHUTDOWN, "membership", membership_end },
                  { TRP_SHUTDOWN_BEFORE_ACTOR_SYSTEM_TERMINATE, "drain", drain_begin } };
    trp_err err = trpi_shutdown_over_set(node->system, phases_over, node);
    for (size_t i = 0; i < sizeof tasks / sizeof tasks[0] && err == TRP_OK; i++) {
        err = trpi_shutdown_add_own(node->system, tasks[i].phase, tasks[i].name, tasks[i].fn, node);
    }
    if (err == TRP_OK) {
        err =
            trpi_cluster_listen(node->cluster, TRP_CLUSTER_MEMBER_LEFT | TRP_CLUSTER_MEMBER_EXITED,
                                own_member_changed, node, &node->ending.listener);
    }
    return err == TRP_OK ? TRP_OK
                         : trpi_node_fail(ret_error, err, "cannot prepare the shutdown: %s",
                                          trp_strerror(err));
}
