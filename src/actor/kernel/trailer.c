/* trailer.c - the trailer of a message: the interaction and the trace that it belongs to.
 *
 * Why.     A few messages carry an interaction or a trace. They pay for it, the others do not.
 * Shape.   header | payload, padded to 16 bytes | trailer      marked by a flag in the header
 *          handling such a message: ctx->carried -> its trailer; trpi_tell() copies it behind what
 *          it makes, with a span of its own. trp_tell() does not test for that: while a trailer is
 *          carried, ctx->fast_path_node is 0, so a comparison that it makes anyway closes its fast
 *          path.
 * Must hold.
 *   trailer-I1  carried is set only while one message is handled, and restored on every way out of
 *       that: such a message is always handled inside trpi_run_guarded().
 *   trailer-I2  Each handling of a message has a span of its own: one that is handled again, out of
 *       a stash for example, has it below the one before.
 * Tests.   tests/unit/actor/interaction_test.c, trace_test.c
 * Sources. A4J-10; HOW-09; docs/architecture.md#messages-and-types.
 */
#include "actor/kernel/trailer.h"

#include <string.h>

#include "base/assert.h"

_Static_assert(sizeof(trpi_trailer) == TRPI_TRAILER_BYTES, "the trailer's size");
_Static_assert(TRPI_MSG_HEADER_BYTES + TRP_INLINE_PAYLOAD_MAX + 16 + TRPI_TRAILER_BYTES <=
                   TRPI_BLOCK_BYTES_MAX,
               "the largest inline message has room for a trailer");

/* ---- carrying -------------------------------------------------------------------------------- */

const trpi_trailer *
trpi_carry(trp_ctx *ctx, const trpi_trailer *trailer)
{
    const trpi_trailer *before = ctx->carried;

    ctx->carried = trailer;
    ctx->fast_path_node = trailer == NULL ? ctx->system->fast_path_node : 0;
    return before;
}

void
trpi_trailer_pass(trp_ctx *ctx, trpi_trailer *ret_trailer)
{
    *ret_trailer = *ctx->carried;
    if ((ret_trailer->carries & TRPI_CARRIES_TRACE) != 0 &&
        ret_trailer->sent_ns != TRPI_TRAILER_ARRIVES) {
        ret_trailer->parent = ret_trailer->trace.span;
        ret_trailer->trace.span = trpi_trace_span(ctx->system);
        ret_trailer->net_ns = 0;
        if ((ret_trailer->carries & TRPI_CARRIES_ATTEMPT) == 0) {
            ret_trailer->trace.attempt = 0; /* a consequence of an attempt is none itself */
        }
    }
    ret_trailer->carries &= ~(uint64_t)(TRPI_CARRIES_TIMED | TRPI_CARRIES_ATTEMPT);
    ret_trailer->sent_ns = trpi_world_mono_ns(ctx->system->world);
}

/* The place of the trailer of msg. */
static trpi_trailer *
trailer_of(trp_msg *msg)
{
    return (trpi_trailer *)(void *)((char *)msg + trpi_msg_trailer_at(msg));
}

/* Make room for a trailer behind msg, which has none. Takes msg, returns what replaces it; NULL:
 * out of memory, and msg stays the caller's. */
static trp_msg *
room_make(trp_ctx *ctx, trp_msg *msg)
{
    trp_msg *trailed = trpi_block_new(ctx->cache, trpi_msg_trailer_at(msg) + TRPI_TRAILER_BYTES);
    size_t bytes = (msg->priv_from_node_flags & TRP_MSG_PRIV_OUT_OF_LINE) != 0
                       ? sizeof(trp_msg_priv_moved)
                       : msg->priv_bytes;

    if (trailed != NULL) {
        memcpy(trailed, msg, TRPI_MSG_HEADER_BYTES + bytes);
        trpi_block_free(ctx->cache, msg, TRPI_MSG_HEADER_BYTES + bytes); /* its payload has moved */
        trailed->priv_from_node_flags |= TRPI_MSG_TRAILER;
    }
    return trailed;
}

trp_msg *
trpi_trailer_put(trp_ctx *ctx, trp_msg *msg)
{
    const trpi_trailer *carried = ctx->carried, *own = trpi_msg_traced(msg);
    trp_msg *trailed;

    if (carried == NULL || (carried->carries & TRPI_CARRIES_TRACE) == 0) {
        return msg;
    }
    if ((msg->priv_from_node_flags & TRPI_MSG_TRAILER) != 0) {
        if (own != NULL && own->trace.span == carried->trace.span) { /* a copy of what is handled */
            trpi_trailer_pass(ctx, trailer_of(msg));
        }
        return msg;
    }
    trailed = room_make(ctx, msg);
    if (trailed == NULL) {
        return msg;
    }
    trpi_trailer_pass(ctx, trailer_of(trailed));
    return trailed;
}

void
trpi_trailer_below(trp_system *system, const trpi_trailer *first, trpi_trailer *ret_below)
{
    *ret_below = *first;
    ret_below->carries &= ~(uint64_t)TRPI_CARRIES_ATTEMPT;
    if ((first->carries & TRPI_CARRIES_TRACE) != 0) {
        ret_below->parent = first->trace.span;
        ret_below->trace.span = trpi_trace_span(system);
        ret_below->net_ns = 0;
    }
}

trp_msg *
trpi_trailer_again(trp_ctx *ctx, const trpi_trailer *first, trp_msg *msg)
{
    trp_msg *trailed = msg;

    if (first == NULL || (first->carries & TRPI_CARRIES_TRACE) == 0) {
        return msg;
    }
    if ((msg->priv_from_node_flags & TRPI_MSG_TRAILER) == 0) { /* the actor is sampled */
        trailed = room_make(ctx, msg);
    }
    if (trailed == NULL) {
        return msg;
    }
    trpi_trailer_below(ctx->system, first, trailer_of(trailed)); /* trailer-I2 */
    trailer_of(trailed)->sent_ns = trpi_world_mono_ns(ctx->system->world);
    return trailed;
}

const trpi_trailer *
trpi_trailer_join(const trpi_trailer *first, const trpi_trailer *second, trpi_trailer *room)
{
    if (first == NULL || second == NULL || (second->carries & ~first->carries) == 0) {
        return first != NULL ? first : second;
    }
    *room = *first;
    if ((first->carries & TRPI_CARRIES_INTERACTION) == 0) {
        room->interaction = second->interaction;
    }
    if ((first->carries & TRPI_CARRIES_TRACE) == 0) {
        room->trace = second->trace;
        room->parent = second->parent;
    }
    room->carries |= second->carries;
    return room;
}

trpi_handling
trpi_handling_begin(trp_ctx *ctx, const trpi_trailer *trailer)
{
    bool traced = trailer != NULL && (trailer->carries & TRPI_CARRIES_TRACE) != 0;

    return (trpi_handling){ trailer, trpi_carry(ctx, trailer),
                            traced ? trpi_world_mono_ns(ctx->system->world) : 0 };
}

void
trpi_handling_end(trp_ctx *ctx, const trpi_handling *handling, const trp_msg *msg, trp_err err)
{
    (void)trpi_carry(ctx, handling->before);
    if (handling->begun_ns != 0) {
        trpi_trace_handled(ctx, handling->trailer, msg, handling->begun_ns, err);
    }
}

/* ---- what a message belongs to --------------------------------------------------------------- */

const trp_interaction *
trp_msg_interaction(const trp_msg *msg)
{
    const trpi_trailer *trailer = msg == NULL ? NULL : trpi_msg_trailer(msg);

    return trailer == NULL || (trailer->carries & TRPI_CARRIES_INTERACTION) == 0
               ? NULL
               : &trailer->interaction;
}

int
trp_msg_trace(const trp_msg *msg, trp_trace *ret_trace)
{
    const trpi_trailer *trailer = msg == NULL ? NULL : trpi_msg_traced(msg);

    if (trailer == NULL) {
        return 0;
    }
    *ret_trace = trailer->trace;
    return 1;
}

/* ---- messages on their way ------------------------------------------------------------------- */

bool
trpi_traced_get(trp_system *system, const trp_msg *msg, trpi_traced *ret_traced)
{
    const trpi_trailer *trailer = trpi_msg_traced(msg);

    if (trailer == NULL) {
        return false;
    }
    *ret_traced = (trpi_traced){ trailer->trace, trailer->parent,
                                 trpi_world_mono_ns(system->world) - trailer->sent_ns };
    return true;
}

const trpi_trailer *
trpi_carry_arrived(trp_ctx *ctx, const trpi_traced *traced, trpi_trailer *room)
{
    memset(room, 0, sizeof *room);
    room->trace = traced->trace;
    room->parent = traced->parent;
    room->net_ns = traced->age_ns;
    room->sent_ns = TRPI_TRAILER_ARRIVES;
    room->carries = TRPI_CARRIES_TRACE;
    return trpi_carry(ctx, room);
}

const trpi_trailer *
trpi_carry_along(trp_ctx *ctx, const trp_msg *msg, trpi_trailer *room)
{
    const trpi_trailer *trailer = trpi_msg_trailer(msg);

    if (trailer == NULL) {
        return trpi_carry(ctx, NULL);
    }
    *room = *trailer;
    room->sent_ns = TRPI_TRAILER_ARRIVES;
    return trpi_carry(ctx, room);
}
