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
