/* gossip_cache.c - what one node has computed is there for the others of its process.
 *
 * Why.     A simulated cluster of thousands is one process, and a version runs through it as a
 *          wave: without this each node would decode it, merge it and keep it for itself.
 * Must hold.
 *   gossip-cache-X1  An answer is what the caller would have computed itself: kept views are
 *       compared with the bytes or the very snapshots that are asked about, never with a hash
 *       alone.
 *   gossip-cache-X2  Only what has been decoded answers for bytes: each distinct view passes the
 *       codec once.
 * Limits.  WAYS of one hash are kept; who was not asked for the longest goes first. Identities are
 *          kept until the end.
 * Tests.   tests/unit/cluster/gossip_codec_test.c
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "cluster/engine/gossip_codec.h"

#define WAYS 4u
#define TAIL_BYTES 1024u /* of a view: its clock, which no other version has */

struct merge {
    trpi_gossip *a, *b, *merged;
};

struct trpi_gossip_cache {
    uint32_t slots_count; /* WAYS for each hash, the last asked for first */
    struct merge *merges; /* slots_count; by the digests of a and b */
    trpi_ident **idents;  /* by key: open addressing, at most half full */
    uint32_t idents_count, idents_room;
    trpi_gossip *slots[]; /* views, by the hash of their bytes */
};

trpi_gossip_cache *
trpi_gossip_cache_new(uint32_t slots)
{
    trpi_assert(slots > 0 && slots % WAYS == 0);
    trpi_gossip_cache *cache = trpi_alloc(sizeof(*cache) + slots * sizeof(trpi_gossip *));
    if (cache != NULL) {
        cache->slots_count = slots;
        cache->merges = trpi_alloc(slots * sizeof(*cache->merges));
    }
    if (cache != NULL && cache->merges == NULL) {
        trpi_free(cache);
        cache = NULL;
    }
    return cache;
}

static void
merge_clear(struct merge *m)
{
    trpi_gossip_unref(m->a);
    trpi_gossip_unref(m->b);
    trpi_gossip_unref(m->merged);
}

void
trpi_gossip_cache_free(trpi_gossip_cache *cache)
{
    if (cache == NULL) {
        return;
    }
    for (uint32_t i = 0; i < cache->slots_count; i++) {
        trpi_gossip_unref(cache->slots[i]);
        merge_clear(&cache->merges[i]);
    }
    for (uint32_t i = 0; i < cache->idents_room; i++) {
        trpi_ident_unref(cache->idents[i]);
    }
    trpi_free(cache->idents);
    trpi_free(cache->merges);
    trpi_free(cache);
}

/* ---- identities ------------------------------------------------------------------------------ */

static trpi_ident **
ident_place(trpi_ident **idents, uint32_t room, uint64_t key)
{
    uint32_t at = (uint32_t)key & (room - 1); /* keys are hashes */
    while (idents[at] != NULL && idents[at]->key != key) {
        at = (at + 1) & (room - 1);
    }
    return &idents[at];
}

static bool
idents_grow(trpi_gossip_cache *cache)
{
    if (cache->idents_count * 2 < cache->idents_room) {
        return true;
    }
    uint32_t room = cache->idents_room == 0 ? 64 : cache->idents_room * 2;
    trpi_ident **bigger = trpi_alloc(room * sizeof(*bigger));
    if (bigger == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < cache->idents_room; i++) {
        if (cache->idents[i] != NULL) {
            *ident_place(bigger, room, cache->idents[i]->key) = cache->idents[i];
        }
    }
    trpi_free(cache->idents);
    cache->idents = bigger;
    cache->idents_room = room;
    return true;
}

static bool
idents_are_equal(const trpi_ident *a, const trpi_ident *b)
{
    return trpi_node_id_equal(&a->id, &b->id) && strcmp(a->app_version, b->app_version) == 0 &&
           strcmp(a->build, b->build) == 0 && strcmp(a->roles_text, b->roles_text) == 0;
}

trpi_ident *
trpi_gossip_cache_ident(trpi_gossip_cache *cache, trpi_ident *ident)
{
    if (cache == NULL || !idents_grow(cache)) {
        return ident;
    }
    trpi_ident **place = ident_place(cache->idents, cache->idents_room, ident->key);
    if (*place == NULL) {
        *place = trpi_ident_ref(ident);
        cache->idents_count++;
    } else if (*place != ident && idents_are_equal(*place, ident)) { /* gossip-cache-X1 */
        trpi_ident_unref(ident);
        return trpi_ident_ref(*place);
    }
    return ident;
}

/* ---- views ----------------------------------------------------------------------------------- */

static bool
has_bytes(const trpi_gossip *gossip, const uint8_t *bytes, size_t count)
{
    return gossip->encoded_bytes == count && memcmp(gossip->encoded, bytes, count) == 0;
}

/* The WAYS places where a view of these bytes may be. */
static trpi_gossip **
view_ways(trpi_gossip_cache *cache, const uint8_t *bytes, size_t count)
{
    size_t tail = count < TAIL_BYTES ? count : TAIL_BYTES;
    uint64_t hash = trpi_hash(bytes + count - tail, tail, count);
    return &cache->slots[hash % (cache->slots_count / WAYS) * WAYS];
}

/* The kept view of these bytes (gossip-cache-X1), which is the first of its ways from now on; NULL:
 * none. */
static trpi_gossip *
view_find(trpi_gossip **ways, const uint8_t *bytes, size_t count)
{
    for (uint32_t i = 0; i < WAYS && ways[i] != NULL; i++) {
        if (has_bytes(ways[i], bytes, count)) {
            trpi_gossip *found = ways[i];
            memmove(ways + 1, ways, i * sizeof(*ways));
            ways[0] = found;
            return found;
        }
    }
    return NULL;
}

trp_err
trpi_gossip_cache_decode(trpi_gossip_cache *cache, const uint8_t *bytes, size_t count,
                         const trpi_gossip *known, trpi_gossip **ret_gossip)
{
    if (cache == NULL) {
        return trpi_gossip_decode(bytes, count, known, ret_gossip);
    }
    trpi_gossip **ways = view_ways(cache, bytes, count);
    trpi_gossip *gossip = view_find(ways, bytes, count);
    if (gossip != NULL) {
        *ret_gossip = trpi_gossip_ref(gossip);
        return TRP_OK;
    }
    trp_err err = trpi_gossip_decode(bytes, count, known, &gossip);
    if (err != TRP_OK) {
        return err;
    }
    for (uint32_t i = 0; i < gossip->members_count; i++) {
        gossip->members[i].ident = trpi_gossip_cache_ident(cache, gossip->members[i].ident);
    }
    /* Only what we would write the same way may answer for these bytes. */
    if (trpi_gossip_encode(gossip) == TRP_OK && has_bytes(gossip, bytes, count)) {
        trpi_gossip_unref(ways[WAYS - 1]);
        memmove(ways + 1, ways, (WAYS - 1) * sizeof(*ways));
        ways[0] = trpi_gossip_ref(gossip);
    }
    *ret_gossip = gossip;
    return TRP_OK;
}

/* Give the decoded view that is equal to this one, if there is one (gossip-cache-X2). Takes
 * gossip. */
static trpi_gossip *
view_share(trpi_gossip_cache *cache, trpi_gossip *gossip)
{
    if (trpi_gossip_encode(gossip) != TRP_OK) {
        return gossip;
    }
    trpi_gossip *found = view_find(view_ways(cache, gossip->encoded, gossip->encoded_bytes),
                                   gossip->encoded, gossip->encoded_bytes);
    if (found == NULL || found == gossip) {
        return gossip;
    }
    trpi_gossip_unref(gossip);
    return trpi_gossip_ref(found);
}

trp_err
trpi_gossip_cache_merge(trpi_gossip_cache *cache, trpi_gossip *a, trpi_gossip *b,
                        trpi_gossip **ret_merged)
{
    if (cache == NULL || a == b) {
        return trpi_gossip_merge(a, b, ret_merged);
    }
    uint64_t digests[2] = { a->digest, b->digest };
    struct merge *ways = &cache->merges[trpi_hash(digests, sizeof(digests), 0) %
                                        (cache->slots_count / WAYS) * WAYS];
    for (uint32_t i = 0; i < WAYS; i++) {
        /* gossip-cache-X1: both are held, so they are the same ones */
        if (ways[i].a == a && ways[i].b == b) {
            struct merge found = ways[i];
            memmove(ways + 1, ways, i * sizeof(*ways));
            ways[0] = found;
            *ret_merged = trpi_gossip_ref(found.merged);
            return TRP_OK;
        }
    }
    trpi_gossip *merged;
    trp_err err = trpi_gossip_merge(a, b, &merged);
    if (err == TRP_OK) {
        merged = view_share(cache, merged);
        merge_clear(&ways[WAYS - 1]);
        memmove(ways + 1, ways, (WAYS - 1) * sizeof(*ways));
        ways[0] = (struct merge){ trpi_gossip_ref(a), trpi_gossip_ref(b), trpi_gossip_ref(merged) };
        *ret_merged = merged;
    }
    return err;
}
