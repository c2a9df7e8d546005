/* route.h - where a message of publish and subscribe goes: pure, without allocation once its plan
 * has grown. Every node that gets a publication gets it once, whatever is for it there. */
#ifndef TRPI_CLUSTER_PUBSUB_ROUTE_H
#define TRPI_CLUSTER_PUBSUB_ROUTE_H

#include "cluster/pubsub/registry.h"

/* How one of several is chosen; each actor counts, not each node. */
typedef enum trpi_route_choice {
    TRPI_ROUTE_RANDOM = 0,
    TRPI_ROUTE_ROUND_ROBIN = 1 /* a turn of this node for each group */
} trpi_route_choice;

/* One of a group, or one that was put. */
typedef struct trpi_route_pick {
    uint32_t node;   /* index; NOWHERE: nobody */
    uint32_t member; /* of those at that node, by number; it may have fewer by then */
    const trpi_pubreg_entry *entry; /* until the next event */
} trpi_route_pick;

/* The parts of a publication for one node. */
typedef struct trpi_route_target {
    uint32_t node;
    bool all; /* all subscribers without a group; stamp counts */
    trpi_pubsub_stamp stamp;
    uint32_t picks_first, picks_count; /* one of each of these groups */
} trpi_route_target;

typedef struct trpi_route { /* zeroed: an empty one; used again and again */
    trpi_route_target *targets;
    uint32_t targets_count, targets_room;
    trpi_route_pick *picks; /* by target */
    uint32_t picks_count, picks_room;
    trpi_route_pick *drawn; /* the same, by group; scratch, as the next: a node's target */
    uint32_t drawn_count, drawn_room;
    uint32_t *by_node;
    uint32_t by_node_count, by_node_room;
} trpi_route;

void trpi_route_fini(trpi_route *route);

/* The nodes that get a publication, and its number. *random is a seed, and is stepped. No target:
 * nobody subscribes. Errors: TRP_ENOMEM: nothing was numbered. */
trp_err trpi_route_publish(trpi_pubreg *registry, const trpi_pubsub_key *topic,
                           trpi_route_choice choice, uint64_t *random, trpi_route *route);
/* One that was put under a path; with affinity one here, if there is any. */
trpi_route_pick trpi_route_send(trpi_pubreg *registry, const trpi_pubsub_key *path, bool affinity,
                                trpi_route_choice choice, uint64_t *random);
/* Send to all: the next place; *position starts at 0. NULL: there are no more. */
const trpi_pubreg_place *trpi_route_all(const trpi_pubreg *registry, const trpi_pubsub_key *path,
                                        bool all_but_self, uint32_t *position);

#endif
