/* built_in_types.h - how a room declares its built-in message and event types.
 *
 * A built-in type has a fixed number, its index in the process's table of types; the number never
 * travels, the wire id (a hash of the name) does. Numbers by room: src/actor has those of
 * actor/kernel/type.h, remote 24 to 31, 58 and 59 (remote/event_types.c), src/pattern 32 to 39
 * (routing_types.h), src/persistence 60 and 61; 8 to 10 are free. The list of all rooms is in
 * cluster/node/built_in_types.c; actor/kernel/type.c enters it when the library is loaded. Types of
 * protocols get their numbers when they are registered.
 */
#ifndef TRPI_BASE_BUILT_IN_TYPES_H
#define TRPI_BASE_BUILT_IN_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include <troupe/message.h>

typedef struct trpi_built_in_type {
    const trp_type *type;
    uint16_t parent; /* number of the parent in the hierarchy of events; 0: none */
} trpi_built_in_type;

/* The types of one room. */
typedef struct trpi_type_part {
    const trpi_built_in_type *types;
    uint32_t count;
} trpi_type_part;

/* The parts of all rooms; NULL-terminated. */
extern const trpi_type_part *const trpi_type_parts[];

#define TYPES_OF(rows)                                                                             \
    {                                                                                              \
        rows, sizeof rows / sizeof rows[0]                                                         \
    }

#define BUILT_IN(symbol, text, size, type_tag, type_flags, type_number)                            \
    trp_type symbol = { text, size, type_tag, type_flags, NULL, 0, type_number }
#define BUILT_IN_FIELDS(symbol, text, size, type_tag, type_flags, fields, type_number)             \
    trp_type symbol = { text,       size,   type_tag,                                              \
                        type_flags, fields, sizeof fields / sizeof fields[0],                      \
                        type_number }
/* A type of the library's own, which programs never see and which stays on its node. */
#define INTERNAL(symbol, text, type_number)                                                        \
    BUILT_IN(symbol, text, 0, 0xfff0, TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL, type_number)

#endif
