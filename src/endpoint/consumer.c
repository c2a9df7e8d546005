/* consumer.c - an actor that tells its handler what arrives at an endpoint.
 *
 * Shape.   timer, room -> scheme.poll() -> deliver() -> slot, message -> handler
 *          done: told (without acknowledges), ack, fail, time is over -> scheme.settle() -> slot
 *          A slot is taken until its message is settled, and without acknowledges until it is
 *          freed, so that a handler that is behind stops the scheme.
 * Must hold.
 *   consumer-C1  Each delivered message is settled once, with its token.
 *   consumer-C2  At most pending_max slots are taken.
 *   consumer-C3  A verdict, an alarm or a freed message has the turn of its slot; with another turn
 *       it is of an earlier message, and changes nothing.
 * Limits.  pending_max, message_bytes_max.
 * Tests.   tests/unit/endpoint/consumer_test.c
 * Sources. CAM-01, -02, -03, -04, -06
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "endpoint/endpoint.h"

enum { FREE, TOLD, AWAITED }; /* of a slot: AWAITED: the handler acknowledges */
enum { POLL_KEY = 1, ALARM_KEYS = 16, BIND_MS = 50, BINDS = 10 };

typedef struct slot {
    uint32_t phase, turn;
    uint64_t token;
} slot;

typedef struct consumer {
    trpi_endpoint e; /* first */
    trpi_endpoint_back *back;
    slot *slots; /* pending_max of them */
    uint32_t taken;
    bool starved; /* poll() had more than there was room for */
} consumer;

static uint64_t
exchange_of(uint32_t number, uint32_t turn)
{
    return (uint64_t)turn << 32 | (number + 1);
}

uint32_t
trpi_consumer_room(const trpi_endpoint *e)
{
    const consumer *c = (const consumer *)(const void *)e;
    return e->args.options.pending_max - c->taken;
}

void
trpi_consumer_timer(trp_ctx *ctx, trpi_endpoint *e, uint32_t delay_ms, uint32_t interval_ms)
{
    (void)e;
    trp_err err = interval_ms == 0
                      ? trp_timer_once(ctx, POLL_KEY, delay_ms, &trpi_endpoint_poll_type, NULL, 0)
                      : trp_timer_repeat(ctx, POLL_KEY, delay_ms, interval_ms,
                                         &trpi_endpoint_poll_type, NULL, 0);
    if (err != TRP_OK) {
        trp_fail(ctx, (int32_t)err, "no timer for an endpoint");
    }
}

void
trpi_consumer_bound(trp_ctx *ctx, trpi_endpoint *e, const trp_io_address *local,
                    uint32_t interval_ms)
{
    char address[TRP_IO_ADDRESS_BYTES_MAX];
    e->listener = trp_sender(ctx);
    trp_err err = trp_watch(ctx, e->listener);
    (void)snprintf(e->reason, sizeof e->reason, "%.190s",
                   trp_io_address_text(local, address, sizeof address));
    if (interval_ms != 0) {
        trpi_consumer_timer(ctx, e, interval_ms, interval_ms);
    }
    trpi_endpoint_started(ctx, e, err);
}

void
trpi_consumer_not_bound(trp_ctx *ctx, trpi_endpoint *e, int error)
{
    if (error == EADDRINUSE && ++e->binds < BINDS) {
        trpi_consumer_timer(ctx, e, BIND_MS, 0);
    } else {
        trpi_endpoint_started(ctx, e,
                              trpi_endpoint_errno(e, error, "cannot listen at %s", e->uri.path));
    }
}

/* An actor that is watched has ended. */
static void
on_terminated(trp_ctx *ctx, consumer *c, const trp_msg *msg)
{
    trp_ref ref = ((const trp_terminated *)trp_msg_payload(msg))->ref;
    if (trp_ref_equal(ref, c->e.args.options.handler)) {
        trp_stop(ctx, trp_self(ctx));
    } else if (c->e.err == TRP_OK && trp_ref_equal(ref, c->e.listener)) {
        trp_fail(ctx, TRP_EIO, "the socket of %s has ended", c->e.args.uri);
    } else if (c->e.err == TRP_OK && c->e.scheme->receive != NULL &&
               c->e.scheme->receive(ctx, &c->e, msg)) {
        c->starved = c->e.scheme->poll(ctx, &c->e);
    }
}

static void
slot_free(trp_ctx *ctx, consumer *c, slot *s)
{
    trpi_assert(s->phase != FREE && c->taken > 0);
    s->phase = FREE;
    s->turn++;
    c->taken--;
    if (c->starved) {
        c->starved = c->e.scheme->poll(ctx, &c->e);
    }
}

/* consumer-C1 */
static void
message_settle(trp_ctx *ctx, trpi_endpoint *e, uint64_t exchange, uint64_t token, trp_err err,
               const char *reason, const trpi_endpoint_send *reply)
{
    trp_err own = e->scheme->settle != NULL ? e->scheme->settle(ctx, e, token, err, reply) : TRP_OK;
    if (err != TRP_OK || own != TRP_OK) {
        trpi_endpoint_error_tell(ctx, e, e->args.options.handler, 0, exchange,
                                 err != TRP_OK ? err : own, err != TRP_OK ? reason : e->reason);
    }
}

bool
trpi_consumer_deliver(trp_ctx *ctx, trpi_endpoint *e, uint64_t token, trp_bytes body,
                      const trp_endpoint_header *headers, uint32_t headers_count)
{
    consumer *c = (consumer *)(void *)e;
    const trp_endpoint_options *o = &e->args.options;
    bool waits = o->acknowledges != 0;
    uint32_t number = 0;
    trp_msg *msg;
    trpi_assert(trpi_consumer_room(e) > 0); /* consumer-C2 */
    while (c->slots[number].phase != FREE) {
        number++;
    }
    slot *s = &c->slots[number];
    uint64_t exchange = exchange_of(number, s->turn);
    trpi_endpoint_slot at = { number, s->turn };
    trp_err err = trpi_endpoint_message_new(e, waits ? exchange : 0, 0, body, headers,
                                            headers_count, waits ? NULL : c->back, at, &msg);
    if (err != TRP_OK) {
        message_settle(ctx, e, 0, token, err, "the message was not made, or not transformed", NULL);
        return false;
    }
    s->phase = waits ? AWAITED : TOLD;
    s->token = token;
    c->taken++;
    trp_send(ctx, o->handler, msg);
    if (!waits) {
        message_settle(ctx, e, 0, token, TRP_OK, "", NULL);
    } else if ((err = trp_timer_once(ctx, ALARM_KEYS + number, o->timeout_ms,
                                     &trpi_endpoint_alarm_type, &at, sizeof at)) != TRP_OK) {
        trp_fail(ctx, (int32_t)err, "no timer for an endpoint's message");
    }
    return true;
}

/* consumer-C3 */
static slot *
slot_find(consumer *c, uint64_t exchange, uint32_t phase)
{
    uint64_t number = (exchange & UINT32_MAX) - 1;
    slot *s = number < c->e.args.options.pending_max ? &c->slots[number] : NULL;
    return s != NULL && s->phase == phase && s->turn == exchange >> 32 ? s : NULL;
}

/* A handler's word about a message: done, failed, or a reply. */
static void
slot_settle(trp_ctx *ctx, consumer *c, uint64_t exchange, trp_err err, const char *reason,
            const trpi_endpoint_send *reply)
{
    slot *s = slot_find(c, exchange, AWAITED);
    if (s == NULL) {
        if (exchange != 0 || reply != NULL) { /* "ack 0" means nothing; a reply is lost */
            trpi_endpoint_error_tell(ctx, &c->e, trp_sender(ctx), 0, exchange, TRP_ESTATE,
                                     exchange != 0
                                         ? "the message was settled already, or its time is over"
                                         : "a reply needs a consumer that acknowledges");
        }
        return;
    }
    trp_timer_cancel(ctx, ALARM_KEYS + (uint64_t)(s - c->slots));
    message_settle(ctx, &c->e, exchange, s->token, err, reason, reply);
    slot_free(ctx, c, s);
}

static void
on_reply(trp_ctx *ctx, consumer *c, const trpi_endpoint_send *given)
{
    trpi_endpoint_send reply = *given;
    const char *reason = "the reply was not transformed";
    trp_err err = trpi_endpoint_outgoing(&c->e, given->body, &reply.body);
    if (err == TRP_OK && trp_bytes_length(reply.body) > c->e.args.options.message_bytes_max) {
        err = TRP_EMSGSIZE;
        reason = "the reply is longer than message_bytes_max";
    }
    slot_settle(ctx, c, given->ack, err, reason, err == TRP_OK ? &reply : NULL);
    trp_bytes_unref(&reply.body);
}

static void
on_poll(trp_ctx *ctx, consumer *c)
{
    c->starved = c->e.scheme->poll(ctx, &c->e);
}

static trp_err
consumer_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    consumer *c = state;
    slot *s;
    if (trp_msg_is(msg, &trp_terminated_type)) {
        on_terminated(ctx, c, msg);
    } else if (c->e.err != TRP_OK) {
        return TRP_EUNHANDLED; /* it is stopping */
    } else if (trp_msg_is(msg, &trpi_endpoint_poll_type)) {
        on_poll(ctx, c);
    } else if (trp_msg_is(msg, &trpi_endpoint_verdict_type)) {
        const trpi_endpoint_verdict *v = trp_msg_payload(msg);
        slot_settle(ctx, c, v->exchange, v->failed != 0 ? TRP_EFAILED : TRP_OK, v->reason, NULL);
    } else if (trp_msg_held(msg, &trpi_endpoint_reply_type) != NULL) {
        on_reply(ctx, c, trp_msg_held(msg, &trpi_endpoint_reply_type));
    } else if (c->e.scheme->receive != NULL && c->e.scheme->receive(ctx, &c->e, msg)) {
        if (c->e.err == TRP_OK && !c->e.starting) {
            on_poll(ctx, c);
        }
    } else if (trp_msg_is(msg, &trpi_endpoint_freed_type)) {
        const trpi_endpoint_slot *at = trp_msg_payload(msg);
        if ((s = slot_find(c, exchange_of(at->slot, at->turn), TOLD)) != NULL) {
            slot_free(ctx, c, s);
        }
    } else if (trp_msg_is(msg, &trpi_endpoint_alarm_type)) {
        const trpi_endpoint_slot *at = trp_msg_payload(msg);
        uint64_t exchange = exchange_of(at->slot, at->turn);
        if ((s = slot_find(c, exchange, AWAITED)) != NULL) {
            message_settle(ctx, &c->e, exchange, s->token, TRP_ETIMEDOUT,
                           "the message was not acknowledged in time", NULL);
            slot_free(ctx, c, s);
        }
    } else if (trp_msg_is(msg, &trp_endpoint_await_type)) {
        trpi_endpoint_await(ctx, &c->e, msg);
    } else {
        return TRP_EUNHANDLED;
    }
    return TRP_OK;
}

static trp_err
consumer_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    consumer *c = state;
    trpi_endpoint *e = &c->e;
    e->err = trpi_endpoint_begin(ctx, e, args, false);
    if (e->err == TRP_OK) {
        e->args.options.acknowledges = e->scheme->awaits ? 1 : e->args.options.acknowledges;
        c->back = trpi_endpoint_back_new(ctx);
        c->slots = trpi_alloc(e->args.options.pending_max * sizeof *c->slots);
        e->err = c->back == NULL || c->slots == NULL ? TRP_ENOMEM : TRP_OK;
        for (uint32_t i = 0; e->err == TRP_OK && i < e->args.options.pending_max; i++) {
            c->slots[i].turn = (uint32_t)trp_now_ns(ctx); /* not one of before a restart */
        }
        e->err = e->err == TRP_OK ? e->scheme->consume(ctx, e) : e->err;
    }
    trpi_endpoint_begun(ctx, e);
    return TRP_OK;
}

static void
consumer_post_stop(trp_ctx *ctx, void *state)
{
    consumer *c = state;
    trpi_endpoint *e = &c->e;
    if (e->scheme != NULL && e->scheme->stop != NULL) {
        e->scheme->stop(ctx, e);
    }
    trpi_endpoint_back_end(c->back);
    trpi_free(c->slots);
    c->back = NULL;
    c->slots = NULL;
    trpi_endpoint_ended(ctx, e);
}

const trp_behaviour trpi_consumer_behaviour = { .size = sizeof(trp_behaviour),
                                                .name = "endpoint-consumer",
                                                .version = 1,
                                                .state_bytes = sizeof(consumer),
                                                .receive = consumer_receive,
                                                .pre_start = consumer_pre_start,
                                                .post_stop = consumer_post_stop };
