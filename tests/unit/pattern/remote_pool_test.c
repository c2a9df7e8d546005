/* remote_pool_test.c - routers whose children live on several nodes, and groups of far paths, with
 * every logic. */
#include <troupe/router.h>

#include "tests/unit/remote/deploy.h"

static _Atomic uint32_t here, there, made, ended;

/* Says in which system it lives. */
static trp_err
where_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const char *name = trp_system_name(trp_ctx_system(ctx));
    (void)state;
    if (trp_msg_bytes(msg) == 4) {
        trp_fail(ctx, 1, "fail");
    }
    atomic_fetch_add(strcmp(name, "left") == 0 ? &here : &there, 1);
    trp_reply_text(ctx, name);
    return TRP_OK;
}
static trp_err
where_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    (void)state;
    (void)args;
    atomic_fetch_add(&made, 1);
    return TRP_OK;
}
static void
where_stop(trp_ctx *ctx, void *state)
{
    (void)ctx;
    (void)state;
    atomic_fetch_add(&ended, 1);
}
static const trp_behaviour where = { .size = sizeof(trp_behaviour),
                                     .name = "where",
                                     .version = 1,
                                     .receive = where_receive,
                                     .pre_start = where_start,
                                     .post_stop = where_stop };

static void
pair_open(void)
{
    atomic_store(&here, 0);
    atomic_store(&there, 0);
    atomic_store(&ended, 0);
    deploy_start(NULL);
    UNIT_EQUAL(trp_behaviour_register(d.pair.system[1], &where), TRP_OK);
}

static trp_err
name_ask(trp_ref router, char *ret_name, size_t bytes)
{
    trp_msg *reply = NULL;
    trp_err err =
        trp_system_ask(d.pair.system[0], router, &trp_string_type, "who", 3, 60000, &reply);
    ret_name[0] = '\0';
    if (err == TRP_OK) {
        (void)snprintf(ret_name, bytes, "%.*s", (int)trp_msg_bytes(reply),
                       (const char *)trp_msg_payload(reply));
        trp_msg_free(reply);
    }
    return err;
}

/* A key for each message. */
static int
key_of(void *arg, const trp_msg *msg, trp_hash_key *ret_key)
{
    static uint64_t next; /* one teller */
    (void)arg;
    (void)msg;
    next++;
    *ret_key = (trp_hash_key){ &next, sizeof next };
    return 1;
}

static const char *const logics[] = { "round-robin",       "random",         "smallest-mailbox",
                                      "broadcast",         "scatter-gather", "tail-chopping",
                                      "consistent-hashing" };
enum { LOGICS = sizeof logics / sizeof logics[0], ASKS = 40 };

/* ROUTE-6 REMOTE-21, REMOTE-70, RemoteRandomSpec, RemoteRoundRobinSpec, RemoteScatterGatherSpec:
 * two nodes in turn, ours being one of them. */
static void
children_are_made_on_nodes_in_turn_whatever_the_logic(void)
{
    char name[16];
    pair_open();
    const char *const nodes[] = { d.pair.address[1], d.pair.address[0], NULL };
    for (size_t i = 0; i < LOGICS; i++) {
        trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
        trp_ref router, refs[8];
        uint32_t count = 0;
        options.logic = logics[i];
        options.instances = 4;
        options.target_nodes = nodes;
        options.hash_mapping = key_of;
        atomic_store(&here, 0);
        atomic_store(&there, 0);
        atomic_store(&made, 0);
        atomic_store(&ended, 0);
        UNIT_REQUIRE(trp_system_router_spawn(d.pair.system[0], &where, NULL, logics[i], &options,
                                             &router) == TRP_OK);
        UNIT_EQUAL(trp_router_routees(d.pair.system[0], router, refs, 8, &count), TRP_OK);
        UNIT_EQUAL(count, 4);
        for (int n = 0; n < ASKS; n++) {
            UNIT_EQUAL(name_ask(router, name, sizeof name), TRP_OK);
        }
        if (strcmp(logics[i], "round-robin") == 0) {
            UNIT_EQUAL(atomic_load(&here), ASKS / 2);
            UNIT_EQUAL(atomic_load(&there), ASKS / 2);
        } else if (strcmp(logics[i], "smallest-mailbox") == 0) {
            UNIT_EQUAL(atomic_load(&there), 0); /* REMOTE-70: an idle local routee comes first */
        } else if (strcmp(logics[i], "tail-chopping") !=
                   0) { /* which asks far ones when it is slow */
            UNIT_WAIT(atomic_load(&here) > 0 && atomic_load(&there) > 0, 60000);
        }
        UNIT_WAIT(atomic_load(&made) == 4, 60000); /* also those that nobody has told anything */
        trp_system_stop_actor(d.pair.system[0], router);
        UNIT_WAIT(atomic_load(&ended) == 4, 60000); /* on both nodes */
    }
    deploy_end();
}

/* REMOTE-21, RemoteRoundRobinSpec: The same for groups: half of the paths are far. */
static void
groups_find_far_paths_whatever_the_logic(void)
{
    char name[16], far[2][TRP_PATH_BYTES_MAX];
    pair_open();
    for (int i = 0; i < 2; i++) {
        for (int side = 0; side < 2; side++) {
            (void)pair_spawn(d.pair.system[side], &where, i == 0 ? "one" : "two", NULL, NULL, 0);
        }
        pair_path(&d.pair, 1, i == 0 ? "/user/one" : "/user/two", far[i], sizeof far[i]);
    }
    const char *const paths[] = { "/user/one", far[0], "/user/two", far[1], NULL };
    for (size_t i = 0; i < LOGICS; i++) {
        trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
        trp_ref router, refs[8];
        uint32_t count = 0;
        options.logic = logics[i];
        options.routee_paths = paths;
        options.hash_mapping = key_of;
        UNIT_REQUIRE(trp_system_router_spawn(d.pair.system[0], NULL, NULL, logics[i], &options,
                                             &router) == TRP_OK);
        UNIT_WAIT(trp_router_routees(d.pair.system[0], router, refs, 8, &count) == TRP_OK &&
                      count == 4,
                  60000);
        atomic_store(&here, 0);
        atomic_store(&there, 0);
        for (int n = 0; n < ASKS; n++) {
            UNIT_EQUAL(name_ask(router, name, sizeof name), TRP_OK);
        }
        if (strcmp(logics[i], "round-robin") == 0) {
            UNIT_EQUAL(atomic_load(&here), ASKS / 2);
            UNIT_EQUAL(atomic_load(&there), ASKS / 2);
        } else if (strcmp(logics[i], "smallest-mailbox") == 0) {
            UNIT_EQUAL(atomic_load(&there), 0);
        } else if (strcmp(logics[i], "tail-chopping") != 0) {
            UNIT_WAIT(atomic_load(&here) > 0 && atomic_load(&there) > 0, 60000);
        }
    }
    deploy_end();
}

/* CONF-9, ROUTE-6, RemoteRoundRobinSpec: by configuration, over a router of code; children that are
 * asked for later, too. */
static void
the_configuration_says_on_which_nodes(void)
{
    char name[16];
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_adjust_pool_size more = { 2 };
    trp_ref router, refs[8];
    uint32_t count = 0;
    (void)snprintf(deploy_text, sizeof deploy_text,
                   DEPLOY_TEXT
                   "deployment \"/pool\" { router = broadcast  nr-of-instances = 2\n"
                   "    target { nodes = { \"troupe.mem://right@right:1025\" } } }\n"
                   "deployment \"/coded\" { target { nodes = { \"troupe.mem://right@right:1025\", "
                   "\"troupe.mem://left@left:1024\" } } }\n"
                   "deployment \"/moved\" { remote = \"troupe.mem://right@right:1025\" }\n");
    pair_open();
    UNIT_EQUAL(trp_system_router_spawn(d.pair.system[0], &where, NULL, "pool", &options, &router),
               TRP_OK);
    UNIT_EQUAL(name_ask(router, name, sizeof name), TRP_OK);
    UNIT_TEXT(name, "right");
    UNIT_WAIT(atomic_load(&there) == 2, 60000);
    trp_system_tell(d.pair.system[0], router, &trp_adjust_pool_size_type, &more, sizeof more);
    UNIT_WAIT(trp_router_routees(d.pair.system[0], router, refs, 8, &count) == TRP_OK && count == 4,
              60000);
    UNIT_EQUAL(name_ask(router, name, sizeof name), TRP_OK);
    UNIT_WAIT(atomic_load(&there) == 6, 60000);
    UNIT_EQUAL(atomic_load(&here), 0);
    options.instances = 2; /* the code says how many and how, the section where */
    UNIT_EQUAL(trp_system_router_spawn(d.pair.system[0], &where, NULL, "coded", &options, &router),
               TRP_OK);
    UNIT_EQUAL(name_ask(router, name, sizeof name), TRP_OK);
    UNIT_TEXT(name, "right");
    UNIT_EQUAL(name_ask(router, name, sizeof name), TRP_OK);
    UNIT_TEXT(name, "left");
    UNIT_EQUAL(trp_system_router_spawn(d.pair.system[0], &where, NULL, "moved", &options, &router),
               TRP_ECONFIG);
    UNIT_WAIT(pair_logged("remote: a router stays where it is made"), 60000);
    deploy_end();
}

/* At each message, from two on: one more, until there are four. */
static int
grow_is_time(void *arg, uint64_t number)
{
    (void)arg;
    (void)number;
    return 1;
}
static int32_t
grow_capacity(void *arg, const trp_routee_load *routees, uint32_t count)
{
    (void)arg;
    (void)routees;
    return count == 0 ? 2 : count < 4 ? 1 : 0;
}

/* RemoteRoundRobinSpec: what a resizer adds is made on the nodes in turn as well. */
static void
a_resizer_makes_children_on_the_nodes_in_turn(void)
{
    char name[16];
    const trp_resizer grow = { sizeof grow, grow_is_time, grow_capacity, 0, 0, NULL };
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_ref router, refs[8];
    uint32_t count = 0;
    pair_open();
    const char *const nodes[] = { d.pair.address[1], d.pair.address[0], NULL };
    options.logic = "round-robin";
    options.own_resizer = &grow;
    options.target_nodes = nodes;
    UNIT_REQUIRE(trp_system_router_spawn(d.pair.system[0], &where, NULL, "grows", &options,
                                         &router) == TRP_OK);
    UNIT_EQUAL(trp_router_routees(d.pair.system[0], router, refs, 8, &count), TRP_OK);
    UNIT_EQUAL(count, 2);
    UNIT_WAIT(name_ask(router, name, sizeof name) == TRP_OK &&
                  trp_router_routees(d.pair.system[0], router, refs, 8, &count) == TRP_OK &&
                  count == 4,
              60000);
    atomic_store(&here, 0);
    atomic_store(&there, 0);
    for (int n = 0; n < ASKS; n++) {
        UNIT_EQUAL(name_ask(router, name, sizeof name), TRP_OK);
    }
    UNIT_EQUAL(atomic_load(&here), ASKS / 2);
    UNIT_EQUAL(atomic_load(&there), ASKS / 2);
    UNIT_EQUAL(trp_router_routees(d.pair.system[0], router, refs, 8, &count), TRP_OK);
    UNIT_EQUAL(count, 4);
    deploy_end();
}

/* ROUTE-16 ROUTE-18, ROUTE-6: a far child's failure is its router's; one that has ended leaves. */
static void
far_children_fail_and_leave_as_others_do(void)
{
    char name[16];
    trp_spawn_options child = TRP_SPAWN_OPTIONS_INIT;
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_ref router, refs[8], direct = TRP_REF_NONE;
    char path[TRP_PATH_BYTES_MAX];
    uint32_t count = 0;
    pair_open();
    child.node = d.pair.address[1]; /* all of them there */
    options.instances = 3;
    UNIT_EQUAL(trp_system_router_spawn(d.pair.system[0], &where, &child, "pool", &options, &router),
               TRP_OK);
    UNIT_EQUAL(name_ask(router, name, sizeof name), TRP_OK);
    UNIT_TEXT(name, "right");
    UNIT_EQUAL(trp_router_routees(d.pair.system[0], router, refs, 8, &count), TRP_OK);
    deploy_tell(refs[0], "fail"); /* escalated: the router is restarted, its children with it */
    UNIT_WAIT(pair_logged("failed: fail"), 60000);
    for (int i = 0; i < 6; i++) {
        UNIT_EQUAL(name_ask(router, name, sizeof name), TRP_OK);
    }
    trp_path(d.pair.system[0], refs[1], path, sizeof path);
    UNIT_EQUAL(trp_system_resolve(d.pair.system[0], path, 60000, &direct), TRP_OK);
    trp_system_stop_actor(d.pair.system[0], direct);
    UNIT_WAIT(trp_router_routees(d.pair.system[0], router, refs, 8, &count) == TRP_OK && count == 2,
              60000);
    for (int i = 0; i < 4; i++) {
        UNIT_EQUAL(name_ask(router, name, sizeof name), TRP_OK);
    }
    deploy_end();
}

static void
what_is_no_node_makes_no_router(void)
{
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_ref router;
    pair_open();
    const char *nodes[] = { "troupe.mem://right@right", NULL };
    options.target_nodes = nodes;
    UNIT_EQUAL(trp_system_router_spawn(d.pair.system[0], &where, NULL, "pool", &options, &router),
               TRP_EINVAL);
    UNIT_WAIT(pair_logged("is no node: write"), 60000);
    nodes[0] = d.pair.address[1];
    options.logic = "balancing";
    UNIT_EQUAL(trp_system_router_spawn(d.pair.system[0], &where, NULL, "pool", &options, &router),
               TRP_EINVAL);
    UNIT_WAIT(pair_logged("balancing routees share a mailbox"), 60000);
    options.logic = NULL;
    UNIT_EQUAL(trp_system_router_spawn(d.pair.system[0], &where, NULL, "pool", &options, &router),
               TRP_OK);
    deploy_end();
}

UNIT_BEGIN("remote_pool")
UNIT(children_are_made_on_nodes_in_turn_whatever_the_logic)
UNIT(groups_find_far_paths_whatever_the_logic)
UNIT(the_configuration_says_on_which_nodes)
UNIT(a_resizer_makes_children_on_the_nodes_in_turn)
UNIT(far_children_fail_and_leave_as_others_do)
UNIT(what_is_no_node_makes_no_router)
UNIT_END
