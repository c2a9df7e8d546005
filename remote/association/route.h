/* route.h - the way from a proxy of the actor room to the lanes of a peer. */
#ifndef TRPI_REMOTE_ROUTE_H
#define TRPI_REMOTE_ROUTE_H

#include "remote/association/routes.h"

#define TRPI_BATCH_BYTES_MAX                                                                       \
    262144 /* a run's messages to one node; more are handed over before its end */
#define TRPI_HELD_KEPT_BYTES 65536   /* a route's buffer for one message to a slow receiver */
#define TRPI_FLUSH_BYTES_LEAST 65536 /* less is not handed over while more is to be encoded */

/* ---- route.c ---- */
/* Append the frame of one message. serializer NULL: its type does not travel. By the runner.
 * Errors: those of trpi_message_encode(), TRP_ENOTYPE, TRP_ECONN (remoting has stopped). */
trp_err trpi_route_encode(trpi_route *route, trpi_buffer *out, const trpi_serializer *serializer,
                          const trp_type *type, const trp_msg *msg, trpi_node_map *ret_map);
extern const trpi_remote_ops trpi_route_remote_ops;
/* Give the batches to the lanes. By the runner; true: one is above its high-water mark. */
bool trpi_route_hand_over(trpi_route *route);

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
