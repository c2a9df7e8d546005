/* serializer.h - payloads as bytes: the registry of serializers, their bindings to types, and the
 * built-in serializers.
 *
 * Raw: field by field, without padding and in little endian, for a type with a field table; the
 * bytes in memory for other types. Text: its bytes. JSON: an object from the field table, or the
 * text of a JSON type. msgpack: a map. The nodes of refs in payloads are translated
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

#include "actor/actor.h"
#include "base/address.h"
#include "base/buffer.h"

/* Wire numbers; those below TRPI_SERIALIZER_OWN_FIRST are built in or reserved. */
enum {
    TRPI_SERIALIZER_RAW = 1,
    TRPI_SERIALIZER_JSON = 2,
    TRPI_SERIALIZER_TEXT = 3,
    TRPI_SERIALIZER_PARCEL = 4,
    TRPI_SERIALIZER_MSGPACK = 5,
    TRPI_SERIALIZER_PROTOBUF = 6,
    TRPI_SERIALIZER_ENTITY = 7,
    TRPI_SERIALIZER_TOPIC = 8,
    TRPI_SERIALIZER_OWN_FIRST = TRP_SERIALIZER_ID_FIRST
};
#define TRPI_SERIALIZERS_MAX (TRP_SERIALIZER_ID_MAX + 1)
#define TRPI_MAP_NODES_MAX 16 /* third nodes in one message */

/* Translates node numbers of this system to the node codes of one message: 0 none, 1 the sending
 * node, 2 the receiving node, 3 + i the i-th entry of the message's node section. */
enum { TRPI_CODE_NONE = 0, TRPI_CODE_SENDING = 1, TRPI_CODE_RECEIVING = 2, TRPI_CODE_THIRD = 3 };
struct trpi_serializers;
typedef struct trpi_node_map {
    struct trpi_serializers *serializers; /* for the message inside a parcel */
    uint32_t sending, receiving;          /* this system's numbers of the two ends */
    uint32_t third_count;
    uint32_t third[TRPI_MAP_NODES_MAX];
    void *arg;
    const trpi_node_id *(*get)(void *arg, uint32_t node); /* for JSON, which writes addresses out */
    /* *ret_node 0: the node gets no number, and refs to it become TRP_REF_NONE */
    trp_err (*intern)(void *arg, const trpi_node_id *id, uint32_t *ret_node);
} trpi_node_map;

/* Errors: TRP_ELIMIT (a 17th third node). Adds node to the map when it is a third one. */
trp_err trpi_node_map_encode(trpi_node_map *map, uint32_t node, uint8_t *ret_code);
/* Errors: TRP_EDATA (a code that the message does not define). */
trp_err trpi_node_map_decode(const trpi_node_map *map, uint8_t code, uint32_t *ret_node);

typedef struct trpi_serializer {
    uint16_t id;
    const char *name; /* "raw" */
    /* Append the wire form. Errors: TRP_ENOTYPE (cannot encode this type), TRP_ENOMEM, TRP_ELIMIT.
     */
    trp_err (*encode)(const trp_type *type, const void *payload, size_t bytes, trpi_node_map *map,
                      trpi_buffer *out);
    /* Append the payload as it is in memory. The input is not trusted. Errors: TRP_EDATA,
     * TRP_ENOMEM. */
    trp_err (*decode)(const trp_type *type, const uint8_t *wire, size_t bytes,
                      const trpi_node_map *map, trpi_buffer *out);
    const trp_serializer *user; /* a program's serializer, called instead; NULL: built in */
} trpi_serializer;

/* The cached serializer of a type, as version << 16 | id. */
typedef _Atomic uint64_t trpi_cached_serializer;

typedef struct trpi_serializers {
    pthread_mutex_t lock; /* guards bindings, and writes to the rest; a leaf */
    const trpi_serializer *_Atomic by_id[TRPI_SERIALIZERS_MAX]; /* written once each */
    trpi_serializer own[TRPI_SERIALIZERS_MAX];                  /* those of the program */
    _Atomic uint32_t version;
    _Atomic(struct trpi_shape *) shapes; /* of protobuf messages, newest first */
    _Atomic(trpi_cached_serializer *)
        cached; /* cache by type number; NULL: there are no bindings */
    uint32_t bindings_count;
    struct {
        char pattern[TRP_TYPE_NAME_BYTES_MAX + 1];
        char name[TRP_SERIALIZER_NAME_BYTES_MAX + 1]; /* "none": the type does not travel */
    } bindings[TRP_SERIALIZER_BINDINGS_MAX];
} trpi_serializers;

/* Initialise, with the built-in serializers. All functions below: any thread. */
void trpi_serializers_init(trpi_serializers *serializers);
void trpi_serializers_fini(trpi_serializers *serializers);
/* Add a serializer. Copies it, borrows what it points to. Errors: as trp_serializer_add. */
trp_err trpi_serializers_add(trpi_serializers *serializers, const trpi_serializer *serializer);
/* As trp_serializer_bind(). waits: the serializer of this name may come later; until then messages
 * of the type cannot be sent. Errors: those of trp_serializer_bind(). */
trp_err trpi_serializers_bind(trpi_serializers *serializers, const char *pattern, const char *name,
                              bool waits);
/* Copy the index-th binding whose serializer is not there. false: there are no more. */
bool trpi_serializers_waiting(trpi_serializers *serializers, uint32_t index, char *pattern,
                              char *name);
/* Return the serializer of a type; NULL: it cannot be sent. */
const trpi_serializer *trpi_serializers_for(trpi_serializers *serializers, const trp_type *type);
static inline const trpi_serializer *
trpi_serializers_get(trpi_serializers *serializers, uint16_t id)
{
    /* acquire: pairs with the release in trpi_serializers_add() */
    return id < TRPI_SERIALIZERS_MAX
               ? atomic_load_explicit(&serializers->by_id[id], memory_order_acquire)
               : NULL;
}

/* Encode with a built-in serializer or the program's. Errors: those of the serializer. */
trp_err trpi_encode(const trpi_serializer *serializer, const trp_type *type, const void *payload,
                    size_t bytes, trpi_node_map *map, trpi_buffer *out);
/* Decode. A result that does not have the type's size is TRP_EDATA. On any error out is unchanged.
 */
trp_err trpi_decode(const trpi_serializer *serializer, const trp_type *type, const uint8_t *wire,
                    size_t bytes, const trpi_node_map *map, trpi_buffer *out);

/* ---- serialization.c: the registry of a system ----------------------------------------------- */
/* Return a map in which `end` is both ends; UINT32_MAX: none is, and every node is a third one. */
trpi_node_map trpi_system_node_map(trp_system *system, trpi_serializers *serializers, uint32_t end);
/* Refs as text, see trp_wire_ref_format() and trp_wire_ref_parse(). */
trp_err trpi_map_ref_format(const trpi_node_map *map, trp_ref ref, char *buffer, size_t bytes);
trp_err trpi_map_ref_parse(const trpi_node_map *map, const char *text, size_t bytes,
                           trp_ref *ret_ref);
/* Return the registry of a system; the first call makes it, with the configured bindings. Errors:
 * TRP_ECONFIG (the log says why), TRP_ENOMEM, TRP_ECLOSED, TRP_ELIMIT (extensions). Thread: any. */
trp_err trpi_serializers_of(trp_system *system, trpi_serializers **ret_serializers);

/* Return the field table of a type; also those of the library's own types that hold refs. */
const trp_field *trpi_type_fields(const trp_type *type, uint32_t *ret_count);

extern const trpi_serializer trpi_serializer_raw;
extern const trpi_serializer trpi_serializer_json;
extern const trpi_serializer trpi_serializer_text;
extern const trpi_serializer trpi_serializer_msgpack;
#ifdef HAVE_PROTOBUF_C
extern const trpi_serializer trpi_serializer_protobuf;
#endif
void trpi_shapes_free(struct trpi_shape *shapes); /* called when a registry is freed */
/* The only serializer for trpi_parcel_type, and only for that. */
extern const trpi_serializer trpi_serializer_parcel;
/* The same for trpi_entity_envelope_type. */
extern const trpi_serializer trpi_serializer_entity;
/* Append the wire form of an envelope that is in parts. Errors: as trpi_encode(). */
trp_err trpi_entity_encode(const trpi_carrier *envelope, trpi_node_map *map, trpi_buffer *out);
/* Split the wire form of an envelope into parts: *ret_head and *ret_parts. The payload is appended
 * to scratch, and NULL here, where its wire form is not its form in memory. likely: the type of the
 * carried message, if it is that; may be NULL. Errors: TRP_EDATA (also where decoding would leave
 * an envelope without its message), TRP_ENOMEM. */
struct trpi_entity_envelope;
trp_err trpi_entity_decode(const uint8_t *wire, size_t bytes, const trpi_node_map *map,
                           const trp_type *likely, trpi_buffer *scratch,
                           struct trpi_entity_envelope *ret_head, trpi_carrier *ret_parts);
/* Is the wire form of a type's payloads their form in memory? */
bool trpi_is_plain(const trp_type *type, const trpi_serializer *serializer);
/* The same for trpi_topic_envelope_type. */
extern const trpi_serializer trpi_serializer_topic;

/* As trp_serialize(), behind what out has. */
trp_err trpi_message_store(trp_system *system, const trp_type *type, const void *payload,
                           size_t bytes, trpi_buffer *out);

/* ---- round_trip.c ---- */
/* Register the round trip with the actor room, for serialize-messages. Called before main(). */
void trpi_remote_round_trip_offer(void);

#endif
