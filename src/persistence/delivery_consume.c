/* delivery_consume.c - the consumer controller: feeds the engine, and the consumer.
 *
 * States. Without a stream it registers every resend_ms, by ref or by path; with one it reminds
 *         the producer of itself when that was silent for TRPI_REMIND_TICKS ticks.
 * Tests.  tests/unit/persistence/delivery_test.c, tests/sim/delivery_test.c
 */
#include <string.h>

#include <troupe/log.h>
#include <troupe/serialization.h>
#include <troupe/system.h>

#include "actor/actor.h"
#include "base/sized.h"
#include "persistence/delivery.h"
#include "persistence/delivery_consumer.h"

#define TRPI_REMIND_TICKS 10u

typedef struct consumer_args {
    trp_ref consumer, producer; /* producer: none while it is looked for by path */
    bool has_path;
    uint32_t window, ahead, resend_ms;
    char path[TRP_PATH_BYTES_MAX + 1];
} consumer_args;

typedef struct consumer {
    consumer_args args;
    trpi_delivery_consumer engine;
    trp_ref producer; /* that has opened the stream */
    uint64_t nonce;
    uint32_t silent_ticks;
    trp_ctx *ctx; /* during a turn */
} consumer;

enum { TICK_KEY = 1 };

/* ---- what the engine does -------------------------------------------------------------------- */

static void
request_tell(void *arg, const trpi_delivery_request *request)
{
    consumer *c = arg;

    trp_tell(c->ctx, c->producer, &trpi_delivery_request_type, request, sizeof *request);
}

typedef struct sending {
    trp_ref to;
    trp_msg *msg;
} sending;

static trp_err
message_send(trp_ctx *ctx, void *arg)
{
    const sending *s = arg;

    trpi_send_as(ctx, s->to, trp_self(ctx), trpi_trail_put(ctx, s->msg));
    return TRP_OK;
}

static void
message_deliver(void *arg, uint64_t number, const void *data, uint32_t bytes)
{
    consumer *c = arg;
    trp_system *system = trp_ctx_system(c->ctx);
    trp_msg *msg = NULL;
    trp_err err = trp_deserialize(system, data, bytes, &msg);

    if (err == TRP_OK) {
        const trp_trace *trace = &c->engine.delivering->trace;
        sending s = { c->args.consumer, msg };

        trpi_in_attempt(c->ctx, trace, trace->attempt, message_send, &s);
        return;
    }
    trp_log(c->ctx, TRP_LOG_WARNING,
            "a message cannot be read here, it is a dead letter and counts as confirmed "
            "number=%llu bytes=%u err=%s",
            (unsigned long long)number, bytes, trp_err_name(err));
    trpi_dead_letter(system, c->producer, c->args.consumer, TRP_DEAD_NOT_ENCODABLE, NULL, bytes);
    trp_tell_as(c->ctx, trp_self(c->ctx), c->args.consumer, &trp_delivery_confirm_type, NULL, 0);
}

/* ---- registration ---------------------------------------------------------------------------- */

static trp_err
register_now(trp_ctx *ctx, consumer *c)
{
    trpi_delivery_register message = { trp_self(ctx), c->nonce };

    if (!c->args.has_path) {
        trp_tell(ctx, c->args.producer, &trpi_delivery_register_type, &message, sizeof message);
        return TRP_OK;
    }
    return trp_select_tell(ctx, c->args.path, &trpi_delivery_register_type, &message,
                           sizeof message);
}

/* The stream is over: register anew. */
static trp_err
stream_lost(trp_ctx *ctx, consumer *c)
{
    trpi_delivery_stream_closed(&c->engine);
    if (!trp_ref_is_none(c->producer)) {
        trp_unwatch(ctx, c->producer);
        c->producer = (trp_ref)TRP_REF_NONE;
    }
    c->nonce = trpi_world_random(trpi_system_world(trp_ctx_system(ctx)));
    return register_now(ctx, c);
}

static trp_err
opened_take(trp_ctx *ctx, consumer *c, const trpi_delivery_opened *opened)
{
    if (opened->nonce != c->nonce || opened->stream == 0 || trp_ref_is_none(trp_sender(ctx))) {
        return TRP_OK;
    }
    if (!trp_ref_equal(c->producer, trp_sender(ctx))) {
        if (!trp_ref_is_none(c->producer)) {
            return TRP_OK; /* two at one path: the first counts */
        }
        c->producer = trp_sender(ctx);
        trp_err err = trp_watch(ctx, c->producer);
        if (err != TRP_OK) {
            return err;
        }
    }
    trpi_delivery_stream_opened(&c->engine, opened->stream, opened->producer, opened->is_one != 0);
    return TRP_OK;
}

static trp_err
timer_rang(trp_ctx *ctx, consumer *c)
{
    if (c->engine.stream == 0) {
        return register_now(ctx, c);
    }
    if (++c->silent_ticks >= TRPI_REMIND_TICKS) {
        c->silent_ticks = 0;
        trpi_delivery_remind(&c->engine);
    }
    return TRP_OK;
}

/* ---- the actor ------------------------------------------------------------------------------- */

static trp_err
frame_take(trp_ctx *ctx, consumer *c, const trp_msg *msg)
{
    const uint8_t *bytes = trp_msg_payload(msg);
    size_t count = trp_msg_bytes(msg);
    trpi_delivery_head head;

    if (count < TRPI_DELIVERY_HEAD_BYTES || !trp_ref_equal(trp_sender(ctx), c->producer)) {
        return TRP_OK;
    }
    c->silent_ticks = 0;
    trpi_delivery_head_get(&head, bytes);
    trpi_trail_get(ctx, &c->engine.trace);
    trp_err err = trpi_delivery_framed(&c->engine, &head, bytes + TRPI_DELIVERY_HEAD_BYTES,
                                       count - TRPI_DELIVERY_HEAD_BYTES);
    if (err == TRP_EPROTO || err == TRP_EMSGSIZE) {
        trp_log(ctx, TRP_LOG_ERROR,
                "the producer sends what cannot be taken, its stream is opened anew stream=%llu "
                "frame=%llu err=%s",
                (unsigned long long)head.stream, (unsigned long long)head.seq, trp_err_name(err));
        trpi_delivery_stream_closed(&c->engine); /* the next tick registers */
        c->nonce = trpi_world_random(trpi_system_world(trp_ctx_system(ctx)));
    }
    return TRP_OK; /* out of memory: as if it were lost */
}

static trp_err
actor_ended(trp_ctx *ctx, consumer *c, trp_ref who)
{
    if (trp_ref_equal(who, c->args.consumer) ||
        (trp_ref_equal(who, c->producer) && !c->args.has_path)) {
        trp_stop(ctx, trp_self(ctx));
        return TRP_OK;
    }
    return trp_ref_equal(who, c->producer) ? stream_lost(ctx, c) : TRP_OK;
}

static trp_err
consumer_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    consumer *c = state;
    const trp_terminated *ended = trp_msg_as(msg, &trp_terminated_type);
    const trpi_delivery_opened *opened = trp_msg_as(msg, &trpi_delivery_opened_type);
    const trpi_delivery_closed *closed = trp_msg_as(msg, &trpi_delivery_closed_type);

    c->ctx = ctx;
    if (trp_msg_is(msg, &trpi_delivery_frame_type)) {
        return frame_take(ctx, c, msg);
    }
    if (trp_msg_is(msg, &trp_delivery_confirm_type)) {
        return trp_ref_equal(trp_sender(ctx), c->args.consumer) && trpi_delivery_confirm(&c->engine)
                   ? TRP_OK
                   : TRP_EUNHANDLED;
    }
    if (trp_msg_is(msg, &trpi_delivery_tick_type)) {
        return timer_rang(ctx, c);
    }
    if (opened != NULL) {
        return opened_take(ctx, c, opened);
    }
    if (closed != NULL) {
        return closed->stream == c->engine.stream && closed->stream != 0 &&
                       trp_ref_equal(trp_sender(ctx), c->producer)
                   ? stream_lost(ctx, c)
                   : TRP_OK;
    }
    if (ended != NULL) {
        return actor_ended(ctx, c, ended->ref);
    }
    return TRP_EUNHANDLED;
}

static trp_err
consumer_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    consumer *c = state;

    memcpy(&c->args, trp_msg_payload(args), sizeof c->args);
    c->ctx = ctx;
    c->engine.in = (trpi_delivery_in){ c, request_tell, message_deliver };
    c->engine.window = c->args.window;
    c->engine.ahead = c->args.ahead;
    c->engine.message_bytes_max = TRP_DELIVERY_MESSAGE_BYTES_MAX;
    trpi_delivery_consumer_init(&c->engine);
    trp_err err = trp_watch(ctx, c->args.consumer);
    if (err == TRP_OK) {
        err = trp_timer_repeat(ctx, TICK_KEY, c->args.resend_ms, c->args.resend_ms,
                               &trpi_delivery_tick_type, NULL, 0);
    }
    return err == TRP_OK ? stream_lost(ctx, c) : err;
}

static void
consumer_post_stop(trp_ctx *ctx, void *state)
{
    consumer *c = state;

    c->ctx = ctx;
    if (c->engine.confirmed != c->engine.told_confirmed) {
        trpi_delivery_remind(&c->engine); /* what is confirmed is not delivered again */
    }
    trpi_delivery_consumer_fini(&c->engine);
}

static const trp_behaviour consumer_behaviour = { .size = sizeof(trp_behaviour),
                                                  .name = "delivery-consumer",
                                                  .version = 1,
                                                  .state_bytes = sizeof(consumer),
                                                  .receive = consumer_receive,
                                                  .pre_start = consumer_pre_start,
                                                  .post_stop = consumer_post_stop };

/* ---- spawning -------------------------------------------------------------------------------- */

static bool
options_fit(const trp_delivery_consumer_options *o)
{
    bool path = o->producer_path != NULL;

    return !trp_ref_is_none(o->consumer) && o->consumer.node == TRPI_NODE_SELF &&
           trp_ref_is_none(o->producer) == path &&
           (!path ||
            (o->producer_path[0] != '\0' && strlen(o->producer_path) <= TRP_PATH_BYTES_MAX)) &&
           o->window <= TRP_DELIVERY_WINDOW_MAX && o->ahead <= TRP_DELIVERY_AHEAD_MAX &&
           o->resend_ms <= TRP_DELIVERY_RESEND_MS_MAX;
}

static trp_err
consumer_spawn(trp_ctx *ctx, trp_system *system, const trp_delivery_consumer_options *options,
               trp_ref *ret_ref)
{
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    trp_delivery_consumer_options given;
    consumer_args args;

    if (options == NULL || !TRPI_SIZED_TAKE(options, &given, zero) || !options_fit(options)) {
        return TRP_EINVAL;
    }
    trp_err err = trp_protocol_register(&trp_delivery_protocol);
    if (err != TRP_OK) {
        return err;
    }
    memset(&args, 0, sizeof args);
    args.consumer = options->consumer;
    args.producer = options->producer;
    args.has_path = options->producer_path != NULL;
    args.window = options->window != 0 ? options->window : TRP_DELIVERY_WINDOW_DEFAULT;
    args.ahead = options->ahead != 0 ? options->ahead : 1;
    args.resend_ms = options->resend_ms != 0 ? options->resend_ms : TRP_DELIVERY_RESEND_MS_DEFAULT;
    if (args.has_path) {
        memcpy(args.path, options->producer_path, strlen(options->producer_path));
    }
    spawn.name = options->name;
    spawn.dispatcher = options->dispatcher;
    spawn.args_type = &trp_bytes_type;
    spawn.args = &args;
    spawn.args_bytes = sizeof args;
    spawn.node = TRP_NODE_HERE;
    return ctx != NULL ? trp_spawn(ctx, &consumer_behaviour, &spawn, ret_ref)
                       : trp_system_spawn(system, &consumer_behaviour, &spawn, ret_ref);
}

trp_err
trp_delivery_consumer_spawn(trp_ctx *ctx, const trp_delivery_consumer_options *options,
                            trp_ref *ret_ref)
{
    return ctx == NULL ? TRP_EINVAL : consumer_spawn(ctx, NULL, options, ret_ref);
}

trp_err
trp_system_delivery_consumer_spawn(trp_system *system, const trp_delivery_consumer_options *options,
                                   trp_ref *ret_ref)
{
    return system == NULL ? TRP_EINVAL : consumer_spawn(NULL, system, options, ret_ref);
}
