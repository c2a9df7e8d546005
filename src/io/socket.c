/* socket.c - a watched socket and the actor that it belongs to.
 *
 * Shape.   poller's report -> events (bits) -> one message to the actor, which takes all bits
 *          The actor reads and writes in its own turn: its state is touched by nobody else.
 * Must hold.
 *   io-socket-S1  While bits are set a message is on its way, or the actor has not taken them yet.
 *   io-socket-S2  The descriptor is closed once, in removed(), when no callback runs any more.
 *   io-socket-S3  After the actor has closed it, nobody is told but the one message that was asked
 *       for.
 * Tests.   tests/unit/io/tcp_test.c
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "io/io.h"

static void
socket_unref(trpi_io_socket *socket)
{
    if (atomic_fetch_sub_explicit(&socket->count, 1, memory_order_acq_rel) == 1) {
        trpi_free(socket);
    }
}

static void
owner_tell(trpi_io_socket *socket, const trp_type *type)
{
    trp_ctx *ctx = trpi_enter(socket->system);

    /* an owner that has ended meanwhile misses nothing */
    (void)trpi_offer(ctx, socket->owner, TRP_REF_NONE, type, NULL, 0);
    trpi_leave(ctx);
}

static void
events_add(trpi_io_socket *socket, uint32_t events)
{
    /* release: the owner sees what came before; io-socket-S1 */
    if (atomic_fetch_or_explicit(&socket->events, events, memory_order_acq_rel) == 0 &&
        atomic_load_explicit(&socket->owned, memory_order_acquire)) {
        owner_tell(socket, &trpi_io_ready_type);
    }
}

static uint32_t
on_ready(void *user, uint32_t events)
{
    events_add(user, events);
    return 0; /* the owner reads and writes until nothing is left */
}

/* io-socket-S2 */
static void
on_removed(void *user)
{
    trpi_io_socket *socket = user;

    (void)socket->net->close(socket->world, socket->number);
    if (socket->tell_removed && !trpi_system_is_ending(socket->system)) {
        owner_tell(socket, &trpi_io_removed_type);
    }
    socket_unref(socket);
}

static const trpi_watch_events watch_events = { .ready = on_ready, .removed = on_removed };

trpi_io_socket *
trpi_io_socket_new(trpi_io *io, trp_ctx *ctx, int number)
{
    trpi_io_socket *socket = trpi_alloc(sizeof *socket);

    if (socket == NULL) {
        (void)io->net->close(io->world, number);
        return NULL;
    }
    socket->system = io->system;
    socket->world = io->world;
    socket->net = io->net;
    socket->owner = trp_self(ctx);
    socket->number = number;
    atomic_init(&socket->count, 2);
    atomic_init(&socket->owned, true);
    atomic_init(&socket->resume_at, UINT64_MAX);
    if (trpi_watch_new(io->poller, number, &watch_events, socket, &socket->watch) != TRP_OK) {
        (void)io->net->close(io->world, number);
        trpi_free(socket);
        return NULL;
    }
    return socket;
}

void
trpi_io_socket_close(trpi_io_socket *socket, bool reset, bool tell)
{
    const struct linger now = { .l_onoff = 1, .l_linger = 0 };

    if (socket == NULL) {
        return;
    }
    if (reset) {
        (void)socket->net->option_set(socket->world, socket->number, SOL_SOCKET, SO_LINGER, &now,
                                      sizeof now);
    }
    atomic_store_explicit(&socket->owned, false, memory_order_release); /* io-socket-S3 */
    socket->tell_removed = tell;
    trpi_watch_remove(socket->watch);
    socket_unref(socket);
}

bool
trpi_io_socket_has_room(trpi_io_socket *socket, uint64_t unhandled_max)
{
    if (atomic_load_explicit(&socket->unhandled, memory_order_relaxed) < unhandled_max) {
        return true;
    }
    atomic_store_explicit(&socket->resume_at, unhandled_max / 2, memory_order_seq_cst);
    /* seq_cst: its pair is in count_drop() */
    if (atomic_load_explicit(&socket->unhandled, memory_order_seq_cst) > unhandled_max / 2) {
        return false;
    }
    atomic_store_explicit(&socket->resume_at, UINT64_MAX, memory_order_relaxed);
    return true;
}

/* ---- received bytes -------------------------------------------------------------------------- */

typedef struct received_count {
    trpi_io_socket *socket; /* counted; NULL: not filled yet */
    uint64_t bytes;
} received_count;

/* The event that the handler sees, and the count of its message. */
typedef struct received {
    trp_tcp_received event;
    received_count count;
} received;
typedef struct datagram {
    trp_udp_received event;
    received_count count;
} datagram;

static void
count_take(received_count *count, trpi_io_socket *socket, uint64_t bytes)
{
    count->socket = socket;
    count->bytes = bytes;
    atomic_fetch_add_explicit(&socket->count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&socket->unhandled, bytes, memory_order_relaxed);
}

/* The message was handled, or lost. */
static void
count_drop(const received_count *count)
{
    trpi_io_socket *socket = count->socket;
    uint64_t left =
        atomic_fetch_sub_explicit(&socket->unhandled, count->bytes, memory_order_seq_cst) -
        count->bytes;
    /* seq_cst, as in the owner: either it sees the bytes gone, or this sees that it waits */
    uint64_t at = atomic_load_explicit(&socket->resume_at, memory_order_seq_cst);

    if (at != UINT64_MAX && left <= at &&
        atomic_compare_exchange_strong_explicit(&socket->resume_at, &at, UINT64_MAX,
                                                memory_order_acq_rel, memory_order_relaxed)) {
        events_add(socket, TRPI_IO_ROOM);
    }
    socket_unref(socket);
}

static void
received_drop(void *held)
{
    received *r = held;

    if (r->count.socket != NULL) {
        trp_bytes_unref(&r->event.bytes);
        count_drop(&r->count);
    }
}

static void
datagram_drop(void *held)
{
    datagram *d = held;

    if (d->count.socket != NULL) {
        trp_bytes_unref(&d->event.bytes);
        count_drop(&d->count);
    }
}

trp_err
trpi_io_received_new(trpi_io_socket *socket, trp_bytes bytes, trp_msg **ret_msg)
{
    void *held;
    trp_err err =
        trp_msg_new_held(&trp_tcp_received_type, sizeof(received), received_drop, ret_msg, &held);

    if (err == TRP_OK) {
        received *r = held;

        r->event.bytes = bytes;
        count_take(&r->count, socket, trp_bytes_length(bytes));
    }
    return err;
}

trp_err
trpi_io_datagram_new(trpi_io_socket *socket, trp_bytes bytes, const trp_io_address *from,
                     trp_msg **ret_msg)
{
    void *held;
    trp_err err =
        trp_msg_new_held(&trp_udp_received_type, sizeof(datagram), datagram_drop, ret_msg, &held);

    if (err == TRP_OK) {
        datagram *d = held;

        d->event.bytes = bytes;
        d->event.from = *from;
        count_take(&d->count, socket,
                   trp_bytes_length(bytes) + sizeof *d); /* an empty one waits, too */
    }
    return err;
}
