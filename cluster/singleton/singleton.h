/* singleton.h - the door of singletons: bind them to a cluster node, look at them. The API of
 * programs is include/troupe/singleton.h. */
#ifndef TRPI_CLUSTER_SINGLETON_SINGLETON_H
#define TRPI_CLUSTER_SINGLETON_SINGLETON_H

#include <troupe/cluster.h>
#include <troupe/singleton.h>

#include "remote/remote.h"

/* Answer for singletons on this node from now on, also for those that are not started here; until
 * trpi_singletons_close(). Errors: TRP_ENOMEM. Thread: owner. */
trp_err trpi_singletons_open(trp_system *system, trpi_remote *remote);
void trpi_singletons_close(trp_system *system);
/* The whole cluster is being shut down, and for so long none is started on another node. Thread:
 * any. */
void trpi_singletons_cluster_ends(trp_system *system, uint64_t ms);

#define TRPI_SINGLETON_WAITS_BYTES 512
typedef struct trpi_singleton_status { /* of one singleton, as this node knows it */
    const char *name, *role;           /* role "": any */
    const char *state;                 /* "Oldest"; "Proxy": only a proxy of it is here */
    char host[TRP_ADDRESS_BYTES];      /* where it runs, or should; "": no member may host it */
    bool runs;                         /* on this node */
    uint64_t host_ms, state_ms;        /* for how long */
    /* what the state waits for, as a sentence; "": nothing */
    char waits[TRPI_SINGLETON_WAITS_BYTES];
    uint32_t kept; /* Proxy: messages that wait for it */
} trpi_singleton_status;
/* Call fn for each, by name. Thread: any; holds a lock meanwhile. */
void trpi_singletons_each(trp_system *system,
                          void (*fn)(void *arg, const trpi_singleton_status *status), void *arg);

#endif
