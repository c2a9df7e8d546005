/* scheme_actor.c - actor:PATH, an actor of this system as an endpoint: it is told what is produced,
 * as a handler is told what is consumed.
 *
 * Shape.   send -> resolve -> message -> the actor; with reply=1 -> reply, ack, fail -> finish()
 * Must hold.
 *   scheme-actor-A1  A word of the actor about a message whose time is over changes nothing.
 * Limits.  parallel; timeout_ms.
 * Tests.   tests/unit/endpoint/actor_test.c
 * Sources. CAM-09
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "endpoint/endpoint.h"

enum { PARALLEL = 64, PARALLEL_MOST = 4096, ALARM_KEYS = 16 };

typedef struct told {
    bool used;
    uint32_t turn;
    trp_bytes body;
    trp_endpoint_header *headers;
    uint32_t headers_count;
} told;

typedef struct route {
    uint32_t replies, parallel;
    told *tolds;
} route;

static trp_err
route_read(const trpi_uri *uri, route *r, char reason[TRP_ENDPOINT_REASON_BYTES])
{
    r->replies = 0;
    r->parallel = PARALLEL;
    trp_err err = trpi_uri_number(uri, "reply", 0, 1, &r->replies, reason);
    err = err == TRP_OK ? trpi_uri_number(uri, "parallel", 1, PARALLEL_MOST, &r->parallel, reason)
                        : err;
    if (err == TRP_OK && (uri->path[0] != '/' || strpbrk(uri->path, "*?") != NULL)) {
        (void)snprintf(reason, TRP_ENDPOINT_REASON_BYTES,
                       "actor: needs the path of one actor of this system, actor:/user/NAME");
        err = TRP_EINVAL;
    }
    return err;
}

static trp_err
route_check(const trpi_uri *uri, char ret_reason[TRP_ENDPOINT_REASON_BYTES])
{
    route r;
    return route_read(uri, &r, ret_reason);
}

static trp_err
route_produce(trp_ctx *ctx, trpi_endpoint *e)
{
    route *r = trpi_alloc(sizeof *r);
    (void)ctx;
    if (r == NULL) {
        return TRP_ENOMEM;
    }
    e->state = r;
    trp_err err = route_read(&e->uri, r, e->reason);
    r->tolds = err == TRP_OK ? trpi_alloc(r->parallel * sizeof *r->tolds) : NULL;
    return err == TRP_OK && r->tolds == NULL ? TRP_ENOMEM : err;
}

static uint32_t
route_parallel(const trpi_endpoint *e)
{
    return ((const route *)e->state)->parallel;
}

static void
told_clear(told *t)
{
    trp_bytes_unref(&t->body);
    trpi_free(t->headers);
    t->headers = NULL;
    t->used = false;
}

static void
told_finish(trp_ctx *ctx, trpi_endpoint *e, uint32_t slot, trp_err err, const char *reason,
            const trpi_endpoint_send *reply)
{
    const route *r = e->state;
    trp_timer_cancel(ctx, ALARM_KEYS + slot);
    told_clear(&r->tolds[slot]);
    trpi_producer_finish(ctx, e, slot, err, reason, reply != NULL ? &reply->body : NULL,
                         reply != NULL ? reply->headers : NULL,
                         reply != NULL ? reply->headers_count : 0);
}

static uint64_t
exchange_of(uint32_t slot, uint32_t turn)
{
    return (uint64_t)turn << 32 | (slot + 1);
}

/* The slot of an exchange that is on its way; NULL: it is over. scheme-actor-A1 */
static told *
told_find(const route *r, uint64_t exchange)
{
    uint64_t slot = (exchange & UINT32_MAX) - 1;
    told *t = slot < r->parallel ? &r->tolds[slot] : NULL;
    return t != NULL && t->used && t->turn == exchange >> 32 ? t : NULL;
}

/* The actor is known, or there is none. */
static trp_err
on_resolved(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    trpi_endpoint *e = state;
    const route *r = e->state;
    uint64_t exchange = (uint64_t)(uintptr_t)arg;
    const told *t = told_find(r, exchange);
    trp_msg *msg;
    if (t == NULL) {
        return TRP_OK;
    }
    uint32_t slot = (uint32_t)(t - r->tolds);
    trp_ref to = err == TRP_OK && reply != NULL && trp_msg_is(reply, &trp_actor_identity_type)
                     ? ((const trp_actor_identity *)trp_msg_payload(reply))->ref
                     : (trp_ref)TRP_REF_NONE;
    if (trp_ref_is_none(to)) {
        told_finish(ctx, e, slot, err == TRP_OK ? TRP_ENOENT : err, "no actor has this path", NULL);
        trpi_producer_go_on(ctx, e);
        return TRP_OK;
    }
    err = trpi_endpoint_message_bare(r->replies != 0 ? exchange : 0, t->body, t->headers,
                                     t->headers_count, &msg);
    if (err == TRP_OK) {
        trp_send(ctx, to, msg);
    }
    if (err != TRP_OK || r->replies == 0) {
        told_finish(ctx, e, slot, err, "no memory for the message", NULL);
        trpi_producer_go_on(ctx, e);
    }
    return TRP_OK;
}

static void
route_send(trp_ctx *ctx, trpi_endpoint *e, uint32_t slot, const trpi_endpoint_send *send)
{
    const route *r = e->state;
    told *t = &r->tolds[slot];
    trpi_assert(!t->used);
    t->turn = trpi_endpoint_turn();
    t->body = trp_bytes_ref(send->body);
    t->used = true;
    t->headers_count = send->headers_count;
    trpi_endpoint_slot at = { slot, t->turn };
    trp_err err = trpi_endpoint_headers_copy(send->headers, send->headers_count, &t->headers);
    err = err == TRP_OK ? trp_timer_once(ctx, ALARM_KEYS + slot, e->args.options.timeout_ms,
                                         &trpi_endpoint_alarm_type, &at, sizeof at)
                        : err;
    err = err == TRP_OK ? trp_resolve(ctx, e->uri.path, e->args.options.timeout_ms, on_resolved,
                                      (void *)(uintptr_t)exchange_of(slot, t->turn))
                        : err;
    if (err != TRP_OK) {
        told_finish(ctx, e, slot, err, "the actor cannot be looked up", NULL);
    }
}

static bool
route_receive(trp_ctx *ctx, trpi_endpoint *e, const trp_msg *msg)
{
    const route *r = e->state;
    const trpi_endpoint_send *reply = trp_msg_held(msg, &trpi_endpoint_reply_type);
    const told *t;
    if (reply != NULL) {
        t = told_find(r, reply->ack);
        if (t != NULL) {
            told_finish(ctx, e, (uint32_t)(t - r->tolds), TRP_OK, "", reply);
        }
    } else if (trp_msg_is(msg, &trpi_endpoint_verdict_type)) {
        const trpi_endpoint_verdict *v = trp_msg_payload(msg);
        t = told_find(r, v->exchange);
        if (t != NULL) {
            told_finish(ctx, e, (uint32_t)(t - r->tolds), v->failed != 0 ? TRP_EFAILED : TRP_OK,
                        v->reason, NULL);
        }
    } else if (trp_msg_is(msg, &trpi_endpoint_alarm_type)) {
        const trpi_endpoint_slot *at = trp_msg_payload(msg);
        t = told_find(r, exchange_of(at->slot, at->turn));
        if (t != NULL) {
            told_finish(ctx, e, at->slot, TRP_ETIMEDOUT, "the actor did not answer in time", NULL);
        }
    } else {
        return false;
    }
    return true;
}

static void
route_stop(trp_ctx *ctx, trpi_endpoint *e)
{
    route *r = e->state;
    (void)ctx;
    if (r != NULL) {
        for (uint32_t i = 0; r->tolds != NULL && i < r->parallel; i++) {
            told_clear(&r->tolds[i]);
        }
        trpi_free(r->tolds);
        trpi_free(r);
        e->state = NULL;
    }
}

static const char *const options[] = { "reply", "parallel", NULL };
const trpi_scheme trpi_scheme_actor = { .name = "actor",
                                        .producer_options = options,
                                        .check = route_check,
                                        .produce = route_produce,
                                        .stop = route_stop,
                                        .send = route_send,
                                        .receive = route_receive,
                                        .parallel = route_parallel };
