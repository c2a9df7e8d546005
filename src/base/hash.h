/* hash.h - 64-bit xxHash, the one hash of the library. hash.c is the only file that includes
 * xxhash.h. */
#ifndef TRPI_BASE_HASH_H
#define TRPI_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* XXH64 of the bytes. Equal on every machine and version: it crosses the wire. */
uint64_t trpi_hash(const void *bytes, size_t count, uint64_t seed);
/* XXH64 of the text without its NUL, seed 0: the wire id of a type name. */
uint64_t trpi_hash_text(const char *text);
/* SipHash-2-4 of one word: without the key the hashes of other words reveal nothing about that of
 * this one. */
uint64_t trpi_hash_keyed(uint64_t key0, uint64_t key1, uint64_t v);
/* A fast mixer for one integer (table index); not for the wire. */
static inline uint64_t
trpi_hash_u64(uint64_t v)
{
    v ^= v >> 32;
    v *= 0xd6e8feb86659fd93u;
    v ^= v >> 32;
    v *= 0xd6e8feb86659fd93u;
    return v ^ v >> 32;
}

#endif
