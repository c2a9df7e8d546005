/* Contact points by DNS: A and AAAA, SRV, looked up again and again; whole nodes that find each
 * other so. */
#include "cluster/node/seed_dns.h"
#include "tests/unit/node/dns.h"
#include "tests/unit/node/inside.h"

/* ---- the look-up alone ----------------------------------------------------------------------- */

static struct dns dns;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static trpi_address last[TRP_CLUSTER_SEEDS_MAX];
static uint32_t last_count, calls;
static bool enough;

static bool
on_found(void *arg, const trpi_address *addresses, uint32_t count)
{
    (void)arg;
    pthread_mutex_lock(&lock);
    memcpy(last, addresses, count * sizeof *addresses);
    last_count = count;
    calls++;
    bool more = !enough;
    pthread_mutex_unlock(&lock);
    return more;
}

/* "host:port host:port ..." */
static bool
has_found(const char *want)
{
    char got[4096] = "";
    size_t at = 0;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < last_count; i++) {
        at += (size_t)snprintf(got + at, sizeof got - at, "%s%s:%u", i == 0 ? "" : " ",
                               last[i].host, last[i].port);
    }
    pthread_mutex_unlock(&lock);
    return strcmp(got, want) == 0;
}

static uint32_t
found_calls(void)
{
    pthread_mutex_lock(&lock);
    uint32_t count = calls;
    pthread_mutex_unlock(&lock);
    return count;
}

static trp_system *
system_open(trp_log_level level)
{
    trp_system *system = NULL;
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    options.workers = 1;
    options.log_level = level;
    options.log = quiet;
    UNIT_REQUIRE(trp_system_new("demo", &options, &system) == TRP_OK);
    return system;
}

static void
system_close(trp_system *system)
{
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
    trp_system_free(system);
}

static trpi_seed_dns *
look_up(trp_system *system, const char *name, uint16_t port)
{
    trpi_seed_dns_options options = {
        .name = name, .nameserver = dns.address, .port = port, .interval_ms = 20, .found = on_found
    };
    trpi_seed_dns *seeds = NULL;
    snprintf(options.like.protocol, sizeof options.like.protocol, "troupe.tcp");
    snprintf(options.like.system, sizeof options.like.system, "demo");
    last_count = calls = 0;
    enough = false;
    UNIT_REQUIRE(trpi_seed_dns_start(system, &options, &seeds) == TRP_OK);
    return seeds;
}

static void
addresses_of_a_host_name_are_found_sorted_and_once(void)
{
    trp_system *system = system_open(TRP_LOG_ERROR);
    dns_begin(&dns);
    dns_add(&dns, DNS_A, "10.0.0.7", 0);
    dns_add(&dns, DNS_AAAA, "fd00::1", 0);
    dns_add(&dns, DNS_A, "10.0.0.3", 0);
    dns_add(&dns, DNS_A, "10.0.0.7", 0);
    trpi_seed_dns *seeds = look_up(system, "seeds.example", 2600);
    UNIT_WAIT(has_found("10.0.0.3:2600 10.0.0.7:2600 fd00::1:2600"), 60000);
    UNIT_TEXT(last[0].system, "demo");
    trpi_seed_dns_stop(seeds);
    dns_end(&dns);
    system_close(system);
}

static void
srv_records_have_hosts_and_ports_and_change(void)
{
    trp_system *system = system_open(TRP_LOG_ERROR);
    dns_begin(&dns);
    trpi_seed_dns *seeds = look_up(system, "_troupe._tcp.example", 1);
    UNIT_WAIT(atomic_load(&dns.asked) >= 3, 60000); /* nothing there: asked again */
    UNIT_EQUAL(found_calls(), 0);
    dns_add(&dns, DNS_SRV, "b.example", 2552);
    dns_add(&dns, DNS_SRV, "a.example", 2553);
    UNIT_WAIT(has_found("a.example:2553 b.example:2552"), 60000);
    dns_clear(&dns);
    dns_add(&dns, DNS_SRV, "c.example", 2552);
    UNIT_WAIT(has_found("c.example:2552"), 60000);
    pthread_mutex_lock(&lock);
    enough = true;
    uint32_t before = calls;
    pthread_mutex_unlock(&lock);
    UNIT_WAIT(found_calls() == before + 1, 60000);
    trpi_seed_dns_stop(seeds);
    UNIT_EQUAL(found_calls(), before + 1);
    dns_end(&dns);
    system_close(system);
}

static void
of_too_many_the_lowest_are_taken(void)
{
    trp_system *system = system_open(TRP_LOG_ERROR);
    dns_begin(&dns);
    for (uint32_t i = TRP_CLUSTER_SEEDS_MAX + 1; i-- > 0;) {
        char text[32];
        snprintf(text, sizeof text, "10.0.0.%u", 100 + i);
        dns_add(&dns, DNS_A, text, 0);
    }
    trpi_seed_dns *seeds = look_up(system, "seeds.example", 2552);
    UNIT_WAIT(found_calls() > 0, 60000);
    trpi_seed_dns_stop(seeds);
    UNIT_EQUAL(last_count, TRP_CLUSTER_SEEDS_MAX);
    UNIT_TEXT(last[0].host, "10.0.0.100");
    UNIT_TEXT(last[TRP_CLUSTER_SEEDS_MAX - 1].host, "10.0.0.131");
    dns_end(&dns);
    system_close(system);
}

static void
records_add(uint16_t type, uint32_t first, uint32_t count, const char *net)
{
    for (uint32_t i = 0; i < count; i++) {
        char text[32];
        snprintf(text, sizeof text, "%s%u", net, first + i);
        dns_add(&dns, type, text, 0);
    }
}

/* 200 and 100 of two kinds; the lowest are the last ones of both, whichever comes first. */
static void
of_hundreds_in_any_order_the_lowest_are_taken(void)
{
    trp_system *system = system_open(TRP_LOG_ERROR);
    dns_begin(&dns);
    records_add(DNS_A, 10, 184, "200.0.0.");
    records_add(DNS_A, 100, 16, "10.0.0.");
    records_add(DNS_AAAA, 1000, 84, "fd00::");
    records_add(DNS_AAAA, 1000, TRP_CLUSTER_SEEDS_MAX - 16, "100::");
    trpi_seed_dns *seeds = look_up(system, "seeds.example", 2552);
    UNIT_WAIT(found_calls() > 0, 60000);
    trpi_seed_dns_stop(seeds);
    UNIT_EQUAL(last_count, TRP_CLUSTER_SEEDS_MAX);
    UNIT_TEXT(last[0].host, "10.0.0.100");
    UNIT_TEXT(last[15].host, "10.0.0.115");
    UNIT_TEXT(last[16].host, "100::1000");
    UNIT_TEXT(last[TRP_CLUSTER_SEEDS_MAX - 1].host, "100::1015");
    dns_end(&dns);
    system_close(system);
}

static void
a_server_that_is_silent_does_not_hold_up_the_end(void)
{
    trp_system *system = system_open(TRP_LOG_ERROR);
    dns_begin(&dns);
    dns_end(&dns); /* no server is there any more */
    trpi_seed_dns *seeds = look_up(system, "seeds.example", 2552);
    trpi_seed_dns_stop(seeds);
    UNIT_EQUAL(calls, 0);
    trpi_seed_dns_options options = { .name = "x", .nameserver = "no server", .interval_ms = 1 };
    UNIT_EQUAL(trpi_seed_dns_start(system, &options, &seeds), TRP_ECONFIG);
    system_close(system);
}

/* ---- whole nodes ----------------------------------------------------------------------------- */

static trp_node *
member(const char *host, const char *port)
{
    char hostname[64], listen[64], server[64];
    trp_node *node = NULL;
    trp_node_error error = { "" };
    snprintf(hostname, sizeof hostname, "remote.hostname=%s", host);
    snprintf(listen, sizeof listen, "cluster.seed-dns.port=%s", port);
    snprintf(server, sizeof server, "cluster.seed-dns.nameserver=%s", dns.address);
    char own[64];
    snprintf(own, sizeof own, "remote.port=%s", port);
    const char *extra[] = { hostname,
                            own,
                            listen,
                            server,
                            "cluster.seed-dns.name=nodes.example",
                            "cluster.seed-dns.interval=50ms",
                            "cluster.seed-node-timeout=300ms",
                            NULL };
    if (node_open(extra, &node, &error) != TRP_OK) {
        printf("  %s\n", error.text);
        return NULL;
    }
    return node;
}

static size_t
members_up(trp_node *node)
{
    trp_member members[4];
    size_t count = 0, up = 0;
    if (trp_cluster_members(trp_node_system(node), members, 4, &count) != TRP_OK) {
        return 0;
    }
    for (size_t i = 0; i < count && i < 4; i++) {
        up += members[i].status == TRP_MEMBER_UP ? 1 : 0;
    }
    return up;
}

/* One that finds only itself waits; with the second record both are one cluster. */
static void
nodes_find_each_other_by_dns_and_make_one_cluster(void)
{
    char port[8];
    dns_begin(&dns);
    dns_add(&dns, DNS_A, "127.0.0.1", 0);
    trp_node *first = NULL, *second = NULL;
    for (int i = 0; i < 20 && second == NULL; i++) { /* until no other program takes the port */
        trp_node_close(first);
        UNIT_REQUIRE(node_open(NULL, &first, NULL) == TRP_OK);
        snprintf(port, sizeof port, "%s", strrchr(trp_node_address(first), ':') + 1);
        trp_node_close(first);
        first = member("127.0.0.1", port);
        second = first != NULL ? member("127.0.0.2", port) : NULL;
    }
    UNIT_REQUIRE(first != NULL && second != NULL);
    uint32_t asked = atomic_load(&dns.asked);
    UNIT_WAIT(atomic_load(&dns.asked) > asked + 20, 60000);
    UNIT_EQUAL(members_up(first), 0);
    dns_add(&dns, DNS_A, "127.0.0.2", 0);
    UNIT_WAIT(members_up(first) == 2 && members_up(second) == 2, 60000);
    UNIT_WAIT((asked = atomic_load(&dns.asked), usleep(200000), asked == atomic_load(&dns.asked)),
              60000); /* joined: no look-up any more */
    trp_node_close(second);
    trp_node_close(first);
    dns_end(&dns);
}

UNIT_BEGIN("seed_dns")
UNIT(addresses_of_a_host_name_are_found_sorted_and_once)
UNIT(srv_records_have_hosts_and_ports_and_change)
UNIT(of_too_many_the_lowest_are_taken)
UNIT(of_hundreds_in_any_order_the_lowest_are_taken)
UNIT(a_server_that_is_silent_does_not_hold_up_the_end)
UNIT(nodes_find_each_other_by_dns_and_make_one_cluster)
UNIT_END
