/* serializer.c - nodes of refs, raw and text. The registry is in serializers.c.
 *
 * Must hold.
 *   serializer-S1  From any bytes raw decodes a payload of exactly type->bytes, or a block that
 *       passes trpi_payload_check(); its texts end within their fields, and every ref names a node
 *       that this system knows. After an error out has the part that was read.
 *   serializer-S2  No padding byte of a sender's struct reaches the wire when the type has a field
 *       table.
 * Limits. TRPI_MAP_NODES_MAX.
 * Tests.  tests/unit/remote/codec_test.c
 */
#include "remote/wire/serializer.h"

#include <string.h>

#include "base/payload.h"
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

/* Return the bytes of a field of fixed width, in memory and, except for refs, on the wire; 0: text.
 */
static size_t
field_bytes(uint32_t kind)
{
    return trpi_kind_text_room(kind) != 0 ? 0 : trpi_kind_bytes(kind, NULL);
}

enum { REF_WIRE_BYTES = 9 }; /* code, slot, generation */

/* Encode a value of fixed size. */
static trp_err
encode_fixed(uint32_t kind, const uint8_t *at, trpi_node_map *map, trpi_buffer *out)
{
    uint8_t wire[REF_WIRE_BYTES];
    size_t bytes = field_bytes(kind);
    if (kind == TRP_FIELD_ref) {
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
        size_t length = strnlen((const char *)at, trpi_kind_text_room(kind) - 1);
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

/* Decode one. Returns the bytes taken from the wire; 0: they are damaged. */
static size_t
decode_fixed(uint32_t kind, const uint8_t *wire, size_t left, const trpi_node_map *map, uint8_t *at)
{
    size_t bytes = field_bytes(kind);
    if (kind == TRP_FIELD_ref) {
        trp_ref ref = TRP_REF_NONE;
        if (left < REF_WIRE_BYTES || trpi_node_map_decode(map, wire[0], &ref.node) != TRP_OK) {
            return 0;
        }
        if (ref.node != 0) { /* the empty ref is all-zero */
            ref.slot = trpi_get_u32(wire + 1);
            ref.generation = trpi_get_u32(wire + 5);
        }
        memcpy(at, &ref, sizeof ref);
        return REF_WIRE_BYTES;
    }
    if (bytes == 0) {
        size_t length = left >= 2 ? trpi_get_u16(wire) : SIZE_MAX - 2;
        if (length + 2 > left || length >= trpi_kind_text_room(kind)) {
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

enum { COUNT_BYTES = 4 }; /* before text, bytes, an array, a nested struct */

static trp_err
encode_count(uint32_t count, trpi_buffer *out)
{
    uint8_t wire[COUNT_BYTES];
    trpi_put_u32(wire, count);
    return trpi_buffer_append(out, wire, sizeof wire, TRPI_BUFFER_NO_LIMIT);
}

static trp_err encode_value(uint32_t kind, const trp_type *of, const uint8_t *payload, size_t at,
                            trpi_node_map *map, trpi_buffer *out);

static trp_err
encode_fields(const trp_field *fields, uint32_t count, const uint8_t *payload, size_t at,
              trpi_node_map *map, trpi_buffer *out)
{
    trp_err err = TRP_OK;
    for (uint32_t i = 0; i < count && err == TRP_OK; i++) {
        err = encode_value(fields[i].kind, fields[i].of, payload, at + fields[i].offset, map, out);
    }
    return err;
}

/* Encode a nested struct, after its length, so that versions with more fields can be read. */
static trp_err
encode_struct(const trp_type *of, const uint8_t *payload, size_t at, trpi_node_map *map,
              trpi_buffer *out)
{
    trp_err err = encode_count(0, out);
    size_t begin = out->count;
    err = err != TRP_OK ? err : encode_fields(of->fields, of->fields_count, payload, at, map, out);
    if (err == TRP_OK) {
        trpi_put_u32(out->data + begin - COUNT_BYTES, (uint32_t)(out->count - begin));
    }
    return err;
}

/* Encode the value at payload + at; values of variable length have been checked. */
static trp_err
encode_value(uint32_t kind, const trp_type *of, const uint8_t *payload, size_t at,
             trpi_node_map *map, trpi_buffer *out)
{
    if (kind == TRP_FIELD_STRUCT) {
        return encode_struct(of, payload, at, map, out);
    }
    if (kind != TRP_FIELD_text && kind != TRP_FIELD_bytes && !trpi_kind_is_array(kind)) {
        return encode_fixed(kind, payload + at, map, out);
    }
    trpi_slice slice = trpi_slice_get(payload + at);
    trp_err err = encode_count(slice.count, out);
    if (!trpi_kind_is_array(kind)) {
        return err != TRP_OK
                   ? err
                   : trpi_buffer_append(out, payload + slice.at, slice.count, TRPI_BUFFER_NO_LIMIT);
    }
    kind = trpi_kind_element(kind);
    size_t each = trpi_kind_bytes(kind, of);
    for (uint32_t i = 0; i < slice.count && err == TRP_OK; i++) {
        err = encode_value(kind, of, payload, slice.at + i * each, map, out);
    }
    return err;
}

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
    return encode_fields(fields, count, payload, 0, map, out);
}

/* The wire bytes, and the block that they are decoded into. */
typedef struct reading {
    const uint8_t *wire, *end;
    const trpi_node_map *map;
    trpi_buffer *out;
    size_t begin; /* of the block in out */
} reading;

static trp_err decode_value(reading *r, uint32_t kind, const trp_type *of, size_t at);

/* Decode fields. A payload with fewer or more fields is of another version of the type. */
static trp_err
decode_fields(reading *r, const trp_field *fields, uint32_t count, size_t at)
{
    trp_err err = TRP_OK;
    for (uint32_t i = 0; i < count && r->wire < r->end && err == TRP_OK; i++) {
        err = decode_value(r, fields[i].kind, fields[i].of, at + fields[i].offset);
    }
    return err;
}

static bool
decode_count(reading *r, uint32_t *ret_count)
{
    if (r->end - r->wire < COUNT_BYTES) {
        return false;
    }
    *ret_count = trpi_get_u32(r->wire);
    r->wire += COUNT_BYTES;
    return *ret_count <= (size_t)(r->end - r->wire); /* each takes at least one */
}

static trp_err
decode_array(reading *r, uint32_t kind, const trp_type *of, size_t at, uint32_t count)
{
    size_t each = trpi_kind_bytes(kind, of);
    uint32_t first = 0;
    trp_err err = trpi_payload_put_array(r->out, r->begin, at, each, count, &first);
    for (uint32_t i = 0; i < count && err == TRP_OK; i++) {
        err = r->wire < r->end ? decode_value(r, kind, of, first + i * each) : TRP_EDATA;
    }
    return err;
}

/* Decode a value into the block, at this offset, where all bytes are zero. */
static trp_err
decode_value(reading *r, uint32_t kind, const trp_type *of, size_t at)
{
    uint32_t count = 0;
    trp_err err = TRP_OK;
    if (kind != TRP_FIELD_STRUCT && kind != TRP_FIELD_text && kind != TRP_FIELD_bytes &&
        !trpi_kind_is_array(kind)) {
        size_t took = decode_fixed(kind, r->wire, (size_t)(r->end - r->wire), r->map,
                                   r->out->data + r->begin + at);
        r->wire += took;
        return took != 0 ? TRP_OK : TRP_EDATA;
    }
    if (!decode_count(r, &count)) {
        return TRP_EDATA;
    }
    if (trpi_kind_is_array(kind)) {
        return decode_array(r, trpi_kind_element(kind), of, at, count);
    }
    const uint8_t *behind = r->wire + count;
    if (kind == TRP_FIELD_STRUCT) {
        reading inner = { r->wire, behind, r->map, r->out, r->begin };
        err = decode_fields(&inner, of->fields, of->fields_count, at);
    } else if (kind == TRP_FIELD_text) {
        err = trpi_payload_put_text(r->out, r->begin, at, (const char *)r->wire, count);
    } else {
        err = trpi_payload_put_bytes(r->out, r->begin, at, r->wire, count);
    }
    r->wire = behind;
    return err;
}

static trp_err
raw_decode(const trp_type *type, const uint8_t *wire, size_t bytes, const trpi_node_map *map,
           trpi_buffer *out)
{
    uint32_t count = 0, root = 0;
    const trp_field *fields = trpi_type_fields(type, &count);
    bool variable = (type->flags & TRP_TYPE_VARIABLE) != 0;
    reading r = { wire, wire + bytes, map, out, out->count };
    if (fields == NULL) {
        return !variable && bytes != type->bytes
                   ? TRP_EDATA
                   : trpi_buffer_append(out, wire, bytes, TRPI_BUFFER_NO_LIMIT);
    }
    trp_err err = trpi_payload_take(out, r.begin, type->bytes, 1, &root);
    return err != TRP_OK ? err : decode_fields(&r, fields, count, 0); /* serializer-S1 */
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
