/* remote.c - two processes on loopback: tells of three sizes, round trips, heartbeats under tells;
 *            plain and encrypted.
 *
 * Shape.  The parent starts itself once more as `bench remote --child PKI` (two.c), which prints
 *         its address and serves /user/sink and /user/echo, and answers heartbeats, until its
 *         standard input ends. The sink stamps its last receipt; both processes share the monotonic
 *         clock. Senders use trp_try_tell() and wait to be told when the lane is full.
 *         `--transport tcp|tls`: only that; `--bytes N`: only tells of N bytes (at most 65536);
 *         `--trips N`: only round trips, so many.
 */
#include "tests/bench/two.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAYLOAD_BYTES 100
#define PAYLOAD_BYTES_MAX 65536
#define TELLS_DEFAULT 10000000u /* of 100 B; of 1 KiB an eighth, of 64 KiB a 256th of it */
#define SENDERS 4
#define TRIPS_DEFAULT 20000u
#define TELLS_TO_A_TRIP 3u /* at least: few tells, few trips */
#define BEATS_DEFAULT 2000u
#define TRIPS_WARM 1000u
#define TURN_TELLS 1000
#define QUIET_NS BENCH_QUIET_NS

/* ---- child ----------------------------------------------------------------------------------- */

typedef struct sink_state {
    uint64_t count;
    uint64_t last_ns;
} sink_state;

/* Counts bytes; a text is answered with the state, "0" begins anew. */
static trp_err
sink_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    sink_state *sink = state;

    if (trp_msg_is(msg, &trp_string_type)) {
        if (*(const char *)trp_msg_payload(msg) == '0') {
            *sink = (sink_state){ 0, 0 };
        }
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

static trpi_remote *here;

/* As the failure detector does it: on the thread for control lanes, or on a transport thread. */
static bool
beat_reply(const uint8_t *bytes, size_t count, uint8_t *answer)
{
    if (count != BENCH_BEAT_BYTES || bytes[0] != 1) {
        return false;
    }
    memcpy(answer, bytes, count);
    answer[0] = 2;
    return true;
}

static void
beat_answer(void *arg, const trpi_node_id *from, const uint8_t *bytes, size_t count,
            uint64_t arrived_ns)
{
    uint8_t answer[BENCH_BEAT_BYTES];

    (void)arg;
    (void)arrived_ns;
    if (beat_reply(bytes, count, answer)) {
        (void)trpi_remote_control_send(here, from, TRPI_CHANNEL_HEARTBEAT, answer, sizeof answer);
    }
}

static int
run_child(const bench_options *options, const char *pki)
{
    trp_system *system = bench_system(options);
    trpi_remote *remote = bench_remote_start(system, pki[0] != '\0' ? pki : NULL);
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    char address[TRPI_ADDRESS_TEXT_BYTES];
    trp_ref ref;

    spawn.name = "sink";
    bench_check(trp_system_spawn(system, &sink, &spawn, &ref), "sink");
    spawn.name = "echo";
    bench_check(trp_system_spawn(system, &echo, &spawn, &ref), "echo");
    bench_slow_spawn(system);
    here = remote;
    trpi_remote_control_bind(remote, TRPI_CHANNEL_HEARTBEAT, beat_answer, NULL);
    trpi_remote_beats_answer(remote, beat_reply);
    (void)printf("%s\n", trpi_address_format(trpi_remote_address(remote), address, sizeof address));
    (void)fflush(stdout);
    while (getchar() != EOF) {
    }
    bench_check(trp_system_stop(system, BENCH_ASK_MS), "trp_system_stop");
    trpi_remote_stop(remote);
    trp_system_free(system);
    return 0;
}

/* ---- parent ---------------------------------------------------------------------------------- */

static trp_ref target;
static uint64_t tells_goal, trips_goal; /* tells: of each sender; UINT64_MAX: without end */
static size_t tell_bytes;
static _Atomic uint32_t senders_left;
static _Atomic uint64_t told; /* in all */
static atomic_bool enough;
static uint64_t start_ns;
static uint64_t *trip_ns;
static bool encrypted;

/* One line; encrypted, its name says so. */
static void
print_line(const char *workload, const char *param, double value, const char *unit)
{
    char name[32];

    (void)snprintf(name, sizeof name, "%s%s", encrypted ? "tls_" : "", param);
    bench_print(workload, name, value, unit);
}

static void
two_start(bench_two *two, const bench_options *options)
{
    bench_two_start(two, options, encrypted);
    target = bench_two_resolve(two, "/user/sink");
}

/* At most TURN_TELLS a turn, then a message to itself; when the lane is full, it waits to be told
 * trp_mailbox_ready. */
static trp_err
producer_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    static const uint8_t payload[PAYLOAD_BYTES_MAX] = { 1 };
    uint64_t *sent = state;

    (void)msg;
    for (int i = 0; i < TURN_TELLS && *sent < tells_goal && !atomic_load(&enough); i++) {
        if (trp_try_tell(ctx, target, &trp_bytes_type, payload, tell_bytes) != TRP_OK) {
            return TRP_OK;
        }
        ++*sent;
    }
    if (*sent < tells_goal && !atomic_load(&enough)) {
        trp_tell(ctx, trp_self(ctx), &trp_bytes_type, "", 0);
        return TRP_OK;
    }
    atomic_fetch_add(&told, *sent);
    if (atomic_fetch_sub(&senders_left, 1) == 1) {
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
producers_go(trp_system *system, const trp_behaviour *behaviour, uint32_t count)
{
    trp_ref ref;

    atomic_store(&senders_left, count);
    atomic_store(&told, 0);
    atomic_store(&enough, false);
    start_ns = bench_now_ns();
    for (uint32_t i = 0; i < count; i++) {
        bench_check(trp_system_spawn(system, behaviour, NULL, &ref), behaviour->name);
        trp_system_tell(system, ref, &trp_bytes_type, "", 0);
    }
}

static sink_state
sink_say(trp_system *system, const char *text)
{
    sink_state answer = { 0, 0 };
    trp_msg *reply = NULL;

    if (trp_system_ask(system, target, &trp_string_type, text, 1, BENCH_ASK_MS, &reply) == TRP_OK &&
        trp_msg_bytes(reply) == sizeof answer) {
        memcpy(&answer, trp_msg_payload(reply), sizeof answer);
    }
    trp_msg_free(reply);
    return answer;
}

/* Ask until the sink has all messages, or no more arrive. Returns the number of lost messages. */
static uint64_t
sink_wait(trp_system *system, sink_state *ret_answer)
{
    uint64_t seen = 0;
    uint64_t seen_ns = bench_now_ns();

    do {
        *ret_answer = sink_say(system, "?");
        if (ret_answer->count != seen) {
            seen = ret_answer->count;
            seen_ns = bench_now_ns();
        }
    } while (ret_answer->count < told && bench_now_ns() - seen_ns < QUIET_NS);
    return told - ret_answer->count;
}

/* Returns what was lost. */
static uint64_t
run_tell(trp_system *system, const char *param, size_t bytes, uint64_t count, uint32_t senders)
{
    sink_state answer;
    uint64_t lost;

    (void)sink_say(system, "0");
    tell_bytes = bytes;
    tells_goal = (count / senders + 63) & ~(uint64_t)63; /* the sink's stamps */
    producers_go(system, &producer, senders);
    bench_wait();
    lost = sink_wait(system, &answer);
    print_line("remote", param, (double)answer.count * 1e9 / (double)(answer.last_ns - start_ns),
               "messages/s");
    return lost;
}

static int
compare_ns(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void
trips_print(const char *workload, uint64_t count)
{
    qsort(trip_ns, count, sizeof *trip_ns, compare_ns);
    print_line(workload, "rtt_p50", (double)trip_ns[count / 2] / 1e3, "us");
    print_line(workload, "rtt_p99", (double)trip_ns[count * 99 / 100] / 1e3, "us");
    free(trip_ns);
}

static void
trips_make(uint64_t count)
{
    trips_goal = count;
    trip_ns = calloc(trips_goal, sizeof *trip_ns);
    if (trip_ns == NULL) {
        bench_check(TRP_ENOMEM, "round trips");
    }
}

static void
run_trips(trp_system *system, uint64_t count)
{
    trips_make(count);
    producers_go(system, &pinger, 1);
    bench_wait();
    trips_print("remote", trips_goal);
}

/* Returns what was lost. */
static uint64_t
run_pair(const bench_options *options, bool tls)
{
    uint64_t count = options->count != 0 ? options->count : TELLS_DEFAULT;
    const char *bytes = bench_option_value(options, "--bytes");
    const char *trips = bench_option_value(options, "--trips");
    uint64_t lost = 0;
    bench_two two;

    encrypted = tls;
    two_start(&two, options);
    if (trips != NULL) {
        target = bench_two_resolve(&two, "/user/echo");
        run_trips(two.system, strtoull(trips, NULL, 10));
    } else if (bytes != NULL) {
        lost = run_tell(two.system, "rate", strtoul(bytes, NULL, 10), count, 1);
    } else {
        lost = run_tell(two.system, "rate_100", PAYLOAD_BYTES, count, 1);
        lost += run_tell(two.system, "rate_1024", 1024, count / 8, 1);
        lost += run_tell(two.system, "rate_65536", 65536, count / 256, 1);
        lost += run_tell(two.system, "rate_100_4s", PAYLOAD_BYTES, count, SENDERS);
        target = bench_two_resolve(&two, "/user/echo");
        run_trips(two.system, count / TELLS_TO_A_TRIP < TRIPS_DEFAULT ? count / TELLS_TO_A_TRIP + 1
                                                                      : TRIPS_DEFAULT);
    }
    bench_two_end(&two);
    return lost;
}

static int
run_remote(const bench_options *options)
{
    const char *child = bench_option_value(options, "--child");
    const char *transport = bench_option_value(options, "--transport");
    uint64_t lost = 0;

    if (child != NULL) {
        return run_child(options, child);
    }
    if (transport == NULL || strcmp(transport, "tcp") == 0) {
        lost += run_pair(options, false);
    }
    if (transport == NULL || strcmp(transport, "tls") == 0) {
        lost += run_pair(options, true);
    }
    bench_print("remote", "lost", (double)lost, "messages");
    return lost == 0 ? 0 : 1;
}

/* ---- heartbeats ------------------------------------------------------------------------------ */

static int
run_hb_under_bulk(const bench_options *options)
{
    uint64_t count = options->count != 0 ? options->count : BEATS_DEFAULT;
    sink_state answer;
    uint64_t lost;
    const char *transport = bench_option_value(options, "--transport");
    bench_two t;

    encrypted = transport != NULL && strcmp(transport, "tls") == 0;
    two_start(&t, options);
    bench_beats_bind(&t, true);
    trips_make(count);
    (void)sink_say(t.system, "0");
    tell_bytes = PAYLOAD_BYTES;
    tells_goal = UINT64_MAX;
    producers_go(t.system, &producer, 1);
    lost = bench_beats_run(&t, trpi_node_id_get(t.system, target.node), count, trip_ns);
    atomic_store(&enough, true);
    bench_wait();
    lost += sink_wait(t.system, &answer);
    bench_print("hb_under_bulk", "bulk_rate",
                (double)answer.count * 1e9 / (double)(answer.last_ns - start_ns), "messages/s");
    trips_print("hb_under_bulk", count);
    bench_print("hb_under_bulk", "lost", (double)lost, "messages");
    bench_beats_bind(&t, false);
    bench_two_end(&t);
    return lost == 0 ? 0 : 1;
}

const bench_workload bench_remote[] = {
    { "remote", "2 processes, also with TLS: 10 M tells of 100 B, fewer of 1 and 64 KiB, trips",
      run_remote },
    { "hb_under_bulk", "2 processes: 2 k heartbeats while one tells the other all it can",
      run_hb_under_bulk },
    { NULL, NULL, NULL },
};
