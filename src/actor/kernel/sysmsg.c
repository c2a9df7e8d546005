/* sysmsg.c - sending system messages, with a reserve of memory so that it never fails.
 *
 * Must hold.
 *   sysmsg-H4  Sending a system message never fails: it comes from the cache, else from the
 *       reserve; with both empty the sender waits for memory.
 * Tests.   tests/unit/actor/memory_test.c, watch_test.c, tests/stress/churn_test.c
 */
#include <time.h>

#include "actor/kernel/cells.h"
#include "actor/kernel/mailbox.h"
#include "actor/kernel/schedule.h"
#include "actor/kernel/run.h"
#include "base/atomics.h"

/* sysmsg-H4 */
static trpi_sysmsg *
sysmsg_new(trp_ctx *ctx)
{
    trpi_sysmsg *sysmsg;

    _Static_assert(sizeof(trpi_sysmsg) <= 64, "a system message is one line");
    while ((sysmsg = trpi_line_new(ctx->cache)) == NULL) {
        struct timespec pause = { 0, 1000000 };

        if (ctx->reserve != NULL) {
            sysmsg = ctx->reserve;
            ctx->reserve = sysmsg->next;
            ctx->reserve_count--;
            break;
        }
        (void)nanosleep(&pause,
                        NULL); /* memory and reserve are used up: other threads must free some */
    }
    return sysmsg;
}

void
trpi_reserve_fill(trp_ctx *ctx)
{
    while (ctx->reserve_count < TRPI_SYSMSG_RESERVE) {
        trpi_sysmsg *sysmsg = trpi_block_new(ctx->cache, sizeof *sysmsg);

        if (sysmsg == NULL) {
            return;
        }
        sysmsg->next = ctx->reserve;
        ctx->reserve = sysmsg;
        ctx->reserve_count++;
    }
}

void
trpi_reserve_free(trp_ctx *ctx)
{
    while (ctx->reserve != NULL) {
        trpi_sysmsg *sysmsg = ctx->reserve;

        ctx->reserve = sysmsg->next;
        trpi_block_free(ctx->cache, sysmsg, sizeof *sysmsg);
    }
    ctx->reserve_count = 0;
}

void
trpi_sys_tell(trp_ctx *ctx, uint32_t slot, uint32_t generation, uint16_t kind, uint16_t flag,
              trp_ref from, uint64_t number, void *pointer)
{
    trpi_cell *cell = trpi_cells_find(ctx->cells, slot);
    trpi_sysmsg *sysmsg = sysmsg_new(ctx);

    *sysmsg = (trpi_sysmsg){ NULL, generation, kind, flag, from, number, pointer };
    if (cell == NULL) {
        ctx->system->hooks->order_stale(ctx, NULL, slot, sysmsg);
        trpi_block_free(ctx->cache, sysmsg, sizeof *sysmsg);
        return;
    }
    /* An actor that sends a system message to itself (most often to stop) holds its token, and
     * handles sys_rest before the next message. Only with an empty stack, to keep the order. */
    if (cell == ctx->cell && cell->ops == NULL && ctx->turn.sys_rest == NULL &&
        atomic_load_explicit(&cell->sys_head, RELAXED) == NULL) {
        ctx->turn.sys_rest = sysmsg;
        ctx->turn.sys_pending = true;
        return;
    }
    if (trpi_mailbox_push_system(cell, sysmsg)) {
        trpi_schedule(ctx, cell);
    }
    /* relaxed: a hint (dispatcher-F2). A directive precedes messages to other actors (A4J-31). */
    if (__atomic_load_n(&cell->task.dispatch, __ATOMIC_RELAXED) == TRPI_DISPATCH_PRIVATE) {
        trpi_sched_urgent(ctx->system->sched, atomic_load_explicit(&cell->task.home, RELAXED));
    }
}
