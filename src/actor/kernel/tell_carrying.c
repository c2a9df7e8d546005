/* tell_carrying.c - telling as part of an interaction or a trace, and messages for later.
 *
 * Must hold. trailer-I1 (trailer.c).
 * Tests.     tests/unit/actor/interaction_test.c, trace_test.c
 * Sources.   A4J-10; HOW-09
 */
#include <string.h>

#include "actor/kernel/trailer.h"

/* An interaction or a trace that takes the place of the one that is carried. own NULL: none does,
 * and the message is part of none. */
typedef struct part {
    uint64_t bit;    /* TRPI_CARRIES_* */
    const void *own; /* a trp_interaction, or a trp_trace */
} part;

/* Return what is carried, with this part in place of its own of the kind; NULL: then nothing. */
static const trpi_trailer *
carried_with(const trp_ctx *ctx, part with, trpi_trailer *room)
{
    uint64_t kept = with.bit == TRPI_CARRIES_TRACE ? TRPI_CARRIES_INTERACTION
                                                   : TRPI_CARRIES_TRACE | TRPI_CARRIES_ATTEMPT;
    uint64_t rest = ctx->carried == NULL ? 0 : ctx->carried->carries & kept;

    if (with.own == NULL && rest == 0) {
        return NULL;
    }
    memset(room, 0, sizeof *room);
    if (rest != 0) {
        *room = *ctx->carried;
    }
    room->carries = rest;
    if (with.own != NULL && with.bit == TRPI_CARRIES_INTERACTION) {
        room->interaction = *(const trp_interaction *)with.own;
        room->carries |= with.bit;
    } else if (with.own != NULL) {
        room->trace = *(const trp_trace *)with.own;
        room->parent = room->net_ns = room->sent_ns = 0;
        room->carries |= with.bit | (room->trace.attempt != 0 ? TRPI_CARRIES_ATTEMPT : 0u);
    }
    return room;
}

/* Do as trpi_tell(), as part of this. */
static void
tell_with(trp_ctx *ctx, trp_ref to, trp_ref sender, part with, const trp_type *type,
          const void *payload, size_t bytes)
{
    trpi_trailer room;
    const trpi_trailer *before = trpi_carry(ctx, carried_with(ctx, with, &room));

    trpi_tell(ctx, to, sender, type, payload, bytes);
    (void)trpi_carry(ctx, before);
}

static void
system_tell_with(trp_system *system, trp_ref to, trp_ref sender, part with, const trp_type *type,
                 const void *payload, size_t bytes)
{
    if (trpi_system_is_valid(system)) {
        trp_ctx *ctx = trpi_enter(system);

        tell_with(ctx, to, sender, with, type, payload, bytes);
        trpi_leave(ctx);
    }
}

void
trp_tell_in(trp_ctx *ctx, trp_ref to, const trp_interaction *interaction, const trp_type *type,
            const void *payload, size_t bytes)
{
    tell_with(ctx, to, ctx->self, (part){ TRPI_CARRIES_INTERACTION, interaction }, type, payload,
              bytes);
}

void
trp_system_tell_in(trp_system *system, trp_ref to, trp_ref sender,
                   const trp_interaction *interaction, const trp_type *type, const void *payload,
                   size_t bytes)
{
    system_tell_with(system, to, sender, (part){ TRPI_CARRIES_INTERACTION, interaction }, type,
                     payload, bytes);
}

void
trpi_tell_traced(trp_ctx *ctx, trp_ref to, trp_ref sender, const trp_trace *trace,
                 const trp_type *type, const void *payload, size_t bytes)
{
    tell_with(ctx, to, sender, (part){ TRPI_CARRIES_TRACE, trace }, type, payload, bytes);
}

void
trp_tell_traced(trp_ctx *ctx, trp_ref to, const trp_trace *trace, const trp_type *type,
                const void *payload, size_t bytes)
{
    trpi_tell_traced(ctx, to, ctx->self, trace, type, payload, bytes);
}

void
trp_system_tell_traced(trp_system *system, trp_ref to, trp_ref sender, const trp_trace *trace,
                       const trp_type *type, const void *payload, size_t bytes)
{
    system_tell_with(system, to, sender, (part){ TRPI_CARRIES_TRACE, trace }, type, payload, bytes);
}

trp_err
trpi_in_trace(trp_ctx *ctx, const trp_trace *trace, trp_err (*fn)(trp_ctx *ctx, void *arg),
              void *arg)
{
    trpi_trailer room;
    const part with = { TRPI_CARRIES_TRACE, trace };
    const trpi_trailer *before = trpi_carry(ctx, carried_with(ctx, with, &room));
    trp_err err = trpi_run_guarded(ctx, fn, arg); /* trailer-I1 */

    (void)trpi_carry(ctx, before);
    return err;
}

void
trpi_in_attempt(trp_ctx *ctx, const trp_trace *trace, uint32_t attempt,
                trp_err (*fn)(trp_ctx *ctx, void *arg), void *arg)
{
    bool traced = (trace->id_high | trace->id_low) != 0;
    trp_trace own = *trace;
    trp_err err;

    own.attempt = attempt;
    if (traced || ctx->carried != NULL) {
        err = trpi_in_trace(ctx, traced ? &own : NULL, fn, arg);
    } else {
        err = fn(ctx, arg);
    }
    if (err != TRP_OK) {
        longjmp(*ctx->jump, 1); /* ctx->failure says why */
    }
}

trp_msg *
trpi_timed_make(trp_ctx *ctx, trp_ref to, trp_ref sender, const trp_type *type, const void *payload,
                size_t bytes)
{
    const trpi_trailer *before = ctx->carried;
    uint64_t stays = TRPI_CARRIES_INTERACTION | TRPI_CARRIES_ATTEMPT;
    uint64_t carries = before == NULL ? 0 : before->carries & ~stays;
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
