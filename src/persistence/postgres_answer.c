/* postgres_answer.c - results of statements as answers of operations.
 *
 * Must hold.
 *   postgres-answer-R1  A change is refused only when it is certain that nothing was stored: the
 *       procedure says so, or the error came before its commit. An order to end, or no memory, may
 *       come behind it: the change is failed.
 *   postgres-answer-R2  What a server sends is checked before it is used: a result of another form
 *       is a failure, never an assertion.
 * Tests. tests/system/postgres.sh
 */
#include "persistence/postgres.h"

#ifdef HAVE_POSTGRES

#include <endian.h>
#include <string.h>

#include "base/assert.h"
#include "persistence/journal_op.h"

int64_t
trpi_pg_int(const trpi_libpq *pq, const PGresult *result, int row, int column)
{
    const char *bytes = pq->PQgetvalue(result, row, column);
    int count = pq->PQgetlength(result, row, column);
    uint64_t value = 0;

    for (int i = 0; i < count && i < 8; i++) {
        value = value << 8 | (uint8_t)bytes[i];
    }
    return count == 4 ? (int64_t)(int32_t)(uint32_t)value : (int64_t)value;
}

/* ---- changes --------------------------------------------------------------------------------- */

/* An array of the answer, as it stands in the result. */
typedef struct array {
    const uint8_t *at;
    const uint8_t *end;
    uint32_t count;
} array;

static uint32_t
be32_read(const uint8_t *at)
{
    uint32_t value = 0;

    memcpy(&value, at, sizeof value);
    return be32toh(value);
}

static array
array_of(const trpi_libpq *pq, const PGresult *result, int column)
{
    const uint8_t *bytes = (const uint8_t *)pq->PQgetvalue(result, 0, column);
    int count = pq->PQgetlength(result, 0, column);
    array a = { bytes, bytes + count, 0 };

    if (count >= 20 && be32_read(bytes) == 1) {
        a.count = be32_read(bytes + 12);
        a.at += 20;
    }
    return a;
}

/* Take the next element; false: there is none. */
static bool
array_next(array *a, const uint8_t **ret_bytes, size_t *ret_count)
{
    size_t count = a->end - a->at >= 4 ? be32_read(a->at) : SIZE_MAX;

    if (a->end - a->at < 4 || count > (size_t)(a->end - a->at) - 4) {
        return false;
    }
    *ret_bytes = a->at + 4;
    *ret_count = count;
    a->at += 4 + count;
    return true;
}

static bool
array_next_number(array *a, uint64_t *ret_number)
{
    const uint8_t *bytes = NULL;
    size_t count = 0;

    *ret_number = 0;
    if (!array_next(a, &bytes, &count) || count > 8) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        *ret_number = *ret_number << 8 | bytes[i];
    }
    return true;
}

/* The answer of the server for one change. */
typedef struct verdict {
    uint64_t code, highest, epoch;
    char writer[TRP_JOURNAL_WRITER_BYTES_MAX + 1];
} verdict;

static void
change_done(trpi_pg_journal *journal, trp_journal_op *op, const verdict *of, uint64_t last)
{
    op->ret_epoch = op->kind == TRP_JOURNAL_CLAIM ? of->epoch : 0;
    op->ret_number = op->kind == TRP_JOURNAL_DELETE ? of->highest : 0;
    op->ret_count = op->kind == TRP_JOURNAL_SNAPSHOT_DELETE ? (uint32_t)of->highest : 0;
    if (op->kind == TRP_JOURNAL_DELETE && of->highest != 0) { /* journal-postgres-J4 */
        trpi_pg_queue_push(&journal->deletions, op);
        return;
    }
    if (op->kind == TRP_JOURNAL_APPEND) {
        op->ret_number = op->from + op->events_count - 1;
        op->ret_offset = op->events_count != 0 ? last : 0;
    }
    trpi_pg_finish(journal, op, TRP_JOURNAL_DONE, TRP_OK, NULL);
}

static void
change_answer(trpi_pg_journal *journal, trp_journal_op *op, const verdict *of, uint64_t last)
{
    switch (of->code) {
    case TRPI_POSTGRES_DONE:
        change_done(journal, op, of, last);
        break;
    case TRPI_POSTGRES_FENCED:
        trpi_pg_settle(journal, op, TRP_JOURNAL_REFUSED);
        trpi_journal_op_fenced(op, of->epoch, of->writer);
        break;
    default:
        trpi_pg_settle(journal, op, TRP_JOURNAL_REFUSED);
        trpi_journal_op_gap(op, of->highest);
        break;
    }
}

static void
batch_count(trpi_pg_journal *journal)
{
    pthread_mutex_lock(&journal->lock);
    journal->health.commits++;
    pthread_mutex_unlock(&journal->lock);
}

static void
batch_answer(trpi_pg_journal *journal, trpi_pg_flight *flight)
{
    const trpi_libpq *pq = journal->pq;
    bool is_formed = pq->PQntuples(flight->result) == 1 && pq->PQnfields(flight->result) == 5;
    array arrays[4] = { 0 };
    uint64_t place = is_formed ? (uint64_t)trpi_pg_int(pq, flight->result, 0, 4) : 0;
    trp_journal_op *op = NULL;

    for (int i = 0; is_formed && i < 4; i++) {
        arrays[i] = array_of(pq, flight->result, i);
        is_formed = arrays[i].count == flight->ops.count;
    }
    batch_count(journal);
    while ((op = trpi_pg_queue_pop(&flight->ops)) != NULL) {
        verdict of = { .code = 0 };
        const uint8_t *writer = NULL;
        size_t bytes = 0;
        if (op->kind == TRP_JOURNAL_APPEND || op->kind == TRP_JOURNAL_SNAPSHOT_SAVE) {
            place += op->events_count;
        }
        is_formed = is_formed && array_next_number(&arrays[0], &of.code) &&
                    array_next_number(&arrays[1], &of.highest) &&
                    array_next_number(&arrays[2], &of.epoch) &&
                    array_next(&arrays[3], &writer, &bytes) && bytes < sizeof of.writer;
        if (!is_formed) {
            trpi_pg_finish(journal, op, TRP_JOURNAL_FAILED, TRP_EPROTO,
                           "the database answered in a form that is not known: are the tables of "
                           "this version? (troupe journal init)");
            continue;
        }
        memcpy(of.writer, writer, bytes);
        change_answer(journal, op, &of, place - 1);
    }
}

uint64_t
trpi_pg_deletion_end(const trp_journal_op *op)
{
    return op->to != 0 && op->to < op->ret_number ? op->to : op->ret_number;
}

/* The row of a deletion has its place and the last number that is gone. */
static void
slice_answer(trpi_pg_journal *journal, trpi_pg_flight *flight)
{
    const trpi_libpq *pq = journal->pq;
    bool is_formed = pq->PQnfields(flight->result) == 3;
    int rows = is_formed ? pq->PQntuples(flight->result) : 0;
    trp_journal_op *op = NULL;

    batch_count(journal);
    for (int64_t place = 1; (op = trpi_pg_queue_pop(&flight->ops)) != NULL; place++) {
        uint64_t number = 0;
        for (int row = 0; row < rows; row++) {
            if (trpi_pg_int(pq, flight->result, row, 0) == place) {
                number = (uint64_t)trpi_pg_int(pq, flight->result, row, 1);
            }
        }
        if (!is_formed) {
            trpi_pg_finish(journal, op, TRP_JOURNAL_FAILED, TRP_EPROTO,
                           "the database answered in a form that is not known");
        } else if (number == 0 || number >= trpi_pg_deletion_end(op)) {
            trpi_pg_finish(journal, op, TRP_JOURNAL_DONE, TRP_OK, NULL);
        } else {
            trpi_pg_queue_push(&journal->deletions, op);
        }
    }
}

/* Return the error for a state of SQL, and whether it is certain that nothing was stored. */
static trp_err
error_of(const char *state, bool *ret_is_certain)
{
    *ret_is_certain = strncmp(state, "57", 2) != 0 && strcmp(state, "53200") != 0 &&
                      strncmp(state, "08", 2) != 0 && strncmp(state, "XX", 2) != 0 &&
                      state[0] != '\0';
    return strcmp(state, "53100") == 0 || strcmp(state, "25006") == 0 ||
                   strncmp(state, "55", 2) == 0 || strncmp(state, "40", 2) == 0 ||
                   strncmp(state, "53", 2) == 0
               ? TRP_EAGAIN
           : strncmp(state, "57", 2) == 0 || strncmp(state, "08", 2) == 0 ? TRP_ECONN
           : strncmp(state, "42", 2) == 0 || strncmp(state, "3F", 2) == 0 ? TRP_ECONFIG
                                                                          : TRP_EIO;
}

/* Return the advice behind the server's sentence. */
static const char *
advice_of(const char *state)
{
    return strcmp(state, "53100") == 0   ? ": its disk is full"
           : strcmp(state, "25006") == 0 ? ": it takes no changes now"
           : strcmp(state, "55P03") == 0 ? ": another writer has held the journal for too long"
           : strncmp(state, "42501", 5) == 0
               ? ": the user of the URL needs the rights of the user that made the tables"
           : strncmp(state, "42", 2) == 0 || strncmp(state, "3F", 2) == 0
               ? ": troupe journal init makes the tables"
               : "";
}

/* Answer all operations of a flight whose statement was an error. */
static void
error_answer(trpi_pg_journal *journal, trpi_pg_flight *flight)
{
    const trpi_libpq *pq = journal->pq;
    const char *state = pq->PQresultErrorField(flight->error, PG_DIAG_SQLSTATE);
    const char *said = pq->PQresultErrorField(flight->error, PG_DIAG_MESSAGE_PRIMARY);
    char text[512];
    bool is_certain = false;
    trp_err err = TRP_OK;
    trp_journal_op *op = NULL;

    state = state != NULL ? state : "";
    err = error_of(state, &is_certain);
    is_certain = is_certain || flight->kind == TRPI_PG_READ;  /* a read stores nothing */
    is_certain = is_certain && flight->kind != TRPI_PG_SLICE; /* others went before */
    trpi_pg_text_clean(journal, said != NULL ? said : "no reason is given", text, sizeof text);
    while ((op = trpi_pg_queue_pop(&flight->ops)) != NULL) {
        trpi_pg_finish(journal, op, is_certain ? TRP_JOURNAL_REFUSED : TRP_JOURNAL_FAILED, err,
                       "the database says %s (%s)%s", text, state, advice_of(state));
    }
}

/* ---- reads ----------------------------------------------------------------------------------- */

/* Columns of every read. */
enum {
    COLUMN_HIGHEST,
    COLUMN_ID,
    COLUMN_NUMBER,
    COLUMN_POSITION,
    COLUMN_TIME_MS,
    COLUMN_VERSION,
    COLUMN_TYPE,
    COLUMN_TAG_LIST,
    COLUMN_DATA,
    COLUMNS_COUNT
};

/* Copy a column to a text. */
static void
text_of(const trpi_libpq *pq, const PGresult *result, int row, int column, char *ret_text,
        size_t bytes)
{
    size_t count = (size_t)pq->PQgetlength(result, row, column);

    count = count < bytes ? count : bytes - 1;
    memcpy(ret_text, pq->PQgetvalue(result, row, column), count);
    ret_text[count] = '\0';
}

/* The texts of one item. */
typedef struct item_texts {
    char id[TRP_JOURNAL_ID_BYTES_MAX + 1];
    char type[TRP_JOURNAL_TYPE_BYTES_MAX + 1];
    char tags[TRP_JOURNAL_TAGS_MAX][TRP_JOURNAL_TAG_BYTES_MAX + 1];
    const char *tag_texts[TRP_JOURNAL_TAGS_MAX];
} item_texts;

static uint32_t
tags_of(const uint8_t *list, size_t bytes, item_texts *texts)
{
    uint32_t count = 0;

    for (size_t at = 0; at < bytes && count < TRP_JOURNAL_TAGS_MAX; at += (size_t)list[at] + 1) {
        size_t length = list[at];
        if (length > TRP_JOURNAL_TAG_BYTES_MAX || at + length >= bytes) {
            break;
        }
        memcpy(texts->tags[count], list + at + 1, length);
        texts->tags[count][length] = '\0';
        texts->tag_texts[count] = texts->tags[count];
        count++;
    }
    return count;
}

static void
item_of(const trpi_libpq *pq, const PGresult *result, int row, item_texts *texts,
        trp_journal_event *ret_item)
{
    text_of(pq, result, row, COLUMN_ID, texts->id, sizeof texts->id);
    text_of(pq, result, row, COLUMN_TYPE, texts->type, sizeof texts->type);
    *ret_item = (trp_journal_event){
        .id = texts->id,
        .number = (uint64_t)trpi_pg_int(pq, result, row, COLUMN_NUMBER),
        .offset = (uint64_t)trpi_pg_int(pq, result, row, COLUMN_POSITION),
        .time_ms = (uint64_t)trpi_pg_int(pq, result, row, COLUMN_TIME_MS),
        .version = (uint32_t)trpi_pg_int(pq, result, row, COLUMN_VERSION),
        .type = texts->type,
        .tags_count = tags_of((const uint8_t *)pq->PQgetvalue(result, row, COLUMN_TAG_LIST),
                              (size_t)pq->PQgetlength(result, row, COLUMN_TAG_LIST), texts),
        .tags = texts->tag_texts,
        .data = pq->PQgetvalue(result, row, COLUMN_DATA),
        .bytes = (size_t)pq->PQgetlength(result, row, COLUMN_DATA),
    };
    if (ret_item->tags_count == 0) {
        ret_item->tags = NULL;
    }
}

static void
read_answer(trpi_pg_journal *journal, trp_journal_op *op, const PGresult *result)
{
    const trpi_libpq *pq = journal->pq;
    int rows = pq->PQntuples(result);
    item_texts texts;
    trp_journal_event item;
    uint64_t bytes = 0;
    trp_err err = TRP_OK;

    if (pq->PQnfields(result) != COLUMNS_COUNT) {
        trpi_pg_finish(journal, op, TRP_JOURNAL_REFUSED, TRP_EPROTO,
                       "the database answered in a form that is not known");
        return;
    }
    op->ret_offset = op->kind == TRP_JOURNAL_TAGGED ? op->from : 0;
    if (rows > 0) {
        op->ret_number = (uint64_t)trpi_pg_int(pq, result, 0, COLUMN_HIGHEST);
    }
    for (int row = 0; err == TRP_OK && row < rows; row++) {
        if (pq->PQgetisnull(result, row, COLUMN_NUMBER)) {
            break; /* only the highest number */
        }
        item_of(pq, result, row, &texts, &item);
        err = trpi_journal_op_give(op, &item, &bytes);
        if (err == TRP_OK && op->kind == TRP_JOURNAL_TAGGED) {
            op->ret_offset = item.offset;
        }
    }
    if (err == TRP_OK || (err == TRP_ELIMIT && op->ret_more)) {
        trpi_pg_finish(journal, op, TRP_JOURNAL_DONE, TRP_OK, NULL);
    } else {
        trpi_pg_finish(journal, op, TRP_JOURNAL_REFUSED, err, "the reader has ended the read: %s",
                       trp_strerror(err));
    }
}

void
trpi_pg_answer(trpi_pg_conn *conn, trpi_pg_flight *flight)
{
    trp_journal_op *op = NULL;

    trpi_assert(flight->kind != TRPI_PG_SETUP);
    if (flight->error != NULL) {
        error_answer(conn->journal, flight);
    } else if (flight->result != NULL && flight->kind == TRPI_PG_BATCH) {
        batch_answer(conn->journal, flight);
    } else if (flight->result != NULL && flight->kind == TRPI_PG_SLICE) {
        slice_answer(conn->journal, flight);
    } else if (flight->result != NULL) {
        while ((op = trpi_pg_queue_pop(&flight->ops)) != NULL) {
            read_answer(conn->journal, op, flight->result);
        }
    }
    while ((op = trpi_pg_queue_pop(&flight->ops)) != NULL) {
        trpi_pg_finish(conn->journal, op, TRP_JOURNAL_FAILED, TRP_EPROTO,
                       "the database ended the statement without an answer");
    }
}

#endif
