/* journal_lmdb.c - the LMDB journal: its queues and its two threads.
 *
 * Why.   A flush costs as much for one event as for a thousand. All that waits, whoever has asked
 *        for it, goes into one transaction.
 * Shape. submit -> changes -> writer: [take a lot] [transaction] [commit: flush] [answer all]
 *               -> reads ----> reader: [snapshot] [walk, give] [answer]
 * Must hold.
 *   journal-lmdb-S1  Changes are carried out in the order of submission, but for what
 *       journal-lmdb-S5 sets aside. A read begins when all changes submitted before it have passed,
 *       and before any change of its id that was submitted behind it: the writer carries it out if
 *       the reader has not come to it.
 *   journal-lmdb-S2  No answer before the commit that makes it durable has returned.
 *   journal-lmdb-S3  A commit that fails is the last one. All that wait are failed, and every
 *       change is refused from then on.
 *   journal-lmdb-S4  A transaction that cannot be filled is given up before anything is written,
 *       and its operations are carried out one by one: only the culprit is refused.
 *   journal-lmdb-S5  A large deletion passes after its first slice: a slice, a lot of others, a
 *       slice. Changes and reads of its id that come to their turn meanwhile are set aside behind
 *       it, in order; all others go on.
 * Limits. TRPI_LMDB_LOT_OPS_MAX and TRPI_LMDB_LOT_BYTES_MAX of one transaction.
 * Threads. lock: of the queues and figures. The store's names are the writer's; snapshots of LMDB
 *        need no lock.
 * Tests. tests/unit/persistence/journal_lmdb_test.c, tests/unit/persistence/power_loss_test.c
 * Sources. A4J-28; docs/adr, decision 287.
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

/* ---- queues --------------------------------------------------------------------------------- */

void
trpi_lmdb_queue_put(trpi_lmdb_queue *q, trp_journal_op *op)
{
    op->driver[0] = NULL;
    if (q->first == NULL) {
        q->first = op;
    } else {
        q->last->driver[0] = op;
    }
    q->last = op;
}

trp_journal_op *
trpi_lmdb_queue_take(trpi_lmdb_queue *q, trp_journal_op *before)
{
    trp_journal_op *op = before == NULL ? q->first : trpi_lmdb_next(before);

    if (before == NULL) {
        q->first = trpi_lmdb_next(op);
    } else {
        before->driver[0] = trpi_lmdb_next(op);
    }
    if (q->last == op) {
        q->last = before;
    }
    return op;
}

void
trpi_lmdb_ignore(trp_journal_op *op)
{
    (void)op;
}

/* ---- reads ----------------------------------------------------------------------------------- */

trp_journal_op *
trpi_lmdb_read_take(trpi_lmdb_journal *journal, trp_journal_op *before)
{
    trp_journal_op *op = trpi_lmdb_queue_take(&journal->reads, before);

    if (trpi_lmdb_names_id(op)) {
        journal->reads_of[trpi_lmdb_hash(op) % TRPI_LMDB_READ_PLACES]--;
    }
    return op;
}

void
trpi_lmdb_read_run(trpi_lmdb_journal *journal, MDB_txn *txn, int code, trp_journal_op *op)
{
    trp_journal_done_fn done = op->done;

    op->done = trpi_lmdb_ignore; /* the answer is counted before its maker has it */
    if (code == 0) {
        trpi_lmdb_read(&journal->store, txn, op);
        mdb_txn_reset(txn);
    } else {
        trp_journal_op_finish(op, TRP_JOURNAL_REFUSED, TRP_EIO, "journal %s cannot be read: %s",
                              journal->store.directory, mdb_strerror(code));
    }
    op->done = done;
    pthread_mutex_lock(&journal->lock);
    journal->waiting--;
    journal->figures.refused += op->outcome == TRP_JOURNAL_REFUSED;
    pthread_mutex_unlock(&journal->lock);
    done(op);
}

static void *
reader_main(void *arg)
{
    trpi_lmdb_journal *journal = arg;

    (void)pthread_setname_np(pthread_self(), "trp-journal-r");
    pthread_mutex_lock(&journal->lock);
    for (;;) {
        trp_journal_op *op = journal->reads.first;
        if (op != NULL && trpi_lmdb_ticket(op) <= journal->passed) {
            trpi_lmdb_aside *aside =
                trpi_lmdb_names_id(op) ? trpi_lmdb_aside_of(journal, op->id) : NULL;
            (void)trpi_lmdb_read_take(journal, NULL);
            if (aside != NULL) { /* journal-lmdb-S5 */
                trpi_lmdb_queue_put(&aside->behind, op);
                pthread_cond_signal(&journal->changes_come);
                continue;
            }
            int code = mdb_txn_renew(journal->reader_txn); /* journal-lmdb-S1: under the lock */
            pthread_mutex_unlock(&journal->lock);
            trpi_lmdb_read_run(journal, journal->reader_txn, code, op);
            pthread_mutex_lock(&journal->lock);
        } else if (journal->is_closing && op == NULL) {
            break;
        } else {
            pthread_cond_wait(&journal->reads_come, &journal->lock);
        }
    }
    pthread_mutex_unlock(&journal->lock);
    return NULL;
}

/* ---- the driver ------------------------------------------------------------------------------ */

static void
lmdb_submit(void *arg, trp_journal_op *op)
{
    trpi_lmdb_journal *journal = arg;
    bool is_change = trpi_journal_op_is_change(op);
    trp_err err = trp_journal_op_check(op);

    if (err != TRP_OK) {
        pthread_mutex_lock(&journal->lock);
        journal->figures.refused++;
        pthread_mutex_unlock(&journal->lock);
        return;
    }
    op->driver[1] = op->id != NULL ? (void *)(uintptr_t)trpi_hash_text(op->id) : NULL;
    pthread_mutex_lock(&journal->lock);
    if (is_change && journal->is_broken) {
        journal->figures.refused++;
        pthread_mutex_unlock(&journal->lock);
        trp_journal_op_finish(op, TRP_JOURNAL_REFUSED, TRP_EIO, "%s", journal->figures.why);
        return;
    }
    journal->waiting++;
    if (is_change) {
        op->driver[2] = (void *)(uintptr_t)++journal->submitted;
        trpi_lmdb_queue_put(&journal->changes, op);
        pthread_cond_signal(&journal->changes_come);
    } else {
        op->driver[2] = (void *)(uintptr_t)journal->submitted;
        journal->reads_of[trpi_lmdb_hash(op) % TRPI_LMDB_READ_PLACES] += trpi_lmdb_names_id(op);
        trpi_lmdb_queue_put(&journal->reads, op);
        pthread_cond_signal(&journal->reads_come);
    }
    pthread_mutex_unlock(&journal->lock);
}

static void
lmdb_health(void *arg, trp_journal_health *ret_health)
{
    trpi_lmdb_journal *journal = arg;
    trp_journal_health health;

    pthread_mutex_lock(&journal->lock);
    health = journal->figures;
    health.waiting = journal->waiting;
    pthread_mutex_unlock(&journal->lock);
    health.bytes = trpi_lmdb_store_bytes(&journal->store);
    (void)TRPI_SIZED_FILL(ret_health, &health, why);
}

/* End it, also half-open. */
static void
lmdb_close(void *arg)
{
    trpi_lmdb_journal *journal = arg;

    pthread_mutex_lock(&journal->lock);
    journal->is_closing = true;
    pthread_cond_signal(&journal->changes_come);
    pthread_mutex_unlock(&journal->lock);
    if (journal->has_writer) {
        (void)pthread_join(journal->writer, NULL);
    }
    pthread_mutex_lock(&journal->lock);
    pthread_cond_signal(&journal->reads_come);
    pthread_mutex_unlock(&journal->lock);
    if (journal->has_reader) {
        (void)pthread_join(journal->reader, NULL);
    }
    mdb_txn_abort(journal->reader_txn);
    mdb_txn_abort(journal->writer_txn);
    trpi_lmdb_store_fini(&journal->store);
    trpi_mutex_destroy(&journal->lock);
    pthread_cond_destroy(&journal->changes_come);
    pthread_cond_destroy(&journal->reads_come);
    trpi_free(journal);
}

/* Make the transactions of reads, and the threads. */
static trp_err
threads_start(trpi_lmdb_journal *journal)
{
    int code = mdb_txn_begin(journal->store.env, NULL, MDB_RDONLY, &journal->reader_txn);
    trp_err err = TRP_OK;

    code = code == 0 ? mdb_txn_begin(journal->store.env, NULL, MDB_RDONLY, &journal->writer_txn)
                     : code;
    if (code != 0) {
        return trpi_lmdb_err(code);
    }
    mdb_txn_reset(journal->reader_txn);
    mdb_txn_reset(journal->writer_txn);
    err = trpi_thread_start(&journal->writer, trpi_lmdb_writer_main, journal);
    journal->has_writer = err == TRP_OK;
    if (err == TRP_OK) {
        err = trpi_thread_start(&journal->reader, reader_main, journal);
        journal->has_reader = err == TRP_OK;
    }
    return err;
}

static trp_err
journal_new(const trp_journal_lmdb_options *options, const trp_journal_driver **ret_driver,
            char *why, size_t why_bytes)
{
    trpi_lmdb_journal *journal = trpi_alloc(sizeof *journal);
    trp_err err = TRP_OK;

    if (journal == NULL) {
        (void)snprintf(why, why_bytes, "journal %s: out of memory", options->directory);
        return TRP_ENOMEM;
    }
    pthread_mutex_init(&journal->lock, NULL);
    pthread_cond_init(&journal->changes_come, NULL);
    pthread_cond_init(&journal->reads_come, NULL);
    journal->figures = (trp_journal_health)TRP_JOURNAL_HEALTH_INIT;
    journal->driver = (trp_journal_driver){
        sizeof journal->driver, "lmdb", journal, 0, 0, lmdb_submit, lmdb_health, lmdb_close
    };
    err = trpi_lmdb_store_open(&journal->store, options, why, why_bytes);
    if (err == TRP_OK) {
        err = threads_start(journal);
        if (err != TRP_OK) {
            (void)snprintf(why, why_bytes, "journal %s: its threads could not be started: %s",
                           options->directory, trp_strerror(err));
        }
    }
    if (err != TRP_OK) {
        lmdb_close(journal);
        return err;
    }
    *ret_driver = &journal->driver;
    return TRP_OK;
}

trp_err
trp_journal_lmdb_open(const trp_journal_lmdb_options *options,
                      const trp_journal_driver **ret_driver, char *why, size_t why_bytes)
{
    trp_journal_lmdb_options own = TRP_JOURNAL_LMDB_OPTIONS_INIT;
    char dropped[TRP_JOURNAL_WHY_BYTES];

    if (why == NULL || why_bytes == 0) {
        why = dropped;
        why_bytes = sizeof dropped;
    }
    if (options == NULL || ret_driver == NULL || !TRPI_SIZED_COPY(options, &own, size_max) ||
        own.directory == NULL || own.directory[0] == '\0') {
        (void)snprintf(why, why_bytes, "an LMDB journal needs a directory");
        return TRP_EINVAL;
    }
    if (own.size_max != 0 && (own.size_max < TRP_JOURNAL_LMDB_SIZE_MAX_LEAST ||
                              own.size_max > TRP_JOURNAL_LMDB_SIZE_MAX_MOST)) {
        (void)snprintf(why, why_bytes,
                       "journal %s: the largest size is %" PRIu64
                       " bytes, not from 1 MiB to 16 TiB",
                       own.directory, own.size_max);
        return TRP_EINVAL;
    }
    return journal_new(&own, ret_driver, why, why_bytes);
}

#else /* --without-lmdb */

#include <stdio.h>

trp_err
trp_journal_lmdb_open(const trp_journal_lmdb_options *options,
                      const trp_journal_driver **ret_driver, char *why, size_t why_bytes)
{
    (void)options;
    (void)ret_driver;
    if (why != NULL && why_bytes != 0) {
        (void)snprintf(why, why_bytes, "this build has no LMDB (--without-lmdb)");
    }
    return TRP_EUNSUPPORTED;
}

#endif
