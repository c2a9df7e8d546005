/* membership_downing.c - what the engine does about members that stay unreachable: it asks the
 * strategy (downing.c), and carries out what that decides.
 *
 * States.  of the lease: UNASKED --acquire--> ASKED --granted--> HELD --long at rest--> UNASKED
 *                                               `--refused, no answer--> REFUSED --rest--> UNASKED
 *                                               `--at rest, no answer--> UNASKED
 *          At rest no member is unreachable.
 * Must hold.
 *   membership-downing-W1  A lease that is held is given back only when the other side has asked
 *       for it or must not ask any more (downing-D8): the owner's time begins when the last member
 *       that it marked Down is removed, the other side's when it first finds a member unreachable,
 *       and goes on during pauses of the node.
 *   membership-downing-W2  A refused member ends with its whole side; each of them is told
 *       directly, since a stopped member gossips no more. Not so when the owner is of its own
 *       side, from an earlier cut: then the owner acts, and the refused member asks again, for as
 *       long as it may (membership-downing-W1).
 *   membership-downing-W3  A node that stops itself says which sides it saw, and what to do next.
 *   membership-downing-W4  The lease is not given back either when its owner ends and others of
 *       its side are left: they go on, and the other side must not get it. It ends with its owner,
 *       after the time that the lease implementation has for that.
 *   membership-downing-W11 Nor when its owner leaves: the lock on a file ends with the process, so
 *       an owner stays Exiting for as long as it would keep the lease, if a member of its side goes
 *       on. A lease that is granted to an Exiting node is given back: it decides nothing.
 *   membership-downing-W5  A node that is waking (trpi_member_now) decides nothing: the members
 *       that it holds unreachable may have removed it.
 *   membership-downing-W10  Members that a resolving strategy marks Down are settled if they have
 *       been unreachable for stable-after: by then they have suspended what must not live twice
 *       (exclusive.c). Others are not: a decision during churn may come earlier, auto-down-after
 *       comes by itself, and members of this node's own side hear of it in their own time.
 * Tests.   tests/unit/cluster/leader_test.c, downing_lease_test.c, removed_test.c
 */
#include "cluster/engine/membership_core.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "cluster/engine/downing_sides.h"

/* ---- the lease ------------------------------------------------------------------------------- */

static void
lease_release(trpi_member_core *core)
{
    trpi_assert_slow(trpi_downing_asks_lease(core->downing));
    core->split.lease = TRPI_LEASE_UNASKED;
    (void)trpi_core_action(core, TRPI_ACTION_LEASE_RELEASE); /* no memory: it ends with the node */
    trpi_assert_slow(core->split.lease == TRPI_LEASE_UNASKED);
}

/* Give back a lease that this node holds when the other side must not ask any more. */
static void
lease_expire(trpi_member_core *core)
{
    if (core->split.lease == TRPI_LEASE_HELD &&
        core->now.mono_ms - core->split.lease_ms >=
            trpi_downing_lease_hold_ms(&core->options.downing)) {
        lease_release(core);
    }
}

/* No member that could be marked Down is unreachable. */
static void
lease_idle(trpi_member_core *core)
{
    trpi_assert_slow(core->gossip->blocking_count == 0);
    bool unanswered =
        core->split.lease == TRPI_LEASE_ASKED &&
        core->now.mono_ms >= core->split.lease_ms + core->options.downing.lease_timeout_ms;
    if (core->split.lease == TRPI_LEASE_REFUSED || unanswered) {
        core->split.lease = TRPI_LEASE_UNASKED;
    }
    lease_expire(core);
    trpi_assert_slow(core->split.lease != TRPI_LEASE_REFUSED);
}

/* membership-downing-W1 */
static void
lease_track(trpi_member_core *core)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER);
    if (core->gossip->unreachable_count == 0) {
        core->split.apart_ms = 0;
        return;
    }
    core->split.apart_ms = core->split.apart_ms != 0 ? core->split.apart_ms : core->now.mono_ms;
    if (core->split.lease == TRPI_LEASE_HELD) {
        core->split.lease_ms = core->now.mono_ms;
    }
    trpi_assert_slow(core->split.apart_ms <= core->now.mono_ms);
}

static void
lease_ask(trpi_member_core *core, const trpi_downing_decision *decision)
{
    trpi_assert_slow(trpi_downing_asks_lease(core->downing));
    trpi_assert_slow(decision->verdict == TRPI_DOWNING_ACQUIRE);
    if (trpi_core_action(core, TRPI_ACTION_LEASE_ACQUIRE) != NULL) { /* else: at the next tick */
        core->split.lease = TRPI_LEASE_ASKED;
        core->split.lease_ms = core->now.mono_ms;
        trpi_events_downing(core, decision, "acquire-lease");
    }
}

bool
trpi_member_needs_lease(const trpi_member_core *core)
{
    return core->split.lease == TRPI_LEASE_HELD && core->gossip->members_count > 1;
}

bool
trpi_lease_is_kept(const trpi_member_core *core) /* membership-downing-W11 */
{
    const trpi_gossip *g = core->gossip;
    for (uint32_t i = 0; core->split.lease == TRPI_LEASE_HELD && i < g->members_count; i++) {
        if (g->members[i].ident->key != core->self->key &&
            g->members[i].status < TRP_MEMBER_EXITING) {
            return true;
        }
    }
    return false;
}

bool
trpi_member_holds_lease(const trpi_member_core *core)
{
    return core->split.lease == TRPI_LEASE_HELD;
}

uint32_t
trpi_member_stable_after_ms(const trpi_member_core *core)
{
    return core->options.downing.stable_after_ms;
}

bool
trpi_member_resolves(const trpi_member_core *core)
{
    return trpi_downing_resolves(core->downing);
}

/* Return whether the text names a member that this node reaches as the owner of the lease. */
static bool
is_held_by_own_side(const trpi_member_core *core, const char *why)
{
    const trpi_gossip *g = core->gossip;
    for (uint32_t i = 0; i < g->members_count; i++) {
        const trpi_ident *ident = g->members[i].ident;
        char owner[TRPI_LEASE_OWNER_BYTES];
        if (strstr(why, trpi_lease_owner(&ident->id, owner)) != NULL) {
            return g->members[i].status <= TRP_MEMBER_EXITING &&
                   trpi_member_unreachable_since_ms(core, ident->key) == 0;
        }
    }
    return false;
}

void
trpi_lease_answered(trpi_member_core *core, bool granted, const char *why)
{
    uint32_t self = trpi_core_self_index(core);
    bool exits =
        self != TRPI_GOSSIP_NONE && core->gossip->members[self].status >= TRP_MEMBER_EXITING;
    if (core->split.lease != TRPI_LEASE_ASKED || exits) { /* no longer asked for */
        if (granted && core->split.lease != TRPI_LEASE_HELD) {
            lease_release(core);
        }
        return;
    }
    if (!granted && why != NULL && is_held_by_own_side(core, why)) { /* membership-downing-W2 */
        core->split.lease = TRPI_LEASE_UNASKED;
        trpi_core_log(core, TRP_LOG_INFO, "the lease is on this side already: %s", why);
        return;
    }
    core->split.lease = granted ? TRPI_LEASE_HELD : TRPI_LEASE_REFUSED;
    core->split.lease_ms = core->now.mono_ms;
    trpi_core_due_leader(core, core->now.mono_ms); /* decide now */
    trpi_core_log(core, TRP_LOG_WARNING, "the lease is %s%s%s", granted ? "ours" : "refused",
                  why == NULL ? "" : ": ", why == NULL ? "" : why);
    trpi_assert_slow(core->split.lease == TRPI_LEASE_HELD ||
                     core->split.lease == TRPI_LEASE_REFUSED);
    trpi_assert_slow(core->split.lease_ms == core->now.mono_ms);
}

/* ---- looking --------------------------------------------------------------------------------- */

const trpi_votes *
trpi_member_votes(const trpi_member_core *core)
{
    return &core->votes;
}

bool
trpi_member_may_go_on(const trpi_member_core *core, const uint32_t *marks,
                      trpi_downing_count *ret_count)
{
    trpi_assert(core->gossip != NULL);
    trpi_downing_input input = { .gossip = core->gossip,
                                 .votes = &core->votes,
                                 .exiting_oldest = core->split.oldest_exiting };
    return trpi_downing_may_go_on(core->downing, &core->options.downing, &input, marks, ret_count);
}

bool
trpi_core_next_crash(const trpi_member_core *core, uint64_t leaving,
                     trpi_downing_next_crash *ret_crash)
{
    uint32_t index =
        core->gossip == NULL ? TRPI_GOSSIP_NONE : trpi_gossip_find(core->gossip, leaving);
    uint32_t *marks =
        index == TRPI_GOSSIP_NONE ? NULL : trpi_alloc(core->gossip->members_count * sizeof *marks);
    if (marks == NULL) {
        return false;
    }
    trpi_downing_input input = { .gossip = core->gossip,
                                 .votes = &core->votes,
                                 .exiting_oldest = core->split.oldest_exiting };
    *ret_crash =
        trpi_downing_next_crash_find(core->downing, &core->options.downing, &input, index, marks);
    trpi_free(marks);
    return true;
}

bool
trpi_member_next_crash(const trpi_member_core *core, uint64_t leaving,
                       trpi_downing_next_crash *ret_crash)
{
    bool found = trpi_core_next_crash(core, leaving, ret_crash);
    if (found) {
        trpi_assert_check(trpi_downing_next_crash_check, core->gossip,
                          trpi_gossip_find(core->gossip, leaving), ret_crash);
    }
    return found;
}

/* ---- carrying out ---------------------------------------------------------------------------- */

/* unreachable_ms: of each member, or NULL: none is settled (membership-downing-W10). */
static void
mark_down(trpi_member_core *core, const trpi_downing_decision *decision,
          const uint64_t *unreachable_ms, const char *what)
{
    trpi_assert_slow(decision->indexes_count > 0 &&
                     decision->indexes_count <= core->gossip->members_count);
    trpi_gossip *edited = trpi_gossip_copy(core->gossip);
    if (edited == NULL) {
        return; /* decided again at the next tick */
    }
    for (uint32_t i = 0; i < decision->indexes_count; i++) {
        trpi_gossip_set_status(edited, decision->indexes[i], TRP_MEMBER_DOWN);
        uint32_t at = decision->indexes[i];
        edited->members[at].settled =
            unreachable_ms != NULL && unreachable_ms[at] >= core->options.downing.stable_after_ms;
    }
    if (trpi_core_commit(core, edited) == TRP_OK) {
        trpi_events_downing(core, decision, what);
    }
}

static void
log_sides(trpi_member_core *core, const uint32_t *marks) /* membership-downing-W3 */
{
    char side[160], others[160];
    trpi_core_log(core, TRP_LOG_WARNING, "this side: %s; not on it: %s",
                  trpi_sides_text(core->gossip, marks, true, side, sizeof(side)),
                  trpi_sides_text(core->gossip, marks, false, others, sizeof others));
}

static void
log_what_next(trpi_member_core *core) /* membership-downing-W3 */
{
    trpi_core_log(core, TRP_LOG_WARNING,
                  "what next: when the network is whole again, start this node again: it joins the "
                  "side that survived; if none survived: docs/operating.md, After a total loss");
}

static void
side_down(trpi_member_core *core, const trpi_downing_input *input,
          const trpi_downing_decision *decision)
{
    trpi_assert_slow(decision->verdict == TRPI_DOWNING_DOWN_SIDE);
    trpi_assert_slow(decision->indexes_count > 0);
    uint32_t *marks = trpi_alloc((core->gossip->members_count + 1) * sizeof *marks);
    if (marks != NULL) {  /* else it stops without having told the sides */
        trpi_sides sides; /* found again: indexes has taken the place of the marks */
        trpi_sides_find(&core->options.downing, input, TRPI_SPARE_NOBODY, marks, &sides);
        log_sides(core, marks);
        trpi_free(marks);
    }
    for (uint32_t i = 0; i < decision->indexes_count; i++) { /* membership-downing-W2 */
        const trpi_ident *ident = core->gossip->members[decision->indexes[i]].ident;
        if (ident->key != core->self->key) {
            trpi_gossip_send_gone(core, &ident->id, TRP_MEMBER_DOWN, true);
        }
    }
    log_what_next(core);
    mark_down(core, decision, NULL, "down-own-side");
}

static void
self_down(trpi_member_core *core, const trpi_downing_decision *decision)
{
    trpi_assert_slow(decision->verdict == TRPI_DOWNING_DOWN_SELF);
    trpi_events_downing(core, decision, "down-self");
    log_sides(core, decision->indexes);
    log_what_next(core);
    trpi_core_stop(core, TRPI_STOP_DOWNED);
    trpi_assert_slow(core->phase == TRPI_PHASE_STOPPED);
}

static void
roll_call(trpi_member_core *core)
{
    trpi_assert_slow(core->gossip->blocking_count > 0);
    trpi_gossip *edited = trpi_gossip_copy(core->gossip);
    if (edited != NULL && trpi_core_commit(core, edited) == TRP_OK) { /* else: at the next tick */
        trpi_gossip_ask_suspects(core);
    }
}

/* Two times of each member: for how long it has been unreachable, and reachable again. */
#define TIMES_ROOM(g) (2 * ((g)->members_count + 1))

static trpi_downing_input
input_make(const trpi_member_core *core, const uint64_t *times)
{
    trpi_assert_slow(core->stability.stable_ms <= core->now.mono_ms &&
                     core->version.since_ms <= core->now.mono_ms);
    trpi_assert_slow(core->version.made_ms <= core->now.mono_ms &&
                     core->split.suspicion_ms <= core->now.mono_ms);
    trpi_assert_slow(core->stability.flaps <= 2 ||
                     core->stability.flapping_ms <= core->now.mono_ms);
    uint64_t sure_ms = core->split.sure_ms > core->stability.flapping_ms
                           ? core->split.sure_ms
                           : core->stability.flapping_ms;
    return (trpi_downing_input){
        .gossip = core->gossip,
        .seen = &core->seen,
        .votes = &core->votes,
        .self = core->self->key,
        .stable_ms = core->now.mono_ms - core->stability.stable_ms,
        .unstable_ms =
            core->stability.flaps > 2 ? core->now.mono_ms - core->stability.flapping_ms : 0,
        .unsure_ms = core->stability.flaps > 2 ? core->now.mono_ms - sure_ms : 0,
        .unreachable_ms = times,
        .reachable_ms = times + core->gossip->members_count + 1,
        .apart_ms = core->now.mono_ms - core->split.apart_ms,
        .version_ms = core->now.mono_ms - core->version.since_ms,
        .made_ms = core->now.mono_ms - core->version.made_ms,
        .suspicion_ms = core->split.suspicion_ms == 0
                            ? UINT64_MAX
                            : core->now.mono_ms - core->split.suspicion_ms,
        .exiting_oldest = core->split.oldest_exiting,
        .lease = core->split.lease,
    };
}

static void
times_fill(const trpi_member_core *core, uint64_t *times)
{
    const trpi_gossip *g = core->gossip;
    uint64_t *unreachable_ms = times, *reachable_ms = times + g->members_count + 1;
    for (uint32_t i = 0; i < g->members_count; i++) {
        unreachable_ms[i] = 0;
        reachable_ms[i] = UINT64_MAX;
    }
    for (uint32_t i = 0; i < core->stability.since_count; i++) {
        const trpi_since *s = &core->stability.since[i];
        uint32_t at = trpi_gossip_find(g, s->key);
        if (at != TRPI_GOSSIP_NONE) {
            unreachable_ms[at] = s->since_ms == 0 ? 0 : core->now.mono_ms - s->since_ms;
            reachable_ms[at] = s->since_ms != 0  ? 0
                               : s->back_ms != 0 ? core->now.mono_ms - s->back_ms
                                                 : UINT64_MAX;
        }
    }
}

static void
run_strategy(trpi_member_core *core, const uint64_t *times, uint32_t *indexes)
{
    trpi_assert_slow(core->gossip->blocking_count > 0 && !core->now.waking);
    trpi_downing_decision decision = { .verdict = TRPI_DOWNING_WAIT, .indexes = indexes };
    trpi_downing_input input = input_make(core, times);
    trpi_downing_decide(core->downing, &core->options.downing, &input, &decision);
    core->split.sure_ms = decision.sure ? core->version.since_ms : core->split.sure_ms;
    core->split.suspicion_ms =
        decision.suspected > 0 ? core->now.mono_ms : core->split.suspicion_ms;
    switch (decision.verdict) {
    case TRPI_DOWNING_WAIT:
        return;
    case TRPI_DOWNING_ROLL_CALL:
        roll_call(core);
        return;
    case TRPI_DOWNING_DOWN_MEMBERS:
        mark_down(core, &decision, trpi_downing_resolves(core->downing) ? times : NULL,
                  "down-unreachable");
        return;
    case TRPI_DOWNING_DOWN_SELF:
        self_down(core, &decision);
        return;
    case TRPI_DOWNING_ACQUIRE:
        lease_ask(core, &decision);
        return;
    case TRPI_DOWNING_DOWN_SIDE:
        side_down(core, &input, &decision);
        return;
    }
}

/* Remember the oldest member while it is Exiting, because it may not see later views: its process
 * ends. Also while all agree: the leader may crash with the removal that follows. */
static void
note_exiting_oldest(trpi_member_core *core)
{
    trpi_assert_slow(core->seen.bits == core->gossip->members_count);
    uint64_t exiting =
        trpi_sides_exiting_oldest(&core->options.downing, core->gossip, &core->votes, &core->seen);
    core->split.oldest_exiting = exiting != 0 ? exiting : core->split.oldest_exiting;
}

void
trpi_downing_tick(trpi_member_core *core)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER);
    const trpi_gossip *g = core->gossip;
    uint32_t self = trpi_core_self_index(core);
    if (self == TRPI_GOSSIP_NONE || g->members[self].status >= TRP_MEMBER_EXITING) {
        lease_expire(core); /* membership-downing-W11 */
        return;
    }
    lease_track(core);
    note_exiting_oldest(core);
    if (g->blocking_count == 0) {
        lease_idle(core);
        return;
    }
    if (core->now.waking) {
        return; /* membership-downing-W5 */
    }
    if (core->split.lease == TRPI_LEASE_ASKED &&
        core->now.mono_ms >= core->split.lease_ms + core->options.downing.lease_timeout_ms) {
        trpi_lease_answered(core, false, "it has not answered in time");
    }
    uint64_t *times = trpi_alloc(TIMES_ROOM(g) * sizeof *times);
    uint32_t *indexes = trpi_alloc((g->members_count + 1) * sizeof *indexes);
    if (times != NULL && indexes != NULL) {
        times_fill(core, times);
        run_strategy(core, times, indexes);
    }
    trpi_free(times);
    trpi_free(indexes);
}

bool
trpi_core_forecast(const trpi_member_core *core, trpi_downing_forecast *ret_forecast)
{
    const trpi_gossip *g = core->gossip;
    uint32_t self = g == NULL ? TRPI_GOSSIP_NONE : trpi_core_self_index(core);
    if (core->phase != TRPI_PHASE_MEMBER || self == TRPI_GOSSIP_NONE || g->blocking_count == 0 ||
        g->members[self].status >= TRP_MEMBER_EXITING) {
        return false;
    }
    uint64_t *times = trpi_alloc((TIMES_ROOM(g) + g->members_count + 1) * sizeof *times);
    uint32_t *indexes = trpi_alloc((g->members_count + 1) * sizeof *indexes);
    bool made = times != NULL && indexes != NULL;
    if (made) {
        trpi_downing_input input = input_make(core, times);
        times_fill(core, times);
        trpi_downing_forecast_make(core->downing, &core->options.downing, &input, indexes,
                                   times + TIMES_ROOM(g), ret_forecast);
    }
    trpi_free(times);
    trpi_free(indexes);
    return made;
}

bool
trpi_member_forecast(const trpi_member_core *core, trpi_downing_forecast *ret_forecast)
{
    bool made = trpi_core_forecast(core, ret_forecast);
    if (made) {
        trpi_assert_check(trpi_downing_forecast_check, core->downing, &core->options.downing,
                          core->gossip, ret_forecast);
    }
    return made;
}

void
trpi_downing_own_pause(trpi_member_core *core, uint64_t pause_ms)
{
    trpi_assert_slow(pause_ms > 0);
    trpi_core_move(core, &core->split.sure_ms, pause_ms);
}
