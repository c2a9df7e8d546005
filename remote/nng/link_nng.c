/* link_nng.c - the tcp transport on nng byte streams. Only link_nng*.c include nng's headers.
 *
 * Why.   nng 1.5.2 moves bytes well and has edges. Each is dealt with here or in link_nng_open.c,
 *        and nowhere else:
 *   link-nng-H1  An aio that is posted after nng_stream_close never completes: `closing` is tested
 *       under the link's lock before each post, and close happens under the same lock. So a link
 *       needs no deadline for its end, as sockets of nng do, which post reads of their own
 *       (endpoint/closing.c); a stream is freed without waiting for those.
 *   link-nng-H2  Cancelling a single aio can be lost: we never cancel, a link ends as a whole.
 *   link-nng-H3  nng_aio_stop and _free deadlock in a callback: only the reaper thread calls them.
 *   link-nng-H4  aio timeouts are a linear list: none but on dial.
 *   link-nng-H5  nng's resolver: not used, we dial numeric addresses one after the other
 *       (resolver.c).
 *   link-nng-H6  nng_stream_close drops unread bytes: a graceful end says GOODBYE above us.
 *   link-nng-H7  Callbacks share few threads: ours only move bytes and call non-blocking functions.
 *   link-nng-H8  accept fails at once with EMFILE, over and over: the next is posted 50 ms later.
 *   link-nng-H9  Any error of a stream means the same: closed.
 *   link-nng-H11  v4-mapped IPv6 peers are shown as IPv4.
 *   link-nng-H12  A send takes 8 buffers at most and may be short: on_sent goes on with the rest.
 *   link-nng-H13  nng panics after fork without exec: nothing forks here, nothing runs before
 *       open().
 * Shape. connect -> [resolver] -> dial -> OPEN;  accept -> OPEN
 *        OPEN: a read fills one of two buffers while the other is told; one write at a time
 *        any failure, or close(): shut() -> reaper: stop aios, closed(), free
 * Must hold.
 *   link-nng-L1  After `closing` is set nothing is posted on the link. (shut, post_read,
 *       post_write)
 *   link-nng-L2  A link goes to the reaper exactly once: whoever sets `closing`. (shut)
 *   link-nng-L3  bytes() calls of one link do not overlap and keep the order: `telling`. (on_read)
 *   link-nng-L4  A paused link is looked at by the reaper until it reads again or is closed: the
 *       thread that calls closed() is the one that looks, so nothing of a link is called after
 *       closed().
 *   link-nng-L5  A write that the way does not bear yet (link_nng_socket.c) is posted by the reaper
 *       when it does, or never when the link is closed before.
 * Locks. link->lock, then transport->lock; no callback is called with either held.
 * Tests. tests/unit/remote/link_test.c
 */
#include "base/mutex.h"
#include "remote/nng/link_nng_inner.h"

static void on_read(void *arg);
static void link_resume(trpi_link *link);
static void on_sent(void *arg);
static void post_write(trpi_link *link);

trp_err
trpi_link_err(int code)
{
    static const struct {
        int code;
        trp_err err;
    } table[] = { { 0, TRP_OK },
                  { NNG_EADDRINUSE, TRP_EADDRINUSE },
                  { NNG_ENOMEM, TRP_ENOMEM },
                  { NNG_EADDRINVAL, TRP_EINVAL },
                  { NNG_ECLOSED, TRP_ECLOSED },
                  { NNG_ETIMEDOUT, TRP_ETIMEDOUT } };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (table[i].code == code) {
            return table[i].err;
        }
    }
    return TRP_ECONN; /* link-nng-H9 */
}

void
trpi_link_unref(trpi_link *link)
{
    if (atomic_fetch_sub_explicit(&link->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    trpi_assert(link->stream == NULL && link->rx == NULL && link->tx == NULL && link->dial == NULL);
    trpi_free(link->read_buffers[0]);
    trpi_free(link->read_buffers[1]);
    trpi_mutex_destroy(&link->lock);
    trpi_free(link);
}

/* ---- end of a link --------------------------------------------------------------------------- */

void
trpi_link_reap_later(trpi_link *link)
{
    trpi_transport *transport = link->transport;
    pthread_mutex_lock(&transport->lock);
    *transport->reap_last = link; /* link-nng-L2 */
    transport->reap_last = &link->reap_next;
    pthread_cond_broadcast(&transport->wake);
    pthread_mutex_unlock(&transport->lock);
}

/* Close now, free later. The caller holds link->lock. */
void
trpi_link_shut(trpi_link *link, trp_err err, const char *reason)
{
    if (link->closing) {
        return;
    }
    link->closing = true; /* link-nng-L1 */
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
        trpi_link_reap_later(link);
    }
}

static void
link_fail(trpi_link *link, int code)
{
    pthread_mutex_lock(&link->lock);
    trpi_link_shut(link, trpi_link_err(code), nng_strerror(code));
    pthread_mutex_unlock(&link->lock);
}

void
trpi_link_aio_end(nng_aio **aio)
{
    if (*aio != NULL) {
        nng_aio_stop(*aio); /* waits for a running callback: link-nng-H3 */
        nng_aio_free(*aio);
        *aio = NULL;
    }
}

/* On the reaper thread, or before anything was posted. */
void
trpi_link_free_nng(trpi_link *link)
{
    trpi_link_aio_end(&link->dial);
    trpi_link_aio_end(&link->rx);
    trpi_link_aio_end(&link->tx);
    if (link->stream != NULL) {
        nng_stream_free(link->stream);
        link->stream = NULL;
        link->socket = -1;
    }
    for (uint32_t i = 0; i < TRPI_RESOLVER_ADDRESSES_MAX; i++) {
        if (link->dialers[i] != NULL) {
            nng_stream_dialer_free(link->dialers[i]);
            link->dialers[i] = NULL;
        }
    }
}

struct timespec
trpi_link_time_after_ms(long ms)
{
    struct timespec at;
    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_nsec += ms * 1000000l;
    at.tv_sec += at.tv_nsec / 1000000000l;
    at.tv_nsec %= 1000000000l;
    return at;
}

static void
paused_remove(trpi_link *link)
{
    trpi_transport *transport = link->transport;
    pthread_mutex_lock(&transport->lock);
    for (trpi_link **at = &transport->paused; link->paused; at = &(*at)->paused_next) {
        if (*at == link) {
            *at = link->paused_next;
            link->paused = false;
            break;
        }
    }
    pthread_mutex_unlock(&transport->lock);
}

/* The caller holds link->lock. */
static void
paused_add(trpi_link *link)
{
    trpi_transport *transport = link->transport;
    pthread_mutex_lock(&transport->lock);
    if (transport->paused == NULL) {
        transport->paused_look_at = trpi_link_time_after_ms(PAUSE_LOOK_MS);
        pthread_cond_broadcast(&transport->wake);
    }
    link->paused = true;
    link->paused_next = transport->paused;
    transport->paused = link;
    pthread_mutex_unlock(&transport->lock);
}

/* The caller holds link->lock. */
static void
held_add(trpi_link *link)
{
    trpi_transport *transport = link->transport;
    pthread_mutex_lock(&transport->lock);
    if (transport->held == NULL && transport->paused == NULL) {
        transport->paused_look_at = trpi_link_time_after_ms(HELD_LOOK_MS);
        pthread_cond_broadcast(&transport->wake);
    }
    link->held = true;
    link->held_next = transport->held;
    transport->held = link;
    pthread_mutex_unlock(&transport->lock);
}

static void
held_remove(trpi_link *link)
{
    trpi_transport *transport = link->transport;
    pthread_mutex_lock(&transport->lock);
    for (trpi_link **at = &transport->held; link->held; at = &(*at)->held_next) {
        if (*at == link) {
            *at = link->held_next;
            link->held = false;
            break;
        }
    }
    pthread_mutex_unlock(&transport->lock);
}

/* On the reaper thread, with transport->lock; as paused_look(). */
static void
held_look(trpi_transport *transport)
{
    trpi_link *waiting = transport->held;
    transport->held = NULL;
    for (trpi_link *link = waiting; link != NULL; link = link->held_next) {
        link->held = false;
    }
    pthread_mutex_unlock(&transport->lock);
    while (waiting != NULL) {
        trpi_link *link = waiting;
        waiting = link->held_next;
        pthread_mutex_lock(&link->lock);
        if (!link->closing) {
            post_write(link);
        }
        pthread_mutex_unlock(&link->lock);
    }
    pthread_mutex_lock(&transport->lock);
}

/* On the reaper thread, with transport->lock: nothing is reaped meanwhile, so links stay. */
static void
paused_look(trpi_transport *transport)
{
    trpi_link *waiting = transport->paused;
    transport->paused = NULL;
    for (trpi_link *link = waiting; link != NULL; link = link->paused_next) {
        link->paused = false;
    }
    pthread_mutex_unlock(&transport->lock);
    while (waiting != NULL) {
        trpi_link *link = waiting;
        waiting = link->paused_next;
        pthread_mutex_lock(&link->lock);
        bool closing = link->closing;
        pthread_mutex_unlock(&link->lock);
        if (closing) {
            continue; /* the reaper has it, or will */
        }
        if (transport->events->paused(link->user, link)) {
            pthread_mutex_lock(&link->lock);
            if (!link->closing) {
                paused_add(link);
            }
            pthread_mutex_unlock(&link->lock);
        } else {
            link_resume(link);
        }
    }
    pthread_mutex_lock(&transport->lock);
}

static void
link_reap(trpi_link *link)
{
    trpi_transport *transport = link->transport;
    pthread_mutex_lock(&link->lock); /* the thread that shut it releases the lock first */
    pthread_mutex_unlock(&link->lock);
    trpi_link_free_nng(link);
    paused_remove(link);
    held_remove(link);
    if (link->refused) {
        trpi_link_unref(link); /* the user's share: it never took it */
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
    trpi_link_unref(link);
}

/* link-nng-H8. On the reaper thread, with transport->lock. */
static void
accept_again(trpi_transport *transport)
{
    struct timespec now = trpi_link_time_after_ms(0);
    const struct timespec *at = &transport->accept_retry_at;
    if (!transport->accept_retry || now.tv_sec < at->tv_sec ||
        (now.tv_sec == at->tv_sec && now.tv_nsec < at->tv_nsec)) {
        return;
    }
    transport->accept_retry = false;
    if (!transport->stopping) {
        nng_stream_listener_accept(transport->listener, transport->accept);
    }
}

static void
look_again(trpi_transport *transport)
{
    accept_again(transport);
    held_look(transport);
    paused_look(transport);
    bool paused = transport->paused != NULL;
    transport->paused_look_at = trpi_link_time_after_ms(paused ? PAUSE_LOOK_MS : HELD_LOOK_MS);
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
            link_reap(link);
            pthread_mutex_lock(&transport->lock);
        } else if (transport->reaper_ends) {
            break;
        } else if (transport->paused != NULL || transport->held != NULL) {
            if (pthread_cond_timedwait(&transport->wake, &transport->lock,
                                       &transport->paused_look_at) == ETIMEDOUT) {
                look_again(transport);
            }
        } else if (transport->accept_retry) {
            pthread_cond_timedwait(&transport->wake, &transport->lock, &transport->accept_retry_at);
            accept_again(transport);
        } else {
            pthread_cond_wait(&transport->wake, &transport->lock);
        }
    }
    pthread_mutex_unlock(&transport->lock);
    return NULL;
}

/* ---- birth of a link ------------------------------------------------------------------------- */

/* With two references: the transport's and the user's. */
trpi_link *
trpi_link_new(trpi_transport *transport)
{
    trpi_link *link = trpi_alloc(sizeof *link);
    if (link == NULL) {
        return NULL;
    }
    link->transport = transport;
    pthread_mutex_init(&link->lock, NULL);
    atomic_init(&link->references, 2);
    link->socket = -1;
    link->read_bytes = READ_FIRST_BYTES;
    link->read_buffers[0] = trpi_alloc(READ_FIRST_BYTES);
    if (link->read_buffers[0] == NULL || nng_aio_alloc(&link->rx, on_read, link) != 0 ||
        nng_aio_alloc(&link->tx, on_sent, link) != 0) {
        trpi_link_free_nng(link);
        trpi_link_unref(link);
        trpi_link_unref(link);
        return NULL;
    }
    return link;
}

/* false: the transport is stopping. */
bool
trpi_link_add(trpi_link *link)
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
void
trpi_link_post_read(trpi_link *link)
{
    trpi_assert(!link->closing); /* link-nng-L1 */
    nng_iov iov = { link->read_buffers[link->read_index], link->read_bytes };
    (void)nng_aio_set_iov(link->rx, 1, &iov); /* one buffer is always accepted */
    nng_stream_recv(link->stream, link->rx);
}

void
trpi_link_open_stream(trpi_link *link)
{
    /* the default; set for safety */
    (void)nng_stream_set_bool(link->stream, NNG_OPT_TCP_NODELAY, true);
    (void)nng_stream_set_bool(link->stream, NNG_OPT_TCP_KEEPALIVE, true); /* best effort */
    trpi_link_socket_open(link);
}

/* ---- reading and writing --------------------------------------------------------------------- */

/* The read filled the buffer: get a larger one. The caller holds link->lock; no read is posted. */
static void
read_buffer_grow(trpi_link *link)
{
    trpi_assert(link->read_index == 0 && link->read_buffers[1] == NULL);
    uint8_t *larger = trpi_realloc(link->read_buffers[0], READ_BYTES);
    if (larger != NULL) {
        link->read_buffers[0] = larger;
        link->read_bytes = READ_BYTES;
    }
}

/* Tell `count` bytes of the read that is over, and go on. The caller holds link->lock and has made
 * `telling` true; it stays true while the link is paused, so that a read that completes waits. */
static void
read_tell(trpi_link *link, size_t count)
{
    for (;;) {
        const uint8_t *bytes = link->read_buffers[link->read_index];
        bool early = false;
        if (count >= READ_EARLY_BYTES && !link->closing) {
            int other = 1 - link->read_index;
            if (link->read_buffers[other] == NULL) {
                link->read_buffers[other] = trpi_realloc(NULL, READ_BYTES);
            }
            if (link->read_buffers[other] != NULL) {
                link->read_index = other;
                early = true;
                trpi_link_post_read(link);
            }
        }
        bool closing = link->closing;
        pthread_mutex_unlock(&link->lock);
        if (!closing) {
            link->transport->events->bytes(link->user, link, bytes, count);
        }
        pthread_mutex_lock(&link->lock);
        if (link->pause_asked && !link->closing) {
            link->pause_asked = false;
            link->pause_early = early;
            paused_add(link);
            return;
        }
        if (!early) {
            if (!link->closing) {
                if (count == link->read_bytes && count < READ_BYTES) {
                    read_buffer_grow(link);
                }
                trpi_link_post_read(link);
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
}

static void
link_resume(trpi_link *link)
{
    pthread_mutex_lock(&link->lock);
    trpi_assert(link->telling);
    size_t count = link->read_waiting;
    link->read_waiting = 0;
    if (link->closing) {
        link->telling = false;
    } else if (!link->pause_early) {
        link->telling = false;
        trpi_link_post_read(link);
    } else if (count > 0) {
        read_tell(link, count);
    } else {
        link->telling = false; /* its read is in flight, on_read() goes on */
    }
    pthread_mutex_unlock(&link->lock);
}

/* nng has read bytes, or the stream has ended. */
static void
on_read(void *arg)
{
    trpi_link *link = arg;
    int code = nng_aio_result(link->rx);
    size_t count = nng_aio_count(link->rx);
    if (code != 0 || count == 0) {
        link_fail(link, code != 0 ? code : NNG_ECONNSHUT);
        return;
    }
    pthread_mutex_lock(&link->lock);
    if (link->telling) { /* link-nng-L3: the thread that tells takes this read too */
        link->read_waiting = count;
        pthread_mutex_unlock(&link->lock);
        return;
    }
    link->telling = true;
    read_tell(link, count);
    pthread_mutex_unlock(&link->lock);
}

static void
post_write(trpi_link *link)
{
    trpi_assert(!link->closing); /* link-nng-L1 */
    size_t room = trpi_link_socket_room(link), bytes = 0, was = 0;
    unsigned count = link->iov_count;
    if (room == 0) {
        held_add(link); /* link-nng-L5 */
        return;
    }
    for (unsigned i = 0; i < count; i++) { /* the rest goes on in on_sent(): link-nng-H12 */
        bytes += link->iov[i].iov_len;
        if (bytes > room) {
            count = i + 1;
            was = link->iov[i].iov_len;
            link->iov[i].iov_len -= bytes - room;
        }
    }
    (void)nng_aio_set_iov(link->tx, count, link->iov); /* a copy; write() checked the count */
    link->iov[count - 1].iov_len = was != 0 ? was : link->iov[count - 1].iov_len;
    nng_stream_send(link->stream, link->tx);
}

/* Take `count` sent bytes off the front of the write; true: something is left. */
static bool
write_advance(trpi_link *link, size_t count)
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
        link_fail(link, code);
        return;
    }
    pthread_mutex_lock(&link->lock);
    link->bottleneck.handed += nng_aio_count(link->tx);
    bool more = write_advance(link, nng_aio_count(link->tx));
    if (more && !link->closing) {
        post_write(link);
    }
    pthread_mutex_unlock(&link->lock);
    if (!more) {
        link->transport->events->written(link->user, link);
    }
}

static trp_err
tcp_write(trpi_link *link, const trpi_iov *iov, size_t count, bool *ret_done)
{
    (void)ret_done; /* nng tells the end of a send by a callback alone */
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
tcp_pause(trpi_link *link)
{
    pthread_mutex_lock(&link->lock);
    trpi_assert(link->telling);
    link->pause_asked = true;
    pthread_mutex_unlock(&link->lock);
}

static void
tcp_close(trpi_link *link)
{
    pthread_mutex_lock(&link->lock);
    trpi_link_shut(link, TRP_ECLOSED, "closed here");
    pthread_mutex_unlock(&link->lock);
}

static void
tcp_release(trpi_link *link)
{
    trpi_link_unref(link);
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
    trpi_mutex_destroy(&transport->lock);
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
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&transport->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    trp_err err = trpi_resolver_new(world, trpi_resolve_blocking, &transport->resolver);
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
        trpi_link_aio_end(&transport->accept);
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
        trpi_link_unref(link);
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
    .listen = trpi_link_listen,
    .accept = trpi_link_accept,
    .connect = trpi_link_connect,
    .write = tcp_write,
    .pause = tcp_pause,
    .close = tcp_close,
    .release = tcp_release,
    .stop = tcp_stop,
    .free = tcp_transport_free,
};
