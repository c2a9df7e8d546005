/* entity_cache.h - the short way from an id to a live entity: one line of memory.
 *
 * The table of a shard leads to an entity by three lines that depend on each other. Here a place of
 * half a line has the id and the target. It is a cache: what is not found here is looked up in the
 * table, and an id of more than TRPI_CACHED_ID_BYTES_MAX bytes is never here.
 *
 * Read by tellers without a lock, in a run or between trpi_enter() and trpi_leave(); written by the
 * region's actor alone. A cache that is replaced is retired.
 */
#ifndef TRPI_CLUSTER_SHARDING_ENTITY_CACHE_H
#define TRPI_CLUSTER_SHARDING_ENTITY_CACHE_H

#include "cluster/sharding/entity_table.h"

#define TRPI_CACHED_ID_BYTES_MAX 19u
#define TRPI_CACHE_PLACES_LEAST 64u
#define TRPI_CACHE_PLACES_MOST 65536u /* 2.5 MiB */

/* An id as words that are equal only where the ids are: each word is read anywhere in it. */
typedef struct trpi_cached_id {
    uint64_t low, high;
    uint32_t tail; /* the number of bytes above the last three of more than 16 */
} trpi_cached_id;

/* Free: target is 0. entity-cache-C1 */
typedef struct trpi_cached {
    _Alignas(32) _Atomic uint64_t target;
    _Atomic uint64_t low, high;
    _Atomic uint32_t tail;
    _Atomic uint32_t used; /* as trpi_entry.used, which is older where this is newer */
} trpi_cached;

typedef struct trpi_entity_cache {
    uint32_t mask;        /* of places; a bucket of two is one line */
    uint32_t count;       /* the region's, as owners */
    trpi_entry **owners;  /* of the places */
    trpi_cached places[]; /* 64-aligned */
} trpi_entity_cache;

static inline uint64_t
trpi_cached_word(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* id_bytes: 1 to TRPI_CACHED_ID_BYTES_MAX */
static inline trpi_cached_id
trpi_cached_id_of(const char *id, size_t id_bytes)
{
    trpi_cached_id words = { 0, 0, (uint32_t)id_bytes << 24 };
    if (id_bytes >= 8) {
        words.low = trpi_cached_word(id);
        words.high = trpi_cached_word(id_bytes >= 16 ? id + 8 : id + id_bytes - 8);
        for (size_t i = 16; i < id_bytes; i++) {
            words.tail |= (uint32_t)(uint8_t)id[i] << (i - 16) * 8;
        }
    } else {
        for (size_t i = 0; i < id_bytes; i++) {
            words.low |= (uint64_t)(uint8_t)id[i] << i * 8;
        }
    }
    return words;
}

/* The target of this id, or TRPI_TARGET_NONE: it has to be looked up. Any thread. */
static inline __attribute__((always_inline)) uint64_t
trpi_entity_cache_find(const trpi_entity_cache *cache, uint64_t hash, const void *id,
                       size_t id_bytes, uint32_t clock)
{
    if (cache == NULL || id_bytes > TRPI_CACHED_ID_BYTES_MAX) {
        return TRPI_TARGET_NONE;
    }
    trpi_cached_id words = trpi_cached_id_of(id, id_bytes);
    for (uint32_t i = 0; i < 2; i++) {
        trpi_cached *place = (trpi_cached *)&cache->places[((uint32_t)hash & cache->mask) ^ i];
        /* acquire: the words are of this target, or of a later one. entity-cache-C1 */
        uint64_t target = atomic_load_explicit(&place->target, memory_order_acquire);
        if (target != TRPI_TARGET_NONE &&
            atomic_load_explicit(&place->low, memory_order_acquire) == words.low &&
            atomic_load_explicit(&place->high, memory_order_acquire) == words.high &&
            atomic_load_explicit(&place->tail, memory_order_acquire) == words.tail &&
            atomic_load_explicit(&place->target, memory_order_relaxed) == target) {
            if (atomic_load_explicit(&place->used, memory_order_relaxed) != clock) {
                atomic_store_explicit(&place->used, clock, memory_order_relaxed);
            }
            return target;
        }
    }
    return TRPI_TARGET_NONE;
}

/* A hint: trpi_entity_cache_find() comes soon. */
static inline void
trpi_entity_cache_prefetch(const trpi_entity_cache *cache, uint64_t hash)
{
    if (cache != NULL) {
        __builtin_prefetch(&cache->places[(uint32_t)hash & cache->mask]);
    }
}

struct trpi_region;
/* entry's target was set, and its shard's route is LOCAL. The region, as all below. */
void trpi_entity_cache_put(struct trpi_region *region, trpi_entry *entry);
/* entry's target, or its shard's route, is about to close. */
void trpi_entity_cache_drop(const struct trpi_region *region, trpi_entry *entry);
/* Bring entry->used up to date. */
void trpi_entity_cache_look(const struct trpi_region *region, trpi_entry *entry);
void trpi_entity_cache_clear(struct trpi_region *region); /* forget all */
void trpi_entity_cache_free(void *cache);                 /* NULL is fine; no thread reads it */

#endif
