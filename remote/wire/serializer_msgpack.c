/* serializer_msgpack.c - payloads as msgpack maps, from field tables, through base/pack.h.
 *
 * A ref is [address, uid of its node, slot, generation], nil for the empty ref; a text is a str,
 * bytes are a bin, a struct a map, an array an array. A type without a field table is one bin. Keys
 * that a type does not have are skipped, missing ones are zero.
 *
 * Tests.  tests/unit/remote/serialization_test.c, tests/unit/remote/evolution_test.c
 */
#include <string.h>

#include "base/payload.h"
#include "base/pack.h"
#include "remote/wire/serializer.h"

static void
pack_ref(trpi_pack_writer *w, trp_ref ref, const trpi_node_map *map)
{
    char address[TRPI_ADDRESS_TEXT_BYTES];
    const trpi_node_id *id = ref.node != 0 ? map->get(map->arg, ref.node) : NULL;
    if (id == NULL) {
        trpi_pack_nil(w);
        return;
    }
    trpi_pack_array(w, 4);
    trpi_pack_text(w, trpi_address_format(&id->address, address, sizeof address));
    trpi_pack_u64(w, id->uid);
    trpi_pack_u64(w, ref.slot);
    trpi_pack_u64(w, ref.generation);
}

/* Encode a value of fixed size. */
static void
pack_fixed(trpi_pack_writer *w, uint32_t kind, const uint8_t *at, const trpi_node_map *map)
{
    char text[sizeof(trp_field_text512)];
    union {
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
        double f64;
        trp_ref ref;
    } value;
    size_t bytes = trpi_kind_bytes(kind, NULL);
    memcpy(&value, at, bytes <= sizeof value ? bytes : 0);
    switch (kind) {
    case TRP_FIELD_bool:
        trpi_pack_bool(w, *at != 0);
        break;
    case TRP_FIELD_i32:
        trpi_pack_i64(w, value.i32);
        break;
    case TRP_FIELD_u32:
        trpi_pack_u64(w, value.u32);
        break;
    case TRP_FIELD_i64:
        trpi_pack_i64(w, value.i64);
        break;
    case TRP_FIELD_u64:
        trpi_pack_u64(w, value.u64);
        break;
    case TRP_FIELD_f64:
        trpi_pack_f64(w, value.f64);
        break;
    case TRP_FIELD_ref:
        pack_ref(w, value.ref, map);
        break;
    default:
        memcpy(text, at, bytes - 1);
        text[bytes - 1] = '\0';
        trpi_pack_text(w, text);
        break;
    }
}

static void pack_value(trpi_pack_writer *w, uint32_t kind, const trp_type *of,
                       const uint8_t *payload, size_t at, const trpi_node_map *map);

static void
pack_fields(trpi_pack_writer *w, const trp_field *fields, uint32_t count, const uint8_t *payload,
            size_t at, const trpi_node_map *map)
{
    trpi_pack_map(w, count);
    for (uint32_t i = 0; i < count; i++) {
        trpi_pack_text(w, fields[i].name);
        pack_value(w, fields[i].kind, fields[i].of, payload, at + fields[i].offset, map);
    }
}

/* Encode the value at payload + at; values of variable length have been checked. */
static void
pack_value(trpi_pack_writer *w, uint32_t kind, const trp_type *of, const uint8_t *payload,
           size_t at, const trpi_node_map *map)
{
    if (kind == TRP_FIELD_STRUCT) {
        pack_fields(w, of->fields, of->fields_count, payload, at, map);
        return;
    }
    if (kind != TRP_FIELD_text && kind != TRP_FIELD_bytes && !trpi_kind_is_array(kind)) {
        pack_fixed(w, kind, payload + at, map);
        return;
    }
    trpi_slice slice = trpi_slice_get(payload + at);
    if (kind == TRP_FIELD_text) {
        trpi_pack_text_n(w, (const char *)payload + slice.at, slice.count);
        return;
    }
    if (kind == TRP_FIELD_bytes) {
        trpi_pack_bytes(w, payload + slice.at, slice.count);
        return;
    }
    kind = trpi_kind_element(kind);
    size_t each = trpi_kind_bytes(kind, of);
    trpi_pack_array(w, slice.count);
    for (uint32_t i = 0; i < slice.count && w->err == TRP_OK; i++) {
        pack_value(w, kind, of, payload, slice.at + i * each, map);
    }
}

static trp_err
msgpack_encode(const trp_type *type, const void *payload, size_t bytes, trpi_node_map *map,
               trpi_buffer *out)
{
    uint32_t count = 0;
    const trp_field *fields = trpi_type_fields(type, &count);
    trpi_pack_writer w = { .buffer = *out, .limit = TRPI_BUFFER_NO_LIMIT };
    if (fields == NULL) {
        trpi_pack_bytes(&w, payload, bytes);
    } else {
        pack_fields(&w, fields, count, payload, 0, map);
    }
    *out = w.buffer;
    return w.err;
}

static bool
get_ref(const trpi_pack_value *value, const trpi_node_map *map, trp_ref *ret_ref)
{
    char address[TRPI_ADDRESS_TEXT_BYTES];
    uint64_t slot = 0, generation = 0;
    trpi_node_id id;
    *ret_ref = (trp_ref)TRP_REF_NONE;
    if (trpi_pack_is_nil(value)) {
        return true;
    }
    memset(&id, 0, sizeof id);
    if (!trpi_pack_get_text(trpi_pack_at(value, 0), address, sizeof address) ||
        trpi_address_parse(address, &id.address, NULL, NULL) != TRP_OK ||
        !trpi_pack_get_u64(trpi_pack_at(value, 1), UINT64_MAX, &id.uid) ||
        !trpi_pack_get_u64(trpi_pack_at(value, 2), UINT32_MAX, &slot) ||
        !trpi_pack_get_u64(trpi_pack_at(value, 3), UINT32_MAX, &generation)) {
        return false;
    }
    ret_ref->slot = (uint32_t)slot;
    ret_ref->generation = (uint32_t)generation;
    bool interned = map->intern(map->arg, &id, &ret_ref->node) == TRP_OK;
    *ret_ref = interned && ret_ref->node == 0 ? (trp_ref)TRP_REF_NONE : *ret_ref;
    return interned;
}

static bool
get_fixed(const trpi_pack_value *value, uint32_t kind, const trpi_node_map *map, uint8_t *at)
{
    size_t bytes = trpi_kind_bytes(kind, NULL);
    int64_t i64 = 0;
    uint64_t u64 = 0;
    double f64 = 0;
    bool yes = false, ok;
    trp_ref ref;
    switch (kind) {
    case TRP_FIELD_bool:
        ok = trpi_pack_get_bool(value, &yes);
        *at = yes;
        return ok;
    case TRP_FIELD_i32: {
        ok = trpi_pack_get_i64(value, &i64) && i64 >= INT32_MIN && i64 <= INT32_MAX;
        int32_t i32 = (int32_t)i64;
        memcpy(at, &i32, bytes);
        return ok;
    }
    case TRP_FIELD_u32: {
        ok = trpi_pack_get_u64(value, UINT32_MAX, &u64);
        uint32_t u32 = (uint32_t)u64;
        memcpy(at, &u32, bytes);
        return ok;
    }
    case TRP_FIELD_i64:
        ok = trpi_pack_get_i64(value, &i64);
        memcpy(at, &i64, bytes);
        return ok;
    case TRP_FIELD_u64:
        ok = trpi_pack_get_u64(value, UINT64_MAX, &u64);
        memcpy(at, &u64, bytes);
        return ok;
    case TRP_FIELD_f64:
        ok = trpi_pack_get_f64(value, &f64);
        memcpy(at, &f64, bytes);
        return ok;
    case TRP_FIELD_ref:
        ok = get_ref(value, map, &ref);
        memcpy(at, &ref, bytes);
        return ok;
    default:
        return trpi_pack_get_text(value, (char *)at, bytes);
    }
}

/* The block that is decoded into. */
typedef struct reading {
    const trpi_node_map *map;
    trpi_buffer *out;
    size_t begin; /* of the block in out */
} reading;

static trp_err get_value(const reading *r, const trpi_pack_value *value, uint32_t kind,
                         const trp_type *of, size_t at);

static trp_err
get_fields(const reading *r, const trpi_pack_value *value, const trp_field *fields, uint32_t count,
           size_t at)
{
    trp_err err = trpi_pack_is_map(value) ? TRP_OK : TRP_EDATA;
    for (uint32_t i = 0; i < count && err == TRP_OK; i++) {
        const trpi_pack_value *member = trpi_pack_find(value, fields[i].name);
        err = member != NULL
                  ? get_value(r, member, fields[i].kind, fields[i].of, at + fields[i].offset)
                  : TRP_OK;
    }
    return err;
}

static trp_err
get_array(const reading *r, const trpi_pack_value *value, uint32_t kind, const trp_type *of,
          size_t at)
{
    uint32_t count = 0, first = 0;
    size_t each = trpi_kind_bytes(kind, of);
    if (!trpi_pack_get_count(value, UINT32_MAX, &count)) {
        return TRP_EDATA;
    }
    trp_err err = trpi_payload_put_array(r->out, r->begin, at, each, count, &first);
    for (uint32_t i = 0; i < count && err == TRP_OK; i++) {
        err = get_value(r, trpi_pack_at(value, i), kind, of, first + i * each);
    }
    return err;
}

/* Decode a value into the block, at this offset, where all bytes are zero. */
static trp_err
get_value(const reading *r, const trpi_pack_value *value, uint32_t kind, const trp_type *of,
          size_t at)
{
    const uint8_t *bytes = NULL;
    const char *text = NULL;
    size_t count = 0;
    if (kind == TRP_FIELD_STRUCT) {
        return get_fields(r, value, of->fields, of->fields_count, at);
    }
    if (trpi_kind_is_array(kind)) {
        return get_array(r, value, trpi_kind_element(kind), of, at);
    }
    if (kind == TRP_FIELD_text) {
        return trpi_pack_get_str(value, &text, &count)
                   ? trpi_payload_put_text(r->out, r->begin, at, text, count)
                   : TRP_EDATA;
    }
    if (kind == TRP_FIELD_bytes) {
        return trpi_pack_get_bytes(value, &bytes, &count)
                   ? trpi_payload_put_bytes(r->out, r->begin, at, bytes, count)
                   : TRP_EDATA;
    }
    return get_fixed(value, kind, r->map, r->out->data + r->begin + at) ? TRP_OK : TRP_EDATA;
}

static trp_err
block_decode(const trp_type *type, const trp_field *fields, uint32_t count,
             const trpi_pack_value *root, const trpi_node_map *map, trpi_buffer *out)
{
    reading r = { map, out, out->count };
    uint32_t at = 0;
    trp_err err = trpi_payload_take(out, r.begin, type->bytes, 1, &at);
    return err != TRP_OK ? err : get_fields(&r, root, fields, count, 0);
}

static trp_err
msgpack_decode(const trp_type *type, const uint8_t *wire, size_t bytes, const trpi_node_map *map,
               trpi_buffer *out)
{
    uint32_t count = 0;
    const trp_field *fields = trpi_type_fields(type, &count);
    trpi_pack_doc *doc = NULL;
    const uint8_t *whole = NULL;
    size_t whole_bytes = 0;
    trp_err err = trpi_pack_parse(wire, bytes, &doc);
    if (err != TRP_OK) {
        return err == TRP_ENOMEM ? err : TRP_EDATA;
    }
    const trpi_pack_value *root = trpi_pack_root(doc);
    if (fields != NULL) {
        err = block_decode(type, fields, count, root, map, out);
    } else {
        err = trpi_pack_get_bytes(root, &whole, &whole_bytes)
                  ? trpi_buffer_append(out, whole, whole_bytes, TRPI_BUFFER_NO_LIMIT)
                  : TRP_EDATA;
    }
    trpi_pack_doc_free(doc);
    return err;
}

const trpi_serializer trpi_serializer_msgpack = { .id = TRPI_SERIALIZER_MSGPACK,
                                                  .name = "msgpack",
                                                  .encode = msgpack_encode,
                                                  .decode = msgpack_decode };
