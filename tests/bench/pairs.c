/* pairs.c - one message on its way: pingpong, ring, bigpayload, latency. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <troupe/dispatcher.h>

#include "tests/bench/bench.h"

#define RING 503
#define PAYLOAD_BYTES 1024

/* Written by the actor that ends the workload, before bench_done(). */
static uint64_t start_ns, end_ns, received;

typedef struct role {
    trp_ref peer;
    uint64_t seen;
} role;

static int64_t
value_of(const trp_msg *msg)
{
    return *(const int64_t *)trp_msg_payload(msg);
}

static void
rate_print(uint64_t count)
{
    end_ns = bench_now_ns();
    received = count;
    bench_done();
}

/* ---- pingpong: the number counts down to 0 --------------------------------------------------- */

static trp_err
ping_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    role *self = state;
    int64_t value;

    if (trp_msg_is(msg, &trp_bytes_type)) { /* the ref of the peer */
        self->peer = *(const trp_ref *)trp_msg_payload(msg);
        return TRP_OK;
    }
    self->seen++;
    value = value_of(msg);
    if (value == 0) {
        rate_print(self->seen);
        return TRP_OK;
    }
    value--;
    if (trp_ref_is_none(trp_sender(ctx))) { /* the order to begin: no message of the count */
        self->seen = 0;
        start_ns = bench_now_ns();
        trp_tell(ctx, self->peer, &trp_i64_type, &value, sizeof value);
    } else {
        trp_tell(ctx, trp_sender(ctx), &trp_i64_type, &value, sizeof value);
    }
    return TRP_OK;
}

static const trp_behaviour ping = TRP_BEHAVIOUR_INIT("ping", role, ping_receive);

static int
run_pingpong(const bench_options *options)
{
    uint64_t trips = options->count != 0 ? options->count : 5000000;
    trp_system *system = bench_system(options);
    trp_ref one = bench_spawn(system, &ping);
    trp_ref other = bench_spawn(system, &ping);

    bench_tell_ref(system, one, other);
    bench_tell_i64(system, one,
                   (int64_t)(2 * trips)); /* its first tell carries 2 * trips - 1, the last one 0 */
    bench_wait();
    bench_system_end(system);
    return bench_print_rate("pingpong", 2 * trips, start_ns, end_ns, "messages/s",
                            trips - received);
}

/* ---- affine: the same on threads that actors are bound to, on one of them and between two -------
 * A4J-36: what a send within a thread saves. */

static trp_ref
spawn_affine(trp_system *system)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;

    options.dispatcher = "bound";
    bench_check(trp_system_spawn(system, &ping, &options, &ref), "trp_system_spawn");
    return ref;
}

/* Messages in a second between two actors that are bound to so many threads. */
static double
affine_rate(const bench_options *options, uint32_t threads, uint64_t trips)
{
    trp_dispatcher_options bound = TRP_DISPATCHER_OPTIONS_INIT;
    trp_system *system = bench_system(options);
    trp_ref one, other;

    bound.kind = TRP_DISPATCHER_AFFINITY;
    bound.threads_min = bound.threads_max = threads;
    bench_check(trp_dispatcher_register(system, "bound", &bound), "trp_dispatcher_register");
    one = spawn_affine(system);
    other = spawn_affine(system);
    bench_tell_ref(system, one, other);
    bench_tell_i64(system, one, (int64_t)(2 * trips));
    bench_wait();
    bench_system_end(system);
    return 2 * (double)trips * 1e9 / (double)(end_ns - start_ns);
}

static int
run_affine(const bench_options *options)
{
    uint64_t trips = options->count != 0 ? options->count : 1000000;
    uint64_t lost;

    bench_print("affine", "rate_within", affine_rate(options, 1, trips), "messages/s");
    lost = trips - received;
    bench_print("affine", "rate_between", affine_rate(options, 2, trips), "messages/s");
    lost += trips - received;
    bench_print("affine", "lost", (double)lost, "messages");
    return lost == 0 ? 0 : 1;
}

/* ---- ring ------------------------------------------------------------------------------------ */

static trp_err
ring_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    role *self = state;
    int64_t value;

    if (trp_msg_is(msg, &trp_bytes_type)) {
        self->peer = *(const trp_ref *)trp_msg_payload(msg);
        return TRP_OK;
    }
    value = value_of(msg);
    if (trp_ref_is_none(trp_sender(ctx))) {
        start_ns = bench_now_ns();
    } else if (value == 0) {
        rate_print(0);
        return TRP_OK;
    }
    value--;
    trp_tell(ctx, self->peer, &trp_i64_type, &value, sizeof value);
    return TRP_OK;
}

static const trp_behaviour ring_member = TRP_BEHAVIOUR_INIT("ring", role, ring_receive);

static int
run_ring(const bench_options *options)
{
    uint64_t hops = options->count != 0 ? options->count : 5000000;
    trp_system *system = bench_system(options);
    trp_ref refs[RING];

    for (int i = 0; i < RING; i++) {
        refs[i] = bench_spawn(system, &ring_member);
    }
    for (int i = 0; i < RING; i++) {
        bench_tell_ref(system, refs[i], refs[(i + 1) % RING]);
    }
    bench_tell_i64(system, refs[0], (int64_t)hops);
    bench_wait();
    bench_system_end(system);
    return bench_print_rate("ring", hops, start_ns, end_ns, "hops/s", 0);
}

/* ---- bigpayload: what each has is told, that is copied, again and again ---------------------- */

typedef struct payload_state {
    trp_ref peer;
    uint64_t left; /* messages to tell */
    char bytes[PAYLOAD_BYTES];
} payload_state;

static trp_err
payload_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    payload_state *self = state;

    if (trp_msg_is(msg, &trp_i64_type)) { /* how often */
        self->left = (uint64_t)value_of(msg);
        memset(self->bytes, 'x', sizeof self->bytes);
        return TRP_OK;
    }
    if (trp_msg_bytes(msg) == sizeof self->peer) {
        self->peer = *(const trp_ref *)trp_msg_payload(msg);
        return TRP_OK;
    }
    if (trp_ref_is_none(trp_sender(ctx))) {
        start_ns = bench_now_ns();
    } else {
        received++; /* by turns: never both at once */
    }
    if (self->left > 0) {
        self->left--;
        trp_tell(ctx, self->peer, &trp_bytes_type, self->bytes, sizeof self->bytes);
    } else {
        rate_print(received);
    }
    return TRP_OK;
}

static const trp_behaviour payload_holder =
    TRP_BEHAVIOUR_INIT("payload", payload_state, payload_receive);

static int
run_bigpayload(const bench_options *options)
{
    uint64_t trips = options->count != 0 ? options->count : 2000000;
    trp_system *system = bench_system(options);
    trp_ref one = bench_spawn(system, &payload_holder);
    trp_ref other = bench_spawn(system, &payload_holder);

    bench_tell_ref(system, one, other);
    bench_tell_ref(system, other, one);
    bench_tell_i64(system, one, (int64_t)trips);
    bench_tell_i64(system, other, (int64_t)trips);
    trp_system_tell(system, one, &trp_bytes_type, NULL, 0);
    bench_wait();
    bench_system_end(system);
    return bench_print_rate("bigpayload", 2 * trips, start_ns, end_ns, "messages/s",
                            2 * trips - received);
}

/* ---- latency --------------------------------------------------------------------------------- */

static uint32_t *trips_ns;
static uint64_t trips_goal;

typedef struct timed {
    trp_ref peer;
    uint64_t seen;
    uint64_t sent_ns;
} timed;

static trp_err
timed_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    timed *self = state;
    uint64_t now = bench_now_ns();

    if (trp_msg_is(msg, &trp_bytes_type)) {
        self->peer = *(const trp_ref *)trp_msg_payload(msg);
        return TRP_OK;
    }
    if (!trp_ref_is_none(trp_sender(ctx))) {
        trips_ns[self->seen++] = (uint32_t)(now - self->sent_ns);
        if (self->seen == trips_goal) {
            rate_print(self->seen);
            return TRP_OK;
        }
    }
    self->sent_ns = now;
    trp_tell(ctx, self->peer, &trp_i64_type, trp_msg_payload(msg), 8);
    return TRP_OK;
}

static trp_err
echo_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    trp_tell(ctx, trp_sender(ctx), &trp_i64_type, trp_msg_payload(msg), 8);
    return TRP_OK;
}

static const trp_behaviour timed_asker = TRP_BEHAVIOUR_INIT("timed", timed, timed_receive);
static const trp_behaviour echo = TRP_BEHAVIOUR_INIT("echo", role, echo_receive);

static int
compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static int
run_latency(const bench_options *options)
{
    trp_system *system = bench_system(options);
    trp_ref one = bench_spawn(system, &timed_asker);
    trp_ref other = bench_spawn(system, &echo);

    trips_goal = options->count != 0 ? options->count : 2000000;
    trips_ns = calloc(trips_goal, sizeof *trips_ns);
    if (trips_ns == NULL) {
        bench_check(TRP_ENOMEM, "latency");
        return 1;
    }
    bench_tell_ref(system, one, other);
    bench_tell_i64(system, one, 1);
    bench_wait();
    bench_system_end(system);
    qsort(trips_ns, trips_goal, sizeof *trips_ns, compare_u32);
    bench_print("latency", "rtt_p50", trips_ns[trips_goal / 2], "ns");
    bench_print("latency", "rtt_p99", trips_ns[trips_goal / 100 * 99], "ns");
    bench_print("latency", "rtt_p99.9", trips_ns[trips_goal / 1000 * 999], "ns");
    free(trips_ns);
    bench_print("latency", "lost", (double)(trips_goal - received), "messages");
    return received == trips_goal ? 0 : 1;
}

const bench_workload bench_pairs[] = {
    { "pingpong", "2 actors, 5 M round trips", run_pingpong },
    { "affine", "the same, 1 M, bound to one thread and to two", run_affine },
    { "ring", "503 actors in a ring, one token, 5 M hops", run_ring },
    { "bigpayload", "2 actors, 2 M round trips, a fresh 1 KiB copy each way", run_bigpayload },
    { "latency", "2 actors, 2 M round trips, each timed", run_latency },
    { NULL, NULL, NULL },
};
