/* in_place.c - turns of a proxy on the thread of an actor that tells another node.
 *
 * Why.     A message to another node would be made, queued in the proxy, taken out, encoded and
 *          freed. When the proxy is idle its teller takes the token, and encodes the payload from
 *          where it is.
 * Shape.   A turn handles one message and gives the token back before the behaviour goes on, so no
 *          code of the program runs with it. A lone message is flushed at once. Of several messages
 *          of one run those after the first are flushed with the chains, at the end of the run; so
 *          is the first, if the run before told several. Until then the proxy has an open entry in
 *          the table of chains, without messages.
 * Must hold.
 *   in-place-E1  The order of a sender holds: its earlier messages are encoded, or wait in the
 *       proxy, which is then not idle, or in a chain, which is looked at first.
 *   in-place-E2  What was encoded is flushed at the end of the run at the latest: by this ctx or by
 *       the one that holds the token then. A turn of the scheduler flushes at its end; a turn in
 *       place may not, so the proxy is scheduled.
 *   in-place-E3  One level deep: what is told within a turn in place finds the proxy's token taken.
 *   in-place-E4  A proxy whose lane is above its mark, or that holds messages, gets no turn in
 *       place. After TRPI_CHAIN_MSGS_MAX messages the lane gets what has gathered, if that is a
 *       large batch, and its mark is looked at.
 * Tests.   tests/unit/actor/in_place_test.c, tests/sim/remote_test.c
 */
#include "actor/kernel/in_place.h"

#include "actor/kernel/mailbox.h"
#include "actor/kernel/schedule.h"
#include "actor/kernel/stats.h"
#include "base/assert.h"
#include "base/atomics.h"

/* A payload of this size and more is flushed at once: the lane's mark is looked at. */
#define LARGE_BYTES 4096u

/* Take the token, if nobody has it and no message waits. acquire: what the last runner wrote. */
static bool
idle_claim(trpi_cell *proxy)
{
    uintptr_t stub = (uintptr_t)trpi_cell_stub(proxy), idle = stub | TRPI_TOKEN;

    return atomic_load_explicit(&proxy->head, RELAXED) == idle &&
           atomic_compare_exchange_strong_explicit(&proxy->head, &idle, stub, memory_order_acq_rel,
                                                   RELAXED);
}

static void
token_give_back(trp_ctx *ctx, trpi_cell *proxy)
{
    trp_msg *done;
    bool idle = trpi_mailbox_go_idle(proxy, &done);

    trpi_assert(!idle || done == NULL); /* its dummy was the stub */
    /* seq_cst: mailbox-M3 */
    if (UNLIKELY(!idle || (atomic_load_explicit(&proxy->sys_head, memory_order_seq_cst) != NULL &&
                           trpi_mailbox_claim(proxy)))) {
        trpi_schedule(ctx, proxy);
    }
}

/* A flush has found the lane above its mark, or not. */
static void
proxy_note(trp_ctx *ctx, trpi_cell *proxy, bool above)
{
    atomic_store_explicit(&proxy->overloaded, above ? TRPI_OVERLOADED_OUTSIDE : 0, RELAXED);
    if (above) {
        ctx->turn.throttled = true;
        ctx->turn.throttled_msgs++;
        ctx->turn.throttled_home = TRPI_DEFER_HOLD;
    }
}

/* With the token, as the next. */
static void
proxy_flush(trp_ctx *ctx, trpi_cell *proxy)
{
    proxy_note(ctx, proxy, proxy->ops->turn_end != NULL && proxy->ops->turn_end(ctx, proxy));
}

bool
trpi_in_place_begin(trp_ctx *ctx, trpi_cell *proxy)
{
    const trpi_chain *chain = &ctx->chains[trpi_cell_slot(proxy) % TRPI_CHAINS];

    if (UNLIKELY(ctx->cell == NULL || !ctx->chaining || ctx->fast_path_node != TRPI_NODE_SELF ||
                 ctx->cell == proxy || atomic_load_explicit(&proxy->overloaded, RELAXED) != 0 ||
                 (chain->cell == proxy && chain->run == ctx->run && chain->first != NULL))) {
        return false;
    }
    return idle_claim(proxy);
}

/* Make the proxy's entry in the table of chains. false: what it has is flushed at once, since it is
 * the first message of this run, or the entry is another cell's. */
static bool
entry_open(trp_ctx *ctx, trpi_cell *proxy, uint32_t index)
{
    trpi_chain *chain = &ctx->chains[index];
    bool first = chain->cell != proxy || chain->run != ctx->run;

    if (first) {
        if ((ctx->chains_open & 1ull << index) != 0) {
            return false; /* delivery has told that cell, a listener of dead letters for example */
        }
        chain->cell = proxy;
        chain->run = ctx->run;
        chain->first = chain->last = NULL;
        chain->count = 0;
        if ((ctx->in_place_bursts & 1ull << index) == 0) {
            return false;
        }
    }
    ctx->chains_open |= 1ull << index;
    chain->count++;
    return true;
}

/* A message was delivered: flush or note it, and give the token back. true: look (in-place-E4). */
static inline bool
message_delivered(trp_ctx *ctx, trpi_cell *proxy, bool large)
{
    uint32_t index = trpi_cell_slot(proxy) % TRPI_CHAINS;

    trpi_count(ctx, &ctx->stats->processed, 1);
    if (UNLIKELY(!entry_open(ctx, proxy, index) || large)) {
        proxy_flush(ctx, proxy);
    }
    token_give_back(ctx, proxy);
    return ctx->chains[index].count == TRPI_CHAIN_MSGS_MAX &&
           (ctx->chains_open & 1ull << index) != 0; /* in-place-E4 */
}

bool
trpi_in_place_deliver(trp_ctx *ctx, trpi_cell *proxy, trp_msg *msg)
{
    bool large = trp_msg_bytes(msg) >= LARGE_BYTES;

    proxy->ops->deliver(ctx, proxy, msg);
    return message_delivered(ctx, proxy, large);
}

/* A message that is not made: its payload is where the teller has it. */
typedef struct far_msg {
    trp_msg header;
    trp_msg_priv_moved payload;
} far_msg;
_Static_assert(offsetof(far_msg, payload) == TRPI_MSG_HEADER_BYTES, "as in a message");

enum trpi_in_place
trpi_in_place_tell(trp_ctx *ctx, trpi_cell *proxy, trp_ref to, trp_ref sender,
                   const trpi_in_place_payload *what, bool bounded)
{
    const trpi_kernel_ops *hooks = ctx->system->hooks;
    far_msg msg;

    msg.header.priv_next = NULL;
    msg.header.priv_to_slot = to.slot;
    msg.header.priv_to_generation = to.generation;
    msg.header.priv_from_node_flags = TRP_MSG_PRIV_OUT_OF_LINE;
    trpi_msg_sender_set(&msg.header, sender);
    msg.header.priv_type = (uint16_t)what->type->number;
    msg.header.priv_bytes = 0;
    if (!hooks->proxy_again(proxy, &msg.header, what->data, what->bytes, bounded)) {
        if (bounded && !hooks->proxy_admits(proxy, to, what->bytes)) {
            proxy_flush(ctx, proxy); /* its room counts when the lane has it */
            token_give_back(ctx, proxy);
            return TRPI_IN_PLACE_NO_ROOM;
        }
        msg.payload =
            (trp_msg_priv_moved){ (void *)(uintptr_t)what->data, what->bytes, NULL, NULL };
        proxy->ops->deliver(ctx, proxy, &msg.header);
    }
    return message_delivered(ctx, proxy, what->bytes >= LARGE_BYTES) ? TRPI_IN_PLACE_LOOK
                                                                     : TRPI_IN_PLACE_DONE;
}

void
trpi_in_place_flush(trp_ctx *ctx, uint32_t index)
{
    trpi_chain *chain = &ctx->chains[index];
    trpi_cell *proxy = chain->cell;

    if (chain->count > 1 || chain->last != NULL) {
        ctx->in_place_bursts |= 1ull << index;
    } else {
        ctx->in_place_bursts &= ~(1ull << index);
    }
    chain->count = 0;
    if (LIKELY(idle_claim(proxy))) {
        proxy_flush(ctx, proxy);
        token_give_back(ctx, proxy);
    } else if ((atomic_load_explicit(&proxy->head, RELAXED) & ~TRPI_TOKEN) ==
               (uintptr_t)trpi_cell_stub(proxy)) {
        ctx->system->hooks->proxy_wake(ctx, proxy); /* in-place-E2: perhaps a turn in place */
    }
}

void
trpi_in_place_look(trp_ctx *ctx, uint32_t index)
{
    trpi_chain *chain = &ctx->chains[index];
    trpi_cell *proxy = chain->cell;

    chain->count = 0;
    chain->last = (trp_msg *)(void *)trpi_cell_stub(proxy); /* no message: a mark for the flush */
    if (idle_claim(proxy)) {
        proxy_note(ctx, proxy, ctx->system->hooks->proxy_more(ctx, proxy));
        token_give_back(ctx, proxy);
    }
}
