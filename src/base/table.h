/* table.h - the hash table: open addressing with linear probing; an element lies in its place.
 *
 * An element has any size and type: a number, a pointer, a pair of key and value. A trpi_table_kind
 * says how to hash and compare it: one constant for each use, which the compiler resolves, so that
 * trpi_table_find() has no indirect call.
 *
 * A zeroed trpi_table is an empty one without memory. No lock inside. A pointer to an element is
 * valid until the next add or remove. Walks see the elements in the order of their places.
 */
#ifndef TRPI_BASE_TABLE_H
#define TRPI_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/base.h>

typedef struct trpi_table {
    void *places;      /* an empty place is all zero */
    uint32_t capacity; /* places: 0 or a power of two */
    uint32_t count;    /* elements: at most 3/4 of the places */
} trpi_table;

typedef struct trpi_table_kind {
    size_t element_bytes;
    bool (*is_empty)(const void *element);
    uint64_t (*hash)(const void *arg, const void *element);
    bool (*is_key)(const void *arg, const void *element, const void *key);
} trpi_table_kind;

/* `arg` is handed to hash and is_key: for elements that are indexes, the array that they index. */

/* Return whether so many elements fit without growth. */
static inline bool
trpi_table_has_room(const trpi_table *table, uint64_t count)
{
    return count * 4 <= (uint64_t)table->capacity * 3;
}

static inline void *
trpi_table_at(const trpi_table_kind *kind, const trpi_table *table, uint32_t place)
{
    return (unsigned char *)table->places + place * kind->element_bytes;
}

/* Return the element of key, or the empty place where it belongs. The table has memory. */
static inline void *
trpi_table_place(const trpi_table_kind *kind, const trpi_table *table, const void *arg,
                 uint64_t hash, const void *key)
{
    uint32_t mask = table->capacity - 1;
    uint32_t place = (uint32_t)hash & mask;
    void *element = trpi_table_at(kind, table, place);

    while (!kind->is_empty(element) && !kind->is_key(arg, element, key)) {
        place = (place + 1) & mask;
        element = trpi_table_at(kind, table, place);
    }
    return element;
}

/* NULL: it is not there. */
static inline void *
trpi_table_find(const trpi_table_kind *kind, const trpi_table *table, const void *arg,
                uint64_t hash, const void *key)
{
    void *element = NULL;

    if (table->count != 0) {
        element = trpi_table_place(kind, table, arg, hash, key);
        element = kind->is_empty(element) ? NULL : element;
    }
    return element;
}

/* Empty the element's place and move up those that stand behind it only because of it. */
void trpi_table_remove(const trpi_table_kind *kind, trpi_table *table, const void *arg,
                       void *element);
/* Have places for so many elements. TRP_ENOMEM: the table is as before. */
trp_err trpi_table_reserve(const trpi_table_kind *kind, trpi_table *table, const void *arg,
                           uint32_t count);

/* Find the element of key, or make place for it: a new one is counted and still empty, and the
 * caller fills it at once. NULL: no memory, and the table is as before. */
static inline void *
trpi_table_add(const trpi_table_kind *kind, trpi_table *table, const void *arg, uint64_t hash,
               const void *key)
{
    void *element = NULL;

    if (table->capacity != 0) {
        element = trpi_table_place(kind, table, arg, hash, key);
        if (!kind->is_empty(element)) {
            return element;
        }
    }
    if (!trpi_table_has_room(table, (uint64_t)table->count + 1)) {
        if (trpi_table_reserve(kind, table, arg, table->count + 1) != TRP_OK) {
            return NULL;
        }
        element = trpi_table_place(kind, table, arg, hash, key);
    }
    table->count++;
    return element;
}

/* Return the next element; *position starts at 0. NULL: there are no more. No add or remove in
 * between. */
void *trpi_table_next(const trpi_table_kind *kind, const trpi_table *table, uint32_t *position);
/* Free the places; what elements point to is the caller's. */
void trpi_table_fini(trpi_table *table);

/* is_empty() of the common elements. */
bool trpi_table_u32_is_empty(const void *element);
bool trpi_table_pointer_is_empty(const void *element);

#endif
