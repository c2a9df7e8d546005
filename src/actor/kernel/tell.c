/* tell.c - telling: local push with chains, dead letters; public functions (more: tell_forms.c).
 *
 * Why.     A tell costs one exchange on the receiver's cache line. When a run tells the same
 *          receiver repeatedly, even that is too much: later messages are batched in a chain and
 *          pushed with one exchange.
 * Shape.   ctx->chains: 64 entries, keyed by the cell's address. The first message to a cell in a
 *          run is pushed at once (it may be the only one, and the receiver can start); the second
 *          opens the chain.
 *          Two actors that answer each other need no exchange (deliver_direct()): mailbox-M5.
 * Must hold.
 *   tell-H1  Messages of one run to one cell arrive in order: an entry belongs to one cell for the
 *       whole run, or is flushed when it is evicted.
 *   tell-H2  Chains are pushed before the sender's token is given up and before anything that may
 *       block. (run.c; leave)
 *   tell-H3  A message is counted once: processed, or dead.
 * Tests.   tests/unit/actor/tell_test.c, direct_delivery_test.c, tests/stress/churn_test.c
 */
#include <stdio.h>
#include <string.h>

#include "actor/kernel/bounded_mailbox.h"
#include "actor/kernel/cells.h"
#include "actor/kernel/dispatcher.h"
#include "actor/kernel/in_place.h"
#include "actor/kernel/mailbox.h"
#include "actor/kernel/misuse.h"
#include "actor/kernel/schedule.h"
#include "actor/kernel/send_budget.h"
#include "actor/kernel/run.h"
#include "actor/kernel/trailer.h"
#include "base/assert.h"
#include "base/atomics.h"
#include "base/payload.h"

/* ---- chains ---------------------------------------------------------------------------------- */

static void
chain_push(trp_ctx *ctx, uint32_t index)
{
    trpi_chain *chain = &ctx->chains[index];
    trp_msg *first = chain->first;

    if (UNLIKELY(trpi_in_place_is_owed(chain))) {
        ctx->chains_open &= ~(1ull << index);
        trpi_in_place_flush(ctx, index);
        return;
    }
    trpi_send_budget_use(ctx, chain->cell, chain->count); /* run-R6 */
    ctx->chains_open &= ~(1ull << index);
    chain->first = NULL;
    chain->count = 0;
    if (trpi_mailbox_push(chain->cell, first, chain->last)) {
        trpi_schedule(ctx, chain->cell);
    }
}

void
trpi_chains_flush(trp_ctx *ctx)
{
    while (ctx->chains_open != 0) {
        chain_push(ctx, (uint32_t)__builtin_ctzll(ctx->chains_open));
    }
}

/* Throttle the sender after its present message, if it is not overloaded itself (run.c). */
static inline void
overload_note(trp_ctx *ctx, trpi_cell *cell)
{
    if (UNLIKELY(atomic_load_explicit(&cell->overloaded, RELAXED) != 0)) {
        ctx->turn.throttled = true;
        ctx->turn.throttled_msgs++;
        ctx->turn.throttled_home =
            atomic_load_explicit(&cell->overloaded, RELAXED) == TRPI_OVERLOADED_OUTSIDE
                ? TRPI_DEFER_HOLD
                : atomic_load_explicit(&cell->task.home, RELAXED);
    }
}

void
trpi_tell_note_unbounded(trp_ctx *ctx, trpi_cell *cell)
{
    overload_note(ctx, cell);
    trpi_send_budget_use(ctx, cell, 1);
}

static NOINLINE void
chain_full(trp_ctx *ctx, uint32_t index)
{
    trpi_cell *cell = ctx->chains[index].cell;

    chain_push(ctx, index);
    overload_note(ctx, cell);
}

static inline __attribute__((always_inline)) void
push_one(trp_ctx *ctx, trpi_cell *cell, bool slows, trp_msg *msg)
{
    if (slows) {
        overload_note(ctx, cell);
    }
    if (trpi_mailbox_push(cell, msg, msg)) {
        trpi_schedule(ctx, cell);
    }
}

/* Tell a cell whose table entry holds the open chain of another one. */
static NOINLINE void
chain_evict(trp_ctx *ctx, trpi_cell *cell, trp_msg *msg)
{
    uint32_t index = cell->task.id % TRPI_CHAINS;

    chain_push(ctx, index); /* tell-H1 */
    ctx->chains[index].cell = cell;
    ctx->chains[index].run = ctx->run;
    push_one(ctx, cell, true, msg);
}

/* Does this cell belong to the calling-thread dispatcher? A hint: it may have ended meanwhile. */
static bool
is_calling(trp_ctx *ctx, const trpi_cell *cell)
{
    return __atomic_load_n(&cell->task.dispatch, __ATOMIC_RELAXED) == TRPI_DISPATCH_HERE &&
           trpi_dispatcher_get(ctx->system, __atomic_load_n(&cell->task.number, __ATOMIC_RELAXED))
                   ->options.kind == TRP_DISPATCHER_CALLING;
}

void
trpi_tell_wait(trp_ctx *ctx, const trpi_cell *cell)
{
    if (ctx->worker == NULL && ctx->cell == NULL && ctx->nested_held == 0 &&
        is_calling(ctx, cell)) {
        /* another thread runs it: TEST-12. (With nested_held it may be this one: nested-turn-E3) */
        trpi_nested_wait(cell);
    }
}

/* Deliver without chains: from a foreign thread, or one that may block. */
static NOINLINE void
deliver_unchained(trp_ctx *ctx, trpi_cell *cell, trp_msg *msg)
{
    overload_note(ctx, cell);
    if (trpi_mailbox_push(cell, msg, msg)) {
        trpi_schedule(ctx, cell);
    } else {
        trpi_tell_wait(ctx, cell);
    }
}

/* Queue msg for the cell of this slot; msg->priv_next is NULL. Rare paths are tail calls, so that
 * the usual one needs no stack frame. slows: the cell may be overloaded. */
static inline __attribute__((always_inline)) void
deliver_to_slot(trp_ctx *ctx, trpi_cell *cell, uint32_t slot, bool slows, trp_msg *msg)
{
    uint32_t index = slot % TRPI_CHAINS;
    trpi_chain *chain = &ctx->chains[index];
    uint32_t run = ctx->run;

    if (UNLIKELY(!ctx->chaining)) {
        deliver_unchained(ctx, cell, msg);
        return;
    }
    if (chain->run != run) { /* the usual case: the entry's first use in this run */
        chain->cell = cell;
        chain->run = run;
        push_one(ctx, cell, slows, msg);
        return;
    }
    if (chain->cell == cell) { /* told before in this run */
        if (chain->first == NULL) {
            chain->first = msg;
            ctx->chains_open |= 1ull << index;
        } else {
            trpi_msg_next_set(chain->last, msg, __ATOMIC_RELAXED); /* private until pushed */
        }
        chain->last = msg;
        if (UNLIKELY(++chain->count == TRPI_CHAIN_MSGS_MAX)) {
            chain_full(ctx, index);
        }
        return;
    }
    if (UNLIKELY((ctx->chains_open & 1ull << index) != 0)) {
        chain_evict(ctx, cell, msg);
        return;
    }
    chain->cell = cell;
    push_one(ctx, cell, slows, msg);
}

static inline __attribute__((always_inline)) void
deliver_to_cell(trp_ctx *ctx, trpi_cell *cell, trp_msg *msg)
{
    deliver_to_slot(ctx, cell, trpi_cell_slot(cell), true, msg);
}

/* ---- dead letters ---------------------------------------------------------------------------- */

/* Report a message that found no memory: a dead letter without payload. */
static void
dead_no_memory(trp_ctx *ctx, trp_ref to, trp_ref sender, const trp_type *type)
{
    trp_msg header = { .priv_to_slot = to.slot, .priv_to_generation = to.generation };

    trpi_msg_sender_set(&header, sender);
    header.priv_type = (uint16_t)type->number;
    trpi_dead(ctx, to, &header, TRP_DEAD_NO_MEMORY);
}

static NOINLINE void
dead_and_free(trp_ctx *ctx, trp_ref to, trp_msg *msg, trp_dead_reason reason)
{
    trpi_dead(ctx, to, msg, reason);
    trpi_msg_free(ctx->cache, msg);
}

/* Send msg to another node, or, with node 0, to the dead letters. */
static NOINLINE void
send_far(trp_ctx *ctx, trp_ref to, trp_msg *msg)
{
    trp_dead_reason reason;
    trpi_cell *proxy;
    bool slow;

    if (to.node == 0) {
        dead_and_free(ctx, to, msg, TRP_DEAD_NO_SENDER);
        return;
    }
    proxy = ctx->system->hooks->proxy(ctx->system, to.node, &reason, &slow);
    if (proxy == NULL) {
        dead_and_free(ctx, to, msg, reason);
        return;
    }
    if (UNLIKELY(slow) && ctx->system->hooks->proxy_slows(ctx->system, to)) {
        ctx->turn.throttled = true; /* as for a lane over its mark, but for this recipient only */
        ctx->turn.throttled_msgs++;
        ctx->turn.throttled_home = TRPI_DEFER_HOLD;
    }
    if (trpi_in_place_begin(ctx, proxy)) {
        if (trpi_in_place_deliver(ctx, proxy, msg)) {
            trpi_in_place_look(ctx, proxy);
        }
        trpi_msg_free(ctx->cache, msg);
        return;
    }
    deliver_to_cell(ctx, proxy, msg);
}

/* Tell an actor of another node without making a message. false: nothing was done. */
static NOINLINE bool
tell_in_place(trp_ctx *ctx, trp_ref to, trp_ref sender, const trp_type *type, const void *payload,
              size_t bytes)
{
    trpi_in_place_payload what = { type, payload, bytes };
    trp_dead_reason reason;
    bool slow;
    trpi_cell *proxy = ctx->system->hooks->proxy(ctx->system, to.node, &reason, &slow);

    if (proxy == NULL || slow || !trpi_in_place_begin(ctx, proxy)) {
        return false;
    }
    if (trpi_in_place_tell(ctx, proxy, to, sender, &what, false) == TRPI_IN_PLACE_LOOK) {
        trpi_in_place_look(ctx, proxy);
    }
    return true;
}

static inline bool
asks_first(const trpi_cell *cell)
{
    /* relaxed: routed.c and bounded_mailbox.c check again */
    return UNLIKELY(atomic_load_explicit(&cell->kind, RELAXED) >= TRPI_KIND_ROUTER);
}

/* Deliver to a router (its routees get msg, unless it is for the router itself), or to a bounded
 * mailbox (if there is room). */
static NOINLINE void
deliver_asking(trp_ctx *ctx, trpi_cell *cell, trp_ref to, trp_msg *msg)
{
    if (atomic_load_explicit(&cell->kind, RELAXED) == TRPI_KIND_BOUNDED) {
        (void)trpi_bounded_tell(ctx, cell, to, msg, false);
    } else if (!ctx->system->hooks->routed_take(ctx, cell, to, msg)) {
        deliver_to_cell(ctx, cell, msg);
    }
}

/* Deliver to a cell off the fast path, or to one that is overloaded. */
static NOINLINE void
deliver_any(trp_ctx *ctx, trpi_cell *cell, trp_ref to, trp_msg *msg)
{
    if (asks_first(cell)) {
        deliver_asking(ctx, cell, to, msg);
    } else {
        deliver_to_cell(ctx, cell, msg);
    }
}

/* ---- telling --------------------------------------------------------------------------------- */

/* Copy fewer than 33 bytes without a call. */
static inline __attribute__((always_inline)) void
copy_small(char *to, const char *from, size_t bytes)
{
    if (LIKELY(bytes == 8)) {
        memcpy(to, from, 8);
    } else if (bytes >= 16) {
        memcpy(to, from, 16);
        memcpy(to + bytes - 16, from + bytes - 16, 16);
    } else if (bytes >= 8) {
        memcpy(to, from, 8);
        memcpy(to + bytes - 8, from + bytes - 8, 8);
    } else if (bytes >= 4) {
        memcpy(to, from, 4);
        memcpy(to + bytes - 4, from + bytes - 4, 4);
    } else if (bytes > 0) {
        to[0] = from[0];
        to[bytes / 2] = from[bytes / 2];
        to[bytes - 1] = from[bytes - 1];
    }
}

/* serialize-messages: encode and decode the message. false: it was a dead letter. */
static bool
check_rare(trp_ctx *ctx, trp_ref to, trp_msg **msg)
{
    if (ctx->system->options.serialize_messages == 0 || to.node != TRPI_NODE_SELF ||
        ctx->system->hooks->round_trip(ctx, msg) == TRP_OK) {
        return true;
    }
    dead_and_free(ctx, to, *msg, TRP_DEAD_NOT_ENCODABLE);
    return false;
}

/* Make a message that carries on what is carried at present: with a trailer. */
static trp_msg *__attribute__((noinline))
make_carrying(trp_ctx *ctx, trp_ref to, trp_ref sender, const trp_type *type, const void *payload,
              size_t bytes)
{
    void *place;
    trp_msg *msg = trpi_msg_make_trailed(ctx->cache, type, bytes, &place);

    if (msg == NULL) {
        return NULL;
    }
    msg->priv_to_slot = to.slot;
    msg->priv_to_generation = to.generation;
    trpi_msg_sender_set(msg, sender);
    if (bytes > 0) {
        memcpy(place, payload, bytes);
    }
    trpi_trailer_pass(ctx, (trpi_trailer *)(void *)((char *)msg + trpi_msg_trailer_at(msg)));
    return msg;
}

trp_msg *
trpi_tell_make(trp_ctx *ctx, trp_ref to, trp_ref sender, const trp_type *type, const void *payload,
               size_t bytes)
{
    return ctx->carried != NULL ? make_carrying(ctx, to, sender, type, payload, bytes)
                                : trpi_msg_make(ctx->cache, to, sender, type, payload, bytes);
}

/* Make a message while an interaction is carried, with serialize-messages or with debug checks.
 * NULL: it was a dead letter. */
static trp_msg *__attribute__((noinline))
make_rare(trp_ctx *ctx, trp_ref to, trp_ref sender, const trp_type *type, const void *payload,
          size_t bytes)
{
    trp_msg *msg;

    if (trpi_misuse_is_wanted()) { /* then all tells pass here */
        trpi_misuse_ctx(ctx, "trp_tell");
    }
    msg = trpi_tell_make(ctx, to, sender, type, payload, bytes);
    if (msg == NULL) {
        dead_no_memory(ctx, to, sender, type);
    } else if (type->number != 0 && !check_rare(ctx, to, &msg)) {
        return NULL;
    }
    return msg;
}

/* Report a payload shorter than the struct of its type (as of a failed builder): unreadable. */
static void __attribute__((noinline, cold))
dead_too_short(trp_ctx *ctx, trp_ref to, trp_ref sender, const trp_type *type, size_t bytes)
{
    ctx->system->hooks->dead_of(ctx->system, sender, to, TRP_DEAD_NOT_ENCODABLE, type, NULL, bytes);
}

/* Tell with all checks: the general path. */
void
trpi_tell(trp_ctx *ctx, trp_ref to, trp_ref sender, const trp_type *type, const void *payload,
          size_t bytes)
{
    trp_msg *msg;
    trpi_cell *cell;

    if ((type->flags & TRP_TYPE_VARIABLE) == 0) {
        bytes = type->bytes;
    } else if (UNLIKELY(bytes < type->bytes)) {
        dead_too_short(ctx, to, sender, type, bytes);
        return;
    }
    if (LIKELY(ctx->fast_path_node == TRPI_NODE_SELF)) {
        if (to.node > TRPI_NODE_SELF && type->number != 0 &&
            tell_in_place(ctx, to, sender, type, payload, bytes)) {
            return;
        }
        msg = trpi_msg_make(ctx->cache, to, sender, type, payload, bytes);
        if (UNLIKELY(msg == NULL)) {
            dead_no_memory(ctx, to, sender, type);
            return;
        }
    } else if ((msg = make_rare(ctx, to, sender, type, payload, bytes)) == NULL) {
        return;
    }
    if (UNLIKELY(type->number == 0)) { /* not registered: no receiver knows the type */
        ctx->system->hooks->dead_of(ctx->system, sender, to, TRP_DEAD_NOT_ENCODABLE, type, payload,
                                    bytes);
        trpi_msg_free(ctx->cache, msg);
        return;
    }
    if (UNLIKELY(to.node != TRPI_NODE_SELF)) {
        send_far(ctx, to, msg);
        return;
    }
    cell = trpi_cells_at(ctx->cells, to.slot);
    if (UNLIKELY(cell == NULL)) {
        dead_and_free(ctx, to, msg, TRP_DEAD_NO_SUCH_ACTOR);
        return;
    }
    /* relaxed: an early check only; the receiver's check decides (run-R2) */
    if (UNLIKELY(atomic_load_explicit(&cell->generation, RELAXED) != to.generation)) {
        dead_and_free(ctx, to, msg, TRP_DEAD_STALE);
        return;
    }
    deliver_any(ctx, cell, to, msg);
}

static NOINLINE void
tell_any(trp_ctx *ctx, trp_ref to, const trp_type *type, const void *payload, size_t bytes)
{
    if (!trpi_tell_gathered(ctx, to, type, payload, bytes)) {
        trpi_tell(ctx, to, ctx->self, type, payload, bytes);
    }
}

/* Fill in a message but for its next pointer. */
static inline __attribute__((always_inline)) void
msg_fill(const trp_ctx *ctx, trp_msg *msg, trp_ref to, uint32_t number, const void *payload,
         size_t bytes, uint32_t flags)
{
    trpi_pair_set(&msg->priv_to_slot, to.slot, to.generation);
    trpi_pair_set(&msg->priv_from_slot, ctx->self.slot, ctx->self.generation);
    msg->priv_from_node_flags = TRPI_NODE_SELF | flags;
    msg->priv_type = (uint16_t)number;
    msg->priv_bytes = (uint16_t)bytes;
    if (bytes <= TRPI_LINE_PAYLOAD_MAX) {
        copy_small((char *)msg + TRPI_MSG_HEADER_BYTES, payload, bytes);
    } else {
        memcpy((char *)msg + TRPI_MSG_HEADER_BYTES, payload, bytes);
    }
}

/* The fast path: tell an actor of this node, with a block of this class. All checks come before the
 * first effect. false: a rare case, and nothing was done. */
static inline __attribute__((always_inline)) bool
tell_own(trp_ctx *ctx, trp_ref to, const trp_type *type, const void *payload, size_t bytes,
         uint32_t class_index, uint32_t flags)
{
    trpi_magazine *magazine;
    trpi_cell *cell;
    trp_msg *msg;

    if (UNLIKELY(type->number == 0 || to.node != ctx->fast_path_node || TRPI_LINES_CHECKED)) {
        return false;
    }
    cell = trpi_cells_at(ctx->cells, to.slot);
    if (UNLIKELY(cell == NULL ||
                 atomic_load_explicit(&cell->generation, RELAXED) != to.generation)) {
        return false;
    }
    magazine = ctx->cache->classes[class_index].current;
    if (UNLIKELY(magazine->count == 0)) {
        return false;
    }
    msg = magazine->blocks[--magazine->count];
    trpi_msg_next_set(msg, NULL, __ATOMIC_RELAXED);
    msg_fill(ctx, msg, to, type->number, payload, bytes, flags);
    if (UNLIKELY(!trpi_cell_takes_all(cell))) {
        deliver_any(ctx, cell,
                    (trp_ref){ TRPI_NODE_SELF, msg->priv_to_slot, msg->priv_to_generation, 0 },
                    msg);
    } else {
        deliver_to_slot(ctx, cell, trpi_cell_slot(cell), false, msg);
    }
    return true;
}

/* Tell a payload that needs more than one cache line, with a block of its class. */
static NOINLINE void
tell_larger(trp_ctx *ctx, trp_ref to, const trp_type *type, const void *payload, size_t bytes)
{
    uint32_t class_index =
        bytes <= TRP_INLINE_PAYLOAD_MAX ? trpi_class_of(TRPI_MSG_HEADER_BYTES + bytes) : 0;

    if (bytes <= TRPI_LINE_PAYLOAD_MAX || class_index == 0 ||
        ctx->cache->classes[class_index].current == NULL ||
        !tell_own(ctx, to, type, payload, bytes, class_index, 0)) {
        tell_any(ctx, to, type, payload, bytes);
    }
}

/* Tell by a push. Rare cases go to tell_any(): the usual one needs no call but the last. */
static inline __attribute__((always_inline)) void
tell_pushed(trp_ctx *ctx, trp_ref to, const trp_type *type, const void *payload, size_t bytes)
{
    if (UNLIKELY(bytes > TRPI_LINE_PAYLOAD_MAX)) {
        tell_larger(ctx, to, type, payload, bytes);
    } else if (UNLIKELY(!tell_own(ctx, to, type, payload, bytes, 0, 0))) {
        tell_any(ctx, to, type, payload, bytes);
    }
}

static NOINLINE void
tell_pushed_instead(trp_ctx *ctx, trp_ref to, const trp_type *type, const void *payload,
                    size_t bytes)
{
    tell_pushed(ctx, to, type, payload, bytes);
}

/* Direct delivery to the cell that this worker retains, without a block and without the exchange.
 * Its last turn was a plain one, so it takes all messages; later changes are handled before this
 * message (run.c). The cell's address comes from the retained task, not from the slot, so that the
 * processor need not wait for the ref in the present message. false: the cell is not retained any
 * more, or a message waits there. */
static inline __attribute__((always_inline)) bool
deliver_direct(trp_ctx *ctx, trp_ref to, const trp_type *type, const void *payload, size_t bytes)
{
    /* relaxed: a hint; the memory of a cell remains one */
    trpi_task *task = atomic_load_explicit(&ctx->handoff->task, RELAXED);
    trpi_cell *cell;
    trp_msg *msg;

    if (UNLIKELY(task == NULL || task->id != to.slot || to.node != ctx->fast_path_node ||
                 type->number == 0 || bytes > TRPI_LINE_PAYLOAD_MAX)) {
        return false;
    }
    cell = trpi_cell_of_task(task);
    if (UNLIKELY(atomic_load_explicit(&cell->generation, RELAXED) != to.generation ||
                 !trpi_handoff_enter(ctx->handoff, task))) {
        return false;
    }
    msg = trpi_mailbox_direct_block(cell);
    if (LIKELY(msg != NULL)) {
        msg_fill(ctx, msg, to, type->number, payload, bytes, 0);
        trpi_mailbox_deliver_direct(cell);
    }
    trpi_handoff_leave(ctx->handoff);
    return msg != NULL;
}

static NOINLINE void
tell_direct_variable(trp_ctx *ctx, trp_ref to, const trp_type *type, const void *payload,
                     size_t bytes)
{
    if (UNLIKELY(!deliver_direct(ctx, to, type, payload, bytes))) {
        tell_pushed_instead(ctx, to, type, payload, bytes);
    }
}

/* The same for a type of fixed size. */
static NOINLINE void
tell_direct(trp_ctx *ctx, trp_ref to, const trp_type *type, const void *payload, size_t bytes)
{
    bytes = type->bytes;
    if (UNLIKELY(!deliver_direct(ctx, to, type, payload, bytes))) {
        tell_pushed_instead(ctx, to, type, payload, bytes);
    }
}

/* Tell a payload of any length. Out of line: it would cost the other paths registers. */
static NOINLINE void
tell_variable(trp_ctx *ctx, trp_ref to, const trp_type *type, const void *payload, size_t bytes)
{
    if (UNLIKELY(bytes < type->bytes)) {
        tell_any(ctx, to, type, payload, bytes); /* reports the dead letter */
    } else if (bytes > TRPI_LINE_PAYLOAD_MAX) {
        tell_larger(ctx, to, type, payload, bytes);
    } else if (to.slot == ctx->handoff_slot) {
        tell_direct_variable(ctx, to, type, payload, bytes);
    } else {
        tell_pushed_instead(ctx, to, type, payload, bytes);
    }
}

void
trp_tell(trp_ctx *ctx, trp_ref to, const trp_type *type, const void *payload, size_t bytes)
{
    TRPI_USE_TELLING(ctx);
    if (UNLIKELY((type->flags & TRP_TYPE_VARIABLE) != 0)) {
        tell_variable(ctx, to, type, payload, bytes);
    } else if (UNLIKELY(to.slot == ctx->handoff_slot)) {
        tell_direct(ctx, to, type, payload, bytes);
    } else {
        tell_pushed(ctx, to, type, payload, type->bytes);
    }
}

void
trpi_tell_deliver(trp_ctx *ctx, trpi_cell *cell, trp_ref to, trp_msg *msg)
{
    trpi_msg_next_set(msg, NULL, __ATOMIC_RELAXED);
    deliver_any(ctx, cell, to, msg);
}

bool
trpi_tell_live(trp_ctx *ctx, uint32_t slot, uint32_t generation, const trp_type *type,
               const void *payload, size_t bytes)
{
    trp_ref to = { TRPI_NODE_SELF, slot, generation, 0 };

    if (LIKELY((type->flags & TRP_TYPE_VARIABLE) == 0)) {
        bytes = type->bytes;
    }
    return LIKELY(bytes <= TRPI_LINE_PAYLOAD_MAX && bytes >= type->bytes) &&
           LIKELY(tell_own(ctx, to, type, payload, bytes, 0, TRPI_MSG_ENTITY));
}

/* Try to tell an actor of another node: TRP_EAGAIN if its lane is full. */
static trp_err
try_tell_far(trp_ctx *ctx, trp_ref to, const trp_type *type, const void *payload, size_t bytes)
{
    trp_dead_reason reason;
    bool promised = false, slow;
    trpi_cell *proxy = ctx->system->hooks->proxy(ctx->system, to.node, &reason, &slow);
    trp_msg *msg;
    trp_err err;

    if (proxy == NULL) {
        trpi_tell(ctx, to, ctx->self, type, payload, bytes); /* a dead letter */
        return TRP_OK;
    }
    bytes = (type->flags & TRP_TYPE_VARIABLE) == 0 ? type->bytes : bytes;
    if (LIKELY(ctx->carried == NULL) && trpi_in_place_begin(ctx, proxy)) {
        trpi_in_place_payload what = { type, payload, bytes };
        enum trpi_in_place done = trpi_in_place_tell(ctx, proxy, to, ctx->self, &what, true);

        if (UNLIKELY(done == TRPI_IN_PLACE_LOOK)) {
            trpi_in_place_look(ctx, proxy);
        }
        if (done != TRPI_IN_PLACE_NO_ROOM) {
            return TRP_OK;
        }
    }
    err = ctx->system->hooks->proxy_reserve(ctx, proxy, to, bytes, &promised);
    if (err != TRP_OK) {
        return err;
    }
    msg = LIKELY(ctx->fast_path_node == TRPI_NODE_SELF)
              ? trpi_msg_make(ctx->cache, to, ctx->self, type, payload, bytes)
              : make_rare(ctx, to, ctx->self, type, payload, bytes);
    if (msg == NULL) {
        if (promised) {
            ctx->system->hooks->proxy_unreserve(proxy, bytes);
        }
        if (ctx->fast_path_node == TRPI_NODE_SELF) { /* else make_rare() has reported it */
            dead_no_memory(ctx, to, ctx->self, type);
        }
        return TRP_OK;
    }
    if (promised) {
        msg->priv_from_node_flags |= TRPI_MSG_RESERVED;
    }
    deliver_to_cell(ctx, proxy, msg);
    return TRP_OK;
}

/* trp_try_tell(): only a full mailbox or lane refuses. */
static trp_err
try_tell(trp_ctx *ctx, trp_ref to, const trp_type *type, const void *payload, size_t bytes)
{
    trpi_cell *cell;
    trp_msg *msg;
    trp_err err;

    if ((type->flags & TRP_TYPE_VARIABLE) != 0 && bytes < type->bytes) {
        return TRP_EINVAL;
    }
    if (to.node > TRPI_NODE_SELF && type->number != 0) {
        return try_tell_far(ctx, to, type, payload, bytes);
    }
    cell = trpi_cell_peek(ctx, to);
    if (cell == NULL || type->number == 0 ||
        atomic_load_explicit(&cell->kind, RELAXED) != TRPI_KIND_BOUNDED) {
        trpi_tell(ctx, to, ctx->self, type, payload, bytes);
        return TRP_OK;
    }
    bytes = (type->flags & TRP_TYPE_VARIABLE) == 0 ? type->bytes : bytes;
    msg = make_rare(ctx, to, ctx->self, type, payload, bytes);
    if (msg == NULL) {
        return TRP_OK;
    }
    err = trpi_bounded_tell(ctx, cell, to, msg, true);
    if (err != TRP_OK) {
        trpi_msg_free(ctx->cache, msg);
    }
    return err;
}

trp_err
trp_try_tell(trp_ctx *ctx, trp_ref to, const trp_type *type, const void *payload, size_t bytes)
{
    if (trpi_tell_gathered(ctx, to, type, payload, bytes)) {
        return TRP_OK;
    }
    return try_tell(ctx, to, type, payload, bytes);
}

trp_err
trp_system_try_tell(trp_system *system, trp_ref to, const trp_type *type, const void *payload,
                    size_t bytes)
{
    trp_ctx *ctx;
    trp_err err;

    if (!trpi_system_is_valid(system) || type == NULL) {
        return TRP_EINVAL;
    }
    ctx = trpi_enter(system);
    err = try_tell(ctx, to, type, payload, bytes);
    trpi_leave(ctx);
    return err;
}

void
trpi_send(trp_ctx *ctx, trp_ref to, trp_msg *msg)
{
    trpi_cell *cell;

    trpi_msg_next_set(msg, NULL, __ATOMIC_RELAXED);
    msg->priv_to_slot = to.slot;
    msg->priv_to_generation = to.generation;
    if (UNLIKELY(to.node != ctx->fast_path_node)) {
        if (to.node != TRPI_NODE_SELF) {
            send_far(ctx, to, msg);
            return;
        }
        if (!check_rare(ctx, to, &msg)) {
            return;
        }
    }
    cell = trpi_cells_at(ctx->cells, to.slot);
    if (UNLIKELY(cell == NULL)) {
        dead_and_free(ctx, to, msg, TRP_DEAD_NO_SUCH_ACTOR);
    } else if (UNLIKELY(atomic_load_explicit(&cell->generation, RELAXED) != to.generation)) {
        dead_and_free(ctx, to, msg, TRP_DEAD_STALE);
    } else if (asks_first(cell)) {
        deliver_asking(ctx, cell, to, msg);
    } else {
        deliver_to_cell(ctx, cell, msg);
    }
}

void
trp_forward(trp_ctx *ctx, trp_ref to, const trp_msg *msg)
{
    trp_msg *copy;

    TRPI_USE(ctx);
    if (trp_msg_dup(msg, &copy) != TRP_OK) { /* with its sender */
        const trp_type *type = trp_msg_type(msg);

        dead_no_memory(ctx, to, trpi_msg_sender(msg), type);
        return;
    }
    trpi_send(ctx, to, trpi_trailer_put(ctx, copy));
}
