/* relay.c - a bad link between two network namespaces: carries frames between two TAP devices and
 * loses some, or sends them no faster than a rate.
 *
 *   relay [--seed S] PID NAME PID NAME   in the namespaces of these processes it makes the TAP
 *                                        devices of these names, which last as long as it runs
 *
 * Why.    The kernel's own bad links (netem, tbf) are modules that many kernels lack. Loss of
 *         packets is not the loss of frames of `troupe fault`: TCP makes up for it, and its pauses
 *         meanwhile are what a detector has to bear.
 * Shape.  device --read--> lost? --> queue (drop-tail) --at the link's rate--> other device
 *         Lines on the standard input, each answered by "ok" and what it was:
 *             loss PERCENT     of the frames, each way, each for itself; 0 at first
 *             rate BITS        a second, each way; 0 at first: at once
 *             queue FRAMES     that wait at most, each way; 100 at first, 1000 at most
 *             closed 1         as behind address translation: a TCP segment to B that opens a
 *                              connection is dropped; 0 at first
 *             calls            "calls N": how many of these came, dropped or not
 *             counts           "counts A-TO-B LOST DROPPED B-TO-A LOST DROPPED", frames
 *         At its end it ends, and with it the devices.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { FRAME_BYTES_MAX = 2048, QUEUE_MAX = 1000, LINE_BYTES = 100, READS_AT_ONCE = 64 };

typedef struct frame {
    uint64_t due_ns;
    size_t bytes;
    uint8_t data[FRAME_BYTES_MAX];
} frame;

typedef struct direction { /* what is read from `from` waits here, and is written to `to` */
    int from, to;
    frame queue[QUEUE_MAX];
    uint32_t first, count;
    uint64_t free_ns; /* when the link has sent all that waits */
    uint64_t carried, lost, dropped;
} direction;

static direction directions[2];
static double loss;
static bool closed;
static uint64_t calls;
static uint64_t rate_bits, queue_frames = 100, state;

static uint64_t
now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* splitmix64, as a part of 1. */
static double
drawn(void)
{
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

static void
fail(const char *what, const char *name)
{
    (void)fprintf(stderr, "relay: %s %s: %s\n", what, name, strerror(errno));
    exit(1);
}

static int
tap_in(const char *pid, const char *name)
{
    char path[64];
    struct ifreq request = { .ifr_flags = IFF_TAP | IFF_NO_PI };
    (void)snprintf(path, sizeof path, "/proc/%s/ns/net", pid);
    int space = open(path, O_RDONLY | O_CLOEXEC);
    if (space < 0 || setns(space, CLONE_NEWNET) != 0) {
        fail("network namespace", path);
    }
    (void)close(space);
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        fail("open", "/dev/net/tun");
    }
    (void)snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    if (ioctl(fd, TUNSETIFF, &request) != 0) {
        fail("TAP device", name);
    }
    return fd;
}

/* Does this Ethernet frame open a TCP connection over IPv4: SYN without ACK? */
static bool
is_call(const uint8_t *data, size_t bytes)
{
    size_t segment = 14 + (size_t)(data[14] & 15) * 4; /* bytes of header: ours are longer */
    return bytes >= 54 && data[12] == 8 && data[13] == 0 && data[14] >> 4 == 4 && data[23] == 6 &&
           segment + 14 <= bytes && (data[segment + 13] & 0x12) == 0x02;
}

static void
take(direction *d)
{
    for (int i = 0; i < READS_AT_ONCE; i++) {
        frame *f = &d->queue[(d->first + d->count) % QUEUE_MAX];
        uint8_t spare[FRAME_BYTES_MAX];
        bool full = d->count >= queue_frames;
        ssize_t bytes = read(d->from, full ? spare : f->data, FRAME_BYTES_MAX);
        if (bytes <= 0) {
            return;
        }
        bool call = d == &directions[0] && is_call(full ? spare : f->data, (size_t)bytes);
        calls += call;
        if (drawn() < loss || (call && closed)) {
            d->lost++;
        } else if (full) {
            d->dropped++;
        } else {
            uint64_t now = now_ns(), begin = d->free_ns > now ? d->free_ns : now;
            d->free_ns =
                begin + (rate_bits == 0 ? 0 : (uint64_t)bytes * 8u * 1000000000u / rate_bits);
            f->due_ns = d->free_ns;
            f->bytes = (size_t)bytes;
            d->count++;
        }
    }
}

/* A packet that the other device does not take (it is down, or full) is lost, as on any wire. */
static void
give(direction *d)
{
    uint64_t now = now_ns();
    while (d->count > 0 && d->queue[d->first].due_ns <= now) {
        const frame *f = &d->queue[d->first];
        bool given = write(d->to, f->data, f->bytes) == (ssize_t)f->bytes;
        d->carried += given;
        d->dropped += !given;
        d->first = (d->first + 1) % QUEUE_MAX;
        d->count--;
    }
}

static void
obey(const char *line)
{
    char word[16] = "";
    double value = -1;
    (void)sscanf(line, "%15s %lf", word, &value);
    if (strcmp(word, "loss") == 0 && value >= 0 && value <= 100) {
        loss = value / 100;
    } else if (strcmp(word, "rate") == 0 && value >= 0) {
        rate_bits = (uint64_t)value;
    } else if (strcmp(word, "queue") == 0 && value >= 1 && value <= QUEUE_MAX) {
        queue_frames = (uint64_t)value;
    } else if (strcmp(word, "closed") == 0 && value >= 0) {
        closed = value > 0;
    } else if (strcmp(word, "calls") == 0) {
        (void)printf("calls %" PRIu64 "\n", calls);
        return;
    } else if (strcmp(word, "counts") == 0) {
        (void)printf("counts");
        for (int i = 0; i < 2; i++) {
            const direction *d = &directions[i];
            (void)printf(" %" PRIu64 " %" PRIu64 " %" PRIu64, d->carried, d->lost, d->dropped);
        }
        (void)printf("\n");
        return;
    } else {
        (void)fprintf(stderr, "relay: not understood: %s\n", line);
        exit(2);
    }
    (void)printf("ok %s\n", line);
}

/* false: the input has ended. */
static bool
listen_to(int fd)
{
    static char line[LINE_BYTES];
    static size_t used;
    char byte;
    ssize_t count = read(fd, &byte, 1);
    if (count == 1 && byte == '\n') {
        line[used] = '\0';
        used = 0;
        obey(line);
    } else if (count == 1 && used < sizeof line - 1) {
        line[used++] = byte;
    }
    return count == 1 || (count < 0 && errno == EINTR);
}

int
main(int argc, char **argv)
{
    if (argc == 7 && strcmp(argv[1], "--seed") == 0) {
        state = strtoull(argv[2], NULL, 10);
        argv += 2;
    } else if (argc != 5) {
        (void)fprintf(stderr, "usage: relay [--seed S] PID NAME PID NAME < COMMANDS\n");
        return 64;
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    int a = tap_in(argv[1], argv[2]), b = tap_in(argv[3], argv[4]);
    directions[0] = (direction){ .from = a, .to = b };
    directions[1] = (direction){ .from = b, .to = a };
    (void)printf("ready\n");
    for (bool more = true; more;) {
        struct pollfd ready[3] = { { .fd = a, .events = POLLIN },
                                   { .fd = b, .events = POLLIN },
                                   { .fd = STDIN_FILENO, .events = POLLIN } };
        uint64_t next_ns = UINT64_MAX, now = now_ns();
        for (int i = 0; i < 2; i++) {
            const direction *d = &directions[i];
            uint64_t due = d->count > 0 ? d->queue[d->first].due_ns : UINT64_MAX;
            next_ns = due < next_ns ? due : next_ns;
        }
        uint64_t wait_ns = next_ns > now ? next_ns - now : 0;
        struct timespec wait = { (time_t)(wait_ns / 1000000000u), (long)(wait_ns % 1000000000u) };
        (void)ppoll(ready, 3, next_ns == UINT64_MAX ? NULL : &wait, NULL);
        for (int i = 0; i < 2; i++) {
            give(&directions[i]);
            take(&directions[i]);
            give(&directions[i]);
        }
        more = ready[2].revents == 0 || listen_to(STDIN_FILENO);
    }
    return 0;
}
