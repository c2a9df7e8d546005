/* serializer_protobuf.c - payloads as Protocol Buffers, through protobuf-c. The only file that
 * includes its header.
 *
 * Shape.  struct of the type <-- by name, matched at bind --> struct of protoc-c <--> bytes
 * Must hold.
 *   serializer-protobuf-P1  A bound message has no nested messages: decoding does not recurse.
 *   serializer-protobuf-P2  A shape that was added stays until the registry ends: readers need no
 *       lock.
 * Limits. One shape for each binding.
 * Tests.  tests/unit/remote/protobuf_test.c
 */
#include <string.h>

#include <troupe/protobuf.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "base/payload.h"
#include "remote/wire/serializer.h"

#ifdef HAVE_PROTOBUF_C

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include <protobuf-c/protobuf-c.h>
#pragma GCC diagnostic pop

struct trpi_shape {
    struct trpi_shape *next;
    const trp_type *type;
    const ProtobufCMessageDescriptor *descriptor;
    const ProtobufCFieldDescriptor *fields[]; /* of the type's fields, in their order */
};
enum { REF_TEXT_BYTES = TRPI_ADDRESS_TEXT_BYTES + 2 + 20 + 1 + 20 };

void
trpi_shapes_free(struct trpi_shape *shapes)
{
    while (shapes != NULL) {
        struct trpi_shape *next = shapes->next;
        trpi_free(shapes);
        shapes = next;
    }
}

static const struct trpi_shape *
shape_of(trpi_serializers *serializers, const trp_type *type)
{
    /* acquire: pairs with the release of bind */
    const struct trpi_shape *shape =
        atomic_load_explicit(&serializers->shapes, memory_order_acquire);
    while (shape != NULL && shape->type != type) {
        shape = shape->next;
    }
    return shape;
}

static bool
kind_varies(uint32_t kind)
{
    return kind == TRP_FIELD_text || kind == TRP_FIELD_bytes || trpi_kind_is_array(kind);
}

/* ---- encode ---------------------------------------------------------------------------------- */

static char no_text[1]; /* not const, as the field in a message */

/* Memory that the generated struct points to: copies of texts of fixed size, refs as text, and the
 * pointers to texts of an array. */
typedef struct beside {
    char **pointers;
    char *texts;
} beside;

/* Values of variable length have been checked and are not copied; nor are NUL-terminated texts. */
static void
set_varying(const trp_field *field, const uint8_t *payload, const ProtobufCFieldDescriptor *of,
            uint8_t *message, beside *room)
{
    trpi_slice slice = trpi_slice_get(payload + field->offset);
    const void *data = payload + slice.at;
    size_t count = slice.count;
    if (field->kind == TRP_FIELD_text) {
        data = count != 0 ? data : "";
    } else if (field->kind == TRP_FIELD_bytes) {
        ProtobufCBinaryData bytes = { count, (uint8_t *)(uintptr_t)data };
        memcpy(message + of->offset, &bytes, sizeof bytes);
        return;
    } else {
        memcpy(message + of->quantifier_offset, &count, sizeof count);
    }
    if (field->kind == (TRP_FIELD_ARRAY | TRP_FIELD_text)) {
        data = room->pointers;
        for (size_t i = 0; i < count; i++) {
            trpi_slice text = trpi_slice_get(payload + slice.at + i * sizeof text);
            *room->pointers++ = text.count != 0 ? (char *)(uintptr_t)payload + text.at : no_text;
        }
    }
    memcpy(message + of->offset, &data, sizeof data);
}

/* Copy one field of fixed size into the generated struct; texts go into `scratch`. */
static trp_err
set_field(const trp_field *field, const uint8_t *at, const ProtobufCFieldDescriptor *of,
          const trpi_node_map *map, uint8_t *message, char **scratch)
{
    size_t bytes = trpi_kind_bytes(field->kind, NULL);
    if (field->kind == TRP_FIELD_bool) {
        protobuf_c_boolean yes = *at != 0;
        memcpy(message + of->offset, &yes, sizeof yes);
    } else if (of->type == PROTOBUF_C_TYPE_STRING) {
        char *text = *scratch;
        trp_ref ref;
        if (field->kind == TRP_FIELD_ref) {
            memcpy(&ref, at, sizeof ref);
            trp_err err = trpi_map_ref_format(map, ref, text, REF_TEXT_BYTES);
            if (err != TRP_OK) {
                return err;
            }
            *scratch += REF_TEXT_BYTES;
        } else {
            memcpy(text, at, bytes - 1); /* the NUL is there */
            *scratch += bytes;
        }
        memcpy(message + of->offset, &text, sizeof text);
        return TRP_OK;
    } else {
        memcpy(message + of->offset, at, bytes);
    }
    if (of->label == PROTOBUF_C_LABEL_OPTIONAL) {
        protobuf_c_boolean has = 1;
        memcpy(message + of->quantifier_offset, &has, sizeof has);
    }
    return TRP_OK;
}

static trp_err
protobuf_encode(const trp_type *type, const void *payload, size_t bytes, trpi_node_map *map,
                trpi_buffer *out)
{
    const struct trpi_shape *shape = shape_of(map->serializers, type);
    uint32_t count = 0;
    const trp_field *fields = trpi_type_fields(type, &count);
    if (shape == NULL) {
        return TRP_ENOTYPE;
    }
    /* a text in an array needs 8 bytes and a pointer, so the payload's size bounds their number */
    size_t message_bytes = (shape->descriptor->sizeof_message + 15) / 16 * 16;
    size_t pointers_bytes = (bytes + 15) / 16 * 16;
    uint8_t *message =
        trpi_alloc(message_bytes + pointers_bytes + (size_t)type->bytes + count * REF_TEXT_BYTES);
    if (message == NULL) {
        return TRP_ENOMEM;
    }
    beside room = { (char **)(void *)(message + message_bytes),
                    (char *)message + message_bytes + pointers_bytes };
    trp_err err = TRP_OK;
    protobuf_c_message_init(shape->descriptor, message);
    for (uint32_t i = 0; i < count && err == TRP_OK; i++) {
        if (kind_varies(fields[i].kind)) {
            set_varying(&fields[i], payload, shape->fields[i], message, &room);
        } else {
            err = set_field(&fields[i], (const uint8_t *)payload + fields[i].offset,
                            shape->fields[i], map, message, &room.texts);
        }
    }
    if (err == TRP_OK) {
        const ProtobufCMessage *whole = (const void *)message;
        size_t packed = protobuf_c_message_get_packed_size(whole);
        err = trpi_buffer_reserve(out, packed, TRPI_BUFFER_NO_LIMIT);
        if (err == TRP_OK && packed > 0) {
            out->count += protobuf_c_message_pack(whole, out->data + out->count);
        }
    }
    trpi_free(message);
    return err;
}

/* ---- decode ---------------------------------------------------------------------------------- */

static bool
get_field(const trp_field *field, uint8_t *at, const ProtobufCFieldDescriptor *of,
          const trpi_node_map *map, const uint8_t *message)
{
    size_t bytes = trpi_kind_bytes(field->kind, NULL);
    if (field->kind == TRP_FIELD_bool) {
        protobuf_c_boolean yes;
        memcpy(&yes, message + of->offset, sizeof yes);
        *at = yes != 0;
    } else if (of->type == PROTOBUF_C_TYPE_STRING) {
        const char *text;
        memcpy(&text, message + of->offset, sizeof text);
        size_t length = text != NULL ? strlen(text) : 0;
        if (field->kind == TRP_FIELD_ref) {
            trp_ref ref = TRP_REF_NONE;
            bool ok = trpi_map_ref_parse(map, length > 0 ? text : "", length, &ref) == TRP_OK;
            memcpy(at, &ref, sizeof ref);
            return ok;
        }
        if (length >= bytes) {
            return false;
        }
        memcpy(at, length > 0 ? text : "", length);
    } else {
        memcpy(at, message + of->offset, bytes);
    }
    return true;
}

/* Decode a value of variable length into the block that begins at out->data + begin. */
static trp_err
get_varying(const trp_field *field, const ProtobufCFieldDescriptor *of, const uint8_t *message,
            trpi_buffer *out, size_t begin)
{
    const void *data;
    ProtobufCBinaryData bytes;
    size_t count = 0;
    uint32_t kind = trpi_kind_element(field->kind), at = 0;
    if (field->kind == TRP_FIELD_bytes) {
        memcpy(&bytes, message + of->offset, sizeof bytes);
        return trpi_payload_put_bytes(out, begin, field->offset, bytes.data, bytes.len);
    }
    memcpy(&data, message + of->offset, sizeof data);
    if (field->kind == TRP_FIELD_text) {
        return trpi_payload_put_text(out, begin, field->offset, data,
                                     data != NULL ? strlen(data) : 0);
    }
    memcpy(&count, message + of->quantifier_offset, sizeof count);
    size_t each = trpi_kind_bytes(kind, NULL);
    trp_err err = trpi_payload_put_array(out, begin, field->offset, each, count, &at);
    for (size_t i = 0; kind == TRP_FIELD_text && i < count && err == TRP_OK; i++) {
        const char *text = ((char *const *)data)[i];
        err = trpi_payload_put_text(out, begin, at + i * each, text, strlen(text));
    }
    if (kind != TRP_FIELD_text && count != 0 && err == TRP_OK) {
        memcpy(out->data + begin + at, data, count * each);
    }
    return err;
}

static void *
message_alloc(void *data, size_t bytes)
{
    (void)data;
    return trpi_alloc(bytes);
}
static void
message_free(void *data, void *memory)
{
    (void)data;
    trpi_free(memory);
}

static trp_err
protobuf_decode(const trp_type *type, const uint8_t *wire, size_t bytes, const trpi_node_map *map,
                trpi_buffer *out)
{
    static ProtobufCAllocator allocator = { message_alloc, message_free, NULL };
    const struct trpi_shape *shape = shape_of(map->serializers, type);
    uint32_t count = 0;
    const trp_field *fields = trpi_type_fields(type, &count);
    ProtobufCMessage *message =
        shape == NULL ? NULL
                      : protobuf_c_message_unpack(shape->descriptor, &allocator, bytes, wire);
    if (message == NULL) {
        return TRP_EDATA;
    }
    size_t begin = out->count;
    uint32_t root = 0;
    trp_err err = trpi_payload_take(out, begin, type->bytes, 1, &root);
    for (uint32_t i = 0; i < count && err == TRP_OK; i++) {
        const uint8_t *from = (const uint8_t *)message;
        if (kind_varies(fields[i].kind)) {
            err = get_varying(&fields[i], shape->fields[i], from, out, begin);
        } else {
            err = get_field(&fields[i], out->data + begin + fields[i].offset, shape->fields[i], map,
                            from)
                      ? TRP_OK
                      : TRP_EDATA;
        }
    }
    protobuf_c_message_free_unpacked(message, &allocator);
    return err;
}

const trpi_serializer trpi_serializer_protobuf = { .id = TRPI_SERIALIZER_PROTOBUF,
                                                   .name = "protobuf",
                                                   .encode = protobuf_encode,
                                                   .decode = protobuf_decode };

/* ---- bind ------------------------------------------------------------------------------------ */

/* Return whether the two have the same form in memory, or one that get_field() and set_field()
 * translate. */
static bool
is_counterpart(uint32_t kind, const ProtobufCFieldDescriptor *of)
{
    bool repeated = of != NULL && of->label == PROTOBUF_C_LABEL_REPEATED;
    if (of == NULL || repeated != trpi_kind_is_array(kind)) {
        return false;
    }
    kind = trpi_kind_element(kind);
    if (repeated && (kind == TRP_FIELD_bool || kind == TRP_FIELD_ref || kind == TRP_FIELD_bytes ||
                     trpi_kind_text_room(kind) != 0)) {
        return false; /* different in memory */
    }
    switch (of->type) {
    case PROTOBUF_C_TYPE_BOOL:
        return kind == TRP_FIELD_bool;
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return kind == TRP_FIELD_i32;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return kind == TRP_FIELD_u32;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return kind == TRP_FIELD_i64;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return kind == TRP_FIELD_u64;
    case PROTOBUF_C_TYPE_DOUBLE:
        return kind == TRP_FIELD_f64;
    case PROTOBUF_C_TYPE_STRING:
        return kind == TRP_FIELD_ref || kind == TRP_FIELD_text || trpi_kind_text_room(kind) != 0;
    case PROTOBUF_C_TYPE_BYTES:
        return kind == TRP_FIELD_bytes;
    default:
        return false;
    }
}

/* Return the name of a field that is a message or in a oneof; NULL: none (serializer-protobuf-P1).
 */
static const char *
not_flat(const ProtobufCMessageDescriptor *descriptor)
{
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        if (field->type == PROTOBUF_C_TYPE_MESSAGE ||
            (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
            return field->name;
        }
    }
    return NULL;
}

static trp_err
bind_refuse(trp_system *system, const trp_type *type, const char *field, const char *why)
{
    trpi_log(system, TRP_LOG_ERROR, "serialization",
             "a type cannot be bound to a protobuf message type=%s field=%s reason=\"%s\"",
             type->name, field, why);
    return TRP_EINVAL;
}

static trp_err
shape_fill(trp_system *system, struct trpi_shape *shape, const trp_field *fields, uint32_t count)
{
    const char *odd = not_flat(shape->descriptor);
    if (odd != NULL) {
        return bind_refuse(system, shape->type, odd, "it is a message or part of a oneof");
    }
    for (uint32_t i = 0; i < count; i++) {
        shape->fields[i] =
            protobuf_c_message_descriptor_get_field_by_name(shape->descriptor, fields[i].name);
        if (!is_counterpart(fields[i].kind, shape->fields[i])) {
            return bind_refuse(system, shape->type, fields[i].name,
                               shape->fields[i] == NULL ? "the message has none of this name"
                                                        : "it is of another kind in the message");
        }
    }
    return TRP_OK;
}

trp_err
trp_protobuf_bind(trp_system *system, const trp_type *type, const void *descriptor)
{
    const ProtobufCMessageDescriptor *message = descriptor;
    trpi_serializers *serializers = NULL;
    uint32_t count = 0;
    if (type == NULL || message == NULL || message->magic != PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC ||
        trpi_type_fields(type, &count) == NULL) {
        return TRP_EINVAL;
    }
    trp_err err = type->number != 0 ? trpi_serializers_of(system, &serializers) : TRP_ENOTYPE;
    if (err != TRP_OK) {
        return err;
    }
    struct trpi_shape *shape =
        trpi_alloc(sizeof *shape + count * sizeof(const ProtobufCFieldDescriptor *));
    if (shape == NULL) {
        return TRP_ENOMEM;
    }
    shape->type = type;
    shape->descriptor = message;
    err = shape_fill(system, shape, trpi_type_fields(type, &count), count);
    /* Before the shape, so that there are no more shapes than bindings; a message that is told
     * before the shape is there cannot be sent. */
    err = err != TRP_OK ? err : trpi_serializers_bind(serializers, type->name, "protobuf", false);
    if (err != TRP_OK) {
        trpi_free(shape);
        return err;
    }
    pthread_mutex_lock(&serializers->lock);
    shape->next = atomic_load_explicit(&serializers->shapes, memory_order_relaxed);
    /* serializer-protobuf-P2 */
    atomic_store_explicit(&serializers->shapes, shape, memory_order_release);
    pthread_mutex_unlock(&serializers->lock);
    return TRP_OK;
}

#else

trp_err
trp_protobuf_bind(trp_system *system, const trp_type *type, const void *descriptor)
{
    if (type != NULL && descriptor != NULL) {
        trpi_log(system, TRP_LOG_ERROR, "serialization",
                 "built without protobuf-c: install libprotobuf-c-dev and configure again type=%s",
                 type->name);
        return TRP_EUNSUPPORTED;
    }
    return TRP_EINVAL;
}

void
trpi_shapes_free(struct trpi_shape *shapes)
{
    (void)shapes; /* there are none */
}

#endif
