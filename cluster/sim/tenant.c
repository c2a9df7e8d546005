/* tenant.c - an actor that must not live twice, on the oldest member of each view.
 *
 * Why.     The rule by which a node suspends (engine/exclusive.c), the guard's clock and the
 *          take-over times are those of production. Here they meet partitions in one direction,
 *          crashes, leaves, and processes that stop at any instant and go on.
 * Shape.   A node hosts the tenant while it is the oldest member of its own view (a member that is
 *          Exiting or Down counts until it is removed) and every removal that it knows of is
 *          settled or its margin over. A host that runs handles a message at every instant: the
 *          guard is asked at each event of the world, so a process that goes on after a stop may
 *          handle one before anything else happens in it.
 *          Never two nodes handle at one instant, removed ones included, for each strategy that
 *          resolves; when all faults are over, one handles (README.md: sim-S16, sim-Q11).
 * Tests.   tests/sim/exclusive_test.c
 */
#include "cluster/sim/world.h"

#include "cluster/engine/age.h"

#define LOOK_US 187500u /* as the shell does with the default acceptable-heartbeat-pause */
#define PAUSE_MS 3000u
#define UNSETTLED_US_MAX 600000000u /* after the faults */

void
sim_tenant_start(struct sim_world *w, uint32_t node)
{
    struct sim_tenant *t = &w->nodes[node].tenant;
    trpi_guard_limits limits = { .period_ms = LOOK_US / 1000,
                                 .limit_ms = PAUSE_MS,
                                 .window_ms = w->member.downing.stable_after_ms };
    if (!w->options.tenant) {
        return;
    }
    if ((w->options.broken & TRPI_BROKEN_NO_STALLS) != 0) {
        limits.limit_ms = UINT32_MAX;
    }
    *t = (struct sim_tenant){ .hosts = false };
    if (trpi_guard_new(NULL, NULL, &t->guard) != TRP_OK) {
        sim_fail(w, "out of memory");
        return;
    }
    trpi_guard_watch_at(t->guard, &limits, w->now_us * 1000);
}

void
sim_tenant_end(struct sim_node *n)
{
    trpi_guard_free(n->tenant.guard);
    n->tenant = (struct sim_tenant){ .hosts = false };
}

uint64_t
sim_tenant_wake_us(const struct sim_world *w, const struct sim_node *n)
{
    return n->tenant.guard == NULL ? UINT64_MAX : w->now_us + LOOK_US;
}

/* Return whether all removals that the node knows of allow it to start what was hosted there. */
static bool
may_take_over(const struct sim_world *w, const struct sim_node *n, const trpi_gossip *g)
{
    for (uint32_t i = 0; i < g->tombstones_count; i++) {
        uint64_t in_ms = 0;
        bool gone = trpi_member_takeover(n->core, w->now_us / 1000, g->tombstones[i].key, &in_ms);
        if (!gone || (in_ms > 0 && (w->options.broken & TRPI_BROKEN_NO_MARGIN) == 0)) {
            return false;
        }
    }
    return true;
}

static bool
is_host(const struct sim_world *w, const struct sim_node *n)
{
    const trpi_gossip *g = sim_is_member(n) ? trpi_member_view(n->core) : NULL;
    uint64_t key = trpi_member_self(n->core)->key;
    uint32_t self = g == NULL ? TRPI_GOSSIP_NONE : trpi_gossip_find(g, key);
    if (self == TRPI_GOSSIP_NONE || g->members[self].up_number == 0) {
        return false;
    }
    trpi_aged own = { g->members[self].ident->id, g->members[self].up_number, TRP_MEMBER_UP };
    for (uint32_t i = 0; i < g->members_count; i++) {
        const trpi_gossip_member *m = &g->members[i];
        trpi_aged other = { m->ident->id, m->up_number, TRP_MEMBER_UP };
        if (i != self && m->up_number != 0 && trpi_age_compare(&other, &own) < 0) {
            return false;
        }
    }
    /* a host that goes on need not ask again */
    return n->tenant.hosts || may_take_over(w, n, g);
}

void
sim_tenant_step(struct sim_world *w, uint32_t node)
{
    struct sim_node *n = &w->nodes[node];
    struct sim_tenant *t = &n->tenant;
    uint32_t closed;
    if (t->guard == NULL) {
        return;
    }
    (void)trpi_guard_look_at(t->guard, w->now_us * 1000);
    trpi_exclusive_now now = { .mono_ms = w->now_us / 1000,
                               .waking = trpi_heartbeat_is_waking(n->heartbeat, w->now_us),
                               .closings = trpi_guard_closings(t->guard) };
    now.waking = now.waking && (w->options.broken & TRPI_BROKEN_NO_STALLS) == 0;
    switch (trpi_exclusive_step(&t->exclusive, n->core, now)) {
    case TRPI_EXCLUSIVE_AS_IT_IS:
        break;
    case TRPI_EXCLUSIVE_SUSPEND:
        sim_note(w, "node %u: suspends its tenant: %s", node,
                 trpi_exclusive_cause_text(t->exclusive.cause));
        if ((w->options.broken & TRPI_BROKEN_NO_SUSPENSION) == 0) {
            trpi_guard_close(t->guard);
        }
        break;
    case TRPI_EXCLUSIVE_ROLL_CALL:
        t->roll_call = true;
        break;
    case TRPI_EXCLUSIVE_RESUME:
        (void)trpi_guard_open_at(t->guard, t->exclusive.closings, w->now_us * 1000, &closed);
        sim_note(w, "node %u: its tenant goes on", node);
        break;
    }
    t->hosts = is_host(w, n);
}

/* Return whether it handles a message at this instant, if it has one. */
static bool
tenant_handles(const struct sim_world *w, struct sim_node *n)
{
    if (!n->running || n->paused_until_us > w->now_us || n->tenant.guard == NULL ||
        trpi_member_phase_get(n->core) != TRPI_PHASE_MEMBER) {
        return false;
    }
    return trpi_guard_look_at(n->tenant.guard, w->now_us * 1000) == 0 && n->tenant.hosts;
}

void
sim_tenant_check(struct sim_world *w)
{
    uint32_t first = UINT32_MAX;
    for (uint32_t i = 0; w->options.tenant && i < w->nodes_count && !w->result.failed; i++) {
        if (!tenant_handles(w, &w->nodes[i])) {
            continue;
        }
        if (first != UINT32_MAX) {
            sim_fail(w, "sim-S16: nodes %u and %u handle messages of one tenant", first, i);
        }
        first = i;
    }
}

static uint32_t
handling_count(struct sim_world *w)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < w->nodes_count; i++) {
        count += tenant_handles(w, &w->nodes[i]) ? 1 : 0;
    }
    return count;
}

/* Return whether a node stands still, or runs and is no member yet: its last stop may be longer
 * than the faults. */
static bool
is_unsettled(const struct sim_world *w)
{
    for (uint32_t i = 0; i < w->nodes_count; i++) {
        const struct sim_node *n = &w->nodes[i];
        if (n->running && (n->paused_until_us > w->now_us || !sim_is_member(n))) {
            return true;
        }
    }
    return false;
}

void
sim_tenant_check_quiet(struct sim_world *w)
{
    uint64_t patience_us = 10000000u + (uint64_t)w->member.downing.stable_after_ms * 2000;
    uint64_t end_us = w->now_us + patience_us;
    uint64_t last_us = w->now_us + UNSETTLED_US_MAX;
    while (w->options.tenant && !w->result.failed && handling_count(w) != 1) {
        end_us = is_unsettled(w) ? w->now_us + patience_us : end_us;
        if (w->now_us >= end_us || w->now_us >= last_us) {
            sim_fail(w, "sim-Q11: the faults are over, and no node handles");
            return;
        }
        sim_run_until(w, w->now_us + 100000);
    }
}
