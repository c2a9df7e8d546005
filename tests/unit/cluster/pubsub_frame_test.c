/* The frames of registries: what is written is read, at the limits and one past them; and their
 * bytes, which older nodes read. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/pack.h"
#include "cluster/pubsub/registry_frame.h"
#include "tests/unit/golden.h"
#include "tests/unit/unit.h"

static char long_name[TRPI_TOPIC_BYTES_MAX + 1], long_group[TRPI_GROUP_BYTES_MAX + 1];

static trpi_pubsub_key
key_of(trpi_pubsub_kind kind, const char *name, uint32_t name_bytes, const char *group,
       uint32_t group_bytes)
{
    return (trpi_pubsub_key){ kind, name_bytes, group_bytes, name, group };
}

/* A name of any bytes, a group, and one that is gone. */
static trpi_pubsub_item *
three_items(void)
{
    static trpi_pubsub_item items[3];
    items[0] = (trpi_pubsub_item){ key_of(TRPI_PUBSUB_TOPIC, "a\0/%\xff", 5, NULL, 0), 3, 11, 4 };
    items[1] = (trpi_pubsub_item){ key_of(TRPI_PUBSUB_GROUP, "news", 4, "left", 4), 70000, 12, 12 };
    items[2] = (trpi_pubsub_item){ key_of(TRPI_PUBSUB_PATH, "/user/x", 7, NULL, 0), 0, 400, 0 };
    return items;
}

static trpi_pubsub_frame
frame_of(uint32_t kind)
{
    trpi_pubsub_frame f;
    memset(&f, 0, sizeof f);
    f.kind = (trpi_pubsub_frame_kind)kind;
    f.to_uid = 77;
    f.life = kind == TRPI_PUBSUB_ABSENT ? 0 : 2;
    f.era = kind == TRPI_PUBSUB_ABSENT ? 0 : 1;
    (void)snprintf(f.name, sizeof f.name, "mediator");
    if (kind == TRPI_PUBSUB_HELLO || kind == TRPI_PUBSUB_ABSENT) {
        f.question = 5;
    }
    if (kind != TRPI_PUBSUB_ABSENT) {
        f.slot = 12;
        f.generation = 3;
    }
    if (kind == TRPI_PUBSUB_ACK || kind == TRPI_PUBSUB_DELTA) {
        f.seen = (trpi_pubsub_mark){ 4, 1, 300 };
        f.gap = kind == TRPI_PUBSUB_ACK;
    }
    if (kind == TRPI_PUBSUB_DELTA) {
        f.base = 10;
        f.version = 401;
        f.items = three_items();
        f.items_count = 3;
    }
    return f;
}

static void
check_items(const trpi_pubsub_frame *read, const trpi_pubsub_frame *written)
{
    UNIT_EQUAL(read->items_count, written->items_count);
    for (uint32_t i = 0; i < written->items_count; i++) {
        UNIT_TRUE(trpi_pubsub_key_equal(&read->items[i].key, &written->items[i].key));
        UNIT_EQUAL(trpi_pubsub_key_hash(&read->items[i].key),
                   trpi_pubsub_key_hash(&written->items[i].key));
        UNIT_EQUAL(read->items[i].count, written->items[i].count);
        UNIT_EQUAL(read->items[i].version, written->items[i].version);
        UNIT_EQUAL(read->items[i].begun, written->items[i].begun);
    }
}

static void
each_frame_reads_back_as_it_was_written(void)
{
    for (uint32_t kind = 1; kind < TRPI_PUBSUB_FRAME_KIND_COUNT; kind++) {
        trpi_pubsub_frame f = frame_of(kind), back;
        trpi_buffer bytes = { 0 }, again = { 0 };
        UNIT_EQUAL(trpi_pubsub_frame_encode(&f, &bytes), TRP_OK);
        UNIT_EQUAL(trpi_pubsub_frame_decode(bytes.data, bytes.count, &back), TRP_OK);
        UNIT_EQUAL(trpi_pubsub_frame_encode(&back, &again), TRP_OK);
        UNIT_EQUAL(bytes.count, again.count);
        UNIT_EQUAL(memcmp(bytes.data, again.data, bytes.count), 0);
        check_items(&back, &f);
        for (size_t i = 0; i < bytes.count; i++) { /* a part of a frame is none */
            trpi_pubsub_frame part;
            UNIT_TRUE(trpi_pubsub_frame_decode(bytes.data, i, &part) != TRP_OK);
        }
        trpi_pubsub_frame_fini(&back);
        trpi_buffer_fini(&bytes);
        trpi_buffer_fini(&again);
    }
}

/* Names and groups at their limits. */
static void
a_key_has_limits(void)
{
    trpi_pubsub_key key = key_of(TRPI_PUBSUB_GROUP, long_name, TRPI_TOPIC_BYTES_MAX, long_group,
                                 TRPI_GROUP_BYTES_MAX);
    memset(long_name, 'n', sizeof long_name);
    memset(long_group, 'g', sizeof long_group);
    UNIT_TRUE(trpi_pubsub_key_is_valid(&key));
    trpi_pubsub_item item = { key, UINT32_MAX, 1, 1 };
    trpi_pubsub_frame f = frame_of(TRPI_PUBSUB_DELTA), back;
    trpi_buffer bytes = { 0 }, without = { 0 };
    f.items_count = 0;
    UNIT_EQUAL(trpi_pubsub_frame_encode(&f, &without), TRP_OK);
    f.base = 0;
    f.items = &item;
    f.items_count = 1;
    UNIT_EQUAL(trpi_pubsub_frame_encode(&f, &bytes), TRP_OK);
    UNIT_TRUE(bytes.count - without.count <= trpi_pubsub_item_bytes(&item));
    UNIT_EQUAL(trpi_pubsub_frame_decode(bytes.data, bytes.count, &back), TRP_OK);
    check_items(&back, &f);
    trpi_pubsub_frame_fini(&back);
    trpi_buffer_fini(&bytes);
    trpi_buffer_fini(&without);
    key.name_bytes = TRPI_TOPIC_BYTES_MAX + 1;
    UNIT_FALSE(trpi_pubsub_key_is_valid(&key));
    key.name_bytes = 0;
    UNIT_FALSE(trpi_pubsub_key_is_valid(&key));
    key.name_bytes = 1;
    key.group_bytes = TRPI_GROUP_BYTES_MAX + 1;
    UNIT_FALSE(trpi_pubsub_key_is_valid(&key));
    key.group_bytes = 0; /* a group has a name, and nothing else has one */
    UNIT_FALSE(trpi_pubsub_key_is_valid(&key));
    key.kind = TRPI_PUBSUB_TOPIC;
    UNIT_TRUE(trpi_pubsub_key_is_valid(&key));
    key.group_bytes = 1;
    UNIT_FALSE(trpi_pubsub_key_is_valid(&key));
}

/* One item of a delta from version 0 to 9, by its six values; a name of so many bytes. */
static trp_err
read_item(uint64_t kind, uint32_t name_bytes, uint32_t group_bytes, uint64_t above, uint64_t age)
{
    trpi_pack_writer w = { .limit = 8192 };
    trpi_pubsub_frame read;
    trpi_pack_map(&w, 6);
    trpi_pack_text(&w, "k");
    trpi_pack_u64(&w, TRPI_PUBSUB_DELTA);
    trpi_pack_text(&w, "n");
    trpi_pack_text(&w, "m");
    trpi_pack_text(&w, "to");
    trpi_pack_u64(&w, 1);
    trpi_pack_text(&w, "l");
    trpi_pack_array(&w, 2);
    trpi_pack_u64(&w, 1);
    trpi_pack_u64(&w, 0);
    trpi_pack_text(&w, "v");
    trpi_pack_array(&w, 2);
    trpi_pack_u64(&w, 0);
    trpi_pack_u64(&w, 9);
    trpi_pack_text(&w, "i");
    trpi_pack_array(&w, 6);
    trpi_pack_u64(&w, kind);
    trpi_pack_bytes(&w, long_name, name_bytes);
    trpi_pack_bytes(&w, long_group, group_bytes);
    trpi_pack_u64(&w, 1);
    trpi_pack_u64(&w, above);
    trpi_pack_u64(&w, age);
    UNIT_EQUAL(w.err, TRP_OK);
    trp_err err = trpi_pubsub_frame_decode(w.buffer.data, w.buffer.count, &read);
    if (err == TRP_OK) {
        UNIT_EQUAL(read.items_count, kind <= TRPI_PUBSUB_GROUP ? 1 : 0);
        trpi_pubsub_frame_fini(&read);
    }
    trpi_buffer_fini(&w.buffer);
    return err;
}

static void
what_no_registry_writes_is_refused(void)
{
    UNIT_EQUAL(read_item(TRPI_PUBSUB_TOPIC, TRPI_TOPIC_BYTES_MAX, 0, 9, 8), TRP_OK);
    UNIT_EQUAL(read_item(TRPI_PUBSUB_TOPIC, TRPI_TOPIC_BYTES_MAX + 1, 0, 9, 8), TRP_EDATA);
    UNIT_EQUAL(read_item(TRPI_PUBSUB_TOPIC, 0, 0, 9, 8), TRP_EDATA);
    UNIT_EQUAL(read_item(TRPI_PUBSUB_TOPIC, 1, 1, 9, 8), TRP_EDATA);
    UNIT_EQUAL(read_item(TRPI_PUBSUB_GROUP, 1, TRPI_GROUP_BYTES_MAX, 9, 8), TRP_OK);
    UNIT_EQUAL(read_item(TRPI_PUBSUB_GROUP, 1, TRPI_GROUP_BYTES_MAX + 1, 9, 8), TRP_EDATA);
    UNIT_EQUAL(read_item(TRPI_PUBSUB_GROUP, 1, 0, 9, 8), TRP_EDATA);
    UNIT_EQUAL(read_item(0, 1, 0, 9, 8), TRP_EDATA);
    UNIT_EQUAL(read_item(TRPI_PUBSUB_GROUP + 1, 1, 0, 9, 8), TRP_OK); /* skipped */
    UNIT_EQUAL(read_item(TRPI_PUBSUB_TOPIC, 1, 0, 10, 1), TRP_EDATA); /* above the frame's */
    UNIT_EQUAL(read_item(TRPI_PUBSUB_TOPIC, 1, 0, 0, 0), TRP_EDATA);  /* not above its base */
    UNIT_EQUAL(read_item(TRPI_PUBSUB_TOPIC, 1, 0, 9, 10), TRP_EDATA); /* begun before 0 */
}

/* A node without the mediator says so, once for each question. */
static void
only_a_hello_is_answered_by_absence(void)
{
    for (uint32_t kind = 1; kind < TRPI_PUBSUB_FRAME_KIND_COUNT; kind++) {
        trpi_pubsub_frame f = frame_of(kind), answer;
        UNIT_EQUAL(trpi_pubsub_frame_absent(&f, 99, &answer), kind == TRPI_PUBSUB_HELLO);
        if (kind == TRPI_PUBSUB_HELLO) {
            UNIT_EQUAL(answer.kind, TRPI_PUBSUB_ABSENT);
            UNIT_EQUAL(answer.to_uid, 99);
            UNIT_EQUAL(answer.question, f.question);
            UNIT_EQUAL(strcmp(answer.name, f.name), 0);
        }
    }
}

static void
golden_write(FILE *file)
{
    for (uint32_t kind = 1; kind < TRPI_PUBSUB_FRAME_KIND_COUNT; kind++) {
        trpi_pubsub_frame f = frame_of(kind);
        trpi_buffer bytes = { 0 };
        UNIT_EQUAL(trpi_pubsub_frame_encode(&f, &bytes), TRP_OK);
        fprintf(file, "%s ", trpi_pubsub_frame_name(f.kind));
        for (size_t i = 0; i < bytes.count; i++) {
            fprintf(file, "%02x", bytes.data[i]);
        }
        fprintf(file, "\n");
        trpi_buffer_fini(&bytes);
    }
}

static void
frames_are_those_of_the_golden_file(void)
{
    char *line = strtok(unit_golden("pubsub-1.txt", golden_write), "\n");
    uint32_t lines = 0;
    for (; line != NULL; line = strtok(NULL, "\n"), lines++) {
        uint8_t bytes[512];
        size_t count = 0;
        trpi_pubsub_frame read, written = frame_of(lines + 1);
        for (const char *hex = strchr(line, ' ') + 1; hex[0] != '\0' && hex[1] != '\0'; hex += 2) {
            char digits[3] = { hex[0], hex[1], '\0' };
            bytes[count++] = (uint8_t)strtoul(digits, NULL, 16);
        }
        UNIT_EQUAL(trpi_pubsub_frame_decode(bytes, count, &read), TRP_OK);
        check_items(&read, &written);
        trpi_pubsub_frame_fini(&read);
    }
    UNIT_EQUAL(lines, TRPI_PUBSUB_FRAME_KIND_COUNT - 1);
}

UNIT_BEGIN("pubsub_frame")
UNIT(each_frame_reads_back_as_it_was_written)
UNIT(a_key_has_limits)
UNIT(what_no_registry_writes_is_refused)
UNIT(only_a_hello_is_answered_by_absence)
UNIT(frames_are_those_of_the_golden_file)
UNIT_END
