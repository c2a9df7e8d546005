/* metrics_program.c - metrics and adaptive routing between processes: `troupe multinode
 * metrics_program`.
 *
 * The scenarios are those of Akka's multi-jvm tests, whose names stand at them; each prints its own
 * name on the first node when it has passed. tests/multinode/metrics.sh looks for the names. The
 * test sets what a node measures: the collector is the program's own. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <troupe/troupe.h>

#include "tests/multinode/program.h"

#define AWAIT(condition) TRP_MULTINODE_AWAIT(test, condition, 60000)

enum { MESSAGES = 600, GIB = 1 << 30 };

#define WORK_DONE(F, S) F(S, u64, count)
#define WORK_MESSAGES(M, P) M(P, job, TRP_NO_FIELDS) M(P, ask, TRP_NO_FIELDS) M(P, done, WORK_DONE)
TRP_PROTOCOL(work, WORK_MESSAGES)

/* ---- what a node measures -------------------------------------------------------------------- */

static _Atomic uint32_t used_percent = 50;
static _Atomic uint32_t collected;

static uint32_t
collect(void *state, trp_metric *metrics, uint32_t max)
{
    (void)state;
    (void)max;
    snprintf(metrics[0].name, sizeof metrics[0].name, "%s", TRP_METRIC_HEAP_USED);
    metrics[0].value = (double)GIB / 100 * atomic_load(&used_percent);
    snprintf(metrics[1].name, sizeof metrics[1].name, "%s", TRP_METRIC_HEAP_MAX);
    metrics[1].value = GIB;
    atomic_fetch_add(&collected, 1);
    return 2;
}

static const trp_metrics_collector collector = { sizeof collector, "of-the-test", NULL,
                                                 collect,          NULL,          NULL };

static size_t
known(trp_multinode *test)
{
    size_t count = 0;
    MUST(trp_cluster_metrics(trp_multinode_system(test), NULL, 0, &count));
    return count;
}

/* Used memory of a role in percent, as far as this node knows; -1: it does not. */
static int
used_by(trp_multinode *test, const char *role)
{
    static trp_node_metrics nodes[8];
    char address[TRP_ADDRESS_BYTES];
    size_t count = 0;
    double used;
    MUST(trp_multinode_address(test, role, address));
    MUST(trp_cluster_metrics(trp_multinode_system(test), nodes, 8, &count));
    for (size_t i = 0; i < count; i++) {
        if (strcmp(nodes[i].address, address) == 0 &&
            trp_metrics_find(&nodes[i], TRP_METRIC_HEAP_USED, &used)) {
            return (int)(used * 100 / GIB + 0.5);
        }
    }
    return -1;
}

/* ---- workers --------------------------------------------------------------------------------- */

static trp_err
worker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    work_done *done = state;
    if (trp_msg_is(msg, &work_job_type)) {
        done->count++;
    } else if (trp_msg_is(msg, &work_ask_type)) {
        trp_reply(ctx, &work_done_type, done, sizeof *done);
    }
    return TRP_OK;
}

static uint64_t
done_by(trp_multinode *test, trp_ref worker)
{
    work_ask ask = { 0 };
    trp_msg *reply = NULL;
    MUST(trp_system_ask(trp_multinode_system(test), worker, &work_ask_type, &ask, sizeof ask, 30000,
                        &reply));
    uint64_t count = ((const work_done *)trp_msg_payload(reply))->count;
    trp_msg_free(reply);
    return count;
}

static uint32_t
routees(trp_multinode *test, trp_ref router)
{
    uint32_t count = 0;
    MUST(trp_router_routees(trp_multinode_system(test), router, NULL, 0, &count));
    return count;
}

/* Tell the router MESSAGES jobs; returns how many of them the second one of two workers got. */
static uint64_t
share_of_second(trp_multinode *test, trp_ref router, trp_ref second, trp_ref third)
{
    uint64_t before = done_by(test, second), all = before + done_by(test, third) + MESSAGES;
    work_job job = { 0 };
    for (int i = 0; i < MESSAGES; i++) {
        trp_system_tell(trp_multinode_system(test), router, &work_job_type, &job, sizeof(job));
    }
    AWAIT(done_by(test, second) + done_by(test, third) == all);
    return done_by(test, second) - before;
}

/* ---- scenarios ------------------------------------------------------------------------------- */

static void
passed(trp_multinode *test, const char *name)
{
    MUST(trp_multinode_barrier(test, name, 0));
    if (trp_multinode_is(test, "first")) {
        printf("%s\n", name);
        fflush(stdout);
    }
}

/* ClusterMetricsExtensionSpec, ClusterMetricsDisabledSpec */
static void
figures_reach_every_node_but_one_that_is_switched_off(trp_multinode *test)
{
    AWAIT(trp_multinode_is(test, "silent") || known(test) == 3);
    passed(test, "figures_reach_every_node");
    if (trp_multinode_is(test, "silent")) { /* a member like the others, for as long */
        size_t members = 0;
        AWAIT(trp_cluster_members(trp_multinode_system(test), NULL, 0, &members) == TRP_OK &&
              members == 4);
        CHECK(known(test) == 0 && atomic_load(&collected) == 0);
    } else {
        CHECK(known(test) == 3 && used_by(test, "silent") == -1);
    }
    passed(test, "who_is_switched_off_neither_measures_nor_tells_nor_hears");
}

/* ClusterMetricsRoutingSpec (AdaptiveLoadBalancingRouterSpec) */
static void
an_adaptive_router_follows_the_load(trp_multinode *test)
{
    static const trp_behaviour worker = { .size = sizeof(trp_behaviour),
                                          .name = "worker",
                                          .receive = worker_receive,
                                          .state_bytes = sizeof(work_done) };
    static const char *const settings[] = { "metrics-selector=heap", NULL };
    trp_spawn_options named = TRP_SPAWN_OPTIONS_INIT;
    trp_cluster_routees cluster = TRP_CLUSTER_ROUTEES_INIT;
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_ref router, second, third, own;
    named.name = "worker";
    MUST(trp_system_spawn(trp_multinode_system(test), &worker, &named, &own));
    if (trp_multinode_is(test, "first")) {
        cluster.path = "/user/worker";
        cluster.role = "backend";
        cluster.local = 0;
        options.logic = "adaptive";
        options.settings = settings;
        options.cluster = &cluster;
        MUST(trp_system_router_spawn(trp_multinode_system(test), NULL, NULL, "front", &options,
                                     &router));
        MUST(trp_multinode_resolve(test, "second", "/user/worker", 60000, &second));
        MUST(trp_multinode_resolve(test, "third", "/user/worker", 60000, &third));
        AWAIT(routees(test, router) == 2);
        uint64_t share = share_of_second(test, router, second, third);
        CHECK(share > MESSAGES * 3 / 10 && share < MESSAGES * 7 / 10); /* 10 deviations */
    }
    passed(test, "an_adaptive_router_spreads_evenly_when_all_have_the_same_left");
    if (trp_multinode_is(test, "second")) {
        atomic_store(&used_percent, 95);
    }
    if (trp_multinode_is(test, "first")) {
        AWAIT(used_by(test, "second") == 95);
        uint64_t share = share_of_second(test, router, second, third); /* 0.05 to 0.5: 1 in 11 */
        CHECK(share > 0 && share < MESSAGES * 2 / 10);
    }
    passed(test, "an_adaptive_router_prefers_free_memory");
}

/* ClusterMetricsExtensionSpec */
static void
figures_follow_membership(trp_multinode *test)
{
    char address[TRP_ADDRESS_BYTES];
    if (trp_multinode_is(test, "first")) {
        MUST(trp_multinode_address(test, "third", address));
        MUST(trp_multinode_remove(test, "third"));
        MUST(trp_cluster_leave(trp_multinode_system(test), address));
    }
    if (trp_multinode_is(test, "third")) {
        MUST(trp_multinode_await_end(test, 60000));
        return;
    }
    AWAIT(trp_multinode_is(test, "silent") || known(test) == 2);
    passed(test, "figures_follow_membership");
}

static void
all(trp_multinode *test, void *arg)
{
    (void)arg;
    MUST(trp_protocol_register(&work_protocol));
    figures_reach_every_node_but_one_that_is_switched_off(test);
    an_adaptive_router_follows_the_load(test);
    figures_follow_membership(test);
}

int
main(int argc, char **argv)
{
    static const char *const backend[] = { "cluster.roles=backend", NULL };
    static const char *const silent[] = { "cluster.metrics.enabled=off", NULL };
    static const char *const common[] = {
        "cluster.seed-nodes=@first@",
        "cluster.gossip-interval=100ms",
        "cluster.leader-actions-interval=100ms",
        "cluster.metrics.collector-class=of-the-test",
        "cluster.metrics.collect-interval=100ms",
        "cluster.metrics.gossip-interval=100ms",
        "cluster.failure-detector.acceptable-heartbeat-pause=20s", /* no node dies here */
        "log.level=error",
        NULL
    };
    static const trp_multinode_role roles[] = {
        { "first", NULL }, { "second", backend }, { "third", backend }, { "silent", silent }
    };
    trp_multinode_options options = TRP_MULTINODE_OPTIONS_INIT;
    options.roles = roles;
    options.roles_count = 4;
    options.settings = common;
    options.barrier_timeout_ms = 90000; /* others wait while one awaits something */
    options.argc = argc;
    options.argv = argv;
    return trp_metrics_collector_register(&collector) == TRP_OK
               ? trp_multinode_main(&options, all, NULL)
               : 1;
}
