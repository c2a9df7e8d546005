/* web_client.c - the client end of a WebSocket, on the thread of an endpoint.
 *
 * States.  none --send--> connecting --> open --send--> written --reply--> open
 *          An error or the end of the connection fails the send that is on its way, if there is
 *          one; the next send connects again.
 * Must hold.
 *   web-client-W1  Each send is told once: written (oneway), replied to, or failed.
 *   web-client-W2  A send that is late ends its connection, so that no later one gets its reply.
 *   web-client-W3  The server's certificate holds and names the host of the URI, or nothing is
 *       sent: TRP_EPERM.                                                     (trpi_tls_dialer_new)
 * Limits.  One send at a time, with timeout_ms for connecting, writing and the reply; the name of
 *          the host is resolved on this thread.
 * Tests.   tests/unit/endpoint/web_socket_test.c
 * Sources. CAM-01, CAM-05; RFC 6455
 */
#include "endpoint/web.h"

#ifdef HAVE_LIBWEBSOCKETS

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "tls/tls.h"

/* The send that is on its way; 0: none. */
static uint64_t
send_current(const trpi_web *web)
{
    const trpi_web_connection *c = web->connections[0];
    return web->awaited != 0               ? web->awaited
           : web->unsent != NULL           ? web->unsent->token
           : c != NULL && c->queue != NULL ? c->queue->token
                                           : 0;
}

/* Tell the end of the send that was on its way, by what was made with it. */
static void
send_end(trpi_web *web, trpi_web_kind kind, trp_err err, const char *reason)
{
    trpi_web_event *event = web->end;
    trpi_assert(event != NULL);
    web->end = NULL;
    event->kind = kind;
    event->err = err;
    (void)snprintf(event->reason, sizeof event->reason, "%s", reason);
    trpi_web_tell(web, event);
}

/* web-client-W1 */
static void
send_fail(trpi_web *web, trp_err err, const char *reason)
{
    trpi_web_connection *c = web->connections[0];
    uint64_t token = send_current(web);
    web->awaited = 0;
    trpi_web_job_free(web->unsent);
    web->unsent = NULL;
    if (c != NULL && c->queue != NULL) {
        trpi_web_job_drop(c);
    }
    if (token != 0) {
        send_end(web, TRPI_WEB_FAILED, err, reason);
    }
}

static void
connection_free(trpi_web *web)
{
    trpi_web_connection *c = web->connections[0];
    if (c != NULL) {
        web->connections[0] = NULL;
        web->paused -= c->paused ? 1 : 0;
        while (c->queue != NULL) {
            trpi_web_job_drop(c);
        }
        trpi_buffer_fini(&c->in);
        trpi_free(c->fields);
        trpi_free(c);
    }
}

static trpi_web_connection *
connection_new(trpi_web *web)
{
    trpi_web_connection *c = trpi_alloc(sizeof *c);
    trpi_assert(web->connections[0] == NULL);
    if (c != NULL) {
        c->queue_last = &c->queue;
        c->fields = trpi_alloc(sizeof *c->fields);
        web->connections[0] = c;
        if (c->fields == NULL) {
            connection_free(web);
            c = NULL;
        }
    }
    return c;
}

/* Keep why there is no connection: the library's text, or what is wrong with the certificate. */
static void
failure_keep(trpi_web *web, const char *text, size_t length)
{
    const char *refused = web->dialer != NULL ? trpi_tls_dialer_failure(web->dialer) : NULL;
    web->refused = refused != NULL;
    if (refused != NULL) {
        (void)snprintf(web->failure, sizeof web->failure, "its certificate: %.100s", refused);
    } else {
        (void)snprintf(web->failure, sizeof web->failure, "%.*s", (int)length,
                       length > 0 ? text : "");
    }
}

static void
connect_begin(trpi_web *web)
{
    const trpi_web_settings *s = &web->settings;
    char target[TRPI_WEB_TARGET_BYTES], host[TRPI_HOST_BYTES_MAX + 16], failure[192];
    bool is_v6 = strchr(s->host, ':') != NULL;
    trpi_web_connection *c = connection_new(web);
    if (c == NULL) {
        send_fail(web, TRP_ENOMEM, "no memory for a connection");
        return;
    }
    trpi_web_target_write(s, target);
    (void)snprintf(host, sizeof host, is_v6 ? "[%s]:%u" : "%s:%u", s->host, s->port);
    const struct lws_client_connect_info info = { .context = web->context,
                                                  .vhost = web->vhost,
                                                  .address = s->host,
                                                  .port = s->port,
                                                  .path = target,
                                                  .host = host,
                                                  .ssl_connection = s->tls ? LCCSCF_USE_SSL : 0,
                                                  .local_protocol_name = "troupe-endpoint",
                                                  .ietf_version_or_minus_one = -1,
                                                  .retry_and_idle_policy = &web->idle,
                                                  .alpn = "http/1.1",
                                                  .opaque_user_data = c };
    web->failure[0] = '\0';
    web->refused = false;
    struct lws *wsi = web->lws->lws_client_connect_via_info(&info);
    if (wsi == NULL) {
        (void)snprintf(failure, sizeof failure, "cannot connect to %.70s: %.80s", host,
                       web->failure[0] != '\0' ? web->failure : "no such host, or no connection");
        send_fail(web, web->refused ? TRP_EPERM : TRP_EIO, failure);
        connection_free(web);
        return;
    }
    if (web->connections[0] != NULL) {
        c->wsi = wsi;
        trpi_web_timer_set(web, c, web->timeout_ms);
    }
}

/* Send what waits, on an open connection. */
static int
send_begin(trpi_web *web, trpi_web_connection *c)
{
    if (web->unsent == NULL) {
        trpi_web_timer_end(c);
        return 0;
    }
    trpi_web_job *job = web->unsent;
    web->unsent = NULL;
    trpi_web_job_add(c, job);
    trpi_web_timer_set(web, c, web->timeout_ms);
    return web->lws->lws_callback_on_writable(c->wsi) >= 0 ? 0 : -1;
}

void
trpi_web_client_job(trpi_web *web, trpi_web_job *job)
{
    trpi_web_connection *c = web->connections[0];
    trpi_assert(send_current(web) == 0 && job->end != NULL);
    trpi_web_event_free(web->end); /* of one that was replied to */
    web->end = job->end;
    job->end = NULL;
    web->unsent = job;
    if (c == NULL) {
        connect_begin(web);
    } else if (c->is_socket && send_begin(web, c) != 0) {
        web->lws->lws_set_timeout(c->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
    } /* else it is closing: the end of that connection connects again */
}

static int
client_write(trpi_web *web, trpi_web_connection *c)
{
    if (c->queue == NULL) {
        return 0;
    }
    if (trpi_web_message_write(web, c) != 0) {
        return -1;
    }
    bool awaits = c->queue->awaits;
    uint64_t token = c->queue->token;
    trpi_web_job_drop(c);
    web->awaited = awaits ? token : 0;
    if (!awaits) {
        trpi_web_timer_end(c);
        send_end(web, TRPI_WEB_WRITTEN, TRP_OK, "");
    }
    return 0;
}

static int
client_read(trpi_web *web, trpi_web_connection *c, const void *in, size_t length)
{
    bool whole;
    if (trpi_web_message_take(web, c, in, length, &whole) != 0) {
        c->is_socket = false;
        send_fail(web, TRP_EMSGSIZE, "the reply is longer than message_bytes_max");
        return -1;
    }
    if (!whole) {
        return 0;
    }
    uint64_t token = web->awaited;
    web->awaited = 0;
    if (token != 0) {
        trpi_web_timer_end(c);
    }
    int told = trpi_web_message_tell(web, c, token);
    if (told != 0 && token != 0) {
        send_end(web, TRPI_WEB_FAILED, TRP_ENOMEM, "no memory for the reply");
    }
    return told;
}

static int
client_timer(trpi_web *web, trpi_web_connection *c)
{
    if (c->timed && send_current(web) != 0) { /* web-client-W2 */
        c->is_socket = false;
        send_fail(web, TRP_ETIMEDOUT, "no connection or no reply in time");
        return -1;
    }
    return 0;
}

int
trpi_web_client_callback(trpi_web *web, struct lws *wsi, enum lws_callback_reasons reason, void *in,
                         size_t length)
{
    trpi_web_connection *c = web->lws->lws_get_opaque_user_data(wsi);
    char failure[192];
    if (c == NULL || c != web->connections[0]) {
        return 0; /* of the context, or it is over */
    }
    switch (reason) {
    case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
        failure_keep(web, in, in != NULL ? length : 0);
        if (c->wsi != NULL) { /* else connect_begin() tells it */
            (void)snprintf(failure, sizeof failure, "cannot connect to %.60s:%u: %.80s",
                           web->settings.host, web->settings.port, web->failure);
            send_fail(web, web->refused ? TRP_EPERM : TRP_EIO, failure);
        }
        return 0;
    case LWS_CALLBACK_CLIENT_ESTABLISHED:
        c->wsi = wsi;
        c->is_socket = true;
        return send_begin(web, c);
    case LWS_CALLBACK_CLIENT_WRITEABLE:
        return client_write(web, c);
    case LWS_CALLBACK_CLIENT_RECEIVE:
        return client_read(web, c, in, length);
    case LWS_CALLBACK_TIMER:
        return client_timer(web, c);
    case LWS_CALLBACK_CLIENT_CLOSED:
        if (c->is_socket) {
            c->is_socket = false;
            send_fail(web, TRP_EIO,
                      "the peer has closed the connection; the message may have come");
        }
        return 0;
    case LWS_CALLBACK_WSI_DESTROY:
        if (c->wsi == NULL) {
            return 0; /* connect_begin() frees it */
        }
        connection_free(web);
        if (web->unsent != NULL && !atomic_load_explicit(&web->stopping, memory_order_acquire)) {
            connect_begin(web);
        }
        return 0;
    default:
        return 0;
    }
}

#endif
