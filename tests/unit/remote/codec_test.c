/* codec_test.c - bodies, serializers, bindings, and the golden files of wire version 1. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/wire.h"
#include "remote/wire/codec.h"
#include "remote/association/credit.h"
#include "remote/wire/deployment.h"
#include "tests/unit/golden.h"
#include "tests/unit/remote/frames.h"
#include "tests/unit/unit.h"

#define GOLDEN_NUMBERS(F, S)                                                                       \
    F(S, bool, yes) F(S, i32, i32) F(S, u32, u32) F(S, i64, i64) F(S, u64, u64) F(S, f64, f64)
#define GOLDEN_NAMES(F, S)                                                                         \
    F(S, text32, name) F(S, ref, self) F(S, ref, there) F(S, ref, third) F(S, ref, nobody)
#define GOLDEN_MESSAGES(M, P) M(P, numbers, GOLDEN_NUMBERS) M(P, names, GOLDEN_NAMES)
TRP_PROTOCOL(golden, GOLDEN_MESSAGES)

static golden_names
names_make(void)
{
    golden_names names;
    memset(&names, 0, sizeof names);
    (void)strcpy(names.name, "hello");
    names.self = (trp_ref){ 1, 10, 11, 0 };
    names.there = (trp_ref){ 2, 20, 21, 0 };
    names.third = (trp_ref){ 3, 30, 31, 0 };
    return names;
}

/* Encode from node 1 to node 2, decode as node 2 sees it (its own number is 1, the sender's 2). */
static void
there_and_back(const trpi_serializer *serializer, const trp_type *type, const void *payload,
               size_t bytes, trpi_buffer *ret_payload)
{
    trpi_buffer frames = { 0 };
    trpi_node_map out = map_of(1, 2);
    trpi_message message = message_of(type, payload, bytes);
    UNIT_REQUIRE(trpi_message_encode(&frames, serializer, &out, 4096, &message) == TRP_OK);
    trpi_frame frame;
    trpi_message back;
    trpi_node_map in = map_of(2, 1);
    trpi_frame_header_decode(frames.data, &frame);
    UNIT_EQUAL(frame.bytes + 8, frames.count);
    UNIT_REQUIRE(trpi_message_decode(&frame, &in, &back) == TRP_OK);
    UNIT_EQUAL(back.to_slot, message.to_slot);
    UNIT_EQUAL(back.to_generation, message.to_generation);
    UNIT_EQUAL(back.wire_id, message.wire_id);
    UNIT_EQUAL(back.sender.node, 2);
    UNIT_EQUAL(back.sender.slot, 5);
    UNIT_EQUAL(back.serializer, serializer->id);
    UNIT_EQUAL(serializer->decode(type, back.payload, back.payload_bytes, &in, ret_payload),
               TRP_OK);
    trpi_buffer_fini(&frames);
}

static void
check_names(const golden_names *back)
{
    UNIT_TEXT(back->name, "hello");
    UNIT_TRUE(trp_ref_equal(back->self, (trp_ref){ 2, 10, 11, 0 }));
    UNIT_TRUE(trp_ref_equal(back->there, (trp_ref){ 1, 20, 21, 0 }));
    UNIT_TRUE(trp_ref_equal(back->third, (trp_ref){ 3, 30, 31, 0 }));
    UNIT_TRUE(trp_ref_is_none(back->nobody));
}

/* SERIAL-11 SERIAL-12 REMOTE-11, SYS-10 */
static void
refs_in_payloads_mean_the_same_actor_at_the_other_end(void)
{
    nodes_make();
    golden_names names = names_make();
    trpi_buffer out = { 0 };
    there_and_back(&trpi_serializer_raw, &golden_names_type, &names, sizeof names, &out);
    UNIT_REQUIRE(out.count == sizeof names);
    check_names((const golden_names *)(const void *)out.data);
    trpi_buffer_fini(&out);
}

static void
numbers_make(golden_numbers *numbers)
{
    memset(numbers, 0xee, sizeof *numbers); /* padding too */
    numbers->yes = 1;
    numbers->i32 = -5;
    numbers->u32 = 4000000000u;
    numbers->i64 = INT64_MIN;
    numbers->u64 = UINT64_MAX;
    numbers->f64 = 0.1;
}

static bool
numbers_equal(const void *data)
{
    const golden_numbers *n = data;
    return n->yes == 1 && n->i32 == -5 && n->u32 == 4000000000u && n->i64 == INT64_MIN &&
           n->u64 == UINT64_MAX && n->f64 == 0.1;
}

/* SERIAL-01 SERIAL-07 */
static void
raw_and_json_bring_back_every_kind_of_field(void)
{
    nodes_make();
    golden_numbers numbers;
    trpi_buffer out = { 0 };
    numbers_make(&numbers);
    there_and_back(&trpi_serializer_raw, &golden_numbers_type, &numbers, sizeof numbers, &out);
    UNIT_TRUE(out.count == sizeof numbers && numbers_equal(out.data));
    trpi_buffer_clear(&out);
    there_and_back(&trpi_serializer_json, &golden_numbers_type, &numbers, sizeof numbers, &out);
    UNIT_TRUE(out.count == sizeof numbers && numbers_equal(out.data));
    trpi_buffer_fini(&out);
}

/* SERIAL-15 */
static void
a_ref_in_json_carries_its_node_as_text(void)
{
    nodes_make();
    golden_names names = names_make();
    trpi_buffer wire = { 0 };
    trpi_node_map out = map_of(1, 2);
    UNIT_EQUAL(trpi_serializer_json.encode(&golden_names_type, &names, sizeof names, &out, &wire),
               TRP_OK);
    UNIT_EQUAL(trpi_buffer_append(&wire, "", 1, TRPI_BUFFER_NO_LIMIT), TRP_OK);
    UNIT_TRUE(strstr((const char *)wire.data, "troupe.tcp://sys@10.0.0.3:2552") != NULL);
    UNIT_TRUE(strstr((const char *)wire.data, "\"1003\"") != NULL);
    trpi_buffer payload = { 0 };
    UNIT_EQUAL(
        trpi_serializer_json.decode(&golden_names_type, wire.data, wire.count - 1, &out, &payload),
        TRP_OK);
    const golden_names *back = (const golden_names *)(const void *)payload.data;
    UNIT_EQUAL(back->third.node, 3);
    trpi_buffer_fini(&wire);
    trpi_buffer_fini(&payload);
}

/* Nothing after a text without a NUL is read, and no number is taken for another one. */
static void
json_keeps_to_its_fields(void)
{
    static const trp_field fields[] = { { "text", TRP_FIELD_text32, 0 } };
    static const trp_field number[] = { { "n", TRP_FIELD_i64, 0 } };
    static const char *const texts[] = { "{\"n\":\"9223372036854775807\"}",
                                         "{\"n\":\"-9223372036854775808\"}",
                                         "{\"n\":\"9223372036854775808\"}",
                                         "{\"n\":\"-9223372036854775809\"}",
                                         "{\"n\":\"99999999999999999999\"}" };
    const trp_type full = {
        .name = "codec.full", .bytes = 32, .fields = fields, .fields_count = 1
    };
    const trp_type n = { .name = "codec.n", .bytes = 8, .fields = number, .fields_count = 1 };
    trpi_node_map map = map_of(1, 2);
    trpi_buffer wire = { 0 }, payload = { 0 };
    char *text = malloc(32); /* its own, so that a sanitizer sees what is behind it */
    UNIT_REQUIRE(text != NULL);
    memset(text, 'x', 32);
    UNIT_EQUAL(trpi_serializer_json.encode(&full, text, 32, &map, &wire), TRP_EDATA);
    text[31] = '\0';
    UNIT_EQUAL(trpi_serializer_json.encode(&full, text, 32, &map, &wire), TRP_OK);
    UNIT_EQUAL(trpi_serializer_json.decode(&full, wire.data, wire.count, &map, &payload), TRP_OK);
    UNIT_TRUE(memcmp(payload.data, text, 32) == 0);
    trpi_buffer_clear(&wire);
    text[3] = (char)0xff; /* no UTF-8 */
    UNIT_EQUAL(trpi_serializer_json.encode(&full, text, 32, &map, &wire), TRP_EDATA);
    free(text);
    for (unsigned i = 0; i < 5; i++) {
        trpi_buffer_clear(&payload);
        UNIT_EQUAL(trpi_serializer_json.decode(&n, (const uint8_t *)texts[i], strlen(texts[i]),
                                               &map, &payload),
                   i < 2 ? TRP_OK : TRP_EDATA);
    }
    trpi_buffer_fini(&wire);
    trpi_buffer_fini(&payload);
}

/* A value that is encoded reads back equal; any other is refused, at both ends. */
static void
json_gives_back_what_it_was_given_or_refuses(void)
{
    static const trp_field fields[] = { { "f", TRP_FIELD_f64, 0 } };
    static const double given[] = { 0.1 + 0.2, -0.0, 1.0 / 3, 5e-324, 1e300 };
    static const char *const refused[] = { "{\"f\":null}", "{\"f\":1e999}", "{\"f\":\"1\"}" };
    static const uint8_t no_text[] = { '"', 0xff, '"' };
    const trp_type f = { .name = "codec.f", .bytes = 8, .fields = fields, .fields_count = 1 };
    trpi_node_map map = map_of(1, 2);
    trpi_buffer wire = { 0 }, payload = { 0 };
    double number = (double)NAN;
    UNIT_EQUAL(trpi_serializer_json.encode(&f, &number, 8, &map, &wire), TRP_EDATA);
    number = -(double)INFINITY;
    UNIT_EQUAL(trpi_serializer_json.encode(&f, &number, 8, &map, &wire), TRP_EDATA);
    UNIT_EQUAL(wire.count, 0);
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
        trpi_buffer_clear(&wire);
        trpi_buffer_clear(&payload);
        UNIT_EQUAL(trpi_serializer_json.encode(&f, &given[i], 8, &map, &wire), TRP_OK);
        UNIT_EQUAL(trpi_serializer_json.decode(&f, wire.data, wire.count, &map, &payload), TRP_OK);
        UNIT_TRUE(memcmp(payload.data, &given[i], 8) == 0);
    }
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        UNIT_EQUAL(trpi_serializer_json.decode(&f, (const uint8_t *)refused[i], strlen(refused[i]),
                                               &map, &payload),
                   TRP_EDATA);
    }
    UNIT_EQUAL(trpi_serializer_json.encode(&trp_json_type, no_text, 3, &map, &wire), TRP_EDATA);
    UNIT_EQUAL(trpi_serializer_json.decode(&trp_json_type, no_text, 3, &map, &payload), TRP_EDATA);
    trpi_buffer_fini(&wire);
    trpi_buffer_fini(&payload);
}

/* SERIAL-02 */
static void
text_and_opaque_bytes_travel_as_they_are(void)
{
    nodes_make();
    trpi_buffer out = { 0 };
    there_and_back(&trpi_serializer_text, &trp_string_type, "abc", 3, &out);
    there_and_back(&trpi_serializer_raw, &trp_bytes_type, "\0\1\2", 3, &out);
    UNIT_TRUE(out.count == 6 && memcmp(out.data, "abc\0\1\2", 6) == 0);
    trpi_buffer_fini(&out);
}

/* REMOTE-43 REMOTE-66, REMOTE-44: at the limit and one past it; the buffer is as before */
static void
a_message_too_large_is_refused_alone(void)
{
    static uint8_t payload[4096];
    trpi_buffer frames = { 0 };
    trpi_node_map map = map_of(1, 2);
    nodes_make();
    trpi_message message = message_of(&trp_bytes_type, payload, 1000 - 24);
    UNIT_EQUAL(trpi_message_encode(&frames, &trpi_serializer_raw, &map, 1000, &message), TRP_OK);
    size_t before = frames.count;
    message.payload_bytes++;
    UNIT_EQUAL(trpi_message_encode(&frames, &trpi_serializer_raw, &map, 1000, &message),
               TRP_EMSGSIZE);
    UNIT_EQUAL(frames.count, before);
    trpi_buffer_fini(&frames);
}

/* the limit of third nodes, and one past it */
static void
a_message_may_name_16_third_nodes(void)
{
    trpi_node_map map = map_of(1, 2);
    uint8_t code = 0;
    for (uint32_t i = 0; i < TRPI_MAP_NODES_MAX; i++) {
        UNIT_EQUAL(trpi_node_map_encode(&map, 3 + i, &code), TRP_OK);
        UNIT_EQUAL(code, TRPI_CODE_THIRD + i);
    }
    UNIT_EQUAL(trpi_node_map_encode(&map, 3, &code), TRP_OK);
    UNIT_EQUAL(trpi_node_map_encode(&map, 99, &code), TRP_ELIMIT);
}

/* SERIAL-05 SERIAL-06 */
static void
the_most_specific_binding_wins_and_none_keeps_a_type_at_home(void)
{
    static trpi_serializers s;
    trpi_serializers_init(&s);
    UNIT_TRUE(trpi_serializers_for(&s, &golden_numbers_type) == &trpi_serializer_raw);
    UNIT_TRUE(trpi_serializers_for(&s, &trp_string_type) == &trpi_serializer_text);
    UNIT_EQUAL(trpi_serializers_bind(&s, "golden.*", "json", false), TRP_OK);
    UNIT_TRUE(trpi_serializers_for(&s, &golden_numbers_type) == &trpi_serializer_json);
    UNIT_EQUAL(trpi_serializers_bind(&s, "golden.numbers", "none", false), TRP_OK);
    UNIT_TRUE(trpi_serializers_for(&s, &golden_numbers_type) == NULL);
    UNIT_TRUE(trpi_serializers_for(&s, &golden_names_type) == &trpi_serializer_json);
    UNIT_EQUAL(trpi_serializers_bind(&s, "golden.names", "thrift", false), TRP_ENOENT);
    UNIT_EQUAL(trpi_serializers_bind(&s, "gol*den", "json", false), TRP_EINVAL);
    UNIT_EQUAL(trpi_serializers_bind(&s, "", "json", false), TRP_EINVAL);
    char name[16];
    for (uint32_t i = s.bindings_count; i < TRP_SERIALIZER_BINDINGS_MAX; i++) {
        (void)snprintf(name, sizeof name, "p.t%u", i);
        UNIT_EQUAL(trpi_serializers_bind(&s, name, "raw", false), TRP_OK);
    }
    UNIT_EQUAL(trpi_serializers_bind(&s, "one.more", "raw", false), TRP_ELIMIT);
    UNIT_EQUAL(trpi_serializers_bind(&s, "golden.*", "raw", false), TRP_OK); /* has its place */
    trpi_serializers_fini(&s);
}

/* SERIAL-07 */
static void
serializers_of_the_user_need_a_free_number_and_name(void)
{
    static trpi_serializers s;
    trpi_serializer mine = trpi_serializer_raw;
    trpi_serializers_init(&s);
    mine.name = "mine";
    UNIT_EQUAL(trpi_serializers_add(&s, &mine), TRP_EINVAL); /* 1 is ours */
    mine.id = TRPI_SERIALIZER_OWN_FIRST;
    UNIT_EQUAL(trpi_serializers_add(&s, &mine), TRP_OK);
    trpi_serializer again = mine;
    UNIT_EQUAL(trpi_serializers_add(&s, &again), TRP_EEXIST);
    again.id = 40;
    UNIT_EQUAL(trpi_serializers_add(&s, &again), TRP_EEXIST); /* the name */
    again.name = "other";
    again.id = TRPI_SERIALIZERS_MAX - 1;
    UNIT_EQUAL(trpi_serializers_add(&s, &again), TRP_OK);
    again.id = TRPI_SERIALIZERS_MAX;
    again.name = "third";
    UNIT_EQUAL(trpi_serializers_add(&s, &again), TRP_ELIMIT);
    UNIT_EQUAL(trpi_serializers_bind(&s, "golden.*", "mine", false), TRP_OK);
    UNIT_EQUAL(trpi_serializers_for(&s, &golden_names_type)->id, mine.id);
    trpi_serializers_fini(&s);
}

/* SERIAL-08: serializer-S1, codec-C1: bytes of a stranger */
static void
no_bytes_make_the_decoders_read_or_write_too_far(void)
{
    nodes_make();
    uint64_t seed = 42;
    trpi_buffer out = { 0 };
    for (int run = 0; run < 20000; run++) {
        /* exact blocks, so that the sanitizer sees a step beyond */
        uint8_t *bytes = trpi_alloc(200);
        for (int i = 0; i < 200; i++) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            bytes[i] = run % 3 == 0 ? (uint8_t)(seed % 4) : (uint8_t)seed;
        }
        trpi_frame frame = { (uint32_t)(seed % 201), run & 1 ? TRPI_FRAME_USER : TRPI_FRAME_SELECT,
                             (uint8_t)(seed >> 9), 1, bytes };
        uint8_t *exact = trpi_alloc(frame.bytes + 1);
        memcpy(exact, bytes, frame.bytes);
        frame.body = exact;
        trpi_message message;
        trpi_node_map map = map_of(2, 1);
        if (trpi_message_decode(&frame, &map, &message) == TRP_OK) {
            trpi_buffer_clear(&out);
            trp_err err = trpi_serializer_raw.decode(&golden_names_type, message.payload,
                                                     message.payload_bytes, &map, &out);
            UNIT_TRUE(err == TRP_EDATA || out.count == sizeof(golden_names));
            trpi_buffer_clear(&out);
            (void)trpi_serializer_json.decode(&golden_names_type, message.payload,
                                              message.payload_bytes, &map, &out);
        }
        trpi_manifest manifest;
        trpi_handshake handshake;
        trpi_system_message system;
        (void)trpi_manifest_decode(&frame, &manifest);
        (void)trpi_handshake_decode(&frame, &handshake);
        (void)trpi_system_frame_decode(&frame, &system);
        trpi_free(exact);
        trpi_free(bytes);
    }
    trpi_buffer_fini(&out);
}

static trpi_handshake
handshake_make(void)
{
    trpi_handshake handshake;
    memset(&handshake, 0, sizeof handshake);
    handshake.from = nodes[1];
    handshake.from.uid = 0xfedcba9876543210u;
    handshake.to = nodes[2].address;
    handshake.to_uid = 7;
    handshake.frame_bytes_max = 262144;
    handshake.features = 0; /* absent then */
    (void)strcpy(handshake.reason, "because");
    return handshake;
}

static void
a_handshake_comes_back_and_unknown_keys_are_skipped(void)
{
    nodes_make();
    trpi_handshake handshake = handshake_make(), back;
    trpi_buffer out = { 0 };
    trpi_frame frame;
    UNIT_EQUAL(trpi_handshake_append(&out, TRPI_FRAME_HANDSHAKE_REQUEST, &handshake), TRP_OK);
    trpi_frame_header_decode(out.data, &frame);
    UNIT_EQUAL(trpi_handshake_decode(&frame, &back), TRP_OK);
    UNIT_EQUAL(back.features, 0);
    UNIT_TRUE(trpi_node_id_equal(&back.from, &handshake.from));
    UNIT_TRUE(trpi_address_equal(&back.to, &handshake.to));
    UNIT_EQUAL(back.to_uid, 7);
    UNIT_TEXT(back.reason, "because");
    UNIT_EQUAL(out.data[8], 0x86); /* a map of six; make it seven with a key of tomorrow */
    out.data[8] = 0x87;
    UNIT_EQUAL(trpi_buffer_append(&out, "\xa3new\x93\x01\x02\x03", 8, TRPI_BUFFER_NO_LIMIT),
               TRP_OK);
    trpi_frame_header_decode(out.data, &frame);
    frame.bytes += 8;
    UNIT_EQUAL(trpi_handshake_decode(&frame, &back), TRP_OK);
    UNIT_TRUE(trpi_node_id_equal(&back.from, &handshake.from));
    frame.bytes = TRPI_HANDSHAKE_BYTES_MAX + 1;
    UNIT_EQUAL(trpi_handshake_decode(&frame, &back), TRP_EMSGSIZE);
    trpi_buffer_fini(&out);
}

/* ---- many in one frame ----------------------------------------------------------------------- */

static void
payloads_that_share_a_frame_come_back_one_by_one(void)
{
    nodes_make();
    trpi_buffer out = { 0 };
    trpi_node_map map = map_of(1, 2), back = map_of(2, 1);
    trpi_message message = message_of(&trp_string_type, NULL, 0), rest;
    static const char *const texts[] = { "one", "", "three" };
    UNIT_EQUAL(trpi_buffer_append(&out, "before", 6, TRPI_BUFFER_NO_LIMIT), TRP_OK);
    UNIT_EQUAL(trpi_many_begin(&out, &message, TRPI_CODE_SENDING), TRP_OK);
    for (int i = 0; i < 3; i++) {
        /* as it is, or through its serializer: the same */
        UNIT_EQUAL(trpi_many_append(&out, 6, i == 1 ? NULL : &trpi_serializer_text, &map,
                                    &trp_string_type, texts[i], strlen(texts[i])),
                   TRP_OK);
    }
    trpi_frame frame;
    trpi_frame_header_decode(out.data + 6, &frame);
    UNIT_EQUAL(frame.bytes, out.count - 6 - TRPI_FRAME_HEADER_BYTES);
    UNIT_EQUAL(trpi_message_decode(&frame, &back, &rest), TRP_OK);
    UNIT_EQUAL(rest.sender.node, 2);
    UNIT_EQUAL(rest.to_slot, message.to_slot);
    const uint8_t *payload = NULL;
    size_t bytes = 0;
    for (int i = 0; i < 3; i++) {
        UNIT_TRUE(trpi_many_next(&rest, &payload, &bytes));
        UNIT_EQUAL(bytes, strlen(texts[i]));
        UNIT_EQUAL(memcmp(payload, texts[i], bytes), 0);
    }
    UNIT_EQUAL(rest.payload_bytes, 0);
    UNIT_TRUE(!trpi_many_next(&rest, &payload, &bytes));
    /* cut anywhere, nothing beyond the body is read or told */
    for (uint32_t cut = 0; cut < frame.bytes; cut++) {
        trpi_frame shorter = frame;
        uint8_t *exact = trpi_alloc(cut + 1);
        memcpy(exact, frame.body, cut);
        shorter.body = exact;
        shorter.bytes = cut;
        size_t told = 0;
        if (trpi_message_decode(&shorter, &back, &rest) == TRP_OK) {
            while (trpi_many_next(&rest, &payload, &bytes)) {
                UNIT_TRUE(payload + bytes <= exact + cut);
                told++;
            }
            UNIT_TRUE(told < 3);
        }
        trpi_free(exact);
    }
    frame.flags |= TRPI_MESSAGE_HAS_NODES; /* there is no section in it */
    UNIT_EQUAL(trpi_message_decode(&frame, &back, &rest), TRP_EDATA);
    trpi_buffer_fini(&out);
}

static void
what_does_not_fit_a_shared_frame_leaves_it_as_it_was(void)
{
    nodes_make();
    trpi_buffer out = { 0 };
    trpi_node_map map = map_of(1, 2);
    trpi_message message = message_of(&trp_bytes_type, NULL, 0);
    static const uint8_t big[TRPI_MANY_BYTES_MAX] = { 0 };
    size_t room = TRPI_MANY_BYTES_MAX - TRPI_FRAME_HEADER_BYTES - TRPI_USER_FIXED_BYTES -
                  TRPI_MANY_RECORD_BYTES;
    UNIT_EQUAL(trpi_many_begin(&out, &message, TRPI_CODE_SENDING), TRP_OK);
    size_t before = out.count;
    UNIT_EQUAL(trpi_many_append(&out, 0, NULL, &map, &trp_bytes_type, big, room + 1), TRP_EMSGSIZE);
    golden_names names = names_make(); /* names a third node */
    UNIT_EQUAL(trpi_many_append(&out, 0, &trpi_serializer_raw, &map, &golden_names_type, &names,
                                sizeof names),
               TRP_ELIMIT);
    UNIT_EQUAL(out.count, before);
    UNIT_EQUAL(trpi_many_append(&out, 0, NULL, &map, &trp_bytes_type, big, room), TRP_OK);
    UNIT_EQUAL(trpi_many_append(&out, 0, NULL, &map, &trp_bytes_type, big, 0), TRP_EMSGSIZE);
    trpi_buffer_fini(&out);
}

static void
features_are_told_in_the_handshake(void)
{
    nodes_make();
    trpi_buffer out = { 0 };
    trpi_frame frame;
    trpi_handshake handshake = handshake_make(), back;
    handshake.features = TRPI_FEATURE_MANY | 0x80000000u; /* and one of a later version */
    UNIT_EQUAL(trpi_handshake_append(&out, TRPI_FRAME_HANDSHAKE_RESPONSE, &handshake), TRP_OK);
    trpi_frame_header_decode(out.data, &frame);
    UNIT_EQUAL(trpi_handshake_decode(&frame, &back), TRP_OK);
    UNIT_EQUAL(back.features, handshake.features);
    trpi_buffer_fini(&out);
}

/* ---- golden files ---------------------------------------------------------------------------- */

static void
golden_message(FILE *file, const char *name, const trpi_serializer *serializer,
               const trp_type *type, const void *payload, size_t bytes, const char *path)
{
    trpi_buffer out = { 0 };
    trpi_node_map map = map_of(1, 2);
    trpi_message message = message_of(type, payload, bytes);
    message.path = path;
    message.path_bytes = path != NULL ? strlen(path) : 0;
    message.anyone = path != NULL;
    UNIT_EQUAL(trpi_message_encode(&out, serializer, &map, 4096, &message), TRP_OK);
    hex_line(file, name, &out);
    trpi_buffer_fini(&out);
}

/* System messages with a tail: an order to make an actor, and a failure. */
static void
order_lines(FILE *file)
{
    int64_t number = 42;
    trpi_deploy deploy = { .behaviour = "teller",
                           .version = 3,
                           .path = "/user/bank/teller",
                           .dispatcher = "pinned",
                           .args_type = &trp_i64_type,
                           .args = &number,
                           .args_bytes = sizeof number,
                           .supervisor = { 1, 7, 9, 0 } };
    trp_failure failure = { .err = TRP_EFAILED, .code = -1, .reason = "no more paper" };
    trpi_system_message order = { .signal = TRPI_SIGNAL_DEPLOY,
                                  .to_slot = 4,
                                  .to_generation = 5,
                                  .from_slot = 2,
                                  .from_generation = 3 };
    uint8_t body[TRPI_SYSTEM_BODY_BYTES];
    trpi_serializers serializers;
    trpi_node_map map = map_of(1, 2);
    trpi_buffer tail = { 0 }, out = { 0 };
    trpi_serializers_init(&serializers);
    UNIT_EQUAL(trpi_deploy_encode(&serializers, &map, &deploy, &tail), TRP_OK);
    trpi_system_body_encode(body, &order);
    UNIT_EQUAL(trpi_system_frame_append(&out, 10, body, tail.data, (uint32_t)tail.count), TRP_OK);
    hex_line(file, "system-deploy", &out);
    trpi_buffer_clear(&tail);
    trpi_buffer_clear(&out);
    UNIT_EQUAL(trpi_failure_encode(&failure, &tail), TRP_OK);
    order.signal = TRPI_SIGNAL_FAILED;
    trpi_system_body_encode(body, &order);
    UNIT_EQUAL(trpi_system_frame_append(&out, 11, body, tail.data, (uint32_t)tail.count), TRP_OK);
    hex_line(file, "system-failed", &out);
    trpi_buffer_fini(&tail);
    trpi_buffer_fini(&out);
}

static void
golden_write(FILE *file)
{
    trpi_buffer out = { 0 };
    uint8_t bytes[TRPI_SYSTEM_FRAME_BYTES];
    golden_names names = names_make();
    golden_numbers numbers;
    int64_t i64 = 0x0102030405060708;
    trpi_preamble preamble = { TRPI_WIRE_VERSION, TRPI_LANE_ORDINARY, 0, 0x1122334455667788u };
    uint8_t head[TRPI_PREAMBLE_BYTES];
    numbers_make(&numbers);
    trpi_preamble_encode(head, &preamble);
    (void)trpi_buffer_append(&out, head, sizeof head, TRPI_BUFFER_NO_LIMIT);
    hex_line(file, "preamble", &out);
    trpi_handshake handshake = handshake_make();
    trpi_buffer_clear(&out);
    (void)trpi_handshake_append(&out, TRPI_FRAME_HANDSHAKE_REQUEST, &handshake);
    hex_line(file, "handshake-request", &out);
    golden_message(file, "user-i64", &trpi_serializer_raw, &trp_i64_type, &i64, sizeof i64, NULL);
    golden_message(file, "user-text", &trpi_serializer_text, &trp_string_type, "hello", 5, NULL);
    golden_message(file, "user-numbers", &trpi_serializer_raw, &golden_numbers_type, &numbers,
                   sizeof numbers, NULL);
    golden_message(file, "user-names", &trpi_serializer_raw, &golden_names_type, &names,
                   sizeof names, NULL);
    golden_message(file, "user-numbers-json", &trpi_serializer_json, &golden_numbers_type, &numbers,
                   sizeof numbers, NULL);
    golden_message(file, "select-text", &trpi_serializer_text, &trp_string_type, "hi", 2,
                   "/user/*");
    trpi_message message = message_of(&trp_i64_type, NULL, 0);
    trpi_node_map map = map_of(1, 2);
    message.serializer = TRPI_SERIALIZER_RAW;
    trpi_buffer_clear(&out);
    UNIT_EQUAL(trpi_many_begin(&out, &message, TRPI_CODE_SENDING), TRP_OK);
    for (int64_t i = 0; i < 2; i++, i64++) {
        UNIT_EQUAL(trpi_many_append(&out, 0, NULL, &map, &trp_i64_type, &i64, sizeof i64), TRP_OK);
    }
    hex_line(file, "many-i64", &out);
    trpi_buffer_clear(&out);
    (void)trpi_manifest_append(&out, trpi_hash_text("golden.names"), "golden.names");
    hex_line(file, "manifest", &out);
    trpi_system_message watch = { .seq = 9,
                                  .signal = TRPI_SIGNAL_WATCH,
                                  .flag = 1,
                                  .to_slot = 1,
                                  .to_generation = 3,
                                  .from_slot = 2,
                                  .from_generation = 5 };
    trpi_put_u64(bytes, watch.seq);
    trpi_system_body_encode(bytes + 8, &watch);
    trpi_buffer_clear(&out);
    (void)trpi_frame_append(&out, TRPI_FRAME_SYSTEM, 0, 0, bytes, sizeof bytes);
    hex_line(file, "system-watch", &out);
    order_lines(file);
    trpi_buffer_clear(&out);
    (void)trpi_frame_append(&out, TRPI_FRAME_CONTROL, 8, 1, "gossip", 6);
    hex_line(file, "control-gossip", &out);
    trpi_buffer_fini(&out);
}

/* REMOTE-30: Wire version 1 does not change: this build writes the same bytes as older ones. */
static void
the_bytes_of_wire_version_1_are_those_of_the_golden_file(void)
{
    nodes_make();
    (void)unit_golden("wire-1.txt", golden_write);
}

/* Frames that minor version 2 added. */
static void
golden_write_minor_2(FILE *file)
{
    trpi_buffer out = { 0 };
    uint8_t head[TRPI_PREAMBLE_BYTES], number[8];
    trpi_preamble preamble = { TRPI_WIRE_VERSION, TRPI_LANE_LARGE, 0, 0x1122334455667788u };
    trpi_preamble_encode(head, &preamble);
    (void)trpi_buffer_append(&out, head, sizeof head, TRPI_BUFFER_NO_LIMIT);
    hex_line(file, "preamble-large", &out);
    trpi_handshake handshake = handshake_make();
    handshake.features =
        TRPI_FEATURE_MANY | TRPI_FEATURE_DEPLOY | TRPI_FEATURE_LANES | TRPI_FEATURE_LZ4;
    handshake.minor = 2;
    trpi_buffer_clear(&out);
    (void)trpi_handshake_append(&out, TRPI_FRAME_HANDSHAKE_REQUEST, &handshake);
    hex_line(file, "handshake-request", &out);
    trpi_put_u64(number, 7 << 4 | TRPI_LANE_ORDINARY);
    trpi_buffer_clear(&out);
    (void)trpi_frame_append(&out, TRPI_FRAME_FENCE, 0, 0, number, sizeof number);
    hex_line(file, "fence", &out);
    trpi_buffer_clear(&out);
    (void)trpi_frame_append(&out, TRPI_FRAME_FENCE_ACK, 0, 0, number, sizeof number);
    hex_line(file, "fence-ack", &out);
    trpi_buffer_clear(&out);
    (void)trpi_frame_append(&out, TRPI_FRAME_GOODBYE, TRPI_GOODBYE_LANE, 0, NULL, 0);
    hex_line(file, "goodbye-lane", &out);
    trpi_buffer_clear(&out);
    (void)trpi_frame_append(&out, TRPI_FRAME_GOODBYE_ACK, TRPI_GOODBYE_LANE, 0, NULL, 0);
    hex_line(file, "goodbye-ack-lane", &out);
    trpi_buffer_fini(&out);
}

static void
the_bytes_of_minor_version_2_are_those_of_its_golden_file(void)
{
    nodes_make();
    (void)unit_golden("wire-1.2.txt", golden_write_minor_2);
}

/* Frames that minor version 4 added. */
static void
golden_write_minor_4(FILE *file)
{
    trpi_buffer out = { 0 };
    trpi_credit_frame credit = { 0x11223344u, 0x55667788u, 1000000 };
    uint8_t body[TRPI_CREDIT_BYTES];
    trpi_credit_encode(body, &credit);
    (void)trpi_frame_append(&out, TRPI_FRAME_CREDIT, TRPI_CREDIT_FREE | TRPI_CREDIT_SET, 0, body,
                            sizeof body);
    hex_line(file, "credit-free", &out);
    trpi_buffer_clear(&out);
    (void)trpi_frame_append(&out, TRPI_FRAME_CREDIT, 0, 0, body, sizeof body);
    hex_line(file, "credit-more", &out);
    trpi_buffer_clear(&out);
    (void)trpi_frame_append(&out, TRPI_FRAME_CREDIT_ASK, 0, 0, body, TRPI_CREDIT_ASK_BYTES);
    hex_line(file, "credit-ask", &out);
    trpi_buffer_fini(&out);
}

static void
the_bytes_of_minor_version_4_are_those_of_its_golden_file(void)
{
    (void)unit_golden("wire-1.4.txt", golden_write_minor_4);
}

/* A node that is set to an earlier minor version sends the same bytes as ever. */
static void
a_handshake_of_the_minor_version_before_has_its_old_bytes(void)
{
    nodes_make();
    trpi_buffer old = { 0 }, now = { 0 };
    trpi_handshake handshake = handshake_make(), back;
    trpi_frame frame;
    handshake.features = TRPI_FEATURES_MINOR_1;
    UNIT_EQUAL(trpi_handshake_append(&old, TRPI_FRAME_HANDSHAKE_REQUEST, &handshake), TRP_OK);
    handshake.minor = 1;
    UNIT_EQUAL(trpi_handshake_append(&now, TRPI_FRAME_HANDSHAKE_REQUEST, &handshake), TRP_OK);
    UNIT_TRUE(now.count == old.count && memcmp(now.data, old.data, now.count) == 0);
    trpi_frame_header_decode(now.data, &frame);
    UNIT_EQUAL(trpi_handshake_decode(&frame, &back), TRP_OK);
    UNIT_EQUAL(back.minor, 0);
    trpi_buffer_clear(&now);
    handshake.minor = 2;
    UNIT_EQUAL(trpi_handshake_append(&now, TRPI_FRAME_HANDSHAKE_REQUEST, &handshake), TRP_OK);
    trpi_frame_header_decode(now.data, &frame);
    UNIT_EQUAL(trpi_handshake_decode(&frame, &back), TRP_OK);
    UNIT_EQUAL(back.minor, 2);
    trpi_buffer_fini(&old);
    trpi_buffer_fini(&now);
}

UNIT_BEGIN("codec")
UNIT(the_bytes_of_minor_version_2_are_those_of_its_golden_file)
UNIT(the_bytes_of_minor_version_4_are_those_of_its_golden_file)
UNIT(a_handshake_of_the_minor_version_before_has_its_old_bytes)
UNIT(features_are_told_in_the_handshake)
UNIT(payloads_that_share_a_frame_come_back_one_by_one)
UNIT(what_does_not_fit_a_shared_frame_leaves_it_as_it_was)
UNIT(refs_in_payloads_mean_the_same_actor_at_the_other_end)
UNIT(raw_and_json_bring_back_every_kind_of_field)
UNIT(json_keeps_to_its_fields)
UNIT(json_gives_back_what_it_was_given_or_refuses)
UNIT(a_ref_in_json_carries_its_node_as_text)
UNIT(text_and_opaque_bytes_travel_as_they_are)
UNIT(a_message_too_large_is_refused_alone)
UNIT(a_message_may_name_16_third_nodes)
UNIT(the_most_specific_binding_wins_and_none_keeps_a_type_at_home)
UNIT(serializers_of_the_user_need_a_free_number_and_name)
UNIT(no_bytes_make_the_decoders_read_or_write_too_far)
UNIT(a_handshake_comes_back_and_unknown_keys_are_skipped)
UNIT(the_bytes_of_wire_version_1_are_those_of_the_golden_file)
UNIT_END
