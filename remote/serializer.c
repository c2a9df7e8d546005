/* serializer.c - nodes of refs, raw and text. The registry is in serializers.c.
 *
 * Must hold.
 *   S1  What raw decodes from any bytes is a payload of exactly type->bytes, its texts end within
 *       their fields, and every ref names a node that this system knows.
 *   S2  No padding byte of a sender's struct reaches the wire when the type has a field table.
 * Limits. TRPI_MAP_NODES_MAX.
 * Tests.  tests/unit/remote/codec_test.c
 */
#include "remote/serializer.h"

#include <string.h>

#include "base/assert.h"
#include "base/wire.h"

/* ---- nodes ----------------------------------------------------------------------------------- */

trp_err
trpi_node_map_encode(trpi_node_map *map, uint32_t node, uint8_t *ret_code)
{
    if (node == 0) {
        *ret_code = TRPI_CODE_NONE;
        return TRP_OK;
    }
    if (node == map->sending || node == map->receiving) {
        *ret_code = node == map->sending ? TRPI_CODE_SENDING : TRPI_CODE_RECEIVING;
        return TRP_OK;
    }
    uint32_t i = 0;
    while (i < map->third_count && map->third[i] != node) {
        i++;
    }
    if (i == TRPI_MAP_NODES_MAX) {
        return TRP_ELIMIT;
    }
    if (i == map->third_count) {
        map->third[map->third_count++] = node;
    }
    *ret_code = (uint8_t)(TRPI_CODE_THIRD + i);
    return TRP_OK;
}

trp_err
trpi_node_map_decode(const trpi_node_map *map, uint8_t code, uint32_t *ret_node)
{
    if (code == TRPI_CODE_NONE) {
        *ret_node = 0;
    } else if (code == TRPI_CODE_SENDING) {
        *ret_node = map->sending;
    } else if (code == TRPI_CODE_RECEIVING) {
        *ret_node = map->receiving;
    } else if (code - (uint32_t)TRPI_CODE_THIRD < map->third_count) {
        *ret_node = map->third[code - TRPI_CODE_THIRD];
    } else {
        return TRP_EDATA;
    }
    return TRP_OK;
}

/* ---- fields ---------------------------------------------------------------------------------- */

static const trp_field identify_fields[] = { { "id", TRP_FIELD_u64, offsetof(trp_identify, id) } };
static const trp_field identity_fields[] = {
    { "id", TRP_FIELD_u64, offsetof(trp_actor_identity, id) },
    { "ref", TRP_FIELD_ref, offsetof(trp_actor_identity, ref) },
};

const trp_field *
trpi_type_fields(const trp_type *type, uint32_t *ret_count)
{
    if (type->fields == NULL && type == &trp_actor_identity_type) {
        *ret_count = 2;
        return identity_fields;
    }
    if (type->fields == NULL && type == &trp_identify_type) {
        *ret_count = 1;
        return identify_fields;
    }
    *ret_count = type->fields_count;
    return type->fields;
}

static size_t
text_bytes(uint32_t kind)
{
    return kind == TRP_FIELD_text32 ? 32 : kind == TRP_FIELD_text128 ? 128 : 512;
}

/* Bytes of a field of fixed width in memory and, but for refs, on the wire; 0: text. */
static size_t
field_bytes(uint32_t kind)
{
    switch (kind) {
    case TRP_FIELD_bool:
        return 1;
    case TRP_FIELD_i32:
    case TRP_FIELD_u32:
        return 4;
    case TRP_FIELD_i64:
    case TRP_FIELD_u64:
    case TRP_FIELD_f64:
        return 8;
    default:
        return 0;
    }
}

size_t
trpi_field_bytes(uint32_t kind)
{
    size_t bytes = kind == TRP_FIELD_ref ? sizeof(trp_ref) : field_bytes(kind);
    return bytes != 0 ? bytes : text_bytes(kind);
}

enum { REF_WIRE_BYTES = 9 }; /* code, slot, generation */

static trp_err
encode_field(const trp_field *field, const uint8_t *at, trpi_node_map *map, trpi_buffer *out)
{
    uint8_t wire[REF_WIRE_BYTES];
    size_t bytes = field_bytes(field->kind);
    if (field->kind == TRP_FIELD_ref) {
        trp_ref ref;
        memcpy(&ref, at, sizeof ref);
        trp_err err = trpi_node_map_encode(map, ref.node, &wire[0]);
        if (err != TRP_OK) {
            return err;
        }
        trpi_put_u32(wire + 1, ref.slot);
        trpi_put_u32(wire + 5, ref.generation);
        return trpi_buffer_append(out, wire, REF_WIRE_BYTES, TRPI_BUFFER_NO_LIMIT);
    }
    if (bytes == 0) {
        size_t length = strnlen((const char *)at, text_bytes(field->kind) - 1);
        trpi_put_u16(wire, (uint16_t)length);
        trp_err err = trpi_buffer_append(out, wire, 2, TRPI_BUFFER_NO_LIMIT);
        return err != TRP_OK ? err : trpi_buffer_append(out, at, length, TRPI_BUFFER_NO_LIMIT);
    }
    if (bytes == 8) {
        uint64_t value;
        memcpy(&value, at, 8);
        trpi_put_u64(wire, value);
    } else if (bytes == 4) {
        uint32_t value;
        memcpy(&value, at, 4);
        trpi_put_u32(wire, value);
    } else {
        wire[0] = *at != 0;
    }
    return trpi_buffer_append(out, wire, bytes, TRPI_BUFFER_NO_LIMIT);
}

/* Returns the bytes taken from the wire, 0: they make no sense. */
static size_t
decode_field(const trp_field *field, const uint8_t *wire, size_t left, const trpi_node_map *map,
             uint8_t *at)
{
    size_t bytes = field_bytes(field->kind);
    if (field->kind == TRP_FIELD_ref) {
        trp_ref ref = TRP_REF_NONE;
        if (left < REF_WIRE_BYTES || trpi_node_map_decode(map, wire[0], &ref.node) != TRP_OK) {
            return 0;
        }
        if (ref.node != 0) { /* nobody is all-zero */
            ref.slot = trpi_get_u32(wire + 1);
            ref.generation = trpi_get_u32(wire + 5);
        }
        memcpy(at, &ref, sizeof ref);
        return REF_WIRE_BYTES;
    }
    if (bytes == 0) {
        size_t length = left >= 2 ? trpi_get_u16(wire) : SIZE_MAX - 2;
        if (length + 2 > left || length >= text_bytes(field->kind)) {
            return 0;
        }
        memcpy(at, wire + 2, length); /* the rest of the field is zero already */
        return length + 2;
    }
    if (left < bytes) {
        return 0;
    }
    if (bytes == 8) {
        uint64_t value = trpi_get_u64(wire);
        memcpy(at, &value, 8);
    } else if (bytes == 4) {
        uint32_t value = trpi_get_u32(wire);
        memcpy(at, &value, 4);
    } else {
        *at = wire[0] != 0;
    }
    return bytes;
}

/* ---- raw ------------------------------------------------------------------------------------- */

static trp_err
raw_encode(const trp_type *type, const void *payload, size_t bytes, trpi_node_map *map,
           trpi_buffer *out)
{
    uint32_t count = 0;
    const trp_field *fields = trpi_type_fields(type, &count);
    if (fields == NULL) {
        return trpi_buffer_append(out, payload, bytes, TRPI_BUFFER_NO_LIMIT);
    }
    trpi_assert(bytes >= type->bytes);
    for (uint32_t i = 0; i < count; i++) {
        trp_err err =
            encode_field(&fields[i], (const uint8_t *)payload + fields[i].offset, map, out);
        if (err != TRP_OK) {
            return err;
        }
    }
    return TRP_OK;
}

static trp_err
raw_decode(const trp_type *type, const uint8_t *wire, size_t bytes, const trpi_node_map *map,
           trpi_buffer *out)
{
    uint32_t count = 0;
    const trp_field *fields = trpi_type_fields(type, &count);
    bool variable = (type->flags & TRP_TYPE_VARIABLE) != 0;
    if (fields == NULL) {
        return !variable && bytes != type->bytes
                   ? TRP_EDATA
                   : trpi_buffer_append(out, wire, bytes, TRPI_BUFFER_NO_LIMIT);
    }
    trp_err err = trpi_buffer_reserve(out, type->bytes, TRPI_BUFFER_NO_LIMIT);
    if (err != TRP_OK) {
        return err;
    }
    uint8_t *payload = out->data + out->count;
    memset(payload, 0, type->bytes);
    size_t used = 0;
    /* What ends before the last field, or goes on behind it, is of another version of the type. */
    for (uint32_t i = 0; i < count && used < bytes; i++) {
        size_t took =
            decode_field(&fields[i], wire + used, bytes - used, map, payload + fields[i].offset);
        if (took == 0) {
            return TRP_EDATA;
        }
        used += took;
    }
    out->count += type->bytes; /* S1 */
    return TRP_OK;
}

const trpi_serializer trpi_serializer_raw = { TRPI_SERIALIZER_RAW, "raw", raw_encode, raw_decode };

/* ---- text ------------------------------------------------------------------------------------ */

static trp_err
text_encode(const trp_type *type, const void *payload, size_t bytes, trpi_node_map *map,
            trpi_buffer *out)
{
    (void)map;
    return (type->flags & (TRP_TYPE_TEXT | TRP_TYPE_JSON)) == 0
               ? TRP_ENOTYPE
               : trpi_buffer_append(out, payload, bytes, TRPI_BUFFER_NO_LIMIT);
}

static trp_err
text_decode(const trp_type *type, const uint8_t *wire, size_t bytes, const trpi_node_map *map,
            trpi_buffer *out)
{
    (void)map;
    return (type->flags & (TRP_TYPE_TEXT | TRP_TYPE_JSON)) == 0
               ? TRP_EDATA
               : trpi_buffer_append(out, wire, bytes, TRPI_BUFFER_NO_LIMIT);
}

const trpi_serializer trpi_serializer_text = { TRPI_SERIALIZER_TEXT, "text", text_encode,
                                               text_decode };
