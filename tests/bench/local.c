/* local.c - workloads between actors of one system: pingpong, ring, count, fanin, latency. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/bench/bench.h"

#define TURN 1000 /* tells of a producer before it tells itself to go on */
#define RING 503
#define SENDERS 100

/* Written by the actor that ends the workload, before bench_done(). */
static uint64_t start_ns, end_ns, received;

typedef struct role {
    trp_ref peer;
    uint64_t left;
    uint64_t seen;
} role;

static trp_ref
spawn(trp_system *system, const trp_behaviour *behaviour)
{
    trp_ref ref;

    bench_check(trp_system_spawn(system, behaviour, NULL, &ref), "trp_system_spawn");
    return ref;
}

static void
tell_ref(trp_system *system, trp_ref to, trp_ref peer)
{
    trp_system_tell(system, to, &trp_bytes_type, &peer, sizeof peer);
}

static void
tell_i64(trp_system *system, trp_ref to, int64_t value)
{
    trp_system_tell(system, to, &trp_i64_type, &value, sizeof value);
}

static int64_t
value_of(const trp_msg *msg)
{
    return *(const int64_t *)trp_msg_payload(msg);
}

static void
finish(uint64_t count)
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

    if (trp_msg_is(msg, &trp_bytes_type)) { /* who the peer is */
        self->peer = *(const trp_ref *)trp_msg_payload(msg);
        return TRP_OK;
    }
    self->seen++;
    value = value_of(msg);
    if (value == 0) {
        finish(self->seen);
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
    trp_ref one = spawn(system, &ping);
    trp_ref other = spawn(system, &ping);

    tell_ref(system, one, other);
    tell_i64(system, one,
             (int64_t)(2 * trips)); /* its first tell carries 2 * trips - 1, the last one 0 */
    bench_wait();
    bench_system_end(system);
    return bench_print_rate("pingpong", 2 * trips, start_ns, end_ns, "messages/s",
                            trips - received);
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
        finish(0);
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
        refs[i] = spawn(system, &ring_member);
    }
    for (int i = 0; i < RING; i++) {
        tell_ref(system, refs[i], refs[(i + 1) % RING]);
    }
    tell_i64(system, refs[0], (int64_t)hops);
    bench_wait();
    bench_system_end(system);
    return bench_print_rate("ring", hops, start_ns, end_ns, "hops/s", 0);
}

/* ---- count, fanin: producers tell one counter ------------------------------------------------ */

static uint64_t goal;

static trp_err
counter_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    role *self = state;

    (void)ctx;
    (void)msg;
    if (++self->seen == goal) {
        finish(self->seen);
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
        return TRP_OK;
    }
    if (self->seen == 0) {
        self->left = (uint64_t)value_of(msg);
        self->seen = 1;
    }
    for (int i = 0; i < TURN && self->left > 0; i++, self->left--) {
        int64_t value = (int64_t)self->left;

        trp_tell(ctx, self->peer, &trp_i64_type, &value, sizeof value);
    }
    if (self->left > 0) {
        int64_t value = 0;

        trp_tell(ctx, trp_self(ctx), &trp_i64_type, &value, sizeof value);
    }
    return TRP_OK;
}

static const trp_behaviour producer = TRP_BEHAVIOUR_INIT("producer", role, producer_receive);

static int
run_producers(const char *name, const bench_options *options, uint64_t producers, uint64_t each)
{
    trp_system *system = bench_system(options);
    trp_ref to = spawn(system, &counter);
    trp_ref *refs = calloc(producers, sizeof *refs);

    if (refs == NULL) {
        bench_check(TRP_ENOMEM, "producers");
        return 1;
    }
    goal = producers * each;
    for (uint64_t i = 0; i < producers; i++) {
        refs[i] = spawn(system, &producer);
        tell_ref(system, refs[i], to);
    }
    start_ns = bench_now_ns(); /* before the first send */
    for (uint64_t i = 0; i < producers; i++) {
        tell_i64(system, refs[i], (int64_t)each);
    }
    free(refs);
    bench_wait();
    bench_system_end(system);
    bench_print(name, "peak_rss", (double)bench_peak_rss_bytes() / (1024.0 * 1024.0), "MiB");
    return bench_print_rate(name, goal, start_ns, end_ns, "messages/s", goal - received);
}

static int
run_count(const bench_options *options)
{
    return run_producers("count", options, 1, options->count != 0 ? options->count : 20000000);
}

static int
run_fanin(const bench_options *options)
{
    return run_producers("fanin", options, SENDERS,
                         (options->count != 0 ? options->count : 10000000) / SENDERS);
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
            finish(self->seen);
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
    trp_ref one = spawn(system, &timed_asker);
    trp_ref other = spawn(system, &echo);

    trips_goal = options->count != 0 ? options->count : 2000000;
    trips_ns = calloc(trips_goal, sizeof *trips_ns);
    if (trips_ns == NULL) {
        bench_check(TRP_ENOMEM, "latency");
        return 1;
    }
    tell_ref(system, one, other);
    tell_i64(system, one, 1);
    bench_wait();
    bench_system_end(system);
    qsort(trips_ns, trips_goal, sizeof *trips_ns, compare_u32);
    bench_print("latency", "rtt_p50", trips_ns[trips_goal / 2], "ns");
    bench_print("latency", "rtt_p99", trips_ns[trips_goal / 100 * 99], "ns");
    bench_print("latency", "rtt_p99.9", trips_ns[trips_goal / 1000 * 999], "ns");
    free(trips_ns);
    return 0;
}

const bench_workload bench_local[] = {
    { "pingpong", "2 actors, 5 M round trips", run_pingpong },
    { "ring", "503 actors in a ring, one token, 5 M hops", run_ring },
    { "count", "1 producer tells 1 counter 20 M times", run_count },
    { "fanin", "100 producers tell 1 counter 100 k times each", run_fanin },
    { "latency", "2 actors, 2 M round trips, each timed", run_latency },
    { NULL, NULL, NULL },
};
