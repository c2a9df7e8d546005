/* troupe/bytes.h - immutable bytes in counted slices, which are cut and joined without copying.
 *
 * A trp_bytes is a small value: a handle of bytes that never change. They stand in one piece or in
 * several. Each handle holds one count of the memory behind it, which trp_bytes_unref() gives back.
 * Cutting and joining only counts; the bytes stay where they are:
 *
 *     trp_bytes head = trp_bytes_take(data, 4), rest = trp_bytes_drop(data, 4);
 *     trp_err err = trp_bytes_append(&rest, head); // both pieces, in the other order
 *     trp_bytes_unref(&rest);
 *     trp_bytes_unref(&head);
 *
 * A parameter of type trp_bytes is borrowed, one of type trp_bytes * is changed, a result is given:
 * the caller unrefs it. A handle is not copied by assignment if both are to live: trp_bytes_ref()
 * makes the second one. A zeroed trp_bytes, TRP_BYTES_EMPTY, is empty and holds nothing.
 *
 * Handles that share memory may be used by different threads at the same time; one handle by one
 * thread at a time. A message takes handles along as what it holds (trp_msg_new_held).
 *
 * Numbers are written with a trp_bytes_writer and read with a trp_bytes_reader, each of which has
 * one byte order. Limits: TRP_BYTES_MAX.
 */
#ifndef TROUPE_BYTES_H
#define TROUPE_BYTES_H

#include <troupe/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_BYTES_MAX 0x80000000u /* of one handle: 2 GiB */
#define TRP_BYTES_NOT_FOUND ((size_t)-1)

typedef struct trp_bytes {
    void *priv_owner; /* NULL: nothing is counted */
    const uint8_t *priv_data;
    uint32_t priv_bytes, priv_at;
} trp_bytes;
/* No bytes; to initialize and to assign. TRP_BYTES_LITERAL("text"): those of a literal. */
#ifdef __cplusplus
#define TRP_BYTES_EMPTY (trp_bytes())
#define TRP_BYTES_LITERAL(text)                                                                    \
    (trp_bytes{ NULL, (const uint8_t *)("" text), (uint32_t)(sizeof(text) - 1), 0 })
#else
#define TRP_BYTES_EMPTY ((trp_bytes){ NULL, NULL, 0, 0 })
#define TRP_BYTES_LITERAL(text)                                                                    \
    ((trp_bytes){ NULL, (const uint8_t *)("" text), (uint32_t)(sizeof(text) - 1), 0 })
#endif

/* ---- making ---------------------------------------------------------------------------------- */

/* Make a handle of so many bytes, to be filled in at *ret_data before it is cut, joined or given to
 * another thread. They are not zeroed.
 *
 * Ownership: gives *ret_bytes; *ret_data belongs to it.
 * Errors:    TRP_EMSGSIZE  above TRP_BYTES_MAX
 *            TRP_ENOMEM    out of memory
 * Thread:    any; lock-free.
 * Source:    IO-07.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_bytes_new(size_t bytes, uint8_t **ret_data,
                                             trp_bytes *ret_bytes);

/* Copy bytes that may change later.
 *
 * Ownership: borrows data; gives *ret_bytes.
 * Errors:    TRP_EMSGSIZE  above TRP_BYTES_MAX
 *            TRP_ENOMEM    out of memory
 * Thread:    any; lock-free.
 * Source:    IO-07.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_bytes_copy(const void *data, size_t bytes, trp_bytes *ret_bytes);

/* Make a handle of memory of the caller's own, without copying. When the last count is given back,
 * release(data, arg) is called once, by the thread that does it. release may be NULL for data that
 * outlives all handles, such as a constant; then nothing is allocated.
 *
 * Ownership: takes data, on success only, until release; gives *ret_bytes. Do not write to it.
 * Errors:    TRP_EMSGSIZE  above TRP_BYTES_MAX
 *            TRP_ENOMEM    out of memory
 * Thread:    any; lock-free.
 * Source:    IO-07.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_bytes_wrap(const void *data, size_t bytes,
                                              void (*release)(void *data, void *arg), void *arg,
                                              trp_bytes *ret_bytes);

/* Make a second handle of the same bytes.
 *
 * Ownership: shares; gives the result.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    IO-07.  Since: 0.1 */
TRP_API trp_bytes trp_bytes_ref(trp_bytes bytes);

/* Give back the count of a handle, which is empty afterwards. NULL is fine.
 *
 * Ownership: takes the count.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    IO-07.  Since: 0.1 */
TRP_API void trp_bytes_unref(trp_bytes *bytes);

/* Return the number of bytes.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    IO-07.  Since: 0.1 */
static inline size_t
trp_bytes_length(trp_bytes bytes)
{
    return bytes.priv_bytes;
}

/* ---- cutting and joining --------------------------------------------------------------------- */

/* Return bytes from (counted from 0) to, the latter not included; what lies outside is left away.
 * The result keeps the memory of the whole alive, or of the one piece that it lies in:
 * trp_bytes_compact() makes it independent.
 *
 * Ownership: shares; gives the result.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    IO-07.  Since: 0.1 */
TRP_API trp_bytes trp_bytes_slice(trp_bytes bytes, size_t from, size_t to);
static inline trp_bytes
trp_bytes_take(trp_bytes bytes, size_t count) /* the first ones */
{
    return trp_bytes_slice(bytes, 0, count);
}
static inline trp_bytes
trp_bytes_drop(trp_bytes bytes, size_t count) /* all but the first ones */
{
    return trp_bytes_slice(bytes, count, TRP_BYTES_NOT_FOUND);
}
static inline trp_bytes
trp_bytes_take_right(trp_bytes bytes, size_t count) /* the last ones */
{
    return trp_bytes_slice(bytes, bytes.priv_bytes > count ? bytes.priv_bytes - count : 0,
                           bytes.priv_bytes);
}
static inline trp_bytes
trp_bytes_drop_right(trp_bytes bytes, size_t count) /* all but the last ones */
{
    return trp_bytes_slice(bytes, 0, bytes.priv_bytes > count ? bytes.priv_bytes - count : 0);
}

/* Cut the first bytes, at most all, off a handle, which keeps the rest, and return them.
 *
 * Ownership: gives the result.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    IO-07.  Since: 0.1 */
TRP_API trp_bytes trp_bytes_split(trp_bytes *bytes, size_t count);

/* Remove the first bytes, at most all, from a handle. Memory of pieces that nobody needs any more
 * is freed at once.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    IO-07.  Since: 0.1 */
TRP_API void trp_bytes_skip(trp_bytes *bytes, size_t count);

/* Append more to a handle, without copying either. Appending n times to one handle takes O(n).
 *
 * Ownership: shares more; on an error *bytes is as it was.
 * Errors:    TRP_EMSGSIZE  both have more than TRP_BYTES_MAX
 *            TRP_ENOMEM    out of memory
 * Thread:    any; lock-free.
 * Source:    IO-07.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_bytes_append(trp_bytes *bytes, trp_bytes more);

/* Make a handle of a's bytes and then b's, without copying.
 *
 * Ownership: shares both; gives *ret_bytes.
 * Errors:    as trp_bytes_append
 * Thread:    any; lock-free.
 * Source:    IO-07.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_bytes_join(trp_bytes a, trp_bytes b, trp_bytes *ret_bytes);

/* Let a handle's bytes stand in one piece that has room for nothing else: copies them, unless they
 * do already.
 *
 * Ownership: on an error *bytes is as it was.
 * Errors:    TRP_ENOMEM  out of memory
 * Thread:    any; lock-free.
 * Source:    IO-07.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_bytes_compact(trp_bytes *bytes);

/* ---- looking --------------------------------------------------------------------------------- */

/* Return the bytes if they stand in one piece; NULL: in several, or there are none.
 *
 * Ownership: the result belongs to the handle.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    IO-07.  Since: 0.1 */
static inline const uint8_t *
trp_bytes_flat(trp_bytes bytes)
{
    return bytes.priv_data;
}

/* One piece; laid out as a struct iovec, so that an array of them may be cast for writev(). */
typedef struct trp_bytes_part {
    const void *data;
    size_t bytes;
} trp_bytes_part;

/* Return the pieces from the front, at most parts_max.
 *
 * Ownership: borrows until the handle goes; the result is how many were stored in ret_parts.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    IO-07.  Since: 0.1 */
TRP_API size_t trp_bytes_parts(trp_bytes bytes, trp_bytes_part *ret_parts, size_t parts_max);

/* Copy at most count bytes, beginning with byte `from`, and return how many there were.
 *
 * Ownership: borrows ret_data.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    IO-07.  Since: 0.1 */
TRP_API size_t trp_bytes_copy_out(trp_bytes bytes, size_t from, void *ret_data, size_t count);

/* Compare as memcmp() does, the shorter of two first: negative, 0 or positive.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    IO-07.  Since: 0.1 */
TRP_API int trp_bytes_compare(trp_bytes a, trp_bytes b);
static inline int
trp_bytes_equal(trp_bytes a, trp_bytes b)
{
    return a.priv_bytes == b.priv_bytes && trp_bytes_compare(a, b) == 0;
}

/* Return where these bytes stand first, at byte `from` or behind, also across pieces;
 * TRP_BYTES_NOT_FOUND: nowhere. No bytes are found at `from`, if there are so many.
 *
 * Ownership: borrows what.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    IO-07.  Since: 0.1 */
TRP_API size_t trp_bytes_find(trp_bytes bytes, size_t from, const void *what, size_t what_bytes);

/* ---- reading numbers ------------------------------------------------------------------------- */

typedef enum trp_byte_order { TRP_BIG_ENDIAN = 1, TRP_LITTLE_ENDIAN = 2 } trp_byte_order;

/* A place in bytes that are read from the front. Its members are not yours. After the first error
 * every call fails with it, so that a decoder may look once, at the end:
 *
 *     trp_bytes_reader in = trp_bytes_read(frame, TRP_BIG_ENDIAN);
 *     uint32_t n = 0;
 *     trp_bytes_get_u32(&in, &n);
 *     trp_bytes_get_f64(&in, &point);
 *     if (trp_bytes_reader_err(&in) != TRP_OK || trp_bytes_left(&in) != 0) ...
 */
typedef struct trp_bytes_reader {
    trp_bytes priv_bytes; /* borrowed */
    size_t priv_at;
    const uint8_t *priv_piece, *priv_end; /* what is left of the piece at priv_at */
    trp_byte_order priv_order;
    trp_err priv_err;
} trp_bytes_reader;

/* Begin to read. A byte order that is none is big-endian.
 *
 * Ownership: borrows bytes until the reader is not used any more.
 * Errors:    none
 * Thread:    owner (the creator; no lock inside).
 * Source:    IO-08.  Since: 0.1 */
TRP_API trp_bytes_reader trp_bytes_read(trp_bytes bytes, trp_byte_order order);

/* Read count numbers of so many bytes each, 1, 2, 4 or 8, into an array of such numbers, whole or
 * floating. NULL instead of the array: leave them out. The functions below read one.
 *
 * Ownership: borrows ret_values, which is untouched after an error.
 * Errors:    TRP_EDATA   there are not so many
 *            TRP_EINVAL  there are no such numbers
 * Thread:    owner (the creator; no lock inside).
 * Source:    IO-08.  Since: 0.1 */
TRP_API trp_err trp_bytes_get(trp_bytes_reader *reader, size_t value_bytes, size_t count,
                              void *ret_values);

/* Read a whole number of 1 to 8 bytes without a sign, such as one of 3.
 *
 * Errors:    TRP_EDATA, TRP_EINVAL as trp_bytes_get
 * Thread:    owner (the creator; no lock inside).
 * Source:    IO-08.  Since: 0.1 */
TRP_API trp_err trp_bytes_get_part(trp_bytes_reader *reader, size_t value_bytes,
                                   uint64_t *ret_value);

/* Read so many bytes as a slice, without copying.
 *
 * Ownership: gives *ret_bytes.
 * Errors:    TRP_EDATA  there are not so many
 * Thread:    owner (the creator; no lock inside).
 * Source:    IO-08.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_bytes_get_bytes(trp_bytes_reader *reader, size_t count,
                                                   trp_bytes *ret_bytes);

/* Return what was not read yet as a slice, without copying; reads nothing.
 *
 * Ownership: gives the result.
 * Errors:    none
 * Thread:    owner (the creator; no lock inside).
 * Source:    IO-08.  Since: 0.1 */
TRP_API trp_bytes trp_bytes_rest(const trp_bytes_reader *reader);

/* Return how many bytes were not read yet.
 *
 * Errors:    none
 * Thread:    owner (the creator; no lock inside).
 * Source:    IO-08.  Since: 0.1 */
static inline size_t
trp_bytes_left(const trp_bytes_reader *reader)
{
    return reader->priv_bytes.priv_bytes - reader->priv_at;
}

/* Return the first error of a reader, TRP_OK when there was none.
 *
 * Errors:    none
 * Thread:    owner (the creator; no lock inside).
 * Source:    IO-08.  Since: 0.1 */
static inline trp_err
trp_bytes_reader_err(const trp_bytes_reader *reader)
{
    return reader->priv_err;
}

/* ---- writing numbers ------------------------------------------------------------------------- */

#define TRP_BYTES_SHARED_MIN 256u /* shorter slices are copied by a writer, longer ones shared */

/* Bytes in the making. Its members are not yours. An error is kept and comes from
 * trp_bytes_written(), so that the calls between need no look:
 *
 *     trp_bytes_writer out = TRP_BYTES_WRITER(TRP_BIG_ENDIAN);
 *     trp_bytes_put_u32(&out, count);
 *     trp_bytes_put(&out, sizeof(double), count, points);
 *     trp_err err = trp_bytes_written(&out, &frame);
 */
typedef struct trp_bytes_writer {
    trp_byte_order priv_order;
    trp_err priv_err;
    trp_bytes priv_done;
    trp_bytes priv_chunk; /* its bytes from priv_begin to priv_used are not in priv_done yet */
    uint32_t priv_begin, priv_used;
} trp_bytes_writer;
#ifdef __cplusplus
#define TRP_BYTES_WRITER(order)                                                                    \
    (trp_bytes_writer{ (order), TRP_OK, trp_bytes(), trp_bytes(), 0, 0 })
#else
#define TRP_BYTES_WRITER(order)                                                                    \
    ((trp_bytes_writer){ (order), TRP_OK, { NULL, NULL, 0, 0 }, { NULL, NULL, 0, 0 }, 0, 0 })
#endif

/* Write count numbers of so many bytes each, 1, 2, 4 or 8, from an array of such numbers, whole or
 * floating; with 1 it writes memory as it is. The functions below write one.
 *
 * Ownership: borrows values.
 * Errors:    kept in the writer: as trp_bytes_written
 * Thread:    owner (the creator; no lock inside).
 * Source:    IO-08.  Since: 0.1 */
TRP_API void trp_bytes_put(trp_bytes_writer *writer, size_t value_bytes, size_t count,
                           const void *values);

/* Write the lowest bytes, 1 to 8, of a whole number, such as 3 of them.
 *
 * Errors:    kept in the writer: as trp_bytes_written
 * Thread:    owner (the creator; no lock inside).
 * Source:    IO-08.  Since: 0.1 */
TRP_API void trp_bytes_put_part(trp_bytes_writer *writer, size_t value_bytes, uint64_t value);

/* Write a slice: it is copied below TRP_BYTES_SHARED_MIN bytes, and shared from there on.
 *
 * Ownership: shares bytes.
 * Errors:    kept in the writer: as trp_bytes_written
 * Thread:    owner (the creator; no lock inside).
 * Source:    IO-08.  Since: 0.1 */
TRP_API void trp_bytes_put_bytes(trp_bytes_writer *writer, trp_bytes bytes);

/* Return how many bytes were written so far.
 *
 * Errors:    none
 * Thread:    owner (the creator; no lock inside).
 * Source:    IO-08.  Since: 0.1 */
static inline size_t
trp_bytes_writer_length(const trp_bytes_writer *writer)
{
    return (size_t)writer->priv_done.priv_bytes + (writer->priv_used - writer->priv_begin);
}

/* End writing and return what was written. The writer is empty afterwards, also after an error, and
 * may be used again.
 *
 * Ownership: gives *ret_bytes.
 * Errors:    TRP_EMSGSIZE  more than TRP_BYTES_MAX were written
 *            TRP_EINVAL    a number had no such size
 *            TRP_ENOMEM    out of memory
 * Thread:    owner (the creator; no lock inside).
 * Source:    IO-08.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_bytes_written(trp_bytes_writer *writer, trp_bytes *ret_bytes);

/* Forget what was written; the writer is empty and may be used again.
 *
 * Errors:    none
 * Thread:    owner (the creator; no lock inside).
 * Source:    IO-08.  Since: 0.1 */
TRP_API void trp_bytes_writer_clear(trp_bytes_writer *writer);

/* trp_bytes_get_u16(&reader, &value), trp_bytes_put_u16(&writer, value), and so on. */
#define TRP_BYTES_PRIV_NUMBER(name, type)                                                          \
    static inline trp_err trp_bytes_get_##name(trp_bytes_reader *reader, type *ret_value)          \
    {                                                                                              \
        return trp_bytes_get(reader, sizeof(type), 1, ret_value);                                  \
    }                                                                                              \
    static inline void trp_bytes_put_##name(trp_bytes_writer *writer, type value)                  \
    {                                                                                              \
        trp_bytes_put(writer, sizeof(type), 1, &value);                                            \
    }
TRP_BYTES_PRIV_NUMBER(u8, uint8_t)
TRP_BYTES_PRIV_NUMBER(u16, uint16_t)
TRP_BYTES_PRIV_NUMBER(u32, uint32_t)
TRP_BYTES_PRIV_NUMBER(u64, uint64_t)
TRP_BYTES_PRIV_NUMBER(i8, int8_t)
TRP_BYTES_PRIV_NUMBER(i16, int16_t)
TRP_BYTES_PRIV_NUMBER(i32, int32_t)
TRP_BYTES_PRIV_NUMBER(i64, int64_t)
TRP_BYTES_PRIV_NUMBER(f32, float)
TRP_BYTES_PRIV_NUMBER(f64, double)

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_BYTES_H */
