/* service.c - services: cells for upper rooms that need a ref, but no actor (see life/open.h).
 *
 * Why.     Some code waits for answers on behalf of an actor (a router that asked all its routees
 *          and wants the first answer). That needs a ref, a mailbox and an alarm; not a parent, a
 *          name or a life cycle. So a service costs one cell and is made on any thread.
 * Must hold.
 *   service-V1  An op is called while the service lives, by one thread at a time; release once,
 *       last.
 *   service-V2  An alarm that comes late meets another generation.
 * Limits.  actors-max counts services too (TRP_ELIMIT).
 * Tests.   tests/unit/pattern/gather_test.c
 */
#include "actor/life/life.h"
#include "base/alloc.h"
#include "base/assert.h"

static const trp_ref nobody = TRP_REF_NONE;

typedef struct service {
    const trpi_service_ops *ops;
    void *arg;
    uint64_t timer_id; /* 0: none */
} service;

static void
alarm_rings(void *arg, uint64_t slot, uint64_t generation)
{
    trp_ctx *ctx = trpi_enter(arg);

    trpi_sys_tell(ctx, (uint32_t)slot, (uint32_t)generation, TRPI_SYS_ALARM, 0, nobody, 0, NULL);
    trpi_leave(ctx);
}

trp_err
trpi_alarm_add(trp_system *system, trp_ref ref, uint32_t delay_ms, uint64_t *ret_id)
{
    return trpi_timer_add(system->sched, delay_ms, alarm_rings, system, ref.slot, ref.generation,
                          ret_id);
}

static trp_err
alarm_set(trp_ctx *ctx, service *s, trp_ref self, uint32_t delay_ms)
{
    s->timer_id = 0;
    return delay_ms == 0 ? TRP_OK : trpi_alarm_add(ctx->system, self, delay_ms, &s->timer_id);
}

static void
service_end(trp_ctx *ctx, trpi_cell *cell)
{
    service *s = cell->state;

    cell->state = NULL;
    if (s->timer_id != 0) {
        (void)trpi_timer_cancel(ctx->system->sched, s->timer_id); /* service-V2 */
    }
    s->ops->release(s->arg);
    trpi_free(s);
    trpi_run_ended(ctx, cell);
}

/* No answer will come from the actor that was asked. */
static void
service_ask_failed(trp_ctx *ctx, trpi_cell *cell, trp_ref asked, trp_err err)
{
    service *s = cell->state;

    if (s->ops->dead != NULL && !s->ops->dead(s->arg, ctx, asked, err)) {
        service_end(ctx, cell);
    }
}

static void
service_deliver(trp_ctx *ctx, trpi_cell *cell, trp_msg *msg)
{
    service *s = cell->state;

    if (s == NULL) {
        return;
    }
    if (msg->priv_type == TRPI_TYPE_ASK_UNHANDLED) { /* from another node */
        service_ask_failed(ctx, cell, trpi_msg_sender(msg), TRP_EUNHANDLED);
    } else {
        trpi_handling handling = trpi_handling_begin(ctx, trpi_msg_trailer(msg));
        bool goes_on = s->ops->deliver(s->arg, ctx, ctx->self, msg); /* it does not jump */

        trpi_handling_end(ctx, &handling, msg, TRP_OK);
        if (!goes_on) {
            service_end(ctx, cell);
        }
    }
}

static void
service_alarm(trp_ctx *ctx, trpi_cell *cell, service *s)
{
    uint32_t again_ms = 0;

    s->timer_id = 0;
    if (!s->ops->alarm(s->arg, ctx, ctx->self, &again_ms) ||
        alarm_set(ctx, s, ctx->self, again_ms) != TRP_OK) { /* without alarms it might never end */
        service_end(ctx, cell);
    }
}

static bool
service_order(trp_ctx *ctx, trpi_cell *cell, trpi_sysmsg *sysmsg)
{
    service *s = cell->state;

    switch (sysmsg->kind) {
    case TRPI_SYS_ALARM:
        service_alarm(ctx, cell, s);
        break;
    case TRPI_SYS_PROMISE_DEAD:
        service_ask_failed(ctx, cell, sysmsg->from, (trp_err)sysmsg->number);
        break;
    case TRPI_SYS_STOP:
        service_end(ctx, cell);
        break;
    case TRPI_SYS_WATCH: /* too short-lived to be worth a list */
        trpi_watch_answer(ctx, sysmsg->from, sysmsg->pointer, true);
        break;
    default:
        return false;
    }
    return true;
}

static void
service_drop(trpi_cell *cell)
{
    service *s = cell->state;

    s->ops->release(s->arg);
    trpi_free(s);
    cell->state = NULL;
}

static const trpi_kind_ops service_kind = { "service", service_deliver, service_order, NULL,
                                            service_drop };

trp_err
trpi_service_new(trp_ctx *ctx, const trpi_service_ops *ops, void *arg, uint32_t alarm_ms,
                 trp_ref *ret_ref)
{
    service *s = trpi_alloc(sizeof *s);
    trpi_cell *cell = NULL;
    trp_err err = s == NULL ? TRP_ENOMEM : trpi_slot_acquire(ctx, &cell);
    trp_ref ref;

    if (err != TRP_OK) {
        trpi_free(s);
        return err;
    }
    ref = trpi_slot_ref(cell);
    *s = (service){ ops, arg, 0 };
    err = alarm_set(ctx, s, ref, alarm_ms);
    if (err != TRP_OK) {
        trpi_free(s);
        trpi_slot_abandon(ctx, cell);
        return err;
    }
    cell->state = s;
    trpi_cell_ops_set(cell, &service_kind);
    cell->marks = TRPI_MARK_ORPHAN;
    *ret_ref = ref;
    trpi_slot_publish_idle(ctx, cell, TRPI_KIND_SERVICE);
    return TRP_OK;
}

trp_err
trpi_system_service_new(trp_system *system, const trpi_service_ops *ops, void *arg,
                        uint32_t alarm_ms, trp_ref *ret_ref)
{
    trp_ctx *ctx;
    trp_err err;

    if (!trpi_system_is_valid(system)) {
        return TRP_EINVAL;
    }
    ctx = trpi_enter(system);
    err = trpi_service_new(ctx, ops, arg, alarm_ms, ret_ref);
    trpi_leave(ctx);
    return err;
}
