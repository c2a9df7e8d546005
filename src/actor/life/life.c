/* life.c - start, failure and end of an actor; the hooks that a turn calls.
 *
 * Why.     The run loop knows tokens and queues. This file defines the meaning of a start, a
 *          failure and a stop.
 * States.  STARTING --start--> RUNNING --stop--> STOPPING --last child ended--> FREE
 *          RUNNING + failed (suspended by itself) --restart--> RESTARTING --last dying child-->
 *          RUNNING
 *                                                 --resume--> RUNNING     --stop--> STOPPING
 * Must hold.
 *   actor-life-L1  post_stop runs at most once for each instance, after all children have ended.
 *       (actor_end)
 *   actor-life-L2  An end is published in this order: generation, watchers, parent. (actor_end)
 *   actor-life-L3  suspended counts this actor's own failure once and each failed ancestor once;
 *       user messages are handled at zero only. (fail, resume, restart)
 *   actor-life-L4  Hooks and receive run only while their instance exists (TRPI_MARK_STARTED), but
 *       for pre_start and post_restart, which make it.
 * Not here. Orders as they come in (orders.c), failures as values (failure.c), what a supervisor
 *          decides (supervise.c), the steps of a restart (restart.c).
 * Tests.   tests/unit/actor/life_test.c
 * Sources. LIFE-1..18; Akka 2.2.5, "Lifecycle", "What happens to the actor".
 */
#include "actor/life/life.h"
#include "actor/life/upgrade.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

static const trp_ref nobody = TRP_REF_NONE;

/* ---- hooks ----------------------------------------------------------------------------------- */

typedef struct hook_call {
    trpi_cell *cell;
    enum trpi_hook hook;
    const trp_failure *why;
    const trp_msg *msg;
} hook_call;

static trp_err
call_pre_start(trp_ctx *ctx, trpi_cell *cell)
{
    const trp_msg *args = cell->extra == NULL ? NULL : cell->extra->args;

    return cell->behaviour->pre_start == NULL ? TRP_OK
                                              : cell->behaviour->pre_start(ctx, cell->state, args);
}

static trp_err
call_pre_restart(trp_ctx *ctx, const hook_call *call)
{
    const trp_behaviour *behaviour = call->cell->behaviour;

    if (call->cell->extra != NULL && call->cell->extra->recovers) {
        if (behaviour->post_stop != NULL) { /* restart-R4 */
            behaviour->post_stop(ctx, call->cell->state);
        }
        return TRP_OK;
    }
    if (behaviour->pre_restart != NULL) {
        return behaviour->pre_restart(ctx, call->cell->state, call->why, call->msg);
    }
    for (trpi_cell *c = trpi_child_first(ctx, call->cell); c != NULL;
         c = trpi_child_after(ctx, c)) {
        if (trpi_child_lives(c)) {
            trp_unwatch(ctx, trpi_cell_ref(c)); /* WATCH-7 */
        }
    }
    trpi_children_stop(ctx, call->cell);
    if (behaviour->post_stop != NULL) {
        behaviour->post_stop(ctx, call->cell->state);
    }
    return TRP_OK;
}

static trp_err
call_hook(trp_ctx *ctx, void *arg)
{
    const hook_call *call = arg;
    trpi_cell *cell = call->cell;

    switch (call->hook) {
    case TRPI_HOOK_PRE_START:
        return call_pre_start(ctx, cell);
    case TRPI_HOOK_POST_STOP:
        if (cell->behaviour->post_stop != NULL) {
            cell->behaviour->post_stop(ctx, cell->state);
        }
        return TRP_OK;
    case TRPI_HOOK_PRE_RESTART:
        return call_pre_restart(ctx, call);
    case TRPI_HOOK_POST_RESTART:
        if (cell->behaviour->post_restart == NULL) {
            return call_pre_start(ctx, cell);
        }
        return cell->behaviour->post_restart(ctx, cell->state, call->why,
                                             cell->extra == NULL ? NULL : cell->extra->args);
    }
    return TRP_EINTERNAL;
}

trp_err
trpi_life_hook(trp_ctx *ctx, trpi_cell *cell, enum trpi_hook hook, const trp_failure *why,
               const trp_msg *msg)
{
    hook_call call = { cell, hook, why, msg };
    const trp_msg *before = ctx->msg;
    trp_err err;

    if ((hook == TRPI_HOOK_PRE_START && cell->behaviour->pre_start == NULL) ||
        (hook == TRPI_HOOK_POST_STOP && cell->behaviour->post_stop == NULL)) {
        return TRP_OK; /* most actors have no hooks */
    }
    memset(&ctx->failure, 0, sizeof ctx->failure);
    ctx->msg = msg;
    err = trpi_run_guarded(ctx, call_hook, &call);
    ctx->msg = before;
    if (err != TRP_OK && ctx->failure.err == TRP_OK) {
        trpi_failure_fill(&ctx->failure, trpi_cell_ref(cell), err, NULL);
    }
    return err;
}

trp_err
trpi_life_state_new(trpi_cell *cell)
{
    trpi_assert(cell->state == NULL);
    if (cell->behaviour->state_bytes > 0) {
        cell->state = trpi_alloc(cell->behaviour->state_bytes);
        if (cell->state == NULL) {
            return TRP_ENOMEM;
        }
    }
    return TRP_OK;
}

void
trpi_life_instance_end(trp_ctx *ctx, trpi_cell *cell)
{
    cell->marks &= (uint8_t)~TRPI_MARK_STARTED;
    if (cell->extra != NULL) {
        trpi_timers_drop(ctx, cell);
        trpi_asks_drop(ctx, cell);
        trpi_levels_drop(cell);
        trpi_stash_to_front(cell); /* BEH-10: stashed messages outlive a restart */
        trpi_memory_drop(ctx, cell);
        trpi_log_context_drop(cell);
    }
    trpi_free(cell->state);
    cell->state = NULL;
}

/* ---- start ----------------------------------------------------------------------------------- */

void
trpi_life_start(trp_ctx *ctx, trpi_cell *cell)
{
    trp_err err;

    trpi_assert(cell->life == TRPI_LIFE_STARTING);
    if (trpi_cell_is_child_proxy(cell)) {
        ctx->system->life_hooks->proxy_start(ctx, cell);
        return;
    }
    trpi_behaviour_renew(ctx->system, cell);
    cell->life = TRPI_LIFE_RUNNING;
    if (trpi_log_debugs(ctx->system, TRP_DEBUG_LIFECYCLE) && cell->parent != 0) {
        trpi_life_trace(ctx, cell, "created below",
                        trpi_cell_ref(trpi_cells_find(ctx->cells, cell->parent)));
    }
    err = trpi_life_state_new(cell);
    if (err == TRP_OK) {
        err = trpi_life_hook(ctx, cell, TRPI_HOOK_PRE_START, NULL, NULL);
    } else {
        trpi_failure_fill(&ctx->failure, ctx->self, err, NULL);
    }
    if (err == TRP_OK) {
        cell->marks |= TRPI_MARK_STARTED | TRPI_MARK_CREATED;
        if (trpi_trace_samples_any(ctx->system)) {
            trpi_sample_look(ctx, cell);
        }
        trpi_receive_mark(cell);
        trpi_life_trace(ctx, cell, "started", nobody);
        return;
    }
    ctx->failure.err = TRP_EINIT; /* SUP-15 */
    trpi_life_instance_end(ctx, cell);
    trpi_life_fail(ctx, cell, &ctx->failure, NULL, nobody, false);
}

/* ---- failure --------------------------------------------------------------------------------- */

/* Keep the failed message for pre_restart. Best effort: out of memory, it sees none. */
static void
keep_failed_msg(trpi_cell *cell, const trp_msg *msg)
{
    trpi_extra *extra;

    if (msg == NULL || cell->behaviour->pre_restart == NULL ||
        (extra = trpi_extra_get(cell)) == NULL) {
        return;
    }
    trpi_msg_drop(extra->failed_msg);
    extra->failed_msg = NULL;
    if (trp_msg_dup(msg, &extra->failed_msg) != TRP_OK) {
        extra->failed_msg = NULL;
    }
}

void
trpi_life_failure_clear(trpi_cell *cell)
{
    if (cell->extra != NULL) {
        trpi_msg_drop(cell->extra->failed_msg);
        cell->extra->failed_msg = NULL;
        cell->extra->perpetrator = nobody;
    }
}

void
trpi_life_fail(trp_ctx *ctx, trpi_cell *cell, const trp_failure *what, const trp_msg *msg,
               trp_ref perpetrator, bool skip_survivors)
{
    trp_failure mine = *what;
    trpi_cell *parent;

    if (cell->life == TRPI_LIFE_STOPPING || cell->life == TRPI_LIFE_FREE ||
        (cell->marks & TRPI_MARK_FAILED) != 0) {
        return; /* it is stopping, or has failed already */
    }
    mine.actor = trpi_cell_ref(cell);
    trpi_assert(cell->suspended < UINT8_MAX);
    cell->suspended++; /* actor-life-L3 */
    cell->marks |= TRPI_MARK_FAILED;
    keep_failed_msg(cell, msg);
    if (!trp_ref_is_none(perpetrator) && trpi_extra_get(cell) != NULL) {
        cell->extra->perpetrator = perpetrator; /* already suspended by its own failure */
    }
    for (trpi_cell *c = trpi_child_first(ctx, cell); c != NULL; c = trpi_child_after(ctx, c)) {
        trp_ref ref = trpi_cell_ref(c);
        bool survivor = skip_survivors && (c->next_sibling & TRPI_CHILD_SURVIVOR) != 0;

        if (trpi_child_lives(c) && !survivor && !trp_ref_equal(ref, perpetrator)) {
            trpi_sys_to(ctx, ref, TRPI_SYS_SUSPEND, 0, nobody, 0, NULL);
        }
    }
    if (cell->extra != NULL && cell->extra->deployed != NULL) {
        trpi_order order = { NULL, &mine };

        /* if the failure cannot be sent, the node is lost: deployed.c is notified of that, and
         * stops this actor */
        (void)trpi_remote_order(ctx->system, cell->extra->deployed->proxy.node, TRPI_SIGNAL_FAILED,
                                cell->extra->deployed->proxy, mine.actor, &order);
        return;
    }
    parent = trpi_cells_find(ctx->cells, cell->parent);
    if (cell->parent == 0 || parent == NULL) {
        trpi_log_direct(ctx->system, TRP_LOG_ERROR, "life",
                        "the root guardian failed: %s; the system stops", mine.reason);
        trpi_root_stop(ctx, cell);
        return;
    }
    trpi_sys_to(ctx, trpi_cell_ref(parent), TRPI_SYS_FAILED, 0, mine.actor, 0,
                trpi_failure_new(&mine));
}

void
trpi_life_failed(trp_ctx *ctx, trpi_cell *cell, const trp_failure *failure, trp_msg *msg)
{
    trpi_life_fail(ctx, cell, failure, msg, nobody, false);
}

/* ---- stop ------------------------------------------------------------------------------------ */

/* Free the parts of the side block; the watchers are handed to the caller. */
static trpi_ref_map
extra_end(trp_ctx *ctx, trpi_cell *cell)
{
    trpi_ref_map watchers = { 0 };
    trpi_extra *extra = cell->extra;

    if (extra == NULL) {
        return watchers;
    }
    trpi_stash_drain(ctx, cell);
    watchers = extra->watchers;
    trpi_supervise_clear(ctx->system, extra);
    trpi_parked_drop(extra);
    trpi_failure_unref(extra->why);
    trpi_msg_drop(extra->failed_msg);
    trpi_msg_drop(extra->args);
    ctx->system->life_hooks->proxy_free(extra->proxy);
    trpi_free(extra->deployed);
    trpi_free(extra);
    cell->extra = NULL;
    return watchers;
}

static void
actor_end(trp_ctx *ctx, trpi_cell *cell)
{
    trp_ref self = trpi_cell_ref(cell);
    bool root = cell->parent == 0;
    bool subscribed = cell->subscribed != 0;
    trpi_cell *parent = root ? NULL : trpi_cells_find(ctx->cells, cell->parent);
    trp_system *system = ctx->system;
    trp_ref parent_ref = nobody;
    void *terminated = NULL;
    trpi_ref_map watchers;

    trpi_assert(cell->first_child == 0);
    if ((cell->marks & TRPI_MARK_STARTED) != 0 &&
        trpi_life_hook(ctx, cell, TRPI_HOOK_POST_STOP, NULL, NULL) != TRP_OK) {
        trpi_log_about(ctx, self, TRP_LOG_ERROR, TRP_OK, "post_stop failed: %s; the stop goes on",
                       ctx->failure.reason);
    }
    trpi_life_trace(ctx, cell, "stopped", nobody);
    trpi_life_instance_end(ctx, cell);
    trpi_entity_ending(ctx, self, (cell->marks & TRPI_MARK_FAILED) != 0); /* entity-E1 */
    trpi_watch_end_all(ctx, cell);
    watchers = extra_end(ctx, cell);
    trpi_obituary_add(ctx, cell);
    cell->marks &= TRPI_MARK_ORPHAN;
    trpi_run_ended(ctx, cell); /* actor-life-L2: from here on messages are dead letters */
    if (subscribed) {
        trpi_event_subscriber_ended(system, self);
    }
    if (parent != NULL) {
        parent_ref = trpi_cell_ref(parent);
        /* A parent that watches gets Terminated with the notice itself, so that the name is free
         * when it sees the end (SYS-18). Messages of the child to it are pushed before. */
        (void)trpi_ref_map_remove(&watchers, parent_ref, &terminated);
        trpi_chains_flush(ctx);
    }
    trpi_watchers_notify(ctx, &watchers);
    if (parent != NULL) {
        trpi_sys_to(ctx, parent_ref, TRPI_SYS_CHILD_ENDED, 0, self, 0, terminated);
    } else {
        trpi_root_ended(system);
    }
}

/* Close the guardian to spawns from outside; true: those that found it open have arrived. */
static bool
guardian_close(trp_system *system, const trpi_cell *cell)
{
    trpi_guardian *guardian = trpi_guardian_of(system, cell);

    return guardian == NULL || trpi_guardian_close(guardian);
}

void
trpi_life_stop(trp_ctx *ctx, trpi_cell *cell)
{
    if (cell->life == TRPI_LIFE_STOPPING || cell->life == TRPI_LIFE_FREE) {
        return;
    }
    cell->life = TRPI_LIFE_STOPPING;
    if (cell->extra != NULL) {
        trpi_timers_drop(ctx, cell);
    }
    trpi_children_stop(ctx, cell);
    trpi_life_check(ctx, cell);
}

void
trpi_life_check(trp_ctx *ctx, trpi_cell *cell)
{
    if (cell->life == TRPI_LIFE_STOPPING) {
        if (!guardian_close(ctx->system, cell)) {
            return;
        }
        if (cell->first_child == 0) {
            actor_end(ctx, cell);
        } else if (trpi_children_are_loggers(ctx->system, cell)) {
            trpi_children_spare_loggers(ctx, cell);
        }
    } else if (cell->life == TRPI_LIFE_RESTARTING && cell->dying == 0) {
        trpi_life_restart_finish(ctx, cell);
    }
}

/* ---- public ---------------------------------------------------------------------------------- */

trp_ref
trp_parent(const trp_ctx *ctx)
{
    const trpi_extra *extra = ctx->cell->extra;
    trpi_cell *parent =
        ctx->cell->parent == 0 ? NULL : trpi_cells_find(ctx->cells, ctx->cell->parent);

    if (extra != NULL && extra->deployed != NULL) {
        return extra->deployed->supervisor; /* SYS-15 */
    }
    return parent == NULL ? nobody : trpi_cell_ref(parent);
}
