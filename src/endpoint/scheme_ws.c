/* scheme_ws.c - ws: and wss:, WebSockets. Consumed from: a server, each message of which is one to
 * the handler, whose reply, if it acknowledges, goes to the peer that sent it. Produced to: a
 * client, for whose message the next one of the server is the reply.
 *
 * Must hold.
 *   scheme-ws-W1  A word of the thread about a send has its turn; with another it is late, and
 *       changes nothing.
 *   scheme-ws-W2  At most pending_max messages of a server that nobody had asked for are with the
 *       handler; then no more are taken from the thread, which then reads no more. A word about
 *       a send is taken past them.                                           (client_receive)
 * Limits.  Those of web_socket.c and web_client.c.
 * Tests.   tests/unit/endpoint/web_socket_test.c
 * Sources. CAM-01, -02, -03, -05
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "endpoint/endpoint.h"
#include "endpoint/web.h"

static trp_err
server_check(const trpi_uri *uri, char ret_reason[TRP_ENDPOINT_REASON_BYTES])
{
    trpi_web_settings settings;
    return trpi_web_settings_read(uri, false, &settings, ret_reason);
}

/* The kind of frame that a header asks for; without it: `otherwise`. */
static trpi_web_frame
kind_of(const trpi_endpoint_send *send, trpi_web_frame otherwise)
{
    const trp_endpoint_message as = { .headers_count = send->headers_count,
                                      .headers = send->headers };
    const char *kind = trp_endpoint_header_get(&as, "ws.kind");
    return kind == NULL ? otherwise : strcmp(kind, "text") == 0 ? TRPI_WEB_TEXT : TRPI_WEB_BINARY;
}

/* ---- the server ------------------------------------------------------------------------------ */

static trp_err
server_consume(trp_ctx *ctx, trpi_endpoint *e)
{
    trpi_web *web;
    trp_err err = trpi_web_open(ctx, e, TRPI_WEB_SOCKET, &web);
    if (err == TRP_OK) {
        e->state = web;
        trpi_web_where(web, e->reason);
    }
    return err;
}

static void
server_stop(trp_ctx *ctx, trpi_endpoint *e)
{
    (void)ctx;
    trpi_web_close(e->state);
    e->state = NULL;
}

static bool
server_poll(trp_ctx *ctx, trpi_endpoint *e)
{
    return trpi_web_poll(ctx, e, e->state);
}

static trp_err
server_settle(trp_ctx *ctx, trpi_endpoint *e, uint64_t token, trp_err err,
              const trpi_endpoint_send *reply)
{
    bool text = (token & TRPI_WEB_TOKEN_TEXT) != 0;
    token &= ~TRPI_WEB_TOKEN_TEXT;
    if (err != TRP_OK || reply == NULL) {
        return TRP_OK; /* the peer is told nothing */
    }
    if (!trpi_web_is_live(e->state, token)) {
        (void)snprintf(e->reason, sizeof e->reason, "the peer has closed the connection");
        return TRP_ECLOSED;
    }
    trpi_web_job *job = trpi_web_job_new(token);
    if (job == NULL) {
        trp_fail(ctx, TRP_ENOMEM, "no memory for a message");
    }
    job->answers = true;
    job->frame = kind_of(reply, text ? TRPI_WEB_TEXT : TRPI_WEB_BINARY);
    job->body = trp_bytes_ref(reply->body);
    trpi_web_post(e->state, job);
    return TRP_OK;
}

/* ---- the client ------------------------------------------------------------------------------ */

typedef struct client {
    trpi_web *web;
    trpi_endpoint_back *back;
    uint64_t turn; /* of the send that is on its way, or was last */
    bool sending;
    uint32_t birth;   /* stands in what a handler's message says when it is freed */
    uint32_t unfreed; /* scheme-ws-W2 */
    trpi_web_frame frame;
} client;

static trp_err
client_check(const trpi_uri *uri, char ret_reason[TRP_ENDPOINT_REASON_BYTES])
{
    trpi_web_settings settings;
    return trpi_web_settings_read(uri, true, &settings, ret_reason);
}

static trp_err
client_produce(trp_ctx *ctx, trpi_endpoint *e)
{
    trpi_web_settings settings;
    trp_err err = trpi_web_settings_read(&e->uri, true, &settings, e->reason);
    client *c = trpi_alloc(sizeof *c);
    e->state = c;
    if (c == NULL || (c->back = trpi_endpoint_back_new(ctx)) == NULL) {
        return TRP_ENOMEM;
    }
    c->turn = trp_now_ns(ctx); /* not one of before a restart */
    c->birth = (uint32_t)c->turn;
    c->frame = err == TRP_OK && settings.text != 0 ? TRPI_WEB_TEXT : TRPI_WEB_BINARY;
    return err == TRP_OK ? trpi_web_open(ctx, e, TRPI_WEB_CLIENT, &c->web) : err;
}

static void
client_stop(trp_ctx *ctx, trpi_endpoint *e)
{
    client *c = e->state;
    (void)ctx;
    if (c != NULL) {
        trpi_web_close(c->web);
        trpi_endpoint_back_end(c->back);
        trpi_free(c);
        e->state = NULL;
    }
}

static void
client_send(trp_ctx *ctx, trpi_endpoint *e, uint32_t slot, const trpi_endpoint_send *send)
{
    client *c = e->state;
    trpi_web_job *job = trpi_web_job_new(++c->turn);
    trpi_assert(slot == 0 && !c->sending);
    if (job == NULL || (job->end = trpi_web_event_new(c->turn)) == NULL) {
        trpi_web_job_free(job);
        trpi_producer_finish(ctx, e, slot, TRP_ENOMEM, "no memory for a message", NULL, NULL, 0);
        return;
    }
    job->answers = true;
    job->awaits = e->args.options.oneway == 0;
    job->frame = kind_of(send, c->frame);
    job->body = trp_bytes_ref(send->body);
    c->sending = true;
    trpi_web_post(c->web, job);
}

/* A message that nobody had asked for. */
static void
message_tell(trp_ctx *ctx, trpi_endpoint *e, trpi_web_event *event)
{
    client *c = e->state;
    trp_msg *msg;
    if (trp_ref_is_none(e->args.options.handler)) {
        return;
    }
    trp_bytes body = event->body;
    event->body = TRP_BYTES_EMPTY;
    trp_err err =
        trpi_endpoint_message_new(e, 0, 0, body, event->fields->list, event->fields->count, c->back,
                                  (trpi_endpoint_slot){ 0, c->birth }, &msg);
    if (err != TRP_OK) {
        trpi_endpoint_error_tell(ctx, e, e->args.options.handler, 0, 0, err,
                                 "a message was not made, or not transformed");
        return;
    }
    c->unfreed++;
    trp_send(ctx, e->args.options.handler, msg);
}

static void
event_handle(trp_ctx *ctx, trpi_endpoint *e, trpi_web_event *event)
{
    client *c = e->state;
    bool current = c->sending && event->token == c->turn; /* scheme-ws-W1 */
    c->sending = current ? false : c->sending;
    if (current && event->kind == TRPI_WEB_MESSAGE) {
        trpi_producer_finish(ctx, e, 0, TRP_OK, "", &event->body, event->fields->list,
                             event->fields->count);
    } else if (current) {
        trpi_producer_finish(ctx, e, 0, event->err, event->reason, NULL, NULL, 0);
    } else if (event->kind == TRPI_WEB_MESSAGE && event->token == 0) {
        message_tell(ctx, e, event);
    }
    trpi_web_event_free(event);
}

static bool
client_receive(trp_ctx *ctx, trpi_endpoint *e, const trp_msg *msg)
{
    client *c = e->state;
    trpi_web_event *event;
    if (trp_msg_is(msg, &trpi_endpoint_freed_type)) {
        const trpi_endpoint_slot *at = trp_msg_payload(msg);
        c->unfreed -= at->turn == c->birth && c->unfreed > 0 ? 1 : 0;
    } else if (!trp_msg_is(msg, &trpi_endpoint_poll_type)) {
        return false;
    }
    trpi_web_check(ctx, c->web);
    while ((event = trpi_web_take(c->web, c->unfreed >= e->args.options.pending_max)) != NULL) {
        event_handle(ctx, e, event);
    }
    return true;
}

static const char *const ws_server_options[] = { "connections", "headers", "idle",
                                                 "prefix",      "origin",  NULL };
static const char *const wss_server_options[] = { "connections", "headers", "idle",
                                                  "prefix",      "origin",  "cert",
                                                  "key",         "ca",      NULL };
static const char *const ws_client_options[] = { "query", "text", "idle", NULL };
static const char *const wss_client_options[] = {
    "query", "text", "idle", "cert", "key", "ca", NULL
};
const trpi_scheme trpi_scheme_ws_server = { .name = "ws",
                                            .consumer_options = ws_server_options,
                                            .check = server_check,
                                            .consume = server_consume,
                                            .stop = server_stop,
                                            .poll = server_poll,
                                            .settle = server_settle };
const trpi_scheme trpi_scheme_wss_server = { .name = "wss",
                                             .consumer_options = wss_server_options,
                                             .check = server_check,
                                             .consume = server_consume,
                                             .stop = server_stop,
                                             .poll = server_poll,
                                             .settle = server_settle };
const trpi_scheme trpi_scheme_ws_client = { .name = "ws",
                                            .producer_options = ws_client_options,
                                            .check = client_check,
                                            .produce = client_produce,
                                            .stop = client_stop,
                                            .send = client_send,
                                            .receive = client_receive };
const trpi_scheme trpi_scheme_wss_client = { .name = "wss",
                                             .producer_options = wss_client_options,
                                             .check = client_check,
                                             .produce = client_produce,
                                             .stop = client_stop,
                                             .send = client_send,
                                             .receive = client_receive };
