/* beats_test.c - links beside the heartbeats of a failure detector, which make PINGs needless; in
 * virtual time. */
#include "base/wire.h"
#include "base/world_virtual.h"
#include "remote/remote.h"
#include "sim/mem_transport.h"
#include "tests/unit/unit.h"

enum { MINUTE_MS = 60000, ASKS = 1, ANSWERS = 2 };

typedef struct duo {
    trpi_virtual *virt;
    trpi_mem_network *network;
    trp_system *system[2];
    trpi_remote *remote[2];
    bool muted;  /* nothing arrives, without an error */
    bool deaf;   /* the second node does not answer heartbeats */
    bool silent; /* both send none */
} duo;

static trpi_mem_verdict
network_fault(void *arg, trpi_mem_event *event)
{
    (void)event;
    return ((duo *)arg)->muted ? TRPI_MEM_DROP : TRPI_MEM_PASS;
}

static bool
network_goes_on(void *arg)
{
    duo *d = arg;
    trpi_mem_network_advance(d->network, trpi_world_mono_ns(trpi_virtual_world(d->virt)));
    return true;
}

static void
drop_line(void *arg, const trp_log_line *line)
{
    (void)arg;
    (void)line;
}

/* Each second, as the failure detector does. */
static bool
beat_send(void *arg)
{
    duo *d = arg;
    uint8_t bytes[TRPI_BEAT_BYTES] = { ASKS };
    trpi_put_u64(bytes + 1, trpi_world_mono_ns(trpi_virtual_world(d->virt)) / 1000);
    for (int i = 0; i < 2 && !d->silent; i++) {
        trpi_node_id to = { *trpi_remote_address(d->remote[1 - i]), 0 };
        (void)trpi_remote_control_send(d->remote[i], &to, TRPI_CHANNEL_HEARTBEAT, bytes,
                                       sizeof bytes);
    }
    return true;
}

static void
beat_arrived(duo *d, int at, const trpi_node_id *from, const uint8_t *bytes, size_t count)
{
    uint8_t answer[TRPI_BEAT_BYTES];
    UNIT_REQUIRE(count == sizeof answer);
    memcpy(answer, bytes, count);
    answer[0] = ANSWERS;
    if (bytes[0] == ASKS && !(at == 1 && d->deaf)) {
        (void)trpi_remote_control_send(d->remote[at], from, TRPI_CHANNEL_HEARTBEAT, answer,
                                       sizeof answer);
    }
}

static void
first_hears(void *arg, const trpi_node_id *from, const uint8_t *bytes, size_t count,
            uint64_t arrived_ns)
{
    (void)arrived_ns;
    beat_arrived(arg, 0, from, bytes, count);
}

static void
second_hears(void *arg, const trpi_node_id *from, const uint8_t *bytes, size_t count,
             uint64_t arrived_ns)
{
    (void)arrived_ns;
    beat_arrived(arg, 1, from, bytes, count);
}

static bool
beat_asked(const uint8_t *bytes, size_t count, uint64_t *ret_asked_us)
{
    if (count != TRPI_BEAT_BYTES || bytes[0] != ANSWERS) {
        return false;
    }
    *ret_asked_us = trpi_get_u64(bytes + 1);
    return true;
}

static void
pass_time(duo *d, uint32_t ms)
{
    for (uint32_t at = 0; at < ms; at += 20) {
        trpi_system_pass(d->system[0], 20);
    }
}

static void
node_start(duo *d, uint32_t i)
{
    trp_system_options of_system = TRP_SYSTEM_OPTIONS_INIT;
    char host[16];
    trpi_remote_options remote = { .bind_port = -1, .host = host, .port = 2552 };
    (void)snprintf(host, sizeof host, "n%u", i);
    of_system.workers = 1;
    of_system.log = drop_line;
    remote.transport = &trpi_mem_transport_ops;
    remote.transport_arg = d->network;
    remote.flush_on_shutdown_ms = 1;
    UNIT_REQUIRE(trpi_system_new_in(trpi_virtual_world(d->virt), "beats", &of_system,
                                    &d->system[i]) == TRP_OK);
    UNIT_REQUIRE(trpi_remote_start(d->system[i], &remote, &d->remote[i]) == TRP_OK);
}

/* reads: answers show that the peer is there. */
static void
duo_start(duo *d, bool reads)
{
    trpi_virtual_options options = { .seed = 1, .calm = true };
    uint64_t id;
    memset(d, 0, sizeof *d);
    UNIT_REQUIRE(trpi_virtual_new(&options, &d->virt) == TRP_OK);
    UNIT_REQUIRE(trpi_mem_network_new(&d->network) == TRP_OK);
    trpi_mem_network_fault_set(d->network, network_fault, d);
    node_start(d, 0);
    node_start(d, 1);
    trpi_remote_control_bind(d->remote[0], TRPI_CHANNEL_HEARTBEAT, first_hears, d);
    trpi_remote_control_bind(d->remote[1], TRPI_CHANNEL_HEARTBEAT, second_hears, d);
    for (int i = 0; i < 2; i++) {
        trpi_remote_beats_read(d->remote[i], reads ? beat_asked : NULL);
    }
    UNIT_REQUIRE(trpi_system_every(d->system[0], 20, network_goes_on, NULL, d, &id) == TRP_OK);
    UNIT_REQUIRE(trpi_system_every(d->system[0], 1000, beat_send, NULL, d, &id) == TRP_OK);
    pass_time(d, 10000);
}

static void
duo_end(duo *d)
{
    d->muted = false;
    for (int i = 1; i >= 0; i--) { /* the first one moves the network */
        UNIT_EQUAL(trp_system_stop(d->system[i], 10000), TRP_OK);
        trpi_remote_stop(d->remote[i]);
        trp_system_free(d->system[i]);
    }
    trpi_mem_network_free(d->network);
    trpi_world_free(trpi_virtual_world(d->virt));
}

static bool
is_active(duo *d)
{
    trpi_peer_info peer;
    size_t count = 0;
    trpi_remote_peers(d->remote[0], &peer, 1, &count);
    return count == 1 && strcmp(peer.state, "active") == 0;
}

/* Frames of all kinds that the second node gets in a minute. */
static uint64_t
frames_of_a_minute(duo *d)
{
    trpi_remote_stats before, after;
    trpi_remote_stats_get(d->remote[1], &before);
    pass_time(d, MINUTE_MS);
    trpi_remote_stats_get(d->remote[1], &after);
    UNIT_TRUE(is_active(d));
    return after.frames_in - before.frames_in;
}

/* FD-23: a minute has 60 heartbeats and 60 answers, and, if those are not read, as many PINGs and
 * PONGs. */
static void
a_peer_that_answers_heartbeats_is_sent_no_ping(void)
{
    static duo d;
    duo_start(&d, false);
    uint64_t both = frames_of_a_minute(&d);
    duo_end(&d);
    UNIT_TRUE(both >= 200 && both <= 242);
    duo_start(&d, true);
    uint64_t beats = frames_of_a_minute(&d);
    UNIT_TRUE(beats >= 118 && beats <= 122);
    duo_end(&d);
}

static void
a_peer_that_does_not_answer_them_is_sent_pings_and_stays(void)
{
    static duo d;
    duo_start(&d, true);
    d.deaf = true;
    uint64_t frames = frames_of_a_minute(&d);
    UNIT_TRUE(frames >= 118 + 40 && frames <= 122 + 61);
    d.deaf = false;
    pass_time(&d, 2000);
    UNIT_TRUE(frames_of_a_minute(&d) <= 122);
    /* without heartbeats it is at rest: each sends a PING twice a minute */
    d.silent = true;
    pass_time(&d, 3000);
    UNIT_TRUE(frames_of_a_minute(&d) <= 8);
    duo_end(&d);
}

static uint32_t
time_until_lost(bool reads)
{
    static duo d;
    uint32_t ms = 0;
    duo_start(&d, reads);
    pass_time(&d, MINUTE_MS);
    UNIT_TRUE(is_active(&d));
    d.muted = true;
    for (; is_active(&d) && ms < MINUTE_MS; ms += 20) {
        pass_time(&d, 20);
    }
    duo_end(&d);
    return ms;
}

/* FD-23, REMOTE-29: as soon as beside PINGs. */
static void
a_dead_link_is_found_by_heartbeats_as_soon_as_by_pings(void)
{
    uint32_t by_pings = time_until_lost(false), by_beats = time_until_lost(true);
    UNIT_TRUE(by_pings >= 3000 && by_pings <= 6500);
    UNIT_TRUE(by_beats >= 3000 && by_beats <= by_pings + 500);
}

UNIT_BEGIN("beats_sim")
UNIT(a_peer_that_answers_heartbeats_is_sent_no_ping)
UNIT(a_peer_that_does_not_answer_them_is_sent_pings_and_stays)
UNIT(a_dead_link_is_found_by_heartbeats_as_soon_as_by_pings)
UNIT_END
