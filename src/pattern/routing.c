/* routing.c - the way of a message through a router.
 *
 * Why.     Telling a router must cost hardly more than telling a routee: the choice is made on the
 *          teller's thread, over a table that is read by one load, and the message itself goes on.
 * Shape.   tell -> router_route -> logic->route -> trp_route_to ... -> trpi_send
 *          Each destination but the last one gets a copy; the last one gets the message.
 * Must hold.
 *   routing-R1  A message goes to a destination, to the router's own mailbox, or is a dead letter:
 *       it is freed or sent exactly once. (route_finish)
 *   routing-R2  Nothing here takes a lock, and a message to one routee allocates nothing.
 *   routing-R3  The sender is kept, unless the logic names another one.
 *   routing-R4  At most one resize order is on its way.
 * Tests.   tests/unit/pattern/router_test.c
 * Sources. ROUTE-1, -2, -13, -14, -15, -21, -25.
 */
#include "pattern/routing.h"
#include "pattern/routing_types.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomics.h"
#include "base/hash.h"

static const trp_ref nobody = TRP_REF_NONE;

/* ---- destinations ---------------------------------------------------------------------------- */

static bool
list_add(trp_route *route, trp_ref to, trp_ref sender)
{
    if (route->list == NULL) {
        return false;
    }
    if (route->count < route->list_max) {
        route->list[route->count] = (trp_destination){ sender, to };
    }
    route->count++;
    return true;
}

/* Send a copy to the destination that was named before. */
static void
send_copy(trp_route *route)
{
    trp_msg *copy;

    if (trp_msg_dup(route->msg, &copy) != TRP_OK) {
        trpi_dead(route->ctx, route->to, route->msg, TRP_DEAD_NO_MEMORY);
        return;
    }
    copy->priv_from_node_flags |= TRPI_MSG_MANY;
    trpi_send_as(route->ctx, route->to, route->as, copy);
}

static void
count_sent(const trp_route *route, uint32_t index)
{
    /* relaxed: statistics */
    (void)atomic_fetch_add_explicit(&route->table->routees[index]->sent, 1, memory_order_relaxed);
}

static void
destination_add(trp_route *route, trp_ref ref, trp_ref sender)
{
    if (list_add(route, ref, sender)) {
        return;
    }
    if (UNLIKELY(trp_ref_equal(ref, route->router->self))) {
        route->own = true;
        return;
    }
    if (UNLIKELY(route->any)) {
        send_copy(route);
        route->msg->priv_from_node_flags |= TRPI_MSG_MANY; /* not each of them must handle it */
    }
    route->any = true;
    route->to = ref;
    route->as = sender;
}

static inline bool
is_counted(const trp_route *route)
{
    return UNLIKELY((route->router->needs & TRPI_LOGIC_SENT) != 0) && route->list == NULL;
}

void
trp_route_to(trp_route *route, trp_ref ref, trp_ref sender)
{
    for (uint32_t i = 0; is_counted(route) && i < route->table->count; i++) {
        if (trp_ref_equal(route->table->refs[i], ref)) {
            count_sent(route, i);
            break;
        }
    }
    destination_add(route, ref, sender);
}

void
trpi_route_to_index(trp_route *route, uint32_t index)
{
    if (is_counted(route)) {
        count_sent(route, index);
    }
    destination_add(route, route->table->refs[index], route->sender);
}

void
trp_route_to_all(trp_route *route, trp_ref sender)
{
    for (uint32_t i = 0; i < route->table->count; i++) {
        if (is_counted(route)) {
            count_sent(route, i);
        }
        destination_add(route, route->table->refs[i], sender);
    }
}

void
trpi_route_nobody(trp_route *route)
{
    route->lost = true;
}

/* Send the message to the last destination (routing-R1). False: it is for the router itself. */
static bool
route_finish(trp_route *route)
{
    if (route->any) {
        if (!route->own) {
            trpi_send_as(route->ctx, route->to, route->as, route->msg);
            return true;
        }
        send_copy(route);
        return false;
    }
    if (route->lost) {
        trpi_dead(route->ctx, route->router->self, route->msg, TRP_DEAD_NO_SUCH_ACTOR);
        trpi_msg_drop(route->msg);
        return true;
    }
    return false;
}

/* ---- functions for logics -------------------------------------------------------------------- */

uint32_t
trp_route_count(const trp_route *route)
{
    return route->table->count;
}

trp_ref
trp_route_routee(const trp_route *route, uint32_t index)
{
    return index < route->table->count ? route->table->refs[index] : nobody;
}

uint64_t
trp_route_number(const trp_route *route)
{
    if (!route->numbered) {
        trp_route *mine = (trp_route *)(uintptr_t)route; /* the number is given when asked for */

        /* relaxed: each teller gets its own, no order between them is promised */
        mine->number = atomic_fetch_add_explicit(&route->router->number, 1, memory_order_relaxed);
        mine->numbered = true;
    }
    return route->number;
}

uint32_t
trpi_route_node(const trp_route *route, uint32_t index)
{
    return route->table->routees[index]->node;
}

uint64_t
trpi_route_serial(const trp_route *route)
{
    return route->table->serial;
}

uint64_t
trpi_route_random(trp_route *route)
{
    return trpi_hash_u64(route->router->seed +
                         trp_route_number(route) * 0x9e3779b97f4a7c15u); /* SplitMix64's step */
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Order a resize if one is due (routing-R4). Before the message itself, so that with
 * messages-per-resize 1 the load is checked before each one. */
static void
order_resize(trp_route *route)
{
    trpi_router *router = route->router;
    const trpi_router_plan *plan = &router->plan;
    uint64_t number = trp_route_number(route);
    bool due = plan->resizes_own ? plan->own_resizer.is_time(plan->own_resizer.arg, number) != 0
                                 : number % plan->resizer.messages_per_resize == 0;

    if (!due || route->list != NULL) {
        return;
    }
    /* relaxed: the winner tells the head, and the tell orders memory */
    if (!atomic_exchange_explicit(&router->resizing, true, memory_order_relaxed)) {
        trpi_tell(route->ctx, router->self, nobody, &trpi_resize_type, NULL, 0);
    }
}

/* Send the content of the envelope to every routee. */
static bool
envelope_broadcast(trpi_router *router, trp_ctx *ctx, trp_msg *msg, trp_ref sender)
{
    const trpi_routee_table *table = trpi_router_table(router);
    const trp_type *type;
    const void *payload;
    trp_hash_key key;
    size_t bytes;

    if (!trpi_envelope_open(msg, &type, &key, &payload, &bytes)) {
        return false;
    }
    for (uint32_t i = 0; i < table->count; i++) {
        if ((router->needs & TRPI_LOGIC_SENT) != 0) {
            (void)atomic_fetch_add_explicit(&table->routees[i]->sent, 1, memory_order_relaxed);
        }
        trpi_tell(ctx, table->refs[i], sender, type, payload, bytes);
    }
    trpi_msg_drop(msg);
    return true;
}

static bool
route_msg(trp_route *route)
{
    trpi_router *router = route->router;

    if (UNLIKELY(router->resizes)) {
        order_resize(route);
    }
    router->logic->route(router->logic_state, route, route->sender, route->msg);
    return route->list != NULL || route_finish(route);
}

/* Route the message in a keyed envelope in place of the envelope. */
static bool
route_keyed(trp_route *route)
{
    trp_msg *envelope = route->msg;
    const trp_type *type;
    const void *payload;
    trp_hash_key key;
    size_t bytes;
    void *copy;

    if (!trpi_envelope_open(envelope, &type, &key, &payload, &bytes)) {
        return false;
    }
    if (trp_msg_new(type, bytes, &route->msg, &copy) != TRP_OK) {
        trpi_dead(route->ctx, route->router->self, envelope, TRP_DEAD_NO_MEMORY);
        trpi_msg_drop(envelope);
        return true;
    }
    memcpy(copy, payload, bytes);
    route->msg->priv_from_slot = envelope->priv_from_slot;
    route->msg->priv_from_generation = envelope->priv_from_generation;
    route->msg->priv_from_node_flags |= envelope->priv_from_node_flags & TRPI_NODES_MAX;
    route->keyed = true;
    route->key_hash = trpi_hash(key.bytes, key.count, 0);
    trpi_msg_drop(envelope);
    if (!route_msg(route)) { /* a dead letter: the router's mailbox must not get it */
        trpi_dead(route->ctx, route->router->self, route->msg, TRP_DEAD_NO_SUCH_ACTOR);
        trpi_msg_drop(route->msg);
    }
    return true;
}

static trp_ref
sender_of(const trp_msg *msg)
{
    return (trp_ref){ msg->priv_from_node_flags & TRPI_NODES_MAX, msg->priv_from_slot,
                      msg->priv_from_generation, 0 };
}

/* Route msg to routees, on the sender's thread. false: it is for the router itself. */
static bool
router_route(void *arg, trp_ctx *ctx, trp_ref self, trp_msg *msg)
{
    trpi_router *router = arg;
    trp_route route;

    (void)self;
    if (UNLIKELY(msg->priv_type < TRPI_TYPE_AUTO_END ||
                 (msg->priv_type >= TRPI_TYPE_GET_ROUTEES && msg->priv_type <= TRPI_TYPE_RESIZE))) {
        return false; /* ROUTE-14, -15: for the router itself */
    }
    route.router = router;
    route.table = trpi_router_table(router);
    route.ctx = ctx;
    route.msg = msg;
    route.sender = sender_of(msg);
    route.numbered = false;
    route.any = false;
    route.own = false;
    route.lost = false;
    route.keyed = false;
    route.list = NULL;
    if (UNLIKELY(msg->priv_type <= TRPI_TYPE_KEYED && msg->priv_type >= TRPI_TYPE_BROADCAST)) {
        return msg->priv_type == TRPI_TYPE_KEYED
                   ? route_keyed(&route)
                   : envelope_broadcast(router, ctx, msg, route.sender);
    }
    return route_msg(&route);
}

/* ---- looking --------------------------------------------------------------------------------- */

trp_err
trp_router_route(trp_system *system, trp_ref router_ref, trp_ref sender, const trp_type *type,
                 const void *payload, size_t bytes, trp_destination *ret_destinations, uint32_t max,
                 uint32_t *ret_count)
{
    trp_destination none;
    trp_route route;
    void *copy;
    trp_err err;

    if (type == NULL || ret_count == NULL || (ret_destinations == NULL && max > 0)) {
        return TRP_EINVAL;
    }
    memset(&route, 0, sizeof route);
    err = trp_msg_new(type, (type->flags & TRP_TYPE_VARIABLE) != 0 ? bytes : type->bytes,
                      &route.msg, &copy);
    if (err != TRP_OK) {
        return err;
    }
    if (trp_msg_bytes(route.msg) > 0) {
        memcpy(copy, payload, trp_msg_bytes(route.msg));
    }
    route.ctx = trpi_enter(system);
    route.router = trpi_routed_find(route.ctx, router_ref, &trpi_router_ops);
    if (route.router != NULL) {
        route.table = trpi_router_table(route.router);
        route.sender = sender;
        route.list = max > 0 ? ret_destinations : &none;
        route.list_max = max;
        (void)route_msg(&route);
        *ret_count = route.count;
    }
    err = route.router == NULL ? TRP_ENOENT : TRP_OK;
    trpi_leave(route.ctx);
    trpi_msg_drop(route.msg);
    return err;
}

trp_err
trp_router_routees(trp_system *system, trp_ref router_ref, trp_ref *ret_routees, uint32_t max,
                   uint32_t *ret_count)
{
    trp_ctx *ctx = trpi_enter(system);
    const trpi_router *router = trpi_routed_find(ctx, router_ref, &trpi_router_ops);

    if (router != NULL) {
        const trpi_routee_table *table = trpi_router_table(router);

        for (uint32_t i = 0; i < table->count && i < max; i++) {
            ret_routees[i] = table->refs[i];
        }
        *ret_count = table->count;
    }
    trpi_leave(ctx);
    return router == NULL ? TRP_ENOENT : TRP_OK;
}

static void
router_ended(void *arg, trp_system *system)
{
    trpi_system_retire(system, trpi_router_free, arg);
}

const trpi_routed_ops trpi_router_ops = { router_route, router_ended };

trpi_router *
trpi_router_self(trp_ctx *ctx)
{
    trpi_router *router = trpi_routed_find(ctx, trp_self(ctx), &trpi_router_ops);

    trpi_assert(router != NULL);
    return router;
}
