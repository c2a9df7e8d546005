/* gossip.c - snapshots of the cluster: created, edited, frozen.
 *
 * Why.     A view has many readers (engine, heartbeats, downing, events, the simulator's other
 *          nodes) and few changes. So it is immutable once frozen, and a change is a copy.
 * Shape.   new/copy --edits--> freeze --> shared, counted, until the last unref
 * Must hold (ensured by freeze: parts of a hostile peer's view that break them are dropped).
 *   gossip-G1  Members are sorted and unique; none has a tombstone.
 *   gossip-G2  Rows, observer versions and clock entries name members only.
 *   gossip-G3  Two snapshots that know the same have the same digest.
 * Limits.  TRPI_GOSSIP_*_MAX in gossip.h.
 * Not here. Merge (gossip_merge.c), indexes (gossip_index.c), queries (gossip_view.c), encoding
 *          (gossip_codec.c).
 * Tests.   tests/unit/cluster/gossip_test.c
 */
#include "cluster/engine/gossip.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/hash.h"

trpi_gossip *
trpi_gossip_new(void)
{
    trpi_gossip *gossip = trpi_alloc(sizeof *gossip);
    if (gossip != NULL) {
        gossip->refs = 1;
    }
    return gossip;
}

/* Copy count elements into a new array with room for four more; false: no memory. */
static bool
copy_array(void **to, uint32_t *to_room, const void *from, uint32_t count, size_t element_bytes)
{
    trpi_assert_slow(element_bytes > 0);
    *to = trpi_alloc((count + 4) * element_bytes);
    if (*to == NULL) {
        return false;
    }
    *to_room = count + 4;
    if (count > 0) {
        memcpy(*to, from, count * element_bytes);
    }
    trpi_assert_slow(*to_room >= count);
    return true;
}

trpi_gossip *
trpi_gossip_copy(const trpi_gossip *from)
{
    trpi_assert_slow(from->refs > 0);
    trpi_gossip *to = trpi_gossip_new();
    if (to == NULL) {
        return NULL;
    }
    if (!copy_array((void **)&to->members, &to->members_room, from->members, from->members_count,
                    sizeof *from->members)) {
        goto fail;
    }
    to->members_count = from->members_count;
    for (uint32_t i = 0; i < to->members_count; i++) {
        trpi_ident_ref(to->members[i].ident);
    }
    if (!copy_array((void **)&to->rows, &to->rows_room, from->rows, from->rows_count,
                    sizeof *from->rows) ||
        !copy_array((void **)&to->versions, &to->versions_room, from->versions,
                    from->versions_count, sizeof *from->versions) ||
        !copy_array((void **)&to->tombstones, &to->tombstones_room, from->tombstones,
                    from->tombstones_count, sizeof *from->tombstones) ||
        !copy_array((void **)&to->clock, &to->clock_room, from->clock, from->clock_count,
                    sizeof *from->clock)) {
        goto fail;
    }
    to->rows_count = from->rows_count;
    to->versions_count = from->versions_count;
    to->tombstones_count = from->tombstones_count;
    to->clock_count = from->clock_count;
    return to;
fail:
    trpi_gossip_unref(to);
    return NULL;
}

trpi_gossip *
trpi_gossip_ref(trpi_gossip *gossip)
{
    trpi_assert(gossip->refs > 0);
    gossip->refs++;
    return gossip;
}

void
trpi_gossip_unref(trpi_gossip *gossip)
{
    if (gossip == NULL || --gossip->refs > 0) {
        return;
    }
    for (uint32_t i = 0; i < gossip->members_count; i++) {
        trpi_ident_unref(gossip->members[i].ident);
    }
    trpi_free(gossip->members);
    trpi_table_fini(&gossip->slots);
    trpi_free(gossip->deciders);
    trpi_free(gossip->ring);
    trpi_free(gossip->kinds);
    trpi_free(gossip->rows);
    trpi_free(gossip->versions);
    trpi_free(gossip->tombstones);
    trpi_free(gossip->clock);
    trpi_free(gossip->encoded);
    trpi_free(gossip);
}

/* ---- editing --------------------------------------------------------------------------------- */

trp_err
trpi_gossip_add(trpi_gossip *gossip, trpi_ident *ident, uint32_t status, uint32_t up_number)
{
    trpi_assert_slow(!gossip->frozen);
    trpi_assert_slow(status >= TRP_MEMBER_JOINING && status <= TRP_MEMBER_DOWN);
    uint32_t at = trpi_gossip_lower(gossip, &ident->id.address);
    int order = -1;
    while (at < gossip->members_count &&
           (order = trpi_node_id_compare(&gossip->members[at].ident->id, &ident->id)) < 0) {
        at++; /* other incarnations of the address */
    }
    trpi_gossip_member *m;
    if (at < gossip->members_count && order == 0) {
        m = &gossip->members[at];
        m->status = status > m->status ? (uint16_t)status : m->status;
        m->weakly_up = m->weakly_up != 0 && m->status == TRP_MEMBER_JOINING;
        m->up_number = m->up_number == 0 ? up_number : m->up_number;
        return TRP_OK;
    }
    trp_err err = TRPI_ARRAY_RESERVE(gossip, members, 1, 2 * TRPI_GOSSIP_MEMBERS_MAX);
    if (err != TRP_OK) {
        return err;
    }
    m = &gossip->members[at];
    memmove(m + 1, m, (gossip->members_count - at) * sizeof *m);
    *m = (trpi_gossip_member){ trpi_ident_ref(ident), up_number, (uint16_t)status, 0, 0, 0 };
    gossip->members_count++;
    return TRP_OK;
}

bool
trpi_member_transition_is_legal(uint32_t from, uint32_t to)
{
    static const bool legal[8][8] = {
        [TRP_MEMBER_JOINING] = { [TRP_MEMBER_WEAKLY_UP] = true,
                                 [TRP_MEMBER_UP] = true,
                                 [TRP_MEMBER_LEAVING] = true,
                                 [TRP_MEMBER_DOWN] = true,
                                 [TRP_MEMBER_REMOVED] = true },
        [TRP_MEMBER_WEAKLY_UP] = { [TRP_MEMBER_UP] = true,
                                   [TRP_MEMBER_LEAVING] = true,
                                   [TRP_MEMBER_DOWN] = true,
                                   [TRP_MEMBER_REMOVED] = true },
        [TRP_MEMBER_UP] = { [TRP_MEMBER_LEAVING] = true,
                            [TRP_MEMBER_DOWN] = true,
                            [TRP_MEMBER_REMOVED] = true },
        [TRP_MEMBER_LEAVING] = { [TRP_MEMBER_EXITING] = true,
                                 [TRP_MEMBER_DOWN] = true,
                                 [TRP_MEMBER_REMOVED] = true },
        [TRP_MEMBER_EXITING] = { [TRP_MEMBER_DOWN] = true, [TRP_MEMBER_REMOVED] = true },
        [TRP_MEMBER_DOWN] = { [TRP_MEMBER_REMOVED] = true },
    };
    return from < 8 && to < 8 && legal[from][to];
}

void
trpi_gossip_set_status(trpi_gossip *gossip, uint32_t index, uint32_t status)
{
    trpi_assert(!gossip->frozen && index < gossip->members_count);
    trpi_gossip_member *m = &gossip->members[index];
    trpi_assert(trpi_member_transition_is_legal(trpi_member_status(m), status));
    m->weakly_up = status == TRP_MEMBER_WEAKLY_UP;
    m->status = m->weakly_up != 0 ? TRP_MEMBER_JOINING : (uint16_t)status;
}

trp_err
trpi_gossip_observe(trpi_gossip *gossip, uint64_t observer, const uint64_t *subjects,
                    uint32_t subjects_count)
{
    trpi_assert_slow(!gossip->frozen);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < gossip->rows_count; i++) {
        if (gossip->rows[i].observer != observer) {
            gossip->rows[kept++] = gossip->rows[i];
        }
    }
    gossip->rows_count = kept;
    for (uint32_t i = 0; i < subjects_count; i++) {
        trp_err err = trpi_gossip_add_row(gossip, observer, subjects[i]);
        if (err != TRP_OK) {
            return err;
        }
    }
    for (uint32_t i = 0; i < gossip->versions_count; i++) {
        if (gossip->versions[i].observer == observer) {
            gossip->versions[i].version +=
                gossip->versions[i].version < TRPI_GOSSIP_COUNTER_MAX ? 1 : 0;
            return TRP_OK;
        }
    }
    return trpi_gossip_add_version(gossip, observer, 1);
}

trp_err
trpi_gossip_remove(trpi_gossip *gossip, uint32_t index, int64_t wall_ms)
{
    trpi_assert(!gossip->frozen && index < gossip->members_count);
    trpi_assert_slow(index < gossip->members_count);
    trpi_gossip_member m = gossip->members[index];
    trpi_assert(trpi_member_transition_is_legal(m.status, TRP_MEMBER_REMOVED));
    uint32_t last = m.status == TRP_MEMBER_DOWN ? TRP_MEMBER_DOWN : TRP_MEMBER_EXITING;
    trp_err err = trpi_gossip_add_tombstone(
        gossip, (trpi_tombstone){ m.ident->key, wall_ms, last, m.settled });
    if (err != TRP_OK) {
        return err;
    }
    gossip->members_count--;
    memmove(gossip->members + index, gossip->members + index + 1,
            (gossip->members_count - index) * sizeof m);
    trpi_ident_unref(m.ident);
    trpi_assert_slow(gossip->tombstones_count > 0);
    return TRP_OK;
}

uint32_t
trpi_gossip_prune(trpi_gossip *gossip, bool (*is_old)(const void *arg, uint32_t index),
                  const void *arg)
{
    trpi_assert_slow(!gossip->frozen);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < gossip->tombstones_count; i++) {
        if (!is_old(arg, i)) {
            gossip->tombstones[kept++] = gossip->tombstones[i];
        }
    }
    uint32_t dropped = gossip->tombstones_count - kept;
    gossip->tombstones_count = kept;
    return dropped;
}

trp_err
trpi_gossip_count_up(trpi_gossip *gossip, uint64_t key)
{
    trpi_assert(!gossip->frozen);
    trp_err err = TRPI_ARRAY_RESERVE(gossip, clock, 1, 2 * TRPI_GOSSIP_MEMBERS_MAX);
    uint64_t now = trpi_vclock_get(gossip->clock, gossip->clock_count, key);
    if (err == TRP_OK && now < TRPI_GOSSIP_COUNTER_MAX) {
        gossip->clock_count = trpi_vclock_increment(gossip->clock, gossip->clock_count, key);
    }
    return err;
}

trp_err
trpi_gossip_add_row(trpi_gossip *gossip, uint64_t observer, uint64_t subject)
{
    trpi_assert(!gossip->frozen);
    trp_err err = TRPI_ARRAY_RESERVE(gossip, rows, 1, 2 * TRPI_GOSSIP_ROWS_MAX);
    if (err == TRP_OK) {
        gossip->rows[gossip->rows_count++] = (trpi_reach_row){ observer, subject };
    }
    return err;
}

trp_err
trpi_gossip_add_version(trpi_gossip *gossip, uint64_t observer, uint64_t version)
{
    trpi_assert(!gossip->frozen);
    trp_err err = TRPI_ARRAY_RESERVE(gossip, versions, 1, 2 * TRPI_GOSSIP_MEMBERS_MAX);
    if (err == TRP_OK) {
        gossip->versions[gossip->versions_count++] = (trpi_reach_version){ observer, version };
    }
    return err;
}

trp_err
trpi_gossip_add_tombstone(trpi_gossip *gossip, trpi_tombstone tombstone)
{
    /* a merge has two */
    trp_err err = TRPI_ARRAY_RESERVE(gossip, tombstones, 1, 2 * TRPI_GOSSIP_TOMBSTONES_MAX);
    if (err == TRP_OK) {
        gossip->tombstones[gossip->tombstones_count++] = tombstone;
    }
    return err;
}

trp_err
trpi_gossip_add_clock(trpi_gossip *gossip, uint64_t key, uint64_t counter)
{
    trpi_assert(!gossip->frozen);
    trp_err err = TRPI_ARRAY_RESERVE(gossip, clock, 1, 2 * TRPI_GOSSIP_MEMBERS_MAX);
    if (err == TRP_OK) {
        gossip->clock[gossip->clock_count++] = (trpi_vclock_entry){ key, counter };
    }
    return err;
}

/* ---- freezing -------------------------------------------------------------------------------- */

static int
order_u64(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}
static int
order_members(const void *a, const void *b)
{
    const trpi_ident *x = ((const trpi_gossip_member *)a)->ident;
    const trpi_ident *y = ((const trpi_gossip_member *)b)->ident;
    return x == y ? 0 : trpi_node_id_compare(&x->id, &y->id);
}
static int
order_rows(const void *a, const void *b)
{
    const trpi_reach_row *x = a;
    const trpi_reach_row *y = b;
    int by_observer = order_u64(x->observer, y->observer);
    return by_observer != 0 ? by_observer : order_u64(x->subject, y->subject);
}
static int
order_versions(const void *a, const void *b)
{
    const trpi_reach_version *x = a;
    const trpi_reach_version *y = b;
    int by_observer = order_u64(x->observer, y->observer);
    return by_observer != 0 ? by_observer : order_u64(y->version, x->version);
}
static int
order_tombstones(const void *a, const void *b)
{
    const trpi_tombstone *x = a;
    const trpi_tombstone *y = b;
    int by_key = order_u64(x->key, y->key);
    if (by_key != 0) {
        return by_key;
    }
    if (x->wall_ms != y->wall_ms) {
        return x->wall_ms > y->wall_ms ? -1 : 1; /* the younger first: it lives longer */
    }
    return (int)y->status - (int)x->status;
}
static int
order_age(const void *a, const void *b)
{
    const trpi_tombstone *x = a;
    const trpi_tombstone *y = b;
    if (x->wall_ms != y->wall_ms) {
        return x->wall_ms > y->wall_ms ? -1 : 1;
    }
    return order_u64(x->key, y->key);
}
static int
order_clock(const void *a, const void *b)
{
    const trpi_vclock_entry *x = a;
    const trpi_vclock_entry *y = b;
    int by_key = order_u64(x->key, y->key);
    return by_key != 0 ? by_key : order_u64(y->counter, x->counter);
}

/* Sort, unless the array is sorted already (the usual case) or empty (undefined for qsort). */
static void
sort_array(void *array, uint32_t count, size_t bytes, int (*order)(const void *, const void *))
{
    trpi_assert_slow(bytes > 0);
    for (uint32_t i = 1; i < count; i++) {
        const char *at = (const char *)array + i * bytes;
        if (order(at - bytes, at) > 0) {
            qsort(array, count, bytes, order);
            return;
        }
    }
}

static void
freeze_tombstones(trpi_gossip *g)
{
    trpi_assert_slow(!g->frozen);
    sort_array(g->tombstones, g->tombstones_count, sizeof *g->tombstones, order_tombstones);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < g->tombstones_count; i++) {
        if (kept == 0 || g->tombstones[kept - 1].key != g->tombstones[i].key) {
            g->tombstones[kept++] = g->tombstones[i];
        } else {
            g->tombstones[kept - 1].settled |= g->tombstones[i].settled; /* gossip-merge-M6 */
        }
    }
    g->tombstones_count = kept;
    if (kept > TRPI_GOSSIP_TOMBSTONES_MAX) {
        qsort(g->tombstones, kept, sizeof *g->tombstones, order_age);
        g->tombstones_count = TRPI_GOSSIP_TOMBSTONES_MAX;
        qsort(g->tombstones, g->tombstones_count, sizeof *g->tombstones, order_tombstones);
    }
    trpi_assert_slow(g->tombstones_count <= TRPI_GOSSIP_TOMBSTONES_MAX);
}

static trp_err
freeze_members(trpi_gossip *g)
{
    trpi_assert_slow(!g->frozen);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < g->members_count; i++) {
        if (g->tombstones_count > 0 && trpi_gossip_tombstone(g, g->members[i].ident->key) != NULL) {
            trpi_ident_unref(g->members[i].ident);
        } else {
            g->members[kept++] = g->members[i];
        }
    }
    g->members_count = kept;
    sort_array(g->members, kept, sizeof *g->members, order_members);
    return trpi_gossip_index_keys(g);
    trpi_assert_slow(g->members_count == kept);
}

/* gossip-G2, and the first of equal keys wins: the sort put the higher version and counter
 * first. */
static void
freeze_rows_and_clock(trpi_gossip *g)
{
    trpi_assert_slow(!g->frozen);
    sort_array(g->rows, g->rows_count, sizeof *g->rows, order_rows);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < g->rows_count; i++) {
        trpi_reach_row r = g->rows[i];
        bool twice = kept > 0 && order_rows(&g->rows[kept - 1], &r) == 0;
        if (!twice && r.observer != r.subject &&
            trpi_gossip_find(g, r.observer) != TRPI_GOSSIP_NONE &&
            trpi_gossip_find(g, r.subject) != TRPI_GOSSIP_NONE) {
            g->rows[kept++] = r;
        }
    }
    g->rows_count = kept;
    sort_array(g->versions, g->versions_count, sizeof *g->versions, order_versions);
    kept = 0;
    for (uint32_t i = 0; i < g->versions_count; i++) {
        trpi_reach_version v = g->versions[i];
        bool twice = kept > 0 && g->versions[kept - 1].observer == v.observer;
        if (!twice && trpi_gossip_find(g, v.observer) != TRPI_GOSSIP_NONE) {
            g->versions[kept++] = v;
        }
    }
    g->versions_count = kept;
    sort_array(g->clock, g->clock_count, sizeof *g->clock, order_clock);
    kept = 0;
    for (uint32_t i = 0; i < g->clock_count; i++) {
        trpi_vclock_entry c = g->clock[i];
        bool twice = kept > 0 && g->clock[kept - 1].key == c.key;
        if (!twice && trpi_gossip_find(g, c.key) != TRPI_GOSSIP_NONE) {
            g->clock[kept++] = c;
        }
    }
    g->clock_count = kept;
    trpi_assert_slow(g->versions_count <= g->members_count);
    trpi_assert_slow(g->clock_count <= g->members_count);
}

uint64_t
trpi_gossip_digest(const trpi_gossip *gossip)
{
    const trpi_gossip *g = gossip;
    uint64_t h = g->members_count;
    for (uint32_t i = 0; i < g->members_count; i++) {
        const trpi_gossip_member *m = &g->members[i];
        uint64_t packed[2] = { m->ident->key, (uint64_t)m->up_number << 32 |
                                                  (uint64_t)m->weakly_up << 16 | m->status };
        h = trpi_hash(packed, sizeof packed, h);
    }
    h = trpi_hash(g->rows, g->rows_count * sizeof *g->rows, h);
    h = trpi_hash(g->versions, g->versions_count * sizeof *g->versions, h);
    return trpi_hash(g->clock, g->clock_count * sizeof *g->clock, h);
}

trp_err
trpi_gossip_freeze(trpi_gossip *gossip)
{
    trpi_assert(!gossip->frozen);
    freeze_tombstones(gossip);
    trp_err err = freeze_members(gossip);
    if (err != TRP_OK) {
        return err;
    }
    freeze_rows_and_clock(gossip);
    if (gossip->members_count > TRPI_GOSSIP_MEMBERS_MAX ||
        gossip->rows_count > TRPI_GOSSIP_ROWS_MAX) {
        return TRP_ELIMIT;
    }
    err = trpi_gossip_index_reachability(gossip);
    if (err == TRP_OK) {
        err = trpi_gossip_index_state(gossip);
    }
    if (err != TRP_OK) {
        return err;
    }
    gossip->digest = trpi_gossip_digest(gossip);
    gossip->frozen = true;
    trpi_assert_slow(gossip->members_count <= TRPI_GOSSIP_MEMBERS_MAX);
    trpi_assert_slow(gossip->unreachable_count <= gossip->members_count);
    return TRP_OK;
}
