/* frame.h - the wire's outermost layer: preamble, frame header, incremental decoder. Pure.
 *
 * docs/wire.md is the byte by byte description; this header and that page change together.
 */
#ifndef TRPI_REMOTE_FRAME_H
#define TRPI_REMOTE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/base.h>

#include "base/buffer.h"

#define TRPI_WIRE_VERSION 1
#define TRPI_WIRE_MINOR 5         /* in the handshake; docs/wire.md, Versions */
#define TRPI_WIRE_MAGIC "TRP\x1a" /* 4 bytes; 0x1a stops a terminal that shows it */
#define TRPI_PREAMBLE_BYTES 16
#define TRPI_FRAME_HEADER_BYTES 8
#define TRPI_FRAME_KIB_DEFAULT 256
#define TRPI_FRAME_BYTES_DEFAULT (TRPI_FRAME_KIB_DEFAULT * 1024) /* body; frame_bytes_max */
#define TRPI_FRAME_BYTES_LEAST 4096 /* a smaller frame_bytes_max is refused */
/* Body bytes of a CONTROL frame on the control lane, whatever frame_bytes_max is: the view of a
 * large cluster (TRPI_PACK_BYTES_MAX). For peers with TRPI_FEATURE_WIDE_CONTROL. */
#define TRPI_CONTROL_FRAME_BYTES_MAX 4194304u

#define TRPI_SYSTEM_BODY_BYTES 20        /* a system message without its sequence number and tail */
#define TRPI_SYSTEM_TAIL_BYTES_MAX 32768 /* of the tail that some have */

#define TRPI_ORDINARY_LANES_MAX 8
/* Wire numbers; before minor version 2 only lanes 0 and 1. */
enum trpi_lane {
    TRPI_LANE_CONTROL = 0,
    TRPI_LANE_ORDINARY = 1, /* and up to seven more, at the sender's choice */
    TRPI_LANE_LARGE = TRPI_LANE_ORDINARY + TRPI_ORDINARY_LANES_MAX,
    TRPI_LANE_COUNT
};

/* Wire numbers. */
enum trpi_frame_kind {
    TRPI_FRAME_HANDSHAKE_REQUEST = 1,
    TRPI_FRAME_HANDSHAKE_RESPONSE = 2,
    TRPI_FRAME_HANDSHAKE_REFUSAL = 3,
    TRPI_FRAME_LANE_OPEN = 4,
    TRPI_FRAME_USER = 5,
    TRPI_FRAME_SELECT = 6,
    TRPI_FRAME_MANIFEST = 7,
    TRPI_FRAME_SYSTEM = 8,
    TRPI_FRAME_ACK = 9,
    TRPI_FRAME_NACK = 10,
    TRPI_FRAME_CONTROL = 11,
    TRPI_FRAME_PING = 12,
    TRPI_FRAME_PONG = 13,
    TRPI_FRAME_GOODBYE = 14,
    TRPI_FRAME_GOODBYE_ACK = 15,
    TRPI_FRAME_MANY = 16,  /* needs TRPI_FEATURE_MANY */
    TRPI_FRAME_FENCE = 17, /* needs TRPI_FEATURE_LANES, as the next */
    TRPI_FRAME_FENCE_ACK = 18,
    TRPI_FRAME_CREDIT = 19, /* needs TRPI_FEATURE_CREDIT, as the next */
    TRPI_FRAME_CREDIT_ASK = 20
};

enum { TRPI_GOODBYE_LANE = 1 }; /* flag of GOODBYE and its answer: only this connection ends */

typedef struct trpi_preamble {
    uint8_t version;
    uint8_t lane;
    uint16_t flags; /* none in version 1: sent as 0, ignored */
    uint64_t uid;   /* of the node that sends these bytes */
} trpi_preamble;

typedef struct trpi_frame {
    uint32_t bytes; /* of the body */
    uint8_t kind;
    uint8_t flags;
    uint16_t extra; /* serializer of USER, SELECT and MANY, channel of CONTROL, else 0 */
    const uint8_t *body;
} trpi_frame;

void trpi_preamble_encode(uint8_t out[TRPI_PREAMBLE_BYTES], const trpi_preamble *preamble);
/* Errors: TRP_EPROTO (magic, lane), TRP_EVERSION; *ret_preamble is filled for TRP_EVERSION too. */
trp_err trpi_preamble_decode(const uint8_t in[TRPI_PREAMBLE_BYTES], trpi_preamble *ret_preamble);

static inline void
trpi_frame_header_encode(uint8_t *out, uint32_t body_bytes, uint8_t kind, uint8_t flags,
                         uint16_t extra)
{
    out[0] = (uint8_t)body_bytes;
    out[1] = (uint8_t)(body_bytes >> 8);
    out[2] = (uint8_t)(body_bytes >> 16);
    out[3] = (uint8_t)(body_bytes >> 24);
    out[4] = kind;
    out[5] = flags;
    out[6] = (uint8_t)extra;
    out[7] = (uint8_t)(extra >> 8);
}
/* Read the header at in (TRPI_FRAME_HEADER_BYTES) and set body to the bytes after it. */
void trpi_frame_header_decode(const uint8_t *in, trpi_frame *ret_frame);

/* Called with each frame of a stream; the body is borrowed until return. Any result but TRP_OK ends
 * the feed. */
typedef trp_err (*trpi_frame_fn)(void *arg, const trpi_frame *frame);
/* Called with the preamble, once, before the first frame. */
typedef trp_err (*trpi_preamble_fn)(void *arg, const trpi_preamble *preamble);

typedef struct trpi_frame_decoder {
    trpi_preamble_fn on_preamble;
    trpi_frame_fn on_frame;
    void *arg;
    uint32_t frame_bytes_max;
    uint32_t control_bytes_max; /* of CONTROL frames */
    bool preamble_seen;
    trp_err failed; /* sticky */
    /* Called when the size of carry's memory changes; may refuse a larger one. May be NULL. */
    trp_err (*on_carry)(void *arg, size_t before, size_t after);
    uint8_t *carry; /* an incomplete preamble or frame */
    size_t carry_bytes, carry_capacity;
    size_t carry_goal; /* bytes that carry needs before it can be decoded */
} trpi_frame_decoder;

/* Initialise; control_bytes_max begins as frame_bytes_max. */
void trpi_frame_decoder_init(trpi_frame_decoder *decoder, uint32_t frame_bytes_max,
                             trpi_preamble_fn on_preamble, trpi_frame_fn on_frame, void *arg);
void trpi_frame_decoder_fini(trpi_frame_decoder *decoder);
/* Call on_carry when the size of carry's memory changes; it may refuse a larger one. */
static inline void
trpi_frame_decoder_account(trpi_frame_decoder *decoder,
                           trp_err (*on_carry)(void *arg, size_t before, size_t after))
{
    decoder->on_carry = on_carry;
}
/* Other limits, between two reads. */
static inline void
trpi_frame_decoder_limit(trpi_frame_decoder *decoder, uint32_t frame_bytes_max,
                         uint32_t control_bytes_max)
{
    decoder->frame_bytes_max = frame_bytes_max;
    decoder->control_bytes_max = control_bytes_max;
}
/* Take the next bytes of the stream, cut anywhere. Errors, all of them final: TRP_EPROTO (not our
 * protocol, kind 0), TRP_EVERSION, TRP_EMSGSIZE (length above frame_bytes_max; nothing was
 * allocated for it), TRP_ENOMEM, and those of a callback. */
trp_err trpi_frame_decoder_feed(trpi_frame_decoder *decoder, const uint8_t *bytes, size_t count);

/* Append a whole frame to a buffer. Errors: TRP_ENOMEM; nothing changed. */
trp_err trpi_frame_append(trpi_buffer *buffer, enum trpi_frame_kind kind, uint8_t flags,
                          uint16_t extra, const void *body, size_t body_bytes);

#endif
