/* nodes_inner.h - the node table's entries, shared by the two files of the table.
 *
 * Shape.   number = generation << TRPI_NODE_INDEX_BITS | index; directory -> chunk of 256 -> entry
 *          {address, uid, proxy cell}. A hash index, under the lock, finds the number of an
 *          identity. The rules are those of nodes.c.
 */
#ifndef TRPI_ACTOR_NODES_NODES_INNER_H
#define TRPI_ACTOR_NODES_NODES_INNER_H

#include "actor/nodes/nodes.h"

#include <pthread.h>
#include <stdatomic.h>

#include "actor/kernel/ref_map.h"
#include "base/table.h"

#define TRPI_NODE_INDEX_BITS 16u
#define TRPI_NODE_INDEX_MASK ((1u << TRPI_NODE_INDEX_BITS) - 1u)
#define TRPI_NODE_CHUNK 256u
#define TRPI_NODE_CHUNKS ((TRPI_NODES_LIMIT + 1u) / TRPI_NODE_CHUNK)
_Static_assert(TRPI_NODES_LIMIT == (1u << TRPI_NODE_INDEX_BITS) - 1u, "an index of 16 bits");
_Static_assert(TRPI_NODES_MAX >> TRPI_NODE_INDEX_BITS == UINT8_MAX, "a generation of 8 bits");

enum trpi_node_list_kind { TRPI_NODE_IN_NONE, TRPI_NODE_IN_SHARE, TRPI_NODE_IN_ENDED };

typedef struct trpi_node {
    trpi_node_id id;
    uint32_t number;
    /* an older entry of number 1 (node-numbers-N1), kept for its readers */
    struct trpi_node *replaced;
    _Atomic(trpi_cell *) proxy; /* set once, NULL again when it was freed (nodes-N2) */
    _Atomic uint32_t ended;     /* trp_dead_reason of tells to it; 0: it may be told */
    _Atomic bool slow;          /* ops->slows() must be asked; relaxed: a hint */
    trp_system *system;
    const trpi_proxy_ops *ops;
    void *arg;
    trpi_ref_map waiting;     /* by wait_lock; keys: waiting_key(), values: told generations */
    _Atomic bool waiting_any; /* written under wait_lock; seq_cst: nodes-N3 */
    /* by nodes->lock */
    bool over;    /* trpi_nodes_end() has begun; `ended` may be set before */
    bool unnamed; /* its identity is not indexed: evicted, or replaced by a newer number */
    enum trpi_node_list_kind in;
    uint16_t share;
    struct trpi_node *list_next, *list_before;
} trpi_node;

typedef struct trpi_node_chunk {
    _Atomic(trpi_node *) entries[TRPI_NODE_CHUNK]; /* release; pairs with trpi_node_at() */
    uint16_t free_next[TRPI_NODE_CHUNK];           /* by nodes->lock, as the next */
    uint8_t generation[TRPI_NODE_CHUNK];           /* of the next number of that index */
} trpi_node_chunk;

typedef struct trpi_node_list { /* oldest first */
    trpi_node *first, *last;
    uint32_t count;
} trpi_node_list;

struct trpi_nodes {
    _Atomic(trpi_node_chunk *) chunks[TRPI_NODE_CHUNKS]; /* release; pairs with trpi_node_at() */
    pthread_mutex_t lock;           /* guards the fields below, and attaching of proxies */
    pthread_mutex_t wait_lock;      /* senders that wait for a lane; a leaf */
    uint32_t used;                  /* indices used at least once, index 0 included */
    uint32_t free_first, free_last; /* FIFO through free_next, 0: none (node-numbers-N4) */
    trpi_table index;               /* of trpi_node *, by identity */
    trpi_node_list *shares;         /* TRPI_NODE_SHARES, made at first use */
    uint32_t introduced;            /* in all shares */
    trpi_node_list ended;           /* nodes that have ended and keep their numbers for now */
    bool closing;                   /* no thread runs: proxies and numbers are not retired */
};

static inline trpi_node_chunk *
trpi_node_chunk_of(struct trpi_nodes *nodes, uint32_t index)
{
    return atomic_load_explicit(&nodes->chunks[index / TRPI_NODE_CHUNK], memory_order_acquire);
}
/* Return the entry of a number, NULL: not in use. Valid until the caller's run ends, or its
 * trpi_leave(). */
static inline trpi_node *
trpi_node_at(struct trpi_nodes *nodes, uint32_t number)
{
    uint32_t index = number & TRPI_NODE_INDEX_MASK;
    trpi_node_chunk *chunk = trpi_node_chunk_of(nodes, index);
    trpi_node *entry = NULL;

    if (chunk != NULL) {
        entry =
            atomic_load_explicit(&chunk->entries[index % TRPI_NODE_CHUNK], memory_order_acquire);
    }
    return entry != NULL && entry->number == number ? entry : NULL;
}
trpi_node *trpi_node_new(trp_system *system, const trpi_node_id *id);
/* Under the lock (or before other threads have access). Errors: TRP_ENOMEM. */
trp_err trpi_node_put(struct trpi_nodes *nodes, uint32_t index, trpi_node *entry);
/* Remove an entry from the share of nodes that were only introduced. Under the lock. */
void trpi_node_keep(struct trpi_nodes *nodes, trpi_node *entry);
/* The proxy of an ended node was freed: free its number when enough others have ended since. Not
 * under the lock. */
void trpi_node_number_retire(trp_system *system, trpi_node *entry);

#endif
