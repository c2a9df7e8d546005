/* buffers.h - memory for large reads, kept for reuse: giving it back to the machine and having it
 * again costs more than the read.
 */
#ifndef TRPI_IO_BUFFERS_H
#define TRPI_IO_BUFFERS_H

#include <troupe/bytes.h>

typedef struct trpi_io_buffers trpi_io_buffers;
typedef struct trpi_io_buffer trpi_io_buffer;

/* Make a pool that keeps `kept` free buffers of so many bytes at most. Errors: TRP_ENOMEM. */
trp_err trpi_io_buffers_new(size_t bytes, uint32_t kept, trpi_io_buffers **ret_buffers);
/* The owner needs it no more. Bytes that programs hold may outlive it. NULL is fine. */
void trpi_io_buffers_end(trpi_io_buffers *buffers);
/* NULL: no memory. Thread: any; takes a lock for a moment, as the next two. */
trpi_io_buffer *trpi_io_buffer_take(trpi_io_buffers *buffers);
uint8_t *trpi_io_buffer_data(trpi_io_buffer *buffer);
void trpi_io_buffer_give(trpi_io_buffer *buffer);
/* Make bytes of the first `used`, which give the buffer back. Takes buffer, on success only.
 * Errors: TRP_ENOMEM. */
trp_err trpi_io_buffer_bytes(trpi_io_buffer *buffer, size_t used, trp_bytes *ret_bytes);
/* Tests: free buffers that are kept now. */
uint32_t trpi_io_buffers_kept(trpi_io_buffers *buffers);

#endif
