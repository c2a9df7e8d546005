/* tcp_tls.c - TLS of a connection: see tcp_tls.h.
 *
 * Shape.   socket -> rest -> session -> plain bytes, delivered
 *          brain's queue -> at most TLS_BATCH bytes -> session -> wire -> socket; the brain is told
 *          of them when all of wire is with the kernel, so that an ack means what it means without
 *          TLS.
 *          The end: told first; then the actor lingers until its last record is sent.
 * Must hold.
 *   tcp-tls-E1  Bytes of the queue are encrypted only into an empty wire: what is acknowledged is
 *       with the kernel.
 *   tcp-tls-E2  Nothing goes to the peer in the clear, and no plain byte is delivered before the
 *       peer is known.
 *   tcp-tls-E3  The alert of a failure, and the close_notify of an end, are sent before the socket
 *       is closed: for LINGER_MS at most, or the handler's flush_timeout_ms.
 *   tcp-tls-E4  The end of the connection without the peer's close_notify is an error.
 * Limits.  HANDSHAKE_BYTES_MAX of the peer before it is known, for handshake_timeout_ms.
 * Tests.   tests/unit/io/tcp_tls_test.c
 * Sources. PIPE-13, PIPE-14, TCP-08 to -16
 */
#include "io/tcp_tls.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"

#define TLS_BATCH 65536u
#define READ_BYTES 32768u /* of the peer, at once */
#define WIRE_MAX 131072u
#define WIRE_KEPT 4096u /* a larger buffer is freed when it is empty */
#define HANDSHAKE_BYTES_MAX 131072u
#define LINGER_MS 1000u /* for a peer that is told why, and has not closed yet */
#define DRAIN_READS 64

typedef trpi_tcp_tls tls_t;

/* ---- failures -------------------------------------------------------------------------------- */

static const struct fault {
    int error;
    const char *text;
} faults[TRPI_REFUSAL_COUNT] = {
    [TRPI_REFUSED_NOT_TLS] = { EPROTO, "the peer does not speak TLS" },
    [TRPI_REFUSED_TLS_VERSION] = { EPROTO, "no version of TLS in common (version_min)" },
    [TRPI_REFUSED_NO_CERTIFICATE] = { ENOKEY, "the peer shows no certificate" },
    [TRPI_REFUSED_UNKNOWN_CA] = { EKEYREJECTED,
                                  "no authority here has signed the peer's certificate" },
    [TRPI_REFUSED_EXPIRED] = { EKEYEXPIRED, "the peer's certificate has expired" },
    [TRPI_REFUSED_NOT_YET_VALID] = { EKEYREJECTED, "the peer's certificate is not valid yet" },
    [TRPI_REFUSED_REVOKED] = { EKEYREVOKED, "the peer's certificate is revoked" },
    [TRPI_REFUSED_REVOCATION_LIST] = { EKEYREJECTED, "the list of revoked certificates is of "
                                                     "another authority, or too old" },
    [TRPI_REFUSED_WRONG_NAME] = { EKEYREJECTED,
                                  "the peer's certificate has another name (server_name)" },
    [TRPI_REFUSED_NOT_ALLOWED] = { EKEYREJECTED, "the peer's name is not allowed" },
    [TRPI_REFUSED_CERTIFICATE] = { EKEYREJECTED, "the peer's certificate cannot be used" },
    [TRPI_REFUSED_TLS] = { EPROTO, "TLS failed" },
    [TRPI_REFUSED_BY_PEER] = { EACCES, "the peer refuses this side" },
    [TRPI_REFUSED_BYTES] = { EPROTO, "the peer's handshake is too long" },
    [TRPI_REFUSED_TIMEOUT] = { ETIMEDOUT, "the TLS handshake takes too long" },
    [TRPI_REFUSED_NO_PROTOCOL] = { EPROTO, "no application protocol in common (ALPN)" },
    [TRPI_REFUSED_TRUNCATED] = { ECONNRESET, "the connection ended, the TLS session did not" },
};

static int
fail_with(tls_t *t, trpi_refusal why, const char *detail)
{
    const struct fault *fault = &faults[why];

    if (!t->failed) {
        t->failed = true;
        t->told = why != TRPI_REFUSED_TRUNCATED && why != TRPI_REFUSED_BY_PEER &&
                  why != TRPI_REFUSED_TIMEOUT && why != TRPI_REFUSED_BYTES;
        t->error = fault->error != 0 ? fault->error : EPROTO;
        (void)snprintf(t->reason, sizeof t->reason, "%s%s%s",
                       fault->text != NULL ? fault->text : "TLS failed",
                       detail[0] != '\0' ? ": " : "", detail);
    }
    return t->error;
}

/* The session has failed. Returns the errno. */
static int
session_fail(tls_t *t)
{
    const char *detail = "";
    trpi_refusal why = trpi_tls_session_failure(t->session, &detail);

    return fail_with(t, why, detail);
}

const char *
trpi_tcp_tls_reason(const trpi_tcp_actor *a, int error)
{
    return a->tls != NULL && a->tls->failed && a->tls->error == error ? a->tls->reason : NULL;
}

/* ---- bytes of the peer ----------------------------------------------------------------------- */

static void
rest_give(tls_t *t)
{
    size_t count = t->rest.count - t->taken;

    trpi_tls_session_input(t->session, count > 0 ? t->rest.data + t->taken : NULL, count);
}

static void
rest_take_back(tls_t *t)
{
    t->taken = t->rest.count - trpi_tls_session_input_end(t->session);
    if (t->taken == t->rest.count) {
        t->taken = 0;
        trpi_buffer_clear(&t->rest);
    }
}

/* Read from the socket, when nothing is left of what was read before. As read(2), with -errno. */
static ssize_t
rest_read(trpi_tcp_actor *a)
{
    tls_t *t = a->tls;
    struct iovec to;
    ssize_t got;

    trpi_assert(t->rest.count == 0);
    if (!a->readable) {
        got = -EAGAIN;
    } else if (trpi_buffer_reserve(&t->rest, READ_BYTES, READ_BYTES) != TRP_OK) {
        return -ENOMEM;
    } else {
        to = (struct iovec){ t->rest.data, READ_BYTES };
        got = a->socket->net->read(a->socket->world, a->socket->number, &to, 1);
    }
    if (got > 0) {
        t->rest.count = (size_t)got;
    } else if (got != -EINTR) {
        a->readable = false; /* tcp-pump-P1 */
        trpi_buffer_fini(&t->rest);
    }
    return got;
}

ssize_t
trpi_tcp_tls_read(trpi_tcp_actor *a, size_t max, trp_bytes *ret_bytes)
{
    uint8_t plain[TRPI_TLS_RECORD_BYTES];
    tls_t *t = a->tls;

    max = max < sizeof plain ? max : sizeof plain;
    for (;;) {
        trpi_tls_result result = TRPI_TLS_MORE;
        size_t count = 0;

        if (t->has_more || t->taken < t->rest.count) {
            rest_give(t);
            result = trpi_tls_session_read(t->session, plain, max, &count, &t->wire);
            rest_take_back(t);
            t->has_more = result != TRPI_TLS_MORE;
        }
        if (count > 0) {
            return trp_bytes_copy(plain, count, ret_bytes) == TRP_OK ? (ssize_t)count : -ENOMEM;
        }
        if (result == TRPI_TLS_MORE) {
            ssize_t got = rest_read(a);

            if (got == 0 && trpi_tls_session_end(t->session) != TRPI_TLS_ENDED) {
                return -session_fail(t); /* tcp-tls-E4 */
            }
            if (got <= 0) {
                return got;
            }
        } else if (result == TRPI_TLS_FULL) {
            t->blocked = true;
            return -EAGAIN;
        } else if (result == TRPI_TLS_ENDED) {
            return 0;
        } else if (result == TRPI_TLS_FAILED) {
            return -session_fail(t);
        }
    }
}

/* ---- bytes for the peer ---------------------------------------------------------------------- */

/* Send of wire. As write(2), with -errno; wire is empty when all of it is with the kernel. */
static ssize_t
wire_send(trpi_tcp_actor *a)
{
    tls_t *t = a->tls;
    struct iovec from = { t->wire.data + t->sent, t->wire.count - t->sent };
    ssize_t sent = a->socket->net->write(a->socket->world, a->socket->number, &from, 1);

    if (sent == -EAGAIN) {
        a->writable = false; /* tcp-pump-P1 */
    }
    if (sent <= 0) {
        return sent;
    }
    t->sent += (size_t)sent;
    if (t->sent == t->wire.count) {
        t->sent = 0;
        t->blocked = false;
        if (t->wire.capacity > WIRE_KEPT && !trpi_tcp_conn_writes(&a->conn)) {
            trpi_buffer_fini(&t->wire);
        }
        trpi_buffer_clear(&t->wire);
        if (t->end_due) {
            t->end_due = false;
            (void)a->socket->net->shutdown(a->socket->world, a->socket->number, SHUT_WR);
        }
    }
    return sent;
}

/* Send what can be sent. False: the connection is broken (errno in *ret_error). */
static bool
wire_flush(trpi_tcp_actor *a, int *ret_error)
{
    while (a->tls->wire.count > 0 && a->writable) {
        ssize_t sent = wire_send(a);

        if (sent < 0 && sent != -EAGAIN && sent != -EINTR) {
            *ret_error = (int)-sent;
            return false;
        }
    }
    return true;
}

/* Take plain bytes of a part. Returns their number, or -errno. */
static ssize_t
plain_take(trpi_tcp_out *out, uint8_t *to, size_t count)
{
    ssize_t got;

    if (out->file < 0) {
        count = trp_bytes_copy_out(out->bytes, 0, to, count);
        trp_bytes_skip(&out->bytes, count);
        return (ssize_t)count;
    }
    do {
        got = pread(out->file, to, count, out->offset);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) {
        return got == 0 ? -EIO : -errno; /* the file is shorter */
    }
    out->offset += got;
    return got;
}

static bool
record_write(tls_t *t, const uint8_t *plain, size_t count)
{
    size_t done = 0;

    if (trpi_tls_session_write(t->session, plain, count, &done, &t->wire) != TRPI_TLS_OK) {
        return false;
    }
    trpi_assert(done == count); /* the wire was empty, and its bound is above a batch */
    t->plain += done;
    return true;
}

/* tcp-tls-E1: encrypt from the front of the queue. Small writes share a record. Returns 0, an errno
 * of the first part, or -errno of the session. */
static int
queue_encrypt(trpi_tcp_actor *a)
{
    uint8_t plain[TRPI_TLS_RECORD_BYTES];
    tls_t *t = a->tls;
    size_t count = 0;
    ssize_t got = 0;

    trpi_assert(t->wire.count == 0 && t->plain == 0);
    for (trpi_tcp_part *part = a->conn.first; part != NULL && got >= 0; part = part->next) {
        uint64_t left = part->left;

        while (left > 0 && t->plain + count < TLS_BATCH) {
            size_t room = sizeof plain - count;

            got = plain_take((trpi_tcp_out *)(void *)part, plain + count,
                             left < room ? (size_t)left : room);
            if (got < 0) {
                break;
            }
            left -= (uint64_t)got;
            count += (size_t)got;
            if (count == sizeof plain) {
                if (!record_write(t, plain, count)) {
                    return -session_fail(t);
                }
                count = 0;
            }
        }
        if (left > 0) {
            break;
        }
    }
    if (count > 0 && !record_write(t, plain, count)) {
        return -session_fail(t);
    }
    return t->plain == 0 && got < 0 ? (int)-got : 0; /* else when its turn comes */
}

static void
step_error(trp_ctx *ctx, trpi_tcp_actor *a, trpi_tcp_event_kind kind, int error)
{
    trpi_tcp_event event = { .kind = kind, .err = error };

    trpi_tcp_actor_step(ctx, a, &event);
}

static void
writing_fails(trp_ctx *ctx, trpi_tcp_actor *a, int error)
{
    tls_t *t = a->tls;

    a->readable = true; /* the brain waits for the last byte that is there */
    t->blocked = false;
    trpi_buffer_fini(&t->wire);
    t->sent = 0;
    t->plain = 0;
    t->end_due = false;
    step_error(ctx, a, TRPI_TCP_WRITE_ERROR, error);
}

void
trpi_tcp_tls_write_some(trp_ctx *ctx, trpi_tcp_actor *a)
{
    tls_t *t = a->tls;
    uint64_t total = 0;

    while (a->socket != NULL && a->writable && !a->lingering && trpi_tcp_has_output(a) &&
           total < a->io->settings.tcp.turn_bytes) {
        int error = t->wire.count == 0 ? queue_encrypt(a) : 0;
        ssize_t sent;

        if (error > 0) {
            step_error(ctx, a, TRPI_TCP_PART_ERROR, error);
            continue;
        }
        if (error < 0) {
            writing_fails(ctx, a, -error);
            continue;
        }
        sent = wire_send(a);
        if (sent > 0) {
            trpi_tcp_event wrote = { .kind = TRPI_TCP_WROTE, .bytes = t->plain };

            total += (uint64_t)sent;
            if (t->wire.count == 0 && t->plain > 0) {
                t->plain = 0;
                a->written_bytes += wrote.bytes;
                trpi_tcp_actor_step(ctx, a, &wrote);
            }
        } else if (sent != -EAGAIN && sent != -EINTR) {
            writing_fails(ctx, a, sent == 0 ? EPIPE : (int)-sent);
        }
    }
}

void
trpi_tcp_tls_say_end(trpi_tcp_actor *a)
{
    tls_t *t = a->tls;
    int error = 0;

    (void)trpi_tls_session_close(t->session, &t->wire);
    if (t->wire.count == 0) { /* the session cannot say anything */
        (void)a->socket->net->shutdown(a->socket->world, a->socket->number, SHUT_WR);
        return;
    }
    t->end_due = true;
    (void)wire_flush(a, &error); /* an error is met again by the next attempt */
}

/* ---- the handshake --------------------------------------------------------------------------- */

/* Tell who waits for the connection that there is none. */
static void
handshake_fail_tell(trp_ctx *ctx, trpi_tcp_actor *a)
{
    const tls_t *t = a->tls;

    trp_log(ctx, TRP_LOG_DEBUG, "a TLS handshake failed: %s", t->reason);
    if (a->command != NULL) {
        trp_tcp_command_failed failed;

        memset(&failed, 0, sizeof failed);
        failed.command = TRP_TCP_CONNECT;
        failed.error = t->error;
        failed.number = t->number;
        (void)snprintf(failed.reason, sizeof failed.reason, "%s", t->reason);
        trp_tell(ctx, a->asker, &trp_tcp_command_failed_type, &failed, sizeof failed);
    } else {
        trp_tcp_refused refused;
        trpi_net_address peer;

        memset(&refused, 0, sizeof refused);
        if (a->socket->net->peer_address(a->socket->world, a->socket->number, &peer) == 0) {
            trpi_io_address_out(&peer, &refused.remote);
        }
        refused.error = t->error;
        (void)snprintf(refused.reason, sizeof refused.reason, "%s", t->reason);
        trp_tell(ctx, a->asker, &trp_tcp_refused_type, &refused, sizeof refused);
    }
}

static void
handshake_fail(trp_ctx *ctx, trpi_tcp_actor *a)
{
    trpi_tcp_event abort = { .kind = TRPI_TCP_ABORT };
    trpi_tcp_effects effects;

    handshake_fail_tell(ctx, a);
    a->connecting = false;
    trpi_tcp_conn_step(&a->conn, &abort, &effects); /* nobody knows it: only its end is needed */
    if (!trpi_tcp_tls_lingers(ctx, a, true)) {
        trpi_io_socket_close(a->socket, true, false);
        a->socket = NULL;
        trp_stop(ctx, trp_self(ctx));
    }
}

/* The connection broke, with an errno of the socket. */
static void
handshake_break(trp_ctx *ctx, trpi_tcp_actor *a, int error)
{
    tls_t *t = a->tls;

    t->failed = true;
    t->error = error;
    (void)snprintf(t->reason, sizeof t->reason, "the connection broke during the TLS handshake: %s",
                   trpi_io_reason(error));
    handshake_fail(ctx, a);
}

int
trpi_tcp_tls_begin(trp_ctx *ctx, trpi_tcp_actor *a, const trpi_tcp_secure *how)
{
    const trpi_tls_session_options options = { .host = how->host,
                                               .sends_name = how->host != NULL && how->host[0] != 0,
                                               .wire_max = WIRE_MAX,
                                               .wall_ms = trpi_world_wall_ms(a->io->world) };
    tls_t *t = trpi_alloc(sizeof *t);
    trpi_tls_context *context;
    trp_err err;

    if (t == NULL) {
        return ENOMEM;
    }
    context = trpi_io_tls_context(how->tls);
    err = trpi_tls_session_new(context, &options, &t->session);
    trpi_tls_context_unref(context);
    err = err == TRP_OK ? trp_timer_once(ctx, TRPI_TCP_ALARM_KEY, how->handshake_ms,
                                         &trpi_io_alarm_type, NULL, 0)
                        : err;
    if (err != TRP_OK) {
        trpi_tcp_tls_free(t);
        return ENOMEM;
    }
    t->number = how->number;
    t->register_ms = how->register_ms;
    a->tls = t;
    a->connecting = true;
    a->readable = true; /* as far as is known */
    a->writable = true;
    trpi_tcp_tls_shake(ctx, a);
    return 0;
}

void
trpi_tcp_tls_shake(trp_ctx *ctx, trpi_tcp_actor *a)
{
    uint32_t events = trpi_io_socket_take(a->socket);
    trpi_tls_result result = TRPI_TLS_MORE;
    tls_t *t = a->tls;
    ssize_t got = 1;
    int error = 0;

    a->readable |= (events & (TRPI_NET_IN | TRPI_NET_END)) != 0;
    a->writable |= (events & (TRPI_NET_OUT | TRPI_NET_END)) != 0;
    while (result == TRPI_TLS_MORE && (got > 0 || got == -EINTR)) {
        rest_give(t);
        result = trpi_tls_session_handshake(t->session, &t->wire);
        rest_take_back(t);
        if (!wire_flush(a, &error)) {
            break;
        }
        if (result == TRPI_TLS_MORE) {
            got = rest_read(a);
            t->handshake_bytes += got > 0 ? (uint32_t)got : 0;
            if (t->handshake_bytes > HANDSHAKE_BYTES_MAX) {
                (void)fail_with(t, TRPI_REFUSED_BYTES, "");
                handshake_fail(ctx, a);
                return;
            }
        }
    }
    if (error != 0 && result != TRPI_TLS_FAILED) {
        handshake_break(ctx, a, error);
    } else if (result == TRPI_TLS_OK) {
        trp_msg_free(a->command);
        a->command = NULL;
        trpi_tcp_actor_begin(ctx, a, a->asker, t->number, t->register_ms);
    } else if (result == TRPI_TLS_FAILED || got == 0) {
        if (result != TRPI_TLS_FAILED) {
            (void)trpi_tls_session_end(t->session);
        }
        (void)session_fail(t);
        handshake_fail(ctx, a);
    } else if (got != -EAGAIN) {
        handshake_break(ctx, a, (int)-got);
    }
}

void
trpi_tcp_tls_late(trp_ctx *ctx, trpi_tcp_actor *a)
{
    (void)fail_with(a->tls, TRPI_REFUSED_TIMEOUT, "see handshake_timeout_ms");
    handshake_fail(ctx, a);
}

/* ---- the end --------------------------------------------------------------------------------- */

void
trpi_tcp_linger_end(trp_ctx *ctx, trpi_tcp_actor *a)
{
    trpi_io_socket_close(a->socket, false, false);
    a->socket = NULL;
    trp_stop(ctx, trp_self(ctx));
}

/* Read and drop. True: the peer has closed, too. */
static bool
peer_drain(trpi_tcp_actor *a)
{
    uint8_t bytes[4096];
    struct iovec to = { bytes, sizeof bytes };

    for (int i = 0; i < DRAIN_READS && a->readable; i++) {
        ssize_t got = a->socket->net->read(a->socket->world, a->socket->number, &to, 1);

        if (got == -EAGAIN) {
            a->readable = false; /* tcp-pump-P1 */
        } else if (got <= 0 && got != -EINTR) {
            return true;
        }
    }
    return false;
}

/* tcp-tls-E3 */
void
trpi_tcp_linger_go_on(trp_ctx *ctx, trpi_tcp_actor *a)
{
    uint32_t events = trpi_io_socket_take(a->socket);
    int error = 0;

    a->readable |= (events & (TRPI_NET_IN | TRPI_NET_END)) != 0;
    a->writable |= (events & (TRPI_NET_OUT | TRPI_NET_END)) != 0;
    if (!wire_flush(a, &error)) {
        trpi_tcp_linger_end(ctx, a);
        return;
    }
    if (a->tls->wire.count > 0) {
        return;
    }
    /* bytes that nobody reads would make the kernel reset the connection: the peer would lose what
     * it was told */
    if (peer_drain(a) || !a->tls->drains) {
        trpi_tcp_linger_end(ctx, a);
    } else if (a->readable && !a->looping) {
        a->looping = true;
        trp_tell(ctx, trp_self(ctx), &trpi_io_go_on_type, NULL, 0);
    }
}

bool
trpi_tcp_tls_lingers(trp_ctx *ctx, trpi_tcp_actor *a, bool reset)
{
    tls_t *t = a->tls;
    uint32_t flush_ms = a->flush_ms != 0 ? a->flush_ms : LINGER_MS;

    if (reset ? !t->told : t->wire.count == 0) {
        return false;
    }
    t->drains = reset;
    t->end_due = true;
    a->lingering = true;
    a->readable = true;       /* as far as is known */
    if (t->wire.count == 0) { /* it is sent already: the peer may still have to read it */
        t->end_due = false;
        (void)a->socket->net->shutdown(a->socket->world, a->socket->number, SHUT_WR);
    }
    if (trp_timer_once(ctx, TRPI_TCP_ALARM_KEY, reset ? LINGER_MS : flush_ms, &trpi_io_alarm_type,
                       NULL, 0) != TRP_OK) {
        trpi_tcp_linger_end(ctx, a);
    } else {
        trpi_tcp_linger_go_on(ctx, a);
    }
    return true;
}

void
trpi_tcp_tls_free(trpi_tcp_tls *tls)
{
    if (tls != NULL) {
        trpi_tls_session_free(tls->session);
        trpi_buffer_fini(&tls->wire);
        trpi_buffer_fini(&tls->rest);
        trpi_free(tls);
    }
}
