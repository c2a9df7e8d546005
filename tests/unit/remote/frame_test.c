/* frame_test.c - preamble, header and the incremental decoder, cut anywhere. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/wire.h"
#include "remote/wire/frame.h"
#include "tests/unit/unit.h"

enum { MAX = 4096 };

typedef struct seen {
    uint32_t preambles, frames;
    uint64_t sum; /* of kinds, lengths and body bytes, in order */
    trp_err answer;
    struct account *account; /* or NULL */
} seen;

static trp_err
on_preamble(void *arg, const trpi_preamble *preamble)
{
    seen *s = arg;
    s->preambles++;
    s->sum = s->sum * 31 + preamble->uid + preamble->lane;
    return TRP_OK;
}
static trp_err
on_frame(void *arg, const trpi_frame *frame)
{
    seen *s = arg;
    s->frames++;
    s->sum = s->sum * 31 + frame->kind + frame->bytes * 7u + frame->extra;
    for (uint32_t i = 0; i < frame->bytes; i++) {
        s->sum = s->sum * 31 + frame->body[i];
    }
    return s->answer;
}

static size_t
frames_write(uint8_t *out, uint32_t frames, uint32_t *seed)
{
    trpi_preamble preamble = { TRPI_WIRE_VERSION, TRPI_LANE_ORDINARY, 0, 77 };
    trpi_preamble_encode(out, &preamble);
    size_t at = TRPI_PREAMBLE_BYTES;
    for (uint32_t i = 0; i < frames; i++) {
        *seed = *seed * 1664525u + 1013904223u;
        uint32_t bytes = (*seed >> 8) % 100;
        trpi_frame_header_encode(out + at, bytes, (uint8_t)(1 + (*seed >> 4) % 15), 0, (uint16_t)i);
        for (uint32_t b = 0; b < bytes; b++) {
            out[at + 8 + b] = (uint8_t)(*seed >> (b % 24));
        }
        at += 8 + bytes;
    }
    return at;
}

/* frame-F3 */
static void
frames_do_not_depend_on_where_the_stream_is_cut(void)
{
    static uint8_t bytes[TRPI_PREAMBLE_BYTES + 40 * 120];
    for (uint32_t run = 1; run <= 200; run++) {
        uint32_t seed = run;
        size_t count = frames_write(bytes, 40, &seed);
        seen whole = { 0 };
        trpi_frame_decoder decoder;
        trpi_frame_decoder_init(&decoder, MAX, on_preamble, on_frame, &whole);
        UNIT_EQUAL(trpi_frame_decoder_feed(&decoder, bytes, count), TRP_OK);
        trpi_frame_decoder_fini(&decoder);
        UNIT_EQUAL(whole.preambles, 1);
        UNIT_EQUAL(whole.frames, 40);
        seen cut = { 0 };
        trpi_frame_decoder_init(&decoder, MAX, on_preamble, on_frame, &cut);
        for (size_t at = 0; at < count;) {
            seed = seed * 1664525u + 1013904223u;
            size_t part = 1 + (seed >> 8) % (run % 7 == 0 ? 1 : 200);
            part = part < count - at ? part : count - at;
            UNIT_EQUAL(trpi_frame_decoder_feed(&decoder, bytes + at, part), TRP_OK);
            at += part;
        }
        trpi_frame_decoder_fini(&decoder);
        if (!UNIT_TRUE(cut.frames == whole.frames && cut.sum == whole.sum)) {
            printf("  seed %u\n", run);
        }
    }
}

static trp_err
feed_header(uint32_t length, uint8_t kind)
{
    uint8_t bytes[TRPI_PREAMBLE_BYTES + 8];
    trpi_preamble preamble = { TRPI_WIRE_VERSION, 0, 0, 1 };
    seen s = { 0 };
    trpi_frame_decoder decoder;
    trpi_preamble_encode(bytes, &preamble);
    trpi_frame_header_encode(bytes + TRPI_PREAMBLE_BYTES, length, kind, 0, 0);
    trpi_frame_decoder_init(&decoder, MAX, on_preamble, on_frame, &s);
    trp_err err = trpi_frame_decoder_feed(&decoder, bytes, sizeof bytes);
    UNIT_TRUE(decoder.carry_capacity <= MAX + 8);
    trpi_frame_decoder_fini(&decoder);
    return err;
}

/* REMOTE-66: at the limit and one past it; a huge length allocates nothing */
static void
a_frame_at_the_limit_passes_and_one_byte_more_is_refused(void)
{
    UNIT_EQUAL(feed_header(MAX, TRPI_FRAME_USER), TRP_OK);
    UNIT_EQUAL(feed_header(MAX + 1, TRPI_FRAME_USER), TRP_EMSGSIZE);
    UNIT_EQUAL(feed_header(UINT32_MAX, TRPI_FRAME_USER), TRP_EMSGSIZE);
}

/* The view of a large cluster may be longer than a message */
static void
control_frames_have_a_limit_of_their_own(void)
{
    uint8_t header[8];
    for (uint32_t more = 0; more < 4; more++) {
        seen s = { 0 };
        trpi_frame_decoder decoder;
        trpi_frame_decoder_init(&decoder, MAX, on_preamble, on_frame, &s);
        decoder.preamble_seen = true;
        decoder.carry_goal = TRPI_FRAME_HEADER_BYTES;
        decoder.control_bytes_max = MAX + 1;
        bool control = more < 3;
        trpi_frame_header_encode(header, control ? MAX + more : MAX + 1,
                                 control ? TRPI_FRAME_CONTROL : TRPI_FRAME_SYSTEM, 0, 0);
        UNIT_EQUAL(trpi_frame_decoder_feed(&decoder, header, sizeof header),
                   more < 2 ? TRP_OK : TRP_EMSGSIZE);
        trpi_frame_decoder_fini(&decoder);
    }
}

/* The calls of on_carry(), which count incomplete frames (unfinished.c). */
typedef struct account {
    size_t now, most, grown;
    size_t limit; /* bytes; 0: none */
} account;

static trp_err
on_carry(void *arg, size_t before, size_t after)
{
    account *a = ((seen *)arg)->account;
    UNIT_EQUAL(a->now, before);
    if (a->limit != 0 && after > a->limit) {
        return TRP_ELIMIT;
    }
    a->now = after;
    a->most = after > a->most ? after : a->most;
    a->grown += after > before;
    return TRP_OK;
}

/* A long frame that comes in small pieces: memory doubles from 64 KiB on, to the frame's length and
 * no further, all of it is told, and it is given back. */
static void
memory_for_a_long_frame_doubles_and_is_given_back(void)
{
    enum { LONG = 1000000, PIECE = 1000 };
    static const uint8_t piece[PIECE];
    account a = { 0 };
    seen s = { .account = &a };
    trpi_frame_decoder decoder;
    uint8_t header[TRPI_FRAME_HEADER_BYTES];
    trpi_frame_decoder_init(&decoder, LONG, on_preamble, on_frame, &s);
    decoder.preamble_seen = true;
    decoder.carry_goal = TRPI_FRAME_HEADER_BYTES;
    decoder.on_carry = on_carry;
    trpi_frame_header_encode(header, LONG, TRPI_FRAME_USER, 0, 0);
    UNIT_EQUAL(trpi_frame_decoder_feed(&decoder, header, sizeof header), TRP_OK);
    for (size_t at = 0; at < LONG; at += PIECE) {
        UNIT_TRUE(a.now <= 65536 || a.now <= 2 * (at + PIECE + sizeof header));
        UNIT_EQUAL(trpi_frame_decoder_feed(&decoder, piece, PIECE), TRP_OK);
    }
    UNIT_EQUAL(s.frames, 1);
    UNIT_TRUE(a.grown <= 6); /* 8 bytes, 64 KiB, 128, 256, 512, the frame */
    UNIT_EQUAL(a.most, LONG + sizeof header);
    UNIT_EQUAL(a.now, 0);
    /* a frame that the budget refuses ends the stream, and its memory is given back, too */
    a = (account){ .limit = 300000 };
    trp_err err = trpi_frame_decoder_feed(&decoder, header, sizeof header);
    for (size_t at = 0; at < LONG && err == TRP_OK; at += PIECE) {
        err = trpi_frame_decoder_feed(&decoder, piece, PIECE);
    }
    UNIT_EQUAL(err, TRP_ELIMIT);
    UNIT_EQUAL(trpi_frame_decoder_feed(&decoder, piece, 1), TRP_ELIMIT);
    UNIT_TRUE(a.now > 0 && a.now <= 300000);
    trpi_frame_decoder_fini(&decoder);
    UNIT_EQUAL(a.now, 0);
    /* a refused amount is given back at once */
    trpi_frame_decoder_init(&decoder, LONG, on_preamble, on_frame, &s);
    decoder.preamble_seen = true;
    decoder.carry_goal = TRPI_FRAME_HEADER_BYTES;
    decoder.on_carry = on_carry;
    UNIT_EQUAL(trpi_frame_decoder_feed(&decoder, header, sizeof header), TRP_OK);
    size_t before = a.now;
    trpi_alloc_fail_after(0);
    UNIT_EQUAL(trpi_frame_decoder_feed(&decoder, piece, PIECE), TRP_ENOMEM);
    trpi_alloc_fail_after(-1);
    UNIT_EQUAL(a.now, before);
    trpi_frame_decoder_fini(&decoder);
}

static void
kinds_of_a_later_version_pass_and_kind_0_is_refused(void)
{
    UNIT_EQUAL(feed_header(0, 0), TRP_EPROTO);
    UNIT_EQUAL(feed_header(0, TRPI_FRAME_GOODBYE_ACK + 1), TRP_OK);
    UNIT_EQUAL(feed_header(0, 255), TRP_OK);
    UNIT_EQUAL(feed_header(MAX + 1, 255), TRP_EMSGSIZE); /* the limit holds for them, too */
}

static trp_err
feed_preamble(const uint8_t *bytes)
{
    seen s = { 0 };
    trpi_frame_decoder decoder;
    trpi_frame_decoder_init(&decoder, MAX, on_preamble, on_frame, &s);
    trp_err err = trpi_frame_decoder_feed(&decoder, bytes, TRPI_PREAMBLE_BYTES);
    UNIT_EQUAL(trpi_frame_decoder_feed(&decoder, bytes, 1), err); /* frame-F2: the error stays */
    trpi_frame_decoder_fini(&decoder);
    return err;
}

static void
a_preamble_of_another_protocol_version_or_lane_is_refused(void)
{
    uint8_t bytes[TRPI_PREAMBLE_BYTES];
    trpi_preamble good = { TRPI_WIRE_VERSION, 1, 0, 9 };
    trpi_preamble_encode(bytes, &good);
    UNIT_EQUAL(feed_preamble(bytes), TRP_OK);
    bytes[0] ^= 1;
    UNIT_EQUAL(feed_preamble(bytes), TRP_EPROTO);
    bytes[0] ^= 1;
    bytes[4] = 2;
    UNIT_EQUAL(feed_preamble(bytes), TRP_EVERSION);
    bytes[4] = TRPI_WIRE_VERSION;
    bytes[5] = TRPI_LANE_COUNT;
    UNIT_EQUAL(feed_preamble(bytes), TRP_EPROTO);
    bytes[5] = 0;
    memset(bytes + 8, 0, 8);
    UNIT_EQUAL(feed_preamble(bytes), TRP_EPROTO); /* uid 0 is invalid */
}

static void
out_of_memory_ends_the_stream_with_an_error(void)
{
    uint8_t bytes[TRPI_PREAMBLE_BYTES];
    trpi_preamble good = { TRPI_WIRE_VERSION, 1, 0, 9 };
    seen s = { 0 };
    trpi_frame_decoder decoder;
    trpi_preamble_encode(bytes, &good);
    trpi_frame_decoder_init(&decoder, MAX, on_preamble, on_frame, &s);
    trpi_alloc_fail_after(0);
    UNIT_EQUAL(trpi_frame_decoder_feed(&decoder, bytes, sizeof bytes), TRP_ENOMEM);
    trpi_alloc_fail_after(-1);
    trpi_frame_decoder_fini(&decoder);
}

static void
what_a_callback_says_ends_the_feed(void)
{
    uint8_t bytes[TRPI_PREAMBLE_BYTES + 16] = { 0 };
    trpi_preamble good = { TRPI_WIRE_VERSION, 1, 0, 9 };
    seen s = { .answer = TRP_ECLOSED };
    trpi_frame_decoder decoder;
    trpi_preamble_encode(bytes, &good);
    trpi_frame_header_encode(bytes + 16, 0, TRPI_FRAME_PING, 0, 0);
    trpi_frame_header_encode(bytes + 24, 0, TRPI_FRAME_PING, 0, 0);
    trpi_frame_decoder_init(&decoder, MAX, on_preamble, on_frame, &s);
    UNIT_EQUAL(trpi_frame_decoder_feed(&decoder, bytes, sizeof bytes), TRP_ECLOSED);
    UNIT_EQUAL(s.frames, 1);
    trpi_frame_decoder_fini(&decoder);
}

UNIT_BEGIN("frame")
UNIT(frames_do_not_depend_on_where_the_stream_is_cut)
UNIT(a_frame_at_the_limit_passes_and_one_byte_more_is_refused)
UNIT(control_frames_have_a_limit_of_their_own)
UNIT(memory_for_a_long_frame_doubles_and_is_given_back)
UNIT(kinds_of_a_later_version_pass_and_kind_0_is_refused)
UNIT(a_preamble_of_another_protocol_version_or_lane_is_refused)
UNIT(out_of_memory_ends_the_stream_with_an_error)
UNIT(what_a_callback_says_ends_the_feed)
UNIT_END
