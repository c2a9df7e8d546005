/* life.c - birth, failure and end of an actor; what the run loop asks of the semantic half.
 *
 * Why.     The run loop knows tokens and queues. What a stop, a failure or an order means is here.
 * States.  STARTING --start--> RUNNING --stop--> STOPPING --last child ended--> FREE
 *          RUNNING + failed (suspended by itself) --restart--> RESTARTING --last dying child-->
 *          RUNNING
 *                                                 --resume--> RUNNING     --stop--> STOPPING
 * Must hold.
 *   L1  post_stop runs at most once for each instance, after all children have ended.   (end)
 *   L2  The end is told in this order: generation, watchers, parent.                    (end)
 *   L3  suspended counts this actor's own failure once and each failed ancestor once; user messages
 *       are handled at zero only.                                           (fail, resume, restart)
 *   L4  Hooks and receive run only while their instance exists (TRPI_MARK_STARTED), but for
 *       pre_start and post_restart, which make it.
 * Not here. What a supervisor decides (supervise.c), the steps of a restart (restart.c).
 * Tests.   tests/unit/actor/life_test.c
 * Sources. LIFE-1..18; Akka 2.2.5, "Lifecycle", "What happens to the actor".
 */
#include "actor/life.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

static const trp_ref nobody = TRP_REF_NONE;

/* ---- failures as values ---------------------------------------------------------------------- */

static trpi_failure no_memory = { 0, { TRP_ENOMEM, 0, NULL, 0, "out of memory", TRP_REF_NONE } };

trpi_failure *
trpi_failure_new(const trp_failure *what)
{
    trpi_failure *failure = trpi_alloc(sizeof *failure);

    if (failure == NULL) {
        return &no_memory;
    }
    atomic_init(&failure->refs, 1);
    failure->what = *what;
    return failure;
}

trpi_failure *
trpi_failure_ref(trpi_failure *failure)
{
    if (failure != &no_memory) {
        atomic_fetch_add_explicit(&failure->refs, 1, memory_order_relaxed);
    }
    return failure;
}

void
trpi_failure_unref(trpi_failure *failure)
{
    /* acq_rel: the last one sees what all others read and wrote before they let go */
    if (failure != NULL && failure != &no_memory &&
        atomic_fetch_sub_explicit(&failure->refs, 1, memory_order_acq_rel) == 1) {
        trpi_free(failure);
    }
}

void
trpi_failure_fill(trp_failure *what, trp_ref actor, trp_err err, const char *reason)
{
    memset(what, 0, sizeof *what);
    what->err = err;
    what->actor = actor;
    snprintf(what->reason, sizeof what->reason, "%s", reason == NULL ? trp_strerror(err) : reason);
}

trpi_extra *
trpi_extra_get(trpi_cell *cell)
{
    if (cell->extra == NULL) {
        cell->extra = trpi_alloc(sizeof *cell->extra);
        if (cell->extra != NULL) {
            cell->extra->parked_end = &cell->extra->parked;
        }
    }
    return cell->extra;
}

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
        trpi_memory_drop(cell);
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
    cell->life = TRPI_LIFE_RUNNING;
    err = trpi_life_state_new(cell);
    if (err == TRP_OK) {
        err = trpi_life_hook(ctx, cell, TRPI_HOOK_PRE_START, NULL, NULL);
    } else {
        trpi_failure_fill(&ctx->failure, ctx->self, err, NULL);
    }
    if (err == TRP_OK) {
        cell->marks |= TRPI_MARK_STARTED;
        trpi_life_trace(ctx, cell, "started", nobody);
        return;
    }
    ctx->failure.err = TRP_EINIT; /* SUP-15 */
    trpi_life_instance_end(ctx, cell);
    trpi_life_fail(ctx, cell, &ctx->failure, NULL, nobody, false);
}

/* ---- failure --------------------------------------------------------------------------------- */

/* Keep what pre_restart may want to see. Best effort: without memory it sees no message. */
static void
keep_failed_msg(trpi_cell *cell, const trp_msg *msg)
{
    trpi_extra *extra;

    if (msg == NULL || cell->behaviour->pre_restart == NULL ||
        (extra = trpi_extra_get(cell)) == NULL) {
        return;
    }
    trp_msg_free(extra->failed_msg);
    extra->failed_msg = NULL;
    if (trp_msg_dup(msg, &extra->failed_msg) != TRP_OK) {
        extra->failed_msg = NULL;
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
        return; /* on its way out, or known already */
    }
    mine.actor = trpi_cell_ref(cell);
    trpi_assert(cell->suspended < UINT8_MAX);
    cell->suspended++; /* L3 */
    cell->marks |= TRPI_MARK_FAILED;
    keep_failed_msg(cell, msg);
    if (!trp_ref_is_none(perpetrator) && trpi_extra_get(cell) != NULL) {
        cell->extra->perpetrator = perpetrator; /* suspended by itself already */
    }
    for (trpi_cell *c = trpi_child_first(ctx, cell); c != NULL; c = trpi_child_after(ctx, c)) {
        trp_ref ref = trpi_cell_ref(c);
        bool survivor = skip_survivors && (c->next_sibling & TRPI_CHILD_SURVIVOR) != 0;

        if (trpi_child_lives(c) && !survivor && !trp_ref_equal(ref, perpetrator)) {
            trpi_sys_to(ctx, ref, TRPI_SYS_SUSPEND, 0, nobody, 0, NULL);
        }
    }
    parent = trpi_cells_find(ctx->cells, cell->parent);
    if (cell->parent == 0 || parent == NULL) {
        trpi_log(ctx->system, TRP_LOG_ERROR, "life",
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

/* What a system message that waited for the end of a restart leaves behind. */
static void
parked_drop(trpi_extra *extra)
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

/* Take the side block apart; the watchers are handed to the caller. */
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
    trpi_supervise_clear(extra);
    parked_drop(extra);
    trpi_failure_unref(extra->why);
    trp_msg_free(extra->failed_msg);
    trp_msg_free(extra->args);
    trpi_free(extra);
    cell->extra = NULL;
    return watchers;
}

static void
end(trp_ctx *ctx, trpi_cell *cell)
{
    trp_ref self = trpi_cell_ref(cell);
    bool root = cell->parent == 0;
    bool subscribed = (cell->marks & TRPI_MARK_SUBSCRIBED) != 0;
    trpi_cell *parent = root ? NULL : trpi_cells_find(ctx->cells, cell->parent);
    trp_system *system = ctx->system;
    trp_ref parent_ref = nobody;
    void *terminated = NULL;
    trpi_ref_map watchers;

    trpi_assert(cell->first_child == 0);
    if ((cell->marks & TRPI_MARK_STARTED) != 0 &&
        trpi_life_hook(ctx, cell, TRPI_HOOK_POST_STOP, NULL, NULL) != TRP_OK) {
        char path[TRP_PATH_BYTES_MAX + 1];

        trpi_path_local(system, self, path, sizeof path);
        trp_system_log(system, TRP_LOG_ERROR, path, "post_stop failed: %s; the stop goes on",
                       ctx->failure.reason);
    }
    trpi_life_trace(ctx, cell, "stopped", nobody);
    trpi_life_instance_end(ctx, cell);
    trpi_watch_end_all(ctx, cell);
    watchers = extra_end(ctx, cell);
    trpi_obituary_add(ctx, cell);
    cell->marks &= TRPI_MARK_ORPHAN;
    trpi_run_ended(ctx, cell); /* L2: from here tells are dead letters */
    if (subscribed) {
        trpi_event_subscriber_ended(system, self);
    }
    if (parent != NULL) {
        parent_ref = trpi_cell_ref(parent);
        /* A parent that watches is told by the notice itself, so that the name is free when it
         * sees the end (SYS-18). What the child told it before is pushed first. */
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

/* No spawn from outside finds this guardian open any more; true: all that did have arrived. */
static bool
guardian_close(trp_system *system, const trpi_cell *cell)
{
    trpi_guardian *guardian = trpi_guardian_of(system, cell);
    bool arrived = true;

    if (guardian != NULL) {
        pthread_mutex_lock(&guardian->lock);
        guardian->closed = true;
        arrived = guardian->pending == 0;
        pthread_mutex_unlock(&guardian->lock);
    }
    return arrived;
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
        if (guardian_close(ctx->system, cell) && cell->first_child == 0) {
            end(ctx, cell);
        }
    } else if (cell->life == TRPI_LIFE_RESTARTING && cell->flags == 0) {
        trpi_life_restart_finish(ctx, cell);
    }
}

/* ---- system messages ------------------------------------------------------------------------- */

/* Takes terminated. */
static void
child_ended(trp_ctx *ctx, trpi_cell *cell, trp_ref child, trp_msg *terminated)
{
    trpi_cell *ended = trpi_cells_find(ctx->cells, child.slot);

    trpi_assert(ended != NULL && trpi_cell_parent(ended) == trpi_cell_slot(cell));
    trpi_child_unlink(ctx, cell, ended);
    trpi_supervise_forget(cell, child);
    if (terminated != NULL) {
        trpi_watch_answer(ctx, trpi_cell_ref(cell), terminated, true);
    }
    if (trpi_guardian_is_root(cell)) {
        trpi_root_child_ended(ctx, cell, child);
    }
    trpi_life_check(ctx, cell);
}

/* A child that was spawned from outside becomes one of the guardian's. */
static void
supervise(trp_ctx *ctx, trpi_cell *cell, trp_ref child)
{
    trpi_guardian *guardian = trpi_guardian_of(ctx->system, cell);
    trpi_cell *fresh = trpi_cells_find(ctx->cells, child.slot);

    trpi_assert(guardian != NULL && fresh != NULL);
    pthread_mutex_lock(&guardian->lock);
    trpi_assert(guardian->pending > 0);
    guardian->pending--;
    pthread_mutex_unlock(&guardian->lock);
    trpi_child_link(ctx, cell, fresh);
    for (unsigned i = 0; i < cell->suspended; i++) {
        trpi_sys_to(ctx, child, TRPI_SYS_SUSPEND, 0, nobody, 0, NULL);
    }
    if (cell->life == TRPI_LIFE_STOPPING) {
        trpi_child_stop(ctx, cell, fresh);
    }
}

static void
suspend(trp_ctx *ctx, trpi_cell *cell)
{
    trpi_assert(cell->suspended < UINT8_MAX);
    cell->suspended++;
    trpi_children_tell(ctx, cell, TRPI_SYS_SUSPEND, nobody);
}

/* Must this wait until the restart is through, or the own failure is dealt with? (Akka:
 * StashWhenFailed, StashWhenWaitingForChildren.) */
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
park(trpi_cell *cell, const trpi_sysmsg *sysmsg)
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
        trpi_life_system(ctx, cell, &again); /* parks it again if it must */
    }
}

/* Orders that concern the life of the cell. false: another kind. */
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
        suspend(ctx, cell);
        return true;
    case TRPI_SYS_RESUME:
        trpi_life_resume(ctx, cell, sysmsg->flag != 0);
        return true;
    case TRPI_SYS_RESTART:
        trpi_life_restart(ctx, cell, sysmsg->pointer);
        return true;
    case TRPI_SYS_SUPERVISE:
        supervise(ctx, cell, sysmsg->from);
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

void
trpi_life_system(trp_ctx *ctx, trpi_cell *cell, trpi_sysmsg *sysmsg)
{
    if (must_park(cell, sysmsg->kind) && park(cell, sysmsg)) {
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
        trpi_watch_remove(ctx, cell, sysmsg->from);
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
    default:
        break; /* a promise's order for a slot that is an actor's now: stale in all but number */
    }
}

void
trpi_life_system_stale(trp_ctx *ctx, trpi_cell *cell, uint32_t slot, trpi_sysmsg *sysmsg)
{
    (void)cell;
    (void)slot;
    switch (sysmsg->kind) {
    case TRPI_SYS_RESTART:
    case TRPI_SYS_FAILED:
        trpi_failure_unref(sysmsg->pointer);
        break;
    case TRPI_SYS_WATCH:
        trpi_watch_answer(ctx, sysmsg->from, sysmsg->pointer, false);
        break;
    case TRPI_SYS_CHILD_ENDED:
        trp_msg_free(sysmsg->pointer);
        break;
    case TRPI_SYS_SELECT:
        trpi_select_lost(ctx, sysmsg->pointer, sysmsg->number);
        break;
    case TRPI_SYS_INSPECT:
        trpi_inspect_gone(ctx, sysmsg->pointer, sysmsg->number);
        break;
    default:
        break; /* a second stop, a late timer: nothing to do (LIFE-17) */
    }
}

void
trpi_life_system_drop(trpi_sysmsg *sysmsg)
{
    switch (sysmsg->kind) {
    case TRPI_SYS_RESTART:
    case TRPI_SYS_FAILED:
        trpi_failure_unref(sysmsg->pointer);
        break;
    case TRPI_SYS_WATCH:
    case TRPI_SYS_CHILD_ENDED:
        trp_msg_free(sysmsg->pointer);
        break;
    case TRPI_SYS_SELECT:
        trpi_select_drop(sysmsg->pointer);
        break;
    case TRPI_SYS_INSPECT:
        trpi_inspect_gone(NULL, sysmsg->pointer, sysmsg->number);
        break;
    default:
        break;
    }
}

/* ---- messages that are looked at first ------------------------------------------------------- */

static void
identify(trp_ctx *ctx, trpi_cell *cell, const trp_msg *msg)
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
    trp_failure killed;

    if ((msg->priv_from_node_flags & TRPI_MSG_ADMITTED) != 0) {
        msg->priv_from_node_flags &= ~TRPI_MSG_ADMITTED; /* a forward is not admitted elsewhere */
        trpi_run_receive(ctx, cell, msg);
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
        trpi_failure_fill(&killed, trpi_cell_ref(cell), TRP_EKILLED, "Kill");
        trpi_life_fail(ctx, cell, &killed, msg, nobody, false);
        break;
    case TRPI_TYPE_IDENTIFY:
        identify(ctx, cell, msg);
        break;
    case TRPI_TYPE_RECEIVE_TIMEOUT:
        trpi_receive_timeout_deliver(ctx, cell, msg);
        break;
    case TRPI_TYPE_TIMER:
        trpi_timer_tick(ctx, cell, msg);
        break;
    case TRPI_TYPE_CONTINUE:
        trpi_ask_continue(ctx, cell, msg);
        break;
    default:
        break;
    }
}

/* ---- verbs ----------------------------------------------------------------------------------- */

void
trpi_stop_send(trp_ctx *ctx, trp_ref ref)
{
    if (ref.node == TRPI_NODE_SELF) {
        trpi_sys_to(ctx, ref, TRPI_SYS_STOP, 0, nobody, 0, NULL);
    } else if (!trp_ref_is_none(ref)) {
        trpi_remote_signal(ctx->system, TRPI_SIGNAL_STOP, ref, ctx->self, 0);
    }
}

void
trp_stop(trp_ctx *ctx, trp_ref ref)
{
    trpi_cell *child = ctx->cell == NULL ? NULL : trpi_child_find(ctx, ctx->cell, ref);

    if (child != NULL) {
        trpi_child_stop(ctx, ctx->cell, child);
    } else {
        trpi_stop_send(ctx, ref);
    }
}

void
trp_system_stop_actor(trp_system *system, trp_ref ref)
{
    trp_ctx *ctx;

    if (trpi_system_is_valid(system)) {
        ctx = trpi_enter(system);
        trpi_stop_send(ctx, ref);
        trpi_leave(ctx);
    }
}

static TRP_NORETURN void
fail_with(trp_ctx *ctx, trp_err err, int32_t code, const char *file, int line, const char *format,
          va_list arguments)
{
    trp_failure *what = &ctx->failure;

    trpi_assert(ctx->jump != NULL);
    memset(what, 0, sizeof *what);
    what->err = err;
    what->code = code;
    what->file = file;
    what->line = line;
    what->actor = ctx->self;
    if (format == NULL || vsnprintf(what->reason, sizeof what->reason, format, arguments) < 0) {
        snprintf(what->reason, sizeof what->reason, "%s", trp_strerror(err));
    }
    _longjmp(*ctx->jump, 1);
}

void
trp_fail_at(trp_ctx *ctx, int32_t code, const char *file, int line, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fail_with(ctx, TRP_EFAILED, code, file, line, format, arguments);
}

void
trpi_life_throw(trp_ctx *ctx, trp_err err, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fail_with(ctx, err, 0, NULL, 0, format, arguments);
}

trp_ref
trp_self(const trp_ctx *ctx)
{
    return ctx->self;
}

trp_ref
trp_parent(const trp_ctx *ctx)
{
    trpi_cell *parent =
        ctx->cell->parent == 0 ? NULL : trpi_cells_find(ctx->cells, ctx->cell->parent);

    return parent == NULL ? nobody : trpi_cell_ref(parent);
}

trp_system *
trp_ctx_system(const trp_ctx *ctx)
{
    return ctx->system;
}

void *
trp_state(const trp_ctx *ctx)
{
    return ctx->cell == NULL ? NULL : ctx->cell->state;
}
