/* unconfirmed.h - the engine of at-least-once delivery: pure, without actor, clock or journal.
 *
 * Why.    A message of a persistent actor must reach its receiver although hosts crash: it is told
 *         again until its confirmation is an event of the actor.
 * Shape.  put --> fresh --told--> told, in the order in which they are due --again--> told
 *         confirm takes an entry out of either list. slots find it by its number.
 * Must hold.
 *   unconfirmed-Y1  An entry is in one list until it is confirmed.
 *   unconfirmed-Y2  Numbers grow; slots are in their order.
 *   unconfirmed-Y3  told is in the order of due times: the interval is the same for all.
 */
#ifndef TRPI_PERSISTENCE_UNCONFIRMED_H
#define TRPI_PERSISTENCE_UNCONFIRMED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/message.h>
#include <troupe/trace.h>

typedef struct trpi_unconfirmed_entry {
    struct trpi_unconfirmed_entry *next, *previous;
    uint64_t number;
    uint64_t due_ms;
    uint32_t attempts; /* 0: in fresh */
    trp_trace trace;   /* the shell's: of the command that it follows from; all 0: of none */
    trp_msg *msg;
} trpi_unconfirmed_entry;

typedef struct trpi_unconfirmed_list {
    trpi_unconfirmed_entry *first, *last;
} trpi_unconfirmed_list;

typedef struct trpi_unconfirmed_slot {
    uint64_t number;
    trpi_unconfirmed_entry *entry; /* NULL: confirmed */
} trpi_unconfirmed_slot;

typedef struct trpi_unconfirmed {
    trpi_unconfirmed_list fresh, told;
    trpi_unconfirmed_slot *slots;
    uint32_t slots_count, slots_room;
    uint32_t count;       /* not confirmed */
    uint64_t number_last; /* of the last one that was put */
} trpi_unconfirmed;       /* all zero: empty */

void trpi_unconfirmed_fini(trpi_unconfirmed *r); /* empty again */
/* Take a message (on success only); its number is above number_last. trace NULL: it is in none.
 * Errors: TRP_ENOMEM. */
trp_err trpi_unconfirmed_put(trpi_unconfirmed *r, uint64_t number, trp_msg *msg,
                             const trp_trace *trace);
/* False: it is not there, or was confirmed before. */
bool trpi_unconfirmed_confirm(trpi_unconfirmed *r, uint64_t number);
/* Return the entry that is to be told now, and count that; NULL: none is due. Borrowed until it is
 * confirmed. */
const trpi_unconfirmed_entry *trpi_unconfirmed_due(trpi_unconfirmed *r, uint64_t now_ms,
                                                   uint32_t interval_ms);
/* How long until the next one is due; UINT32_MAX: none waits. */
uint32_t trpi_unconfirmed_wait_ms(const trpi_unconfirmed *r, uint64_t now_ms);
/* Return the first entry with a number of at least `number`; NULL: there is none. */
const trpi_unconfirmed_entry *trpi_unconfirmed_from(const trpi_unconfirmed *r, uint64_t number);
/* Assert the invariants. */
void trpi_unconfirmed_check(const trpi_unconfirmed *r);

#endif
