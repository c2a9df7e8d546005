/* timed.h - private to src/actor: time one message of a cell. */
#ifndef TRPI_ACTOR_KERNEL_TIMED_H
#define TRPI_ACTOR_KERNEL_TIMED_H

#include "actor/kernel/run.h"

/* The next message of this worker's cell is to be timed: fn(arg, number, ns) is called with its
 * time, unless the cell has no other message, or its next turn is another worker's. In a turn. */
void trpi_timed_next(trp_ctx *ctx, void (*fn)(void *arg, uint64_t number, uint64_t ns), void *arg,
                     uint64_t number);
/* run.c, where ctx->timed.slot is set. Return when the message begins, after which the turn ends;
 * 0: it is not timed. */
uint64_t trpi_timed_begin(trp_ctx *ctx, const trpi_cell *cell);
/* Return the result of that turn, after which the cell may be another thread's. */
trpi_run_result trpi_timed_end(trp_ctx *ctx, uint64_t begun_ns, trpi_run_result result);

#endif
