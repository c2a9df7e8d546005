/* downing_votes.c - whether a side stays in every combination of the open votes.
 *
 * Why.     While a member has been made Up or Exiting and not all members are known to have seen
 *          it, two sides may count different voters. votes.c says why it is enough that a side
 *          stays only if it does with each open vote counted and not counted.
 * Shape.   A combination is a poll: the open votes that count. Of all 2^n those are examined that
 *          can be the worst for a strategy: all open votes of the others and none of ours; all of
 *          them; and where the oldest member matters, or no member has a certain vote, the same
 *          with each open one that could be the oldest, or the only one. votes_test.c compares this
 *          with all combinations.
 * Must hold.
 *   downing-votes-D3  A tie goes to the side of the lowest member in order that has a vote.
 *   downing-votes-D6  Both sides count the same addresses: all that have been Up and are not
 *       removed yet, those included that are Down. A member that is Down here may be alive and Up
 *       on the other side; a restarted node has the vote of its previous incarnation. A joiner has
 *       no vote, whatever it was told since. An Exiting member has none, nor has its successor,
 *       once all members have seen it Exiting.
 *   downing-votes-D10 An oldest member that leaves may be removed on one side only, and terminates.
 *       So it is on no side. But if it has seen that it is Exiting, which it told and this node
 *       remembers, it cannot keep another side whose view lags behind. Then a poll that counts it
 *       has the oldest on this side; in a poll that does not it is removed, as it may be on the
 *       other side. Its vote counts against this side.
 *   downing-votes-D11 If no member has a vote, all members that have joined count, and each member
 *       whose joining is open both ways.
 * Tests.   tests/unit/cluster/votes_test.c, downing_test.c, downing_strategies_test.c
 */
#include "cluster/engine/downing_sides.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "cluster/engine/downing_split.h"

typedef struct poll {
    bool ours, others; /* their open votes count */
    uint32_t with;     /* the open vote of this member counts; TRPI_GOSSIP_NONE: of none */
    uint32_t oldest;   /* of the others, votes of members older than this (age_of) do not count */
    bool joined;       /* downing-votes-D11 */
} poll;

/* downing-votes-D6, whether or not the vote is certain. */
static bool
may_vote(const trpi_votes_question *q, uint32_t index, bool joined)
{
    trpi_assert_slow(index < q->gossip->members_count);
    const trpi_gossip_member *m = &q->gossip->members[index];
    const char *role = q->options->role;
    return (m->up_number != 0 || joined) &&
           (q->marks == NULL || q->marks[index] != TRPI_MARK_GONE) &&
           (role[0] == '\0' || trpi_ident_has_role(m->ident, role));
}

static trpi_vote
vote_of(const trpi_votes_question *q, uint32_t index, bool joined)
{
    return may_vote(q, index, joined) ? trpi_votes_of(q->votes, index) : TRPI_VOTE_NO;
}

/* Return the rank by age: the Up-number less one, so that a member without one is the last. */
static uint32_t
age_of(const trpi_gossip_member *m)
{
    return m->up_number - 1;
}

static bool
vote_counts(const trpi_votes_question *q, const poll *p, uint32_t index, bool ours)
{
    trpi_vote vote = vote_of(q, index, p->joined);
    if (vote != TRPI_VOTE_OPEN) {
        return vote == TRPI_VOTE_YES;
    }
    return index == p->with ||
           (ours ? p->ours : p->others && age_of(&q->gossip->members[index]) >= p->oldest);
}

static bool
is_alive(const trpi_gossip_member *m)
{
    return m->status <= TRP_MEMBER_LEAVING;
}

/* Return the mark of an address whose incarnations are members[from..to): the best one of those
 * that are alive. */
static uint32_t
address_mark(const trpi_votes_question *q, uint32_t from, uint32_t to)
{
    trpi_assert_slow(from < to && to <= q->gossip->members_count);
    static const uint32_t rank[] = { [TRPI_MARK_CLEAR] = 0,
                                     [TRPI_MARK_BROKEN] = 1,
                                     [TRPI_MARK_UNSURE] = 2,
                                     [TRPI_MARK_AWAY] = 3,
                                     [TRPI_MARK_GONE] = 3 };
    uint32_t best = TRPI_MARK_AWAY;
    for (uint32_t i = from; i < to; i++) {
        uint32_t mark = q->marks[i];
        best = is_alive(&q->gossip->members[i]) && rank[mark] < rank[best] ? mark : best;
    }
    return best;
}

static bool
is_ours(trpi_side_part part, uint32_t mark)
{
    return mark == TRPI_MARK_CLEAR || (mark == TRPI_MARK_BROKEN && part >= TRPI_PART_OURS) ||
           (mark == TRPI_MARK_UNSURE && part >= TRPI_PART_HOPED);
}

/* Return the first member after `from` that has another address. */
static uint32_t
address_end(const trpi_gossip *g, uint32_t from)
{
    trpi_assert_slow(from < g->members_count);
    uint32_t to = from + 1;
    while (to < g->members_count && trpi_address_equal(&g->members[to].ident->id.address,
                                                       &g->members[from].ident->id.address)) {
        to++; /* incarnations of one address stand next to each other */
    }
    trpi_assert_slow(to > from && to <= g->members_count);
    return to;
}

/* Return the oldest member whose vote counts in this poll; of equals the first in order. */
static uint32_t
oldest_of(const trpi_votes_question *q, const poll *p, trpi_side_part part)
{
    trpi_assert_slow(part <= TRPI_PART_HOPED);
    const trpi_gossip *g = q->gossip;
    uint32_t oldest = TRPI_GOSSIP_NONE;
    for (uint32_t i = 0, to; i < g->members_count; i = to) {
        to = address_end(g, i);
        bool ours = is_ours(part, address_mark(q, i, to));
        for (uint32_t k = i; k < to; k++) {
            if (vote_counts(q, p, k, ours) &&
                (oldest == TRPI_GOSSIP_NONE ||
                 age_of(&g->members[k]) < age_of(&g->members[oldest]))) {
                oldest = k;
            }
        }
    }
    return oldest;
}

/* downing-votes-D10: return whether it is still a member, and still Exiting. */
static bool
is_still_exiting(const trpi_gossip *g, uint64_t exiting_oldest)
{
    uint32_t index = trpi_gossip_find(g, exiting_oldest);
    return index != TRPI_GOSSIP_NONE && g->members[index].status == TRP_MEMBER_EXITING;
}

/* Returns how many votes there are. */
static uint32_t
count_poll(const trpi_votes_question *q, const poll *p, trpi_side_part part, trpi_sides *sides)
{
    trpi_assert_slow(q->votes->sure.bits == q->gossip->members_count);
    const trpi_gossip *g = q->gossip;
    uint32_t oldest = oldest_of(q, p, part);
    uint32_t votes = 0;
    trpi_side *places[] = { [TRPI_MARK_CLEAR] = &sides->clear,
                            [TRPI_MARK_AWAY] = &sides->away,
                            [TRPI_MARK_UNSURE] = &sides->unsure,
                            [TRPI_MARK_BROKEN] = &sides->broken };
    *sides = (trpi_sides){ 0 };
    /* A member that is Down or Exiting here may be removed on the other side, where another one is
     * the oldest: not even its successor on this address may give both sides the oldest. */
    if (oldest != TRPI_GOSSIP_NONE && !is_alive(&g->members[oldest])) {
        bool here = g->members[oldest].ident->key == q->exiting_oldest &&
                    is_still_exiting(g, q->exiting_oldest);
        *(here ? &sides->clear.oldest : &sides->away.oldest) = true; /* downing-votes-D10 */
    }
    for (uint32_t i = 0, to; i < g->members_count; i = to) {
        trpi_side found = { 0, false, false, false };
        to = address_end(g, i);
        uint32_t place = address_mark(q, i, to);
        for (uint32_t k = i; k < to; k++) {
            found.votes = vote_counts(q, p, k, is_ours(part, place)) ? 1 : found.votes;
            found.oldest = found.oldest || (k == oldest && is_alive(&g->members[k]));
        }
        found.lowest = found.votes != 0 && votes == 0;
        found.referee = q->options->referee.port != 0 &&
                        trpi_address_equal(&g->members[i].ident->id.address, &q->options->referee);
        *places[place] = trpi_side_sum(*places[place], found);
        votes += found.votes;
    }
    trpi_assert_slow(votes == sides->clear.votes + sides->away.votes + sides->unsure.votes +
                                  sides->broken.votes);
    return votes;
}

static bool
stays_in(const trpi_votes_question *q, const poll *p, trpi_side_part part, const char **ret_why)
{
    trpi_assert_slow(p->with == TRPI_GOSSIP_NONE || p->with < q->gossip->members_count);
    trpi_sides s;
    if (count_poll(q, p, part, &s) == 0 && !p->joined) {
        return true; /* stays_in_all() asks again with the joined: downing-votes-D11 */
    }
    trpi_side mine = s.clear, others = s.away;
    trpi_side *broken = part >= TRPI_PART_OURS ? &mine : &others;
    trpi_side *unsure = part >= TRPI_PART_HOPED ? &mine : &others;
    *broken = trpi_side_sum(*broken, s.broken);
    *unsure = trpi_side_sum(*unsure, s.unsure);
    return q->stays(q->options, mine, others, ret_why);
}

/* Return the age of the oldest member whose vote is certain; UINT32_MAX: there is none that was Up.
 */
static uint32_t
sure_age(const trpi_votes_question *q, bool joined, bool *ret_any)
{
    trpi_assert_slow(q->votes->sure.bits == q->gossip->members_count);
    uint32_t age = UINT32_MAX;
    *ret_any = false;
    for (uint32_t i = 0; i < q->gossip->members_count; i++) {
        if (vote_of(q, i, joined) == TRPI_VOTE_YES) {
            uint32_t its = age_of(&q->gossip->members[i]);
            age = its < age ? its : age;
            *ret_any = true;
        }
    }
    trpi_assert_slow(*ret_any || age == UINT32_MAX);
    return age;
}

static bool
stays_in_all(const trpi_votes_question *q, bool joined, trpi_side_part part, const char **ret_why)
{
    trpi_assert_slow(q->gossip->frozen);
    bool any;
    uint32_t sure = sure_age(q, joined, &any);
    poll of_others = { .others = true, .with = TRPI_GOSSIP_NONE, .joined = joined };
    poll all = of_others, young = of_others;
    all.ours = true;
    young.oldest = sure;
    bool stays = stays_in(q, &of_others, part, ret_why) && stays_in(q, &all, part, ret_why) &&
                 (!q->by_age || stays_in(q, &young, part, ret_why));
    for (uint32_t i = 0; i < q->gossip->members_count && stays; i++) {
        uint32_t age = age_of(&q->gossip->members[i]);
        if (vote_of(q, i, joined) != TRPI_VOTE_OPEN || (any && !(q->by_age && age < sure))) {
            continue;
        }
        poll with = of_others, oldest = of_others, alone = of_others;
        with.with = oldest.with = alone.with = i;
        oldest.oldest = age;
        alone.others = false;
        stays = stays_in(q, &with, part, ret_why) && stays_in(q, &oldest, part, ret_why) &&
                stays_in(q, &alone, part, ret_why);
    }
    if (stays && !any && !joined) {
        return stays_in_all(q, true, part, ret_why); /* downing-votes-D11 */
    }
    return stays;
}

bool
trpi_votes_stay(const trpi_votes_question *q, trpi_side_part part, const char **ret_why)
{
    trpi_assert_slow(q->votes->sure.bits == q->gossip->members_count);
    trpi_assert_slow(part <= TRPI_PART_HOPED);
    return stays_in_all(q, false, part, ret_why);
}

void
trpi_votes_count(const trpi_votes_question *q, trpi_sides *ret_sides)
{
    trpi_assert_slow(q->gossip->frozen);
    poll all = { .ours = true, .others = true, .with = TRPI_GOSSIP_NONE };
    if (count_poll(q, &all, TRPI_PART_OURS, ret_sides) == 0) {
        all.joined = true;
        (void)count_poll(q, &all, TRPI_PART_OURS, ret_sides);
    }
    trpi_assert_slow(ret_sides->clear.votes <= q->gossip->members_count);
}

uint32_t
trpi_votes_oldest(const trpi_votes_question *q, bool living)
{
    trpi_assert_slow(q->votes->sure.bits == q->gossip->members_count);
    const trpi_gossip *g = q->gossip;
    uint32_t oldest = TRPI_GOSSIP_NONE;
    for (uint32_t i = 0; i < g->members_count; i++) {
        if (vote_of(q, i, false) != TRPI_VOTE_NO && (!living || is_alive(&g->members[i])) &&
            (oldest == TRPI_GOSSIP_NONE || age_of(&g->members[i]) < age_of(&g->members[oldest]))) {
            oldest = i;
        }
    }
    trpi_assert_slow(oldest == TRPI_GOSSIP_NONE || oldest < g->members_count);
    return oldest;
}
