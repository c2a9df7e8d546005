/* tls_duo.h - the two actors of duo.h with TLS between them, and sessions over plain sockets as bad
 * peers.
 */
#ifndef TESTS_UNIT_IO_TLS_DUO_H
#define TESTS_UNIT_IO_TLS_DUO_H

#include "tests/unit/io/duo.h"
#include "tests/unit/tls/ends.h"

static user server, client;
static ends_files files;
static trp_tls *server_tls, *client_tls;
static const char *dialled_name;
static uint32_t handshake_ms;

static inline trp_tls *
tls_of(trp_system *system, trp_tls_options *options)
{
    char why[TRP_TLS_WHY_BYTES];
    trp_tls *tls = NULL;

    options->reload_ms = TRP_TLS_NEVER_RELOAD;
    if (trp_tls_new(system, options, &tls, why, sizeof why) != TRP_OK) {
        printf("  %s\n", why);
    }
    UNIT_REQUIRE(tls != NULL);
    return tls;
}

static inline trp_tls_options
of_server(void)
{
    trp_tls_options options = TRP_TLS_OPTIONS_INIT;

    options.is_server = 1;
    options.certificate = ends_path(&files, "echo.pem");
    options.key = ends_path(&files, "echo.key");
    return options;
}

static inline trp_tls_options
of_client(void)
{
    trp_tls_options options = TRP_TLS_OPTIONS_INIT;

    options.authorities = ends_path(&files, "ca.pem");
    return options;
}

/* Buffers of the kernel that are soon full. */
static inline trp_socket_options
small_buffers(void)
{
    trp_socket_options socket = TRP_SOCKET_OPTIONS_INIT;

    socket.send_buffer_bytes = 65536;
    socket.receive_buffer_bytes = 65536;
    return socket;
}

static inline void
bind_tls(trp_ctx *ctx, user *u)
{
    trp_tcp_bind_options options = TRP_TCP_BIND_OPTIONS_INIT;
    const trp_socket_options socket = small_buffers();

    (void)u;
    options.socket = &socket;
    options.tls = server_tls;
    options.handshake_timeout_ms = handshake_ms;
    UNIT_EQUAL(trp_tcp_bind(ctx, "127.0.0.1:0", &options), TRP_OK);
}

static inline void
connect_tls(trp_ctx *ctx, user *u)
{
    trp_tcp_connect_options options = TRP_TCP_CONNECT_OPTIONS_INIT;
    const trp_socket_options socket = small_buffers();
    char to[64];

    (void)u;
    options.socket = &socket;
    options.tls = client_tls;
    options.server_name = dialled_name;
    options.handshake_timeout_ms = handshake_ms;
    snprintf(to, sizeof to, "127.0.0.1:%u", server.port);
    UNIT_EQUAL(trp_tcp_connect(ctx, to, &options), TRP_OK);
}

/* NULL: the usual options. */
static inline trp_system *
open_tls(trp_tls_options *of_s, trp_tls_options *of_c)
{
    trp_system *system = stage_open();
    trp_tls_options usual_s = of_server(), usual_c = of_client();

    user_gate = false;
    dialled_name = "echo.example";
    user_start(system, &server, "s");
    user_start(system, &client, "c");
    server_tls = tls_of(system, of_s != NULL ? of_s : &usual_s);
    client_tls = tls_of(system, of_c != NULL ? of_c : &usual_c);
    user_do(system, &server, bind_tls);
    STAGE_EXPECT("s:bound");
    stage_clear(&stage_events);
    return system;
}

static inline void
join(trp_system *system)
{
    user_do(system, &client, connect_tls);
    UNIT_WAIT(stage_has("s:connected") && stage_has("c:connected"), 60000);
    stage_clear(&stage_events);
}

static inline void
shut(trp_system *system)
{
    user_gate = true;
    trp_tls_free(server_tls);
    trp_tls_free(client_tls);
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
    trp_system_free(system);
    handshake_ms = 0;
}

#define SAYS(u, text) says((u)->reason, (text))
static inline bool
says(const char *reason, const char *text)
{
    if (strstr(reason, text) == NULL) {
        printf("  it says: %s\n", reason);
        return false;
    }
    return true;
}

/* ---- a session over a plain socket ----------------------------------------------------------- */

static int wire_receive_bytes; /* of a small receive buffer; 0: as usual */

typedef struct wire_end {
    end end;
    int number;
} wire_end;

static inline void
wire_send_all(int number, trpi_buffer *wire)
{
    size_t at = 0;

    while (at < wire->count) {
        ssize_t sent = send(number, wire->data + at, wire->count - at, MSG_NOSIGNAL);
        if (sent <= 0) {
            break;
        }
        at += (size_t)sent;
    }
    trpi_buffer_clear(wire);
}

/* Connect and do the handshake; its result is in end.result. */
static inline void
wire_open(wire_end *w, const trpi_tls_options *options)
{
    uint8_t data[16384];
    size_t count = 0;

    end_start(&w->end, &files, options, "echo.example", 0);
    w->number = plain_connect_small(server.port, wire_receive_bytes);
    for (;;) {
        trpi_tls_session_input(w->end.session, data, count);
        w->end.result = trpi_tls_session_handshake(w->end.session, &w->end.wire);
        UNIT_EQUAL(trpi_tls_session_input_end(w->end.session), 0);
        wire_send_all(w->number, &w->end.wire);
        if (w->end.result != TRPI_TLS_MORE) {
            return;
        }
        ssize_t got = recv(w->number, data, sizeof data, 0);
        if (got <= 0) {
            (void)trpi_tls_session_end(w->end.session);
            w->end.result = TRPI_TLS_FAILED;
            return;
        }
        count = (size_t)got;
    }
}

static inline void
wire_say(wire_end *w, const void *bytes, size_t count)
{
    end_write(&w->end, bytes, count);
    wire_send_all(w->number, &w->end.wire);
}

/* Read until the session or the connection ends. Returns the plain bytes, which must be those of
 * pattern_at(). */
static inline size_t
wire_drain(wire_end *w, bool *ret_right)
{
    static uint8_t data[65536], plain[65536];
    size_t total = 0;

    *ret_right = true;
    w->end.result = TRPI_TLS_MORE;
    while (w->end.result == TRPI_TLS_MORE) {
        ssize_t got = recv(w->number, data, sizeof data, 0);
        size_t count = 0;

        if (got <= 0) {
            w->end.result = trpi_tls_session_end(w->end.session);
            break;
        }
        trpi_tls_session_input(w->end.session, data, (size_t)got);
        do {
            w->end.result =
                trpi_tls_session_read(w->end.session, plain, sizeof plain, &count, &w->end.wire);
            for (size_t i = 0; i < count; i++) {
                *ret_right = *ret_right && plain[i] == pattern_at(total + i);
            }
            total += count;
        } while (w->end.result == TRPI_TLS_OK);
        (void)trpi_tls_session_input_end(w->end.session);
    }
    return total;
}

static inline void
wire_close(wire_end *w)
{
    close(w->number);
    end_stop(&w->end);
}

#endif
