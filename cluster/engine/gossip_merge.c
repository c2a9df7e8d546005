/* gossip_merge.c - the least snapshot that has everything of two snapshots (GOSSIP-11).
 *
 * Why.     Two nodes that merge the same two views must get the same view, bit for bit, or they
 *          would never agree. So every rule below is a maximum of some kind, and nothing else
 *          decides.
 * Must hold (property tests over random histories).
 *   gossip-merge-M1  Commutative, associative, idempotent.
 *   gossip-merge-M2  Per member the later status wins, weakly up is later than Joining; Up-numbers:
 *       the lower one that is not 0, with the moment that belongs to it.
 *   gossip-merge-M3  A tombstone on either side wins over the member on the other: no removed
 *       member comes back.
 *   gossip-merge-M4  Rows of an observer come from the side that knows its higher version: only the
 *       observer changes its rows, so that side knows more.
 *   gossip-merge-M6  A member, or its tombstone, is settled if it is on either side.
 *   gossip-merge-M5  The clock is the pointwise maximum without the entries of removed members.
 * Tests.   tests/unit/cluster/gossip_test.c
 */
#include "cluster/engine/gossip.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

static bool
is_removed(const void *arg, uint64_t key)
{
    return trpi_gossip_tombstone(arg, key) != NULL;
}

trpi_vclock_order
trpi_gossip_compare(const trpi_gossip *a, const trpi_gossip *b)
{
    trpi_assert_slow(a->frozen && b->frozen);
    /* An entry that one side has and the other removed does not make either newer. */
    return trpi_vclock_compare(a->clock, a->clock_count, b->clock, b->clock_count, is_removed, b,
                               a);
}

static void
push_member(trpi_gossip *out, const trpi_gossip_member *m)
{
    trpi_assert_slow(out->members_count < out->members_room);
    trpi_assert_slow(m->status >= TRP_MEMBER_JOINING && m->status <= TRP_MEMBER_DOWN);
    out->members[out->members_count++] = (trpi_gossip_member){ .ident = trpi_ident_ref(m->ident),
                                                               .up_number = m->up_number,
                                                               .status = m->status,
                                                               .weakly_up = m->weakly_up,
                                                               .up_since_s = m->up_since_s,
                                                               .settled = m->settled };
}

/* Return the lower number that is known; 0: neither is. */
static uint32_t
lower_known(uint32_t a, uint32_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

static void
merge_members(trpi_gossip *out, const trpi_gossip *a, const trpi_gossip *b)
{
    trpi_assert_slow(!out->frozen);
    uint32_t i = 0;
    uint32_t j = 0;
    while (i < a->members_count || j < b->members_count) {
        int order;
        if (j == b->members_count) {
            order = -1;
        } else if (i == a->members_count) {
            order = 1;
        } else if (a->members[i].ident == b->members[j].ident) {
            order = 0;
        } else {
            order = trpi_node_id_compare(&a->members[i].ident->id, &b->members[j].ident->id);
        }
        if (order < 0) {
            push_member(out, &a->members[i++]);
        } else if (order > 0) {
            push_member(out, &b->members[j++]);
        } else { /* gossip-merge-M2 */
            trpi_gossip_member m = a->members[i++];
            const trpi_gossip_member *other = &b->members[j++];
            m.status = m.status > other->status ? m.status : other->status;
            m.settled |= other->settled; /* gossip-merge-M6 */
            m.weakly_up = (m.weakly_up | other->weakly_up) != 0 && m.status == TRP_MEMBER_JOINING;
            if (m.up_number == other->up_number) {
                m.up_since_s = lower_known(m.up_since_s, other->up_since_s);
            } else if (lower_known(m.up_number, other->up_number) == other->up_number) {
                m.up_number = other->up_number;
                m.up_since_s = other->up_since_s;
            }
            if (strcmp(m.ident->build, other->ident->build) < 0) {
                m.ident = other->ident; /* its contact did not pass it on, or could not */
            }
            push_member(out, &m);
        }
    }
    trpi_assert_slow(out->members_count <= a->members_count + b->members_count);
    trpi_assert_slow(out->members_count >= a->members_count &&
                     out->members_count >= b->members_count);
}

/* First row of the observer in a sorted row table. */
static uint32_t
rows_begin(const trpi_gossip *g, uint64_t observer)
{
    trpi_assert_slow(g->frozen);
    uint32_t low = 0;
    uint32_t high = g->rows_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (g->rows[middle].observer < observer) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    trpi_assert_slow(low <= g->rows_count);
    return low;
}

static trp_err
take_rows(trpi_gossip *out, const trpi_gossip *from, uint64_t observer)
{
    trpi_assert_slow(!out->frozen && from->frozen);
    for (uint32_t i = rows_begin(from, observer);
         i < from->rows_count && from->rows[i].observer == observer; i++) {
        trp_err err = trpi_gossip_add_row(out, observer, from->rows[i].subject);
        if (err != TRP_OK) {
            return err;
        }
    }
    return TRP_OK;
}

/* gossip-merge-M4. Equal versions have equal rows among honest nodes; else the union, which
 * freeze() makes unique. */
static trp_err
merge_reachability(trpi_gossip *out, const trpi_gossip *a, const trpi_gossip *b)
{
    trpi_assert_slow(!out->frozen);
    uint32_t i = 0;
    uint32_t j = 0;
    trp_err err = TRP_OK;
    while (err == TRP_OK && (i < a->versions_count || j < b->versions_count)) {
        bool from_a = j == b->versions_count ||
                      (i < a->versions_count && a->versions[i].observer <= b->versions[j].observer);
        bool from_b = i == a->versions_count ||
                      (j < b->versions_count && b->versions[j].observer <= a->versions[i].observer);
        trpi_reach_version v = from_a ? a->versions[i] : b->versions[j];
        if (from_a && from_b) {
            uint64_t other = b->versions[j].version;
            from_a = v.version >= other;
            from_b = other >= v.version;
            v.version = from_a ? v.version : other;
            i++;
            j++;
        } else if (from_a) {
            i++;
        } else {
            j++;
        }
        err = trpi_gossip_add_version(out, v.observer, v.version);
        if (err == TRP_OK && from_a) {
            err = take_rows(out, a, v.observer);
        }
        if (err == TRP_OK && from_b) {
            err = take_rows(out, b, v.observer);
        }
    }
    return err;
    trpi_assert_slow(out->versions_count <= a->versions_count + b->versions_count);
    trpi_assert_slow(out->rows_count <= out->rows_room);
}

/* ---- nothing to merge: one side has everything ----------------------------------------------- */

static bool
tombstones_cover(const trpi_gossip *all, const trpi_gossip *some)
{
    trpi_assert_slow(all->frozen && some->frozen);
    for (uint32_t i = 0; i < some->tombstones_count; i++) {
        const trpi_tombstone *t = trpi_gossip_tombstone(all, some->tombstones[i].key);
        if (t == NULL || t->wall_ms < some->tombstones[i].wall_ms ||
            t->settled < some->tombstones[i].settled) {
            return false;
        }
    }
    return true;
}

/* Return whether gossip-merge-M2 would leave every member of `all` as it is. Both are in one order.
 */
static bool
members_cover(const trpi_gossip *all, const trpi_gossip *some)
{
    trpi_assert_slow(all->frozen && some->frozen);
    uint32_t at = 0;
    for (uint32_t i = 0; i < some->members_count; i++) {
        const trpi_gossip_member *m = &some->members[i];
        if (at >= all->members_count ||
            (all->members[at].ident != m->ident && all->members[at].ident->key != m->ident->key)) {
            at = trpi_gossip_find(all, m->ident->key);
        }
        if (at == TRPI_GOSSIP_NONE) {
            if (trpi_gossip_tombstone(all, m->ident->key) == NULL) {
                return false;
            }
            at = 0;
            continue;
        }
        const trpi_gossip_member *known = &all->members[at++];
        if (known->status < m->status || known->settled < m->settled ||
            (known->status == m->status && known->weakly_up < m->weakly_up) ||
            (m->up_number != 0 && (known->up_number == 0 || known->up_number > m->up_number)) ||
            (m->up_number != 0 && known->up_number == m->up_number &&
             known->up_since_s != lower_known(known->up_since_s, m->up_since_s))) {
            return false;
        }
    }
    return true;
}

/* gossip-merge-M4: no observer is known better by `some`. */
static bool
reachability_covers(const trpi_gossip *all, const trpi_gossip *some)
{
    trpi_assert_slow(all->frozen && some->frozen);
    uint32_t at = 0;
    for (uint32_t i = 0; i < some->versions_count; i++) {
        const trpi_reach_version *v = &some->versions[i];
        while (at < all->versions_count && all->versions[at].observer < v->observer) {
            at++;
        }
        bool known = at < all->versions_count && all->versions[at].observer == v->observer;
        if (!known && trpi_gossip_find(all, v->observer) == TRPI_GOSSIP_NONE) {
            continue; /* removed there */
        }
        if (!known || all->versions[at].version < v->version) {
            return false;
        }
        for (uint32_t row = all->versions[at].version > v->version ? some->rows_count
                                                                   : rows_begin(some, v->observer);
             row < some->rows_count && some->rows[row].observer == v->observer; row++) {
            if (!trpi_gossip_observes(all, v->observer, some->rows[row].subject) &&
                trpi_gossip_find(all, some->rows[row].subject) != TRPI_GOSSIP_NONE) {
                return false; /* equal versions of different rows: no honest node makes them */
            }
        }
    }
    return true;
}

/* Return whether the merge of both is `all` itself: then it need not be computed. */
static bool
knows_all_of(const trpi_gossip *all, const trpi_gossip *some)
{
    trpi_assert_slow(all->frozen && some->frozen);
    return tombstones_cover(all, some) && members_cover(all, some) &&
           reachability_covers(all, some);
}

/* ---- merge ----------------------------------------------------------------------------------- */

static trp_err
merge_into(trpi_gossip *out, const trpi_gossip *a, const trpi_gossip *b)
{
    trpi_assert_slow(!out->frozen);
    trpi_assert(a->frozen && b->frozen);
    for (uint32_t i = 0; i < a->tombstones_count; i++) {
        trp_err err = trpi_gossip_add_tombstone(out, a->tombstones[i]);
        if (err != TRP_OK) {
            return err;
        }
    }
    for (uint32_t i = 0; i < b->tombstones_count; i++) {
        trp_err err = trpi_gossip_add_tombstone(out, b->tombstones[i]);
        if (err != TRP_OK) {
            return err;
        }
    }
    uint32_t members_room = a->members_count + b->members_count;
    uint32_t clock_room = a->clock_count + b->clock_count;
    out->members = trpi_alloc((members_room + 1) * sizeof *out->members);
    out->clock = trpi_alloc((clock_room + 1) * sizeof *out->clock);
    if (out->members == NULL || out->clock == NULL) {
        return TRP_ENOMEM;
    }
    out->members_room = members_room + 1;
    out->clock_room = clock_room + 1;
    merge_members(out, a, b);
    out->clock_count =
        trpi_vclock_merge(a->clock, a->clock_count, b->clock, b->clock_count, out->clock);
    trp_err err = merge_reachability(out, a, b);
    return err == TRP_OK ? trpi_gossip_freeze(out) : err;
}

trp_err
trpi_gossip_merge(trpi_gossip *a, trpi_gossip *b, trpi_gossip **ret_merged)
{
    trpi_assert(a->frozen && b->frozen);
    if (a == b) {
        *ret_merged = trpi_gossip_ref(a);
        return TRP_OK;
    }
    trpi_vclock_order order = trpi_gossip_compare(a, b);
    if ((order == TRPI_VCLOCK_BEFORE || order == TRPI_VCLOCK_SAME) && knows_all_of(b, a)) {
        *ret_merged = trpi_gossip_ref(b);
        return TRP_OK;
    }
    if ((order == TRPI_VCLOCK_AFTER || order == TRPI_VCLOCK_SAME) && knows_all_of(a, b)) {
        *ret_merged = trpi_gossip_ref(a);
        return TRP_OK;
    }
    trpi_gossip *out = trpi_gossip_new();
    if (out == NULL) {
        return TRP_ENOMEM;
    }
    trp_err err = merge_into(out, a, b);
    if (err != TRP_OK) {
        trpi_gossip_unref(out);
        return err;
    }
    /* Nothing new: share the existing snapshot, and with it its encoding. */
    trpi_gossip *same = NULL;
    if (out->digest == b->digest && tombstones_cover(b, a) && members_cover(b, a)) {
        same = b;
    } else if (out->digest == a->digest && tombstones_cover(a, b) && members_cover(a, b)) {
        same = a;
    }
    if (same != NULL) {
        trpi_gossip_unref(out);
        out = trpi_gossip_ref(same);
    }
    *ret_merged = out;
    return TRP_OK;
}
