/* route.h - the way from a proxy of the actor room to the lanes of a peer. */
#ifndef TRPI_REMOTE_ROUTE_H
#define TRPI_REMOTE_ROUTE_H

#include "remote/association/routes.h"

#define TRPI_BATCH_BYTES_MAX                                                                       \
    262144 /* a run's messages to one node; more are handed over before its end */
#define TRPI_HELD_KEPT_BYTES 65536 /* a route's buffer for one message to a slow receiver */
/* Less is not handed over while more is to be encoded. With a frame of like messages more, and what
 * TLS adds, it fits into one segment of loopback: the rest of a longer write would be a packet of
 * its own, which costs as much as a large one. */
#define TRPI_FLUSH_BYTES_LEAST 61200
#define TRPI_SEGMENT_BYTES 65463 /* of 65,536: less the headers of IPv6 and TCP */

/* ---- route.c ---- */
/* Append the frame of one message. serializer NULL: its type does not travel. By the runner.
 * Errors: those of trpi_message_encode(), TRP_ENOTYPE, TRP_ECONN (remoting has stopped). */
trp_err trpi_route_encode(trpi_route *route, trpi_buffer *out, const trpi_serializer *serializer,
                          const trp_type *type, const trp_msg *msg, trpi_node_map *ret_map);
extern const trpi_remote_ops trpi_route_remote_ops;
/* Give the batches to the lanes. By the runner; true: one is above its high-water mark. */
bool trpi_route_hand_over(trpi_route *route);

/* Return what a message of so many bytes of payload counts while it is only reserved. */
static inline size_t
trpi_route_reservation(size_t bytes)
{
    return TRPI_FRAME_HEADER_BYTES + TRPI_USER_FIXED_BYTES + bytes;
}
static inline trp_ref
trpi_route_sender_of(const trp_msg *msg)
{
    trp_ref sender = { msg->priv_from_node_flags & 0xffffffu, msg->priv_from_slot,
                       msg->priv_from_generation, 0 };
    return sender;
}
/* Does the message agree with the last one of the batch? Then they may share a frame (route-O4). */
static inline bool
trpi_route_is_like_last(const trpi_batch *batch, const trp_type *type, const trp_msg *msg)
{
    return batch->last.type == type && batch->last.to_slot == msg->priv_to_slot &&
           batch->last.to_generation == msg->priv_to_generation &&
           batch->last.from_slot == msg->priv_from_slot &&
           batch->last.from_generation == msg->priv_from_generation &&
           batch->last.from_node == (msg->priv_from_node_flags & batch->last.from_mask);
}

/* ---- traced.c ---- */
/* Is it part of a trace, and does the other node take traces? */
bool trpi_route_trace(const trpi_route *route, const trp_msg *msg, trpi_wire_trace *ret_trace);
/* The same for a selection. Return the incarnation that takes the trace: its frame is for no other
 * one, which might not know what a trace section is. 0: it goes without, to any. */
uint64_t trpi_selection_trace(trp_system *system, const trpi_peer *peer, const trp_msg *msg,
                              trpi_wire_trace *ret_trace);

/* ---- selection.c ---- */
/* Append a selection to the peer's lane. Errors: TRP_ECONN, TRP_EQUARANTINED, TRP_EAGAIN (full),
 * and those of the encoding. */
trp_err trpi_selection_append(trpi_remote *remote, trpi_peer *peer, const char *path,
                              trp_ref sender, const trp_msg *msg);

/* ---- route_again.c ---- */
/* Batch a message that agrees with the one before it, if nothing else is to be done for it.
 * bounded: if trp_try_tell() may. By the runner. */
bool trpi_route_again(trpi_route *route, const trp_msg *msg, const void *payload, size_t bytes,
                      bool bounded);

/* Reserve room for messages like the last one that was batched, as records of which the next has
 * `need` bytes; 0: there is none. By the runner. */
size_t trpi_route_gather(trpi_route *route, size_t need);
/* Batch them, if they still agree with the last one. By the runner. */
bool trpi_route_gathered(trpi_route *route, const trp_msg *msg, const trpi_gathered *gathered);
/* Of trpi_proxy_ops: append the wire form of a message that carries another one, as a record of
 * trpi_route_gathered(). Any thread. false: it is no record, since it names third nodes, or cannot
 * be encoded. */
bool trpi_route_carry(void *route, const trpi_carrier *what, trpi_buffer *out);
/* Append the payload that it is the wire form of. Errors: TRP_ENOMEM. */
trp_err trpi_route_restore(void *route, const trp_type *type, const uint8_t *record, size_t bytes,
                           trpi_buffer *out);
/* Reserve for each of them instead. */
void trpi_route_reserve_each(trpi_route *route, size_t granted, uint32_t count, size_t bytes);

/* ---- signal.c: of trpi_remote_ops ---- */
void trpi_signal_send(void *remote, trp_system *system, uint32_t node,
                      enum trpi_remote_signal signal, trp_ref target, trp_ref from, uint32_t flag);
trp_err trpi_signal_order(void *remote, trp_system *system, uint32_t node,
                          enum trpi_remote_signal signal, trp_ref target, trp_ref from,
                          const trpi_order *order);
bool trpi_signal_is_connected(void *remote, trp_system *system, uint32_t node);

/* ---- route_lane.c ---- */
/* The lane of a message. By the runner. */
enum trpi_lane trpi_route_lane(trpi_route *route, uint32_t slot, size_t bytes);
/* The same for a reservation: as things stand. */
enum trpi_lane trpi_route_lane_guess(const trpi_route *route, uint32_t slot, size_t bytes);

#endif
