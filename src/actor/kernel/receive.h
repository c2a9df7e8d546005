/* receive.h - private to the kernel: one message goes to an actor's behaviour. */
#ifndef TRPI_ACTOR_KERNEL_RECEIVE_H
#define TRPI_ACTOR_KERNEL_RECEIVE_H

#include "actor/kernel/run.h"
#include "base/atomics.h"

/* Call the behaviour's receive, which a failure jump may leave. becomes: trp_become() may have
 * replaced it. */
static inline trp_err
trpi_receive_call(trp_ctx *ctx, trpi_cell *cell, trp_msg *msg, bool becomes)
{
    const trp_behaviour *behaviour = cell->behaviour;
    trp_receive_fn fn = behaviour->receive;

    if (UNLIKELY(behaviour->accepts != NULL) &&
        !trpi_type_accepted(behaviour->accepts, msg->priv_type)) {
        ctx->system->hooks->unaccepted(ctx, cell, msg);
        return TRP_OK;
    }
    if (becomes && UNLIKELY((cell->marks & TRPI_MARK_BECOME) != 0)) {
        fn = ctx->system->hooks->receive(ctx, cell);
    }
    return fn(ctx, cell->state, msg);
}

/* After the behaviour returned err: tell the hooks of a failure, and of a receive timeout that
 * begins anew. Thread: the token's holder. */
void trpi_receive_done(trp_ctx *ctx, trpi_cell *cell, trp_msg *msg, trp_err err);

#endif
