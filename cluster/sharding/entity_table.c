/* entity_table.c - see entity_table.h.
 *
 * Why.     Ten thousand entities are told by all threads at once; they start and end one by one. A
 *          reader makes two or three dependent loads and writes nothing.
 * Must hold.
 *   entity-table-T1  A slot of a table goes from empty to an entry to a tombstone, and no further;
 *       another table is made when three quarters are used, and the old one is retired.
 *   entity-table-T2  An entry is out of its table before it is retired.
 * Cost.    16 bytes an entity in its table at most, 8 in the index of slots.
 * Tests.   tests/unit/cluster/entity_test.c
 */
#include "cluster/sharding/entity_table.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"

enum { SLOTS_LEAST = 8 };

static uint64_t
value_of(trpi_entry *entry)
{
    uint64_t pointer = (uint64_t)(uintptr_t)entry;
    trpi_assert((pointer & ~TRPI_ENTRY_POINTER) == 0 && pointer > TRPI_ENTRY_TOMBSTONE);
    return pointer | entry->hash >> 48 << 48;
}

static void
slots_put(trpi_entry_slots *slots, uint64_t hash, uint64_t value)
{
    uint32_t i = (uint32_t)hash & slots->mask;
    while (atomic_load_explicit(&slots->slots[i], memory_order_relaxed) != 0) {
        i = (i + 1) & slots->mask;
    }
    /* release: pairs with the acquire in trpi_entry_find() */
    atomic_store_explicit(&slots->slots[i], value, memory_order_release);
    slots->used++;
}

static trpi_entry *
slots_entry(const trpi_entry_slots *slots, uint32_t i)
{
    uint64_t value = atomic_load_explicit(&slots->slots[i], memory_order_relaxed);
    return value == 0 || value == TRPI_ENTRY_TOMBSTONE
               ? NULL
               : (trpi_entry *)(uintptr_t)(value & TRPI_ENTRY_POINTER);
}

/* Make room for one more. entity-table-T1 */
static trp_err
table_grow(trp_system *system, trpi_entry_table *table)
{
    trpi_entry_slots *old = atomic_load_explicit(&table->slots, memory_order_relaxed);
    if (old != NULL && (uint64_t)(old->used + 1) * 4 <= ((uint64_t)old->mask + 1) * 3) {
        return TRP_OK;
    }
    uint32_t room = SLOTS_LEAST;
    while ((uint64_t)(table->count + 1) * 2 > room) {
        room *= 2;
    }
    trpi_entry_slots *slots = trpi_alloc(sizeof *slots + room * sizeof slots->slots[0]);
    if (slots == NULL) {
        return TRP_ENOMEM;
    }
    slots->mask = room - 1;
    for (uint32_t i = 0; old != NULL && i <= old->mask; i++) {
        trpi_entry *entry = slots_entry(old, i);
        if (entry != NULL) {
            slots_put(slots, entry->hash, value_of(entry));
        }
    }
    /* release: pairs with the acquire in trpi_entry_find() */
    atomic_store_explicit(&table->slots, slots, memory_order_release);
    if (old != NULL) {
        trpi_system_retire(system, trpi_free, old);
    }
    return TRP_OK;
}

trp_err
trpi_entry_insert(trp_system *system, trpi_entry_table *table, trpi_entry *entry)
{
    trp_err err = table_grow(system, table);
    if (err == TRP_OK) {
        slots_put(atomic_load_explicit(&table->slots, memory_order_relaxed), entry->hash,
                  value_of(entry));
        table->count++;
    }
    return err;
}

void
trpi_entry_remove(trpi_entry_table *table, const trpi_entry *entry)
{
    trpi_entry_slots *slots = atomic_load_explicit(&table->slots, memory_order_relaxed);
    uint32_t i = (uint32_t)entry->hash & slots->mask;
    while (slots_entry(slots, i) != entry) {
        trpi_assert(atomic_load_explicit(&slots->slots[i], memory_order_relaxed) != 0);
        i = (i + 1) & slots->mask;
    }
    /* relaxed: the entry is retired behind it */
    atomic_store_explicit(&slots->slots[i], TRPI_ENTRY_TOMBSTONE, memory_order_relaxed);
    table->count--;
}

uint32_t
trpi_entry_places(const trpi_entry_table *table)
{
    const trpi_entry_slots *slots = atomic_load_explicit(&table->slots, memory_order_relaxed);
    return slots == NULL ? 0 : slots->mask + 1;
}

trpi_entry *
trpi_entry_at(const trpi_entry_table *table, uint32_t place)
{
    return slots_entry(atomic_load_explicit(&table->slots, memory_order_relaxed), place);
}

void
trpi_entry_table_fini(trpi_entry_table *table)
{
    for (uint32_t i = 0; i < trpi_entry_places(table); i++) {
        trpi_free(trpi_entry_at(table, i));
    }
    trpi_free(atomic_load_explicit(&table->slots, memory_order_relaxed));
    atomic_store_explicit(&table->slots, NULL, memory_order_relaxed);
    table->count = 0;
}

/* ---- by slot --------------------------------------------------------------------------------- */

trp_err
trpi_entry_index_init(trpi_entry_index *index)
{
    index->chunks = trpi_alloc(TRPI_ENTRY_CHUNKS * sizeof index->chunks[0]);
    if (index->chunks == NULL) {
        return TRP_ENOMEM;
    }
    pthread_mutex_init(&index->lock, NULL);
    return TRP_OK;
}

void
trpi_entry_index_fini(trpi_entry_index *index)
{
    for (uint32_t i = 0; index->chunks != NULL && i < TRPI_ENTRY_CHUNKS; i++) {
        trpi_free((void *)atomic_load_explicit(&index->chunks[i], memory_order_relaxed));
    }
    if (index->chunks != NULL) {
        trpi_free((void *)index->chunks);
        trpi_mutex_destroy(&index->lock);
        index->chunks = NULL;
    }
}

trpi_entry *
trpi_entry_index_find(const trpi_entry_index *index, uint32_t slot)
{
    /* acquire: pairs with the releases in trpi_entry_index_set() */
    _Atomic(trpi_entry *) *chunk =
        slot / TRPI_ENTRY_CHUNK < TRPI_ENTRY_CHUNKS
            ? atomic_load_explicit(&index->chunks[slot / TRPI_ENTRY_CHUNK], memory_order_acquire)
            : NULL;
    return chunk == NULL
               ? NULL
               : atomic_load_explicit(&chunk[slot % TRPI_ENTRY_CHUNK], memory_order_acquire);
}

trp_err
trpi_entry_index_set(trpi_entry_index *index, uint32_t slot, trpi_entry *entry)
{
    trpi_assert(slot / TRPI_ENTRY_CHUNK < TRPI_ENTRY_CHUNKS);
    _Atomic(_Atomic(trpi_entry *) *) *place = &index->chunks[slot / TRPI_ENTRY_CHUNK];
    _Atomic(trpi_entry *) *chunk = atomic_load_explicit(place, memory_order_acquire);
    if (chunk == NULL) {
        pthread_mutex_lock(&index->lock);
        chunk = atomic_load_explicit(place, memory_order_relaxed);
        if (chunk == NULL) {
            chunk = trpi_alloc(TRPI_ENTRY_CHUNK * sizeof chunk[0]);
            /* release: pairs with the acquire in find() */
            atomic_store_explicit(place, chunk, memory_order_release);
        }
        pthread_mutex_unlock(&index->lock);
    }
    if (chunk == NULL) {
        return TRP_ENOMEM;
    }
    /* release: pairs with the acquire in find() */
    atomic_store_explicit(&chunk[slot % TRPI_ENTRY_CHUNK], entry, memory_order_release);
    return TRP_OK;
}

void
trpi_entry_index_clear(trpi_entry_index *index, uint32_t slot, trpi_entry *entry)
{
    _Atomic(trpi_entry *) *chunk =
        atomic_load_explicit(&index->chunks[slot / TRPI_ENTRY_CHUNK], memory_order_acquire);
    trpi_entry *expected = entry;
    /* The slot may have another entity by now, of another region. */
    if (chunk != NULL) {
        (void)atomic_compare_exchange_strong(&chunk[slot % TRPI_ENTRY_CHUNK], &expected, NULL);
    }
}
