/* routing_table.c - the routees that tellers see, and the ring of consistent hashing.
 *
 * Why.     Tellers read without a lock, so a table never changes: it is made, swapped in, and freed
 *          when no teller can read it any more.
 * Shape.   ring: places sorted by hash, virtual_nodes of them for each routee; a key belongs to the
 *          first place at or behind its hash, round the end to the first.
 * Must hold.
 *   routing-table-T1  The places of a routee depend on its identity alone: when another one goes,
 *       only the keys of that one move.
 *   routing-table-T2  Places with one hash are in the order of identities, so that every node makes
 *       the same ring.
 * Cost.    lookup: one binary search over count * virtual_nodes places.
 * Tests.   tests/unit/pattern/ring_test.c
 */
#include "pattern/routing.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"

typedef struct place_sorting {
    trpi_ring_place place;
    uint64_t identity;
} place_sorting;

static int
places_compare(const void *a, const void *b)
{
    const place_sorting *x = a, *y = b;

    if (x->place.hash != y->place.hash) {
        return x->place.hash < y->place.hash ? -1 : 1;
    }
    if (x->identity != y->identity) { /* routing-table-T2 */
        return x->identity < y->identity ? -1 : 1;
    }
    return x->place.index < y->place.index ? -1 : x->place.index > y->place.index;
}

/* The same on machines of either byte order: all nodes make the same ring. */
static uint64_t
place_hash(uint64_t identity, uint32_t number)
{
    uint8_t bytes[12];

    for (unsigned i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)(identity >> 8 * i);
    }
    for (unsigned i = 0; i < 4; i++) {
        bytes[8 + i] = (uint8_t)(number >> 8 * i);
    }
    return trpi_hash(bytes, sizeof bytes, 0);
}

static trp_err
ring_make(trpi_routee_table *table, uint32_t virtual_nodes)
{
    size_t count = (size_t)table->count * virtual_nodes;
    place_sorting *sorting = trpi_alloc(count * sizeof *sorting);

    table->places = trpi_alloc(count * sizeof *table->places);
    if (sorting == NULL || table->places == NULL) {
        trpi_free(sorting);
        return TRP_ENOMEM;
    }
    for (uint32_t i = 0; i < table->count; i++) {
        for (uint32_t v = 0; v < virtual_nodes; v++) {
            place_sorting *s = &sorting[(size_t)i * virtual_nodes + v];

            s->identity = table->routees[i]->identity;
            s->place.hash = place_hash(s->identity, v); /* routing-table-T1 */
            s->place.index = i;
        }
    }
    qsort(sorting, count, sizeof *sorting, places_compare);
    for (size_t i = 0; i < count; i++) {
        table->places[i] = sorting[i].place;
    }
    trpi_free(sorting);
    table->places_count = (uint32_t)count;
    return TRP_OK;
}

trp_err
trpi_routee_table_new(trpi_routee *const *routees, uint32_t count, uint32_t virtual_nodes,
                      trpi_routee_table **ret_table)
{
    trpi_routee_table *table = trpi_alloc(sizeof *table + count * sizeof table->refs[0]);
    trp_err err = TRP_OK;

    if (table == NULL) {
        return TRP_ENOMEM;
    }
    table->count = count;
    if (count > 0) {
        table->routees = trpi_alloc(count * sizeof *table->routees);
        err = table->routees == NULL ? TRP_ENOMEM : TRP_OK;
    }
    for (uint32_t i = 0; err == TRP_OK && i < count; i++) {
        table->routees[i] = routees[i];
        table->refs[i] = routees[i]->ref;
    }
    if (err == TRP_OK && count > 0 && virtual_nodes > 0) {
        err = ring_make(table, virtual_nodes);
    }
    if (err != TRP_OK) {
        trpi_routee_table_free(table);
        return err;
    }
    *ret_table = table;
    return TRP_OK;
}

void
trpi_routee_table_free(void *object)
{
    trpi_routee_table *table = object;

    if (table != NULL) {
        trpi_free(table->places);
        trpi_free(table->routees);
        trpi_free(table);
    }
}

uint32_t
trpi_routee_table_lookup(const trpi_routee_table *table, uint64_t key_hash)
{
    uint32_t low = 0, high = table->places_count;

    trpi_assert(table->places_count > 0);
    while (low < high) { /* the first place whose hash is not below the key's */
        uint32_t middle = low + (high - low) / 2;

        if (table->places[middle].hash < key_hash) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return table->places[low == table->places_count ? 0 : low].index;
}
