/* complete_test.c - what troupe/sim.h promises to programs, and the scenario `actors`.
 *
 *     TROUPE_SIM_SEEDS=1000 [TROUPE_SIM_FIRST=SEED] tests/sim/complete_test    a twentieth of them
 */
#include <stdlib.h>

#include <troupe/actor.h>
#include <troupe/cluster.h>
#include <troupe/sim.h>

#include "cluster/sim/complete.h"
#include "cluster/sim/sim.h"
#include "tests/unit/unit.h"

/* ---- a program ------------------------------------------------------------------------------- */

static trp_err
double_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t number;
    (void)state;
    memcpy(&number, trp_msg_payload(msg), sizeof number);
    number *= 2;
    trp_reply(ctx, &trp_i64_type, &number, sizeof number);
    return TRP_OK;
}
static const trp_behaviour doubler = TRP_BEHAVIOUR_INIT("sim-doubler", char, double_receive);

static uint32_t started_count;

static void
start_echo(trp_sim *sim, uint32_t node, void *arg)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    (void)arg;
    options.name = "doubler";
    started_count++;
    UNIT_EQUAL(trp_system_spawn(trp_sim_system(sim, node), &doubler, &options, &ref), TRP_OK);
}

static int64_t
ask_node(trp_sim *sim, uint32_t from, uint32_t to)
{
    char path[96];
    int64_t number = 21;
    trp_msg *answer = NULL;
    snprintf(path, sizeof path, "%s/user/doubler", trp_sim_address(sim, to));
    trp_err err = trp_system_ask_path(trp_sim_system(sim, from), path, &trp_i64_type, &number,
                                      sizeof number, 5000, &answer);
    if (err == TRP_OK) {
        memcpy(&number, trp_msg_payload(answer), sizeof number);
    }
    trp_msg_free(answer);
    return err == TRP_OK ? number : (int64_t)err;
}

struct look {
    trp_sim *sim;
    size_t members;
};

static int
members_are(void *arg)
{
    const struct look *look = arg;
    trp_member members[8];
    size_t count = 0;
    return trp_cluster_members(trp_sim_system(look->sim, 0), members, 8, &count) == TRP_OK &&
           count == look->members;
}

static void
nodes_come_and_go(trp_sim *sim, void *arg)
{
    struct look look = { sim, 2 };
    (void)arg;
    TRP_SIM_CHECK(sim, ask_node(sim, 0, 2) == 42);
    trp_sim_leave(sim, 2);
    trp_sim_await(sim, members_are, &look, 10000);
    trp_sim_pass(sim, 5000);
    TRP_SIM_CHECK(sim, trp_sim_system(sim, 2) == NULL); /* its process has ended */
    trp_sim_start(sim, 2);
    trp_sim_calm(sim, 30000);
    trp_sim_kill(sim, 1);
    TRP_SIM_CHECK(sim, trp_sim_system(sim, 1) == NULL);
    trp_sim_await(sim, members_are, &look, 60000); /* downed, removed */
    trp_sim_calm(sim, 60000);
    TRP_SIM_CHECK(sim, ask_node(sim, 2, 1) == 42);
}

static void
a_program_runs_on_nodes_that_come_and_go(void)
{
    trp_sim_options options = TRP_SIM_OPTIONS_INIT;
    trp_sim_result result = { .size = sizeof result };
    options.started = start_echo;
    options.stable_after_ms = 3000;
    started_count = 0;
    UNIT_EQUAL(trp_sim_run(nodes_come_and_go, NULL, &options, &result), TRP_OK);
    UNIT_EQUAL(started_count, 5);
    UNIT_EQUAL(result.runs, 1);
    UNIT_TRUE(result.turns > 0 && result.virtual_ms > 10000);
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void
a_pause_and_a_cut_hold_messages_back(trp_sim *sim, void *arg)
{
    uint64_t began_ms = trp_sim_now_ms(sim);
    (void)arg;
    TRP_SIM_CHECK(sim, ask_node(sim, 0, 1) == 42);
    TRP_SIM_CHECK(sim, trp_sim_now_ms(sim) < began_ms + 500);
    trp_sim_pause(sim, 1, 2000);
    began_ms = trp_sim_now_ms(sim);
    TRP_SIM_CHECK(sim, ask_node(sim, 0, 1) == 42);
    TRP_SIM_CHECK(sim, trp_sim_now_ms(sim) >= began_ms + 1900);
    trp_sim_cut(sim, 1, 0, 1500); /* the answer */
    began_ms = trp_sim_now_ms(sim);
    TRP_SIM_CHECK(sim, ask_node(sim, 0, 1) == 42);
    TRP_SIM_CHECK(sim, trp_sim_now_ms(sim) >= began_ms + 1400);
    trp_sim_delay(sim, 5000); /* more than 32 bits of nanoseconds */
    uint64_t longest_ms = 0;
    for (int i = 0; i < 5 && longest_ms < 3000; i++) {
        began_ms = trp_sim_now_ms(sim);
        (void)ask_node(sim, 0, 1);
        longest_ms = trp_sim_now_ms(sim) - began_ms;
    }
    TRP_SIM_CHECK(sim, longest_ms >= 3000);
    trp_sim_reset(sim, 1);
    trp_sim_delay(sim, 50);
    trp_sim_calm(sim, 20000);
    TRP_SIM_CHECK(sim, ask_node(sim, 0, 1) == 42);
}

static void
what_is_sent_to_who_stands_still_or_is_cut_off_arrives_later(void)
{
    trp_sim_options options = TRP_SIM_OPTIONS_INIT;
    options.nodes = 2;
    options.started = start_echo;
    UNIT_EQUAL(trp_sim_run(a_pause_and_a_cut_hold_messages_back, NULL, &options, NULL), TRP_OK);
}

struct spared {
    trp_sim *sim; /* NULL: no faults now */
    uint32_t first_starts, looks, hurt_most;
};
static struct spared spared;

static void
spared_started(trp_sim *sim, uint32_t node, void *arg)
{
    start_echo(sim, node, arg);
    spared.first_starts += node == 0;
}

/* The promise of troupe/sim.h about the nodes that faults spare, checked at each line of a log. */
static void
look_at_faults(void *arg, uint64_t now_ms, uint32_t node, const trp_log_line *line)
{
    const struct trp_sim *sim = spared.sim;
    uint32_t hurt = 0;
    (void)arg;
    (void)now_ms;
    (void)node;
    (void)line;
    if (sim == NULL) {
        return;
    }
    uint64_t now_ns = sim_complete_now_ns(sim);
    spared.looks++;
    UNIT_TRUE(sim->nodes[0].alone_until_ns <= now_ns && !sim->nodes[0].unplugged);
    for (uint32_t i = 0; i < sim->nodes_count; i++) {
        hurt += sim->nodes[i].unplugged || sim->nodes[i].alone_until_ns > now_ns;
        for (uint32_t k = 0; k < sim->nodes_count; k++) {
            UNIT_TRUE(sim->cut_until_ns[i][k] <= now_ns + UINT64_C(6200000000));
        }
    }
    UNIT_TRUE(hurt * 2 <= sim->nodes_count);
    spared.hurt_most = hurt > spared.hurt_most ? hurt : spared.hurt_most;
}

static void
suffer_faults(trp_sim *sim, void *arg)
{
    (void)arg;
    spared.sim = sim;
    trp_sim_faults(sim, 20000);
    spared.sim = NULL;
    trp_sim_calm(sim, 120000);
}

static void
faults_spare_the_first_node_and_half_of_all(void)
{
    trp_sim_options options = TRP_SIM_OPTIONS_INIT;
    options.nodes = 5;
    options.started = spared_started;
    options.log = look_at_faults;
    memset(&spared, 0, sizeof spared);
    for (options.seed = 1; options.seed <= 5; options.seed++) {
        UNIT_EQUAL(trp_sim_run(suffer_faults, NULL, &options, NULL), TRP_OK);
    }
    UNIT_EQUAL(spared.first_starts, 5); /* never killed */
    UNIT_TRUE(spared.looks > 100);
    UNIT_EQUAL(spared.hurt_most, 2);
}

/* ---- failure --------------------------------------------------------------------------------- */

static int
never_holds(void *arg)
{
    (void)arg;
    return 0;
}

static void
waits_in_vain(trp_sim *sim, void *arg)
{
    trp_sim_await(sim, never_holds, NULL, 1000);
    *(bool *)arg = true;
}

static void
a_failure_ends_the_program_and_is_told(void)
{
    trp_sim_options options = TRP_SIM_OPTIONS_INIT;
    trp_sim_result result = { .size = sizeof result };
    bool went_on = false;
    options.seed = 7;
    options.seeds = 3;
    options.nodes = 1;
    UNIT_EQUAL(trp_sim_run(waits_in_vain, &went_on, &options, &result), TRP_EFAILED);
    UNIT_FALSE(went_on);
    UNIT_EQUAL(result.runs, 1);
    UNIT_EQUAL(result.seed, 7);
    UNIT_EQUAL(result.failed, 1);
    UNIT_TRUE(strstr(result.text, "not happened in time") != NULL);
}

static trp_sim *failing_sim;
static trp_err
fail_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_err err = double_receive(ctx, state, msg);
    TRP_SIM_CHECK(failing_sim, false && "in a behaviour");
    return err;
}
static const trp_behaviour failing = TRP_BEHAVIOUR_INIT("sim-failing", char, fail_receive);

static void
failing_started(trp_sim *sim, uint32_t node, void *arg)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    (void)arg;
    options.name = "doubler";
    failing_sim = sim;
    UNIT_EQUAL(trp_system_spawn(trp_sim_system(sim, node), &failing, &options, &ref), TRP_OK);
}

static void
asks_who_fails(trp_sim *sim, void *arg)
{
    bool *went_on = arg;
    UNIT_EQUAL(ask_node(sim, 0, 0), 42); /* the check returned */
    trp_sim_calm(sim, 1000);
    *went_on = true;
}

static void
a_failure_in_a_behaviour_ends_the_program_when_it_waits(void)
{
    trp_sim_options options = TRP_SIM_OPTIONS_INIT;
    trp_sim_result result = { .size = sizeof result };
    bool went_on = false;
    options.nodes = 1;
    options.started = failing_started;
    UNIT_EQUAL(trp_sim_run(asks_who_fails, &went_on, &options, &result), TRP_EFAILED);
    UNIT_FALSE(went_on);
    UNIT_TRUE(strstr(result.text, "in a behaviour") != NULL);
}

static void
options_out_of_range_are_refused(void)
{
    trp_sim_options options = TRP_SIM_OPTIONS_INIT;
    options.nodes = TRP_SIM_NODES_MAX + 1;
    UNIT_EQUAL(trp_sim_run(waits_in_vain, NULL, &options, NULL), TRP_EINVAL);
    options.nodes = 1;
    options.downing = "no-such-strategy";
    UNIT_EQUAL(trp_sim_run(waits_in_vain, NULL, &options, NULL), TRP_EINVAL);
    options.downing = NULL;
    options.size = offsetof(trp_sim_options, roles) - 1; /* less than the first release had */
    UNIT_EQUAL(trp_sim_run(waits_in_vain, NULL, &options, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_sim_run(NULL, NULL, NULL, NULL), TRP_EINVAL);
}

/* ---- the scenario `actors` ------------------------------------------------------------------- */

static uint64_t
run_seed(uint64_t seed)
{
    static const uint32_t sizes[] = { 3, 4, 5, 2, 7 };
    trpi_sim_options options = {
        .nodes = sizes[seed % 5], .seed = seed, .scenario = TRPI_SIM_ACTORS, .until_ms = 30000
    };
    trpi_sim_result result = { .hash = 0 };
    UNIT_EQUAL(trpi_sim_run(&options, &result), TRP_OK);
    UNIT_FALSE(result.failed);
    if (result.failed) {
        printf("  replay: troupe sim --scenario actors --until 30s --nodes %u --seed %llu\n",
               options.nodes, (unsigned long long)seed);
    }
    return result.hash;
}

/* Remoting, membership and actors hold their laws under faults, and a seed is one history. */
static void
complete_nodes_hold_the_laws_under_every_seed(void)
{
    const char *seeds = getenv("TROUPE_SIM_SEEDS");
    const char *first = getenv("TROUPE_SIM_FIRST");
    uint64_t from = first != NULL ? strtoull(first, NULL, 10) : 1;
    uint64_t count = seeds != NULL ? strtoull(seeds, NULL, 10) / 20 + 1 : 3;
    uint64_t hash = 0;
    for (uint64_t seed = from; seed < from + count; seed++) {
        hash = run_seed(seed);
    }
    UNIT_TRUE(run_seed(from + count - 1) == hash);
}

UNIT_BEGIN("complete_sim")
UNIT(a_program_runs_on_nodes_that_come_and_go)
UNIT(what_is_sent_to_who_stands_still_or_is_cut_off_arrives_later)
UNIT(faults_spare_the_first_node_and_half_of_all)
UNIT(a_failure_ends_the_program_and_is_told)
UNIT(a_failure_in_a_behaviour_ends_the_program_when_it_waits)
UNIT(options_out_of_range_are_refused)
UNIT(complete_nodes_hold_the_laws_under_every_seed)
UNIT_END
