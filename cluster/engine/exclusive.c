/* exclusive.c - see the header.
 *
 * Why.     After a partition the losing side is removed by the others stable-after after they have
 *          missed it, and what it hosts is started elsewhere at once. It misses them at about the
 *          same time, within what the detectors differ: heartbeat-interval and
 *          acceptable-heartbeat-pause. Half of stable-after is time enough for both.
 * States.  free --doubt for half of stable-after, or a stall--> suspended
 *          suspended --the doubt is over--> roll call --convergence on it--> free
 * Must hold.
 *   exclusive-X1  The time of doubt is real time: a pause of this node counts.
 *   exclusive-X2  A doubt that was over for less than a tenth of stable-after goes on: the others
 *       do not begin anew for so short a change either (downing-D12).
 *   exclusive-X3  It resumes when all members have seen a version that this node made after the
 *       doubt was over, while no member is unreachable and none reports this node. Members that had
 *       removed this node never see it.
 *   exclusive-X4  A stall since the last call suspends, whatever the view says: it is old.
 *   exclusive-X5  Without a strategy that resolves, nothing in the view has this node stop; its
 *       removal is waited for elsewhere (down-removal-margin).
 * Tests.   tests/unit/cluster/exclusive_test.c, tests/sim/exclusive_test.c
 */
#include "cluster/engine/exclusive.h"

#include <stdio.h>

#include "base/assert.h"

#define LOOK_MS 100u

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

static uint64_t
own_counter(const trpi_member_core *core)
{
    const trpi_gossip *g = trpi_member_view(core);
    return trpi_vclock_get(g->clock, g->clock_count, trpi_member_self(core)->key);
}

/* Return why this node may be given up by others, as far as its view says. */
static trpi_exclusive_cause
doubt_find(const trpi_member_core *core)
{
    const trpi_gossip *g = trpi_member_view(core);
    uint64_t key = trpi_member_self(core)->key;
    uint32_t self = trpi_gossip_find(g, key);
    trpi_downing_forecast forecast;
    if (self == TRPI_GOSSIP_NONE || g->members[self].status == TRP_MEMBER_DOWN ||
        trpi_member_is_done(core)) {
        return TRPI_EXCLUSIVE_ENDED;
    }
    if (!trpi_member_resolves(core) || g->unreachable_count == 0 ||
        (trpi_member_broken(core) & TRPI_BROKEN_NO_SUSPENSION) != 0) {
        return TRPI_EXCLUSIVE_NONE; /* exclusive-X5 */
    }
    if (g->members[self].unreachable != 0) {
        return TRPI_EXCLUSIVE_ACCUSED;
    }
    if (!trpi_member_forecast(core, &forecast)) {
        return g->members[self].status >= TRP_MEMBER_EXITING ? TRPI_EXCLUSIVE_LOSES
                                                             : TRPI_EXCLUSIVE_NONE;
    }
    switch (forecast.kind) {
    case TRPI_FORECAST_STOPS:
        return TRPI_EXCLUSIVE_LOSES;
    case TRPI_FORECAST_LEASE:
        return trpi_member_holds_lease(core) ? TRPI_EXCLUSIVE_NONE : TRPI_EXCLUSIVE_LEASE;
    case TRPI_FORECAST_NONE:
    case TRPI_FORECAST_GOES_ON:
        break;
    }
    return TRPI_EXCLUSIVE_NONE;
}

/* The same, at most once in LOOK_MS for one view: it asks the strategy for each side. */
static trpi_exclusive_cause
doubt_look(trpi_exclusive *x, const trpi_member_core *core, uint64_t now_ms)
{
    const trpi_gossip *g = trpi_member_view(core);
    if (g->unreachable_count == 0 || x->looked != g->digest || now_ms - x->looked_ms >= LOOK_MS) {
        x->looked = g->digest;
        x->looked_ms = now_ms;
        x->found = doubt_find(core);
    }
    return x->found;
}

/* exclusive-X2 */
static void
doubt_track(trpi_exclusive *x, const trpi_member_core *core, uint64_t now_ms)
{
    trpi_exclusive_cause doubt = doubt_look(x, core, now_ms);
    if (doubt != TRPI_EXCLUSIVE_NONE) {
        x->doubt_ms = x->doubt_ms != 0 ? x->doubt_ms : now_ms;
        x->calm_ms = 0;
        x->doubt = doubt;
        return;
    }
    x->calm_ms = x->calm_ms != 0 ? x->calm_ms : now_ms;
    if (now_ms - x->calm_ms >= trpi_member_stable_after_ms(core) / 10) {
        x->doubt = TRPI_EXCLUSIVE_NONE;
        x->doubt_ms = 0;
    }
}

static trpi_exclusive_order
exclusive_suspend(trpi_exclusive *x, trpi_exclusive_cause cause, uint64_t now_ms)
{
    x->wanted = 0;
    if (x->suspended) {
        x->cause = cause == TRPI_EXCLUSIVE_ENDED ? cause : x->cause;
        return TRPI_EXCLUSIVE_AS_IT_IS;
    }
    x->suspended = true;
    x->cause = cause;
    x->since_ms = now_ms;
    return TRPI_EXCLUSIVE_SUSPEND;
}

/* It is suspended: may it go on? */
static trpi_exclusive_order
exclusive_resume(trpi_exclusive *x, const trpi_member_core *core, bool waking)
{
    trpi_assert_slow(x->suspended);
    const trpi_gossip *g = trpi_member_view(core);
    if (waking || x->calm_ms == 0 || g->unreachable_count != 0 ||
        is_accused(g, trpi_member_self(core)->key)) {
        x->wanted = 0;
        return TRPI_EXCLUSIVE_AS_IT_IS;
    }
    uint64_t counter = own_counter(core);
    if (x->wanted == 0 || counter < x->wanted) { /* the second: there was no memory */
        x->wanted = counter + 1;
        return TRPI_EXCLUSIVE_ROLL_CALL;
    }
    if (!trpi_member_is_converged(core)) {
        return TRPI_EXCLUSIVE_AS_IT_IS;
    }
    x->suspended = false; /* exclusive-X3 */
    x->cause = x->doubt = TRPI_EXCLUSIVE_NONE;
    x->doubt_ms = x->wanted = 0;
    return TRPI_EXCLUSIVE_RESUME;
}

trpi_exclusive_order
trpi_exclusive_step(trpi_exclusive *x, const trpi_member_core *core, trpi_exclusive_now now)
{
    trpi_member_phase phase = trpi_member_phase_get(core);
    bool stood = (now.closings != x->closings || now.waking) &&
                 (trpi_member_broken(core) & TRPI_BROKEN_NO_STALLS) == 0;
    if (phase == TRPI_PHASE_STOPPED) {
        return exclusive_suspend(x, TRPI_EXCLUSIVE_ENDED, now.mono_ms);
    }
    if (phase != TRPI_PHASE_MEMBER) {
        return TRPI_EXCLUSIVE_AS_IT_IS; /* nothing is hosted before it has joined */
    }
    doubt_track(x, core, now.mono_ms);
    if (x->doubt == TRPI_EXCLUSIVE_ENDED) {
        return exclusive_suspend(x, TRPI_EXCLUSIVE_ENDED, now.mono_ms);
    }
    if (stood) { /* exclusive-X4 */
        x->closings = now.closings;
        return exclusive_suspend(x, TRPI_EXCLUSIVE_STOOD, now.mono_ms);
    }
    if (x->suspended) {
        return exclusive_resume(x, core, now.waking);
    }
    if (x->doubt_ms != 0 &&
        now.mono_ms - x->doubt_ms >= trpi_member_stable_after_ms(core) / 2) { /* exclusive-X1 */
        return exclusive_suspend(x, x->doubt, now.mono_ms);
    }
    return TRPI_EXCLUSIVE_AS_IT_IS;
}

uint64_t
trpi_exclusive_wake_ms(const trpi_exclusive *x, const trpi_member_core *core)
{
    return x->suspended || x->doubt_ms == 0 ? UINT64_MAX
                                            : x->doubt_ms + trpi_member_stable_after_ms(core) / 2;
}

const char *
trpi_exclusive_cause_text(trpi_exclusive_cause cause)
{
    switch (cause) {
    case TRPI_EXCLUSIVE_NONE:
        break;
    case TRPI_EXCLUSIVE_LOSES:
        return "members are unreachable, and the downing strategy would have this node stop";
    case TRPI_EXCLUSIVE_LEASE:
        return "members are unreachable, and this node does not hold the lease";
    case TRPI_EXCLUSIVE_ACCUSED:
        return "members report this node as unreachable";
    case TRPI_EXCLUSIVE_STOOD:
        return "this node stood still for longer than acceptable-heartbeat-pause";
    case TRPI_EXCLUSIVE_ENDED:
        return "this node is no member any more";
    }
    return "";
}

const char *
trpi_exclusive_awaits_text(const trpi_exclusive *x, const trpi_member_core *core)
{
    const trpi_gossip *g = trpi_member_view(core);
    if (!x->suspended) {
        return "";
    }
    if (x->cause == TRPI_EXCLUSIVE_ENDED || g == NULL) {
        return "this node is started again";
    }
    if (g->unreachable_count != 0 || is_accused(g, trpi_member_self(core)->key)) {
        return "all members are reachable again, or the unreachable ones are removed";
    }
    return "all members have seen the version that this node has made since";
}

trp_err
trpi_exclusive_check(uint32_t stable_after_ms, uint32_t acceptable_pause_ms,
                     uint32_t heartbeat_interval_ms, char *why, size_t why_bytes)
{
    uint64_t least_ms = 2 * ((uint64_t)acceptable_pause_ms + heartbeat_interval_ms);
    if (stable_after_ms >= least_ms) {
        return TRP_OK;
    }
    (void)snprintf(why, why_bytes,
                   "cluster.downing.stable-after is %u ms, and must be at least %llu ms, twice the "
                   "sum of acceptable-heartbeat-pause (%u ms) and heartbeat-interval (%u ms): else "
                   "two nodes may run it at once",
                   stable_after_ms, (unsigned long long)least_ms, acceptable_pause_ms,
                   heartbeat_interval_ms);
    return TRP_ESTATE;
}
