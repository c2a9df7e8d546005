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

static trpi_carrier
parts_of(const full *f, const trp_type *inner, const void *payload, size_t bytes)
{
    return (trpi_carrier){ &trpi_entity_envelope_type, &f->head, f->id, inner, payload, bytes };
}

/* One that is never made has the same wire form, and need not be made where it arrives. */
static void
an_envelope_in_parts_is_the_same_on_the_wire(void)
{
    trpi_buffer whole = { 0 }, parts = { 0 }, scratch = { 0 };
    envelope_encode(&whole);
    trpi_node_map map = map_of(&own, 1, 2);
    full f;
    memset(&f, 0, sizeof f);
    f.head.entity_type = 77;
    f.head.epoch = 1ull << 40;
    f.head.gate = (trp_ref){ 1, 20, 21, 0 };
    f.head.shard = 9;
    f.head.id_bytes = ID_BYTES;
    f.head.kind = 1;
    memcpy(f.id, "order", ID_BYTES);
    f.item = item_of(1);
    trpi_carrier what = parts_of(&f, &carried_item_type, &f.item, sizeof f.item);
    UNIT_REQUIRE(trpi_entity_encode(&what, &map, &parts) == TRP_OK);
    UNIT_EQUAL(map.third_count, 0);
    UNIT_REQUIRE(parts.count == whole.count);
    UNIT_EQUAL(memcmp(parts.data, whole.data, whole.count), 0);

    /* the sender itself makes a message of it, if it cannot go as it is */
    f.head.type = carried_item_type.number;
    UNIT_REQUIRE(trpi_decode(&trpi_serializer_entity, &trpi_entity_envelope_type, parts.data,
                             parts.count, &map, &scratch) == TRP_OK);
    UNIT_REQUIRE(scratch.count == sizeof f);
    UNIT_EQUAL(memcmp(scratch.data, &f, sizeof f), 0);
    scratch.count = 0;

    trpi_entity_envelope head;
    trpi_node_map back = map_of(&own, 2, 1);
    UNIT_REQUIRE(trpi_entity_decode(parts.data, parts.count, &back, NULL, &scratch, &head, &what) ==
                 TRP_OK);
    UNIT_EQUAL(head.epoch, 1ull << 40);
    UNIT_EQUAL(head.type, carried_item_type.number);
    UNIT_TRUE(trp_ref_equal(head.gate, (trp_ref){ 2, 20, 21, 0 }));
    UNIT_EQUAL(memcmp(what.name, "order", ID_BYTES), 0);
    UNIT_REQUIRE(what.inner == &carried_item_type && what.bytes == sizeof(carried_item));
    carried_item item;
    UNIT_TRUE(what.payload == NULL && scratch.count == sizeof item); /* it is there */
    memcpy(&item, scratch.data, sizeof item);
    UNIT_EQUAL(item.number, -5);
    for (size_t count = 0; count < WIRE_HEAD + ID_BYTES; count++) {
        UNIT_EQUAL(trpi_entity_decode(parts.data, count, &back, NULL, &scratch, &head, &what),
                   TRP_EDATA);
    }
    UNIT_EQUAL(trpi_entity_decode(parts.data, parts.count - 1, &back, NULL, &scratch, &head, &what),
               TRP_EDATA);            /* the last field is cut */
    trpi_put_u64(parts.data + 16, 1); /* a type of tomorrow: it is to arrive without its message */
    UNIT_EQUAL(trpi_entity_decode(parts.data, parts.count, &back, NULL, &scratch, &head, &what),
               TRP_EDATA);
    trpi_buffer_fini(&scratch);
    trpi_buffer_fini(&parts);
    trpi_buffer_fini(&whole);
}

static void
a_plain_message_stays_where_it_is(void)
{
    trpi_buffer wire = { 0 }, scratch = { 0 };
    trpi_node_map map = map_of(&own, 1, 2);
    trpi_entity_envelope head;
    full f = { .head = { .id_bytes = ID_BYTES }, .id = "order" };
    trpi_carrier what = parts_of(&f, &trp_bytes_type, "0123456789", 10);
    UNIT_REQUIRE(trpi_entity_encode(&what, &map, &wire) == TRP_OK);
    UNIT_EQUAL(wire.count, WIRE_HEAD + ID_BYTES + 10);
    UNIT_REQUIRE(trpi_entity_decode(wire.data, wire.count, &map, &trp_bytes_type, &scratch, &head,
                                    &what) == TRP_OK);
    UNIT_TRUE(trp_ref_is_none(head.gate));
    UNIT_TRUE(what.payload == wire.data + WIRE_HEAD + ID_BYTES && what.bytes == 10);
    UNIT_EQUAL(scratch.count, 0);
    what = parts_of(&f, &trp_i64_type, "01234567", 8);
    wire.count = 0;
    UNIT_REQUIRE(trpi_entity_encode(&what, &map, &wire) == TRP_OK);
    UNIT_EQUAL(trpi_entity_decode(wire.data, wire.count - 1, &map, &trp_bytes_type, &scratch, &head,
                                  &what),
               TRP_EDATA); /* it is not the type's size */
    what = parts_of(&f, &trpi_entity_envelope_type, &f, sizeof f);
    UNIT_EQUAL(trpi_entity_encode(&what, &map, &wire), TRP_ENOTYPE); /* serializer-entity-V2 */
    trpi_buffer_fini(&scratch);
    trpi_buffer_fini(&wire);
}

UNIT_BEGIN("envelope")
UNIT(what_an_envelope_carries_comes_back)
UNIT(what_cannot_be_read_leaves_its_envelope)
UNIT(an_envelope_in_parts_is_the_same_on_the_wire)
UNIT(a_plain_message_stays_where_it_is)
UNIT(a_cut_envelope_is_refused)
UNIT_END
