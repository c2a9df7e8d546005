/* journal_bare_postgres.c - see journal.h: libpq in pipeline mode without a journal around it.
 *
 * It calls the procedure of the journal's tables with the same arrays in binary form, two calls on
 * their way at most, as the driver does. It answers nobody. */
#include "tests/bench/journal.h"

#include "tests/bench/bench.h"

#ifdef HAVE_POSTGRES

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <troupe/journal_postgres.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "persistence/postgres_libpq.h"
#include "persistence/postgres_schema.h"

enum {
    OID_BYTEA = 17,
    OID_INT8 = 20,
    OID_INT2 = 21,
    OID_INT4 = 23,
    PARAMS = 15,
    HEAD_BYTES = 20,
    IN_FLIGHT = 2,
    NAME_BYTES = 32
};

static const Oid elements[PARAMS] = { OID_INT2, OID_BYTEA, OID_INT8,  OID_BYTEA, OID_INT8,
                                      OID_INT4, OID_INT4,  OID_INT4,  OID_INT8,  OID_BYTEA,
                                      OID_INT4, OID_BYTEA, OID_BYTEA, OID_BYTEA, OID_INT4 };
static const Oid arrays[PARAMS] = { 1005, 1001, 1016, 1001, 1016, 1007, 1007, 1007,
                                    1016, 1001, 1007, 1001, 1001, 1001, 1007 };

typedef struct bare_postgres {
    bench_bare bare;
    const trpi_libpq *pq;
    PGconn *conn;
    char *statement, *type, *data;
    size_t data_bytes;
    uint64_t stored;
    trpi_buffer params[PARAMS];
} bare_postgres;

static void
pq_check(const bare_postgres *b, int failed, const char *what)
{
    if (failed) {
        (void)fprintf(stderr, "bench: bare libpq: %s: %s\n", what, b->pq->PQerrorMessage(b->conn));
        exit(1);
    }
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static void
put(bare_postgres *b, uint32_t param, const void *bytes, size_t count)
{
    bench_check(trpi_buffer_append(&b->params[param], bytes, count, TRPI_BUFFER_NO_LIMIT),
                "trpi_buffer_append");
}

static void
put_bytes(bare_postgres *b, uint32_t param, const void *bytes, size_t count)
{
    uint32_t length = htobe32((uint32_t)count);
    put(b, param, &length, sizeof length);
    if (count > 0) {
        put(b, param, bytes, count);
    }
}

/* As wide as the elements of the array. */
static void
put_number(bare_postgres *b, uint32_t param, uint64_t number)
{
    uint64_t ordered = htobe64(number);
    size_t bytes = elements[param] == OID_INT2 ? 2 : elements[param] == OID_INT4 ? 4 : 8;
    put_bytes(b, param, (const char *)&ordered + sizeof ordered - bytes, bytes);
}

/* A claim of the epoch of an actor's id, or the next event of it. */
static void
put_change(bare_postgres *b, uint64_t actor, uint32_t place, bool is_claim)
{
    char name[NAME_BYTES];
    size_t bytes = (size_t)snprintf(name, sizeof name, "/user/w%u", (unsigned)actor);
    put_number(b, 0, is_claim ? TRP_JOURNAL_CLAIM : TRP_JOURNAL_APPEND);
    put_bytes(b, 1, name, bytes);
    put_number(b, 2, is_claim ? 0 : 1);
    put_bytes(b, 3, name, bytes);
    put_number(b, 4, is_claim ? 0 : b->stored / JOURNAL_ACTORS + 1);
    put_number(b, 5, is_claim ? 0 : 1);
    put_number(b, 6, is_claim ? 1 : place);
    if (!is_claim) {
        put_number(b, 7, place);
        put_number(b, 8, b->stored);
        put_bytes(b, 9, b->type, strlen(b->type));
        put_number(b, 10, 1);
        put_bytes(b, 11, "", 0);
        put_bytes(b, 12, b->data, b->data_bytes);
        b->stored++;
    }
}

static void
batch_send(bare_postgres *b, uint64_t first, uint64_t count, bool is_claim)
{
    static const char head[HEAD_BYTES];
    const char *values[PARAMS];
    int lengths[PARAMS], formats[PARAMS];

    for (uint32_t i = 0; i < PARAMS; i++) {
        trpi_buffer_clear(&b->params[i]);
        put(b, i, head, sizeof head);
    }
    for (uint64_t i = 0; i < count; i++) {
        put_change(b, (first + i) % JOURNAL_ACTORS, (uint32_t)i + 1, is_claim);
    }
    for (uint32_t i = 0; i < PARAMS; i++) {
        uint32_t filled = i < 7 || (i < 13 && !is_claim) ? (uint32_t)count : 0;
        uint32_t words[5] = { htobe32(filled != 0), 0, htobe32(elements[i]), htobe32(filled),
                              htobe32(1) };
        b->params[i].count = filled != 0 ? b->params[i].count : 12; /* empty: without dimension */
        memcpy(b->params[i].data, words, filled != 0 ? sizeof words : 12);
        values[i] = (const char *)b->params[i].data;
        lengths[i] = (int)b->params[i].count;
        formats[i] = 1;
    }
    pq_check(b,
             b->pq->PQsendQueryParams(b->conn, b->statement, PARAMS, arrays, values, lengths,
                                      formats, 1) != 1 ||
                 b->pq->PQpipelineSync(b->conn) != 1,
             "a call cannot be sent");
}

/* Wait for the answer of the oldest call: all of its changes are done. */
static void
batch_await(const bare_postgres *b)
{
    PGresult *result = b->pq->PQgetResult(b->conn);

    pq_check(b, b->pq->PQresultStatus(result) != PGRES_TUPLES_OK, "a call has failed");
    const char *codes = b->pq->PQgetvalue(result, 0, 0);
    for (int at = HEAD_BYTES; at < b->pq->PQgetlength(result, 0, 0); at += 6) {
        pq_check(b, codes[at + 4] != 0 || codes[at + 5] != 0, "a change was refused");
    }
    b->pq->PQclear(result);
    pq_check(b, b->pq->PQgetResult(b->conn) != NULL, "a call has two answers");
    result = b->pq->PQgetResult(b->conn);
    pq_check(b, b->pq->PQresultStatus(result) != PGRES_PIPELINE_SYNC, "no end of a call");
    b->pq->PQclear(result);
}

static uint64_t
batches_run(bare_postgres *b, uint64_t count, uint64_t batch, bool is_claim)
{
    uint64_t begin_ns = bench_now_ns(), first = is_claim ? 0 : b->stored;
    uint32_t in_flight = 0;

    for (uint64_t i = 0; i < count; i += batch) {
        if (in_flight == IN_FLIGHT) {
            batch_await(b);
            in_flight--;
        }
        batch_send(b, first + i, i + batch < count ? batch : count - i, is_claim);
        in_flight++;
    }
    for (; in_flight > 0; in_flight--) {
        batch_await(b);
    }
    return bench_now_ns() - begin_ns;
}

/* ---- the program ----------------------------------------------------------------------------- */

static uint64_t
postgres_store(bench_bare *bare, uint64_t count, uint64_t batch)
{
    return batches_run((bare_postgres *)bare, count, batch, false);
}

static void
postgres_close(bench_bare *bare)
{
    bare_postgres *b = (bare_postgres *)bare;

    b->pq->PQfinish(b->conn);
    for (uint32_t i = 0; i < PARAMS; i++) {
        trpi_buffer_fini(&b->params[i]);
    }
    trpi_free(b->statement);
    free(b->type);
    free(b->data);
    free(b);
}

static PGconn *
connect_to(const trpi_libpq *pq, const char *url)
{
    const char *keywords[] = { "dbname", NULL }, *values[] = { url, NULL };
    PGconn *conn = pq->PQconnectdbParams(keywords, values, 1);

    if (pq->PQstatus(conn) != CONNECTION_OK) {
        (void)fprintf(stderr, "bench: libpq: %s\n", pq->PQerrorMessage(conn));
        exit(1);
    }
    return conn;
}

static const trpi_libpq *
libpq_get(void)
{
    char why[TRP_JOURNAL_WHY_BYTES] = "";
    const trpi_libpq *pq = trpi_libpq_get(why, sizeof why);

    bench_check(pq == NULL ? TRP_EUNSUPPORTED : TRP_OK, why);
    return pq;
}

void
bench_postgres_schema(const char *url, const char *schema, bool make)
{
    const trpi_libpq *pq = libpq_get();
    trp_journal_postgres_options options = TRP_JOURNAL_POSTGRES_OPTIONS_INIT;
    char text[128], why[TRP_JOURNAL_WHY_BYTES] = "";

    options.url = url;
    options.schema = schema;
    if (make) {
        bench_check(trp_journal_postgres_init(&options, NULL, why, sizeof why), why);
        return;
    }
    PGconn *conn = connect_to(pq, url);
    (void)snprintf(text, sizeof text, "SET client_min_messages = error; DROP SCHEMA %s CASCADE",
                   schema);
    PGresult *result = pq->PQexec(conn, text);
    bench_check(pq->PQresultStatus(result) == PGRES_COMMAND_OK ? TRP_OK : TRP_EIO, text);
    pq->PQclear(result);
    pq->PQfinish(conn);
}

bench_bare *
bench_bare_postgres(const char *url, const char *schema, const char *type, size_t data_bytes)
{
    const char *lock_timeout[1] = { "15000" };
    bare_postgres *b = calloc(1, sizeof *b);

    bench_check(b == NULL ? TRP_ENOMEM : TRP_OK, "calloc");
    b->bare = (bench_bare){ postgres_store, postgres_close };
    b->pq = libpq_get();
    b->conn = connect_to(b->pq, url);
    b->type = strdup(type);
    b->data = calloc(1, data_bytes);
    b->data_bytes = data_bytes;
    b->statement = trpi_postgres_text(trpi_postgres_statements[TRPI_POSTGRES_CHANGE], schema);
    bench_check(b->type == NULL || b->data == NULL || b->statement == NULL ? TRP_ENOMEM : TRP_OK,
                "calloc");
    PGresult *result =
        b->pq->PQexecParams(b->conn, trpi_postgres_settings, 1, NULL, lock_timeout, NULL, NULL, 1);
    pq_check(b, b->pq->PQresultStatus(result) != PGRES_TUPLES_OK, "settings");
    b->pq->PQclear(result);
    pq_check(b, b->pq->PQenterPipelineMode(b->conn) != 1, "no pipeline");
    (void)batches_run(b, JOURNAL_ACTORS, JOURNAL_ACTORS, true);
    return &b->bare;
}

#endif
