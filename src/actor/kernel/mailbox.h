/* mailbox.h - the queue of a cell, and the token: the right to run it.
 *
 * Why.     Any thread may tell an actor; one thread at a time may run it. One word, `head`, is both
 *          the queue's head and the token.
 * Shape.   tail (runner)                              head (senders: one exchange)
 *            |                                          |
 *          [last taken] --next--> [m1] --next--> ...  [mn] --next--> NULL
 *          The message taken last stays in the queue as its dummy until the next one is taken. An
 *          idle cell's dummy is the stub, which is part of the cell, so that it holds no message.
 * Token.   Bit 0 of head set: no thread runs the cell and it is in no run queue. The thread that
 *          clears the bit owns line B.
 * Direct delivery.  A run on the worker that retains a cell (sched.h) holds that cell's token, and
 *          may deliver a message without the exchange while the queue is empty: it writes the
 *          message over the dummy, and sets bit 0 of tail: the dummy is to be taken once more.
 * Must hold.
 *   mailbox-M1  A sender moves head first and links second. Until it has linked, the runner sees
 *       next == NULL while head is elsewhere: "not yet", not "empty".
 *       (push, take)
 *   mailbox-M2  The consumer writes stub_next only while the stub is out of the queue (it is in the
 *       queue when tail or head is the stub). Writing it at another time loses messages.
 *       (go_idle)
 *   mailbox-M3  After giving the token up, the runner reads sys_head once more. It and the sender
 *       of a system message are a Dekker pair: (head |= 1, read sys_head) against (write sys_head,
 *       read head), all seq_cst.
 *   mailbox-M4  head is only exchanged by senders and compare-exchanged by owners and senders of
 *       system messages, so exactly one of them finds a bit 0 that was set.
 *   mailbox-M5  A message is delivered directly only while head is the dummy: all messages that
 *       this thread pushed before have been taken, and messages that are pushed later come behind
 *       it.
 * Cost.    push: one exchange, one store. take: one load, one store. go_idle: one compare-exchange.
 * Tests.   tests/unit/actor/mailbox_test.c, tests/stress/churn_test.c
 * Sources. D. Vyukov, "Intrusive MPSC node-based queue"; docs/architecture.md#references-and-cells.
 */
#ifndef TRPI_ACTOR_KERNEL_MAILBOX_H
#define TRPI_ACTOR_KERNEL_MAILBOX_H

#include <stddef.h>

#include "actor/kernel/cell.h"
#include "actor/kernel/msg.h"
#include "actor/kernel/run.h"
#include "base/check.h"

#define TRPI_TOKEN ((uintptr_t)1)

/* Return the stub: stub_next, seen as the first member of a message. No other member is used. */
static inline trp_msg *
trpi_cell_stub(trpi_cell *cell)
{
    _Static_assert(offsetof(struct trp_msg, priv_next) == 0, "the stub is a next pointer");
    return (trp_msg *)(void *)&cell->stub_next;
}

/* priv_next is a plain pointer in the public struct, and accessed atomically here. */
static inline void
trpi_msg_next_set(trp_msg *msg, trp_msg *next, int order)
{
    __atomic_store_n(&msg->priv_next, (void *)next, order);
}
static inline trp_msg *
trpi_msg_next(trp_msg *msg)
{
    /* acquire: pairs with the sender's release in push; the next message is written */
    return __atomic_load_n(&msg->priv_next, __ATOMIC_ACQUIRE);
}

/* Push first..last, linked by next, last->next == NULL. true: the caller got the token and must
 * schedule. */
static inline bool
trpi_mailbox_push(trpi_cell *cell, trp_msg *first, trp_msg *last)
{
    /* acq_rel: acquire pairs with the runner's going idle (its writes to line B are visible to the
     * run that we schedule); release orders the chain's inner links before the next sender's link
     * to `last` */
    uintptr_t before = atomic_exchange_explicit(&cell->head, (uintptr_t)last, memory_order_acq_rel);
    trp_msg *previous = (trp_msg *)(before & ~TRPI_TOKEN);

    /* mailbox-M1; pairs with trpi_msg_next() */
    trpi_msg_next_set(previous, first, __ATOMIC_RELEASE);
    return (before & TRPI_TOKEN) != 0;
}

/* ---- with the token -------------------------------------------------------------------------- */

#define TRPI_DIRECT ((uintptr_t)1) /* bit 0 of tail */

static inline bool
trpi_mailbox_has_direct(const trpi_cell *cell)
{
    return ((uintptr_t)cell->tail & TRPI_DIRECT) != 0;
}
static inline trp_msg *
trpi_mailbox_dummy(const trpi_cell *cell)
{
    return (trp_msg *)((uintptr_t)cell->tail & ~TRPI_DIRECT);
}
/* Return the message that is taken next, NULL: none; trpi_msg_next() gives those behind it. */
static inline trp_msg *
trpi_mailbox_first(const trpi_cell *cell)
{
    trp_msg *dummy = trpi_mailbox_dummy(cell);

    return trpi_mailbox_has_direct(cell) ? dummy : trpi_msg_next(dummy);
}

/* Return the dummy, in which the caller writes a message (all but its next pointer) and then calls
 * trpi_mailbox_deliver_direct(). NULL: a message waits, or the dummy is no block of one line. */
static inline trp_msg *
trpi_mailbox_direct_block(trpi_cell *cell)
{
    trp_msg *tail = cell->tail;

    /* relaxed: mailbox-M5; messages that others push meanwhile come behind it */
    return atomic_load_explicit(&cell->head, memory_order_relaxed) == (uintptr_t)tail &&
                   tail != trpi_cell_stub(cell) && trpi_msg_is_line(tail)
               ? tail
               : NULL;
}
static inline void
trpi_mailbox_deliver_direct(trpi_cell *cell)
{
    cell->tail = (trp_msg *)((uintptr_t)cell->tail | TRPI_DIRECT);
}

typedef enum trpi_take {
    TRPI_TAKE_EMPTY,
    TRPI_TAKE_MSG,
    TRPI_TAKE_NOT_YET /* a sender is between its two steps */
} trpi_take;

static inline trp_msg *
trpi_mailbox_take_direct(trpi_cell *cell)
{
    return cell->tail = trpi_mailbox_dummy(cell);
}

/* Take the next message, when none was delivered directly: it becomes the dummy; *ret_done is the
 * former dummy, to be freed (NULL: the stub). */
static inline trpi_take
trpi_mailbox_take_next(trpi_cell *cell, trp_msg **ret_msg, trp_msg **ret_done)
{
    trp_msg *tail = cell->tail;
    trp_msg *msg = trpi_msg_next(tail);

    if (__builtin_expect(msg != NULL, 1)) {
        if (tail == NULL) {
            __builtin_unreachable(); /* so that the caller tests *ret_done only once */
        }
        cell->tail = msg;
        *ret_msg = msg;
        *ret_done = tail != trpi_cell_stub(cell) ? tail : NULL;
        return TRPI_TAKE_MSG;
    }
    /* relaxed: only compared; if head is still tail the queue is empty */
    return (atomic_load_explicit(&cell->head, memory_order_relaxed) & ~TRPI_TOKEN) ==
                   (uintptr_t)tail
               ? TRPI_TAKE_EMPTY
               : TRPI_TAKE_NOT_YET;
}

/* Take the next message, or the one that was delivered directly, which is the dummy itself. */
static inline trpi_take
trpi_mailbox_take(trpi_cell *cell, trp_msg **ret_msg, trp_msg **ret_done)
{
    if (trpi_mailbox_has_direct(cell)) {
        *ret_msg = trpi_mailbox_take_direct(cell);
        *ret_done = NULL;
        return TRPI_TAKE_MSG;
    }
    return trpi_mailbox_take_next(cell, ret_msg, ret_done);
}

static inline bool
trpi_mailbox_has_more(trpi_cell *cell)
{
    return (atomic_load_explicit(&cell->head, memory_order_relaxed) & ~TRPI_TOKEN) !=
           (uintptr_t)cell->tail;
}

/* Does more than one message wait? (One alone is no backlog: an actor that tells itself to continue
 * has one.) */
static inline bool
trpi_mailbox_has_many(trpi_cell *cell)
{
    uintptr_t head = atomic_load_explicit(&cell->head, memory_order_relaxed) & ~TRPI_TOKEN;

    return head != (uintptr_t)trpi_mailbox_dummy(cell) &&
           head != (uintptr_t)trpi_mailbox_first(cell);
}

/* Give the token up with an empty queue. false: a message came, and the caller still holds the
 * token. *ret_done: the last message, to be freed. After true the caller does not own line B. */
static inline bool
trpi_mailbox_go_idle(trpi_cell *cell, trp_msg **ret_done)
{
    trp_msg *last = cell->tail;
    trp_msg *stub = trpi_cell_stub(cell);
    uintptr_t expected = (uintptr_t)last;

    *ret_done = NULL;
    if (last != stub) {
        atomic_store_explicit(&cell->stub_next, NULL,
                              memory_order_relaxed); /* mailbox-M2: the stub is not queued */
        cell->tail = stub;
    }
    /* seq_cst: mailbox-M3; its release part passes line B to the next owner */
    if (!atomic_compare_exchange_strong_explicit(&cell->head, &expected,
                                                 (uintptr_t)stub | TRPI_TOKEN, memory_order_seq_cst,
                                                 memory_order_relaxed)) {
        cell->tail = last;
        return false;
    }
    *ret_done = last != stub ? last : NULL;
    return true;
}

/* Give the token up with messages left: the next push or system message takes it. */
static inline void
trpi_mailbox_park(trpi_cell *cell)
{
    (void)atomic_fetch_or_explicit(&cell->head, TRPI_TOKEN, memory_order_seq_cst); /* mailbox-M3 */
}

/* Take the token, if it is free. */
static inline bool
trpi_mailbox_claim(trpi_cell *cell)
{
    uintptr_t head = atomic_load_explicit(&cell->head, memory_order_seq_cst); /* mailbox-M3 */

    while ((head & TRPI_TOKEN) != 0) {
        if (atomic_compare_exchange_weak_explicit(&cell->head, &head, head & ~TRPI_TOKEN,
                                                  memory_order_seq_cst, memory_order_seq_cst)) {
            return true;
        }
    }
    return false;
}

static inline void
trpi_mailbox_init(trpi_cell *cell)
{
    cell->tail = trpi_cell_stub(cell);
    atomic_store_explicit(&cell->stub_next, NULL, memory_order_relaxed);
    atomic_store_explicit(&cell->head, (uintptr_t)trpi_cell_stub(cell) | TRPI_TOKEN,
                          memory_order_relaxed);
}

/* Return NULL, or the invariant that is broken. With the token (mailbox_check.c). */
const char *trpi_mailbox_check(trpi_cell *cell, trpi_check *check);

/* ---- system messages ------------------------------------------------------------------------- */

/* true: the caller got the token and must schedule. */
static inline bool
trpi_mailbox_push_system(trpi_cell *cell, trpi_sysmsg *sysmsg)
{
    trpi_sysmsg *top = atomic_load_explicit(&cell->sys_head, memory_order_relaxed);

    do {
        sysmsg->next = top;
        /* seq_cst: mailbox-M3; release part pairs with the acquire of take_system */
    } while (!atomic_compare_exchange_weak_explicit(&cell->sys_head, &top, sysmsg,
                                                    memory_order_seq_cst, memory_order_relaxed));
    /* seq_cst: before the read of head; the runner reads it relaxed before each message */
    atomic_store_explicit(&cell->attention, 1, memory_order_seq_cst);
    return trpi_mailbox_claim(cell);
}

/* Take all system messages, oldest first. */
static inline trpi_sysmsg *
trpi_mailbox_take_system(trpi_cell *cell)
{
    trpi_sysmsg *list;
    trpi_sysmsg *reversed = NULL;

    /* Before the exchange: a push after it sets attention again. */
    atomic_store_explicit(&cell->attention, 0, memory_order_relaxed);
    list = atomic_exchange_explicit(&cell->sys_head, NULL, memory_order_acq_rel);
    while (list != NULL) {
        trpi_sysmsg *next = list->next;

        list->next = reversed;
        reversed = list;
        list = next;
    }
    return reversed;
}

#endif
