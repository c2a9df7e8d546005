/* built_in_types.c - the built-in message types of all rooms as one list (base/built_in_types.h).
 *
 * The types of the cluster are those of a protocol, which is registered when a cluster starts.
 * Tests.   tests/unit/actor/type_test.c
 */
#include "base/built_in_types.h"

#include "actor/actor.h"
#include "pattern/pattern.h"
#include "persistence/persistence.h"
#include "remote/remote.h"

const trpi_type_part *const trpi_type_parts[] = {
    &trpi_kernel_types, &trpi_log_types,         &trpi_life_types,   &trpi_system_types,
    &trpi_router_types, &trpi_persistence_types, &trpi_remote_types, NULL,
};
