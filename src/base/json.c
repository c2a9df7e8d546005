/* json.c - helpers around cJSON.
 *
 * Why.     cJSON's numbers are doubles, which it prints with up to 15 digits and one more try; its
 *          strings end at a NUL; and its parser recurses up to 1000 levels; see json.h.
 * Tests.   tests/unit/base/json_test.c
 */
#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/units.h"
#include "base/utf8.h"

#define DOUBLE_EXACT_MAX 9007199254740992 /* 2^53 */
#define CJSON_EXACT_MAX 100000000000000   /* what cJSON prints digit by digit */

#define UNICODE_NUL "u0000"

/* Return the offset of the first byte that is refused: nesting beyond TRPI_JSON_DEPTH_MAX, a NUL,
 * escaped or not (strings of C would end there), or no UTF-8. `bytes`: none is refused. Brackets in
 * strings do not count; bad syntax is left to the parser. */
static size_t
refused_at(const char *text, size_t bytes)
{
    size_t depth = 0, valid = trpi_utf8_valid(text, bytes);
    bool in_string = false;

    for (size_t i = 0; i < valid; i++) {
        char c = text[i];

        if (c == 0) {
            return i;
        }
        if (in_string) {
            if (c == '\\') {
                if (bytes - i > sizeof UNICODE_NUL - 1 &&
                    memcmp(&text[i + 1], UNICODE_NUL, sizeof UNICODE_NUL - 1) == 0) {
                    return i;
                }
                i++;
            } else if (c == '"') {
                in_string = false;
            }
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > TRPI_JSON_DEPTH_MAX) {
                return i;
            }
        } else if ((c == ']' || c == '}') && depth > 0) {
            depth--;
        }
    }
    return valid;
}

static bool
is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

trp_err
trpi_json_parse(const char *text, size_t bytes, cJSON **ret_json, size_t *ret_offset)
{
    const char *end = text;
    size_t offset = refused_at(text, bytes);
    cJSON *json = NULL;

    if (offset == bytes) {
        json = cJSON_ParseWithLengthOpts(text, bytes, &end, 0);
        offset = end == NULL ? 0 : (size_t)(end - text);
        while (json != NULL && offset < bytes && is_space(text[offset])) {
            offset++;
        }
        if (json != NULL && offset < bytes) { /* a second value, or rubbish */
            cJSON_Delete(json);
            json = NULL;
        }
    }
    if (json == NULL) {
        if (ret_offset != NULL) {
            *ret_offset = offset < bytes ? offset : bytes;
        }
        return TRP_EDATA;
    }
    *ret_json = json;
    return TRP_OK;
}

bool
trpi_json_add_text(cJSON *object, const char *key, const char *text)
{
    if (object == NULL) {
        return false;
    }
    if (text == NULL) {
        return cJSON_AddNullToObject(object, key) != NULL;
    }
    return cJSON_AddStringToObject(object, key, text) != NULL;
}

bool
trpi_json_add_u64_string(cJSON *object, const char *key, uint64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, number);
    return trpi_json_add_text(object, key, text);
}

bool
trpi_json_add_i64(cJSON *object, const char *key, int64_t number)
{
    char text[24];

    if (object == NULL) {
        return false;
    }
    if (number <= CJSON_EXACT_MAX && number >= -CJSON_EXACT_MAX) {
        return cJSON_AddNumberToObject(object, key, (double)number) != NULL;
    }
    snprintf(text, sizeof text, "%" PRId64, number);
    if (number <= DOUBLE_EXACT_MAX && number >= -DOUBLE_EXACT_MAX) {
        return cJSON_AddRawToObject(object, key, text) != NULL;
    }
    return trpi_json_add_text(object, key, text);
}

cJSON *
trpi_json_f64(double number)
{
    char text[32], plain[32];
    size_t count = 0;

    if (!isfinite(number)) {
        return NULL;
    }
    for (int digits = 15; digits <= 17; digits++) { /* 17 digits tell all doubles apart */
        snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number) {
            break;
        }
    }
    for (const char *c = text; *c != 0; c++) { /* the decimal point of the program's locale */
        if (strchr("0123456789+-e", *c) != NULL) {
            plain[count++] = *c;
        } else if (count == 0 || plain[count - 1] != '.') {
            plain[count++] = '.';
        }
    }
    plain[count] = 0;
    return cJSON_CreateRaw(plain);
}

bool
trpi_json_add_f64(cJSON *object, const char *key, double number)
{
    cJSON *item = object != NULL ? trpi_json_f64(number) : NULL;
    bool ok = item != NULL && cJSON_AddItemToObject(object, key, item);

    if (!ok) {
        cJSON_Delete(item);
    }
    return ok;
}

bool
trpi_json_add_bool(cJSON *object, const char *key, bool value)
{
    return object != NULL && cJSON_AddBoolToObject(object, key, value) != NULL;
}

bool
trpi_json_append(cJSON *list, cJSON *row, bool ok)
{
    ok = ok && list != NULL && row != NULL && cJSON_AddItemToArray(list, row);
    if (!ok) {
        cJSON_Delete(row);
    }
    return ok;
}

const char *
trpi_json_get_text(const cJSON *object, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

bool
trpi_json_u64(const cJSON *item, uint64_t *ret_number)
{
    double number;

    if (cJSON_IsString(item)) {
        return trpi_whole_parse(item->valuestring, 0, UINT64_MAX, ret_number);
    }
    if (!cJSON_IsNumber(item)) {
        return false;
    }
    number = item->valuedouble;
    if (!(number >= 0 && number <= (double)DOUBLE_EXACT_MAX) ||
        number != (double)(uint64_t)number) {
        return false;
    }
    *ret_number = (uint64_t)number;
    return true;
}

bool
trpi_json_get_u64(const cJSON *object, const char *key, uint64_t *ret_number)
{
    return trpi_json_u64(cJSON_GetObjectItemCaseSensitive(object, key), ret_number);
}

bool
trpi_json_get_bool(const cJSON *object, const char *key, bool *ret_value)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

    if (!cJSON_IsBool(item)) {
        return false;
    }
    *ret_value = cJSON_IsTrue(item);
    return true;
}

char *
trpi_json_print(const cJSON *json)
{
    char *text;

    trpi_assert(json != NULL);
    text = cJSON_PrintUnformatted(json);
    if (text != NULL) {
        trpi_utf8_mend(text, strlen(text)); /* it can stand in strings only */
    }
    return text;
}
