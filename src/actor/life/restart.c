/* restart.c - a fresh instance under the same reference; resume.
 *
 * Why.     A restart must be invisible from outside: same ref, same mailbox, same watchers. Only
 *          the state is new, and children that pre_restart did not stop are restarted in turn.
 * Steps.   LIFE-4, in its numbers: (1) trpi_life_fail or the supervisor's SUSPEND; (2) pre_restart
 *          on the old instance; (3) state RESTARTING until the stopped children have ended, other
 *          system messages are parked; (4) fresh state; (5) post_restart; (6) RESTART to the
 *          surviving children; (7) resume: the suspension is taken back before (4), so that a
 *          failure in (5) is like any other.
 * Must hold.
 *   restart-R1  Each RESTART or RESUME takes back exactly one suspension, in whatever state it
 *       arrives.
 *   restart-R2  post_restart runs when no child of step 3 is left.
 *   restart-R3  An actor that never came through pre_start is created, not restarted: pre_start
 *       runs again.
 *   restart-R4  A recovery (TRP_RECOVER) calls no pre_restart and stops no child; children that
 *       were suspended with the actor resume.
 * Tests.   tests/unit/actor/restart_test.c
 * Sources. LIFE-1..7, SUP-3; Akka 2.2.5, "What Restarting Means".
 */
#include "actor/kernel/stats.h"
#include "actor/life/life.h"
#include "actor/life/upgrade.h"

#include "base/alloc.h"
#include "base/assert.h"

static const trp_ref nobody = TRP_REF_NONE;

/* Take back one suspension (restart-R1), and the actor's own failure if the order answers that. */
static void
take_back(trpi_cell *cell, bool answers_failure)
{
    if (cell->suspended > 0) {
        cell->suspended--;
    }
    if (answers_failure) {
        cell->marks &= (uint8_t)~TRPI_MARK_FAILED;
        trpi_life_failure_clear(cell);
    }
}

static void
run_pre_restart(trp_ctx *ctx, trpi_cell *cell, const trp_failure *why)
{
    const trp_msg *msg = cell->extra == NULL ? NULL : cell->extra->failed_msg;

    if (trpi_life_hook(ctx, cell, TRPI_HOOK_PRE_RESTART, why, msg) != TRP_OK) {
        char path[TRP_PATH_BYTES_MAX + 1];

        trpi_path_local(ctx->system, trpi_cell_ref(cell), path, sizeof path);
        trp_system_log(ctx->system, TRP_LOG_ERROR, path,
                       "pre_restart failed: %s; the restart goes on", ctx->failure.reason);
    }
}

void
trpi_life_restart(trp_ctx *ctx, trpi_cell *cell, bool recovers, trpi_failure *why)
{
    trpi_extra *extra;

    if (cell->life == TRPI_LIFE_STOPPING) {
        take_back(cell, false);
        trpi_failure_unref(why);
        return;
    }
    extra = trpi_extra_get(cell);
    if (extra == NULL) { /* out of memory for the cause: the actor cannot be restarted */
        trpi_failure_unref(why);
        trpi_life_stop(ctx, cell);
        return;
    }
    extra->recovers = recovers;
    if ((cell->marks & TRPI_MARK_STARTED) != 0) {
        run_pre_restart(ctx, cell, &why->what);
    } else {
        /* pre_start failed half-way: stop the children that it made */
        trpi_children_stop(ctx, cell);
    }
    trpi_life_instance_end(ctx, cell);
    trpi_failure_unref(extra->why);
    extra->why = why;
    cell->life = TRPI_LIFE_RESTARTING;
    trpi_life_check(ctx, cell);
}

/* Mark the children that live now, before post_restart makes others. */
static bool
mark_survivors(trp_ctx *ctx, const trpi_cell *cell)
{
    bool any = false;

    for (trpi_cell *c = trpi_child_first(ctx, cell); c != NULL; c = trpi_child_after(ctx, c)) {
        c->next_sibling |= TRPI_CHILD_SURVIVOR;
        any = true;
    }
    return any;
}

static void
unmark_survivors(trp_ctx *ctx, const trpi_cell *cell, bool recovers, trpi_failure *restart)
{
    for (trpi_cell *c = trpi_child_first(ctx, cell); c != NULL; c = trpi_child_after(ctx, c)) {
        if ((c->next_sibling & TRPI_CHILD_SURVIVOR) != 0) {
            c->next_sibling &= TRPI_CHILD_SLOT;
            if (restart != NULL && recovers && trpi_child_lives(c)) { /* restart-R4 */
                trpi_sys_to(ctx, trpi_cell_ref(c), TRPI_SYS_RESUME, 0, nobody, 0, NULL);
            } else if (restart != NULL && trpi_child_lives(c)) {
                trpi_sys_to(ctx, trpi_cell_ref(c), TRPI_SYS_RESTART, 0, nobody, 0,
                            trpi_failure_ref(restart));
            }
        }
    }
}

void
trpi_life_restart_finish(trp_ctx *ctx, trpi_cell *cell)
{
    trpi_failure *why = cell->extra->why;
    enum trpi_hook hook = (cell->marks & TRPI_MARK_CREATED) != 0 ? TRPI_HOOK_POST_RESTART
                                                                 /* restart-R3 */
                                                                 : TRPI_HOOK_PRE_START;
    bool survivors;
    trp_err err;

    trpi_assert(cell->life == TRPI_LIFE_RESTARTING);
    trpi_assert(cell->dying == 0); /* restart-R2 */
    bool recovers = cell->extra->recovers;

    cell->extra->why = NULL;
    cell->extra->recovers = false;
    cell->life = TRPI_LIFE_RUNNING;
    take_back(cell, true);
    trpi_behaviour_renew(ctx->system, cell);
    survivors = mark_survivors(ctx, cell);
    err = trpi_life_state_new(cell);
    if (err == TRP_OK) {
        err = trpi_life_hook(ctx, cell, hook, &why->what, NULL);
    } else {
        trpi_failure_fill(&ctx->failure, trpi_cell_ref(cell), err, NULL);
    }
    if (err == TRP_OK) {
        cell->marks |= TRPI_MARK_STARTED | TRPI_MARK_CREATED;
        trpi_count(ctx, &ctx->stats->restarts, 1);
        trpi_restart_note(ctx, cell);
        trpi_life_trace(ctx, cell, "restarted", nobody);
        if (cell->extra != NULL) {
            cell->extra->restarted++;
        }
    } else {
        ctx->failure.err = TRP_EINIT; /* SUP-15: as a failure in pre_start */
        trpi_life_instance_end(ctx, cell);
        trpi_life_fail(ctx, cell, &ctx->failure, NULL, nobody, true);
    }
    if (survivors) {
        unmark_survivors(ctx, cell, recovers, err == TRP_OK ? why : NULL);
    }
    trpi_failure_unref(why);
    trpi_life_unpark(ctx, cell);
}

void
trpi_life_resume(trp_ctx *ctx, trpi_cell *cell, bool answers_failure)
{
    trp_ref perpetrator = cell->extra == NULL ? nobody : cell->extra->perpetrator;

    if (answers_failure && (cell->marks & TRPI_MARK_STARTED) == 0 &&
        cell->life == TRPI_LIFE_RUNNING) {
        trp_failure
            /* there is no instance to resume: make one (Akka: "changing Resume into Create") */
            what;

        trpi_failure_fill(&what, trpi_cell_ref(cell), TRP_EINIT, "resumed before it had started");
        trpi_life_restart(ctx, cell, false, trpi_failure_new(&what));
        return;
    }
    take_back(cell, answers_failure);
    for (trpi_cell *c = trpi_child_first(ctx, cell); c != NULL; c = trpi_child_after(ctx, c)) {
        if (trpi_child_lives(c)) {
            trp_ref ref = trpi_cell_ref(c);
            bool answers = answers_failure && trp_ref_equal(ref, perpetrator);

            trpi_sys_to(ctx, ref, TRPI_SYS_RESUME, answers ? 1 : 0, nobody, 0, NULL);
        }
    }
    trpi_life_unpark(ctx, cell);
}
