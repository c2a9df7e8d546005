/* serialization.c - the registry of a system, the functions that a program's serializers may call,
 * and messages as self-contained bytes.
 *
 * Shape.   self-contained bytes: version 1, flags 1 (1: with a node section at the end), serializer
 *          2, type 8, the payload, [nodes]. All nodes, this one too, are third nodes: entries of
 *          the section.
 * Must hold.
 *   serialization-Z1  From any bytes deserialize makes a message that is valid for its type, or an
 *       error.
 * Tests.   tests/unit/remote/serialization_test.c
 * Sources. SERIAL-01, -07, -10, -11, -12, -15
 */
#include <stdio.h>
#include <string.h>

#include <troupe/extension.h>
#include <troupe/path.h>
#include <troupe/serialization.h>

#include "base/alloc.h"
#include "base/config.h"
#include "base/payload.h"
#include "base/sized.h"
#include "base/wire.h"
#include "pattern/pattern.h"
#include "remote/wire/codec.h"

/* ---- one registry a system ------------------------------------------------------------------- */

/* "bank.*=json" */
static trp_err
bind_configured(trp_system *system, trpi_serializers *serializers, const char *text)
{
    char pattern[TRP_TYPE_NAME_BYTES_MAX + 2];
    const char *equals = strchr(text, '=');
    trp_err err = TRP_EINVAL;
    if (equals != NULL && equals[1] != '\0' && (size_t)(equals - text) <= TRP_TYPE_NAME_BYTES_MAX) {
        (void)snprintf(pattern, sizeof pattern, "%.*s", (int)(equals - text), text);
        err = trpi_serializers_bind(serializers, pattern, equals + 1, true);
    }
    if (err == TRP_EINVAL || err == TRP_ELIMIT) {
        trpi_log(system, TRP_LOG_ERROR, "serialization",
                 "wrong entry of actor.serialization-bindings entry=\"%s\" hint=\"%s\"", text,
                 err == TRP_ELIMIT ? "too many of them"
                                   : "write \"protocol.type=serializer\", "
                                     "\"protocol.*=serializer\" or \"*=serializer\"");
        return TRP_ECONFIG;
    }
    return err;
}

static void
registry_release(void *instance)
{
    trpi_serializers_fini(instance);
    trpi_free(instance);
}

static trp_err
registry_create(trp_system *system, void *arg, void **ret_instance)
{
    trpi_serializers *serializers = trpi_alloc(sizeof *serializers);
    const trp_config *config = trpi_system_config(system); /* borrowed */
    trp_err err = TRP_OK;
    (void)arg;
    if (serializers == NULL) {
        return TRP_ENOMEM;
    }
    trpi_serializers_init(serializers);
    size_t count = trpi_config_list_count(config, "actor.serialization-bindings");
    for (size_t i = 0; i < count && err == TRP_OK; i++) {
        err = bind_configured(system, serializers,
                              trpi_config_list_at(config, "actor.serialization-bindings", i));
    }
    if (err != TRP_OK) {
        registry_release(serializers);
        return err;
    }
    *ret_instance = serializers;
    return TRP_OK;
}

static const trp_extension registry = { .size = sizeof(trp_extension),
                                        .name = "serialization",
                                        .create = registry_create,
                                        .release = registry_release };

trp_err
trpi_serializers_of(trp_system *system, trpi_serializers **ret_serializers)
{
    void *instance = NULL;
    trp_err err = trp_extension_get(system, &registry, &instance);
    if (err == TRP_OK) {
        *ret_serializers = instance;
    }
    return err;
}

trp_err
trp_serializer_add(trp_system *system, const trp_serializer *serializer)
{
    trpi_serializers *serializers = NULL;
    if (serializer == NULL || !TRPI_SIZED_FITS(serializer, decode) || serializer->encode == NULL ||
        serializer->decode == NULL) {
        return TRP_EINVAL;
    }
    trpi_serializer own = { .id = serializer->id, .name = serializer->name, .user = serializer };
    trp_err err = trpi_serializers_of(system, &serializers);
    return err != TRP_OK ? err : trpi_serializers_add(serializers, &own);
}

trp_err
trp_serializer_bind(trp_system *system, const char *pattern, const char *name)
{
    trpi_serializers *serializers = NULL;
    if (pattern == NULL || name == NULL) {
        return TRP_EINVAL;
    }
    trp_err err = trpi_serializers_of(system, &serializers);
    return err != TRP_OK ? err : trpi_serializers_bind(serializers, pattern, name, false);
}

const char *
trp_serializer_of(trp_system *system, const trp_type *type, uint16_t *ret_id)
{
    trpi_serializers *serializers = NULL;
    const trpi_serializer *found = NULL;
    if (type != NULL && trpi_serializers_of(system, &serializers) == TRP_OK) {
        found = trpi_serializers_for(serializers, type);
    }
    if (found != NULL && ret_id != NULL) {
        *ret_id = found->id;
    }
    return found != NULL ? found->name : NULL;
}

/* ---- functions for a program's serializers --------------------------------------------------- */

struct trp_wire {
    const trpi_node_map *map;
    trpi_buffer *out;
};

trp_err
trp_wire_put(trp_wire *wire, const void *data, size_t bytes)
{
    return wire == NULL || (data == NULL && bytes > 0)
               ? TRP_EINVAL
               : trpi_buffer_append(wire->out, data, bytes, TRPI_BUFFER_NO_LIMIT);
}

trp_err
trpi_map_ref_format(const trpi_node_map *map, trp_ref ref, char *buffer, size_t bytes)
{
    if (trp_ref_is_none(ref) && bytes > 0) {
        buffer[0] = '\0';
        return TRP_OK;
    }
    const trpi_node_id *id = map->get(map->arg, ref.node);
    return id == NULL ? TRP_EINVAL : trpi_ref_text_format(id, "/", ref, buffer, bytes);
}

trp_err
trpi_map_ref_parse(const trpi_node_map *map, const char *text, size_t bytes, trp_ref *ret_ref)
{
    char whole[TRP_REF_TEXT_BYTES];
    trpi_node_id id;
    trp_ref ref = TRP_REF_NONE;
    const char *path;
    if (bytes >= sizeof whole || memchr(text, 0, bytes) != NULL) {
        return TRP_EDATA;
    }
    memcpy(whole, text, bytes);
    whole[bytes] = '\0';
    if (bytes > 0) {
        if (trpi_ref_text_parse(whole, &id, &path, &ref) != TRP_OK || path == whole ||
            id.uid == 0) {
            return TRP_EDATA;
        }
        trp_err err = map->intern(map->arg, &id, &ref.node);
        if (err != TRP_OK) {
            return err;
        }
        ref = ref.node == 0 ? (trp_ref)TRP_REF_NONE : ref;
    }
    *ret_ref = ref;
    return TRP_OK;
}

trp_err
trp_wire_ref_format(trp_wire *wire, trp_ref ref, char *buffer, size_t bytes)
{
    return wire == NULL || buffer == NULL ? TRP_EINVAL
                                          : trpi_map_ref_format(wire->map, ref, buffer, bytes);
}

trp_err
trp_wire_ref_parse(trp_wire *wire, const char *text, size_t bytes, trp_ref *ret_ref)
{
    return wire == NULL || text == NULL || ret_ref == NULL
               ? TRP_EDATA
               : trpi_map_ref_parse(wire->map, text, bytes, ret_ref);
}

trp_err
trpi_encode(const trpi_serializer *serializer, const trp_type *type, const void *payload,
            size_t bytes, trpi_node_map *map, trpi_buffer *out)
{
    if (trpi_payload_is_block(type) && trpi_payload_check(type, payload, bytes) != TRP_OK) {
        return TRP_ENOTYPE; /* not a valid block */
    }
    if (serializer->user == NULL) {
        return serializer->encode(type, payload, bytes, map, out);
    }
    trp_wire wire = { map, out };
    trp_err err = serializer->user->encode(serializer->user->arg, &wire, type, payload, bytes);
    return err == TRP_OK || err == TRP_ENOMEM || err == TRP_ELIMIT ? err : TRP_ENOTYPE;
}

trp_err
trpi_decode(const trpi_serializer *serializer, const trp_type *type, const uint8_t *bytes,
            size_t count, const trpi_node_map *map, trpi_buffer *out)
{
    size_t before = out->count;
    trp_wire wire = { map, out };
    if ((type == &trpi_parcel_type && serializer != &trpi_serializer_parcel) ||
        (type == &trpi_entity_envelope_type && serializer != &trpi_serializer_entity) ||
        (type == &trpi_topic_envelope_type && serializer != &trpi_serializer_topic)) {
        return TRP_EDATA; /* in memory it has numbers of this process */
    }
    trp_err err = serializer->user == NULL
                      ? serializer->decode(type, bytes, count, map, out)
                      : serializer->user->decode(serializer->user->arg, &wire, type, bytes, count);
    if (err == TRP_OK && !trpi_payload_fits(type, out->count - before)) {
        err = TRP_EDATA;
    }
    if (err == TRP_OK && serializer->user != NULL && trpi_payload_is_block(type)) {
        err = trpi_payload_check(type, out->data + before, out->count - before);
    }
    if (err != TRP_OK) {
        out->count = before;
    }
    return err;
}

/* ---- messages as bytes ----------------------------------------------------------------------- */

enum { HEAD_BYTES = 12, HEAD_VERSION = 1, HEAD_HAS_NODES = 1 };

static const trpi_node_id *
node_get(void *arg, uint32_t node)
{
    return trpi_node_id_get(arg, node);
}

static trp_err
node_intern(void *arg, const trpi_node_id *id, uint32_t *ret_node)
{
    return trpi_node_intern(arg, id, ret_node);
}

trpi_node_map
trpi_system_node_map(trp_system *system, trpi_serializers *serializers, uint32_t end)
{
    return (trpi_node_map){ .serializers = serializers,
                            .sending = end,
                            .receiving = end,
                            .arg = system,
                            .get = node_get,
                            .intern = node_intern };
}

static trp_err
message_encode(trp_system *system, trpi_serializers *serializers, const trp_type *type,
               const void *payload, size_t bytes, trpi_buffer *out)
{
    trpi_node_map map = trpi_system_node_map(system, serializers, UINT32_MAX);
    const trpi_serializer *serializer = trpi_serializers_for(serializers, type);
    uint8_t head[HEAD_BYTES] = { HEAD_VERSION };
    size_t at = out->count;
    if (serializer == NULL || type->number == 0) {
        return TRP_ENOTYPE;
    }
    trpi_put_u16(head + 2, serializer->id);
    trpi_put_u64(head + 4, trpi_type_wire_id(type->number));
    trp_err err = trpi_buffer_append(out, head, sizeof head, TRPI_BUFFER_NO_LIMIT);
    err = err != TRP_OK ? err : trpi_encode(serializer, type, payload, bytes, &map, out);
    if (err == TRP_OK && map.third_count > 0) {
        out->data[at + 1] = HEAD_HAS_NODES;
        err = trpi_node_section_append(out, &map);
    }
    return err;
}

trp_err
trpi_message_store(trp_system *system, const trp_type *type, const void *payload, size_t bytes,
                   trpi_buffer *out)
{
    trpi_serializers *serializers = NULL;
    bool fits = type != NULL && trpi_payload_fits(type, bytes) && (payload != NULL || bytes == 0);
    trp_err err = fits ? trpi_serializers_of(system, &serializers) : TRP_EINVAL;
    return err != TRP_OK ? err : message_encode(system, serializers, type, payload, bytes, out);
}

trp_err
trp_serialize(trp_system *system, const trp_type *type, const void *payload, size_t bytes,
              trp_msg **ret_data)
{
    trpi_buffer out = { 0 };
    void *place;
    trp_err err =
        ret_data == NULL ? TRP_EINVAL : trpi_message_store(system, type, payload, bytes, &out);
    err = err != TRP_OK ? err : trp_msg_new(&trp_bytes_type, out.count, ret_data, &place);
    if (err == TRP_OK) {
        memcpy(place, out.data, out.count);
    }
    trpi_buffer_fini(&out);
    return err;
}

static trp_err
message_decode(trp_system *system, trpi_serializers *serializers, const uint8_t *data, size_t bytes,
               const trp_type **ret_type, trpi_buffer *out)
{
    trpi_node_map map = trpi_system_node_map(system, serializers, UINT32_MAX);
    size_t left = bytes;
    if (bytes < HEAD_BYTES || data[0] != HEAD_VERSION || (data[1] & ~HEAD_HAS_NODES) != 0) {
        return TRP_EDATA;
    }
    const trp_type *type = trpi_type_find_wire(trpi_get_u64(data + 4));
    const trpi_serializer *serializer = trpi_serializers_get(serializers, trpi_get_u16(data + 2));
    bool stays = type == NULL || (type->flags & TRP_TYPE_LOCAL) != 0 || trpi_type_carries(type);
    if (stays || serializer == NULL) {
        return stays ? TRP_ENOTYPE : TRP_ENOENT;
    }
    if ((data[1] & HEAD_HAS_NODES) != 0) {
        trpi_frame frame = { .bytes = (uint32_t)bytes, .body = data };
        trp_err err =
            bytes <= UINT32_MAX ? trpi_node_section_decode(&frame, &map, &left) : TRP_EDATA;
        if (err != TRP_OK || left < HEAD_BYTES) {
            return err != TRP_OK ? err : TRP_EDATA;
        }
    }
    *ret_type = type;
    return trpi_decode(serializer, type, data + HEAD_BYTES, left - HEAD_BYTES, &map, out);
}

trp_err
trp_deserialize(trp_system *system, const void *data, size_t bytes, trp_msg **ret_msg)
{
    trpi_serializers *serializers = NULL;
    const trp_type *type = NULL;
    trpi_buffer out = { 0 };
    void *place;
    trp_err err =
        data == NULL || ret_msg == NULL ? TRP_EINVAL : trpi_serializers_of(system, &serializers);
    err = err != TRP_OK ? err : message_decode(system, serializers, data, bytes, &type, &out);
    /* serialization-Z1 */
    err = err != TRP_OK ? err : trp_msg_new(type, out.count, ret_msg, &place);
    if (err == TRP_OK && out.count > 0) {
        memcpy(place, out.data, out.count);
    }
    trpi_buffer_fini(&out);
    return err;
}
