/* tcp_listener.c - a listening socket: accepts, and hands each connection to the manager.
 *
 * States.  before its bind -> listening -> (EMFILE and the like: paused, until its alarm) ->
 *          closing: the socket is removed -> unbound
 * Must hold.
 *   tcp-listener-L1  A descriptor that was accepted is owned by one message until a connection has
 *       it.
 *   tcp-listener-L2  Unbound is told when the port is free.
 * Limits.  io.tcp.batch-accept-limit connections a turn.
 * Tests.   tests/unit/io/tcp_test.c
 * Sources. TCP-05, TCP-06, TRP-09
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "io/adopt.h"
#include "io/io.h"

#define TRPI_TCP_ACCEPT_PAUSE_MS 100u
#define PAUSE_KEY 1u

typedef struct listener {
    trpi_io *io;
    trpi_io_socket *socket; /* NULL: not bound, or closed */
    trp_ref handler, unbinder;
    trp_socket_options options;
    uint32_t register_ms, handshake_ms;
    trp_tls *tls; /* counted; NULL: none */
    bool closing, warned;
    char path[112]; /* of its file, which it removes */
} listener;

/* tcp-listener-L1 */
static void
accepted_drop(void *held)
{
    trpi_tcp_accepted *accepted = held;
    int number = accepted->net == NULL
                     ? -1
                     : atomic_exchange_explicit(&accepted->number, -1, memory_order_acq_rel);

    if (number >= 0) {
        (void)accepted->net->close(accepted->world, number);
    }
    trpi_io_tls_unref(accepted->tls);
}

/* Make the message that owns number, which it takes always. NULL: no memory. */
static trpi_tcp_accepted *
accepted_new(const trpi_io *io, int number, trp_msg **ret_msg)
{
    void *held;
    trpi_tcp_accepted *accepted;

    if (trp_msg_new_held(&trpi_tcp_accepted_type, sizeof *accepted, accepted_drop, ret_msg,
                         &held) != TRP_OK) {
        (void)io->net->close(io->world, number);
        return NULL;
    }
    accepted = held;
    accepted->world = io->world;
    accepted->net = io->net;
    atomic_init(&accepted->number, number);
    return accepted;
}

trp_err
trpi_io_adopt(trp_ctx *ctx, int number, trp_ref handler)
{
    trp_msg *msg;
    trpi_tcp_accepted *accepted;
    trpi_io *io;
    trp_err err = trpi_io_get(trp_ctx_system(ctx), &io);

    if (err != TRP_OK) {
        (void)close(number); /* without a poller it is the machine's */
        return err;
    }
    accepted = accepted_new(io, number, &msg);
    if (accepted == NULL) {
        return TRP_ENOMEM;
    }
    accepted->handler = handler;
    (void)trpi_io_options_take(NULL, &accepted->socket);
    accepted->register_ms = io->settings.tcp.register_ms;
    trp_send(ctx, io->tcp, msg);
    return TRP_OK;
}

static bool
accepted_give(trp_ctx *ctx, listener *l, int number)
{
    trp_msg *msg;
    trpi_tcp_accepted *accepted = accepted_new(l->io, number, &msg);

    if (accepted == NULL) {
        return false;
    }
    accepted->handler = l->handler;
    accepted->socket = l->options;
    accepted->register_ms = l->register_ms;
    accepted->handshake_ms = l->handshake_ms;
    accepted->tls = trpi_io_tls_ref(l->tls);
    trp_send(ctx, l->io->tcp, msg);
    return true;
}

/* There is no descriptor, or no room, for one more: try again soon. */
static void
accept_pause(trp_ctx *ctx, listener *l, int error)
{
    if (!l->warned) {
        l->warned = true;
        trp_log(ctx, TRP_LOG_WARNING,
                "no connection can be accepted: %s; peers wait, the next try comes every %u ms; "
                "raise the limit of open files, or close connections",
                error != 0 ? trpi_io_reason(error) : "io.tcp.max-channels is reached",
                TRPI_TCP_ACCEPT_PAUSE_MS);
    }
    if (trp_timer_once(ctx, PAUSE_KEY, TRPI_TCP_ACCEPT_PAUSE_MS, &trpi_io_alarm_type, NULL, 0) !=
        TRP_OK) {
        trp_tell(ctx, trp_self(ctx), &trpi_io_alarm_type, NULL, 0);
    }
}

static void
accept_some(trp_ctx *ctx, listener *l)
{
    for (uint32_t i = 0; i < l->io->settings.tcp.accepts; i++) {
        trpi_net_address peer;
        int number;

        if (atomic_load_explicit(&l->io->connected, memory_order_relaxed) >=
            l->io->settings.tcp.connections_max) {
            accept_pause(ctx, l, 0);
            return;
        }
        number = l->io->net->accept(l->io->world, l->socket->number, &peer);
        if (number == -EAGAIN) {
            return;
        }
        if (number == -EMFILE || number == -ENFILE || number == -ENOBUFS || number == -ENOMEM) {
            accept_pause(ctx, l, -number);
            return;
        }
        if (number >= 0) { /* other errors are of a connection that has ended already */
            l->warned = false;
            if (!accepted_give(ctx, l, number)) {
                accept_pause(ctx, l, ENOMEM);
                return;
            }
        }
    }
    trp_tell(ctx, trp_self(ctx), &trpi_io_go_on_type, NULL, 0);
}

/* ---- bind ------------------------------------------------------------------------------------ */

/* Open, bind and listen. Returns the socket's number or -errno. */
static int
listening_open(const listener *l, const trpi_tcp_bind *bind, const trp_io_address *address)
{
    const trpi_net_ops *net = l->io->net;
    trpi_net_address local;
    int number, err;

    trpi_io_address_in(address, &local);
    number = net->socket(l->io->world, local.of.any.sa_family, SOCK_STREAM);
    if (number < 0) {
        return number;
    }
    err = trpi_io_options_set(l->io, number, local.of.any.sa_family, true, &bind->socket);
    err = err == 0 ? net->bind(l->io->world, number, &local) : err;
    err = err == 0 ? net->listen(l->io->world, number, (int)bind->backlog) : err;
    if (err < 0) {
        (void)net->close(l->io->world, number);
        return err;
    }
    return number;
}

static void
bind_fail(trp_ctx *ctx, const trpi_tcp_bind *bind, int error)
{
    trp_tcp_command_failed failed;

    memset(&failed, 0, sizeof failed);
    failed.command = TRP_TCP_BIND;
    failed.error = error;
    failed.number = bind->number;
    (void)snprintf(failed.reason, sizeof failed.reason, "%s", trpi_io_reason(error));
    trp_reply(ctx, &trp_tcp_command_failed_type, &failed, sizeof failed);
    trp_stop(ctx, trp_self(ctx));
}

static void
on_bind(trp_ctx *ctx, listener *l, const trpi_tcp_bind *bind)
{
    int number = -EADDRNOTAVAIL;
    trpi_net_address local;
    trp_tcp_bound bound;

    for (uint32_t i = 0; i < bind->local.count && number < 0; i++) {
        number = listening_open(l, bind, &bind->local.addresses[i]);
        if (number >= 0 && bind->local.addresses[i].kind == TRP_IO_LOCAL) {
            memcpy(l->path, bind->local.addresses[i].path, sizeof l->path);
        }
    }
    if (number < 0) {
        bind_fail(ctx, bind, -number);
        return;
    }
    memset(&bound, 0, sizeof bound);
    bound.number = bind->number;
    if (l->io->net->local_address(l->io->world, number, &local) == 0) {
        trpi_io_address_out(&local, &bound.local);
    }
    l->handler = bind->handler;
    l->options = bind->socket;
    l->register_ms = bind->register_ms;
    l->handshake_ms = bind->handshake_ms;
    l->tls = trpi_io_tls_ref(bind->tls);
    if (trp_watch(ctx, l->handler) != TRP_OK) {
        (void)l->io->net->close(l->io->world, number);
        bind_fail(ctx, bind, ENOMEM);
        return;
    }
    l->socket = trpi_io_socket_new(l->io, ctx, number);
    if (l->socket == NULL) {
        bind_fail(ctx, bind, ENOMEM);
        return;
    }
    trp_reply(ctx, &trp_tcp_bound_type, &bound, sizeof bound);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void
path_remove(listener *l)
{
    if (l->path[0] != '\0') {
        (void)unlink(l->path);
        l->path[0] = '\0';
    }
}

static void
listener_close(trp_ctx *ctx, listener *l)
{
    if (l->socket == NULL || l->closing) {
        if (!l->closing) {
            trp_stop(ctx, trp_self(ctx));
        }
        return;
    }
    l->closing = true;
    trp_timer_cancel(ctx, PAUSE_KEY);
    path_remove(l);
    trpi_io_socket_close(l->socket, false, true);
    l->socket = NULL;
}

static trp_err
listener_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const trpi_tcp_bind *bind = trp_msg_held(msg, &trpi_tcp_bind_type);
    listener *l = state;

    if (trp_msg_is(msg, &trpi_io_ready_type)) {
        if (l->socket != NULL) {
            (void)trpi_io_socket_take(l->socket);
            accept_some(ctx, l);
        }
    } else if (trp_msg_is(msg, &trpi_io_go_on_type) || trp_msg_is(msg, &trpi_io_alarm_type)) {
        if (l->socket != NULL) {
            accept_some(ctx, l);
        }
    } else if (bind != NULL) {
        on_bind(ctx, l, bind);
    } else if (trp_msg_is(msg, &trp_tcp_unbind_type)) {
        l->unbinder = trp_sender(ctx);
        listener_close(ctx, l);
    } else if (trp_msg_is(msg, &trp_terminated_type)) {
        listener_close(ctx, l); /* TCP-06 */
    } else if (trp_msg_is(msg, &trpi_io_removed_type)) {
        if (!trp_ref_is_none(l->unbinder)) {
            trp_tell(ctx, l->unbinder, &trp_tcp_unbound_type, NULL, 0); /* tcp-listener-L2 */
        }
        trp_stop(ctx, trp_self(ctx));
    } else {
        return TRP_EUNHANDLED;
    }
    return TRP_OK;
}

static trp_err
listener_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    memcpy(&((listener *)state)->io, trp_msg_payload(args), sizeof(trpi_io *));
    return TRP_OK;
}

static void
listener_post_stop(trp_ctx *ctx, void *state)
{
    listener *l = state;

    (void)ctx;
    path_remove(l);
    trpi_io_socket_close(l->socket, false, false);
    l->socket = NULL;
    trpi_io_tls_unref(l->tls);
    l->tls = NULL;
}

const trp_behaviour trpi_tcp_listener_behaviour = { .size = sizeof(trp_behaviour),
                                                    .name = "tcp-listener",
                                                    .version = 1,
                                                    .state_bytes = sizeof(listener),
                                                    .receive = listener_receive,
                                                    .pre_start = listener_pre_start,
                                                    .post_stop = listener_post_stop };
