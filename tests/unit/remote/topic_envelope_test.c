/* topic_envelope_test.c - a message between mediators, as it travels. */
#include "base/wire.h"
#include "pattern/pattern.h"
#include "remote/wire/carried.h"
#include "tests/unit/unit.h"

#define ENVELOPE_ITEM(F, S) F(S, i64, number) F(S, ref, owner)
#define ENVELOPE_MESSAGES(M, P) M(P, item, ENVELOPE_ITEM)
TRP_PROTOCOL(topic, ENVELOPE_MESSAGES)

enum { WIRE_HEAD = 23, ID_BYTES = 5 };

static trp_type *const own_types[] = { &trpi_topic_envelope_type };
static const trp_protocol own = { .name = "pubsub", .types = own_types, .types_count = 1 };
static trpi_serializers serializers;

static trpi_node_map
map_of(uint32_t sending, uint32_t receiving)
{
    trpi_serializers_fini(&serializers); /* of the test before; at first there is nothing */
    trpi_serializers_init(&serializers);
    UNIT_REQUIRE(trp_protocol_register(&topic_protocol) == TRP_OK);
    UNIT_REQUIRE(trp_protocol_register(&own) == TRP_OK);
    return (
        trpi_node_map){ .serializers = &serializers, .sending = sending, .receiving = receiving };
}

typedef struct full {
    trpi_topic_envelope head;
    char id[16];
    topic_item item;
} full;

static void
envelope_encode(trpi_buffer *ret_wire)
{
    trpi_node_map map = map_of(1, 2);
    full f;
    memset(&f, 0, sizeof f);
    f.head.mediator = (trp_ref){ 1, 20, 21, 0 };
    f.head.type = topic_item_type.number;
    f.head.head_bytes = ID_BYTES;
    memcpy(f.id, "order", ID_BYTES);
    f.item.number = -5;
    f.item.owner = (trp_ref){ 1, 10, 11, 0 };
    UNIT_TRUE(trpi_serializers_for(&serializers, &trpi_topic_envelope_type) ==
              &trpi_serializer_topic);
    UNIT_REQUIRE(trpi_serializer_topic.encode(&trpi_topic_envelope_type, &f, sizeof f, &map,
                                              ret_wire) == TRP_OK);
}

static void
check_decoded(const trpi_buffer *wire, bool carries)
{
    trpi_buffer out = { 0 };
    trpi_node_map map = map_of(2, 1);
    full f;
    UNIT_REQUIRE(trpi_serializer_topic.decode(&trpi_topic_envelope_type, wire->data, wire->count,
                                              &map, &out) == TRP_OK);
    UNIT_REQUIRE(out.count == (carries ? sizeof f : sizeof f.head + sizeof f.id));
    memcpy(&f, out.data, out.count);
    UNIT_TRUE(trp_ref_equal(f.head.mediator, (trp_ref){ 2, 20, 21, 0 }));
    UNIT_EQUAL(f.head.head_bytes, ID_BYTES);
    UNIT_EQUAL(f.head.lost, !carries);
    UNIT_EQUAL(memcmp(f.id, "order", ID_BYTES), 0);
    UNIT_EQUAL(f.head.type, carries ? topic_item_type.number : 0);
    if (carries) {
        UNIT_EQUAL(f.item.number, -5);
        UNIT_TRUE(trp_ref_equal(f.item.owner, (trp_ref){ 2, 10, 11, 0 }));
    }
    trpi_buffer_fini(&out);
}

static void
what_an_envelope_carries_comes_back(void)
{
    trpi_buffer wire = { 0 };
    envelope_encode(&wire);
    UNIT_EQUAL(wire.count, WIRE_HEAD + ID_BYTES + 8 + 9);
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
              &topic_item_type);
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
    uint64_t known = trpi_get_u64(wire.data);
    trpi_put_u64(wire.data, known + 1); /* a type of tomorrow */
    check_decoded(&wire, false);
    trpi_put_u64(wire.data, known);
    trpi_put_u16(wire.data + 8, 63); /* a serializer that is not there */
    check_decoded(&wire, false);
    trpi_put_u64(wire.data, trpi_type_wire_id(trpi_topic_envelope_type.number));
    trpi_put_u16(wire.data + 8, TRPI_SERIALIZER_TOPIC); /* one in another */
    check_decoded(&wire, false);
    trpi_buffer_fini(&wire);
}

static void
a_cut_envelope_is_refused(void)
{
    trpi_buffer wire = { 0 }, out = { 0 };
    envelope_encode(&wire);
    trpi_node_map map = map_of(2, 1);
    for (size_t count = 0; count < WIRE_HEAD + ID_BYTES; count++) {
        UNIT_EQUAL(
            trpi_serializer_topic.decode(&trpi_topic_envelope_type, wire.data, count, &map, &out),
            TRP_EDATA);
    }
    UNIT_EQUAL(out.count, 0);
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
