/* downing.c - the downing strategies: which side of a split stays. downing_split.c says when they
 * are asked, and which node acts.
 *
 * Why.     A failure detector cannot tell a crashed node from a network partition. The sides of a
 *          partition cannot communicate and must not both go on. Both count the votes of the same
 *          last common membership, and each strategy is a predicate on the two counts that is true
 *          on at most one side.
 * Must hold. (downing-D5; downing-votes-D3, -D6, -D10 and -D11 in downing_votes.c; the others in
 *            downing_split.c)
 *   downing-D1  No node decides while members or reachability change (stable_ms counts from the
 *       last change), except under downing-D12. A node that has not been sure of its side for too
 *       long (unsure_ms), with a member unreachable all that time, stops.
 *   downing-D2  A node's side is the set of members that have seen the present version: they are
 *       connected to it by gossip, whatever the failure detectors say. All other members count
 *       against the side. So two sides that cannot exchange gossip never both stay, even if
 *       reachability rows are stale. downing-D9 keeps the seen set from being stale.
 *   downing-D4  One node of a side acts, its leader, and only if no observer suspects it.
 *   downing-D5  Rows of an unreachable observer do not count: a node that hears no other accuses
 *       all, and a crashed node withdraws nothing. This holds for all strategies and all readers.
 *   downing-D7  The members that stay must be entitled to without the indirectly connected ones
 *       that are marked Down. If that does not change within three times stable-after, all stop.
 *   downing-D8  With a lease at most one side stays: the lease has one owner at a time, which keeps
 *       it until the other side has asked or may no longer ask. The other side finds the owner's
 *       side unreachable within stable-after (longer than failure detection and its gossip), asks
 *       within lease_ask_ms from then, however often it becomes stable and unstable, and is
 *       answered within operation-timeout. The owner holds the lease for the sum of the three after
 *       the removal. The lock ends with its owner, so the owner is never marked Down by its side.
 *   downing-D9  A suspected member that has seen the version counts as alive only if it has seen a
 *       recent one: when it falls silent nothing else shows it, since its observers have reported
 *       it unreachable already. So the acting node, both ends of a broken link, and the first
 *       member that no observer suspects make a new version half-way to stable-after, and again as
 *       long as needed, and decide when there was time for an answer. A version that follows their
 *       own was seen after it. The versions that a node has seen form a chain, so of two sides that
 *       mark each other Down at most one gets the agreement that a removal needs.
 *   downing-D12 While reachability flaps (it has changed more than twice without becoming stable,
 *       and a member was unreachable all that time) a side is sure when its stable members, which
 *       have been reachable for stable-after and have seen the version, would stay with all others
 *       counted against them. Two disjoint sides are never both sure (downing-D2,
 *       downing-votes-D6). The acting member of a sure side marks Down the members that have been
 *       unreachable for stable-after, and, after stable-after plus down-all-when-unstable, every
 *       member that is unreachable then. The seen set may be stale after a partition that is not
 *       detected yet. So a minority may mark others Down, but it cannot remove them: a removal
 *       needs the agreement of all members that are not marked, some of which are on the other
 *       side, and after the partition the minority is not sure again. The lease strategy is
 *       excepted: a minority may stay there, and only the owner knows whether it may.
 *   downing-D16 A member is given up for the time that it has been unreachable only if an observer
 *       that still reports it towards the end of that time is alive: it has seen a version that the
 *       acting node made then, so that there was time for an answer. (A crashed observer withdraws
 *       nothing, and until it is found unreachable itself, downing-D5 does not cover it.)
 *   downing-D17 A member that has not seen the version, and that a member of this side reports,
 *       counts as unreachable after three times stable-after, whether or not the report counts
 *       (downing-D5). Else one that all others reported before they crashed would wait for ever
 *       where it may go on. It is safe, since such members count for the other side anyway.
 * Tests.   tests/unit/cluster/downing_test.c, downing_strategies_test.c, downing_lease_test.c,
 *          tests/sim/churn_test.c
 * Sources. DOWN-01 .. -05; Akka's split brain resolver; sim-S12.
 */
#include "cluster/engine/downing.h"

#include <stdio.h>
#include <string.h>

#include "cluster/engine/downing_split.h"

#include "base/assert.h"

bool
trpi_downing_suspect(const trpi_gossip_member *m)
{
    trpi_assert_slow(m->status >= TRP_MEMBER_JOINING && m->status <= TRP_MEMBER_DOWN);
    return m->unreachable != 0 && m->status < TRP_MEMBER_EXITING;
}

static void
decide_manual(const trpi_downing_ops *ops, const trpi_downing_options *options,
              const trpi_downing_input *input, trpi_downing_decision *decision)
{
    trpi_assert_slow(decision->verdict == TRPI_DOWNING_WAIT);
    trpi_assert_slow(decision->indexes_count == 0);
    (void)ops;
    (void)options;
    (void)input;
    (void)decision; /* the operator decides */
}

static void
decide_auto(const trpi_downing_ops *ops, const trpi_downing_options *options,
            const trpi_downing_input *input, trpi_downing_decision *decision)
{
    trpi_assert_slow(input->gossip->frozen);
    trpi_assert_slow(decision->indexes_count == 0);
    (void)ops;
    const trpi_gossip *g = input->gossip;
    uint32_t leader = trpi_gossip_leader(g, input->self, NULL);
    if (leader == TRPI_GOSSIP_NONE || g->members[leader].ident->key != input->self) {
        return;
    }
    uint32_t after_ms = options->auto_down_after_ms;
    uint64_t ask_ms = after_ms - trpi_split_answer_ms(after_ms);
    bool call = false;
    for (uint32_t i = 0; i < g->members_count; i++) {
        decision->members++;
        if (!trpi_downing_suspect(&g->members[i]) || g->members[i].ident->key == input->self) {
            decision->reachable++;
            continue;
        }
        decision->unreachable++;
        uint64_t missed_ms = input->unreachable_ms[i];
        trpi_accusation worth = missed_ms < ask_ms
                                    ? TRPI_ACCUSATION_VOID /* downing-D16 */
                                    : trpi_sides_accusation(input, NULL, i, missed_ms - ask_ms);
        call = call || worth == TRPI_ACCUSATION_OLD;
        if (worth == TRPI_ACCUSATION_STANDS && missed_ms >= after_ms) {
            decision->indexes[decision->indexes_count++] = i;
        }
    }
    decision->verdict = call ? TRPI_DOWNING_ROLL_CALL : TRPI_DOWNING_WAIT;
    if (decision->indexes_count > 0) {
        decision->verdict = TRPI_DOWNING_DOWN_MEMBERS;
        snprintf(decision->reason, sizeof decision->reason,
                 "%u of %u members unreachable for auto-down-after (%u ms)",
                 decision->indexes_count, decision->members, options->auto_down_after_ms);
    }
    trpi_assert_slow(decision->indexes_count <= decision->unreachable);
    trpi_assert_slow(decision->reachable + decision->unreachable == decision->members);
}

/* ---- which side stays ------------------------------------------------------------------------ */

static bool
stays_majority(const trpi_downing_options *options, trpi_side mine, trpi_side others,
               const char **ret_why)
{
    trpi_assert_slow(!(mine.lowest && others.lowest));
    (void)options;
    if (mine.votes == others.votes) { /* downing-votes-D3 */
        *ret_why = mine.lowest ? "tie, lowest address on this side"
                               : "tie, lowest address on the other side";
        return mine.lowest;
    }
    bool stays = mine.votes > others.votes;
    *ret_why = stays ? "majority" : "minority";
    return stays;
}

static bool
stays_quorum(const trpi_downing_options *options, trpi_side mine, trpi_side others,
             const char **ret_why)
{
    trpi_assert_slow(options->quorum_size > 0);
    if (mine.votes + others.votes > 2 * (uint64_t)options->quorum_size - 1) {
        *ret_why = "more members than two quorums less one, so that both sides could have one; "
                   "raise static-quorum.quorum-size";
        return false;
    }
    bool stays = mine.votes >= options->quorum_size;
    *ret_why = stays ? "quorum" : "no quorum";
    return stays;
}

/* A lone oldest is marked Down, unless the other side is one node, too: then the older stays. */
static bool
stays_oldest(const trpi_downing_options *options, trpi_side mine, trpi_side others,
             const char **ret_why)
{
    trpi_assert_slow(!(mine.oldest && others.oldest));
    trpi_side with = mine.oldest ? mine : others;
    trpi_side without = mine.oldest ? others : mine;
    if (!options->keep_lone_oldest && with.votes == 1 && without.votes > 1) {
        *ret_why = mine.oldest ? "the oldest, but alone" : "the oldest is alone";
        return !mine.oldest;
    }
    *ret_why = mine.oldest ? "oldest on this side" : "oldest on the other side";
    return mine.oldest;
}

static bool
stays_referee(const trpi_downing_options *options, trpi_side mine, trpi_side others,
              const char **ret_why)
{
    trpi_assert_slow(!(mine.referee && others.referee));
    bool enough = mine.votes >= options->least_nodes;
    *ret_why = !mine.referee && !others.referee ? "the referee is no member"
               : !mine.referee                  ? "referee on the other side"
               : !enough                        ? "fewer than down-all-if-less-than-nodes"
                                                : "referee on this side";
    return mine.referee && enough;
}

static bool
stays_none(const trpi_downing_options *options, trpi_side mine, trpi_side others,
           const char **ret_why)
{
    (void)options;
    (void)mine;
    (void)others;
    *ret_why = "all stop when members stay unreachable";
    return false;
}

/* ---- by name --------------------------------------------------------------------------------- */

const trpi_downing_ops *
trpi_downing_find(const char *name)
{
    static const trpi_downing_ops strategies[] = {
        { "manual", decide_manual, NULL, TRPI_SPARE_NOBODY },
        { "auto-down-after", decide_auto, NULL, TRPI_SPARE_NOBODY },
        { "keep-majority", trpi_split_decide, stays_majority, TRPI_SPARE_NOBODY },
        { "static-quorum", trpi_split_decide, stays_quorum, TRPI_SPARE_NOBODY },
        { "keep-oldest", trpi_split_decide, stays_oldest, TRPI_SPARE_OLDEST },
        { "keep-referee", trpi_split_decide, stays_referee, TRPI_SPARE_REFEREE },
        { "down-all", trpi_split_decide, stays_none, TRPI_SPARE_NOBODY },
        { "lease", trpi_split_decide_lease, stays_majority, TRPI_SPARE_NOBODY },
    };
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        if (strcmp(strategies[i].name, name) == 0) {
            return &strategies[i];
        }
    }
    return NULL;
}

bool
trpi_downing_asks_lease(const trpi_downing_ops *ops)
{
    return ops->decide == trpi_split_decide_lease;
}

bool
trpi_downing_may_go_on(const trpi_downing_ops *ops, const trpi_downing_options *options,
                       const trpi_downing_input *input, const uint32_t *marks,
                       trpi_downing_count *ret_count)
{
    trpi_assert_slow(input->gossip->frozen);
    trpi_assert_slow(input->votes->sure.bits == input->gossip->members_count);
    bool answers = ops->stays != NULL && ops->stays != stays_none;
    trpi_votes_question q = { .options = options,
                              .gossip = input->gossip,
                              .votes = input->votes,
                              .marks = marks,
                              .exiting_oldest = input->exiting_oldest,
                              .stays = answers ? ops->stays : stays_majority,
                              .by_age = ops->spare == TRPI_SPARE_OLDEST };
    trpi_sides s;
    trpi_votes_count(&q, &s);
    uint32_t side = s.clear.votes;
    *ret_count = (trpi_downing_count){ .side = side,
                                       .all = side + s.broken.votes + s.unsure.votes + s.away.votes,
                                       .open = trpi_votes_open(input->votes, input->gossip),
                                       .why = "" };
    trpi_assert_slow(ret_count->side <= ret_count->all);
    trpi_assert_slow(ret_count->open <= input->gossip->members_count);
    return trpi_votes_stay(&q, TRPI_PART_CLEAR, &ret_count->why);
}

trpi_downing_next_crash
trpi_downing_next_crash_find(const trpi_downing_ops *ops, const trpi_downing_options *options,
                             const trpi_downing_input *input, uint32_t leaving, uint32_t *marks)
{
    trpi_assert_slow(input->gossip->frozen);
    trpi_assert_slow(leaving < input->gossip->members_count);
    const trpi_gossip *g = input->gossip;
    trpi_downing_next_crash crash = { .first = TRPI_GOSSIP_NONE };
    trpi_downing_count count;
    bool decides = ops->stays != NULL && !trpi_downing_asks_lease(ops);
    for (uint32_t i = 0; i < g->members_count; i++) {
        bool leaves = i == leaving || g->members[i].status == TRP_MEMBER_EXITING;
        marks[i] = leaves                           ? TRPI_MARK_GONE
                   : g->members[i].unreachable != 0 ? TRPI_MARK_AWAY
                                                    : TRPI_MARK_CLEAR;
    }
    (void)trpi_downing_may_go_on(ops, options, input, marks, &count);
    crash.votes = count.all;
    trpi_votes_question q = {
        .options = options, .gossip = g, .votes = input->votes, .marks = marks
    };
    uint32_t oldest = trpi_votes_oldest(&q, true);
    for (uint32_t i = 0; i < g->members_count; i++) {
        bool is_referee = options->referee.port != 0 &&
                          trpi_address_equal(&g->members[i].ident->id.address, &options->referee);
        if (marks[i] != TRPI_MARK_CLEAR || g->members[i].up_number == 0 ||
            (i >= TRPI_DOWNING_FORESEEN && i != oldest && !is_referee)) {
            continue;
        }
        marks[i] = TRPI_MARK_AWAY;
        bool goes_on =
            trpi_downing_may_go_on(ops, options, input, marks, &count) && ops->stays != stays_none;
        marks[i] = TRPI_MARK_CLEAR;
        if (!(goes_on || (!decides && count.side > 0))) {
            crash.first = crash.fatal == 0 ? i : crash.first;
            crash.fatal++;
        }
    }
    trpi_assert_slow(crash.fatal <= g->members_count);
    trpi_assert_slow((crash.fatal == 0) == (crash.first == TRPI_GOSSIP_NONE));
    return crash;
}

const char *
trpi_downing_name(const trpi_downing_ops *ops)
{
    return ops->name;
}

void
trpi_downing_decide(const trpi_downing_ops *ops, const trpi_downing_options *options,
                    const trpi_downing_input *input, trpi_downing_decision *decision)
{
    trpi_assert_slow(decision->verdict == TRPI_DOWNING_WAIT && decision->indexes_count == 0);
    trpi_assert_slow(input->seen->bits == input->gossip->members_count);
    trpi_assert_slow(input->votes->sure.bits == input->gossip->members_count);
    trpi_assert_slow(trpi_gossip_find(input->gossip, input->self) != TRPI_GOSSIP_NONE);
    ops->decide(ops, options, input, decision);
    trpi_assert_check(trpi_downing_check, input, decision);
}
