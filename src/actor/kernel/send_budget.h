/* send_budget.h - private to the kernel: how many messages a turn may tell. */
#ifndef TRPI_ACTOR_KERNEL_SEND_BUDGET_H
#define TRPI_ACTOR_KERNEL_SEND_BUDGET_H

#include "actor/kernel/run.h"

/* The turn has used up its send budget; cell is the last receiver. */
void trpi_send_budget_over(trp_ctx *ctx, const trpi_cell *cell);
/* It has told so many messages, in a chain. run-R6 */
static inline void
trpi_send_budget_use(trp_ctx *ctx, const trpi_cell *cell, uint32_t count)
{
    if (ctx->turn.send_budget_left > 0 && (ctx->turn.send_budget_left -= (int32_t)count) <= 0) {
        trpi_send_budget_over(ctx, cell);
    }
}

#endif
