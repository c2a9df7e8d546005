/* framing_fuzz.c - the stream of a stranger, cut into messages, however it is cut into pieces.
 *
 * The first byte says which frames, the second how long the pieces are. Messages that were read
 * are framed again, and read again. Corpus: tests/fuzz/corpus/framing.
 */
#include <string.h>

#include "base/assert.h"
#include "endpoint/framing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MESSAGES = 256, BYTES_MAX = 64 };

typedef struct outcome {
    uint32_t count;
    size_t lengths[MESSAGES];
    uint8_t first[MESSAGES];
    trp_err err;
} outcome;

/* A message is taken as it was sent: framed, and cut again by another stream. */
static void
message_return(const trpi_framing *framing, trpi_frames *from, trp_bytes body)
{
    trpi_frames *to;
    trp_bytes frame, again;
    trp_err err;
    if (trpi_frames_frame(from, body, &frame) != TRP_OK) {
        /* of lines, a carriage return at the end; of lengths and pieces nothing */
        trpi_assert(framing->kind == TRPI_FRAME_LINE && trpi_frames_reason(from)[0] != '\0');
        return;
    }
    if (trpi_frames_new(framing, &to) == TRP_OK) {
        trpi_assert(trpi_frames_add(to, frame, NULL) == TRP_OK);
        trpi_assert(trpi_frames_next(to, &again, &err));
        trpi_assert(trp_bytes_compare(body, again) == 0);
        trp_bytes_unref(&again);
        trpi_assert(!trpi_frames_next(to, &again, &err) && err == TRP_OK);
        trpi_assert(!trpi_frames_holds(to));
        trpi_frames_free(to);
    }
    trp_bytes_unref(&frame);
}

static void
stream_take(const trpi_framing *framing, trpi_frames *stream, outcome *o)
{
    trp_bytes body;
    while (trpi_frames_next(stream, &body, &o->err)) {
        size_t bytes = trp_bytes_length(body);
        trpi_assert(framing->kind == TRPI_FRAME_NONE || bytes <= framing->bytes_max);
        if (o->count < MESSAGES) {
            o->lengths[o->count] = bytes;
            (void)trp_bytes_copy_out(body, 0, &o->first[o->count], 1);
        }
        o->count++;
        if (framing->kind != TRPI_FRAME_NONE || bytes > 0) {
            message_return(framing, stream, body);
        }
        trp_bytes_unref(&body);
    }
}

static void
stream_run(const trpi_framing *framing, const uint8_t *data, size_t size, size_t piece, outcome *o)
{
    trpi_frames *stream;
    memset(o, 0, sizeof *o);
    if (trpi_frames_new(framing, &stream) != TRP_OK) {
        return;
    }
    for (size_t at = 0; at < size; at += piece) {
        trp_bytes bytes;
        size_t now = size - at < piece ? size - at : piece;
        trpi_assert(trp_bytes_copy(data + at, now, &bytes) == TRP_OK);
        trpi_assert(trpi_frames_add(stream, bytes, NULL) == TRP_OK);
        trp_bytes_unref(&bytes);
        if (at % 3 != 0) { /* or later, with the next ones */
            stream_take(framing, stream, o);
        }
    }
    trpi_frames_end(stream);
    stream_take(framing, stream, o);
    trpi_assert(!trpi_frames_holds(stream));
    trpi_frames_free(stream);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint32_t fields[] = { 1, 2, 3, 4, 8 };
    outcome whole, pieces;
    if (size < 2) {
        return 0;
    }
    const trpi_framing framing = { data[0] % 3u, BYTES_MAX, fields[data[0] / 3 % 5] };
    stream_run(&framing, data + 2, size - 2, size, &whole);
    stream_run(&framing, data + 2, size - 2, data[1] % 40u + 1, &pieces);
    if (framing.kind != TRPI_FRAME_NONE) { /* framing-F1 */
        trpi_assert(whole.count == pieces.count && whole.err == pieces.err);
        trpi_assert(memcmp(whole.lengths, pieces.lengths, sizeof whole.lengths) == 0);
        trpi_assert(memcmp(whole.first, pieces.first, sizeof whole.first) == 0);
    }
    return 0;
}
