/* gossip_cache.c - results that the nodes of one process share: decoded views and merges.
 *
 * Why.     A simulated cluster of thousands is one process, and each version reaches all of its
 *          nodes: without a cache each node would decode, merge and keep it for itself.
 * Must hold.
 *   gossip-cache-X1  An answer is what the caller would have computed itself: kept views are
 *       compared with the bytes or the very snapshots that are asked about, never with a hash
 *       alone.
 *   gossip-cache-X2  Only a view that was decoded answers for bytes: each distinct view passes the
 *       codec once.
 * Limits.  WAYS entries of one hash are kept; the least recently used one is evicted first.
 *          Identities are kept until the end.
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
    trpi_table idents;    /* of trpi_ident *, by key */
    trpi_gossip *slots[]; /* views, by the hash of their bytes */
};

static uint64_t
ident_hash(const void *arg, const void *element)
{
    (void)arg;
    return (*(trpi_ident *const *)element)->key; /* keys are hashes */
}

static bool
ident_is_key(const void *arg, const void *element, const void *key)
{
    return ident_hash(arg, element) == *(const uint64_t *)key;
}

static const trpi_table_kind by_key = { sizeof(trpi_ident *), trpi_table_pointer_is_empty,
                                        ident_hash, ident_is_key };

trpi_gossip_cache *
trpi_gossip_cache_new(uint32_t slots)
{
    trpi_assert(slots > 0 && slots % WAYS == 0);
    trpi_gossip_cache *cache = trpi_alloc(sizeof *cache + slots * sizeof(trpi_gossip *));
    if (cache != NULL) {
        cache->slots_count = slots;
        cache->merges = trpi_alloc(slots * sizeof *cache->merges);
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
    uint32_t at = 0;
    trpi_ident **ident;
    while ((ident = trpi_table_next(&by_key, &cache->idents, &at)) != NULL) {
        trpi_ident_unref(*ident);
    }
    trpi_table_fini(&cache->idents);
    trpi_free(cache->merges);
    trpi_free(cache);
}

/* ---- identities ------------------------------------------------------------------------------ */

static bool
idents_are_equal(const trpi_ident *a, const trpi_ident *b)
{
    trpi_assert_slow(a->key == b->key);
    return trpi_node_id_equal(&a->id, &b->id) && strcmp(a->app_version, b->app_version) == 0 &&
           strcmp(a->build, b->build) == 0 && strcmp(a->roles_text, b->roles_text) == 0;
}

trpi_ident *
trpi_gossip_cache_ident(trpi_gossip_cache *cache, trpi_ident *ident)
{
    trpi_ident **place =
        cache != NULL ? trpi_table_add(&by_key, &cache->idents, NULL, ident->key, &ident->key)
                      : NULL;
    if (place == NULL) {
        return ident;
    }
    if (*place == NULL) {
        *place = trpi_ident_ref(ident);
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
    trpi_assert_slow(gossip->frozen);
    return gossip->encoded_bytes == count && memcmp(gossip->encoded, bytes, count) == 0;
}

/* The WAYS places where a view of these bytes may be. */
static trpi_gossip **
view_ways(trpi_gossip_cache *cache, const uint8_t *bytes, size_t count)
{
    trpi_assert_slow(cache->slots_count > 0 && cache->slots_count % WAYS == 0);
    size_t tail = count < TAIL_BYTES ? count : TAIL_BYTES;
    uint64_t hash = trpi_hash(bytes + count - tail, tail, count);
    return &cache->slots[hash % (cache->slots_count / WAYS) * WAYS];
}

/* Return the kept view of these bytes (gossip-cache-X1) and move it to the front of its ways; NULL:
 * none. */
static trpi_gossip *
view_find(trpi_gossip **ways, const uint8_t *bytes, size_t count)
{
    for (uint32_t i = 0; i < WAYS && ways[i] != NULL; i++) {
        if (has_bytes(ways[i], bytes, count)) {
            trpi_gossip *found = ways[i];
            memmove(ways + 1, ways, i * sizeof *ways);
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
    trpi_assert_slow(known == NULL || known->frozen);
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
    /* Only a view that this node would encode to the same bytes may answer for them. */
    if (trpi_gossip_encode(gossip) == TRP_OK && has_bytes(gossip, bytes, count)) {
        trpi_gossip_unref(ways[WAYS - 1]);
        memmove(ways + 1, ways, (WAYS - 1) * sizeof *ways);
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
    trpi_assert_slow(cache->slots_count > 0);
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
    trpi_assert_slow(a->frozen && b->frozen);
    if (cache == NULL || a == b) {
        return trpi_gossip_merge(a, b, ret_merged);
    }
    uint64_t digests[2] = { a->digest, b->digest };
    struct merge *ways =
        &cache->merges[trpi_hash(digests, sizeof digests, 0) % (cache->slots_count / WAYS) * WAYS];
    for (uint32_t i = 0; i < WAYS; i++) {
        /* gossip-cache-X1: both are held, so they are the same ones */
        if (ways[i].a == a && ways[i].b == b) {
            struct merge found = ways[i];
            memmove(ways + 1, ways, i * sizeof *ways);
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
        memmove(ways + 1, ways, (WAYS - 1) * sizeof *ways);
        ways[0] = (struct merge){ trpi_gossip_ref(a), trpi_gossip_ref(b), trpi_gossip_ref(merged) };
        *ret_merged = merged;
    }
    return err;
}
