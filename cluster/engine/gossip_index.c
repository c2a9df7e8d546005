/* gossip_index.c - indexes computed once for a snapshot, so that readers need not walk its members.
 *
 * Why.     A node takes steps all the time and its view changes now and then; in the simulator
 *          thousands of nodes read one snapshot. So a result that depends on the snapshot alone is
 *          computed when it is frozen, or when it is first asked for (the ring).
 * Shape.   slots: key -> index, open addressing, at most half full; deciders: a bit set like a seen
 *          set; ring: indexes in the order of heartbeats; kinds: one member for each set of roles.
 * Tests.   tests/unit/cluster/gossip_test.c
 */
#include "cluster/engine/gossip.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/hash.h"

/* ---- by key ---------------------------------------------------------------------------------- */

/* An element is the index of a member and 1; arg is the gossip. Keys are hashes. */
static uint64_t
slot_hash(const void *arg, const void *element)
{
    return ((const trpi_gossip *)arg)->members[*(const uint32_t *)element - 1].ident->key;
}

static bool
slot_is_key(const void *arg, const void *element, const void *key)
{
    return slot_hash(arg, element) == *(const uint64_t *)key;
}

static const trpi_table_kind by_key = { sizeof(uint32_t), trpi_table_u32_is_empty, slot_hash,
                                        slot_is_key };

trp_err
trpi_gossip_index_keys(trpi_gossip *gossip)
{
    trpi_assert_slow(!gossip->frozen);
    trpi_table slots = { 0 };
    uint32_t roomy = gossip->members_count + gossip->members_count / 2 + 1;
    /* at most half full, for it is read often */
    if (trpi_table_reserve(&by_key, &slots, gossip, roomy) != TRP_OK) {
        return TRP_ENOMEM;
    }
    for (uint32_t i = 0; i < gossip->members_count; i++) {
        uint64_t key = gossip->members[i].ident->key;
        uint32_t *slot = trpi_table_add(&by_key, &slots, gossip, key, &key);
        *slot = i + 1;
    }
    trpi_table_fini(&gossip->slots);
    gossip->slots = slots;
    return TRP_OK;
}

uint32_t
trpi_gossip_find(const trpi_gossip *gossip, uint64_t key)
{
    const uint32_t *slot = trpi_table_find(&by_key, &gossip->slots, gossip, key, &key);
    return slot != NULL ? *slot - 1 : TRPI_GOSSIP_NONE;
}

/* ---- by address ------------------------------------------------------------------------------ */

uint32_t
trpi_gossip_lower(const trpi_gossip *gossip, const trpi_address *address)
{
    trpi_node_id first = { .address = *address, .uid = 0 };
    uint32_t low = 0;
    uint32_t high = gossip->members_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (trpi_node_id_compare(&gossip->members[middle].ident->id, &first) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    trpi_assert_slow(low <= gossip->members_count);
    return low;
}

/* ---- state ----------------------------------------------------------------------------------- */

/* Return whether it is Up or Leaving: convergence always waits for such a member. */
static bool
is_settled(const trpi_gossip_member *m)
{
    return m->status == TRP_MEMBER_UP || m->status == TRP_MEMBER_LEAVING;
}

/* Return whether it is a joiner at the address of a member that is Down and had been Up: it votes
 * in that member's place (downing-votes-D6), so no member may be removed before it knows. */
static bool
is_successor(const trpi_gossip *g, uint32_t index)
{
    trpi_assert_slow(index < g->members_count);
    trpi_assert_slow(g->members[index].status == TRP_MEMBER_JOINING);
    const trpi_address *address = &g->members[index].ident->id.address;
    bool found = false;
    for (uint32_t i = index; i > 0 && !found; i--) { /* they stand side by side */
        const trpi_gossip_member *m = &g->members[i - 1];
        if (!trpi_address_equal(&m->ident->id.address, address)) {
            break;
        }
        found = m->status == TRP_MEMBER_DOWN && m->up_number != 0;
    }
    for (uint32_t i = index + 1; i < g->members_count && !found; i++) {
        const trpi_gossip_member *m = &g->members[i];
        if (!trpi_address_equal(&m->ident->id.address, address)) {
            break;
        }
        found = m->status == TRP_MEMBER_DOWN && m->up_number != 0;
    }
    return found;
}

/* Mark the members that convergence waits for: settled ones and each joiner that has a vote; if
 * none is settled, all joiners, for any of them may lead. */
static void
deciders_mark(const trpi_gossip *g, bool settled, uint64_t *deciders)
{
    trpi_assert_slow(!g->frozen);
    for (uint32_t i = 0; i < g->members_count; i++) {
        const trpi_gossip_member *m = &g->members[i];
        bool joins = m->status == TRP_MEMBER_JOINING;
        if (is_settled(m) || (joins && (!settled || is_successor(g, i)))) {
            deciders[i / 64] |= (uint64_t)1 << (i % 64);
        }
    }
}

/* Joiners do not count in the shape: one that crashes and comes back again and again must not keep
 * a decision from being made, nor may one that is told to leave. If there are only joiners, they
 * do. */
trp_err
trpi_gossip_index_state(trpi_gossip *gossip)
{
    trpi_assert_slow(!gossip->frozen);
    uint64_t *deciders = trpi_alloc((gossip->members_count / 64 + 2) * sizeof *deciders);
    uint64_t shapes[2] = { 0, 0 };
    bool any_settled = false;
    if (deciders == NULL) {
        return TRP_ENOMEM;
    }
    trpi_free(gossip->deciders);
    gossip->deciders = deciders;
    gossip->unreachable_count = gossip->blocking_count = 0;
    gossip->reach = 0;
    for (uint32_t i = 0; i < gossip->members_count; i++) {
        const trpi_gossip_member *m = &gossip->members[i];
        bool settled = is_settled(m);
        uint64_t stays = m->status != TRP_MEMBER_LEAVING ? m->status
                         : m->up_number != 0             ? TRP_MEMBER_UP
                                                         : TRP_MEMBER_JOINING;
        uint64_t packed[2] = { m->ident->key, stays << 1 | m->unreachable };
        shapes[1] = trpi_hash(packed, sizeof packed, shapes[1]);
        any_settled = any_settled || settled;
        if (settled && m->up_number != 0) {
            shapes[0] = trpi_hash(packed, sizeof packed, shapes[0]);
        }
        if (m->unreachable != 0) {
            gossip->unreachable_count++;
            gossip->blocking_count += m->status < TRP_MEMBER_EXITING ? 1 : 0;
            gossip->reach =
                settled ? trpi_hash(&packed[0], sizeof packed[0], gossip->reach) : gossip->reach;
        }
    }
    deciders_mark(gossip, any_settled, deciders);
    gossip->shape = shapes[0] != 0 ? shapes[0] : shapes[1];
    trpi_assert_slow(gossip->unreachable_count <= gossip->members_count);
    trpi_assert_slow(gossip->blocking_count <= gossip->unreachable_count);
    return TRP_OK;
}

/* ---- ring ------------------------------------------------------------------------------------ */

struct place {
    uint64_t hash, key;
    uint32_t index;
};

static int
order_places(const void *a, const void *b)
{
    const struct place *x = a;
    const struct place *y = b;
    if (x->hash != y->hash) {
        return x->hash < y->hash ? -1 : 1;
    }
    return x->key < y->key ? -1 : x->key > y->key;
}

static trp_err
ring_make(trpi_gossip *gossip)
{
    trpi_assert_slow(gossip->frozen);
    struct place *places = trpi_alloc((gossip->members_count + 1) * sizeof *places);
    uint32_t *ring = trpi_alloc((gossip->members_count + 1) * sizeof *ring);
    if (places == NULL || ring == NULL) {
        trpi_free(places);
        trpi_free(ring);
        return TRP_ENOMEM;
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < gossip->members_count; i++) {
        const trpi_gossip_member *m = &gossip->members[i];
        if (m->status != TRP_MEMBER_DOWN) {
            places[count++] = (struct place){ m->ident->ring_hash, m->ident->key, i };
        }
    }
    if (count > 1) {
        qsort(places, count, sizeof *places, order_places);
    }
    for (uint32_t i = 0; i < count; i++) {
        ring[i] = places[i].index;
    }
    trpi_free(places);
    gossip->ring = ring;
    gossip->ring_count = count;
    trpi_assert_slow(count <= gossip->members_count);
    return TRP_OK;
}

trp_err
trpi_gossip_ring(const trpi_gossip *gossip, const uint32_t **ret_ring, uint32_t *ret_count)
{
    trpi_assert(gossip->frozen);
    /* what a snapshot keeps is no change of it */
    trp_err err = gossip->ring == NULL ? ring_make((trpi_gossip *)(uintptr_t)gossip) : TRP_OK;
    *ret_ring = gossip->ring;
    *ret_count = gossip->ring_count;
    trpi_assert_slow(err != TRP_OK || *ret_count <= gossip->members_count);
    return err;
}

/* ---- roles ----------------------------------------------------------------------------------- */

#define KINDS_KNOWN 16u /* hashes of roles that are remembered: most members have those of others */

static bool
is_kind(const trpi_gossip *gossip, const trpi_ident *ident)
{
    trpi_assert_slow(gossip->kinds_count <= gossip->members_count);
    for (uint32_t i = 0; i < gossip->kinds_count; i++) {
        if (gossip->kinds[i]->roles_hash == ident->roles_hash) {
            return true;
        }
    }
    return false;
}

static trp_err
kinds_make(trpi_gossip *gossip)
{
    trpi_assert_slow(gossip->kinds_count == 0);
    uint64_t known[KINDS_KNOWN] = { 0 };
    uint32_t kinds_room = 0;
    for (uint32_t i = 0; i < gossip->members_count; i++) {
        const trpi_ident *ident = gossip->members[i].ident;
        uint64_t *place = &known[ident->roles_hash % KINDS_KNOWN];
        if (*place == ident->roles_hash || is_kind(gossip, ident)) {
            *place = ident->roles_hash;
            continue;
        }
        if (trpi_array_reserve(&gossip->kinds, gossip->kinds_count, &kinds_room,
                               sizeof *gossip->kinds, 1, TRPI_ARRAY_NO_LIMIT) != TRP_OK) {
            gossip->kinds_count = 0; /* the next call begins anew */
            trpi_free(gossip->kinds);
            gossip->kinds = NULL;
            return TRP_ENOMEM;
        }
        gossip->kinds[gossip->kinds_count++] = ident;
        *place = ident->roles_hash;
    }
    trpi_assert_slow(gossip->kinds_count <= gossip->members_count);
    return TRP_OK;
}

trp_err
trpi_gossip_kinds(const trpi_gossip *gossip, const trpi_ident *const **ret_kinds,
                  uint32_t *ret_count)
{
    trpi_assert(gossip->frozen);
    trp_err err = gossip->kinds == NULL && gossip->members_count > 0
                      ? kinds_make((trpi_gossip *)(uintptr_t)gossip) /* as the ring */
                      : TRP_OK;
    *ret_kinds = gossip->kinds;
    *ret_count = gossip->kinds_count;
    trpi_assert_slow(err != TRP_OK || *ret_count <= gossip->members_count);
    return err;
}
