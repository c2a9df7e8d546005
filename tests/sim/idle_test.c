/* idle_test.c - the cost of idle associations, the detection of a dead one, forgotten peers, and
 * the receivers that dead letters name; in virtual time. */
#include <troupe/mailbox.h>

#include "base/world_virtual.h"
#include "remote/association/conn.h"
#include "remote/association/peer.h"
#include "remote/association/route.h"
#include "remote/remote.h"
#include "sim/mem_transport.h"
#include "tests/unit/unit.h"

enum { NODES_MAX = 40, MINUTE_MS = 60000 };

typedef struct mesh {
    trpi_virtual *virt;
    trpi_mem_network *network;
    uint32_t count;
    trp_system *system[NODES_MAX];
    trpi_remote *remote[NODES_MAX];
    bool muted;      /* nothing arrives, without an error */
    uint32_t cut_at; /* the link breaks at so many-th write of the longest; 0: never */
    uint32_t wire_minor, lane_idle_ms;
} mesh;

static trpi_mem_verdict
network_fault(void *arg, trpi_mem_event *event)
{
    mesh *m = arg;
    if (event->bytes >= TRPI_WRITE_BYTES_MAX && m->cut_at > 0 && --m->cut_at == 0) {
        return TRPI_MEM_CUT;
    }
    return m->muted ? TRPI_MEM_DROP : TRPI_MEM_PASS;
}

static bool
network_goes_on(void *arg)
{
    mesh *m = arg;
    trpi_mem_network_advance(m->network, trpi_world_mono_ns(trpi_virtual_world(m->virt)));
    return true;
}

static void
drop_line(void *arg, const trp_log_line *line)
{
    (void)arg;
    (void)line;
}

static void
pass_time(mesh *m, uint32_t ms)
{
    for (uint32_t at = 0; at < ms; at += 20) {
        trpi_system_pass(m->system[0], 20);
    }
}

static void
node_start(mesh *m, uint32_t i)
{
    trp_system_options of_system = TRP_SYSTEM_OPTIONS_INIT;
    char host[16];
    trpi_remote_options remote = { .bind_port = -1, .host = host, .port = 2552 };
    (void)snprintf(host, sizeof host, "n%u", i);
    of_system.workers = 1;
    of_system.log = drop_line;
    remote.transport = &trpi_mem_transport_ops;
    remote.transport_arg = m->network;
    remote.flush_on_shutdown_ms = 1;
    remote.wire_minor = m->wire_minor;
    remote.lane_idle_ms = m->lane_idle_ms;
    UNIT_REQUIRE(trpi_system_new_in(trpi_virtual_world(m->virt), "idle", &of_system,
                                    &m->system[i]) == TRP_OK);
    UNIT_REQUIRE(trpi_remote_start(m->system[i], &remote, &m->remote[i]) == TRP_OK);
}

/* Nodes that do not know each other. wire_minor 0: the newest; lane_idle_ms 0: the default. */
static void
mesh_start_of(mesh *m, uint32_t count, uint32_t wire_minor, uint32_t lane_idle_ms)
{
    trpi_virtual_options options = { .seed = 1, .calm = true };
    uint64_t id;
    memset(m, 0, sizeof *m);
    m->count = count;
    m->wire_minor = wire_minor;
    m->lane_idle_ms = lane_idle_ms;
    UNIT_REQUIRE(trpi_virtual_new(&options, &m->virt) == TRP_OK);
    UNIT_REQUIRE(trpi_mem_network_new(&m->network) == TRP_OK);
    trpi_mem_network_fault_set(m->network, network_fault, m);
    for (uint32_t i = 0; i < count; i++) {
        node_start(m, i);
    }
    UNIT_REQUIRE(trpi_system_every(m->system[0], 20, network_goes_on, NULL, m, &id) == TRP_OK);
}

static void
mesh_start(mesh *m, uint32_t count)
{
    mesh_start_of(m, count, 0, 0);
}

static void
node_end(mesh *m, uint32_t i)
{
    if (m->system[i] != NULL) {
        UNIT_EQUAL(trp_system_stop(m->system[i], 10000), TRP_OK);
        trpi_remote_stop(m->remote[i]);
        trp_system_free(m->system[i]);
        m->system[i] = NULL;
    }
}

static void
mesh_end(mesh *m)
{
    m->muted = false;
    for (uint32_t i = m->count; i > 0; i--) { /* the first one moves the network */
        node_end(m, i - 1);
    }
    trpi_mem_network_free(m->network);
    trpi_world_free(trpi_virtual_world(m->virt));
}

static void
send_control(mesh *m, uint32_t from, uint32_t to)
{
    trpi_node_id id = { *trpi_remote_address(m->remote[to]), 0 };
    (void)trpi_remote_control_send(m->remote[from], &id, TRPI_CHANNEL_GOSSIP, "knock", 5);
}

/* On an ordinary lane. */
static void
tell_actor(mesh *m, uint32_t from, uint32_t to)
{
    char path[TRPI_ADDRESS_TEXT_BYTES + 16], address[TRPI_ADDRESS_TEXT_BYTES];
    const trpi_address *there = trpi_remote_address(m->remote[to]);
    (void)snprintf(path, sizeof path, "%s/user/nobody",
                   trpi_address_format(there, address, sizeof address));
    UNIT_EQUAL(trp_system_select_tell(m->system[from], path, &trp_string_type, "x", 1), TRP_OK);
}

static size_t
peers_of(mesh *m, uint32_t node)
{
    trpi_peer_info peer;
    size_t count = 0;
    trpi_remote_peers(m->remote[node], &peer, 1, &count);
    return count;
}

static uint32_t
active_of(mesh *m, uint32_t node)
{
    trpi_peer_info peers[NODES_MAX];
    size_t count = 0;
    uint32_t active = 0;
    trpi_remote_peers(m->remote[node], peers, NODES_MAX, &count);
    for (size_t i = 0; i < count; i++) {
        active += strcmp(peers[i].state, "active") == 0;
    }
    return active;
}

/* Frames of all kinds that the node got in a minute without messages. */
static uint64_t
frames_of_an_idle_minute(uint32_t count, uint64_t *ret_most)
{
    static mesh m;
    trpi_remote_stats before[NODES_MAX], after;
    uint64_t sum = 0;
    mesh_start(&m, count);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = i + 1; k < count; k++) {
            send_control(&m, i, k);
        }
    }
    pass_time(&m, 10000);
    for (uint32_t i = 0; i < count; i++) {
        UNIT_EQUAL(active_of(&m, i), count - 1);
        trpi_remote_stats_get(m.remote[i], &before[i]);
    }
    pass_time(&m, MINUTE_MS);
    for (uint32_t i = 0; i < count; i++) {
        trpi_remote_stats_get(m.remote[i], &after);
        sum += after.frames_in - before[i].frames_in;
        *ret_most = after.frames_in - before[i].frames_in > *ret_most
                        ? after.frames_in - before[i].frames_in
                        : *ret_most;
        UNIT_EQUAL(active_of(&m, i), count - 1);
    }
    mesh_end(&m);
    return sum;
}

/* Each asks at most one of the others in a second; an answer is one more frame. */
static void
what_an_idle_node_sends_does_not_grow_with_its_associations(void)
{
    uint64_t most = 0;
    uint64_t few = frames_of_an_idle_minute(4, &most);
    uint64_t many = frames_of_an_idle_minute(NODES_MAX, &most);
    UNIT_TRUE(few > 0);
    UNIT_TRUE(few <= 4 * 2 * 3 * 2); /* three others, asked twice in a minute */
    UNIT_TRUE(many <= NODES_MAX * 2 * 60);
    UNIT_TRUE(most <= 4 * 60);
}

static uint32_t
time_until_lost(mesh *m, uint32_t limit_ms)
{
    uint32_t ms = 0;
    for (; active_of(m, 0) > 0 && ms < limit_ms; ms += 20) {
        pass_time(m, 20);
    }
    return ms;
}

/* FD-23, REMOTE-29: As soon as if it had been asked all the time: 1 s until a PING, 4 s of silence.
 */
static void
a_link_that_died_at_rest_is_found_by_who_uses_it(void)
{
    static mesh m;
    mesh_start(&m, 2);
    send_control(&m, 0, 1);
    pass_time(&m, 100000);
    UNIT_EQUAL(active_of(&m, 0), 1);
    m.muted = true;
    send_control(&m, 0, 1);
    uint32_t took = time_until_lost(&m, MINUTE_MS);
    UNIT_TRUE(took >= 3000);
    UNIT_TRUE(took <= 6500);
    mesh_end(&m);
}

/* FD-23 */
static void
a_link_that_died_at_rest_is_found_though_nobody_uses_it(void)
{
    static mesh m;
    mesh_start(&m, 2);
    send_control(&m, 0, 1);
    pass_time(&m, 100000);
    m.muted = true;
    uint32_t took = time_until_lost(&m, 2 * MINUTE_MS);
    UNIT_TRUE(took <= 30000 + 6500);
    mesh_end(&m);
}

/* The connection that the message went over is open and unused: to a peer that
 * closes gracefully (it dies before, or as it begins to), and to one that does not. */
static void
a_link_that_died_behind_a_message_is_found_though_nobody_uses_it(void)
{
    static const uint32_t lane_idle_ms[] = { 300000, 106000 };
    static mesh m;
    for (uint32_t minor = 1; minor <= 3; minor++) {
        for (int i = 0; i < 2; i++) {
            mesh_start_of(&m, 2, minor, lane_idle_ms[i]);
            tell_actor(&m, 0, 1);
            pass_time(&m, 100000);
            UNIT_EQUAL(active_of(&m, 0), 1);
            m.muted = true;
            uint32_t took = time_until_lost(&m, 2 * MINUTE_MS);
            UNIT_TRUE(took <= 30000 + 6500);
            UNIT_TRUE(i == 0 || minor == 1 || took <= 6000 + 1000 + 6500);
            mesh_end(&m);
        }
    }
}

/* One that was used is judged by what it says, however long it rested before. */
static void
a_link_that_is_used_now_and_then_lives(void)
{
    static mesh m;
    trpi_remote_stats stats;
    mesh_start(&m, 2);
    for (int i = 0; i < 20; i++) {
        send_control(&m, 0, 1);
        pass_time(&m, 1000 + 700 * (uint32_t)i);
        UNIT_EQUAL(active_of(&m, 0), 1);
    }
    trpi_remote_stats_get(m.remote[1], &stats);
    UNIT_EQUAL(stats.accepted, 1);
    mesh_end(&m);
}

/* Numbers are for ever: a node that comes, gossips and goes takes none. */
static void
a_node_gets_a_number_with_the_first_message_only(void)
{
    static mesh m;
    mesh_start(&m, 2);
    trpi_node_id first = { *trpi_remote_address(m.remote[0]), trpi_system_self(m.system[0])->uid };
    send_control(&m, 0, 1);
    pass_time(&m, 1000);
    UNIT_EQUAL(active_of(&m, 1), 1);
    UNIT_EQUAL(trpi_node_find(m.system[1], &first), 0);
    UNIT_EQUAL(trpi_node_find(m.system[0], &first), TRPI_NODE_SELF);
    tell_actor(&m, 0, 1);
    pass_time(&m, 1000);
    UNIT_TRUE(trpi_node_find(m.system[1], &first) > TRPI_NODE_SELF);
    mesh_end(&m);
}

/* Without a goodbye it may come back, and what is barred may not. */
static void
who_said_goodbye_is_forgotten_in_the_end(void)
{
    static mesh m;
    mesh_start(&m, 4);
    for (uint32_t i = 1; i < 4; i++) {
        send_control(&m, 0, i);
    }
    pass_time(&m, 1000);
    trpi_remote_watch_delegate(m.remote[0], trpi_remote_address(m.remote[2]), true);
    trpi_node_id third = { *trpi_remote_address(m.remote[3]), trpi_system_self(m.system[3])->uid };
    trpi_remote_quarantine(m.remote[0], &third, "by the test");
    trpi_address second = *trpi_remote_address(m.remote[2]);
    for (uint32_t i = 1; i < 4; i++) {
        node_end(&m, i);
    }
    pass_time(&m, 590000);
    UNIT_EQUAL(peers_of(&m, 0), 3);
    pass_time(&m, 20000);
    UNIT_EQUAL(peers_of(&m, 0), 2); /* a member that the cluster judges, and a barred one */
    trpi_remote_watch_delegate(m.remote[0], &second, false);
    pass_time(&m, 610000);
    UNIT_EQUAL(peers_of(&m, 0), 1);
    mesh_end(&m);
}

/* One side forgets, the other one remembers: what it knows of this incarnation still holds. */
static void
who_was_forgotten_and_is_met_again_is_understood(void)
{
    static mesh m;
    trpi_remote_stats stats;
    mesh_start(&m, 2);
    trpi_remote_watch_delegate(m.remote[1], trpi_remote_address(m.remote[0]), true);
    for (int round = 0; round < 3; round++) {
        send_control(&m, 1, 0);
        pass_time(&m, 2000);
        UNIT_EQUAL(active_of(&m, 0), 1);
        UNIT_EQUAL(active_of(&m, 1), 1);
        trpi_remote_stats_get(m.remote[1], &stats);
        UNIT_EQUAL(stats.garbage, 0);
        m.muted = true;
        pass_time(&m, 12 * MINUTE_MS);
        UNIT_EQUAL(peers_of(&m, 0), 0);
        UNIT_EQUAL(peers_of(&m, 1), 1);
        m.muted = false;
    }
    mesh_end(&m);
}

static uint32_t
number_of(mesh *m, uint32_t at, uint32_t of)
{
    trpi_node_id id = { *trpi_remote_address(m->remote[of]), trpi_system_self(m->system[of])->uid };
    uint32_t node = 0;
    UNIT_REQUIRE(trpi_node_intern(m->system[at], &id, &node) == TRP_OK);
    return node;
}

static trpi_peer *
peer_pinned(mesh *m, uint32_t at, uint32_t of)
{
    trpi_peer *peer = NULL;
    UNIT_REQUIRE(trpi_peer_get(m->remote[at], trpi_remote_address(m->remote[of]), true, &peer) ==
                 TRP_OK);
    return peer;
}

/* One route, one pin: also when it is asked for again. */
static void
a_node_that_is_connected_twice_has_one_pin(void)
{
    static mesh m;
    mesh_start(&m, 2);
    uint32_t node = number_of(&m, 0, 1);
    trpi_peer *peer = peer_pinned(&m, 0, 1);
    for (int i = 0; i < 3; i++) {
        UNIT_EQUAL(trpi_route_remote_ops.connect(m.remote[0], m.system[0], node), TRP_OK);
        UNIT_EQUAL(peer->pins, 2);
    }
    trpi_peer_unpin(peer);
    mesh_end(&m);
}

static trp_ref asked;
static int refusals, readies;

static trp_err
asker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    readies += trp_msg_is(msg, &trp_mailbox_ready_type);
    if (trp_msg_is(msg, &trp_string_type)) {
        refusals += trp_try_tell(ctx, asked, &trp_string_type, "x", 1) != TRP_OK;
    }
    return TRP_OK;
}
static const trp_behaviour asker = { .size = sizeof(trp_behaviour),
                                     .name = "asker",
                                     .receive = asker_receive };

/* The space of the lane was reserved by senders that had no memory for their messages. */
static void
who_was_refused_for_a_promise_hears_when_it_is_broken(void)
{
    static mesh m;
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;
    refusals = readies = 0;
    mesh_start(&m, 2);
    send_control(&m, 0, 1);
    asked = (trp_ref){ number_of(&m, 0, 1), 5, 7, 0 };
    UNIT_REQUIRE(trp_system_spawn(m.system[0], &asker, &options, &ref) == TRP_OK);
    pass_time(&m, 10000);
    trpi_peer *peer = peer_pinned(&m, 0, 1);
    UNIT_FALSE(peer->activity.active);
    atomic_fetch_add(&peer->reserved, 1u << 30);
    trp_system_tell(m.system[0], ref, &trp_string_type, "x", 1);
    pass_time(&m, 5000);
    UNIT_EQUAL(refusals, 1);
    UNIT_EQUAL(readies, 0);
    atomic_fetch_sub(&peer->reserved, 1u << 30);
    pass_time(&m, 1000);
    UNIT_EQUAL(readies, 1);
    trpi_peer_unpin(peer);
    mesh_end(&m);
}

static trp_err
watcher_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    return trp_msg_is(msg, &trp_string_type) ? trp_watch(ctx, asked) : TRP_OK;
}
static const trp_behaviour watcher = { .size = sizeof(trp_behaviour),
                                       .name = "watcher",
                                       .receive = watcher_receive };

/* Its messages would have no sender, and its watchers never hear: nothing of it is taken. */
static void
who_finds_no_number_here_is_not_listened_to(void)
{
    static mesh m;
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;
    trpi_remote_stats stats;
    uint32_t node = 0;
    mesh_start(&m, 2);
    send_control(&m, 1, 0);
    pass_time(&m, 1000);
    trpi_node_id id = { *trpi_remote_address(m.remote[1]), 0 };
    for (id.uid = 1; trpi_node_intern(m.system[0], &id, &node) == TRP_OK;) {
        id.uid++;
    }
    tell_actor(&m, 1, 0);
    pass_time(&m, 1000);
    trpi_remote_stats_get(m.remote[0], &stats);
    UNIT_EQUAL(stats.decode_errors, 1);
    asked = (trp_ref){ number_of(&m, 1, 0), 5, 7, 0 };
    UNIT_REQUIRE(trp_system_spawn(m.system[1], &watcher, &options, &ref) == TRP_OK);
    trp_system_tell(m.system[1], ref, &trp_string_type, "x", 1);
    pass_time(&m, 5000);
    trpi_remote_stats_get(m.remote[0], &stats);
    UNIT_TRUE(stats.decode_errors >= 3); /* it is not acknowledged, so it comes again */
    mesh_end(&m);
}

/* ---- the receiver that a dead letter names --------------------------------------------------- */

enum { LETTERS = 8 }; /* recipients, so that more than one lane has some */

static trp_ref told;
static uint32_t letters, misnamed, wrong_reasons;
static trp_dead_reason reason_due;

static trp_err
undertaker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_dead_letter letter = *(const trp_dead_letter *)trp_msg_payload(msg);
    (void)ctx;
    (void)state;
    letters++;
    misnamed +=
        letter.recipient.node != told.node || letter.recipient.generation != told.generation;
    wrong_reasons += letter.reason != reason_due;
    return TRP_OK;
}
static const trp_behaviour undertaker = { .size = sizeof(trp_behaviour),
                                          .name = "undertaker",
                                          .receive = undertaker_receive };

/* Two nodes; the first sees to dead letters. uid 0: the second one's */
static void
letters_start(mesh *m, uint64_t uid)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;
    letters = misnamed = wrong_reasons = 0;
    mesh_start(m, 2);
    trpi_node_id id = { *trpi_remote_address(m->remote[1]),
                        uid != 0 ? uid : trpi_system_self(m->system[1])->uid };
    told = (trp_ref){ 0, 0, 7, 0 };
    UNIT_REQUIRE(trpi_node_intern(m->system[0], &id, &told.node) == TRP_OK);
    UNIT_REQUIRE(trp_system_spawn(m->system[0], &undertaker, &options, &ref) == TRP_OK);
    UNIT_EQUAL(trp_system_subscribe(m->system[0], ref, &trp_dead_letter_type), TRP_OK);
    pass_time(m, 1000);
}

static void
letters_tell(mesh *m)
{
    for (uint32_t i = 0; i < LETTERS; i++) {
        trp_ref to = { told.node, 5 + i, told.generation, 0 };
        trp_system_tell(m->system[0], to, &trp_string_type, "x", 1);
    }
    pass_time(m, 100);
}

/* A new incarnation at that address, known from gossip only, has no number for it either. */
static void
letters_end(mesh *m)
{
    const trpi_node_id *now = trpi_system_self(m->system[1]);
    UNIT_EQUAL(letters, LETTERS);
    UNIT_EQUAL(misnamed, 0);
    UNIT_EQUAL(wrong_reasons, 0);
    UNIT_TRUE(trpi_node_find(m->system[0], now) == 0 ||
              trpi_node_find(m->system[0], now) == told.node);
    mesh_end(m);
}

/* Also if only gossip is exchanged with the incarnation there, which has no number for it. */
static void
a_dead_letter_names_the_incarnation_that_it_was_for(void)
{
    static mesh m;
    letters_start(&m, 77);
    send_control(&m, 0, 1);
    pass_time(&m, 1000);
    reason_due = TRP_DEAD_STALE;
    letters_tell(&m);
    letters_end(&m);
}

/* ES-03: The other end crashes, what is told waits, and another incarnation calls. */
static void
what_waited_for_a_dead_incarnation_names_it_and_not_its_successor(void)
{
    static mesh m;
    letters_start(&m, 0);
    send_control(&m, 0, 1);
    pass_time(&m, 1000);
    m.muted = true;
    UNIT_TRUE(time_until_lost(&m, 2 * MINUTE_MS) <= 30000 + 6500);
    reason_due = TRP_DEAD_STALE;
    letters_tell(&m);
    UNIT_EQUAL(letters, 0);
    node_end(&m, 1);
    node_start(&m, 1);
    m.muted = false;
    send_control(&m, 1, 0);
    pass_time(&m, 1000);
    letters_end(&m);
}

/* ES-03: No node has met it, and none, or another one, is there. */
static void
what_waited_for_an_incarnation_that_was_never_met_names_it(void)
{
    static mesh m;
    letters_start(&m, 77);
    m.muted = true;
    reason_due = TRP_DEAD_NOT_CONNECTED;
    letters_tell(&m);
    UNIT_EQUAL(letters, 0);
    pass_time(&m, MINUTE_MS);
    letters_end(&m);
    letters_start(&m, 77);
    m.muted = true;
    reason_due = TRP_DEAD_STALE;
    letters_tell(&m);
    UNIT_EQUAL(letters, 0);
    m.muted = false;
    send_control(&m, 1, 0);
    pass_time(&m, 5000);
    letters_end(&m);
}

/* The connection for messages stands a little longer than the association. */
static void
what_is_for_another_incarnation_is_not_sent_to_the_one_that_is_connected(void)
{
    static mesh m;
    letters_start(&m, 77);
    tell_actor(&m, 0, 1);
    pass_time(&m, 1000);
    letters = misnamed = wrong_reasons = 0; /* there was no node */
    trpi_peer *peer = peer_pinned(&m, 0, 1);
    UNIT_REQUIRE(peer->lanes[TRPI_LANE_ORDINARY].conns.out != NULL);
    pthread_mutex_lock(&peer->lock);
    for (trpi_conn *conn = peer->conns; conn != NULL; conn = conn->peer_next) {
        if (conn->lane == TRPI_LANE_CONTROL) {
            trpi_conn_close(conn);
        }
    }
    pthread_mutex_unlock(&peer->lock);
    for (int i = 0; i < 100 && peer->assoc.state == TRPI_ASSOC_ACTIVE; i++) {
        trpi_system_pass(m.system[0], 1);
    }
    UNIT_EQUAL(peer->assoc.state, TRPI_ASSOC_GATED);
    UNIT_TRUE(peer->lanes[TRPI_LANE_ORDINARY].conns.out != NULL);
    reason_due = TRP_DEAD_STALE;
    told.slot = 5;
    trp_system_tell(m.system[0], told, &trp_string_type, "x", 1);
    pass_time(&m, 5000);
    UNIT_EQUAL(active_of(&m, 0), 1);
    UNIT_EQUAL(letters, 1);
    UNIT_EQUAL(misnamed + wrong_reasons, 0);
    trpi_peer_unpin(peer);
    mesh_end(&m);
}

enum { BLOCKS = 256, BLOCK_BYTES = 16384, BLOCKS_A_WRITE = TRPI_WRITE_BYTES_MAX / BLOCK_BYTES };

static uint32_t taken;

static trp_err
taker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    taken += trp_msg_bytes(msg) == BLOCK_BYTES;
    return TRP_OK;
}
static const trp_behaviour taker = { .size = sizeof(trp_behaviour),
                                     .name = "taker",
                                     .receive = taker_receive };

/* Several writes to the network, and more than the mark of a lane. */
static void
blocks_tell(mesh *m)
{
    static const uint8_t block[BLOCK_BYTES];
    for (int i = 0; i < BLOCKS; i++) {
        trp_system_tell(m->system[0], told, &trp_bytes_type, block, sizeof block);
    }
}

/* ES-03: Only what was given to the network when the connection broke may have arrived, and may
 * not. */
static void
what_a_broken_connection_had_not_sent_yet_is_dead_letters(void)
{
    static mesh m;
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;
    taken = 0;
    letters_start(&m, 0);
    UNIT_REQUIRE(trp_system_spawn(m.system[1], &taker, &options, &ref) == TRP_OK);
    told.slot = ref.slot;
    told.generation = ref.generation;
    reason_due = TRP_DEAD_NOT_CONNECTED;
    m.cut_at = 2;
    blocks_tell(&m);
    pass_time(&m, 10000);
    UNIT_EQUAL(m.cut_at, 0);
    UNIT_TRUE(taken > 0);
    UNIT_TRUE(letters > 0);
    UNIT_TRUE(taken + letters < BLOCKS);
    UNIT_TRUE(taken + letters >= BLOCKS - BLOCKS_A_WRITE);
    UNIT_EQUAL(misnamed + wrong_reasons, 0);
    mesh_end(&m);
}

enum { ROUNDS = 2000 };

static uint32_t rounds;

/* A message to the node in each turn. */
static trp_err
chatter_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &trp_string_type) && rounds < ROUNDS) {
        rounds++;
        trp_tell(ctx, told, &trp_i64_type, &(int64_t){ 1 }, sizeof(int64_t));
        trp_tell(ctx, trp_self(ctx), &trp_string_type, "x", 1);
    }
    return TRP_OK;
}
static const trp_behaviour chatter = { .size = sizeof(trp_behaviour),
                                       .name = "chatter",
                                       .receive = chatter_receive };

/* The lane was above its mark when its node died; then its messages were given up. */
static void
nobody_is_slowed_down_by_a_lane_that_was_given_up(void)
{
    static mesh m;
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;
    rounds = 0;
    letters_start(&m, 77);
    m.muted = true;
    told.slot = 5;
    reason_due = TRP_DEAD_NOT_CONNECTED;
    blocks_tell(&m);
    pass_time(&m, MINUTE_MS);
    UNIT_EQUAL(letters, BLOCKS);
    UNIT_REQUIRE(trp_system_spawn(m.system[0], &chatter, &options, &ref) == TRP_OK);
    trp_system_tell(m.system[0], ref, &trp_string_type, "x", 1);
    pass_time(&m, 100);
    UNIT_EQUAL(rounds, ROUNDS);
    mesh_end(&m);
}

static uint32_t answers;
static trp_err answered;

static trp_err
note_answer(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    (void)ctx;
    (void)state;
    (void)arg;
    (void)reply;
    answers++;
    answered = err;
    return TRP_OK;
}

static trp_err
inquirer_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    return trp_msg_is(msg, &trp_string_type)
               ? trp_ask(ctx, asked, &trp_string_type, "x", 1, 10 * MINUTE_MS, note_answer, NULL)
               : TRP_OK;
}
static const trp_behaviour inquirer = { .size = sizeof(trp_behaviour),
                                        .name = "inquirer",
                                        .receive = inquirer_receive };

/* ES-03: By the name in the dead letter its asker is found. */
static void
who_asks_an_incarnation_that_is_not_met_is_told_when_that_is_given_up(void)
{
    static mesh m;
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;
    answers = 0;
    letters_start(&m, 77);
    asked = (trp_ref){ told.node, 5, 7, 0 };
    m.muted = true;
    UNIT_REQUIRE(trp_system_spawn(m.system[0], &inquirer, &options, &ref) == TRP_OK);
    trp_system_tell(m.system[0], ref, &trp_string_type, "x", 1);
    pass_time(&m, MINUTE_MS);
    UNIT_EQUAL(answers, 1);
    UNIT_EQUAL(answered, TRP_ECONN);
    mesh_end(&m);
}

UNIT_BEGIN("idle_sim")
UNIT(what_an_idle_node_sends_does_not_grow_with_its_associations)
UNIT(a_link_that_died_at_rest_is_found_by_who_uses_it)
UNIT(a_link_that_died_at_rest_is_found_though_nobody_uses_it)
UNIT(a_link_that_died_behind_a_message_is_found_though_nobody_uses_it)
UNIT(a_link_that_is_used_now_and_then_lives)
UNIT(a_node_gets_a_number_with_the_first_message_only)
UNIT(who_said_goodbye_is_forgotten_in_the_end)
UNIT(who_was_forgotten_and_is_met_again_is_understood)
UNIT(a_node_that_is_connected_twice_has_one_pin)
UNIT(who_was_refused_for_a_promise_hears_when_it_is_broken)
UNIT(who_finds_no_number_here_is_not_listened_to)
UNIT(a_dead_letter_names_the_incarnation_that_it_was_for)
UNIT(what_waited_for_a_dead_incarnation_names_it_and_not_its_successor)
UNIT(what_waited_for_an_incarnation_that_was_never_met_names_it)
UNIT(what_is_for_another_incarnation_is_not_sent_to_the_one_that_is_connected)
UNIT(what_a_broken_connection_had_not_sent_yet_is_dead_letters)
UNIT(nobody_is_slowed_down_by_a_lane_that_was_given_up)
UNIT(who_asks_an_incarnation_that_is_not_met_is_told_when_that_is_given_up)
UNIT_END
