/* carried.c - see carried.h.
 *
 * Tests.   tests/unit/remote/envelope_test.c, tests/unit/remote/topic_envelope_test.c
 */
#include "remote/wire/carried.h"

#include <string.h>

#include "base/wire.h"
#include "pattern/pattern.h"

static bool
is_carried(const trp_type *type)
{
    return !trpi_type_carries(type) && (type->flags & TRP_TYPE_LOCAL) == 0;
}

trp_err
trpi_carried_find(const trpi_node_map *map, uint32_t number, const trp_type **ret_type,
                  const trpi_serializer **ret_serializer, uint8_t ret_id[TRPI_CARRIED_ID_BYTES])
{
    const trp_type *type = number == 0 ? NULL : trpi_type_get(number);
    const trpi_serializer *serializer =
        type == NULL || !is_carried(type) ? NULL : trpi_serializers_for(map->serializers, type);
    if (serializer == NULL && number != 0) {
        return TRP_ENOTYPE;
    }
    trpi_put_u64(ret_id, serializer == NULL ? 0 : trpi_type_wire_id(number));
    trpi_put_u16(ret_id + 8, serializer == NULL ? 0 : serializer->id);
    *ret_type = serializer == NULL ? NULL : type;
    *ret_serializer = serializer;
    return TRP_OK;
}

trp_err
trpi_carried_head(trpi_buffer *out, const void *head, size_t head_bytes, const uint8_t *behind,
                  size_t bytes)
{
    static const uint8_t zero[16] = { 0 };
    trp_err err = trpi_buffer_append(out, head, head_bytes, TRPI_BUFFER_NO_LIMIT);
    if (err == TRP_OK && bytes > 0) {
        err = trpi_buffer_append(out, behind, bytes, TRPI_BUFFER_NO_LIMIT);
    }
    return err != TRP_OK
               ? err
               : trpi_buffer_append(out, zero, (16u - bytes % 16u) % 16u, TRPI_BUFFER_NO_LIMIT);
}

bool
trpi_carried_read(const uint8_t id[TRPI_CARRIED_ID_BYTES], const trpi_node_map *map,
                  const trp_type *likely, const trp_type **ret_type,
                  const trpi_serializer **ret_serializer)
{
    uint64_t wire_id = trpi_get_u64(id);
    const trp_type *type = likely != NULL && trpi_type_wire_id(likely->number) == wire_id
                               ? likely
                               : trpi_type_find_wire(wire_id);
    *ret_type = type;
    *ret_serializer = trpi_serializers_get(map->serializers, trpi_get_u16(id + 8));
    return type != NULL && *ret_serializer != NULL && is_carried(type);
}

const trp_type *
trpi_carried_decode(const uint8_t id[TRPI_CARRIED_ID_BYTES], const uint8_t *wire, size_t bytes,
                    const trpi_node_map *map, trpi_buffer *out)
{
    size_t before = out->count;
    const trp_type *type;
    const trpi_serializer *serializer;
    if (trpi_carried_read(id, map, NULL, &type, &serializer) &&
        trpi_decode(serializer, type, wire, bytes, map, out) == TRP_OK) {
        return type;
    }
    out->count = before;
    return NULL;
}

const trp_type *
trpi_carried_shown(const trp_type *type, const uint8_t *wire, size_t bytes)
{
    const trp_type *carried =
        type == &trpi_topic_envelope_type && bytes >= TRPI_CARRIED_ID_BYTES
            ? trpi_type_find_wire(trpi_get_u64(wire)) /* serializer_topic.c: it stands first */
            : NULL;
    return carried != NULL ? carried : type;
}
