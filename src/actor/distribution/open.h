/* open.h - what rooms above src/actor may use of the room distribution: part of actor/actor.h. */
#ifndef TRPI_ACTOR_DISTRIBUTION_OPEN_H
#define TRPI_ACTOR_DISTRIBUTION_OPEN_H

#include "actor/nodes/open.h"

/* ---- called by remoting (any thread) --------------------------------------------------------- */
/* Begin a batch: the messages of one read. Its ctx is of this thread until the end, which pushes
 * what is batched by receiver. */
trp_ctx *trpi_inbound_begin(trp_system *system);
void trpi_inbound_end(trp_ctx *ctx);
/* Deliver one message from another node, within a batch. Copies payload. A stale target is a dead
 * letter. sender: node may be any interned node. type NULL: dead letter not-encodable. Never
 * blocks. */
void trpi_inbound_tell(trp_ctx *ctx, uint32_t slot, uint32_t generation, trp_ref sender,
                       const trp_type *type, const void *payload, size_t bytes);
/* Deliver several messages of one sender and type to one actor, in this order, each as
 * trpi_inbound_tell() does. The payloads fit the type, which is not NULL. */
void trpi_inbound_tell_run(trp_ctx *ctx, uint32_t slot, uint32_t generation, trp_ref sender,
                           const trp_type *type, const uint8_t *records, uint32_t count);
/* Deliver messages of one sender for entities, of parts, at once: at most TRPI_ARRIVALS_MAX. Return
 * how many were, from the first on; the next one is to be delivered as a message. */
uint32_t trpi_inbound_entities(trp_ctx *ctx, uint32_t slot, uint32_t generation, trp_ref sender,
                               const trpi_carrier *what, uint32_t count);
/* Is this actor alive? */
bool trpi_inbound_is_there(trp_system *system, uint32_t slot, uint32_t generation);
/* A message to a selection on another node cannot be sent: its sender gets err at once.
 * Thread: any. */
void trpi_selection_failed(trp_system *system, trp_ref sender, trp_err err);
/* Deliver to the actors that path selects. An Identify to a path without wildcards that names no
 * actor is answered with TRP_REF_NONE (SYS-25). */
void trpi_inbound_select(trp_system *system, const char *path, trp_ref sender, const trp_type *type,
                         const void *payload, size_t bytes);
/* trpi_inbound_tell() and trpi_inbound_select() for a message that is part of a trace. */
void trpi_inbound_tell_traced(trp_ctx *ctx, uint32_t slot, uint32_t generation, trp_ref sender,
                              const trpi_traced *traced, const trp_type *type, const void *payload,
                              size_t bytes);
void trpi_inbound_select_traced(trp_system *system, const char *path, trp_ref sender,
                                const trpi_traced *traced, const trp_type *type,
                                const void *payload, size_t bytes);
void trpi_inbound_signal(trp_system *system, enum trpi_remote_signal signal, trp_ref target,
                         trp_ref from, uint32_t flag);
/* Deliver a signal with an order; its meaning is checked here, its encoding was checked before. */
void trpi_inbound_order(trp_system *system, enum trpi_remote_signal signal, trp_ref target,
                        trp_ref from, const trpi_order *order);
/* The node is lost for good (quarantined, removed): every local watcher of one of its actors gets
 * trp_terminated with address_terminated. Later messages to it are dead letters with `reason`. */
void trpi_node_terminated(trp_system *system, uint32_t node, trp_dead_reason reason);
/* The same for watchers only: messages from and to the node still pass until
 * trpi_node_terminated(). left: the node stopped in good order, so its actors still handle what
 * they have; the parents of remote children there are notified at the end of each, or when the node
 * is terminated. */
void trpi_node_lost(trp_system *system, uint32_t node, bool left);

#endif
