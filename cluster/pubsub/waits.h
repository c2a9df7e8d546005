/* waits.h - publications that wait for subscribers, and answers that are counted: pure state
 * machines with deadlines.
 *
 *     publish, wait for n --> waits --ready, or the deadline--> route --> tally of the nodes
 *     answer of a node, node lost, tick --> tally --DONE--> "delivered to 12, 1 node was silent"
 */
#ifndef TRPI_CLUSTER_PUBSUB_WAITS_H
#define TRPI_CLUSTER_PUBSUB_WAITS_H

#include "cluster/pubsub/registry.h"

#define TRPI_PUBSUB_WAITS_MAX 1000u
#define TRPI_PUBSUB_TALLIES_MAX 10000u

/* ---- waiting for n subscribers --------------------------------------------------------------- */
typedef struct trpi_waits trpi_waits;
typedef struct trpi_wait_end {
    uint64_t id;
    void *arg;      /* the caller's */
    uint64_t count; /* subscribers now */
    bool ready;     /* as many as were wanted; else the deadline has passed */
} trpi_wait_end;

trp_err trpi_waits_new(trpi_waits **ret_waits); /* Errors: TRP_ENOMEM */
/* Ids and args of those that still wait are the caller's: trpi_waits_take() first. */
void trpi_waits_free(trpi_waits *waits);
/* Copies the key. Errors: TRP_ELIMIT (TRPI_PUBSUB_WAITS_MAX), TRP_ENOMEM. */
trp_err trpi_waits_add(trpi_waits *waits, const trpi_pubsub_key *topic, uint64_t wanted,
                       uint64_t deadline_ms, void *arg, uint64_t *ret_id);
/* Take one that has ended, the first added first; call it until it returns false, after each event
 * of the registry and when trpi_waits_wake_ms() is reached. */
bool trpi_waits_step(trpi_waits *waits, const trpi_pubreg *registry, uint64_t now_ms,
                     trpi_wait_end *ret_end);
bool trpi_waits_take(trpi_waits *waits, trpi_wait_end *ret_end); /* any, ended or not */
uint64_t trpi_waits_wake_ms(const trpi_waits *waits);            /* UINT64_MAX: never */
uint32_t trpi_waits_count(const trpi_waits *waits);

/* ---- counting answers ------------------------------------------------------------------------ */
typedef struct trpi_tallies trpi_tallies;
typedef struct trpi_tally_end {
    uint64_t id;
    void *arg;
    uint64_t delivered;        /* as the nodes said */
    uint32_t answered, silent; /* nodes; silent: lost, not told, or too late */
} trpi_tally_end;

trp_err trpi_tallies_new(trpi_tallies **ret_tallies); /* Errors: TRP_ENOMEM */
void trpi_tallies_free(trpi_tallies *tallies);
/* Begin a count: delivered here already, and the nodes that will answer (their incarnations).
 * nodes_count 0: it ends with the next step. Errors: TRP_ELIMIT (TRPI_PUBSUB_TALLIES_MAX),
 * TRP_ENOMEM. */
trp_err trpi_tallies_add(trpi_tallies *tallies, uint64_t delivered, const trpi_node_id *nodes,
                         uint32_t nodes_count, uint64_t deadline_ms, void *arg, uint64_t *ret_id);
/* A node has said to how many of its actors it was delivered; unknown ids and nodes, and second
 * answers, are nothing. */
void trpi_tallies_answer(trpi_tallies *tallies, uint64_t id, const trpi_node_id *from,
                         uint64_t delivered);
/* Nothing could be sent to a node: it is silent. node NULL: one that is not waited for. */
void trpi_tallies_missed(trpi_tallies *tallies, uint64_t id, const trpi_node_id *node);
void trpi_tallies_lost(trpi_tallies *tallies, const trpi_node_id *node);
/* Take one that has ended: all have answered, or were lost, or it is too late. */
bool trpi_tallies_step(trpi_tallies *tallies, uint64_t now_ms, trpi_tally_end *ret_end);
bool trpi_tallies_take(trpi_tallies *tallies, trpi_tally_end *ret_end); /* any, ended or not */
uint64_t trpi_tallies_wake_ms(
    const trpi_tallies *tallies); /* perhaps too early; UINT64_MAX: never */
uint32_t trpi_tallies_count(const trpi_tallies *tallies);

#endif
