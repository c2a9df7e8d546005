/* timed.c - see timed.h.
 *
 * Why.     A clock at each message would cost all programs; here only the rare part of a turn
 *          (run.c:turn_continue), which a plain turn enters after a mark, tests one flag.
 * Tests.   tests/unit/actor/observe_test.c
 */
#include "actor/kernel/timed.h"

#include "actor/kernel/mailbox.h"

void
trpi_timed_next(trp_ctx *ctx, void (*fn)(void *arg, uint64_t number, uint64_t ns), void *arg,
                uint64_t number)
{
    ctx->timed.slot = ctx->self.slot;
    ctx->timed.generation = ctx->self.generation;
    ctx->timed.number = number;
    ctx->timed.fn = fn;
    ctx->timed.arg = arg;
}

uint64_t
trpi_timed_begin(trp_ctx *ctx, const trpi_cell *cell)
{
    const trp_msg *first = trpi_mailbox_first(cell);
    bool is_ours = ctx->timed.slot == trpi_cell_slot(cell) &&
                   ctx->timed.generation == cell->generation_run && ctx->worker != NULL;
    bool is_open = cell->life == TRPI_LIFE_RUNNING && cell->suspended == 0 &&
                   (cell->marks & TRPI_MARK_GUARDED) == 0;

    ctx->timed.slot = 0;
    /* with a deadline a turn counts its messages otherwise */
    if (!is_ours || !is_open || ctx->turn.timed || first == NULL ||
        first->priv_type < TRPI_TYPE_AUTO_END ||
        first->priv_to_generation != cell->generation_run) {
        return 0;
    }
    ctx->turn.left = 0;
    return trpi_world_mono_ns(ctx->system->world);
}

trpi_run_result
trpi_timed_end(trp_ctx *ctx, uint64_t begun_ns, trpi_run_result result)
{
    if (begun_ns != 0) {
        ctx->timed.fn(ctx->timed.arg, ctx->timed.number,
                      trpi_world_mono_ns(ctx->system->world) - begun_ns);
    }
    return result;
}
