/* votes.c - see the header.
 *
 * Why.     With one set of voters at most one side of a cut stays. So both sides must evaluate the
 *          same set, though neither knows what the other knows. Take the set of changes that any
 *          member knows to be seen by all. All members have seen each of them; a node that knows
 *          that it is seen by all counts it, and a node that does not evaluates both cases. Each
 *          other change is unknown to some member; a node that has seen it evaluates both cases,
 *          too. So this one set is among those that every node evaluates, and at most one side
 *          stays with it.
 * Must hold.
 *   votes-N1  A change is sure only when every member of the view has seen the view that has it, or
 *       a later one: also members that are unreachable, Down or only Joining. A member that is
 *       known to know that it is Exiting is left out: it never decides again.
 *   votes-N2  Knowledge of a member is ordered by its life: joined, Up, Exiting, each open or sure.
 *       Two nodes that exchange theirs both have the later one.
 *   votes-N3  A member that is Down after it was Exiting has no vote when its Exiting was sure: all
 *       have seen it Exiting. That all have seen it Down does not imply that.
 *   votes-N4  The sets have one bit for each member of the view. `out` has all Exiting members and,
 *       besides them, only Down ones. `told` has what is sure, but of a Down member only that it
 *       was Exiting.                                                    (trpi_votes_check)
 * Cost.    A walk over the members for each new version; three bits each.
 * Tests.   tests/unit/cluster/votes_test.c, tests/sim/restart_test.c
 */
#include "cluster/engine/votes.h"

#include "base/assert.h"

static void
set_clear(trpi_seen *set, uint32_t index)
{
    trpi_assert_slow(index < set->bits);
    set->words[index / 64] &= ~((uint64_t)1 << (index % 64));
}

static void
tell_again(trpi_votes *votes, const trpi_gossip *gossip)
{
    trpi_assert_slow(votes->told.bits == gossip->members_count);
    for (uint32_t i = 0; i < votes->sure.words_count; i++) {
        votes->told.words[i] = votes->sure.words[i];
    }
    for (uint32_t i = 0; i < gossip->members_count; i++) {
        if (gossip->members[i].status == TRP_MEMBER_DOWN && !trpi_seen_get(&votes->out, i)) {
            set_clear(&votes->told, i);
        }
    }
    trpi_assert_slow(trpi_seen_covers(&votes->sure, &votes->told));
}

trp_err
trpi_votes_init(trpi_votes *votes, const trpi_gossip *gossip)
{
    trpi_assert_slow(gossip->frozen);
    *votes = (trpi_votes){ 0 };
    if (trpi_seen_init(&votes->sure, gossip->members_count) != TRP_OK ||
        trpi_seen_init(&votes->out, gossip->members_count) != TRP_OK ||
        trpi_seen_init(&votes->told, gossip->members_count) != TRP_OK) {
        trpi_votes_fini(votes);
        return TRP_ENOMEM;
    }
    for (uint32_t i = 0; i < gossip->members_count; i++) {
        if (gossip->members[i].status == TRP_MEMBER_EXITING) {
            trpi_seen_set(&votes->out, i);
        }
    }
    trpi_assert_slow(votes->sure.bits == gossip->members_count &&
                     trpi_seen_count(&votes->sure) == 0);
    return TRP_OK;
}

void
trpi_votes_fini(trpi_votes *votes)
{
    trpi_seen_fini(&votes->sure);
    trpi_seen_fini(&votes->out);
    trpi_seen_fini(&votes->told);
    trpi_assert_slow(votes->sure.bits == 0 && votes->told.bits == 0);
}

/* votes-N2. Return the index of the member in the earlier view; *at moves on, for both are in one
 * order. */
static uint32_t
earlier_index(const trpi_gossip *earlier, const trpi_ident *ident, uint32_t *at)
{
    trpi_assert_slow(*at <= earlier->members_count);
    uint32_t found = *at < earlier->members_count && earlier->members[*at].ident == ident
                         ? *at
                         : trpi_gossip_find(earlier, ident->key);
    *at = found == TRPI_GOSSIP_NONE ? *at : found + 1;
    trpi_assert_slow(found == TRPI_GOSSIP_NONE || found < earlier->members_count);
    return found;
}

bool
trpi_votes_join(trpi_votes *votes, const trpi_gossip *gossip, const trpi_votes *from,
                const trpi_gossip *earlier)
{
    trpi_assert_slow(votes->sure.bits == gossip->members_count);
    trpi_assert_slow(from->sure.bits == earlier->members_count);
    bool news = false;
    uint32_t at = 0;
    for (uint32_t i = 0; i < gossip->members_count; i++) {
        uint32_t was = earlier_index(earlier, gossip->members[i].ident, &at);
        if (was == TRPI_GOSSIP_NONE) {
            continue;
        }
        bool sure = trpi_seen_get(&from->sure, was), is_out = trpi_seen_get(&votes->out, i);
        if (trpi_seen_get(&from->out, was)) {
            if (!is_out) { /* what is sure of it was sure of its being Up */
                trpi_seen_set(&votes->out, i);
                set_clear(&votes->sure, i);
            }
        } else if (is_out ||
                   (earlier->members[was].up_number != 0) != (gossip->members[i].up_number != 0)) {
            continue;
        }
        news = news || (sure && !trpi_seen_get(&votes->sure, i));
        if (sure) {
            trpi_seen_set(&votes->sure, i);
        }
    }
    tell_again(votes, gossip);
    return news;
}

trp_err
trpi_votes_hear(trpi_votes *votes, const trpi_gossip *gossip, const trpi_seen *told,
                const trpi_gossip *earlier, bool *ret_news)
{
    trpi_assert_slow(votes->sure.bits == gossip->members_count);
    trpi_assert_slow(earlier->frozen);
    trpi_votes theirs;
    trp_err err = trpi_votes_init(&theirs, earlier);
    if (err != TRP_OK) {
        return err;
    }
    trpi_assert(told->bits == earlier->members_count);
    for (uint32_t i = 0; i < earlier->members_count; i++) {
        if (trpi_seen_get(told, i)) {
            trpi_seen_set(&theirs.sure, i);
            if (earlier->members[i].status == TRP_MEMBER_DOWN) {
                trpi_seen_set(&theirs.out, i);
            }
        }
    }
    *ret_news = trpi_votes_join(votes, gossip, &theirs, earlier);
    trpi_votes_fini(&theirs);
    return TRP_OK;
}

/* votes-N1 */
static bool
have_all_seen(const trpi_votes *votes, const trpi_seen *seen)
{
    trpi_assert_slow(votes->sure.bits == seen->bits);
    for (uint32_t i = 0; i < seen->words_count; i++) {
        uint32_t left = seen->bits - i * 64;
        uint64_t all = left >= 64 ? UINT64_MAX : ((uint64_t)1 << left) - 1;
        if ((all & ~seen->words[i] & ~(votes->out.words[i] & votes->sure.words[i])) != 0) {
            return false;
        }
    }
    return true;
}

bool
trpi_votes_learn(trpi_votes *votes, const trpi_gossip *gossip, const trpi_seen *seen)
{
    trpi_assert(seen->bits == votes->sure.bits && gossip->members_count == seen->bits);
    bool news = false;
    if (trpi_seen_count(&votes->sure) == seen->bits || !have_all_seen(votes, seen)) {
        return false;
    }
    for (uint32_t i = 0; i < gossip->members_count; i++) {
        bool unheard =
            /* votes-N3 */
            gossip->members[i].status == TRP_MEMBER_DOWN && trpi_seen_get(&votes->out, i);
        if (!unheard && !trpi_seen_get(&votes->sure, i)) {
            trpi_seen_set(&votes->sure, i);
            news = true;
        }
    }
    tell_again(votes, gossip);
    return news;
}

trpi_vote
trpi_votes_of(const trpi_votes *votes, uint32_t index)
{
    trpi_assert_slow(index < votes->out.bits);
    return !trpi_seen_get(&votes->sure, index) ? TRPI_VOTE_OPEN
           : trpi_seen_get(&votes->out, index) ? TRPI_VOTE_NO
                                               : TRPI_VOTE_YES;
}

uint32_t
trpi_votes_open(const trpi_votes *votes, const trpi_gossip *gossip)
{
    trpi_assert_slow(votes->sure.bits == gossip->members_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < gossip->members_count; i++) {
        count += gossip->members[i].up_number != 0 && !trpi_seen_get(&votes->sure, i) ? 1 : 0;
    }
    trpi_assert_slow(count <= gossip->members_count);
    return count;
}

const char *
trpi_votes_check(const trpi_votes *votes, const trpi_gossip *gossip, trpi_check *check)
{
    if (votes->sure.bits != gossip->members_count || votes->out.bits != gossip->members_count ||
        votes->told.bits != gossip->members_count) {
        return trpi_check_broken(check, "votes-N4: %u, %u and %u bits for %u members",
                                 votes->sure.bits, votes->out.bits, votes->told.bits,
                                 gossip->members_count);
    }
    for (uint32_t i = 0; i < gossip->members_count; i++) {
        uint32_t status = gossip->members[i].status;
        bool sure = trpi_seen_get(&votes->sure, i), is_out = trpi_seen_get(&votes->out, i);
        if (is_out ? status < TRP_MEMBER_EXITING : status == TRP_MEMBER_EXITING) {
            return trpi_check_broken(check, "votes-N4: %s of status %u is %s",
                                     gossip->members[i].ident->address, status,
                                     is_out ? "out" : "not out");
        }
        if (trpi_seen_get(&votes->told, i) && (!sure || (status == TRP_MEMBER_DOWN && !is_out))) {
            return trpi_check_broken(check,
                                     "votes-N4: of %s of status %u more is told than is sure",
                                     gossip->members[i].ident->address, status);
        }
    }
    return NULL;
}
