/* scenario.c - the scenarios of simulated clusters.
 *
 * Each scenario starts all nodes, waits until they are one cluster, does something to it, heals
 * everything, and waits until all wanted nodes are one converged cluster again.
 *
 * The supervisor restarts what has stopped, as systemd would; but the first seed only when another
 * seed is there to be asked, or no node is left: a first seed that can reach no other may make a
 * cluster of its own, which is documented, and would here be an island for ever. And it waits
 * while one node lives on that another has removed: a node that restarts then might join the dead
 * lineage and vote in it, which no strategy without memory can tell from the living one.
 */
#include "cluster/sim/world.h"

#include <string.h>

#include "base/assert.h"

#define SUPERVISE_MS 500u
#define SECOND_US 1000000u

/* ---- common parts ---------------------------------------------------------------------------- */

static void
start_script(struct sim_world *w, uint32_t node, uint64_t arg)
{
    (void)arg;
    if (!w->nodes[node].running) {
        sim_node_start(w, node);
    }
}

bool
sim_await_quiet(struct sim_world *w, uint64_t limit_ms, uint64_t every_ms)
{
    uint64_t end_us = w->now_us + limit_ms * 1000;
    while (!w->result.failed && w->now_us < end_us) {
        sim_run_until(w, w->now_us + every_ms * 1000);
        if (sim_is_quiet(w)) {
            return !w->result.failed;
        }
    }
    sim_explain(w);
    return false;
}

static bool
await_quiet(struct sim_world *w, uint64_t limit_ms)
{
    return sim_await_quiet(w, limit_ms, 100);
}

void
sim_start_but(struct sim_world *w, uint32_t spread_ms, uint32_t missing)
{
    for (uint32_t i = 0; i < w->nodes_count - missing; i++) {
        w->nodes[i].wanted = true;
        sim_at(w, sim_below(w, spread_ms + 1), start_script, i, 0);
    }
    uint64_t began_us = w->now_us;
    if (await_quiet(w, 30000 + w->nodes_count * 200)) {
        sim_check_quiet(w);
        w->result.up_ms = (w->now_us - began_us) / 1000;
        sim_note(w, "all Up after %llu ms", (unsigned long long)w->result.up_ms);
    }
}

void
sim_start_all(struct sim_world *w, uint32_t spread_ms)
{
    sim_start_but(w, spread_ms, 0);
}

/* The first seed creates a cluster when no member answers: so it does not start while another seed
 * stands still. */
static bool
first_seed_may_start(const struct sim_world *w)
{
    for (uint32_t i = 1; i < w->seeds_count; i++) {
        if (sim_is_member(&w->nodes[i]) && w->nodes[i].paused_until_us > w->now_us) {
            return false;
        }
    }
    return true;
}

/* Return whether a node runs as a member that another one has removed, or is about to. */
static bool
a_zombie_lives(const struct sim_world *w)
{
    for (uint32_t i = 0; i < w->nodes_count; i++) {
        const struct sim_node *n = &w->nodes[i];
        if (!sim_is_member(n)) {
            continue;
        }
        uint64_t key = trpi_member_self(n->core)->key;
        for (uint32_t k = 0; k < w->nodes_count; k++) {
            const trpi_gossip *g =
                sim_is_member(&w->nodes[k]) ? trpi_member_view(w->nodes[k].core) : NULL;
            uint32_t at = g == NULL ? TRPI_GOSSIP_NONE : trpi_gossip_find(g, key);
            if (g != NULL &&
                (trpi_gossip_tombstone(g, key) != NULL ||
                 (at != TRPI_GOSSIP_NONE && g->members[at].status == TRP_MEMBER_DOWN))) {
                return true;
            }
        }
    }
    return false;
}

static void
supervise_script(struct sim_world *w, uint32_t node, uint64_t arg)
{
    (void)node;
    (void)arg;
    bool calm =
        !w->any_cut && w->loss <= 0.2 && w->now_us >= w->restarts_from_us && !a_zombie_lives(w);
    for (uint32_t i = 0; i < w->nodes_count; i++) {
        struct sim_node *n = &w->nodes[i];
        if (n->running && !sim_is_member(n) && w->now_us > n->started_us + 40 * SECOND_US) {
            sim_node_kill(w, i); /* it asks a node that is gone: the operator tries another one */
        }
        if (n->running || !n->wanted) {
            continue;
        }
        if (n->restart_us == 0) {
            n->restart_us = w->now_us + 200000 + sim_below(w, 8 * SECOND_US);
        } else if (w->now_us >= n->restart_us && calm && (i > 0 || first_seed_may_start(w))) {
            sim_node_start(w, i);
        }
    }
    sim_at(w, SUPERVISE_MS, supervise_script, 0, 0);
}

void
sim_supervise(struct sim_world *w)
{
    supervise_script(w, 0, 0);
}

void
sim_heal(struct sim_world *w)
{
    memset(w->cut, 0, (size_t)w->nodes_count * w->nodes_count);
    if (w->any_cut) {
        sim_note(w, "network healed");
    }
    w->any_cut = false;
    w->cut_until_us = 0;
}

static void
heal_script(struct sim_world *w, uint32_t node, uint64_t arg)
{
    (void)node;
    if (arg == w->cut_until_us) { /* else of an earlier cut */
        sim_heal(w);
    }
}

static void
heal_in(struct sim_world *w, uint64_t ms)
{
    w->any_cut = true;
    w->faults++;
    w->cut_until_us = w->now_us + ms * 1000;
    sim_at(w, ms, heal_script, 0, w->cut_until_us);
}

void
sim_cut_sides(struct sim_world *w, const char *sides, bool both_ways, uint64_t ms)
{
    for (uint32_t from = 0; from < w->nodes_count; from++) {
        for (uint32_t to = 0; to < w->nodes_count; to++) {
            if (sides[from] != sides[to] && (both_ways || sides[from] < sides[to])) {
                w->cut[from * w->nodes_count + to] = 1;
            }
        }
    }
    heal_in(w, ms);
}

void
sim_cut_link(struct sim_world *w, uint32_t from, uint32_t to, bool both_ways, uint64_t ms)
{
    w->cut[from * w->nodes_count + to] = 1;
    w->cut[to * w->nodes_count + from] = both_ways ? 1 : 0;
    heal_in(w, ms);
}

void
sim_finish(struct sim_world *w)
{
    sim_heal(w);
    w->loss = 0.0;
    w->duplicate = 0.0;
    w->corrupt = 0.0;
    w->restarts_from_us = 0;
    sim_note(w, "all faults end");
    if (!w->result.failed && await_quiet(w, 180000)) {
        sim_check_quiet(w);
    }
}

/* sim-Q8: what a converged cluster sends when nothing happens. */
static void
check_idle_traffic(struct sim_world *w)
{
    uint64_t frames = w->result.frames;
    sim_run_until(w, w->now_us + 10 * SECOND_US);
    uint64_t per_node_second = (w->result.frames - frames) / w->nodes_count / 10;
    uint32_t monitored =
        w->heartbeat.monitored_by_nr_of_members == 0 ? 5 : w->heartbeat.monitored_by_nr_of_members;
    if (!w->result.failed && per_node_second > monitored * 2 + 2) {
        sim_fail(w, "sim-Q8: %llu frames a second and node when idle",
                 (unsigned long long)per_node_second);
    }
}

/* ---- sunny: nothing happens ------------------------------------------------------------------ */

/* Both times of the strategy, in the proportion of the defaults. */
static void
rest_after(struct sim_world *w, uint32_t ms)
{
    w->member.downing.stable_after_ms = ms;
    w->member.downing.unstable_after_ms = ms / 4 * 3;
}

static void
prepare_plain(struct sim_world *w)
{
    rest_after(w, 20000);
}

static void
play_sunny(struct sim_world *w)
{
    sim_start_all(w, 1000);
    uint64_t end_us = w->now_us + (w->options.until_ms != 0 ? w->options.until_ms : 30000) * 1000;
    sim_run_until(w, end_us);
    if (w->unreachable_events != 0 || w->downed != 0 || w->decisions != 0) {
        sim_fail(w, "sim-Q6: %llu false alarms", (unsigned long long)w->unreachable_events);
    }
    if (!w->result.failed) {
        check_idle_traffic(w);
        sim_finish(w);
    }
}

/* ---- crash: some die, are found, downed, removed, and come back ------------------------------ */

static void
prepare_crash(struct sim_world *w)
{
    rest_after(w, 5000);
}

bool
sim_all_see_away(const struct sim_world *w, uint32_t dead)
{
    for (uint32_t i = 0; i < w->nodes_count; i++) {
        if (!w->nodes[i].running) {
            continue;
        }
        const trpi_gossip *g = trpi_member_view(w->nodes[i].core);
        uint32_t at =
            g == NULL ? TRPI_GOSSIP_NONE : trpi_gossip_find_address(g, &w->nodes[dead].id);
        if (at != TRPI_GOSSIP_NONE && g->members[at].unreachable == 0 &&
            g->members[at].status != TRP_MEMBER_DOWN) {
            return false;
        }
    }
    return true;
}

static void
play_crash(struct sim_world *w)
{
    sim_start_all(w, 1000);
    sim_run_until(w, w->now_us + 30 * SECOND_US); /* steady beating */
    uint32_t victims = w->nodes_count < 3 ? 0 : 1 + sim_below(w, (w->nodes_count - 1) / 2);
    uint32_t last = 0;
    w->restarts_from_us = UINT64_MAX;
    for (uint32_t i = 0; i < victims; i++) {
        last = (last + 1 + sim_below(w, w->nodes_count / victims)) % w->nodes_count;
        sim_node_kill(w, last);
    }
    uint64_t end_us = w->now_us + 6 * SECOND_US;
    /* A node whose monitors died with it is found by new neighbours (heartbeat-H5): in twice the
     * time. */
    end_us += victims > 4 ? 4 * SECOND_US : 0;
    sim_run_until(w, end_us);
    for (uint32_t i = 0; i < w->nodes_count && victims > 0; i++) {
        if (!w->nodes[i].running && !sim_all_see_away(w, i)) {
            sim_fail(w, "sim-Q6: the crash of node %u was not seen by all in time", i);
        }
    }
    sim_run_until(w, w->now_us + 15 * SECOND_US);
    sim_supervise(w);
    sim_finish(w);
}

/* ---- cut: 15 s without a link, no member is removed ------------------------------------------ */

static void
prepare_cut(struct sim_world *w)
{
    rest_after(w, 60000);
}

static void
random_sides(struct sim_world *w, char *side)
{
    uint32_t ones = 0;
    for (uint32_t i = 0; i < w->nodes_count; i++) {
        uint32_t one = sim_below(w, 2);
        side[i] = one != 0 ? '1' : '0';
        ones += one;
    }
    side[w->nodes_count] = '\0';
    if (ones == 0 || ones == w->nodes_count) {
        side[sim_below(w, w->nodes_count)] ^= 1; /* '0' is even */
    }
    sim_note(w, "network cut: %s", side);
}

static void
play_cut(struct sim_world *w)
{
    char side[TRPI_SIM_NODES_MAX + 1];
    sim_start_all(w, 1000);
    sim_run_until(w, w->now_us + 10 * SECOND_US);
    random_sides(w, side);
    sim_cut_sides(w, side, sim_chance(w, 0.7), 15000);
    sim_run_until(w, w->now_us + 16 * SECOND_US);
    if (!w->result.failed && await_quiet(w, 30000) && (w->downed != 0 || w->removed_by_down != 0)) {
        sim_fail(w, "a cut of 15 s removed a member with stable-after 60 s");
    }
    sim_finish(w);
}

/* ---- split: longer than stable-after; one side at most survives (sim-S12) -------------------- */

static void
play_split(struct sim_world *w)
{
    char side[TRPI_SIM_NODES_MAX + 1];
    sim_start_all(w, 1000);
    sim_run_until(w, w->now_us + 10 * SECOND_US);
    random_sides(w, side);
    w->restarts_from_us = UINT64_MAX;
    sim_supervise(w);
    /* In large halves some learn only from their new neighbours that all of the others are away. */
    uint64_t ms = 60000 + w->nodes_count * 600;
    sim_cut_sides(w, side, true, ms);
    sim_run_until(w, w->now_us + ms * 1000 - SECOND_US);
    uint32_t alive[2] = { 0, 0 };
    uint32_t all[2] = { 0, 0 };
    for (uint32_t i = 0; i < w->nodes_count; i++) {
        all[side[i] - '0']++;
        alive[side[i] - '0'] += sim_is_member(&w->nodes[i]) ? 1 : 0;
    }
    if (alive[0] > 0 && alive[1] > 0) {
        sim_fail(w, "sim-S12: both sides live, %u and %u", alive[0], alive[1]);
    }
    uint32_t larger = all[1] > all[0] ? 1 : 0;
    if (all[0] != all[1] && alive[larger] != all[larger]) {
        sim_fail(w, "only %u of the majority of %u live", alive[larger], all[larger]);
    }
    sim_finish(w);
}

/* ---- restart: the same addresses again and again, the first seed too ------------------------- */

static void
play_restart(struct sim_world *w)
{
    sim_start_all(w, 1000);
    for (uint32_t round = 0; round < 6 && !w->result.failed; round++) {
        uint32_t node = round % 2 == 0 ? 0 : sim_below(w, w->nodes_count);
        if (w->nodes_count == 1) {
            break;
        }
        sim_node_kill(w, node);
        sim_run_until(w, w->now_us + 100000 + sim_below(w, 3 * SECOND_US));
        sim_node_start(w, node);
        if (await_quiet(w, 20000)) {
            sim_check_quiet(w);
        }
    }
    sim_finish(w);
}

/* ---- leave: one after the other, fast -------------------------------------------------------- */

static bool
is_gone(const struct sim_world *w, uint32_t node)
{
    for (uint32_t i = 0; i < w->nodes_count; i++) {
        const trpi_gossip *g = w->nodes[i].running ? trpi_member_view(w->nodes[i].core) : NULL;
        if (g != NULL && trpi_gossip_find_address(g, &w->nodes[node].id) != TRPI_GOSSIP_NONE) {
            return false;
        }
    }
    return !w->nodes[node].running;
}

static void
play_leave(struct sim_world *w)
{
    sim_start_all(w, 1000);
    for (uint32_t round = 0; round < 5 && w->nodes_count > 1 && !w->result.failed; round++) {
        uint32_t node = sim_below(w, w->nodes_count);
        uint32_t at = sim_below(w, w->nodes_count);
        w->nodes[node].wanted = false;
        sim_node_command(w, at, TRPI_MEMBER_LEAVE, node);
        uint64_t end_us = w->now_us + 4 * SECOND_US;
        while (!is_gone(w, node) && w->now_us < end_us && !w->result.failed) {
            sim_run_until(w, w->now_us + 50000);
        }
        if (!is_gone(w, node)) {
            sim_fail(w, "node %u has not left everywhere within 4 s", node);
        } else if (w->nodes[node].stop != TRPI_STOP_LEFT) {
            sim_fail(w, "node %u left and was told that it was downed", node);
        }
        sim_run_until(w, w->now_us + SECOND_US);
        if (!w->result.failed && w->downed > 0) {
            sim_fail(w, "a graceful leave marked a member Down");
        }
        w->nodes[node].wanted = true;
        if (!w->result.failed) {
            sim_node_start(w, node);
            (void)await_quiet(w, 20000);
        }
    }
    sim_finish(w);
}

/* ---- table ----------------------------------------------------------------------------------- */

static const sim_scenario scenarios[] = {
    { "swarm", sim_schedule_prepare, sim_schedule_play },
    { "sunny", prepare_plain, play_sunny },
    { "crash", prepare_crash, play_crash },
    { "cut", prepare_cut, play_cut },
    { "split", prepare_crash, play_split },
    { "restart", prepare_crash, play_restart },
    { "leave", prepare_plain, play_leave },
    { "join", prepare_plain, sim_play_join },
    { "lossy", prepare_plain, sim_play_lossy },
};

const sim_scenario *
sim_scenario_find(const char *name)
{
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
        if (strcmp(scenarios[i].name, name) == 0) {
            return &scenarios[i];
        }
    }
    return NULL;
}

const char *const *
trpi_sim_scenario_names(void)
{
    static const char *const names[] = { "swarm", "sunny",         "crash",           "cut",
                                         "split", "restart",       "leave",           "join",
                                         "lossy", TRPI_SIM_ACTORS, TRPI_SIM_OPERATED, NULL };
    _Static_assert(sizeof names / sizeof names[0] == sizeof scenarios / sizeof scenarios[0] + 3,
                   "a scenario has no name");
    return names;
}
