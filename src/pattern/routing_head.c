/* routing_head.c - the router's own actor: it manages the routees; messages do not pass through it.
 *
 * Why.     The set of routees, their ends and their number are decided by one actor, in its own
 *          turns, which publishes the result as a table.
 * Must hold.
 *   routing-head-E1  Every routee is watched while the head has an instance; one that ends leaves
 *       the table.
 *   routing-head-E2  A router whose last routee has ended ends too, unless more may come: by its
 *       resizer, by a path that is still looked for, or from its source. (end_if_alone)
 *   routing-head-E3  A restart leaves the routees alone: they are the head's children, and are
 *       restarted after it (ROUTE-17).
 * Tests.   tests/unit/pattern/pool_test.c, supervision_test.c
 * Sources. ROUTE-14 to -20, -24.
 */
#include "pattern/routing_head.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

static trp_directive
failure_escalate(trp_ctx *ctx, void *state, const trp_failure *failure)
{
    (void)ctx;
    (void)state;
    (void)failure;
    return TRP_ESCALATE;
}
const trp_strategy trpi_router_escalate = {
    sizeof(trp_strategy), 0, 0, failure_escalate, 0, 0, NULL
};

static trp_directive
escalate_later(trp_ctx *ctx, void *state, const trp_failure *failure)
{
    (void)ctx;
    (void)state;
    return failure->err == TRP_EINIT ? TRP_STOP : TRP_ESCALATE;
}
const trp_strategy trpi_router_escalate_later = {
    sizeof(trp_strategy), 0, 0, escalate_later, 0, 0, NULL
};

void
trpi_head_timer(trp_ctx *ctx, enum trpi_head_order order, uint64_t delay_ms)
{
    uint8_t payload = (uint8_t)order;

    if (trp_timer_once(ctx, TRPI_HEAD_TIMERS + order, (uint32_t)delay_ms, &trpi_resize_type,
                       &payload, 1) != TRP_OK) {
        trp_fail(ctx, 0, "no memory for a timer");
    }
}

/* routing-head-E2 */
static void
end_if_alone(trp_ctx *ctx, const trpi_router *router)
{
    if (router->pool.routees_count == 0 && !router->resizes && router->pool.paths_left == 0 &&
        router->source.ops == NULL) {
        trp_stop(ctx, trp_self(ctx));
    }
}

/* routing-head-E1 */
static void
routee_watch(trp_ctx *ctx, trp_ref ref)
{
    if (trp_watch(ctx, ref) != TRP_OK) {
        trp_fail(ctx, 0, "no memory to watch a routee");
    }
}

/* ---- lookups --------------------------------------------------------------------------------- */

static trp_err
looked_up(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    trpi_router *router = trpi_router_self(ctx);
    uint32_t index = (uint32_t)(uintptr_t)arg;
    trp_actor_identity found;

    (void)state;
    if (err != TRP_OK || router->plan.paths.texts[index] == NULL) {
        return TRP_OK; /* the timer tries again */
    }
    memcpy(&found, trp_msg_payload(reply), sizeof found);
    if (trpi_router_has(router, found.ref) ||
        trpi_router_add(router, found.ref, false, NULL, NULL) == TRP_OK) {
        trpi_router_path_found(router, index);
        routee_watch(ctx, found.ref);
        return trpi_router_swap(router);
    }
    return TRP_OK;
}

static void
look_up(trp_ctx *ctx, trpi_router *router)
{
    if (router->pool.paths_left == 0) {
        return;
    }
    for (uint32_t i = 0; i < router->plan.paths.texts_count; i++) {
        const char *path = router->plan.paths.texts[i];

        if (path != NULL) {
            trp_err err =
                trp_resolve(ctx, path, TRPI_ROUTER_ANSWER_MS, looked_up, (void *)(uintptr_t)i);

            if (err != TRP_OK) { /* tried again, like one that is not there */
                trp_log(ctx, TRP_LOG_WARNING, "routee %s is not looked up: %s", path,
                        trp_strerror(err));
            }
        }
    }
    trpi_head_timer(ctx, TRPI_HEAD_LOOKUP, TRPI_ROUTER_LOOKUP_MS);
}

/* ---- life ------------------------------------------------------------------------------------ */

trp_err
trpi_router_head_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    trpi_router *router = trpi_router_self(ctx);

    (void)state;
    (void)args;
    for (uint32_t i = 0; i < router->pool.routees_count; i++) {
        routee_watch(ctx, router->pool.routees[i]->ref);
    }
    trpi_router_abandoned_check(ctx, router);
    look_up(ctx, router);
    if (router->source.ops != NULL) {
        router->source.ops->start(router->source.arg, ctx);
    }
    return TRP_OK;
}

void
trpi_router_head_stop(trp_ctx *ctx, void *state)
{
    const trpi_router *router = trpi_router_self(ctx);

    (void)state;
    if (router->source.ops != NULL) {
        router->source.ops->stop(router->source.arg);
    }
}

static void
source_lost(trp_ctx *ctx, const trpi_router *router, trp_ref routee)
{
    if (router->source.ops != NULL) {
        router->source.ops->routee_ended(router->source.arg, ctx, routee);
    }
}

/* routing-head-E3: the default would stop the children. */
trp_err
trpi_router_head_restart(trp_ctx *ctx, void *state, const trp_failure *why, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)why;
    (void)msg;
    return TRP_OK;
}

/* ---- orders ---------------------------------------------------------------------------------- */

static void
reply_routees(trp_ctx *ctx, const trpi_router *router)
{
    const trpi_routee_table *table = trpi_router_table(router);

    trp_reply(ctx, &trp_routees_type, table->refs, table->count * sizeof table->refs[0]);
}

static trp_err
routee_add(trp_ctx *ctx, trpi_router *router, const trp_msg *msg)
{
    trp_add_routee order;
    trp_err err;

    memcpy(&order, trp_msg_payload(msg), sizeof order);
    if (trpi_router_has(router, order.routee)) {
        return TRP_OK;
    }
    err = trpi_router_add(router, order.routee, false, NULL, NULL);
    if (err != TRP_OK) {
        trp_log(ctx, TRP_LOG_WARNING, "a routee was not added: %s", trp_strerror(err));
        return TRP_OK;
    }
    routee_watch(ctx, order.routee);
    return trpi_router_swap(router);
}

static void
remove_routee(trp_ctx *ctx, trpi_router *router, const trp_msg *msg)
{
    trp_remove_routee order;
    bool child = false;

    memcpy(&order, trp_msg_payload(msg), sizeof order);
    for (uint32_t i = 0; i < router->pool.routees_count; i++) {
        if (trp_ref_equal(router->pool.routees[i]->ref, order.routee)) {
            child = router->pool.routees[i]->child;
        }
    }
    if (!trpi_router_remove(router, order.routee)) {
        return;
    }
    trp_unwatch(ctx, order.routee);
    if (child) {
        trpi_router_abandon(ctx, router, order.routee, TRP_ROUTER_STOP_DELAY_MS);
    }
    source_lost(ctx, router, order.routee);
    end_if_alone(ctx, router);
}

static void
routees_adjust(trp_ctx *ctx, trpi_router *router, const trp_msg *msg)
{
    trp_adjust_pool_size order;

    memcpy(&order, trp_msg_payload(msg), sizeof order);
    if (router->source.ops != NULL) {
        trp_log(ctx, TRP_LOG_WARNING,
                "a cluster-aware router has as many routees as its settings "
                "say: not adjusted");
    } else if (order.change > 0) {
        (void)trpi_router_grow(ctx, router, (uint32_t)order.change); /* logged there */
    } else if (order.change < 0) {
        trpi_router_shrink(ctx, router, 0u - (uint32_t)order.change, TRP_ROUTER_STOP_DELAY_MS,
                           true);
        end_if_alone(ctx, router);
    }
}

static void
routees_resize(trp_ctx *ctx, trpi_router *router)
{
    uint32_t delay_ms = router->plan.resizes_own ? router->plan.own_resizer.stop_delay_ms
                                                 : router->plan.resizer.stop_delay_ms;
    int32_t change = trpi_router_capacity(ctx, router);

    if (change > 0) {
        (void)trpi_router_grow(ctx, router, (uint32_t)change); /* logged there */
    } else if (change < 0) {
        trpi_router_shrink(ctx, router, 0u - (uint32_t)change, delay_ms, false);
    }
    /* release, though no order is needed */
    atomic_store_explicit(&router->resizing, false, memory_order_release);
}

static void
order_obey(trp_ctx *ctx, trpi_router *router, const trp_msg *msg)
{
    const uint8_t *order = trp_msg_payload(msg);

    if (trp_msg_bytes(msg) == 0) {
        routees_resize(ctx, router);
    } else if (*order == TRPI_HEAD_ABANDONED) {
        trpi_router_abandoned_check(ctx, router);
    } else if (*order == TRPI_HEAD_LOOKUP) {
        look_up(ctx, router);
    } else if (router->source.ops != NULL) {
        router->source.ops->poked(router->source.arg, ctx);
    }
}

static void
routee_ended(trp_ctx *ctx, trpi_router *router, const trp_msg *msg)
{
    trp_terminated what;

    memcpy(&what, trp_msg_payload(msg), sizeof what);
    if (trpi_router_remove(router, what.ref)) {
        end_if_alone(ctx, router);
    }
    source_lost(ctx, router, what.ref);
}

trp_err
trpi_router_head_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trpi_router *router = trpi_router_self(ctx);

    (void)state;
    switch (trp_msg_type(msg)->number) {
    case TRPI_TYPE_TERMINATED:
        routee_ended(ctx, router, msg);
        break;
    case TRPI_TYPE_GET_ROUTEES:
        reply_routees(ctx, router);
        break;
    case TRPI_TYPE_ADD_ROUTEE:
        return routee_add(ctx, router, msg);
    case TRPI_TYPE_REMOVE_ROUTEE:
        remove_routee(ctx, router, msg);
        break;
    case TRPI_TYPE_ADJUST_POOL_SIZE:
        routees_adjust(ctx, router, msg);
        break;
    case TRPI_TYPE_RESIZE:
        order_obey(ctx, router, msg);
        break;
    default:
        if (router->logic->receive != NULL) {
            return router->logic->receive(ctx, router->logic_state, msg);
        }
        trp_unhandled_msg(ctx, msg);
        break;
    }
    return TRP_OK;
}
