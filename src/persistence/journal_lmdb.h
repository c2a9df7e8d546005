/* journal_lmdb.h - what the files of the LMDB journal share: its tables, and steps on them. */
#ifndef TRPI_PERSISTENCE_JOURNAL_LMDB_H
#define TRPI_PERSISTENCE_JOURNAL_LMDB_H

#include <troupe/journal_lmdb.h>

#ifdef HAVE_LMDB

#include <lmdb.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/table.h"

#define TRPI_LMDB_KEY_BYTES 16
#define TRPI_LMDB_DELETE_EVENTS_MAX 4096u      /* of one transaction */
#define TRPI_LMDB_DELETE_BYTES_MAX (64u << 20) /* of their rows */
#define TRPI_LMDB_KNOWN_MAX 262144u            /* names in memory; above it they are read again */

/* A number with its place: events and snapshots have {id, number}, tagged ones {tag, offset}. */
typedef struct trpi_lmdb_key {
    unsigned char bytes[TRPI_LMDB_KEY_BYTES];
} trpi_lmdb_key;

/* A name whose row is in memory: an id, a scope or a tag. */
typedef struct trpi_lmdb_known {
    char *name;       /* NULL: an empty place */
    char *writer;     /* of a scope */
    uint64_t number;  /* of the id or tag; epoch of the scope */
    uint64_t highest; /* of an id: number of its last event, also of a deleted one */
    uint64_t floor;   /* of an id: what its row says of that */
} trpi_lmdb_known;

extern const trpi_table_kind trpi_lmdb_known_kind;

typedef struct trpi_lmdb_store {
    char *directory;
    int owner_fd;
    int data_fd; /* of LMDB; closed with env */
    MDB_env *env;
    MDB_dbi meta, ids, names, scopes, events, offsets, tags, tagged, snapshots;
    uint64_t page_bytes;
    uint64_t size_max;
    uint64_t allocated; /* bytes of the file */
    bool is_counted;    /* the file system keeps no room for us: ask it how much is free */

    /* Of the thread that writes; in step with its transaction. */
    trpi_table known_ids, known_scopes, known_tags;
    uint64_t offset;     /* last one that was given */
    uint64_t end_page;   /* behind the last page in use, at the start of the transaction */
    uint64_t free_pages; /* before end_page; UINT64_MAX: not counted yet */
    uint64_t pages;      /* that the transaction may have taken so far */
} trpi_lmdb_store;

/* Open the directory. Errors: those of trp_journal_lmdb_open; why says more. */
trp_err trpi_lmdb_store_open(trpi_lmdb_store *store, const trp_journal_lmdb_options *options,
                             char *why, size_t why_bytes);
void trpi_lmdb_store_fini(trpi_lmdb_store *store); /* also of a half-open one */
/* Forget what is known of names: the transaction has not been committed, or there are many. */
void trpi_lmdb_store_forget(trpi_lmdb_store *store);
uint64_t trpi_lmdb_store_bytes(const trpi_lmdb_store *store);

/* Begin to write: sets end_page and the others of the transaction. Returns a code of LMDB. */
int trpi_lmdb_begin(trpi_lmdb_store *store, MDB_txn **ret_txn);
/* Take room for so many pages: TRP_OK, or TRP_EAGAIN with the reason. growth: it stores something
 * that stays, and the reserve is not for it. */
trp_err trpi_lmdb_room(trpi_lmdb_store *store, uint64_t pages, bool growth, char *why,
                       size_t why_bytes);

/* Carry out an operation that changes something. 0: it has been answered with its done function
 * set aside, and EAGAIN: the first slice of a large deletion has. Another code of LMDB: the
 * transaction is of no use any more. */
int trpi_lmdb_change(trpi_lmdb_store *store, MDB_txn *txn, trp_journal_op *op);
/* Likewise, one slice of a deletion; is_begun: not the first. */
int trpi_lmdb_delete(trpi_lmdb_store *store, MDB_txn *txn, trp_journal_op *op, bool is_begun);
int trpi_lmdb_snapshot_delete(trpi_lmdb_store *store, MDB_txn *txn, trp_journal_op *op);
/* Carry out a read and answer it. */
void trpi_lmdb_read(const trpi_lmdb_store *store, MDB_txn *txn, trp_journal_op *op);

/* Return how an error of LMDB or the system is called here. */
trp_err trpi_lmdb_err(int code);

trpi_lmdb_key trpi_lmdb_key_of(uint64_t first, uint64_t second);
uint64_t trpi_lmdb_u64_get(const void *bytes); /* big-endian, so that keys are in order */
void trpi_lmdb_u64_put(void *bytes, uint64_t value);

/* The row of an event or a snapshot. */
#define TRPI_LMDB_ROW_HEAD 32u
size_t trpi_lmdb_row_bytes(const trp_journal_event *event);
void trpi_lmdb_row_write(unsigned char *row, const trp_journal_event *event, uint64_t number,
                         uint64_t offset);
/* Fill *ret_event, but its id; tags has room for TRP_JOURNAL_TAGS_MAX. False: it is damaged. */
bool trpi_lmdb_row_read(const MDB_val *row, uint64_t number, const char **tags,
                        trp_journal_event *ret_event);

/* Find the row of an id: number and floor. Returns a code of LMDB. */
int trpi_lmdb_id_find(const trpi_lmdb_store *store, MDB_txn *txn, const char *id,
                      uint64_t *ret_number, uint64_t *ret_floor);
/* Return the number of the last row of `first` in a table with keys of two numbers; 0: none. */
int trpi_lmdb_last(MDB_txn *txn, MDB_dbi table, uint64_t first, uint64_t *ret_number);

/* Steps of operations. They return a code of LMDB, or that the operation has been answered. */
#define TRPI_LMDB_ANSWERED (-1)
int trpi_lmdb_refuse(trp_journal_op *op, trp_err err, const char *why);
int trpi_lmdb_done(trp_journal_op *op); /* returns 0 */
/* Answer op as fenced unless its epoch is the present one. */
int trpi_lmdb_fence_check(trpi_lmdb_store *store, MDB_txn *txn, trp_journal_op *op);
/* Find what is known of an id; *ret_id NULL: it has never been written. */
int trpi_lmdb_id_known(trpi_lmdb_store *store, MDB_txn *txn, const char *name,
                       trpi_lmdb_known **ret_id);
/* Write the row of an id: its number, and the highest number that no event shows any more. */
int trpi_lmdb_id_write(const trpi_lmdb_store *store, MDB_txn *txn, trpi_lmdb_known *id,
                       uint64_t floor);
/* Find the number of a tag, or give it one. */
int trpi_lmdb_tag_number(trpi_lmdb_store *store, MDB_txn *txn, const char *name,
                         uint64_t *ret_number);

#endif /* HAVE_LMDB */
#endif
