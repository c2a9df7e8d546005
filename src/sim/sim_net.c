/* sim_net.c - sockets of a simulated network: events, hosts, numbers, and the table of functions.
 *
 * Why.     A server that owns sockets goes wrong in ways that no test bench produces twice: a write
 *          of a part, a reset between two reads, an edge in the middle of a callback. Here a seed
 *          decides them.
 * Shape.   One heap of events ordered by (due, number). Each call first carries out what is due by
 *          now, and at once what it causes without a delay. Nothing runs by itself: sets ask for a
 *          wait when something will be ready (on_due).
 *            sim_stream.c    TCP: connect, segments, ends, resets
 *            sim_local.c     Unix-domain streams, which have no events
 *            sim_datagram.c  UDP
 *            sim_address.c   hosts, ports, names       sim_option.c  socket options
 *            sim_set.c       readiness
 * Must hold.
 *   sim-net-N1  Chance has a stream of its own: no other draw of the world moves.
 *   sim-net-N2  What a stream carries arrives once, in order, whatever the delays; only a reset
 *       loses bytes, and both ends are told of it.
 *   sim-net-N3  Numbers of sockets are not used again, so that a call on a closed one is seen
 *       (trpi_sim_net_misuses).
 *   sim-net-N4  A short read or write means what it does on the machine: the next one would block.
 * Limits.  As Linux 6 answers, but: no SOCK_SEQPACKET, no Unix-domain datagrams, no multicast or
 *          broadcast, no out-of-band data. Of the answers on the way back only that of a connect
 *          has a delay of its own. A file that send_file() sends is the machine's.
 * Tests.   tests/unit/sim/sim_net_test.c, sim_twin_test.c, sim_twin_option_test.c,
 *          tests/sim/socket_test.c, tests/sim/tcp_test.c
 */
#include "sim/sim_net.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"
#include "sim/sim_socket.h"

#define EVENTS_SPARE 6u /* that a socket may need and that cannot wait: two ends, reset, ... */
#define EVENTS_MAX (64u * 1024u * 1024u)
#define SOCKETS_MAX (64u * 1024u * 1024u)
#define PARTS 1000u

/* ---- chance and time ------------------------------------------------------------------------- */

uint64_t
trpi_sim_draw(trpi_sim_net *net)
{
    uint64_t z = net->random += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

bool
trpi_sim_chance(trpi_sim_net *net, uint32_t of_1000)
{
    return of_1000 != 0 && trpi_sim_draw(net) % PARTS < of_1000;
}

uint64_t
trpi_sim_now(const trpi_sim_net *net)
{
    return trpi_world_mono_ns(net->world);
}

trpi_sim_net *
trpi_sim_of(trpi_world *world)
{
    return world->net;
}

trpi_mem_verdict
trpi_sim_link(trpi_sim_net *net, const sim_socket *from, uint32_t to, uint16_t port, bool connect,
              size_t bytes, uint64_t *ret_due_ns)
{
    trpi_mem_event asked = {
        net->hosts[from->host].name, net->hosts[to].name, port, connect, bytes, 0, 0
    };
    trpi_mem_verdict verdict = TRPI_MEM_PASS;

    *ret_due_ns = trpi_sim_now(net);
    if (from->host == to) {
        return TRPI_MEM_PASS;
    }
    if (net->link != NULL) {
        verdict = net->link(net->link_arg, &asked);
    }
    if (net->faults.delay_ns != 0) {
        asked.delay_ns += trpi_sim_draw(net) % net->faults.delay_ns;
    }
    *ret_due_ns += asked.delay_ns;
    return verdict;
}

/* ---- events ---------------------------------------------------------------------------------- */

bool
trpi_sim_events_reserve(trpi_sim_net *net, uint32_t more)
{
    uint64_t spare = (uint64_t)EVENTS_SPARE * (net->sockets_count + 1) + more;

    return spare < EVENTS_MAX &&
           TRPI_ARRAY_RESERVE(net, events, (uint32_t)spare, EVENTS_MAX) == TRP_OK;
}

static bool
event_is_before(const sim_event *a, const sim_event *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->number < b->number;
}

void
trpi_sim_event_add(trpi_sim_net *net, const sim_event *event)
{
    uint32_t at = net->events_count;
    sim_event put = *event;

    trpi_assert(net->events_count < net->events_room); /* trpi_sim_events_reserve() */
    put.number = net->events_number++;
    net->events_count++;
    for (; at > 0 && event_is_before(&put, &net->events[(at - 1) / 2]); at = (at - 1) / 2) {
        net->events[at] = net->events[(at - 1) / 2];
    }
    net->events[at] = put;
    put.socket->references++;
    trpi_sim_sets_due(net, &put);
}

static void
heap_sink(trpi_sim_net *net, uint32_t at)
{
    sim_event moved = net->events[at];

    for (;;) {
        uint32_t child = 2 * at + 1;

        if (child + 1 < net->events_count &&
            event_is_before(&net->events[child + 1], &net->events[child])) {
            child++;
        }
        if (child >= net->events_count || !event_is_before(&net->events[child], &moved)) {
            break;
        }
        net->events[at] = net->events[child];
        at = child;
    }
    net->events[at] = moved;
}

static void
event_take(trpi_sim_net *net, sim_event *ret_event)
{
    *ret_event = net->events[0];
    net->events_count--;
    if (net->events_count > 0) {
        net->events[0] = net->events[net->events_count];
        heap_sink(net, 0);
    }
}

void
trpi_sim_advance(trpi_sim_net *net)
{
    if (net->advancing) {
        return;
    }
    net->advancing = true;
    while (net->events_count > 0 && net->events[0].due_ns <= trpi_sim_now(net) &&
           trpi_sim_events_reserve(net, 4)) {
        sim_event event;

        event_take(net, &event);
        net->event_ns = event.due_ns;
        if (event.socket->type == SOCK_DGRAM) {
            trpi_sim_datagram_event(&event);
        } else {
            trpi_sim_stream_event(&event);
        }
        trpi_sim_socket_unref(event.socket);
    }
    net->advancing = false;
}

/* ---- sockets --------------------------------------------------------------------------------- */

int
trpi_sim_socket_new(trpi_sim_net *net, uint32_t host, int family, int type, sim_socket **ret)
{
    sim_socket *s = trpi_alloc(sizeof *s);

    if (s == NULL || !trpi_sim_events_reserve(net, EVENTS_SPARE)) {
        trpi_free(s);
        return -ENOMEM;
    }
    s->net = net;
    s->host = host;
    s->family = family;
    s->type = type;
    s->references = 1;
    s->number = -1;
    s->next = net->sockets;
    s->link = &net->sockets;
    if (s->next != NULL) {
        s->next->link = &s->next;
    }
    net->sockets = s;
    net->sockets_count++;
    *ret = s;
    return 0;
}

int
trpi_sim_socket_number(sim_socket *s)
{
    trpi_sim_net *net = s->net;
    sim_host *host = &net->hosts[s->host];

    if (host->open >= host->open_max) {
        return -EMFILE;
    }
    if (TRPI_ARRAY_RESERVE(net, numbers, 1, SOCKETS_MAX) != TRP_OK) {
        return -ENFILE;
    }
    s->number = TRPI_SIM_SOCKET_FIRST + (int)net->numbers_count;
    s->open = true;
    net->numbers[net->numbers_count++] = s;
    host->open++;
    return s->number;
}

sim_socket *
trpi_sim_socket_of(trpi_world *world, int number)
{
    trpi_sim_net *net = trpi_sim_of(world);
    uint32_t index = (uint32_t)number - TRPI_SIM_SOCKET_FIRST;
    sim_socket *s = NULL;

    trpi_sim_advance(net);
    if (number >= TRPI_SIM_SOCKET_FIRST && index < net->numbers_count) {
        s = net->numbers[index];
    }
    net->misuses += s == NULL;
    return s;
}

void
trpi_sim_socket_unref(sim_socket *s)
{
    trpi_assert(s->references > 0);
    if (--s->references > 0) {
        return;
    }
    trpi_assert(!s->open && s->set == NULL && !s->placed);
    while (s->received.first != NULL) {
        sim_datagram *first = s->received.first;

        s->received.first = first->next;
        trpi_free(first);
    }
    if (s->peer != NULL) {
        trpi_sim_socket_unref(s->peer);
    }
    trpi_sim_port_release(s);
    *s->link = s->next;
    if (s->next != NULL) {
        s->next->link = s->link;
    }
    s->net->sockets_count--;
    trpi_free(s->in.bytes);
    trpi_free(s);
}

static int
sim_socket_make(trpi_world *world, int family, int type)
{
    trpi_sim_net *net = trpi_sim_of(world);
    sim_socket *s = NULL;
    int result;

    trpi_sim_advance(net);
    if (family != AF_INET && family != AF_INET6 && family != AF_UNIX) {
        return -EAFNOSUPPORT;
    }
    if (type != SOCK_STREAM && (type != SOCK_DGRAM || family == AF_UNIX)) {
        return -ESOCKTNOSUPPORT;
    }
    result = trpi_sim_socket_new(net, world->host, family, type, &s);
    if (result == 0) {
        trpi_sim_buffers_draw(s);
        result = trpi_sim_socket_number(s);
        if (result < 0) {
            trpi_sim_socket_unref(s);
        }
    }
    return result;
}

static void
socket_close(sim_socket *s)
{
    trpi_sim_net *net = s->net;

    trpi_sim_set_forget(s);
    net->numbers[s->number - TRPI_SIM_SOCKET_FIRST] = NULL;
    net->hosts[s->host].open--;
    s->open = false;
    if (s->type == SOCK_DGRAM) {
        trpi_sim_datagram_close(s);
    } else {
        trpi_sim_stream_close(s);
    }
    trpi_sim_socket_unref(s);
    trpi_sim_advance(net);
}

static int
sim_close(trpi_world *world, int number)
{
    sim_socket *s = trpi_sim_socket_of(world, number);

    if (s == NULL) {
        return -EBADF;
    }
    socket_close(s);
    return 0;
}

/* ---- the other functions: each carries out at once what it has caused ----------------------- */

static int
sim_bind(trpi_world *world, int number, const trpi_net_address *address)
{
    sim_socket *s = trpi_sim_socket_of(world, number);

    return s == NULL ? -EBADF : trpi_sim_bind(s, address);
}

static int
sim_listen(trpi_world *world, int number, int backlog)
{
    sim_socket *s = trpi_sim_socket_of(world, number);

    if (s == NULL || s->type == SOCK_DGRAM) {
        return s == NULL ? -EBADF : -EOPNOTSUPP;
    }
    return trpi_sim_stream_listen(s, backlog);
}

static int
sim_accept(trpi_world *world, int number, trpi_net_address *ret_peer)
{
    sim_socket *s = trpi_sim_socket_of(world, number);

    if (s == NULL || s->type == SOCK_DGRAM) {
        return s == NULL ? -EBADF : -EOPNOTSUPP;
    }
    return trpi_sim_stream_accept(s, ret_peer);
}

static int
sim_connect(trpi_world *world, int number, const trpi_net_address *address)
{
    sim_socket *s = trpi_sim_socket_of(world, number);
    int result;

    if (s == NULL) {
        return -EBADF;
    }
    result = s->type == SOCK_DGRAM ? trpi_sim_datagram_connect(s, address)
                                   : trpi_sim_stream_connect(s, address);
    trpi_sim_advance(s->net);
    return result;
}

static ssize_t
sim_receive(trpi_world *world, int number, const struct iovec *iov, int count,
            trpi_net_address *ret_from, int *ret_flags)
{
    sim_socket *s = trpi_sim_socket_of(world, number);
    ssize_t got;

    if (s == NULL) {
        return -EBADF;
    }
    if (s->type == SOCK_DGRAM) {
        got = trpi_sim_datagram_receive(s, iov, count, ret_from, ret_flags);
    } else {
        got = trpi_sim_stream_read(s, iov, count);
        if (got >= 0) {
            ret_from->bytes = 0;
            *ret_flags = 0;
        }
    }
    trpi_sim_advance(s->net);
    return got;
}

static ssize_t
sim_read(trpi_world *world, int number, const struct iovec *iov, int count)
{
    trpi_net_address from;
    int flags;

    return sim_receive(world, number, iov, count, &from, &flags);
}

static ssize_t
sim_send(trpi_world *world, int number, const struct iovec *iov, int count,
         const trpi_net_address *to)
{
    sim_socket *s = trpi_sim_socket_of(world, number);
    ssize_t sent;

    if (s == NULL) {
        return -EBADF;
    }
    if (s->type == SOCK_DGRAM) {
        sent = trpi_sim_datagram_send(s, iov, count, to);
    } else if (to != NULL && trpi_sim_is_local(s)) {
        sent = s->state == SIM_CONNECTED ? -EISCONN : -EOPNOTSUPP;
    } else {
        sent = trpi_sim_stream_write(s, iov, count);
    }
    trpi_sim_advance(s->net);
    return sent;
}

static ssize_t
sim_write(trpi_world *world, int number, const struct iovec *iov, int count)
{
    return sim_send(world, number, iov, count, NULL);
}

static int
sim_shutdown(trpi_world *world, int number, int how)
{
    sim_socket *s = trpi_sim_socket_of(world, number);
    int result;

    if (s == NULL || how < SHUT_RD || how > SHUT_RDWR) {
        return s == NULL ? -EBADF : -EINVAL;
    }
    result = s->type == SOCK_DGRAM ? trpi_sim_datagram_shutdown(s, (uint32_t)how + 1)
                                   : trpi_sim_stream_shutdown(s, (uint32_t)how + 1);
    trpi_sim_advance(s->net);
    return result;
}

/* One that is none has its family only. */
static void
address_give(const sim_socket *s, const trpi_net_address *address, trpi_net_address *ret_address)
{
    *ret_address = *address;
    if (address->bytes == 0) {
        ret_address->of.any.sa_family = (sa_family_t)s->family;
        ret_address->bytes = s->family == AF_INET    ? sizeof(struct sockaddr_in)
                             : s->family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                     : sizeof(sa_family_t);
    }
}

static int
sim_local_address(trpi_world *world, int number, trpi_net_address *ret_address)
{
    sim_socket *s = trpi_sim_socket_of(world, number);

    if (s == NULL) {
        return -EBADF;
    }
    address_give(s, &s->local, ret_address);
    return 0;
}

static int
sim_peer_address(trpi_world *world, int number, trpi_net_address *ret_address)
{
    sim_socket *s = trpi_sim_socket_of(world, number);
    bool has;

    if (s == NULL) {
        return -EBADF;
    }
    has = s->type == SOCK_DGRAM ? s->remote.bytes != 0 : s->state == SIM_CONNECTED;
    if (!has) {
        return -ENOTCONN;
    }
    address_give(s, &s->remote, ret_address);
    return 0;
}

/* ---- the network ----------------------------------------------------------------------------- */

trp_err
trpi_sim_net_new(trpi_world *world, uint64_t seed, trpi_sim_net **ret_net)
{
    trpi_sim_net *net = trpi_alloc(sizeof *net);

    if (net == NULL) {
        return TRP_ENOMEM;
    }
    net->world = world;
    net->random = seed;
    for (uint32_t i = 0; i < TRPI_SIM_HOSTS_MAX; i++) {
        net->hosts[i].open_max = TRPI_SIM_SOCKETS_DEFAULT;
        (void)snprintf(net->hosts[i].name, sizeof net->hosts[i].name, "h%u", i);
    }
    world->net = net;
    *ret_net = net;
    return TRP_OK;
}

void
trpi_sim_net_free(trpi_sim_net *net)
{
    if (net == NULL) {
        return;
    }
    trpi_assert(net->sets == NULL);
    net->world->net = NULL;
    for (uint32_t i = 0; i < TRPI_SIM_HOSTS_MAX; i++) {
        trpi_sim_net_end(net, i);
    }
    for (uint32_t i = 0; i < net->events_count; i++) {
        trpi_free(net->events[i].datagram);
        trpi_sim_socket_unref(net->events[i].socket);
    }
    while (net->sockets != NULL) { /* ends of connections whose last words were on their way */
        sim_socket *s = net->sockets;
        sim_socket *peer = s->peer;

        trpi_assert(peer != NULL);
        s->peer = NULL;
        trpi_sim_socket_unref(peer); /* which frees s too */
    }
    for (uint32_t i = 0; i < TRPI_SIM_HOSTS_MAX; i++) {
        trpi_free(net->hosts[i].ports[0]);
        trpi_free(net->hosts[i].ports[1]);
    }
    trpi_free(net->events);
    trpi_free(net->numbers);
    trpi_free(net);
}

void
trpi_sim_net_faults_set(trpi_sim_net *net, const trpi_sim_faults *faults)
{
    net->faults = faults != NULL ? *faults : (trpi_sim_faults){ .delay_ns = 0 };
}

void
trpi_sim_net_link_set(trpi_sim_net *net, trpi_mem_fault_fn link, void *arg)
{
    net->link = link;
    net->link_arg = arg;
}

void
trpi_sim_net_reset(trpi_sim_net *net, uint32_t host)
{
    sim_socket *next;

    for (sim_socket *s = net->sockets; s != NULL; s = next) {
        bool broken = s->host == host && s->type == SOCK_STREAM && !trpi_sim_is_local(s) &&
                      s->state != SIM_CLOSED && s->peer != NULL && s->peer->host != host;

        next = s->next;
        if (broken) {
            trpi_sim_stream_reset(s);
            next = net->sockets; /* more than one may be gone; those that are reset are closed */
        }
    }
}

void
trpi_sim_net_hasten(trpi_sim_net *net)
{
    uint64_t now_ns = trpi_sim_now(net);

    for (uint32_t i = 0; i < net->events_count; i++) { /* a later one stays behind an earlier one */
        sim_event *event = &net->events[i];
        bool timer = event->kind == SIM_EVENT_FREE || event->kind == SIM_EVENT_FAIL;

        event->due_ns = timer || event->due_ns < now_ns ? event->due_ns : now_ns;
    }
    for (sim_socket *s = net->sockets; s != NULL; s = s->next) {
        s->in.due_ns = s->in.due_ns < now_ns ? s->in.due_ns : now_ns;
    }
    for (uint32_t i = net->events_count / 2; i > 0; i--) {
        heap_sink(net, i - 1);
    }
    for (uint32_t i = 0; i < net->events_count; i++) {
        trpi_sim_sets_due(net, &net->events[i]);
    }
}

void
trpi_sim_net_name(trpi_sim_net *net, uint32_t host, const char *name)
{
    trpi_assert(host < TRPI_SIM_HOSTS_MAX);
    (void)snprintf(net->hosts[host].name, sizeof net->hosts[host].name, "%s", name);
}

uint32_t
trpi_sim_net_find(const trpi_sim_net *net, const char *name)
{
    uint32_t host = 0;

    while (host < TRPI_SIM_HOSTS_MAX && strcmp(net->hosts[host].name, name) != 0) {
        host++;
    }
    return host;
}

void
trpi_sim_net_address(uint32_t host, char *ret_text, size_t bytes)
{
    (void)snprintf(ret_text, bytes, "10.0.%u.%u", (host + 1) >> 8, (host + 1) & 255);
}

void
trpi_sim_net_limit(trpi_sim_net *net, uint32_t host, uint32_t sockets_max)
{
    net->hosts[host].open_max = sockets_max;
}

uint32_t
trpi_sim_net_open(const trpi_sim_net *net, uint32_t host)
{
    return net->hosts[host].open;
}

uint64_t
trpi_sim_net_misuses(const trpi_sim_net *net)
{
    return net->misuses;
}

void
trpi_sim_net_end(trpi_sim_net *net, uint32_t host)
{
    for (uint32_t i = 0; i < net->numbers_count && net->hosts[host].open > 0; i++) {
        if (net->numbers[i] != NULL && net->numbers[i]->host == host) {
            socket_close(net->numbers[i]);
        }
    }
}

const trpi_net_ops trpi_sim_net_ops = {
    .socket = sim_socket_make,
    .bind = sim_bind,
    .listen = sim_listen,
    .accept = sim_accept,
    .connect = sim_connect,
    .read = sim_read,
    .write = sim_write,
    .receive = sim_receive,
    .send = sim_send,
    .send_file = trpi_sim_send_file,
    .shutdown = sim_shutdown,
    .close = sim_close,
    .option_set = trpi_sim_option_set,
    .option_get = trpi_sim_option_get,
    .local_address = sim_local_address,
    .peer_address = sim_peer_address,
    .set_new = trpi_sim_set_new,
    .set_free = trpi_sim_set_free,
    .set_add = trpi_sim_set_add,
    .set_remove = trpi_sim_set_remove,
    .set_wait = trpi_sim_set_wait,
    .set_wake = trpi_sim_set_wake,
};
