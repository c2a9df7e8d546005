/* envelope_test.c - a message for an entity, as it travels. */
#include "tests/unit/remote/envelopes.h"

TRP_PROTOCOL_DEFINE(carried, CARRIED_MESSAGES)

enum { WIRE_HEAD = 41 };

static trp_type *const own_types[] = { &trpi_entity_envelope_type };
static const trp_protocol own = { .name = "sharding", .types = own_types, .types_count = 1 };

typedef struct full {
    trpi_entity_envelope head;
    char id[16];
    carried_item item;
} full;

static void
envelope_encode(trpi_buffer *ret_wire)
{
    trpi_node_map map = map_of(&own, 1, 2);
    full f;
    memset(&f, 0, sizeof f);
    f.head.entity_type = 77;
    f.head.epoch = 1ull << 40;
    f.head.gate = (trp_ref){ 1, 20, 21, 0 };
    f.head.type = carried_item_type.number;
    f.head.shard = 9;
    f.head.id_bytes = ID_BYTES;
    f.head.kind = 1;
    memcpy(f.id, "order", ID_BYTES);
    f.item = item_of(1);
    UNIT_TRUE(trpi_serializers_for(&serializers, &trpi_entity_envelope_type) ==
              &trpi_serializer_entity);
    UNIT_REQUIRE(trpi_serializer_entity.encode(&trpi_entity_envelope_type, &f, sizeof f, &map,
                                               ret_wire) == TRP_OK);
}

static void
check_decoded(const trpi_buffer *wire, bool carries)
{
    trpi_buffer out = { 0 };
    trpi_node_map map = map_of(&own, 2, 1);
    full f;
    UNIT_REQUIRE(trpi_serializer_entity.decode(&trpi_entity_envelope_type, wire->data, wire->count,
                                               &map, &out) == TRP_OK);
    UNIT_REQUIRE(out.count == (carries ? sizeof f : sizeof f.head + sizeof f.id));
    memcpy(&f, out.data, out.count);
    UNIT_EQUAL(f.head.entity_type, 77);
    UNIT_EQUAL(f.head.epoch, 1ull << 40);
    UNIT_TRUE(trp_ref_equal(f.head.gate, (trp_ref){ 2, 20, 21, 0 }));
    UNIT_EQUAL(f.head.shard, 9);
    UNIT_EQUAL(f.head.kind, 1);
    UNIT_EQUAL(f.head.id_bytes, ID_BYTES);
    UNIT_EQUAL(memcmp(f.id, "order", ID_BYTES), 0);
    UNIT_EQUAL(f.head.type, carries ? carried_item_type.number : 0);
    if (carries) {
        UNIT_EQUAL(f.item.number, item_of(2).number);
        UNIT_TRUE(trp_ref_equal(f.item.owner, item_of(2).owner));
    }
    trpi_buffer_fini(&out);
}

static void
what_an_envelope_carries_comes_back(void)
{
    trpi_buffer wire = { 0 };
    envelope_encode(&wire);
    UNIT_EQUAL(wire.count, WIRE_HEAD + ID_BYTES + ITEM_WIRE_BYTES);
    check_decoded(&wire, true);
    trpi_buffer_fini(&wire);
}

/* Its loss is to be told: it arrives without what it carried. */
static void
what_cannot_be_read_leaves_its_envelope(void)
{
    trpi_buffer wire = { 0 };
    envelope_encode(&wire);
    check_unreadable(&wire, 16, &trpi_entity_envelope_type, &trpi_serializer_entity, check_decoded);
    trpi_buffer_fini(&wire);
}

static void
a_cut_envelope_is_refused(void)
{
    trpi_buffer wire = { 0 };
    envelope_encode(&wire);
    trpi_node_map map = map_of(&own, 2, 1);
    check_cut(&wire, WIRE_HEAD + ID_BYTES, &trpi_entity_envelope_type, &trpi_serializer_entity,
              &map);
    trpi_buffer_fini(&wire);
    trpi_serializers_fini(&serializers);
}

UNIT_BEGIN("envelope")
UNIT(what_an_envelope_carries_comes_back)
UNIT(what_cannot_be_read_leaves_its_envelope)
UNIT(a_cut_envelope_is_refused)
UNIT_END
