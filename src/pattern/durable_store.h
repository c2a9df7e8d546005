/* durable_store.h - private to the room: queues of records on some storage, each with one owner.
 *
 * A queue is found by its key and belongs to one user at a time. Everything here may be called from
 * any thread.
 */
#ifndef TRPI_PATTERN_DURABLE_STORE_H
#define TRPI_PATTERN_DURABLE_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/base.h>
#include <troupe/durable.h>

#include "pattern/durable_lmdb.h"

typedef struct trpi_store trpi_store;

typedef struct trpi_store_queue {
    trpi_store *store;
    void *stored;           /* the storage's */
    _Atomic uint32_t count; /* written under the lock */
    uint64_t bytes;         /* under the lock */
    void *owner;            /* under the lock; NULL: no owner, and nothing is put in */
    struct trpi_store_queue *sibling;
    char key[]; /* with its NUL */
} trpi_store_queue;

typedef struct trpi_store_record { /* trpi_free(data) */
    void *data;
    size_t bytes;
} trpi_store_record;

typedef struct trpi_store_limits {
    uint32_t max_items;
    uint64_t max_bytes;
    bool refuse_when_full;
    bool sync;
} trpi_store_limits;

/* Open a directory, or share it if this process has it open. error: a sentence that says what
 * failed. Gives *ret_store. Errors: TRP_EUNSUPPORTED, TRP_EADDRINUSE, TRP_EDATA, TRP_EVERSION,
 * TRP_EIO, TRP_ENOMEM. */
trp_err trpi_store_open(const char *directory, uint64_t map_bytes, trpi_store **ret_store,
                        char *error);
/* The same for a storage of the program, or of the world, identified by its arg. Errors: TRP_EINVAL
 * (a function is missing), TRP_ENOMEM. */
trp_err trpi_store_open_on(const trp_durable_storage *storage, trpi_store **ret_store);
trpi_store *trpi_store_ref(trpi_store *store);
void trpi_store_unref(trpi_store *store); /* the last one closes; NULL is fine */

/* Find or make a queue. It lives as long as the store. Errors: TRP_EEXIST (it has another owner),
 * TRP_ENOMEM, and those of the storage. */
trp_err trpi_store_queue_open(trpi_store *store, const char *key, void *owner,
                              trpi_store_queue **ret_queue);
/* Close the queue: puts are refused from now on. */
void trpi_store_queue_close(trpi_store_queue *queue, const void *owner);
/* Put a record at the end; when this returns it is stored. Records that are dropped to make room
 * are then handed to dropped(arg, record), which borrows them. Errors: TRP_EAGAIN (full),
 * TRP_ECLOSED (not the owner), TRP_EIO, TRP_ENOMEM. */
trp_err trpi_store_put(trpi_store_queue *queue, const void *owner, const trpi_store_limits *limits,
                       const void *data, size_t bytes,
                       void (*dropped)(void *arg, const trpi_store_record *record), void *arg);
/* Take the first record out. Errors: TRP_ENOENT (it is empty), TRP_EIO, TRP_ENOMEM. */
trp_err trpi_store_take(trpi_store_queue *queue, bool sync, trpi_store_record *ret_record);

#endif
