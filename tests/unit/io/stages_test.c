/* stages_test.c - text and the back-pressure buffer. */
#include "tests/unit/io/frames.h"

static frames all;

/* ---- text ------------------------------------------------------------------------------------ */

#define FEED(text) frames_feed(&all, text, sizeof(text) - 1)

static trp_err
text_sent(frames *f, const char *text, trp_bytes *wire)
{
    trp_item item = trp_item_of(&trp_item_text);
    trp_err err;

    UNIT_REQUIRE(trp_bytes_copy(text, strlen(text), &item.as.bytes) == TRP_OK);
    err = trp_pipeline_command(f->pipeline, &item);
    trp_item_clear(&item);
    while (trp_pipeline_next_command(f->pipeline, &item)) {
        UNIT_TRUE(item.type == &trp_item_bytes);
        UNIT_REQUIRE(trp_bytes_append(wire, item.as.bytes) == TRP_OK);
        trp_item_clear(&item);
    }
    return err;
}

/* PIPE-13 */
static void
text_is_utf8_in_both_directions(void)
{
    trp_bytes wire = TRP_BYTES_EMPTY;

    frames_open(&all, &trp_text_stage, NULL);
    UNIT_EQUAL(text_sent(&all, "gr\xc3\xbc\xc3\x9f", &wire), TRP_OK);
    UNIT_TRUE(frames_wire_is(&wire, "gr\xc3\xbc\xc3\x9f", 6));
    UNIT_EQUAL(text_sent(&all, "gr\xfc\xdf", &wire), TRP_EDATA);
    UNIT_EQUAL(text_sent(&all, "\xc3", &wire), TRP_EDATA);
    UNIT_EQUAL(trp_bytes_length(wire), 0);
    UNIT_EQUAL(FEED("\xe2\x82\xac"), TRP_OK);
    UNIT_EQUAL(FEED(""), TRP_OK);
    UNIT_TEXT(all.text, "<\xe2\x82\xac><>");
    UNIT_EQUAL(FEED("ok\xe2\x82"), TRP_EDATA); /* each event is a whole text */
    UNIT_TEXT(trp_pipeline_reason(all.pipeline), "text: byte 2 is not UTF-8");
    UNIT_EQUAL(FEED("\xac"), TRP_EDATA);
    UNIT_EQUAL(FEED("next"), TRP_OK); /* the text below is cut, so the next one is whole again */
    frames_close(&all);
}

/* PIPE-13: the pieces of a stream come out the same, however characters are split */
static void
a_character_that_is_split_between_two_pieces_waits_for_its_rest(void)
{
    static const char text[] = "a\xc3\xbc\xe2\x82\xac\xed\x9f\xbf\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf"
                               "z\xc3\x9f\xe0\xa0\x80";
    unit_draw draw = unit_draw_begin("tests/unit/io/io_tests", "stages_test");
    trp_text_options options = TRP_TEXT_OPTIONS_INIT;

    options.is_stream = 1;
    for (unsigned round = 0; round < 200; round++) {
        char got[sizeof text] = "";
        size_t used = 0;

        frames_open(&all, &trp_text_stage, &options);
        for (size_t at = 0; at < sizeof text - 1;) {
            size_t bytes = 1 + (round == 0 ? 0 : unit_drawn(&draw, 7));

            bytes = bytes < sizeof text - 1 - at ? bytes : sizeof text - 1 - at;
            UNIT_REQUIRE(frames_feed(&all, text + at, bytes) == TRP_OK);
            at += bytes;
        }
        UNIT_EQUAL(frames_end(&all), TRP_OK);
        for (size_t i = 0; i < all.used; i++) {
            if (strchr("<>", all.text[i]) == NULL && used < sizeof got - 1) {
                got[used++] = all.text[i];
            }
        }
        UNIT_TEXT(got, text);
        frames_close(&all);
    }
}

static void
a_stream_that_is_not_utf8_is_refused_at_its_first_wrong_byte(void)
{
    static const char *const wrong[] = { "\x80",         "\xc0",         "\xc1",     "\xf5",
                                         "\xe0\x80",     "\xed\xa0",     "\xf0\x80", "\xf4\x90",
                                         "\xe2\x82\x28", "\xf0\x9f\x28", "\xff" };
    trp_text_options options = TRP_TEXT_OPTIONS_INIT;

    options.is_stream = 1;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        trp_err err = TRP_OK;

        frames_open(&all, &trp_text_stage, &options);
        for (size_t b = 0; b < strlen(wrong[i]); b++) {
            UNIT_EQUAL(err, TRP_OK); /* not before its last byte */
            err = frames_feed(&all, wrong[i] + b, 1);
        }
        UNIT_EQUAL(err, TRP_EDATA);
        frames_close(&all);
    }
    frames_open(&all, &trp_text_stage, &options);
    UNIT_EQUAL(FEED("a\xf0\x9f\x98"), TRP_OK);
    UNIT_EQUAL(frames_end(&all), TRP_EDATA);
    UNIT_TEXT(all.text, "<a>");
    frames_close(&all);
}

/* PIPE-13: text, lines and a buffer, as the document's example has them */
static void
stages_together_turn_a_stream_into_lines_of_text(void)
{
    static const trp_stage_use stages[] = { { &trp_text_stage, NULL },
                                            { &trp_line_stage, NULL },
                                            { &trp_buffer_stage, NULL } };
    trp_pipeline_options options = TRP_PIPELINE_OPTIONS_INIT;
    trp_item item = trp_item_of(&trp_item_text);
    trp_bytes wire = TRP_BYTES_EMPTY;

    options.on_event = frames_heard;
    options.arg = &all;
    all.used = all.count = 0;
    UNIT_REQUIRE(trp_pipeline_new(stages, 3, &options, &all.pipeline) == TRP_OK);
    UNIT_EQUAL(FEED("gr\xc3"), TRP_OK);
    UNIT_EQUAL(FEED("\xbc\xc3\x9f\r\nyes\nno"), TRP_OK);
    UNIT_TEXT(all.text, "<gr\xc3\xbc\xc3\x9f><yes>");
    item.as.bytes = TRP_BYTES_LITERAL("answer");
    UNIT_EQUAL(trp_pipeline_command(all.pipeline, &item), TRP_OK);
    UNIT_TRUE(trp_pipeline_next_command(all.pipeline, &item));
    UNIT_EQUAL(trp_bytes_append(&wire, item.as.bytes), TRP_OK);
    trp_item_clear(&item);
    UNIT_TRUE(frames_wire_is(&wire, "answer\n", 7));
    UNIT_EQUAL(FEED("\xff\n"), TRP_EDATA);
    frames_close(&all);
}

/* ---- the buffer ------------------------------------------------------------------------------ */

typedef struct wire {
    trp_pipeline *pipeline;
    char said[512]; /* what went down and up, as words */
    size_t below;   /* bytes of the write that is below */
} wire;

static void
say(wire *w, const char *word, size_t bytes)
{
    size_t used = strlen(w->said);

    (void)snprintf(w->said + used, sizeof w->said - used, "%s%s%zu", used == 0 ? "" : " ", word,
                   bytes);
}

static trp_err
wire_down(void *arg, trp_item *item)
{
    wire *w = arg;

    if (item->type == &trp_item_bytes) {
        UNIT_EQUAL(w->below, 0); /* one write at a time */
        w->below = trp_bytes_length(item->as.bytes);
        say(w, "write", w->below);
    } else {
        say(w, item->type->name, 0);
    }
    return TRP_OK;
}

static trp_err
wire_up(void *arg, trp_item *item)
{
    say(arg, item->type->name, (size_t)item->as.number);
    return TRP_OK;
}

static void
wire_open(wire *w, uint32_t aborts)
{
    trp_buffer_options buffer = TRP_BUFFER_OPTIONS_INIT;
    trp_pipeline_options options = TRP_PIPELINE_OPTIONS_INIT;
    trp_stage_use use = { &trp_buffer_stage, &buffer };

    buffer.low_bytes = 100;
    buffer.high_bytes = 1000;
    buffer.bytes_max = 2000;
    buffer.aborts = aborts;
    options.on_command = wire_down;
    options.on_event = wire_up;
    options.arg = w;
    memset(w, 0, sizeof *w);
    UNIT_REQUIRE(trp_pipeline_new(&use, 1, &options, &w->pipeline) == TRP_OK);
}

static trp_err
wire_write(wire *w, size_t bytes)
{
    static const uint8_t zeros[4096];
    trp_item item = trp_item_of(&trp_item_bytes);

    UNIT_REQUIRE(trp_bytes_wrap(zeros, bytes, NULL, NULL, &item.as.bytes) == TRP_OK);
    return trp_pipeline_command(w->pipeline, &item);
}

static trp_err
wire_written(wire *w, size_t bytes)
{
    trp_item item = trp_item_of(&trp_item_written);

    item.as.number = bytes;
    w->below -= bytes;
    return trp_pipeline_event(w->pipeline, &item);
}

static trp_err
wire_order(wire *w, const trp_item_type *type)
{
    trp_item item = trp_item_of(type);

    return trp_pipeline_command(w->pipeline, &item);
}

static void
said_is(wire *w, const char *want)
{
    UNIT_TEXT(w->said, want);
    w->said[0] = 0;
}

/* PIPE-13 */
static void
one_write_is_below_and_the_others_follow_as_one(void)
{
    wire w;

    wire_open(&w, 0);
    UNIT_EQUAL(wire_write(&w, 10), TRP_OK);
    UNIT_EQUAL(wire_write(&w, 20), TRP_OK);
    UNIT_EQUAL(wire_write(&w, 0), TRP_OK);
    UNIT_EQUAL(wire_write(&w, 30), TRP_OK);
    said_is(&w, "write10");
    UNIT_EQUAL(wire_written(&w, 4), TRP_OK);
    said_is(&w, "");
    UNIT_EQUAL(wire_written(&w, 6), TRP_OK);
    said_is(&w, "write50");
    UNIT_EQUAL(wire_written(&w, 51), TRP_EPROTO);
    trp_pipeline_free(w.pipeline);
}

/* PIPE-13: at high_bytes nothing, one byte more is high; low again at low_bytes */
static void
high_and_low_are_told_at_their_marks(void)
{
    wire w;

    wire_open(&w, 0);
    UNIT_EQUAL(wire_write(&w, 1000), TRP_OK);
    said_is(&w, "write1000");
    UNIT_EQUAL(wire_write(&w, 1), TRP_OK);
    UNIT_EQUAL(wire_write(&w, 100), TRP_OK); /* said once */
    said_is(&w, "high1001");
    UNIT_EQUAL(wire_written(&w, 1000), TRP_OK);
    said_is(&w, "write101");
    UNIT_EQUAL(wire_written(&w, 1), TRP_OK);
    said_is(&w, "low100");
    UNIT_EQUAL(wire_written(&w, 100), TRP_OK);
    said_is(&w, "");
    trp_pipeline_free(w.pipeline);
}

/* PIPE-13: at bytes_max all is taken, one byte more is refused, or the end */
static void
one_byte_above_the_bound_is_refused_or_aborts(void)
{
    wire w;

    wire_open(&w, 0);
    UNIT_EQUAL(wire_write(&w, 2000), TRP_OK);
    UNIT_EQUAL(wire_write(&w, 1), TRP_EAGAIN);
    said_is(&w, "write2000 high2000");
    UNIT_TEXT(trp_pipeline_reason(w.pipeline),
              "buffer: 1 bytes more than the buffer of 2000 can hold");
    UNIT_EQUAL(wire_written(&w, 1), TRP_OK);
    UNIT_EQUAL(wire_write(&w, 1), TRP_OK);
    trp_pipeline_free(w.pipeline);

    wire_open(&w, 1);
    UNIT_EQUAL(wire_write(&w, 10), TRP_OK);
    UNIT_EQUAL(wire_write(&w, 1991), TRP_OK);
    said_is(&w, "write10 abort0");
    UNIT_EQUAL(wire_written(&w, 10), TRP_OK); /* nothing follows */
    UNIT_EQUAL(wire_write(&w, 1), TRP_ECLOSED);
    said_is(&w, "");
    trp_pipeline_free(w.pipeline);
}

static void
a_close_waits_for_the_last_byte_and_an_abort_does_not(void)
{
    wire w;

    wire_open(&w, 0);
    UNIT_EQUAL(wire_write(&w, 10), TRP_OK);
    UNIT_EQUAL(wire_write(&w, 20), TRP_OK);
    UNIT_EQUAL(wire_order(&w, &trp_item_close), TRP_OK);
    UNIT_EQUAL(wire_write(&w, 1), TRP_ECLOSED);
    UNIT_EQUAL(wire_written(&w, 10), TRP_OK);
    said_is(&w, "write10 write20");
    UNIT_EQUAL(wire_written(&w, 20), TRP_OK);
    said_is(&w, "close0");
    UNIT_EQUAL(wire_order(&w, &trp_item_close), TRP_OK); /* said once */
    said_is(&w, "");
    trp_pipeline_free(w.pipeline);

    wire_open(&w, 0);
    UNIT_EQUAL(wire_write(&w, 10), TRP_OK);
    UNIT_EQUAL(wire_write(&w, 20), TRP_OK);
    UNIT_EQUAL(wire_order(&w, &trp_item_close), TRP_OK);
    UNIT_EQUAL(wire_order(&w, &trp_item_abort), TRP_OK);
    UNIT_EQUAL(wire_written(&w, 10), TRP_OK);
    said_is(&w, "write10 abort0");
    trp_pipeline_free(w.pipeline);
}

static void
marks_in_the_wrong_order_are_refused(void)
{
    trp_buffer_options buffer = TRP_BUFFER_OPTIONS_INIT;
    trp_stage_use use = { &trp_buffer_stage, &buffer };
    trp_pipeline *p = NULL;

    buffer.low_bytes = 2;
    buffer.high_bytes = 1;
    UNIT_EQUAL(trp_pipeline_new(&use, 1, NULL, &p), TRP_EINVAL);
    buffer.high_bytes = 3;
    buffer.bytes_max = 2;
    UNIT_EQUAL(trp_pipeline_new(&use, 1, NULL, &p), TRP_EINVAL);
    buffer.bytes_max = 3;
    UNIT_EQUAL(trp_pipeline_new(&use, 1, NULL, &p), TRP_OK);
    trp_pipeline_free(p);
}

UNIT_BEGIN("stages")
UNIT(text_is_utf8_in_both_directions)
UNIT(a_character_that_is_split_between_two_pieces_waits_for_its_rest)
UNIT(a_stream_that_is_not_utf8_is_refused_at_its_first_wrong_byte)
UNIT(stages_together_turn_a_stream_into_lines_of_text)
UNIT(one_write_is_below_and_the_others_follow_as_one)
UNIT(high_and_low_are_told_at_their_marks)
UNIT(one_byte_above_the_bound_is_refused_or_aborts)
UNIT(a_close_waits_for_the_last_byte_and_an_abort_does_not)
UNIT(marks_in_the_wrong_order_are_refused)
UNIT_END
