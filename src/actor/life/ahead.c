/* ahead.c - a message that is handled before all that waits in a mailbox.
 *
 * Why.     An actor that is to end in an orderly way is told so by a message of its own protocol,
 *          which must not wait behind a million others (actor-ts#949).
 * Shape.   teller --a system message--> the actor's runner: it puts the message in front of the
 *          front queue (stash.c), which is served before the mailbox.
 * Must hold.
 *   ahead-A1  It is handled next, after the present message and unless the actor is suspended;
 *       earlier messages of its sender may come after it.
 *   ahead-A2  A message that reaches no actor is a dead letter.
 * Tests.   tests/unit/actor/ahead_test.c
 */
#include "actor/life/life.h"

trp_err
trpi_tell_ahead(trp_ctx *ctx, trp_ref to, trp_ref sender, const trp_type *type, const void *payload,
                size_t bytes)
{
    const trp_ref nobody = TRP_REF_NONE;
    trp_msg *msg;
    if (to.node != TRPI_NODE_SELF) {
        return TRP_EUNSUPPORTED;
    }
    trp_err err = trpi_msg_restore(to, sender, type, payload, bytes, &msg);
    if (err == TRP_OK) {
        trpi_sys_to(ctx, to, TRPI_SYS_AHEAD, 0, nobody, 0, msg);
    }
    return err;
}

void
trpi_ahead_put(trp_ctx *ctx, trpi_cell *cell, trp_msg *msg)
{
    if (!trpi_front_put(cell, msg)) { /* ahead-A2 */
        trpi_ahead_lost(ctx->system, trpi_cell_ref(cell), msg);
    }
}

void
trpi_ahead_lost(trp_system *system, trp_ref to, trp_msg *msg)
{
    trpi_dead_letter_msg(system, to, msg, TRP_DEAD_STOPPED);
    trpi_msg_drop(msg);
}
