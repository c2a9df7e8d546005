/* full_lane_test.c - trp_try_tell() towards another node: refused while the lane is full, told when
 * there is room, nothing lost.
 */
#include <pthread.h>

#include <troupe/mailbox.h>

#include "tests/unit/remote/slow.h"

#include "remote/association/peer.h"
#include "remote/association/route.h"

#define TELLS 60000
#define LANE_BYTES 262144u
#define ADMIT_BYTES (LANE_BYTES / 4)
#define I64_BYTES (TRPI_FRAME_HEADER_BYTES + TRPI_USER_FIXED_BYTES + 8)

static _Atomic int64_t refusals, readies;
static trp_ref target;

/* Tells until it is refused; continues when it is notified. */
static trp_err
eager_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t *number = state;
    if (trp_msg_is(msg, &trp_mailbox_ready_type)) {
        const trp_mailbox_ready *ready = trp_msg_payload(msg);
        UNIT_TRUE(trp_ref_equal(ready->ref, target));
        atomic_fetch_add(&readies, 1);
    }
    while (*number < TELLS) {
        int64_t next = *number + 1;
        if (trp_try_tell(ctx, target, &trp_i64_type, &next, sizeof next) != TRP_OK) {
            atomic_fetch_add(&refusals, 1);
            break;
        }
        *number = next;
        atomic_store(&slow_told, next);
    }
    return TRP_OK;
}
static const trp_behaviour eager = TRP_BEHAVIOUR_INIT("eager", int64_t, eager_receive);

static void
counters_reset(void)
{
    slow_reset();
    atomic_store(&refusals, 0);
    atomic_store(&readies, 0);
}

static void
eager_start(pair *p)
{
    int64_t go = 0;
    trp_ref ref = pair_spawn(p->system[0], &eager, "eager", NULL, NULL, 0);
    trp_system_tell(p->system[0], ref, &trp_i64_type, &go, sizeof go);
}

/* Back-pressure (notify): towards a slow receiver on another node nothing is lost, although the
 * lane is small */
static void
who_heeds_refusals_loses_nothing(void)
{
    pair p;
    trpi_remote_options options = { .lane_bytes_max = LANE_BYTES,
                                    .receiver_bytes_max = 8u << 20,
                                    .receivers_bytes_max = 8u << 20 };
    counters_reset();
    pair_start(&p, false, &options);
    target = slow_start(&p);
    eager_start(&p);
    UNIT_WAIT(atomic_load(&refusals) >= 1, 60000);
    atomic_store(&slow_gate_open, true);
    UNIT_WAIT(atomic_load(&slow_handled) == TELLS, 60000);
    UNIT_TRUE(atomic_load(&slow_in_order));
    UNIT_TRUE(atomic_load(&readies) >= 1);
    UNIT_TRUE(atomic_load(&readies) <= atomic_load(&refusals));
    trp_system_stats stats = { .size = sizeof stats };
    trp_system_stats_get(p.system[0], &stats);
    UNIT_EQUAL(stats.dead_letters[TRP_DEAD_LANE_FULL], 0);
    pair_end(&p);
}

/* A node that does not answer: messages to it stay in the lane. */
static uint32_t
silent_node(pair *p)
{
    trpi_node_id id;
    uint32_t node = 0;
    memset(&id, 0, sizeof id);
    id.address = *trpi_remote_address(p->remote[1]);
    id.uid = 77;
    (void)snprintf(id.address.host, sizeof id.address.host, "nowhere");
    UNIT_REQUIRE(trpi_node_intern(p->system[0], &id, &node) == TRP_OK);
    return node;
}

/* At the limit and one past it: bytes in the lane and reserved ones count. */
static void
a_lane_admits_up_to_its_high_water_mark(void)
{
    pair p;
    trpi_remote_options options = { .lane_bytes_max = LANE_BYTES, .handshake_timeout_ms = 60000 };
    counters_reset();
    pair_start(&p, true, &options);
    target = (trp_ref){ silent_node(&p), 5, 7, 0 };
    eager_start(&p);
    UNIT_WAIT(atomic_load(&refusals) == 1, 60000);
    int64_t most = ADMIT_BYTES / I64_BYTES;
    int64_t manifest = 8 + TRPI_FRAME_HEADER_BYTES + TRP_TYPE_NAME_BYTES_MAX;
    UNIT_TRUE(atomic_load(&slow_told) <= most);
    UNIT_TRUE(atomic_load(&slow_told) >= most - manifest / I64_BYTES - 1);
    UNIT_EQUAL(atomic_load(&readies), 0);
    uint8_t big[ADMIT_BYTES] = { 0 };
    /* a sender outside of actors is not notified */
    UNIT_EQUAL(trp_system_try_tell(p.system[0], target, &trp_bytes_type, big, sizeof big),
               TRP_EAGAIN);
    /* the end of the node ends the wait: the rest are dead letters */
    trpi_node_terminated(p.system[0], target.node, TRP_DEAD_QUARANTINED);
    UNIT_WAIT(atomic_load(&slow_told) == TELLS, 60000);
    UNIT_EQUAL(atomic_load(&readies), 1);
    UNIT_EQUAL(atomic_load(&refusals), 1);
    trp_system_stats stats = { .size = sizeof stats };
    trp_system_stats_get(p.system[0], &stats);
    UNIT_TRUE(stats.dead_letters[TRP_DEAD_QUARANTINED] >= (uint64_t)(TELLS - most));
    pair_end(&p);
}

/* ---- between two counts ---------------------------------------------------------------------- */

static atomic_bool one_is_told;

static void *
one_teller(void *arg)
{
    pair *p = arg;
    int64_t number = 1;
    trp_err err = trp_system_try_tell(p->system[0], target, &trp_i64_type, &number, sizeof number);
    UNIT_EQUAL(err, TRP_OK);
    atomic_store(&one_is_told, true);
    return NULL;
}

/* Bytes that move from reserved to queued are counted in both for a moment, which must not refuse a
 * message. */
static void
what_is_handed_over_is_not_counted_twice(void)
{
    pair p;
    pthread_t thread;
    trpi_peer *peer = NULL;
    trpi_remote_options options = { .lane_bytes_max = LANE_BYTES, .handshake_timeout_ms = 60000 };
    static const uint8_t most_of_it[ADMIT_BYTES * 3 / 4] = { 0 };
    pair_start(&p, true, &options);
    uint32_t node = silent_node(&p);
    target = (trp_ref){ node, 5, 7, 0 };
    UNIT_REQUIRE(trp_system_try_tell(p.system[0], target, &trp_bytes_type, most_of_it,
                                     sizeof most_of_it) == TRP_OK);
    UNIT_REQUIRE(trpi_peer_get(p.remote[0], &trpi_node_id_get(p.system[0], node)->address, false,
                               &peer) == TRP_OK);
    UNIT_WAIT(atomic_load(&peer->reserved) == 0, 60000);
    atomic_store(&one_is_told, false);
    pthread_mutex_lock(&peer->lock); /* as a hand-over does */
    atomic_fetch_add(&peer->reserved, sizeof most_of_it);
    UNIT_REQUIRE(pthread_create(&thread, NULL, one_teller, &p) == 0);
    UNIT_WAIT(atomic_load(&peer->reserved) > sizeof most_of_it || atomic_load(&one_is_told), 60000);
    atomic_fetch_sub(&peer->reserved, sizeof most_of_it);
    pthread_mutex_unlock(&peer->lock);
    pthread_join(thread, NULL);
    pair_end(&p);
}

/* A message that is larger than the mark is accepted by an empty lane. */
static void
an_empty_lane_takes_a_message_of_any_size(void)
{
    pair p;
    trpi_remote_options options = { .lane_bytes_max = LANE_BYTES, .handshake_timeout_ms = 60000 };
    static const uint8_t big[ADMIT_BYTES + 1] = { 0 };
    counters_reset();
    pair_start(&p, true, &options);
    target = (trp_ref){ silent_node(&p), 5, 7, 0 };
    UNIT_EQUAL(trp_system_try_tell(p.system[0], target, &trp_bytes_type, big, sizeof big), TRP_OK);
    UNIT_EQUAL(trp_system_try_tell(p.system[0], target, &trp_bytes_type, big, 1), TRP_EAGAIN);
    pair_end(&p);
}

/* Messages that found no connection in time make room, and the waiting senders are notified. */
static void
a_lane_that_gives_up_makes_room(void)
{
    pair p;
    trpi_remote_options options = { .lane_bytes_max = LANE_BYTES, .handshake_timeout_ms = 500 };
    counters_reset();
    pair_start(&p, true, &options);
    target = (trp_ref){ silent_node(&p), 5, 7, 0 };
    eager_start(&p);
    UNIT_WAIT(atomic_load(&refusals) >= 1, 60000);
    UNIT_WAIT(atomic_load(&readies) >= 1 && atomic_load(&refusals) >= 2, 60000);
    pair_end(&p);
}

/* ---- many in one frame ----------------------------------------------------------------------- */

static uint64_t
frames_for_a_flood(uint32_t features_off)
{
    pair p;
    trpi_remote_options options = { .features_off = features_off };
    trpi_remote_stats stats;
    counters_reset();
    atomic_store(&slow_gate_open, true);
    pair_start(&p, false, &options);
    target = slow_start(&p);
    eager_start(&p);
    UNIT_WAIT(atomic_load(&slow_handled) == TELLS, 60000);
    UNIT_TRUE(atomic_load(&slow_in_order));
    trpi_remote_stats_get(p.remote[1], &stats);
    UNIT_EQUAL(stats.decode_errors, 0);
    pair_end(&p);
    return stats.frames_in;
}

/* Messages of one turn from one sender to one receiver share frames; a peer of an earlier minor
 * version gets single frames. */
static void
messages_share_frames_with_who_takes_that(void)
{
    UNIT_TRUE(frames_for_a_flood(0) < TELLS / 2);
    UNIT_TRUE(frames_for_a_flood(TRPI_FEATURE_MANY) >= TELLS);
}

/* Count the messages that wait in the lane, and their frames. */
static uint64_t
messages_in(trpi_peer *peer, enum trpi_lane lane, uint64_t *ret_frames)
{
    uint64_t messages = 0;
    *ret_frames = 0;
    pthread_mutex_lock(&peer->lock);
    const trpi_buffer *pending = &peer->lanes[lane].queue.frames;
    for (size_t at = 0; at < pending->count;) {
        trpi_frame frame;
        trpi_message message;
        const uint8_t *payload;
        size_t bytes;
        trpi_frame_header_decode(pending->data + at, &frame);
        at += TRPI_FRAME_HEADER_BYTES + frame.bytes;
        bool many = frame.kind == TRPI_FRAME_MANY && trpi_message_peek(&frame, &message);
        *ret_frames += many || frame.kind == TRPI_FRAME_USER;
        messages += frame.kind == TRPI_FRAME_USER;
        while (many && trpi_many_next(&message, &payload, &bytes)) {
            messages++;
        }
    }
    pthread_mutex_unlock(&peer->lock);
    return messages;
}

/* The messages of unsent MANY frames become dead letters one by one. */
static void
messages_of_a_shared_frame_die_one_by_one(void)
{
    pair p;
    uint64_t frames = 0;
    trpi_peer *peer = NULL;
    trpi_remote_options options = { .lane_bytes_max = LANE_BYTES, .handshake_timeout_ms = 60000 };
    counters_reset();
    pair_start(&p, true, &options);
    target = slow_start(&p);
    UNIT_REQUIRE(trpi_peer_get(p.remote[0], trpi_remote_address(p.remote[1]), false, &peer) ==
                 TRP_OK);
    trpi_mem_network_thread_stop(p.network); /* all stays in the lane, except a first write */
    eager_start(&p);
    /* shared frames take less than the reserved room: the sender is notified again, and fills the
     * lane */
    UNIT_WAIT(atomic_load(&refusals) == atomic_load(&readies) + 1 &&
                  atomic_load(&peer->reserved) == 0 &&
                  atomic_load(&peer->lanes[TRPI_LANE_ORDINARY].queue.bytes) > ADMIT_BYTES / 2,
              60000);
    uint64_t messages = messages_in(peer, TRPI_LANE_ORDINARY, &frames);
    uint64_t rest = (uint64_t)(TELLS - atomic_load(&slow_told));
    UNIT_TRUE(frames > 0 && frames < messages / 4);
    trpi_peer_quarantine(peer, pair_uid(&p, 1), "test");
    trp_system_stats stats = { .size = sizeof stats };
    UNIT_WAIT((trp_system_stats_get(p.system[0], &stats),
               stats.dead_letters[TRP_DEAD_QUARANTINED] >= messages + rest),
              60000);
    UNIT_TRUE(stats.dead_letters[TRP_DEAD_QUARANTINED] <= TELLS);
    UNIT_EQUAL(atomic_load(&slow_told), TELLS);
    UNIT_REQUIRE(trpi_mem_network_thread_start(p.network) == TRP_OK);
    atomic_store(&slow_gate_open, true);
    pair_end(&p);
}

/* Routes of several incarnations of one address, one of which is freed while the others are
 * notified. */
static void
all_routes_are_told_that_there_is_room_while_some_go(void)
{
    enum { ROUTES = 40, AT_ONCE = 16 };
    static trpi_route routes[ROUTES];
    static trpi_peer peer;
    uint32_t nodes[AT_ONCE], count = 0, told[ROUTES] = { 0 };
    for (uint32_t i = 0; i < ROUTES; i++) {
        routes[i].node = i;
        routes[i].next = i + 1 < ROUTES ? &routes[i + 1] : NULL;
    }
    peer.routes = &routes[0];
    do {
        count = trpi_routes_not_told(&peer, 1, nodes, AT_ONCE);
        for (uint32_t i = 0; i < count; i++) {
            told[nodes[i]]++;
        }
        peer.routes = peer.routes->next; /* it has ended */
    } while (count == AT_ONCE);
    for (uint32_t i = 0; i < ROUTES; i++) {
        UNIT_EQUAL(told[i], 1);
    }
    UNIT_EQUAL(trpi_routes_not_told(&peer, 1, nodes, AT_ONCE), 0);
    UNIT_EQUAL(trpi_routes_not_told(&peer, 2, nodes, AT_ONCE), AT_ONCE); /* there is room again */
}

UNIT_BEGIN("full_lane")
UNIT(who_heeds_refusals_loses_nothing)
UNIT(a_lane_admits_up_to_its_high_water_mark)
UNIT(what_is_handed_over_is_not_counted_twice)
UNIT(an_empty_lane_takes_a_message_of_any_size)
UNIT(a_lane_that_gives_up_makes_room)
UNIT(all_routes_are_told_that_there_is_room_while_some_go)
UNIT(messages_share_frames_with_who_takes_that)
UNIT(messages_of_a_shared_frame_die_one_by_one)
UNIT_END
