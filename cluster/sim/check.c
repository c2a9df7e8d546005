/* check.c - what must hold at every step (S) and once all is well again (Q); README.md has a table.
 * The checks of events are in check_events.c. */
#include "cluster/sim/world.h"

#include <string.h>

#include "base/array.h"
#include "base/assert.h"
#include "base/hash.h"

/* sim-S5 costs N per step; larger clusters leave it to the small ones */
#define OBSERVER_CHECK_NODES_MAX 32u
/* The engine's own check functions: after each step up to so many nodes, beyond that after one step
 * in so many, which the seed and the step's number choose. */
#define CHECK_NODES_MAX 50u
#define CHECK_ONE_IN 16u
/* A forecast costs a decision for each member, which walks over all members: up to CHECK_NODES_MAX
 * nodes one of so many checked steps has one, beyond that fewer. */
#define FORECAST_ONE_IN 64u

/* ---- S: each step ---------------------------------------------------------------------------- */

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

/* Return whether self is the first of the members that had been Up: as it knew before this step, or
 * as any node knew. One step may hold several edits: a successor joins, its predecessor becomes
 * Down, the next in order leads. */
static bool
is_first_of_old(struct sim_world *w, const trpi_gossip *old, const trpi_gossip *new, uint64_t self,
                bool as_it_knew)
{
    for (uint32_t i = 0; i < new->members_count; i++) {
        const trpi_gossip_member *m = &new->members[i];
        if (m->status == TRP_MEMBER_EXITING && m->ident->key != self) {
            continue; /* does not lead while another member may */
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
    return true; /* no member was Up: a new cluster */
}

static bool
has_led(struct sim_world *w, uint32_t node, const trpi_gossip *old, const trpi_gossip *new)
{
    uint64_t self = trpi_member_self(w->nodes[node].core)->key;
    uint32_t before = trpi_gossip_leader(old, self, NULL);
    uint32_t after = trpi_gossip_leader(new, self, NULL);
    return (before != TRPI_GOSSIP_NONE && old->members[before].ident->key == self) ||
           (after != TRPI_GOSSIP_NONE && new->members[after].ident->key == self) ||
           is_first_of_old(w, old, new, self, false) || is_first_of_old(w, old, new, self, true);
}

/* A fact that comes with the up-number: known with it, and of two that were there the earlier. */
static void
check_up_since(struct sim_world *w, uint32_t node, const trpi_gossip_member *was,
               const trpi_gossip_member *is)
{
    bool same = was->up_number == is->up_number && is->up_number != 0;
    if ((is->up_number != 0) != (is->up_since_s != 0) ||
        (same && is->up_since_s > was->up_since_s)) {
        sim_fail(w, "sim-S7: node %u: %s is Up %u since %u, and was Up %u since %u", node,
                 is->ident->id.address.host, is->up_number, is->up_since_s, was->up_number,
                 was->up_since_s);
    }
}

/* Call the engine's check functions for a view, and for the step that led to it. In a large cluster
 * views are checked after some steps only, the steps between views always. */
static void
check_engine(struct sim_world *w, uint32_t node, const trpi_gossip *old, const trpi_gossip *new)
{
    trpi_check check;
    const char *broken = sim_is_checked_step(w) ? trpi_gossip_check(new, &check) : NULL;
    broken = broken != NULL ? broken : trpi_gossip_check_step(old, new, &check);
    if (broken != NULL) {
        sim_fail(w, "%s (node %u)", broken, node);
    }
}

static void
check_members(struct sim_world *w, uint32_t node, const trpi_gossip *old, const trpi_gossip *new)
{
    uint32_t next = 0; /* both are in one order */
    for (uint32_t i = 0; i < old->members_count; i++) {
        const trpi_gossip_member *m = &old->members[i];
        uint32_t at = next < new->members_count && m->ident == new->members[next].ident
                          ? next
                          : trpi_gossip_find(new, m->ident->key);
        next = at == TRPI_GOSSIP_NONE ? next : at + 1;
        if (at != TRPI_GOSSIP_NONE) {
            check_up_since(w, node, m, &new->members[at]);
        }
    }
    for (uint32_t i = 0; i < old->tombstones_count; i++) {
        if (trpi_gossip_tombstone(new, old->tombstones[i].key) == NULL) {
            sim_fail(w, "sim-S2: node %u forgot a tombstone before its age", node);
        }
    }
}

/* sim-S5: no node knows a newer version of an observer's rows than the observer itself. */
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
            sim_fail(w, "sim-S5: node %u knows rows that their observer has not written", node);
        }
    }
}

/* sim-S6, sim-S8: the first node that sees a member Up or Exiting is a leader, and the cluster is
 * large enough. A step that another node took before has nothing new. */
static void
check_decision(struct sim_world *w, uint32_t node, const trpi_gossip *old, const trpi_gossip *new,
               const trpi_gossip_member *m)
{
    if (!has_led(w, node, old, new)) {
        sim_fail(w, "sim-S6: node %u moved %s to %s without being the leader", node,
                 m->ident->id.address.host, trp_member_status_name(m->status));
    }
    uint32_t alive = 0;
    for (uint32_t i = 0; i < new->members_count && w->member.min_nr_of_members > 1; i++) {
        alive += new->members[i].status <= TRP_MEMBER_EXITING ? 1 : 0;
    }
    if (m->status == TRP_MEMBER_UP && alive < w->member.min_nr_of_members &&
        w->member.min_nr_of_members > 1) {
        sim_fail(w, "sim-S8: Up with %u of %u members", alive, w->member.min_nr_of_members);
    }
}

/* Return whether this status of the member is new to the node. Both views are in one order; *at
 * moves on. */
static bool
is_news(const trpi_gossip *old, const trpi_gossip_member *m, uint32_t *at)
{
    uint32_t was = *at < old->members_count && old->members[*at].ident == m->ident
                       ? *at
                       : trpi_gossip_find(old, m->ident->key);
    if (was == TRPI_GOSSIP_NONE) {
        return true;
    }
    *at = was + 1;
    return old->members[was].status != m->status || old->members[was].up_number != m->up_number;
}

static void
check_decisions(struct sim_world *w, uint32_t node, const trpi_gossip *old, const trpi_gossip *new)
{
    const trpi_gossip_member *first[2] = { NULL, NULL }; /* Up, Exiting: all are by one node */
    uint32_t at = 0;
    for (uint32_t i = 0; i < new->members_count; i++) {
        const trpi_gossip_member *m = &new->members[i];
        struct sim_node *subject = is_news(old, m, &at) ? sim_node_of(w, m->ident->id.uid) : NULL;
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
    at = 0;
    for (uint32_t i = 0; i < new->members_count; i++) {
        const trpi_gossip_member *m = &new->members[i];
        struct sim_node *subject =
            m->up_number != 0 && is_news(old, m, &at) ? sim_node_of(w, m->ident->id.uid) : NULL;
        if (subject != NULL) {
            subject->ever_up = true;
        }
    }
}

/* Return whether it is the first tombstone of this member in any view. */
static bool
is_first_removal(struct sim_world *w, uint64_t key)
{
    for (uint32_t i = w->removed_keys_count; i-- > 0;) {
        if (w->removed_keys[i] == key) {
            return false;
        }
    }
    if (!TRPI_ARRAY_HAS_ROOM(w, removed_keys)) {
        sim_fail(w, "out of memory");
        return false;
    }
    w->removed_keys[w->removed_keys_count++] = key;
    return true;
}

/* sim-S6: the first node that has a tombstone is a leader, and the removed member was Down or
 * Exiting. A member that is missing proves nothing: it may have come and gone between two looks. */
static void
check_removals(struct sim_world *w, uint32_t node, const trpi_gossip *old, const trpi_gossip *new)
{
    for (uint32_t i = 0; i < new->tombstones_count; i++) {
        const trpi_tombstone *t = &new->tombstones[i];
        if (trpi_gossip_tombstone(old, t->key) != NULL || !is_first_removal(w, t->key)) {
            continue;
        }
        if (!has_led(w, node, old, new)) {
            sim_fail(w, "sim-S6: node %u removed a member without being the leader", node);
        } else if (t->status != TRP_MEMBER_DOWN && t->status != TRP_MEMBER_EXITING) {
            sim_fail(w, "sim-S6: node %u removed a member that was %s", node,
                     trp_member_status_name(t->status));
        }
    }
}

/* sim-S7: no two members that are Up at one time have one number. */
static void
check_up_number(struct sim_world *w, uint32_t node, const trpi_gossip *g, uint32_t index)
{
    const trpi_gossip_member *m = &g->members[index];
    for (uint32_t i = index + 1; i < g->members_count; i++) {
        if (g->members[i].up_number == m->up_number && m->status != TRP_MEMBER_DOWN &&
            g->members[i].status != TRP_MEMBER_DOWN) {
            sim_fail(w, "sim-S7: node %u has two members with up-number %u in a converged view",
                     node, m->up_number);
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
        if (w->nodes_count <= OBSERVER_CHECK_NODES_MAX && a->up_number != 0) {
            check_up_number(w, node, new, i - 1);
        }
        if (both_up && trpi_address_equal(&a->ident->id.address, &b->ident->id.address)) {
            sim_fail(w, "sim-S4: node %u has two incarnations of %s Up in a converged view", node,
                     a->ident->id.address.host);
        }
    }
}

/* downing-D1: return whether a member that is Up or Leaving is unreachable in this view. */
static bool
misses_a_member(const trpi_gossip *g)
{
    for (uint32_t i = 0; i < g->members_count && g->unreachable_count > 0; i++) {
        uint32_t status = g->members[i].status;
        if (g->members[i].unreachable != 0 &&
            (status == TRP_MEMBER_UP || status == TRP_MEMBER_LEAVING)) {
            return true;
        }
    }
    return false;
}

bool
sim_is_checked_step(const struct sim_world *w)
{
    return w->nodes_count <= CHECK_NODES_MAX ||
           trpi_hash_u64(w->options.seed ^ w->seq) % CHECK_ONE_IN == 0;
}

/* sim-S15: a node that holds the lease is the one that the lease was granted to last. */
static void
check_owner(struct sim_world *w, uint32_t node)
{
    const struct sim_node *n = &w->nodes[node];
    if (trpi_member_needs_lease(n->core) &&
        (w->lease_holder != node + 1 || w->lease_incarnation != n->incarnation)) {
        sim_fail(w, "sim-S15: node %u holds the lease, and node %u has it", node,
                 w->lease_holder - 1);
    }
}

/* Is this step one after which the forecast is checked, too? */
static bool
is_forecast_step(const struct sim_world *w)
{
    uint64_t one_in = w->nodes_count <= CHECK_NODES_MAX
                          ? FORECAST_ONE_IN
                          : (uint64_t)FORECAST_ONE_IN * w->nodes_count;
    return trpi_hash_u64(w->options.seed + w->seq) % one_in == 0;
}

void
sim_check_engine(struct sim_world *w, uint32_t node)
{
    const trpi_member_core *core = w->nodes[node].core;
    trpi_check check;
    if (!sim_is_checked_step(w)) {
        return;
    }
    const char *broken = trpi_member_check(core, &check);
    broken = broken != NULL ? broken : trpi_lease_check(core, &check);
    if (broken == NULL && sim_is_member(&w->nodes[node]) && is_forecast_step(w)) {
        broken = trpi_forecast_check(core, &check);
    }
    if (broken != NULL) {
        sim_fail(w, "%s (node %u)", broken, node);
    }
    check_owner(w, node);
}

void
sim_check_heartbeat(struct sim_world *w, uint32_t node)
{
    trpi_check check;
    const char *broken =
        sim_is_checked_step(w) ? trpi_heartbeat_check(w->nodes[node].heartbeat, &check) : NULL;
    if (broken != NULL) {
        sim_fail(w, "%s (node %u)", broken, node);
    }
}

void
sim_check_view(struct sim_world *w, uint32_t node)
{
    static const trpi_gossip nothing = { .refs = 1, .frozen = true };
    struct sim_node *n = &w->nodes[node];
    trpi_gossip *new = trpi_member_view(n->core);
    const trpi_gossip *old = n->checked == NULL ? &nothing : n->checked;
    struct sim_checked *checked = &w->checked[(old->digest ^ new->digest * 3) % SIM_CHECKED];
    if (checked->from != n->checked || checked->to != new) {
        check_engine(w, node, old, new);
        check_members(w, node, old, new);
        check_removals(w, node, old, new); /* by a node that had been Up before this step */
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
    n->apart_ms = !misses_a_member(new) ? 0 : n->apart_ms != 0 ? n->apart_ms : w->now_us / 1000;
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
            return false; /* sim-Q1 */
        }
    }
    const trpi_gossip *view = trpi_member_view(first->core);
    const trpi_seen *seen = trpi_member_seen(first->core);
    if (view->members_count != wanted_count(w) || trpi_seen_count(seen) != seen->bits ||
        view->rows_count != 0) {
        return false; /* sim-Q4, sim-Q5 */
    }
    for (uint32_t i = 0; i < view->members_count; i++) {
        const struct sim_node *n = sim_node_of(w, view->members[i].ident->id.uid);
        if (view->members[i].status != TRP_MEMBER_UP || n == NULL || !n->running) {
            return false; /* sim-Q3 */
        }
    }
    return true;
}

void
sim_explain(struct sim_world *w)
{
    char text[TRPI_SIM_FAILURE_BYTES];
    size_t at = 0;
    for (uint32_t i = 0; i < w->nodes_count && at + 60 < sizeof text; i++) {
        const struct sim_node *n = &w->nodes[i];
        const trpi_gossip *g = n->running ? trpi_member_view(n->core) : NULL;
        int wrote;
        if (g == NULL) {
            wrote =
                snprintf(text + at, sizeof text - at, " %u:%s", i, n->running ? "seeking" : "-");
        } else {
            trpi_gossip_blockers b = trpi_gossip_blocked_by(g, trpi_member_seen(n->core));
            wrote = snprintf(text + at, sizeof text - at, " %u:%u members,%u unseen,%u away,%04x",
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
            sim_fail(w, "sim-Q2: node %u does not hold the lowest address for the leader", i);
        }
        if (g->tombstones_count > w->result.incarnations || g->clock_count > g->members_count) {
            sim_fail(w, "sim-Q7: the state of node %u has %u tombstones and %u clock entries", i,
                     g->tombstones_count, g->clock_count);
        }
        for (uint32_t k = 0; k < g->members_count; k++) {
            const struct sim_mirror_member *m = sim_mirror_find(w, n, g->members[k].ident->id.uid);
            if (m == NULL || m->status != g->members[k].status || m->unreachable) {
                sim_fail(w, "sim-S10: the events of node %u do not give its view", i);
            }
        }
        if (n->mirror_count != g->members_count) {
            sim_fail(w, "sim-S10: the events of node %u give %u of %u members", i, n->mirror_count,
                     g->members_count);
        }
    }
}
