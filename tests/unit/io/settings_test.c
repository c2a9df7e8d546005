/* settings_test.c - what the configuration says of sockets: at its limits, one past them, and what
 * the sockets do then. */
#include "io/buffers.h"
#include "io/poller.h"
#include "io/settings.h"

#include "tests/unit/io/tcp_pair.h"

static trp_system *
open_server(const char *config)
{
    trp_system *system = stage_open_config(config);

    users_start(system);
    server.quiet = true;
    server_bind(system);
    return system;
}

static void
pattern_send(int peer, size_t bytes)
{
    uint8_t data[8192];

    UNIT_REQUIRE(bytes <= sizeof data);
    for (size_t i = 0; i < bytes; i++) {
        data[i] = pattern_at(i);
    }
    UNIT_EQUAL(send(peer, data, bytes, MSG_NOSIGNAL), (ssize_t)bytes);
}

/* Let the server register for its connection, which has waited. */
static void
register_now(trp_system *system)
{
    server.registers = true;
    trp_system_tell_as(system, server.self, server.connection, &trp_tcp_connected_type,
                       &(trp_tcp_connected){ .number = 0 }, sizeof(trp_tcp_connected));
}

/* ---- values ---------------------------------------------------------------------------------- */

/* CONF-12, CONF-13, TCP-28, UDP-06 */
static void
without_a_configuration_the_limits_are_those_that_are_documented(void)
{
    trpi_io_settings s;

    trpi_io_settings_read(NULL, &s);
    UNIT_EQUAL(s.tcp.connections_max, TRP_TCP_CONNECTIONS_MAX);
    UNIT_EQUAL(s.tcp.connections_max, 256000);
    UNIT_EQUAL(s.tcp.accepts, 10);
    UNIT_EQUAL(s.tcp.register_ms, 5000);
    UNIT_EQUAL(s.tcp.read_bytes, 128 * 1024);
    UNIT_EQUAL(s.tcp.turn_bytes, TRPI_POLL_READ_BYTES);
    UNIT_EQUAL(s.tcp.file_bytes, 512 * 1024);
    UNIT_EQUAL(s.tcp.buffers_kept, 64);
    UNIT_FALSE(s.tcp.trace);
    UNIT_TEXT(s.tcp.dispatcher, "default");
    UNIT_TEXT(s.tcp.manager_dispatcher, "default");
    UNIT_EQUAL(s.udp.sockets_max, 4096);
    UNIT_EQUAL(s.udp_connected.sockets_max, TRP_UDP_SOCKETS_MAX);
    UNIT_EQUAL(s.udp.datagrams, TRPI_UDP_DATAGRAMS_DEFAULT);
    UNIT_EQUAL(s.udp.turn_bytes, 1u << 30);
    UNIT_FALSE(s.udp.trace);
    UNIT_TEXT(s.udp.dispatcher, "default");
    UNIT_TEXT(s.udp_manager_dispatcher, "default");
}

/* Set a number, with the unit of its row. */
static trp_err
number_set(trpi_config *config, const trpi_config_row *row, double number)
{
    trpi_config_error error = { "" };
    char assignment[256];

    snprintf(assignment, sizeof assignment, "%s=%.0f%s", row->key, number,
             row->type == TRPI_CONFIG_DURATION ? "ms" : "");
    return trpi_config_set(config, assignment, "--set", &error);
}

/* CONF-12, CONF-13 */
static void
each_number_is_taken_at_its_limits_and_refused_one_past_them(void)
{
    trpi_config *config;
    uint32_t numbers = 0;

    UNIT_REQUIRE(trpi_config_new(&config) == TRP_OK);
    for (size_t i = 0; i < trpi_io_keys.count; i++) {
        const trpi_config_row *row = &trpi_io_keys.rows[i];

        if (row->max == 0) {
            continue;
        }
        numbers++;
        UNIT_EQUAL(number_set(config, row, row->min), TRP_OK);
        UNIT_EQUAL(trpi_config_int(config, row->key), (int64_t)row->min);
        UNIT_EQUAL(number_set(config, row, row->min - 1), TRP_ECONFIG);
        UNIT_EQUAL(number_set(config, row, row->max), TRP_OK);
        UNIT_EQUAL(trpi_config_int(config, row->key), (int64_t)row->max);
        UNIT_EQUAL(number_set(config, row, row->max + 1), TRP_ECONFIG);
    }
    UNIT_EQUAL(numbers, 13);
    trpi_config_free(config);
}

/* CONF-12, CONF-13 */
static void
unlimited_is_the_largest_number(void)
{
    trp_config *config = stage_config("io { tcp { max-channels = unlimited }"
                                      " udp { max-channels = unlimited } }");
    trpi_io_settings s;

    trpi_io_settings_read(config, &s);
    UNIT_EQUAL(s.tcp.connections_max, TRPI_WATCHES_MAX);
    UNIT_EQUAL(s.udp.sockets_max, TRPI_WATCHES_MAX);
    UNIT_EQUAL(s.udp_connected.sockets_max, 4096);
    trp_config_unref(config);
}

/* CONF-12: at the limit and one past it; bytes that a program holds outlive the pool */
static void
a_pool_keeps_so_many_buffers_and_lives_until_the_last_one_is_back(void)
{
    trpi_io_buffers *buffers;
    trpi_io_buffer *taken[3];
    trp_bytes bytes;

    UNIT_REQUIRE(trpi_io_buffers_new(1000, 2, &buffers) == TRP_OK);
    for (int i = 0; i < 3; i++) {
        taken[i] = trpi_io_buffer_take(buffers);
        UNIT_REQUIRE(taken[i] != NULL);
        memset(trpi_io_buffer_data(taken[i]), 'a' + i, 1000);
    }
    UNIT_EQUAL(trpi_io_buffers_kept(buffers), 0);
    for (int i = 0; i < 3; i++) {
        trpi_io_buffer_give(taken[i]);
        UNIT_EQUAL(trpi_io_buffers_kept(buffers), i < 2 ? i + 1 : 2);
    }
    taken[0] = trpi_io_buffer_take(buffers);
    UNIT_TRUE(taken[0] == taken[1]); /* the last one that came back */
    UNIT_EQUAL(trpi_io_buffers_kept(buffers), 1);
    UNIT_EQUAL(trpi_io_buffer_bytes(taken[0], 10, &bytes), TRP_OK);
    trpi_io_buffers_end(buffers);
    UNIT_EQUAL(trp_bytes_length(bytes), 10);
    trp_bytes_unref(&bytes); /* frees the pool: the sanitizers look */
}

/* ---- what sockets do ------------------------------------------------------------------------- */

/* CONF-12, TCP-28: at the limit and one past it */
static void
one_connection_too_many_waits_and_one_to_connect_fails(void)
{
    trp_system *system = open_server("io { tcp { max-channels = 3 } }");
    int peers[4];

    for (int i = 0; i < 3; i++) {
        peers[i] = plain_connect(server.port);
    }
    UNIT_WAIT(stage_count("s:connected") == 3, 60000);
    peers[3] = plain_connect(server.port);
    STAGE_LOGGED("no connection can be accepted: io.tcp.max-channels is reached");
    user_do(system, &client, connect_there);
    UNIT_WAIT(stage_has("c:failed(1,EMFILE,0,0)"), 60000);
    UNIT_EQUAL(stage_count("s:connected"), 3);
    close(peers[0]);
    UNIT_WAIT(stage_count("s:connected") == 4, 60000);
    for (int i = 1; i < 4; i++) {
        close(peers[i]);
    }
    shut(system);
}

/* TCP-28: a turn that has accepted its number goes on */
static void
a_listener_that_accepts_one_a_turn_accepts_all(void)
{
    trp_system *system = open_server("io { tcp { batch-accept-limit = 1 } }");
    int peers[5];

    for (int i = 0; i < 5; i++) {
        peers[i] = plain_connect(server.port);
    }
    UNIT_WAIT(stage_count("s:connected") == 5, 60000);
    for (int i = 0; i < 5; i++) {
        close(peers[i]);
    }
    shut(system);
}

/* TCP-03, TCP-28 */
static void
the_time_to_register_is_that_of_the_configuration_unless_the_call_has_one(void)
{
    trp_system *system = open_server("io { tcp { register-timeout = 1ms } }");
    char data[8];

    server.registers = false;
    int peer = plain_connect(server.port);
    UNIT_TRUE(recv(peer, data, sizeof data, 0) < 0 && errno == ECONNRESET);
    STAGE_LOGGED("no handler has registered in time");
    close(peer);
    shut(system);
}

/* Send 5,000 bytes to a connection that is registered then, and expect reads of these sizes. */
static void
reads_are(const char *config, const char *first, const char *last)
{
    trp_system *system = open_server(config);

    stage_clear(&stage_lines);
    server.registers = false;
    int peer = plain_connect(server.port);
    pattern_send(peer, 5000);
    UNIT_WAIT(stage_has("s:connected"), 60000);
    register_now(system);
    UNIT_WAIT(server.received == 5000, 60000);
    UNIT_FALSE(server.wrong);
    STAGE_LOGGED(first);
    STAGE_LOGGED(last);
    close(peer);
    UNIT_WAIT(stage_has("s:peer"), 60000);
    STAGE_LOGGED("closed, how 4: 5000 bytes were read, 0 written");
    shut(system);
}

/* CONF-12, TCP-28 */
static void
a_read_has_at_most_the_bytes_of_the_buffer_and_of_a_message(void)
{
    reads_are("log { level = debug } io { tcp { trace-logging = on  direct-buffer-size = 700 } }",
              ": 700 bytes were read]", ": 100 bytes were read]");
    reads_are("log { level = debug } io { tcp { trace-logging = on  max-received-message-size = "
              "1999B } }",
              ": 1999 bytes were read]", ": 1002 bytes were read]");
    /* the first read goes through the stack */
    reads_are("log { level = debug } io { tcp { trace-logging = on } }", ": 4096 bytes were read]",
              ": 904 bytes were read]");
}

/* net-N1: a read that fills a part of its room is the last one; at the peer's end one more */
static void
a_short_read_is_not_followed_by_one_that_finds_nothing(void)
{
    trp_system *system = open_server("log { level = debug } io { tcp { trace-logging = on } }");

    stage_clear(&stage_lines);
    server.registers = false;
    int peer = plain_connect(server.port);
    pattern_send(peer, 5);
    UNIT_WAIT(stage_has("s:connected"), 60000);
    register_now(system);
    UNIT_WAIT(server.received == 5, 60000);
    UNIT_EQUAL(send(peer, "\x9b\xba\xd9", 3, MSG_NOSIGNAL), 3); /* pattern_at(5) to (7) */
    UNIT_WAIT(server.received == 8, 60000);
    UNIT_FALSE(server.wrong);
    close(peer);
    UNIT_WAIT(stage_has("s:peer"), 60000);
    STAGE_LOGGED("closed, how 4: 8 bytes were read, 0 written");
    UNIT_FALSE(stage_book_has(&stage_lines, "nothing is left to be read"));
    shut(system);
}

/* A read stops at urgent data, however much is behind it: the kernel does not report that again. */
static void
bytes_behind_urgent_data_are_read(void)
{
    trp_system *system = open_server("");
    uint8_t data[8];

    server.registers = false;
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = pattern_at(i);
    }
    int peer = plain_connect(server.port);
    UNIT_EQUAL(send(peer, data, 3, MSG_NOSIGNAL), 3);
    UNIT_EQUAL(send(peer, "!", 1, MSG_NOSIGNAL | MSG_OOB), 1); /* beside the stream */
    UNIT_EQUAL(send(peer, data + 3, 3, MSG_NOSIGNAL), 3);
    UNIT_WAIT(stage_has("s:connected"), 60000);
    register_now(system);
    UNIT_WAIT(server.received == 6, 60000);
    UNIT_FALSE(server.wrong);
    close(peer);
    shut(system);
}

static char file_path[64];

static void
write_file(trp_ctx *ctx, user *u)
{
    UNIT_EQUAL(trp_tcp_write_file(ctx, u->connection, file_path, 0, 3000, 1), TRP_OK);
}

/* CONF-12, TCP-15, TCP-28 */
static void
a_file_goes_in_pieces_of_the_limit(void)
{
    trp_system *system = open_server("log { level = debug } io { tcp { trace-logging = on  "
                                     "file-io-transferTo-limit = 1000B } }");
    uint8_t got[3000];
    FILE *file;

    stage_clear(&stage_lines);
    snprintf(file_path, sizeof file_path, "/tmp/troupe-set-%d.data", (int)getpid());
    file = fopen(file_path, "w");
    UNIT_REQUIRE(file != NULL);
    for (uint64_t i = 0; i < 3000; i++) {
        putc(pattern_at(i), file);
    }
    fclose(file);
    int peer = plain_connect(server.port);
    UNIT_WAIT(stage_has("s:connected"), 60000);
    user_do(system, &server, write_file);
    UNIT_EQUAL(recv(peer, got, sizeof got, MSG_WAITALL), 3000);
    UNIT_EQUAL(got[2999], pattern_at(2999));
    UNIT_WAIT(server.acks == 1, 60000);
    STAGE_LOGGED(": 1000 bytes were written]");
    UNIT_FALSE(stage_book_has(&stage_lines, ": 3000 bytes were written]"));
    close(peer);
    unlink(file_path);
    shut(system);
}

/* TCP-28: connections run where the configuration says */
static void
connections_run_on_the_dispatcher_of_the_configuration(void)
{
    trp_system *system = open_server("io { tcp { worker-dispatcher = pinned } }");

    int peer = plain_connect(server.port);
    UNIT_WAIT(stage_has("s:connected"), 60000);
    pattern_send(peer, 100);
    UNIT_WAIT(server.received == 100, 60000);
    close(peer);
    shut(system);

    system = open_server("io { tcp { worker-dispatcher = nowhere } }"); /* no such one */
    user_do(system, &client, connect_there);
    UNIT_WAIT(stage_has("c:failed(1,ECANCELED,0,0)"), 60000);
    shut(system);
}

UNIT_BEGIN("settings")
UNIT(without_a_configuration_the_limits_are_those_that_are_documented)
UNIT(each_number_is_taken_at_its_limits_and_refused_one_past_them)
UNIT(unlimited_is_the_largest_number)
UNIT(a_pool_keeps_so_many_buffers_and_lives_until_the_last_one_is_back)
UNIT(one_connection_too_many_waits_and_one_to_connect_fails)
UNIT(a_listener_that_accepts_one_a_turn_accepts_all)
UNIT(the_time_to_register_is_that_of_the_configuration_unless_the_call_has_one)
UNIT(a_read_has_at_most_the_bytes_of_the_buffer_and_of_a_message)
UNIT(a_short_read_is_not_followed_by_one_that_finds_nothing)
UNIT(bytes_behind_urgent_data_are_read)
UNIT(a_file_goes_in_pieces_of_the_limit)
UNIT(connections_run_on_the_dispatcher_of_the_configuration)
UNIT_END
