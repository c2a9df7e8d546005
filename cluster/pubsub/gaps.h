/* gaps.h - what a node has missed of the publications in one topic to which it subscribes. Pure. */
#ifndef TRPI_CLUSTER_PUBSUB_GAPS_H
#define TRPI_CLUSTER_PUBSUB_GAPS_H

#include "cluster/pubsub/registry.h"

typedef struct trpi_stream { /* the publications of one mediator */
    uint64_t uid, life;
    uint64_t next; /* the number that is due */
    bool stranger; /* its node is no member any more, or not yet */
} trpi_stream;

#define TRPI_GAPS_STRANGERS_MAX 64u /* of a topic; the first of them is forgotten then */

typedef struct trpi_gaps { /* zeroed: nothing has come yet */
    trpi_stream *streams;
    uint32_t streams_count, streams_room;
} trpi_gaps;

void trpi_gaps_fini(trpi_gaps *gaps); /* and begin again */
/* begun: of the own subscription now; stranger: the node is no member here. Errors: TRP_ENOMEM. */
trp_err trpi_gaps_arrived(trpi_gaps *gaps, uint64_t uid, bool stranger,
                          const trpi_pubsub_stamp *stamp, uint64_t begun,
                          trpi_pubsub_arrival *ret_arrival);
/* Its node is gone; what it has published may still be on its way. */
void trpi_gaps_estrange(trpi_gaps *gaps, uint64_t uid);

#endif
