/* garbage_test.c - peers that violate the protocol: garbage, huge lengths, other versions, silence;
 * and limits. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/wire.h"
#include "pattern/reliable.h"
#include "remote/wire/codec.h"
#include "remote/association/conn.h"
#include "remote/association/peer.h"
#include "tests/unit/remote/pair.h"

static pair p;

static int
port_dial(uint16_t port)
{
    struct sockaddr_in address = { 0 };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    UNIT_REQUIRE(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    return fd;
}

static bool
closed_by_peer(int fd)
{
    char byte[256];
    struct timeval limit = { 60, 0 };
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ssize_t n;
    while ((n = recv(fd, byte, sizeof byte, 0)) > 0 || (n < 0 && errno == EINTR)) {
    }
    return n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

static trpi_remote_stats
side_stats(int i)
{
    trpi_remote_stats s;
    trpi_remote_stats_get(p.remote[i], &s);
    return s;
}

static void
throw_at_right(const void *bytes, size_t count)
{
    int fd = port_dial(trpi_remote_address(p.remote[1])->port);
    UNIT_TRUE(send(fd, bytes, count, MSG_NOSIGNAL) == (ssize_t)count);
    UNIT_TRUE(closed_by_peer(fd));
    (void)close(fd);
}

static bool
echo_answers(void)
{
    char path[TRP_PATH_BYTES_MAX];
    trp_msg *reply = NULL;
    trp_err err =
        trp_system_ask_path(p.system[0], pair_path(&p, 1, "/user/echo", path, sizeof path),
                            &trp_string_type, "x", 1, 10000, &reply);
    trp_msg_free(reply);
    return err == TRP_OK;
}

/* Some of the tests have handshake timeouts which a busy machine misses now and then. */
static void
still_works(void)
{
    UNIT_WAIT(echo_answers(), 60000);
}

static void
systems_start(const trpi_remote_options *options, bool mem)
{
    pair_start(&p, mem, options);
    pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0);
}

static size_t
preamble_put(uint8_t *out, uint8_t version, uint8_t lane)
{
    trpi_preamble pre = { version, lane, 0, 4711 };
    trpi_preamble_encode(out, &pre);
    return TRPI_PREAMBLE_BYTES;
}

/* Garbage costs a line and a counter */
static void
garbage_is_counted_and_the_connection_dropped(void)
{
    uint64_t began_ms = unit_now_ms(); /* one line in ten seconds */
    systems_start(NULL, false);
    throw_at_right("GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27);
    UNIT_WAIT(side_stats(1).garbage == 1, 60000);
    UNIT_WAIT(pair_logged("not this protocol"), 60000);
    for (int i = 0; i < 20; i++) {
        throw_at_right("0123456789abcdef", 16);
    }
    UNIT_WAIT(side_stats(1).garbage == 21, 60000);
    still_works();
    UNIT_TRUE(pair_log_count("not this protocol") <= 1 + (unit_now_ms() - began_ms) / 10000);
    pair_end(&p);
}

static void
a_huge_length_is_refused_before_it_is_allocated(void)
{
    uint8_t bytes[TRPI_PREAMBLE_BYTES + 8];
    systems_start(NULL, false);
    (void)preamble_put(bytes, TRPI_WIRE_VERSION, TRPI_LANE_CONTROL);
    trpi_frame_header_encode(bytes + TRPI_PREAMBLE_BYTES, 0xffffffffu, TRPI_FRAME_HANDSHAKE_REQUEST,
                             0, 0);
    throw_at_right(bytes, sizeof bytes);
    UNIT_WAIT(side_stats(1).oversize == 1, 60000);
    still_works();
    pair_end(&p);
}

/* MEMB-29: a peer that cannot be dialled by its address is refused: without a host, or of another
 * protocol
 */
static void
an_address_that_nobody_can_have_is_refused(void)
{
    static const char *const froms[] = { "troupe://left", "troupe.tls://left@127.0.0.1:9",
                                         "troupe.mem://left@127.0.0.1:9",
                                         "troupe.tcp://left@~0000000000001267",
                                         "troupe.tcp://left@~0000000000001268" };
    systems_start(NULL, false);
    for (size_t i = 0; i < sizeof froms / sizeof froms[0]; i++) {
        trpi_buffer out = { 0 };
        uint8_t bytes[TRPI_PREAMBLE_BYTES];
        trpi_handshake request = { .to = *trpi_remote_address(p.remote[1]), .from.uid = 4711 };
        /* a client's name, which is good for a receptionist alone, and one of another uid */
        trpi_remote_clients_accept(p.remote[1], i == 4 ? 8 : 0);
        UNIT_REQUIRE(trpi_address_parse(froms[i], &request.from.address, NULL, NULL) == TRP_OK);
        (void)preamble_put(bytes, TRPI_WIRE_VERSION, TRPI_LANE_CONTROL);
        UNIT_EQUAL(trpi_buffer_append(&out, bytes, sizeof bytes, SIZE_MAX), TRP_OK);
        UNIT_EQUAL(trpi_handshake_append(&out, TRPI_FRAME_HANDSHAKE_REQUEST, &request), TRP_OK);
        throw_at_right(out.data, out.count);
        UNIT_WAIT(side_stats(1).handshakes_failed == i + 1, 60000);
        trpi_buffer_fini(&out);
    }
    trpi_peer_info info;
    size_t count = 0;
    trpi_remote_peers(p.remote[1], &info, 1, &count);
    UNIT_EQUAL(count, 0);
    UNIT_WAIT(pair_logged("you advertise no host and port"), 60000);
    still_works();
    pair_end(&p);
}

static void
another_version_is_named_in_the_log(void)
{
    uint8_t bytes[TRPI_PREAMBLE_BYTES];
    systems_start(NULL, false);
    throw_at_right(bytes, preamble_put(bytes, 9, TRPI_LANE_CONTROL));
    UNIT_WAIT(side_stats(1).wrong_version == 1, 60000);
    UNIT_WAIT(pair_logged("wire version 9"), 60000);
    still_works();
    pair_end(&p);
}

static void
a_peer_that_says_nothing_is_dropped_at_the_handshake_timeout(void)
{
    trpi_remote_options options = { .handshake_timeout_ms = 300 };
    systems_start(&options, false);
    uint64_t before = unit_now_ms();
    int fd = port_dial(trpi_remote_address(p.remote[1])->port);
    UNIT_TRUE(closed_by_peer(fd));
    UNIT_TRUE(unit_now_ms() - before >= 250);
    (void)close(fd);
    UNIT_WAIT(side_stats(1).handshake_timeouts == 1, 60000);
    UNIT_WAIT(pair_logged("no handshake within 300 ms"), 60000);
    still_works();
    pair_end(&p);
}

static void
frames_before_the_handshake_and_lanes_of_strangers_are_refused(void)
{
    uint8_t bytes[TRPI_PREAMBLE_BYTES + 8];
    systems_start(NULL, false);
    (void)preamble_put(bytes, TRPI_WIRE_VERSION, TRPI_LANE_CONTROL);
    trpi_frame_header_encode(bytes + TRPI_PREAMBLE_BYTES, 0, TRPI_FRAME_USER, 0, 0);
    throw_at_right(bytes, sizeof bytes);
    UNIT_WAIT(side_stats(1).garbage == 1, 60000);
    throw_at_right(bytes, preamble_put(bytes, TRPI_WIRE_VERSION, TRPI_LANE_ORDINARY));
    UNIT_WAIT(side_stats(1).handshakes_failed == 1, 60000);
    still_works();
    pair_end(&p);
}

/* REMOTE-02: a node that is dialled by another address than its own refuses and names both */
static void
a_node_that_is_called_by_another_address_says_so(void)
{
    systems_start(NULL, false);
    char path[TRP_PATH_BYTES_MAX];
    (void)snprintf(path, sizeof path, "troupe.tcp://right@localhost:%u/user/echo",
                   trpi_remote_address(p.remote[1])->port);
    UNIT_EQUAL(trp_system_select_tell(p.system[0], path, &trp_string_type, "x", 1), TRP_OK);
    UNIT_WAIT(pair_logged("you called troupe.tcp://right@localhost"), 60000);
    still_works();
    pair_end(&p);
}

/* ---- a peer made by hand ------------------------------------------------------------------- */

static uint64_t dead_count(int i, trp_dead_reason reason);

/* Asks the right system to shake hands on a control connection, as uid; returns the socket. */
static int
hand_shake_from(const char *address, uint64_t uid, enum trpi_frame_kind *ret_answer)
{
    trpi_buffer out = { 0 };
    uint8_t pre[TRPI_PREAMBLE_BYTES];
    trpi_preamble mine = { TRPI_WIRE_VERSION, TRPI_LANE_CONTROL, 0, uid };
    trpi_handshake request;
    memset(&request, 0, sizeof request);
    request.from.uid = uid;
    request.to = *trpi_remote_address(p.remote[1]);
    UNIT_EQUAL(trpi_address_parse(address, &request.from.address, NULL, NULL), TRP_OK);
    trpi_preamble_encode(pre, &mine);
    UNIT_EQUAL(trpi_buffer_append(&out, pre, sizeof pre, TRPI_BUFFER_NO_LIMIT), TRP_OK);
    UNIT_EQUAL(trpi_handshake_append(&out, TRPI_FRAME_HANDSHAKE_REQUEST, &request), TRP_OK);
    int fd = port_dial(trpi_remote_address(p.remote[1])->port);
    UNIT_TRUE(send(fd, out.data, out.count, MSG_NOSIGNAL) == (ssize_t)out.count);
    uint8_t answer[TRPI_PREAMBLE_BYTES + 8];
    UNIT_TRUE(recv(fd, answer, sizeof answer, MSG_WAITALL) == (ssize_t)sizeof answer);
    trpi_frame frame;
    trpi_frame_header_decode(answer + TRPI_PREAMBLE_BYTES, &frame);
    trpi_buffer_fini(&out);
    *ret_answer = (enum trpi_frame_kind)frame.kind;
    return fd;
}

static int
hand_shake(uint64_t uid, enum trpi_frame_kind *ret_answer)
{
    return hand_shake_from("troupe.tcp://hand@127.0.0.1:9", uid, ret_answer);
}

static void send_frame(int fd, enum trpi_frame_kind kind, uint16_t extra, const void *body,
                       size_t bytes);

/* As that, and is let in and opens its lane. */
static int
hand_made_peer_again(uint64_t uid, uint8_t epoch)
{
    enum trpi_frame_kind answer;
    uint8_t body[4] = { epoch, 0, 0, 0 };
    int fd = hand_shake(uid, &answer);
    UNIT_EQUAL(answer, TRPI_FRAME_HANDSHAKE_RESPONSE);
    send_frame(fd, TRPI_FRAME_LANE_OPEN, 0, body, sizeof body);
    return fd;
}
static int
hand_made_peer(uint64_t uid)
{
    return hand_made_peer_again(uid, 1);
}

static void
send_frame(int fd, enum trpi_frame_kind kind, uint16_t extra, const void *body, size_t bytes)
{
    trpi_buffer out = { 0 };
    UNIT_EQUAL(trpi_frame_append(&out, kind, 0, extra, body, bytes), TRP_OK);
    UNIT_TRUE(send(fd, out.data, out.count, MSG_NOSIGNAL) == (ssize_t)out.count);
    trpi_buffer_fini(&out);
}

static size_t
user_body(uint8_t *body, uint64_t wire_id, size_t payload_bytes)
{
    memset(body, 0, 24 + payload_bytes);
    trpi_put_u32(body + 4, 1); /* a slot and generation without actor */
    trpi_put_u64(body + 16, wire_id);
    return 24 + payload_bytes;
}

/* SERIAL-08 REMOTE-44: each frame is dropped alone, the association stays */
static void
messages_that_cannot_be_read_are_dropped_alone(void)
{
    uint8_t body[64];
    systems_start(NULL, false);
    int fd = hand_made_peer(4711);
    send_frame(fd, TRPI_FRAME_USER, TRPI_SERIALIZER_RAW, body, user_body(body, 0x1234567, 8));
    UNIT_WAIT(dead_count(1, TRP_DEAD_NOT_ENCODABLE) == 1,
              60000); /* a type that is not known here */
    UNIT_EQUAL(side_stats(1).decode_errors, 0);
    uint64_t i64 = trpi_type_wire_id(trp_i64_type.number);
    send_frame(fd, TRPI_FRAME_USER, TRPI_SERIALIZER_RAW, body, user_body(body, i64, 7));
    UNIT_WAIT(side_stats(1).decode_errors == 1, 60000); /* a size that the type does not have */
    send_frame(fd, TRPI_FRAME_USER, 55, body, user_body(body, i64, 8));
    UNIT_WAIT(side_stats(1).decode_errors == 2, 60000); /* a serializer that is not registered */
    send_frame(fd, TRPI_FRAME_USER, TRPI_SERIALIZER_RAW, body, 23);
    UNIT_WAIT(side_stats(1).decode_errors == 3, 60000); /* too short */
    send_frame(fd, TRPI_FRAME_SYSTEM, 0, body, 27);
    UNIT_WAIT(side_stats(1).decode_errors == 4, 60000);
    UNIT_EQUAL(trp_protocol_register(&trp_reliable_proxy_protocol), TRP_OK);
    uint64_t parcel = trpi_type_wire_id(trpi_parcel_type.number);
    uint8_t whole[24 + sizeof(trpi_parcel)];
    send_frame(fd, TRPI_FRAME_USER, TRPI_SERIALIZER_RAW, whole,
               user_body(whole, parcel, sizeof(trpi_parcel)));
    UNIT_WAIT(side_stats(1).decode_errors == 5, 60000); /* memory, as its sender would like it */
    trpi_peer_info info;
    size_t count = 0;
    trpi_remote_peers(p.remote[1], &info, 1, &count);
    UNIT_TRUE(count == 1 && strcmp(info.state, "active") == 0);
    (void)close(fd);
    still_works();
    pair_end(&p);
}

/* A frame of a kind that this version does not know: skipped and counted, on either side of what it
 * knows. Before the handshake it is an error like any other frame. */
static void
a_frame_of_a_later_version_is_skipped(void)
{
    uint8_t body[64] = { 0 };
    systems_start(NULL, false);
    int fd = hand_made_peer(4720);
    send_frame(fd, (enum trpi_frame_kind)77, 9, body, sizeof body);
    send_frame(fd, (enum trpi_frame_kind)255, 0, NULL, 0);
    send_frame(fd, TRPI_FRAME_USER, TRPI_SERIALIZER_RAW, body, user_body(body, 0x1234567, 8));
    UNIT_WAIT(dead_count(1, TRP_DEAD_NOT_ENCODABLE) == 1, 60000); /* the next frame is read */
    UNIT_EQUAL(side_stats(1).frames_skipped, 2);
    UNIT_EQUAL(side_stats(1).garbage, 0);
    uint8_t early[TRPI_PREAMBLE_BYTES + TRPI_FRAME_HEADER_BYTES];
    (void)preamble_put(early, TRPI_WIRE_VERSION, TRPI_LANE_CONTROL);
    trpi_frame_header_encode(early + TRPI_PREAMBLE_BYTES, 0, 77, 0, 0);
    throw_at_right(early, sizeof early);
    UNIT_WAIT(side_stats(1).garbage == 1, 60000);
    (void)close(fd);
    still_works();
    pair_end(&p);
}

/* Two names with one id are refused in the handshake; both are named */
static void
two_type_names_with_one_id_are_refused_and_both_are_named(void)
{
    uint8_t body[64];
    systems_start(NULL, false);
    int fd = hand_made_peer(4712);
    trpi_put_u64(body, trpi_type_wire_id(trp_i64_type.number));
    memcpy(body + 8, "other.name", 10);
    send_frame(fd, TRPI_FRAME_MANIFEST, 0, body, 18);
    UNIT_TRUE(closed_by_peer(fd));
    UNIT_WAIT(side_stats(1).quarantined == 1, 60000);
    UNIT_WAIT(pair_logged("types other.name (there) and"), 60000);
    UNIT_WAIT(pair_logged(trp_i64_type.name), 60000);
    (void)close(fd);
    still_works();
    pair_end(&p);
}

static void
a_type_that_is_not_known_here_is_named_in_the_log(void)
{
    uint8_t body[64];
    systems_start(NULL, false);
    int fd = hand_made_peer(4713);
    trpi_put_u64(body, 99);
    memcpy(body + 8, "far.away", 8);
    send_frame(fd, TRPI_FRAME_MANIFEST, 0, body, 16);
    UNIT_WAIT(pair_logged("type=far.away"), 60000);
    (void)close(fd);
    pair_end(&p);
}

/* remote-inbound-B1: so that a late connection cannot bring messages behind those of a newer one */
static void
a_message_of_a_connection_that_was_replaced_is_dropped_and_counted(void)
{
    uint8_t body[64];
    size_t bytes = user_body(body, 0x1234567, 8);
    systems_start(NULL, false);
    int first = hand_made_peer_again(4730, 1);
    send_frame(first, TRPI_FRAME_USER, TRPI_SERIALIZER_RAW, body, bytes);
    UNIT_WAIT(dead_count(1, TRP_DEAD_NOT_ENCODABLE) == 1, 60000); /* it has opened the lane */
    int second = hand_made_peer_again(4730, 2);
    send_frame(second, TRPI_FRAME_USER, TRPI_SERIALIZER_RAW, body, bytes);
    UNIT_WAIT(dead_count(1, TRP_DEAD_NOT_ENCODABLE) == 2, 60000); /* and that one anew */
    UNIT_EQUAL(side_stats(1).frames_stale, 0);
    send_frame(first, TRPI_FRAME_USER, TRPI_SERIALIZER_RAW, body, bytes);
    UNIT_WAIT(side_stats(1).frames_stale == 1, 60000);
    send_frame(second, TRPI_FRAME_USER, TRPI_SERIALIZER_RAW, body, bytes);
    UNIT_WAIT(dead_count(1, TRP_DEAD_NOT_ENCODABLE) == 3, 60000);
    UNIT_EQUAL(side_stats(1).frames_stale, 1);
    (void)close(first);
    (void)close(second);
    pair_end(&p);
}

/* One past TRPI_PEER_CONNS_MAX, on the control lane and on another one. */
static void
a_peer_has_so_many_connections_and_not_one_more(void)
{
    trpi_remote_options options = { .link_pause_ms = 60000 }; /* it answers no PING */
    uint8_t lane[TRPI_PREAMBLE_BYTES];
    trpi_preamble pre = { TRPI_WIRE_VERSION, TRPI_LANE_ORDINARY, 0, 4740 };
    enum trpi_frame_kind answer;
    int fds[TRPI_PEER_CONNS_MAX];
    systems_start(&options, false);
    for (int i = 0; i < TRPI_PEER_CONNS_MAX; i++) {
        fds[i] = hand_shake(4740, &answer);
        UNIT_EQUAL(answer, TRPI_FRAME_HANDSHAKE_RESPONSE);
    }
    UNIT_EQUAL(side_stats(1).handshakes_failed, 0);
    int more = hand_shake(4740, &answer);
    UNIT_EQUAL(answer, TRPI_FRAME_HANDSHAKE_REFUSAL);
    UNIT_TRUE(closed_by_peer(more));
    (void)close(more);
    UNIT_WAIT(pair_logged("too many connections of this peer"), 60000);
    trpi_preamble_encode(lane, &pre);
    throw_at_right(lane, sizeof lane);
    UNIT_WAIT(side_stats(1).handshakes_failed == 2, 60000);
    (void)close(fds[0]); /* then there is room again */
    uint64_t until_ms = unit_now_ms() + 60000;
    for (answer = TRPI_FRAME_HANDSHAKE_REFUSAL; answer != TRPI_FRAME_HANDSHAKE_RESPONSE;) {
        UNIT_REQUIRE(unit_now_ms() < until_ms);
        fds[0] = hand_shake(4740, &answer);
        if (answer != TRPI_FRAME_HANDSHAKE_RESPONSE) {
            (void)close(fds[0]);
        }
    }
    for (int i = 0; i < TRPI_PEER_CONNS_MAX; i++) {
        (void)close(fds[i]);
    }
    still_works();
    pair_end(&p);
}

/* A lane's epoch only rises; a peer that lowers it loses the connection. */
static void
a_lane_epoch_that_does_not_rise_ends_the_connection(void)
{
    uint8_t epoch[4] = { 1, 0, 0, 0 };
    systems_start(NULL, false);
    int fd = hand_made_peer(4714);
    send_frame(fd, TRPI_FRAME_LANE_OPEN, 0, epoch, sizeof epoch);
    UNIT_TRUE(closed_by_peer(fd));
    (void)close(fd);
    still_works();
    pair_end(&p);
}

/* ---- limits ---------------------------------------------------------------------------------- */

static uint64_t
dead_count(int i, trp_dead_reason reason)
{
    trp_system_stats s = { .size = sizeof s };
    trp_system_stats_get(p.system[i], &s);
    return s.dead_letters[reason];
}

static trp_ref
echo_ref(void)
{
    char path[TRP_PATH_BYTES_MAX];
    trp_ref ref = TRP_REF_NONE;
    UNIT_WAIT(trp_system_resolve(p.system[0], pair_path(&p, 1, "/user/echo", path, sizeof path),
                                 10000, &ref) == TRP_OK,
              60000);
    return ref;
}

/* REMOTE-43, MSG-12, REMOTE-15: at the limit and one past it; the association stays */
static void
a_message_larger_than_a_frame_is_dropped_alone(void)
{
    static uint8_t payload[4096];
    trpi_remote_options options = { .frame_bytes_max = 4096 };
    systems_start(&options, false);
    trp_ref echo = echo_ref();
    trp_msg *reply = NULL;
    UNIT_EQUAL(
        trp_system_ask(p.system[0], echo, &trp_bytes_type, payload, 4096 - 24, 60000, &reply),
        TRP_OK);
    trp_msg_free(reply);
    reply = NULL;
    UNIT_EQUAL(
        trp_system_ask(p.system[0], echo, &trp_bytes_type, payload, 4096 - 23, 60000, &reply),
        TRP_EMSGSIZE);
    trp_msg_free(reply);
    UNIT_WAIT(dead_count(0, TRP_DEAD_TOO_LARGE) == 1, 60000);
    UNIT_WAIT(pair_logged("larger than maximum-frame-size"), 60000);
    still_works();
    pair_end(&p);
}

static trpi_mem_verdict
refuse_all(void *arg, trpi_mem_event *event)
{
    (void)arg;
    (void)event;
    return TRPI_MEM_CUT;
}

/* Messages for a full lane become dead letters, and so do those that waited too long. */
static void
a_lane_holds_so_many_bytes_and_no_longer_than_a_handshake_may_take(void)
{
    trpi_remote_options options = { .frame_bytes_max = 4096,
                                    .lane_bytes_max = 8192,
                                    .handshake_timeout_ms = 1500 };
    systems_start(&options, true);
    trp_ref echo = echo_ref();
    static uint8_t payload[2000];
    trpi_mem_network_fault_set(p.network, refuse_all, NULL);
    trpi_mem_network_cut(p.network, NULL, NULL);
    UNIT_WAIT(strcmp(pair_state(&p, 0), "gated") == 0, 60000);
    trpi_peer *peer = NULL;
    UNIT_REQUIRE(trpi_peer_get(p.remote[0], trpi_remote_address(p.remote[1]), false, &peer) ==
                 TRP_OK);
    const trpi_lane_state *lane = &peer->lanes[TRPI_LANE_ORDINARY];
    bool in_time = false;
    for (int i = 0; i < 20 && !in_time; i++) { /* until the fifth comes before the first is old */
        uint64_t full = dead_count(0, TRP_DEAD_LANE_FULL),
                 old = dead_count(0, TRP_DEAD_NOT_CONNECTED);
        uint64_t began_ms = unit_now_ms();
        /* 4 x (8 + 24 + 2000) and a manifest of some 30 bytes fit, a fifth does not */
        for (int k = 0; k < 5; k++) {
            trp_system_tell(p.system[0], echo, &trp_bytes_type, payload, sizeof payload);
        }
        /* all are in the lane or dead: the proxy may be slow, too */
        UNIT_WAIT(dead_count(0, TRP_DEAD_LANE_FULL) > full ||
                      dead_count(0, TRP_DEAD_NOT_CONNECTED) > old ||
                      atomic_load(&lane->queue.bytes) > 5 * sizeof payload,
                  60000);
        in_time = unit_now_ms() - began_ms < 1000;
        UNIT_WAIT(dead_count(0, TRP_DEAD_LANE_FULL) + dead_count(0, TRP_DEAD_NOT_CONNECTED) ==
                      full + old + 5,
                  60000);
        if (in_time) {
            UNIT_EQUAL(dead_count(0, TRP_DEAD_LANE_FULL), full + 1);
            UNIT_EQUAL(dead_count(0, TRP_DEAD_NOT_CONNECTED), old + 4);
        }
    }
    UNIT_TRUE(in_time);
    trpi_peer_unpin(peer);
    trpi_mem_network_fault_set(p.network, NULL, NULL);
    still_works();
    pair_end(&p);
}

static trp_err
watch_many_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_ref ref;
    (void)state;
    if (trp_msg_is(msg, &trp_bytes_type)) {
        memcpy(&ref, trp_msg_payload(msg), sizeof ref);
        for (int i = 0; i < 10; i++) {
            trp_err err = trp_watch(ctx, ref);
            UNIT_EQUAL(err, TRP_OK);
            trp_unwatch(ctx, ref);
        }
    }
    return TRP_OK;
}
static const trp_behaviour watch_many = TRP_BEHAVIOUR_INIT("watch-many", char, watch_many_receive);

/* REMOTE-37: more unacknowledged system messages than allowed: the incarnation is quarantined */
static void
too_many_unacknowledged_system_messages_quarantine(void)
{
    trpi_remote_options options = { .system_messages_max = 8 };
    systems_start(&options, true);
    trp_ref echo = echo_ref();
    trpi_mem_network_fault_set(p.network, refuse_all, NULL);
    trpi_mem_network_cut(p.network, NULL, NULL);
    UNIT_WAIT(strcmp(pair_state(&p, 0), "gated") == 0, 60000);
    trp_ref who = pair_spawn(p.system[0], &watch_many, NULL, NULL, NULL, 0);
    trp_system_tell(p.system[0], who, &trp_bytes_type, &echo, sizeof echo);
    UNIT_WAIT(strcmp(pair_state(&p, 0), "quarantined") == 0, 60000);
    UNIT_WAIT(side_stats(0).quarantined == 1, 60000);
    UNIT_WAIT(pair_logged("too many unacknowledged system messages"), 60000);
    trpi_mem_network_fault_set(p.network, NULL, NULL);
    pair_end(&p);
}

/* No limit was reached, so none is named. */
static void
who_comes_while_a_node_stops_is_let_go_without_a_word(void)
{
    void *user = &p;
    pair_start(&p, true, NULL);
    atomic_store(&p.remote[0]->stopping, true);
    UNIT_FALSE(trpi_conn_events.accepted(p.remote[0], NULL, "nobody", &user));
    atomic_store(&p.remote[0]->stopping, false);
    UNIT_TRUE(user == NULL);
    UNIT_EQUAL(side_stats(0).refused[TRPI_REFUSED_PENDING], 0);
    UNIT_FALSE(pair_logged("connection refused"));
    pair_end(&p);
}

static atomic_uint hearings;

static trp_err
listener_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    atomic_fetch_add(&hearings, 1);
    return TRP_OK;
}
static const trp_behaviour listener = TRP_BEHAVIOUR_INIT("listener", char, listener_receive);

/* Clients one after the other, each with an address of its own, whose message is delivered;
 * TROUPE_STRANGERS is their number: as many as there are numbers of nodes in tests/run --long
 * (tests/sim/strangers_test.c has them always). */
static void
clients_in_turn_are_all_heard(void)
{
    const char *text = getenv("TROUPE_STRANGERS");
    uint32_t count = text != NULL ? (uint32_t)strtoul(text, NULL, 10) : 50;
    uint8_t body[64], epoch[4] = { 1, 0, 0, 0 };
    systems_start(NULL, false);
    atomic_store(&hearings, 0);
    trp_ref ear = pair_spawn(p.system[1], &listener, "ear", NULL, NULL, 0);
    for (uint32_t i = 0; i < count; i++) {
        enum trpi_frame_kind answer;
        char address[64];
        (void)snprintf(address, sizeof address, "troupe.tcp://hand@127.0.%u.%u:%u",
                       (unsigned)(i >> 8 & 255), (unsigned)(i & 255), (unsigned)(9 + (i >> 16)));
        int fd = hand_shake_from(address, 5000000 + i, &answer);
        UNIT_REQUIRE(answer == TRPI_FRAME_HANDSHAKE_RESPONSE);
        send_frame(fd, TRPI_FRAME_LANE_OPEN, 0, epoch, sizeof epoch);
        size_t bytes = user_body(body, trpi_type_wire_id(trp_i64_type.number), 8);
        trpi_put_u32(body, ear.slot);
        trpi_put_u32(body + 4, ear.generation);
        send_frame(fd, TRPI_FRAME_USER, TRPI_SERIALIZER_RAW, body, bytes);
        send_frame(fd, TRPI_FRAME_GOODBYE, 0, NULL, 0);
        UNIT_TRUE(shutdown(fd, SHUT_WR) == 0 && closed_by_peer(fd)); /* it was read */
        (void)close(fd);
    }
    UNIT_WAIT(atomic_load(&hearings) == count, 60000);
    UNIT_EQUAL(side_stats(1).decode_errors + side_stats(1).handshakes_failed, 0);
    still_works();
    pair_end(&p);
}

/* association-A5: one handshake with the address of a connected node must not end that node */
static void
who_is_connected_and_answers_is_not_replaced(void)
{
    enum trpi_frame_kind answer;
    systems_start(NULL, false);
    still_works();
    for (uint64_t uid = 4801; uid < 4804; uid++) {
        (void)close(hand_shake_from(p.address[0], uid, &answer));
        UNIT_EQUAL(answer, TRPI_FRAME_HANDSHAKE_REFUSAL);
    }
    UNIT_WAIT(pair_logged("another node has your address and is connected here"), 60000);
    UNIT_EQUAL(side_stats(1).quarantined, 0);
    still_works();
    UNIT_TEXT(pair_state(&p, 1), "active");
    pair_end(&p);
}

static void
who_is_connected_and_does_not_answer_is_replaced(void)
{
    enum trpi_frame_kind answer;
    systems_start(NULL, false);
    int silent = hand_shake(4811, &answer);
    UNIT_EQUAL(answer, TRPI_FRAME_HANDSHAKE_RESPONSE);
    int next = hand_shake(4812, &answer);
    UNIT_EQUAL(answer, TRPI_FRAME_HANDSHAKE_REFUSAL);
    uint64_t began_ms = unit_now_ms();
    while (answer != TRPI_FRAME_HANDSHAKE_RESPONSE && unit_now_ms() - began_ms < 60000) {
        (void)close(next);
        next = hand_shake(4812, &answer);
        (void)usleep(50000);
    }
    UNIT_EQUAL(answer, TRPI_FRAME_HANDSHAKE_RESPONSE);
    UNIT_TRUE(unit_now_ms() - began_ms >= TRPI_ASK_MS - 500);
    (void)close(next);
    (void)close(silent);
    pair_end(&p);
}

UNIT_BEGIN("garbage")
UNIT(garbage_is_counted_and_the_connection_dropped)
UNIT(a_huge_length_is_refused_before_it_is_allocated)
UNIT(an_address_that_nobody_can_have_is_refused)
UNIT(who_is_connected_and_answers_is_not_replaced)
UNIT(who_is_connected_and_does_not_answer_is_replaced)
UNIT(another_version_is_named_in_the_log)
UNIT(a_peer_that_says_nothing_is_dropped_at_the_handshake_timeout)
UNIT(frames_before_the_handshake_and_lanes_of_strangers_are_refused)
UNIT(a_node_that_is_called_by_another_address_says_so)
UNIT(messages_that_cannot_be_read_are_dropped_alone)
UNIT(a_frame_of_a_later_version_is_skipped)
UNIT(two_type_names_with_one_id_are_refused_and_both_are_named)
UNIT(a_type_that_is_not_known_here_is_named_in_the_log)
UNIT(a_message_of_a_connection_that_was_replaced_is_dropped_and_counted)
UNIT(a_peer_has_so_many_connections_and_not_one_more)
UNIT(a_lane_epoch_that_does_not_rise_ends_the_connection)
UNIT(a_message_larger_than_a_frame_is_dropped_alone)
UNIT(a_lane_holds_so_many_bytes_and_no_longer_than_a_handshake_may_take)
UNIT(too_many_unacknowledged_system_messages_quarantine)
UNIT(who_comes_while_a_node_stops_is_let_go_without_a_word)
UNIT(clients_in_turn_are_all_heard)
UNIT_END
