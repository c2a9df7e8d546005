/* figures.c - scenarios whose outcome is a figure: how long one join takes, what loss does.
 *
 * A figure that is worse than what is promised (docs/performance.md) is a failure like any other
 * (sim-Q9). Tests: tests/sim/sim_test.c; tests/bench/sim.c prints the figures.
 */
#include "cluster/sim/world.h"

#define SECOND_US 1000000u
#define LOSS 0.2
#define LOSSY_US (600ull * SECOND_US)

/* ---- join: one more -------------------------------------------------------------------------- */

/* From a change at one member until the leader knows that all have seen it: what others need;
 * between those sizes a straight line. */
static uint64_t
convergence_ms_max(uint32_t members)
{
    static const struct {
        uint32_t members, ms;
    } table[] = { { 10, 2300 }, { 100, 4300 }, { 1000, 7300 }, { 2400, 8000 }, { 10000, 10000 } };
    size_t i = 1;
    while (i + 1 < sizeof table / sizeof table[0] && members > table[i].members) {
        i++;
    }
    uint64_t over = members > table[i - 1].members ? members - table[i - 1].members : 0;
    return table[i - 1].ms +
           over * (table[i].ms - table[i - 1].ms) / (table[i].members - table[i - 1].members);
}

/* From its start until it is Up and all have seen it. */
static uint64_t
join_ms_max(uint32_t members)
{
    return members <= 10 ? 3000 : members <= 1000 ? 8000 : members <= 2400 ? 10000 : 20000;
}

void
sim_play_join(struct sim_world *w)
{
    uint32_t last = w->nodes_count - 1;
    if (w->nodes_count < 2) {
        return;
    }
    sim_start_but(w, 1000, 1);
    sim_run_until(w, w->now_us + 10 * SECOND_US);
    if (w->result.failed) {
        return;
    }
    uint64_t began_us = w->now_us;
    struct sim_node *n = &w->nodes[last];
    sim_node_start(w, last);
    sim_await_quiet(w, 2 * join_ms_max(w->nodes_count), 10);
    if (w->result.failed) {
        return;
    }
    sim_check_quiet(w);
    w->result.join_ms = (w->now_us - began_us) / 1000;
    w->result.convergence_ms = (n->up_us - n->joining_us) / 1000;
    sim_note(w, "joined in %llu ms, converged in %llu ms", (unsigned long long)w->result.join_ms,
             (unsigned long long)w->result.convergence_ms);
    if (w->result.join_ms > join_ms_max(w->nodes_count)) {
        sim_fail(w, "sim-Q9: one join took %llu ms", (unsigned long long)w->result.join_ms);
    }
    if (w->result.convergence_ms > convergence_ms_max(w->nodes_count)) {
        sim_fail(w, "sim-Q9: convergence took %llu ms",
                 (unsigned long long)w->result.convergence_ms);
    }
}

/* ---- lossy: a fifth of all frames is lost, and no member is removed -------------------------- */

void
sim_play_lossy(struct sim_world *w)
{
    sim_start_but(w, 1000, 0);
    w->loss = LOSS;
    w->faults++;
    uint64_t us = w->options.until_ms != 0 ? w->options.until_ms * 1000 : LOSSY_US;
    sim_run_until(w, w->now_us + us);
    if (w->removed_by_down != 0 || w->downed != 0) {
        sim_fail(w, "%llu members removed by loss alone",
                 (unsigned long long)(w->removed_by_down + w->downed));
    }
    sim_finish(w);
}
