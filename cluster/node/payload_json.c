/* payload_json.c - between payloads and JSON, field by field. For the command line;
 * remote/wire/serializer_json.c serializes messages between nodes.
 *
 * Must hold.
 *   payload-json-I1  text is untrusted: every number is checked against its field (field_read)
 *   payload-json-I2  no name from outside gives a message whose payload the runtime trusts, or one
 *       that stops an actor: those are orders of their own, which are audited (is_for_outside)
 * Tests.     tests/unit/node/payload_json_test.c
 */
#include "cluster/node/payload_json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <troupe/router.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/base64.h"
#include "base/payload.h"
#include "base/units.h"
#include "base/utf8.h"

#define EXACT_MAX 9007199254740992.0 /* 2^53 */
#define LIBRARY_TAG_FIRST 0xff00u    /* trp_msg_tag() */

/* A number, or a string of digits for what a double cannot hold. */
static bool
integer_read(const cJSON *item, int64_t min, uint64_t max, int64_t *ret_i, uint64_t *ret_u)
{
    if (cJSON_IsNumber(item)) {
        double number = item->valuedouble;
        if (number > EXACT_MAX || number < -EXACT_MAX || number != (double)(int64_t)number) {
            return false;
        }
        *ret_i = (int64_t)number;
    } else if (cJSON_IsString(item)) {
        const char *text = item->valuestring;
        if (*text != '-') {
            bool good = trpi_whole_parse(text, 0, max, ret_u);
            *ret_i = (int64_t)*ret_u;
            return good;
        }
        if (!trpi_integer_parse(text, min, 0, ret_i)) {
            return false;
        }
    } else {
        return false;
    }
    *ret_u = (uint64_t)*ret_i;
    return *ret_i >= min && (*ret_i < 0 || (uint64_t)*ret_i <= max);
}

static trp_err
integer_read_as(uint32_t kind, const cJSON *item, uint8_t *at)
{
    int64_t i = 0;
    uint64_t u = 0;
    bool ok = false;
    switch (kind) {
    case TRP_FIELD_i32: {
        ok = integer_read(item, INT32_MIN, INT32_MAX, &i, &u);
        int32_t value = (int32_t)i;
        memcpy(at, &value, sizeof value);
        break;
    }
    case TRP_FIELD_u32: {
        ok = integer_read(item, 0, UINT32_MAX, &i, &u);
        uint32_t value = (uint32_t)u;
        memcpy(at, &value, sizeof value);
        break;
    }
    case TRP_FIELD_i64:
        ok = integer_read(item, INT64_MIN, INT64_MAX, &i, &u);
        memcpy(at, &i, sizeof i);
        break;
    default:
        trpi_assert(kind == TRP_FIELD_u64);
        ok = integer_read(item, 0, UINT64_MAX, &i, &u);
        memcpy(at, &u, sizeof u);
        break;
    }
    return ok ? TRP_OK : TRP_EDATA;
}

/* A number, or the name of what JSON has none for. */
static trp_err
double_read(const cJSON *item, uint8_t *at)
{
    double value = item->valuedouble;
    if (cJSON_IsString(item)) {
        const char *text = item->valuestring;
        if (strcmp(text, "NaN") != 0 && strcmp(text, "Infinity") != 0 &&
            strcmp(text, "-Infinity") != 0) {
            return TRP_EDATA;
        }
        value = strtod(text, NULL);
    } else if (!cJSON_IsNumber(item) || !isfinite(value)) { /* 1e999 */
        return TRP_EDATA;
    }
    memcpy(at, &value, sizeof value);
    return TRP_OK;
}

/* A value of fixed size. */
static trp_err
fixed_read(uint32_t kind, const cJSON *item, uint8_t *at)
{
    size_t room = trpi_kind_text_room(kind);
    if (room > 0) {
        if (!cJSON_IsString(item)) {
            return TRP_EDATA;
        }
        if (strlen(item->valuestring) >= room) {
            return TRP_EMSGSIZE;
        }
        memcpy(at, item->valuestring, strlen(item->valuestring) + 1);
        return TRP_OK;
    }
    if (kind == TRP_FIELD_bool) {
        *at = cJSON_IsTrue(item) ? 1 : 0;
        return cJSON_IsBool(item) ? TRP_OK : TRP_EDATA;
    }
    if (kind == TRP_FIELD_f64) {
        return double_read(item, at);
    }
    if (kind == TRP_FIELD_ref) {
        return cJSON_IsNull(item) ? TRP_OK : TRP_EDATA;
    }
    return integer_read_as(kind, item, at);
}

static const trp_field *
field_find(const trp_type *type, const char *name)
{
    for (uint32_t i = 0; i < type->fields_count; i++) {
        if (strcmp(type->fields[i].name, name) == 0) {
            return &type->fields[i];
        }
    }
    return NULL;
}

/* The payload that is being made, and the text of its error. */
typedef struct reading {
    trpi_buffer out;
    char *what;
    size_t what_bytes;
} reading;

static trp_err value_read(reading *r, const trp_field *field, const cJSON *item, size_t at);

static trp_err
fields_read(reading *r, const trp_type *type, const cJSON *object, size_t at)
{
    const cJSON *item = NULL;
    if (!cJSON_IsObject(object)) {
        return TRP_EDATA;
    }
    cJSON_ArrayForEach(item, object)
    {
        const trp_field *field = field_find(type, item->string);
        if (!field) {
            (void)snprintf(r->what, r->what_bytes, "%s has no field '%.64s'", type->name,
                           item->string);
            return TRP_EDATA;
        }
        (void)snprintf(r->what, r->what_bytes, "%s: the value does not fit field '%s'", type->name,
                       field->name);
        trp_err err = value_read(r, field, item, at + field->offset);
        if (err != TRP_OK) {
            return err;
        }
    }
    return TRP_OK;
}

static trp_err
array_read(reading *r, const trp_field *field, const cJSON *array, size_t at)
{
    trp_field element = *field;
    uint32_t first = 0;
    element.kind = trpi_kind_element(field->kind);
    size_t each = trpi_kind_bytes(element.kind, field->of);
    trp_err err = cJSON_IsArray(array)
                      ? trpi_payload_put_array(&r->out, 0, at, each,
                                               (uint64_t)cJSON_GetArraySize(array), &first)
                      : TRP_EDATA;
    const cJSON *item = err == TRP_OK ? array->child : NULL;
    for (size_t place = first; item && err == TRP_OK; place += each, item = item->next) {
        err = value_read(r, &element, item, place);
    }
    return err;
}

static trp_err
base64_read(reading *r, const cJSON *item, size_t at)
{
    uint8_t *bytes = NULL;
    size_t count = 0;
    trp_err err = trpi_base64_decode(item->valuestring, strlen(item->valuestring), &bytes, &count);
    err = err != TRP_OK ? err : trpi_payload_put_bytes(&r->out, 0, at, bytes, count);
    trpi_free(bytes);
    return err;
}

/* Read a value into the payload, at this offset, where all is zero. */
static trp_err
value_read(reading *r, const trp_field *field, const cJSON *item, size_t at)
{
    if (field->kind == TRP_FIELD_STRUCT) {
        return fields_read(r, field->of, item, at);
    }
    if (trpi_kind_is_array(field->kind)) {
        return array_read(r, field, item, at);
    }
    if (field->kind != TRP_FIELD_text && field->kind != TRP_FIELD_bytes) {
        return fixed_read(field->kind, item, r->out.data + at);
    }
    if (!cJSON_IsString(item)) {
        return TRP_EDATA;
    }
    return field->kind == TRP_FIELD_bytes ? base64_read(r, item, at)
                                          : trpi_payload_put_text(&r->out, 0, at, item->valuestring,
                                                                  strlen(item->valuestring));
}

/* Of a type with a field table, or without a payload. */
static trp_err
struct_read(const trp_type *type, const cJSON *json, void **ret_payload, size_t *ret_bytes,
            char *ret_what, size_t what_bytes)
{
    reading r = { .what = ret_what, .what_bytes = what_bytes };
    uint32_t root = 0;
    /* one byte more, so that there is memory for no payload, too */
    trp_err err = trpi_buffer_reserve(&r.out, (size_t)type->bytes + 1, TRPI_BUFFER_NO_LIMIT);
    err = err != TRP_OK ? err : trpi_payload_take(&r.out, 0, type->bytes, 1, &root);
    err = err != TRP_OK ? err : fields_read(&r, type, json, 0);
    if (err != TRP_OK) {
        if (err == TRP_ENOMEM) {
            (void)snprintf(ret_what, what_bytes, "out of memory");
        }
        trpi_buffer_fini(&r.out);
        return err;
    }
    *ret_payload = r.out.data;
    *ret_bytes = r.out.count;
    return TRP_OK;
}

static trp_err
bytes_copy(const char *text, size_t bytes, void **ret_payload, size_t *ret_bytes)
{
    void *payload = trpi_alloc(bytes + 1);
    if (!payload) {
        return TRP_ENOMEM;
    }
    memcpy(payload, text, bytes);
    *ret_payload = payload;
    *ret_bytes = bytes;
    return TRP_OK;
}

/* Of the library's own types those that only ask or carry what is written; the others move actors,
 * or have a struct that the runtime trusts. */
static bool
is_for_outside(const trp_type *type)
{
    static const uint16_t open_tags[] = { trp_string_tag, trp_json_tag,     trp_bytes_tag,
                                          trp_i64_tag,    trp_identify_tag, trp_get_routees_tag };
    if ((type->flags & (TRP_TYPE_LOCAL | TRP_TYPE_POSSIBLY_HARMFUL)) != 0 ||
        strstr(type->name, ".priv-") != NULL) {
        return false;
    }
    for (size_t i = 0; i < sizeof open_tags / sizeof open_tags[0]; i++) {
        if (type->tag == open_tags[i]) {
            return true;
        }
    }
    return type->tag < LIBRARY_TAG_FIRST;
}

trp_err
trpi_type_from_outside(const char *name, const trp_type **ret_type, char *ret_why)
{
    const trp_type *type = strcmp(name, "string") == 0  ? &trp_string_type
                           : strcmp(name, "json") == 0  ? &trp_json_type
                           : strcmp(name, "bytes") == 0 ? &trp_bytes_type
                                                        : trp_type_find(name);
    if (type == NULL) {
        (void)snprintf(ret_why, TRPI_OUTSIDE_WHY_BYTES, "no message type '%.128s' on this node",
                       name);
        return TRP_ENOTYPE;
    }
    if (!is_for_outside(type)) {
        (void)snprintf(ret_why, TRPI_OUTSIDE_WHY_BYTES,
                       "messages of type %.128s are not taken from outside the node", type->name);
        return TRP_EUNSUPPORTED;
    }
    *ret_type = type;
    return TRP_OK;
}

trp_err
trpi_payload_from_json(const trp_type *type, const char *text, void **ret_payload,
                       size_t *ret_bytes, char *ret_what, size_t what_bytes)
{
    cJSON *json = NULL;
    size_t offset = 0;
    (void)snprintf(ret_what, what_bytes, "out of memory");
    if (type->flags & TRP_TYPE_TEXT) {
        return bytes_copy(text, strlen(text), ret_payload, ret_bytes);
    }
    if (trpi_json_parse(text, strlen(text), &json, &offset) != TRP_OK) {
        (void)snprintf(ret_what, what_bytes, "invalid JSON at byte %zu", offset);
        return TRP_EDATA;
    }
    trp_err err = TRP_EDATA;
    if (type->flags & TRP_TYPE_JSON) {
        err = bytes_copy(text, strlen(text), ret_payload, ret_bytes);
    } else if (!type->fields && type->bytes > 0) {
        (void)snprintf(ret_what, what_bytes, "%s has no JSON form", type->name);
        err = TRP_ENOTYPE;
    } else if (!cJSON_IsObject(json)) {
        (void)snprintf(ret_what, what_bytes, "%s: expected a JSON object", type->name);
    } else {
        err = struct_read(type, json, ret_payload, ret_bytes, ret_what, what_bytes);
    }
    cJSON_Delete(json);
    return err;
}

/* ---- to JSON --------------------------------------------------------------------------------- */

/* A value of fixed size. NULL: no memory. */
static cJSON *
fixed_item(trp_system *system, uint32_t kind, const uint8_t *at)
{
    char text[TRP_PATH_BYTES_MAX + 1];
    union {
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
        double f64;
        trp_ref ref;
    } v;
    size_t room = trpi_kind_text_room(kind);
    if (room > 0) {
        memcpy(text, at, room);
        text[room] = '\0'; /* a text that fills its field has no NUL of its own */
        return cJSON_CreateString(text);
    }
    switch (kind) {
    case TRP_FIELD_bool:
        return cJSON_CreateBool(*at != 0);
    case TRP_FIELD_i32:
        memcpy(&v.i32, at, sizeof v.i32);
        return cJSON_CreateNumber(v.i32);
    case TRP_FIELD_u32:
        memcpy(&v.u32, at, sizeof v.u32);
        return cJSON_CreateNumber(v.u32);
    case TRP_FIELD_i64:
        memcpy(&v.i64, at, sizeof v.i64);
        (void)snprintf(text, sizeof text, "%" PRId64, v.i64);
        return v.i64 <= (int64_t)EXACT_MAX && v.i64 >= -(int64_t)EXACT_MAX
                   ? cJSON_CreateRaw(text)
                   : cJSON_CreateString(text);
    case TRP_FIELD_u64:
        memcpy(&v.u64, at, sizeof v.u64);
        (void)snprintf(text, sizeof text, "%" PRIu64, v.u64);
        return v.u64 <= (uint64_t)EXACT_MAX ? cJSON_CreateRaw(text) /* cJSON's has 15 digits */
                                            : cJSON_CreateString(text);
    case TRP_FIELD_f64:
        memcpy(&v.f64, at, sizeof v.f64);
        return isfinite(v.f64) ? trpi_json_f64(v.f64)
                               : cJSON_CreateString(isnan(v.f64)  ? "NaN"
                                                    : v.f64 > 0.0 ? "Infinity"
                                                                  : "-Infinity");
    default:
        memcpy(&v.ref, at, sizeof v.ref);
        return trp_ref_is_none(v.ref)
                   ? cJSON_CreateNull()
                   : cJSON_CreateString(trp_path(system, v.ref, text, sizeof text));
    }
}

static cJSON *struct_item(trp_system *system, const trp_type *type, const uint8_t *payload,
                          size_t at);

static cJSON *
bytes_item(const uint8_t *bytes, size_t count)
{
    char *text = trpi_base64_encode(bytes, count);
    cJSON *item = text ? cJSON_CreateString(text) : NULL;
    trpi_free(text);
    return item;
}

/* The value at payload + at; variable fields have been checked. NULL: no memory. */
static cJSON *
value_item(trp_system *system, uint32_t kind, const trp_type *of, const uint8_t *payload, size_t at)
{
    if (kind == TRP_FIELD_STRUCT) {
        return struct_item(system, of, payload, at);
    }
    if (kind != TRP_FIELD_text && kind != TRP_FIELD_bytes && !trpi_kind_is_array(kind)) {
        return fixed_item(system, kind, payload + at);
    }
    trpi_slice slice = trpi_slice_get(payload + at);
    if (kind == TRP_FIELD_text) {
        return cJSON_CreateString(slice.count != 0 ? (const char *)payload + slice.at : "");
    }
    if (kind == TRP_FIELD_bytes) {
        return bytes_item(payload + slice.at, slice.count);
    }
    cJSON *array = cJSON_CreateArray();
    size_t each = trpi_kind_bytes(trpi_kind_element(kind), of);
    bool ok = array != NULL;
    for (uint32_t i = 0; ok && i < slice.count; i++) {
        cJSON *item = value_item(system, trpi_kind_element(kind), of, payload, slice.at + i * each);
        ok = trpi_json_append(array, item, item != NULL);
    }
    if (!ok) {
        cJSON_Delete(array);
    }
    return ok ? array : NULL;
}

static cJSON *
struct_item(trp_system *system, const trp_type *type, const uint8_t *payload, size_t at)
{
    cJSON *object = cJSON_CreateObject();
    bool ok = object != NULL;
    for (uint32_t i = 0; ok && i < type->fields_count; i++) {
        const trp_field *field = &type->fields[i];
        cJSON *item = value_item(system, field->kind, field->of, payload, at + field->offset);
        ok = item && cJSON_AddItemToObject(object, field->name, item);
        if (!ok) {
            cJSON_Delete(item);
        }
    }
    if (!ok) {
        cJSON_Delete(object);
    }
    return ok ? object : NULL;
}

static bool
text_add(cJSON *object, const char *key, const void *payload, size_t bytes)
{
    void *copy = NULL;
    size_t count = 0;
    if (bytes_copy(payload, bytes, &copy, &count) != TRP_OK) {
        return false;
    }
    bool ok = trpi_json_add_text(object, key, copy);
    trpi_free(copy);
    return ok;
}

static bool
base64_add(cJSON *object, const void *payload, size_t bytes)
{
    char *text = trpi_base64_encode(payload, bytes);
    bool ok = text && trpi_json_add_text(object, "base64", text);
    trpi_free(text);
    return ok;
}

static bool
value_add(trp_system *system, cJSON *object, const trp_type *type, const void *payload,
          size_t bytes)
{
    cJSON *json = NULL;
    if ((type->flags & TRP_TYPE_TEXT) && !memchr(payload, 0, bytes) &&
        trpi_utf8_is_valid(payload, bytes)) {
        return text_add(object, "text", payload, bytes);
    }
    if ((type->flags & TRP_TYPE_JSON) && trpi_json_parse(payload, bytes, &json, NULL) == TRP_OK) {
        bool ok = cJSON_AddItemToObject(object, "json", json);
        if (!ok) {
            cJSON_Delete(json);
        }
        return ok;
    }
    if (type->fields && trpi_payload_check(type, payload, bytes) == TRP_OK) {
        json = struct_item(system, type, payload, 0);
        if (!json || !cJSON_AddItemToObject(object, "json", json)) {
            cJSON_Delete(json);
            return false;
        }
        return true;
    }
    return base64_add(object, payload, bytes);
}

cJSON *
trpi_payload_to_json(trp_system *system, const trp_msg *msg)
{
    const trp_type *type = trp_msg_type(msg);
    const char *name = type == &trp_string_type  ? "string"
                       : type == &trp_json_type  ? "json"
                       : type == &trp_bytes_type ? "bytes"
                                                 : type->name;
    cJSON *object = cJSON_CreateObject();
    if (!trpi_json_add_text(object, "type", name) ||
        !value_add(system, object, type, trp_msg_payload(msg), trp_msg_bytes(msg))) {
        cJSON_Delete(object);
        return NULL;
    }
    return object;
}
