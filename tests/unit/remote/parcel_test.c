/* parcel_test.c - a message around another one, and bytes of a stranger as such. */
#include "base/wire.h"
#include "pattern/reliable.h"
#include "remote/wire/codec.h"
#include "tests/unit/unit.h"

#define PARCEL_ITEM(F, S) F(S, i64, number) F(S, ref, owner)
#define PARCEL_MESSAGES(M, P) M(P, item, PARCEL_ITEM)
TRP_PROTOCOL(parcel, PARCEL_MESSAGES)

static trpi_serializers serializers;

static trpi_node_map
map_of(uint32_t sending, uint32_t receiving)
{
    trpi_serializers_fini(&serializers); /* of the test before; at first there is nothing */
    trpi_serializers_init(&serializers);
    UNIT_REQUIRE(trp_protocol_register(&parcel_protocol) == TRP_OK);
    UNIT_REQUIRE(trp_protocol_register(&trp_reliable_proxy_protocol) == TRP_OK);
    return (
        trpi_node_map){ .serializers = &serializers, .sending = sending, .receiving = receiving };
}

typedef struct full {
    trpi_parcel head;
    parcel_item item;
} full;
_Static_assert(offsetof(full, item) == sizeof(trpi_parcel), "as it is carried");

static full
full_make(void)
{
    full f;
    memset(&f, 0, sizeof f);
    f.head.sender = (trp_ref){ 2, 20, 21, 0 };
    f.head.instance = 0x1122334455667788u;
    f.head.number = 9;
    f.head.type = parcel_item_type.number;
    f.item.number = -5;
    f.item.owner = (trp_ref){ 1, 10, 11, 0 };
    return f;
}

static void
parcel_encode(trpi_buffer *ret_wire, const char *item_serializer)
{
    trpi_node_map map = map_of(1, 2); /* registers the types */
    full f = full_make();
    UNIT_REQUIRE(trpi_serializers_bind(&serializers, "parcel.item", item_serializer, false) ==
                 TRP_OK);
    UNIT_TRUE(trpi_serializers_for(&serializers, &trpi_parcel_type) == &trpi_serializer_parcel);
    UNIT_REQUIRE(trpi_serializer_parcel.encode(&trpi_parcel_type, &f, sizeof f, &map, ret_wire) ==
                 TRP_OK);
}

/* Decoded at the other end, where the numbers of the two nodes are the other way round. */
static void
check_decoded(const trpi_buffer *wire, bool carries)
{
    trpi_buffer out = { 0 };
    trpi_node_map map = map_of(2, 1);
    UNIT_REQUIRE(trpi_serializer_parcel.decode(&trpi_parcel_type, wire->data, wire->count, &map,
                                               &out) == TRP_OK);
    UNIT_REQUIRE(out.count == (carries ? sizeof(full) : sizeof(trpi_parcel)));
    full f;
    memcpy(&f, out.data, out.count);
    UNIT_TRUE(trp_ref_equal(f.head.sender, (trp_ref){ 1, 20, 21, 0 }));
    UNIT_EQUAL(f.head.instance, 0x1122334455667788u);
    UNIT_EQUAL(f.head.number, 9);
    UNIT_EQUAL(f.head.type, carries ? parcel_item_type.number : 0);
    if (carries) {
        UNIT_EQUAL(f.item.number, -5);
        UNIT_TRUE(trp_ref_equal(f.item.owner, (trp_ref){ 2, 10, 11, 0 }));
    }
    trpi_buffer_fini(&out);
}

/* SERIAL-03: by its own serializer, refs with the codes of the same frame */
static void
what_a_parcel_carries_comes_back(void)
{
    trpi_buffer wire = { 0 };
    parcel_encode(&wire, "raw");
    UNIT_EQUAL(wire.count, 35 + 8 + 9);
    check_decoded(&wire, true);
    trpi_buffer_fini(&wire);
}

static void
what_cannot_be_read_leaves_its_number(void)
{
    trpi_buffer wire = { 0 };
    parcel_encode(&wire, "raw");
    uint64_t known = trpi_get_u64(wire.data + 25);
    trpi_put_u64(wire.data + 25, known + 1); /* a type of tomorrow */
    check_decoded(&wire, false);
    trpi_put_u64(wire.data + 25, known);
    trpi_put_u16(wire.data + 33, 63); /* a serializer that is not there */
    check_decoded(&wire, false);
    trpi_put_u16(wire.data + 33, TRPI_SERIALIZER_RAW);
    wire.count--; /* cut */
    check_decoded(&wire, false);
    wire.count++;
    trpi_put_u64(wire.data + 25, trpi_type_wire_id(trpi_parcel_type.number));
    trpi_put_u16(wire.data + 33, TRPI_SERIALIZER_PARCEL); /* one in another */
    check_decoded(&wire, false);
    trpi_put_u64(wire.data + 25, 0); /* empty */
    wire.count = 35;
    check_decoded(&wire, false);
    trpi_buffer out = { 0 };
    trpi_node_map map = map_of(2, 1);
    UNIT_EQUAL(trpi_serializer_parcel.decode(&trpi_parcel_type, wire.data, 34, &map, &out),
               TRP_EDATA);
    wire.data[0] = TRPI_CODE_THIRD; /* a node that the message does not define */
    UNIT_EQUAL(trpi_serializer_parcel.decode(&trpi_parcel_type, wire.data, 35, &map, &out),
               TRP_EDATA);
    trpi_buffer_fini(&out);
    trpi_buffer_fini(&wire);
}

static void
what_does_not_travel_does_not_in_a_parcel(void)
{
    trpi_buffer wire = { 0 };
    trpi_node_map map = map_of(1, 2); /* registers the types */
    full f = full_make();
    UNIT_EQUAL(trpi_serializers_bind(&serializers, "parcel.item", "none", false), TRP_OK);
    UNIT_EQUAL(trpi_serializer_parcel.encode(&trpi_parcel_type, &f, sizeof f, &map, &wire),
               TRP_ENOTYPE);
    f.head.type = trpi_parcel_type.number;
    UNIT_EQUAL(trpi_serializer_parcel.encode(&trpi_parcel_type, &f, sizeof f, &map, &wire),
               TRP_ENOTYPE);
    UNIT_EQUAL(trpi_serializer_parcel.encode(&trp_bytes_type, &f, sizeof f, &map, &wire),
               TRP_ENOTYPE);
    f.head.type = 0;
    UNIT_EQUAL(trpi_serializer_parcel.encode(&trpi_parcel_type, &f, sizeof f.head, &map, &wire),
               TRP_OK);
    check_decoded(&wire, false);
    trpi_buffer_fini(&wire);
}

/* Written by another serializer it would be memory that the peer made up */
static void
only_its_own_serializer_reads_a_parcel(void)
{
    trpi_buffer out = { 0 };
    trpi_node_map map = map_of(2, 1);
    full f = full_make();
    int others = 0;
    for (uint16_t id = 0; id < TRP_SERIALIZER_ID_FIRST; id++) {
        const trpi_serializer *other = trpi_serializers_get(&serializers, id);
        if (other != NULL && other != &trpi_serializer_parcel) {
            UNIT_EQUAL(
                trpi_decode(other, &trpi_parcel_type, (const uint8_t *)&f, sizeof f, &map, &out),
                TRP_EDATA);
            others++;
        }
    }
    UNIT_TRUE(others >= 4);
    UNIT_EQUAL(out.count, 0);
    trpi_buffer_fini(&out);
}

UNIT_BEGIN("parcel")
UNIT(what_a_parcel_carries_comes_back)
UNIT(what_cannot_be_read_leaves_its_number)
UNIT(what_does_not_travel_does_not_in_a_parcel)
UNIT(only_its_own_serializer_reads_a_parcel)
UNIT_END
