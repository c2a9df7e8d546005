/* routing_types.h - numbers of the built-in types of routers (base/built_in_types.h). */
#ifndef TRPI_PATTERN_ROUTING_TYPES_H
#define TRPI_PATTERN_ROUTING_TYPES_H

#include <troupe/router.h>

enum {
    TRPI_TYPE_BROADCAST = 32,
    TRPI_TYPE_KEYED = 33,
    TRPI_TYPE_GET_ROUTEES = 34,
    TRPI_TYPE_ROUTEES = 35,
    TRPI_TYPE_ADD_ROUTEE = 36,
    TRPI_TYPE_REMOVE_ROUTEE = 37,
    TRPI_TYPE_ADJUST_POOL_SIZE = 38,
    TRPI_TYPE_RESIZE = 39 /* internal: the head of a router checks the size of its pool */
};

extern trp_type trpi_resize_type;

#endif
