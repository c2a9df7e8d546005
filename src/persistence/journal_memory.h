/* journal_memory.h - the data of the journal in memory: ids, events, snapshots and scopes.
 *
 * One thread at a time; journal_memory.c sees to that. */
#ifndef TRPI_PERSISTENCE_JOURNAL_MEMORY_H
#define TRPI_PERSISTENCE_JOURNAL_MEMORY_H

#include <stdint.h>

#include <troupe/journal.h>

/* An event or snapshot with all that it leads to in one allocation, but its id. */
typedef struct trpi_memory_item {
    trp_journal_event event;
} trpi_memory_item;

typedef struct trpi_memory_id {
    char *id;
    uint64_t highest;         /* number that an event has had; 0: none */
    trpi_memory_item **items; /* events by number; without gap */
    uint32_t items_count;
    uint32_t items_room;
    trpi_memory_item **snapshots; /* by number */
    uint32_t snapshots_count;
    uint32_t snapshots_room;
} trpi_memory_id;

typedef struct trpi_memory_scope {
    char *scope;
    char *writer;
    uint64_t epoch;
} trpi_memory_scope;

typedef struct trpi_memory_data {
    trpi_memory_id **ids; /* in the order of bytes */
    uint32_t ids_count;
    uint32_t ids_room;
    trpi_memory_scope *scopes; /* in the order of bytes */
    uint32_t scopes_count;
    uint32_t scopes_room;
    trpi_memory_item **log; /* the event of offset i + 1; NULL: deleted */
    uint32_t log_count;
    uint32_t log_room;
    uint64_t bytes;     /* of the data of events and snapshots */
    uint64_t bytes_max; /* 0: no bound */
} trpi_memory_data;

/* Carry out a checked operation and answer it. */
void trpi_memory_data_run(trpi_memory_data *data, trp_journal_op *op);
void trpi_memory_data_fini(trpi_memory_data *data);

#endif
