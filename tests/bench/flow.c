/* flow.c - flow: what a flow costs (troupe/dataflow.h).
 *
 * `start`: flows that return at once, each with its future, 1,000 at a time; `wait`: two flows that
 * write values for each other in turns, so each read waits; `tell`: two actors that tell each other
 * as often, for comparison. Elapsed time of one of them.
 */
#include <troupe/dataflow.h>

#include "tests/bench/bench.h"

enum { WAVE = 1000, VALUES = 1000 };

static trp_err
flow_of_nothing(trp_flow *flow, void *arg, trp_promise *out)
{
    (void)flow;
    return trp_promise_succeed(out, &trp_i64_type, arg, sizeof(int64_t));
}

static double
start_ns(trp_system *system, uint64_t count)
{
    static trp_future *futures[WAVE];
    static int64_t number = 7;
    uint64_t start = bench_now_ns();
    for (uint64_t done = 0; done < count; done += WAVE) {
        for (int i = 0; i < WAVE; i++) {
            bench_check(trp_flow_start(system, flow_of_nothing, &number, NULL, NULL, &futures[i]),
                        "trp_flow_start");
        }
        for (int i = 0; i < WAVE; i++) {
            const trp_msg *value;
            bench_check(trp_future_result(futures[i], 60000, &value), "trp_future_result");
            trp_future_unref(futures[i]);
        }
    }
    return (double)(bench_now_ns() - start) / (double)count;
}

typedef struct rally {
    trp_promise *there[VALUES], *back[VALUES];
} rally;

static trp_err
serve(trp_flow *flow, void *arg, trp_promise *out)
{
    const rally *r = arg;
    for (int64_t i = 0, value; i < VALUES; i++) {
        trp_err err = trp_promise_succeed(r->there[i], &trp_i64_type, &i, sizeof i);
        err = err != TRP_OK
                  ? err
                  : trp_flow_read(flow, trp_promise_future(r->back[i]), &trp_i64_type, &value);
        if (err != TRP_OK) {
            return err;
        }
    }
    return trp_promise_succeed(out, &trp_i64_type, &(int64_t){ VALUES }, sizeof(int64_t));
}

static trp_err
receive(trp_flow *flow, void *arg, trp_promise *out)
{
    const rally *r = arg;
    (void)out;
    for (int i = 0; i < VALUES; i++) {
        int64_t value = 0;
        trp_err err = trp_flow_read(flow, trp_promise_future(r->there[i]), &trp_i64_type, &value);
        err = err != TRP_OK ? err
                            : trp_promise_succeed(r->back[i], &trp_i64_type, &value, sizeof value);
        if (err != TRP_OK) {
            return err;
        }
    }
    return TRP_OK;
}

/* *ret_lost: values that did not come back. */
static double
wait_ns(trp_system *system, uint64_t count, uint64_t *ret_lost)
{
    static rally r;
    uint64_t spent = 0, rounds = count / (2 * VALUES);
    rounds += rounds == 0;
    *ret_lost = rounds * VALUES;
    for (uint64_t round = 0; round < rounds; round++) {
        trp_future *server, *receiver;
        for (int i = 0; i < VALUES; i++) {
            bench_check(trp_promise_new(system, NULL, &r.there[i]), "trp_promise_new");
            bench_check(trp_promise_new(system, NULL, &r.back[i]), "trp_promise_new");
        }
        uint64_t start = bench_now_ns();
        bench_check(trp_flow_start(system, receive, &r, NULL, NULL, &receiver), "trp_flow_start");
        bench_check(trp_flow_start(system, serve, &r, NULL, NULL, &server), "trp_flow_start");
        const trp_msg *came;
        bench_check(trp_future_result(server, 60000, &came), "serve");
        *ret_lost -= (uint64_t) * (const int64_t *)trp_msg_payload(came);
        bench_check(trp_future_await(receiver, 60000), "trp_future_await");
        spent += bench_now_ns() - start;
        bench_check(trp_future_outcome(receiver)->err, "receive");
        for (int i = 0; i < VALUES; i++) {
            trp_promise_unref(r.there[i]);
            trp_promise_unref(r.back[i]);
        }
        trp_future_unref(server);
        trp_future_unref(receiver);
    }
    return (double)spent / (double)(rounds * 2 * VALUES);
}

static int
flow_run(const bench_options *options)
{
    trp_system *system = bench_system(options);
    uint64_t count = options->count == 0 ? 200000 : options->count;
    uint64_t lost;
    bench_print("flow", "start", start_ns(system, count), "ns");
    bench_print("flow", "wait", wait_ns(system, count, &lost), "ns");
    bench_print("flow", "lost", (double)lost, "messages");
    bench_system_end(system);
    return lost == 0 ? 0 : 1;
}

const bench_workload bench_flow[] = {
    { "flow", "start: flows that return at once; wait: a read of a value that is not there yet",
      flow_run },
    { NULL, NULL, NULL },
};
