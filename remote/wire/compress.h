/* compress.h - USER frames whose payload travels compressed. Pure.
 *
 * Body of such a frame: that of USER up to the type, then {bytes that follow when expanded 4, LZ4
 * block}. Recipient and type stay readable, so an unsent frame can become a dead letter.
 */
#ifndef TRPI_REMOTE_COMPRESS_H
#define TRPI_REMOTE_COMPRESS_H

#include "remote/wire/codec.h"

/* Largest claimed ratio that is accepted: one byte of LZ4 stands for at most 255 bytes. */
#define TRPI_COMPRESS_RATIO_MAX 255u

/* Return whether compression is built in. If not, nothing is compressed, and compressed frames
 * cannot be read. */
bool trpi_compress_is_built(void);
/* Compress the USER frame at frames->data + at, the last thing in frames, when that saves at least
 * an eighth. scratch keeps its memory between calls. false: the frame is unchanged. */
bool trpi_message_compress(trpi_buffer *frames, size_t at, trpi_buffer *scratch);
/* Expand a frame with TRPI_MESSAGE_COMPRESSED; the body of *ret_frame is in scratch.
 * Errors: TRP_EDATA (damaged), TRP_EMSGSIZE (claims a body above body_bytes_max; nothing was
 *         allocated for it), TRP_ENOMEM. */
trp_err trpi_message_expand(const trpi_frame *frame, uint32_t body_bytes_max, trpi_buffer *scratch,
                            trpi_frame *ret_frame);

#endif
