/* throttle.c - sender throttling: senders of an overloaded cell that are not deferred.
 *
 * Why.     run-R5. An actor that only answers questions of an overloaded cell does not flood it;
 *          but its answers may be driven by a third actor.
 * Shape.   drained (counted where overloaded cells run) - granted = credit that is left; each
 *          worker takes a share of it, which it keeps in ctx->credits.
 * Tests.   tests/unit/actor/overload_test.c
 */
#include "actor/kernel/bounded_mailbox.h"
#include "actor/kernel/mailbox.h"
#include "actor/kernel/run.h"
#include "base/atomics.h"

#define CREDIT_MAX 10000u /* unused credit beyond this expires */
#define CREDIT_SHARE 256u /* credit that a worker takes at a time */

/* Take credit, one unit for each message that overloaded cells of home have handled, at least
 * `least`; 0: there is less. */
static uint32_t
credit_take(trp_ctx *home, uint32_t least)
{
    uint64_t granted = atomic_load_explicit(&home->granted, RELAXED);

    for (;;) {
        /* relaxed: counters; an outdated one gives less credit */
        uint64_t drained = atomic_load_explicit(&home->drained, RELAXED);
        uint64_t rest = (int64_t)(drained - granted) > 0 ? drained - granted : 0;
        uint64_t share;

        rest = rest < CREDIT_MAX ? rest : CREDIT_MAX; /* old credit expires */
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

/* A sender with an empty mailbox that told single messages need not be deferred: its next turn
 * would find no work. But since a third actor may drive it, it needs credit: one message for each
 * that overloaded cells have handled on the receiver's worker, so that their mailboxes do not
 * grow. */
bool
trpi_run_throttle_waived(trp_ctx *ctx, trpi_cell *cell)
{
    uint32_t *credit;
    trp_ctx *home;

    if (ctx->chains_open != 0 || ctx->turn.full_mailbox.generation != 0 ||
        trpi_bounded_has_more(cell)) {
        return false;
    }
    home = trpi_sched_pool_data(ctx->system->sched, ctx->turn.throttled_home);
    if (home == NULL) { /* the receiver waits for a network, or has a thread of its own */
        return false;
    }
    credit = &ctx->credits[ctx->turn.throttled_home];
    if (*credit < ctx->turn.throttled_msgs) {
        *credit += credit_take(home, ctx->turn.throttled_msgs - *credit);
        if (*credit < ctx->turn.throttled_msgs) {
            return false;
        }
    }
    *credit -= ctx->turn.throttled_msgs;
    ctx->turn.throttled = false;
    ctx->turn.throttled_msgs = 0;
    return true;
}
