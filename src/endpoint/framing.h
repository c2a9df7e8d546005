/* framing.h - messages in a stream: the bytes of a connection are cut into frames, and messages
 * become frames. */
#ifndef TRPI_ENDPOINT_FRAMING_H
#define TRPI_ENDPOINT_FRAMING_H

#include <stdbool.h>

#include <troupe/bytes.h>
#include <troupe/message.h>

#include "endpoint/uri.h"

enum { TRPI_FRAME_LINE, TRPI_FRAME_LENGTH, TRPI_FRAME_NONE };

typedef struct trpi_framing {
    uint32_t kind;
    uint32_t bytes_max; /* of a message */
    uint32_t field_bytes;
} trpi_framing;

/* Read the options frame and field of a URI. Errors: TRP_EINVAL, with a sentence. */
trp_err trpi_framing_read(const trpi_uri *uri, trpi_framing *ret_framing,
                          char ret_reason[TRP_ENDPOINT_REASON_BYTES]);

/* Both directions of one connection. Owner: one actor. */
typedef struct trpi_frames trpi_frames;

trp_err trpi_frames_new(const trpi_framing *framing, trpi_frames **ret_stream);
void trpi_frames_free(trpi_frames *stream); /* NULL is fine */

/* Bytes have come. Shares them, and msg (may be NULL), which is freed when all of its bytes have
 * been cut. Errors: TRP_ENOMEM. */
trp_err trpi_frames_add(trpi_frames *stream, trp_bytes bytes, const trp_msg *msg);
/* No more will come. */
void trpi_frames_end(trpi_frames *stream);
/* Take the next message. False: none is complete, or the stream is broken for good, which *ret_err
 * says. Gives *ret_frame. */
bool trpi_frames_next(trpi_frames *stream, trp_bytes *ret_frame, trp_err *ret_err);
/* Half a message is there, and all that has come was looked at. */
bool trpi_frames_holds(const trpi_frames *stream);
/* Make the frame of a message. Errors: TRP_EMSGSIZE, TRP_EDATA (a line feed in a line),
 * TRP_ENOMEM. Borrows body, gives *ret_frame. */
trp_err trpi_frames_frame(trpi_frames *stream, trp_bytes body, trp_bytes *ret_frame);
/* Why the last call has failed; borrowed until the next one. */
const char *trpi_frames_reason(const trpi_frames *stream);

#endif
