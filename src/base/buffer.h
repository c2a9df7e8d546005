/* buffer.h - bytes that grow, up to a limit that the caller names.
 *
 * A zeroed trpi_buffer is an empty one. On an error the buffer is as it was before the call.
 */
#ifndef TRPI_BASE_BUFFER_H
#define TRPI_BASE_BUFFER_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/base.h>

#define TRPI_BUFFER_NO_LIMIT                                                                       \
    SIZE_MAX /* the caller's own arithmetic bounds it; say why where used */

typedef struct trpi_buffer {
    uint8_t *data;
    size_t count;    /* bytes in use */
    size_t capacity; /* bytes allocated */
} trpi_buffer;

/* Make room for `more` bytes behind data[count]. Errors: TRP_ELIMIT (count + more above limit),
 * TRP_ENOMEM. Doubles, so that appending n bytes one by one costs O(n). */
trp_err trpi_buffer_reserve(trpi_buffer *buffer, size_t more, size_t limit);
/* Errors: as trpi_buffer_reserve. bytes may be NULL when count is 0; it must not point into
 *         buffer. */
trp_err trpi_buffer_append(trpi_buffer *buffer, const void *bytes, size_t count, size_t limit);
trp_err trpi_buffer_append_text(trpi_buffer *buffer, const char *text, size_t limit); /* no NUL */
/* As printf; a NUL follows the text but is not counted. */
trp_err trpi_buffer_printf(trpi_buffer *buffer, size_t limit, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Remove `count` bytes (at most buffer->count) from the front. */
void trpi_buffer_drop(trpi_buffer *buffer, size_t count);
static inline void
trpi_buffer_clear(trpi_buffer *buffer) /* keeps the memory */
{
    buffer->count = 0;
}
void trpi_buffer_fini(trpi_buffer *buffer); /* frees; the buffer is empty and usable again */
/* NUL-terminated text that the caller frees with trpi_free; buffer is empty after. NULL: no
 * memory. */
char *trpi_buffer_take_text(trpi_buffer *buffer);

#endif
