/* journal_postgres.c - a journal in PostgreSQL: its thread, its queues, and what waits there.
 *
 * Why.   A behaviour never waits for a database. submit puts an operation into a queue; one thread
 *        sends what has gathered, over connections in pipeline mode, and answers.
 * Shape. inbox (any thread) -> changes -> one connection, two batches at a time, one transaction
 *                           -> reads   -> the other connections
 *        a deletion that has begun -> deletions -> slice after slice, between the batches
 * Must hold.
 *   journal-postgres-J1  Operations of one id keep their order: a read of an id with unanswered
 *       changes takes its place among the changes; a change of an id that is read elsewhere waits
 *       for the reads (postgres_send.c).
 *   journal-postgres-J2  While the server is away, what was not sent waits; at its deadline it is
 *       refused, and certainly not stored.
 *   journal-postgres-J3  An operation is answered without a lock of ours held, once.
 *   journal-postgres-J4  A deletion begins in a batch, which compares its epoch and deletes
 *       nothing; its events go slice by slice. An operation of its id comes behind it and waits
 *       aside; nothing else waits for it. An error behind its beginning makes it failed.
 * Limits. waiting_max operations and waiting_bytes_max of data without an answer: one more is
 *        refused with TRP_EAGAIN. Numbers up to 2^63 - 1.
 * Threads. The lock guards the inbox and the health; all else belongs to the thread.
 * Tests. tests/system/postgres.sh, tests/unit/persistence/journal_postgres_test.c
 */
#include "persistence/postgres.h"

#ifdef HAVE_POSTGRES

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/mutex.h"
#include "base/sized.h"
#include "persistence/journal_op.h"

#define MS_NS UINT64_C(1000000)

/* ---- queues ---------------------------------------------------------------------------------- */

void
trpi_pg_queue_push(trpi_pg_queue *queue, trp_journal_op *op)
{
    op->driver[0] = NULL;
    if (queue->first == NULL) {
        queue->first = op;
    } else {
        queue->last->driver[0] = op;
    }
    queue->last = op;
    queue->count++;
}

trp_journal_op *
trpi_pg_queue_pop(trpi_pg_queue *queue)
{
    trp_journal_op *op = queue->first;

    if (op != NULL) {
        queue->first = op->driver[0];
        queue->count--;
    }
    return op;
}

static uint64_t
op_bytes(const trp_journal_op *op)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; op->events != NULL && i < op->events_count; i++) {
        bytes += op->events[i].bytes;
    }
    return bytes;
}

/* ---- ids ------------------------------------------------------------------------------------- */

static uint64_t
id_hash(const void *arg, const void *element)
{
    const trpi_pg_id *const *id = element;

    (void)arg;
    return (*id)->hash;
}

static bool
id_is(const void *arg, const void *element, const void *key)
{
    const trpi_pg_id *const *id = element;

    (void)arg;
    return strcmp((*id)->id, key) == 0;
}

static const trpi_table_kind id_kind = { sizeof(trpi_pg_id *), trpi_table_pointer_is_empty, id_hash,
                                         id_is };

trpi_pg_id *
trpi_pg_id_of(const trp_journal_op *op)
{
    return op->driver[1];
}

static bool
names_id(const trp_journal_op *op)
{
    return op->kind == TRP_JOURNAL_APPEND || op->kind == TRP_JOURNAL_EVENTS ||
           op->kind == TRP_JOURNAL_DELETE || op->kind == TRP_JOURNAL_SNAPSHOT_SAVE ||
           op->kind == TRP_JOURNAL_SNAPSHOT_LOAD || op->kind == TRP_JOURNAL_SNAPSHOT_DELETE;
}

/* Find the id of op, or add it. NULL: no memory. */
static trpi_pg_id *
id_add(trpi_pg_journal *journal, const trp_journal_op *op)
{
    uint64_t hash = trpi_hash_text(op->id);
    trpi_pg_id **place = trpi_table_add(&id_kind, &journal->ids, NULL, hash, op->id);

    if (place != NULL && *place == NULL) {
        size_t bytes = strlen(op->id) + 1;
        trpi_pg_id *id = trpi_alloc(sizeof *id + bytes);
        if (id == NULL) { /* nothing was put in: only the count is taken back */
            journal->ids.count--;
            return NULL;
        }
        id->hash = hash;
        memcpy(id->id, op->id, bytes);
        *place = id;
    }
    return place != NULL ? *place : NULL;
}

/* op is answered: it counts no longer. driver[2] says as what it was counted. */
static void
id_drop(trpi_pg_journal *journal, trp_journal_op *op, bool was_read_elsewhere)
{
    trpi_pg_id *id = trpi_pg_id_of(op);

    if (id == NULL) {
        return;
    }
    op->driver[1] = NULL;
    if (id->deletion == op) {
        id->deletion = NULL;
        journal->aside_is_due = true;
    }
    if (was_read_elsewhere) {
        id->reads--;
    } else {
        id->changes--;
    }
    if (id->changes == 0 && id->reads == 0) {
        void *place = trpi_table_find(&id_kind, &journal->ids, NULL, id->hash, id->id);
        trpi_assert(place != NULL);
        trpi_table_remove(&id_kind, &journal->ids, NULL, place);
        trpi_free(id);
    }
}

/* ---- answers --------------------------------------------------------------------------------- */

/* The deadline of op, and in its lowest bit whether it is a read on another connection. */
static void
op_mark(trp_journal_op *op, uint64_t deadline_ns, bool is_read_elsewhere)
{
    op->driver[2] = (void *)(uintptr_t)((deadline_ns & ~UINT64_C(1)) | is_read_elsewhere);
}

static uint64_t
op_deadline(const trp_journal_op *op)
{
    return (uint64_t)(uintptr_t)op->driver[2] & ~UINT64_C(1);
}

static bool
op_is_read_elsewhere(const trp_journal_op *op)
{
    return ((uintptr_t)op->driver[2] & 1) != 0;
}

void
trpi_pg_settle(trpi_pg_journal *journal, trp_journal_op *op, trp_journal_outcome outcome)
{
    uint64_t bytes = op_bytes(op);

    id_drop(journal, op, op_is_read_elsewhere(op));
    pthread_mutex_lock(&journal->lock);
    journal->waiting--;
    journal->waiting_bytes -= bytes;
    journal->health.refused += outcome == TRP_JOURNAL_REFUSED;
    journal->health.failed += outcome == TRP_JOURNAL_FAILED;
    if (outcome == TRP_JOURNAL_DONE && op->kind == TRP_JOURNAL_APPEND) {
        journal->health.groups++;
        journal->health.events += op->events_count;
    }
    pthread_mutex_unlock(&journal->lock);
}

void
trpi_pg_finish(trpi_pg_journal *journal, trp_journal_op *op, trp_journal_outcome outcome,
               trp_err err, const char *format, ...)
{
    char text[TRP_JOURNAL_WHY_BYTES];
    va_list args;

    trpi_pg_settle(journal, op, outcome);
    if (format == NULL) {
        trp_journal_op_finish(op, outcome, err, NULL);
        return;
    }
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    trp_journal_op_finish(op, outcome, err, "%s", text);
}

void
trpi_pg_say(trpi_pg_journal *journal, trp_journal_state state, const char *why)
{
    pthread_mutex_lock(&journal->lock);
    journal->health.state = state;
    (void)snprintf(journal->health.why, sizeof journal->health.why, "%s", why);
    pthread_mutex_unlock(&journal->lock);
}

/* ---- any thread ------------------------------------------------------------------------------ */

static void
journal_wake(trpi_pg_journal *journal)
{
    uint64_t one = 1;

    (void)!write(journal->wake_fd, &one, sizeof one); /* a full counter wakes, too */
}

/* Return whether its numbers fit a bigint. */
static bool
numbers_fit(const trp_journal_op *op)
{
    return (op->kind != TRP_JOURNAL_APPEND ||
            op->from <= (uint64_t)INT64_MAX - TRP_JOURNAL_GROUP_EVENTS_MAX) &&
           (op->kind != TRP_JOURNAL_SNAPSHOT_SAVE || op->events[0].number <= INT64_MAX);
}

static void
refuse_at_once(trpi_pg_journal *journal, trp_journal_op *op, trp_err err, const char *why)
{
    pthread_mutex_lock(&journal->lock);
    journal->health.refused++;
    pthread_mutex_unlock(&journal->lock);
    trp_journal_op_finish(op, TRP_JOURNAL_REFUSED, err, "%s", why);
}

static void
postgres_submit(void *arg, trp_journal_op *op)
{
    trpi_pg_journal *journal = arg;
    const trp_journal_postgres_options *options = &journal->options;
    uint64_t bytes = 0;
    bool is_full = false;
    bool wakes = false;

    if (trp_journal_op_check(op) != TRP_OK) {
        pthread_mutex_lock(&journal->lock);
        journal->health.refused++;
        pthread_mutex_unlock(&journal->lock);
        return;
    }
    if (!numbers_fit(op)) {
        refuse_at_once(journal, op, TRP_EINVAL, "a number is above 2^63 - 1");
        return;
    }
    bytes = op_bytes(op);
    op->driver[1] = NULL;
    op_mark(op,
            trpi_pg_now(journal) +
                (op->timeout_ms != 0 ? op->timeout_ms : options->wait_timeout_ms) * MS_NS,
            false);
    pthread_mutex_lock(&journal->lock);
    is_full =
        journal->waiting >= options->waiting_max ||
        (journal->waiting != 0 && journal->waiting_bytes + bytes > options->waiting_bytes_max);
    if (!is_full) {
        trpi_pg_queue_push(&journal->inbox, op);
        journal->waiting++;
        journal->waiting_bytes += bytes;
        wakes = !journal->is_woken;
        journal->is_woken = true;
    }
    pthread_mutex_unlock(&journal->lock);
    if (is_full) {
        refuse_at_once(journal, op, TRP_EAGAIN,
                       "as many operations as persistence.postgres.waiting-max, or as much data as "
                       "waiting-bytes-max, wait for the database already");
    } else if (wakes) {
        journal_wake(journal);
    }
}

static void
postgres_health(void *arg, trp_journal_health *ret_health)
{
    trpi_pg_journal *journal = arg;
    trp_journal_health health = TRP_JOURNAL_HEALTH_INIT;

    pthread_mutex_lock(&journal->lock);
    health = journal->health;
    health.waiting = journal->waiting;
    pthread_mutex_unlock(&journal->lock);
    (void)TRPI_SIZED_FILL(ret_health, &health, why);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Put an operation into its queue: journal-postgres-J1. */
static void
op_take(trpi_pg_journal *journal, trp_journal_op *op)
{
    bool is_change = trpi_journal_op_is_change(op);
    trpi_pg_id *id = NULL;

    if (names_id(op)) {
        id = id_add(journal, op);
        if (id == NULL) {
            trpi_pg_finish(journal, op, TRP_JOURNAL_REFUSED, TRP_ENOMEM, "%s",
                           trp_strerror(TRP_ENOMEM));
            return;
        }
        op->driver[1] = id;
    }
    if (is_change || (id != NULL && id->changes != 0)) {
        if (id != NULL) {
            id->changes++;
        }
        trpi_pg_queue_push(&journal->changes, op);
    } else {
        if (id != NULL) {
            id->reads++;
            op_mark(op, op_deadline(op), true);
        }
        trpi_pg_queue_push(&journal->reads, op);
    }
    if (op_deadline(op) < journal->expiry_ns) {
        journal->expiry_ns = op_deadline(op);
    }
}

static void
inbox_take(trpi_pg_journal *journal)
{
    trpi_pg_queue taken = { NULL, NULL, 0 };
    uint64_t count = 0;
    trp_journal_op *op = NULL;

    (void)!read(journal->wake_fd, &count, sizeof count); /* it does not block */
    pthread_mutex_lock(&journal->lock);
    taken = journal->inbox;
    journal->inbox = (trpi_pg_queue){ NULL, NULL, 0 };
    journal->is_woken = false;
    journal->is_ending = journal->is_closing;
    pthread_mutex_unlock(&journal->lock);
    while ((op = trpi_pg_queue_pop(&taken)) != NULL) {
        op_take(journal, op);
    }
}

/* Refuse what has waited for too long, or cannot be carried out at all: journal-postgres-J2. */
static void
queue_expire(trpi_pg_journal *journal, trpi_pg_queue *queue, uint64_t now, const char *why)
{
    trpi_pg_queue kept = { NULL, NULL, 0 };
    trp_journal_op *op = NULL;

    while ((op = trpi_pg_queue_pop(queue)) != NULL) {
        uint64_t deadline = op_deadline(op);
        if (journal->is_ending) {
            trpi_pg_finish(journal, op, TRP_JOURNAL_REFUSED, TRP_ECLOSED,
                           "the journal was closed while its server was away: %s", why);
        } else if (journal->schema_is_wrong) {
            trpi_pg_finish(journal, op, TRP_JOURNAL_REFUSED, TRP_ECONFIG, "%s", why);
        } else if (deadline <= now) {
            trpi_pg_finish(journal, op, TRP_JOURNAL_REFUSED, TRP_ETIMEDOUT,
                           "it waited until its deadline and was not sent: %s",
                           why[0] != '\0' ? why
                                          : "the database is slower than what is asked of it");
        } else {
            trpi_pg_queue_push(&kept, op);
            journal->expiry_ns = deadline < journal->expiry_ns ? deadline : journal->expiry_ns;
        }
    }
    *queue = kept;
}

static void
journal_expire(trpi_pg_journal *journal)
{
    uint64_t now = trpi_pg_now(journal);
    const trpi_pg_conn *writer = &journal->conns[0];
    bool is_ready = writer->state == TRPI_PG_READY;
    bool all_wait = journal->is_ending && !is_ready;

    if (now < journal->expiry_ns && !all_wait && !journal->schema_is_wrong) {
        return;
    }
    journal->expiry_ns = UINT64_MAX;
    if (!journal->is_ending || all_wait) {
        queue_expire(journal, &journal->changes, now, is_ready ? "" : writer->why);
        queue_expire(journal, &journal->reads, now, is_ready ? "" : writer->why);
        queue_expire(journal, &journal->aside, now, is_ready ? "" : writer->why);
    }
}

void
trpi_pg_aside_put(trpi_pg_journal *journal)
{
    const trp_journal_op *op = NULL;

    while ((op = journal->changes.first) != NULL && trpi_pg_id_of(op) != NULL &&
           trpi_pg_id_of(op)->deletion != NULL) {
        trpi_pg_queue_push(&journal->aside, trpi_pg_queue_pop(&journal->changes));
    }
}

/* Put what waited for a deletion that is over in front of what came later. */
static void
aside_return(trpi_pg_journal *journal)
{
    trpi_pg_queue kept = { NULL, NULL, 0 };
    trpi_pg_queue back = { NULL, NULL, 0 };
    trp_journal_op *op = NULL;

    journal->aside_is_due = false;
    while ((op = trpi_pg_queue_pop(&journal->aside)) != NULL) {
        trpi_pg_queue_push(trpi_pg_id_of(op)->deletion != NULL ? &kept : &back, op);
    }
    journal->aside = kept;
    if (back.first != NULL && journal->changes.first != NULL) {
        back.last->driver[0] = journal->changes.first;
        back.last = journal->changes.last;
        back.count += journal->changes.count;
    }
    journal->changes = back.first != NULL ? back : journal->changes;
}

/* Send a slice, or what stands first among the changes; false: nothing can be sent now. */
static bool
send_change(trpi_pg_journal *journal)
{
    trpi_pg_conn *conn = &journal->conns[0];
    uint32_t flights = conn->flights_count;
    bool is_sent = false;

    if (journal->aside_is_due) {
        aside_return(journal);
    }
    trpi_pg_aside_put(journal);
    trp_journal_op *op = journal->changes.first;
    bool is_slice = journal->deletions.first != NULL && conn->slices == 0;
    if ((op == NULL && !is_slice) || conn->state != TRPI_PG_READY ||
        flights == TRPI_PG_FLIGHTS_MAX) {
        return false;
    }
    if (is_slice) {
        is_sent = trpi_pg_send_slice(conn);
        if (is_sent && conn->flights_count == flights) {
            return true; /* no memory: they have failed */
        }
    } else if (trpi_journal_op_is_change(op)) {
        if (conn->batches == TRPI_PG_BATCHES_MAX) {
            return false;
        }
        is_sent = trpi_pg_send_batch(conn);
        if (is_sent && conn->flights_count == flights) {
            return false; /* it waits for reads */
        }
    } else {
        is_sent = trpi_pg_send_read(conn, trpi_pg_queue_pop(&journal->changes));
    }
    if (is_sent) {
        trpi_pg_conn_sent(conn);
    } else {
        trpi_pg_conn_lose(conn, journal->pq->PQerrorMessage(conn->conn));
    }
    return true;
}

/* Send one read to the connection that has the fewest; without another one, to that of changes. */
static bool
send_read(trpi_pg_journal *journal)
{
    trpi_pg_conn *best = NULL;

    if (journal->reads.first == NULL || journal->conns[0].state != TRPI_PG_READY) {
        return false; /* what a lost connection has sent may be under way: postgres-conn-P4 */
    }
    for (uint32_t i = 1; i < journal->conns_count; i++) {
        trpi_pg_conn *conn = &journal->conns[i];
        if (conn->state == TRPI_PG_READY &&
            (best == NULL || conn->flights_count < best->flights_count)) {
            best = conn;
        }
    }
    if (best == NULL) {
        best = &journal->conns[0];
    }
    if (best->flights_count == TRPI_PG_FLIGHTS_MAX) {
        return false;
    }
    if (trpi_pg_send_read(best, trpi_pg_queue_pop(&journal->reads))) {
        trpi_pg_conn_sent(best);
    } else {
        trpi_pg_conn_lose(best, journal->pq->PQerrorMessage(best->conn));
    }
    return true;
}

/* How long the thread may sleep. */
static int
sleep_ms(const trpi_pg_journal *journal, uint64_t now)
{
    uint64_t due = journal->expiry_ns;

    for (uint32_t i = 0; i < journal->conns_count; i++) {
        uint64_t of_conn = trpi_pg_conn_due(&journal->conns[i]);
        due = of_conn < due ? of_conn : due;
    }
    return due <= now                             ? 0
           : (due - now) / MS_NS >= INT32_MAX - 1 ? -1
                                                  : (int)((due - now) / MS_NS) + 1;
}

static bool
is_over(const trpi_pg_journal *journal)
{
    for (uint32_t i = 0; i < journal->conns_count; i++) {
        const trpi_pg_conn *conn = &journal->conns[i];
        if (conn->state == TRPI_PG_READY && conn->flights_count != 0) {
            return false;
        }
    }
    return journal->is_ending && journal->changes.first == NULL && journal->reads.first == NULL &&
           journal->deletions.first == NULL && journal->aside.first == NULL;
}

static void *
journal_main(void *arg)
{
    trpi_pg_journal *journal = arg;
    struct pollfd fds[TRP_JOURNAL_POSTGRES_READERS_MAX + 2];

    for (;;) {
        inbox_take(journal);
        while (send_change(journal) || send_read(journal)) {
        }
        journal_expire(journal);
        if (is_over(journal)) {
            return NULL;
        }
        fds[0] = (struct pollfd){ journal->wake_fd, POLLIN, 0 };
        for (uint32_t i = 0; i < journal->conns_count; i++) {
            fds[i + 1].events = trpi_pg_conn_events(&journal->conns[i], &fds[i + 1].fd);
            fds[i + 1].revents = 0;
        }
        int count = poll(fds, journal->conns_count + 1, sleep_ms(journal, trpi_pg_now(journal)));
        for (uint32_t i = 0; i < journal->conns_count; i++) {
            trpi_pg_conn_step(&journal->conns[i], count > 0 ? fds[i + 1].revents : 0);
        }
    }
}

/* ---- open and close -------------------------------------------------------------------------- */

static void
journal_free(trpi_pg_journal *journal)
{
    if (journal == NULL) {
        return;
    }
    for (uint32_t i = 0; i < journal->conns_count; i++) {
        trpi_pg_conn_end(&journal->conns[i]);
    }
    for (uint32_t i = 0; i < TRPI_POSTGRES_STATEMENTS; i++) {
        trpi_free(journal->statements[i]);
    }
    for (size_t i = 0; i < sizeof journal->params / sizeof journal->params[0]; i++) {
        trpi_buffer_fini(&journal->params[i]);
    }
    if (journal->wake_fd >= 0) {
        (void)close(journal->wake_fd);
    }
    trpi_table_fini(&journal->ids);
    trpi_free(journal->version_text);
    trpi_free(journal->conns);
    trpi_free(journal->url);
    trpi_free(journal->password_file);
    trpi_free(journal->schema);
    trpi_world_free(journal->world);
    trpi_mutex_destroy(&journal->lock);
    memset(journal->password, 0, sizeof journal->password);
    trpi_free(journal);
}

static void
postgres_close(void *arg)
{
    trpi_pg_journal *journal = arg;

    pthread_mutex_lock(&journal->lock);
    journal->is_closing = true;
    pthread_mutex_unlock(&journal->lock);
    journal_wake(journal);
    (void)pthread_join(journal->thread, NULL);
    journal_free(journal);
}

static uint32_t
or_default(uint32_t value, uint32_t otherwise)
{
    return value != 0 ? value : otherwise;
}

/* The password in the connection string: it must not get into a text. */
static void
password_learn(trpi_pg_journal *journal)
{
    PQconninfoOption *options = journal->pq->PQconninfoParse(journal->url, NULL);

    for (const PQconninfoOption *o = options; o != NULL && o->keyword != NULL; o++) {
        if (strcmp(o->keyword, "password") == 0 && o->val != NULL) {
            (void)snprintf(journal->password, sizeof journal->password, "%s", o->val);
        }
    }
    journal->pq->PQconninfoFree(options);
}

static trp_err
journal_fill(trpi_pg_journal *journal, const trp_journal_postgres_options *o)
{
    trp_journal_postgres_options *own = &journal->options;
    const char *schema = o->schema != NULL ? o->schema : TRP_JOURNAL_POSTGRES_SCHEMA;

    *own = *o;
    own->readers = or_default(o->readers, TRP_JOURNAL_POSTGRES_READERS_DEFAULT);
    own->connect_timeout_ms =
        or_default(o->connect_timeout_ms, TRP_JOURNAL_POSTGRES_CONNECT_MS_DEFAULT);
    own->wait_timeout_ms = or_default(o->wait_timeout_ms, TRP_JOURNAL_POSTGRES_WAIT_MS_DEFAULT);
    own->answer_timeout_ms =
        or_default(o->answer_timeout_ms, TRP_JOURNAL_POSTGRES_ANSWER_MS_DEFAULT);
    own->waiting_max = or_default(o->waiting_max, TRP_JOURNAL_POSTGRES_WAITING_DEFAULT);
    own->batch_max = or_default(o->batch_max, TRP_JOURNAL_POSTGRES_BATCH_DEFAULT);
    own->waiting_bytes_max = o->waiting_bytes_max != 0 ? o->waiting_bytes_max
                                                       : TRP_JOURNAL_POSTGRES_WAITING_BYTES_DEFAULT;
    own->url = own->password_file = own->schema = NULL; /* the caller's */
    journal->url = trpi_strdup(o->url);
    journal->schema = trpi_strdup(schema);
    journal->password_file = o->password_file != NULL ? trpi_strdup(o->password_file) : NULL;
    journal->version_text = trpi_postgres_text(trpi_postgres_version, schema);
    bool is_whole = journal->url != NULL && journal->schema != NULL &&
                    journal->version_text != NULL &&
                    (o->password_file == NULL || journal->password_file != NULL);
    for (uint32_t i = 0; i < TRPI_POSTGRES_STATEMENTS; i++) {
        journal->statements[i] = trpi_postgres_text(trpi_postgres_statements[i], schema);
        is_whole = is_whole && journal->statements[i] != NULL;
    }
    journal->conns = trpi_alloc((own->readers + 1) * sizeof *journal->conns);
    journal->conns_count = journal->conns != NULL ? own->readers + 1 : 0;
    for (uint32_t i = 0; i < journal->conns_count; i++) {
        journal->conns[i].journal = journal;
        journal->conns[i].backoff_ms = TRPI_PG_BACKOFF_MS_MIN;
    }
    journal->health = (trp_journal_health)TRP_JOURNAL_HEALTH_INIT;
    trpi_pg_say(journal, TRP_JOURNAL_AWAY, "it has not connected to its server yet");
    return is_whole && journal->conns != NULL ? TRP_OK : TRP_ENOMEM;
}

static trp_err
thread_start(trpi_pg_journal *journal)
{
    sigset_t all;
    sigset_t before;
    int failed = 0;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&journal->thread, NULL, journal_main, journal);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0 ? TRP_OK : TRP_ENOMEM;
}

trp_err
trp_journal_postgres_open(const trp_journal_postgres_options *options,
                          const trp_journal_driver **ret_driver, char *why, size_t why_bytes)
{
    trp_journal_postgres_options own = TRP_JOURNAL_POSTGRES_OPTIONS_INIT;
    char unused[1];
    const trpi_libpq *pq = NULL;
    trpi_pg_journal *journal = NULL;
    trp_err err = TRP_OK;

    why_bytes = why != NULL ? why_bytes : sizeof unused;
    why = why != NULL ? why : unused;
    if (options == NULL || ret_driver == NULL ||
        !TRPI_SIZED_COPY(options, &own, waiting_bytes_max)) {
        (void)snprintf(why, why_bytes, "the options are missing or of another size");
        return TRP_EINVAL;
    }
    pq = trpi_libpq_get(why, why_bytes);
    err = pq != NULL ? trpi_pg_options_check(&own, pq, why, why_bytes) : TRP_EUNSUPPORTED;
    if (err != TRP_OK) {
        return err;
    }
    journal = trpi_alloc(sizeof *journal);
    if (journal == NULL) {
        (void)snprintf(why, why_bytes, "%s", trp_strerror(TRP_ENOMEM));
        return TRP_ENOMEM;
    }
    journal->pq = pq;
    journal->expiry_ns = UINT64_MAX;
    pthread_mutex_init(&journal->lock, NULL);
    journal->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    err = journal->wake_fd >= 0 ? trpi_world_real_new(&journal->world) : TRP_EIO;
    err = err == TRP_OK ? journal_fill(journal, &own) : err;
    if (err == TRP_OK) {
        (void)snprintf(journal->fence, sizeof journal->fence, "%" PRIu64,
                       trpi_world_random(journal->world) >> 1);
        password_learn(journal);
        journal->driver =
            (trp_journal_driver){ sizeof journal->driver, "postgres",      journal,       1, 0,
                                  postgres_submit,        postgres_health, postgres_close };
        err = thread_start(journal);
    }
    if (err != TRP_OK) {
        (void)snprintf(why, why_bytes, "%s", trp_strerror(err));
        journal_free(journal);
        return err;
    }
    *ret_driver = &journal->driver;
    return TRP_OK;
}

#endif
