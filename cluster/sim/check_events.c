/* check_events.c - sim-S10: the events of a node alone, replayed, give its view; downing-D1: no
 * down-all-when-unstable where all members were reachable meanwhile. */
#include "cluster/sim/world.h"

#include <string.h>

#include "base/array.h"

/* A node's first place is its own; further incarnations of it, which are rare, come behind all. */
struct sim_mirror_member *
sim_mirror_find(const struct sim_world *w, const struct sim_node *n, uint64_t uid)
{
    uint32_t own = (uint32_t)(uid >> 16) & 0xffff;
    if (n->mirror_used == 0) {
        return NULL;
    }
    if (own < w->nodes_count && n->mirror[own].uid == uid) {
        return &n->mirror[own];
    }
    for (uint32_t i = w->nodes_count; i < n->mirror_used; i++) {
        if (n->mirror[i].uid == uid) {
            return &n->mirror[i];
        }
    }
    return NULL;
}

static void
mirror_add(struct sim_world *w, struct sim_node *n, uint64_t uid)
{
    uint32_t more = n->mirror_used == 0 ? w->nodes_count + 1 : 1;
    if (trpi_array_reserve(&n->mirror, n->mirror_used, &n->mirror_room, sizeof *n->mirror, more,
                           TRPI_ARRAY_NO_LIMIT) != TRP_OK) {
        sim_fail(w, "out of memory");
        return;
    }
    if (n->mirror_used == 0) {
        memset(n->mirror, 0, w->nodes_count * sizeof *n->mirror);
        n->mirror_used = w->nodes_count;
    }
    uint32_t own = (uint32_t)(uid >> 16) & 0xffff;
    uint32_t at = own < w->nodes_count && n->mirror[own].uid == 0 ? own : n->mirror_used++;
    n->mirror[at] = (struct sim_mirror_member){ uid, TRP_MEMBER_JOINING, false };
    n->mirror_count++;
}

static void
mirror_remove(const struct sim_world *w, struct sim_node *n, struct sim_mirror_member *m)
{
    n->mirror_count--;
    if (m >= n->mirror + w->nodes_count) {
        *m = n->mirror[--n->mirror_used];
    } else {
        m->uid = 0;
    }
}

/* Return whether this event may follow this status. */
static bool
event_fits(const trpi_member_action *action, const struct sim_mirror_member *m)
{
    switch (action->event) {
    case TRP_CLUSTER_MEMBER_JOINED:
        return m == NULL;
    case TRP_CLUSTER_MEMBER_WEAKLY_UP:
        return m != NULL && m->status == TRP_MEMBER_JOINING;
    case TRP_CLUSTER_MEMBER_UP:
        return m != NULL && (m->status == TRP_MEMBER_JOINING || m->status == TRP_MEMBER_WEAKLY_UP);
    case TRP_CLUSTER_MEMBER_LEFT:
        return m != NULL && (m->status <= TRP_MEMBER_UP || m->status == TRP_MEMBER_WEAKLY_UP);
    case TRP_CLUSTER_MEMBER_EXITED:
        return m != NULL && m->status == TRP_MEMBER_LEAVING;
    case TRP_CLUSTER_MEMBER_DOWNED:
        return m != NULL && m->status != TRP_MEMBER_DOWN;
    case TRP_CLUSTER_MEMBER_REMOVED:
        return m != NULL &&
               (action->own_end ? m->status == action->published.member.previous_status
                                : m->status == TRP_MEMBER_EXITING || m->status == TRP_MEMBER_DOWN);
    case TRP_CLUSTER_UNREACHABLE:
        return m != NULL && !m->unreachable;
    default:
        return m != NULL && m->unreachable;
    }
}

static void
check_decision(struct sim_world *w, uint32_t node, const trp_downing_event *decision)
{
    uint64_t now_ms = w->now_us / 1000;
    uint64_t apart_ms = w->nodes[node].apart_ms;
    uint64_t least_ms =
        (uint64_t)w->member.downing.stable_after_ms + w->member.downing.unstable_after_ms;
    if (strstr(decision->reason, "unstable") != NULL &&
        (apart_ms == 0 || now_ms - apart_ms < least_ms)) {
        sim_fail(w, "downing-D1: node %u stops as unstable, and the cluster was whole %llu ms ago",
                 node, (unsigned long long)(apart_ms == 0 ? 0 : now_ms - apart_ms));
    }
    w->decisions++;
}

void
sim_check_event(struct sim_world *w, uint32_t node, const trpi_member_action *action)
{
    struct sim_node *n = &w->nodes[node];
    if (w->on_event != NULL) {
        w->on_event(w, node, action);
    }
    if (action->event == TRP_CLUSTER_DOWNING_DECISION) {
        check_decision(w, node, &action->published.downing);
        return;
    }
    if ((action->event & (TRP_CLUSTER_MEMBER_EVENTS | TRP_CLUSTER_REACHABILITY_EVENTS)) == 0) {
        return;
    }
    const trp_member *member = &action->published.member.member;
    struct sim_mirror_member *m = sim_mirror_find(w, n, member->uid);
    if (!event_fits(action, m)) {
        sim_fail(w, "sim-S10: node %u: event %u for %s does not follow from status %u", node,
                 action->event, member->address, m == NULL ? 0 : m->status);
        return;
    }
    switch (action->event) {
    case TRP_CLUSTER_MEMBER_JOINED:
        mirror_add(w, n, member->uid);
        break;
    case TRP_CLUSTER_MEMBER_REMOVED:
        w->removed_by_down +=
            !action->own_end && action->published.member.previous_status == TRP_MEMBER_DOWN ? 1 : 0;
        mirror_remove(w, n, m);
        break;
    case TRP_CLUSTER_UNREACHABLE:
        w->unreachable_events++;
        m->unreachable = true;
        break;
    case TRP_CLUSTER_REACHABLE:
        m->unreachable = false;
        break;
    default:
        m->status = member->status;
        break;
    }
}
