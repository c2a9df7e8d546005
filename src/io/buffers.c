/* buffers.c - see the header.
 *
 * Shape.   pool: free buffers, the one that was given back last first, so that it is in the cache
 * Must hold.
 *   io-buffers-B1  The pool lives until its owner has ended it and the last buffer is back.
 * Limits.  io.tcp.direct-buffer-pool-limit free buffers; any number that is in use.
 * Threads. One lock, a leaf, around a few pointers.
 * Tests.   tests/unit/io/settings_test.c
 */
#include "io/buffers.h"

#include <pthread.h>
#include <stdbool.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"

struct trpi_io_buffer {
    trpi_io_buffer *next;
    trpi_io_buffers *pool;
    uint8_t data[];
};

struct trpi_io_buffers {
    pthread_mutex_t lock;
    size_t bytes;
    uint32_t kept_max;
    uint32_t kept, used; /* lock; free buffers, and those that are out */
    bool ended;          /* lock */
    trpi_io_buffer *first;
};

trp_err
trpi_io_buffers_new(size_t bytes, uint32_t kept, trpi_io_buffers **ret_buffers)
{
    trpi_io_buffers *buffers = trpi_alloc(sizeof *buffers);

    if (buffers == NULL) {
        return TRP_ENOMEM;
    }
    pthread_mutex_init(&buffers->lock, NULL);
    buffers->bytes = bytes;
    buffers->kept_max = kept;
    *ret_buffers = buffers;
    return TRP_OK;
}

/* io-buffers-B1 */
static void
buffers_free(trpi_io_buffers *buffers)
{
    trpi_assert(buffers->used == 0 && buffers->first == NULL);
    trpi_mutex_destroy(&buffers->lock);
    trpi_free(buffers);
}

void
trpi_io_buffers_end(trpi_io_buffers *buffers)
{
    trpi_io_buffer *first;
    bool last;

    if (buffers == NULL) {
        return;
    }
    pthread_mutex_lock(&buffers->lock);
    buffers->ended = true;
    first = buffers->first;
    buffers->first = NULL;
    buffers->kept = 0;
    last = buffers->used == 0;
    pthread_mutex_unlock(&buffers->lock);
    while (first != NULL) {
        trpi_io_buffer *next = first->next;

        trpi_free(first);
        first = next;
    }
    if (last) {
        buffers_free(buffers);
    }
}

trpi_io_buffer *
trpi_io_buffer_take(trpi_io_buffers *buffers)
{
    trpi_io_buffer *buffer;

    pthread_mutex_lock(&buffers->lock);
    trpi_assert(!buffers->ended);
    buffer = buffers->first;
    if (buffer != NULL) {
        buffers->first = buffer->next;
        buffers->kept--;
    }
    buffers->used++;
    pthread_mutex_unlock(&buffers->lock);
    if (buffer == NULL) {
        buffer = trpi_realloc(NULL, sizeof *buffer + buffers->bytes); /* not zeroed */
    }
    if (buffer == NULL) {
        pthread_mutex_lock(&buffers->lock);
        buffers->used--;
        pthread_mutex_unlock(&buffers->lock);
        return NULL;
    }
    buffer->pool = buffers;
    return buffer;
}

uint8_t *
trpi_io_buffer_data(trpi_io_buffer *buffer)
{
    return buffer->data;
}

void
trpi_io_buffer_give(trpi_io_buffer *buffer)
{
    trpi_io_buffers *buffers = buffer->pool;
    bool kept, last;

    pthread_mutex_lock(&buffers->lock);
    trpi_assert(buffers->used > 0);
    buffers->used--;
    kept = !buffers->ended && buffers->kept < buffers->kept_max;
    last = buffers->ended && buffers->used == 0;
    if (kept) {
        buffer->next = buffers->first;
        buffers->first = buffer;
        buffers->kept++;
    }
    pthread_mutex_unlock(&buffers->lock);
    if (!kept) {
        trpi_free(buffer);
    }
    if (last) {
        buffers_free(buffers);
    }
}

static void
buffer_release(void *data, void *arg)
{
    (void)data;
    trpi_io_buffer_give(arg);
}

trp_err
trpi_io_buffer_bytes(trpi_io_buffer *buffer, size_t used, trp_bytes *ret_bytes)
{
    trpi_assert(used > 0 && used <= buffer->pool->bytes);
    return trp_bytes_wrap(buffer->data, used, buffer_release, buffer, ret_bytes);
}

uint32_t
trpi_io_buffers_kept(trpi_io_buffers *buffers)
{
    uint32_t kept;

    pthread_mutex_lock(&buffers->lock);
    kept = buffers->kept;
    pthread_mutex_unlock(&buffers->lock);
    return kept;
}
