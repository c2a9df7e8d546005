/* postgres_send.c - operations as parameters of statements, in PostgreSQL's binary form.
 *
 * Why.   A batch is one call with one array for each field of its operations and events
 *        (postgres_schema.c), so that a thousand appends cost one statement and one commit.
 * Must hold.
 *   postgres-send-N1  Changes keep the order of their submission. A batch ends before a read that
 *       has its place among them, and before a change whose id is read on another connection.
 *   postgres-send-N2  A deletion or a restored backup is never in one batch with an earlier change
 *       of its id. (postgres-schema-S4)
 * Limits. 15 arrays; a batch has batch_max operations and 4 MiB of data, or one operation.
 * Tests. tests/system/postgres.sh (the conformance kit)
 */
#include "persistence/postgres.h"

#ifdef HAVE_POSTGRES

#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "persistence/journal_op.h"

/* Types of PostgreSQL: numbers that never change. */
enum {
    OID_BYTEA = 17,
    OID_INT8 = 20,
    OID_INT2 = 21,
    OID_INT4 = 23,
    OID_BYTEA_ARRAY = 1001,
    OID_INT2_ARRAY = 1005,
    OID_INT4_ARRAY = 1007,
    OID_INT8_ARRAY = 1016
};

/* The parameters of CALL change(), in their order. */
typedef enum param {
    KINDS,
    SCOPES,
    EPOCHS,
    IDS,
    NUMBERS,
    COUNTS,
    FIRSTS,
    EVENT_OPS,
    TIMES,
    TYPES,
    VERSIONS,
    TAG_LISTS,
    DATAS,
    TAGS,
    TAG_EVENTS,
    PARAMS
} param;

static const Oid element_types[PARAMS] = { OID_INT2, OID_BYTEA, OID_INT8,  OID_BYTEA, OID_INT8,
                                           OID_INT4, OID_INT4,  OID_INT4,  OID_INT8,  OID_BYTEA,
                                           OID_INT4, OID_BYTEA, OID_BYTEA, OID_BYTEA, OID_INT4 };
static const Oid array_types[PARAMS] = { OID_INT2_ARRAY,  OID_BYTEA_ARRAY, OID_INT8_ARRAY,
                                         OID_BYTEA_ARRAY, OID_INT8_ARRAY,  OID_INT4_ARRAY,
                                         OID_INT4_ARRAY,  OID_INT4_ARRAY,  OID_INT8_ARRAY,
                                         OID_BYTEA_ARRAY, OID_INT4_ARRAY,  OID_BYTEA_ARRAY,
                                         OID_BYTEA_ARRAY, OID_BYTEA_ARRAY, OID_INT4_ARRAY };

#define ARRAY_HEAD_BYTES 20u

/* A batch as it is collected. */
typedef struct batch {
    trpi_pg_journal *journal;
    trp_err err; /* of the first append to a buffer that failed */
    uint32_t ops;
    uint32_t events;
    uint32_t tags;
    uint64_t bytes;
} batch;

static void
batch_put(batch *b, param to, const void *bytes, size_t count)
{
    if (b->err == TRP_OK) { /* the batch's own bounds are smaller */
        b->err = trpi_buffer_append(&b->journal->params[to], bytes, count, TRPI_BUFFER_NO_LIMIT);
    }
}

static void
batch_put_int4(batch *b, param to, uint32_t value)
{
    uint32_t ordered = htobe32(value);

    batch_put(b, to, &ordered, sizeof ordered);
}

/* One element of an array: its length, and its bytes. */
static void
batch_put_bytes(batch *b, param to, const void *bytes, size_t count)
{
    batch_put_int4(b, to, (uint32_t)count);
    if (count != 0) {
        batch_put(b, to, bytes, count);
    }
}

static void
batch_put_text(batch *b, param to, const char *text)
{
    batch_put_bytes(b, to, text, strlen(text));
}

static void
batch_put_number2(batch *b, param to, uint32_t value)
{
    uint16_t ordered = htobe16((uint16_t)value);

    batch_put_bytes(b, to, &ordered, sizeof ordered);
}

static void
batch_put_number4(batch *b, param to, uint32_t value)
{
    uint32_t ordered = htobe32(value);

    batch_put_bytes(b, to, &ordered, sizeof ordered);
}

static void
batch_put_number8(batch *b, param to, uint64_t value)
{
    uint64_t ordered = htobe64(value);

    batch_put_bytes(b, to, &ordered, sizeof ordered);
}

static uint32_t
number_kind(const trp_journal_op *op)
{
    return op->kind == TRP_JOURNAL_APPEND && op->restore ? TRPI_POSTGRES_RESTORE
                                                         : (uint32_t)op->kind;
}

static uint64_t
number_clamp(uint64_t number)
{
    return number > INT64_MAX ? INT64_MAX : number;
}

static uint64_t
number_of(const trp_journal_op *op)
{
    return op->kind == TRP_JOURNAL_DELETE          ? UINT64_MAX /* -1: journal-postgres-J4 */
           : op->kind == TRP_JOURNAL_APPEND        ? op->from
           : op->kind == TRP_JOURNAL_SNAPSHOT_SAVE ? op->events[0].number
                                                   : number_clamp(op->to);
}

static uint64_t
epoch_of(const trp_journal_op *op)
{
    return op->kind == TRP_JOURNAL_CLAIM && !op->restore ? 0 : number_clamp(op->epoch);
}

static void
batch_put_tags(batch *b, const trp_journal_event *event)
{
    uint8_t list[TRP_JOURNAL_TAGS_MAX * (TRP_JOURNAL_TAG_BYTES_MAX + 1)];
    size_t count = 0;

    for (uint32_t i = 0; i < event->tags_count; i++) {
        size_t bytes = strlen(event->tags[i]);
        list[count++] = (uint8_t)bytes;
        memcpy(list + count, event->tags[i], bytes);
        count += bytes;
        batch_put_bytes(b, TAGS, event->tags[i], bytes);
        batch_put_number4(b, TAG_EVENTS, b->events);
        b->tags++;
    }
    batch_put_bytes(b, TAG_LISTS, list, count);
}

static void
batch_put_op(batch *b, const trp_journal_op *op)
{
    uint32_t events = op->kind == TRP_JOURNAL_APPEND || op->kind == TRP_JOURNAL_SNAPSHOT_SAVE
                          ? op->events_count
                          : 0;

    b->ops++;
    batch_put_number2(b, KINDS, number_kind(op));
    batch_put_text(b, SCOPES, op->scope);
    batch_put_number8(b, EPOCHS, epoch_of(op));
    batch_put_text(b, IDS, op->kind == TRP_JOURNAL_CLAIM ? op->writer : op->id);
    batch_put_number8(b, NUMBERS, op->kind == TRP_JOURNAL_CLAIM ? 0 : number_of(op));
    batch_put_number4(b, COUNTS,
                      op->kind == TRP_JOURNAL_SNAPSHOT_DELETE
                          ? (op->keep > INT32_MAX ? INT32_MAX : op->keep)
                          : events);
    batch_put_number4(b, FIRSTS, b->events + 1);
    for (uint32_t i = 0; i < events; i++) {
        const trp_journal_event *event = &op->events[i];
        b->events++;
        batch_put_number4(b, EVENT_OPS, b->ops);
        batch_put_number8(b, TIMES, event->time_ms);
        batch_put_text(b, TYPES, event->type);
        batch_put_number4(b, VERSIONS, event->version);
        batch_put_tags(b, event);
        batch_put_bytes(b, DATAS, event->data, event->bytes);
        b->bytes += event->bytes;
    }
}

/* Begin each array with room for its head. */
static void
batch_begin(batch *b)
{
    static const uint8_t head[ARRAY_HEAD_BYTES];

    for (param i = 0; i < PARAMS; i++) {
        trpi_buffer_clear(&b->journal->params[i]);
        batch_put(b, i, head, sizeof head);
    }
}

static void
head_fill(trpi_buffer *array, Oid type, uint32_t count)
{
    uint32_t head[5] = { htobe32(1), 0, htobe32(type), htobe32(count), htobe32(1) };

    if (count == 0) { /* an empty array has no dimension */
        head[0] = 0;
        array->count = 12;
    }
    memcpy(array->data, head, array->count < sizeof head ? array->count : sizeof head);
}

/* Return whether op may join the batch: postgres-send-N1, -N2. */
static bool
batch_fits(const batch *b, const trp_journal_op *op)
{
    const trpi_pg_id *id = trpi_pg_id_of(op);
    uint64_t bytes = 0;

    if (!trpi_journal_op_is_change(op) ||
        (id != NULL && (id->reads != 0 || id->deletion != NULL))) {
        return false;
    }
    if (b->ops == 0) {
        return true;
    }
    for (uint32_t i = 0; i < op->events_count && op->events != NULL; i++) {
        bytes += op->events[i].bytes;
    }
    if (b->ops >= b->journal->options.batch_max || b->bytes + bytes > TRPI_PG_BATCH_BYTES) {
        return false;
    }
    return id == NULL || id->batch != b->journal->batch ||
           (op->kind != TRP_JOURNAL_DELETE && !op->restore);
}

static bool
batch_send(const batch *b, const trpi_pg_conn *conn)
{
    const char *values[PARAMS];
    int lengths[PARAMS];
    int formats[PARAMS];
    const trpi_libpq *pq = b->journal->pq;

    for (param i = 0; i < PARAMS; i++) {
        uint32_t count = i < EVENT_OPS ? b->ops : i < TAGS ? b->events : b->tags;
        head_fill(&b->journal->params[i], element_types[i], count);
        values[i] = (const char *)b->journal->params[i].data;
        lengths[i] = (int)b->journal->params[i].count;
        formats[i] = 1;
    }
    return pq->PQsendQueryParams(conn->conn, b->journal->statements[TRPI_POSTGRES_CHANGE], PARAMS,
                                 array_types, values, lengths, formats, 1) == 1;
}

bool
trpi_pg_send_batch(trpi_pg_conn *conn)
{
    trpi_pg_journal *journal = conn->journal;
    trpi_pg_queue *queue = &journal->changes;
    batch b = { journal, TRP_OK, 0, 0, 0, 0 };
    trpi_pg_flight *flight = NULL;

    if (queue->first == NULL || !batch_fits(&b, queue->first)) {
        return true;
    }
    flight = trpi_pg_conn_flight(conn, TRPI_PG_BATCH);
    journal->batch++;
    batch_begin(&b);
    while (b.err == TRP_OK && queue->first != NULL && batch_fits(&b, queue->first)) {
        trp_journal_op *op = trpi_pg_queue_pop(queue);
        trpi_pg_id *id = trpi_pg_id_of(op);
        if (id != NULL) {
            id->batch = journal->batch;
        }
        if (op->kind == TRP_JOURNAL_DELETE) {
            id->deletion = op;
        }
        batch_put_op(&b, op);
        trpi_pg_queue_push(&flight->ops, op);
        trpi_pg_aside_put(journal);
    }
    if (b.err != TRP_OK) { /* certainly nothing was sent */
        trp_journal_op *op = NULL;
        while ((op = trpi_pg_queue_pop(&flight->ops)) != NULL) {
            trpi_pg_finish(journal, op, TRP_JOURNAL_REFUSED, TRP_ENOMEM, "%s",
                           trp_strerror(TRP_ENOMEM));
        }
        conn->flights_count--;
        conn->batches--;
        return true;
    }
    if (b.bytes > TRPI_PG_BATCH_BYTES) { /* sent at once: libpq has copied it */
        bool is_sent = batch_send(&b, conn);
        trpi_buffer_fini(&journal->params[DATAS]);
        return is_sent;
    }
    return batch_send(&b, conn);
}

/* ---- prepared statements --------------------------------------------------------------------- */

static const char *const names[TRPI_POSTGRES_STATEMENTS] = {
    [TRPI_POSTGRES_EVENTS] = "troupe_events", [TRPI_POSTGRES_TAGGED] = "troupe_tagged",
    [TRPI_POSTGRES_ALL] = "troupe_all",       [TRPI_POSTGRES_SNAPSHOT] = "troupe_snapshot",
    [TRPI_POSTGRES_IDS] = "troupe_ids",       [TRPI_POSTGRES_SCOPES] = "troupe_scopes",
    [TRPI_POSTGRES_SLICE] = "troupe_slice",
};
static const Oid types[TRPI_POSTGRES_STATEMENTS][5] = {
    [TRPI_POSTGRES_EVENTS] = { OID_INT8, OID_INT8, OID_BYTEA, OID_INT8, OID_INT8 },
    [TRPI_POSTGRES_TAGGED] = { OID_INT8, OID_INT8, OID_BYTEA, OID_INT8, 0 },
    [TRPI_POSTGRES_ALL] = { OID_INT8, OID_INT8, OID_INT8, 0, 0 },
    [TRPI_POSTGRES_SNAPSHOT] = { OID_BYTEA, OID_INT8, 0, 0, 0 },
    [TRPI_POSTGRES_IDS] = { OID_INT8, OID_BYTEA, 0, 0, 0 },
    [TRPI_POSTGRES_SCOPES] = { OID_INT8, OID_BYTEA, 0, 0, 0 },
    [TRPI_POSTGRES_SLICE] = { OID_BYTEA_ARRAY, OID_INT8_ARRAY, OID_INT8, OID_INT8, 0 },
};

/* ---- slices of deletions --------------------------------------------------------------------- */

bool
trpi_pg_send_slice(trpi_pg_conn *conn)
{
    static const int formats[4] = { 1, 1, 1, 1 };
    trpi_pg_journal *journal = conn->journal;
    const trpi_buffer *ids = &journal->params[IDS], *ends = &journal->params[NUMBERS];
    trpi_pg_flight *flight = trpi_pg_conn_flight(conn, TRPI_PG_SLICE);
    batch b = { journal, TRP_OK, 0, 0, 0, 0 };
    trp_journal_op *op = NULL;

    batch_begin(&b);
    while (b.ops < TRPI_PG_SLICE_OPS && (op = trpi_pg_queue_pop(&journal->deletions)) != NULL) {
        batch_put_text(&b, IDS, op->id);
        batch_put_number8(&b, NUMBERS, trpi_pg_deletion_end(op));
        trpi_pg_queue_push(&flight->ops, op);
        b.ops++;
    }
    trpi_assert(b.ops != 0);
    if (b.err != TRP_OK) {
        while ((op = trpi_pg_queue_pop(&flight->ops)) != NULL) {
            trpi_pg_finish(journal, op, TRP_JOURNAL_FAILED, TRP_ENOMEM, "%s",
                           trp_strerror(TRP_ENOMEM));
        }
        conn->flights_count--;
        conn->slices--;
        return true;
    }
    head_fill(&journal->params[IDS], element_types[IDS], b.ops);
    head_fill(&journal->params[NUMBERS], element_types[NUMBERS], b.ops);
    uint64_t events = htobe64(TRPI_PG_SLICE_EVENTS / b.ops);
    uint64_t bytes = htobe64(TRPI_PG_SLICE_BYTES / b.ops);
    const char *values[4] = { (const char *)ids->data, (const char *)ends->data,
                              (const char *)&events, (const char *)&bytes };
    const int lengths[4] = { (int)ids->count, (int)ends->count, sizeof events, sizeof bytes };
    return journal->pq->PQsendQueryPrepared(conn->conn, names[TRPI_POSTGRES_SLICE], 4, values,
                                            lengths, formats, 1) == 1;
}

/* ---- reads ----------------------------------------------------------------------------------- */

/* Parameters of a read: at most five. */
typedef struct read_params {
    const char *values[5];
    int lengths[5];
    uint64_t numbers[5];
    int count;
} read_params;

static void
param_number(read_params *p, uint64_t number)
{
    p->numbers[p->count] = htobe64(number_clamp(number));
    p->values[p->count] = (const char *)&p->numbers[p->count];
    p->lengths[p->count] = sizeof p->numbers[0];
    p->count++;
}

static void
param_text(read_params *p, const char *text)
{
    p->values[p->count] = text != NULL ? text : "";
    p->lengths[p->count] = text != NULL ? (int)strlen(text) : 0;
    p->count++;
}

static trpi_postgres_statement
read_fill(const trp_journal_op *op, read_params *p)
{
    uint64_t to = op->to != 0 ? op->to : INT64_MAX;

    if (op->kind != TRP_JOURNAL_SNAPSHOT_LOAD) { /* one more, to see whether there are more */
        param_number(p, (uint64_t)trpi_journal_op_events_max(op) + 1);
    }
    switch (op->kind) {
    case TRP_JOURNAL_EVENTS:
        param_number(p, trpi_journal_op_bytes_max(op));
        param_text(p, op->id);
        param_number(p, op->from);
        param_number(p, to);
        return TRPI_POSTGRES_EVENTS;
    case TRP_JOURNAL_TAGGED:
        param_number(p, trpi_journal_op_bytes_max(op));
        if (op->tag != NULL) {
            param_text(p, op->tag);
        }
        param_number(p, op->from);
        return op->tag != NULL ? TRPI_POSTGRES_TAGGED : TRPI_POSTGRES_ALL;
    case TRP_JOURNAL_SNAPSHOT_LOAD:
        param_text(p, op->id);
        param_number(p, to);
        return TRPI_POSTGRES_SNAPSHOT;
    case TRP_JOURNAL_IDS:
        param_text(p, op->id);
        return TRPI_POSTGRES_IDS;
    default:
        trpi_assert(op->kind == TRP_JOURNAL_SCOPES);
        param_text(p, op->scope);
        return TRPI_POSTGRES_SCOPES;
    }
}

bool
trpi_pg_send_read(trpi_pg_conn *conn, trp_journal_op *op)
{
    read_params p = { .count = 0 };
    trpi_postgres_statement statement = read_fill(op, &p);
    trpi_pg_flight *flight = trpi_pg_conn_flight(conn, TRPI_PG_READ);
    static const int formats[5] = { 1, 1, 1, 1, 1 };

    trpi_pg_queue_push(&flight->ops, op);
    return conn->journal->pq->PQsendQueryPrepared(conn->conn, names[statement], p.count, p.values,
                                                  p.lengths, formats, 1) == 1;
}

bool
trpi_pg_send_setup(trpi_pg_conn *conn)
{
    const trpi_libpq *pq = conn->journal->pq;
    trpi_pg_flight *flight = trpi_pg_conn_flight(conn, TRPI_PG_SETUP);
    char lock_timeout[16];
    const char *values[1] = { lock_timeout };
    const char *fence[1] = { conn->journal->fence };

    flight->version = -1;
    (void)snprintf(lock_timeout, sizeof lock_timeout, "%u",
                   conn->journal->options.answer_timeout_ms / 2);
    if (pq->PQsendQueryParams(conn->conn, trpi_postgres_settings, 1, NULL, values, NULL, NULL, 1) !=
            1 ||
        pq->PQsendQueryParams(conn->conn, conn->journal->version_text, 0, NULL, NULL, NULL, NULL,
                              1) != 1) {
        return false;
    }
    if (conn == conn->journal->conns && /* postgres-conn-P4 */
        (pq->PQsendQueryParams(conn->conn, trpi_postgres_fence_end, 1, NULL, fence, NULL, NULL,
                               1) != 1 ||
         pq->PQsendQueryParams(conn->conn, trpi_postgres_fence_take, 1, NULL, fence, NULL, NULL,
                               1) != 1)) {
        return false;
    }
    for (uint32_t i = 0; i < TRPI_POSTGRES_STATEMENTS; i++) {
        int count = 0;
        while (count < 5 && types[i][count] != 0) {
            count++;
        }
        if (names[i] != NULL &&
            pq->PQsendPrepare(conn->conn, names[i], conn->journal->statements[i], count,
                              types[i]) != 1) {
            return false;
        }
    }
    return true;
}

#endif
