/* gather.h - what has come of a stream and is not a whole frame yet.
 *
 * Why.     A frame that lies within one piece is cut out of it. One that comes in many pieces is
 *          joined, and a peer that sends single bytes must not make a slice of each: the slices
 *          would be many times as large as what they show.
 * Shape.   held = pieces, shared | small pieces, copied one behind the other into a chunk
 * Must hold.
 *   gather-G1  While `held` is empty nothing is kept.
 *   gather-G2  A piece is copied only if it is short and comes behind others, and a rest only once
 *       for each piece.
 * Tests.   tests/unit/io/frames_test.c
 */
#ifndef TRPI_IO_GATHER_H
#define TRPI_IO_GATHER_H

#include <troupe/bytes.h>

typedef struct trpi_gather {
    trp_bytes held;
    trp_bytes chunk; /* its first `used` bytes were shown by held */
    uint32_t used;
    uint32_t zero;
} trpi_gather;

/* Add a piece behind what is held. Takes *piece, on success only. Errors: TRP_ENOMEM, TRP_EMSGSIZE
 * (above TRP_BYTES_MAX). */
trp_err trpi_gather_add(trpi_gather *gather, trp_bytes *piece);
/* Remove bytes from the front. */
void trpi_gather_skip(trpi_gather *gather, size_t count);
/* After frames were cut off the front: copy a short rest, so that it does not keep the piece in
 * which it began. Without memory it stays as it is. */
void trpi_gather_settle(trpi_gather *gather);
/* Zeroed is begun; may be called twice. */
void trpi_gather_fini(trpi_gather *gather);

#endif
