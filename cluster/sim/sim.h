/* sim.h - whole clusters in one thread, under one seed, in virtual time.
 *
 * Engine, detector and codec are those of production; network, clock and processes are simulated.
 * Each failure names its seed and the command that replays it.
 */
#ifndef TRPI_CLUSTER_SIM_SIM_H
#define TRPI_CLUSTER_SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <troupe/base.h>

#define TRPI_SIM_NODES_MAX 10000u
#define TRPI_SIM_NODES 5u
#define TRPI_SIM_FAILURE_BYTES 512
#define TRPI_SIM_ACTORS "actors"     /* the scenario with complete nodes; troupe/sim.h */
#define TRPI_SIM_OPERATED "operated" /* the swarm of complete nodes with an operator */

typedef struct trpi_sim_options {
    uint32_t nodes; /* 1 .. TRPI_SIM_NODES_MAX; 0: TRPI_SIM_NODES */
    uint64_t seed;
    uint64_t until_ms;                        /* of the fault phase; 0: as the scenario likes */
    const char *scenario;                     /* NULL: "sunny"; see trpi_sim_scenario_names() */
    const struct trpi_sim_schedule *schedule; /* borrowed; instead of a scenario; see schedule.h */
    uint32_t broken; /* TRPI_BROKEN_... of membership.h; developer builds only */
    FILE *trace;     /* NULL: none */
    bool tenant;     /* the oldest member hosts an actor that must not live twice (tenant.c) */
} trpi_sim_options;

typedef struct trpi_sim_result {
    uint64_t hash; /* of everything that happened: equal for equal options, on every machine */
    uint64_t events, frames, bytes, virtual_ms;
    uint64_t up_ms;          /* from the first start until all were Up and had seen it */
    uint64_t join_ms;        /* "join": the last one, from its start until all had seen it Up */
    uint64_t convergence_ms; /* "join": from its Joining until the leader acted on agreement */
    uint32_t incarnations;
    bool failed;
    char failure[TRPI_SIM_FAILURE_BYTES];
} trpi_sim_result;

/* Run one seed to its end. Errors: TRP_EINVAL (options), TRP_ENOMEM. A broken invariant is no
 * error of this call: ret_result->failed. */
trp_err trpi_sim_run(const trpi_sim_options *options, trpi_sim_result *ret_result);
/* NULL-terminated. */
const char *const *trpi_sim_scenario_names(void);
/* `troupe sim ...`: parse, run, print; returns the exit code. Also exported as trp_sim_main. */
int trpi_sim_main(int argc, char **argv);

#endif
