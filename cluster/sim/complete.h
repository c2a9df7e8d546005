/* complete.h - simulated nodes that are complete: systems with actors, remoting, membership. It
 * implements the contract of troupe/sim.h; private to the complete*.c files. */
#ifndef TRPI_CLUSTER_SIM_COMPLETE_H
#define TRPI_CLUSTER_SIM_COMPLETE_H

#include <setjmp.h>

#include <troupe/sim.h>

#include "base/world_virtual.h"
#include "cluster/cluster.h"
#include "cluster/sim/sim.h"
#include "sim/mem_transport.h"
#include "sim/sim_net.h"

#define SIM_COMPLETE_SEEDS 3u
#define SIM_OPERATED_SEEDS 12u
#define SIM_COMPLETE_PORT 2552
#define SIM_COMPLETE_GROUND TRP_SIM_NODES_MAX /* the host of what runs on no node */
#define SIM_COMPLETE_COOKIE_KEY "remote.secure-cookie"
#define SIM_COMPLETE_PENDING 16u            /* connections without a handshake */
#define SIM_COMPLETE_RECEIVER_BYTES 524288u /* that may wait for one receiver */

struct sim_whole { /* a node */
    trp_sim *sim;
    uint32_t number;
    char host[8]; /* "n12" */
    char address[64];
    char sockets_host[16]; /* "10.0.0.13" */
    trp_system *system;    /* NULL: does not run */
    trpi_remote *remote;
    trpi_cluster *cluster;
    bool unplugged;         /* killed: nothing gets in or out */
    bool over;              /* its membership has ended, so its process will end */
    trpi_member_stop stop;  /* how the last membership ended */
    uint64_t port_until_ns; /* it cannot be dialled */
    /* of a swarm */
    uint64_t woke_ns;        /* when it was started, or went on */
    uint64_t restart_ns;     /* when the supervisor starts it; 0: not planned */
    uint32_t rotation;       /* of its cookies: the step that it has taken */
    bool starts_alone;       /* without seeds */
    char advertises[8];      /* a host that is not its own; "" */
    uint64_t alone_until_ns; /* cut off from all, by trp_sim_faults() */
    uint64_t still_until_ns;
};

typedef struct sim_journal sim_journal;
typedef struct sim_journal_node sim_journal_node;

struct trp_sim {
    trp_sim_options options;
    trp_sim_program program;
    void *arg;
    trpi_virtual *virt;
    trpi_mem_network *network;
    trpi_sim_net *sockets;         /* of programs; host i is node i's */
    trpi_sim_faults socket_faults; /* the program's own */
    bool socket_faults_given;
    sim_journal *journal; /* NULL: never asked for */
    trp_system *ground;   /* of no node; its timer moves the network */
    uint64_t began_ns;
    uint64_t random, network_random, socket_random;
    uint32_t delay_ms;
    uint32_t nodes_count;
    struct sim_whole nodes[TRP_SIM_NODES_MAX];
    uint64_t cut_until_ns[TRP_SIM_NODES_MAX][TRP_SIM_NODES_MAX];  /* [from][to] */
    uint64_t dial_until_ns[TRP_SIM_NODES_MAX][TRP_SIM_NODES_MAX]; /* [from][to] cannot be dialled */
    struct sim_operated *operated; /* NULL: no swarm with an operator */
    bool may_jump;                 /* the program runs, and not within a behaviour */
    jmp_buf end;
    bool failed;
    trp_sim_result result;
};

/* complete.c */
uint64_t sim_complete_now_ns(const trp_sim *sim);
uint64_t sim_complete_draw(uint64_t *state); /* splitmix64 */
/* As trp_sim_run(), of one seed; its caller prints a failure. */
trp_err sim_complete_run_once(trp_sim_program program, void *arg, const trp_sim_options *options,
                              trp_sim_result *ret_result);
void sim_complete_mend(trp_sim *sim); /* no cut, pause, closed port or delay any more */
/* complete_node.c */
extern uint32_t sim_complete_broken; /* TRPI_BROKEN_... of nodes that start: tests must find them */
void sim_whole_start(struct sim_whole *n);
void sim_whole_end(struct sim_whole *n); /* as kill -9 */
bool sim_whole_all_up(trp_sim *sim);
void sim_whole_rotate(struct sim_whole *n); /* its cookies: the next step */
/* complete_faults.c */
trpi_mem_verdict sim_complete_fault(void *arg, trpi_mem_event *event);
trpi_mem_verdict sim_complete_socket_fault(void *arg, trpi_mem_event *event);
/* journal.c. Faults that its tests must find: */
typedef enum sim_journal_break {
    SIM_JOURNAL_BREAK_NONE,
    SIM_JOURNAL_BREAK_ORDER,   /* operations of one id overtake each other */
    SIM_JOURNAL_BREAK_OUTCOME, /* an append without an answer is told as done */
    SIM_JOURNAL_BREAK_LATE     /* one that was told as failed arrives behind later ones */
} sim_journal_break;
trp_err sim_journal_break_set(trp_sim *sim, sim_journal_break how);
void sim_journal_advance(trp_sim *sim);        /* what is due happens */
void sim_journal_phase(trp_sim *sim, bool on); /* of the faults of trp_sim_faults() */
void sim_journal_crash(struct sim_whole *n);   /* from now on nothing of it gets there */
void sim_journal_restart(struct sim_whole *n);
void sim_journal_end(trp_sim *sim); /* when all nodes have ended */
/* The actors of complete_laws.c and what they have noticed; one a run. */
struct sim_laws {
    trp_sim *sim;
    uint32_t incarnations[TRP_SIM_NODES_MAX]; /* started so far, by node */
    uint64_t received;
    struct {
        uint64_t ns, uid; /* when something from `from` arrived last, and at which incarnation */
    } arrived[TRP_SIM_NODES_MAX][TRP_SIM_NODES_MAX]; /* [to][from] */
};
void sim_laws_start(trp_sim *sim, uint32_t node, struct sim_laws *laws);
/* complete-law-A3: each reaches the actor of this name on all others: "counter". */
void sim_laws_everybody_answers(trp_sim *sim, const char *name);

/* operated.c: a swarm with an operator; operated.h */
struct sim_operated;
trp_err sim_operated_run(const trpi_sim_options *options, trpi_sim_result *ret_result);
trp_err sim_operated_begin(trp_sim *sim);        /* when there is a network, and no node yet */
void sim_operated_end(trp_sim *sim);             /* before the network ends */
trp_err sim_operated_watch(struct sim_whole *n); /* it has just been started */
void sim_operated_ended(struct sim_whole *n);    /* its membership has ended: n->stop */

/* complete_laws.c: `troupe sim --scenario actors` */
trp_err sim_complete_run(const trpi_sim_options *options, trpi_sim_result *ret_result);
/* Between the options and results of a scenario and those of a program. A failure is a result, and
 * no error. */
void sim_complete_trace(const trpi_sim_options *options, trp_sim_options *ret);
trp_err sim_complete_result(trp_err err, const trp_sim_result *result, trpi_sim_result *ret_result);

#endif
