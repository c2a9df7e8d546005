/* pubsub.h - the door of publish and subscribe: bind it to a cluster node, look at it. The API of
 * programs is include/troupe/pubsub.h. */
#ifndef TRPI_CLUSTER_PUBSUB_PUBSUB_H
#define TRPI_CLUSTER_PUBSUB_PUBSUB_H

#include <troupe/cluster.h>
#include <troupe/pubsub.h>

#include "remote/remote.h"

typedef struct trpi_pubsub_options { /* zero: the default */
    const char *role;                /* of the default mediator; "" or NULL: any */
    uint32_t interval_ms;            /* between two frames of the registry to one node */
    uint32_t bytes_max;              /* of the registry, in one interval, to all nodes */
} trpi_pubsub_options;

/* Start the default mediator of this node, if it has the role, and answer for mediators that are
 * not started here, until trpi_pubsub_close(). The cluster's actor runs. Errors: those of a spawn,
 * TRP_ENOMEM. Thread: owner. */
trp_err trpi_pubsub_open(trp_system *system, trpi_remote *remote,
                         const trpi_pubsub_options *options);
void trpi_pubsub_close(trp_system *system);

typedef struct trpi_pubsub_status { /* of one mediator */
    const char *name, *role;        /* name "default": the default one */
    uint32_t topics;
    bool settled; /* every other node knows what is here */
    /* by the registry, to all nodes, since the start */
    uint64_t frames_sent, bytes_sent;
} trpi_pubsub_status;
/* Call fn for each. Thread: any; takes a lock for a moment. */
void trpi_pubsub_each(trp_system *system,
                      void (*fn)(void *arg, trp_mediator *mediator,
                                 const trpi_pubsub_status *status),
                      void *arg);

#endif
