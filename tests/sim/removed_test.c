/* removed_test.c - nodes that were removed while they were cut off or stood still, nodes that were
 * not and are told so, and crashes of many at once; played by whole simulated nodes.
 */
#include "tests/sim/stage.h"

static struct sim_world *
cluster_of(uint32_t nodes, const char *strategy, uint64_t seed)
{
    struct sim_world *w = stage_new(nodes, seed);
    w->member.downing_strategy = strategy;
    w->member.downing.stable_after_ms = 20000;
    w->member.downing.quorum_size = nodes / 2 + 1;
    w->member.downing.referee = w->nodes[1].id.address; /* never cut off here */
    w->member.downing.auto_down_after_ms = 600000;      /* the operator is faster */
    stage_up(w, 1);
    stage_up(w, (1u << nodes) - 1);
    return w;
}

/* Does `at` hold it for two clusters? */
static bool
is_told(const struct sim_world *w, uint32_t at)
{
    return w->nodes[at].running && trpi_member_removed_since_ms(w->nodes[at].core) != 0;
}

/* It thinks that the others are dead, and they are not. They hear of it by GONE when
 * the cut is short, by refused handshakes when it is longer than quarantine-removed-node-after. */
static void
one_of_three_that_downs_the_others_while_cut_off_ends_neither(void)
{
    static const char *const strategies[] = { "manual",        "auto-down-after", "keep-majority",
                                              "static-quorum", "keep-oldest",     "keep-referee" };
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        for (uint32_t cut_ms = 1000; cut_ms <= 9000; cut_ms += 8000) {
            struct sim_world *w = cluster_of(3, strategies[i], stage_first_seed() + i);
            bool decides = w->nodes[1].core != NULL && i >= 2;
            stage_split(w, 1, true);
            sim_node_command(w, 0, TRPI_MEMBER_DOWN_CMD, 1);
            sim_node_command(w, 0, TRPI_MEMBER_DOWN_CMD, 2);
            UNIT_EQUAL(stage_members(w, 0), 1);
            stage_run(w, cut_ms);
            stage_split(w, 1, false);
            STAGE_AWAIT(w, is_told(w, 1) && is_told(w, 2), 12000);
            UNIT_EQUAL(stage_alive(w), 7);
            stage_run(w, 40000);
            UNIT_EQUAL(stage_alive(w), 7);
            UNIT_EQUAL(stage_members(w, 0), 1);
            if (decides) { /* they have downed it in their turn: that is over for them */
                UNIT_TRUE(stage_agree(w, 6));
                UNIT_FALSE(is_told(w, 1) || is_told(w, 2));
            } else {
                UNIT_TRUE(is_told(w, 1) && is_told(w, 2));
            }
            stage_end(w);
        }
    }
}

/* The others marked it Down while it could not be told, and have quarantined it since. */
static void
who_was_removed_while_cut_off_ends_within_ten_seconds_of_the_first_refusal(void)
{
    static const char *const strategies[] = { "manual", "auto-down-after", "keep-majority",
                                              "static-quorum" };
    for (uint32_t n = 3; n <= 5; n++) {
        for (uint32_t victim = 0; victim < n; victim += n - 1) {
            uint32_t others = ((1u << n) - 1) & ~(1u << victim);
            struct sim_world *w = cluster_of(n, strategies[(n + victim) % 4], stage_first_seed());
            stage_split(w, 1u << victim, true);
            sim_node_command(w, 1, TRPI_MEMBER_DOWN_CMD, victim);
            stage_run(w, 9000);
            UNIT_TRUE(stage_agree(w, others));
            UNIT_TRUE(w->nodes[victim].running);
            stage_split(w, 1u << victim, false);
            STAGE_AWAIT(w, !w->nodes[victim].running, 10000);
            UNIT_EQUAL(w->nodes[victim].stop, TRPI_STOP_DOWNED);
            stage_run(w, 5000);
            UNIT_TRUE(stage_agree(w, others));
            stage_end(w);
        }
    }
}

/* Of two, and of two and two, each side half of the votes. */
static void
of_two_halves_that_of_the_lowest_address_ends_the_other_when_it_removed_it(void)
{
    for (uint32_t half = 1; half <= 2; half++) {
        uint32_t low = (1u << half) - 1, all = (1u << 2 * half) - 1;
        for (uint32_t by = 0; by <= half; by += half) { /* a node of the side that removes */
            struct sim_world *w = cluster_of(2 * half, "manual", stage_first_seed());
            stage_split(w, low, true);
            for (uint32_t i = 0; i < half; i++) {
                sim_node_command(w, by, TRPI_MEMBER_DOWN_CMD, by == 0 ? half + i : i);
            }
            stage_run(w, 9000);
            stage_split(w, low, false);
            if (by == 0) {
                STAGE_AWAIT(w, stage_alive(w) == low, 10000);
            } else {
                STAGE_AWAIT(w, is_told(w, 0), 10000);
                stage_run(w, 20000);
                UNIT_EQUAL(stage_alive(w), all);
            }
            stage_end(w);
        }
    }
}

/* It leads when it stops; the others remove it meanwhile, by the operator or by their strategy. As
 * its connections are broken long before, nothing waits for it when it goes on. */
static void
who_was_removed_while_it_stood_still_marks_nobody_down_and_ends_within_ten_seconds(void)
{
    static const char *const strategies[] = { "manual", "auto-down-after", "keep-majority" };
    for (size_t i = 0; i < 3; i++) {
        for (uint64_t seed = stage_first_seed(); seed < stage_first_seed() + 5; seed++) {
            struct sim_world *w = stage_new(3, seed);
            w->member.downing_strategy = strategies[i];
            w->member.downing.stable_after_ms = 20000;
            stage_up(w, 7);
            sim_node_pause(w, 0, 60000);
            stage_split(w, 1, true);
            stage_run(w, 10000);
            if (i == 0) {
                sim_node_command(w, 1, TRPI_MEMBER_DOWN_CMD, 0);
            }
            stage_run(w, 49900);
            stage_split(w, 1, false);
            UNIT_TRUE(stage_agree(w, 6));
            STAGE_AWAIT(w, !w->nodes[0].running, 10100);
            UNIT_EQUAL(w->nodes[0].stop, TRPI_STOP_DOWNED);
            UNIT_EQUAL(stage_told(w, 0, TRP_CLUSTER_MEMBER_DOWNED, 1), 0);
            UNIT_EQUAL(stage_told(w, 0, TRP_CLUSTER_MEMBER_DOWNED, 2), 0);
            UNIT_TRUE(stage_agree(w, 6));
            stage_end(w);
        }
    }
}

/* A node that was not removed is awake as soon as its peers have answered. */
static void
who_stood_still_and_is_a_member_yet_leads_again_when_its_peers_have_answered(void)
{
    struct sim_world *w = cluster_of(3, "manual", stage_first_seed());
    sim_node_pause(w, 0, 15000);
    stage_run(w, 15000);
    STAGE_AWAIT(w, stage_agree(w, 7), 5000);
    UNIT_FALSE(trpi_heartbeat_is_waking(w->nodes[0].heartbeat, w->now_us));
    UNIT_EQUAL(stage_leader(w, 0), 0);
    stage_end(w);
}

/* ---- many crashes at once -------------------------------------------------------------------- */

/* Until all running nodes see all of `dead` away, in ms; 0: not within a minute. */
static uint64_t
time_of(uint32_t nodes, uint32_t monitored, uint32_t dead, uint64_t seed)
{
    struct sim_world *w = stage_new(nodes, seed);
    w->member.downing_strategy = "manual";
    w->heartbeat.monitored_by_nr_of_members = monitored;
    stage_up(w, (1u << nodes) - 1);
    stage_run(w, 20000);
    for (uint32_t i = 0; i < nodes; i++) {
        if ((dead >> i & 1) != 0) {
            sim_node_kill(w, i);
        }
    }
    uint64_t began_us = w->now_us;
    bool seen = false;
    while (!seen && !w->result.failed && w->now_us < began_us + 60000000) {
        stage_run(w, 10);
        seen = true;
        for (uint32_t i = 0; i < nodes; i++) {
            seen = seen && ((dead >> i & 1) == 0 || sim_all_see_away(w, i));
        }
    }
    uint64_t ms = seen ? (w->now_us - began_us) / 1000 : 0;
    stage_end(w);
    return ms;
}

/* FD: found together, not one after the other around the ring */
static void
crashes_of_all_but_one_at_once_are_listed_within_twice_the_time_of_one(void)
{
    uint64_t one_ms = 0, all_ms = 0, most_ms = 0;
    for (uint64_t seed = stage_first_seed(); seed < stage_first_seed() + 10; seed++) {
        uint32_t left = (uint32_t)seed % 6;
        uint64_t one = time_of(6, 2, 1u << (left + 1) % 6, seed);
        uint64_t all = time_of(6, 2, 63 & ~(1u << left), seed);
        uint64_t most = time_of(20, 2, 0xfffff & ~(1u << seed), seed);
        if (!UNIT_TRUE(one > 0 && all > 0 && most > 0 && all <= 2 * one)) {
            printf("  seed %llu: one %llu ms, five of six %llu ms, 19 of 20 %llu ms\n",
                   (unsigned long long)seed, (unsigned long long)one, (unsigned long long)all,
                   (unsigned long long)most);
        }
        one_ms = one > one_ms ? one : one_ms;
        all_ms = all > all_ms ? all : all_ms;
        most_ms = most > most_ms ? most : most_ms;
    }
    UNIT_TRUE(most_ms <= 2 * one_ms);
    printf("  at most: one %llu ms, five of six %llu ms, 19 of 20 %llu ms\n",
           (unsigned long long)one_ms, (unsigned long long)all_ms, (unsigned long long)most_ms);
}

UNIT_BEGIN("removed")
UNIT(one_of_three_that_downs_the_others_while_cut_off_ends_neither)
UNIT(who_was_removed_while_cut_off_ends_within_ten_seconds_of_the_first_refusal)
UNIT(of_two_halves_that_of_the_lowest_address_ends_the_other_when_it_removed_it)
UNIT(who_was_removed_while_it_stood_still_marks_nobody_down_and_ends_within_ten_seconds)
UNIT(who_stood_still_and_is_a_member_yet_leads_again_when_its_peers_have_answered)
UNIT(crashes_of_all_but_one_at_once_are_listed_within_twice_the_time_of_one)
UNIT_END
