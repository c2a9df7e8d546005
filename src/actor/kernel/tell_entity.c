/* tell_entity.c - telling entities: messages that are made before it is known where they go.
 *
 * Must hold. entity-E1 (entity.c).
 * Not here. The short way of a tell (tell.c:trpi_tell_live).
 * Tests.   tests/unit/cluster/entity_test.c
 */
#include "actor/kernel/cells.h"
#include "actor/kernel/run.h"
#include "base/atomics.h"

void
trpi_tell_flush(trp_ctx *ctx)
{
    if (ctx->chains_open != 0) {
        trpi_chains_flush(ctx);
    }
}

void
trpi_msg_sign(trp_msg *msg, trp_ref sender)
{
    trpi_msg_sender_set(msg, sender);
}

trp_msg *
trpi_tell_prepare(trp_ctx *ctx, trp_ref sender, const trp_type *type, const void *payload,
                  size_t bytes)
{
    static const trp_ref nobody = TRP_REF_NONE;
    trp_msg *msg = NULL;

    bytes = (type->flags & TRP_TYPE_VARIABLE) == 0 ? type->bytes : bytes;
    if (type->number != 0 && bytes >= type->bytes) {
        msg = trpi_tell_make(ctx, nobody, sender, type, payload, bytes);
        if (msg != NULL && (ctx->system->options.serialize_messages == 0 ||
                            ctx->system->hooks->round_trip(ctx, &msg) == TRP_OK)) {
            return msg;
        }
    }
    ctx->system->hooks->dead_of(ctx->system, sender, nobody,
                                msg == NULL && type->number != 0 && bytes >= type->bytes
                                    ? TRP_DEAD_NO_MEMORY
                                    : TRP_DEAD_NOT_ENCODABLE,
                                type, NULL, bytes);
    trpi_msg_drop(msg);
    return NULL;
}

void
trpi_live_prefetch(const trp_ctx *ctx, uint32_t slot)
{
    trpi_cell *cell = trpi_cells_at(ctx->cells, slot);

    if (cell != NULL) {
        __builtin_prefetch(cell, 1); /* the senders' line */
    }
}

bool
trpi_tell_live_as(trp_ctx *ctx, uint32_t slot, uint32_t generation, trp_ref sender,
                  const trp_type *type, const void *payload, size_t bytes)
{
    trp_ref to = { TRPI_NODE_SELF, slot, generation, 0 };
    trpi_cell *cell = trpi_cells_at(ctx->cells, slot);
    trp_msg *msg;

    /* relaxed: an early check only, as in trpi_tell() */
    if (cell == NULL || atomic_load_explicit(&cell->generation, RELAXED) != generation ||
        ctx->fast_path_node != TRPI_NODE_SELF) {
        return false;
    }
    msg = trpi_msg_make(ctx->cache, to, sender, type, payload, bytes);
    if (msg == NULL) {
        return false;
    }
    msg->priv_from_node_flags |= TRPI_MSG_ENTITY;
    trpi_tell_deliver(ctx, cell, to, msg);
    return true;
}

bool
trpi_send_live(trp_ctx *ctx, uint32_t slot, uint32_t generation, trp_msg *msg)
{
    trp_ref to = { TRPI_NODE_SELF, slot, generation, 0 };
    trpi_cell *cell = trpi_cells_at(ctx->cells, slot);

    /* relaxed: an early check only, as in trpi_tell() */
    if (cell == NULL || atomic_load_explicit(&cell->generation, RELAXED) != generation) {
        return false;
    }
    msg->priv_to_slot = slot;
    msg->priv_to_generation = generation;
    msg->priv_from_node_flags |= TRPI_MSG_ENTITY;
    trpi_tell_deliver(ctx, cell, to, msg);
    return true;
}
