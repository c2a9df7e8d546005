/* sockets.c - actors that own sockets, compared with a bare epoll program doing the same work:
 * echoes of 64 B over 100 connections, much over one connection in each direction, and connections
 * that are idle.
 *
 * Shape.  Each server is a process of its own on the first core, the client is this one, on the
 *         last. Servers take turns, round by round; medians and quartiles are of the rounds.
 */
#include "tests/bench/sockets.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORKLOAD "sockets"
#define CONNECTIONS 100u
#define ECHO_BYTES 64u
#define ECHOES_DEFAULT 200000u
#define BULK_BYTES_AN_ECHO 10000u /* 2 GB by default */
#define IDLE_DEFAULT 1000u
#define IDLE_NS 2000000000u
#define ROUNDS_MAX 101u

typedef void (*serve_fn)(const sockets_server *server);

typedef struct child {
    pid_t pid;
    int end; /* closed: it ends */
    uint16_t port;
    clockid_t clock; /* its processor time */
} child;

/* ---- processes and cores --------------------------------------------------------------------- */

static int server_core = -1, client_core = -1;

static void
core_take(int core)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET((size_t)core, &one);
    sockets_check(sched_setaffinity(0, sizeof one, &one) == 0, "sched_setaffinity");
}

/* Place the servers on the first core of those that were given, and the client on the last one. */
static void
cores_place(uint64_t rounds, uint32_t threads)
{
    cpu_set_t all;

    sockets_check(sched_getaffinity(0, sizeof all, &all) == 0, "sched_getaffinity");
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET((size_t)i, &all)) {
            server_core = server_core < 0 ? i : server_core;
            client_core = i;
        }
    }
    core_take(client_core);
    (void)fprintf(
        stderr,
        "placement: servers on core %d (workers of the actors: %u), client on core %d, of "
        "%d; %llu rounds by turns\n",
        server_core, threads, client_core, CPU_COUNT(&all), (unsigned long long)rounds);
}

static child
child_start(serve_fn serve, const bench_options *options, sockets_work work, uint64_t bytes)
{
    sockets_server server = { .work = work, .bytes = bytes };
    int ready[2], end[2];
    child c;

    server.threads = options->threads != 0 ? options->threads : 1;
    sockets_check(pipe(ready) == 0 && pipe(end) == 0, "pipe");
    c.pid = fork();
    sockets_check(c.pid >= 0, "fork");
    if (c.pid == 0) {
        (void)close(end[1]);
        (void)close(ready[0]);
        core_take(server_core);
        server.ready = ready[1];
        server.end = end[0];
        serve(&server);
        _exit(0); /* what the kernel keeps of peers, such as their pointers, is no leak */
    }
    (void)close(end[0]);
    (void)close(ready[1]);
    c.end = end[1];
    sockets_check(read(ready[0], &c.port, sizeof c.port) == (ssize_t)sizeof c.port, "server");
    (void)close(ready[0]);
    sockets_check(clock_getcpuclockid(c.pid, &c.clock) == 0, "clock");
    return c;
}

static void
child_end(const child *c)
{
    int status;

    (void)close(c->end);
    sockets_check(waitpid(c->pid, &status, 0) == c->pid && status == 0, "server");
}

static uint64_t
child_cpu_ns(const child *c)
{
    struct timespec used;

    sockets_check(clock_gettime(c->clock, &used) == 0, "clock_gettime");
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

static size_t
child_rss_bytes(const child *c)
{
    unsigned long total = 0, resident = 0;
    char path[64];
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%d/statm", (int)c->pid);
    file = fopen(path, "r");
    sockets_check(file != NULL && fscanf(file, "%lu %lu", &total, &resident) == 2, path);
    (void)fclose(file);
    return (size_t)resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* ---- the client ------------------------------------------------------------------------------ */

static int
dial(const child *c)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(c->port),
                                   .sin_addr = { htonl(INADDR_LOOPBACK) } };
    struct linger reset = { .l_onoff = 1 }; /* no port waits for late segments */
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

    sockets_check(fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
                      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0 &&
                      setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset) == 0,
                  "connect");
    return fd;
}

static void
echo_send(int fd)
{
    static const uint8_t bytes[ECHO_BYTES];

    sockets_check(send(fd, bytes, sizeof bytes, MSG_NOSIGNAL) == (ssize_t)sizeof bytes, "send");
}

/* Have `count` echoes, one at a time on each connection. The client never sleeps: a server whose
 * peers are other machines does not pay for waking them. */
static void
echoes_have(int epoll, const int *fds, uint64_t count)
{
    uint64_t left = count, to_send = count;
    struct epoll_event events[64];

    for (uint32_t i = 0; i < CONNECTIONS && to_send > 0; i++, to_send--) {
        echo_send(fds[i]);
    }
    while (left > 0) {
        int ready = epoll_wait(epoll, events, 64, 0);

        for (int i = 0; i < ready; i++) {
            uint8_t bytes[ECHO_BYTES];

            sockets_check(recv(events[i].data.fd, bytes, sizeof bytes, MSG_WAITALL) ==
                              (ssize_t)sizeof bytes,
                          "recv");
            left--;
            if (to_send > 0) {
                to_send--;
                echo_send(events[i].data.fd);
            }
        }
    }
}

/* The server's processor time of an echo, in ns. */
static double
echo_measure(serve_fn serve, const bench_options *options, uint64_t count)
{
    child server = child_start(serve, options, SOCKETS_ECHO, 0);
    int epoll = epoll_create1(0), fds[CONNECTIONS];
    uint64_t before, used;

    for (uint32_t i = 0; i < CONNECTIONS; i++) {
        struct epoll_event event = { .events = EPOLLIN };

        event.data.fd = fds[i] = dial(&server);
        sockets_check(epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &event) == 0, "epoll_ctl");
    }
    echoes_have(epoll, fds, count / 10 + CONNECTIONS);
    before = child_cpu_ns(&server);
    echoes_have(epoll, fds, count);
    used = child_cpu_ns(&server) - before;
    for (uint32_t i = 0; i < CONNECTIONS; i++) {
        (void)close(fds[i]);
    }
    (void)close(epoll);
    child_end(&server);
    return (double)used / (double)count;
}

/* The rate of `bytes` over one connection, in MB/s. */
static double
bulk_measure(serve_fn serve, const bench_options *options, sockets_work work, uint64_t bytes)
{
    static uint8_t data[SOCKETS_READ_BYTES];
    child server = child_start(serve, options, work, bytes);
    uint64_t start = bench_now_ns(), left = bytes;
    int fd = dial(&server);
    ssize_t n = 1;

    while (left > 0 && n > 0) {
        n = work == SOCKETS_SINK
                ? send(fd, data, left < SOCKETS_SLICE_BYTES ? left : SOCKETS_SLICE_BYTES,
                       MSG_NOSIGNAL)
                : recv(fd, data, sizeof data, 0);
        left -= n > 0 ? (uint64_t)n : 0;
    }
    sockets_check(left == 0 && (work == SOCKETS_SOURCE || recv(fd, data, 1, 0) == 1), "bulk");
    start = bench_now_ns() - start;
    (void)close(fd);
    child_end(&server);
    return (double)bytes * 1e3 / (double)start;
}

/* Connections that do nothing: bytes of the server each, and its processor time in parts of one. */
static void
idle_measure(const bench_options *options, uint32_t count, double *ret_bytes, double *ret_cpu)
{
    child server = child_start(sockets_serve_actors, options, SOCKETS_ECHO, 0);
    int *fds = calloc(count, sizeof *fds);
    size_t before, rss, last = 0;
    uint64_t start, cpu;
    uint8_t byte = 0;
    int steady = 0;

    sockets_check(fds != NULL, "calloc");
    fds[0] = dial(&server); /* what the first connection makes is not counted */
    sockets_check(send(fds[0], &byte, 1, 0) == 1 && recv(fds[0], &byte, 1, 0) == 1, "echo");
    before = child_rss_bytes(&server);
    for (uint32_t i = 1; i < count; i++) {
        fds[i] = dial(&server);
    }
    for (uint32_t i = 0; i < count; i++) { /* each has its handler */
        sockets_check(send(fds[i], &byte, 1, 0) == 1 && recv(fds[i], &byte, 1, 0) == 1, "echo");
    }
    for (rss = before; steady < 25; rss = child_rss_bytes(&server)) {
        (void)nanosleep(&(struct timespec){ 0, 20000000 }, NULL);
        steady = rss == last ? steady + 1 : 0;
        last = rss;
    }
    start = bench_now_ns();
    cpu = child_cpu_ns(&server);
    (void)nanosleep(&(struct timespec){ IDLE_NS / 1000000000u, IDLE_NS % 1000000000u }, NULL);
    *ret_cpu = (double)(child_cpu_ns(&server) - cpu) / (double)(bench_now_ns() - start);
    *ret_bytes = ((double)rss - (double)before) / (double)(count - 1);
    for (uint32_t i = 0; i < count; i++) {
        (void)close(fds[i]);
    }
    free(fds);
    child_end(&server);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

typedef struct series {
    double values[ROUNDS_MAX];
    uint32_t count;
} series;

static void
series_add(series *s, double value)
{
    s->values[s->count++] = value;
}

static int
number_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Print the median, and the quartiles behind it when there are several rounds. */
static void
series_print(series *s, const char *param, const char *unit)
{
    char name[64];

    qsort(s->values, s->count, sizeof s->values[0], number_compare);
    bench_print(WORKLOAD, param, s->values[s->count / 2], unit);
    if (s->count > 3) {
        (void)snprintf(name, sizeof name, "%s_q1", param);
        bench_print(WORKLOAD, name, s->values[s->count / 4], unit);
        (void)snprintf(name, sizeof name, "%s_q3", param);
        bench_print(WORKLOAD, name, s->values[s->count * 3 / 4], unit);
    }
}

typedef struct figures {
    series echo, echo_bare, echo_ratio, in, in_bare, in_ratio, out, out_bare, out_ratio;
} figures;

static void
round_run(figures *f, const bench_options *options, uint64_t count)
{
    uint64_t bytes = count * BULK_BYTES_AN_ECHO;
    double own, bare;

    own = echo_measure(sockets_serve_actors, options, count);
    bare = echo_measure(sockets_serve_bare, options, count);
    series_add(&f->echo, own);
    series_add(&f->echo_bare, bare);
    series_add(&f->echo_ratio, own / bare);
    own = bulk_measure(sockets_serve_actors, options, SOCKETS_SINK, bytes);
    bare = bulk_measure(sockets_serve_bare, options, SOCKETS_SINK, bytes);
    series_add(&f->in, own);
    series_add(&f->in_bare, bare);
    series_add(&f->in_ratio, own / bare);
    own = bulk_measure(sockets_serve_actors, options, SOCKETS_SOURCE, bytes);
    bare = bulk_measure(sockets_serve_bare, options, SOCKETS_SOURCE, bytes);
    series_add(&f->out, own);
    series_add(&f->out_bare, bare);
    series_add(&f->out_ratio, own / bare);
}

static uint64_t
option_get(const bench_options *options, const char *name, uint64_t otherwise)
{
    for (int i = 0; i + 1 < options->argc; i++) {
        if (strcmp(options->argv[i], name) == 0) {
            return strtoull(options->argv[i + 1], NULL, 10);
        }
    }
    return otherwise;
}

static int
sockets_run(const bench_options *options)
{
    static figures f;
    uint64_t count = options->count != 0 ? options->count : ECHOES_DEFAULT;
    uint64_t rounds = option_get(options, "--rounds", 1);
    uint64_t idle = option_get(options, "--idle", IDLE_DEFAULT);
    double bytes, cpu;

    if (idle < 2 || rounds == 0 || rounds > ROUNDS_MAX) {
        (void)fprintf(stderr, "bench: sockets: --idle is 2 at least, --rounds 1 to %u\n",
                      ROUNDS_MAX);
        return 64;
    }
    cores_place(rounds, options->threads != 0 ? options->threads : 1);
    idle_measure(options, (uint32_t)idle, &bytes, &cpu);
    for (uint64_t i = 0; i < rounds; i++) {
        round_run(&f, options, count);
    }
    series_print(&f.echo, "echo_cpu", "ns");
    series_print(&f.echo_bare, "echo_cpu_bare", "ns");
    series_print(&f.echo_ratio, "echo_cpu_ratio", "times");
    series_print(&f.in, "in_rate", "MB/s");
    series_print(&f.in_bare, "in_rate_bare", "MB/s");
    series_print(&f.in_ratio, "in_ratio", "times");
    series_print(&f.out, "out_rate", "MB/s");
    series_print(&f.out_bare, "out_rate_bare", "MB/s");
    series_print(&f.out_ratio, "out_ratio", "times");
    bench_print(WORKLOAD, "idle_bytes", bytes, "bytes");
    bench_print(WORKLOAD, "idle_cpu", cpu * 100, "%");
    bench_print(WORKLOAD, "lost", 0, "messages"); /* else it had not come to this line */
    return 0;
}

const bench_workload bench_sockets[] = {
    { WORKLOAD,
      "sockets of actors beside a bare epoll program: echoes, much data, idle connections "
      "[--rounds N] [--idle N]",
      sockets_run },
    { NULL, NULL, NULL },
};
