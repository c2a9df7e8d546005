/* Numbers out of bytes and into bytes: both orders, all widths, across pieces, hostile lengths. */
#include <troupe/bytes.h>

#include "base/alloc.h"
#include "tests/unit/draw.h"

/* IO-08 */
static void
numbers_stand_in_the_order_that_was_asked_for(void)
{
    static const uint8_t big[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0xfe, 0xff };
    trp_bytes_writer out = TRP_BYTES_WRITER(TRP_BIG_ENDIAN);
    trp_bytes bytes;

    trp_bytes_put_u8(&out, 1);
    trp_bytes_put_u16(&out, 0x0203);
    trp_bytes_put_u32(&out, 0x04050607);
    trp_bytes_put_u64(&out, 0x08090a0b0c0d0e0f);
    trp_bytes_put_i16(&out, -257);
    UNIT_EQUAL(trp_bytes_writer_length(&out), sizeof big);
    UNIT_EQUAL(trp_bytes_written(&out, &bytes), TRP_OK);
    UNIT_EQUAL(trp_bytes_length(bytes), sizeof big);
    UNIT_EQUAL(memcmp(trp_bytes_flat(bytes), big, sizeof big), 0);
    trp_bytes_unref(&bytes);

    out = TRP_BYTES_WRITER(TRP_LITTLE_ENDIAN);
    trp_bytes_put_u32(&out, 0x04030201);
    trp_bytes_put_part(&out, 3, 0x99070605); /* its lowest three */
    UNIT_EQUAL(trp_bytes_written(&out, &bytes), TRP_OK);
    UNIT_EQUAL(trp_bytes_length(bytes), 7);
    UNIT_EQUAL(memcmp(trp_bytes_flat(bytes), big, 7), 0);
    trp_bytes_unref(&bytes);
}

/* IO-08, IO-09: the frame of the manual; a is a short, b a long */
static void
the_frame_of_the_manual_comes_back_field_by_field(void)
{
    static const int16_t a[] = { 1, -2, 3 };
    static const int64_t b[] = { 1, -2, INT64_MAX };
    static const double data[] = { 1.5, -2.25 };
    trp_bytes_writer out = TRP_BYTES_WRITER(TRP_BIG_ENDIAN);
    trp_bytes_reader in;
    trp_bytes frame, rest;
    uint32_t n = 0, m = 0;
    double got[2] = { 0, 0 };

    trp_bytes_put_u32(&out, 3);
    trp_bytes_put_u32(&out, 2);
    for (unsigned i = 0; i < 3; i++) {
        trp_bytes_put_i16(&out, a[i]);
        trp_bytes_put_i64(&out, b[i]);
    }
    trp_bytes_put(&out, sizeof(double), 2, data);
    UNIT_EQUAL(trp_bytes_written(&out, &frame), TRP_OK);
    UNIT_EQUAL(trp_bytes_length(frame), 8 + 3 * 10 + 16);

    in = trp_bytes_read(frame, TRP_BIG_ENDIAN);
    UNIT_EQUAL(trp_bytes_get_u32(&in, &n), TRP_OK);
    UNIT_EQUAL(trp_bytes_get_u32(&in, &m), TRP_OK);
    UNIT_EQUAL(n, 3);
    UNIT_EQUAL(m, 2);
    for (unsigned i = 0; i < 3; i++) {
        int16_t one = 0;
        int64_t two = 0;

        UNIT_EQUAL(trp_bytes_get_i16(&in, &one), TRP_OK);
        UNIT_EQUAL(trp_bytes_get_i64(&in, &two), TRP_OK);
        UNIT_EQUAL(one, a[i]);
        UNIT_EQUAL(two, b[i]);
    }
    rest = trp_bytes_rest(&in); /* without copying */
    UNIT_TRUE(trp_bytes_flat(rest) == trp_bytes_flat(frame) + 38);
    UNIT_EQUAL(trp_bytes_get(&in, sizeof(double), 2, got), TRP_OK);
    UNIT_EQUAL(memcmp(got, data, sizeof data), 0);
    UNIT_EQUAL(trp_bytes_left(&in), 0);
    UNIT_EQUAL(trp_bytes_reader_err(&in), TRP_OK);
    trp_bytes_unref(&rest);
    trp_bytes_unref(&frame);
}

static void
floating_numbers_are_those_of_ieee_754(void)
{
    static const uint8_t want[] = { 0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0 };
    trp_bytes_writer out = TRP_BYTES_WRITER(TRP_BIG_ENDIAN);
    trp_bytes_reader in;
    trp_bytes bytes;
    float f = 0;
    double d = 0;

    trp_bytes_put_f32(&out, 1.0f);
    trp_bytes_put_f64(&out, -2.0);
    UNIT_EQUAL(trp_bytes_written(&out, &bytes), TRP_OK);
    UNIT_EQUAL(memcmp(trp_bytes_flat(bytes), want, sizeof want), 0);
    in = trp_bytes_read(bytes, TRP_BIG_ENDIAN);
    UNIT_EQUAL(trp_bytes_get_f32(&in, &f), TRP_OK);
    UNIT_EQUAL(trp_bytes_get_f64(&in, &d), TRP_OK);
    UNIT_TRUE(f > 0.99f && f < 1.01f && d > -2.01 && d < -1.99);
    trp_bytes_unref(&bytes);
}

/* The first error is kept, outputs are untouched, and nothing is read behind it. */
static void
what_is_not_there_is_an_error_that_stays(void)
{
    trp_bytes bytes = TRP_BYTES_LITERAL("abc"), cut;
    trp_bytes_reader in = trp_bytes_read(bytes, TRP_BIG_ENDIAN);
    uint32_t number = 7;
    uint8_t byte = 7;
    uint64_t large = 7;

    UNIT_EQUAL(trp_bytes_get_u32(&in, &number), TRP_EDATA);
    UNIT_EQUAL(number, 7);
    UNIT_EQUAL(trp_bytes_get_u8(&in, &byte), TRP_EDATA);
    UNIT_EQUAL(byte, 7);
    UNIT_EQUAL(trp_bytes_reader_err(&in), TRP_EDATA);

    in = trp_bytes_read(bytes, TRP_BIG_ENDIAN);
    UNIT_EQUAL(trp_bytes_get(&in, 8, SIZE_MAX / 4, NULL), TRP_EDATA);
    in = trp_bytes_read(bytes, TRP_BIG_ENDIAN);
    UNIT_EQUAL(trp_bytes_get_bytes(&in, 4, &cut), TRP_EDATA);
    in = trp_bytes_read(bytes, TRP_BIG_ENDIAN);
    UNIT_EQUAL(trp_bytes_get_part(&in, 9, &large), TRP_EINVAL);
    in = trp_bytes_read(bytes, TRP_BIG_ENDIAN);
    UNIT_EQUAL(trp_bytes_get(&in, 3, 1, &number), TRP_EINVAL);
    in = trp_bytes_read(bytes, TRP_BIG_ENDIAN);
    UNIT_EQUAL(trp_bytes_get(&in, 1, 3, NULL), TRP_OK); /* all three, left out */
    UNIT_EQUAL(trp_bytes_get_u8(&in, &byte), TRP_EDATA);
}

static void
a_writer_without_memory_says_so_at_its_end(void)
{
    trp_bytes_writer out = TRP_BYTES_WRITER(TRP_BIG_ENDIAN);
    trp_bytes bytes = TRP_BYTES_EMPTY;
    uint8_t many[600] = { 0 };

    for (long n = 0; n < 3; n++) {
        trpi_alloc_fail_here_after(n);
        trp_bytes_put_u32(&out, 1);
        trp_bytes_put(&out, 1, sizeof many, many);
        UNIT_EQUAL(trp_bytes_written(&out, &bytes), TRP_ENOMEM);
        trpi_alloc_fail_here_after(-1);
    }
    trp_bytes_put(&out, 5, 1, many);
    UNIT_EQUAL(trp_bytes_written(&out, &bytes), TRP_EINVAL);
    trp_bytes_put_part(&out, 0, 1);
    UNIT_EQUAL(trp_bytes_written(&out, &bytes), TRP_EINVAL);
    trp_bytes_put_u32(&out, 1);
    trp_bytes_writer_clear(&out);
    UNIT_EQUAL(trp_bytes_written(&out, &bytes), TRP_OK);
    UNIT_EQUAL(trp_bytes_length(bytes), 0);
}

/* Long slices are shared, short ones copied. */
static void
slices_of_256_bytes_are_shared_and_shorter_ones_copied(void)
{
    trp_bytes_writer out = TRP_BYTES_WRITER(TRP_BIG_ENDIAN);
    trp_bytes slice, bytes, shorter;
    trp_bytes_part parts[4];
    uint8_t *data;

    UNIT_REQUIRE(trp_bytes_new(TRP_BYTES_SHARED_MIN, &data, &slice) == TRP_OK);
    memset(data, 'x', TRP_BYTES_SHARED_MIN);
    shorter = trp_bytes_drop(slice, 1);
    trp_bytes_put_bytes(&out, shorter);
    trp_bytes_put_u8(&out, '1');
    trp_bytes_put_bytes(&out, slice);
    trp_bytes_put_u8(&out, '2');
    UNIT_EQUAL(trp_bytes_written(&out, &bytes), TRP_OK);
    UNIT_EQUAL(trp_bytes_length(bytes), 2 * TRP_BYTES_SHARED_MIN + 1);
    UNIT_EQUAL(trp_bytes_parts(bytes, parts, 4), 3);
    UNIT_EQUAL(parts[0].bytes, TRP_BYTES_SHARED_MIN);
    UNIT_TRUE(parts[1].data == data);
    trp_bytes_unref(&bytes);
    trp_bytes_unref(&shorter);
    trp_bytes_unref(&slice);
}

/* ---- random numbers, random pieces ----------------------------------------------------------- */

#define NUMBERS 300u

static trp_bytes
in_pieces(trp_bytes bytes, unit_draw *draw)
{
    trp_bytes made = TRP_BYTES_EMPTY;
    size_t at = 0;

    while (at < trp_bytes_length(bytes)) {
        size_t end = at + 1 + unit_drawn(draw, 12);
        trp_bytes cut = trp_bytes_slice(bytes, at, end), own = cut;

        UNIT_REQUIRE(trp_bytes_compact(&own) == TRP_OK);
        UNIT_REQUIRE(trp_bytes_append(&made, own) == TRP_OK);
        trp_bytes_unref(&own);
        at = end;
    }
    return made;
}

/* IO-08 */
static void
numbers_come_back_however_the_bytes_are_cut(void)
{
    unit_draw draw = unit_draw_begin("tests/unit/base/base_tests", "bytes_codec_test");

    for (unsigned round = 0; round < 20; round++) {
        trp_byte_order order = round % 2 == 0 ? TRP_BIG_ENDIAN : TRP_LITTLE_ENDIAN;
        trp_bytes_writer out = TRP_BYTES_WRITER(order);
        uint64_t values[NUMBERS], got[NUMBERS];
        uint32_t words[NUMBERS], words_got[NUMBERS];
        unsigned widths[NUMBERS];
        trp_bytes bytes, pieces;
        trp_bytes_reader in;

        for (unsigned i = 0; i < NUMBERS; i++) {
            widths[i] = 1 + unit_drawn(&draw, 8);
            words[i] = unit_drawn(&draw, UINT32_MAX);
            values[i] =
                ((uint64_t)unit_drawn(&draw, UINT32_MAX) << 32 | words[i]) >> (64 - 8 * widths[i]);
            trp_bytes_put_part(&out, widths[i], values[i]);
        }
        trp_bytes_put(&out, sizeof words[0], NUMBERS, words);
        UNIT_REQUIRE(trp_bytes_written(&out, &bytes) == TRP_OK);
        pieces = in_pieces(bytes, &draw);
        in = trp_bytes_read(pieces, order);
        for (unsigned i = 0; i < NUMBERS; i++) {
            UNIT_REQUIRE(trp_bytes_get_part(&in, widths[i], &got[i]) == TRP_OK);
            UNIT_REQUIRE(got[i] == values[i]);
        }
        UNIT_EQUAL(trp_bytes_get(&in, sizeof words[0], NUMBERS, words_got), TRP_OK);
        UNIT_EQUAL(memcmp(words, words_got, sizeof words), 0);
        UNIT_EQUAL(trp_bytes_left(&in), 0);
        trp_bytes_unref(&pieces);
        trp_bytes_unref(&bytes);
    }
}

UNIT_BEGIN("bytes_codec")
UNIT(numbers_stand_in_the_order_that_was_asked_for)
UNIT(the_frame_of_the_manual_comes_back_field_by_field)
UNIT(floating_numbers_are_those_of_ieee_754)
UNIT(what_is_not_there_is_an_error_that_stays)
UNIT(a_writer_without_memory_says_so_at_its_end)
UNIT(slices_of_256_bytes_are_shared_and_shorter_ones_copied)
UNIT(numbers_come_back_however_the_bytes_are_cut)
UNIT_END
