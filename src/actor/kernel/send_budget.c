/* send_budget.c - a turn that has told many messages (TRPI_TOLD_MAX) ends after the present one.
 *
 * Must hold. run-R6 (run.c).
 * Tests.     tests/unit/actor/tell_test.c
 */
#include "actor/kernel/send_budget.h"

#define BUDGET_RUNS 8u /* a turn that uses up its send budget takes as long as this many others */

/* If the receiver's worker has handled no message since the budget was used up before, it is stuck:
 * another program has its core, or a behaviour blocks it. Until that is over no turn marks the cell
 * as overloaded, so the sender is throttled here. */
void
trpi_send_budget_over(trp_ctx *ctx, const trpi_cell *cell)
{
    uint16_t at = atomic_load_explicit(&cell->task.home, memory_order_relaxed);
    const trp_ctx *home = at != ctx->index ? trpi_sched_pool_data(ctx->system->sched, at) : NULL;
    uint64_t processed;

    ctx->turn.left = 0;
    if (ctx->worker == NULL) {
        return;
    }
    trpi_worker_hurry(ctx->worker, BUDGET_RUNS);
    if (home == NULL) {
        return;
    }
    processed = atomic_load_explicit(&home->own_stats.processed, memory_order_relaxed);
    if (ctx->budget_home == at && ctx->budget_seen == processed) {
        ctx->turn.throttled = true;
        ctx->turn.throttled_msgs += TRPI_TOLD_MAX;
        ctx->turn.throttled_home = at;
    }
    ctx->budget_home = at;
    ctx->budget_seen = processed;
}
