/* schedule.h - private to the room: submit a cell to the scheduler. */
#ifndef TRPI_ACTOR_KERNEL_SCHEDULE_H
#define TRPI_ACTOR_KERNEL_SCHEDULE_H

#include "actor/kernel/run.h"

/* Submit a cell whose token the caller holds; this passes the token on. */
static inline void
trpi_schedule(trp_ctx *ctx, trpi_cell *cell)
{
    if (__builtin_expect(ctx->worker != NULL, 1)) {
        trpi_sched_ready(ctx->worker, &cell->task);
    } else {
        trpi_sched_inject(ctx->system->sched, &cell->task);
    }
}

#endif
