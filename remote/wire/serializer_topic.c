/* serializer_topic.c - a message between mediators: it carries another one, which has a serializer
 * of its own, or none.
 *
 * Shape.   wire id 8, serializer 2, the mediator that sends it 9 (code, slot, generation), head
 *          bytes 4, the head, then the payload. The sender is that of the frame.
 * Must hold.
 *   serializer-topic-V1  An envelope whose carried message cannot be read here arrives without it
 *       and marked lost, so that its loss is told.
 *   serializer-topic-V2  No envelope in an envelope: decoding does not recurse.
 * Tests.   tests/unit/remote/topic_envelope_test.c
 */
#include <string.h>

#include "base/wire.h"
#include "pattern/pattern.h"
#include "remote/wire/codec.h"

enum { HEAD_BYTES = 8 + 2 + 9 + 4 };

static trp_err
topic_encode(const trp_type *type, const void *payload, size_t bytes, trpi_node_map *map,
             trpi_buffer *out)
{
    const trpi_topic_envelope *envelope = payload;
    uint8_t head[HEAD_BYTES];
    if (type != &trpi_topic_envelope_type || bytes < sizeof *envelope ||
        bytes < trpi_topic_envelope_bytes(envelope->head_bytes)) {
        return TRP_ENOTYPE;
    }
    const trp_type *inner = envelope->type == 0 ? NULL : trpi_type_get(envelope->type);
    const trpi_serializer *serializer =
        inner == NULL || trpi_type_carries(inner) || (inner->flags & TRP_TYPE_LOCAL) != 0
            ? NULL
            : trpi_serializers_for(map->serializers, inner);
    if (serializer == NULL && envelope->type != 0) { /* serializer-topic-V2 */
        return TRP_ENOTYPE;
    }
    trpi_put_u64(head, serializer == NULL ? 0 : trpi_type_wire_id(envelope->type));
    trpi_put_u16(head + 8, serializer == NULL ? 0 : serializer->id);
    trp_err err = trpi_node_map_encode(map, envelope->mediator.node, &head[10]);
    trpi_put_u32(head + 11, envelope->mediator.slot);
    trpi_put_u32(head + 15, envelope->mediator.generation);
    trpi_put_u32(head + 19, envelope->head_bytes);
    err = err != TRP_OK ? err : trpi_buffer_append(out, head, HEAD_BYTES, TRPI_BUFFER_NO_LIMIT);
    if (err == TRP_OK) {
        err = trpi_buffer_append(out, envelope + 1, envelope->head_bytes, TRPI_BUFFER_NO_LIMIT);
    }
    size_t skip = trpi_topic_envelope_bytes(envelope->head_bytes);
    return err != TRP_OK || serializer == NULL
               ? err
               : trpi_encode(serializer, inner, (const char *)payload + skip, bytes - skip, map,
                             out);
}

static trp_err
topic_decode(const trp_type *type, const uint8_t *wire, size_t bytes, const trpi_node_map *map,
             trpi_buffer *out)
{
    static const uint8_t zero[16] = { 0 };
    size_t begin = out->count;
    trpi_topic_envelope envelope;
    memset(&envelope, 0, sizeof(envelope));
    if (type != &trpi_topic_envelope_type || bytes < HEAD_BYTES ||
        trpi_node_map_decode(map, wire[10], &envelope.mediator.node) != TRP_OK) {
        return TRP_EDATA;
    }
    envelope.head_bytes = trpi_get_u32(wire + 19);
    if (envelope.head_bytes > TRPI_TOPIC_HEAD_BYTES_MAX ||
        bytes < (size_t)HEAD_BYTES + envelope.head_bytes) {
        return TRP_EDATA;
    }
    if (envelope.mediator.node != 0) { /* the empty ref is all-zero */
        envelope.mediator.slot = trpi_get_u32(wire + 11);
        envelope.mediator.generation = trpi_get_u32(wire + 15);
    }
    envelope.lost = trpi_get_u64(wire) != 0;
    size_t at = (size_t)HEAD_BYTES + envelope.head_bytes;
    size_t pad =
        trpi_topic_envelope_bytes(envelope.head_bytes) - sizeof(envelope) - envelope.head_bytes;
    trp_err err = trpi_buffer_append(out, &envelope, sizeof(envelope), TRPI_BUFFER_NO_LIMIT);
    if (err == TRP_OK) {
        err = trpi_buffer_append(out, wire + HEAD_BYTES, envelope.head_bytes, TRPI_BUFFER_NO_LIMIT);
    }
    if (err == TRP_OK) {
        err = trpi_buffer_append(out, zero, pad, TRPI_BUFFER_NO_LIMIT);
    }
    if (err != TRP_OK) {
        return err;
    }
    const trp_type *inner = trpi_type_find_wire(trpi_get_u64(wire));
    const trpi_serializer *serializer =
        trpi_serializers_get(map->serializers, trpi_get_u16(wire + 8));
    if (inner != NULL && serializer != NULL && !trpi_type_carries(inner) &&
        (inner->flags & TRP_TYPE_LOCAL) == 0 &&
        trpi_decode(serializer, inner, wire + at, bytes - at, map, out) == TRP_OK) {
        envelope.type = inner->number; /* else 0: serializer-topic-V1 */
        envelope.lost = 0;
        memcpy(out->data + begin, &envelope, sizeof(envelope));
    }
    return TRP_OK;
}

const trpi_serializer trpi_serializer_topic = { TRPI_SERIALIZER_TOPIC, "topic", topic_encode,
                                                topic_decode };
