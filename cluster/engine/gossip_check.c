/* gossip_check.c - the invariants of a view, of its seen set, and of a step from one view to a
 * later one, as code.
 *
 * Why.     freeze() and merge() make them true; here they are stated without it, so that a mistake
 *          there, or a hand that changes a frozen view, is found at the step that makes it.
 * Must hold. Besides gossip-G1..G3 and gossip-merge-M2..M5:
 *   gossip-G4  What freeze computes once agrees with the rest: the index finds each member at its
 *       place; unreachable_count, blocking_count and the deciders are those of the members.
 *   gossip-G5  A member is Joining, Up, Leaving, Exiting or Down; only a Joining one is weakly up.
 *   gossip-G6  A member without an accuser is reachable (gossip-reachability-R2).
 *   gossip-G7  A seen set has one bit for each member of its view, and none beyond.
 * Cost.    A walk over the members, rows and clock; for each unreachable member one over the rows.
 * Tests.   tests/unit/cluster/check_test.c
 */
#include "cluster/engine/gossip.h"

static const char *
check_order(const trpi_gossip *g, trpi_check *check)
{
    for (uint32_t i = 0; i < g->members_count; i++) {
        const trpi_ident *ident = g->members[i].ident;
        if (i > 0 && trpi_node_id_compare(&g->members[i - 1].ident->id, &ident->id) >= 0) {
            return trpi_check_broken(check, "gossip-G1: members %u and %u are not in order", i - 1,
                                     i);
        }
        if (trpi_gossip_find(g, ident->key) != i) {
            return trpi_check_broken(check, "gossip-G4: the index does not find %s at %u",
                                     ident->address, i);
        }
        if (g->tombstones_count > 0 && trpi_gossip_tombstone(g, ident->key) != NULL) {
            return trpi_check_broken(check, "gossip-G1: member %u, %s, has a tombstone", i,
                                     ident->address);
        }
    }
    for (uint32_t i = 1; i < g->tombstones_count; i++) {
        if (g->tombstones[i - 1].key >= g->tombstones[i].key) {
            return trpi_check_broken(check, "gossip-G1: tombstones %u and %u are not in order",
                                     i - 1, i);
        }
    }
    return NULL;
}

static bool
is_member(const trpi_gossip *g, uint64_t key)
{
    return trpi_gossip_find(g, key) != TRPI_GOSSIP_NONE;
}

static bool
rows_in_order(const trpi_reach_row *a, const trpi_reach_row *b)
{
    return a->observer < b->observer || (a->observer == b->observer && a->subject < b->subject);
}

static const char *
check_names(const trpi_gossip *g, trpi_check *check)
{
    for (uint32_t i = 0; i < g->rows_count; i++) {
        const trpi_reach_row *r = &g->rows[i];
        if (!is_member(g, r->observer) || !is_member(g, r->subject) || r->observer == r->subject ||
            (i > 0 && !rows_in_order(r - 1, r))) {
            return trpi_check_broken(check,
                                     "gossip-G2: row %u of %u is of no two members, or out "
                                     "of order",
                                     i, g->rows_count);
        }
    }
    for (uint32_t i = 0; i < g->versions_count; i++) {
        const trpi_reach_version *v = &g->versions[i];
        if (!is_member(g, v->observer) || (i > 0 && v[-1].observer >= v->observer)) {
            return trpi_check_broken(check,
                                     "gossip-G2: version %u is of no member, or out of order", i);
        }
    }
    for (uint32_t i = 0; i < g->clock_count; i++) {
        const trpi_vclock_entry *c = &g->clock[i];
        if (!is_member(g, c->key) || (i > 0 && c[-1].key >= c->key)) {
            return trpi_check_broken(check,
                                     "gossip-G2: clock entry %u is of no member, or out of "
                                     "order",
                                     i);
        }
    }
    return NULL;
}

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

static const char *
check_members(const trpi_gossip *g, trpi_check *check)
{
    uint32_t unreachable = 0, blocking = 0;
    for (uint32_t i = 0; i < g->members_count; i++) {
        const trpi_gossip_member *m = &g->members[i];
        if (m->status < TRP_MEMBER_JOINING || m->status > TRP_MEMBER_DOWN ||
            (m->weakly_up != 0 && m->status != TRP_MEMBER_JOINING)) {
            return trpi_check_broken(check, "gossip-G5: %s has status %u, weakly up %u",
                                     m->ident->address, m->status, m->weakly_up);
        }
        bool decides = (g->deciders[i / 64] >> (i % 64) & 1) != 0;
        bool settled = m->status == TRP_MEMBER_UP || m->status == TRP_MEMBER_LEAVING;
        if (decides != settled && m->status != TRP_MEMBER_JOINING) {
            return trpi_check_broken(check, "gossip-G4: %s of status %u %s", m->ident->address,
                                     m->status, decides ? "decides" : "does not decide");
        }
        if (m->unreachable != 0 && !is_accused(g, m->ident->key)) {
            return trpi_check_broken(check, "gossip-G6: %s is unreachable without an observer",
                                     m->ident->address);
        }
        unreachable += m->unreachable != 0 ? 1 : 0;
        blocking += m->unreachable != 0 && m->status < TRP_MEMBER_EXITING ? 1 : 0;
    }
    if (unreachable != g->unreachable_count || blocking != g->blocking_count) {
        return trpi_check_broken(check,
                                 "gossip-G4: %u members are unreachable and %u of them "
                                 "block, counted are %u and %u",
                                 unreachable, blocking, g->unreachable_count, g->blocking_count);
    }
    return NULL;
}

const char *
trpi_gossip_check(const trpi_gossip *gossip, trpi_check *check)
{
    trpi_assert(gossip->frozen);
    const char *broken = check_order(gossip, check);
    broken = broken != NULL ? broken : check_names(gossip, check);
    broken = broken != NULL ? broken : check_members(gossip, check);
    if (broken == NULL && trpi_gossip_digest(gossip) != gossip->digest) {
        broken = trpi_check_broken(check,
                                   "gossip-G3: the digest of %u members is not that of what "
                                   "they are",
                                   gossip->members_count);
    }
    return broken;
}

const char *
trpi_seen_check(const trpi_seen *seen, const trpi_gossip *gossip, trpi_check *check)
{
    uint32_t last = seen->bits % 64;
    if (seen->bits != gossip->members_count || seen->words_count != (seen->bits + 63) / 64) {
        return trpi_check_broken(check, "gossip-G7: %u bits in %u words for %u members", seen->bits,
                                 seen->words_count, gossip->members_count);
    }
    if (last != 0 && seen->words[seen->words_count - 1] >> last != 0) {
        return trpi_check_broken(check, "gossip-G7: a bit beyond the %u members is set",
                                 seen->bits);
    }
    return NULL;
}

/* ---- from one view to a later one ------------------------------------------------------------ */

/* Return the version of an observer's rows; 0: it has written none. */
static uint64_t
version_of(const trpi_gossip *g, uint64_t observer)
{
    uint32_t low = 0, high = g->versions_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (g->versions[middle].observer < observer) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < g->versions_count && g->versions[low].observer == observer
               ? g->versions[low].version
               : 0;
}

static const char *
check_member_step(const trpi_gossip_member *was, const trpi_gossip_member *is, trpi_check *check)
{
    uint32_t before = trpi_member_status(was), now = trpi_member_status(is);
    if (is->status < was->status || (before == TRP_MEMBER_WEAKLY_UP && now == TRP_MEMBER_JOINING)) {
        return trpi_check_broken(check, "gossip-merge-M2: %s went from %s to %s",
                                 is->ident->address, trp_member_status_name(before),
                                 trp_member_status_name(now));
    }
    if (was->up_number != 0 && (is->up_number == 0 || is->up_number > was->up_number)) {
        return trpi_check_broken(check, "gossip-merge-M2: the up-number of %s grew from %u to %u",
                                 is->ident->address, was->up_number, is->up_number);
    }
    if (was->up_number != 0 && was->up_number == is->up_number && was->up_since_s != 0 &&
        (is->up_since_s == 0 || is->up_since_s > was->up_since_s)) {
        return trpi_check_broken(check, "gossip-merge-M2: %s is Up since %u, and was since %u",
                                 is->ident->address, is->up_since_s, was->up_since_s);
    }
    return NULL;
}

static const char *
check_members_step(const trpi_gossip *older, const trpi_gossip *newer, trpi_check *check)
{
    uint32_t next = 0; /* both are in one order */
    for (uint32_t i = 0; i < older->members_count; i++) {
        const trpi_gossip_member *m = &older->members[i];
        uint32_t at = next < newer->members_count && newer->members[next].ident == m->ident
                          ? next
                          : trpi_gossip_find(newer, m->ident->key);
        if (at == TRPI_GOSSIP_NONE && trpi_gossip_tombstone(newer, m->ident->key) == NULL) {
            return trpi_check_broken(check, "gossip-merge-M3: %s is gone without a tombstone",
                                     m->ident->address);
        }
        const char *broken =
            at == TRPI_GOSSIP_NONE ? NULL : check_member_step(m, &newer->members[at], check);
        if (broken != NULL) {
            return broken;
        }
        next = at == TRPI_GOSSIP_NONE ? next : at + 1;
    }
    for (uint32_t i = 0; i < older->tombstones_count; i++) {
        if (is_member(newer, older->tombstones[i].key)) {
            return trpi_check_broken(check, "gossip-merge-M3: a member is back from tombstone %u",
                                     i);
        }
    }
    return NULL;
}

const char *
trpi_gossip_check_step(const trpi_gossip *older, const trpi_gossip *newer, trpi_check *check)
{
    const char *broken = check_members_step(older, newer, check);
    for (uint32_t i = 0; i < older->versions_count && broken == NULL; i++) {
        const trpi_reach_version *v = &older->versions[i];
        uint64_t now = version_of(newer, v->observer);
        if (now < v->version && is_member(newer, v->observer)) {
            broken = trpi_check_broken(check,
                                       "gossip-merge-M4: rows of version %llu gave way to "
                                       "those of %llu",
                                       (unsigned long long)v->version, (unsigned long long)now);
        }
    }
    for (uint32_t i = 0; i < older->clock_count && broken == NULL; i++) {
        const trpi_vclock_entry *c = &older->clock[i];
        uint64_t now = trpi_vclock_get(newer->clock, newer->clock_count, c->key);
        if (now < c->counter && is_member(newer, c->key)) {
            broken = trpi_check_broken(check, "gossip-merge-M5: a clock went from %llu to %llu",
                                       (unsigned long long)c->counter, (unsigned long long)now);
        }
    }
    return broken;
}
