/* array.h - the growable array: a pointer, a count and a room, which are members of their owner.
 *
 *   struct { row *rows; uint32_t rows_count, rows_room; } t;
 *   err = TRPI_ARRAY_RESERVE(&t, rows, 1, ROWS_MAX);
 *   if (err == TRP_OK) t.rows[t.rows_count++] = row;
 *
 * All-zero is an empty array without memory; its owner frees the pointer. Elements move when the
 * array grows. New elements are not zeroed.
 */
#ifndef TRPI_BASE_ARRAY_H
#define TRPI_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/base.h>

#define TRPI_ARRAY_NO_LIMIT UINT32_MAX

/* Make room for `more` elements above `count`. `items` is the address of the owner's pointer.
 * TRP_ELIMIT: there would be more than limit; TRP_ENOMEM. On an error nothing has changed. */
trp_err trpi_array_grow(void *items, uint32_t count, uint32_t *room, size_t element_bytes,
                        uint32_t more, uint32_t limit);

static inline trp_err
trpi_array_reserve(void *items, uint32_t count, uint32_t *room, size_t element_bytes, uint32_t more,
                   uint32_t limit)
{
    return count < limit && more <= limit - count && more <= *room - count
               ? TRP_OK
               : trpi_array_grow(items, count, room, element_bytes, more, limit);
}

/* The array `what` of owner: members what, what_count and what_room. */
#define TRPI_ARRAY_RESERVE(owner, what, more, limit)                                               \
    trpi_array_reserve(&(owner)->what, (owner)->what##_count, &(owner)->what##_room,               \
                       sizeof *(owner)->what, (more), (limit))

/* Room for one more, without a limit of its own; false: no memory. */
#define TRPI_ARRAY_HAS_ROOM(owner, what)                                                           \
    (TRPI_ARRAY_RESERVE(owner, what, 1, TRPI_ARRAY_NO_LIMIT) == TRP_OK)

#endif
