/* scheme_tcp_out.c - tcp:HOST:PORT, messages to a peer, over one connection that is made anew when
 * it is lost.
 *
 * Shape.   send -> frame, in a slot -> (connected) written -> ack: done
 *                                                          -> with reply=1 the next frame: reply
 * States.  DOWN --retry--> CONNECTING --connected--> UP --closed--> DOWN
 * Must hold.
 *   tcp-out-O1  A frame is written at most once: what was written when the connection ends has
 *       failed, what was not waits for the next one, until its time is over.
 *   tcp-out-O2  Replies belong to requests in their order; so a request whose time is over ends the
 *       connection.
 * Limits.  parallel; timeout_ms; message_bytes_max.
 * Tests.   tests/unit/endpoint/tcp_test.c
 * Sources. CAM-01, CAM-05, CAM-08
 */
#include <stdio.h>
#include <string.h>

#include <troupe/io.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "endpoint/endpoint.h"
#include "endpoint/framing.h"

enum { PARALLEL = 64, PARALLEL_MOST = 4096, RETRY_MS_LEAST = 50, RETRY_MS = 5000 };
enum { LOOK_KEY = 1, RETRY_KEY = 2 };
enum { DOWN, CONNECTING, UP };

typedef struct request {
    bool used, written;
    uint64_t order, deadline_ns;
    trp_bytes frame;
} request;

typedef struct tcp_out {
    trpi_framing framing;
    uint32_t replies, parallel, retry_ms, retry_now_ms;
    const char *address;
    uint32_t state;
    uint64_t connects; /* the number of the present connection, or of its making */
    trp_ref connection;
    trpi_frames *stream; /* of the present connection; the first one only makes frames */
    request *requests;
    uint64_t orders, look_ns; /* the earliest time to look at deadlines; 0: none */
} tcp_out;

static trp_err
out_read(const trpi_uri *uri, tcp_out *t, char reason[TRP_ENDPOINT_REASON_BYTES])
{
    t->replies = 0;
    t->retry_ms = RETRY_MS;
    trp_err err = trpi_uri_address(uri, &t->address, reason);
    err = err == TRP_OK ? trpi_framing_read(uri, &t->framing, reason) : err;
    err = err == TRP_OK ? trpi_uri_number(uri, "reply", 0, 1, &t->replies, reason) : err;
    t->parallel = t->replies != 0 ? 1 : PARALLEL;
    err = err == TRP_OK ? trpi_uri_number(uri, "parallel", 1, PARALLEL_MOST, &t->parallel, reason)
                        : err;
    return err != TRP_OK
               ? err
               : trpi_uri_number(uri, "retry", RETRY_MS_LEAST, INT32_MAX, &t->retry_ms, reason);
}

static trp_err
out_check(const trpi_uri *uri, char ret_reason[TRP_ENDPOINT_REASON_BYTES])
{
    tcp_out t;
    return out_read(uri, &t, ret_reason);
}

static void
out_connect(trp_ctx *ctx, tcp_out *t)
{
    trp_tcp_connect_options options = TRP_TCP_CONNECT_OPTIONS_INIT;
    options.number = ++t->connects;
    t->state = CONNECTING;
    if (trp_tcp_connect(ctx, t->address, &options) != TRP_OK) {
        trp_fail(ctx, TRP_EIO, "cannot connect to %s", t->address);
    }
}

static trp_err
out_produce(trp_ctx *ctx, trpi_endpoint *e)
{
    tcp_out *t = trpi_alloc(sizeof *t);
    if (t == NULL) {
        return TRP_ENOMEM;
    }
    e->state = t;
    trp_err err = out_read(&e->uri, t, e->reason);
    t->framing.bytes_max = e->args.options.message_bytes_max;
    err = err == TRP_OK ? trpi_frames_new(&t->framing, &t->stream) : err;
    if (err == TRP_OK) {
        t->requests = trpi_alloc(t->parallel * sizeof *t->requests);
        err = t->requests == NULL ? TRP_ENOMEM : TRP_OK;
    }
    if (err == TRP_OK) {
        t->retry_now_ms = RETRY_MS_LEAST;
        t->connects = (uint64_t)trp_now_ns(ctx); /* not one of before a restart */
        out_connect(ctx, t);
    }
    return err;
}

static uint32_t
out_parallel(const trpi_endpoint *e)
{
    return ((const tcp_out *)e->state)->parallel;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void
request_finish(trp_ctx *ctx, trpi_endpoint *e, request *r, trp_err err, const char *reason,
               const trp_bytes *reply)
{
    const tcp_out *t = e->state;
    const trp_endpoint_header header = { "tcp.peer", t->address };
    trp_bytes_unref(&r->frame);
    r->used = false;
    trpi_producer_finish(ctx, e, (uint32_t)(r - t->requests), err, reason, reply, &header, 1);
}

/* The oldest one; written: that was written, or that was not. NULL: there is none. */
static request *
request_oldest(const tcp_out *t, bool written)
{
    request *oldest = NULL;
    for (uint32_t i = 0; i < t->parallel; i++) {
        request *r = &t->requests[i];
        if (r->used && r->written == written && (oldest == NULL || r->order < oldest->order)) {
            oldest = r;
        }
    }
    return oldest;
}

static void
request_write(trp_ctx *ctx, const tcp_out *t, request *r)
{
    uint64_t ack = r->order; /* tcp-out-O1 */
    r->written = true;
    if (trp_tcp_write(ctx, t->connection, r->frame, ack) != TRP_OK) {
        trp_fail(ctx, TRP_ENOMEM, "no memory to write to %s", t->address);
    }
    trp_bytes_unref(&r->frame);
}

/* Look at deadlines no later than at this time. */
static void
look_at(trp_ctx *ctx, tcp_out *t, uint64_t at_ns)
{
    uint64_t now = trp_now_ns(ctx);
    if (t->look_ns != 0 && t->look_ns <= at_ns) {
        return;
    }
    t->look_ns = at_ns;
    if (trp_timer_once(ctx, LOOK_KEY, at_ns > now ? (uint32_t)((at_ns - now) / 1000000u) + 1 : 1,
                       &trpi_endpoint_poll_type, NULL, 0) != TRP_OK) {
        trp_fail(ctx, TRP_ENOMEM, "no timer for an endpoint");
    }
}

static void
out_send(trp_ctx *ctx, trpi_endpoint *e, uint32_t slot, const trpi_endpoint_send *send)
{
    tcp_out *t = e->state;
    request *r = &t->requests[slot];
    trpi_assert(!r->used);
    trp_err err = trpi_frames_frame(t->stream, send->body, &r->frame);
    if (err != TRP_OK) {
        trpi_producer_finish(ctx, e, slot, err, trpi_frames_reason(t->stream), NULL, NULL, 0);
        return;
    }
    r->used = true;
    r->written = false;
    r->order = ++t->orders;
    r->deadline_ns = trp_now_ns(ctx) + e->args.options.timeout_ms * 1000000ull;
    look_at(ctx, t, r->deadline_ns);
    if (t->state == UP) {
        request_write(ctx, t, r);
    }
}

/* ---- the connection -------------------------------------------------------------------------- */

/* It has ended: what was written has failed, and it is made again. tcp-out-O1 */
static void
out_lost(trp_ctx *ctx, trpi_endpoint *e, const char *reason)
{
    tcp_out *t = e->state;
    request *r;
    t->state = DOWN;
    t->connection = (trp_ref)TRP_REF_NONE;
    while ((r = request_oldest(t, true)) != NULL) {
        request_finish(ctx, e, r, TRP_ECLOSED, reason, NULL);
    }
    if (trp_timer_once(ctx, RETRY_KEY, t->retry_now_ms, &trpi_endpoint_poll_type, NULL, 0) !=
        TRP_OK) {
        trp_fail(ctx, TRP_ENOMEM, "no timer for an endpoint");
    }
    t->retry_now_ms = t->retry_now_ms < t->retry_ms / 2 ? t->retry_now_ms * 2 : t->retry_ms;
}

static void
on_connected(trp_ctx *ctx, trpi_endpoint *e)
{
    tcp_out *t = e->state;
    trp_tcp_register_options how = TRP_TCP_REGISTER_OPTIONS_INIT;
    trpi_frames *stream = NULL;
    request *r;
    how.max_bytes = (uint64_t)t->parallel * (e->args.options.message_bytes_max + 16ull) + 16;
    how.high_bytes = how.max_bytes;
    how.low_bytes = 1; /* slots are the bound: no marks are wanted */
    trp_err err = trpi_frames_new(&t->framing, &stream);
    err = err == TRP_OK ? trp_tcp_register(ctx, trp_sender(ctx), trp_self(ctx), &how) : err;
    err = err == TRP_OK ? trp_watch(ctx, trp_sender(ctx)) : err;
    if (err != TRP_OK) {
        trpi_frames_free(stream);
        trp_fail(ctx, (int32_t)err, "no memory for the connection to %s", t->address);
    }
    trpi_frames_free(t->stream);
    t->stream = stream;
    t->connection = trp_sender(ctx);
    t->state = UP;
    t->retry_now_ms = RETRY_MS_LEAST;
    while ((r = request_oldest(t, false)) != NULL) {
        request_write(ctx, t, r);
    }
}

/* Frames are replies, in their order; without them what comes is not looked at. */
static void
on_received(trp_ctx *ctx, trpi_endpoint *e, const trp_tcp_received *received)
{
    tcp_out *t = e->state;
    trp_bytes reply;
    trp_err err = TRP_OK;
    if (t->replies == 0) {
        return;
    }
    err = trpi_frames_add(t->stream, received->bytes, NULL);
    while (err == TRP_OK && trpi_frames_next(t->stream, &reply, &err)) {
        request *r = request_oldest(t, true);
        if (r != NULL) {
            request_finish(ctx, e, r, TRP_OK, "", &reply);
        }
        trp_bytes_unref(&reply);
        err = r == NULL ? TRP_EPROTO : TRP_OK; /* nobody has asked */
    }
    if (err != TRP_OK) { /* trp_tcp_closed comes, of another connection: this one is forgotten */
        trp_tell(ctx, t->connection, &trp_tcp_abort_type, NULL, 0);
        out_lost(ctx, e,
                 err == TRP_EPROTO ? "the peer has sent a reply that nobody waits for"
                                   : trpi_frames_reason(t->stream));
    }
}

/* tcp-out-O2 */
static void
deadlines_look(trp_ctx *ctx, trpi_endpoint *e)
{
    tcp_out *t = e->state;
    uint64_t now = trp_now_ns(ctx), earliest = 0;
    bool ends = false;
    t->look_ns = 0;
    for (uint32_t i = 0; i < t->parallel; i++) {
        request *r = &t->requests[i];
        if (r->used && r->deadline_ns <= now) {
            ends = ends || r->written;
            request_finish(ctx, e, r, TRP_ETIMEDOUT,
                           r->written ? "the peer did not take the message, or reply, in time"
                                      : "there was no connection in time",
                           NULL);
        } else if (r->used && (earliest == 0 || r->deadline_ns < earliest)) {
            earliest = r->deadline_ns;
        }
    }
    if (earliest != 0) {
        look_at(ctx, t, earliest);
    }
    if (ends && t->state == UP) {
        trp_tell(ctx, t->connection, &trp_tcp_abort_type, NULL, 0);
        out_lost(ctx, e, "the connection was ended, since an earlier message was not answered");
    }
}

static void
on_timer(trp_ctx *ctx, trpi_endpoint *e)
{
    tcp_out *t = e->state;
    if (t->look_ns != 0 && t->look_ns <= trp_now_ns(ctx)) {
        deadlines_look(ctx, e);
    }
    if (t->state == DOWN && !trp_timer_is_set(ctx, RETRY_KEY)) {
        out_connect(ctx, t);
    }
}

static void
on_ack(trp_ctx *ctx, trpi_endpoint *e, uint64_t order)
{
    const tcp_out *t = e->state;
    for (uint32_t i = 0; t->replies == 0 && i < t->parallel; i++) {
        request *r = &t->requests[i];
        if (r->used && r->written && r->order == order) {
            request_finish(ctx, e, r, TRP_OK, "", NULL);
            return;
        }
    }
}

static bool
out_receive(trp_ctx *ctx, trpi_endpoint *e, const trp_msg *msg)
{
    tcp_out *t = e->state;
    bool present = t->state == UP && trp_ref_equal(trp_sender(ctx), t->connection);
    if (trp_msg_is(msg, &trp_tcp_ack_type)) {
        if (present) {
            on_ack(ctx, e, ((const trp_tcp_ack *)trp_msg_payload(msg))->ack);
        }
    } else if (trp_tcp_received_of(msg) != NULL) {
        if (present) {
            on_received(ctx, e, trp_tcp_received_of(msg));
        }
    } else if (trp_msg_is(msg, &trpi_endpoint_poll_type)) {
        on_timer(ctx, e);
    } else if (trp_msg_is(msg, &trp_tcp_connected_type)) {
        const trp_tcp_connected *connected = trp_msg_payload(msg);
        if (t->state == CONNECTING && connected->number == t->connects) {
            on_connected(ctx, e);
        } else { /* of before a restart */
            trp_tell(ctx, trp_sender(ctx), &trp_tcp_abort_type, NULL, 0);
        }
    } else if (trp_msg_is(msg, &trp_tcp_command_failed_type)) {
        const trp_tcp_command_failed *failed = trp_msg_payload(msg);
        if (failed->command == TRP_TCP_CONNECT && failed->number == t->connects) {
            out_lost(ctx, e, failed->reason);
        }
    } else if (trp_msg_is(msg, &trp_tcp_closed_type) || trp_msg_is(msg, &trp_terminated_type)) {
        if (present ||
            (trp_msg_is(msg, &trp_terminated_type) && t->state == UP &&
             trp_ref_equal(((const trp_terminated *)trp_msg_payload(msg))->ref, t->connection))) {
            out_lost(ctx, e, "the connection has ended; the message may have been sent");
        }
    } else {
        return trp_msg_is(msg, &trp_tcp_above_high_type) ||
               trp_msg_is(msg, &trp_tcp_below_low_type);
    }
    return true;
}

static void
out_stop(trp_ctx *ctx, trpi_endpoint *e)
{
    tcp_out *t = e->state;
    if (t != NULL) {
        if (!trp_ref_is_none(t->connection)) {
            trp_tell(ctx, t->connection, &trp_tcp_close_type, NULL, 0);
        }
        for (uint32_t i = 0; t->requests != NULL && i < t->parallel; i++) {
            trp_bytes_unref(&t->requests[i].frame);
        }
        trpi_free(t->requests);
        trpi_frames_free(t->stream);
        trpi_free(t);
        e->state = NULL;
    }
}

static const char *const options[] = { "frame", "field", "reply", "parallel", "retry", NULL };
const trpi_scheme trpi_scheme_tcp_out = { .name = "tcp",
                                          .producer_options = options,
                                          .check = out_check,
                                          .produce = out_produce,
                                          .stop = out_stop,
                                          .send = out_send,
                                          .receive = out_receive,
                                          .parallel = out_parallel };
