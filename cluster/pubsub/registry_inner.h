/* registry_inner.h - the registry's state, shared by its files. */
#ifndef TRPI_CLUSTER_PUBSUB_REGISTRY_INNER_H
#define TRPI_CLUSTER_PUBSUB_REGISTRY_INNER_H

#include "base/hash.h"
#include "base/table.h"
#include "cluster/pubsub/gaps.h"
#include "cluster/pubsub/index.h"

/* An entry of the own bucket; one with count 0 is kept while a peer may not know that it went. */
typedef struct trpi_own {
    trpi_pubsub_item item;
    uint64_t hash;
    struct trpi_own *earlier, *later;     /* by version */
    struct trpi_own *went_earlier, *went; /* count 0: by version, too */
    trpi_gaps gaps;                       /* TOPIC */
    char bytes[];
} trpi_own;

typedef struct trpi_peer_state {
    trpi_pubreg_node node;
    bool used;
    bool listed;  /* during members() alone */
    bool counts;  /* its bucket: Up or WeaklyUp */
    bool is_peer; /* frames go to it: also while it leaves */
    bool absent;  /* it has said that it has no mediator of this name */
    bool knows;   /* it has said that it knows of this life of the own bucket */
    bool silent;  /* has not answered for a retry time: asked by HELLO until it does */
    bool told;    /* it may have something of the own bucket, in this era */
    bool full;    /* it has more entries than fit; logged once */
    /* its bucket here */
    uint32_t entries;
    uint64_t its_era, seen;
    /* the own bucket there */
    uint64_t era, acked, sent; /* acked <= sent <= version */
    uint64_t question;         /* of the last HELLO that was not answered; 0: none */
    uint64_t retry_at_ms;
    uint32_t retry_ms;
} trpi_peer_state;

struct trpi_pubreg {
    trpi_pubreg_options options;
    char name[TRPI_MEDIATOR_NAME_BYTES_MAX + 1];
    trpi_index index;
    /* the own bucket */
    trpi_table own; /* trpi_own * */
    trpi_own *first, *last;
    trpi_own *went_first, *went_last;
    uint32_t own_count, went_count; /* registered; kept although removed */
    uint64_t version;
    /* nodes; [0] is this one */
    trpi_peer_state *nodes;
    uint32_t nodes_count, nodes_room;
    bool speaks; /* this node is Up: the others count it */
    uint64_t eras, questions;
    uint32_t turn; /* the peer that is served first */
    uint64_t wake_ms, next_tick_ms;
    trpi_pubsub_item *items; /* of the frame that is written */
    uint32_t items_count, items_room;
    trpi_pubreg_action *actions;
    uint32_t actions_count, actions_room;
    char text[256];
};

/* Names a subscription of a node: a version may begin one in each life of its mediator. */
static inline uint64_t
trpi_pubreg_subscription(uint64_t life, uint64_t begun)
{
    return trpi_hash_u64(life) ^ begun;
}
trpi_own *trpi_pubreg_own_find(const trpi_pubreg *registry, const trpi_pubsub_key *key,
                               uint64_t hash);
trpi_own *trpi_pubreg_own_next(const trpi_pubreg *registry, uint32_t *position);
/* Up to which version every peer knows what was removed. */
uint64_t trpi_pubreg_floor(const trpi_pubreg *registry);
/* Forget removed entries that every peer knows to be. */
void trpi_pubreg_prune(trpi_pubreg *registry);
/* The earliest time at which a tick has anything to do. */
void trpi_pubreg_set_wake(trpi_pubreg *registry, uint64_t now_ms);

#endif
