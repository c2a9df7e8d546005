/* web_http.c - requests of HTTP/1.1 and their responses, on the thread of an endpoint.
 *
 * States.  (open) --headers--> body awaited --all of it--> asked --settled--> answered --> open
 *          A request that is refused is answered by its headers, and its connection closed.
 * Must hold.
 *   web-http-H1  Bytes of a body are never read as a request: a connection goes on only after a
 *       request that had none, or all of whose body was taken.                (request_begin)
 *   web-http-H2  A connection has `idle` to send a request, and again to read the response, however
 *       slowly; while the actor has its request, the actor has the time.
 *       The end of a client that has said all is not looked at then: it may still read.
 *   web-http-H3  Of web->asked, each request that the actor was told is taken off once, when it is
 *       settled, also if its connection has gone.
 * Limits.  pending_max requests with the actor, then 503; headers, message_bytes_max, 32 fields of
 *          1,023 bytes: 431, 413. A block above `headers` is closed by libwebsockets.
 * Tests.   tests/unit/endpoint/web_server_test.c
 * Sources. CAM-01, -03, -04; RFC 9112
 */
#include "endpoint/web.h"

#ifdef HAVE_LIBWEBSOCKETS

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "endpoint/http_request.h"
#include "tls/tls.h"

#define HEAD_BYTES_MORE 1024u

void
trpi_web_exchange_end(trpi_web *web, trpi_web_connection *c)
{
    trp_bytes_unref(&c->body);
    trpi_free(c->fields);
    c->fields = NULL;
    c->body_data = NULL;
    c->body_bytes = c->body_wanted = 0;
    c->asked = c->answered = c->is_head = false;
    trpi_web_token_end(web, c);
}

static void
timer_set(const trpi_web *web, trpi_web_connection *c)
{
    web->lws->lws_set_timeout(c->wsi, NO_PENDING_TIMEOUT, 0); /* the library's own */
    trpi_web_timer_set(web, c, web->settings.idle_ms);
}

/* ---- what requests say ----------------------------------------------------------------------- */

bool
trpi_web_token_add(const trpi_web *web, trpi_web_fields *fields, struct lws *wsi, const char *name,
                   enum lws_token_indexes token)
{
    char value[TRP_ENDPOINT_HEADER_BYTES_MAX + 1];
    int length = web->lws->lws_hdr_total_length(wsi, token);
    if (length <= 0) {
        return true;
    }
    return (size_t)length < sizeof value &&
           web->lws->lws_hdr_copy(wsi, value, sizeof value, token) >= 0 &&
           trpi_web_field_add(fields, name, value);
}

/* Put the arguments of the path together, which the library has decoded: '&' and '%' of them are
 * encoded again. False: they are too long. */
static bool
query_add(const trpi_web *web, trpi_web_fields *fields, struct lws *wsi, const char *name)
{
    char part[TRP_ENDPOINT_HEADER_BYTES_MAX + 1];
    char value[TRP_ENDPOINT_HEADER_BYTES_MAX + 1];
    size_t used = 0, taken = 0;
    int total = web->lws->lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_URI_ARGS);
    for (int i = 0; total > 0; i++) {
        int length = web->lws->lws_hdr_copy_fragment(wsi, part, (int)sizeof part,
                                                     WSI_TOKEN_HTTP_URI_ARGS, i);
        if (length < 0) { /* no further one, or it is too long: then bytes are missing */
            value[used] = '\0';
            return taken + (size_t)i + 1 >= (size_t)total &&
                   trpi_web_field_add(fields, name, value);
        }
        taken += strlen(part);
        if (i > 0 && used + 1 < sizeof value) {
            value[used++] = '&';
        }
        for (const char *at = part; *at != '\0'; at++) {
            bool plain = *at != '&' && *at != '%' && (unsigned char)*at > ' ';
            if (used + 4 > sizeof value) {
                return false;
            }
            used += (size_t)snprintf(value + used, 4, plain ? "%c" : "%%%02X", (unsigned char)*at);
        }
    }
    return true;
}

bool
trpi_web_origin_add(const trpi_web *web, trpi_web_fields *fields, struct lws *wsi,
                    const char *query_name)
{
    char subject[256];
    if (!query_add(web, fields, wsi, query_name)) {
        return false;
    }
    return web->settings.ca == NULL ||
           !trpi_tls_ssl_common_name(web->lws->lws_get_ssl(wsi), subject, sizeof subject) ||
           trpi_web_field_add(fields, "tls.subject", subject);
}

/* ---- responses ------------------------------------------------------------------------------- */

/* Takes job. */
static int
answer_begin(trpi_web *web, trpi_web_connection *c, trpi_web_job *job)
{
    size_t limit = job->head.count + HEAD_BYTES_MORE;
    const char *end = c->keeps ? "\r\n" : "connection: close\r\n\r\n";
    trpi_assert(!c->answered && c->queue == NULL);
    trpi_web_job_add(c, job);
    if (c->asked) {
        (void)!web->lws->lws_rx_flow_control(c->wsi, 1); /* else it is not told to write */
    }
    c->asked = false;
    c->answered = true;
    trpi_web_token_end(web, c);
    if (trpi_buffer_append_text(&job->head, end, limit) != TRP_OK) {
        return -1;
    }
    timer_set(web, c);
    return web->lws->lws_callback_on_writable(c->wsi) >= 0 ? 0 : -1;
}

int
trpi_web_refuse(trpi_web *web, trpi_web_connection *c, const char *status)
{
    char reason[TRP_ENDPOINT_REASON_BYTES];
    const trp_endpoint_header headers[] = { { "http.status", status }, { "retry-after", "1" } };
    trpi_web_job *job = trpi_web_job_new(0);
    c->keeps = false;
    if (job == NULL || trpi_web_head_write(headers, strcmp(status, "503") == 0 ? 2 : 1, 0,
                                           &job->head, &job->bodiless, reason) != TRP_OK) {
        trpi_web_job_free(job);
        return -1;
    }
    if (strcmp(status, "426") == 0 &&
        trpi_buffer_append_text(&job->head, "upgrade: websocket\r\n", 4096) != TRP_OK) {
        trpi_web_job_free(job);
        return -1;
    }
    return answer_begin(web, c, job);
}

/* Write the next part. -1: close the connection. */
static int
answer_write(trpi_web *web, trpi_web_connection *c)
{
    trpi_web_job *job = c->queue;
    uint8_t *to = web->chunk + LWS_PRE;
    size_t count = 0;
    if (!c->answered) {
        return 0;
    }
    size_t body = job->bodiless || c->is_head ? 0 : trp_bytes_length(job->body);
    if (c->written < job->head.count) {
        count = job->head.count - c->written;
        count = count < TRPI_WEB_CHUNK_BYTES ? count : TRPI_WEB_CHUNK_BYTES;
        memcpy(to, job->head.data + c->written, count);
    }
    size_t at = c->written + count - job->head.count; /* of the body, if the head is done */
    if (c->written + count >= job->head.count && at < body) {
        size_t room = TRPI_WEB_CHUNK_BYTES - count, left = body - at;
        count += trp_bytes_copy_out(job->body, at, to + count, left < room ? left : room);
    }
    bool last = c->written + count == job->head.count + body;
    if (web->lws->lws_write(c->wsi, to, count, last ? LWS_WRITE_HTTP_FINAL : LWS_WRITE_HTTP) <
        (int)count) {
        return -1;
    }
    c->written += count;
    if (!last) {
        return web->lws->lws_callback_on_writable(c->wsi) >= 0 ? 0 : -1;
    }
    trpi_web_job_drop(c);
    trpi_web_exchange_end(web, c);
    if (!c->keeps) { /* web-http-H1 */
        return -1;
    }
    timer_set(web, c);
    return web->lws->lws_http_transaction_completed(c->wsi) != 0 ? -1 : 0;
}

void
trpi_web_http_job(trpi_web *web, trpi_web_connection *c, trpi_web_job *job)
{
    trpi_assert(web->asked > 0); /* web-http-H3 */
    web->asked--;
    if (c == NULL) {
        trpi_web_job_free(job);
        return;
    }
    if (answer_begin(web, c, job) != 0) {
        web->lws->lws_set_timeout(c->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
    }
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Tell the actor: all of the request is here. */
static int
request_ask(trpi_web *web, trpi_web_connection *c)
{
    if (web->asked >= web->pending_max) {
        return trpi_web_refuse(web, c, "503");
    }
    trpi_web_token_new(web, c);
    trpi_web_event *event = trpi_web_event_new(c->token);
    if (event == NULL) {
        return -1;
    }
    event->kind = TRPI_WEB_MESSAGE;
    event->body = c->body;
    c->body = TRP_BYTES_EMPTY;
    event->fields = c->fields;
    c->fields = NULL;
    c->asked = true;
    web->asked++;
    web->lws->lws_set_timeout(c->wsi, NO_PENDING_TIMEOUT, 0);
    trpi_web_timer_end(c); /* web-http-H2 */
    /* bytes or an end that the library does not take now would wake it without end */
    (void)!web->lws->lws_rx_flow_control(c->wsi, 0);
    trpi_web_tell(web, event);
    return 0;
}

/* Take all fields of the request that the library knows, and those that the URI names. False: there
 * are too many, or one is too long. */
static bool
fields_take(const trpi_web *web, trpi_web_connection *c)
{
    char name[TRP_ENDPOINT_HEADER_BYTES_MAX + 2], value[TRP_ENDPOINT_HEADER_BYTES_MAX + 1];
    for (int token = WSI_TOKEN_HOST; token < _WSI_TOKEN_CLIENT_SENT_PROTOCOLS; token++) {
        const char *known =
            (const char *)web->lws->lws_token_to_string((enum lws_token_indexes)token);
        size_t bytes = known == NULL ? 0 : strlen(known);
        if (bytes < 2 || known[0] == ':' || known[bytes - 1] != ':') {
            continue; /* a method, or of HTTP/2 */
        }
        (void)snprintf(name, sizeof name, "%.*s", (int)(bytes - 1), known);
        const trp_endpoint_header field = { name, "" };
        if ((trpi_http_field_is_sent(&field) || strcmp(name, "host") == 0) &&
            !trpi_web_token_add(web, c->fields, c->wsi, name, (enum lws_token_indexes)token)) {
            return false;
        }
    }
    const char *wanted;
    for (uint32_t i = 0; (wanted = trpi_uri_option(web->settings.uri, "header", i)) != NULL; i++) {
        int bytes = snprintf(name, sizeof name, "%s:", wanted);
        int length = web->lws->lws_hdr_custom_length(c->wsi, name, bytes);
        if (length > 0 &&
            ((size_t)length >= sizeof value ||
             web->lws->lws_hdr_custom_copy(c->wsi, value, sizeof value, name, bytes) < 0 ||
             !trpi_web_field_add(c->fields, wanted, value))) {
            return false;
        }
    }
    return true;
}

/* Has a field that tells where the body ends a space before its colon? Then it is another field to
 * the library, but perhaps not to a proxy before us (RFC 9112, 5.1). Two and more are not seen: the
 * library tells whether there is a field of a name, not which names there are, and reads the head
 * itself. */
static bool
framing_is_hidden(const trpi_web *web, const trpi_web_connection *c)
{
    static const char *const names[] = { "content-length :", "content-length\t:",
                                         "transfer-encoding :", "transfer-encoding\t:" };
    bool hidden = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        hidden |= web->lws->lws_hdr_custom_length(c->wsi, names[i], (int)strlen(names[i])) >= 0;
    }
    return hidden;
}

/* Read Content-Length: digits only. False: it is malformed, or there are two. */
static bool
length_take(const trpi_web *web, const trpi_web_connection *c, size_t *ret_bytes)
{
    char text[24];
    int length = web->lws->lws_hdr_total_length(c->wsi, WSI_TOKEN_HTTP_CONTENT_LENGTH);
    *ret_bytes = 0;
    if (length <= 0) {
        return true;
    }
    if (length > 15 ||
        web->lws->lws_hdr_copy(c->wsi, text, sizeof text, WSI_TOKEN_HTTP_CONTENT_LENGTH) < 0 ||
        text[0] == '\0' || text[strspn(text, "0123456789")] != '\0') {
        return false;
    }
    *ret_bytes = (size_t)strtoull(text, NULL, 10);
    return true;
}

/* Will the client send another request on this connection? */
static bool
client_keeps(const trpi_web *web, const trpi_web_connection *c)
{
    char text[64];
    if (web->lws->lws_hdr_copy(c->wsi, text, sizeof text, WSI_TOKEN_HTTP) < 0 ||
        strcasecmp(text, "HTTP/1.1") != 0) {
        return false;
    }
    return web->lws->lws_hdr_total_length(c->wsi, WSI_TOKEN_CONNECTION) <= 0 ||
           (web->lws->lws_hdr_copy(c->wsi, text, sizeof text, WSI_TOKEN_CONNECTION) >= 0 &&
            strcasecmp(text, "keep-alive") == 0);
}

static int
body_begin(trpi_web *web, trpi_web_connection *c, size_t wanted)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    if (trp_bytes_new(wanted, &c->body_data, &c->body) != TRP_OK) {
        return trpi_web_refuse(web, c, "503");
    }
    c->body_wanted = wanted;
    if (web->lws->lws_hdr_total_length(c->wsi, WSI_TOKEN_HTTP_EXPECT) > 0) {
        memcpy(web->chunk + LWS_PRE, go_on, sizeof go_on - 1);
        return web->lws->lws_write(c->wsi, web->chunk + LWS_PRE, sizeof go_on - 1, LWS_WRITE_HTTP) <
                       0
                   ? -1
                   : 0;
    }
    return 0;
}

/* The headers are here. web-http-H1 */
static int
request_begin(trpi_web *web, trpi_web_connection *c, const char *in, size_t length)
{
    char path[TRP_ENDPOINT_HEADER_BYTES_MAX + 1];
    size_t wanted = 0;
    const char *method = trpi_lws_method(web->lws, c->wsi);
    if (c->asked || c->answered) {
        return -1;
    }
    c->is_head = strcmp(method, "HEAD") == 0;
    c->keeps = client_keeps(web, c);
    c->fields = trpi_web_fields_new(web);
    if (c->fields == NULL) {
        return -1;
    }
    if (length >= sizeof path) {
        return trpi_web_refuse(web, c, "431");
    }
    memcpy(path, in, length);
    path[length] = '\0';
    if (!trpi_web_path_fits(&web->settings, path)) {
        return trpi_web_refuse(web, c, "404");
    }
    if (!trpi_web_field_add(c->fields, "http.method", method) ||
        !trpi_web_field_add(c->fields, "http.path", path) ||
        !trpi_web_origin_add(web, c->fields, c->wsi, "http.query") || !fields_take(web, c)) {
        return trpi_web_refuse(web, c, "431");
    }
    if (web->lws->lws_hdr_total_length(c->wsi, WSI_TOKEN_HTTP_TRANSFER_ENCODING) > 0) {
        return trpi_web_refuse(web, c, "411"); /* web-http-H1: the library reads no chunks */
    }
    if (framing_is_hidden(web, c) || !length_take(web, c, &wanted)) {
        return trpi_web_refuse(web, c, "400");
    }
    if (web->lws->lws_hdr_total_length(c->wsi, WSI_TOKEN_HTTP_CONTENT_LENGTH) <= 0 &&
        (strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 ||
         strcmp(method, "PATCH") == 0)) {
        c->keeps = false; /* web-http-H1: the library takes all that follows for the body */
    }
    if (wanted > web->message_bytes_max) {
        return trpi_web_refuse(web, c, "413");
    }
    if (web->asked >= web->pending_max) {
        return trpi_web_refuse(web, c, "503");
    }
    return wanted > 0 ? body_begin(web, c, wanted) : request_ask(web, c);
}

static int
body_take(trpi_web_connection *c, const void *bytes, size_t count)
{
    if (c->asked || c->answered) {
        return 0; /* it was refused, or has none: then these bytes are nothing's */
    }
    if (c->body_data == NULL || count > c->body_wanted - c->body_bytes) {
        return -1;
    }
    memcpy(c->body_data + c->body_bytes, bytes, count);
    c->body_bytes += count;
    return 0;
}

int
trpi_web_http_callback(trpi_web *web, trpi_web_connection *c, enum lws_callback_reasons reason,
                       const void *in, size_t length)
{
    switch (reason) {
    case LWS_CALLBACK_HTTP:
        return request_begin(web, c, in, length);
    case LWS_CALLBACK_HTTP_BODY:
        return body_take(c, in, length);
    case LWS_CALLBACK_HTTP_BODY_COMPLETION:
        if (c->asked || c->answered) {
            return 0;
        }
        return c->body_data != NULL && c->body_bytes == c->body_wanted ? request_ask(web, c) : -1;
    case LWS_CALLBACK_HTTP_WRITEABLE:
        return answer_write(web, c);
    case LWS_CALLBACK_TIMER: /* web-http-H2 */
        return c->timed ? -1 : 0;
    case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
    case LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION:
        return -1; /* HTTP/1.1 and nothing else */
    default:
        return 0;
    }
}

#endif
