/* serializer.h - how payloads become bytes: the registry, the bindings, and the three built-in
 * serializers.
 *
 * Raw: a type with a field table goes field by field, without padding and in little endian; a type
 * without one goes as it lies in memory. Text: as it is. JSON: an object from the field table, or
 * the text of a JSON type. Refs inside payloads are translated node by node (trpi_node_map).
 */
#ifndef TRPI_REMOTE_SERIALIZER_H
#define TRPI_REMOTE_SERIALIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/message.h>

#include "base/address.h"
#include "base/buffer.h"

enum { /* wire numbers; below TRPI_SERIALIZER_OWN_FIRST they are ours */
    TRPI_SERIALIZER_RAW = 1,
    TRPI_SERIALIZER_JSON = 2,
    TRPI_SERIALIZER_TEXT = 3,
    TRPI_SERIALIZER_PARCEL = 4,
    TRPI_SERIALIZER_OWN_FIRST = 17
};
#define TRPI_SERIALIZERS_MAX 64       /* ids 1 .. 63 */
#define TRPI_SERIALIZER_BINDINGS_MAX 64
#define TRPI_MAP_NODES_MAX 16         /* third nodes that one message may name */

/* Node numbers of this system against the codes of one message: 0 nobody, 1 the sending node, 2 the
 * receiving node, 3 + i the i-th entry of the message's node section. */
enum { TRPI_CODE_NONE = 0, TRPI_CODE_SENDING = 1, TRPI_CODE_RECEIVING = 2, TRPI_CODE_THIRD = 3 };
struct trpi_serializers;
typedef struct trpi_node_map {
    const struct trpi_serializers *serializers; /* for what is carried in a parcel */
    uint32_t sending, receiving; /* our numbers of the two ends */
    uint32_t third_count;
    uint32_t third[TRPI_MAP_NODES_MAX];
    void *arg;
    const trpi_node_id *(*get)(void *arg, uint32_t node); /* for JSON, which writes addresses out */
    trp_err (*intern)(void *arg, const trpi_node_id *id, uint32_t *ret_node);
} trpi_node_map;

/* Errors: TRP_ELIMIT (a 17th third node). Adds node to the map when it is a third one. */
trp_err trpi_node_map_encode(trpi_node_map *map, uint32_t node, uint8_t *ret_code);
/* Errors: TRP_EDATA (a code that the message does not define). */
trp_err trpi_node_map_decode(const trpi_node_map *map, uint8_t code, uint32_t *ret_node);

typedef struct trpi_serializer {
    uint16_t id;
    const char *name; /* "raw" */
    /* Append the wire form. Errors: TRP_ENOTYPE (cannot express this type), TRP_ENOMEM,
     * TRP_ELIMIT. */
    trp_err (*encode)(const trp_type *type, const void *payload, size_t bytes, trpi_node_map *map,
                      trpi_buffer *out);
    /* Append the payload as the type wants it. Input is a stranger's. Errors: TRP_EDATA,
     * TRP_ENOMEM. */
    trp_err (*decode)(const trp_type *type, const uint8_t *wire, size_t bytes,
                      const trpi_node_map *map, trpi_buffer *out);
} trpi_serializer;

typedef struct trpi_serializers {
    const trpi_serializer *by_id[TRPI_SERIALIZERS_MAX];
    uint32_t bindings_count;
    struct {
        char pattern[TRP_TYPE_NAME_BYTES_MAX + 1];
        uint16_t id; /* 0: none, the type does not travel */
    } bindings[TRPI_SERIALIZER_BINDINGS_MAX];
} trpi_serializers;

/* With the built-in ones. Change only before remoting starts. */
void trpi_serializers_init(trpi_serializers *serializers);
/* Borrows serializer. Errors: TRP_EINVAL (id below TRPI_SERIALIZER_OWN_FIRST), TRP_ELIMIT (id too
 * high), TRP_EEXIST (id or name is taken). */
trp_err trpi_serializers_add(trpi_serializers *serializers, const trpi_serializer *serializer);
/* Bind a type name, or all of a protocol ("bank.*"), to a serializer by name; "none" keeps it at
 * home. The most specific binding wins; without one the type's own form decides: text, JSON, else
 * raw.
 * Errors: TRP_ENOENT (no such serializer), TRP_EINVAL (pattern), TRP_ELIMIT. */
trp_err trpi_serializers_bind(trpi_serializers *serializers, const char *pattern, const char *name);
/* NULL: this type does not travel. */
const trpi_serializer *trpi_serializers_for(const trpi_serializers *serializers,
                                            const trp_type *type);
static inline const trpi_serializer *
trpi_serializers_get(const trpi_serializers *serializers, uint16_t id)
{
    return id < TRPI_SERIALIZERS_MAX ? serializers->by_id[id] : NULL;
}

/* The field table of a type; the library's own types that hold refs have one here too. */
const trp_field *trpi_type_fields(const trp_type *type, uint32_t *ret_count);

extern const trpi_serializer trpi_serializer_raw;
extern const trpi_serializer trpi_serializer_json;
extern const trpi_serializer trpi_serializer_text;
/* Of trpi_parcel_type alone, and the only one for it. */
extern const trpi_serializer trpi_serializer_parcel;

#endif
