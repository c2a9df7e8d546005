/* hash.c - the only file that knows xxHash.
 *
 * Why.     Inlined (XXH_INLINE_ALL), so that neither the library nor the troupe program has to load
 *          libxxhash at start.
 * Tests.   tests/unit/base/hash_test.c
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/hash.h"

#include <string.h>

uint64_t
trpi_hash(const void *bytes, size_t count, uint64_t seed)
{
    return XXH64(bytes, count, seed);
}

uint64_t
trpi_hash_text(const char *text)
{
    return XXH64(text, strlen(text), 0);
}

static inline uint64_t
rotate_left(uint64_t v, unsigned bits)
{
    return v << bits | v >> (64 - bits);
}

static inline void
sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate_left(v[1], 13) ^ v[0];
    v[3] = rotate_left(v[3], 16) ^ v[2];
    v[0] = rotate_left(v[0], 32) + v[3];
    v[2] += v[1];
    v[3] = rotate_left(v[3], 21) ^ v[0];
    v[1] = rotate_left(v[1], 17) ^ v[2];
    v[2] = rotate_left(v[2], 32);
}

static inline void
sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_round(v);
    sip_round(v);
    v[0] ^= word;
}

uint64_t
trpi_hash_keyed(uint64_t key0, uint64_t key1, uint64_t v)
{
    uint64_t state[4] = { key0 ^ 0x736f6d6570736575u, key1 ^ 0x646f72616e646f6du,
                          key0 ^ 0x6c7967656e657261u, key1 ^ 0x7465646279746573u };

    sip_word(state, v);
    sip_word(state, (uint64_t)sizeof v << 56);
    state[2] ^= 0xff;
    for (int i = 0; i < 4; i++) {
        sip_round(state);
    }
    return state[0] ^ state[1] ^ state[2] ^ state[3];
}
