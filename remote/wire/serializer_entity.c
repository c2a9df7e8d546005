/* serializer_entity.c - a message for an entity: it carries another one, which has a serializer of
 * its own.
 *
 * Shape.   entity type 8, epoch 8, wire id 8, serializer 2, id bytes 1, kind 1, shard 4, the gate
 *          9 (code, slot, generation), the id, then the payload. The sender is that of the frame.
 * Must hold.
 *   serializer-entity-V1  An envelope whose carried message cannot be read here arrives with type
 *       0, so that its loss is told.
 *   serializer-entity-V2  No envelope in an envelope: decoding does not recurse.  (carried.c)
 *   serializer-entity-V3  An envelope in parts has the bytes of the same one as a message.
 * Tests.   tests/unit/remote/envelope_test.c
 */
#include <string.h>

#include "base/payload.h"
#include "base/wire.h"
#include "pattern/pattern.h"
#include "remote/wire/carried.h"

enum { HEAD_BYTES = 8 + 8 + TRPI_CARRIED_ID_BYTES + 1 + 1 + 4 + 9 };

trp_err
trpi_entity_encode(const trpi_carrier *parts, trpi_node_map *map, trpi_buffer *out)
{
    const trpi_entity_envelope *envelope = parts->head;
    const trp_type *inner;
    const trpi_serializer *serializer;
    uint8_t id[TRPI_CARRIED_ID_BYTES], code = TRPI_CODE_NONE;
    size_t begin = out->count, all = (size_t)HEAD_BYTES + envelope->id_bytes;
    trp_err err = trpi_carried_find(map, parts->inner == NULL ? 0 : parts->inner->number, &inner,
                                    &serializer, id);
    bool plain = err == TRP_OK && serializer != NULL && trpi_is_plain(inner, serializer);
    err = err != TRP_OK ? err : trpi_node_map_encode(map, envelope->gate.node, &code);
    err = err != TRP_OK
              ? err
              : trpi_buffer_reserve(out, all + (plain ? parts->bytes : 0), TRPI_BUFFER_NO_LIMIT);
    if (err != TRP_OK) {
        return err;
    }
    uint8_t *head = out->data + begin;
    trpi_put_u64(head, envelope->entity_type);
    trpi_put_u64(head + 8, envelope->epoch);
    memcpy(head + 16, id, sizeof id);
    head[26] = envelope->id_bytes;
    head[27] = envelope->kind;
    trpi_put_u32(head + 28, envelope->shard);
    head[32] = code;
    trpi_put_u32(head + 33, envelope->gate.slot);
    trpi_put_u32(head + 37, envelope->gate.generation);
    memcpy(head + HEAD_BYTES, parts->name, envelope->id_bytes);
    if (plain) {
        memcpy(head + all, parts->payload, parts->bytes);
        out->count = begin + all + parts->bytes;
        return TRP_OK;
    }
    out->count = begin + all;
    err = serializer == NULL
              ? TRP_OK
              : trpi_encode(serializer, inner, parts->payload, parts->bytes, map, out);
    out->count = err == TRP_OK ? out->count : begin;
    return err;
}

static trp_err
entity_encode(const trp_type *type, const void *payload, size_t bytes, trpi_node_map *map,
              trpi_buffer *out)
{
    const trpi_entity_envelope *envelope = payload;
    if (type != &trpi_entity_envelope_type || bytes < sizeof *envelope ||
        bytes < trpi_envelope_head_bytes(envelope->id_bytes)) {
        return TRP_ENOTYPE;
    }
    size_t skip = trpi_envelope_head_bytes(envelope->id_bytes);
    trpi_carrier parts = { type,
                           envelope,
                           envelope + 1,
                           envelope->type == 0 ? NULL : trpi_type_get(envelope->type),
                           (const char *)payload + skip,
                           bytes - skip };
    return parts.inner == NULL && envelope->type != 0 ? TRP_ENOTYPE
                                                      : trpi_entity_encode(&parts, map, out);
}

/* Read the head, which stands before the id; the type of the carried message is left 0. */
static trp_err
head_decode(const uint8_t *wire, size_t bytes, const trpi_node_map *map,
            trpi_entity_envelope *ret_head)
{
    uint32_t node = 0;
    if (bytes < HEAD_BYTES || bytes < (size_t)HEAD_BYTES + wire[26] ||
        trpi_node_map_decode(map, wire[32], &node) != TRP_OK) {
        return TRP_EDATA;
    }
    *ret_head = (trpi_entity_envelope){ .entity_type = trpi_get_u64(wire),
                                        .epoch = trpi_get_u64(wire + 8),
                                        .shard = trpi_get_u32(wire + 28),
                                        .id_bytes = wire[26],
                                        .kind = wire[27] };
    if (node != 0) { /* the empty ref is all-zero */
        ret_head->gate = (trp_ref){ node, trpi_get_u32(wire + 33), trpi_get_u32(wire + 37), 0 };
    }
    return TRP_OK;
}

trp_err
trpi_entity_decode(const uint8_t *wire, size_t bytes, const trpi_node_map *map,
                   const trp_type *likely, trpi_buffer *scratch, trpi_entity_envelope *ret_head,
                   trpi_carrier *ret_parts)
{
    const trpi_serializer *serializer;
    const trp_type *inner;
    trp_err err = head_decode(wire, bytes, map, ret_head);
    if (err != TRP_OK || !trpi_carried_read(wire + 16, map, likely, &inner, &serializer)) {
        return TRP_EDATA;
    }
    size_t at = (size_t)HEAD_BYTES + ret_head->id_bytes, before = scratch->count;
    ret_head->type = inner->number;
    *ret_parts = (trpi_carrier){
        &trpi_entity_envelope_type, ret_head, wire + HEAD_BYTES, inner, wire + at, bytes - at
    };
    if (trpi_is_plain(inner, serializer)) {
        return trpi_payload_fits(inner, ret_parts->bytes) ? TRP_OK : TRP_EDATA;
    }
    err = trpi_decode(serializer, inner, wire + at, bytes - at, map, scratch);
    ret_parts->payload = NULL;
    ret_parts->bytes = scratch->count - before;
    return err;
}

static trp_err
entity_decode(const trp_type *type, const uint8_t *wire, size_t bytes, const trpi_node_map *map,
              trpi_buffer *out)
{
    size_t begin = out->count;
    trpi_entity_envelope envelope;
    if (type != &trpi_entity_envelope_type || head_decode(wire, bytes, map, &envelope) != TRP_OK) {
        return TRP_EDATA;
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
