/* scheme_udp.c - udp:ADDRESS:PORT, each datagram a message.
 *
 * Why.     Datagrams are lost, come twice and in any order: that is the protocol's, and nothing
 *          here repeats one.
 * Shape.   socket (troupe/io.h) -> datagram -> deliver(); reply -> to the address that it came from
 *          send -> socket -> ack: done; with reply=1 the next datagram from the peer: reply
 *          What waits for room counts as unhandled bytes of the socket: beyond, the kernel drops.
 * Must hold.
 *   scheme-udp-U1  A reply that comes too late is not taken for that of a later request: the socket
 *       is opened anew, at another port, when a request's time is over.
 * Limits.  message_bytes_max, TRP_UDP_BYTES_MAX; timeout_ms; one request at a time.
 * Tests.   tests/unit/endpoint/udp_test.c
 * Sources. CAM-01, CAM-02, CAM-05
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "endpoint/endpoint.h"

enum { TIME_KEY = 1 };

typedef struct datagram {
    struct datagram *next;
    trp_msg *msg; /* counts as unhandled until it is freed */
} datagram;

typedef struct udp {
    const char *address;
    uint32_t replies;
    /* consumer: */
    datagram *first, **last;
    trp_io_address *peers; /* of messages that are not settled; pending_max of them */
    /* producer: */
    trp_ref socket;
    uint64_t opens, order; /* the number of the present socket; of the present request */
    bool is_open, sending, written;
    trp_bytes body; /* of the present request, until it is written */
} udp;

static trp_err
udp_read(const trpi_uri *uri, udp *u, char reason[TRP_ENDPOINT_REASON_BYTES])
{
    trp_io_address address;
    u->replies = 0;
    trp_err err = trpi_uri_address(uri, &u->address, reason);
    if (err == TRP_OK && trp_io_address_parse(u->address, &address) != TRP_OK) {
        (void)snprintf(reason, TRP_ENDPOINT_REASON_BYTES,
                       "udp: needs an address in numbers, udp:127.0.0.1:PORT");
        err = TRP_EINVAL;
    }
    return err == TRP_OK ? trpi_uri_number(uri, "reply", 0, 1, &u->replies, reason) : err;
}

static trp_err
udp_check(const trpi_uri *uri, char ret_reason[TRP_ENDPOINT_REASON_BYTES])
{
    udp u;
    return udp_read(uri, &u, ret_reason);
}

static trp_err
udp_new(trpi_endpoint *e, udp **ret_udp)
{
    udp *u = trpi_alloc(sizeof *u);
    if (u == NULL) {
        return TRP_ENOMEM;
    }
    u->last = &u->first;
    e->state = *ret_udp = u;
    return udp_read(&e->uri, u, e->reason);
}

static void
udp_stop(trp_ctx *ctx, trpi_endpoint *e)
{
    udp *u = e->state;
    if (u == NULL) {
        return;
    }
    trp_ref socket = trp_ref_is_none(e->listener) ? u->socket : e->listener;
    if (!trp_ref_is_none(socket)) {
        trp_tell(ctx, socket, &trp_udp_unbind_type, NULL, 0);
    }
    while (u->first != NULL) {
        datagram *d = u->first;
        u->first = d->next;
        trp_msg_free(d->msg);
        trpi_free(d);
    }
    trp_bytes_unref(&u->body);
    trpi_free(u->peers);
    trpi_free(u);
    e->state = NULL;
}

/* ---- consuming ------------------------------------------------------------------------------- */

static trp_err
udp_bind(trp_ctx *ctx, const trpi_endpoint *e)
{
    trp_udp_options options = TRP_UDP_OPTIONS_INIT;
    return trp_udp_bind(ctx, ((const udp *)e->state)->address, &options);
}

static trp_err
udp_consume(trp_ctx *ctx, trpi_endpoint *e)
{
    udp *u = NULL;
    trp_err err = udp_new(e, &u);
    if (err == TRP_OK) {
        u->peers = trpi_alloc(e->args.options.pending_max * sizeof *u->peers);
        err = u->peers == NULL ? TRP_ENOMEM : udp_bind(ctx, e);
    }
    return err;
}

static void
on_datagram(trp_ctx *ctx, const trpi_endpoint *e, const trp_msg *msg)
{
    udp *u = e->state;
    size_t bytes = trp_bytes_length(trp_udp_received_of(msg)->bytes);
    if (bytes > e->args.options.message_bytes_max) {
        trpi_endpoint_error_tell(ctx, e, e->args.options.handler, 0, 0, TRP_EMSGSIZE,
                                 "a datagram is longer than message_bytes_max");
        return;
    }
    datagram *d = trpi_alloc(sizeof *d);
    if (d == NULL || trp_msg_dup(msg, &d->msg) != TRP_OK) {
        trpi_free(d); /* lost, as the network might have lost it */
        return;
    }
    *u->last = d;
    u->last = &d->next;
}

static bool
udp_in_receive(trp_ctx *ctx, trpi_endpoint *e, const trp_msg *msg)
{
    if (trp_udp_received_of(msg) != NULL) {
        on_datagram(ctx, e, msg);
    } else if (trp_msg_is(msg, &trp_udp_bound_type)) {
        trpi_consumer_bound(ctx, e, &((const trp_udp_bound *)trp_msg_payload(msg))->local, 0);
    } else if (trp_msg_is(msg, &trp_udp_command_failed_type)) {
        const trp_udp_command_failed *failed = trp_msg_payload(msg);
        if (failed->command == TRP_UDP_BIND) {
            trpi_consumer_not_bound(ctx, e, failed->error);
        } /* a reply that is lost is lost */
    } else {
        return trp_msg_is(msg, &trp_udp_unbound_type);
    }
    return true;
}

static bool
udp_poll(trp_ctx *ctx, trpi_endpoint *e)
{
    udp *u = e->state;
    char address[TRP_IO_ADDRESS_BYTES_MAX];
    const trp_endpoint_header header = { "udp.peer", address };
    if (e->starting) {
        if (udp_bind(ctx, e) != TRP_OK) {
            trpi_consumer_not_bound(ctx, e, ECANCELED);
        }
        return false;
    }
    while (u->first != NULL) {
        datagram *d = u->first;
        uint32_t token = 0;
        if (trpi_consumer_room(e) == 0) {
            return true;
        }
        const trp_udp_received *received = trp_udp_received_of(d->msg);
        while (u->peers[token].kind != TRP_IO_NO_ADDRESS) {
            token++;
        }
        trpi_assert(token < e->args.options.pending_max);
        u->peers[token] = received->from;
        u->first = d->next;
        u->last = u->first == NULL ? &u->first : u->last;
        (void)trp_io_address_text(&received->from, address, sizeof address);
        (void)trpi_consumer_deliver(ctx, e, token, trp_bytes_ref(received->bytes), &header, 1);
        trp_msg_free(d->msg);
        trpi_free(d);
    }
    return false;
}

static trp_err
udp_settle(trp_ctx *ctx, trpi_endpoint *e, uint64_t token, trp_err err,
           const trpi_endpoint_send *reply)
{
    const udp *u = e->state;
    trp_io_address to = u->peers[token];
    trpi_assert(to.kind != TRP_IO_NO_ADDRESS);
    u->peers[token].kind = TRP_IO_NO_ADDRESS;
    if (err != TRP_OK || reply == NULL) {
        return TRP_OK;
    }
    if (trp_bytes_length(reply->body) > TRP_UDP_BYTES_MAX) {
        (void)snprintf(e->reason, sizeof e->reason, "the reply is longer than a datagram");
        return TRP_EMSGSIZE;
    }
    e->reason[0] = '\0';
    return trp_udp_send(ctx, e->listener, reply->body, &to, 0);
}

/* ---- producing ------------------------------------------------------------------------------- */

static trp_err
udp_open(trp_ctx *ctx, udp *u)
{
    trp_udp_options options = TRP_UDP_OPTIONS_INIT;
    options.number = ++u->opens;
    u->is_open = false;
    return trp_udp_connect(ctx, u->address, &options);
}

static trp_err
udp_produce(trp_ctx *ctx, trpi_endpoint *e)
{
    udp *u = NULL;
    trp_err err = udp_new(e, &u);
    if (err == TRP_OK) {
        u->opens = trp_now_ns(ctx); /* not one of before a restart */
        err = udp_open(ctx, u);
    }
    return err;
}

static void
udp_finish(trp_ctx *ctx, trpi_endpoint *e, trp_err err, const char *reason, const trp_bytes *reply)
{
    udp *u = e->state;
    const trp_endpoint_header header = { "udp.peer", u->address };
    u->sending = false;
    trp_bytes_unref(&u->body);
    trp_timer_cancel(ctx, TIME_KEY);
    trpi_producer_finish(ctx, e, 0, err, reason, reply, &header, 1);
}

static void
udp_write(trp_ctx *ctx, trpi_endpoint *e)
{
    udp *u = e->state;
    u->written = true;
    if (trp_udp_send(ctx, u->socket, u->body, NULL, u->order) != TRP_OK) {
        udp_finish(ctx, e, TRP_ENOMEM, "no memory for the datagram", NULL);
    }
}

static void
udp_send(trp_ctx *ctx, trpi_endpoint *e, uint32_t slot, const trpi_endpoint_send *send)
{
    udp *u = e->state;
    trpi_assert(slot == 0 && !u->sending);
    if (trp_bytes_length(send->body) > TRP_UDP_BYTES_MAX) {
        trpi_producer_finish(ctx, e, slot, TRP_EMSGSIZE, "the body is longer than a datagram", NULL,
                             NULL, 0);
        return;
    }
    if (trp_timer_once(ctx, TIME_KEY, e->args.options.timeout_ms, &trpi_endpoint_poll_type, NULL,
                       0) != TRP_OK) {
        trpi_producer_finish(ctx, e, slot, TRP_ENOMEM, "no timer", NULL, NULL, 0);
        return;
    }
    u->sending = true;
    u->written = false;
    u->order++;
    u->body = trp_bytes_ref(send->body);
    if (u->is_open) {
        udp_write(ctx, e);
    }
}

static void
on_failed(trp_ctx *ctx, trpi_endpoint *e, const trp_udp_command_failed *failed)
{
    udp *u = e->state;
    if (failed->command == TRP_UDP_BIND && failed->number == u->opens) {
        trp_fail(ctx, TRP_EIO, "no socket for %s: %s", e->args.uri, failed->reason);
    }
    /* That nobody listens there is told with a later send, or to who waits. */
    if (u->sending && u->written &&
        (failed->command == TRP_UDP_SEND ? failed->ack == u->order : u->replies != 0)) {
        trp_err err = failed->error == EMSGSIZE ? TRP_EMSGSIZE : TRP_EIO;
        udp_finish(ctx, e, err, failed->reason, NULL);
    }
}

/* scheme-udp-U1 */
static void
on_time(trp_ctx *ctx, trpi_endpoint *e)
{
    udp *u = e->state;
    if (u->sending && !trp_timer_is_set(ctx, TIME_KEY)) {
        bool was_open = u->is_open;
        udp_finish(ctx, e, TRP_ETIMEDOUT, "no reply has come in time", NULL);
        if (was_open) {
            trp_tell(ctx, u->socket, &trp_udp_unbind_type, NULL, 0);
            if (udp_open(ctx, u) != TRP_OK) {
                trp_fail(ctx, TRP_EIO, "no socket for %s", e->args.uri);
            }
        }
    }
}

static bool
udp_out_receive(trp_ctx *ctx, trpi_endpoint *e, const trp_msg *msg)
{
    udp *u = e->state;
    const trp_udp_received *received = trp_udp_received_of(msg);
    bool present = u->is_open && trp_ref_equal(trp_sender(ctx), u->socket);
    if (received != NULL) {
        if (present && u->sending && u->written && u->replies != 0) {
            bool fits = trp_bytes_length(received->bytes) <= e->args.options.message_bytes_max;
            udp_finish(ctx, e, fits ? TRP_OK : TRP_EMSGSIZE,
                       fits ? "" : "the reply is longer than message_bytes_max", &received->bytes);
        }
    } else if (trp_msg_is(msg, &trp_udp_ack_type)) {
        if (present && u->sending && u->replies == 0 &&
            ((const trp_udp_ack *)trp_msg_payload(msg))->ack == u->order) {
            udp_finish(ctx, e, TRP_OK, "", NULL);
        }
    } else if (trp_msg_is(msg, &trp_udp_bound_type)) {
        if (((const trp_udp_bound *)trp_msg_payload(msg))->number == u->opens) {
            u->socket = trp_sender(ctx);
            u->is_open = true;
            if (u->sending) {
                udp_write(ctx, e);
            }
        } else {
            trp_tell(ctx, trp_sender(ctx), &trp_udp_unbind_type, NULL, 0);
        }
    } else if (trp_msg_is(msg, &trp_udp_command_failed_type)) {
        on_failed(ctx, e, trp_msg_payload(msg));
    } else if (trp_msg_is(msg, &trpi_endpoint_poll_type)) {
        on_time(ctx, e);
    } else {
        return trp_msg_is(msg, &trp_udp_unbound_type);
    }
    return true;
}

static const char *const consumer_options[] = { NULL };
static const char *const producer_options[] = { "reply", NULL };
const trpi_scheme trpi_scheme_udp_in = { .name = "udp",
                                         .starts_later = true,
                                         .consumer_options = consumer_options,
                                         .check = udp_check,
                                         .consume = udp_consume,
                                         .stop = udp_stop,
                                         .poll = udp_poll,
                                         .settle = udp_settle,
                                         .receive = udp_in_receive };
const trpi_scheme trpi_scheme_udp_out = { .name = "udp",
                                          .producer_options = producer_options,
                                          .check = udp_check,
                                          .produce = udp_produce,
                                          .stop = udp_stop,
                                          .send = udp_send,
                                          .receive = udp_out_receive };
