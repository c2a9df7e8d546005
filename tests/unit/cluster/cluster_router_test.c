/* cluster_router_test.c - cluster-aware routers on real systems over loopback, each a node of one
 * cluster (CROUTE). */
#include <stdatomic.h>
#include <stdlib.h>

#include <troupe/config.h>
#include <troupe/router.h>

#include "base/alloc.h"
#include "cluster/cluster.h"
#include "tests/unit/unit.h"

enum { HOSTS = 3 };

static struct host {
    trp_system *system;
    trpi_remote *remote;
    trpi_cluster *cluster;
    char address[TRPI_ADDRESS_TEXT_BYTES];
    _Atomic uint32_t heard, started, stopped;
} hosts[HOSTS];

static pthread_mutex_t lines_lock = PTHREAD_MUTEX_INITIALIZER;
static char lines[65536];

static void
log_line(void *arg, const trp_log_line *line)
{
    (void)arg;
    pthread_mutex_lock(&lines_lock);
    size_t used = strlen(lines);
    if (getenv("UNIT_LOG") != NULL) {
        fprintf(stderr, "%s: %s\n", line->source, line->text);
    }
    (void)snprintf(lines + used, sizeof lines - used, "%s: %s\n", line->source, line->text);
    pthread_mutex_unlock(&lines_lock);
}

static bool
was_logged(const char *text)
{
    pthread_mutex_lock(&lines_lock);
    bool found = strstr(lines, text) != NULL;
    pthread_mutex_unlock(&lines_lock);
    return found;
}

/* ---- workers: they count, and answer with the number of their host --------------------------- */

static struct host *
host_of(trp_ctx *ctx)
{
    int i = 0;
    while (i < HOSTS - 1 && hosts[i].system != trp_ctx_system(ctx)) {
        i++;
    }
    return &hosts[i];
}

static trp_err
worker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct host *host = host_of(ctx);
    int64_t number = host - hosts;
    (void)state;
    if (trp_msg_bytes(msg) == 4) {
        trp_fail(ctx, 1, "told to fail");
    }
    atomic_fetch_add(&host->heard, trp_msg_bytes(msg) == 1 ? 1 : 0); /* "x", not "who" */
    trp_reply(ctx, &trp_i64_type, &number, sizeof number);
    return TRP_OK;
}
static trp_err
work_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state;
    (void)args;
    atomic_fetch_add(&host_of(ctx)->started, 1);
    return TRP_OK;
}
static void
work_stop(trp_ctx *ctx, void *state)
{
    (void)state;
    atomic_fetch_add(&host_of(ctx)->stopped, 1);
}
static const trp_behaviour worker = { .size = sizeof(trp_behaviour),
                                      .name = "worker",
                                      .version = 1,
                                      .receive = worker_receive,
                                      .pre_start = work_start,
                                      .post_stop = work_stop };

/* ---- hosts ----------------------------------------------------------------------------------- */

/* Each has the role all, and one of its own: r0, r1, r2. */
static void
host_start(int i, const char *config_text)
{
    static char role[HOSTS][4];
    const char *roles[] = { "all", role[i] }, *seed = "self";
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    /* patient: a machine that stands still for seconds breaks no link, and loses no message */
    trpi_remote_options remote = { .driver = getenv("TROUPE_REMOTE_DRIVER"),
                                   .bind_port = -1,
                                   .link_pause_ms = 60000 };
    trpi_cluster_options cluster = { .quiet = true, .roles = roles, .roles_count = 2 };
    trp_config *config = NULL;
    trp_config_error error = { "" };
    struct host *h = &hosts[i];
    memset(h, 0, sizeof *h);
    UNIT_EQUAL(trp_config_parse_text("t.conf", config_text, &config, &error), TRP_OK);
    UNIT_TEXT(error.text, "");
    options.workers = 1;
    options.log = log_line;
    options.config = config;
    UNIT_REQUIRE(trp_system_new("test", &options, &h->system) == TRP_OK);
    trp_config_unref(config);
    UNIT_REQUIRE(trpi_remote_start(h->system, &remote, &h->remote) == TRP_OK);
    (void)trpi_address_format(trpi_remote_address(h->remote), h->address, sizeof h->address);
    UNIT_EQUAL(trp_behaviour_register(h->system, &worker), TRP_OK);
    (void)snprintf(role[i], sizeof role[i], "r%d", i);
    cluster.seed_nodes = i == 0 ? &seed : (const char *[]){ hosts[0].address };
    cluster.seed_nodes_count = 1;
    cluster.member.gossip_interval_ms = 20;
    cluster.member.leader_actions_interval_ms = 20;
    UNIT_REQUIRE(trpi_cluster_start(h->system, h->remote, &cluster, &h->cluster) == TRP_OK);
}

static void
host_end(int i)
{
    struct host *h = &hosts[i];
    if (h->system == NULL) {
        return;
    }
    trpi_cluster_stop(h->cluster);
    UNIT_EQUAL(trp_system_stop(h->system, 60000), TRP_OK);
    trpi_remote_stop(h->remote);
    trpi_cluster_free(h->cluster);
    trp_system_free(h->system);
    h->system = NULL;
}

static void
hosts_end(void)
{
    for (int i = HOSTS; i-- > 0;) {
        host_end(i);
    }
}

static size_t
is_up(int i)
{
    trp_member members[8];
    size_t count = 0, found = 0;
    UNIT_EQUAL(trp_cluster_members(hosts[i].system, members, 8, &count), TRP_OK);
    for (size_t m = 0; m < count && m < 8; m++) {
        found += members[m].status == TRP_MEMBER_UP ? 1 : 0;
    }
    return found;
}

static void
hosts_start(int count, const char *config_text)
{
    memset(hosts, 0, sizeof hosts);
    pthread_mutex_lock(&lines_lock);
    lines[0] = '\0';
    pthread_mutex_unlock(&lines_lock);
    for (int i = 0; i < count; i++) {
        host_start(i, i == 0 ? config_text : "");
    }
    for (int i = 0; i < count; i++) {
        UNIT_WAIT(is_up(i) == (size_t)count, 60000);
    }
}

/* ---- routers of host 0 ----------------------------------------------------------------------- */

static trp_err
router_make(const char *name, const char *logic, const trp_cluster_routees *cluster, trp_ref *ret)
{
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    options.logic = logic;
    options.cluster = cluster;
    return trp_system_router_spawn(hosts[0].system,
                                   cluster == NULL || cluster->path == NULL ? &worker : NULL, NULL,
                                   name, &options, ret);
}

static trp_ref
make_router(const char *name, const char *logic, const trp_cluster_routees *cluster)
{
    trp_ref ref = TRP_REF_NONE;
    UNIT_REQUIRE(router_make(name, logic, cluster, &ref) == TRP_OK);
    return ref;
}

static uint32_t
routees_count(trp_ref of)
{
    trp_ref refs[64];
    uint32_t count = 0;
    UNIT_EQUAL(trp_router_routees(hosts[0].system, of, refs, 64, &count), TRP_OK);
    return count;
}

static int64_t
ask_router(trp_ref ref)
{
    trp_msg *reply = NULL;
    int64_t host = -1;
    if (trp_system_ask(hosts[0].system, ref, &trp_string_type, "who", 3, 60000, &reply) == TRP_OK) {
        memcpy(&host, trp_msg_payload(reply), sizeof host);
        trp_msg_free(reply);
    }
    return host;
}

static trp_ref
spawn_worker(int i)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;
    options.name = "worker";
    UNIT_EQUAL(trp_system_spawn(hosts[i].system, &worker, &options, &ref), TRP_OK);
    return ref;
}

/* Everybody hears it once for each routee it has. */
static void
check_broadcast(trp_ref of, uint32_t first, uint32_t second)
{
    atomic_store(&hosts[0].heard, 0);
    atomic_store(&hosts[1].heard, 0);
    trp_system_router_broadcast(hosts[0].system, of, (trp_ref)TRP_REF_NONE, &trp_string_type, "x",
                                1);
    UNIT_WAIT(atomic_load(&hosts[0].heard) == first && atomic_load(&hosts[1].heard) == second,
              60000);
}

enum { KEYS = 40 };

/* A key for each message: a count that returns to the same keys. */
static int
key_of(void *arg, const trp_msg *msg, trp_hash_key *ret_key)
{
    static uint64_t key; /* one teller */
    (void)arg;
    (void)msg;
    key = (key + 1) % KEYS;
    *ret_key = (trp_hash_key){ &key, sizeof key };
    return 1;
}

/* One of a program's own: what it makes at its birth, the cluster makes instead. */
static trp_err
own_create(void *arg, trp_routee_provider *provider, void **ret_state)
{
    *ret_state = arg;
    trp_err err = trp_routees_create(provider, 3);
    return err == TRP_OK ? trp_routees_register(provider, NULL, 0) : err;
}
static void
own_route(void *state, trp_route *route, trp_ref sender, const trp_msg *msg)
{
    (void)state;
    (void)msg;
    uint32_t count = trp_route_count(route);
    if (count > 0) {
        trp_route_to(route, trp_route_routee(route, (uint32_t)trp_route_number(route) % count),
                     sender);
    }
}

/* Twelve asks: each node has as many of them. Twice all keys: each goes where it went before, and
 * both nodes have some. */
static void
check_turns_or_keys(trp_ref ref, const char *logic)
{
    int64_t at[2][KEYS], second = 0;
    if (strcmp(logic, "round-robin") == 0) {
        for (int n = 0; n < 12; n++) {
            second += ask_router(ref);
        }
        UNIT_EQUAL(second, 6);
    } else if (strcmp(logic, "consistent-hashing") == 0) {
        for (int n = 0; n < 2 * KEYS; n++) {
            at[n / KEYS][n % KEYS] = ask_router(ref);
        }
        for (int n = 0; n < KEYS; n++) {
            UNIT_EQUAL(at[0][n], at[1][n]);
            second += at[0][n];
        }
        UNIT_TRUE(second > 0 && second < KEYS);
    }
}

/* CROUTE-01, -03, -04, -11, -20, ClusterConsistentHashingRouterSpec, ClusterRoundRobinSpec */
static void
any_logic_routes_over_the_nodes(void)
{
    static const char *const logics[] = { "round-robin",       "random",         "smallest-mailbox",
                                          "broadcast",         "scatter-gather", "tail-chopping",
                                          "consistent-hashing" };
    static const trp_routing_logic own = { sizeof own, "own", own_create, own_route,
                                           NULL,       NULL,  NULL };
    enum { LOGICS = sizeof logics / sizeof logics[0] };
    hosts_start(2, "");
    (void)spawn_worker(0);
    (void)spawn_worker(1);
    for (int group = 0; group < 2; group++) {
        for (size_t i = 0; i <= LOGICS; i++) {
            trp_cluster_routees cluster = TRP_CLUSTER_ROUTEES_INIT;
            trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
            trp_ref ref = TRP_REF_NONE;
            cluster.path = group ? "/user/worker" : NULL;
            cluster.per_node = group ? 1 : 2;
            options.cluster = &cluster;
            options.logic = i < LOGICS ? logics[i] : NULL;
            options.custom = i < LOGICS ? NULL : &own;
            options.hash_mapping = key_of;
            UNIT_REQUIRE(trp_system_router_spawn(hosts[0].system, &worker, NULL, NULL, &options,
                                                 &ref) == TRP_OK);
            UNIT_WAIT(routees_count(ref) == 2 * cluster.per_node, 60000);
            check_broadcast(ref, cluster.per_node, cluster.per_node);
            for (int n = 0; n < 12; n++) {
                UNIT_TRUE(ask_router(ref) >= 0);
            }
            check_turns_or_keys(ref, i < LOGICS ? logics[i] : "");
            trp_system_stop_actor(hosts[0].system, ref);
        }
    }
    UNIT_WAIT(atomic_load(&hosts[1].started) - atomic_load(&hosts[1].stopped) == 1, 60000);
    hosts_end(); /* the pools' children on the other node ended with them */
}

/* CROUTE-02, -06, -08, -09, -10, -14, ClusterRoundRobinSpec: a router without routees waits for
 * some; what ends, or cannot be made yet, is tried again */
static void
routees_come_with_their_nodes(void)
{
    static const trp_behaviour late = {
        .size = sizeof late, .name = "late", .version = 1, .receive = worker_receive
    };
    trp_cluster_routees makes = TRP_CLUSTER_ROUTEES_INIT, finds = TRP_CLUSTER_ROUTEES_INIT;
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_adjust_pool_size more = { 5 };
    trp_ref refused = TRP_REF_NONE, refs[8];
    uint32_t count = 0;
    hosts_start(1, "");
    makes.role = "r1";
    makes.per_node = 3;
    makes.total = 2;
    finds.path = "/user/worker";
    finds.local = 0;
    trp_ref pool = make_router("pool", NULL, &makes);
    trp_ref group = make_router("group", NULL, &finds);
    makes.local = 0;
    makes.role = NULL;
    options.cluster = &makes;
    UNIT_EQUAL(trp_system_router_spawn(hosts[0].system, &late, NULL, "late", &options, &refused),
               TRP_OK);
    UNIT_EQUAL(routees_count(pool) + routees_count(group) + routees_count(refused), 0);
    host_start(1, "");
    trp_ref far = spawn_worker(1);
    UNIT_WAIT(routees_count(pool) == 2 && routees_count(group) == 1, 60000);
    UNIT_EQUAL(ask_router(pool), 1);
    UNIT_EQUAL(ask_router(group), 1);
    UNIT_WAIT(was_logged("no behaviour"), 60000); /* the node does not know it yet */
    UNIT_EQUAL(trp_behaviour_register(hosts[1].system, &late), TRP_OK);
    trp_system_stop_actor(hosts[1].system, far);
    UNIT_WAIT(routees_count(group) == 0, 60000);
    (void)spawn_worker(1);
    trp_system_tell(hosts[0].system, pool, &trp_adjust_pool_size_type, &more, sizeof more);
    UNIT_WAIT(was_logged("not adjusted"), 60000);
    UNIT_EQUAL(routees_count(pool), 2);
    UNIT_EQUAL(trp_router_routees(hosts[0].system, pool, refs, 8, &count), TRP_OK);
    trp_remove_routee one = { refs[0] }; /* another actor takes one out: it is replaced */
    trp_system_tell(hosts[0].system, pool, &trp_remove_routee_type, &one, sizeof one);
    UNIT_WAIT(routees_count(group) == 1 && routees_count(refused) == 2 &&
                  atomic_load(&hosts[1].started) >= 5,
              60000);
    UNIT_WAIT(routees_count(pool) == 2, 60000);
    UNIT_EQUAL(ask_router(group), 1);
    UNIT_EQUAL(ask_router(refused), 1);
    trp_system_tell(hosts[0].system, refused, &trp_string_type, "fail", 4);
    UNIT_WAIT(was_logged("told to fail"), 60000); /* the router is restarted, and goes on */
    host_start(2, ""); /* after downing they are made anew where there is room */
    UNIT_EQUAL(trp_behaviour_register(hosts[2].system, &late), TRP_OK);
    UNIT_WAIT(is_up(0) == 3, 60000);
    UNIT_EQUAL(trp_cluster_down(hosts[0].system, hosts[1].address), TRP_OK);
    UNIT_WAIT(routees_count(refused) == 2 && ask_router(refused) == 2 && routees_count(pool) == 0,
              60000);
    hosts_end();
}

/* ---- leaving --------------------------------------------------------------------------------- */

static _Atomic int gate;
static trp_err
hold_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    while (atomic_load(&gate) == 0) {
        unit_pause();
    }
    return worker_receive(ctx, state, msg);
}
static const trp_behaviour holder = {
    .size = sizeof(trp_behaviour), .name = "holder", .version = 1, .receive = hold_receive
};

static trp_err
count_replies(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &trp_i64_type)) {
        atomic_fetch_add(&host_of(ctx)->heard, 1);
    }
    return TRP_OK;
}
static const trp_behaviour counter = {
    .size = sizeof(trp_behaviour), .name = "counter", .version = 1, .receive = count_replies
};

/* CROUTE-02: a leaving routee is taken out at once, and still handles what it was told before */
static void
routees_of_a_leaving_node_go_first_and_finish_what_they_have(void)
{
    trp_cluster_routees makes = TRP_CLUSTER_ROUTEES_INIT;
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_ref pool = TRP_REF_NONE, sender = TRP_REF_NONE;
    enum { JOBS = 200 };
    atomic_store(&gate, 0);
    hosts_start(2, "");
    UNIT_EQUAL(trp_behaviour_register(hosts[1].system, &holder), TRP_OK);
    makes.local = 0;
    options.cluster = &makes;
    UNIT_EQUAL(trp_system_spawn(hosts[0].system, &counter, NULL, &sender), TRP_OK);
    UNIT_EQUAL(trp_system_router_spawn(hosts[0].system, &holder, NULL, "pool", &options, &pool),
               TRP_OK);
    UNIT_WAIT(routees_count(pool) == 1, 60000);
    for (int i = 0; i < JOBS; i++) {
        trp_system_tell_as(hosts[0].system, pool, sender, &trp_string_type, "x", 1);
    }
    UNIT_EQUAL(trp_cluster_leave(hosts[1].system, NULL), TRP_OK);
    UNIT_WAIT(routees_count(pool) == 0, 60000);
    UNIT_EQUAL(atomic_load(&hosts[0].heard), 0);
    atomic_store(&gate, 1);
    UNIT_WAIT(atomic_load(&hosts[0].heard) == JOBS, 60000);
    hosts_end();
}

/* ---- hashing --------------------------------------------------------------------------------- */

/* CROUTE-16, CROUTE-03: ClusterConsistentHashingGroupSpec: a key leads to the same actor from every
 * node */
static void
a_key_leads_to_the_same_actor_from_every_node(void)
{
    trp_cluster_routees finds = TRP_CLUSTER_ROUTEES_INIT;
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_ref routers[HOSTS], refs[8];
    uint32_t count = 0, at[HOSTS] = { 0 };
    hosts_start(HOSTS, "");
    finds.path = "/user/worker";
    options.logic = "consistent-hashing";
    options.cluster = &finds;
    for (int i = 0; i < HOSTS; i++) {
        (void)spawn_worker(i);
        UNIT_EQUAL(
            trp_system_router_spawn(hosts[i].system, NULL, NULL, "group", &options, &routers[i]),
            TRP_OK);
    }
    for (int i = 0; i < HOSTS; i++) {
        UNIT_WAIT(trp_router_routees(hosts[i].system, routers[i], refs, 8, &count) == TRP_OK &&
                      count == HOSTS,
                  60000);
    }
    for (uint32_t key = 0; key < 60; key++) {
        uint32_t before[HOSTS], hit = 0;
        for (int i = 0; i < HOSTS; i++) {
            before[i] = atomic_load(&hosts[i].heard);
        }
        for (int i = 0; i < HOSTS; i++) {
            trp_system_router_tell_keyed(hosts[i].system, routers[i], (trp_ref)TRP_REF_NONE, &key,
                                         sizeof key, &trp_string_type, "x", 1);
        }
        UNIT_WAIT(atomic_load(&hosts[0].heard) + atomic_load(&hosts[1].heard) +
                          atomic_load(&hosts[2].heard) ==
                      HOSTS * (key + 1),
                  60000);
        for (uint32_t i = 0; i < HOSTS; i++) {
            uint32_t heard = atomic_load(&hosts[i].heard) - before[i];
            hit += heard == HOSTS ? 1 : 0;
            at[i] += heard;
        }
        UNIT_EQUAL(hit, 1);
    }
    UNIT_TRUE(at[0] > 0 && at[1] > 0 && at[2] > 0);
    hosts_end();
}

/* ---- settings -------------------------------------------------------------------------------- */

/* CROUTE-05, -07, -13, -15, ROUTE-26, CONF-9; CONF-23: the section of its path decides, and what
 * contradicts itself makes no router */
static void
the_configuration_decides_and_contradictions_are_refused(void)
{
    static const struct {
        const char *name, *why;
    } wrong[] = {
        { "both", "both say how many routees there are in all" },
        { "many", "max-nr-of-instances-per-node 2 with cluster.routees-path" },
        { "paths", "cannot have routees.paths" },
        { "nodes", "cannot have target.nodes" },
        { "moved", "remote: a router stays where it is made" },
        { "grows", "cannot have a resizer" },
        { "shared", "cannot have balancing" },
        { "where", "\"worker\" is no path on any node" },
        { "pattern", "\"/user/*\" is no path on any node" },
        { "silent", "cluster.enabled is not" },
    };
    trp_cluster_routees coded = TRP_CLUSTER_ROUTEES_INIT;
    trp_ref ref = TRP_REF_NONE;
    hosts_start(
        1,
        "deployment \"/pool\" { router = round-robin-pool  nr-of-instances = 3\n"
        "  cluster { enabled = on  max-nr-of-instances-per-node = 5 } }\n"
        "deployment \"/total\" { cluster { enabled = Yes  max-nr-of-instances-per-node = 9\n"
        "  max-total-nr-of-instances = 4 } }\n"
        "deployment \"/group\" { router = broadcast-group\n"
        "  cluster { enabled = on  routees-path = /user/worker  use-role = r0 } }\n"
        "deployment \"/remote\" { cluster { enabled = on  allow-local-routees = off } }\n"
        "deployment \"/elsewhere\" { cluster { enabled = on  use-role = r7 } }\n"
        "deployment \"/plain\" { router = random  nr-of-instances = 2  cluster { enabled = off } "
        "}\n"
        "deployment \"/more\" { cluster { max-nr-of-instances-per-node = 3 } }\n"
        "deployment \"/both\" { nr-of-instances = 3\n"
        "  cluster { enabled = on  max-total-nr-of-instances = 4 } }\n"
        "deployment \"/many\" { cluster { enabled = on  routees-path = /user/worker\n"
        "  max-nr-of-instances-per-node = 2 } }\n"
        "deployment \"/paths\" { cluster { enabled = on }  routees { paths = { /user/worker } } }\n"
        "deployment \"/nodes\" { cluster { enabled = on }\n"
        "  target { nodes = { \"troupe.tcp://test@a:1\" } } }\n"
        "deployment \"/moved\" { cluster { enabled = on }  remote = \"troupe.tcp://test@a:1\" }\n"
        "deployment \"/grows\" { cluster { enabled = on }  resizer { upper-bound = 3 } }\n"
        "deployment \"/shared\" { router = balancing-pool  cluster { enabled = on } }\n"
        "deployment \"/where\" { cluster { enabled = on  routees-path = worker } }\n"
        "deployment \"/pattern\" { cluster { enabled = on  routees-path = \"/user/*\" } }\n"
        "deployment \"/silent\" { cluster { use-role = r0 } }\n");
    (void)spawn_worker(0);
    trp_ref pool = make_router("pool", NULL, NULL), total = make_router("total", NULL, NULL);
    trp_ref more = make_router("more", NULL, &coded);
    UNIT_WAIT(routees_count(pool) == 3 && routees_count(total) == 4, 60000);
    UNIT_WAIT(routees_count(more) == 3, 60000); /* the rest is as in the code */
    UNIT_EQUAL(routees_count(make_router("remote", NULL, NULL)), 0);
    UNIT_EQUAL(routees_count(make_router("elsewhere", NULL, NULL)), 0);
    UNIT_EQUAL(routees_count(make_router("plain", NULL, &coded)), 2); /* switched off */
    trp_ref group = make_router("group", NULL, NULL);
    UNIT_WAIT(routees_count(group) == 1, 60000);
    UNIT_EQUAL(ask_router(group), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        UNIT_EQUAL(router_make(wrong[i].name, NULL, NULL, &ref), TRP_ECONFIG);
        UNIT_WAIT(was_logged(wrong[i].why), 60000);
    }
    hosts_end();
}

/* CROUTE-11, -13 */
static void
settings_of_code_are_checked(void)
{
    static const trp_resizer_options resizer = TRP_RESIZER_OPTIONS_INIT;
    trp_cluster_routees good = TRP_CLUSTER_ROUTEES_INIT, bad[5] = { good, good, good, good, good };
    trp_spawn_options placed = TRP_SPAWN_OPTIONS_INIT;
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;
    char role[80];
    memset(role, 'r', sizeof role);
    role[64] = '\0';
    bad[0].total = 0;
    bad[1].per_node = 0;
    bad[2].size = 8;
    bad[3].path = "troupe.tcp://test@a:1/user/worker";
    bad[4].role = role;
    hosts_start(1, "");
    for (int i = 0; i < 5; i++) {
        UNIT_EQUAL(router_make("bad", NULL, &bad[i], &ref), TRP_EINVAL);
    }
    role[63] = '\0'; /* as long as a role can be */
    UNIT_EQUAL(router_make("role", NULL, &bad[4], &ref), TRP_OK);
    bad[0].total = TRP_ROUTEES_MAX;
    UNIT_EQUAL(router_make("most", NULL, &bad[0], &ref), TRP_OK);
    bad[0].total++;
    UNIT_EQUAL(router_make("more", NULL, &bad[0], &ref), TRP_ELIMIT);
    options.cluster = &good;
    UNIT_EQUAL(trp_system_router_spawn(hosts[0].system, NULL, NULL, "bare", &options, &ref),
               TRP_EINVAL);
    placed.node = TRP_NODE_HERE;
    UNIT_EQUAL(trp_system_router_spawn(hosts[0].system, &worker, &placed, "x", &options, &ref),
               TRP_EINVAL);
    options.resizer = &resizer;
    UNIT_EQUAL(trp_system_router_spawn(hosts[0].system, &worker, NULL, "x", &options, &ref),
               TRP_EINVAL);
    hosts_end();

    trp_system *alone = NULL; /* no cluster node */
    trp_system_options system_options = TRP_SYSTEM_OPTIONS_INIT;
    options.resizer = NULL;
    system_options.workers = 1;
    system_options.log = log_line;
    UNIT_REQUIRE(trp_system_new("alone", &system_options, &alone) == TRP_OK);
    UNIT_EQUAL(trp_system_router_spawn(alone, &worker, NULL, "x", &options, &ref), TRP_ESTATE);
    UNIT_WAIT(was_logged("this system is no cluster node"), 60000);
    trp_system_free(alone);
}

UNIT_BEGIN("cluster_router")
UNIT(any_logic_routes_over_the_nodes)
UNIT(routees_come_with_their_nodes)
UNIT(routees_of_a_leaving_node_go_first_and_finish_what_they_have)
UNIT(a_key_leads_to_the_same_actor_from_every_node)
UNIT(the_configuration_decides_and_contradictions_are_refused)
UNIT(settings_of_code_are_checked)
UNIT_END
