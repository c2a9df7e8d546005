/* journal_lmdb_store.c - the directory of an LMDB journal: who has it, its tables, its room.
 *
 * Shape. DIRECTORY/owner      locked by the process that uses the directory; its pid
 *        DIRECTORY/data.mdb   tables, keys big-endian:
 *            meta       "format", "opened"       ids        id -> its number, highest number
 *            names      number of an id -> id    scopes     scope -> epoch, writer
 *            events     number of id, number     offsets    offset -> number of id, number
 *            snapshots  number of id, number     tags, tagged   tag -> its number; that, offset
 *        DIRECTORY/lock.mdb   LMDB's table of readers
 * Must hold.
 *   journal-lmdb-L1  A directory is open once in a machine: the lock belongs to the open file, so a
 *       second opening in this process is refused as well.
 *   journal-lmdb-L2  What is read is durable: each opening commits once before anything is served,
 *       for a process that was killed may have left in the page cache what no flush has confirmed.
 *   journal-lmdb-L3  Room is taken before the write: the file has its blocks (fallocate) for all
 *       that a transaction may write, and a reserve that only deletion and claims may use.
 * Limits. size_max, and RESERVE_BYTES: LMDB's map has both.
 * Tests.  tests/unit/persistence/journal_lmdb_test.c
 * Sources. docs/adr, decision 287.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "persistence/journal_lmdb.h"

#ifdef HAVE_LMDB

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"

#define FORMAT "troupe journal 1"
#define PATH_BYTES 4096
#define TABLES 9
#define RESERVE_BYTES (2u << 20) /* of the map, and of the disk */
#define STEP_BYTES_MAX (64u << 20)
#define STEP_BYTES_LEAST (1u << 20)

trp_err
trpi_lmdb_err(int code)
{
    switch (code) {
    case 0:
        return TRP_OK;
    case MDB_NOTFOUND:
        return TRP_ENOENT;
    case MDB_MAP_FULL:
    case MDB_TXN_FULL:
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

/* Write the reason, and return err. */
static trp_err
reason_write(char *why, size_t why_bytes, trp_err err, const char *directory, const char *what,
             const char *reason)
{
    (void)snprintf(why, why_bytes, "journal %s: %s%s%s", directory, what,
                   reason[0] != '\0' ? ": " : "", reason);
    return err;
}

/* ---- who has it (journal-lmdb-L1) ------------------------------------------------------------ */

/* Make names of files durable. */
static int
directory_sync(const char *directory)
{
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int failed = fd < 0 || fsync(fd) != 0;
    int code = failed ? errno : 0;

    if (fd >= 0) {
        (void)close(fd);
    }
    return code;
}

static int
parent_sync(const char *directory)
{
    char path[PATH_BYTES];
    size_t bytes = strlen(directory);

    while (bytes > 0 && directory[bytes - 1] == '/') {
        bytes--;
    }
    while (bytes > 0 && directory[bytes - 1] != '/') {
        bytes--;
    }
    (void)snprintf(path, sizeof path, "%.*s", bytes != 0 ? (int)bytes : 1,
                   bytes != 0 ? directory : ".");
    return directory_sync(path);
}

/* Return whether LMDB's locks and maps do not hold there: NFS, SMB, CIFS, 9P. */
static bool
is_on_network(const char *directory)
{
    struct statfs status;

    return statfs(directory, &status) == 0 &&
           ((uint32_t)status.f_type == 0x6969u || (uint32_t)status.f_type == 0x517bu ||
            (uint32_t)status.f_type == 0xfe534d42u || (uint32_t)status.f_type == 0xff534d42u ||
            (uint32_t)status.f_type == 0x01021997u);
}

static trp_err
owner_refuse(const trpi_lmdb_store *store, char *why, size_t why_bytes)
{
    char pid[24] = "";
    ssize_t got = pread(store->owner_fd, pid, sizeof pid - 1, 0);
    char text[128];

    pid[got > 0 ? strspn(pid, "0123456789") : 0] = '\0';
    (void)snprintf(text, sizeof text,
                   "it is open already, in process %s; one process at a time may use it",
                   pid[0] != '\0' ? pid : "?");
    return reason_write(why, why_bytes, TRP_EADDRINUSE, store->directory, text, "");
}

static trp_err
owner_take(trpi_lmdb_store *store, char *why, size_t why_bytes)
{
    char path[PATH_BYTES];
    char pid[24];
    bool is_new = mkdir(store->directory, 0700) == 0;
    int bytes = snprintf(path, sizeof path, "%s/owner", store->directory);

    if (!is_new && errno != EEXIST) {
        return reason_write(why, why_bytes, TRP_EIO, store->directory,
                            "the directory cannot be made", strerror(errno));
    }
    if (is_new && parent_sync(store->directory) != 0) {
        return reason_write(why, why_bytes, TRP_EIO, store->directory,
                            "the directory cannot be synced", strerror(errno));
    }
    if (bytes < 0 || (size_t)bytes >= sizeof path) {
        return reason_write(why, why_bytes, TRP_EINVAL, store->directory, "the name is too long",
                            "");
    }
    if (is_on_network(store->directory)) {
        return reason_write(
            why, why_bytes, TRP_EUNSUPPORTED, store->directory,
            "it is on a network file system, where one writer cannot be told from two; "
            "take a disk of this host, or the PostgreSQL journal",
            "");
    }
    store->owner_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (store->owner_fd < 0) {
        return reason_write(why, why_bytes, TRP_EIO, path, "it cannot be opened", strerror(errno));
    }
    if (flock(store->owner_fd, LOCK_EX | LOCK_NB) != 0) {
        return owner_refuse(store, why, why_bytes);
    }
    bytes = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
    if (ftruncate(store->owner_fd, 0) != 0 ||
        pwrite(store->owner_fd, pid, (size_t)bytes, 0) != bytes) {
        return reason_write(why, why_bytes, errno == ENOSPC ? TRP_EAGAIN : TRP_EIO, path,
                            "it cannot be written", strerror(errno));
    }
    return TRP_OK;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static int
format_check(trpi_lmdb_store *store, MDB_txn *txn)
{
    MDB_val key = { 6, "format" };
    MDB_val value = { 0, NULL };
    MDB_stat stat;
    MDB_dbi main_table;
    int code = mdb_dbi_open(txn, "meta", 0, &store->meta);

    if (code == MDB_NOTFOUND) {
        code = mdb_dbi_open(txn, NULL, 0, &main_table);
        code = code == 0 ? mdb_stat(txn, main_table, &stat) : code;
        if (code == 0 && stat.ms_entries != 0) {
            return MDB_INCOMPATIBLE;
        }
        value = (MDB_val){ sizeof FORMAT, FORMAT };
        code = code == 0 ? mdb_dbi_open(txn, "meta", MDB_CREATE, &store->meta) : code;
        return code == 0 ? mdb_put(txn, store->meta, &key, &value, 0) : code;
    }
    code = code == 0 ? mdb_get(txn, store->meta, &key, &value) : code;
    if (code == MDB_NOTFOUND) {
        return MDB_INCOMPATIBLE;
    }
    if (code == 0 &&
        (value.mv_size != sizeof FORMAT || memcmp(value.mv_data, FORMAT, sizeof FORMAT) != 0)) {
        return MDB_VERSION_MISMATCH;
    }
    return code;
}

/* Count this opening: a change, so that the commit is one (journal-lmdb-L2). */
static int
opened_count(const trpi_lmdb_store *store, MDB_txn *txn)
{
    unsigned char count[8] = { 0 };
    MDB_val key = { 6, "opened" };
    MDB_val value = { 0, NULL };
    int code = mdb_get(txn, store->meta, &key, &value);

    if (code == 0 && value.mv_size == sizeof count) {
        trpi_lmdb_u64_put(count, trpi_lmdb_u64_get(value.mv_data) + 1);
    }
    value = (MDB_val){ sizeof count, count };
    return code == 0 || code == MDB_NOTFOUND ? mdb_put(txn, store->meta, &key, &value, 0) : code;
}

/* Read the last offset that was given: of the last event, or what a deletion has noted. */
static int
offset_read(trpi_lmdb_store *store, MDB_txn *txn)
{
    MDB_cursor *cursor = NULL;
    MDB_val key = { 6, "offset" };
    MDB_val value = { 0, NULL };
    int code = mdb_get(txn, store->meta, &key, &value);

    store->offset = code == 0 && value.mv_size == 8 ? trpi_lmdb_u64_get(value.mv_data) : 0;
    code = mdb_cursor_open(txn, store->offsets, &cursor);
    if (code != 0) {
        return code;
    }
    code = mdb_cursor_get(cursor, &key, &value, MDB_LAST);
    if (code == 0 && trpi_lmdb_u64_get(key.mv_data) > store->offset) {
        store->offset = trpi_lmdb_u64_get(key.mv_data);
    }
    mdb_cursor_close(cursor);
    return code == MDB_NOTFOUND ? 0 : code;
}

static int
tables_open(trpi_lmdb_store *store)
{
    const struct {
        const char *name;
        MDB_dbi *table;
    } tables[] = {
        { "ids", &store->ids },         { "names", &store->names },
        { "scopes", &store->scopes },   { "events", &store->events },
        { "offsets", &store->offsets }, { "tags", &store->tags },
        { "tagged", &store->tagged },   { "snapshots", &store->snapshots },
    };
    MDB_txn *txn = NULL;
    int code = mdb_txn_begin(store->env, NULL, 0, &txn);

    if (code != 0) {
        return code;
    }
    code = format_check(store, txn);
    for (size_t i = 0; code == 0 && i < sizeof tables / sizeof tables[0]; i++) {
        code = mdb_dbi_open(txn, tables[i].name, MDB_CREATE, tables[i].table);
    }
    code = code == 0 ? opened_count(store, txn) : code;
    code = code == 0 ? offset_read(store, txn) : code;
    if (code != 0) {
        mdb_txn_abort(txn);
        return code;
    }
    return mdb_txn_commit(txn);
}

/* Check the length of the file: reading a truncated map is a signal (SIGBUS), not an error. */
static int
length_check(trpi_lmdb_store *store)
{
    MDB_envinfo info;
    MDB_stat stat;
    struct stat status;
    int code = mdb_env_info(store->env, &info);

    code = code == 0 ? mdb_env_stat(store->env, &stat) : code;
    if (code != 0) {
        return code;
    }
    if (fstat(store->data_fd, &status) != 0) {
        return errno;
    }
    store->page_bytes = stat.ms_psize;
    store->allocated = (uint64_t)status.st_size;
    return store->allocated < (info.me_last_pgno + 1) * stat.ms_psize ? MDB_CORRUPTED : 0;
}

/* Take the room of the first transaction, which makes the tables. */
static int
room_at_open(trpi_lmdb_store *store)
{
    MDB_envinfo info;
    char why[TRP_JOURNAL_WHY_BYTES];
    int code = mdb_env_info(store->env, &info);

    store->end_page = info.me_last_pgno + 1;
    store->pages = 0;
    store->free_pages = 0;
    return code != 0                                                             ? code
           : trpi_lmdb_room(store, TABLES * 4, false, why, sizeof why) == TRP_OK ? 0
                                                                                 : ENOSPC;
}

static int
env_open(trpi_lmdb_store *store)
{
    int code = mdb_env_create(&store->env);

    if (code != 0) {
        store->env = NULL;
        return code;
    }
    code = mdb_env_set_maxdbs(store->env, TABLES);
    code = code == 0 ? mdb_env_set_mapsize(store->env, store->size_max + RESERVE_BYTES) : code;
    code = code == 0 ? mdb_env_open(store->env, store->directory, MDB_NOTLS, 0600) : code;
    code = code == 0 ? mdb_env_get_fd(store->env, &store->data_fd) : code;
    code = code == 0 ? directory_sync(store->directory) : code;
    code = code == 0 ? length_check(store) : code;
    code = code == 0 ? room_at_open(store) : code;
    return code == 0 ? tables_open(store) : code;
}

trp_err
trpi_lmdb_store_open(trpi_lmdb_store *store, const trp_journal_lmdb_options *options, char *why,
                     size_t why_bytes)
{
    trp_err err = TRP_OK;

    store->owner_fd = -1;
    store->size_max =
        options->size_max != 0 ? options->size_max : TRP_JOURNAL_LMDB_SIZE_MAX_DEFAULT;
    store->directory = trpi_strdup(options->directory);
    if (store->directory == NULL) {
        return reason_write(why, why_bytes, TRP_ENOMEM, options->directory, "out of memory", "");
    }
    err = owner_take(store, why, why_bytes);
    if (err == TRP_OK) {
        int code = env_open(store);
        err = trpi_lmdb_err(code);
        err = err == TRP_ENOENT ? TRP_EDATA : err;
        if (code != 0) {
            (void)reason_write(why, why_bytes, err, store->directory,
                               code == MDB_INCOMPATIBLE ? "data.mdb is a database of something else"
                               : code == MDB_VERSION_MISMATCH
                                   ? "another version has written data.mdb"
                                   : "data.mdb",
                               mdb_strerror(code));
        }
    }
    return err;
}

static bool
known_is_empty(const void *element)
{
    const trpi_lmdb_known *known = element;
    return known->name == NULL;
}

static uint64_t
known_hash(const void *arg, const void *element)
{
    const trpi_lmdb_known *known = element;
    (void)arg;
    return trpi_hash_text(known->name);
}

static bool
known_is(const void *arg, const void *element, const void *key)
{
    const trpi_lmdb_known *known = element;
    (void)arg;
    return strcmp(known->name, key) == 0;
}

const trpi_table_kind trpi_lmdb_known_kind = { sizeof(trpi_lmdb_known), known_is_empty, known_hash,
                                               known_is };

static void
table_forget(trpi_table *table)
{
    uint32_t position = 0;
    trpi_lmdb_known *known = NULL;

    while ((known = trpi_table_next(&trpi_lmdb_known_kind, table, &position)) != NULL) {
        trpi_free(known->name);
        trpi_free(known->writer);
    }
    trpi_table_fini(table);
    *table = (trpi_table){ NULL, 0, 0 };
}

void
trpi_lmdb_store_forget(trpi_lmdb_store *store)
{
    table_forget(&store->known_ids);
    table_forget(&store->known_scopes);
    table_forget(&store->known_tags);
}

void
trpi_lmdb_store_fini(trpi_lmdb_store *store)
{
    if (store->env != NULL) {
        mdb_env_close(store->env);
    }
    if (store->owner_fd >= 0) {
        (void)close(store->owner_fd);
    }
    trpi_lmdb_store_forget(store);
    trpi_free(store->directory);
}

uint64_t
trpi_lmdb_store_bytes(const trpi_lmdb_store *store)
{
    MDB_envinfo info;

    return mdb_env_info(store->env, &info) == 0 ? (info.me_last_pgno + 1) * store->page_bytes : 0;
}

/* ---- room (journal-lmdb-L3) ------------------------------------------------------------------ */

int
trpi_lmdb_begin(trpi_lmdb_store *store, MDB_txn **ret_txn)
{
    MDB_envinfo info;
    int code = mdb_txn_begin(store->env, NULL, 0, ret_txn);

    if (code != 0) {
        return code;
    }
    (void)mdb_env_info(store->env, &info);
    store->end_page = info.me_last_pgno + 1;
    store->free_pages = UINT64_MAX;
    store->pages = 0;
    return 0;
}

/* Count the pages that LMDB may use again; only a transaction that reads may look at them. */
static uint64_t
free_pages_count(MDB_env *env)
{
    MDB_cursor *cursor = NULL;
    MDB_txn *txn = NULL;
    MDB_val key;
    MDB_val value;
    uint64_t pages = 0;

    if (mdb_txn_begin(env, NULL, MDB_RDONLY, &txn) != 0) {
        return 0;
    }
    if (mdb_cursor_open(txn, 0, &cursor) == 0) {
        while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0) {
            size_t count = 0;
            memcpy(&count, value.mv_data, sizeof count);
            pages += count;
        }
        mdb_cursor_close(cursor);
    }
    mdb_txn_abort(txn);
    return pages;
}

/* Have the blocks of the file up to this byte. 0, or the error. */
static int
blocks_take(trpi_lmdb_store *store, uint64_t bytes)
{
    struct statvfs disk;

    if (!store->is_counted) {
        int code = fallocate(store->data_fd, 0, (off_t)store->allocated,
                             (off_t)(bytes - store->allocated)) == 0
                       ? 0
                       : errno;
        if (code == 0) {
            store->allocated = bytes;
        }
        if (code != EOPNOTSUPP && code != ENOSYS) {
            return code;
        }
        store->is_counted = true;
    }
    if (fstatvfs(store->data_fd, &disk) != 0) {
        return errno;
    }
    return (uint64_t)disk.f_bavail * disk.f_frsize < bytes - store->allocated ? ENOSPC : 0;
}

static int
disk_take(trpi_lmdb_store *store, uint64_t bytes, bool growth)
{
    uint64_t want = bytes + RESERVE_BYTES;
    uint64_t step = store->allocated / 4;
    int code = 0;

    if (want <= store->allocated) {
        return 0;
    }
    step = step < STEP_BYTES_LEAST ? STEP_BYTES_LEAST : step;
    step = step > STEP_BYTES_MAX ? STEP_BYTES_MAX : step;
    code = blocks_take(store, want + step);
    if (code != 0) {
        code = blocks_take(store, want);
    }
    return code != 0 && !growth && bytes <= store->allocated ? 0 : code;
}

trp_err
trpi_lmdb_room(trpi_lmdb_store *store, uint64_t pages, bool growth, char *why, size_t why_bytes)
{
    uint64_t end = store->end_page + store->pages + pages; /* if nothing is used again */
    uint64_t most = store->size_max / store->page_bytes;
    int code = 0;

    if (end > most) {
        if (store->free_pages == UINT64_MAX) {
            store->free_pages = free_pages_count(store->env);
        }
        if (growth && end > most + store->free_pages) {
            (void)snprintf(why, why_bytes,
                           "the journal %s is full: it may take %" PRIu64
                           " bytes; raise persistence.lmdb.size-max, or delete events",
                           store->directory, store->size_max);
            return TRP_EAGAIN;
        }
        uint64_t map = (store->size_max + RESERVE_BYTES) / store->page_bytes;
        end = end > map ? map : end;
    }
    code = disk_take(store, end * store->page_bytes, growth);
    if (code != 0) {
        (void)snprintf(why, why_bytes,
                       "no room on the disk of journal %s: %s; free some, nothing was written",
                       store->directory, strerror(code));
        return TRP_EAGAIN;
    }
    store->pages += pages;
    return TRP_OK;
}

#endif
