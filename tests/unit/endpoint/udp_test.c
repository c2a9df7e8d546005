/* udp_test.c - datagrams from and to strangers. */
#include "tests/unit/endpoint/stranger.h"

static keeper k, other;

/* CAM-01, CAM-02: at the limit of a message, one past, and empty; a reply goes to the sender. */
static void
datagrams_are_consumed_and_replied_to(void)
{
    trp_system *system = stage_open();
    keeper_init(&k, "c", false);
    snprintf(k.uri, sizeof k.uri, "udp:127.0.0.1:0");
    k.options.acknowledges = 1;
    k.options.message_bytes_max = 3;
    keeper_start(system, &k);
    int fd = stranger_connect(SOCK_DGRAM, k.address);
    stranger_say(fd, "one");
    UNIT_WAIT(stage_has("c:got(,one,0)"), 60000);
    keeper_do(system, &k, keeper_reply_yes);
    UNIT_TRUE(stranger_hears(fd, "yes"));
    stranger_say(fd, "four");
    UNIT_WAIT(stage_has("c:error(0,TRP_EMSGSIZE)"), 60000);
    stranger_write(fd, "", 0);
    UNIT_WAIT(stage_has("c:got(,,0)"), 60000);
    close(fd);
    stage_close(system);
}

/* consumer-C2: what finds no room waits. */
static void
datagrams_wait_for_room(void)
{
    trp_system *system = stage_open();
    keeper_init(&k, "c", false);
    snprintf(k.uri, sizeof k.uri, "udp:127.0.0.1:0");
    k.options.pending_max = 1;
    k.keeps = true;
    keeper_start(system, &k);
    int fd = stranger_connect(SOCK_DGRAM, k.address);
    stranger_say(fd, "1");
    UNIT_WAIT(stage_has("c:got(,1,0)"), 60000);
    stranger_say(fd, "2");
    stranger_say(fd, "3");
    keeper_let_go(&k);
    UNIT_WAIT(stage_has("c:got(,2,0)"), 60000);
    UNIT_FALSE(stage_has("c:got(,3,0)"));
    keeper_let_go(&k);
    UNIT_WAIT(stage_has("c:got(,3,0)"), 60000);
    keeper_let_go(&k);
    close(fd);
    stage_close(system);
}

static void
send_two(trp_ctx *ctx, keeper *of)
{
    keeper_send(ctx, of, "one", NULL, 1);
    keeper_send(ctx, of, "two", NULL, 2);
}

static void
send_again(trp_ctx *ctx, keeper *of)
{
    keeper_send(ctx, of, "two", NULL, 2);
}

/* CAM-01, CAM-05: without replies, to a consumer; with them, from a stranger. */
static void
datagrams_are_sent_and_replied_to(void)
{
    trp_system *system = stage_open();
    keeper_init(&k, "c", false);
    snprintf(k.uri, sizeof k.uri, "udp:127.0.0.1:0");
    keeper_start(system, &k);
    keeper_init(&other, "p", true);
    snprintf(other.uri, sizeof other.uri, "udp:%s", k.address);
    keeper_start(system, &other);
    keeper_do(system, &other, send_two);
    UNIT_WAIT(stage_has("p:done(1)") && stage_has("p:done(2)"), 60000);
    UNIT_WAIT(stage_has("c:got(,one,0)") && stage_has("c:got(,two,0)"), 60000);
    stage_close(system);

    struct sockaddr_in from;
    socklen_t bytes = sizeof from;
    char data[8];
    int fd = stranger_socket(SOCK_DGRAM), port = stranger_bind(fd, 0);
    system = stage_open();
    keeper_init(&other, "p", true);
    snprintf(other.uri, sizeof other.uri, "udp:127.0.0.1:%d?reply=1", port);
    other.options.timeout_ms = 1000;
    keeper_start(system, &other);
    keeper_do(system, &other, send_two);
    UNIT_EQUAL(recvfrom(fd, data, sizeof data, 0, (struct sockaddr *)&from, &bytes), 3);
    UNIT_WAIT(stage_has("p:error(1,TRP_ETIMEDOUT)"), 60000);
    UNIT_EQUAL(sendto(fd, "late", 4, 0, (struct sockaddr *)&from, bytes), 4); /* scheme-udp-U1 */
    UNIT_EQUAL(recvfrom(fd, data, sizeof data, 0, (struct sockaddr *)&from, &bytes), 3);
    UNIT_EQUAL(sendto(fd, "2!", 2, 0, (struct sockaddr *)&from, bytes), 2);
    uint64_t deadline = unit_deadline_ms(60000);
    for (uint32_t tries = 1; unit_now_ms() < deadline; tries++) { /* on a slow machine it is late */
        UNIT_WAIT(atomic_load(&other.got) == 1 || atomic_load(&other.errors) > tries, 60000);
        if (atomic_load(&other.got) == 1) {
            break;
        }
        keeper_do(system, &other, send_again);
        UNIT_EQUAL(recvfrom(fd, data, sizeof data, 0, (struct sockaddr *)&from, &bytes), 3);
        UNIT_EQUAL(sendto(fd, "2!", 2, 0, (struct sockaddr *)&from, bytes), 2);
    }
    UNIT_TRUE(stage_has("p:got(,2!,2)"));
    UNIT_FALSE(stage_has("late"));
    close(fd);
    stage_close(system);
}

static void
send_large(trp_ctx *ctx, keeper *of)
{
    static uint8_t data[TRP_UDP_BYTES_MAX + 1];
    trp_bytes body;
    for (size_t bytes = sizeof data; bytes >= sizeof data - 1; bytes--) {
        UNIT_EQUAL(trp_bytes_copy(data, bytes, &body), TRP_OK);
        UNIT_EQUAL(trp_endpoint_send(ctx, of->endpoint, body, NULL, 0, bytes), TRP_OK);
        trp_bytes_unref(&body);
    }
}

/* Nobody listens: with replies that is an error at once; a datagram has a bound. */
static void
datagrams_that_cannot_be_sent_fail(void)
{
    trp_system *system = stage_open();
    int fd = stranger_socket(SOCK_DGRAM), port = stranger_bind(fd, 0);
    keeper_init(&other, "p", true);
    snprintf(other.uri, sizeof other.uri, "udp:127.0.0.1:%d", port);
    keeper_start(system, &other);
    keeper_do(system, &other, send_large);
    UNIT_WAIT(stage_has("p:error(65508,TRP_EMSGSIZE)") && stage_has("p:done(65507)"), 60000);
    stage_close(system);
    close(fd);

    system = stage_open();
    keeper_init(&other, "p", true);
    snprintf(other.uri, sizeof other.uri, "udp:127.0.0.1:%d?reply=1", port);
    keeper_start(system, &other);
    keeper_do(system, &other, send_two);
    UNIT_WAIT(stage_has("p:error(1,TRP_EIO)") && stage_has("p:error(2,TRP_EIO)"), 60000);
    stage_close(system);
}

UNIT_BEGIN("udp")
UNIT(datagrams_are_consumed_and_replied_to)
UNIT(datagrams_wait_for_room)
UNIT(datagrams_are_sent_and_replied_to)
UNIT(datagrams_that_cannot_be_sent_fail)
UNIT_END
