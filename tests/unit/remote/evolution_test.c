/* evolution_test.c - two versions of a type: an old writer and a new reader, and the reverse, also
 * where a field was removed (by name only). Pure. */
#include "remote/wire/serializer.h"
#include "tests/unit/unit.h"

typedef struct old_order {
    int64_t amount;
    char name[32];
} old_order;
typedef struct new_order {
    int64_t amount;
    char name[32];
    uint32_t priority; /* since then */
    char note[128];
    trp_ref owner;
} new_order;
typedef struct bare_order { /* a later version, without the name */
    int64_t amount;
    uint32_t priority;
} bare_order;

static const trp_field old_fields[] = {
    { "amount", TRP_FIELD_i64, offsetof(old_order, amount) },
    { "name", TRP_FIELD_text32, offsetof(old_order, name) },
};
static const trp_field new_fields[] = {
    { "amount", TRP_FIELD_i64, offsetof(new_order, amount) },
    { "name", TRP_FIELD_text32, offsetof(new_order, name) },
    { "priority", TRP_FIELD_u32, offsetof(new_order, priority) },
    { "note", TRP_FIELD_text128, offsetof(new_order, note) },
    { "owner", TRP_FIELD_ref, offsetof(new_order, owner) },
};
static const trp_field bare_fields[] = {
    { "amount", TRP_FIELD_i64, offsetof(bare_order, amount) },
    { "priority", TRP_FIELD_u32, offsetof(bare_order, priority) },
};
static const trp_type old_type = { "shop.order", sizeof(old_order), 1, 0, old_fields, 2, 0 };
static const trp_type new_type = { "shop.order", sizeof(new_order), 1, 0, new_fields, 5, 0 };
static const trp_type bare_type = { "shop.order", sizeof(bare_order), 1, 0, bare_fields, 2, 0 };

static const trpi_node_id *
node_none(void *arg, uint32_t node)
{
    (void)arg;
    (void)node;
    return NULL;
}

/* Decode as type `to` a payload that was encoded as type `from`. */
static trp_err
payload_carry(const trpi_serializer *serializer, const trp_type *from, const void *payload,
              const trp_type *to, void *ret_payload)
{
    trpi_node_map map = { .sending = 1, .receiving = 2, .get = node_none };
    trpi_buffer wire = { 0 }, out = { 0 };
    trp_err err = trpi_encode(serializer, from, payload, from->bytes, &map, &wire);
    err = err != TRP_OK ? err : trpi_decode(serializer, to, wire.data, wire.count, &map, &out);
    if (err == TRP_OK) {
        memcpy(ret_payload, out.data, to->bytes);
    }
    trpi_buffer_fini(&wire);
    trpi_buffer_fini(&out);
    return err;
}

static const trpi_serializer *const all[] = { &trpi_serializer_raw, &trpi_serializer_json,
                                              &trpi_serializer_msgpack };
enum { ALL = sizeof all / sizeof all[0] };

static void
what_an_old_writer_did_not_know_is_zero(void)
{
    for (int i = 0; i < ALL; i++) {
        const old_order was = { -7, "seven" };
        new_order is, zero = { 0 };
        memset(&is, 0xff, sizeof is);
        UNIT_EQUAL(payload_carry(all[i], &old_type, &was, &new_type, &is), TRP_OK);
        UNIT_EQUAL(is.amount, -7);
        UNIT_TEXT(is.name, "seven");
        UNIT_EQUAL(is.priority, 0);
        UNIT_EQUAL(memcmp(is.note, zero.note, sizeof is.note), 0);
        UNIT_TRUE(trp_ref_is_none(is.owner));
    }
}

static void
what_an_old_reader_does_not_know_it_skips(void)
{
    for (int i = 0; i < ALL; i++) {
        const new_order is = { -7, "seven", 3, "in haste", TRP_REF_NONE };
        old_order was;
        UNIT_EQUAL(payload_carry(all[i], &new_type, &is, &old_type, &was), TRP_OK);
        UNIT_EQUAL(was.amount, -7);
        UNIT_TEXT(was.name, "seven");
    }
}

/* Fields are looked up by name: they may go, and stand in another order. */
static void
by_name_a_field_may_go_at_either_end(void)
{
    for (int i = 1; i < ALL; i++) {
        const new_order is = { -7, "seven", 3, "in haste", TRP_REF_NONE };
        new_order back;
        bare_order bare;
        UNIT_EQUAL(payload_carry(all[i], &new_type, &is, &bare_type, &bare), TRP_OK);
        UNIT_EQUAL(bare.amount, -7);
        UNIT_EQUAL(bare.priority, 3);
        UNIT_EQUAL(payload_carry(all[i], &bare_type, &bare, &new_type, &back), TRP_OK);
        UNIT_EQUAL(back.amount, -7);
        UNIT_EQUAL(back.priority, 3);
        UNIT_TEXT(back.name, "");
    }
}

/* A field that was cut in the middle is no older version. */
static void
half_a_field_is_an_error(void)
{
    trpi_node_map map = { .sending = 1, .receiving = 2, .get = node_none };
    const old_order was = { -7, "seven" };
    trpi_buffer wire = { 0 }, out = { 0 };
    UNIT_EQUAL(trpi_encode(&trpi_serializer_raw, &old_type, &was, sizeof was, &map, &wire), TRP_OK);
    UNIT_EQUAL(wire.count, 8 + 2 + 5);
    for (size_t count = 0; count <= wire.count; count++) {
        trp_err err = trpi_decode(&trpi_serializer_raw, &old_type, wire.data, count, &map, &out);
        bool whole = count == 0 || count == 8 || count == wire.count;
        UNIT_EQUAL(err, whole ? TRP_OK : TRP_EDATA);
        UNIT_EQUAL(out.count, whole ? sizeof was : 0);
        trpi_buffer_clear(&out);
    }
    trpi_buffer_fini(&wire);
    trpi_buffer_fini(&out);
}

UNIT_BEGIN("evolution")
UNIT(what_an_old_writer_did_not_know_is_zero)
UNIT(what_an_old_reader_does_not_know_it_skips)
UNIT(by_name_a_field_may_go_at_either_end)
UNIT(half_a_field_is_an_error)
UNIT_END
