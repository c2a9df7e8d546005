/* round_trip.c - what another node would get for a payload: for serialize-messages.
 *
 * Both ends are this node, so refs to it are written as the sender's and read as such; third nodes
 * go through the same table as in a frame.
 *
 * Tests.  tests/unit/remote/serialize_test.c
 * Sources. SYS-34, SERIAL-09.
 */
#include "pattern/pattern.h"
#include "remote/internal.h"

static trpi_serializers built_in; /* of systems without remoting; written before main() */

static const trpi_node_id *
node_get(void *arg, uint32_t node)
{
    return trpi_node_id_get(arg, node);
}

static trp_err
node_intern(void *arg, const trpi_node_id *id, uint32_t *ret_node)
{
    return trpi_node_intern(arg, id, ret_node);
}

static trp_err
round_trip(trp_system *system, void *remote, const trp_type *type, const void *payload,
           size_t bytes, trpi_buffer *out)
{
    const trpi_serializers *serializers = remote != NULL ? &((trpi_remote *)remote)->serializers
                                                         : &built_in;
    trpi_node_map map = { 0 };
    trpi_buffer wire = { 0 };
    const trpi_serializer *serializer;
    trp_err err;

    if (type == &trpi_parcel_type) { /* what it carries comes this way by itself */
        return trpi_buffer_append(out, payload, bytes, TRPI_BUFFER_NO_LIMIT);
    }
    serializer = trpi_serializers_for(serializers, type);
    if (serializer == NULL) {
        return TRP_ENOTYPE;
    }
    map.sending = TRPI_NODE_SELF;
    map.receiving = TRPI_NODE_SELF;
    map.serializers = serializers;
    map.arg = system;
    map.get = node_get;
    map.intern = node_intern;
    err = serializer->encode(type, payload, bytes, &map, &wire);
    if (err == TRP_OK) {
        err = serializer->decode(type, wire.data, wire.count, &map, out);
    }
    trpi_buffer_fini(&wire);
    return err;
}

static const trpi_round_trip_ops ops = { round_trip };

void
trpi_remote_round_trip_offer(void)
{
    trpi_serializers_init(&built_in);
    trpi_round_trip_register(&ops);
}
