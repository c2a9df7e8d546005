/* remote.c - two processes on loopback: tell at 100 B, and round trips.
 *
 * Shape.  The parent starts itself once more (fork and exec, for nng does not like fork alone) as
 *         `bench remote --child`, which prints its address and serves /user/sink and /user/echo
 *         until its standard input ends. The sink stamps its last receipt; both processes share the
 *         monotonic clock.
 */
#include "tests/bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "remote/remote.h"

#define PAYLOAD_BYTES 100
#define TELLS_DEFAULT 10000000u
#define TRIPS_DEFAULT 20000u
#define TRIPS_WARM 1000u
#define TURN_TELLS 1000
#define QUIET_NS 3000000000ull /* no progress for so long: the rest is lost */
#define ASK_MS 10000u

static trpi_remote *
remote_start(trp_system *system)
{
    trpi_remote_options options = { 0 };
    trpi_remote *remote = NULL;

    options.bind_port = -1;
    bench_check(trpi_remote_start(system, &options, &remote), "trpi_remote_start");
    return remote;
}

/* ---- child ----------------------------------------------------------------------------------- */

typedef struct sink_state {
    uint64_t count;
    uint64_t last_ns;
} sink_state;

/* Counts bytes; a text is answered with the state, and begins anew. */
static trp_err
sink_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    sink_state *sink = state;

    if (trp_msg_is(msg, &trp_string_type)) {
        trp_reply(ctx, &trp_bytes_type, sink, sizeof *sink);
        return TRP_OK;
    }
    sink->count++;
    if ((sink->count & 63u) == 0) {
        sink->last_ns = bench_now_ns();
    }
    return TRP_OK;
}

static trp_err
echo_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    trp_reply(ctx, trp_msg_type(msg), trp_msg_payload(msg), trp_msg_bytes(msg));
    return TRP_OK;
}

static const trp_behaviour sink = TRP_BEHAVIOUR_INIT("sink", sink_state, sink_receive);
static const trp_behaviour echo = TRP_BEHAVIOUR_INIT("echo", char, echo_receive);

static int
run_child(const bench_options *options)
{
    trp_system *system = bench_system(options);
    trpi_remote *remote = remote_start(system);
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    char address[TRPI_ADDRESS_TEXT_BYTES];
    trp_ref ref;

    spawn.name = "sink";
    bench_check(trp_system_spawn(system, &sink, &spawn, &ref), "sink");
    spawn.name = "echo";
    bench_check(trp_system_spawn(system, &echo, &spawn, &ref), "echo");
    (void)printf("%s\n", trpi_address_format(trpi_remote_address(remote), address, sizeof address));
    (void)fflush(stdout);
    while (getchar() != EOF) {
    }
    bench_check(trp_system_stop(system, ASK_MS), "trp_system_stop");
    trpi_remote_stop(remote);
    trp_system_free(system);
    return 0;
}

/* ---- parent ---------------------------------------------------------------------------------- */

typedef struct child {
    pid_t pid;
    FILE *in, *out;
    char address[TRPI_ADDRESS_TEXT_BYTES];
} child;

static void
child_start(child *c, const bench_options *options)
{
    int to[2], from[2];
    char threads[16];

    (void)snprintf(threads, sizeof threads, "%u", options->threads);
    if (pipe(to) != 0 || pipe(from) != 0 || (c->pid = fork()) < 0) {
        bench_check(TRP_EIO, "pipe, fork");
    }
    if (c->pid == 0) {
        (void)dup2(to[0], 0);
        (void)dup2(from[1], 1);
        (void)close(to[0]);
        (void)close(to[1]);
        (void)close(from[0]);
        (void)close(from[1]);
        (void)execl("/proc/self/exe", "bench", "remote", "--child", "--threads", threads,
                    (char *)NULL);
        _exit(127);
    }
    (void)close(to[0]);
    (void)close(from[1]);
    c->in = fdopen(to[1], "w");
    c->out = fdopen(from[0], "r");
    if (c->in == NULL || c->out == NULL || fgets(c->address, sizeof c->address, c->out) == NULL) {
        bench_check(TRP_EIO, "the child said nothing");
    }
    c->address[strcspn(c->address, "\n")] = '\0';
}

static void
child_end(child *c)
{
    (void)fclose(c->in);
    (void)waitpid(c->pid, NULL, 0);
    (void)fclose(c->out);
}

static trp_ref
resolve(trp_system *system, const child *c, const char *path)
{
    char text[TRP_PATH_BYTES_MAX];
    trp_ref ref = TRP_REF_NONE;

    (void)snprintf(text, sizeof text, "%s%s", c->address, path);
    bench_check(trp_system_resolve(system, text, ASK_MS, &ref), text);
    return ref;
}

static trp_ref target;
static uint64_t tells_goal, trips_goal;
static uint64_t start_ns;
static uint64_t *trip_ns;

/* At most TURN_TELLS a turn, then a message to itself; when the lane is full, it waits to be told
 * trp_mailbox_ready. */
static trp_err
producer_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    static const uint8_t payload[PAYLOAD_BYTES] = { 1 };
    uint64_t *sent = state;

    (void)msg;
    if (*sent == 0) {
        start_ns = bench_now_ns();
    }
    for (int i = 0; i < TURN_TELLS && *sent < tells_goal; i++, (*sent)++) {
        if (trp_try_tell(ctx, target, &trp_bytes_type, payload, sizeof payload) != TRP_OK) {
            return TRP_OK;
        }
    }
    if (*sent < tells_goal) {
        trp_tell(ctx, trp_self(ctx), &trp_bytes_type, "", 0);
    } else {
        bench_done();
    }
    return TRP_OK;
}

typedef struct pinger_state {
    uint64_t trips;
    uint64_t sent_ns;
} pinger_state;

static trp_err
pinger_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    static const uint8_t payload[PAYLOAD_BYTES] = { 1 };
    pinger_state *pinger = state;
    uint64_t now = bench_now_ns();

    (void)msg;
    if (pinger->sent_ns != 0) {
        if (pinger->trips >= TRIPS_WARM) {
            trip_ns[pinger->trips - TRIPS_WARM] = now - pinger->sent_ns;
        }
        pinger->trips++;
    }
    if (pinger->trips == trips_goal + TRIPS_WARM) {
        bench_done();
        return TRP_OK;
    }
    pinger->sent_ns = bench_now_ns();
    trp_tell(ctx, target, &trp_bytes_type, payload, sizeof payload);
    return TRP_OK;
}

static const trp_behaviour producer = TRP_BEHAVIOUR_INIT("producer", uint64_t, producer_receive);
static const trp_behaviour pinger = TRP_BEHAVIOUR_INIT("pinger", pinger_state, pinger_receive);

static void
go(trp_system *system, const trp_behaviour *behaviour)
{
    trp_ref ref;

    bench_check(trp_system_spawn(system, behaviour, NULL, &ref), behaviour->name);
    trp_system_tell(system, ref, &trp_bytes_type, "", 0);
    bench_wait();
}

static sink_state
sink_ask(trp_system *system)
{
    sink_state answer = { 0, 0 };
    trp_msg *reply = NULL;

    if (trp_system_ask(system, target, &trp_string_type, "?", 1, ASK_MS, &reply) == TRP_OK &&
        trp_msg_bytes(reply) == sizeof answer) {
        memcpy(&answer, trp_msg_payload(reply), sizeof answer);
    }
    trp_msg_free(reply);
    return answer;
}

static int
run_tell(trp_system *system)
{
    sink_state answer;
    uint64_t seen = 0;
    uint64_t seen_ns;

    go(system, &producer);
    seen_ns = bench_now_ns();
    do {
        answer = sink_ask(system);
        if (answer.count != seen) {
            seen = answer.count;
            seen_ns = bench_now_ns();
        }
    } while (answer.count < tells_goal && bench_now_ns() - seen_ns < QUIET_NS);
    bench_print("remote", "rate_100",
                (double)answer.count * 1e9 / (double)(answer.last_ns - start_ns), "messages/s");
    bench_print("remote", "lost", (double)(tells_goal - answer.count), "messages");
    return answer.count == tells_goal ? 0 : 1;
}

static int
compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void
run_trips(trp_system *system)
{
    trip_ns = calloc(trips_goal, sizeof *trip_ns);
    if (trip_ns == NULL) {
        bench_check(TRP_ENOMEM, "round trips");
    }
    go(system, &pinger);
    qsort(trip_ns, trips_goal, sizeof *trip_ns, compare);
    bench_print("remote", "rtt_p50", (double)trip_ns[trips_goal / 2] / 1e3, "us");
    bench_print("remote", "rtt_p99", (double)trip_ns[trips_goal * 99 / 100] / 1e3, "us");
    free(trip_ns);
}

static int
run_remote(const bench_options *options)
{
    child c = { 0 };
    trp_system *system;
    trpi_remote *remote;
    int result;

    if (options->argc > 0 && strcmp(options->argv[0], "--child") == 0) {
        return run_child(options);
    }
    /* the sink's stamps */
    tells_goal = (options->count != 0 ? options->count : TELLS_DEFAULT) & ~(uint64_t)63;
    trips_goal = TRIPS_DEFAULT;
    child_start(&c, options); /* before any thread of ours exists */
    system = bench_system(options);
    remote = remote_start(system);
    target = resolve(system, &c, "/user/sink");
    result = run_tell(system);
    target = resolve(system, &c, "/user/echo");
    run_trips(system);
    bench_check(trp_system_stop(system, ASK_MS), "trp_system_stop");
    trpi_remote_stop(remote);
    trp_system_free(system);
    child_end(&c);
    return result;
}

const bench_workload bench_remote[] = {
    { "remote", "2 processes on loopback: 10 M tells of 100 B, 20 k round trips", run_remote },
    { NULL, NULL, NULL },
};
