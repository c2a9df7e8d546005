/* interaction.c - the trailer of a message: the interaction that it belongs to.
 *
 * Why.     A few messages carry an interaction. They pay for it, the others do not.
 * Shape.   header | payload, padded to 16 bytes | trailer      marked by a flag in the header
 *          handling such a message: ctx->carried -> its trailer; trpi_tell() copies it behind what
 *          it makes. trp_tell() does not test for that: while an interaction is carried,
 *          ctx->fast_path_node is 0, so a comparison that it makes anyway closes its fast path.
 * Must hold.
 *   interaction-I1  carried is set only while one message is handled, and restored on every way out
 *       of that: such a message is always handled inside trpi_run_guarded().
 * Tests.   tests/unit/actor/interaction_test.c
 * Sources. A4J-10; docs/architecture.md#messages-and-types.
 */
#include <troupe/interaction.h>

#include <string.h>

#include "actor/kernel/run.h"
#include "base/assert.h"

_Static_assert(sizeof(trp_interaction) == TRPI_TRAILER_BYTES, "the trailer is an interaction");
_Static_assert(TRPI_MSG_HEADER_BYTES + TRP_INLINE_PAYLOAD_MAX + 16 + TRPI_TRAILER_BYTES <=
                   TRPI_BLOCK_BYTES_MAX,
               "the largest inline message has room for a trailer");

void
trp_tell_in(trp_ctx *ctx, trp_ref to, const trp_interaction *interaction, const trp_type *type,
            const void *payload, size_t bytes)
{
    const trp_interaction *before = trpi_carry(ctx, interaction);

    trpi_tell(ctx, to, ctx->self, type, payload, bytes);
    (void)trpi_carry(ctx, before);
}

void
trp_system_tell_in(trp_system *system, trp_ref to, trp_ref sender,
                   const trp_interaction *interaction, const trp_type *type, const void *payload,
                   size_t bytes)
{
    const trp_interaction *before;
    trp_ctx *ctx;

    if (!trpi_system_is_valid(system)) {
        return;
    }
    ctx = trpi_enter(system);
    before = trpi_carry(ctx, interaction);
    trpi_tell(ctx, to, sender, type, payload, bytes);
    (void)trpi_carry(ctx, before);
    trpi_leave(ctx);
}
