/* keeper.h - the actor /system/sharding: steps the engines of all types of this node, and sends
 * and takes their frames. Private to keeper*.c; the door is sharding.h.
 */
#ifndef TRPI_CLUSTER_SHARDING_KEEPER_H
#define TRPI_CLUSTER_SHARDING_KEEPER_H

#include <pthread.h>

#include <troupe/cluster.h>

#include "cluster/sharding/coordinator.h"
#include "cluster/sharding/region.h"
#include "cluster/sharding/region_core.h"
#include "cluster/sharding/sharding.h"
#include "cluster/shell/commands.h"
#include "remote/remote.h"

#define TRPI_KEEPER_TYPES_MAX 256u   /* also those that other nodes have started */
#define TRPI_KEEPER_FRAMES_MAX 4096u /* waiting in the mailbox; more are dropped: they come again */

enum trpi_keeper_kind {
    TRPI_KEEPER_FRAME = 1,   /* from, bytes */
    TRPI_KEEPER_MEMBERS = 2, /* they have changed */
    TRPI_KEEPER_START = 3,   /* region */
    TRPI_KEEPER_WANTED = 4,  /* region, shard, as the next */
    TRPI_KEEPER_STOPPED = 5,
    TRPI_KEEPER_FENCED = 6,    /* gate */
    TRPI_KEEPER_RETURNED = 7,  /* epoch */
    TRPI_KEEPER_LEAVE = 8,     /* task, of the coordinated shutdown */
    TRPI_KEEPER_REBALANCE = 9, /* region */
    TRPI_KEEPER_ANSWER = 10    /* region, question: of the program */
};

typedef struct trpi_keeper_event {
    struct trpi_keeper_event *next;
    enum trpi_keeper_kind kind;
    struct trpi_keeper *keeper;
    trpi_region *region;
    uint32_t shard;
    uint64_t epoch, task;
    trp_ref gate;
    trpi_node_id from;
    trpi_allocation_question *question; /* owned */
    size_t count;
    uint8_t bytes[];
} trpi_keeper_event;

/* A type of entities that this node has heard of. */
typedef struct trpi_keeper_type {
    struct trpi_keeper_type *next;
    char name[TRPI_SHARD_TYPE_BYTES_MAX + 1], role[TRPI_ROLE_BYTES_MAX + 1];
    bool role_known;
    trpi_region *region; /* NULL: it is not started here */
    trpi_region_core *core;
    trpi_coordinator *coordinator; /* NULL: its role is not known yet */
    bool may_leave, accepted, refused;
    bool unsaid;     /* an order of its region was not given */
    trp_ref program; /* the actor that asks the program for its allocation; none: nobody does */
    char why[TRPI_SHARD_WHY_BYTES];
} trpi_keeper_type;

/* Another node, as far as its gate is concerned. */
typedef struct trpi_keeper_peer {
    trpi_node_id id;
    trp_ref gate; /* none: it has not said */
    uint64_t asked_ms;
    bool present; /* a member */
    bool removed; /* it was a member */
    bool settled; /* the engines know that it may be taken over */
    trp_member last;
    uint64_t takeover_ms; /* removed: when it may be taken over */
} trpi_keeper_peer;

/* HOME of a node whose gate is not known yet. */
typedef struct trpi_keeper_late {
    struct trpi_keeper_late *next;
    trpi_keeper_type *type;
    trpi_node_id node;
    uint64_t epoch;
    uint32_t shard;
} trpi_keeper_late;

typedef struct trpi_keeper {
    trp_system *system;
    trpi_sharding *sharding;
    trpi_cluster *cluster;
    trpi_remote *remote;
    trp_ref actor;
    uint64_t listener;
    _Atomic bool closed;
    _Atomic uint32_t frames_waiting;
    _Atomic bool members_wait; /* TRPI_KEEPER_MEMBERS is in the mailbox */
    pthread_mutex_t lock;      /* types and their engines: the actor steps, any thread looks */
    trpi_node_id self;
    trpi_keeper_type *types;
    uint32_t types_count;
    trpi_keeper_peer *peers;
    uint32_t peers_count;
    trpi_keeper_late *late;
    trpi_keeper_event *own_first, *own_last; /* frames of this node to itself */
    uint64_t leave_task;                     /* 0: nobody leaves */
    bool leaving;
    uint64_t timer_ms;
    bool gone; /* a removed node may not be taken over yet */
    trpi_sharding_refused_fn refused;
    void *refused_arg;
} trpi_keeper;

extern trp_type trpi_keeper_event_type, trpi_keeper_tick_type, trpi_keeper_question_type;

/* ---- keeper.c ------------------------------------------------------------------------------- */
trpi_keeper *trpi_keeper_of(trp_system *system); /* NULL: there is no cluster */
/* A frame of this node to itself: after the present step. Takes event. */
void trpi_keeper_own_append(trpi_keeper *keeper, trpi_keeper_event *event);
void trpi_keeper_free(trpi_keeper *keeper); /* all threads have ended; NULL is fine */
uint64_t trpi_keeper_now_ms(const trpi_keeper *keeper);
/* Takes event. false: no memory, or the keeper has ended. */
bool trpi_keeper_put(trpi_keeper *keeper, trpi_keeper_event *event);
trpi_keeper_event *trpi_keeper_event_new(trpi_keeper *keeper, enum trpi_keeper_kind kind,
                                         const void *bytes, size_t count);

/* ---- keeper_program.c: the actor, with the lock --------------------------------------------- */
/* Make the actor that asks the program, if the type of this node has an allocation of its own. */
void trpi_keeper_program_start(trpi_keeper *keeper, trpi_keeper_type *type);
/* Ask it. ANSWER comes; or the engine goes on without. Takes question. */
void trpi_keeper_program_ask(trp_ctx *ctx, trpi_keeper *keeper, const trpi_keeper_type *type,
                             trpi_allocation_question *question);
/* Write weights by what members have left. */
void trpi_keeper_weigh(const trpi_keeper *keeper, trpi_shard_member *members, uint32_t count);

/* ---- keeper_step.c: the actor, with the lock ------------------------------------------------ */
/* Also other threads; NULL: this node has not heard of it. */
trpi_keeper_type *trpi_keeper_find(const trpi_keeper *keeper, const char *name);
void trpi_keeper_type_start(trp_ctx *ctx, trpi_keeper *keeper, trpi_region *region);
void trpi_keeper_frame(trp_ctx *ctx, trpi_keeper *keeper, const trpi_node_id *from,
                       const uint8_t *bytes, size_t count);
void trpi_keeper_region_step(trp_ctx *ctx, trpi_keeper *keeper, trpi_keeper_type *type,
                             const trpi_region_event *event);
void trpi_keeper_coordinator_step(trp_ctx *ctx, trpi_keeper *keeper, trpi_keeper_type *type,
                                  const trpi_coordinator_event *event);
void trpi_keeper_leave_look(trpi_keeper *keeper);
void trpi_keeper_members(trp_ctx *ctx, trpi_keeper *keeper);
void trpi_keeper_rebalance(trp_ctx *ctx, trpi_keeper *keeper, const trpi_region *region);
void trpi_keeper_tick(trp_ctx *ctx, trpi_keeper *keeper);
uint64_t trpi_keeper_wake_ms(const trpi_keeper *keeper); /* TRPI_REGION_NEVER: none */

/* ---- keeper_peers.c: the actor, with the lock ----------------------------------------------- */
trpi_keeper_peer *trpi_keeper_peer_find(trpi_keeper *keeper, const trpi_node_id *id);
/* The members and what was removed, for the engines; owned by the caller (trpi_free). */
trp_err trpi_keeper_view(trpi_keeper *keeper, const char *role, trpi_shard_member **ret_members,
                         uint32_t *ret_count, trpi_shard_gone **ret_gone, uint32_t *ret_gone_count);
void trpi_keeper_peers_update(trpi_keeper *keeper);
/* All engines have the view. */
void trpi_keeper_peers_settle(trpi_keeper *keeper);
/* Ask again when removed nodes may be taken over; true: sooner than was said. */
bool trpi_keeper_peers_gone(trpi_keeper *keeper);
/* Ask members for their gates, if there is a type. */
void trpi_keeper_peers_ask(trpi_keeper *keeper);
uint64_t trpi_keeper_asks_ms(const trpi_keeper *keeper); /* when to ask next; or _NEVER */
/* A hello from a node. true: its gate was not known. */
bool trpi_keeper_hello(trpi_keeper *keeper, const trpi_node_id *from, const uint8_t *bytes,
                       size_t count);
#define TRPI_HELLO_BYTES 9u
#define TRPI_HELLO_ASKS 1u
#define TRPI_HELLO_ANSWERS 2u

#endif
