/* routing_types.c - built-in types of routers: envelopes, and messages that change the routees.
 * Envelopes and lists hold numbers and refs of this node: they do not leave it.
 *
 * Tests.   tests/unit/actor/type_test.c, tests/unit/pattern/router_test.c
 */
#include "pattern/routing_types.h"

#include "base/built_in_types.h"
#include "pattern/pattern.h"

static const trp_field add_fields[] = { { "routee", TRP_FIELD_ref,
                                          offsetof(trp_add_routee, routee) } };
static const trp_field remove_fields[] = { { "routee", TRP_FIELD_ref,
                                             offsetof(trp_remove_routee, routee) } };
static const trp_field adjust_fields[] = { { "change", TRP_FIELD_i32,
                                             offsetof(trp_adjust_pool_size, change) } };

BUILT_IN(trp_broadcast_type, "troupe.broadcast", 0, trp_broadcast_tag,
         TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL, TRPI_TYPE_BROADCAST);
BUILT_IN(trp_keyed_type, "troupe.keyed", 0, trp_keyed_tag, TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL,
         TRPI_TYPE_KEYED);
BUILT_IN(trp_get_routees_type, "troupe.get-routees", 0, trp_get_routees_tag, 0,
         TRPI_TYPE_GET_ROUTEES);
BUILT_IN(trp_routees_type, "troupe.routees", 0, trp_routees_tag, TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL,
         TRPI_TYPE_ROUTEES);
BUILT_IN_FIELDS(trp_add_routee_type, "troupe.add-routee", sizeof(trp_add_routee),
                trp_add_routee_tag, TRP_TYPE_POSSIBLY_HARMFUL, add_fields, TRPI_TYPE_ADD_ROUTEE);
BUILT_IN_FIELDS(trp_remove_routee_type, "troupe.remove-routee", sizeof(trp_remove_routee),
                trp_remove_routee_tag, TRP_TYPE_POSSIBLY_HARMFUL, remove_fields,
                TRPI_TYPE_REMOVE_ROUTEE);
BUILT_IN_FIELDS(trp_adjust_pool_size_type, "troupe.adjust-pool-size", sizeof(trp_adjust_pool_size),
                trp_adjust_pool_size_tag, TRP_TYPE_POSSIBLY_HARMFUL, adjust_fields,
                TRPI_TYPE_ADJUST_POOL_SIZE);
INTERNAL(trpi_resize_type, "troupe.priv-resize", TRPI_TYPE_RESIZE);

static const trpi_built_in_type rows[] = {
    { &trp_broadcast_type, 0 },        { &trp_keyed_type, 0 },      { &trp_get_routees_type, 0 },
    { &trp_routees_type, 0 },          { &trp_add_routee_type, 0 }, { &trp_remove_routee_type, 0 },
    { &trp_adjust_pool_size_type, 0 }, { &trpi_resize_type, 0 },
};

const trpi_type_part trpi_router_types = TYPES_OF(rows);
