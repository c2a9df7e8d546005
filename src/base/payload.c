/* payload.c - payloads whose length varies: fields, blocks and builders.
 *
 * Why.     A message is one piece of memory, whatever is in it: it is copied by one copy, freed by
 *          one free, and passed on without knowing its type. So texts and arrays stand behind the
 *          struct, and the struct has offsets from its own start, which mean the same in each copy.
 * Shape.   struct | text NUL | pad | elements ... ; a field is {at, bytes} or {at, count}
 *          A builder writes into chunks that stay where they are: the first is in the builder, the
 *          others on the heap, each at a multiple of 16 of the block; in the end they are put
 *          together, if there is more than one.
 * Must hold.
 *   payload-B1  A check takes time linear in the bytes: the slices of a block may not add up to
 *       more than the block. Else a few KiB could name one long text a thousand times.
 *   payload-B2  Depth of recursion is that of types, at most TRP_TYPE_NESTING_MAX, which
 *       registration checks; no input decides it.
 *   payload-B3  Bytes between the parts are zeroed: none is left from the stack or the heap.
 * Limits.  TRP_PAYLOAD_BYTES_MAX, TRP_TYPE_NESTING_MAX.
 * Cost.    A builder on the stack and one copy more than a struct of fixed size needs none of the
 *          heap up to TRP_BUILDER_BYTES.
 * Tests.   tests/unit/base/payload_test.c, tests/fuzz/payload_fuzz.c
 */
#include "base/payload.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

_Static_assert(sizeof(trp_field_text) == 8 && sizeof(trp_field_bytes) == 8 &&
                   sizeof(trp_array) == 8 && sizeof(trpi_slice) == 8,
               "a slice is two numbers");
_Static_assert(sizeof(trp_field_array(i64)) == sizeof(trp_array), "the type of elements is free");

/* ---- fields ---------------------------------------------------------------------------------- */

size_t
trpi_kind_text_room(uint32_t kind)
{
    switch (kind) {
    case TRP_FIELD_text32:
        return sizeof(trp_field_text32);
    case TRP_FIELD_text128:
        return sizeof(trp_field_text128);
    case TRP_FIELD_text512:
        return sizeof(trp_field_text512);
    default:
        return 0;
    }
}

size_t
trpi_kind_bytes(uint32_t kind, const trp_type *of)
{
    if (trpi_kind_is_array(kind)) {
        return sizeof(trp_array);
    }
    switch (kind) {
    case TRP_FIELD_bool:
        return 1;
    case TRP_FIELD_i32:
    case TRP_FIELD_u32:
        return 4;
    case TRP_FIELD_i64:
    case TRP_FIELD_u64:
    case TRP_FIELD_f64:
        return 8;
    case TRP_FIELD_ref:
        return sizeof(trp_ref);
    case TRP_FIELD_text:
    case TRP_FIELD_bytes:
        return sizeof(trpi_slice);
    case TRP_FIELD_STRUCT:
        return of->bytes;
    default:
        return trpi_kind_text_room(kind);
    }
}

static trp_err
fields_check(const trp_type *type, uint32_t depth, bool *ret_varies)
{
    if (depth > TRP_TYPE_NESTING_MAX) {
        return TRP_ELIMIT; /* payload-B2 */
    }
    if (type->fields_count != 0 && type->fields == NULL) {
        return TRP_EINVAL;
    }
    for (uint32_t i = 0; i < type->fields_count; i++) {
        const trp_field *field = &type->fields[i];
        uint32_t kind = trpi_kind_element(field->kind);
        bool varies =
            trpi_kind_is_array(field->kind) || kind == TRP_FIELD_text || kind == TRP_FIELD_bytes;

        if (kind == TRP_FIELD_STRUCT) {
            bool inner = false;
            trp_err err = field->of != NULL && field->of->fields != NULL
                              ? fields_check(field->of, depth + 1, &inner)
                              : TRP_EINVAL;

            if (err != TRP_OK) {
                return err;
            }
            varies = varies || inner;
        }
        size_t bytes = trpi_kind_bytes(field->kind, field->of);
        if (field->name == NULL || bytes == 0 || trpi_kind_bytes(kind, field->of) == 0 ||
            field->offset > type->bytes || bytes > type->bytes - field->offset) {
            return TRP_EINVAL;
        }
        *ret_varies = *ret_varies || varies;
    }
    return TRP_OK;
}

trp_err
trpi_type_check(const trp_type *type)
{
    bool varies = false;
    trp_err err = fields_check(type, 1, &varies);

    /* a type with fields varies if and only if one of them does */
    if (err == TRP_OK && type->fields != NULL &&
        varies != ((type->flags & TRP_TYPE_VARIABLE) != 0)) {
        err = TRP_EINVAL;
    }
    return err;
}

/* ---- checking a block of unknown origin ------------------------------------------------------ */

trpi_slice
trpi_slice_get(const uint8_t *field)
{
    trpi_slice slice;

    memcpy(&slice, field, sizeof slice);
    return slice;
}

typedef struct walk {
    const uint8_t *payload;
    size_t bytes;
    size_t left; /* payload-B1: what slices may still take */
} walk;

static bool struct_is_good(walk *w, const trp_type *type, size_t at);

/* The bytes of a slice are within the block, and not counted too often. */
static bool
slice_take(walk *w, uint32_t at, uint64_t bytes)
{
    if (at > w->bytes || bytes > w->bytes - at || bytes > w->left) {
        return false;
    }
    w->left -= (size_t)bytes;
    return true;
}

static bool
text_is_good(walk *w, trpi_slice slice)
{
    return slice.count == 0 || (slice_take(w, slice.at, (uint64_t)slice.count + 1) &&
                                memchr(w->payload + slice.at, 0, (size_t)slice.count + 1) ==
                                    w->payload + slice.at + slice.count);
}

static bool
value_is_good(walk *w, uint32_t kind, const trp_type *of, size_t at)
{
    trpi_slice slice;

    if (kind == TRP_FIELD_STRUCT) {
        return struct_is_good(w, of, at);
    }
    if (kind != TRP_FIELD_text && kind != TRP_FIELD_bytes && !trpi_kind_is_array(kind)) {
        return true; /* any bytes are such a value */
    }
    slice = trpi_slice_get(w->payload + at);
    if (kind == TRP_FIELD_text) {
        return text_is_good(w, slice);
    }
    if (slice.count == 0) {
        return true;
    }
    if (slice.at % TRPI_SLICE_ALIGN != 0) {
        return false;
    }
    if (kind == TRP_FIELD_bytes) {
        return slice_take(w, slice.at, slice.count);
    }
    kind = trpi_kind_element(kind);
    size_t each = trpi_kind_bytes(kind, of);
    bool good = slice_take(w, slice.at, (uint64_t)slice.count * each);
    bool plain = kind != TRP_FIELD_text && kind != TRP_FIELD_bytes && kind != TRP_FIELD_STRUCT;
    for (uint32_t i = 0; good && !plain && i < slice.count; i++) {
        good = value_is_good(w, kind, of, slice.at + i * each);
    }
    return good;
}

static bool
struct_is_good(walk *w, const trp_type *type, size_t at)
{
    bool good = true;

    for (uint32_t i = 0; good && i < type->fields_count; i++) {
        const trp_field *field = &type->fields[i];

        good = value_is_good(w, field->kind, field->of, at + field->offset);
    }
    return good;
}

trp_err
trpi_payload_check(const trp_type *type, const void *payload, size_t bytes)
{
    walk w = { payload, bytes, bytes - type->bytes };

    if (!trpi_payload_fits(type, bytes) || bytes > UINT32_MAX) {
        return TRP_EDATA;
    }
    return !trpi_payload_is_block(type) || struct_is_good(&w, type, 0) ? TRP_OK : TRP_EDATA;
}

/* ---- refs ------------------------------------------------------------------------------------ */

typedef struct refs {
    walk w;
    uint8_t *payload;
    trpi_payload_ref_fn each;
    void *arg;
} refs;

static trp_err value_refs(refs *r, uint32_t kind, const trp_type *of, size_t at);

/* Slices of a checked block may overlap, so a ref that was just written may stand on this one:
 * it is looked at again. */
static trp_err
array_refs(refs *r, uint32_t element, const trp_type *of, size_t at)
{
    trpi_slice slice = trpi_slice_get(r->payload + at);
    size_t bytes = trpi_kind_bytes(element, of);
    trp_err err = TRP_OK;

    if (slice.count == 0 || (element != TRP_FIELD_ref && element != TRP_FIELD_STRUCT)) {
        return TRP_OK;
    }
    if (!slice_take(&r->w, slice.at, (uint64_t)slice.count * bytes)) {
        return TRP_EDATA;
    }
    for (uint32_t i = 0; err == TRP_OK && i < slice.count; i++) {
        err = value_refs(r, element, of, slice.at + i * bytes);
    }
    return err;
}

static trp_err
value_refs(refs *r, uint32_t kind, const trp_type *of, size_t at)
{
    trp_err err = TRP_OK;

    if (kind == TRP_FIELD_ref) {
        return r->each(r->arg, r->payload + at);
    }
    if (trpi_kind_is_array(kind)) {
        return array_refs(r, trpi_kind_element(kind), of, at);
    }
    if (kind == TRP_FIELD_STRUCT) {
        for (uint32_t i = 0; err == TRP_OK && i < of->fields_count; i++) {
            const trp_field *field = &of->fields[i];

            err = value_refs(r, field->kind, field->of, at + field->offset);
        }
    }
    return err;
}

trp_err
trpi_payload_refs(const trp_type *type, void *payload, size_t bytes, trpi_payload_ref_fn each,
                  void *arg)
{
    refs r = { { payload, bytes, bytes - type->bytes }, payload, each, arg };

    trpi_assert(trpi_payload_fits(type, bytes));
    return type->fields != NULL ? value_refs(&r, TRP_FIELD_STRUCT, type, 0) : TRP_OK;
}

/* ---- a block in a buffer --------------------------------------------------------------------- */

trp_err
trpi_payload_take(trpi_buffer *out, size_t begin, uint64_t bytes, uint32_t align, uint32_t *ret_at)
{
    size_t used = out->count - begin;
    size_t pad = (align - used % align) % align;
    trp_err err;

    if (bytes > TRP_PAYLOAD_BYTES_MAX || used + pad > TRP_PAYLOAD_BYTES_MAX - bytes) {
        return TRP_EMSGSIZE;
    }
    err = trpi_buffer_reserve(out, pad + (size_t)bytes, TRPI_BUFFER_NO_LIMIT);
    if (err != TRP_OK) {
        return err;
    }
    memset(out->data + out->count, 0, pad + (size_t)bytes); /* payload-B3 */
    out->count += pad + (size_t)bytes;
    *ret_at = (uint32_t)(used + pad);
    return TRP_OK;
}

void
trpi_payload_set(trpi_buffer *out, size_t begin, size_t field_at, trpi_slice slice)
{
    trpi_assert(begin + field_at + sizeof slice <= out->count);
    memcpy(out->data + begin + field_at, &slice, sizeof slice);
}

trp_err
trpi_payload_put_text(trpi_buffer *out, size_t begin, size_t field_at, const char *text,
                      size_t bytes)
{
    uint32_t at = 0;
    trp_err err;

    if (bytes == 0) {
        return TRP_OK;
    }
    if (memchr(text, 0, bytes) != NULL) {
        return TRP_EDATA;
    }
    err = trpi_payload_take(out, begin, (uint64_t)bytes + 1, 1, &at);
    if (err == TRP_OK) {
        memcpy(out->data + begin + at, text, bytes);
        trpi_payload_set(out, begin, field_at, (trpi_slice){ at, (uint32_t)bytes });
    }
    return err;
}

trp_err
trpi_payload_put_bytes(trpi_buffer *out, size_t begin, size_t field_at, const void *data,
                       size_t bytes)
{
    uint32_t at = 0;
    trp_err err;

    if (bytes == 0) {
        return TRP_OK;
    }
    err = trpi_payload_take(out, begin, bytes, TRPI_SLICE_ALIGN, &at);
    if (err == TRP_OK) {
        memcpy(out->data + begin + at, data, bytes);
        trpi_payload_set(out, begin, field_at, (trpi_slice){ at, (uint32_t)bytes });
    }
    return err;
}

trp_err
trpi_payload_put_array(trpi_buffer *out, size_t begin, size_t field_at, size_t element_bytes,
                       uint64_t count, uint32_t *ret_at)
{
    trp_err err = TRP_OK;

    *ret_at = 0;
    if (count == 0) {
        return TRP_OK;
    }
    err = count <= TRP_PAYLOAD_BYTES_MAX
              ? trpi_payload_take(out, begin, count * element_bytes, TRPI_SLICE_ALIGN, ret_at)
              : TRP_EMSGSIZE;
    if (err == TRP_OK) {
        trpi_payload_set(out, begin, field_at, (trpi_slice){ *ret_at, (uint32_t)count });
    }
    return err;
}

/* ---- builders -------------------------------------------------------------------------------- */

#define CHUNK_ALIGN 16u
#define CHUNK_BYTES_LEAST 4064u

struct trp_builder_chunk {
    struct trp_builder_chunk *next; /* the one before it; NULL: the builder's own */
    uint32_t before;                /* offset of its first byte in the block */
    uint32_t used;                  /* in a chunk that is full, and in the whole block */
    uint32_t is_whole;              /* 1: the block as one piece */
    uint32_t first_used;            /* of the builder's own, in the first of the list */
    uint64_t zero;
    unsigned char bytes[];
};
_Static_assert(sizeof(struct trp_builder_chunk) % CHUNK_ALIGN == 0, "bytes are aligned");

static bool
is_whole(const trp_builder *builder)
{
    return builder->priv_more != NULL && builder->priv_more->is_whole != 0;
}

/* Go on in a new chunk that has room for so many bytes. */
static trp_err
chunk_add(trp_builder *builder, size_t bytes)
{
    uint32_t end = builder->priv_before + builder->priv_used;
    uint32_t before = (end + CHUNK_ALIGN - 1) / CHUNK_ALIGN * CHUNK_ALIGN;
    struct trp_builder_chunk *last = builder->priv_more, *chunk;
    size_t room = before > CHUNK_BYTES_LEAST ? before : CHUNK_BYTES_LEAST; /* it doubles */

    if (bytes > TRP_PAYLOAD_BYTES_MAX || before > TRP_PAYLOAD_BYTES_MAX - bytes) {
        return TRP_EMSGSIZE;
    }
    room = room < bytes ? bytes : room;
    room = room > TRP_PAYLOAD_BYTES_MAX - before ? TRP_PAYLOAD_BYTES_MAX - before : room;
    chunk = trpi_alloc(sizeof *chunk + room);
    if (chunk == NULL) {
        return TRP_ENOMEM;
    }
    chunk->next = last;
    chunk->before = before;
    chunk->first_used = last != NULL ? last->first_used : builder->priv_used;
    if (last != NULL) {
        last->used = builder->priv_used;
    }
    builder->priv_more = chunk;
    builder->priv_chunk = chunk->bytes;
    builder->priv_before = before;
    builder->priv_used = 0;
    builder->priv_room = (uint32_t)room;
    return TRP_OK;
}

/* Reserve room in the block; NULL: the builder has the error. The padding before it is zeroed, the
 * room is not. */
static unsigned char *
room_take(trp_builder *builder, size_t bytes, uint32_t align, uint32_t *ret_at)
{
    uint32_t used = (builder->priv_used + align - 1) / align * align;
    trp_err err = is_whole(builder) ? TRP_EINVAL : builder->priv_err;

    if (err == TRP_OK && (used > builder->priv_room || bytes > builder->priv_room - used)) {
        err = chunk_add(builder, bytes);
        used = 0;
    }
    if (err != TRP_OK) {
        builder->priv_err = err;
        return NULL;
    }
    if (used > builder->priv_used) {
        /* payload-B3 */
        memset(builder->priv_chunk + builder->priv_used, 0, used - builder->priv_used);
    }
    builder->priv_used = used + (uint32_t)bytes;
    *ret_at = builder->priv_before + used;
    return builder->priv_chunk + used;
}

void *
trp_build_large(trp_builder *builder, const trp_type *type, size_t bytes)
{
    uint32_t at = 0;
    unsigned char *place;

    *builder = (trp_builder){ .priv_type = type };
    builder->priv_chunk = builder->priv_first.bytes;
    place = room_take(builder, bytes, 1, &at); /* of a chunk of its own, which is zeroed */
    return place;
}

void
trp_build_text_n(trp_builder *builder, trp_field_text *field, const char *text, size_t bytes)
{
    unsigned char *place;
    uint32_t at = 0;

    *field = (trp_field_text){ 0, 0 };
    if (bytes == 0) {
        return;
    }
    if (memchr(text, 0, bytes) != NULL) {
        builder->priv_err = builder->priv_err != TRP_OK ? builder->priv_err : TRP_EDATA;
        return;
    }
    place = room_take(builder, bytes < SIZE_MAX ? bytes + 1 : bytes, 1, &at);
    if (place != NULL) {
        memcpy(place, text, bytes);
        place[bytes] = 0;
        *field = (trp_field_text){ at, (uint32_t)bytes };
    }
}

void
trp_build_bytes(trp_builder *builder, trp_field_bytes *field, const void *data, size_t bytes)
{
    uint32_t at = 0;
    unsigned char *place = bytes != 0 ? room_take(builder, bytes, TRPI_SLICE_ALIGN, &at) : NULL;

    *field = (trp_field_bytes){ 0, 0 };
    if (place != NULL) {
        memcpy(place, data, bytes);
        *field = (trp_field_bytes){ at, (uint32_t)bytes };
    }
}

void *
trp_build_array(trp_builder *builder, trp_array *array, size_t element_bytes, size_t count)
{
    bool fits = count <= TRP_PAYLOAD_BYTES_MAX / element_bytes;
    size_t bytes = fits ? count * element_bytes : SIZE_MAX;
    uint32_t at = 0;
    unsigned char *place = count != 0 ? room_take(builder, bytes, TRPI_SLICE_ALIGN, &at) : NULL;

    *array = (trp_array){ 0, 0 };
    if (place != NULL) {
        memset(place, 0, bytes);
        *array = (trp_array){ at, (uint32_t)count };
    }
    return place;
}

/* Put the chunks together, in a new one at the head of the list. */
static trp_err
chunks_join(trp_builder *builder)
{
    uint32_t bytes = builder->priv_before + builder->priv_used;
    struct trp_builder_chunk *whole = trpi_alloc(sizeof *whole + bytes);

    if (whole == NULL) {
        return TRP_ENOMEM;
    }
    builder->priv_more->used = builder->priv_used;
    memcpy(whole->bytes, builder->priv_first.bytes, builder->priv_more->first_used);
    for (struct trp_builder_chunk *c = builder->priv_more; c != NULL; c = c->next) {
        memcpy(whole->bytes + c->before, c->bytes, c->used);
    }
    whole->next = builder->priv_more;
    whole->used = bytes;
    whole->is_whole = 1;
    builder->priv_more = whole;
    builder->priv_room = builder->priv_used; /* no more can be added */
    return TRP_OK;
}

const void *
trp_build_whole(trp_builder *builder, size_t *ret_bytes)
{
    if (builder->priv_err == TRP_OK && builder->priv_more != NULL && !is_whole(builder)) {
        builder->priv_err = chunks_join(builder);
    }
    if (builder->priv_err != TRP_OK) {
        *ret_bytes = 0;
        return NULL;
    }
    *ret_bytes = builder->priv_more != NULL ? builder->priv_more->used : builder->priv_used;
    return builder->priv_more != NULL ? builder->priv_more->bytes : builder->priv_first.bytes;
}

void
trp_build_drop(trp_builder *builder)
{
    while (builder->priv_more != NULL) {
        struct trp_builder_chunk *next = builder->priv_more->next;

        trpi_free(builder->priv_more);
        builder->priv_more = next;
    }
}
