/* system_poller.c - the poller of a system: an extension, made when a first socket is watched, so
 * that a system without sockets has no descriptor.
 *
 * Tests.   tests/unit/io/poller_test.c
 */
#include "io/poller.h"

#include <troupe/extension.h>

static trp_err
poller_create(trp_system *system, void *arg, void **ret_instance)
{
    trpi_poller *poller;
    trp_err err = trpi_poller_new(trpi_system_sched(system), trpi_system_world(system), &poller);

    (void)arg;
    if (err == TRP_OK) {
        *ret_instance = poller;
    }
    return err;
}

static void
poller_release(void *instance)
{
    trpi_poller_free(instance);
}

static const trp_extension extension = { .size = sizeof(trp_extension),
                                         .name = "poller",
                                         .create = poller_create,
                                         .release = poller_release };

trp_err
trpi_system_poller(trp_system *system, trpi_poller **ret_poller)
{
    void *instance;
    trp_err err = trp_extension_get(system, &extension, &instance);

    if (err == TRP_OK) {
        *ret_poller = instance;
    }
    return err;
}
