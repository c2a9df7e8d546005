/* compress_lz4.c - see the header.
 *
 * Must hold.
 *   compress-lz4-Z1  The size that a frame claims is compared with the limit, and with the most
 *       that its block can expand to, before anything is allocated for it.
 *   compress-lz4-Z2  A block expands to exactly the bytes that it claims; nothing is read or
 *       written beyond.
 * Tests.  tests/unit/remote/compress_test.c, tests/fuzz/compress_fuzz.c
 */
#include "remote/wire/compress.h"

#include <string.h>

#ifdef HAVE_LZ4
#include <lz4.h>
#endif

#include "base/assert.h"
#include "base/wire.h"

#ifdef HAVE_LZ4

enum {
    CLAIM_BYTES = 4,
    BEFORE = TRPI_USER_FIXED_BYTES, /* of the body: not compressed */
    HEAD = TRPI_FRAME_HEADER_BYTES + BEFORE
};

bool
trpi_compress_is_built(void)
{
    return true;
}

bool
trpi_message_compress(trpi_buffer *frames, size_t at, trpi_buffer *scratch)
{
    trpi_frame frame;
    trpi_frame_header_decode(frames->data + at, &frame);
    trpi_assert(frame.kind == TRPI_FRAME_USER && frame.bytes >= BEFORE);
    trpi_assert(at + TRPI_FRAME_HEADER_BYTES + frame.bytes == frames->count);
    size_t bytes = frame.bytes - BEFORE;
    size_t most = bytes - bytes / 8; /* saves an eighth, with the 4 bytes of the length */
    if (most <= CLAIM_BYTES || bytes > LZ4_MAX_INPUT_SIZE) {
        return false;
    }
    most -= CLAIM_BYTES;
    trpi_buffer_clear(scratch);
    if (trpi_buffer_reserve(scratch, most, TRPI_BUFFER_NO_LIMIT /* below the frame's */) !=
        TRP_OK) {
        return false;
    }
    uint8_t *from = frames->data + at + HEAD;
    int packed =
        LZ4_compress_default((const char *)from, (char *)scratch->data, (int)bytes, (int)most);
    if (packed <= 0) {
        return false; /* it would have been longer than `most` */
    }
    trpi_put_u32(from, (uint32_t)bytes);
    memcpy(from + CLAIM_BYTES, scratch->data, (size_t)packed);
    trpi_frame_header_encode(frames->data + at, BEFORE + CLAIM_BYTES + (uint32_t)packed, frame.kind,
                             frame.flags | TRPI_MESSAGE_COMPRESSED, frame.extra);
    frames->count = at + HEAD + CLAIM_BYTES + (size_t)packed;
    return true;
}

trp_err
trpi_message_expand(const trpi_frame *frame, uint32_t body_bytes_max, trpi_buffer *scratch,
                    trpi_frame *ret_frame)
{
    if (frame->kind != TRPI_FRAME_USER || frame->bytes <= BEFORE + CLAIM_BYTES) {
        return TRP_EDATA;
    }
    uint32_t claimed = trpi_get_u32(frame->body + BEFORE);
    uint32_t packed = frame->bytes - BEFORE - CLAIM_BYTES;
    if (body_bytes_max < BEFORE || claimed > body_bytes_max - BEFORE) { /* compress-lz4-Z1 */
        return TRP_EMSGSIZE;
    }
    if (claimed / TRPI_COMPRESS_RATIO_MAX > packed || packed > LZ4_MAX_INPUT_SIZE) {
        return TRP_EDATA;
    }
    trpi_buffer_clear(scratch);
    trp_err err =
        trpi_buffer_reserve(scratch, BEFORE + claimed, TRPI_BUFFER_NO_LIMIT /* compared above */);
    if (err != TRP_OK) {
        return err;
    }
    memcpy(scratch->data, frame->body, BEFORE);
    int expanded = LZ4_decompress_safe((const char *)frame->body + BEFORE + CLAIM_BYTES,
                                       (char *)scratch->data + BEFORE, (int)packed, (int)claimed);
    if (expanded < 0 || (uint32_t)expanded != claimed) { /* compress-lz4-Z2 */
        return TRP_EDATA;
    }
    scratch->count = BEFORE + claimed;
    *ret_frame = *frame;
    ret_frame->flags &= (uint8_t)~TRPI_MESSAGE_COMPRESSED;
    ret_frame->bytes = BEFORE + claimed;
    ret_frame->body = scratch->data;
    return TRP_OK;
}

#else

bool
trpi_compress_is_built(void)
{
    return false;
}

bool
trpi_message_compress(trpi_buffer *frames, size_t at, trpi_buffer *scratch)
{
    (void)frames;
    (void)at;
    (void)scratch;
    return false;
}

trp_err
trpi_message_expand(const trpi_frame *frame, uint32_t body_bytes_max, trpi_buffer *scratch,
                    trpi_frame *ret_frame)
{
    (void)frame;
    (void)body_bytes_max;
    (void)scratch;
    (void)ret_frame;
    return TRP_EDATA;
}

#endif
