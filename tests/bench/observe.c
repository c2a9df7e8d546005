/* observe.c - observe: what operators' tools cost a node's messages.
 *
 * Shape.  A node of its own for each measurement: `count` (one producer, one counter) or `pingpong`
 *         (two actors) in its system, beside the management API off, on and unseen, or scraped once
 *         a second; beside no trace, a trace of another actor, or one message in 100 sampled. All
 *         by turns, medians of `--rounds N` (7) rounds; ratios are the rate to that of the
 *         node with nothing on. A trace goes on through what its messages cause, so in `pingpong`
 *         the first sampled message would make all later ones traced: it is not sampled.
 *
 * `--only count|pingpong --api on|off --one-in N`: one measurement, for tools that count
 * instructions.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <troupe/node.h>
#include <troupe/trace.h>

#include "tests/bench/bench.h"

enum {
    ROUNDS = 7,
    ROUNDS_MAX = 101,
    TURN = 1000, /* tells of a producer before it tells itself to go on */
    SCRAPES_MAX = 1024,
    ONE_IN = 100
};

typedef enum api_use { UNSEEN_OFF, UNSEEN_ON, SCRAPED } api_use;

/* ---- the actors ------------------------------------------------------------------------------ */

static uint64_t start_ns, end_ns, goal; /* written by the actor that begins or ends, or before */

typedef struct role {
    trp_ref peer;
    uint64_t seen;
} role;

static trp_err
counter_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    role *self = state;
    (void)ctx;
    (void)msg;
    if (++self->seen == goal) {
        end_ns = bench_now_ns();
        bench_done();
    }
    return TRP_OK;
}
static const trp_behaviour counter = TRP_BEHAVIOUR_INIT("counter", role, counter_receive);

static trp_err
producer_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    role *self = state;
    if (trp_msg_is(msg, &trp_bytes_type)) {
        self->peer = *(const trp_ref *)trp_msg_payload(msg);
        start_ns = bench_now_ns();
    }
    for (int i = 0; i < TURN && self->seen < goal; i++) {
        int64_t value = (int64_t)++self->seen;
        trp_tell(ctx, self->peer, &trp_i64_type, &value, sizeof value);
    }
    if (self->seen < goal) {
        trp_tell(ctx, trp_self(ctx), &trp_i64_type, &(int64_t){ 0 }, sizeof(int64_t));
    }
    return TRP_OK;
}
static const trp_behaviour producer = TRP_BEHAVIOUR_INIT("producer", role, producer_receive);

/* Count `goal` messages between two actors, half of them each. */
static trp_err
player_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    role *self = state;
    int64_t value = 1;
    if (trp_msg_is(msg, &trp_bytes_type)) {
        self->peer = *(const trp_ref *)trp_msg_payload(msg);
        start_ns = bench_now_ns();
    } else {
        value = *(const int64_t *)trp_msg_payload(msg) + 1;
        if ((uint64_t)value > goal) {
            end_ns = bench_now_ns();
            bench_done();
            return TRP_OK;
        }
        self->peer = trp_sender(ctx);
    }
    trp_tell(ctx, self->peer, &trp_i64_type, &value, sizeof value);
    return TRP_OK;
}
static const trp_behaviour player = TRP_BEHAVIOUR_INIT("player", role, player_receive);

static trp_ref
named_spawn(trp_system *system, const trp_behaviour *behaviour, const char *name)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    options.name = name;
    bench_check(trp_system_spawn(system, behaviour, &options, &ref), name);
    return ref;
}

/* ---- the node, and who looks at it ----------------------------------------------------------- */

static _Atomic uint16_t port; /* of the API, when its line has been logged */

static void
line_read(void *arg, const trp_log_line *line)
{
    const char *at = strstr(line->text, "http://127.0.0.1:");
    (void)arg;
    if (strncmp(line->text, "management API at", 17) == 0 && at != NULL) {
        atomic_store(&port, (uint16_t)strtoul(at + 17, NULL, 10));
    }
}

static trp_node *
node_open(uint32_t threads, bool api)
{
    char workers[64] = "actor.default-dispatcher.workers=auto";
    const char *settings[] = { "system=bench",
                               "remote.port=0",
                               "remote.cookie=off",
                               "cluster.control-socket=off",
                               "cluster.seed-nodes=self",
                               "management.port=0",
                               api ? "management.enabled=on" : "management.enabled=off",
                               threads != 0 ? workers : NULL,
                               NULL };
    trp_node_options options = TRP_NODE_OPTIONS_INIT;
    trp_node_error error;
    trp_node *node = NULL;
    if (threads != 0) {
        (void)snprintf(workers, sizeof workers, "actor.default-dispatcher.workers=%u", threads);
    }
    options.settings = settings;
    options.environment_ignored = 1;
    options.log = line_read;
    atomic_store(&port, 0);
    if (trp_node_open(&options, &node, &error) != TRP_OK) {
        (void)fprintf(stderr, "bench observe: %s\n", error.text);
        exit(1);
    }
    return node;
}

typedef struct scrapes {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool over;
    size_t count; /* of milliseconds */
    double ms[SCRAPES_MAX];
} scrapes;

/* One scrape, to its last byte: the node closes the connection. Returns its milliseconds, 0 when
 * there was no answer. */
static double
scrape(void)
{
    static const char request[] =
        "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(atomic_load(&port)) };
    uint64_t start = bench_now_ns();
    char answer[16384];
    size_t bytes = 0;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) == 0 &&
        send(fd, request, sizeof request - 1, MSG_NOSIGNAL) == (ssize_t)sizeof request - 1) {
        for (ssize_t got; (got = recv(fd, answer, sizeof answer, 0)) > 0;) {
            bytes += (size_t)got;
        }
    }
    (void)close(fd);
    return bytes > 1000 ? (double)(bench_now_ns() - start) / 1e6 : 0;
}

static void *
scrape_each_second(void *arg)
{
    scrapes *s = arg;
    struct timespec due;
    (void)clock_gettime(CLOCK_REALTIME, &due);
    pthread_mutex_lock(&s->lock);
    while (!s->over) {
        pthread_mutex_unlock(&s->lock);
        double ms = scrape();
        pthread_mutex_lock(&s->lock);
        if (ms > 0 && s->count < SCRAPES_MAX) {
            s->ms[s->count++] = ms;
        }
        due.tv_sec++;
        while (!s->over && pthread_cond_timedwait(&s->ended, &s->lock, &due) == 0) {
        }
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void
scraper_end(scrapes *s)
{
    pthread_mutex_lock(&s->lock);
    s->over = true;
    pthread_cond_signal(&s->ended);
    pthread_mutex_unlock(&s->lock);
    (void)pthread_join(s->thread, NULL);
}

/* ---- measurements ---------------------------------------------------------------------------- */

/* Messages a second. sampled: the path of an actor one in one_in of whose messages begins a trace;
 * NULL: none. */
static void
port_await(void)
{
    for (int i = 0; i < 1000 && atomic_load(&port) == 0; i++) {
        (void)nanosleep(&(struct timespec){ 0, 10000000 }, NULL);
    }
    bench_check(atomic_load(&port) != 0 ? TRP_OK : TRP_ETIMEDOUT, "the port of the API");
}

static double
measure(const bench_options *options, bool flood, api_use api, const char *sampled, uint32_t one_in,
        scrapes *by)
{
    trp_node *node = node_open(options->threads, api != UNSEEN_OFF);
    trp_system *system = trp_node_system(node);
    trp_ref one =
        flood ? named_spawn(system, &producer, "producer") : named_spawn(system, &player, "one");
    trp_ref other =
        flood ? named_spawn(system, &counter, "counter") : named_spawn(system, &player, "other");
    if (sampled != NULL) {
        bench_check(trp_trace_sample(system, sampled, one_in), sampled);
    }
    if (api != UNSEEN_OFF) {
        port_await();
    }
    if (api == SCRAPED) {
        by->over = false;
        bench_check(pthread_create(&by->thread, NULL, scrape_each_second, by) == 0 ? TRP_OK
                                                                                   : TRP_ENOMEM,
                    "scraper");
    }
    bench_tell_ref(system, one, other);
    bench_wait();
    if (api == SCRAPED) {
        scraper_end(by);
    }
    trp_node_close(node);
    return (double)goal * 1e9 / (double)(end_ns - start_ns);
}

static int
one_measurement(const bench_options *options, const char *only)
{
    const char *api = bench_option_value(options, "--api");
    const char *one_in = bench_option_value(options, "--one-in");
    bool flood = strcmp(only, "count") == 0;
    uint32_t often = one_in == NULL ? 0 : (uint32_t)strtoul(one_in, NULL, 10);
    double rate =
        measure(options, flood, api != NULL && strcmp(api, "on") == 0 ? UNSEEN_ON : UNSEEN_OFF,
                often != 0 ? "/user/counter" : NULL, often, NULL);
    bench_print("observe", "rate", rate, "messages/s");
    bench_print("observe", "lost", 0, "messages");
    return 0;
}

typedef struct way {
    const char *param;
    bool flood;
    api_use api;
    const char *sampled;
} way;

/* The first of each shape is what the others are compared with. */
static const way ways[] = {
    { "count_rate", true, UNSEEN_OFF, NULL },
    { "count_api_ratio", true, UNSEEN_ON, NULL },
    { "count_scraped_ratio", true, SCRAPED, NULL },
    { "count_trace_off_ratio", true, UNSEEN_OFF, "/user/another" },
    { "count_trace_sampled_ratio", true, UNSEEN_OFF, "/user/counter" },
    { "pingpong_rate", false, UNSEEN_OFF, NULL },
    { "pingpong_api_ratio", false, UNSEEN_ON, NULL },
    { "pingpong_scraped_ratio", false, SCRAPED, NULL },
    { "pingpong_trace_off_ratio", false, UNSEEN_OFF, "/user/another" },
};
enum { WAYS = sizeof ways / sizeof ways[0] };

static int
observe_run(const bench_options *options)
{
    static double figures[WAYS][ROUNDS_MAX];
    static scrapes scraped = { .lock = PTHREAD_MUTEX_INITIALIZER,
                               .ended = PTHREAD_COND_INITIALIZER };
    const char *only = bench_option_value(options, "--only");
    const char *asked = bench_option_value(options, "--rounds");
    size_t rounds = asked == NULL ? ROUNDS : strtoul(asked, NULL, 10);
    goal = options->count != 0 ? options->count : 60000000;
    if (only != NULL) {
        return one_measurement(options, only);
    }
    if (rounds < 1 || rounds > ROUNDS_MAX) {
        (void)fprintf(stderr, "bench observe: --rounds takes 1 to %d\n", ROUNDS_MAX);
        return 64;
    }
    for (size_t round = 0; round < rounds; round++) {
        double base = 0;
        for (size_t i = 0; i < WAYS; i++) {
            const way *w = &ways[i];
            double rate = measure(options, w->flood, w->api, w->sampled, ONE_IN, &scraped);
            bool first = i == 0 || w->flood != ways[i - 1].flood;
            base = first ? rate : base;
            figures[i][round] = first ? rate : rate / base;
        }
    }
    for (size_t i = 0; i < WAYS; i++) {
        bool first = i == 0 || ways[i].flood != ways[i - 1].flood;
        bench_print("observe", ways[i].param, bench_median(figures[i], rounds),
                    first ? "messages/s" : "times");
    }
    bench_print("observe", "scrapes", (double)scraped.count, "count");
    bench_print("observe", "scrape",
                scraped.count == 0 ? 0 : bench_median(scraped.ms, scraped.count), "ms");
    bench_print("observe", "lost", 0, "messages");
    return scraped.count == 0;
}

const bench_workload bench_observe[] = {
    { "observe", "count and pingpong beside the management API and traces", observe_run },
    { NULL, NULL, NULL },
};
