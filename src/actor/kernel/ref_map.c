/* ref_map.c - a hash table (base/table.h) whose elements are pairs of a ref and a pointer.
 *
 * Tests.   tests/unit/actor/ref_map_test.c
 */
#include "actor/kernel/ref_map.h"

#include <stddef.h>

#include "base/assert.h"
#include "base/hash.h"

static uint64_t
ref_hash(trp_ref ref)
{
    uint64_t key = (uint64_t)ref.generation << 32 | ref.slot;

    return trpi_hash_u64(key ^ ((uint64_t)ref.node << 20));
}

static bool
pair_is_empty(const void *element)
{
    return trp_ref_is_none(((const trpi_ref_pair *)element)->ref);
}

static uint64_t
pair_hash(const void *arg, const void *element)
{
    (void)arg;
    return ref_hash(((const trpi_ref_pair *)element)->ref);
}

static bool
pair_is_key(const void *arg, const void *element, const void *key)
{
    (void)arg;
    return trp_ref_equal(((const trpi_ref_pair *)element)->ref, *(const trp_ref *)key);
}

static const trpi_table_kind pairs = { sizeof(trpi_ref_pair), pair_is_empty, pair_hash,
                                       pair_is_key };

trp_err
trpi_ref_map_put(trpi_ref_map *map, trp_ref ref, void *value)
{
    trpi_ref_pair *pair;

    trpi_assert(!trp_ref_is_none(ref));
    pair = trpi_table_add(&pairs, map, NULL, ref_hash(ref), &ref);
    if (pair == NULL) {
        return TRP_ENOMEM;
    }
    *pair = (trpi_ref_pair){ ref, value };
    return TRP_OK;
}

trpi_ref_pair *
trpi_ref_map_find(const trpi_ref_map *map, trp_ref ref)
{
    return trpi_table_find(&pairs, map, NULL, ref_hash(ref), &ref);
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
    trpi_table_remove(&pairs, map, NULL, pair);
    if (map->count == 0) {
        trpi_ref_map_fini(map); /* free the memory of an actor that once watched many */
    }
    return true;
}

trpi_ref_pair *
trpi_ref_map_next(const trpi_ref_map *map, uint32_t *position)
{
    return trpi_table_next(&pairs, map, position);
}

void
trpi_ref_map_fini(trpi_ref_map *map)
{
    trpi_table_fini(map);
}
