/* http_test.c - requests to the page of a demonstration: what is taken, what is refused, and the
 * limits. */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cluster/demo/http.h"
#include "tests/unit/unit.h"

static trpi_demo_request request;

static int
parse(const char *text)
{
    return trpi_demo_http_parse(text, strlen(text), &request);
}

static void
a_request_is_taken_apart(void)
{
    static const char text[] = "POST /start?a=b HTTP/1.1\r\nHost: 127.0.0.1:8\r\n"
                               "AUTHORIZATION: Bearer k\r\norigin: http://127.0.0.1:8\r\n"
                               "Connection: close\r\nContent-Length: 8\r\n\r\ndemo=all";
    char value[8];
    for (size_t count = 0; count < sizeof text - 1; count++) { /* byte by byte: more are needed */
        UNIT_EQUAL(trpi_demo_http_parse(text, count, &request), 0);
    }
    UNIT_EQUAL(parse(text), (int)sizeof text - 1);
    UNIT_TEXT(request.method, "POST");
    UNIT_TEXT(request.target, "/start?a=b");
    UNIT_TEXT(request.host, "127.0.0.1:8");
    UNIT_TEXT(request.authorization, "Bearer k");
    UNIT_TEXT(request.origin, "http://127.0.0.1:8");
    UNIT_TEXT(request.body, "demo=all");
    UNIT_TRUE(request.closes);
    UNIT_TRUE(trpi_demo_http_field(request.body, "demo", value, sizeof value));
    UNIT_TEXT(value, "all");
    /* what follows is the next one's */
    UNIT_EQUAL(parse("GET / HTTP/1.1\r\n\r\nGET /state"), 18);
    UNIT_TEXT(request.host, "");
    UNIT_FALSE(request.closes);
}

static void
what_is_no_request_is_refused(void)
{
    static const char *const bad[] = {
        "GET / HTTP/1.0\r\n\r\n",
        "GET  HTTP/1.1\r\n\r\n",
        "GET http://evil/ HTTP/1.1\r\n\r\n",
        "TOOLONGMETHOD / HTTP/1.1\r\n\r\n",
        "GET /\r\n\r\n",
        "GET / HTTP/1.1\n\r\n\r\n",
        "GET / HTTP/1.1\r\nno colon\r\n\r\n",
        "GET / HTTP/1.1\r\n: empty\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "GET / HTTP/1.1\r\nContent-Length: 1x\r\n\r\n",
        "GET / HTTP/1.1\r\nContent-Length: 12345678\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        UNIT_EQUAL(parse(bad[i]), -400);
    }
    static const char nul[] = "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\na\0b";
    UNIT_EQUAL(trpi_demo_http_parse(nul, sizeof nul - 1, &request), -400);
}

/* Head, body, target and header: at the limit and one past it. */
static void
limits_hold(void)
{
    char text[TRPI_DEMO_HTTP_HEAD_BYTES_MAX + TRPI_DEMO_HTTP_BODY_BYTES_MAX + 64];
    for (unsigned more = 0; more < 2; more++) {
        int bytes = snprintf(text, sizeof text, "GET / HTTP/1.1\r\nx: ");
        size_t fill = TRPI_DEMO_HTTP_HEAD_BYTES_MAX - (size_t)bytes - 4 + more;
        memset(text + bytes, 'x', fill);
        memcpy(text + (size_t)bytes + fill, "\r\n\r\n", 5);
        UNIT_EQUAL(parse(text), more == 0 ? (int)TRPI_DEMO_HTTP_HEAD_BYTES_MAX : -431);

        bytes = snprintf(text, sizeof text, "POST / HTTP/1.1\r\nContent-Length: %u\r\n\r\n",
                         TRPI_DEMO_HTTP_BODY_BYTES_MAX + more);
        memset(text + bytes, 'x', TRPI_DEMO_HTTP_BODY_BYTES_MAX);
        UNIT_EQUAL(
            trpi_demo_http_parse(text, (size_t)bytes + TRPI_DEMO_HTTP_BODY_BYTES_MAX, &request),
            more == 0 ? bytes + (int)TRPI_DEMO_HTTP_BODY_BYTES_MAX : -413);

        (void)snprintf(text, sizeof text, "GET /%0*d HTTP/1.1\r\n\r\n",
                       (int)(sizeof request.target - 2 + more), 0);
        UNIT_TRUE(more == 0 ? parse(text) > 0 : parse(text) == -400);

        (void)snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: %0*d\r\n\r\n",
                       (int)(sizeof request.host - 1 + more), 0);
        UNIT_TRUE(more == 0 ? parse(text) > 0 : parse(text) == -400);
    }
    memset(text, 'x', TRPI_DEMO_HTTP_HEAD_BYTES_MAX); /* it has no end */
    UNIT_EQUAL(trpi_demo_http_parse(text, TRPI_DEMO_HTTP_HEAD_BYTES_MAX - 1, &request), 0);
    UNIT_EQUAL(trpi_demo_http_parse(text, TRPI_DEMO_HTTP_HEAD_BYTES_MAX, &request), -431);
}

static void
fields_are_found(void)
{
    char value[5];
    UNIT_TRUE(trpi_demo_http_field("a=1&bb=22&b=3", "b", value, sizeof value));
    UNIT_TEXT(value, "3");
    UNIT_TRUE(trpi_demo_http_field("a=1234", "a", value, sizeof value));
    UNIT_FALSE(trpi_demo_http_field("a=12345", "a", value, sizeof value));
    UNIT_FALSE(trpi_demo_http_field("a=1%20", "a", value, sizeof value));
    UNIT_FALSE(trpi_demo_http_field("ab=1&", "a", value, sizeof value));
    UNIT_FALSE(trpi_demo_http_field("a", "a", value, sizeof value));
    UNIT_FALSE(trpi_demo_http_field("", "a", value, sizeof value));
}

/* Random bytes: the parser takes no more than there are. Random, by a seed. */
static void
any_bytes_are_taken_or_refused(void)
{
    static const char *const parts[] = {
        "GET ", "/",       " HTTP/1.1", "\r\n", "\r\n\r\n", "Host: ", "Content-Length: ",
        "9",    "origin:", "x",         "\n",   " "
    };
    const char *given = getenv("TROUPE_TEST_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : 18;
    uint64_t state = seed;
    printf("seed %llu (TROUPE_TEST_SEED replays it)\n", (unsigned long long)seed);
    for (int round = 0; round < 20000; round++) {
        char text[256] = "";
        size_t count = 0;
        for (int i = 0; i < 20; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            const char *part = parts[(state >> 40) % (sizeof parts / sizeof parts[0])];
            if (count + strlen(part) < sizeof text) {
                memcpy(text + count, part, strlen(part));
                count += strlen(part);
            }
        }
        int bytes = trpi_demo_http_parse(text, count, &request);
        UNIT_TRUE(bytes <= (int)count);
        UNIT_TRUE(bytes >= 0 || bytes == -400 || bytes == -413 || bytes == -431);
    }
}

static void
ok_answer(void *arg, const trpi_demo_request *asked, trpi_demo_answer *ret_answer)
{
    (void)arg;
    (void)asked;
    ret_answer->status = 200;
    ret_answer->type = "text/plain";
}

static uint64_t
mono_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* A server without descriptors waits before it accepts again, and does so then. */
static void
without_descriptors_it_waits(void)
{
    static const char asked[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    struct sockaddr_in address = { .sin_family = AF_INET };
    trpi_demo_http *http = NULL;
    struct rlimit limit, none;
    enum { DESCRIPTORS = 64 };
    int held[DESCRIPTORS], count = 0;
    sigset_t mask;
    char got[16] = "";
    (void)sigemptyset(&mask);
    UNIT_EQUAL(trpi_demo_http_open(0, ok_answer, NULL, &http), TRP_OK);
    address.sin_port = htons(trpi_demo_http_port(http));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    UNIT_EQUAL(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    UNIT_EQUAL(write(fd, asked, sizeof asked - 1), (ssize_t)sizeof asked - 1);
    struct pollfd come = { .fd = fd, .events = POLLIN };
    UNIT_EQUAL(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = (struct rlimit){ DESCRIPTORS, limit.rlim_max }; /* as many as poll() is given, or more */
    UNIT_EQUAL(setrlimit(RLIMIT_NOFILE, &none), 0);
    while (count < DESCRIPTORS && (held[count] = dup(fd)) >= 0) {
        count++;
    }
    UNIT_TRUE(count > 0 && count < DESCRIPTORS);
    UNIT_FALSE(trpi_demo_http_is_starved(http));
    trpi_demo_http_serve(http, 1000, 5000, &mask); /* it cannot accept */
    UNIT_TRUE(trpi_demo_http_is_starved(http));
    uint64_t begin = mono_ms();
    trpi_demo_http_serve(http, 50, 5000 + TRPI_DEMO_HTTP_FULL_MS - 1, &mask);
    UNIT_TRUE(mono_ms() - begin >= 45);
    while (count > 0) {
        (void)close(held[--count]);
    }
    UNIT_EQUAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
    for (int i = 0; i < 100 && poll(&come, 1, 0) == 0; i++) {
        trpi_demo_http_serve(http, 1000, 5000 + TRPI_DEMO_HTTP_FULL_MS, &mask);
    }
    UNIT_TRUE(read(fd, got, 12) == 12);
    UNIT_TEXT(got, "HTTP/1.1 200");
    UNIT_FALSE(trpi_demo_http_is_starved(http));
    (void)close(fd);
    trpi_demo_http_close(http);
}

UNIT_BEGIN("demo_http")
UNIT(a_request_is_taken_apart)
UNIT(what_is_no_request_is_refused)
UNIT(limits_hold)
UNIT(fields_are_found)
UNIT(any_bytes_are_taken_or_refused)
UNIT(without_descriptors_it_waits)
UNIT_END
