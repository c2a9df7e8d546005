/* compress_fuzz.c - a stranger's compressed messages, and the round trip of own ones.
 *
 * The first two bytes are the limit of a body, in units of 64 bytes; the rest is a body. Corpus:
 * tests/fuzz/corpus/compress.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/wire.h"
#include "remote/wire/compress.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
body_expand(const uint8_t *body, size_t bytes, uint32_t limit)
{
    trpi_buffer scratch = { 0 };
    uint8_t *exact = trpi_alloc(bytes + 1); /* so that a sanitizer sees a read past its end */
    trpi_frame frame = { (uint32_t)bytes, TRPI_FRAME_USER, TRPI_MESSAGE_COMPRESSED | 5, 1, exact };
    trpi_frame back;
    memcpy(exact, body, bytes);
    if (trpi_message_expand(&frame, limit, &scratch, &back) == TRP_OK) {
        trpi_message message;
        trpi_assert(back.bytes <= limit && back.flags == 5);
        trpi_assert(trpi_message_peek(&back, &message));
    }
    trpi_assert(scratch.count <= limit);
    trpi_free(exact);
    trpi_buffer_fini(&scratch);
}

static void
there_and_back(const uint8_t *body, size_t bytes)
{
    trpi_buffer frames = { 0 }, scratch = { 0 };
    trpi_frame frame, back;
    if (trpi_frame_append(&frames, TRPI_FRAME_USER, 1, 2, body, bytes) == TRP_OK &&
        trpi_message_compress(&frames, 0, &scratch)) {
        trpi_frame_header_decode(frames.data, &frame);
        trpi_assert(frame.bytes < bytes);
        trpi_assert(trpi_message_expand(&frame, (uint32_t)bytes, &scratch, &back) == TRP_OK);
        trpi_assert(back.bytes == bytes && memcmp(back.body, body, bytes) == 0);
    }
    trpi_buffer_fini(&frames);
    trpi_buffer_fini(&scratch);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size >= 2) {
        body_expand(data + 2, size - 2, trpi_get_u16(data) * 64u);
        if (size - 2 >= TRPI_USER_FIXED_BYTES) {
            there_and_back(data + 2, size - 2);
        }
    }
    return 0;
}
