/* buffer.c - bytes that grow, up to a limit that the caller names.
 *
 * Must hold.
 *   buffer-I1  count <= capacity; data is NULL only when capacity is 0.
 *   buffer-I2  A failed call leaves data, count and capacity as they were.
 * Tests.   tests/unit/base/buffer_test.c
 */
#include "base/buffer.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

#define CAPACITY_FIRST 64u

trp_err
trpi_buffer_reserve(trpi_buffer *buffer, size_t more, size_t limit)
{
    size_t needed, capacity;
    uint8_t *data;

    trpi_assert(buffer->count <= buffer->capacity); /* buffer-I1 */
    if (buffer->count > limit || more > limit - buffer->count) {
        return TRP_ELIMIT;
    }
    needed = buffer->count + more;
    if (needed <= buffer->capacity) {
        return TRP_OK;
    }
    capacity = buffer->capacity == 0 ? CAPACITY_FIRST : buffer->capacity;
    while (capacity < needed) {
        capacity = capacity > SIZE_MAX / 2 ? needed : capacity * 2;
    }
    data = trpi_realloc(buffer->data, capacity);
    if (data == NULL) {
        return TRP_ENOMEM;
    }
    buffer->data = data;
    buffer->capacity = capacity;
    return TRP_OK;
}

trp_err
trpi_buffer_append(trpi_buffer *buffer, const void *bytes, size_t count, size_t limit)
{
    trp_err err = trpi_buffer_reserve(buffer, count, limit);

    if (err == TRP_OK && count > 0) {
        memcpy(buffer->data + buffer->count, bytes, count);
        buffer->count += count;
    }
    return err;
}

trp_err
trpi_buffer_append_text(trpi_buffer *buffer, const char *text, size_t limit)
{
    return trpi_buffer_append(buffer, text, strlen(text), limit);
}

trp_err
trpi_buffer_printf(trpi_buffer *buffer, size_t limit, const char *format, ...)
{
    va_list arguments;
    int length;
    trp_err err;

    va_start(arguments, format);
    length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) {
        return TRP_EINVAL; /* a conversion that the locale refuses */
    }
    if (buffer->count > limit || (size_t)length > limit - buffer->count) {
        return TRP_ELIMIT;
    }
    /* The NUL is not content: it does not count against the limit. */
    err = trpi_buffer_reserve(buffer, (size_t)length + 1, TRPI_BUFFER_NO_LIMIT);
    if (err != TRP_OK) {
        return err;
    }
    va_start(arguments, format);
    (void)vsnprintf((char *)buffer->data + buffer->count, (size_t)length + 1, format, arguments);
    va_end(arguments);
    buffer->count += (size_t)length;
    return TRP_OK;
}

void
trpi_buffer_drop(trpi_buffer *buffer, size_t count)
{
    trpi_assert(count <= buffer->count);
    buffer->count -= count;
    if (buffer->count > 0 && count > 0) {
        memmove(buffer->data, buffer->data + count, buffer->count);
    }
}

void
trpi_buffer_fini(trpi_buffer *buffer)
{
    trpi_free(buffer->data);
    *buffer = (trpi_buffer){ 0 };
}

char *
trpi_buffer_take_text(trpi_buffer *buffer)
{
    char *text;

    if (trpi_buffer_reserve(buffer, 1, TRPI_BUFFER_NO_LIMIT) != TRP_OK) {
        return NULL;
    }
    buffer->data[buffer->count] = 0;
    text = (char *)buffer->data;
    *buffer = (trpi_buffer){ 0 };
    return text;
}
