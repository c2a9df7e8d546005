/* journal.c - persistent actors beside programs that do nothing but store the same bytes.
 *
 * Shape.  1,000 actors persist an event of 100 B each, and the next one in its callback, until each
 *         has stored its part. A bare program then stores as many events with as many commits; the
 *         two take turns in one run, in stores that grow alike. One actor alone is measured against
 *         bare commits of one event. Then all actors are recovered from their events, again and
 *         again.
 *         `bench journal [--dir DIR]`: LMDB, in a directory made in DIR (default /var/tmp), which
 *         is to be on the disk that is meant. `bench journal-postgres --postgres DSN`: PostgreSQL;
 *         its tables are made in schemas of this run, and dropped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/journal_lmdb.h>
#include <troupe/journal_postgres.h>
#include <troupe/persistence.h>

#include "tests/bench/bench.h"
#include "tests/bench/journal.h"

#ifdef HAVE_LMDB
#include "persistence/journal_lmdb.h"
#endif

enum { EVENTS = 50000, ALONE = 200, PATH_BYTES = 256 };

#define JOURNAL_GO(F, S) F(S, u64, events)
#define JOURNAL_NEXT(F, S) F(S, u64, unused)
#define JOURNAL_MESSAGES(M, P) M(P, go, JOURNAL_GO) M(P, next, JOURNAL_NEXT)
TRP_PROTOCOL(journal, JOURNAL_MESSAGES)

#if defined HAVE_LMDB || defined HAVE_POSTGRES

/* ---- actors ---------------------------------------------------------------------------------- */

typedef struct writer {
    trp_persistent_state persistent; /* the first member */
    uint64_t left, stored;
} writer;

static struct {
    _Atomic uint64_t left; /* actors that have something to do */
    _Atomic uint64_t recovered;
    uint64_t end_ns;
} run;

static void
part_done(void)
{
    if (--run.left == 0) {
        run.end_ns = bench_now_ns();
        bench_done();
    }
}

static trp_err
on_stored(trp_ctx *ctx, void *state, const trp_msg *event, void *arg)
{
    static const journal_next next = { 0 };
    (void)event;
    (void)arg;
    if (--((writer *)state)->left == 0) {
        part_done();
    } else {
        trp_tell(ctx, trp_self(ctx), &journal_next_type, &next, sizeof next);
    }
    return TRP_OK;
}

static trp_err
writer_command(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    unsigned char event[JOURNAL_EVENT_BYTES];
    if (trp_msg_is(msg, &journal_go_type)) {
        ((writer *)state)->left = ((const journal_go *)trp_msg_payload(msg))->events;
    }
    memset(event, (int)(((writer *)state)->stored & 0xff), sizeof event);
    return trp_persist(ctx, &trp_bytes_type, event, sizeof event, on_stored, NULL);
}

static trp_err
writer_event(trp_ctx *ctx, void *state, const trp_msg *event)
{
    (void)ctx;
    ((writer *)state)->stored += trp_msg_bytes(event) == JOURNAL_EVENT_BYTES;
    return TRP_OK;
}

static trp_err
writer_recovered(trp_ctx *ctx, void *state)
{
    (void)ctx;
    run.recovered += ((writer *)state)->stored;
    part_done();
    return TRP_OK;
}

static const trp_persistent writer_behaviour = {
    .behaviour = { .size = sizeof(trp_behaviour),
                   .name = "writer",
                   .version = 1,
                   .state_bytes = sizeof(writer),
                   .receive = trp_persistent_receive,
                   .pre_start = trp_persistent_pre_start },
    .size = sizeof(trp_persistent),
    .command = writer_command,
    .event = writer_event,
    .recovered = writer_recovered,
};

/* ---- a store with its actors ----------------------------------------------------------------- */

typedef struct store {
    const bench_options *options;
    const char *place; /* directory or connection string */
    const char *schema;
    trp_err (*open)(const struct store *s, const trp_journal_driver **ret_driver, char *why,
                    size_t why_bytes);
    trp_system *system;
    const trp_journal_driver *driver;
    trp_ref actors[JOURNAL_ACTORS];
} store;

/* Open it and recover its actors; returns the nanoseconds of the recovery. */
static uint64_t
store_open(store *s)
{
    char why[TRP_JOURNAL_WHY_BYTES] = "", name[16];
    uint64_t begin_ns;
    s->system = bench_system(s->options);
    bench_check(s->open(s, &s->driver, why, sizeof why), why);
    bench_check(trp_persistence_start(s->system, s->driver, NULL), "trp_persistence_start");
    run.left = JOURNAL_ACTORS;
    run.recovered = 0;
    begin_ns = bench_now_ns();
    for (uint32_t i = 0; i < JOURNAL_ACTORS; i++) {
        trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
        (void)snprintf(name, sizeof name, "w%u", (unsigned)i);
        options.name = name;
        bench_check(
            trp_system_spawn(s->system, &writer_behaviour.behaviour, &options, &s->actors[i]),
            "trp_system_spawn");
    }
    bench_wait();
    return run.end_ns - begin_ns;
}

/* Let the first `actors` store `each` events; returns the nanoseconds. */
static uint64_t
store_write(store *s, uint32_t actors, uint64_t each)
{
    journal_go go = { each };
    uint64_t begin_ns = bench_now_ns();
    run.left = actors;
    for (uint32_t i = 0; i < actors; i++) {
        trp_system_tell(s->system, s->actors[i], &journal_go_type, &go, sizeof go);
    }
    bench_wait();
    return run.end_ns - begin_ns;
}

static uint64_t
store_commits(const store *s)
{
    trp_journal_health health = TRP_JOURNAL_HEALTH_INIT;
    s->driver->health(s->driver->arg, &health);
    return health.commits;
}

static trp_err
stored_take(trp_journal_op *op, const trp_journal_event *item)
{
    trp_journal_event *event = op->user;
    static char type[TRP_JOURNAL_TYPE_BYTES_MAX + 1];
    (void)snprintf(type, sizeof type, "%s", item->type);
    *event = (trp_journal_event){ .type = type, .bytes = item->bytes };
    return TRP_OK;
}

/* How an event of an actor looks in the journal: its type and its bytes. */
static trp_journal_event
store_look(const store *s)
{
    trp_journal_op op = TRP_JOURNAL_OP_INIT;
    trp_journal_event event = { .bytes = 0 };
    op.kind = TRP_JOURNAL_EVENTS;
    op.id = "/user/w0";
    op.from = 1;
    op.to = 1;
    op.give = stored_take;
    op.user = &event;
    bench_check(trp_journal_call(s->driver, &op), op.why);
    bench_check(event.bytes == 0 ? TRP_ENOENT : TRP_OK, "no event of /user/w0");
    return event;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

typedef struct figures {
    double ours[JOURNAL_ROUNDS], bare[JOURNAL_ROUNDS], log[JOURNAL_ROUNDS];
    double alone[JOURNAL_ROUNDS], replay[JOURNAL_ROUNDS];
    double ratio[JOURNAL_ROUNDS], log_ratio[JOURNAL_ROUNDS];
    uint64_t events, commits, stored, lost;
} figures;

/* Write in rounds: the actors, then each bare program. log: NULL if there is none. */
static void
rounds_write(store *s, figures *f, bench_bare *bare, bench_bare *log, uint64_t events)
{
    uint64_t each = events / JOURNAL_ACTORS, count = each * JOURNAL_ACTORS;
    for (uint32_t i = 0; i < JOURNAL_ROUNDS; i++) {
        uint64_t before = store_commits(s);
        f->ours[i] = (double)count * 1e9 / (double)store_write(s, JOURNAL_ACTORS, each);
        uint64_t commits = store_commits(s) - before;
        uint64_t batch = (count + commits - 1) / commits;
        f->events += count;
        f->commits += commits;
        f->bare[i] = (double)count * 1e9 / (double)bare->store(bare, count, batch);
        f->ratio[i] = f->ours[i] / f->bare[i];
        if (log != NULL) {
            f->log[i] = (double)count * 1e9 / (double)log->store(log, count, batch);
            f->log_ratio[i] = f->ours[i] / f->log[i];
        }
    }
    f->stored += f->events;
}

/* Recover all of what was written, each time in a new system; the last one stays open. */
static void
rounds_replay(store *s, figures *f, uint32_t rounds)
{
    for (uint32_t i = 0; i < rounds; i++) {
        bench_system_end(s->system);
        f->replay[i] = (double)f->stored * 1e9 / (double)store_open(s);
        f->lost +=
            run.recovered > f->stored ? run.recovered - f->stored : f->stored - run.recovered;
    }
}

static uint64_t
events_of(const bench_options *options)
{
    uint64_t count = options->count != 0 ? options->count : EVENTS;
    return count < JOURNAL_ACTORS ? JOURNAL_ACTORS : count;
}

/* ---- LMDB ------------------------------------------------------------------------------------ */

#ifdef HAVE_LMDB

static trp_err
lmdb_open(const store *s, const trp_journal_driver **ret_driver, char *why, size_t why_bytes)
{
    trp_journal_lmdb_options options = TRP_JOURNAL_LMDB_OPTIONS_INIT;
    options.directory = s->place;
    return trp_journal_lmdb_open(&options, ret_driver, why, why_bytes);
}

/* One actor alone beside commits of one event. */
static void
rounds_alone(store *s, figures *f, bench_bare *bare, uint64_t count)
{
    for (uint32_t i = 0; i < JOURNAL_ROUNDS; i++) {
        uint64_t ours_ns = store_write(s, 1, count);
        f->alone[i] = (double)ours_ns / (double)bare->store(bare, count, 1);
    }
    f->stored += JOURNAL_ROUNDS * count;
}

static void
lmdb_remove(const char *directory)
{
    static const char *const files[] = { "data.mdb", "lock.mdb", "owner" };
    char path[PATH_BYTES + 16];
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", directory, files[i]);
        (void)unlink(path);
    }
    (void)rmdir(directory);
}

static int
run_journal(const bench_options *options)
{
    const char *parent = bench_option_value(options, "--dir");
    char directory[PATH_BYTES], ours[PATH_BYTES + 8], other[PATH_BYTES + 8];
    uint64_t events = events_of(options);
    store s = { .options = options, .place = ours, .open = lmdb_open };
    static figures f;

    (void)snprintf(directory, sizeof directory, "%s/troupe-bench-XXXXXX",
                   parent != NULL ? parent : "/var/tmp");
    bench_check(mkdtemp(directory) == NULL ? TRP_EIO : TRP_OK, directory);
    (void)snprintf(ours, sizeof ours, "%s/ours", directory);
    bench_check(trp_protocol_register(&journal_protocol), "trp_protocol_register");
    double flushes = bench_flush_rate(directory);
    (void)store_open(&s);
    (void)store_write(&s, JOURNAL_ACTORS, 1); /* ids, and the first pages */
    f.stored = JOURNAL_ACTORS;
    trp_journal_event event = store_look(&s);
    size_t row_bytes = trpi_lmdb_row_bytes(&event);
    (void)snprintf(other, sizeof other, "%s/bare", directory);
    bench_bare *bare = bench_bare_lmdb(other, row_bytes);
    (void)snprintf(other, sizeof other, "%s/log", directory);
    bench_bare *log = bench_bare_log(other, row_bytes);
    (void)bare->store(bare, JOURNAL_ACTORS, JOURNAL_ACTORS);
    rounds_write(&s, &f, bare, log, events);
    rounds_alone(&s, &f, bare, events < EVENTS ? events / JOURNAL_ACTORS : ALONE);
    rounds_replay(&s, &f, JOURNAL_ROUNDS);
    bench_system_end(s.system);
    bench_print("journal", "lmdb_rate", bench_median(f.ours, JOURNAL_ROUNDS), "events/s");
    bench_print("journal", "lmdb_bare_rate", bench_median(f.bare, JOURNAL_ROUNDS), "events/s");
    bench_print("journal", "lmdb_ratio", bench_median(f.ratio, JOURNAL_ROUNDS), "times");
    bench_print("journal", "lmdb_events_per_commit", (double)f.events / (double)f.commits,
                "events");
    bench_print("journal", "lmdb_one_ratio", bench_median(f.alone, JOURNAL_ROUNDS), "times");
    bench_print("journal", "log_rate", bench_median(f.log, JOURNAL_ROUNDS), "events/s");
    bench_print("journal", "log_ratio", bench_median(f.log_ratio, JOURNAL_ROUNDS), "times");
    bench_print("journal", "replay_rate", bench_median(f.replay, JOURNAL_ROUNDS), "events/s");
    bench_print("journal", "flush_rate_before", flushes, "1/s");
    bench_print("journal", "flush_rate_after", bench_flush_rate(directory), "1/s");
    bench_print("journal", "lost", (double)f.lost, "messages");
    bare->close(bare);
    log->close(log);
    lmdb_remove(ours);
    (void)rmdir(directory);
    return f.lost == 0 ? 0 : 1;
}

#endif

/* ---- PostgreSQL ------------------------------------------------------------------------------ */

#ifdef HAVE_POSTGRES

static trp_err
postgres_open(const store *s, const trp_journal_driver **ret_driver, char *why, size_t why_bytes)
{
    trp_journal_postgres_options options = TRP_JOURNAL_POSTGRES_OPTIONS_INIT;
    options.url = s->place;
    options.schema = s->schema;
    return trp_journal_postgres_open(&options, ret_driver, why, why_bytes);
}

static int
run_journal_postgres(const bench_options *options)
{
    const char *url = bench_option_value(options, "--postgres");
    char ours[32], other[32];
    uint64_t events = events_of(options);
    store s = { .options = options, .place = url, .schema = ours, .open = postgres_open };
    static figures f;

    if (url == NULL) {
        (void)fprintf(stderr, "bench: journal-postgres needs --postgres DSN\n");
        return 64;
    }
    (void)snprintf(ours, sizeof ours, "bench_%u", (unsigned)getpid());
    (void)snprintf(other, sizeof other, "bench_%u_bare", (unsigned)getpid());
    bench_check(trp_protocol_register(&journal_protocol), "trp_protocol_register");
    bench_postgres_schema(url, ours, true);
    bench_postgres_schema(url, other, true);
    (void)store_open(&s);
    (void)store_write(&s, JOURNAL_ACTORS, 1);
    f.stored = JOURNAL_ACTORS;
    trp_journal_event event = store_look(&s);
    bench_bare *bare = bench_bare_postgres(url, other, event.type, event.bytes);
    (void)bare->store(bare, JOURNAL_ACTORS, JOURNAL_ACTORS);
    rounds_write(&s, &f, bare, NULL, events);
    rounds_replay(&s, &f, 1);
    bench_system_end(s.system);
    bench_print("journal-postgres", "pg_rate", bench_median(f.ours, JOURNAL_ROUNDS), "events/s");
    bench_print("journal-postgres", "pg_bare_rate", bench_median(f.bare, JOURNAL_ROUNDS),
                "events/s");
    bench_print("journal-postgres", "pg_ratio", bench_median(f.ratio, JOURNAL_ROUNDS), "times");
    bench_print("journal-postgres", "pg_events_per_commit", (double)f.events / (double)f.commits,
                "events");
    bench_print("journal-postgres", "pg_replay_rate", f.replay[0], "events/s");
    bench_print("journal-postgres", "lost", (double)f.lost, "messages");
    bare->close(bare);
    bench_postgres_schema(url, ours, false);
    bench_postgres_schema(url, other, false);
    return f.lost == 0 ? 0 : 1;
}

#endif

#endif

const bench_workload bench_journal[] = {
#ifdef HAVE_LMDB
    { "journal", "1,000 persistent actors, events of 100 B, LMDB, beside bare LMDB; replay",
      run_journal },
#endif
#ifdef HAVE_POSTGRES
    { "journal-postgres", "the same over PostgreSQL (--postgres DSN), beside a bare libpq pipeline",
      run_journal_postgres },
#endif
    { NULL, NULL, NULL }
};
