/* churn_test.c - links that are bad for a while, and a large cluster in which somebody is always
 * unreachable; played by whole simulated nodes with the default timings.
 */
#include "tests/sim/stage.h"

static struct sim_world *
default_cluster(uint32_t nodes, uint32_t alive, uint64_t seed)
{
    struct sim_world *w = stage_new(nodes, seed);
    w->member.downing_strategy = "keep-majority";
    w->member.downing.stable_after_ms = 20000;
    w->member.downing.unstable_after_ms = 15000;
    stage_up(w, 1);
    stage_up(w, alive);
    return w;
}

/* Issue 13, 1.10: a connection that loses packets stalls for seconds; the other observers hear. */
static void
a_link_that_is_silent_for_six_seconds_makes_nobody_unreachable(void)
{
    for (uint32_t nodes = 3; nodes <= 12; nodes += 3) {
        struct sim_world *w = default_cluster(nodes, (1u << nodes) - 1, stage_first_seed());
        stage_events_count = 0;
        for (uint32_t other = 1; other < nodes; other++) {
            stage_link(w, 0, other, true);
            stage_run(w, 6000);
            stage_link(w, 0, other, false);
            stage_run(w, 3000);
        }
        for (uint32_t i = 0; i < stage_events_count; i++) {
            UNIT_TRUE(stage_events[i].event != TRP_CLUSTER_UNREACHABLE);
        }
        stage_end(w);
    }
}

/* What stays broken is found, by both ends: a strategy has to decide about it. */
static void
a_link_that_stays_broken_is_found_within_ten_seconds(void)
{
    struct sim_world *w = default_cluster(5, 31, stage_first_seed());
    stage_link(w, 1, 3, true);
    STAGE_AWAIT(w, stage_unreachable(w, 4, 1) || stage_unreachable(w, 4, 3), 10000);
    stage_link(w, 1, 3, false);
    STAGE_AWAIT(w, stage_agree(w, 31), 10000);
    stage_end(w);
}

UNIT_BEGIN("churn")
UNIT(a_link_that_is_silent_for_six_seconds_makes_nobody_unreachable)
UNIT(a_link_that_stays_broken_is_found_within_ten_seconds)
UNIT_END
