/* endpoint.c - endpoint: messages a second over TCP (troupe/endpoint.h).
 *
 * `in`: lines of 100 bytes that a thread writes to a consumer as fast as it reads. `out`: as many
 * by a producer to a thread that reads, each with its trp_endpoint_done; 64 are on their way.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <troupe/endpoint.h>

#include "tests/bench/bench.h"

enum { LINE = 100, LINES = 640, WINDOW = 64, QUIET_S = 60 };

/* State that the actor and the threads share. */
static struct {
    bool produces;
    uint64_t count;
    uint64_t sent; /* the actor's */
    _Atomic uint64_t got;
    _Atomic int port;
    char uri[64];
} run;

typedef struct ends {
    trp_ref endpoint;
} ends;

static void
fail(const char *why)
{
    (void)fprintf(stderr, "bench endpoint: %s\n", why);
    exit(1);
}

static void
more_send(trp_ctx *ctx, const ends *e)
{
    static uint8_t text[LINE - 1];
    trp_bytes body;
    memset(text, 'x', sizeof text);
    bench_check(trp_bytes_copy(text, sizeof text, &body), "trp_bytes_copy");
    for (; run.sent < run.count && run.sent < atomic_load(&run.got) + WINDOW; run.sent++) {
        bench_check(trp_endpoint_send(ctx, e->endpoint, body, NULL, 0, 1), "trp_endpoint_send");
    }
    trp_bytes_unref(&body);
}

static trp_err
ends_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    ends *e = state;
    (void)args;
    return run.produces ? trp_producer_open(ctx, run.uri, NULL, &e->endpoint)
                        : trp_consumer_open(ctx, run.uri, NULL, &e->endpoint);
}

static trp_err
ends_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const ends *e = state;
    if (trp_endpoint_message_of(msg) != NULL || trp_msg_is(msg, &trp_endpoint_done_type)) {
        atomic_fetch_add(&run.got, 1);
    } else if (trp_msg_is(msg, &trp_endpoint_event_type)) {
        const char *reason = ((const trp_endpoint_event *)trp_msg_payload(msg))->reason;
        const char *colon = strrchr(reason, ':');
        atomic_store(&run.port, colon != NULL ? atoi(colon + 1) : 1);
    } else {
        fail(trp_msg_is(msg, &trp_endpoint_error_type)
                 ? ((const trp_endpoint_error *)trp_msg_payload(msg))->reason
                 : "a message that nobody expects");
    }
    if (run.produces) {
        more_send(ctx, e);
    }
    return TRP_OK;
}

static int
loopback_socket(struct sockaddr_in *address, int port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memset(address, 0, sizeof *address);
    address->sin_family = AF_INET;
    address->sin_port = htons((uint16_t)port);
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return fd;
}

static void *
lines_write(void *arg)
{
    static char lines[LINES * LINE];
    int fd = *(const int *)arg;
    memset(lines, 'x', sizeof lines);
    for (size_t i = LINE - 1; i < sizeof lines; i += LINE) {
        lines[i] = '\n';
    }
    for (uint64_t left = run.count * LINE; left > 0;) {
        uint64_t at = (run.count * LINE - left) % sizeof lines, now = sizeof lines - at;
        ssize_t put = send(fd, lines + at, now < left ? now : left, MSG_NOSIGNAL);
        if (put <= 0) {
            break;
        }
        left -= (uint64_t)put;
    }
    return NULL;
}

static void *
lines_read(void *arg)
{
    static char data[65536];
    int fd = accept(*(const int *)arg, NULL, NULL);
    while (recv(fd, data, sizeof data, 0) > 0) {
    }
    (void)close(fd);
    return NULL;
}

/* Wait until all have come, or none for QUIET_S. Return how many have not. */
static uint64_t
rest_await(void)
{
    uint64_t got = 0, since = bench_now_ns();
    while (got < run.count && bench_now_ns() - since < QUIET_S * UINT64_C(1000000000)) {
        uint64_t now = atomic_load(&run.got);
        since = now > got ? bench_now_ns() : since;
        got = now;
        (void)usleep(1000);
    }
    return run.count - got;
}

/* Messages a second. */
static double
rate_of(const bench_options *options, bool produces, uint64_t *ret_lost)
{
    trp_behaviour behaviour = TRP_BEHAVIOUR_INIT("ends", ends, ends_receive);
    trp_system *system = bench_system(options);
    struct sockaddr_in address;
    socklen_t bytes = sizeof address;
    pthread_t thread;
    trp_ref ref;
    int fd = loopback_socket(&address, 0);
    behaviour.pre_start = ends_start;
    run.produces = produces;
    run.count = options->count == 0 ? 500000 : options->count;
    run.sent = 0;
    atomic_store(&run.got, 0);
    atomic_store(&run.port, 0);
    (void)snprintf(run.uri, sizeof run.uri, "tcp:127.0.0.1:0");
    if (produces) {
        if (bind(fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
            listen(fd, 1) != 0 || getsockname(fd, (struct sockaddr *)&address, &bytes) != 0 ||
            pthread_create(&thread, NULL, lines_read, &fd) != 0) {
            fail("no socket");
        }
        (void)snprintf(run.uri, sizeof run.uri, "tcp:127.0.0.1:%d", ntohs(address.sin_port));
    }
    uint64_t start = bench_now_ns();
    bench_check(trp_system_spawn(system, &behaviour, NULL, &ref), "trp_system_spawn");
    if (!produces) {
        while (atomic_load(&run.port) == 0) {
            (void)usleep(1000);
        }
        address.sin_port = htons((uint16_t)atomic_load(&run.port));
        start = bench_now_ns();
        if (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
            pthread_create(&thread, NULL, lines_write, &fd) != 0) {
            fail("no connection");
        }
    }
    *ret_lost = rest_await();
    double seconds = (double)(bench_now_ns() - start) / 1e9;
    bench_system_end(system);
    (void)pthread_join(thread, NULL);
    (void)close(fd);
    return (double)run.count / seconds;
}

static int
endpoint_run(const bench_options *options)
{
    uint64_t lost_in, lost_out;
    bench_print("endpoint", "in", rate_of(options, false, &lost_in), "messages/s");
    bench_print("endpoint", "out", rate_of(options, true, &lost_out), "messages/s");
    bench_print("endpoint", "lost", (double)(lost_in + lost_out), "messages");
    return lost_in + lost_out == 0 ? 0 : 1;
}

const bench_workload bench_endpoint[] = {
    { "endpoint", "lines of 100 bytes over tcp: in: consumed; out: produced, each with its done",
      endpoint_run },
    { NULL, NULL, NULL },
};
