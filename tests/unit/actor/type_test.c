/* type_test.c - registration of message types: numbers, wire ids, refusals. */
#include "tests/unit/unit.h"

#include <troupe/actor.h>
#include <troupe/dispatcher.h>
#include <troupe/log.h>
#include <troupe/remoting.h>
#include <troupe/router.h>

#include "actor/kernel/type.h"
#include "base/built_in_types.h"
#include "base/hash.h"

#define BANK_DEPOSIT(F, S) F(S, i64, amount) F(S, ref, receipt_to)
#define BANK_NOTE(F, S) F(S, u32, account) F(S, text32, text)
#define BANK_MESSAGES(M, P) M(P, deposit, BANK_DEPOSIT) M(P, note, BANK_NOTE)
TRP_PROTOCOL(bank, BANK_MESSAGES)

#define SHOP_ITEM(F, S) F(S, u32, number)
#define SHOP_MESSAGES(M, P) M(P, item, SHOP_ITEM)
TRP_PROTOCOL(shop, SHOP_MESSAGES)

/* A trp_protocol of one type whose descriptor can be anything. */
static trp_err
register_one(trp_type *type)
{
    static trp_protocol protocols[32]; /* borrowed until the process ends */
    static size_t used;
    trp_type *types[1] = { type };
    trp_protocol *protocol = &protocols[used++];

    protocol->name = "one";
    protocol->types = types;
    protocol->types_count = 1;
    return trp_protocol_register(protocol);
}

static void
registration_gives_numbers_and_is_idempotent(void)
{
    uint32_t number;

    UNIT_EQUAL(trp_protocol_register(&bank_protocol), TRP_OK);
    number = bank_deposit_type.number;
    UNIT_TRUE(number >= TRPI_TYPE_USER_FIRST);
    UNIT_TRUE(bank_note_type.number != number);
    UNIT_EQUAL(trp_protocol_register(&bank_protocol), TRP_OK);
    UNIT_EQUAL(bank_deposit_type.number, number);
    UNIT_TRUE(trpi_type_get(number) == &bank_deposit_type);
    UNIT_TRUE(trp_type_find("bank.deposit") == &bank_deposit_type);
    UNIT_TRUE(trp_type_find("bank.nothing") == NULL);
    UNIT_EQUAL(bank_deposit_tag, 1);
    UNIT_EQUAL(bank_deposit_type.tag, 1);
    UNIT_EQUAL(bank_deposit_type.bytes, sizeof(bank_deposit));
}

/* A wrong type is never read: not by its number, nor beyond its end. */
static void
a_message_is_read_as_what_it_is_or_not_at_all(void)
{
    trp_msg *msg = NULL;
    void *payload;

    UNIT_EQUAL(trp_protocol_register(&bank_protocol), TRP_OK);
    UNIT_EQUAL(trp_protocol_register(&shop_protocol), TRP_OK);
    UNIT_REQUIRE(trp_msg_new(&shop_item_type, sizeof(shop_item), &msg, &payload) == TRP_OK);
    ((shop_item *)payload)->number = 7;
    UNIT_TRUE(trp_msg_as(msg, &bank_deposit_type) == NULL);
    UNIT_TRUE(bank_deposit_as(msg) == NULL);
    UNIT_TRUE(trp_msg_as(msg, &shop_item_type) == payload);
    UNIT_EQUAL(shop_item_as(msg)->number, 7);
    msg->priv_type = (uint16_t)bank_note_type.number; /* says so, and is too short */
    UNIT_TRUE(trp_msg_as(msg, &bank_note_type) == NULL);
    msg->priv_type = (uint16_t)shop_item_type.number;
    trp_msg_free(msg);
}

static void
the_wire_id_is_the_hash_of_the_name(void)
{
    UNIT_EQUAL(trp_protocol_register(&bank_protocol), TRP_OK);
    UNIT_TRUE(trpi_type_wire_id(bank_note_type.number) == trpi_hash_text("bank.note"));
    UNIT_TRUE(trpi_type_find_wire(trpi_hash_text("bank.note")) == &bank_note_type);
    UNIT_TRUE(trpi_type_find_wire(trpi_hash_text("troupe.string")) == &trp_string_type);
    UNIT_TRUE(trpi_type_wire_id(TRPI_TYPE_STRING) == trpi_hash_text("troupe.string"));
    UNIT_TRUE(trpi_type_find_wire(12345) == NULL);
    UNIT_TRUE(trpi_type_get(0) == NULL);
    UNIT_TRUE(trpi_type_get(TRP_TYPES_MAX + 1) == NULL);
}

static void
a_second_copy_of_a_declaration_gets_the_same_number(void)
{
    static trp_type copy = {
        "bank.deposit", sizeof(bank_deposit), bank_deposit_tag, 0, NULL, 2, 0
    };

    UNIT_EQUAL(trp_protocol_register(&bank_protocol), TRP_OK);
    copy.fields = bank_deposit_type.fields;
    UNIT_EQUAL(register_one(&copy), TRP_OK);
    UNIT_EQUAL(copy.number, bank_deposit_type.number);
}

static void
another_shape_under_a_known_name_is_refused(void)
{
    static trp_type other = { "bank.deposit", 4, bank_deposit_tag, 0, NULL, 0, 0 };

    UNIT_EQUAL(trp_protocol_register(&bank_protocol), TRP_OK);
    UNIT_EQUAL(register_one(&other), TRP_EEXIST);
    UNIT_EQUAL(other.number, 0);
}

static void
wrong_names_are_refused(void)
{
    static char longest[TRP_TYPE_NAME_BYTES_MAX + 2];
    static const char *const wrong[] = { "", "noprotocol", ".name", "protocol.", NULL };
    static trp_type type;

    for (int i = 0; wrong[i] != NULL; i++) {
        type = (trp_type){ wrong[i], 4, 1, 0, NULL, 0, 0 };
        UNIT_EQUAL(register_one(&type), TRP_EINVAL);
    }
    memset(longest, 'x', sizeof longest - 1);
    longest[1] = '.';
    type = (trp_type){ longest, 4, 1, 0, NULL, 0, 0 };
    UNIT_EQUAL(register_one(&type), TRP_EINVAL); /* one past the limit */
    UNIT_EQUAL(trp_protocol_register(NULL), TRP_EINVAL);
}

static void
a_name_at_the_limit_is_accepted(void)
{
    static char longest[TRP_TYPE_NAME_BYTES_MAX + 1];
    static trp_type type;

    memset(longest, 'y', sizeof longest - 1);
    longest[1] = '.';
    type = (trp_type){ longest, 4, 1, 0, NULL, 0, 0 };
    UNIT_EQUAL(register_one(&type), TRP_OK);
}

static uint64_t
hash_of_two(const char *name)
{
    return strncmp(name, "clash.", 6) == 0 ? 4711 : trpi_hash_text(name);
}

static void
two_names_with_one_wire_id_are_refused(void)
{
    static trp_type one = { "clash.one", 4, 1, 0, NULL, 0, 0 };
    static trp_type two = { "clash.two", 4, 1, 0, NULL, 0, 0 };

    trpi_type_test_hash(hash_of_two);
    UNIT_EQUAL(register_one(&one), TRP_OK);
    UNIT_EQUAL(register_one(&two), TRP_ECOLLISION);
    UNIT_EQUAL(two.number, 0);
    trpi_type_test_hash(NULL);
}

static void
built_in_types_have_their_numbers_and_tags(void)
{
    UNIT_EQUAL(trp_terminated_type.number, TRPI_TYPE_TERMINATED);
    UNIT_TRUE(trpi_type_get(TRPI_TYPE_I64) == &trp_i64_type);
    UNIT_EQUAL(trp_i64_type.tag, trp_i64_tag);
    UNIT_TRUE(trp_type_find("troupe.i64") == &trp_i64_type);
}

static void
each_room_brings_its_built_in_types(void)
{
    uint32_t count = 0;

    for (const trpi_type_part *const *part = trpi_type_parts; *part != NULL; part++) {
        for (uint32_t i = 0; i < (*part)->count; i++, count++) {
            const trp_type *type = (*part)->types[i].type;

            UNIT_TRUE(trpi_type_get(type->number) == type);
            UNIT_TRUE(trp_type_find(type->name) == type);
            UNIT_TRUE(trpi_type_wire_id(type->number) == trpi_hash_text(type->name));
            UNIT_EQUAL(trpi_type_parent(type->number), (*part)->types[i].parent);
        }
    }
    UNIT_EQUAL(count, 51);
    UNIT_TRUE(trp_type_find("troupe.string") == &trp_string_type); /* one of each room */
    UNIT_TRUE(trp_type_find("troupe.log-debug") == &trp_log_debug_type);
    UNIT_TRUE(trp_type_find("troupe.terminated") == &trp_terminated_type);
    UNIT_TRUE(trp_type_find("troupe.stalled") == &trp_stalled_type);
    UNIT_TRUE(trp_type_find("troupe.get-routees") == &trp_get_routees_type);
    UNIT_TRUE(trp_type_find("troupe.quarantined") == &trp_quarantined_type);
    UNIT_EQUAL(trpi_type_parent(trp_quarantined_type.number), trp_remoting_event_type.number);
}

static void
only_accepted_protocols_pass(void)
{
    const trp_protocol *const accepts[] = { &bank_protocol, NULL };

    UNIT_EQUAL(trpi_types_accept(accepts), TRP_OK);
    UNIT_EQUAL(trp_protocol_register(&shop_protocol), TRP_OK);
    UNIT_TRUE(trpi_type_accepted(accepts, bank_note_type.number));
    UNIT_FALSE(trpi_type_accepted(accepts, shop_item_type.number));
    UNIT_FALSE(trpi_type_accepted(accepts, TRPI_TYPE_STRING));
    UNIT_TRUE(trpi_type_accepted(accepts, TRPI_TYPE_TERMINATED));
    UNIT_TRUE(trpi_type_accepted(accepts, TRPI_TYPE_ACTOR_IDENTITY));
}

UNIT_BEGIN("type")
UNIT(registration_gives_numbers_and_is_idempotent)
UNIT(a_message_is_read_as_what_it_is_or_not_at_all)
UNIT(the_wire_id_is_the_hash_of_the_name)
UNIT(a_second_copy_of_a_declaration_gets_the_same_number)
UNIT(another_shape_under_a_known_name_is_refused)
UNIT(wrong_names_are_refused)
UNIT(a_name_at_the_limit_is_accepted)
UNIT(two_names_with_one_wire_id_are_refused)
UNIT(built_in_types_have_their_numbers_and_tags)
UNIT(each_room_brings_its_built_in_types)
UNIT(only_accepted_protocols_pass)
UNIT_END
