/* tcp_pump.c - bytes between a connection's socket and its actors.
 *
 * Shape.   pump: read until nothing is there, credit is used up, the handler is behind, or the
 *          bound of a turn is reached; write until nothing waits or the socket is full. Small reads
 *          go through the stack and are copied, so that an idle connection has no buffer; when
 *          one was full, the next go into memory that the message takes along.
 * Must hold.
 *   tcp-pump-P1  The socket's state (readable, writable) becomes false only when it said so by
 *       EAGAIN, by a read of TCP that filled a part of its room while no report had DRAIN (net-N1),
 *       or ended: no edge is lost.
 *   tcp-pump-P2  A turn reads io.tcp.max-received-message-size bytes at most, and writes
 *       TRPI_POLL_READ_BYTES and a piece of a file, and goes on after the mail that came meanwhile.
 *   tcp-pump-P3  While unhandled_max received bytes or more wait at the handler, nothing is read.
 * Tests.   tests/unit/io/tcp_test.c
 * Sources. TCP-07, TCP-14 to -17, TCP-22
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/tcp_tls.h"

/* ---- reading --------------------------------------------------------------------------------- */

static void
step_simple(trp_ctx *ctx, trpi_tcp_actor *a, trpi_tcp_event_kind kind, int err)
{
    trpi_tcp_event event = { .kind = kind, .err = err };

    trpi_tcp_actor_step(ctx, a, &event);
}

static size_t
less_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* How much the next read takes, at most `most`. */
static size_t
read_room(const trpi_tcp_actor *a, size_t most)
{
    return a->large ? most : less_of(most, TRPI_TCP_READ_SMALL);
}

/* Read into memory that the message takes along. */
static ssize_t
large_read(trpi_tcp_actor *a, size_t room, trp_bytes *ret_bytes)
{
    trpi_io_buffer *buffer = trpi_io_buffer_take(a->io->buffers);
    struct iovec to;
    ssize_t got;

    if (buffer == NULL) {
        a->large = false;
        return -EINTR; /* again, with the small one */
    }
    to = (struct iovec){ trpi_io_buffer_data(buffer), room };
    got = a->socket->net->read(a->socket->world, a->socket->number, &to, 1);
    if (got > 0) {
        trp_err err;

        a->large = (size_t)got > TRPI_TCP_READ_SMALL;
        if ((size_t)got < room / 2) { /* else it would keep more than it needs */
            err = trp_bytes_copy(to.iov_base, (size_t)got, ret_bytes);
        } else {
            err = trpi_io_buffer_bytes(buffer, (size_t)got, ret_bytes);
            buffer = err == TRP_OK ? NULL : buffer;
        }
        got = err == TRP_OK ? got : -ENOMEM;
    }
    if (buffer != NULL) {
        trpi_io_buffer_give(buffer);
    }
    return got;
}

/* Read once. Returns the bytes, or -errno; *ret_bytes has them. */
static ssize_t
read_once(trpi_tcp_actor *a, size_t room, trp_bytes *ret_bytes)
{
    uint8_t small[TRPI_TCP_READ_SMALL];
    struct iovec to = { small, room };
    ssize_t got;

    if (room > sizeof small) {
        return large_read(a, room, ret_bytes);
    }
    got = a->socket->net->read(a->socket->world, a->socket->number, &to, 1);
    if (got > 0) {
        a->large = (size_t)got == sizeof small;
        return trp_bytes_copy(small, (size_t)got, ret_bytes) == TRP_OK ? got : -ENOMEM;
    }
    return got;
}

static void
bytes_deliver(trp_ctx *ctx, trpi_tcp_actor *a, trp_bytes *bytes)
{
    trpi_tcp_event event = { .kind = TRPI_TCP_READ, .bytes = trp_bytes_length(*bytes) };
    trp_msg *msg;

    if (trpi_io_received_new(a->socket, *bytes, &msg) != TRP_OK) {
        trp_bytes_unref(bytes);
        step_simple(ctx, a, TRPI_TCP_READ_ERROR, ENOMEM);
        return;
    }
    a->read_bytes += event.bytes;
    trp_send(ctx, a->handler, msg); /* the brain lets every READ be delivered (tcp-conn-C5) */
    trpi_tcp_actor_step(ctx, a, &event);
}

static void
read_some(trp_ctx *ctx, trpi_tcp_actor *a)
{
    const trpi_io_tcp *limits = &a->io->settings.tcp;
    size_t total = 0;

    while (a->socket != NULL && trpi_tcp_has_input(a) && trpi_tcp_conn_reads(&a->conn) &&
           trpi_io_socket_has_room(a->socket, a->unhandled_max)) {
        trp_bytes bytes = TRP_BYTES_EMPTY;
        size_t most = less_of(limits->read_bytes, limits->turn_bytes - total);
        size_t room = a->tls != NULL ? most : read_room(a, most);
        ssize_t got =
            a->tls != NULL ? trpi_tcp_tls_read(a, room, &bytes) : read_once(a, room, &bytes);

        if (got > 0) {
            total += (size_t)got;
            if (a->tls == NULL) { /* tcp-pump-P1 */
                a->readable = (size_t)got == room || a->drain || a->local;
            }
            TRPI_IO_TRACE(ctx, limits, "%zd bytes were read", got);
            bytes_deliver(ctx, a, &bytes);
        } else if (got == 0) {
            a->readable = false;
            step_simple(ctx, a, TRPI_TCP_READ_END, 0);
        } else if (got == -EAGAIN) {
            a->readable = a->readable && a->tls != NULL; /* tcp-pump-P1 */
            a->drain = false;
            TRPI_IO_TRACE(ctx, limits, "nothing is left to be read");
            step_simple(ctx, a, TRPI_TCP_READ_NONE, 0);
        } else if (got != -EINTR) {
            a->readable = false;
            step_simple(ctx, a, TRPI_TCP_READ_ERROR, (int)-got);
        }
        if (total >= limits->turn_bytes) {
            return; /* tcp-pump-P2 */
        }
    }
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Collect bytes from the front of the queue, up to a file. */
static int
parts_collect(const trpi_tcp_actor *a, trp_bytes_part *ret_parts)
{
    size_t count = 0;

    for (trpi_tcp_part *part = a->conn.first; part != NULL && count < TRPI_TCP_IOV_MAX;
         part = part->next) {
        const trpi_tcp_out *out = (const trpi_tcp_out *)(const void *)part;

        if (out->file >= 0) {
            break;
        }
        count += trp_bytes_parts(out->bytes, ret_parts + count, TRPI_TCP_IOV_MAX - count);
    }
    return (int)count;
}

/* Forget what was written of the first part that is not done by it. */
static void
parts_skip(trpi_tcp_actor *a, uint64_t written)
{
    for (trpi_tcp_part *part = a->conn.first; part != NULL && written > 0; part = part->next) {
        trpi_tcp_out *out = (trpi_tcp_out *)(void *)part;
        uint64_t now = part->left < written ? part->left : written;

        if (now < part->left && out->file < 0) {
            trp_bytes_skip(&out->bytes, (size_t)now);
        }
        written -= now;
    }
}

/* Write once. Returns the bytes, or -errno. */
static ssize_t
write_once(trpi_tcp_actor *a)
{
    trpi_tcp_out *out = (trpi_tcp_out *)(void *)a->conn.first;
    const trpi_net_ops *net = a->socket->net;
    trp_bytes_part parts[TRPI_TCP_IOV_MAX];
    size_t count;

    if (out->file < 0) {
        int pieces = parts_collect(a, parts);

        return net->write(a->socket->world, a->socket->number,
                          (const struct iovec *)(const void *)parts, pieces);
    }
    count = less_of(out->part.left, a->io->settings.tcp.file_bytes);
    return net->send_file(a->socket->world, a->socket->number, out->file, &out->offset, count);
}

static void
write_some(trp_ctx *ctx, trpi_tcp_actor *a)
{
    uint64_t total = 0;

    if (a->tls != NULL) {
        trpi_tcp_tls_write_some(ctx, a);
        return;
    }
    while (a->socket != NULL && a->writable && trpi_tcp_conn_writes(&a->conn) &&
           total < TRPI_POLL_READ_BYTES) {
        bool file = ((const trpi_tcp_out *)(const void *)a->conn.first)->file >= 0;
        ssize_t wrote = write_once(a);
        trpi_tcp_event event = { .kind = TRPI_TCP_WROTE };

        if (wrote > 0) {
            event.bytes = (uint64_t)wrote;
            TRPI_IO_TRACE(ctx, &a->io->settings.tcp, "%zd bytes were written", wrote);
            a->written_bytes += event.bytes;
            total += event.bytes;
            parts_skip(a, event.bytes);
            trpi_tcp_actor_step(ctx, a, &event);
        } else if (wrote == -EAGAIN) {
            a->writable = false; /* tcp-pump-P1 */
        } else if (file && (wrote == 0 || wrote == -EINVAL || wrote == -EIO)) {
            step_simple(ctx, a, TRPI_TCP_PART_ERROR, wrote == 0 ? EIO : (int)-wrote);
        } else if (wrote != -EINTR) {
            a->readable = a->drain = true; /* the brain waits for the last byte that is there */
            step_simple(ctx, a, TRPI_TCP_WRITE_ERROR, wrote == 0 ? EPIPE : (int)-wrote);
        }
    }
}

/* See to it that the pump runs again, if it has something to do. */
static void
go_on(trp_ctx *ctx, trpi_tcp_actor *a)
{
    if (a->socket == NULL || a->looping || a->lingering) {
        return;
    }
    /* asked again: what the handler has not handled is told by ROOM */
    if ((trpi_tcp_has_input(a) && trpi_tcp_conn_reads(&a->conn) &&
         trpi_io_socket_has_room(a->socket, a->unhandled_max)) ||
        (a->writable && trpi_tcp_has_output(a))) {
        a->looping = true; /* tcp-pump-P2 */
        trp_tell(ctx, trp_self(ctx), &trpi_io_go_on_type, NULL, 0);
    }
}

void
trpi_tcp_actor_pump(trp_ctx *ctx, trpi_tcp_actor *a)
{
    uint32_t events;

    if (a->lingering) {
        trpi_tcp_linger_go_on(ctx, a);
        return;
    }
    events = trpi_io_socket_take(a->socket);
    a->readable |= (events & (TRPI_NET_IN | TRPI_NET_END)) != 0;
    a->drain |= (events & (TRPI_NET_DRAIN | TRPI_NET_END)) != 0;
    a->writable |= (events & (TRPI_NET_OUT | TRPI_NET_END)) != 0;
    write_some(ctx, a);
    read_some(ctx, a);
    if (a->tls != NULL && a->tls->wire.count > 0) {
        write_some(ctx, a); /* answers of TLS */
    }
    go_on(ctx, a);
}

/* ---- write commands -------------------------------------------------------------------------- */

void
trpi_tcp_actor_out_free(trpi_tcp_actor *a, trpi_tcp_out *out)
{
    trp_bytes_unref(&out->bytes);
    if (out->file >= 0) {
        (void)close(out->file);
        out->file = -1;
    }
    if (out == &a->one) {
        a->one_used = false;
    } else {
        trpi_free(out);
    }
}

/* Make the record of a part. Returns NULL, and *ret_error. */
static trpi_tcp_out *
out_new(trpi_tcp_actor *a, const trpi_tcp_write_part *part, int *ret_error)
{
    trpi_tcp_out *out = &a->one;
    int file = -1;

    if (part->path != NULL) {
        file = open(part->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (file < 0) {
            *ret_error = errno;
            return NULL;
        }
    }
    if (a->one_used) {
        out = trpi_alloc(sizeof *out);
        if (out == NULL) {
            (void)(file >= 0 && close(file));
            *ret_error = ENOMEM;
            return NULL;
        }
    } else {
        a->one_used = true;
        memset(out, 0, sizeof *out);
    }
    out->file = file;
    out->offset = (off_t)part->position;
    out->bytes = trp_bytes_ref(part->bytes);
    out->ack = part->ack;
    out->part.left = part->path != NULL ? part->count : trp_bytes_length(part->bytes);
    out->part.memory = part->path != NULL ? 0 : out->part.left;
    return out;
}

/* A command that could not be prepared: each part fails. */
static void
command_fail(trp_ctx *ctx, const trpi_tcp_actor *a, const trpi_tcp_write_part *parts,
             uint32_t count, int error)
{
    for (uint32_t i = 0; i < count; i++) {
        trp_tcp_command_failed failed;

        memset(&failed, 0, sizeof failed);
        failed.command = TRP_TCP_WRITE;
        failed.error = error;
        failed.ack = parts[i].ack;
        failed.write = a->writes;
        failed.part = i;
        (void)snprintf(failed.reason, sizeof failed.reason, "%s", trpi_io_reason(error));
        trp_reply(ctx, &trp_tcp_command_failed_type, &failed, sizeof failed);
    }
}

void
trpi_tcp_actor_write(trp_ctx *ctx, trpi_tcp_actor *a, const trpi_tcp_write *write)
{
    const trpi_tcp_write_part *parts = write->many != NULL ? write->many : &write->one;
    trpi_tcp_part *first = NULL, **last = &first;
    trpi_tcp_event event = { .kind = TRPI_TCP_WRITE };
    int error = 0;

    a->writes++;
    for (uint32_t i = 0; i < write->count; i++) {
        trpi_tcp_out *out = out_new(a, &parts[i], &error);

        if (out == NULL) {
            break;
        }
        out->index = i;
        out->write = a->writes;
        out->writer = trp_sender(ctx);
        *last = &out->part;
        last = &out->part.next;
    }
    if (error != 0) {
        while (first != NULL) {
            trpi_tcp_part *next = first->next;

            trpi_tcp_actor_out_free(a, (trpi_tcp_out *)(void *)first);
            first = next;
        }
        command_fail(ctx, a, parts, write->count, error);
        return;
    }
    if (first != NULL) {
        event.parts = first;
        trpi_tcp_actor_step(ctx, a, &event);
        write_some(ctx, a);
        go_on(ctx, a);
    }
}
