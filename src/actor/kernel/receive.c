/* receive.c - see receive.h; and the calls that a failure jump may leave.
 *
 * Must hold.
 *   receive-F1  After a jump the depth of routing functions is that of before.
 * Tests.   tests/unit/actor/tell_test.c, supervision_test.c, trace_test.c
 */
#include "actor/kernel/receive.h"

#include "actor/kernel/extra.h"
#include "actor/kernel/trace.h"

trp_err
trpi_run_guarded(trp_ctx *ctx, trp_err (*fn)(trp_ctx *ctx, void *arg), void *arg)
{
    jmp_buf here;
    jmp_buf *const outer = ctx->jump;
    const uint8_t depth = ctx->turn.route_depth;
    volatile trp_err err;

    ctx->jump = &here;
    if (_setjmp(here) == 0) {
        err = fn(ctx, arg);
        if (err != TRP_OK) {
            trpi_failure_fill(&ctx->failure, ctx->self, err, NULL);
        }
    } else {
        err = ctx->failure.err;
        ctx->turn.route_depth = depth; /* receive-F1 */
    }
    ctx->jump = outer;
    return err;
}

static trp_err
call_unhandled(trp_ctx *ctx, void *msg)
{
    ctx->system->hooks->unhandled(ctx, msg); /* may fail: a death pact */
    return TRP_OK;
}

void
trpi_receive_done(trp_ctx *ctx, trpi_cell *cell, trp_msg *msg, trp_err err)
{
    if (err == TRP_EUNHANDLED) {
        err = trpi_run_guarded(ctx, call_unhandled, msg);
    } else if (err != TRP_OK) {
        trpi_failure_fill(&ctx->failure, ctx->self, err, NULL);
    }
    if (err != TRP_OK) {
        ctx->system->hooks->failed(ctx, cell, &ctx->failure, msg);
    } else if ((cell->marks & TRPI_MARK_TIMEOUT) != 0 && cell->life == TRPI_LIFE_RUNNING) {
        ctx->system->hooks->touched(ctx, cell);
    }
}

struct receive_args {
    trpi_cell *cell;
    trp_msg *msg;
};

static trp_err
call_receive_guarded(trp_ctx *ctx, void *arg)
{
    struct receive_args *args = arg;

    return trpi_receive_call(ctx, args->cell, args->msg, true);
}

trp_err
trpi_run_direct(trp_ctx *ctx, trpi_cell *cell, trp_msg *msg)
{
    struct receive_args args = { cell, msg };

    return trpi_run_guarded(ctx, call_receive_guarded, &args);
}

void
trpi_run_receive(trp_ctx *ctx, trpi_cell *cell, trp_msg *msg)
{
    struct receive_args args = { cell, msg };
    const trp_msg *outer = ctx->msg;
    trpi_handling handling = trpi_handling_begin(ctx, trpi_msg_trailer(msg));
    trp_err err;

    ctx->msg = msg;
    err = trpi_run_guarded(ctx, call_receive_guarded, &args);
    trpi_handling_end(ctx, &handling, msg, err);
    if (err != TRP_OK && err != TRP_EUNHANDLED) {
        ctx->system->hooks->failed(ctx, cell, &ctx->failure, msg);
    } else {
        trpi_receive_done(ctx, cell, msg, err);
    }
    ctx->msg = outer;
}
