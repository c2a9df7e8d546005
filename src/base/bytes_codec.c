/* bytes_codec.c - numbers out of bytes and into bytes, in either byte order.
 *
 * Shape.   A reader stands in one piece of the bytes and moves to the next at its end; a number
 *          that stands in two pieces is gathered first. A writer fills chunks and adds them, and
 *          long slices between them, to the bytes that are done.
 * Must hold.
 *   bytes-codec-C1  Nothing behind the end is read: a call takes all that it asks for, or nothing.
 *   bytes-codec-C2  A chunk is written only behind what was added from it, since slices of the
 *       rest are shared already.
 * Limits.  TRP_BYTES_MAX. A chunk has CHUNK_MIN bytes, each further one twice as many, up to
 *          CHUNK_MAX.
 * Tests.   tests/unit/base/bytes_codec_test.c
 * Sources. IO-08, IO-09.
 */
#include <string.h>

#include "base/bytes.h"

#define CHUNK_MIN 256u
#define CHUNK_MAX (64u << 10)
#define PART_BYTES_MAX 8u

static trp_byte_order
native_order(void)
{
    const uint16_t one = 1;

    return *(const uint8_t *)&one == 1 ? TRP_LITTLE_ENDIAN : TRP_BIG_ENDIAN;
}

static int
is_number(size_t value_bytes)
{
    return value_bytes == 1 || value_bytes == 2 || value_bytes == 4 || value_bytes == 8;
}

/* Copy numbers into the other byte order. */
static void
copy_swapped(uint8_t *to, const uint8_t *from, size_t value_bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t b = 0; b < value_bytes; b++) {
            to[i * value_bytes + b] = from[i * value_bytes + (value_bytes - 1 - b)];
        }
    }
}

static void
copy_numbers(trp_byte_order order, void *to, const void *from, size_t value_bytes, size_t count)
{
    if (value_bytes == 1 || order == native_order()) {
        memcpy(to, from, value_bytes * count);
    } else {
        copy_swapped(to, from, value_bytes, count);
    }
}

/* ---- the reader ------------------------------------------------------------------------------ */

static trp_byte_order
order_of(trp_byte_order order)
{
    return order == TRP_LITTLE_ENDIAN ? order : TRP_BIG_ENDIAN;
}

static void
piece_find(trp_bytes_reader *reader)
{
    trp_bytes piece = trpi_bytes_piece(reader->priv_bytes, reader->priv_at);

    reader->priv_piece = piece.priv_data;
    reader->priv_end = piece.priv_data != NULL ? piece.priv_data + piece.priv_bytes : NULL;
}

trp_bytes_reader
trp_bytes_read(trp_bytes bytes, trp_byte_order order)
{
    trp_bytes_reader reader = { bytes, 0, NULL, NULL, order_of(order), TRP_OK };

    piece_find(&reader);
    return reader;
}

static trp_err
reader_fail(trp_bytes_reader *reader, trp_err err)
{
    if (reader->priv_err == TRP_OK) {
        reader->priv_err = err;
    }
    return reader->priv_err;
}

static void
reader_move(trp_bytes_reader *reader, size_t count)
{
    reader->priv_at += count;
    if (count < (size_t)(reader->priv_end - reader->priv_piece)) {
        reader->priv_piece += count;
    } else {
        piece_find(reader);
    }
}

trp_err
trp_bytes_get(trp_bytes_reader *reader, size_t value_bytes, size_t count, void *ret_values)
{
    uint8_t *to = ret_values;

    if (!is_number(value_bytes)) {
        return reader_fail(reader, TRP_EINVAL);
    }
    if (reader->priv_err != TRP_OK || count > trp_bytes_left(reader) / value_bytes) {
        return reader_fail(reader, TRP_EDATA); /* bytes-codec-C1 */
    }
    while (count > 0) {
        size_t here = (size_t)(reader->priv_end - reader->priv_piece) / value_bytes;
        uint8_t split[PART_BYTES_MAX];
        const uint8_t *from = reader->priv_piece;
        size_t some = here < count ? here : count;

        if (some == 0) { /* it stands in several pieces */
            (void)trp_bytes_copy_out(reader->priv_bytes, reader->priv_at, split, value_bytes);
            from = split;
            some = 1;
        }
        if (to != NULL) {
            copy_numbers(reader->priv_order, to, from, value_bytes, some);
            to += some * value_bytes;
        }
        reader_move(reader, some * value_bytes);
        count -= some;
    }
    return TRP_OK;
}

trp_err
trp_bytes_get_part(trp_bytes_reader *reader, size_t value_bytes, uint64_t *ret_value)
{
    uint8_t bytes[PART_BYTES_MAX];
    uint64_t value = 0;
    trp_err err;

    if (value_bytes == 0 || value_bytes > PART_BYTES_MAX) {
        return reader_fail(reader, TRP_EINVAL);
    }
    err = trp_bytes_get(reader, 1, value_bytes, bytes);
    if (err != TRP_OK) {
        return err;
    }
    for (size_t i = 0; i < value_bytes; i++) {
        value = value << 8 | bytes[reader->priv_order == TRP_BIG_ENDIAN ? i : value_bytes - 1 - i];
    }
    *ret_value = value;
    return TRP_OK;
}

trp_err
trp_bytes_get_bytes(trp_bytes_reader *reader, size_t count, trp_bytes *ret_bytes)
{
    size_t at = reader->priv_at;
    trp_err err = trp_bytes_get(reader, 1, count, NULL);

    if (err == TRP_OK) {
        *ret_bytes = trp_bytes_slice(reader->priv_bytes, at, at + count);
    }
    return err;
}

trp_bytes
trp_bytes_rest(const trp_bytes_reader *reader)
{
    return trp_bytes_drop(reader->priv_bytes, reader->priv_at);
}

/* ---- the writer ------------------------------------------------------------------------------ */

/* Add what was written to the chunk to the bytes that are done. */
static void
writer_settle(trp_bytes_writer *writer)
{
    trp_bytes written = trp_bytes_slice(writer->priv_chunk, writer->priv_begin, writer->priv_used);

    if (writer->priv_err == TRP_OK) {
        writer->priv_err = trp_bytes_append(&writer->priv_done, written);
    }
    writer->priv_begin = writer->priv_used; /* bytes-codec-C2 */
    trp_bytes_unref(&written);
}

static void
chunk_next(trp_bytes_writer *writer)
{
    size_t room = 2 * trp_bytes_length(writer->priv_chunk);
    uint8_t *data;

    writer_settle(writer);
    trp_bytes_unref(&writer->priv_chunk);
    writer->priv_begin = writer->priv_used = 0;
    room = room < CHUNK_MIN ? CHUNK_MIN : room;
    room = room > CHUNK_MAX ? CHUNK_MAX : room;
    if (writer->priv_err == TRP_OK) {
        writer->priv_err = trp_bytes_new(room, &data, &writer->priv_chunk);
    }
}

/* Return where so many of the bytes, at least one, can be written now; NULL: an error is kept. */
static uint8_t *
chunk_room(trp_bytes_writer *writer, size_t least, size_t *ret_room)
{
    if (writer->priv_err == TRP_OK &&
        trp_bytes_length(writer->priv_chunk) - writer->priv_used < least) {
        chunk_next(writer);
    }
    if (writer->priv_err != TRP_OK) {
        return NULL;
    }
    *ret_room = trp_bytes_length(writer->priv_chunk) - writer->priv_used;
    return (uint8_t *)(uintptr_t)trp_bytes_flat(writer->priv_chunk) + writer->priv_used;
}

static int
writer_takes(trp_bytes_writer *writer, size_t value_bytes, size_t count)
{
    if (writer->priv_err == TRP_OK && !is_number(value_bytes)) {
        writer->priv_err = TRP_EINVAL;
    }
    if (writer->priv_err == TRP_OK &&
        count > (TRP_BYTES_MAX - trp_bytes_writer_length(writer)) / value_bytes) {
        writer->priv_err = TRP_EMSGSIZE;
    }
    return writer->priv_err == TRP_OK;
}

void
trp_bytes_put(trp_bytes_writer *writer, size_t value_bytes, size_t count, const void *values)
{
    const uint8_t *from = values;

    if (!writer_takes(writer, value_bytes, count)) {
        return;
    }
    while (count > 0) {
        size_t room, some;
        uint8_t *to = chunk_room(writer, value_bytes, &room);

        if (to == NULL) {
            return;
        }
        some = room / value_bytes < count ? room / value_bytes : count;
        copy_numbers(order_of(writer->priv_order), to, from, value_bytes, some);
        writer->priv_used += (uint32_t)(some * value_bytes);
        from += some * value_bytes;
        count -= some;
    }
}

void
trp_bytes_put_part(trp_bytes_writer *writer, size_t value_bytes, uint64_t value)
{
    uint8_t bytes[PART_BYTES_MAX];

    if (value_bytes == 0 || value_bytes > PART_BYTES_MAX) {
        (void)writer_takes(writer, 0, 0);
        return;
    }
    for (size_t i = 0; i < value_bytes; i++) {
        size_t low = order_of(writer->priv_order) == TRP_BIG_ENDIAN ? value_bytes - 1 - i : i;

        bytes[i] = (uint8_t)(value >> (8 * low));
    }
    trp_bytes_put(writer, 1, value_bytes, bytes);
}

void
trp_bytes_put_bytes(trp_bytes_writer *writer, trp_bytes bytes)
{
    size_t length = trp_bytes_length(bytes);

    if (!writer_takes(writer, 1, length)) {
        return;
    }
    if (length < TRP_BYTES_SHARED_MIN) {
        uint8_t copy[TRP_BYTES_SHARED_MIN];

        (void)trp_bytes_copy_out(bytes, 0, copy, length);
        trp_bytes_put(writer, 1, length, copy);
        return;
    }
    writer_settle(writer);
    if (writer->priv_err == TRP_OK) {
        writer->priv_err = trp_bytes_append(&writer->priv_done, bytes);
    }
}

trp_err
trp_bytes_written(trp_bytes_writer *writer, trp_bytes *ret_bytes)
{
    trp_err err;

    writer_settle(writer);
    err = writer->priv_err;
    if (err == TRP_OK) {
        *ret_bytes = writer->priv_done;
        writer->priv_done = TRP_BYTES_EMPTY;
    }
    trp_bytes_writer_clear(writer);
    return err;
}

void
trp_bytes_writer_clear(trp_bytes_writer *writer)
{
    trp_byte_order order = writer->priv_order;

    trp_bytes_unref(&writer->priv_done);
    trp_bytes_unref(&writer->priv_chunk);
    *writer = TRP_BYTES_WRITER(order);
}
