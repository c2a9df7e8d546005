/* compress_test.c - USER frames whose payload is compressed: back as they were, or refused. */
#include "remote/wire/compress.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/wire.h"
#include "tests/unit/unit.h"

enum { BODY_MAX = 70000, CLAIM_AT = TRPI_FRAME_HEADER_BYTES + TRPI_USER_FIXED_BYTES };

/* A USER frame of so many bytes of payload behind whatever is in out; noise: nothing repeats. */
static size_t
frame_add(trpi_buffer *out, size_t payload, bool noise)
{
    size_t at = out->count;
    uint8_t *body = trpi_alloc(TRPI_USER_FIXED_BYTES + payload + 8);
    for (size_t i = 0; i < TRPI_USER_FIXED_BYTES; i++) {
        body[i] = (uint8_t)(i + 1);
    }
    for (size_t i = 0; i < payload; i += 8) {
        uint64_t word = noise ? trpi_hash_u64(i + 12345) : i / 512;
        memcpy(body + TRPI_USER_FIXED_BYTES + i, &word, 8);
    }
    UNIT_EQUAL(trpi_frame_append(out, TRPI_FRAME_USER, 5, 1, body, TRPI_USER_FIXED_BYTES + payload),
               TRP_OK);
    trpi_free(body);
    return at;
}

#ifdef HAVE_LZ4

static void
a_compressed_message_comes_back_as_it_was(void)
{
    trpi_buffer out = { 0 }, plain = { 0 }, scratch = { 0 };
    trpi_frame frame, back;
    UNIT_EQUAL(trpi_buffer_append(&out, "before", 6, TRPI_BUFFER_NO_LIMIT), TRP_OK);
    size_t at = frame_add(&out, BODY_MAX, false);
    (void)frame_add(&plain, BODY_MAX, false);
    UNIT_TRUE(trpi_message_compress(&out, at, &scratch));
    UNIT_TRUE(out.count < plain.count / 4);
    trpi_frame_header_decode(out.data + at, &frame);
    UNIT_EQUAL(at + TRPI_FRAME_HEADER_BYTES + frame.bytes, out.count);
    UNIT_EQUAL(frame.flags, 5 | TRPI_MESSAGE_COMPRESSED);
    trpi_message message;
    UNIT_TRUE(trpi_message_peek(&frame, &message)); /* the recipient can be read */
    UNIT_EQUAL(message.to_slot, 0x04030201);
    trpi_node_map map = { 0 };
    UNIT_EQUAL(trpi_message_decode(&frame, &map, &message), TRP_EDATA); /* but not its payload */
    /* at the limit and one past it */
    uint32_t body = TRPI_USER_FIXED_BYTES + BODY_MAX;
    UNIT_EQUAL(trpi_message_expand(&frame, body, &scratch, &back), TRP_OK);
    UNIT_EQUAL(back.flags, 5);
    UNIT_EQUAL(back.extra, 1);
    UNIT_EQUAL(back.bytes, body);
    UNIT_EQUAL(memcmp(back.body, plain.data + TRPI_FRAME_HEADER_BYTES, back.bytes), 0);
    UNIT_EQUAL(trpi_message_expand(&frame, body - 1, &scratch, &back), TRP_EMSGSIZE);
    trpi_buffer_fini(&out);
    trpi_buffer_fini(&plain);
    trpi_buffer_fini(&scratch);
}

static void
what_would_not_get_smaller_stays_as_it_is(void)
{
    trpi_buffer out = { 0 }, plain = { 0 }, scratch = { 0 };
    for (size_t payload = 0; payload < 4096; payload = payload * 2 + 1) {
        trpi_buffer_clear(&out);
        trpi_buffer_clear(&plain);
        (void)frame_add(&out, payload, true);
        (void)frame_add(&plain, payload, true);
        UNIT_TRUE(!trpi_message_compress(&out, 0, &scratch));
        UNIT_TRUE(out.count == plain.count && memcmp(out.data, plain.data, out.count) == 0);
    }
    trpi_buffer_fini(&out);
    trpi_buffer_fini(&plain);
    trpi_buffer_fini(&scratch);
}

/* A false length is refused: too large, more than the block can hold, more or less than it holds,
 * cut anywhere. */
static void
a_bomb_is_refused_before_anything_is_allocated(void)
{
    trpi_buffer out = { 0 }, scratch = { 0 };
    trpi_frame frame, back;
    (void)frame_add(&out, BODY_MAX, false);
    UNIT_TRUE(trpi_message_compress(&out, 0, &scratch));
    trpi_buffer_fini(&scratch);
    trpi_frame_header_decode(out.data, &frame);
    uint32_t block = frame.bytes - TRPI_USER_FIXED_BYTES - 4;
    uint32_t claims[] = { UINT32_MAX,   64u << 20,    (block + 1) * TRPI_COMPRESS_RATIO_MAX,
                          BODY_MAX + 1, BODY_MAX - 1, 0 };
    for (size_t i = 0; i < sizeof claims / sizeof claims[0]; i++) {
        trpi_put_u32(out.data + CLAIM_AT, claims[i]);
        trp_err err = trpi_message_expand(&frame, 4u << 20, &scratch, &back);
        UNIT_EQUAL(err, i < 2 ? TRP_EMSGSIZE : TRP_EDATA);
        if (i < 3) {
            UNIT_EQUAL(scratch.capacity, 0);
        }
    }
    trpi_put_u32(out.data + CLAIM_AT, BODY_MAX);
    for (uint32_t cut = 0; cut < frame.bytes; cut++) {
        trpi_frame shorter = frame;
        uint8_t *exact = trpi_alloc(cut + 1);
        memcpy(exact, frame.body, cut);
        shorter.body = exact;
        shorter.bytes = cut;
        UNIT_EQUAL(trpi_message_expand(&shorter, 4u << 20, &scratch, &back), TRP_EDATA);
        trpi_free(exact);
    }
    frame.kind = TRPI_FRAME_SELECT; /* only USER has that flag */
    UNIT_EQUAL(trpi_message_expand(&frame, 4u << 20, &scratch, &back), TRP_EDATA);
    trpi_buffer_fini(&out);
    trpi_buffer_fini(&scratch);
}

/* The block format does not change: a frame of another build can be expanded */
static void
the_golden_block_expands(void)
{
    uint8_t body[TRPI_USER_FIXED_BYTES + 4 + 12] = { 1 };
    /* a literal 'a', repeated by a match of 45 at distance 1; the last five as literals */
    static const uint8_t block[] = { 0x1f, 'a', 1, 0, 26, 0x50, 'a', 'a', 'a', 'a', 'a' };
    trpi_buffer scratch = { 0 };
    trpi_frame frame = { TRPI_USER_FIXED_BYTES + 4 + sizeof block, TRPI_FRAME_USER,
                         TRPI_MESSAGE_COMPRESSED, 3, body };
    trpi_frame back;
    trpi_put_u32(body + TRPI_USER_FIXED_BYTES, 51);
    memcpy(body + TRPI_USER_FIXED_BYTES + 4, block, sizeof block);
    UNIT_EQUAL(trpi_message_expand(&frame, 4096, &scratch, &back), TRP_OK);
    UNIT_EQUAL(back.bytes, TRPI_USER_FIXED_BYTES + 51);
    for (uint32_t i = TRPI_USER_FIXED_BYTES; i < back.bytes; i++) {
        UNIT_EQUAL(back.body[i], 'a');
    }
    trpi_buffer_fini(&scratch);
}

UNIT_BEGIN("compress")
UNIT(a_compressed_message_comes_back_as_it_was)
UNIT(what_would_not_get_smaller_stays_as_it_is)
UNIT(a_bomb_is_refused_before_anything_is_allocated)
UNIT(the_golden_block_expands)
UNIT_END

#else

static void
without_lz4_nothing_is_compressed_or_understood(void)
{
    trpi_buffer out = { 0 }, scratch = { 0 };
    trpi_frame frame, back;
    UNIT_TRUE(!trpi_compress_is_built());
    (void)frame_add(&out, BODY_MAX, false);
    UNIT_TRUE(!trpi_message_compress(&out, 0, &scratch));
    trpi_frame_header_decode(out.data, &frame);
    UNIT_EQUAL(frame.flags & TRPI_MESSAGE_COMPRESSED, 0);
    UNIT_EQUAL(trpi_message_expand(&frame, 1 << 20, &scratch, &back), TRP_EDATA);
    trpi_buffer_fini(&out);
}

UNIT_BEGIN("compress")
UNIT(without_lz4_nothing_is_compressed_or_understood)
UNIT_END

#endif
