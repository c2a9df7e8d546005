/* The hash table against a plain array, through growth and removal, with hashes that collide. */
#include "base/table.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "tests/unit/unit.h"

#define KEYS 200u

typedef struct pair {
    uint32_t key; /* 0: empty */
    uint32_t value;
} pair;

static bool
pair_is_empty(const void *element)
{
    return ((const pair *)element)->key == 0;
}

/* *arg bits of the key's hash: with few of them nearly all collide. */
static uint64_t
key_hash(const void *arg, uint32_t key)
{
    return trpi_hash_u64(key) & ((UINT64_C(1) << *(const uint32_t *)arg) - 1);
}

static uint64_t
pair_hash(const void *arg, const void *element)
{
    return key_hash(arg, ((const pair *)element)->key);
}

static bool
pair_is_key(const void *arg, const void *element, const void *key)
{
    (void)arg;
    return ((const pair *)element)->key == *(const uint32_t *)key;
}

static const trpi_table_kind pairs = { sizeof(pair), pair_is_empty, pair_hash, pair_is_key };

static bool
agrees(const trpi_table *table, const uint32_t *bits, const uint32_t *values)
{
    uint32_t position = 0, seen = 0, count = 0;
    bool same = true;
    const pair *p;

    for (uint32_t key = 1; key <= KEYS; key++) {
        p = trpi_table_find(&pairs, table, bits, key_hash(bits, key), &key);
        same = same && (p != NULL ? p->value : 0) == values[key];
        count += values[key] != 0 ? 1 : 0;
    }
    while ((p = trpi_table_next(&pairs, table, &position)) != NULL) {
        same = same && p->value == values[p->key];
        seen++;
    }
    return same && seen == count && table->count == count && count * 4 <= table->capacity * 3;
}

/* One drawn step on both; false: they differ. */
static bool
table_step(trpi_table *table, const uint32_t *bits, uint32_t *values, uint32_t round,
           uint64_t random)
{
    uint32_t key = (uint32_t)(random % KEYS) + 1;
    bool grows = round / 500 % 2 == 0; /* and is emptied again */
    pair *p;

    if ((random >> 32) % 4 < (grows ? 3 : 1)) {
        p = trpi_table_add(&pairs, table, bits, key_hash(bits, key), &key);
        if (p == NULL || pair_is_empty(p) != (values[key] == 0)) {
            return false;
        }
        *p = (pair){ key, round };
        values[key] = round;
    } else {
        p = trpi_table_find(&pairs, table, bits, key_hash(bits, key), &key);
        if (p != NULL) {
            trpi_table_remove(&pairs, table, bits, p);
        }
        values[key] = 0;
    }
    return round % 50 != 0 || agrees(table, bits, values);
}

/* A seed that is printed is played again by putting it in the place of 1. */
static void
the_table_agrees_with_an_array(void)
{
    static const uint32_t bits_of[] = { 0, 3, 6, 32 };

    for (uint64_t seed = 1; seed <= 8; seed++) {
        const uint32_t *bits = &bits_of[seed % 4];
        trpi_table table = { 0 };
        uint32_t values[KEYS + 1] = { 0 };
        uint32_t round = 1;

        while (round <= 2000 &&
               table_step(&table, bits, values, round, trpi_hash_u64(seed * 10000 + round))) {
            round++;
        }
        if (!UNIT_EQUAL(round, 2001)) {
            printf("  seed %llu\n", (unsigned long long)seed);
        }
        trpi_table_fini(&table);
    }
}

static void
key_add(trpi_table *table, uint32_t key)
{
    static const uint32_t bits = 32;
    pair *p = trpi_table_add(&pairs, table, &bits, key_hash(&bits, key), &key);

    UNIT_REQUIRE(p != NULL);
    p->key = key;
}

static void
it_grows_at_three_quarters_and_not_before(void)
{
    trpi_table table = { 0 };
    static const uint32_t bits = 32;

    for (uint32_t key = 1; key <= 3; key++) {
        key_add(&table, key);
    }
    UNIT_EQUAL(table.capacity, 4);
    key_add(&table, 4);
    UNIT_EQUAL(table.capacity, 8);
    UNIT_EQUAL(trpi_table_reserve(&pairs, &table, &bits, 6), TRP_OK);
    UNIT_EQUAL(table.capacity, 8);
    UNIT_EQUAL(trpi_table_reserve(&pairs, &table, &bits, 7), TRP_OK);
    UNIT_EQUAL(table.capacity, 16);
    UNIT_EQUAL(table.count, 4);
    trpi_table_fini(&table);
    UNIT_EQUAL(table.capacity, 0);
}

static void
out_of_memory_leaves_the_table_as_it_was(void)
{
    trpi_table table = { 0 };
    static const uint32_t bits = 32;
    uint32_t key = 4;

    trpi_alloc_fail_here_after(0);
    UNIT_TRUE(trpi_table_add(&pairs, &table, &bits, key_hash(&bits, key), &key) == NULL);
    trpi_alloc_fail_here_after(-1);
    UNIT_EQUAL(table.count, 0);
    for (key = 1; key <= 3; key++) {
        key_add(&table, key);
    }
    key = 4;
    trpi_alloc_fail_here_after(0);
    UNIT_TRUE(trpi_table_add(&pairs, &table, &bits, key_hash(&bits, key), &key) == NULL);
    trpi_alloc_fail_here_after(0);
    UNIT_EQUAL(trpi_table_reserve(&pairs, &table, &bits, 4), TRP_ENOMEM);
    trpi_alloc_fail_here_after(0);
    key = 2; /* is there: needs no memory */
    UNIT_TRUE(trpi_table_add(&pairs, &table, &bits, key_hash(&bits, key), &key) != NULL);
    trpi_alloc_fail_here_after(-1);
    UNIT_EQUAL(table.count, 3);
    UNIT_EQUAL(table.capacity, 4);
    trpi_table_fini(&table);
}

static void
too_many_is_out_of_memory(void)
{
    trpi_table table = { 0 };
    static const uint32_t bits = 32;

    UNIT_EQUAL(trpi_table_reserve(&pairs, &table, &bits, (UINT32_C(1) << 30) + 1), TRP_ENOMEM);
    UNIT_EQUAL(trpi_table_reserve(&pairs, &table, &bits, UINT32_MAX), TRP_ENOMEM);
    UNIT_EQUAL(table.capacity, 0);
}

UNIT_BEGIN("table")
UNIT(the_table_agrees_with_an_array)
UNIT(it_grows_at_three_quarters_and_not_before)
UNIT(out_of_memory_leaves_the_table_as_it_was)
UNIT(too_many_is_out_of_memory)
UNIT_END
