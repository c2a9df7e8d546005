/* web_socket_test.c - WebSockets: both ends ours, and a stranger with frames of its own. */
#include "tests/unit/endpoint/keeper.h"
#include "tests/unit/endpoint/waiter.h"

static waiter w;
static keeper k, sink;

#define UPGRADE(path)                                                                              \
    "GET " path " HTTP/1.1\r\nhost: a\r\nupgrade: websocket\r\nconnection: upgrade\r\n"            \
    "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n"

static void
client_start(trp_system *system, const char *path)
{
    snprintf(k.uri, sizeof k.uri, "ws://127.0.0.1:%u%s", w.port, path);
    keeper_start(system, &k);
}

static void
send_two(trp_ctx *ctx, keeper *of)
{
    keeper_send(ctx, of, "one", NULL, 1);
    keeper_send(ctx, of, "", NULL, 2);
}

/* CAM-01, CAM-02, CAM-05 */
static void
both_ends_speak(void)
{
    trp_system *system = stage_open();
    waiter_init(&w, "ws://127.0.0.1:0/chat?prefix=1");
    w.options.acknowledges = 1;
    waiter_start(system, &w);
    UNIT_REQUIRE(w.port != 0);
    keeper_init(&k, "c", true);
    client_start(system, "/chat/x%20y?text=1");
    keeper_do(system, &k, send_two);
    UNIT_WAIT(stage_has("c:got(,text:/chat/x y:one,1)"), 60000);
    UNIT_WAIT(stage_has("c:got(,text:/chat/x y:,2)"), 60000);
    stage_close(system);
}

static void
send_oneway(trp_ctx *ctx, keeper *of)
{
    for (uint64_t i = 0; i < 20; i++) {
        keeper_send(ctx, of, "x", NULL, i);
    }
}

/* Without acknowledges a message is done when it is told; oneway, when it is written. */
static void
messages_one_way_are_written(void)
{
    trp_system *system = stage_open();
    waiter_init(&w, "ws://127.0.0.1:0/");
    waiter_start(system, &w);
    keeper_init(&k, "c", true);
    k.options.oneway = 1;
    client_start(system, "/");
    keeper_do(system, &k, send_oneway);
    UNIT_WAIT(atomic_load(&w.got) == 20, 60000);
    UNIT_EQUAL(atomic_load(&k.done) + atomic_load(&k.errors), 0);
    stage_close(system);
}

static void
send_keeps(trp_ctx *ctx, keeper *of)
{
    for (uint64_t i = 0; i < 12; i++) {
        keeper_send(ctx, of, "keep", NULL, i);
    }
}

/* web-loop-L4: a handler that keeps its messages stops the reading, and lets it go on. */
static void
a_handler_that_is_behind_stops_the_reading(void)
{
    trp_system *system = stage_open();
    waiter_init(&w, "ws://127.0.0.1:0/");
    w.options.pending_max = 3;
    waiter_start(system, &w);
    keeper_init(&k, "c", true);
    k.options.oneway = 1;
    client_start(system, "/");
    keeper_do(system, &k, send_keeps);
    uint32_t let_go = 0;
    while (let_go < 12) {
        UNIT_WAIT(atomic_load(&w.kept_count) == (12 - let_go < 3 ? 12 - let_go : 3), 60000);
        uint32_t count = atomic_load(&w.kept_count);
        UNIT_REQUIRE(count > 0 && count <= 3);
        atomic_store(&w.kept_count, 0);
        for (uint32_t i = 0; i < count; i++) {
            trp_msg_free(w.kept[i]);
        }
        let_go += count;
    }
    UNIT_EQUAL(atomic_load(&w.got), 12);
    stage_close(system);
}

static void
send_hold(trp_ctx *ctx, keeper *of)
{
    keeper_send(ctx, of, "hold", NULL, 1);
    keeper_send(ctx, of, "then", NULL, 2);
}

/* web-client-W2: a late reply is not that of the next message. */
static void
a_send_without_reply_fails_in_time(void)
{
    trp_system *system = stage_open();
    waiter_init(&w, "ws://127.0.0.1:0/");
    w.options.acknowledges = 1;
    waiter_start(system, &w);
    keeper_init(&k, "c", true);
    k.options.timeout_ms = 200 * UNIT_STRETCH;
    client_start(system, "/");
    keeper_do(system, &k, send_hold);
    UNIT_WAIT(stage_has("c:error(1,TRP_ETIMEDOUT)"), 60000);
    UNIT_WAIT(stage_has("c:got(,binary:/:then,2)"), 60000);
    stage_close(system);
}

static void
send_one(trp_ctx *ctx, keeper *of)
{
    keeper_send(ctx, of, "one", NULL, 3);
}

static void
endpoint_stop(trp_ctx *ctx, waiter *of)
{
    trp_stop(ctx, of->endpoint);
}

/* Nobody listens: an error each time; and then somebody does. */
static void
a_client_connects_when_it_sends(void)
{
    char uri[64];
    trp_system *system = stage_open();
    waiter_init(&w, "ws://127.0.0.1:0/");
    waiter_start(system, &w);
    waiter_do(system, &w, endpoint_stop);
    UNIT_WAIT(atomic_load(&w.stopped) == 1, 60000);
    uint16_t port = w.port;
    snprintf(uri, sizeof uri, "ws://127.0.0.1:%u/", port);
    waiter_init(&w, uri);
    w.options.acknowledges = 1;
    w.port = port;
    keeper_init(&k, "c", true);
    client_start(system, "/");
    keeper_do(system, &k, send_one);
    UNIT_WAIT(atomic_load(&k.errors) == 1, 60000);
    UNIT_TRUE(stage_has("c:error(3,TRP_EIO)"));
    waiter_start(system, &w);
    UNIT_WAIT(atomic_load(&w.started) == 1, 60000);
    keeper_do(system, &k, send_one);
    UNIT_WAIT(stage_has("c:got(,binary:/:one,3)"), 60000);
    stage_close(system);
}

/* ---- a stranger ------------------------------------------------------------------------------ */

static int
stranger(const char *request)
{
    int fd = guest_connect(w.port);
    guest_say(fd, request);
    UNIT_TRUE(strstr(guest_read(fd, "\r\n\r\n"), " 101 ") != NULL);
    return fd;
}

/* A frame of fewer than 126 bytes, masked by zeros. */
static void
frame_say(int fd, uint8_t first, const char *text)
{
    uint8_t head[6] = { first, (uint8_t)(0x80 | strlen(text)), 0, 0, 0, 0 };
    guest_write(fd, head, sizeof head);
    guest_say(fd, text);
}

/* web-socket-S1, web-socket-S3 */
static void
broken_frames_close_the_connection(void)
{
    static const struct {
        const char *bytes;
        size_t count;
    } broken[] = {
        { "\xf1\x80\0\0\0\0", 6 },                          /* reserved bits */
        { "\x83\x80\0\0\0\0", 6 },                          /* a kind that there is not */
        { "\x80\x80\0\0\0\0", 6 },                          /* goes on with nothing */
        { "\x09\x80\0\0\0\0", 6 },                          /* a ping in parts */
        { "\x89\xfe\x01\x00\0\0\0\0", 8 },                  /* a ping of 256 bytes */
        { "\x81\x82\0\0\0\0\xc3\x28", 8 },                  /* no UTF-8 */
        { "\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff", 10 }, /* 2^64 - 1 bytes */
    };
    trp_system *system = stage_open();
    waiter_init(&w, "ws://127.0.0.1:0/?idle=2000");
    w.options.acknowledges = 1;
    waiter_start(system, &w);
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        int fd = stranger(UPGRADE("/") "\r\n");
        guest_write(fd, broken[i].bytes, broken[i].count);
        (void)guest_read(fd, NULL); /* until it is closed */
        close(fd);
    }
    UNIT_EQUAL(atomic_load(&w.got), 0);
    int fd = stranger(UPGRADE("/") "\r\n"); /* others are served */
    frame_say(fd, 0x01, "on");              /* in two parts */
    frame_say(fd, 0x80, "e!");
    UNIT_TRUE(strstr(guest_read(fd, "one!"), "text:/:one!") != NULL);
    close(fd);
    stage_close(system);
}

static void
answer_held(trp_ctx *ctx, waiter *of)
{
    waiter_reply(ctx, of, atomic_exchange(&of->held, 0), "late", NULL, 0);
}

/* A reply has the kind of the message that it is to, not of the last one. */
static void
replies_are_of_their_messages_kind(void)
{
    trp_system *system = stage_open();
    waiter_init(&w, "ws://127.0.0.1:0/");
    w.options.acknowledges = 1;
    waiter_start(system, &w);
    int fd = stranger(UPGRADE("/") "\r\n");
    frame_say(fd, 0x81, "hold");
    UNIT_WAIT(atomic_load(&w.held) != 0, 60000);
    frame_say(fd, 0x82, "then");
    UNIT_TRUE(strstr(guest_read(fd, "then"), "\x82\x0d"
                                             "binary:/:then") != NULL);
    waiter_do(system, &w, answer_held);
    UNIT_TRUE(strstr(guest_read(fd, "late"), "\x81\x04"
                                             "late") != NULL);
    close(fd);
    stage_close(system);
}

/* scheme-ws-W2: messages that nobody had asked for hold up no word about a send. */
static void
unasked_messages_hold_up_no_send(void)
{
    trp_system *system = stage_open();
    waiter_init(&w, "ws://127.0.0.1:0/");
    w.options.acknowledges = 1;
    waiter_start(system, &w);
    keeper_init(&sink, "s", true);
    snprintf(sink.uri, sizeof sink.uri, "ws://127.0.0.1:%u/", w.port);
    sink.keeps = true;
    keeper_start(system, &sink);
    keeper_init(&k, "c", true);
    k.options.oneway = 1; /* so all replies are unasked for */
    k.options.pending_max = 20;
    k.options.handler = sink.self;
    client_start(system, "/");
    keeper_do(system, &k, send_oneway);
    UNIT_WAIT(atomic_load(&sink.kept_count) == 20, 60000);
    keeper_do(system, &k, send_oneway);
    UNIT_WAIT(atomic_load(&w.got) == 40, 60000);
    UNIT_EQUAL(atomic_load(&sink.kept_count), 20);
    keeper_let_go(&sink);
    UNIT_WAIT(atomic_load(&sink.got) == 40, 60000);
    keeper_let_go(&sink);
    UNIT_EQUAL(atomic_load(&k.errors), 0);
    stage_close(system);
}

/* Speak on another connection: what was posted before has been done then. */
static void
words_exchange(int fd, int count)
{
    for (int i = 0; i < count; i++) {
        frame_say(fd, 0x81, "word");
        UNIT_TRUE(strstr(guest_read(fd, "word"), "text:/:word") != NULL);
    }
}

static void
bytes_skip(int fd, size_t count)
{
    static char bytes[65536];
    while (count > 0) {
        struct pollfd ready = { fd, POLLIN, 0 };
        UNIT_REQUIRE(poll(&ready, 1, 60000) == 1);
        ssize_t got = recv(fd, bytes, count < sizeof bytes ? count : sizeof bytes, 0);
        UNIT_REQUIRE(got > 0);
        count -= (size_t)got;
    }
}

/* web-socket-S2: a peer that reads no replies is read up to a bound of their bytes. */
static void
unsent_replies_have_a_bound(void)
{
    enum { LARGE = 25000000 }; /* more than sockets hold: the others wait behind it */
    char text[32];
    trp_system *system = stage_open();
    waiter_init(&w, "ws://127.0.0.1:0/?idle=300000");
    w.options.acknowledges = 1;
    w.options.message_bytes_max = LARGE;
    waiter_start(system, &w);
    int fd = stranger(UPGRADE("/") "\r\n"), other = stranger(UPGRADE("/") "\r\n");
    snprintf(text, sizeof text, "long %d", LARGE);
    frame_say(fd, 0x82, text);
    UNIT_WAIT(atomic_load(&w.got) == 1, 60000);
    words_exchange(other, 1); /* the library has it, and keeps what the socket does not take */
    words_exchange(other, 1);
    snprintf(text, sizeof text, "long %d", TRP_ENDPOINT_UNSENT_BYTES_MAX - 1);
    frame_say(fd, 0x82, text);
    UNIT_WAIT(atomic_load(&w.got) == 4, 60000);
    frame_say(fd, 0x82, "long 1");
    UNIT_WAIT(atomic_load(&w.got) == 5, 60000);
    words_exchange(other, 1);
    frame_say(fd, 0x82, "hold"); /* at the bound */
    UNIT_WAIT(atomic_load(&w.got) == 7, 60000);
    frame_say(fd, 0x82, "long 1");
    UNIT_WAIT(atomic_load(&w.got) == 8, 60000);
    words_exchange(other, 1);
    frame_say(fd, 0x82, "hold"); /* one past */
    words_exchange(other, 3);
    UNIT_EQUAL(atomic_load(&w.got), 12);
    bytes_skip(fd, LARGE + TRP_ENDPOINT_UNSENT_BYTES_MAX + 1);
    UNIT_WAIT(atomic_load(&w.got) == 13, 60000);
    close(fd);
    close(other);
    stage_close(system);
}

static void
messages_have_a_limit(void)
{
    trp_system *system = stage_open();
    waiter_init(&w, "ws://127.0.0.1:0/");
    w.options.acknowledges = 1;
    w.options.message_bytes_max = 16;
    waiter_start(system, &w);
    int fd = stranger(UPGRADE("/") "\r\n");
    frame_say(fd, 0x81, "hold");
    UNIT_WAIT(atomic_load(&w.got) == 1, 60000);
    frame_say(fd, 0x81, "0123456789abcdef"); /* taken; its reply is longer, so it fails */
    UNIT_WAIT(atomic_load(&w.got) == 2 && atomic_load(&w.errors) == 1, 60000);
    frame_say(fd, 0x01, "0123456789"); /* one past, in parts */
    frame_say(fd, 0x80, "abcdefg");
    UNIT_TRUE(strstr(guest_read(fd, NULL), "message_bytes_max") != NULL);
    UNIT_EQUAL(atomic_load(&w.got), 2);
    close(fd);
    stage_close(system);
}

static void
upgrades_are_judged(void)
{
    static const struct {
        const char *request, *answer;
    } asked[] = {
        { "GET / HTTP/1.1\r\nhost: a\r\n\r\n", "HTTP/1.1 426 " },
        { UPGRADE("/other") "\r\n", "HTTP/1.1 404 " },
        { UPGRADE("/a") "origin: http://evil\r\n\r\n", "HTTP/1.1 403 " },
        { UPGRADE("/a") "origin: http://good\r\n\r\n", "HTTP/1.1 101 " },
        { UPGRADE("/a") "\r\n", "HTTP/1.1 101 " },
        { "GET /a HTTP/1.1\r\nhost: a\r\nupgrade: WebSocket\r\nconnection: Upgrade\r\n"
          "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n",
          "HTTP/1.1 101 " },
        { "GET /a HTTP/1.1\r\nhost: a\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n", "" },
        { UPGRADE("/a") "content-length: 5\r\n\r\n", "HTTP/1.1 400 " },
        { UPGRADE("/a") "transfer-encoding: chunked\r\n\r\n", "HTTP/1.1 400 " },
    };
    trp_system *system = stage_open();
    waiter_init(&w, "ws://127.0.0.1:0/a?origin=http://good&origin=http://fine&idle=1000");
    waiter_start(system, &w);
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        int fd = guest_connect(w.port);
        guest_say(fd, asked[i].request);
        const char *answer = guest_read(fd, "\r\n\r\n");
        UNIT_TRUE(starts_with(answer, asked[i].answer));
        UNIT_EQUAL(answer[0] == '\0', asked[i].answer[0] == '\0');
        close(fd);
    }
    UNIT_EQUAL(atomic_load(&w.got), 0);
    stage_close(system);
}

/* A peer that answers no ping is gone. */
static void
a_silent_peer_is_closed(void)
{
    trp_system *system = stage_open();
    waiter_init(&w, "ws://127.0.0.1:0/?idle=1000");
    waiter_start(system, &w);
    int fd = stranger(UPGRADE("/") "\r\n");
    UNIT_TRUE(strstr(guest_read(fd, NULL), "\x89") != NULL); /* the ping, then the end */
    close(fd);
    stage_close(system);
}

UNIT_BEGIN("web_socket")
UNIT(both_ends_speak)
UNIT(messages_one_way_are_written)
UNIT(a_handler_that_is_behind_stops_the_reading)
UNIT(a_send_without_reply_fails_in_time)
UNIT(a_client_connects_when_it_sends)
UNIT(broken_frames_close_the_connection)
UNIT(replies_are_of_their_messages_kind)
UNIT(unasked_messages_hold_up_no_send)
UNIT(unsent_replies_have_a_bound)
UNIT(messages_have_a_limit)
UNIT(upgrades_are_judged)
UNIT(a_silent_peer_is_closed)
UNIT_END
