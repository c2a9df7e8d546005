/* socket_test.c - the simulated sockets of complete nodes: faults of nodes and links are theirs. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include <troupe/sim.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "base/net.h"
#include "cluster/sim/complete.h"
#include "io/poller.h"
#include "tests/unit/sim/echo.h"
#include "tests/unit/unit.h"

#define PORT 7000

static const trpi_net_ops *const net = &trpi_sim_net_ops;
static int listeners[TRP_SIM_NODES_MAX];

static trpi_world *
world_of(trp_sim *sim)
{
    return trpi_virtual_world(sim->virt);
}

static trpi_net_address
address_of(const trp_sim *sim, uint32_t node)
{
    trpi_net_address address = { .bytes = sizeof(struct sockaddr_in) };

    address.of.v4.sin_family = AF_INET;
    address.of.v4.sin_port = htons(PORT);
    UNIT_REQUIRE(inet_pton(AF_INET, trp_sim_host(sim, node), &address.of.v4.sin_addr) == 1);
    return address;
}

/* On the host of the node, which its system is made on. */
static void
listener_started(trp_sim *sim, uint32_t node, void *arg)
{
    trpi_net_address address = address_of(sim, node);

    (void)arg;
    listeners[node] = net->socket(world_of(sim), AF_INET, SOCK_STREAM);
    UNIT_REQUIRE(net->bind(world_of(sim), listeners[node], &address) == 0);
    UNIT_REQUIRE(net->listen(world_of(sim), listeners[node], 8) == 0);
}

static int
dial(trp_sim *sim, uint32_t from, uint32_t to)
{
    trpi_net_address address = address_of(sim, to);
    uint32_t before = world_of(sim)->host;
    int number;

    world_of(sim)->host = from;
    number = net->socket(world_of(sim), AF_INET, SOCK_STREAM);
    world_of(sim)->host = before;
    UNIT_EQUAL(net->connect(world_of(sim), number, &address), -EINPROGRESS);
    return number;
}

static int
error_of(trp_sim *sim, int number)
{
    int error = -1;
    socklen_t bytes = sizeof error;

    UNIT_EQUAL(net->option_get(world_of(sim), number, SOL_SOCKET, SO_ERROR, &error, &bytes), 0);
    return error;
}

static ssize_t
put(trp_sim *sim, int number)
{
    char text[] = "hello";
    struct iovec iov = { text, 5 };

    return net->write(world_of(sim), number, &iov, 1);
}

static ssize_t
get(trp_sim *sim, int number)
{
    char text[16];
    struct iovec iov = { text, sizeof text };

    return net->read(world_of(sim), number, &iov, 1);
}

static void
links_are_cut(trp_sim *sim, void *arg)
{
    trp_sim_socket_faults faults = TRP_SIM_SOCKET_FAULTS_INIT;
    trpi_world *world = world_of(sim);
    trpi_net_address peer;
    int ends[2];

    *(bool *)arg = true;
    UNIT_TEXT(trp_sim_host(sim, 1), "10.0.0.2");
    UNIT_TRUE(trp_sim_host(sim, 2) == NULL);
    UNIT_EQUAL(world->host, SIM_COMPLETE_GROUND);
    trp_sim_delay(sim, 0);
    ends[0] = dial(sim, 1, 0);
    ends[1] = net->accept(world, listeners[0], &peer);
    UNIT_REQUIRE(ends[1] >= 0);
    UNIT_EQUAL(ntohl(peer.of.v4.sin_addr.s_addr), 0x0a000002);
    trp_sim_cut(sim, 1, 0, 1000);
    UNIT_EQUAL(put(sim, ends[0]), 5);
    trp_sim_pass(sim, 900);
    UNIT_EQUAL(get(sim, ends[1]), -EAGAIN);
    UNIT_EQUAL(put(sim, ends[1]), 5); /* the other direction goes on */
    UNIT_EQUAL(get(sim, ends[0]), 5);
    trp_sim_pass(sim, 200);
    UNIT_EQUAL(get(sim, ends[1]), 5);
    trp_sim_delay(sim, 50);
    UNIT_EQUAL(put(sim, ends[0]), 5);
    UNIT_EQUAL(get(sim, ends[1]), -EAGAIN);
    trp_sim_pass(sim, 50);
    UNIT_EQUAL(get(sim, ends[1]), 5);
    trp_sim_reset(sim, 0);
    trp_sim_pass(sim, 50);
    UNIT_EQUAL(get(sim, ends[0]), -ECONNRESET);
    UNIT_EQUAL(get(sim, ends[1]), -ECONNRESET);
    UNIT_EQUAL(net->close(world, ends[0]), 0);
    UNIT_EQUAL(net->close(world, ends[1]), 0);
    faults.refused = 1001;
    UNIT_EQUAL(trp_sim_sockets(sim, &faults), TRP_EINVAL);
    faults.refused = 1000;
    UNIT_EQUAL(trp_sim_sockets(sim, &faults), TRP_OK);
    ends[0] = dial(sim, 1, 0);
    for (int s = 0; s < 130 && error_of(sim, ends[0]) == 0; s++) { /* it asks again and again */
        trp_sim_pass(sim, 1000);
    }
    UNIT_EQUAL(put(sim, ends[0]), -EPIPE);
    UNIT_EQUAL(net->close(world, ends[0]), 0);
    UNIT_EQUAL(trp_sim_sockets(sim, NULL), TRP_OK);
    UNIT_EQUAL(net->close(world, listeners[0]), 0);
    UNIT_EQUAL(net->close(world, listeners[1]), 0);
}

static void
links_of_sockets_are_those_of_nodes(void)
{
    trp_sim_options options = TRP_SIM_OPTIONS_INIT;
    bool ran = false;

    options.nodes = 2;
    options.started = listener_started;
    UNIT_EQUAL(trp_sim_run(links_are_cut, &ran, &options, NULL), TRP_OK);
    UNIT_TRUE(ran);
}

static void
node_is_killed(trp_sim *sim, void *arg)
{
    int *number = arg;

    *number = dial(sim, 1, 0);
    for (int i = 0; i < 2; i++) { /* there, and back: nobody watches it */
        trp_sim_pass(sim, 100);
        UNIT_EQUAL(error_of(sim, *number), 0);
    }
    UNIT_EQUAL(put(sim, *number), 5);
    trp_sim_kill(sim, 0);
    UNIT_EQUAL(get(sim, *number), -ECONNRESET); /* its process has ended */
    UNIT_EQUAL(trpi_sim_net_open(sim->sockets, 0), 0);
    trp_sim_pass(sim, 1); /* the run has failed: it ends here */
    *number = -1;
}

static void
a_system_that_leaves_a_socket_open_fails_the_run(void)
{
    trp_sim_options options = TRP_SIM_OPTIONS_INIT;
    trp_sim_result result = { .size = sizeof result };
    int number = 0;

    options.nodes = 2;
    options.started = listener_started;
    UNIT_EQUAL(trp_sim_run(node_is_killed, &number, &options, &result), TRP_EFAILED);
    UNIT_TRUE(strstr(result.text, "has left sockets open") != NULL);
    UNIT_TRUE(number > 0);
}

/* ---- a server and its clients on the poller ------------------------------------------------ */

#define SYSTEMS 3u
#define CLIENTS 5u
#define SEEDS 300
#define LIMIT_MS 900000u /* of virtual time: retransmitted connects take two minutes */
#define ROUND_MS 50u

struct run {
    trpi_virtual *virt;
    trpi_world *world;
    trpi_sim_net *sockets;
    trp_system *systems[SYSTEMS];
    trpi_poller *pollers[SYSTEMS];
    int server;
    trpi_watch *server_watch;
    uint32_t live; /* watches */
    uint32_t complete;
};

struct party {
    struct run *run;
    trpi_watch *watch;
    bool echoes; /* else it asks */
    union {
        echo echo;
        client client;
    } as;
};

static int *
socket_of(struct party *p)
{
    return p->echoes ? &p->as.echo.socket : &p->as.client.socket;
}

static uint32_t
party_ready(void *user, uint32_t events)
{
    struct party *p = user;
    bool *done = p->echoes ? &p->as.echo.done : &p->as.client.done;

    (void)events;
    if (!*done) {
        if (p->echoes) {
            echo_run(net, p->run->world, &p->as.echo);
        } else {
            client_run(net, p->run->world, &p->as.client);
        }
        if (*done) {
            trpi_watch_remove(p->watch);
        }
    }
    return 0;
}

static void
party_removed(void *user)
{
    struct party *p = user;
    struct run *run = p->run;

    UNIT_EQUAL(net->close(run->world, *socket_of(p)), 0);
    if (!p->echoes) {
        const client *c = &p->as.client;

        UNIT_FALSE(c->wrong);
        UNIT_TRUE(c->error != 0 || (c->ended && c->got == c->asked)); /* all, or it knows why */
        run->complete += c->error == 0;
        trpi_virtual_mix(run->virt, (uint64_t)c->got << 32 | (uint32_t)c->error);
    }
    run->live--;
    trpi_free(p);
}

static const trpi_watch_events party_events = { party_ready, party_removed };

static struct party *
party_new(struct run *run, bool echoes)
{
    struct party *p = trpi_alloc(sizeof *p);

    UNIT_REQUIRE(p != NULL);
    p->run = run;
    p->echoes = echoes;
    run->live++;
    return p;
}

static uint32_t
server_ready(void *user, uint32_t events)
{
    struct run *run = user;
    trpi_net_address peer;
    int number;

    (void)events;
    while ((number = net->accept(run->world, run->server, &peer)) >= 0) {
        struct party *p = party_new(run, true);

        p->as.echo.socket = number;
        UNIT_EQUAL(trpi_watch_new(run->pollers[0], number, &party_events, p, &p->watch), TRP_OK);
    }
    UNIT_EQUAL(number, -EAGAIN);
    return 0;
}

static void
server_removed(void *user)
{
    struct run *run = user;

    UNIT_EQUAL(net->close(run->world, run->server), 0);
    run->live--;
}

static const trpi_watch_events server_events = { server_ready, server_removed };

static trpi_net_address
port_of(uint32_t host)
{
    trpi_net_address address = { .bytes = sizeof(struct sockaddr_in) };

    address.of.v4.sin_family = AF_INET;
    address.of.v4.sin_port = htons(PORT);
    address.of.v4.sin_addr.s_addr = htonl(0x0a000001 + host);
    return address;
}

static void
systems_start(struct run *run)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trpi_net_address address = port_of(0);

    options.workers = 1;
    options.log_level = TRP_LOG_OFF;
    for (uint32_t i = 0; i < SYSTEMS; i++) {
        run->world->host = i;
        UNIT_REQUIRE(trpi_system_new_in(run->world, "host", &options, &run->systems[i]) == TRP_OK);
        UNIT_REQUIRE(trpi_system_poller(run->systems[i], &run->pollers[i]) == TRP_OK);
    }
    run->world->host = 0;
    run->server = net->socket(run->world, AF_INET, SOCK_STREAM);
    UNIT_REQUIRE(net->bind(run->world, run->server, &address) == 0);
    UNIT_REQUIRE(net->listen(run->world, run->server, 2) == 0);
    run->live = 1;
    UNIT_REQUIRE(trpi_watch_new(run->pollers[0], run->server, &server_events, run,
                                &run->server_watch) == TRP_OK);
    for (uint32_t i = 0; i < CLIENTS; i++) {
        struct party *p = party_new(run, false);

        run->world->host = 1 + i % (SYSTEMS - 1);
        p->as.client.number = i;
        p->as.client.asked = 1 + (uint32_t)(trpi_world_random(run->world) % 20000);
        p->as.client.socket = net->socket(run->world, AF_INET, SOCK_STREAM);
        UNIT_EQUAL(net->connect(run->world, p->as.client.socket, &address), -EINPROGRESS);
        UNIT_EQUAL(trpi_watch_new(run->pollers[run->world->host], p->as.client.socket,
                                  &party_events, p, &p->watch),
                   TRP_OK);
    }
    run->world->host = SYSTEMS;
}

/* Return the hash of the trace. */
static uint64_t
run_seed(uint64_t seed, const trpi_sim_faults *faults)
{
    struct run run = { .live = 0 };
    trpi_virtual_options options = { .seed = seed, .net = &trpi_sim_net_ops };
    uint64_t hash;

    UNIT_REQUIRE(trpi_virtual_new(&options, &run.virt) == TRP_OK);
    run.world = trpi_virtual_world(run.virt);
    UNIT_REQUIRE(trpi_sim_net_new(run.world, seed, &run.sockets) == TRP_OK);
    trpi_sim_net_faults_set(run.sockets, faults);
    systems_start(&run);
    for (uint32_t ms = 0; ms < LIMIT_MS && run.live > 1; ms += ROUND_MS) {
        trpi_system_pass(run.systems[0], ROUND_MS);
    }
    UNIT_EQUAL(run.live, 1); /* no edge was lost: but for the listener all have ended */
    UNIT_TRUE(run.complete == CLIENTS || faults->reset + faults->refused > 0);
    hash = trpi_virtual_hash(run.virt);
    trpi_watch_remove(run.server_watch);
    for (uint32_t i = 0; i < SYSTEMS; i++) {
        UNIT_EQUAL(trp_system_stop(run.systems[i], 10000), TRP_OK);
    }
    for (uint32_t i = 0; i < SYSTEMS; i++) {
        trp_system_free(run.systems[i]);
        UNIT_EQUAL(trpi_sim_net_open(run.sockets, i), 0);
    }
    UNIT_EQUAL(run.live, 0);
    UNIT_EQUAL(trpi_sim_net_misuses(run.sockets), 0);
    trpi_sim_net_free(run.sockets);
    trpi_world_free(run.world);
    return hash;
}

static void
a_server_on_the_poller_bears_faults_under_every_seed(void)
{
    static const trpi_sim_faults kinds[] = {
        { .delay_ns = 20000000, .partial = 300, .spurious = 100 },
        { .delay_ns = 20000000, .partial = 300, .spurious = 100, .refused = 100, .reset = 5 },
        { .refused = 50 },
    };
    const char *seeds = getenv("TROUPE_SIM_SEEDS");
    const char *first = getenv("TROUPE_SIM_FIRST");
    uint64_t from = first != NULL ? strtoull(first, NULL, 10) : 1;
    uint64_t count = seeds != NULL ? strtoull(seeds, NULL, 10) : SEEDS;

    for (uint64_t seed = from; seed < from + count && unit_failures() == 0; seed++) {
        for (int i = 0; i < 3; i++) {
            uint64_t hash = run_seed(seed, &kinds[i]);

            if (seed % 10 == 0) {
                UNIT_TRUE(run_seed(seed, &kinds[i]) == hash);
            }
        }
        if (unit_failures() != 0) {
            printf("  replay: TROUPE_SIM_FIRST=%llu TROUPE_SIM_SEEDS=1 tests/sim/socket_test\n",
                   (unsigned long long)seed);
        }
    }
}

UNIT_BEGIN("socket_sim")
UNIT(a_server_on_the_poller_bears_faults_under_every_seed)
UNIT(links_of_sockets_are_those_of_nodes)
UNIT(a_system_that_leaves_a_socket_open_fails_the_run)
UNIT_END
