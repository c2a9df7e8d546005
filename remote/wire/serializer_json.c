/* serializer_json.c - payloads as JSON, from field tables, through base/json.h.
 *
 * 64-bit integers are strings of decimal digits; a ref is
 * {"node":"troupe.tcp://...","uid":"...","slot":n, "generation":n}, null for the empty ref: other
 * programs can store it and return it. Bytes are base64 text, structs objects, arrays arrays.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "base/json.h"
#include "base/payload.h"
#include "base/units.h"
#include "base/utf8.h"
#include "remote/wire/serializer.h"

/* ---- encode ---------------------------------------------------------------------------------- */

static cJSON *
ref_item(const trp_ref *ref, const trpi_node_map *map)
{
    const trpi_node_id *id = ref->node != 0 ? map->get(map->arg, ref->node) : NULL;
    if (id == NULL) {
        return cJSON_CreateNull();
    }
    char address[TRPI_ADDRESS_TEXT_BYTES];
    cJSON *item = cJSON_CreateObject();
    if (trpi_json_add_text(item, "node",
                           trpi_address_format(&id->address, address, sizeof address)) &&
        trpi_json_add_u64_string(item, "uid", id->uid) &&
        trpi_json_add_i64(item, "slot", ref->slot) &&
        trpi_json_add_i64(item, "generation", ref->generation)) {
        return item;
    }
    cJSON_Delete(item);
    return NULL;
}

/* Encode a value of fixed size. NULL: no memory. */
static cJSON *
fixed_item(uint32_t kind, const uint8_t *at, const trpi_node_map *map)
{
    int32_t i32;
    uint32_t u32;
    int64_t i64;
    uint64_t u64;
    double f64;
    trp_ref ref;
    char text[sizeof(trp_field_text512)];
    switch (kind) {
    case TRP_FIELD_bool:
        return cJSON_CreateBool(*at != 0);
    case TRP_FIELD_i32:
        memcpy(&i32, at, sizeof i32);
        return cJSON_CreateNumber(i32);
    case TRP_FIELD_u32:
        memcpy(&u32, at, sizeof u32);
        return cJSON_CreateNumber(u32);
    case TRP_FIELD_i64:
        memcpy(&i64, at, sizeof i64);
        (void)snprintf(text, sizeof text, "%lld", (long long)i64);
        return cJSON_CreateString(text);
    case TRP_FIELD_u64:
        memcpy(&u64, at, sizeof u64);
        (void)snprintf(text, sizeof text, "%llu", (unsigned long long)u64);
        return cJSON_CreateString(text);
    case TRP_FIELD_f64:
        memcpy(&f64, at, sizeof f64);
        return trpi_json_f64(f64);
    case TRP_FIELD_ref:
        memcpy(&ref, at, sizeof ref);
        return ref_item(&ref, map);
    default:
        return cJSON_CreateString((const char *)at); /* NUL-terminated: value_has_json() */
    }
}

static cJSON *
bytes_item(const uint8_t *bytes, size_t count)
{
    char *text = trpi_base64_encode(bytes, count);
    cJSON *item = text != NULL ? cJSON_CreateString(text) : NULL;
    trpi_free(text);
    return item;
}

static cJSON *value_item(uint32_t kind, const trp_type *of, const uint8_t *payload, size_t at,
                         const trpi_node_map *map);

static cJSON *
struct_item(const trp_field *fields, uint32_t count, const uint8_t *payload, size_t at,
            const trpi_node_map *map)
{
    cJSON *object = cJSON_CreateObject();
    bool ok = object != NULL;
    for (uint32_t i = 0; i < count && ok; i++) {
        cJSON *item = value_item(fields[i].kind, fields[i].of, payload, at + fields[i].offset, map);
        ok = item != NULL && cJSON_AddItemToObject(object, fields[i].name, item);
        if (!ok) {
            cJSON_Delete(item);
        }
    }
    if (!ok) {
        cJSON_Delete(object);
    }
    return ok ? object : NULL;
}

static cJSON *
array_item(uint32_t kind, const trp_type *of, const uint8_t *payload, trpi_slice slice,
           const trpi_node_map *map)
{
    cJSON *array = cJSON_CreateArray();
    size_t each = trpi_kind_bytes(kind, of);
    bool ok = array != NULL;
    for (uint32_t i = 0; i < slice.count && ok; i++) {
        cJSON *item = value_item(kind, of, payload, slice.at + i * each, map);
        ok = trpi_json_append(array, item, item != NULL);
    }
    if (!ok) {
        cJSON_Delete(array);
    }
    return ok ? array : NULL;
}

/* Encode the value at payload + at; values of variable length have been checked. NULL: no memory.
 */
static cJSON *
value_item(uint32_t kind, const trp_type *of, const uint8_t *payload, size_t at,
           const trpi_node_map *map)
{
    if (kind == TRP_FIELD_STRUCT) {
        return struct_item(of->fields, of->fields_count, payload, at, map);
    }
    if (kind != TRP_FIELD_text && kind != TRP_FIELD_bytes && !trpi_kind_is_array(kind)) {
        return fixed_item(kind, payload + at, map);
    }
    trpi_slice slice = trpi_slice_get(payload + at);
    if (kind == TRP_FIELD_text) {
        return cJSON_CreateString(slice.count != 0 ? (const char *)payload + slice.at : "");
    }
    return kind == TRP_FIELD_bytes ? bytes_item(payload + slice.at, slice.count)
                                   : array_item(trpi_kind_element(kind), of, payload, slice, map);
}

static bool value_has_json(uint32_t kind, const trp_type *of, const uint8_t *payload, size_t at);

static bool
struct_has_json(const trp_field *fields, uint32_t count, const uint8_t *payload, size_t at)
{
    bool ok = true;
    for (uint32_t i = 0; i < count && ok; i++) {
        ok = value_has_json(fields[i].kind, fields[i].of, payload, at + fields[i].offset);
    }
    return ok;
}

/* Return whether JSON can express a value: no infinity or NaN, and no text without a NUL in its
 * field or that is not UTF-8. */
static bool
value_has_json(uint32_t kind, const trp_type *of, const uint8_t *payload, size_t at)
{
    size_t room = trpi_kind_text_room(kind);
    if (kind == TRP_FIELD_STRUCT) {
        return struct_has_json(of->fields, of->fields_count, payload, at);
    }
    if (kind == TRP_FIELD_f64) {
        double f64;
        memcpy(&f64, payload + at, sizeof f64);
        return isfinite(f64);
    }
    if (room > 0) {
        size_t bytes = strnlen((const char *)payload + at, room);
        return bytes < room && trpi_utf8_is_valid(payload + at, bytes);
    }
    if (kind != TRP_FIELD_text && !trpi_kind_is_array(kind)) {
        return true;
    }
    trpi_slice slice = trpi_slice_get(payload + at);
    if (kind == TRP_FIELD_text) {
        return slice.count == 0 || trpi_utf8_is_valid(payload + slice.at, slice.count);
    }
    size_t each = trpi_kind_bytes(trpi_kind_element(kind), of);
    bool ok = true;
    for (uint32_t i = 0; i < slice.count && ok; i++) {
        ok = value_has_json(trpi_kind_element(kind), of, payload, slice.at + i * each);
    }
    return ok;
}

static trp_err
json_encode(const trp_type *type, const void *payload, size_t bytes, trpi_node_map *map,
            trpi_buffer *out)
{
    uint32_t count = 0;
    const trp_field *fields = trpi_type_fields(type, &count);
    if ((type->flags & TRP_TYPE_JSON) != 0) {
        return trpi_utf8_is_valid(payload, bytes)
                   ? trpi_buffer_append(out, payload, bytes, TRPI_BUFFER_NO_LIMIT)
                   : TRP_EDATA;
    }
    if (fields == NULL) {
        return TRP_ENOTYPE;
    }
    if (!struct_has_json(fields, count, payload, 0)) {
        return TRP_EDATA;
    }
    cJSON *object = struct_item(fields, count, payload, 0, map);
    char *text = object != NULL ? trpi_json_print(object) : NULL;
    cJSON_Delete(object);
    trp_err err = text != NULL ? trpi_buffer_append(out, text, strlen(text), TRPI_BUFFER_NO_LIMIT)
                               : TRP_ENOMEM;
    cJSON_free(text);
    return err;
}

/* ---- decode ---------------------------------------------------------------------------------- */

static bool
get_ref(const cJSON *item, const trpi_node_map *map, trp_ref *ret_ref)
{
    *ret_ref = (trp_ref)TRP_REF_NONE;
    if (cJSON_IsNull(item)) {
        return true;
    }
    trpi_node_id id;
    uint64_t slot = 0;
    uint64_t generation = 0;
    memset(&id, 0, sizeof id);
    const char *address = trpi_json_get_text(item, "node");
    if (address == NULL || trpi_address_parse(address, &id.address, NULL, NULL) != TRP_OK ||
        !trpi_json_get_u64(item, "uid", &id.uid) || !trpi_json_get_u64(item, "slot", &slot) ||
        !trpi_json_get_u64(item, "generation", &generation) || slot > UINT32_MAX ||
        generation > UINT32_MAX) {
        return false;
    }
    ret_ref->slot = (uint32_t)slot;
    ret_ref->generation = (uint32_t)generation;
    bool interned = map->intern(map->arg, &id, &ret_ref->node) == TRP_OK;
    *ret_ref = interned && ret_ref->node == 0 ? (trp_ref)TRP_REF_NONE : *ret_ref;
    return interned;
}

static bool
get_i64(const cJSON *item, int64_t *ret_value)
{
    if (cJSON_IsString(item)) {
        return trpi_integer_parse(item->valuestring, INT64_MIN, INT64_MAX, ret_value);
    }
    if (!cJSON_IsNumber(item) || floor(item->valuedouble) != item->valuedouble ||
        fabs(item->valuedouble) > 9007199254740992.0) {
        return false;
    }
    *ret_value = (int64_t)item->valuedouble;
    return true;
}

static bool
get_text(const cJSON *item, uint32_t kind, uint8_t *at)
{
    size_t bytes = trpi_kind_text_room(kind);
    if (!cJSON_IsString(item) || strlen(item->valuestring) >= bytes) {
        return false;
    }
    memcpy(at, item->valuestring, strlen(item->valuestring));
    return true;
}

/* A value of fixed size. */
static bool
get_fixed(const cJSON *item, uint32_t kind, const trpi_node_map *map, uint8_t *at)
{
    int64_t value = 0;
    uint64_t u64 = 0;
    trp_ref ref;
    bool ok = true;
    switch (kind) {
    case TRP_FIELD_bool:
        *at = (uint8_t)cJSON_IsTrue(item);
        return cJSON_IsBool(item);
    case TRP_FIELD_i32: {
        ok = get_i64(item, &value) && value >= INT32_MIN && value <= INT32_MAX;
        int32_t i32 = (int32_t)value;
        memcpy(at, &i32, sizeof i32);
        return ok;
    }
    case TRP_FIELD_u32: {
        ok = get_i64(item, &value) && value >= 0 && value <= UINT32_MAX;
        uint32_t u32 = (uint32_t)value;
        memcpy(at, &u32, sizeof u32);
        return ok;
    }
    case TRP_FIELD_i64:
        ok = get_i64(item, &value);
        memcpy(at, &value, sizeof value);
        return ok;
    case TRP_FIELD_u64:
        ok = trpi_json_u64(item, &u64);
        memcpy(at, &u64, sizeof u64);
        return ok;
    case TRP_FIELD_f64:
        memcpy(at, &item->valuedouble, sizeof item->valuedouble);
        return cJSON_IsNumber(item) && isfinite(item->valuedouble); /* 1e999 */
    case TRP_FIELD_ref:
        ok = get_ref(item, map, &ref);
        memcpy(at, &ref, sizeof ref);
        return ok;
    default:
        return get_text(item, kind, at);
    }
}

/* The block that is decoded into. */
typedef struct reading {
    const trpi_node_map *map;
    trpi_buffer *out;
    size_t begin; /* of the block in out */
} reading;

static trp_err get_value(const reading *r, const cJSON *item, uint32_t kind, const trp_type *of,
                         size_t at);

static trp_err
get_struct(const reading *r, const cJSON *object, const trp_field *fields, uint32_t count,
           size_t at)
{
    trp_err err = cJSON_IsObject(object) ? TRP_OK : TRP_EDATA;
    for (uint32_t i = 0; i < count && err == TRP_OK; i++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, fields[i].name);
        if (item != NULL) { /* absent is zero: of another version of the type */
            err = get_value(r, item, fields[i].kind, fields[i].of, at + fields[i].offset);
        }
    }
    return err;
}

static trp_err
get_array(const reading *r, const cJSON *array, uint32_t kind, const trp_type *of, size_t at)
{
    size_t each = trpi_kind_bytes(kind, of), place;
    uint32_t first = 0;
    trp_err err = cJSON_IsArray(array)
                      ? trpi_payload_put_array(r->out, r->begin, at, each,
                                               (uint64_t)cJSON_GetArraySize(array), &first)
                      : TRP_EDATA;
    const cJSON *item = err == TRP_OK ? array->child : NULL;
    for (place = first; item != NULL && err == TRP_OK; place += each, item = item->next) {
        err = get_value(r, item, kind, of, place);
    }
    return err;
}

static trp_err
get_bytes(const reading *r, const cJSON *item, size_t at)
{
    uint8_t *bytes = NULL;
    size_t count = 0;
    trp_err err =
        cJSON_IsString(item)
            ? trpi_base64_decode(item->valuestring, strlen(item->valuestring), &bytes, &count)
            : TRP_EDATA;
    err = err != TRP_OK ? err : trpi_payload_put_bytes(r->out, r->begin, at, bytes, count);
    trpi_free(bytes);
    return err;
}

/* Decode a value into the block, at this offset, where all bytes are zero. */
static trp_err
get_value(const reading *r, const cJSON *item, uint32_t kind, const trp_type *of, size_t at)
{
    if (kind == TRP_FIELD_STRUCT) {
        return get_struct(r, item, of->fields, of->fields_count, at);
    }
    if (trpi_kind_is_array(kind)) {
        return get_array(r, item, trpi_kind_element(kind), of, at);
    }
    if (kind == TRP_FIELD_text) {
        return cJSON_IsString(item) ? trpi_payload_put_text(r->out, r->begin, at, item->valuestring,
                                                            strlen(item->valuestring))
                                    : TRP_EDATA;
    }
    if (kind == TRP_FIELD_bytes) {
        return get_bytes(r, item, at);
    }
    return get_fixed(item, kind, r->map, r->out->data + r->begin + at) ? TRP_OK : TRP_EDATA;
}

static trp_err
json_decode(const trp_type *type, const uint8_t *wire, size_t bytes, const trpi_node_map *map,
            trpi_buffer *out)
{
    uint32_t count = 0;
    const trp_field *fields = trpi_type_fields(type, &count);
    if ((type->flags & TRP_TYPE_JSON) != 0) {
        return trpi_utf8_is_valid(wire, bytes)
                   ? trpi_buffer_append(out, wire, bytes, TRPI_BUFFER_NO_LIMIT)
                   : TRP_EDATA;
    }
    cJSON *object = NULL;
    if (fields == NULL || trpi_json_parse((const char *)wire, bytes, &object, NULL) != TRP_OK) {
        return TRP_EDATA;
    }
    reading r = { map, out, out->count };
    uint32_t root = 0;
    trp_err err = trpi_payload_take(out, r.begin, type->bytes, 1, &root);
    err = err != TRP_OK ? err : get_struct(&r, object, fields, count, 0);
    cJSON_Delete(object);
    return err;
}

const trpi_serializer trpi_serializer_json = { TRPI_SERIALIZER_JSON, "json", json_encode,
                                               json_decode };
