/* ref_map.c - open addressing with linear probing; removal shifts back, so there are no tombstones.
 *
 * Must hold.
 *   ref-map-I1  At most 3/4 of the places are taken, so every probe ends at an empty one. (put)
 *   ref-map-I2  Between a pair's home place and its place there is no empty one. (put, remove)
 * Tests.   tests/unit/actor/ref_map_test.c
 */
#include "actor/kernel/ref_map.h"

#include <stddef.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"

#define CAPACITY_FIRST 4u

static uint32_t
home_of(const trpi_ref_map *map, trp_ref ref)
{
    uint64_t key = (uint64_t)ref.generation << 32 | ref.slot;

    return (uint32_t)trpi_hash_u64(key ^ ((uint64_t)ref.node << 20)) & (map->capacity - 1);
}

/* The place of ref, or the empty place where it would go. */
static uint32_t
place_of(const trpi_ref_map *map, trp_ref ref)
{
    uint32_t place = home_of(map, ref);

    while (!trp_ref_is_none(map->pairs[place].ref) && !trp_ref_equal(map->pairs[place].ref, ref)) {
        place = (place + 1) & (map->capacity - 1);
    }
    return place;
}

static trp_err
grow(trpi_ref_map *map)
{
    trpi_ref_map bigger = { NULL, map->capacity == 0 ? CAPACITY_FIRST : map->capacity * 2,
                            map->count };

    bigger.pairs = trpi_alloc(bigger.capacity * sizeof *bigger.pairs);
    if (bigger.pairs == NULL) {
        return TRP_ENOMEM;
    }
    for (uint32_t i = 0; i < map->capacity; i++) {
        if (!trp_ref_is_none(map->pairs[i].ref)) {
            bigger.pairs[place_of(&bigger, map->pairs[i].ref)] = map->pairs[i];
        }
    }
    trpi_free(map->pairs);
    *map = bigger;
    return TRP_OK;
}

trp_err
trpi_ref_map_put(trpi_ref_map *map, trp_ref ref, void *value)
{
    uint32_t place;

    trpi_assert(!trp_ref_is_none(ref));
    if ((map->count + 1) * 4 > map->capacity * 3) {
        trp_err err = trpi_ref_map_find(map, ref) != NULL ? TRP_OK : grow(map);

        if (err != TRP_OK) {
            return err;
        }
    }
    place = place_of(map, ref);
    if (trp_ref_is_none(map->pairs[place].ref)) {
        map->count++;
    }
    map->pairs[place].ref = ref;
    map->pairs[place].value = value;
    return TRP_OK;
}

trpi_ref_pair *
trpi_ref_map_find(const trpi_ref_map *map, trp_ref ref)
{
    uint32_t place;

    if (map->count == 0) {
        return NULL;
    }
    place = place_of(map, ref);
    return trp_ref_is_none(map->pairs[place].ref) ? NULL : &map->pairs[place];
}

static void
remove_place(trpi_ref_map *map, uint32_t hole)
{
    uint32_t mask = map->capacity - 1;
    uint32_t place = hole;
    static const trpi_ref_pair empty;

    for (;;) {
        place = (place + 1) & mask;
        if (trp_ref_is_none(map->pairs[place].ref)) {
            break;
        }
        /* May the pair at place move into the hole? Only if its home is not behind the hole
         * (ref-map-I2). */
        if (((place - home_of(map, map->pairs[place].ref)) & mask) >= ((place - hole) & mask)) {
            map->pairs[hole] = map->pairs[place];
            hole = place;
        }
    }
    map->pairs[hole] = empty;
    map->count--;
}

bool
trpi_ref_map_remove(trpi_ref_map *map, trp_ref ref, void **ret_value)
{
    trpi_ref_pair *pair = trpi_ref_map_find(map, ref);

    if (pair == NULL) {
        return false;
    }
    if (ret_value != NULL) {
        *ret_value = pair->value;
    }
    remove_place(map, (uint32_t)(pair - map->pairs));
    if (map->count == 0) {
        trpi_ref_map_fini(map); /* an actor that once watched a lot gives the memory back */
    }
    return true;
}

trpi_ref_pair *
trpi_ref_map_next(const trpi_ref_map *map, uint32_t *position)
{
    while (*position < map->capacity) {
        trpi_ref_pair *pair = &map->pairs[(*position)++];

        if (!trp_ref_is_none(pair->ref)) {
            return pair;
        }
    }
    return NULL;
}

void
trpi_ref_map_fini(trpi_ref_map *map)
{
    trpi_free(map->pairs);
    map->pairs = NULL;
    map->capacity = 0;
    map->count = 0;
}
