/* strangers_test.c - what nodes that are no members can make a node remember, and that it forgets
 * them again; in virtual time, with peers made by hand.
 *
 *     TROUPE_STRANGERS=1000000 tests/sim/strangers_test
 */
#include <malloc.h>

#include "tests/sim/strangers.h"

#ifdef UNIT_SANITIZED
enum { STRANGERS = 20000 };
#else
enum { STRANGERS = 70000 }; /* more than there are numbers of nodes */
#endif
enum { CROWD = 100 };

/* REMOTE-09: Numbers of nodes were used up by one client that restarts often enough. Each is heard;
 * what ended gives back what it held; and a ref to one never names an actor of a later one. */
static void
so_many_come_and_go_and_their_refs_stay_dead(void)
{
    static stranger crowd[CROWD], lanes[CROWD];
    const char *text = getenv("TROUPE_STRANGERS");
    uint32_t count = text != NULL ? (uint32_t)strtoul(text, NULL, 10) : STRANGERS;
    trpi_remote_stats stats;
    size_t peers = 0, bytes_half = 0;
    trpi_peer_info info;
    start((trpi_remote_options){ 0 });
    keep(count + CROWD);
    for (uint32_t i = 0; i < count && kept_count == i; i += CROWD) {
        crowd_call(crowd, CROWD, i);
        crowd_end(crowd, CROWD);
        if (i == count / 2 / CROWD * CROWD) {
            bytes_half = mallinfo2().uordblks;
        }
    }
    UNIT_EQUAL(kept_count, count); /* each of them was heard */
    UNIT_TRUE(mallinfo2().uordblks < bytes_half + (8u << 20));
    trpi_remote_stats_get(t.remote, &stats);
    UNIT_EQUAL(stats.decode_errors + stats.handshakes_failed, 0);
    trpi_remote_peers(t.remote, &info, 1, &peers);
    UNIT_TRUE(peers <= 16384);
    crowd_call(crowd, CROWD, count); /* the present ones, which use numbers of those before */
    UNIT_EQUAL(kept_count, count + CROWD);
    for (uint32_t i = 0; i < CROWD; i++) {
        lane_call(&lanes[i], &crowd[i]);
    }
    pass(40);
    uint64_t before = dead_letters();
    for (uint32_t i = 0; i < count; i++) {
        trp_system_tell(t.system, kept[i], &trp_i64_type, &(int64_t){ 1 }, sizeof(int64_t));
    }
    pass(120000);
    UNIT_EQUAL(dead_letters(), before + count);
    uint32_t answers = 0;
    for (uint32_t i = 0; i < CROWD; i++) {
        answers += lanes[i].answers;
    }
    UNIT_EQUAL(answers, 0);
    for (uint32_t i = 0; i < CROWD; i++) {
        trp_system_tell(t.system, kept[count + i], &trp_i64_type, &(int64_t){ 1 }, sizeof(int64_t));
    }
    pass(100);
    for (uint32_t i = 0; i < CROWD; i++) {
        answers += lanes[i].answers;
        stranger_end(&lanes[i], false);
    }
    UNIT_EQUAL(answers, CROWD);
    pass(20);
    for (uint32_t i = 0; i < CROWD; i++) {
        stranger_free(&lanes[i]);
    }
    crowd_end(crowd, CROWD);
    end();
}

/* The table was filled by 17 connections in 4 s, which named 4,096 nodes each */
static void
nodes_that_strangers_name_leave_room_for_others(void)
{
    enum { NAMERS = 17, NAMES = 4096 };
    static stranger namers[NAMERS];
    stranger late;
    trpi_remote_stats stats;
    start((trpi_remote_options){ 0 });
    keep(NAMERS * NAMES);
    for (uint32_t i = 0; i < NAMERS; i++) {
        stranger_begin(&namers[i], i);
        say_names(&namers[i].first, t.keeper, i * NAMES, NAMES);
        stranger_call(&namers[i]);
        pass(20);
    }
    pass(100);
    UNIT_EQUAL(kept_count, NAMERS * NAMES / NAMED_AT_ONCE);
    crowd_call(&late, 1, 1000);
    UNIT_EQUAL(kept_count, NAMERS * NAMES / NAMED_AT_ONCE + 1);
    trpi_remote_stats_get(t.remote, &stats);
    UNIT_EQUAL(stats.decode_errors, 0);
    trpi_node_id first = third_node(0), last = third_node(NAMERS * NAMES - 1);
    UNIT_EQUAL(trpi_node_find(t.system, &first), 0); /* it gave way */
    UNIT_TRUE(trpi_node_find(t.system, &last) != 0);
    uint64_t before = dead_letters();
    trp_system_tell(t.system, kept[0], &trp_i64_type, &(int64_t){ 1 }, sizeof(int64_t));
    pass(20);
    UNIT_EQUAL(dead_letters(), before + 1);
    for (uint32_t i = 0; i < NAMERS; i++) {
        stranger_end(&namers[i], true);
    }
    crowd_end(&late, 1);
    for (uint32_t i = 0; i < NAMERS; i++) {
        stranger_free(&namers[i]);
    }
    end();
}

/* One at the limit is known, and one past it makes the one forgotten that was named longest ago. */
static void
one_host_names_so_many_nodes_and_with_one_more_the_oldest_is_forgotten(void)
{
    enum { NAMES = 16 };
    stranger s, other;
    trpi_node_id first = third_node(0), second = third_node(1), more = third_node(NAMES);
    start((trpi_remote_options){ .host_nodes_max = NAMES });
    keep(10);
    stranger_begin(&s, 1);
    say_names(&s.first, t.keeper, 0, NAMES);
    stranger_call(&s);
    pass(40);
    UNIT_TRUE(trpi_node_find(t.system, &first) != 0);
    stranger_begin(&other, 2);                      /* of the same host */
    say_message(&other.first, t.keeper, &first, 1); /* is the newest now */
    say_message(&other.first, t.keeper, &more, 1);
    stranger_call(&other);
    pass(40);
    UNIT_EQUAL(kept_count, 3);
    UNIT_TRUE(trpi_node_find(t.system, &more) != 0);
    UNIT_TRUE(trpi_node_find(t.system, &first) == kept[0].node);
    uint64_t before = dead_letters();
    trp_ref gone = { trpi_node_find(t.system, &second), 3, 5, 0 };
    trp_system_tell(t.system, gone, &trp_i64_type, &(int64_t){ 1 }, sizeof(int64_t));
    pass(20); /* at once: no node is dialled */
    UNIT_EQUAL(dead_letters(), before + 1);
    stranger_end(&s, true);
    stranger_end(&other, true);
    pass(40);
    stranger_free(&s);
    stranger_free(&other);
    end();
}

/* Third nodes are numbered when a message is delivered, never for a refused one. */
static void
a_node_that_is_named_in_a_refused_message_gets_no_number(void)
{
    stranger s;
    trpi_node_id one = third_node(1), two = third_node(2), three = third_node(3);
    trp_ref nobody;
    start((trpi_remote_options){ 0 });
    keep(10);
    nobody = (trp_ref){ TRPI_NODE_SELF, t.keeper.slot, t.keeper.generation + 2, 0 };
    stranger_begin(&s, 1);
    say_message(&s.first, nobody, &one, 1);
    size_t at = s.first.count;
    say_message(&s.first, t.keeper, &two, 1);
    s.first.data[at + TRPI_FRAME_HEADER_BYTES + 16] ^= 0x55; /* a type that no node has */
    say_message(&s.first, t.keeper, &three, 1);
    stranger_call(&s);
    pass(100);
    UNIT_EQUAL(trpi_node_find(t.system, &one), 0);
    UNIT_EQUAL(trpi_node_find(t.system, &two), 0);
    UNIT_TRUE(trpi_node_find(t.system, &three) != 0);
    UNIT_EQUAL(kept_count, 1);
    stranger_end(&s, true);
    pass(40);
    stranger_free(&s);
    end();
}

/* REMOTE-53: In untrusted mode a sender lives here or on the peer: no message makes the node dial
 * others. */
static void
in_untrusted_mode_nobody_speaks_for_a_third_node(void)
{
    stranger s;
    trpi_node_id one = third_node(1);
    trpi_remote_stats stats;
    start((trpi_remote_options){ .untrusted = true });
    keep(10);
    stranger_begin(&s, 1);
    say_message(&s.first, t.keeper, &one, 1);
    say_message(&s.first, t.keeper, NULL, 0);
    stranger_call(&s);
    pass(100);
    UNIT_EQUAL(kept_count, 1);
    UNIT_EQUAL(trpi_node_find(t.system, &one), 0);
    trpi_remote_stats_get(t.remote, &stats);
    UNIT_EQUAL(stats.untrusted_dropped, 1);
    stranger_end(&s, true);
    pass(40);
    stranger_free(&s);
    end();
}

/* At the limit, and one past it; members do not count, and nodes that are gone give way. */
static void
so_many_of_one_host_are_let_in_and_not_one_more(void)
{
    enum { PEERS = 8 };
    static stranger crowd[PEERS + 2];
    start((trpi_remote_options){ .host_peers_max = PEERS });
    keep(3 * PEERS);
    crowd_call(crowd, PEERS, 1);
    UNIT_EQUAL(kept_count, PEERS);
    crowd_call(&crowd[PEERS], 1, 100);
    UNIT_EQUAL(kept_count, PEERS);
    UNIT_EQUAL(crowd[PEERS].shaken, TRPI_FRAME_HANDSHAKE_REFUSAL);
    trpi_remote_watch_delegate(t.remote, &crowd[0].id.address, true); /* it has become a member */
    crowd_call(&crowd[PEERS + 1], 1, 101);
    UNIT_EQUAL(kept_count, PEERS + 1);
    stranger_free(&crowd[PEERS]);
    stranger_end(&crowd[1], false); /* crashes */
    stranger_end(&crowd[0], false);
    pass(20000);
    crowd_call(&crowd[PEERS], 1, 102);
    UNIT_EQUAL(kept_count, PEERS + 2);
    trpi_peer *peer = NULL;
    UNIT_EQUAL(trpi_peer_get(t.remote, &crowd[0].id.address, false, &peer), TRP_OK);
    trpi_peer_unpin(peer); /* the member is known still */
    peer = NULL;
    UNIT_EQUAL(trpi_peer_get(t.remote, &crowd[1].id.address, false, &peer), TRP_ENOENT);
    trpi_peer_unpin(peer);
    stranger_free(&crowd[1]);
    crowd_call(&crowd[1], 1, 2); /* the one that gave way comes again: its stream was forgotten */
    UNIT_EQUAL(crowd[1].shaken, TRPI_FRAME_HANDSHAKE_REFUSAL);
    crowd_end(crowd, PEERS + 2);
    end();
}

/* One more than 7 of 8 places make one that is gone give way: not the one that is just calling. */
static void
who_calls_again_does_not_give_way_to_itself(void)
{
    enum { PEERS = 8 };
    static stranger crowd[PEERS];
    start((trpi_remote_options){ .host_peers_max = PEERS });
    keep(2 * PEERS);
    crowd_call(crowd, PEERS, 1);
    stranger_end(&crowd[0], false); /* crashes */
    pass(20000);
    stranger_free(&crowd[0]);
    stranger_begin(&crowd[0], 1);
    crowd[0].first.data[TRPI_FRAME_HEADER_BYTES] = 2; /* its lane's second connection */
    say_message(&crowd[0].first, t.keeper, NULL, 0);
    stranger_call(&crowd[0]);
    pass(40);
    UNIT_EQUAL(crowd[0].shaken, TRPI_FRAME_HANDSHAKE_RESPONSE);
    UNIT_EQUAL(kept_count, PEERS + 1);
    crowd_end(crowd, PEERS);
    end();
    UNIT_EQUAL(t.forgotten_lines, 0); /* nor does the log say that it has */
}

static void
say_credit(stranger *s, uint8_t flags, uint64_t bytes)
{
    trpi_credit_frame frame = { kept[0].slot, kept[0].generation, bytes };
    uint8_t body[TRPI_CREDIT_BYTES];
    trpi_buffer out = { 0 };
    trpi_credit_encode(body, &frame);
    (void)trpi_frame_append(&out, TRPI_FRAME_CREDIT, flags, 0, body, sizeof body);
    stranger_write(s, &out);
    trpi_buffer_fini(&out);
    pass(20);
}

/* It is taken back while something waits behind a full lane; then the receiver's node ends. */
static void
credit_that_is_taken_back_leaves_nothing_for_the_next_incarnation(void)
{
    static uint8_t long_one[16384];
    stranger s, lane, next, next_lane;
    start((trpi_remote_options){ 0 });
    keep(2);
    crowd_call(&s, 1, 1);
    for (int i = 0; i < 20; i++) { /* there is no connection for them yet */
        trp_system_tell(t.system, kept[0], &trp_bytes_type, long_one, sizeof long_one);
    }
    pass(20);
    say_credit(&s, TRPI_CREDIT_SET, 0);
    trp_system_tell(t.system, kept[0], &trp_bytes_type, long_one, sizeof long_one);
    pass(20);
    say_credit(&s, 0, 1 << 20);
    say_credit(&s, TRPI_CREDIT_SET, 0);
    lane_call(&lane, &s);
    pass(100);
    UNIT_EQUAL(lane.answers, 20);
    stranger_end(&lane, false);
    crowd_end(&s, 1);
    stranger_free(&lane);
    crowd_call(&next, 1, REBORN + 1);
    lane_call(&next_lane, &next);
    pass(40);
    trp_system_tell(t.system, kept[1], &trp_bytes_type, "", 1);
    pass(40);
    UNIT_EQUAL(next_lane.answers, 1);
    say_credit(&next, TRPI_CREDIT_SET, 1000);
    pass(3000); /* nothing is kept: asked all the same, for the word that it is free may be lost */
    UNIT_TRUE(next_lane.asks >= 2);
    stranger_end(&next_lane, false);
    crowd_end(&next, 1);
    stranger_free(&next_lane);
    end();
}

/* The first bytes of a frame that never ends, on a lane of its own. */
static void
lane_call_unfinished(stranger *lane, const stranger *s, uint8_t number, uint32_t announced,
                     uint32_t come)
{
    uint8_t epoch[4] = { number, 0, 0, 0 };
    static uint8_t begun[TRPI_FRAME_HEADER_BYTES + (1 << 18)];
    lane_call(lane, s);
    (void)trpi_frame_append(&lane->first, TRPI_FRAME_LANE_OPEN, 0, 0, epoch, sizeof epoch);
    trpi_frame_header_encode(begun, announced, TRPI_FRAME_USER, TRPI_CODE_SENDING,
                             TRPI_SERIALIZER_RAW);
    (void)trpi_buffer_append(&lane->first, begun, TRPI_FRAME_HEADER_BYTES + come,
                             TRPI_BUFFER_NO_LIMIT);
    pass(40); /* the node has answered with its preamble */
    stranger_write(lane, &lane->first);
    pass(40);
}

/* Four times all but the end of a frame: within the budget of the node, and then beyond it. */
static void
unfinished_frames_have_a_budget_and_a_deadline(void)
{
    enum { LANES = 4, COME = 200000, ANNOUNCED = 262144 };
    stranger s, lanes[LANES + 1];
    trpi_remote_stats stats;
    start((trpi_remote_options){ .unfinished_bytes_max = LANES * COME + COME / 2 });
    keep(1);
    crowd_call(&s, 1, 1);
    for (int i = 0; i < LANES; i++) {
        lane_call_unfinished(&lanes[i], &s, (uint8_t)(i + 1), ANNOUNCED, COME);
        UNIT_FALSE(lanes[i].closed);
    }
    lane_call_unfinished(&lanes[LANES], &s, LANES + 1, ANNOUNCED, COME);
    UNIT_TRUE(lanes[LANES].closed);
    trpi_remote_stats_get(t.remote, &stats);
    UNIT_EQUAL(stats.unfinished_refused, 1);
    UNIT_EQUAL(stats.unfinished_late, 0);
    pass(60000);
    UNIT_FALSE(lanes[0].closed);
    pass(70000);
    trpi_remote_stats_get(t.remote, &stats);
    UNIT_EQUAL(stats.unfinished_late, LANES);
    for (int i = 0; i <= LANES; i++) {
        UNIT_TRUE(lanes[i].closed);
        stranger_free(&lanes[i]);
    }
    UNIT_TRUE(atomic_load(&t.remote->flow.unfinished_bytes) <
              1024); /* what the first connection has */
    UNIT_FALSE(s.closed);
    crowd_end(&s, 1);
    end();
}

/* REMOTE-66: A frame of the control lane that only a large view needs. */
static void
wide_frames_are_taken_from_members_only(void)
{
    stranger crowd[2];
    uint8_t header[TRPI_FRAME_HEADER_BYTES];
    trpi_buffer wide = { 0 };
    start((trpi_remote_options){ 0 });
    keep(2);
    crowd_call(crowd, 2, 1);
    trpi_remote_watch_delegate(t.remote, &crowd[1].id.address, true);
    trpi_frame_header_encode(header, 1 << 20, TRPI_FRAME_CONTROL, 0, TRPI_CHANNEL_GOSSIP);
    (void)trpi_buffer_append(&wide, header, sizeof header, TRPI_BUFFER_NO_LIMIT);
    for (int i = 0; i < 2; i++) {
        stranger_write(&crowd[i], &wide);
    }
    trpi_buffer_fini(&wide);
    pass(40);
    UNIT_TRUE(crowd[0].closed);
    UNIT_FALSE(crowd[1].closed);
    crowd_end(crowd, 2);
    end();
}

/* At the limit, and one past it; an actor that is not watched any more makes room. */
static void
one_peer_has_so_many_watches_and_not_one_more(void)
{
    enum { WATCHES = 5, UNWATCH = TRPI_SIGNAL_WATCH + 1 };
    stranger s;
    trpi_remote_stats stats;
    start((trpi_remote_options){ .peer_watches_max = WATCHES });
    keep(1);
    crowd_call(&s, 1, 1);
    for (uint32_t i = 1; i <= WATCHES + 3; i++) { /* one is watched, unwatched, watched again */
        uint8_t body[TRPI_SYSTEM_FRAME_BYTES] = { 0 };
        trpi_buffer out = { 0 };
        trpi_put_u64(body, i);
        body[8] = i == 2 ? UNWATCH : TRPI_SIGNAL_WATCH;
        trpi_put_u32(body + 12, t.keeper.slot);
        trpi_put_u32(body + 16, t.keeper.generation);
        trpi_put_u32(body + 20, i <= 3 ? 1 : i);
        trpi_put_u32(body + 24, 1);
        (void)trpi_frame_append(&out, TRPI_FRAME_SYSTEM, 0, 0, body, sizeof body);
        stranger_write(&s, &out);
        trpi_buffer_fini(&out);
        pass(20);
        trpi_remote_stats_get(t.remote, &stats);
        UNIT_EQUAL(stats.quarantined, i == WATCHES + 3);
    }
    UNIT_TRUE(s.closed);
    stranger_free(&s);
    end();
}

UNIT_BEGIN("strangers_sim")
UNIT(so_many_come_and_go_and_their_refs_stay_dead)
UNIT(nodes_that_strangers_name_leave_room_for_others)
UNIT(one_host_names_so_many_nodes_and_with_one_more_the_oldest_is_forgotten)
UNIT(a_node_that_is_named_in_a_refused_message_gets_no_number)
UNIT(in_untrusted_mode_nobody_speaks_for_a_third_node)
UNIT(so_many_of_one_host_are_let_in_and_not_one_more)
UNIT(who_calls_again_does_not_give_way_to_itself)
UNIT(credit_that_is_taken_back_leaves_nothing_for_the_next_incarnation)
UNIT(unfinished_frames_have_a_budget_and_a_deadline)
UNIT(wide_frames_are_taken_from_members_only)
UNIT(one_peer_has_so_many_watches_and_not_one_more)
UNIT_END
