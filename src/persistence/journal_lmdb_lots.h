/* journal_lmdb_lots.h - the LMDB journal between its threads: queues, lots, deletions set aside. */
#ifndef TRPI_PERSISTENCE_JOURNAL_LMDB_LOTS_H
#define TRPI_PERSISTENCE_JOURNAL_LMDB_LOTS_H

#include "persistence/journal_lmdb.h"

#ifdef HAVE_LMDB

#include <pthread.h>

#define TRPI_LMDB_LOT_OPS_MAX 8192u
#define TRPI_LMDB_LOT_BYTES_MAX (64u << 20)
#define TRPI_LMDB_READ_PLACES 1024u /* a power of two */

typedef struct trpi_lmdb_queue {
    trp_journal_op *first;
    trp_journal_op *last;
} trpi_lmdb_queue;

/* A large deletion, between its slices: a transaction each. Operations that name its id come behind
 * it, and wait here in order; all else goes on between the slices. */
typedef struct trpi_lmdb_aside {
    struct trpi_lmdb_aside *next;
    trp_journal_op *deletion; /* NULL: it is done, and what is behind is carried out */
    trpi_lmdb_queue behind;   /* changes and reads */
    char id[TRP_JOURNAL_ID_BYTES_MAX + 1];
} trpi_lmdb_aside;

typedef struct trpi_lmdb_journal {
    trp_journal_driver driver;
    trpi_lmdb_store store;
    MDB_txn *reader_txn; /* reset between reads; of the reader */
    MDB_txn *writer_txn; /* of the writer, for reads that it carries out itself */
    pthread_t writer;
    pthread_t reader;
    bool has_writer;
    bool has_reader;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changes_come;
    pthread_cond_t reads_come;
    trpi_lmdb_queue changes;
    trpi_lmdb_queue reads;
    uint64_t submitted; /* changes */
    uint64_t passed;    /* changes: answered, or set aside when all before were */
    trpi_lmdb_aside *asides;
    bool is_closing;
    bool is_broken; /* journal-lmdb-S3 */
    uint32_t waiting;
    uint32_t reads_of[TRPI_LMDB_READ_PLACES]; /* waiting reads that name an id, by its hash */
    trp_journal_health figures;

    trp_journal_op *lot[TRPI_LMDB_LOT_OPS_MAX]; /* of the writer */
} trpi_lmdb_journal;

/* ---- queues: fields of an operation that are its driver's ------------------------------------ */

/* driver[3] is left alone: trp_journal_call() has it. */
static inline trp_journal_op *
trpi_lmdb_next(const trp_journal_op *op)
{
    return op->driver[0];
}

static inline uintptr_t
trpi_lmdb_hash(const trp_journal_op *op)
{
    return (uintptr_t)op->driver[1];
}

/* Of a change: its number. Of a read: how many changes come before it. */
static inline uintptr_t
trpi_lmdb_ticket(const trp_journal_op *op)
{
    return (uintptr_t)op->driver[2];
}

/* Does it read one id? */
static inline bool
trpi_lmdb_names_id(const trp_journal_op *op)
{
    return op->kind == TRP_JOURNAL_EVENTS || op->kind == TRP_JOURNAL_SNAPSHOT_LOAD;
}

void trpi_lmdb_queue_put(trpi_lmdb_queue *q, trp_journal_op *op);
/* Take an operation out, behind `before` (NULL: the first). */
trp_journal_op *trpi_lmdb_queue_take(trpi_lmdb_queue *q, trp_journal_op *before);
void trpi_lmdb_ignore(trp_journal_op *op); /* a done function that does nothing */

/* journal_lmdb.c. Take a read off its queue, behind `before`; under the lock. */
trp_journal_op *trpi_lmdb_read_take(trpi_lmdb_journal *journal, trp_journal_op *before);
/* Carry out a read whose snapshot has been taken, and answer it. */
void trpi_lmdb_read_run(trpi_lmdb_journal *journal, MDB_txn *txn, int code, trp_journal_op *op);

/* journal_lmdb_lot.c. The thread that writes. */
void *trpi_lmdb_writer_main(void *arg);
/* The deletion that comes before what names this id; NULL: none. Under the lock. */
trpi_lmdb_aside *trpi_lmdb_aside_of(const trpi_lmdb_journal *journal, const char *id);

#endif
#endif
