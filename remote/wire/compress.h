/* compress.h - USER frames whose payload travels compressed. Pure.
 *
 * Body of such a frame: that of USER up to the type, then {bytes that follow when expanded 4, LZ4
 * block}. Recipient and type stay readable, so a frame that is not sent is a proper dead letter.
 */
#ifndef TRPI_REMOTE_COMPRESS_H
#define TRPI_REMOTE_COMPRESS_H

#include "remote/wire/codec.h"

/* What a block may claim to expand to: the most that one byte of LZ4 can stand for is 255. */
#define TRPI_COMPRESS_RATIO_MAX 255u

/* Is it built in? Else nothing is compressed, and no such frame is understood. */
bool trpi_compress_is_built(void);
/* Compress the USER frame at frames->data + at, the last thing in frames, when that saves at least
 * an eighth. scratch keeps its memory between calls. false: the frame is as it was. */
bool trpi_message_compress(trpi_buffer *frames, size_t at, trpi_buffer *scratch);
/* Expand a frame with TRPI_MESSAGE_COMPRESSED; the body of *ret_frame is in scratch.
 * Errors: TRP_EDATA (makes no sense), TRP_EMSGSIZE (claims a body above body_bytes_max; nothing was
 *         allocated for it), TRP_ENOMEM. */
trp_err trpi_message_expand(const trpi_frame *frame, uint32_t body_bytes_max, trpi_buffer *scratch,
                            trpi_frame *ret_frame);

#endif
