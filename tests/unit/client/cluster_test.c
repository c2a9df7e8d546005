/* cluster_test.c - clients of a cluster of three nodes, and over TLS. */
#include <stdatomic.h>

#include <troupe/client.h>
#include <troupe/cluster.h>
#include <troupe/node.h>

#include "cluster/client/receptionist.h"
#include "remote/client/stub.h"
#include "tests/unit/remote/pair.h"
#include "tests/unit/remote/pki.h"

enum { NODES = 3 };
static trp_node *nodes[NODES];
static trp_system *outside;
static trp_client *client;

static void
log_line(void *arg, const trp_log_line *line)
{
    (void)arg;
    pair_log_line(NULL, line);
}

static const char *role = "cluster.roles=any", *role_wanted = "cluster.pub-sub.role=";

static trp_node *
node_begin(const char *seed)
{
    char seeds[400];
    const char *settings[] = { "system=shop",
                               "remote.hostname=127.0.0.1",
                               "remote.port=0",
                               "remote.require-cookie=on",
                               "remote.secure-cookie=same",
                               "cluster.control-socket=off",
                               "cluster.client.receptionist.enabled=on",
                               "cluster.client.receptionist.number-of-contacts=3",
                               role,
                               role_wanted,
                               seeds,
                               NULL };
    trp_node_options options = TRP_NODE_OPTIONS_INIT;
    trp_node_error error = { "" };
    trp_node *node = NULL;
    (void)snprintf(seeds, sizeof seeds, "cluster.seed-nodes=%s", seed);
    options.settings = settings;
    options.environment_ignored = 1;
    options.log = log_line;
    trp_err err = trp_node_open(&options, &node, &error);
    if (err != TRP_OK) {
        printf("%s\n", error.text);
    }
    UNIT_REQUIRE(err == TRP_OK);
    return node;
}

static bool
all_are_up(void)
{
    for (int i = 0; i < NODES; i++) {
        trp_member members[8];
        size_t count = 0, up = 0;
        if (nodes[i] == NULL ||
            trp_cluster_members(trp_node_system(nodes[i]), members, 8, &count) != TRP_OK) {
            return false;
        }
        for (size_t k = 0; k < count && k < 8; k++) {
            up += members[k].status == TRP_MEMBER_UP;
        }
        if (up != NODES) {
            return false;
        }
    }
    return true;
}

static void
cluster_start(void)
{
    pair_log_clear();
    nodes[0] = node_begin("self");
    for (int i = 1; i < NODES; i++) {
        nodes[i] = node_begin(trp_node_address(nodes[0]));
    }
    UNIT_WAIT(all_are_up(), 60000);
}

static void
cluster_end(void)
{
    for (int i = 0; i < NODES; i++) {
        trp_node_close(nodes[i]);
        nodes[i] = NULL;
    }
}

/* Open a client with all nodes as contact points. */
static void
client_start(void)
{
    trp_client_options options = TRP_CLIENT_OPTIONS_INIT;
    const char *contacts[NODES];
    for (int i = 0; i < NODES; i++) {
        contacts[i] = trp_node_address(nodes[i]);
    }
    options.contacts = contacts;
    options.contacts_count = NODES;
    options.cookie = "same";
    outside = pair_system("outside");
    UNIT_REQUIRE(trp_client_open(outside, &options, &client) == TRP_OK);
}

static void
client_end(void)
{
    trp_client_close(client);
    UNIT_EQUAL(trp_system_stop(outside, 60000), TRP_OK);
    trp_system_free(outside);
}

static trp_err
ask(trp_ref to, uint32_t timeout_ms)
{
    trp_msg *reply = NULL;
    trp_err err = trp_system_ask(outside, to, &trp_string_type, "hello", 5, timeout_ms, &reply);
    trp_msg_free(reply);
    return err;
}

/* The node that has the client now; NODES: none. */
static int
contact_of(void)
{
    for (int i = 0; i < NODES; i++) {
        char text[400];
        (void)snprintf(text, sizeof text, "contact established contact=%s",
                       nodes[i] == NULL ? "?" : trp_node_address(nodes[i]));
        if (pair_logged(text)) {
            return i;
        }
    }
    return NODES;
}

/* CONTRIB-22 CONTRIB-24:
 * ClusterClientSpec "communicate to actor on any node in cluster": one node has the service, and
 * each of the others may be the contact. */
static void
a_service_of_any_node_is_reached(void)
{
    cluster_start();
    for (int i = 0; i < NODES; i++) {
        char name[32];
        trp_ref echo = pair_spawn(trp_node_system(nodes[i]), &pair_echo, NULL, NULL, NULL, 0);
        (void)snprintf(name, sizeof name, "echo-%d", i);
        UNIT_EQUAL(trp_receptionist_register(trp_node_system(nodes[i]), name, echo), TRP_OK);
    }
    client_start();
    for (int i = 0; i < NODES; i++) {
        char name[32];
        trp_ref to;
        (void)snprintf(name, sizeof name, "echo-%d", i);
        UNIT_EQUAL(trp_client_service(client, name, &to), TRP_OK);
        UNIT_WAIT(ask(to, 5000) == TRP_OK, 60000);
    }
    client_end();
    cluster_end();
}

static _Atomic uint64_t heard;

/* Counts texts. */
static trp_err
counter_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    atomic_fetch_add(&heard, trp_msg_is(msg, &trp_string_type));
    return TRP_OK;
}
static const trp_behaviour counter = TRP_BEHAVIOUR_INIT("counter", uint64_t, counter_receive);

static bool
is_delivered(trp_ref to, uint64_t count, uint32_t nodes_count)
{
    trp_msg *reply = NULL;
    trp_err err = trp_system_ask(outside, to, &trp_string_type, "hello", 5, 5000, &reply);
    const trp_client_delivery *delivery =
        err == TRP_OK ? trp_msg_as(reply, &trp_client_delivery_type) : NULL;
    bool is = delivery != NULL && delivery->delivered == count && delivery->nodes == nodes_count;
    trp_msg_free(reply);
    return is;
}

/* CONTRIB-24 CONTRIB-26 CONTRIB-27 CONTRIB-30:
 * ClusterClientSpec "communicate to any actor in cluster", all of them: by a name that all nodes
 * have, and by a topic that one node opens, which is not always the contact, and all subscribe to.
 */
static void
services_and_subscribers_of_all_nodes_are_reached(void)
{
    trp_ref all, news;
    trp_mediator *mediator;
    cluster_start();
    for (int i = 0; i < NODES; i++) {
        trp_system *system = trp_node_system(nodes[i]);
        trp_ref one = pair_spawn(system, &counter, NULL, NULL, NULL, 0);
        UNIT_EQUAL(trp_receptionist_register(system, "counter", one), TRP_OK);
        UNIT_REQUIRE(trp_mediator_of(system, NULL, &mediator) == TRP_OK);
        UNIT_EQUAL(i == 1 ? trp_receptionist_subscribe(system, "news", one, NULL)
                          : trp_mediator_subscribe(mediator, "news", one, NULL),
                   TRP_OK);
    }
    client_start();
    UNIT_EQUAL(trp_client_service_all(client, "counter", &all), TRP_OK);
    UNIT_EQUAL(trp_client_topic(client, "news", &news), TRP_OK);
    UNIT_WAIT(is_delivered(all, NODES, NODES), 60000);
    UNIT_WAIT(is_delivered(news, NODES, NODES), 60000);
    atomic_store(&heard, 0);
    trp_system_tell(outside, all, &trp_string_type, "hello", 5);
    UNIT_WAIT(atomic_load(&heard) == NODES, 60000);
    trp_system_tell(outside, news, &trp_string_type, "hello", 5);
    UNIT_WAIT(atomic_load(&heard) == 2 * NODES, 60000);
    client_end();
    cluster_end();
}

/* CONTRIB-28:
 * ClusterClientHandoverSpec: the client moves before its contact leaves, so that no ask is lost
 * that another node answers; and it never was without a contact. */
static void
a_client_is_moved_before_its_contact_leaves(void)
{
    trp_node_end end;
    cluster_start();
    client_start();
    UNIT_WAIT(contact_of() < NODES, 60000);
    trp_ref to;
    for (int i = 0; i < NODES; i++) {
        trp_ref echo = pair_spawn(trp_node_system(nodes[i]), &pair_echo, NULL, NULL, NULL, 0);
        UNIT_EQUAL(trp_receptionist_register(trp_node_system(nodes[i]), "echo", echo), TRP_OK);
    }
    UNIT_EQUAL(trp_client_service(client, "echo", &to), TRP_OK);
    UNIT_WAIT(ask(to, 5000) == TRP_OK, 60000);
    int leaving = NODES; /* the contact by now: the client may have followed the ring */
    for (int i = 0; i < NODES; i++) {
        char text[400];
        (void)snprintf(text, sizeof text, "contact established contact=%s",
                       trp_node_address(nodes[i]));
        leaving = pair_log_count(text) > 0 ? i : leaving;
    }
    pair_log_clear();
    for (int i = 0; i < 2; i++) { /* whichever of them it is: two of three leave */
        int which = (leaving + i) % NODES;
        trp_node_leave(nodes[which]);
        UNIT_EQUAL(trp_node_await(nodes[which], 60000, &end), TRP_OK);
        trp_node_close(nodes[which]);
        nodes[which] = NULL;
        UNIT_WAIT(ask(to, 5000) == TRP_OK, 60000);
    }
    UNIT_TRUE(pair_log_count("contact established") >= 1);
    UNIT_EQUAL(pair_log_count("contact lost"), 0);
    client_end();
    cluster_end();
}

/* CONTRIB-22:
 * ClusterClientSpec "re-establish connection to another receptionist when server is shutdown" */
static void
a_client_finds_another_contact_when_its_node_ends_without_a_word(void)
{
    cluster_start();
    for (int i = 0; i < NODES; i++) {
        trp_ref echo = pair_spawn(trp_node_system(nodes[i]), &pair_echo, NULL, NULL, NULL, 0);
        UNIT_EQUAL(trp_receptionist_register(trp_node_system(nodes[i]), "echo", echo), TRP_OK);
    }
    client_start();
    trp_ref to;
    UNIT_EQUAL(trp_client_service(client, "echo", &to), TRP_OK);
    UNIT_WAIT(ask(to, 5000) == TRP_OK, 60000);
    for (int i = 0; i < 2; i++) {
        trp_node_close(nodes[i]);
        nodes[i] = NULL;
        UNIT_WAIT(ask(to, 2000) == TRP_OK, 60000);
    }
    client_end();
    cluster_end();
}

static void
one_node_start(const char *roles, const char *key)
{
    pair_log_clear();
    role = roles;
    role_wanted = key;
    nodes[0] = node_begin("self");
    role = "cluster.roles=any";
    role_wanted = "cluster.pub-sub.role=";
    trp_member self;
    UNIT_WAIT(trp_cluster_self(trp_node_system(nodes[0]), &self) == TRP_OK &&
                  self.status == TRP_MEMBER_UP,
              60000);
}

static void
one_contact_start(const char *contact)
{
    trp_client_options options = TRP_CLIENT_OPTIONS_INIT;
    options.contacts = &contact;
    options.contacts_count = 1;
    options.cookie = "same";
    outside = pair_system("outside");
    UNIT_REQUIRE(trp_client_open(outside, &options, &client) == TRP_OK);
}

/* ROLES-03 CONTRIB-26:
 * cluster.client.receptionist.role: a node without it has no receptionist and refuses clients, and
 * clients are not sent to it. */
static void
a_receptionist_of_a_role_is_only_where_the_role_is(void)
{
    static const char wanted[] = "cluster.client.receptionist.role=front";
    trp_ref to;
    one_node_start("cluster.roles=front", wanted);
    role_wanted = wanted;
    nodes[1] = node_begin(trp_node_address(nodes[0]));
    nodes[2] = node_begin(trp_node_address(nodes[0]));
    role_wanted = "cluster.pub-sub.role=";
    UNIT_WAIT(all_are_up(), 60000);
    trp_ref echo = pair_spawn(trp_node_system(nodes[0]), &pair_echo, NULL, NULL, NULL, 0);
    UNIT_EQUAL(trp_receptionist_register(trp_node_system(nodes[0]), "echo", echo), TRP_OK);
    UNIT_EQUAL(trp_receptionist_register(
                   trp_node_system(nodes[1]), "echo",
                   pair_spawn(trp_node_system(nodes[1]), &pair_echo, NULL, NULL, NULL, 0)),
               TRP_ESTATE);
    one_contact_start(trp_node_address(nodes[1]));
    UNIT_WAIT(pair_logged("advertise no host and port"), 60000);
    UNIT_EQUAL(pair_log_count("contact established"), 0);
    client_end();
    one_contact_start(trp_node_address(nodes[0]));
    UNIT_EQUAL(trp_client_service(client, "echo", &to), TRP_OK);
    UNIT_WAIT(ask(to, 5000) == TRP_OK, 60000);
    UNIT_EQUAL(client->engine.known_count, 1); /* of three members one has the role */
    UNIT_TRUE(trpi_address_equal(&client->engine.known[0], &client->engine.contact));
    client_end();
    cluster_end();
}

/* CONTRIB-30 ROLES-03: topics need the mediator, which may have a role of its own. */
static void
a_topic_needs_the_mediator_of_the_contact(void)
{
    one_node_start("cluster.roles=front", "cluster.pub-sub.role=back");
    trp_system *system = trp_node_system(nodes[0]);
    trp_ref one = pair_spawn(system, &counter, NULL, NULL, NULL, 0);
    UNIT_EQUAL(trp_receptionist_subscribe(system, "news", one, NULL), TRP_EROLE);
    UNIT_EQUAL(trp_receptionist_register(system, "counter", one), TRP_OK);
    one_contact_start(trp_node_address(nodes[0]));
    trp_ref all;
    UNIT_EQUAL(trp_client_service_all(client, "counter", &all), TRP_OK);
    UNIT_WAIT(is_delivered(all, 1, 1), 60000); /* which the receptionists have themselves */
    client_end();
    cluster_end();
}

/* ---- TLS ------------------------------------------------------------------------------------- */

static pki all;
static char ca[128], cert[3][128], key[3][128];

/* CONTRIB-26 CONTRIB-24:
 * The certificate of a client names no address of it; the name in it is what permissions go by. */
static void
permissions_go_by_the_name_in_the_certificate(void)
{
    static const char *const names[] = { "shop", "buyer", "guest" };
    static const char *const permissions[] = { "vault=buyer", "topic:prices=1=buyer" };
    pki_start(&all);
    pki_authority(&all, "ca");
    (void)pki_path(&all, "ca.pem", ca, sizeof ca);
    for (int i = 0; i < 3; i++) {
        char file[64];
        pki_node(&all, "ca", names[i], i == 0 ? "127.0.0.1" : "nowhere.example", -1, 100);
        (void)snprintf(file, sizeof file, "%s.pem", names[i]);
        (void)pki_path(&all, file, cert[i], sizeof cert[i]);
        (void)snprintf(file, sizeof file, "%s.key", names[i]);
        (void)pki_path(&all, file, key[i], sizeof key[i]);
    }
    pair p = { 0 };
    const trpi_remote_options remoting = {
        .tls = true, .tls_ca = ca, .tls_cert = cert[0], .tls_key = key[0]
    };
    const trpi_receptionist_options options = { .permissions = permissions,
                                                .permissions_count = 2 };
    pair_log_clear();
    p.system[1] = pair_system("shop");
    pair_remote(&p, 1, &remoting, 0);
    UNIT_REQUIRE(trpi_receptionist_open(p.system[1], p.remote[1], &options) == TRP_OK);
    trp_ref echo = pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0);
    UNIT_EQUAL(trp_receptionist_register(p.system[1], "vault", echo), TRP_OK);
    UNIT_EQUAL(trp_receptionist_register(p.system[1], "shelf", echo), TRP_OK);
    trp_ref one = pair_spawn(p.system[1], &counter, NULL, NULL, NULL, 0);
    UNIT_EQUAL(trp_receptionist_subscribe(p.system[1], "prices=1", one, NULL), TRP_OK);
    UNIT_EQUAL(trp_receptionist_subscribe(p.system[1], "news", one, NULL), TRP_OK);
    for (int i = 1; i < 3; i++) {
        const char *contacts[] = { p.address[1] };
        trp_client_options o = TRP_CLIENT_OPTIONS_INIT;
        trp_ref vault, shelf, prices, news;
        o.contacts = contacts;
        o.contacts_count = 1;
        o.tls_ca = ca;
        o.tls_cert = cert[i];
        o.tls_key = key[i];
        outside = pair_system("outside");
        UNIT_REQUIRE(trp_client_open(outside, &o, &client) == TRP_OK);
        UNIT_EQUAL(trp_client_service(client, "shelf", &shelf), TRP_OK);
        UNIT_EQUAL(trp_client_service(client, "vault", &vault), TRP_OK);
        UNIT_EQUAL(trp_client_topic(client, "prices=1", &prices), TRP_OK);
        UNIT_EQUAL(trp_client_topic(client, "news", &news), TRP_OK);
        UNIT_EQUAL(ask(shelf, 60000), TRP_OK);
        UNIT_WAIT(is_delivered(news, 1, 1), 60000);
        if (i == 1) {
            UNIT_WAIT(is_delivered(prices, 1, 1), 60000);
            UNIT_EQUAL(ask(vault, 60000), TRP_OK);
            UNIT_WAIT(pair_logged("certificate=buyer"), 60000);
        } else {
            UNIT_WAIT(pair_logged("does not permit it to your certificate"), 60000);
            UNIT_EQUAL(ask(vault, 300), TRP_ETIMEDOUT);
            UNIT_EQUAL(ask(prices, 300), TRP_ETIMEDOUT);
        }
        client_end();
    }
    trpi_receptionist_close(p.system[1]);
    pair_end_side(&p, 1);
    pki_end(&all);
}

UNIT_BEGIN("cluster")
UNIT(a_service_of_any_node_is_reached)
UNIT(a_client_is_moved_before_its_contact_leaves)
UNIT(a_client_finds_another_contact_when_its_node_ends_without_a_word)
UNIT(services_and_subscribers_of_all_nodes_are_reached)
UNIT(a_receptionist_of_a_role_is_only_where_the_role_is)
UNIT(a_topic_needs_the_mediator_of_the_contact)
UNIT(permissions_go_by_the_name_in_the_certificate)
UNIT_END
