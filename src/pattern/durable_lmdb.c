/* durable_lmdb.c - records in a directory, with LMDB: the default storage of durable mailboxes.
 *
 * Why.     A B-tree that is mapped into memory: a record is in the file when its transaction has
 *          been committed, and the file is whole at any moment of a kill.
 * Shape.   DIRECTORY/data.mdb   table "queues":  key text -> number of the queue; "" -> format
 *                               table "records": number, serial (both big-endian) -> record
 *          DIRECTORY/owner      locked by the process that uses the directory
 * Must hold.
 *   durable-lmdb-K1  A directory is open once in a process (durable_store.c sees to it; LMDB
 *       demands it), and in one process at a time; so the store's lock stands for LMDB's own
 *       (MDB_NOLOCK), and every transaction writes.
 *   durable-lmdb-K2  State in memory (next) changes after the commit, never before.
 *   durable-lmdb-K3  Records can be taken out even when the map is full: it is then made larger for
 *       a while.
 * Limits.  map_bytes of the directory; keys of 500 bytes.
 * Threads. One call at a time: the store's lock is held.
 * Tests.   tests/unit/pattern/storage_test.c, tests/unit/pattern/durable_test.c
 * Sources. DUR-01, -03, -05; docs/architecture.md#dependencies.
 */
#include "pattern/durable_lmdb.h"

#ifdef HAVE_LMDB

#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"

#define FORMAT "troupe mail 1"
#define PATH_BYTES 4096
#define KEY_BYTES 16
#define MORE_ROOM (1u << 20) /* durable-lmdb-K3 */

typedef struct lmdb_queue {
    struct lmdb_queue *sibling;
    uint64_t number;
    uint64_t next; /* of the next record */
} lmdb_queue;

typedef struct lmdb {
    int owner_fd;
    MDB_env *env;
    MDB_dbi queues_table, records_table;
    uint64_t map_bytes;
    bool widened; /* durable-lmdb-K3 */
    lmdb_queue *queues;
} lmdb;

/* Translate an error of LMDB. */
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
    case EFBIG:
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

/* Commit the transaction if code is 0, else abort it. */
static int
transaction_end(lmdb *store, MDB_txn *txn, int code, bool sync)
{
    if (code != 0) {
        mdb_txn_abort(txn);
        return code;
    }
    code = mdb_txn_commit(txn);
    return code == 0 && sync ? mdb_env_sync(store->env, 1) : code;
}

/* Enlarge the map (durable-lmdb-K3). Not inside a transaction. */
static int
map_widen(lmdb *store)
{
    MDB_envinfo info;
    int code = mdb_env_info(store->env, &info);

    store->widened = true;
    return code != 0 ? code : mdb_env_set_mapsize(store->env, info.me_mapsize + MORE_ROOM);
}

/* Shrink the map to its configured size, or as near to it as the stored records allow. */
static void
map_narrow(lmdb *store)
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
seek_first(MDB_cursor *cursor, const lmdb_queue *queue, MDB_val *key, MDB_val *data)
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

/* Check that the database is ours. An empty one becomes ours. */
static int
tables_open(lmdb *store, bool *ret_foreign)
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
        if (code == 0 &&
            (value.mv_size != sizeof FORMAT || memcmp(value.mv_data, FORMAT, sizeof FORMAT) != 0)) {
            code = MDB_VERSION_MISMATCH;
        }
    }
    code = code == 0 ? mdb_dbi_open(txn, "records", MDB_CREATE, &store->records_table) : code;
    return transaction_end(store, txn, code == MDB_NOTFOUND ? MDB_INCOMPATIBLE : code, false);
}

/* Check the length of the file: reading a truncated map is a signal (SIGBUS), not an error. */
static int
length_check(lmdb *store)
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
env_open(lmdb *store, const char *directory, bool *ret_foreign)
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

/* durable-lmdb-K1 */
static trp_err
directory_take(lmdb *store, const char *directory, char *error)
{
    char path[PATH_BYTES];
    struct stat status;

    if ((mkdir(directory, 0700) != 0 && errno != EEXIST) || stat(directory, &status) != 0) {
        (void)snprintf(error, TRPI_STORE_ERROR_BYTES, "cannot make directory %s: %s", directory,
                       strerror(errno));
        return TRP_EIO;
    }
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
lmdb_close(void *arg)
{
    lmdb *store = arg;

    while (store->queues != NULL) {
        lmdb_queue *next = store->queues->sibling;

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
    trpi_free(store);
}

/* ---- queues ---------------------------------------------------------------------------------- */

/* Find the number of the queue; give it a new one if it has none. */
static int
number_get(lmdb *store, MDB_txn *txn, const char *key, uint64_t *ret_number)
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

/* Count the records that an earlier process left. */
static int
contents_count(lmdb *store, MDB_txn *txn, lmdb_queue *queue, uint32_t *ret_items,
               uint64_t *ret_bytes)
{
    MDB_cursor *cursor;
    MDB_val key, data;
    int code = mdb_cursor_open(txn, store->records_table, &cursor);

    if (code != 0) {
        return code;
    }
    *ret_items = 0;
    *ret_bytes = 0;
    queue->next = 1;
    code = seek_first(cursor, queue, &key, &data);
    while (code == 0) {
        *ret_items += 1;
        *ret_bytes += data.mv_size;
        queue->next = half_read((const unsigned char *)key.mv_data + 8) + 1;
        code = mdb_cursor_get(cursor, &key, &data, MDB_NEXT);
        if (code == 0 && (key.mv_size != KEY_BYTES || half_read(key.mv_data) != queue->number)) {
            break;
        }
    }
    mdb_cursor_close(cursor);
    return code == MDB_NOTFOUND ? 0 : code;
}

static trp_err
lmdb_queue_open(void *arg, const char *key, void **ret_queue, uint32_t *ret_items,
                uint64_t *ret_bytes)
{
    lmdb *store = arg;
    lmdb_queue *queue = trpi_alloc(sizeof *queue);
    MDB_txn *txn;
    int code = queue == NULL ? ENOMEM : mdb_txn_begin(store->env, NULL, 0, &txn);

    if (code == 0) {
        code = number_get(store, txn, key, &queue->number);
        code = code == 0 ? contents_count(store, txn, queue, ret_items, ret_bytes) : code;
        code = transaction_end(store, txn, code, false);
    }
    if (code != 0) {
        trpi_free(queue);
        return err_of(code);
    }
    queue->sibling = store->queues;
    store->queues = queue;
    *ret_queue = queue;
    return TRP_OK;
}

static trp_err
lmdb_put(void *arg, void *where, const void *data, size_t bytes, int sync)
{
    unsigned char key_bytes[KEY_BYTES];
    MDB_val key = { sizeof key_bytes, key_bytes }, value = { bytes, (void *)(uintptr_t)data };
    lmdb *store = arg;
    lmdb_queue *queue = where;
    MDB_txn *txn;
    int code;

    map_narrow(store);
    code = mdb_txn_begin(store->env, NULL, 0, &txn);
    if (code != 0) {
        return err_of(code);
    }
    key_write(key_bytes, queue->number, queue->next);
    code =
        transaction_end(store, txn, mdb_put(txn, store->records_table, &key, &value, 0), sync != 0);
    if (code == 0) { /* durable-lmdb-K2 */
        queue->next++;
    }
    return err_of(code);
}

/* Give the first record to the caller and delete it; *ret_given: the result of give(). */
static int
first_remove(lmdb *store, MDB_txn *txn, const lmdb_queue *queue, trp_durable_give_fn give, void *to,
             trp_err *ret_given)
{
    MDB_cursor *cursor;
    MDB_val key, data;
    int code = mdb_cursor_open(txn, store->records_table, &cursor);

    if (code != 0) {
        return code;
    }
    code = seek_first(cursor, queue, &key, &data);
    if (code == 0) {
        *ret_given = give(to, data.mv_data, data.mv_size);
        code = *ret_given == TRP_OK ? mdb_cursor_del(cursor, 0) : EINTR;
    }
    mdb_cursor_close(cursor);
    return code;
}

static trp_err
lmdb_take(void *arg, void *where, int sync, trp_durable_give_fn give, void *to)
{
    lmdb *store = arg;
    trp_err given = TRP_OK;
    int code = MDB_MAP_FULL;

    for (int tries = 0; tries < 2 && code == MDB_MAP_FULL; tries++) {
        MDB_txn *txn;

        code = mdb_txn_begin(store->env, NULL, 0, &txn);
        if (code == 0) {
            code = transaction_end(store, txn, first_remove(store, txn, where, give, to, &given),
                                   false);
        }
        if (code == MDB_MAP_FULL && map_widen(store) != 0) { /* durable-lmdb-K3 */
            break;
        }
    }
    if (code == 0 && sync) {
        /* No error if this fails: a crash of the machine may then deliver a record once more. */
        (void)mdb_env_sync(store->env, 1);
    }
    return given != TRP_OK ? given : err_of(code);
}

trp_err
trpi_lmdb_open(const char *directory, uint64_t map_bytes, trp_durable_storage *ret_storage,
               char *error)
{
    lmdb *store = trpi_alloc(sizeof *store);
    bool foreign = false;
    trp_err err;

    if (store == NULL) {
        (void)snprintf(error, TRPI_STORE_ERROR_BYTES, "out of memory");
        return TRP_ENOMEM;
    }
    store->owner_fd = -1;
    store->map_bytes = map_bytes;
    err = directory_take(store, directory, error);
    if (err == TRP_OK) {
        int code = env_open(store, directory, &foreign);

        err = err_of(code);
        if (err != TRP_OK) {
            (void)snprintf(error, TRPI_STORE_ERROR_BYTES, "%s/data.mdb: %s", directory,
                           foreign ? "a database of something else" : mdb_strerror(code));
        }
    }
    if (err != TRP_OK) {
        lmdb_close(store);
        return err == TRP_EAGAIN || err == TRP_ENOENT ? TRP_EIO : err;
    }
    *ret_storage =
        (trp_durable_storage){ sizeof *ret_storage, "lmdb",    store, lmdb_queue_open, lmdb_put,
                               lmdb_take,           lmdb_close };
    return TRP_OK;
}

#else /* --without-lmdb */

#include <stdio.h>

trp_err
trpi_lmdb_open(const char *directory, uint64_t map_bytes, trp_durable_storage *ret_storage,
               char *error)
{
    (void)directory;
    (void)map_bytes;
    (void)ret_storage;
    (void)snprintf(error, TRPI_STORE_ERROR_BYTES, "this build has no LMDB (--without-lmdb)");
    return TRP_EUNSUPPORTED;
}

#endif
