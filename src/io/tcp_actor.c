/* tcp_actor.c - the actor of a TCP connection: its commands, its events, its end.
 *
 * States.  new -> connecting (one address after the other) -> connected, not registered ->
 *          registered -> ended. An accepted one begins as connected.
 * Must hold.
 *   tcp-actor-T1  The end is told once, after all received bytes, and the actor stops after it.
 *   tcp-actor-T2  When the actor ends, in whatever way, its socket is closed: by a reset, unless it
 *       closed it in order.
 * Tests.   tests/unit/io/tcp_test.c; the decisions: tests/unit/io/tcp_conn_test.c
 * Sources. TCP-01 to -20, TRP-07 to -09
 */
#include "io/tcp_actor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/lookup.h"
#include "io/tcp_tls.h"

#define ALARM_KEY TRPI_TCP_ALARM_KEY

/* ---- telling --------------------------------------------------------------------------------- */

void
trpi_tcp_actor_refuse(trp_ctx *ctx, trp_tcp_command command, uint64_t number, int error)
{
    trp_tcp_command_failed failed;

    memset(&failed, 0, sizeof failed);
    failed.command = (uint32_t)command;
    failed.error = error;
    failed.number = number;
    (void)snprintf(failed.reason, sizeof failed.reason, "%s", trpi_io_reason(error));
    trp_reply(ctx, &trp_tcp_command_failed_type, &failed, sizeof failed);
}

static void
parts_done(trp_ctx *ctx, trpi_tcp_actor *a, trpi_tcp_part *part)
{
    while (part != NULL) {
        trpi_tcp_out *out = (trpi_tcp_out *)(void *)part;

        part = part->next;
        if (out->ack != TRP_TCP_NO_ACK) {
            trp_tcp_ack ack = { .ack = out->ack };

            trp_tell(ctx, out->writer, &trp_tcp_ack_type, &ack, sizeof ack);
        }
        trpi_tcp_actor_out_free(a, out);
    }
}

static void
parts_failed(trp_ctx *ctx, trpi_tcp_actor *a, trpi_tcp_part *part)
{
    while (part != NULL) {
        trpi_tcp_out *out = (trpi_tcp_out *)(void *)part;
        trp_tcp_command_failed failed;

        part = part->next;
        memset(&failed, 0, sizeof failed);
        failed.command = TRP_TCP_WRITE;
        failed.error = out->part.err;
        failed.ack = out->ack;
        failed.write = out->write;
        failed.part = out->index;
        (void)snprintf(failed.reason, sizeof failed.reason, "%s", trpi_io_reason(out->part.err));
        if (!trp_ref_is_none(out->writer)) {
            trp_tell(ctx, out->writer, &trp_tcp_command_failed_type, &failed, sizeof failed);
        }
        trpi_tcp_actor_out_free(a, out);
    }
}

static void
closed_tell(trp_ctx *ctx, const trpi_tcp_actor *a, const trp_tcp_closed *closed)
{
    if (!trp_ref_is_none(a->handler)) {
        trp_tell(ctx, a->handler, &trp_tcp_closed_type, closed, sizeof *closed);
    }
    if (!trp_ref_is_none(a->closer) && !trp_ref_equal(a->closer, a->handler)) {
        trp_tell(ctx, a->closer, &trp_tcp_closed_type, closed, sizeof *closed);
    }
}

static void
mark_tell(trp_ctx *ctx, const trpi_tcp_actor *a, const trp_type *type)
{
    trp_tcp_mark mark = { .waiting_bytes = a->conn.waiting };

    trp_tell(ctx, a->handler, type, &mark, sizeof mark);
}

/* tcp-actor-T1, -T2 */
static void
connection_end(trp_ctx *ctx, trpi_tcp_actor *a, const trpi_tcp_effects *effects)
{
    static const uint32_t how[] = { [TRPI_TCP_CLOSED] = TRP_TCP_CLOSED,
                                    [TRPI_TCP_ABORTED] = TRP_TCP_ABORTED,
                                    [TRPI_TCP_CONFIRMED_CLOSED] = TRP_TCP_CONFIRMED_CLOSED,
                                    [TRPI_TCP_PEER_CLOSED] = TRP_TCP_PEER_CLOSED,
                                    [TRPI_TCP_ERROR_CLOSED] = TRP_TCP_ERROR_CLOSED };
    trp_tcp_closed closed;

    memset(&closed, 0, sizeof closed);
    closed.how = how[effects->end];
    closed.error = effects->err;
    closed.received_bytes = a->read_bytes;
    closed.written_bytes = a->written_bytes;
    if (effects->err != 0) {
        const char *of_tls = trpi_tcp_tls_reason(a, effects->err);

        (void)snprintf(closed.reason, sizeof closed.reason, "%s",
                       of_tls != NULL ? of_tls : trpi_io_reason(effects->err));
    }
    TRPI_IO_TRACE(ctx, &a->io->settings.tcp,
                  "closed, how %u: %llu bytes were read, %llu written%s%s", closed.how,
                  (unsigned long long)a->read_bytes, (unsigned long long)a->written_bytes,
                  effects->err != 0 ? ": " : "", closed.reason);
    closed_tell(ctx, a, &closed);
    if (a->tls != NULL && trpi_tcp_tls_lingers(ctx, a, effects->reset)) {
        return;
    }
    trpi_io_socket_close(a->socket, effects->reset, false);
    a->socket = NULL;
    trp_stop(ctx, trp_self(ctx));
}

/* Bytes that nobody will read would make the kernel reset the connection when it is closed, and the
 * peer lose what it has not read yet. */
static void
unread_drop(trpi_tcp_actor *a)
{
    uint8_t bytes[4096];
    struct iovec to = { bytes, sizeof bytes };

    for (int i = 0; i < 64; i++) {
        if (a->socket->net->read(a->socket->world, a->socket->number, &to, 1) <= 0) {
            return;
        }
    }
}

static void
command_refused(trp_ctx *ctx, trpi_tcp_event_kind kind, int error)
{
    static const trp_tcp_command commands[] = {
        [TRPI_TCP_REGISTER] = TRP_TCP_REGISTER,
        [TRPI_TCP_RESUME_WRITING] = TRP_TCP_RESUME_WRITING,
        [TRPI_TCP_SUSPEND_READING] = TRP_TCP_SUSPEND_READING,
        [TRPI_TCP_RESUME_READING] = TRP_TCP_RESUME_READING,
    };

    trpi_assert(kind < sizeof commands / sizeof commands[0]);
    if (!trp_ref_is_none(trp_sender(ctx))) {
        trpi_tcp_actor_refuse(ctx, commands[kind], 0, error);
    }
}

void
trpi_tcp_actor_step(trp_ctx *ctx, trpi_tcp_actor *a, const trpi_tcp_event *event)
{
    trpi_tcp_effects effects;

    trpi_tcp_conn_step(&a->conn, event, &effects);
    parts_done(ctx, a, effects.done);
    parts_failed(ctx, a, effects.failed);
    if (effects.refused != 0) {
        command_refused(ctx, event->kind, effects.refused);
    }
    if (effects.high || effects.low) {
        mark_tell(ctx, a, effects.high ? &trp_tcp_above_high_type : &trp_tcp_below_low_type);
    }
    if (effects.resumed) {
        trp_ref asker = event->kind == TRPI_TCP_RESUME_WRITING ? trp_sender(ctx) : a->asker;

        trp_tell(ctx, asker, &trp_tcp_writing_resumed_type, NULL, 0);
    } else if (event->kind == TRPI_TCP_RESUME_WRITING && effects.refused == 0) {
        a->asker = trp_sender(ctx);
    }
    if (effects.peer_closed) {
        trp_tcp_closed closed;

        memset(&closed, 0, sizeof closed);
        closed.how = TRP_TCP_PEER_CLOSED;
        closed.half_open = 1;
        closed.received_bytes = a->read_bytes;
        closed.written_bytes = a->written_bytes;
        trp_tell(ctx, a->handler, &trp_tcp_closed_type, &closed, sizeof closed);
    }
    if (effects.flush_timer &&
        trp_timer_once(ctx, ALARM_KEY, a->flush_ms, &trpi_io_alarm_type, NULL, 0) != TRP_OK) {
        trp_tell(ctx, trp_self(ctx), &trpi_io_alarm_type, NULL, 0);
    }
    if (effects.send_end && a->tls != NULL) {
        trpi_tcp_tls_say_end(a);
    } else if (effects.send_end) {
        (void)a->socket->net->shutdown(a->socket->world, a->socket->number, SHUT_WR);
    }
    if (effects.end != TRPI_TCP_GOES_ON) {
        if (!effects.reset && effects.end != TRPI_TCP_CONFIRMED_CLOSED) {
            unread_drop(a);
        }
        connection_end(ctx, a, &effects);
    }
}

/* ---- the beginning --------------------------------------------------------------------------- */

void
trpi_tcp_actor_begin(trp_ctx *ctx, trpi_tcp_actor *a, trp_ref who, uint64_t number,
                     uint32_t register_ms)
{
    char local[TRP_IO_ADDRESS_BYTES_MAX], remote[TRP_IO_ADDRESS_BYTES_MAX];
    trp_tcp_connected event;
    trpi_net_address address;

    memset(&event, 0, sizeof event);
    event.number = number;
    if (a->socket->net->peer_address(a->socket->world, a->socket->number, &address) == 0) {
        trpi_io_address_out(&address, &event.remote);
    }
    if (a->socket->net->local_address(a->socket->world, a->socket->number, &address) == 0) {
        trpi_io_address_out(&address, &event.local);
    }
    TRPI_IO_TRACE(ctx, &a->io->settings.tcp, "connected: %s to %s",
                  trp_io_address_text(&event.local, local, sizeof local),
                  trp_io_address_text(&event.remote, remote, sizeof remote));
    if (a->tls != NULL) {
        trpi_tls_session_peer(a->tls->session, &event.tls);
    }
    a->connecting = false;
    a->local = event.local.kind == TRP_IO_LOCAL;
    a->readable = true; /* as far as is known */
    a->writable = true;
    if (trp_timer_once(ctx, ALARM_KEY, register_ms, &trpi_io_alarm_type, NULL, 0) != TRP_OK) {
        trp_stop(ctx, trp_self(ctx));
        return;
    }
    trp_tell(ctx, who, &trp_tcp_connected_type, &event, sizeof event);
}

static void
on_accepted(trp_ctx *ctx, trpi_tcp_actor *a, trpi_tcp_accepted *accepted)
{
    int number = atomic_exchange_explicit(&accepted->number, -1, memory_order_acq_rel);
    trpi_net_address local;

    if (number >= 0 && a->socket == NULL) {
        if (a->io->net->local_address(a->io->world, number, &local) == 0) {
            (void)trpi_io_options_set(a->io, number, local.of.any.sa_family, true,
                                      &accepted->socket); /* the listener's were taken already */
        }
        a->socket = trpi_io_socket_new(a->io, ctx, number);
    }
    if (a->socket == NULL) {
        trp_stop(ctx, trp_self(ctx));
        return;
    }
    if (accepted->tls != NULL) {
        const trpi_tcp_secure how = { .tls = accepted->tls,
                                      .handshake_ms = accepted->handshake_ms,
                                      .register_ms = accepted->register_ms };

        a->asker = accepted->handler;
        if (trpi_tcp_tls_begin(ctx, a, &how) != 0) {
            trp_stop(ctx, trp_self(ctx));
        }
        return;
    }
    trpi_tcp_actor_begin(ctx, a, accepted->handler, 0, accepted->register_ms);
}

static const trpi_tcp_connect *
connect_of(const trpi_tcp_actor *a)
{
    return trp_msg_held(a->command, &trpi_tcp_connect_type);
}

static void
connect_fail(trp_ctx *ctx, trpi_tcp_actor *a)
{
    trp_tcp_command_failed failed;

    memset(&failed, 0, sizeof failed);
    failed.command = TRP_TCP_CONNECT;
    failed.error = a->error;
    failed.number = connect_of(a)->number;
    (void)snprintf(failed.reason, sizeof failed.reason, "%s",
                   a->error == EAGAIN ? "the listener's backlog is full"
                                      : trpi_io_reason(a->error));
    a->connecting = false;
    trpi_io_lookup_forget(a->io->lookups, &connect_of(a)->remote);
    trp_tell(ctx, a->asker, &trp_tcp_command_failed_type, &failed, sizeof failed);
    trpi_io_socket_close(a->socket, false, false);
    a->socket = NULL;
    trp_stop(ctx, trp_self(ctx));
}

/* Open a socket and begin to connect it. Returns the number, or -errno. */
static int
connecting_open(trpi_tcp_actor *a, const trpi_tcp_connect *connect, const trp_io_address *to)
{
    const trpi_net_ops *net = a->io->net;
    trpi_net_address remote, local;
    int number, err;

    trpi_io_address_in(to, &remote);
    trpi_io_address_in(&connect->local, &local);
    number = net->socket(a->io->world, remote.of.any.sa_family, SOCK_STREAM);
    if (number < 0) {
        return number;
    }
    err = trpi_io_options_set(a->io, number, remote.of.any.sa_family, true, &connect->socket);
    if (err == 0 && local.bytes != 0) {
        err = net->bind(a->io->world, number, &local);
    }
    err = err == 0 ? net->connect(a->io->world, number, &remote) : err;
    if (err < 0 && err != -EINPROGRESS) {
        (void)net->close(a->io->world, number);
        return err;
    }
    return number;
}

/* Try the next address; the last one's failure is the command's. */
static void
connect_next(trp_ctx *ctx, trpi_tcp_actor *a)
{
    const trpi_tcp_connect *connect = connect_of(a);

    while (a->socket == NULL && a->next < connect->remote.count) {
        int number = connecting_open(a, connect, &connect->remote.addresses[a->next++]);

        if (number < 0) {
            a->error = -number;
            continue;
        }
        a->socket = trpi_io_socket_new(a->io, ctx, number);
        if (a->socket == NULL) {
            a->error = ENOMEM;
        }
    }
    if (a->socket == NULL) {
        connect_fail(ctx, a);
    }
}

static void
connect_secure(trp_ctx *ctx, trpi_tcp_actor *a, const trpi_tcp_connect *connect)
{
    const trpi_tcp_secure how = { .tls = connect->tls,
                                  .host = connect->server_name,
                                  .number = connect->number,
                                  .handshake_ms = connect->handshake_ms,
                                  .register_ms = connect->register_ms };

    a->error = trpi_tcp_tls_begin(ctx, a, &how);
    if (a->error != 0) {
        connect_fail(ctx, a);
    }
}

/* A report of a socket that connects. */
static void
connect_report(trp_ctx *ctx, trpi_tcp_actor *a)
{
    uint32_t events = trpi_io_socket_take(a->socket);
    trpi_net_address peer;
    int error = 0;
    socklen_t bytes = sizeof error;

    if ((events & (TRPI_NET_OUT | TRPI_NET_END)) == 0) {
        return;
    }
    (void)a->socket->net->option_get(a->socket->world, a->socket->number, SOL_SOCKET, SO_ERROR,
                                     &error, &bytes);
    if (error == 0 &&
        a->socket->net->peer_address(a->socket->world, a->socket->number, &peer) == 0) {
        const trpi_tcp_connect *connect = connect_of(a);
        uint64_t number = connect->number;
        uint32_t register_ms = connect->register_ms;

        if (connect->tls != NULL) {
            connect_secure(ctx, a, connect);
            return;
        }
        trp_msg_free(a->command);
        a->command = NULL;
        trpi_tcp_actor_begin(ctx, a, a->asker, number, register_ms);
        return;
    }
    if (error == 0) {
        return; /* a report that is not true yet */
    }
    a->error = error;
    trpi_io_socket_close(a->socket, false, false);
    a->socket = NULL;
    connect_next(ctx, a);
}

static void
on_connect(trp_ctx *ctx, trpi_tcp_actor *a, const trpi_tcp_connect *connect, const trp_msg *msg)
{
    trp_err err = trp_msg_dup(msg, &a->command);

    a->asker = trp_sender(ctx);
    err = err == TRP_OK
              ? trp_timer_once(ctx, ALARM_KEY, connect->timeout_ms, &trpi_io_alarm_type, NULL, 0)
              : err;
    if (err != TRP_OK) {
        trpi_tcp_actor_refuse(ctx, TRP_TCP_CONNECT, connect->number, ENOMEM);
        trp_stop(ctx, trp_self(ctx));
        return;
    }
    a->connecting = true;
    a->error = EADDRNOTAVAIL;
    connect_next(ctx, a);
}

/* ---- commands -------------------------------------------------------------------------------- */

static void
step_kind(trp_ctx *ctx, trpi_tcp_actor *a, trpi_tcp_event_kind kind)
{
    trpi_tcp_event event = { .kind = kind };

    trpi_tcp_actor_step(ctx, a, &event);
}

static void
on_register(trp_ctx *ctx, trpi_tcp_actor *a, const trpi_tcp_register *message)
{
    static const trpi_tcp_mode modes[] = { [TRP_TCP_BUFFERED] = TRPI_TCP_BUFFERED,
                                           [TRP_TCP_SUSPENDING] = TRPI_TCP_SUSPENDING,
                                           [TRP_TCP_REFUSING] = TRPI_TCP_REFUSING };
    const trp_tcp_register_options *options = &message->options;
    const trpi_tcp_settings settings = {
        .mode = modes[options->writer],
        .buffer = { options->low_bytes, options->high_bytes, options->max_bytes },
        .keep_open = options->keep_open_on_peer_closed != 0,
        .pull = options->pull != 0,
    };
    trpi_tcp_event event = { .kind = TRPI_TCP_REGISTER, .settings = &settings };

    if (!a->conn.registered && trp_watch(ctx, message->handler) == TRP_OK) {
        TRPI_IO_TRACE(ctx, &a->io->settings.tcp, "a handler has registered");
        trp_timer_cancel(ctx, ALARM_KEY);
        a->handler = message->handler;
        a->unhandled_max = options->unhandled_bytes_max;
        a->flush_ms = options->flush_timeout_ms;
    } else if (!a->conn.registered) {
        trpi_tcp_actor_refuse(ctx, TRP_TCP_REGISTER, 0, ENOMEM);
        return;
    }
    trpi_tcp_actor_step(ctx, a, &event);
}

static void
on_close(trp_ctx *ctx, trpi_tcp_actor *a, trpi_tcp_event_kind kind)
{
    a->closer = trp_sender(ctx);
    step_kind(ctx, a, kind);
}

static void
on_alarm(trp_ctx *ctx, trpi_tcp_actor *a)
{
    if (a->lingering) {
        trpi_tcp_linger_end(ctx, a);
        return;
    }
    if (a->connecting && a->tls != NULL) {
        trpi_tcp_tls_late(ctx, a);
        return;
    }
    if (a->connecting) {
        a->error = ETIMEDOUT;
        connect_fail(ctx, a);
        return;
    }
    if (!a->conn.registered && !a->conn.ended) {
        trp_log(ctx, TRP_LOG_WARNING,
                "no handler has registered in time: the connection is aborted; answer "
                "trp_tcp_connected by trp_tcp_register");
    }
    step_kind(ctx, a, TRPI_TCP_TIMEOUT);
}

/* Orders to a connection that is there. False: no such order. */
static bool
on_order(trp_ctx *ctx, trpi_tcp_actor *a, const trp_msg *msg)
{
    if (trp_msg_is(msg, &trp_tcp_resume_reading_type)) {
        step_kind(ctx, a, TRPI_TCP_RESUME_READING);
    } else if (trp_msg_is(msg, &trp_tcp_suspend_reading_type)) {
        step_kind(ctx, a, TRPI_TCP_SUSPEND_READING);
    } else if (trp_msg_is(msg, &trp_tcp_resume_writing_type)) {
        step_kind(ctx, a, TRPI_TCP_RESUME_WRITING);
    } else if (trp_msg_is(msg, &trp_tcp_close_type)) {
        on_close(ctx, a, TRPI_TCP_CLOSE);
    } else if (trp_msg_is(msg, &trp_tcp_confirmed_close_type)) {
        on_close(ctx, a, TRPI_TCP_CONFIRMED_CLOSE);
    } else if (trp_msg_is(msg, &trp_tcp_abort_type)) {
        on_close(ctx, a, TRPI_TCP_ABORT);
    } else if (trp_msg_is(msg, &trpi_tcp_register_type)) {
        on_register(ctx, a, trp_msg_payload(msg));
    } else if (trp_msg_is(msg, &trp_terminated_type)) {
        a->handler = TRP_REF_NONE;
        step_kind(ctx, a, TRPI_TCP_HANDLER_ENDED);
    } else {
        return false;
    }
    return true;
}

/* Messages of a connection that is not there yet. */
static trp_err
begin_receive(trp_ctx *ctx, trpi_tcp_actor *a, const trp_msg *msg)
{
    const trpi_tcp_connect *connect = trp_msg_held(msg, &trpi_tcp_connect_type);
    const trpi_tcp_accepted *accepted = trp_msg_held(msg, &trpi_tcp_accepted_type);

    if (accepted != NULL) {
        on_accepted(ctx, a, (trpi_tcp_accepted *)(uintptr_t)accepted); /* takes its descriptor */
    } else if (connect != NULL) {
        on_connect(ctx, a, connect, msg);
    } else if (a->connecting && trp_msg_is(msg, &trpi_io_ready_type)) {
        if (a->tls != NULL) {
            trpi_tcp_tls_shake(ctx, a);
        } else if (a->socket != NULL) {
            connect_report(ctx, a);
        }
    } else if (a->connecting && trp_msg_is(msg, &trpi_io_alarm_type)) {
        on_alarm(ctx, a);
    } else {
        return TRP_EUNHANDLED;
    }
    return TRP_OK;
}

static trp_err
actor_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trpi_tcp_actor *a = state;
    const trpi_tcp_write *write = trp_msg_held(msg, &trpi_tcp_write_type);

    if (a->connecting || a->socket == NULL) {
        return a->conn.ended ? TRP_OK : begin_receive(ctx, a, msg);
    }
    if (write != NULL) {
        trpi_tcp_actor_write(ctx, a, write);
        return TRP_OK;
    }
    if (trp_msg_is(msg, &trpi_io_ready_type)) {
        trpi_tcp_actor_pump(ctx, a);
        return TRP_OK;
    }
    if (trp_msg_is(msg, &trpi_io_go_on_type)) {
        a->looping = false;
    } else if (trp_msg_is(msg, &trpi_io_alarm_type)) {
        on_alarm(ctx, a);
    } else if (!on_order(ctx, a, msg)) {
        return TRP_EUNHANDLED;
    }
    if (a->socket != NULL) {
        trpi_tcp_actor_pump(ctx, a);
    }
    return TRP_OK;
}

static trp_err
actor_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    trpi_tcp_actor *a = state;

    (void)ctx;
    memcpy(&a->io, trp_msg_payload(args), sizeof a->io);
    trpi_tcp_conn_init(&a->conn);
    a->one.file = -1;
    a->counted = true;
    atomic_fetch_add_explicit(&a->io->connected, 1, memory_order_relaxed);
    return TRP_OK;
}

/* tcp-actor-T2 */
static void
actor_post_stop(trp_ctx *ctx, void *state)
{
    trpi_tcp_actor *a = state;
    trpi_tcp_event abort = { .kind = TRPI_TCP_ABORT };
    trpi_tcp_effects effects;

    trpi_tcp_conn_step(&a->conn, &abort, &effects); /* what waits still: the actor was stopped */
    parts_failed(ctx, a, effects.failed);
    trpi_io_socket_close(a->socket, true, false);
    a->socket = NULL;
    trp_msg_free(a->command);
    a->command = NULL;
    trpi_tcp_tls_free(a->tls);
    a->tls = NULL;
    if (a->counted) {
        a->counted = false;
        atomic_fetch_sub_explicit(&a->io->connected, 1, memory_order_relaxed);
    }
}

const trp_behaviour trpi_tcp_actor_behaviour = { .size = sizeof(trp_behaviour),
                                                 .name = "tcp-connection",
                                                 .version = 1,
                                                 .state_bytes = sizeof(trpi_tcp_actor),
                                                 .receive = actor_receive,
                                                 .pre_start = actor_pre_start,
                                                 .post_stop = actor_post_stop };
