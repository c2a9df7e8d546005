/* stream_test.c - streams of events of a server without a node: their beginning, their limit, how
 * late an event is, and readers that are too slow. */
#include <arpa/inet.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cluster/management/management.h"
#include "tests/unit/unit.h"

#define TAIL_BYTES 128 /* more than a text that is awaited */
#define SNAPSHOT                                                                                   \
    "{\"ok\":true,\"after\":\"%llu\"}\n{\"event\":{\"type\":\"LeaderChanged\",\"leader\":\"A\"}}"

static trpi_management *server;
static atomic_bool refuses;

/* The server's thread: the snapshot of a node whose leader is A. */
static void
node_answer(void *arg, trpi_management *management, uint64_t id, const char *command,
            const char *from)
{
    char text[160];
    (void)arg;
    (void)command;
    (void)from;
    if (atomic_load(&refuses)) {
        trpi_management_reply(management, id, "{\"ok\":false,\"exit\":75,\"error\":\"busy\"}");
        return;
    }
    (void)snprintf(text, sizeof text, SNAPSHOT,
                   (unsigned long long)trpi_management_events_last(management, false));
    trpi_management_reply(management, id, text);
}

/* false: this build has no server. */
static bool
server_start_ms(uint32_t streams_max, uint32_t request_ms)
{
    char why[TRPI_MANAGEMENT_WHY_BYTES] = "";
    trpi_management_options options = { .bind = "127.0.0.1",
                                        .cert = "",
                                        .key = "",
                                        .ca = "",
                                        .connections_max = 16,
                                        .request_ms = request_ms,
                                        .streams_max = streams_max,
                                        .uid = 7,
                                        .ask = node_answer };
    if (trpi_management_check(why) != TRP_OK) {
        return false;
    }
    atomic_store(&refuses, false);
    UNIT_REQUIRE(trpi_management_open(&options, &server, why) == TRP_OK);
    (void)trpi_management_events_last(server, true);
    return true;
}

static bool
server_start(uint32_t streams_max)
{
    return server_start_ms(streams_max, 60000);
}

static void
server_end(void)
{
    trpi_management_stop(server);
    trpi_management_free(server);
    server = NULL;
}

typedef struct reader {
    int fd;
    size_t count;
    char text[65536];
} reader;

static void
reader_open(reader *r, const char *last_id, int receive_bytes)
{
    char request[256];
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(trpi_management_port(server)) };
    struct timeval limit = { 60, 0 };
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    memset(r, 0, sizeof *r);
    r->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    UNIT_REQUIRE(r->fd >= 0);
    if (receive_bytes > 0) {
        (void)setsockopt(r->fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    }
    (void)setsockopt(r->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    UNIT_REQUIRE(connect(r->fd, (struct sockaddr *)&to, sizeof to) == 0);
    (void)snprintf(request, sizeof request,
                   "GET /cluster/domain-events HTTP/1.1\r\nHost: 127.0.0.1\r\n%s%s%s\r\n",
                   last_id != NULL ? "Last-Event-ID: " : "", last_id != NULL ? last_id : "",
                   last_id != NULL ? "\r\n" : "");
    UNIT_EQUAL(send(r->fd, request, strlen(request), MSG_NOSIGNAL), (ssize_t)strlen(request));
}

/* Read until `text` has come; false: the stream has ended, or nothing comes. */
static bool
reader_await(reader *r, const char *text)
{
    while (strstr(r->text, text) == NULL) {
        if (r->count + 1 == sizeof r->text) { /* keep what may be the beginning of text */
            memmove(r->text, r->text + r->count - TAIL_BYTES, TAIL_BYTES);
            r->count = TAIL_BYTES;
        }
        ssize_t got = recv(r->fd, r->text + r->count, sizeof r->text - 1 - r->count, 0);
        if (got <= 0) {
            return false;
        }
        r->count += (size_t)got;
        r->text[r->count] = '\0';
    }
    return true;
}

static void
event_make(const char *leader)
{
    char text[128];
    (void)snprintf(text, sizeof text, "{\"event\":{\"type\":\"LeaderChanged\",\"leader\":\"%s\"}}",
                   leader);
    trpi_management_event(server, text);
}

static reader one, two;

static void
a_stream_begins_with_reset_and_the_state_and_goes_on_with_events(void)
{
    if (!server_start(4)) {
        return;
    }
    event_make("before");
    reader_open(&one, NULL, 0);
    UNIT_TRUE(reader_await(&one, "data:{\"type\":\"Reset\"}\nevent:Reset\n\n"));
    UNIT_TRUE(reader_await(&one, "\"address\":\"A\"}\nevent:LeaderChanged\n\nid:7-1\n\n"));
    UNIT_TRUE(strstr(one.text, "Content-Type: text/event-stream\r\n") != NULL);
    UNIT_TRUE(strstr(one.text, "Content-Length") == NULL);
    UNIT_TRUE(strstr(one.text, "before") == NULL);
    event_make("B");
    UNIT_TRUE(reader_await(&one, "id:7-2\ndata:{\"type\":\"LeaderChanged\",\"leader\":\"B\""));
    close(one.fd);
    server_end();
}

static void
a_reader_that_comes_back_is_given_the_rest_without_reset(void)
{
    if (!server_start(4)) {
        return;
    }
    event_make("B");
    event_make("C");
    reader_open(&one, "7-1", 0);
    UNIT_TRUE(reader_await(&one, "id:7-2\n"));
    UNIT_TRUE(strstr(one.text, "Reset") == NULL && strstr(one.text, "\"B\"") == NULL);
    close(one.fd);
    reader_open(&one, "6-1", 0); /* of another incarnation */
    UNIT_TRUE(reader_await(&one, "event:Reset"));
    close(one.fd);
    server_end();
}

static void
a_stream_above_the_limit_is_503_and_a_place_is_free_again(void)
{
    if (!server_start(1)) {
        return;
    }
    reader_open(&one, NULL, 0);
    UNIT_TRUE(reader_await(&one, "id:7-0\n"));
    reader_open(&two, NULL, 0);
    UNIT_TRUE(reader_await(&two, "HTTP/1.1 503"));
    UNIT_TRUE(reader_await(&two, "{\"error\":\"too-many-streams\""));
    close(two.fd);
    close(one.fd);
    bool served = false;
    UNIT_WAIT((reader_open(&two, "7-0", 0), event_make("B"), served = reader_await(&two, "id:7-"),
               close(two.fd), served),
              60000);
    server_end();
}

static void
a_node_that_gives_no_snapshot_is_503(void)
{
    if (!server_start(1)) {
        return;
    }
    atomic_store(&refuses, true);
    reader_open(&one, NULL, 0);
    UNIT_TRUE(reader_await(&one, "HTTP/1.1 503"));
    UNIT_TRUE(reader_await(&one, "{\"error\":\"try-again\",\"message\":\"busy\"}"));
    close(one.fd);
    atomic_store(&refuses, false);
    reader_open(&one, NULL, 0); /* its place is free */
    UNIT_TRUE(reader_await(&one, "id:7-0\n"));
    close(one.fd);
    server_end();
}

static int
by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* At most 100 ms after the change: three times that is a failure. */
static void
an_event_is_there_soon_after_the_change(void)
{
    enum { EVENTS = 50 };
    uint64_t late_ms[EVENTS];
    char id[32];
    if (!server_start(4)) {
        return;
    }
    reader_open(&one, NULL, 0);
    UNIT_TRUE(reader_await(&one, "id:7-0\n"));
    for (unsigned i = 0; i < EVENTS; i++) {
        uint64_t before_ms = unit_now_ms();
        event_make("B");
        (void)snprintf(id, sizeof id, "id:7-%u\n", i + 1);
        UNIT_TRUE(reader_await(&one, id));
        late_ms[i] = unit_now_ms() - before_ms;
    }
    qsort(late_ms, EVENTS, sizeof late_ms[0], by_size);
    UNIT_TRUE(late_ms[EVENTS / 2] <= 300);
    close(one.fd);
    server_end();
}

static void
a_slow_reader_is_cut_off_and_others_go_on(void)
{
    enum { BYTES = 100000 };
    static char large[BYTES + 128];
    char id[32];
    if (!server_start(4)) {
        return;
    }
    reader_open(&one, NULL, 2048); /* and reads nothing */
    reader_open(&two, NULL, 0);
    UNIT_TRUE(reader_await(&two, "id:7-0\n"));
    UNIT_TRUE(reader_await(&one, "id:7-0\n"));
    int length =
        snprintf(large, sizeof large, "{\"event\":{\"type\":\"LeaderChanged\",\"leader\":\"");
    memset(large + length, 'x', BYTES);
    (void)snprintf(large + length + BYTES, sizeof large - BYTES - (size_t)length, "\"}}");
    for (unsigned i = 0; i < 200; i++) { /* 20 MB: more than all buffers between take */
        trpi_management_event(server, large);
        (void)snprintf(id, sizeof id, "id:7-%u\n", i + 1);
        UNIT_REQUIRE(reader_await(&two, id));
    }
    for (unsigned i = 0; i < 1024; i++) {
        event_make("B");
    }
    UNIT_TRUE(reader_await(&two, "id:7-1224\n"));
    UNIT_TRUE(!reader_await(&one, "id:7-1224\n")); /* it is not told what it would miss */
    close(one.fd);
    close(two.fd);
    server_end();
}

/* The limit of a request is 1 s here, and nothing comes for longer than that: neither an end nor a
 * beat, which is due after 10 s. */
static void
a_stream_outlives_the_limit_of_a_request(void)
{
    if (!server_start_ms(4, 1000)) {
        return;
    }
    reader_open(&one, NULL, 0);
    UNIT_TRUE(reader_await(&one, "id:7-0\n"));
    reader_open(&two, "7-0", 0); /* it is resumed */
    UNIT_TRUE(reader_await(&two, "retry:1000\n\n"));
    struct pollfd silent[] = { { one.fd, POLLIN, 0 }, { two.fd, POLLIN, 0 } };
    UNIT_EQUAL(poll(silent, 2, 3500), 0);
    event_make("B");
    UNIT_TRUE(reader_await(&one, "id:7-1\n"));
    UNIT_TRUE(reader_await(&two, "id:7-1\n"));
    close(one.fd);
    close(two.fd);
    server_end();
}

UNIT_BEGIN("stream")
UNIT(a_stream_begins_with_reset_and_the_state_and_goes_on_with_events)
UNIT(a_reader_that_comes_back_is_given_the_rest_without_reset)
UNIT(a_stream_above_the_limit_is_503_and_a_place_is_free_again)
UNIT(a_node_that_gives_no_snapshot_is_503)
UNIT(an_event_is_there_soon_after_the_change)
UNIT(a_slow_reader_is_cut_off_and_others_go_on)
UNIT(a_stream_outlives_the_limit_of_a_request)
UNIT_END
