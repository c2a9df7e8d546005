/* array.c - how an array grows: by half and 4, so that adding is O(1) in the mean and a large array
 * has at most a third to spare.
 *
 * Must hold.
 *   array-A1  count <= room.
 * Tests.   tests/unit/base/array_test.c
 */
#include "base/array.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

trp_err
trpi_array_grow(void *items, uint32_t count, uint32_t *room, size_t element_bytes, uint32_t more,
                uint32_t limit)
{
    uint64_t needed = (uint64_t)count + more;
    uint64_t grown = (uint64_t)*room + *room / 2 + 4;
    size_t bytes;
    void *memory;

    trpi_assert(count <= *room); /* array-A1 */
    if (needed > limit) {
        return TRP_ELIMIT;
    }
    if (needed <= *room) {
        return TRP_OK;
    }
    grown = grown > limit ? limit : grown;
    grown = grown < needed ? needed : grown;
    if (__builtin_mul_overflow((size_t)grown, element_bytes, &bytes)) {
        return TRP_ENOMEM;
    }
    memcpy(&memory, items, sizeof memory); /* as bytes: the owner's pointer has another type */
    memory = trpi_realloc(memory, bytes);
    if (memory == NULL) {
        return TRP_ENOMEM;
    }
    memcpy(items, &memory, sizeof memory);
    *room = (uint32_t)grown;
    return TRP_OK;
}
