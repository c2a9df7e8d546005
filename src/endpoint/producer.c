/* producer.c - an actor that sends messages to an endpoint, and tells back what comes of it.
 *
 * Shape.   trp_endpoint_send() -> queue -> slot -> scheme.send() -> finish() -> sender
 * Must hold.
 *   producer-P1  Each message that was told to the producer is answered once: by a reply, by done
 *       (without oneway), or by an error; also when the producer ends.
 *   producer-P2  At most pending_max messages wait, and as many are sent at one time as the scheme
 *       says.
 * Limits.  pending_max, message_bytes_max.
 * Tests.   tests/unit/endpoint/producer_test.c
 * Sources. CAM-01, -05, -08
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "endpoint/endpoint.h"

typedef struct request {
    struct request *next;
    trp_msg *msg; /* shared: holds a trpi_endpoint_send */
    trp_ref sender;
} request;

typedef struct producer {
    trpi_endpoint e;   /* first */
    request **sending; /* of each slot; NULL: it is free */
    uint32_t slots_count;
    request *first, **last;
    uint32_t waiting;
} producer;

static const trpi_endpoint_send *
send_of(const request *r)
{
    return trp_msg_held(r->msg, &trpi_endpoint_send_type);
}

static void
request_free(request *r)
{
    trp_msg_free(r->msg);
    trpi_free(r);
}

static void
request_fail(trp_ctx *ctx, producer *p, request *r, trp_err err, const char *reason)
{
    trpi_endpoint_error_tell(ctx, &p->e, r->sender, send_of(r)->ack, 0, err, reason);
    request_free(r);
}

static request *
request_take(producer *p)
{
    request *r = p->first;
    p->first = r->next;
    p->last = p->first == NULL ? &p->first : p->last;
    p->waiting--;
    return r;
}

/* Send what waits, as far as there are slots. */
static void
send_next(trp_ctx *ctx, producer *p)
{
    for (uint32_t i = 0; i < p->slots_count && p->first != NULL; i++) {
        while (p->sending[i] == NULL && p->first != NULL) { /* again, if it has finished at once */
            p->sending[i] = request_take(p);
            p->e.scheme->send(ctx, &p->e, i, send_of(p->sending[i]));
        }
    }
}

/* Tell the reply; its errors. */
static trp_err
reply_tell(trp_ctx *ctx, const producer *p, const request *r, trp_ref to, const trp_bytes *reply,
           const trp_endpoint_header *headers, uint32_t headers_count)
{
    trp_msg *msg = NULL;
    trp_err err =
        trpi_endpoint_message_new(&p->e, 0, send_of(r)->ack, trp_bytes_ref(*reply), headers,
                                  headers_count, NULL, (trpi_endpoint_slot){ 0, 0 }, &msg);
    if (err == TRP_OK) {
        trp_send(ctx, to, msg);
    }
    return err;
}

/* producer-P1 */
void
trpi_producer_finish(trp_ctx *ctx, trpi_endpoint *e, uint32_t slot, trp_err err, const char *reason,
                     const trp_bytes *reply, const trp_endpoint_header *headers,
                     uint32_t headers_count)
{
    producer *p = (producer *)(void *)e;
    const trp_endpoint_options *o = &e->args.options;
    request *r = p->sending[slot];
    trpi_assert(r != NULL);
    p->sending[slot] = NULL;
    trp_ref to = trp_ref_is_none(o->handler) ? r->sender : o->handler;
    if (err == TRP_OK && reply != NULL && o->oneway == 0 && !trp_ref_is_none(to)) {
        err = reply_tell(ctx, p, r, to, reply, headers, headers_count);
        reason = "the reply was not made, or not transformed";
    } else if (err == TRP_OK && o->oneway == 0 && !trp_ref_is_none(to)) {
        trp_endpoint_done done = { send_of(r)->ack };
        trp_tell(ctx, to, &trp_endpoint_done_type, &done, sizeof done);
    }
    if (err != TRP_OK) {
        request_fail(ctx, p, r, err, reason);
    } else {
        request_free(r);
    }
}

void
trpi_producer_go_on(trp_ctx *ctx, trpi_endpoint *e)
{
    send_next(ctx, (producer *)(void *)e);
}

/* Make the message as it is sent: transformed, and of a fitting length. */
static trp_err
request_prepare(const producer *p, request *r, const char **ret_reason)
{
    const trp_endpoint_options *o = &p->e.args.options;
    trp_bytes body = TRP_BYTES_EMPTY;
    void *held;
    trp_msg *msg;
    *ret_reason = "the message was not transformed";
    if (o->outgoing != NULL) {
        trp_err err = trpi_endpoint_outgoing(&p->e, send_of(r)->body, &body);
        err = err != TRP_OK ? err
                            : trp_msg_new_held(&trpi_endpoint_send_type, sizeof(trpi_endpoint_send),
                                               trpi_endpoint_send_drop, &msg, &held);
        if (err != TRP_OK) {
            trp_bytes_unref(&body);
            return err;
        }
        trpi_endpoint_send *send = held;
        send->ack = send_of(r)->ack;
        send->body = body;
        err = trpi_endpoint_headers_copy(send_of(r)->headers, send_of(r)->headers_count,
                                         &send->headers);
        send->headers_count = err == TRP_OK ? send_of(r)->headers_count : 0;
        trp_msg_free(r->msg);
        r->msg = msg;
        if (err != TRP_OK) {
            return err;
        }
    }
    *ret_reason = "the body is longer than message_bytes_max";
    return trp_bytes_length(send_of(r)->body) > o->message_bytes_max ? TRP_EMSGSIZE : TRP_OK;
}

static void
on_send(trp_ctx *ctx, producer *p, const trp_msg *msg)
{
    const trpi_endpoint_send *send = trp_msg_held(msg, &trpi_endpoint_send_type);
    const char *reason = "no memory for the message";
    request *r = NULL;
    trp_err err = TRP_OK;
    if (p->e.err != TRP_OK) {
        err = TRP_ECLOSED;
        reason = "the endpoint did not start";
    } else if (p->waiting >= p->e.args.options.pending_max) {
        err = TRP_EAGAIN;
        reason = "pending_max messages wait: send less, or later";
    } else if ((r = trpi_alloc(sizeof *r)) == NULL || trp_msg_dup(msg, &r->msg) != TRP_OK) {
        trpi_free(r);
        err = TRP_ENOMEM;
    }
    if (err != TRP_OK) {
        trpi_endpoint_error_tell(ctx, &p->e, trp_sender(ctx), send->ack, 0, err, reason);
        return;
    }
    r->sender = trp_sender(ctx);
    err = request_prepare(p, r, &reason);
    if (err != TRP_OK) {
        request_fail(ctx, p, r, err, reason);
        return;
    }
    *p->last = r;
    p->last = &r->next;
    p->waiting++;
    send_next(ctx, p);
}

static trp_err
producer_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    producer *p = state;
    if (trp_msg_held(msg, &trpi_endpoint_send_type) != NULL) {
        on_send(ctx, p, msg);
    } else if (p->e.err != TRP_OK) {
        return TRP_EUNHANDLED; /* it is stopping */
    } else if (p->e.scheme->receive != NULL && p->e.scheme->receive(ctx, &p->e, msg)) {
        send_next(ctx, p);
    } else if (trp_msg_is(msg, &trp_endpoint_await_type)) {
        trpi_endpoint_await(ctx, &p->e, msg);
    } else {
        return TRP_EUNHANDLED;
    }
    return TRP_OK;
}

static trp_err
producer_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    producer *p = state;
    trpi_endpoint *e = &p->e;
    p->last = &p->first;
    e->err = trpi_endpoint_begin(ctx, e, args, true);
    e->err = e->err == TRP_OK ? e->scheme->produce(ctx, e) : e->err;
    if (e->err == TRP_OK) {
        p->slots_count = e->scheme->parallel != NULL ? e->scheme->parallel(e) : 1;
        p->sending = trpi_alloc(p->slots_count * sizeof(request *));
        e->err = p->sending == NULL ? TRP_ENOMEM : TRP_OK;
    }
    trpi_endpoint_begun(ctx, e);
    return TRP_OK;
}

static void
producer_post_stop(trp_ctx *ctx, void *state)
{
    producer *p = state;
    trpi_endpoint *e = &p->e;
    static const char *const reason = "the endpoint was closed; the message may have been sent";
    if (e->scheme != NULL && e->scheme->stop != NULL) {
        e->scheme->stop(ctx, e);
    }
    for (uint32_t i = 0; p->sending != NULL && i < p->slots_count; i++) {
        if (p->sending[i] != NULL) {
            request_fail(ctx, p, p->sending[i], TRP_ECLOSED, reason);
        }
    }
    trpi_free(p->sending);
    p->sending = NULL;
    while (p->first != NULL) {
        request_fail(ctx, p, request_take(p), TRP_ECLOSED, reason);
    }
    trpi_endpoint_ended(ctx, e);
}

const trp_behaviour trpi_producer_behaviour = { .size = sizeof(trp_behaviour),
                                                .name = "endpoint-producer",
                                                .version = 1,
                                                .state_bytes = sizeof(producer),
                                                .receive = producer_receive,
                                                .pre_start = producer_pre_start,
                                                .post_stop = producer_post_stop };
