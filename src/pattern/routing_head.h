/* routing_head.h - shared by the files of the router's own actor. Thread: head. */
#ifndef TRPI_PATTERN_ROUTING_HEAD_H
#define TRPI_PATTERN_ROUTING_HEAD_H

#include "pattern/routing.h"
#include "pattern/routing_types.h"

#define TRPI_ROUTER_LOOKUP_MS 1000 /* between two lookups of paths without an actor */
#define TRPI_ROUTER_ANSWER_MS 5000 /* for the answer to a lookup */

#define TRPI_HEAD_TIMERS (UINT64_MAX - 16) /* keys of timers; those of programs are lower */

/* Orders of the head to itself: payload of a resize message (without one: resize), key of a
 * timer. */
enum trpi_head_order {
    TRPI_HEAD_RESIZE = 0,
    TRPI_HEAD_ABANDONED = 1,
    TRPI_HEAD_LOOKUP = 2,
    TRPI_HEAD_SOURCE = 3
};

/* Give the head this order once, after the delay. */
void trpi_head_timer(trp_ctx *ctx, enum trpi_head_order order, uint64_t delay_ms);
/* Send the poison pills that are due, and set a timer for the others. */
void trpi_router_abandoned_check(trp_ctx *ctx, trpi_router *router);

#endif
