/* open.h - what rooms above src/actor may use of the room distribution: part of actor/actor.h. */
#ifndef TRPI_ACTOR_DISTRIBUTION_OPEN_H
#define TRPI_ACTOR_DISTRIBUTION_OPEN_H

#include "actor/nodes/open.h"

/* ---- what remoting calls (any thread that is not a worker; bracketed inside) ----------------- */
/* Deliver one message that came over the wire. Copies payload. A stale target is a dead letter.
 * sender: node may be any interned node. type NULL: dead letter not-encodable. Never blocks. */
void trpi_inbound_tell(trp_system *system, uint32_t slot, uint32_t generation, trp_ref sender,
                       const trp_type *type, const void *payload, size_t bytes);
/* The same for many messages: tells between begin and end are chained per receiver and pushed at
 * end. */
void trpi_inbound_begin(trp_system *system);
void trpi_inbound_end(trp_system *system);
/* Does this actor live, now? */
bool trpi_inbound_is_there(trp_system *system, uint32_t slot, uint32_t generation);
/* A message to a selection elsewhere is told to nobody; its sender is told err at once.
 * Thread: any. */
void trpi_selection_failed(trp_system *system, trp_ref sender, trp_err err);
/* Deliver to what path selects. For Identify a concrete path that names nobody is answered with
 * TRP_REF_NONE (SYS-25). */
void trpi_inbound_select(trp_system *system, const char *path, trp_ref sender, const trp_type *type,
                         const void *payload, size_t bytes);
void trpi_inbound_signal(trp_system *system, enum trpi_remote_signal signal, trp_ref target,
                         trp_ref from, uint32_t flag);
/* The same of a signal with an order; what it means is checked, how it is written was before. */
void trpi_inbound_order(trp_system *system, enum trpi_remote_signal signal, trp_ref target,
                        trp_ref from, const trpi_order *order);
/* Node is gone for good (quarantined, removed): every local watcher of one of its actors is told
 * trp_terminated with address_terminated. Later tells to it are dead letters with `reason`. */
void trpi_node_terminated(trp_system *system, uint32_t node, trp_dead_reason reason);
/* The same for watchers only: what it still says is heard, and what it is told goes its way, until
 * it is terminated. left: in good order, so its actors still handle what they have; the parents of
 * remote children there are told by the end of each, or when the node is terminated. */
void trpi_node_lost(trp_system *system, uint32_t node, bool left);

#endif
