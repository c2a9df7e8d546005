/* routing_load.c - the load of routees, and the default resizer.
 *
 * Why.     A mailbox of the default kind is not counted: that would cost every message. For a
 *          counted one (bounded, counted, ...) its count is the load; else a router counts the
 *          messages that it has sent to each routee and subtracts those that the routee has
 *          handled. Messages of other senders falsify the difference; it starts again from zero
 *          each time that the routee is seen with an empty mailbox.
 * Must hold.
 *   routing-load-A1  trp_resizer_capacity() is a function of its arguments: Akka's arithmetic, in
 *       doubles.
 * Tests.   tests/unit/pattern/resizer_test.c
 * Sources. ROUTE-9, -19, -22; Akka 2.2.5, akka.actor.deployment.default.resizer.
 */
#include <math.h>

#include <troupe/mailbox.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "pattern/routing.h"

void
trpi_routee_load(trp_ctx *ctx, trpi_routee *routee, trp_routee_load *ret_load)
{
    trp_mailbox_view view;
    trpi_look look;
    uint64_t sent, base;
    int64_t pending;

    trpi_actor_look(ctx, routee->ref, &look);
    *ret_load = (trp_routee_load){ .ref = routee->ref, .remote = !look.local };
    if (!look.local) {
        return;
    }
    if (!look.alive) {
        ret_load->suspended = 1; /* it has ended; its termination is on the way to us */
        return;
    }
    ret_load->suspended = look.suspended;
    ret_load->busy = look.busy;
    if (trp_mailbox_look(trp_ctx_system(ctx), routee->ref, &view) == TRP_OK && view.exact) {
        ret_load->pending = view.messages;
        return;
    }
    /* relaxed throughout: statistics, old values do no harm */
    sent = atomic_load_explicit(&routee->sent, memory_order_relaxed);
    base = atomic_load_explicit(&routee->base, memory_order_relaxed);
    pending = (int64_t)(sent - (look.handled - base));
    if (look.empty || pending < 0) {
        atomic_store_explicit(&routee->base, look.handled - sent, memory_order_relaxed);
        pending = 0;
    }
    ret_load->pending = pending > UINT32_MAX ? UINT32_MAX : (uint32_t)pending;
}

/* ---- resizing -------------------------------------------------------------------------------- */

bool
trpi_resizer_is_valid(const trp_resizer_options *options)
{
    return options->lower_bound >= 1 && options->upper_bound >= options->lower_bound &&
           options->upper_bound <= TRP_ROUTEES_MAX && options->rampup_rate >= 0.0 &&
           options->backoff_rate >= 0.0 && options->backoff_rate <= 1.0 &&
           options->backoff_threshold <= 1.0 && options->rampup_rate <= TRP_ROUTEES_MAX &&
           options->messages_per_resize >= 1;
}

/* routing-load-A1 */
int32_t
trp_resizer_capacity(const trp_resizer_options *options, uint32_t routees, uint32_t busy)
{
    static const trp_resizer_options defaults = TRP_RESIZER_OPTIONS_INIT;
    trp_resizer_options own;
    const trp_resizer_options *o = TRPI_SIZED_TAKE(options, &own, messages_per_resize) &&
                                           options != NULL && trpi_resizer_is_valid(options)
                                       ? options
                                       : &defaults;
    int64_t delta = 0, proposed;

    if (busy >= routees) {
        delta += (int64_t)ceil(o->rampup_rate * routees);
    }
    if (o->backoff_threshold > 0.0 && o->backoff_rate > 0.0 && routees > 0 &&
        (double)busy / routees < o->backoff_threshold) {
        delta += (int64_t)floor(-1.0 * o->backoff_rate * routees);
    }
    proposed = (int64_t)routees + delta;
    if (proposed < o->lower_bound) {
        delta += o->lower_bound - proposed;
    } else if (proposed > o->upper_bound) {
        delta -= proposed - o->upper_bound;
    }
    return (int32_t)delta;
}

static bool
is_pressed(const trp_routee_load *load, uint32_t threshold)
{
    if (load->remote) {
        return false;
    }
    if (threshold == 0) {
        return load->busy;
    }
    return threshold == 1 ? load->busy && load->pending > 0 : load->pending >= threshold;
}

int32_t
trpi_router_capacity(trp_ctx *ctx, const trpi_router *router)
{
    const trpi_router_plan *plan = &router->plan;
    trp_routee_load *loads = NULL;
    uint32_t busy = 0;
    int32_t capacity = 0;

    if (plan->resizes_own) {
        loads = trpi_alloc((router->pool.routees_count + 1u) * sizeof *loads);
        if (loads == NULL) {
            return 0;
        }
    }
    for (uint32_t i = 0; i < router->pool.routees_count; i++) {
        trp_routee_load load;

        trpi_routee_load(ctx, router->pool.routees[i], &load);
        if (loads != NULL) {
            loads[i] = load;
        } else if (is_pressed(&load, plan->resizer.pressure_threshold)) {
            busy++;
        }
    }
    capacity =
        plan->resizes_own
            ? plan->own_resizer.capacity(plan->own_resizer.arg, loads, router->pool.routees_count)
            : trp_resizer_capacity(&plan->resizer, router->pool.routees_count, busy);
    trpi_free(loads);
    return capacity;
}
