/* gossip_view.c - queries of a frozen snapshot: reachability, convergence, leader, oldest; and
 * the seen set. Tests: tests/unit/cluster/gossip_test.c */
#include "cluster/engine/gossip.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

const char *
trp_member_status_name(uint32_t status)
{
    static const char *const names[] = { "?",       "Joining", "Up",      "Leaving",
                                         "Exiting", "Down",    "Removed", "WeaklyUp" };
    return status < 8 ? names[status] : names[0];
}

uint32_t
trpi_member_status(const trpi_gossip_member *member)
{
    return member->weakly_up != 0 ? TRP_MEMBER_WEAKLY_UP : member->status;
}

uint32_t
trpi_gossip_find_address(const trpi_gossip *gossip, const trpi_node_id *id)
{
    uint32_t found = TRPI_GOSSIP_NONE;
    for (uint32_t i = trpi_gossip_lower(gossip, &id->address); i < gossip->members_count; i++) {
        const trpi_gossip_member *m = &gossip->members[i];
        if (!trpi_address_is_same_place(&m->ident->id.address, &id->address)) {
            break;
        }
        if (!trpi_address_equal(&m->ident->id.address, &id->address) ||
            (id->uid != 0 && id->uid != m->ident->id.uid)) {
            continue;
        }
        if (m->status != TRP_MEMBER_DOWN) {
            return i;
        }
        found = i;
    }
    trpi_assert_slow(found == TRPI_GOSSIP_NONE || gossip->members[found].status == TRP_MEMBER_DOWN);
    return found;
}

const trpi_tombstone *
trpi_gossip_tombstone(const trpi_gossip *gossip, uint64_t key)
{
    uint32_t low = 0;
    uint32_t high = gossip->tombstones_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (gossip->tombstones[middle].key < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < gossip->tombstones_count && gossip->tombstones[low].key == key
               ? &gossip->tombstones[low]
               : NULL;
}

bool
trpi_gossip_is_unreachable(const trpi_gossip *gossip, uint32_t index)
{
    trpi_assert(gossip->frozen && index < gossip->members_count);
    return gossip->members[index].unreachable != 0;
}

bool
trpi_gossip_observes(const trpi_gossip *gossip, uint64_t observer, uint64_t subject)
{
    uint32_t low = 0;
    uint32_t high = gossip->rows_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const trpi_reach_row *row = &gossip->rows[middle];
        if (row->observer < observer || (row->observer == observer && row->subject < subject)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < gossip->rows_count && gossip->rows[low].observer == observer &&
           gossip->rows[low].subject == subject;
}

trpi_gossip_blockers
trpi_gossip_blocked_by(const trpi_gossip *gossip, const trpi_seen *seen)
{
    trpi_assert(seen->bits == gossip->members_count);
    trpi_gossip_blockers blockers = { 0, gossip->blocking_count };
    for (uint32_t i = 0; i < seen->words_count; i++) {
        blockers.unseen += (uint32_t)__builtin_popcountll(gossip->deciders[i] & ~seen->words[i]);
    }
    trpi_assert_slow(blockers.unseen <= gossip->members_count);
    return blockers;
}

bool
trpi_gossip_awaits(const trpi_gossip *gossip, uint32_t index)
{
    trpi_assert(gossip->frozen && index < gossip->members_count);
    trpi_assert_slow(index < gossip->members_count);
    return (gossip->deciders[index / 64] >> (index % 64) & 1) != 0;
}

uint32_t
trpi_gossip_leader(const trpi_gossip *gossip, uint64_t self, const char *role)
{
    static const uint8_t rank_of[7] = { 9, 1, 0, 0, 2, 9, 9 }; /* by status; 9: never leads */
    uint32_t best = TRPI_GOSSIP_NONE;
    uint32_t best_rank = 9;
    for (uint32_t i = 0; i < gossip->members_count && best_rank > 0; i++) {
        const trpi_gossip_member *m = &gossip->members[i];
        uint32_t rank = m->status == TRP_MEMBER_LEAVING && m->up_number == 0
                            ? rank_of[TRP_MEMBER_JOINING] /* left before it was ever Up */
                            : rank_of[m->status];
        if (rank >= best_rank || (role != NULL && !trpi_ident_has_role(m->ident, role))) {
            continue;
        }
        if (m->ident->key == self || m->unreachable == 0) {
            best = i;
            best_rank = rank;
        }
    }
    trpi_assert_slow(best == TRPI_GOSSIP_NONE || best < gossip->members_count);
    return best;
}

uint32_t
trpi_gossip_oldest(const trpi_gossip *gossip, const char *role)
{
    uint32_t oldest = TRPI_GOSSIP_NONE;
    for (uint32_t i = 0; i < gossip->members_count; i++) {
        const trpi_gossip_member *m = &gossip->members[i];
        if (m->up_number == 0 || (m->status != TRP_MEMBER_UP && m->status != TRP_MEMBER_LEAVING) ||
            (role != NULL && !trpi_ident_has_role(m->ident, role))) {
            continue;
        }
        if (oldest == TRPI_GOSSIP_NONE || m->up_number < gossip->members[oldest].up_number) {
            oldest = i;
        }
    }
    trpi_assert_slow(oldest == TRPI_GOSSIP_NONE || gossip->members[oldest].up_number != 0);
    return oldest;
}

uint32_t
trpi_gossip_up_number_max(const trpi_gossip *gossip)
{
    uint32_t highest = 0;
    for (uint32_t i = 0; i < gossip->members_count; i++) {
        if (gossip->members[i].up_number > highest) {
            highest = gossip->members[i].up_number;
        }
    }
    return highest;
}

/* ---- seen ------------------------------------------------------------------------------------ */

trp_err
trpi_seen_init(trpi_seen *seen, uint32_t bits)
{
    uint32_t words = (bits + 63) / 64;
    seen->words = trpi_alloc((words + 1) * sizeof(uint64_t));
    if (seen->words == NULL) {
        return TRP_ENOMEM;
    }
    seen->words_count = words;
    seen->bits = bits;
    trpi_assert_slow(trpi_seen_count(seen) == 0);
    return TRP_OK;
}

void
trpi_seen_fini(trpi_seen *seen)
{
    trpi_free(seen->words);
    memset(seen, 0, sizeof *seen);
    trpi_assert_slow(seen->bits == 0);
}

bool
trpi_seen_get(const trpi_seen *seen, uint32_t index)
{
    trpi_assert(index < seen->bits);
    return (seen->words[index / 64] >> (index % 64) & 1) != 0;
}

void
trpi_seen_set(trpi_seen *seen, uint32_t index)
{
    trpi_assert(index < seen->bits);
    seen->words[index / 64] |= (uint64_t)1 << (index % 64);
}

bool
trpi_seen_join(trpi_seen *a, const trpi_seen *b)
{
    trpi_assert(a->bits == b->bits);
    bool changed = false;
    for (uint32_t i = 0; i < a->words_count; i++) {
        uint64_t joined = a->words[i] | b->words[i];
        changed = changed || joined != a->words[i];
        a->words[i] = joined;
    }
    return changed;
}

bool
trpi_seen_covers(const trpi_seen *a, const trpi_seen *b)
{
    trpi_assert(a->bits == b->bits);
    for (uint32_t i = 0; i < a->words_count; i++) {
        if ((b->words[i] & ~a->words[i]) != 0) {
            return false;
        }
    }
    return true;
}

uint32_t
trpi_seen_count(const trpi_seen *seen)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < seen->words_count; i++) {
        count += (uint32_t)__builtin_popcountll(seen->words[i]);
    }
    trpi_assert_slow(count <= seen->bits);
    return count;
}
