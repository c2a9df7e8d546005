/* trail.c - traces through other rooms: callbacks of futures, envelopes, messages that are made
 * before they are sent.
 *
 * Must hold. trailer-I1 (trailer.c): what is carried is restored on every way out; no function that
 *            runs here jumps.
 * Cost.      Without a trace: a comparison.
 * Tests.     tests/unit/actor/trace_test.c, tests/unit/pattern/future_trace_test.c,
 *            tests/unit/cluster/traced_test.c
 * Sources.   HOW-09
 */
#include "actor/kernel/trailer.h"
#include "base/alloc.h"

struct trpi_trail {
    trpi_trailer trailer;
};

_Static_assert(sizeof(((trpi_along *)0)->room) == sizeof(trpi_trailer), "a trailer has room");

trpi_trail *
trpi_trail_keep(void)
{
    const trp_ctx *ctx = trpi_ctx_running();
    const trpi_trailer *carried = ctx == NULL ? NULL : ctx->carried;
    trpi_trail *trail;

    if (carried == NULL || (carried->carries & TRPI_CARRIES_TRACE) == 0) {
        return NULL;
    }
    trail = trpi_alloc(sizeof *trail);
    if (trail != NULL) {
        trail->trailer = *carried;
        trail->trailer.carries &= ~(uint64_t)(TRPI_CARRIES_INTERACTION | TRPI_CARRIES_ATTEMPT);
        trail->trailer.sent_ns = trpi_world_mono_ns(ctx->system->world);
    }
    return trail;
}

void
trpi_trail_run(trp_system *system, const trpi_trail *trail, void (*fn)(void *arg), void *arg)
{
    const trpi_trailer *before;
    trp_ctx *ctx;

    ctx = trail == NULL ? NULL : system != NULL ? trpi_enter(system) : trpi_ctx_running();
    if (ctx == NULL) {
        fn(arg);
        return;
    }
    before = trpi_carry(ctx, &trail->trailer);
    fn(arg);
    (void)trpi_carry(ctx, before);
    if (system != NULL) {
        trpi_leave(ctx);
    }
}

void
trpi_trail_free(trpi_trail *trail)
{
    trpi_free(trail);
}

void
trpi_trail_trace(const trpi_trail *trail, trp_trace *ret_trace)
{
    *ret_trace = trail != NULL ? trail->trailer.trace : (trp_trace){ 0, 0, 0, 0, 0 };
}

trp_msg *
trpi_trail_again(trp_ctx *ctx, const trpi_trail *trail, trp_msg *msg)
{
    return trail == NULL ? msg : trpi_trailer_again(ctx, &trail->trailer, msg);
}

const trpi_trailer *
trpi_trail_below(const trp_ctx *ctx, const trpi_trail *trail, const trp_msg *msg,
                 trpi_trailer *room)
{
    trpi_trailer both;
    const trpi_trailer *first =
        trpi_trailer_join(trail == NULL ? NULL : &trail->trailer, trpi_msg_trailer(msg), &both);

    if (first == NULL) {
        return NULL;
    }
    trpi_trailer_below(ctx->system, first, room); /* trailer-I2 */
    return room;
}

void
trpi_trail_get(const trp_ctx *ctx, trp_trace *ret_trace)
{
    const trpi_trailer *carried = ctx->carried;

    *ret_trace = carried != NULL && (carried->carries & TRPI_CARRIES_TRACE) != 0
                     ? carried->trace
                     : (trp_trace){ 0, 0, 0, 0, 0 };
}

trp_msg *
trpi_trail_put(trp_ctx *ctx, trp_msg *msg)
{
    return ctx->carried == NULL ? msg : trpi_trailer_put(ctx, msg);
}

void
trpi_along_begin(trp_ctx *ctx, const trp_msg *msg, trpi_along *along)
{
    along->before = trpi_carry_along(ctx, msg, (trpi_trailer *)(void *)along->room);
}

void
trpi_along_end(trp_ctx *ctx, const trpi_along *along)
{
    (void)trpi_carry(ctx, along->before);
}
