/* open.h - what the rooms above src/actor may use of the room kernel: part of actor/actor.h. */
#ifndef TRPI_ACTOR_KERNEL_OPEN_H
#define TRPI_ACTOR_KERNEL_OPEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/system.h>

#include "base/world.h"
#include "sched/sched.h"

/* ---- nodes ----------------------------------------------------------------------------------- */
/* Node numbers are what trp_ref.node holds: an index into the system's node table, with a
 * generation: one (address, uid) until that has ended, and then nobody. Number 0 is nobody;
 * TRPI_NODE_SELF is the system itself. An entry with uid 0 names whoever lives at the address. */
#define TRPI_NODE_SELF 1u
#define TRPI_NODES_MAX 0xffffffu /* 24 bits in a message */
trpi_world *trpi_system_world(trp_system *system);

/* ---- telling from any thread ----------------------------------------------------------------- */
/* The calling thread's ctx for this system: the worker's own one inside a run, else the thread's
 * foreign ctx, bracketed (reclamation, chains pushed at leave). Nests. Never NULL: without memory
 * it waits for some. */
trp_ctx *trpi_enter(trp_system *system);
void trpi_leave(trp_ctx *ctx);
/* Tell with any sender; to may be remote, stale or none. */
void trpi_tell(trp_ctx *ctx, trp_ref to, trp_ref sender, const trp_type *type, const void *payload,
               size_t bytes);
/* Tell a message whose sender and type are set. Takes msg. */
void trpi_send(trp_ctx *ctx, trp_ref to, trp_msg *msg);
/* Make an unsent message of no bytes that owns data, which is what trp_msg_payload() returns:
 * release(data, NULL) is called once, when the message is freed, by the thread that frees it.
 * Takes data, on success only. Errors: TRP_ENOMEM. Thread: any. */
trp_err trpi_msg_new_owner(const trp_type *type, void *data, void (*release)(void *data, void *arg),
                           trp_msg **ret_msg);
/* The same in the name of another sender. */
void trpi_send_as(trp_ctx *ctx, trp_ref to, trp_ref sender, trp_msg *msg);
/* Count msg as lost for `to` and publish it as a dead letter, unless it is stored; borrows msg. */
void trpi_dead(trp_ctx *ctx, trp_ref to, const trp_msg *msg, trp_dead_reason reason);

/* ---- messages that were kept elsewhere ------------------------------------------------------- */
/* A message as if `sender` had told it to `to`; copies payload. Gives *ret_msg. Errors: TRP_ENOMEM,
 * TRP_EINVAL (bytes are not those of the type). Thread: any. */
trp_err trpi_msg_restore(trp_ref to, trp_ref sender, const trp_type *type, const void *payload,
                         size_t bytes, trp_msg **ret_msg);
/* Is it one of those that the library itself tells, and no mailbox is asked about? */
bool trpi_msg_is_own(const trp_msg *msg);

/* A durable mailbox has stored what it was asked to admit: from now on msg is a token, and when it
 * reaches nobody it is no dead letter, for what it stands for is handled by the next owner. Thread:
 * admit's; msg is not told yet, so that nobody else has it. */
#define TRPI_MSG_MANY 0x08000000u     /* flag of a header: a router gave it to several */
#define TRPI_MSG_STORED 0x20000000u   /* flag of a header; until the mailbox takes the token */
#define TRPI_MSG_RESERVED 0x40000000u /* flag of a header; only on its way to a proxy */
static inline void
trpi_msg_stored(const trp_msg *msg)
{
    ((trp_msg *)(uintptr_t)msg)->priv_from_node_flags |= TRPI_MSG_STORED;
}

/* ---- what others may still be reading ------------------------------------------------------- */
/* Run fn(object) when no thread can be inside a registered op or a run that began before this call;
 * at the latest when the system is freed. For what an op's arg points to, after it was
 * unregistered. Thread: any. */
void trpi_system_retire(trp_system *system, void (*fn)(void *object), void *object);

/* trp_msg_free(), for the library's own. NULL is fine. Thread: any. */
void trpi_msg_drop(trp_msg *msg);

/* The shared object that holds this address is a plugin, or another part of the program: what an
 * actor does wrong in its code may become the actor's failure (fault-trap). Thread: any. */
void trpi_fault_trust(const void *inside);

/* ---- dispatchers of routers ------------------------------------------------------------------ */
/* A balancing dispatcher for the routees of one router, until it is given back, which must be after
 * the last of them. id: TRP_DISPATCHER_ID_BYTES_MAX + 1 bytes. Errors: TRP_ELIMIT, TRP_EEXIST,
 * TRP_ENOMEM. */
trp_err trpi_balancing_borrow(trp_system *system, char *id, size_t bytes);
void trpi_balancing_return(trp_system *system, const char *id);

/* Built-in types (kernel_types.c). */
extern const struct trpi_type_part trpi_kernel_types;

#endif
