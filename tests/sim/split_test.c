/* split_test.c - Akka's integration specs of the split-brain resolver and SplitBrainSpec, played by
 * whole simulated nodes. Their singleton stands here for the node that takes itself for the oldest
 * member, which is where one would run: after a split that is one node, or none when all stop.
 */
#include "tests/sim/stage.h"

enum winner { FIRST, SECOND, NOBODY };

/* Nodes that run and take themselves for the oldest of the cluster. */
static uint32_t
nodes_that_stay(const struct sim_world *w)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < w->nodes_count; i++) {
        count += sim_is_member(&w->nodes[i]) && stage_oldest(w, i) == i ? 1 : 0;
    }
    return count;
}

/* The first nodes, which are the older ones and have the lower addresses, are cut off from the
 * others; who stays? */
static void
play_pair(const char *strategy, uint32_t first, uint32_t second, enum winner winner)
{
    uint32_t all = (1u << (first + second)) - 1;
    uint32_t side = (1u << first) - 1;
    uint32_t stays = winner == FIRST ? side : winner == SECOND ? all & ~side : 0;
    struct sim_world *w = stage_new(first + second, stage_first_seed());
    w->member.downing_strategy = strategy;
    w->member.downing.stable_after_ms = 5000;
    w->member.downing.quorum_size = 5;
    for (uint32_t i = 0; i < first + second; i++) {
        stage_up(w, (2u << i) - 1);
    }
    UNIT_EQUAL(nodes_that_stay(w), 1);
    stage_split(w, side, true);
    STAGE_AWAIT(w, stage_alive(w) == stays && (stays == 0 || stage_agree(w, stays)), 30000);
    UNIT_EQUAL(nodes_that_stay(w), stays != 0 ? 1 : 0);
    stage_split(w, side, false); /* stopped nodes are not heard of again */
    stage_run(w, 10000);
    UNIT_EQUAL(stage_alive(w), stays);
    UNIT_TRUE(stays == 0 || stage_agree(w, stays));
    if (stays != 0) {
        stage_up(w, all);
        UNIT_EQUAL(nodes_that_stay(w), 1);
    }
    stage_end(w);
}

/* SplitBrainResolverIntegrationSpec */
static void
static_quorum_keeps_the_side_that_has_it_or_nobody(void)
{
    play_pair("static-quorum", 1, 2, NOBODY);
    play_pair("static-quorum", 4, 4, NOBODY);
    play_pair("static-quorum", 5, 4, FIRST);
    play_pair("static-quorum", 1, 5, SECOND);
    play_pair("static-quorum", 4, 5, SECOND);
}

/* SplitBrainResolverIntegrationSpec */
static void
keep_majority_keeps_the_larger_side_or_that_of_the_lowest_address(void)
{
    play_pair("keep-majority", 2, 1, FIRST);
    play_pair("keep-majority", 1, 2, SECOND);
    play_pair("keep-majority", 4, 5, SECOND);
    play_pair("keep-majority", 4, 4, FIRST);
}

/* SplitBrainResolverIntegrationSpec */
static void
keep_oldest_keeps_the_side_of_the_oldest_unless_it_is_alone_among_many(void)
{
    play_pair("keep-oldest", 3, 3, FIRST);
    play_pair("keep-oldest", 1, 1, FIRST);
    play_pair("keep-oldest", 1, 2, SECOND);
}

/* Five nodes; the oldest, which is the first, was told to leave, and node `at` has seen it go as
 * far as `status`. */
static struct sim_world *
oldest_leaves(uint64_t seed, uint32_t at, uint32_t status)
{
    struct sim_world *w = stage_new(5, seed);
    w->member.downing_strategy = "keep-oldest";
    w->member.downing.stable_after_ms = 20000;
    stage_up(w, 1);
    stage_up(w, 31);
    sim_node_command(w, 1, TRPI_MEMBER_LEAVE, 0);
    while (w->nodes[0].running && stage_status(w, at, 0) != status) {
        sim_run_until(w, w->now_us + 500); /* some 10 ms later it is gone */
    }
    return w;
}

/* SplitBrainResolverIntegrationSpec: It crashes before all have heard that the oldest is Exiting,
 * whose removal has to wait for its end then; the oldest does not wait for so long. */
static void
a_crash_while_the_oldest_leaves_stops_nobody(void)
{
    for (uint64_t seed = stage_first_seed(); seed < stage_first_seed() + 5; seed++) {
        struct sim_world *w = oldest_leaves(seed, 0, TRP_MEMBER_EXITING);
        sim_node_kill(w, 3);
        STAGE_AWAIT(w, stage_agree(w, 0x16), 60000);
        stage_end(w);
    }
}

/* SplitBrainResolverIntegrationSpec: It has removed the oldest, which hears it and ends, and nobody
 * else has. */
static void
a_leader_that_crashes_with_the_removal_of_the_oldest_stops_nobody(void)
{
    for (uint64_t seed = stage_first_seed(); seed < stage_first_seed() + 5; seed++) {
        struct sim_world *w = oldest_leaves(seed, 1, 0);
        sim_node_kill(w, 1);
        STAGE_AWAIT(w, stage_agree(w, 0x1c), 60000);
        stage_end(w);
    }
}

/* LeaseMajority5NodeSpec */
static void
the_side_that_gets_the_lease_stays(void)
{
    play_pair("lease", 3, 2, FIRST);
    play_pair("lease", 2, 3, SECOND);
}

/* IndirectlyConnected3NodeSpec, IndirectlyConnected5NodeSpec; Akka gives up both ends */
static void
of_a_broken_link_one_end_stops_and_all_others_stay(void)
{
    for (uint32_t nodes = 3; nodes <= 5; nodes += 2) {
        struct sim_world *w = stage_cluster(nodes, "keep-majority");
        stage_link(w, 1, 2, true);
        STAGE_AWAIT(w, stage_agree(w, ((1u << nodes) - 1) & ~4u), 30000);
        UNIT_FALSE(w->nodes[2].running);
        stage_end(w);
    }
}

static struct sim_world *
five_with_short_times(void)
{
    struct sim_world *w = stage_new(5, stage_first_seed());
    w->member.downing.stable_after_ms = 5000;
    w->member.downing.unstable_after_ms = 5000;
    w->heartbeat.phi.heartbeat_interval_ms = 200;
    w->heartbeat.phi.acceptable_pause_ms = 500;
    stage_up(w, 31);
    return w;
}

/* DownAllUnstable5NodeSpec: two are cut off, and of the three others a link comes and goes */
static void
a_link_that_flaps_beside_a_cut_for_too_long_stops_all(void)
{
    struct sim_world *w = five_with_short_times();
    uint64_t end_us = w->now_us + 40000000;
    stage_split(w, 24, true);
    for (bool cut = true; stage_alive(w) != 0 && w->now_us < end_us; cut = !cut) {
        stage_link(w, 1, 2, cut);
        stage_run(w, 2000);
    }
    UNIT_EQUAL(stage_alive(w), 0);
    stage_end(w);
}

/* DownAllUnstable5NodeSpec: SplitBrainResolver.resetReachabilityChangedStatsIfAllUnreachableDowned
 */
static void
a_cut_that_heals_each_time_stops_nobody(void)
{
    struct sim_world *w = five_with_short_times();
    for (uint32_t round = 0; round < 20; round++) {
        stage_split(w, 16, round % 2 == 0);
        stage_run(w, 2000);
    }
    UNIT_EQUAL(stage_alive(w), 31);
    UNIT_TRUE(w->unreachable_events >= 9 * 4); /* each time by each of the others */
    stage_end(w);
}

/* Default times: one crashes every 16 s, and systemd starts it again. */
static void
a_member_in_a_crash_loop_stops_nobody_else(void)
{
    struct sim_world *w = stage_new(5, stage_first_seed());
    w->member.downing.stable_after_ms = 20000;
    w->member.downing.unstable_after_ms = 15000;
    stage_up(w, 31);
    for (uint32_t crash = 0; crash < 8; crash++) {
        sim_node_kill(w, 4);
        stage_run(w, 6000);
        sim_node_start(w, 4);
        stage_run(w, 10000);
    }
    UNIT_TRUE(stage_agree(w, 31));
    UNIT_EQUAL(w->downed, 0);
    stage_end(w);
}

/* SplitBrainSpec, DOWN-03: what a timeout in the place of a strategy does */
static void
both_sides_go_on_when_each_downs_the_other(void)
{
    struct sim_world *w = stage_cluster(5, "auto-down-after");
    stage_split(w, 24, true);
    STAGE_AWAIT(w, stage_agree(w, 7) && stage_agree(w, 24), 30000);
    UNIT_EQUAL(nodes_that_stay(w), 2);
    UNIT_EQUAL(stage_leader(w, 4), 3);
    stage_end(w);
}

/* The others down a healthy node that cannot hear them, and end before they could tell it. */
static void
who_is_left_alone_stops_by_itself(void)
{
    static const char *const strategies[] = { "keep-majority", "static-quorum", "keep-oldest",
                                              "keep-referee", "down-all" };
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        struct sim_world *w = stage_new(4, stage_first_seed());
        w->member.downing_strategy = strategies[i];
        w->member.downing.stable_after_ms = 5000;
        w->member.downing.referee = w->nodes[0].id.address;
        stage_up(w, 15);
        stage_split(w, 8, true);
        sim_node_command(w, 0, TRPI_MEMBER_DOWN_CMD, 3);
        stage_run(w, 1000);
        UNIT_EQUAL(stage_status(w, 0, 3), 0); /* it is removed */
        for (uint32_t node = 0; node < 3; node++) {
            sim_node_kill(w, node);
        }
        UNIT_TRUE(stage_alive(w) == 8);
        STAGE_AWAIT(w, stage_alive(w) == 0, 5000 + 5000); /* noticing it, stable-after */
        stage_end(w);
    }
}

/* ---- random ---------------------------------------------------------------------------------- */

struct flaky {
    uint32_t a, b;
    uint64_t next_us;
    bool cut;
};

/* A clean split, mended or not, while one leaves or not, and some links that come and go, each 2 to
 * 14 s. */
static void
play_random(struct sim_world *w)
{
    struct flaky links[8];
    uint32_t links_count = sim_below(w, 9);
    uint32_t side = sim_below(w, (1u << w->nodes_count) - 1);
    bool heals = sim_chance(w, 0.5);
    uint64_t heal_us = w->now_us + 2000000 + sim_below(w, 12000000);
    uint64_t end_us = w->now_us + 60000000;
    for (uint32_t i = 0; i < links_count; i++) {
        links[i] = (struct flaky){ .a = sim_below(w, w->nodes_count),
                                   .b = sim_below(w, w->nodes_count),
                                   .next_us = w->now_us + 2000000 + sim_below(w, 12000000) };
    }
    if (sim_chance(w, 0.25)) {
        sim_node_command(w, sim_below(w, w->nodes_count), TRPI_MEMBER_LEAVE, sim_below(w, 2));
        sim_run_until(w, w->now_us + sim_below(w, 400000));
    }
    stage_split(w, side, true);
    while (w->now_us < end_us && !w->result.failed) {
        stage_run(w, 100);
        for (uint32_t i = 0; i < links_count; i++) {
            struct flaky *l = &links[i];
            bool apart = (side >> l->a & 1) != (side >> l->b & 1);
            if (w->now_us >= l->next_us && l->a != l->b && !apart) {
                l->cut = !l->cut;
                stage_link(w, l->a, l->b, l->cut);
                l->next_us = w->now_us + 2000000 + sim_below(w, 12000000);
            }
        }
        if (heals && w->now_us >= heal_us) {
            stage_split(w, side, false);
            heals = false;
        }
    }
    for (uint32_t i = 0; i < links_count; i++) {
        if ((side >> links[i].a & 1) == (side >> links[i].b & 1)) {
            stage_link(w, links[i].a, links[i].b, false);
        }
    }
}

static bool
is_settled(const struct sim_world *w)
{
    uint32_t alive = stage_alive(w);
    return alive == 0 || stage_agree(w, alive);
}

/* RandomizedBrainResolverIntegrationSpec */
static void
whatever_breaks_every_node_is_down_or_in_the_one_cluster(void)
{
    static const char *const strategies[] = { "lease",       "keep-majority", "static-quorum",
                                              "keep-oldest", "keep-referee",  "down-all" };
    enum { STRATEGIES = sizeof strategies / sizeof strategies[0] };
    const char *text = getenv("TROUPE_SIM_SEEDS"), *only = getenv("TROUPE_SIM_STRATEGY");
    uint64_t count = text == NULL ? 100 : strtoull(text, NULL, 10);
    uint64_t survived = 0;
    for (uint64_t seed = stage_first_seed(); seed < stage_first_seed() + count; seed++) {
        const char *strategy = only != NULL ? only : strategies[seed % STRATEGIES];
        struct sim_world *w = stage_new(3 + (uint32_t)(seed % 7), seed);
        w->member.downing_strategy = strategy;
        w->member.downing.referee = w->nodes[seed % w->nodes_count].id.address;
        w->member.downing.quorum_size = w->nodes_count / 2 + 1;
        w->member.downing.stable_after_ms = 5000;
        w->member.downing.unstable_after_ms = 4000;
        stage_up(w, (1u << w->nodes_count) - 1);
        play_random(w);
        if (!STAGE_AWAIT(w, is_settled(w), 60000)) {
            printf("  not one cluster: TROUPE_SIM_FIRST=%llu TROUPE_SIM_SEEDS=1 "
                   "TROUPE_SIM_STRATEGY=%s\n",
                   (unsigned long long)seed, strategy);
        }
        survived += stage_alive(w) != 0;
        stage_end(w);
    }
    UNIT_TRUE(survived > 0 || count == 1);
    printf("  %llu seeds, in %llu of them a cluster is left\n", (unsigned long long)count,
           (unsigned long long)survived);
}

/* Links that break one way, crashes of all but one node. */
static void
play_crashes(struct sim_world *w, uint32_t left)
{
    uint32_t n = w->nodes_count, cuts = 1 + sim_below(w, 2 * n);
    uint64_t kill_us[16], heal_us = w->now_us + 4000000 + sim_below(w, 12000000);
    for (uint32_t i = 0; i < cuts; i++) {
        uint32_t from = sim_below(w, n), to = sim_below(w, n);
        w->cut[from * n + to] = from != to;
    }
    uint32_t deaf = sim_chance(w, 0.5) ? left : n;
    for (uint32_t i = 0; i < n && deaf < n; i++) {
        w->cut[i * n + deaf] = i != deaf;
    }
    w->any_cut = true;
    w->faults++;
    for (uint32_t i = 0; i < n; i++) {
        kill_us[i] = heal_us - 6000000 + sim_below(w, 8000000);
    }
    while (w->now_us < heal_us + 3000000) {
        stage_run(w, 50);
        for (uint32_t i = 0; i < n; i++) {
            if (i != left && w->nodes[i].running && w->now_us >= kill_us[i]) {
                sim_node_kill(w, i);
            }
        }
        if (w->any_cut && w->now_us >= heal_us) {
            memset(w->cut, 0, (size_t)n * n);
            w->any_cut = false;
        }
    }
}

/* Return whether one is left. */
static bool
play_left(uint64_t seed, const char *strategy)
{
    struct sim_world *w = stage_new(2 + (uint32_t)(seed % 5), seed);
    uint32_t left = sim_below(w, w->nodes_count);
    w->member.downing_strategy = strategy;
    w->member.downing.referee = w->nodes[left].id.address;
    w->member.downing.quorum_size = 1 + sim_below(w, 2) * w->nodes_count / 2;
    w->member.downing.keep_lone_oldest = sim_chance(w, 0.5);
    w->member.downing.stable_after_ms = 5000;
    w->member.downing.unstable_after_ms = 4000;
    stage_up(w, (1u << w->nodes_count) - 1);
    play_crashes(w, left);
    if (!STAGE_AWAIT(w, is_settled(w), 60000)) {
        printf("  not one cluster: TROUPE_SIM_FIRST=%llu TROUPE_SIM_SEEDS=1 "
               "TROUPE_SIM_STRATEGY=%s %u nodes left %u\n",
               (unsigned long long)seed, strategy, w->nodes_count, left);
    }
    bool is_left = stage_alive(w) != 0;
    stage_end(w);
    return is_left;
}

static void
who_is_left_among_the_dead_decides(void)
{
    static const char *const strategies[] = { "lease",       "keep-majority", "static-quorum",
                                              "keep-oldest", "keep-referee",  "down-all" };
    enum { STRATEGIES = sizeof strategies / sizeof strategies[0] };
    const char *text = getenv("TROUPE_SIM_SEEDS"), *only = getenv("TROUPE_SIM_STRATEGY");
    uint64_t count = text == NULL ? 100 : strtoull(text, NULL, 10);
    uint64_t survived = 0;
    for (uint64_t seed = stage_first_seed(); seed < stage_first_seed() + count; seed++) {
        survived += play_left(seed, only != NULL ? only : strategies[seed % STRATEGIES]);
    }
    printf("  %llu seeds, in %llu of them one is left\n", (unsigned long long)count,
           (unsigned long long)survived);
}

/* Those that died had taken the one that is left for lost, so that its own rows do not count. */
static void
who_was_taken_for_lost_by_the_dead_stops(void)
{
    UNIT_FALSE(play_left(22914, "lease"));
}

UNIT_BEGIN("split")
UNIT(static_quorum_keeps_the_side_that_has_it_or_nobody)
UNIT(keep_majority_keeps_the_larger_side_or_that_of_the_lowest_address)
UNIT(keep_oldest_keeps_the_side_of_the_oldest_unless_it_is_alone_among_many)
UNIT(a_crash_while_the_oldest_leaves_stops_nobody)
UNIT(a_leader_that_crashes_with_the_removal_of_the_oldest_stops_nobody)
UNIT(the_side_that_gets_the_lease_stays)
UNIT(of_a_broken_link_one_end_stops_and_all_others_stay)
UNIT(a_link_that_flaps_beside_a_cut_for_too_long_stops_all)
UNIT(a_cut_that_heals_each_time_stops_nobody)
UNIT(a_member_in_a_crash_loop_stops_nobody_else)
UNIT(both_sides_go_on_when_each_downs_the_other)
UNIT(who_is_left_alone_stops_by_itself)
UNIT(whatever_breaks_every_node_is_down_or_in_the_one_cluster)
UNIT(who_is_left_among_the_dead_decides)
UNIT(who_was_taken_for_lost_by_the_dead_stops)
UNIT_END
