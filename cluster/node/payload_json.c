/* payload_json.c - between payloads and JSON, field by field. For people at a shell; what travels
 * between nodes is remote/serializer_json.c's.
 *
 * Must hold. I1 text is a stranger's: every number is checked against its field       (field_read)
 * Tests.     tests/unit/node/payload_json_test.c
 */
#include "cluster/node/payload_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "cluster/node/base64.h"

#define EXACT_MAX 9007199254740992.0 /* 2^53 */

static size_t
text_room(uint32_t kind)
{
    return kind == TRP_FIELD_text32    ? 32
           : kind == TRP_FIELD_text128 ? 128
           : kind == TRP_FIELD_text512 ? 512
                                       : 0;
}

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
        char *end = NULL;
        const char *text = item->valuestring;
        if (strspn(text, "-0123456789") != strlen(text) || !*text || strlen(text) > 20) {
            return false;
        }
        if (*text != '-') {
            *ret_u = strtoull(text, &end, 10);
            *ret_i = (int64_t)*ret_u;
            return *end == '\0' && *ret_u <= max &&
                   !(strlen(text) == 20 && strcmp(text, "18446744073709551615") > 0);
        }
        *ret_i = strtoll(text, &end, 10);
        if (*end != '\0' || strlen(text) > 20 ||
            (strlen(text) == 20 && strcmp(text, "-9223372036854775808") > 0)) {
            return false;
        }
    } else {
        return false;
    }
    *ret_u = (uint64_t)*ret_i;
    return *ret_i >= min && (*ret_i < 0 || (uint64_t)*ret_i <= max);
}

static trp_err
integer_field(const trp_field *field, const cJSON *item, uint8_t *at)
{
    int64_t i = 0;
    uint64_t u = 0;
    bool ok = false;
    switch (field->kind) {
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
        trpi_assert(field->kind == TRP_FIELD_u64);
        ok = integer_read(item, 0, UINT64_MAX, &i, &u);
        memcpy(at, &u, sizeof u);
        break;
    }
    return ok ? TRP_OK : TRP_EDATA;
}

static trp_err
field_read(const trp_field *field, const cJSON *item, uint8_t *at)
{
    size_t room = text_room(field->kind);
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
    if (field->kind == TRP_FIELD_bool) {
        *at = cJSON_IsTrue(item) ? 1 : 0;
        return cJSON_IsBool(item) ? TRP_OK : TRP_EDATA;
    }
    if (field->kind == TRP_FIELD_f64) {
        memcpy(at, &item->valuedouble, sizeof item->valuedouble);
        return cJSON_IsNumber(item) ? TRP_OK : TRP_EDATA;
    }
    if (field->kind == TRP_FIELD_ref) {
        return cJSON_IsNull(item) ? TRP_OK : TRP_EDATA;
    }
    return integer_field(field, item, at);
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

static trp_err
fields_read(const trp_type *type, const cJSON *object, uint8_t *payload, char *ret_what,
            size_t what_bytes)
{
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, object)
    {
        const trp_field *field = field_find(type, item->string);
        if (!field) {
            (void)snprintf(ret_what, what_bytes, "%s has no field '%.64s'", type->name,
                           item->string);
            return TRP_EDATA;
        }
        trp_err err = field_read(field, item, payload + field->offset);
        if (err != TRP_OK) {
            (void)snprintf(ret_what, what_bytes, "%s: the value does not fit field '%s'",
                           type->name, field->name);
            return err;
        }
    }
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
        void *payload = trpi_alloc(type->bytes + 1);
        err = payload ? fields_read(type, json, payload, ret_what, what_bytes) : TRP_ENOMEM;
        if (err == TRP_OK) {
            *ret_payload = payload;
            *ret_bytes = type->bytes;
        } else {
            trpi_free(payload);
        }
    }
    cJSON_Delete(json);
    return err;
}

/* ---- to JSON
 * ---------------------------------------------------------------------------------------- */

static bool
field_add(trp_system *system, cJSON *object, const trp_field *field, const uint8_t *at)
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
    size_t room = text_room(field->kind);
    if (room > 0) {
        memcpy(text, at, room);
        text[room] = '\0'; /* a text that fills its field has no NUL of its own */
        return trpi_json_add_text(object, field->name, text);
    }
    switch (field->kind) {
    case TRP_FIELD_bool:
        return trpi_json_add_bool(object, field->name, *at != 0);
    case TRP_FIELD_i32:
        memcpy(&v.i32, at, sizeof v.i32);
        return trpi_json_add_i64(object, field->name, v.i32);
    case TRP_FIELD_u32:
        memcpy(&v.u32, at, sizeof v.u32);
        return trpi_json_add_i64(object, field->name, v.u32);
    case TRP_FIELD_i64:
        memcpy(&v.i64, at, sizeof v.i64);
        return trpi_json_add_i64(object, field->name, v.i64);
    case TRP_FIELD_u64:
        memcpy(&v.u64, at, sizeof v.u64);
        return v.u64 <= (uint64_t)EXACT_MAX ? trpi_json_add_i64(object, field->name, (int64_t)v.u64)
                                            : trpi_json_add_u64_string(object, field->name, v.u64);
    case TRP_FIELD_f64:
        memcpy(&v.f64, at, sizeof v.f64);
        return cJSON_AddNumberToObject(object, field->name, v.f64) != NULL;
    case TRP_FIELD_ref:
        memcpy(&v.ref, at, sizeof v.ref);
        return trpi_json_add_text(
            object, field->name,
            trp_ref_is_none(v.ref) ? NULL : trp_path(system, v.ref, text, sizeof text));
    default:
        return true; /* a kind of a later version */
    }
}

static bool
text_is_utf8(const uint8_t *p, size_t count)
{
    for (size_t i = 0; i < count;) {
        size_t more = p[i] < 0x80                   ? 0
                      : p[i] >= 0xc2 && p[i] < 0xe0 ? 1
                      : p[i] >= 0xe0 && p[i] < 0xf0 ? 2
                      : p[i] >= 0xf0 && p[i] < 0xf5 ? 3
                                                    : 4;
        if (more == 4 || p[i] == 0 || more >= count - i) {
            return false;
        }
        for (size_t j = 1; j <= more; j++) {
            if ((p[i + j] & 0xc0) != 0x80) {
                return false;
            }
        }
        i += more + 1;
    }
    return true;
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
    if ((type->flags & TRP_TYPE_TEXT) && text_is_utf8(payload, bytes)) {
        return text_add(object, "text", payload, bytes);
    }
    if ((type->flags & TRP_TYPE_JSON) && trpi_json_parse(payload, bytes, &json, NULL) == TRP_OK) {
        bool ok = cJSON_AddItemToObject(object, "json", json);
        if (!ok) {
            cJSON_Delete(json);
        }
        return ok;
    }
    if (type->fields && bytes == type->bytes) {
        json = cJSON_AddObjectToObject(object, "json");
        bool ok = json != NULL;
        for (uint32_t i = 0; ok && i < type->fields_count; i++) {
            ok = field_add(system, json, &type->fields[i],
                           (const uint8_t *)payload + type->fields[i].offset);
        }
        return ok;
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
