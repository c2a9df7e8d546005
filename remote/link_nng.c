/* link_nng.c - the tcp transport on nng byte streams; no other file includes nng's stream headers.
 *
 * Why.   nng 1.5.2 moves bytes well and has edges. Each is dealt with here and nowhere else:
 *        H1  An aio that is posted after nng_stream_close never completes: `closing` is tested
 *            under the link's lock before each post, and close happens under the same lock.
 *        H2  Cancelling a single aio can be lost: we never cancel, a link ends as a whole.
 *        H3  nng_aio_stop and _free deadlock in a callback: only the reaper thread calls them.
 *        H4  aio timeouts are a linear list: none but on dial.
 *        H5  nng's resolver: not used, we dial numeric addresses one after the other (resolver.c).
 *        H6  nng_stream_close cuts what is unread: a graceful end says goodbye above us.
 *        H7  Callbacks share few threads: ours only move bytes and call non-blocking functions.
 *        H8  accept fails at once with EMFILE, over and over: the next is posted 50 ms later.
 *        H9  Any error of a stream means the same: closed.
 *        H11 v4-mapped IPv6 peers are shown as IPv4.
 *        H12 A send takes 8 buffers at most and may be short: on_sent goes on with the rest.
 *        H13 nng panics after fork without exec: nothing forks here, nothing runs before open().
 * Shape. connect -> [resolver] -> dial -> OPEN;  accept -> OPEN
 *        OPEN: a read fills one of two buffers while the other is told; one write at a time
 *        any failure, or close(): shut() -> reaper: stop aios, closed(), free
 * Must hold.
 *   L1  After `closing` is set nothing is posted on the link.      (shut, post_read, post_write)
 *   L2  A link goes to the reaper exactly once: whoever sets `closing`.                   (shut)
 *   L3  bytes() calls of one link do not overlap and keep the order: `telling`.        (on_read)
 * Locks. link->lock, then transport->lock; no callback is called with either held.
 * Tests. tests/unit/remote/link_test.c
 */
#include "remote/link_nng.h"

#include <arpa/inet.h>
#include <errno.h>
#include <nng/nng.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/address.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "remote/resolver.h"

enum {
    /* two of these a link, the second only when the first was filled well */
    READ_BYTES = 65536,
    READ_EARLY_BYTES = 16384, /* a read that gave more lets the next one begin before it is told */
    ACCEPT_RETRY_MS = 50,
    DIAL_LEAST_MS = 200       /* what one of several addresses gets at least */
};

struct trpi_link {
    trpi_transport *transport;
    void *user;
    pthread_mutex_t lock;
    nng_stream *stream; /* NULL while dialling */
    nng_stream_dialer *dialers[TRPI_RESOLVER_ADDRESSES_MAX];
    nng_aio *dial, *rx, *tx;
    atomic_int
        references; /* transport until closed(), user until release(), resolver while it looks;
                     * dropped with acq_rel: the last one sees all writes of the others */
    bool closing;          /* by lock; L1, L2 */
    bool telling;          /* by lock; a thread is in the loop of on_read */
    bool accepting;        /* by lock; accepted() runs: the reaper must wait for it */
    bool refused;          /* accepted() said no: no closed() */
    bool stop_asked;       /* by transport->lock */
    size_t read_waiting;   /* by lock; bytes of a read that completed while telling, 0: none */
    int read_index;        /* by lock; buffer of the read that is posted or waiting */
    uint8_t *read_buffers[2];
    nng_iov iov[TRPI_TRANSPORT_IOV_MAX]; /* of the write in progress; by its one writer */
    unsigned iov_count;
    trp_err err; /* first failure; by lock */
    char reason[128];
    /* dialling; by the one dial in progress */
    uint16_t port;
    uint32_t dial_index;
    uint64_t deadline_ns;
    trpi_resolved addresses;
    char host[TRPI_HOST_BYTES_MAX + 1];
    trpi_link *next, *previous; /* in transport->links, by its lock */
    trpi_link *reap_next;
};

struct trpi_transport {
    trpi_world *world;
    const trpi_transport_events *events;
    void *arg;
    trpi_resolver *resolver;
    pthread_mutex_t lock;
    pthread_cond_t wake; /* reaper: work; stop(): links went */
    pthread_t reaper;
    bool reaper_runs, stopping, reaper_ends;
    bool accept_retry; /* H8 */
    struct timespec accept_retry_at;
    trpi_link *links, *reap_first, **reap_last;
    nng_stream_listener *listener;
    nng_aio *accept;
};

static void on_read(void *arg);
static void on_sent(void *arg);

static trp_err
err_of_nng(int code)
{
    static const struct {
        int code;
        trp_err err;
    } table[] = { { 0, TRP_OK },          { NNG_EADDRINUSE, TRP_EADDRINUSE },
                  { NNG_ENOMEM, TRP_ENOMEM },    { NNG_EADDRINVAL, TRP_EINVAL },
                  { NNG_ECLOSED, TRP_ECLOSED },  { NNG_ETIMEDOUT, TRP_ETIMEDOUT } };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (table[i].code == code) {
            return table[i].err;
        }
    }
    return TRP_ECONN; /* H9 */
}

static void
link_unref(trpi_link *link)
{
    if (atomic_fetch_sub_explicit(&link->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    trpi_assert(link->stream == NULL && link->rx == NULL && link->tx == NULL && link->dial == NULL);
    trpi_free(link->read_buffers[0]);
    trpi_free(link->read_buffers[1]);
    pthread_mutex_destroy(&link->lock);
    trpi_free(link);
}

/* ---- end of a link --------------------------------------------------------------------------- */

static void
reap_later(trpi_link *link)
{
    trpi_transport *transport = link->transport;
    pthread_mutex_lock(&transport->lock);
    *transport->reap_last = link; /* L2 */
    transport->reap_last = &link->reap_next;
    pthread_cond_broadcast(&transport->wake);
    pthread_mutex_unlock(&transport->lock);
}

/* Close now, free later. The caller holds link->lock. */
static void
shut(trpi_link *link, trp_err err, const char *reason)
{
    if (link->closing) {
        return;
    }
    link->closing = true; /* L1 */
    link->err = err;
    (void)snprintf(link->reason, sizeof link->reason, "%s", reason);
    if (link->stream != NULL) {
        nng_stream_close(link->stream);
    }
    for (uint32_t i = 0; i < TRPI_RESOLVER_ADDRESSES_MAX; i++) {
        if (link->dialers[i] != NULL) {
            nng_stream_dialer_close(link->dialers[i]);
        }
    }
    if (!link->accepting) {
        reap_later(link);
    }
}

static void
fail(trpi_link *link, int code)
{
    pthread_mutex_lock(&link->lock);
    shut(link, err_of_nng(code), nng_strerror(code));
    pthread_mutex_unlock(&link->lock);
}

static void
aio_end(nng_aio **aio)
{
    if (*aio != NULL) {
        nng_aio_stop(*aio); /* waits for a running callback: H3 */
        nng_aio_free(*aio);
        *aio = NULL;
    }
}

/* On the reaper thread, or before anything was posted. */
static void
link_free_nng(trpi_link *link)
{
    aio_end(&link->dial);
    aio_end(&link->rx);
    aio_end(&link->tx);
    if (link->stream != NULL) {
        nng_stream_free(link->stream);
        link->stream = NULL;
    }
    for (uint32_t i = 0; i < TRPI_RESOLVER_ADDRESSES_MAX; i++) {
        if (link->dialers[i] != NULL) {
            nng_stream_dialer_free(link->dialers[i]);
            link->dialers[i] = NULL;
        }
    }
}

static void
reap(trpi_link *link)
{
    trpi_transport *transport = link->transport;
    link_free_nng(link);
    if (link->refused) {
        link_unref(link); /* the user's share: it never took it */
    } else {
        transport->events->closed(link->user, link, link->err, link->reason);
    }
    pthread_mutex_lock(&transport->lock);
    if (link->previous != NULL) {
        link->previous->next = link->next;
    } else {
        transport->links = link->next;
    }
    if (link->next != NULL) {
        link->next->previous = link->previous;
    }
    pthread_cond_broadcast(&transport->wake);
    pthread_mutex_unlock(&transport->lock);
    link_unref(link);
}

static void *
reaper_thread(void *arg)
{
    trpi_transport *transport = arg;
    pthread_mutex_lock(&transport->lock);
    for (;;) {
        trpi_link *link = transport->reap_first;
        if (link != NULL) {
            transport->reap_first = link->reap_next;
            if (transport->reap_first == NULL) {
                transport->reap_last = &transport->reap_first;
            }
            pthread_mutex_unlock(&transport->lock);
            reap(link);
            pthread_mutex_lock(&transport->lock);
        } else if (transport->reaper_ends) {
            break;
        } else if (transport->accept_retry) {
            if (pthread_cond_timedwait(&transport->wake, &transport->lock,
                                       &transport->accept_retry_at) == ETIMEDOUT) {
                transport->accept_retry = false;
                if (!transport->stopping) {
                    nng_stream_listener_accept(transport->listener, transport->accept);
                }
            }
        } else {
            pthread_cond_wait(&transport->wake, &transport->lock);
        }
    }
    pthread_mutex_unlock(&transport->lock);
    return NULL;
}

/* ---- birth of a link ------------------------------------------------------------------------- */

/* With two references: the transport's and the user's. */
static trpi_link *
link_new(trpi_transport *transport)
{
    trpi_link *link = trpi_alloc(sizeof *link);
    if (link == NULL) {
        return NULL;
    }
    link->transport = transport;
    pthread_mutex_init(&link->lock, NULL);
    atomic_init(&link->references, 2);
    link->read_buffers[0] = trpi_alloc(READ_BYTES);
    if (link->read_buffers[0] == NULL || nng_aio_alloc(&link->rx, on_read, link) != 0 ||
        nng_aio_alloc(&link->tx, on_sent, link) != 0) {
        link_free_nng(link);
        link_unref(link);
        link_unref(link);
        return NULL;
    }
    return link;
}

/* false: the transport is stopping. */
static bool
link_add(trpi_link *link)
{
    trpi_transport *transport = link->transport;
    pthread_mutex_lock(&transport->lock);
    bool open = !transport->stopping;
    if (open) {
        link->next = transport->links;
        if (link->next != NULL) {
            link->next->previous = link;
        }
        transport->links = link;
    }
    pthread_mutex_unlock(&transport->lock);
    return open;
}

/* The caller holds link->lock and has tested `closing`. */
static void
post_read(trpi_link *link)
{
    trpi_assert(!link->closing); /* L1 */
    nng_iov iov = { link->read_buffers[link->read_index], READ_BYTES };
    (void)nng_aio_set_iov(link->rx, 1, &iov); /* one buffer is always accepted */
    nng_stream_recv(link->stream, link->rx);
}

static void
open_stream(trpi_link *link)
{
    /* the default; said for safety */
    (void)nng_stream_set_bool(link->stream, NNG_OPT_TCP_NODELAY, true);
    (void)nng_stream_set_bool(link->stream, NNG_OPT_TCP_KEEPALIVE, true); /* best effort */
}

/* ---- reading and writing --------------------------------------------------------------------- */

static void
on_read(void *arg)
{
    trpi_link *link = arg;
    int code = nng_aio_result(link->rx);
    size_t count = nng_aio_count(link->rx);
    if (code != 0 || count == 0) {
        fail(link, code != 0 ? code : NNG_ECONNSHUT);
        return;
    }
    pthread_mutex_lock(&link->lock);
    if (link->telling) { /* L3: the thread that tells takes this read too */
        link->read_waiting = count;
        pthread_mutex_unlock(&link->lock);
        return;
    }
    link->telling = true;
    for (;;) {
        const uint8_t *bytes = link->read_buffers[link->read_index];
        bool early = false;
        if (count >= READ_EARLY_BYTES && !link->closing) {
            int other = 1 - link->read_index;
            if (link->read_buffers[other] == NULL) {
                link->read_buffers[other] = trpi_alloc(READ_BYTES);
            }
            if (link->read_buffers[other] != NULL) {
                link->read_index = other;
                early = true;
                post_read(link);
            }
        }
        bool closing = link->closing;
        pthread_mutex_unlock(&link->lock);
        if (!closing) {
            link->transport->events->bytes(link->user, link, bytes, count);
        }
        pthread_mutex_lock(&link->lock);
        if (!early) {
            if (!link->closing) {
                post_read(link);
            }
            break;
        }
        if (link->read_waiting == 0) {
            break;
        }
        count = link->read_waiting;
        link->read_waiting = 0;
    }
    link->telling = false;
    pthread_mutex_unlock(&link->lock);
}

static void
post_write(trpi_link *link)
{
    trpi_assert(!link->closing); /* L1 */
    (void)nng_aio_set_iov(link->tx, link->iov_count, link->iov); /* write() checked the count */
    nng_stream_send(link->stream, link->tx);
}

/* Take `count` sent bytes off the front of the write; true: something is left. */
static bool
advance(trpi_link *link, size_t count)
{
    unsigned done = 0;
    while (done < link->iov_count && count >= link->iov[done].iov_len) {
        count -= link->iov[done].iov_len;
        done++;
    }
    link->iov_count -= done;
    memmove(link->iov, link->iov + done, link->iov_count * sizeof link->iov[0]);
    if (link->iov_count > 0) {
        link->iov[0].iov_buf = (uint8_t *)link->iov[0].iov_buf + count;
        link->iov[0].iov_len -= count;
    }
    return link->iov_count > 0;
}

static void
on_sent(void *arg)
{
    trpi_link *link = arg;
    int code = nng_aio_result(link->tx);
    if (code != 0) {
        fail(link, code);
        return;
    }
    if (advance(link, nng_aio_count(link->tx))) {
        pthread_mutex_lock(&link->lock);
        if (!link->closing) {
            post_write(link);
        }
        pthread_mutex_unlock(&link->lock);
        return;
    }
    link->transport->events->written(link->user, link);
}

static trp_err
tcp_write(trpi_link *link, const trpi_iov *iov, size_t count)
{
    trpi_assert(count >= 1 && count <= TRPI_TRANSPORT_IOV_MAX);
    trp_err err = TRP_ECLOSED;
    pthread_mutex_lock(&link->lock);
    if (!link->closing && link->stream != NULL) {
        for (size_t i = 0; i < count; i++) {
            /* nng does not write through it */
            link->iov[i].iov_buf = (void *)(uintptr_t)iov[i].data;
            link->iov[i].iov_len = iov[i].bytes;
        }
        link->iov_count = (unsigned)count;
        post_write(link);
        err = TRP_OK;
    }
    pthread_mutex_unlock(&link->lock);
    return err;
}

static void
tcp_close(trpi_link *link)
{
    pthread_mutex_lock(&link->lock);
    shut(link, TRP_ECLOSED, "closed here");
    pthread_mutex_unlock(&link->lock);
}

static void
tcp_release(trpi_link *link)
{
    link_unref(link);
}

/* ---- dialling -------------------------------------------------------------------------------- */

static void
url_of(char *url, size_t bytes, const char *host, uint16_t port)
{
    bool v6 = strchr(host, ':') != NULL;
    (void)snprintf(url, bytes, v6 ? "tcp://[%s]:%u" : "tcp://%s:%u", host, port);
}

/* Dial the next address, each with its share of the time that is left. The caller holds link->lock
 * and has tested `closing`. */
static void
dial_next(trpi_link *link, int last_code)
{
    uint64_t now = trpi_world_mono_ns(link->transport->world);
    for (; link->dial_index < link->addresses.count && now < link->deadline_ns;
         link->dial_index++) {
        char url[TRPI_NUMERIC_BYTES + 32];
        uint32_t i = link->dial_index;
        url_of(url, sizeof url, link->addresses.hosts[i], link->port);
        last_code = nng_stream_dialer_alloc(&link->dialers[i], url);
        if (last_code != 0) {
            continue;
        }
        uint64_t left_ms = (link->deadline_ns - now) / 1000000u;
        uint64_t share_ms = left_ms / (link->addresses.count - i);
        share_ms = share_ms > DIAL_LEAST_MS ? share_ms : DIAL_LEAST_MS;
        nng_aio_set_timeout(link->dial, (nng_duration)share_ms); /* H4: the one timeout */
        link->dial_index++;
        nng_stream_dialer_dial(link->dialers[i], link->dial);
        return;
    }
    trpi_resolver_forget(link->transport->resolver, link->host);
    shut(link, err_of_nng(last_code), nng_strerror(last_code));
}

static void
on_dialled(void *arg)
{
    trpi_link *link = arg;
    int code = nng_aio_result(link->dial);
    pthread_mutex_lock(&link->lock);
    if (code == 0) {
        link->stream = nng_aio_get_output(link->dial, 0);
        if (link->closing) {
            nng_stream_close(link->stream); /* the reaper frees it, it waits for us */
        } else {
            open_stream(link);
        }
    } else if (!link->closing) {
        dial_next(link, code);
    }
    bool open = code == 0 && !link->closing;
    pthread_mutex_unlock(&link->lock);
    if (open) {
        link->transport->events->connected(link->user, link);
        pthread_mutex_lock(&link->lock); /* the reaper waits for this callback */
        if (!link->closing) {
            post_read(link);
        }
        pthread_mutex_unlock(&link->lock);
    }
}

static void
on_resolved(void *arg, const trpi_resolved *resolved)
{
    trpi_link *link = arg;
    pthread_mutex_lock(&link->lock);
    if (!link->closing) {
        if (resolved->count == 0) {
            char reason[sizeof link->reason];
            (void)snprintf(reason, sizeof reason, "name not resolved: %s", resolved->reason);
            shut(link, TRP_ECONN, reason);
        } else {
            link->addresses = *resolved;
            dial_next(link, NNG_EADDRINVAL);
        }
    }
    pthread_mutex_unlock(&link->lock);
    link_unref(link);
}

static trp_err
tcp_connect(trpi_transport *transport, const char *host, uint16_t port, uint32_t timeout_ms,
            void *user, trpi_link **ret_link)
{
    trpi_link *link = link_new(transport);
    if (link == NULL) {
        return TRP_ENOMEM;
    }
    link->user = user;
    link->port = port;
    (void)snprintf(link->host, sizeof link->host, "%s", host);
    link->deadline_ns = trpi_world_mono_ns(transport->world) + timeout_ms * 1000000ull;
    trp_err err = nng_aio_alloc(&link->dial, on_dialled, link) == 0 ? TRP_OK : TRP_ENOMEM;
    if (err == TRP_OK && !link_add(link)) {
        err = TRP_ECLOSED;
    }
    if (err != TRP_OK) {
        link_free_nng(link);
        link_unref(link);
        link_unref(link);
        return err;
    }
    *ret_link = link; /* before the first callback may come */
    pthread_mutex_lock(&link->lock);
    if (link->closing) {
        /* stop() was faster */
    } else if (trpi_resolver_now(transport->resolver, host, &link->addresses)) {
        dial_next(link, NNG_EADDRINVAL);
    } else {
        atomic_fetch_add_explicit(&link->references, 1, memory_order_relaxed);
        if (trpi_resolver_start(transport->resolver, host, on_resolved, link) != TRP_OK) {
            /* never the last */
            atomic_fetch_sub_explicit(&link->references, 1, memory_order_relaxed);
            shut(link, TRP_ENOMEM, "no resolver");
        }
    }
    pthread_mutex_unlock(&link->lock);
    return TRP_OK;
}

/* ---- accepting ------------------------------------------------------------------------------- */

static void
peer_text(nng_stream *stream, char *text, size_t bytes)
{
    nng_sockaddr peer;
    memset(&peer, 0, sizeof peer);
    if (nng_stream_get_addr(stream, NNG_OPT_REMADDR, &peer) == 0 && peer.s_family == NNG_AF_INET) {
        trpi_numeric_text(&peer.s_in.sa_addr, 4, ntohs(peer.s_in.sa_port), text, bytes);
    } else if (peer.s_family == NNG_AF_INET6) {
        trpi_numeric_text(peer.s_in6.sa_addr, 16, ntohs(peer.s_in6.sa_port), text, bytes);
    } else {
        (void)snprintf(text, bytes, "?");
    }
}

static void
accept_stream(trpi_transport *transport, nng_stream *stream)
{
    trpi_link *link = link_new(transport);
    if (link == NULL) {
        nng_stream_free(stream);
        return;
    }
    link->accepting = true; /* stop() closes links only after this callback has ended */
    link->stream = stream;
    if (!link_add(link)) {
        link_free_nng(link);
        link_unref(link);
        link_unref(link);
        return;
    }
    char peer[INET6_ADDRSTRLEN + 16];
    peer_text(stream, peer, sizeof peer);
    open_stream(link);
    void *user = NULL;
    bool wanted = transport->events->accepted(transport->arg, link, peer, &user);
    pthread_mutex_lock(&link->lock);
    link->user = user;
    link->refused = !wanted;
    link->accepting = false;
    if (link->closing) {
        reap_later(link);
    } else if (!wanted) {
        shut(link, TRP_ECLOSED, "refused");
    } else {
        post_read(link);
    }
    pthread_mutex_unlock(&link->lock); /* from here the reaper may free it */
}

static void
on_accepted(void *arg)
{
    trpi_transport *transport = arg;
    int code = nng_aio_result(transport->accept);
    nng_stream *stream = code == 0 ? nng_aio_get_output(transport->accept, 0) : NULL;
    if (stream != NULL) {
        accept_stream(transport, stream);
    }
    pthread_mutex_lock(&transport->lock);
    if (!transport->stopping && code == 0) {
        nng_stream_listener_accept(transport->listener, transport->accept);
    } else if (!transport->stopping && code != NNG_ECLOSED) { /* H8 */
        (void)clock_gettime(CLOCK_REALTIME, &transport->accept_retry_at);
        transport->accept_retry_at.tv_nsec += ACCEPT_RETRY_MS * 1000000l;
        transport->accept_retry_at.tv_sec += transport->accept_retry_at.tv_nsec / 1000000000l;
        transport->accept_retry_at.tv_nsec %= 1000000000l;
        transport->accept_retry = true;
        pthread_cond_broadcast(&transport->wake);
    }
    pthread_mutex_unlock(&transport->lock);
}

static trp_err
tcp_listen(trpi_transport *transport, const char *host, uint16_t port, uint16_t *ret_port)
{
    char url[TRPI_NUMERIC_BYTES + 32];
    trpi_assert(transport->listener == NULL);
    if (host[0] == '\0' || strcmp(host, "*") == 0) {
        (void)snprintf(url, sizeof url, "tcp://*:%u", port);
    } else {
        trpi_resolved resolved;
        trpi_resolve_blocking(host, &resolved);
        if (resolved.count == 0) {
            return TRP_EINVAL;
        }
        url_of(url, sizeof url, resolved.hosts[0], port);
    }
    int code = nng_stream_listener_alloc(&transport->listener, url);
    code = code == 0 ? nng_aio_alloc(&transport->accept, on_accepted, transport) : code;
    code = code == 0 ? nng_stream_listener_listen(transport->listener) : code;
    int bound = port;
    code = code == 0
               ? nng_stream_listener_get_int(transport->listener, NNG_OPT_TCP_BOUND_PORT, &bound)
               : code;
    if (code != 0) {
        if (transport->listener != NULL) {
            nng_stream_listener_free(transport->listener);
            transport->listener = NULL;
        }
        aio_end(&transport->accept);
        trp_err err = err_of_nng(code);
        return err == TRP_ECONN ? TRP_EIO : err;
    }
    *ret_port = (uint16_t)bound;
    nng_stream_listener_accept(transport->listener, transport->accept);
    return TRP_OK;
}

/* ---- the transport --------------------------------------------------------------------------- */

static void
tcp_transport_free(trpi_transport *transport)
{
    if (transport == NULL) {
        return;
    }
    trpi_assert(transport->links == NULL);
    pthread_mutex_lock(&transport->lock);
    transport->reaper_ends = true;
    pthread_cond_broadcast(&transport->wake);
    pthread_mutex_unlock(&transport->lock);
    if (transport->reaper_runs) {
        pthread_join(transport->reaper, NULL);
    }
    trpi_resolver_free(transport->resolver);
    pthread_cond_destroy(&transport->wake);
    pthread_mutex_destroy(&transport->lock);
    trpi_free(transport);
}

static trp_err
tcp_open(void *transport_arg, trpi_world *world, const trpi_transport_events *events, void *arg,
         trpi_transport **ret_transport)
{
    (void)transport_arg;
    trpi_transport *transport = trpi_alloc(sizeof *transport);
    if (transport == NULL) {
        return TRP_ENOMEM;
    }
    transport->world = world;
    transport->events = events;
    transport->arg = arg;
    transport->reap_last = &transport->reap_first;
    pthread_mutex_init(&transport->lock, NULL);
    pthread_cond_init(&transport->wake, NULL);
    trp_err err = trpi_resolver_new(world, &transport->resolver);
    if (err == TRP_OK && pthread_create(&transport->reaper, NULL, reaper_thread, transport) != 0) {
        err = TRP_EIO;
    }
    transport->reaper_runs = err == TRP_OK;
    if (err != TRP_OK) {
        tcp_transport_free(transport);
        return err;
    }
    *ret_transport = transport;
    return TRP_OK;
}

static trpi_link *
link_unstopped(trpi_link *link)
{
    for (; link != NULL && link->stop_asked; link = link->next) {
    }
    return link;
}

static void
tcp_stop(trpi_transport *transport)
{
    pthread_mutex_lock(&transport->lock);
    transport->stopping = true;
    transport->accept_retry = false;
    pthread_mutex_unlock(&transport->lock);
    if (transport->listener != NULL) {
        nng_stream_listener_close(transport->listener);
        aio_end(&transport->accept);
        nng_stream_listener_free(transport->listener);
        transport->listener = NULL;
    }
    pthread_mutex_lock(&transport->lock);
    for (trpi_link *link = link_unstopped(transport->links); link != NULL;
         link = link_unstopped(transport->links)) {
        link->stop_asked = true;
        atomic_fetch_add_explicit(&link->references, 1, memory_order_relaxed);
        pthread_mutex_unlock(&transport->lock); /* order of locks: link, transport */
        tcp_close(link);
        link_unref(link);
        pthread_mutex_lock(&transport->lock);
    }
    while (transport->links != NULL) {
        pthread_cond_wait(&transport->wake, &transport->lock);
    }
    pthread_mutex_unlock(&transport->lock);
}

const trpi_transport_ops trpi_link_nng_ops = {
    .scheme = "tcp",
    .open = tcp_open,
    .listen = tcp_listen,
    .connect = tcp_connect,
    .write = tcp_write,
    .close = tcp_close,
    .release = tcp_release,
    .stop = tcp_stop,
    .free = tcp_transport_free,
};
