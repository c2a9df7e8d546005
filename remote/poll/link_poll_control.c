/* link_poll_control.c - links on the thread for control lanes.
 *
 * Why.   A heartbeat must not wait for a worker, which runs actors, or for what an actor holds.
 * Shape. hand_over() in bytes() -> bytes() returns: the watch ends -> removed(): a watch of the
 *        thread's poller begins -> ready(): nudged(), written(), bytes() of TRPI_LINK_CONTROL_BYTES
 * Must hold.
 *   link-poll-control-C1  Between the two watches nothing is lost: the second one begins with a
 *       report of what is ready, and then looks for a nudge.
 *   link-poll-control-C2  The thread takes link->lock, which is held for a system call at most, and
 *       transport->cond.lock when a link ends; it starts no timer. So the bytes that the kernel may
 *       hold of such a link are not bounded (link_poll_way.c): a control lane has few.
 * Tests. tests/unit/remote/control_lane_test.c
 */
#include "remote/poll/link_poll_inner.h"

/* Make the thread, if there is none yet. */
static bool
control_make(trpi_transport *transport)
{
    trpi_link_control *apart;
    pthread_mutex_lock(&transport->cond.lock);
    apart = transport->apart;
    if (apart == NULL && (apart = trpi_alloc(sizeof *apart)) != NULL) {
        if (trpi_poller_thread_new(transport->world, "troupe-control", &apart->poller) != TRP_OK) {
            trpi_free(apart);
            apart = NULL;
        }
        transport->apart = apart;
    }
    pthread_mutex_unlock(&transport->cond.lock);
    return apart != NULL;
}

bool
trpi_link_control_hand_over(trpi_link *link)
{
    trpi_assert(!link->own);
    link->own_asked = link->own_asked || control_make(link->transport);
    return link->own_asked;
}

void
trpi_link_control_nudge(trpi_link *link)
{
    /* release: what is to be written; pairs with on_ready() */
    atomic_store_explicit(&link->nudged, true, memory_order_release);
    pthread_mutex_lock(&link->lock);
    if (link->own && link->watch != NULL) { /* else: link-poll-control-C1 */
        trpi_watch_again(link->watch, TRPI_NET_OUT);
    }
    pthread_mutex_unlock(&link->lock);
}

/* A watch stays what it is until its poller is freed: one that has ended is not called. */
trpi_waker *
trpi_link_control_waker(trpi_link *link)
{
    trpi_assert(link->own);
    return (trpi_waker *)link->own_watch;
}

void
trpi_link_control_wake(trpi_transport *transport, trpi_waker *waker)
{
    (void)transport;
    trpi_watch_again((trpi_watch *)waker, TRPI_NET_OUT);
}

void
trpi_link_control_leave(trpi_link *link)
{
    pthread_mutex_lock(&link->lock);
    link->own_asked = false;
    if (link->watch != NULL) {
        link->moving = true;
        trpi_link_poll_unwatch(link);
    }
    pthread_mutex_unlock(&link->lock);
}

bool
trpi_link_control_come(trpi_link *link)
{
    const trpi_transport *transport = link->transport;
    link->moving = false;
    link->own = true;
    trp_err err = trpi_watch_new(transport->apart->poller, link->socket, &trpi_link_watch_events,
                                 link, &link->own_watch);
    if (err == TRP_OK) {
        link->watch = link->own_watch;
        return true;
    }
    (void)transport->net->close(transport->world, link->socket);
    link->socket = -1;
    trpi_link_poll_shut(link, err, trp_strerror(err));
    return false;
}

void
trpi_link_control_free(trpi_transport *transport)
{
    if (transport->apart != NULL) {
        trpi_poller_free(transport->apart->poller);
        trpi_free(transport->apart);
    }
}
