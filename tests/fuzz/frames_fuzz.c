/* frames_fuzz.c - a stranger's stream through the stages that cut it: by length, by delimiter, into
 * lines, into text. Its result must not depend on how the stream was cut into reads.
 *
 * The first byte chooses the stage and its options, the second how the rest is cut. Corpus:
 * tests/fuzz/corpus/frames.
 */
#include <stdbool.h>
#include <string.h>

#include <troupe/pipeline.h>

#include "base/assert.h"
#include "base/buffer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FRAME_MAX 100u /* small, so that the limit is met */

typedef struct heard {
    trpi_buffer frames; /* each with its length in front, or text without */
    trp_pipeline *pipeline;
    bool is_text;
    uint32_t most; /* of a frame; its delimiter is not counted by the limit */
} heard;

static trp_err
event_hear(void *arg, trp_item *item)
{
    heard *h = arg;
    uint32_t bytes = (uint32_t)trp_bytes_length(item->as.bytes);
    uint8_t copy[4096];
    size_t at = 0;

    if (h->is_text) {
        trpi_assert(item->type == &trp_item_text);
    } else {
        trpi_assert(bytes <= h->most);
        trpi_assert(trpi_buffer_append(&h->frames, &bytes, sizeof bytes, SIZE_MAX) == TRP_OK);
    }
    while (at < bytes) {
        size_t some = trp_bytes_copy_out(item->as.bytes, at, copy, sizeof copy);

        trpi_assert(trpi_buffer_append(&h->frames, copy, some, SIZE_MAX) == TRP_OK);
        at += some;
    }
    return TRP_OK;
}

static void
pipeline_make(uint8_t choice, heard *h)
{
    static const uint8_t widths[] = { 1, 2, 3, 4, 8 };
    static const char *const ends[] = { "\n", "ab", "aab", "\r\n\r\n" };
    trp_length_options length = TRP_LENGTH_OPTIONS_INIT;
    trp_delimiter_options delimiter = TRP_DELIMITER_OPTIONS_INIT;
    trp_line_options line = TRP_LINE_OPTIONS_INIT;
    trp_text_options text = TRP_TEXT_OPTIONS_INIT;
    const trp_stage_use uses[] = { { &trp_length_stage, &length },
                                   { &trp_delimiter_stage, &delimiter },
                                   { &trp_line_stage, &line },
                                   { &trp_text_stage, &text } };
    trp_pipeline_options options = TRP_PIPELINE_OPTIONS_INIT;
    uint8_t more = choice / 4;

    length.bytes_max = delimiter.bytes_max = line.bytes_max = FRAME_MAX;
    length.field_bytes = widths[more % 5];
    length.order = more / 5 % 2 != 0 ? TRP_LITTLE_ENDIAN : TRP_BIG_ENDIAN;
    length.counts = more / 10 % 2 != 0 ? TRP_LENGTH_OF_FRAME : TRP_LENGTH_OF_PAYLOAD;
    delimiter.delimiter = ends[more % 4];
    delimiter.delimiter_bytes = (uint32_t)strlen(ends[more % 4]);
    delimiter.is_included = more / 4 % 2;
    text.is_stream = 1;
    options.on_event = event_hear;
    options.arg = h;
    h->is_text = choice % 4 == 3;
    h->most =
        FRAME_MAX + (choice % 4 == 1 && delimiter.is_included ? delimiter.delimiter_bytes : 0);
    trpi_assert(trp_pipeline_new(&uses[choice % 4], 1, &options, &h->pipeline) == TRP_OK);
}

/* Feed the stream in reads of so many bytes; 0: in one. */
static trp_err
stream_feed(heard *h, const uint8_t *data, size_t size, size_t part)
{
    trp_err err = TRP_OK;

    for (size_t at = 0; at < size && err == TRP_OK;) {
        size_t bytes = part != 0 && part < size - at ? part : size - at;
        trp_item item = trp_item_of(&trp_item_bytes);

        /* a copy, so that a step beyond is seen */
        trpi_assert(trp_bytes_copy(data + at, bytes, &item.as.bytes) == TRP_OK);
        err = trp_pipeline_event(h->pipeline, &item);
        trp_item_clear(&item);
        at += bytes;
    }
    return err;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    heard whole = { .pipeline = NULL }, cut = { .pipeline = NULL };
    trp_err whole_err, cut_err;

    if (size < 2) {
        return 0;
    }
    pipeline_make(data[0], &whole);
    pipeline_make(data[0], &cut);
    whole_err = stream_feed(&whole, data + 2, size - 2, 0);
    cut_err = stream_feed(&cut, data + 2, size - 2, (size_t)data[1] % 64 + 1);
    trpi_assert(whole_err == cut_err);
    /* of a text in one piece that ends wrongly nothing is heard, of pieces the right ones */
    if (!whole.is_text || whole_err == TRP_OK) {
        trpi_assert(whole.frames.count == cut.frames.count);
        trpi_assert(whole.frames.count == 0 ||
                    memcmp(whole.frames.data, cut.frames.data, cut.frames.count) == 0);
    }
    trp_pipeline_free(whole.pipeline);
    trp_pipeline_free(cut.pipeline);
    trpi_buffer_fini(&whole.frames);
    trpi_buffer_fini(&cut.frames);
    return 0;
}
