/* ref_map_test.c - the map against a plain array, through growth and removal. */
#include "tests/unit/unit.h"

#include "actor/kernel/ref_map.h"
#include "base/alloc.h"

#define KEYS 300

static trp_ref
key(uint32_t i)
{
    trp_ref ref = { 1, i * 7 + 1, i % 5 * 2 + 1, 0 };

    return ref;
}

static void
the_map_agrees_with_an_array(void)
{
    trpi_ref_map map = { 0 };
    bool in[KEYS] = { false };
    uint32_t count = 0, seed = 12345;

    for (int round = 0; round < 20000; round++) {
        uint32_t i = (seed = seed * 1103515245u + 12345u) / 65536u % KEYS;

        if ((seed >> 8) % 3 != 0) {
            UNIT_EQUAL(trpi_ref_map_put(&map, key(i), (void *)(uintptr_t)(i + 1)), TRP_OK);
            count += !in[i];
            in[i] = true;
        } else {
            void *value = NULL;
            bool removed = trpi_ref_map_remove(&map, key(i), &value);

            UNIT_EQUAL(removed, in[i]);
            UNIT_TRUE(!removed || value == (void *)(uintptr_t)(i + 1));
            count -= in[i];
            in[i] = false;
        }
        UNIT_EQUAL(map.count, count);
    }
    for (uint32_t i = 0; i < KEYS; i++) {
        UNIT_EQUAL(trpi_ref_map_find(&map, key(i)) != NULL, in[i]);
    }
    {
        uint32_t position = 0, seen = 0;

        while (trpi_ref_map_next(&map, &position) != NULL) {
            seen++;
        }
        UNIT_EQUAL(seen, count);
    }
    trpi_ref_map_fini(&map);
}

static void
out_of_memory_leaves_the_map_as_it_was(void)
{
    trpi_ref_map map = { 0 };

    trpi_alloc_fail_after(0);
    UNIT_EQUAL(trpi_ref_map_put(&map, key(1), NULL), TRP_ENOMEM);
    trpi_alloc_fail_after(-1);
    UNIT_EQUAL(map.count, 0);
    for (uint32_t i = 0; i < 3; i++) {
        UNIT_EQUAL(trpi_ref_map_put(&map, key(i), NULL), TRP_OK);
    }
    trpi_alloc_fail_after(0);
    UNIT_EQUAL(trpi_ref_map_put(&map, key(3), NULL), TRP_ENOMEM);
    UNIT_EQUAL(trpi_ref_map_put(&map, key(2), &map), TRP_OK); /* a replacement needs none */
    trpi_alloc_fail_after(-1);
    UNIT_EQUAL(map.count, 3);
    UNIT_TRUE(trpi_ref_map_find(&map, key(2))->value == &map);
    trpi_ref_map_fini(&map);
}

UNIT_BEGIN("ref_map")
UNIT(the_map_agrees_with_an_array)
UNIT(out_of_memory_leaves_the_map_as_it_was)
UNIT_END
