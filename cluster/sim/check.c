/* check.c - what must hold at every step (S) and once all is well again (Q); membership_notes.md
 * names them, docs/conformance.md cites them. */
#include "cluster/sim/world.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

/* S5 costs N per step; larger clusters leave it to the small ones */
#define OBSERVER_CHECK_NODES_MAX 32u

/* ---- S: each step ---------------------------------------------------------------------------- */

static void
check_members(struct sim_world *w, uint32_t node, const trpi_gossip *old, const trpi_gossip *new)
{
    uint32_t next = 0; /* both are in one order */
    for (uint32_t i = 0; i < old->members_count; i++) {
        const trpi_gossip_member *m = &old->members[i];
        uint32_t at = next < new->members_count && new->members[next].ident == m->ident
                          ? next
                          : trpi_gossip_find(new, m->ident->key);
        next = at == TRPI_GOSSIP_NONE ? next : at + 1;
        if (at == TRPI_GOSSIP_NONE) {
            if (trpi_gossip_tombstone(new, m->ident->key) == NULL) {
                sim_fail(w, "S2: node %u lost a member without a tombstone", node);
            }
            continue;
        }
        uint32_t was = trpi_member_status(m), is = trpi_member_status(&new->members[at]);
        if (new->members[at].status < m->status ||
            (was == TRP_MEMBER_WEAKLY_UP && is == TRP_MEMBER_JOINING)) {
            sim_fail(w, "S1: node %u saw %s go from %s to %s", node, m->ident->id.address.host,
                     trp_member_status_name(was), trp_member_status_name(is));
        }
        if (m->up_number != 0 && (new->members[at].up_number == 0 ||
                                  new->members[at].up_number > m->up_number)) {
            sim_fail(w, "S7: node %u saw an up-number grow", node);
        }
    }
    for (uint32_t i = 0; i < old->tombstones_count; i++) {
        if (trpi_gossip_tombstone(new, old->tombstones[i].key) == NULL) {
            sim_fail(w, "S2: node %u forgot a tombstone before its age", node);
        }
    }
    for (uint32_t i = 0; i < old->clock_count; i++) {
        uint64_t key = old->clock[i].key;
        if (trpi_gossip_find(new, key) != TRPI_GOSSIP_NONE &&
            trpi_vclock_get(new->clock, new->clock_count, key) < old->clock[i].counter) {
            sim_fail(w, "S3: the clock of node %u went back", node);
        }
    }
}

static uint64_t
version_in(const trpi_gossip *g, uint64_t observer)
{
    for (uint32_t i = 0; i < g->versions_count; i++) {
        if (g->versions[i].observer == observer) {
            return g->versions[i].version;
        }
    }
    return 0;
}

/* S5: nobody knows a newer version of an observer's rows than the observer itself. */
static void
check_observers(struct sim_world *w, uint32_t node, const trpi_gossip *new)
{
    for (uint32_t i = 0; i < new->versions_count; i++) {
        uint32_t at = trpi_gossip_find(new, new->versions[i].observer);
        const struct sim_node *observer = sim_node_of(w, new->members[at].ident->id.uid);
        if (observer == NULL || !observer->running || observer == &w->nodes[node] ||
            trpi_member_view(observer->core) == NULL) {
            continue;
        }
        if (version_in(trpi_member_view(observer->core), new->versions[i].observer) <
            new->versions[i].version) {
            sim_fail(w, "S5: node %u knows rows that their observer has not written", node);
        }
    }
}

/* Does self come first among those who had been Up: as it knew before this step, or as anybody
 * knew? One step may hold several edits: a successor joins, its predecessor goes Down, the next in
 * order leads. */
static bool
leads_the_old_ones(struct sim_world *w, const trpi_gossip *old, const trpi_gossip *new,
                   uint64_t self, bool as_it_knew)
{
    for (uint32_t i = 0; i < new->members_count; i++) {
        const trpi_gossip_member *m = &new->members[i];
        if (m->status == TRP_MEMBER_EXITING && m->ident->key != self) {
            continue; /* does not lead while anybody else may */
        }
        const struct sim_node *n = sim_node_of(w, m->ident->id.uid);
        uint32_t was = trpi_gossip_find(old, m->ident->key);
        bool was_up = as_it_knew || n == NULL
                          ? was != TRPI_GOSSIP_NONE && old->members[was].up_number != 0
                          : n->ever_up && m->up_number != 0;
        if (was_up && m->status != TRP_MEMBER_DOWN &&
            (m->unreachable == 0 || m->ident->key == self)) {
            return m->ident->key == self;
        }
    }
    return true; /* nobody was Up: a new cluster */
}

/* S6, S8: the first who sees a member Up or Exiting is a leader, and the cluster is large enough. A
 * step that another node took before has nothing new. */
static void
check_decision(struct sim_world *w, uint32_t node, const trpi_gossip *old, const trpi_gossip *new,
               const trpi_gossip_member *m)
{
    uint64_t self = trpi_member_self(w->nodes[node].core)->key;
    uint32_t before = trpi_gossip_leader(old, self, NULL);
    uint32_t after = trpi_gossip_leader(new, self, NULL);
    bool led = (before != TRPI_GOSSIP_NONE && old->members[before].ident->key == self) ||
               (after != TRPI_GOSSIP_NONE && new->members[after].ident->key == self) ||
               leads_the_old_ones(w, old, new, self, false) ||
               leads_the_old_ones(w, old, new, self, true);
    if (!led) {
        sim_fail(w, "S6: node %u moved %s to %s without being the leader", node,
                 m->ident->id.address.host, trp_member_status_name(m->status));
    }
    uint32_t alive = 0;
    for (uint32_t i = 0; i < new->members_count && w->member.min_nr_of_members > 1; i++) {
        alive += new->members[i].status <= TRP_MEMBER_EXITING ? 1 : 0;
    }
    if (m->status == TRP_MEMBER_UP && alive < w->member.min_nr_of_members &&
        w->member.min_nr_of_members > 1) {
        sim_fail(w, "S8: Up with %u of %u members", alive, w->member.min_nr_of_members);
    }
}

static void
check_decisions(struct sim_world *w, uint32_t node, const trpi_gossip *old, const trpi_gossip *new)
{
    const trpi_gossip_member *first[2] = { NULL, NULL }; /* Up, Exiting: all are by one node */
    for (uint32_t i = 0; i < new->members_count; i++) {
        const trpi_gossip_member *m = &new->members[i];
        struct sim_node *subject = sim_node_of(w, m->ident->id.uid);
        if (subject != NULL && m->status > subject->peak_status) {
            subject->peak_status = m->status;
            subject->joining_us = m->status == TRP_MEMBER_JOINING ? w->now_us : subject->joining_us;
            subject->up_us = m->status == TRP_MEMBER_UP ? w->now_us : subject->up_us;
            /* alone, the leader agrees with itself in one step */
            subject->joining_us = subject->joining_us == 0 ? w->now_us : subject->joining_us;
            if (m->status == TRP_MEMBER_UP || m->status == TRP_MEMBER_EXITING) {
                first[m->status == TRP_MEMBER_EXITING] = m;
            }
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (first[i] != NULL) {
            check_decision(w, node, old, new, first[i]);
        }
    }
    for (uint32_t i = 0; i < new->members_count; i++) {
        struct sim_node *subject = sim_node_of(w, new->members[i].ident->id.uid);
        if (subject != NULL) {
            subject->ever_up = subject->ever_up || new->members[i].up_number != 0;
        }
    }
}

static void
check_converged(struct sim_world *w, uint32_t node, const trpi_gossip *new)
{
    for (uint32_t i = 1; i < new->members_count; i++) {
        const trpi_gossip_member *a = &new->members[i - 1];
        const trpi_gossip_member *b = &new->members[i];
        bool both_up = (a->status == TRP_MEMBER_UP || a->status == TRP_MEMBER_LEAVING) &&
                       (b->status == TRP_MEMBER_UP || b->status == TRP_MEMBER_LEAVING);
        if (both_up && trpi_address_equal(&a->ident->id.address, &b->ident->id.address)) {
            sim_fail(w, "S4: node %u has two incarnations of %s Up in a converged view", node,
                     a->ident->id.address.host);
        }
    }
}

void
sim_check_view(struct sim_world *w, uint32_t node)
{
    static const trpi_gossip nothing = { .refs = 1, .frozen = true };
    struct sim_node *n = &w->nodes[node];
    trpi_gossip *new = trpi_member_view(n->core);
    const trpi_gossip *old = n->checked == NULL ? &nothing : n->checked;
    if (trpi_member_seen(n->core)->bits != new->members_count) {
        sim_fail(w, "S4: node %u has a seen set of another size than its members", node);
        return;
    }
    struct sim_checked *checked = &w->checked[(old->digest ^ new->digest * 3) % SIM_CHECKED];
    if (checked->from != n->checked || checked->to != new) {
        check_members(w, node, old, new);
        check_decisions(w, node, old, new);
        trpi_gossip_unref(checked->from);
        trpi_gossip_unref(checked->to);
        checked->from = n->checked == NULL ? NULL : trpi_gossip_ref(n->checked);
        checked->to = trpi_gossip_ref(new);
    }
    if (w->nodes_count <= OBSERVER_CHECK_NODES_MAX) {
        check_observers(w, node, new);
    }
    if (trpi_member_is_converged(n->core)) {
        check_converged(w, node, new);
    }
    trpi_gossip_ref(new);
    trpi_gossip_unref(n->checked);
    n->checked = new;
}

/* ---- S10: the events alone give the view ----------------------------------------------------- */

/* A node's first place is its own; further incarnations of it, which are rare, come behind all. */
static struct sim_mirror_member *
mirror_find(const struct sim_world *w, const struct sim_node *n, uint64_t uid)
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

static bool
mirror_grow(struct sim_node *n, uint32_t room)
{
    struct sim_mirror_member *bigger = trpi_realloc(n->mirror, room * sizeof(*bigger));
    if (bigger != NULL) {
        n->mirror = bigger;
        n->mirror_room = room;
    }
    return bigger != NULL;
}

static void
mirror_add(struct sim_world *w, struct sim_node *n, uint64_t uid)
{
    if (n->mirror_used == n->mirror_room &&
        !mirror_grow(n, n->mirror_used == 0 ? w->nodes_count + 4 : n->mirror_room + 16)) {
        sim_fail(w, "out of memory");
        return;
    }
    if (n->mirror_used == 0) {
        memset(n->mirror, 0, w->nodes_count * sizeof(*n->mirror));
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

/* May this event come in this status? */
static bool
event_fits(uint32_t event, const struct sim_mirror_member *m)
{
    switch (event) {
    case TRP_CLUSTER_MEMBER_JOINED:
        return m == NULL;
    case TRP_CLUSTER_MEMBER_WEAKLY_UP:
        return m != NULL && m->status == TRP_MEMBER_JOINING;
    case TRP_CLUSTER_MEMBER_UP:
        return m != NULL &&
               (m->status == TRP_MEMBER_JOINING || m->status == TRP_MEMBER_WEAKLY_UP);
    case TRP_CLUSTER_MEMBER_LEFT:
        return m != NULL && (m->status <= TRP_MEMBER_UP || m->status == TRP_MEMBER_WEAKLY_UP);
    case TRP_CLUSTER_MEMBER_EXITED:
        return m != NULL && m->status == TRP_MEMBER_LEAVING;
    case TRP_CLUSTER_MEMBER_DOWNED:
        return m != NULL && m->status != TRP_MEMBER_DOWN;
    case TRP_CLUSTER_MEMBER_REMOVED:
        return m != NULL && (m->status == TRP_MEMBER_EXITING || m->status == TRP_MEMBER_DOWN);
    case TRP_CLUSTER_UNREACHABLE:
        return m != NULL && !m->unreachable;
    default:
        return m != NULL && m->unreachable;
    }
}

void
sim_check_event(struct sim_world *w, uint32_t node, const trpi_member_action *action)
{
    struct sim_node *n = &w->nodes[node];
    if (w->on_event != NULL) {
        w->on_event(w, node, action);
    }
    if (action->event == TRP_CLUSTER_DOWNING_DECISION) {
        w->decisions++;
        return;
    }
    if ((action->event & (TRP_CLUSTER_MEMBER_EVENTS | TRP_CLUSTER_REACHABILITY_EVENTS)) == 0) {
        return;
    }
    const trp_member *member = &action->published.member.member;
    struct sim_mirror_member *m = mirror_find(w, n, member->uid);
    if (!event_fits(action->event, m)) {
        sim_fail(w, "S10: node %u: event %u for %s does not follow from status %u", node,
                 action->event, member->address, m == NULL ? 0 : m->status);
        return;
    }
    switch (action->event) {
    case TRP_CLUSTER_MEMBER_JOINED:
        mirror_add(w, n, member->uid);
        break;
    case TRP_CLUSTER_MEMBER_REMOVED:
        w->removed_by_down += action->published.member.previous_status == TRP_MEMBER_DOWN ? 1 : 0;
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

/* ---- Q --------------------------------------------------------------------------------------- */

static const struct sim_node *
first_member(const struct sim_world *w)
{
    for (uint32_t i = 0; i < w->nodes_count; i++) {
        if (w->nodes[i].wanted) {
            return &w->nodes[i];
        }
    }
    return NULL;
}

static uint32_t
wanted_count(const struct sim_world *w)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < w->nodes_count; i++) {
        count += w->nodes[i].wanted ? 1 : 0;
    }
    return count;
}

bool
sim_is_quiet(struct sim_world *w)
{
    const struct sim_node *first = first_member(w);
    if (first == NULL || !sim_is_member(first)) {
        return false;
    }
    uint64_t version = trpi_member_version(first->core);
    for (uint32_t i = 0; i < w->nodes_count; i++) {
        const struct sim_node *n = &w->nodes[i];
        if (!n->wanted) {
            if (n->running) {
                return false;
            }
            continue;
        }
        if (!sim_is_member(n) || trpi_member_version(n->core) != version) {
            return false; /* Q1 */
        }
    }
    const trpi_gossip *view = trpi_member_view(first->core);
    const trpi_seen *seen = trpi_member_seen(first->core);
    if (view->members_count != wanted_count(w) || trpi_seen_count(seen) != seen->bits ||
        view->rows_count != 0) {
        return false; /* Q4, Q5 */
    }
    for (uint32_t i = 0; i < view->members_count; i++) {
        const struct sim_node *n = sim_node_of(w, view->members[i].ident->id.uid);
        if (view->members[i].status != TRP_MEMBER_UP || n == NULL || !n->running) {
            return false; /* Q3 */
        }
    }
    return true;
}

void
sim_explain(struct sim_world *w)
{
    char text[TRPI_SIM_FAILURE_BYTES];
    size_t at = 0;
    for (uint32_t i = 0; i < w->nodes_count && at + 60 < sizeof(text); i++) {
        const struct sim_node *n = &w->nodes[i];
        const trpi_gossip *g = n->running ? trpi_member_view(n->core) : NULL;
        int wrote;
        if (g == NULL) {
            wrote =
                snprintf(text + at, sizeof(text) - at, " %u:%s", i, n->running ? "seeking" : "-");
        } else {
            trpi_gossip_blockers b = trpi_gossip_blocked_by(g, trpi_member_seen(n->core));
            wrote = snprintf(text + at, sizeof(text) - at, " %u:%u members,%u unseen,%u away,%04x",
                             i, g->members_count, b.unseen, b.unreachable,
                             (unsigned)(trpi_member_version(n->core) & 0xffff));
        }
        at += wrote > 0 ? (size_t)wrote : 0;
    }
    sim_fail(w, "Q: not one converged cluster in time;%s", text);
}

/* Once quiet: leader, events, sizes. */
void
sim_check_quiet(struct sim_world *w)
{
    for (uint32_t i = 0; i < w->nodes_count; i++) {
        struct sim_node *n = &w->nodes[i];
        if (!n->wanted) {
            continue;
        }
        const trpi_gossip *g = trpi_member_view(n->core);
        if (trpi_gossip_leader(g, trpi_member_self(n->core)->key, NULL) != 0) {
            sim_fail(w, "Q2: node %u does not hold the lowest address for the leader", i);
        }
        if (g->tombstones_count > w->result.incarnations || g->clock_count > g->members_count) {
            sim_fail(w, "Q7: the state of node %u has %u tombstones and %u clock entries", i,
                     g->tombstones_count, g->clock_count);
        }
        for (uint32_t k = 0; k < g->members_count; k++) {
            const struct sim_mirror_member *m = mirror_find(w, n, g->members[k].ident->id.uid);
            if (m == NULL || m->status != g->members[k].status || m->unreachable) {
                sim_fail(w, "S10: the events of node %u do not give its view", i);
            }
        }
        if (n->mirror_count != g->members_count) {
            sim_fail(w, "S10: the events of node %u give %u of %u members", i, n->mirror_count,
                     g->members_count);
        }
    }
}
