/* durable_store.c - queues of records in LMDB.
 *
 * Why.     A B-tree that is mapped into memory: a record is in the file when its transaction has
 *          been committed, and the file is whole at any moment of a kill.
 * Shape.   DIRECTORY/data.mdb   table "queues":  key text -> number of the queue; "" -> format
 *                               table "records": number, serial (both big-endian) -> record
 *          DIRECTORY/owner      locked by the process that uses the directory
 * Must hold.
 *   K1  A directory is open once in a process (LMDB demands it), and in one process at a time; so
 *       one mutex here stands for LMDB's own locks (MDB_NOLOCK), and every transaction writes.
 *   K2  What is in memory (count, bytes, next) changes after the commit, never before.
 *   K3  Taking out works also when the map is full: it is then made larger for a while.
 * Limits.  map_bytes of the directory; per queue what put() is given; keys of 500 bytes.
 * Threads. `stores_lock`, then a store's lock; leaves.
 * Tests.   tests/unit/pattern/durable_test.c
 * Sources. DUR-01, -03, -05; DESIGN 8.
 */
#include "pattern/durable_store.h"

#ifdef HAVE_LMDB

#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"

#define FORMAT "troupe mail 1"
#define PATH_BYTES 4096
#define KEY_BYTES 16
#define MORE_ROOM (1u << 20) /* K3 */

struct trpi_store {
    trpi_store *next;
    uint32_t refs; /* under stores_lock */
    dev_t device;
    ino_t inode;
    int owner_fd;
    pthread_mutex_t lock; /* everything below, and LMDB */
    MDB_env *env;
    MDB_dbi queues_table, records_table;
    uint64_t map_bytes;
    bool widened; /* K3 */
    trpi_store_queue *queues;
};

static pthread_mutex_t stores_lock = PTHREAD_MUTEX_INITIALIZER; /* K1 */
static trpi_store *stores;
static _Atomic uint32_t test_failures;

void
trpi_store_test_fail(uint32_t n)
{
    atomic_store(&test_failures, n);
}

/* What LMDB says, in our terms. */
static trp_err
err_of(int code)
{
    switch (code) {
    case 0:
        return TRP_OK;
    case MDB_NOTFOUND:
        return TRP_ENOENT;
    case MDB_MAP_FULL:
    case ENOSPC:
    case EDQUOT:
        return TRP_EAGAIN;
    case ENOMEM:
        return TRP_ENOMEM;
    case MDB_INVALID:
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INCOMPATIBLE:
        return TRP_EDATA;
    case MDB_VERSION_MISMATCH:
        return TRP_EVERSION;
    default:
        return TRP_EIO;
    }
}

/* ---- transactions ---------------------------------------------------------------------------- */

static int
begin(trpi_store *store, MDB_txn **ret_txn)
{
    uint32_t failures = atomic_load(&test_failures);

    if (failures > 0) {
        atomic_store(&test_failures, failures - 1);
        return EIO;
    }
    return mdb_txn_begin(store->env, NULL, 0, ret_txn);
}

/* Commit what went well, and undo the rest. */
static int
end(trpi_store *store, MDB_txn *txn, int code, bool sync)
{
    if (code != 0) {
        mdb_txn_abort(txn);
        return code;
    }
    code = mdb_txn_commit(txn);
    return code == 0 && sync ? mdb_env_sync(store->env, 1) : code;
}

/* K3. To be called without a transaction. */
static int
widen(trpi_store *store)
{
    MDB_envinfo info;
    int code = mdb_env_info(store->env, &info);

    store->widened = true;
    return code != 0 ? code : mdb_env_set_mapsize(store->env, info.me_mapsize + MORE_ROOM);
}

/* Back to what was agreed on, or as near to it as what is stored lets. */
static void
narrow(trpi_store *store)
{
    if (store->widened && mdb_env_set_mapsize(store->env, store->map_bytes) == 0) {
        store->widened = false;
    }
}

static void
key_write(unsigned char *key, uint64_t number, uint64_t serial)
{
    for (int i = 0; i < 8; i++) {
        key[7 - i] = (unsigned char)(number >> 8 * i);
        key[15 - i] = (unsigned char)(serial >> 8 * i);
    }
}

static uint64_t
half_read(const unsigned char *half)
{
    uint64_t value = 0;

    for (int i = 0; i < 8; i++) {
        value = value << 8 | half[i];
    }
    return value;
}

/* Put the cursor on the first record of the queue. */
static int
seek_first(MDB_cursor *cursor, const trpi_store_queue *queue, MDB_val *key, MDB_val *data)
{
    unsigned char bytes[KEY_BYTES];
    int code;

    key_write(bytes, queue->number, 0);
    *key = (MDB_val){ sizeof bytes, bytes };
    code = mdb_cursor_get(cursor, key, data, MDB_SET_RANGE);
    if (code == 0 && (key->mv_size != KEY_BYTES || half_read(key->mv_data) != queue->number)) {
        return MDB_NOTFOUND;
    }
    return code;
}

/* ---- a directory ----------------------------------------------------------------------------- */

/* Is it ours? An empty one becomes ours. */
static int
tables_open(trpi_store *store, bool *ret_foreign)
{
    MDB_val key = { 6, "format" }, value = { sizeof FORMAT, FORMAT };
    MDB_txn *txn;
    MDB_stat stat;
    int code = mdb_txn_begin(store->env, NULL, 0, &txn);

    *ret_foreign = false;
    if (code != 0) {
        return code;
    }
    code = mdb_dbi_open(txn, "queues", 0, &store->queues_table);
    if (code == MDB_NOTFOUND) {
        MDB_dbi main_table;

        code = mdb_dbi_open(txn, NULL, 0, &main_table);
        code = code == 0 ? mdb_stat(txn, main_table, &stat) : code;
        *ret_foreign = code == 0 && stat.ms_entries > 0;
        code = *ret_foreign ? MDB_INCOMPATIBLE : code;
        code = code == 0 ? mdb_dbi_open(txn, "queues", MDB_CREATE, &store->queues_table) : code;
        code = code == 0 ? mdb_put(txn, store->queues_table, &key, &value, 0) : code;
    } else if (code == 0) {
        code = mdb_get(txn, store->queues_table, &key, &value);
        *ret_foreign = code == MDB_NOTFOUND;
        if (code == 0 && (value.mv_size != sizeof FORMAT ||
                          memcmp(value.mv_data, FORMAT, sizeof FORMAT) != 0)) {
            code = MDB_VERSION_MISMATCH;
        }
    }
    code = code == 0 ? mdb_dbi_open(txn, "records", MDB_CREATE, &store->records_table) : code;
    return end(store, txn, code == MDB_NOTFOUND ? MDB_INCOMPATIBLE : code, false);
}

/* A file that was cut would be read beyond its end, which is a signal and no error. */
static int
length_check(trpi_store *store)
{
    MDB_envinfo info;
    struct stat status;
    MDB_stat stat;
    int fd;
    int code = mdb_env_get_fd(store->env, &fd);

    code = code == 0 ? mdb_env_info(store->env, &info) : code;
    code = code == 0 ? mdb_env_stat(store->env, &stat) : code;
    if (code != 0) {
        return code;
    }
    if (fstat(fd, &status) != 0) {
        return errno;
    }
    return (uint64_t)status.st_size < (info.me_last_pgno + 1) * stat.ms_psize ? MDB_CORRUPTED : 0;
}

static int
env_open(trpi_store *store, const char *directory, bool *ret_foreign)
{
    int code = mdb_env_create(&store->env);

    *ret_foreign = false;
    if (code != 0) {
        store->env = NULL;
        return code;
    }
    code = mdb_env_set_maxdbs(store->env, 2);
    code = code == 0 ? mdb_env_set_mapsize(store->env, store->map_bytes) : code;
    code = code == 0
               ? mdb_env_open(store->env, directory, MDB_NOLOCK | MDB_NOSYNC | MDB_NOTLS, 0600)
               : code;
    code = code == 0 ? length_check(store) : code;
    return code == 0 ? tables_open(store, ret_foreign) : code;
}

/* K1 */
static trp_err
directory_take(trpi_store *store, const char *directory, char *error)
{
    char path[PATH_BYTES];
    struct stat status;

    if ((mkdir(directory, 0700) != 0 && errno != EEXIST) || stat(directory, &status) != 0) {
        (void)snprintf(error, TRPI_STORE_ERROR_BYTES, "cannot make directory %s: %s", directory,
                       strerror(errno));
        return TRP_EIO;
    }
    store->device = status.st_dev;
    store->inode = status.st_ino;
    if ((size_t)snprintf(path, sizeof path, "%s/owner", directory) >= sizeof path) {
        (void)snprintf(error, TRPI_STORE_ERROR_BYTES, "the name of the directory is too long");
        return TRP_EIO;
    }
    store->owner_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (store->owner_fd < 0) {
        (void)snprintf(error, TRPI_STORE_ERROR_BYTES, "cannot open %s: %s", path, strerror(errno));
        return TRP_EIO;
    }
    if (flock(store->owner_fd, LOCK_EX | LOCK_NB) != 0) {
        (void)snprintf(error, TRPI_STORE_ERROR_BYTES, "%s is in use by another process", directory);
        return TRP_EADDRINUSE;
    }
    return TRP_OK;
}

static void
store_free(trpi_store *store)
{
    while (store->queues != NULL) {
        trpi_store_queue *next = store->queues->sibling;

        trpi_free(store->queues);
        store->queues = next;
    }
    if (store->env != NULL) {
        (void)mdb_env_sync(store->env, 1);
        mdb_env_close(store->env);
    }
    if (store->owner_fd >= 0) {
        (void)close(store->owner_fd);
    }
    trpi_mutex_destroy(&store->lock);
    trpi_free(store);
}

/* Under stores_lock. */
static trpi_store *
store_find(const char *directory)
{
    struct stat status;

    if (stat(directory, &status) != 0) {
        return NULL;
    }
    for (trpi_store *store = stores; store != NULL; store = store->next) {
        if (store->device == status.st_dev && store->inode == status.st_ino) {
            return store;
        }
    }
    return NULL;
}

/* Under stores_lock. */
static trp_err
store_make(const char *directory, uint64_t map_bytes, trpi_store **ret_store, char *error)
{
    trpi_store *store = trpi_alloc(sizeof *store);
    bool foreign = false;
    trp_err err;
    int code;

    if (store == NULL) {
        (void)snprintf(error, TRPI_STORE_ERROR_BYTES, "out of memory");
        return TRP_ENOMEM;
    }
    store->owner_fd = -1;
    store->refs = 1;
    store->map_bytes = map_bytes;
    (void)pthread_mutex_init(&store->lock, NULL);
    err = directory_take(store, directory, error);
    if (err == TRP_OK) {
        code = env_open(store, directory, &foreign);
        err = err_of(code);
        if (err != TRP_OK) {
            (void)snprintf(error, TRPI_STORE_ERROR_BYTES, "%s/data.mdb: %s", directory,
                           foreign ? "a database of something else" : mdb_strerror(code));
        }
    }
    if (err != TRP_OK) {
        store_free(store);
        return err == TRP_EAGAIN || err == TRP_ENOENT ? TRP_EIO : err;
    }
    store->next = stores;
    stores = store;
    *ret_store = store;
    return TRP_OK;
}

trp_err
trpi_store_open(const char *directory, uint64_t map_bytes, trpi_store **ret_store, char *error)
{
    trpi_store *store;
    trp_err err = TRP_OK;

    (void)pthread_mutex_lock(&stores_lock);
    store = store_find(directory);
    if (store != NULL) {
        store->refs++;
        *ret_store = store;
    } else {
        err = store_make(directory, map_bytes, ret_store, error);
    }
    (void)pthread_mutex_unlock(&stores_lock);
    return err;
}

trpi_store *
trpi_store_ref(trpi_store *store)
{
    (void)pthread_mutex_lock(&stores_lock);
    store->refs++;
    (void)pthread_mutex_unlock(&stores_lock);
    return store;
}

void
trpi_store_unref(trpi_store *store)
{
    if (store == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&stores_lock);
    if (--store->refs == 0) {
        trpi_store **link = &stores;

        while (*link != store) {
            link = &(*link)->next;
        }
        *link = store->next;
        store_free(store); /* under the lock: who opens it next finds it closed (K1) */
    }
    (void)pthread_mutex_unlock(&stores_lock);
}

/* ---- queues ---------------------------------------------------------------------------------- */

/* Its number; a new one if it has none. */
static int
number_get(trpi_store *store, MDB_txn *txn, const char *key, uint64_t *ret_number)
{
    char text[512];
    MDB_val k = { 0, text }, value;
    MDB_stat stat;
    int written = snprintf(text, sizeof text, "q%s", key);
    int code;

    trpi_assert(written > 0 && (size_t)written < sizeof text);
    k.mv_size = (size_t)written;
    code = mdb_get(txn, store->queues_table, &k, &value);
    if (code == 0) {
        if (value.mv_size != sizeof *ret_number) {
            return MDB_CORRUPTED;
        }
        memcpy(ret_number, value.mv_data, sizeof *ret_number);
        return 0;
    }
    if (code == MDB_NOTFOUND) {
        code = mdb_stat(txn, store->queues_table, &stat); /* none is ever removed */
        *ret_number = stat.ms_entries;
        value = (MDB_val){ sizeof *ret_number, ret_number };
        code = code == 0 ? mdb_put(txn, store->queues_table, &k, &value, 0) : code;
    }
    return code;
}

/* K2: what an earlier life left. */
static int
contents_count(trpi_store *store, MDB_txn *txn, trpi_store_queue *queue)
{
    MDB_cursor *cursor;
    MDB_val key, data;
    uint32_t count = 0;
    int code = mdb_cursor_open(txn, store->records_table, &cursor);

    if (code != 0) {
        return code;
    }
    queue->bytes = 0;
    queue->next = 1;
    code = seek_first(cursor, queue, &key, &data);
    while (code == 0) {
        count++;
        queue->bytes += data.mv_size;
        queue->next = half_read((const unsigned char *)key.mv_data + 8) + 1;
        code = mdb_cursor_get(cursor, &key, &data, MDB_NEXT);
        if (code == 0 && (key.mv_size != KEY_BYTES || half_read(key.mv_data) != queue->number)) {
            break;
        }
    }
    mdb_cursor_close(cursor);
    atomic_store(&queue->count, count);
    return code == MDB_NOTFOUND ? 0 : code;
}

/* Under the lock. */
static trpi_store_queue *
queue_find(trpi_store *store, uint64_t number)
{
    trpi_store_queue *queue = store->queues;

    while (queue != NULL && queue->number != number) {
        queue = queue->sibling;
    }
    return queue;
}

/* Under the lock. */
static trp_err
queue_open(trpi_store *store, const char *key, trpi_store_queue **ret_queue)
{
    trpi_store_queue *queue = NULL, *made = NULL;
    uint64_t number = 0;
    MDB_txn *txn;
    int code = begin(store, &txn);

    if (code != 0) {
        return err_of(code);
    }
    code = number_get(store, txn, key, &number);
    queue = code == 0 ? queue_find(store, number) : NULL;
    if (code == 0 && queue == NULL) {
        queue = made = trpi_alloc(sizeof *made);
        if (made == NULL) {
            code = ENOMEM;
        } else {
            made->store = store;
            made->number = number;
            code = contents_count(store, txn, made);
        }
    }
    code = end(store, txn, code, false);
    if (code != 0) {
        trpi_free(made);
        return err_of(code);
    }
    if (made != NULL) {
        made->sibling = store->queues;
        store->queues = made;
    }
    *ret_queue = queue;
    return TRP_OK;
}

trp_err
trpi_store_queue_open(trpi_store *store, const char *key, void *owner,
                      trpi_store_queue **ret_queue)
{
    trpi_store_queue *queue = NULL;
    trp_err err;

    (void)pthread_mutex_lock(&store->lock);
    err = queue_open(store, key, &queue);
    if (err == TRP_OK && queue->owner != NULL) {
        err = TRP_EEXIST;
    }
    if (err == TRP_OK) {
        queue->owner = owner;
        *ret_queue = queue;
    }
    (void)pthread_mutex_unlock(&store->lock);
    return err;
}

void
trpi_store_queue_close(trpi_store_queue *queue, const void *owner)
{
    (void)pthread_mutex_lock(&queue->store->lock);
    if (queue->owner == owner) {
        queue->owner = NULL;
    }
    (void)pthread_mutex_unlock(&queue->store->lock);
}

/* Take the first record out, and give it if it is wanted. */
static int
first_remove(trpi_store *store, MDB_txn *txn, const trpi_store_queue *queue,
             trpi_store_record *ret_record)
{
    MDB_cursor *cursor;
    MDB_val key, data;
    int code = mdb_cursor_open(txn, store->records_table, &cursor);

    if (code != 0) {
        return code;
    }
    code = seek_first(cursor, queue, &key, &data);
    if (code == 0) {
        ret_record->bytes = data.mv_size;
        ret_record->data = trpi_alloc(data.mv_size + 1);
        if (ret_record->data == NULL) {
            code = ENOMEM;
        } else {
            memcpy(ret_record->data, data.mv_data, data.mv_size);
            code = mdb_cursor_del(cursor, 0);
        }
        if (code != 0) {
            trpi_free(ret_record->data);
            ret_record->data = NULL;
        }
    }
    mdb_cursor_close(cursor);
    return code;
}

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

static int
record_put(trpi_store_queue *queue, const void *data, size_t bytes, bool sync)
{
    unsigned char key_bytes[KEY_BYTES];
    MDB_val key = { sizeof key_bytes, key_bytes }, value = { bytes, (void *)(uintptr_t)data };
    trpi_store *store = queue->store;
    MDB_txn *txn;
    int code;

    narrow(store);
    code = begin(store, &txn);
    if (code != 0) {
        return code;
    }
    key_write(key_bytes, queue->number, queue->next);
    code = end(store, txn, mdb_put(txn, store->records_table, &key, &value, 0), sync);
    if (code == 0) { /* K2 */
        queue->next++;
        queue->bytes += bytes;
        (void)atomic_fetch_add(&queue->count, 1);
    }
    return code;
}

/* Under the lock. */
static int
record_take(trpi_store_queue *queue, bool sync, trpi_store_record *ret_record)
{
    trpi_store *store = queue->store;
    trpi_store_record record = { NULL, 0 };
    int code = MDB_MAP_FULL;

    for (int tries = 0; tries < 2 && code == MDB_MAP_FULL; tries++) {
        MDB_txn *txn;

        code = begin(store, &txn);
        if (code == 0) {
            code = end(store, txn, first_remove(store, txn, queue, &record), sync);
            if (code != 0) {
                trpi_free(record.data);
                record.data = NULL;
            }
        }
        if (code == MDB_MAP_FULL && widen(store) != 0) { /* K3 */
            break;
        }
    }
    if (code == 0) { /* K2 */
        queue->bytes -= record.bytes;
        (void)atomic_fetch_sub(&queue->count, 1);
        *ret_record = record;
    }
    return code;
}

trp_err
trpi_store_put(trpi_store_queue *queue, const void *owner, const trpi_store_limits *limits,
               const void *data, size_t bytes,
               void (*dropped)(void *arg, const trpi_store_record *record), void *arg)
{
    dropped_record *gone = NULL, **gone_end = &gone;
    trp_err err = TRP_OK;

    (void)pthread_mutex_lock(&queue->store->lock);
    if (queue->owner != owner) {
        err = TRP_ECLOSED;
    } else if (bytes > limits->max_bytes) {
        err = TRP_EAGAIN; /* not for all the room that it could get */
    }
    while (err == TRP_OK && is_full(queue, limits, bytes)) {
        dropped_record *drop = limits->refuse_when_full ? NULL : trpi_alloc(sizeof *drop);

        if (drop == NULL) {
            err = limits->refuse_when_full ? TRP_EAGAIN : TRP_ENOMEM;
            break;
        }
        *gone_end = drop;
        gone_end = &drop->next;
        err = err_of(record_take(queue, false, &drop->record));
    }
    if (err == TRP_OK) {
        err = err_of(record_put(queue, data, bytes, limits->sync));
    }
    (void)pthread_mutex_unlock(&queue->store->lock);
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

    (void)pthread_mutex_lock(&queue->store->lock);
    err = err_of(record_take(queue, sync, ret_record));
    (void)pthread_mutex_unlock(&queue->store->lock);
    return err;
}

#else /* --without-lmdb */

#include <stdio.h>

trp_err
trpi_store_open(const char *directory, uint64_t map_bytes, trpi_store **ret_store, char *error)
{
    (void)directory;
    (void)map_bytes;
    (void)ret_store;
    (void)snprintf(error, TRPI_STORE_ERROR_BYTES, "this build has no LMDB (--without-lmdb)");
    return TRP_EUNSUPPORTED;
}

/* Nobody has a store. */
trpi_store *
trpi_store_ref(trpi_store *store)
{
    return store;
}

void
trpi_store_unref(trpi_store *store)
{
    (void)store;
}

trp_err
trpi_store_queue_open(trpi_store *store, const char *key, void *owner,
                      trpi_store_queue **ret_queue)
{
    (void)store;
    (void)key;
    (void)owner;
    (void)ret_queue;
    return TRP_EUNSUPPORTED;
}

void
trpi_store_queue_close(trpi_store_queue *queue, const void *owner)
{
    (void)queue;
    (void)owner;
}

trp_err
trpi_store_put(trpi_store_queue *queue, const void *owner, const trpi_store_limits *limits,
               const void *data, size_t bytes,
               void (*dropped)(void *arg, const trpi_store_record *record), void *arg)
{
    (void)queue;
    (void)owner;
    (void)limits;
    (void)data;
    (void)bytes;
    (void)dropped;
    (void)arg;
    return TRP_EUNSUPPORTED;
}

trp_err
trpi_store_take(trpi_store_queue *queue, bool sync, trpi_store_record *ret_record)
{
    (void)queue;
    (void)sync;
    (void)ret_record;
    return TRP_EUNSUPPORTED;
}

void
trpi_store_test_fail(uint32_t n)
{
    (void)n;
}

#endif
