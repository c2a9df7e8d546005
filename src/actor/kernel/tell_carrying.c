/* tell_carrying.c - telling as part of an interaction or a trace, and messages for later.
 *
 * Must hold. trailer-I1 (trailer.c).
 * Tests.     tests/unit/actor/interaction_test.c, trace_test.c
 * Sources.   A4J-10; HOW-09
 */
#include <string.h>

#include "actor/kernel/trailer.h"

/* ---- interactions ---------------------------------------------------------------------------- */

/* Return what is carried, with this interaction, or without any, in place of its own. */
static const trpi_trailer *
carried_in(const trp_ctx *ctx, const trp_interaction *interaction, trpi_trailer *room)
{
    uint64_t rest = ctx->carried == NULL ? 0 : ctx->carried->carries & TRPI_CARRIES_TRACE;

    if (interaction == NULL && rest == 0) {
        return NULL;
    }
    memset(room, 0, sizeof *room);
    if (rest != 0) {
        *room = *ctx->carried;
    }
    room->carries = rest;
    if (interaction != NULL) {
        room->interaction = *interaction;
        room->carries |= TRPI_CARRIES_INTERACTION;
    }
    return room;
}

void
trp_tell_in(trp_ctx *ctx, trp_ref to, const trp_interaction *interaction, const trp_type *type,
            const void *payload, size_t bytes)
{
    trpi_trailer room;
    const trpi_trailer *before = trpi_carry(ctx, carried_in(ctx, interaction, &room));

    trpi_tell(ctx, to, ctx->self, type, payload, bytes);
    (void)trpi_carry(ctx, before);
}

void
trp_system_tell_in(trp_system *system, trp_ref to, trp_ref sender,
                   const trp_interaction *interaction, const trp_type *type, const void *payload,
                   size_t bytes)
{
    const trpi_trailer *before;
    trpi_trailer room;
    trp_ctx *ctx;

    if (!trpi_system_is_valid(system)) {
        return;
    }
    ctx = trpi_enter(system);
    before = trpi_carry(ctx, carried_in(ctx, interaction, &room));
    trpi_tell(ctx, to, sender, type, payload, bytes);
    (void)trpi_carry(ctx, before);
    trpi_leave(ctx);
}

/* ---- traces ---------------------------------------------------------------------------------- */

/* Return what is carried, as part of this trace, or of none, in place of its own. */
static const trpi_trailer *
carried_traced(const trp_ctx *ctx, const trp_trace *trace, trpi_trailer *room)
{
    uint64_t rest = ctx->carried == NULL ? 0 : ctx->carried->carries & TRPI_CARRIES_INTERACTION;

    if (trace == NULL && rest == 0) {
        return NULL;
    }
    memset(room, 0, sizeof *room);
    if (rest != 0) {
        room->interaction = ctx->carried->interaction;
    }
    room->carries = rest;
    if (trace != NULL) {
        room->trace = *trace;
        room->carries |= TRPI_CARRIES_TRACE;
    }
    return room;
}

void
trp_tell_traced(trp_ctx *ctx, trp_ref to, const trp_trace *trace, const trp_type *type,
                const void *payload, size_t bytes)
{
    trpi_trailer room;
    const trpi_trailer *before = trpi_carry(ctx, carried_traced(ctx, trace, &room));

    trpi_tell(ctx, to, ctx->self, type, payload, bytes);
    (void)trpi_carry(ctx, before);
}

void
trp_system_tell_traced(trp_system *system, trp_ref to, trp_ref sender, const trp_trace *trace,
                       const trp_type *type, const void *payload, size_t bytes)
{
    const trpi_trailer *before;
    trpi_trailer room;
    trp_ctx *ctx;

    if (!trpi_system_is_valid(system)) {
        return;
    }
    ctx = trpi_enter(system);
    before = trpi_carry(ctx, carried_traced(ctx, trace, &room));
    trpi_tell(ctx, to, sender, type, payload, bytes);
    (void)trpi_carry(ctx, before);
    trpi_leave(ctx);
}

trp_msg *
trpi_timed_make(trp_ctx *ctx, trp_ref to, trp_ref sender, const trp_type *type, const void *payload,
                size_t bytes)
{
    const trpi_trailer *before = ctx->carried;
    uint64_t carries = before == NULL ? 0 : before->carries & ~(uint64_t)TRPI_CARRIES_INTERACTION;
    trpi_trailer room;
    trp_msg *msg;

    if (carries != TRPI_CARRIES_TRACE) {
        return trpi_msg_make(ctx->cache, to, sender, type, payload, bytes);
    }
    room = *before;
    room.carries = carries;
    (void)trpi_carry(ctx, &room);
    msg = trpi_tell_make(ctx, to, sender, type, payload, bytes);
    (void)trpi_carry(ctx, before);
    if (msg != NULL) {
        ((trpi_trailer *)(uintptr_t)trpi_msg_trailer(msg))->carries |= TRPI_CARRIES_TIMED;
    }
    return msg;
}
