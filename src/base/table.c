/* table.c - growth and removal in a hash table; removal shifts back, so there are no tombstones.
 *
 * Must hold.
 *   table-T1  At most 3/4 of the places are taken, so every probe ends at an empty one. (reserve)
 *   table-T2  Between an element's home place and its place there is no empty one. (add, remove)
 * Limits.  2^30 elements: above that adding fails as without memory.
 * Tests.   tests/unit/base/table_test.c
 * Sources. D. Knuth, The Art of Computer Programming 3, 6.4, algorithm R (removal).
 */
#include "base/table.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

#define CAPACITY_FIRST 4u
#define COUNT_MAX (UINT32_C(1) << 30)

bool
trpi_table_u32_is_empty(const void *element)
{
    return *(const uint32_t *)element == 0;
}

bool
trpi_table_pointer_is_empty(const void *element)
{
    return *(void *const *)element == NULL;
}

static trp_err
table_grow(const trpi_table_kind *kind, trpi_table *table, const void *arg, uint32_t capacity)
{
    trpi_table bigger = { NULL, capacity, table->count };
    size_t bytes;

    if (__builtin_mul_overflow(capacity, kind->element_bytes, &bytes) ||
        (bigger.places = trpi_alloc(bytes)) == NULL) {
        return TRP_ENOMEM;
    }
    for (uint32_t i = 0; i < table->capacity; i++) {
        const void *element = trpi_table_at(kind, table, i);

        if (!kind->is_empty(element)) { /* all keys differ: the first empty place is right */
            uint32_t place = (uint32_t)kind->hash(arg, element) & (capacity - 1);

            while (!kind->is_empty(trpi_table_at(kind, &bigger, place))) {
                place = (place + 1) & (capacity - 1);
            }
            memcpy(trpi_table_at(kind, &bigger, place), element, kind->element_bytes);
        }
    }
    trpi_free(table->places);
    *table = bigger;
    return TRP_OK;
}

trp_err
trpi_table_reserve(const trpi_table_kind *kind, trpi_table *table, const void *arg, uint32_t count)
{
    uint32_t capacity = CAPACITY_FIRST;

    if (trpi_table_has_room(table, count)) {
        return TRP_OK;
    }
    if (count > COUNT_MAX) {
        return TRP_ENOMEM;
    }
    while ((uint64_t)count * 4 > (uint64_t)capacity * 3) { /* table-T1 */
        capacity *= 2;
    }
    return table_grow(kind, table, arg, capacity);
}

void
trpi_table_remove(const trpi_table_kind *kind, trpi_table *table, const void *arg, void *element)
{
    uint32_t mask = table->capacity - 1;
    uint32_t hole = (uint32_t)((size_t)((unsigned char *)element - (unsigned char *)table->places) /
                               kind->element_bytes);

    trpi_assert(table->count > 0);
    trpi_assert(hole < table->capacity);
    for (uint32_t place = (hole + 1) & mask;; place = (place + 1) & mask) {
        const void *at = trpi_table_at(kind, table, place);

        if (kind->is_empty(at)) {
            break;
        }
        /* It may move into the hole unless its home is behind the hole (table-T2). */
        if (((place - (uint32_t)kind->hash(arg, at)) & mask) >= ((place - hole) & mask)) {
            memcpy(trpi_table_at(kind, table, hole), at, kind->element_bytes);
            hole = place;
        }
    }
    memset(trpi_table_at(kind, table, hole), 0, kind->element_bytes);
    table->count--;
}

void *
trpi_table_next(const trpi_table_kind *kind, const trpi_table *table, uint32_t *position)
{
    while (*position < table->capacity) {
        void *element = trpi_table_at(kind, table, (*position)++);

        if (!kind->is_empty(element)) {
            return element;
        }
    }
    return NULL;
}

void
trpi_table_fini(trpi_table *table)
{
    trpi_free(table->places);
    *table = (trpi_table){ NULL, 0, 0 };
}
