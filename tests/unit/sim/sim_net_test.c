/* Simulated sockets under faults: an echo server and its clients, run by readiness alone. */
#include "sim/sim_net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/world_virtual.h"
#include "tests/unit/sim/echo.h"
#include "tests/unit/unit.h"

#define HOSTS 4u
#define CLIENTS 6
#define SEEDS 60
#define PORT 7000
#define SECOND_NS 1000000000ull

static const trpi_net_ops *const net = &trpi_sim_net_ops;
static trpi_virtual *virt;
static trpi_world *world;
static trpi_sim_net *sim;

/* ---- hosts and their processes -------------------------------------------------------------- */

static trpi_net_set *sets[HOSTS];
static uint64_t due_ns[HOSTS];

static uint64_t
now_ns(void)
{
    return trpi_world_mono_ns(world);
}

static void
on_due(void *arg, uint64_t in_ns)
{
    uint64_t *due = arg;
    uint64_t at = now_ns() + in_ns;

    *due = at < *due ? at : *due;
}

static void
network_start(uint64_t seed)
{
    trpi_virtual_options options = { .seed = seed, .manual = true, .net = &trpi_sim_net_ops };

    UNIT_REQUIRE(trpi_virtual_new(&options, &virt) == TRP_OK);
    world = trpi_virtual_world(virt);
    UNIT_REQUIRE(trpi_sim_net_new(world, seed, &sim) == TRP_OK);
    for (uint32_t i = 0; i < HOSTS; i++) {
        world->host = i;
        due_ns[i] = UINT64_MAX;
        UNIT_REQUIRE(net->set_new(world, on_due, &due_ns[i], &sets[i]) == 0);
    }
}

static void
network_end(void)
{
    for (uint32_t i = 0; i < HOSTS; i++) {
        UNIT_EQUAL(trpi_sim_net_open(sim, i), 0);
        net->set_free(sets[i]);
    }
    UNIT_EQUAL(trpi_sim_net_misuses(sim), 0);
    trpi_sim_net_free(sim);
    trpi_world_free(world);
}

static trpi_net_address
address_of(uint32_t host, uint16_t port)
{
    trpi_net_address address = { .bytes = sizeof(struct sockaddr_in) };
    char text[TRPI_SIM_HOST_BYTES];

    trpi_sim_net_address(host, text, sizeof text);
    address.of.v4.sin_family = AF_INET;
    address.of.v4.sin_port = htons(port);
    UNIT_REQUIRE(inet_pton(AF_INET, text, &address.of.v4.sin_addr) == 1);
    return address;
}

static int
socket_on(uint32_t host, int type)
{
    int number;

    world->host = host;
    number = net->socket(world, AF_INET, type);
    UNIT_REQUIRE(number >= 0);
    return number;
}

static int
listener_on(uint32_t host, uint16_t port)
{
    trpi_net_address address = address_of(host, port);
    int number = socket_on(host, SOCK_STREAM);

    UNIT_REQUIRE(net->bind(world, number, &address) == 0);
    UNIT_REQUIRE(net->listen(world, number, 2) == 0);
    return number;
}

/* A connection; ends[0] is the one that connected. */
static void
connected(uint32_t from, uint32_t to, int ends[2])
{
    int server = listener_on(to, PORT);
    trpi_net_address address = address_of(to, PORT), peer;

    ends[0] = socket_on(from, SOCK_STREAM);
    UNIT_EQUAL(net->connect(world, ends[0], &address), -EINPROGRESS);
    ends[1] = net->accept(world, server, &peer);
    UNIT_REQUIRE(ends[1] >= 0);
    UNIT_EQUAL(net->connect(world, ends[0], &address), 0);
    UNIT_EQUAL(net->close(world, server), 0);
}

static ssize_t
put(int number, const char *text)
{
    struct iovec iov = { (void *)(uintptr_t)text, strlen(text) };

    return net->write(world, number, &iov, 1);
}

static ssize_t
get(int number, char *ret_text, size_t bytes)
{
    struct iovec iov = { ret_text, bytes };

    return net->read(world, number, &iov, 1);
}

static int
error_of(int number)
{
    int error = -1;
    socklen_t bytes = sizeof error;

    UNIT_EQUAL(net->option_get(world, number, SOL_SOCKET, SO_ERROR, &error, &bytes), 0);
    return error;
}

/* Move the clock. */
static void
later(uint64_t ns)
{
    world->ops->advance(world, now_ns() + ns);
}

/* ---- an echo server and its clients --------------------------------------------------------- */

static client clients[CLIENTS];
static uint32_t client_hosts[CLIENTS];
static echo echoes[CLIENTS];
static int server, echoes_count;

static void
server_run(uint64_t key)
{
    trpi_net_address peer;
    int number;

    if (key != CLIENTS) {
        if (!echoes[key].done) {
            echo_run(net, world, &echoes[key]);
        }
        if (echoes[key].done && echoes[key].socket >= 0) {
            UNIT_EQUAL(net->close(world, echoes[key].socket), 0);
            echoes[key].socket = -1;
        }
        return;
    }
    while ((number = net->accept(world, server, &peer)) >= 0) {
        UNIT_REQUIRE(echoes_count < CLIENTS);
        echoes[echoes_count].socket = number;
        UNIT_EQUAL(net->set_add(sets[0], number, (uint64_t)echoes_count), 0);
        echoes_count++;
    }
    UNIT_EQUAL(number, -EAGAIN);
}

static void
client_reported(client *c)
{
    if (!c->done) {
        client_run(net, world, c);
        if (c->done) {
            UNIT_EQUAL(net->close(world, c->socket), 0);
        }
    }
}

static void
clients_start(void)
{
    trpi_net_address address = address_of(0, PORT);

    memset(clients, 0, sizeof clients);
    memset(echoes, 0, sizeof echoes);
    echoes_count = 0;
    server = listener_on(0, PORT);
    UNIT_EQUAL(net->set_add(sets[0], server, CLIENTS), 0);
    for (uint32_t i = 0; i < CLIENTS; i++) {
        client *c = &clients[i];

        echoes[i].socket = -1;
        client_hosts[i] = 1 + i % (HOSTS - 1);
        c->number = i;
        c->asked = 1 + (uint32_t)(trpi_world_random(world) % 40000);
        c->socket = socket_on(client_hosts[i], SOCK_STREAM);
        UNIT_EQUAL(net->connect(world, c->socket, &address), -EINPROGRESS);
        UNIT_EQUAL(net->set_add(sets[client_hosts[i]], c->socket, i), 0);
    }
}

/* Deliver what is due next; false: nothing will be. */
static bool
step(uint64_t *hash)
{
    trpi_net_report reports[3];
    uint32_t host = 0;
    int count;

    for (uint32_t i = 1; i < HOSTS; i++) {
        host = due_ns[i] < due_ns[host] ? i : host;
    }
    if (due_ns[host] == UINT64_MAX) {
        return false;
    }
    if (due_ns[host] > now_ns()) {
        world->ops->advance(world, due_ns[host]);
    }
    due_ns[host] = UINT64_MAX;
    world->host = host;
    count = net->set_wait(sets[host], reports, 3, 0);
    for (int i = 0; i < count; i++) {
        *hash = trpi_hash_u64(*hash ^ now_ns() ^ reports[i].key << 48 ^ reports[i].events);
        if (host == 0) {
            server_run(reports[i].key);
        } else {
            client_reported(&clients[reports[i].key]);
        }
    }
    return true;
}

/* Return a hash of all reports. */
static uint64_t
echo_seed(uint64_t seed, const trpi_sim_faults *faults, int *ret_complete)
{
    uint64_t hash = seed;

    network_start(seed);
    trpi_sim_net_faults_set(sim, faults);
    clients_start();
    while (step(&hash)) {
    }
    *ret_complete = 0;
    for (int i = 0; i < CLIENTS; i++) {
        client *c = &clients[i];

        /* Nothing more will happen: each client has its answer, or knows why not. */
        if (!UNIT_TRUE(c->done) || !UNIT_FALSE(c->wrong) || /* sim-net-N2 */
            !UNIT_TRUE(c->error != 0 || c->got == c->asked)) {
            printf("  replay: TROUPE_TEST_SEED=%" PRIu64 ", client %d: sent %u of %u, got %u\n",
                   seed, i, c->sent, c->asked, c->got);
        }
        *ret_complete += c->ended && c->got == c->asked;
        hash = trpi_hash_u64(hash ^ c->got ^ (uint64_t)c->error << 32);
        UNIT_TRUE(c->done || net->close(world, c->socket) == 0);
        if (!UNIT_TRUE(echoes[i].socket < 0)) { /* a reset is told to both ends */
            (void)net->close(world, echoes[i].socket);
        }
    }
    UNIT_EQUAL(net->close(world, server), 0);
    network_end();
    return hash;
}

static void
streams_lose_nothing_under_faults(void)
{
    static const trpi_sim_faults slow = { .delay_ns = 20000000, .partial = 300, .spurious = 100 };
    static const trpi_sim_faults bad = {
        .delay_ns = 20000000, .partial = 300, .spurious = 100, .refused = 100, .reset = 5
    };
    const char *given = getenv("TROUPE_TEST_SEED");
    const char *many = getenv("TROUPE_SIM_SEEDS");
    uint64_t from = given != NULL ? strtoull(given, NULL, 10) : 1;
    uint64_t count = given != NULL ? 1 : many != NULL ? strtoull(many, NULL, 10) : SEEDS;
    int complete, failed = 0;

    for (uint64_t seed = from; seed < from + count && unit_failures() == 0; seed++) {
        uint64_t hash = echo_seed(seed, &slow, &complete);

        UNIT_EQUAL(complete, CLIENTS); /* nothing is reset: all answers are complete */
        if (seed % 10 == 1) {
            UNIT_TRUE(echo_seed(seed, &slow, &complete) == hash);
        }
        hash = echo_seed(seed, &bad, &complete);
        failed += CLIENTS - complete;
        if (seed % 10 == 1) {
            UNIT_TRUE(echo_seed(seed, &bad, &complete) == hash);
        }
    }
    UNIT_TRUE(failed > 0 || count == 1);
}

/* ---- single faults --------------------------------------------------------------------------- */

static trpi_mem_verdict verdict;
static uint64_t link_delay_ns;

static trpi_mem_verdict
link_judge(void *arg, trpi_mem_event *event)
{
    UNIT_TRUE(arg == &verdict);
    UNIT_TRUE(event->from_host[0] == 'h' && event->to_host[0] == 'h');
    event->delay_ns = link_delay_ns;
    return verdict;
}

static void
link_set(trpi_mem_verdict what, uint64_t delay_ns)
{
    verdict = what;
    link_delay_ns = delay_ns;
    trpi_sim_net_link_set(sim, link_judge, &verdict);
}

static void
a_partition_times_connects_out_and_a_cut_refuses_them(void)
{
    trpi_net_address address = address_of(0, PORT);
    int listening, s;

    network_start(1);
    listening = listener_on(0, PORT);
    link_set(TRPI_MEM_DROP, 0);
    s = socket_on(1, SOCK_STREAM);
    UNIT_EQUAL(net->connect(world, s, &address), -EINPROGRESS);
    later(126 * SECOND_NS);
    UNIT_EQUAL(error_of(s), 0);
    later(2 * SECOND_NS); /* 1 + 2 + 4 + ... + 64 s, as the machine repeats it */
    UNIT_EQUAL(error_of(s), ETIMEDOUT);
    UNIT_EQUAL(net->close(world, s), 0);
    link_set(TRPI_MEM_CUT, 0);
    s = socket_on(1, SOCK_STREAM);
    UNIT_EQUAL(net->connect(world, s, &address), -EINPROGRESS);
    UNIT_EQUAL(error_of(s), ECONNREFUSED);
    UNIT_EQUAL(net->close(world, s), 0);
    link_set(TRPI_MEM_DROP, 0);
    s = socket_on(1, SOCK_STREAM);
    UNIT_EQUAL(net->connect(world, s, &address), -EINPROGRESS);
    link_set(TRPI_MEM_PASS, 0); /* the next repetition arrives */
    later(SECOND_NS);
    UNIT_EQUAL(net->connect(world, s, &address), 0);
    UNIT_EQUAL(net->close(world, s), 0);
    UNIT_EQUAL(net->close(world, listening), 0);
    network_end();
}

static void
a_link_delays_resets_and_swallows(void)
{
    char text[16];
    int ends[2], ms = 3000;

    network_start(1);
    connected(1, 2, ends);
    link_set(TRPI_MEM_PASS, SECOND_NS);
    UNIT_EQUAL(put(ends[0], "hello"), 5);
    UNIT_EQUAL(get(ends[1], text, 16), -EAGAIN);
    later(SECOND_NS);
    UNIT_EQUAL(get(ends[1], text, 16), 5);
    UNIT_EQUAL(put(ends[0], "again"), 5);
    trpi_sim_net_hasten(sim);
    UNIT_EQUAL(get(ends[1], text, 16), 5);
    link_set(TRPI_MEM_CUT, 0);
    UNIT_EQUAL(put(ends[0], "lost"), 4);
    UNIT_EQUAL(get(ends[1], text, 16), -ECONNRESET);
    UNIT_EQUAL(put(ends[0], "lost"), -ECONNRESET);
    UNIT_EQUAL(put(ends[0], "lost"), -EPIPE);
    UNIT_EQUAL(net->close(world, ends[0]), 0);
    UNIT_EQUAL(net->close(world, ends[1]), 0);
    link_set(TRPI_MEM_PASS, 0);
    connected(1, 2, ends);
    UNIT_EQUAL(net->option_set(world, ends[0], IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms), 0);
    link_set(TRPI_MEM_DROP, 0);
    UNIT_EQUAL(put(ends[0], "lost"), 4);
    later(2 * SECOND_NS);
    UNIT_EQUAL(error_of(ends[0]), 0);
    later(2 * SECOND_NS);
    UNIT_EQUAL(error_of(ends[0]), ETIMEDOUT);
    UNIT_EQUAL(get(ends[1], text, 16), -EAGAIN); /* it has not heard of it */
    UNIT_EQUAL(net->close(world, ends[0]), 0);
    UNIT_EQUAL(net->close(world, ends[1]), 0);
    network_end();
}

static void
an_ended_process_resets_and_frees_its_port(void)
{
    char text[16];
    int ends[2];

    network_start(1);
    connected(1, 2, ends);
    trpi_sim_net_reset(sim, 2);
    trpi_sim_net_end(sim, 2);
    UNIT_EQUAL(trpi_sim_net_open(sim, 2), 0);
    UNIT_EQUAL(get(ends[0], text, 16), -ECONNRESET);
    UNIT_EQUAL(get(ends[0], text, 16), 0);
    UNIT_EQUAL(net->close(world, ends[0]), 0);
    connected(1, 2, ends);
    UNIT_EQUAL(net->close(world, ends[1]), 0);
    UNIT_EQUAL(get(ends[0], text, 16), 0);
    UNIT_EQUAL(net->close(world, ends[0]), 0);
    network_end();
}

/* Both have closed it, and the last bytes of one never arrive. */
static void
a_reset_meets_ends_that_nobody_has(void)
{
    int ends[2];

    network_start(1);
    connected(1, 2, ends);
    link_set(TRPI_MEM_DROP, 0);
    UNIT_EQUAL(put(ends[0], "lost"), 4);
    link_set(TRPI_MEM_PASS, 0);
    UNIT_EQUAL(net->close(world, ends[1]), 0);
    UNIT_EQUAL(net->close(world, ends[0]), 0);
    trpi_sim_net_reset(sim, 2);
    network_end();
}

/* The end that closes first holds its port for a minute. */
static void
a_port_of_an_ended_connection_is_held_for_a_minute(void)
{
    trpi_net_address address = address_of(2, PORT);
    int ends[2], again, on = 1;

    network_start(1);
    connected(1, 2, ends);
    UNIT_EQUAL(net->close(world, ends[1]), 0);
    UNIT_EQUAL(net->close(world, ends[0]), 0);
    again = socket_on(2, SOCK_STREAM);
    UNIT_EQUAL(net->bind(world, again, &address), -EADDRINUSE);
    later(60 * SECOND_NS);
    UNIT_EQUAL(net->bind(world, again, &address), 0);
    UNIT_EQUAL(net->close(world, again), 0);
    connected(1, 2, ends);
    UNIT_EQUAL(net->close(world, ends[0]), 0); /* now the client holds its own */
    UNIT_EQUAL(net->close(world, ends[1]), 0);
    again = socket_on(2, SOCK_STREAM);
    UNIT_EQUAL(net->option_set(world, again, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    UNIT_EQUAL(net->bind(world, again, &address), 0);
    UNIT_EQUAL(net->close(world, again), 0);
    network_end();
}

static void
descriptors_are_limited_and_misuse_is_counted(void)
{
    trpi_net_address address = address_of(2, PORT), peer;
    int server_two, s, more;

    network_start(1);
    server_two = listener_on(2, PORT);
    s = socket_on(1, SOCK_STREAM);
    UNIT_EQUAL(net->connect(world, s, &address), -EINPROGRESS);
    trpi_sim_net_limit(sim, 2, 1);
    UNIT_EQUAL(net->accept(world, server_two, &peer), -EMFILE);
    world->host = 2;
    UNIT_EQUAL(net->socket(world, AF_INET, SOCK_STREAM), -EMFILE);
    trpi_sim_net_limit(sim, 2, 2);
    more = net->accept(world, server_two, &peer); /* it has waited */
    UNIT_TRUE(more >= 0);
    UNIT_EQUAL(net->close(world, more), 0);
    UNIT_EQUAL(net->close(world, s), 0);
    UNIT_EQUAL(net->close(world, server_two), 0);
    UNIT_EQUAL(trpi_sim_net_misuses(sim), 0);
    UNIT_EQUAL(net->close(world, s), -EBADF);
    UNIT_EQUAL(put(s, "x"), -EBADF);
    UNIT_EQUAL(trpi_sim_net_misuses(sim), 2);
    for (uint32_t i = 0; i < HOSTS; i++) {
        net->set_free(sets[i]);
    }
    trpi_sim_net_free(sim);
    trpi_world_free(world);
}

static void
hosts_have_names_and_addresses_of_their_own(void)
{
    trpi_net_address any = address_of(0, PORT), nowhere = address_of(0, PORT), six;
    int a, b, s;

    network_start(1);
    trpi_sim_net_name(sim, 3, "n3");
    UNIT_EQUAL(trpi_sim_net_find(sim, "n3"), 3);
    UNIT_EQUAL(trpi_sim_net_find(sim, "h2"), 2);
    UNIT_EQUAL(trpi_sim_net_find(sim, "nobody"), TRPI_SIM_HOSTS_MAX);
    any.of.v4.sin_addr.s_addr = INADDR_ANY;
    a = socket_on(0, SOCK_STREAM);
    b = socket_on(1, SOCK_STREAM);
    UNIT_EQUAL(net->bind(world, a, &any), 0);
    UNIT_EQUAL(net->bind(world, b, &any), 0); /* another host */
    s = socket_on(1, SOCK_STREAM);
    UNIT_EQUAL(net->bind(world, s, &nowhere), -EADDRNOTAVAIL); /* host 0's */
    nowhere.of.v4.sin_addr.s_addr = htonl(0xcb007101);         /* 203.0.113.1 */
    UNIT_EQUAL(net->connect(world, s, &nowhere), -ENETUNREACH);
    nowhere.of.v4.sin_addr.s_addr = htonl(0x0a00ffff); /* 10.0.255.255 */
    UNIT_EQUAL(net->connect(world, s, &nowhere), -EINPROGRESS);
    later(3 * SECOND_NS);
    UNIT_EQUAL(error_of(s), EHOSTUNREACH);
    UNIT_EQUAL(net->close(world, s), 0);
    memset(&six, 0, sizeof six);
    six.bytes = sizeof six.of.v6;
    six.of.v6.sin6_family = AF_INET6;
    six.of.v6.sin6_port = htons(PORT + 1);
    UNIT_EQUAL(inet_pton(AF_INET6, "fd00::2", &six.of.v6.sin6_addr), 1);
    world->host = 1;
    s = net->socket(world, AF_INET6, SOCK_STREAM);
    UNIT_EQUAL(net->bind(world, s, &six), 0);
    UNIT_EQUAL(net->close(world, s), 0);
    UNIT_EQUAL(net->close(world, a), 0);
    UNIT_EQUAL(net->close(world, b), 0);
    network_end();
}

/* ---- datagrams ------------------------------------------------------------------------------- */

/* Send 200 numbered ones; count which arrive, and whether in order. */
static void
datagrams_run(const trpi_sim_faults *faults, uint32_t *ret_got, bool *ret_ordered)
{
    trpi_net_address to = address_of(1, PORT), from;
    int a = -1, b = -1, flags;
    uint32_t number, last = 0;

    network_start(3);
    trpi_sim_net_faults_set(sim, faults);
    a = socket_on(0, SOCK_DGRAM);
    b = socket_on(1, SOCK_DGRAM);
    UNIT_EQUAL(net->bind(world, b, &to), 0);
    *ret_got = 0;
    *ret_ordered = true;
    for (number = 1; number <= 200; number++) {
        struct iovec iov = { &number, sizeof number };

        UNIT_EQUAL(net->send(world, a, &iov, 1, &to), sizeof number);
    }
    later(SECOND_NS);
    for (;;) {
        struct iovec iov = { &number, sizeof number };

        if (net->receive(world, b, &iov, 1, &from, &flags) < 0) {
            break;
        }
        UNIT_TRUE(number >= 1 && number <= 200);
        *ret_ordered = *ret_ordered && number == last + 1;
        last = number;
        ++*ret_got;
    }
    UNIT_EQUAL(net->close(world, a), 0);
    UNIT_EQUAL(net->close(world, b), 0);
    network_end();
}

static void
datagrams_are_lost_doubled_and_reordered(void)
{
    static const trpi_sim_faults lost = { .lost = 500 }, doubled = { .duplicated = 500 };
    static const trpi_sim_faults slow = { .delay_ns = 1000000 };
    uint32_t got;
    bool ordered;

    datagrams_run(NULL, &got, &ordered);
    UNIT_EQUAL(got, 200);
    UNIT_TRUE(ordered);
    datagrams_run(&lost, &got, &ordered);
    UNIT_TRUE(got > 50 && got < 150);
    datagrams_run(&doubled, &got, &ordered);
    UNIT_TRUE(got > 250 && got < 350);
    datagrams_run(&slow, &got, &ordered);
    UNIT_EQUAL(got, 200);
    UNIT_FALSE(ordered);
}

UNIT_BEGIN("sim_net")
UNIT(streams_lose_nothing_under_faults)
UNIT(a_partition_times_connects_out_and_a_cut_refuses_them)
UNIT(a_link_delays_resets_and_swallows)
UNIT(an_ended_process_resets_and_frees_its_port)
UNIT(a_reset_meets_ends_that_nobody_has)
UNIT(a_port_of_an_ended_connection_is_held_for_a_minute)
UNIT(descriptors_are_limited_and_misuse_is_counted)
UNIT(hosts_have_names_and_addresses_of_their_own)
UNIT(datagrams_are_lost_doubled_and_reordered)
UNIT_END
