/* downing_check.c - the invariants of a decision about a split, of its forecast and of the forecast
 * of the next crash, as code.
 *
 * Must hold.
 *   downing-D13 A decision marks members Down only with a verdict that says so, each once, in
 *       order, none that is Down or Exiting, and this node only with its whole side.
 *   downing-D14 Others are marked Down only while a member is unreachable.
 *   downing-D15 This side is no larger than all that was counted.
 *   downing-forecast-F3 A forecast lies within the delays of its strategy; no forecast has no time.
 *   downing-forecast-F4 Of a strategy that counts sides, an operator may mark members Down exactly
 *       where this side goes on; only the strategy lease forecasts a lease, and manual nothing.
 *   downing-forecast-F5 A decision is forecast only while a member is unreachable that could be
 *       marked Down.
 *   downing-forecast-F6 Of a strategy that counts sides, a forecast gives its reason, and names the
 *       members that are marked Down or stop.
 *   downing-forecast-F7 The next crash that would stop the rest is of a reachable member that has
 *       been Up and does not leave; there is such a member exactly if their number is not 0.
 * Cost.    A walk over the members that are marked; of a forecast none.
 * Tests.   tests/unit/cluster/check_test.c
 */
#include "cluster/engine/downing_forecast.h"
#include "cluster/engine/downing_split.h"

static bool
marks_members(const trpi_downing_decision *decision)
{
    return decision->verdict == TRPI_DOWNING_DOWN_MEMBERS ||
           decision->verdict == TRPI_DOWNING_DOWN_SIDE;
}

static const char *
check_marked(const trpi_downing_input *input, const trpi_downing_decision *decision,
             trpi_check *check)
{
    const trpi_gossip *g = input->gossip;
    bool side = decision->verdict == TRPI_DOWNING_DOWN_SIDE;
    for (uint32_t i = 0; i < decision->indexes_count; i++) {
        uint32_t index = decision->indexes[i];
        if (index >= g->members_count || (i > 0 && decision->indexes[i - 1] >= index)) {
            return trpi_check_broken(check, "downing-D13: mark %u of %u is member %u of %u", i,
                                     decision->indexes_count, index, g->members_count);
        }
        const trpi_gossip_member *m = &g->members[index];
        if (m->status >= TRP_MEMBER_EXITING || (m->ident->key == input->self && !side)) {
            return trpi_check_broken(check, "downing-D13: %s of status %u is marked Down",
                                     m->ident->address, m->status);
        }
    }
    return NULL;
}

const char *
trpi_downing_check(const trpi_downing_input *input, const trpi_downing_decision *decision,
                   trpi_check *check)
{
    if (marks_members(decision) != (decision->indexes_count > 0)) {
        return trpi_check_broken(check, "downing-D13: verdict %u with %u members marked",
                                 decision->verdict, decision->indexes_count);
    }
    if (decision->verdict == TRPI_DOWNING_DOWN_MEMBERS && input->gossip->unreachable_count == 0) {
        return trpi_check_broken(check, "downing-D14: %u members are given up, and none is missed",
                                 decision->indexes_count);
    }
    if (decision->reachable > decision->members) {
        return trpi_check_broken(check, "downing-D15: %u of %u members are on this side",
                                 decision->reachable, decision->members);
    }
    return check_marked(input, decision, check);
}

/* ---- forecasts ------------------------------------------------------------------------------- */

/* Return the longest time after which a strategy decides, as downing_forecast.c evaluates it. */
static uint64_t
longest_delay_ms(const trpi_downing_ops *ops, const trpi_downing_options *options)
{
    uint64_t patience_ms = 4 * (uint64_t)options->stable_after_ms;
    uint64_t lease_ms = (uint64_t)options->stable_after_ms + options->lease_minority_delay_ms;
    return ops->stays == NULL        ? options->auto_down_after_ms
           : patience_ms >= lease_ms ? patience_ms
                                     : lease_ms;
}

const char *
trpi_downing_forecast_check(const trpi_downing_ops *ops, const trpi_downing_options *options,
                            const trpi_gossip *gossip, const trpi_downing_forecast *forecast,
                            trpi_check *check)
{
    const trpi_downing_forecast *f = forecast;
    bool counts = ops->stays != NULL, none = f->kind == TRPI_FORECAST_NONE;
    if (f->kind > TRPI_FORECAST_LEASE || f->in_ms > (none ? 0 : longest_delay_ms(ops, options))) {
        return trpi_check_broken(check, "downing-forecast-F3: %s: kind %u in %llu ms",
                                 trpi_downing_name(ops), f->kind, (unsigned long long)f->in_ms);
    }
    if ((counts && f->may_down != (f->kind == TRPI_FORECAST_GOES_ON)) ||
        (!counts && !none && f->kind != TRPI_FORECAST_GOES_ON) ||
        (f->kind == TRPI_FORECAST_LEASE && !trpi_downing_asks_lease(ops))) {
        return trpi_check_broken(check, "downing-forecast-F4: %s: kind %u, an operator %s mark",
                                 trpi_downing_name(ops), f->kind, f->may_down ? "may" : "may not");
    }
    if (!none && gossip->blocking_count == 0) {
        return trpi_check_broken(check, "downing-forecast-F5: %s: kind %u, no member is missed",
                                 trpi_downing_name(ops), f->kind);
    }
    bool names = f->kind == TRPI_FORECAST_GOES_ON || f->kind == TRPI_FORECAST_STOPS;
    if (counts && (none == (f->reason[0] != '\0') || names != (f->who[0] != '\0'))) {
        return trpi_check_broken(check, "downing-forecast-F6: %s: kind %u of '%.40s' for '%.40s'",
                                 trpi_downing_name(ops), f->kind, f->who, f->reason);
    }
    return NULL;
}

const char *
trpi_downing_next_crash_check(const trpi_gossip *gossip, uint32_t leaving,
                              const trpi_downing_next_crash *crash, trpi_check *check)
{
    uint32_t first = crash->first, count = gossip->members_count;
    const trpi_gossip_member *m = first < count ? &gossip->members[first] : NULL;
    bool fits = m == NULL ? first == TRPI_GOSSIP_NONE && crash->fatal == 0
                          : crash->fatal > 0 && first != leaving && m->up_number != 0 &&
                                m->unreachable == 0 && m->status != TRP_MEMBER_EXITING;
    if (!fits || crash->fatal > count || crash->votes > count) {
        return trpi_check_broken(check,
                                 "downing-forecast-F7: %u fatal crashes, the first of member %u of "
                                 "%u, which has status %u, with %u votes",
                                 crash->fatal, first, count, m == NULL ? 0 : m->status,
                                 crash->votes);
    }
    return NULL;
}
