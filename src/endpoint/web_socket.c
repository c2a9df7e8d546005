/* web_socket.c - messages of WebSockets, on the thread of an endpoint that serves them.
 *
 * States.  (open) --upgrade--> WebSocket --message--> told --reply--> queued --written-->
 *          A plain request is refused with 426, another path with 404, another origin with 403.
 * Must hold.
 *   web-socket-S1  A message is kept up to message_bytes_max; one above closes the connection
 *       with 1009.                                                   (trpi_web_message_take)
 *   web-socket-S2  A connection for which pending_max replies wait, or more than
 *       TRP_ENDPOINT_UNSENT_BYTES_MAX of them, is not read, and one that takes none of them for
 *       `idle` is closed. Replies to messages that were read before are kept, too: at most two
 *       times pending_max of the endpoint.                                       (queue_is_full)
 *   web-socket-S3  Text is UTF-8 and frames are whole: libwebsockets checks, and closes. (It takes
 *       frames that are not masked, which harm no server.)
 * Limits.  pending_max, TRP_ENDPOINT_UNSENT_BYTES_MAX, message_bytes_max, connections, idle.
 * Tests.   tests/unit/endpoint/web_socket_test.c
 * Sources. CAM-01; RFC 6455
 */
#include "endpoint/web.h"

#ifdef HAVE_LIBWEBSOCKETS

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/assert.h"

/* ---- messages, of both ends ------------------------------------------------------------------ */

int
trpi_web_message_take(trpi_web *web, trpi_web_connection *c, const void *in, size_t length,
                      bool *ret_whole)
{
    static unsigned char why[] = "longer than message_bytes_max";
    const trpi_lws *lws = web->lws;
    *ret_whole = false;
    if (lws->lws_is_first_fragment(c->wsi) != 0) {
        trpi_buffer_clear(&c->in);
        c->text = lws->lws_frame_is_binary(c->wsi) == 0;
    }
    if (trpi_buffer_append(&c->in, in, length, web->message_bytes_max) != TRP_OK) {
        lws->lws_close_reason(c->wsi, LWS_CLOSE_STATUS_MESSAGE_TOO_LARGE, why, sizeof why - 1);
        return -1;
    }
    *ret_whole =
        lws->lws_remaining_packet_payload(c->wsi) == 0 && lws->lws_is_final_fragment(c->wsi) != 0;
    return 0;
}

static void
reading_pause(trpi_web *web, trpi_web_connection *c)
{
    if (!c->paused) {
        c->paused = true;
        web->paused++;
        (void)!web->lws->lws_rx_flow_control(c->wsi, 0);
    }
}

int
trpi_web_message_tell(trpi_web *web, trpi_web_connection *c, uint64_t token)
{
    trpi_web_event *event = trpi_web_event_new(token);
    if (event == NULL) {
        return -1;
    }
    event->kind = TRPI_WEB_MESSAGE;
    event->fields = trpi_web_fields_dup(c->fields, "ws.kind", c->text ? "text" : "binary");
    if (event->fields == NULL ||
        (c->in.count > 0 && trp_bytes_copy(c->in.data, c->in.count, &event->body) != TRP_OK)) {
        trpi_web_event_free(event);
        return -1;
    }
    trpi_buffer_fini(&c->in); /* a large message is not a connection's for good */
    trpi_web_tell(web, event);
    if (trpi_web_is_full(web)) { /* web-loop-L4 */
        reading_pause(web, c);
    }
    return 0;
}

int
trpi_web_message_write(trpi_web *web, trpi_web_connection *c)
{
    const trpi_web_job *job = c->queue;
    bool text = job->frame == TRPI_WEB_TEXT;
    size_t bytes = trp_bytes_length(job->body);
    uint8_t *data = bytes <= TRPI_WEB_CHUNK_BYTES ? web->chunk : trpi_alloc(LWS_PRE + bytes);
    if (data == NULL) {
        return -1;
    }
    (void)trp_bytes_copy_out(job->body, 0, data + LWS_PRE, bytes);
    /* what the socket does not take at once the library keeps */
    int wrote = web->lws->lws_write(c->wsi, data + LWS_PRE, bytes,
                                    text ? LWS_WRITE_TEXT : LWS_WRITE_BINARY);
    if (data != web->chunk) {
        trpi_free(data);
    }
    return wrote < (int)bytes ? -1 : 0;
}

/* web-socket-S2 */
static bool
queue_is_full(const trpi_web *web, const trpi_web_connection *c)
{
    return c->queue_count >= web->pending_max || c->queue_bytes > TRP_ENDPOINT_UNSENT_BYTES_MAX;
}

void
trpi_web_sockets_resume(trpi_web *web)
{
    for (uint32_t i = 0; i < web->settings.connections; i++) {
        trpi_web_connection *c = web->connections[i];
        if (c != NULL && c->paused && !queue_is_full(web, c)) {
            c->paused = false;
            web->paused--;
            (void)!web->lws->lws_rx_flow_control(c->wsi, 1);
        }
    }
}

/* ---- the server ------------------------------------------------------------------------------ */

void
trpi_web_socket_job(trpi_web *web, trpi_web_connection *c, trpi_web_job *job)
{
    if (c == NULL || !job->answers) {
        trpi_web_job_free(job);
        return;
    }
    trpi_web_job_add(c, job);
    if (c->queue_count == 1) {
        trpi_web_timer_set(web, c, web->settings.idle_ms);
    }
    if (queue_is_full(web, c)) {
        reading_pause(web, c);
    }
    if (web->lws->lws_callback_on_writable(c->wsi) < 0) {
        web->lws->lws_set_timeout(c->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
    }
}

static int
queue_write(trpi_web *web, trpi_web_connection *c)
{
    if (c->queue == NULL) {
        return 0;
    }
    if (trpi_web_message_write(web, c) != 0) {
        return -1;
    }
    trpi_web_job_drop(c);
    if (c->paused && c->queue_count <= web->pending_max / 2 &&
        c->queue_bytes <= TRP_ENDPOINT_UNSENT_BYTES_MAX / 2 && !trpi_web_is_full(web)) {
        trpi_web_sockets_resume(web);
    }
    if (c->queue == NULL) {
        trpi_web_timer_end(c);
        return 0;
    }
    trpi_web_timer_set(web, c, web->settings.idle_ms);
    return web->lws->lws_callback_on_writable(c->wsi) >= 0 ? 0 : -1;
}

/* May a page of this origin connect? Without the option any may. */
static bool
origin_is_allowed(const trpi_web *web, struct lws *wsi)
{
    char origin[TRP_ENDPOINT_HEADER_BYTES_MAX + 1];
    const char *allowed = trpi_uri_option(web->settings.uri, "origin", 0);
    if (allowed == NULL || web->lws->lws_hdr_total_length(wsi, WSI_TOKEN_ORIGIN) <= 0) {
        return true; /* a program, not a page, sends none */
    }
    if (web->lws->lws_hdr_copy(wsi, origin, sizeof origin, WSI_TOKEN_ORIGIN) < 0) {
        return false;
    }
    for (uint32_t i = 0; allowed != NULL && strcmp(allowed, origin) != 0;) {
        allowed = trpi_uri_option(web->settings.uri, "origin", ++i);
    }
    return allowed != NULL;
}

/* Hang up, after a line that says why. */
static int
upgrade_refuse(trpi_web *web, trpi_web_connection *c, const char *line)
{
    int bytes = snprintf((char *)web->chunk + LWS_PRE, 256,
                         "HTTP/1.1 %s\r\ncontent-length: 0\r\nconnection: close\r\n\r\n", line);
    (void)!web->lws->lws_write(c->wsi, web->chunk + LWS_PRE, (size_t)bytes, LWS_WRITE_HTTP);
    return -1;
}

static int
upgrade_judge(trpi_web *web, trpi_web_connection *c, const char *to)
{
    char path[TRP_ENDPOINT_HEADER_BYTES_MAX + 1];
    if (strcasecmp(to, "websocket") != 0 || c->fields != NULL) {
        return -1;
    }
    c->fields = trpi_web_fields_new(web);
    if (c->fields == NULL) {
        return -1;
    }
    if (web->lws->lws_hdr_total_length(c->wsi, WSI_TOKEN_HTTP_CONTENT_LENGTH) > 0 ||
        web->lws->lws_hdr_total_length(c->wsi, WSI_TOKEN_HTTP_TRANSFER_ENCODING) > 0) {
        return upgrade_refuse(web, c, "400 Bad Request"); /* its body would be read as frames */
    }
    if (web->lws->lws_hdr_copy(c->wsi, path, sizeof path, WSI_TOKEN_GET_URI) <= 0 ||
        !trpi_web_path_fits(&web->settings, path)) {
        return upgrade_refuse(web, c, "404 Not Found");
    }
    if (!origin_is_allowed(web, c->wsi)) {
        return upgrade_refuse(web, c, "403 Forbidden");
    }
    (void)web->lws->lws_get_peer_simple(c->wsi, c->peer, sizeof c->peer);
    if (!trpi_web_field_add(c->fields, "ws.path", path) ||
        !trpi_web_field_add(c->fields, "ws.peer", c->peer) ||
        !trpi_web_origin_add(web, c->fields, c->wsi, "ws.query")) {
        return upgrade_refuse(web, c, "431 Request Header Fields Too Large");
    }
    return 0;
}

static int
socket_begin(trpi_web *web, trpi_web_connection *c)
{
    trpi_web_fields *exact = c->fields != NULL ? trpi_web_fields_dup(c->fields, NULL, NULL) : NULL;
    if (exact == NULL) {
        return -1;
    }
    trpi_free(c->fields);
    c->fields = exact;
    c->is_socket = true;
    trpi_web_token_new(web, c);
    trpi_web_timer_end(c);
    return 0;
}

static int
message_come(trpi_web *web, trpi_web_connection *c, const void *in, size_t length)
{
    bool whole;
    if (trpi_web_message_take(web, c, in, length, &whole) != 0) {
        return -1;
    }
    return whole ? trpi_web_message_tell(web, c, c->token | (c->text ? TRPI_WEB_TOKEN_TEXT : 0))
                 : 0;
}

int
trpi_web_socket_callback(trpi_web *web, trpi_web_connection *c, enum lws_callback_reasons reason,
                         void *in, size_t length)
{
    switch (reason) {
    case LWS_CALLBACK_HTTP:
        return c->answered ? -1 : trpi_web_refuse(web, c, "426");
    case LWS_CALLBACK_HTTP_WRITEABLE:
    case LWS_CALLBACK_HTTP_BODY:
    case LWS_CALLBACK_HTTP_BODY_COMPLETION:
        return trpi_web_http_callback(web, c, reason, in, length); /* it is refused */
    case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
        return upgrade_judge(web, c, in);
    case LWS_CALLBACK_ESTABLISHED:
        return socket_begin(web, c);
    case LWS_CALLBACK_RECEIVE:
        return c->is_socket ? message_come(web, c, in, length) : -1;
    case LWS_CALLBACK_SERVER_WRITEABLE:
        return queue_write(web, c);
    case LWS_CALLBACK_TIMER: /* web-socket-S2, or no upgrade has come */
        return c->timed ? -1 : 0;
    default:
        return 0;
    }
}

#endif
