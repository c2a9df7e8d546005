/* play.c - carries out a schedule: the faults of a swarm, or of a file.
 *
 * All nodes start and become one cluster; then each action at its time; then all faults end, and
 * each node that should be a member is one, in one converged cluster; then, as a last test of the
 * detectors, one node crashes and is found.
 *
 * Careful (a setting, on in a swarm) leaves out what would make two clusters by itself, whatever
 * the strategy: a fault while the first seed asks whether there is a cluster; an operator who marks
 * a member Down that may be cut off or stands still, or a cut before all know of that.
 * Tests. tests/sim/sim_test.c, tests/unit/cluster/schedule_test.c
 */
#include "cluster/sim/world.h"

#include <string.h>

#include "cluster/sim/schedule.h"

#define SECOND_US 1000000u
#define START_LOSS_MAX 0.1
/* A crash after all faults: within this. A second is the rhythm, 3 s are forgiven, and windows that
 * have seen losses are wide; one that has learned a pause of many seconds needs longer. */
#define FOUND_WITHIN_US (12 * SECOND_US)

static void
apply_setting(struct sim_world *w, const trpi_sim_action *a)
{
    switch (a->act) {
    case TRPI_SIM_STABLE_AFTER:
        w->member.downing.stable_after_ms = (uint32_t)a->ms;
        break;
    case TRPI_SIM_UNSTABLE_AFTER:
        w->member.downing.unstable_after_ms = (uint32_t)a->ms;
        break;
    case TRPI_SIM_DOWNING:
        w->member.downing_strategy = a->text;
        break;
    case TRPI_SIM_QUORUM:
        w->member.downing.quorum_size = a->a;
        break;
    case TRPI_SIM_MONITORED_BY:
        w->heartbeat.monitored_by_nr_of_members = a->a;
        break;
    case TRPI_SIM_MIN_MEMBERS:
        w->member.min_nr_of_members = a->a;
        break;
    case TRPI_SIM_DELAY:
        w->delay_min_us = (uint32_t)a->ms * 1000;
        w->delay_mean_us = (uint32_t)a->ms2 * 1000;
        break;
    case TRPI_SIM_BUGGIFY:
        w->member.buggify = a->a != 0;
        w->member.weakly_up_after_ms = a->a != 0 ? 2000 : 0; /* joiners in a cut: rare, too */
        break;
    case TRPI_SIM_EXITING_TAKES:
        w->exiting_ms = (uint64_t)a->ms;
        w->member.exiting_waits = a->ms != 0;
        break;
    case TRPI_SIM_CAREFUL:
        w->careful = a->a != 0;
        break;
    default:
        w->supervised = a->a != 0;
        break;
    }
}

void
sim_schedule_prepare(struct sim_world *w)
{
    const trpi_sim_schedule *schedule = w->options.schedule;
    for (uint32_t i = 0; i < schedule->count; i++) {
        if (schedule->actions[i].act <= TRPI_SIM_SUPERVISED) {
            apply_setting(w, &schedule->actions[i]);
        }
    }
}

static void
cut_network(struct sim_world *w, const trpi_sim_action *a)
{
    if (w->careful && (w->any_cut || w->now_us < w->cuts_from_us)) {
        return;
    }
    if (a->act == TRPI_SIM_CUT) {
        sim_cut_sides(w, a->text, !a->one_way, (uint64_t)a->ms);
    } else {
        sim_cut_link(w, a->a, a->b, !a->one_way, (uint64_t)a->ms);
    }
}

/* Return whether the target stands still, or the node that is to mark it Down finds it unreachable.
 */
static bool
is_missed(const struct sim_world *w, const trpi_sim_action *a)
{
    const struct sim_node *at = &w->nodes[a->b];
    const trpi_gossip *g = at->running ? trpi_member_view(at->core) : NULL;
    uint32_t target =
        g == NULL ? TRPI_GOSSIP_NONE : trpi_gossip_find_address(g, &w->nodes[a->a].id);
    return w->nodes[a->a].paused_until_us > w->now_us ||
           (target != TRPI_GOSSIP_NONE && g->members[target].unreachable != 0);
}

static void
order_down(struct sim_world *w, const trpi_sim_action *a)
{
    if (w->careful && (w->any_cut || is_missed(w, a))) {
        return;
    }
    w->cuts_from_us = w->now_us + 5 * SECOND_US;
    w->nodes[a->a].wanted = w->supervised;
    sim_node_command(w, a->b, TRPI_MEMBER_DOWN_CMD, a->a);
}

static void
do_action(struct sim_world *w, const trpi_sim_action *a)
{
    struct sim_node *node = &w->nodes[a->a < w->nodes_count ? a->a : 0];
    switch (a->act) {
    case TRPI_SIM_KILL:
        sim_node_kill(w, a->a);
        node->wanted = w->supervised;
        break;
    case TRPI_SIM_START:
        if (!node->running) {
            sim_node_start(w, a->a);
        }
        break;
    case TRPI_SIM_PAUSE:
        sim_node_pause(w, a->a, (uint64_t)a->ms);
        break;
    case TRPI_SIM_LEAVE:
        node->wanted = w->supervised;
        sim_node_command(w, a->b, TRPI_MEMBER_LEAVE, a->a);
        break;
    case TRPI_SIM_DOWN:
        order_down(w, a);
        break;
    case TRPI_SIM_CUT:
    case TRPI_SIM_LINK:
        cut_network(w, a);
        break;
    case TRPI_SIM_LOSS:
        w->loss = (double)a->a / 1000.0;
        break;
    case TRPI_SIM_DUPLICATE:
        w->duplicate = (double)a->a / 1000.0;
        break;
    case TRPI_SIM_CORRUPT:
        w->corrupt = (double)a->a / 1000.0;
        break;
    case TRPI_SIM_SKEW:
        node->wall_skew_ms += a->ms;
        break;
    case TRPI_SIM_HEAL:
    case TRPI_SIM_END:
        sim_heal(w);
        break;
    default:
        break; /* settings: prepared */
    }
}

/* sim-Q6: one of a cluster that is whole again dies; its window must not have learned the
 * faults. */
static void
kill_and_find(struct sim_world *w)
{
    uint32_t running = 0;
    uint32_t last = 0;
    for (uint32_t i = 0; i < w->nodes_count; i++) {
        running += w->nodes[i].running ? 1 : 0;
        last = w->nodes[i].running ? i : last;
    }
    if (running < 2 || w->result.failed) {
        return;
    }
    sim_run_until(w, w->now_us + 30 * SECOND_US); /* steady beating */
    sim_node_kill(w, last);
    w->nodes[last].wanted = false;
    w->restarts_from_us = UINT64_MAX;
    uint64_t end_us = w->now_us + FOUND_WITHIN_US;
    while (!w->result.failed && w->now_us < end_us && !sim_all_see_away(w, last)) {
        sim_run_until(w, w->now_us + SECOND_US / 10);
    }
    if (!w->result.failed && !sim_all_see_away(w, last)) {
        sim_fail(w, "sim-Q6: the crash of node %u after all faults was not seen by all", last);
    }
}

void
sim_schedule_play(struct sim_world *w)
{
    const trpi_sim_schedule *schedule = w->options.schedule;
    double loss = w->loss;
    uint32_t i;
    for (i = 0; i < schedule->count && schedule->actions[i].at_ms == 0; i++) {
        loss = schedule->actions[i].act == TRPI_SIM_LOSS ? (double)schedule->actions[i].a / 1000.0
                                                         : loss;
    }
    w->loss = loss > START_LOSS_MAX ? START_LOSS_MAX : loss;
    sim_start_all(w, 3000);
    if (w->supervised) {
        sim_supervise(w);
    }
    uint64_t began_us = w->now_us;
    for (i = 0; i < schedule->count && !w->result.failed; i++) {
        const trpi_sim_action *a = &schedule->actions[i];
        char line[TRPI_SIM_LINE_BYTES_MAX];
        sim_run_until(w, began_us + a->at_ms * 1000);
        bool asks = w->careful && w->nodes[0].running && !sim_is_member(&w->nodes[0]);
        if (!w->result.failed && (!asks || a->act == TRPI_SIM_END)) {
            sim_note(w, "%s", trpi_sim_action_text(a, line, sizeof line));
            do_action(w, a);
        }
    }
    for (i = 0; i < w->nodes_count; i++) {
        w->nodes[i].wanted = w->nodes[i].wanted && (w->supervised || w->nodes[i].running);
    }
    sim_finish(w);
    sim_tenant_check_quiet(w);
    kill_and_find(w);
}
