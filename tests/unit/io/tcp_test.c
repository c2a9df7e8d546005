/* tcp_test.c - TCP connections as actors, over loopback, with good and bad peers. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <netinet/tcp.h>

#include "tests/unit/io/tcp_pair.h"

static trp_system *
open_server(void)
{
    trp_system *system = stage_open();

    users_start(system);
    server_bind(system);
    return system;
}

static trp_system *
open_pair(void)
{
    trp_system *system = open_server();

    user_do(system, &client, connect_there);
    UNIT_WAIT(stage_has("s:connected") && stage_has("c:connected"), 60000);
    stage_clear(&stage_events);
    return system;
}

static void
write_hello(trp_ctx *ctx, user *u)
{
    UNIT_EQUAL(trp_tcp_write_copy(ctx, u->connection, "hello", 5, 7), TRP_OK);
}
static void
stop_it(trp_ctx *ctx, user *u)
{
    (void)u;
    trp_stop(ctx, trp_self(ctx));
}
static void
watch_it(trp_ctx *ctx, user *u)
{
    UNIT_EQUAL(trp_watch(ctx, u->connection), TRP_OK);
}

/* IO-01, IO-02, IO-03, IO-16, TCP-01, TCP-05, TCP-07, TCP-08, TCP-11, TCP-14 */
static void
a_client_and_a_server_exchange_bytes_and_close(void)
{
    trp_system *system = open_server();

    server.echoes = true;
    user_do(system, &client, connect_there);
    UNIT_WAIT(stage_has("s:connected") && stage_has("c:connected"), 60000);
    stage_clear(&stage_events);
    user_do(system, &client, write_hello);
    UNIT_WAIT(stage_has("c:ack(7)") && stage_has("s:got(hello)") && stage_has("c:got(hello)"),
              60000);
    stage_clear(&stage_events);
    user_do(system, &client, watch_it);
    user_do(system, &client, close_it);
    UNIT_WAIT(stage_has("c:closed") && stage_has("s:peer") && stage_has("c:terminated"), 60000);
    shut(system);
}

/* TCP-09: bytes come until the peer has closed, too */
static void
a_confirmed_close_waits_for_the_peer(void)
{
    trp_system *system = open_server();

    int peer = plain_connect(server.port);
    UNIT_WAIT(stage_has("s:connected"), 60000);
    user_do(system, &server, write_hello);
    user_do(system, &server, close_confirmed);
    char data[8];
    UNIT_EQUAL(recv(peer, data, 5, MSG_WAITALL), 5);
    UNIT_EQUAL(recv(peer, data, 5, 0), 0); /* its direction has ended */
    UNIT_EQUAL(send(peer, "late", 4, MSG_NOSIGNAL), 4);
    UNIT_WAIT(stage_has("s:got(late)"), 60000);
    UNIT_FALSE(stage_has("s:confirmed"));
    close(peer);
    UNIT_WAIT(stage_has("s:confirmed"), 60000);
    shut(system);
}

/* TCP-10 */
static void
an_abort_resets_the_peer(void)
{
    trp_system *system = open_server();
    int peer = plain_connect(server.port);
    char data[8];

    UNIT_WAIT(stage_has("s:connected"), 60000);
    user_do(system, &server, abort_it);
    UNIT_WAIT(stage_has("s:aborted"), 60000);
    UNIT_TRUE(recv(peer, data, sizeof data, 0) < 0 && errno == ECONNRESET);
    close(peer);
    shut(system);
}

/* TCP-11: half open */
static void
a_connection_that_is_kept_open_writes_after_the_peers_end(void)
{
    trp_system *system = open_server();
    char data[8];

    server.how.keep_open_on_peer_closed = 1;
    int peer = plain_connect(server.port);
    UNIT_EQUAL(send(peer, "bye", 3, MSG_NOSIGNAL), 3);
    shutdown(peer, SHUT_WR);
    UNIT_WAIT(stage_has("s:got(bye) s:peer-half"), 60000);
    user_do(system, &server, write_hello);
    user_do(system, &server, close_it);
    UNIT_EQUAL(recv(peer, data, 5, MSG_WAITALL), 5);
    UNIT_EQUAL(recv(peer, data, 5, 0), 0);
    UNIT_WAIT(stage_has("s:closed"), 60000);
    close(peer);
    shut(system);
}

/* TCP-12: bytes that came before the reset are read first */
static void
a_reset_in_the_middle_is_an_error_with_its_errno(void)
{
    trp_system *system = open_server();
    struct linger now = { .l_onoff = 1 };
    int peer = plain_connect(server.port);

    UNIT_WAIT(stage_has("s:connected"), 60000);
    UNIT_EQUAL(send(peer, "half", 4, MSG_NOSIGNAL), 4);
    UNIT_WAIT(stage_has("s:got(half)"), 60000);
    setsockopt(peer, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(peer);
    UNIT_WAIT(stage_has("s:errorECONNRESET"), 60000);
    shut(system);
}

/* TCP-03, TRP-08 */
static void
bytes_wait_for_their_handler(void)
{
    trp_system *system = open_server();
    char data[8];

    server.registers = false;
    int peer = plain_connect(server.port);
    UNIT_EQUAL(send(peer, "early", 5, MSG_NOSIGNAL), 5);
    shutdown(peer, SHUT_WR);
    UNIT_WAIT(stage_has("s:connected"), 60000);
    UNIT_FALSE(stage_has("got"));
    server.registers = true;
    user_do(system, &server, write_hello); /* not registered: fails */
    UNIT_WAIT(stage_has("s:failed(4,ENOTCONN,7,1)"), 60000);
    stage_clear(&stage_events);
    trp_system_tell_as(system, server.self, server.connection, &trp_tcp_connected_type,
                       &(trp_tcp_connected){ .number = 0 }, sizeof(trp_tcp_connected));
    UNIT_WAIT(stage_has("s:got(early)") && stage_has("s:peer"), 60000);
    UNIT_EQUAL(recv(peer, data, sizeof data, 0), 0);
    close(peer);
    shut(system);
}

static void
bind_impatient(trp_ctx *ctx, user *u)
{
    trp_tcp_bind_options options = TRP_TCP_BIND_OPTIONS_INIT;

    (void)u;
    options.register_timeout_ms = 1;
    UNIT_EQUAL(trp_tcp_bind(ctx, "127.0.0.1:0", &options), TRP_OK);
}

/* TCP-03, TRP-08 */
static void
a_connection_without_a_handler_is_reset_when_its_time_is_over(void)
{
    trp_system *system = open_server();
    char data[8];

    server.registers = false;
    user_do(system, &server, bind_impatient);
    UNIT_WAIT(stage_has("s:bound"), 60000);
    int peer = plain_connect(server.port);
    UNIT_TRUE(recv(peer, data, sizeof data, 0) < 0 && errno == ECONNRESET);
    STAGE_LOGGED("no handler has registered in time");
    close(peer);
    shut(system);
}

/* TCP-01, TCP-05: failures say which command, and why */
static void
connect_nowhere(trp_ctx *ctx, user *u)
{
    trp_tcp_connect_options options = TRP_TCP_CONNECT_OPTIONS_INIT;
    char to[64];

    (void)u;
    options.number = 42;
    snprintf(to, sizeof to, "127.0.0.1:%u", server.port);
    UNIT_EQUAL(trp_tcp_connect(ctx, to, &options), TRP_OK);
    UNIT_EQUAL(trp_tcp_connect(ctx, "127.0.0.1:0", NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_tcp_connect(ctx, "127.0.0.1", NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_tcp_connect(ctx, "*:80", NULL), TRP_EINVAL);
}
static void
bind_again(trp_ctx *ctx, user *u)
{
    trp_tcp_bind_options options = TRP_TCP_BIND_OPTIONS_INIT;
    char at[64];

    (void)u;
    options.number = 43;
    snprintf(at, sizeof at, "127.0.0.1:%u", server.port);
    UNIT_EQUAL(trp_tcp_bind(ctx, at, &options), TRP_OK);
}
static void
unbind_it(trp_ctx *ctx, user *u)
{
    trp_tell(ctx, u->listener, &trp_tcp_unbind_type, NULL, 0);
}

/* IO-05, TCP-01, TCP-05 */
static void
a_taken_port_and_a_refused_connection_fail_with_their_errno(void)
{
    trp_system *system = open_server();

    user_do(system, &server, bind_again);
    STAGE_EXPECT("s:failed(2,EADDRINUSE,0,43)");
    stage_clear(&stage_events);
    user_do(system, &server, unbind_it);
    STAGE_EXPECT("s:unbound");
    stage_clear(&stage_events);
    user_do(system, &client, connect_nowhere);
    STAGE_EXPECT("c:failed(1,ECONNREFUSED,0,42)");
    stage_clear(&stage_events);
    user_do(system, &server, bind_again); /* the port is free */
    STAGE_EXPECT("s:bound");
    shut(system);
}

static void
connect_by_name(trp_ctx *ctx, user *u)
{
    char to[64];

    (void)u;
    snprintf(to, sizeof to, "localhost:%u", server.port);
    UNIT_EQUAL(trp_tcp_connect(ctx, to, NULL), TRP_OK);
}
static void
connect_unknown(trp_ctx *ctx, user *u)
{
    (void)u;
    UNIT_EQUAL(trp_tcp_connect(ctx, "no such name:80", NULL), TRP_OK);
}

/* TCP-01 */
static void
names_are_resolved_off_the_workers(void)
{
    trp_system *system = open_server();

    user_do(system, &client, connect_by_name);
    UNIT_WAIT(stage_has("s:connected") && stage_has("c:connected"), 60000);
    stage_clear(&stage_events);
    user_do(system, &client, connect_unknown);
    STAGE_EXPECT("c:failed(1,EADDRNOTAVAIL,0,0)");
    shut(system);
}

static char local_path[64];
static void
bind_local(trp_ctx *ctx, user *u)
{
    char at[128];

    (void)u;
    snprintf(at, sizeof at, "unix:%s", local_path);
    UNIT_EQUAL(trp_tcp_bind(ctx, at, NULL), TRP_OK);
}
static void
connect_local(trp_ctx *ctx, user *u)
{
    char at[128];

    (void)u;
    snprintf(at, sizeof at, "unix:%s", local_path);
    UNIT_EQUAL(trp_tcp_connect(ctx, at, NULL), TRP_OK);
}

/* TCP-01 */
static void
unix_domain_streams_work_like_tcp(void)
{
    trp_system *system = open_server();

    snprintf(local_path, sizeof local_path, "/tmp/troupe-io-%d.sock", (int)getpid());
    unlink(local_path);
    server.echoes = true;
    user_do(system, &server, bind_local);
    STAGE_EXPECT("s:bound");
    user_do(system, &client, connect_local);
    UNIT_WAIT(stage_has("s:connected") && stage_has("c:connected"), 60000);
    user_do(system, &client, write_hello);
    UNIT_WAIT(stage_has("c:got(hello)"), 60000);
    user_do(system, &server, unbind_it);
    UNIT_WAIT(stage_has("s:unbound"), 60000);
    UNIT_TRUE(access(local_path, F_OK) != 0); /* its file is removed */
    shut(system);
}

/* ---- who ends takes what along --------------------------------------------------------------- */

/* IO-03, TCP-04, TCP-06, TRP-09 */
static void
a_listener_ends_with_its_handler_and_its_connections_close_with_theirs(void)
{
    trp_system *system = open_server();

    user_do(system, &client, connect_there);
    UNIT_WAIT(stage_has("c:connected") && stage_has("s:connected"), 60000);
    user_do(system, &client, watch_it);
    uint32_t port = server.port;
    user_do(system, &server, stop_it);     /* handler of the listener and of its own end */
    UNIT_WAIT(stage_has("c:peer"), 60000); /* handler death closes (TCP-04) */
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bool refused = false;
    UNIT_WAIT(({
                  int number = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
                  refused = connect(number, (struct sockaddr *)&to, sizeof to) != 0;
                  close(number);
                  refused;
              }),
              60000);
    shut(system);
}

/* TCP-06, TRP-09: a listener ends, its connection goes on */
static void
bind_for_client(trp_ctx *ctx, user *u)
{
    trp_tcp_bind_options options = TRP_TCP_BIND_OPTIONS_INIT;

    (void)u;
    options.handler = client.self; /* is told of connections; the binder is told the port */
    UNIT_EQUAL(trp_tcp_bind(ctx, "127.0.0.1:0", &options), TRP_OK);
}

/* TCP-06, TRP-09 */
static void
a_connection_outlives_its_listener(void)
{
    trp_system *system = open_server();
    char data[8];

    client.echoes = true;
    user_do(system, &server, bind_for_client);
    UNIT_WAIT(stage_has("s:bound"), 60000);
    int peer = plain_connect(server.port);
    UNIT_WAIT(stage_has("c:connected"), 60000);
    user_do(system, &server, unbind_it);
    UNIT_WAIT(stage_has("s:unbound"), 60000);
    UNIT_EQUAL(send(peer, "still", 5, MSG_NOSIGNAL), 5);
    UNIT_EQUAL(recv(peer, data, 5, MSG_WAITALL), 5);
    close(peer);
    shut(system);
}

/* An option of the connection that was accepted at this port. */
static int
option_of(uint32_t port, int level, int name)
{
    for (int number = 3; number < 256; number++) {
        struct sockaddr_in own, peer;
        socklen_t own_bytes = sizeof own, peer_bytes = sizeof peer;
        int value = -1;
        socklen_t bytes = sizeof value;

        if (getsockname(number, (struct sockaddr *)&own, &own_bytes) == 0 &&
            own.sin_port == htons((uint16_t)port) &&
            getpeername(number, (struct sockaddr *)&peer, &peer_bytes) == 0) {
            getsockopt(number, level, name, &value, &bytes);
            return value;
        }
    }
    return -1;
}

static void
bind_otherwise(trp_ctx *ctx, user *u)
{
    trp_tcp_bind_options options = TRP_TCP_BIND_OPTIONS_INIT;
    trp_socket_options socket = TRP_SOCKET_OPTIONS_INIT;

    (void)u;
    socket.delay = 1;
    socket.keep_alive = 1;
    options.socket = &socket;
    UNIT_EQUAL(trp_tcp_bind(ctx, "127.0.0.1:0", &options), TRP_OK);
    socket.traffic_class = 256;
    UNIT_EQUAL(trp_tcp_bind(ctx, "127.0.0.1:0", &options), TRP_EINVAL);
}

/* TCP-02 */
static void
small_writes_leave_at_once_unless_asked_otherwise(void)
{
    trp_system *system = open_server();
    int peer = plain_connect(server.port);

    UNIT_WAIT(stage_has("s:connected"), 60000);
    UNIT_TRUE(option_of(server.port, IPPROTO_TCP, TCP_NODELAY) > 0);
    UNIT_EQUAL(option_of(server.port, SOL_SOCKET, SO_KEEPALIVE), 0);
    stage_clear(&stage_events);
    user_do(system, &server, bind_otherwise);
    STAGE_EXPECT("s:bound");
    int other = plain_connect(server.port);
    UNIT_WAIT(stage_has("s:connected"), 60000);
    UNIT_EQUAL(option_of(server.port, IPPROTO_TCP, TCP_NODELAY), 0);
    UNIT_TRUE(option_of(server.port, SOL_SOCKET, SO_KEEPALIVE) > 0);
    close(peer);
    close(other);
    shut(system);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

#define CHUNK 65536u
static uint64_t chunk_next; /* of the pattern, for write_chunk */

static void
chunk_write(trp_ctx *ctx, const user *u, uint64_t ack)
{
    static uint8_t data[CHUNK];

    for (size_t i = 0; i < CHUNK; i++) {
        data[i] = pattern_at(chunk_next + i);
    }
    chunk_next += CHUNK;
    UNIT_EQUAL(trp_tcp_write_copy(ctx, u->connection, data, CHUNK, ack), TRP_OK);
}

static void
write_much(trp_ctx *ctx, user *u)
{
    for (uint64_t i = 0; i < 24; i++) {
        chunk_write(ctx, u, i + 1);
    }
}

/* PIPE-13: a peer that never reads */
static void
a_buffer_has_marks_and_a_bound_when_the_peer_never_reads(void)
{
    trp_system *system = open_server();

    chunk_next = 0;
    server.quiet = true;
    server.how.max_bytes = 4u << 20;
    int peer = plain_connect(server.port);
    UNIT_WAIT(stage_has("s:connected"), 60000);
    uint32_t rounds = 0; /* 1.5 MiB each; the kernel takes some MiB */
    for (; rounds < 100 && !stage_has("s:error"); rounds++) {
        user_do(system, &server, write_much);
        UNIT_WAIT(stage_has("s:high") || server.acks >= (rounds + 1) * 24, 60000);
    }
    UNIT_WAIT(stage_has("s:errorENOBUFS"), 60000);
    UNIT_TRUE(server.failures > 0);
    close(peer);
    shut(system);
}

/* IO-06, IO-15, TCP-08 */
static void
a_slow_peer_gets_all_bytes_in_order_from_the_buffer(void)
{
    trp_system *system = open_server();
    bool right;

    chunk_next = 0;
    server.quiet = true;
    server.how.max_bytes = 64u << 20;
    int peer = plain_connect(server.port);
    UNIT_WAIT(stage_has("s:connected"), 60000);
    for (int i = 0; i < 8; i++) { /* 12 MiB */
        user_do(system, &server, write_much);
    }
    UNIT_WAIT(stage_has("s:high"), 60000);
    user_do(system, &server, close_it);
    UNIT_EQUAL(plain_drain(peer, &right), 8 * 24 * (ssize_t)CHUNK);
    UNIT_TRUE(right);
    UNIT_WAIT(stage_has("s:low") || stage_has("s:closed"), 60000);
    UNIT_WAIT(stage_has("s:closed"), 60000);
    UNIT_EQUAL(server.acks, 8 * 24);
    close(peer);
    shut(system);
}

static void
write_twice_much(trp_ctx *ctx, user *u)
{
    write_much(ctx, u);
    trp_tell(ctx, u->connection, &trp_tcp_resume_writing_type, NULL, 0);
}

/* TCP-20, TCP-25 */
static void
a_refused_write_stops_all_until_writing_is_resumed(void)
{
    trp_system *system = open_server();

    chunk_next = 0;
    server.how.writer = TRP_TCP_SUSPENDING;
    server.quiet = true;
    int peer = plain_connect(server.port);
    UNIT_WAIT(stage_has("s:connected"), 60000);
    while (server.failures == 0) { /* until the kernel takes no more */
        uint32_t before = server.acks + server.failures;
        user_do(system, &server, write_much);
        UNIT_WAIT(server.failures > 0 || server.acks >= before + 24, 60000);
    }
    user_do(system, &server, write_twice_much);
    UNIT_FALSE(stage_has("resumed"));
    UNIT_WAIT(plain_swallow(peer) && stage_has("s:resumed"), 60000);
    uint32_t failures = server.failures, acks = server.acks;
    user_do(system, &server, write_hello);
    UNIT_WAIT(plain_swallow(peer) && server.acks > acks, 60000);
    UNIT_EQUAL(server.failures, failures); /* tcp-conn-C4 */
    close(peer);
    shut(system);
}

/* IO-15, TCP-22: Nothing is read for a handler that does not keep up. */
static void
a_handler_that_is_behind_stops_the_peer(void)
{
    trp_system *system = open_server();
    static uint8_t data[CHUNK];

    server.quiet = true;
    server.wait = true;
    server.how.unhandled_bytes_max = CHUNK;
    int peer = plain_connect(server.port);
    UNIT_WAIT(stage_has("s:connected"), 60000);
    uint64_t sent = 0;
    fcntl(peer, F_SETFL, O_NONBLOCK);
    uint64_t quiet_since = unit_now_ms();
    while (sent < (256u << 20) && unit_now_ms() < quiet_since + 300) {
        for (size_t i = 0; i < CHUNK; i++) {
            data[i] = pattern_at(sent + i);
        }
        ssize_t now = send(peer, data, CHUNK, MSG_NOSIGNAL);
        if (now > 0) {
            sent += (uint64_t)now;
            quiet_since = unit_now_ms();
        } else {
            unit_pause();
        }
    }
    UNIT_TRUE(sent < (256u << 20)); /* what the kernel's buffers take, and little more */
    user_gate = true;
    UNIT_WAIT(server.received == sent, 60000);
    UNIT_FALSE(server.wrong);
    close(peer);
    UNIT_WAIT(stage_has("s:peer"), 60000);
    shut(system);
}

/* TCP-22 */
static void
a_suspended_connection_reads_nothing_and_a_pulled_one_once_for_each_demand(void)
{
    trp_system *system = open_server();

    server.how.pull = 1;
    int peer = plain_connect(server.port);
    UNIT_WAIT(stage_has("s:connected"), 60000);
    UNIT_EQUAL(send(peer, "one", 3, MSG_NOSIGNAL), 3);
    user_do(system, &server, write_hello); /* it was served meanwhile */
    UNIT_WAIT(stage_has("s:ack(7)"), 60000);
    UNIT_FALSE(stage_has("got"));
    user_do(system, &server, resume_it);
    UNIT_WAIT(stage_has("s:got(one)"), 60000);
    stage_clear(&stage_events);
    UNIT_EQUAL(send(peer, "two", 3, MSG_NOSIGNAL), 3);
    user_do(system, &server, suspend_it);
    user_do(system, &server, write_hello);
    UNIT_WAIT(stage_has("s:ack(7)"), 60000);
    UNIT_FALSE(stage_has("got"));
    user_do(system, &server, resume_it);
    UNIT_WAIT(stage_has("s:got(two)"), 60000);
    close(peer);
    shut(system);
}

/* ---- files and batches ----------------------------------------------------------------------- */

static char file_path[64];
static void
write_batch(trp_ctx *ctx, user *u)
{
    trp_tcp_batch *batch;

    UNIT_REQUIRE(trp_tcp_batch_new(&batch) == TRP_OK);
    UNIT_EQUAL(trp_tcp_batch_add(batch, TRP_BYTES_EMPTY, 1), TRP_OK);
    UNIT_EQUAL(trp_tcp_batch_add_file(batch, file_path, 0, 1u << 20, 2), TRP_OK);
    UNIT_EQUAL(trp_tcp_batch_add_file(batch, file_path, 1u << 20, 1u << 20, 0), TRP_OK);
    UNIT_EQUAL(trp_tcp_batch_add(batch, TRP_BYTES_EMPTY, 3), TRP_OK);
    UNIT_EQUAL(trp_tcp_batch_add_file(batch, "", 0, 1, 0), TRP_EINVAL);
    trp_tcp_write_batch(ctx, u->connection, batch);
    UNIT_REQUIRE(trp_tcp_batch_new(&batch) == TRP_OK);
    trp_tcp_batch_free(batch);
}
static void
write_no_file(trp_ctx *ctx, user *u)
{
    UNIT_EQUAL(trp_tcp_write_file(ctx, u->connection, "/no/such/file", 0, 10, 4), TRP_OK);
}
static void
write_short_file(trp_ctx *ctx, user *u)
{
    UNIT_EQUAL(trp_tcp_write_file(ctx, u->connection, file_path, 2u << 20, 10, 5), TRP_OK);
}

/* TCP-15, TCP-16 */
static void
pieces_of_files_go_in_batches_with_acks_of_their_own(void)
{
    trp_system *system = open_server();
    FILE *file;
    uint8_t *got = malloc(2u << 20);

    UNIT_REQUIRE(got != NULL);
    snprintf(file_path, sizeof file_path, "/tmp/troupe-io-%d.data", (int)getpid());
    file = fopen(file_path, "w");
    UNIT_REQUIRE(file != NULL);
    for (uint64_t i = 0; i < (2u << 20); i++) {
        putc(pattern_at(i), file);
    }
    fclose(file);
    int peer = plain_connect(server.port);
    UNIT_WAIT(stage_has("s:connected"), 60000);
    stage_clear(&stage_events);
    user_do(system, &server, write_batch);
    UNIT_EQUAL(recv(peer, got, 2u << 20, MSG_WAITALL), 2 << 20);
    bool right = true;
    for (uint64_t i = 0; i < (2u << 20); i++) {
        right = right && got[i] == pattern_at(i);
    }
    UNIT_TRUE(right);
    STAGE_EXPECT("s:ack(1) s:ack(2) s:ack(3)");
    stage_clear(&stage_events);
    user_do(system, &server, write_no_file);
    STAGE_EXPECT("s:failed(4,ENOENT,4,2)");
    stage_clear(&stage_events);
    user_do(system, &server, write_short_file); /* the peer must not take it for whole */
    STAGE_EXPECT("s:failed(4,EIO,5,3) s:errorEIO");
    close(peer);
    unlink(file_path);
    free(got);
    shut(system);
}

/* ---- no descriptor left ---------------------------------------------------------------------- */

static void
accepting_pauses_without_descriptors_and_says_so_once(void)
{
    trp_system *system = open_server();
    struct rlimit limit, small;
    int peers[4];

    getrlimit(RLIMIT_NOFILE, &limit);
    int spare = plain_connect(server.port);
    UNIT_WAIT(stage_has("s:connected"), 60000);
    stage_clear(&stage_events);
    for (int i = 0; i < 4; i++) {
        peers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    }
    small = limit;
    small.rlim_cur = (rlim_t)peers[3] + 1;
    UNIT_EQUAL(setrlimit(RLIMIT_NOFILE, &small), 0);
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)server.port) };
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < 4; i++) {
        UNIT_EQUAL(connect(peers[i], (struct sockaddr *)&to, sizeof to), 0);
    }
    STAGE_LOGGED("no connection can be accepted: Too many open files");
    UNIT_FALSE(stage_has("s:connected"));
    UNIT_EQUAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
    UNIT_WAIT(stage_count("s:connected") == 4, 60000);
    for (int i = 0; i < 4; i++) {
        close(peers[i]);
    }
    close(spare);
    shut(system);
}

/* A system ends with connections and a listener open. */
static void
a_system_stops_with_open_sockets(void)
{
    trp_system *system = open_pair();

    user_do(system, &client, write_hello);
    UNIT_WAIT(stage_has("s:got(hello)"), 60000);
    shut(system);
}

UNIT_BEGIN("tcp")
UNIT(a_client_and_a_server_exchange_bytes_and_close)
UNIT(a_confirmed_close_waits_for_the_peer)
UNIT(an_abort_resets_the_peer)
UNIT(a_connection_that_is_kept_open_writes_after_the_peers_end)
UNIT(a_reset_in_the_middle_is_an_error_with_its_errno)
UNIT(bytes_wait_for_their_handler)
UNIT(a_connection_without_a_handler_is_reset_when_its_time_is_over)
UNIT(a_taken_port_and_a_refused_connection_fail_with_their_errno)
UNIT(names_are_resolved_off_the_workers)
UNIT(unix_domain_streams_work_like_tcp)
UNIT(a_listener_ends_with_its_handler_and_its_connections_close_with_theirs)
UNIT(a_connection_outlives_its_listener)
UNIT(small_writes_leave_at_once_unless_asked_otherwise)
UNIT(a_buffer_has_marks_and_a_bound_when_the_peer_never_reads)
UNIT(a_slow_peer_gets_all_bytes_in_order_from_the_buffer)
UNIT(a_refused_write_stops_all_until_writing_is_resumed)
UNIT(a_handler_that_is_behind_stops_the_peer)
UNIT(a_suspended_connection_reads_nothing_and_a_pulled_one_once_for_each_demand)
UNIT(pieces_of_files_go_in_batches_with_acks_of_their_own)
UNIT(accepting_pauses_without_descriptors_and_says_so_once)
UNIT(a_system_stops_with_open_sockets)
UNIT_END
