/* stats.h - private to the room: counting into the statistics of a ctx. */
#ifndef TRPI_ACTOR_KERNEL_STATS_H
#define TRPI_ACTOR_KERNEL_STATS_H

#include "actor/kernel/run.h"

/* Add to one of ctx->stats. */
static inline void
trpi_count(const trp_ctx *ctx, _Atomic uint64_t *counter, uint64_t n)
{
    if (ctx->worker != NULL) { /* one writer: no locked instruction; relaxed: statistics */
        atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
                              memory_order_relaxed);
    } else {
        (void)atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
    }
}

#endif
