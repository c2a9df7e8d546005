/* dataflow_schedules_test.c - flows that read and write values have one outcome in all schedules.
 *
 * One thread runs the flows in an order that a seed draws. A network of flows sums values that
 * others write; the right sums are computed beside it by a plain loop. In the same run two flows
 * wait for each other, in all schedules, and two race to write a value: one of them wins, and all
 * readers agree on which.
 *
 *     TROUPE_FLOW_SEEDS=10000 pattern_tests dataflow_schedules_test     more schedules
 */
#include <troupe/dataflow.h>

#include <stdlib.h>

#include <troupe/seeded.h>
#include <troupe/testkit.h>

#include "tests/unit/unit.h"

enum { SEEDS = 300, NODES = 12, INPUTS = 3, READERS = 3 };

typedef struct network {
    trp_testkit *kit;
    trp_promise *values[NODES]; /* the first INPUTS are given, the others computed */
    trp_promise *left, *right;  /* each is written by a flow that reads the other */
    trp_promise *raced;
    int wins, losses;
    int64_t read[READERS];
} network;

typedef struct node {
    network *net;
    int at;
} node;

/* The values that node i reads: some before it, in an order of its own. */
static int
inputs_of(int at, int ret_inputs[INPUTS])
{
    for (int i = 0; i < INPUTS; i++) {
        ret_inputs[i] = (at * 7 + i * 5 + 3) % at;
    }
    return INPUTS;
}

static int64_t
combine(int64_t sum, int64_t value)
{
    return (sum * 31 + value) % 1000003; /* not commutative: the order of reads shows */
}

static trp_err
value_read(trp_flow *flow, trp_promise *from, int64_t *ret_value)
{
    return trp_flow_read(flow, trp_promise_future(from), &trp_i64_type, ret_value);
}

static trp_err
value_write(trp_promise *to, int64_t value)
{
    return trp_promise_succeed(to, &trp_i64_type, &value, sizeof value);
}

static trp_err
node_flow(trp_flow *flow, void *arg, trp_promise *out)
{
    const node *n = arg;
    int inputs[INPUTS], count = inputs_of(n->at, inputs);
    int64_t sum = n->at;
    for (int i = 0; i < count; i++) {
        int64_t value = 0;
        trp_err err = value_read(flow, n->net->values[inputs[i]], &value);
        if (err != TRP_OK) {
            return err;
        }
        sum = combine(sum, value);
    }
    trp_err err = value_write(n->net->values[n->at], sum);
    return err != TRP_OK ? err : value_write(out, sum);
}

static trp_err
left_of_right(trp_flow *flow, void *arg, trp_promise *out)
{
    const network *net = arg;
    int64_t value = 0;
    trp_err err = value_read(flow, net->right, &value);
    (void)out;
    return err != TRP_OK ? err : value_write(net->left, value);
}

static trp_err
right_of_left(trp_flow *flow, void *arg, trp_promise *out)
{
    const network *net = arg;
    int64_t value = 0;
    trp_err err = value_read(flow, net->left, &value);
    (void)out;
    return err != TRP_OK ? err : value_write(net->right, value);
}

static trp_err
race(trp_flow *flow, void *arg, trp_promise *out)
{
    const node *n = arg;
    (void)flow;
    (void)out;
    trp_err err = value_write(n->net->raced, n->at);
    n->net->wins += err == TRP_OK;
    n->net->losses += err == TRP_EEXIST;
    return TRP_OK;
}

static trp_err
raced_read(trp_flow *flow, void *arg, trp_promise *out)
{
    const node *n = arg;
    (void)out;
    return value_read(flow, n->net->raced, &n->net->read[n->at]);
}

static void
check_all(network *net)
{
    int64_t want[NODES];
    for (int at = 0; at < NODES; at++) {
        int inputs[INPUTS];
        const trp_outcome *got = trp_future_outcome(trp_promise_future(net->values[at]));
        want[at] = at;
        for (int i = 0; at >= INPUTS && i < inputs_of(at, inputs); i++) {
            want[at] = combine(want[at], want[inputs[i]]);
        }
        TRP_TESTKIT_CHECK(net->kit, got != NULL && got->err == TRP_OK);
        TRP_TESTKIT_CHECK(net->kit, *(const int64_t *)trp_msg_payload(got->value) == want[at]);
    }
    TRP_TESTKIT_CHECK(net->kit, trp_future_outcome(trp_promise_future(net->left)) == NULL);
    TRP_TESTKIT_CHECK(net->kit, trp_future_outcome(trp_promise_future(net->right)) == NULL);
    TRP_TESTKIT_CHECK(net->kit, net->wins == 1 && net->losses == 1);
    for (int i = 1; i < READERS; i++) {
        TRP_TESTKIT_CHECK(net->kit, net->read[i] == net->read[0]);
    }
    TRP_TESTKIT_CHECK(net->kit, net->read[0] == 1 || net->read[0] == 2);
}

static void
flow_begin(network *net, trp_flow_fn fn, void *arg)
{
    TRP_TESTKIT_CHECK(net->kit, trp_flow_start(trp_testkit_system(net->kit), fn, arg, NULL, NULL,
                                               NULL) == TRP_OK);
}

static void
promise_open(network *net, trp_promise **ret_promise)
{
    TRP_TESTKIT_CHECK(net->kit,
                      trp_promise_new(trp_testkit_system(net->kit), NULL, ret_promise) == TRP_OK);
}

static void
network_run(trp_testkit *kit, void *arg)
{
    static network net; /* of one run at a time; a failed one leaks its promises */
    static node nodes[NODES], racers[2], readers[READERS];
    trp_flows_info info = { .size = sizeof info };
    (void)arg;
    net = (network){ .kit = kit };
    for (int i = 0; i < NODES; i++) {
        promise_open(&net, &net.values[i]);
    }
    promise_open(&net, &net.left);
    promise_open(&net, &net.right);
    promise_open(&net, &net.raced);
    flow_begin(&net, left_of_right, &net);
    for (int i = INPUTS; i < NODES; i++) { /* begun in an order of the seed */
        nodes[i] = (node){ &net, i };
    }
    for (int i = NODES - 1; i > INPUTS; i--) {
        int other = INPUTS + (int)(trp_seeded_random(kit) % (uint64_t)(i - INPUTS + 1));
        node swap = nodes[i];
        nodes[i] = nodes[other];
        nodes[other] = swap;
    }
    for (int i = INPUTS; i < NODES; i++) {
        flow_begin(&net, node_flow, &nodes[i]);
    }
    for (int i = 0; i < READERS; i++) {
        readers[i] = (node){ &net, i };
        flow_begin(&net, raced_read, &readers[i]);
    }
    for (int i = 0; i < 2; i++) {
        racers[i] = (node){ &net, i + 1 };
        flow_begin(&net, race, &racers[i]);
    }
    for (int i = 0; i < INPUTS; i++) {
        TRP_TESTKIT_CHECK(kit, value_write(net.values[i], i) == TRP_OK);
    }
    flow_begin(&net, right_of_left, &net);
    (void)trp_probe_receive(trp_testkit_probe(kit), 1000); /* no message: nothing is left to do */
    check_all(&net);
    TRP_TESTKIT_CHECK(kit, trp_flows_get_info(trp_testkit_system(kit), &info) == TRP_OK);
    TRP_TESTKIT_CHECK(kit, info.live == 2 && info.waiting == 2); /* the same deadlock */
    for (int i = 0; i < NODES; i++) {
        trp_promise_unref(net.values[i]);
    }
    trp_promise_unref(net.raced);
    trp_promise_unref(net.left); /* fails: both end */
    trp_promise_unref(net.right);
}

/* DATAFLOW-2 */
static void
the_outcome_is_the_same_in_all_schedules(void)
{
    trp_seeded_options options = TRP_SEEDED_OPTIONS_INIT;
    trp_seeded_result result = { .size = sizeof result };
    const char *seeds = getenv("TROUPE_FLOW_SEEDS"); /* troupe: of tests alone */
    options.seeds = seeds != NULL ? (uint32_t)strtoul(seeds, NULL, 10) : SEEDS;
    UNIT_EQUAL(trp_seeded_run(network_run, NULL, &options, &result), TRP_OK);
    UNIT_EQUAL(result.runs, options.seeds);
    UNIT_TRUE(result.choices > 20); /* there was something to decide */
}

UNIT_BEGIN("dataflow_schedules")
UNIT(the_outcome_is_the_same_in_all_schedules)
UNIT_END
