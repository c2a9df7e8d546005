/* udp.c - sockets for datagrams as actors, and their manager.
 *
 * States.  a socket: new -> open -> closing: the socket is removed -> unbound
 * Must hold.
 *   udp-U1  Each datagram is told whole: none is longer than the buffer that it is read into.
 *   udp-U2  Each send is answered at most once: its ack or its failure; at most one waits.
 *   udp-U3  Unbound is told when the port is free.
 * Limits.  Datagrams and bytes of a turn, sockets of a system: io.udp, io.udp-connected.
 * Tests.   tests/unit/io/udp_test.c
 * Sources. UDP-01 to -05, IO-03 to -05
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "io/io.h"

#define TRPI_UDP_BUFFER_BYTES 65536u /* no datagram of IP has more */

/* ---- messages -------------------------------------------------------------------------------- */

typedef struct udp_open {
    trp_io_address local, remote; /* remote: connected */
    trp_socket_options socket;
    trp_ref handler; /* TRP_REF_NONE: it only sends */
    uint64_t number, unhandled_max;
} udp_open;

typedef struct udp_send {
    trp_bytes bytes;
    trp_io_address to; /* TRP_IO_NO_ADDRESS: of a connected socket */
    uint64_t ack;
} udp_send;

#define PLAIN(variable, name_, tag_, struct_)                                                      \
    trp_type variable = {                                                                          \
        .name = name_, .bytes = sizeof(struct_), .tag = tag_, .flags = TRP_TYPE_LOCAL              \
    }
#define EMPTY(variable, name_, tag_)                                                               \
    trp_type variable = { .name = name_, .tag = tag_, .flags = TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL }

EMPTY(trp_udp_unbind_type, "udp.unbind", 1);
EMPTY(trp_udp_suspend_reading_type, "udp.suspend-reading", 2);
EMPTY(trp_udp_resume_reading_type, "udp.resume-reading", 3);
PLAIN(trp_udp_bound_type, "udp.bound", 4, trp_udp_bound);
EMPTY(trp_udp_unbound_type, "udp.unbound", 5);
trp_type trp_udp_received_type = TRP_HELD_TYPE("udp.received", 6);
PLAIN(trp_udp_ack_type, "udp.ack", 7, trp_udp_ack);
PLAIN(trp_udp_command_failed_type, "udp.command-failed", 8, trp_udp_command_failed);
PLAIN(trpi_udp_open_type, "udp.priv-open", 32, udp_open);
trp_type trpi_udp_send_type = TRP_HELD_TYPE("udp.priv-send", 33);

static trp_type *const types[] = {
    &trp_udp_unbind_type, &trp_udp_suspend_reading_type, &trp_udp_resume_reading_type,
    &trp_udp_bound_type,  &trp_udp_unbound_type,         &trp_udp_received_type,
    &trp_udp_ack_type,    &trp_udp_command_failed_type,  &trpi_udp_open_type,
    &trpi_udp_send_type
};
const trp_protocol trp_udp_protocol = { "udp", types, sizeof types / sizeof types[0], 0 };

/* ---- commands -------------------------------------------------------------------------------- */

static trp_err
open_tell(trp_ctx *ctx, const trp_io_address *local, const trp_io_address *remote, bool receives,
          const trp_udp_options *given)
{
    trp_udp_options options = TRP_UDP_OPTIONS_INIT;
    udp_open message;
    trpi_io *io;
    trp_err err;

    memset(&message, 0, sizeof message);
    if (ctx == NULL || !TRPI_SIZED_COPY(given, &options, unhandled_bytes_max) ||
        !trpi_io_options_take(options.socket, &message.socket)) {
        return TRP_EINVAL;
    }
    message.local = *local;
    if (options.local != NULL && (trp_io_address_parse(options.local, &message.local) != TRP_OK ||
                                  message.local.kind != remote->kind)) {
        return TRP_EINVAL;
    }
    message.remote = *remote;
    if (receives) {
        message.handler = trp_ref_is_none(options.handler) ? trp_self(ctx) : options.handler;
    }
    message.number = options.number;
    message.unhandled_max = options.unhandled_bytes_max != 0 ? options.unhandled_bytes_max
                                                             : TRP_UDP_UNHANDLED_BYTES_DEFAULT;
    err = trpi_io_get(trp_ctx_system(ctx), &io);
    if (err == TRP_OK) {
        trp_tell(ctx, io->udp, &trpi_udp_open_type, &message, sizeof message);
    }
    return err;
}

static const trp_io_address no_address;
static const trp_io_address any_address = { .kind = TRP_IO_IPV4 };

trp_err
trp_udp_bind(trp_ctx *ctx, const char *local, const trp_udp_options *options)
{
    trpi_io_target target;

    if (local == NULL || trpi_io_target_set(&target, local, true) != TRP_OK || target.count == 0 ||
        target.addresses[0].kind == TRP_IO_LOCAL) {
        return TRP_EINVAL;
    }
    return open_tell(ctx, &target.addresses[0], &no_address, true, options);
}

trp_err
trp_udp_simple_sender(trp_ctx *ctx, const trp_udp_options *options)
{
    return open_tell(ctx, &any_address, &no_address, false, options);
}

trp_err
trp_udp_connect(trp_ctx *ctx, const char *remote, const trp_udp_options *options)
{
    trp_io_address to;

    if (trp_io_address_parse(remote, &to) != TRP_OK || to.kind == TRP_IO_LOCAL || to.port == 0) {
        return TRP_EINVAL;
    }
    return open_tell(ctx, &no_address, &to, true, options);
}

static void
send_drop(void *held)
{
    trp_bytes_unref(&((udp_send *)held)->bytes);
}

trp_err
trp_udp_send(trp_ctx *ctx, trp_ref socket, trp_bytes bytes, const trp_io_address *to, uint64_t ack)
{
    udp_send *send;
    trp_msg *msg;
    void *held;
    trp_err err;

    if (to != NULL && to->kind != TRP_IO_IPV4 && to->kind != TRP_IO_IPV6) {
        return TRP_EINVAL;
    }
    err = trp_msg_new_held(&trpi_udp_send_type, sizeof *send, send_drop, &msg, &held);
    if (err != TRP_OK) {
        return err;
    }
    send = held;
    send->bytes = trp_bytes_ref(bytes);
    send->to = to != NULL ? *to : no_address;
    send->ack = ack;
    trp_send(ctx, socket, msg);
    return TRP_OK;
}

/* ---- the socket's actor ---------------------------------------------------------------------- */

typedef struct udp_args {
    trpi_io *io;
    const trpi_io_udp *limits;
    _Atomic uint32_t *open; /* counts the sockets of these limits */
} udp_args;

typedef struct udp_actor {
    trpi_io *io;
    trpi_io_socket *socket; /* NULL: not open, or closed */
    const trpi_io_udp *limits;
    _Atomic uint32_t *open;
    trp_ref handler, unbinder;
    uint64_t number, unhandled_max;
    bool readable, writable, suspended, closing, looping;
    trp_msg *waiting; /* a send that the kernel had no room for */
    trp_ref waiting_sender;
} udp_actor;

static void
failed_tell(trp_ctx *ctx, trp_ref to, uint32_t command, int error, uint64_t ack, uint64_t number)
{
    trp_udp_command_failed failed;

    if (trp_ref_is_none(to)) {
        return;
    }
    memset(&failed, 0, sizeof failed);
    failed.command = command;
    failed.error = error;
    failed.ack = ack;
    failed.number = number;
    (void)snprintf(failed.reason, sizeof failed.reason, "%s",
                   error == EAGAIN    ? "another datagram waits"
                   : error == ENOBUFS ? "the kernel has no room for the datagram"
                   : error == EMFILE ? "no descriptor is left, or max-channels of io.udp is reached"
                                     : trpi_io_reason(error));
    trp_tell(ctx, to, &trp_udp_command_failed_type, &failed, sizeof failed);
}

/* Returns 0, -EAGAIN, or -errno. */
static int
send_try(const udp_actor *u, const udp_send *send)
{
    trp_bytes_part parts[16];
    trp_bytes whole = trp_bytes_ref(send->bytes);
    trpi_net_address to;
    size_t count = trp_bytes_parts(whole, parts, 16);
    size_t bytes = 0;
    ssize_t sent;

    for (size_t i = 0; i < count; i++) {
        bytes += parts[i].bytes;
    }
    if (bytes < trp_bytes_length(whole)) { /* more pieces than fit */
        if (trp_bytes_compact(&whole) != TRP_OK) {
            trp_bytes_unref(&whole);
            return -ENOMEM;
        }
        count = trp_bytes_parts(whole, parts, 16);
    }
    trpi_io_address_in(&send->to, &to);
    sent =
        u->io->net->send(u->io->world, u->socket->number, (const struct iovec *)(const void *)parts,
                         (int)count, to.bytes != 0 ? &to : NULL);
    trp_bytes_unref(&whole);
    return sent < 0 ? (int)sent : 0;
}

/* udp-U2 */
static void
send_answer(trp_ctx *ctx, const udp_actor *u, trp_ref sender, const udp_send *send, int result)
{
    if (result < 0) {
        failed_tell(ctx, sender, TRP_UDP_SEND, -result, send->ack, u->number);
        return;
    }
    TRPI_IO_TRACE(ctx, u->limits, "a datagram of %zu bytes was sent",
                  trp_bytes_length(send->bytes));
    if (send->ack != 0) {
        trp_udp_ack ack = { .ack = send->ack };

        trp_tell(ctx, sender, &trp_udp_ack_type, &ack, sizeof ack);
    }
}

static void
on_send(trp_ctx *ctx, udp_actor *u, const trp_msg *msg)
{
    const udp_send *send = trp_msg_held(msg, &trpi_udp_send_type);
    int result = u->waiting != NULL ? -EAGAIN : send_try(u, send);

    if (result == -EAGAIN && u->waiting == NULL && trp_msg_dup(msg, &u->waiting) == TRP_OK) {
        u->waiting_sender = trp_sender(ctx);
        u->writable = false;
        return;
    }
    send_answer(ctx, u, trp_sender(ctx), send, result);
}

static void
send_waiting(trp_ctx *ctx, udp_actor *u)
{
    const udp_send *send =
        u->waiting != NULL ? trp_msg_held(u->waiting, &trpi_udp_send_type) : NULL;
    int result = send != NULL && u->writable ? send_try(u, send) : -EAGAIN;

    if (result == -EAGAIN) {
        u->writable = u->waiting == NULL;
        return;
    }
    send_answer(ctx, u, u->waiting_sender, send, result);
    trp_msg_free(u->waiting);
    u->waiting = NULL;
}

static void
receive_some(trp_ctx *ctx, udp_actor *u)
{
    uint8_t *buffer;
    trp_bytes scratch;
    uint64_t total = 0;

    if (!u->readable || u->suspended || trp_ref_is_none(u->handler) ||
        trp_bytes_new(TRPI_UDP_BUFFER_BYTES, &buffer, &scratch) != TRP_OK) {
        return;
    }
    for (uint32_t i = 0; i < u->limits->datagrams && total < u->limits->turn_bytes && u->readable;
         i++) {
        struct iovec to = { buffer, TRPI_UDP_BUFFER_BYTES };
        trpi_net_address from;
        trp_bytes bytes;
        trp_msg *msg;
        int flags = 0;
        ssize_t got;

        if (!trpi_io_socket_has_room(u->socket, u->unhandled_max)) {
            break;
        }
        got = u->io->net->receive(u->io->world, u->socket->number, &to, 1, &from, &flags);
        if (got == -EAGAIN) {
            u->readable = false;
        } else if (got < 0 && got != -EINTR) { /* of an earlier datagram, by ICMP */
            failed_tell(ctx, u->handler, TRP_UDP_RECEIVE, (int)-got, 0, u->number);
        } else if (got >= 0 && trp_bytes_copy(buffer, (size_t)got, &bytes) == TRP_OK) {
            trp_io_address address;

            total += (uint64_t)got;
            TRPI_IO_TRACE(ctx, u->limits, "a datagram of %zd bytes was read", got);
            trpi_io_address_out(&from, &address); /* udp-U1 */
            if (trpi_io_datagram_new(u->socket, bytes, &address, &msg) == TRP_OK) {
                trp_send(ctx, u->handler, msg);
            } else {
                trp_bytes_unref(&bytes);
            }
        }
    }
    trp_bytes_unref(&scratch);
}

static void
socket_pump(trp_ctx *ctx, udp_actor *u)
{
    uint32_t events = trpi_io_socket_take(u->socket);

    u->readable |= (events & (TRPI_NET_IN | TRPI_NET_END)) != 0;
    u->writable |= (events & (TRPI_NET_OUT | TRPI_NET_END)) != 0;
    send_waiting(ctx, u);
    receive_some(ctx, u);
    if (u->readable && !u->suspended && !u->looping && !trp_ref_is_none(u->handler) &&
        trpi_io_socket_has_room(u->socket, u->unhandled_max)) {
        u->looping = true;
        trp_tell(ctx, trp_self(ctx), &trpi_io_go_on_type, NULL, 0);
    }
}

/* Returns the socket's number, or -errno. */
static int
socket_open(const udp_actor *u, const udp_open *open)
{
    const trpi_net_ops *net = u->io->net;
    trpi_net_address local, remote;
    int number, err;

    trpi_io_address_in(&open->local, &local);
    trpi_io_address_in(&open->remote, &remote);
    number = net->socket(u->io->world,
                         local.bytes != 0 ? local.of.any.sa_family : remote.of.any.sa_family,
                         SOCK_DGRAM);
    if (number < 0) {
        return number;
    }
    err = trpi_io_options_set(u->io, number,
                              local.bytes != 0 ? local.of.any.sa_family : remote.of.any.sa_family,
                              false, &open->socket);
    err = err == 0 && local.bytes != 0 ? net->bind(u->io->world, number, &local) : err;
    err = err == 0 && remote.bytes != 0 ? net->connect(u->io->world, number, &remote) : err;
    if (err < 0) {
        (void)net->close(u->io->world, number);
        return err;
    }
    return number;
}

static void
on_open(trp_ctx *ctx, udp_actor *u, const udp_open *open)
{
    int number = socket_open(u, open);
    trpi_net_address local;
    trp_udp_bound bound;

    memset(&bound, 0, sizeof bound);
    bound.number = u->number = open->number;
    u->handler = open->handler;
    u->unhandled_max = open->unhandled_max;
    u->writable = true;
    if (number >= 0) {
        if (u->io->net->local_address(u->io->world, number, &local) == 0) {
            trpi_io_address_out(&local, &bound.local);
        }
        u->socket = trpi_io_socket_new(u->io, ctx, number);
        number = u->socket == NULL ? -ENOMEM : number;
    }
    if (number >= 0 && !trp_ref_is_none(u->handler) && trp_watch(ctx, u->handler) != TRP_OK) {
        number = -ENOMEM;
    }
    if (number < 0) {
        failed_tell(ctx, trp_sender(ctx), TRP_UDP_BIND, -number, 0, open->number);
        trp_stop(ctx, trp_self(ctx));
        return;
    }
    trp_reply(ctx, &trp_udp_bound_type, &bound, sizeof bound);
}

/* Count the socket no more. */
static void
open_leave(udp_actor *u)
{
    if (u->open != NULL) {
        atomic_fetch_sub_explicit(u->open, 1, memory_order_relaxed);
        u->open = NULL;
    }
}

static void
on_close(udp_actor *u)
{
    if (u->socket != NULL) {
        trpi_io_socket_close(u->socket, false, true);
        u->socket = NULL;
    }
}

static trp_err
open_receive(trp_ctx *ctx, udp_actor *u, const trp_msg *msg)
{
    if (trp_msg_is(msg, &trpi_io_ready_type)) {
        socket_pump(ctx, u);
    } else if (trp_msg_held(msg, &trpi_udp_send_type) != NULL) {
        on_send(ctx, u, msg);
    } else if (trp_msg_is(msg, &trpi_io_go_on_type)) {
        u->looping = false;
        socket_pump(ctx, u);
    } else if (trp_msg_is(msg, &trp_udp_suspend_reading_type)) {
        u->suspended = true;
    } else if (trp_msg_is(msg, &trp_udp_resume_reading_type)) {
        u->suspended = false;
        socket_pump(ctx, u);
    } else if (trp_msg_is(msg, &trp_udp_unbind_type)) {
        u->unbinder = trp_sender(ctx);
        on_close(u);
    } else if (trp_msg_is(msg, &trp_terminated_type)) {
        on_close(u);
    } else {
        return TRP_EUNHANDLED;
    }
    return TRP_OK;
}

static trp_err
udp_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    udp_actor *u = state;

    if (trp_msg_is(msg, &trpi_udp_open_type) && u->socket == NULL) {
        on_open(ctx, u, trp_msg_payload(msg));
        return TRP_OK;
    }
    if (trp_msg_is(msg, &trpi_io_removed_type)) {
        open_leave(u);
        if (!trp_ref_is_none(u->unbinder)) {
            trp_tell(ctx, u->unbinder, &trp_udp_unbound_type, NULL, 0); /* udp-U3 */
        }
        trp_stop(ctx, trp_self(ctx));
        return TRP_OK;
    }
    if (u->socket != NULL) {
        return open_receive(ctx, u, msg);
    }
    if (trp_msg_held(msg, &trpi_udp_send_type) != NULL) { /* it is closing */
        const udp_send *send = trp_msg_held(msg, &trpi_udp_send_type);

        failed_tell(ctx, trp_sender(ctx), TRP_UDP_SEND, EPIPE, send->ack, u->number);
    }
    return TRP_OK;
}

static trp_err
udp_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    udp_actor *u = state;
    udp_args given;

    (void)ctx;
    memcpy(&given, trp_msg_payload(args), sizeof given);
    u->io = given.io;
    u->limits = given.limits;
    u->open = given.open;
    return TRP_OK;
}

static void
udp_post_stop(trp_ctx *ctx, void *state)
{
    udp_actor *u = state;

    if (u->waiting != NULL) {
        const udp_send *send = trp_msg_held(u->waiting, &trpi_udp_send_type);

        failed_tell(ctx, u->waiting_sender, TRP_UDP_SEND, EPIPE, send->ack, u->number);
        trp_msg_free(u->waiting);
        u->waiting = NULL;
    }
    trpi_io_socket_close(u->socket, false, false);
    u->socket = NULL;
    open_leave(u);
}

static const trp_behaviour udp_behaviour = { .size = sizeof(trp_behaviour),
                                             .name = "udp-socket",
                                             .version = 1,
                                             .state_bytes = sizeof(udp_actor),
                                             .receive = udp_receive,
                                             .pre_start = udp_pre_start,
                                             .post_stop = udp_post_stop };

/* ---- the manager ----------------------------------------------------------------------------- */

static udp_args
args_of(trpi_io *io, const udp_open *open)
{
    bool connected = open->remote.kind != TRP_IO_NO_ADDRESS;

    return (udp_args){ .io = io,
                       .limits = connected ? &io->settings.udp_connected : &io->settings.udp,
                       .open = connected ? &io->udp_connected_open : &io->udp_open };
}

static trp_err
manager_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    const udp_open *open = trp_msg_as(msg, &trpi_udp_open_type);
    trp_err err = TRP_ELIMIT;
    trp_ref child;
    udp_args args;

    if (open == NULL) {
        return TRP_EUNHANDLED;
    }
    args = args_of(*(trpi_io **)state, open);
    options.dispatcher = args.limits->dispatcher;
    options.args_type = &trp_bytes_type;
    options.args = &args;
    options.args_bytes = sizeof args;
    if (atomic_fetch_add_explicit(args.open, 1, memory_order_relaxed) < args.limits->sockets_max) {
        err = trp_spawn(ctx, &udp_behaviour, &options, &child);
    }
    if (err != TRP_OK) {
        atomic_fetch_sub_explicit(args.open, 1, memory_order_relaxed);
        failed_tell(ctx, trp_sender(ctx), TRP_UDP_BIND, err == TRP_ENOMEM ? ENOMEM : EMFILE, 0,
                    open->number);
        return TRP_OK;
    }
    trp_forward(ctx, child, msg);
    return TRP_OK;
}

static trp_err
manager_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    memcpy(state, trp_msg_payload(args), sizeof(trpi_io *));
    return TRP_OK;
}

static const trp_strategy stop_children = { .size = sizeof(trp_strategy),
                                            .decider = trp_stopping_decider };

const trp_behaviour trpi_udp_manager_behaviour = { .size = sizeof(trp_behaviour),
                                                   .name = "udp-manager",
                                                   .version = 1,
                                                   .state_bytes = sizeof(trpi_io *),
                                                   .receive = manager_receive,
                                                   .pre_start = manager_pre_start,
                                                   .strategy = &stop_children };
