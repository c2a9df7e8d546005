/* supervise.c - what a supervisor does about a failed child.
 *
 * Why.     Let it crash: the child reports its failure, its parent decides in its own turn, with
 *          its own state.
 * Shape.   FAILED (system message) -> decider -> resume | restart, if the budget allows | stop |
 *          escalate. The budget is kept with the parent, one record for each child that was ever
 *          restarted.
 * Must hold.
 *   supervise-S1  Only a failure of a living child of this incarnation is acted upon.
 *   supervise-S2  A decider that fails or answers nonsense escalates (SUP-8).
 * Limits.  retries_max within window_ms: exceeding it stops (SUP-7).
 * Tests.   tests/unit/actor/supervise_test.c
 * Sources. SUP-2..12; the window is Akka's "simple window algorithm": it opens with the first
 * restart and
 *          a new one opens with the first restart after its end.
 */
#include "actor/life/life.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/sized.h"

static const trp_ref nobody = TRP_REF_NONE;
static const trp_strategy strategy_default = TRP_STRATEGY_INIT;

typedef struct trpi_restarts {
    uint32_t count;
    uint64_t window_start_ms;
    trpi_pause pause;
} trpi_restarts;

trp_directive
trp_default_decider(trp_ctx *ctx, void *state, const trp_failure *failure)
{
    (void)ctx;
    (void)state;
    switch (failure->err) {
    case TRP_EINIT:
    case TRP_EKILLED:
    case TRP_EDEATHPACT:
    case TRP_EJOURNAL:
    case TRP_EFENCED:
        return TRP_STOP;
    case TRP_EINTERNAL:
        return TRP_ESCALATE;
    default:
        return TRP_RESTART;
    }
}

trp_directive
trp_stopping_decider(trp_ctx *ctx, void *state, const trp_failure *failure)
{
    (void)ctx;
    (void)state;
    (void)failure;
    return TRP_STOP;
}

typedef struct decision {
    const trp_strategy *strategy;
    const trp_failure *failure;
    void *state;
    trp_directive directive;
    uint32_t delay_ms; /* of a restart */
} decision;

static trp_err
call_decider(trp_ctx *ctx, void *arg)
{
    decision *d = arg;

    d->directive = d->strategy->decider == NULL ? trp_default_decider(ctx, d->state, d->failure)
                                                : d->strategy->decider(ctx, d->state, d->failure);
    return d->directive >= TRP_RESUME && d->directive <= TRP_RECOVER ? TRP_OK : TRP_EINVAL;
}

static trp_err
call_log(trp_ctx *ctx, void *arg)
{
    const decision *d = arg;

    d->strategy->log(ctx, d->state, d->failure, d->directive);
    return TRP_OK;
}

static void
log_failure(trp_ctx *ctx, decision *d)
{
    static const char *const next[] = { "",           "resuming",   "restarting",   "stopping",
                                        "escalating", "activating", "deactivating", "recovering" };
    const trp_strategy *strategy = d->strategy;
    const trp_failure *what = d->failure;
    trp_directive directive = d->directive;
    trp_log_level level = directive == TRP_RESUME ? TRP_LOG_WARNING : TRP_LOG_ERROR;

    _Static_assert(sizeof next / sizeof next[0] == TRP_RECOVER + 1, "a word for each");
    if (strategy->quiet || directive == TRP_ESCALATE) {
        return; /* SUP-11: an escalated failure is logged where it is decided */
    }
    if (strategy->log != NULL && trpi_run_guarded(ctx, call_log, d) == TRP_OK) {
        return; /* a log function that fails is replaced by the default: the failure must be seen */
    }
    if (!trpi_log_wanted(ctx->system, level)) {
        return;
    }
    char when[24] = "";
    if (d->delay_ms != 0) {
        (void)snprintf(when, sizeof when, " in %u ms", d->delay_ms);
    }
    if (what->file != NULL) {
        trpi_log_about(ctx, what->actor, level, TRP_OK, "failed: %s (%s, code %d, %s:%d); %s%s",
                       what->reason, trp_err_name(what->err), (int)what->code, what->file,
                       what->line, next[directive], when);
    } else {
        trpi_log_about(ctx, what->actor, level, TRP_OK, "failed: %s (%s); %s%s", what->reason,
                       trp_err_name(what->err), next[directive], when);
    }
}

/* ---- the budget ------------------------------------------------------------------------------ */

/* The record of a child; NULL: out of memory. */
static trpi_restarts *
record_get(trp_ctx *ctx, trpi_cell *cell, trp_ref child)
{
    trpi_extra *extra = trpi_extra_get(cell);
    trpi_ref_pair *pair = extra == NULL ? NULL : trpi_ref_map_find(&extra->restarts, child);
    trpi_restarts *record = pair == NULL ? NULL : pair->value;

    if (record == NULL) {
        record = extra == NULL ? NULL : trpi_alloc(sizeof *record);
        if (record == NULL || trpi_ref_map_put(&extra->restarts, child, record) != TRP_OK) {
            trpi_free(record);
            return NULL;
        }
        record->window_start_ms = trp_now_ms(ctx);
    }
    return record;
}

/* May this child be restarted once more? Counts it. */
static bool
may_restart(trp_ctx *ctx, trpi_cell *cell, trp_ref child, const trp_strategy *strategy)
{
    trpi_restarts *record;
    uint64_t now_ms = trp_now_ms(ctx);

    uint32_t max = strategy->retries_max == TRP_OFF ? 0 : strategy->retries_max;

    if (strategy->retries_max == 0 || max == TRP_FOREVER) {
        return true; /* without limits every restart is allowed (SUP-7) */
    }
    record = record_get(ctx, cell, child);
    if (record == NULL) {
        return false; /* out of memory: restarts cannot be counted */
    }
    if (strategy->window_ms != 0 && now_ms - record->window_start_ms > strategy->window_ms) {
        record->window_start_ms = now_ms;
        record->count = 0;
    }
    if (record->count < max) {
        record->count++;
        return true;
    }
    return false;
}

/* Begin the pause of a restart; 0: there is none. */
static uint32_t
pause_begin(trp_ctx *ctx, trpi_cell *cell, trp_ref child, const decision *d)
{
    uint32_t min_ms = TRPI_SIZED_MEMBER(d->strategy, backoff_min_ms);
    bool restarts = d->directive == TRP_RESTART || d->directive == TRP_RECOVER;
    trpi_restarts *record = min_ms != 0 && restarts ? record_get(ctx, cell, child) : NULL;
    return record == NULL ? 0
                          : trpi_pause_next_ms(ctx, &record->pause, min_ms,
                                               TRPI_SIZED_MEMBER(d->strategy, backoff_max_ms));
}

static trpi_restarts *
record_find(const trpi_cell *cell, trp_ref child)
{
    trpi_ref_pair *pair =
        cell->extra == NULL ? NULL : trpi_ref_map_find(&cell->extra->restarts, child);
    return pair == NULL ? NULL : pair->value;
}

void
trpi_restart_now(trp_ctx *ctx, trp_ref child)
{
    trpi_restarts *record = record_find(ctx->cell, child);
    if (record != NULL) {
        trpi_pause_end(ctx, &record->pause, child);
    }
}

void
trpi_supervise_forget(trp_ctx *ctx, trpi_cell *cell, trp_ref child)
{
    trpi_restarts *record;
    void *removed;

    if (cell->extra != NULL && trpi_ref_map_remove(&cell->extra->restarts, child, &removed)) {
        record = removed;
        trpi_pause_fini(ctx->system, &record->pause);
        trpi_free(record);
    }
}

void
trpi_supervise_clear(trp_system *system, trpi_extra *extra)
{
    const trpi_ref_pair *pair;
    uint32_t position = 0;

    while ((pair = trpi_ref_map_next(&extra->restarts, &position)) != NULL) {
        trpi_restarts *record = pair->value;
        trpi_pause_fini(system, &record->pause);
        trpi_free(record);
    }
    trpi_ref_map_fini(&extra->restarts);
}

/* ---- directives ------------------------------------------------------------------------------ */

/* Order a restart, behind the pause of the decision. */
static void
restart_order(trp_ctx *ctx, trpi_cell *cell, trp_ref child, const decision *d, trpi_failure *why)
{
    trpi_restarts *record = d->delay_ms == 0 ? NULL : record_get(ctx, cell, child);
    uint16_t recover = d->directive == TRP_RECOVER;

    if (record != NULL) {
        trpi_restart_later(ctx, &record->pause, child, d->delay_ms, recover, why);
    } else {
        trpi_sys_to(ctx, child, TRPI_SYS_RESTART, recover, nobody, 0, trpi_failure_ref(why));
    }
}

static void
restart_one(trp_ctx *ctx, trpi_cell *cell, trpi_cell *child, const decision *d, trpi_failure *why)
{
    trp_ref ref = trpi_cell_ref(child);

    if (may_restart(ctx, cell, ref, d->strategy)) {
        restart_order(ctx, cell, ref, d, why);
    } else {
        trpi_child_stop(ctx, cell, child);
    }
}

static bool
is_counted(const trpi_cell *child)
{
    return trpi_child_lives(child) && !trpi_child_is_dying(child);
}

/* One-for-all: apply the directive to all children (SUP-6). */
static void
restart_all(trp_ctx *ctx, trpi_cell *cell, const trpi_cell *failed, const decision *d,
            trpi_failure *why)
{
    bool permitted = true;

    for (trpi_cell *c = trpi_child_first(ctx, cell); c != NULL; c = trpi_child_after(ctx, c)) {
        if (is_counted(c)) {
            permitted = may_restart(ctx, cell, trpi_cell_ref(c), d->strategy) && permitted;
        }
    }
    if (!permitted) {
        trpi_children_stop(ctx, cell);
        return;
    }
    for (trpi_cell *c = trpi_child_first(ctx, cell); c != NULL; c = trpi_child_after(ctx, c)) {
        if (is_counted(c)) {
            trp_ref ref = trpi_cell_ref(c);

            if (c != failed) {
                trpi_sys_to(ctx, ref, TRPI_SYS_SUSPEND, 0, nobody, 0, NULL);
            }
            restart_order(ctx, cell, ref, d, why);
        }
    }
}

static void
directive_carry_out(trp_ctx *ctx, trpi_cell *cell, trpi_cell *child, const decision *d,
                    trpi_failure *why)
{
    switch (d->directive) {
    case TRP_ACTIVATE:
    case TRP_DEACTIVATE: /* before it resumes: system messages keep their order */
        trpi_filter_active_send(ctx, trpi_cell_ref(child), d->directive == TRP_ACTIVATE);
        /* fall through */
    case TRP_RESUME:
        trpi_sys_to(ctx, trpi_cell_ref(child), TRPI_SYS_RESUME, 1, nobody, 0, NULL);
        break;
    case TRP_RESTART:
    case TRP_RECOVER:
        if (d->strategy->all_for_one) {
            restart_all(ctx, cell, child, d, why);
        } else {
            restart_one(ctx, cell, child, d, why);
        }
        break;
    case TRP_STOP:
        if (d->strategy->all_for_one) {
            trpi_children_stop(ctx, cell);
        } else {
            trpi_child_stop(ctx, cell, child);
        }
        break;
    case TRP_ESCALATE:
        trpi_life_fail(ctx, cell, &why->what, NULL, trpi_cell_ref(child), false);
        break;
    }
}

void
trpi_supervise_failed(trp_ctx *ctx, trpi_cell *cell, trp_ref child_ref, trpi_failure *why)
{
    const trp_strategy *strategy = cell->behaviour->strategy;
    trpi_cell *child = trpi_child_find(ctx, cell, child_ref);
    trp_failure what = why->what; /* a copy: the shared one may be the static one without a name */
    decision d = { strategy == NULL ? &strategy_default : strategy, &what, cell->state,
                   TRP_ESCALATE, 0 };
    trp_err err;

    what.actor = child_ref;
    if (child == NULL || trpi_child_is_dying(child) || cell->life == TRPI_LIFE_STOPPING) {
        trpi_failure_unref(why); /* supervise-S1 */
        return;
    }
    ctx->failure.err = TRP_OK;
    err = trpi_run_guarded(ctx, call_decider, &d);
    if (err != TRP_OK) { /* supervise-S2 */
        trp_failure own;

        trpi_failure_fill(&own, trpi_cell_ref(cell), TRP_EFAILED,
                          ctx->failure.err != TRP_OK ? ctx->failure.reason
                                                     : "the decider returned no directive");
        trpi_life_fail(ctx, cell, &own, NULL, child_ref, false);
    } else {
        d.delay_ms = pause_begin(ctx, cell, child_ref, &d);
        log_failure(ctx, &d);
        directive_carry_out(ctx, cell, child, &d, why);
    }
    trpi_failure_unref(why);
}
