/* open.h - the interface of the room kernel for rooms above src/actor: part of actor/actor.h. */
#ifndef TRPI_ACTOR_KERNEL_OPEN_H
#define TRPI_ACTOR_KERNEL_OPEN_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/system.h>
#include <troupe/trace.h>

#include "base/world.h"
#include "sched/sched.h"

/* ---- nodes ----------------------------------------------------------------------------------- */
/* trp_ref.node holds a node number: an index into the system's node table with a generation. It
 * stands for one (address, uid) until that node has ended, then for none. Number 0 is no node;
 * TRPI_NODE_SELF is the system itself. An entry with uid 0 names any incarnation at the address. */
#define TRPI_NODE_SELF 1u
#define TRPI_NODES_MAX 0xffffffu /* 24 bits in a message */
trpi_world *trpi_system_world(trp_system *system);

/* ---- telling from any thread ----------------------------------------------------------------- */
/* Return the calling thread's ctx for this system: that of the worker inside a run, else the
 * thread's foreign ctx, which trpi_leave() ends (reclamation, push of chains). Nests. Never NULL:
 * waits for memory. */
trp_ctx *trpi_enter(trp_system *system);
void trpi_leave(trp_ctx *ctx);
/* Tell with any sender; `to` may be remote, stale or none. */
void trpi_tell(trp_ctx *ctx, trp_ref to, trp_ref sender, const trp_type *type, const void *payload,
               size_t bytes);
/* Messages of one sender and type to one actor, as records, one behind the other: a length
 * (trpi_put_u32()), and so many bytes of payload. They are borrowed. */
#define TRPI_RECORD_BYTES 4u    /* of the length */
#define TRPI_GATHER_BYTES 4096u /* of records that are gathered at once */
typedef struct trpi_gathered {
    const uint8_t *records;
    size_t bytes; /* of all records */
    uint32_t count;
    bool carries;   /* each has the wire form of a trpi_carrier */
    size_t granted; /* bytes that were reserved for them */
} trpi_gathered;
/* A message that carries another one, as its parts: they need not stand together, as in the payload
 * of a message of this type. All are borrowed. */
typedef struct trpi_carrier {
    const trp_type *type;
    const void *head, *name; /* head knows the length of name */
    const trp_type *inner;   /* of the message that is carried */
    const void *payload;
    size_t bytes;
} trpi_carrier;
/* Tell an actor of another node, as the running actor, a message of parts, if others like it are
 * gathered at present. false: nothing was done. */
bool trpi_tell_carried(trp_ctx *ctx, trp_ref to, const trpi_carrier *what);
/* The running actor has told `to` a message of this type with so many bytes, and perhaps tells more
 * like it in this run: gather those. */
void trpi_carriers_expect(trp_ctx *ctx, trp_ref to, const trp_type *type, size_t bytes);
/* Tell an actor of this system so many records, in their order; each payload fits the type.
 * Where the actor takes all messages they are pushed as one chain; else each is told by itself. */
void trpi_tell_run(trp_ctx *ctx, trp_ref to, trp_ref sender, const trp_type *type,
                   const uint8_t *records, uint32_t count);
/* Tell a message that has its sender and type. Takes msg. */
void trpi_send(trp_ctx *ctx, trp_ref to, trp_msg *msg);
/* Make an unsent message of no bytes that owns data, which is what trp_msg_payload() returns:
 * release(data, NULL) is called once, when the message is freed, by the thread that frees it.
 * Takes data, on success only. Errors: TRP_ENOMEM. Thread: any. */
trp_err trpi_msg_new_owner(const trp_type *type, void *data, void (*release)(void *data, void *arg),
                           trp_msg **ret_msg);
/* The same with another sender. */
void trpi_send_as(trp_ctx *ctx, trp_ref to, trp_ref sender, trp_msg *msg);
/* Count msg as lost for `to` and publish it as a dead letter, unless it is stored; borrows msg. */
void trpi_dead(trp_ctx *ctx, trp_ref to, const trp_msg *msg, trp_dead_reason reason);

/* ---- traces between nodes -------------------------------------------------------------------- */
/* The part of a trailer that goes with a message to another node. */
typedef struct trpi_traced {
    trp_trace trace; /* its span is the message's */
    uint64_t parent;
    uint64_t age_ns; /* since it was told; of one that arrives: on the way, by both clocks */
} trpi_traced;
/* Is msg part of a trace? Thread: any. */
bool trpi_traced_get(trp_system *system, const trp_msg *msg, trpi_traced *ret_traced);

/* ---- traces through other rooms (trail.c) ---------------------------------------------------- */
/* The trace that messages of this thread carry at present, kept for what runs later. */
typedef struct trpi_trail trpi_trail;
/* NULL: none is carried, which is found out quickly; or out of memory. Thread: any. */
trpi_trail *trpi_trail_keep(void);
/* Run fn(arg): what this thread tells meanwhile is part of the trace; trail NULL: of what it
 * carries anyway. system NULL: that whose job or actor this thread runs; if it runs none, what fn
 * tells is part of no trace. Thread: any. */
void trpi_trail_run(trp_system *system, const trpi_trail *trail, void (*fn)(void *arg), void *arg);
void trpi_trail_free(trpi_trail *trail); /* NULL is fine */
/* The trace and span of a trail. NULL: all zero. */
void trpi_trail_trace(const trpi_trail *trail, trp_trace *ret_trace);
/* Let msg, a copy of what was handled when the trail was kept, be handled again: below that, with a
 * span of its own. Takes msg, returns it or what replaces it. */
trp_msg *trpi_trail_again(trp_ctx *ctx, const trpi_trail *trail, trp_msg *msg);
/* The trace that is carried at present, its span and attempt those of what is handled. None: all
 * zero. For messages that are told later, and perhaps again: trpi_in_attempt(). */
void trpi_trail_get(const trp_ctx *ctx, trp_trace *ret_trace);
/* Run fn(ctx, arg): what it tells is an attempt to deliver, and part of the trace, below its span;
 * a trace that is all zero: of none. A failure of fn goes on as a jump. Thread: actor. */
void trpi_in_attempt(trp_ctx *ctx, const trp_trace *trace, uint32_t attempt,
                     trp_err (*fn)(trp_ctx *ctx, void *arg), void *arg);
/* Make msg, which is about to be sent, part of the trace that is carried, with a span of its own.
 * Takes msg, returns it or what replaces it. */
trp_msg *trpi_trail_put(trp_ctx *ctx, trp_msg *msg);
/* A message goes on inside another one, an envelope, or comes out of it: between the two calls all
 * that is told or put has the span of msg, since it is the same message on its way. */
#define TRPI_TRAILER_BYTES 144u
typedef struct trpi_along {
    const void *before;
    _Alignas(16) char room[TRPI_TRAILER_BYTES];
} trpi_along;
void trpi_along_begin(trp_ctx *ctx, const trp_msg *msg, trpi_along *along);
void trpi_along_end(trp_ctx *ctx, const trpi_along *along);
/* Run fn(ctx, arg); what it tells and asks is part of this trace, below trace->span. A failure and
 * a jump of fn become its result. */
trp_err trpi_in_trace(trp_ctx *ctx, const trp_trace *trace, trp_err (*fn)(trp_ctx *ctx, void *arg),
                      void *arg);
/* Do as trpi_tell, as part of this trace; NULL: of none. */
void trpi_tell_traced(trp_ctx *ctx, trp_ref to, trp_ref sender, const trp_trace *trace,
                      const trp_type *type, const void *payload, size_t bytes);

/* ---- stored messages ------------------------------------------------------------------------- */
/* Make a message as if `sender` had told it to `to`; copies payload. Gives *ret_msg. Errors:
 * TRP_ENOMEM, TRP_EINVAL (bytes do not fit the type). Thread: any. */
trp_err trpi_msg_restore(trp_ref to, trp_ref sender, const trp_type *type, const void *payload,
                         size_t bytes, trp_msg **ret_msg);
/* Is it a message of the library, which is exempt from the bounds of mailboxes? */
bool trpi_msg_is_own(const trp_msg *msg);

/* A durable mailbox has stored the message that it was asked to admit: from now on msg stands for
 * the record, and is no dead letter when it reaches no actor, since the next owner handles the
 * record. Thread: that of admit; msg is not told yet, so no other thread has it. */
#define TRPI_MSG_TRAILER 0x02000000u  /* header flag: a trailer is behind the payload (msg.h) */
#define TRPI_MSG_MANY 0x08000000u     /* header flag: a router sent it to several routees */
#define TRPI_MSG_STORED 0x20000000u   /* header flag: stored, until the mailbox takes it */
#define TRPI_MSG_RESERVED 0x40000000u /* header flag: buffer space is reserved, until the proxy */
static inline void
trpi_msg_stored(const trp_msg *msg)
{
    ((trp_msg *)(uintptr_t)msg)->priv_from_node_flags |= TRPI_MSG_STORED;
}

/* ---- entities ---------------------------------------------------------------------------------
 * An entity is an actor that is found by a name that outlives it. A message that was told to it as
 * an entity is not lost when that incarnation has ended: it is given to the ops. */
#define TRPI_MSG_ENTITY TRPI_MSG_RESERVED /* header flag of a message to an actor of this system */
#define TRPI_ARRIVALS_MAX 16u
typedef struct trpi_entity_ops {
    /* A message that was told to an entity was left in its mailbox or stash. Borrows msg. false: it
     * is a dead letter. Thread: that of the cell's run. */
    bool (*left)(void *arg, trp_ctx *ctx, trp_ref to, const trp_msg *msg);
    /* An actor has ended: its post_stop is over, its state freed, its ref is about to become stale.
     * failed: its supervisor stopped it because of a failure. Thread: the actor's. */
    void (*ending)(void *arg, trp_ctx *ctx, trp_ref self, bool failed);
    /* Messages of one sender for entities, of parts, have come from another node for `to`. Return
     * how many were told, from the first on; the next one is to be told as a message. count: at
     * most TRPI_ARRIVALS_MAX. Thread: any, within trpi_inbound_begin(). */
    uint32_t (*arrived)(void *arg, trp_ctx *ctx, trp_ref to, trp_ref sender,
                        const trpi_carrier *what, uint32_t count);
} trpi_entity_ops;
/* Once in the life of a system. Thread: any. Errors: TRP_EEXIST. */
trp_err trpi_system_entities_set(trp_system *system, const trpi_entity_ops *ops, void *arg);
void trpi_system_entities_clear(trp_system *system);  /* all threads have ended */
void *trpi_system_entities(const trp_system *system); /* arg; NULL: not set */
void *trpi_ctx_entities(const trp_ctx *ctx);          /* the same, of a ctx's system */
/* Tell an entity of this system, as the running actor, a message of one cache line. false: nothing
 * was done: that incarnation has ended, or the message is not of the usual kind. */
bool trpi_tell_live(trp_ctx *ctx, uint32_t slot, uint32_t generation, const trp_type *type,
                    const void *payload, size_t bytes);
/* The same with any sender, and any message. */
bool trpi_tell_live_as(trp_ctx *ctx, uint32_t slot, uint32_t generation, trp_ref sender,
                       const trp_type *type, const void *payload, size_t bytes);
/* A hint: that is told soon. */
void trpi_live_prefetch(const trp_ctx *ctx, uint32_t slot);
/* The same with a message, which has its sender. Takes msg, on success only. */
bool trpi_send_live(trp_ctx *ctx, uint32_t slot, uint32_t generation, trp_msg *msg);
/* Make a message as trpi_tell() would tell it, with the present interaction. NULL: it was a dead
 * letter. Gives the message. */
trp_msg *trpi_tell_prepare(trp_ctx *ctx, trp_ref sender, const trp_type *type, const void *payload,
                           size_t bytes);
/* A copy of msg stands for it: it was told to an entity if msg was. */
static inline void
trpi_msg_told_as(trp_msg *copy, const trp_msg *msg)
{
    copy->priv_from_node_flags |= msg->priv_from_node_flags & TRPI_MSG_ENTITY;
}
/* Name the sender of a message that is not told yet. */
void trpi_msg_sign(trp_msg *msg, trp_ref sender);
/* Push what this run has told so far. */
void trpi_tell_flush(trp_ctx *ctx);

/* ---- reclamation ----------------------------------------------------------------------------- */
/* Run fn(object) when no thread can be inside a registered op or a run that began before this call;
 * at the latest when the system is freed. For objects that an unregistered op's arg points to.
 * Thread: any. */
void trpi_system_retire(trp_system *system, void (*fn)(void *object), void *object);

/* trp_msg_free() without debug checks, for use by the library. NULL is fine. Thread: any. */
void trpi_msg_drop(trp_msg *msg);

/* Trust the shared object that holds this address as a plugin: a fault in its code may become the
 * failure of the actor (fault-trap). Thread: any. */
void trpi_fault_trust(const void *inside);

/* ---- functions on stacks of their own -------------------------------------------------------- */
/* A function on a stack that is not the thread's (a flow): a fault in it is its failure. */
typedef struct trpi_guest {
    jmp_buf jump;        /* target of its failures, on its own stack */
    uintptr_t low, high; /* its stack */
    const char *name;    /* for a crash line */
    trp_failure failure; /* filled before a fault jumps */
    const void *cell;    /* private: what the thread ran when the guest came */
    uint8_t route_depth; /* private: as cell */
} trpi_guest;
/* From now on this thread runs guest (NULL: none). Return the one before. Thread: any. */
trpi_guest *trpi_guest_swap(trpi_guest *guest);
/* The guest that this thread runs. */
const trpi_guest *trpi_guest_here(void);

/* ---- dispatchers of routers ------------------------------------------------------------------ */
/* Borrow a balancing dispatcher for the routees of one router; it is to be returned after the last
 * of them has ended. id: TRP_DISPATCHER_ID_BYTES_MAX + 1 bytes. Errors: TRP_ELIMIT, TRP_EEXIST,
 * TRP_ENOMEM. */
trp_err trpi_balancing_borrow(trp_system *system, char *id, size_t bytes);
void trpi_balancing_return(trp_system *system, const char *id);

/* Built-in types (kernel_types.c). */
extern const struct trpi_type_part trpi_kernel_types;

#endif
