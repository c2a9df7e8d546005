/* strangers.h - a node in virtual time, and strangers made by hand that call it. */
#ifndef TESTS_SIM_STRANGERS_H
#define TESTS_SIM_STRANGERS_H

#include <stdlib.h>

#include "base/alloc.h"
#include "base/wire.h"
#include "base/world_virtual.h"
#include "remote/wire/codec.h"
#include "remote/association/peer.h"
#include "remote/remote.h"
#include "sim/mem_transport.h"
#include "tests/unit/unit.h"

enum { PORT = 2552, NAMED_AT_ONCE = 16, REBORN = 10000000 };

/* A stranger that speaks the protocol. */
typedef struct stranger {
    trpi_link *link;
    trpi_node_id id;
    trpi_buffer hello; /* what it says when it is connected */
    trpi_buffer first; /* and when its hand was shaken */
    bool closed;
    uint32_t answers; /* frames of messages that it got */
    uint32_t asks;    /* for credit */
    enum trpi_frame_kind shaken;
    trpi_frame_decoder decoder;
} stranger;

static struct {
    trpi_virtual *virt;
    trpi_mem_network *network;
    trp_system *system;
    trpi_remote *remote;
    trpi_transport *outside; /* of all strangers */
    trp_ref keeper;
    _Atomic uint32_t forgotten_lines; /* of peers, in the log */
} t;

/* ---- the strangers' side --------------------------------------------------------------------- */

static inline trp_err
got_preamble(void *arg, const trpi_preamble *preamble)
{
    (void)arg;
    (void)preamble;
    return TRP_OK;
}

static inline void
stranger_write(stranger *s, const trpi_buffer *out)
{
    trpi_iov iov = { out->data, out->count };
    bool done = false;
    if (s->link != NULL && out->count > 0) {
        (void)trpi_mem_transport_ops.write(s->link, &iov, 1, &done); /* it copies */
    }
}

static inline trp_err
got_frame(void *arg, const trpi_frame *frame)
{
    stranger *s = arg;
    s->answers += frame->kind == TRPI_FRAME_USER || frame->kind == TRPI_FRAME_MANY;
    s->asks += frame->kind == TRPI_FRAME_CREDIT_ASK;
    if (frame->kind <= TRPI_FRAME_HANDSHAKE_REFUSAL) {
        s->shaken = (enum trpi_frame_kind)frame->kind;
    }
    if (frame->kind == TRPI_FRAME_HANDSHAKE_RESPONSE) {
        stranger_write(s, &s->first);
    } else if (frame->kind == TRPI_FRAME_PING) {
        trpi_buffer out = { 0 };
        (void)trpi_frame_append(&out, TRPI_FRAME_PONG, 0, 0, frame->body, frame->bytes);
        stranger_write(s, &out);
        trpi_buffer_fini(&out);
    }
    return TRP_OK;
}

static inline void
on_connected(void *user, trpi_link *link)
{
    stranger *s = user;
    (void)link;
    stranger_write(s, &s->hello);
}

static inline void
on_bytes(void *user, trpi_link *link, const uint8_t *bytes, size_t count)
{
    stranger *s = user;
    (void)link;
    (void)trpi_frame_decoder_feed(&s->decoder, bytes, count);
}

static inline void
on_written(void *user, trpi_link *link)
{
    (void)user;
    (void)link;
}

static inline void
on_closed(void *user, trpi_link *link, trp_err err, const char *reason)
{
    stranger *s = user;
    (void)err;
    (void)reason;
    s->closed = true;
    s->link = NULL;
    trpi_mem_transport_ops.release(link);
}

static const trpi_transport_events outside_events = {
    .connected = on_connected, .bytes = on_bytes, .written = on_written, .closed = on_closed
};

/* A user message to `to` of the node, from slot 3 of its own, or of the first that it names. */
static inline void
say_message(trpi_buffer *out, trp_ref to, const trpi_node_id *named, uint32_t count)
{
    uint8_t body[24 + 8 + NAMED_AT_ONCE * 64] = { 0 };
    size_t at = 32;
    trpi_put_u32(body, to.slot);
    trpi_put_u32(body + 4, to.generation);
    trpi_put_u32(body + 8, 3);
    trpi_put_u32(body + 12, 5);
    trpi_put_u64(body + 16, trpi_type_wire_id(trp_i64_type.number));
    for (uint32_t i = 0; i < count; i++) {
        char text[TRPI_ADDRESS_TEXT_BYTES];
        size_t length = strlen(trpi_address_format(&named[i].address, text, sizeof text));
        trpi_put_u64(body + at, named[i].uid);
        trpi_put_u16(body + at + 8, (uint16_t)length);
        memcpy(body + at + 10, text, length);
        at += 10 + length;
    }
    if (count > 0) {
        trpi_put_u16(body + at, (uint16_t)count);
        trpi_put_u16(body + at + 2, (uint16_t)(at - 32));
        at += 4;
    }
    UNIT_EQUAL(trpi_frame_append(out, TRPI_FRAME_USER,
                                 (uint8_t)(count > 0 ? TRPI_CODE_THIRD | TRPI_MESSAGE_HAS_NODES
                                                     : TRPI_CODE_SENDING),
                                 TRPI_SERIALIZER_RAW, body, at),
               TRP_OK);
}

static inline void
say_preamble(trpi_buffer *out, const stranger *s, uint8_t lane)
{
    uint8_t pre[TRPI_PREAMBLE_BYTES];
    trpi_preamble mine = { TRPI_WIRE_VERSION, lane, 0, s->id.uid };
    trpi_preamble_encode(pre, &mine);
    UNIT_EQUAL(trpi_buffer_append(out, pre, sizeof pre, TRPI_BUFFER_NO_LIMIT), TRP_OK);
}

/* Its hand is shaken, and its lane opened, before all else. */
static inline void
stranger_begin(stranger *s, uint64_t number)
{
    char text[64];
    uint8_t epoch[4] = { 1, 0, 0, 0 };
    trpi_handshake request;
    memset(s, 0, sizeof *s);
    memset(&request, 0, sizeof request);
    s->id.uid = 1000000 + number;
    number %= REBORN; /* so much higher is another incarnation */
    (void)snprintf(text, sizeof text, "troupe.mem://far@c%u:%u", (unsigned)(number / 1000),
                   (unsigned)(1000 + number % 1000));
    UNIT_EQUAL(trpi_address_parse(text, &s->id.address, NULL, NULL), TRP_OK);
    request.from = s->id;
    request.to = *trpi_remote_address(t.remote);
    say_preamble(&s->hello, s, TRPI_LANE_CONTROL);
    (void)trpi_handshake_append(&s->hello, TRPI_FRAME_HANDSHAKE_REQUEST, &request);
    (void)trpi_frame_append(&s->first, TRPI_FRAME_LANE_OPEN, 0, 0, epoch, sizeof epoch);
    trpi_frame_decoder_init(&s->decoder, 1 << 20, got_preamble, got_frame, s);
}

static inline void
stranger_call(stranger *s)
{
    UNIT_REQUIRE(trpi_mem_transport_ops.connect(t.outside, "n0", PORT, 10000, s, &s->link) ==
                 TRP_OK);
}

static inline void
stranger_end(stranger *s, bool goodbye)
{
    if (goodbye && s->link != NULL) {
        trpi_buffer out = { 0 };
        UNIT_EQUAL(trpi_frame_append(&out, TRPI_FRAME_GOODBYE, 0, 0, NULL, 0), TRP_OK);
        stranger_write(s, &out);
        trpi_buffer_fini(&out);
    }
    if (s->link != NULL) {
        trpi_mem_transport_ops.close(s->link);
    }
}

static inline void
stranger_free(stranger *s)
{
    trpi_frame_decoder_fini(&s->decoder);
    trpi_buffer_fini(&s->hello);
    trpi_buffer_fini(&s->first);
}

/* The same one's second connection, which messages come on. */
static inline void
lane_call(stranger *lane, const stranger *s)
{
    memset(lane, 0, sizeof *lane);
    lane->id = s->id;
    say_preamble(&lane->hello, lane, TRPI_LANE_ORDINARY);
    trpi_frame_decoder_init(&lane->decoder, 1 << 20, got_preamble, got_frame, lane);
    stranger_call(lane);
}

/* ---- the node's side ------------------------------------------------------------------------- */

static trp_ref *kept; /* senders, as they came */
static uint32_t kept_count, kept_max;

static inline trp_err
keeper_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    (void)msg;
    if (kept_count < kept_max) {
        kept[kept_count++] = trp_sender(ctx);
    }
    return TRP_OK;
}
static const trp_behaviour keeper = { .size = sizeof(trp_behaviour),
                                      .name = "keeper",
                                      .receive = keeper_receive };

static inline void
drop_line(void *arg, const trp_log_line *line)
{
    (void)arg;
    t.forgotten_lines += strstr(line->text, "is forgotten") != NULL;
    if (getenv("SIM_LOG") != NULL) {
        fprintf(stderr, "%s: %s\n", line->source, line->text);
    }
}

static inline bool
network_goes_on(void *arg)
{
    (void)arg;
    trpi_mem_network_advance(t.network, trpi_world_mono_ns(trpi_virtual_world(t.virt)));
    return true;
}

static inline void
pass(uint32_t ms)
{
    for (uint32_t at = 0; at < ms; at += 10) {
        trpi_system_pass(t.system, 10);
    }
}

static inline void
start(trpi_remote_options options)
{
    trpi_virtual_options of_world = { .seed = 1, .calm = true };
    trp_system_options of_system = TRP_SYSTEM_OPTIONS_INIT;
    trp_spawn_options of_actor = TRP_SPAWN_OPTIONS_INIT;
    uint64_t id;
    memset(&t, 0, sizeof t);
    UNIT_REQUIRE(trpi_virtual_new(&of_world, &t.virt) == TRP_OK);
    UNIT_REQUIRE(trpi_mem_network_new(&t.network) == TRP_OK);
    of_system.workers = 1;
    of_system.log = drop_line;
    options.bind_port = -1;
    options.host = "n0";
    options.port = PORT;
    options.transport = &trpi_mem_transport_ops;
    options.transport_arg = t.network;
    options.flush_on_shutdown_ms = 1;
    UNIT_REQUIRE(trpi_system_new_in(trpi_virtual_world(t.virt), "node", &of_system, &t.system) ==
                 TRP_OK);
    UNIT_REQUIRE(trpi_remote_start(t.system, &options, &t.remote) == TRP_OK);
    UNIT_REQUIRE(trpi_system_every(t.system, 5, network_goes_on, NULL, NULL, &id) == TRP_OK);
    UNIT_REQUIRE(trpi_mem_transport_ops.open(t.network, trpi_virtual_world(t.virt), &outside_events,
                                             NULL, &t.outside) == TRP_OK);
    UNIT_REQUIRE(trp_system_spawn(t.system, &keeper, &of_actor, &t.keeper) == TRP_OK);
    kept_count = 0;
    kept_max = 0;
}

/* All strangers have been closed. */
static inline void
end(void)
{
    pass(1000);
    UNIT_EQUAL(trp_system_stop(t.system, 10000), TRP_OK);
    trpi_remote_stop(t.remote);
    trp_system_free(t.system);
    trpi_mem_transport_ops.stop(t.outside);
    trpi_mem_transport_ops.free(t.outside);
    trpi_mem_network_free(t.network);
    trpi_world_free(trpi_virtual_world(t.virt));
    free(kept);
    kept = NULL;
}

static inline void
keep(uint32_t max)
{
    kept = calloc(max, sizeof *kept);
    UNIT_REQUIRE(kept != NULL);
    kept_max = max;
}

static inline uint64_t
dead_letters(void)
{
    trp_system_stats stats = { .size = sizeof stats };
    uint64_t sum = 0;
    trp_system_stats_get(t.system, &stats);
    for (size_t i = 0; i < sizeof stats.dead_letters / sizeof stats.dead_letters[0]; i++) {
        sum += stats.dead_letters[i];
    }
    return sum;
}

static inline void
crowd_call(stranger *crowd, uint32_t count, uint64_t first)
{
    for (uint32_t i = 0; i < count; i++) {
        stranger_begin(&crowd[i], first + i);
        say_message(&crowd[i].first, t.keeper, NULL, 0);
        stranger_call(&crowd[i]);
    }
    pass(40);
}

static inline void
crowd_end(stranger *crowd, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) { /* one in two crashes */
        stranger_end(&crowd[i], i % 2 == 0);
    }
    pass(40);
    for (uint32_t i = 0; i < count; i++) {
        UNIT_TRUE(crowd[i].closed);
        stranger_free(&crowd[i]);
    }
}

static inline trpi_node_id
third_node(uint32_t number)
{
    trpi_node_id id;
    char text[64];
    memset(&id, 0, sizeof id);
    (void)snprintf(text, sizeof text, "troupe.mem://x@t%u:7", (unsigned)(number % 65536));
    UNIT_EQUAL(trpi_address_parse(text, &id.address, NULL, NULL), TRP_OK);
    id.uid = 77 + number;
    return id;
}

/* count of them, in messages to `to`. */
static inline void
say_names(trpi_buffer *out, trp_ref to, uint32_t first, uint32_t count)
{
    trpi_node_id named[NAMED_AT_ONCE];
    for (uint32_t i = 0; i < count; i += NAMED_AT_ONCE) {
        for (uint32_t k = 0; k < NAMED_AT_ONCE; k++) {
            named[k] = third_node(first + i + k);
        }
        say_message(out, to, named, NAMED_AT_ONCE);
    }
}

#endif
