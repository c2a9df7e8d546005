/* link_test.c - the tcp drivers alone, on nng and on the poller: bytes arrive in order, short sends
 * continue, closed() is called once. */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/world.h"
#include "remote/nng/link_nng.h"
#include "io/resolver.h"
#include "remote/poll/link_poll.h"
#include "tests/unit/remote/answers.h"
#include "tests/unit/remote/pair.h"
#include "tests/unit/remote/period.h"
#include "tests/unit/unit.h"

static const trpi_transport_ops *ops = &trpi_link_nng_ops;

typedef struct end {
    _Atomic(trpi_link *) link;
    _Atomic uint32_t connected, written, closed;
    _Atomic uint64_t bytes;
    _Atomic uint64_t wrong;
    atomic_bool in_bytes;
} end;
static end dialled, accepted;
static atomic_bool refuse;
static atomic_bool keep; /* the test releases dialled links itself */
static _Atomic uint32_t accepts;

static bool
on_accepted(void *arg, trpi_link *link, const char *peer, void **ret_user)
{
    (void)arg;
    UNIT_TRUE(strncmp(peer, "127.0.0.1:", 10) == 0);
    atomic_fetch_add(&accepts, 1);
    atomic_store(&accepted.link, link);
    *ret_user = &accepted;
    return !atomic_load(&refuse);
}
static void
on_connected(void *user, trpi_link *link)
{
    end *e = user;
    atomic_store(&e->link, link);
    atomic_fetch_add(&e->connected, 1);
}
static void
on_bytes(void *user, trpi_link *link, const uint8_t *bytes, size_t count)
{
    end *e = user;
    (void)link;
    UNIT_FALSE(atomic_exchange(&e->in_bytes, true)); /* transport-T2 */
    uint64_t at = atomic_load(&e->bytes);
    atomic_fetch_add(&e->wrong, period_wrong(bytes, count, at));
    atomic_fetch_add(&e->bytes, count);
    atomic_store(&e->in_bytes, false);
}
static void
on_written(void *user, trpi_link *link)
{
    end *e = user;
    (void)link;
    atomic_fetch_add(&e->written, 1);
}
static void
on_closed(void *user, trpi_link *link, trp_err err, const char *reason)
{
    end *e = user;
    UNIT_TRUE(err != TRP_OK && reason != NULL);
    if (e != &dialled || !atomic_load(&keep)) {
        ops->release(link);
    }
    atomic_fetch_add(&e->closed, 1);
}
static const trpi_transport_events events = { on_accepted, on_connected, on_bytes,
                                              on_written,  on_closed,    NULL };

static trpi_world *world;
static trp_system *below; /* whose threads poll; NULL: the driver has its own */
static bool on_poller;
static trpi_transport *transport;
static uint16_t port;

/* The argument of ops->open(). */
static void *
driver_arg(void)
{
    static trpi_link_poll_arg arg;
    if (below == NULL) {
        return NULL;
    }
    UNIT_REQUIRE(trpi_system_poller(below, &arg.poller) == TRP_OK);
    arg.sched = trpi_system_sched(below);
    return &arg;
}

static void
driver_start(void)
{
    memset(&dialled, 0, sizeof dialled);
    memset(&accepted, 0, sizeof accepted);
    atomic_store(&refuse, false);
    atomic_store(&accepts, 0);
    UNIT_REQUIRE(trpi_world_real_new(&world) == TRP_OK);
    below = on_poller ? pair_system("below") : NULL;
    UNIT_REQUIRE(ops->open(driver_arg(), world, &events, NULL, &transport) == TRP_OK);
    UNIT_REQUIRE(ops->listen(transport, "127.0.0.1", 0, &port) == TRP_OK);
    UNIT_TRUE(port != 0);
    ops->accept(transport);
}
static void
driver_free(void)
{
    ops->free(transport);
    if (below != NULL) {
        UNIT_EQUAL(trp_system_stop(below, 60000), TRP_OK);
        trp_system_free(below);
        below = NULL;
    }
    trpi_world_free(world);
}
static void
driver_finish(void)
{
    ops->stop(transport);
    driver_free();
}

static void
connect_to(const char *host, uint16_t to)
{
    trpi_link *link = NULL;
    UNIT_REQUIRE(ops->connect(transport, host, to, 60000, &dialled, &link) == TRP_OK);
}

/* REMOTE-60 */
static void
bytes_arrive_in_order_and_short_sends_go_on(void)
{
    enum { BYTES = 24u << 20 };
    driver_start();
    connect_to("127.0.0.1", port);
    UNIT_WAIT(atomic_load(&dialled.connected) == 1 && atomic_load(&accepts) == 1, 60000);
    uint8_t *data = trpi_alloc(BYTES);
    UNIT_REQUIRE(data != NULL);
    period_fill(data, BYTES);
    trpi_iov iov[TRPI_TRANSPORT_IOV_MAX];
    size_t at = 0;
    for (int i = 0; i < TRPI_TRANSPORT_IOV_MAX; i++) { /* eight parts of odd sizes */
        iov[i].data = data + at;
        iov[i].bytes =
            i < TRPI_TRANSPORT_IOV_MAX - 1 ? 1000001u * (unsigned)(i + 1) / 2 : BYTES - at;
        at += iov[i].bytes;
    }
    bool done = false;
    UNIT_EQUAL(ops->write(atomic_load(&dialled.link), iov, TRPI_TRANSPORT_IOV_MAX, &done), TRP_OK);
    UNIT_WAIT(atomic_load(&accepted.bytes) == BYTES, 60000);
    UNIT_WAIT(done || atomic_load(&dialled.written) == 1, 60000);
    UNIT_EQUAL(atomic_load(&accepted.wrong), 0);
    trpi_iov more = { data + BYTES % PERIOD, 1000 };
    uint32_t written = atomic_load(&dialled.written);
    UNIT_EQUAL(ops->write(atomic_load(&dialled.link), &more, 1, NULL), TRP_OK); /* never done */
    UNIT_WAIT(atomic_load(&dialled.written) == written + 1, 60000);
    UNIT_WAIT(atomic_load(&accepted.bytes) == BYTES + 1000, 60000);
    UNIT_EQUAL(atomic_load(&accepted.wrong), 0);
    driver_finish();
    UNIT_EQUAL(atomic_load(&dialled.closed), 1);
    UNIT_EQUAL(atomic_load(&accepted.closed), 1);
    trpi_free(data);
}

/* transport-T3: connect to a port without listener, and to a name that does not exist */
static void
a_dial_that_reaches_nobody_is_closed_once(void)
{
    struct sockaddr_in mute = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t bytes = sizeof mute;
    int fd = socket(AF_INET, SOCK_STREAM, 0); /* keeps the port from others, and does not listen */

    UNIT_REQUIRE(fd >= 0 && bind(fd, (struct sockaddr *)&mute, sizeof mute) == 0 &&
                 getsockname(fd, (struct sockaddr *)&mute, &bytes) == 0);
    driver_start();
    connect_to("127.0.0.1", ntohs(mute.sin_port));
    UNIT_WAIT(atomic_load(&dialled.closed) == 1, 60000);
    UNIT_EQUAL(atomic_load(&dialled.connected), 0);
    driver_finish();
    (void)close(fd);
    driver_start();
    connect_to("no-such-host.invalid", 1);
    UNIT_WAIT(atomic_load(&dialled.closed) == 1, 60000);
    driver_finish();
}

/* REMOTE-02: names are resolved by us, all addresses tried */
static void
a_name_is_resolved_and_found_in_the_cache_the_second_time(void)
{
    trpi_resolved resolved;
    trpi_resolve_blocking("localhost", &resolved);
    driver_start();
    if (resolved.count > 0) { /* a machine without /etc/hosts has nothing to show here */
        connect_to("localhost", port);
        UNIT_WAIT(atomic_load(&dialled.connected) == 1, 60000);
        connect_to("localhost", port);
        UNIT_WAIT(atomic_load(&dialled.connected) == 2, 60000);
    }
    driver_finish();
    UNIT_EQUAL(atomic_load(&dialled.closed), resolved.count > 0 ? 2 : 0);
}

static void
a_refused_connection_ends_without_a_closed_on_this_side(void)
{
    driver_start();
    atomic_store(&refuse, true);
    connect_to("127.0.0.1", port);
    UNIT_WAIT(atomic_load(&dialled.closed) == 1, 60000);
    driver_finish();
    UNIT_EQUAL(atomic_load(&accepted.closed), 0);
}

/* The refusing callback and the reaper race for the link: the last one frees it. */
static void
many_connections_are_refused_one_after_the_other(void)
{
    enum { REFUSALS = 500 };
    driver_start();
    atomic_store(&refuse, true);
    for (uint32_t i = 1; i <= REFUSALS; i++) {
        connect_to("127.0.0.1", port);
        UNIT_WAIT(atomic_load(&dialled.closed) == i, 60000);
    }
    driver_finish();
    UNIT_EQUAL(atomic_load(&accepts), REFUSALS);
    UNIT_EQUAL(atomic_load(&accepted.closed), 0);
}

/* link-nng-H1: a write after close is refused, it does not hang */
static void
a_write_after_close_is_refused(void)
{
    driver_start();
    connect_to("127.0.0.1", port);
    UNIT_WAIT(atomic_load(&dialled.connected) == 1, 60000);
    trpi_link *link = atomic_load(&dialled.link);
    trpi_iov iov = { "x", 1 };
    atomic_store(&keep, true);
    ops->close(link);
    UNIT_EQUAL(ops->write(link, &iov, 1, NULL), TRP_ECLOSED);
    ops->close(link);
    UNIT_WAIT(atomic_load(&accepted.closed) == 1 && atomic_load(&dialled.closed) == 1, 60000);
    atomic_store(&keep, false);
    ops->release(link);
    driver_finish();
}

static _Atomic uint32_t names_resolved;

/* A clock that never advances: no cached name expires. */
static uint64_t
names_mono_ns(trpi_world *names_world)
{
    (void)names_world;
    return atomic_load(&names_resolved);
}
static const trpi_world_ops names_world_ops = { .name = "names", .mono_ns = names_mono_ns };

static void
on_resolved(void *arg, const trpi_resolved *resolved)
{
    (void)arg;
    UNIT_EQUAL(resolved->count, 1);
    atomic_fetch_add(&names_resolved, 1);
}

/* TRPI_RESOLVER_CACHE_MAX, and one past it: the oldest goes. No name server is asked for these. */
static void
so_many_names_are_kept_and_not_one_more(void)
{
    trpi_resolver *resolver = NULL;
    trpi_resolved resolved;
    trpi_world clock = { .ops = &names_world_ops };
    char name[16];
    UNIT_REQUIRE(trpi_resolver_new(&clock, trpi_resolve_blocking, &resolver) == TRP_OK);
    atomic_store(&names_resolved, 0);
    for (uint32_t i = 1; i <= TRPI_RESOLVER_CACHE_MAX + 1; i++) {
        snprintf(name, sizeof name, "127.%u", i); /* no numeric host: the last three bytes in one */
        UNIT_FALSE(trpi_resolver_now(resolver, name, &resolved));
        UNIT_EQUAL(trpi_resolver_start(resolver, name, on_resolved, NULL), TRP_OK);
        UNIT_WAIT(atomic_load(&names_resolved) == i, 60000);
        UNIT_TRUE(trpi_resolver_now(resolver, name, &resolved));
        UNIT_EQUAL(trpi_resolver_now(resolver, "127.1", &resolved), i <= TRPI_RESOLVER_CACHE_MAX);
    }
    UNIT_TRUE(trpi_resolver_now(resolver, "127.2", &resolved));
    trpi_resolver_free(resolver);
}

/* TRPI_RESOLVER_ADDRESSES_MAX, and one past it: the first ones count, in their order; what cannot
 * be used does not. */
static void
of_many_addresses_the_first_are_tried(void)
{
    struct sockaddr_in numbers[TRPI_RESOLVER_ADDRESSES_MAX + 1];
    struct sockaddr_in6 scoped = { .sin6_family = AF_INET6, .sin6_scope_id = 1 };
    struct addrinfo found[TRPI_RESOLVER_ADDRESSES_MAX + 2];
    trpi_resolved resolved = { 0 };
    scoped.sin6_addr.s6_addr[0] = 0xfe;
    scoped.sin6_addr.s6_addr[1] = 0x80;
    memset(numbers, 0, sizeof numbers);
    memset(found, 0, sizeof found);
    found[0] = (struct addrinfo){ .ai_addr = (struct sockaddr *)(void *)&scoped,
                                  .ai_addrlen = sizeof scoped };
    for (uint32_t i = 0; i <= TRPI_RESOLVER_ADDRESSES_MAX; i++) {
        numbers[i].sin_family = AF_INET;
        numbers[i].sin_addr.s_addr = htonl(0x0a000001u + i); /* 10.0.0.1 ... */
        found[i].ai_next = &found[i + 1];
        found[i + 1].ai_addr = (struct sockaddr *)(void *)&numbers[i];
        found[i + 1].ai_addrlen = sizeof numbers[i];
    }
    trpi_resolved_take(&found[0], &resolved);
    UNIT_EQUAL(resolved.count, TRPI_RESOLVER_ADDRESSES_MAX);
    UNIT_TEXT(resolved.hosts[0], "10.0.0.1");
    UNIT_TEXT(resolved.hosts[TRPI_RESOLVER_ADDRESSES_MAX - 1], "10.0.0.8");
    resolved.count = 0;
    found[0].ai_next = NULL;
    trpi_resolved_take(&found[0], &resolved);
    UNIT_EQUAL(resolved.count, 0);
    UNIT_TEXT(resolved.reason, "no usable address");
}

static _Atomic bool silent;
static _Atomic uint32_t asked, told_stopping;

/* A name server that does not answer. */
static void
resolve_slowly(const char *host, trpi_resolved *ret_resolved)
{
    (void)host;
    atomic_fetch_add(&asked, 1);
    while (atomic_load(&silent)) {
        unit_pause();
    }
    ret_resolved->count = 1;
}

static void
on_stopping(void *arg, const trpi_resolved *resolved)
{
    (void)arg;
    UNIT_EQUAL(resolved->count, 0);
    atomic_fetch_add(&told_stopping, 1);
}

/* All threads wait, and one name more: that one is told at once, the others when the server
 * answers, although resolver and world are gone. */
static void
a_stop_waits_for_no_name_server(void)
{
    trpi_resolver *resolver = NULL;
    UNIT_REQUIRE(trpi_world_real_new(&world) == TRP_OK);
    UNIT_REQUIRE(trpi_resolver_new(world, resolve_slowly, &resolver) == TRP_OK);
    atomic_store(&silent, true);
    for (uint32_t i = 0; i <= TRPI_RESOLVER_THREADS; i++) {
        UNIT_EQUAL(trpi_resolver_start(resolver, "slow", on_stopping, NULL), TRP_OK);
    }
    UNIT_WAIT(atomic_load(&asked) == TRPI_RESOLVER_THREADS, 60000);
    trpi_resolver_free(resolver);
    trpi_world_free(world);
    UNIT_EQUAL(atomic_load(&told_stopping), 1);
    atomic_store(&silent, false);
    UNIT_WAIT(atomic_load(&told_stopping) == TRPI_RESOLVER_THREADS + 1, 60000);
    UNIT_EQUAL(atomic_load(&asked), TRPI_RESOLVER_THREADS);
}

static void
many_links_that_come_and_go_are_all_told(void)
{
    enum { LINKS = 200 };
    static trpi_link *links[LINKS];
    driver_start();
    atomic_store(&keep, true);
    for (uint32_t i = 0; i < LINKS; i++) {
        UNIT_REQUIRE(ops->connect(transport, "127.0.0.1", port, 60000, &dialled, &links[i]) ==
                     TRP_OK);
        if (i % 3 == 0) {
            ops->close(links[i]); /* while dialling */
        }
    }
    ops->stop(transport);
    for (uint32_t i = 0; i < LINKS; i++) {
        ops->release(links[i]); /* transport-T4 */
    }
    atomic_store(&keep, false);
    driver_free();
    UNIT_EQUAL(atomic_load(&dialled.closed), LINKS);
    UNIT_EQUAL(atomic_load(&accepted.closed), atomic_load(&accepts));
}

static void
a_port_that_is_taken_is_named_as_such(void)
{
    driver_start();
    trpi_transport *second = NULL;
    uint16_t got = 0;
    UNIT_REQUIRE(ops->open(driver_arg(), world, &events, NULL, &second) == TRP_OK);
    UNIT_EQUAL(ops->listen(second, "127.0.0.1", port, &got), TRP_EADDRINUSE);
    UNIT_EQUAL(ops->listen(second, "no-such-host.invalid", 0, &got), TRP_EINVAL);
    ops->stop(second);
    ops->free(second);
    driver_finish();
}

/* A peer that connects early must not be answered before the owner knows the port. */
static void
who_calls_before_accept_is_served_by_it(void)
{
    driver_start();
    trpi_transport *early = NULL;
    uint16_t at = 0;
    UNIT_REQUIRE(ops->open(driver_arg(), world, &events, NULL, &early) == TRP_OK);
    UNIT_REQUIRE(ops->listen(early, "127.0.0.1", 0, &at) == TRP_OK);
    connect_to("127.0.0.1", at);
    UNIT_WAIT(atomic_load(&dialled.connected) == 1, 60000);
    UNIT_EQUAL(atomic_load(&accepts), 0);
    ops->accept(early);
    UNIT_WAIT(atomic_load(&accepts) == 1, 60000);
    ops->stop(early);
    ops->free(early);
    driver_finish();
}

ANSWERS_TESTS(bytes_arrive_in_order_and_short_sends_go_on, ops)

/* The same on the poller. */
#define POLL_TEST(test)                                                                            \
    static void test##_on_the_poller(void)                                                         \
    {                                                                                              \
        on_poller = true;                                                                          \
        answers.inner = &trpi_link_poll_ops;                                                       \
        ops = ops == &answers_ops ? ops : &trpi_link_poll_ops;                                     \
        test();                                                                                    \
        ops = answers.inner = &trpi_link_nng_ops;                                                  \
        on_poller = false;                                                                         \
    }
POLL_TEST(who_calls_before_accept_is_served_by_it)
POLL_TEST(bytes_arrive_in_order_and_short_sends_go_on)
POLL_TEST(a_dial_that_reaches_nobody_is_closed_once)
POLL_TEST(a_name_is_resolved_and_found_in_the_cache_the_second_time)
POLL_TEST(a_refused_connection_ends_without_a_closed_on_this_side)
POLL_TEST(many_connections_are_refused_one_after_the_other)
POLL_TEST(a_write_after_close_is_refused)
POLL_TEST(many_links_that_come_and_go_are_all_told)
POLL_TEST(a_port_that_is_taken_is_named_as_such)
POLL_TEST(bytes_arrive_in_order_and_short_sends_go_on_never_done)
POLL_TEST(bytes_arrive_in_order_and_short_sends_go_on_always_done)
POLL_TEST(bytes_arrive_in_order_and_short_sends_go_on_randomly_done)
#define UNIT_POLL(test) UNIT(test##_on_the_poller)

UNIT_BEGIN("link")
UNIT(who_calls_before_accept_is_served_by_it)
UNIT(bytes_arrive_in_order_and_short_sends_go_on)
UNIT(a_dial_that_reaches_nobody_is_closed_once)
UNIT(a_name_is_resolved_and_found_in_the_cache_the_second_time)
UNIT(so_many_names_are_kept_and_not_one_more)
UNIT(of_many_addresses_the_first_are_tried)
UNIT(a_stop_waits_for_no_name_server)
UNIT(a_refused_connection_ends_without_a_closed_on_this_side)
UNIT(many_connections_are_refused_one_after_the_other)
UNIT(a_write_after_close_is_refused)
UNIT(many_links_that_come_and_go_are_all_told)
UNIT(a_port_that_is_taken_is_named_as_such)
UNIT_ANSWERS(bytes_arrive_in_order_and_short_sends_go_on)
UNIT_POLL(who_calls_before_accept_is_served_by_it)
UNIT_POLL(bytes_arrive_in_order_and_short_sends_go_on)
UNIT_POLL(a_dial_that_reaches_nobody_is_closed_once)
UNIT_POLL(a_name_is_resolved_and_found_in_the_cache_the_second_time)
UNIT_POLL(a_refused_connection_ends_without_a_closed_on_this_side)
UNIT_POLL(many_connections_are_refused_one_after_the_other)
UNIT_POLL(a_write_after_close_is_refused)
UNIT_POLL(many_links_that_come_and_go_are_all_told)
UNIT_POLL(a_port_that_is_taken_is_named_as_such)
UNIT_POLL(bytes_arrive_in_order_and_short_sends_go_on_never_done)
UNIT_POLL(bytes_arrive_in_order_and_short_sends_go_on_always_done)
UNIT_POLL(bytes_arrive_in_order_and_short_sends_go_on_randomly_done)
UNIT_END
