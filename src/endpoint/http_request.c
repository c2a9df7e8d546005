/* http_request.c - a message as a request of HTTP, and the fields of an answer as headers.
 *
 * Must hold.
 *   http-request-R1  Nothing of a message is an end of line in a request, and http.path does not
 *       lead out of the URI's path.
 *   http-request-R2  A field of an answer is no header of an endpoint: their names have a dot.
 * Limits.  TRPI_HTTP_*; TRP_ENDPOINT_HEADERS_MAX, TRP_ENDPOINT_HEADER_BYTES_MAX.
 * Tests.   tests/unit/endpoint/http_client_test.c
 * Sources. CAM-02, CAM-05; RFC 9110
 */
#include "endpoint/http_request.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"

static const char token_bytes[] = "!#$%&'*+-.^_`|~0123456789"
                                  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

trp_err
trpi_http_target_check(const trpi_uri *uri, char ret_reason[TRP_ENDPOINT_REASON_BYTES])
{
    const char *host = uri->path + 2;
    size_t bytes = strncmp(uri->path, "//", 2) == 0 ? strcspn(host, "/?#") : 0;
    if (bytes == 0 || strcspn(host, "@ \\") < bytes || strchr(host, '#') != NULL ||
        host[0] == ':') {
        (void)snprintf(ret_reason, TRP_ENDPOINT_REASON_BYTES,
                       "%.10s: needs %.10s://HOST[:PORT]/PATH, without a name or password",
                       uri->scheme, uri->scheme);
        return TRP_EINVAL;
    }
    return TRP_OK;
}

static const char *
header_of(const trpi_endpoint_send *send, const char *name)
{
    const trp_endpoint_message as = { .headers_count = send->headers_count,
                                      .headers = send->headers };
    return trp_endpoint_header_get(&as, name);
}

/* Append text, with %XX for what may not stand in a URL, and for '%' unless it is raw. */
static void
url_append(char *url, size_t *at, const char *text, bool raw)
{
    static const char plain[] = "-._~:/?[]@!$&'()*+,;=0123456789"
                                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    for (; *text != '\0' && *at < TRPI_HTTP_URL_BYTES; text++) {
        bool is_plain = strchr(plain, *text) != NULL || (raw && *text == '%');
        int bytes = snprintf(url + *at, TRPI_HTTP_URL_BYTES - *at, is_plain ? "%c" : "%%%02X",
                             is_plain ? *text : (unsigned char)*text);
        *at += (size_t)bytes;
    }
}

static bool
path_is_good(const char *path)
{
    if (path[0] != '/' || strpbrk(path, "?#\\") != NULL) {
        return false;
    }
    for (const char *part = path; part != NULL; part = strchr(part, '/')) { /* http-request-R1 */
        part++;
        size_t bytes = strcspn(part, "/");
        if ((bytes == 1 && part[0] == '.') || (bytes == 2 && part[0] == '.' && part[1] == '.')) {
            return false;
        }
    }
    return true;
}

trp_err
trpi_http_url_write(const trpi_uri *uri, const trpi_endpoint_send *send,
                    char ret_url[TRPI_HTTP_URL_BYTES], char ret_reason[TRP_ENDPOINT_REASON_BYTES])
{
    const char *path = header_of(send, "http.path"), *query = header_of(send, "http.query");
    bool has_query = strchr(uri->path, '?') != NULL;
    size_t at = (size_t)snprintf(ret_url, TRPI_HTTP_URL_BYTES, "%s:", uri->scheme);
    url_append(ret_url, &at, uri->path, false);
    if (path != NULL && (has_query || !path_is_good(path))) {
        (void)snprintf(ret_reason, TRP_ENDPOINT_REASON_BYTES,
                       has_query ? "http.path cannot follow a URI with a query"
                                 : "http.path does not begin with /, has a part of . or .., or ?");
        return TRP_EINVAL;
    }
    if (path != NULL) {
        at -= ret_url[at - 1] == '/' ? 1 : 0;
        url_append(ret_url, &at, path, false);
    }
    if (query != NULL && query[0] != '\0') {
        if (strchr(uri->path + 2, '/') == NULL && path == NULL) {
            url_append(ret_url, &at, "/", false);
        }
        url_append(ret_url, &at, has_query ? "&" : "?", false);
        url_append(ret_url, &at, query, true);
    }
    if (at >= TRPI_HTTP_URL_BYTES) {
        (void)snprintf(ret_reason, TRP_ENDPOINT_REASON_BYTES, "the URL is longer than %d bytes",
                       TRPI_HTTP_URL_BYTES - 1);
        return TRP_EINVAL;
    }
    return TRP_OK;
}

trp_err
trpi_http_method_choose(const trpi_uri *uri, const trpi_endpoint_send *send,
                        char ret_method[TRPI_HTTP_METHOD_BYTES],
                        char ret_reason[TRP_ENDPOINT_REASON_BYTES])
{
    const char *method = send != NULL ? header_of(send, "http.method") : NULL;
    method = method != NULL ? method : trpi_uri_option(uri, "method", 0);
    if (method == NULL) {
        method = send == NULL || trp_bytes_length(send->body) == 0 ? "GET" : "POST";
    }
    size_t bytes = strspn(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    if (bytes == 0 || bytes >= TRPI_HTTP_METHOD_BYTES || method[bytes] != '\0' ||
        strcmp(method, "CONNECT") == 0) {
        (void)snprintf(ret_reason, TRP_ENDPOINT_REASON_BYTES,
                       "a method is up to %d capital letters, and not CONNECT",
                       TRPI_HTTP_METHOD_BYTES - 1);
        return TRP_EINVAL;
    }
    (void)snprintf(ret_method, TRPI_HTTP_METHOD_BYTES, "%s", method);
    return TRP_OK;
}

/* ---- fields ---------------------------------------------------------------------------------- */

static bool
field_is_of_connection(const char *name)
{
    static const char *const names[] = { "connection",        "content-length", "expect", "host",
                                         "http2-settings",    "keep-alive",     "te",     "trailer",
                                         "transfer-encoding", "upgrade" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcasecmp(name, names[i]) == 0) {
            return true;
        }
    }
    return strncasecmp(name, "proxy-", 6) == 0;
}

bool
trpi_http_field_is_sent(const trp_endpoint_header *header)
{
    return strchr(header->name, '.') == NULL && !field_is_of_connection(header->name);
}

bool
trpi_http_field_is_good(const trp_endpoint_header *header)
{
    if (header->name[0] == '\0' || header->name[strspn(header->name, token_bytes)] != '\0') {
        return false;
    }
    for (const char *at = header->value; *at != '\0'; at++) {
        if (((unsigned char)*at < ' ' && *at != '\t') || *at == 0x7f) {
            return false;
        }
    }
    return true;
}

void
trpi_http_fields_add(trpi_http_fields *fields, const char *line, size_t bytes)
{
    char name[TRP_ENDPOINT_HEADER_BYTES_MAX + 1], value[TRP_ENDPOINT_HEADER_BYTES_MAX + 1];
    const trp_endpoint_header header = { name, value };
    const char *colon = memchr(line, ':', bytes);
    if (bytes >= 5 && memcmp(line, "HTTP/", 5) == 0) { /* of a redirect, or 100 */
        fields->count = 0;
        trpi_buffer_clear(&fields->texts);
        return;
    }
    if (colon == NULL || (size_t)(colon - line) >= sizeof name ||
        memchr(line, '\0', bytes) != NULL) {
        return;
    }
    size_t name_bytes = (size_t)(colon - line), end = bytes, begin = name_bytes + 1;
    while (begin < end && (line[begin] == ' ' || line[begin] == '\t')) {
        begin++;
    }
    while (end > begin && strchr(" \t\r\n", line[end - 1]) != NULL) {
        end--;
    }
    if (end - begin >= sizeof value) {
        return;
    }
    for (size_t i = 0; i < name_bytes; i++) {
        name[i] = line[i] >= 'A' && line[i] <= 'Z' ? (char)(line[i] - 'A' + 'a') : line[i];
    }
    name[name_bytes] = '\0';
    memcpy(value, line + begin, end - begin);
    value[end - begin] = '\0';
    size_t before = fields->texts.count;
    if (!trpi_http_field_is_good(&header) ||
        !trpi_http_field_is_sent(&header) || /* http-request-R2 */
        fields->count == TRP_ENDPOINT_HEADERS_MAX) {
        return;
    }
    if (trpi_buffer_append(&fields->texts, name, name_bytes + 1, TRPI_HTTP_FIELDS_BYTES) !=
            TRP_OK ||
        trpi_buffer_append(&fields->texts, value, end - begin + 1, TRPI_HTTP_FIELDS_BYTES) !=
            TRP_OK) {
        fields->texts.count = before;
        return;
    }
    fields->count++;
}

uint32_t
trpi_http_fields_headers(const trpi_http_fields *fields,
                         trp_endpoint_header ret_headers[TRP_ENDPOINT_HEADERS_MAX], uint32_t first)
{
    const char *at = (const char *)fields->texts.data;
    uint32_t count = first;
    for (uint32_t i = 0; i < fields->count && count < TRP_ENDPOINT_HEADERS_MAX; i++) {
        ret_headers[count].name = at;
        at += strlen(at) + 1;
        ret_headers[count++].value = at;
        at += strlen(at) + 1;
    }
    trpi_assert(count <= TRP_ENDPOINT_HEADERS_MAX);
    return count;
}
