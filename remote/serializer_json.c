/* serializer_json.c - payloads as JSON, from field tables, through base/json.h.
 *
 * 64-bit integers are strings of decimal digits; a ref is
 * {"node":"troupe.tcp://...","uid":"...","slot":n, "generation":n}, null for nobody: a reader that
 * is no Troupe can keep and give it back.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "remote/serializer.h"

static bool
add_ref(cJSON *object, const char *name, const trp_ref *ref, const trpi_node_map *map)
{
    const trpi_node_id *id = ref->node != 0 ? map->get(map->arg, ref->node) : NULL;
    if (id == NULL) {
        return cJSON_AddNullToObject(object, name) != NULL;
    }
    char address[TRPI_ADDRESS_TEXT_BYTES];
    cJSON *member = cJSON_AddObjectToObject(object, name);
    return member != NULL &&
           trpi_json_add_text(member, "node",
                              trpi_address_format(&id->address, address, sizeof address)) &&
           trpi_json_add_u64_string(member, "uid", id->uid) &&
           trpi_json_add_i64(member, "slot", ref->slot) &&
           trpi_json_add_i64(member, "generation", ref->generation);
}

static bool
add_field(cJSON *object, const trp_field *field, const uint8_t *at, const trpi_node_map *map)
{
    int32_t i32;
    uint32_t u32;
    int64_t i64;
    uint64_t u64;
    double f64;
    trp_ref ref;
    char text[512];
    switch (field->kind) {
    case TRP_FIELD_bool:
        return trpi_json_add_bool(object, field->name, *at != 0);
    case TRP_FIELD_i32:
        memcpy(&i32, at, sizeof i32);
        return trpi_json_add_i64(object, field->name, i32);
    case TRP_FIELD_u32:
        memcpy(&u32, at, sizeof u32);
        return trpi_json_add_i64(object, field->name, u32);
    case TRP_FIELD_i64:
        memcpy(&i64, at, sizeof i64);
        (void)snprintf(text, sizeof text, "%lld", (long long)i64);
        return trpi_json_add_text(object, field->name, text);
    case TRP_FIELD_u64:
        memcpy(&u64, at, sizeof u64);
        return trpi_json_add_u64_string(object, field->name, u64);
    case TRP_FIELD_f64:
        memcpy(&f64, at, sizeof f64);
        return cJSON_AddNumberToObject(object, field->name, f64) != NULL;
    case TRP_FIELD_ref:
        memcpy(&ref, at, sizeof ref);
        return add_ref(object, field->name, &ref, map);
    default: {
        size_t bytes = field->kind == TRP_FIELD_text32    ? 32
                       : field->kind == TRP_FIELD_text128 ? 128
                                                          : 512;
        (void)snprintf(text, sizeof text, "%.*s", (int)bytes - 1, (const char *)at);
        return trpi_json_add_text(object, field->name, text);
    }
    }
}

static trp_err
json_encode(const trp_type *type, const void *payload, size_t bytes, trpi_node_map *map,
            trpi_buffer *out)
{
    uint32_t count = 0;
    const trp_field *fields = trpi_type_fields(type, &count);
    if ((type->flags & TRP_TYPE_JSON) != 0) {
        return trpi_buffer_append(out, payload, bytes, TRPI_BUFFER_NO_LIMIT);
    }
    if (fields == NULL) {
        return TRP_ENOTYPE;
    }
    cJSON *object = cJSON_CreateObject();
    bool ok = object != NULL;
    for (uint32_t i = 0; i < count && ok; i++) {
        ok = add_field(object, &fields[i], (const uint8_t *)payload + fields[i].offset, map);
    }
    char *text = ok ? trpi_json_print(object) : NULL;
    cJSON_Delete(object);
    trp_err err = text != NULL ? trpi_buffer_append(out, text, strlen(text), TRPI_BUFFER_NO_LIMIT)
                               : TRP_ENOMEM;
    cJSON_free(text);
    return err;
}

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
        char *end = NULL;
        errno = 0;
        *ret_value = strtoll(item->valuestring, &end, 10);
        return errno == 0 && end != item->valuestring && *end == '\0';
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
    size_t bytes = kind == TRP_FIELD_text32 ? 32 : kind == TRP_FIELD_text128 ? 128 : 512;
    if (!cJSON_IsString(item) || strlen(item->valuestring) >= bytes) {
        return false;
    }
    memcpy(at, item->valuestring, strlen(item->valuestring));
    return true;
}

static bool
get_field(const cJSON *object, const trp_field *field, const trpi_node_map *map, uint8_t *at)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, field->name);
    int64_t value = 0;
    uint64_t u64 = 0;
    trp_ref ref;
    bool ok = true;
    if (item == NULL) {
        return true; /* an absent member is zero: fields may be added at one end first */
    }
    switch (field->kind) {
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
        ok = trpi_json_get_u64(object, field->name, &u64);
        memcpy(at, &u64, sizeof u64);
        return ok;
    case TRP_FIELD_f64:
        memcpy(at, &item->valuedouble, sizeof item->valuedouble);
        return cJSON_IsNumber(item);
    case TRP_FIELD_ref:
        ok = get_ref(item, map, &ref);
        memcpy(at, &ref, sizeof ref);
        return ok;
    default:
        return get_text(item, field->kind, at);
    }
}

static trp_err
json_decode(const trp_type *type, const uint8_t *wire, size_t bytes, const trpi_node_map *map,
            trpi_buffer *out)
{
    uint32_t count = 0;
    const trp_field *fields = trpi_type_fields(type, &count);
    if ((type->flags & TRP_TYPE_JSON) != 0) {
        return trpi_buffer_append(out, wire, bytes, TRPI_BUFFER_NO_LIMIT);
    }
    cJSON *object = NULL;
    if (fields == NULL || trpi_json_parse((const char *)wire, bytes, &object, NULL) != TRP_OK) {
        return TRP_EDATA;
    }
    trp_err err = cJSON_IsObject(object)
                      ? trpi_buffer_reserve(out, type->bytes, TRPI_BUFFER_NO_LIMIT)
                      : TRP_EDATA;
    if (err == TRP_OK) {
        uint8_t *payload = out->data + out->count;
        memset(payload, 0, type->bytes);
        for (uint32_t i = 0; i < count && err == TRP_OK; i++) {
            err =
                get_field(object, &fields[i], map, payload + fields[i].offset) ? TRP_OK : TRP_EDATA;
        }
        out->count += err == TRP_OK ? type->bytes : 0;
    }
    cJSON_Delete(object);
    return err;
}

const trpi_serializer trpi_serializer_json = { TRPI_SERIALIZER_JSON, "json", json_encode,
                                               json_decode };
