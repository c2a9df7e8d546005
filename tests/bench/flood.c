/* flood.c - one-way traffic: count, fanin, forkjoin_throughput. */
#include <stdlib.h>

#include "tests/bench/bench.h"

#define TURN 1000 /* tells of a producer before it tells itself to go on */
#define SENDERS 100
#define FORKS 60

static uint64_t start_ns, end_ns, received;

typedef struct role {
    trp_ref peer;
    uint64_t left;
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

/* ---- count, fanin: producers tell one counter ------------------------------------------------ */

static uint64_t goal;

static trp_err
counter_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    role *self = state;

    (void)ctx;
    (void)msg;
    if (++self->seen == goal) {
        rate_print(self->seen);
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
run_producers(const char *name, const bench_options *options, uint64_t producers, uint64_t each,
              const char *logic)
{
    trp_system *system = bench_system(options);
    trp_router_options router = TRP_ROUTER_OPTIONS_INIT;
    trp_ref to;
    trp_ref *refs = calloc(producers, sizeof *refs);

    if (refs == NULL) {
        bench_check(TRP_ENOMEM, "producers");
        return 1;
    }
    if (logic == NULL) {
        to = bench_spawn(system, &counter);
    } else {
        router.logic = logic;
        bench_check(trp_system_router_spawn(system, &counter, NULL, NULL, &router, &to), "router");
    }
    goal = producers * each;
    for (uint64_t i = 0; i < producers; i++) {
        refs[i] = bench_spawn(system, &producer);
        bench_tell_ref(system, refs[i], to);
    }
    start_ns = bench_now_ns(); /* before the first send */
    for (uint64_t i = 0; i < producers; i++) {
        bench_tell_i64(system, refs[i], (int64_t)each);
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
    return run_producers("count", options, 1, options->count != 0 ? options->count : 20000000,
                         NULL);
}

static int
run_fanin(const bench_options *options)
{
    return run_producers("fanin", options, SENDERS,
                         (options->count != 0 ? options->count : 10000000) / SENDERS, NULL);
}

/* As count, but the counter is the only routee of a router: the cost of routing. */
static int
run_route(const bench_options *options)
{
    return run_producers("route", options, 1, options->count != 0 ? options->count : 20000000,
                         "round-robin");
}

/* ---- forkjoin_throughput: one driver tells many, in turns of about a thousand ---------------- */

static trp_ref forks[FORKS]; /* written before the driver is told to begin */
static trp_ref forks_driver;

/* Counts its messages; the driver hears of the last one. */
static trp_err
fork_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    role *self = state;

    (void)msg;
    if (++self->seen == goal) {
        int64_t seen = (int64_t)self->seen;

        trp_tell(ctx, forks_driver, &trp_i64_type, &seen, sizeof seen);
    }
    return TRP_OK;
}

typedef struct driver_state {
    uint64_t rounds_left;
    uint64_t joined, seen;
} driver_state;

static trp_err
driver_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    driver_state *self = state;

    if (trp_msg_is(msg, &trp_i64_type)) { /* a fork has received all its messages */
        self->seen += (uint64_t)value_of(msg);
        if (++self->joined == FORKS) {
            rate_print(self->seen);
        }
        return TRP_OK;
    }
    if (trp_ref_is_none(trp_sender(ctx))) {
        self->rounds_left = goal;
        start_ns = bench_now_ns();
    }
    for (int i = 0; i < TURN / FORKS && self->rounds_left > 0; i++, self->rounds_left--) {
        int64_t value = (int64_t)self->rounds_left;

        for (int j = 0; j < FORKS; j++) {
            trp_tell(ctx, forks[j], &trp_i64_type, &value, sizeof value);
        }
    }
    if (self->rounds_left > 0) {
        trp_tell(ctx, trp_self(ctx), &trp_bytes_type, NULL, 0);
    }
    return TRP_OK;
}

static const trp_behaviour fork_counter = TRP_BEHAVIOUR_INIT("fork", role, fork_receive);
static const trp_behaviour driver = TRP_BEHAVIOUR_INIT("driver", driver_state, driver_receive);

static int
run_forkjoin(const bench_options *options)
{
    trp_system *system = bench_system(options);
    uint64_t total = options->count != 0 ? options->count : 6000000;

    goal = total / FORKS;
    for (int i = 0; i < FORKS; i++) {
        forks[i] = bench_spawn(system, &fork_counter);
    }
    forks_driver = bench_spawn(system, &driver);
    trp_system_tell(system, forks_driver, &trp_bytes_type, NULL, 0);
    bench_wait();
    bench_system_end(system);
    return bench_print_rate("forkjoin_throughput", goal * FORKS, start_ns, end_ns, "messages/s",
                            goal * FORKS - received);
}

const bench_workload bench_flood[] = {
    { "count", "1 producer tells 1 counter 20 M times", run_count },
    { "fanin", "100 producers tell 1 counter 100 k times each", run_fanin },
    { "route", "as count, by way of a round-robin router", run_route },
    { "forkjoin_throughput", "1 driver tells each of 60 actors 100 k times, round robin",
      run_forkjoin },
    { NULL, NULL, NULL },
};
