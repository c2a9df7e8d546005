/* throttle.c - who told an overloaded cell and may go idle all the same.
 *
 * Why.     run-R5. Who only answers what an overloaded cell asked is not what it has to be
 *          saved from; but answers may be driven by others.
 * Shape.   drained (counted where overloaded cells run) - granted = what may still be let pass;
 *          each worker takes a share of that and keeps it in ctx->credits.
 * Tests.   tests/unit/actor/overload_test.c
 */
#include "actor/kernel/bounded_mailbox.h"
#include "actor/kernel/mailbox.h"
#include "actor/kernel/run.h"
#include "base/atomics.h"

#define CREDIT_MAX 10000u /* answers to overloaded cells that are let pass in one go */
#define CREDIT_SHARE 256u /* of them, that a worker takes at a time */

/* A share of what overloaded cells of home have handled and nobody was let pass for yet, at least
 * so much; 0: there is not so much. */
static uint32_t
credit_take(trp_ctx *home, uint32_t least)
{
    uint64_t granted = atomic_load_explicit(&home->granted, RELAXED);

    for (;;) {
        /* relaxed: counts; one that is old gives less */
        uint64_t drained = atomic_load_explicit(&home->drained, RELAXED);
        uint64_t rest = (int64_t)(drained - granted) > 0 ? drained - granted : 0;
        uint64_t share;

        rest = rest < CREDIT_MAX ? rest : CREDIT_MAX; /* what is old and unused is forgotten */
        if (rest < least) {
            return 0;
        }
        share = rest < CREDIT_SHARE ? rest : least < CREDIT_SHARE ? CREDIT_SHARE : least;
        if (atomic_compare_exchange_weak_explicit(&home->granted, &granted, drained - rest + share,
                                                  RELAXED, RELAXED)) {
            return (uint32_t)share;
        }
    }
}

/* Deferring is for those who have more to say; who only answers would come back to find nothing.
 * But as answers may be driven by others, no more of them are let pass than overloaded cells have
 * handled on the worker that the receiver is at: what waits for them does not grow by it. */
bool
trpi_run_throttle_waived(trp_ctx *ctx, trpi_cell *cell)
{
    uint32_t *credit;
    trp_ctx *home;

    if (ctx->chains_open != 0 || ctx->full_mailbox.generation != 0 || trpi_bounded_has_more(cell)) {
        return false;
    }
    home = trpi_sched_pool_data(ctx->system->sched, ctx->throttled_home);
    if (home == NULL) { /* on a network, or on a thread of its own */
        return false;
    }
    credit = &ctx->credits[ctx->throttled_home];
    if (*credit < ctx->throttled_msgs) {
        *credit += credit_take(home, ctx->throttled_msgs - *credit);
        if (*credit < ctx->throttled_msgs) {
            return false;
        }
    }
    *credit -= ctx->throttled_msgs;
    ctx->throttled = false;
    ctx->throttled_msgs = 0;
    return true;
}
