/* serializer_entity.c - a message for an entity: it carries another one, which has a serializer of
 * its own.
 *
 * Shape.   entity type 8, epoch 8, wire id 8, serializer 2, id bytes 1, kind 1, shard 4, the gate
 *          9 (code, slot, generation), the id, then the payload. The sender is that of the frame.
 * Must hold.
 *   serializer-entity-V1  An envelope whose carried message cannot be read here arrives with type
 *       0, so that its loss is told.
 *   serializer-entity-V2  No envelope in an envelope: decoding does not recurse.  (carried.c)
 * Tests.   tests/unit/remote/envelope_test.c
 */
#include <string.h>

#include "base/wire.h"
#include "pattern/pattern.h"
#include "remote/wire/carried.h"

enum { HEAD_BYTES = 8 + 8 + TRPI_CARRIED_ID_BYTES + 1 + 1 + 4 + 9 };

static trp_err
entity_encode(const trp_type *type, const void *payload, size_t bytes, trpi_node_map *map,
              trpi_buffer *out)
{
    const trpi_entity_envelope *envelope = payload;
    const trp_type *inner;
    const trpi_serializer *serializer;
    uint8_t head[HEAD_BYTES + TRPI_ENVELOPE_ID_BYTES_MAX];
    if (type != &trpi_entity_envelope_type || bytes < sizeof *envelope ||
        bytes < trpi_envelope_head_bytes(envelope->id_bytes)) {
        return TRP_ENOTYPE;
    }
    trp_err err = trpi_carried_find(map, envelope->type, &inner, &serializer, head + 16);
    trpi_put_u64(head, envelope->entity_type);
    trpi_put_u64(head + 8, envelope->epoch);
    head[26] = envelope->id_bytes;
    head[27] = envelope->kind;
    trpi_put_u32(head + 28, envelope->shard);
    err = err != TRP_OK ? err : trpi_node_map_encode(map, envelope->gate.node, &head[32]);
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
    trp_err err =
        trpi_carried_head(out, &envelope, sizeof(envelope), wire + HEAD_BYTES, envelope.id_bytes);
    const trp_type *inner =
        err == TRP_OK ? trpi_carried_decode(wire + 16, wire + at, bytes - at, map, out) : NULL;
    if (inner != NULL) {
        envelope.type = inner->number; /* else 0: serializer-entity-V1 */
        memcpy(out->data + begin, &envelope, sizeof(envelope));
    }
    return err;
}

const trpi_serializer trpi_serializer_entity = { TRPI_SERIALIZER_ENTITY, "entity", entity_encode,
                                                 entity_decode };
