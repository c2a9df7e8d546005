/* payload_fuzz.c - messages of variable length: a stranger's wire forms, and blocks with arbitrary
 * offsets.
 *
 * The first byte of the input says what the rest is: 0 to 2 the wire form of raw, json, msgpack;
 * else a block. Corpus: tests/fuzz/corpus/payload.
 */
#include <stdlib.h>
#include <string.h>

#include <troupe/actor.h>
#include <troupe/payload.h>

#include "base/payload.h"
#include "remote/wire/serializer.h"
#include "tests/unit/remote/chat_messages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const trpi_serializer *const all[] = { &trpi_serializer_raw, &trpi_serializer_json,
                                              &trpi_serializer_msgpack };
enum { ALL = sizeof all / sizeof all[0] };

static trpi_node_id node;

static const trpi_node_id *
node_get(void *arg, uint32_t number)
{
    (void)arg;
    return number == 1 || number == 2 ? &node : NULL;
}
static trp_err
node_intern(void *arg, const trpi_node_id *id, uint32_t *ret_node)
{
    (void)arg;
    node = *id;
    *ret_node = 2;
    return TRP_OK;
}

static void
require(int holds)
{
    if (!holds) {
        abort();
    }
}

static volatile uint64_t sum; /* what is read is used */

static void
bytes_touch(const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        sum += ((const unsigned char *)data)[i];
    }
}

static void
read_text(const trp_msg *msg, trp_field_text text)
{
    size_t bytes;
    const char *at = trp_msg_text(msg, text, &bytes);
    bytes_touch(at, strlen(at));
    bytes_touch(at, bytes + 1);
}

/* Read a block as a behaviour does, which trusts the accessors. */
static void
read_history(const trp_msg *msg)
{
    const chat_history *h = trp_msg_payload(msg);
    size_t lines_count = 0, count = 0;
    read_text(msg, h->room);
    const void *icon = trp_msg_data(msg, h->icon, &count);
    bytes_touch(icon, count);
    const chat_line *lines = TRP_MSG_ARRAY(msg, h->lines, &lines_count);
    for (size_t i = 0; i < lines_count && i < 100; i++) {
        read_text(msg, lines[i].author.name);
        read_text(msg, lines[i].body);
        const uint32_t *reads = TRP_MSG_ARRAY(msg, lines[i].reads, &count);
        bytes_touch(reads, count * sizeof *reads);
    }
    const trp_field_text *tags = TRP_MSG_ARRAY(msg, h->tags, &count);
    for (size_t i = 0; i < count && i < 100; i++) {
        read_text(msg, tags[i]);
    }
    const trp_ref *members = TRP_MSG_ARRAY(msg, h->members, &count);
    bytes_touch(members, count * sizeof *members);
}

/* Use memory of exactly its size, so that a sanitizer sees a read past its end. */
static void
read_block(const void *data, size_t bytes)
{
    struct {
        trp_msg header;
        trp_msg_priv_moved moved;
    } image = { .moved = { malloc(bytes), bytes, NULL, NULL } };
    require(image.moved.data != NULL);
    memcpy(image.moved.data, data, bytes);
    image.header.priv_from_node_flags = TRP_MSG_PRIV_OUT_OF_LINE;
    read_history(&image.header);
    free(image.moved.data);
}

/* A block that passes the check is the same after encoding and decoding by every serializer, except
 * for invalid numbers and refs. */
static void
round_trip(const void *block, size_t bytes)
{
    for (int i = 0; i < ALL; i++) {
        trpi_node_map map = {
            .sending = 2, .receiving = 1, .get = node_get, .intern = node_intern
        };
        trpi_buffer wire = { 0 }, back = { 0 };
        if (trpi_encode(all[i], &chat_history_type, block, bytes, &map, &wire) == TRP_OK &&
            trpi_decode(all[i], &chat_history_type, wire.data, wire.count, &map, &back) == TRP_OK) {
            require(trpi_payload_check(&chat_history_type, back.data, back.count) == TRP_OK);
            read_block(back.data, back.count);
        }
        trpi_buffer_fini(&wire);
        trpi_buffer_fini(&back);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    if (data[0] < ALL) {
        trpi_node_map map = {
            .sending = 2, .receiving = 1, .get = node_get, .intern = node_intern
        };
        trpi_buffer block = { 0 };
        if (trpi_decode(all[data[0]], &chat_history_type, data + 1, size - 1, &map, &block) ==
            TRP_OK) {
            require(trpi_payload_check(&chat_history_type, block.data, block.count) == TRP_OK);
            read_block(block.data, block.count);
            round_trip(block.data, block.count);
        }
        trpi_buffer_fini(&block);
    } else if (size - 1 >= sizeof(chat_history)) { /* a shorter one is not delivered */
        read_block(data + 1, size - 1);
        round_trip(data + 1, size - 1);
    }
    return 0;
}
