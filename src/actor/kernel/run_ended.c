/* run_ended.c - the end of a cell, which a hook of its turn orders.
 *
 * Tests.   tests/unit/actor/life_test.c
 */
#include "actor/kernel/bounded_mailbox.h"
#include "actor/kernel/cells.h"
#include "actor/kernel/dispatcher.h"
#include "actor/kernel/run.h"
#include "actor/kernel/stats.h"
#include "base/assert.h"
#include "base/atomics.h"

void
trpi_run_ended(trp_ctx *ctx, trpi_cell *cell)
{
    const trpi_kind_ops *ops = cell->ops;

    trpi_assert((cell->generation_run & 1) != 0);
    trpi_assert(cell->extra == NULL && cell->state == NULL);
    if (!trpi_cell_is_special(cell)) {
        trpi_count(ctx, &ctx->stats->stopped, 1);
    }
    cell->life = TRPI_LIFE_FREE;
    cell->suspended = 0;
    cell->marks &= TRPI_MARK_ORPHAN;
    cell->generation_run++;
    /* release: a thread that reads the even number sees all effects of the actor */
    atomic_store_explicit(&cell->generation, cell->generation_run, memory_order_release);
    atomic_store_explicit(&cell->overloaded, 0, RELAXED);
    atomic_store_explicit(&cell->kind, TRPI_KIND_NONE, RELAXED);
    if (UNLIKELY(ops != NULL)) {
        trpi_cell_ops_set(cell, NULL);
        if (trpi_ops_are_bounded(ops)) {
            trpi_bounded_close(ctx, cell, (trpi_bounded_mailbox *)(uintptr_t)ops);
        } else {
            ctx->system->hooks->routed_ended(ctx, ops);
        }
    }
    trpi_dispatcher_leave(ctx, cell); /* the pool drains late messages */
}
