/* udp_test.c - sockets for datagrams as actors, over loopback. */
#include <errno.h>

#include "tests/unit/io/duo.h"

typedef struct post {
    char name[8];
    trp_ref self, socket;
    trp_io_address local;
    _Atomic bool bound;
    bool echoes, keeps;
    trp_msg *kept[8];
    _Atomic uint32_t got;
} post;
static post server, client;
static uint64_t unhandled_max; /* of the server's socket; 0: the default */

static trp_err
post_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    post *p = *(post **)state;
    const trp_udp_received *received = trp_udp_received_of(msg);

    if (received != NULL) {
        char data[256];
        size_t count = trp_bytes_copy_out(received->bytes, 0, data, sizeof data);

        stage_note("%s:got(%.*s,%zu)", p->name, (int)(count < 8 ? count : 8), data,
                   trp_bytes_length(received->bytes));
        if (p->keeps) {
            UNIT_EQUAL(trp_msg_dup(msg, &p->kept[atomic_load(&p->got) % 8]), TRP_OK);
        }
        atomic_fetch_add(&p->got, 1);
        if (p->echoes) {
            UNIT_EQUAL(trp_udp_send(ctx, p->socket, received->bytes, &received->from, 0), TRP_OK);
        }
    } else if (trp_msg_is(msg, &user_order_type)) {
        ((const user_order *)trp_msg_payload(msg))->fn(ctx, (user *)(void *)p);
    } else if (trp_msg_is(msg, &trp_udp_bound_type)) {
        p->socket = trp_sender(ctx);
        p->local = ((const trp_udp_bound *)trp_msg_payload(msg))->local;
        p->bound = true;
        stage_note("%s:bound(%u)", p->name,
                   (unsigned)((const trp_udp_bound *)trp_msg_payload(msg))->number);
    } else if (trp_msg_is(msg, &trp_udp_ack_type)) {
        stage_note("%s:ack(%u)", p->name,
                   (unsigned)((const trp_udp_ack *)trp_msg_payload(msg))->ack);
    } else if (trp_msg_is(msg, &trp_udp_command_failed_type)) {
        const trp_udp_command_failed *failed = trp_msg_payload(msg);

        stage_note("%s:failed(%u,%s,%u)", p->name, failed->command, strerrorname_np(failed->error),
                   (unsigned)failed->ack);
    } else if (trp_msg_is(msg, &trp_udp_unbound_type)) {
        stage_note("%s:unbound", p->name);
    } else if (trp_msg_is(msg, &trp_terminated_type)) {
        stage_note("%s:terminated", p->name);
    } else {
        return TRP_EUNHANDLED;
    }
    return TRP_OK;
}

static const trp_behaviour post_behaviour = { .size = sizeof(trp_behaviour),
                                              .name = "post",
                                              .version = 1,
                                              .state_bytes = sizeof(post *),
                                              .receive = post_receive,
                                              .pre_start = user_pre_start };

static void
post_start(trp_system *system, post *p, const char *name)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;

    UNIT_REQUIRE(trp_protocol_register(&user_protocol) == TRP_OK);
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "%s", name);
    options.args_type = &trp_bytes_type;
    options.args = &p;
    options.args_bytes = sizeof p;
    UNIT_REQUIRE(trp_system_spawn(system, &post_behaviour, &options, &p->self) == TRP_OK);
}

static void
post_do(trp_system *system, const post *p, user_fn fn)
{
    user_order order = { fn };

    trp_system_tell(system, p->self, &user_order_type, &order, sizeof order);
}

static void
bind_here(trp_ctx *ctx, user *u)
{
    trp_udp_options options = TRP_UDP_OPTIONS_INIT;

    (void)u;
    options.number = 5;
    options.unhandled_bytes_max = unhandled_max;
    UNIT_EQUAL(trp_udp_bind(ctx, "127.0.0.1:0", &options), TRP_OK);
    UNIT_EQUAL(trp_udp_bind(ctx, "unix:/tmp/a", NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_udp_bind(ctx, "name:1", NULL), TRP_EINVAL);
}

static void
bind_same(trp_ctx *ctx, user *u)
{
    char text[TRP_IO_ADDRESS_BYTES_MAX];

    (void)u;
    UNIT_EQUAL(trp_udp_bind(ctx, trp_io_address_text(&server.local, text, sizeof text), NULL),
               TRP_OK);
}

static void
sender_open(trp_ctx *ctx, user *u)
{
    (void)u;
    UNIT_EQUAL(trp_udp_simple_sender(ctx, NULL), TRP_OK);
}

static void
connect_there(trp_ctx *ctx, user *u)
{
    char text[TRP_IO_ADDRESS_BYTES_MAX];

    (void)u;
    UNIT_EQUAL(trp_udp_connect(ctx, trp_io_address_text(&server.local, text, sizeof text), NULL),
               TRP_OK);
    UNIT_EQUAL(trp_udp_connect(ctx, "127.0.0.1:0", NULL), TRP_EINVAL);
}

static void
send_there(trp_ctx *ctx, user *u)
{
    (void)u;
    UNIT_EQUAL(trp_udp_send(ctx, client.socket, TRP_BYTES_LITERAL("hello"), &server.local, 7),
               TRP_OK);
}

static void
send_plain(trp_ctx *ctx, user *u)
{
    (void)u;
    UNIT_EQUAL(trp_udp_send(ctx, client.socket, TRP_BYTES_LITERAL("plain"), NULL, 8), TRP_OK);
}

static void
send_most(trp_ctx *ctx, user *u)
{
    uint8_t *data;
    trp_bytes bytes;

    (void)u;
    UNIT_REQUIRE(trp_bytes_new(TRP_UDP_BYTES_MAX + 1, &data, &bytes) == TRP_OK);
    memset(data, 'a', TRP_UDP_BYTES_MAX + 1);
    trp_bytes most = trp_bytes_take(bytes, TRP_UDP_BYTES_MAX);
    UNIT_EQUAL(trp_udp_send(ctx, client.socket, most, &server.local, 1), TRP_OK);
    UNIT_EQUAL(trp_udp_send(ctx, client.socket, bytes, &server.local, 2), TRP_OK);
    UNIT_EQUAL(trp_udp_send(ctx, client.socket, TRP_BYTES_EMPTY, &server.local, 3), TRP_OK);
    trp_bytes_unref(&most);
    trp_bytes_unref(&bytes);
}

static void
unbind_server(trp_ctx *ctx, user *u)
{
    (void)u;
    trp_tell(ctx, server.socket, &trp_udp_unbind_type, NULL, 0);
}

static void
stop_here(trp_ctx *ctx, user *u)
{
    (void)u;
    trp_stop(ctx, trp_self(ctx));
}

static void
watch_server(trp_ctx *ctx, user *u)
{
    (void)u;
    UNIT_EQUAL(trp_watch(ctx, server.socket), TRP_OK);
}

/* The send is handled behind the suspension. */
static void
suspend_server_and_send(trp_ctx *ctx, user *u)
{
    (void)u;
    trp_tell(ctx, server.socket, &trp_udp_suspend_reading_type, NULL, 0);
    UNIT_EQUAL(trp_udp_send(ctx, server.socket, TRP_BYTES_LITERAL("hello"), &server.local, 9),
               TRP_OK);
}

static void
resume_server(trp_ctx *ctx, user *u)
{
    (void)u;
    trp_tell(ctx, server.socket, &trp_udp_resume_reading_type, NULL, 0);
}

static trp_system *
open_config(const char *config, user_fn how)
{
    trp_system *system = stage_open_config(config);

    post_start(system, &server, "s");
    post_start(system, &client, "c");
    post_do(system, &server, bind_here);
    STAGE_EXPECT("s:bound(5)");
    stage_clear(&stage_events);
    post_do(system, &client, how);
    UNIT_WAIT(client.bound, 60000);
    stage_clear(&stage_events);
    return system;
}

static trp_system *
open_both(user_fn how)
{
    return open_config("", how);
}

static void
shut(trp_system *system)
{
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
    trp_system_free(system);
}

/* IO-01, IO-04, IO-17, UDP-01, UDP-02, UDP-05 */
static void
a_simple_sender_reaches_a_bound_socket_which_answers_by_address(void)
{
    trp_system *system = open_both(sender_open);

    post_do(system, &client, send_there);
    UNIT_WAIT(stage_has("c:ack(7)") && stage_has("s:got(hello,5)"), 60000);
    shut(system);
}

/* UDP-03 */
static void
a_connected_socket_sends_and_receives_without_an_address(void)
{
    trp_system *system = open_both(connect_there);

    server.echoes = true;
    post_do(system, &client, send_plain);
    UNIT_WAIT(stage_has("c:ack(8)") && stage_has("c:got(plain,5)"), 60000);
    stage_clear(&stage_events);
    post_do(system, &server, unbind_server);
    STAGE_EXPECT("s:unbound");
    stage_clear(&stage_events);
    post_do(system, &client, send_plain); /* nobody listens: told by the network, if at all */
    UNIT_WAIT(stage_has("c:failed(3,ECONNREFUSED,0)") || stage_has("c:failed(2,ECONNREFUSED,8)"),
              60000);
    shut(system);
}

/* UDP-05 */
static void
the_longest_datagram_passes_whole_and_one_byte_more_fails(void)
{
    trp_system *system = open_both(sender_open);

    post_do(system, &client, send_most);
    UNIT_WAIT(stage_has("c:ack(1)") && stage_has("c:failed(2,EMSGSIZE,2)") && stage_has("c:ack(3)"),
              60000);
    UNIT_WAIT(stage_has("s:got(aaaaaaaa,65507)") && stage_has("s:got(,0)"), 60000);
    shut(system);
}

/* UDP-02 */
static void
a_taken_port_fails_and_is_free_after_unbound(void)
{
    trp_system *system = open_both(sender_open);

    post_do(system, &client, bind_same);
    STAGE_EXPECT("c:failed(1,EADDRINUSE,0)");
    stage_clear(&stage_events);
    post_do(system, &server, unbind_server);
    STAGE_EXPECT("s:unbound");
    stage_clear(&stage_events);
    post_do(system, &client, bind_same);
    STAGE_EXPECT("c:bound(0)");
    shut(system);
}

static void
send_empty(trp_ctx *ctx, user *u)
{
    (void)u;
    for (uint64_t i = 1; i <= 3; i++) {
        UNIT_EQUAL(trp_udp_send(ctx, client.socket, TRP_BYTES_EMPTY, &server.local, i), TRP_OK);
    }
}

/* UDP-05: a datagram without bytes takes memory, too, until the handler has freed it. */
static void
empty_datagrams_count_as_unhandled(void)
{
    unhandled_max = 1;
    trp_system *system = open_both(sender_open);
    unhandled_max = 0;
    server.keeps = true;
    post_do(system, &client, send_empty);
    UNIT_WAIT(stage_has("c:ack(3)"), 60000);
    for (uint32_t i = 1; i <= 3; i++) {
        UNIT_WAIT(atomic_load(&server.got) >= i, 60000);
        for (int pause = 0; pause < 50 && atomic_load(&server.got) == i; pause++) {
            unit_pause(); /* for one that does not wait */
        }
        UNIT_EQUAL(atomic_load(&server.got), i);
        trp_msg_free(server.kept[i - 1]);
    }
    shut(system);
}

/* IO-03 */
static void
a_socket_ends_with_its_handler(void)
{
    trp_system *system = open_both(sender_open);

    post_do(system, &client, watch_server);
    post_do(system, &server, stop_here);
    STAGE_EXPECT("c:terminated");
    shut(system);
}

/* UDP-05 */
static void
a_suspended_socket_reads_when_it_is_resumed(void)
{
    trp_system *system = open_both(sender_open);

    post_do(system, &server, suspend_server_and_send);
    UNIT_WAIT(stage_has("s:ack(9)"), 60000);
    UNIT_FALSE(stage_has("s:got"));
    post_do(system, &server, resume_server);
    UNIT_WAIT(stage_has("s:got(hello,5)"), 60000);
    shut(system);
}

/* CONF-13, UDP-06: at the limit and one past it; connected ones have their own */
static void
sockets_are_as_many_as_the_configuration_says(void)
{
    trp_system *system = open_config("io { udp { max-channels = 2 }"
                                     " udp-connected { max-channels = 1 } }",
                                     sender_open);

    post_do(system, &client, sender_open);
    STAGE_EXPECT("c:failed(1,EMFILE,0)");
    stage_clear(&stage_events);
    post_do(system, &client, connect_there);
    STAGE_EXPECT("c:bound(0)");
    post_do(system, &client, connect_there);
    STAGE_EXPECT("c:bound(0) c:failed(1,EMFILE,0)");
    stage_clear(&stage_events);
    post_do(system, &server, unbind_server);
    STAGE_EXPECT("s:unbound");
    stage_clear(&stage_events);
    post_do(system, &client, sender_open);
    STAGE_EXPECT("c:bound(0)");
    shut(system);
}

/* CONF-13, UDP-06: a turn ends at its bound of datagrams, or of bytes, and the next one goes on */
static void
all_datagrams_come_however_few_a_turn_reads(void)
{
    static const char *const configs[] = {
        "log { level = debug } io { udp { receive-throughput = 1  trace-logging = on } }",
        "io { udp { received-message-size-limit = 1B } }",
    };

    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
        trp_system *system = open_config(configs[i], sender_open);

        for (int n = 0; n < 5; n++) {
            post_do(system, &server, suspend_server_and_send);
        }
        UNIT_WAIT(stage_count("s:ack(9)") == 5, 60000);
        UNIT_FALSE(stage_has("s:got"));
        post_do(system, &server, resume_server);
        UNIT_WAIT(stage_count("s:got(hello,5)") == 5, 60000);
        if (i == 0) {
            STAGE_LOGGED("a datagram of 5 bytes was read");
            STAGE_LOGGED("a datagram of 5 bytes was sent");
        }
        shut(system);
    }
}

UNIT_BEGIN("udp")
UNIT(a_simple_sender_reaches_a_bound_socket_which_answers_by_address)
UNIT(a_connected_socket_sends_and_receives_without_an_address)
UNIT(the_longest_datagram_passes_whole_and_one_byte_more_fails)
UNIT(a_taken_port_fails_and_is_free_after_unbound)
UNIT(empty_datagrams_count_as_unhandled)
UNIT(a_socket_ends_with_its_handler)
UNIT(a_suspended_socket_reads_when_it_is_resumed)
UNIT(sockets_are_as_many_as_the_configuration_says)
UNIT(all_datagrams_come_however_few_a_turn_reads)
UNIT_END
