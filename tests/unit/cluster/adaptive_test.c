/* Metrics and adaptive routing on real systems over loopback, with a collector of the test's. */
#include <troupe/metrics.h>
#include <troupe/router.h>

#include "cluster/shell/shell.h"
#include "tests/unit/cluster/host.h"

#define GIB (1024.0 * 1024 * 1024)

/* ---- nodes that measure what the test says --------------------------------------------------- */

struct meter {
    struct host host;
    _Atomic uint32_t used_percent; /* of 1 GiB; above 100: nothing is said */
    _Atomic int opened, closed;
    pthread_mutex_t gate; /* fake_collect() takes it after it has counted */
    _Atomic int collects;
    trp_metrics_collector collector;
};

static trp_err
fake_open(void *arg, trp_system *system, void **ret_state)
{
    struct meter *m = arg;
    UNIT_TRUE(system == m->host.system);
    atomic_fetch_add(&m->opened, 1);
    *ret_state = m;
    return TRP_OK;
}

static uint32_t
fake_collect(void *state, trp_metric *metrics, uint32_t max)
{
    struct meter *m = state;
    uint32_t percent = atomic_load(&m->used_percent);
    UNIT_TRUE(max >= 2);
    atomic_fetch_add(&m->collects, 1);
    pthread_mutex_lock(&m->gate);
    pthread_mutex_unlock(&m->gate);
    if (percent > 100) {
        return 0;
    }
    (void)snprintf(metrics[0].name, sizeof metrics[0].name, "%s", TRP_METRIC_HEAP_USED);
    metrics[0].value = GIB * percent / 100;
    (void)snprintf(metrics[1].name, sizeof metrics[1].name, "%s", TRP_METRIC_HEAP_MAX);
    metrics[1].value = GIB;
    return 2;
}

static void
fake_close(void *state)
{
    atomic_fetch_add(&((struct meter *)state)->closed, 1);
}

static void
meter_start(struct meter *m, const char *seed, uint32_t used_percent, bool disabled)
{
    memset(m, 0, sizeof *m);
    pthread_mutex_init(&m->gate, NULL);
    atomic_store(&m->used_percent, used_percent);
    m->collector = (trp_metrics_collector){ sizeof m->collector, "fake",     fake_open,
                                            fake_collect,        fake_close, m };
    trpi_cluster_options options = { .quiet = true,
                                     .metrics = { .disabled = disabled,
                                                  .collect_interval_ms = 20,
                                                  .gossip_interval_ms = 20,
                                                  .half_life_ms = 20,
                                                  .collector = &m->collector },
                                     .member = { .gossip_interval_ms = 20,
                                                 .leader_actions_interval_ms = 20 } };
    host_open(&m->host);
    host_join(&m->host, seed, options);
}

static void
meter_end(struct meter *m)
{
    host_end(&m->host);
    UNIT_EQUAL(atomic_load(&m->closed), atomic_load(&m->opened));
    pthread_mutex_destroy(&m->gate);
}

static uint32_t
nodes_known(struct meter *h)
{
    trp_node_metrics nodes[8];
    size_t count = 0;
    UNIT_EQUAL(trp_cluster_metrics(h->host.system, nodes, 8, &count), TRP_OK);
    return (uint32_t)count;
}

/* Return the memory of `other` that h knows, in percent; -1: none. */
static int
known_of(struct meter *h, const struct meter *other)
{
    trp_node_metrics nodes[8];
    size_t count = 0;
    double used;
    UNIT_EQUAL(trp_cluster_metrics(h->host.system, nodes, 8, &count), TRP_OK);
    for (size_t i = 0; i < count && i < 8; i++) {
        if (strcmp(nodes[i].address, other->host.address) == 0 &&
            trp_metrics_find(&nodes[i], TRP_METRIC_HEAP_USED, &used)) {
            return (int)(used * 100 / GIB + 0.5);
        }
    }
    return -1;
}

/* ---- a subscriber ---------------------------------------------------------------------------- */

static _Atomic uint32_t states_heard, changes_heard, most_nodes, most_percent;
static _Atomic bool state_first;

static trp_err
listener_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    if (trp_msg_is(msg, &trp_current_cluster_state_type)) {
        atomic_store(&state_first, atomic_load(&changes_heard) == 0);
        atomic_fetch_add(&states_heard, 1);
    } else if (trp_msg_is(msg, &trp_metrics_changed_type)) {
        const trp_metrics_changed *event = trp_msg_payload(msg);
        UNIT_EQUAL(trp_msg_bytes(msg),
                   sizeof *event + event->nodes_count * sizeof(trp_node_metrics));
        for (uint32_t i = 0; i < event->nodes_count; i++) {
            const trp_node_metrics *node = &trp_metrics_changed_nodes(event)[i];
            double used = 0;
            UNIT_TRUE(node->number > 0);
            UNIT_TRUE(trp_metrics_find(node, TRP_METRIC_HEAP_USED, &used));
            uint32_t percent = (uint32_t)(used * 100 / GIB + 0.5);
            if (percent > atomic_load(&most_percent)) {
                atomic_store(&most_percent, percent);
            }
        }
        if (event->nodes_count > atomic_load(&most_nodes)) {
            atomic_store(&most_nodes, event->nodes_count);
        }
        atomic_fetch_add(&changes_heard, 1);
    } else {
        UNIT_FAIL("not asked for");
    }
    return TRP_OK;
}

static const trp_behaviour listener = { .size = sizeof(trp_behaviour),
                                        .name = "listener",
                                        .version = 1,
                                        .state_bytes = 8,
                                        .receive = listener_receive };

/* CMETRIC-01, -02, -13, -14, -15; EVENTS-07 */
static void
figures_of_all_members_are_known_and_told_and_those_of_who_left_are_forgotten(void)
{
    struct meter a, b;
    trp_ref ref;
    meter_start(&a, "self", 30, false);
    UNIT_REQUIRE(trp_system_spawn(a.host.system, &listener, NULL, &ref) == TRP_OK);
    UNIT_EQUAL(trp_cluster_subscribe(a.host.system, ref, TRP_CLUSTER_METRICS_CHANGED), TRP_OK);
    meter_start(&b, a.host.address, 60, false);
    UNIT_WAIT(known_of(&a, &b) == 60 && known_of(&b, &a) == 30, 60000);
    UNIT_WAIT(atomic_load(&most_nodes) == 2, 60000);
    UNIT_EQUAL(atomic_load(&states_heard), 1);
    UNIT_TRUE(atomic_load(&state_first));
    atomic_store(&b.used_percent, 90);
    UNIT_WAIT(known_of(&a, &b) == 90, 60000); /* not smoothed: the collector does not ask */
    UNIT_WAIT(atomic_load(&most_percent) == 90, 60000); /* told, too: 60 was the most before */
    trp_cluster_unsubscribe(a.host.system, ref, TRP_CLUSTER_METRICS_CHANGED);
    UNIT_EQUAL(trp_cluster_leave(a.host.system, b.host.address), TRP_OK);
    UNIT_WAIT(nodes_known(&a) == 1, 60000);
    UNIT_EQUAL(known_of(&a, &a), 30);
    UNIT_EQUAL(atomic_load(&a.opened), 1);
    meter_end(&b);
    meter_end(&a);
}

/* The round of its own figures that it knows. */
static uint64_t
round_of(struct meter *h)
{
    trp_node_metrics node = { .number = 0 };
    size_t count = 0;
    return trp_cluster_metrics(h->host.system, &node, 1, &count) == TRP_OK && count == 1
               ? node.number
               : 0;
}

/* CMETRIC-02, ClusterMetricsDisabledSpec: nor does it publish anything, in so many of its
 * neighbour's rounds */
static void
a_node_that_is_switched_off_measures_nothing_and_tells_nothing(void)
{
    struct meter a, b;
    trp_node_metrics node;
    trp_ref ref;
    size_t count = 9;
    uint32_t states = atomic_load(&states_heard), changes = atomic_load(&changes_heard);
    meter_start(&a, "self", 30, true);
    UNIT_REQUIRE(trp_system_spawn(a.host.system, &listener, NULL, &ref) == TRP_OK);
    UNIT_EQUAL(trp_cluster_subscribe(a.host.system, ref, TRP_CLUSTER_METRICS_CHANGED), TRP_OK);
    UNIT_WAIT(atomic_load(&states_heard) == states + 1, 60000);
    meter_start(&b, a.host.address, 60, false);
    UNIT_WAIT(nodes_known(&b) == 1, 60000);
    size_t members = 0;
    UNIT_WAIT(trp_cluster_members(b.host.system, NULL, 0, &members) == TRP_OK && members == 2,
              60000);
    uint64_t rounds = round_of(&b) + 10;
    UNIT_WAIT(round_of(&b) >= rounds, 60000);
    UNIT_EQUAL(atomic_load(&changes_heard), changes);
    UNIT_EQUAL(trp_cluster_metrics(a.host.system, &node, 1, &count), TRP_OK);
    UNIT_EQUAL(count, 0);
    UNIT_EQUAL(atomic_load(&a.opened), 0);
    UNIT_EQUAL(known_of(&b, &a), -1);
    UNIT_EQUAL(trp_cluster_metrics(a.host.system, NULL, 1, &count), TRP_EINVAL);
    meter_end(&b);
    meter_end(&a);
}

/* ---- routing --------------------------------------------------------------------------------- */

static trp_err
idle_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    return TRP_OK;
}

static const trp_behaviour worker = { .size = sizeof(trp_behaviour),
                                      .name = "worker",
                                      .version = 1,
                                      .state_bytes = 8,
                                      .receive = idle_receive };

/* How many of 1000 messages the router would send to ref; by 4000. */
static uint32_t
share_of(struct meter *h, trp_ref router, trp_ref ref)
{
    uint32_t hits = 0;
    for (uint32_t i = 0; i < 4000; i++) {
        trp_destination to;
        uint32_t count = 0;
        UNIT_EQUAL(
            trp_router_route(h->host.system, router, ref, &trp_string_type, "x", 2, &to, 1, &count),
            TRP_OK);
        UNIT_EQUAL(count, 1);
        hits += trp_ref_equal(to.to, ref) ? 1 : 0;
    }
    return (hits + 3) / 4; /* 0: not one */
}

static bool
is_about(uint32_t share, uint32_t wanted)
{
    return share + 60 >= wanted && share <= wanted + 60; /* 7 deviations of a fair draw */
}

static trp_ref
worker_on(struct meter *at, struct meter *seen_from)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref local, remote = TRP_REF_NONE;
    char path[TRPI_ADDRESS_TEXT_BYTES + 32];
    options.name = "worker";
    UNIT_REQUIRE(trp_system_spawn(at->host.system, &worker, &options, &local) == TRP_OK);
    if (at == seen_from) {
        return local;
    }
    (void)snprintf(path, sizeof path, "%s/user/worker", at->host.address);
    UNIT_REQUIRE(trp_system_resolve(seen_from->host.system, path, 60000, &remote) == TRP_OK);
    return remote;
}

/* A group at a, over a worker of a and one of b. */
static trp_ref
group_over(struct meter *a, struct meter *b, const char *setting, trp_ref ret_routees[2])
{
    const char *const settings[] = { setting, NULL };
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_ref router = TRP_REF_NONE;
    ret_routees[0] = worker_on(a, a);
    ret_routees[1] = worker_on(b, a);
    options.logic = "adaptive";
    options.settings = settings;
    options.routees = ret_routees;
    options.routees_count = 2;
    UNIT_REQUIRE(trp_system_router_spawn(a->host.system, NULL, NULL, "front", &options, &router) ==
                 TRP_OK);
    return router;
}

/* CMETRIC-09, -10, GAP-13 */
static void
a_group_sends_more_to_the_node_that_has_more_left(void)
{
    struct meter a, b;
    trp_ref routees[2];
    meter_start(&a, "self", 101, false); /* 101: nothing is known */
    meter_start(&b, a.host.address, 101, false);
    trp_ref router = group_over(&a, &b, "metrics-selector=heap", routees);
    UNIT_TRUE(is_about(share_of(&a, router, routees[1]), 500));
    atomic_store(&a.used_percent, 20);
    atomic_store(&b.used_percent, 80);
    UNIT_WAIT(known_of(&a, &b) == 80 && known_of(&a, &a) == 20, 60000);
    UNIT_TRUE(is_about(share_of(&a, router, routees[1]), 200)); /* 0.8 to 0.2 */
    atomic_store(&b.used_percent, 100);
    UNIT_WAIT(known_of(&a, &b) == 100, 60000);
    UNIT_EQUAL(share_of(&a, router, routees[1]), 0);
    atomic_store(&a.used_percent, 100); /* no node has anything left: all the same */
    UNIT_WAIT(known_of(&a, &a) == 100, 60000);
    UNIT_TRUE(is_about(share_of(&a, router, routees[1]), 500));
    meter_end(&b);
    meter_end(&a);
}

/* The more a node has in use, the more it gets: what no selector of the library says. */
static int
used_capacity(void *arg, const trp_node_metrics *node, double *ret_capacity)
{
    double used;
    if (!trp_metrics_find(node, TRP_METRIC_HEAP_USED, &used)) {
        return 0;
    }
    *ret_capacity = used / *(const double *)arg;
    return 1;
}

/* CMETRIC-08 */
static void
a_group_routes_by_the_selector_that_the_program_registered(void)
{
    static double all = GIB;
    static const trp_metrics_selector own = { sizeof own, "used", used_capacity, &all };
    struct meter a, b;
    trp_ref routees[2];
    UNIT_EQUAL(trp_metrics_selector_register(&own), TRP_OK);
    meter_start(&a, "self", 20, false);
    meter_start(&b, a.host.address, 80, false);
    trp_ref router = group_over(&a, &b, "metrics-selector=used", routees);
    UNIT_WAIT(known_of(&a, &b) == 80 && known_of(&a, &a) == 20, 60000);
    UNIT_TRUE(is_about(share_of(&a, router, routees[1]), 800));
    atomic_store(&b.used_percent, 0);
    UNIT_WAIT(known_of(&a, &b) == 0, 60000);
    UNIT_EQUAL(share_of(&a, router, routees[1]), 0);
    meter_end(&b);
    meter_end(&a);
}

/* CMETRIC-09, CROUTE-01 */
static void
a_router_over_the_cluster_is_adaptive(void)
{
    static const char *const settings[] = { "metrics-selector=heap", NULL };
    struct meter a, b;
    trp_cluster_routees cluster = TRP_CLUSTER_ROUTEES_INIT;
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_ref router, there;
    uint32_t count = 0;
    meter_start(&a, "self", 20, false);
    meter_start(&b, a.host.address, 80, false);
    (void)worker_on(&a, &a);
    there = worker_on(&b, &a);
    cluster.path = "/user/worker";
    options.logic = "adaptive";
    options.settings = settings;
    options.cluster = &cluster;
    UNIT_REQUIRE(trp_system_router_spawn(a.host.system, NULL, NULL, "front", &options, &router) ==
                 TRP_OK);
    UNIT_WAIT(trp_router_routees(a.host.system, router, NULL, 0, &count) == TRP_OK && count == 2,
              60000);
    UNIT_WAIT(known_of(&a, &b) == 80 && known_of(&a, &a) == 20, 60000);
    UNIT_TRUE(is_about(share_of(&a, router, there), 200));
    meter_end(&b);
    meter_end(&a);
}

/* CMETRIC-09, CROUTE-06: its children here are child proxies, and live there */
static void
a_pool_over_the_cluster_weighs_the_nodes_of_its_children(void)
{
    static const char *const settings[] = { "metrics-selector=heap", NULL };
    struct meter a, b;
    trp_cluster_routees cluster = TRP_CLUSTER_ROUTEES_INIT;
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_ref router, routees[2];
    uint32_t count = 0;
    meter_start(&a, "self", 20, false);
    UNIT_EQUAL(trp_behaviour_register(a.host.system, &worker), TRP_OK);
    options.logic = "adaptive";
    options.settings = settings;
    options.cluster = &cluster;
    UNIT_REQUIRE(trp_system_router_spawn(a.host.system, &worker, NULL, "pool", &options, &router) ==
                 TRP_OK);
    UNIT_WAIT(trp_router_routees(a.host.system, router, routees, 2, &count) == TRP_OK && count == 1,
              60000);
    trp_ref here = routees[0];
    meter_start(&b, a.host.address, 80, false);
    UNIT_EQUAL(trp_behaviour_register(b.host.system, &worker), TRP_OK);
    UNIT_WAIT(trp_router_routees(a.host.system, router, routees, 2, &count) == TRP_OK && count == 2,
              60000);
    UNIT_WAIT(known_of(&a, &b) == 80 && known_of(&a, &a) == 20, 60000);
    UNIT_TRUE(is_about(share_of(&a, router, here), 800));
    meter_end(&b);
    meter_end(&a);
}

/* CMETRIC-08, -09, CONF-23 */
static void
a_pool_is_adaptive_and_grows_and_its_selector_must_exist(void)
{
    static const char *const wrong[] = { "metrics-selector=nonsense", NULL };
    struct meter a;
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_adjust_pool_size more = { 2 };
    trp_ref router, routees[8];
    uint32_t count = 0;
    meter_start(&a, "self", 50, false);
    options.logic = "adaptive";
    options.instances = 3;
    UNIT_REQUIRE(trp_system_router_spawn(a.host.system, &worker, NULL, "pool", &options, &router) ==
                 TRP_OK);
    UNIT_EQUAL(trp_router_routees(a.host.system, router, routees, 8, &count), TRP_OK);
    UNIT_EQUAL(count, 3);
    UNIT_TRUE(is_about(share_of(&a, router, routees[1]), 333));
    trp_system_tell(a.host.system, router, &trp_adjust_pool_size_type, &more, sizeof more);
    UNIT_WAIT(trp_router_routees(a.host.system, router, routees, 8, &count) == TRP_OK && count == 5,
              60000);
    UNIT_TRUE(is_about(share_of(&a, router, routees[4]), 200));
    options.settings = wrong;
    UNIT_EQUAL(trp_system_router_spawn(a.host.system, &worker, NULL, "none", &options, &router),
               TRP_EINVAL);
    meter_end(&a);
}

/* ---- frames that wait ------------------------------------------------------------------------ */

static uint64_t
frames_waiting(const struct meter *m)
{
    return atomic_load(&trpi_metrics_mailbox(m->host.cluster->metrics)->frames_waiting) >> 32;
}

static uint64_t
frames_dropped(const struct meter *m)
{
    return atomic_load(&trpi_metrics_mailbox(m->host.cluster->metrics)->frames_dropped);
}

/* Hold the actor in its collector, until the gate is unlocked; then give it count frames. */
static void
frames_put_behind_a_gate(struct meter *m, uint32_t count, size_t bytes)
{
    static const uint8_t frame[METRICS_FRAME_BYTES_MAX / 32]; /* cannot be read: dropped later */
    trpi_node_id from = *trpi_system_self(m->host.system);
    pthread_mutex_lock(&m->gate);
    int collects = atomic_load(&m->collects);
    UNIT_WAIT(atomic_load(&m->collects) > collects, 60000);
    for (uint32_t i = 0; i < count; i++) {
        trpi_metrics_frame_arrived(m->host.cluster->metrics, &from, frame, bytes, 0);
    }
}

/* shell-messages-Q1, metrics-shell-S3 */
static void
metrics_frames_beyond_the_bounds_are_dropped_and_the_others_are_handled(void)
{
    struct meter m;
    meter_start(&m, "self", 30, false);
    UNIT_WAIT(nodes_known(&m) == 1, 60000);
    frames_put_behind_a_gate(&m, METRICS_FRAMES_MAX + 3, 1);
    UNIT_EQUAL(frames_waiting(&m), METRICS_FRAMES_MAX);
    UNIT_EQUAL(frames_dropped(&m), 3);
    pthread_mutex_unlock(&m.gate);
    UNIT_WAIT(frames_waiting(&m) == 0, 60000);
    frames_put_behind_a_gate(&m, 32, METRICS_FRAME_BYTES_MAX / 32);
    UNIT_EQUAL(frames_dropped(&m), 3);
    trpi_node_id from = *trpi_system_self(m.host.system);
    trpi_metrics_frame_arrived(m.host.cluster->metrics, &from, (const uint8_t *)"", 1, 0);
    UNIT_EQUAL(frames_dropped(&m), 4); /* one byte too many */
    pthread_mutex_unlock(&m.gate);
    UNIT_WAIT(frames_waiting(&m) == 0, 60000);
    meter_end(&m);
}

UNIT_BEGIN("adaptive")
UNIT(figures_of_all_members_are_known_and_told_and_those_of_who_left_are_forgotten)
UNIT(a_node_that_is_switched_off_measures_nothing_and_tells_nothing)
UNIT(a_group_sends_more_to_the_node_that_has_more_left)
UNIT(a_group_routes_by_the_selector_that_the_program_registered)
UNIT(a_router_over_the_cluster_is_adaptive)
UNIT(a_pool_over_the_cluster_weighs_the_nodes_of_its_children)
UNIT(a_pool_is_adaptive_and_grows_and_its_selector_must_exist)
UNIT(metrics_frames_beyond_the_bounds_are_dropped_and_the_others_are_handled)
UNIT_END
