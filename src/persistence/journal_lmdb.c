/* journal_lmdb.c - the LMDB journal: its queues and its two threads.
 *
 * Why.   A flush costs as much for one event as for a thousand. All that waits, whoever has asked
 *        for it, goes into one transaction.
 * Shape. submit -> changes -> writer: [take a lot] [transaction] [commit: flush] [answer all]
 *               -> reads ----> reader: [snapshot] [walk, give] [answer]
 * Must hold.
 *   journal-lmdb-S1  Changes are carried out in the order of submission. A read begins when all
 *       changes submitted before it have been answered, and before any change of its id that was
 *       submitted behind it: the writer carries it out if the reader has not come to it.
 *   journal-lmdb-S2  No answer before the commit that makes it durable has returned.
 *   journal-lmdb-S3  A commit that fails is the last one. All that wait are failed, and every
 *       change is refused from then on.
 *   journal-lmdb-S4  A transaction that cannot be filled is given up before anything is written,
 *       and its operations are carried out one by one: only the culprit is refused.
 * Limits. LOT_OPS_MAX and LOT_BYTES_MAX of one transaction.
 * Threads. lock: of the queues and figures. The store's names are the writer's; snapshots of LMDB
 *        need no lock.
 * Tests. tests/unit/persistence/journal_lmdb_test.c, tests/unit/persistence/power_loss_test.c
 * Sources. A4J-28; docs/adr, decision 287.
 */
#include "persistence/journal_lmdb.h"

#ifdef HAVE_LMDB

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/mutex.h"
#include "base/sized.h"
#include "persistence/journal_op.h"
#include "sched/sched.h"

#define LOT_OPS_MAX 8192u
#define LOT_BYTES_MAX (64u << 20)
#define READ_PLACES 1024u /* a power of two */

typedef struct queue {
    trp_journal_op *first;
    trp_journal_op *last;
} queue;

typedef struct lmdb_journal {
    trp_journal_driver driver;
    trpi_lmdb_store store;
    MDB_txn *reader_txn; /* reset between reads; of the reader */
    MDB_txn *writer_txn; /* of the writer, for reads that it carries out itself */
    pthread_t writer;
    pthread_t reader;
    bool has_writer;
    bool has_reader;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changes_come;
    pthread_cond_t reads_come;
    queue changes;
    queue reads;
    uint64_t submitted; /* changes */
    uint64_t answered;  /* changes */
    bool is_closing;
    bool is_broken; /* journal-lmdb-S3 */
    uint32_t waiting;
    uint32_t reads_of[READ_PLACES]; /* waiting reads that name an id, by its hash */
    trp_journal_health figures;

    trp_journal_op *lot[LOT_OPS_MAX]; /* of the writer */
} lmdb_journal;

/* ---- queues: fields of an operation that are its driver's ------------------------------------ */

/* driver[3] is left alone: trp_journal_call() has it. */
static trp_journal_op *
op_next(const trp_journal_op *op)
{
    return op->driver[0];
}

static uintptr_t
op_hash(const trp_journal_op *op)
{
    return (uintptr_t)op->driver[1];
}

/* Of a change: its number. Of a read: how many changes come before it. */
static uintptr_t
op_ticket(const trp_journal_op *op)
{
    return (uintptr_t)op->driver[2];
}

static void
queue_put(queue *q, trp_journal_op *op)
{
    op->driver[0] = NULL;
    if (q->first == NULL) {
        q->first = op;
    } else {
        q->last->driver[0] = op;
    }
    q->last = op;
}

/* Take an operation out, behind `before` (NULL: the first). */
static trp_journal_op *
queue_take(queue *q, trp_journal_op *before)
{
    trp_journal_op *op = before == NULL ? q->first : op_next(before);

    if (before == NULL) {
        q->first = op_next(op);
    } else {
        before->driver[0] = op_next(op);
    }
    if (q->last == op) {
        q->last = before;
    }
    return op;
}

static bool
names_id(const trp_journal_op *op)
{
    return op->kind == TRP_JOURNAL_EVENTS || op->kind == TRP_JOURNAL_SNAPSHOT_LOAD;
}

static uint64_t
op_bytes(const trp_journal_op *op)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < op->events_count; i++) {
        bytes += op->events[i].bytes;
    }
    return bytes;
}

static void
op_ignore(trp_journal_op *op)
{
    (void)op;
}

/* ---- reads ----------------------------------------------------------------------------------- */

/* Take a read off the queue; under the lock. */
static trp_journal_op *
read_take(lmdb_journal *journal, trp_journal_op *before)
{
    trp_journal_op *op = queue_take(&journal->reads, before);

    if (names_id(op)) {
        journal->reads_of[op_hash(op) % READ_PLACES]--;
    }
    return op;
}

/* Carry out a read whose snapshot has been taken, and answer it. */
static void
read_run(lmdb_journal *journal, MDB_txn *txn, int code, trp_journal_op *op)
{
    trp_journal_done_fn done = op->done;

    op->done = op_ignore; /* the answer is counted before its maker has it */
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
    lmdb_journal *journal = arg;

    (void)pthread_setname_np(pthread_self(), "trp-journal-r");
    pthread_mutex_lock(&journal->lock);
    for (;;) {
        trp_journal_op *op = journal->reads.first;
        if (op != NULL && op_ticket(op) <= journal->answered) {
            (void)read_take(journal, NULL);
            int code = mdb_txn_renew(journal->reader_txn); /* journal-lmdb-S1: under the lock */
            pthread_mutex_unlock(&journal->lock);
            read_run(journal, journal->reader_txn, code, op);
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

/* Find a waiting read of the id that a change is about, submitted before it; *ret_before is the
 * one in front of it. Under the lock. */
static trp_journal_op *
read_in_the_way(lmdb_journal *journal, const trp_journal_op *change, trp_journal_op **ret_before)
{
    trp_journal_op *before = NULL;

    if (change->id == NULL || journal->reads_of[op_hash(change) % READ_PLACES] == 0) {
        return NULL;
    }
    for (trp_journal_op *op = journal->reads.first; op != NULL; before = op, op = op_next(op)) {
        if (names_id(op) && op_ticket(op) < op_ticket(change) && strcmp(op->id, change->id) == 0) {
            *ret_before = before;
            return op;
        }
    }
    return NULL;
}

/* ---- changes --------------------------------------------------------------------------------- */

/* Answer count operations of the lot, from first on, and wake those who wait for it. */
static void
lot_answer(lmdb_journal *journal, uint32_t first, uint32_t count, bool is_commit)
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
    }
    journal->answered += count;
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
journal_break(lmdb_journal *journal, int code)
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
op_fail(lmdb_journal *journal, trp_journal_op *op)
{
    trp_journal_done_fn done = op->done;

    op->done = op_ignore;
    trp_journal_op_finish(op, TRP_JOURNAL_FAILED, TRP_EIO, "%s", journal->figures.why);
    op->done = done;
}

/* Put operations first .. end - 1 of the lot into one transaction; *ret_end: behind the last one
 * that is complete. 0: what is answered is committed. Another code: nothing has been, and
 * *ret_broken says whether that is certain. */
static int
lot_try(lmdb_journal *journal, uint32_t first, uint32_t end, uint32_t *ret_end, bool *ret_broken)
{
    MDB_txn *txn = NULL;
    uint64_t offset = journal->store.offset;
    int code = trpi_lmdb_begin(&journal->store, &txn);

    *ret_end = first;
    if (code != 0) {
        return code;
    }
    while (code == 0 && *ret_end < end) {
        trp_journal_op *op = journal->lot[*ret_end];
        trp_journal_done_fn done = op->done;

        op->done = op_ignore;
        code = trpi_lmdb_change(&journal->store, txn, op);
        op->done = done;
        *ret_end += code == 0;
    }
    if (code != 0 && code != EAGAIN) {
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
    return code;
}

/* Answer a change that could not be carried out, alone in its transaction. */
static void
op_refuse(lmdb_journal *journal, trp_journal_op *op, int code)
{
    trp_err err = trpi_lmdb_err(code);
    trp_journal_done_fn done = op->done;
    bool is_begun = journal->store.is_deleting; /* some of a large deletion has been committed */

    journal->store.is_deleting = false;
    op->done = op_ignore;
    trp_journal_op_finish(op, is_begun ? TRP_JOURNAL_FAILED : TRP_JOURNAL_REFUSED,
                          err == TRP_ENOENT ? TRP_EDATA : err, "journal %s: %s%s",
                          journal->store.directory, mdb_strerror(code),
                          err == TRP_EAGAIN ? "; raise persistence.lmdb.size-max, or delete events"
                                            : "");
    op->done = done;
}

/* Fail operations of the lot from first on: a commit has failed. */
static void
lot_fail(lmdb_journal *journal, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        op_fail(journal, journal->lot[i]);
    }
    lot_answer(journal, first, end - first, false);
}

/* Carry out the lot, in one transaction if it can be. */
static void
lot_run(lmdb_journal *journal, uint32_t count)
{
    uint32_t at_once = count;
    uint32_t first = 0;

    while (first < count) {
        uint32_t end = first;
        bool is_broken = false;
        uint32_t last = count - first > at_once ? first + at_once : count;
        int code = lot_try(journal, first, last, &end, &is_broken);

        if (is_broken) {
            journal_break(journal, code);
            lot_fail(journal, first, count);
            return;
        }
        if (code != 0 && last - first > 1) { /* journal-lmdb-S4 */
            at_once = 1;
        } else if (code != 0) {
            op_refuse(journal, journal->lot[first], code);
            lot_answer(journal, first, 1, false);
            first++;
        } else {
            lot_answer(journal, first, end - first, true);
            first = end;
        }
    }
}

/* Take a lot; 0 and *ret_read: a read comes first. Under the lock. */
static uint32_t
lot_take(lmdb_journal *journal, trp_journal_op **ret_read)
{
    uint64_t bytes = 0;
    uint32_t count = 0;

    *ret_read = NULL;
    while (journal->changes.first != NULL && count < LOT_OPS_MAX && bytes < LOT_BYTES_MAX) {
        trp_journal_op *before = NULL;
        const trp_journal_op *op = journal->changes.first;
        bytes += op_bytes(op);
        if (count != 0 && bytes > LOT_BYTES_MAX) {
            break;
        }
        if (read_in_the_way(journal, op, &before) != NULL) {
            *ret_read = count == 0 ? read_take(journal, before) : NULL;
            break;
        }
        journal->lot[count++] = queue_take(&journal->changes, NULL);
    }
    return count;
}

static void *
writer_main(void *arg)
{
    lmdb_journal *journal = arg;

    (void)pthread_setname_np(pthread_self(), "trp-journal-w");
    pthread_mutex_lock(&journal->lock);
    for (;;) {
        trp_journal_op *read = NULL;
        uint32_t count = lot_take(journal, &read);
        bool is_broken = journal->is_broken;

        if (count == 0 && read == NULL) {
            if (journal->is_closing) {
                break;
            }
            pthread_cond_wait(&journal->changes_come, &journal->lock);
            continue;
        }
        pthread_mutex_unlock(&journal->lock);
        if (read != NULL) {
            read_run(journal, journal->writer_txn, mdb_txn_renew(journal->writer_txn), read);
        } else if (is_broken) {
            lot_fail(journal, 0, count);
        } else {
            lot_run(journal, count);
            if (journal->store.known_ids.count > TRPI_LMDB_KNOWN_MAX ||
                journal->store.known_scopes.count > TRPI_LMDB_KNOWN_MAX) {
                trpi_lmdb_store_forget(&journal->store);
            }
        }
        pthread_mutex_lock(&journal->lock);
    }
    pthread_mutex_unlock(&journal->lock);
    return NULL;
}

/* ---- the driver ------------------------------------------------------------------------------ */

static void
lmdb_submit(void *arg, trp_journal_op *op)
{
    lmdb_journal *journal = arg;
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
        queue_put(&journal->changes, op);
        pthread_cond_signal(&journal->changes_come);
    } else {
        op->driver[2] = (void *)(uintptr_t)journal->submitted;
        journal->reads_of[op_hash(op) % READ_PLACES] += names_id(op);
        queue_put(&journal->reads, op);
        pthread_cond_signal(&journal->reads_come);
    }
    pthread_mutex_unlock(&journal->lock);
}

static void
lmdb_health(void *arg, trp_journal_health *ret_health)
{
    lmdb_journal *journal = arg;
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
    lmdb_journal *journal = arg;

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
threads_start(lmdb_journal *journal)
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
    err = trpi_thread_start(&journal->writer, writer_main, journal);
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
    lmdb_journal *journal = trpi_alloc(sizeof *journal);
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
