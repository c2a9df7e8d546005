/* serializer_topic.c - a message between mediators: it carries another one, which has a serializer
 * of its own, or none.
 *
 * Shape.   wire id 8, serializer 2, the mediator that sends it 9 (code, slot, generation), head
 *          bytes 4, the head, then the payload. The sender is that of the frame.
 * Must hold.
 *   serializer-topic-V1  An envelope whose carried message cannot be read here arrives without it
 *       and marked lost, so that its loss is told.
 *   serializer-topic-V2  No envelope in an envelope: decoding does not recurse.  (carried.c)
 * Tests.   tests/unit/remote/topic_envelope_test.c
 */
#include <string.h>

#include "base/wire.h"
#include "pattern/pattern.h"
#include "remote/wire/carried.h"

enum { HEAD_BYTES = TRPI_CARRIED_ID_BYTES + 9 + 4 };

static trp_err
topic_encode(const trp_type *type, const void *payload, size_t bytes, trpi_node_map *map,
             trpi_buffer *out)
{
    const trpi_topic_envelope *envelope = payload;
    const trp_type *inner;
    const trpi_serializer *serializer;
    uint8_t head[HEAD_BYTES];
    if (type != &trpi_topic_envelope_type || bytes < sizeof *envelope ||
        bytes < trpi_topic_envelope_bytes(envelope->head_bytes)) {
        return TRP_ENOTYPE;
    }
    trp_err err = trpi_carried_find(map, envelope->type, &inner, &serializer, head);
    err = err != TRP_OK ? err : trpi_node_map_encode(map, envelope->mediator.node, &head[10]);
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
    trp_err err =
        trpi_carried_head(out, &envelope, sizeof(envelope), wire + HEAD_BYTES, envelope.head_bytes);
    const trp_type *inner =
        err == TRP_OK ? trpi_carried_decode(wire, wire + at, bytes - at, map, out) : NULL;
    if (inner != NULL) {
        envelope.type = inner->number; /* else 0: serializer-topic-V1 */
        envelope.lost = 0;
        memcpy(out->data + begin, &envelope, sizeof(envelope));
    }
    return err;
}

const trpi_serializer trpi_serializer_topic = { TRPI_SERIALIZER_TOPIC, "topic", topic_encode,
                                                topic_decode };
