/* web_text.c - see web_text.h.
 *
 * Must hold.
 *   web-text-T1  A head has as many lines as its fields: no name or value holds what ends a line.
 *   web-text-T2  What a client asks for has no space, control character, '?' or '#' of the path.
 * Tests.   tests/unit/endpoint/web_text_test.c, tests/fuzz/web_text_fuzz.c
 * Sources. RFC 9110, sections 5.1, 5.5, 7.6.1, 15; RFC 3986, section 3.3
 */
#include "endpoint/web_text.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "endpoint/http_request.h"

#define HEAD_BYTES_MAX (72u * 1024u) /* 32 fields of 1,023 and 1,023 bytes, and some lines */

/* ---- URIs ------------------------------------------------------------------------------------ */

/* Read the port; what follows it, or NULL: it is none. */
static const char *
port_read(const char *at, uint16_t *port)
{
    uint32_t number = 0;
    size_t digits = strspn(at, "0123456789");
    for (size_t i = 0; i < digits && digits <= 5; i++) {
        number = number * 10 + (uint32_t)(at[i] - '0');
    }
    if (digits == 0 || digits > 5 || number > UINT16_MAX) {
        return NULL;
    }
    *port = (uint16_t)number;
    return at + digits;
}

/* Read //HOST:PORT/PATH. False: it is none. */
static bool
address_read(const char *path, trpi_web_settings *s)
{
    static const char numeric[] = "0123456789abcdefABCDEF:.";
    static const char name[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    if (strncmp(path, "//", 2) != 0) {
        return false;
    }
    bool is_v6 = path[2] == '[';
    const char *host = path + (is_v6 ? 3 : 2);
    size_t bytes = strspn(host, is_v6 ? numeric : name);
    const char *at = host + bytes;
    if (bytes == 0 || bytes > TRPI_HOST_BYTES_MAX || (is_v6 && *at++ != ']')) {
        return false;
    }
    memcpy(s->host, host, bytes);
    s->host[bytes] = '\0';
    if (*at == ':' && (at = port_read(at + 1, &s->port)) == NULL) {
        return false;
    }
    s->path = *at == '\0' ? "/" : at;
    return s->path[0] == '/';
}

static trp_err
settings_fail(const trpi_uri *uri, const char *what, char reason[TRP_ENDPOINT_REASON_BYTES])
{
    (void)snprintf(reason, TRP_ENDPOINT_REASON_BYTES, "%s: %s", uri->scheme, what);
    return TRP_EINVAL;
}

trp_err
trpi_web_settings_read(const trpi_uri *uri, bool produces, trpi_web_settings *ret_settings,
                       char ret_reason[TRP_ENDPOINT_REASON_BYTES])
{
    trpi_web_settings s;
    memset(&s, 0, sizeof s);
    s.uri = uri;
    s.tls = uri->scheme[strlen(uri->scheme) - 1] == 's' && strcmp(uri->scheme, "ws") != 0;
    s.port = s.tls ? 443 : 80;
    s.connections = TRPI_WEB_CONNECTIONS_DEFAULT;
    s.header_bytes = TRPI_WEB_HEADER_BYTES_DEFAULT;
    s.idle_ms = TRPI_WEB_IDLE_MS_DEFAULT;
    s.cert = trpi_uri_option(uri, "cert", 0);
    s.key = trpi_uri_option(uri, "key", 0);
    s.ca = trpi_uri_option(uri, "ca", 0);
    s.query = trpi_uri_option(uri, "query", 0);
    if (!address_read(uri->path, &s)) {
        return settings_fail(uri, "write //HOST:PORT/PATH, an IPv6 address in brackets",
                             ret_reason);
    }
    if (!s.tls && (s.cert != NULL || s.key != NULL || s.ca != NULL)) {
        return settings_fail(uri,
                             "has no TLS, so no cert, key or ca: write https: or wss:", ret_reason);
    }
    if (s.tls && !produces && (s.cert == NULL || s.key == NULL)) {
        return settings_fail(uri, "needs cert=FILE and key=FILE, of the server", ret_reason);
    }
    if ((s.cert == NULL) != (s.key == NULL)) {
        return settings_fail(uri, "cert and key go together", ret_reason);
    }
    trp_err err = trpi_uri_number(uri, "connections", 1, TRPI_WEB_CONNECTIONS_MAX, &s.connections,
                                  ret_reason);
    err = err == TRP_OK ? trpi_uri_number(uri, "headers", TRPI_WEB_HEADER_BYTES_MIN,
                                          TRPI_WEB_HEADER_BYTES_MAX, &s.header_bytes, ret_reason)
                        : err;
    err = err == TRP_OK
              ? trpi_uri_number(uri, "idle", 1, TRPI_WEB_IDLE_MS_MAX, &s.idle_ms, ret_reason)
              : err;
    err = err == TRP_OK ? trpi_uri_number(uri, "prefix", 0, 1, &s.prefix, ret_reason) : err;
    err = err == TRP_OK ? trpi_uri_number(uri, "text", 0, 1, &s.text, ret_reason) : err;
    s.connections = produces ? 1 : s.connections;
    if (err == TRP_OK) {
        *ret_settings = s;
    }
    return err;
}

bool
trpi_web_path_fits(const trpi_web_settings *settings, const char *path)
{
    size_t bytes = strlen(settings->path);
    if (strncmp(path, settings->path, bytes) != 0) {
        return false;
    }
    return path[bytes] == '\0' ||
           (settings->prefix != 0 && (settings->path[bytes - 1] == '/' || path[bytes] == '/'));
}

/* Append from, encoded but for letters, digits and `plain`. Returns the end. web-text-T2 */
static char *
text_encode(char *to, const char *end, const char *from, const char *plain)
{
    for (; *from != '\0'; from++) {
        unsigned char c = (unsigned char)*from;
        bool as_is = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                     strchr(plain, c) != NULL;
        trpi_assert(to + 4 <= end);
        to += snprintf(to, 4, as_is ? "%c" : "%%%02X", c);
    }
    return to;
}

void
trpi_web_target_write(const trpi_web_settings *settings, char ret_text[TRPI_WEB_TARGET_BYTES])
{
    const char *end = ret_text + TRPI_WEB_TARGET_BYTES;
    char *to = text_encode(ret_text, end, settings->path, "/-._~!$&'()*+,;=:@");
    if (settings->query != NULL) {
        *to++ = '?';
        to = text_encode(to, end, settings->query, "/-._~!$&'()*+,;=:@?");
    }
    *to = '\0';
}

/* ---- heads of responses ---------------------------------------------------------------------- */

/* Read a status, 200 to 599; 0: it is none. */
static uint32_t
status_read(const char *text)
{
    if (strlen(text) != 3 || text[strspn(text, "0123456789")] != '\0' || text[0] < '2' ||
        text[0] > '5') {
        return 0;
    }
    return (uint32_t)((text[0] - '0') * 100 + (text[1] - '0') * 10 + (text[2] - '0'));
}

static const char *
status_phrase(uint32_t status)
{
    static const struct {
        uint32_t status;
        const char *phrase;
    } phrases[] = { { 200, "OK" },
                    { 201, "Created" },
                    { 202, "Accepted" },
                    { 204, "No Content" },
                    { 301, "Moved Permanently" },
                    { 302, "Found" },
                    { 303, "See Other" },
                    { 304, "Not Modified" },
                    { 400, "Bad Request" },
                    { 401, "Unauthorized" },
                    { 403, "Forbidden" },
                    { 404, "Not Found" },
                    { 405, "Method Not Allowed" },
                    { 411, "Length Required" },
                    { 413, "Content Too Large" },
                    { 426, "Upgrade Required" },
                    { 431, "Request Header Fields Too Large" },
                    { 500, "Internal Server Error" },
                    { 502, "Bad Gateway" },
                    { 503, "Service Unavailable" },
                    { 504, "Gateway Timeout" } };
    for (size_t i = 0; i < sizeof phrases / sizeof phrases[0]; i++) {
        if (phrases[i].status == status) {
            return phrases[i].phrase;
        }
    }
    return "Status";
}

/* One field; TRP_OK, too, if it is left out. */
static trp_err
field_write(const trp_endpoint_header *h, trpi_buffer *out, char reason[TRP_ENDPOINT_REASON_BYTES])
{
    if (!trpi_http_field_is_sent(h)) {
        return TRP_OK;
    }
    if (!trpi_http_field_is_good(h)) { /* web-text-T1 */
        (void)snprintf(reason, TRP_ENDPOINT_REASON_BYTES,
                       "a field is none of HTTP: its name is no token, or its value has a control "
                       "character");
        return TRP_EINVAL;
    }
    return trpi_buffer_printf(out, HEAD_BYTES_MAX + out->count, "%s: %s\r\n", h->name, h->value);
}

trp_err
trpi_web_head_write(const trp_endpoint_header *headers, uint32_t count, size_t body_bytes,
                    trpi_buffer *out, bool *ret_bodiless,
                    char ret_reason[TRP_ENDPOINT_REASON_BYTES])
{
    uint32_t status = 200;
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(headers[i].name, "http.status") == 0) {
            status = status_read(headers[i].value);
        }
    }
    if (status == 0) {
        (void)snprintf(ret_reason, TRP_ENDPOINT_REASON_BYTES,
                       "http.status is not a number from 200 to 599");
        return TRP_EINVAL;
    }
    trp_err err = trpi_buffer_printf(out, HEAD_BYTES_MAX + out->count, "HTTP/1.1 %u %s\r\n",
                                     (unsigned)status, status_phrase(status));
    for (uint32_t i = 0; err == TRP_OK && i < count; i++) {
        err = field_write(&headers[i], out, ret_reason);
    }
    *ret_bodiless = status == 204 || status == 304;
    if (err == TRP_OK && !*ret_bodiless) {
        err = trpi_buffer_printf(out, HEAD_BYTES_MAX + out->count, "content-length: %zu\r\n",
                                 body_bytes);
    }
    return err;
}
