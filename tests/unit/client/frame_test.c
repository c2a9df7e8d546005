/* frame_test.c - the bytes of clients' frames, and those that are refused. */
#include <string.h>

#include "base/pack.h"
#include "remote/client/frame.h"
#include "tests/unit/golden.h"
#include "tests/unit/unit.h"

static trpi_client_frame
full_frame(void)
{
    trpi_client_frame frame = { .word = TRPI_RECEPTIONIST_OPENED,
                                .client = 1,
                                .number = 7,
                                .slot = 2,
                                .generation = 3,
                                .ask_slot = 4,
                                .ask_generation = 5,
                                .kind = TRPI_CLIENT_TOPIC,
                                .err = TRP_ENOENT,
                                .name = "orders",
                                .why = "because",
                                .contacts_count = 2 };
    UNIT_REQUIRE(trpi_address_parse("troupe.tcp://shop@10.0.0.1:2552", &frame.contacts[0], NULL,
                                    NULL) == TRP_OK);
    UNIT_REQUIRE(trpi_address_parse("troupe.tcp://shop@[::1]:2553", &frame.contacts[1], NULL,
                                    NULL) == TRP_OK);
    return frame;
}

static void
what_is_written_is_read(void)
{
    trpi_client_frame frame = full_frame(), back;
    trpi_buffer bytes = { 0 };
    UNIT_EQUAL(trpi_client_frame_encode(&frame, &bytes), TRP_OK);
    UNIT_EQUAL(trpi_client_frame_decode(bytes.data, bytes.count, &back), TRP_OK);
    UNIT_TRUE(memcmp(&frame, &back, sizeof frame) == 0);
    for (size_t cut = 0; cut < bytes.count; cut++) {
        UNIT_TRUE(trpi_client_frame_decode(bytes.data, cut, &back) != TRP_OK);
    }
    trpi_buffer_fini(&bytes);
}

static trp_err
decode(trpi_pack_writer *w)
{
    trpi_client_frame frame;
    UNIT_EQUAL(w->err, TRP_OK);
    trp_err err = trpi_client_frame_decode(w->buffer.data, w->buffer.count, &frame);
    trpi_buffer_fini(&w->buffer);
    return err;
}

/* A map of the word and one more pair, whose value the caller writes. */
static trpi_pack_writer
pair(const char *key)
{
    trpi_pack_writer w = { .limit = 65536 };
    trpi_pack_map(&w, 2);
    trpi_pack_text(&w, "w");
    trpi_pack_u64(&w, 3);
    trpi_pack_text(&w, key);
    return w;
}

static void
unknown_keys_are_skipped(void)
{
    trpi_pack_writer w = pair("later");
    trpi_pack_u64(&w, 1);
    UNIT_EQUAL(decode(&w), TRP_OK);
}

static void
values_beyond_their_limits_are_refused(void)
{
    char name[TRPI_CLIENT_NAME_BYTES_MAX + 2];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    trpi_pack_writer w = pair("n");
    trpi_pack_text(&w, name + 1); /* at the limit */
    UNIT_EQUAL(decode(&w), TRP_OK);
    w = pair("n");
    trpi_pack_text(&w, name);
    UNIT_EQUAL(decode(&w), TRP_EDATA);
    w = pair("s");
    trpi_pack_u64(&w, (uint64_t)UINT32_MAX + 1);
    UNIT_EQUAL(decode(&w), TRP_EDATA);
    for (uint32_t count = TRPI_CLIENT_CONTACTS_MAX; count <= TRPI_CLIENT_CONTACTS_MAX + 1;
         count++) {
        w = pair("a");
        trpi_pack_array(&w, count);
        for (uint32_t i = 0; i < count; i++) {
            trpi_pack_text(&w, "troupe.tcp://shop@10.0.0.1:2552");
        }
        UNIT_EQUAL(decode(&w), count > TRPI_CLIENT_CONTACTS_MAX ? TRP_EDATA : TRP_OK);
    }
}

/* A client dials its contacts: one without a host cannot be one. */
static void
contacts_without_a_host_are_refused(void)
{
    static const char *const odd[] = { "troupe.tcp://shop@~0000000000001267", "troupe://shop",
                                       "10.0.0.1:2552", "" };
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        trpi_pack_writer w = pair("a");
        trpi_pack_array(&w, 1);
        trpi_pack_text(&w, odd[i]);
        UNIT_EQUAL(decode(&w), TRP_EDATA);
    }
}

static void
a_frame_without_a_word_is_refused(void)
{
    trpi_pack_writer w = { .limit = 64 };
    trpi_pack_map(&w, 0);
    UNIT_EQUAL(decode(&w), TRP_EDATA);
}

static void
a_reason_is_cleaned_for_logs(void)
{
    trpi_client_frame frame;
    trpi_pack_writer w = pair("why");
    trpi_pack_text(&w, "no\n\"way\"\x1b");
    UNIT_EQUAL(trpi_client_frame_decode(w.buffer.data, w.buffer.count, &frame), TRP_OK);
    UNIT_TEXT(frame.why, "no??way??");
    trpi_buffer_fini(&w.buffer);
}

/* ---- the golden file: one frame of each word ------------------------------------------------- */

static const struct {
    const char *name;
    trpi_client_frame frame;
} golden[] = {
    { "hello", { .word = TRPI_CLIENT_HELLO, .client = 1 } },
    { "ping", { .word = TRPI_CLIENT_PING, .client = 1 } },
    { "open", { .word = TRPI_CLIENT_OPEN, .client = 1, .number = 7, .name = "orders" } },
    { "open-all",
      { .word = TRPI_CLIENT_OPEN,
        .client = 1,
        .number = 8,
        .kind = TRPI_CLIENT_ALL,
        .name = "orders" } },
    { "open-topic",
      { .word = TRPI_CLIENT_OPEN,
        .client = 1,
        .number = 300,
        .kind = TRPI_CLIENT_TOPIC,
        .name = "weather/vienna" } },
    { "close", { .word = TRPI_CLIENT_CLOSE, .client = 1, .number = 7 } },
    { "ended", { .word = TRPI_CLIENT_ENDED, .client = 1, .slot = 70000, .generation = 3 } },
    { "bye", { .word = TRPI_CLIENT_BYE, .client = 1 } },
    { "welcome", { .word = TRPI_RECEPTIONIST_WELCOME, .client = 1, .contacts_count = 2 } },
    { "pong", { .word = TRPI_RECEPTIONIST_PONG, .client = 1 } },
    { "opened",
      { .word = TRPI_RECEPTIONIST_OPENED,
        .client = 1,
        .number = 7,
        .slot = 2,
        .generation = 3,
        .ask_slot = 4,
        .ask_generation = 5 } },
    { "refused",
      { .word = TRPI_RECEPTIONIST_REFUSED,
        .client = 1,
        .number = 7,
        .err = TRP_ENOENT,
        .why = "because" } },
    { "move", { .word = TRPI_RECEPTIONIST_MOVE, .client = 1, .contacts_count = 1 } },
    { "closed", { .word = TRPI_RECEPTIONIST_CLOSED, .client = 1, .number = 7 } },
    { "stranger", { .word = TRPI_RECEPTIONIST_STRANGER, .client = 1 } },
    { "find",
      { .word = TRPI_RECEPTIONIST_FIND, .number = 9, .kind = TRPI_CLIENT_TOPIC, .name = "a" } },
    { "found", { .word = TRPI_RECEPTIONIST_FOUND, .number = 9, .slot = 2, .generation = 3 } },
    { "absent", { .word = TRPI_RECEPTIONIST_ABSENT, .number = 9 } },
};
enum { GOLDEN_COUNT = sizeof golden / sizeof golden[0] };

static trpi_client_frame
golden_frame(size_t index)
{
    trpi_client_frame frame = golden[index].frame, full = full_frame();
    memcpy(frame.contacts, full.contacts, frame.contacts_count * sizeof frame.contacts[0]);
    return frame;
}

static void
golden_write(FILE *file)
{
    for (size_t i = 0; i < GOLDEN_COUNT; i++) {
        trpi_client_frame frame = golden_frame(i);
        trpi_buffer bytes = { 0 };
        UNIT_EQUAL(trpi_client_frame_encode(&frame, &bytes), TRP_OK);
        (void)fprintf(file, "%s ", golden[i].name);
        for (size_t k = 0; k < bytes.count; k++) {
            (void)fprintf(file, "%02x", bytes.data[k]);
        }
        (void)fprintf(file, "\n");
        trpi_buffer_fini(&bytes);
    }
}

/* docs/wire.md, channels 9 and 10 */
static void
frames_are_those_of_the_golden_file(void)
{
    size_t lines = 0;
    char *line = strtok(unit_golden("client-1.txt", golden_write), "\n");
    for (; line != NULL && lines < GOLDEN_COUNT; line = strtok(NULL, "\n"), lines++) {
        uint8_t bytes[512];
        size_t count = 0;
        trpi_client_frame read, written = golden_frame(lines);
        for (const char *hex = strchr(line, ' ') + 1; hex[0] != '\0' && hex[1] != '\0'; hex += 2) {
            char digits[3] = { hex[0], hex[1], '\0' };
            bytes[count++] = (uint8_t)strtoul(digits, NULL, 16);
        }
        UNIT_EQUAL(trpi_client_frame_decode(bytes, count, &read), TRP_OK);
        UNIT_TRUE(memcmp(&read, &written, sizeof read) == 0);
    }
    UNIT_EQUAL(lines, GOLDEN_COUNT);
}

UNIT_BEGIN("frame")
UNIT(what_is_written_is_read)
UNIT(unknown_keys_are_skipped)
UNIT(values_beyond_their_limits_are_refused)
UNIT(contacts_without_a_host_are_refused)
UNIT(a_frame_without_a_word_is_refused)
UNIT(a_reason_is_cleaned_for_logs)
UNIT(frames_are_those_of_the_golden_file)
UNIT_END
