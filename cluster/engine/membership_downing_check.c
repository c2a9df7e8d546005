/* membership_downing_check.c - the invariants of one node's lease, and of its forecasts, between
 * steps, as code.
 *
 * Must hold. Besides downing-forecast-F3..F7:
 *   membership-downing-W6  A lease is asked for, held or refused only where the strategy uses one,
 *       since a time that is not in the future.
 *   membership-downing-W7  The last order of a step to the lease agrees with its state: acquire
 *       with asked since now, release with not asked.
 *   membership-downing-W8  A round of the leader leaves no request without an answer for longer
 *       than the operation timeout.
 *   membership-downing-W9  After such a round the time since when a member is unreachable is known
 *       exactly if one is; and if one is, an owner has needed the lease now
 *       (membership-downing-W1).
 * Cost.    A walk over the actions of the step; the forecast costs a few decisions, the next crash
 *          one decision for each member.
 * Tests.   tests/unit/cluster/check_test.c
 */
#include "cluster/engine/membership_core.h"

static const char *
check_orders(const trpi_member_core *core, trpi_check *check)
{
    trpi_lease_state ordered = core->split.lease;
    bool now = true;
    for (uint32_t i = 0; i < core->out.actions_count; i++) {
        if (core->out.actions[i].kind == TRPI_ACTION_LEASE_ACQUIRE) {
            ordered = TRPI_LEASE_ASKED;
            now = core->split.lease_ms == core->now.mono_ms;
        } else if (core->out.actions[i].kind == TRPI_ACTION_LEASE_RELEASE) {
            ordered = TRPI_LEASE_UNASKED;
            now = true;
        }
    }
    if (ordered != core->split.lease || !now) {
        return trpi_check_broken(check, "membership-downing-W7: lease state %u since %llu at %llu",
                                 core->split.lease, (unsigned long long)core->split.lease_ms,
                                 (unsigned long long)core->now.mono_ms);
    }
    return NULL;
}

/* Return whether the leader's round was done in this millisecond, with the present view. */
static bool
did_round(const trpi_member_core *core)
{
    uint32_t self = trpi_core_self_index(core);
    return core->phase == TRPI_PHASE_MEMBER && self != TRPI_GOSSIP_NONE &&
           core->gossip->members[self].status < TRP_MEMBER_EXITING &&
           core->version.since_ms < core->now.mono_ms && core->due.led_ms == core->now.mono_ms;
}

static const char *
check_round(const trpi_member_core *core, trpi_check *check)
{
    const trpi_core_split *split = &core->split;
    uint64_t now_ms = core->now.mono_ms;
    if (split->lease == TRPI_LEASE_ASKED && !core->now.waking &&
        now_ms >= split->lease_ms + core->options.downing.lease_timeout_ms) {
        return trpi_check_broken(check, "membership-downing-W8: asked at %llu, no answer at %llu",
                                 (unsigned long long)split->lease_ms, (unsigned long long)now_ms);
    }
    bool missed = core->gossip->unreachable_count > 0;
    if (missed != (split->apart_ms != 0) ||
        (missed && split->lease == TRPI_LEASE_HELD && split->lease_ms != now_ms)) {
        return trpi_check_broken(check,
                                 "membership-downing-W9: %u members are unreachable, since %llu; "
                                 "the lease was needed at %llu",
                                 core->gossip->unreachable_count,
                                 (unsigned long long)split->apart_ms,
                                 (unsigned long long)split->lease_ms);
    }
    return NULL;
}

const char *
trpi_lease_check(const trpi_member_core *core, trpi_check *check)
{
    if (core->split.lease != TRPI_LEASE_UNASKED &&
        (!trpi_downing_asks_lease(core->downing) || core->split.lease_ms > core->now.mono_ms)) {
        return trpi_check_broken(check, "membership-downing-W6: lease state %u with %s since %llu",
                                 core->split.lease, trpi_downing_name(core->downing),
                                 (unsigned long long)core->split.lease_ms);
    }
    const char *broken = check_orders(core, check);
    return broken == NULL && did_round(core) ? check_round(core, check) : broken;
}

const char *
trpi_forecast_check(const trpi_member_core *core, trpi_check *check)
{
    trpi_downing_forecast forecast;
    const char *broken = NULL;
    if (trpi_core_forecast(core, &forecast)) {
        broken = trpi_downing_forecast_check(core->downing, &core->options.downing, core->gossip,
                                             &forecast, check);
    }
    trpi_downing_next_crash crash;
    if (broken == NULL && trpi_core_next_crash(core, core->self->key, &crash)) {
        broken =
            trpi_downing_next_crash_check(core->gossip, trpi_core_self_index(core), &crash, check);
    }
    return broken;
}
