/* journal_lmdb_delete.c - what takes events and snapshots out of an LMDB journal.
 *
 * Why.   An id may have millions of events. One transaction for all of them would hold up what all
 *        others write, and note each page that it frees. A slice is a transaction.
 * Must hold.
 *   journal-lmdb-L6  Offsets grow: the last one is noted before its event is deleted.
 *   journal-lmdb-L9  The first slice compares the epoch and notes the highest number. Slices go
 *       from the first event on, so a crash between them leaves what a deletion up to a lower
 *       number leaves; a claim between them does not take back what was allowed.
 * Limits. TRPI_LMDB_DELETE_EVENTS_MAX events of one slice; it ends behind the event that exceeds
 *        TRPI_LMDB_DELETE_BYTES_MAX.
 * Tests. tests/unit/persistence/journal_lmdb_test.c, tests/unit/persistence/power_loss_test.c
 */
#include "persistence/journal_lmdb.h"

#ifdef HAVE_LMDB

#include <errno.h>

/* Delete the entries of an event's offset. */
static int
offset_delete(trpi_lmdb_store *store, MDB_txn *txn, const trp_journal_event *event)
{
    unsigned char offset[8];
    MDB_val key = { sizeof offset, offset };
    MDB_val name = { 6, "offset" };
    int code = 0;

    trpi_lmdb_u64_put(offset, event->offset);
    if (event->offset == store->offset) { /* journal-lmdb-L6 */
        MDB_val value = { sizeof offset, offset };
        code = mdb_put(txn, store->meta, &name, &value, 0);
    }
    code = code == 0 ? mdb_del(txn, store->offsets, &key, NULL) : code;
    for (uint32_t i = 0; code == 0 && i < event->tags_count; i++) {
        uint64_t tag = 0;
        code = trpi_lmdb_tag_number(store, txn, event->tags[i], &tag);
        trpi_lmdb_key entry = trpi_lmdb_key_of(tag, event->offset);
        MDB_val tag_key = { sizeof entry, &entry };
        code = code == 0 ? mdb_del(txn, store->tagged, &tag_key, NULL) : code;
    }
    return code == MDB_NOTFOUND ? MDB_CORRUPTED : code;
}

/* Delete the first events of an id, a slice of them. EAGAIN: there are more. */
static int
events_delete(trpi_lmdb_store *store, MDB_txn *txn, uint64_t id, uint64_t to)
{
    const char *tags[TRP_JOURNAL_TAGS_MAX];
    trpi_lmdb_key first = trpi_lmdb_key_of(id, 0);
    MDB_val key = { sizeof first, &first };
    MDB_val row;
    MDB_cursor *cursor = NULL;
    uint32_t count = 0;
    uint64_t bytes = 0;
    int code = mdb_cursor_open(txn, store->events, &cursor);

    if (code != 0) {
        return code;
    }
    code = mdb_cursor_get(cursor, &key, &row, MDB_SET_RANGE);
    while (code == 0 && trpi_lmdb_u64_get(key.mv_data) == id) {
        uint64_t number = trpi_lmdb_u64_get((const unsigned char *)key.mv_data + 8);
        trp_journal_event event;
        if (to != 0 && number > to) {
            break;
        }
        if (count++ == TRPI_LMDB_DELETE_EVENTS_MAX || bytes > TRPI_LMDB_DELETE_BYTES_MAX) {
            code = EAGAIN;
            break;
        }
        bytes += row.mv_size;
        /* One that is damaged leaves entries that lead nowhere: readers pass them. */
        if (trpi_lmdb_row_read(&row, number, tags, &event)) {
            code = offset_delete(store, txn, &event);
        }
        code = code == 0 ? mdb_cursor_del(cursor, 0) : code;
        code = code == 0 ? mdb_cursor_get(cursor, &key, &row, MDB_NEXT) : code;
    }
    mdb_cursor_close(cursor);
    return code == MDB_NOTFOUND ? 0 : code;
}

int
trpi_lmdb_delete(trpi_lmdb_store *store, MDB_txn *txn, trp_journal_op *op, bool is_begun)
{
    trpi_lmdb_known *id = NULL;
    char why[TRP_JOURNAL_WHY_BYTES];
    int code = is_begun ? 0 : trpi_lmdb_fence_check(store, txn, op); /* journal-lmdb-L9 */

    code = code == 0 ? trpi_lmdb_id_known(store, txn, op->id, &id) : code;
    if (code == 0 && id == NULL) {
        return trpi_lmdb_done(op);
    }
    if (code == 0 && trpi_lmdb_room(store, 16, false, why, sizeof why) != TRP_OK) {
        return is_begun ? ENOSPC : trpi_lmdb_refuse(op, TRP_EAGAIN, why);
    }
    if (code == 0 && id->floor != id->highest) {
        code = trpi_lmdb_id_write(store, txn, id, id->highest);
    }
    code = code == 0 ? events_delete(store, txn, id->number, op->to) : code;
    if (code == 0) {
        op->ret_number = id->highest;
        return trpi_lmdb_done(op);
    }
    return code;
}

/* Count the snapshots of an id. */
static int
snapshots_count(MDB_cursor *cursor, uint64_t id, uint32_t *ret_count)
{
    trpi_lmdb_key first = trpi_lmdb_key_of(id, 0);
    MDB_val key = { sizeof first, &first };
    MDB_val row;
    int code = mdb_cursor_get(cursor, &key, &row, MDB_SET_RANGE);

    for (*ret_count = 0; code == 0 && trpi_lmdb_u64_get(key.mv_data) == id; ++*ret_count) {
        code = mdb_cursor_get(cursor, &key, &row, MDB_NEXT);
    }
    return code == MDB_NOTFOUND ? 0 : code;
}

static int
snapshots_delete(MDB_cursor *cursor, trp_journal_op *op, uint64_t id)
{
    trpi_lmdb_key first = trpi_lmdb_key_of(id, 0);
    MDB_val key = { sizeof first, &first };
    MDB_val row;
    uint32_t count = 0;
    int code = snapshots_count(cursor, id, &count);

    for (; code == 0 && count > op->keep; count--) {
        key = (MDB_val){ sizeof first, &first };
        code = mdb_cursor_get(cursor, &key, &row, MDB_SET_RANGE);
        if (code != 0 ||
            (op->to != 0 && trpi_lmdb_u64_get((unsigned char *)key.mv_data + 8) > op->to)) {
            break;
        }
        code = mdb_cursor_del(cursor, 0);
        op->ret_count++;
    }
    return code;
}

int
trpi_lmdb_snapshot_delete(trpi_lmdb_store *store, MDB_txn *txn, trp_journal_op *op)
{
    trpi_lmdb_known *id = NULL;
    MDB_cursor *cursor = NULL;
    char why[TRP_JOURNAL_WHY_BYTES];
    int code = trpi_lmdb_fence_check(store, txn, op);

    code = code == 0 ? trpi_lmdb_id_known(store, txn, op->id, &id) : code;
    if (code == 0 && id == NULL) {
        return trpi_lmdb_done(op);
    }
    if (code == 0 && trpi_lmdb_room(store, 16, false, why, sizeof why) != TRP_OK) {
        code = trpi_lmdb_refuse(op, TRP_EAGAIN, why);
    }
    code = code == 0 ? mdb_cursor_open(txn, store->snapshots, &cursor) : code;
    if (code != 0) {
        return code;
    }
    op->ret_count = 0;
    code = snapshots_delete(cursor, op, id->number);
    mdb_cursor_close(cursor);
    return code == 0 ? trpi_lmdb_done(op) : code;
}

#endif
