/* remote_ops.c - registration of remoting; signals and orders for other nodes go through it.
 *
 * Must hold.
 *   remote-ops-R1  remote_arg is written before remote_ops: a thread that sees the ops sees arg.
 * Tests.   tests/unit/actor/inbound_test.c
 */
#include "actor/nodes/nodes.h"

trp_err
trpi_system_remote_set(trp_system *system, const trpi_remote_ops *ops, void *arg)
{
    if (ops == NULL) {
        atomic_store_explicit(&system->remote_ops, NULL, memory_order_release);
        return TRP_OK;
    }
    if (atomic_load_explicit(&system->remote_ops, memory_order_acquire) != NULL) {
        return TRP_EEXIST;
    }
    atomic_store_explicit(&system->remote_arg, arg, memory_order_relaxed);
    atomic_store_explicit(&system->remote_ops, ops, memory_order_release); /* remote-ops-R1 */
    return TRP_OK;
}

bool
trpi_remote_signal(trp_system *system, enum trpi_remote_signal signal, trp_ref target, trp_ref from,
                   uint32_t flag)
{
    const trpi_remote_ops *ops =
        atomic_load_explicit(&system->remote_ops, memory_order_acquire); /* remote-ops-R1 */

    if (ops == NULL || target.node == 0) {
        return false;
    }
    ops->signal(atomic_load_explicit(&system->remote_arg, memory_order_relaxed), system,
                target.node, signal, target, from, flag);
    return true;
}

trp_err
trpi_remote_order(trp_system *system, uint32_t node, enum trpi_remote_signal signal, trp_ref target,
                  trp_ref from, const trpi_order *order)
{
    const trpi_remote_ops *ops =
        atomic_load_explicit(&system->remote_ops, memory_order_acquire); /* remote-ops-R1 */

    return ops == NULL || ops->order == NULL
               ? TRP_ESTATE
               : ops->order(atomic_load_explicit(&system->remote_arg, memory_order_relaxed), system,
                            node, signal, target, from, order);
}

bool
trpi_remote_is_connected(trp_system *system, uint32_t node)
{
    const trpi_remote_ops *ops =
        atomic_load_explicit(&system->remote_ops, memory_order_acquire); /* remote-ops-R1 */

    return ops != NULL &&
           (ops->is_connected == NULL ||
            ops->is_connected(atomic_load_explicit(&system->remote_arg, memory_order_relaxed),
                              system, node));
}
