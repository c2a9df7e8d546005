/* entity_table.h - the entities of one shard by their ids, and all of a system by their slots.
 *
 * Read by tellers without a lock, in a run or between trpi_enter() and trpi_leave(); written by the
 * actor of the type alone. A table that is replaced is retired.
 */
#ifndef TRPI_CLUSTER_SHARDING_ENTITY_TABLE_H
#define TRPI_CLUSTER_SHARDING_ENTITY_TABLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "actor/actor.h"

struct trpi_region;
struct trpi_entry_wait;

/* trpi_entry.target: where tellers send. NONE: to the region. OPENING: it is about to change. Else
 * generation << 32 | slot. */
#define TRPI_TARGET_NONE 0u
#define TRPI_TARGET_OPENING 1u
#define TRPI_TARGET_LEAST (1ull << 32)

typedef struct trpi_entry {
    _Atomic uint64_t target;
    _Atomic uint32_t used; /* the region's clock at the last tell; relaxed */
    uint32_t shard;
    struct trpi_region *region;   /* constant, as are shard, hash, id */
    struct trpi_entry_wait *wait; /* region: what waits; NULL: the entry is open */
    uint64_t hash;
    /* the present one, as target; 0: none. By the region; relaxed: whoever looks for its own has
     * been published after it */
    _Atomic uint64_t incarnation;
    uint32_t started_ms; /* region */
    uint8_t state;       /* region: enum trpi_entry_state */
    uint8_t failures;    /* region: in a row */
    _Atomic bool failed; /* the incarnation that has ended did so by a failure */
    uint8_t id_bytes;
    bool passivated; /* region: it ends because it was passivated */
    bool restarts;   /* region: ABSENT, and to be started without a message */
    char id[];
} trpi_entry;

/* The present incarnation; generation 0: none. The region. */
static inline trp_ref
trpi_entry_ref(const trpi_entry *entry)
{
    uint64_t incarnation = atomic_load_explicit(&entry->incarnation, memory_order_relaxed);

    return (trp_ref){ TRPI_NODE_SELF, (uint32_t)incarnation, (uint32_t)(incarnation >> 32), 0 };
}
/* Is this its present incarnation? Any thread, in one load: an index may lead to the entry from the
 * slot of an earlier incarnation, which another actor has by now. */
static inline bool
trpi_entry_is(const trpi_entry *entry, trp_ref self)
{
    return atomic_load_explicit(&entry->incarnation, memory_order_relaxed) ==
           ((uint64_t)self.generation << 32 | self.slot);
}

/* Open addressing; a slot is the upper 16 bits of the hash above a pointer of 48 bits. */
typedef struct trpi_entry_slots {
    uint32_t mask, used; /* used: entries and tombstones */
    _Atomic uint64_t slots[];
} trpi_entry_slots;
typedef struct trpi_entry_table {
    _Atomic(trpi_entry_slots *) slots; /* NULL: empty */
    uint32_t count;
} trpi_entry_table;

#define TRPI_ENTRY_POINTER ((1ull << 48) - 1u)
#define TRPI_ENTRY_TOMBSTONE 1u

/* NULL: there is none. Any thread. */
static inline trpi_entry *
trpi_entry_find(const trpi_entry_table *table, uint64_t hash, const void *id, size_t id_bytes)
{
    /* acquire: pairs with the release in insert() and grow() */
    const trpi_entry_slots *slots = atomic_load_explicit(&table->slots, memory_order_acquire);

    for (uint32_t i = slots == NULL ? 0 : (uint32_t)hash & slots->mask; slots != NULL;
         i = (i + 1) & slots->mask) {
        uint64_t value = atomic_load_explicit(&slots->slots[i], memory_order_acquire);

        if (value == 0) {
            break;
        }
        if (value >> 48 == hash >> 48 && value != TRPI_ENTRY_TOMBSTONE) {
            trpi_entry *entry = (trpi_entry *)(uintptr_t)(value & TRPI_ENTRY_POINTER);

            if (entry->id_bytes == id_bytes && memcmp(entry->id, id, id_bytes) == 0) {
                return entry;
            }
        }
    }
    return NULL;
}
/* Errors: TRP_ENOMEM. The region. */
trp_err trpi_entry_insert(trp_system *system, trpi_entry_table *table, trpi_entry *entry);
void trpi_entry_remove(trpi_entry_table *table, const trpi_entry *entry);
/* The entry at a place, 0 to trpi_entry_places() - 1; NULL: none there. The region. */
uint32_t trpi_entry_places(const trpi_entry_table *table);
trpi_entry *trpi_entry_at(const trpi_entry_table *table, uint32_t place);
void trpi_entry_table_fini(trpi_entry_table *table); /* with its entries; no thread reads it */

/* ---- by slot --------------------------------------------------------------------------------- */
#define TRPI_ENTRY_CHUNK 4096u
#define TRPI_ENTRY_CHUNKS (100000000u / TRPI_ENTRY_CHUNK + 1u)
typedef struct trpi_entry_index {
    pthread_mutex_t lock; /* makes chunks */
    _Atomic(_Atomic(trpi_entry *) *) *chunks;
} trpi_entry_index;
trp_err trpi_entry_index_init(trpi_entry_index *index); /* Errors: TRP_ENOMEM. */
void trpi_entry_index_fini(trpi_entry_index *index);
/* Any thread. */
trpi_entry *trpi_entry_index_find(const trpi_entry_index *index, uint32_t slot);
/* Errors: TRP_ENOMEM. Any thread. */
trp_err trpi_entry_index_set(trpi_entry_index *index, uint32_t slot, trpi_entry *entry);
/* Forget entry, if it is still there. */
void trpi_entry_index_clear(trpi_entry_index *index, uint32_t slot, trpi_entry *entry);

#endif
