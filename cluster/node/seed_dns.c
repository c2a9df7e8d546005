/* seed_dns.c - see the header.
 *
 * Why.     Where nodes come and go on changing addresses (containers) a list of seed nodes cannot
 *          be written. The name service has one, but it may be late, incomplete and in any order:
 *          so it is asked at every retry, and the engine decides from which addresses a cluster may
 *          be formed (membership-seed-J8). The resolver of libc would block for as long as the name
 *          service takes, cannot be given a name server, and has no SRV.
 * Shape.   thread: ask -> c-ares -> found() -> wait for the interval, or for the end -> ask
 *          A channel of c-ares lives for one question: a changed /etc/resolv.conf is seen.
 * Limits.  TRP_CLUSTER_SEEDS_MAX addresses, the lowest ones, so that all nodes take the same.
 * Tests.   tests/unit/node/seed_dns_test.c
 */
#include "cluster/node/seed_dns.h"

#ifdef HAVE_CARES

#include <ares.h>
#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "base/assert.h"

#define LOG_MS 10000u
#define TRIES 2
#define ANSWER_BYTES_MAX 4096 /* over UDP; c-ares asks over TCP for more */

struct trpi_seed_dns {
    trp_system *system;
    trpi_seed_dns_options options;
    pthread_t thread;
    int end_fd; /* readable: end */
    /* the thread's own */
    uint64_t log_ms;
    const char *failure; /* of the question in progress; NULL: none */
    uint32_t found_count, told_count;
    trpi_address found[TRP_CLUSTER_SEEDS_MAX], told[TRP_CLUSTER_SEEDS_MAX];
};

static bool
is_srv(const trpi_seed_dns *dns)
{
    return dns->options.name[0] == '_';
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Keep addresses sorted and once each; of too many the highest is dropped, in any order of
 * arrival. */
static void
address_keep(trpi_seed_dns *dns, const trpi_address *address)
{
    uint32_t at = dns->found_count;
    while (at > 0 && trpi_address_compare(address, &dns->found[at - 1]) < 0) {
        at--;
    }
    if (at == TRP_CLUSTER_SEEDS_MAX ||
        (at > 0 && trpi_address_equal(address, &dns->found[at - 1]))) {
        return;
    }
    if (dns->found_count < TRP_CLUSTER_SEEDS_MAX) {
        dns->found_count++;
    }
    memmove(&dns->found[at + 1], &dns->found[at],
            (dns->found_count - 1 - at) * sizeof dns->found[0]);
    dns->found[at] = *address;
}

static void
host_take(trpi_seed_dns *dns, const char *host, uint16_t port)
{
    trpi_address address = dns->options.like;
    size_t bytes = strlen(host);
    if (bytes > 0 && host[bytes - 1] == '.') {
        bytes--;
    }
    if (bytes > TRPI_HOST_BYTES_MAX) {
        return;
    }
    memset(address.host, 0, sizeof address.host);
    memcpy(address.host, host, bytes);
    address.port = port;
    if (port != 0 && trpi_address_is_valid(&address)) {
        address_keep(dns, &address);
    }
}

static void
on_srv(void *arg, int status, int timeouts, unsigned char *bytes, int count)
{
    trpi_seed_dns *dns = arg;
    struct ares_srv_reply *first = NULL;
    (void)timeouts;
    if (status == ARES_SUCCESS) {
        status = ares_parse_srv_reply(bytes, count, &first);
    }
    if (status != ARES_SUCCESS) {
        dns->failure = ares_strerror(status);
        return;
    }
    for (const struct ares_srv_reply *srv = first; srv != NULL; srv = srv->next) {
        host_take(dns, srv->host, srv->port);
    }
    ares_free_data(first);
}

static void
on_hosts(void *arg, int status, int timeouts, struct ares_addrinfo *result)
{
    trpi_seed_dns *dns = arg;
    (void)timeouts;
    if (status != ARES_SUCCESS) {
        dns->failure = ares_strerror(status);
        return;
    }
    for (const struct ares_addrinfo_node *n = result->nodes; n != NULL; n = n->ai_next) {
        char host[INET6_ADDRSTRLEN];
        const void *raw =
            n->ai_family == AF_INET6
                ? (const void *)&((const struct sockaddr_in6 *)(const void *)n->ai_addr)->sin6_addr
                : &((const struct sockaddr_in *)(const void *)n->ai_addr)->sin_addr;
        if (inet_ntop(n->ai_family, raw, host, sizeof host) != NULL) {
            host_take(dns, host, dns->options.port);
        }
    }
    ares_freeaddrinfo(result);
}

/* ---- one question ---------------------------------------------------------------------------- */

static int
channel_open(const trpi_seed_dns_options *o, ares_channel *ret_channel)
{
    static char dns_only[] = "b"; /* c-ares copies it */
    bool own = o->nameserver != NULL && o->nameserver[0] != '\0';
    struct ares_options options = { .flags = ARES_FLAG_EDNS,
                                    .ednspsz = ANSWER_BYTES_MAX,
                                    .timeout = TRPI_SEED_DNS_TIMEOUT_MS,
                                    .tries = TRIES,
                                    .lookups = dns_only };
    int mask = ARES_OPT_FLAGS | ARES_OPT_EDNSPSZ | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
               (own ? ARES_OPT_LOOKUPS : 0);
    int status = ares_init_options(ret_channel, &options, mask);
    if (status == ARES_SUCCESS && own) {
        status = ares_set_servers_ports_csv(*ret_channel, o->nameserver);
        if (status != ARES_SUCCESS) {
            ares_destroy(*ret_channel);
        }
    }
    return status;
}

/* Run c-ares until the question is answered or given up. false: the thread is to end. */
static bool
channel_drive(trpi_seed_dns *dns, ares_channel channel)
{
    for (;;) {
        ares_socket_t sockets[ARES_GETSOCK_MAXNUM];
        struct pollfd fds[ARES_GETSOCK_MAXNUM + 1] = { { .fd = dns->end_fd, .events = POLLIN } };
        unsigned mask = (unsigned)ares_getsock(channel, sockets, ARES_GETSOCK_MAXNUM);
        nfds_t count = 1;
        for (unsigned i = 0; i < ARES_GETSOCK_MAXNUM; i++) {
            /* the macros of c-ares shift an int by 31 */
            short events = (short)((mask >> i & 1 ? POLLIN : 0) |
                                   (mask >> (i + ARES_GETSOCK_MAXNUM) & 1 ? POLLOUT : 0));
            if (events != 0) {
                fds[count++] = (struct pollfd){ .fd = sockets[i], .events = events };
            }
        }
        if (count == 1) {
            return true;
        }
        struct timeval most = { .tv_sec = 1 }, room;
        const struct timeval *wait = ares_timeout(channel, &most, &room);
        (void)poll(fds, count, (int)(wait->tv_sec * 1000 + wait->tv_usec / 1000 + 1));
        if (fds[0].revents != 0) {
            return false;
        }
        /* questions that have timed out */
        ares_process_fd(channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
        for (nfds_t i = 1; i < count; i++) {
            ares_process_fd(channel, (fds[i].revents & ~POLLOUT) != 0 ? fds[i].fd : ARES_SOCKET_BAD,
                            (fds[i].revents & POLLOUT) != 0 ? fds[i].fd : ARES_SOCKET_BAD);
        }
    }
}

static bool
lookup_run(trpi_seed_dns *dns)
{
    ares_channel channel;
    dns->found_count = 0;
    dns->failure = NULL;
    int status = channel_open(&dns->options, &channel);
    if (status != ARES_SUCCESS) {
        dns->failure = ares_strerror(status);
        return true;
    }
    if (is_srv(dns)) {
        ares_query(channel, dns->options.name, 1 /* IN */, 33 /* SRV */, on_srv, dns);
    } else {
        struct ares_addrinfo_hints hints = { .ai_family = AF_UNSPEC };
        ares_getaddrinfo(channel, dns->options.name, NULL, &hints, on_hosts, dns);
    }
    bool go_on = channel_drive(dns, channel);
    ares_destroy(channel); /* ends open questions with ARES_EDESTRUCTION */
    return go_on;
}

/* ---- again and again ------------------------------------------------------------------------- */

/* Report a change at once, a failure once in a while. */
static void
seeds_report(trpi_seed_dns *dns)
{
    uint64_t now_ms = trpi_world_mono_ns(trpi_system_world(dns->system)) / 1000000;
    const char *name = dns->options.name;
    if (dns->found_count == 0) {
        if (now_ms >= dns->log_ms) {
            dns->log_ms = now_ms + LOG_MS;
            trpi_log(dns->system, TRP_LOG_WARNING, "node",
                     "no seed nodes at %s: %s; the name is looked up again in %u ms", name,
                     dns->failure != NULL ? dns->failure : "none in the answer",
                     dns->options.interval_ms);
        }
        return;
    }
    bool same = dns->found_count == dns->told_count;
    for (uint32_t i = 0; i < dns->found_count && same; i++) {
        same = trpi_address_equal(&dns->found[i], &dns->told[i]);
    }
    if (!same) {
        char first[TRPI_ADDRESS_TEXT_BYTES];
        trpi_log(dns->system, TRP_LOG_INFO, "node", "%u seed nodes at %s, the first is %s",
                 dns->found_count, name, trpi_address_format(&dns->found[0], first, sizeof first));
        memcpy(dns->told, dns->found, dns->found_count * sizeof dns->found[0]);
        dns->told_count = dns->found_count;
    }
}

static void *
lookup_thread(void *arg)
{
    trpi_seed_dns *dns = arg;
    bool go_on = true;
    while (go_on && lookup_run(dns)) {
        seeds_report(dns);
        go_on = dns->found_count == 0 ||
                dns->options.found(dns->options.arg, dns->found, dns->found_count);
        struct pollfd end = { .fd = dns->end_fd, .events = POLLIN };
        if (go_on && poll(&end, 1, (int)dns->options.interval_ms) > 0) {
            break;
        }
    }
    return NULL;
}

trp_err
trpi_seed_dns_start(trp_system *system, const trpi_seed_dns_options *options,
                    trpi_seed_dns **ret_dns)
{
    trpi_assert(options->name[0] != '\0' && options->interval_ms > 0);
    ares_channel probe;
    if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS) {
        return TRP_ENOMEM;
    }
    int status = channel_open(options, &probe);
    if (status != ARES_SUCCESS) {
        ares_library_cleanup();
        return status == ARES_ENOMEM ? TRP_ENOMEM : TRP_ECONFIG;
    }
    ares_destroy(probe);
    trpi_seed_dns *dns = trpi_alloc(sizeof *dns);
    int end_fd = eventfd(0, EFD_CLOEXEC);
    if (dns != NULL) {
        dns->system = system;
        dns->options = *options;
        dns->end_fd = end_fd;
    }
    if (dns == NULL || end_fd < 0 || pthread_create(&dns->thread, NULL, lookup_thread, dns) != 0) {
        if (end_fd >= 0) {
            (void)close(end_fd);
        }
        trpi_free(dns);
        ares_library_cleanup();
        return TRP_ENOMEM;
    }
    *ret_dns = dns;
    return TRP_OK;
}

void
trpi_seed_dns_stop(trpi_seed_dns *dns)
{
    if (dns == NULL) {
        return;
    }
    uint64_t one = 1;
    (void)!write(dns->end_fd, &one, sizeof one); /* cannot fail: the first one */
    (void)pthread_join(dns->thread, NULL);
    (void)close(dns->end_fd);
    trpi_free(dns);
    ares_library_cleanup();
}

bool
trpi_seed_dns_is_built(void)
{
    return true;
}

#else

trp_err
trpi_seed_dns_start(trp_system *system, const trpi_seed_dns_options *options,
                    trpi_seed_dns **ret_dns)
{
    (void)system;
    (void)options;
    (void)ret_dns;
    return TRP_ECONFIG;
}

void
trpi_seed_dns_stop(trpi_seed_dns *dns)
{
    (void)dns;
}

bool
trpi_seed_dns_is_built(void)
{
    return false;
}

#endif
