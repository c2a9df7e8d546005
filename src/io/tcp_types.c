/* tcp_types.c - the messages of TCP, and the functions that tell the commands.
 *
 * Must hold.
 *   tcp-types-T1  What a message holds is given back once, whoever gets it: bytes, paths, and a
 *       descriptor that no connection took.
 * Tests.   tests/unit/io/tcp_test.c
 * Sources. TCP-01 to -22
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/sized.h"
#include "io/io.h"
#include "io/tcp_conn.h"

#define PLAIN(variable, name_, tag_, struct_)                                                      \
    trp_type variable = {                                                                          \
        .name = name_, .bytes = sizeof(struct_), .tag = tag_, .flags = TRP_TYPE_LOCAL              \
    }
#define EMPTY(variable, name_, tag_)                                                               \
    trp_type variable = { .name = name_, .tag = tag_, .flags = TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL }

/* To the actors of this room: one that has ended misses nothing. */
#define OWN(variable, name_, tag_)                                                                 \
    trp_type variable = { .name = name_,                                                           \
                          .tag = tag_,                                                             \
                          .flags = TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL | TRPI_TYPE_FLAG_SILENT }

EMPTY(trp_tcp_resume_writing_type, "tcp.resume-writing", 1);
EMPTY(trp_tcp_suspend_reading_type, "tcp.suspend-reading", 2);
EMPTY(trp_tcp_resume_reading_type, "tcp.resume-reading", 3);
EMPTY(trp_tcp_close_type, "tcp.close", 4);
EMPTY(trp_tcp_confirmed_close_type, "tcp.confirmed-close", 5);
EMPTY(trp_tcp_abort_type, "tcp.abort", 6);
EMPTY(trp_tcp_unbind_type, "tcp.unbind", 7);
PLAIN(trp_tcp_connected_type, "tcp.connected", 8, trp_tcp_connected);
PLAIN(trp_tcp_bound_type, "tcp.bound", 9, trp_tcp_bound);
EMPTY(trp_tcp_unbound_type, "tcp.unbound", 10);
trp_type trp_tcp_received_type = TRP_HELD_TYPE("tcp.received", 11);
PLAIN(trp_tcp_ack_type, "tcp.ack", 12, trp_tcp_ack);
EMPTY(trp_tcp_writing_resumed_type, "tcp.writing-resumed", 13);
PLAIN(trp_tcp_above_high_type, "tcp.above-high", 14, trp_tcp_mark);
PLAIN(trp_tcp_below_low_type, "tcp.below-low", 15, trp_tcp_mark);
PLAIN(trp_tcp_command_failed_type, "tcp.command-failed", 16, trp_tcp_command_failed);
PLAIN(trp_tcp_closed_type, "tcp.closed", 17, trp_tcp_closed);
PLAIN(trp_tcp_refused_type, "tcp.refused", 18, trp_tcp_refused);
trp_type trpi_tcp_connect_type = TRP_HELD_TYPE("tcp.priv-connect", 32);
trp_type trpi_tcp_bind_type = TRP_HELD_TYPE("tcp.priv-bind", 33);
trp_type trpi_tcp_accepted_type = TRP_HELD_TYPE("tcp.priv-accepted", 34);
PLAIN(trpi_tcp_register_type, "tcp.priv-register", 35, trpi_tcp_register);
trp_type trpi_tcp_write_type = TRP_HELD_TYPE("tcp.priv-write", 36);
OWN(trpi_io_ready_type, "tcp.priv-ready", 37);
OWN(trpi_io_removed_type, "tcp.priv-removed", 38);
OWN(trpi_io_go_on_type, "tcp.priv-go-on", 39);
OWN(trpi_io_alarm_type, "tcp.priv-alarm", 40);

static trp_type *const types[] = {
    &trp_tcp_resume_writing_type,  &trp_tcp_suspend_reading_type, &trp_tcp_resume_reading_type,
    &trp_tcp_close_type,           &trp_tcp_confirmed_close_type, &trp_tcp_abort_type,
    &trp_tcp_unbind_type,          &trp_tcp_connected_type,       &trp_tcp_bound_type,
    &trp_tcp_unbound_type,         &trp_tcp_received_type,        &trp_tcp_ack_type,
    &trp_tcp_writing_resumed_type, &trp_tcp_above_high_type,      &trp_tcp_below_low_type,
    &trp_tcp_command_failed_type,  &trp_tcp_closed_type,          &trpi_tcp_connect_type,
    &trpi_tcp_bind_type,           &trpi_tcp_accepted_type,       &trpi_tcp_register_type,
    &trpi_tcp_write_type,          &trpi_io_ready_type,           &trpi_io_removed_type,
    &trpi_io_go_on_type,           &trpi_io_alarm_type,           &trpi_io_tls_watch_type,
    &trp_tcp_refused_type
};
const trp_protocol trp_tcp_protocol = { "tcp", types, sizeof types / sizeof types[0], 0 };

/* ---- connect and bind ------------------------------------------------------------------------ */

void
trpi_tcp_connect_drop(void *held)
{
    trpi_io_tls_unref(((trpi_tcp_connect *)held)->tls);
}

void
trpi_tcp_bind_drop(void *held)
{
    trpi_io_tls_unref(((trpi_tcp_bind *)held)->tls);
}

/* Take the name of the server from the options, or from the address. False: there is none, and it
 * is needed. */
static bool
server_name_take(char name[TRPI_TLS_HOST_BYTES], const trp_tcp_connect_options *options,
                 const char *remote)
{
    const char *from = options->server_name != NULL ? options->server_name : remote;
    size_t bytes = strlen(from);

    name[0] = '\0';
    if (options->tls == NULL) {
        return true;
    }
    if (options->server_name == NULL) {
        const char *port = strncmp(remote, "unix:", 5) != 0 ? strrchr(remote, ':') : NULL;

        bytes = port != NULL ? (size_t)(port - from) : 0;
        if (bytes > 2 && from[0] == '[') {
            from++;
            bytes -= 2;
        }
    }
    if (bytes >= TRPI_TLS_HOST_BYTES || (bytes == 0 && trpi_io_tls_checks_name(options->tls))) {
        return false;
    }
    memcpy(name, from, bytes);
    name[bytes] = '\0';
    return true;
}

trp_err
trp_tcp_connect(trp_ctx *ctx, const char *remote, const trp_tcp_connect_options *given)
{
    trp_tcp_connect_options options = TRP_TCP_CONNECT_OPTIONS_INIT;
    char server_name[TRPI_TLS_HOST_BYTES];
    trpi_io_target target, local;
    trpi_tcp_connect *connect;
    trp_socket_options socket;
    trpi_io *io;
    trp_msg *msg;
    void *held;
    trp_err err;

    if (ctx == NULL || remote == NULL || !TRPI_SIZED_COPY(given, &options, number) ||
        !trpi_io_options_take(options.socket, &socket) ||
        trpi_io_target_set(&target, remote, false) != TRP_OK ||
        (options.tls != NULL && trpi_io_tls_is_server(options.tls)) ||
        !server_name_take(server_name, &options, remote)) {
        return TRP_EINVAL;
    }
    local.count = 0;
    if (options.local != NULL &&
        (trpi_io_target_set(&local, options.local, true) != TRP_OK || local.count == 0)) {
        return TRP_EINVAL; /* the own address is no name */
    }
    err = trpi_io_get(trp_ctx_system(ctx), &io);
    err = err == TRP_OK ? trp_msg_new_held(&trpi_tcp_connect_type, sizeof *connect,
                                           trpi_tcp_connect_drop, &msg, &held)
                        : err;
    if (err != TRP_OK) {
        return err;
    }
    connect = held;
    connect->remote = target;
    if (local.count != 0) {
        connect->local = local.addresses[0];
    }
    connect->socket = socket;
    connect->timeout_ms = options.timeout_ms != 0 ? options.timeout_ms : TRP_TCP_CONNECT_TIMEOUT_MS;
    connect->register_ms = options.register_timeout_ms != 0 ? options.register_timeout_ms
                                                            : io->settings.tcp.register_ms;
    connect->handshake_ms = options.handshake_timeout_ms != 0 ? options.handshake_timeout_ms
                                                              : TRP_TLS_HANDSHAKE_TIMEOUT_MS;
    connect->tls = trpi_io_tls_ref(options.tls);
    memcpy(connect->server_name, server_name, sizeof server_name);
    connect->number = options.number;
    trp_send(ctx, io->tcp, msg);
    return TRP_OK;
}

trp_err
trp_tcp_bind(trp_ctx *ctx, const char *local, const trp_tcp_bind_options *given)
{
    trp_tcp_bind_options options = TRP_TCP_BIND_OPTIONS_INIT;
    trpi_io_target target;
    trp_socket_options socket;
    trpi_tcp_bind *bind;
    trpi_io *io;
    trp_msg *msg;
    void *held;
    trp_err err;

    if (ctx == NULL || local == NULL || !TRPI_SIZED_COPY(given, &options, number) ||
        options.backlog > INT32_MAX ||
        (options.tls != NULL && !trpi_io_tls_is_server(options.tls)) ||
        !trpi_io_options_take(options.socket, &socket) ||
        trpi_io_target_set(&target, local, true) != TRP_OK) {
        return TRP_EINVAL;
    }
    err = trpi_io_get(trp_ctx_system(ctx), &io);
    err = err == TRP_OK
              ? trp_msg_new_held(&trpi_tcp_bind_type, sizeof *bind, trpi_tcp_bind_drop, &msg, &held)
              : err;
    if (err != TRP_OK) {
        return err;
    }
    bind = held;
    bind->local = target;
    bind->socket = socket;
    bind->handler = trp_ref_is_none(options.handler) ? trp_self(ctx) : options.handler;
    bind->backlog = options.backlog != 0 ? options.backlog : TRP_TCP_BACKLOG_DEFAULT;
    bind->register_ms = options.register_timeout_ms != 0 ? options.register_timeout_ms
                                                         : io->settings.tcp.register_ms;
    bind->handshake_ms = options.handshake_timeout_ms != 0 ? options.handshake_timeout_ms
                                                           : TRP_TLS_HANDSHAKE_TIMEOUT_MS;
    bind->tls = trpi_io_tls_ref(options.tls);
    bind->number = options.number;
    trp_send(ctx, io->tcp, msg);
    return TRP_OK;
}

trp_err
trp_tcp_register(trp_ctx *ctx, trp_ref connection, trp_ref handler,
                 const trp_tcp_register_options *given)
{
    trp_tcp_register_options own = TRP_TCP_REGISTER_OPTIONS_INIT;
    trpi_tcp_register message;

    if (ctx == NULL || trp_ref_is_none(connection) || trp_ref_is_none(handler) ||
        !TRPI_SIZED_COPY(given, &own, unhandled_bytes_max) || own.writer > TRP_TCP_REFUSING) {
        return TRP_EINVAL;
    }
    own.max_bytes = own.max_bytes != 0 ? own.max_bytes : TRP_TCP_MAX_BYTES_DEFAULT;
    if (own.high_bytes == 0) {
        own.high_bytes =
            own.max_bytes < TRP_TCP_HIGH_BYTES_DEFAULT ? own.max_bytes : TRP_TCP_HIGH_BYTES_DEFAULT;
    }
    if (own.low_bytes == 0) {
        own.low_bytes =
            own.high_bytes < TRP_TCP_LOW_BYTES_DEFAULT ? own.high_bytes : TRP_TCP_LOW_BYTES_DEFAULT;
    }
    own.unhandled_bytes_max =
        own.unhandled_bytes_max != 0 ? own.unhandled_bytes_max : TRP_TCP_UNHANDLED_BYTES_DEFAULT;
    own.flush_timeout_ms =
        own.flush_timeout_ms != 0 ? own.flush_timeout_ms : TRP_TCP_FLUSH_TIMEOUT_MS;
    if (own.low_bytes > own.high_bytes || own.high_bytes > own.max_bytes) {
        return TRP_EINVAL;
    }
    memset(&message, 0, sizeof message);
    message.handler = handler;
    message.options = own;
    trp_tell(ctx, connection, &trpi_tcp_register_type, &message, sizeof message);
    return TRP_OK;
}

/* ---- writes ---------------------------------------------------------------------------------- */

/* tcp-types-T1 */
static void
write_drop(void *held)
{
    trpi_tcp_write *write = held;
    trpi_tcp_write_part *parts = write->many != NULL ? write->many : &write->one;

    for (uint32_t i = 0; i < write->count; i++) {
        trp_bytes_unref(&parts[i].bytes);
        trpi_free(parts[i].path);
    }
    trpi_free(write->many);
}

static trp_err
write_new(trp_msg **ret_msg, trpi_tcp_write **ret_write)
{
    void *held;
    trp_err err =
        trp_msg_new_held(&trpi_tcp_write_type, sizeof(trpi_tcp_write), write_drop, ret_msg, &held);

    if (err == TRP_OK) {
        *ret_write = held;
    }
    return err;
}

trp_err
trp_tcp_write(trp_ctx *ctx, trp_ref connection, trp_bytes bytes, uint64_t ack)
{
    trpi_tcp_write *write;
    trp_msg *msg;
    trp_err err = write_new(&msg, &write);

    if (err != TRP_OK) {
        return err;
    }
    write->count = 1;
    write->one.bytes = trp_bytes_ref(bytes);
    write->one.ack = ack;
    trp_send(ctx, connection, msg);
    return TRP_OK;
}

trp_err
trp_tcp_write_copy(trp_ctx *ctx, trp_ref connection, const void *data, size_t bytes, uint64_t ack)
{
    trp_bytes copy = TRP_BYTES_EMPTY;
    trp_err err = trp_bytes_copy(data, bytes, &copy);

    err = err == TRP_OK ? trp_tcp_write(ctx, connection, copy, ack) : err;
    trp_bytes_unref(&copy);
    return err;
}

struct trp_tcp_batch {
    trp_msg *msg; /* which holds `write` */
    trpi_tcp_write *write;
};

trp_err
trp_tcp_batch_new(trp_tcp_batch **ret_batch)
{
    trp_tcp_batch *batch;
    trp_err err;

    if (ret_batch == NULL) {
        return TRP_EINVAL;
    }
    batch = trpi_alloc(sizeof *batch);
    if (batch == NULL) {
        return TRP_ENOMEM;
    }
    err = write_new(&batch->msg, &batch->write);
    if (err != TRP_OK) {
        trpi_free(batch);
        return err;
    }
    *ret_batch = batch;
    return TRP_OK;
}

/* Return the next part of a batch, zeroed and not counted yet; NULL: *ret_err says why. */
static trpi_tcp_write_part *
batch_next(trp_tcp_batch *batch, trp_err *ret_err)
{
    trpi_tcp_write *write = batch->write;

    if (write->count == TRP_TCP_PARTS_MAX) {
        *ret_err = TRP_ELIMIT;
        return NULL;
    }
    if (write->count == write->room) {
        uint32_t room = write->room == 0 ? 8 : write->room * 2;
        trpi_tcp_write_part *many = trpi_realloc(write->many, room * sizeof *many);

        if (many == NULL) {
            *ret_err = TRP_ENOMEM;
            return NULL;
        }
        write->many = many;
        write->room = room;
    }
    memset(&write->many[write->count], 0, sizeof write->many[0]);
    return &write->many[write->count];
}

trp_err
trp_tcp_batch_add(trp_tcp_batch *batch, trp_bytes bytes, uint64_t ack)
{
    trp_err err = TRP_EINVAL;
    trpi_tcp_write_part *part = batch != NULL ? batch_next(batch, &err) : NULL;

    if (part == NULL) {
        return err;
    }
    part->bytes = trp_bytes_ref(bytes);
    part->ack = ack;
    batch->write->count++;
    return TRP_OK;
}

trp_err
trp_tcp_batch_add_file(trp_tcp_batch *batch, const char *path, uint64_t position, uint64_t count,
                       uint64_t ack)
{
    trp_err err = TRP_EINVAL;
    trpi_tcp_write_part *part;

    if (batch == NULL || path == NULL || path[0] == '\0' || position > INT64_MAX ||
        count > INT64_MAX - position) {
        return TRP_EINVAL;
    }
    part = batch_next(batch, &err);
    if (part == NULL) {
        return err;
    }
    part->path = trpi_strdup(path);
    if (part->path == NULL) {
        return TRP_ENOMEM;
    }
    part->position = position;
    part->count = count;
    part->ack = ack;
    batch->write->count++;
    return TRP_OK;
}

void
trp_tcp_write_batch(trp_ctx *ctx, trp_ref connection, trp_tcp_batch *batch)
{
    trp_send(ctx, connection, batch->msg);
    trpi_free(batch);
}

void
trp_tcp_batch_free(trp_tcp_batch *batch)
{
    if (batch != NULL) {
        trp_msg_free(batch->msg);
        trpi_free(batch);
    }
}

trp_err
trp_tcp_write_file(trp_ctx *ctx, trp_ref connection, const char *path, uint64_t position,
                   uint64_t count, uint64_t ack)
{
    trp_tcp_batch *batch;
    trp_err err = trp_tcp_batch_new(&batch);

    if (err != TRP_OK) {
        return err;
    }
    err = trp_tcp_batch_add_file(batch, path, position, count, ack);
    if (err != TRP_OK) {
        trp_tcp_batch_free(batch);
        return err;
    }
    trp_tcp_write_batch(ctx, connection, batch);
    return TRP_OK;
}
