/* peek.c - the peek mailbox: its first message stays until it is acknowledged.
 *
 * Why.     Usually the message at which an actor fails is lost. This mailbox delivers it again
 *          after the restart, a limited number of times, until trp_mailbox_ack() removes it.
 * Shape.   waiting: [first] [..] [last]     dequeue returns a copy of first; ack removes first
 * Must hold.
 *   peek-K1  A message is delivered retries_max + 1 times at most; the last time it is removed.
 *   peek-K2  Only the message that is being handled can be acknowledged: `given` is its copy, and
 *       out of the mailbox. A message out of the stash cannot, though it may have the address of a
 *       freed copy.
 *   peek-K4  Each delivery of a traced message is a hop with a span of its own.
 *   peek-K3  A message of the library is delivered once: no actor could acknowledge a poison pill,
 *       and trp_terminated comes once for each watch.
 * Cost.    A copy of each message.
 * Tests.   tests/unit/actor/peek_test.c
 * Sources. CONTRIB-40, CONTRIB-41, GAP-09
 */
#include "actor/kernel/bounded_mailbox.h"

#include "actor/kernel/cells.h"
#include "actor/kernel/extra.h"
#include "actor/kernel/trace.h"
#include "base/alloc.h"

typedef struct peek {
    trpi_msg_list waiting;
    const trp_msg *given; /* NULL: none */
    trp_system *system;
    uint32_t tries; /* deliveries of the first message so far */
    uint32_t retries_max;
} peek;

static trp_err
peek_create(void *arg, trp_system *system, trp_ref owner, void **ret_mailbox)
{
    const trp_mailbox_options *options = arg;
    peek *p = trpi_alloc(sizeof *p);

    (void)owner;
    if (p == NULL) {
        return TRP_ENOMEM;
    }
    p->system = system;
    p->retries_max = options->max_retries;
    *ret_mailbox = p;
    return TRP_OK;
}

static trp_err
peek_enqueue(void *mailbox, trp_ref receiver, trp_msg *msg)
{
    (void)receiver;
    trpi_msg_list_append(&((peek *)mailbox)->waiting, msg);
    return TRP_OK;
}

/* Number a delivery of the first message, if it is in a trace (peek-K4). */
static trp_msg *
attempt_mark(const peek *p, trp_msg *msg, uint32_t attempt)
{
    trpi_trailer *trailer = msg == NULL ? NULL : (trpi_trailer *)(uintptr_t)trpi_msg_traced(msg);

    if (trailer != NULL && p->retries_max > 0 && !trpi_msg_is_own(msg)) {
        trailer->trace.span = attempt > 1 ? trpi_trace_span(p->system) : trailer->trace.span;
        trailer->trace.attempt = attempt;
    }
    return msg;
}

static trp_msg *
peek_dequeue(void *mailbox)
{
    peek *p = mailbox;
    const trp_msg *first = p->waiting.first;
    trp_msg *copy;

    p->given = NULL;
    /* without memory for a copy the message itself is delivered: once is better than never */
    /* peek-K1, peek-K3 */
    if (first != NULL && !trpi_msg_is_own(first) && p->tries < p->retries_max &&
        trp_msg_dup(first, &copy) == TRP_OK) {
        p->tries++;
        p->given = copy;
        return attempt_mark(p, copy, p->tries);
    }
    uint32_t attempt = p->tries + 1;
    p->tries = 0;
    return attempt_mark(p, trpi_msg_list_take(&p->waiting), attempt);
}

static uint32_t
peek_count(void *mailbox)
{
    return ((peek *)mailbox)->waiting.count;
}

static int
peek_has(void *mailbox)
{
    return peek_count(mailbox) > 0;
}

static void
peek_clean_up(void *mailbox, void (*dead)(void *arg, trp_msg *msg), void *arg)
{
    trp_msg *msg;

    while ((msg = trpi_msg_list_take(&((peek *)mailbox)->waiting)) != NULL) {
        dead(arg, msg);
    }
}

const trp_mailbox_ops trpi_peek_ops = { sizeof trpi_peek_ops, peek_create, peek_enqueue,
                                        peek_dequeue,         peek_count,  peek_has,
                                        peek_clean_up,        trpi_free,   NULL };

trp_err
trp_mailbox_ack(trp_ctx *ctx)
{
    trpi_bounded_mailbox *bounded =
        ctx->cell != NULL ? trpi_bounded_get(ctx->cell, ctx->cell->generation_run) : NULL;
    peek *p;

    if (bounded == NULL || bounded->type->options.kind != TRP_MAILBOX_KIND_PEEK) {
        return TRP_ESTATE;
    }
    p = bounded->custom;
    if (p->given != NULL && p->given == ctx->msg && ctx->turn.unqueued == ctx->msg) { /* peek-K2 */
        trpi_msg_free(ctx->cache, trpi_msg_list_take(&p->waiting));
        p->given = NULL;
        p->tries = 0;
        trpi_bounded_recount(ctx, ctx->cell, bounded);
    }
    return TRP_OK;
}
