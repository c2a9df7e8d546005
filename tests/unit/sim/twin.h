/* twin.h - scripts of calls that are run with the simulated sockets first, and then with the
 * machine's, which must give the same answers.
 *
 * Limits. The machine does some things later: a call is repeated until it gives the answer that is
 *         wanted, or until its deadline.
 */
#ifndef TESTS_UNIT_SIM_TWIN_H
#define TESTS_UNIT_SIM_TWIN_H

#include <errno.h>
#include <inttypes.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/net.h"
#include "base/world_virtual.h"
#include "sim/sim_net.h"
#include "tests/unit/unit.h"

/* ---- two sides ------------------------------------------------------------------------------- */

static const trpi_net_ops *net;
static trpi_world *world; /* NULL: of the machine */
static long answers[1024];
static int answers_count, answers_at;
static uint64_t script_seed, chance;
static int script_family;

static inline bool
is_machine(void)
{
    return world == NULL;
}

static inline void
answer_compare(long got, int line, const char *text)
{
    if (answers_at >= answers_count || got != answers[answers_at]) {
        printf("script of seed %" PRIu64 ", line %d: %s: the machine says %ld, the twin %ld\n",
               script_seed, line, text, got, answers_at < answers_count ? answers[answers_at] : 0);
        UNIT_REQUIRE(answers_at < answers_count && got == answers[answers_at]);
    }
    answers_at++;
}

static inline void
answer_record(long got)
{
    UNIT_REQUIRE(answers_count < (int)(sizeof answers / sizeof answers[0]));
    answers[answers_count++] = got;
}

/* Evaluate on both sides, and compare. */
#define SAME(expression)                                                                           \
    __extension__({                                                                                \
        long got_ = (long)(expression);                                                            \
        if (!is_machine()) {                                                                       \
            answer_record(got_);                                                                   \
        } else {                                                                                   \
            uint64_t until_ = unit_deadline_ms(10000);                                             \
            while (got_ != answers[answers_at] && unit_now_ms() < until_) {                        \
                unit_pause();                                                                      \
                got_ = (long)(expression);                                                         \
            }                                                                                      \
            answer_compare(got_, __LINE__, #expression);                                           \
        }                                                                                          \
        got_;                                                                                      \
    })

static inline void
both(void (*script)(void), uint64_t seed)
{
    trpi_virtual_options options = { .seed = 1, .net = &trpi_sim_net_ops };
    trpi_virtual *virt = NULL;
    trpi_sim_net *sim = NULL;

    script_seed = chance = seed;
    answers_count = answers_at = 0;
    UNIT_REQUIRE(trpi_virtual_new(&options, &virt) == TRP_OK);
    world = trpi_virtual_world(virt);
    net = trpi_world_net(world);
    UNIT_REQUIRE(trpi_sim_net_new(world, seed, &sim) == TRP_OK);
    script();
    UNIT_EQUAL(trpi_sim_net_open(sim, 0), 0); /* a script closes what it opens */
    UNIT_EQUAL(trpi_sim_net_misuses(sim), 0);
    trpi_sim_net_free(sim);
    trpi_world_free(world);
    world = NULL;
    net = &trpi_net_machine;
    chance = seed;
    script();
    UNIT_EQUAL(answers_at, answers_count);
}

static inline uint32_t
draw(uint32_t below)
{
    chance = chance * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(chance >> 33) % below;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static inline trpi_net_address
loopback(int family)
{
    trpi_net_address address = { .bytes = sizeof(struct sockaddr_in) };

    address.of.any.sa_family = (sa_family_t)family;
    if (family == AF_INET) {
        address.of.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    } else {
        address.bytes = sizeof(struct sockaddr_in6);
        address.of.v6.sin6_addr = in6addr_loopback;
    }
    return address;
}

static inline trpi_net_address
named(const char *name) /* abstract */
{
    trpi_net_address address = { .bytes = 0 };

    address.of.local.sun_family = AF_UNIX;
    address.bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                                (size_t)snprintf(address.of.local.sun_path + 1, 64, "%s-%d", name,
                                                 (int)getpid()));
    return address;
}

static inline trpi_net_address
some_address(int family)
{
    return family == AF_UNIX ? named("twin") : loopback(family);
}

/* Return what is ready now: the first report of a set of its own. */
static inline uint32_t
mask(int number)
{
    trpi_net_set *set = NULL;
    trpi_net_report report = { 0, 0 };

    UNIT_REQUIRE(net->set_new(world, NULL, NULL, &set) == 0);
    UNIT_REQUIRE(net->set_add(set, number, 7) == 0);
    if (net->set_wait(set, &report, 1, 0) == 1) {
        UNIT_EQUAL(report.key, 7);
    }
    net->set_remove(set, number);
    net->set_free(set);
    return report.events;
}

static inline uint32_t
reported(trpi_net_set *set)
{
    trpi_net_report report[4];
    int count = net->set_wait(set, report, 4, 0);

    return count == 0 ? 0 : report[0].events;
}

static inline ssize_t
put(int number, size_t bytes)
{
    static char text[65536];
    struct iovec iov[2] = { { text, bytes / 2 }, { text, bytes - bytes / 2 } };

    return net->write(world, number, iov, 2);
}

static inline ssize_t
get(int number, size_t bytes)
{
    static char text[262144];
    struct iovec iov = { text, bytes };

    return net->read(world, number, &iov, 1);
}

static inline int
error_of(int number)
{
    int error = -1;
    socklen_t bytes = sizeof error;

    UNIT_REQUIRE(net->option_get(world, number, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0);
    return error;
}

static inline int
opt(int number, int level, int name, int value)
{
    return net->option_set(world, number, level, name, &value, sizeof value);
}

static inline int
opt_get(int number, int level, int name)
{
    int value = -77;
    socklen_t bytes = sizeof value;
    int result = net->option_get(world, number, level, name, &value, &bytes);

    return result < 0 ? result : value;
}

static inline int
linger(int number)
{
    struct linger off = { 1, 0 };

    return net->option_set(world, number, SOL_SOCKET, SO_LINGER, &off, sizeof off);
}

static inline int
peer(int number)
{
    trpi_net_address address = { .bytes = 0 };

    return net->peer_address(world, number, &address);
}

static inline bool
is_settled(int number)
{
    struct tcp_info info = { .tcpi_state = TCP_CLOSE };
    socklen_t bytes = sizeof info;
    int waiting = 0;

    return getsockopt(number, IPPROTO_TCP, TCP_INFO, &info, &bytes) < 0 ||
           info.tcpi_state == TCP_CLOSE || ioctl(number, SIOCOUTQ, &waiting) < 0 || waiting == 0;
}

/* Wait until the machine's ends have acknowledged all. */
static inline void
settle(const int ends[2])
{
    for (int i = 0; i < 2 && is_machine() && script_family != AF_UNIX; i++) {
        int on = 1; /* acknowledge now, and not 40 ms later */

        (void)setsockopt(ends[1 - i], IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
        UNIT_WAIT(ends[i] < 0 || is_settled(ends[i]), 5000);
    }
}

static inline int
listener(int family, trpi_net_address *ret_address)
{
    trpi_net_address address = some_address(family);
    int number = net->socket(world, family, SOCK_STREAM);

    UNIT_REQUIRE(number >= 0);
    UNIT_REQUIRE(net->bind(world, number, &address) == 0);
    UNIT_REQUIRE(net->listen(world, number, 8) == 0);
    UNIT_REQUIRE(net->local_address(world, number, ret_address) == 0);
    return number;
}

/* ends[0] has connected to ends[1]. */
static inline void
connection(int family, int ends[2])
{
    trpi_net_address address, from;
    int server = listener(family, &address);

    ends[0] = net->socket(world, family, SOCK_STREAM);
    UNIT_REQUIRE(ends[0] >= 0);
    SAME(net->connect(world, ends[0], &address));
    SAME((ends[1] = net->accept(world, server, &from)) >= 0);
    SAME(mask(ends[0]));
    SAME(net->close(world, server));
    if (family != AF_UNIX) {
        SAME(net->connect(world, ends[0], &address));
    }
}

static inline void
close_both(int ends[2])
{
    for (int i = 0; i < 2; i++) {
        if (ends[i] >= 0) {
            SAME(net->close(world, ends[i]));
        }
    }
}

static const int families[] = { AF_INET, AF_INET6, AF_UNIX };

static inline void
in_families(void (*script)(void), int count, uint64_t seed)
{
    for (int i = 0; i < count; i++) {
        script_family = families[i];
        both(script, seed);
    }
}

#endif
