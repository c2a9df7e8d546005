/* strangers.c - heartbeats of a node beside connections that send garbage slowly. See strangers.h.
 *
 * Shape.  beats <--> child of `remote` (two.c) <-- crowd: a child of its own, `--crowd`, that opens
 *         connections at "on", closes them at "off", and answers when it has. Each sends a byte now
 *         and then; one that is closed calls again. By turns a round without and one beside them.
 *         `--rounds N`, `--strangers N`: 15 and 1,000; with few beats 1 and 50.
 *         `--transport tcp|tls`.
 */
#include "tests/bench/strangers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "remote/wire/codec.h"
#include "tests/bench/two.h"

enum {
    ROUNDS = 15,
    STRANGERS = 1000,
    BEATS = 1000, /* a round */
    FEW_ROUNDS = 1,
    FEW_STRANGERS = 50,
    STRANGERS_MAX = 4096,
    LINE_BYTES = 64,
    ANSWER_BYTES = 4096,
    LOOK_MS = 10,
    PAUSE_NS = 200000000, /* at least, between two bytes of a stranger */
    PAUSE_MORE_NS = 800000000,
    KINDS = 4 /* what a stranger begins with */
};

/* ---- the crowd ------------------------------------------------------------------------------- */

typedef struct stranger {
    int fd; /* -1: it will call */
    uint32_t sent;
    uint64_t due_ns;
} stranger;

static stranger strangers[STRANGERS_MAX];
static uint32_t strangers_count;
static struct sockaddr_in node_address;
static bench_stranger_words words;
static uint64_t random_state = 1;

uint64_t
bench_stranger_random(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return random_state >> 33;
}

/* Nothing, a preamble, a preamble and half a frame, or the begin of a TLS hello; then anything. A
 * byte at a time. */
static const uint8_t *
garbage(uint32_t number, uint32_t sent, size_t *ret_bytes)
{
    static uint8_t byte;
    uint32_t kind = number % KINDS;
    static const uint8_t hello[] = { 0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3 };
    const trpi_preamble preamble = { TRPI_WIRE_VERSION, TRPI_LANE_CONTROL, 0, 1 };
    uint8_t begin[TRPI_PREAMBLE_BYTES + 4] = { 0 };

    trpi_preamble_encode(begin, &preamble);
    begin[TRPI_PREAMBLE_BYTES] = 200; /* of a frame */
    if ((kind == 1 && sent < TRPI_PREAMBLE_BYTES) || (kind == 2 && sent < sizeof begin)) {
        byte = begin[sent];
    } else {
        byte = kind == 3 && sent < sizeof hello ? hello[sent] : (uint8_t)bench_stranger_random();
    }
    *ret_bytes = 1;
    return &byte;
}

static void
stranger_call(stranger *s)
{
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    s->sent = 0;
    if (s->fd >= 0 &&
        connect(s->fd, (const struct sockaddr *)&node_address, sizeof node_address) != 0 &&
        errno != EINPROGRESS) {
        (void)close(s->fd);
        s->fd = -1;
    }
}

static void
stranger_speak(stranger *s, uint32_t number)
{
    uint8_t answer[ANSWER_BYTES];
    size_t bytes = 0;
    const uint8_t *said = words(number, s->sent, &bytes);
    ssize_t got = recv(s->fd, answer, sizeof answer, 0);

    if (got == 0 || (got < 0 && errno != EAGAIN) ||
        (bytes > 0 && send(s->fd, said, bytes, MSG_NOSIGNAL) != (ssize_t)bytes)) {
        (void)close(s->fd);
        s->fd = -1;
        return;
    }
    s->sent += (uint32_t)bytes;
}

static void
crowd_look(void)
{
    uint64_t now = bench_now_ns();

    for (uint32_t i = 0; i < strangers_count; i++) {
        stranger *s = &strangers[i];

        if (s->due_ns > now) {
            continue;
        }
        if (s->fd < 0) {
            stranger_call(s);
        } else {
            stranger_speak(s, i);
        }
        s->due_ns = now + PAUSE_NS + bench_stranger_random() % PAUSE_MORE_NS;
    }
}

static void
crowd_close(void)
{
    for (uint32_t i = 0; i < strangers_count; i++) {
        if (strangers[i].fd >= 0) {
            (void)close(strangers[i].fd);
        }
    }
    strangers_count = 0;
}

/* Obey a line: "PORT", "on NUMBER", "off". false: the input has ended. */
static bool
crowd_obey(void)
{
    char line[LINE_BYTES];

    if (fgets(line, sizeof line, stdin) == NULL) {
        return false;
    }
    if (strncmp(line, "on ", 3) == 0) {
        strangers_count = (uint32_t)strtoul(line + 3, NULL, 10);
        for (uint32_t i = 0; i < strangers_count; i++) {
            strangers[i] = (stranger){ .fd = -1 };
        }
        crowd_look(); /* all call */
    } else if (strncmp(line, "off", 3) == 0) {
        crowd_close();
    } else {
        node_address = (struct sockaddr_in){ .sin_family = AF_INET,
                                             .sin_port = htons((uint16_t)strtoul(line, NULL, 10)),
                                             .sin_addr = { htonl(INADDR_LOOPBACK) } };
    }
    (void)printf("done\n");
    (void)fflush(stdout);
    return true;
}

int
bench_crowd_run(bench_stranger_words say)
{
    struct pollfd in = { .fd = 0, .events = POLLIN };

    words = say;
    (void)setvbuf(stdin, NULL, _IONBF, 0); /* what poll does not see is not there */
    for (;;) {
        if (poll(&in, 1, LOOK_MS) > 0 && !crowd_obey()) {
            return 0; /* the kernel closes them all */
        }
        crowd_look();
    }
}

/* ---- rounds ---------------------------------------------------------------------------------- */

typedef struct rounds {
    bench_two two;
    const trpi_node_id *to;
    bench_child crowd;
    uint64_t beats;
    uint64_t *trips_ns;     /* of one round */
    uint64_t longest_ns[2]; /* alone, and beside the crowd */
    uint64_t lost;
} rounds;

static void
crowd_say(const rounds *r, const char *line)
{
    char answer[LINE_BYTES];

    if (fprintf(r->crowd.in, "%s\n", line) < 0 || fflush(r->crowd.in) != 0 ||
        fgets(answer, sizeof answer, r->crowd.out) == NULL) {
        bench_check(TRP_EIO, "the crowd");
    }
}

static int
compare_ns(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Return the 99th percentile of a round. */
static uint64_t
round_run(rounds *r, bool beside)
{
    /* those of the round before come and go */
    r->lost += bench_beats_run(&r->two, r->to, r->beats / 4, r->trips_ns);
    r->lost += bench_beats_run(&r->two, r->to, r->beats, r->trips_ns);
    qsort(r->trips_ns, r->beats, sizeof *r->trips_ns, compare_ns);
    if (r->trips_ns[r->beats - 1] > r->longest_ns[beside]) {
        r->longest_ns[beside] = r->trips_ns[r->beats - 1];
    }
    return r->trips_ns[r->beats * 99 / 100];
}

static double
median_us(uint64_t *ns, uint64_t count)
{
    qsort(ns, count, sizeof *ns, compare_ns);
    return (double)ns[count / 2] / 1e3;
}

static void
rounds_run(rounds *r, const char *workload, uint64_t count, uint64_t number)
{
    uint64_t *alone = calloc(2 * count, sizeof *alone), *beside = alone + count;
    char on[LINE_BYTES];

    r->trips_ns = calloc(r->beats, sizeof *r->trips_ns);
    if (alone == NULL || r->trips_ns == NULL) {
        bench_check(TRP_ENOMEM, "rounds");
    }
    (void)snprintf(on, sizeof on, "on %lu", (unsigned long)number);
    for (uint64_t i = 0; i < count; i++) {
        alone[i] = round_run(r, false);
        crowd_say(r, on);
        beside[i] = round_run(r, true);
        crowd_say(r, "off");
    }
    double alone_us = median_us(alone, count), beside_us = median_us(beside, count);
    bench_print(workload, "alone_p99", alone_us, "us");
    bench_print(workload, "beside_p99", beside_us, "us");
    bench_print(workload, "ratio", beside_us / alone_us, "times");
    bench_print(workload, "alone_longest", (double)r->longest_ns[0] / 1e3, "us");
    bench_print(workload, "beside_longest", (double)r->longest_ns[1] / 1e3, "us");
    free(alone);
    free(r->trips_ns);
}

void
bench_descriptors_raise(void)
{
    struct rlimit files = { 0, 0 };

    (void)getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files); /* of the children too */
}

static uint64_t
option_number(const bench_options *options, const char *name, uint64_t value)
{
    const char *text = bench_option_value(options, name);

    return text != NULL ? strtoull(text, NULL, 10) : value;
}

int
bench_beside_run(const char *workload, const bench_options *options, bench_two *two,
                 bench_child *crowd, const char *port)
{
    rounds r = { .two = *two,
                 .crowd = *crowd,
                 .beats = options->count != 0 ? options->count : BEATS };
    bool few = r.beats < BEATS;
    uint64_t count = option_number(options, "--rounds", few ? FEW_ROUNDS : ROUNDS);
    uint64_t number = option_number(options, "--strangers", few ? FEW_STRANGERS : STRANGERS);

    if (number > STRANGERS_MAX || count == 0) {
        bench_check(TRP_EINVAL, "--strangers: at most 4096; --rounds: at least 1");
    }
    crowd_say(&r, port);
    r.to = trpi_node_id_get(r.two.system, bench_two_resolve(&r.two, "/user/sink").node);
    bench_beats_bind(&r.two, true);
    rounds_run(&r, workload, count, number);
    bench_print(workload, "lost", (double)r.lost, "messages");
    bench_beats_bind(&r.two, false);
    bench_child_end(crowd);
    bench_two_end(two);
    return r.lost == 0 ? 0 : 1;
}

static int
run_beside_strangers(const bench_options *options)
{
    static const char *const arguments[] = { "beside_strangers", "--crowd", "yes", NULL };
    const char *transport = bench_option_value(options, "--transport");
    bench_child crowd;
    bench_two two;

    bench_descriptors_raise();
    if (bench_option_value(options, "--crowd") != NULL) {
        return bench_crowd_run(garbage);
    }
    bench_child_start(&crowd, arguments);
    bench_two_start(&two, options, transport != NULL && strcmp(transport, "tls") == 0);
    return bench_beside_run("beside_strangers", options, &two, &crowd,
                            strrchr(two.address, ':') + 1);
}

const bench_workload bench_strangers[] = {
    { "beside_strangers", "2 processes: heartbeats beside 1,000 connections that send garbage",
      run_beside_strangers },
    { NULL, NULL, NULL },
};
