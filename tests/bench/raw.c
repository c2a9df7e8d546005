/* raw.c - plain TCP between two processes on loopback, what remoting is compared with: messages of
 * a length and bytes, packed into writes of 64 KiB, and round trips. `--bytes N`: only messages of
 * N bytes (at most 65536); `--trips N`: only round trips, so many.
 */
#include "tests/bench/bench.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BATCH_BYTES 65536u
#define READ_BYTES 262144u
#define COUNT_DEFAULT 10000000u
#define TRIPS_DEFAULT 20000u
#define TRIPS_WARM 1000u
#define TRIP_BYTES 104u

static void
check_call(int ok, const char *what)
{
    if (!ok) {
        perror(what);
        exit(1);
    }
}

static int
listener_open(uint16_t *ret_port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t bytes = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    check_call(fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
                   listen(fd, 1) == 0 && getsockname(fd, (struct sockaddr *)&address, &bytes) == 0,
               "listen");
    *ret_port = ntohs(address.sin_port);
    return fd;
}

static int
dial_port(uint16_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(port),
                                   .sin_addr = { htonl(INADDR_LOOPBACK) } };
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

    check_call(fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
                   setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0,
               "connect");
    return fd;
}

static void
write_all(int fd, const uint8_t *bytes, size_t count)
{
    while (count > 0) {
        ssize_t n = write(fd, bytes, count);

        check_call(n > 0, "write");
        bytes += n;
        count -= (size_t)n;
    }
}

static void
read_all(int fd, uint8_t *bytes, size_t count)
{
    while (count > 0) {
        ssize_t n = read(fd, bytes, count);

        check_call(n > 0, "read");
        bytes += n;
        count -= (size_t)n;
    }
}

/* The child: count messages whatever their size, answer when all are there. */
static void
serve_tells(int listen_fd, uint64_t count)
{
    static uint8_t bytes[READ_BYTES];
    int fd = accept(listen_fd, NULL, NULL);
    uint8_t head[4];
    uint32_t left = 0, got = 0;
    ssize_t n;

    while (count > 0) {
        n = read(fd, bytes, sizeof bytes);
        check_call(n > 0, "read");
        for (size_t at = 0; at < (size_t)n;) {
            if (left == 0) {
                head[got++] = bytes[at++];
                if (got == sizeof head) {
                    memcpy(&left, head, sizeof left);
                    got = 0;
                }
            } else {
                size_t here = (size_t)n - at < left ? (size_t)n - at : left;

                at += here;
                left -= (uint32_t)here;
                count -= left == 0;
            }
        }
    }
    write_all(fd, head, 1);
    _exit(0);
}

static void
serve_trips(int listen_fd)
{
    int fd = accept(listen_fd, NULL, NULL), on = 1;
    uint8_t bytes[TRIP_BYTES];
    ssize_t n;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    while ((n = read(fd, bytes, sizeof bytes)) > 0) {
        write_all(fd, bytes, (size_t)n);
    }
    _exit(0);
}

static int
with_child(uint64_t count, pid_t *ret_pid)
{
    uint16_t port;
    int listen_fd = listener_open(&port);

    *ret_pid = fork();
    check_call(*ret_pid >= 0, "fork");
    if (*ret_pid == 0) {
        if (count > 0) {
            serve_tells(listen_fd, count);
        }
        serve_trips(listen_fd);
    }
    (void)close(listen_fd);
    return dial_port(port);
}

static void
run_tells(const char *param, uint32_t size, uint64_t count)
{
    static uint8_t batch[BATCH_BYTES + 4], payload[BATCH_BYTES];
    pid_t pid;
    int fd = with_child(count, &pid);
    uint64_t start_ns = bench_now_ns();
    uint8_t end;

    for (uint64_t left = count; left > 0;) {
        size_t filled = 0;

        do {
            memcpy(batch + filled, &size, 4);
            memcpy(batch + filled + 4, payload, size);
            filled += 4 + size;
            left--;
        } while (left > 0 && filled + 4 + size <= BATCH_BYTES);
        write_all(fd, batch, filled);
    }
    read_all(fd, &end, 1);
    bench_print("raw", param, (double)count * 1e9 / (double)(bench_now_ns() - start_ns),
                "messages/s");
    (void)close(fd);
    (void)waitpid(pid, NULL, 0);
}

static int
compare_ns(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void
run_trips(uint64_t count)
{
    uint64_t *trips = calloc(count + 1, sizeof *trips);
    uint8_t bytes[TRIP_BYTES] = { 0 };
    pid_t pid;
    int fd = with_child(0, &pid);

    check_call(trips != NULL, "round trips");
    for (uint64_t i = 0; i < TRIPS_WARM + count; i++) {
        uint64_t sent_ns = bench_now_ns();

        write_all(fd, bytes, sizeof bytes);
        read_all(fd, bytes, sizeof bytes);
        if (i >= TRIPS_WARM) {
            trips[i - TRIPS_WARM] = bench_now_ns() - sent_ns;
        }
    }
    (void)close(fd);
    (void)waitpid(pid, NULL, 0);
    qsort(trips, count, sizeof *trips, compare_ns);
    bench_print("raw", "rtt_p50", (double)trips[count / 2] / 1e3, "us");
    bench_print("raw", "rtt_p99", (double)trips[count * 99 / 100] / 1e3, "us");
    free(trips);
}

static int
run_raw(const bench_options *options)
{
    uint64_t count = options->count != 0 ? options->count : COUNT_DEFAULT;
    const char *bytes = bench_option_value(options, "--bytes");
    const char *trips = bench_option_value(options, "--trips");

    if (trips != NULL) {
        run_trips(strtoull(trips, NULL, 10));
    } else if (bytes != NULL) {
        run_tells("rate", (uint32_t)strtoul(bytes, NULL, 10), count);
    } else {
        run_tells("rate_100", 100, count);
        run_tells("rate_1024", 1024, count / 8 + 1);
        run_tells("rate_65536", BATCH_BYTES - 4, count / 256 + 1);
        run_trips(TRIPS_DEFAULT);
    }
    return 0;
}

const bench_workload bench_raw[] = {
    { "raw", "2 processes on plain TCP, what remote is compared with", run_raw },
    { NULL, NULL, NULL },
};
