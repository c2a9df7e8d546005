/* ends.h - two TLS sessions and the bytes between them, for tests. */
#ifndef TESTS_UNIT_TLS_ENDS_H
#define TESTS_UNIT_TLS_ENDS_H

#include "base/hash.h"
#include "tests/unit/remote/pki.h"
#include "tls/tls_inner.h"

/* Files: ca signs echo (echo.example), other (other.example) and client (client.example); foreign
 * signs stranger (echo.example). */
typedef struct ends_files {
    pki pki;
} ends_files;

static inline void
ends_files_start(ends_files *f)
{
    pki_start(&f->pki);
    pki_authority(&f->pki, "ca");
    pki_authority(&f->pki, "foreign");
    pki_node(&f->pki, "ca", "echo", "echo.example", -1, 30);
    pki_node(&f->pki, "ca", "other", "other.example", -1, 30);
    pki_node(&f->pki, "ca", "client", "client.example", -1, 30);
    pki_node(&f->pki, "foreign", "stranger", "echo.example", -1, 30);
}

/* The path of a file; each of ten calls has a place of its own. */
static inline const char *
ends_path(const ends_files *f, const char *name)
{
    static unsigned next;
    static char paths[10][96];
    char *path = paths[next++ % 10];
    return pki_path(&f->pki, name, path, sizeof paths[0]);
}

static inline trpi_tls_options
ends_server(const ends_files *f)
{
    return (trpi_tls_options){ .use = TRPI_TLS_SERVER,
                               .peer = TRPI_TLS_PEER_UNCHECKED,
                               .cert = ends_path(f, "echo.pem"),
                               .key = ends_path(f, "echo.key") };
}

static inline trpi_tls_options
ends_client(const ends_files *f)
{
    return (trpi_tls_options){ .use = TRPI_TLS_CLIENT, .ca = ends_path(f, "ca.pem") };
}

typedef struct end {
    trpi_tls_context *context;
    trpi_tls_session *session;
    trpi_buffer wire; /* for the other end */
    trpi_tls_result result;
} end;

/* host: of a client's end; NULL: a server's. */
static inline void
end_start(end *e, const ends_files *f, const trpi_tls_options *options, const char *host,
          size_t wire_max)
{
    char why[300] = "";
    memset(e, 0, sizeof *e);
    const trpi_tls_session_options session = {
        .host = host, .sends_name = true, .wire_max = wire_max, .wall_ms = f->pki.now_ms
    };
    trp_err err = trpi_tls_context_load(options, f->pki.now_ms, &e->context, why, sizeof why);
    if (err != TRP_OK) {
        printf("%s\n", why);
    }
    UNIT_REQUIRE(err == TRP_OK);
    UNIT_REQUIRE(trpi_tls_session_new(e->context, &session, &e->session) == TRP_OK);
    e->result = TRPI_TLS_MORE;
}

static inline void
end_stop(end *e)
{
    trpi_tls_session_free(e->session);
    trpi_tls_context_unref(e->context);
    trpi_buffer_fini(&e->wire);
    memset(e, 0, sizeof *e);
}

/* Give all bytes that `from` has written to `to`, which goes on with its handshake. */
static inline void
end_hear(end *to, end *from)
{
    trpi_tls_session_input(to->session, from->wire.data, from->wire.count);
    to->result = trpi_tls_session_handshake(to->session, &to->wire);
    trpi_buffer_drop(&from->wire, from->wire.count - trpi_tls_session_input_end(to->session));
}

/* Do the handshake until both are done with it, in one way or the other. */
static inline void
ends_shake(end *client, end *server)
{
    for (int i = 0; i < 10; i++) {
        end_hear(client, server);
        end_hear(server, client);
    }
}

static inline void
end_write(end *e, const void *bytes, size_t count)
{
    size_t done = 0;
    UNIT_EQUAL(trpi_tls_session_write(e->session, bytes, count, &done, &e->wire), TRPI_TLS_OK);
    UNIT_EQUAL(done, count);
}

/* Read everything that the other end has written, into out. Returns the result of the read. */
static inline trpi_tls_result
end_read(end *to, end *from, char *out, size_t max, size_t *ret_count)
{
    trpi_tls_session_input(to->session, from->wire.data, from->wire.count);
    trpi_tls_result result =
        trpi_tls_session_read(to->session, (uint8_t *)out, max, ret_count, &to->wire);
    trpi_buffer_drop(&from->wire, from->wire.count - trpi_tls_session_input_end(to->session));
    return result;
}

static inline trpi_refusal
end_refusal(const end *e)
{
    const char *detail = "";
    trpi_refusal why = trpi_tls_session_failure(e->session, &detail);
    UNIT_TRUE(why == TRPI_REFUSED_NONE || detail[0] != '\0'); /* a reason has a text */
    return why;
}

static inline bool
end_says(const end *e, const char *text)
{
    const char *detail = "";
    (void)trpi_tls_session_failure(e->session, &detail);
    bool says = strstr(detail, text) != NULL;
    if (!says) {
        printf("  it says: %s\n", detail);
    }
    return says;
}

#endif
