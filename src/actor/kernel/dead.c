/* dead.c - dead letters: a message that reaches no actor is counted by its reason, and passed on.
 *
 * Not here. Log lines and events about dead letters (life/dead_letter.c).
 * Tests.   tests/unit/actor/dead_letter_test.c
 */
#include "actor/kernel/stats.h"
#include "actor/kernel/run.h"

void
trpi_dead(trp_ctx *ctx, trp_ref to, const trp_msg *msg, trp_dead_reason reason)
{
    if ((msg->priv_from_node_flags & TRPI_MSG_STORED) != 0) {
        return; /* its record waits in the store for the next owner: durable-U2 */
    }
    trpi_count(ctx, &ctx->stats->dead[reason], 1);
    ctx->system->hooks->dead(ctx, to, msg, reason);
}
