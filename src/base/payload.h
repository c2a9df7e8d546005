/* payload.h - blocks: payloads with text, bytes, arrays and structs inside (troupe/payload.h).
 *
 * A block is a struct and, behind it, what its fields name by offsets from its start. A payload
 * that stays inside a system is not checked. One that leaves it, or comes from a disk or a
 * serializer of the program, is checked as a whole first, and trusted from then on.
 */
#ifndef TRPI_BASE_PAYLOAD_H
#define TRPI_BASE_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/message.h>
#include <troupe/payload.h>

#include "base/buffer.h"

#define TRPI_SLICE_ALIGN 8u /* of bytes and of elements, from the start of the block */

/* Return whether the payload has at least the struct, or exactly the fixed size. */
static inline bool
trpi_payload_fits(const trp_type *type, size_t bytes)
{
    return (type->flags & TRP_TYPE_VARIABLE) != 0 ? bytes >= type->bytes : bytes == type->bytes;
}
/* Return the size of a payload: callers need not give that of a fixed type. */
static inline size_t
trpi_payload_bytes(const trp_type *type, size_t bytes)
{
    return bytes == 0 && (type->flags & TRP_TYPE_VARIABLE) == 0 ? type->bytes : bytes;
}
/* Return whether payloads of the type are blocks. Opaque variable types (text, JSON, bytes) are
 * not. */
static inline bool
trpi_payload_is_block(const trp_type *type)
{
    return (type->flags & TRP_TYPE_VARIABLE) != 0 && type->fields != NULL;
}

static inline bool
trpi_kind_is_array(uint32_t kind)
{
    return (kind & TRP_FIELD_ARRAY) != 0;
}
static inline uint32_t
trpi_kind_element(uint32_t kind)
{
    return kind & ~(uint32_t)TRP_FIELD_ARRAY;
}
/* Bytes of a field in its struct; of is the struct of a struct. 0: a kind that is not known. */
size_t trpi_kind_bytes(uint32_t kind, const trp_type *of);
/* Room of a text of fixed size; 0: it is none. */
size_t trpi_kind_text_room(uint32_t kind);

/* The value of a field of variable length; read without alignment. */
typedef struct trpi_slice {
    uint32_t at, count; /* of bytes, or of elements */
} trpi_slice;
trpi_slice trpi_slice_get(const uint8_t *field);

/* Check the fields of a type, and of the structs inside, against those that TRP_PROTOCOL makes.
 * Errors: TRP_EINVAL (a kind, a struct that is missing or not within the type), TRP_ELIMIT
 * (TRP_TYPE_NESTING_MAX, also of a struct that has itself inside). */
trp_err trpi_type_check(const trp_type *type);

/* Check a whole block: every slice is inside and aligned, texts have a NUL at their end and none
 * inside, and all slices together are no longer than the block, so that a walk takes linear time.
 * The type's fields have been checked. Errors: TRP_EDATA. */
trp_err trpi_payload_check(const trp_type *type, const void *payload, size_t bytes);

/* Call each with the place of every ref of a checked payload (of any type), in the order of the
 * fields; not aligned; each may write it. Stops at an error and returns it. Errors: TRP_EDATA: a
 * ref was written over a slice, which now leads out of the block. */
typedef trp_err (*trpi_payload_ref_fn)(void *arg, uint8_t *ref);
trp_err trpi_payload_refs(const trp_type *type, void *payload, size_t bytes,
                          trpi_payload_ref_fn each, void *arg);

/* ---- making one in a buffer; it begins at out->data + begin ---------------------------------- */

/* Append zeroed bytes that begin a block, or a part of one, aligned from its start. Errors:
 * TRP_EMSGSIZE (TRP_PAYLOAD_BYTES_MAX), TRP_ENOMEM. */
trp_err trpi_payload_take(trpi_buffer *out, size_t begin, uint64_t bytes, uint32_t align,
                          uint32_t *ret_at);
/* Let the field at this offset name a slice. */
void trpi_payload_set(trpi_buffer *out, size_t begin, size_t field_at, trpi_slice slice);
/* Append a text, or bytes, and let the field name it. Errors: as take; TRP_EDATA: a NUL in a
 * text. */
trp_err trpi_payload_put_text(trpi_buffer *out, size_t begin, size_t field_at, const char *text,
                              size_t bytes);
trp_err trpi_payload_put_bytes(trpi_buffer *out, size_t begin, size_t field_at, const void *data,
                               size_t bytes);
/* Append an array of zeroed elements and let the field name it. Errors: as take. */
trp_err trpi_payload_put_array(trpi_buffer *out, size_t begin, size_t field_at,
                               size_t element_bytes, uint64_t count, uint32_t *ret_at);

#endif
