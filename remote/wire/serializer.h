/* serializer.h - how payloads become bytes: the registry, the bindings, and the built-in
 * serializers.
 *
 * Raw: a type with a field table goes field by field, without padding and in little endian; a type
 * without one goes as it lies in memory. Text: as it is. JSON: an object from the field table, or
 * the text of a JSON type. msgpack: a map. Refs inside payloads are translated node by node
 * (trpi_node_map).
 */
#ifndef TRPI_REMOTE_SERIALIZER_H
#define TRPI_REMOTE_SERIALIZER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/message.h>
#include <troupe/serialization.h>

#include "base/address.h"
#include "base/buffer.h"

/* Wire numbers; below TRPI_SERIALIZER_OWN_FIRST they are ours. */
enum {
    TRPI_SERIALIZER_RAW = 1,
    TRPI_SERIALIZER_JSON = 2,
    TRPI_SERIALIZER_TEXT = 3,
    TRPI_SERIALIZER_PARCEL = 4,
    TRPI_SERIALIZER_MSGPACK = 5,
    TRPI_SERIALIZER_PROTOBUF = 6,
    TRPI_SERIALIZER_OWN_FIRST = TRP_SERIALIZER_ID_FIRST
};
#define TRPI_SERIALIZERS_MAX (TRP_SERIALIZER_ID_MAX + 1)
#define TRPI_MAP_NODES_MAX 16 /* third nodes that one message may name */

/* Node numbers of this system against the codes of one message: 0 nobody, 1 the sending node, 2 the
 * receiving node, 3 + i the i-th entry of the message's node section. */
enum { TRPI_CODE_NONE = 0, TRPI_CODE_SENDING = 1, TRPI_CODE_RECEIVING = 2, TRPI_CODE_THIRD = 3 };
struct trpi_serializers;
typedef struct trpi_node_map {
    struct trpi_serializers *serializers; /* for what is carried in a parcel */
    uint32_t sending, receiving;          /* our numbers of the two ends */
    uint32_t third_count;
    uint32_t third[TRPI_MAP_NODES_MAX];
    void *arg;
    const trpi_node_id *(*get)(void *arg, uint32_t node); /* for JSON, which writes addresses out */
    /* *ret_node 0: it gets no number, and refs to it become TRP_REF_NONE */
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
    const trp_serializer *user; /* not NULL: the program's, which is called instead */
} trpi_serializer;

/* What a type came to, as version << 16 | id. */
typedef _Atomic uint64_t trpi_found;

typedef struct trpi_serializers {
    pthread_mutex_t lock; /* guards bindings, and who writes the rest; a leaf */
    const trpi_serializer *_Atomic by_id[TRPI_SERIALIZERS_MAX]; /* written once each */
    trpi_serializer own[TRPI_SERIALIZERS_MAX];                  /* what was added */
    _Atomic uint32_t version;
    _Atomic(struct trpi_shape *) shapes; /* of protobuf messages, newest first */
    _Atomic(trpi_found *) found;         /* by a type's number; NULL: nothing was ever bound */
    uint32_t bindings_count;
    struct {
        char pattern[TRP_TYPE_NAME_BYTES_MAX + 1];
        char name[TRP_SERIALIZER_NAME_BYTES_MAX + 1]; /* "none": the type does not travel */
    } bindings[TRP_SERIALIZER_BINDINGS_MAX];
} trpi_serializers;

/* With the built-in ones. All functions below: any thread. */
void trpi_serializers_init(trpi_serializers *serializers);
void trpi_serializers_fini(trpi_serializers *serializers);
/* Copies serializer, borrows what it points to. Errors: as trp_serializer_add. */
trp_err trpi_serializers_add(trpi_serializers *serializers, const trpi_serializer *serializer);
/* As trp_serializer_bind. waits: there may be no serializer of this name yet; until there is one
 * the type does not travel. Errors: its. */
trp_err trpi_serializers_bind(trpi_serializers *serializers, const char *pattern, const char *name,
                              bool waits);
/* The index-th binding whose serializer is not there; copies. false: there are no more. */
bool trpi_serializers_waiting(trpi_serializers *serializers, uint32_t index, char *pattern,
                              char *name);
/* NULL: this type does not travel. */
const trpi_serializer *trpi_serializers_for(trpi_serializers *serializers, const trp_type *type);
static inline const trpi_serializer *
trpi_serializers_get(trpi_serializers *serializers, uint16_t id)
{
    /* acquire: pairs with the release of who added it */
    return id < TRPI_SERIALIZERS_MAX
               ? atomic_load_explicit(&serializers->by_id[id], memory_order_acquire)
               : NULL;
}

/* Encode by a built-in serializer or by the program's. Errors: its. */
trp_err trpi_encode(const trpi_serializer *serializer, const trp_type *type, const void *payload,
                    size_t bytes, trpi_node_map *map, trpi_buffer *out);
/* The same backwards. What is not of the type's size is TRP_EDATA; then, and on any error, out is
 * as before. */
trp_err trpi_decode(const trpi_serializer *serializer, const trp_type *type, const uint8_t *wire,
                    size_t bytes, const trpi_node_map *map, trpi_buffer *out);

/* ---- serialization.c: the registry of a system ----------------------------------------------- */
/* A map in which `end` is both ends; UINT32_MAX: nobody is, and every node is a third one. */
trpi_node_map trpi_system_node_map(trp_system *system, trpi_serializers *serializers, uint32_t end);
/* Refs as text, as trp_wire_ref_format and _parse. */
trp_err trpi_map_ref_format(const trpi_node_map *map, trp_ref ref, char *buffer, size_t bytes);
trp_err trpi_map_ref_parse(const trpi_node_map *map, const char *text, size_t bytes,
                           trp_ref *ret_ref);
/* Make it, with the bindings of its configuration, or find it. Errors: TRP_ECONFIG (the log says
 * why), TRP_ENOMEM, TRP_ECLOSED, TRP_ELIMIT (extensions). Thread: any. */
trp_err trpi_serializers_of(trp_system *system, trpi_serializers **ret_serializers);

/* The field table of a type; the library's own types that hold refs have one here too. */
const trp_field *trpi_type_fields(const trp_type *type, uint32_t *ret_count);

extern const trpi_serializer trpi_serializer_raw;
extern const trpi_serializer trpi_serializer_json;
extern const trpi_serializer trpi_serializer_text;
extern const trpi_serializer trpi_serializer_msgpack;
#ifdef HAVE_PROTOBUF_C
extern const trpi_serializer trpi_serializer_protobuf;
#endif
void trpi_shapes_free(struct trpi_shape *shapes); /* at the end of a registry */
/* Of trpi_parcel_type alone, and the only one for it. */
extern const trpi_serializer trpi_serializer_parcel;

/* ---- round_trip.c ---- */
/* Offer the actor room what another node would get for a payload (serialize-messages). Before
 * main(). */
void trpi_remote_round_trip_offer(void);

#endif
