/* frames_test.c - frames by length, by delimiter, and lines: cut anywhere they come out the same;
 * limits at and one past; hostile lengths; memory. */
#include "tests/unit/io/frames.h"

#include "base/alloc.h"
#include "io/gather.h"

static frames all;

/* ---- by length ------------------------------------------------------------------------------- */

/* PIPE-10: the document's defaults: four bytes, big-endian, which count themselves */
static void
a_length_of_four_bytes_counts_itself_unless_told_otherwise(void)
{
    trp_bytes wire = TRP_BYTES_EMPTY;

    frames_open(&all, &trp_length_stage, NULL);
    UNIT_EQUAL(frames_send_text(&all, "abc", &wire), TRP_OK);
    UNIT_TRUE(frames_wire_is(&wire, "\0\0\0\7abc", 7));
    UNIT_EQUAL(frames_send_text(&all, "", &wire), TRP_OK);
    UNIT_TRUE(frames_wire_is(&wire, "\0\0\0\4", 4));
    UNIT_EQUAL(frames_feed(&all, "\0\0\0\7abc\0\0\0\4\0\0\0\5xy", 17), TRP_OK);
    UNIT_TEXT(all.text, "[abc][][x]");
    UNIT_EQUAL(frames_end(&all), TRP_EPROTO); /* y is the beginning of another */
    frames_close(&all);
}

static void
lengths_have_every_width_and_both_orders(void)
{
    static const struct {
        uint32_t bytes;
        trp_byte_order order;
        trp_length_of counts;
        const char *wire;
    } rows[] = { { 1, TRP_BIG_ENDIAN, TRP_LENGTH_OF_PAYLOAD, "\2hi" },
                 { 1, TRP_LITTLE_ENDIAN, TRP_LENGTH_OF_FRAME, "\3hi" },
                 { 2, TRP_BIG_ENDIAN, TRP_LENGTH_OF_PAYLOAD, "\0\2hi" },
                 { 2, TRP_LITTLE_ENDIAN, TRP_LENGTH_OF_PAYLOAD, "\2\0hi" },
                 { 3, TRP_BIG_ENDIAN, TRP_LENGTH_OF_FRAME, "\0\0\5hi" },
                 { 3, TRP_LITTLE_ENDIAN, TRP_LENGTH_OF_FRAME, "\5\0\0hi" },
                 { 4, TRP_LITTLE_ENDIAN, TRP_LENGTH_OF_PAYLOAD, "\2\0\0\0hi" },
                 { 8, TRP_BIG_ENDIAN, TRP_LENGTH_OF_PAYLOAD, "\0\0\0\0\0\0\0\2hi" },
                 { 8, TRP_LITTLE_ENDIAN, TRP_LENGTH_OF_FRAME, "\12\0\0\0\0\0\0\0hi" } };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        trp_length_options options = TRP_LENGTH_OPTIONS_INIT;
        trp_bytes wire = TRP_BYTES_EMPTY;

        options.field_bytes = rows[i].bytes;
        options.order = rows[i].order;
        options.counts = rows[i].counts;
        frames_open(&all, &trp_length_stage, &options);
        UNIT_EQUAL(frames_send_text(&all, "hi", &wire), TRP_OK);
        UNIT_TRUE(frames_wire_is(&wire, rows[i].wire, rows[i].bytes + 2));
        UNIT_EQUAL(frames_feed(&all, rows[i].wire, rows[i].bytes + 2), TRP_OK);
        UNIT_TEXT(all.text, "[hi]");
        UNIT_EQUAL(frames_end(&all), TRP_OK);
        frames_close(&all);
    }
}

/* PIPE-10: at the limit it passes; one byte more is an error to its writer, and to its reader */
static void
one_byte_above_the_limit_is_an_error_to_its_writer_and_to_its_reader(void)
{
    trp_length_options options = TRP_LENGTH_OPTIONS_INIT;
    trp_bytes wire = TRP_BYTES_EMPTY;

    options.bytes_max = 10;
    options.field_bytes = 2;
    frames_open(&all, &trp_length_stage, &options);
    UNIT_EQUAL(frames_send_text(&all, "123456789", &wire), TRP_EMSGSIZE);
    UNIT_TEXT(trp_pipeline_reason(all.pipeline), "length: a frame of 11 bytes to send, at most 10");
    UNIT_EQUAL(frames_send_text(&all, "12345678", &wire), TRP_OK); /* the stage goes on */
    UNIT_TRUE(frames_wire_is(&wire,
                             "\0\12"
                             "12345678",
                             10));
    UNIT_EQUAL(frames_feed(&all,
                           "\0\12"
                           "12345678\0\13",
                           12),
               TRP_EMSGSIZE);
    UNIT_TEXT(all.text, "[12345678]");
    UNIT_TEXT(trp_pipeline_reason(all.pipeline),
              "length: a frame of 11 bytes has come, at most 10");
    UNIT_EQUAL(frames_feed(&all, "\0\3a", 3), TRP_EMSGSIZE); /* broken for good */
    UNIT_TEXT(trp_pipeline_reason(all.pipeline),
              "length: the stream is broken since an earlier frame");
    UNIT_EQUAL(frames_send_text(&all, "a", &wire), TRP_OK); /* what is sent is not */
    trp_bytes_unref(&wire);
    frames_close(&all);
}

static void
a_length_that_cannot_be_is_refused_before_its_bytes_come(void)
{
    static const struct {
        uint32_t bytes;
        trp_length_of counts;
        const char *wire;
        trp_err err;
    } rows[] = {
        { 4, TRP_LENGTH_OF_FRAME, "\0\0\0\3", TRP_EPROTO }, /* less than itself */
        { 4, TRP_LENGTH_OF_FRAME, "\0\0\0\0", TRP_EPROTO },
        { 4, TRP_LENGTH_OF_FRAME, "\377\377\377\377", TRP_EMSGSIZE },
        { 4, TRP_LENGTH_OF_PAYLOAD, "\200\0\0\0", TRP_EMSGSIZE },
        { 8, TRP_LENGTH_OF_PAYLOAD, "\377\377\377\377\377\377\377\377", TRP_EMSGSIZE },
        { 8, TRP_LENGTH_OF_PAYLOAD, "\0\0\0\1\0\0\0\0", TRP_EMSGSIZE },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        trp_length_options options = TRP_LENGTH_OPTIONS_INIT;

        options.field_bytes = rows[i].bytes;
        options.counts = rows[i].counts;
        frames_open(&all, &trp_length_stage, &options);
        UNIT_EQUAL(frames_feed(&all, rows[i].wire, rows[i].bytes), rows[i].err);
        UNIT_EQUAL(all.count, 0);
        frames_close(&all);
    }
}

static void
options_out_of_range_make_no_stage(void)
{
    static const uint32_t widths[] = { 5, 6, 7, 9, 16 };
    trp_length_options options = TRP_LENGTH_OPTIONS_INIT;
    trp_delimiter_options delimiter = TRP_DELIMITER_OPTIONS_INIT;
    trp_line_options line = TRP_LINE_OPTIONS_INIT;
    const trp_stage_use by_length = { &trp_length_stage, &options };
    const trp_stage_use by_delimiter = { &trp_delimiter_stage, &delimiter };
    const trp_stage_use by_line = { &trp_line_stage, &line };
    char name[TRP_DELIMITER_BYTES_MAX + 2] = "12345678901234567";
    trp_pipeline *p = NULL;

    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        options.field_bytes = widths[i];
        UNIT_EQUAL(trp_pipeline_new(&by_length, 1, NULL, &p), TRP_EINVAL);
    }
    options.field_bytes = 4;
    options.bytes_max = TRP_BYTES_MAX;
    UNIT_EQUAL(trp_pipeline_new(&by_length, 1, NULL, &p), TRP_EINVAL);
    delimiter.delimiter = name;
    delimiter.delimiter_bytes = TRP_DELIMITER_BYTES_MAX + 1;
    UNIT_EQUAL(trp_pipeline_new(&by_delimiter, 1, NULL, &p), TRP_EINVAL);
    delimiter.delimiter_bytes = 0;
    UNIT_EQUAL(trp_pipeline_new(&by_delimiter, 1, NULL, &p), TRP_EINVAL);
    delimiter.delimiter_bytes = TRP_DELIMITER_BYTES_MAX;
    UNIT_EQUAL(trp_pipeline_new(&by_delimiter, 1, NULL, &p), TRP_OK);
    trp_pipeline_free(p);
    line.ends_crlf = 2;
    UNIT_EQUAL(trp_pipeline_new(&by_line, 1, NULL, &p), TRP_EINVAL);
}

/* ---- by delimiter, and lines ----------------------------------------------------------------- */

/* PIPE-13 */
static void
delimiters_are_left_out_or_kept(void)
{
    trp_delimiter_options options = TRP_DELIMITER_OPTIONS_INIT;
    trp_bytes wire = TRP_BYTES_EMPTY;

    frames_open(&all, &trp_delimiter_stage, NULL);
    UNIT_EQUAL(frames_send_text(&all, "a", &wire), TRP_OK);
    UNIT_TRUE(frames_wire_is(&wire, "a\n", 2));
    UNIT_EQUAL(frames_send_text(&all, "a\nb", &wire), TRP_EDATA); /* would be two */
    UNIT_EQUAL(frames_feed(&all, "one\n\nthree\nfo", 13), TRP_OK);
    UNIT_TEXT(all.text, "[one][][three]");
    UNIT_EQUAL(frames_end(&all), TRP_EPROTO);
    frames_close(&all);

    options.delimiter = "--";
    options.delimiter_bytes = 2;
    options.is_included = 1;
    options.bytes_max = 5;
    frames_open(&all, &trp_delimiter_stage, &options);
    UNIT_EQUAL(frames_send_text(&all, "abcde--", &wire), TRP_OK);
    UNIT_EQUAL(frames_send_text(&all, "a--b--", &wire), TRP_OK);
    UNIT_TRUE(frames_wire_is(&wire, "abcde--a--b--", 13));
    UNIT_EQUAL(frames_send_text(&all, "abcdef--", &wire), TRP_EMSGSIZE);
    UNIT_EQUAL(frames_send_text(&all, "a--b", &wire), TRP_EINVAL);
    UNIT_EQUAL(frames_send_text(&all, "a", &wire), TRP_EINVAL);
    UNIT_EQUAL(frames_feed(&all, "a-b---", 6), TRP_OK);
    UNIT_TEXT(all.text, "[a-b--]");
    UNIT_EQUAL(frames_feed(&all, "-", 1), TRP_OK);
    UNIT_TEXT(all.text, "[a-b--][--]");
    frames_close(&all);

    options.is_included = 0;
    frames_open(&all, &trp_delimiter_stage, &options);
    UNIT_EQUAL(frames_send_text(&all, "a-", &wire), TRP_EDATA); /* "a---" is cut one too early */
    UNIT_EQUAL(frames_send_text(&all, "-a", &wire), TRP_OK);
    UNIT_TRUE(frames_wire_is(&wire, "-a--", 4));
    frames_close(&all);
}

/* PIPE-13: content of bytes_max passes, one byte more breaks the stream, found without its end */
static void
a_frame_of_the_largest_size_passes_and_one_byte_more_breaks_the_stream(void)
{
    trp_delimiter_options options = TRP_DELIMITER_OPTIONS_INIT;
    trp_bytes wire = TRP_BYTES_EMPTY;

    options.bytes_max = 5;
    options.delimiter = "--";
    options.delimiter_bytes = 2;
    frames_open(&all, &trp_delimiter_stage, &options);
    UNIT_EQUAL(frames_feed(&all, "12345-", 6), TRP_OK);
    UNIT_EQUAL(frames_feed(&all, "-", 1), TRP_OK);
    UNIT_TEXT(all.text, "[12345]");
    UNIT_EQUAL(frames_feed(&all, "123456", 6), TRP_OK); /* the sixth may be half a delimiter */
    UNIT_EQUAL(frames_feed(&all, "7", 1), TRP_EMSGSIZE);
    UNIT_EQUAL(frames_feed(&all, "--", 2), TRP_EMSGSIZE);
    UNIT_EQUAL(frames_send_text(&all, "123456", &wire), TRP_EMSGSIZE);
    UNIT_EQUAL(frames_send_text(&all, "12345", &wire), TRP_OK);
    trp_bytes_unref(&wire);
    frames_close(&all);
    frames_open(&all, &trp_delimiter_stage, &options);
    UNIT_EQUAL(frames_feed(&all, "1--123456--", 11), TRP_EMSGSIZE);
    UNIT_TEXT(all.text, "[1]");
    frames_close(&all);
}

/* PIPE-13 */
static void
lines_end_at_lf_or_crlf(void)
{
    trp_line_options options = TRP_LINE_OPTIONS_INIT;
    trp_bytes wire = TRP_BYTES_EMPTY;

    options.bytes_max = 5;
    frames_open(&all, &trp_line_stage, &options);
    UNIT_EQUAL(frames_feed(&all, "lf\ncrlf\r\n\r\n\n1\r2\n", 16), TRP_OK);
    UNIT_TEXT(all.text, "[lf][crlf][][][1\r2]");
    UNIT_EQUAL(frames_feed(&all, "12345\r", 6), TRP_OK); /* at the limit: CR is no content yet */
    UNIT_EQUAL(frames_feed(&all, "\n", 1), TRP_OK);
    UNIT_EQUAL(frames_feed(&all, "12345\r", 6), TRP_OK);
    UNIT_EQUAL(frames_feed(&all, "6", 1), TRP_EMSGSIZE); /* now it is */
    UNIT_EQUAL(frames_send_text(&all, "12345", &wire), TRP_OK);
    UNIT_TRUE(frames_wire_is(&wire, "12345\n", 6));
    UNIT_EQUAL(frames_send_text(&all, "123456", &wire), TRP_EMSGSIZE);
    UNIT_EQUAL(frames_send_text(&all, "1\n2", &wire), TRP_EDATA);
    UNIT_EQUAL(frames_send_text(&all, "1\r", &wire), TRP_EDATA); /* the reader would drop it */
    frames_close(&all);
    options.ends_crlf = 1;
    frames_open(&all, &trp_line_stage, &options);
    UNIT_EQUAL(frames_send_text(&all, "12345", &wire), TRP_OK);
    UNIT_TRUE(frames_wire_is(&wire, "12345\r\n", 7));
    UNIT_EQUAL(frames_feed(&all, "123456\n", 7), TRP_EMSGSIZE);
    frames_close(&all);
}

/* ---- any cut --------------------------------------------------------------------------------- */

#define STREAM_BYTES 20000u

/* Send random frames through a stage and return the stream. */
static trp_bytes
stream_make(frames *f, unit_draw *draw, const char *letters)
{
    trp_bytes wire = TRP_BYTES_EMPTY;

    while (trp_bytes_length(wire) < STREAM_BYTES) {
        char frame[600];
        size_t bytes = unit_drawn(draw, unit_drawn(draw, 4) == 0 ? sizeof frame : 20);

        for (size_t i = 0; i < bytes; i++) {
            frame[i] = letters[unit_drawn(draw, (uint32_t)strlen(letters))];
        }
        (void)frames_send(f, frame, bytes, &wire); /* some are refused */
    }
    return wire;
}

static void
feed_cut(frames *f, trp_bytes wire, unit_draw *draw, uint32_t piece_max)
{
    size_t at = 0;

    while (at < trp_bytes_length(wire)) {
        size_t bytes = 1 + unit_drawn(draw, piece_max);
        trp_item item = trp_item_of_bytes(trp_bytes_slice(wire, at, at + bytes));

        UNIT_REQUIRE(trp_bytes_compact(&item.as.bytes) == TRP_OK);
        UNIT_REQUIRE(trp_pipeline_event(f->pipeline, &item) == TRP_OK);
        at += bytes;
    }
    UNIT_EQUAL(frames_end(f), TRP_OK);
}

static void
same_however_cut(const trp_stage *stage, const void *options, unit_draw *draw, const char *letters)
{
    static const uint32_t pieces[] = { STREAM_BYTES * 2, 1, 3, 40, 700 };
    static frames whole;
    trp_bytes wire;

    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        if (i == 0) {
            frames_open(&whole, stage, options);
            wire = stream_make(&whole, draw, letters);
            UNIT_REQUIRE(trp_bytes_compact(&wire) == TRP_OK);
            feed_cut(&whole, wire, draw, 1000000);
            UNIT_TRUE(whole.count > 20);
        }
        frames_open(&all, stage, options);
        feed_cut(&all, wire, draw, pieces[i]);
        UNIT_EQUAL(all.count, whole.count);
        UNIT_TRUE(all.used == whole.used && memcmp(all.text, whole.text, all.used) == 0);
        frames_close(&all);
    }
    frames_close(&whole);
    trp_bytes_unref(&wire);
}

/* PIPE-10, PIPE-13 */
static void
a_stream_gives_the_same_frames_however_it_is_cut(void)
{
    unit_draw draw = unit_draw_begin("tests/unit/io/io_tests", "frames_test");
    trp_length_options length = TRP_LENGTH_OPTIONS_INIT;
    trp_delimiter_options delimiter = TRP_DELIMITER_OPTIONS_INIT;

    same_however_cut(&trp_length_stage, NULL, &draw, "abcdefgh");
    length.field_bytes = 3;
    length.order = TRP_LITTLE_ENDIAN;
    length.counts = TRP_LENGTH_OF_PAYLOAD;
    same_however_cut(&trp_length_stage, &length, &draw, "abcdefgh");
    same_however_cut(&trp_line_stage, NULL, &draw, "abcdefghijklmnopqrstuvwxyz\r ");
    same_however_cut(&trp_delimiter_stage, NULL, &draw, "abcdefgh");
    delimiter.delimiter = "aab";
    delimiter.delimiter_bytes = 3;
    same_however_cut(&trp_delimiter_stage, &delimiter, &draw, "aabccccc");
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Frames are cut out of what came, and not copied. */
static void
frames_within_one_piece_share_its_memory(void)
{
    trp_stage_use use = { &trp_length_stage, NULL };
    trp_item item = trp_item_of(&trp_item_bytes), first, second;
    trp_pipeline *p = NULL;
    const uint8_t *origin;

    UNIT_REQUIRE(trp_pipeline_new(&use, 1, NULL, &p) == TRP_OK);
    UNIT_REQUIRE(trp_bytes_copy("\0\0\0\5a\0\0\0\6bc", 11, &item.as.bytes) == TRP_OK);
    origin = trp_bytes_flat(item.as.bytes);
    UNIT_EQUAL(trp_pipeline_event(p, &item), TRP_OK);
    UNIT_TRUE(trp_pipeline_next_event(p, &first) && trp_pipeline_next_event(p, &second));
    UNIT_TRUE(trp_bytes_flat(first.as.bytes) == origin + 4);
    UNIT_TRUE(trp_bytes_flat(second.as.bytes) == origin + 9);
    trp_item_clear(&first);
    trp_item_clear(&second);
    trp_pipeline_free(p);
}

static void
count_release(void *data, void *arg)
{
    (void)data;
    (*(unsigned *)arg)++;
}

/* Single bytes of a long frame do not keep what they came in, nor a slice each. */
static void
a_frame_that_drips_in_takes_about_its_own_size(void)
{
    static uint8_t byte = 'x';
    trpi_gather gather = { TRP_BYTES_EMPTY, TRP_BYTES_EMPTY, 0, 0 };
    trp_bytes_part parts[64];
    unsigned released = 0;

    for (unsigned i = 0; i < 100000; i++) {
        trp_bytes piece;

        UNIT_REQUIRE(trp_bytes_wrap(&byte, 1, count_release, &released, &piece) == TRP_OK);
        UNIT_REQUIRE(trpi_gather_add(&gather, &piece) == TRP_OK);
    }
    UNIT_EQUAL(released, 99999); /* the first one is held as it came */
    UNIT_EQUAL(trp_bytes_length(gather.held), 100000);
    UNIT_TRUE(trp_bytes_parts(gather.held, parts, 64) < 12);
    trpi_gather_fini(&gather);
    UNIT_EQUAL(released, 100000);
}

/* The few bytes of the next frame do not keep the large piece of the last. */
static void
a_short_rest_does_not_keep_the_piece_that_it_came_in(void)
{
    static uint8_t piece[60000];
    trp_item item = trp_item_of(&trp_item_bytes), frame;
    trp_stage_use use = { &trp_length_stage, NULL };
    trp_pipeline *p = NULL;
    unsigned released = 0;

    piece[2] = (uint8_t)((sizeof piece - 3) >> 8);
    piece[3] = (uint8_t)(sizeof piece - 3);
    UNIT_REQUIRE(trp_pipeline_new(&use, 1, NULL, &p) == TRP_OK);
    UNIT_REQUIRE(trp_bytes_wrap(piece, sizeof piece, count_release, &released, &item.as.bytes) ==
                 TRP_OK);
    UNIT_EQUAL(trp_pipeline_event(p, &item), TRP_OK);
    UNIT_TRUE(trp_pipeline_next_event(p, &frame));
    UNIT_EQUAL(trp_bytes_length(frame.as.bytes), sizeof piece - 7);
    UNIT_EQUAL(released, 0);
    trp_item_clear(&frame);
    UNIT_EQUAL(released, 1); /* three bytes of the next frame wait */
    trp_pipeline_free(p);
}

static void
without_memory_a_frame_is_refused_and_comes_again(void)
{
    trp_bytes wire = TRP_BYTES_EMPTY;
    trp_item item = trp_item_of(&trp_item_bytes);
    frames *f = &all;

    frames_open(f, &trp_length_stage, NULL);
    UNIT_REQUIRE(trp_bytes_copy("abc", 3, &item.as.bytes) == TRP_OK);
    trpi_alloc_fail_here_after(0);
    UNIT_EQUAL(trp_pipeline_command(f->pipeline, &item), TRP_ENOMEM);
    trpi_alloc_fail_here_after(-1);
    UNIT_EQUAL(trp_bytes_length(item.as.bytes), 3); /* it is still the writer's */
    UNIT_EQUAL(trp_pipeline_command(f->pipeline, &item), TRP_OK);
    UNIT_EQUAL(frames_feed(f, "\0\0", 2), TRP_OK);
    UNIT_REQUIRE(trp_bytes_copy("\0\6hi", 4, &item.as.bytes) == TRP_OK);
    item.type = &trp_item_bytes;
    trpi_alloc_fail_here_after(0);
    UNIT_EQUAL(trp_pipeline_event(f->pipeline, &item), TRP_ENOMEM);
    trpi_alloc_fail_here_after(-1);
    UNIT_EQUAL(trp_pipeline_event(f->pipeline, &item), TRP_OK);
    UNIT_TEXT(f->text, "[hi]");
    trp_bytes_unref(&wire);
    frames_close(f);
}

/* PIPE-12: a feeder can see that half a frame waits for its rest */
static void
a_pipeline_says_that_it_holds_the_beginning_of_a_frame(void)
{
    static const trp_text_options stream = { sizeof stream, 1, 0 };
    static const struct row {
        const trp_stage *stage;
        const void *options;
        const char *half, *rest;
        size_t half_bytes, rest_bytes;
    } rows[] = { { &trp_length_stage, NULL, "\0\0", "\0\5a", 2, 3 },
                 { &trp_length_stage, NULL, "\0\0\0\5a\0\0\0\6b", "c", 10, 1 },
                 { &trp_line_stage, NULL, "a", "b\n", 1, 2 },
                 { &trp_delimiter_stage, NULL, "a\nb", "\n", 3, 1 },
                 { &trp_text_stage, &stream, "\xc3", "\xbc", 1, 1 } };
    frames f;

    UNIT_EQUAL(trp_pipeline_holds(NULL), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        frames_open(&f, rows[i].stage, rows[i].options);
        UNIT_EQUAL(trp_pipeline_holds(f.pipeline), 0);
        UNIT_EQUAL(frames_feed(&f, rows[i].half, rows[i].half_bytes), TRP_OK);
        UNIT_EQUAL(trp_pipeline_holds(f.pipeline), 1);
        UNIT_EQUAL(frames_feed(&f, rows[i].rest, rows[i].rest_bytes), TRP_OK);
        UNIT_EQUAL(trp_pipeline_holds(f.pipeline), 0);
        frames_close(&f);
    }
}

UNIT_BEGIN("frames")
UNIT(a_pipeline_says_that_it_holds_the_beginning_of_a_frame)
UNIT(a_length_of_four_bytes_counts_itself_unless_told_otherwise)
UNIT(lengths_have_every_width_and_both_orders)
UNIT(one_byte_above_the_limit_is_an_error_to_its_writer_and_to_its_reader)
UNIT(a_length_that_cannot_be_is_refused_before_its_bytes_come)
UNIT(options_out_of_range_make_no_stage)
UNIT(delimiters_are_left_out_or_kept)
UNIT(a_frame_of_the_largest_size_passes_and_one_byte_more_breaks_the_stream)
UNIT(lines_end_at_lf_or_crlf)
UNIT(a_stream_gives_the_same_frames_however_it_is_cut)
UNIT(frames_within_one_piece_share_its_memory)
UNIT(a_frame_that_drips_in_takes_about_its_own_size)
UNIT(a_short_rest_does_not_keep_the_piece_that_it_came_in)
UNIT(without_memory_a_frame_is_refused_and_comes_again)
UNIT_END
