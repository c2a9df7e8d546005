/* stop.c - stop a system and wait for its end; actors that delay it are named.
 *
 * Tests.   tests/unit/actor/guardian_test.c, stall_test.c
 */
#include "actor/life/life.h"
#include "actor/system/stall.h"

#define STUCK_GRACE_MS 200u    /* an actor in the same message for this time is stuck */
#define FREE_TIMEOUT_MS 10000u /* for the stop that trp_system_free() makes up for */

trp_err
trp_system_stop(trp_system *system, uint32_t timeout_ms)
{
    trp_err err;

    if (!trpi_system_is_valid(system)) {
        return TRP_EINVAL;
    }
    if (trpi_in_behaviour(system)) {
        return TRP_ESTATE;
    }
    trp_system_shutdown(system);
    err = trp_system_await(system, timeout_ms);
    if (err == TRP_ETIMEDOUT) {
        trpi_stuck_log(system, STUCK_GRACE_MS);
        if (trp_system_is_terminated(system)) {
            return TRP_OK; /* it was only slow */
        }
    }
    atomic_store_explicit(&system->stuck, err != TRP_OK, memory_order_relaxed);
    return err;
}

void
trpi_life_system_stop(trp_system *system)
{
    if (system->life == NULL || trp_system_is_terminated(system) ||
        atomic_load_explicit(&system->stuck, memory_order_relaxed)) {
        return;
    }
    if (trp_system_stop(system, FREE_TIMEOUT_MS) != TRP_OK) {
        trpi_log_direct(system, TRP_LOG_ERROR, "system",
                        "the system was freed while actors run: their memory is leaked");
    }
}
