/* xxHash: the published values, since type ids cross the wire. */
#include "base/hash.h"

#include "tests/unit/unit.h"

static void
values_are_xxh64_s_published_ones(void)
{
    UNIT_TRUE(trpi_hash("", 0, 0) == 0xef46db3751d8e999u);
    UNIT_TRUE(trpi_hash("a", 1, 0) == 0xd24ec4f1a98c6e5bu);
    UNIT_TRUE(trpi_hash_text("abc") == 0x44bc2cf5ad770999u);
}

static void
a_seed_changes_the_value(void)
{
    UNIT_TRUE(trpi_hash("abc", 3, 1) != trpi_hash("abc", 3, 0));
}

/* The example of its authors: the key 00 01 .. 0f, the message 00 01 .. 07. */
static void
a_keyed_hash_is_siphash_s_published_value(void)
{
    uint64_t key0 = 0x0706050403020100u, key1 = 0x0f0e0d0c0b0a0908u;

    UNIT_TRUE(trpi_hash_keyed(key0, key1, key0) == 0x93f5f5799a932462u);
}

static void
integers_are_mixed_without_collision(void)
{
    uint64_t low_bits_seen[16] = { 0 };

    for (uint64_t i = 0; i < 1024; i++) {
        low_bits_seen[(trpi_hash_u64(i) & 1023) / 64] |= 1ull << (trpi_hash_u64(i) % 64);
        UNIT_REQUIRE(i == 0 || trpi_hash_u64(i) != trpi_hash_u64(i - 1));
    }
    for (unsigned i = 0; i < 16; i++) {
        UNIT_TRUE(__builtin_popcountll(low_bits_seen[i]) > 20); /* of 64; 40 expected */
    }
}

UNIT_BEGIN("hash")
UNIT(values_are_xxh64_s_published_ones)
UNIT(a_seed_changes_the_value)
UNIT(a_keyed_hash_is_siphash_s_published_value)
UNIT(integers_are_mixed_without_collision)
UNIT_END
