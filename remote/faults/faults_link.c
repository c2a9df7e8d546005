/* faults_link.c - the transport of faults.h: connections whose frames are delayed, lost or
 * repeated.
 *
 * Shape.   upper room -> our link -> out queue --pacer--> link of the inner transport
 *          upper room <-pacer-- in queue <- our link <- the inner transport's callbacks
 *          Bytes are cut into frames (fault_cut.c); a rule decides about each frame
 *          (fault_shaper.c), which is queued until it is due. The pacer is one thread for one
 *          transport.
 * Must hold.
 *   faults-link-W1  Only the pacer calls bytes(), written() and closed(): they never overlap
 *       (transport-T2). A write is done at once while there is room: its bytes were copied.
 *   faults-link-W2  closed() is called after the inner link's closed(), when the in queue is empty
 *       or the link was closed on this side; then release() frees the inner link, too.
 *   faults-link-W3  After close() frames that were written before are still sent, as on a real
 *       network, for LINGER_MS at most.
 * Limits.  TRPI_FAULT_HELD_BYTES_MAX queued bytes a direction: above it written() is delayed, and
 *          the inner link is paused.
 * Locks.   transport->lock guards everything; faults->lock is taken after it. No callback is made
 *          under it, but inner functions may be called (transport-T1).
 * Tests.   tests/unit/remote/faults_test.c
 * Sources. MNT-02, -07
 */
#include "remote/faults/faults_inner.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"

enum { LINGER_MS = 5000, HELD_BYTES_LEAST = 16384 };
#define NS_PER_MS UINT64_C(1000000)

typedef struct chunk {
    struct chunk *next;
    uint64_t due_ns;
    size_t count, capacity;
    uint8_t bytes[];
} chunk; /* whole units, all due at once */

typedef struct queue {
    chunk *first, *last;
    size_t bytes;
    trpi_fault_shaper shaper;
    trpi_fault_cutter cutter;
} queue;

struct trpi_link {
    trpi_transport *transport;
    trpi_link *inner; /* opaque */
    void *user;
    char peer[TRPI_FAULT_PEER_BYTES]; /* "": not known yet */
    queue out, in;
    chunk *writing; /* passed to the inner link */
    bool written_due;
    bool closing; /* close() was called on this side */
    bool inner_close_called;
    bool inner_closed, closed_called;
    uint64_t linger_until_ns;
    uint32_t round; /* the pacer's last round that visited it */
    trp_err err;
    char reason[128];
    trpi_link *next;
};

struct trpi_transport {
    trpi_faults *faults;
    const trpi_transport_ops *inner_ops;
    trpi_transport *inner; /* opaque */
    trpi_world *world;
    const trpi_transport_events *events;
    void *arg;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t pacer;
    bool pacer_runs, pacer_ends, stopping;
    bool in_callback;   /* the pacer is in a callback */
    bool event_pending; /* an event since the pacer's last round */
    uint32_t round;
    trpi_link *links;
};

/* ---- queues; the caller holds transport->lock ------------------------------------------------ */

static void
queue_clear(trpi_faults *faults, queue *q)
{
    trpi_faults_cut(faults, q->bytes);
    while (q->first != NULL) {
        chunk *h = q->first;

        q->first = h->next;
        trpi_free(h);
    }
    q->last = NULL;
    q->bytes = 0;
}

/* Append, nearly always at the end; frames with the same due time share a chunk. */
static trp_err
queue_add(queue *q, uint64_t due_ns, const uint8_t *bytes, size_t count)
{
    chunk *h = q->last, **at = &q->first;

    if (h != NULL && h->due_ns == due_ns && h->capacity - h->count >= count) {
        memcpy(h->bytes + h->count, bytes, count);
        h->count += count;
        q->bytes += count;
        return TRP_OK;
    }
    h = trpi_alloc(sizeof *h + (count > HELD_BYTES_LEAST ? count : HELD_BYTES_LEAST));
    if (h == NULL) {
        return TRP_ENOMEM;
    }
    h->capacity = count > HELD_BYTES_LEAST ? count : HELD_BYTES_LEAST;
    memcpy(h->bytes, bytes, count);
    h->count = count;
    h->due_ns = due_ns;
    if (q->last != NULL && q->last->due_ns <= due_ns) {
        at = &q->last->next;
    }
    while (*at != NULL && (*at)->due_ns <= due_ns) { /* behind a reordered frame */
        at = &(*at)->next;
    }
    h->next = *at;
    *at = h;
    q->last = h->next == NULL ? h : q->last;
    q->bytes += count;
    return TRP_OK;
}

static chunk *
queue_take(queue *q)
{
    chunk *h = q->first;

    q->first = h->next;
    q->last = h->next == NULL ? NULL : q->last;
    q->bytes -= h->count;
    h->next = NULL;
    return h;
}

typedef struct passage {
    trpi_link *link;
    bool out;
    uint64_t now_ns;
} passage;

static trp_err
unit_comes(void *arg, enum trpi_fault_unit unit, const uint8_t *bytes, size_t count)
{
    passage *p = arg;
    trpi_transport *transport = p->link->transport;
    queue *q = p->out ? &p->link->out : &p->link->in;
    trpi_fault_verdict verdict;
    uint64_t rolls[4];

    for (int i = 0; i < 4; i++) {
        rolls[i] = trpi_world_random(transport->world);
    }
    verdict = trpi_faults_judge(transport->faults, p->link->peer, p->out, &q->shaper, p->now_ns,
                                unit, bytes, count, rolls);
    for (uint32_t i = 0; i < verdict.copies; i++) {
        trp_err err = queue_add(q, verdict.due_ns, bytes, count);

        if (err != TRP_OK) {
            return err;
        }
    }
    return TRP_OK;
}

static trp_err
link_feed(trpi_link *link, bool out, const uint8_t *bytes, size_t count)
{
    passage p = { link, out, trpi_world_mono_ns(link->transport->world) };

    return trpi_fault_cutter_feed(out ? &link->out.cutter : &link->in.cutter, bytes, count,
                                  unit_comes, &p);
}

static void
pacer_wake(trpi_transport *transport)
{
    transport->event_pending = true;
    pthread_cond_broadcast(&transport->wake);
}

/* ---- links ----------------------------------------------------------------------------------- */

static trpi_link *
link_new(trpi_transport *transport, trpi_link *inner, const char *peer)
{
    trpi_link *link = trpi_alloc(sizeof *link);

    if (link != NULL) {
        link->transport = transport;
        link->inner = inner;
        (void)snprintf(link->peer, sizeof link->peer, "%s", peer);
        pthread_mutex_lock(&transport->lock);
        link->next = transport->links;
        transport->links = link;
        pthread_mutex_unlock(&transport->lock);
    }
    return link;
}

static void
writing_free(trpi_link *link)
{
    while (link->writing != NULL) {
        chunk *h = link->writing;

        link->writing = h->next;
        trpi_free(h);
    }
}

static void
link_free(trpi_link *link)
{
    trpi_transport *transport = link->transport;

    pthread_mutex_lock(&transport->lock);
    for (trpi_link **at = &transport->links; *at != NULL; at = &(*at)->next) {
        if (*at == link) {
            *at = link->next;
            break;
        }
    }
    queue_clear(transport->faults, &link->out);
    queue_clear(transport->faults, &link->in);
    writing_free(link);
    pacer_wake(transport); /* stop() may wait for this, too */
    pthread_mutex_unlock(&transport->lock);
    trpi_fault_cutter_fini(&link->out.cutter);
    trpi_fault_cutter_fini(&link->in.cutter);
    trpi_free(link);
}

static void
inner_close(trpi_link *link)
{
    if (!link->inner_close_called && link->inner != NULL) {
        link->inner_close_called = true;
        link->transport->inner_ops->close(link->inner);
    }
}

static void
link_cut(trpi_link *link)
{
    queue_clear(link->transport->faults, &link->out);
    queue_clear(link->transport->faults, &link->in);
    inner_close(link);
}

/* ---- callbacks of the inner transport -------------------------------------------------------- */

static bool
on_accepted(void *arg, trpi_link *inner, const char *peer, void **ret_user)
{
    trpi_transport *transport = arg;
    trpi_link *link = link_new(transport, inner, "");

    if (link == NULL) {
        return false;
    }
    *ret_user = link;
    if (!transport->events->accepted(transport->arg, link, peer, &link->user)) {
        link_free(link);
        return false;
    }
    return true;
}

static void
on_connected(void *user, trpi_link *inner)
{
    trpi_link *link = user;

    (void)inner;
    link->transport->events->connected(link->user, link);
}

static void
on_bytes(void *user, trpi_link *inner, const uint8_t *bytes, size_t count)
{
    trpi_link *link = user;
    trpi_transport *transport = link->transport;

    pthread_mutex_lock(&transport->lock);
    if (!link->closing && link_feed(link, false, bytes, count) != TRP_OK) {
        link_cut(link);
    }
    bool full = link->in.bytes > TRPI_FAULT_HELD_BYTES_MAX;
    pacer_wake(transport);
    pthread_mutex_unlock(&transport->lock);
    if (full && transport->inner_ops->pause != NULL) {
        transport->inner_ops->pause(inner);
    }
}

static bool
on_paused(void *user, trpi_link *inner)
{
    trpi_link *link = user;

    (void)inner;
    pthread_mutex_lock(&link->transport->lock);
    bool wait = link->in.bytes > TRPI_FAULT_HELD_BYTES_MAX / 2;
    pthread_mutex_unlock(&link->transport->lock);
    return wait;
}

static void
on_written(void *user, trpi_link *inner)
{
    trpi_link *link = user;

    (void)inner;
    pthread_mutex_lock(&link->transport->lock);
    writing_free(link);
    pacer_wake(link->transport);
    pthread_mutex_unlock(&link->transport->lock);
}

static void
on_closed(void *user, trpi_link *inner, trp_err err, const char *reason)
{
    trpi_link *link = user;
    trpi_transport *transport = link->transport;

    (void)inner;
    pthread_mutex_lock(&transport->lock);
    link->inner_closed = true;
    link->inner_close_called = true;
    link->err = err;
    (void)snprintf(link->reason, sizeof link->reason, "%s", reason);
    writing_free(link);
    queue_clear(transport->faults, &link->out);
    pacer_wake(transport);
    pthread_mutex_unlock(&transport->lock);
}

static void
on_refused(void *user, trpi_link *inner, trpi_refusal why, const char *detail)
{
    trpi_link *link = user;

    (void)inner;
    if (link->transport->events->refused != NULL) {
        link->transport->events->refused(link->user, link, why, detail);
    }
}

static void
on_starved(void *arg)
{
    trpi_transport *transport = arg;

    if (transport->events->starved != NULL) {
        transport->events->starved(transport->arg);
    }
}

static const trpi_transport_events inner_events = { .accepted = on_accepted,
                                                    .starved = on_starved,
                                                    .connected = on_connected,
                                                    .bytes = on_bytes,
                                                    .written = on_written,
                                                    .closed = on_closed,
                                                    .paused = on_paused,
                                                    .refused = on_refused };

/* ---- the pacer ------------------------------------------------------------------------------- */

static void
write_due(trpi_link *link, uint64_t now_ns)
{
    trpi_iov iov[TRPI_TRANSPORT_IOV_MAX];
    chunk **last = &link->writing;
    size_t count = 0;

    while (count < TRPI_TRANSPORT_IOV_MAX && link->out.first != NULL &&
           link->out.first->due_ns <= now_ns) {
        chunk *h = queue_take(&link->out);

        iov[count++] = (trpi_iov){ h->bytes, h->count };
        *last = h;
        last = &h->next;
    }
    bool done = false;
    /* refused: closed() is on its way */
    if (link->transport->inner_ops->write(link->inner, iov, count, &done) != TRP_OK || done) {
        writing_free(link);
    }
    if (done) {
        pacer_wake(link->transport); /* what else is due goes after the others' turn */
    }
}

static void
wake_earlier(uint64_t *at_ns, uint64_t other_ns)
{
    *at_ns = other_ns < *at_ns ? other_ns : *at_ns;
}

/* Write the frames that are due, and close the inner link of a link that was closed on this side.
 * The lock stays held. */
static void
link_send(trpi_link *link, uint64_t now_ns, uint64_t *wake_ns)
{
    if (link->closing && !link->inner_close_called && link->inner != NULL) { /* faults-link-W3 */
        bool sent = link->out.first == NULL && link->writing == NULL;

        if (sent || link->transport->stopping || now_ns >= link->linger_until_ns) {
            inner_close(link);
        } else {
            wake_earlier(wake_ns, link->linger_until_ns);
        }
    }
    if (link->out.first == NULL || link->writing != NULL || link->inner_close_called) {
        return;
    }
    if (link->out.first->due_ns <= now_ns) {
        write_due(link, now_ns);
    } else {
        wake_earlier(wake_ns, link->out.first->due_ns);
    }
}

/* Make one callback, if one is due; the lock is released meanwhile. */
static bool
link_callback(trpi_link *link, uint64_t now_ns)
{
    trpi_transport *transport = link->transport;
    const trpi_transport_events *events = transport->events;
    chunk *h = NULL;
    enum { CLOSED, WRITTEN, BYTES } what;

    if (link->inner_closed && link->in.first == NULL) { /* faults-link-W2 */
        what = CLOSED;
        link->closed_called = true;
    } else if (link->written_due && !link->inner_closed &&
               link->out.bytes < TRPI_FAULT_HELD_BYTES_MAX) {
        what = WRITTEN;
        link->written_due = false;
    } else if (link->in.first != NULL && link->in.first->due_ns <= now_ns) {
        what = BYTES;
        h = queue_take(&link->in);
    } else {
        return false;
    }
    transport->in_callback = true;
    pthread_mutex_unlock(&transport->lock);
    if (what == CLOSED) {
        events->closed(link->user, link, link->err, link->reason); /* may release the link */
    } else if (what == WRITTEN) {
        events->written(link->user, link);
    } else {
        events->bytes(link->user, link, h->bytes, h->count);
        trpi_free(h);
    }
    pthread_mutex_lock(&transport->lock);
    transport->in_callback = false;
    pacer_wake(transport); /* and stop(), which may be waiting */
    return true;
}

/* Do what is due for one link (faults-link-W1). true: a callback was made, so the list may have
 * changed. */
static bool
link_step(trpi_link *link, uint64_t now_ns, uint64_t *wake_ns)
{
    trpi_transport *transport = link->transport;

    if (link->closed_called) {
        return false;
    }
    if (link->closing || transport->stopping) {
        queue_clear(transport->faults, &link->in);
    }
    link_send(link, now_ns, wake_ns);
    if (link_callback(link, now_ns)) {
        return true;
    }
    if (link->in.first != NULL) {
        wake_earlier(wake_ns, link->in.first->due_ns);
    }
    return false;
}

static trpi_link *
link_next(trpi_transport *transport)
{
    for (trpi_link *link = transport->links; link != NULL; link = link->next) {
        if (link->round != transport->round) {
            link->round = transport->round;
            return link;
        }
    }
    return NULL;
}

static void
pacer_wait(trpi_transport *transport, uint64_t wake_ns)
{
    struct timespec at = { (time_t)(wake_ns / 1000000000u), (long)(wake_ns % 1000000000u) };

    if (wake_ns == UINT64_MAX) {
        pthread_cond_wait(&transport->wake, &transport->lock);
    } else {
        pthread_cond_timedwait(&transport->wake, &transport->lock, &at);
    }
}

static void *
pacer_thread(void *arg)
{
    trpi_transport *transport = arg;

    pthread_mutex_lock(&transport->lock);
    while (!transport->pacer_ends) {
        uint64_t wake_ns = UINT64_MAX, now_ns = trpi_world_mono_ns(transport->world);
        bool did = false;
        trpi_link *link;

        transport->event_pending = false;
        transport->round++;
        while ((link = link_next(transport)) != NULL) {
            did = link_step(link, now_ns, &wake_ns) || did;
        }
        if (!did && !transport->event_pending && !transport->pacer_ends) {
            pacer_wait(transport, wake_ns);
        }
    }
    pthread_mutex_unlock(&transport->lock);
    return NULL;
}

/* ---- ops ------------------------------------------------------------------------------------- */

static trp_err
faults_open(void *transport_arg, trpi_world *world, const trpi_transport_events *events, void *arg,
            trpi_transport **ret_transport)
{
    trpi_transport *transport = trpi_alloc(sizeof *transport);
    pthread_condattr_t attributes;
    void *inner_arg;
    trp_err err;

    if (transport == NULL) {
        return TRP_ENOMEM;
    }
    transport->faults = transport_arg;
    transport->inner_ops = trpi_faults_inner(transport->faults, &inner_arg);
    transport->world = world;
    transport->events = events;
    transport->arg = arg;
    pthread_mutex_init(&transport->lock, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&transport->wake, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    err = transport->inner_ops->open(inner_arg, world, &inner_events, transport, &transport->inner);
    if (err == TRP_OK && pthread_create(&transport->pacer, NULL, pacer_thread, transport) != 0) {
        err = TRP_EIO;
        transport->inner_ops->stop(transport->inner);
        transport->inner_ops->free(transport->inner);
    }
    if (err != TRP_OK) {
        pthread_cond_destroy(&transport->wake);
        trpi_mutex_destroy(&transport->lock);
        trpi_free(transport);
        return err;
    }
    transport->pacer_runs = true;
    trpi_faults_attach(transport->faults, transport);
    *ret_transport = transport;
    return TRP_OK;
}

static trp_err
faults_listen(trpi_transport *transport, const char *host, uint16_t port, uint16_t *ret_port)
{
    return transport->inner_ops->listen(transport->inner, host, port, ret_port);
}

static void
faults_accept(trpi_transport *transport)
{
    transport->inner_ops->accept(transport->inner);
}

static trp_err
faults_connect(trpi_transport *transport, const char *host, uint16_t port, uint32_t timeout_ms,
               void *user, trpi_link **ret_link)
{
    char peer[TRPI_FAULT_PEER_BYTES];
    trp_err err;

    trpi_fault_peer_format(peer, host, port);
    trpi_link *link = link_new(transport, NULL, peer);
    if (link == NULL) {
        return TRP_ENOMEM;
    }
    link->user = user;
    *ret_link = link;
    pthread_mutex_lock(&transport->lock); /* callbacks wait until link->inner is set */
    err =
        transport->inner_ops->connect(transport->inner, host, port, timeout_ms, link, &link->inner);
    pthread_mutex_unlock(&transport->lock);
    if (err != TRP_OK) {
        link_free(link);
    }
    return err;
}

static trp_err
faults_write(trpi_link *link, const trpi_iov *iov, size_t count, bool *ret_done)
{
    trpi_transport *transport = link->transport;
    trp_err err = TRP_OK;

    pthread_mutex_lock(&transport->lock);
    if (link->closing || link->inner_closed || transport->stopping) {
        err = TRP_ECLOSED;
    }
    for (size_t i = 0; i < count && err == TRP_OK; i++) {
        if (link_feed(link, true, iov[i].data, iov[i].bytes) != TRP_OK) {
            link_cut(link); /* closed() follows */
        }
    }
    if (err == TRP_OK) {
        bool room = link->out.bytes < TRPI_FAULT_HELD_BYTES_MAX;
        link->written_due = ret_done == NULL || !room;
        if (!link->written_due) {
            *ret_done = true;
        }
        pacer_wake(transport);
    }
    pthread_mutex_unlock(&transport->lock);
    return err;
}

static trp_err
faults_claims(trpi_link *link, const char *host, uint16_t port, char *ret_detail,
              size_t detail_bytes)
{
    return link->transport->inner_ops->claims(link->inner, host, port, ret_detail, detail_bytes);
}

static uint64_t
faults_whose(trpi_link *link)
{
    const trpi_transport_ops *ops = link->transport->inner_ops;

    return ops->whose != NULL ? ops->whose(link->inner) : 0;
}

static void
faults_named(trpi_link *link, char *ret_name, size_t bytes)
{
    const trpi_transport_ops *ops = link->transport->inner_ops;

    ret_name[0] = '\0';
    if (ops->named != NULL) {
        ops->named(link->inner, ret_name, bytes);
    }
}

static int64_t
faults_until(trpi_link *link)
{
    const trpi_transport_ops *ops = link->transport->inner_ops;

    return ops->until != NULL ? ops->until(link->inner) : 0;
}

static bool
faults_outdated(trpi_link *link)
{
    const trpi_transport_ops *ops = link->transport->inner_ops;

    return ops->outdated != NULL && ops->outdated(link->inner);
}

static void
faults_close(trpi_link *link)
{
    trpi_transport *transport = link->transport;

    pthread_mutex_lock(&transport->lock);
    if (!link->closing) {
        link->closing = true;
        link->linger_until_ns = trpi_world_mono_ns(transport->world) + LINGER_MS * NS_PER_MS;
        pacer_wake(transport);
    }
    pthread_mutex_unlock(&transport->lock);
}

static void
faults_release(trpi_link *link)
{
    link->transport->inner_ops->release(link->inner);
    link_free(link);
}

static bool
transport_is_quiet(const trpi_transport *transport)
{
    for (const trpi_link *link = transport->links; link != NULL; link = link->next) {
        if (!link->closed_called) {
            return false;
        }
    }
    return !transport->in_callback;
}

static void
faults_stop(trpi_transport *transport)
{
    pthread_mutex_lock(&transport->lock);
    transport->stopping = true;
    pacer_wake(transport);
    pthread_mutex_unlock(&transport->lock);
    transport->inner_ops->stop(transport->inner); /* every on_closed() has returned */
    pthread_mutex_lock(&transport->lock);
    while (!transport_is_quiet(transport)) {
        pthread_cond_wait(&transport->wake, &transport->lock);
    }
    transport->pacer_ends = true;
    pacer_wake(transport);
    pthread_mutex_unlock(&transport->lock);
    (void)pthread_join(transport->pacer, NULL);
    transport->pacer_runs = false;
}

static void
faults_free(trpi_transport *transport)
{
    if (transport == NULL) {
        return;
    }
    trpi_assert(transport->links == NULL && !transport->pacer_runs);
    trpi_faults_attach(transport->faults, NULL);
    transport->inner_ops->free(transport->inner);
    pthread_cond_destroy(&transport->wake);
    trpi_mutex_destroy(&transport->lock);
    trpi_free(transport);
}

uint32_t
trpi_fault_links_cut(trpi_transport *transport, const char *peer)
{
    uint32_t count = 0;

    pthread_mutex_lock(&transport->lock);
    for (trpi_link *link = transport->links; link != NULL; link = link->next) {
        if (!link->inner_close_called && link->inner != NULL &&
            (strcmp(peer, TRPI_FAULT_PEER_ALL) == 0 || strcmp(peer, link->peer) == 0)) {
            link_cut(link);
            count++;
        }
    }
    pthread_mutex_unlock(&transport->lock);
    return count;
}

const trpi_transport_ops trpi_fault_link_ops = { .scheme = "tcp",
                                                 .open = faults_open,
                                                 .listen = faults_listen,
                                                 .accept = faults_accept,
                                                 .connect = faults_connect,
                                                 .write = faults_write,
                                                 .claims = faults_claims,
                                                 .whose = faults_whose,
                                                 .named = faults_named,
                                                 .until = faults_until,
                                                 .outdated = faults_outdated,
                                                 .close = faults_close,
                                                 .release = faults_release,
                                                 .stop = faults_stop,
                                                 .free = faults_free };

trpi_transport *
trpi_fault_transport_inner(const trpi_transport *transport)
{
    return transport->inner;
}
