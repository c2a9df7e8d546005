/* tcp_test.c - messages from and to the peers of a port, well-behaved and not. */
#include "tests/unit/endpoint/stranger.h"

static keeper k, other;

/* Start a consumer at a free port, with these options of its URI. */
static trp_system *
consumer_start(const char *options, uint32_t acknowledges)
{
    trp_system *system = stage_open();
    keeper_init(&k, "c", false);
    snprintf(k.uri, sizeof k.uri, "tcp:127.0.0.1:0?%s", options);
    k.options.acknowledges = acknowledges;
    return system;
}

static void
say_two_lines(trp_ctx *ctx, keeper *of)
{
    keeper_reply(ctx, of, "y\nes", 4);
}

static void
say_failed(trp_ctx *ctx, keeper *of)
{
    trp_endpoint_fail(ctx, of->endpoint, atomic_load(&of->exchange), "no");
}

/* CAM-01, CAM-02: lines, and replies to them; one byte at a time; a peer that has ended its own
 * direction gets its reply. */
static void
lines_are_consumed_and_replied_to(void)
{
    trp_system *system = consumer_start("", 1);
    keeper_start(system, &k);
    int fd = stranger_connect(SOCK_STREAM, k.address);
    stranger_say(fd, "one\r\n");
    UNIT_WAIT(stage_has("c:got(,one,0)"), 60000);
    keeper_do(system, &k, keeper_reply_yes);
    UNIT_TRUE(stranger_hears(fd, "yes\n"));
    for (const char *at = "slow\n"; *at != '\0'; at++) {
        stranger_write(fd, at, 1);
    }
    UNIT_EQUAL(shutdown(fd, SHUT_WR), 0);
    UNIT_WAIT(stage_has("c:got(,slow,0)"), 60000);
    keeper_do(system, &k, keeper_reply_yes);
    UNIT_TRUE(stranger_hears(fd, "yes\n"));
    UNIT_TRUE(stranger_sees_end(fd));
    close(fd);
    UNIT_EQUAL(atomic_load(&k.errors), 0);
    stage_close(system);
}

/* CAM-03; scheme-tcp-T2: a peer sees that its message was not taken. */
static void
a_message_that_fails_ends_its_connection(void)
{
    static const keeper_fn words[] = { say_failed, say_two_lines };
    trp_system *system = consumer_start("", 1);
    keeper_start(system, &k);
    for (uint32_t i = 0; i < 2; i++) {
        int fd = stranger_connect(SOCK_STREAM, k.address);
        stranger_say(fd, "one\n");
        UNIT_WAIT(atomic_load(&k.got) == i + 1, 60000);
        keeper_do(system, &k, words[i]);
        UNIT_TRUE(stranger_sees_reset(fd));
        close(fd);
        UNIT_WAIT(atomic_load(&k.errors) == i + 1, 60000);
    }
    UNIT_TRUE(stage_has("c:error(0,TRP_EFAILED)") && stage_has("c:error(0,TRP_EDATA)"));
    stage_close(system);
}

/* A reply to a peer that has gone is an error, and nobody else's. */
static void
a_peer_that_has_gone_gets_no_reply(void)
{
    trp_system *system = consumer_start("", 1);
    keeper_start(system, &k);
    int fd = stranger_connect(SOCK_STREAM, k.address);
    struct linger now = { 1, 0 };
    stranger_say(fd, "one\n");
    UNIT_WAIT(atomic_load(&k.got) == 1, 60000);
    UNIT_EQUAL(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
    close(fd); /* a reset */
    fd = stranger_connect(SOCK_STREAM, k.address);
    keeper_do(system, &k,
              keeper_reply_yes); /* it may come before the reset is seen: then it is written */
    stranger_say(fd, "two\n");
    UNIT_WAIT(atomic_load(&k.got) == 2, 60000);
    keeper_do(system, &k, keeper_reply_yes);
    UNIT_TRUE(stranger_hears(fd, "yes\n"));
    UNIT_TRUE(atomic_load(&k.errors) == 0 || stage_has("c:error(0,TRP_ECLOSED)"));
    close(fd);
    stage_close(system);
}

/* framing-F3: at the limit, and one past. */
static void
a_line_that_is_too_long_ends_its_connection(void)
{
    trp_system *system = consumer_start("", 0);
    k.options.message_bytes_max = 8;
    keeper_start(system, &k);
    int fd = stranger_connect(SOCK_STREAM, k.address);
    stranger_say(fd, "12345678\n123456789\nafter\n");
    UNIT_TRUE(stranger_sees_reset(fd));
    close(fd);
    UNIT_WAIT(stage_has("c:error(0,TRP_EMSGSIZE)"), 60000);
    UNIT_TRUE(stage_has("c:got(,12345678,0)"));
    UNIT_WAIT(atomic_load(&k.got) == 1, 60000);
    stage_close(system);
}

/* CAM-01: frames of any bytes; a length that is impossible; the end of a stream inside a frame. */
static void
frames_with_a_length_have_any_bytes(void)
{
    trp_system *system = consumer_start("frame=length&field=2", 0);
    k.options.message_bytes_max = 5;
    keeper_start(system, &k);
    int fd = stranger_connect(SOCK_STREAM, k.address);
    stranger_write(fd, "\0\3\n\n!\0\0\0\5", 9);
    stranger_write(fd, "hello\0\6", 7);
    UNIT_TRUE(stranger_sees_reset(fd));
    close(fd);
    UNIT_WAIT(stage_has("c:error(0,TRP_EMSGSIZE)"), 60000);
    UNIT_TRUE(stage_has("c:got(,\n\n!,0) c:got(,,0) c:got(,hello,0)"));
    fd = stranger_connect(SOCK_STREAM, k.address);
    stranger_write(fd, "\0\3a", 3);
    UNIT_EQUAL(shutdown(fd, SHUT_WR), 0);
    UNIT_TRUE(stranger_sees_reset(fd));
    close(fd);
    UNIT_WAIT(stage_has("c:error(0,TRP_EPROTO)"), 60000);
    UNIT_WAIT(atomic_load(&k.got) == 3, 60000);
    stage_close(system);
}

/* A peer that sends half a message, or nothing, does not keep its connection for ever. */
static void
slow_and_silent_peers_are_given_up(void)
{
    trp_system *system = consumer_start("frame-timeout=50&idle=100000", 0);
    keeper_start(system, &k);
    int fd = stranger_connect(SOCK_STREAM, k.address);
    stranger_say(fd, "whole\nhalf");
    UNIT_TRUE(stranger_sees_reset(fd));
    close(fd);
    UNIT_WAIT(stage_has("c:error(0,TRP_ETIMEDOUT)"), 60000);
    UNIT_WAIT(atomic_load(&k.got) == 1, 60000);
    stage_close(system);

    system = consumer_start("idle=50", 0);
    keeper_start(system, &k);
    fd = stranger_connect(SOCK_STREAM, k.address);
    UNIT_TRUE(stranger_sees_end(fd));
    close(fd);
    UNIT_EQUAL(atomic_load(&k.errors), 0); /* that is in order */
    stage_close(system);
}

/* Each of them ends a line and begins the next one: half a message is never old. They come less
 * often than the consumer looks for old ones, which it does between them, therefore. A machine that
 * held the test up in between says nothing. */
static void
a_peer_that_sends_on_is_not_slow(void)
{
    enum { TIMEOUT_MS = 1000, PAUSE_MS = 400, TOO_LATE_MS = 900, TRIES = 10 };
    uint64_t gap = TIMEOUT_MS;
    for (int i = 0; i < TRIES && gap >= TOO_LATE_MS; i++) {
        trp_system *system = consumer_start("frame-timeout=1000", 0);
        keeper_start(system, &k);
        int fd = stranger_connect(SOCK_STREAM, k.address);
        uint64_t begun = unit_now_ms(), last = begun;
        uint32_t sent = 0;
        gap = 0;
        while (unit_now_ms() - begun < 2 * TIMEOUT_MS + TIMEOUT_MS / 2) {
            (void)send(fd, "x\nx", 3, MSG_NOSIGNAL);
            sent++;
            UNIT_WAIT(atomic_load(&k.got) >= sent || atomic_load(&k.errors) > 0, 60000);
            for (uint64_t until = unit_now_ms() + PAUSE_MS; unit_now_ms() < until;) {
                unit_pause();
            }
            gap = unit_now_ms() - last > gap ? unit_now_ms() - last : gap;
            last = unit_now_ms();
        }
        UNIT_TRUE(atomic_load(&k.errors) == 0 || gap >= TOO_LATE_MS);
        close(fd);
        stage_close(system);
    }
}

static void
say_large(trp_ctx *ctx, keeper *of)
{
    static uint8_t data[1 << 19];
    keeper_reply(ctx, of, data, sizeof data);
}

/* scheme-tcp-T1: a peer that asks, and reads no reply, loses its place. */
static void
a_peer_that_reads_nothing_is_given_up(void)
{
    trp_system *system = consumer_start("frame=length&idle=500", 1);
    keeper_start(system, &k);
    int fd = stranger_connect(SOCK_STREAM, k.address);
    for (uint32_t i = 0; i < 100 && atomic_load(&k.errors) == 0; i++) {
        if (send(fd, "\0\0\0\1x", 5, MSG_NOSIGNAL) != 5) {
            break;
        }
        uint64_t deadline = unit_deadline_ms(60000);
        while (atomic_load(&k.got) == i && atomic_load(&k.errors) == 0 &&
               unit_now_ms() < deadline) {
            unit_pause();
        }
        if (atomic_load(&k.got) == i + 1) {
            keeper_do(system, &k, say_large);
        }
    }
    UNIT_WAIT(stage_has("c:error(0,TRP_ETIMEDOUT)"), 60000);
    UNIT_TRUE(stranger_sees_reset(fd));
    close(fd);
    stage_close(system);
}

/* One connection more than there may be is turned away; its place is free again later. */
static void
connections_have_a_bound(void)
{
    trp_system *system = consumer_start("connections=1", 0);
    keeper_start(system, &k);
    int first = stranger_connect(SOCK_STREAM, k.address);
    stranger_say(first, "1\n");
    UNIT_WAIT(atomic_load(&k.got) == 1, 60000);
    int second = stranger_connect(SOCK_STREAM, k.address);
    UNIT_TRUE(stranger_sees_end(second));
    close(second);
    close(first);
    uint64_t deadline = unit_deadline_ms(60000);
    while (atomic_load(&k.got) == 1 && unit_now_ms() < deadline) { /* until the end is seen */
        second = stranger_connect(SOCK_STREAM, k.address);
        (void)send(second, "2\n", 2, MSG_NOSIGNAL);
        (void)shutdown(second, SHUT_WR);
        UNIT_TRUE(stranger_sees_end(second));
        close(second);
    }
    UNIT_WAIT(atomic_load(&k.got) >= 2, 60000);
    stage_close(system);
}

/* consumer-C2: a handler that is behind stops the peer, and nothing is lost. */
static void
a_slow_handler_stops_the_peer(void)
{
    enum { LINES = 400000 }; /* more than any buffer of the kernel */
    static const char line[] = "0123456789012345678901234567890123456789012345678\n";
    trp_system *system = consumer_start("", 0);
    k.options.pending_max = 2;
    k.keeps = true;
    keeper_start(system, &k);
    int fd = stranger_connect(SOCK_STREAM, k.address), small = 8192;
    UNIT_EQUAL(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
    UNIT_WAIT(stage_has("c:TRP_OK"), 60000);
    size_t sent = 0, all = sizeof line - 1;
    uint32_t held = 0;
    for (all *= LINES; sent < all && held < 200;) { /* until nothing has gone for a while */
        size_t at = sent % (sizeof line - 1);
        ssize_t put = send(fd, line + at, sizeof line - 1 - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        sent += put > 0 ? (size_t)put : 0;
        held = put > 0 ? 0 : held + 1;
        if (put <= 0) {
            unit_pause();
        }
    }
    UNIT_TRUE(sent < all);
    UNIT_EQUAL(atomic_load(&k.got), 2);
    close(fd);
    uint32_t lines = (uint32_t)(sent / (sizeof line - 1)), seen = 0;
    lines = lines > 30 ? 30 : lines; /* of the book of notes */
    while (seen < lines) {
        UNIT_WAIT(atomic_load(&k.got) > seen, 60000);
        seen = atomic_load(&k.got);
        keeper_do(system, &k, keeper_let_go_now); /* in the actor: others come meanwhile */
    }
    stage_close(system);
    keeper_let_go(&k);
}

/* A port that somebody has is said; one that a restarted endpoint has itself is opened again. */
static void
kill_endpoint(trp_ctx *ctx, keeper *of)
{
    trp_tell(ctx, of->endpoint, &trp_kill_type, NULL, 0);
}

static void
a_restarted_consumer_listens_again(void)
{
    trp_system *system = consumer_start("", 0);
    int fd = stranger_socket(SOCK_STREAM), port = stranger_bind(fd, 0);
    UNIT_EQUAL(listen(fd, 5), 0);
    snprintf(k.uri, sizeof k.uri, "tcp:127.0.0.1:%d", port);
    keeper_start(system, &k);
    UNIT_WAIT(stage_has("c:stopped(TRP_EEXIST)"), 60000);
    close(fd);

    keeper_init(&other, "d", false);
    snprintf(other.uri, sizeof other.uri, "tcp:127.0.0.1:%d", port);
    keeper_start(system, &other);
    fd = stranger_connect(SOCK_STREAM, other.address);
    stranger_say(fd, "1\n");
    UNIT_WAIT(stage_has("d:got(,1,0)"), 60000);
    keeper_do(system, &other, kill_endpoint);
    UNIT_TRUE(stranger_sees_end(fd));
    close(fd);
    UNIT_WAIT(atomic_load(&other.started) == 2, 60000);
    fd = stranger_connect(SOCK_STREAM, other.address);
    stranger_say(fd, "2\n");
    UNIT_WAIT(stage_has("d:got(,2,0)"), 60000);
    close(fd);
    stage_close(system);
}

/* ---- producers ------------------------------------------------------------------------------- */

static void
send_words(trp_ctx *ctx, keeper *of)
{
    keeper_send(ctx, of, "one", NULL, 1);
    keeper_send(ctx, of, "t\nwo", NULL, 2);
    keeper_send(ctx, of, "three", NULL, 3);
}

/* CAM-01, CAM-05: both ends of the protocol are endpoints. */
static void
a_consumer_gets_what_a_producer_sends(void)
{
    trp_system *system = consumer_start("", 0);
    keeper_start(system, &k);
    keeper_init(&other, "p", true);
    snprintf(other.uri, sizeof other.uri, "tcp://%s", k.address);
    keeper_start(system, &other);
    keeper_do(system, &other, send_words);
    UNIT_WAIT(stage_has("p:done(1)") && stage_has("p:done(3)"), 60000);
    UNIT_TRUE(stage_has("p:error(2,TRP_EDATA)"));
    UNIT_WAIT(stage_has("c:got(,one,0)") && stage_has("c:got(,three,0)"), 60000);
    stage_close(system);
}

static void
send_one(trp_ctx *ctx, keeper *of)
{
    keeper_send(ctx, of, "one", NULL, 1);
}

static void
send_two(trp_ctx *ctx, keeper *of)
{
    keeper_send(ctx, of, "two", NULL, 2);
}

/* tcp-out-O1: what has no connection waits for one; one that is lost is made again. */
static void
a_producer_connects_again(void)
{
    trp_system *system = stage_open();
    int listener = stranger_socket(SOCK_STREAM), port = stranger_bind(listener, 0);
    keeper_init(&k, "p", true);
    snprintf(k.uri, sizeof k.uri, "tcp:127.0.0.1:%d?reply=1&retry=50", port);
    keeper_start(system, &k);
    keeper_do(system, &k, send_one);
    UNIT_EQUAL(listen(listener, 5), 0); /* only now */
    int fd = accept(listener, NULL, NULL);
    UNIT_TRUE(stranger_hears(fd, "one\n"));
    stranger_say(fd, "1!\n");
    UNIT_WAIT(stage_has("p:got(,1!,1)"), 60000);
    close(fd);
    fd = accept(listener, NULL, NULL);
    keeper_do(system, &k, send_two);
    UNIT_TRUE(stranger_hears(fd, "two\n"));
    close(fd); /* without a reply */
    UNIT_WAIT(stage_has("p:error(2,TRP_ECLOSED)"), 60000);
    close(listener);
    stage_close(system);
}

/* tcp-out-O2: a reply that comes too late is not the next one's. */
static void
a_late_reply_is_nobodys(void)
{
    trp_system *system = stage_open();
    int listener = stranger_socket(SOCK_STREAM), port = stranger_bind(listener, 0);
    UNIT_EQUAL(listen(listener, 5), 0);
    keeper_init(&k, "p", true);
    snprintf(k.uri, sizeof k.uri, "tcp:127.0.0.1:%d?reply=1&retry=50", port);
    k.options.timeout_ms = 1000;
    keeper_start(system, &k);
    int first = accept(listener, NULL, NULL);
    keeper_do(system, &k, send_one);
    UNIT_TRUE(stranger_hears(first, "one\n"));
    UNIT_WAIT(stage_has("p:error(1,TRP_ETIMEDOUT)"), 60000);
    (void)send(first, "late\n", 5, MSG_NOSIGNAL);
    int second = accept(listener, NULL, NULL);
    stranger_say(second, "unasked\n"); /* this ends it, too */
    UNIT_TRUE(stranger_sees_end(second));
    close(first);
    close(second);
    close(listener);
    UNIT_EQUAL(atomic_load(&k.got), 0);
    keeper_do(system, &k, send_two); /* nobody is there */
    UNIT_WAIT(stage_has("p:error(2,TRP_ETIMEDOUT)"), 60000);
    stage_close(system);
}

static void
send_both(trp_ctx *ctx, keeper *of)
{
    send_one(ctx, of);
    send_two(ctx, of);
}

static void
end_endpoint(trp_ctx *ctx, keeper *of)
{
    trp_tell(ctx, of->endpoint, &trp_poison_pill_type, NULL, 0); /* behind what was sent */
}

/* producer-P1: a message that is written, or waits, when an endpoint ends has failed, once. */
static void
a_producer_that_ends_answers_all(void)
{
    trp_system *system = stage_open();
    int listener = stranger_socket(SOCK_STREAM), port = stranger_bind(listener, 0);
    UNIT_EQUAL(listen(listener, 5), 0);
    keeper_init(&k, "p", true);
    snprintf(k.uri, sizeof k.uri, "tcp:127.0.0.1:%d?reply=1", port);
    keeper_start(system, &k);
    int fd = accept(listener, NULL, NULL);
    keeper_do(system, &k, send_both);
    UNIT_TRUE(stranger_hears(fd, "one\n"));
    keeper_do(system, &k, end_endpoint);
    STAGE_EXPECT("p:TRP_OK p:error(1,TRP_ECLOSED) p:error(2,TRP_ECLOSED) p:stopped(TRP_OK)");
    UNIT_TRUE(stranger_sees_end(fd));
    close(fd);
    close(listener);
    stage_close(system);
}

UNIT_BEGIN("tcp")
UNIT(lines_are_consumed_and_replied_to)
UNIT(a_message_that_fails_ends_its_connection)
UNIT(a_peer_that_has_gone_gets_no_reply)
UNIT(a_line_that_is_too_long_ends_its_connection)
UNIT(frames_with_a_length_have_any_bytes)
UNIT(slow_and_silent_peers_are_given_up)
UNIT(a_peer_that_sends_on_is_not_slow)
UNIT(a_peer_that_reads_nothing_is_given_up)
UNIT(connections_have_a_bound)
UNIT(a_slow_handler_stops_the_peer)
UNIT(a_restarted_consumer_listens_again)
UNIT(a_consumer_gets_what_a_producer_sends)
UNIT(a_producer_connects_again)
UNIT(a_late_reply_is_nobodys)
UNIT(a_producer_that_ends_answers_all)
UNIT_END
