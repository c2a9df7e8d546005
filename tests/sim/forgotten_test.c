/* forgotten_test.c - numbers of nodes that ended too early: whose they were lives, and speaks. */
#include "tests/sim/strangers.h"

static uint32_t ends_count;

static trp_err
watcher_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &trp_terminated_type)) {
        const trp_terminated *what = trp_msg_payload(msg);
        ends_count += what->address_terminated;
        return TRP_OK;
    }
    trp_ref ref;
    memcpy(&ref, trp_msg_payload(msg), sizeof ref);
    return trp_watch(ctx, ref);
}
static const trp_behaviour watcher = { .size = sizeof(trp_behaviour),
                                       .name = "watcher",
                                       .receive = watcher_receive };

static void
watch_ref(trp_ref ref)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref who;
    ends_count = 0;
    UNIT_REQUIRE(trp_system_spawn(t.system, &watcher, &options, &who) == TRP_OK);
    trp_system_tell(t.system, who, &trp_bytes_type, &ref, sizeof ref);
}

/* It calls, and says something on its first connection; what is told to it comes on its second. */
static void
call_and_be_answered(stranger *s, stranger *lane, uint64_t number)
{
    uint32_t kept_before = kept_count;
    crowd_call(s, 1, number);
    UNIT_REQUIRE(kept_count == kept_before + 1);
    lane_call(lane, s);
    pass(40);
    trp_system_tell(t.system, kept[kept_before], &trp_i64_type, &(int64_t){ 1 }, sizeof(int64_t));
    pass(100);
    UNIT_EQUAL(lane->answers, 1);
}

/* A peer names a node and so many others that the first gives way. Then it calls, for it lives. */
static void
who_gave_way_before_it_spoke_is_answered_when_it_speaks(void)
{
    enum { NAMES = 16, LIVING = 5 };
    stranger namer, living, lane;
    start((trpi_remote_options){ .host_nodes_max = NAMES });
    keep(10);
    stranger_begin(&living, LIVING);
    trpi_node_id id = living.id;
    stranger_free(&living);
    stranger_begin(&namer, 1);
    say_message(&namer.first, t.keeper, &id, 1);
    stranger_call(&namer);
    pass(40);
    trp_ref before = kept[0];
    UNIT_REQUIRE(kept_count == 1);
    namer.first.count = 0;
    say_names(&namer.first, t.keeper, 0, NAMES);
    stranger_write(&namer, &namer.first);
    pass(40);
    call_and_be_answered(&living, &lane, LIVING);
    uint64_t dead = dead_letters();
    trp_system_tell(t.system, before, &trp_i64_type, &(int64_t){ 1 }, sizeof(int64_t));
    watch_ref(before);
    pass(20); /* told at once, to any incarnation there */
    UNIT_EQUAL(dead_letters(), dead + 1);
    UNIT_EQUAL(ends_count, 1);
    UNIT_EQUAL(lane.answers, 1);
    stranger_end(&lane, false);
    crowd_end(&living, 1);
    crowd_end(&namer, 1);
    stranger_free(&lane);
    end();
}

/* A peer that gave way was forgotten, not quarantined: another node may name it again. */
static void
who_gave_way_and_is_named_again_can_be_told(void)
{
    enum { NAMES = 16 };
    stranger namer, other;
    trpi_node_id first = third_node(0);
    start((trpi_remote_options){ .host_nodes_max = NAMES });
    keep(10);
    stranger_begin(&namer, 1);
    say_names(&namer.first, t.keeper, 0, NAMES);
    say_message(&namer.first, t.keeper, &(trpi_node_id){ third_node(NAMES).address, 5 }, 1);
    stranger_call(&namer);
    stranger_begin(&other, 2000); /* of another host */
    say_message(&other.first, t.keeper, &first, 1);
    pass(40);
    uint32_t before = kept[0].node;
    stranger_call(&other);
    pass(40);
    UNIT_REQUIRE(kept_count == 3);
    UNIT_TRUE(kept[2].node != before);
    UNIT_EQUAL(trpi_node_find(t.system, &first), kept[2].node);
    uint64_t dead = dead_letters();
    trp_system_tell(t.system, kept[2], &trp_i64_type, &(int64_t){ 1 }, sizeof(int64_t));
    pass(20); /* it is dialled */
    UNIT_EQUAL(dead_letters(), dead);
    stranger_end(&namer, true);
    stranger_end(&other, true);
    pass(40);
    stranger_free(&namer);
    stranger_free(&other);
    end();
}

/* Somebody else answered at its address, so it was held for one that is over; it was late only. */
static void
who_was_held_for_over_and_shows_itself_is_answered(void)
{
    stranger present, later, lane;
    start((trpi_remote_options){ 0 });
    keep(10);
    stranger_begin(&later, REBORN + 5);
    trp_ref watched = { 0, 3, 5, 0 };
    UNIT_REQUIRE(trpi_node_intern(t.system, &later.id, &watched.node) == TRP_OK);
    stranger_free(&later);
    crowd_call(&present, 1, 5);
    watch_ref(watched);
    pass(20000);
    UNIT_EQUAL(ends_count, 1);
    stranger_end(&present, false); /* crashes */
    pass(40);
    stranger_free(&present);
    crowd_call(&later, 1, REBORN + 5);
    UNIT_EQUAL(later.shaken, TRPI_FRAME_HANDSHAKE_REFUSAL); /* the present one is looked for */
    UNIT_EQUAL(kept_count, 1);
    pass(1000); /* no node is there */
    stranger_free(&later);
    call_and_be_answered(&later, &lane, REBORN + 5);
    stranger_end(&lane, false);
    crowd_end(&later, 1);
    stranger_free(&lane);
    end();
}

/* The numbers of crashed nodes were never given back, once their peers had been forgotten. */
static void
who_crashed_and_is_forgotten_keeps_no_number_for_good(void)
{
    enum { NAMES = 4, CALLERS = NAMES + 2, MINUTES = 16 };
    stranger crowd[CALLERS];
    size_t peers = 1;
    trpi_peer_info info;
    start((trpi_remote_options){ .host_nodes_max = NAMES });
    keep(CALLERS);
    crowd_call(crowd, CALLERS, 1);
    UNIT_REQUIRE(kept_count == CALLERS);
    for (uint32_t i = 0; i < CALLERS; i++) {
        stranger_end(&crowd[i], false);
    }
    for (uint32_t i = 0; i < MINUTES * 60 && peers > 0; i++) {
        trpi_system_pass(t.system, 1000);
        trpi_remote_peers(t.remote, &info, 1, &peers);
    }
    UNIT_EQUAL(peers, 0);
    uint64_t dead = dead_letters();
    for (uint32_t i = 0; i < CALLERS; i++) {
        trp_system_tell(t.system, kept[i], &trp_i64_type, &(int64_t){ 1 }, sizeof(int64_t));
    }
    pass(20);
    UNIT_EQUAL(dead_letters(), dead + CALLERS - NAMES); /* the others are dialled */
    for (uint32_t i = 0; i < CALLERS; i++) {
        stranger_free(&crowd[i]);
    }
    end();
}

UNIT_BEGIN("forgotten_sim")
UNIT(who_gave_way_before_it_spoke_is_answered_when_it_speaks)
UNIT(who_gave_way_and_is_named_again_can_be_told)
UNIT(who_was_held_for_over_and_shows_itself_is_answered)
UNIT(who_crashed_and_is_forgotten_keeps_no_number_for_good)
UNIT_END
