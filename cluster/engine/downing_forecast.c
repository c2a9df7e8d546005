/* downing_forecast.c - see the header.
 *
 * Why.     Advice that counted votes itself would disagree with the strategy one day. So nothing is
 *          counted here: the strategy is a pure function, and is evaluated at the times at which
 *          its delays end, as if the view were still the same.
 * Must hold.
 *   downing-forecast-F1  One node of a side acts; its decision shows whether this side goes on. All
 *       members of a side have seen the same version, so they see the same sides.
 *   downing-forecast-F2  Members that are suspected but have seen the version are asked by a roll
 *       call before anything is decided; the forecast counts them as silent.
 *   and downing-forecast-F3..F6, which trpi_downing_forecast_check() states (downing_check.c).
 * Limits.  The decisions of ACTORS_MAX members are evaluated; the first in order acts.
 * Tests.   tests/unit/cluster/forecast_test.c, check_test.c
 */
#include "cluster/engine/downing_forecast.h"

#include <stdio.h>
#include <string.h>

#include "cluster/engine/downing_sides.h"

#include "base/assert.h"

#define ACTORS_MAX 8u

struct forecast_query {
    const trpi_downing_ops *ops;
    const trpi_downing_options *options;
    const trpi_downing_input *input;
    uint32_t *indexes;
    uint64_t *unreachable_ms; /* at the later time; room for all members */
    trpi_seen silent;         /* downing-forecast-F2 */
};

static trpi_downing_decision
decision_at(const struct forecast_query *a, uint64_t self, uint64_t later_ms, bool silent)
{
    trpi_assert_slow(a->silent.bits == a->input->gossip->members_count);
    trpi_downing_input input = *a->input;
    trpi_downing_decision decision = { .verdict = TRPI_DOWNING_WAIT, .indexes = a->indexes };
    uint32_t count = input.gossip->members_count;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t ms = a->input->unreachable_ms[i];
        a->unreachable_ms[i] = ms == 0 ? 0 : ms + later_ms;
    }
    memset(a->indexes, 0, count * sizeof *a->indexes);
    input.unreachable_ms = a->unreachable_ms;
    input.self = self;
    input.seen = silent ? &a->silent : input.seen;
    input.stable_ms += later_ms;
    input.unstable_ms = input.unsure_ms = 0; /* nothing changes */
    input.apart_ms += later_ms;
    input.version_ms += later_ms;
    input.made_ms += later_ms;
    input.suspicion_ms =
        input.suspicion_ms == UINT64_MAX ? UINT64_MAX : input.suspicion_ms + later_ms;
    trpi_downing_decide(a->ops, a->options, &input, &decision);
    return decision;
}

static trpi_downing_decision
decision_of(const struct forecast_query *a, uint64_t self, uint64_t later_ms)
{
    trpi_assert_slow(trpi_gossip_find(a->input->gossip, self) != TRPI_GOSSIP_NONE);
    trpi_downing_decision decision = decision_at(a, self, later_ms, false);
    return decision.verdict == TRPI_DOWNING_ROLL_CALL ? decision_at(a, self, later_ms, true)
                                                      : decision; /* downing-forecast-F2 */
}

/* Write the members that a decision marks as "a:1, b:2 and 3 more". */
static void
marked_text(const trpi_gossip *g, const trpi_downing_decision *decision, char *buffer, size_t bytes)
{
    trpi_assert_slow(bytes > 0);
    trpi_assert_slow(decision->indexes_count <= g->members_count);
    size_t used = 0;
    buffer[0] = '\0';
    for (uint32_t i = 0; i < decision->indexes_count; i++) {
        const trpi_address *a = &g->members[decision->indexes[i]].ident->id.address;
        if (used + strlen(a->host) + sizeof(", :65535 and 4294967295 more") >= bytes) {
            (void)snprintf(buffer + used, bytes - used, " and %u more",
                           decision->indexes_count - i);
            return;
        }
        int more =
            snprintf(buffer + used, bytes - used, "%s%s:%u", i > 0 ? ", " : "", a->host, a->port);
        used += more > 0 ? (size_t)more : 0;
    }
    trpi_assert_slow(strlen(buffer) < bytes);
}

/* Fill the forecast from a decision; false: the decision ends nothing yet. */
static bool
forecast_from_decision(const struct forecast_query *a, const trpi_downing_decision *decision,
                       bool is_self, uint64_t later_ms, trpi_downing_forecast *ret)
{
    trpi_assert_slow(decision->indexes_count <= a->input->gossip->members_count);
    const trpi_gossip *g = a->input->gossip;
    switch (decision->verdict) {
    case TRPI_DOWNING_DOWN_MEMBERS:
        ret->kind = TRPI_FORECAST_GOES_ON;
        marked_text(g, decision, ret->who, sizeof ret->who);
        break;
    case TRPI_DOWNING_DOWN_SELF:
        if (!is_self) {
            return false; /* that member stops, and another one acts */
        }
        ret->kind = TRPI_FORECAST_STOPS;
        (void)trpi_sides_text(g, decision->indexes, true, ret->who, sizeof ret->who);
        break;
    case TRPI_DOWNING_DOWN_SIDE:
        ret->kind = TRPI_FORECAST_STOPS;
        marked_text(g, decision, ret->who, sizeof ret->who);
        break;
    case TRPI_DOWNING_ACQUIRE:
        ret->kind = TRPI_FORECAST_LEASE;
        break;
    case TRPI_DOWNING_WAIT:
    case TRPI_DOWNING_ROLL_CALL:
        return false;
    }
    ret->in_ms = later_ms;
    memcpy(ret->reason, decision->reason, sizeof ret->reason);
    trpi_assert_slow(ret->kind != TRPI_FORECAST_NONE);
    return true;
}

/* downing-forecast-F1. Return whether a member of this side decides something at that time. */
static bool
side_decides(const struct forecast_query *a, uint64_t later_ms, trpi_downing_forecast *ret)
{
    trpi_assert_slow(a->input->seen->bits == a->input->gossip->members_count);
    const trpi_gossip *g = a->input->gossip;
    trpi_downing_decision decision = decision_of(a, a->input->self, later_ms);
    if (forecast_from_decision(a, &decision, true, later_ms, ret)) {
        return true;
    }
    uint32_t asked = 0;
    for (uint32_t i = 0; i < g->members_count && asked < ACTORS_MAX; i++) {
        const trpi_gossip_member *m = &g->members[i];
        if (m->status >= TRP_MEMBER_EXITING || m->ident->key == a->input->self ||
            m->unreachable != 0 || !trpi_seen_get(a->input->seen, i)) {
            continue;
        }
        asked++;
        decision = decision_of(a, m->ident->key, later_ms);
        if (forecast_from_decision(a, &decision, false, later_ms, ret)) {
            return true;
        }
    }
    return false;
}

static uint64_t
remaining_ms(uint64_t when_ms, uint64_t passed_ms)
{
    return when_ms > passed_ms ? when_ms - passed_ms : 0;
}

/* Evaluate a split strategy at the times at which its delays end (downing_split.c), in order. */
static bool
forecast_split(const struct forecast_query *a, trpi_downing_forecast *ret)
{
    uint64_t stable_ms = a->options->stable_after_ms;
    const uint64_t moments[] = { stable_ms, stable_ms + a->options->lease_minority_delay_ms,
                                 stable_ms + stable_ms / 2, 3 * stable_ms, 4 * stable_ms };
    for (size_t i = 0; i < sizeof moments / sizeof moments[0]; i++) {
        if (side_decides(a, remaining_ms(moments[i], a->input->stable_ms), ret)) {
            return true;
        }
    }
    return false;
}

/* For a strategy that does not count sides: count them as keep-majority does. */
static void
counted_as_majority(struct forecast_query *a, trpi_downing_forecast *ret)
{
    trpi_assert_slow(a->silent.bits == a->input->gossip->members_count);
    trpi_downing_forecast counted = { .kind = TRPI_FORECAST_NONE };
    a->ops = trpi_downing_find("keep-majority");
    (void)forecast_split(a, &counted);
    ret->may_down = counted.kind == TRPI_FORECAST_GOES_ON;
    memcpy(ret->reason, counted.reason, sizeof ret->reason);
    memcpy(ret->who, counted.who, sizeof ret->who);
    trpi_assert_slow(!ret->may_down || counted.kind == TRPI_FORECAST_GOES_ON);
}

bool
trpi_downing_resolves(const trpi_downing_ops *ops)
{
    const char *name = trpi_downing_name(ops);
    return strcmp(name, "manual") != 0 && strcmp(name, "auto-down-after") != 0;
}

static void
forecast_fill(struct forecast_query *a, trpi_downing_forecast *ret)
{
    trpi_assert_slow(a->input->gossip->frozen);
    const char *name = trpi_downing_name(a->ops);
    const trpi_gossip *g = a->input->gossip;
    if (trpi_downing_resolves(a->ops)) {
        ret->may_down = forecast_split(a, ret) && ret->kind == TRPI_FORECAST_GOES_ON;
        return;
    }
    uint64_t first_ms = UINT64_MAX;
    for (uint32_t i = 0; i < g->members_count; i++) {
        uint64_t in_ms = remaining_ms(a->options->auto_down_after_ms, a->input->unreachable_ms[i]);
        if (trpi_downing_suspect(&g->members[i]) && in_ms < first_ms) {
            first_ms = in_ms;
        }
    }
    bool is_auto = strcmp(name, "auto-down-after") == 0;
    counted_as_majority(a, ret);
    ret->kind = is_auto ? TRPI_FORECAST_GOES_ON : TRPI_FORECAST_NONE;
    ret->in_ms = is_auto && first_ms != UINT64_MAX ? first_ms : 0;
}

void
trpi_downing_forecast_make(const trpi_downing_ops *ops, const trpi_downing_options *options,
                           const trpi_downing_input *input, uint32_t *indexes, uint64_t *later_ms,
                           trpi_downing_forecast *ret_forecast)
{
    trpi_assert_slow(input->gossip->frozen);
    trpi_assert_slow(input->seen->bits == input->gossip->members_count);
    trpi_assert_slow(input->votes->sure.bits == input->gossip->members_count);
    const trpi_gossip *g = input->gossip;
    struct forecast_query a = { ops, options, input, indexes, later_ms, { 0 } };
    memset(ret_forecast, 0, sizeof *ret_forecast);
    if (trpi_seen_init(&a.silent, g->members_count) != TRP_OK) {
        return; /* no memory: no forecast */
    }
    for (uint32_t i = 0; i < g->members_count; i++) {
        if (trpi_seen_get(input->seen, i) && !trpi_downing_suspect(&g->members[i])) {
            trpi_seen_set(&a.silent, i);
        }
    }
    forecast_fill(&a, ret_forecast);
    trpi_seen_fini(&a.silent);
    trpi_assert_slow(ret_forecast->kind <= TRPI_FORECAST_LEASE);
    trpi_assert_slow(strlen(ret_forecast->who) < sizeof ret_forecast->who);
}
