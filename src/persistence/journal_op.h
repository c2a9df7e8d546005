/* journal_op.h - what all journals do with an operation: see troupe/journal.h. */
#ifndef TRPI_PERSISTENCE_JOURNAL_OP_H
#define TRPI_PERSISTENCE_JOURNAL_OP_H

#include <stdbool.h>
#include <stdint.h>

#include <troupe/journal.h>

/* Return whether it changes something in the store. */
static inline bool
trpi_journal_op_is_change(const trp_journal_op *op)
{
    return op->kind == TRP_JOURNAL_CLAIM || op->kind == TRP_JOURNAL_APPEND ||
           op->kind == TRP_JOURNAL_DELETE || op->kind == TRP_JOURNAL_SNAPSHOT_SAVE ||
           op->kind == TRP_JOURNAL_SNAPSHOT_DELETE;
}

/* Return the epoch that a claim takes when the scope has this one (0: none). */
static inline uint64_t
trpi_journal_op_claims(const trp_journal_op *op, uint64_t epoch)
{
    return op->restore && op->epoch > epoch + 1 ? op->epoch : epoch + 1;
}

/* The limits of a read, with the defaults filled in. */
uint32_t trpi_journal_op_events_max(const trp_journal_op *op);
uint64_t trpi_journal_op_bytes_max(const trp_journal_op *op);

/* Give one item of a read, and count it: TRP_OK, TRP_ELIMIT when the read has reached its limits
 * (ret_more is set, and the item was not given), or what give answered. *bytes adds up. */
trp_err trpi_journal_op_give(trp_journal_op *op, const trp_journal_event *item, uint64_t *bytes);

/* The sentences of refusals that all journals share. */
void trpi_journal_op_fenced(trp_journal_op *op, uint64_t epoch, const char *writer);
void trpi_journal_op_gap(trp_journal_op *op, uint64_t highest);

#endif
