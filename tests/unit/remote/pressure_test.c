/* pressure_test.c - a sender that is faster than its receiver: it is throttled, and no other sender
 * is.
 */
#include <troupe/mailbox.h>

#include "tests/unit/remote/slow.h"

#include "remote/association/peer.h"

#define TELLS 150000
#define ONE_BYTES 16777216u /* remote.receiver-limit here, and of all: a window of a 16th of it */
#define FIRST 30000         /* more than a window of them */
#define LEAST_BYTES 262144u /* the least limit */
#define I64_BYTES (TRPI_FRAME_HEADER_BYTES + TRPI_USER_FIXED_BYTES + 8)
#define I64_COUNTS (TRPI_CREDIT_MESSAGE_BYTES + 8)

static trp_ref flooded;
static _Atomic int64_t goal;
static uint64_t before; /* messages that have come before the flood */

/* Tells a thousand a turn, until as many are told as is the goal. */
static trp_err
flood_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t *number = state, until = atomic_load(&goal);
    for (int i = 0; i < 1000 && *number < until; i++) {
        ++*number;
        trp_tell(ctx, flooded, &trp_i64_type, number, sizeof *number);
    }
    atomic_store(&slow_told, *number);
    if (*number < until) {
        trp_tell(ctx, trp_self(ctx), trp_msg_type(msg), trp_msg_payload(msg), trp_msg_bytes(msg));
    }
    return TRP_OK;
}
static const trp_behaviour flood = TRP_BEHAVIOUR_INIT("flood", int64_t, flood_receive);

static trpi_peer_info
info_of(pair *p, int side)
{
    trpi_peer_info info;
    size_t count = 0;
    memset(&info, 0, sizeof info);
    trpi_remote_peers(p->remote[side], &info, 1, &count);
    return info;
}

static uint64_t
dead_count(pair *p, int side, trp_dead_reason reason)
{
    trp_system_stats stats = { .size = sizeof stats };
    trp_system_stats_get(p->system[side], &stats);
    return stats.dead_letters[reason];
}

static trp_ref
flooder_spawn(pair *p)
{
    return pair_spawn(p->system[0], &flood, NULL, NULL, NULL, 0);
}

static void
flood_to(pair *p, trp_ref from, int64_t until)
{
    int64_t go = 0;
    atomic_store(&goal, until);
    trp_system_tell(p->system[0], from, &trp_i64_type, &go, sizeof go);
    UNIT_WAIT(atomic_load(&slow_told) == until, 60000);
}

static trpi_remote_options
options_of(uint32_t one)
{
    return (trpi_remote_options){ .lane_bytes_max = 64u << 20,
                                  .frame_bytes_max = 65536,
                                  .receiver_bytes_max = one,
                                  .receivers_bytes_max = one };
}

static int64_t
arrived_count(pair *p)
{
    return (int64_t)(info_of(p, 1).messages_in - before);
}

static int64_t
held_count(pair *p)
{
    return (int64_t)(info_of(p, 0).held_bytes / I64_BYTES);
}

/* All that was told has arrived, or is held. */
static void
pair_settle(pair *p)
{
    UNIT_WAIT(arrived_count(p) + held_count(p) == atomic_load(&slow_told), 60000);
}

/* The first thousands arrive and wait, and the sender knows it. */
static trp_ref
flood_start(pair *p, bool mem)
{
    trpi_remote_options options = options_of(ONE_BYTES);
    slow_reset();
    pair_start(p, mem, &options);
    flooded = slow_start(p);
    before = info_of(p, 1).messages_in;
    trp_ref from = flooder_spawn(p);
    flood_to(p, from, FIRST);
    UNIT_WAIT(info_of(p, 0).slow_there == 1, 60000);
    pair_settle(p);
    UNIT_EQUAL(info_of(p, 1).slow_here, 1);
    return from;
}

static void
neighbour_answers(pair *p, trp_ref echo)
{
    trp_msg *reply = NULL;
    UNIT_EQUAL(trp_system_ask(p->system[0], echo, &trp_string_type, "x", 1, 60000, &reply), TRP_OK);
    trp_msg_free(reply);
}

/* A slow receiver takes bounded memory, nothing is lost, and other receivers are not affected. */
static void
a_slow_receiver_pushes_the_sender_back_and_loses_nothing(void)
{
    pair p;
    trp_ref from = flood_start(&p, false);
    trp_ref echo = pair_abroad(&p, pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0));
    int64_t first = arrived_count(&p);
    flood_to(&p, from, TELLS);
    pair_settle(&p);
    UNIT_EQUAL(arrived_count(&p), first); /* nothing more for the slow one */
    for (int i = 0; i < 20; i++) {
        neighbour_answers(&p, echo);
    }
    UNIT_EQUAL(arrived_count(&p), first + 20);
    UNIT_EQUAL(atomic_load(&slow_handled), 0);
    UNIT_WAIT(pair_logged("receiver is slower than its senders actor=/user/slow"), 60000);
    UNIT_EQUAL(pair_log_count("receiver is slower"), 1);
    atomic_store(&slow_gate_open, true);
    UNIT_WAIT(atomic_load(&slow_handled) == TELLS, 60000);
    UNIT_TRUE(atomic_load(&slow_in_order));
    UNIT_WAIT(info_of(&p, 0).slow_there == 0 && info_of(&p, 1).slow_here == 0, 60000);
    UNIT_EQUAL(info_of(&p, 0).held_bytes, 0);
    UNIT_EQUAL(
        dead_count(&p, 0, TRP_DEAD_RECEIVER_FULL) + dead_count(&p, 1, TRP_DEAD_RECEIVER_FULL), 0);
    pair_end(&p);
}

/* A thread that gives a mark back uses the peer until it is done, also while other marks are given
 * back: each mark holds the peer. */
static void
each_mark_in_the_mail_holds_the_peer(void)
{
    pair p;
    trpi_peer *peer = NULL;
    pair_start(&p, false, NULL);
    trp_ref echo = pair_abroad(&p, pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0));
    neighbour_answers(&p, echo);
    UNIT_REQUIRE(trpi_peer_get(p.remote[1], trpi_remote_address(p.remote[0]), false, &peer) ==
                 TRP_OK);
    pthread_mutex_lock(&p.remote[1]->lock);
    uint32_t pins = peer->pins;
    pthread_mutex_unlock(&p.remote[1]->lock);
    slow_reset();
    flooded = slow_start(&p);
    before = info_of(&p, 1).messages_in;
    flood_to(&p, flooder_spawn(&p), FIRST);
    pair_settle(&p);
    /* the last ones have no mark behind them */
    uint64_t marks = (uint64_t)arrived_count(&p) * I64_BYTES / (2 * TRPI_CREDIT_MARK_BYTES);
    UNIT_TRUE(marks >= 4);
    pthread_mutex_lock(&p.remote[1]->lock);
    UNIT_TRUE(peer->pins >= pins + marks);
    pthread_mutex_unlock(&p.remote[1]->lock);
    atomic_store(&slow_gate_open, true);
    UNIT_WAIT(atomic_load(&slow_handled) == FIRST, 60000);
    trpi_peer_unpin(peer);
    pair_end(&p);
}

/* A receiver that shares its place in any table with a slow one is not taken for it */
static void
receivers_are_counted_apart(void)
{
    enum { NEIGHBOURS = 200, EACH = 200 };
    pair p;
    (void)flood_start(&p, false);
    trp_ref slow = flooded;
    uint64_t kept = info_of(&p, 0).held_bytes;
    bool same_place = false;
    for (int i = 0; i < NEIGHBOURS; i++) { /* their slots follow one another */
        trp_ref there = pair_spawn(p.system[1], &pair_echo, NULL, NULL, NULL, 0);
        trp_ref echo = pair_abroad(&p, there);
        if (echo.slot % 64 == slow.slot % 64) {
            same_place = true;
            for (int j = 0; j < EACH; j++) {
                neighbour_answers(&p, echo);
            }
        }
    }
    UNIT_TRUE(same_place);
    UNIT_EQUAL(info_of(&p, 0).slow_there, 1);
    UNIT_EQUAL(info_of(&p, 0).held_bytes, kept);
    atomic_store(&slow_gate_open, true);
    UNIT_WAIT(atomic_load(&slow_handled) == FIRST, 60000);
    pair_end(&p);
}

/* A4J-35: At the limit and one past it, at the node that sends */
static void
what_is_above_the_limit_is_a_dead_letter_where_it_was_told(void)
{
    pair p;
    trpi_remote_options options = options_of(LEAST_BYTES);
    int64_t most = LEAST_BYTES / I64_BYTES;
    slow_reset();
    pair_start(&p, false, &options);
    flooded = slow_start(&p);
    trp_ref from = flooder_spawn(&p);
    int64_t first = 1500; /* of 72 bytes: more than the least window of 64 KiB */
    before = info_of(&p, 1).messages_in;
    flood_to(&p, from, first);
    UNIT_WAIT(info_of(&p, 0).slow_there == 1, 60000);
    pair_settle(&p);
    first = arrived_count(&p);
    flood_to(&p, from, first + most);
    UNIT_WAIT(held_count(&p) == most, 60000);
    UNIT_EQUAL(dead_count(&p, 0, TRP_DEAD_RECEIVER_FULL), 0);
    flood_to(&p, from, first + most + 1);
    UNIT_WAIT(dead_count(&p, 0, TRP_DEAD_RECEIVER_FULL) == 1, 60000);
    UNIT_EQUAL(info_of(&p, 0).dropped, 1);
    atomic_store(&slow_gate_open, true);
    UNIT_WAIT(atomic_load(&slow_handled) == first + most, 60000);
    UNIT_EQUAL(dead_count(&p, 1, TRP_DEAD_RECEIVER_FULL), 0);
    pair_end(&p);
}

/* A peer of an earlier minor version cannot be told: the limit holds where the receiver is */
static void
who_knows_no_credit_meets_the_limit_at_the_receiver(void)
{
    pair p;
    trpi_remote_options options = options_of(LEAST_BYTES);
    int64_t most = LEAST_BYTES / I64_COUNTS;
    slow_reset();
    options.wire_minor = 3;
    pair_start(&p, false, &options);
    trp_ref echo = pair_abroad(&p, pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0));
    flooded = slow_start(&p);
    trp_ref from = flooder_spawn(&p);
    flood_to(&p, from, most);
    UNIT_WAIT(info_of(&p, 1).messages_in >= (uint64_t)most, 60000);
    neighbour_answers(&p, echo);
    UNIT_EQUAL(dead_count(&p, 1, TRP_DEAD_RECEIVER_FULL), 0);
    flood_to(&p, from, 4 * most);
    /* the one that it is at when the count begins is not counted */
    UNIT_WAIT(dead_count(&p, 1, TRP_DEAD_RECEIVER_FULL) >= (uint64_t)(3 * most) - 2, 60000);
    UNIT_TRUE(dead_count(&p, 1, TRP_DEAD_RECEIVER_FULL) <= (uint64_t)(3 * most));
    neighbour_answers(&p, echo);
    UNIT_WAIT(pair_logged("remote.receiver-limit"), 60000);
    UNIT_EQUAL(info_of(&p, 0).slow_there, 0);
    trpi_remote_stats stats;
    trpi_remote_stats_get(p.remote[0], &stats);
    UNIT_EQUAL(stats.frames_skipped, 0);
    uint64_t lost = dead_count(&p, 1, TRP_DEAD_RECEIVER_FULL);
    atomic_store(&slow_gate_open, true);
    UNIT_WAIT((uint64_t)atomic_load(&slow_handled) + lost == (uint64_t)(4 * most), 60000);
    pair_end(&p);
}

/* Where a mailbox has a bound, that decides, and no sender is held back for others */
static void
a_bounded_mailbox_decides_by_itself(void)
{
    enum { CAPACITY = 100 };
    pair p;
    trpi_remote_options options = options_of(LEAST_BYTES);
    trp_mailbox_options bound = TRP_MAILBOX_OPTIONS_INIT;
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    slow_reset();
    pair_start(&p, false, &options);
    bound.kind = TRP_MAILBOX_KIND_BOUNDED;
    bound.capacity = CAPACITY;
    bound.push_timeout_ms = TRP_OFF;
    UNIT_REQUIRE(trp_mailbox_register(p.system[1], "bound", &bound) == TRP_OK);
    spawn.mailbox = "bound";
    UNIT_REQUIRE(trp_system_spawn(p.system[1], &slow_actor, &spawn, &ref) == TRP_OK);
    flooded = pair_abroad(&p, ref);
    trp_ref echo = pair_abroad(&p, pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0));
    trp_ref from = flooder_spawn(&p);
    flood_to(&p, from, FIRST);
    UNIT_WAIT(dead_count(&p, 1, TRP_DEAD_MAILBOX_FULL) >= FIRST - CAPACITY - 1, 60000);
    neighbour_answers(&p, echo);
    UNIT_EQUAL(info_of(&p, 0).slow_there, 0);
    UNIT_EQUAL(dead_count(&p, 1, TRP_DEAD_RECEIVER_FULL), 0);
    atomic_store(&slow_gate_open, true);
    pair_end(&p);
}

static trp_err
try_flooded(pair *p, int64_t *number)
{
    int64_t next = *number + 1;
    trp_err err = trp_system_try_tell(p->system[0], flooded, &trp_i64_type, &next, sizeof next);
    *number += err == TRP_OK ? 1 : 0;
    return err;
}

/* Is the slow receiver refused, between two tries of which the first was for another one? A lane
 * that is not written yet refuses both.
 */
static bool
refuses_it_alone(pair *p, trp_ref echo, int64_t *number)
{
    while (*number < TELLS && try_flooded(p, number) == TRP_OK) {
    }
    return trp_system_try_tell(p->system[0], echo, &trp_string_type, "x", 1) == TRP_OK &&
           try_flooded(p, number) == TRP_EAGAIN;
}

/* trp_try_tell() is refused for the slow receiver, and only for that */
static void
who_asks_for_room_is_told_when_there_is_some(void)
{
    pair p;
    (void)flood_start(&p, false);
    trp_ref echo = pair_abroad(&p, pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0));
    int64_t number = FIRST;
    UNIT_WAIT(refuses_it_alone(&p, echo, &number), 60000);
    UNIT_TRUE((uint64_t)(number - FIRST) * I64_BYTES <= TRPI_ADMIT_BYTES_MAX);
    atomic_store(&slow_gate_open, true);
    number++;
    UNIT_WAIT(trp_system_try_tell(p.system[0], flooded, &trp_i64_type, &number, sizeof number) ==
                  TRP_OK,
              60000);
    UNIT_WAIT(atomic_load(&slow_handled) == number, 60000);
    UNIT_TRUE(atomic_load(&slow_in_order));
    UNIT_EQUAL(dead_count(&p, 0, TRP_DEAD_RECEIVER_FULL), 0);
    pair_end(&p);
}

/* A CREDIT frame was lost with its connection: the sender asks for it. */
static void
a_lost_word_is_asked_for(void)
{
    pair p;
    trp_ref from = flood_start(&p, true);
    flood_to(&p, from, TELLS);
    pair_settle(&p);
    int64_t first = arrived_count(&p);
    trpi_mem_network_fault_set(p.network, pair_cut_all, NULL);
    atomic_store(&slow_gate_open, true);
    UNIT_WAIT(atomic_load(&slow_handled) == first && info_of(&p, 1).slow_here == 0, 60000);
    trpi_mem_network_fault_set(p.network, NULL, NULL);
    UNIT_WAIT(atomic_load(&slow_handled) == TELLS, 60000);
    UNIT_TRUE(atomic_load(&slow_in_order));
    pair_end(&p);
}

static void
remoting_may_stop_while_a_receiver_is_slow(void)
{
    pair p;
    (void)flood_start(&p, false);
    int64_t first = arrived_count(&p);
    trpi_remote_stop(p.remote[1]);
    atomic_store(&slow_gate_open, true);
    UNIT_WAIT(atomic_load(&slow_handled) == first, 60000);
    UNIT_TRUE(atomic_load(&slow_in_order));
    UNIT_EQUAL(trp_system_stop(p.system[1], 60000), TRP_OK);
    trp_system_free(p.system[1]);
    p.system[1] = NULL;
    pair_end(&p);
}

/* Held messages become dead letters when their node or the own one ends. */
static void
the_peer_may_end_while_its_receiver_is_slow(void)
{
    pair p;
    trp_ref from = flood_start(&p, false);
    flood_to(&p, from, 2 * FIRST);
    pair_settle(&p);
    UNIT_TRUE(held_count(&p) >= FIRST);
    atomic_store(&slow_gate_open, true); /* a turn ends before its actor does */
    pair_end_side(&p, 1);
    UNIT_WAIT(info_of(&p, 0).slow_there == 0, 60000);
    UNIT_EQUAL(info_of(&p, 0).held_bytes, 0);
    pair_end(&p);
}

static void
the_sender_may_end_while_the_receiver_is_slow(void)
{
    pair p;
    trp_ref from = flood_start(&p, false);
    flood_to(&p, from, 2 * FIRST);
    pair_settle(&p);
    int64_t first = arrived_count(&p);
    pair_end_side(&p, 0);
    UNIT_EQUAL(atomic_load(&slow_handled), 0);
    atomic_store(&slow_gate_open, true);
    UNIT_WAIT(atomic_load(&slow_handled) == first, 60000);
    pair_end(&p);
}

UNIT_BEGIN("pressure")
UNIT(a_slow_receiver_pushes_the_sender_back_and_loses_nothing)
UNIT(each_mark_in_the_mail_holds_the_peer)
UNIT(receivers_are_counted_apart)
UNIT(what_is_above_the_limit_is_a_dead_letter_where_it_was_told)
UNIT(who_knows_no_credit_meets_the_limit_at_the_receiver)
UNIT(a_bounded_mailbox_decides_by_itself)
UNIT(who_asks_for_room_is_told_when_there_is_some)
UNIT(a_lost_word_is_asked_for)
UNIT(remoting_may_stop_while_a_receiver_is_slow)
UNIT(the_peer_may_end_while_its_receiver_is_slow)
UNIT(the_sender_may_end_while_the_receiver_is_slow)
UNIT_END
