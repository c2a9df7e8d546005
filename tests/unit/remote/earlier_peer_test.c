/* earlier_peer_test.c - what a node sends to a peer of an earlier version, byte for byte, while it
 * traces, too.
 *
 * The peer is made by hand: it shakes hands with the features of a test, and keeps each frame that
 * comes. tests/golden/peer-1.4.txt has what the library of release 0.1.0 sent to a peer of its own
 * version when an actor did what `front` does here. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <troupe/trace.h>

#include "base/wire.h"
#include "pattern/pattern.h"
#include "remote/wire/codec.h"
#include "tests/unit/golden.h"
#include "tests/unit/remote/pair.h"

enum { PEER_UID = 4711, SLOT = 7, GENERATION = 9, MINOR_0_1_0 = 4 };
#define PEER "troupe.tcp://test@127.0.0.1:9"

enum tracing { OFF, TOLD, SAMPLED };

typedef struct talk {
    uint32_t features, minor; /* of the peer */
    uint32_t own_minor;       /* of the node; 0: the newest */
    enum tracing tracing;
    bool later; /* also what 0.1.0 did not have: envelopes, channels of shards and topics */
} talk;

/* One connection: what has come on it. */
typedef struct line {
    int fd;
    trpi_buffer bytes;
} line;

static pair p;
static trp_ref far;
static bool later;

/* ---- the peer ------------------------------------------------------------------------------- */

static void
line_read(line *l)
{
    uint8_t bytes[4096];
    ssize_t n;
    while ((n = recv(l->fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
        UNIT_REQUIRE(trpi_buffer_append(&l->bytes, bytes, (size_t)n, SIZE_MAX) == TRP_OK);
    }
    UNIT_REQUIRE(n != 0); /* it was closed */
}

/* Give the next whole frame at *at, or false. */
static bool
line_next(const line *l, size_t *at, trpi_frame *ret_frame)
{
    *at = *at == 0 ? TRPI_PREAMBLE_BYTES : *at;
    if (l->bytes.count < *at + TRPI_FRAME_HEADER_BYTES) {
        return false;
    }
    trpi_frame_header_decode(l->bytes.data + *at, ret_frame);
    if (l->bytes.count - *at - TRPI_FRAME_HEADER_BYTES < ret_frame->bytes) {
        return false;
    }
    *at += TRPI_FRAME_HEADER_BYTES + ret_frame->bytes;
    return true;
}

/* Has a frame of this kind come whose body has this text in it? */
static bool
line_has(line *l, enum trpi_frame_kind kind, const char *text)
{
    trpi_frame frame;
    line_read(l);
    for (size_t at = 0; line_next(l, &at, &frame);) {
        if (frame.kind == (uint8_t)kind &&
            memmem(frame.body, frame.bytes, text, strlen(text)) != NULL) {
            return true;
        }
    }
    return false;
}

static void
line_send(line *l, const trpi_buffer *out)
{
    UNIT_REQUIRE(send(l->fd, out->data, out->count, MSG_NOSIGNAL) == (ssize_t)out->count);
}

/* Dial the node, send the preamble, and on the control lane shake hands. */
static void
line_open(line *l, enum trpi_lane lane, const talk *t)
{
    trpi_buffer out = { 0 };
    uint8_t head[TRPI_PREAMBLE_BYTES], epoch[4] = { 1, 0, 0, 0 };
    trpi_preamble preamble = { TRPI_WIRE_VERSION, (uint8_t)lane, 0, PEER_UID };
    struct sockaddr_in address = { .sin_family = AF_INET };
    trpi_handshake mine;
    memset(l, 0, sizeof *l);
    memset(&mine, 0, sizeof mine);
    mine.from.uid = PEER_UID;
    mine.to = *trpi_remote_address(p.remote[0]);
    mine.features = t->features;
    mine.minor = t->minor;
    UNIT_REQUIRE(trpi_address_parse(PEER, &mine.from.address, NULL, NULL) == TRP_OK);
    address.sin_port = htons(mine.to.port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    l->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    UNIT_REQUIRE(connect(l->fd, (struct sockaddr *)&address, sizeof address) == 0);
    trpi_preamble_encode(head, &preamble);
    (void)trpi_buffer_append(&out, head, sizeof head, SIZE_MAX);
    if (lane == TRPI_LANE_CONTROL) {
        UNIT_EQUAL(trpi_handshake_append(&out, TRPI_FRAME_HANDSHAKE_REQUEST, &mine), TRP_OK);
    }
    line_send(l, &out);
    if (lane == TRPI_LANE_CONTROL) {
        UNIT_WAIT(line_has(l, TRPI_FRAME_HANDSHAKE_RESPONSE, ""), 60000);
    }
    trpi_buffer_clear(&out);
    (void)trpi_frame_append(&out, TRPI_FRAME_LANE_OPEN, 0, 0, epoch, sizeof epoch);
    line_send(l, &out);
    /* the node answers in this way when it takes the connection: from now on it sends on it */
    UNIT_WAIT((line_read(l), l->bytes.count) >= TRPI_PREAMBLE_BYTES, 60000);
    trpi_buffer_fini(&out);
}

static void
line_close(line *l)
{
    (void)close(l->fd);
    trpi_buffer_fini(&l->bytes);
}

/* ---- the node ------------------------------------------------------------------------------- */

static trp_err
answered(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    (void)ctx;
    (void)state;
    (void)arg;
    (void)err;
    (void)reply;
    return TRP_OK;
}

/* For an entity and for a topic, both with a number in it. */
static void
envelopes_tell(trp_ctx *ctx)
{
    struct {
        trpi_entity_envelope head;
        char id[16];
        int64_t number;
    } entity;
    struct {
        trpi_topic_envelope head;
        char name[16];
        int64_t number;
    } topic;
    memset(&entity, 0, sizeof entity);
    entity.head.entity_type = 77;
    entity.head.epoch = 5;
    entity.head.gate = (trp_ref){ TRPI_NODE_SELF, 20, 21, 0 };
    entity.head.type = trp_i64_type.number;
    entity.head.id_bytes = 5;
    memcpy(entity.id, "order", 5);
    entity.number = 42;
    memset(&topic, 0, sizeof topic);
    topic.head.mediator = (trp_ref){ TRPI_NODE_SELF, 22, 23, 0 };
    topic.head.type = trp_i64_type.number;
    topic.head.head_bytes = 5;
    memcpy(topic.name, "topic", 5);
    topic.number = 43;
    trp_tell(ctx, far, &trpi_entity_envelope_type, &entity, sizeof entity);
    trp_tell(ctx, far, &trpi_topic_envelope_type, &topic, sizeof topic);
}

/* Sends of each kind what a node sends for an actor; a selection when told "select", for its frame
 * has no place among those of tells. */
static trp_err
front_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_bytes(msg) == 6) {
        UNIT_EQUAL(trp_select_tell(ctx, PEER "/user/any", &trp_string_type, "selected", 8), TRP_OK);
        return TRP_OK;
    }
    trp_tell_text(ctx, far, "told");
    for (int64_t number = 1; number <= 5; number++) {
        trp_tell(ctx, far, &trp_i64_type, &number, sizeof number);
    }
    UNIT_EQUAL(trp_ask(ctx, far, &trp_string_type, "asked", 5, 600000, answered, NULL), TRP_OK);
    UNIT_EQUAL(trp_watch(ctx, far), TRP_OK);
    if (later) {
        envelopes_tell(ctx);
    }
    trp_tell_text(ctx, far, "the end");
    return TRP_OK;
}
static const trp_behaviour front = {
    .size = sizeof(trp_behaviour), .name = "front", .version = 1, .receive = front_receive
};

/* One worker: what is told in a turn is encoded together. */
static void
node_start(const talk *t)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trpi_remote_options remote_options = { .wire_minor = t->own_minor,
                                           .ordinary_lanes = 1,
                                           .resend_ms = 600000 };
    static trp_type *const types[] = { &trpi_entity_envelope_type, &trpi_topic_envelope_type };
    static const trp_protocol envelopes = { .name = "envelopes", .types = types, .types_count = 2 };
    memset(&p, 0, sizeof p);
    options.workers = 1;
    options.log = pair_log_line;
    UNIT_REQUIRE(trp_protocol_register(&envelopes) == TRP_OK);
    UNIT_REQUIRE(trp_system_new("test", &options, &p.system[0]) == TRP_OK);
    pair_remote(&p, 0, &remote_options, 0);
}

static void
front_tell(const talk *t, trp_ref to, const char *text)
{
    static const trp_trace outside = { 0x0102030405060708, 0x1112131415161718, 99, 0, 0 };
    if (t->tracing == TOLD) {
        trp_system_tell_traced(p.system[0], to, (trp_ref)TRP_REF_NONE, &outside, &trp_string_type,
                               text, strlen(text));
    } else {
        trp_system_tell(p.system[0], to, &trp_string_type, text, strlen(text));
    }
}

static trp_ref
front_spawn(const talk *t)
{
    trp_ref ref = pair_spawn(p.system[0], &front, "front", NULL, NULL, 0);
    later = t->later;
    if (t->tracing == SAMPLED) {
        UNIT_EQUAL(trp_trace_sample(p.system[0], "/user/front", 1), TRP_OK);
    }
    return ref;
}

/* Send a frame of the control lane; its bytes are another room's. */
static void
control_send(const trpi_node_id *to, enum trpi_control_channel channel, const char *text)
{
    UNIT_EQUAL(trpi_remote_control_send(p.remote[0], to, channel, text, strlen(text)), TRP_OK);
}

/* ---- what was sent -------------------------------------------------------------------------- */

/* Where the body has the slot and generation of its sender, which differ from version to version,
 * or SIZE_MAX. */
static size_t
sender_at(const trpi_frame *frame)
{
    switch (frame->kind) {
    case TRPI_FRAME_USER:
    case TRPI_FRAME_MANY:
        return 8;
    case TRPI_FRAME_SELECT:
        return 0;
    case TRPI_FRAME_SYSTEM:
        return 8 + TRPI_SYSTEM_BODY_BYTES - 8;
    default:
        return SIZE_MAX;
    }
}

/* Does its time, or its number, depend on something else than what was told? */
static bool
is_of_the_association(const trpi_frame *frame)
{
    return frame->kind <= TRPI_FRAME_LANE_OPEN || frame->kind == TRPI_FRAME_PING ||
           frame->kind == TRPI_FRAME_PONG || frame->kind == TRPI_FRAME_ACK ||
           (frame->kind == TRPI_FRAME_CONTROL && frame->extra == TRPI_CHANNEL_HEARTBEAT);
}

static void
frame_write(FILE *file, const trpi_frame *frame, uint32_t *traced)
{
    size_t sender = sender_at(frame), bytes = frame->bytes;
    uint8_t flags = frame->flags;
    if ((frame->kind == TRPI_FRAME_USER || frame->kind == TRPI_FRAME_SELECT) &&
        (flags & TRPI_MESSAGE_TRACED) != 0) { /* nothing follows its trace section */
        flags &= (uint8_t)~TRPI_MESSAGE_TRACED;
        flags |= frame->kind == TRPI_FRAME_SELECT ? TRPI_MESSAGE_ANYONE : 0; /* for this one only */
        UNIT_REQUIRE(bytes > TRPI_TRACE_SECTION_BYTES);
        bytes -= TRPI_TRACE_SECTION_BYTES;
        ++*traced;
    }
    fprintf(file, "kind=%u flags=%u extra=%u ", frame->kind, flags, frame->extra);
    for (size_t i = 0; i < bytes; i++) {
        bool masked = sender != SIZE_MAX && i >= sender && i < sender + 8;
        fprintf(file, masked ? "--" : "%02x", frame->body[i]);
    }
    fprintf(file, "\n");
}

/* Have the node do all of it, and write the frames that the peer got, without their trace sections.
 * *ret_traced: how many had one. */
static void
talk_write(const talk *t, FILE *file, uint32_t *ret_traced)
{
    line control, ordinary;
    trpi_node_id peer = { .uid = PEER_UID };
    trpi_frame frame;
    node_start(t);
    UNIT_REQUIRE(trpi_address_parse(PEER, &peer.address, NULL, NULL) == TRP_OK);
    line_open(&control, TRPI_LANE_CONTROL, t);
    line_open(&ordinary, TRPI_LANE_ORDINARY, t);
    far = (trp_ref){ 0, SLOT, GENERATION, 0 };
    UNIT_REQUIRE(trpi_node_intern(p.system[0], &peer, &far.node) == TRP_OK);
    trp_ref from = front_spawn(t);
    front_tell(t, from, "go");
    UNIT_WAIT(line_has(&ordinary, TRPI_FRAME_USER, "the end"), 60000);
    UNIT_WAIT(line_has(&control, TRPI_FRAME_SYSTEM, ""), 60000);
    front_tell(t, from, "select");
    UNIT_WAIT(line_has(&ordinary, TRPI_FRAME_SELECT, "selected"), 60000);
    control_send(&peer, TRPI_CHANNEL_GOSSIP, "gossip");
    control_send(&peer, TRPI_CHANNEL_METRICS, "metrics");
    if (t->later) {
        control_send(&peer, TRPI_CHANNEL_SHARDING, "shards");
        control_send(&peer, TRPI_CHANNEL_PUBSUB, "topics");
    }
    control_send(&peer, TRPI_CHANNEL_NODE, "the end");
    UNIT_WAIT(line_has(&control, TRPI_FRAME_CONTROL, "the end"), 60000);
    *ret_traced = 0;
    for (int i = 0; i < 2; i++) {
        for (size_t at = 0; line_next(i == 0 ? &control : &ordinary, &at, &frame);) {
            if (!is_of_the_association(&frame)) {
                frame_write(file, &frame, ret_traced);
            }
        }
    }
    line_close(&control);
    line_close(&ordinary);
    pair_end(&p);
}

static void
talk_text(const talk *t, char text[16384], uint32_t *ret_traced)
{
    FILE *file = fmemopen(text, 16384, "w");
    UNIT_REQUIRE(file != NULL);
    talk_write(t, file, ret_traced);
    (void)fclose(file);
}

/* ---- tests ---------------------------------------------------------------------------------- */

/* A peer of release 0.1.0 takes all but traces and marks. */
static talk
talk_of(enum tracing tracing)
{
    return (talk){ .features = TRPI_FEATURES_MINOR_4, .minor = MINOR_0_1_0, .tracing = tracing };
}

static void
golden_write(FILE *file)
{
    talk t = talk_of(OFF);
    uint32_t traced;
    talk_write(&t, file, &traced);
    UNIT_EQUAL(traced, 0);
}

static void
golden_write_told(FILE *file)
{
    talk t = talk_of(TOLD);
    uint32_t traced;
    talk_write(&t, file, &traced);
    UNIT_EQUAL(traced, 0);
}

static void
golden_write_sampled(FILE *file)
{
    talk t = talk_of(SAMPLED);
    uint32_t traced;
    talk_write(&t, file, &traced);
    UNIT_EQUAL(traced, 0);
}

/* HOW-09 REMOTE-30: tells, questions, selections, system messages, batches and control frames */
static void
a_peer_of_0_1_0_gets_the_bytes_of_0_1_0(void)
{
    (void)unit_golden("peer-1.4.txt", golden_write);
}

/* HOW-09: a message of a trace that shares a frame, too */
static void
a_peer_of_0_1_0_gets_the_same_bytes_while_the_node_traces(void)
{
    (void)unit_golden("peer-1.4.txt", golden_write_told);
    (void)unit_golden("peer-1.4.txt", golden_write_sampled);
}

/* HOW-09. Envelopes of shards and of topics as well. Also where the node itself does not offer
 * traces. */
static void
no_peer_without_the_feature_gets_a_trace_section(void)
{
    static char off[16384], on[16384];
    uint32_t traced;
    talk t = talk_of(OFF);
    t.later = true;
    talk_text(&t, off, &traced);
    UNIT_EQUAL(traced, 0);
    for (int i = 0; i < 2; i++) {
        t.tracing = i == 0 ? TOLD : SAMPLED;
        talk_text(&t, on, &traced);
        UNIT_EQUAL(traced, 0);
        UNIT_TEXT(on, off);
    }
    t = (talk){ .features = TRPI_FEATURES_OWN,
                .minor = TRPI_WIRE_MINOR,
                .own_minor = MINOR_0_1_0,
                .tracing = SAMPLED,
                .later = true };
    talk_text(&t, on, &traced);
    UNIT_EQUAL(traced, 0);
    UNIT_TEXT(on, off);
}

/* Each message has a trace section, and a frame of its own; without tracing nothing has one. */
static void
a_peer_with_the_feature_gets_the_section_and_nothing_else(void)
{
    static char off[16384], on[16384];
    uint32_t traced;
    talk t = { .features = TRPI_FEATURES_OWN & ~(uint32_t)TRPI_FEATURE_MANY,
               .minor = TRPI_WIRE_MINOR,
               .tracing = OFF,
               .later = true };
    talk_text(&t, off, &traced);
    UNIT_EQUAL(traced, 0);
    t.features = TRPI_FEATURES_OWN;
    t.tracing = SAMPLED;
    talk_text(&t, on, &traced);
    UNIT_EQUAL(traced, 11); /* 9 of tells, a question, a selection */
    UNIT_TEXT(on, off);
}

static void
messages_share_a_frame_where_the_peer_takes_that(void)
{
    static char text[16384];
    uint32_t traced;
    talk t = talk_of(OFF);
    talk_text(&t, text, &traced);
    UNIT_TRUE(strstr(text, "kind=16 ") != NULL);
    t.features &= ~(uint32_t)TRPI_FEATURE_MANY;
    talk_text(&t, text, &traced);
    UNIT_TRUE(strstr(text, "kind=16 ") == NULL);
}

UNIT_BEGIN("earlier_peer")
UNIT(a_peer_of_0_1_0_gets_the_bytes_of_0_1_0)
UNIT(a_peer_of_0_1_0_gets_the_same_bytes_while_the_node_traces)
UNIT(no_peer_without_the_feature_gets_a_trace_section)
UNIT(a_peer_with_the_feature_gets_the_section_and_nothing_else)
UNIT(messages_share_a_frame_where_the_peer_takes_that)
UNIT_END
