/* bytes.h - what rooms need of troupe/bytes.h besides. */
#ifndef TRPI_BASE_BYTES_H
#define TRPI_BASE_BYTES_H

#include <troupe/bytes.h>

/* Borrow the piece that begins with this byte: bytes in one piece, not counted. Empty: there is no
 * such byte. */
trp_bytes trpi_bytes_piece(trp_bytes bytes, size_t from);

#endif
