/* troupe/protobuf.h - messages as Protocol Buffers, by code that protoc-c has generated.
 *
 *     order.proto:  message Order { int64 amount = 1; string name = 2; string owner = 3; }
 *     #define SHOP_ORDER(F, S) F(S, i64, amount) F(S, text32, name) F(S, ref, owner)
 *     err = trp_protobuf_bind(system, &shop_order_type, &order__descriptor);
 *
 * The type stays a plain struct; its fields are those of the same name in the message: bool, int32,
 * uint32, int64, uint64 (or their sint and fixed forms), double, string for texts and for refs,
 * bytes for bytes, and repeated numbers and strings for arrays of them (troupe/payload.h).
 * So a program in another language that has the .proto reads and writes what is sent, and a type
 * may grow as protobuf allows: fields of the message that the type has not are skipped and left
 * out, those that were not sent are zero.
 */
#ifndef TROUPE_PROTOBUF_H
#define TROUPE_PROTOBUF_H

#include <troupe/base.h>
#include <troupe/message.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bind a type to the serializer "protobuf" (number 6) with this message. A ref is text:
 * troupe/path.h.
 *
 * Ownership: borrows descriptor (a ProtobufCMessageDescriptor) until the system is freed.
 * Errors:    TRP_EINVAL       an argument is NULL, the type has no field table, a field has no
 *                             counterpart of its name and kind, or the message has fields that are
 *                             messages, groups or parts of a oneof; the log says which
 *            TRP_ENOTYPE      the type is not registered
 *            TRP_EUNSUPPORTED Troupe was built without protobuf-c
 *            TRP_ELIMIT, TRP_ENOMEM, TRP_ECLOSED, TRP_ECONFIG as trp_serializer_bind
 * Thread:    any; takes a lock for a moment.
 * Source:    SERIAL-03.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_protobuf_bind(trp_system *system, const trp_type *type,
                                                 const void *descriptor);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_PROTOBUF_H */
