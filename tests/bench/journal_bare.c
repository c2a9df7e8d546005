/* journal_bare.c - see journal.h: LMDB without a journal around it, and a log without LMDB.
 *
 * Both write rows of the same bytes and wait for each commit. Nobody else writes, nothing waits in
 * a queue: what they reach is what the disk and LMDB allow. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tests/bench/journal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "persistence/journal_lmdb.h"
#include "tests/bench/bench.h"

#define MAP_BYTES ((size_t)16 << 30)
#define LOG_BYTES (64u << 20)
#define FLUSHES 200
#define BLOCK_BYTES 4096

enum { PATH_BYTES = 512 };

static void
io_check(int failed, const char *what)
{
    bench_check(failed ? TRP_EIO : TRP_OK, what);
}

/* ---- LMDB ------------------------------------------------------------------------------------ */

#ifdef HAVE_LMDB

typedef struct bare_lmdb {
    bench_bare bare;
    char directory[PATH_BYTES];
    MDB_env *env;
    MDB_dbi events, offsets;
    size_t row_bytes;
    uint64_t stored;
} bare_lmdb;

static void
lmdb_check(int code, const char *what)
{
    if (code != 0) {
        (void)fprintf(stderr, "bench: bare LMDB: %s: %s\n", what, mdb_strerror(code));
        exit(1);
    }
}

static void
lmdb_put(bare_lmdb *b, MDB_txn *txn)
{
    uint64_t number = b->stored / JOURNAL_ACTORS + 1;
    trpi_lmdb_key at = trpi_lmdb_key_of(b->stored % JOURNAL_ACTORS + 1, number);
    MDB_val key = { sizeof at, &at }, row = { b->row_bytes, NULL };
    unsigned char offset[8];
    MDB_val offset_key = { sizeof offset, offset }, value = { sizeof at, &at };

    trpi_lmdb_u64_put(offset, ++b->stored);
    lmdb_check(mdb_put(txn, b->events, &key, &row, MDB_RESERVE), "events");
    memset(row.mv_data, (int)(number & 0xff), row.mv_size);
    lmdb_check(mdb_put(txn, b->offsets, &offset_key, &value, MDB_APPEND), "offsets");
}

static uint64_t
lmdb_store(bench_bare *bare, uint64_t count, uint64_t batch)
{
    bare_lmdb *b = (bare_lmdb *)bare;
    uint64_t begin_ns = bench_now_ns();

    for (uint64_t i = 0; i < count; i += batch) {
        MDB_txn *txn = NULL;
        uint64_t end = i + batch < count ? i + batch : count;
        lmdb_check(mdb_txn_begin(b->env, NULL, 0, &txn), "begin");
        for (uint64_t e = i; e < end; e++) {
            lmdb_put(b, txn);
        }
        lmdb_check(mdb_txn_commit(txn), "commit");
    }
    return bench_now_ns() - begin_ns;
}

static void
lmdb_close(bench_bare *bare)
{
    bare_lmdb *b = (bare_lmdb *)bare;
    static const char *const files[] = { "data.mdb", "lock.mdb" };
    char path[PATH_BYTES + 16];

    mdb_env_close(b->env);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", b->directory, files[i]);
        (void)unlink(path);
    }
    (void)rmdir(b->directory);
    free(b);
}

bench_bare *
bench_bare_lmdb(const char *directory, size_t row_bytes)
{
    bare_lmdb *b = calloc(1, sizeof *b);
    MDB_txn *txn = NULL;

    bench_check(b == NULL ? TRP_ENOMEM : TRP_OK, "calloc");
    b->bare = (bench_bare){ lmdb_store, lmdb_close };
    b->row_bytes = row_bytes;
    (void)snprintf(b->directory, sizeof b->directory, "%s", directory);
    io_check(mkdir(directory, 0700) != 0, directory);
    lmdb_check(mdb_env_create(&b->env), "mdb_env_create");
    lmdb_check(mdb_env_set_maxdbs(b->env, 2), "mdb_env_set_maxdbs");
    lmdb_check(mdb_env_set_mapsize(b->env, MAP_BYTES), "mdb_env_set_mapsize");
    lmdb_check(mdb_env_open(b->env, directory, MDB_NOTLS, 0600), directory);
    lmdb_check(mdb_txn_begin(b->env, NULL, 0, &txn), "begin");
    lmdb_check(mdb_dbi_open(txn, "events", MDB_CREATE, &b->events), "events");
    lmdb_check(mdb_dbi_open(txn, "offsets", MDB_CREATE, &b->offsets), "offsets");
    lmdb_check(mdb_txn_commit(txn), "commit");
    return &b->bare;
}

#endif

/* ---- a log ----------------------------------------------------------------------------------- */

typedef struct bare_log {
    bench_bare bare;
    char path[PATH_BYTES];
    int fd;
    size_t row_bytes;
    uint64_t at;
    unsigned char *batch;
} bare_log;

static uint64_t
log_store(bench_bare *bare, uint64_t count, uint64_t batch)
{
    bare_log *b = (bare_log *)bare;
    uint64_t begin_ns = bench_now_ns();

    for (uint64_t i = 0; i < count; i += batch) {
        uint64_t rows = i + batch < count ? batch : count - i;
        size_t bytes = 0;
        for (uint64_t e = 0; e < rows; e++, bytes += b->row_bytes) {
            memset(b->batch + bytes, (int)((i + e) & 0xff), b->row_bytes);
        }
        b->at = b->at + bytes > LOG_BYTES ? 0 : b->at;
        io_check(pwrite(b->fd, b->batch, bytes, (off_t)b->at) != (ssize_t)bytes, b->path);
        io_check(fdatasync(b->fd) != 0, b->path);
        b->at += bytes;
    }
    return bench_now_ns() - begin_ns;
}

static void
log_close(bench_bare *bare)
{
    bare_log *b = (bare_log *)bare;

    (void)close(b->fd);
    (void)unlink(b->path);
    free(b->batch);
    free(b);
}

bench_bare *
bench_bare_log(const char *path, size_t row_bytes)
{
    bare_log *b = calloc(1, sizeof *b);

    bench_check(b == NULL ? TRP_ENOMEM : TRP_OK, "calloc");
    b->bare = (bench_bare){ log_store, log_close };
    b->row_bytes = row_bytes;
    (void)snprintf(b->path, sizeof b->path, "%s", path);
    b->batch = calloc(1, LOG_BYTES);
    bench_check(b->batch == NULL ? TRP_ENOMEM : TRP_OK, "calloc");
    b->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    io_check(b->fd < 0 || pwrite(b->fd, b->batch, LOG_BYTES, 0) != LOG_BYTES || fsync(b->fd) != 0,
             path);
    return &b->bare;
}

double
bench_flush_rate(const char *directory)
{
    static const unsigned char block[BLOCK_BYTES];
    char path[PATH_BYTES];
    uint64_t begin_ns;
    double rate;
    int fd;

    (void)snprintf(path, sizeof path, "%s/flushes", directory);
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    io_check(fd < 0 || pwrite(fd, block, sizeof block, 0) < 0 || fsync(fd) != 0, path);
    begin_ns = bench_now_ns();
    for (int i = 0; i < FLUSHES; i++) {
        io_check(pwrite(fd, block, sizeof block, 0) < 0 || fdatasync(fd) != 0, path);
    }
    rate = FLUSHES * 1e9 / (double)(bench_now_ns() - begin_ns);
    (void)close(fd);
    (void)unlink(path);
    return rate;
}
