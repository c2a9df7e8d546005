/* scheme_tcp.c - tcp:HOST:PORT, messages from the peers of a port.
 *
 * Why.     A peer is a stranger: it sends slowly, too much, half of something, or nothing at all.
 * Shape.   listener, connections (troupe/io.h) -> pieces -> a stream for each -> deliver()
 *          reply -> frame -> the connection that the message came by
 *          Pieces that wait for room count as unhandled bytes of their connection.
 * Must hold.
 *   scheme-tcp-T1  A connection has its place until all that came by it was delivered, or is given
 *       up; it is closed when the peer has ended and all its messages are settled.
 *   scheme-tcp-T2  A peer whose stream is broken, or whose message has failed, sees its connection
 *       reset: no later reply is taken for that of an earlier message.
 * Limits.  connections; idle; frame-timeout; message_bytes_max; REPLIES_BYTES not read by the peer.
 * Not here. The producer: scheme_tcp_out.c.
 * Tests.   tests/unit/endpoint/tcp_test.c
 * Sources. CAM-01, CAM-02, CAM-03
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <troupe/io.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "endpoint/endpoint.h"
#include "endpoint/framing.h"

enum {
    CONNECTIONS = 256,
    CONNECTIONS_MOST = 4096,
    IDLE_MS = 600000,
    FRAME_MS = 60000,
    UNHANDLED_BYTES = 65536,
    LOOK_MS_MOST = 1000
};
#define REPLIES_BYTES (4u << 20)

typedef struct peer {
    trp_ref connection;
    uint64_t number;
    trpi_frames *stream;
    uint64_t active_ns, held_ns; /* last bytes; half a frame since, 0: there is none */
    uint32_t open;               /* messages that are not settled */
    bool wants;                  /* its stream may have messages */
    bool full;                   /* it reads none of its replies */
    bool ended, closing, gone;   /* by the peer; by us; there is no connection any more */
    char address[TRP_IO_ADDRESS_BYTES_MAX];
} peer;

typedef struct tcp {
    trpi_framing framing;
    uint32_t connections_max, idle_ms, frame_ms, look_ms;
    const char *address;
    peer **peers;
    uint32_t count, next;
    uint64_t numbers, looked_ns;
    bool refuses; /* the last one was turned away */
} tcp;

static trp_err
tcp_read(const trpi_uri *uri, tcp *t, char reason[TRP_ENDPOINT_REASON_BYTES])
{
    t->connections_max = CONNECTIONS;
    t->idle_ms = IDLE_MS;
    t->frame_ms = FRAME_MS;
    trp_err err = trpi_uri_address(uri, &t->address, reason);
    err = err == TRP_OK ? trpi_framing_read(uri, &t->framing, reason) : err;
    err = err != TRP_OK ? err
                        : trpi_uri_number(uri, "connections", 1, CONNECTIONS_MOST,
                                          &t->connections_max, reason);
    err = err == TRP_OK ? trpi_uri_number(uri, "idle", 1, INT32_MAX, &t->idle_ms, reason) : err;
    err = err != TRP_OK ? err
                        : trpi_uri_number(uri, "frame-timeout", 1, INT32_MAX, &t->frame_ms, reason);
    return err;
}

static trp_err
tcp_check(const trpi_uri *uri, char ret_reason[TRP_ENDPOINT_REASON_BYTES])
{
    tcp t;
    return tcp_read(uri, &t, ret_reason);
}

static trp_err
tcp_consume(trp_ctx *ctx, trpi_endpoint *e)
{
    tcp *t = trpi_alloc(sizeof *t);
    if (t == NULL) {
        return TRP_ENOMEM;
    }
    e->state = t;
    trp_err err = tcp_read(&e->uri, t, e->reason);
    if (err != TRP_OK) {
        return err;
    }
    t->framing.bytes_max = e->args.options.message_bytes_max;
    t->look_ms = (t->idle_ms < t->frame_ms ? t->idle_ms : t->frame_ms) / 4 + 1;
    t->look_ms = t->look_ms < LOOK_MS_MOST ? t->look_ms : LOOK_MS_MOST;
    t->peers = trpi_alloc(t->connections_max * sizeof(peer *));
    return t->peers == NULL ? TRP_ENOMEM : trp_tcp_bind(ctx, t->address, NULL);
}

/* ---- peers ----------------------------------------------------------------------------------- */

static peer *
peer_of(const tcp *t, trp_ref connection)
{
    for (uint32_t i = 0; i < t->count; i++) {
        if (!t->peers[i]->gone && trp_ref_equal(t->peers[i]->connection, connection)) {
            return t->peers[i];
        }
    }
    return NULL;
}

static void
peer_free(peer *p)
{
    trpi_frames_free(p->stream);
    trpi_free(p);
}

/* End a connection from our side; trp_tcp_closed comes, unless the endpoint ends first. */
static void
peer_close(trp_ctx *ctx, peer *p, const trp_type *how)
{
    if (!p->gone && !p->closing) {
        p->closing = true;
        p->active_ns = trp_now_ns(ctx);
        trp_tell(ctx, p->connection, how, NULL, 0);
    }
}

/* scheme-tcp-T1 */
static void
peer_finish(trp_ctx *ctx, peer *p)
{
    if (p->ended && !p->wants && p->open == 0) {
        peer_close(ctx, p, &trp_tcp_close_type);
    }
}

static void
peer_break(trp_ctx *ctx, const trpi_endpoint *e, peer *p, trp_err err, const char *why)
{
    char reason[TRP_ENDPOINT_REASON_BYTES];
    if (p->closing) {
        return;
    }
    (void)snprintf(reason, sizeof reason, "%.60s: %.120s", p->address, why);
    trpi_endpoint_error_tell(ctx, e, e->args.options.handler, 0, 0, err, reason);
    peer_close(ctx, p, &trp_tcp_abort_type); /* scheme-tcp-T2 */
}

/* A peer has connected: it gets a place, or is turned away. */
static void
on_connected(trp_ctx *ctx, trpi_endpoint *e, const trp_tcp_connected *connected)
{
    tcp *t = e->state;
    trp_tcp_register_options how = TRP_TCP_REGISTER_OPTIONS_INIT;
    trp_ref connection = trp_sender(ctx);
    bool has_room = t->count < t->connections_max;
    peer *p = has_room ? trpi_alloc(sizeof *p) : NULL;
    how.keep_open_on_peer_closed = 1;
    how.unhandled_bytes_max = UNHANDLED_BYTES;
    how.max_bytes = REPLIES_BYTES + e->args.options.message_bytes_max;
    trp_err err = p == NULL ? TRP_ENOMEM : trpi_frames_new(&t->framing, &p->stream);
    err = err == TRP_OK ? trp_watch(ctx, connection) : err;
    err = err == TRP_OK ? trp_tcp_register(ctx, connection, trp_self(ctx), &how) : err;
    if (err != TRP_OK) {
        if (!t->refuses) {
            trp_log(ctx, TRP_LOG_WARNING, "%s: a peer is turned away: %s", e->args.uri,
                    has_room ? trp_strerror(err) : "all connections are in use (connections=N)");
        }
        t->refuses = true;
        trp_tell(ctx, connection, &trp_tcp_abort_type, NULL, 0);
        if (p != NULL) {
            peer_free(p);
        }
        return;
    }
    t->refuses = false;
    p->connection = connection;
    p->number = ++t->numbers;
    p->active_ns = trp_now_ns(ctx);
    (void)trp_io_address_text(&connected->remote, p->address, sizeof p->address);
    t->peers[t->count++] = p;
}

static void
on_closed(trp_ctx *ctx, peer *p, const trp_tcp_closed *closed)
{
    if (closed->how == TRP_TCP_PEER_CLOSED && !p->ended) {
        p->ended = true;
        trpi_frames_end(p->stream);
    }
    p->wants = true;
    if (closed->half_open == 0) {
        p->gone = true;
        p->full = false;
        trp_unwatch(ctx, p->connection);
    }
}

static bool
on_peer(trp_ctx *ctx, trpi_endpoint *e, const trp_msg *msg)
{
    const trp_tcp_received *received = trp_tcp_received_of(msg);
    const tcp *t = e->state;
    peer *p = peer_of(t, trp_msg_is(msg, &trp_terminated_type)
                             ? ((const trp_terminated *)trp_msg_payload(msg))->ref
                             : trp_sender(ctx));
    if (p == NULL) {
        return true; /* of a connection that was given up */
    }
    if (received != NULL) {
        p->active_ns = trp_now_ns(ctx);
        p->wants = true;
        if (trpi_frames_add(p->stream, received->bytes, msg) != TRP_OK) {
            peer_break(ctx, e, p, TRP_ENOMEM, "no memory for what it sends");
        }
    } else if (trp_msg_is(msg, &trp_tcp_closed_type)) {
        on_closed(ctx, p, trp_msg_payload(msg));
    } else if (trp_msg_is(msg, &trp_terminated_type)) {
        p->gone = p->wants = true;
        p->full = false;
    } else if (trp_msg_is(msg, &trp_tcp_above_high_type)) {
        p->full = true;
    } else if (trp_msg_is(msg, &trp_tcp_below_low_type)) {
        p->full = false;
        p->wants = true;
    }
    return true;
}

static bool
tcp_receive(trp_ctx *ctx, trpi_endpoint *e, const trp_msg *msg)
{
    const tcp *t = e->state;
    if (trp_msg_is(msg, &trp_tcp_bound_type)) {
        const trp_tcp_bound *bound = trp_msg_payload(msg);
        trpi_consumer_bound(ctx, e, &bound->local, t->look_ms);
    } else if (trp_msg_is(msg, &trp_tcp_connected_type)) {
        on_connected(ctx, e, trp_msg_payload(msg));
    } else if (trp_msg_is(msg, &trp_tcp_command_failed_type)) {
        const trp_tcp_command_failed *failed = trp_msg_payload(msg);
        if (failed->command == TRP_TCP_BIND) {
            trpi_consumer_not_bound(ctx, e, failed->error);
        } /* of a write: the connection tells its end */
    } else if (trp_tcp_received_of(msg) != NULL || trp_msg_is(msg, &trp_tcp_closed_type) ||
               trp_msg_is(msg, &trp_terminated_type) || trp_msg_is(msg, &trp_tcp_above_high_type) ||
               trp_msg_is(msg, &trp_tcp_below_low_type)) {
        return on_peer(ctx, e, msg);
    } else {
        return false;
    }
    return true;
}

/* ---- delivery -------------------------------------------------------------------------------- */

/* Deliver a peer's messages while there is room. True: there may be more, and no room. */
static bool
peer_pump(trp_ctx *ctx, trpi_endpoint *e, peer *p)
{
    char connection[24];
    bool cut = false;
    trp_err err = TRP_OK;
    trp_bytes body;
    (void)snprintf(connection, sizeof connection, "%llu", (unsigned long long)p->number);
    const trp_endpoint_header headers[] = { { "tcp.peer", p->address },
                                            { "tcp.connection", connection } };
    while (p->wants && !p->full) {
        if (trpi_consumer_room(e) == 0) {
            return true;
        }
        p->wants = trpi_frames_next(p->stream, &body, &err);
        if (p->wants) {
            cut = true;
            p->open++;
            (void)trpi_consumer_deliver(ctx, e, p->number, body, headers, 2);
        }
    }
    if (err != TRP_OK) {
        peer_break(ctx, e, p, err, trpi_frames_reason(p->stream));
    }
    uint64_t now = trp_now_ns(ctx);
    p->held_ns = !trpi_frames_holds(p->stream) ? 0 : p->held_ns != 0 && !cut ? p->held_ns : now;
    peer_finish(ctx, p);
    return false;
}

/* Give up those that are silent, keep half a message, or read none of their replies. A rest that
 * has come, and waits for the handler, is not missing. */
static void
peers_look(trp_ctx *ctx, trpi_endpoint *e, uint64_t now)
{
    tcp *t = e->state;
    t->looked_ns = now;
    for (uint32_t i = 0; i < t->count; i++) {
        peer *p = t->peers[i];
        bool silent = now - p->active_ns > t->idle_ms * 1000000ull;
        bool idle = silent && p->open == 0;
        if (p->closing && !p->gone && silent) { /* it does not read the last replies */
            p->active_ns = now;
            trp_tell(ctx, p->connection, &trp_tcp_abort_type, NULL, 0);
        } else if (p->held_ns != 0 && !p->wants && now - p->held_ns > t->frame_ms * 1000000ull) {
            peer_break(ctx, e, p, TRP_ETIMEDOUT, "half a message got no rest (frame-timeout)");
        } else if (idle && p->full) {
            peer_break(ctx, e, p, TRP_ETIMEDOUT, "it does not read its replies (idle)");
        } else if (idle && !p->wants) {
            peer_close(ctx, p, &trp_tcp_close_type);
        }
    }
}

static bool
tcp_poll(trp_ctx *ctx, trpi_endpoint *e)
{
    tcp *t = e->state;
    uint64_t now = trp_now_ns(ctx);
    bool starved = false;
    if (e->starting) {
        if (trp_tcp_bind(ctx, t->address, NULL) != TRP_OK) {
            trpi_consumer_not_bound(ctx, e, ECANCELED);
        }
        return false;
    }
    if (now - t->looked_ns >= t->look_ms * 1000000ull) {
        peers_look(ctx, e, now);
    }
    for (uint32_t i = 0; i < t->count && !starved; i++) { /* the next one begins */
        t->next = t->next < t->count ? t->next : 0;
        starved = t->peers[t->next]->wants && peer_pump(ctx, e, t->peers[t->next]);
        t->next++;
    }
    for (uint32_t i = 0; i < t->count;) { /* scheme-tcp-T1 */
        peer *p = t->peers[i];
        if (p->gone && !p->wants) {
            t->peers[i] = t->peers[--t->count];
            peer_free(p);
        } else {
            i++;
        }
    }
    return starved;
}

static trp_err
tcp_settle(trp_ctx *ctx, trpi_endpoint *e, uint64_t token, trp_err err,
           const trpi_endpoint_send *reply)
{
    const tcp *t = e->state;
    peer *p = NULL;
    trp_bytes frame = TRP_BYTES_EMPTY;
    trp_err own = TRP_OK;
    for (uint32_t i = 0; i < t->count && p == NULL; i++) {
        p = t->peers[i]->number == token ? t->peers[i] : NULL;
    }
    if (p == NULL || p->gone || p->closing) {
        if (p != NULL) {
            p->open--;
        }
        (void)snprintf(e->reason, sizeof e->reason, "the peer has gone, and gets no reply");
        return reply != NULL ? TRP_ECLOSED : TRP_OK;
    }
    trpi_assert(p->open > 0);
    p->open--;
    p->active_ns = trp_now_ns(ctx);
    if (err == TRP_OK && reply != NULL) {
        own = trpi_frames_frame(p->stream, reply->body, &frame);
        if (own != TRP_OK) {
            (void)snprintf(e->reason, sizeof e->reason, "%s", trpi_frames_reason(p->stream));
        } else {
            own = trp_tcp_write(ctx, p->connection, frame, TRP_TCP_NO_ACK);
        }
        trp_bytes_unref(&frame);
    }
    if (own != TRP_OK || (err != TRP_OK && e->args.options.acknowledges != 0)) {
        peer_close(ctx, p, &trp_tcp_abort_type); /* scheme-tcp-T2 */
    }
    peer_finish(ctx, p);
    return own;
}

static void
tcp_stop(trp_ctx *ctx, trpi_endpoint *e)
{
    tcp *t = e->state;
    if (t != NULL) {
        if (!trp_ref_is_none(e->listener)) { /* a restart is no end of its handler */
            trp_tell(ctx, e->listener, &trp_tcp_unbind_type, NULL, 0);
        }
        for (uint32_t i = 0; i < t->count; i++) {
            peer_close(ctx, t->peers[i], &trp_tcp_close_type);
            peer_free(t->peers[i]);
        }
        trpi_free(t->peers);
        trpi_free(t);
        e->state = NULL;
    }
}

static const char *const options[] = { "frame", "field",         "connections",
                                       "idle",  "frame-timeout", NULL };
const trpi_scheme trpi_scheme_tcp_in = { .name = "tcp",
                                         .starts_later = true,
                                         .consumer_options = options,
                                         .check = tcp_check,
                                         .consume = tcp_consume,
                                         .stop = tcp_stop,
                                         .poll = tcp_poll,
                                         .settle = tcp_settle,
                                         .receive = tcp_receive };
