/* shell_events.c - subscribers, listeners, on-member-up: the cluster's events as messages (EVENTS).
 *
 * Must hold.
 *   shell-events-B1  A subscriber is told the state first, then every event after it: both happen
 *       in the actor.
 *   shell-events-B2  A subscriber that ends is forgotten: the actor watches it.
 *   shell-events-B3  Watchers of a member's actors are notified with its removal, before the event
 *       is published; a later quarantine or GOODBYE finds no watcher left. */
#include "cluster/shell/shell.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/assert.h"

#define EVENT_TYPE(ident, text, payload, tag_)                                                     \
    trp_type ident = {                                                                             \
        "cluster." text, (uint32_t)sizeof(payload), tag_, TRP_TYPE_LOCAL, NULL, 0, 0               \
    }

EVENT_TYPE(trp_member_joined_type, "member-joined", trp_member_event, trp_member_joined_tag);
EVENT_TYPE(trp_member_weakly_up_type, "member-weakly-up", trp_member_event,
           trp_member_weakly_up_tag);
EVENT_TYPE(trp_member_up_type, "member-up", trp_member_event, trp_member_up_tag);
EVENT_TYPE(trp_member_left_type, "member-left", trp_member_event, trp_member_left_tag);
EVENT_TYPE(trp_member_exited_type, "member-exited", trp_member_event, trp_member_exited_tag);
EVENT_TYPE(trp_member_downed_type, "member-downed", trp_member_event, trp_member_downed_tag);
EVENT_TYPE(trp_member_removed_type, "member-removed", trp_member_event, trp_member_removed_tag);
EVENT_TYPE(trp_member_unreachable_type, "member-unreachable", trp_member_event,
           trp_member_unreachable_tag);
EVENT_TYPE(trp_member_reachable_type, "member-reachable", trp_member_event,
           trp_member_reachable_tag);
EVENT_TYPE(trp_leader_changed_type, "leader-changed", trp_leader_event, trp_leader_changed_tag);
EVENT_TYPE(trp_role_leader_changed_type, "role-leader-changed", trp_leader_event,
           trp_role_leader_changed_tag);
EVENT_TYPE(trp_seen_changed_type, "seen-changed", trp_seen_event, trp_seen_changed_tag);
EVENT_TYPE(trp_downing_decision_type, "downing-decision", trp_downing_event,
           trp_downing_decision_tag);
trp_type trp_current_cluster_state_type = {
    "cluster.state", 0, trp_cluster_state_tag, TRP_TYPE_LOCAL | TRP_TYPE_VARIABLE, NULL, 0, 0
};

static trp_type *const cluster_types[] = { &trp_current_cluster_state_type,
                                           &trp_member_joined_type,
                                           &trp_member_up_type,
                                           &trp_member_left_type,
                                           &trp_member_exited_type,
                                           &trp_member_downed_type,
                                           &trp_member_removed_type,
                                           &trp_member_unreachable_type,
                                           &trp_member_reachable_type,
                                           &trp_leader_changed_type,
                                           &trp_role_leader_changed_type,
                                           &trp_seen_changed_type,
                                           &trp_downing_decision_type,
                                           &trp_member_weakly_up_type,
                                           &shell_frame_type,
                                           &shell_tick_type,
                                           &shell_command_type,
                                           &shell_subscribe_type,
                                           &shell_unsubscribe_type,
                                           &shell_send_state_type,
                                           &shell_on_up_type,
                                           &shell_metrics_type };
const trp_protocol trp_cluster_protocol = { "cluster", cluster_types,
                                            sizeof cluster_types / sizeof cluster_types[0] };

const trp_type *
shell_event_type(uint32_t event)
{
    switch (event) {
    case TRP_CLUSTER_MEMBER_JOINED:
        return &trp_member_joined_type;
    case TRP_CLUSTER_MEMBER_WEAKLY_UP:
        return &trp_member_weakly_up_type;
    case TRP_CLUSTER_MEMBER_UP:
        return &trp_member_up_type;
    case TRP_CLUSTER_MEMBER_LEFT:
        return &trp_member_left_type;
    case TRP_CLUSTER_MEMBER_EXITED:
        return &trp_member_exited_type;
    case TRP_CLUSTER_MEMBER_DOWNED:
        return &trp_member_downed_type;
    case TRP_CLUSTER_MEMBER_REMOVED:
        return &trp_member_removed_type;
    case TRP_CLUSTER_UNREACHABLE:
        return &trp_member_unreachable_type;
    case TRP_CLUSTER_REACHABLE:
        return &trp_member_reachable_type;
    case TRP_CLUSTER_LEADER_CHANGED:
        return &trp_leader_changed_type;
    case TRP_CLUSTER_ROLE_LEADER_CHANGED:
        return &trp_role_leader_changed_type;
    case TRP_CLUSTER_SEEN_CHANGED:
        return &trp_seen_changed_type;
    default:
        return &trp_downing_decision_type;
    }
}

/* ---- what the view does not say -------------------------------------------------------------- */

static void
member_remember(trpi_cluster *cluster, uint32_t event, const trp_member *member)
{
    pthread_mutex_lock(&cluster->engine.lock);
    uint32_t at = 0;
    while (at < cluster->engine.known_count && cluster->engine.known[at].uid != member->uid) {
        at++;
    }
    if (event == TRP_CLUSTER_MEMBER_REMOVED) {
        if (at < cluster->engine.known_count) {
            cluster->engine.known[at] = cluster->engine.known[--cluster->engine.known_count];
        }
    } else if (at < cluster->engine.known_count || TRPI_ARRAY_HAS_ROOM(&cluster->engine, known)) {
        if (at == cluster->engine.known_count) {
            cluster->engine.known[at] =
                (struct shell_known){ member->uid, shell_now(cluster).mono_ms };
            cluster->engine.known_count++;
        }
    }
    pthread_mutex_unlock(&cluster->engine.lock);
}

/* While a node is a member, the cluster decides when its watched actors are lost: remote watch
 * alone would quarantine it after some seconds, and a cut link could not heal (FD-19, -20). */
static void
watch_judge(trpi_cluster *cluster, uint32_t event, const trp_member_event *what)
{
    const trp_member *member = &what->member;
    trpi_node_id id;
    memset(&id, 0, sizeof id);
    if (member->self != 0 ||
        trpi_address_parse(member->address, &id.address, NULL, NULL) != TRP_OK) {
        return;
    }
    id.uid = member->uid;
    bool removed = event == TRP_CLUSTER_MEMBER_REMOVED;
    uint32_t node = removed ? trpi_node_find(cluster->system, &id) : 0;
    trpi_remote_watch_delegate(cluster->remote, &id.address, !removed);
    if (node != 0) { /* shell-events-B3: else no actor here watches it */
        trpi_node_lost(cluster->system, node, what->previous_status != TRP_MEMBER_DOWN);
    }
}

/* ---- telling --------------------------------------------------------------------------------- */

static void
tell_subscribers(trpi_cluster *cluster, trp_ctx *ctx, uint32_t event, const void *payload,
                 size_t bytes)
{
    for (uint32_t i = 0; i < cluster->audience.subscribers_count; i++) {
        if ((cluster->audience.subscribers[i].events & event) != 0) {
            trp_tell(ctx, cluster->audience.subscribers[i].ref, shell_event_type(event), payload,
                     bytes);
        }
    }
}

static void
call_listeners(trpi_cluster *cluster, const trpi_cluster_event *event)
{
    pthread_mutex_lock(&cluster->listen.lock);
    uint64_t last_id = 0; /* ids ascend: a callback may take any number of listeners off the list */
    for (uint32_t i = 0; i < cluster->listen.listeners_count; i++) {
        struct shell_listener listener = cluster->listen.listeners[i];
        if (listener.id <= last_id || (listener.events & event->event) == 0) {
            continue;
        }
        cluster->listen.calls = true;
        cluster->listen.caller = pthread_self();
        pthread_mutex_unlock(&cluster->listen.lock);
        listener.fn(listener.arg, event);
        pthread_mutex_lock(&cluster->listen.lock);
        cluster->listen.calls = false;
        pthread_cond_broadcast(&cluster->listen.returned);
        last_id = listener.id;
        i = UINT32_MAX; /* from the start: wraps to 0 with the loop's ++ */
    }
    pthread_mutex_unlock(&cluster->listen.lock);
}

static void
tell_listeners(trpi_cluster *cluster, uint32_t event_bit)
{
    trpi_cluster_event event = { .event = event_bit,
                                 .wall_ms = trpi_world_wall_ms(cluster->world) };
    call_listeners(cluster, &event);
}

void
shell_tell_waking(trpi_cluster *cluster)
{
    tell_listeners(cluster, TRPI_CLUSTER_WAKING);
}

void
shell_tell_drained(trpi_cluster *cluster)
{
    tell_listeners(cluster, TRPI_CLUSTER_DRAINED);
}

static void
run_on_up(trpi_cluster *cluster)
{
    cluster->audience.is_up = true;
    for (uint32_t i = 0; i < cluster->audience.on_up_count; i++) {
        cluster->audience.on_up[i].fn(cluster->audience.on_up[i].arg);
    }
    cluster->audience.on_up_count = 0;
}

void
shell_publish(trpi_cluster *cluster, trp_ctx *ctx, const trpi_member_action *action)
{
    trpi_cluster_event event = { .event = action->event,
                                 .wall_ms = trpi_world_wall_ms(cluster->world) };
    const void *payload = &action->published;
    size_t bytes = shell_event_type(action->event)->bytes;
    if (action->own_end) { /* the cluster goes on: routers, watchers and operators need no event */
        tell_subscribers(cluster, ctx, action->event, payload, bytes);
        return;
    }
    if ((action->event & (TRP_CLUSTER_MEMBER_EVENTS | TRP_CLUSTER_REACHABILITY_EVENTS)) != 0) {
        event.member = &action->published.member;
        member_remember(cluster, action->event, &event.member->member);
        watch_judge(cluster, action->event, event.member);
        trpi_metrics_members_changed(cluster->metrics);
    } else if ((action->event & (TRP_CLUSTER_LEADER_CHANGED | TRP_CLUSTER_ROLE_LEADER_CHANGED)) !=
               0) {
        event.leader = &action->published.leader;
    } else if (action->event == TRP_CLUSTER_SEEN_CHANGED) {
        event.seen = &action->published.seen;
    } else {
        event.downing = &action->published.downing;
    }
    tell_subscribers(cluster, ctx, action->event, payload, bytes);
    call_listeners(cluster, &event);
    if (action->event == TRP_CLUSTER_MEMBER_UP && event.member->member.self != 0) {
        run_on_up(cluster);
    }
}

/* EVENTS-07 */
static void
tell_metrics(trp_ctx *ctx, trp_ref to, const trpi_metrics_table *table)
{
    trp_msg *msg;
    void *payload;
    if (trp_msg_new(&trp_metrics_changed_type,
                    sizeof(trp_metrics_changed) + table->count * sizeof(trp_node_metrics), &msg,
                    &payload) != TRP_OK) {
        return; /* no memory: the next change is told */
    }
    trp_metrics_changed *event = payload;
    trp_node_metrics *nodes = (trp_node_metrics *)(void *)(event + 1);
    *event = (trp_metrics_changed){ table->count, 0 };
    for (uint32_t i = 0; i < table->count; i++) {
        nodes[i] = table->entries[i]->node;
    }
    trp_send(ctx, to, msg);
}

void
shell_publish_metrics(trpi_cluster *cluster, trp_ctx *ctx)
{
    trpi_cluster_event event = { .event = TRP_CLUSTER_METRICS_CHANGED,
                                 .wall_ms = trpi_world_wall_ms(cluster->world),
                                 .metrics = trpi_metrics_present(cluster) };
    for (uint32_t i = 0; i < cluster->audience.subscribers_count; i++) {
        if ((cluster->audience.subscribers[i].events & TRP_CLUSTER_METRICS_CHANGED) != 0) {
            tell_metrics(ctx, cluster->audience.subscribers[i].ref, event.metrics);
        }
    }
    call_listeners(cluster, &event);
}

void
shell_send_state(trpi_cluster *cluster, trp_ctx *ctx, trp_ref ref)
{
    bool out = trpi_member_phase_get(cluster->engine.core) == TRPI_PHASE_STOPPED;
    const trpi_gossip *view = out ? NULL : trpi_member_view(cluster->engine.core); /* EVENTS-14 */
    uint32_t count = view == NULL ? 0 : view->members_count;
    size_t bytes = sizeof(trp_current_cluster_state) + count * sizeof(trp_member);
    trp_msg *msg;
    void *payload;
    if (trp_msg_new(&trp_current_cluster_state_type, bytes, &msg, &payload) != TRP_OK) {
        trpi_log(cluster->system, TRP_LOG_ERROR, "cluster", "no memory for the state of %u members",
                 count);
        return;
    }
    trp_current_cluster_state *state = payload;
    memset(state, 0, bytes);
    state->members_count = count;
    state->converged = trpi_member_is_converged(cluster->engine.core);
    trp_member *members = (trp_member *)(void *)(state + 1);
    for (uint32_t i = 0; i < count; i++) {
        trpi_member_fill(cluster->engine.core, &view->members[i], &members[i]);
        state->unreachable_count += members[i].reachable ? 0 : 1;
    }
    uint32_t leader = TRPI_GOSSIP_NONE;
    if (view != NULL) {
        leader = trpi_gossip_leader(view, trpi_member_self(cluster->engine.core)->key, NULL);
    }
    if (leader != TRPI_GOSSIP_NONE) {
        memcpy(state->leader.address, members[leader].address, sizeof state->leader.address);
        state->leader.uid = members[leader].uid;
    }
    trp_send(ctx, ref, msg);
}

struct told {
    trp_ctx *ctx;
    trp_ref to;
};

static void
tell_role_leader(void *arg, const trp_leader_event *leader)
{
    const struct told *told = arg;
    trp_tell(told->ctx, told->to, &trp_role_leader_changed_type, leader, sizeof *leader);
}

/* ---- who is told ----------------------------------------------------------------------------- */

void
shell_subscribe(trpi_cluster *cluster, trp_ctx *ctx, trp_ref ref, uint32_t events)
{
    uint32_t at = 0;
    while (at < cluster->audience.subscribers_count &&
           !trp_ref_equal(cluster->audience.subscribers[at].ref, ref)) {
        at++;
    }
    if (at == cluster->audience.subscribers_count) {
        if (at >= SHELL_SUBSCRIBERS_MAX || !TRPI_ARRAY_HAS_ROOM(&cluster->audience, subscribers) ||
            trp_watch(ctx, ref) != TRP_OK) { /* shell-events-B2 */
            trpi_log(cluster->system, TRP_LOG_ERROR, "cluster",
                     "there are too many subscribers: the new one is not subscribed");
            return;
        }
        cluster->audience.subscribers[at] = (struct shell_subscriber){ ref, 0 };
        cluster->audience.subscribers_count++;
    }
    cluster->audience.subscribers[at].events |= events;
    shell_send_state(cluster, ctx, ref); /* shell-events-B1 */
    if ((events & TRP_CLUSTER_ROLE_LEADER_CHANGED) != 0 &&
        trpi_member_phase_get(cluster->engine.core) !=
            TRPI_PHASE_STOPPED) { /* it has no room for them */
        trpi_member_each_role_leader(cluster->engine.core, tell_role_leader,
                                     &(struct told){ ctx, ref });
    }
}

void
shell_unsubscribe(trpi_cluster *cluster, trp_ctx *ctx, trp_ref ref, uint32_t events)
{
    for (uint32_t i = 0; i < cluster->audience.subscribers_count; i++) {
        struct shell_subscriber *s = &cluster->audience.subscribers[i];
        if (trp_ref_equal(s->ref, ref)) {
            s->events &= ~events;
            if (s->events == 0) {
                trp_unwatch(ctx, ref);
                *s = cluster->audience.subscribers[--cluster->audience.subscribers_count];
            }
            return;
        }
    }
}

void
shell_on_up(trpi_cluster *cluster, const struct shell_on_up *on_up)
{
    if (cluster->audience.is_up) {
        on_up->fn(on_up->arg);
    } else if (TRPI_ARRAY_HAS_ROOM(&cluster->audience, on_up)) {
        cluster->audience.on_up[cluster->audience.on_up_count++] = *on_up;
    } else {
        trpi_log(cluster->system, TRP_LOG_ERROR, "cluster",
                 "no memory for an on-member-up callback");
    }
}

trp_err
trpi_cluster_listen(trpi_cluster *cluster, uint32_t events, trpi_cluster_event_fn fn, void *arg,
                    uint64_t *ret_id)
{
    if (fn == NULL || events == 0) {
        return TRP_EINVAL;
    }
    pthread_mutex_lock(&cluster->listen.lock);
    bool room = TRPI_ARRAY_HAS_ROOM(&cluster->listen, listeners);
    if (room) {
        *ret_id = ++cluster->listen.last_id;
        cluster->listen.listeners[cluster->listen.listeners_count++] =
            (struct shell_listener){ *ret_id, events, fn, arg };
    }
    pthread_mutex_unlock(&cluster->listen.lock);
    return room ? TRP_OK : TRP_ENOMEM;
}

void
trpi_cluster_unlisten(trpi_cluster *cluster, uint64_t id)
{
    pthread_mutex_lock(&cluster->listen.lock);
    for (uint32_t i = 0; i < cluster->listen.listeners_count; i++) {
        if (cluster->listen.listeners[i].id == id) {
            cluster->listen.listeners_count--;
            memmove(cluster->listen.listeners + i, cluster->listen.listeners + i + 1,
                    (cluster->listen.listeners_count - i) * sizeof *cluster->listen.listeners);
            break;
        }
    }
    while (cluster->listen.calls && !pthread_equal(cluster->listen.caller, pthread_self())) {
        pthread_cond_wait(&cluster->listen.returned, &cluster->listen.lock);
    }
    pthread_mutex_unlock(&cluster->listen.lock);
}

/* ---- public: events -------------------------------------------------------------------------- */

static trp_err
cluster_put(trp_system *system, const trp_type *type, const void *payload, size_t bytes)
{
    trpi_cluster *cluster = trpi_cluster_of(system);
    if (cluster == NULL) {
        return TRP_ESTATE;
    }
    trp_err err = shell_put(cluster, type, payload, bytes);
    return err == TRP_ECLOSED ? TRP_ESTATE : err; /* closed: no cluster node any more */
}

trp_err
trp_cluster_subscribe(trp_system *system, trp_ref subscriber, uint32_t events)
{
    uint32_t all =
        TRP_CLUSTER_DOMAIN_EVENTS | TRP_CLUSTER_SEEN_CHANGED | TRP_CLUSTER_METRICS_CHANGED;
    if (trp_ref_is_none(subscriber) || events == 0 || (events & ~all) != 0) {
        return TRP_EINVAL;
    }
    struct shell_subscriber what = { subscriber, events };
    return cluster_put(system, &shell_subscribe_type, &what, sizeof what);
}

void
trp_cluster_unsubscribe(trp_system *system, trp_ref subscriber, uint32_t events)
{
    struct shell_subscriber what = { subscriber, events };
    (void)cluster_put(system, &shell_unsubscribe_type, &what, sizeof what); /* void by contract */
}

trp_err
trp_cluster_send_state(trp_system *system, trp_ref receiver)
{
    struct shell_subscriber what = { receiver, 0 };
    return cluster_put(system, &shell_send_state_type, &what, sizeof what);
}

trp_err
trp_cluster_on_member_up(trp_system *system, void (*fn)(void *arg), void *arg)
{
    struct shell_on_up what = { fn, arg };
    return fn == NULL ? TRP_EINVAL : cluster_put(system, &shell_on_up_type, &what, sizeof what);
}
