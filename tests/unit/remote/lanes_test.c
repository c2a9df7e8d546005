/* lanes_test.c - several connections to one peer: order, bounds, idle ends, earlier versions.
 *
 * A teller tells eight receivers by turns, most messages small and some large, so that receivers
 * move to the large lane and back while others' mail is on its way. Each message carries a number
 * that rises for its receiver, and a filling that follows from it.
 */
#include <troupe/mailbox.h>

#include "remote/wire/compress.h"
#include "tests/unit/remote/pair.h"

#include "base/hash.h"
#include "remote/association/conn.h"
#include "remote/association/peer.h"

enum { RECEIVERS = 8, LARGE_BYTES = 20000, THRESHOLD = 8192, BODY_MAX = LARGE_BYTES + 4096 };

static trp_ref receivers[RECEIVERS];
static _Atomic int64_t handled, told, goal, refusals, readies;
static atomic_bool in_order, no_gaps, intact, gate_open;

static trp_err
receiver_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t *last = state, number;
    const uint8_t *payload = trp_msg_payload(msg);
    size_t bytes = trp_msg_bytes(msg);
    (void)ctx;
    while (!atomic_load(&gate_open)) {
        unit_pause();
    }
    memcpy(&number, payload, sizeof number);
    if (number <= *last) {
        atomic_store(&in_order, false);
    }
    if (number != *last + 1) {
        atomic_store(&no_gaps, false);
    }
    for (size_t i = sizeof number; i < bytes; i++) {
        if (payload[i] != (uint8_t)number) {
            atomic_store(&intact, false);
            break;
        }
    }
    *last = number;
    atomic_fetch_add(&handled, 1);
    return TRP_OK;
}
static const trp_behaviour receiver = TRP_BEHAVIOUR_INIT("receiver", int64_t, receiver_receive);

/* A function of the number alone: a message that was refused is the same when it is tried again. */
static size_t
body_of(int64_t number, uint8_t body[BODY_MAX])
{
    uint64_t dice = trpi_hash_u64((uint64_t)number * 0x9e3779b97f4a7c15u);
    int64_t nth = number / RECEIVERS + 1;
    /* some stretches have no large ones, so that receivers leave the large lane again */
    bool large = dice % 24 == 0 && number / 2000 % 2 == 0;
    size_t bytes = (large ? LARGE_BYTES : 16) + (dice >> 32) % (large ? 4000 : 200);
    memset(body, (uint8_t)nth, bytes);
    memcpy(body, &nth, sizeof nth);
    return bytes;
}

static trp_err
teller_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t *next = state;
    static uint8_t body[BODY_MAX];
    if (trp_msg_is(msg, &trp_mailbox_ready_type)) {
        atomic_fetch_add(&readies, 1);
    }
    while (*next < atomic_load(&goal)) {
        size_t bytes = body_of(*next, body);
        if (trp_try_tell(ctx, receivers[*next % RECEIVERS], &trp_bytes_type, body, bytes) !=
            TRP_OK) {
            atomic_fetch_add(&refusals, 1);
            break;
        }
        ++*next;
        atomic_store(&told, *next);
    }
    return TRP_OK;
}
static const trp_behaviour teller = TRP_BEHAVIOUR_INIT("teller", int64_t, teller_receive);

static trp_ref
systems_begin(pair *p, bool mem, const trpi_remote_options *left, const trpi_remote_options *right)
{
    char path[512];
    atomic_store(&handled, 0);
    atomic_store(&told, 0);
    atomic_store(&goal, 0);
    atomic_store(&refusals, 0);
    atomic_store(&readies, 0);
    atomic_store(&in_order, true);
    atomic_store(&no_gaps, true);
    atomic_store(&intact, true);
    atomic_store(&gate_open, true);
    memset(p, 0, sizeof *p);
    p->mem = mem;
    if (mem) {
        UNIT_REQUIRE(trpi_mem_network_new(&p->network) == TRP_OK);
        UNIT_REQUIRE(trpi_mem_network_thread_start(p->network) == TRP_OK);
    }
    for (int i = 0; i < 2; i++) {
        p->system[i] = pair_system(i == 0 ? "left" : "right");
        pair_remote(p, i, i == 0 ? left : right, 0);
    }
    for (int i = 0; i < RECEIVERS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "/user/r%d", i);
        pair_spawn(p->system[1], &receiver, name + 6, NULL, NULL, 0);
        pair_path(p, 1, name, path, sizeof path);
        UNIT_REQUIRE(trp_system_resolve(p->system[0], path, 20000, &receivers[i]) == TRP_OK);
    }
    return pair_spawn(p->system[0], &teller, "teller", NULL, NULL, 0);
}

static void
tell_up_to(pair *p, trp_ref from, int64_t number)
{
    int64_t go = 0;
    atomic_store(&goal, number);
    trp_system_tell(p->system[0], from, &trp_i64_type, &go, sizeof go);
}

static trpi_peer_info
info_of(pair *p, int side)
{
    trpi_peer_info info;
    size_t count = 0;
    memset(&info, 0, sizeof info);
    trpi_remote_peers(p->remote[side], &info, 1, &count);
    return info;
}

static bool
lane_is(pair *p, int side, int lane, const char *state)
{
    trpi_peer_info info = info_of(p, side);
    const char *is = info.lanes[lane].state;
    return is == NULL || state == NULL ? is == state : strcmp(is, state) == 0;
}

static trpi_peer *
peer_of(pair *p, int side)
{
    trpi_peer *peer = NULL;
    UNIT_REQUIRE(trpi_peer_get(p->remote[side], trpi_remote_address(p->remote[1 - side]), false,
                               &peer) == TRP_OK &&
                 peer != NULL);
    return peer;
}

static void
all_right(pair *p)
{
    trp_system_stats stats = { .size = sizeof stats };
    UNIT_TRUE(atomic_load(&in_order));
    UNIT_TRUE(atomic_load(&no_gaps));
    UNIT_TRUE(atomic_load(&intact));
    trp_system_stats_get(p->system[0], &stats);
    UNIT_EQUAL(stats.dead_letters[TRP_DEAD_LANE_FULL], 0);
    trpi_remote_stats remote;
    trpi_remote_stats_get(p->remote[1], &remote);
    UNIT_EQUAL(remote.decode_errors, 0);
}

/* ---- order ----------------------------------------------------------------------------------- */

/* REMOTE-14: Receivers change their lane and back; each gets all of its messages in their order */
static void
a_receiver_keeps_its_order_across_lanes(void)
{
    pair p;
    enum { ALL = 12000 };
    trpi_remote_options options = { .ordinary_lanes = 3, .large_threshold_bytes = THRESHOLD };
    trp_ref from = systems_begin(&p, false, &options, &options);
    UNIT_TRUE(lane_is(&p, 0, TRPI_LANE_LARGE, NULL)); /* opened when needed */
    tell_up_to(&p, from, ALL / 2);
    UNIT_WAIT(atomic_load(&handled) == ALL / 2, 60000);
    UNIT_TRUE(lane_is(&p, 0, TRPI_LANE_LARGE, "open"));
    uint32_t lanes_used = 0;
    for (int i = 0; i < RECEIVERS; i++) {
        lanes_used |= 1u << trpi_lane_of(3, receivers[i].slot);
    }
    for (int lane = TRPI_LANE_ORDINARY + 1; lane < TRPI_LANE_ORDINARY + 3; lane++) {
        UNIT_TRUE(lane_is(&p, 0, lane, (lanes_used >> lane & 1) != 0 ? "open" : NULL));
    }
    UNIT_TRUE(lane_is(&p, 0, TRPI_LANE_ORDINARY + 3, NULL)); /* no more than the setting */
    /* the large lane is quiet: its era ends, and another one begins */
    trpi_peer *peer = peer_of(&p, 0);
    bool used = true;
    uint32_t era = 0;
    UNIT_WAIT((pthread_mutex_lock(&peer->lock), used = peer->large.used, era = peer->large.era,
               pthread_mutex_unlock(&peer->lock), !used),
              60000);
    UNIT_TRUE(era >= 2); /* the first began with the handshake */
    tell_up_to(&p, from, ALL);
    UNIT_WAIT(atomic_load(&handled) == ALL, 60000);
    all_right(&p);
    pair_end(&p);
}

/* REMOTE-14: A lost connection of any lane leaves gaps, never another order, and the large lane
 * goes on */
static void
cuts_leave_gaps_and_keep_the_order(void)
{
    pair p;
    enum { ROUNDS = 8, EACH = 1500 };
    trpi_remote_options options = { .ordinary_lanes = 2,
                                    .large_threshold_bytes = THRESHOLD,
                                    .backoff_min_ms = 1,
                                    .backoff_max_ms = 20 };
    trp_ref from = systems_begin(&p, true, &options, &options);
    for (int round = 1; round <= ROUNDS; round++) {
        tell_up_to(&p, from, round * EACH);
        UNIT_WAIT(atomic_load(&told) >= round * EACH - EACH / 2, 60000);
        trpi_mem_network_cut(p.network, "left", "right");
    }
    UNIT_WAIT(atomic_load(&told) == ROUNDS * EACH, 60000);
    /* every receiver is reached again, by whatever lane it is on */
    trpi_peer *peer = peer_of(&p, 0);
    UNIT_WAIT(atomic_load(&peer->lanes[TRPI_LANE_LARGE].queue.bytes) == 0, 60000);
    for (int i = 1; i <= 2; i++) {
        int64_t before = atomic_load(&handled), now = ROUNDS * EACH + (int64_t)i * 2000;
        tell_up_to(&p, from, now);
        UNIT_WAIT(atomic_load(&told) == now, 60000);
        UNIT_WAIT(atomic_load(&handled) >= before + 1000, 60000);
    }
    UNIT_TRUE(atomic_load(&in_order));
    UNIT_TRUE(atomic_load(&intact));
    pair_end(&p);
}

/* ---- idle ends ------------------------------------------------------------------------------- */

/* An idle lane is closed, by both sides, and opened again: nothing is lost, and the order is kept.
 */
static void
idle_lanes_close_and_open_again(void)
{
    pair p;
    enum { EACH = 1000 };
    trpi_remote_options options = { .ordinary_lanes = 2,
                                    .large_threshold_bytes = THRESHOLD,
                                    .lane_idle_ms = 100 };
    trp_ref from = systems_begin(&p, false, &options, &options);
    trpi_peer *peer = peer_of(&p, 1);
    bool none = false;
    tell_up_to(&p, from, EACH);
    UNIT_WAIT(atomic_load(&handled) == EACH, 60000);
    for (int lane = TRPI_LANE_ORDINARY; lane <= TRPI_LANE_LARGE; lane++) {
        UNIT_WAIT(!lane_is(&p, 0, lane, "open") && !lane_is(&p, 0, lane, "closing"), 60000);
    }
    UNIT_WAIT((pthread_mutex_lock(&peer->lock),
               none = peer->conns != NULL && peer->conns->peer_next == NULL,
               pthread_mutex_unlock(&peer->lock), none),
              60000); /* the control lane's is left */
    UNIT_TRUE(lane_is(&p, 0, TRPI_LANE_CONTROL, "open"));
    UNIT_TEXT(pair_state(&p, 0), "active");
    tell_up_to(&p, from, 2 * EACH);
    UNIT_WAIT(atomic_load(&handled) == 2 * EACH, 60000);
    all_right(&p);
    pair_end(&p);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

/* A peer that does not answer, with an active association: messages to it stay in its lanes. */
static trp_ref
silent_receiver(pair *p, uint32_t slot, trpi_peer **ret_peer)
{
    trpi_node_id id;
    uint32_t node = 0;
    int64_t number = 0;
    memset(&id, 0, sizeof id);
    id.address = *trpi_remote_address(p->remote[1]);
    id.uid = 77;
    (void)snprintf(id.address.host, sizeof id.address.host, "nowhere");
    UNIT_REQUIRE(trpi_node_intern(p->system[0], &id, &node) == TRP_OK);
    trp_ref ref = { node, slot, 7, 0 };
    trp_system_tell(p->system[0], ref, &trp_i64_type, &number, sizeof number);
    UNIT_WAIT(trpi_peer_get(p->remote[0], &id.address, false, ret_peer) == TRP_OK &&
                  atomic_load(&(*ret_peer)->lanes[TRPI_LANE_ORDINARY].queue.bytes) > 0,
              60000);
    pthread_mutex_lock(&(*ret_peer)->lock);
    atomic_store(&(*ret_peer)->agreed.spread, 1);
    pthread_mutex_unlock(&(*ret_peer)->lock);
    return ref;
}

static uint64_t
lane_full(pair *p)
{
    trp_system_stats stats = { .size = sizeof stats };
    trp_system_stats_get(p->system[0], &stats);
    return stats.dead_letters[TRP_DEAD_LANE_FULL];
}

/* A full lane refuses messages or makes them dead letters, at its limit and not before; other lanes
 * do not. */
static void
each_lane_has_its_own_bound(void)
{
    pair p;
    enum { FIT = 4, PAYLOAD = 65536 - TRPI_FRAME_HEADER_BYTES - TRPI_USER_FIXED_BYTES };
    static const uint8_t big[PAYLOAD + 1] = { 0 };
    size_t manifest = TRPI_FRAME_HEADER_BYTES + 8 + strlen(trp_bytes_type.name);
    trpi_remote_options options = { .frame_bytes_max = 65536,
                                    .lane_bytes_max = 1 << 20,
                                    .large_threshold_bytes = THRESHOLD,
                                    .large_lane_bytes_max = (uint32_t)(FIT * 65536 + manifest),
                                    .handshake_timeout_ms = 60000 };
    trpi_peer *peer = NULL;
    systems_begin(&p, true, &options, &options);
    trp_ref other = silent_receiver(&p, 5, &peer), large = { other.node, 6, 7, 0 };
    trpi_lane_state *lane = &peer->lanes[TRPI_LANE_LARGE];
    for (int i = 0; i < FIT; i++) {
        trp_system_tell(p.system[0], large, &trp_bytes_type, big, PAYLOAD);
    }
    UNIT_WAIT(atomic_load(&lane->queue.bytes) == options.large_lane_bytes_max, 60000);
    UNIT_EQUAL(lane_full(&p), 0);
    trp_system_tell(p.system[0], large, &trp_bytes_type, big, 1); /* one past it */
    UNIT_WAIT(lane_full(&p) == 1, 60000);
    UNIT_EQUAL(trp_system_try_tell(p.system[0], large, &trp_bytes_type, big, 1), TRP_EAGAIN);
    UNIT_EQUAL(trp_system_try_tell(p.system[0], other, &trp_bytes_type, big, 1), TRP_OK);
    size_t before = atomic_load(&peer->lanes[TRPI_LANE_ORDINARY].queue.bytes);
    trp_system_tell(p.system[0], other, &trp_bytes_type, big, 100);
    UNIT_WAIT(atomic_load(&peer->lanes[TRPI_LANE_ORDINARY].queue.bytes) > before, 60000);
    UNIT_EQUAL(lane_full(&p), 1);
    UNIT_EQUAL(atomic_load(&lane->queue.bytes), options.large_lane_bytes_max);
    pair_end(&p);
}

/* Room that is reserved on another lane is not taken from this one. */
static void
a_promise_counts_for_a_lane_as_much_as_it_may_promise(void)
{
    pair p;
    trpi_remote_options options = { .frame_bytes_max = 65536,
                                    .lane_bytes_max = 65536,
                                    .large_threshold_bytes = THRESHOLD,
                                    .handshake_timeout_ms = 60000 };
    static const uint8_t some[1000] = { 0 };
    trpi_peer *peer = NULL;
    systems_begin(&p, true, &options, &options);
    trp_ref other = silent_receiver(&p, 5, &peer);
    trpi_lane_state *lane = &peer->lanes[TRPI_LANE_ORDINARY];
    size_t before = atomic_load(&lane->queue.bytes);
    atomic_fetch_add(&peer->reserved, 1 << 20); /* as large messages do */
    trp_system_tell(p.system[0], other, &trp_bytes_type, some, sizeof some);
    UNIT_WAIT(atomic_load(&lane->queue.bytes) > before || lane_full(&p) > 0, 20000);
    UNIT_EQUAL(lane_full(&p), 0);
    atomic_fetch_sub(&peer->reserved, 1 << 20);
    pair_end(&p);
}

/* Two in a run that cannot be sent: the large lane's era ends all the same */
static void
what_cannot_be_sent_does_not_keep_the_large_lane(void)
{
    pair p;
    enum { TOO_LARGE = 70000 };
    static const uint8_t large[TOO_LARGE] = { 0 };
    trpi_remote_options options = { .frame_bytes_max = 65536, .large_threshold_bytes = THRESHOLD };
    trp_system_stats stats = { .size = sizeof stats };
    systems_begin(&p, true, &options, &options);
    trpi_peer *peer = peer_of(&p, 0);
    for (int i = 0; i < 200; i++) {
        trp_system_tell(p.system[0], receivers[i % RECEIVERS], &trp_bytes_type, large, TOO_LARGE);
    }
    UNIT_WAIT(
        (trp_system_stats_get(p.system[0], &stats), stats.dead_letters[TRP_DEAD_TOO_LARGE] == 200),
        20000);
    uint32_t pins = 1;
    UNIT_WAIT((pthread_mutex_lock(&peer->lock), pins = peer->large.pins,
               pthread_mutex_unlock(&peer->lock), pins == 0),
              20000);
    pair_end(&p);
}

/* A sender that was refused by a full lane is notified when there is room, and nothing is lost. */
static void
who_is_refused_on_a_lane_is_told_when_to_go_on(void)
{
    pair p;
    enum { ALL = 4000 };
    trpi_remote_options options = { .ordinary_lanes = 2,
                                    .large_threshold_bytes = THRESHOLD,
                                    .frame_bytes_max = 65536,
                                    .lane_bytes_max = 65536,
                                    .large_lane_bytes_max = 131072,
                                    .receiver_bytes_max = 1u << 20,
                                    .receivers_bytes_max = 4u << 20 }; /* all is told to few */
    trp_ref from = systems_begin(&p, false, &options, &options);
    atomic_store(&gate_open, false);
    tell_up_to(&p, from, ALL);
    UNIT_WAIT(atomic_load(&refusals) >= 1, 60000);
    atomic_store(&gate_open, true);
    UNIT_WAIT(atomic_load(&handled) == ALL, 60000);
    UNIT_TRUE(atomic_load(&readies) >= 1);
    all_right(&p);
    pair_end(&p);
}

/* ---- sorting --------------------------------------------------------------------------------- */

static void
frame_add(trpi_buffer *frames, enum trpi_frame_kind kind, uint32_t slot, uint32_t number)
{
    uint8_t body[TRPI_USER_FIXED_BYTES + 4] = { 0 };
    memcpy(body, &slot, 4); /* both ends are little endian here */
    memcpy(body + TRPI_USER_FIXED_BYTES, &number, 4);
    UNIT_EQUAL(trpi_frame_append(frames, kind, 0, 0, body, sizeof body), TRP_OK);
}

/* Messages that wait for a peer of another version move to other lanes, in order for each
 * recipient. */
static void
what_waits_is_sorted_by_recipient(void)
{
    enum { FRAMES = 400, SLOTS = 20 };
    trpi_buffer frames = { 0 }, sorted[TRPI_LANE_COUNT], back[TRPI_LANE_COUNT], lost = { 0 };
    memset(sorted, 0, sizeof sorted);
    memset(back, 0, sizeof back);
    frame_add(&frames, TRPI_FRAME_FENCE, 0, 0); /* belongs to the lane, not to its frames */
    UNIT_EQUAL(trpi_manifest_append(&frames, 1, "one.type"), TRP_OK);
    for (uint32_t i = 0; i < FRAMES; i++) {
        frame_add(&frames, TRPI_FRAME_USER, i % SLOTS, i);
    }
    uint8_t announced[TRPI_ANNOUNCED_BYTES] = { 0 }, again[TRPI_ANNOUNCED_BYTES] = { 0 };
    trpi_frames_sort(4, &frames, sorted, announced, &lost);
    int lanes_used = 0;
    uint32_t seen = 0;
    for (int lane = 0; lane < TRPI_LANE_COUNT; lane++) {
        int64_t last[SLOTS];
        memset(last, -1, sizeof last);
        for (size_t at = 0; at < sorted[lane].count;) {
            trpi_frame frame;
            trpi_frame_header_decode(sorted[lane].data + at, &frame);
            UNIT_EQUAL(frame.kind, at == 0 ? TRPI_FRAME_MANIFEST : TRPI_FRAME_USER);
            if (at > 0) {
                uint32_t slot, number;
                memcpy(&slot, frame.body, 4);
                memcpy(&number, frame.body + TRPI_USER_FIXED_BYTES, 4);
                UNIT_EQUAL(trpi_lane_of(4, slot), lane);
                UNIT_TRUE((int64_t)number > last[slot]);
                last[slot] = number;
                seen++;
            }
            at += TRPI_FRAME_HEADER_BYTES + frame.bytes;
        }
        lanes_used += sorted[lane].count > 0;
        trpi_frames_sort(0, &sorted[lane], back, again, &lost); /* and all into one again */
        trpi_buffer_fini(&sorted[lane]);
    }
    UNIT_EQUAL(seen, FRAMES);
    UNIT_EQUAL(lanes_used, 4);
    UNIT_EQUAL(lost.count, 0);
    /* with one manifest: names do not become more each time */
    UNIT_EQUAL(back[TRPI_LANE_ORDINARY].count,
               frames.count - TRPI_FRAME_HEADER_BYTES - TRPI_USER_FIXED_BYTES - 4);
    for (int lane = 0; lane < TRPI_LANE_COUNT; lane++) {
        UNIT_TRUE((back[lane].count > 0) == (lane == TRPI_LANE_ORDINARY));
        trpi_buffer_fini(&back[lane]);
    }
    trpi_buffer_fini(&frames);
}

/* The fence of one that enters the large lane stands for all of its place: they share a lane */
static void
recipients_of_one_place_share_a_lane(void)
{
    static uint32_t first[TRPI_LARGE_PLACES]; /* a slot of each place, plus one */
    uint32_t shared = 0;
    for (uint32_t slot = 0; slot < 2 * TRPI_LARGE_PLACES; slot++) {
        uint64_t place = trpi_hash_u64(slot) % TRPI_LARGE_PLACES;
        if (first[place] == 0) {
            first[place] = slot + 1;
            continue;
        }
        for (uint32_t spread = 1; spread <= TRPI_ORDINARY_LANES_MAX; spread++) {
            UNIT_EQUAL(trpi_lane_of(spread, slot), trpi_lane_of(spread, first[place] - 1));
        }
        shared++;
    }
    UNIT_TRUE(shared > 0);
}

/* ---- versions -------------------------------------------------------------------------------- */

/* A peer of an earlier minor version gets only what that has. 1: one lane for all messages, nothing
 * compressed; 2: control frames as large as others. */
static void
versions_meet(const trpi_remote_options *left, const trpi_remote_options *right, uint32_t minor)
{
    pair p;
    enum { ALL = 3000 };
    trp_ref from = systems_begin(&p, false, left, right);
    tell_up_to(&p, from, ALL);
    UNIT_WAIT(atomic_load(&handled) == ALL, 60000);
    all_right(&p);
    for (int side = 0; side < 2; side++) {
        UNIT_EQUAL(info_of(&p, side).minor, minor);
        UNIT_EQUAL((atomic_load(&peer_of(&p, side)->agreed.features) & TRPI_FEATURE_WIDE_CONTROL) ==
                       0,
                   minor < 3);
        UNIT_EQUAL(atomic_load(&peer_of(&p, side)->agreed.features) & TRPI_FEATURE_CREDIT, 0);
        UNIT_TRUE(minor > 1 || lane_is(&p, side, TRPI_LANE_ORDINARY + 1, NULL));
        UNIT_TRUE(minor > 1 || lane_is(&p, side, TRPI_LANE_LARGE, NULL));
        trpi_remote_stats stats;
        trpi_remote_stats_get(p.remote[side], &stats);
        UNIT_EQUAL(stats.frames_skipped, 0); /* no frame that it does not know */
        UNIT_EQUAL(stats.garbage, 0);
    }
    pair_end(&p);
}

static void
peers_of_minor_versions_before_are_served_both_ways(void)
{
    trpi_remote_options now = { .ordinary_lanes = 4,
                                .large_threshold_bytes = THRESHOLD,
                                .lane_idle_ms = 100,
                                .compress = true };
    trpi_remote_options before = now;
    for (before.wire_minor = 1; before.wire_minor <= 3; before.wire_minor++) {
        versions_meet(&now, &before, before.wire_minor);
        versions_meet(&before, &now, before.wire_minor);
    }
}

static uint64_t
bytes_for_a_flood(uint32_t features_off_right, bool compress)
{
    pair p;
    enum { ALL = 2000 };
    trpi_remote_options left = { .large_threshold_bytes = THRESHOLD, .compress = compress };
    trpi_remote_options right = left;
    right.features_off = features_off_right;
    trp_ref from = systems_begin(&p, false, &left, &right);
    tell_up_to(&p, from, ALL);
    UNIT_WAIT(atomic_load(&handled) == ALL, 60000);
    all_right(&p);
    uint64_t bytes = info_of(&p, 1).bytes_in;
    pair_end(&p);
    return bytes;
}

/* Large messages are compressed where both want it, and arrive as they were told */
static void
large_messages_are_compressed_for_who_takes_that(void)
{
    uint64_t plain = bytes_for_a_flood(0, false);
    uint64_t packed = bytes_for_a_flood(0, true);
    uint64_t not_taken = bytes_for_a_flood(TRPI_FEATURE_LZ4, true);
    UNIT_TRUE(not_taken > plain / 2);
    UNIT_TRUE(trpi_compress_is_built() ? packed < plain / 2 : packed > plain / 2);
}

/* ---- frames of a stranger -------------------------------------------------------------------- */

/* Answers to fences that were never sent change nothing. */
static void
a_fence_is_answered_once_and_never_ahead(void)
{
    pair p;
    trpi_remote_options options = { .large_threshold_bytes = THRESHOLD,
                                    .handshake_timeout_ms = 60000 };
    trpi_peer *peer = NULL;
    systems_begin(&p, true, &options, &options);
    (void)silent_receiver(&p, 5, &peer);
    pthread_mutex_lock(&peer->lock);
    trpi_lane_state *lane = &peer->lanes[TRPI_LANE_ORDINARY];
    UNIT_TRUE(lane->fence.due);
    UNIT_EQUAL(trpi_fence_append(peer, TRPI_LANE_ORDINARY), TRP_OK);
    UNIT_EQUAL(trpi_fence_append(peer, TRPI_LANE_ORDINARY), TRP_OK); /* one stands there already */
    UNIT_EQUAL(lane->fence.last, 1);
    UNIT_TRUE(trpi_large_is_held(peer));
    trpi_fence_acked(peer, 1 << 4 | TRPI_LANE_ORDINARY); /* it has not been sent yet */
    UNIT_TRUE(trpi_large_is_held(peer));
    lane->fence.sent = 1;
    trpi_fence_acked(peer, 2 << 4 | TRPI_LANE_ORDINARY);
    trpi_fence_acked(peer, 1 << 4 | (TRPI_LANE_ORDINARY + 1));
    trpi_fence_acked(peer, 1 << 4 | 15); /* no lane */
    UNIT_TRUE(trpi_large_is_held(peer));
    trpi_fence_acked(peer, 1 << 4 | TRPI_LANE_ORDINARY);
    UNIT_TRUE(!trpi_large_is_held(peer));
    pthread_mutex_unlock(&peer->lock);
    pair_end(&p);
}

/* Answers to a peer that sends GOODBYE and does not read are queued only up to their limit. */
static void
goodbyes_of_a_stranger_are_answered_within_bounds(void)
{
    pair p;
    enum { BOUND = 65536, GOODBYES = BOUND / TRPI_FRAME_HEADER_BYTES };
    trpi_remote_options options = { .frame_bytes_max = 65536,
                                    .control_bytes_max = BOUND,
                                    .large_threshold_bytes = THRESHOLD };
    systems_begin(&p, true, &options, &options);
    trpi_peer *peer = peer_of(&p, 0);
    UNIT_WAIT(lane_is(&p, 0, TRPI_LANE_ORDINARY, "open"), 20000);
    pthread_mutex_lock(&peer->lock);
    trpi_conn *conn = peer->lanes[TRPI_LANE_ORDINARY].conns.out;
    UNIT_REQUIRE(conn != NULL);
    for (int i = 0; i < 2 * GOODBYES; i++) {
        trpi_graceful_close_frame(conn, TRPI_FRAME_GOODBYE);
    }
    UNIT_TRUE(conn->write.head.count > BOUND - TRPI_FRAME_HEADER_BYTES);
    UNIT_TRUE(conn->write.head.count <= BOUND + TRPI_FRAME_HEADER_BYTES);
    pthread_mutex_unlock(&peer->lock);
    pair_end(&p);
}

UNIT_BEGIN("lanes")
UNIT(a_receiver_keeps_its_order_across_lanes)
UNIT(cuts_leave_gaps_and_keep_the_order)
UNIT(idle_lanes_close_and_open_again)
UNIT(each_lane_has_its_own_bound)
UNIT(a_promise_counts_for_a_lane_as_much_as_it_may_promise)
UNIT(what_cannot_be_sent_does_not_keep_the_large_lane)
UNIT(who_is_refused_on_a_lane_is_told_when_to_go_on)
UNIT(what_waits_is_sorted_by_recipient)
UNIT(recipients_of_one_place_share_a_lane)
UNIT(peers_of_minor_versions_before_are_served_both_ways)
UNIT(large_messages_are_compressed_for_who_takes_that)
UNIT(a_fence_is_answered_once_and_never_ahead)
UNIT(goodbyes_of_a_stranger_are_answered_within_bounds)
UNIT_END
