/* frame.c - preamble, frame header and the incremental decoder.
 *
 * Why.   A read gives any number of bytes. Most reads hold many whole frames, which are decoded in
 *        place. Only a frame that is cut by the end of a read is copied ("carried over").
 * Shape. feed(bytes) -> [carry is waiting? fill it up to its goal] -> whole frames in place -> the
 *        rest into the carry. carry_goal is first the preamble, then the header, then header +
 *        body.
 * Must hold.
 *   frame-F1  The length is compared with its limit before anything is allocated for it.
 *   frame-F2  After an error every feed gives the same error: the next frame of such a stream
 *       cannot be found.
 *   frame-F3  The decoded frames do not depend on where the stream was cut.
 * Limits. frame_bytes_max (body), control_bytes_max (of CONTROL frames).
 * Tests.  tests/unit/remote/frame_test.c, tests/fuzz/frame_fuzz.c
 */
#include "remote/wire/frame.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/wire.h"

enum { CARRY_BYTES_KEPT = 65536, CARRY_BYTES_AT_ONCE = 65536 };

_Static_assert(TRPI_PREAMBLE_BYTES == 4 + 1 + 1 + 2 + 8,
               "preamble: magic, version, lane, flags, uid");

void
trpi_preamble_encode(uint8_t out[TRPI_PREAMBLE_BYTES], const trpi_preamble *preamble)
{
    memcpy(out, TRPI_WIRE_MAGIC, 4);
    out[4] = preamble->version;
    out[5] = preamble->lane;
    trpi_put_u16(out + 6, preamble->flags);
    trpi_put_u64(out + 8, preamble->uid);
}

trp_err
trpi_preamble_decode(const uint8_t in[TRPI_PREAMBLE_BYTES], trpi_preamble *ret_preamble)
{
    if (memcmp(in, TRPI_WIRE_MAGIC, 4) != 0) {
        return TRP_EPROTO;
    }
    ret_preamble->version = in[4];
    ret_preamble->lane = in[5];
    ret_preamble->flags = trpi_get_u16(in + 6);
    ret_preamble->uid = trpi_get_u64(in + 8);
    if (ret_preamble->version != TRPI_WIRE_VERSION) {
        return TRP_EVERSION;
    }
    return ret_preamble->lane < TRPI_LANE_COUNT && ret_preamble->uid != 0 ? TRP_OK : TRP_EPROTO;
}

void
trpi_frame_header_decode(const uint8_t *in, trpi_frame *ret_frame)
{
    ret_frame->bytes = trpi_get_u32(in);
    ret_frame->kind = in[4];
    ret_frame->flags = in[5];
    ret_frame->extra = trpi_get_u16(in + 6);
    ret_frame->body = in + TRPI_FRAME_HEADER_BYTES;
}

void
trpi_frame_decoder_init(trpi_frame_decoder *decoder, uint32_t frame_bytes_max,
                        trpi_preamble_fn on_preamble, trpi_frame_fn on_frame, void *arg)
{
    memset(decoder, 0, sizeof *decoder);
    decoder->frame_bytes_max = frame_bytes_max;
    decoder->control_bytes_max = frame_bytes_max;
    decoder->on_preamble = on_preamble;
    decoder->on_frame = on_frame;
    decoder->arg = arg;
    decoder->carry_goal = TRPI_PREAMBLE_BYTES;
}

void
trpi_frame_decoder_fini(trpi_frame_decoder *decoder)
{
    if (decoder->on_carry != NULL && decoder->carry_capacity > 0) {
        (void)decoder->on_carry(decoder->arg, decoder->carry_capacity, 0);
    }
    trpi_free(decoder->carry);
    decoder->carry = NULL;
    decoder->carry_bytes = decoder->carry_capacity = 0;
}

static trp_err
check_header(const trpi_frame_decoder *decoder, const trpi_frame *frame)
{
    uint32_t max =
        frame->kind == TRPI_FRAME_CONTROL ? decoder->control_bytes_max : decoder->frame_bytes_max;
    if (frame->bytes > max) { /* frame-F1 */
        return TRP_EMSGSIZE;
    }
    return frame->kind != 0 ? TRP_OK : TRP_EPROTO; /* an unknown kind is skipped above */
}

/* Make room for `take` more bytes. Memory for a long frame grows with the bytes that arrive, not
 * with its claimed length. */
static trp_err
carry_reserve(trpi_frame_decoder *decoder, size_t take)
{
    size_t before = decoder->carry_capacity, after = decoder->carry_goal;
    if (decoder->carry_bytes + take <= before) {
        return TRP_OK;
    }
    if (after > CARRY_BYTES_AT_ONCE) {
        size_t some =
            decoder->carry_bytes + take > 2 * before ? decoder->carry_bytes + take : 2 * before;
        some = some > CARRY_BYTES_AT_ONCE ? some : CARRY_BYTES_AT_ONCE;
        after = some < after ? some : after;
    }
    trp_err err =
        decoder->on_carry != NULL ? decoder->on_carry(decoder->arg, before, after) : TRP_OK;
    if (err != TRP_OK) {
        return err;
    }
    uint8_t *grown = trpi_realloc(decoder->carry, after);
    if (grown == NULL) {
        if (decoder->on_carry != NULL) {
            (void)decoder->on_carry(decoder->arg, after, before);
        }
        return TRP_ENOMEM;
    }
    decoder->carry = grown;
    decoder->carry_capacity = after;
    return TRP_OK;
}

/* The carry has reached its goal: it is a preamble, a header, or a whole frame. */
static trp_err
carry_complete(trpi_frame_decoder *decoder)
{
    if (!decoder->preamble_seen) {
        trpi_preamble preamble = { 0 };
        trp_err err = trpi_preamble_decode(decoder->carry, &preamble);
        if (err == TRP_OK || err == TRP_EVERSION) {
            trp_err told = decoder->on_preamble(decoder->arg, &preamble);
            err = err != TRP_OK ? err : told;
        }
        decoder->preamble_seen = err == TRP_OK;
        decoder->carry_bytes = 0;
        decoder->carry_goal = TRPI_FRAME_HEADER_BYTES;
        return err;
    }
    trpi_frame frame;
    trpi_frame_header_decode(decoder->carry, &frame);
    if (decoder->carry_goal == TRPI_FRAME_HEADER_BYTES) {
        trp_err err = check_header(decoder, &frame);
        if (err != TRP_OK || frame.bytes != 0) {
            decoder->carry_goal += err == TRP_OK ? frame.bytes : 0;
            return err;
        }
    }
    trp_err err = decoder->on_frame(decoder->arg, &frame);
    decoder->carry_bytes = 0;
    decoder->carry_goal = TRPI_FRAME_HEADER_BYTES;
    if (decoder->carry_capacity > CARRY_BYTES_KEPT) {
        trpi_frame_decoder_fini(decoder);
    }
    return err;
}

/* Decode whole frames in place; *ret_used is the number of their bytes. */
static trp_err
feed_in_place(trpi_frame_decoder *decoder, const uint8_t *bytes, size_t count, size_t *ret_used)
{
    size_t used = 0;
    while (count - used >= TRPI_FRAME_HEADER_BYTES) {
        trpi_frame frame;
        trpi_frame_header_decode(bytes + used, &frame);
        trp_err err = check_header(decoder, &frame);
        if (err != TRP_OK) {
            return err;
        }
        if (count - used - TRPI_FRAME_HEADER_BYTES < frame.bytes) {
            break;
        }
        err = decoder->on_frame(decoder->arg, &frame);
        if (err != TRP_OK) {
            return err;
        }
        used += TRPI_FRAME_HEADER_BYTES + frame.bytes;
    }
    *ret_used = used;
    return TRP_OK;
}

trp_err
trpi_frame_decoder_feed(trpi_frame_decoder *decoder, const uint8_t *bytes, size_t count)
{
    while (decoder->failed == TRP_OK && count > 0) {
        if (decoder->preamble_seen && decoder->carry_bytes == 0) {
            size_t used = 0;
            decoder->failed = feed_in_place(decoder, bytes, count, &used);
            bytes += used;
            count -= used;
            if (decoder->failed != TRP_OK || count == 0) {
                break;
            }
        }
        trpi_assert(decoder->carry_bytes < decoder->carry_goal);
        size_t take = decoder->carry_goal - decoder->carry_bytes;
        take = take < count ? take : count;
        decoder->failed = carry_reserve(decoder, take);
        if (decoder->failed != TRP_OK) {
            break;
        }
        memcpy(decoder->carry + decoder->carry_bytes, bytes, take);
        decoder->carry_bytes += take;
        bytes += take;
        count -= take;
        if (decoder->carry_bytes == decoder->carry_goal) {
            decoder->failed = carry_complete(decoder);
        }
    }
    return decoder->failed; /* frame-F2 */
}

trp_err
trpi_frame_append(trpi_buffer *buffer, enum trpi_frame_kind kind, uint8_t flags, uint16_t extra,
                  const void *body, size_t body_bytes)
{
    trpi_assert(body_bytes <= UINT32_MAX);
    /* No limit here: the caller bounds its queue. */
    trp_err err =
        trpi_buffer_reserve(buffer, TRPI_FRAME_HEADER_BYTES + body_bytes, TRPI_BUFFER_NO_LIMIT);
    if (err != TRP_OK) {
        return err;
    }
    uint8_t *at = buffer->data + buffer->count;
    trpi_frame_header_encode(at, (uint32_t)body_bytes, (uint8_t)kind, flags, extra);
    if (body_bytes != 0) {
        memcpy(at + TRPI_FRAME_HEADER_BYTES, body, body_bytes);
    }
    buffer->count += TRPI_FRAME_HEADER_BYTES + body_bytes;
    return TRP_OK;
}
