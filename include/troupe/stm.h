/* troupe/stm.h - software transactional memory: cells that change together or not at all.
 *
 *     static trp_err
 *     transfer(trp_txn *txn, void *arg)
 *     {
 *         struct order *o = arg;
 *         int64_t from, to;
 *         trp_err err = trp_stm_read(txn, o->from, &from);
 *         err = err != TRP_OK ? err : trp_stm_read(txn, o->to, &to);
 *         if (err != TRP_OK || from < o->amount) {
 *             return err != TRP_OK ? err : TRP_ELIMIT; // nothing is written
 *         }
 *         from -= o->amount;
 *         to += o->amount;
 *         err = trp_stm_write(txn, o->from, &from);
 *         return err != TRP_OK ? err : trp_stm_write(txn, o->to, &to);
 *     }
 *     ...
 *     err = trp_stm_run(stm, transfer, &order, NULL);
 *
 * The function of a transaction may run several times, so it has no effect but on what arg leads to
 * and by trp_stm_write(), trp_txn_on_commit(), trp_txn_tell() and trp_agent_send_in(), which happen
 * once, when it commits. Its writes are seen by nobody before that, and then all at once.
 *
 * All that it reads was there at one moment: a read that would not fit those before it gives no
 * value, but TRP_EAGAIN, which the function returns at once; it runs again. It never sees an
 * inconsistent state, not even in a run that does not commit. A thread that reads a cell sees all
 * that the thread which committed its value wrote before, as the receiver of a message does.
 *
 * Functions compose: one calls others with the same txn, and together they are one transaction.
 * State that belongs to one actor needs none of this: its messages are transactions by nature.
 */
#ifndef TROUPE_STM_H
#define TROUPE_STM_H

#include <troupe/base.h>
#include <troupe/message.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_STM_CELL_BYTES_MAX 65536u
#define TRP_STM_CELLS_MAX 4096u   /* that one transaction touches */
#define TRP_STM_EFFECTS_MAX 4096u /* that one transaction keeps for its commit */
#define TRP_STM_ATTEMPTS_DEFAULT 10000u

typedef struct trp_stm trp_stm; /* cells that may be in one transaction, and their clock */
typedef struct trp_stm_cell trp_stm_cell; /* a value of fixed size */
typedef struct trp_txn trp_txn;           /* a running transaction; valid for one call */

/* TRP_OK: commit. TRP_EAGAIN: run it again (what a read has answered). Any other error: write
 * nothing, and return it from trp_stm_run(). */
typedef trp_err (*trp_txn_fn)(trp_txn *txn, void *arg);

typedef struct trp_stm_options {
    size_t size;
    uint32_t attempts_max; /* runs of the function; 0: TRP_STM_ATTEMPTS_DEFAULT */
    uint32_t zero;
    uint32_t *ret_attempts; /* how many it took; NULL: not wanted */
} trp_stm_options;
#define TRP_STM_OPTIONS_INIT                                                                       \
    {                                                                                              \
        sizeof(trp_stm_options), 0, 0, NULL                                                        \
    }

/* Make a space of cells.
 *
 * Ownership: gives *ret_stm (trp_stm_free).
 * Errors:    TRP_EINVAL   ret_stm is NULL
 *            TRP_ENOMEM   out of memory
 * Thread:    any; lock-free.
 * Source:    STM-1.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_stm_new(trp_stm **ret_stm);

/* Free a space whose cells are freed, and which no transaction uses; NULL is fine.
 *
 * Ownership: takes stm.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    STM-1.  Since: 0.2 */
TRP_API void trp_stm_free(trp_stm *stm);

/* Make a cell with a value of so many bytes, which it keeps for ever.
 *
 * Ownership: gives *ret_cell (trp_stm_cell_free); borrows value (copied; NULL: zero).
 * Errors:    TRP_EINVAL   stm or ret_cell is NULL, or bytes is 0 or above TRP_STM_CELL_BYTES_MAX
 *            TRP_ENOMEM   out of memory
 * Thread:    any; lock-free.
 * Source:    STM-1.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_stm_cell_new(trp_stm *stm, const void *value, size_t bytes,
                                                trp_stm_cell **ret_cell);

/* Free a cell that no transaction uses; NULL is fine.
 *
 * Ownership: takes cell.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    STM-1.  Since: 0.2 */
TRP_API void trp_stm_cell_free(trp_stm_cell *cell);

/* Copy the value of one cell as the last commit left it, outside of a transaction.
 *
 * Errors:    none
 * Thread:    any; takes a lock for a moment (waits while a commit copies this value).
 * Source:    STM-1, MEM-4.  Since: 0.2 */
TRP_API void trp_stm_get(const trp_stm_cell *cell, void *ret_value);

/* Run fn as a transaction: until it commits, fails, or has run attempts_max times.
 *
 * Ownership: borrows options (NULL: all defaults); arg is passed through.
 * Errors:    TRP_EINVAL   stm or fn is NULL, or options is of a wrong size
 *            TRP_ELIMIT   attempts_max runs met conflicts; or a limit that fn has met
 *            TRP_ENOMEM   out of memory
 *            and those of fn; nothing is written then
 * Thread:    any; takes a lock for a moment (after many conflicts it sleeps for up to 1 ms).
 * Source:    STM-1, -2.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_stm_run(trp_stm *stm, trp_txn_fn fn, void *arg,
                                           const trp_stm_options *options);

/* Copy the value of a cell into *ret_value, as this transaction sees it.
 *
 * Errors:    TRP_EAGAIN   a conflict: return it at once; *ret_value is untouched
 *            TRP_EINVAL   the cell is of another space
 *            TRP_ELIMIT   TRP_STM_CELLS_MAX cells are touched
 *            TRP_ENOMEM   out of memory
 * Thread:    that of the transaction.
 * Source:    STM-1.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_stm_read(trp_txn *txn, const trp_stm_cell *cell,
                                            void *ret_value);

/* Give a cell a value when this transaction commits; its own reads see it at once.
 *
 * Ownership: borrows value (copied).
 * Errors:    as trp_stm_read
 * Thread:    that of the transaction.
 * Source:    STM-1, -2.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_stm_write(trp_txn *txn, trp_stm_cell *cell, const void *value);

/* Call fn(arg) when this transaction has committed, in the order of these calls, and then
 * release(arg). If this run does not commit, only release(arg) is called. Either may be NULL.
 *
 * Ownership: takes arg, on success only.
 * Errors:    TRP_EAGAIN   a conflict was met: return it
 *            TRP_ELIMIT   TRP_STM_EFFECTS_MAX are kept
 *            TRP_ENOMEM   out of memory
 * Thread:    that of the transaction, which calls fn.
 * Source:    STM-1, AGENT-4.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_txn_on_commit(trp_txn *txn, void (*fn)(void *arg),
                                                 void (*release)(void *arg), void *arg);

/* Tell an actor when this transaction has committed; nothing is told if it does not.
 *
 * Ownership: borrows payload.
 * Errors:    as trp_txn_on_commit; TRP_EINVAL, TRP_ENOTYPE as trp_msg_new
 * Thread:    that of the transaction.
 * Source:    AGENT-4.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_txn_tell(trp_txn *txn, trp_system *system, trp_ref to,
                                            trp_ref sender, const trp_type *type,
                                            const void *payload, size_t bytes);

/* Return the number of this run, from 1 on.
 *
 * Errors:    none
 * Thread:    that of the transaction.
 * Source:    STM-1.  Since: 0.2 */
TRP_API uint32_t trp_txn_attempt(const trp_txn *txn);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_STM_H */
