/* entity.c - what the kernel does for entities: actors that are found by a name that outlives them.
 *
 * Why.     The teller of an entity has looked its present ref up. The actor may end before the
 *          message is handled; then the message is not lost, since the name goes on.
 * Must hold.
 *   entity-E1  A message that was told to an entity is handled by that incarnation, or given to
 *       left(), in the order of the mailbox.
 * Not here. The table of names, and when an entity starts (cluster/sharding). Telling
 *          (tell_entity.c).
 * Tests.   tests/unit/cluster/entity_test.c
 */
#include "actor/kernel/run.h"

trp_err
trpi_system_entities_set(trp_system *system, const trpi_entity_ops *ops, void *arg)
{
    void *none = NULL;

    if (!atomic_compare_exchange_strong(&system->entity_arg, &none, arg)) {
        return TRP_EEXIST;
    }
    atomic_store_explicit(&system->entity_ops, ops, memory_order_release); /* arg was set before */
    return TRP_OK;
}

void
trpi_system_entities_clear(trp_system *system)
{
    atomic_store_explicit(&system->entity_ops, NULL, memory_order_relaxed);
}

void *
trpi_system_entities(const trp_system *system)
{
    /* acquire: pairs with entities_set() */
    return atomic_load_explicit(&system->entity_ops, memory_order_acquire) == NULL
               ? NULL
               : atomic_load_explicit(&system->entity_arg, memory_order_acquire);
}

void *
trpi_ctx_entities(const trp_ctx *ctx)
{
    return trpi_system_entities(ctx->system);
}

bool
trpi_entity_left(trp_ctx *ctx, trp_ref to, const trp_msg *msg)
{
    /* acquire: pairs with entities_set() */
    const trpi_entity_ops *ops =
        atomic_load_explicit(&ctx->system->entity_ops, memory_order_acquire);

    return ops != NULL &&
           ops->left(atomic_load_explicit(&ctx->system->entity_arg, memory_order_relaxed), ctx, to,
                     msg);
}

void
trpi_entity_ending(trp_ctx *ctx, trp_ref self, bool failed)
{
    /* acquire: pairs with entities_set() */
    const trpi_entity_ops *ops =
        atomic_load_explicit(&ctx->system->entity_ops, memory_order_acquire);

    if (ops != NULL) {
        ops->ending(atomic_load_explicit(&ctx->system->entity_arg, memory_order_relaxed), ctx, self,
                    failed);
    }
}

uint32_t
trpi_entity_arrived(trp_ctx *ctx, trp_ref to, trp_ref sender, const trpi_carrier *what,
                    uint32_t count)
{
    /* acquire: pairs with entities_set() */
    const trpi_entity_ops *ops =
        atomic_load_explicit(&ctx->system->entity_ops, memory_order_acquire);

    return ops == NULL || ops->arrived == NULL
               ? 0
               : ops->arrived(atomic_load_explicit(&ctx->system->entity_arg, memory_order_relaxed),
                              ctx, to, sender, what, count);
}
