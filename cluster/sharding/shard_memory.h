/* shard_memory.h - the entities and reminders of one shard, changes of them, and their bytes in the
 * journal. Of shard_store.c alone.
 *
 * A change is made with everything that it needs to be carried out, so that it cannot fail once the
 * journal has it.
 */
#ifndef TRPI_CLUSTER_SHARD_MEMORY_H
#define TRPI_CLUSTER_SHARD_MEMORY_H

#include "base/pack.h"
#include "base/table.h"
#include "cluster/sharding/shard_store.h"

typedef struct trpi_shard_entity {
    uint64_t hash;
    char id[];
} trpi_shard_entity;

typedef struct trpi_shard_alarm {
    trpi_shard_reminder of;
    uint64_t hash;  /* of id and name */
    uint64_t bytes; /* counted */
    uint32_t place; /* in the heap, from 1; 0: handed over, or not here yet */
} trpi_shard_alarm;

typedef struct trpi_shard_change {
    struct trpi_shard_change *next;
    trpi_shard_change_kind kind;
    trp_err err;
    uint64_t token;
    uint64_t due_ms;           /* FIRED: the time for which it was */
    uint64_t next_ms;          /* FIRED: the next time; 0: it has ended */
    uint64_t bytes;            /* ADD, REMIND: counted */
    trpi_shard_entity *entity; /* ADD: carried out by putting it in */
    trpi_shard_alarm *alarm;   /* REMIND: likewise */
    const char *id, *name;
    char texts[];
} trpi_shard_change;

typedef struct trpi_shard_memory {
    trpi_table entities;     /* of trpi_shard_entity pointers */
    trpi_table alarms;       /* of trpi_shard_alarm pointers */
    trpi_shard_alarm **heap; /* the next one first */
    uint32_t heap_count, heap_room;
    uint32_t adds, reminds; /* changes that were made and not carried out */
    uint64_t bytes, reserved_bytes;
} trpi_shard_memory;

void trpi_shard_memory_clear(trpi_shard_memory *memory); /* empty, as at first */

/* Make a change, and reserve its memory and bytes: it must be applied or dropped. Errors:
 * TRP_EINVAL, TRP_EMSGSIZE, TRP_ELIMIT, TRP_ENOMEM. of: id; and name; and, of REMIND, all. */
trp_err trpi_shard_change_new(trpi_shard_memory *memory, trpi_shard_change_kind kind,
                              const trpi_shard_reminder *of, uint64_t bytes_max,
                              trpi_shard_change **ret_change);
void trpi_shard_change_apply(trpi_shard_memory *memory, trpi_shard_change *change);
void trpi_shard_change_drop(trpi_shard_memory *memory, trpi_shard_change *change);
void trpi_shard_change_free(trpi_shard_change *change); /* applied or dropped */

/* Count the reminders that they set for an entity, but for one of this name. */
uint32_t trpi_shard_changes_reminds(const trpi_shard_change *first, const char *id,
                                    const char *name);
/* Return the last one that sets or cancels this reminder; NULL: none. */
const trpi_shard_change *trpi_shard_changes_last(const trpi_shard_change *first, const char *id,
                                                 const char *name);

trpi_shard_entity *trpi_shard_memory_entity(const trpi_shard_memory *memory, const char *id);
trpi_shard_alarm *trpi_shard_memory_alarm(const trpi_shard_memory *memory, const char *id,
                                          const char *name);
/* Return the next id; *position starts at 0. NULL: there are no more. */
const char *trpi_shard_memory_next(const trpi_shard_memory *memory, uint32_t *position);
/* The alarm is handed over: it leaves the heap. */
void trpi_shard_memory_hand(trpi_shard_memory *memory, trpi_shard_alarm *alarm);
void trpi_shard_memory_unhand(trpi_shard_memory *memory, trpi_shard_alarm *alarm); /* it was */
const trpi_shard_alarm *trpi_shard_memory_next_alarm(const trpi_shard_memory *memory,
                                                     uint32_t *position);

/* Append the changes to an empty writer: at most TRPI_SHARD_STORE_GROUP_MAX of them, and about a
 * MiB. Return how many. */
uint32_t trpi_shard_changes_encode(trpi_pack_writer *w, const trpi_shard_change *first);
/* Carry out what an event says. Errors: TRP_EDATA, and those of trpi_shard_change_new(). */
trp_err trpi_shard_changes_decode(trpi_shard_memory *memory, const void *data, size_t bytes,
                                  uint64_t bytes_max);
void trpi_shard_memory_encode(trpi_pack_writer *w, const trpi_shard_memory *memory);
/* Fill an empty memory. On an error it may be half full. */
trp_err trpi_shard_memory_decode(trpi_shard_memory *memory, const void *data, size_t bytes,
                                 uint64_t bytes_max);

#endif
