/* shard_nodes.h - the members of the cluster in stable slots, found by address and uid.
 *
 * A slot is a small number that other tables of an engine use as an index. It stays a node's as
 * long as the engine keeps it; after that it is another's.
 */
#ifndef TRPI_CLUSTER_SHARD_NODES_H
#define TRPI_CLUSTER_SHARD_NODES_H

#include "cluster/sharding/region_core.h"

#define TRPI_SHARD_SLOT_NONE UINT32_MAX

typedef struct trpi_shard_node {
    trpi_shard_member member;
    bool used, present; /* present: in the last list of members */
    bool listed;        /* during trpi_shard_nodes_update() alone */
} trpi_shard_node;

typedef struct trpi_shard_nodes {
    trpi_shard_node *slots; /* an element moves when the array grows */
    uint32_t slots_count, slots_room;
    uint32_t *order; /* used slots, sorted by address and uid */
    uint32_t order_count, order_room;
} trpi_shard_nodes;

void trpi_shard_nodes_fini(trpi_shard_nodes *nodes);
/* NONE: not there. */
uint32_t trpi_shard_nodes_find(const trpi_shard_nodes *nodes, const trpi_node_id *id);
/* Find it, or give it a free slot. NONE: no memory. */
uint32_t trpi_shard_nodes_add(trpi_shard_nodes *nodes, const trpi_node_id *id);
void trpi_shard_nodes_remove(trpi_shard_nodes *nodes, uint32_t slot);
/* Take a list of all members: those that are there are present, the others stay, not present.
 * Errors: TRP_ENOMEM: some may be missing. */
trp_err trpi_shard_nodes_update(trpi_shard_nodes *nodes, const trpi_shard_member *members,
                                uint32_t count);
/* Return the slot of the oldest present member of the role; NONE: there is none. */
uint32_t trpi_shard_nodes_oldest(const trpi_shard_nodes *nodes);
static inline trpi_shard_term
trpi_shard_nodes_term(const trpi_shard_nodes *nodes, uint32_t slot)
{
    return (trpi_shard_term){ nodes->slots[slot].member.up_number,
                              nodes->slots[slot].member.id.uid };
}

/* ---- sets of slots --------------------------------------------------------------------------- */
typedef struct trpi_slot_set { /* zeroed: empty, without memory */
    uint64_t *words;
    uint32_t words_count, count;
} trpi_slot_set;
bool trpi_slot_set_add(trpi_slot_set *set, uint32_t slot); /* false: no memory */
void trpi_slot_set_remove(trpi_slot_set *set, uint32_t slot);
bool trpi_slot_set_has(const trpi_slot_set *set, uint32_t slot);
/* Return the first element from `slot` on; NONE: no more. */
uint32_t trpi_slot_set_next(const trpi_slot_set *set, uint32_t slot);
void trpi_slot_set_fini(trpi_slot_set *set); /* it is empty, and usable again */

#endif
