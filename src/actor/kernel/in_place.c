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
 *          After two like messages a teller gathers the next ones as records in a buffer of its
 *          own, for which the proxy has reserved room: a comparison and a copy a message. One turn
 *          in place delivers them when the buffer is full, before something else is told to that
 *          node, and when the entry is flushed. If the token is taken they become messages.
 *          A message that carries another one (trpi_carrier) is gathered in its wire form, without
 *          having been made; if it has to become a message it is decoded.
 * Must hold.
 *   in-place-E1  The order of a sender holds: its earlier messages are encoded, or wait in the
 *       proxy, which is then not idle, or in a chain, which is looked at first, or are gathered,
 *       and delivered before anything else is told to that node.
 *   in-place-E2  What was encoded is flushed at the end of the run at the latest: by this ctx or by
 *       the one that holds the token then. A turn of the scheduler flushes at its end; a turn in
 *       place may not, so the proxy is scheduled.
 *   in-place-E3  One level deep: what is told within a turn in place finds the proxy's token taken.
 *   in-place-E4  A proxy whose lane is above its mark, or that holds messages, gets no turn in
 *       place. After TRPI_CHAIN_MSGS_MAX messages, or a buffer of records, the lane gets what has
 *       gathered, if that is a large batch, and its mark is looked at.
 *   in-place-E5  Records are gathered only while the proxy's entry is open, so they are delivered
 *       at the end of the run at the latest. The room that was granted for them is used, given
 *       back, or changed into a reservation of each.
 * Tests.   tests/unit/actor/in_place_test.c, gather_test.c, tests/sim/remote_test.c
 */
#include "actor/kernel/in_place.h"

#include "actor/kernel/mailbox.h"
#include "actor/kernel/schedule.h"
#include "actor/kernel/send_budget.h"
#include "actor/kernel/stats.h"
#include "base/assert.h"
#include "base/alloc.h"
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

/* A message that is not made: its payload is where the teller has it. */
typedef struct far_msg {
    trp_msg header;
    trp_msg_priv_moved payload;
} far_msg;
_Static_assert(offsetof(far_msg, payload) == TRPI_MSG_HEADER_BYTES, "as in a message");

static inline void
header_set(trp_msg *header, trp_ref to, trp_ref sender, const trp_type *type)
{
    header->priv_next = NULL;
    header->priv_to_slot = to.slot;
    header->priv_to_generation = to.generation;
    header->priv_from_node_flags = TRP_MSG_PRIV_OUT_OF_LINE;
    trpi_msg_sender_set(header, sender);
    header->priv_type = (uint16_t)type->number;
    header->priv_bytes = 0;
}

/* ---- gathered messages ----------------------------------------------------------------------- */

/* The length of a record may be written where its wire form has no room (trpi_tell_carried()). */
enum { RECORDS_BYTES = TRPI_GATHER_BYTES + TRPI_RECORD_BYTES };

static inline const trp_type *
gather_type(const trpi_gather *gather)
{
    return gather->carrier != NULL ? gather->carrier : gather->type;
}

/* With the token: gather from now on what is like the message that was just delivered. Either type
 * or carrier is NULL. */
static void
gather_open(trp_ctx *ctx, trpi_cell *proxy, trp_ref to, const trp_type *type,
            const trp_type *carrier, size_t bytes)
{
    trpi_gather *gather = &ctx->gather;
    size_t granted;

    if (gather->records == NULL && (gather->records = trpi_alloc(RECORDS_BYTES)) == NULL) {
        return;
    }
    granted = ctx->system->hooks->proxy_gather(proxy, TRPI_RECORD_BYTES + bytes);
    if (granted == 0) {
        return;
    }
    trpi_assert(granted <= TRPI_GATHER_BYTES && gather->proxy == NULL);
    gather->to = to;
    gather->type = type;
    gather->carrier = carrier;
    gather->last_bytes = 0;
    gather->at = gather->records;
    gather->end = gather->records + granted;
    gather->granted = granted;
    gather->count = 0;
    gather->proxy = proxy;
}

/* Take what was gathered, and its buffer, which gather_end() gives back. */
static trpi_gather
gather_take(trp_ctx *ctx)
{
    trpi_gather taken = ctx->gather;

    ctx->gather = (trpi_gather){ 0 };
    return taken;
}

static void
gather_end(trp_ctx *ctx, trpi_gather *taken)
{
    if (ctx->gather.records == NULL) {
        ctx->gather.records = taken->records;
    } else {
        trpi_free(taken->records); /* a delivery has told another node */
    }
}

/* Reserve for each message what was granted for all of them; also for none. Those that carry others
 * have another size as a message: each is reserved when that is known, and then this is over. */
static void
gather_reserve_each(const trp_ctx *ctx, const trpi_gather *taken)
{
    size_t bytes = (size_t)(taken->at - taken->records);

    ctx->system->hooks->proxy_reserve_each(taken->proxy, taken->granted, taken->count,
                                           bytes - taken->count * TRPI_RECORD_BYTES);
}

static void
gather_release(const trp_ctx *ctx, const trpi_gather *taken)
{
    ctx->system->hooks->proxy_reserve_each(taken->proxy, taken->granted, 0, 0);
}

/* The payload of a message that carries another one, from its record, in scratch; room for it is
 * reserved. false: it was a dead letter. */
static bool
carrier_restore(trp_ctx *ctx, const trpi_gather *taken, const uint8_t *record, size_t bytes,
                trpi_buffer *scratch)
{
    const trpi_kernel_ops *hooks = ctx->system->hooks;

    trpi_buffer_clear(scratch);
    if (hooks->proxy_restore(taken->proxy, taken->carrier, record, bytes, scratch) != TRP_OK) {
        hooks->dead_of(ctx->system, ctx->self, taken->to, TRP_DEAD_NO_MEMORY, taken->carrier, NULL,
                       bytes);
        return false;
    }
    hooks->proxy_reserve_each(taken->proxy, 0, 1, scratch->count);
    return true;
}

/* With the token: deliver one message, for which there is a reservation. */
static void
deliver_reserved(trp_ctx *ctx, const trpi_gather *taken, void *payload, size_t bytes)
{
    far_msg msg;

    header_set(&msg.header, taken->to, ctx->self, gather_type(taken));
    msg.header.priv_from_node_flags |= TRPI_MSG_RESERVED;
    msg.payload = (trp_msg_priv_moved){ payload, bytes, NULL, NULL };
    taken->proxy->ops->deliver(ctx, taken->proxy, &msg.header);
}

/* With the token: deliver them one by one. The payload of each is aligned as in a message. */
static NOINLINE void
gather_deliver_each(trp_ctx *ctx, const trpi_gather *taken)
{
    _Alignas(16) uint8_t payload[TRPI_GATHER_BYTES];

    gather_reserve_each(ctx, taken);
    for (const uint8_t *at = taken->records; at < taken->at;) {
        size_t bytes = trpi_get_u32(at);

        memcpy(payload, at + TRPI_RECORD_BYTES, bytes);
        at += TRPI_RECORD_BYTES + bytes;
        deliver_reserved(ctx, taken, payload, bytes);
    }
}

/* The same for those that carry others. */
static NOINLINE void
carriers_deliver_each(trp_ctx *ctx, const trpi_gather *taken)
{
    trpi_buffer scratch = { 0 };

    for (const uint8_t *at = taken->records; at < taken->at;) {
        size_t bytes = trpi_get_u32(at);

        if (carrier_restore(ctx, taken, at + TRPI_RECORD_BYTES, bytes, &scratch)) {
            deliver_reserved(ctx, taken, scratch.data, scratch.count);
        }
        at += TRPI_RECORD_BYTES + bytes;
    }
    gather_release(ctx, taken);
    trpi_buffer_fini(&scratch);
}

/* With the token: deliver what was taken. */
static void
gather_deliver(trp_ctx *ctx, trpi_gather *taken)
{
    trpi_gathered gathered = { taken->records, (size_t)(taken->at - taken->records), taken->count,
                               taken->carrier != NULL, taken->granted };
    trp_msg header;

    header_set(&header, taken->to, ctx->self, gather_type(taken));
    if (taken->count == 0) {
        gather_release(ctx, taken);
    } else if (!ctx->system->hooks->proxy_gathered(taken->proxy, &header, &gathered)) {
        if (gathered.carries) {
            carriers_deliver_each(ctx, taken);
        } else {
            gather_deliver_each(ctx, taken);
        }
    }
    trpi_count(ctx, &ctx->stats->processed, taken->count);
    gather_end(ctx, taken);
}

/* Another thread has the token: they become messages of the proxy, which that thread runs next. */
static NOINLINE void
gather_push(trp_ctx *ctx, trpi_gather *taken)
{
    const trpi_kernel_ops *hooks = ctx->system->hooks;
    const trp_type *type = gather_type(taken);
    trp_msg *first = NULL, *last = NULL;
    trpi_buffer scratch = { 0 };

    if (taken->carrier == NULL) {
        gather_reserve_each(ctx, taken);
    }
    for (const uint8_t *at = taken->records; at < taken->at;) {
        size_t bytes = trpi_get_u32(at);
        const uint8_t *payload = at + TRPI_RECORD_BYTES;
        trp_msg *msg;

        at = payload + bytes;
        if (taken->carrier != NULL) {
            if (!carrier_restore(ctx, taken, payload, bytes, &scratch)) {
                continue;
            }
            payload = scratch.data;
            bytes = scratch.count;
        }
        msg = trpi_msg_make(ctx->cache, taken->to, ctx->self, type, payload, bytes);
        if (msg == NULL) {
            hooks->proxy_unreserve(taken->proxy, bytes);
            hooks->dead_of(ctx->system, ctx->self, taken->to, TRP_DEAD_NO_MEMORY, type, NULL,
                           bytes);
            continue;
        }
        msg->priv_from_node_flags |= TRPI_MSG_RESERVED;
        if (first == NULL) {
            first = msg;
        } else {
            trpi_msg_next_set(last, msg, __ATOMIC_RELAXED); /* private until pushed */
        }
        last = msg;
    }
    if (taken->carrier != NULL) {
        gather_release(ctx, taken);
    }
    trpi_buffer_fini(&scratch);
    if (first != NULL && trpi_mailbox_push(taken->proxy, first, last)) {
        trpi_schedule(ctx, taken->proxy);
    }
    gather_end(ctx, taken);
}

/* Before something else is told to that node: in-place-E1. */
static NOINLINE void
gather_close(trp_ctx *ctx)
{
    trpi_gather taken = gather_take(ctx);

    ctx->chains[trpi_cell_slot(taken.proxy) % TRPI_CHAINS].count += taken.count;
    if (idle_claim(taken.proxy)) {
        gather_deliver(ctx, &taken);
        token_give_back(ctx, taken.proxy);
    } else {
        gather_push(ctx, &taken);
    }
}

/* Count what was delivered since the last look. With the token the lane gets what has gathered, if
 * that is worth it, and its mark is looked at. in-place-E4 */
static void
proxy_look(trp_ctx *ctx, trpi_cell *proxy, bool token)
{
    trpi_chain *chain = &ctx->chains[trpi_cell_slot(proxy) % TRPI_CHAINS];

    trpi_send_budget_use(ctx, proxy, chain->count);
    chain->count = 0;
    chain->last = (trp_msg *)(void *)trpi_cell_stub(proxy); /* no message: a mark for the flush */
    if (token) {
        proxy_note(ctx, proxy, ctx->system->hooks->proxy_more(ctx, proxy));
    }
}

bool
trpi_gather_renew(trp_ctx *ctx, size_t bytes)
{
    trpi_gather taken;
    trpi_cell *proxy = ctx->gather.proxy;

    if (bytes == 0 || bytes > TRPI_GATHER_BYTES) {
        return false; /* it comes behind them */
    }
    taken = gather_take(ctx);
    ctx->chains[trpi_cell_slot(proxy) % TRPI_CHAINS].count += taken.count;
    if (!idle_claim(proxy)) {
        proxy_look(ctx, proxy, false);
        gather_push(ctx, &taken);
        return false;
    }
    gather_deliver(ctx, &taken);
    proxy_look(ctx, proxy, true);
    if (atomic_load_explicit(&proxy->overloaded, RELAXED) == 0) {
        gather_open(ctx, proxy, taken.to, taken.type, taken.carrier, bytes);
    }
    token_give_back(ctx, proxy);
    return ctx->gather.proxy != NULL;
}

/* ---- gathered messages that carry others ----------------------------------------------------- */

static inline bool
gather_fits(const trpi_gather *gather, size_t bytes)
{
    return (size_t)(gather->end - gather->at) >= TRPI_RECORD_BYTES + bytes;
}

/* Write the wire form behind the records; the buffer may become a larger one. 0: it has none. */
static size_t
carrier_write(const trp_ctx *ctx, trpi_gather *gather, const trpi_carrier *what)
{
    size_t begin = (size_t)(gather->at - gather->records) + TRPI_RECORD_BYTES;
    size_t room = (size_t)(gather->end - gather->records);
    trpi_buffer out = { gather->records, begin, RECORDS_BYTES };
    bool written = ctx->system->hooks->proxy_carry(gather->proxy, what, &out);

    if (UNLIKELY(out.data != gather->records)) {
        gather->records = out.data;
        gather->at = out.data + begin - TRPI_RECORD_BYTES;
        gather->end = out.data + room;
    }
    return written ? out.count - begin : 0;
}

bool
trpi_tell_carried(trp_ctx *ctx, trp_ref to, const trpi_carrier *what)
{
    trpi_gather *gather = &ctx->gather;

    if (what->type != gather->carrier || to.slot != gather->to.slot || to.node != gather->to.node ||
        to.generation != gather->to.generation || ctx->fast_path_node != TRPI_NODE_SELF ||
        what->bytes > TRPI_GATHER_BYTES) {
        return false;
    }
    if (UNLIKELY(!gather_fits(gather, gather->last_bytes)) &&
        !trpi_gather_renew(ctx, gather->last_bytes)) {
        return false;
    }
    for (;;) {
        size_t bytes = carrier_write(ctx, gather, what);

        if (bytes == 0) {
            return false;
        }
        if (LIKELY(gather_fits(gather, bytes))) {
            trpi_put_u32(gather->at, (uint32_t)bytes);
            gather->at += TRPI_RECORD_BYTES + bytes;
            gather->count++;
            gather->last_bytes = (uint32_t)bytes;
            return true;
        }
        if (gather->count == 0 || !trpi_gather_renew(ctx, bytes)) {
            return false;
        }
    }
}

void
trpi_carriers_expect(trp_ctx *ctx, trp_ref to, const trp_type *type, size_t bytes)
{
    trp_dead_reason reason;
    bool slow;
    trpi_cell *proxy;
    const trpi_chain *chain;
    uint32_t index;

    if (ctx->cell == NULL || !ctx->chaining || ctx->gather.proxy != NULL ||
        ctx->fast_path_node != TRPI_NODE_SELF || to.node <= TRPI_NODE_SELF ||
        ctx->chains_open == 0) {
        return;
    }
    proxy = ctx->system->hooks->proxy(ctx->system, to.node, &reason, &slow);
    if (proxy == NULL || slow || atomic_load_explicit(&proxy->overloaded, RELAXED) != 0) {
        return;
    }
    index = trpi_cell_slot(proxy) % TRPI_CHAINS;
    chain = &ctx->chains[index];
    /* in-place-E5 */
    if (chain->cell == proxy && chain->run == ctx->run && chain->first == NULL &&
        (ctx->chains_open & 1ull << index) != 0 && idle_claim(proxy)) {
        gather_open(ctx, proxy, to, NULL, type, bytes);
        token_give_back(ctx, proxy);
    }
}

/* ---- one message ----------------------------------------------------------------------------- */

bool
trpi_in_place_begin(trp_ctx *ctx, trpi_cell *proxy)
{
    const trpi_chain *chain = &ctx->chains[trpi_cell_slot(proxy) % TRPI_CHAINS];

    if (UNLIKELY(ctx->gather.proxy == proxy)) {
        gather_close(ctx);
    }
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

/* Note a message that was delivered. false: it is flushed already. */
static inline bool
message_note(trp_ctx *ctx, trpi_cell *proxy, bool large)
{
    trpi_count(ctx, &ctx->stats->processed, 1);
    if (UNLIKELY(!entry_open(ctx, proxy, trpi_cell_slot(proxy) % TRPI_CHAINS) || large)) {
        proxy_flush(ctx, proxy);
        return false;
    }
    return true;
}

/* in-place-E4 */
static inline bool
is_to_look(const trp_ctx *ctx, trpi_cell *proxy)
{
    uint32_t index = trpi_cell_slot(proxy) % TRPI_CHAINS;

    return ctx->chains[index].count >= TRPI_CHAIN_MSGS_MAX &&
           (ctx->chains_open & 1ull << index) != 0;
}

bool
trpi_in_place_deliver(trp_ctx *ctx, trpi_cell *proxy, trp_msg *msg)
{
    bool large = trp_msg_bytes(msg) >= LARGE_BYTES;

    proxy->ops->deliver(ctx, proxy, msg);
    (void)message_note(ctx, proxy, large);
    token_give_back(ctx, proxy);
    return is_to_look(ctx, proxy);
}

enum trpi_in_place
trpi_in_place_tell(trp_ctx *ctx, trpi_cell *proxy, trp_ref to, trp_ref sender,
                   const trpi_in_place_payload *what, bool bounded)
{
    const trpi_kernel_ops *hooks = ctx->system->hooks;
    far_msg msg;
    bool again;

    header_set(&msg.header, to, sender, what->type);
    again = hooks->proxy_again(proxy, &msg.header, what->data, what->bytes, bounded);
    if (!again) {
        if (bounded && !hooks->proxy_admits(proxy, to, what->bytes)) {
            proxy_flush(ctx, proxy); /* its room counts when the lane has it */
            token_give_back(ctx, proxy);
            return TRPI_IN_PLACE_NO_ROOM;
        }
        msg.payload =
            (trp_msg_priv_moved){ (void *)(uintptr_t)what->data, what->bytes, NULL, NULL };
        proxy->ops->deliver(ctx, proxy, &msg.header);
    }
    /* what delivery told may be gathered now, for another node */
    if (message_note(ctx, proxy, what->bytes >= LARGE_BYTES) && again &&
        ctx->gather.proxy == NULL && sender.node == ctx->self.node &&
        sender.slot == ctx->self.slot && sender.generation == ctx->self.generation) {
        gather_open(ctx, proxy, to, what->type, NULL, what->bytes);
    }
    token_give_back(ctx, proxy);
    return is_to_look(ctx, proxy) ? TRPI_IN_PLACE_LOOK : TRPI_IN_PLACE_DONE;
}

void
trpi_in_place_flush(trp_ctx *ctx, uint32_t index)
{
    trpi_chain *chain = &ctx->chains[index];
    trpi_cell *proxy = chain->cell;
    bool gathered = ctx->gather.proxy == proxy;
    trpi_gather taken;

    if (gathered) {
        taken = gather_take(ctx);
        chain->count += taken.count;
    }
    trpi_send_budget_use(ctx, proxy, chain->count);
    if (chain->count > 1 || chain->last != NULL) {
        ctx->in_place_bursts |= 1ull << index;
    } else {
        ctx->in_place_bursts &= ~(1ull << index);
    }
    chain->count = 0;
    if (LIKELY(idle_claim(proxy))) {
        if (gathered) {
            gather_deliver(ctx, &taken);
        }
        proxy_flush(ctx, proxy);
        token_give_back(ctx, proxy);
        return;
    }
    if (gathered) {
        gather_push(ctx, &taken);
    }
    if ((atomic_load_explicit(&proxy->head, RELAXED) & ~TRPI_TOKEN) ==
        (uintptr_t)trpi_cell_stub(proxy)) {
        ctx->system->hooks->proxy_wake(ctx, proxy); /* in-place-E2: perhaps a turn in place */
    }
}

void
trpi_in_place_look(trp_ctx *ctx, trpi_cell *proxy)
{
    if (idle_claim(proxy)) {
        proxy_look(ctx, proxy, true);
        token_give_back(ctx, proxy);
    } else {
        proxy_look(ctx, proxy, false);
    }
}
