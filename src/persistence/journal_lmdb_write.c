/* journal_lmdb_write.c - what changes an LMDB journal, each operation in the transaction of many.
 *
 * Must hold.
 *   journal-lmdb-L4  All that can be refused is refused before the first write of an operation, so
 *       that a refused one costs no other of its transaction.
 *   journal-lmdb-L5  Names in memory are in step with the transaction; one that is not committed
 *       makes us forget them all (trpi_lmdb_store_forget).
 * Cost.  Of an event: one row, one entry of the offsets (at their end: MDB_APPEND), one for a tag.
 * Tests. the conformance kit; tests/unit/persistence/journal_lmdb_test.c
 */
#include "persistence/journal_lmdb.h"

#ifdef HAVE_LMDB

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "persistence/journal_op.h"

#define PAGES_OF_AN_OPERATION 4u /* a leaf and branches that no other one has copied */
#define PAGES_OF_A_TRANSACTION 48u
#define INLINE_BYTES_MAX 2000u /* of a row within a page of 4 KiB */

int
trpi_lmdb_refuse(trp_journal_op *op, trp_err err, const char *why)
{
    trp_journal_op_finish(op, TRP_JOURNAL_REFUSED, err, "%s", why);
    return TRPI_LMDB_ANSWERED;
}

int
trpi_lmdb_done(trp_journal_op *op)
{
    trp_journal_op_finish(op, TRP_JOURNAL_DONE, TRP_OK, NULL);
    return 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

static trpi_lmdb_known *
known_find(const trpi_table *table, const char *name)
{
    return trpi_table_find(&trpi_lmdb_known_kind, table, NULL, trpi_hash_text(name), name);
}

/* Add a name that is not there. NULL: no memory. */
static trpi_lmdb_known *
known_add(trpi_table *table, const char *name)
{
    char *copy = trpi_strdup(name);
    trpi_lmdb_known *known = copy != NULL ? trpi_table_add(&trpi_lmdb_known_kind, table, NULL,
                                                           trpi_hash_text(name), name)
                                          : NULL;

    if (known == NULL) {
        trpi_free(copy);
        return NULL;
    }
    *known = (trpi_lmdb_known){ .name = copy };
    return known;
}

static MDB_val
text_val(const char *text)
{
    return (MDB_val){ strlen(text), (void *)(uintptr_t)text };
}

int
trpi_lmdb_last(MDB_txn *txn, MDB_dbi table, uint64_t first, uint64_t *ret_number)
{
    trpi_lmdb_key bytes = trpi_lmdb_key_of(first, UINT64_MAX);
    MDB_val key = { sizeof bytes, &bytes };
    MDB_val value;
    MDB_cursor *cursor = NULL;
    int code = mdb_cursor_open(txn, table, &cursor);

    *ret_number = 0;
    if (code != 0) {
        return code;
    }
    code = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
    code = code == MDB_NOTFOUND ? mdb_cursor_get(cursor, &key, &value, MDB_LAST)
           : code == 0          ? mdb_cursor_get(cursor, &key, &value, MDB_PREV)
                                : code;
    if (code == 0 && trpi_lmdb_u64_get(key.mv_data) == first) {
        *ret_number = trpi_lmdb_u64_get((const unsigned char *)key.mv_data + 8);
    }
    mdb_cursor_close(cursor);
    return code == MDB_NOTFOUND ? 0 : code;
}

int
trpi_lmdb_id_find(const trpi_lmdb_store *store, MDB_txn *txn, const char *id, uint64_t *ret_number,
                  uint64_t *ret_floor)
{
    MDB_val key = text_val(id);
    MDB_val value;
    int code = mdb_get(txn, store->ids, &key, &value);

    if (code == 0 && value.mv_size != 16) {
        return MDB_CORRUPTED;
    }
    if (code == 0) {
        *ret_number = trpi_lmdb_u64_get(value.mv_data);
        *ret_floor = trpi_lmdb_u64_get((const unsigned char *)value.mv_data + 8);
    }
    return code;
}

int
trpi_lmdb_id_known(trpi_lmdb_store *store, MDB_txn *txn, const char *name, trpi_lmdb_known **ret_id)
{
    uint64_t number = 0;
    uint64_t floor = 0;
    uint64_t last = 0;
    int code = 0;

    *ret_id = known_find(&store->known_ids, name);
    if (*ret_id != NULL) {
        return 0;
    }
    code = trpi_lmdb_id_find(store, txn, name, &number, &floor);
    code = code == 0 ? trpi_lmdb_last(txn, store->events, number, &last) : code;
    if (code != 0) {
        return code == MDB_NOTFOUND ? 0 : code;
    }
    *ret_id = known_add(&store->known_ids, name);
    if (*ret_id == NULL) {
        return ENOMEM;
    }
    (*ret_id)->number = number;
    (*ret_id)->floor = floor;
    (*ret_id)->highest = last > floor ? last : floor;
    return 0;
}

int
trpi_lmdb_id_write(const trpi_lmdb_store *store, MDB_txn *txn, trpi_lmdb_known *id, uint64_t floor)
{
    trpi_lmdb_key row = trpi_lmdb_key_of(id->number, floor);
    MDB_val key = text_val(id->name);
    MDB_val value = { sizeof row, &row };

    id->floor = floor;
    return mdb_put(txn, store->ids, &key, &value, 0);
}

/* Give a name the next number of its table: none is ever removed. */
static int
number_next(MDB_txn *txn, MDB_dbi table, uint64_t *ret_number)
{
    MDB_stat stat;
    int code = mdb_stat(txn, table, &stat);

    *ret_number = code == 0 ? stat.ms_entries + 1 : 0;
    return code;
}

/* Find an id, or begin it. */
static int
id_make(trpi_lmdb_store *store, MDB_txn *txn, const char *name, trpi_lmdb_known **ret_id)
{
    unsigned char number[8];
    MDB_val key = { sizeof number, number };
    MDB_val value = text_val(name);
    int code = trpi_lmdb_id_known(store, txn, name, ret_id);

    if (code != 0 || *ret_id != NULL) {
        return code;
    }
    *ret_id = known_add(&store->known_ids, name);
    if (*ret_id == NULL) {
        return ENOMEM;
    }
    code = number_next(txn, store->ids, &(*ret_id)->number);
    trpi_lmdb_u64_put(number, (*ret_id)->number);
    value.mv_size++; /* its NUL: readers give it as it is */
    code = code == 0 ? mdb_put(txn, store->names, &key, &value, MDB_APPEND) : code;
    return code == 0 ? trpi_lmdb_id_write(store, txn, *ret_id, 0) : code;
}

int
trpi_lmdb_tag_number(trpi_lmdb_store *store, MDB_txn *txn, const char *name, uint64_t *ret_number)
{
    trpi_lmdb_known *tag = known_find(&store->known_tags, name);
    unsigned char number[8];
    MDB_val key = text_val(name);
    MDB_val value = { 0, NULL };
    int code = 0;

    if (tag != NULL) {
        *ret_number = tag->number;
        return 0;
    }
    code = mdb_get(txn, store->tags, &key, &value);
    if (code == 0) {
        *ret_number = trpi_lmdb_u64_get(value.mv_data);
    } else if (code == MDB_NOTFOUND) {
        code = number_next(txn, store->tags, ret_number);
        trpi_lmdb_u64_put(number, *ret_number);
        value = (MDB_val){ sizeof number, number };
        code = code == 0 ? mdb_put(txn, store->tags, &key, &value, 0) : code;
    }
    tag = code == 0 ? known_add(&store->known_tags, name) : NULL;
    if (code == 0 && tag == NULL) {
        return ENOMEM;
    }
    if (tag != NULL) {
        tag->number = *ret_number;
    }
    return code;
}

/* ---- scopes ---------------------------------------------------------------------------------- */

/* Find a scope; *ret_scope NULL: nobody has claimed it. */
static int
scope_find(trpi_lmdb_store *store, MDB_txn *txn, const char *name, trpi_lmdb_known **ret_scope)
{
    MDB_val key = text_val(name);
    MDB_val value;
    int code = 0;

    *ret_scope = known_find(&store->known_scopes, name);
    if (*ret_scope != NULL) {
        return 0;
    }
    code = mdb_get(txn, store->scopes, &key, &value);
    if (code != 0) {
        return code == MDB_NOTFOUND ? 0 : code;
    }
    const char *row = value.mv_data;
    if (value.mv_size < 10 || row[value.mv_size - 1] != '\0') {
        return MDB_CORRUPTED;
    }
    char *writer = trpi_strdup(row + 8);
    *ret_scope = writer != NULL ? known_add(&store->known_scopes, name) : NULL;
    if (*ret_scope == NULL) {
        trpi_free(writer);
        return ENOMEM;
    }
    (*ret_scope)->writer = writer;
    (*ret_scope)->number = trpi_lmdb_u64_get(row);
    return 0;
}

static int
change_claim(trpi_lmdb_store *store, MDB_txn *txn, trp_journal_op *op)
{
    unsigned char row[8 + TRP_JOURNAL_WRITER_BYTES_MAX + 1];
    trpi_lmdb_known *scope = NULL;
    MDB_val key = text_val(op->scope);
    MDB_val value = { 8 + strlen(op->writer) + 1, row };
    char why[TRP_JOURNAL_WHY_BYTES];
    int code = scope_find(store, txn, op->scope, &scope);

    if (code != 0) {
        return code;
    }
    if (trpi_lmdb_room(store, PAGES_OF_AN_OPERATION, false, why, sizeof why) != TRP_OK) {
        return trpi_lmdb_refuse(op, TRP_EAGAIN, why);
    }
    if (scope == NULL) {
        scope = known_add(&store->known_scopes, op->scope);
    }
    char *writer = trpi_strdup(op->writer);
    if (scope == NULL || writer == NULL) {
        trpi_free(writer);
        return ENOMEM;
    }
    trpi_free(scope->writer);
    scope->writer = writer;
    scope->number = trpi_journal_op_claims(op, scope->number);
    trpi_lmdb_u64_put(row, scope->number);
    memcpy(row + 8, writer, strlen(writer) + 1);
    code = mdb_put(txn, store->scopes, &key, &value, 0);
    op->ret_epoch = scope->number;
    return code == 0 ? trpi_lmdb_done(op) : code;
}

int
trpi_lmdb_fence_check(trpi_lmdb_store *store, MDB_txn *txn, trp_journal_op *op)
{
    trpi_lmdb_known *scope = NULL;
    int code = scope_find(store, txn, op->scope, &scope);

    if (code != 0 || (scope != NULL && scope->number == op->epoch)) {
        return code;
    }
    trpi_journal_op_fenced(op, scope != NULL ? scope->number : 0,
                           scope != NULL ? scope->writer : "");
    return TRPI_LMDB_ANSWERED;
}

/* ---- events and snapshots -------------------------------------------------------------------- */

/* Return how many pages the rows may take, at worst: split pages are half full. */
static uint64_t
pages_of(const trpi_lmdb_store *store, const trp_journal_op *op)
{
    uint64_t in_page = 0;
    uint64_t pages = PAGES_OF_AN_OPERATION;

    for (uint32_t i = 0; i < op->events_count; i++) {
        size_t bytes = trpi_lmdb_row_bytes(&op->events[i]);
        if (bytes > INLINE_BYTES_MAX) {
            pages += (bytes + 16 + store->page_bytes - 1) / store->page_bytes;
            bytes = 8;
        }
        in_page += bytes + 24 + 64; /* its key, and the entry of its offset */
        in_page += op->events[i].tags_count * (uint64_t)64;
        pages += op->events[i].tags_count;
    }
    return pages + 2 * in_page / store->page_bytes;
}

static int
row_put(MDB_cursor *cursor, MDB_txn *txn, MDB_dbi table, trpi_lmdb_key at,
        const trp_journal_event *event, uint64_t number, uint64_t offset)
{
    MDB_val key = { sizeof at, &at };
    MDB_val row = { trpi_lmdb_row_bytes(event), NULL };
    int code = cursor != NULL ? mdb_cursor_put(cursor, &key, &row, MDB_RESERVE)
                              : mdb_put(txn, table, &key, &row, MDB_RESERVE);

    if (code == 0) {
        trpi_lmdb_row_write(row.mv_data, event, number, offset);
    }
    return code;
}

/* Enter an event's offset, for itself and for each of its tags. */
static int
offset_put(trpi_lmdb_store *store, MDB_txn *txn, const trp_journal_event *event, trpi_lmdb_key at)
{
    unsigned char offset[8];
    MDB_val key = { sizeof offset, offset };
    MDB_val value = { sizeof at, &at };
    int code = 0;

    trpi_lmdb_u64_put(offset, store->offset);
    code = mdb_put(txn, store->offsets, &key, &value, MDB_APPEND);
    for (uint32_t i = 0; code == 0 && i < event->tags_count; i++) {
        uint64_t tag = 0;
        code = trpi_lmdb_tag_number(store, txn, event->tags[i], &tag);
        trpi_lmdb_key entry = trpi_lmdb_key_of(tag, store->offset);
        MDB_val tag_key = { sizeof entry, &entry };
        code = code == 0 ? mdb_put(txn, store->tagged, &tag_key, &value, 0) : code;
    }
    return code;
}

/* Check that the group follows the last event; a backup, that there is none. */
static int
number_check(const trpi_lmdb_store *store, MDB_txn *txn, trp_journal_op *op,
             const trpi_lmdb_known *id)
{
    uint64_t highest = id != NULL ? id->highest : 0;
    uint64_t last = 0;
    bool is_next = op->from == highest + 1;

    if (op->restore) {
        int code = id != NULL ? trpi_lmdb_last(txn, store->events, id->number, &last) : 0;
        if (code != 0) {
            return code;
        }
        is_next = last == 0 && op->from > highest;
    }
    if (!is_next) {
        trpi_journal_op_gap(op, highest);
        return TRPI_LMDB_ANSWERED;
    }
    return 0;
}

static int
change_append(trpi_lmdb_store *store, MDB_txn *txn, trp_journal_op *op)
{
    trpi_lmdb_known *id = NULL;
    char why[TRP_JOURNAL_WHY_BYTES];
    int code = trpi_lmdb_fence_check(store, txn, op);

    code = code == 0 ? trpi_lmdb_id_known(store, txn, op->id, &id) : code;
    code = code == 0 ? number_check(store, txn, op, id) : code;
    if (code == 0 && trpi_lmdb_room(store, pages_of(store, op), true, why, sizeof why) != TRP_OK) {
        code = trpi_lmdb_refuse(op, TRP_EAGAIN, why);
    }
    code = code == 0 && id == NULL ? id_make(store, txn, op->id, &id) : code;
    if (code != 0) {
        return code;
    }
    uint64_t number = id->number;
    for (uint32_t i = 0; code == 0 && i < op->events_count; i++) {
        trpi_lmdb_key at = trpi_lmdb_key_of(number, op->from + i);
        store->offset++;
        code = row_put(NULL, txn, store->events, at, &op->events[i], op->from + i, store->offset);
        code = code == 0 ? offset_put(store, txn, &op->events[i], at) : code;
    }
    id->highest = op->from + op->events_count - 1;
    if (code == 0 && op->events_count == 0) {
        code = trpi_lmdb_id_write(store, txn, id, id->highest);
    }
    op->ret_number = id->highest;
    op->ret_offset = store->offset;
    return code == 0 ? trpi_lmdb_done(op) : code;
}

static int
change_snapshot(trpi_lmdb_store *store, MDB_txn *txn, trp_journal_op *op)
{
    trpi_lmdb_known *id = NULL;
    char why[TRP_JOURNAL_WHY_BYTES];
    int code = trpi_lmdb_fence_check(store, txn, op);

    if (code == 0 && trpi_lmdb_room(store, pages_of(store, op), true, why, sizeof why) != TRP_OK) {
        code = trpi_lmdb_refuse(op, TRP_EAGAIN, why);
    }
    code = code == 0 ? id_make(store, txn, op->id, &id) : code;
    if (code != 0) {
        return code;
    }
    const trp_journal_event *snapshot = &op->events[0];
    code = row_put(NULL, txn, store->snapshots, trpi_lmdb_key_of(id->number, snapshot->number),
                   snapshot, snapshot->number, 0);
    return code == 0 ? trpi_lmdb_done(op) : code;
}

/* ---- one of them ----------------------------------------------------------------------------- */

int
trpi_lmdb_change(trpi_lmdb_store *store, MDB_txn *txn, trp_journal_op *op)
{
    int code = EINVAL;

    switch (op->kind) {
    case TRP_JOURNAL_CLAIM:
        code = change_claim(store, txn, op);
        break;
    case TRP_JOURNAL_APPEND:
        code = change_append(store, txn, op);
        break;
    case TRP_JOURNAL_DELETE:
        code = trpi_lmdb_delete(store, txn, op, false);
        break;
    case TRP_JOURNAL_SNAPSHOT_SAVE:
        code = change_snapshot(store, txn, op);
        break;
    case TRP_JOURNAL_SNAPSHOT_DELETE:
        code = trpi_lmdb_snapshot_delete(store, txn, op);
        break;
    case TRP_JOURNAL_EVENTS:
    case TRP_JOURNAL_TAGGED:
    case TRP_JOURNAL_SNAPSHOT_LOAD:
    case TRP_JOURNAL_IDS:
    case TRP_JOURNAL_SCOPES:
        break;
    }
    return code == TRPI_LMDB_ANSWERED ? 0 : code;
}

#endif
