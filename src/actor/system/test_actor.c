/* test_actor.c - read the state of an actor, and call its behaviour, from a test.
 *
 * Why.     A test of one behaviour wants its state, and its failure at the call, not at a
 *          supervisor.
 * Must hold.
 *   test-actor-A1  Only actors that no other thread runs by itself: those of the calling-thread
 *       dispatcher, and all of a driven world. The token is held during the call, so a second
 *       thread that tells the actor meanwhile only queues.
 *   test-actor-A2  System messages of the actor to itself are handled after the call, in order, as
 *       are messages that it unstashes.
 * Tests.   tests/unit/actor/test_actor_test.c, tests/unit/pattern/testkit_test.c
 * Sources. TEST-2.
 */
#include <string.h>

#include "actor/system/open.h"
#include "actor/kernel/schedule.h"
#include "actor/life/life.h"
#include "actor/kernel/mailbox.h"
#include "base/assert.h"
#include "base/payload.h"

/* The cell of such an actor (test-actor-A1). NULL: it is another actor, or has ended. */
static trpi_cell *
test_cell(trp_ctx *ctx, trp_ref ref)
{
    trpi_cell *cell = trpi_cell_peek(ctx, ref);

    if (cell == NULL ||
        atomic_load_explicit(&cell->kind, memory_order_relaxed) != TRPI_KIND_ACTOR ||
        (cell->task.dispatch != TRPI_DISPATCH_HERE && !trpi_sched_is_driven(ctx->system->sched))) {
        return NULL;
    }
    return cell;
}

void *
trpi_actor_state(trp_system *system, trp_ref ref)
{
    trp_ctx *ctx = trpi_enter(system);
    const trpi_cell *cell = test_cell(ctx, ref);
    void *state = cell != NULL ? cell->state : NULL;

    trpi_leave(ctx);
    return state;
}

/* With the token. */
static trp_err
receive_held(trp_ctx *ctx, trpi_cell *cell, trp_msg *msg, trp_failure *ret_failure)
{
    const trp_ref before = ctx->self;
    trpi_sysmsg none = { 0 };
    trp_err err;

    if (cell->generation_run != msg->priv_to_generation || cell->life != TRPI_LIFE_RUNNING ||
        cell->suspended != 0) {
        return TRP_ESTATE;
    }
    trpi_assert(ctx->turn.sys_rest == NULL);
    ctx->cell = cell;
    ctx->self = trpi_cell_ref(cell);
    ctx->msg = msg;
    /* test-actor-A2: there is no turn that would read sys_rest, so all goes to sys_head */
    ctx->turn.sys_rest = &none;
    cell->processed++;
    err = trpi_run_direct(ctx, cell, msg);
    if (err != TRP_OK && ret_failure != NULL) {
        *ret_failure = ctx->failure;
    }
    ctx->turn.sys_rest = NULL;
    ctx->turn.sys_pending = false;
    ctx->cell = NULL;
    ctx->msg = NULL;
    ctx->self = before;
    return err;
}

trp_err
trpi_actor_receive(trp_system *system, trp_ref ref, trp_ref sender, const trp_type *type,
                   const void *payload, size_t bytes, trp_failure *ret_failure)
{
    trp_ctx *ctx;
    trpi_cell *cell;
    trp_msg *msg;
    trp_err err;

    if (type == NULL || type->number < TRPI_TYPE_AUTO_END) {
        return TRP_EINVAL; /* not registered, or handled by the runtime */
    }
    if (trpi_in_behaviour(system)) {
        return TRP_ESTATE;
    }
    bytes = (type->flags & TRP_TYPE_VARIABLE) == 0 ? type->bytes : bytes;
    if (!trpi_payload_fits(type, bytes)) {
        return TRP_EINVAL;
    }
    ctx = trpi_enter(system);
    cell = test_cell(ctx, ref);
    msg = cell != NULL ? trpi_msg_make(ctx->cache, ref, sender, type, payload, bytes) : NULL;
    if (msg == NULL) {
        err = cell == NULL ? TRP_ENOENT : TRP_ENOMEM;
    } else {
        err = TRP_ESTATE;
        if (trpi_mailbox_claim(cell)) {
            err = receive_held(ctx, cell, msg, ret_failure);
            /* relaxed: the token is held; other threads that send a system message schedule the
             * cell (mailbox-M3) */
            if (atomic_load_explicit(&cell->attention, memory_order_relaxed) != 0) {
                trpi_schedule(ctx, cell); /* test-actor-A2 */
            } else {
                trpi_run_release(ctx, cell);
            }
        }
        trpi_msg_free(ctx->cache, msg);
    }
    trpi_leave(ctx);
    return err;
}
