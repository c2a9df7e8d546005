/* journal_lmdb_read.c - reads of an LMDB journal, each on one snapshot of it.
 *
 * Must hold.
 *   journal-lmdb-L7  Items are borrowed from the map: nothing is copied. A damaged row ends the
 *       read with an error that names it.
 * Cost.  A step of a cursor and a checksum for each event.
 * Tests. the conformance kit; tests/unit/persistence/journal_lmdb_test.c
 */
#include "persistence/journal_lmdb.h"

#ifdef HAVE_LMDB

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "persistence/journal_op.h"

/* One read. */
typedef struct reading {
    const trpi_lmdb_store *store;
    MDB_txn *txn;
    MDB_cursor *cursor;
    trp_journal_op *op;
    uint64_t bytes; /* of the data that was given */
    int code;       /* of LMDB; 0 and MDB_NOTFOUND: fine */
    trp_err err;    /* of give */
    uint64_t named; /* number whose id is in name; 0: none */
    const char *name;
    const char *id;  /* of a row that is damaged */
    uint64_t number; /* of it; 0: none */
} reading;

static uint64_t
second_of(const void *key)
{
    return trpi_lmdb_u64_get((const unsigned char *)key + 8);
}

/* Give the event of a row. False: the read is over. */
static bool
row_give(reading *r, const char *id, uint64_t number, const MDB_val *row)
{
    const char *tags[TRP_JOURNAL_TAGS_MAX];
    trp_journal_event event;

    if (!trpi_lmdb_row_read(row, number, tags, &event)) {
        r->code = MDB_CORRUPTED;
        r->id = id;
        r->number = number;
        return false;
    }
    event.id = id;
    r->err = trpi_journal_op_give(r->op, &event, &r->bytes);
    return r->err == TRP_OK;
}

/* Answer what the read has come to. */
static void
read_end(reading *r)
{
    trp_journal_op *op = r->op;

    if (r->cursor != NULL) {
        mdb_cursor_close(r->cursor);
    }
    if (r->code == MDB_CORRUPTED && r->number != 0) {
        trp_journal_op_finish(op, TRP_JOURNAL_REFUSED, TRP_EDATA,
                              "%s %" PRIu64 " of \"%s\" in journal %s is damaged: its checksum is "
                              "wrong",
                              op->kind == TRP_JOURNAL_SNAPSHOT_LOAD ? "snapshot" : "event",
                              r->number, r->id, r->store->directory);
    } else if (r->code != 0 && r->code != MDB_NOTFOUND) {
        trp_err err = trpi_lmdb_err(r->code);
        trp_journal_op_finish(op, TRP_JOURNAL_REFUSED, err == TRP_EAGAIN ? TRP_EIO : err,
                              "journal %s cannot be read: %s", r->store->directory,
                              mdb_strerror(r->code));
    } else if (r->err == TRP_OK || (r->err == TRP_ELIMIT && op->ret_more)) {
        trp_journal_op_finish(op, TRP_JOURNAL_DONE, TRP_OK, NULL);
    } else {
        trp_journal_op_finish(op, TRP_JOURNAL_REFUSED, r->err, "the reader has ended the read: %s",
                              trp_strerror(r->err));
    }
}

/* Fill what EVENTS and SNAPSHOT_LOAD begin with. False: the id is not known, or an error. */
static bool
id_begin(reading *r, uint64_t *ret_number)
{
    uint64_t floor = 0;
    uint64_t last = 0;

    r->code = trpi_lmdb_id_find(r->store, r->txn, r->op->id, ret_number, &floor);
    if (r->code == 0) {
        r->code = trpi_lmdb_last(r->txn, r->store->events, *ret_number, &last);
    }
    r->op->ret_number = last > floor ? last : floor;
    return r->code == 0;
}

static void
read_events(reading *r)
{
    const trp_journal_op *op = r->op;
    uint64_t id = 0;
    MDB_val row;

    if (!id_begin(r, &id)) {
        return;
    }
    trpi_lmdb_key first = trpi_lmdb_key_of(id, op->from);
    MDB_val key = { sizeof first, &first };
    r->code = mdb_cursor_open(r->txn, r->store->events, &r->cursor);
    r->code = r->code == 0 ? mdb_cursor_get(r->cursor, &key, &row, MDB_SET_RANGE) : r->code;
    while (r->code == 0 && trpi_lmdb_u64_get(key.mv_data) == id) {
        uint64_t number = second_of(key.mv_data);
        if ((op->to != 0 && number > op->to) || !row_give(r, op->id, number, &row)) {
            break;
        }
        r->code = mdb_cursor_get(r->cursor, &key, &row, MDB_NEXT);
    }
}

/* Return the id of a number. NULL: it has none, which is damage. */
static const char *
name_of(reading *r, uint64_t number)
{
    unsigned char bytes[8];
    MDB_val key = { sizeof bytes, bytes };
    MDB_val value;

    if (r->named != number) {
        trpi_lmdb_u64_put(bytes, number);
        r->code = mdb_get(r->txn, r->store->names, &key, &value);
        const char *name = r->code == 0 ? value.mv_data : NULL;
        if (name == NULL || value.mv_size == 0 || name[value.mv_size - 1] != '\0') {
            r->code = MDB_CORRUPTED;
            return NULL;
        }
        r->name = name;
        r->named = number;
    }
    return r->name;
}

/* Give the event that an entry of the offsets leads to. False: the read is over. */
static bool
entry_give(reading *r, const MDB_val *entry)
{
    MDB_val key = *entry;
    MDB_val row;
    const char *id = NULL;

    r->code = entry->mv_size != TRPI_LMDB_KEY_BYTES ? MDB_CORRUPTED
                                                    : mdb_get(r->txn, r->store->events, &key, &row);
    if (r->code == MDB_NOTFOUND) { /* of a damaged row that was deleted */
        r->code = 0;
        return true;
    }
    id = r->code == 0 ? name_of(r, trpi_lmdb_u64_get(entry->mv_data)) : NULL;
    return id != NULL && row_give(r, id, second_of(entry->mv_data), &row);
}

/* Read the last offset of this snapshot: a read that has come to the end goes on behind it. */
static uint64_t
offset_last(reading *r)
{
    MDB_cursor *cursor = NULL;
    MDB_val key = { 6, "offset" };
    MDB_val value;
    uint64_t noted = 0;

    if (mdb_get(r->txn, r->store->meta, &key, &value) == 0 && value.mv_size == 8) {
        noted = trpi_lmdb_u64_get(value.mv_data);
    }
    if (mdb_cursor_open(r->txn, r->store->offsets, &cursor) == 0) {
        if (mdb_cursor_get(cursor, &key, &value, MDB_LAST) == 0 &&
            trpi_lmdb_u64_get(key.mv_data) > noted) {
            noted = trpi_lmdb_u64_get(key.mv_data);
        }
        mdb_cursor_close(cursor);
    }
    return noted;
}

/* Walk over the entries of a tag, or of all events (tag 0). */
static void
entries_walk(reading *r, MDB_dbi table, uint64_t tag)
{
    trp_journal_op *op = r->op;
    trpi_lmdb_key first =
        tag != 0 ? trpi_lmdb_key_of(tag, op->from + 1) : trpi_lmdb_key_of(op->from + 1, 0);
    MDB_val key = { tag != 0 ? sizeof first : 8, &first };
    MDB_val entry;

    r->code = mdb_cursor_open(r->txn, table, &r->cursor);
    r->code = r->code == 0 ? mdb_cursor_get(r->cursor, &key, &entry, MDB_SET_RANGE) : r->code;
    while (r->code == 0 && (tag == 0 || trpi_lmdb_u64_get(key.mv_data) == tag)) {
        uint64_t offset = tag != 0 ? second_of(key.mv_data) : trpi_lmdb_u64_get(key.mv_data);
        if (!entry_give(r, &entry)) {
            return;
        }
        op->ret_offset = offset;
        r->code = mdb_cursor_get(r->cursor, &key, &entry, MDB_NEXT);
    }
}

static void
read_tagged(reading *r)
{
    trp_journal_op *op = r->op;
    uint64_t last = offset_last(r);

    op->ret_offset = op->from;
    if (op->from == UINT64_MAX) {
        return;
    }
    if (op->tag == NULL) {
        entries_walk(r, r->store->offsets, 0);
    } else {
        MDB_val key = { strlen(op->tag), (void *)(uintptr_t)op->tag };
        MDB_val value;
        r->code = mdb_get(r->txn, r->store->tags, &key, &value);
        if (r->code == 0) {
            entries_walk(r, r->store->tagged, trpi_lmdb_u64_get(value.mv_data));
        }
    }
    if ((r->code == 0 || r->code == MDB_NOTFOUND) && r->err == TRP_OK && last > op->ret_offset) {
        op->ret_offset = last;
    }
}

static void
read_snapshot(reading *r)
{
    const trp_journal_op *op = r->op;
    uint64_t id = 0;
    MDB_val row;

    if (!id_begin(r, &id)) {
        return;
    }
    trpi_lmdb_key last = trpi_lmdb_key_of(id, op->to != 0 ? op->to : UINT64_MAX);
    MDB_val key = { sizeof last, &last };
    r->code = mdb_cursor_open(r->txn, r->store->snapshots, &r->cursor);
    r->code = r->code == 0 ? mdb_cursor_get(r->cursor, &key, &row, MDB_SET_RANGE) : r->code;
    if (r->code == MDB_NOTFOUND) {
        r->code = mdb_cursor_get(r->cursor, &key, &row, MDB_LAST);
    } else if (r->code == 0 && memcmp(key.mv_data, &last, sizeof last) != 0) {
        r->code = mdb_cursor_get(r->cursor, &key, &row, MDB_PREV);
    }
    if (r->code == 0 && trpi_lmdb_u64_get(key.mv_data) == id) {
        (void)row_give(r, op->id, second_of(key.mv_data), &row);
    }
}

/* Copy a name of a table, which has no NUL. */
static const char *
key_text(const MDB_val *key, char *room, size_t room_bytes)
{
    size_t bytes = key->mv_size < room_bytes ? key->mv_size : room_bytes - 1;

    memcpy(room, key->mv_data, bytes);
    room[bytes] = '\0';
    return room;
}

/* Give an id or a scope. False: the read is over. */
static bool
name_give(reading *r, const MDB_val *key, const MDB_val *value, const char *name)
{
    trp_journal_event item = { .id = name, .type = "" };
    uint64_t last = 0;
    (void)key;

    if (r->op->kind == TRP_JOURNAL_SCOPES) {
        if (value->mv_size < 10) {
            r->code = MDB_CORRUPTED;
            return false;
        }
        item.number = trpi_lmdb_u64_get(value->mv_data);
        item.type = (const char *)value->mv_data + 8;
    } else {
        if (value->mv_size != 16) {
            r->code = MDB_CORRUPTED;
            return false;
        }
        r->code =
            trpi_lmdb_last(r->txn, r->store->events, trpi_lmdb_u64_get(value->mv_data), &last);
        item.number = second_of(value->mv_data);
        item.number = last > item.number ? last : item.number;
    }
    r->err = r->code == 0 ? trpi_journal_op_give(r->op, &item, &r->bytes) : TRP_OK;
    return r->code == 0 && r->err == TRP_OK;
}

static void
read_names(reading *r)
{
    bool is_ids = r->op->kind == TRP_JOURNAL_IDS;
    const char *after = is_ids ? r->op->id : r->op->scope;
    char name[TRP_JOURNAL_ID_BYTES_MAX + 1];
    MDB_val key = { after != NULL ? strlen(after) : 0, (void *)(uintptr_t)after };
    MDB_val value;

    r->code = mdb_cursor_open(r->txn, is_ids ? r->store->ids : r->store->scopes, &r->cursor);
    if (r->code == 0) {
        r->code =
            mdb_cursor_get(r->cursor, &key, &value, after != NULL ? MDB_SET_RANGE : MDB_FIRST);
    }
    if (r->code == 0 && after != NULL && strcmp(key_text(&key, name, sizeof name), after) == 0) {
        r->code = mdb_cursor_get(r->cursor, &key, &value, MDB_NEXT);
    }
    while (r->code == 0 && name_give(r, &key, &value, key_text(&key, name, sizeof name))) {
        r->code = mdb_cursor_get(r->cursor, &key, &value, MDB_NEXT);
    }
}

void
trpi_lmdb_read(const trpi_lmdb_store *store, MDB_txn *txn, trp_journal_op *op)
{
    reading r = { .store = store, .txn = txn, .op = op };

    op->ret_count = 0;
    op->ret_more = 0;
    switch (op->kind) {
    case TRP_JOURNAL_EVENTS:
        read_events(&r);
        break;
    case TRP_JOURNAL_TAGGED:
        read_tagged(&r);
        break;
    case TRP_JOURNAL_SNAPSHOT_LOAD:
        read_snapshot(&r);
        break;
    case TRP_JOURNAL_IDS:
    case TRP_JOURNAL_SCOPES:
        read_names(&r);
        break;
    case TRP_JOURNAL_CLAIM:
    case TRP_JOURNAL_APPEND:
    case TRP_JOURNAL_DELETE:
    case TRP_JOURNAL_SNAPSHOT_SAVE:
    case TRP_JOURNAL_SNAPSHOT_DELETE:
        trpi_assert(false);
        break;
    }
    read_end(&r);
}

#endif
