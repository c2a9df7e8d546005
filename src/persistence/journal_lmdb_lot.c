/* journal_lmdb_lot.c - the thread that writes an LMDB journal: lots of changes, and slices of
 * deletions.
 *
 * Must hold. The invariants of journal_lmdb.c.
 * Tests. tests/unit/persistence/journal_lmdb_test.c, tests/unit/persistence/power_loss_test.c
 */
#include "persistence/journal_lmdb_lots.h"

#ifdef HAVE_LMDB

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/mutex.h"
#include "base/sized.h"
#include "persistence/journal_op.h"
#include "sched/sched.h"

static uint64_t
op_bytes(const trp_journal_op *op)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < op->events_count; i++) {
        bytes += op->events[i].bytes;
    }
    return bytes;
}

/* Find a waiting read of the id that a change is about, submitted before it; *ret_before is the
 * one in front of it. Under the lock. */
static trp_journal_op *
read_in_the_way(trpi_lmdb_journal *journal, const trp_journal_op *change,
                trp_journal_op **ret_before)
{
    trp_journal_op *before = NULL;

    if (change->id == NULL ||
        journal->reads_of[trpi_lmdb_hash(change) % TRPI_LMDB_READ_PLACES] == 0) {
        return NULL;
    }
    for (trp_journal_op *op = journal->reads.first; op != NULL;
         before = op, op = trpi_lmdb_next(op)) {
        if (trpi_lmdb_names_id(op) && trpi_lmdb_ticket(op) < trpi_lmdb_ticket(change) &&
            strcmp(op->id, change->id) == 0) {
            *ret_before = before;
            return op;
        }
    }
    return NULL;
}

/* ---- changes --------------------------------------------------------------------------------- */

/* Note that there was no room for a change, or that there is again. */
static void
room_note(trp_journal_health *figures, const trp_journal_op *op)
{
    bool grows = op->kind == TRP_JOURNAL_APPEND || op->kind == TRP_JOURNAL_SNAPSHOT_SAVE;
    if (op->outcome == TRP_JOURNAL_REFUSED && op->err == TRP_EAGAIN) {
        (void)snprintf(figures->why, sizeof figures->why, "%s", op->why);
    } else if (op->outcome == TRP_JOURNAL_DONE && grows) {
        figures->why[0] = '\0';
    }
}

/* Answer count operations of the lot, from first on, and wake those who wait for it. is_aside: they
 * have passed before. */
static void
lot_answer(trpi_lmdb_journal *journal, uint32_t first, uint32_t count, bool is_commit,
           bool is_aside)
{
    trp_journal_health *figures = &journal->figures;

    pthread_mutex_lock(&journal->lock);
    figures->commits += is_commit;
    for (uint32_t i = first; i < first + count; i++) {
        const trp_journal_op *op = journal->lot[i];
        figures->refused += op->outcome == TRP_JOURNAL_REFUSED;
        figures->failed += op->outcome == TRP_JOURNAL_FAILED;
        if (op->outcome == TRP_JOURNAL_DONE && op->kind == TRP_JOURNAL_APPEND) {
            figures->groups++;
            figures->events += op->events_count;
        }
        if (!journal->is_broken) {
            room_note(figures, op);
        }
    }
    journal->passed += is_aside ? 0 : count;
    journal->waiting -= count;
    pthread_cond_signal(&journal->reads_come);
    pthread_mutex_unlock(&journal->lock);
    for (uint32_t i = first; i < first + count; i++) {
        journal->lot[i]->done(journal->lot[i]);
    }
}

/* Return whether a commit that answers this has written nothing yet. */
static bool
is_before_the_write(int code)
{
    return code == MDB_MAP_FULL || code == MDB_TXN_FULL || code == ENOMEM || code == MDB_BAD_TXN;
}

/* journal-lmdb-S3 */
static void
journal_break(trpi_lmdb_journal *journal, int code)
{
    pthread_mutex_lock(&journal->lock);
    journal->is_broken = true;
    journal->figures.state = TRP_JOURNAL_READ_ONLY;
    (void)snprintf(journal->figures.why, sizeof journal->figures.why,
                   "journal %s is read-only since a commit has failed: %s; look at the disk, then "
                   "open the journal again (restart the node)",
                   journal->store.directory, mdb_strerror(code));
    pthread_mutex_unlock(&journal->lock);
}

static void
op_fail(trpi_lmdb_journal *journal, trp_journal_op *op)
{
    trp_journal_done_fn done = op->done;

    op->done = trpi_lmdb_ignore;
    trp_journal_op_finish(op, TRP_JOURNAL_FAILED, TRP_EIO, "%s", journal->figures.why);
    op->done = done;
}

/* Put operations first .. end - 1 of the lot into one transaction; *ret_end: behind the last one
 * that is complete. 0: what is answered is committed, and EAGAIN: so is a slice of the deletion at
 * *ret_end. Another code: nothing has been, and *ret_broken says whether that is not certain.
 * is_begun: the one operation is a deletion, and this is not its first slice. */
static int
lot_try(trpi_lmdb_journal *journal, uint32_t first, uint32_t end, bool is_begun, uint32_t *ret_end,
        bool *ret_broken)
{
    MDB_txn *txn = NULL;
    uint64_t offset = journal->store.offset;
    int code = trpi_lmdb_begin(&journal->store, &txn);
    bool is_slice = false;

    *ret_end = first;
    if (code != 0) {
        return code;
    }
    while (code == 0 && *ret_end < end) {
        trp_journal_op *op = journal->lot[*ret_end];
        trp_journal_done_fn done = op->done;

        op->done = trpi_lmdb_ignore;
        code = is_begun ? trpi_lmdb_delete(&journal->store, txn, op, true)
                        : trpi_lmdb_change(&journal->store, txn, op);
        op->done = done;
        *ret_end += code == 0;
    }
    is_slice = code == EAGAIN;
    if (code != 0 && !is_slice) {
        mdb_txn_abort(txn);
    } else {
        code = mdb_txn_commit(txn);
        *ret_broken = code != 0 && !is_before_the_write(code);
    }
    if (code != 0) {
        trpi_lmdb_store_forget(&journal->store); /* journal-lmdb-L5 */
        journal->store.offset = offset;
        for (uint32_t i = first; i < *ret_end; i++) { /* they are carried out again */
            journal->lot[i]->outcome = TRP_JOURNAL_PENDING;
            journal->lot[i]->why[0] = '\0';
        }
    }
    return code == 0 && is_slice ? EAGAIN : code;
}

/* Give the answer of a change that could not be carried out, alone in its transaction; is_begun: a
 * part of it has been committed. */
static void
op_refuse(trpi_lmdb_journal *journal, trp_journal_op *op, int code, bool is_begun)
{
    trp_err err = trpi_lmdb_err(code);
    trp_journal_done_fn done = op->done;

    op->done = trpi_lmdb_ignore;
    trp_journal_op_finish(op, is_begun ? TRP_JOURNAL_FAILED : TRP_JOURNAL_REFUSED,
                          err == TRP_ENOENT ? TRP_EDATA : err, "journal %s: %s%s",
                          journal->store.directory, mdb_strerror(code),
                          err == TRP_EAGAIN ? "; raise persistence.lmdb.size-max, or delete events"
                                            : "");
    op->done = done;
}

/* Fail operations of the lot from first on: a commit has failed. */
static void
lot_fail(trpi_lmdb_journal *journal, uint32_t first, uint32_t end, bool is_aside)
{
    for (uint32_t i = first; i < end; i++) {
        op_fail(journal, journal->lot[i]);
    }
    lot_answer(journal, first, end - first, false, is_aside);
}

/* ---- deletions that are set aside (journal-lmdb-S5) ------------------------------------------ */

trpi_lmdb_aside *
trpi_lmdb_aside_of(const trpi_lmdb_journal *journal, const char *id)
{
    trpi_lmdb_aside *aside = journal->asides;

    while (aside != NULL && (id == NULL || strcmp(aside->id, id) != 0)) {
        aside = aside->next;
    }
    return aside;
}

/* Set an operation aside whose first slice has been committed; all before it have been answered. */
static void
aside_begin(trpi_lmdb_journal *journal, trp_journal_op *op, uint32_t place)
{
    trpi_lmdb_aside *aside = trpi_alloc(sizeof *aside);

    if (aside == NULL) {
        op_refuse(journal, op, ENOMEM, true);
        lot_answer(journal, place, 1, false, false);
        return;
    }
    aside->deletion = op;
    (void)snprintf(aside->id, sizeof aside->id, "%s", op->id);
    pthread_mutex_lock(&journal->lock);
    aside->next = journal->asides;
    journal->asides = aside;
    journal->passed++;
    pthread_cond_signal(&journal->reads_come);
    pthread_mutex_unlock(&journal->lock);
}

/* Let a change pass whose turn has come, behind the deletion of its id. Under the lock. */
static void
aside_put(trpi_lmdb_journal *journal, trpi_lmdb_aside *aside, trp_journal_op *op)
{
    trp_journal_op *before = NULL;

    while (read_in_the_way(journal, op, &before) != NULL) {
        trpi_lmdb_queue_put(&aside->behind, trpi_lmdb_read_take(journal, before));
        before = NULL;
    }
    trpi_lmdb_queue_put(&aside->behind, op);
    journal->passed++;
    pthread_cond_signal(&journal->reads_come);
}

/* Carry out one change behind a deletion, or a slice of that. */
static void
aside_change(trpi_lmdb_journal *journal, trpi_lmdb_aside *aside, trp_journal_op *op)
{
    bool is_begun = op == aside->deletion;
    bool is_broken = journal->is_broken; /* by this thread */
    uint32_t end = 0;
    int code = 0;

    journal->lot[0] = op;
    aside->deletion = NULL;
    if (!is_broken) {
        code = lot_try(journal, 0, 1, is_begun, &end, &is_broken);
        if (is_broken) {
            journal_break(journal, code);
        }
    }
    if (is_broken) {
        lot_fail(journal, 0, 1, true);
    } else if (code == EAGAIN) {
        aside->deletion = op;
    } else {
        if (code != 0) {
            op_refuse(journal, op, code, is_begun);
        }
        lot_answer(journal, 0, 1, code == 0, true);
    }
}

/* Go on with the first deletion, and let it be the last one; an empty one is over. */
static void
aside_step(trpi_lmdb_journal *journal)
{
    trpi_lmdb_aside *aside = journal->asides;
    trpi_lmdb_aside **at = &journal->asides;
    trp_journal_op *op = aside->deletion;

    pthread_mutex_lock(&journal->lock);
    journal->asides = aside->next;
    if (op == NULL && aside->behind.first == NULL) {
        pthread_mutex_unlock(&journal->lock);
        trpi_free(aside);
        return;
    }
    while (*at != NULL) {
        at = &(*at)->next;
    }
    *at = aside;
    aside->next = NULL;
    op = op != NULL ? op : trpi_lmdb_queue_take(&aside->behind, NULL);
    pthread_mutex_unlock(&journal->lock);
    if (trpi_journal_op_is_change(op)) {
        aside_change(journal, aside, op);
    } else {
        trpi_lmdb_read_run(journal, journal->writer_txn, mdb_txn_renew(journal->writer_txn), op);
    }
}

/* ---- lots ------------------------------------------------------------------------------------ */

/* Return the end of the operations from first on that no deletion holds back. */
static uint32_t
lot_free_end(const trpi_lmdb_journal *journal, uint32_t first, uint32_t last)
{
    while (journal->asides != NULL && first < last &&
           trpi_lmdb_aside_of(journal, journal->lot[first]->id) == NULL) {
        first++;
    }
    return journal->asides != NULL ? first : last;
}

/* Carry out the lot, in one transaction if it can be. */
static void
lot_run(trpi_lmdb_journal *journal, uint32_t count)
{
    uint32_t at_once = count;
    uint32_t first = 0;

    while (first < count) {
        uint32_t end = first;
        bool is_broken = false;
        uint32_t last = count - first > at_once ? first + at_once : count;

        last = lot_free_end(journal, first, last);
        if (last == first) {
            trp_journal_op *op = journal->lot[first++];
            pthread_mutex_lock(&journal->lock);
            aside_put(journal, trpi_lmdb_aside_of(journal, op->id), op);
            pthread_mutex_unlock(&journal->lock);
            continue;
        }
        int code = lot_try(journal, first, last, false, &end, &is_broken);
        if (is_broken) {
            journal_break(journal, code);
            lot_fail(journal, first, count, false);
            return;
        }
        if (code == 0 || code == EAGAIN) {
            lot_answer(journal, first, end - first, true, false);
            first = end;
            if (code == EAGAIN) {
                aside_begin(journal, journal->lot[first], first);
                first++;
            }
        } else if (last - first > 1) { /* journal-lmdb-S4 */
            at_once = 1;
        } else {
            op_refuse(journal, journal->lot[first], code, false);
            lot_answer(journal, first, 1, false, false);
            first++;
        }
    }
}

/* Take a lot; 0 and *ret_read: a read comes first. Under the lock. */
static uint32_t
lot_take(trpi_lmdb_journal *journal, trp_journal_op **ret_read)
{
    uint64_t bytes = 0;
    uint32_t count = 0;

    *ret_read = NULL;
    while (journal->changes.first != NULL && count < TRPI_LMDB_LOT_OPS_MAX &&
           bytes < TRPI_LMDB_LOT_BYTES_MAX) {
        trp_journal_op *before = NULL;
        const trp_journal_op *op = journal->changes.first;
        trpi_lmdb_aside *aside = trpi_lmdb_aside_of(journal, op->id);
        if (aside != NULL && count == 0) {
            aside_put(journal, aside, trpi_lmdb_queue_take(&journal->changes, NULL));
            continue;
        }
        if (aside != NULL) {
            break; /* it passes when all before it are answered */
        }
        bytes += op_bytes(op);
        if (count != 0 && bytes > TRPI_LMDB_LOT_BYTES_MAX) {
            break;
        }
        if (read_in_the_way(journal, op, &before) != NULL) {
            *ret_read = count == 0 ? trpi_lmdb_read_take(journal, before) : NULL;
            break;
        }
        journal->lot[count++] = trpi_lmdb_queue_take(&journal->changes, NULL);
    }
    return count;
}

void *
trpi_lmdb_writer_main(void *arg)
{
    trpi_lmdb_journal *journal = arg;

    (void)pthread_setname_np(pthread_self(), "trp-journal-w");
    pthread_mutex_lock(&journal->lock);
    for (;;) {
        trp_journal_op *read = NULL;
        uint32_t count = lot_take(journal, &read);
        bool is_broken = journal->is_broken;
        bool has_asides = journal->asides != NULL;

        if (count == 0 && read == NULL && !has_asides) {
            if (journal->is_closing) {
                break;
            }
            pthread_cond_wait(&journal->changes_come, &journal->lock);
            continue;
        }
        pthread_mutex_unlock(&journal->lock);
        if (read != NULL) {
            trpi_lmdb_read_run(journal, journal->writer_txn, mdb_txn_renew(journal->writer_txn),
                               read);
        } else if (is_broken) {
            lot_fail(journal, 0, count, false);
        } else if (count != 0) {
            lot_run(journal, count);
            if (journal->store.known_ids.count > TRPI_LMDB_KNOWN_MAX ||
                journal->store.known_scopes.count > TRPI_LMDB_KNOWN_MAX) {
                trpi_lmdb_store_forget(&journal->store);
            }
        }
        if (journal->asides != NULL) {
            aside_step(journal);
        }
        pthread_mutex_lock(&journal->lock);
    }
    pthread_mutex_unlock(&journal->lock);
    return NULL;
}

#endif
