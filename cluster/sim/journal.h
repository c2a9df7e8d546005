/* journal.h - the journal of a simulation: what its files share.
 *
 *     journal.c          the driver of each node, and the journal of a run
 *     journal_flight.c   operations on their way: time, chance, order, answers
 *     journal_stray.c    copies of changes whose makers wait no longer
 */
#ifndef TRPI_CLUSTER_SIM_JOURNAL_H
#define TRPI_CLUSTER_SIM_JOURNAL_H

#include "cluster/sim/complete.h"

#define SIM_JOURNAL_MS_NS UINT64_C(1000000)

/* The end of a flight, besides what the store says. */
typedef enum sim_fate {
    FATE_STORE,   /* carried out, and answered with what the store says */
    FATE_REFUSED, /* no room */
    FATE_LATE,    /* refused: it has waited for too long for a connection */
    FATE_UNKNOWN, /* carried out or not: the node is told that no answer came */
    FATE_LOST,    /* the connection is lost when it gets to the store */
    FATE_CUT,     /* it was under way then: its answer never comes */
} sim_fate;

typedef struct sim_flight {
    struct sim_flight *next;
    sim_journal_node *node;   /* NULL: of a stray */
    sim_journal_node *origin; /* of those of its id or scope that it keeps its order with */
    trp_journal_op *op;
    trp_journal_done_fn done; /* of its maker */
    uint64_t serial;
    uint64_t next_ns; /* when it is carried out, or else answered */
    uint64_t answer_ns;
    sim_fate fate;
    bool is_carried;
    bool is_change;
} sim_flight;

struct sim_journal_node {
    trp_journal_driver driver;
    sim_journal *journal;
    uint32_t number;
    bool is_crashed;
    uint64_t away_until_ns;
    uint64_t groups, events, refused, failed; /* since it was opened */
};

struct sim_journal {
    trp_sim *sim;
    trp_journal_memory *store;
    sim_flight *first;
    uint64_t random;
    uint64_t serial;
    trp_sim_journal_faults faults;
    trp_sim_journal_faults given; /* the program's own */
    bool is_given;
    sim_journal_break broken;
    sim_journal_node nodes[TRP_SIM_NODES_MAX];
};

uint64_t sim_journal_now_ns(const sim_journal *journal);
/* A time of 1 ns up to so many milliseconds. */
uint64_t sim_journal_draw_ns(sim_journal *journal, uint32_t ms);
bool sim_journal_draw(sim_journal *journal, uint32_t of_1000);

/* journal_flight.c. Let it set out, behind those that it must not overtake (sim-journal-J2). */
void sim_flight_begin(sim_journal *journal, sim_flight *f);
/* The first flight of a node in the order of submission; NULL: none. */
sim_flight *sim_flight_of(const sim_journal *journal, const sim_journal_node *node);
/* A flight is at the store; a carried one is at its node. */
void sim_flight_arrive(sim_journal *journal, sim_flight *f);
void sim_flight_answer(sim_journal *journal, sim_flight *f);
/* Cut what a node has under way, but what is not sent. */
void sim_flights_cut(sim_journal *journal, const sim_journal_node *node, uint64_t now_ns);

/* Its strays hold nothing up from now on: the node has died, or closed the journal. */
void sim_strays_release(sim_journal *journal, const sim_journal_node *node);

/* journal_stray.c. Copy a change with all that it leads to; NULL: no memory. One block: free it. */
sim_flight *sim_stray_new(const trp_journal_op *op);

#endif
