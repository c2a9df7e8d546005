/* incarnation_test.c - several incarnations of one address: which one is meant, and which has
 * ended. */
#include "remote/association/peer.h"
#include "tests/unit/remote/pair.h"

static pair p;

static void
network_unplug(void)
{
    trpi_mem_network_fault_set(p.network, pair_cut_all, NULL);
    trpi_mem_network_cut(p.network, NULL, NULL);
    UNIT_WAIT(strcmp(pair_state(&p, 0), "active") != 0, 60000);
}

static void
network_plug(void)
{
    trpi_mem_network_fault_set(p.network, NULL, NULL);
}

/* ---- watching, by slot of the watched one ---------------------------------------------------- */

typedef struct end {
    trp_ref who;
    bool address, confirmed;
} end;
static end ends[16];
static _Atomic uint32_t ends_count;
static _Atomic uint32_t watches;

static trp_err
watcher_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &trp_terminated_type)) {
        const trp_terminated *what = trp_msg_payload(msg);
        uint32_t at = atomic_load(&ends_count);
        if (at < sizeof ends / sizeof ends[0]) {
            ends[at] = (end){ what->ref, what->address_terminated, what->existence_confirmed };
            atomic_store(&ends_count, at + 1);
        }
        return TRP_OK;
    }
    trp_ref ref;
    memcpy(&ref, trp_msg_payload(msg), sizeof ref);
    trp_err err = trp_watch(ctx, ref);
    atomic_fetch_add(&watches, 1);
    return err;
}
static const trp_behaviour watcher = TRP_BEHAVIOUR_INIT("watcher", char, watcher_receive);

static trp_ref who;

static void
systems_begin(const trpi_remote_options *options)
{
    pair_start(&p, true, options);
    atomic_store(&ends_count, 0);
    atomic_store(&watches, 0);
    who = pair_spawn(p.system[0], &watcher, "watcher", NULL, NULL, 0);
}

static void
ref_watch(trp_ref ref)
{
    uint32_t before = atomic_load(&watches);
    trp_system_tell(p.system[0], who, &trp_bytes_type, &ref, sizeof ref);
    UNIT_WAIT(atomic_load(&watches) == before + 1, 60000);
}

static const end *
end_of(trp_ref ref)
{
    for (uint32_t i = 0; i < atomic_load(&ends_count); i++) {
        if (trp_ref_equal(ends[i].who, ref)) {
            return &ends[i];
        }
    }
    return NULL;
}

/* Return side 0's ref of `there`, an actor of side 1 with this uid. */
static trp_ref
ref_abroad(trp_ref there, uint64_t uid)
{
    trpi_node_id id = { *trpi_remote_address(p.remote[1]), uid };
    UNIT_REQUIRE(trpi_node_intern(p.system[0], &id, &there.node) == TRP_OK);
    return there;
}

/* The other side ends without GOODBYE and starts again at its port; gives its new echo. */
static trp_ref
right_again(void)
{
    uint16_t port = trpi_remote_address(p.remote[1])->port;
    pair_end_side(&p, 1);
    p.system[1] = pair_system("right");
    pair_remote(&p, 1, NULL, port);
    trp_ref echo = pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0);
    return ref_abroad(echo, pair_uid(&p, 1));
}

static trp_ref
right_first(void)
{
    char path[TRP_PATH_BYTES_MAX];
    trp_ref ref = TRP_REF_NONE;
    pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0);
    UNIT_WAIT(trp_system_resolve(p.system[0], pair_path(&p, 1, "/user/echo", path, sizeof path),
                                 10000, &ref) == TRP_OK,
              60000); /* handshakes have short timeouts here */
    return ref;
}

/* REMOTE-41 REMOTE-09, RemoteNodeShutdownAndComesBackSpec: another node named the new incarnation
 * before its handshake */
static void
a_watch_of_a_newer_incarnation_while_disconnected_reaches_it(void)
{
    systems_begin(NULL);
    trp_ref first = right_first();
    ref_watch(first);
    network_unplug();
    trp_system_stop_actor(p.system[0], first); /* unacknowledged: the first has the stream */
    trp_ref second = right_again();
    ref_watch(second);
    UNIT_WAIT(trpi_node_is_watched(p.system[0], second.node), 60000);
    network_plug();
    UNIT_WAIT(end_of(first) != NULL, 60000);
    UNIT_TRUE(end_of(first) != NULL && end_of(first)->address);
    UNIT_TRUE(end_of(second) == NULL); /* told only when it ends */
    trp_system_stop_actor(p.system[0], second);
    UNIT_WAIT(end_of(second) != NULL, 60000);
    UNIT_TRUE(end_of(second) != NULL && end_of(second)->confirmed && !end_of(second)->address);
    pair_end(&p);
    UNIT_EQUAL(atomic_load(&ends_count), 2);
}

/* REMOTE-41: the stream of system messages of an incarnation that comes back continues */
static void
a_watch_of_a_stranger_leaves_the_stream_of_the_present_one_alone(void)
{
    systems_begin(NULL);
    trp_ref echo = right_first();
    ref_watch(echo);
    UNIT_WAIT(trpi_node_is_watched(p.system[0], echo.node), 60000);
    for (int i = 0; i < 3; i++) { /* so that the stream from there is not at its beginning */
        trp_ref other = pair_spawn(p.system[1], &pair_echo, NULL, NULL, NULL, 0);
        other = ref_abroad(other, pair_uid(&p, 1));
        ref_watch(other);
        trp_system_stop_actor(p.system[0], other);
        UNIT_WAIT(end_of(other) != NULL, 60000);
    }
    network_unplug();
    trp_ref stranger = ref_abroad(echo, 1000);
    ref_watch(stranger);
    network_plug();
    UNIT_WAIT(end_of(stranger) != NULL, 60000); /* not it, but echo's node answers */
    UNIT_TRUE(end_of(stranger) != NULL && end_of(stranger)->address);
    UNIT_TRUE(end_of(echo) == NULL);
    trp_system_stop_actor(p.system[0], echo);
    UNIT_WAIT(end_of(echo) != NULL, 60000);
    UNIT_TRUE(end_of(echo) != NULL && end_of(echo)->confirmed);
    pair_end(&p);
    UNIT_EQUAL(atomic_load(&ends_count), 5);
}

/* REMOTE-36 REMOTE-41, RemoteNodeShutdownAndComesBackSpec: state of the previous incarnation does
 * not count for the next one, also when that was watched before its handshake */
static void
a_new_incarnation_that_was_watched_before_it_was_met_begins_anew(void)
{
    trpi_remote_stats stats;
    systems_begin(NULL);
    trp_ref first = right_first();
    network_unplug();
    trpi_node_id old = *trpi_system_self(p.system[1]);
    trpi_remote_quarantine(p.remote[0], &old, "test");
    trp_ref second = right_again();
    ref_watch(second);
    network_plug();
    UNIT_WAIT(trpi_node_is_watched(p.system[0], second.node), 60000);
    trp_system_stop_actor(p.system[0], second);
    UNIT_WAIT(end_of(second) != NULL, 60000);
    UNIT_TRUE(end_of(second) != NULL && end_of(second)->confirmed);
    UNIT_TRUE(end_of(first) == NULL); /* it was not watched */
    trpi_remote_stats_get(p.remote[0], &stats);
    UNIT_EQUAL(stats.garbage, 0);
    pair_end(&p);
}

/* WATCH-8 FD-22: no node ever answers at its address, and no other incarnation is proved */
static void
a_watched_incarnation_that_never_shows_itself_is_given_up(void)
{
    trpi_remote_options options = { .handshake_timeout_ms = 700 };
    systems_begin(&options);
    trp_ref first = right_first();
    network_unplug();
    trp_system_stop_actor(p.system[0], first); /* has the stream, and is not watched */
    trp_ref second = ref_abroad(first, 2000);
    ref_watch(second);
    UNIT_WAIT(end_of(second) != NULL, 60000);
    UNIT_TRUE(end_of(second) != NULL && end_of(second)->address);
    network_plug();
    pair_end(&p);
}

/* Side i's state of the other side. */
static trpi_peer *
peer_at(int i)
{
    trpi_peer *peer = NULL;
    UNIT_REQUIRE(trpi_peer_get(p.remote[i], trpi_remote_address(p.remote[1 - i]), false, &peer) ==
                 TRP_OK);
    return peer;
}

/* REMOTE-41: two of one address between two ticks */
static void
too_many_signals_for_two_incarnations_end_both(void)
{
    systems_begin(NULL);
    trp_ref first = right_first();
    network_unplug();
    trp_system_stop_actor(p.system[0], first); /* has the stream */
    trp_ref strangers[] = { ref_abroad(first, 3000), ref_abroad(first, 4000) };
    ref_watch(strangers[0]);
    ref_watch(strangers[1]);
    trpi_peer *peer = peer_at(0);
    UNIT_WAIT(trpi_node_is_watched(p.system[0], strangers[1].node), 60000);
    pthread_mutex_lock(&peer->lock);
    trpi_peer_overflowed(peer, 3000);
    trpi_peer_overflowed(peer, 4000);
    pthread_mutex_unlock(&peer->lock);
    UNIT_WAIT(end_of(strangers[0]) != NULL && end_of(strangers[1]) != NULL, 60000);
    UNIT_TRUE(end_of(first) == NULL);
    network_plug();
    pair_end(&p);
}

/* REMOTE-41: it passed the first look, and the next incarnation shook hands before the second */
static void
a_signal_of_one_that_is_over_takes_no_number_of_the_next(void)
{
    systems_begin(NULL);
    trp_ref echo = right_first();
    trpi_peer *peer = peer_at(1);
    trpi_lane_state *control = &peer->lanes[TRPI_LANE_CONTROL];
    pthread_mutex_lock(&peer->lock);
    ref_watch(echo);
    for (int i = 0; i < 20; i++) { /* long enough for it to stand before our lock, as a rule */
        unit_pause();
    }
    uint64_t expected = peer->redelivery.expected;
    uint64_t uid = atomic_exchange(&peer->proved_uid, 5000);
    pthread_mutex_unlock(&peer->lock);
    pthread_mutex_lock(&control->recv_lock); /* it is through */
    pthread_mutex_lock(&peer->lock);
    UNIT_EQUAL(peer->redelivery.expected, expected);
    atomic_store(&peer->proved_uid, uid);
    pthread_mutex_unlock(&peer->lock);
    pthread_mutex_unlock(&control->recv_lock);
    trp_system_stop_actor(p.system[0], echo); /* both come, in order: the watch once more */
    UNIT_WAIT(end_of(echo) != NULL, 60000);
    UNIT_TRUE(end_of(echo) != NULL && end_of(echo)->confirmed);
    pair_end(&p);
}

/* REMOTE-36: features of an incarnation that has ended do not count for the next one */
static void
a_quarantined_incarnation_agrees_on_nothing(void)
{
    trpi_peer_info info = { 0 };
    size_t count = 0;
    systems_begin(NULL);
    (void)right_first();
    trpi_peer *peer = peer_at(0);
    uint32_t agreed = atomic_load(&peer->agreed.frame_bytes_max);
    trpi_node_id right = *trpi_system_self(p.system[1]);
    trpi_node_id left = *trpi_system_self(p.system[0]);
    trpi_remote_quarantine(p.remote[0], &right, "test");
    UNIT_WAIT(strcmp(pair_state(&p, 1), "active") != 0, 60000);
    p.remote[1]->options.frame_bytes_max = agreed / 2;
    left.uid = 0;
    UNIT_WAIT(((void)trpi_remote_control_send(p.remote[1], &left, TRPI_CHANNEL_GOSSIP, "x", 1),
               trpi_remote_peers(p.remote[1], &info, 1, &count),
               strstr(info.reason, "is quarantined here") != NULL),
              60000);
    UNIT_EQUAL(atomic_load(&peer->agreed.frame_bytes_max), agreed);
    pair_end(&p);
}

/* ---- time without memory --------------------------------------------------------------------- */

static void
never_called(void *arg)
{
    (void)arg;
}

/* Remoting's tick continues when no timer can be allocated: it allocates its timer once. */
static void
the_tick_survives_a_time_without_memory(void)
{
    trpi_remote_options options = { .handshake_timeout_ms = 500 };
    systems_begin(&options);
    trp_ref echo = right_first();
    for (int i = 0; i < 2; i++) { /* a guardian that cannot start would end its system */
        trp_ref guardian;
        UNIT_EQUAL(trp_system_resolve(p.system[i], "/remote", 60000, &guardian), TRP_OK);
    }
    network_unplug();
    trp_system_stop_actor(p.system[0], echo); /* from now on the tick, and it alone, dials */
    /* Take every timer that there is, for longer than some beats, also one that is given back for
     * a moment; nobody finds memory meanwhile. */
    uint64_t until = unit_now_ms() + 1000;
    uint32_t taken = 0;
    while (unit_now_ms() < until) {
        uint64_t id = 0;
        trpi_alloc_fail_after(0);
        taken += trpi_system_after(p.system[0], 3600000, never_called, NULL, &id) == TRP_OK;
    }
    trpi_alloc_fail_after(-1);
    UNIT_TRUE(taken > 0);
    network_plug();
    UNIT_WAIT(strcmp(pair_state(&p, 0), "active") == 0, 60000);
    pair_end(&p);
}

/* A logger may call into remoting, so lines are logged without locks. */
static void
an_end_that_cannot_be_told_is_logged_without_a_lock(void)
{
    systems_begin(NULL);
    (void)right_first();
    trpi_peer *peer = peer_at(0);
    (void)ref_abroad((trp_ref){ 0, 3, 5, 0 }, 7);
    pthread_mutex_lock(&peer->lock);
    trpi_alloc_fail_here_after(0);
    trpi_peer_end_again(peer, 7);
    trpi_alloc_fail_after(-1);
    UNIT_FALSE(pair_logged("were not notified of its termination"));
    pthread_mutex_unlock(&peer->lock);
    UNIT_WAIT(pair_logged("were not notified of its termination peer="), 60000);
    pair_end(&p);
}

/* TRPI_PEERS_MAX, and one past it */
static void
so_many_addresses_are_known_and_not_one_more(void)
{
    static trpi_peer *peers[TRPI_PEERS_MAX];
    trpi_peer *again;
    uint32_t failed = 0;
    pair_start(&p, true, NULL);
    trpi_address address = *trpi_remote_address(p.remote[0]);
    (void)snprintf(address.host, sizeof address.host, "10.0.0.1");
    for (uint32_t i = 0; i < TRPI_PEERS_MAX; i++) {
        address.port = (uint16_t)(i + 1);
        failed += trpi_peer_get(p.remote[0], &address, true, &peers[i]) != TRP_OK;
    }
    UNIT_REQUIRE(failed == 0);
    address.port = (uint16_t)(TRPI_PEERS_MAX + 1);
    UNIT_EQUAL(trpi_peer_get(p.remote[0], &address, true, &again), TRP_ELIMIT);
    address.port = TRPI_PEERS_MAX;
    UNIT_EQUAL(trpi_peer_get(p.remote[0], &address, true, &again), TRP_OK);
    UNIT_TRUE(again == peers[TRPI_PEERS_MAX - 1]);
    trpi_peer_unpin(again);
    for (uint32_t i = 0; i < TRPI_PEERS_MAX; i++) {
        trpi_peer_unpin(peers[i]);
    }
    pair_end(&p);
}

/* Other nodes named it before its handshake. */
static void
a_member_that_calls_counts_for_no_host(void)
{
    trpi_address address[2];
    pair_start(&p, true, NULL);
    for (int i = 0; i < 2; i++) {
        trpi_peer *peer = NULL;
        address[i] = *trpi_remote_address(p.remote[1]);
        address[i].port = (uint16_t)(7001 + i);
        trpi_remote_watch_delegate(p.remote[0], &address[i], i == 0);
        UNIT_EQUAL(trpi_peer_get_caller(p.remote[0], &address[i], 5, &peer), TRP_OK);
        UNIT_EQUAL(peer->shared, i == 1);
        trpi_peer_unpin(peer);
    }
    pair_end(&p);
}

/* A number that was given back, and an address that this transport does not dial. */
static void
who_watches_a_node_that_nobody_reaches_is_told_at_once(void)
{
    trpi_node_id other;
    trp_ref given_back = { 5u << 16 | 60000u, 3, 5, 0 }, odd = { 0, 3, 5, 0 };
    systems_begin(NULL);
    ref_watch(given_back);
    UNIT_WAIT(end_of(given_back) != NULL, 60000);
    UNIT_FALSE(end_of(given_back)->confirmed);
    memset(&other, 0, sizeof other);
    UNIT_EQUAL(trpi_address_parse("troupe.other://x@h:1", &other.address, NULL, NULL), TRP_OK);
    other.uid = 9;
    UNIT_REQUIRE(trpi_node_intern(p.system[0], &other, &odd.node) == TRP_OK);
    ref_watch(odd);
    UNIT_WAIT(end_of(odd) != NULL, 60000);
    pair_end(&p);
}

UNIT_BEGIN("incarnation")
UNIT(a_watch_of_a_newer_incarnation_while_disconnected_reaches_it)
UNIT(a_watch_of_a_stranger_leaves_the_stream_of_the_present_one_alone)
UNIT(a_new_incarnation_that_was_watched_before_it_was_met_begins_anew)
UNIT(a_watched_incarnation_that_never_shows_itself_is_given_up)
UNIT(too_many_signals_for_two_incarnations_end_both)
UNIT(a_signal_of_one_that_is_over_takes_no_number_of_the_next)
UNIT(a_quarantined_incarnation_agrees_on_nothing)
UNIT(the_tick_survives_a_time_without_memory)
UNIT(an_end_that_cannot_be_told_is_logged_without_a_lock)
UNIT(so_many_addresses_are_known_and_not_one_more)
UNIT(who_watches_a_node_that_nobody_reaches_is_told_at_once)
UNIT(a_member_that_calls_counts_for_no_host)
UNIT_END
