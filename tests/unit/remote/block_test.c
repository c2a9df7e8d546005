/* block_test.c - messages of variable length through the serializers, from one node to another. */
#include <stdlib.h>

#include <troupe/actor.h>
#include <troupe/payload.h>

#include "base/alloc.h"
#include "base/payload.h"
#include "base/wire.h"
#include "remote/wire/serializer.h"
#include "tests/unit/golden.h"
#include "tests/unit/remote/chat_messages.h"
#include "tests/unit/unit.h"

/* An earlier version of the line, without reads and at_ms, whose author has no actor. */
#define OLD_AUTHOR(F, S) F(S, text, name)
#define OLD_LINE(F, S) F(S, struct(old_author), author) F(S, text, body)
#define OLD_HISTORY(F, S) F(S, text, room) F(S, bool, whole) F(S, array(struct(old_line)), lines)
#define OLD_MESSAGES(M, P) M(P, line, OLD_LINE) M(P, history, OLD_HISTORY)
TRP_STRUCT(old, author, OLD_AUTHOR)
TRP_PROTOCOL(old, OLD_MESSAGES)

/* A type of the greatest depth, with the deepest msgpack value in its last field. */
#define DEEP_D(F, S) F(S, array(ref), refs)
#define DEEP_C(F, S) F(S, array(struct(deep_d)), d)
#define DEEP_B(F, S) F(S, array(struct(deep_c)), c)
#define DEEP_A(F, S) F(S, array(struct(deep_b)), b)
#define DEEP_MESSAGES(M, P) M(P, a, DEEP_A)
TRP_STRUCT(deep, d, DEEP_D)
TRP_STRUCT(deep, c, DEEP_C)
TRP_STRUCT(deep, b, DEEP_B)
TRP_PROTOCOL(deep, DEEP_MESSAGES)

static const trpi_serializer *const all[] = { &trpi_serializer_raw, &trpi_serializer_json,
                                              &trpi_serializer_msgpack };
enum { ALL = sizeof all / sizeof all[0] };

/* Numbers of the sender: 1 itself, 2 the receiver; the receiver's: 2 and 1. */
static trpi_node_id nodes[3];

static const trpi_node_id *
node_get(void *arg, uint32_t node)
{
    /* JSON and msgpack write addresses: as the sender sees them */
    (void)arg;
    return node >= 1 && node <= 2 ? &nodes[node] : NULL;
}
static trp_err
node_intern(void *arg, const trpi_node_id *id, uint32_t *ret_node)
{
    (void)arg;
    *ret_node = trpi_node_id_equal(id, &nodes[1]) ? 2 : 1;
    return TRP_OK;
}
static trpi_node_map
map_of(uint32_t sending, uint32_t receiving)
{
    for (uint32_t i = 1; i < 3; i++) {
        char text[80];
        (void)snprintf(text, sizeof text, "troupe.tcp://sys@10.0.0.%u:2552", i);
        UNIT_EQUAL(trpi_address_parse(text, &nodes[i].address, NULL, NULL), TRP_OK);
        nodes[i].uid = 1000 + i;
    }
    return (trpi_node_map){
        .sending = sending, .receiving = receiving, .get = node_get, .intern = node_intern
    };
}

static void
history_fill(trp_builder *b, chat_history *h)
{
    trp_build_text(b, &h->room, "lobby \xc3\xa9");
    h->whole = 1;
    chat_line *lines = TRP_BUILD_ARRAY(b, &h->lines, 2);
    for (int i = 0; i < 2; i++) {
        trp_build_text(b, &lines[i].author.name, i == 0 ? "ann" : "");
        lines[i].author.actor = (trp_ref){ 1u + (uint32_t)i, 10, 11, 0 };
        trp_build_text(b, &lines[i].body, i == 0 ? "hello" : "a \"quoted\" line\n");
        uint32_t *reads = TRP_BUILD_ARRAY(b, &lines[i].reads, (size_t)i * 2);
        if (reads != NULL) {
            reads[1] = 4000000000u;
        }
        lines[i].at_ms = INT64_MIN + i;
    }
    trp_field_text *tags = TRP_BUILD_ARRAY(b, &h->tags, 3);
    trp_build_text(b, &tags[0], "first");
    trp_build_text(b, &tags[2], "third");
    trp_build_bytes(b, &h->icon, "\0\xff\1", 3);
    trp_ref *members = TRP_BUILD_ARRAY(b, &h->members, 3);
    members[0] = (trp_ref){ 1, 20, 21, 0 };
    members[1] = (trp_ref){ 2, 30, 31, 0 };
    (void)snprintf(h->kind, sizeof h->kind, "public");
}

/* As the receiver sees it: the two nodes have changed places. */
static void
history_check(const trp_msg *msg)
{
    const chat_history *h = trp_msg_payload(msg);
    size_t count = 0, bytes = 0;
    UNIT_TEXT(trp_msg_text(msg, h->room, NULL), "lobby \xc3\xa9");
    UNIT_EQUAL(h->whole, 1);
    const chat_line *lines = TRP_MSG_ARRAY(msg, h->lines, &count);
    UNIT_REQUIRE(count == 2);
    UNIT_TEXT(trp_msg_text(msg, lines[0].author.name, NULL), "ann");
    UNIT_TEXT(trp_msg_text(msg, lines[1].author.name, NULL), "");
    UNIT_TEXT(trp_msg_text(msg, lines[1].body, NULL), "a \"quoted\" line\n");
    UNIT_TRUE(trp_ref_equal(lines[0].author.actor, (trp_ref){ 2, 10, 11, 0 }));
    UNIT_TRUE(trp_ref_equal(lines[1].author.actor, (trp_ref){ 1, 10, 11, 0 }));
    UNIT_EQUAL(lines[1].at_ms, INT64_MIN + 1);
    const uint32_t *reads = TRP_MSG_ARRAY(msg, lines[1].reads, &count);
    UNIT_TRUE(count == 2 && reads[0] == 0 && reads[1] == 4000000000u);
    const trp_field_text *tags = TRP_MSG_ARRAY(msg, h->tags, &count);
    UNIT_REQUIRE(count == 3);
    UNIT_TEXT(trp_msg_text(msg, tags[1], NULL), "");
    UNIT_TEXT(trp_msg_text(msg, tags[2], NULL), "third");
    const void *icon = trp_msg_data(msg, h->icon, &bytes);
    UNIT_TRUE(bytes == 3 && memcmp(icon, "\0\xff\1", 3) == 0);
    const trp_ref *members = TRP_MSG_ARRAY(msg, h->members, &count);
    UNIT_REQUIRE(count == 3);
    UNIT_TRUE(trp_ref_equal(members[0], (trp_ref){ 2, 20, 21, 0 }));
    UNIT_TRUE(trp_ref_equal(members[1], (trp_ref){ 1, 30, 31, 0 }));
    UNIT_TRUE(trp_ref_is_none(members[2]));
    UNIT_TEXT(h->kind, "public");
}

static trp_msg *
message_of(const trp_type *type, const trpi_buffer *payload)
{
    trp_msg *msg;
    void *place;
    UNIT_EQUAL(trp_msg_new(type, payload->count, &msg, &place), TRP_OK);
    memcpy(place, payload->data, payload->count);
    return msg;
}

static void
register_all(void)
{
    UNIT_EQUAL(trp_protocol_register(&chat_protocol), TRP_OK);
    UNIT_EQUAL(trp_protocol_register(&old_protocol), TRP_OK);
    UNIT_EQUAL(trp_protocol_register(&deep_protocol), TRP_OK);
}

/* Encode a built message as type `from`, decode it as type `to`. */
static trp_err
block_carry(const trpi_serializer *serializer, const trp_type *from, trp_builder *b,
            const trp_type *to, trpi_buffer *ret_payload)
{
    trpi_node_map out = map_of(1, 2), in = map_of(2, 1);
    trpi_buffer wire = { 0 };
    trp_err err = trpi_encode(serializer, from, trp_built(b), trp_built_bytes(b), &out, &wire);
    err =
        err != TRP_OK ? err : trpi_decode(serializer, to, wire.data, wire.count, &in, ret_payload);
    trpi_buffer_fini(&wire);
    return err;
}

/* SERIAL-02 */
static void
every_serializer_brings_back_what_varies(void)
{
    register_all();
    for (int i = 0; i < ALL; i++) {
        trp_builder b;
        trpi_buffer payload = { 0 };
        history_fill(&b, TRP_BUILD(&b, chat_history));
        UNIT_EQUAL(block_carry(all[i], &chat_history_type, &b, &chat_history_type, &payload),
                   TRP_OK);
        UNIT_EQUAL(trpi_payload_check(&chat_history_type, payload.data, payload.count), TRP_OK);
        trp_msg *msg = message_of(&chat_history_type, &payload);
        history_check(msg);
        trp_msg_free(msg);
        trpi_buffer_fini(&payload);
        trp_build_free(&b);
    }
}

static void
a_type_of_full_depth_goes_through_every_serializer(void)
{
    register_all();
    for (int i = 0; i < ALL; i++) {
        trp_builder b;
        trpi_buffer payload = { 0 };
        size_t count = 0;
        deep_a *a = TRP_BUILD(&b, deep_a);
        deep_d *d =
            TRP_BUILD_ARRAY(&b, &TRP_BUILD_ARRAY(&b, &TRP_BUILD_ARRAY(&b, &a->b, 1)->c, 1)->d, 1);
        TRP_BUILD_ARRAY(&b, &d->refs, 1)[0] = (trp_ref){ 1, 5, 6, 0 };
        UNIT_EQUAL(block_carry(all[i], &deep_a_type, &b, &deep_a_type, &payload), TRP_OK);
        trp_msg *msg = message_of(&deep_a_type, &payload);
        const deep_b *in_b = TRP_MSG_ARRAY(msg, ((const deep_a *)trp_msg_payload(msg))->b, &count);
        const deep_c *in_c = TRP_MSG_ARRAY(msg, in_b->c, &count);
        const deep_d *in_d = TRP_MSG_ARRAY(msg, in_c->d, &count);
        const trp_ref *refs = TRP_MSG_ARRAY(msg, in_d->refs, &count);
        UNIT_REQUIRE(count == 1);
        UNIT_TRUE(trp_ref_equal(refs[0], (trp_ref){ 2, 5, 6, 0 }));
        trp_msg_free(msg);
        trpi_buffer_fini(&payload);
        trp_build_free(&b);
    }
}

/* Fields at the end of a message, and of a struct in an array of it. */
static void
structs_inside_may_grow_at_either_end(void)
{
    register_all();
    for (int i = 0; i < ALL; i++) {
        trp_builder b;
        trpi_buffer payload = { 0 };
        size_t count = 0;
        history_fill(&b, TRP_BUILD(&b, chat_history));
        UNIT_EQUAL(block_carry(all[i], &chat_history_type, &b, &old_history_type, &payload),
                   TRP_OK);
        trp_build_free(&b);
        trp_msg *msg = message_of(&old_history_type, &payload);
        const old_history *old = trp_msg_payload(msg);
        const old_line *lines = TRP_MSG_ARRAY(msg, old->lines, &count);
        UNIT_REQUIRE(count == 2);
        UNIT_TEXT(trp_msg_text(msg, lines[0].author.name, NULL), "ann");
        UNIT_TEXT(trp_msg_text(msg, lines[1].body, NULL), "a \"quoted\" line\n");
        trp_msg_free(msg);
        trpi_buffer_clear(&payload);

        old_history *was = TRP_BUILD(&b, old_history);
        old_line *line = TRP_BUILD_ARRAY(&b, &was->lines, 2);
        trp_build_text(&b, &line[1].body, "old");
        UNIT_EQUAL(block_carry(all[i], &old_history_type, &b, &chat_history_type, &payload),
                   TRP_OK);
        trp_build_free(&b);
        msg = message_of(&chat_history_type, &payload);
        const chat_history *now = trp_msg_payload(msg);
        const chat_line *read = TRP_MSG_ARRAY(msg, now->lines, &count);
        UNIT_REQUIRE(count == 2);
        UNIT_TEXT(trp_msg_text(msg, read[1].body, NULL), "old");
        UNIT_TRUE(trp_ref_is_none(read[1].author.actor) && read[1].at_ms == 0);
        UNIT_TRUE(TRP_MSG_ARRAY(msg, now->members, &count) == NULL && count == 0);
        trp_msg_free(msg);
        trpi_buffer_fini(&payload);
    }
}

/* From any bytes of a stranger comes a block that passes the check, or an error. */
static void
half_a_block_on_the_wire_is_an_error_or_another_version(void)
{
    register_all();
    for (int i = 0; i < ALL; i++) {
        trpi_node_map out = map_of(1, 2), in = map_of(2, 1);
        trpi_buffer wire = { 0 }, payload = { 0 };
        trp_builder b;
        history_fill(&b, TRP_BUILD(&b, chat_history));
        UNIT_EQUAL(trpi_encode(all[i], &chat_history_type, trp_built(&b), trp_built_bytes(&b), &out,
                               &wire),
                   TRP_OK);
        trp_build_free(&b);
        for (size_t count = 0; count < wire.count; count++) {
            uint8_t *cut = malloc(count + 1); /* its own, so that a sanitizer sees what is behind */
            UNIT_REQUIRE(cut != NULL);
            memcpy(cut, wire.data, count);
            trp_err err = trpi_decode(all[i], &chat_history_type, cut, count, &in, &payload);
            UNIT_TRUE(err != TRP_OK || all[i] == &trpi_serializer_raw);
            UNIT_EQUAL(err == TRP_OK
                           ? trpi_payload_check(&chat_history_type, payload.data, payload.count)
                       : payload.count == 0 ? TRP_OK
                                            : TRP_EDATA,
                       TRP_OK);
            trpi_buffer_clear(&payload);
            free(cut);
        }
        trpi_buffer_fini(&wire);
        trpi_buffer_fini(&payload);
    }
}

static trp_err
decode_text(const trpi_serializer *serializer, const trp_type *type, const char *wire, size_t bytes)
{
    trpi_node_map in = map_of(2, 1);
    trpi_buffer payload = { 0 };
    trp_err err = trpi_decode(serializer, type, (const uint8_t *)wire, bytes, &in, &payload);
    trpi_buffer_fini(&payload);
    return err;
}

static void
what_is_not_of_its_kind_is_refused(void)
{
    static const char *const bad[] = {
        "{\"room\":5}",
        "{\"lines\":{}}",
        "{\"lines\":[[]]}",
        "{\"tags\":[1]}",
        "{\"icon\":\"AA=\"}",
        "{\"lines\":[{\"author\":[]}]}",
        "{\"members\":[5]}",
        "{\"lines\":[{\"reads\":[-1]}]}",
        "[]",
    };
    register_all();
    UNIT_EQUAL(decode_text(&trpi_serializer_json, &chat_history_type, "{\"lines\":[{}]}", 14),
               TRP_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        UNIT_EQUAL(decode_text(&trpi_serializer_json, &chat_history_type, bad[i], strlen(bad[i])),
                   TRP_EDATA);
    }
    /* a NUL inside a text */
    UNIT_EQUAL(decode_text(&trpi_serializer_raw, &chat_history_type, "\2\0\0\0a\0", 6), TRP_EDATA);
    UNIT_EQUAL(decode_text(&trpi_serializer_raw, &chat_history_type, "\2\0\0\0ab", 6), TRP_OK);
    UNIT_EQUAL(
        decode_text(&trpi_serializer_msgpack, &chat_history_type, "\x81\xa4room\xa2\x61\0", 9),
        TRP_EDATA);
    /* more elements than there are bytes left */
    UNIT_EQUAL(decode_text(&trpi_serializer_raw, &chat_history_type,
                           "\0\0\0\0\1\xff\xff\xff\xff\0\0\0\0", 13),
               TRP_EDATA);
}

/* The decoded size of a few bytes is bounded before memory is allocated for it. */
static void
an_array_on_the_wire_makes_at_most_payload_bytes_max(void)
{
    static const trp_field fields[] = { { "t", TRP_FIELD_text512, 0, NULL } };
    static const trp_type part = { "wide.part", 512, 0, 0, fields, 1, 0 };
    static const trp_field wide_fields[] = { { "parts", TRP_FIELD_ARRAY | TRP_FIELD_STRUCT, 0,
                                               &part } };
    static const trp_type wide = { "wide.all", 8, 0, TRP_TYPE_VARIABLE, wide_fields, 1, 0 };
    const uint32_t most = (TRP_PAYLOAD_BYTES_MAX - 8) / 512;
    for (uint32_t more = 0; more < 2; more++) {
        size_t bytes = 4 + 4 * (size_t)(most + more);
        uint8_t *wire = calloc(1, bytes);
        UNIT_REQUIRE(wire != NULL);
        trpi_put_u32(wire, most + more);
        UNIT_EQUAL(decode_text(&trpi_serializer_raw, &wide, (const char *)wire, bytes),
                   more == 0 ? TRP_OK : TRP_EMSGSIZE);
        free(wire);
    }
}

static void
a_block_made_wrong_by_hand_does_not_travel(void)
{
    trpi_node_map out = map_of(1, 2);
    trpi_buffer wire = { 0 };
    chat_history h;
    register_all();
    memset(&h, 0, sizeof h);
    h.room = (trp_field_text){ 4096, 5 };
    for (int i = 0; i < ALL; i++) {
        UNIT_EQUAL(trpi_encode(all[i], &chat_history_type, &h, sizeof h, &out, &wire), TRP_ENOTYPE);
        UNIT_EQUAL(trpi_encode(all[i], &chat_history_type, &h, 4, &out, &wire), TRP_ENOTYPE);
        UNIT_EQUAL(wire.count, 0);
    }
    trpi_buffer_fini(&wire);
}

/* A program's serializer may produce any bytes: they are delivered only if they are a valid block.
 */
static trp_err
make_nonsense(void *arg, trp_wire *wire, const trp_type *type, const void *data, size_t bytes)
{
    (void)arg;
    (void)type;
    return trp_wire_put(wire, data, bytes);
}
static void
what_a_serializer_of_the_programs_decodes_is_checked(void)
{
    static const trp_serializer user = { sizeof user,   17,           { 0 }, "nonsense", NULL,
                                         make_nonsense, make_nonsense };
    const trpi_serializer serializer = { .id = 17, .name = "nonsense", .user = &user };
    chat_history h;
    register_all();
    memset(&h, 0, sizeof h);
    UNIT_EQUAL(decode_text(&serializer, &chat_history_type, (const char *)&h, sizeof h), TRP_OK);
    h.lines.array = (trp_array){ 8, 1000 };
    UNIT_EQUAL(decode_text(&serializer, &chat_history_type, (const char *)&h, sizeof h), TRP_EDATA);
}

static void
golden_write(FILE *file)
{
    for (int i = 0; i < ALL; i++) {
        trpi_node_map out = map_of(1, 2);
        trpi_buffer wire = { 0 };
        trp_builder b;
        history_fill(&b, TRP_BUILD(&b, chat_history));
        UNIT_EQUAL(trpi_encode(all[i], &chat_history_type, trp_built(&b), trp_built_bytes(&b), &out,
                               &wire),
                   TRP_OK);
        (void)fprintf(file, "history-%s ", all[i]->name);
        for (size_t at = 0; at < wire.count; at++) {
            (void)fprintf(file, "%02x", wire.data[at]);
        }
        (void)fprintf(file, "\n");
        trpi_buffer_fini(&wire);
        trp_build_free(&b);
    }
}

/* The bytes that other versions wrote. */
static void
golden_payloads_are_what_is_written_and_read(void)
{
    register_all();
    char *at = unit_golden("payload-1.txt", golden_write);
    for (int i = 0; i < ALL; i++) {
        trpi_node_map in = map_of(2, 1);
        trpi_buffer wire = { 0 }, payload = { 0 };
        unsigned byte = 0;
        for (at = strchr(at, ' ') + 1; *at != '\n' && sscanf(at, "%2x", &byte) == 1; at += 2) {
            uint8_t value = (uint8_t)byte;
            UNIT_EQUAL(trpi_buffer_append(&wire, &value, 1, TRPI_BUFFER_NO_LIMIT), TRP_OK);
        }
        UNIT_EQUAL(trpi_decode(all[i], &chat_history_type, wire.data, wire.count, &in, &payload),
                   TRP_OK);
        trp_msg *msg = message_of(&chat_history_type, &payload);
        history_check(msg);
        trp_msg_free(msg);
        trpi_buffer_fini(&wire);
        trpi_buffer_fini(&payload);
    }
}

/* Every allocation may fail; nothing is left behind. */
static void
a_lack_of_memory_is_an_error_of_the_message(void)
{
    register_all();
    for (int i = 0; i < ALL; i++) {
        trp_err err = TRP_ENOMEM;
        for (long n = 0; err != TRP_OK && n < 400; n++) {
            trpi_buffer payload = { 0 };
            trp_builder b;
            history_fill(&b, TRP_BUILD(&b, chat_history));
            (void)trp_built(&b);
            trpi_alloc_fail_here_after(n);
            err = block_carry(all[i], &chat_history_type, &b, &chat_history_type, &payload);
            trpi_alloc_fail_here_after(-1);
            UNIT_TRUE(err == TRP_OK || err == TRP_ENOMEM || err == TRP_EDATA);
            trpi_buffer_fini(&payload);
            trp_build_free(&b);
        }
        UNIT_EQUAL(err, TRP_OK);
    }
}

UNIT_BEGIN("block")
UNIT(every_serializer_brings_back_what_varies)
UNIT(a_type_of_full_depth_goes_through_every_serializer)
UNIT(structs_inside_may_grow_at_either_end)
UNIT(half_a_block_on_the_wire_is_an_error_or_another_version)
UNIT(what_is_not_of_its_kind_is_refused)
UNIT(an_array_on_the_wire_makes_at_most_payload_bytes_max)
UNIT(a_block_made_wrong_by_hand_does_not_travel)
UNIT(what_a_serializer_of_the_programs_decodes_is_checked)
UNIT(golden_payloads_are_what_is_written_and_read)
UNIT(a_lack_of_memory_is_an_error_of_the_message)
UNIT_END
