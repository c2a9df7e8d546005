/* framing.c - messages in a stream.
 *
 * Why.     A stranger sends any number of frames in one piece. They are cut when they are wanted:
 *          what is not wanted yet stays as it came, and its message counts as unhandled bytes of
 *          the connection, which then is not read.
 * Shape.   pieces -> (at most SLICE_BYTES) -> a pipeline of one stage -> frames -> next()
 * Must hold.
 *   framing-F1  The frames do not depend on how the stream was cut into pieces.
 *   framing-F2  At most SLICE_BYTES + 1 frames wait that were cut and not taken.
 *   framing-F3  A stream that is broken gives no frame any more that came behind the break.
 * Limits.  bytes_max; SLICE_BYTES.
 * Tests.   tests/unit/endpoint/tcp_test.c, tests/fuzz/framing_fuzz.c
 * Sources. CAM-01; PIPE-10
 */
#include "endpoint/framing.h"

#include <stdio.h>
#include <string.h>

#include <troupe/pipeline.h>

#include "base/alloc.h"
#include "base/assert.h"

enum { SLICE_BYTES = 16384, FIELD_BYTES = 4 };

typedef struct piece {
    struct piece *next;
    trp_bytes bytes; /* the rest of it */
    trp_msg *msg;
} piece;

struct trpi_frames {
    trp_pipeline *pipeline;
    piece *first, **last;
    bool ended, told_end;
    trp_err broken; /* framing-F3 */
    char reason[TRP_ENDPOINT_REASON_BYTES];
};

trp_err
trpi_framing_read(const trpi_uri *uri, trpi_framing *ret_framing,
                  char ret_reason[TRP_ENDPOINT_REASON_BYTES])
{
    static const char *const names[] = { "line", "length", "none" };
    const char *name = trpi_uri_option(uri, "frame", 0);
    uint32_t kind = TRPI_FRAME_LINE;
    ret_framing->field_bytes = FIELD_BYTES;
    trp_err err = trpi_uri_number(uri, "field", 1, 8, &ret_framing->field_bytes, ret_reason);
    while (name != NULL && kind <= TRPI_FRAME_NONE && strcmp(name, names[kind]) != 0) {
        kind++;
    }
    if (err == TRP_OK && (kind > TRPI_FRAME_NONE ||
                          (ret_framing->field_bytes > 4 && ret_framing->field_bytes < 8))) {
        (void)snprintf(ret_reason, TRP_ENDPOINT_REASON_BYTES,
                       "%.20s: frame is line, length or none, and field is 1, 2, 3, 4 or 8",
                       uri->scheme);
        err = TRP_EINVAL;
    }
    ret_framing->kind = kind;
    return err;
}

trp_err
trpi_frames_new(const trpi_framing *framing, trpi_frames **ret_stream)
{
    static const trp_stage none = { .size = sizeof(trp_stage), .name = "none" };
    trp_line_options line = TRP_LINE_OPTIONS_INIT;
    trp_length_options length = TRP_LENGTH_OPTIONS_INIT;
    trpi_assert(framing->kind <= TRPI_FRAME_NONE && framing->bytes_max > 0);
    line.bytes_max = length.bytes_max = framing->bytes_max;
    length.field_bytes = framing->field_bytes;
    length.counts = TRP_LENGTH_OF_PAYLOAD;
    const trp_stage_use uses[] = { { &trp_line_stage, &line },
                                   { &trp_length_stage, &length },
                                   { &none, NULL } };
    trpi_frames *stream = trpi_alloc(sizeof *stream);
    trp_err err = stream == NULL
                      ? TRP_ENOMEM
                      : trp_pipeline_new(&uses[framing->kind], 1, NULL, &stream->pipeline);
    if (err != TRP_OK) {
        trpi_free(stream);
        return err;
    }
    stream->last = &stream->first;
    *ret_stream = stream;
    return TRP_OK;
}

static void
piece_drop(trpi_frames *stream)
{
    piece *p = stream->first;
    stream->first = p->next;
    stream->last = stream->first == NULL ? &stream->first : stream->last;
    trp_bytes_unref(&p->bytes);
    trp_msg_free(p->msg);
    trpi_free(p);
}

static void
frames_break(trpi_frames *stream, trp_err err)
{
    trpi_assert(err != TRP_OK);
    stream->broken = err;
    (void)snprintf(stream->reason, sizeof stream->reason, "%s",
                   trp_pipeline_reason(stream->pipeline));
    while (stream->first != NULL) {
        piece_drop(stream);
    }
}

void
trpi_frames_free(trpi_frames *stream)
{
    if (stream != NULL) {
        while (stream->first != NULL) {
            piece_drop(stream);
        }
        trp_pipeline_free(stream->pipeline);
        trpi_free(stream);
    }
}

trp_err
trpi_frames_add(trpi_frames *stream, trp_bytes bytes, const trp_msg *msg)
{
    trpi_assert(!stream->ended);
    if (stream->broken != TRP_OK || trp_bytes_length(bytes) == 0) {
        return TRP_OK;
    }
    piece *p = trpi_alloc(sizeof *p);
    if (p == NULL || (msg != NULL && trp_msg_dup(msg, &p->msg) != TRP_OK)) {
        trpi_free(p);
        return TRP_ENOMEM;
    }
    p->bytes = trp_bytes_ref(bytes);
    *stream->last = p;
    stream->last = &p->next;
    return TRP_OK;
}

void
trpi_frames_end(trpi_frames *stream)
{
    stream->ended = true;
}

/* Give the pipeline a slice of what has come, or the end. False: nothing is left. framing-F2 */
static bool
slice_feed(trpi_frames *stream)
{
    piece *p = stream->first;
    trp_item item = trp_item_of(NULL);
    if (stream->broken != TRP_OK || (p == NULL && (!stream->ended || stream->told_end))) {
        return false;
    }
    if (p == NULL) {
        stream->told_end = true;
        item = trp_item_of(&trp_item_end); /* half a frame breaks it */
    } else {
        item = trp_item_of_bytes(trp_bytes_split(&p->bytes, SLICE_BYTES));
    }
    trp_err err = trp_pipeline_event(stream->pipeline, &item);
    trp_item_clear(&item);
    if (err != TRP_OK) {
        frames_break(stream, err);
    } else if (p != NULL && trp_bytes_length(p->bytes) == 0) {
        piece_drop(stream);
    }
    return true;
}

bool
trpi_frames_next(trpi_frames *stream, trp_bytes *ret_frame, trp_err *ret_err)
{
    trp_item item;
    do {
        while (trp_pipeline_next_event(stream->pipeline, &item) != 0) {
            if (item.type == &trp_item_bytes) {
                *ret_frame = item.as.bytes;
                return true;
            }
            trp_item_clear(&item); /* the end */
        }
    } while (slice_feed(stream));
    *ret_err = stream->broken;
    return false;
}

bool
trpi_frames_holds(const trpi_frames *stream)
{
    return stream->broken == TRP_OK && stream->first == NULL &&
           trp_pipeline_holds(stream->pipeline) != 0;
}

trp_err
trpi_frames_frame(trpi_frames *stream, trp_bytes body, trp_bytes *ret_frame)
{
    trp_item item = trp_item_of_bytes(trp_bytes_ref(body));
    trp_bytes frame = TRP_BYTES_EMPTY;
    trp_err err = trp_pipeline_command(stream->pipeline, &item);
    trp_item_clear(&item);
    while (trp_pipeline_next_command(stream->pipeline, &item) != 0) {
        err = err == TRP_OK ? trp_bytes_append(&frame, item.as.bytes) : err;
        trp_item_clear(&item);
    }
    if (err != TRP_OK) {
        (void)snprintf(stream->reason, sizeof stream->reason, "%s",
                       trp_pipeline_reason(stream->pipeline));
        trp_bytes_unref(&frame);
        return err;
    }
    *ret_frame = frame;
    return TRP_OK;
}

const char *
trpi_frames_reason(const trpi_frames *stream)
{
    return stream->reason;
}
