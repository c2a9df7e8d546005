/* deployment_codec_test.c - orders and failures as bytes; the tails of system messages. */
#include "remote/wire/deployment.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "remote/association/waiting.h"
#include "tests/unit/unit.h"

static trpi_serializers serializers;

static trpi_node_map
map_of(void)
{
    trpi_node_map map;
    memset(&map, 0, sizeof map);
    map.sending = TRPI_NODE_SELF;
    map.receiving = 2;
    map.serializers = &serializers;
    return map;
}

/* REMOTE-23 */
static void
an_order_is_read_as_it_was_written(void)
{
    int64_t number = 42;
    trpi_deploy deploy = { .behaviour = "bank.teller",
                           .version = 7,
                           .path = "/user/a/b",
                           .dispatcher = "pinned",
                           .stash_msgs_max = 3,
                           .args_type = &trp_i64_type,
                           .args = &number,
                           .args_bytes = sizeof number,
                           .supervisor = { TRPI_NODE_SELF, 11, 13, 0 } };
    trpi_node_map map = map_of();
    trpi_buffer out = { 0 };
    trpi_deploy_read read;
    trpi_serializers_init(&serializers);
    UNIT_EQUAL(trpi_deploy_encode(&serializers, &map, &deploy, &out), TRP_OK);
    UNIT_REQUIRE(trpi_deploy_decode(out.data, out.count, &read) == TRP_OK);
    UNIT_TEXT(read.deploy.behaviour, "bank.teller");
    UNIT_EQUAL(read.deploy.version, 7);
    UNIT_TEXT(read.deploy.path, "/user/a/b");
    UNIT_TEXT(read.deploy.dispatcher, "pinned");
    UNIT_TRUE(read.deploy.mailbox == NULL);
    UNIT_EQUAL(read.deploy.stash_msgs_max, 3);
    UNIT_EQUAL(read.supervisor_slot, 11);
    UNIT_EQUAL(read.supervisor_generation, 13);
    UNIT_TRUE(read.args_bytes > TRPI_USER_FIXED_BYTES);
    trpi_deploy_read_fini(&read);
    for (size_t count = 0; count < out.count; count++) { /* cut anywhere */
        UNIT_EQUAL(trpi_deploy_decode(out.data, count, &read), TRP_EDATA);
    }
    for (size_t at = 0; at < out.count; at++) { /* any byte wrong: read or refused, never worse */
        out.data[at] ^= 0x5a;
        if (trpi_deploy_decode(out.data, out.count, &read) == TRP_OK) {
            trpi_deploy_read_fini(&read);
        }
        out.data[at] ^= 0x5a;
    }
    trpi_buffer_fini(&out);
}

static void
a_failure_is_read_as_it_was_written(void)
{
    trp_failure failure = { .err = TRP_EKILLED, .code = -5, .reason = "no more paper" }, read;
    trpi_buffer out = { 0 };
    memset(&read, 0, sizeof read);
    UNIT_EQUAL(trpi_failure_encode(&failure, &out), TRP_OK);
    UNIT_EQUAL(trpi_failure_decode(out.data, out.count, &read), TRP_OK);
    UNIT_EQUAL(read.err, TRP_EKILLED);
    UNIT_EQUAL(read.code, -5);
    UNIT_TEXT(read.reason, "no more paper");
    UNIT_EQUAL(trpi_failure_decode(out.data, out.count - 1, &read), TRP_EDATA);
    trpi_buffer_clear(&out);
    failure.err = TRP_OK; /* no failure at all */
    UNIT_EQUAL(trpi_failure_encode(&failure, &out), TRP_OK);
    UNIT_EQUAL(trpi_failure_decode(out.data, out.count, &read), TRP_EDATA);
    trpi_buffer_fini(&out);
}

static void
patterns_are_names_or_beginnings(void)
{
    static const char *const list[] = { "bank.teller", "shop.*" };
    UNIT_TRUE(trpi_deploy_is_allowed(list, 2, "bank.teller"));
    UNIT_TRUE(trpi_deploy_is_allowed(list, 2, "shop.clerk"));
    UNIT_TRUE(!trpi_deploy_is_allowed(list, 2, "bank.teller2"));
    UNIT_TRUE(!trpi_deploy_is_allowed(list, 2, "bank"));
    UNIT_TRUE(!trpi_deploy_is_allowed(list, 2, "shop"));
    UNIT_TRUE(!trpi_deploy_is_allowed(list, 0, "shop.clerk"));
}

/* ---- tails ----------------------------------------------------------------------------------- */

static trp_err
frame_of(uint8_t signal, uint32_t tail_bytes, trpi_system_message *ret_message, trpi_buffer *out)
{
    static uint8_t tail[TRPI_SYSTEM_TAIL_BYTES_MAX + 1];
    uint8_t body[TRPI_SYSTEM_BODY_BYTES];
    trpi_system_message message = { .signal = signal, .to_slot = 5, .from_generation = 9 };
    trpi_frame frame;
    memset(tail, 0xab, sizeof tail);
    trpi_buffer_clear(out);
    trpi_system_body_encode(body, &message);
    UNIT_EQUAL(trpi_system_frame_append(out, 77, body, tail, tail_bytes), TRP_OK);
    trpi_frame_header_decode(out->data, &frame);
    UNIT_EQUAL(frame.bytes + TRPI_FRAME_HEADER_BYTES, out->count);
    return trpi_system_frame_decode(&frame, ret_message);
}

static void
some_system_messages_have_a_tail_and_others_none(void)
{
    trpi_system_message read;
    trpi_buffer out = { 0 };
    for (uint8_t signal = 1; signal <= TRPI_SIGNAL_LAST; signal++) {
        bool tailed = signal == TRPI_SIGNAL_DEPLOY || signal == TRPI_SIGNAL_REFUSED ||
                      signal == TRPI_SIGNAL_FAILED || signal == TRPI_SIGNAL_RESTART;
        UNIT_EQUAL(frame_of(signal, 0, &read, &out), tailed ? TRP_EDATA : TRP_OK);
        UNIT_EQUAL(frame_of(signal, 3, &read, &out), tailed ? TRP_OK : TRP_EDATA);
    }
    UNIT_EQUAL(frame_of(TRPI_SIGNAL_LAST + 1, 0, &read, &out), TRP_EDATA);
    UNIT_EQUAL(frame_of(TRPI_SIGNAL_DEPLOY, TRPI_SYSTEM_TAIL_BYTES_MAX, &read, &out), TRP_OK);
    UNIT_EQUAL(read.seq, 77);
    UNIT_EQUAL(read.to_slot, 5);
    UNIT_EQUAL(read.tail_bytes, TRPI_SYSTEM_TAIL_BYTES_MAX);
    UNIT_EQUAL(read.tail[TRPI_SYSTEM_TAIL_BYTES_MAX - 1], 0xab);
    UNIT_EQUAL(frame_of(TRPI_SIGNAL_DEPLOY, TRPI_SYSTEM_TAIL_BYTES_MAX + 1, &read, &out),
               TRP_EDATA);
    trpi_buffer_fini(&out);
}

/* Tails are kept until they are acknowledged, waiting and sent ones; their bytes are bounded. */
static void
tails_are_kept_and_bounded(void)
{
    enum { BYTES = 1u << 20, MOST = TRPI_SYSTEM_TAILS_BYTES_MAX / BYTES };
    static uint8_t tail[BYTES];
    uint8_t body[TRPI_SYSTEM_BODY_BYTES] = { TRPI_SIGNAL_DEPLOY };
    trpi_redelivery r;
    trpi_waiting waiting = { 0 };
    uint64_t seq = 0;
    uint32_t bytes = 0;
    trpi_redelivery_init(&r, 0, 0, 0);
    for (uint32_t i = 0; i < MOST; i++) {
        tail[0] = (uint8_t)i;
        UNIT_EQUAL(trpi_waiting_add_tail(&waiting, 100, 9, 1, body, tail, BYTES), TRP_OK);
    }
    UNIT_EQUAL(trpi_waiting_add_tail(&waiting, 100, 9, 1, body, tail, 1), TRP_ELIMIT);
    UNIT_EQUAL(trpi_waiting_add(&waiting, 100, 9, 1, body), TRP_OK);
    UNIT_EQUAL(trpi_waiting_move(&waiting, 9, 2, &r), TRP_OK);
    UNIT_EQUAL(waiting.tails_bytes, 0);
    UNIT_EQUAL(trpi_redelivery_push_tail(&r, 3, body, tail, 1), TRP_ELIMIT);
    for (uint32_t i = 0; i < MOST; i++) {
        UNIT_REQUIRE(trpi_redelivery_next(&r, 3, &seq) != NULL);
        UNIT_EQUAL(trpi_redelivery_tail(&r, seq, &bytes)[0], i);
        UNIT_EQUAL(bytes, BYTES);
    }
    UNIT_REQUIRE(trpi_redelivery_next(&r, 3, &seq) != NULL);
    UNIT_TRUE(trpi_redelivery_tail(&r, seq, &bytes) == NULL);
    UNIT_TRUE(trpi_redelivery_ack(&r, 4, 1));
    UNIT_EQUAL(trpi_redelivery_push_tail(&r, 4, body, tail, BYTES), TRP_OK);
    trpi_redelivery_reconnected(&r); /* and sent again */
    UNIT_REQUIRE(trpi_redelivery_next(&r, 5, &seq) != NULL);
    UNIT_EQUAL(trpi_redelivery_tail(&r, seq, &bytes)[0], 1);
    (void)trpi_redelivery_reset(&r);
    UNIT_EQUAL(r.tails_bytes, 0);
    trpi_redelivery_fini(&r);
    trpi_waiting_fini(&waiting);
}

UNIT_BEGIN("deployment_codec")
UNIT(an_order_is_read_as_it_was_written)
UNIT(a_failure_is_read_as_it_was_written)
UNIT(patterns_are_names_or_beginnings)
UNIT(some_system_messages_have_a_tail_and_others_none)
UNIT(tails_are_kept_and_bounded)
UNIT_END
