/* registry.c - named children, found in constant time.
 *
 * Why.     Any thread resolves paths, but only a parent's runner may read its child list. So names
 *          are also kept here, under a lock that is held for a few dozen instructions.
 * Shape.   16 shards by hash of (parent slot, name). A shard is a mutex, a hash table and an array
 *          from index to entry. An index is local << 4 | shard, local counts from 1, so
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
#include "base/array.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/mutex.h"
#include "base/table.h"

#define SHARD_BITS 4
#define SHARDS (1u << SHARD_BITS)
#define LOCALS_MAX ((1u << (32 - SHARD_BITS)) - 1u)

typedef struct entry {
    uint64_t hash;
    uint32_t parent_slot;
    uint32_t slot, generation; /* generation 0: reserved, not bound yet */
    uint32_t index;
    uint32_t name_bytes;
    char name[]; /* no NUL */
} entry;

typedef struct shard {
    pthread_mutex_t lock;  /* guards all below; a leaf: nothing is locked while it is held */
    trpi_table names;      /* of entry * */
    entry **by_local;      /* [0] unused */
    uint32_t *free_locals; /* has as much room as by_local: a release never allocates */
    uint32_t by_local_count, by_local_room;
    uint32_t free_locals_count, free_locals_room;
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

        for (uint32_t k = 1; k < s->by_local_count; k++) {
            trpi_free(s->by_local[k]);
        }
        trpi_free(s->by_local);
        trpi_free(s->free_locals);
        trpi_table_fini(&s->names);
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

typedef struct name_key {
    const char *name;
    size_t bytes;
    uint32_t parent_slot;
} name_key;

static uint64_t
entry_hash(const void *arg, const void *element)
{
    (void)arg;
    return (*(entry *const *)element)->hash;
}

static bool
entry_is_key(const void *arg, const void *element, const void *key)
{
    const entry *e = *(entry *const *)element;
    const name_key *k = key;

    (void)arg;
    return e->parent_slot == k->parent_slot && e->name_bytes == k->bytes &&
           memcmp(e->name, k->name, k->bytes) == 0;
}

static const trpi_table_kind by_name = { sizeof(entry *), trpi_table_pointer_is_empty, entry_hash,
                                         entry_is_key };

static entry *
find_locked(const shard *s, uint64_t hash, uint32_t parent_slot, const char *name, size_t bytes)
{
    const name_key key = { name, bytes, parent_slot };
    entry **place = trpi_table_find(&by_name, &s->names, NULL, hash, &key);

    return place != NULL ? *place : NULL;
}

static trp_err
local_new(shard *s, uint32_t *ret_local)
{
    if (s->free_locals_count > 0) {
        *ret_local = s->free_locals[--s->free_locals_count];
        return TRP_OK;
    }
    if (s->by_local_count >= s->by_local_room || s->by_local_count >= s->free_locals_room) {
        if (TRPI_ARRAY_RESERVE(s, by_local, 1, LOCALS_MAX) != TRP_OK ||
            TRPI_ARRAY_RESERVE(s, free_locals, s->by_local_room, LOCALS_MAX) != TRP_OK) {
            return TRP_ENOMEM;
        }
        if (s->by_local_count == 0) {
            s->by_local[s->by_local_count++] = NULL;
        }
    }
    *ret_local = s->by_local_count++;
    return TRP_OK;
}

static trp_err
reserve_locked(shard *s, uint32_t shard_index, entry *e)
{
    const name_key key = { e->name, e->name_bytes, e->parent_slot };
    entry **place;
    uint32_t local;
    trp_err err;

    if (find_locked(s, e->hash, e->parent_slot, e->name, e->name_bytes) != NULL) {
        return TRP_EEXIST;
    }
    err = trpi_table_reserve(&by_name, &s->names, NULL, s->names.count + 1);
    if (err == TRP_OK) {
        err = local_new(s, &local);
    }
    if (err != TRP_OK) {
        return err;
    }
    e->index = local << SHARD_BITS | shard_index;
    s->by_local[local] = e;
    place = trpi_table_add(&by_name, &s->names, NULL, e->hash, &key);
    *place = e;
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

    return local == 0 || local >= s->by_local_count ? NULL : s->by_local[local];
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
    name_key key;
    entry *e;

    pthread_mutex_lock(&s->lock);
    e = by_index(s, index);
    trpi_assert(e != NULL);
    key = (name_key){ e->name, e->name_bytes, e->parent_slot };
    trpi_table_remove(&by_name, &s->names, NULL,
                      trpi_table_find(&by_name, &s->names, NULL, e->hash, &key));
    s->by_local[index >> SHARD_BITS] = NULL;
    s->free_locals[s->free_locals_count++] = index >> SHARD_BITS;
    pthread_mutex_unlock(&s->lock);
    trpi_free(e);
}
