/* registry.c - named children, found in constant time.
 *
 * Why.     Paths are walked by threads that may not touch child lists. A name is therefore also
 *          kept here, under a lock that is held for a few dozen instructions.
 * Shape.   16 shards by hash of (parent slot, name). A shard is a mutex, a chained hash table and
 *          an array from index to entry. An index is local << 4 | shard, local counts from 1, so
 *          that a cell needs 4 bytes and 0 means "no name".
 * Must hold.
 *   registry-I1  Two entries of one shard never have the same parent and name.            (reserve)
 *   registry-I2  An index is reused only after release. (reserve, release)
 * Limits.  2^28 - 2 names in a shard: an index has 32 bits.
 * Cost.    48 bytes plus the name, once per named actor. Unnamed actors cost nothing.
 * Tests.   tests/unit/actor/path_test.c
 */
#include "actor/naming/registry.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/mutex.h"

#define SHARD_BITS 4
#define SHARDS (1u << SHARD_BITS)
#define LOCALS_MAX ((1u << (32 - SHARD_BITS)) - 1u)
#define BUCKETS_FIRST 16u

typedef struct entry {
    struct entry *next; /* chain of the bucket */
    uint64_t hash;
    uint32_t parent_slot;
    uint32_t slot, generation; /* generation 0: reserved, not bound yet */
    uint32_t index;
    uint32_t name_bytes;
    char name[]; /* no NUL */
} entry;

typedef struct shard {
    pthread_mutex_t lock; /* guards all below; a leaf: nothing is locked while it is held */
    entry **buckets;
    uint32_t buckets_count; /* 0 or a power of two */
    uint32_t count;
    entry **by_local; /* [0] unused */
    uint32_t locals_count, locals_capacity;
    uint32_t *free_locals; /* same capacity as by_local: a release never allocates */
    uint32_t free_count;
} shard;

struct trpi_registry {
    uint64_t seed;
    shard shards[SHARDS];
};

trp_err
trpi_registry_new(uint64_t seed, trpi_registry **ret_registry)
{
    trpi_registry *registry = trpi_alloc(sizeof *registry);

    if (registry == NULL) {
        return TRP_ENOMEM;
    }
    registry->seed = seed;
    for (uint32_t i = 0; i < SHARDS; i++) {
        pthread_mutex_init(&registry->shards[i].lock, NULL);
    }
    *ret_registry = registry;
    return TRP_OK;
}

void
trpi_registry_free(trpi_registry *registry)
{
    if (registry == NULL) {
        return;
    }
    for (uint32_t i = 0; i < SHARDS; i++) {
        shard *s = &registry->shards[i];

        for (uint32_t k = 1; k < s->locals_count; k++) {
            trpi_free(s->by_local[k]);
        }
        trpi_free(s->by_local);
        trpi_free(s->free_locals);
        trpi_free(s->buckets);
        trpi_mutex_destroy(&s->lock);
    }
    trpi_free(registry);
}

static uint64_t
name_hash(const trpi_registry *registry, uint32_t parent_slot, const char *name, size_t bytes)
{
    return trpi_hash(name, bytes, registry->seed ^ trpi_hash_u64(parent_slot));
}

static shard *
shard_of(trpi_registry *registry, uint64_t hash)
{
    return &registry->shards[hash >> (64 - SHARD_BITS)];
}

static entry *
find_locked(const shard *s, uint64_t hash, uint32_t parent_slot, const char *name, size_t bytes)
{
    entry *e = s->buckets_count == 0 ? NULL : s->buckets[hash & (s->buckets_count - 1)];

    for (; e != NULL; e = e->next) {
        if (e->hash == hash && e->parent_slot == parent_slot && e->name_bytes == bytes &&
            memcmp(e->name, name, bytes) == 0) {
            return e;
        }
    }
    return NULL;
}

/* Double the bucket array when it is full. */
static trp_err
grow_buckets(shard *s)
{
    uint32_t count = s->buckets_count == 0 ? BUCKETS_FIRST : s->buckets_count * 2;
    entry **buckets;

    if (s->count < s->buckets_count) {
        return TRP_OK;
    }
    buckets = trpi_alloc(count * sizeof *buckets);
    if (buckets == NULL) {
        return TRP_ENOMEM;
    }
    for (uint32_t i = 0; i < s->buckets_count; i++) {
        entry *next;

        for (entry *e = s->buckets[i]; e != NULL; e = next) {
            next = e->next;
            e->next = buckets[e->hash & (count - 1)];
            buckets[e->hash & (count - 1)] = e;
        }
    }
    trpi_free(s->buckets);
    s->buckets = buckets;
    s->buckets_count = count;
    return TRP_OK;
}

static trp_err
local_new(shard *s, uint32_t *ret_local)
{
    if (s->free_count > 0) {
        *ret_local = s->free_locals[--s->free_count];
        return TRP_OK;
    }
    if (s->locals_count == s->locals_capacity) {
        uint32_t capacity = s->locals_capacity == 0 ? BUCKETS_FIRST : s->locals_capacity * 2;
        entry **by_local;
        uint32_t *free_locals;

        if (capacity > LOCALS_MAX) {
            return TRP_ENOMEM;
        }
        by_local = trpi_realloc(s->by_local, capacity * sizeof *by_local);
        if (by_local == NULL) {
            return TRP_ENOMEM;
        }
        s->by_local = by_local;
        free_locals = trpi_realloc(s->free_locals, capacity * sizeof *free_locals);
        if (free_locals == NULL) {
            return TRP_ENOMEM;
        }
        s->free_locals = free_locals;
        s->locals_capacity = capacity;
        if (s->locals_count == 0) {
            s->by_local[0] = NULL;
            s->locals_count = 1;
        }
    }
    *ret_local = s->locals_count++;
    return TRP_OK;
}

static trp_err
reserve_locked(shard *s, uint32_t shard_index, entry *e)
{
    uint32_t local;
    trp_err err;

    if (find_locked(s, e->hash, e->parent_slot, e->name, e->name_bytes) != NULL) {
        return TRP_EEXIST;
    }
    err = grow_buckets(s);
    if (err == TRP_OK) {
        err = local_new(s, &local);
    }
    if (err != TRP_OK) {
        return err;
    }
    e->index = local << SHARD_BITS | shard_index;
    s->by_local[local] = e;
    e->next = s->buckets[e->hash & (s->buckets_count - 1)];
    s->buckets[e->hash & (s->buckets_count - 1)] = e;
    s->count++;
    return TRP_OK;
}

trp_err
trpi_registry_reserve(trpi_registry *registry, uint32_t parent_slot, const char *name,
                      size_t name_bytes, uint32_t *ret_index)
{
    uint64_t hash = name_hash(registry, parent_slot, name, name_bytes);
    shard *s = shard_of(registry, hash);
    entry *e = trpi_alloc(sizeof *e + name_bytes);
    trp_err err;

    if (e == NULL) {
        return TRP_ENOMEM;
    }
    e->hash = hash;
    e->parent_slot = parent_slot;
    e->name_bytes = (uint32_t)name_bytes;
    memcpy(e->name, name, name_bytes);
    pthread_mutex_lock(&s->lock);
    err = reserve_locked(s, (uint32_t)(s - registry->shards), e);
    pthread_mutex_unlock(&s->lock);
    if (err != TRP_OK) {
        trpi_free(e);
        return err;
    }
    trpi_assert(e->index != 0);
    *ret_index = e->index;
    return TRP_OK;
}

/* The entry of an index, NULL when it is free; the shard is locked. */
static entry *
by_index(const shard *s, uint32_t index)
{
    uint32_t local = index >> SHARD_BITS;

    return local == 0 || local >= s->locals_count ? NULL : s->by_local[local];
}

void
trpi_registry_bind(trpi_registry *registry, uint32_t index, uint32_t slot, uint32_t generation)
{
    shard *s = &registry->shards[index & (SHARDS - 1)];
    entry *e;

    pthread_mutex_lock(&s->lock);
    e = by_index(s, index);
    trpi_assert(e != NULL);
    e->slot = slot;
    e->generation = generation;
    pthread_mutex_unlock(&s->lock);
}

bool
trpi_registry_find(trpi_registry *registry, uint32_t parent_slot, const char *name,
                   size_t name_bytes, uint32_t *ret_slot, uint32_t *ret_generation)
{
    uint64_t hash = name_hash(registry, parent_slot, name, name_bytes);
    shard *s = shard_of(registry, hash);
    const entry *e;
    bool found;

    pthread_mutex_lock(&s->lock);
    e = find_locked(s, hash, parent_slot, name, name_bytes);
    found = e != NULL && e->generation != 0;
    if (found) {
        *ret_slot = e->slot;
        *ret_generation = e->generation;
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}

static size_t
name_locked(const shard *s, uint32_t index, char *buffer, size_t bytes)
{
    const entry *e = by_index(s, index);
    size_t count = 0;

    if (e != NULL) {
        count = e->name_bytes < bytes - 1 ? e->name_bytes : bytes - 1;
        memcpy(buffer, e->name, count);
    }
    buffer[count] = 0;
    return count;
}

size_t
trpi_registry_name(trpi_registry *registry, uint32_t index, char *buffer, size_t bytes)
{
    shard *s = &registry->shards[index & (SHARDS - 1)];
    size_t count;

    trpi_assert(bytes > 0);
    pthread_mutex_lock(&s->lock);
    count = name_locked(s, index, buffer, bytes);
    pthread_mutex_unlock(&s->lock);
    return count;
}

bool
trpi_registry_name_try(trpi_registry *registry, uint32_t index, char *buffer, size_t bytes)
{
    shard *s = &registry->shards[index & (SHARDS - 1)];

    trpi_assert(bytes > 0);
    if (pthread_mutex_trylock(&s->lock) != 0) {
        return false;
    }
    (void)name_locked(s, index, buffer, bytes);
    pthread_mutex_unlock(&s->lock);
    return true;
}

void
trpi_registry_release(trpi_registry *registry, uint32_t index)
{
    shard *s = &registry->shards[index & (SHARDS - 1)];
    entry *e;
    entry **link;

    pthread_mutex_lock(&s->lock);
    e = by_index(s, index);
    trpi_assert(e != NULL);
    link = &s->buckets[e->hash & (s->buckets_count - 1)];
    while (*link != e) {
        link = &(*link)->next;
    }
    *link = e->next;
    s->by_local[index >> SHARD_BITS] = NULL;
    s->free_locals[s->free_count++] = index >> SHARD_BITS;
    s->count--;
    pthread_mutex_unlock(&s->lock);
    trpi_free(e);
}
