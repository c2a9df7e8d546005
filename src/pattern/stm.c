/* stm.c - transactions over cells: versioned locks and one clock for a space.
 *
 * Why.     State that several actors or threads share, and that changes in several places at once.
 * Shape.   Transactional Locking II with extension. A cell has a word: its version, even, or the
 *          same with bit 0 set while a commit copies into it. The clock of the space is the version
 *          of the last commit.
 *
 *            read    word, value, word again: unlocked, unchanged and not above the time of the
 *                    snapshot. If above: take a later snapshot, if all that was read still stands.
 *            write   into the transaction.
 *            commit  lock all written cells (a cell that is locked is a conflict) -> new version
 *                    from the clock -> all that was read still stands? -> copy -> unlock with the
 *                    new version -> effects.
 * Must hold.
 *   stm-T1  Values that a run has read were all there at the time of its snapshot (opacity).
 *   stm-T2  Of a commit nothing or all is seen: a reader of a cell that it writes waits, or meets
 *       a conflict, from before the version was taken until the cell is unlocked.
 *   stm-T3  Nobody waits for a cell while it holds one: no deadlock.
 *   stm-T4  Effects run once, for a run that committed, after its cells are unlocked.
 * Order.   Words are loaded with acquire and stored with release: a reader that sees a version sees
 *          what its writer saw (MEM-4). Values are copied as atomic words, each loaded with acquire
 *          and stored with release: a reader that saw a word of a commit sees the lock that came
 *          before it. The clock is counted with acquire and release: of two commits that read what
 *          the other one writes, the later sees the locks of the earlier.
 * Limits.  TRP_STM_CELLS_MAX, TRP_STM_EFFECTS_MAX, attempts_max.
 * Tests.   tests/unit/pattern/stm_test.c, stm_history_test.c
 * Sources. Dice, Shalev, Shavit: Transactional Locking II (2006); Riegel, Felber, Fetzer: A Lazy
 *          Snapshot Algorithm with Eager Validation (2006). STM-1, STM-2, MEM-4
 */
#include <troupe/stm.h>

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <troupe/actor.h>
#include <troupe/system.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomics.h"
#include "base/hash.h"
#include "base/sized.h"
#include "pattern/future.h"

#define LOCKED 1u
#define VERSION_STEP 2u

enum {
    ENTRIES_OWN = 16,   /* in the transaction itself; more are on the heap, with an index */
    VALUES_OWN = 256,   /* bytes of values, likewise */
    INDEX_SLOTS = 8192, /* at most half full: TRP_STM_CELLS_MAX */
    READ_TRIES = 128,   /* looks at a locked cell before it is a conflict */
    YIELD_ATTEMPT = 4,  /* from this run on the thread gives way before it */
    SLEEP_ATTEMPT = 64, /* and from this one on it sleeps */
    SLEEP_NS_MAX = 1000000
};
_Static_assert(INDEX_SLOTS >= 2 * TRP_STM_CELLS_MAX, "an index that fills up never ends a search");

struct trp_stm {
    _Atomic uint64_t clock;
    char apart[TRPI_CACHE_LINE - sizeof(uint64_t)];
};

struct trp_stm_cell {
    _Atomic uint64_t word;
    trp_stm *stm;
    size_t bytes;
    _Atomic uint64_t value[];
};

typedef struct entry {
    trp_stm_cell *cell;
    uint64_t seen; /* the word when it was read */
    uint64_t held; /* the word before the commit locked it */
    size_t value;  /* where its new value is, in values */
    bool is_read, is_written, is_locked;
} entry;

typedef struct effect {
    struct effect *next;
    void (*fn)(void *arg);
    void (*release)(void *arg);
    void *arg;
} effect;

struct trp_txn {
    trp_stm *stm;
    uint64_t snapshot;
    uint32_t attempt;
    trp_err doomed; /* the conflict, or the error, that the function must return */
    entry *entries;
    uint32_t entries_count, entries_room;
    uint16_t *index; /* entry + 1 by the hash of its cell; NULL: few, search them */
    char *values;
    size_t values_used, values_room;
    effect *effects, **effects_last;
    uint32_t effects_count, writes;
    entry own[ENTRIES_OWN];
    _Alignas(8) char own_values[VALUES_OWN];
};

/* ---- cells ----------------------------------------------------------------------------------- */

trp_err
trp_stm_new(trp_stm **ret_stm)
{
    trp_stm *stm = ret_stm == NULL ? NULL : trpi_alloc_aligned(TRPI_CACHE_LINE, sizeof *stm);
    if (stm == NULL) {
        return ret_stm == NULL ? TRP_EINVAL : TRP_ENOMEM;
    }
    *ret_stm = stm;
    return TRP_OK;
}

void
trp_stm_free(trp_stm *stm)
{
    trpi_free(stm);
}

static size_t
words_of(size_t bytes)
{
    return (bytes + 7) / 8;
}

static void
value_store(trp_stm_cell *cell, const char *value)
{
    for (size_t i = 0, left = cell->bytes; i < words_of(cell->bytes); i++) {
        uint64_t word = 0;
        size_t part = left < 8 ? left : 8;
        memcpy(&word, value + 8 * i, part);
        atomic_store_explicit(&cell->value[i], word, RELEASE); /* pair: value_load */
        left -= part;
    }
}

static void
value_load(const trp_stm_cell *cell, char *ret_value)
{
    for (size_t i = 0, left = cell->bytes; i < words_of(cell->bytes); i++) {
        uint64_t word = atomic_load_explicit(&cell->value[i], ACQUIRE); /* pair: value_store */
        size_t part = left < 8 ? left : 8;
        memcpy(ret_value + 8 * i, &word, part);
        left -= part;
    }
}

trp_err
trp_stm_cell_new(trp_stm *stm, const void *value, size_t bytes, trp_stm_cell **ret_cell)
{
    if (stm == NULL || ret_cell == NULL || bytes == 0 || bytes > TRP_STM_CELL_BYTES_MAX) {
        return TRP_EINVAL;
    }
    trp_stm_cell *cell = trpi_alloc(sizeof *cell + 8 * words_of(bytes));
    if (cell == NULL) {
        return TRP_ENOMEM;
    }
    cell->stm = stm;
    cell->bytes = bytes;
    if (value != NULL) {
        value_store(cell, value);
    }
    *ret_cell = cell;
    return TRP_OK;
}

void
trp_stm_cell_free(trp_stm_cell *cell)
{
    trpi_assert(cell == NULL || (atomic_load_explicit(&cell->word, ACQUIRE) & LOCKED) == 0);
    trpi_free(cell);
}

/* Copy a value that no commit changed meanwhile, and its word; false: it is locked. */
static bool
cell_load(const trp_stm_cell *cell, uint64_t *ret_word, char *ret_value)
{
    for (int i = 0; i < READ_TRIES; i++) {
        uint64_t word = atomic_load_explicit(&cell->word, ACQUIRE); /* pair: cells_unlock */
        if ((word & LOCKED) == 0) {
            value_load(cell, ret_value);
            if (atomic_load_explicit(&cell->word, RELAXED) == word) { /* behind the acquires */
                *ret_word = word;
                return true;
            }
        }
        trpi_cpu_relax();
    }
    return false;
}

void
trp_stm_get(const trp_stm_cell *cell, void *ret_value)
{
    uint64_t word;
    while (!cell_load(cell, &word, ret_value)) {
        (void)sched_yield(); /* the thread that commits was taken off its processor */
    }
}

/* ---- entries --------------------------------------------------------------------------------- */

static uint32_t
index_slot(const trp_txn *txn, const trp_stm_cell *cell)
{
    uint32_t slot = (uint32_t)trpi_hash_u64((uint64_t)(uintptr_t)cell) % INDEX_SLOTS;
    while (txn->index[slot] != 0 && txn->entries[txn->index[slot] - 1].cell != cell) {
        slot = (slot + 1) % INDEX_SLOTS;
    }
    return slot;
}

static entry *
entry_find(const trp_txn *txn, const trp_stm_cell *cell)
{
    if (txn->index != NULL) {
        uint16_t at = txn->index[index_slot(txn, cell)];
        return at == 0 ? NULL : &txn->entries[at - 1];
    }
    for (uint32_t i = 0; i < txn->entries_count; i++) {
        if (txn->entries[i].cell == cell) {
            return &txn->entries[i];
        }
    }
    return NULL;
}

static trp_err
entries_grow(trp_txn *txn)
{
    if (txn->entries_count == TRP_STM_CELLS_MAX) {
        return TRP_ELIMIT;
    }
    if (txn->index == NULL && (txn->index = trpi_alloc(INDEX_SLOTS * sizeof *txn->index)) == NULL) {
        return TRP_ENOMEM;
    }
    uint32_t room = txn->entries_room * 4;
    entry *more = trpi_alloc(room * sizeof *more);
    if (more == NULL) {
        return TRP_ENOMEM;
    }
    memcpy(more, txn->entries, txn->entries_count * sizeof *more);
    if (txn->entries != txn->own) {
        trpi_free(txn->entries);
    }
    txn->entries = more;
    txn->entries_room = room;
    memset(txn->index, 0, INDEX_SLOTS * sizeof *txn->index);
    for (uint32_t i = 0; i < txn->entries_count; i++) {
        txn->index[index_slot(txn, more[i].cell)] = (uint16_t)(i + 1);
    }
    return TRP_OK;
}

static trp_err
entry_add(trp_txn *txn, const trp_stm_cell *cell, entry **ret_entry)
{
    if (txn->entries_count == txn->entries_room || txn->entries_count == TRP_STM_CELLS_MAX) {
        trp_err err = entries_grow(txn);
        if (err != TRP_OK) {
            return err;
        }
    }
    entry *e = &txn->entries[txn->entries_count];
    *e =
        (entry){ .cell = (trp_stm_cell *)(uintptr_t)cell }; /* written to by trp_stm_write() only */
    if (txn->index != NULL) {
        txn->index[index_slot(txn, cell)] = (uint16_t)(txn->entries_count + 1);
    }
    txn->entries_count++;
    *ret_entry = e;
    return TRP_OK;
}

/* Does all that was read still have the version that was read? Cells that this commit holds have
 * been compared when they were locked. */
static bool
reads_stand(const trp_txn *txn)
{
    for (uint32_t i = 0; i < txn->entries_count; i++) {
        const entry *e = &txn->entries[i];
        if (e->is_read && !e->is_locked &&
            atomic_load_explicit(&e->cell->word, ACQUIRE) != e->seen) {
            return false;
        }
    }
    return true;
}

/* Move the snapshot to now (stm-T1). */
static bool
snapshot_extend(trp_txn *txn)
{
    uint64_t now = atomic_load_explicit(&txn->stm->clock, ACQUIRE);
    if (!reads_stand(txn)) {
        return false;
    }
    txn->snapshot = now;
    return true;
}

/* ---- a run ----------------------------------------------------------------------------------- */

static trp_err
txn_doom(trp_txn *txn, trp_err err)
{
    txn->doomed = err;
    return err;
}

trp_err
trp_stm_read(trp_txn *txn, const trp_stm_cell *cell, void *ret_value)
{
    char aside[512], *copy = aside;
    uint64_t word = 0;
    if (txn->doomed != TRP_OK || cell->stm != txn->stm) {
        return txn->doomed != TRP_OK ? txn->doomed : txn_doom(txn, TRP_EINVAL);
    }
    entry *e = entry_find(txn, cell);
    if (e != NULL && e->is_written) {
        memcpy(ret_value, txn->values + e->value, cell->bytes);
        return TRP_OK;
    }
    if (cell->bytes > sizeof aside && (copy = trpi_alloc(cell->bytes)) == NULL) {
        return txn_doom(txn, TRP_ENOMEM);
    }
    trp_err err = cell_load(cell, &word, copy) ? TRP_OK : TRP_EAGAIN;
    while (err == TRP_OK && word > txn->snapshot) {
        bool is_later = snapshot_extend(txn) && cell_load(cell, &word, copy);
        err = is_later ? TRP_OK : TRP_EAGAIN;
    }
    if (err == TRP_OK && e != NULL && e->seen != word) {
        err = TRP_EAGAIN;
    }
    if (err == TRP_OK && e == NULL) {
        err = entry_add(txn, cell, &e);
    }
    if (err == TRP_OK) {
        e->is_read = true;
        e->seen = word;
        memcpy(ret_value, copy, cell->bytes);
    }
    if (copy != aside) {
        trpi_free(copy);
    }
    return err == TRP_OK ? TRP_OK : txn_doom(txn, err);
}

static trp_err
values_grow(trp_txn *txn, size_t bytes)
{
    size_t room = txn->values_room;
    while (room - txn->values_used < bytes) {
        room *= 2;
    }
    char *more = trpi_alloc(room);
    if (more == NULL) {
        return TRP_ENOMEM;
    }
    memcpy(more, txn->values, txn->values_used);
    if (txn->values != txn->own_values) {
        trpi_free(txn->values);
    }
    txn->values = more;
    txn->values_room = room;
    return TRP_OK;
}

trp_err
trp_stm_write(trp_txn *txn, trp_stm_cell *cell, const void *value)
{
    if (txn->doomed != TRP_OK || cell->stm != txn->stm) {
        return txn->doomed != TRP_OK ? txn->doomed : txn_doom(txn, TRP_EINVAL);
    }
    entry *e = entry_find(txn, cell);
    trp_err err = e == NULL ? entry_add(txn, cell, &e) : TRP_OK;
    if (err == TRP_OK && !e->is_written) {
        size_t bytes = 8 * words_of(cell->bytes);
        err = txn->values_room - txn->values_used < bytes ? values_grow(txn, bytes) : TRP_OK;
        if (err == TRP_OK) {
            e->value = txn->values_used;
            e->is_written = true;
            txn->values_used += bytes;
            txn->writes++;
        }
    }
    if (err != TRP_OK) {
        return txn_doom(txn, err);
    }
    memcpy(txn->values + e->value, value, cell->bytes);
    return TRP_OK;
}

uint32_t
trp_txn_attempt(const trp_txn *txn)
{
    return txn->attempt;
}

/* ---- effects --------------------------------------------------------------------------------- */

trp_err
trp_txn_on_commit(trp_txn *txn, void (*fn)(void *arg), void (*release)(void *arg), void *arg)
{
    if (txn->doomed != TRP_OK || txn->effects_count == TRP_STM_EFFECTS_MAX) {
        return txn->doomed != TRP_OK ? txn->doomed : txn_doom(txn, TRP_ELIMIT);
    }
    effect *e = trpi_alloc(sizeof *e);
    if (e == NULL) {
        return txn_doom(txn, TRP_ENOMEM);
    }
    *e = (effect){ NULL, fn, release, arg };
    *txn->effects_last = e;
    txn->effects_last = &e->next;
    txn->effects_count++;
    return TRP_OK;
}

/* Carry out the effects of a commit, or drop those of a run that did not (stm-T4). */
static void
effects_end(trp_txn *txn, bool committed)
{
    effect *next;
    for (effect *e = txn->effects; e != NULL; e = next) {
        next = e->next;
        if (committed && e->fn != NULL) {
            e->fn(e->arg);
        }
        if (e->release != NULL) {
            e->release(e->arg);
        }
        trpi_free(e);
    }
    txn->effects = NULL;
    txn->effects_last = &txn->effects;
    txn->effects_count = 0;
}

typedef struct letter {
    trp_system *system;
    trp_ref to, sender;
    trp_msg *msg;
} letter;

static void
letter_send(void *arg)
{
    letter *l = arg;
    trp_system_tell_as(l->system, l->to, l->sender, trp_msg_type(l->msg), trp_msg_payload(l->msg),
                       trp_msg_bytes(l->msg));
}

static void
letter_free(void *arg)
{
    letter *l = arg;
    trp_msg_free(l->msg);
    trpi_free(l);
}

trp_err
trp_txn_tell(trp_txn *txn, trp_system *system, trp_ref to, trp_ref sender, const trp_type *type,
             const void *payload, size_t bytes)
{
    letter *l = trpi_alloc(sizeof *l);
    if (l == NULL) {
        return txn_doom(txn, TRP_ENOMEM);
    }
    *l = (letter){ system, to, sender, NULL };
    trp_err err = system == NULL ? TRP_EINVAL : trpi_msg_copied(type, payload, bytes, &l->msg);
    err = err != TRP_OK ? txn_doom(txn, err) : trp_txn_on_commit(txn, letter_send, letter_free, l);
    if (err != TRP_OK) {
        letter_free(l);
    }
    return err;
}

/* ---- commit ---------------------------------------------------------------------------------- */

/* Unlock what this commit holds: with the new version, or with that from before. */
static void
cells_unlock(trp_txn *txn, uint64_t version)
{
    for (uint32_t i = 0; i < txn->entries_count; i++) {
        entry *e = &txn->entries[i];
        if (e->is_locked) {
            atomic_store_explicit(&e->cell->word, version == 0 ? e->held : version,
                                  RELEASE); /* pair: cell_load */
            e->is_locked = false;
        }
    }
}

/* Lock one cell, if nobody holds it and it is as it was read (stm-T3). */
static bool
cell_lock(entry *e)
{
    uint64_t word = atomic_load_explicit(&e->cell->word, RELAXED);
    if ((word & LOCKED) != 0 || (e->is_read && word != e->seen)) {
        return false;
    }
    /* acquire: what the last writer wrote is below it; the copy stays behind it (value_store) */
    e->is_locked = atomic_compare_exchange_strong_explicit(&e->cell->word, &word, word | LOCKED,
                                                           memory_order_acq_rel, RELAXED);
    e->held = word;
    return e->is_locked;
}

static bool
txn_commit(trp_txn *txn)
{
    bool holds = true;
    if (txn->writes == 0) {
        return true; /* it is a snapshot */
    }
    for (uint32_t i = 0; i < txn->entries_count && holds; i++) {
        holds = !txn->entries[i].is_written || cell_lock(&txn->entries[i]);
    }
    if (!holds) {
        cells_unlock(txn, 0);
        return false;
    }
    /* acq_rel: see Order */
    uint64_t version =
        atomic_fetch_add_explicit(&txn->stm->clock, VERSION_STEP, memory_order_acq_rel) +
        VERSION_STEP;
    if (version != txn->snapshot + VERSION_STEP && !reads_stand(txn)) {
        cells_unlock(txn, 0);
        return false;
    }
    for (uint32_t i = 0; i < txn->entries_count; i++) {
        if (txn->entries[i].is_written) {
            value_store(txn->entries[i].cell, txn->values + txn->entries[i].value);
        }
    }
    cells_unlock(txn, version);
    return true;
}

static void
txn_begin(trp_txn *txn)
{
    if (txn->index != NULL) {
        memset(txn->index, 0, INDEX_SLOTS * sizeof *txn->index);
    }
    txn->entries_count = txn->writes = 0;
    txn->values_used = 0;
    txn->doomed = TRP_OK;
    txn->attempt++;
    txn->snapshot = atomic_load_explicit(&txn->stm->clock, ACQUIRE);
}

static void
txn_fini(trp_txn *txn)
{
    if (txn->entries != txn->own) {
        trpi_free(txn->entries);
    }
    if (txn->values != txn->own_values) {
        trpi_free(txn->values);
    }
    trpi_free(txn->index);
}

/* Before it runs again: let the other one finish. Later runs give way to threads that wait for a
 * processor, one of which may hold the cells; still later ones sleep, ever longer, for a thread may
 * be off its processor for tens of milliseconds, and attempts are counted. */
static void
txn_pause(uint32_t attempt)
{
    if (attempt < YIELD_ATTEMPT) {
        for (uint32_t i = 0; i < 1u << attempt; i++) {
            trpi_cpu_relax();
        }
    } else if (attempt < SLEEP_ATTEMPT) {
        (void)sched_yield();
    } else {
        uint32_t doubled = (attempt - SLEEP_ATTEMPT) / 16;
        long ns = doubled > 6 ? SLEEP_NS_MAX : SLEEP_NS_MAX >> (6 - doubled);
        (void)nanosleep(&(struct timespec){ 0, ns }, NULL); /* interrupted: it looks sooner */
    }
}

trp_err
trp_stm_run(trp_stm *stm, trp_txn_fn fn, void *arg, const trp_stm_options *options)
{
    trp_stm_options own = TRP_STM_OPTIONS_INIT;
    if (stm == NULL || fn == NULL || !TRPI_SIZED_COPY(options, &own, ret_attempts)) {
        return TRP_EINVAL;
    }
    uint32_t attempts_max = own.attempts_max == 0 ? TRP_STM_ATTEMPTS_DEFAULT : own.attempts_max;
    trp_txn txn; /* its own room is not cleared */
    memset(&txn, 0, offsetof(trp_txn, own));
    txn.stm = stm;
    txn.entries = txn.own;
    txn.entries_room = ENTRIES_OWN;
    txn.values = txn.own_values;
    txn.values_room = VALUES_OWN;
    txn.effects_last = &txn.effects;
    trp_err err = TRP_EAGAIN;
    while (err == TRP_EAGAIN && txn.attempt < attempts_max) {
        if (txn.attempt > 0) {
            txn_pause(txn.attempt);
        }
        txn_begin(&txn);
        err = fn(&txn, arg);
        err = err == TRP_OK ? txn.doomed : err; /* an error that the function has not passed on */
        if (err == TRP_OK && !txn_commit(&txn)) {
            err = TRP_EAGAIN;
        }
        effects_end(&txn, err == TRP_OK);
    }
    if (own.ret_attempts != NULL) {
        *own.ret_attempts = txn.attempt;
    }
    txn_fini(&txn);
    return err == TRP_EAGAIN ? TRP_ELIMIT : err;
}
