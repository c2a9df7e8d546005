/* entity_cache.c - see entity_cache.h.
 *
 * Why.     Actors that are told by ref in turn stand in turn, and the processor fetches them ahead;
 *          names lead anywhere. With one line in place of three a tell by name costs twice a tell
 *          by ref, not four times (docs/performance.md).
 * Must hold.
 *   entity-cache-C1  A place goes from free to a target and back: target is set to 0, then the id
 *       is written, then the next target. A target is of one incarnation and never comes again for
 *       another id, so whoever reads the same target before and after the id has read its id.
 *   entity-cache-C2  A place has no target that its entry has not: it is filled behind the entry's
 *       target (region-O1), and free before the grace period that closes target or route begins
 *       (region-O2). The target of an incarnation that ended by itself is stale until the region
 *       hears of that: it leads to no cell.
 * Cost.    40 bytes a place; twice as many places as live entities, TRPI_CACHE_PLACES_MOST at most.
 * Tests.   tests/unit/cluster/entity_cache_test.c, entity_test.c
 */
#include "cluster/sharding/entity_cache.h"

#include "base/alloc.h"
#include "cluster/sharding/region.h"

void
trpi_entity_cache_free(void *cache)
{
    if (cache != NULL) {
        trpi_free(((trpi_entity_cache *)cache)->owners);
        trpi_free(cache);
    }
}

static trpi_entity_cache *
cache_of(const trpi_region *region)
{
    return atomic_load_explicit(&region->cache, memory_order_relaxed);
}

/* The place of entry, or of nobody with entry NULL: an index; UINT32_MAX: none. */
static uint32_t
place_find(const trpi_entity_cache *cache, uint64_t hash, const trpi_entry *entry)
{
    uint32_t first = (uint32_t)hash & cache->mask;
    return cache->owners[first] == entry       ? first
           : cache->owners[first ^ 1] == entry ? first ^ 1
                                               : UINT32_MAX;
}

static void
place_free(trpi_entity_cache *cache, uint32_t at)
{
    trpi_cached *place = &cache->places[at];
    uint32_t used = atomic_load_explicit(&place->used, memory_order_relaxed);
    /* seq_cst, as all changes of target: region-O2 */
    atomic_store(&place->target, TRPI_TARGET_NONE);
    atomic_store_explicit(&cache->owners[at]->used, used, memory_order_relaxed);
    cache->owners[at] = NULL;
    cache->count--;
}

/* In a full bucket the one that was told longest ago makes room, if it was not told lately. */
static uint32_t
place_make(const trpi_region *region, trpi_entity_cache *cache, uint64_t hash)
{
    uint32_t at = place_find(cache, hash, NULL);
    if (at == UINT32_MAX) {
        uint32_t clock = atomic_load_explicit(&region->clock, memory_order_relaxed);
        uint32_t first = (uint32_t)hash & cache->mask;
        uint32_t ages[2];
        for (uint32_t i = 0; i < 2; i++) {
            ages[i] =
                clock - atomic_load_explicit(&cache->places[first ^ i].used, memory_order_relaxed);
        }
        uint32_t older = ages[1] > ages[0];
        if (ages[older] == 0) {
            return UINT32_MAX;
        }
        at = first ^ older;
        place_free(cache, at);
    }
    return at;
}

static void
place_put(const trpi_region *region, trpi_entity_cache *cache, trpi_entry *entry)
{
    uint32_t at = place_find(cache, entry->hash, entry);
    if (at != UINT32_MAX) {
        place_free(cache, at);
    }
    at = place_make(region, cache, entry->hash);
    if (at == UINT32_MAX) {
        return;
    }
    trpi_cached *place = &cache->places[at];
    trpi_cached_id words = trpi_cached_id_of(entry->id, entry->id_bytes);
    /* release: whoever reads one of these words sees that target was free before them */
    atomic_store_explicit(&place->low, words.low, memory_order_release);
    atomic_store_explicit(&place->high, words.high, memory_order_release);
    atomic_store_explicit(&place->tail, words.tail, memory_order_release);
    atomic_store_explicit(&place->used, atomic_load_explicit(&entry->used, memory_order_relaxed),
                          memory_order_relaxed);
    cache->owners[at] = entry;
    cache->count++;
    /* release: pairs with the acquire in trpi_entity_cache_find() */
    atomic_store_explicit(&place->target,
                          atomic_load_explicit(&entry->target, memory_order_relaxed),
                          memory_order_release);
}

/* All live entities, also those that had found no place. */
static void
cache_fill(const trpi_region *region, trpi_entity_cache *cache)
{
    for (uint32_t i = 0; i < region->options.shards; i++) {
        const trpi_shard *shard = &region->shards[i];
        uint32_t places =
            atomic_load_explicit(&shard->route, memory_order_relaxed) == TRPI_ROUTE_LOCAL
                ? trpi_entry_places(&shard->entries)
                : 0;
        for (uint32_t place = 0; place < places; place++) {
            trpi_entry *entry = trpi_entry_at(&shard->entries, place);
            if (entry != NULL && entry->id_bytes <= TRPI_CACHED_ID_BYTES_MAX &&
                atomic_load_explicit(&entry->target, memory_order_relaxed) >= TRPI_TARGET_LEAST) {
                place_put(region, cache, entry);
            }
        }
    }
}

/* A cache of twice as many places. NULL: no memory. */
static trpi_entity_cache *
cache_grow(trpi_region *region, trpi_entity_cache *old)
{
    uint32_t places = old == NULL ? TRPI_CACHE_PLACES_LEAST : (old->mask + 1) * 2;
    trpi_entity_cache *cache = trpi_alloc_aligned(64, sizeof *cache + places * sizeof(trpi_cached));
    trpi_entry **owners = trpi_alloc(places * sizeof owners[0]);
    if (cache == NULL || owners == NULL) {
        trpi_free(cache);
        trpi_free(owners);
        return NULL;
    }
    cache->mask = places - 1;
    cache->owners = owners;
    for (uint32_t i = 0; old != NULL && i <= old->mask; i++) {
        if (old->owners[i] != NULL) {
            trpi_entity_cache_look(region, old->owners[i]);
        }
    }
    cache_fill(region, cache);
    /* release: pairs with the acquire of tellers */
    atomic_store_explicit(&region->cache, cache, memory_order_release);
    if (old != NULL) {
        trpi_system_retire(region->system, trpi_entity_cache_free, old);
    }
    return cache;
}

void
trpi_entity_cache_put(trpi_region *region, trpi_entry *entry)
{
    trpi_entity_cache *cache = cache_of(region);
    if (entry->id_bytes > TRPI_CACHED_ID_BYTES_MAX) {
        return;
    }
    if (cache == NULL ||
        (cache->count * 2 > cache->mask && cache->mask + 1 < TRPI_CACHE_PLACES_MOST)) {
        trpi_entity_cache *grown = cache_grow(region, cache);
        cache = grown == NULL ? cache : grown;
    }
    if (cache != NULL) {
        place_put(region, cache, entry);
    }
}

void
trpi_entity_cache_drop(const trpi_region *region, trpi_entry *entry)
{
    trpi_entity_cache *cache = cache_of(region);
    uint32_t at = cache == NULL ? UINT32_MAX : place_find(cache, entry->hash, entry);
    if (at != UINT32_MAX) {
        place_free(cache, at);
    }
}

void
trpi_entity_cache_look(const trpi_region *region, trpi_entry *entry)
{
    const trpi_entity_cache *cache = cache_of(region);
    uint32_t at = cache == NULL ? UINT32_MAX : place_find(cache, entry->hash, entry);
    if (at != UINT32_MAX) {
        atomic_store_explicit(&entry->used,
                              atomic_load_explicit(&cache->places[at].used, memory_order_relaxed),
                              memory_order_relaxed);
    }
}

void
trpi_entity_cache_clear(trpi_region *region)
{
    trpi_entity_cache *cache = cache_of(region);
    for (uint32_t i = 0; cache != NULL && i <= cache->mask; i++) {
        if (cache->owners[i] != NULL) {
            place_free(cache, i);
        }
    }
}
