/* routing_gather.c - ask several routees and take the first answer: all at once (scatter-gather),
 * or one after the other (tail-chopping).
 *
 * Why.     The slowest of many routees decides how long a user waits, unless others are asked, too.
 * Shape.   teller -> message to routees, its sender a service -> the first reply goes on to the
 *          teller, with the replying routee as its sender. Later replies are dead letters.
 * Must hold.
 *   routing-gather-C1  The teller gets one answer: a reply, or a trp_status_failure with
 *       TRP_ETIMEDOUT after within_ms.
 * Cost.    A cell and a timer for each message.
 * Tests.   tests/unit/pattern/gather_test.c
 * Sources. ROUTE-11, -25; tail-chopping: Akka 2.3, akka.routing.TailChopping.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "pattern/routing.h"

typedef struct gather {
    trp_ref asker, router;
    uint32_t left_ms, wait_ms; /* until the end; until the next alarm */
    uint32_t interval_ms;
    trp_msg *msg; /* a copy, for routees not yet asked; NULL: all are */
    uint32_t next, count;
    trp_ref order[];
} gather;

static void
asker_fail(trp_ctx *ctx, trp_ref asker, trp_ref router, trp_err err, const char *reason)
{
    trp_status_failure failure;

    if (trp_ref_is_none(asker)) {
        return; /* no asker waits */
    }
    memset(&failure, 0, sizeof failure);
    failure.err = (int32_t)err;
    (void)snprintf(failure.reason, sizeof failure.reason, "%s", reason);
    trpi_tell(ctx, asker, router, &trp_status_failure_type, &failure, sizeof failure);
}

static void
gather_release(void *arg)
{
    gather *g = arg;

    trpi_msg_drop(g->msg);
    trpi_free(g);
}

/* routing-gather-C1 */
static bool
gather_reply(void *arg, trp_ctx *ctx, trp_ref self, const trp_msg *msg)
{
    const gather *g = arg;
    trp_msg *copy;

    (void)self;
    if (trp_msg_dup(msg, &copy) == TRP_OK) {
        trpi_send(ctx, g->asker, copy); /* its sender stays: the routee */
    } else {
        asker_fail(ctx, g->asker, g->router, TRP_ENOMEM, "no memory for the reply of a routee");
    }
    return false;
}

/* Ask the next one. */
static void
gather_ask_next(gather *g, trp_ctx *ctx, trp_ref self)
{
    trp_ref to = g->order[g->next++];
    trp_msg *copy = NULL;

    if (g->next < g->count) {
        if (trp_msg_dup(g->msg, &copy) != TRP_OK) {
            return; /* the next one may succeed */
        }
    } else {
        copy = g->msg;
        g->msg = NULL;
    }
    trpi_send_as(ctx, to, self, copy);
}

/* Return the time until the next alarm: another routee's turn, or the end. */
static uint32_t
wait_next(gather *g)
{
    g->wait_ms = g->next < g->count && g->interval_ms < g->left_ms ? g->interval_ms : g->left_ms;
    return g->wait_ms;
}

static bool
alarm_rings(void *arg, trp_ctx *ctx, trp_ref self, uint32_t *ret_again_ms)
{
    gather *g = arg;

    g->left_ms -= g->wait_ms;
    if (g->left_ms == 0) {
        asker_fail(ctx, g->asker, g->router, TRP_ETIMEDOUT, "no routee has answered in time");
        return false;
    }
    if (g->next < g->count) {
        gather_ask_next(g, ctx, self);
    }
    *ret_again_ms = wait_next(g);
    return true;
}

static const trpi_service_ops gather_ops = { "gather", gather_reply, alarm_rings, gather_release };

/* Shuffle refs pseudo-randomly, differently for each message. */
static void
refs_shuffle(trp_route *route, trp_ref *refs, uint32_t count)
{
    uint64_t random = trpi_route_random(route);

    for (uint32_t i = count; i > 1; i--) {
        uint32_t j;
        trp_ref at;

        random = trpi_hash_u64(random + i);
        j = (uint32_t)(random % i);
        at = refs[i - 1];
        refs[i - 1] = refs[j];
        refs[j] = at;
    }
}

/* Make a gather that asks `count` routees in turn; 0: the teller asks all at once. NULL: no
 * memory. */
static gather *
gather_new(trp_route *route, uint32_t count)
{
    const trpi_router_plan *plan = &route->router->plan;
    gather *g = trpi_alloc(sizeof *g + count * sizeof g->order[0]);

    if (g == NULL) {
        return NULL;
    }
    g->asker = route->sender;
    g->router = route->router->self;
    g->left_ms = plan->within_ms;
    g->interval_ms = plan->interval_ms;
    g->count = count;
    if (count > 0) {
        memcpy(g->order, route->table->refs, count * sizeof g->order[0]);
        refs_shuffle(route, g->order, count);
        g->next = 1; /* the first one is the teller's */
        if (count > 1 && trp_msg_dup(route->msg, &g->msg) != TRP_OK) {
            trpi_free(g);
            return NULL;
        }
    }
    return g;
}

/* Return whether there is no asker, or nothing is sent (trp_router_route). */
static bool
is_plain(trp_route *route, bool all)
{
    if (route->table->count == 0) {
        trpi_route_nobody(route);
    } else if (route->list != NULL && all) {
        trp_route_to_all(route, route->sender);
    } else if (route->list != NULL) {
        trpi_route_to_index(route, (uint32_t)(trpi_route_random(route) % route->table->count));
    } else {
        return false;
    }
    return true;
}

/* Spawn the service of g. Takes g. False: the teller got a failure. */
static bool
gather_begin(trp_route *route, gather *g, trp_ref *ret_service)
{
    if (g != NULL &&
        trpi_service_new(route->ctx, &gather_ops, g, wait_next(g), ret_service) == TRP_OK) {
        return true;
    }
    if (g != NULL) {
        gather_release(g);
    }
    asker_fail(route->ctx, route->sender, route->router->self, TRP_ENOMEM,
               "no memory to ask the routees");
    trpi_route_nobody(route);
    return false;
}

void
trpi_route_scatter(void *state, trp_route *route, trp_ref sender, const trp_msg *msg)
{
    trp_ref service;

    (void)state;
    (void)sender;
    (void)msg;
    if (!is_plain(route, true) && gather_begin(route, gather_new(route, 0), &service)) {
        trp_route_to_all(route, service);
    }
}

void
trpi_route_chop(void *state, trp_route *route, trp_ref sender, const trp_msg *msg)
{
    trp_ref service, first;
    gather *g;

    (void)state;
    (void)sender;
    (void)msg;
    if (is_plain(route, false)) {
        return;
    }
    g = gather_new(route, route->table->count);
    first = g != NULL ? g->order[0] : route->sender;
    if (gather_begin(route, g, &service)) { /* from here g is the service's */
        trp_route_to(route, first, service);
    }
}
