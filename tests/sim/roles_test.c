/* roles_test.c - singletons and entities of different roles, on complete nodes in virtual time.
 *
 * Why.     They live on the nodes of their role alone, and all nodes reach them; a role also stands
 *          for a data centre. The last test is about a node that starts a type while the
 *          coordinator leaves.
 * Sources. ROLES-03, ROLES-05, FUTURE-02; the specs of Akka named below
 */
#include <troupe/troupe.h>

#include "cluster/sharding/sharding.h"
#include "tests/sim/play.h"

enum { NODES = 5, ROLES = 2, ENTITIES = 24, LATE = NODES - 1 };

static const char *const roles[NODES] = { "north", "north", "south", "south", NULL };
static const char *const names[ROLES] = { "north", "south" };

static trp_sim *present;
static trp_ref proxies[NODES][ROLES];
static uint32_t singletons_started[ROLES];
static bool is_late; /* LATE does not start the types by itself */

/* ---- actors: each answers with its node ------------------------------------------------------ */

static trp_err
clerk_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t node = play_node_of(present, ctx);
    (void)state;
    (void)msg;
    trp_reply(ctx, &trp_i64_type, &node, sizeof node);
    return TRP_OK;
}

static const trp_behaviour clerk = {
    .size = sizeof(trp_behaviour), .name = "clerk", .version = 1, .receive = clerk_receive
};

static trp_err
chief_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state;
    (void)args;
    singletons_started[play_node_of(present, ctx) < 2 ? 0 : 1]++;
    return TRP_OK;
}

static const trp_behaviour chief = { .size = sizeof(trp_behaviour),
                                     .name = "chief",
                                     .version = 1,
                                     .receive = clerk_receive,
                                     .pre_start = chief_start };

/* ---- nodes ----------------------------------------------------------------------------------- */

static bool
has_role(uint32_t node, uint32_t role)
{
    return roles[node] != NULL && strcmp(roles[node], names[role]) == 0;
}

static void
types_start(trp_sim *sim, uint32_t node)
{
    for (uint32_t r = 0; r < ROLES; r++) {
        trp_sharding_options options = TRP_SHARDING_OPTIONS_INIT;
        char why[512] = "";
        options.type = names[r];
        options.role = is_late ? NULL : names[r];
        options.behaviour = is_late || has_role(node, r) ? &clerk : NULL;
        options.shards = 12;
        options.rebalance_ms = 2000;
        if (!UNIT_EQUAL(trp_sharding_start(trp_sim_system(sim, node), &options, why, sizeof why),
                        TRP_OK)) {
            printf("  %s\n", why);
        }
    }
}

static void
start_actors(trp_sim *sim, uint32_t node, void *arg)
{
    (void)arg;
    present = sim;
    for (uint32_t r = 0; r < ROLES && !is_late; r++) {
        trp_singleton_options options = TRP_SINGLETON_OPTIONS_INIT;
        trp_singleton_proxy_options proxy = TRP_SINGLETON_PROXY_OPTIONS_INIT;
        trp_ref manager;
        options.name = proxy.name = names[r];
        options.role = proxy.role = names[r];
        options.behaviour = &chief;
        UNIT_EQUAL(trp_singleton_start(trp_sim_system(sim, node), &options, &manager),
                   has_role(node, r) ? TRP_OK : TRP_EROLE);
        UNIT_EQUAL(trp_singleton_proxy(trp_sim_system(sim, node), &proxy, &proxies[node][r]),
                   TRP_OK);
    }
    if (!is_late || node != LATE) {
        types_start(sim, node);
    }
}

static trp_sim_options
options_of(bool late)
{
    trp_sim_options options = TRP_SIM_OPTIONS_INIT;
    options.nodes = NODES;
    options.started = start_actors;
    options.log = play_line;
    options.roles = roles;
    is_late = late;
    memset(singletons_started, 0, sizeof singletons_started);
    return options;
}

/* Return what the answer says, and free it. */
static uint32_t
node_in(trp_sim *sim, trp_err err, trp_msg *reply)
{
    TRP_SIM_CHECK(sim, err == TRP_OK);
    uint32_t node = err == TRP_OK ? (uint32_t) * (const int64_t *)trp_msg_payload(reply) : NODES;
    trp_msg_free(reply);
    return node;
}

static uint32_t
entity_home(trp_sim *sim, uint32_t asker, uint32_t role, uint32_t number)
{
    char id[16];
    int bytes = snprintf(id, sizeof id, "clerk-%u", number);
    trp_entity entity = trp_entity_of(trp_entity_type(names[role]), id, (size_t)bytes);
    trp_msg *reply = NULL;
    trp_err err = TRP_ETIMEDOUT;
    for (uint32_t i = 0; i < 30 && err == TRP_ETIMEDOUT; i++) {
        err = trp_system_entity_ask(trp_sim_system(sim, asker), &entity, &trp_string_type, "?", 1,
                                    2000, &reply);
    }
    return node_in(sim, err, reply);
}

static uint32_t
singleton_host(trp_sim *sim, uint32_t asker, uint32_t role)
{
    trp_msg *reply = NULL;
    trp_err err = TRP_ETIMEDOUT;
    for (uint32_t i = 0; i < 30 && err == TRP_ETIMEDOUT; i++) {
        err = trp_system_ask(trp_sim_system(sim, asker), proxies[asker][role], &trp_string_type,
                             "?", 1, 2000, &reply);
    }
    return node_in(sim, err, reply);
}

typedef struct seat {
    const char *type;
    bool is_here;
} seat;

static void
seat_look(void *arg, const trpi_sharding_status *status)
{
    seat *s = arg;
    s->is_here = s->is_here || (strcmp(status->type, s->type) == 0 && status->coordinates);
}

static bool
coordinates(trp_sim *sim, uint32_t node, uint32_t role)
{
    seat s = { names[role], false };
    trpi_sharding_each(trp_sim_system(sim, node), seat_look, &s);
    return s.is_here;
}

/* ---- programs -------------------------------------------------------------------------------- */

static void
entities_live_in_their_role(trp_sim *sim, void *arg)
{
    uint32_t hosted[NODES] = { 0 };
    (void)arg;
    for (uint32_t r = 0; r < ROLES; r++) {
        for (uint32_t e = 0; e < ENTITIES; e++) {
            uint32_t home = entity_home(sim, e % NODES, r, e);
            TRP_SIM_CHECK(sim, home < NODES && has_role(home, r));
            hosted[home < NODES ? home : 0]++;
            TRP_SIM_CHECK(sim, entity_home(sim, (e + 1) % NODES, r, e) == home);
        }
    }
    for (uint32_t i = 0; i < LATE; i++) {
        TRP_SIM_CHECK(sim, hosted[i] > 0);
    }
    for (uint32_t r = 0; r < ROLES; r++) { /* the coordinator is on the oldest of the role */
        uint32_t oldest = singleton_host(sim, LATE, r);
        for (uint32_t i = 0; i < NODES; i++) {
            TRP_SIM_CHECK(sim, coordinates(sim, i, r) == (i == oldest));
        }
    }
    trp_sim_leave(sim, 2);
    play_await_gone(sim, 2, 30000);
    for (uint32_t e = 0; e < ENTITIES; e++) { /* to the other one of its role, and no further */
        TRP_SIM_CHECK(sim, entity_home(sim, e % 2, 1, e) == 3);
        uint32_t home = entity_home(sim, LATE, 0, e);
        TRP_SIM_CHECK(sim, home == 0 || home == 1);
    }
}

static void
each_role_has_a_singleton(trp_sim *sim, void *arg)
{
    (void)arg;
    for (uint32_t r = 0; r < ROLES; r++) {
        uint32_t host = singleton_host(sim, 0, r);
        TRP_SIM_CHECK(sim, host < NODES && has_role(host, r));
        for (uint32_t i = 1; i < NODES; i++) {
            TRP_SIM_CHECK(sim, singleton_host(sim, i, r) == host);
        }
    }
    uint32_t north = singleton_host(sim, LATE, 0), south = singleton_host(sim, LATE, 1);
    trp_sim_leave(sim, north);
    play_await_gone(sim, north, 30000);
    TRP_SIM_CHECK(sim, singleton_host(sim, LATE, 0) == 1 - north);
    TRP_SIM_CHECK(sim, singleton_host(sim, LATE, 1) == south);
    TRP_SIM_CHECK(sim, singletons_started[0] == 2 && singletons_started[1] == 1);
}

static void
registers_while_the_oldest_leaves(trp_sim *sim, void *arg)
{
    const uint32_t *behind_ms = arg;
    bool hosts = false;
    for (uint32_t e = 0; e < ENTITIES; e++) {
        TRP_SIM_CHECK(sim, entity_home(sim, e % LATE, 0, e) < LATE);
    }
    trp_sim_leave(sim, 0);
    trp_sim_pass(sim, *behind_ms);
    types_start(sim, LATE);
    for (uint32_t e = 0; e < ENTITIES; e++) { /* also while it leaves */
        TRP_SIM_CHECK(sim, entity_home(sim, LATE, 0, e) < NODES);
    }
    play_await_gone(sim, 0, 30000);
    trp_sim_pass(sim, 10000);
    for (uint32_t e = 0; e < ENTITIES; e++) {
        uint32_t home = entity_home(sim, LATE, 0, e);
        TRP_SIM_CHECK(sim, home > 0 && home < NODES);
        hosts = hosts || home == LATE;
    }
    TRP_SIM_CHECK(sim, hosts);
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* ROLES-03, FUTURE-02; ClusterShardingRolePartitioningSpec, ClusterShardCoordinatorRoleSpec,
 * MultiDcClusterShardingSpec */
static void
entities_of_a_role_live_on_its_nodes_and_answer_everywhere(void)
{
    trp_sim_options options = options_of(false);
    play(entities_live_in_their_role, NULL, &options);
}

/* ROLES-05; MultiDcSingletonManagerSpec */
static void
each_role_has_a_singleton_of_its_own_that_all_reach(void)
{
    trp_sim_options options = options_of(false);
    play(each_role_has_a_singleton, NULL, &options);
}

/* FUTURE-09; ClusterShardingRegistrationCoordinatedShutdownSpec */
static void
a_node_that_registers_while_the_oldest_leaves_finds_the_next(void)
{
    static const uint32_t behind_ms[] = { 0, 50, 200, 700, 1500 };
    for (size_t i = 0; i < sizeof behind_ms / sizeof behind_ms[0]; i++) {
        uint32_t ms = behind_ms[i];
        trp_sim_options options = options_of(true);
        options.seed = 1 + i;
        play(registers_while_the_oldest_leaves, &ms, &options);
    }
}

UNIT_BEGIN("roles")
UNIT(entities_of_a_role_live_on_its_nodes_and_answer_everywhere)
UNIT(each_role_has_a_singleton_of_its_own_that_all_reach)
UNIT(a_node_that_registers_while_the_oldest_leaves_finds_the_next)
UNIT_END
