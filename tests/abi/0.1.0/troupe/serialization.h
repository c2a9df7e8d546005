/* troupe/serialization.h - how messages become bytes, and how the form is chosen.
 *
 * A serializer writes payloads and reads them. Built in are raw (plain structs by their field
 * tables, else the bytes as they are), json, msgpack and text, and protobuf where protobuf-c was
 * there at build time (troupe/protobuf.h). A program adds its own, with a number of its own, and
 * binds types to serializers by name: "bank.deposit", all of a protocol "bank.*", or all "*". The
 * most specific binding wins: the type's own name, then that of the nearest of its parents
 * (trp_type_extend), then the longest pattern. Messages of types bound to "none" do not leave the
 * node. Without a binding text and JSON types go as text and all others raw. The same bindings
 * stand in the configuration:
 *
 *     actor { serialization-bindings = { "bank.*=msgpack", "bank.secret=none" } }
 *
 * The receiver goes by the number in the message, so the two ends may be bound differently as long
 * as both have the serializer. Versions of a type: fields may be added at the end of its table, at
 * either end first. json, msgpack and protobuf look fields up by name (in any order, and fields may
 * go, too); raw goes by position. A reader skips fields that it does not know; fields that the
 * writer did not know are zero.
 *
 * A program's serializer can be in a shared object: an extension (troupe/extension.h) that adds it.
 */
#ifndef TROUPE_SERIALIZATION_H
#define TROUPE_SERIALIZATION_H

#include <troupe/base.h>
#include <troupe/message.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_SERIALIZER_ID_FIRST 17 /* 1 to 16 are the library's */
#define TRP_SERIALIZER_ID_MAX 63
#define TRP_SERIALIZER_NAME_BYTES_MAX 31
#define TRP_SERIALIZER_BINDINGS_MAX 256 /* of one system */

/* The output of a serializer, and its translation of refs. Valid during the call. */
typedef struct trp_wire trp_wire;

typedef struct trp_serializer {
    size_t size; /* sizeof(trp_serializer) */
    uint16_t id; /* TRP_SERIALIZER_ID_FIRST .. TRP_SERIALIZER_ID_MAX; crosses the wire */
    uint16_t zero[3];
    const char *name; /* for bindings; at most TRP_SERIALIZER_NAME_BYTES_MAX bytes */
    void *arg;        /* passed to both */
    /* Put the wire form of a payload. Any error means that it cannot be sent: a dead letter. Any
     * thread, several at once; must not block, spawn, or take a lock that is held anywhere while
     * something is spawned: arguments of a remote child are encoded while it gets its name. */
    trp_err (*encode)(void *arg, trp_wire *wire, const trp_type *type, const void *payload,
                      size_t bytes);
    /* Put the payload: of exactly type->bytes unless the type is variable. `data` comes from a
     * peer: any error means that it is invalid, and the message is dropped. As encode. */
    trp_err (*decode)(void *arg, trp_wire *wire, const trp_type *type, const void *data,
                      size_t bytes);
} trp_serializer;

/* Append to what encode or decode makes.
 *
 * Ownership: borrows data.
 * Errors:    TRP_EINVAL  wire or data is NULL
 *            TRP_ENOMEM  out of memory
 * Thread:    the one that encode or decode was called on, during that call.
 * Source:    SERIAL-07.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_wire_put(trp_wire *wire, const void *data, size_t bytes);

/* Write a ref as NUL-terminated text that the other end reads by trp_wire_ref_parse(): with the
 * address under which its node is reached, its uid and that of its node (SERIAL-11, SERIAL-12);
 * "" for TRP_REF_NONE.
 *
 * Ownership: buffer is the caller's.
 * Errors:    TRP_EINVAL    ref names no node
 *            TRP_EMSGSIZE  bytes is too small (TRP_REF_TEXT_BYTES is enough); buffer is untouched
 * Thread:    as trp_wire_put.
 * Source:    SERIAL-11, SERIAL-12.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_wire_ref_format(trp_wire *wire, trp_ref ref, char *buffer,
                                                   size_t bytes);

/* Read it: a ref of this system is local again.
 *
 * Ownership: borrows text, which need not end in NUL.
 * Errors:    TRP_EDATA   it is no such text
 *            TRP_ELIMIT  the peer has named too many other nodes
 *            TRP_ENOMEM  out of memory
 * Thread:    as trp_wire_put.
 * Source:    SERIAL-11, SERIAL-15.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_wire_ref_parse(trp_wire *wire, const char *text, size_t bytes,
                                                  trp_ref *ret_ref);

/* Add a serializer to a system. Messages that are encoded from now on may use it.
 *
 * Ownership: borrows serializer until the system is freed.
 * Errors:    TRP_EINVAL  it is incomplete, its name is empty, too long or "none", or its id is one
 *                        of the library's
 *            TRP_ELIMIT  its id is above TRP_SERIALIZER_ID_MAX
 *            TRP_EEXIST  id or name is taken
 *            TRP_ENOMEM, TRP_ECLOSED, TRP_ECONFIG as trp_serializer_bind
 * Thread:    any; takes a lock for a moment.
 * Source:    SERIAL-01, SERIAL-07, SERIAL-18.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_serializer_add(trp_system *system,
                                                  const trp_serializer *serializer);

/* Bind types to a serializer: a type by name, a protocol ("bank.*"), or all ("*"); name "none":
 * they do not travel. The same pattern again replaces what it said.
 *
 * Ownership: borrows both texts.
 * Errors:    TRP_EINVAL  pattern is empty, too long, or has another '*' than ".*" at its end
 *            TRP_ENOENT  no serializer has this name
 *            TRP_ELIMIT  TRP_SERIALIZER_BINDINGS_MAX reached
 *            TRP_ENOMEM  out of memory
 *            TRP_ECLOSED the system has stopped
 *            TRP_ECONFIG actor.serialization-bindings is wrong; the log says where
 * Thread:    any; takes a lock for a moment.
 * Source:    SERIAL-01, SERIAL-05, SERIAL-06.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_serializer_bind(trp_system *system, const char *pattern,
                                                   const char *name);

/* Return the name of the serializer that a type is bound to; NULL: it does not travel. *ret_id,
 * when not NULL, gets its number.
 *
 * Ownership: borrows; the name lives as long as the system.
 * Errors:    none
 * Thread:    any; takes a lock for a moment.
 * Source:    SERIAL-10.  Since: 0.1 */
TRP_API const char *trp_serializer_of(trp_system *system, const trp_type *type, uint16_t *ret_id);

/* Make a self-contained form of a message: bytes with the name of its type and of its serializer,
 * and with the addresses of all nodes that its refs name, for a file or another program's hands.
 * *ret_data is of trp_bytes_type.
 *
 * Ownership: borrows payload; gives *ret_data (trp_msg_free).
 * Errors:    TRP_EINVAL   an argument is NULL, or bytes do not fit the type
 *            TRP_ENOTYPE  the type does not travel, is not registered, or its serializer cannot
 *                         express it
 *            TRP_ELIMIT   it names more than 16 nodes
 *            and those of trp_serializer_bind that are not about its arguments
 * Thread:    any; takes a lock for a moment.
 * Source:    SERIAL-10, SERIAL-12.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_serialize(trp_system *system, const trp_type *type,
                                             const void *payload, size_t bytes, trp_msg **ret_data);

/* Make a message of such bytes again; the refs in it are those of this system.
 *
 * Ownership: borrows data; gives *ret_msg (trp_msg_free).
 * Errors:    TRP_EINVAL   an argument is NULL
 *            TRP_EDATA    the bytes make no sense
 *            TRP_ENOTYPE  this process has no such type, or one that never leaves its node
 *            TRP_ENOENT   this system has no such serializer
 *            and those of trp_serializer_bind that are not about its arguments
 * Thread:    any; takes a lock for a moment.
 * Source:    SERIAL-10, SERIAL-15.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_deserialize(trp_system *system, const void *data, size_t bytes,
                                               trp_msg **ret_msg);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_SERIALIZATION_H */
