/* journal.h - what journal.c asks of the bare programs beside it. */
#ifndef TESTS_BENCH_JOURNAL_H
#define TESTS_BENCH_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JOURNAL_ACTORS = 1000, JOURNAL_EVENT_BYTES = 100, JOURNAL_ROUNDS = 7 };

/* Store `count` events of JOURNAL_ACTORS ids in turn, `batch` of them with each commit. Returns the
 * nanoseconds that it took. */
typedef struct bench_bare {
    uint64_t (*store)(struct bench_bare *bare, uint64_t count, uint64_t batch);
    void (*close)(struct bench_bare *bare);
} bench_bare;

/* journal_bare.c. An LMDB environment in a directory that is made, with the tables, keys and row
 * sizes of the LMDB journal, and its flags; not in each build. */
bench_bare *bench_bare_lmdb(const char *directory, size_t row_bytes);
/* A file whose blocks are written before, and that is flushed with fdatasync. */
bench_bare *bench_bare_log(const char *path, size_t row_bytes);
/* Flushes of one block a second, in a file of this directory. */
double bench_flush_rate(const char *directory);

/* journal_bare_postgres.c, not in each build. A connection of libpq in pipeline mode that calls the
 * statement of the journal's driver, with tables that are there. */
bench_bare *bench_bare_postgres(const char *url, const char *schema, const char *type,
                                size_t data_bytes);
/* Make the tables of a journal in this schema, or drop it. */
void bench_postgres_schema(const char *url, const char *schema, bool make);

#endif
