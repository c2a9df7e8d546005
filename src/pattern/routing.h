/* routing.h - private to the routers of the pattern room: the router in memory.
 *
 * Threads. "teller": any thread, inside a run or a bracket, several at once. "head": the router's
 * own actor, one at a time. The table and its routees are written before they are swapped in, and
 * retired when they are swapped out; `sent` and `base` are tellers' statistics.
 */
#ifndef TRPI_PATTERN_ROUTING_H
#define TRPI_PATTERN_ROUTING_H

#include <stdatomic.h>
#include <stdbool.h>

#include <troupe/router.h>

#include "actor/actor.h"
#include "base/atomics.h"
#include "pattern/pattern.h"
#include "pattern/routing_plan.h"

#define TRPI_ROUTING_LOGICS_MAX 256u /* that programs register in one process */

/* ---- table ----------------------------------------------------------------------------------- */

typedef struct trpi_routee {
    struct trpi_routee *next; /* in `leaving` */
    trp_ref ref;
    uint64_t identity; /* hash of the address and path: its places on the ring */
    bool child;
    uint32_t node;         /* where it lives; the ref of a remote child is that of its proxy here */
    _Atomic uint64_t sent; /* messages of tellers through this router, if the logic counts them */
    _Atomic uint64_t base; /* messages it had handled when sent was 0; set again when it is idle */
} trpi_routee;

typedef struct trpi_ring_place {
    uint64_t hash;
    uint32_t index; /* of the routee */
} trpi_ring_place;

typedef struct trpi_routee_table {
    uint64_t serial; /* of this router's tables, from 1 on */
    uint32_t count;
    uint32_t places_count; /* 0: no ring */
    trpi_ring_place *places;
    trpi_routee **routees; /* the router's */
    trp_ref refs[];        /* the same in line */
} trpi_routee_table;

/* Errors: TRP_ENOMEM. virtual_nodes 0: no ring. */
trp_err trpi_routee_table_new(trpi_routee *const *routees, uint32_t count, uint32_t virtual_nodes,
                              trpi_routee_table **ret_table);
void trpi_routee_table_free(void *table); /* not the routees */
/* Return the index of the routee for the hash of a key; count > 0. */
uint32_t trpi_routee_table_lookup(const trpi_routee_table *table, uint64_t key_hash);

/* ---- logics ---------------------------------------------------------------------------------- */

/* Flags: the needs of a built-in logic. */
enum {
    TRPI_LOGIC_SENT = 1,     /* count the messages sent to each routee */
    TRPI_LOGIC_RING = 2,     /* a ring in the table */
    TRPI_LOGIC_BALANCING = 4 /* children share a mailbox */
};
typedef struct trpi_logic {
    trp_routing_logic logic;
    uint32_t needs;
} trpi_logic;
/* Built in or registered. *ret_needs: of a built-in one. NULL: no logic has that name. */
const trp_routing_logic *trpi_logic_find(const char *name, uint32_t *ret_needs);

/* ---- router ---------------------------------------------------------------------------------- */

typedef struct trpi_abandoned { /* gets a poison pill when it is due */
    struct trpi_abandoned *next;
    trp_ref ref;
    uint64_t due_ms;
} trpi_abandoned;

/* The routees as their manager sees them; written by routing_pool.c alone. Thread: the birth, then
 * head. */
typedef struct trpi_router_pool {
    trpi_routee **routees; /* those of the table, owned */
    uint32_t routees_count, routees_room;
    uint64_t tables_count; /* that were made */
    uint32_t placed;       /* children so far: the next node of plan.nodes */
    uint32_t paths_left;   /* entries of plan.paths that are not found yet */
    trpi_routee *leaving;  /* removed, but the table could not be replaced yet */
    trpi_abandoned *abandoned;
} trpi_router_pool;

typedef struct trpi_router {
    /* written before the router is known; read by all */
    trp_system *system;
    trp_ref self;
    const trp_routing_logic *logic;
    void *logic_state;
    uint32_t needs;
    bool resizes;  /* plan has a resizer */
    uint64_t seed; /* of its random choices */
    trpi_router_plan plan;
    trp_behaviour head;                 /* the router's own behaviour */
    const trp_behaviour *routee;        /* of children; NULL: none can be made */
    trp_spawn_options child;            /* owns what it points to */
    bool borrowed;                      /* child.dispatcher is, for balancing */
    _Atomic(trpi_routee_table *) table; /* release; tellers acquire. Swapped by the head */
    trpi_router_pool pool;              /* head */
    trpi_routee_source source;
    /* tellers */
    _Alignas(TRPI_CACHE_LINE) _Atomic uint64_t number; /* of the next message */
    _Atomic bool keyless;                              /* a message without key was logged */
    _Atomic bool resizing; /* a resize order is on its way; set by a teller, cleared by the head */
} trpi_router;

extern const trpi_routed_ops trpi_router_ops;

/* Return the router of the running actor. Thread: head. */
trpi_router *trpi_router_self(trp_ctx *ctx);
/* Return the table of tellers; valid until the end of the run or bracket. */
static inline const trpi_routee_table *
trpi_router_table(const trpi_router *router)
{
    return atomic_load_explicit(&router->table, memory_order_acquire); /* pairs with the swap */
}

/* ---- routing_pool.c: head, or the thread of the birth ---------------------------------------- */
/* Add to `routees`, without swapping. path: for the identity; NULL: looked up. node: the address
 * where it lives; NULL: where its ref leads. Errors: TRP_EINVAL, TRP_ELIMIT, TRP_ENOMEM. */
trp_err trpi_router_add(trpi_router *router, trp_ref ref, bool child, const char *path,
                        const char *node);
/* Take out of `routees`, without swapping; false: it is no routee. The object lives on until no
 * teller can use it. */
bool trpi_router_withdraw(trpi_router *router, trp_ref ref);
bool trpi_router_remove(trpi_router *router, trp_ref ref); /* withdraw, and swap */
bool trpi_router_has(const trpi_router *router, trp_ref ref);
/* Make a table of `routees` and swap it in. Errors: TRP_ENOMEM: the old one stays. */
trp_err trpi_router_swap(trpi_router *router);
/* Look for the paths of the plan from now on: none is found yet. */
void trpi_router_paths_expect(trpi_router *router);
/* The routee of the path with this index was added. */
void trpi_router_path_found(trpi_router *router, uint32_t index);
/* Return the options of the next child, on the next node in turn. Thread: as above. */
trp_spawn_options trpi_router_child(trpi_router *router);
/* Make, add and watch `count` children. Stops at the first error. Thread: head. */
trp_err trpi_router_grow(trp_ctx *ctx, trpi_router *router, uint32_t count);
/* Remove the last `count` routees; poison pills after the delay, to children only or to all. */
void trpi_router_shrink(trp_ctx *ctx, trpi_router *router, uint32_t count, uint32_t delay_ms,
                        bool children_only);
/* Poison ref after the delay. Thread: head. */
void trpi_router_abandon(trp_ctx *ctx, trpi_router *router, trp_ref ref, uint32_t delay_ms);
/* Free the router; no teller uses it any more. */
void trpi_router_free(void *router);

/* ---- routing_head.c -------------------------------------------------------------------------- */
trp_err trpi_router_head_receive(trp_ctx *ctx, void *state, const trp_msg *msg);
trp_err trpi_router_head_start(trp_ctx *ctx, void *state, const trp_msg *args);
trp_err trpi_router_head_restart(trp_ctx *ctx, void *state, const trp_failure *why,
                                 const trp_msg *msg);
void trpi_router_head_stop(trp_ctx *ctx, void *state);
extern const trp_strategy trpi_router_escalate;
/* The same, but a child that cannot be made is stopped: its node may not know it yet. */
extern const trp_strategy trpi_router_escalate_later;

/* ---- routing_cluster.c ----------------------------------------------------------------------- */
/* Make the source of a checked plan, if it has one. Errors: TRP_ESTATE, TRP_ENOMEM. */
trp_err trpi_router_source_make(trpi_router *router, char *error, size_t error_bytes);

/* ---- routing_load.c -------------------------------------------------------------------------- */
/* Fill in the load of a routee. Thread: teller. */
void trpi_routee_load(trp_ctx *ctx, trpi_routee *routee, trp_routee_load *ret_load);
/* Return how many routees to add (or, negative, to remove). Thread: head. */
int32_t trpi_router_capacity(trp_ctx *ctx, const trpi_router *router);
bool trpi_resizer_is_valid(const trp_resizer_options *options);

/* ---- routing.c: teller ----------------------------------------------------------------------- */
struct trp_route {
    trpi_router *router;
    const trpi_routee_table *table;
    trp_ctx *ctx;
    trp_msg *msg; /* ours; goes to the destination that was named last */
    trp_ref sender;
    uint64_t number;
    bool numbered;
    bool any;   /* `to` and `as` hold a destination that has no message yet */
    bool own;   /* the router itself is one */
    bool lost;  /* to no routee: a dead letter */
    bool keyed; /* key_hash comes from an envelope */
    uint64_t key_hash;
    trp_ref to, as;
    trp_destination *list; /* trp_router_route(): nothing is sent */
    uint32_t list_max, count;
};

/* ---- routing_gather.c: teller ---------------------------------------------------------------- */
void trpi_route_scatter(void *state, trp_route *route, trp_ref sender, const trp_msg *msg);
void trpi_route_chop(void *state, trp_route *route, trp_ref sender, const trp_msg *msg);

/* ---- routing_hash.c: teller ------------------------------------------------------------------ */
void trpi_route_hash(void *state, trp_route *route, trp_ref sender, const trp_msg *msg);

/* ---- routing_envelope.c ---------------------------------------------------------------------- */
typedef struct trpi_envelope { /* payload of an envelope: this, the key, the payload; 16-aligned */
    uint32_t type;             /* number */
    uint32_t key_bytes;
    uint64_t bytes;
} trpi_envelope;
/* Read an envelope; false: it is none of this library. */
bool trpi_envelope_open(const trp_msg *msg, const trp_type **ret_type, trp_hash_key *ret_key,
                        const void **ret_payload, size_t *ret_bytes);

#endif
