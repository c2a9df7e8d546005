/* mem_transport.c - see the header.
 *
 * Shape.  Two ends make a stream. An event sits in one list sorted by (due, number): deterministic
 *         for a given order of calls.
 *           connect: event CONNECT -> listener's accepted(), then dialler's connected()
 *           write:   bytes are copied; BYTES -> peer's bytes(), then WRITTEN -> written()
 *           close:   event CLOSED for both ends -> closed(); for the other one behind what was sent
 * Must hold.
 *   mem-transport-M1  The due times of one direction never decrease: a delay does not reorder a
 *       stream.
 *   mem-transport-M2  closed() is the last event of an end; later ones are dropped.
 * Locks.  network->lock, never held in a callback.
 * Tests.  tests/unit/sim/mem_transport_test.c
 */
#include "sim/mem_transport.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/address.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"

enum event_kind { EVENT_CONNECT, EVENT_BYTES, EVENT_WRITTEN, EVENT_CLOSED };

struct trpi_link {
    trpi_transport *transport;
    trpi_mem_network *network; /* outlives the transport, for release() */
    trpi_link *peer;           /* NULL: not connected, or the peer's memory is gone */
    void *user;
    char from_host[TRPI_HOST_BYTES_MAX + 1];
    char to_host[TRPI_HOST_BYTES_MAX + 1];
    uint16_t to_port;
    uint64_t due_ns; /* mem-transport-M1: of the last event towards the peer */
    int references;
    bool dialled, closing, closed, dead_direction;
    struct event *end; /* EVENT_CLOSED, made with the link: an end needs no memory; NULL: in use */
    trpi_link *next;   /* in network->links */
};

typedef struct event {
    struct event *next;
    uint64_t due_ns;
    enum event_kind kind;
    trpi_link *to; /* counted */
    trp_err err;
    const char *reason;
    size_t count;
    uint8_t bytes[];
} event;

struct trpi_mem_network {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    uint64_t now_ns;
    event *events;
    trpi_link *links;
    uint32_t links_count;
    trpi_transport *transports;
    trpi_mem_fault_fn fault;
    void *fault_arg;
    uint16_t port_next;
    pthread_t thread;
    bool thread_runs, thread_ends;
};

struct trpi_transport {
    trpi_mem_network *network;
    const trpi_transport_events *events;
    void *arg;
    char host[TRPI_HOST_BYTES_MAX + 1];
    uint16_t port; /* 0: does not listen */
    bool accepts;  /* false: dials are refused, as by a host that does not listen */
    bool stopping;
    trpi_transport *next;
};

/* ---- lists; all under network->lock ---------------------------------------------------------- */

static void
link_unref(trpi_mem_network *network, trpi_link *link)
{
    if (--link->references > 0) {
        return;
    }
    for (trpi_link **at = &network->links; *at != NULL; at = &(*at)->next) {
        if (*at == link) {
            *at = link->next;
            break;
        }
    }
    network->links_count--;
    if (link->peer != NULL) {
        link->peer->peer = NULL;
    }
    trpi_free(link->end);
    trpi_free(link);
}

static trpi_link *
link_new(trpi_transport *transport, const char *from_host, const char *to_host, uint16_t to_port)
{
    trpi_mem_network *network = transport->network;
    trpi_link *link = network->links_count < TRPI_MEM_LINKS_MAX ? trpi_alloc(sizeof *link) : NULL;
    event *end = trpi_alloc(sizeof *end);
    if (link == NULL || end == NULL) {
        trpi_free(link);
        trpi_free(end);
        return NULL;
    }
    link->end = end;
    link->transport = transport;
    link->network = network;
    link->references = 2; /* open, and the user's until release */
    link->to_port = to_port;
    (void)snprintf(link->from_host, sizeof link->from_host, "%s", from_host);
    (void)snprintf(link->to_host, sizeof link->to_host, "%s", to_host);
    link->next = network->links;
    network->links = link;
    network->links_count++;
    return link;
}

/* Put it into the list, behind those that are due by then. */
static void
event_place(trpi_mem_network *network, event *put, uint64_t due_ns)
{
    event **at = &network->events;
    put->due_ns = due_ns > network->now_ns ? due_ns : network->now_ns;
    while (*at != NULL && (*at)->due_ns <= put->due_ns) {
        at = &(*at)->next;
    }
    put->next = *at;
    *at = put;
}

/* Takes put. */
static void
event_put(trpi_mem_network *network, event *put, trpi_link *to, enum event_kind kind,
          uint64_t due_ns)
{
    put->kind = kind;
    put->to = to;
    to->references++;
    event_place(network, put, due_ns);
    pthread_cond_broadcast(&network->wake);
}

static trp_err
event_add(trpi_mem_network *network, trpi_link *to, enum event_kind kind, uint64_t due_ns,
          const void *bytes, size_t count)
{
    event *added = trpi_alloc(sizeof *added + count);
    if (added == NULL) {
        return TRP_ENOMEM;
    }
    added->count = count;
    if (count > 0) {
        memcpy(added->bytes, bytes, count);
    }
    event_put(network, added, to, kind, due_ns);
    return TRP_OK;
}

/* Deliver the end behind all bytes that were sent; the link gets those. */
static void
end_put(trpi_mem_network *network, trpi_link *link, trp_err err, const char *reason,
        uint64_t due_ns)
{
    event *end = link == NULL ? NULL : link->end;
    if (end != NULL) { /* else it is on its way */
        link->end = NULL;
        end->err = err;
        end->reason = reason;
        event_put(network, end, link, EVENT_CLOSED, due_ns);
    }
}

/* End the link: from now on it gets no event but that it is closed. */
static void
link_shut(trpi_mem_network *network, trpi_link *link, trp_err err, const char *reason,
          uint64_t due_ns)
{
    if (link != NULL && !link->closing) {
        link->closing = true;
        end_put(network, link, err, reason, due_ns);
    }
}

static trpi_mem_verdict
fault_judge(trpi_mem_network *network, trpi_mem_event *asked)
{
    return network->fault == NULL ? TRPI_MEM_PASS : network->fault(network->fault_arg, asked);
}

/* ---- the driver ------------------------------------------------------------------------------ */

static trp_err
mem_open(void *transport_arg, trpi_world *world, const trpi_transport_events *events, void *arg,
         trpi_transport **ret_transport)
{
    (void)world;
    trpi_mem_network *network = transport_arg;
    trpi_transport *transport = trpi_alloc(sizeof *transport);
    if (transport == NULL) {
        return TRP_ENOMEM;
    }
    transport->network = network;
    transport->events = events;
    transport->arg = arg;
    pthread_mutex_lock(&network->lock);
    transport->next = network->transports;
    network->transports = transport;
    pthread_mutex_unlock(&network->lock);
    *ret_transport = transport;
    return TRP_OK;
}

static trpi_transport *
listener_find(trpi_mem_network *network, const char *host, uint16_t port)
{
    for (trpi_transport *t = network->transports; t != NULL; t = t->next) {
        if (t->port == port && port != 0 && !t->stopping && strcmp(t->host, host) == 0) {
            return t;
        }
    }
    return NULL;
}

static trp_err
mem_listen(trpi_transport *transport, const char *host, uint16_t port, uint16_t *ret_port)
{
    trpi_mem_network *network = transport->network;
    trp_err err = TRP_OK;
    pthread_mutex_lock(&network->lock);
    if (port == 0) {
        do {
            port = network->port_next =
                network->port_next >= 1024 ? (uint16_t)(network->port_next + 1) : 1024;
        } while (listener_find(network, host, port) != NULL || port == 0);
    } else if (listener_find(network, host, port) != NULL) {
        err = TRP_EADDRINUSE;
    }
    if (err == TRP_OK) {
        transport->port = port;
        (void)snprintf(transport->host, sizeof transport->host, "%s", host);
        *ret_port = port;
    }
    pthread_mutex_unlock(&network->lock);
    return err;
}

static void
mem_accept(trpi_transport *transport)
{
    pthread_mutex_lock(&transport->network->lock);
    transport->accepts = true;
    pthread_mutex_unlock(&transport->network->lock);
}

static trp_err
mem_connect(trpi_transport *transport, const char *host, uint16_t port, uint32_t timeout_ms,
            void *user, trpi_link **ret_link)
{
    trpi_mem_network *network = transport->network;
    trp_err err = TRP_OK;
    pthread_mutex_lock(&network->lock);
    trpi_link *link = transport->stopping ? NULL : link_new(transport, transport->host, host, port);
    if (link == NULL) {
        err = transport->stopping ? TRP_ECLOSED : TRP_ENOMEM;
    } else {
        link->user = user;
        link->dialled = true;
        *ret_link = link;
        trpi_mem_event asked = { transport->host, host, port, true, 0, 0, 0 };
        trpi_mem_verdict verdict = fault_judge(network, &asked);
        uint64_t due_ns = network->now_ns + asked.delay_ns;
        if (verdict == TRPI_MEM_CUT) {
            link_shut(network, link, TRP_ECONN, "connection refused", due_ns);
        } else if (verdict == TRPI_MEM_DROP) {
            link_shut(network, link, TRP_ETIMEDOUT, "timed out", due_ns + timeout_ms * 1000000ull);
        } else if (event_add(network, link, EVENT_CONNECT, due_ns, NULL, 0) != TRP_OK) {
            link_shut(network, link, TRP_ENOMEM, "out of memory", due_ns);
        }
    }
    pthread_mutex_unlock(&network->lock);
    return err;
}

/* Copy written bytes for the peer, in one part or two. */
static trp_err
send_to_peer(trpi_mem_network *network, trpi_link *link, const uint8_t *bytes, size_t count)
{
    trpi_mem_event asked = { link->dialled ? link->from_host : link->to_host,
                             link->dialled ? link->to_host : link->from_host,
                             link->to_port,
                             false,
                             count,
                             0,
                             0 };
    trpi_mem_verdict verdict = link->dead_direction ? TRPI_MEM_DROP : fault_judge(network, &asked);
    if (verdict == TRPI_MEM_CUT) {
        link_shut(network, link->peer, TRP_ECONN, "connection cut", network->now_ns);
        link_shut(network, link, TRP_ECONN, "connection cut", network->now_ns);
        return TRP_OK;
    }
    if (verdict == TRPI_MEM_DROP) {
        link->dead_direction = true;
        return TRP_OK;
    }
    uint64_t due_ns = network->now_ns + asked.delay_ns;
    link->due_ns = due_ns > link->due_ns ? due_ns : link->due_ns; /* mem-transport-M1 */
    size_t first = asked.bytes_first > 0 && asked.bytes_first < count ? asked.bytes_first : count;
    trp_err err = event_add(network, link->peer, EVENT_BYTES, link->due_ns, bytes, first);
    if (err == TRP_OK && first < count) {
        err =
            event_add(network, link->peer, EVENT_BYTES, link->due_ns, bytes + first, count - first);
    }
    return err;
}

static trp_err
mem_write(trpi_link *link, const trpi_iov *iov, size_t count, bool *ret_done)
{
    (void)ret_done; /* written() is an event of its own: its order is the world's */
    trpi_mem_network *network = link->network;
    trpi_assert(count >= 1 && count <= TRPI_TRANSPORT_IOV_MAX);
    trp_err err = TRP_ECLOSED;
    pthread_mutex_lock(&network->lock);
    if (!link->closing && link->peer != NULL) {
        err = TRP_OK;
        size_t bytes = 0;
        for (size_t i = 0; i < count; i++) {
            bytes += iov[i].bytes;
        }
        uint8_t *copy = trpi_alloc(bytes + 1);
        size_t at = 0;
        for (size_t i = 0; copy != NULL && i < count; i++) {
            memcpy(copy + at, iov[i].data, iov[i].bytes);
            at += iov[i].bytes;
        }
        if (copy == NULL || (bytes > 0 && send_to_peer(network, link, copy, bytes) != TRP_OK) ||
            event_add(network, link, EVENT_WRITTEN, network->now_ns, NULL, 0) != TRP_OK) {
            link_shut(network, link->peer, TRP_ECONN, "connection cut", network->now_ns);
            link_shut(network, link, TRP_ENOMEM, "out of memory", network->now_ns);
        }
        trpi_free(copy);
    }
    pthread_mutex_unlock(&network->lock);
    return err;
}

static void
mem_close(trpi_link *link)
{
    trpi_mem_network *network = link->network;
    pthread_mutex_lock(&network->lock);
    if (!link->dead_direction) { /* behind sent bytes, unless the direction is dead */
        uint64_t due_ns = link->due_ns > network->now_ns ? link->due_ns : network->now_ns;
        end_put(network, link->peer, TRP_ECONN, "closed by the peer", due_ns);
    }
    link_shut(network, link, TRP_ECLOSED, "closed here", network->now_ns);
    pthread_mutex_unlock(&network->lock);
}

static void
mem_release(trpi_link *link)
{
    trpi_mem_network *network = link->network;
    pthread_mutex_lock(&network->lock);
    link_unref(network, link);
    pthread_mutex_unlock(&network->lock);
}

static bool
transport_has_links(const trpi_transport *transport)
{
    for (const trpi_link *link = transport->network->links; link != NULL; link = link->next) {
        if (link->transport == transport && !link->closed) {
            return true;
        }
    }
    return false;
}

/* A transport that stops waits for the ends of its links. They come now: waiting until a dial would
 * have timed out would move the clock of all to that time. */
static void
hasten_ends(trpi_mem_network *network, const trpi_transport *transport)
{
    event *later = NULL;
    for (event **at = &network->events; *at != NULL;) {
        event *e = *at;
        if (e->kind == EVENT_CLOSED && e->to->transport == transport &&
            e->due_ns > network->now_ns) {
            *at = e->next;
            e->next = later;
            later = e;
        } else {
            at = &e->next;
        }
    }
    while (later != NULL) {
        event *e = later;
        later = e->next;
        event_place(network, e, network->now_ns);
    }
}

static void
mem_stop(trpi_transport *transport)
{
    trpi_mem_network *network = transport->network;
    pthread_mutex_lock(&network->lock);
    transport->stopping = true;
    for (trpi_link *link = network->links; link != NULL; link = link->next) {
        if (link->transport == transport) {
            link_shut(network, link->peer, TRP_ECONN, "closed by the peer", network->now_ns);
            link_shut(network, link, TRP_ECLOSED, "closed here", network->now_ns);
        }
    }
    hasten_ends(network, transport);
    while (transport_has_links(transport)) {
        if (network->thread_runs) {
            pthread_cond_wait(&network->wake, &network->lock);
        } else {
            pthread_mutex_unlock(&network->lock);
            bool stepped = trpi_mem_network_step(network);
            pthread_mutex_lock(&network->lock);
            trpi_assert(stepped);
        }
    }
    pthread_mutex_unlock(&network->lock);
}

static void
mem_free(trpi_transport *transport)
{
    if (transport == NULL) {
        return;
    }
    trpi_mem_network *network = transport->network;
    pthread_mutex_lock(&network->lock);
    for (trpi_transport **at = &network->transports; *at != NULL; at = &(*at)->next) {
        if (*at == transport) {
            *at = transport->next;
            break;
        }
    }
    pthread_mutex_unlock(&network->lock);
    trpi_free(transport);
}

const trpi_transport_ops trpi_mem_transport_ops = {
    .scheme = "mem",
    .open = mem_open,
    .listen = mem_listen,
    .accept = mem_accept,
    .connect = mem_connect,
    .write = mem_write,
    .close = mem_close,
    .release = mem_release,
    .stop = mem_stop,
    .free = mem_free,
};

/* ---- the network ----------------------------------------------------------------------------- */

trp_err
trpi_mem_network_new(trpi_mem_network **ret_network)
{
    trpi_mem_network *network = trpi_alloc(sizeof *network);
    if (network == NULL) {
        return TRP_ENOMEM;
    }
    pthread_mutex_init(&network->lock, NULL);
    pthread_cond_init(&network->wake, NULL);
    *ret_network = network;
    return TRP_OK;
}

void
trpi_mem_network_free(trpi_mem_network *network)
{
    if (network == NULL) {
        return;
    }
    trpi_assert(network->transports == NULL && !network->thread_runs);
    while (network->events != NULL) {
        event *first = network->events;
        network->events = first->next;
        link_unref(network, first->to);
        trpi_free(first);
    }
    trpi_assert(network->links == NULL);
    pthread_cond_destroy(&network->wake);
    trpi_mutex_destroy(&network->lock);
    trpi_free(network);
}

void
trpi_mem_network_fault_set(trpi_mem_network *network, trpi_mem_fault_fn fn, void *arg)
{
    pthread_mutex_lock(&network->lock);
    network->fault = fn;
    network->fault_arg = arg;
    pthread_mutex_unlock(&network->lock);
}

/* A dial arrives. Called with the lock, returns with the lock. */
static void
deliver_connect(trpi_mem_network *network, trpi_link *link)
{
    trpi_transport *listener = listener_find(network, link->to_host, link->to_port);
    trpi_link *other = listener == NULL || !listener->accepts || link->closing
                           ? NULL
                           : link_new(listener, link->from_host, link->to_host, link->to_port);
    if (other == NULL) {
        link_shut(network, link, TRP_ECONN, "connection refused", network->now_ns);
        return;
    }
    other->peer = link;
    link->peer = other;
    char peer[TRPI_HOST_BYTES_MAX + 8];
    (void)snprintf(peer, sizeof peer, "mem:%s", link->from_host);
    pthread_mutex_unlock(&network->lock);
    void *user = NULL;
    bool wanted = listener->events->accepted(listener->arg, other, peer, &user);
    other->user = user;
    if (wanted) {
        link->transport->events->connected(link->user, link);
    }
    pthread_mutex_lock(&network->lock);
    if (!wanted) {
        link_shut(network, link, TRP_ECONN, "closed by the peer", network->now_ns);
        link->peer = NULL;
        other->peer = NULL;
        if (!other->closing) { /* else the transport stopped meanwhile, and its end is on its way */
            other->closing = other->closed = true;
            link_unref(network, other);
        }
        link_unref(network, other);
    }
}

bool
trpi_mem_network_step(trpi_mem_network *network)
{
    pthread_mutex_lock(&network->lock);
    event *first = network->events;
    if (first == NULL) {
        pthread_mutex_unlock(&network->lock);
        return false;
    }
    network->events = first->next;
    network->now_ns = first->due_ns;
    trpi_link *link = first->to;
    bool open = !link->closing;
    link->closing = link->closing || first->kind == EVENT_CLOSED;
    if (first->kind == EVENT_CONNECT) {
        deliver_connect(network, link);
        /* mem-transport-M2: an end that closes hears nothing more */
    } else if (first->kind == EVENT_CLOSED || open) {
        /* only now: the transport of a link that has ended may be gone */
        const trpi_transport_events *events = link->transport->events;
        pthread_mutex_unlock(&network->lock);
        if (first->kind == EVENT_BYTES) {
            events->bytes(link->user, link, first->bytes, first->count);
        } else if (first->kind == EVENT_WRITTEN) {
            events->written(link->user, link);
        } else if (link->user != NULL) { /* else no user took it */
            events->closed(link->user, link, first->err, first->reason);
        }
        pthread_mutex_lock(&network->lock);
        if (first->kind == EVENT_CLOSED) {
            link->closed = true;
            link_unref(network, link); /* no longer open */
        }
    }
    link_unref(network, link);
    pthread_cond_broadcast(&network->wake);
    pthread_mutex_unlock(&network->lock);
    trpi_free(first);
    return true;
}

void
trpi_mem_network_advance(trpi_mem_network *network, uint64_t now_ns)
{
    while (trpi_mem_network_due_ns(network) <= now_ns) {
        (void)trpi_mem_network_step(network);
    }
    pthread_mutex_lock(&network->lock);
    network->now_ns = now_ns > network->now_ns ? now_ns : network->now_ns;
    pthread_mutex_unlock(&network->lock);
}

uint64_t
trpi_mem_network_due_ns(trpi_mem_network *network)
{
    pthread_mutex_lock(&network->lock);
    uint64_t due_ns = network->events != NULL ? network->events->due_ns : UINT64_MAX;
    pthread_mutex_unlock(&network->lock);
    return due_ns;
}

static void *
network_thread(void *arg)
{
    trpi_mem_network *network = arg;
    pthread_mutex_lock(&network->lock);
    while (!network->thread_ends) {
        if (network->events == NULL) {
            pthread_cond_wait(&network->wake, &network->lock);
            continue;
        }
        pthread_mutex_unlock(&network->lock);
        (void)trpi_mem_network_step(network);
        pthread_mutex_lock(&network->lock);
    }
    pthread_mutex_unlock(&network->lock);
    return NULL;
}

trp_err
trpi_mem_network_thread_start(trpi_mem_network *network)
{
    pthread_mutex_lock(&network->lock);
    network->thread_runs = pthread_create(&network->thread, NULL, network_thread, network) == 0;
    bool runs = network->thread_runs;
    pthread_mutex_unlock(&network->lock);
    return runs ? TRP_OK : TRP_EIO;
}

void
trpi_mem_network_thread_stop(trpi_mem_network *network)
{
    pthread_mutex_lock(&network->lock);
    bool runs = network->thread_runs;
    network->thread_ends = true;
    pthread_cond_broadcast(&network->wake);
    pthread_mutex_unlock(&network->lock);
    if (runs) {
        pthread_join(network->thread, NULL);
    }
    pthread_mutex_lock(&network->lock);
    network->thread_runs = network->thread_ends = false;
    pthread_mutex_unlock(&network->lock);
}

void
trpi_mem_network_hasten(trpi_mem_network *network, uint64_t now_ns)
{
    pthread_mutex_lock(&network->lock);
    for (event *e = network->events; e != NULL; e = e->next) { /* in order: it stays one */
        e->due_ns = e->due_ns < now_ns ? e->due_ns : now_ns;
    }
    for (trpi_link *link = network->links; link != NULL; link = link->next) {
        link->due_ns = link->due_ns < now_ns ? link->due_ns : now_ns;
    }
    pthread_mutex_unlock(&network->lock);
}

void
trpi_mem_network_cut(trpi_mem_network *network, const char *host_a, const char *host_b)
{
    pthread_mutex_lock(&network->lock);
    for (trpi_link *link = network->links; link != NULL; link = link->next) {
        bool a_to_b = (host_a == NULL || strcmp(link->from_host, host_a) == 0) &&
                      (host_b == NULL || strcmp(link->to_host, host_b) == 0);
        bool b_to_a = (host_a == NULL || strcmp(link->to_host, host_a) == 0) &&
                      (host_b == NULL || strcmp(link->from_host, host_b) == 0);
        if (a_to_b || b_to_a) {
            link_shut(network, link, TRP_ECONN, "connection cut", network->now_ns);
        }
    }
    pthread_mutex_unlock(&network->lock);
}
