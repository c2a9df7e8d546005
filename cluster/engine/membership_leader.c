/* membership_leader.c - the leader's actions, exiting members, tombstones.
 *
 * Why.     There is no election: the first member in order leads. Two nodes may each hold
 *          themselves the leader at one time, so a leader acts only on convergence: when all
 *          members that convergence waits for have seen the version it acts on.
 * Shape.   converged, leader:  Joining -> Up (if enough members) | Leaving -> Exiting |
 *                              Exiting, confirmed or silent -> removed | Down -> removed
 *          leader, for allow-weakly-up-members not converged:
 *                              Joining, reachable -> WeaklyUp (if enough members)
 *          leaving node:       sees itself Exiting -> EXITING_CONFIRMED to the leader until it
 *                              hears of its removal, or exiting-timeout passes -> STOPPED(left)
 * Must hold.
 *   membership-leader-L1  A leader that is itself Exiting leaves last: first it removes the others
 *       that exit.
 *   membership-leader-L2  The minimum sizes hold at the moment of Joining -> Up or WeaklyUp, and
 *       only then (MEMB-22).
 *   membership-leader-L3  WeaklyUp is the only status that a leader sets without convergence: both
 *       sides of a cut may do it, and their views merge.
 *   membership-leader-L4  A tombstone is dropped when prune-tombstones-after has passed since this
 *       node saw the removal, by the monotonic clock; one that it only heard of, by its time and
 *       the wall clock.
 *   membership-leader-L5  A node that is waking (trpi_member_now) does not act as leader: it may
 *       have been removed.
 *   membership-leader-L6  Nor does a node that a member has told that it is removed, until that is
 *       taken back or the member is Down here: a node that removes members does not count them any
 *       more, and so might decide that it stays, beside the members that have removed it.
 *   membership-leader-L7  Whether a removed member was cut off is decided when it becomes Down, by
 *       the reports about it at that time: later it is monitored no longer, and its observers may
 *       be Exiting, Down or gone.
 * Tests.   tests/unit/cluster/leader_test.c, rounds_test.c
 */
#include "cluster/engine/membership_core.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/hash.h"

/* in one step: a node alone goes Joining, Up, or Leaving, Exiting, gone */
#define ACT_ROUNDS_MAX 8u
#define CONFIRM_AGAIN_MS 200u

/* ---- leader actions -------------------------------------------------------------------------- */

static uint32_t
count_members(const trpi_gossip *g, const char *role)
{
    trpi_assert_slow(g->frozen);
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->members_count; i++) {
        if (g->members[i].status < TRP_MEMBER_EXITING &&
            (role == NULL || trpi_ident_has_role(g->members[i].ident, role))) {
            count++;
        }
    }
    trpi_assert_slow(count <= g->members_count);
    return count;
}

const char *
trpi_member_lacking(const trpi_member_core *core, char *buffer, size_t bytes) /* MEMB-19, -20 */
{
    trpi_assert_slow(bytes > 0);
    trpi_assert_slow(core->options.role_minima_count <= TRPI_ROLE_MINIMA_MAX);
    buffer[0] = '\0';
    if (core->gossip == NULL) {
        return buffer;
    }
    uint32_t count = count_members(core->gossip, NULL);
    if (count < core->options.min_nr_of_members) {
        snprintf(buffer, bytes, "%u of %u members are there", count,
                 core->options.min_nr_of_members);
    }
    for (uint32_t i = 0; i < core->options.role_minima_count && buffer[0] == '\0'; i++) {
        const trpi_role_minimum *minimum = &core->options.role_minima[i];
        count = count_members(core->gossip, minimum->role);
        if (count < minimum->members) {
            snprintf(buffer, bytes, "%u of %u members with role %s are there", count,
                     minimum->members, minimum->role);
        }
    }
    trpi_assert_slow(strlen(buffer) < bytes);
    return buffer;
}

static bool
is_large_enough(const trpi_member_core *core)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER);
    char lacking[160];
    return trpi_member_lacking(core, lacking, sizeof lacking)[0] == '\0';
}

static bool
has_confirmed(const trpi_member_core *core, uint64_t key)
{
    trpi_assert_slow(core->leading.confirmed_count <= core->leading.confirmed_room);
    for (uint32_t i = 0; i < core->leading.confirmed_count; i++) {
        if (core->leading.confirmed[i] == key) {
            return true;
        }
    }
    return false;
}

/* Return whether another incarnation of its address is neither Down nor removed: first one of the
 * two must be removed. */
static bool
has_rival(const trpi_gossip *g, const trpi_gossip_member *m)
{
    /* incarnations of one address stand side by side, in no order of age: a Down one may stand
     * between two that are not */
    const trpi_address *address = &m->ident->id.address;
    for (uint32_t i = trpi_gossip_lower(g, address);
         i < g->members_count && trpi_address_equal(&g->members[i].ident->id.address, address);
         i++) {
        if (&g->members[i] != m && g->members[i].status != TRP_MEMBER_DOWN) {
            return true;
        }
    }
    return false;
}

/* Return the wall clock in seconds; 0: out of range. */
static uint32_t
wall_s(const trpi_member_core *core)
{
    int64_t seconds = core->now.wall_ms / 1000;
    return seconds < 0 || seconds > UINT32_MAX ? 0 : (uint32_t)seconds;
}

/* Return the status that the leader gives this member now; its present one: no change. */
static uint32_t
next_status(const trpi_member_core *core, const trpi_gossip_member *m, bool large_enough)
{
    trpi_assert_slow(m->status >= TRP_MEMBER_JOINING && m->status <= TRP_MEMBER_DOWN);
    switch (m->status) {
    case TRP_MEMBER_JOINING:
        return large_enough && !has_rival(core->gossip, m) ? TRP_MEMBER_UP : TRP_MEMBER_JOINING;
    case TRP_MEMBER_LEAVING:
        return TRP_MEMBER_EXITING;
    case TRP_MEMBER_EXITING:
        if (m->ident->key == core->self->key) { /* membership-leader-L1 */
            return core->gossip->members_count == 1 && !core->options.exiting_waits
                       ? TRP_MEMBER_REMOVED
                       : TRP_MEMBER_EXITING;
        }
        return m->unreachable != 0 || has_confirmed(core, m->ident->key) ? TRP_MEMBER_REMOVED
                                                                         : TRP_MEMBER_EXITING;
    case TRP_MEMBER_DOWN:
        return m->ident->key == core->self->key ? TRP_MEMBER_DOWN : TRP_MEMBER_REMOVED;
    default:
        return m->status;
    }
}

/* Do one round of leader actions; returns whether something changed. */
static bool
act_once(trpi_member_core *core)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER && !core->now.waking);
    trpi_assert_slow(trpi_gossip_leader(core->gossip, core->self->key, NULL) ==
                     trpi_core_self_index(core));
    const trpi_gossip *g = core->gossip;
    bool large_enough = is_large_enough(core);
    bool anything = false;
    for (uint32_t i = 0; i < g->members_count && !anything; i++) {
        anything = next_status(core, &g->members[i], large_enough) != g->members[i].status;
    }
    if (!anything) {
        return false;
    }
    trpi_gossip *edited = trpi_gossip_copy(g);
    if (edited == NULL) {
        return false; /* the next tick tries again */
    }
    uint32_t up_number = trpi_gossip_up_number_max(g);
    trp_err err = TRP_OK;
    for (uint32_t i = 0, at = 0; i < g->members_count && err == TRP_OK; i++, at++) {
        const trpi_gossip_member *m = &g->members[i];
        uint32_t status = next_status(core, m, large_enough);
        if (status == m->status) {
            continue;
        }
        if (status == TRP_MEMBER_REMOVED) {
            if (m->status == TRP_MEMBER_EXITING && has_confirmed(core, m->ident->key)) {
                edited->members[at].settled = 1; /* it said that it is done */
            }
            err = trpi_gossip_remove(edited, at, core->now.wall_ms);
            if (TRPI_IS_BROKEN(core, TRPI_BROKEN_NO_TOMBSTONES) && err == TRP_OK) {
                edited->tombstones_count--; /* the last one */
            }
            at--; /* the next one has moved here */
            if (m->ident->key != core->self->key) {
                trpi_gossip_send_gone(core, &m->ident->id,
                                      m->status == TRP_MEMBER_DOWN ? TRP_MEMBER_DOWN
                                                                   : TRP_MEMBER_EXITING,
                                      m->unreachable == 0);
            }
            continue;
        }
        trpi_gossip_set_status(edited, at, status);
        if (status == TRP_MEMBER_UP) {
            up_number += up_number < TRPI_GOSSIP_UP_NUMBER_MAX ? 1 : 0; /* then by address */
            edited->members[at].up_number = up_number;
            edited->members[at].up_since_s = wall_s(core);
        }
    }
    if (err != TRP_OK) {
        trpi_gossip_unref(edited);
        return false;
    }
    return trpi_core_commit(core, edited) == TRP_OK;
}

/* membership-leader-L6. Return whether there is a remover that is not Down here. */
static bool
is_removal_disputed(const trpi_member_core *core)
{
    trpi_assert_slow(core->removers.removers_count <= core->removers.removers_room);
    for (uint32_t i = 0; i < core->removers.removers_count; i++) {
        uint32_t at = trpi_gossip_find(core->gossip, core->removers.removers[i].key);
        if (at != TRPI_GOSSIP_NONE && core->gossip->members[at].status != TRP_MEMBER_DOWN) {
            return true;
        }
    }
    return false;
}

void
trpi_leader_act(trpi_member_core *core)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER);
    for (uint32_t round = 0; round < ACT_ROUNDS_MAX; round++) {
        uint32_t self = trpi_core_self_index(core);
        if (self == TRPI_GOSSIP_NONE || core->gossip->members[self].status == TRP_MEMBER_DOWN ||
            core->now.waking || is_removal_disputed(core) ||
            trpi_gossip_leader(core->gossip, core->self->key, NULL) != self ||
            !trpi_member_is_converged(core) || TRPI_BUGGIFY(core) || !act_once(core)) {
            return;
        }
    }
}

/* ---- weakly up ------------------------------------------------------------------------------- */

static bool
may_be_weakly_up(const trpi_gossip *g, const trpi_gossip_member *m)
{
    return trpi_member_status(m) == TRP_MEMBER_JOINING && m->unreachable == 0 && !has_rival(g, m);
}

/* membership-leader-L3. */
static void
make_weakly_up(trpi_member_core *core)
{
    trpi_assert_slow(!core->now.waking && core->options.weakly_up_after_ms > 0);
    const trpi_gossip *g = core->gossip;
    bool any = false;
    for (uint32_t i = 0; i < g->members_count && !any; i++) {
        any = may_be_weakly_up(g, &g->members[i]);
    }
    trpi_gossip *edited = any && is_large_enough(core) ? trpi_gossip_copy(g) : NULL;
    if (edited == NULL) {
        return; /* no memory: the next tick tries again */
    }
    for (uint32_t i = 0; i < g->members_count; i++) {
        if (may_be_weakly_up(g, &g->members[i])) {
            trpi_gossip_set_status(edited, i, TRP_MEMBER_WEAKLY_UP);
        }
    }
    (void)trpi_core_commit(core, edited); /* likewise */
}

static void
consider_weakly_up(trpi_member_core *core)
{
    trpi_assert_slow(core->leading.blocked_ms <= core->now.mono_ms);
    uint32_t self = trpi_core_self_index(core);
    if (core->options.weakly_up_after_ms == 0 || self == TRPI_GOSSIP_NONE || core->now.waking ||
        trpi_gossip_leader(core->gossip, core->self->key, NULL) != self ||
        trpi_member_is_converged(core)) {
        core->leading.blocked_ms = 0;
        return;
    }
    if (core->leading.blocked_ms == 0) {
        core->leading.blocked_ms = core->now.mono_ms;
    }
    if (core->now.mono_ms - core->leading.blocked_ms >= core->options.weakly_up_after_ms) {
        make_weakly_up(core);
    }
    trpi_assert_slow(core->leading.blocked_ms <= core->now.mono_ms);
}

/* ---- housekeeping ---------------------------------------------------------------------------- */

static bool
is_near_down(const trpi_member_core *core, uint64_t key)
{
    for (uint32_t i = 0; i < core->removals.near_downs_count; i++) {
        if (core->removals.near_downs[i] == key) {
            return true;
        }
    }
    return false;
}

/* Return whether any observer reports it, whether it counts or not: one that is Exiting or Down may
 * be right. */
static bool
is_accused(const trpi_gossip *g, uint64_t key)
{
    for (uint32_t i = 0; i < g->rows_count; i++) {
        if (g->rows[i].subject == key) {
            return true;
        }
    }
    return false;
}

/* Return whether a member was there that is not Down yet; a Joining one is not monitored. */
static bool
is_near(const trpi_gossip *g, uint32_t index)
{
    trpi_assert_slow(index == TRPI_GOSSIP_NONE || index < g->members_count);
    return index != TRPI_GOSSIP_NONE && g->members[index].status != TRP_MEMBER_DOWN &&
           g->members[index].status != TRP_MEMBER_JOINING &&
           !is_accused(g, g->members[index].ident->key);
}

/* membership-leader-L7 */
static void
note_downs(trpi_member_core *core, const trpi_gossip *next)
{
    trpi_assert_slow(next->frozen);
    const trpi_gossip *g = core->gossip;
    uint32_t downs = 0, count = 0;
    for (uint32_t i = 0; i < next->members_count; i++) {
        downs += next->members[i].status == TRP_MEMBER_DOWN;
    }
    uint64_t *near = downs == 0 || g == NULL ? NULL : trpi_alloc(downs * sizeof *near);
    for (uint32_t i = 0; i < next->members_count && near != NULL; i++) {
        uint64_t key = next->members[i].ident->key;
        if (next->members[i].status == TRP_MEMBER_DOWN &&
            (is_near_down(core, key) ||
             (is_near(g, trpi_gossip_find(g, key)) && !is_accused(next, key)))) {
            near[count++] = key;
        }
    }
    trpi_free(core->removals.near_downs);
    core->removals.near_downs = near;
    core->removals.near_downs_count = count;
    trpi_assert_slow(core->removals.near_downs_count <= downs);
}

/* Return how this node saw the removal of a member that has a tombstone in `next`. *at: index in
 * the present view of the first tombstone whose key is not below; it moves on. */
static trpi_removal
removal_of(const trpi_member_core *core, uint64_t key, uint32_t *at)
{
    trpi_assert_slow(*at <= core->gossip->tombstones_count);
    const trpi_removal told = { TRPI_NEVER, core->now.mono_ms, false };
    const trpi_gossip *g = core->gossip;
    while (*at < g->tombstones_count && g->tombstones[*at].key < key) {
        (*at)++;
    }
    if (*at < g->tombstones_count && g->tombstones[*at].key == key) {
        return core->removals.of_tombstones == NULL ? told : core->removals.of_tombstones[*at];
    }
    uint32_t member = trpi_gossip_find(g, key);
    return member == TRPI_GOSSIP_NONE
               ? told
               : (trpi_removal){ core->now.mono_ms, core->now.mono_ms,
                                 is_near_down(core, key) || is_near(g, member) };
}

bool
trpi_core_removed_near(const trpi_member_core *core, const trpi_tombstone *t)
{
    trpi_assert_slow(t >= core->gossip->tombstones);
    trpi_assert_slow(t < core->gossip->tombstones + core->gossip->tombstones_count);
    return core->removals.of_tombstones != NULL &&
           core->removals.of_tombstones[t - core->gossip->tombstones].near;
}

void
trpi_core_note_removals(trpi_member_core *core, const trpi_gossip *next)
{
    trpi_assert_slow(next->frozen);
    if (next == core->gossip) {
        return;
    }
    trpi_removal *removals = next->tombstones_count == 0 || core->gossip == NULL
                                 ? NULL
                                 : trpi_alloc(next->tombstones_count * sizeof *removals);
    if (removals != NULL) {
        for (uint32_t i = 0, at = 0; i < next->tombstones_count; i++) {
            removals[i] = removal_of(core, next->tombstones[i].key, &at);
        }
    }
    trpi_free(core->removals.of_tombstones);
    core->removals.of_tombstones = removals;
    note_downs(core, next);
}

/* Of an Exiting node: it does not say yet that it is done. */
static bool
stays_exiting(const trpi_member_core *core)
{
    return core->options.exiting_waits || trpi_lease_is_kept(core);
}

bool
trpi_member_is_done(const trpi_member_core *core)
{
    uint32_t self = core->gossip == NULL ? TRPI_GOSSIP_NONE : trpi_core_self_index(core);
    return self != TRPI_GOSSIP_NONE && core->gossip->members[self].status == TRP_MEMBER_EXITING &&
           !stays_exiting(core);
}

bool
trpi_member_takeover(const trpi_member_core *core, uint64_t now_ms, uint64_t key,
                     uint64_t *ret_in_ms)
{
    const trpi_gossip *g = core->gossip;
    if (g == NULL || trpi_gossip_find(g, key) != TRPI_GOSSIP_NONE) {
        return false;
    }
    const trpi_tombstone *t = trpi_gossip_tombstone(g, key);
    *ret_in_ms = 0;
    if (t == NULL || t->settled != 0) {
        return true; /* without a tombstone it was removed long ago, or it never was here */
    }
    /* of removals that came with the first view nothing is known */
    const trpi_core_removals *r = &core->removals;
    uint64_t known_ms =
        r->of_tombstones == NULL ? core->welcome_ms : r->of_tombstones[t - g->tombstones].known_ms;
    uint64_t end_ms = known_ms + trpi_downing_removal_margin_ms(&core->options.downing);
    *ret_in_ms = now_ms < end_ms ? end_ms - now_ms : 0;
    return true;
}

static bool
is_old(const void *arg, uint32_t index) /* membership-leader-L4 */
{
    const trpi_member_core *core = arg;
    uint64_t gone_ms =
        core->removals.of_tombstones == NULL ? TRPI_NEVER : core->removals.of_tombstones[index].ms;
    uint32_t age_ms = core->options.prune_tombstones_after_ms;
    return gone_ms != TRPI_NEVER
               ? core->now.mono_ms - gone_ms > age_ms
               : core->now.wall_ms - core->gossip->tombstones[index].wall_ms > age_ms;
}

static void
prune_tombstones(trpi_member_core *core)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER);
    const trpi_gossip *g = core->gossip;
    bool old = false;
    for (uint32_t i = 0; i < g->tombstones_count && !old; i++) {
        old = is_old(core, i);
    }
    if (!old) {
        return;
    }
    trpi_gossip *edited = trpi_gossip_copy(g);
    if (edited == NULL) {
        return;
    }
    (void)trpi_gossip_prune(edited, is_old, core); /* there is at least one */
    if (trpi_gossip_freeze(edited) == TRP_OK) {
        (void)trpi_core_adopt(core, edited, &core->seen); /* no memory: at the next tick */
    }
    trpi_gossip_unref(edited);
}

void
trpi_leader_tick(trpi_member_core *core)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER);
    if (core->now.mono_ms < core->due.leader_ms) {
        return;
    }
    trpi_core_due_next_round(core);
    prune_tombstones(core);
    trpi_removed_tick(core);
    if (core->phase == TRPI_PHASE_STOPPED) {
        return;
    }
    consider_weakly_up(core);
    trpi_downing_tick(core);
}

/* ---- exiting --------------------------------------------------------------------------------- */

void
trpi_exiting_tick(trpi_member_core *core)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER);
    uint32_t self = trpi_core_self_index(core);
    if (self == TRPI_GOSSIP_NONE || core->gossip->members[self].status != TRP_MEMBER_EXITING ||
        stays_exiting(core)) {
        return;
    }
    uint64_t now = core->now.mono_ms;
    if (core->leading.exiting_ms == 0) {
        core->leading.exiting_ms = now;
        core->leading.confirm_ms = now;
    }
    if (now >= core->leading.exiting_ms + core->options.exiting_timeout_ms) {
        trpi_core_log(core, TRP_LOG_WARNING, "left without hearing that the removal is done");
        trpi_core_stop(core, TRPI_STOP_LEFT);
        return;
    }
    if (now < core->leading.confirm_ms) {
        return;
    }
    core->leading.confirm_ms = now + CONFIRM_AGAIN_MS;
    uint32_t leader = trpi_gossip_leader(core->gossip, 0, NULL);
    if (leader != TRPI_GOSSIP_NONE && leader != self) {
        trpi_frame frame = { .kind = TRPI_FRAME_EXITING_CONFIRMED,
                             .to_uid = core->gossip->members[leader].ident->id.uid };
        trpi_core_send(core, &core->gossip->members[leader].ident->id, &frame, NULL);
    }
    trpi_assert_slow(core->leading.confirm_ms > now && core->leading.exiting_ms <= now);
}

void
trpi_exiting_confirmed(trpi_member_core *core, const trpi_node_id *from, uint64_t key)
{
    trpi_assert_slow(key != core->self->key);
    (void)from;
    if (has_confirmed(core, key)) {
        return;
    }
    /* drop removed members, so that the list is never longer than the members */
    uint32_t kept = 0;
    for (uint32_t i = 0; i < core->leading.confirmed_count; i++) {
        if (trpi_gossip_find(core->gossip, core->leading.confirmed[i]) != TRPI_GOSSIP_NONE) {
            core->leading.confirmed[kept++] = core->leading.confirmed[i];
        }
    }
    core->leading.confirmed_count = kept;
    if (!TRPI_ARRAY_HAS_ROOM(&core->leading, confirmed)) {
        return; /* no memory: it confirms again */
    }
    core->leading.confirmed[core->leading.confirmed_count++] = key;
    trpi_assert_slow(core->leading.confirmed_count <= core->leading.confirmed_room &&
                     has_confirmed(core, key));
}

void
trpi_leader_own_pause(trpi_member_core *core, uint64_t pause_ms)
{
    trpi_assert_slow(pause_ms > 0);
    if (core->leading.blocked_ms != 0) {
        trpi_core_move(core, &core->leading.blocked_ms, pause_ms);
    }
}
