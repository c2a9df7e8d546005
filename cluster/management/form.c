/* form.c - see form.h.
 *
 * Shape.   A field is found by going through all of the body once: a name that comes twice is an
 *          error, since two readers of the same bytes might take different ones.
 * Not here. Files, encodings and nested parts of multipart/form-data.
 * Tests.   tests/unit/management/form_test.c, tests/fuzz/management_fuzz.c
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cluster/management/form.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"

#define BOUNDARY_BYTES_MAX 70u /* RFC 2046 */
#define URLENCODED "application/x-www-form-urlencoded"
#define MULTIPART "multipart/form-data"

static int
digit_of(uint8_t c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Copy a value, which must be text. */
static trp_err
value_take(const uint8_t *bytes, size_t count, char ret_value[TRPI_MANAGEMENT_FIELD_BYTES_MAX])
{
    if (count >= TRPI_MANAGEMENT_FIELD_BYTES_MAX) {
        return TRP_EMSGSIZE;
    }
    if (memchr(bytes, '\0', count) != NULL || !trpi_utf8_is_valid(bytes, count)) {
        return TRP_EDATA;
    }
    memcpy(ret_value, bytes, count);
    ret_value[count] = '\0';
    return TRP_OK;
}

/* Decode "%41+b". Errors: TRP_EDATA, TRP_EMSGSIZE. */
static trp_err
percent_decode(const uint8_t *text, size_t bytes, char ret_value[TRPI_MANAGEMENT_FIELD_BYTES_MAX])
{
    uint8_t out[TRPI_MANAGEMENT_FIELD_BYTES_MAX];
    size_t used = 0;
    for (size_t i = 0; i < bytes; i++) {
        uint8_t c = text[i] == '+' ? ' ' : text[i];
        if (c == '%') {
            int high = i + 2 < bytes ? digit_of(text[i + 1]) : -1;
            int low = i + 2 < bytes ? digit_of(text[i + 2]) : -1;
            if (high < 0 || low < 0) {
                return TRP_EDATA;
            }
            c = (uint8_t)(high * 16 + low);
            i += 2;
        }
        if (used == sizeof out) {
            return TRP_EMSGSIZE;
        }
        out[used++] = c;
    }
    return value_take(out, used, ret_value);
}

static trp_err
urlencoded_get(const uint8_t *body, size_t bytes, const char *name,
               char ret_value[TRPI_MANAGEMENT_FIELD_BYTES_MAX])
{
    char key[TRPI_MANAGEMENT_FIELD_BYTES_MAX];
    bool found = false;
    for (size_t at = 0; at < bytes;) {
        const uint8_t *end = memchr(body + at, '&', bytes - at);
        size_t count = end != NULL ? (size_t)(end - (body + at)) : bytes - at;
        const uint8_t *equal = memchr(body + at, '=', count);
        size_t key_bytes = equal != NULL ? (size_t)(equal - (body + at)) : count;
        trp_err err = percent_decode(body + at, key_bytes, key);
        if (err != TRP_OK) {
            return TRP_EDATA;
        }
        if (strcmp(key, name) == 0) {
            size_t value_at = equal != NULL ? key_bytes + 1 : count;
            if (found) {
                return TRP_EDATA;
            }
            err = percent_decode(body + at + value_at, count - value_at, ret_value);
            if (err != TRP_OK) {
                return err;
            }
            found = true;
        }
        at += count + 1;
    }
    return found ? TRP_OK : TRP_ENOENT;
}

/* ---- multipart/form-data --------------------------------------------------------------------- */

/* Make the delimiter, "\r\n--BOUNDARY", of a content type. false: it has none. */
static bool
delimiter_make(const char *content_type, char ret_delimiter[BOUNDARY_BYTES_MAX + 5])
{
    const char *at = strcasestr(content_type, "boundary=");
    if (at == NULL) {
        return false;
    }
    at += strlen("boundary=");
    bool quoted = at[0] == '"';
    at += quoted ? 1 : 0;
    size_t count = strcspn(at, quoted ? "\"" : "; \t");
    if (count == 0 || count > BOUNDARY_BYTES_MAX || (quoted && at[count] != '"')) {
        return false;
    }
    memcpy(ret_delimiter, "\r\n--", 4);
    memcpy(ret_delimiter + 4, at, count);
    ret_delimiter[4 + count] = '\0';
    return true;
}

/* Is it a part of this name? headers: NUL-free, `bytes` long, lines end with CR LF. */
static bool
part_is(const uint8_t *headers, size_t bytes, const char *name)
{
    char line[TRPI_MANAGEMENT_FIELD_BYTES_MAX], wanted[TRPI_MANAGEMENT_FIELD_BYTES_MAX];
    size_t name_bytes = strlen(name);
    memcpy(wanted, "; name=\"", 8);
    memcpy(wanted + 8, name, name_bytes);
    memcpy(wanted + 8 + name_bytes, "\"", 2);
    for (size_t at = 0; at < bytes;) {
        const uint8_t *end = memmem(headers + at, bytes - at, "\r\n", 2);
        size_t count = end != NULL ? (size_t)(end - (headers + at)) : bytes - at;
        if (count < sizeof line && memchr(headers + at, '\0', count) == NULL) {
            memcpy(line, headers + at, count);
            line[count] = '\0';
            if (strncasecmp(line, "content-disposition:", 20) == 0) {
                return strcasestr(line, "form-data") != NULL && strstr(line, wanted) != NULL;
            }
        }
        at += count + 2;
    }
    return false;
}

static trp_err
multipart_get(const char *content_type, const uint8_t *body, size_t bytes, const char *name,
              char ret_value[TRPI_MANAGEMENT_FIELD_BYTES_MAX])
{
    char delimiter[BOUNDARY_BYTES_MAX + 5];
    if (!delimiter_make(content_type, delimiter)) {
        return TRP_EDATA;
    }
    size_t delimiter_bytes = strlen(delimiter), at = 0;
    bool found = false;
    /* the first delimiter has no line before it */
    if (bytes < delimiter_bytes - 2 || memcmp(body, delimiter + 2, delimiter_bytes - 2) != 0) {
        return TRP_EDATA;
    }
    at = delimiter_bytes - 2;
    for (;;) {
        if (bytes - at >= 2 && memcmp(body + at, "--", 2) == 0) {
            return found ? TRP_OK : TRP_ENOENT;
        }
        const uint8_t *headers = body + at;
        const uint8_t *content = memmem(headers, bytes - at, "\r\n\r\n", 4);
        const uint8_t *end = content != NULL
                                 ? memmem(content + 4, bytes - (size_t)(content + 4 - body),
                                          delimiter, delimiter_bytes)
                                 : NULL;
        if (end == NULL) {
            return TRP_EDATA;
        }
        if (part_is(headers, (size_t)(content - headers), name)) {
            trp_err err = found ? TRP_EDATA
                                : value_take(content + 4, (size_t)(end - (content + 4)), ret_value);
            if (err != TRP_OK) {
                return err;
            }
            found = true;
        }
        at = (size_t)(end - body) + delimiter_bytes;
    }
}

/* Is it this content type, with parameters or without? */
static bool
type_is(const char *content_type, const char *type)
{
    size_t bytes = strlen(type);
    return strncasecmp(content_type, type, bytes) == 0 &&
           (content_type[bytes] == '\0' || strchr("; \t", content_type[bytes]) != NULL);
}

trp_err
trpi_management_form_get(const char *content_type, const uint8_t *body, size_t bytes,
                         const char *name, char ret_value[TRPI_MANAGEMENT_FIELD_BYTES_MAX])
{
    if (content_type == NULL) {
        return bytes == 0 ? TRP_ENOENT : TRP_EVERSION;
    }
    if (type_is(content_type, URLENCODED)) {
        return urlencoded_get(body, bytes, name, ret_value);
    }
    return type_is(content_type, MULTIPART)
               ? multipart_get(content_type, body, bytes, name, ret_value)
               : TRP_EVERSION;
}

trp_err
trpi_management_query_get(const char *query, const char *name,
                          char ret_value[TRPI_MANAGEMENT_FIELD_BYTES_MAX])
{
    size_t name_bytes = strlen(name);
    bool found = false;
    for (const char *at = query; *at != '\0';) {
        size_t count = strcspn(at, "&");
        if (count > name_bytes && at[name_bytes] == '=' && strncmp(at, name, name_bytes) == 0) {
            if (found) {
                return TRP_EDATA;
            }
            trp_err err =
                value_take((const uint8_t *)at + name_bytes + 1, count - name_bytes - 1, ret_value);
            if (err != TRP_OK) {
                return err;
            }
            found = true;
        }
        at += count + (at[count] == '&');
    }
    return found ? TRP_OK : TRP_ENOENT;
}
