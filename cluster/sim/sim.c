/* sim.c - one run. Tests: tests/sim/sim_test.c */
#include "cluster/sim/sim.h"

#include <string.h>

#include "cluster/sim/complete.h"
#include "cluster/sim/schedule.h"
#include "cluster/sim/world.h"

static trp_err
run_scenario(const sim_scenario *scenario, const trpi_sim_options *options,
             trpi_sim_result *ret_result)
{
    struct sim_world *w;
    trp_err err = sim_world_new(options, &w);
    if (err != TRP_OK) {
        return err;
    }
    w->member.broken = options->broken;
    w->heartbeat.phi.learn_pause = (options->broken & TRPI_BROKEN_LEARN_PAUSE) != 0;
    scenario->prepare(w);
    scenario->play(w);
    *ret_result = w->result;
    sim_world_free(w);
    return TRP_OK;
}

trp_err
trpi_sim_run(const trpi_sim_options *options, trpi_sim_result *ret_result)
{
    if (options->scenario != NULL && options->schedule == NULL &&
        strcmp(options->scenario, TRPI_SIM_ACTORS) == 0) {
        return sim_complete_run(options, ret_result);
    }
    if (options->schedule != NULL
            ? trpi_sim_schedule_is_complete(options->schedule)
            : options->scenario != NULL && strcmp(options->scenario, TRPI_SIM_OPERATED) == 0) {
        return sim_operated_run(options, ret_result);
    }
    const sim_scenario *scenario =
        sim_scenario_find(options->schedule != NULL   ? "swarm"
                          : options->scenario == NULL ? "sunny"
                                                      : options->scenario);
    if (scenario == NULL || options->nodes > TRPI_SIM_NODES_MAX) {
        return TRP_EINVAL;
    }
    trpi_sim_options o = *options;
    o.nodes = o.nodes == 0 ? TRPI_SIM_NODES : o.nodes;
    trpi_sim_schedule *drawn = NULL;
    if (o.schedule == NULL && strcmp(scenario->name, "swarm") == 0) {
        o.schedule = drawn = trpi_sim_schedule_draw(o.nodes, o.seed, o.until_ms);
        if (drawn == NULL) {
            return TRP_ENOMEM;
        }
    }
    trp_err err = run_scenario(scenario, &o, ret_result);
    trpi_sim_schedule_free(drawn);
    return err;
}
