/* durable_store.c - owners, counts and limits of the queues of a storage.
 *
 * Shape.   store: a storage (LMDB in a directory, or one that was given) with its lock
 *            -> queues by key, each with an owner, a count and bytes
 * Must hold.
 *   durable-store-S1  A storage is called by one thread at a time, and a directory is open once in
 *       a process: a second opener shares the store.
 *   durable-store-S2  Count and bytes change after the storage has done its part, never before.
 * Limits.  Per queue those of trpi_store_put(); keys of TRP_DURABLE_KEY_BYTES_MAX bytes.
 * Threads. `stores_lock`, then a store's lock; leaves, but for the storage's own.
 * Tests.   tests/unit/pattern/storage_test.c, tests/unit/pattern/durable_test.c
 * Sources. DUR-01, -05, -06.
 */
#include "pattern/durable_store.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"
#include "base/sized.h"

struct trpi_store {
    trpi_store *next;
    uint32_t refs; /* under stores_lock */
    dev_t device;  /* of its directory, if it has one */
    ino_t inode;
    pthread_mutex_t lock; /* everything below, and the storage (durable-store-S1) */
    trp_durable_storage storage;
    trpi_store_queue *queues;
};

static pthread_mutex_t stores_lock = PTHREAD_MUTEX_INITIALIZER; /* durable-store-S1 */
static trpi_store *stores;

/* ---- stores ---------------------------------------------------------------------------------- */

static trpi_store *
store_new(void)
{
    trpi_store *store = trpi_alloc(sizeof *store);

    if (store != NULL) {
        store->refs = 1;
        pthread_mutex_init(&store->lock, NULL);
    }
    return store;
}

static void
store_free(trpi_store *store)
{
    while (store->queues != NULL) {
        trpi_store_queue *next = store->queues->sibling;

        trpi_free(store->queues);
        store->queues = next;
    }
    if (store->storage.close != NULL) {
        store->storage.close(store->storage.arg);
    }
    trpi_mutex_destroy(&store->lock);
    trpi_free(store);
}

/* Under stores_lock, as the next two. */
static void
store_add(trpi_store *store)
{
    store->next = stores;
    stores = store;
}

/* Find a store by its storage, or (status) by its directory. */
static trpi_store *
store_find(const void *arg, const struct stat *status)
{
    for (trpi_store *store = stores; store != NULL; store = store->next) {
        if (status == NULL ? store->storage.arg == arg
                           : store->inode != 0 && store->device == status->st_dev &&
                                 store->inode == status->st_ino) {
            store->refs++;
            return store;
        }
    }
    return NULL;
}

static trp_err
directory_open(const char *directory, uint64_t map_bytes, trpi_store **ret_store, char *error)
{
    trpi_store *store = store_new();
    struct stat status;
    trp_err err;

    if (store == NULL) {
        (void)snprintf(error, TRPI_STORE_ERROR_BYTES, "out of memory");
        return TRP_ENOMEM;
    }
    err = trpi_lmdb_open(directory, map_bytes, &store->storage, error);
    if (err == TRP_OK && stat(directory, &status) != 0) {
        (void)snprintf(error, TRPI_STORE_ERROR_BYTES, "directory %s has gone", directory);
        err = TRP_EIO;
    }
    if (err != TRP_OK) {
        store_free(store);
        return err;
    }
    store->device = status.st_dev;
    store->inode = status.st_ino;
    store_add(store);
    *ret_store = store;
    return TRP_OK;
}

trp_err
trpi_store_open(const char *directory, uint64_t map_bytes, trpi_store **ret_store, char *error)
{
    struct stat status;
    trpi_store *store = NULL;
    trp_err err = TRP_OK;

    pthread_mutex_lock(&stores_lock);
    if (stat(directory, &status) == 0) {
        store = store_find(NULL, &status);
    }
    if (store != NULL) {
        *ret_store = store;
    } else {
        err = directory_open(directory, map_bytes, ret_store, error);
    }
    pthread_mutex_unlock(&stores_lock);
    return err;
}

trp_err
trpi_store_open_on(const trp_durable_storage *storage, trpi_store **ret_store)
{
    trp_durable_storage own;
    trpi_store *store;

    if (!TRPI_SIZED_TAKE(storage, &own, close) || storage->arg == NULL || storage->queue == NULL ||
        storage->put == NULL || storage->take == NULL) {
        return TRP_EINVAL;
    }
    pthread_mutex_lock(&stores_lock);
    store = store_find(storage->arg, NULL);
    if (store == NULL) {
        store = store_new();
        if (store != NULL) {
            store->storage = *storage;
            store_add(store);
        }
    }
    pthread_mutex_unlock(&stores_lock);
    if (store == NULL) {
        return TRP_ENOMEM;
    }
    *ret_store = store;
    return TRP_OK;
}

trpi_store *
trpi_store_ref(trpi_store *store)
{
    pthread_mutex_lock(&stores_lock);
    store->refs++;
    pthread_mutex_unlock(&stores_lock);
    return store;
}

void
trpi_store_unref(trpi_store *store)
{
    if (store == NULL) {
        return;
    }
    pthread_mutex_lock(&stores_lock);
    if (--store->refs == 0) {
        trpi_store **link = &stores;

        while (*link != store) {
            link = &(*link)->next;
        }
        *link = store->next;
        /* under the lock: the next opener finds it closed (durable-store-S1) */
        store_free(store);
    }
    pthread_mutex_unlock(&stores_lock);
}

/* ---- queues ---------------------------------------------------------------------------------- */

/* Under the lock. */
static trp_err
queue_get(trpi_store *store, const char *key, trpi_store_queue **ret_queue)
{
    trpi_store_queue *queue = store->queues;
    size_t bytes = strlen(key) + 1;
    uint32_t items = 0;
    trp_err err;

    trpi_assert(bytes <= TRP_DURABLE_KEY_BYTES_MAX + 1);
    while (queue != NULL && strcmp(queue->key, key) != 0) {
        queue = queue->sibling;
    }
    if (queue == NULL) {
        queue = trpi_alloc(sizeof *queue + bytes);
        if (queue == NULL) {
            return TRP_ENOMEM;
        }
        err = store->storage.queue(store->storage.arg, key, &queue->stored, &items, &queue->bytes);
        if (err != TRP_OK) {
            trpi_free(queue);
            return err;
        }
        queue->store = store;
        memcpy(queue->key, key, bytes);
        atomic_store(&queue->count, items);
        queue->sibling = store->queues;
        store->queues = queue;
    }
    *ret_queue = queue;
    return TRP_OK;
}

trp_err
trpi_store_queue_open(trpi_store *store, const char *key, void *owner, trpi_store_queue **ret_queue)
{
    trpi_store_queue *queue = NULL;
    trp_err err;

    pthread_mutex_lock(&store->lock);
    err = queue_get(store, key, &queue);
    if (err == TRP_OK && queue->owner != NULL) {
        err = TRP_EEXIST;
    }
    if (err == TRP_OK) {
        queue->owner = owner;
        *ret_queue = queue;
    }
    pthread_mutex_unlock(&store->lock);
    return err;
}

void
trpi_store_queue_close(trpi_store_queue *queue, const void *owner)
{
    pthread_mutex_lock(&queue->store->lock);
    if (queue->owner == owner) {
        queue->owner = NULL;
    }
    pthread_mutex_unlock(&queue->store->lock);
}

/* ---- records --------------------------------------------------------------------------------- */

typedef struct dropped_record {
    struct dropped_record *next;
    trpi_store_record record;
} dropped_record;

static bool
is_full(const trpi_store_queue *queue, const trpi_store_limits *limits, size_t bytes)
{
    return atomic_load(&queue->count) >= limits->max_items ||
           queue->bytes + bytes > limits->max_bytes;
}

/* Copy a record out of the storage, which may call this twice. */
static trp_err
record_copy(void *to, const void *data, size_t bytes)
{
    trpi_store_record *record = to;

    trpi_free(record->data);
    record->data = trpi_alloc(bytes + 1);
    if (record->data == NULL) {
        return TRP_ENOMEM;
    }
    memcpy(record->data, data, bytes);
    record->bytes = bytes;
    return TRP_OK;
}

/* Under the lock. */
static trp_err
record_take(trpi_store_queue *queue, bool sync, trpi_store_record *ret_record)
{
    const trp_durable_storage *storage = &queue->store->storage;
    trpi_store_record record = { NULL, 0 };
    trp_err err = storage->take(storage->arg, queue->stored, sync, record_copy, &record);

    if (err == TRP_OK && record.data == NULL) {
        err = TRP_EDATA; /* the storage reports success without a record */
    }
    if (err != TRP_OK) {
        trpi_free(record.data);
        return err;
    }
    /* durable-store-S2 */
    queue->bytes -= queue->bytes < record.bytes ? queue->bytes : record.bytes;
    if (atomic_load(&queue->count) > 0) {
        (void)atomic_fetch_sub(&queue->count, 1);
    }
    *ret_record = record;
    return TRP_OK;
}

/* Under the lock. */
static trp_err
record_put(trpi_store_queue *queue, const void *data, size_t bytes, bool sync)
{
    const trp_durable_storage *storage = &queue->store->storage;
    trp_err err = storage->put(storage->arg, queue->stored, data, bytes, sync);

    if (err == TRP_OK) { /* durable-store-S2 */
        queue->bytes += bytes;
        (void)atomic_fetch_add(&queue->count, 1);
    }
    return err;
}

trp_err
trpi_store_put(trpi_store_queue *queue, const void *owner, const trpi_store_limits *limits,
               const void *data, size_t bytes,
               void (*dropped)(void *arg, const trpi_store_record *record), void *arg)
{
    dropped_record *gone = NULL, **gone_end = &gone;
    trp_err err = TRP_OK;

    pthread_mutex_lock(&queue->store->lock);
    if (queue->owner != owner) {
        err = TRP_ECLOSED;
    } else if (bytes > limits->max_bytes) {
        err = TRP_EAGAIN; /* full even with all the room that can be freed */
    }
    while (err == TRP_OK && is_full(queue, limits, bytes)) {
        dropped_record *drop = limits->refuse_when_full ? NULL : trpi_alloc(sizeof *drop);

        if (drop == NULL) {
            err = limits->refuse_when_full ? TRP_EAGAIN : TRP_ENOMEM;
            break;
        }
        *gone_end = drop;
        gone_end = &drop->next;
        err = record_take(queue, false, &drop->record);
    }
    if (err == TRP_OK) {
        err = record_put(queue, data, bytes, limits->sync);
    }
    pthread_mutex_unlock(&queue->store->lock);
    while (gone != NULL) {
        dropped_record *next = gone->next;

        if (gone->record.data != NULL) {
            dropped(arg, &gone->record);
        }
        trpi_free(gone->record.data);
        trpi_free(gone);
        gone = next;
    }
    return err;
}

trp_err
trpi_store_take(trpi_store_queue *queue, bool sync, trpi_store_record *ret_record)
{
    trp_err err;

    pthread_mutex_lock(&queue->store->lock);
    err = record_take(queue, sync, ret_record);
    pthread_mutex_unlock(&queue->store->lock);
    return err;
}
