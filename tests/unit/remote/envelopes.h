/* envelopes.h - what the tests of envelopes share: a message that is carried, both ends of a
 * connection, and what must hold of any envelope. */
#ifndef TESTS_UNIT_REMOTE_ENVELOPES_H
#define TESTS_UNIT_REMOTE_ENVELOPES_H

#include "base/wire.h"
#include "pattern/pattern.h"
#include "remote/wire/carried.h"
#include "tests/unit/unit.h"

#define CARRIED_ITEM(F, S) F(S, i64, number) F(S, ref, owner)
#define CARRIED_MESSAGES(M, P) M(P, item, CARRIED_ITEM)
TRP_PROTOCOL_DECLARE(carried, CARRIED_MESSAGES) /* defined by envelope_test.c */

enum { ID_BYTES = 5, ITEM_WIRE_BYTES = 8 + 9 }; /* ID: "order", what stands behind the head */

static trpi_serializers serializers;

/* own: the protocol of the envelope. */
static inline trpi_node_map
map_of(const trp_protocol *own, uint32_t sending, uint32_t receiving)
{
    trpi_serializers_fini(&serializers); /* of the test before; at first there is nothing */
    trpi_serializers_init(&serializers);
    UNIT_REQUIRE(trp_protocol_register(&carried_protocol) == TRP_OK);
    UNIT_REQUIRE(trp_protocol_register(own) == TRP_OK);
    return (
        trpi_node_map){ .serializers = &serializers, .sending = sending, .receiving = receiving };
}

static inline carried_item
item_of(uint32_t node)
{
    carried_item item = { .number = -5 };
    item.owner = (trp_ref){ node, 10, 11, 0 };
    return item;
}

/* `at`: where the id of what is carried stands. */
static inline void
check_unreadable(trpi_buffer *wire, size_t at, const trp_type *envelope,
                 const trpi_serializer *serializer,
                 void (*check_decoded)(const trpi_buffer *wire, bool carries))
{
    uint64_t known = trpi_get_u64(wire->data + at);
    trpi_put_u64(wire->data + at, known + 1); /* a type of tomorrow */
    check_decoded(wire, false);
    trpi_put_u64(wire->data + at, known);
    trpi_put_u16(wire->data + at + 8, 63); /* a serializer that is not there */
    check_decoded(wire, false);
    trpi_put_u64(wire->data + at, trpi_type_wire_id(envelope->number));
    trpi_put_u16(wire->data + at + 8, serializer->id); /* one in another */
    check_decoded(wire, false);
}

/* Every piece of the first `head` bytes is refused, and leaves nothing. */
static inline void
check_cut(const trpi_buffer *wire, size_t head, const trp_type *envelope,
          const trpi_serializer *serializer, const trpi_node_map *map)
{
    trpi_buffer out = { 0 };
    for (size_t count = 0; count < head; count++) {
        UNIT_EQUAL(serializer->decode(envelope, wire->data, count, map, &out), TRP_EDATA);
    }
    UNIT_EQUAL(out.count, 0);
    trpi_buffer_fini(&out);
}

#endif
