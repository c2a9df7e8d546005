/* delivery_produce.c - the producer controller: feeds the engine, grants, and reports.
 *
 * Must hold.
 *   delivery-produce-P1  With a producer actor no message is refused that was granted; grants and
 *       kept messages together are at most messages_max.
 *   delivery-produce-P2  Messages that are kept when it ends are dead letters, each once.
 * Limits. Those of troupe/delivery.h.
 * Tests.  tests/unit/persistence/delivery_test.c, tests/sim/delivery_test.c
 */
#include <string.h>

#include <troupe/log.h>
#include <troupe/serialization.h>
#include <troupe/system.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "base/sized.h"
#include "persistence/delivery.h"

typedef struct producer_args {
    trp_ref producer;
    bool workers, confirms;
    uint32_t messages_max, bytes_max, part_bytes, resend_ms;
} producer_args;

typedef struct producer {
    producer_args args;
    trpi_delivery_producer engine;
    uint64_t id;     /* of this life */
    uint64_t number; /* of the last message */
    uint32_t granted;
    bool ticks;   /* the timer runs */
    bool full;    /* of workers, and that was logged */
    trp_ctx *ctx; /* during a turn */
} producer;

enum { TICK_KEY = 1 };

/* ---- what the engine does -------------------------------------------------------------------- */

static void
frame_tell(void *arg, trp_ref to, const trpi_delivery_head *head, const void *data, size_t bytes)
{
    producer *p = arg;
    trp_msg *msg;
    void *payload;

    if (trp_msg_new(&trpi_delivery_frame_type, TRPI_DELIVERY_HEAD_BYTES + bytes, &msg, &payload) !=
        TRP_OK) {
        return; /* as if the wire had lost it */
    }
    trpi_delivery_head_put(head, payload);
    if (bytes != 0) {
        memcpy((uint8_t *)payload + TRPI_DELIVERY_HEAD_BYTES, data, bytes);
    }
    trp_send(p->ctx, to, msg);
}

static void
confirmed_tell(void *arg, uint64_t number)
{
    producer *p = arg;
    trp_delivery_confirmed confirmed = { number };

    if (p->args.confirms && !trp_ref_is_none(p->args.producer)) {
        trp_tell(p->ctx, p->args.producer, &trp_delivery_confirmed_type, &confirmed,
                 sizeof confirmed);
    }
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Grant what there is room for, half of it at once at least (delivery-produce-P1). */
static void
grants_tell(trp_ctx *ctx, producer *p)
{
    uint32_t room = p->args.messages_max - p->engine.messages;
    trp_delivery_request_next next = { room > p->granted ? room - p->granted : 0 };

    if (trp_ref_is_none(p->args.producer) || next.messages == 0 ||
        p->engine.bytes >= p->args.bytes_max) {
        return;
    }
    if (p->engine.bytes >= p->args.bytes_max / 2) {
        next.messages = p->granted == 0 ? 1 : 0;
    } else if (next.messages < (p->args.messages_max + 1) / 2 && p->granted != 0) {
        return;
    }
    if (next.messages != 0) {
        p->granted += next.messages;
        trp_tell(ctx, p->args.producer, &trp_delivery_request_next_type, &next, sizeof next);
    }
}

static trp_err
ticks_begin(trp_ctx *ctx, producer *p)
{
    if (p->ticks) {
        return TRP_OK;
    }
    p->ticks = true;
    return trp_timer_once(ctx, TICK_KEY, p->args.resend_ms, &trpi_delivery_tick_type, NULL, 0);
}

static void
message_lose(trp_ctx *ctx, const trp_msg *msg, trp_dead_reason reason)
{
    trpi_dead_letter_msg(trp_ctx_system(ctx), trp_self(ctx), msg, reason);
}

static trp_err
message_take(trp_ctx *ctx, producer *p, const trp_msg *msg)
{
    bool by_grant = !trp_ref_is_none(p->args.producer);
    trp_msg *data = NULL;

    if (by_grant && p->granted == 0) {
        message_lose(ctx, msg, TRP_DEAD_MAILBOX_FULL);
        return TRP_OK;
    }
    p->granted -= by_grant;
    trp_err err = trp_serialize(trp_ctx_system(ctx), trp_msg_type(msg), trp_msg_payload(msg),
                                trp_msg_bytes(msg), &data);
    if (err != TRP_OK || trp_msg_bytes(data) > TRP_DELIVERY_MESSAGE_BYTES_MAX) {
        message_lose(ctx, msg,
                     err == TRP_OK || err == TRP_EMSGSIZE ? TRP_DEAD_TOO_LARGE
                     : err == TRP_ENOMEM                  ? TRP_DEAD_NO_MEMORY
                                                          : TRP_DEAD_NOT_ENCODABLE);
    } else {
        err = trpi_delivery_put(&p->engine, trp_now_ms(ctx), p->number + 1, trp_msg_payload(data),
                                (uint32_t)trp_msg_bytes(data));
        p->number += err == TRP_OK;
        if (err != TRP_OK) {
            message_lose(ctx, msg, err == TRP_EAGAIN ? TRP_DEAD_MAILBOX_FULL : TRP_DEAD_NO_MEMORY);
        }
    }
    trpi_msg_drop(data);
    grants_tell(ctx, p);
    return ticks_begin(ctx, p);
}

/* ---- consumers ------------------------------------------------------------------------------- */

static trp_err
register_take(trp_ctx *ctx, producer *p, const trpi_delivery_register *reg)
{
    trpi_delivery_opened opened = { reg->nonce, 0, p->id, p->args.workers ? 0u : 1u, 0 };
    trp_err err =
        trpi_delivery_join(&p->engine, trp_now_ms(ctx), reg->consumer, reg->nonce, &opened.stream);

    if (err == TRP_ELIMIT && !p->full) {
        p->full = true;
        trp_log(ctx, TRP_LOG_WARNING, "no more workers, new ones wait until one ends max=%u",
                TRP_DELIVERY_WORKERS_MAX);
    }
    if (err != TRP_OK) {
        return TRP_OK; /* it registers again */
    }
    err = trp_watch(ctx, reg->consumer);
    if (err == TRP_OK) {
        trp_tell(ctx, reg->consumer, &trpi_delivery_opened_type, &opened, sizeof opened);
    }
    return err;
}

static void
request_take(trp_ctx *ctx, producer *p, const trpi_delivery_request *request)
{
    trpi_delivery_closed closed = { request->stream };

    if (!trpi_delivery_requested(&p->engine, trp_now_ms(ctx), request)) {
        trp_reply(ctx, &trpi_delivery_closed_type, &closed, sizeof closed);
        return;
    }
    grants_tell(ctx, p);
}

static trp_err
producer_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    producer *p = state;
    const trpi_delivery_request *request = trp_msg_as(msg, &trpi_delivery_request_type);
    const trpi_delivery_register *reg = trp_msg_as(msg, &trpi_delivery_register_type);
    const trp_terminated *ended = trp_msg_as(msg, &trp_terminated_type);

    p->ctx = ctx;
    if (request != NULL) {
        request_take(ctx, p, request);
        return TRP_OK;
    }
    if (reg != NULL) {
        return register_take(ctx, p, reg);
    }
    if (ended != NULL) {
        p->full = false;
        trpi_delivery_gone(&p->engine, trp_now_ms(ctx), ended->ref);
        if (trp_ref_equal(ended->ref, p->args.producer)) {
            p->args.producer = (trp_ref)TRP_REF_NONE; /* what it told is delivered yet */
        }
        return TRP_OK;
    }
    if (trp_msg_is(msg, &trpi_delivery_tick_type)) {
        p->ticks = false;
        return trpi_delivery_tick(&p->engine, trp_now_ms(ctx)) ? ticks_begin(ctx, p) : TRP_OK;
    }
    return message_take(ctx, p, msg);
}

static trp_err
producer_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    producer *p = state;
    trpi_world *world = trpi_system_world(trp_ctx_system(ctx));

    memcpy(&p->args, trp_msg_payload(args), sizeof p->args);
    p->ctx = ctx;
    p->id = trpi_world_random(world);
    p->engine.out = (trpi_delivery_out){ p, frame_tell, confirmed_tell };
    p->engine.workers = p->args.workers;
    p->engine.part_bytes = p->args.part_bytes;
    p->engine.messages_max = p->args.messages_max;
    p->engine.bytes_max =
        trp_ref_is_none(p->args.producer) ? p->args.bytes_max : UINT64_MAX; /* grants bound it */
    p->engine.streams_max = TRP_DELIVERY_WORKERS_MAX;
    p->engine.resend_ms = p->args.resend_ms;
    p->engine.stream_last = trpi_world_random(world) >> 16; /* unlike those of other lives */
    trpi_delivery_producer_init(&p->engine);
    if (!trp_ref_is_none(p->args.producer)) {
        trp_err err = trp_watch(ctx, p->args.producer);

        if (err != TRP_OK) {
            return err;
        }
    }
    grants_tell(ctx, p);
    return TRP_OK;
}

static void
entries_lose(trp_ctx *ctx, const trpi_delivery_entry *e)
{
    trp_system *system = trp_ctx_system(ctx);

    for (; e != NULL; e = e->next) {
        trp_msg *msg = NULL;

        if (trp_deserialize(system, e->data, e->bytes, &msg) == TRP_OK) {
            trpi_dead_letter_msg(system, trp_self(ctx), msg, TRP_DEAD_STOPPED);
            trpi_msg_drop(msg);
        } else {
            trpi_dead_letter(system, (trp_ref)TRP_REF_NONE, trp_self(ctx), TRP_DEAD_STOPPED, NULL,
                             e->bytes);
        }
    }
}

/* delivery-produce-P2; before a restart, too (pre_restart's default). */
static void
producer_post_stop(trp_ctx *ctx, void *state)
{
    producer *p = state;

    for (const trpi_delivery_stream *s = p->engine.streams; s != NULL; s = s->next) {
        entries_lose(ctx, s->first);
    }
    entries_lose(ctx, p->engine.waiting);
    trpi_delivery_producer_fini(&p->engine);
}

static const trp_behaviour producer_behaviour = { .size = sizeof(trp_behaviour),
                                                  .name = "delivery-producer",
                                                  .version = 1,
                                                  .state_bytes = sizeof(producer),
                                                  .receive = producer_receive,
                                                  .pre_start = producer_pre_start,
                                                  .post_stop = producer_post_stop };

/* ---- spawning -------------------------------------------------------------------------------- */

static uint32_t
or_default(uint32_t given, uint32_t otherwise)
{
    return given != 0 ? given : otherwise;
}

static bool
options_fit(const trp_delivery_producer_options *o)
{
    return o->workers <= 1 && o->confirms <= 1 && o->messages_max <= TRP_DELIVERY_MESSAGES_MAX &&
           o->part_bytes <= TRP_DELIVERY_PART_BYTES_MAX &&
           o->resend_ms <= TRP_DELIVERY_RESEND_MS_MAX;
}

static trp_err
producer_spawn(trp_ctx *ctx, trp_system *system, const trp_delivery_producer_options *options,
               trp_ref *ret_ref)
{
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    trp_delivery_producer_options given;
    producer_args args;

    if (options == NULL || !TRPI_SIZED_TAKE(options, &given, resend_ms) || !options_fit(options)) {
        return TRP_EINVAL;
    }
    trp_err err = trp_protocol_register(&trp_delivery_protocol);
    if (err != TRP_OK) {
        return err;
    }
    memset(&args, 0, sizeof args);
    args.producer = options->producer;
    args.workers = options->workers != 0;
    args.confirms = options->confirms != 0;
    args.messages_max = or_default(options->messages_max, TRP_DELIVERY_MESSAGES_DEFAULT);
    args.bytes_max = or_default(options->bytes_max, TRP_DELIVERY_BYTES_DEFAULT);
    args.part_bytes = or_default(options->part_bytes, TRP_DELIVERY_PART_BYTES_DEFAULT);
    args.resend_ms = or_default(options->resend_ms, TRP_DELIVERY_RESEND_MS_DEFAULT);
    spawn.name = options->name;
    spawn.dispatcher = options->dispatcher;
    spawn.args_type = &trp_bytes_type;
    spawn.args = &args;
    spawn.args_bytes = sizeof args;
    spawn.node = TRP_NODE_HERE;
    return ctx != NULL ? trp_spawn(ctx, &producer_behaviour, &spawn, ret_ref)
                       : trp_system_spawn(system, &producer_behaviour, &spawn, ret_ref);
}

trp_err
trp_delivery_producer_spawn(trp_ctx *ctx, const trp_delivery_producer_options *options,
                            trp_ref *ret_ref)
{
    return ctx == NULL ? TRP_EINVAL : producer_spawn(ctx, NULL, options, ret_ref);
}

trp_err
trp_system_delivery_producer_spawn(trp_system *system, const trp_delivery_producer_options *options,
                                   trp_ref *ret_ref)
{
    return system == NULL ? TRP_EINVAL : producer_spawn(NULL, system, options, ret_ref);
}
