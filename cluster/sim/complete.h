/* complete.h - simulated nodes that are complete: systems with actors, remoting, membership. What
 * troupe/sim.h promises; private to the complete*.c files. */
#ifndef TRPI_CLUSTER_SIM_COMPLETE_H
#define TRPI_CLUSTER_SIM_COMPLETE_H

#include <setjmp.h>

#include <troupe/sim.h>

#include "base/world_virtual.h"
#include "cluster/cluster.h"
#include "cluster/sim/sim.h"
#include "sim/mem_transport.h"

#define SIM_COMPLETE_SEEDS 3u
#define SIM_COMPLETE_PORT 2552

struct sim_whole { /* a node */
    trp_sim *sim;
    uint32_t number;
    char host[8]; /* "n12" */
    char address[64];
    trp_system *system; /* NULL: does not run */
    trpi_remote *remote;
    trpi_cluster *cluster;
    bool unplugged; /* killed: nothing gets in or out */
    bool over;      /* its membership has ended, so its process will */
    uint64_t alone_until_ns; /* cut off from all, by trp_sim_faults() */
    uint64_t still_until_ns;
};

struct trp_sim {
    trp_sim_options options;
    trp_sim_program program;
    void *arg;
    trpi_virtual *virt;
    trpi_mem_network *network;
    trp_system *ground; /* of no node; its timer moves the network */
    uint64_t began_ns;
    uint64_t random, network_random;
    uint32_t delay_ms;
    uint32_t nodes_count;
    struct sim_whole nodes[TRP_SIM_NODES_MAX];
    uint64_t cut_until_ns[TRP_SIM_NODES_MAX][TRP_SIM_NODES_MAX]; /* [from][to] */
    bool may_jump; /* the program runs, and not within a behaviour */
    jmp_buf end;
    bool failed;
    trp_sim_result result;
};

/* complete.c */
uint64_t sim_complete_now_ns(const trp_sim *sim);
uint64_t sim_complete_draw(uint64_t *state); /* splitmix64 */
/* complete_node.c */
void sim_whole_start(struct sim_whole *n);
void sim_whole_end(struct sim_whole *n); /* as kill -9 */
bool sim_whole_all_up(trp_sim *sim);
/* complete_faults.c */
trpi_mem_verdict sim_complete_fault(void *arg, trpi_mem_event *event);
/* complete_laws.c: `troupe sim --scenario actors` */
trp_err sim_complete_run(const trpi_sim_options *options, trpi_sim_result *ret_result);

#endif
