/* serializer_parcel.c - a message that carries another one, which has a serializer of its own.
 *
 * Shape.   sender 9 (code, slot, generation), instance 8, number 8, wire id 8, serializer 2, then
 *          the payload. Wire id 0: nothing is carried.
 * Must hold.
 *   serializer-parcel-V1  A parcel arrives although its carried message cannot be read: with its
 *       number, and type 0.
 *   serializer-parcel-V2  No parcel in a parcel: decoding does not recurse.
 * Tests.   tests/unit/remote/parcel_test.c
 */
#include <string.h>

#include "base/wire.h"
#include "pattern/pattern.h"
#include "remote/wire/codec.h"

enum { HEAD_BYTES = 9 + 8 + 8 + 8 + 2 };

static trp_err
parcel_encode(const trp_type *type, const void *payload, size_t bytes, trpi_node_map *map,
              trpi_buffer *out)
{
    const trpi_parcel *parcel = payload;
    uint8_t head[HEAD_BYTES] = { 0 };
    if (type != &trpi_parcel_type || bytes < sizeof *parcel) {
        return TRP_ENOTYPE;
    }
    const trp_type *inner = trpi_type_get(parcel->type);
    const trpi_serializer *serializer = NULL;
    if (parcel->type != 0) {
        serializer = inner != NULL ? trpi_serializers_for(map->serializers, inner) : NULL;
        if (serializer == NULL || inner == &trpi_parcel_type) { /* serializer-parcel-V2 */
            return TRP_ENOTYPE;
        }
        trpi_put_u64(head + 25, trpi_type_wire_id(parcel->type));
        trpi_put_u16(head + 33, serializer->id);
    }
    trp_err err = trpi_node_map_encode(map, parcel->sender.node, &head[0]);
    trpi_put_u32(head + 1, parcel->sender.slot);
    trpi_put_u32(head + 5, parcel->sender.generation);
    trpi_put_u64(head + 9, parcel->instance);
    trpi_put_u64(head + 17, parcel->number);
    err = err != TRP_OK ? err : trpi_buffer_append(out, head, sizeof head, TRPI_BUFFER_NO_LIMIT);
    return err != TRP_OK || serializer == NULL
               ? err
               : trpi_encode(serializer, inner, parcel + 1, bytes - sizeof *parcel, map, out);
}

/* Append the carried payload and return its type; NULL: it cannot be read here, and nothing was
 * appended. */
static const trp_type *
inner_decode(const uint8_t *wire, size_t bytes, const trpi_node_map *map, trpi_buffer *out)
{
    const trp_type *type = trpi_type_find_wire(trpi_get_u64(wire + 25));
    const trpi_serializer *serializer =
        trpi_serializers_get(map->serializers, trpi_get_u16(wire + 33));
    if (type == NULL || serializer == NULL || type == &trpi_parcel_type ||
        (type->flags & TRP_TYPE_LOCAL) != 0 ||
        trpi_decode(serializer, type, wire + HEAD_BYTES, bytes - HEAD_BYTES, map, out) != TRP_OK) {
        return NULL;
    }
    return type;
}

static trp_err
parcel_decode(const trp_type *type, const uint8_t *wire, size_t bytes, const trpi_node_map *map,
              trpi_buffer *out)
{
    size_t begin = out->count;
    trpi_parcel parcel;
    memset(&parcel, 0, sizeof(parcel));
    if (type != &trpi_parcel_type || bytes < HEAD_BYTES ||
        trpi_node_map_decode(map, wire[0], &parcel.sender.node) != TRP_OK) {
        return TRP_EDATA;
    }
    if (parcel.sender.node != 0) { /* the empty ref is all-zero */
        parcel.sender.slot = trpi_get_u32(wire + 1);
        parcel.sender.generation = trpi_get_u32(wire + 5);
    }
    parcel.instance = trpi_get_u64(wire + 9);
    parcel.number = trpi_get_u64(wire + 17);
    trp_err err = trpi_buffer_append(out, &parcel, sizeof(parcel), TRPI_BUFFER_NO_LIMIT);
    if (err != TRP_OK) {
        return err;
    }
    const trp_type *inner = inner_decode(wire, bytes, map, out);
    parcel.type = inner != NULL ? inner->number : 0; /* serializer-parcel-V1 */
    memcpy(out->data + begin, &parcel, sizeof(parcel));
    return TRP_OK;
}

const trpi_serializer trpi_serializer_parcel = { TRPI_SERIALIZER_PARCEL, "parcel", parcel_encode,
                                                 parcel_decode };
