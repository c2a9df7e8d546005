/* link_poll.c - the tcp transport on the world's sockets and the system's poller: links that read
 * and write.
 *
 * Why.   A byte costs one wake-up: the thread that the kernel wakes reads, decodes and delivers. A
 *        write goes to the kernel from the thread that has the bytes, and is done when it returns.
 * Shape. connect -> [resolver] -> dial -> OPEN;  accept -> OPEN          (link_poll_open.c)
 *        OPEN: ready() of the watch writes what the kernel did not take, and reads
 *        OPEN, of a control lane: on a thread of its own                  (link_poll_control.c)
 *        any failure, or close(): shut() -> the watch's removed() -> closed(), free
 * Must hold.
 *   link-poll-L1  After `closing` is set nothing is read or written, and no callback begins but
 *       closed(), which comes from removed(), or from a timer if there is no watch: never from
 *       inside a call (transport-T1), and after all others (transport-T3, poller-I1).
 *   link-poll-L2  bytes(), connected(), written() and paused() come from ready() alone, so they do
 *       not overlap (transport-T2).
 *   link-poll-L3  A socket is closed in removed() alone, when no thread uses it: a write holds
 *       link->lock and has tested `closing`.
 *   link-poll-L4  An idle link has no buffer: one is lent for the time of ready().
 *   link-poll-L5  What is not read or written for a reason of ours (a pause, a narrow way, a bound)
 *       is asked for again: by a timer, or by the result of ready().
 * Limits. TRPI_LINK_READ_BYTES a callback.
 * Locks.  link->lock, then transport->cond.lock, then those of poller and timers; no callback is
 *         called with one held.
 * Tests.  tests/unit/remote/link_test.c, poll_test.c
 */
#include "remote/poll/link_poll_inner.h"

#include <errno.h>

enum {
    PAUSE_LOOK_MS = 1, /* after this time a paused link looks whether it may read */
    HELD_LOOK_MS = 20  /* 160 bytes of a link of 64 kbit/s */
};

trp_err
trpi_link_poll_err(int error)
{
    switch (error) {
    case 0:
        return TRP_OK;
    case -EADDRINUSE:
        return TRP_EADDRINUSE;
    case -ENOMEM:
        return TRP_ENOMEM;
    case -EADDRNOTAVAIL:
        return TRP_EINVAL;
    case -ETIMEDOUT:
        return TRP_ETIMEDOUT;
    default:
        return TRP_ECONN;
    }
}

/* As the other driver says it, where that has words of its own. */
const char *
trpi_link_poll_reason(int error, char *text, size_t bytes)
{
    switch (error) {
    case 0:
        return "Connection shutdown"; /* the peer closed it */
    case -ECONNRESET:
    case -EPIPE:
        return "Connection reset";
    case -ETIMEDOUT:
        return "Timed out";
    default:
        text[0] = '\0';
        return strerror_r(-error, text, bytes);
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

void
trpi_link_poll_ref(trpi_link *link)
{
    atomic_fetch_add_explicit(&link->references, 1, memory_order_relaxed);
}

void
trpi_link_poll_unref(trpi_link *link)
{
    if (atomic_fetch_sub_explicit(&link->references, 1, memory_order_acq_rel) == 1) {
        trpi_assert(link->socket < 0 && link->watch == NULL);
        trpi_mutex_destroy(&link->lock);
        trpi_free(link->dial);
        trpi_free(link);
    }
}

/* With two references: the transport's and the user's. */
trpi_link *
trpi_link_poll_new(trpi_transport *transport, int socket)
{
    trpi_link *link = trpi_alloc(sizeof *link);
    if (link != NULL) {
        link->transport = transport;
        link->socket = socket;
        pthread_mutex_init(&link->lock, NULL);
        atomic_init(&link->references, 2);
    }
    return link;
}

bool
trpi_link_poll_add(trpi_link *link)
{
    trpi_transport *transport = link->transport;
    pthread_mutex_lock(&transport->cond.lock);
    bool open = !transport->stopping;
    if (open) {
        link->next = transport->links;
        if (link->next != NULL) {
            link->next->previous = link;
        }
        transport->links = link;
    }
    pthread_mutex_unlock(&transport->cond.lock);
    return open;
}

void
trpi_link_poll_finish(trpi_link *link, bool wanted)
{
    trpi_transport *transport = link->transport;
    if (wanted) {
        transport->events->closed(link->user, link, link->err, link->reason);
    } else {
        trpi_link_poll_unref(link); /* the user's share: it never took it */
    }
    pthread_mutex_lock(&transport->cond.lock);
    if (link->previous != NULL) {
        link->previous->next = link->next;
    } else {
        transport->links = link->next;
    }
    if (link->next != NULL) {
        link->next->previous = link->previous;
    }
    trpi_cond_broadcast(&transport->cond);
    pthread_mutex_unlock(&transport->cond.lock);
    trpi_link_poll_unref(link);
}

static void
timer_drop(void *arg, uint64_t a, uint64_t b)
{
    (void)a;
    (void)b;
    trpi_link_poll_unref(arg);
}

trp_err
trpi_link_poll_timer(trpi_link *link, uint64_t delay_ms, trpi_timer_fn fn, uint64_t a,
                     uint64_t *ret_timer)
{
    trpi_timer timer = { .due_ns = trpi_world_mono_ns(link->transport->world) + delay_ms * 1000000u,
                         .fn = fn,
                         .drop = timer_drop,
                         .arg = link,
                         .a = a };
    trpi_link_poll_ref(link);
    trp_err err = trpi_timer_start(link->transport->sched, &timer, ret_timer);
    if (err != TRP_OK) {
        atomic_fetch_sub_explicit(&link->references, 1, memory_order_relaxed); /* never the last */
    }
    return err;
}

static void
on_end_due(void *arg, uint64_t a, uint64_t b)
{
    trpi_link *link = arg;
    (void)a;
    (void)b;
    pthread_mutex_lock(&link->lock); /* the thread that shut it releases the lock first */
    pthread_mutex_unlock(&link->lock);
    trpi_link_poll_finish(link, true);
}

void
trpi_link_poll_unwatch(trpi_link *link)
{
    trpi_watch *watch = link->watch;
    link->watch = NULL;
    link->removing = true;
    trpi_watch_remove(watch);
}

void
trpi_link_poll_shut(trpi_link *link, trp_err err, const char *reason)
{
    uint64_t timer;
    if (atomic_load_explicit(&link->closing, memory_order_relaxed)) {
        return;
    }
    atomic_store_explicit(&link->closing, true, memory_order_release); /* link-poll-L1 */
    link->err = err;
    (void)snprintf(link->reason, sizeof link->reason, "%s", reason);
    if (link->socket >= 0) { /* the peer hears of it before removed() */
        (void)link->transport->net->shutdown(link->transport->world, link->socket, SHUT_RDWR);
    }
    if (link->dial != NULL && link->dial->timer != 0) {
        (void)trpi_timer_cancel(link->transport->sched, link->dial->timer);
        link->dial->timer = 0;
    }
    if (link->watch != NULL) {
        trpi_link_poll_unwatch(link);
    } else if (!link->removing && !link->accepting) {
        /* No memory: the resolver's answer ends it. */
        link->removing = trpi_link_poll_timer(link, 0, on_end_due, 0, &timer) == TRP_OK;
    }
}

static void
on_removed(void *user)
{
    trpi_link *link = user;
    const trpi_transport *transport = link->transport;
    pthread_mutex_lock(&link->lock);
    link->removing = false;
    bool closing = atomic_load_explicit(&link->closing, memory_order_relaxed);
    if (link->moving && !closing) {
        (void)trpi_link_control_come(link);
        pthread_mutex_unlock(&link->lock);
        return;
    }
    (void)transport->net->close(transport->world, link->socket); /* link-poll-L3 */
    link->socket = -1;
    if (!closing) {
        trpi_link_poll_dial_next(link); /* an attempt has failed */
    }
    pthread_mutex_unlock(&link->lock);
    if (closing) {
        trpi_link_poll_finish(link, true);
    }
}

/* ---- looking again --------------------------------------------------------------------------- */

static void
on_look_due(void *arg, uint64_t a, uint64_t b)
{
    trpi_link *link = arg;
    (void)a;
    (void)b;
    pthread_mutex_lock(&link->lock);
    link->look_due = false;
    if (link->watch != NULL) {
        trpi_watch_again(link->watch, TRPI_NET_IN | TRPI_NET_OUT);
    }
    pthread_mutex_unlock(&link->lock);
}

/* link-poll-L5. By link->lock. */
static void
look_later(trpi_link *link, uint64_t delay_ms)
{
    uint64_t timer;
    if (link->look_due || atomic_load_explicit(&link->closing, memory_order_relaxed)) {
        return;
    }
    link->look_due = true;
    if (trpi_link_poll_timer(link, delay_ms, on_look_due, 0, &timer) != TRP_OK) {
        trpi_link_poll_shut(link, TRP_ENOMEM, "out of memory");
    }
}

/* ---- writing; by link->lock ------------------------------------------------------------------ */

/* Take `count` bytes off the front of the write. */
static void
write_advance(trpi_link *link, size_t count)
{
    while (link->iov_at < link->iov_count && count >= link->iov[link->iov_at].iov_len) {
        count -= link->iov[link->iov_at].iov_len;
        link->iov_at++;
    }
    if (count > 0) {
        link->iov[link->iov_at].iov_base = (uint8_t *)link->iov[link->iov_at].iov_base + count;
        link->iov[link->iov_at].iov_len -= count;
    }
}

/* One call of the kernel, of at most `room` bytes. */
static ssize_t
write_once(trpi_link *link, size_t room)
{
    unsigned count = link->iov_count - link->iov_at, parts = 0;
    struct iovec *iov = link->iov + link->iov_at;
    size_t bytes = 0, cut = 0;
    while (parts < count && bytes < room) {
        bytes += iov[parts].iov_len;
        parts++;
    }
    if (bytes > room) {
        cut = bytes - room;
        iov[parts - 1].iov_len -= cut;
    }
    ssize_t sent =
        link->transport->net->write(link->transport->world, link->socket, iov, (int)parts);
    iov[parts - 1].iov_len += cut;
    return sent;
}

/* Write as much as the kernel takes, and the way bears. true: all is written. */
static bool
write_some(trpi_link *link)
{
    while (link->iov_at < link->iov_count) {
        size_t room = trpi_link_way_room(link);
        if (room == 0) {
            look_later(link, HELD_LOOK_MS);
            return false;
        }
        ssize_t sent = write_once(link, room);
        if (sent == -EAGAIN) {
            return false; /* the edge comes */
        }
        if (sent < 0 && sent != -EINTR) {
            char text[96];
            trpi_link_poll_shut(link, trpi_link_poll_err((int)sent),
                                trpi_link_poll_reason((int)sent, text, sizeof text));
            return false;
        }
        if (sent > 0) {
            link->way.bottleneck.handed += (size_t)sent;
            write_advance(link, (size_t)sent);
        }
    }
    return true;
}

static trp_err
poll_write(trpi_link *link, const trpi_iov *iov, size_t count, bool *ret_done)
{
    trpi_assert(count >= 1 && count <= TRPI_TRANSPORT_IOV_MAX);
    trp_err err = TRP_ECLOSED;
    pthread_mutex_lock(&link->lock);
    if (!atomic_load_explicit(&link->closing, memory_order_relaxed) &&
        atomic_load_explicit(&link->stage, memory_order_relaxed) == TRPI_LINK_OPEN) {
        trpi_assert(!atomic_load_explicit(&link->writing, memory_order_relaxed));
        unsigned parts = 0;
        for (size_t i = 0; i < count; i++) {
            if (iov[i].bytes > 0) { /* the kernel does not write through it */
                link->iov[parts].iov_base = (void *)(uintptr_t)iov[i].data;
                link->iov[parts++].iov_len = iov[i].bytes;
            }
        }
        link->iov_at = 0;
        link->iov_count = parts;
        atomic_store_explicit(&link->writing, true, memory_order_relaxed);
        bool all = write_some(link);
        if (all && ret_done != NULL) {
            atomic_store_explicit(&link->writing, false, memory_order_relaxed);
            *ret_done = true;
        } else if (all && link->watch != NULL) { /* else: the watch begins with a report */
            trpi_watch_again(link->watch, TRPI_NET_OUT);
        }
        err = TRP_OK;
    }
    pthread_mutex_unlock(&link->lock);
    return err;
}

/* From ready(). */
static void
write_go_on(trpi_link *link)
{
    bool over = false;
    pthread_mutex_lock(&link->lock);
    if (atomic_load_explicit(&link->writing, memory_order_relaxed) &&
        !atomic_load_explicit(&link->closing, memory_order_relaxed)) {
        over = write_some(link);
        if (over) {
            atomic_store_explicit(&link->writing, false, memory_order_relaxed);
        }
    }
    pthread_mutex_unlock(&link->lock);
    if (over) {
        link->transport->events->written(link->user, link);
    }
}

/* ---- reading; from ready() ------------------------------------------------------------------- */

static trpi_link_buffer *
buffer_take(trpi_transport *transport)
{
    pthread_mutex_lock(&transport->cond.lock);
    trpi_link_buffer *buffer = transport->buffers;
    if (buffer != NULL) {
        transport->buffers = buffer->next;
        transport->buffers_count--;
    }
    pthread_mutex_unlock(&transport->cond.lock);
    return buffer != NULL ? buffer : trpi_realloc(NULL, sizeof *buffer);
}

static void
buffer_give(trpi_transport *transport, trpi_link_buffer *buffer)
{
    pthread_mutex_lock(&transport->cond.lock);
    bool kept = transport->buffers_count < TRPI_LINK_BUFFERS_KEPT;
    if (kept) {
        buffer->next = transport->buffers;
        transport->buffers = buffer;
        transport->buffers_count++;
    }
    pthread_mutex_unlock(&transport->cond.lock);
    if (!kept) {
        trpi_free(buffer);
    }
}

static void
link_fail(trpi_link *link, int error)
{
    char text[96];
    pthread_mutex_lock(&link->lock);
    trpi_link_poll_shut(link, trpi_link_poll_err(error != 0 ? error : -ECONNRESET),
                        trpi_link_poll_reason(error, text, sizeof text));
    pthread_mutex_unlock(&link->lock);
}

/* A link of the thread for control lanes is nudged. */
static void
look_at_pause(trpi_link *link)
{
    if (!link->own) {
        pthread_mutex_lock(&link->lock);
        look_later(link, PAUSE_LOOK_MS);
        pthread_mutex_unlock(&link->lock);
    }
}

/* Return the events to come again. */
static uint32_t
read_into(trpi_link *link, uint8_t *buffer, size_t buffer_bytes)
{
    const trpi_transport *transport = link->transport;
    const struct iovec iov = { buffer, buffer_bytes };
    size_t bytes = 0;
    while (!atomic_load_explicit(&link->closing, memory_order_acquire)) {
        /* the receivers run before the next buffer, while what they are told is in the cache */
        if (bytes >= TRPI_LINK_READ_BYTES) {
            return TRPI_NET_IN; /* link-poll-L5 */
        }
        ssize_t got = transport->net->read(transport->world, link->socket, &iov, 1);
        if (got == -EAGAIN) {
            link->drain = false;
            break;
        }
        if (got > 0) {
            bytes += (size_t)got;
            transport->events->bytes(link->user, link, buffer, (size_t)got);
        } else if (got != -EINTR) {
            link_fail(link, (int)got);
        }
        if (link->own_asked) {
            trpi_link_control_leave(link);
            break;
        }
        if (link->pause_asked) {
            link->pause_asked = false;
            link->paused = true;
            look_at_pause(link);
            break;
        }
        if (got > 0 && (size_t)got < buffer_bytes && !link->drain) {
            break; /* net-N1: nothing is left */
        }
    }
    return 0;
}

static uint32_t
link_read(trpi_link *link)
{
    trpi_transport *transport = link->transport;
    if (link->paused) {
        if (transport->events->paused(link->user, link)) {
            look_at_pause(link);
            return 0;
        }
        link->paused = false;
    }
    if (link->own) {
        return read_into(link, transport->apart->bytes, sizeof transport->apart->bytes);
    }
    trpi_link_buffer *buffer = buffer_take(transport); /* link-poll-L4 */
    if (buffer == NULL) {
        pthread_mutex_lock(&link->lock);
        trpi_link_poll_shut(link, TRP_ENOMEM, "out of memory");
        pthread_mutex_unlock(&link->lock);
        return 0;
    }
    uint32_t again = read_into(link, buffer->bytes, sizeof buffer->bytes);
    buffer_give(transport, buffer);
    return again;
}

static uint32_t
on_ready(void *user, uint32_t events)
{
    trpi_link *link = user;
    if (atomic_load_explicit(&link->closing, memory_order_acquire)) {
        return 0;
    }
    link->drain |= (events & (TRPI_NET_DRAIN | TRPI_NET_END)) != 0;
    if (atomic_load_explicit(&link->stage, memory_order_acquire) != TRPI_LINK_OPEN) {
        pthread_mutex_lock(&link->lock);
        bool open = trpi_link_poll_dialled(link);
        pthread_mutex_unlock(&link->lock);
        if (!open) {
            return 0;
        }
        link->transport->events->connected(link->user, link);
        events |= TRPI_NET_IN; /* it may have been reported before */
    }
    /* acquire: pairs with nudge() */
    if (link->own && (atomic_exchange_explicit(&link->nudged, false, memory_order_acquire) ||
                      (events & TRPI_NET_OUT) != 0)) { /* a waker sets no mark */
        link->transport->events->nudged(link->user, link);
        events |= link->paused ? TRPI_NET_IN : 0;
    }
    if ((events & (TRPI_NET_OUT | TRPI_NET_END)) != 0 &&
        atomic_load_explicit(&link->writing, memory_order_relaxed)) {
        write_go_on(link);
    }
    if ((events & (TRPI_NET_IN | TRPI_NET_END)) != 0 &&
        !atomic_load_explicit(&link->closing, memory_order_acquire)) {
        return link_read(link);
    }
    return 0;
}

const trpi_watch_events trpi_link_watch_events = { on_ready, on_removed };

/* ---- ops ------------------------------------------------------------------------------------- */

static void
poll_pause(trpi_link *link)
{
    link->pause_asked = true;
}

static void
poll_close(trpi_link *link)
{
    pthread_mutex_lock(&link->lock);
    trpi_link_poll_shut(link, TRP_ECLOSED, "closed here");
    pthread_mutex_unlock(&link->lock);
}

static void
poll_free(trpi_transport *transport)
{
    if (transport == NULL) {
        return;
    }
    trpi_assert(transport->links == NULL && transport->listener < 0);
    trpi_link_control_free(transport);
    trpi_resolver_free(transport->resolver);
    while (transport->buffers != NULL) {
        trpi_link_buffer *buffer = transport->buffers;
        transport->buffers = buffer->next;
        trpi_free(buffer);
    }
    trpi_cond_fini(&transport->cond);
    trpi_free(transport);
}

static trp_err
poll_open(void *transport_arg, trpi_world *world, const trpi_transport_events *events, void *arg,
          trpi_transport **ret_transport)
{
    const trpi_link_poll_arg *given = transport_arg;
    trpi_transport *transport = trpi_alloc(sizeof *transport);
    if (transport == NULL) {
        return TRP_ENOMEM;
    }
    transport->world = world;
    transport->net = trpi_world_net(world);
    transport->sched = given->sched;
    transport->poller = given->poller;
    transport->events = events;
    transport->arg = arg;
    transport->listener = -1;
    trpi_cond_init(&transport->cond);
    trp_err err = trpi_resolver_new(world, trpi_resolve_blocking, &transport->resolver);
    if (err != TRP_OK) {
        poll_free(transport);
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

static bool
links_are_gone(void *arg)
{
    return ((const trpi_transport *)arg)->links == NULL;
}

static void
poll_stop(trpi_transport *transport)
{
    pthread_mutex_lock(&transport->cond.lock);
    transport->stopping = true;
    pthread_mutex_unlock(&transport->cond.lock);
    trpi_link_poll_listen_end(transport);
    pthread_mutex_lock(&transport->cond.lock);
    for (trpi_link *link = link_unstopped(transport->links); link != NULL;
         link = link_unstopped(transport->links)) {
        link->stop_asked = true;
        trpi_link_poll_ref(link);
        pthread_mutex_unlock(&transport->cond.lock); /* order of locks: link, transport */
        poll_close(link);
        trpi_link_poll_unref(link);
        pthread_mutex_lock(&transport->cond.lock);
    }
    (void)trpi_cond_wait(&transport->cond, transport->sched, links_are_gone, transport, UINT64_MAX);
    pthread_mutex_unlock(&transport->cond.lock);
}

const trpi_transport_ops trpi_link_poll_ops = {
    .scheme = "tcp",
    .open = poll_open,
    .listen = trpi_link_poll_listen,
    .accept = trpi_link_poll_accept,
    .connect = trpi_link_poll_connect,
    .write = poll_write,
    .pause = poll_pause,
    .hand_over = trpi_link_control_hand_over,
    .nudge = trpi_link_control_nudge,
    .waker = trpi_link_control_waker,
    .wake = trpi_link_control_wake,
    .close = poll_close,
    .release = trpi_link_poll_unref,
    .stop = poll_stop,
    .free = poll_free,
};
