/* operated.h - a swarm of complete nodes with an operator; private to the operated*.c files. */
#ifndef TRPI_CLUSTER_SIM_OPERATED_H
#define TRPI_CLUSTER_SIM_OPERATED_H

#include "cluster/node/node_private.h"
#include "cluster/sim/complete.h"
#include "cluster/sim/schedule.h"

#define OPERATED_ORDERS_MAX 64u
#define OPERATED_STRANGERS_MAX 256u
#define OPERATED_GIVEN_MAX 1024u

/* The answer of a node to `troupe status`, which has that to `troupe why` in it. */
struct sim_said {
    uint64_t at_ns; /* 0: never */
    bool healthy, converged, foresees;
    uint32_t problems, reasons;
    char first[240];  /* of its problems, or else of its reasons */
    char verdict[16]; /* "goes-on", "stops", "lease", "undecided" */
    uint64_t in_ms;
    uint64_t now_since_ns; /* since when the verdict is due at once; 0: it is not */
};

struct sim_listed {         /* a member in the view of one node */
    uint64_t uid, since_ns; /* as Up, without a break */
    uint64_t go_since_ns;   /* since when `peers` says that messages go at once, and none arrives */
    uint64_t healthy_since_ns; /* since when the node says that it is healthy; 0: it does not */
    uint64_t arrived_ns; /* when a message to this incarnation arrived last, as seen by looks */
};

struct sim_order {
    trpi_cluster_order *order; /* NULL: the place is free */
    trpi_member_event_kind kind;
    uint64_t uid;      /* of the node that it is about */
    uint64_t until_ns; /* then the operator waits no longer */
};

struct sim_stranger {
    trpi_link *link;
    uint64_t until_ns;
};

struct sim_operated {
    trp_sim *sim;
    const trpi_sim_schedule *schedule;
    bool supervised, careful;
    bool mended; /* all faults have ended: a node that starts can ask all others */
    uint32_t delay_ms;
    struct sim_laws laws;
    trp_node node; /* what commands see of a node: filled in for each question */
    trpi_config *config;
    trpi_transport *outside; /* of the strangers */
    struct sim_stranger strangers[OPERATED_STRANGERS_MAX];
    struct sim_order orders[OPERATED_ORDERS_MAX];
    struct sim_order given[OPERATED_GIVEN_MAX]; /* to leave or to be Down, not dropped, ended */
    uint32_t given_count;
    uint64_t decided_ns; /* when a strategy decided something last */
    uint64_t downed_ns;  /* when the operator marked a member Down last */
    uint32_t rotation;   /* the step that the operator is at */
    uint64_t looked_ns;
    struct sim_said said[TRP_SIM_NODES_MAX];
    struct sim_listed listed[TRP_SIM_NODES_MAX][TRP_SIM_NODES_MAX]; /* [viewer][member] */
    uint64_t unlisted_ns[TRP_SIM_NODES_MAX]; /* since when no member that it lists lists it */
    uint64_t started_ns[TRP_SIM_NODES_MAX];
    uint64_t leaving_ns[TRP_SIM_NODES_MAX];    /* since when it knows that it is to leave */
    uint64_t slow_until_ns[TRP_SIM_NODES_MAX]; /* its sluggard */
};

/* operated_load.c */
extern const trpi_transport_events sim_stranger_events;
/* So many connections to it, which say nothing and end after ms. */
void sim_strangers_come(struct sim_operated *o, const struct sim_whole *n, uint32_t count,
                        uint64_t ms);
void sim_strangers_go(struct sim_operated *o, uint64_t now_ns); /* those whose time is over */
/* Start a slow receiver and a flooder; after sim_laws_start(). */
void sim_load_start(struct sim_operated *o, uint32_t node);

/* operated_says.c. false: no memory. */
bool sim_node_says(struct sim_operated *o, const struct sim_whole *n, struct sim_said *ret_said);
/* Write the state of messages to that node in `troupe peers`: "messages go at once", ...; "": none.
 */
void sim_node_says_of(struct sim_operated *o, const struct sim_whole *n, const char *address,
                      char *ret_next, size_t bytes);

/* operated_laws.c */
void sim_laws_look(struct sim_operated *o);  /* at all nodes, now */
void sim_laws_peace(struct sim_operated *o); /* all is well, for a while: does each node say so? */
void sim_laws_note_order(struct sim_operated *o, const struct sim_order *order); /* it was given */
/* The node that has this address of its own; NULL: none. */
struct sim_whole *sim_operated_node_of(struct sim_operated *o, const char *address);
bool sim_whole_is_awake(const struct sim_whole *n); /* runs, and does not stand still */
uint64_t sim_whole_uid(const struct sim_whole *n);  /* 0: does not run */
/* Its membership has it Up. */
bool sim_whole_is_up(const struct sim_whole *n);
void sim_operated_fail(struct sim_operated *o, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
