/* serializer_entity.c - a message for an entity: it carries another one, which has a serializer of
 * its own.
 *
 * Shape.   entity type 8, epoch 8, wire id 8, serializer 2, id bytes 1, kind 1, shard 4, the gate
 *          9 (code, slot, generation), the id, then the payload. The sender is that of the frame.
 * Must hold.
 *   serializer-entity-V1  An envelope whose carried message cannot be read here arrives with type
 *       0, so that its loss is told.
 *   serializer-entity-V2  No envelope in an envelope: decoding does not recurse.
 * Tests.   tests/unit/remote/envelope_test.c
 */
#include <string.h>

#include "base/wire.h"
#include "pattern/pattern.h"
#include "remote/wire/codec.h"

enum { HEAD_BYTES = 8 + 8 + 8 + 2 + 1 + 1 + 4 + 9 };

static trp_err
entity_encode(const trp_type *type, const void *payload, size_t bytes, trpi_node_map *map,
              trpi_buffer *out)
{
    const trpi_entity_envelope *envelope = payload;
    uint8_t head[HEAD_BYTES + TRPI_ENVELOPE_ID_BYTES_MAX];
    if (type != &trpi_entity_envelope_type || bytes < sizeof *envelope ||
        bytes < trpi_envelope_head_bytes(envelope->id_bytes)) {
        return TRP_ENOTYPE;
    }
    const trp_type *inner = envelope->type == 0 ? NULL : trpi_type_get(envelope->type);
    const trpi_serializer *serializer =
        inner == NULL || trpi_type_carries(inner) || (inner->flags & TRP_TYPE_LOCAL) != 0
            ? NULL
            : trpi_serializers_for(map->serializers, inner);
    if (serializer == NULL && envelope->type != 0) { /* serializer-entity-V2 */
        return TRP_ENOTYPE;
    }
    trpi_put_u64(head, envelope->entity_type);
    trpi_put_u64(head + 8, envelope->epoch);
    trpi_put_u64(head + 16, serializer == NULL ? 0 : trpi_type_wire_id(envelope->type));
    trpi_put_u16(head + 24, serializer == NULL ? 0 : serializer->id);
    head[26] = envelope->id_bytes;
    head[27] = envelope->kind;
    trpi_put_u32(head + 28, envelope->shard);
    trp_err err = trpi_node_map_encode(map, envelope->gate.node, &head[32]);
    trpi_put_u32(head + 33, envelope->gate.slot);
    trpi_put_u32(head + 37, envelope->gate.generation);
    memcpy(head + HEAD_BYTES, envelope + 1, envelope->id_bytes);
    err = err != TRP_OK ? err
                        : trpi_buffer_append(out, head, (size_t)HEAD_BYTES + envelope->id_bytes,
                                             TRPI_BUFFER_NO_LIMIT);
    size_t skip = trpi_envelope_head_bytes(envelope->id_bytes);
    return err != TRP_OK || serializer == NULL
               ? err
               : trpi_encode(serializer, inner, (const char *)payload + skip, bytes - skip, map,
                             out);
}

static trp_err
entity_decode(const trp_type *type, const uint8_t *wire, size_t bytes, const trpi_node_map *map,
              trpi_buffer *out)
{
    static const uint8_t zero[16] = { 0 };
    size_t begin = out->count;
    trpi_entity_envelope envelope;
    memset(&envelope, 0, sizeof(envelope));
    if (type != &trpi_entity_envelope_type || bytes < HEAD_BYTES ||
        bytes < (size_t)HEAD_BYTES + wire[26] ||
        trpi_node_map_decode(map, wire[32], &envelope.gate.node) != TRP_OK) {
        return TRP_EDATA;
    }
    envelope.entity_type = trpi_get_u64(wire);
    envelope.epoch = trpi_get_u64(wire + 8);
    envelope.id_bytes = wire[26];
    envelope.kind = wire[27];
    envelope.shard = trpi_get_u32(wire + 28);
    if (envelope.gate.node != 0) { /* the empty ref is all-zero */
        envelope.gate.slot = trpi_get_u32(wire + 33);
        envelope.gate.generation = trpi_get_u32(wire + 37);
    }
    size_t at = (size_t)HEAD_BYTES + envelope.id_bytes;
    size_t pad = trpi_envelope_head_bytes(envelope.id_bytes) - sizeof(envelope) - envelope.id_bytes;
    trp_err err = trpi_buffer_append(out, &envelope, sizeof(envelope), TRPI_BUFFER_NO_LIMIT);
    if (err == TRP_OK) {
        err = trpi_buffer_append(out, wire + HEAD_BYTES, envelope.id_bytes, TRPI_BUFFER_NO_LIMIT);
    }
    if (err == TRP_OK) {
        err = trpi_buffer_append(out, zero, pad, TRPI_BUFFER_NO_LIMIT);
    }
    if (err != TRP_OK) {
        return err;
    }
    const trp_type *inner = trpi_type_find_wire(trpi_get_u64(wire + 16));
    const trpi_serializer *serializer =
        trpi_serializers_get(map->serializers, trpi_get_u16(wire + 24));
    if (inner != NULL && serializer != NULL && !trpi_type_carries(inner) &&
        (inner->flags & TRP_TYPE_LOCAL) == 0 &&
        trpi_decode(serializer, inner, wire + at, bytes - at, map, out) == TRP_OK) {
        envelope.type = inner->number; /* else 0: serializer-entity-V1 */
        memcpy(out->data + begin, &envelope, sizeof(envelope));
    }
    return TRP_OK;
}

const trpi_serializer trpi_serializer_entity = { TRPI_SERIALIZER_ENTITY, "entity", entity_encode,
                                                 entity_decode };
