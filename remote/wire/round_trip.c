/* round_trip.c - encodes and decodes a payload as if it went to another node, for
 * serialize-messages.
 *
 * Both ends are this node: refs to it are written and read as the sender's. Third nodes go through
 * the same table as in a frame.
 *
 * Tests.  tests/unit/remote/serialize_test.c
 * Sources. SYS-34, SERIAL-09.
 */
#include "pattern/pattern.h"
#include "remote/wire/codec.h"

static trp_err
round_trip(trp_system *system, const trp_type *type, const void *payload, size_t bytes,
           trpi_buffer *out)
{
    trpi_serializers *serializers = NULL;
    trpi_buffer wire = { 0 };
    trp_err err;

    if (trpi_type_carries(type)) { /* the carried message is checked by itself */
        return trpi_buffer_append(out, payload, bytes, TRPI_BUFFER_NO_LIMIT);
    }
    err = trpi_serializers_of(system, &serializers);
    if (err != TRP_OK) {
        return err;
    }
    trpi_node_map map = trpi_system_node_map(system, serializers, TRPI_NODE_SELF);
    const trpi_serializer *serializer = trpi_serializers_for(serializers, type);
    err = serializer == NULL ? TRP_ENOTYPE
                             : trpi_encode(serializer, type, payload, bytes, &map, &wire);
    err = err != TRP_OK ? err : trpi_decode(serializer, type, wire.data, wire.count, &map, out);
    trpi_buffer_fini(&wire);
    return err;
}

static const trpi_round_trip_ops ops = { round_trip, trpi_message_store, trp_deserialize };

void
trpi_remote_round_trip_offer(void)
{
    trpi_round_trip_register(&ops);
}
