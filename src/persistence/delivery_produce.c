/* delivery_produce.c - the producer controller: feeds the engine, grants, and reports.
 *
 * Must hold.
 *   delivery-produce-P1  With a producer actor no message is refused that was granted; grants and
 *       kept messages together are at most messages_max.
 *   delivery-produce-P2  Messages that are kept when it ends are dead letters, each once; with a
 *       journal they are in it.
 *   delivery-produce-P3  With a journal a message is sent when it is stored, and a confirmation is
 *       told when that is stored.
 *   delivery-produce-P4  Each time that a message of a trace is sent is an attempt in its trace;
 *       what is sent after a recovery is in none: a journal keeps no traces.
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
#include "base/wire.h"
#include "persistence/delivery.h"
#include "persistence/persistent.h"

typedef struct producer_args {
    trp_ref producer;
    bool workers, confirms;
    uint32_t messages_max, bytes_max, part_bytes, resend_ms;
    char journal_id[TRP_JOURNAL_ID_BYTES_MAX + 1]; /* "": in memory */
} producer_args;

typedef struct producer {
    trp_persistent_state persistent; /* with a journal */
    producer_args args;
    trpi_delivery_producer engine;
    uint64_t id;     /* of this life */
    uint64_t number; /* of the last message */
    uint32_t granted;
    uint32_t unstored;       /* messages on their way into the journal */
    uint64_t unstored_bytes; /* of these */
    uint32_t done;           /* confirmations that were stored since events were deleted */
    bool ticks;              /* the timer runs */
    bool full;               /* of workers, and that was logged */
    trp_ctx *ctx;            /* during a turn */
} producer;

enum { TICK_KEY = 1, NUMBER_BYTES = 8, DONE_MAX = 1000 };

static bool
is_durable(const producer *p)
{
    return p->args.journal_id[0] != '\0';
}

/* ---- what the engine does -------------------------------------------------------------------- */

typedef struct sending {
    trp_ref to;
    trp_msg *msg;
} sending;

static trp_err
frame_send(trp_ctx *ctx, void *arg)
{
    const sending *s = arg;

    trp_send(ctx, s->to, s->msg);
    return TRP_OK;
}

static void
frame_tell(void *arg, trp_ref to, const trpi_delivery_head *head, const void *data, size_t bytes)
{
    static const trp_trace none = { 0, 0, 0, 0, 0 };
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
    const trpi_delivery_entry *e = p->engine.sending;
    sending s = { to, msg };
    trpi_in_attempt(p->ctx, e != NULL ? &e->trace : &none, e != NULL ? e->attempts : 0, frame_send,
                    &s); /* delivery-produce-P4 */
}

/* The confirmation is stored (or certainly not: then the message comes again one day). Events that
 * nobody needs are deleted; the last one stays, it has the highest number. */
static trp_err
done_stored(trp_ctx *ctx, void *state, const trp_msg *event, void *arg)
{
    producer *p = state;
    const trpi_delivery_done *done = trp_msg_payload(event);
    trp_delivery_confirmed confirmed = { done->number };

    (void)arg;
    if (p->args.confirms && !trp_ref_is_none(p->args.producer)) {
        trp_tell(ctx, p->args.producer, &trp_delivery_confirmed_type, &confirmed, sizeof confirmed);
    }
    if (++p->done >= DONE_MAX) {
        uint64_t least = trpi_delivery_mark_least(&p->engine);
        uint64_t to = (least != 0 ? least : trp_persistent_number(ctx)) - 1;

        p->done = to != 0 && trp_events_delete(ctx, to) == TRP_OK ? 0 : p->done;
    }
    return TRP_OK;
}

static void
confirmed_tell(void *arg, uint64_t number)
{
    producer *p = arg;
    trp_delivery_confirmed confirmed = { number };
    trpi_delivery_done done = { number, p->number };

    if (is_durable(p)) { /* delivery-produce-P3 */
        if (trp_persist_async(p->ctx, &trpi_delivery_done_type, &done, sizeof done, done_stored,
                              NULL) != TRP_OK) {
            trp_log(p->ctx, TRP_LOG_WARNING,
                    "a confirmation is not stored, its message will be sent again id=%s "
                    "number=%llu",
                    p->args.journal_id, (unsigned long long)number);
        }
        return;
    }
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
    uint32_t kept = p->engine.messages + p->unstored;
    uint32_t room = p->args.messages_max > kept ? p->args.messages_max - kept : 0;
    uint64_t bytes = p->engine.bytes + p->unstored_bytes;
    trp_delivery_request_next next = { room > p->granted ? room - p->granted : 0 };

    if (trp_ref_is_none(p->args.producer) || next.messages == 0 || bytes >= p->args.bytes_max) {
        return;
    }
    if (bytes >= p->args.bytes_max / 2) {
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

static trp_err message_stored(trp_ctx *ctx, void *state, const trp_msg *event, void *arg);

/* Store it, with its number; the event puts it into the engine. Errors: as trpi_delivery_put. */
static trp_err
message_keep(trp_ctx *ctx, producer *p, const trp_msg *data)
{
    size_t bytes = trp_msg_bytes(data);
    bool by_grant = !trp_ref_is_none(p->args.producer);

    if (!by_grant && (p->engine.messages + p->unstored >= p->args.messages_max ||
                      p->engine.bytes + p->unstored_bytes + bytes > p->args.bytes_max)) {
        return TRP_EAGAIN;
    }
    uint8_t *event = trpi_alloc(NUMBER_BYTES + bytes);
    if (event == NULL) {
        return TRP_ENOMEM;
    }
    trpi_put_u64(event, p->number + 1);
    memcpy(event + NUMBER_BYTES, trp_msg_payload(data), bytes);
    trp_err err = trp_persist_async(ctx, &trpi_delivery_kept_type, event, NUMBER_BYTES + bytes,
                                    message_stored, NULL);
    trpi_free(event);
    if (err == TRP_OK) {
        p->unstored++;
        p->unstored_bytes += bytes;
    }
    return err;
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
        trpi_trail_get(ctx, &p->engine.trace);
        err = is_durable(p)
                  ? message_keep(ctx, p, data)
                  : trpi_delivery_put(&p->engine, trp_now_ms(ctx), p->number + 1,
                                      trp_msg_payload(data), (uint32_t)trp_msg_bytes(data));
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

/* Set all up but the journal's part. */
static trp_err
producer_begin(trp_ctx *ctx, producer *p, const trp_msg *args)
{
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
    return TRP_OK;
}

static trp_err
producer_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    producer *p = state;
    trp_err err = producer_begin(ctx, p, args);

    if (err == TRP_OK) {
        grants_tell(ctx, p);
    }
    return err;
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

    for (const trpi_delivery_stream *s = p->engine.streams; s != NULL && !is_durable(p);
         s = s->next) {
        entries_lose(ctx, s->first);
    }
    entries_lose(ctx, is_durable(p) ? NULL : p->engine.waiting);
    trpi_delivery_producer_fini(&p->engine);
}

static const trp_behaviour producer_behaviour = { .size = sizeof(trp_behaviour),
                                                  .name = "delivery-producer",
                                                  .version = 1,
                                                  .state_bytes = sizeof(producer),
                                                  .receive = producer_receive,
                                                  .pre_start = producer_pre_start,
                                                  .post_stop = producer_post_stop };

/* ---- with a journal -------------------------------------------------------------------------- */

static trp_err
message_stored(trp_ctx *ctx, void *state, const trp_msg *event, void *arg)
{
    producer *p = state;

    (void)arg;
    p->unstored--;
    p->unstored_bytes -= trp_msg_bytes(event) - NUMBER_BYTES;
    grants_tell(ctx, p);
    return ticks_begin(ctx, p);
}

static trp_err
durable_event(trp_ctx *ctx, void *state, const trp_msg *event)
{
    producer *p = state;
    const uint8_t *data = trp_msg_payload(event);
    size_t bytes = trp_msg_bytes(event);

    p->ctx = ctx;
    if (trp_msg_is(event, &trpi_delivery_kept_type)) {
        if (bytes < NUMBER_BYTES || bytes > TRP_DELIVERY_MESSAGE_BYTES_MAX + NUMBER_BYTES) {
            return TRP_EDATA;
        }
        uint64_t number = trpi_get_u64(data);
        p->number = number > p->number ? number : p->number;
        p->engine.mark = trp_persistent_number(ctx);
        trpi_persistent_trace(trpi_persistent_get(ctx), &p->engine.trace);
        return trpi_delivery_put(&p->engine, trp_now_ms(ctx), number, data + NUMBER_BYTES,
                                 (uint32_t)(bytes - NUMBER_BYTES));
    }
    const trpi_delivery_done *done = trp_msg_as(event, &trpi_delivery_done_type);
    if (done == NULL) {
        return TRP_EUNHANDLED;
    }
    p->number = done->last > p->number ? done->last : p->number;
    if (trp_persistent_recovers(ctx)) {
        (void)trpi_delivery_forget(&p->engine, done->number); /* its event may be deleted */
    }
    return TRP_OK;
}

static trp_err
durable_start(trp_ctx *ctx, void *state, const trp_msg *args, trp_persistent_start *how)
{
    producer *p = state;
    trp_err err = producer_begin(ctx, p, args);

    memcpy(how->id, p->args.journal_id, sizeof p->args.journal_id);
    p->engine.messages_max = UINT32_MAX; /* what is stored is taken; message_keep() looks before */
    p->engine.bytes_max = UINT64_MAX;
    return err;
}

static trp_err
durable_recovered(trp_ctx *ctx, void *state)
{
    producer *p = state;

    grants_tell(ctx, p);
    return p->engine.messages == 0 ? TRP_OK : ticks_begin(ctx, p);
}

static trp_err
durable_rejected(trp_ctx *ctx, void *state, const trp_msg *event, trp_err err, const char *why)
{
    trp_msg *msg = NULL;
    const uint8_t *data = trp_msg_payload(event);
    size_t bytes = trp_msg_bytes(event);

    (void)err, (void)why; /* they are logged */
    if (trp_msg_is(event, &trpi_delivery_done_type)) {
        return done_stored(ctx, state, event, NULL);
    }
    if (trp_deserialize(trp_ctx_system(ctx), data + NUMBER_BYTES, bytes - NUMBER_BYTES, &msg) ==
        TRP_OK) {
        message_lose(ctx, msg, TRP_DEAD_STOPPED);
        trpi_msg_drop(msg);
    }
    return message_stored(ctx, state, event, NULL);
}

static const trp_protocol *const durable_events[] = { &trp_delivery_protocol, NULL };
static const trp_persistent durable_producer = { .behaviour = { .size = sizeof(trp_behaviour),
                                                                .name = "delivery-producer-durable",
                                                                .version = 1,
                                                                .state_bytes = sizeof(producer),
                                                                .receive = trp_persistent_receive,
                                                                .pre_start =
                                                                    trp_persistent_pre_start,
                                                                .post_stop = producer_post_stop },
                                                 .size = sizeof(trp_persistent),
                                                 .command = producer_receive,
                                                 .event = durable_event,
                                                 .start = durable_start,
                                                 .recovered = durable_recovered,
                                                 .rejected = durable_rejected,
                                                 .events = durable_events,
                                                 .pending_max = 2 * TRP_DELIVERY_MESSAGES_MAX };

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
    const char *id = options->journal_id;
    const trp_journal_driver *journal = NULL;
    const trp_persistent *kind = id == NULL ? NULL : &durable_producer;
    if (id != NULL && (id[0] == '\0' || strlen(id) > TRP_JOURNAL_ID_BYTES_MAX)) {
        return TRP_EMSGSIZE;
    }
    if (id != NULL &&
        trpi_persistence_of(ctx != NULL ? trp_ctx_system(ctx) : system, &journal) == NULL) {
        return TRP_ESTATE;
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
    if (id != NULL) {
        memcpy(args.journal_id, id, strlen(id) + 1);
    }
    spawn.name = options->name;
    spawn.dispatcher = options->dispatcher;
    spawn.args_type = &trp_bytes_type;
    spawn.args = &args;
    spawn.args_bytes = sizeof args;
    spawn.node = TRP_NODE_HERE;
    const trp_behaviour *what = kind != NULL ? &kind->behaviour : &producer_behaviour;
    return ctx != NULL ? trp_spawn(ctx, what, &spawn, ret_ref)
                       : trp_system_spawn(system, what, &spawn, ret_ref);
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
