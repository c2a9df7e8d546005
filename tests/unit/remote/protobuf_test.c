/* protobuf_test.c - plain structs as protobuf messages of protoc-c: encoded ones can be read by the
 * generated code, and by another version of it; refs; types that cannot be bound. */
#include <troupe/path.h>
#include <troupe/payload.h>
#include <troupe/protobuf.h>
#include <troupe/serialization.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "tests/unit/actor/stage.h"
#include "tests/unit/remote/order.pb-c.h"

#define SHOP_ORDER(F, S)                                                                           \
    F(S, i64, amount)                                                                              \
    F(S, text32, name)                                                                             \
    F(S, bool, paid)                                                                               \
    F(S, i32, shift)                                                                               \
    F(S, u32, priority) F(S, u64, number) F(S, f64, weight) F(S, ref, owner) F(S, ref, third)
#define SHOP_OLD(F, S) F(S, text32, name) F(S, i64, amount)
#define SHOP_STRANGE(F, S) F(S, i64, amount) F(S, i64, colour)
#define SHOP_KIND(F, S) F(S, i32, amount)
#define SHOP_TAGS(F, S) F(S, text32, tags)
#define SHOP_PARCEL(F, S)                                                                          \
    F(S, text, title)                                                                              \
    F(S, u32, count) F(S, array(i64), weights) F(S, bytes, picture) F(S, array(text), marks)
#define SHOP_NESTED(F, S) F(S, i64, amount) F(S, struct(shop_old), inside)
#define SHOP_MESSAGES(M, P)                                                                        \
    M(P, order, SHOP_ORDER)                                                                        \
    M(P, old, SHOP_OLD)                                                                            \
    M(P, strange, SHOP_STRANGE)                                                                    \
    M(P, kind, SHOP_KIND) M(P, tags, SHOP_TAGS) M(P, parcel, SHOP_PARCEL) M(P, nested, SHOP_NESTED)
TRP_PROTOCOL(shop, SHOP_MESSAGES)

enum { HEAD_BYTES = 12 }; /* before the payload, docs of trp_serialize */

static trp_err
order_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    return TRP_OK;
}
static const trp_behaviour plain = TRP_BEHAVIOUR_INIT("plain", char, order_receive);

static trp_system *
open_system(trp_ref *ret_ref)
{
    trp_system *system = NULL;

    UNIT_REQUIRE(trp_protocol_register(&shop_protocol) == TRP_OK);
    UNIT_REQUIRE(trp_system_new("shop", NULL, &system) == TRP_OK);
    UNIT_REQUIRE(trp_system_spawn(system, &plain, NULL, ret_ref) == TRP_OK);
    return system;
}

static void
close_system(trp_system *system)
{
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
    trp_system_free(system);
}

static shop_order
order_make(trp_system *system, trp_ref owner)
{
    shop_order order;

    memset(&order, 0, sizeof order);
    order.amount = INT64_MIN;
    (void)strcpy(order.name, "pears");
    order.paid = 1;
    order.shift = -3;
    order.priority = UINT32_MAX;
    order.number = UINT64_MAX;
    order.weight = 0.1;
    order.owner = owner;
    order.third = stage_far(system);
    return order;
}

/* SERIAL-03 SERIAL-11: there and back, and by the generated code in between */
static void
a_struct_is_a_protobuf_message_on_the_wire(void)
{
    trp_ref owner;
    trp_system *system = open_system(&owner);
    shop_order order = order_make(system, owner);
    trp_msg *data = NULL, *back = NULL;
    char text[TRP_REF_TEXT_BYTES];
    uint16_t id = 0;

    UNIT_EQUAL(trp_protobuf_bind(system, &shop_order_type, &shop__order__descriptor), TRP_OK);
    UNIT_TEXT(trp_serializer_of(system, &shop_order_type, &id), "protobuf");
    UNIT_EQUAL(id, 6);
    UNIT_REQUIRE(trp_serialize(system, &shop_order_type, &order, sizeof order, &data) == TRP_OK);
    Shop__Order *generated =
        shop__order__unpack(NULL, trp_msg_bytes(data) - HEAD_BYTES,
                            (const uint8_t *)trp_msg_payload(data) + HEAD_BYTES);
    UNIT_REQUIRE(generated != NULL);
    UNIT_EQUAL(generated->amount, INT64_MIN);
    UNIT_TEXT(generated->name, "pears");
    UNIT_TRUE(generated->paid);
    UNIT_EQUAL(generated->shift, -3);
    UNIT_EQUAL(generated->priority, UINT32_MAX);
    UNIT_EQUAL(generated->number, UINT64_MAX);
    UNIT_TRUE(generated->weight == 0.1);
    trp_ref read = TRP_REF_NONE;
    UNIT_EQUAL(trp_ref_parse(system, generated->owner, &read), TRP_OK);
    UNIT_TRUE(trp_ref_equal(read, owner));
    UNIT_EQUAL(trp_ref_format(system, order.third, TRP_REF_WITH_UID, text, sizeof text), TRP_OK);
    UNIT_TEXT(generated->third, text);
    UNIT_TEXT(generated->note, "");
    shop__order__free_unpacked(generated, NULL);
    UNIT_REQUIRE(trp_deserialize(system, trp_msg_payload(data), trp_msg_bytes(data), &back) ==
                 TRP_OK);
    UNIT_EQUAL(memcmp(trp_msg_payload(back), &order, sizeof order), 0);
    trp_msg_free(back);
    trp_msg_free(data);
    close_system(system);
}

/* SERIAL-03: The same type with the descriptor of another version, at the writer or at the reader.
 */
static void
versions_understand_each_other(void)
{
    trp_ref owner;
    trp_system *old_node = open_system(&owner), *new_node = open_system(&owner);
    const Shop__Order sent = { PROTOBUF_C_MESSAGE_INIT(&shop__order__descriptor),
                               .amount = 7,
                               .name = (char *)"pears",
                               .owner = (char *)"",
                               .third = (char *)"",
                               .note = (char *)"in haste",
                               .paid = 1 };
    uint8_t wire[128];
    shop_old old = { "plums", 5 };
    trp_msg *data = NULL, *back = NULL;

    UNIT_EQUAL(trp_protobuf_bind(old_node, &shop_old_type, &shop__old_order__descriptor), TRP_OK);
    UNIT_EQUAL(trp_protobuf_bind(new_node, &shop_old_type, &shop__order__descriptor), TRP_OK);
    /* new writer, old reader */
    UNIT_REQUIRE(trp_serialize(old_node, &shop_old_type, &old, sizeof(old), &data) == TRP_OK);
    memcpy(wire, trp_msg_payload(data), HEAD_BYTES);
    size_t bytes = HEAD_BYTES + shop__order__pack(&sent, wire + HEAD_BYTES);
    UNIT_REQUIRE(trp_deserialize(old_node, wire, bytes, &back) == TRP_OK);
    const shop_old *read = trp_msg_payload(back);
    UNIT_EQUAL(read->amount, 7);
    UNIT_TEXT(read->name, "pears");
    trp_msg_free(back);
    /* old writer, new reader */
    UNIT_REQUIRE(trp_deserialize(new_node, trp_msg_payload(data), trp_msg_bytes(data), &back) ==
                 TRP_OK);
    UNIT_EQUAL(memcmp(trp_msg_payload(back), &old, sizeof(old)), 0);
    Shop__Order *generated =
        shop__order__unpack(NULL, trp_msg_bytes(data) - HEAD_BYTES,
                            (const uint8_t *)trp_msg_payload(data) + HEAD_BYTES);
    UNIT_REQUIRE(generated != NULL);
    UNIT_EQUAL(generated->amount, 5);
    UNIT_EQUAL(generated->priority, 0);
    UNIT_TEXT(generated->owner, "");
    shop__order__free_unpacked(generated, NULL);
    trp_msg_free(back);
    trp_msg_free(data);
    close_system(old_node);
    close_system(new_node);
}

static void
parcel_check(const trp_msg *msg, uint32_t filled)
{
    const shop_parcel *parcel = trp_msg_payload(msg);
    size_t count;

    UNIT_TEXT(trp_msg_text(msg, parcel->title, NULL), filled ? "pears, a crate of them" : "");
    UNIT_EQUAL(parcel->count, filled ? 7 : 0);
    const int64_t *weights = TRP_MSG_ARRAY(msg, parcel->weights, &count);
    UNIT_REQUIRE(count == 3 * filled);
    UNIT_TRUE(!filled || weights[2] == INT64_MIN + 2);
    const trp_field_text *marks = TRP_MSG_ARRAY(msg, parcel->marks, &count);
    UNIT_REQUIRE(count == 2 * filled);
    UNIT_TRUE(!filled || strcmp(trp_msg_text(msg, marks[1], NULL), "this side up") == 0);
    UNIT_TRUE(!filled || trp_msg_text(msg, marks[0], NULL)[0] == 0);
    const void *picture = trp_msg_data(msg, parcel->picture, &count);
    UNIT_TRUE(count == 3 * filled && (!filled || memcmp(picture, "\0\1\2", 3) == 0));
}

/* Text, bytes and repeated fields, full and empty, and by the generated code in between. */
static void
what_varies_is_a_protobuf_message_too(void)
{
    trp_ref owner;
    trp_system *system = open_system(&owner);

    UNIT_EQUAL(trp_protobuf_bind(system, &shop_parcel_type, &shop__parcel__descriptor), TRP_OK);
    for (uint32_t filled = 0; filled < 2; filled++) {
        trp_msg *data = NULL, *back = NULL;
        trp_builder b;
        shop_parcel *parcel = TRP_BUILD(&b, shop_parcel);

        if (filled) {
            parcel->count = 7;
            trp_build_text(&b, &parcel->title, "pears, a crate of them");
            trp_build_bytes(&b, &parcel->picture, "\0\1\2", 3);
            int64_t *weights = TRP_BUILD_ARRAY(&b, &parcel->weights, 3);
            weights[2] = INT64_MIN + 2;
            trp_field_text *marks = TRP_BUILD_ARRAY(&b, &parcel->marks, 2);
            trp_build_text(&b, &marks[1], "this side up");
        }
        UNIT_REQUIRE(trp_serialize(system, TRP_BUILT(&b), &data) == TRP_OK);
        trp_build_free(&b);
        Shop__Parcel *generated =
            shop__parcel__unpack(NULL, trp_msg_bytes(data) - HEAD_BYTES,
                                 (const uint8_t *)trp_msg_payload(data) + HEAD_BYTES);
        UNIT_REQUIRE(generated != NULL);
        UNIT_TEXT(generated->title, filled ? "pears, a crate of them" : "");
        UNIT_EQUAL(generated->n_weights, 3 * filled);
        UNIT_EQUAL(generated->n_marks, 2 * filled);
        UNIT_EQUAL(generated->picture.len, 3 * filled);
        shop__parcel__free_unpacked(generated, NULL);
        UNIT_REQUIRE(trp_deserialize(system, trp_msg_payload(data), trp_msg_bytes(data), &back) ==
                     TRP_OK);
        parcel_check(back, filled);
        trp_msg_free(back);
        trp_msg_free(data);
    }
    /* a struct inside is not translated */
    UNIT_EQUAL(trp_protobuf_bind(system, &shop_nested_type, &shop__nested__descriptor), TRP_EINVAL);
    close_system(system);
}

static void
what_does_not_fit_a_message_is_refused(void)
{
    trp_ref owner;
    trp_system *system = open_system(&owner);
    static const uint64_t junk[32] = { 1 };
    static trp_type loose = { .name = "shop.loose", .bytes = 8 };
    shop_order order = { 0 };
    trp_msg *data = NULL;

    UNIT_EQUAL(trp_protobuf_bind(system, &shop_strange_type, &shop__order__descriptor), TRP_EINVAL);
    UNIT_EQUAL(trp_protobuf_bind(system, &shop_kind_type, &shop__order__descriptor), TRP_EINVAL);
    UNIT_EQUAL(trp_protobuf_bind(system, &shop_tags_type, &shop__order__descriptor), TRP_EINVAL);
    UNIT_EQUAL(trp_protobuf_bind(system, &shop_old_type, &shop__nested__descriptor), TRP_EINVAL);
    UNIT_EQUAL(trp_protobuf_bind(system, &shop_old_type, &shop__choice__descriptor), TRP_EINVAL);
    UNIT_EQUAL(trp_protobuf_bind(system, &shop_old_type, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_protobuf_bind(system, &shop_old_type, junk), TRP_EINVAL);
    UNIT_EQUAL(trp_protobuf_bind(system, &trp_bytes_type, &shop__order__descriptor), TRP_EINVAL);
    UNIT_EQUAL(trp_protobuf_bind(system, &loose, &shop__order__descriptor), TRP_EINVAL);
    UNIT_EQUAL(trp_serializer_bind(system, "shop.order", "protobuf"), TRP_OK); /* without one */
    UNIT_EQUAL(trp_serialize(system, &shop_order_type, &order, sizeof order, &data), TRP_ENOTYPE);
    close_system(system);
}

/* Cut anywhere, or another bit anywhere: a message that fits, or an error. */
static void
bytes_of_a_stranger_are_an_error_or_a_message(void)
{
    trp_ref owner;
    trp_system *system = open_system(&owner);
    shop_order order = order_make(system, owner);
    trp_msg *data = NULL, *back = NULL;

    UNIT_EQUAL(trp_protobuf_bind(system, &shop_order_type, &shop__order__descriptor), TRP_OK);
    UNIT_REQUIRE(trp_serialize(system, &shop_order_type, &order, sizeof order, &data) == TRP_OK);
    size_t bytes = trp_msg_bytes(data);
    for (size_t at = HEAD_BYTES; at < 2 * bytes; at++) {
        size_t count = at < bytes ? at : bytes;
        uint8_t *exact = trpi_alloc(count);
        memcpy(exact, trp_msg_payload(data), count);
        if (at >= bytes + HEAD_BYTES) {
            exact[at - bytes] ^= (uint8_t)(1u << (at % 8));
        }
        if (trp_deserialize(system, exact, count, &back) == TRP_OK) {
            UNIT_EQUAL(trp_msg_bytes(back), sizeof(shop_order));
            trp_msg_free(back);
        }
        trpi_free(exact);
    }
    trp_msg_free(data);
    close_system(system);
}

UNIT_BEGIN("protobuf")
UNIT(a_struct_is_a_protobuf_message_on_the_wire)
UNIT(versions_understand_each_other)
UNIT(what_varies_is_a_protobuf_message_too)
UNIT(what_does_not_fit_a_message_is_refused)
UNIT(bytes_of_a_stranger_are_an_error_or_a_message)
UNIT_END
