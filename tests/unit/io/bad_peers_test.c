/* bad_peers_test.c - the echo server of the samples, whole, with peers that do not behave. */
#include <fcntl.h>

#include "tests/unit/io/duo.h"

#include <troupe/inbox.h>

int sample_main(void); /* is not called: this file opens the system */
#define main sample_main
#include "examples/echo_nack.c"
#undef main

enum { FLOOD_BYTES = 256 << 20, BOUND_BYTES = 128 << 20, QUIET_MS = 300 };

static trp_system *
sample_open(uint16_t *ret_port)
{
    trp_system *system = stage_open_config("log { level = debug }");
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref, sender, self;
    trp_inbox *inbox;
    trp_msg *bound;

    UNIT_REQUIRE(trp_inbox_open(system, NULL, &inbox) == TRP_OK);
    self = trp_inbox_ref(inbox);
    options.args_type = &trp_bytes_type;
    options.args = &self;
    options.args_bytes = sizeof self;
    UNIT_REQUIRE(trp_system_spawn(system, &server, &options, &ref) == TRP_OK);
    UNIT_REQUIRE(trp_inbox_receive(inbox, 60000, &bound, &sender) == TRP_OK);
    *ret_port = ((const trp_tcp_bound *)trp_msg_payload(bound))->local.port;
    trp_msg_free(bound);
    trp_inbox_close(inbox);
    return system;
}

/* Send and read nothing, until the server has taken nothing for a while. Returns the bytes. */
static size_t
flood(int peer)
{
    static uint8_t data[65536];
    uint64_t quiet_since = unit_now_ms();
    size_t sent = 0;

    while (sent < FLOOD_BYTES && unit_now_ms() < quiet_since + QUIET_MS) {
        for (size_t i = 0; i < sizeof data; i++) {
            data[i] = pattern_at(sent + i);
        }
        ssize_t now = send(peer, data, sizeof data, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (now > 0) {
            sent += (size_t)now;
            quiet_since = unit_now_ms();
        } else {
            unit_pause();
        }
    }
    return sent;
}

static bool
is_served(uint16_t port)
{
    int peer = plain_connect(port);
    char data[8];
    bool served = send(peer, "hello", 5, MSG_NOSIGNAL) == 5 &&
                  recv(peer, data, 5, MSG_WAITALL) == 5 && memcmp(data, "hello", 5) == 0;

    close(peer);
    return served;
}

/* TCP-24 */
static void
a_peer_that_never_reads_is_not_read_and_loses_nothing_when_it_does(void)
{
    uint16_t port;
    trp_system *system = sample_open(&port);
    int peer = plain_connect(port);
    size_t sent = flood(peer);
    bool right;

    UNIT_TRUE(sent > 0);
    UNIT_TRUE(sent < BOUND_BYTES); /* what the sample stores, and buffers of the kernel */
    UNIT_TRUE(is_served(port));
    UNIT_FALSE(stage_book_has(&stage_lines, "buffer overrun"));
    shutdown(peer, SHUT_WR);
    UNIT_EQUAL(plain_drain(peer, &right), (ssize_t)sent);
    UNIT_TRUE(right);
    close(peer);
    stage_close(system);
}

/* TCP-24 */
static void
a_peer_that_resets_with_much_on_its_way_ends_its_handler_once(void)
{
    struct linger now = { .l_onoff = 1 };
    uint16_t port;
    trp_system *system = sample_open(&port);
    int peer = plain_connect(port);

    UNIT_TRUE(flood(peer) > 0);
    stage_clear(&stage_lines);
    setsockopt(peer, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(peer);
    STAGE_LOGGED("transferred");
    stage_clear(&stage_lines);
    UNIT_TRUE(is_served(port)); /* which logs this again when it has ended */
    STAGE_LOGGED("transferred 5 bytes");
    stage_close(system);
}

UNIT_BEGIN("bad_peers")
UNIT(a_peer_that_never_reads_is_not_read_and_loses_nothing_when_it_does)
UNIT(a_peer_that_resets_with_much_on_its_way_ends_its_handler_once)
UNIT_END
