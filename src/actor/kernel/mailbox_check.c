/* mailbox_check.c - the invariants of a mailbox, as the holder of its token sees it.
 *
 * Why.     Senders push while it runs, so it checks properties that no push changes: mailbox-M1,
 *          -M2, -M4 and -M5 for the part of the queue that the runner owns.
 * Cost.    A walk over the first WALKED messages; in builds with a sanitizer alone.
 * Tests.   tests/unit/actor/mailbox_test.c
 */
#include "actor/kernel/mailbox.h"

#define WALKED 32u

const char *
trpi_mailbox_check(trpi_cell *cell, trpi_check *check)
{
    trp_msg *dummy = trpi_mailbox_dummy(cell), *stub = trpi_cell_stub(cell);
    trp_msg *next = trpi_msg_next(dummy);
    /* acquire: after the read of next; a sender moves head before it links */
    uintptr_t head = atomic_load_explicit(&cell->head, memory_order_acquire);

    if ((head & TRPI_TOKEN) != 0) {
        return trpi_check_broken(check, "mailbox-M4: the token of a running cell is free");
    }
    if (next != NULL && head == (uintptr_t)dummy) {
        return trpi_check_broken(check, "mailbox-M1: a message is linked, but head is the dummy");
    }
    if (trpi_mailbox_has_direct(cell) && dummy == stub) {
        return trpi_check_broken(check, "mailbox-M5: the stub was delivered as a message");
    }
    for (uint32_t n = 0; next != NULL && n < WALKED; n++, next = trpi_msg_next(next)) {
        if (next == stub) {
            return trpi_check_broken(check, "mailbox-M2: the stub stands behind %u messages", n);
        }
        if (next == dummy) {
            return trpi_check_broken(check,
                                     "mailbox-M1: the queue is a cycle of its dummy and %u "
                                     "messages",
                                     n);
        }
    }
    return NULL;
}
