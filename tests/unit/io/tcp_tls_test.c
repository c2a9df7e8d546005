/* tcp_tls_test.c - TCP connections with TLS, over loopback, with good and bad peers. */
#include <fcntl.h>

#include "tests/unit/draw.h"
#include "tests/unit/io/tls_duo.h"

static void
write_hello(trp_ctx *ctx, user *u)
{
    UNIT_EQUAL(trp_tcp_write_copy(ctx, u->connection, "hello", 5, 7), TRP_OK);
}

/* PIPE-13: who the peer is and what both speak is told with the connection. */
static void
a_connection_says_who_the_peer_is_and_what_both_speak(void)
{
    static const char *const ours[] = { "echo/2", "echo/1" }, *const theirs[] = { "echo/1", "x" };
    trp_tls_options s, c;

    ends_files_start(&files);
    s = of_server();
    s.authorities = ends_path(&files, "ca.pem");
    s.protocols = ours;
    s.protocols_count = 2;
    c = of_client();
    c.certificate = ends_path(&files, "client.pem");
    c.key = ends_path(&files, "client.key");
    c.protocols = theirs;
    c.protocols_count = 2;
    trp_system *system = open_tls(&s, &c);
    server.echoes = true;
    join(system);
    UNIT_EQUAL(server.tls.version, 0x304);
    UNIT_TEXT(server.tls.protocol, "echo/1");
    UNIT_TEXT(server.tls.name, "client");
    UNIT_TEXT(server.tls.issuer, "ca");
    UNIT_TEXT(server.tls.asked, "echo.example");
    UNIT_EQUAL(strlen(server.tls.sha256), 64);
    UNIT_TRUE(server.tls.until_ms > files.pki.now_ms);
    UNIT_TEXT(client.tls.protocol, "echo/1");
    UNIT_TEXT(client.tls.name, "echo");
    UNIT_EQUAL(client.tls.has_certificate, 1);
    user_do(system, &client, write_hello);
    UNIT_WAIT(stage_has("c:ack(7)") && stage_has("s:got(hello)") && stage_has("c:got(hello)"),
              60000);
    user_do(system, &client, close_it);
    UNIT_WAIT(stage_has("c:closed") && stage_has("s:peer"), 60000);
    shut(system);
    pki_end(&files.pki);
}

/* ---- the end of a connection: both halves x five events x a pending write or none ------------ */

enum { CHUNK = 65536, CHUNKS = 16, MUCH = 2 };
static uint64_t chunk_next; /* of the pattern */

static void
write_chunks(trp_ctx *ctx, const user *u, uint32_t count)
{
    static uint8_t data[CHUNK];

    for (uint32_t n = 0; n < count; n++) {
        for (size_t i = 0; i < CHUNK; i++) {
            data[i] = pattern_at(chunk_next + i);
        }
        chunk_next += CHUNK;
        UNIT_EQUAL(trp_tcp_write_copy(ctx, u->connection, data, CHUNK, n + 1), TRP_OK);
    }
}
static void
write_much(trp_ctx *ctx, user *u)
{
    write_chunks(ctx, u, CHUNKS);
}

static void
write_little(trp_ctx *ctx, user *u)
{
    write_chunks(ctx, u, 1);
}

typedef struct ending {
    const char *name;
    bool by_peer;
    user_fn order;
    const char *here, *there, *there_half; /* told to the server, to the client */
} ending;
static const ending endings[] = {
    { "close", false, close_it, "s:closed", "c:peer", "c:confirmed" },
    { "confirmed close", false, close_confirmed, "s:confirmed", "c:peer", "c:confirmed" },
    { "abort", false, abort_it, "s:aborted", "c:errorECONNRESET", "c:errorECONNRESET" },
    { "the peer's close", true, close_it, "s:peer", "c:closed", "c:confirmed" },
    { "the peer's reset", true, abort_it, "s:errorECONNRESET", "c:aborted", "c:aborted" },
};

/* half: the client's direction has ended before. */
static void
one_ending(const ending *e, bool half, bool pending)
{
    trp_system *system = open_tls(NULL, NULL);
    bool by_order = e->order != abort_it;

    chunk_next = 0;
    client.quiet = true;
    server.how.max_bytes = 64u << 20;
    server.how.keep_open_on_peer_closed = half;
    join(system);
    if (half) {
        user_do(system, &client, close_confirmed);
        UNIT_WAIT(stage_has("s:peer-half"), 60000);
    }
    if (pending) {
        user_do(system, &client, suspend_it);
        for (int i = 0; i < MUCH; i++) { /* more than the kernel takes */
            user_do(system, &server, write_much);
        }
        UNIT_WAIT(stage_has("s:high"), 60000);
    }
    if (half && e->by_peer && by_order) { /* it has ended its half: now the other one */
        user_do(system, &server, close_it);
    }
    user_do(system, e->by_peer ? &client : &server, e->order);
    if (pending && !e->by_peer) {
        user_do(system, &client, resume_it);
    }
    if (half && e->by_peer && !by_order && !pending) {
        /* nobody reads or writes any more: the next write meets it, as without TLS */
        UNIT_WAIT((user_do(system, &server, write_little), stage_has("s:error")), 60000);
    } else if (half && e->by_peer && by_order) {
        UNIT_WAIT(stage_has("s:closed") || (pending && stage_has("s:error")), 60000);
        UNIT_WAIT(stage_has("c:confirmed") || stage_has("c:closed"), 60000);
    } else {
        UNIT_WAIT(stage_has(e->here) ||
                      (pending && e->by_peer && stage_has("s:error")), /* it took not all */
                  60000);
        UNIT_WAIT(stage_has(half ? e->there_half : e->there), 60000);
    }
    if (by_order && !e->by_peer && pending) {
        UNIT_EQUAL(client.received, (uint64_t)CHUNK * CHUNKS * MUCH);
    }
    UNIT_FALSE(client.wrong);
    shut(system);
}

/* TCP-08 to -13, PIPE-14 */
static void
every_end_of_both_halves_is_told_as_without_tls(void)
{
    ends_files_start(&files);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        for (int way = 0; way < 4; way++) {
            one_ending(&endings[i], (way & 1) != 0, (way & 2) != 0);
        }
    }
    pki_end(&files.pki);
}

/* PIPE-14: the connection ends, the session does not */
static void
a_truncation_is_an_error(void)
{
    wire_end peer;

    ends_files_start(&files);
    trp_system *system = open_tls(NULL, NULL);
    const trpi_tls_options options = ends_client(&files);
    wire_open(&peer, &options);
    UNIT_WAIT(stage_has("s:connected"), 60000);
    wire_say(&peer, "half", 4);
    UNIT_WAIT(stage_has("s:got(half)"), 60000);
    wire_close(&peer);
    UNIT_WAIT(stage_has("s:errorECONNRESET"), 60000);
    UNIT_TRUE(SAYS(&server, "bytes may be missing"));
    shut(system);
    pki_end(&files.pki);
}

/* ---- the last record ------------------------------------------------------------------------- */

static uint32_t little_bytes;
static void
bind_small(trp_ctx *ctx, user *u)
{
    trp_tcp_bind_options options = TRP_TCP_BIND_OPTIONS_INIT;
    trp_socket_options socket = TRP_SOCKET_OPTIONS_INIT;

    (void)u;
    socket.send_buffer_bytes = 4608;
    socket.receive_buffer_bytes = 4608;
    options.tls = server_tls;
    options.socket = &socket;
    UNIT_EQUAL(trp_tcp_bind(ctx, "127.0.0.1:0", &options), TRP_OK);
}
/* The last command is refused: when it was answered, the kernel has what it takes. */
static void
write_and_close(trp_ctx *ctx, user *u)
{
    static uint8_t data[1u << 20];

    for (size_t i = 0; i < little_bytes; i++) {
        data[i] = pattern_at(i);
    }
    UNIT_EQUAL(trp_tcp_write_copy(ctx, u->connection, data, little_bytes, 0), TRP_OK);
    trp_tell(ctx, u->connection, &trp_tcp_close_type, NULL, 0);
    UNIT_EQUAL(trp_tcp_register(ctx, u->connection, trp_self(ctx), NULL), TRP_OK);
}

/* tcp-tls-E3: with one of these lengths the kernel takes all bytes, and has no room for the last
 * record. */
static void
the_end_of_the_session_is_sent_when_the_kernel_is_full(void)
{
    wire_end peer;
    unsigned waited = 0;
    bool right;

    ends_files_start(&files);
    trp_system *system = open_tls(NULL, NULL);
    const trpi_tls_options options = ends_client(&files);
    server.quiet = true;
    wire_receive_bytes = 2304;
    user_do(system, &server, bind_small);
    STAGE_EXPECT("s:bound");
    for (little_bytes = 1024; waited < 8; little_bytes += 24) {
        stage_clear(&stage_events);
        uint32_t failures = server.failures;
        wire_open(&peer, &options);
        UNIT_WAIT(stage_has("s:connected"), 60000);
        user_do(system, &server, write_and_close);
        UNIT_WAIT(stage_has("s:closed") || server.failures > failures, 60000);
        waited += stage_has("s:closed") ? 0 : 1; /* its bytes were too many */
        UNIT_EQUAL(wire_drain(&peer, &right), little_bytes);
        UNIT_TRUE(right);
        UNIT_EQUAL(peer.end.result, TRPI_TLS_ENDED);
        UNIT_WAIT(stage_has("s:closed"), 60000);
        wire_close(&peer);
    }
    wire_receive_bytes = 0;
    shut(system);
    pki_end(&files.pki);
}

/* tcp-tls-E3: the alert comes, although the peer had sent more that nobody read */
static void
a_peer_that_breaks_the_rules_is_told_so_before_the_end(void)
{
    static uint8_t junk[400000];
    wire_end peer;
    bool right;

    ends_files_start(&files);
    trp_system *system = open_tls(NULL, NULL);
    const trpi_tls_options options = ends_client(&files);
    memcpy(junk, "\x17\x03\x03\x00\x20", 5); /* a record that cannot be decrypted, and more */
    for (int i = 0; i < 5; i++) {
        wire_open(&peer, &options);
        UNIT_WAIT(stage_has("s:connected"), 60000);
        fcntl(peer.number, F_SETFL, O_NONBLOCK);
        (void)send(peer.number, junk, sizeof junk, MSG_NOSIGNAL);
        fcntl(peer.number, F_SETFL, 0);
        UNIT_WAIT(stage_has("s:errorEPROTO"), 60000);
        (void)send(peer.number, junk, 4096, MSG_NOSIGNAL);
        stage_clear(&stage_events);
        UNIT_EQUAL(wire_drain(&peer, &right), 0);
        UNIT_EQUAL(peer.end.result, TRPI_TLS_FAILED);
        UNIT_EQUAL(end_refusal(&peer.end), TRPI_REFUSED_BY_PEER); /* an alert, and no cut */
        wire_close(&peer);
    }
    shut(system);
    pki_end(&files.pki);
}

/* ---- handshakes that fail -------------------------------------------------------------------- */

/* Both are told why, and no connection comes to be. NULL: the usual options. */
static void
refused_pair(trp_tls_options *s, trp_tls_options *c, const char *name, const char *told_client,
             const char *why_client, const char *told_server, const char *why_server)
{
    trp_system *system = open_tls(s, c);

    dialled_name = name;
    user_do(system, &client, connect_tls);
    UNIT_WAIT(stage_has(told_client) && stage_has(told_server), 60000);
    UNIT_TRUE(SAYS(&client, why_client));
    UNIT_TRUE(SAYS(&server, why_server));
    UNIT_FALSE(stage_has("s:connected"));
    shut(system);
}

/* PIPE-13 */
static void
certificates_that_do_not_hold_are_refused_with_the_reason(void)
{
    trp_tls_options s, c;
    static const char *const one[] = { "a" }, *const two[] = { "b" };

    ends_files_start(&files);
    pki_node(&files.pki, "ca", "soon", "echo.example", -1, 30);
    s = of_server();
    s.certificate = ends_path(&files, "stranger.pem");
    s.key = ends_path(&files, "stranger.key");
    refused_pair(&s, NULL, "echo.example", "c:failed(1,EKEYREJECTED,0,0)", "no authority here",
                 "s:refused(EACCES)", "refuses this side");
    refused_pair(NULL, NULL, "other.example", "c:failed(1,EKEYREJECTED,0,0)", "another name",
                 "s:refused(EACCES)", "refuses this side");
    s = of_server();
    s.protocols = one;
    s.protocols_count = 1;
    c = of_client();
    c.protocols = two;
    c.protocols_count = 1;
    refused_pair(&s, &c, "echo.example", "c:failed(1,EPROTO,0,0)", "no application protocol",
                 "s:refused(EPROTO)", "the client offers b; this server speaks a");
    s = of_server();
    s.version_min = TRP_TLS_1_2;
    s.authorities = ends_path(&files, "ca.pem");
    c = of_client();
    trp_system *system = open_tls(&s, &c); /* TLS 1.3: a client learns of it later */
    user_do(system, &client, connect_tls);
    UNIT_WAIT(stage_has("s:refused(ENOKEY)") && stage_has("c:errorEACCES"), 60000);
    UNIT_TRUE(SAYS(&server, "shows no certificate"));
    shut(system);
    pki_end(&files.pki);
}

/* One's own is seen when it is read, the peer's in the handshake. */
static void
an_expired_certificate_is_refused(void)
{
    char why[TRP_TLS_WHY_BYTES];
    trp_tls *tls = NULL;
    trp_tls_options s;
    wire_end peer;

    ends_files_start(&files);
    pki_node(&files.pki, "ca", "echo", "echo.example", -20, 30);
    pki_node(&files.pki, "ca", "old", "echo.example", -10, -1);
    s = of_server();
    s.authorities = ends_path(&files, "ca.pem");
    trp_system *system = open_tls(&s, NULL);
    trpi_tls_options options = ends_client(&files);
    options.cert = ends_path(&files, "old.pem");
    options.key = ends_path(&files, "old.key");
    files.pki.now_ms -= 5 * PKI_DAY; /* the clock of the peer: to it all is well */
    wire_open(&peer, &options);
    UNIT_WAIT(stage_has("s:refused(EKEYEXPIRED)"), 60000);
    UNIT_TRUE(SAYS(&server, "has expired"));
    wire_close(&peer);
    s.certificate = ends_path(&files, "old.pem");
    s.key = ends_path(&files, "old.key");
    UNIT_EQUAL(trp_tls_new(system, &s, &tls, why, sizeof why), TRP_ECONFIG);
    UNIT_TRUE(says(why, "old.pem: reason=expired"));
    shut(system);
    pki_end(&files.pki);
}

static void
connect_plain(trp_ctx *ctx, user *u)
{
    char to[64];

    (void)u;
    snprintf(to, sizeof to, "127.0.0.1:%u", server.port);
    UNIT_EQUAL(trp_tcp_connect(ctx, to, NULL), TRP_OK);
}
static void
bind_plain(trp_ctx *ctx, user *u)
{
    (void)u;
    UNIT_EQUAL(trp_tcp_bind(ctx, "127.0.0.1:0", NULL), TRP_OK);
}

static void
plain_bytes_on_a_tls_port_and_the_reverse_are_refused(void)
{
    char data[64];

    ends_files_start(&files);
    trp_system *system = open_tls(NULL, NULL);
    int peer = plain_connect(server.port);
    UNIT_EQUAL(send(peer, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 18);
    UNIT_WAIT(stage_has("s:refused(EPROTO)"), 60000);
    UNIT_TRUE(SAYS(&server, "does not speak TLS"));
    UNIT_TRUE(recv(peer, data, sizeof data, 0) == 7); /* an alert */
    UNIT_EQUAL(recv(peer, data, sizeof data, 0), 0);
    close(peer);
    stage_clear(&stage_events);
    user_do(system, &server, bind_plain);
    UNIT_WAIT(stage_has("s:bound"), 60000);
    server.echoes = true; /* its own hello comes back */
    user_do(system, &client, connect_tls);
    UNIT_WAIT(stage_has("c:failed(1,EPROTO,0,0)"), 60000);
    shut(system);
    pki_end(&files.pki);
}

static void
half_a_handshake_has_its_time(void)
{
    char data[64];

    ends_files_start(&files);
    handshake_ms = 50;
    trp_system *system = open_tls(NULL, NULL);
    int peer = plain_connect(server.port);
    UNIT_EQUAL(send(peer, "\x16\x03\x01\x02", 4, MSG_NOSIGNAL), 4);
    UNIT_WAIT(stage_has("s:refused(ETIMEDOUT)"), 60000);
    UNIT_TRUE(SAYS(&server, "handshake_timeout_ms"));
    UNIT_TRUE(recv(peer, data, sizeof data, 0) <= 0);
    close(peer);
    stage_clear(&stage_events);
    user_do(system, &server, bind_plain); /* a server that says nothing */
    UNIT_WAIT(stage_has("s:bound"), 60000);
    user_do(system, &client, connect_tls);
    UNIT_WAIT(stage_has("c:failed(1,ETIMEDOUT,0,0)"), 60000);
    stage_clear(&stage_events);
    user_do(system, &client, connect_plain); /* without TLS it goes on as before */
    UNIT_WAIT(stage_has("c:connected"), 60000);
    UNIT_EQUAL(client.tls.version, 0);
    shut(system);
    pki_end(&files.pki);
}

static void
connect_wrongly(trp_ctx *ctx, user *u)
{
    trp_tcp_connect_options c = TRP_TCP_CONNECT_OPTIONS_INIT;
    trp_tcp_bind_options b = TRP_TCP_BIND_OPTIONS_INIT;

    (void)u;
    c.tls = server_tls;
    UNIT_EQUAL(trp_tcp_connect(ctx, "127.0.0.1:1", &c), TRP_EINVAL);
    c.tls = client_tls;
    UNIT_EQUAL(trp_tcp_connect(ctx, "unix:/tmp/none", &c), TRP_EINVAL); /* which name? */
    b.tls = client_tls;
    UNIT_EQUAL(trp_tcp_bind(ctx, "127.0.0.1:0", &b), TRP_EINVAL);
    stage_note("tried");
}

static void
options_that_cannot_work_are_refused_with_what_to_do(void)
{
    static const char *const long_name[] = {
        "0123456789012345678901234567890123456789012345678901234567890123"
    };
    static const char *const longest[] = {
        "012345678901234567890123456789012345678901234567890123456789012"
    };
    char why[TRP_TLS_WHY_BYTES];
    trp_tls *tls = NULL;
    trp_tls_options o;

    ends_files_start(&files);
    trp_system *system = open_tls(NULL, NULL);
    user_do(system, &client, connect_wrongly);
    UNIT_WAIT(stage_has("tried"), 60000);
    o = of_server();
    o.key = NULL;
    UNIT_EQUAL(trp_tls_new(system, &o, &tls, why, sizeof why), TRP_ECONFIG);
    UNIT_TRUE(says(why, "a server needs a certificate and its key"));
    o = of_server();
    o.key = ends_path(&files, "other.key");
    UNIT_EQUAL(trp_tls_new(system, &o, &tls, why, sizeof why), TRP_ECONFIG);
    UNIT_TRUE(says(why, "other.key"));
    o = of_client();
    o.authorities = "/no/such/file.pem";
    UNIT_EQUAL(trp_tls_new(system, &o, &tls, why, sizeof why), TRP_ECONFIG);
    UNIT_TRUE(says(why, "/no/such/file.pem: No such file"));
    o = of_server();
    o.peer = TRP_TLS_PEER_REQUIRED;
    UNIT_EQUAL(trp_tls_new(system, &o, &tls, why, sizeof why), TRP_EINVAL);
    UNIT_TRUE(says(why, "needs authorities"));
    o = of_client();
    o.peer = TRP_TLS_PEER_UNCHECKED + 1;
    UNIT_EQUAL(trp_tls_new(system, &o, &tls, NULL, 0), TRP_EINVAL);
    o = of_client();
    o.protocols = long_name;
    o.protocols_count = 1;
    UNIT_EQUAL(trp_tls_new(system, &o, &tls, why, sizeof why), TRP_EINVAL);
    UNIT_TRUE(says(why, "1 to 63 bytes"));
    o.protocols = longest;
    trp_tls_free(tls_of(system, &o));
    shut(system);
    pki_end(&files.pki);
}

/* ---- writing and reading --------------------------------------------------------------------- */

static char file_path[64];
static void
write_batch(trp_ctx *ctx, user *u)
{
    trp_tcp_batch *batch;

    UNIT_REQUIRE(trp_tcp_batch_new(&batch) == TRP_OK);
    UNIT_EQUAL(trp_tcp_batch_add(batch, TRP_BYTES_EMPTY, 1), TRP_OK);
    UNIT_EQUAL(trp_tcp_batch_add_file(batch, file_path, 0, 300001, 2), TRP_OK);
    UNIT_EQUAL(trp_tcp_batch_add_file(batch, file_path, 300001, 20, 0), TRP_OK);
    UNIT_EQUAL(trp_tcp_batch_add(batch, TRP_BYTES_EMPTY, 3), TRP_OK);
    trp_tcp_write_batch(ctx, u->connection, batch);
}
static void
write_short_file(trp_ctx *ctx, user *u)
{
    UNIT_EQUAL(trp_tcp_write_file(ctx, u->connection, file_path, 300021, 10, 5), TRP_OK);
}

/* TCP-15, TCP-16, PIPE-14: read and encrypted */
static void
pieces_of_files_go_encrypted_with_their_acks(void)
{
    FILE *file;

    ends_files_start(&files);
    trp_system *system = open_tls(NULL, NULL);
    snprintf(file_path, sizeof file_path, "%s/data", files.pki.dir);
    file = fopen(file_path, "w");
    UNIT_REQUIRE(file != NULL);
    for (uint64_t i = 0; i < 300021; i++) {
        putc(pattern_at(i), file);
    }
    fclose(file);
    client.quiet = true;
    join(system);
    user_do(system, &server, write_batch);
    UNIT_WAIT(stage_has("s:ack(1) s:ack(2) s:ack(3)"), 60000);
    UNIT_WAIT(client.received == 300021, 60000);
    stage_clear(&stage_events);
    user_do(system, &server, write_short_file); /* the peer must not take it for whole */
    UNIT_WAIT(stage_has("s:failed(4,EIO,5,2)") && stage_has("s:errorEIO") &&
                  stage_has("c:errorECONNRESET"),
              60000);
    UNIT_FALSE(client.wrong);
    shut(system);
    pki_end(&files.pki);
}

static void
resume_writing(trp_ctx *ctx, user *u)
{
    trp_tell(ctx, u->connection, &trp_tcp_resume_writing_type, NULL, 0);
}

/* TCP-17, TCP-20, TCP-25: the raw mode, against a peer that reads late; what failed left no hole */
static void
refused_writes_and_resuming_work_as_without_tls(void)
{
    ends_files_start(&files);
    trp_system *system = open_tls(NULL, NULL);
    server.how.writer = TRP_TCP_SUSPENDING;
    server.quiet = true;
    chunk_next = 0;
    join(system);
    user_do(system, &client, suspend_it);
    while (server.failures == 0) { /* until the kernel takes no more */
        uint32_t before = server.acks + server.failures;
        user_do(system, &server, write_much);
        UNIT_WAIT(server.acks + server.failures >= before + CHUNKS || server.failures > 0, 60000);
    }
    user_do(system, &server, resume_writing);
    client.quiet = true;
    user_do(system, &client, resume_it);
    UNIT_WAIT(stage_has("s:resumed"), 60000);
    UNIT_WAIT(client.received == (uint64_t)server.acks * CHUNK, 60000);
    uint32_t failures = server.failures;
    user_do(system, &server, write_hello);
    UNIT_WAIT(client.received == (uint64_t)(server.acks - 1) * CHUNK + 5, 60000);
    UNIT_EQUAL(server.failures, failures); /* tcp-conn-C4 */
    shut(system);
    pki_end(&files.pki);
}

/* TCP-22 */
static void
pulled_bytes_come_once_for_each_demand(void)
{
    wire_end peer;

    ends_files_start(&files);
    trp_system *system = open_tls(NULL, NULL);
    const trpi_tls_options options = ends_client(&files);
    server.how.pull = 1;
    wire_open(&peer, &options);
    UNIT_WAIT(stage_has("s:connected"), 60000);
    for (size_t i = 0; i < 3; i++) { /* three records, one write */
        end_write(&peer.end, &"abc"[i], 1);
    }
    wire_send_all(peer.number, &peer.end.wire);
    user_do(system, &server, write_hello); /* it was served meanwhile */
    UNIT_WAIT(stage_has("s:ack(7)"), 60000);
    UNIT_FALSE(stage_has("got"));
    user_do(system, &server, resume_it);
    UNIT_WAIT(stage_has("got("), 60000);
    while (server.received < 3) {
        uint64_t before = server.received;
        user_do(system, &server, resume_it);
        UNIT_WAIT(server.received > before, 60000);
    }
    wire_close(&peer);
    shut(system);
    pki_end(&files.pki);
}

/* Both ends write more than all buffers take, and read what comes. */
static void
both_directions_move_when_both_are_full(void)
{
    ends_files_start(&files);
    trp_system *system = open_tls(NULL, NULL);
    server.quiet = true;
    client.quiet = true;
    server.how.unhandled_bytes_max = CHUNK;
    client.how.unhandled_bytes_max = CHUNK;
    server.how.max_bytes = 64u << 20;
    client.how.max_bytes = 64u << 20;
    join(system);
    chunk_next = 0;
    user_do(system, &server, suspend_it);
    user_do(system, &client, suspend_it);
    for (int i = 0; i < MUCH; i++) { /* 2 MiB */
        user_do(system, &server, write_much);
    }
    UNIT_WAIT(stage_has("s:high") && chunk_next == (uint64_t)MUCH * CHUNKS * CHUNK, 60000);
    chunk_next = 0;
    for (int i = 0; i < MUCH; i++) {
        user_do(system, &client, write_much);
    }
    UNIT_WAIT(stage_has("c:high"), 60000);
    user_do(system, &server, resume_it);
    user_do(system, &client, resume_it);
    UNIT_WAIT(server.received == (uint64_t)MUCH * CHUNKS * CHUNK &&
                  client.received == server.received,
              60000);
    UNIT_FALSE(server.wrong || client.wrong);
    shut(system);
    pki_end(&files.pki);
}

/* ---- files that change ----------------------------------------------------------------------- */

static void
new_connections_use_the_new_files_and_bad_ones_are_not_taken(void)
{
    char why[TRP_TLS_WHY_BYTES], first[TRP_TLS_NAME_BYTES];
    trp_tls_options watched;
    trp_tls *tls = NULL;
    int changed = 1;

    ends_files_start(&files);
    trp_system *system = open_tls(NULL, NULL);
    join(system);
    memcpy(first, client.tls.sha256, sizeof first);
    UNIT_EQUAL(trp_tls_check(server_tls, &changed, why, sizeof why), TRP_OK);
    UNIT_EQUAL(changed, 0);
    pki_node(&files.pki, "ca", "echo", "echo.example", -1, 40);
    UNIT_EQUAL(trp_tls_check(server_tls, &changed, why, sizeof why), TRP_OK);
    UNIT_EQUAL(changed, 1);
    join(system);
    UNIT_TRUE(strcmp(client.tls.sha256, first) != 0);
    pki_write(&files.pki, "echo.pem", "nonsense");
    UNIT_EQUAL(trp_tls_check(server_tls, &changed, why, sizeof why), TRP_ECONFIG);
    UNIT_TRUE(says(why, "echo.pem"));
    join(system);
    pki_node(&files.pki, "ca", "echo", "echo.example", -1, 30);
    watched = of_server();
    watched.reload_ms = 10;
    UNIT_REQUIRE(trp_tls_new(system, &watched, &tls, why, sizeof why) == TRP_OK);
    pki_write(&files.pki, "echo.pem", "nonsense");
    STAGE_LOGGED("the new files of TLS are not taken, the old ones stay in use");
    pki_node(&files.pki, "ca", "echo", "echo.example", -1, 30);
    STAGE_LOGGED("the files of TLS were read again");
    trp_tls_free(tls); /* its watcher ends */
    shut(system);
    pki_end(&files.pki);
}

/* ---- random lives ---------------------------------------------------------------------------- */

/* Random writes of both ends, stopped and resumed reading, and an end: what came is a prefix of
 * what was sent, and all of it when the end was in order. */
static void
random_lives_lose_nothing_that_was_ended_in_order(void)
{
    unit_draw draw = unit_draw_begin("tests/unit/io/io_tests", "tcp_tls_test");

    ends_files_start(&files);
    trp_system *system = open_tls(NULL, NULL);
    for (int life = 0; life < 8; life++) {
        uint32_t steps = 1 + unit_drawn(&draw, 12), how = unit_drawn(&draw, 3);

        server.quiet = client.quiet = true;
        server.received = client.received = 0;
        server.acks = client.acks = 0;
        chunk_next = 0;
        join(system);
        for (uint32_t i = 0; i < steps; i++) {
            switch (unit_drawn(&draw, 3)) {
            case 0:
                user_do(system, &client, suspend_it);
                break;
            case 1:
                user_do(system, &client, resume_it);
                break;
            default:
                user_do(system, &server, write_much);
                break;
            }
        }
        user_do(system, &client, resume_it);
        user_do(system, &server, how == 0 ? close_it : how == 1 ? close_confirmed : abort_it);
        UNIT_WAIT(stage_has("c:peer") || stage_has("c:error"), 60000);
        UNIT_WAIT(stage_has("s:closed") || stage_has("s:confirmed") || stage_has("s:error") ||
                      stage_has("s:aborted"),
                  60000);
        UNIT_FALSE(client.wrong);
        if (how != 2 && !stage_has("s:error")) {
            UNIT_TRUE(stage_has("c:peer"));
            UNIT_EQUAL(client.received, chunk_next);
        }
        stage_clear(&stage_events);
    }
    shut(system);
    pki_end(&files.pki);
}

UNIT_BEGIN("tcp_tls")
UNIT(a_connection_says_who_the_peer_is_and_what_both_speak)
UNIT(every_end_of_both_halves_is_told_as_without_tls)
UNIT(a_truncation_is_an_error)
UNIT(the_end_of_the_session_is_sent_when_the_kernel_is_full)
UNIT(a_peer_that_breaks_the_rules_is_told_so_before_the_end)
UNIT(certificates_that_do_not_hold_are_refused_with_the_reason)
UNIT(an_expired_certificate_is_refused)
UNIT(plain_bytes_on_a_tls_port_and_the_reverse_are_refused)
UNIT(half_a_handshake_has_its_time)
UNIT(options_that_cannot_work_are_refused_with_what_to_do)
UNIT(pieces_of_files_go_encrypted_with_their_acks)
UNIT(refused_writes_and_resuming_work_as_without_tls)
UNIT(pulled_bytes_come_once_for_each_demand)
UNIT(both_directions_move_when_both_are_full)
UNIT(new_connections_use_the_new_files_and_bad_ones_are_not_taken)
UNIT(random_lives_lose_nothing_that_was_ended_in_order)
UNIT_END
