/* tcp_pipeline.c - an actor that runs a pipeline over a connection.
 *
 * Shape.   connection -> received bytes -> pipeline -> items -> handler
 *          handler -> commands -> pipeline -> writes, orders -> connection
 *          The pipeline is made by the caller, who gets its errors, and comes with the first
 *          message, which owns it.
 * Must hold.
 *   tcp-pipeline-Q1  An item that is on its way to the handler counts the received bytes that it
 *       came with as unhandled: all items of one piece share one count.
 *   tcp-pipeline-Q2  After a broken stream no byte is given to the pipeline any more.
 *   tcp-pipeline-Q3  trp_tcp_closed is told once for each end, after all events, also when the
 *       connection had ended before it could be registered with.
 * Tests.   tests/unit/io/tcp_pipeline_test.c
 * Sources. PIPE-08, PIPE-09, PIPE-12, PIPE-13
 */
#include <troupe/tcp_pipeline.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "io/io.h"

enum { TICK_KEY = 1, FRAME_KEY = 2 };

typedef struct received_of received_of;

/* The sinks of the pipeline work on this. */
typedef struct piping {
    trp_pipeline *pipeline;
    trp_ref connection, handler;
    trp_tcp_register_options how;
    uint32_t frame_ms;
    bool keeps_broken, has_acks;
    /* of its actor: */
    trp_ctx *ctx;         /* of the present message */
    const trp_msg *piece; /* received, that is being handled; NULL: none */
    received_of *origin;  /* of the items of this piece; NULL: none left yet */
    bool has_event;       /* one has left since this was reset */
    bool waits, broken, ended, told;
} piping;

/* ---- messages -------------------------------------------------------------------------------- */

static trp_type begin_type = TRP_HELD_TYPE("tcp-pipeline.priv-begin", 1);
static trp_type command_type = TRP_HELD_TYPE("tcp-pipeline.priv-command", 2);
static trp_type manage_type = TRP_HELD_TYPE("tcp-pipeline.priv-manage", 3);
static trp_type frame_type = { .name = "tcp-pipeline.priv-frame",
                               .tag = 4,
                               .flags = TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL };
trp_type trp_tcp_pipeline_event_type = TRP_HELD_TYPE("tcp-pipeline.event", 5);
trp_type trp_tcp_pipeline_failed_type = { .name = "tcp-pipeline.failed",
                                          .bytes = sizeof(trp_tcp_pipeline_failed),
                                          .tag = 6,
                                          .flags = TRP_TYPE_LOCAL };
static trp_type *const types[] = { &begin_type,
                                   &command_type,
                                   &manage_type,
                                   &frame_type,
                                   &trp_tcp_pipeline_event_type,
                                   &trp_tcp_pipeline_failed_type };
const trp_protocol trp_tcp_pipeline_protocol = { "tcp-pipeline", types,
                                                 sizeof types / sizeof types[0], 0 };

/* A received piece, while items of it are on their way: tcp-pipeline-Q1. */
struct received_of {
    _Atomic uint32_t count;
    trp_msg *piece;
};

static void
origin_unref(received_of *origin)
{
    /* acq_rel: the last one sees all uses */
    if (origin != NULL && atomic_fetch_sub_explicit(&origin->count, 1, memory_order_acq_rel) == 1) {
        trp_msg_free(origin->piece);
        trpi_free(origin);
    }
}

static trp_err
origin_make(piping *p)
{
    received_of *origin = trpi_alloc(sizeof *origin);
    trp_err err = origin != NULL ? trp_msg_dup(p->piece, &origin->piece) : TRP_ENOMEM;

    if (err != TRP_OK) {
        trpi_free(origin);
        return err;
    }
    atomic_init(&origin->count, 1); /* of the run */
    p->origin = origin;
    return TRP_OK;
}

typedef struct told_item {
    trp_tcp_pipeline_event event; /* first: the handler sees it */
    received_of *origin;
} told_item;

static void
told_drop(void *held)
{
    told_item *told = held;

    trp_item_clear(&told->event.item);
    origin_unref(told->origin);
}

static void
item_drop(void *held)
{
    trp_item_clear(held);
}

static void
begin_drop(void *held)
{
    piping *p = *(piping **)held;

    if (p != NULL) {
        trp_pipeline_free(p->pipeline);
        trpi_free(p);
    }
}

/* ---- what leaves the pipeline ---------------------------------------------------------------- */

static trp_err
event_sink(void *arg, trp_item *item)
{
    piping *p = arg;
    told_item *told;
    trp_msg *msg;
    void *held;
    trp_err err = TRP_OK;

    p->has_event = true;
    if (p->piece != NULL && p->origin == NULL) {
        err = origin_make(p);
    }
    err = err == TRP_OK
              ? trp_msg_new_held(&trp_tcp_pipeline_event_type, sizeof *told, told_drop, &msg, &held)
              : err;
    if (err != TRP_OK) {
        return err;
    }
    told = held;
    told->event.item = *item;
    *item = trp_item_of(NULL);
    told->origin = p->origin;
    if (p->origin != NULL) {
        atomic_fetch_add_explicit(&p->origin->count, 1, memory_order_relaxed);
    }
    trp_send(p->ctx, p->handler, msg);
    return TRP_OK;
}

static trp_err
command_sink(void *arg, trp_item *item)
{
    piping *p = arg;

    if (item->type == &trp_item_bytes) {
        uint64_t ack = p->has_acks ? trp_bytes_length(item->as.bytes) : TRP_TCP_NO_ACK;

        return trp_tcp_write(p->ctx, p->connection, item->as.bytes, ack);
    }
    if (item->type == &trp_item_close || item->type == &trp_item_abort) {
        trp_tell(p->ctx, p->connection,
                 item->type == &trp_item_close ? &trp_tcp_close_type : &trp_tcp_abort_type, NULL,
                 0);
        return TRP_OK;
    }
    return TRP_EINVAL; /* the lowest stage commands something else than bytes */
}

/* ---- failures -------------------------------------------------------------------------------- */

static void
failure_tell(piping *p, trp_ref to, trp_err err, bool is_command, const char *reason)
{
    trp_tcp_pipeline_failed failed;

    memset(&failed, 0, sizeof failed);
    failed.error = (int32_t)err;
    failed.is_command = is_command ? 1 : 0;
    (void)snprintf(failed.reason, sizeof failed.reason, "%s", reason);
    if (!trp_ref_is_none(to)) {
        trp_tell(p->ctx, to, &trp_tcp_pipeline_failed_type, &failed, sizeof failed);
    }
}

/* tcp-pipeline-Q2 */
static void
stream_break(piping *p, trp_err err, const char *reason)
{
    if (p->broken) {
        return;
    }
    p->broken = true;
    trp_timer_cancel(p->ctx, FRAME_KEY);
    failure_tell(p, p->handler, err, false, reason);
    trp_tell(p->ctx, p->connection,
             p->keeps_broken ? &trp_tcp_suspend_reading_type : &trp_tcp_abort_type, NULL, 0);
}

/* ---- what goes into it ----------------------------------------------------------------------- */

static void
event_feed(piping *p, trp_item *item)
{
    trp_err err = p->broken ? TRP_OK : trp_pipeline_event(p->pipeline, item);

    trp_item_clear(item);
    if (err != TRP_OK) {
        stream_break(p, err, trp_pipeline_reason(p->pipeline));
    }
}

/* A frame that has begun has its time, from its beginning. */
static void
frame_watch(piping *p)
{
    bool holds = !p->broken && p->frame_ms != TRP_TCP_PIPELINE_NO_TIMEOUT &&
                 trp_pipeline_holds(p->pipeline) != 0;

    if (p->waits && (!holds || p->has_event)) {
        trp_timer_cancel(p->ctx, FRAME_KEY);
        p->waits = false;
    }
    if (holds && !p->waits) {
        p->waits = true;
        if (trp_timer_once(p->ctx, FRAME_KEY, p->frame_ms, &frame_type, NULL, 0) != TRP_OK) {
            stream_break(p, TRP_ENOMEM, "pipeline: no memory for a timer");
        }
    }
}

static void
on_received(piping *p, const trp_msg *msg, const trp_tcp_received *received)
{
    trp_item item = trp_item_of_bytes(trp_bytes_ref(received->bytes));

    p->piece = msg;
    p->has_event = false;
    event_feed(p, &item);
    p->piece = NULL;
    origin_unref(p->origin);
    p->origin = NULL;
    frame_watch(p);
}

static void
on_command(piping *p, trp_item *item, bool is_management)
{
    trp_err err = is_management ? trp_pipeline_manage(p->pipeline, item)
                                : trp_pipeline_command(p->pipeline, item);

    trp_item_clear(item);
    if (err != TRP_OK) {
        failure_tell(p, trp_sender(p->ctx), err, true, trp_pipeline_reason(p->pipeline));
    }
}

static void
on_tick(piping *p)
{
    trp_item tick = trp_item_of(&trp_item_tick);
    trp_err err;

    tick.as.number = trp_now_ms(p->ctx);
    err = trp_pipeline_manage(p->pipeline, &tick);
    if (err != TRP_OK) {
        stream_break(p, err, trp_pipeline_reason(p->pipeline));
    }
}

/* ---- the connection -------------------------------------------------------------------------- */

static void
handler_tell(piping *p, const trp_msg *msg)
{
    trp_tell(p->ctx, p->handler, trp_msg_type(msg), trp_msg_payload(msg), trp_msg_bytes(msg));
}

/* tcp-pipeline-Q3 */
static void
on_closed(piping *p, const trp_msg *msg)
{
    const trp_tcp_closed *closed = trp_msg_payload(msg);

    if (!p->ended &&
        (closed->how == TRP_TCP_PEER_CLOSED || closed->how == TRP_TCP_CONFIRMED_CLOSED)) {
        trp_item end = trp_item_of(&trp_item_end);

        p->ended = true;
        event_feed(p, &end);
        frame_watch(p);
    }
    p->told = p->told || closed->half_open == 0;
    handler_tell(p, msg);
}

static void
on_terminated(piping *p, const trp_msg *msg)
{
    const trp_terminated *terminated = trp_msg_payload(msg);

    if (trp_ref_equal(terminated->ref, p->connection) && !p->told) {
        trp_tcp_closed closed;

        memset(&closed, 0, sizeof closed);
        closed.how = TRP_TCP_ERROR_CLOSED;
        closed.error = ECONNABORTED;
        (void)snprintf(closed.reason, sizeof closed.reason,
                       "the connection had ended before it got its pipeline");
        trp_tell(p->ctx, p->handler, &trp_tcp_closed_type, &closed, sizeof closed);
    }
    trp_stop(p->ctx, trp_self(p->ctx));
}

/* ---- the actor ------------------------------------------------------------------------------- */

typedef struct pipe_actor {
    trp_msg *begun; /* has the pipeline; NULL: not yet */
    piping *p;
} pipe_actor;

static trp_err
on_begin(trp_ctx *ctx, pipe_actor *a, piping *p, const trp_msg *msg)
{
    uint32_t tick_ms = trp_pipeline_tick_ms(p->pipeline);
    trp_err err = trp_msg_dup(msg, &a->begun);

    if (err != TRP_OK) {
        return err;
    }
    a->p = p;
    p->ctx = ctx;
    err = trp_watch(ctx, p->connection);
    err = err == TRP_OK && !trp_ref_equal(p->handler, trp_parent(ctx)) ? trp_watch(ctx, p->handler)
                                                                       : err;
    if (err == TRP_OK && tick_ms > 0) {
        err = trp_timer_repeat(ctx, TICK_KEY, tick_ms, tick_ms, &trpi_io_alarm_type, NULL, 0);
    }
    return err == TRP_OK ? trp_tcp_register(ctx, p->connection, trp_self(ctx), &p->how) : err;
}

/* Pass an order through the stages, or to the connection. False: it is another message. */
static bool
on_order(piping *p, const trp_msg *msg)
{
    trp_type *const straight[] = { &trp_tcp_confirmed_close_type, &trp_tcp_suspend_reading_type,
                                   &trp_tcp_resume_reading_type };

    if (trp_msg_is(msg, &trp_tcp_close_type) || trp_msg_is(msg, &trp_tcp_abort_type)) {
        trp_item item =
            trp_item_of(trp_msg_is(msg, &trp_tcp_close_type) ? &trp_item_close : &trp_item_abort);

        on_command(p, &item, false);
        return true;
    }
    for (size_t i = 0; i < sizeof straight / sizeof straight[0]; i++) {
        if (trp_msg_is(msg, straight[i])) {
            trp_tell(p->ctx, p->connection, straight[i], NULL, 0);
            return true;
        }
    }
    return false;
}

static bool
on_event(piping *p, const trp_msg *msg)
{
    if (trp_msg_is(msg, &trp_tcp_ack_type)) {
        trp_item written = trp_item_of(&trp_item_written);

        written.as.number = ((const trp_tcp_ack *)trp_msg_payload(msg))->ack;
        event_feed(p, &written);
    } else if (trp_msg_is(msg, &trp_tcp_closed_type)) {
        on_closed(p, msg);
    } else if (trp_msg_is(msg, &trp_terminated_type)) {
        on_terminated(p, msg);
    } else if (trp_msg_is(msg, &trp_tcp_above_high_type) ||
               trp_msg_is(msg, &trp_tcp_below_low_type) ||
               trp_msg_is(msg, &trp_tcp_command_failed_type)) {
        handler_tell(p, msg);
    } else if (trp_msg_is(msg, &trpi_io_alarm_type)) {
        on_tick(p);
    } else if (trp_msg_is(msg, &frame_type)) {
        p->waits = false;
        stream_break(p, TRP_ETIMEDOUT,
                     "pipeline: half a frame waits for too long "
                     "(frame_timeout_ms)");
    } else {
        return false;
    }
    return true;
}

static trp_err
pipe_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    piping *const *begin = trp_msg_held(msg, &begin_type);
    const trp_tcp_received *received = trp_tcp_received_of(msg);
    const trp_item *command = trp_msg_held(msg, &command_type);
    const trp_item *manage = trp_msg_held(msg, &manage_type);
    pipe_actor *a = state;

    if (begin != NULL && a->begun == NULL) {
        return on_begin(ctx, a, *begin, msg);
    }
    if (a->begun == NULL) { /* begun anew, by its supervisor: its pipeline is lost */
        trp_stop(ctx, trp_self(ctx));
        return TRP_OK;
    }
    a->p->ctx = ctx;
    if (received != NULL) {
        on_received(a->p, msg, received);
    } else if (command != NULL || manage != NULL) { /* the message is this actor's alone */
        on_command(a->p, (trp_item *)(uintptr_t)(command != NULL ? command : manage),
                   command == NULL);
    } else if (!on_event(a->p, msg) && !on_order(a->p, msg)) {
        return TRP_EUNHANDLED;
    }
    return TRP_OK;
}

static void
pipe_post_stop(trp_ctx *ctx, void *state)
{
    pipe_actor *a = state;

    (void)ctx;
    if (a->p != NULL) {
        origin_unref(a->p->origin); /* of a run that a failure has left */
        a->p->origin = NULL;
    }
    trp_msg_free(a->begun);
    a->begun = NULL;
    a->p = NULL;
}

static const trp_behaviour pipe_behaviour = { .size = sizeof(trp_behaviour),
                                              .name = "tcp-pipeline",
                                              .version = 1,
                                              .state_bytes = sizeof(pipe_actor),
                                              .receive = pipe_receive,
                                              .post_stop = pipe_post_stop };

/* ---- the public functions -------------------------------------------------------------------- */

/* Make what the actor works on. Errors: those of trp_pipeline_new. */
static trp_err
piping_new(const trp_stage_use *stages, size_t count, const trp_tcp_pipeline_options *options,
           piping **ret_piping)
{
    trp_pipeline_options own = TRP_PIPELINE_OPTIONS_INIT;
    piping *p = trpi_alloc(sizeof *p);
    trp_err err;

    if (p == NULL) {
        return TRP_ENOMEM;
    }
    own.context = options->context;
    own.order = options->order;
    own.on_command = command_sink;
    own.on_event = event_sink;
    own.arg = p;
    err = trp_pipeline_new(stages, count, &own, &p->pipeline);
    if (err != TRP_OK) {
        trpi_free(p);
        return err;
    }
    for (size_t i = 0; i < count; i++) {
        p->has_acks = p->has_acks || stages[i].stage == &trp_buffer_stage;
    }
    p->keeps_broken = options->keeps_broken != 0;
    p->frame_ms = options->frame_timeout_ms != 0 ? options->frame_timeout_ms
                                                 : TRP_TCP_PIPELINE_FRAME_TIMEOUT_MS;
    *ret_piping = p;
    return TRP_OK;
}

trp_err
trp_tcp_pipeline(trp_ctx *ctx, trp_ref connection, const trp_stage_use *stages, size_t count,
                 const trp_tcp_pipeline_options *given, trp_ref *ret_pipeline)
{
    trp_tcp_pipeline_options options = TRP_TCP_PIPELINE_OPTIONS_INIT;
    trp_tcp_register_options how = TRP_TCP_REGISTER_OPTIONS_INIT;
    piping *p;
    trp_msg *msg;
    void *held;
    trp_err err;

    if (ctx == NULL || ret_pipeline == NULL || trp_ref_is_none(connection) ||
        !TRPI_SIZED_COPY(given, &options, zero) ||
        !TRPI_SIZED_COPY(options.how, &how, unhandled_bytes_max)) {
        return TRP_EINVAL;
    }
    err = piping_new(stages, count, &options, &p);
    if (err != TRP_OK) {
        return err;
    }
    p->connection = connection;
    p->handler = trp_ref_is_none(options.handler) ? trp_self(ctx) : options.handler;
    p->how = how;
    err = trp_msg_new_held(&begin_type, sizeof p, begin_drop, &msg, &held);
    if (err != TRP_OK) {
        begin_drop(&p);
        return err;
    }
    memcpy(held, &p, sizeof p);
    err = trp_spawn(ctx, &pipe_behaviour, NULL, ret_pipeline);
    if (err != TRP_OK) {
        trp_msg_free(msg);
        return err;
    }
    trp_send(ctx, *ret_pipeline, msg);
    return TRP_OK;
}

static trp_err
item_tell(trp_ctx *ctx, trp_ref pipeline, trp_type *type, trp_item *item)
{
    trp_msg *msg;
    void *held;
    trp_err err;

    if (ctx == NULL || item == NULL || item->type == NULL) {
        return TRP_EINVAL;
    }
    err = trp_msg_new_held(type, sizeof *item, item_drop, &msg, &held);
    if (err != TRP_OK) {
        trp_item_clear(item);
        return err;
    }
    *(trp_item *)held = *item;
    *item = trp_item_of(NULL);
    trp_send(ctx, pipeline, msg);
    return TRP_OK;
}

trp_err
trp_tcp_pipeline_command(trp_ctx *ctx, trp_ref pipeline, trp_item *item)
{
    return item_tell(ctx, pipeline, &command_type, item);
}

trp_err
trp_tcp_pipeline_manage(trp_ctx *ctx, trp_ref pipeline, trp_item *item)
{
    return item_tell(ctx, pipeline, &manage_type, item);
}
