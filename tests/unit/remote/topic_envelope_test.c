/* topic_envelope_test.c - a message between mediators, as it travels. */
#include "tests/unit/remote/envelopes.h"

enum { WIRE_HEAD = 23 };

static trp_type *const own_types[] = { &trpi_topic_envelope_type };
static const trp_protocol own = { .name = "pubsub", .types = own_types, .types_count = 1 };

typedef struct full {
    trpi_topic_envelope head;
    char id[16];
    carried_item item;
} full;

static void
envelope_encode(trpi_buffer *ret_wire)
{
    trpi_node_map map = map_of(&own, 1, 2);
    full f;
    memset(&f, 0, sizeof f);
    f.head.mediator = (trp_ref){ 1, 20, 21, 0 };
    f.head.type = carried_item_type.number;
    f.head.head_bytes = ID_BYTES;
    memcpy(f.id, "order", ID_BYTES);
    f.item = item_of(1);
    UNIT_TRUE(trpi_serializers_for(&serializers, &trpi_topic_envelope_type) ==
              &trpi_serializer_topic);
    UNIT_REQUIRE(trpi_serializer_topic.encode(&trpi_topic_envelope_type, &f, sizeof f, &map,
                                              ret_wire) == TRP_OK);
}

static void
check_decoded(const trpi_buffer *wire, bool carries)
{
    trpi_buffer out = { 0 };
    trpi_node_map map = map_of(&own, 2, 1);
    full f;
    UNIT_REQUIRE(trpi_serializer_topic.decode(&trpi_topic_envelope_type, wire->data, wire->count,
                                              &map, &out) == TRP_OK);
    UNIT_REQUIRE(out.count == (carries ? sizeof f : sizeof f.head + sizeof f.id));
    memcpy(&f, out.data, out.count);
    UNIT_TRUE(trp_ref_equal(f.head.mediator, (trp_ref){ 2, 20, 21, 0 }));
    UNIT_EQUAL(f.head.head_bytes, ID_BYTES);
    UNIT_EQUAL(f.head.lost, !carries);
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

/* A dead letter names what was published, also when it is encoded already. */
static void
an_envelope_shows_what_it_carries(void)
{
    trpi_buffer wire = { 0 };
    envelope_encode(&wire);
    UNIT_TRUE(trpi_carried_shown(&trpi_topic_envelope_type, wire.data, wire.count) ==
              &carried_item_type);
    UNIT_TRUE(trpi_carried_shown(&trp_string_type, wire.data, wire.count) == &trp_string_type);
    UNIT_TRUE(trpi_carried_shown(&trpi_topic_envelope_type, wire.data, TRPI_CARRIED_ID_BYTES - 1) ==
              &trpi_topic_envelope_type);
    UNIT_TRUE(trpi_carried_shown(NULL, wire.data, wire.count) == NULL);
    trpi_put_u64(wire.data, 0); /* an answer carries nothing */
    UNIT_TRUE(trpi_carried_shown(&trpi_topic_envelope_type, wire.data, wire.count) ==
              &trpi_topic_envelope_type);
    trpi_buffer_fini(&wire);
}

/* Its loss is to be told: it arrives without what it carried. */
static void
what_cannot_be_read_leaves_its_envelope(void)
{
    trpi_buffer wire = { 0 };
    envelope_encode(&wire);
    check_unreadable(&wire, 0, &trpi_topic_envelope_type, &trpi_serializer_topic, check_decoded);
    trpi_buffer_fini(&wire);
}

static void
a_cut_envelope_is_refused(void)
{
    trpi_buffer wire = { 0 }, out = { 0 };
    envelope_encode(&wire);
    trpi_node_map map = map_of(&own, 2, 1);
    check_cut(&wire, WIRE_HEAD + ID_BYTES, &trpi_topic_envelope_type, &trpi_serializer_topic, &map);
    trpi_put_u32(wire.data + 19, TRPI_TOPIC_HEAD_BYTES_MAX + 1);
    UNIT_EQUAL(
        trpi_serializer_topic.decode(&trpi_topic_envelope_type, wire.data, wire.count, &map, &out),
        TRP_EDATA);
    trpi_buffer_fini(&out);
    trpi_buffer_fini(&wire);
    trpi_serializers_fini(&serializers);
}

UNIT_BEGIN("topic_envelope")
UNIT(what_an_envelope_carries_comes_back)
UNIT(an_envelope_shows_what_it_carries)
UNIT(what_cannot_be_read_leaves_its_envelope)
UNIT(a_cut_envelope_is_refused)
UNIT_END
