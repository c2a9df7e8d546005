/* frames.h - a pipeline whose events are written into one text, so that frames of differently cut
 * streams can be compared. */
#ifndef TESTS_UNIT_IO_FRAMES_H
#define TESTS_UNIT_IO_FRAMES_H

#include <troupe/pipeline.h>

#include "tests/unit/draw.h"

typedef struct frames {
    trp_pipeline *pipeline;
    char text[1 << 16]; /* [frame][frame]... */
    size_t used, count;
} frames;

static inline trp_err
frames_heard(void *arg, trp_item *item)
{
    frames *f = arg;
    size_t bytes = trp_bytes_length(item->as.bytes);

    UNIT_REQUIRE(f->used + bytes + 3 < sizeof f->text);
    f->text[f->used++] = item->type == &trp_item_bytes ? '[' : '<';
    f->used += trp_bytes_copy_out(item->as.bytes, 0, f->text + f->used, bytes);
    f->text[f->used++] = item->type == &trp_item_bytes ? ']' : '>';
    f->text[f->used] = 0;
    f->count++;
    return TRP_OK;
}

static inline void
frames_open(frames *f, const trp_stage *stage, const void *options)
{
    trp_stage_use use = { stage, options };
    trp_pipeline_options given = TRP_PIPELINE_OPTIONS_INIT;

    f->used = f->count = 0;
    f->text[0] = 0;
    given.on_event = frames_heard;
    given.arg = f;
    UNIT_REQUIRE(trp_pipeline_new(&use, 1, &given, &f->pipeline) == TRP_OK);
}

static inline trp_err
frames_feed(frames *f, const void *data, size_t bytes)
{
    trp_item item = trp_item_of(&trp_item_bytes);
    trp_err err;

    UNIT_REQUIRE(trp_bytes_copy(data, bytes, &item.as.bytes) == TRP_OK);
    err = trp_pipeline_event(f->pipeline, &item);
    trp_item_clear(&item);
    return err;
}

static inline trp_err
frames_end(frames *f)
{
    trp_item item = trp_item_of(&trp_item_end);

    return trp_pipeline_event(f->pipeline, &item);
}

/* Send a frame down, and append what comes out to wire. */
static inline trp_err
frames_send(frames *f, const void *data, size_t bytes, trp_bytes *wire)
{
    trp_item item = trp_item_of(&trp_item_bytes);
    trp_err err;

    UNIT_REQUIRE(trp_bytes_copy(data, bytes, &item.as.bytes) == TRP_OK);
    err = trp_pipeline_command(f->pipeline, &item);
    UNIT_TRUE(err == TRP_OK || trp_bytes_length(item.as.bytes) == bytes); /* still ours */
    trp_item_clear(&item);
    while (trp_pipeline_next_command(f->pipeline, &item)) {
        UNIT_REQUIRE(trp_bytes_append(wire, item.as.bytes) == TRP_OK);
        trp_item_clear(&item);
    }
    return err;
}

static inline trp_err
frames_send_text(frames *f, const char *text, trp_bytes *wire)
{
    return frames_send(f, text, strlen(text), wire);
}

static inline bool
frames_wire_is(trp_bytes *wire, const void *want, size_t bytes)
{
    bool is = trp_bytes_equal(*wire, (trp_bytes){ NULL, want, (uint32_t)bytes, 0 }) != 0;

    trp_bytes_unref(wire);
    return is;
}

static inline void
frames_close(frames *f)
{
    trp_pipeline_free(f->pipeline);
}

#endif
