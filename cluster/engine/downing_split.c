/* downing_split.c - when a split is decided, on what evidence, and which node acts.
 *
 * Must hold. downing-D1, downing-D2, downing-D4, downing-D7..D9 and downing-D12.
 * Tests.   tests/unit/cluster/downing_test.c, downing_strategies_test.c, downing_lease_test.c
 */
#include "cluster/engine/downing_split.h"

#include <stdio.h>

#include "base/assert.h"

#define ANSWER_MS_MAX 5000u

struct question {
    trpi_votes_question votes;
    trpi_sides sides; /* with all open votes */
};

static void
question_ask(struct question *q, const trpi_downing_ops *ops, const trpi_downing_options *options,
             const trpi_downing_input *input, trpi_downing_decision *decision)
{
    trpi_assert_slow(input->gossip->frozen);
    trpi_assert_slow(input->votes->sure.bits == input->gossip->members_count);
    q->votes = (trpi_votes_question){ .options = options,
                                      .gossip = input->gossip,
                                      .votes = input->votes,
                                      .marks = decision->indexes,
                                      .exiting_oldest = input->exiting_oldest,
                                      .stays = ops->stays,
                                      .by_age = ops->spare == TRPI_SPARE_OLDEST };
    decision->open = trpi_votes_open(input->votes, input->gossip);
    trpi_assert_slow(decision->open <= input->gossip->members_count);
}

static void
question_begin(struct question *q, const trpi_downing_ops *ops, const trpi_downing_options *options,
               const trpi_downing_input *input, trpi_spare spare, trpi_downing_decision *decision)
{
    trpi_assert_slow(spare <= TRPI_SPARE_SELF);
    question_ask(q, ops, options, input, decision);
    trpi_sides_find(options, input, spare, decision->indexes, &q->sides);
    trpi_assert_slow(q->votes.gossip == input->gossip);
    trpi_assert_slow(q->sides.broken_members <= input->gossip->members_count);
}

/* ---- resolving ------------------------------------------------------------------------------- */

/* downing-D4: return the first clear member in order that is Up; else one that is Leaving, which
 * may have left when the other side asks for the lease that it held (downing-D8); else one that is
 * Joining. */
static uint32_t
acting_member(const trpi_gossip *g, const uint32_t *marks, bool unsuspected)
{
    trpi_assert_slow(g->frozen);
    static const uint32_t later[] = { [TRP_MEMBER_JOINING] = 2, [TRP_MEMBER_LEAVING] = 1 };
    uint32_t first = TRPI_GOSSIP_NONE, first_later = UINT32_MAX;
    for (uint32_t i = 0; i < g->members_count; i++) {
        const trpi_gossip_member *m = &g->members[i];
        if (marks[i] == TRPI_MARK_CLEAR && m->status < TRP_MEMBER_EXITING &&
            !(unsuspected && m->unreachable != 0) && later[m->status] < first_later) {
            first = i;
            first_later = later[m->status];
        }
    }
    trpi_assert_slow(first == TRPI_GOSSIP_NONE || marks[first] == TRPI_MARK_CLEAR);
    return first;
}

/* Replace the marks by the indexes of the members that have one of the two marks. */
static void
collect_marked(const trpi_gossip *g, uint32_t one, uint32_t two, trpi_downing_decision *decision)
{
    trpi_assert_slow(decision->indexes_count == 0);
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->members_count; i++) {
        uint32_t mark = decision->indexes[i]; /* read before index count <= i is written */
        if ((mark == one || mark == two) && g->members[i].status < TRP_MEMBER_EXITING) {
            decision->indexes[count++] = i;
        }
    }
    decision->indexes_count = count;
    trpi_assert_slow(decision->indexes_count <= g->members_count);
}

/* Return whether to wait until more members have seen the version (then downing-D2): up to half of
 * stable-after more. A side that would stay with its unsure members waits longer, for it must not
 * stop for being slow: in a large half a member whose observers are all on the other side is found
 * late, and each new observer's row is a version that all members have to see anew. */
static bool
is_patient(const struct question *q, const trpi_downing_input *input, bool stays)
{
    trpi_assert_slow(q->votes.gossip == input->gossip);
    const char *why;
    uint64_t stable_after_ms = q->votes.options->stable_after_ms;
    uint64_t patience_ms = !stays && trpi_votes_stay(&q->votes, TRPI_PART_HOPED, &why)
                               ? 3 * stable_after_ms
                               : stable_after_ms + stable_after_ms / 2;
    return q->sides.unsure.votes > 0 && input->stable_ms < patience_ms;
}

uint64_t
trpi_split_answer_ms(uint32_t patience_ms)
{
    uint32_t third_ms = patience_ms / 3;
    return third_ms < ANSWER_MS_MAX ? third_ms : ANSWER_MS_MAX;
}

/* downing-D9, with the marks in decision->indexes. Return whether the evidence is too old to
 * decide; this node may then make a new version (ROLL_CALL). */
static bool
lacks_evidence(const trpi_downing_options *options, const trpi_downing_input *input,
               trpi_downing_decision *decision)
{
    trpi_assert_slow(decision->verdict == TRPI_DOWNING_WAIT);
    trpi_assert_slow(trpi_gossip_find(input->gossip, input->self) != TRPI_GOSSIP_NONE);
    const trpi_gossip *g = input->gossip;
    const uint32_t *marks = decision->indexes;
    uint64_t stable_after_ms = options->stable_after_ms;
    uint32_t self = trpi_gossip_find(g, input->self);
    uint64_t old_ms = input->stable_ms < stable_after_ms ? stable_after_ms / 2 : stable_after_ms;
    if (input->stable_ms >= 3 * stable_after_ms) {
        return false;
    }
    if (decision->suspected > 0 && input->made_ms > old_ms &&
        input->stable_ms + trpi_split_answer_ms(options->stable_after_ms) < 3 * stable_after_ms &&
        (acting_member(g, marks, false) == self || acting_member(g, marks, true) == self ||
         trpi_sides_is_broken_end(g, marks, self))) {
        decision->verdict = TRPI_DOWNING_ROLL_CALL;
        return true;
    }
    return input->version_ms < trpi_split_answer_ms(options->stable_after_ms) &&
           (decision->suspected > 0 || input->suspicion_ms < stable_after_ms);
}

/* Make a new version half-way to stable-after, so that its end need not wait for evidence. */
static void
call_early(const trpi_downing_options *options, const trpi_downing_input *input, trpi_spare spare,
           trpi_downing_decision *decision)
{
    trpi_assert_slow(decision->verdict == TRPI_DOWNING_WAIT);
    trpi_assert_slow(input->stable_ms < options->stable_after_ms);
    trpi_sides sides;
    if (input->stable_ms >= options->stable_after_ms / 2 && decision->suspected > 0) {
        trpi_sides_find(options, input, spare, decision->indexes, &sides);
        (void)lacks_evidence(options, input, decision);
    }
    trpi_assert_slow(decision->indexes_count == 0);
}

static void
counts_fill(const char *why, const trpi_sides *sides, trpi_downing_decision *decision)
{
    trpi_assert_slow(why[0] != '\0');
    decision->unreachable = sides->away_members;
    decision->indirectly_connected = sides->broken_members;
    decision->reachable = sides->clear.votes + sides->broken.votes;
    decision->members = decision->reachable + sides->unsure.votes + sides->away.votes;
    int used =
        snprintf(decision->reason, sizeof decision->reason,
                 "%s: %u of %u members on this side, %u unreachable, %u indirectly connected", why,
                 decision->reachable, decision->members, decision->unreachable,
                 decision->indirectly_connected);
    if (decision->open > 0 && used > 0 && (size_t)used < sizeof decision->reason) {
        snprintf(decision->reason + used, sizeof decision->reason - (size_t)used,
                 ", %u changes of votes not seen by all", decision->open);
    }
    trpi_assert_slow(decision->reachable <= decision->members);
}

/* Stop if the member that should act is suspected, be it by this node alone, whose rows may not
 * count (others took it for lost, and have died): alive it would have acted long ago. */
static void
stop_waiting(const trpi_downing_input *input, uint64_t limit_ms, const trpi_sides *sides,
             trpi_downing_decision *decision)
{
    trpi_assert_slow(decision->verdict == TRPI_DOWNING_WAIT);
    const trpi_gossip *g = input->gossip;
    uint32_t first = acting_member(g, decision->indexes, false);
    if (input->stable_ms >= limit_ms &&
        (first == TRPI_GOSSIP_NONE || g->members[first].unreachable != 0 ||
         trpi_gossip_observes(g, input->self, g->members[first].ident->key))) {
        counts_fill("the member that should act does not", sides, decision);
        decision->verdict = TRPI_DOWNING_DOWN_SELF;
    }
}

/* ---- flapping reachability ------------------------------------------------------------------- */

/* downing-D12: a member that has been reachable for stable-after is stable. */
static void
mark_steady(const trpi_downing_options *options, const trpi_downing_input *input, uint32_t *marks)
{
    trpi_assert_slow(input->seen->bits == input->gossip->members_count);
    const trpi_gossip *g = input->gossip;
    for (uint32_t i = 0; i < g->members_count; i++) {
        bool steady =
            g->members[i].unreachable == 0 && input->reachable_ms[i] >= options->stable_after_ms;
        bool seen = g->members[i].ident->key == input->self || trpi_seen_get(input->seen, i);
        marks[i] = !steady ? TRPI_MARK_AWAY : seen ? TRPI_MARK_CLEAR : TRPI_MARK_UNSURE;
    }
}

/* downing-D12, downing-D16. Mark BROKEN the members that have been unreachable for stable-after,
 * and, when reachability has been flapping for too long, all unreachable members. Of a broken link
 * one end is enough. Returns their number; *ret_call: a new version has to show who is alive. */
static uint32_t
mark_given_up(const trpi_downing_options *options, const trpi_downing_input *input, uint32_t *marks,
              bool *ret_call)
{
    trpi_assert_slow(input->seen->bits == input->gossip->members_count);
    const trpi_gossip *g = input->gossip;
    uint64_t limit_ms = (uint64_t)options->stable_after_ms + options->unstable_after_ms;
    uint64_t ask_ms = options->stable_after_ms - trpi_split_answer_ms(options->stable_after_ms);
    bool too_long = options->unstable_after_ms != 0 && input->unstable_ms >= limit_ms;
    uint32_t count = 0;
    *ret_call = false;
    for (uint32_t i = g->members_count; i-- > 0;) {
        uint64_t missed_ms = input->unreachable_ms[i];
        bool unstable = too_long && !trpi_seen_get(input->seen, i);
        if (!trpi_downing_suspect(&g->members[i]) || (missed_ms < ask_ms && !unstable)) {
            continue;
        }
        trpi_accusation worth =
            trpi_sides_accusation(input, marks, i, unstable ? UINT64_MAX : missed_ms - ask_ms);
        *ret_call = *ret_call || worth == TRPI_ACCUSATION_OLD;
        if (worth == TRPI_ACCUSATION_STANDS &&
            (unstable || missed_ms >= options->stable_after_ms)) {
            marks[i] = TRPI_MARK_BROKEN;
            count++;
        }
    }
    trpi_assert_slow(count <= g->unreachable_count);
    return count;
}

/* downing-D12. Return whether members are marked Down, or who lives is asked first. */
static bool
decide_while_flapping(const trpi_downing_ops *ops, const trpi_downing_options *options,
                      const trpi_downing_input *input, trpi_downing_decision *decision)
{
    trpi_assert_slow(decision->verdict == TRPI_DOWNING_WAIT);
    trpi_assert_slow(decision->indexes_count == 0);
    const trpi_gossip *g = input->gossip;
    uint32_t *marks = decision->indexes;
    const char *why;
    bool call;
    struct question q;
    question_ask(&q, ops, options, input, decision);
    mark_steady(options, input, marks);
    decision->sure = trpi_votes_stay(&q.votes, TRPI_PART_CLEAR, &why);
    if (!decision->sure || input->unstable_ms == 0 ||
        acting_member(g, marks, false) != trpi_gossip_find(g, input->self)) {
        return false;
    }
    trpi_votes_count(&q.votes, &q.sides);
    q.sides.away_members = mark_given_up(options, input, marks, &call);
    q.sides.broken_members = 0;
    if (q.sides.away_members == 0) {
        decision->verdict = call ? TRPI_DOWNING_ROLL_CALL : TRPI_DOWNING_WAIT;
        return call;
    }
    counts_fill("the steadily reachable members are enough, others come and "
                "go",
                &q.sides, decision);
    collect_marked(g, TRPI_MARK_BROKEN, TRPI_MARK_BROKEN, decision);
    decision->verdict = TRPI_DOWNING_DOWN_MEMBERS;
    trpi_assert_slow(decision->sure && decision->indexes_count > 0);
    return true;
}

/* ---- stable reachability --------------------------------------------------------------------- */

void
trpi_split_decide(const trpi_downing_ops *ops, const trpi_downing_options *options,
                  const trpi_downing_input *input, trpi_downing_decision *decision)
{
    trpi_assert_slow(input->gossip->frozen);
    trpi_assert_slow(decision->verdict == TRPI_DOWNING_WAIT);
    const trpi_gossip *g = input->gossip;
    uint64_t unstable_ms = (uint64_t)options->stable_after_ms + options->unstable_after_ms;
    bool stable = input->stable_ms >= options->stable_after_ms;
    struct question q;
    const trpi_sides *sides = &q.sides;
    decision->suspected = trpi_sides_suspected(input);
    if (!stable && ops->decide == trpi_split_decide &&
        decide_while_flapping(ops, options, input, decision)) {
        return;
    }
    bool unstable = !stable && !decision->sure && options->unstable_after_ms != 0 &&
                    input->unsure_ms >= unstable_ms;
    if (!stable && !unstable) {
        call_early(options, input, ops->spare, decision);
        return; /* downing-D1 */
    }
    question_begin(&q, ops, options, input, ops->spare, decision);
    if (!unstable && lacks_evidence(options, input, decision)) {
        return;
    }
    const char *why = "unstable: reachability has kept changing for too long "
                      "(down-all-when-unstable), all stop";
    bool stays = !unstable && trpi_votes_stay(&q.votes, TRPI_PART_OURS, &why);
    if (!unstable && is_patient(&q, input, stays)) {
        return;
    }
    counts_fill(why, sides, decision);
    uint32_t self = trpi_gossip_find(g, input->self);
    trpi_assert(self != TRPI_GOSSIP_NONE);
    if (!stays) {
        decision->verdict = TRPI_DOWNING_DOWN_SELF;
        return;
    }
    if (!trpi_votes_stay(&q.votes, TRPI_PART_CLEAR, &why)) { /* downing-D7 */
        counts_fill("not without the indirectly connected", sides, decision);
        decision->verdict = input->stable_ms >= 3 * (uint64_t)options->stable_after_ms
                                ? TRPI_DOWNING_DOWN_SELF
                                : TRPI_DOWNING_WAIT;
    } else if (decision->indexes[self] == TRPI_MARK_BROKEN) {
        decision->verdict = TRPI_DOWNING_DOWN_SELF;
    } else if (acting_member(g, decision->indexes, false) == self) {
        collect_marked(g, TRPI_MARK_AWAY, TRPI_MARK_BROKEN, decision);
        decision->verdict =
            decision->indexes_count > 0 ? TRPI_DOWNING_DOWN_MEMBERS : TRPI_DOWNING_WAIT;
    } else {
        stop_waiting(input, 4 * (uint64_t)options->stable_after_ms, sides, decision);
    }
}

/* Rows change for at most stable-after and down-all-when-unstable; members that have not seen the
 * view are waited for three times stable-after (is_patient); the smaller side waits longer. */
uint64_t
trpi_downing_removal_margin_ms(const trpi_downing_options *options)
{
    return options->removal_margin_ms == 0            ? options->stable_after_ms
           : options->removal_margin_ms == UINT32_MAX ? 0
                                                      : options->removal_margin_ms;
}

uint64_t
trpi_downing_lease_ask_ms(const trpi_downing_options *options)
{
    return 4 * (uint64_t)options->stable_after_ms + options->unstable_after_ms +
           options->lease_minority_delay_ms;
}

uint64_t
trpi_downing_lease_hold_ms(const trpi_downing_options *options)
{
    trpi_assert_slow(options->lease_minority_delay_ms < trpi_downing_lease_ask_ms(options));
    uint64_t least_ms =
        options->stable_after_ms + trpi_downing_lease_ask_ms(options) + options->lease_timeout_ms;
    trpi_assert_slow(least_ms > trpi_downing_lease_ask_ms(options));
    return options->lease_release_after_ms > least_ms ? options->lease_release_after_ms : least_ms;
}

/* downing-D8: sides are found as for the other strategies, but the side of the lease's owner stays,
 * however small. Only the acting node asks for the lease, on behalf of its side; the smaller side
 * asks later, so that the larger one usually gets it. */
void
trpi_split_decide_lease(const trpi_downing_ops *ops, const trpi_downing_options *options,
                        const trpi_downing_input *input, trpi_downing_decision *decision)
{
    trpi_assert_slow(input->gossip->frozen);
    trpi_assert_slow(decision->verdict == TRPI_DOWNING_WAIT);
    trpi_assert_slow(input->lease <= TRPI_LEASE_REFUSED);
    const trpi_gossip *g = input->gossip;
    struct question q;
    const trpi_sides *sides = &q.sides;
    const char *why;
    uint64_t unstable_ms = (uint64_t)options->stable_after_ms + options->unstable_after_ms;
    trpi_spare spare = input->lease == TRPI_LEASE_HELD ? TRPI_SPARE_SELF : TRPI_SPARE_NOBODY;
    decision->suspected = trpi_sides_suspected(input);
    if (input->stable_ms < options->stable_after_ms) {
        if (options->unstable_after_ms != 0 && input->unstable_ms >= unstable_ms) {
            trpi_split_decide(ops, options, input, decision); /* all stop */
        } else {
            call_early(options, input, spare, decision);
        }
        return; /* downing-D1 */
    }
    question_begin(&q, ops, options, input, spare, decision);
    if (lacks_evidence(options, input, decision)) {
        return;
    }
    bool larger = trpi_votes_stay(&q.votes, TRPI_PART_OURS, &why);
    uint64_t ask_ms = options->stable_after_ms + (larger ? 0 : options->lease_minority_delay_ms);
    uint32_t self = trpi_gossip_find(g, input->self);
    /* the owner since an earlier partition may be another node than the acting one */
    bool acts =
        input->lease == TRPI_LEASE_HELD || acting_member(g, decision->indexes, false) == self;
    if (is_patient(&q, input, larger)) {
        return;
    }
    if (!acts) {
        stop_waiting(input, trpi_downing_lease_ask_ms(options) + options->lease_timeout_ms, sides,
                     decision);
        return;
    }
    switch (input->lease) {
    case TRPI_LEASE_UNASKED:
        if (input->apart_ms > trpi_downing_lease_ask_ms(options)) {
            counts_fill("too late to ask for the lease", sides, decision);
            collect_marked(g, TRPI_MARK_CLEAR, TRPI_MARK_BROKEN, decision);
            decision->verdict = TRPI_DOWNING_DOWN_SIDE;
            return;
        }
        counts_fill("the lease decides", sides, decision);
        decision->verdict = input->stable_ms < ask_ms ? TRPI_DOWNING_WAIT : TRPI_DOWNING_ACQUIRE;
        return;
    case TRPI_LEASE_ASKED:
        return;
    case TRPI_LEASE_HELD:
        counts_fill("this side has the lease", sides, decision);
        collect_marked(g, TRPI_MARK_AWAY, TRPI_MARK_BROKEN, decision);
        decision->verdict =
            decision->indexes_count > 0 ? TRPI_DOWNING_DOWN_MEMBERS : TRPI_DOWNING_WAIT;
        return;
    case TRPI_LEASE_REFUSED:
        counts_fill("this side did not get the lease", sides, decision);
        collect_marked(g, TRPI_MARK_CLEAR, TRPI_MARK_BROKEN, decision);
        decision->verdict = TRPI_DOWNING_DOWN_SIDE;
        return;
    }
}
