/* router_test.c - a cluster-aware router without memory for what it has to do: whichever allocation
 * of a look fails, no routee is lost and none is left over (CROUTE); and one on a node that stood
 * still. */
#include <troupe/actor.h>
#include <troupe/cluster.h>
#include <troupe/router.h>
#include <troupe/sim.h>

#include "base/alloc.h"
#include "pattern/routing_head.h"
#include "tests/sim/play.h"

enum { NODES = 3, WANTED = 4, ALLOCATIONS = 24 };

static int32_t alive[NODES]; /* workers */
static trp_sim *present;

static trp_err
worker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    trp_reply(ctx, trp_msg_type(msg), trp_msg_payload(msg), trp_msg_bytes(msg));
    return TRP_OK;
}
static trp_err
work_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state;
    (void)args;
    alive[play_node_of(present, ctx)]++;
    return TRP_OK;
}
static void
work_stop(trp_ctx *ctx, void *state)
{
    (void)state;
    alive[play_node_of(present, ctx)]--;
}
static const trp_behaviour worker = { .size = sizeof(trp_behaviour),
                                      .name = "worker",
                                      .version = 1,
                                      .receive = worker_receive,
                                      .pre_start = work_start,
                                      .post_stop = work_stop };

static void
start_actors(trp_sim *sim, uint32_t node, void *arg)
{
    (void)arg;
    present = sim;
    UNIT_EQUAL(trp_behaviour_register(trp_sim_system(sim, node), &worker), TRP_OK);
}

/* ---- a router whose looks lack memory -------------------------------------------------------- */

static long fail_after = -1; /* allocations of a look that succeed; -1: all */
static uint32_t failed;      /* looks in which one did not */
static const trpi_routee_source_ops *real;

/* A table is leaked when there is no memory for the note that retires it (Limits of retire.c). The
 * leak sanitizer sees only the tables made while there is memory. */
extern void __lsan_disable(void) __attribute__((weak));
extern void __lsan_enable(void) __attribute__((weak));

static void
poor_look(void *source, trp_ctx *ctx)
{
    if (__lsan_disable != NULL) {
        __lsan_disable();
    }
    trpi_alloc_fail_after(fail_after);
    real->poked(source, ctx);
    trpi_alloc_fail_after(-1);
    if (__lsan_enable != NULL) {
        __lsan_enable();
    }
}

/* Any message to the router itself puts this look in the place of its own. */
static trp_err
wrapper_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    static trpi_routee_source_ops ops;
    trpi_router *router = trpi_router_self(ctx);
    (void)state;
    (void)msg;
    real = router->source.ops;
    ops = *real;
    ops.poked = poor_look;
    router->source.ops = &ops;
    return TRP_OK;
}
static void
choose_route(void *state, trp_route *to, trp_ref sender, const trp_msg *msg)
{
    (void)state;
    (void)sender;
    (void)msg;
    (void)to; /* to the router itself */
}
static const trp_routing_logic logic = {
    .size = sizeof logic, .name = "poor", .route = choose_route, .receive = wrapper_receive
};

static void
on_line(void *arg, uint64_t now_ms, uint32_t node, const trp_log_line *line)
{
    (void)arg;
    (void)now_ms;
    (void)node;
    failed += strstr(line->text, "the routees could not be updated") != NULL ||
              strstr(line->text, "a new routee cannot be used") != NULL ||
              strstr(line->text, "no routee is made") != NULL;
}

/* ---- the program ----------------------------------------------------------------------------- */

struct scene {
    trp_sim *sim;
    trp_ref router;
    uint32_t routees; /* wanted in the table */
    int reachable;    /* node 1 */
};

static uint32_t
routees_count(const struct scene *s)
{
    trp_ref refs[16];
    uint32_t count = 0;
    return trp_router_routees(trp_sim_system(s->sim, 0), s->router, refs, 16, &count) == TRP_OK
               ? count
               : UINT32_MAX;
}

static int
is_seen(void *arg)
{
    const struct scene *s = arg;
    trp_member members[8];
    size_t count = 0;
    int reachable = 1;
    if (trp_cluster_members(trp_sim_system(s->sim, 0), members, 8, &count) != TRP_OK) {
        return 0;
    }
    for (size_t i = 0; i < count && i < 8; i++) {
        reachable = reachable && members[i].reachable;
    }
    return reachable == s->reachable;
}

static int
is_settled(void *arg)
{
    const struct scene *s = arg;
    return routees_count(s) == s->routees && alive[0] + alive[1] + alive[2] == (int32_t)s->routees;
}

/* Node 1 is cut off, so that the other one has its share, and comes back with it: too many. */
static void
share_moves(trp_sim *sim, struct scene *s)
{
    s->reachable = 0;
    trp_sim_cut(sim, 0, 1, 12000);
    trp_sim_cut(sim, 1, 0, 12000);
    trp_sim_await(sim, is_seen, s, 11000);
    trp_sim_pass(sim, 1500);
    s->reachable = 1;
    trp_sim_await(sim, is_seen, s, 60000);
    trp_sim_pass(sim, 1500);
}

static void
lacks_memory(trp_sim *sim, void *arg)
{
    struct scene s = { .sim = sim, .routees = WANTED };
    trp_cluster_routees cluster = TRP_CLUSTER_ROUTEES_INIT;
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    (void)arg;
    cluster.total = WANTED;
    cluster.per_node = WANTED;
    cluster.local = 0;
    options.cluster = &cluster;
    options.custom = &logic;
    TRP_SIM_CHECK(sim, trp_system_router_spawn(trp_sim_system(sim, 0), &worker, NULL, "poor",
                                               &options, &s.router) == TRP_OK);
    trp_sim_await(sim, is_settled, &s, 10000);
    trp_system_tell(trp_sim_system(sim, 0), s.router, &trp_string_type, "x", 1);
    for (long n = 0; n < ALLOCATIONS; n++) {
        fail_after = n;
        share_moves(sim, &s);
        fail_after = -1;
        trp_sim_await(sim, is_settled, &s, 30000);
    }
}

static void
whichever_allocation_fails_no_routee_is_lost_or_left_over(void)
{
    trp_sim_options options = TRP_SIM_OPTIONS_INIT;
    options.nodes = NODES;
    options.started = start_actors;
    options.stable_after_ms = 60000; /* no node is downed */
    options.log = on_line;
    failed = 0;
    UNIT_EQUAL(trp_sim_run(lacks_memory, NULL, &options, NULL), TRP_OK);
    printf("  %u looks without memory\n", failed);
    UNIT_TRUE(failed >= 4);
}

static int
has_no_routee(void *arg)
{
    return routees_count(arg) == 0;
}

/* The others cannot answer for a while either, so it does not know whether it is still a member. */
static void
stands_still(trp_sim *sim, void *arg)
{
    struct scene s = { .sim = sim, .routees = 6 };
    trp_cluster_routees cluster = TRP_CLUSTER_ROUTEES_INIT;
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    (void)arg;
    cluster.total = 6;
    cluster.per_node = 2;
    options.cluster = &cluster;
    TRP_SIM_CHECK(sim, trp_system_router_spawn(trp_sim_system(sim, 0), &worker, NULL, "held",
                                               &options, &s.router) == TRP_OK);
    trp_sim_await(sim, is_settled, &s, 10000);
    for (uint32_t other = 1; other < NODES; other++) {
        trp_sim_cut(sim, 0, other, 11000);
        trp_sim_cut(sim, other, 0, 11000);
    }
    trp_sim_pause(sim, 0, 8000);
    trp_sim_pass(sim, 7900);
    TRP_SIM_CHECK(sim, routees_count(&s) == 6);
    trp_sim_await(sim, has_no_routee, &s, 600); /* its own two as well */
    trp_sim_pass(sim, 2000);
    TRP_SIM_CHECK(sim, routees_count(&s) == 0);
    trp_sim_await(sim, is_settled, &s, 60000); /* the same ones: none was dismissed */
}

/* A cluster router on a node that is waking; with whole nodes */
static void
who_stood_still_routes_nothing_until_its_peers_have_answered(void)
{
    trp_sim_options options = TRP_SIM_OPTIONS_INIT;
    options.nodes = NODES;
    options.started = start_actors;
    options.stable_after_ms = 60000; /* no node is downed */
    options.log = on_line;
    UNIT_EQUAL(trp_sim_run(stands_still, NULL, &options, NULL), TRP_OK);
}

UNIT_BEGIN("router_sim")
UNIT(who_stood_still_routes_nothing_until_its_peers_have_answered)
UNIT(whichever_allocation_fails_no_routee_is_lost_or_left_over)
UNIT_END
