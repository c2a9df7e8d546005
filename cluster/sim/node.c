/* node.c - one simulated process: the shell's work, done without threads. */
#include "cluster/sim/world.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"

static trpi_member_now
now_of(const struct sim_world *w, const struct sim_node *n)
{
    return (trpi_member_now){ w->now_us / 1000,
                              1760000000000 + (int64_t)(w->now_us / 1000) + n->wall_skew_ms,
                              trpi_heartbeat_is_waking(n->heartbeat, w->now_us) };
}

bool
sim_is_member(const struct sim_node *n)
{
    return n->running && trpi_member_phase_get(n->core) == TRPI_PHASE_MEMBER;
}

static void
schedule_wake(struct sim_world *w, uint32_t node)
{
    struct sim_node *n = &w->nodes[node];
    uint64_t at_us = trpi_heartbeat_wake_us(n->heartbeat);
    uint64_t core_ms = trpi_member_wake_ms(n->core);
    if (core_ms != UINT64_MAX && core_ms * 1000 < at_us) {
        at_us = core_ms * 1000;
    }
    uint64_t tenant_us = sim_tenant_wake_us(w, n);
    at_us = tenant_us < at_us ? tenant_us : at_us;
    sim_schedule_wake(w, node, at_us);
}

static void
quarantine_add(const struct sim_world *w, struct sim_node *n, const trpi_node_id *id)
{
    if (n->quarantined_count == SIM_QUARANTINED_MAX) {
        n->quarantined_count--;
        memmove(n->quarantined, n->quarantined + 1,
                n->quarantined_count * sizeof n->quarantined[0]);
        memmove(n->quarantined_from_us, n->quarantined_from_us + 1,
                n->quarantined_count * sizeof n->quarantined_from_us[0]);
    }
    n->quarantined[n->quarantined_count] = trpi_ident_key(id);
    n->quarantined_from_us[n->quarantined_count++] = w->now_us + SIM_QUARANTINE_AFTER_US;
}

static bool
is_quarantined(const struct sim_world *w, const struct sim_node *n, uint64_t key)
{
    for (uint32_t i = 0; i < n->quarantined_count; i++) {
        if (n->quarantined[i] == key && w->now_us >= n->quarantined_from_us[i]) {
            return true;
        }
    }
    return false;
}

/* The frame moves from the engine into the network without a copy. */
static void
send_action(struct sim_world *w, uint32_t node, const trpi_member_action *a, uint32_t number)
{
    trpi_buffer bytes = trpi_member_take_bytes(w->nodes[node].core, number);
    sim_send(w, node, &a->to, SIM_GOSSIP, &bytes);
    trpi_buffer_fini(&bytes);
}

static void step_engine(struct sim_world *w, uint32_t node, const trpi_member_event *event);

/* Answer a request for the lease: outside of the cluster, held by one process at a time, and lost
 * with its process. */
static void
lease_answer(struct sim_world *w, uint32_t node)
{
    uint32_t holder = w->lease_holder;
    bool granted = holder == 0 || holder == node + 1 || !w->nodes[holder - 1].running ||
                   w->nodes[holder - 1].incarnation != w->lease_incarnation;
    char owner[TRPI_LEASE_OWNER_BYTES], why[TRP_LEASE_WHY_BYTES] = "";
    trpi_member_event event = { .kind = TRPI_MEMBER_LEASE, .count = granted ? 1 : 0, .text = why };
    if (granted) {
        w->lease_holder = node + 1;
        w->lease_incarnation = w->nodes[node].incarnation;
    } else { /* in the words of lease_file.c */
        (void)snprintf(why, sizeof why, "%s has it",
                       trpi_lease_owner(&w->nodes[holder - 1].id, owner));
    }
    sim_note(w, "node %u: the lease is %s", node, granted ? "granted" : "refused");
    step_engine(w, node, &event);
}

static void
carry_out(struct sim_world *w, uint32_t node)
{
    struct sim_node *n = &w->nodes[node];
    uint32_t count;
    const trpi_member_action *actions = trpi_member_actions(n->core, &count);
    bool stopped = false, asks = false;
    for (uint32_t i = 0; i < count && !w->result.failed; i++) {
        const trpi_member_action *a = &actions[i];
        switch (a->kind) {
        case TRPI_ACTION_SEND:
            if (stopped) {
                sim_fail(w, "sim-S9: node %u sends after it has stopped", node);
            }
            send_action(w, node, a, i);
            break;
        case TRPI_ACTION_PUBLISH:
            sim_check_event(w, node, a);
            break;
        case TRPI_ACTION_LOG:
            sim_note(w, "node %u: %s", node, a->text);
            break;
        case TRPI_ACTION_QUARANTINE:
            quarantine_add(w, n, &a->to);
            break;
        case TRPI_ACTION_LEASE_ACQUIRE:
            asks = true;
            break;
        case TRPI_ACTION_LEASE_RELEASE:
            w->lease_holder = w->lease_holder == node + 1 ? 0 : w->lease_holder;
            break;
        case TRPI_ACTION_DIAL:
            break;              /* links are never gated here */
        case TRPI_ACTION_MARKS: /* nothing in this world asks for them */
        case TRPI_ACTION_REACH: /* dial_back is off in this world */
            break;
        case TRPI_ACTION_STOPPED:
            n->stop = a->stop;
            stopped = true;
            sim_note(w, "node %u: stopped, %s", node,
                     a->stop == TRPI_STOP_LEFT ? "left" : "downed");
            break;
        }
    }
    if (stopped) {
        n->running = false; /* a node ends when its membership ends */
        w->downed += n->stop == TRPI_STOP_DOWNED ? 1 : 0;
    } else if (asks) {
        lease_answer(w, node);
    }
}

/* Return whether it is Down, or was removed after Down, in the view of any node. */
static bool
is_downed_anywhere(const struct sim_world *w, uint64_t key)
{
    for (uint32_t i = 0; i < w->nodes_count; i++) {
        const trpi_gossip *g = w->nodes[i].core == NULL ? NULL : trpi_member_view(w->nodes[i].core);
        uint32_t at = g == NULL ? TRPI_GOSSIP_NONE : trpi_gossip_find(g, key);
        const trpi_tombstone *t = g == NULL ? NULL : trpi_gossip_tombstone(g, key);
        if ((at != TRPI_GOSSIP_NONE && g->members[at].status == TRP_MEMBER_DOWN) ||
            (t != NULL && t->status == TRP_MEMBER_DOWN)) {
            return true;
        }
    }
    return false;
}

/* sim-S9: a node that knows that it is Down does not go on; one that was Exiting, and is Down in no
 * view, has left. */
static void
check_own_end(struct sim_world *w, uint32_t node)
{
    const struct sim_node *n = &w->nodes[node];
    const trpi_gossip *view = trpi_member_view(n->core);
    uint64_t key = trpi_member_self(n->core)->key;
    uint32_t self = view == NULL ? TRPI_GOSSIP_NONE : trpi_gossip_find(view, key);
    uint32_t status = self == TRPI_GOSSIP_NONE ? 0 : view->members[self].status;
    if (n->running && status == TRP_MEMBER_DOWN) {
        sim_fail(w, "sim-S9: node %u is Down and goes on", node);
    }
    if (n->stop == TRPI_STOP_DOWNED && status == TRP_MEMBER_EXITING &&
        !is_downed_anywhere(w, key)) {
        sim_fail(w, "sim-S9: node %u was Exiting, and is told that it was downed", node);
    }
}

/* Release an Exiting node, as a process does at the end of its phase cluster-exiting. */
static void
hand_over_script(struct sim_world *w, uint32_t node, uint64_t incarnation)
{
    struct sim_node *n = &w->nodes[node];
    if (!n->running || n->incarnation != incarnation) {
        return;
    }
    if (n->paused_until_us > w->now_us) {
        uint64_t ms = (n->paused_until_us - w->now_us) / 1000 + 1;
        sim_at(w, ms, hand_over_script, node, incarnation);
        return;
    }
    trpi_member_event event = { .kind = TRPI_MEMBER_RELEASE };
    step_engine(w, node, &event);
    if (n->running) {
        schedule_wake(w, node);
    }
}

static void
begin_to_hand_over(struct sim_world *w, uint32_t node)
{
    struct sim_node *n = &w->nodes[node];
    const trpi_gossip *view = trpi_member_view(n->core);
    uint32_t self =
        view == NULL ? TRPI_GOSSIP_NONE : trpi_gossip_find(view, trpi_member_self(n->core)->key);
    if (self != TRPI_GOSSIP_NONE && view->members[self].status == TRP_MEMBER_EXITING) {
        n->hands_over = true;
        sim_at(w, w->exiting_ms, hand_over_script, node, n->incarnation);
    }
}

static void
step_engine(struct sim_world *w, uint32_t node, const trpi_member_event *event)
{
    struct sim_node *n = &w->nodes[node];
    uint64_t before = n->checked == NULL ? 0 : n->checked->digest;
    trp_err err = trpi_member_step(n->core, now_of(w, n), event);
    if (err == TRP_ENOMEM) {
        sim_fail(w, "out of memory");
        return;
    }
    trpi_gossip *view = trpi_member_view(n->core);
    sim_check_engine(w, node);
    if (w->result.failed) {
        return; /* what is broken is not walked over */
    }
    if (view != NULL && view != n->checked) {
        sim_check_view(w, node);
        if (view->digest != before &&
            trpi_heartbeat_members(n->heartbeat, w->now_us, view) != TRP_OK) {
            sim_fail(w, "out of memory");
        }
    }
    sim_tenant_step(w, node);
    carry_out(w, node);
    check_own_end(w, node);
    if (w->exiting_ms != 0 && n->running && !n->hands_over) {
        begin_to_hand_over(w, node);
    }
}

void
sim_node_wake(struct sim_world *w, uint32_t node)
{
    struct sim_node *n = &w->nodes[node];
    uint8_t bytes[TRPI_HEARTBEAT_BYTES];
    const trpi_ident *const *targets;
    const trpi_heartbeat_query *questions;
    const uint64_t *keys;
    trpi_heartbeat_tick(n->heartbeat, w->now_us);
    sim_check_heartbeat(w, node);
    uint32_t count = trpi_heartbeat_targets(n->heartbeat, &targets, bytes);
    for (uint32_t i = 0; i < count; i++) {
        sim_send_small(w, node, &targets[i]->id, SIM_HEARTBEAT, bytes, sizeof bytes);
    }
    count = trpi_heartbeat_queries(n->heartbeat, &questions);
    for (uint32_t i = 0; i < count; i++) {
        sim_send_small(w, node, &questions[i].to->id, SIM_HEARTBEAT, questions[i].bytes,
                       sizeof questions[i].bytes);
    }
    count = trpi_heartbeat_unreachable(n->heartbeat, &keys);
    if (trpi_heartbeat_has_changed(n->heartbeat) || count > 0) {
        trpi_member_event event = { .kind = TRPI_MEMBER_OBSERVE,
                                    .keys = keys,
                                    .keys_count = count };
        step_engine(w, node, &event);
    }
    if (n->running && !w->result.failed) {
        trpi_member_event event = { .kind = TRPI_MEMBER_TICK };
        step_engine(w, node, &event);
    }
    if (n->tenant.roll_call && n->running && !w->result.failed) {
        trpi_member_event event = { .kind = TRPI_MEMBER_ROLL_CALL };
        n->tenant.roll_call = false;
        step_engine(w, node, &event);
    }
    if (n->running) {
        schedule_wake(w, node);
    }
}

static uint64_t
refused_frames(const trpi_member_core *core)
{
    trpi_member_stats stats;
    trpi_member_stats_get(core, &stats);
    return stats.ignored + stats.undecodable;
}

void
sim_node_deliver(struct sim_world *w, const struct sim_event *e, const uint8_t *bytes)
{
    struct sim_node *n = &w->nodes[e->node];
    uint32_t *heard = &w->heard[e->node * w->nodes_count + e->from];
    if (e->from_incarnation < *heard) {
        return; /* the transport has met the successor: the old connection is closed */
    }
    *heard = e->from_incarnation;
    trpi_node_id from = w->nodes[e->from].id;
    from.uid = (from.uid & ~(uint64_t)0xffff) | e->from_incarnation;
    if (n->quarantined_count > 0 && is_quarantined(w, n, trpi_ident_key(&from))) {
        if (e->channel != SIM_REFUSAL) {
            sim_send_small(w, e->node, &from, SIM_REFUSAL, NULL, 0);
        }
        return;
    }
    if (e->channel == SIM_HEARTBEAT) {
        uint8_t answer[TRPI_HEARTBEAT_BYTES], word[TRPI_HEARTBEAT_REPORT_BYTES];
        if (trpi_heartbeat_reply(bytes, e->count, answer)) {
            sim_send_small(w, e->node, &from, SIM_HEARTBEAT, answer, sizeof answer);
        } else if (trpi_heartbeat_report(n->heartbeat, w->now_us, bytes, e->count, word)) {
            sim_send_small(w, e->node, &from, SIM_HEARTBEAT, word, sizeof word);
        } else {
            trpi_heartbeat_answer(n->heartbeat, w->now_us, &from, bytes, e->count);
        }
        return;
    }
    if (e->channel == SIM_REFUSAL) {
        trpi_member_event removed = { .kind = TRPI_MEMBER_REMOVED_BY, .target = from };
        step_engine(w, e->node, &removed);
        if (n->running) {
            schedule_wake(w, e->node);
        }
        return;
    }
    trpi_member_event event = {
        .kind = TRPI_MEMBER_FRAME, .from = from, .bytes = bytes, .count = e->count
    };
    uint64_t before = n->checked == NULL ? 0 : n->checked->digest;
    uint64_t refused = refused_frames(n->core);
    step_engine(w, e->node, &event);
    /* a leader that had waited by chance (buggify) may act in any step: that is no change by it */
    if (e->incarnation != 0 && e->incarnation != n->incarnation &&
        refused_frames(n->core) == refused &&
        (n->checked == NULL ? 0 : n->checked->digest) != before) {
        sim_fail(w, "sim-S11: node %u took what was for incarnation %u", e->node, e->incarnation);
    }
    if (n->running) {
        schedule_wake(w, e->node);
    }
}

/* ---- fate ------------------------------------------------------------------------------------ */

static void
free_incarnation(struct sim_node *n)
{
    sim_tenant_end(n);
    trpi_member_free(n->core);
    trpi_heartbeat_free(n->heartbeat);
    trpi_gossip_unref(n->checked);
    n->core = NULL;
    n->heartbeat = NULL;
    n->checked = NULL;
    n->mirror_count = 0;
    n->mirror_used = 0;
    n->quarantined_count = 0;
    n->paused_until_us = 0;
    n->wake_us = UINT64_MAX;
    n->stop = TRPI_STOP_NONE;
    n->peak_status = 0;
    n->ever_up = n->hands_over = false;
    n->joining_us = n->up_us = 0;
    n->apart_ms = 0;
    n->restart_us = 0;
}

/* A member, if there is one and no seed is; else UINT32_MAX. */
static uint32_t
sim_contact(const struct sim_world *w)
{
    uint32_t contact = UINT32_MAX;
    for (uint32_t i = w->nodes_count; i-- > 0;) {
        if (sim_is_member(&w->nodes[i])) {
            contact = i;
        }
    }
    return contact < w->seeds_count ? UINT32_MAX : contact;
}

void
sim_node_start(struct sim_world *w, uint32_t node)
{
    struct sim_node *n = &w->nodes[node];
    trpi_assert(!n->running);
    free_incarnation(n);
    n->incarnation++;
    w->result.incarnations++;
    /* The incarnation stands in the uid's low bits, so that frames can be told apart cheaply. */
    n->id.uid = (n->id.uid & ~(uint64_t)0xffff) | n->incarnation;
    n->running = true;
    n->started_us = w->now_us;
    n->wanted = true;
    n->wall_skew_ms = (int64_t)sim_below(w, 120000) - 60000;
    memset(&w->heard[node * w->nodes_count], 0, w->nodes_count * sizeof(uint32_t));
    const char *roles[2] = { "sim", node % 2 == 0 ? "even" : "odd" };
    trpi_member_options member = w->member;
    member.seed = sim_random(w);
    trp_err err = trpi_member_new(&n->id, roles, 2, "1.0.0", &member, &n->core);
    if (err == TRP_OK) {
        trpi_ident *self = (trpi_ident *)(uintptr_t)trpi_member_self(n->core);
        err = trpi_heartbeat_new(self, &w->heartbeat, &n->heartbeat);
    }
    if (err != TRP_OK) {
        sim_fail(w, "node %u cannot start: %s", node, trp_strerror(err));
        return;
    }
    sim_tenant_start(w, node);
    sim_note(w, "node %u: starts, uid %016llx", node, (unsigned long long)n->id.uid);
    trpi_member_event event = { .kind = TRPI_MEMBER_JOIN,
                                .addresses = w->addresses,
                                .addresses_count = w->seeds_count };
    uint32_t contact = sim_contact(w);
    /* no seed runs, other members do: an operator names one of them */
    if (contact != UINT32_MAX) {
        event.addresses = &w->nodes[contact].id.address;
        event.addresses_count = 1;
    }
    step_engine(w, node, &event);
    if (n->running) {
        schedule_wake(w, node);
    }
}

void
sim_node_kill(struct sim_world *w, uint32_t node)
{
    struct sim_node *n = &w->nodes[node];
    if (n->running) {
        sim_note(w, "node %u: killed", node);
        n->running = false;
        w->faults++;
    }
}

void
sim_node_pause(struct sim_world *w, uint32_t node, uint64_t ms)
{
    struct sim_node *n = &w->nodes[node];
    if (n->running) {
        sim_note(w, "node %u: stands still for %llu ms", node, (unsigned long long)ms);
        n->paused_until_us = w->now_us + ms * 1000;
        w->faults++;
    }
}

void
sim_node_command(struct sim_world *w, uint32_t node, trpi_member_event_kind kind, uint32_t target)
{
    struct sim_node *n = &w->nodes[node];
    if (!n->running || n->paused_until_us > w->now_us) {
        return;
    }
    trpi_member_event event = { .kind = kind };
    event.target.address = w->nodes[target].id.address;
    sim_note(w, "node %u: command %s %u", node, kind == TRPI_MEMBER_LEAVE ? "leave" : "down",
             target);
    step_engine(w, node, &event);
    if (n->running) {
        schedule_wake(w, node);
    }
}
