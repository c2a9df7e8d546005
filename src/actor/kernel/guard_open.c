/* guard_open.c - opening a guard: what waited for it is scheduled.
 *
 * Tests.   tests/unit/actor/guard_test.c
 */
#include "actor/kernel/cells.h"
#include "actor/kernel/guard.h"
#include "actor/kernel/mailbox.h"
#include "actor/kernel/run.h"
#include "actor/kernel/schedule.h"
#include "actor/kernel/system.h"

/* Schedule the actors that have found the guard closed: they gave their token back with messages
 * left, which others than suspended actors do not. A turn of one that has nothing to do does no
 * harm. */
static void
wake_parked(trpi_guard *guard, trp_ctx *ctx)
{
    uint32_t used = atomic_load_explicit(&ctx->cells->used, memory_order_relaxed);
    bool all = atomic_exchange_explicit(&guard->start_waits, false, memory_order_seq_cst);

    for (uint32_t slot = 1; slot <= used; slot++) {
        trpi_cell *cell = trpi_cells_at(ctx->cells, slot);
        uint8_t kind;
        uintptr_t head;

        if (cell == NULL) {
            continue;
        }
        kind = atomic_load_explicit(&cell->kind, memory_order_relaxed);
        head = atomic_load_explicit(&cell->head, memory_order_seq_cst); /* guard-U2 */
        if (trpi_kind_is_actor(kind) && (head & TRPI_TOKEN) != 0 &&
            (all || kind == TRPI_KIND_BOUNDED ||
             head != ((uintptr_t)trpi_cell_stub(cell) | TRPI_TOKEN)) &&
            trpi_mailbox_claim(cell)) {
            trpi_schedule(ctx, cell);
        }
    }
}

bool
trpi_guard_open(trpi_guard *guard, uint64_t closings)
{
    uint32_t closed;
    trp_ctx *ctx;

    if (!trpi_guard_open_at(guard, closings, trpi_world_quick_ns(guard->world), &closed)) {
        return false;
    }
    if (closed != 0) {
        ctx = trpi_enter(guard->system);
        wake_parked(guard, ctx);
        trpi_leave(ctx);
    }
    return true;
}
