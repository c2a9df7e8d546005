/* carried.h - the message that an envelope carries, for the serializers of envelopes: it has a
 * serializer of its own, named in the envelope by CARRIED_ID_BYTES bytes (wire id 8, serializer 2;
 * zero: none is carried). Private to remote. */
#ifndef TRPI_REMOTE_CARRIED_H
#define TRPI_REMOTE_CARRIED_H

#include "remote/wire/codec.h"

enum { TRPI_CARRIED_ID_BYTES = 10 };

/* Find how a carried message of that type number is written (0: none is carried: *ret_type is
 * NULL), and write its id. Errors: TRP_ENOTYPE (it is an envelope itself, stays on its node, or has
 * no serializer). */
trp_err trpi_carried_find(const trpi_node_map *map, uint32_t number, const trp_type **ret_type,
                          const trpi_serializer **ret_serializer,
                          uint8_t ret_id[TRPI_CARRIED_ID_BYTES]);
/* Append the head of an envelope in memory: a struct, then `bytes` bytes, padded to 16. Errors:
 * TRP_ENOMEM. */
trp_err trpi_carried_head(trpi_buffer *out, const void *head, size_t head_bytes,
                          const uint8_t *behind, size_t bytes);
/* Find type and serializer of a carried message. likely: the type, if it is that; may be NULL.
 * false: it cannot be read here. */
bool trpi_carried_read(const uint8_t id[TRPI_CARRIED_ID_BYTES], const trpi_node_map *map,
                       const trp_type *likely, const trp_type **ret_type,
                       const trpi_serializer **ret_serializer);
/* Append the carried message in memory, and return its type. NULL: it cannot be read here, and
 * nothing is appended. Does not recurse: no envelope in an envelope. */
const trp_type *trpi_carried_decode(const uint8_t id[TRPI_CARRIED_ID_BYTES], const uint8_t *wire,
                                    size_t bytes, const trpi_node_map *map, trpi_buffer *out);
/* Return the type that an encoded envelope between mediators carries, for its dead letter; `type`
 * itself, if it is none or that cannot be read here. */
const trp_type *trpi_carried_shown(const trp_type *type, const uint8_t *wire, size_t bytes);

#endif
