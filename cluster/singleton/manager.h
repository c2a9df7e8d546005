/* manager.h - the state of a manager; private to manager.c and manager_start.c. */
#ifndef TRPI_CLUSTER_SINGLETON_MANAGER_H
#define TRPI_CLUSTER_SINGLETON_MANAGER_H

#include "cluster/singleton/registry.h"

typedef struct manager { /* entry->own */
    singleton_entry *entry;
    trp_singleton_options options; /* the texts and payloads are copies */
    trp_strategy strategy;         /* of the singleton */
    trp_behaviour behaviour;       /* of the manager, with it */
    char *texts[2];                /* dispatcher, mailbox */
    void *payloads[2];             /* args, end */
    trpi_singleton_core *core;
    trp_ref child;
    trpi_lease *lease;
    trpi_node_id *askers; /* manager-S5 */
    uint32_t askers_count, askers_room;
    uint64_t task; /* of the shutdown, which waits; 0: none */
    bool started, over, out, cluster_ends, spawn_failed;
    trp_ctx *ctx;    /* during a step */
    trpi_aged *aged; /* members of the role, when it looked last */
    uint32_t aged_count, aged_room;
    char stuck[512];
    trpi_node_id oldest_seen;
} manager;

/* Carry an action of the engine out; arg: the manager. */
void singleton_manager_act(void *arg, const trpi_singleton_action *action);

#endif
