/* link_poll_open.c - how a link of the driver on the poller comes to be: dialled, or accepted.
 *
 * Shape. connect -> [resolver] -> one address after the other -> OPEN;  accept -> OPEN
 * Must hold.
 *   link-poll-open-O1  Each attempt has a socket and a watch of its own; the next one begins in
 *       removed() of the last.
 *   link-poll-open-O2  A link that is accepted has no watch, so no callback, until accepted() has
 *       returned.
 *   link-poll-open-O3  Without a descriptor accept waits ACCEPT_RETRY_MS, and says so once for each
 *       such time.
 * Tests. tests/unit/remote/link_test.c, poll_test.c
 */
#include "remote/poll/link_poll_inner.h"

#include <arpa/inet.h>
#include <errno.h>

enum {
    ACCEPT_RETRY_MS = 50,
    ACCEPTS_AT_ONCE = 64, /* then the others' turn */
    BACKLOG = 1024,       /* the kernel's limit is net.core.somaxconn */
    DIAL_LEAST_MS = 200   /* the least time for one of several addresses */
};

/* false: it is no number. host "": all of IPv4. */
static bool
address_of(const char *host, uint16_t port, trpi_net_address *ret_address)
{
    trpi_net_address address;
    memset(&address, 0, sizeof address);
    if (host[0] == '\0' || inet_pton(AF_INET, host, &address.of.v4.sin_addr) == 1) {
        address.of.v4.sin_family = AF_INET;
        address.of.v4.sin_port = htons(port);
        address.bytes = sizeof address.of.v4;
    } else if (inet_pton(AF_INET6, host, &address.of.v6.sin6_addr) == 1) {
        address.of.v6.sin6_family = AF_INET6;
        address.of.v6.sin6_port = htons(port);
        address.bytes = sizeof address.of.v6;
    } else {
        return false;
    }
    *ret_address = address;
    return true;
}

/* ---- dialling -------------------------------------------------------------------------------- */

static void
attempt_fails(trpi_link *link, int error)
{
    char text[96];
    link->dial->err = trpi_link_poll_err(error);
    (void)snprintf(link->dial->reason, sizeof link->dial->reason, "%s",
                   trpi_link_poll_reason(error, text, sizeof text));
}

static void
on_attempt_due(void *arg, uint64_t attempt, uint64_t b)
{
    trpi_link *link = arg;
    (void)b;
    pthread_mutex_lock(&link->lock);
    if (link->watch != NULL &&
        atomic_load_explicit(&link->stage, memory_order_relaxed) == TRPI_LINK_DIALLING &&
        link->dial->attempt == attempt) {
        link->dial->timed_out = true;
        trpi_watch_again(link->watch, TRPI_NET_OUT);
    }
    pthread_mutex_unlock(&link->lock);
}

/* false: the attempt has failed. */
static bool
attempt_begin(trpi_link *link, const char *host, uint64_t share_ms)
{
    const trpi_transport *transport = link->transport;
    trpi_link_dial *dial = link->dial;
    trpi_net_address address;
    if (!address_of(host, dial->port, &address)) {
        attempt_fails(link, -EADDRNOTAVAIL);
        return false;
    }
    int socket = transport->net->socket(transport->world, address.of.any.sa_family, SOCK_STREAM);
    int error = socket < 0 ? socket : transport->net->connect(transport->world, socket, &address);
    if (error < 0 && error != -EINPROGRESS) {
        attempt_fails(link, error);
        if (socket >= 0) {
            (void)transport->net->close(transport->world, socket);
        }
        return false;
    }
    dial->attempt++;
    dial->timed_out = false;
    link->socket = socket;
    trp_err err = trpi_link_poll_timer(link, share_ms, on_attempt_due, dial->attempt, &dial->timer);
    err = err == TRP_OK ? trpi_watch_new(transport->poller, socket, &trpi_link_watch_events, link,
                                         &link->watch)
                        : err;
    if (err != TRP_OK) {
        link->socket = -1;
        (void)transport->net->close(transport->world, socket);
        dial->err = err;
        (void)snprintf(dial->reason, sizeof dial->reason, "%s", trp_strerror(err));
    }
    return err == TRP_OK;
}

/* Try the next address, each with its share of the time that is left. */
void
trpi_link_poll_dial_next(trpi_link *link)
{
    trpi_link_dial *dial = link->dial;
    uint64_t now = trpi_world_mono_ns(link->transport->world);
    atomic_store_explicit(&link->stage, TRPI_LINK_DIALLING, memory_order_relaxed);
    while (dial->index < dial->addresses.count && now < dial->deadline_ns) {
        uint64_t left_ms = (dial->deadline_ns - now) / 1000000u;
        uint64_t share_ms = left_ms / (dial->addresses.count - dial->index);
        share_ms = share_ms > DIAL_LEAST_MS ? share_ms : DIAL_LEAST_MS;
        if (attempt_begin(link, dial->addresses.hosts[dial->index++], share_ms)) {
            return;
        }
    }
    trpi_resolver_forget(link->transport->resolver, dial->host);
    trpi_link_poll_shut(link, dial->err, dial->reason);
}

bool
trpi_link_poll_dialled(trpi_link *link)
{
    const trpi_transport *transport = link->transport;
    trpi_net_address peer;
    int error = 0;
    socklen_t bytes = sizeof error;
    if (link->watch == NULL) {
        return false;
    }
    if (transport->net->option_get(transport->world, link->socket, SOL_SOCKET, SO_ERROR, &error,
                                   &bytes) < 0) {
        error = ECONNREFUSED;
    }
    if (error == 0 && transport->net->peer_address(transport->world, link->socket, &peer) < 0) {
        if (!link->dial->timed_out) {
            return false; /* not yet */
        }
        error = ETIMEDOUT;
    }
    if (link->dial->timer != 0) {
        (void)trpi_timer_cancel(transport->sched, link->dial->timer);
        link->dial->timer = 0;
    }
    if (error != 0) {
        attempt_fails(link, -error);
        trpi_link_poll_unwatch(link); /* link-poll-open-O1 */
        return false;
    }
    trpi_free(link->dial);
    link->dial = NULL;
    trpi_link_way_open(link);
    /* release: what was set before is seen by threads that write */
    atomic_store_explicit(&link->stage, TRPI_LINK_OPEN, memory_order_release);
    return true;
}

static void
on_resolved(void *arg, const trpi_resolved *resolved)
{
    trpi_link *link = arg;
    bool finish = false;
    pthread_mutex_lock(&link->lock);
    if (atomic_load_explicit(&link->closing, memory_order_relaxed)) {
        finish = !link->removing; /* it found no memory for its timer */
        link->removing = true;
    } else if (resolved->count == 0) {
        char reason[sizeof link->reason];
        (void)snprintf(reason, sizeof reason, "name not resolved: %s", resolved->reason);
        trpi_link_poll_shut(link, TRP_ECONN, reason);
    } else {
        link->dial->addresses = *resolved;
        trpi_link_poll_dial_next(link);
    }
    pthread_mutex_unlock(&link->lock);
    if (finish) {
        trpi_link_poll_finish(link, true);
    }
    trpi_link_poll_unref(link);
}

static void
link_drop(trpi_link *link)
{
    trpi_link_poll_unref(link);
    trpi_link_poll_unref(link);
}

static trpi_link *
dial_new(trpi_transport *transport, const char *host, uint16_t port, uint32_t timeout_ms)
{
    trpi_link *link = trpi_link_poll_new(transport, -1);
    trpi_link_dial *dial = link != NULL ? trpi_alloc(sizeof *dial) : NULL;
    if (dial == NULL) {
        if (link != NULL) {
            link_drop(link);
        }
        return NULL;
    }
    link->dial = dial;
    dial->port = port;
    dial->err = TRP_EINVAL;
    (void)snprintf(dial->reason, sizeof dial->reason, "no address");
    (void)snprintf(dial->host, sizeof dial->host, "%s", host);
    dial->deadline_ns = trpi_world_mono_ns(transport->world) + timeout_ms * 1000000ull;
    return link;
}

trp_err
trpi_link_poll_connect(trpi_transport *transport, const char *host, uint16_t port,
                       uint32_t timeout_ms, void *user, trpi_link **ret_link)
{
    trpi_link *link = dial_new(transport, host, port, timeout_ms);
    if (link == NULL) {
        return TRP_ENOMEM;
    }
    link->user = user;
    if (!trpi_link_poll_add(link)) {
        link_drop(link);
        return TRP_ECLOSED;
    }
    *ret_link = link; /* before the first callback may come */
    pthread_mutex_lock(&link->lock);
    if (atomic_load_explicit(&link->closing, memory_order_relaxed)) {
        /* stop() was faster */
    } else if (trpi_resolver_now(transport->resolver, host, &link->dial->addresses)) {
        trpi_link_poll_dial_next(link);
    } else {
        trpi_link_poll_ref(link);
        if (trpi_resolver_start(transport->resolver, host, on_resolved, link) != TRP_OK) {
            /* never the last */
            atomic_fetch_sub_explicit(&link->references, 1, memory_order_relaxed);
            trpi_link_poll_shut(link, TRP_ENOMEM, "no resolver");
        }
    }
    pthread_mutex_unlock(&link->lock);
    return TRP_OK;
}

/* ---- accepting ------------------------------------------------------------------------------- */

static void
peer_text(const trpi_net_address *from, char *text, size_t bytes)
{
    if (from->of.any.sa_family == AF_INET) {
        trpi_numeric_text(&from->of.v4.sin_addr, 4, ntohs(from->of.v4.sin_port), text, bytes);
    } else if (from->of.any.sa_family == AF_INET6) {
        trpi_numeric_text(&from->of.v6.sin6_addr, 16, ntohs(from->of.v6.sin6_port), text, bytes);
    } else {
        (void)snprintf(text, bytes, "?");
    }
}

/* The user has the link now. By link->lock. */
static void
accepted_watch(trpi_link *link)
{
    trp_err err = trpi_watch_new(link->transport->poller, link->socket, &trpi_link_watch_events,
                                 link, &link->watch);
    if (err != TRP_OK) {
        trpi_link_poll_shut(link, err, trp_strerror(err));
    }
}

static void
accept_socket(trpi_transport *transport, int socket, const trpi_net_address *from)
{
    trpi_link *link = trpi_link_poll_new(transport, socket);
    char peer[INET6_ADDRSTRLEN + 16];
    void *user = NULL;
    if (link == NULL) {
        (void)transport->net->close(transport->world, socket);
        return;
    }
    link->accepting = true; /* link-poll-open-O2 */
    atomic_store_explicit(&link->stage, TRPI_LINK_OPEN, memory_order_relaxed);
    trpi_link_way_open(link);
    peer_text(from, peer, sizeof peer);
    if (!trpi_link_poll_add(link)) {
        link->socket = -1;
        (void)transport->net->close(transport->world, socket);
        link_drop(link);
        return;
    }
    bool wanted = transport->events->accepted(transport->arg, link, peer, &user);
    pthread_mutex_lock(&link->lock);
    link->user = user;
    if (wanted && !atomic_load_explicit(&link->closing, memory_order_relaxed)) {
        accepted_watch(link);
    }
    link->accepting = false;
    bool over = link->watch == NULL && !link->removing;
    if (over) { /* refused, closed meanwhile, or no memory: this callback is the last one */
        atomic_store_explicit(&link->closing, true, memory_order_release);
        (void)transport->net->close(transport->world, socket);
        link->socket = -1;
    }
    pthread_mutex_unlock(&link->lock);
    if (over) {
        trpi_link_poll_finish(link, wanted);
    }
}

static const trpi_watch_events listener_events;
static void on_accept_due(void *arg, uint64_t a, uint64_t b);

/* By transport->cond.lock, as the next two. */
static trp_err
accept_again_in(trpi_transport *transport, uint64_t delay_ms)
{
    trp_err err = TRP_OK;
    if (!transport->stopping && transport->accept_timer == 0) {
        err = trpi_timer_add(transport->sched, delay_ms, on_accept_due, transport, 0, 0,
                             &transport->accept_timer);
    }
    return err;
}

static void
listener_watch(trpi_transport *transport)
{
    trp_err err = trpi_watch_new(transport->poller, transport->listener, &listener_events,
                                 transport, &transport->listener_watch);
    transport->listener_removing = err == TRP_OK;
    if (err != TRP_OK) {
        (void)accept_again_in(transport, ACCEPT_RETRY_MS);
    }
}

static void
on_accept_due(void *arg, uint64_t a, uint64_t b)
{
    trpi_transport *transport = arg;
    (void)a;
    (void)b;
    pthread_mutex_lock(&transport->cond.lock);
    transport->accept_timer = 0;
    if (transport->listener_watch != NULL) {
        trpi_watch_again(transport->listener_watch, TRPI_NET_IN);
    } else if (!transport->stopping) {
        listener_watch(transport);
    }
    trpi_cond_broadcast(&transport->cond);
    pthread_mutex_unlock(&transport->cond.lock);
}

/* link-poll-open-O3 */
static uint32_t
accept_later(trpi_transport *transport, bool starved)
{
    if (starved && transport->events->starved != NULL) {
        transport->events->starved(transport->arg);
    }
    pthread_mutex_lock(&transport->cond.lock);
    bool later = accept_again_in(transport, ACCEPT_RETRY_MS) == TRP_OK;
    pthread_mutex_unlock(&transport->cond.lock);
    return later ? 0 : TRPI_NET_IN;
}

static uint32_t
on_listener_ready(void *user, uint32_t events)
{
    trpi_transport *transport = user;
    (void)events;
    for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
        trpi_net_address peer;
        int socket = transport->net->accept(transport->world, transport->listener, &peer);
        if (socket >= 0) {
            accept_socket(transport, socket, &peer);
        } else if (socket == -EAGAIN) {
            return 0;
        } else if (socket != -EINTR && socket != -ECONNABORTED) {
            return accept_later(transport, socket == -EMFILE || socket == -ENFILE);
        }
    }
    return TRPI_NET_IN;
}

static void
on_listener_removed(void *user)
{
    trpi_transport *transport = user;
    pthread_mutex_lock(&transport->cond.lock);
    transport->listener_removing = false;
    trpi_cond_broadcast(&transport->cond);
    pthread_mutex_unlock(&transport->cond.lock);
}

static const trpi_watch_events listener_events = { on_listener_ready, on_listener_removed };

/* Return a listening socket, or -errno. */
static int
listener_new(const trpi_transport *transport, const trpi_net_address *address)
{
    int on = 1;
    int socket = transport->net->socket(transport->world, address->of.any.sa_family, SOCK_STREAM);
    if (socket < 0) {
        return socket;
    }
    (void)transport->net->option_set(transport->world, socket, SOL_SOCKET, SO_REUSEADDR, &on,
                                     sizeof on);
    int error = transport->net->bind(transport->world, socket, address);
    error = error < 0 ? error : transport->net->listen(transport->world, socket, BACKLOG);
    if (error < 0) {
        (void)transport->net->close(transport->world, socket);
        return error;
    }
    return socket;
}

trp_err
trpi_link_poll_listen(trpi_transport *transport, const char *host, uint16_t port,
                      uint16_t *ret_port)
{
    trpi_net_address address, bound;
    trpi_resolved resolved;
    const char *numeric = "";
    trpi_assert(transport->listener < 0);
    if (host[0] != '\0' && strcmp(host, "*") != 0) {
        trpi_resolve_blocking(host, &resolved);
        if (resolved.count == 0) {
            return TRP_EINVAL;
        }
        numeric = resolved.hosts[0];
    }
    if (!address_of(numeric, port, &address)) {
        return TRP_EINVAL;
    }
    int socket = listener_new(transport, &address);
    if (socket < 0) {
        trp_err err = trpi_link_poll_err(socket);
        return err == TRP_ECONN ? TRP_EIO : err;
    }
    if (transport->net->local_address(transport->world, socket, &bound) < 0) {
        (void)transport->net->close(transport->world, socket);
        return TRP_EIO;
    }
    transport->listener = socket;
    *ret_port =
        ntohs(bound.of.any.sa_family == AF_INET6 ? bound.of.v6.sin6_port : bound.of.v4.sin_port);
    return TRP_OK;
}

void
trpi_link_poll_accept(trpi_transport *transport)
{
    pthread_mutex_lock(&transport->cond.lock);
    listener_watch(transport);
    pthread_mutex_unlock(&transport->cond.lock);
}

static bool
listener_is_gone(void *arg)
{
    const trpi_transport *transport = arg;
    return !transport->listener_removing && transport->accept_timer == 0;
}

void
trpi_link_poll_listen_end(trpi_transport *transport)
{
    pthread_mutex_lock(&transport->cond.lock);
    if (transport->listener_watch != NULL) {
        trpi_watch_remove(transport->listener_watch);
        transport->listener_watch = NULL;
    }
    if (transport->accept_timer != 0 &&
        trpi_timer_cancel(transport->sched, transport->accept_timer)) {
        transport->accept_timer = 0; /* else it runs, and says when it is over */
    }
    (void)trpi_cond_wait(&transport->cond, transport->sched, listener_is_gone, transport,
                         UINT64_MAX);
    pthread_mutex_unlock(&transport->cond.lock);
    if (transport->listener >= 0) {
        (void)transport->net->close(transport->world, transport->listener);
        transport->listener = -1;
    }
}
