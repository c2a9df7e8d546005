/* health.h - is this node ready for work, and does it do any: by probes inside the node, which ask
 * no peer. See health.c. */
#ifndef TRPI_NODE_HEALTH_H
#define TRPI_NODE_HEALTH_H

#include "cluster/node/node_private.h"

#define TRPI_HEALTH_PROBE_MS 1000u /* a probe of readiness is answered within */
#define TRPI_ALIVE_AFTER_S_DEFAULT 30

typedef struct trpi_health trpi_health;

/* Start the probes and the looks. Gives *ret_health, also with an error, unless that is TRP_ENOMEM
 * and it is NULL. Errors: those of a spawn, TRP_ENOMEM. */
trp_err trpi_health_start(trp_node *node, trpi_health **ret_health);
/* No check runs any more: give the sockets back. Before the system is freed. NULL is fine. */
void trpi_health_stop(trpi_health *health);
/* After the system was freed. NULL is fine. */
void trpi_health_free(trpi_health *health);

/* The verdict about one thing. */
typedef struct trpi_health_check {
    const char *name; /* static */
    bool ok;
    char detail[160];
} trpi_health_check;

/* Check whether the node takes work: waits for its probes, at most TRPI_HEALTH_PROBE_MS. Thread:
 * any but a worker. */
#define TRPI_HEALTH_READY_CHECKS 4u
void trpi_health_ready(trpi_health *health, trpi_health_check ret_checks[TRPI_HEALTH_READY_CHECKS]);
/* Check whether the node does any work. Waits for nothing. Thread: any. */
void trpi_health_alive(trpi_health *health, trpi_health_check *ret_check);

/* Is no operator's order moving work away from this node (leave, drain)? *ret_why: static. */
bool trpi_node_takes_work(trp_node *node, const char **ret_why);

#endif
