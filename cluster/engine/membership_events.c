/* membership_events.c - the differences between two views as events, and queries of the shell.
 *
 * Must hold.
 *   membership-events-V1  Replaying the events of a node gives its view (EVENTS-13). A status that
 *       a new view skips is published all the same: Joined, Up, Left, Exited, Removed come in this
 *       order, each once.
 *   membership-events-V2  UnreachableMember and ReachableMember of a member alternate.
 *   membership-events-V3  All events of a view are published, or none: without memory the next step
 *       publishes them.
 *   membership-events-V4  When this node is out, the removal of all others is published before its
 *       own: a subscriber's mirror ends empty.
 * Tests.   tests/unit/cluster/shell_test.c, tests/sim/sim_test.c (sim-S10)
 */
#include "cluster/engine/membership_core.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"

/* ---- looking --------------------------------------------------------------------------------- */

trpi_member_phase
trpi_member_phase_get(const trpi_member_core *core)
{
    return core->phase;
}
trpi_member_stop
trpi_member_stop_reason(const trpi_member_core *core)
{
    return core->stop;
}
trpi_gossip *
trpi_member_view(const trpi_member_core *core)
{
    return core->gossip;
}
const trpi_seen *
trpi_member_seen(const trpi_member_core *core)
{
    return &core->seen;
}
const trpi_ident *
trpi_member_self(const trpi_member_core *core)
{
    return core->self;
}
uint64_t
trpi_member_converged_since_ms(const trpi_member_core *core)
{
    return core->published.converged_changed_ms;
}
void
trpi_member_stats_get(const trpi_member_core *core, trpi_member_stats *ret_stats)
{
    *ret_stats = core->stats;
}

bool
trpi_member_is_converged(const trpi_member_core *core)
{
    if (core->gossip == NULL) {
        return false;
    }
    trpi_gossip_blockers blockers = trpi_gossip_blocked_by(core->gossip, &core->seen);
    return blockers.unseen == 0 && blockers.unreachable == 0;
}

uint64_t
trpi_member_version(const trpi_member_core *core)
{
    if (core->gossip == NULL) {
        return 0;
    }
    return trpi_hash(core->seen.words, core->seen.words_count * sizeof(uint64_t),
                     core->gossip->digest);
}

static const trpi_since *
since_of(const trpi_member_core *core, uint64_t key)
{
    for (uint32_t i = 0; i < core->stability.since_count; i++) {
        if (core->stability.since[i].key == key) {
            return &core->stability.since[i];
        }
    }
    return NULL;
}

uint64_t
trpi_member_unreachable_since_ms(const trpi_member_core *core, uint64_t key)
{
    const trpi_since *since = since_of(core, key);
    return since == NULL ? 0 : since->since_ms;
}

const char *
trpi_member_seek_text(const trpi_member_core *core, char *buffer, size_t bytes)
{
    trpi_assert_slow(bytes >= TRPI_ADDRESS_TEXT_BYTES);
    buffer[0] = '\0';
    if (core->phase != TRPI_PHASE_SEEKING) {
        return buffer;
    }
    const trpi_seek *seek = &core->seek;
    uint32_t first = 0; /* that is another node: the first seed does not ask itself */
    while (first + 1 < seek->addresses_count && trpi_seek_is_self(core, &seek->addresses[first])) {
        first++;
    }
    return trpi_address_format(seek->joining ? &seek->contact.address : &seek->addresses[first],
                               buffer, bytes);
}

/* Return the last status of this node when it has stopped; else its present one. */
static uint32_t
last_status(const trpi_member_core *core, const trpi_gossip_member *self)
{
    trpi_assert_slow(core->phase != TRPI_PHASE_STOPPED || core->stop != TRPI_STOP_NONE);
    if (core->phase != TRPI_PHASE_STOPPED) {
        return trpi_member_status(self);
    }
    uint32_t last = core->stop == TRPI_STOP_LEFT ? TRP_MEMBER_EXITING : TRP_MEMBER_DOWN;
    return self->status < last ? last : self->status;
}

void
trpi_member_fill(const trpi_member_core *core, const trpi_gossip_member *member, trp_member *ret)
{
    memset(ret, 0, sizeof *ret);
    const trpi_ident *ident = member->ident;
    memcpy(ret->address, ident->address, strlen(ident->address));
    memcpy(ret->roles, ident->roles_text, strlen(ident->roles_text));
    memcpy(ret->app_version, ident->app_version, sizeof ident->app_version);
    ret->uid = ident->id.uid;
    ret->status = trpi_member_status(member);
    ret->up_number = member->up_number;
    ret->reachable = member->unreachable == 0;
    ret->self = ident->key == core->self->key;
    ret->zero[TRPI_MEMBER_DRAINED_AT] = trpi_core_is_drained(core, ident->key);
    if (ret->self && member->status != 0) {
        ret->status = last_status(core, member); /* no view may have it */
    }
}

#define BRIEF_PART 10u /* an unreachability shorter than stable-after / BRIEF_PART is brief */

/* ---- tracking -------------------------------------------------------------------------------- */

/* Count changes of reachability (flapping). One or two are not flapping: a member falls silent, and
 * later it is removed or back. A cluster in which no member is unreachable is stable at once: there
 * is nothing to decide, however often members were unreachable before. */
static void
track_flapping(trpi_member_core *core)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER);
    uint64_t reach = core->gossip->reach;
    if (reach == core->stability.reach) {
        return;
    }
    bool rested =
        core->now.mono_ms - core->stability.reach_ms >= core->options.downing.stable_after_ms;
    if (core->stability.flaps == 0 || rested) {
        core->stability.flaps = 0;
        core->stability.flapping_ms = core->now.mono_ms;
    }
    core->stability.reach = reach;
    core->stability.reach_ms = core->now.mono_ms;
    core->stability.flaps = reach == 0 ? 0 : core->stability.flaps + 1;
    trpi_assert_slow((core->stability.flaps == 0) == (core->stability.reach == 0));
    trpi_assert_slow(core->stability.reach_ms == core->now.mono_ms);
}

/* Return whether an observer that was not unreachable itself reports it. */
static bool
is_missed_by_steady(const trpi_member_core *core, uint64_t key)
{
    trpi_assert_slow(core->gossip->frozen);
    const trpi_gossip *g = core->gossip;
    for (uint32_t i = 0; i < g->rows_count; i++) {
        if (g->rows[i].subject == key) {
            const trpi_since *s = since_of(core, g->rows[i].observer);
            uint32_t at = trpi_gossip_find(g, g->rows[i].observer);
            if (at != TRPI_GOSSIP_NONE && g->members[at].status < TRP_MEMBER_EXITING &&
                (s == NULL || (!s->missed && s->lost_ms == 0))) {
                return true;
            }
        }
    }
    return false;
}

/* A member that is unreachable, or was within stable-after, is not steady (downing-D12). A report
 * of an observer that was unreachable itself does not count: a node that was cut off reports all
 * members that it monitors, and its reports count when it is back, until it has heard them again or
 * is cut off once more. Nor does a brief report count: a node that is back before any observer has
 * missed it reports the others in the same way. */
static void
track_members(trpi_member_core *core)
{
    trpi_assert_slow(core->gossip->unreachable_count <= core->gossip->members_count);
    const trpi_gossip *g = core->gossip;
    uint64_t now_ms = core->now.mono_ms, stable_ms = core->options.downing.stable_after_ms;
    trpi_since *since =
        trpi_alloc((g->unreachable_count + core->stability.since_count + 1) * sizeof *since);
    if (since == NULL) {
        return; /* the old one stays: times of those that it knows are right */
    }
    uint32_t count = 0, left = g->unreachable_count;
    for (uint32_t i = 0; left > 0; i++) {
        if (g->members[i].unreachable != 0) {
            uint64_t key = g->members[i].ident->key;
            const trpi_since *known = since_of(core, key);
            trpi_since s = known != NULL ? *known : (trpi_since){ .key = key };
            s.since_ms = s.since_ms != 0 ? s.since_ms : now_ms;
            s.missed = s.missed || s.back_ms != 0 || is_missed_by_steady(core, key);
            since[count++] = s;
            left--;
        }
    }
    for (uint32_t i = 0; i < core->stability.since_count; i++) {
        trpi_since s = core->stability.since[i];
        uint32_t at = trpi_gossip_find(g, s.key);
        bool brief = now_ms - s.since_ms < stable_ms / BRIEF_PART;
        s.lost_ms = s.missed ? now_ms : s.lost_ms;
        s.back_ms = s.missed && !brief ? now_ms : s.back_ms;
        s.back_ms = s.back_ms != 0 && now_ms - s.back_ms < stable_ms ? s.back_ms : 0;
        if (at != TRPI_GOSSIP_NONE && g->members[at].unreachable == 0 && s.lost_ms != 0 &&
            now_ms - s.lost_ms < stable_ms) {
            since[count++] = (trpi_since){ s.key, 0, s.back_ms, s.lost_ms, false };
        }
    }
    trpi_free(core->stability.since);
    core->stability.since = since;
    core->stability.since_count = count;
    trpi_assert_slow(core->stability.since_count >= g->unreachable_count);
}

void
trpi_core_track(trpi_member_core *core)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER);
    const trpi_gossip *g = core->gossip;
    if (core->stability.tracked == g->digest) {
        return;
    }
    core->stability.tracked = g->digest;
    if (g->shape != core->stability.shape) {
        core->stability.shape = g->shape;
        core->stability.stable_ms = core->now.mono_ms;
    }
    track_flapping(core);
    track_members(core);
    trpi_assert_slow(core->stability.tracked == g->digest && core->stability.shape == g->shape);
}

void
trpi_core_track_pause(trpi_member_core *core, uint64_t pause_ms)
{
    trpi_core_stability *s = &core->stability;
    trpi_core_move(core, &s->stable_ms, pause_ms);
    trpi_core_move(core, &s->reach_ms, pause_ms);
    trpi_core_move(core, &s->flapping_ms, pause_ms);
    for (uint32_t i = 0; i < s->since_count; i++) {
        trpi_since *since = &s->since[i];
        trpi_core_move(core, &since->since_ms, since->since_ms == 0 ? 0 : pause_ms);
        trpi_core_move(core, &since->back_ms, since->back_ms == 0 ? 0 : pause_ms);
        trpi_core_move(core, &since->lost_ms, since->lost_ms == 0 ? 0 : pause_ms);
    }
    trpi_assert_slow(s->stable_ms <= core->now.mono_ms && s->reach_ms <= core->now.mono_ms);
}

/* ---- events ---------------------------------------------------------------------------------- */

static const char *
event_name(uint32_t event)
{
    switch (event) {
    case TRP_CLUSTER_MEMBER_JOINED:
        return "Joining";
    case TRP_CLUSTER_MEMBER_WEAKLY_UP:
        return "WeaklyUp";
    case TRP_CLUSTER_MEMBER_UP:
        return "Up";
    case TRP_CLUSTER_MEMBER_LEFT:
        return "Leaving";
    case TRP_CLUSTER_MEMBER_EXITED:
        return "Exiting";
    case TRP_CLUSTER_MEMBER_DOWNED:
        return "Down";
    case TRP_CLUSTER_MEMBER_REMOVED:
        return "Removed";
    case TRP_CLUSTER_UNREACHABLE:
        return "unreachable";
    default:
        return "reachable again";
    }
}

static void
publish_member(trpi_member_core *core, uint32_t event, const trpi_gossip_member *m, uint32_t status,
               uint32_t previous)
{
    trpi_assert_slow(status >= TRP_MEMBER_JOINING && status <= TRP_MEMBER_WEAKLY_UP);
    trpi_assert_slow(previous <= TRP_MEMBER_WEAKLY_UP);
    bool bad = event == TRP_CLUSTER_UNREACHABLE || event == TRP_CLUSTER_MEMBER_DOWNED;
    if (!core->options.quiet) {
        trpi_core_log(core, bad ? TRP_LOG_WARNING : TRP_LOG_INFO, "member %s is %s, uid %016llx",
                      m->ident->address, event_name(event), (unsigned long long)m->ident->id.uid);
    }
    trpi_member_action *action = trpi_core_action(core, TRPI_ACTION_PUBLISH);
    if (action == NULL) {
        return;
    }
    action->event = event;
    trpi_member_fill(core, m, &action->published.member.member);
    action->published.member.previous_status = previous;
    action->published.member.zero = 0;
    action->published.member.member.status = status;
}

/* membership-events-V1. Publish each status between two of one member; was 0: it is new. */
static void
publish_path(trpi_member_core *core, const trpi_gossip_member *m, uint32_t was, uint32_t is)
{
    trpi_assert_slow(was != is);
    trpi_assert_slow(is >= TRP_MEMBER_JOINING && is <= TRP_MEMBER_WEAKLY_UP);
    static const struct {
        uint32_t status, event;
    } path[] = { { TRP_MEMBER_JOINING, TRP_CLUSTER_MEMBER_JOINED },
                 { TRP_MEMBER_WEAKLY_UP, TRP_CLUSTER_MEMBER_WEAKLY_UP },
                 { TRP_MEMBER_UP, TRP_CLUSTER_MEMBER_UP },
                 { TRP_MEMBER_LEAVING, TRP_CLUSTER_MEMBER_LEFT },
                 { TRP_MEMBER_EXITING, TRP_CLUSTER_MEMBER_EXITED },
                 { TRP_MEMBER_DOWN, TRP_CLUSTER_MEMBER_DOWNED } };
    size_t at = 0;
    for (size_t i = 0; i < sizeof path / sizeof path[0] && was != is; i++) {
        at = path[i].status == was ? i + 1 : at;
    }
    for (bool reached = was == is; !reached; at++) {
        uint32_t status = path[at].status;
        reached = status == is;
        bool skipped = !reached && status != TRP_MEMBER_JOINING;
        if (skipped && (is == TRP_MEMBER_DOWN || status == TRP_MEMBER_WEAKLY_UP ||
                        (status == TRP_MEMBER_UP && m->up_number == 0))) {
            continue; /* no status is added on the way to Down, nor an Up that never was */
        }
        publish_member(core, path[at].event, m, status, 0);
    }
}

/* last: the status in its tombstone. */
static void
publish_removed(trpi_member_core *core, const trpi_gossip_member *m, uint32_t last)
{
    trpi_assert_slow(last == TRP_MEMBER_EXITING || last == TRP_MEMBER_DOWN);
    if (m->status < last) {
        publish_path(core, m, trpi_member_status(m), last);
    }
    publish_member(core, TRP_CLUSTER_MEMBER_REMOVED, m, TRP_MEMBER_REMOVED, last);
    if (last == TRP_MEMBER_DOWN && m->ident->key != core->self->key) {
        trpi_member_action *action = trpi_core_action(core, TRPI_ACTION_QUARANTINE);
        if (action != NULL) {
            action->to = m->ident->id;
        }
    }
}

static void
publish_member_end(trpi_member_core *core, const trpi_gossip_member *m)
{
    trpi_member_action *action = trpi_core_action(core, TRPI_ACTION_PUBLISH);
    if (action == NULL) {
        return;
    }
    action->event = TRP_CLUSTER_MEMBER_REMOVED;
    action->own_end = true;
    trpi_member_fill(core, m, &action->published.member.member);
    action->published.member.previous_status = trpi_member_status(m);
    action->published.member.zero = 0;
    action->published.member.member.status = TRP_MEMBER_REMOVED;
}

static void
publish_reachability(trpi_member_core *core, const trpi_gossip_member *m, bool was)
{
    if ((m->unreachable != 0) != was) { /* membership-events-V2 */
        publish_member(core, was ? TRP_CLUSTER_REACHABLE : TRP_CLUSTER_UNREACHABLE, m,
                       trpi_member_status(m), 0);
    }
}

/* Find a member in another view. Both are in one order, so it stands where the last one was found
 * or a little behind; *at goes along. */
static const trpi_gossip_member *
find_counterpart(const trpi_gossip *g, const trpi_ident *ident, uint32_t *at)
{
    trpi_assert_slow(*at <= g->members_count);
    if (*at < g->members_count &&
        (g->members[*at].ident == ident || g->members[*at].ident->key == ident->key)) {
        return &g->members[(*at)++];
    }
    uint32_t found = trpi_gossip_find(g, ident->key);
    if (found == TRPI_GOSSIP_NONE) {
        return NULL;
    }
    *at = found + 1;
    return &g->members[found];
}

/* EVENTS-13: reachability of known members first, then members, each new one's reachability behind
 * it. */
static void
publish_members(trpi_member_core *core, const trpi_gossip *old, const trpi_gossip *new)
{
    trpi_assert_slow(old->frozen && new->frozen);
    trpi_assert_slow(old->digest != new->digest);
    bool reach = old->unreachable_count + new->unreachable_count > 0;
    uint32_t at = 0;
    for (uint32_t i = 0; reach && i < new->members_count; i++) {
        const trpi_gossip_member *before = find_counterpart(old, new->members[i].ident, &at);
        if (before != NULL) {
            publish_reachability(core, &new->members[i], before->unreachable != 0);
        }
    }
    at = 0;
    for (uint32_t i = 0; i < old->members_count; i++) {
        if (find_counterpart(new, old->members[i].ident, &at) == NULL) {
            const trpi_gossip_member *m = &old->members[i];
            const trpi_tombstone *t = trpi_gossip_tombstone(core->gossip, m->ident->key);
            publish_removed(core, m, t != NULL ? t->status : TRP_MEMBER_DOWN);
        }
    }
    at = 0;
    for (uint32_t i = 0; i < new->members_count; i++) {
        const trpi_gossip_member *m = &new->members[i];
        const trpi_gossip_member *before = find_counterpart(old, m->ident, &at);
        uint32_t was = before == NULL ? 0 : trpi_member_status(before);
        if (was != trpi_member_status(m)) {
            publish_path(core, m, was, trpi_member_status(m));
        }
        if (before == NULL) {
            publish_reachability(core, m, false);
        }
    }
}

/* index: the leader's; TRPI_GOSSIP_NONE: there is none. */
static trp_leader_event
leader_event(const trpi_gossip *g, uint32_t index, const char *role)
{
    trpi_assert_slow(index == TRPI_GOSSIP_NONE || index < g->members_count);
    trp_leader_event event = { .uid = 0 };
    if (index != TRPI_GOSSIP_NONE) {
        const trpi_ident *ident = g->members[index].ident;
        event.uid = ident->id.uid;
        memcpy(event.address, ident->address, strlen(ident->address));
    }
    if (role != NULL) {
        snprintf(event.role, sizeof event.role, "%s", role);
    }
    return event;
}

static void
publish_leader(trpi_member_core *core, const trpi_gossip *old, const trpi_gossip *new,
               const char *role)
{
    trpi_assert_slow(old->frozen && new->frozen);
    uint32_t was = trpi_gossip_leader(old, core->self->key, role);
    uint32_t is = trpi_gossip_leader(new, core->self->key, role);
    uint64_t was_key = was == TRPI_GOSSIP_NONE ? 0 : old->members[was].ident->key;
    uint64_t is_key = is == TRPI_GOSSIP_NONE ? 0 : new->members[is].ident->key;
    if (was_key == is_key) {
        return;
    }
    if (!core->published.ends) {
        trpi_core_log(core, TRP_LOG_INFO, "leader%s%s is %s", role == NULL ? "" : " of role ",
                      role == NULL ? "" : role,
                      is == TRPI_GOSSIP_NONE ? "nobody" : new->members[is].ident->address);
    }
    trpi_member_action *action = trpi_core_action(core, TRPI_ACTION_PUBLISH);
    if (action == NULL) {
        return;
    }
    action->own_end = core->published.ends;
    action->event = role == NULL ? TRP_CLUSTER_LEADER_CHANGED : TRP_CLUSTER_ROLE_LEADER_CHANGED;
    action->published.leader = leader_event(new, is, role);
}

/* Return whether one of the first `count` of these has the role. */
static bool
is_role_of(const trpi_ident *const *kinds, uint32_t count, const char *role)
{
    for (uint32_t i = 0; i < count; i++) {
        if (trpi_ident_has_role(kinds[i], role)) {
            return true;
        }
    }
    return false;
}

/* Each role of either view once, those of the new one first, in the order of members. */
static void
publish_role_leaders(trpi_member_core *core, const trpi_gossip *old, const trpi_gossip *new)
{
    trpi_assert_slow(old->frozen && new->frozen);
    const trpi_ident *const *kinds[2];
    uint32_t counts[2];
    if (trpi_gossip_kinds(new, &kinds[0], &counts[0]) != TRP_OK ||
        trpi_gossip_kinds(old, &kinds[1], &counts[1]) != TRP_OK) {
        trpi_core_actions_lost(core);
        return;
    }
    for (uint32_t v = 0; v < 2; v++) {
        for (uint32_t i = 0; i < counts[v]; i++) {
            for (uint32_t r = 0; r < kinds[v][i]->roles_count; r++) {
                const char *role = kinds[v][i]->roles[r];
                bool done = v == 1 && is_role_of(kinds[0], counts[0], role);
                if (!done && !is_role_of(kinds[v], i, role)) {
                    publish_leader(core, old, new, role);
                }
            }
        }
    }
}

void
trpi_member_each_role_leader(const trpi_member_core *core, trpi_role_leader_fn fn, void *arg)
{
    const trpi_gossip *g = core->gossip;
    const trpi_ident *const *kinds;
    uint32_t count;
    if (g == NULL || trpi_gossip_kinds(g, &kinds, &count) != TRP_OK) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t r = 0; r < kinds[i]->roles_count; r++) {
            const char *role = kinds[i]->roles[r];
            uint32_t leader = trpi_gossip_leader(g, core->self->key, role);
            if (leader != TRPI_GOSSIP_NONE && !is_role_of(kinds, i, role)) {
                trp_leader_event event = leader_event(g, leader, role);
                fn(arg, &event);
            }
        }
    }
}

static void
publish_seen(trpi_member_core *core, bool new_version)
{
    trpi_assert_slow(core->seen.bits == core->gossip->members_count);
    uint32_t seen = trpi_seen_count(&core->seen);
    bool converged = trpi_member_is_converged(core);
    if (!new_version && seen == core->published.seen_count &&
        converged == core->published.converged) {
        return;
    }
    trpi_member_action *action = trpi_core_action(core, TRPI_ACTION_PUBLISH);
    if (action == NULL || core->out.err != TRP_OK) {
        return; /* membership-events-V3 */
    }
    action->event = TRP_CLUSTER_SEEN_CHANGED;
    action->published.seen =
        (trp_seen_event){ .members = core->seen.bits, .seen_by = seen, .converged = converged };
    if (converged != core->published.converged) {
        core->published.converged_changed_ms = core->now.mono_ms;
    }
    core->published.seen_count = seen;
    core->published.converged = converged;
    trpi_assert_slow(core->published.seen_count <= core->seen.bits);
}

void
trpi_events_publish(trpi_member_core *core)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER);
    static const trpi_gossip nothing = { .refs = 1, .frozen = true };
    const trpi_gossip *old = core->published.view == NULL ? &nothing : core->published.view;
    const trpi_gossip *new = core->gossip;
    bool new_version = old->digest != new->digest;
    uint32_t begin = trpi_core_actions_begin(core);
    if (new_version) {
        publish_members(core, old, new);
        publish_leader(core, old, new, NULL);
        publish_role_leaders(core, old, new);
    }
    publish_seen(core, new_version);
    if (trpi_core_actions_complete(core, begin) && core->published.view != core->gossip) {
        trpi_gossip_ref(core->gossip);
        trpi_gossip_unref(core->published.view);
        core->published.view = core->gossip;
    }
    trpi_assert_slow(core->out.err != TRP_OK || core->published.view == core->gossip);
}

/* EVENTS-14. Publish that this node is out: for its subscribers there is no member any more. The
 * others are still in the cluster, so no log, listener or watcher is told of them. */
static void
publish_end(trpi_member_core *core, const trpi_gossip *old)
{
    trpi_assert_slow(!core->published.ends);
    static const trpi_gossip nothing = { .refs = 1, .frozen = true };
    uint32_t self = trpi_gossip_find(old, core->self->key);
    for (uint32_t i = 0; i < old->members_count; i++) {
        const trpi_gossip_member *m = &old->members[i];
        const trpi_tombstone *t = trpi_gossip_tombstone(core->gossip, m->ident->key);
        if (t != NULL && i != self) { /* removed with the same change */
            publish_removed(core, m, t->status);
        } else if (i != self) {
            publish_member_end(core, m);
        }
    }
    if (self != TRPI_GOSSIP_NONE && core->phase == TRPI_PHASE_STOPPED) {
        publish_removed(core, &old->members[self], last_status(core, &old->members[self]));
    } else if (self != TRPI_GOSSIP_NONE) {
        publish_member_end(core, &old->members[self]);
    }
    core->published.ends = true;
    publish_leader(core, old, &nothing, NULL);
    publish_role_leaders(core, old, &nothing);
    core->published.ends = false;
    trpi_assert_slow(!core->published.ends);
}

void
trpi_events_stopped(trpi_member_core *core)
{
    trpi_assert_slow(!core->published.ends);
    uint32_t begin = trpi_core_actions_begin(core);
    if (core->published.view != NULL) {
        publish_end(core, core->published.view);
    }
    if (trpi_core_actions_complete(core, begin)) { /* else the next step asks again */
        trpi_gossip_unref(core->published.view);
        core->published.view = NULL;
    }
}

void
trpi_events_downing(trpi_member_core *core, const trpi_downing_decision *decision, const char *what)
{
    trpi_assert_slow(decision->indexes_count <= core->gossip->members_count);
    trpi_core_log(core, TRP_LOG_WARNING,
                  "downing %s: %s (%s; members %u, on this side %u, unreachable %u, indirectly %u)",
                  trpi_downing_name(core->downing), what, decision->reason, decision->members,
                  decision->reachable, decision->unreachable, decision->indirectly_connected);
    trpi_member_action *action = trpi_core_action(core, TRPI_ACTION_PUBLISH);
    if (action == NULL) {
        return;
    }
    action->event = TRP_CLUSTER_DOWNING_DECISION;
    action->published.downing =
        (trp_downing_event){ .members = decision->members,
                             .reachable = decision->reachable,
                             .unreachable = decision->unreachable,
                             .indirectly_connected = decision->indirectly_connected };
    snprintf(action->published.downing.strategy, sizeof action->published.downing.strategy, "%s",
             trpi_downing_name(core->downing));
    snprintf(action->published.downing.decision, sizeof action->published.downing.decision, "%s",
             what);
    snprintf(action->published.downing.reason, sizeof action->published.downing.reason, "%s",
             decision->reason);
}
