/* stage_tls.c - see stage_tls.h.
 *
 * Must hold.
 *   stage-tls-S1  What the session has written goes down before anything that follows from it: an
 *       alert before the failure, the last record before the end.
 *   stage-tls-S2  Plain bytes go down in the order of their commands, and none in the clear.
 *   stage-tls-S3  After the first failure every command and event fails.
 * Tests.   tests/unit/io/stage_tls_test.c
 * Sources. PIPE-13, PIPE-14.
 */
#include "io/stage_tls.h"

#include <stdbool.h>

#include "base/alloc.h"
#include "base/bytes.h"

#define HANDSHAKE_BYTES_MAX (128u << 10) /* of the peer: its certificates, above all */

typedef struct tls_state {
    trpi_tls_session *session;
    trpi_buffer wire;  /* for the peer: stage-tls-S1 */
    trp_bytes waiting; /* plain, not encrypted yet */
    uint32_t waiting_max;
    uint32_t handshake_bytes; /* of the peer, so far */
    bool is_open;             /* the handshake is over */
    bool is_closed;           /* this side writes no more */
    bool is_ended;            /* the peer writes no more */
    trp_err broken;           /* stage-tls-S3 */
} tls_state;

static trp_err
tls_open(trp_port *port, void *state, const void *options)
{
    const trpi_tls_stage_options *given = options;
    tls_state *t = state;

    (void)port;
    if (given == NULL || given->context == NULL) {
        return TRP_EINVAL;
    }
    t->waiting_max = given->waiting_max != 0 ? given->waiting_max : TRPI_TLS_STAGE_WAITING_DEFAULT;
    return trpi_tls_session_new(given->context, &given->session, &t->session);
}

static void
tls_close(void *state)
{
    tls_state *t = state;

    trpi_tls_session_free(t->session);
    trpi_buffer_fini(&t->wire);
    trp_bytes_unref(&t->waiting);
}

/* ---- towards the peer ------------------------------------------------------------------------ */

static void
wire_release(void *data, void *arg)
{
    (void)arg;
    trpi_free(data);
}

/* Send down what the session has written, without copying it. */
static trp_err
wire_flush(trp_port *port, tls_state *t)
{
    trp_item out = trp_item_of(&trp_item_bytes);
    trp_err err;

    if (t->wire.count == 0) {
        return TRP_OK;
    }
    err = trp_bytes_wrap(t->wire.data, t->wire.count, wire_release, NULL, &out.as.bytes);
    if (err != TRP_OK) {
        return err;
    }
    t->wire = (trpi_buffer){ 0 };
    return trp_port_emit_command(port, &out);
}

static trp_err
session_fail(trp_port *port, tls_state *t)
{
    const char *detail = "";
    trp_err err;

    (void)trpi_tls_session_failure(t->session, &detail);
    t->broken = TRP_EPROTO;
    trp_bytes_unref(&t->waiting);
    err = wire_flush(port, t); /* the alert */
    return err != TRP_OK ? err : trp_port_fail(port, TRP_EPROTO, "%s", detail);
}

/* Encrypt what waits. */
static trp_err
waiting_write(trp_port *port, tls_state *t)
{
    while (t->is_open && trp_bytes_length(t->waiting) > 0) {
        trp_bytes piece = trpi_bytes_piece(t->waiting, 0);
        size_t done = 0;
        trpi_tls_result result = trpi_tls_session_write(t->session, trp_bytes_flat(piece),
                                                        trp_bytes_length(piece), &done, &t->wire);

        trp_bytes_skip(&t->waiting, done);
        if (result == TRPI_TLS_FULL) {
            trp_err err = wire_flush(port, t);

            if (err != TRP_OK) {
                return err;
            }
        } else if (result != TRPI_TLS_OK) {
            return session_fail(port, t);
        }
    }
    return wire_flush(port, t);
}

static trp_err
tls_command(trp_port *port, void *state, trp_item *command)
{
    tls_state *t = state;
    bool closes = command->type == &trp_item_close;
    trp_err err = TRP_OK;

    if (t->broken != TRP_OK) {
        return trp_port_fail(port, t->broken, "the session has failed");
    }
    if (command->type != &trp_item_bytes && !closes) {
        return trp_port_emit_command(port, command);
    }
    if (t->is_closed) {
        return trp_port_fail(port, TRP_ECLOSED, "a write after the session was closed");
    }
    if (!closes) {
        if (trp_bytes_length(command->as.bytes) + trp_bytes_length(t->waiting) > t->waiting_max &&
            !t->is_open) {
            return trp_port_fail(port, TRP_EAGAIN, "more than %u bytes wait for the handshake",
                                 t->waiting_max);
        }
        err = trp_bytes_append(&t->waiting, command->as.bytes);
    }
    if (err == TRP_OK && !t->is_open) {
        trpi_tls_result result = trpi_tls_session_handshake(t->session, &t->wire);

        t->is_open = result == TRPI_TLS_OK;
        err = result == TRPI_TLS_FAILED ? session_fail(port, t) : TRP_OK;
    }
    err = err == TRP_OK ? waiting_write(port, t) : err;
    if (err != TRP_OK || !closes) {
        return err;
    }
    t->is_closed = true;
    (void)trpi_tls_session_close(t->session, &t->wire); /* before the handshake nothing is said */
    err = wire_flush(port, t);
    return err == TRP_OK ? trp_port_emit_command(port, command) : err;
}

/* ---- from the peer --------------------------------------------------------------------------- */

/* Read what one call gives, and pass it up. */
static trp_err
record_read(trp_port *port, tls_state *t, trpi_tls_result *ret_result)
{
    uint8_t plain[TRPI_TLS_RECORD_BYTES];
    trp_item out = trp_item_of(&trp_item_bytes);
    size_t count = 0;
    trp_err err;

    *ret_result = trpi_tls_session_read(t->session, plain, sizeof plain, &count, &t->wire);
    if (count == 0) {
        return TRP_OK;
    }
    err = trp_bytes_copy(plain, count, &out.as.bytes);
    return err == TRP_OK ? trp_port_emit_event(port, &out) : err;
}

/* Give one piece to the session, and read what it makes of it. */
static trp_err
piece_read(trp_port *port, tls_state *t, const uint8_t *data, size_t count)
{
    trpi_tls_result result = TRPI_TLS_OK;
    trp_err err = TRP_OK;

    if (!t->is_open) {
        t->handshake_bytes += (uint32_t)count;
        if (t->handshake_bytes > HANDSHAKE_BYTES_MAX) {
            t->broken = TRP_EPROTO;
            return trp_port_fail(port, TRP_EPROTO, "a handshake of more than %u bytes",
                                 HANDSHAKE_BYTES_MAX);
        }
    }
    trpi_tls_session_input(t->session, data, count);
    if (!t->is_open) {
        result = trpi_tls_session_handshake(t->session, &t->wire);
        t->is_open = result == TRPI_TLS_OK;
    }
    while (err == TRP_OK && (result == TRPI_TLS_OK || result == TRPI_TLS_FULL)) {
        if (result == TRPI_TLS_FULL) {
            err = wire_flush(port, t);
        }
        if (err == TRP_OK) {
            err = record_read(port, t, &result);
        }
    }
    (void)trpi_tls_session_input_end(t->session); /* all was read, or nothing will be */
    if (err == TRP_OK && result == TRPI_TLS_FAILED) {
        return session_fail(port, t);
    }
    t->is_ended = t->is_ended || result == TRPI_TLS_ENDED;
    return err == TRP_OK ? wire_flush(port, t) : err;
}

static trp_err
end_read(trp_port *port, tls_state *t, trp_item *event)
{
    if (!t->is_ended && trpi_tls_session_end(t->session) != TRPI_TLS_ENDED) {
        return session_fail(port, t);
    }
    t->is_ended = true;
    return trp_port_emit_event(port, event);
}

static trp_err
tls_event(trp_port *port, void *state, trp_item *event)
{
    tls_state *t = state;
    trp_err err = TRP_OK;

    if (t->broken != TRP_OK) {
        return trp_port_fail(port, t->broken, "the session has failed");
    }
    if (event->type == &trp_item_end) {
        return end_read(port, t, event);
    }
    if (event->type != &trp_item_bytes) {
        return trp_port_emit_event(port, event);
    }
    for (size_t at = 0; err == TRP_OK && !t->is_ended && at < trp_bytes_length(event->as.bytes);) {
        trp_bytes piece = trpi_bytes_piece(event->as.bytes, at);
        size_t count = trp_bytes_length(piece);

        /* of a handshake little at a time, since plain bytes may stand behind it */
        count = t->is_open || count < TRPI_TLS_RECORD_BYTES ? count : TRPI_TLS_RECORD_BYTES;
        err = piece_read(port, t, trp_bytes_flat(piece), count);
        at += count;
    }
    return err == TRP_OK ? waiting_write(port, t) : err;
}

const trp_stage trpi_tls_stage = { .size = sizeof(trp_stage),
                                   .name = "tls",
                                   .state_bytes = sizeof(tls_state),
                                   .open = tls_open,
                                   .close = tls_close,
                                   .command = tls_command,
                                   .event = tls_event };
