/* session_test.c - the end of a session in each direction, and peers that misbehave. */
#include <openssl/err.h>

#include "tests/unit/tls/ends.h"

static ends_files files;

/* A client and a server after their handshake. */
static void
pair_start(end *client, end *server, size_t wire_max)
{
    ends_files_start(&files);
    trpi_tls_options of_client = ends_client(&files), of_server = ends_server(&files);
    end_start(client, &files, &of_client, "echo.example", wire_max);
    end_start(server, &files, &of_server, NULL, wire_max);
    ends_shake(client, server);
    UNIT_EQUAL(client->result, TRPI_TLS_OK);
    UNIT_EQUAL(server->result, TRPI_TLS_OK);
}

static void
pair_stop(end *client, end *server)
{
    UNIT_EQUAL(ERR_peek_error(), 0); /* no call leaves one behind for others of this thread */
    end_stop(client);
    end_stop(server);
    pki_end(&files.pki);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void
one_direction_ends_and_the_other_goes_on(void)
{
    end c, s;
    char text[100];
    size_t count = 0, done = 0;
    pair_start(&c, &s, 0);
    end_write(&c, "last", 4);
    UNIT_EQUAL(trpi_tls_session_close(c.session, &c.wire), TRPI_TLS_OK);
    size_t said = c.wire.count;
    UNIT_EQUAL(trpi_tls_session_close(c.session, &c.wire), TRPI_TLS_OK); /* once is enough */
    UNIT_EQUAL(c.wire.count, said);
    UNIT_EQUAL(trpi_tls_session_write(c.session, "x", 1, &done, &c.wire), TRPI_TLS_ENDED);
    UNIT_EQUAL(done, 0);
    UNIT_EQUAL(end_read(&s, &c, text, sizeof text, &count), TRPI_TLS_ENDED);
    UNIT_EQUAL(count, 4);
    for (int i = 0; i < 3; i++) { /* it answers, long after */
        end_write(&s, "answer", 6);
        UNIT_EQUAL(end_read(&c, &s, text, sizeof text, &count), TRPI_TLS_MORE);
        UNIT_EQUAL(count, 6);
    }
    UNIT_EQUAL(trpi_tls_session_end(s.session), TRPI_TLS_ENDED);
    UNIT_EQUAL(trpi_tls_session_close(s.session, &s.wire), TRPI_TLS_OK);
    UNIT_EQUAL(end_read(&c, &s, text, sizeof text, &count), TRPI_TLS_ENDED);
    UNIT_EQUAL(trpi_tls_session_end(c.session), TRPI_TLS_ENDED);
    UNIT_EQUAL(end_refusal(&c), TRPI_REFUSED_NONE);
    pair_stop(&c, &s);
}

static void
a_truncation_is_no_orderly_end(void)
{
    end c, s;
    char text[100];
    size_t count = 0;
    pair_start(&c, &s, 0);
    end_write(&s, "half of it", 10);
    UNIT_EQUAL(end_read(&c, &s, text, sizeof text, &count), TRPI_TLS_MORE);
    UNIT_EQUAL(trpi_tls_session_end(c.session), TRPI_TLS_FAILED);
    UNIT_EQUAL(end_refusal(&c), TRPI_REFUSED_TRUNCATED);
    UNIT_TRUE(end_says(&c, "without close_notify"));
    pair_stop(&c, &s);

    ends_files_start(&files); /* in the handshake */
    trpi_tls_options options = ends_client(&files);
    end_start(&c, &files, &options, "echo.example", 0);
    UNIT_EQUAL(trpi_tls_session_handshake(c.session, &c.wire), TRPI_TLS_MORE);
    UNIT_EQUAL(trpi_tls_session_close(c.session, &c.wire), TRPI_TLS_MORE);
    UNIT_EQUAL(trpi_tls_session_write(c.session, "x", 1, &count, &c.wire), TRPI_TLS_MORE);
    UNIT_EQUAL(trpi_tls_session_end(c.session), TRPI_TLS_FAILED);
    UNIT_EQUAL(end_refusal(&c), TRPI_REFUSED_TRUNCATED);
    UNIT_TRUE(end_says(&c, "during the handshake"));
    UNIT_EQUAL(trpi_tls_session_close(c.session, &c.wire), TRPI_TLS_FAILED);
    UNIT_EQUAL(trpi_tls_session_write(c.session, "x", 1, &count, &c.wire), TRPI_TLS_FAILED);
    end_stop(&c);
    pki_end(&files.pki);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

/* Ask for new keys, in a record of its own. */
static void
end_ask_keys(end *e)
{
    UNIT_EQUAL(SSL_key_update(e->session->ssl, SSL_KEY_UPDATE_REQUESTED), 1);
    e->session->wire = &e->wire;
    UNIT_EQUAL(SSL_do_handshake(e->session->ssl), 1);
    e->session->wire = NULL;
}

/* The peer asks for new keys again and again and takes none of the answers. */
static void
key_updates_that_nobody_takes_stop_the_reading(void)
{
    enum { ASKED = 300, WORDS = 3 };
    end c, s, asking = { 0 }; /* asking: only its wire, what the peer has sent */
    char text[100];
    size_t count = 0, read = 0;
    pair_start(&c, &s, TRPI_TLS_WIRE_BYTES_MIN);
    for (int i = 0; i < ASKED; i++) {
        end_ask_keys(&c);
        if (i % (ASKED / WORDS) == 50) {
            end_write(&c, "x", 1);
        }
        UNIT_EQUAL(trpi_buffer_append(&asking.wire, c.wire.data, c.wire.count, 1 << 20), TRP_OK);
        trpi_buffer_clear(&c.wire);
    }
    UNIT_EQUAL(end_read(&s, &asking, text, sizeof text, &count), TRPI_TLS_FULL);
    UNIT_TRUE(count < WORDS && s.wire.count <= TRPI_TLS_WIRE_BYTES_MIN);
    read = count;
    UNIT_EQUAL(trpi_tls_session_write(s.session, "x", 1, &count, &s.wire), TRPI_TLS_FULL);
    UNIT_EQUAL(trpi_tls_session_close(s.session, &s.wire), TRPI_TLS_FULL);
    for (int i = 0; i < ASKED && asking.wire.count > 0; i++) { /* it takes them after all */
        UNIT_EQUAL(end_read(&c, &s, text, sizeof text, &count), TRPI_TLS_MORE);
        trpi_tls_result result = end_read(&s, &asking, text, sizeof text, &count);
        UNIT_TRUE(result == TRPI_TLS_FULL || result == TRPI_TLS_MORE);
        UNIT_TRUE(s.wire.count <= TRPI_TLS_WIRE_BYTES_MIN);
        read += count;
    }
    UNIT_EQUAL(read, WORDS);
    trpi_buffer_fini(&asking.wire);
    pair_stop(&c, &s);
}

/* One end (0: the client) of a session of TLS 1.2 asks for a new handshake, often, and takes none
 * of the alerts that say no. Returns how often the other end stops reading. */
static int
ask_again(int asking)
{
    enum { ASKED = 200 };
    end ends[2], asked = { 0 }; /* asked: only its wire, what was sent */
    char text[100];
    size_t count = 0;
    int stops = 0;
    ends_files_start(&files);
    trpi_tls_options client = ends_client(&files), server = ends_server(&files);
    client.version_min = server.version_min = TRPI_TLS_1_2;
    end_start(&ends[0], &files, &client, "echo.example", TRPI_TLS_WIRE_BYTES_MIN);
    end_start(&ends[1], &files, &server, NULL, TRPI_TLS_WIRE_BYTES_MIN);
    UNIT_EQUAL(SSL_set_max_proto_version(ends[0].session->ssl, TLS1_2_VERSION), 1);
    ends_shake(&ends[0], &ends[1]);
    UNIT_TEXT(SSL_get_version(ends[1].session->ssl), "TLSv1.2");
    end *from = &ends[asking], *to = &ends[1 - asking];
    (void)SSL_clear_options(from->session->ssl, SSL_OP_NO_RENEGOTIATION);
    from->session->wire = &asked.wire;
    for (int i = 0; i < ASKED; i++) { /* a client asks once, and then waits */
        UNIT_EQUAL(SSL_renegotiate(from->session->ssl), 1);
        (void)SSL_do_handshake(from->session->ssl);
    }
    from->session->wire = NULL;
    UNIT_TRUE(asked.wire.count > 0);
    trpi_tls_result result = TRPI_TLS_FULL;
    for (; result == TRPI_TLS_FULL && stops < ASKED; stops += result == TRPI_TLS_FULL) {
        trpi_buffer_clear(&to->wire);
        result = end_read(to, &asked, text, sizeof text, &count);
        UNIT_TRUE(to->wire.count > 0 && to->wire.count <= TRPI_TLS_WIRE_BYTES_MIN);
    }
    UNIT_EQUAL(result, TRPI_TLS_MORE);
    UNIT_EQUAL(asked.wire.count, 0);
    UNIT_EQUAL(end_refusal(to), TRPI_REFUSED_NONE);
    trpi_buffer_fini(&asked.wire);
    pair_stop(&ends[0], &ends[1]);
    return stops;
}

static void
a_new_handshake_is_refused_within_the_bound(void)
{
    UNIT_EQUAL(ask_again(0), 0);
    UNIT_TRUE(ask_again(1) > 1);
}

static void
the_bound_of_the_wire_holds_to_the_byte(void)
{
    end c, s;
    static uint8_t much[40000];
    size_t done = 0;
    pair_start(&c, &s, TRPI_TLS_WIRE_BYTES_MIN);
    UNIT_EQUAL(trpi_tls_session_write(s.session, much, sizeof much, &done, &s.wire), TRPI_TLS_FULL);
    UNIT_TRUE(done > 0 && s.wire.count <= TRPI_TLS_WIRE_BYTES_MIN);
    UNIT_EQUAL(trpi_tls_session_write(s.session, much, 1, &done, &s.wire), TRPI_TLS_FULL);
    UNIT_EQUAL(done, 0);
    UNIT_EQUAL(trpi_tls_session_close(s.session, &s.wire), TRPI_TLS_OK); /* has its reserve */
    UNIT_TRUE(s.wire.count <= TRPI_TLS_WIRE_BYTES_MIN);
    pair_stop(&c, &s);
}

/* ---- peers that misbehave -------------------------------------------------------------------- */

static void
garbage_and_alerts_are_refused_with_a_text(void)
{
    static const struct {
        const char *bytes;
        size_t count;
        bool client; /* hears it; else a server */
        trpi_refusal why;
        const char *says;
    } rows[] = {
        { "GET / HTTP/1.1\r\n\r\n", 18, false, TRPI_REFUSED_NOT_TLS, "does not speak TLS" },
        { "SSH-2.0-OpenSSH_9\r\n", 19, true, TRPI_REFUSED_NOT_TLS, "does not speak TLS" },
        { "\x16\x03\x01\x00\x05nonse", 10, false, TRPI_REFUSED_TLS, "" },
        { "\x16\x03\x03\xff\xff", 5, false, TRPI_REFUSED_TLS, "" },
        { "\x15\x03\x03\x00\x02\x02\x28", 7, true, TRPI_REFUSED_BY_PEER, "handshake failure" },
        { "\x15\x03\x03\x00\x02\x02\x78", 7, true, TRPI_REFUSED_NO_PROTOCOL, "speaks none" },
        { "\x15\x03\x03\x00\x02\x02\x70", 7, true, TRPI_REFUSED_BY_PEER, "unrecognized name" },
        { "\x15\x03\x03\x00\x02\x02\x46", 7, true, TRPI_REFUSED_TLS_VERSION, "TLS 1.3" },
    };
    ends_files_start(&files);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        end e;
        trpi_tls_options client = ends_client(&files), server = ends_server(&files);
        end_start(&e, &files, rows[i].client ? &client : &server,
                  rows[i].client ? "echo.example" : NULL, 0);
        UNIT_EQUAL(trpi_tls_session_handshake(e.session, &e.wire), TRPI_TLS_MORE);
        trpi_tls_session_input(e.session, (const uint8_t *)rows[i].bytes, rows[i].count);
        bool fits = UNIT_EQUAL(trpi_tls_session_handshake(e.session, &e.wire), TRPI_TLS_FAILED);
        fits = UNIT_EQUAL(trpi_tls_session_input_end(e.session), 0) && fits;
        fits = UNIT_EQUAL(end_refusal(&e), rows[i].why) && fits;
        fits = UNIT_TRUE(end_says(&e, rows[i].says)) && fits;
        fits = UNIT_EQUAL(trpi_tls_session_handshake(e.session, &e.wire), TRPI_TLS_FAILED) && fits;
        if (!fits) {
            printf("  row %zu\n", i);
        }
        end_stop(&e);
    }
    UNIT_EQUAL(ERR_peek_error(), 0);
    pki_end(&files.pki);
}

static void
versions_that_do_not_meet_are_refused(void)
{
    end c, s;
    ends_files_start(&files);
    trpi_tls_options client = ends_client(&files), server = ends_server(&files);
    server.version_min = TRPI_TLS_1_2;
    end_start(&c, &files, &client, "echo.example", 0);
    end_start(&s, &files, &server, NULL, 0);
    UNIT_EQUAL(SSL_set_max_proto_version(s.session->ssl, TLS1_2_VERSION), 1);
    ends_shake(&c, &s);
    UNIT_EQUAL(end_refusal(&s), TRPI_REFUSED_TLS_VERSION);
    UNIT_EQUAL(end_refusal(&c), TRPI_REFUSED_TLS_VERSION);
    UNIT_TRUE(end_says(&c, "TLS 1.3 is required"));
    pair_stop(&c, &s);
}

static uint64_t state;

static size_t
drawn(size_t below)
{
    state = trpi_hash_u64(state + 1);
    return (size_t)(state >> 8) % below;
}

/* Change what stands in the wire: a bit, a byte, a piece twice, a piece less. */
static void
bytes_mutate(trpi_buffer *wire)
{
    size_t at = drawn(wire->count), count = 1 + drawn(wire->count - at);
    switch (drawn(4)) {
    case 0:
        wire->data[at] ^= (uint8_t)(1u << drawn(8));
        break;
    case 1:
        wire->data[at] ^= (uint8_t)(1 + drawn(255));
        break;
    case 2: {
        uint8_t *copy = malloc(count); /* the piece once more, behind itself */
        UNIT_REQUIRE(copy != NULL);
        memcpy(copy, wire->data + at, count);
        UNIT_EQUAL(trpi_buffer_reserve(wire, count, 1 << 20), TRP_OK);
        memmove(wire->data + at + count, wire->data + at, wire->count - at);
        memcpy(wire->data + at, copy, count);
        wire->count += count;
        free(copy);
        break;
    }
    default:
        memmove(wire->data + at, wire->data + at + count, wire->count - at - count);
        wire->count -= count;
        break;
    }
}

/* One connection, one of whose flights is changed on its way. No byte of a changed flight of data
 * may pass for one that was written; a session that has failed has a reason, and stays so. */
static void
mutated_play(uint64_t seed)
{
    end ends[2];
    trpi_tls_options client = ends_client(&files), server = ends_server(&files);
    state = seed;
    unsigned failures = unit_failures();
    size_t flight = drawn(7);
    end_start(&ends[0], &files, &client, "echo.example", 0);
    end_start(&ends[1], &files, &server, NULL, 0);
    for (size_t i = 0; i < 8; i++) {
        end *to = &ends[(i + 1) % 2], *from = &ends[i % 2];
        char text[200];
        size_t count = 0, done = 0;
        if (from->session->open) {
            (void)trpi_tls_session_write(from->session, "pure words", 10, &done, &from->wire);
        } else if (end_refusal(from) == TRPI_REFUSED_NONE) {
            (void)trpi_tls_session_handshake(from->session, &from->wire);
        }
        if (i == flight && from->wire.count > 0) {
            bytes_mutate(&from->wire);
        }
        end_hear(to, from);
        if (to->result == TRPI_TLS_OK) {
            to->result = end_read(to, from, text, sizeof text, &count);
        }
        for (size_t k = 0; k < count; k++) {
            UNIT_EQUAL(text[k], "pure words"[k % 10]);
        }
        UNIT_EQUAL(to->result == TRPI_TLS_FAILED, end_refusal(to) != TRPI_REFUSED_NONE);
        trpi_buffer_clear(&from->wire);
        if (to->result == TRPI_TLS_FAILED) {
            UNIT_EQUAL(trpi_tls_session_write(to->session, "x", 1, &done, &to->wire),
                       TRPI_TLS_FAILED);
        }
    }
    UNIT_EQUAL(ERR_peek_error(), 0);
    if (unit_failures() != failures) {
        printf("  seed %llu: mutated_play(%llu)\n", (unsigned long long)seed,
               (unsigned long long)seed);
    }
    end_stop(&ends[0]);
    end_stop(&ends[1]);
}

static void
changed_bytes_are_refused_and_never_read(void)
{
    ends_files_start(&files);
    for (uint64_t seed = 1; seed <= 300; seed++) {
        mutated_play(seed);
    }
    pki_end(&files.pki);
}

UNIT_BEGIN("session")
UNIT(one_direction_ends_and_the_other_goes_on)
UNIT(a_truncation_is_no_orderly_end)
UNIT(key_updates_that_nobody_takes_stop_the_reading)
UNIT(a_new_handshake_is_refused_within_the_bound)
UNIT(the_bound_of_the_wire_holds_to_the_byte)
UNIT(garbage_and_alerts_are_refused_with_a_text)
UNIT(versions_that_do_not_meet_are_refused)
UNIT(changed_bytes_are_refused_and_never_read)
UNIT_END
