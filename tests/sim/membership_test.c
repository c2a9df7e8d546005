/* membership_test.c - Akka's multi-jvm specs of membership, each played by whole simulated nodes:
 * engine, detector, codec and network. The name of the spec stands above each; what is drawn is the
 * network's delays. docs/conformance.md has the table.
 */
#include "tests/sim/stage.h"

/* The node that was told of it first, which is the one that did it. */
static uint32_t
doer_of(const struct sim_world *w, uint32_t event, uint32_t of)
{
    for (uint32_t i = 0; i < stage_events_count; i++) {
        if (stage_events[i].event == event && stage_events[i].uid == w->nodes[of].id.uid) {
            return stage_events[i].node;
        }
    }
    return UINT32_MAX;
}

/* ---- joining --------------------------------------------------------------------------------- */

/* NodeMembershipSpec */
static void
two_and_then_three_share_one_view_and_know_who_is_older(void)
{
    struct sim_world *w = stage_new(3, stage_first_seed());
    stage_up(w, 1);
    sim_node_start(w, 2);
    STAGE_AWAIT(w, stage_agree(w, 5), 10000);
    UNIT_EQUAL(trpi_member_version(w->nodes[0].core), trpi_member_version(w->nodes[2].core));
    sim_node_start(w, 1);
    STAGE_AWAIT(w, stage_agree(w, 7), 10000);
    for (uint32_t at = 0; at < 3; at++) {
        UNIT_EQUAL(stage_oldest(w, at), 0);
        UNIT_TRUE(stage_member(w, at, 0)->up_number < stage_member(w, at, 2)->up_number);
        UNIT_TRUE(stage_member(w, at, 2)->up_number < stage_member(w, at, 1)->up_number);
    }
    stage_end(w);
}

/* NodeUpSpec, MEMB-05 */
static void
joining_again_changes_nothing_and_tells_nothing(void)
{
    struct sim_world *w = stage_cluster(2, NULL);
    for (uint32_t at = 0; at < 2; at++) {
        UNIT_EQUAL(stage_told(w, at, TRP_CLUSTER_MEMBER_UP, 1), 1);
    }
    UNIT_EQUAL(doer_of(w, TRP_CLUSTER_MEMBER_UP, 1), 0); /* who leads */
    uint64_t version = trpi_member_version(w->nodes[1].core);
    uint32_t told = stage_events_count;
    trpi_member_event join = { .kind = TRPI_MEMBER_JOIN,
                               .addresses = &w->nodes[0].id.address,
                               .addresses_count = 1 };
    trpi_member_now now = { w->now_us / 1000, 0 };
    UNIT_EQUAL(trpi_member_step(w->nodes[1].core, now, &join), TRP_ESTATE);
    stage_run(w, 5000);
    UNIT_EQUAL(trpi_member_version(w->nodes[1].core), version);
    UNIT_EQUAL(stage_events_count, told);
    UNIT_TRUE(stage_agree(w, 3));
    stage_end(w);
}

/* MembershipChangeListenerUpSpec */
static void
each_up_is_told_once_on_every_node_when_all_have_seen_it(void)
{
    struct sim_world *w = stage_new(3, stage_first_seed());
    for (uint32_t joins = 0; joins < 3; joins++) {
        sim_node_start(w, joins);
        STAGE_AWAIT(w, stage_agree(w, (2u << joins) - 1), 10000);
        for (uint32_t at = 0; at <= joins; at++) {
            for (uint32_t of = 0; of <= joins; of++) { /* a joiner is told of those before it */
                UNIT_EQUAL(stage_told(w, at, TRP_CLUSTER_MEMBER_UP, of), 1);
            }
        }
    }
    UNIT_EQUAL(w->unreachable_events, 0);
    stage_end(w);
}

/* DisallowJoinOfTwoClustersSpec */
static void
a_member_of_one_cluster_is_not_taken_into_another(void)
{
    struct sim_world *w = stage_new(5, stage_first_seed());
    stage_seeds(w, 0, 1);
    stage_up(w, 3); /* A: 0 and 1 */
    stage_seeds(w, 2, 1);
    sim_node_start(w, 2); /* B, and C */
    stage_seeds(w, 3, 1);
    sim_node_start(w, 3);
    STAGE_AWAIT(w, stage_agree(w, 4) && stage_agree(w, 8), 20000);
    for (uint32_t contact = 2; contact < 4; contact++) {
        trpi_member_event join = { .kind = TRPI_MEMBER_JOIN,
                                   .addresses = &w->nodes[contact].id.address,
                                   .addresses_count = 1 };
        trpi_member_now now = { w->now_us / 1000, 0 };
        UNIT_EQUAL(trpi_member_step(w->nodes[1].core, now, &join), TRP_ESTATE);
    }
    stage_run(w, 10000);
    UNIT_TRUE(stage_agree(w, 3) && stage_agree(w, 4) && stage_agree(w, 8));
    stage_end(w);
}

/* JoinSeedNodeSpec */
static void
seeds_that_start_at_once_form_one_cluster_and_others_join_through_them(void)
{
    for (uint64_t seed = stage_first_seed(); seed < stage_first_seed() + 20; seed++) {
        struct sim_world *w = stage_new(6, seed);
        stage_seeds(w, 0, 3);
        for (uint32_t i = 0; i < 3; i++) {
            sim_node_start(w, (uint32_t)(seed + i) % 3);
        }
        STAGE_AWAIT(w, stage_agree(w, 7), 20000);
        stage_up(w, 63);
        stage_end(w);
    }
}

/* JoinInProgressSpec: the heart beats from the join on, whenever the gossip comes */
static void
slow_gossip_makes_nobody_suspect(void)
{
    struct sim_world *w = stage_new(3, stage_first_seed());
    w->member.gossip_interval_ms = 60000;
    w->member.leader_actions_interval_ms = 60000;
    sim_node_start(w, 0);
    STAGE_AWAIT(w, stage_status(w, 0, 0) != 0, 70000);
    sim_node_start(w, 1);
    sim_node_start(w, 2);
    STAGE_AWAIT(w, stage_status(w, 0, 1) != 0 && stage_status(w, 0, 2) != 0, 70000);
    uint64_t key = trpi_member_self(w->nodes[1].core)->key;
    STAGE_AWAIT(w, trpi_heartbeat_look(w->nodes[0].heartbeat, key, w->now_us).round_trip_us != 0,
                2000);
    stage_run(w, 120000);
    UNIT_EQUAL(w->unreachable_events, 0);
    UNIT_TRUE(stage_agree(w, 7));
    stage_end(w);
}

/* MinMembersBeforeUpSpec, and its role's */
static void
members_wait_until_as_many_are_there_as_are_asked_for(void)
{
    for (uint32_t role = 0; role < 2; role++) { /* nodes with even numbers have the role "even" */
        struct sim_world *w = stage_new(4, stage_first_seed());
        uint32_t early = role != 0 ? 1 : 2;
        w->member.min_nr_of_members = role != 0 ? 1 : 3;
        if (role != 0) {
            snprintf(w->member.role_minima[0].role, sizeof w->member.role_minima[0].role, "even");
            w->member.role_minima[0].members = 2;
            w->member.role_minima_count = 1;
        }
        sim_node_start(w, 0);
        STAGE_AWAIT(w, stage_members(w, 0) == 1, 10000);
        sim_node_start(w, 1);
        STAGE_AWAIT(w, stage_members(w, 0) == 2, 10000);
        if (early == 1) {
            sim_node_start(w, 3); /* odd, too */
            STAGE_AWAIT(w, stage_members(w, 0) == 3, 10000);
        }
        stage_run(w, 10000);
        UNIT_TRUE(stage_all(w, 3, 0, TRP_MEMBER_JOINING) && stage_all(w, 3, 1, TRP_MEMBER_JOINING));
        UNIT_EQUAL(stage_told(w, 0, TRP_CLUSTER_MEMBER_UP, 0), 0);
        sim_node_start(w, 2);
        STAGE_AWAIT(w, stage_agree(w, early == 1 ? 15 : 7), 10000);
        stage_end(w);
    }
}

/* SingletonClusterSpec */
static void
one_becomes_two_and_one_again_and_leaves(void)
{
    struct sim_world *w = stage_new(2, stage_first_seed());
    w->member.downing_strategy = "auto-down-after";
    stage_up(w, 1);
    UNIT_EQUAL(stage_leader(w, 0), 0);
    stage_up(w, 3);
    sim_node_kill(w, 1);
    STAGE_AWAIT(w, stage_agree(w, 1), 20000);
    sim_node_command(w, 0, TRPI_MEMBER_LEAVE, 0);
    STAGE_AWAIT(w, !w->nodes[0].running, 5000);
    UNIT_EQUAL(w->nodes[0].stop, TRPI_STOP_LEFT);
    stage_end(w);
}

/* RestartFirstSeedNodeSpec */
static void
a_first_seed_that_starts_again_joins_those_that_remain(void)
{
    struct sim_world *w = stage_cluster(3, NULL);
    sim_node_kill(w, 0);
    sim_node_start(w, 0);
    STAGE_AWAIT(w, stage_agree(w, 7), 20000);
    UNIT_TRUE(stage_oldest(w, 0) != 0);
    stage_end(w);
}

/* One look at a node: its view as a digit for each member (0: not there), and its seen set. */
struct look {
    uint64_t after_ms;
    uint32_t at, statuses, seen;
};

static void
look_on(struct sim_world *w, const struct look *looks, size_t count)
{
    uint64_t began_us = w->now_us;
    for (size_t i = 0; i < count; i++) {
        const struct look *l = &looks[i];
        sim_run_until(w, began_us + l->after_ms * 1000);
        uint32_t statuses = stage_status(w, l->at, 0) * 100 + stage_status(w, l->at, 1) * 10 +
                            stage_status(w, l->at, 2);
        if (!UNIT_EQUAL(statuses, l->statuses) || !UNIT_EQUAL(stage_seen(w, l->at), l->seen)) {
            printf("  node %u after %llu ms\n", l->at, (unsigned long long)l->after_ms);
        }
    }
}

/* TransitionSpec, NodeLeavingAndExitingAndBeingRemovedSpec, NodeUpSpec, NodeLeavingAndExitingSpec.
 * A frame takes 10 ms, and only what is sent at once for a change is sent at all: so each exchange
 * can be looked at. */
static void
each_exchange_changes_statuses_and_seen_sets_as_told(void)
{
    static const struct look joining[] = {
        { 35, 0, 221, 1 }, /* asked, answered, JOIN: Joining, and only the contact has seen it */
        { 45, 1, 221, 3 }, /* gossip and welcome have arrived */
        { 45, 2, 221, 5 },
        { 55, 0, 222, 1 }, /* all Up members have seen it: the leader acts, none has seen that */
        { 65, 1, 222, 3 },
        { 85, 0, 222, 7 }, /* and now all have */
        { 85, 1, 222, 7 },
        { 85, 2, 222, 7 },
    };
    static const struct look leaving[] = {
        { 5, 1, 223, 2 },                     /* the operator's node; node 0 leads */
        { 15, 0, 223, 3 }, { 25, 0, 224, 1 }, /* seen by all: Exiting */
        { 35, 1, 224, 3 }, { 35, 2, 224, 5 },
        { 45, 0, 220, 1 }, /* it has confirmed: removed, from the seen set too */
        { 55, 1, 220, 3 }, { 65, 0, 220, 3 },
    };
    struct sim_world *w = stage_new(3, stage_first_seed());
    w->member.gossip_interval_ms = 60000;
    w->member.leader_actions_interval_ms = 60000;
    w->delay_min_us = 10000;
    w->delay_mean_us = 0;
    stage_seeds(w, 0, 1);
    stage_up(w, 3);
    sim_node_start(w, 2);
    look_on(w, joining, sizeof joining / sizeof joining[0]);
    sim_node_command(w, 1, TRPI_MEMBER_LEAVE, 2);
    look_on(w, leaving, sizeof leaving / sizeof leaving[0]);
    UNIT_EQUAL(w->nodes[2].stop, TRPI_STOP_LEFT);
    stage_end(w);
}

/* ---- silent members -------------------------------------------------------------------------- */

/* ClusterAccrualFailureDetectorSpec */
static void
a_link_that_heals_makes_its_members_available_again(void)
{
    struct sim_world *w = stage_cluster(3, "manual");
    UNIT_EQUAL(w->unreachable_events, 0);
    stage_split(w, 4, true);
    STAGE_AWAIT(w, stage_all_unreachable(w, 3, 2, true) && stage_unreachable(w, 2, 0), 10000);
    stage_split(w, 4, false);
    STAGE_AWAIT(w, stage_all_unreachable(w, 7, 2, false) && stage_agree(w, 7), 10000);
    sim_node_kill(w, 2);
    STAGE_AWAIT(w, stage_all_unreachable(w, 3, 2, true), 10000);
    UNIT_TRUE(stage_all_unreachable(w, 3, 1, false));
    stage_end(w);
}

/* InitialHeartbeatSpec */
static void
a_peer_that_is_cut_off_before_its_first_heartbeat_is_found(void)
{
    struct sim_world *w = stage_new(3, stage_first_seed());
    w->member.downing_strategy = "manual";
    stage_up(w, 3);
    sim_node_start(w, 2);
    while (stage_members(w, 2) == 0 && !w->result.failed) { /* to the microsecond of its welcome */
        sim_run_until(w, w->now_us + 1);
    }
    stage_split(w, 4, true);
    STAGE_AWAIT(w, stage_all_unreachable(w, 3, 2, true), 10000);
    stage_end(w);
}

/* ConvergenceSpec */
static void
nobody_becomes_up_while_a_member_is_unreachable(void)
{
    struct sim_world *w = stage_new(4, stage_first_seed());
    w->member.downing_strategy = "manual";
    stage_up(w, 7);
    sim_node_kill(w, 2);
    STAGE_AWAIT(w, stage_all_unreachable(w, 3, 2, true), 10000);
    sim_node_start(w, 3);
    STAGE_AWAIT(w, stage_all(w, 11, 3, TRP_MEMBER_JOINING), 10000);
    stage_run(w, 20000);
    UNIT_TRUE(stage_all(w, 11, 3, TRP_MEMBER_JOINING));
    for (uint32_t at = 0; at < 4; at++) {
        UNIT_TRUE(at == 2 || !trpi_member_is_converged(w->nodes[at].core));
    }
    sim_node_command(w, 1, TRPI_MEMBER_DOWN_CMD, 2);
    STAGE_AWAIT(w, stage_agree(w, 11), 10000);
    stage_end(w);
}

/* LeaderDowningNodeThatIsUnreachableSpec */
static void
the_leader_downs_the_last_and_a_middle_member(void)
{
    struct sim_world *w = stage_cluster(4, "auto-down-after");
    sim_node_kill(w, 3);
    STAGE_AWAIT(w, stage_agree(w, 7), 20000);
    sim_node_kill(w, 1);
    STAGE_AWAIT(w, stage_agree(w, 5), 20000);
    UNIT_EQUAL(stage_told(w, 2, TRP_CLUSTER_MEMBER_DOWNED, 1), 1);
    UNIT_EQUAL(doer_of(w, TRP_CLUSTER_MEMBER_DOWNED, 3), 0); /* who leads */
    UNIT_EQUAL(doer_of(w, TRP_CLUSTER_MEMBER_DOWNED, 1), 0);
    stage_end(w);
}

/* LeaderDowningAllOtherNodesSpec */
static void
five_of_six_die_at_once_with_two_watchers_each(void)
{
    struct sim_world *w = stage_new(6, stage_first_seed());
    w->member.downing_strategy = "auto-down-after";
    w->heartbeat.monitored_by_nr_of_members = 2;
    stage_up(w, 63);
    for (uint32_t i = 1; i < 6; i++) {
        sim_node_kill(w, i);
    }
    STAGE_AWAIT(w, stage_agree(w, 1), 60000);
    stage_end(w);
}

/* LeaderElectionSpec */
static void
a_leader_that_dies_is_followed_by_the_next_until_two_are_left(void)
{
    struct sim_world *w = stage_cluster(5, "auto-down-after");
    for (uint32_t leader = 0; leader < 3; leader++) {
        uint32_t rest = 31u & ~((2u << leader) - 1);
        for (uint32_t at = leader; at < 5; at++) {
            UNIT_EQUAL(stage_leader(w, at), leader);
        }
        sim_node_kill(w, leader);
        STAGE_AWAIT(w, stage_agree(w, rest), 20000);
    }
    UNIT_EQUAL(stage_leader(w, 3), 3);
    UNIT_EQUAL(stage_leader(w, 4), 3);
    stage_end(w);
}

/* ClientDowningNodeThatIsUnreachableSpec */
static void
an_operator_downs_a_dead_member_and_all_agree(void)
{
    struct sim_world *w = stage_cluster(4, "manual");
    sim_node_kill(w, 2);
    STAGE_AWAIT(w, stage_all_unreachable(w, 11, 2, true), 10000);
    sim_node_command(w, 1, TRPI_MEMBER_DOWN_CMD, 2);
    STAGE_AWAIT(w, stage_agree(w, 11), 10000);
    stage_end(w);
}

/* ClientDowningNodeThatIsUpSpec, NodeDowningAndBeingRemovedSpec */
static void
an_operator_downs_a_healthy_member_and_all_agree(void)
{
    struct sim_world *w = stage_cluster(4, "manual");
    sim_node_command(w, 0, TRPI_MEMBER_DOWN_CMD, 2);
    STAGE_AWAIT(w, stage_agree(w, 11) && !w->nodes[2].running, 10000);
    UNIT_EQUAL(w->nodes[2].stop, TRPI_STOP_DOWNED);
    for (uint32_t at = 0; at < 4; at++) {
        UNIT_TRUE(at == 2 || stage_leader(w, at) == 0);
    }
    stage_end(w);
}

/* UnreachableNodeJoinsAgainSpec */
static void
who_was_unplugged_and_downed_joins_as_a_fresh_process(void)
{
    struct sim_world *w = stage_cluster(4, "manual");
    stage_split(w, 8, true);
    STAGE_AWAIT(w, stage_all_unreachable(w, 7, 3, true), 10000);
    sim_node_command(w, 0, TRPI_MEMBER_DOWN_CMD, 3);
    STAGE_AWAIT(w, stage_agree(w, 7), 10000);
    uint64_t old = w->nodes[3].id.uid;
    sim_node_kill(w, 3);
    stage_split(w, 8, false);
    stage_up(w, 15);
    UNIT_TRUE(w->nodes[3].id.uid != old);
    stage_end(w);
}

/* ---- leaving --------------------------------------------------------------------------------- */

/* The order in which `at` was told of them: positions in what it has heard; 0: never. */
static uint32_t
place_of(const struct sim_world *w, uint32_t at, uint32_t event, uint32_t of)
{
    for (uint32_t i = 0; i < stage_events_count; i++) {
        const struct stage_event *e = &stage_events[i];
        if (e->node == at && e->event == event && e->uid == w->nodes[of].id.uid) {
            return i + 1;
        }
    }
    return 0;
}

/* LeaderLeavingSpec, NodeLeavingAndExitingSpec, NodeLeavingAndExitingAndBeingRemovedSpec,
 * MembershipChangeListenerExitingSpec */
static void
who_leaves_is_told_of_as_leaving_exiting_and_removed_the_leader_too(void)
{
    for (uint32_t goes = 0; goes < 3; goes++) {
        struct sim_world *w = stage_cluster(3, NULL);
        uint32_t rest = 7u & ~(1u << goes);
        sim_node_command(w, 1, TRPI_MEMBER_LEAVE, goes);
        STAGE_AWAIT(w, stage_agree(w, rest) && !w->nodes[goes].running, 4000);
        UNIT_EQUAL(w->nodes[goes].stop, TRPI_STOP_LEFT);
        for (uint32_t at = 0; at < 3; at++) {
            if (at == goes) {
                continue;
            }
            uint32_t left = place_of(w, at, TRP_CLUSTER_MEMBER_LEFT, goes);
            uint32_t exited = place_of(w, at, TRP_CLUSTER_MEMBER_EXITED, goes);
            uint32_t removed = place_of(w, at, TRP_CLUSTER_MEMBER_REMOVED, goes);
            UNIT_TRUE(left != 0 && left < exited && exited < removed);
            UNIT_EQUAL(stage_told(w, at, TRP_CLUSTER_MEMBER_EXITED, goes), 1);
            UNIT_EQUAL(stage_told(w, at, TRP_CLUSTER_UNREACHABLE, goes), 0);
            UNIT_EQUAL(stage_leader(w, at), goes == 0 ? 1 : 0);
            UNIT_TRUE(goes == 0 || doer_of(w, TRP_CLUSTER_MEMBER_EXITED, goes) == 0);
            /* neither a member nor on the ring of monitored members */
            UNIT_FALSE(trpi_heartbeat_look(w->nodes[at].heartbeat,
                                           trpi_ident_key(&w->nodes[goes].id), w->now_us)
                           .monitored);
        }
        stage_end(w);
    }
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* SunnyWeatherSpec: 30 s, with the default detector */
static void
in_sunny_weather_nobody_is_suspected(void)
{
    struct sim_world *w = stage_cluster(5, NULL);
    stage_run(w, 30000);
    UNIT_EQUAL(w->unreachable_events, 0);
    UNIT_TRUE(stage_agree(w, 31));
    stage_end(w);
}

/* StressSpec: each batch has a second for each node, and ten */
static void
batches_join_churn_split_leave_and_die_each_in_its_time(void)
{
    enum { NODES = 20, BATCH = 5 };
    struct sim_world *w = stage_new(NODES, stage_first_seed());
    const uint64_t limit_ms = 10000 + NODES * 1000;
    w->member.downing.stable_after_ms = 5000;
    uint32_t who = 0;
    stage_seeds(w, 0, 3);
    for (uint32_t first = 0; first < NODES; first += BATCH) {
        who |= ((1u << BATCH) - 1) << first;
        stage_up(w, who);
    }
    for (uint32_t round = 0; round < BATCH; round++) { /* churn: the same addresses, new uids */
        uint32_t node = NODES - 1 - round;
        sim_node_kill(w, node);
        sim_node_start(w, node);
        STAGE_AWAIT(w, stage_agree(w, who), limit_ms);
    }
    uint64_t before = w->unreachable_events;
    stage_run(w, 30000); /* idle */
    UNIT_EQUAL(w->unreachable_events, before);
    stage_split(w, 0x1f << 10, true); /* five are cut off, and downed */
    who &= ~(0x1fu << 10);
    STAGE_AWAIT(w, stage_agree(w, who) && stage_alive(w) == who, limit_ms);
    stage_split(w, 0x1f << 10, false);
    for (uint32_t node = 5; node < 8; node++) {
        sim_node_command(w, 0, TRPI_MEMBER_LEAVE, node);
        who &= ~(1u << node);
    }
    STAGE_AWAIT(w, stage_agree(w, who), limit_ms);
    for (uint32_t node = 17; node < 20; node++) {
        sim_node_kill(w, node);
        who &= ~(1u << node);
    }
    STAGE_AWAIT(w, stage_agree(w, who), limit_ms);
    stage_up(w, (1u << NODES) - 1);
    stage_end(w);
}

UNIT_BEGIN("membership")
UNIT(two_and_then_three_share_one_view_and_know_who_is_older)
UNIT(joining_again_changes_nothing_and_tells_nothing)
UNIT(each_up_is_told_once_on_every_node_when_all_have_seen_it)
UNIT(a_member_of_one_cluster_is_not_taken_into_another)
UNIT(seeds_that_start_at_once_form_one_cluster_and_others_join_through_them)
UNIT(slow_gossip_makes_nobody_suspect)
UNIT(members_wait_until_as_many_are_there_as_are_asked_for)
UNIT(one_becomes_two_and_one_again_and_leaves)
UNIT(a_first_seed_that_starts_again_joins_those_that_remain)
UNIT(each_exchange_changes_statuses_and_seen_sets_as_told)
UNIT(a_link_that_heals_makes_its_members_available_again)
UNIT(a_peer_that_is_cut_off_before_its_first_heartbeat_is_found)
UNIT(nobody_becomes_up_while_a_member_is_unreachable)
UNIT(the_leader_downs_the_last_and_a_middle_member)
UNIT(five_of_six_die_at_once_with_two_watchers_each)
UNIT(a_leader_that_dies_is_followed_by_the_next_until_two_are_left)
UNIT(an_operator_downs_a_dead_member_and_all_agree)
UNIT(an_operator_downs_a_healthy_member_and_all_agree)
UNIT(who_was_unplugged_and_downed_joins_as_a_fresh_process)
UNIT(who_leaves_is_told_of_as_leaving_exiting_and_removed_the_leader_too)
UNIT(in_sunny_weather_nobody_is_suspected)
UNIT(batches_join_churn_split_leave_and_die_each_in_its_time)
UNIT_END
