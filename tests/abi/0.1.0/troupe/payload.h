/* troupe/payload.h - messages with text, bytes, arrays and structs inside, of any length.
 *
 *     #define CHAT_LINE(F, S) F(S, text, from) F(S, text, body) F(S, i64, at_ms)
 *     #define CHAT_HISTORY(F, S) F(S, text, room) F(S, array(struct(chat_line)), lines)
 *     #define CHAT_MESSAGES(M, P) M(P, line, CHAT_LINE) M(P, history, CHAT_HISTORY)
 *     TRP_PROTOCOL(chat, CHAT_MESSAGES)
 *
 * The kinds besides those of fixed size (troupe/message.h):
 *
 *     text              UTF-8 without a NUL inside, of any length
 *     bytes             bytes of any length
 *     struct(name)      a struct in place: another message, or one that TRP_STRUCT declares
 *     array(kind)       any number of elements of any kind but array
 *
 * The payload of a type with text, bytes or an array is one block: the struct, and behind it what
 * varies, which the struct names by its offset from the start of the block. It is written with a
 * builder, told like any other payload, and read in place with accessors, which compare every
 * offset with the length of the payload:
 *
 *     trp_builder b;
 *     chat_line *line = TRP_BUILD(&b, chat_line);
 *     trp_build_text(&b, &line->from, "ann");
 *     trp_build_text(&b, &line->body, text);
 *     trp_tell(ctx, room, TRP_BUILT(&b));
 *     trp_build_free(&b);
 *
 *     const chat_line *line = trp_msg_payload(msg);
 *     printf("%s: %s\n", trp_msg_text(msg, line->from, NULL), trp_msg_text(msg, line->body, NULL));
 *
 * Versions: as with other types, fields may be added at the end of a list, also of a struct inside.
 * Limits: TRP_PAYLOAD_BYTES_MAX, TRP_TYPE_NESTING_MAX; to another node also
 * remote.maximum-frame-size.
 */
#ifndef TROUPE_PAYLOAD_H
#define TROUPE_PAYLOAD_H

#include <string.h>

#include <troupe/base.h>
#include <troupe/message.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- reading --------------------------------------------------------------------------------- */

/* Borrow a text of a message: NUL-terminated, "" when it is empty or its offset leads out of the
 * payload. ret_bytes may be NULL; it gets the length without the NUL.
 *
 * Ownership: borrows msg; the result belongs to it.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    docs/architecture.md#messages-and-types.  Since: 0.1 */
static inline const char *
trp_msg_text(const trp_msg *msg, trp_field_text text, size_t *ret_bytes)
{
    const char *payload = (const char *)trp_msg_payload(msg);
    size_t left = trp_msg_bytes(msg);
    int there = text.bytes != 0 && text.at < left && text.bytes < left - text.at &&
                payload[(size_t)text.at + text.bytes] == '\0';

    if (ret_bytes != NULL) {
        *ret_bytes = there ? text.bytes : 0;
    }
    return there ? payload + text.at : "";
}

/* Borrow bytes of a message, aligned to 8; NULL when there are none or their offset leads out of
 * the payload. *ret_bytes gets their number.
 *
 * Ownership: borrows msg; the result belongs to it.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    docs/architecture.md#messages-and-types.  Since: 0.1 */
static inline const void *
trp_msg_data(const trp_msg *msg, trp_field_bytes bytes, size_t *ret_bytes)
{
    size_t left = trp_msg_bytes(msg);
    int there = bytes.bytes != 0 && bytes.at <= left && bytes.bytes <= left - bytes.at;

    *ret_bytes = there ? bytes.bytes : 0;
    return there ? (const char *)trp_msg_payload(msg) + bytes.at : NULL;
}

/* As TRP_MSG_ARRAY, which gives the elements their type. */
static inline const void *
trp_msg_array(const trp_msg *msg, trp_array array, size_t element_bytes, size_t *ret_count)
{
    size_t left = trp_msg_bytes(msg);
    int there = array.count != 0 && array.at % 8 == 0 && array.at <= left &&
                array.count <= (left - array.at) / element_bytes;

    *ret_count = there ? array.count : 0;
    return there ? (const char *)trp_msg_payload(msg) + array.at : NULL;
}

/* Borrow the elements of an array of a message, as a pointer to const elements:
 *     const chat_line *lines = TRP_MSG_ARRAY(msg, history->lines, &count);
 * NULL, and a count of 0, when it is empty or its offset leads out of the payload. */
#define TRP_MSG_ARRAY(msg, field, ret_count)                                                       \
    ((const __typeof__(*(field).priv_of) *)trp_msg_array((msg), (field).array,                     \
                                                         sizeof(*(field).priv_of), (ret_count)))

/* ---- writing --------------------------------------------------------------------------------- */

#define TRP_BUILDER_BYTES 480             /* a block of so many bytes needs no heap */
#define TRP_PAYLOAD_BYTES_MAX (16u << 20) /* of a block */

struct trp_builder_chunk;

/* A payload in the making; on the caller's stack. Its members are not yours. */
typedef struct trp_builder {
    unsigned char *priv_chunk; /* what is written to now */
    uint32_t priv_used, priv_room;
    uint32_t priv_before; /* bytes of the block in front of this chunk */
    trp_err priv_err;     /* the first one */
    const trp_type *priv_type;
    struct trp_builder_chunk *priv_more; /* NULL: all stands in priv_first */
    union {
        uint64_t align;
        unsigned char bytes[TRP_BUILDER_BYTES];
    } priv_first;
} trp_builder;

/* As TRP_BUILD, which gives the struct its type.
 *
 * Ownership: builder is the caller's, before and after.
 * Errors:    none; NULL when out of memory
 * Thread:    owner (the creator; no lock inside).
 * Source:    docs/architecture.md#messages-and-types.  Since: 0.1 */
TRP_API void *trp_build_large(trp_builder *builder, const trp_type *type, size_t bytes);
static inline void *
trp_build_begin(trp_builder *builder, const trp_type *type, size_t bytes)
{
    if (bytes > TRP_BUILDER_BYTES) {
        return trp_build_large(builder, type, bytes);
    }
    builder->priv_chunk = builder->priv_first.bytes;
    builder->priv_used = (uint32_t)bytes;
    builder->priv_room = TRP_BUILDER_BYTES;
    builder->priv_before = 0;
    builder->priv_err = TRP_OK;
    builder->priv_type = type;
    builder->priv_more = NULL;
    return memset(builder->priv_first.bytes, 0, bytes);
}

/* Begin the payload of a message of type T and return its struct, zeroed, which stays where it is
 * until trp_build_free(). Fields of fixed size are assigned, the others are set by the functions
 * below, in any order, each once. NULL: out of memory, only where the struct alone has more than
 * TRP_BUILDER_BYTES. A builder that was used before is freed first. */
#define TRP_BUILD(builder, T) ((T *)trp_build_begin((builder), &T##_type, sizeof(T)))

/* Set a text of the struct, or of one in it, from so many bytes of UTF-8. An error is kept in the
 * builder: trp_build_err().
 *
 * Ownership: borrows text.
 * Errors:    TRP_EDATA     there is a NUL in it
 *            TRP_EMSGSIZE  the block would have more than TRP_PAYLOAD_BYTES_MAX
 *            TRP_EINVAL    the payload was taken already (TRP_BUILT)
 *            TRP_ENOMEM    out of memory
 * Thread:    owner (the creator; no lock inside).
 * Source:    docs/architecture.md#messages-and-types.  Since: 0.1 */
TRP_API void trp_build_text_n(trp_builder *builder, trp_field_text *field, const char *text,
                              size_t bytes);

/* Set a text from NUL-terminated UTF-8, as trp_build_text_n.
 *
 * Ownership: borrows text; NULL is "".
 * Errors:    as trp_build_text_n, kept in the builder
 * Thread:    owner (the creator; no lock inside).
 * Source:    docs/architecture.md#messages-and-types.  Since: 0.1 */
static inline void
trp_build_text(trp_builder *builder, trp_field_text *field, const char *text)
{
    size_t bytes = text != NULL ? strlen(text) : 0;

    if (bytes != 0 && bytes < builder->priv_room - builder->priv_used) {
        memcpy(builder->priv_chunk + builder->priv_used, text, bytes + 1);
        field->at = builder->priv_before + builder->priv_used;
        field->bytes = (uint32_t)bytes;
        builder->priv_used += (uint32_t)bytes + 1;
    } else {
        trp_build_text_n(builder, field, text, bytes);
    }
}

/* Set bytes of the struct, or of one in it.
 *
 * Ownership: borrows data.
 * Errors:    TRP_EMSGSIZE, TRP_EINVAL, TRP_ENOMEM as trp_build_text_n, kept in the builder
 * Thread:    owner (the creator; no lock inside).
 * Source:    docs/architecture.md#messages-and-types.  Since: 0.1 */
TRP_API void trp_build_bytes(trp_builder *builder, trp_field_bytes *field, const void *data,
                             size_t bytes);

/* As TRP_BUILD_ARRAY, which gives the elements their type. Return the elements, zeroed; NULL when
 * there are to be none, and on an error.
 *
 * Ownership: the result belongs to the builder, until it is freed.
 * Errors:    TRP_EMSGSIZE, TRP_EINVAL, TRP_ENOMEM as trp_build_text_n, kept in the builder
 * Thread:    owner (the creator; no lock inside).
 * Source:    docs/architecture.md#messages-and-types.  Since: 0.1 */
TRP_API void *trp_build_array(trp_builder *builder, trp_array *array, size_t element_bytes,
                              size_t count);

/* Give an array so many elements and return them, zeroed, to be filled in:
 *     chat_line *lines = TRP_BUILD_ARRAY(&b, &history->lines, count);
 * Texts and arrays in the elements are set like those of the struct. NULL: count is 0, or an error,
 * which trp_build_err() says. */
#define TRP_BUILD_ARRAY(builder, field, count)                                                     \
    ((__typeof__((field)->priv_of))trp_build_array((builder), &(field)->array,                     \
                                                   sizeof(*(field)->priv_of), (count)))

/* Return the first error of a builder, TRP_OK when there was none.
 *
 * Errors:    none
 * Thread:    owner (the creator; no lock inside).
 * Source:    docs/architecture.md#messages-and-types.  Since: 0.1 */
static inline trp_err
trp_build_err(const trp_builder *builder)
{
    return builder->priv_err;
}

/* Return the block as one piece, and its bytes; NULL and 0 after an error. Nothing is added to the
 * block afterwards. TRP_BUILT calls both.
 *
 * Ownership: borrows; the result belongs to the builder, until it is freed.
 * Errors:    TRP_ENOMEM  kept in the builder
 * Thread:    owner (the creator; no lock inside).
 * Source:    docs/architecture.md#messages-and-types.  Since: 0.1 */
TRP_API const void *trp_build_whole(trp_builder *builder, size_t *ret_bytes);
static inline const void *
trp_built(trp_builder *builder)
{
    size_t bytes;

    return builder->priv_more == NULL && builder->priv_err == TRP_OK
               ? builder->priv_first.bytes
               : trp_build_whole(builder, &bytes);
}
static inline size_t
trp_built_bytes(trp_builder *builder)
{
    size_t bytes = builder->priv_used;

    if (builder->priv_more != NULL || builder->priv_err != TRP_OK) {
        (void)trp_build_whole(builder, &bytes);
    }
    return bytes;
}

/* The three arguments type, payload and bytes of every function that takes a message, such as
 * trp_tell(), trp_reply(), trp_ask(); the same block may be told more than once. (A macro, such as
 * trp_probe_expect(), takes them one by one.) After an error of the builder the payload is too
 * short for its type: a tell is a dead letter (not-encodable), what returns an error returns
 * TRP_EINVAL. */
#define TRP_BUILT(builder) (builder)->priv_type, trp_built(builder), trp_built_bytes(builder)

/* Give back what the builder has taken from the heap. Call it once after each TRP_BUILD; what was
 * told has a copy.
 *
 * Errors:    none
 * Thread:    owner (the creator; no lock inside).
 * Source:    docs/architecture.md#messages-and-types.  Since: 0.1 */
TRP_API void trp_build_drop(trp_builder *builder);
static inline void
trp_build_free(trp_builder *builder)
{
    if (builder->priv_more != NULL) {
        trp_build_drop(builder);
    }
}

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_PAYLOAD_H */
