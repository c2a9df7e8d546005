/* orders.c - system messages, and the user messages that the runtime handles before the behaviour.
 *
 * Shape.   system message -> parked, during a restart or the actor's own failure
 *                         -> life, watch, timers, selection, inspection
 *          user message below TRPI_TYPE_AUTO_END -> Terminated, PoisonPill, Kill, Identify, ...
 * Must hold.
 *   orders-O1  A parked order is handled once the wait is over, in the order of arrival. (unpark)
 *   orders-O2  The handler of a system message owns the object of its pointer; a stale or dropped
 *       message releases it.
 * Tests.   tests/unit/actor/life_test.c, tests/unit/actor/restart_test.c
 * Sources. MSG-8, MSG-17; Akka's StashWhenFailed and StashWhenWaitingForChildren.
 */
#include "actor/life/life.h"
#include "actor/life/upgrade.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

/* of one actor, by a peer; the rest of the counter is for local suspensions */
enum { FAR_SUSPENSIONS_MAX = 128 };

static const trp_ref nobody = TRP_REF_NONE;

/* ---- system messages ------------------------------------------------------------------------- */

/* Takes terminated. */
static void
child_ended(trp_ctx *ctx, trpi_cell *cell, trp_ref child, trp_msg *terminated)
{
    trpi_cell *ended = trpi_cells_find(ctx->cells, child.slot);

    trpi_assert(ended != NULL && trpi_cell_parent(ended) == trpi_cell_slot(cell));
    trpi_child_unlink(ctx, cell, ended);
    trpi_supervise_forget(ctx, cell, child);
    if (terminated != NULL) {
        trpi_watch_answer(ctx, trpi_cell_ref(cell), terminated, true);
    }
    if (trpi_guardian_is_root(cell)) {
        trpi_root_child_ended(ctx, cell, child);
    } else if (cell->behaviour == ctx->system->life_hooks->remote_guardian) {
        ctx->system->life_hooks->deployed_ended(ctx, cell, child);
    }
    trpi_life_check(ctx, cell);
}

/* A child that was spawned from outside becomes one of the guardian's. */
static void
child_supervise(trp_ctx *ctx, trpi_cell *cell, trp_ref child)
{
    trpi_guardian *guardian = trpi_guardian_of(ctx->system, cell);
    trpi_cell *fresh = trpi_cells_find(ctx->cells, child.slot);

    trpi_assert(guardian != NULL && fresh != NULL);
    pthread_mutex_lock(&guardian->lock);
    trpi_guardian_arrived(guardian);
    pthread_mutex_unlock(&guardian->lock);
    trpi_child_link(ctx, cell, fresh);
    for (unsigned i = 0; i < cell->suspended; i++) {
        trpi_sys_to(ctx, child, TRPI_SYS_SUSPEND, 0, nobody, 0, NULL);
    }
    if (cell->life == TRPI_LIFE_STOPPING) {
        trpi_child_stop(ctx, cell, fresh);
        trpi_life_check(ctx, cell);
    }
}

static void
actor_suspend(trp_ctx *ctx, trpi_cell *cell)
{
    trpi_assert(cell->suspended < UINT8_MAX);
    cell->suspended++;
    trpi_children_tell(ctx, cell, TRPI_SYS_SUSPEND, nobody);
}

/* Must this wait for the end of the restart, or of the actor's own failure? (Akka: StashWhenFailed,
 * StashWhenWaitingForChildren.) */
static bool
must_park(const trpi_cell *cell, uint16_t kind)
{
    bool waits = cell->life == TRPI_LIFE_RESTARTING;

    switch (kind) {
    case TRPI_SYS_FAILED:
        return waits || (cell->marks & TRPI_MARK_FAILED) != 0;
    case TRPI_SYS_SUSPEND:
    case TRPI_SYS_RESUME:
    case TRPI_SYS_RESTART:
        return waits;
    default:
        return false;
    }
}

static bool
sysmsg_park(trpi_cell *cell, const trpi_sysmsg *sysmsg)
{
    trpi_extra *extra = trpi_extra_get(cell);
    trpi_parked *parked = extra == NULL ? NULL : trpi_alloc(sizeof *parked);

    if (parked == NULL) {
        return false;
    }
    parked->kind = sysmsg->kind;
    parked->flag = sysmsg->flag;
    parked->from = sysmsg->from;
    parked->number = sysmsg->number;
    parked->pointer = sysmsg->pointer;
    *extra->parked_end = parked;
    extra->parked_end = &parked->next;
    return true;
}

/* Release the system messages that waited for the end of a restart. */
void
trpi_parked_drop(trpi_extra *extra)
{
    trpi_parked *next;

    for (trpi_parked *p = extra->parked; p != NULL; p = next) {
        next = p->next;
        if (p->kind == TRPI_SYS_FAILED || p->kind == TRPI_SYS_RESTART) {
            trpi_failure_unref(p->pointer);
        }
        trpi_free(p);
    }
    extra->parked = NULL;
    extra->parked_end = &extra->parked;
}

void
trpi_life_unpark(trp_ctx *ctx, trpi_cell *cell)
{
    trpi_parked *parked = cell->extra == NULL ? NULL : cell->extra->parked;
    trpi_parked *next;

    if (parked == NULL) {
        return;
    }
    cell->extra->parked = NULL;
    cell->extra->parked_end = &cell->extra->parked;
    for (; parked != NULL; parked = next) {
        trpi_sysmsg again = {
            NULL, 0, parked->kind, parked->flag, parked->from, parked->number, parked->pointer
        };

        next = parked->next;
        trpi_free(parked);
        trpi_life_system(ctx, cell, &again); /* may park it again */
    }
}

/* Handle a system message about the life of the cell. false: it is of another kind. */
static bool
system_life(trp_ctx *ctx, trpi_cell *cell, const trpi_sysmsg *sysmsg)
{
    switch (sysmsg->kind) {
    case TRPI_SYS_STOP:
        if (trpi_guardian_is_root(cell)) {
            trpi_root_stop(ctx, cell);
        } else {
            trpi_life_stop(ctx, cell);
        }
        return true;
    case TRPI_SYS_SUSPEND:
        actor_suspend(ctx, cell);
        return true;
    case TRPI_SYS_RESUME:
        trpi_life_resume(ctx, cell, sysmsg->flag != 0);
        return true;
    case TRPI_SYS_RESTART:
        trpi_life_restart(ctx, cell, sysmsg->flag != 0, sysmsg->pointer);
        return true;
    case TRPI_SYS_SUPERVISE:
        child_supervise(ctx, cell, sysmsg->from);
        return true;
    case TRPI_SYS_FAILED:
        trpi_supervise_failed(ctx, cell, sysmsg->from, sysmsg->pointer);
        return true;
    case TRPI_SYS_CHILD_ENDED:
        child_ended(ctx, cell, sysmsg->from, sysmsg->pointer);
        return true;
    default:
        return false;
    }
}

/* Is it an order of another node that is not the supervisor's, or one suspension too many? (A peer
 * is not trusted to count.) Or a restart of an actor that has not started? */
static bool
is_improper(const trpi_cell *cell, const trpi_sysmsg *sysmsg)
{
    const trpi_deployed *deployed = cell->extra == NULL ? NULL : cell->extra->deployed;

    if (cell->life == TRPI_LIFE_STARTING && sysmsg->kind == TRPI_SYS_RESTART) {
        return true; /* guard-U3: its start waits, and there is nothing to restart */
    }
    if (deployed == NULL || sysmsg->from.node <= TRPI_NODE_SELF) {
        return false;
    }
    switch (sysmsg->kind) {
    case TRPI_SYS_SUSPEND:
    case TRPI_SYS_RESUME:
    case TRPI_SYS_RESTART:
    case TRPI_SYS_ACTIVE:
        return sysmsg->from.node != deployed->proxy.node ||
               (sysmsg->kind == TRPI_SYS_SUSPEND && cell->suspended >= FAR_SUSPENSIONS_MAX);
    default:
        return false;
    }
}

void
trpi_life_system(trp_ctx *ctx, trpi_cell *cell, trpi_sysmsg *sysmsg)
{
    if (trpi_cell_is_child_proxy(cell) && ctx->system->life_hooks->proxy_order(ctx, cell, sysmsg)) {
        return;
    }
    if (is_improper(cell, sysmsg)) {
        trpi_life_system_drop(ctx->system, sysmsg);
        return;
    }
    if (must_park(cell, sysmsg->kind) && sysmsg_park(cell, sysmsg)) {
        return;
    }
    if (system_life(ctx, cell, sysmsg)) {
        return;
    }
    switch (sysmsg->kind) {
    case TRPI_SYS_WATCH:
        trpi_watch_add(ctx, cell, sysmsg->from, sysmsg->pointer);
        break;
    case TRPI_SYS_UNWATCH:
        trpi_watcher_remove(ctx, cell, sysmsg->from);
        break;
    case TRPI_SYS_UNWATCH_NODE:
        trpi_watch_remove_node(ctx, cell, (uint32_t)sysmsg->number);
        break;
    case TRPI_SYS_IDLE:
        trpi_receive_timeout_check(ctx, cell, sysmsg->number);
        break;
    case TRPI_SYS_SELECT:
        trpi_select_step(ctx, cell, sysmsg->pointer, sysmsg->number);
        break;
    case TRPI_SYS_INSPECT:
        trpi_inspect_answer(ctx, cell, sysmsg->pointer, sysmsg->number);
        break;
    case TRPI_SYS_ERRAND:
        trpi_errand_run(cell, sysmsg->pointer);
        break;
    case TRPI_SYS_AHEAD:
        trpi_ahead_put(ctx, cell, sysmsg->pointer);
        break;
    case TRPI_SYS_UPGRADE:
        trpi_upgrade_order(ctx, cell, sysmsg->pointer, sysmsg->number);
        break;
    case TRPI_SYS_ACTIVE:
        trpi_filter_active_set(cell, sysmsg->flag != 0);
        break;
    case TRPI_SYS_SAMPLE:
        trpi_sample_set(cell, (uint32_t)sysmsg->number);
        break;
    case TRPI_SYS_DEPLOY:
        ctx->system->life_hooks->deployed_make(ctx, cell, sysmsg->from, sysmsg->pointer);
        break;
    case TRPI_SYS_REFUSED:
    case TRPI_SYS_FAR_FAILED:
        /* not from its own actor: this cell is no child proxy */
        trpi_failure_unref(sysmsg->pointer);
        break;
    default:
        break; /* meant for a promise that had this slot before: stale */
    }
}

void
trpi_life_system_stale(trp_ctx *ctx, trpi_cell *cell, uint32_t slot, trpi_sysmsg *sysmsg)
{
    (void)cell;
    switch (sysmsg->kind) {
    case TRPI_SYS_RESTART:
    case TRPI_SYS_FAILED:
    case TRPI_SYS_REFUSED:
    case TRPI_SYS_FAR_FAILED:
        trpi_failure_unref(sysmsg->pointer);
        break;
    case TRPI_SYS_DEPLOY:
        ctx->system->life_hooks->deployed_drop(sysmsg->pointer);
        break;
    case TRPI_SYS_WATCH:
        trpi_watch_answer(ctx, sysmsg->from, sysmsg->pointer, false);
        break;
    case TRPI_SYS_CHILD_ENDED:
        trpi_msg_drop(sysmsg->pointer);
        break;
    case TRPI_SYS_SELECT:
        trpi_select_lost(ctx, sysmsg->pointer, sysmsg->number);
        break;
    case TRPI_SYS_INSPECT:
        trpi_inspect_gone(ctx, sysmsg->pointer, sysmsg->number);
        break;
    case TRPI_SYS_ERRAND:
        trpi_errand_gone(sysmsg->pointer);
        break;
    case TRPI_SYS_UPGRADE:
        trpi_upgrade_gone(sysmsg->pointer, sysmsg->number);
        break;
    case TRPI_SYS_AHEAD:
        trpi_ahead_lost(ctx->system, (trp_ref){ TRPI_NODE_SELF, slot, sysmsg->to_generation, 0 },
                        sysmsg->pointer);
        break;
    default:
        break; /* a second stop, a late timer: nothing to do (LIFE-17) */
    }
}

void
trpi_life_system_drop(trp_system *system, trpi_sysmsg *sysmsg)
{
    switch (sysmsg->kind) {
    case TRPI_SYS_RESTART:
    case TRPI_SYS_FAILED:
    case TRPI_SYS_REFUSED:
    case TRPI_SYS_FAR_FAILED:
        trpi_failure_unref(sysmsg->pointer);
        break;
    case TRPI_SYS_DEPLOY:
        system->life_hooks->deployed_drop(sysmsg->pointer);
        break;
    case TRPI_SYS_WATCH:
    case TRPI_SYS_CHILD_ENDED:
    case TRPI_SYS_AHEAD:
        trpi_msg_drop(sysmsg->pointer);
        break;
    case TRPI_SYS_SELECT:
        trpi_select_drop(sysmsg->pointer);
        break;
    case TRPI_SYS_INSPECT:
        trpi_inspect_gone(NULL, sysmsg->pointer, sysmsg->number);
        break;
    case TRPI_SYS_ERRAND:
        trpi_errand_gone(sysmsg->pointer);
        break;
    case TRPI_SYS_UPGRADE:
        trpi_upgrade_gone(sysmsg->pointer, sysmsg->number);
        break;
    default:
        break;
    }
}

/* ---- messages that the runtime handles ------------------------------------------------------- */

static void
identify_answer(trp_ctx *ctx, trpi_cell *cell, const trp_msg *msg)
{
    trp_identify question = { 0 };
    trp_actor_identity answer = { 0, trpi_cell_ref(cell) };

    if (trp_msg_bytes(msg) == sizeof question) {
        memcpy(&question, trp_msg_payload(msg), sizeof question);
    }
    answer.id = question.id;
    trpi_tell(ctx, trpi_msg_sender(msg), answer.ref, &trp_actor_identity_type, &answer,
              sizeof answer);
}

void
trpi_life_auto(trp_ctx *ctx, trpi_cell *cell, trp_msg *msg)
{
    const trp_msg *reply = NULL;
    trp_failure what;
    trp_err err;

    if ((msg->priv_from_node_flags & TRPI_MSG_ADMITTED) != 0) {
        /* the place in this mailbox does not count for a forward */
        msg->priv_from_node_flags &= ~TRPI_MSG_ADMITTED;
        trpi_run_receive(ctx, cell, msg);
        return;
    }
    if (trpi_log_debugs(ctx->system, TRP_DEBUG_AUTORECEIVE)) {
        trpi_log_auto(ctx, cell, msg);
    }
    if (trpi_cell_is_child_proxy(cell) &&
        ctx->system->life_hooks->proxy_automatic(ctx, cell, msg)) {
        return;
    }
    switch (msg->priv_type) {
    case TRPI_TYPE_TERMINATED:
        if (trpi_watch_admit(cell, msg)) {
            trpi_run_receive(ctx, cell, msg);
        }
        break;
    case TRPI_TYPE_POISON_PILL:
        trp_stop(ctx, trpi_cell_ref(cell));
        break;
    case TRPI_TYPE_KILL:
        trpi_failure_fill(&what, trpi_cell_ref(cell), TRP_EKILLED, "Kill");
        trpi_life_fail(ctx, cell, &what, msg, nobody, false);
        break;
    case TRPI_TYPE_IDENTIFY:
        identify_answer(ctx, cell, msg);
        break;
    case TRPI_TYPE_RECEIVE_TIMEOUT:
        trpi_receive_timeout_deliver(ctx, cell, msg);
        break;
    case TRPI_TYPE_TIMER:
        err = trpi_timer_tick(ctx, cell, msg);
        if (err != TRP_OK) {
            trpi_failure_fill(&what, ctx->self, err, "a repeating timer cannot go on");
            trpi_life_fail(ctx, cell, &what, NULL, nobody, false);
        }
        break;
    case TRPI_TYPE_CONTINUE:
        if (trpi_ask_continue(ctx, cell, msg, &reply) != TRP_OK) {
            trpi_life_fail(ctx, cell, &ctx->failure, reply, nobody, false);
        }
        break;
    case TRPI_TYPE_WITHDRAWN:
        cell->processed--; /* actor-pending-P3 */
        break;
    case TRPI_TYPE_MARK:
        cell->processed--; /* a mark is no user message */
        trpi_mark_reached(msg);
        break;
    default:
        break;
    }
}
