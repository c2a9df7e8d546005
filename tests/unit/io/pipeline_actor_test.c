/* pipeline_actor_test.c - actors that run pipelines: one protocol in two actors, ticks by a timer,
 * and what a failing stage does to its actor. */
#include "tests/unit/actor/stage.h"

#include <troupe/pipeline.h>

/* ---- bytes between actors -------------------------------------------------------------------- */

static trp_type piece_type = TRP_HELD_TYPE("pipe.piece", 1);
static trp_type tick_type = { "pipe.tick", 0, 2, TRP_TYPE_LOCAL, NULL, 0, 0 };
static trp_type *const pipe_types[] = { &piece_type, &tick_type };
static const trp_protocol pipe_protocol = { "pipe", pipe_types, 2, 0 };

static void
piece_drop(void *held)
{
    trp_bytes_unref(held);
}

/* Takes bytes. */
static trp_msg *
piece_new(trp_bytes bytes)
{
    trp_msg *msg = NULL;
    void *held = NULL;

    UNIT_REQUIRE(trp_msg_new_held(&piece_type, sizeof bytes, piece_drop, &msg, &held) == TRP_OK);
    *(trp_bytes *)held = bytes;
    return msg;
}

static void
piece_send(trp_system *system, trp_ref to, const char *data, size_t bytes)
{
    trp_ctx *ctx = trpi_enter(system);
    trp_bytes copy = TRP_BYTES_EMPTY;

    UNIT_REQUIRE(trp_bytes_copy(data, bytes, &copy) == TRP_OK);
    trpi_send(ctx, to, piece_new(copy));
    trpi_leave(ctx);
}

/* ---- the actor near the wire: frames, which it tells the other ------------------------------- */

static trp_ref reader_ref;

typedef struct wire_state {
    trp_pipeline *pipeline;
    trp_ctx *ctx; /* of the present call; the context of its sinks */
} wire_state;

static trp_err
frame_tell(void *arg, trp_item *item)
{
    wire_state *w = arg;

    trp_send(w->ctx, reader_ref, piece_new(item->as.bytes)); /* what the item had */
    *item = trp_item_of(NULL);
    return TRP_OK;
}

static void
pipeline_end(void *arg)
{
    trp_pipeline_free(arg);
}

static trp_err
ticked(trp_port *port, void *state, const trp_item *management)
{
    uint64_t *last = state;

    (void)port;
    if (management->type == &trp_item_tick) {
        UNIT_TRUE(management->as.number > *last);
        *last = management->as.number;
        stage_note("tick");
    }
    return TRP_OK;
}
static const trp_stage ticked_stage = {
    .size = sizeof(trp_stage), .name = "ticked", .state_bytes = sizeof(uint64_t), .manage = ticked
};

static trp_err
wire_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    trp_pipeline_options options = TRP_PIPELINE_OPTIONS_INIT;
    trp_ticks_options ticks = TRP_TICKS_OPTIONS_INIT;
    const trp_stage_use stages[] = { { &trp_ticks_stage, &ticks },
                                     { &ticked_stage, NULL },
                                     { &trp_length_stage, NULL } };
    wire_state *w = state;
    trp_err err;

    (void)args;
    ticks.interval_ms = 20;
    options.on_event = frame_tell;
    options.arg = w;
    err = trp_pipeline_new(stages, 3, &options, &w->pipeline);
    if (err == TRP_OK) {
        err = trp_defer(ctx, pipeline_end, w->pipeline);
    }
    stage_note("begun");
    return err == TRP_OK ? trp_timer_repeat(ctx, 1, trp_pipeline_tick_ms(w->pipeline),
                                            trp_pipeline_tick_ms(w->pipeline), &tick_type, NULL, 0)
                         : err;
}

static trp_err
wire_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const trp_bytes *bytes = trp_msg_held(msg, &piece_type);
    wire_state *w = state;
    static uint64_t now;
    trp_item item;
    trp_err err;

    w->ctx = ctx;
    if (trp_msg_is(msg, &tick_type)) {
        item = trp_item_of(&trp_item_tick);
        item.as.number = ++now;
        return trp_pipeline_manage(w->pipeline, &item);
    }
    item = trp_item_of_bytes(trp_bytes_ref(*bytes));
    err = trp_pipeline_event(w->pipeline, &item);
    trp_item_clear(&item);
    if (err != TRP_OK) {
        stage_note("failed(%s)", trp_pipeline_reason(w->pipeline));
    }
    return err; /* its supervisor restarts it, with a new pipeline */
}
static const trp_behaviour wire = { .size = sizeof(trp_behaviour),
                                    .name = "wire",
                                    .version = 1,
                                    .state_bytes = sizeof(wire_state),
                                    .pre_start = wire_start,
                                    .receive = wire_receive };

/* ---- the actor above: text of each frame ----------------------------------------------------- */

static trp_err
text_note(void *arg, trp_item *item)
{
    char text[64] = "";

    (void)arg;
    UNIT_TRUE(item->type == &trp_item_text);
    (void)trp_bytes_copy_out(item->as.bytes, 0, text, sizeof text - 1);
    stage_note("<%s>", text);
    return TRP_OK;
}

static trp_err
reader_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    static const trp_stage_use stages[] = { { &trp_text_stage, NULL } };
    trp_pipeline_options options = TRP_PIPELINE_OPTIONS_INIT;
    trp_pipeline **pipeline = state;
    trp_err err;

    (void)args;
    options.on_event = text_note;
    err = trp_pipeline_new(stages, 1, &options, pipeline);
    return err == TRP_OK ? trp_defer(ctx, pipeline_end, *pipeline) : err;
}

static trp_err
reader_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const trp_bytes *bytes = trp_msg_held(msg, &piece_type);
    trp_item item = trp_item_of_bytes(trp_bytes_ref(*bytes));
    trp_err err = trp_pipeline_event(*(trp_pipeline **)state, &item);

    (void)ctx;
    trp_item_clear(&item);
    return err;
}
static const trp_behaviour reader = { .size = sizeof(trp_behaviour),
                                      .name = "reader",
                                      .version = 1,
                                      .state_bytes = sizeof(trp_pipeline *),
                                      .pre_start = reader_start,
                                      .receive = reader_receive };

static trp_system *
actors_open(trp_ref *ret_wire)
{
    trp_system *system;

    UNIT_REQUIRE(trp_protocol_register(&pipe_protocol) == TRP_OK);
    system = stage_open();
    reader_ref = stage_spawn(system, &reader, "reader");
    *ret_wire = stage_spawn(system, &wire, "wire");
    return system;
}

/* PIPE-03, PIPE-07 */
static void
a_protocol_goes_on_in_another_actor(void)
{
    trp_ref w;
    trp_system *system = actors_open(&w);

    piece_send(system, w, "\0\0\0\7one\0\0", 9);
    piece_send(system, w, "\0\x09gr\xc3\xbcn", 7);
    UNIT_WAIT(stage_has("<one>") && stage_has("<gr\xc3\xbcn>"), 5000);
    stage_close(system);
}

/* PIPE-02: what a failing stage does is what its actor does */
static void
a_broken_stream_fails_the_actor_which_begins_anew(void)
{
    trp_ref w;
    trp_system *system = actors_open(&w);

    piece_send(system, w, "\0\0\0\5a\0\0\0\2", 9); /* a frame, and a length that cannot be */
    UNIT_WAIT(stage_has("failed(length: a length of 2 counts less than itself)"), 5000);
    piece_send(system, w, "\0\0\0\5b", 5);
    UNIT_WAIT(stage_has("<a>") && stage_has("<b>"), 5000);
    UNIT_EQUAL(stage_count("begun"), 2);
    stage_close(system);
}

/* PIPE-09: ticks go on, at their pace, after a restart too */
static void
ticks_come_by_a_timer_of_the_actor(void)
{
    trp_ref w;
    trp_system *system = actors_open(&w);

    UNIT_WAIT(stage_count("tick") >= 2, 5000);
    piece_send(system, w, "\0\0\0\2", 4);
    UNIT_WAIT(stage_count("begun") == 2, 5000);
    stage_write(&stage_events, "again");
    {
        size_t before = stage_count("tick");

        UNIT_WAIT(stage_count("tick") >= before + 2, 5000);
    }
    stage_close(system);
}

UNIT_BEGIN("pipeline_actor")
UNIT(a_protocol_goes_on_in_another_actor)
UNIT(a_broken_stream_fails_the_actor_which_begins_anew)
UNIT(ticks_come_by_a_timer_of_the_actor)
UNIT_END
