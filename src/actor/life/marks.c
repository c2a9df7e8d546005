/* marks.c - marks in a mailbox: how far an actor has come with its messages.
 *
 * Why.     The usual mailbox is a queue without a count: a counter would cost every tell of every
 *          program. Remoting must know how much of what it delivered still waits, since it bounds
 *          that for each receiver. It puts a mark behind some thousand bytes, and is called when
 *          the mark is reached. A message between two marks costs nothing more.
 * Shape.   m1 m2 ... m99 MARK(fn, arg, number) m100 ...: a message of type TRPI_TYPE_MARK, which
 *          the run loop hands to trpi_life_auto(), and an ended actor's drain to trpi_life_dead().
 * Must hold.
 *   marks-K1  fn is called exactly once for each mark, also when the actor ends, has ended or never
 *       was, or when there is no memory for the mark.
 *   marks-K2  A mark is no user message: it is neither processed nor dead nor pending, a bound
 *       does not count it, and an ordered mailbox never moves it before earlier messages.
 * Tests.   tests/unit/actor/marks_test.c
 */
#include <string.h>

#include "actor/life/life.h"
#include "actor/kernel/bounded_mailbox.h"
#include "actor/life/life.h"
#include "actor/kernel/mailbox.h"
#include "actor/kernel/run.h"

typedef struct mark {
    trpi_mark_fn fn;
    void *arg;
    uint64_t number;
} mark;

_Static_assert(sizeof(mark) <= TRPI_LINE_PAYLOAD_MAX, "a mark takes one line");

void
trpi_mark_reached(const trp_msg *msg)
{
    mark m;

    memcpy(&m, trp_msg_payload(msg), sizeof m);
    m.fn(m.arg, m.number);
}

void
trpi_inbound_mark(trp_ctx *ctx, uint32_t slot, uint32_t generation, trpi_mark_fn fn, void *arg,
                  uint64_t number)
{
    trp_ref to = { TRPI_NODE_SELF, slot, generation, 0 };
    trp_ref nobody = TRP_REF_NONE;
    mark m = { fn, arg, number };
    trp_msg *msg = trpi_msg_make(ctx->cache, to, nobody, &trpi_mark_type, &m, sizeof m);

    if (msg == NULL) {
        fn(arg, number); /* marks-K1 */
    } else {
        trpi_send(ctx, to, msg);
    }
}

void
trpi_mark_behind(trp_ctx *ctx, uint32_t slot, uint32_t generation, trpi_mark_fn fn, void *arg)
{
    trp_ref to = { TRPI_NODE_SELF, slot, generation, 0 }, nobody = TRP_REF_NONE;
    trpi_cell *cell = trpi_cells_find(ctx->cells, slot);
    mark m = { fn, arg, 0 };
    trp_msg *msg =
        cell == NULL ? NULL : trpi_msg_make(ctx->cache, to, nobody, &trpi_mark_type, &m, sizeof m);

    if (msg == NULL) {
        fn(arg, 0); /* marks-K1 */
    } else {
        trpi_tell_deliver(ctx, cell, to, msg);
    }
}

/* Has it no mail at all? An actor that is suspended may have some. */
static bool
is_idle(trpi_cell *cell)
{
    /* relaxed: a hint */
    return atomic_load_explicit(&cell->head, memory_order_relaxed) ==
           ((uintptr_t)trpi_cell_stub(cell) | TRPI_TOKEN);
}

enum trpi_mail
trpi_inbound_mail(trp_ctx *ctx, uint32_t slot, uint32_t generation)
{
    trpi_cell *cell = trpi_cell_peek(ctx, trpi_ref_local(slot, generation));
    enum trpi_mail mail = TRPI_MAIL_NONE;

    if (cell != NULL) {
        uint8_t kind = atomic_load_explicit(&cell->kind, memory_order_relaxed);
        const trpi_bounded_mailbox *mailbox =
            kind == TRPI_KIND_BOUNDED ? trpi_bounded_get(cell, generation) : NULL;

        if (kind == TRPI_KIND_ACTOR || kind == TRPI_KIND_CHILD_PROXY ||
            (mailbox != NULL && mailbox->capacity == 0 && mailbox->custom == NULL &&
             mailbox->shared == NULL)) {
            mail = mailbox == NULL && is_idle(cell)                        ? TRPI_MAIL_NONE
                   : mailbox != NULL && trpi_bounded_waiting(mailbox) == 0 ? TRPI_MAIL_NONE
                                                                           : TRPI_MAIL_WAITS;
        } else {
            mail = TRPI_MAIL_OF_OTHERS;
        }
    }
    return mail;
}
