/* postgres_conn.c - one connection to PostgreSQL in pipeline mode: made, used, lost, made again.
 *
 * States. rests -> connects -> sets up -> ready; each failure leads back to rests, longer each
 *         time, up to 5 s, with jitter.
 * Must hold.
 *   postgres-conn-P1  Answers come in the order of sending: the first flight is the one whose
 *       results are read. A flight ends with its sync.
 *   postgres-conn-P2  When a connection is lost, changes whose results are here are answered with
 *       them, other sent changes are failed, and sent reads are read again elsewhere.
 *   postgres-conn-P3  A connection whose first flight has no answer, and on which nothing moves
 *       for answer_timeout_ms is given up.
 *   postgres-conn-P4  What was sent over a lost connection of changes is over before its successor
 *       is ready, and before anything is read: the old session holds a lock at the server; the new
 *       one ends that session, and takes the lock when it is gone.
 * Tests. tests/system/postgres.sh
 */
#include "persistence/postgres.h"

#ifdef HAVE_POSTGRES

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

#define MS_NS UINT64_C(1000000)

void
trpi_pg_text_clean(const trpi_pg_journal *journal, const char *text, char *ret_text,
                   size_t ret_bytes)
{
    const char *password = journal != NULL ? journal->password : "";
    size_t hidden = strlen(password);
    size_t count = 0;

    while (*text != '\0' && count + 4 < ret_bytes) {
        if (hidden >= 4 && strncmp(text, password, hidden) == 0) {
            memcpy(ret_text + count, "***", 3);
            count += 3;
            text += hidden;
        } else {
            char letter = *text++;
            bool is_blank = letter == '\n' || letter == '\r' || letter == '\t';
            ret_text[count++] = is_blank ? ' ' : letter;
        }
    }
    while (count > 0 && ret_text[count - 1] == ' ') {
        count--;
    }
    ret_text[count] = '\0';
}

static trpi_pg_flight *
flight_at(trpi_pg_conn *conn, uint32_t place)
{
    return &conn->flights[(conn->flights_first + place) % TRPI_PG_FLIGHTS_MAX];
}

trpi_pg_flight *
trpi_pg_conn_flight(trpi_pg_conn *conn, trpi_pg_flight_kind kind)
{
    trpi_assert(conn->flights_count < TRPI_PG_FLIGHTS_MAX);
    trpi_pg_flight *flight = flight_at(conn, conn->flights_count++);

    *flight = (trpi_pg_flight){ .kind = kind, .sent_ns = trpi_pg_now(conn->journal) };
    conn->batches += kind == TRPI_PG_BATCH;
    conn->slices += kind == TRPI_PG_SLICE;
    return flight;
}

/* Take the first flight away; the caller has its copy. */
static trpi_pg_flight
flight_take(trpi_pg_conn *conn)
{
    trpi_pg_flight flight = *flight_at(conn, 0);

    conn->flights_first = (conn->flights_first + 1) % TRPI_PG_FLIGHTS_MAX;
    conn->flights_count--;
    conn->batches -= flight.kind == TRPI_PG_BATCH;
    conn->slices -= flight.kind == TRPI_PG_SLICE;
    if (conn->flights_count != 0) {
        flight_at(conn, 0)->sent_ns = trpi_pg_now(conn->journal); /* its turn begins */
    }
    return flight;
}

static void
flight_clear(const trpi_pg_conn *conn, trpi_pg_flight *flight)
{
    conn->journal->pq->PQclear(flight->result);
    conn->journal->pq->PQclear(flight->error);
    flight->result = flight->error = NULL;
}

/* postgres-conn-P2 */
static void
flight_lose(trpi_pg_conn *conn, trpi_pg_flight *flight, trpi_pg_queue *again)
{
    trp_journal_op *op = NULL;

    if (flight->kind != TRPI_PG_SETUP && (flight->result != NULL || flight->error != NULL)) {
        trpi_pg_answer(conn, flight);
    }
    while ((op = trpi_pg_queue_pop(&flight->ops)) != NULL) {
        if (flight->kind == TRPI_PG_READ) {
            trpi_pg_queue_push(again, op);
        } else {
            trpi_pg_finish(conn->journal, op, TRP_JOURNAL_FAILED, TRP_ECONN,
                           "it had been sent when the connection was lost, and may have been "
                           "stored or not: %s",
                           conn->why);
        }
    }
    flight_clear(conn, flight);
}

void
trpi_pg_conn_lose(trpi_pg_conn *conn, const char *why)
{
    trpi_pg_journal *journal = conn->journal;
    bool is_first = conn == journal->conns;
    trpi_pg_queue again = { NULL, NULL, 0 };
    trpi_pg_queue *reads = is_first ? &journal->changes : &journal->reads;
    uint64_t jitter = trpi_world_random(journal->world) % (conn->backoff_ms / 2 + 1);
    trp_journal_op *op = NULL;

    trpi_pg_text_clean(journal, why, conn->why, sizeof conn->why);
    if (is_first) {
        trpi_pg_say(journal, TRP_JOURNAL_AWAY, conn->why);
    }
    if (conn->conn != NULL) {
        journal->pq->PQfinish(conn->conn);
        conn->conn = NULL;
    }
    conn->state = TRPI_PG_RESTS;
    conn->has_output = false;
    conn->retry_ns = trpi_pg_now(journal) + (conn->backoff_ms - jitter) * MS_NS;
    conn->backoff_ms = conn->backoff_ms * 2 < TRPI_PG_BACKOFF_MS_MAX ? conn->backoff_ms * 2
                                                                     : TRPI_PG_BACKOFF_MS_MAX;
    while (conn->flights_count != 0) {
        trpi_pg_flight flight = flight_take(conn);
        flight_lose(conn, &flight, &again);
    }
    while (is_first && (op = trpi_pg_queue_pop(&journal->deletions)) != NULL) {
        trpi_pg_finish(journal, op, TRP_JOURNAL_FAILED, TRP_ECONN,
                       "the connection was lost while its events were deleted, and some of the "
                       "first may be there or not: %s",
                       conn->why);
    }
    while (reads->first != NULL && again.first != NULL) { /* behind again, in its order */
        trpi_pg_queue_push(&again, trpi_pg_queue_pop(reads));
    }
    while ((op = trpi_pg_queue_pop(&again)) != NULL) {
        trpi_pg_queue_push(reads, op);
    }
    journal->expiry_ns = 0;
}

void
trpi_pg_conn_end(trpi_pg_conn *conn)
{
    while (conn->flights_count != 0) { /* its set-up: what it was told may have no sync yet */
        trpi_pg_flight flight = flight_take(conn);
        trpi_assert(flight.ops.first == NULL);
        flight_clear(conn, &flight);
    }
    if (conn->conn != NULL) {
        conn->journal->pq->PQfinish(conn->conn);
        conn->conn = NULL;
    }
}

static void
conn_lose_by_libpq(trpi_pg_conn *conn)
{
    trpi_pg_conn_lose(conn, conn->journal->pq->PQerrorMessage(conn->conn));
}

static void
notice_ignore(void *arg, const PGresult *result)
{
    (void)arg;
    (void)result;
}

static void
conn_begin(trpi_pg_conn *conn)
{
    trpi_pg_journal *journal = conn->journal;
    trp_journal_postgres_options of = journal->options;
    const char *keywords[TRPI_PG_KEYWORDS_MAX];
    const char *values[TRPI_PG_KEYWORDS_MAX];
    char why[TRP_JOURNAL_WHY_BYTES];

    of.url = journal->url;
    if (journal->password_file != NULL &&
        trpi_pg_password_read(journal->password_file, journal->password, sizeof journal->password,
                              why, sizeof why) != TRP_OK) {
        trpi_pg_conn_lose(conn, why);
        return;
    }
    trpi_pg_keywords(&of, journal->password_file != NULL ? journal->password : NULL, keywords,
                     values);
    conn->began_ns = trpi_pg_now(journal);
    conn->conn = journal->pq->PQconnectStartParams(keywords, values, 1);
    if (conn->conn == NULL) {
        trpi_pg_conn_lose(conn, trp_strerror(TRP_ENOMEM));
    } else if (journal->pq->PQstatus(conn->conn) == CONNECTION_BAD) {
        conn_lose_by_libpq(conn);
    } else {
        (void)journal->pq->PQsetNoticeReceiver(conn->conn, notice_ignore, NULL);
        conn->state = TRPI_PG_CONNECTS;
        conn->polling = PGRES_POLLING_WRITING;
    }
}

/* The server has taken the connection: set it up. */
static void
conn_set_up(trpi_pg_conn *conn)
{
    const trpi_libpq *pq = conn->journal->pq;

    conn->state = TRPI_PG_SETS_UP;
    if (pq->PQsetnonblocking(conn->conn, 1) != 0 || pq->PQenterPipelineMode(conn->conn) != 1 ||
        !trpi_pg_send_setup(conn)) {
        conn_lose_by_libpq(conn);
        return;
    }
    trpi_pg_conn_sent(conn);
}

static void
conn_is_ready(trpi_pg_conn *conn)
{
    conn->state = TRPI_PG_READY;
    conn->backoff_ms = TRPI_PG_BACKOFF_MS_MIN;
    if (conn == conn->journal->conns) {
        conn->journal->schema_is_wrong = false;
        trpi_pg_say(conn->journal, TRP_JOURNAL_OPEN, "");
    }
}

/* The tables are not there, or are others: operations are refused until they are right. */
static void
schema_is_wrong(trpi_pg_conn *conn, const char *why)
{
    conn->journal->schema_is_wrong = conn->journal->schema_is_wrong || conn == conn->journal->conns;
    trpi_pg_conn_lose(conn, why);
}

static void
setup_answer(trpi_pg_conn *conn, const trpi_pg_flight *flight)
{
    const trpi_libpq *pq = conn->journal->pq;
    char why[TRP_JOURNAL_WHY_BYTES];
    char said[512];

    if (flight->error != NULL) {
        const char *state = pq->PQresultErrorField(flight->error, PG_DIAG_SQLSTATE);
        const char *text = pq->PQresultErrorField(flight->error, PG_DIAG_MESSAGE_PRIMARY);
        bool is_schema =
            state != NULL && (strncmp(state, "42", 2) == 0 || strncmp(state, "3F", 2) == 0);
        trpi_pg_text_clean(conn->journal, text != NULL ? text : "no reason is given", said,
                           sizeof said);
        bool is_held = state != NULL && strcmp(state, "55P03") == 0;
        (void)snprintf(why, sizeof why,
                       is_held ? "the server has not ended the lost connection for schema \"%s\" "
                                 "yet, and what was sent over it (%s); nothing is sent before"
                       : is_schema
                           ? "the database has no journal in schema \"%s\" that this user may "
                             "use (%s): troupe journal init makes it"
                           : "the connection for schema \"%s\" could not be set up: %s",
                       conn->journal->schema, said);
        if (is_schema) {
            schema_is_wrong(conn, why);
        } else {
            trpi_pg_conn_lose(conn, why);
        }
    } else if (flight->version != TRPI_POSTGRES_VERSION) {
        (void)snprintf(
            why, sizeof why,
            "schema \"%s\" has tables of version %d, and this Troupe uses version %d: %s",
            conn->journal->schema, (int)flight->version, TRPI_POSTGRES_VERSION,
            flight->version > TRPI_POSTGRES_VERSION
                ? "use a newer Troupe"
                : "export with the Troupe that made them, and import into a new schema");
        schema_is_wrong(conn, why);
    } else {
        conn_is_ready(conn);
    }
}

/* Keep what a statement answered, or answer with it at its sync. False: the connection is lost. */
static bool
result_take(trpi_pg_conn *conn, PGresult *result)
{
    const trpi_libpq *pq = conn->journal->pq;
    trpi_pg_flight *flight = flight_at(conn, 0);
    ExecStatusType status = pq->PQresultStatus(result);

    if (status == PGRES_PIPELINE_SYNC) {
        trpi_pg_flight over = flight_take(conn);
        pq->PQclear(result);
        if (over.kind == TRPI_PG_SETUP) {
            setup_answer(conn, &over);
        } else {
            trpi_pg_answer(conn, &over);
        }
        flight_clear(conn, &over);
        return conn->state == TRPI_PG_READY;
    }
    if (status == PGRES_TUPLES_OK && flight->kind == TRPI_PG_SETUP) {
        if (pq->PQnfields(result) == 2 && pq->PQntuples(result) == 1) {
            flight->version = (int32_t)trpi_pg_int(pq, result, 0, 0);
            pthread_mutex_lock(&conn->journal->lock);
            conn->journal->health.bytes = (uint64_t)trpi_pg_int(pq, result, 0, 1);
            pthread_mutex_unlock(&conn->journal->lock);
        }
    } else if (status == PGRES_TUPLES_OK && flight->result == NULL) {
        flight->result = result;
        return true;
    } else if (status == PGRES_FATAL_ERROR && flight->error == NULL) {
        if (pq->PQresultErrorField(result, PG_DIAG_SQLSTATE) == NULL) { /* libpq's own */
            pq->PQclear(result);
            conn_lose_by_libpq(conn);
            return false;
        }
        flight->error = result;
        return true;
    }
    pq->PQclear(result);
    return true;
}

/* Take all results that are here. postgres-conn-P1 */
static void
conn_read(trpi_pg_conn *conn)
{
    const trpi_libpq *pq = conn->journal->pq;
    uint32_t nothing = 0;

    if (pq->PQconsumeInput(conn->conn) != 1) {
        /* An order to end may be among what was read before the end. */
        char why[512];
        trpi_pg_text_clean(conn->journal, pq->PQerrorMessage(conn->conn), why, sizeof why);
        while (conn->conn != NULL && conn->flights_count != 0 && nothing < 2 &&
               pq->PQisBusy(conn->conn) == 0) {
            PGresult *result = pq->PQgetResult(conn->conn);
            nothing = result != NULL ? 0 : nothing + 1;
            if (result != NULL && !result_take(conn, result)) {
                return;
            }
        }
        trpi_pg_conn_lose(conn, why);
        return;
    }
    while (conn->flights_count != 0 && nothing < 2 && pq->PQisBusy(conn->conn) == 0) {
        PGresult *result = pq->PQgetResult(conn->conn);
        nothing = result != NULL ? 0 : nothing + 1;
        if (result != NULL && !result_take(conn, result)) {
            return;
        }
    }
    if (conn->conn != NULL && pq->PQstatus(conn->conn) == CONNECTION_BAD) {
        conn_lose_by_libpq(conn);
    }
}

static void
conn_flush(trpi_pg_conn *conn)
{
    int left = conn->journal->pq->PQflush(conn->conn);

    conn->has_output = left == 1;
    if (left < 0) {
        conn_lose_by_libpq(conn);
    }
}

void
trpi_pg_conn_sent(trpi_pg_conn *conn)
{
    if (conn->journal->pq->PQpipelineSync(conn->conn) != 1) {
        conn_lose_by_libpq(conn);
    } else {
        conn_flush(conn);
    }
}

static void
conn_connect(trpi_pg_conn *conn)
{
    conn->polling = conn->journal->pq->PQconnectPoll(conn->conn);
    if (conn->polling == PGRES_POLLING_OK) {
        conn_set_up(conn);
    } else if (conn->polling == PGRES_POLLING_FAILED) {
        conn_lose_by_libpq(conn);
    }
}

uint64_t
trpi_pg_conn_due(const trpi_pg_conn *conn)
{
    const trp_journal_postgres_options *options = &conn->journal->options;

    if (conn->state == TRPI_PG_RESTS) {
        return conn->retry_ns;
    }
    if (conn->state == TRPI_PG_CONNECTS) {
        return conn->began_ns + options->connect_timeout_ms * MS_NS;
    }
    return conn->flights_count == 0
               ? UINT64_MAX
               : conn->flights[conn->flights_first].sent_ns + options->answer_timeout_ms * MS_NS;
}

short
trpi_pg_conn_events(const trpi_pg_conn *conn, int *ret_fd)
{
    *ret_fd = conn->conn != NULL ? conn->journal->pq->PQsocket(conn->conn) : -1;
    if (*ret_fd < 0) {
        return 0;
    }
    if (conn->state == TRPI_PG_CONNECTS) {
        return conn->polling == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    }
    return (short)(POLLIN | (conn->has_output ? POLLOUT : 0));
}

void
trpi_pg_conn_step(trpi_pg_conn *conn, short events)
{
    bool is_due = trpi_pg_now(conn->journal) >= trpi_pg_conn_due(conn);

    if (events != 0 && conn->flights_count != 0) { /* bytes move: it is slow, not gone */
        flight_at(conn, 0)->sent_ns = trpi_pg_now(conn->journal);
    }

    if (conn->state == TRPI_PG_RESTS) {
        if (is_due && !conn->journal->is_ending) {
            conn_begin(conn);
        }
        return;
    }
    if (conn->state == TRPI_PG_CONNECTS) {
        if (events != 0) {
            conn_connect(conn);
        } else if (is_due) {
            trpi_pg_conn_lose(conn, "the server did not take the connection in time");
        }
        return;
    }
    if ((events & ~POLLOUT) != 0) {
        conn_read(conn);
    }
    if (conn->conn != NULL && (events & POLLOUT) != 0) {
        conn_flush(conn);
    }
    if (conn->conn != NULL && events == 0 && is_due) { /* postgres-conn-P3 */
        trpi_pg_conn_lose(conn, "the server gave no answer in time");
    }
}

#endif
