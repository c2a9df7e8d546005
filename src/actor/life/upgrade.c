/* upgrade.c - new code for living actors, each between two of its messages.
 *
 * Why.     A node whose code changes need not end: an actor keeps its ref, mailbox, stash, children
 *          and watchers, and its state as `code_change` makes it.
 * Shape.   the caller's thread                      the actor's runner
 *          publish the newer behaviours (versions.c)
 *          pass: for each actor with older code --order (a system message)--> change, or why not
 *                wait for the answers <------------------------------------- |
 *          until a pass finds none, or the deadline, or it is no longer wanted
 * Must hold.
 *   upgrade-W1  An actor changes as a whole, or not at all: behaviour, state and the stack of
 *       trp_become() go together.                                                    (state_change)
 *   upgrade-W2  No function of the older code runs with a state of the newer one: an actor that
 *       waits for the answer to an ask, whose continuation is older code, changes later. (is_busy)
 *   upgrade-W3  After the caller has returned no order of its begins. One whose code_change runs
 *       beyond the deadline goes on: the job has copies of all that it needs, and its last order
 *       frees it.
 *   upgrade-W4  A message costs no instruction more: the order is a system message, which sets the
 *       byte that each turn looks at anyway.
 * Limits.  PASS_ACTORS_MAX orders at a time.
 * Not here. Shared objects, and who may bring them (cluster/node/node_upgrade.c).
 * Tests.   tests/unit/actor/upgrade_test.c, tests/system/upgrade.sh
 * Sources. Erlang's code_change/3: a gen_server changes between two messages, and is told the old
 *          version.
 */
#include <stdio.h>
#include <string.h>

#include "actor/kernel/cells.h"
#include "actor/kernel/bounded_mailbox.h"
#include "actor/kernel/shared_mailbox.h"
#include "actor/life/life.h"
#include "actor/life/upgrade.h"
#include "base/alloc.h"
#include "base/assert.h"

#define PASS_ACTORS_MAX 65536u
#define BUSY_PAUSE_MS 5u
#define WANTED_LOOK_MS 50u /* how soon the end of a node, or of the call, is noticed */
#define PASSES_PATIENCE 4u /* a pass waits for at most this part of the time that is left */

static const trp_ref nobody = TRP_REF_NONE;

enum state { WAITING, RUNNING, CHANGED, GONE, BUSY, FAILED, GIVEN_UP };

typedef struct order {
    trp_ref ref;
    enum state state;
    char *why; /* BUSY, FAILED; owned; NULL: no memory for it */
} order;

typedef struct job { /* one pass */
    trpi_cond cond;  /* guards all but upgrade */
    uint32_t refs;   /* the caller, and each order that is on its way */
    uint32_t open;   /* orders that WAIT or RUN */
    uint32_t running;
    bool over;
    trpi_upgrade upgrade; /* with rows and codes of its own (upgrade-W3) */
    uint32_t count;
    order orders[];
} job;

/* Unlocks. */
static void
unref_locked(job *j)
{
    bool last = --j->refs == 0;

    pthread_mutex_unlock(&j->cond.lock);
    if (last) {
        for (uint32_t i = 0; i < j->count; i++) {
            trpi_free(j->orders[i].why);
        }
        trpi_cond_fini(&j->cond);
        trpi_free((void *)(uintptr_t)j->upgrade.rows);
        trpi_free((void *)(uintptr_t)j->upgrade.codes);
        trpi_free(j);
    }
}

/* ---- on the actor's thread ------------------------------------------------------------------- */

typedef struct change_call {
    const trpi_upgrade_row *row;
    void *state, *old_state;
    uint32_t old_version;
} change_call;

static trp_err
call_change(trp_ctx *ctx, void *arg)
{
    const change_call *call = arg;

    return call->row->change.change(ctx, call->state, call->old_state, call->old_version);
}

static void
behaviour_set(trpi_cell *cell, const trp_behaviour *behaviour)
{
    const trpi_bounded_mailbox *member = trpi_shared_member(cell);

    /* relaxed: trpi_look_behaviour() reads it from other threads, and takes either */
    __atomic_store_n(&cell->behaviour, behaviour, __ATOMIC_RELAXED);
    if (member != NULL) {
        trpi_shared_behaviour_set(member->shared, behaviour);
    }
    trpi_receive_mark(cell);
}

void
trpi_behaviour_renew(trp_system *system, trpi_cell *cell)
{
    const trp_behaviour *newest = trpi_behaviour_newest(system, cell->behaviour);

    if (newest != cell->behaviour) {
        behaviour_set(cell, newest);
    }
}

/* The old state is freed; with deferred calls, which may point into it, behind the last of them. */
static void
old_state_free(trpi_cell *cell, void *state)
{
    trpi_deferred **last = cell->extra == NULL ? NULL : &cell->extra->deferred;
    trpi_deferred *deferred;

    if (state == NULL) {
        return;
    }
    if (last == NULL || *last == NULL) {
        trpi_free(state);
        return;
    }
    deferred = trpi_alloc(sizeof *deferred);
    if (deferred == NULL) {
        return; /* lost: a leak, where the other way is a use after free */
    }
    while (*last != NULL) {
        last = &(*last)->next;
    }
    *deferred = (trpi_deferred){ NULL, trpi_free, state };
    *last = deferred;
}

/* upgrade-W1 */
static enum state
state_change(trp_ctx *ctx, trpi_cell *cell, const trpi_upgrade_row *row, char *why)
{
    const trp_behaviour *old = cell->behaviour, *new = row->change.behaviour;
    trpi_level *levels;
    change_call call = { row, NULL, cell->state, old->version };
    const trp_msg *msg = ctx->msg;
    trp_err err;

    if (new->state_bytes > 0 && (call.state = trpi_alloc(new->state_bytes)) == NULL) {
        (void)snprintf(why, TRPI_UPGRADE_WHY_BYTES, "out of memory for its state");
        return FAILED;
    }
    levels = trpi_levels_take(cell);
    cell->state = call.state;
    behaviour_set(cell, new);
    memset(&ctx->failure, 0, sizeof ctx->failure);
    ctx->msg = NULL;
    err = trpi_run_guarded(ctx, call_change, &call);
    ctx->msg = msg;
    if (err == TRP_OK) {
        trpi_levels_free(levels);
        old_state_free(cell, call.old_state);
        return CHANGED;
    }
    (void)snprintf(why, TRPI_UPGRADE_WHY_BYTES, "code_change from version %u to %u failed: %s",
                   old->version, new->version,
                   ctx->failure.reason[0] != 0 ? ctx->failure.reason : trp_strerror(err));
    trpi_levels_free(trpi_levels_take(cell));
    trpi_levels_put(cell, levels);
    trpi_free(call.state);
    cell->state = call.old_state;
    behaviour_set(cell, old);
    return FAILED;
}

/* upgrade-W2. false: it may change now. */
static bool
is_busy(const trpi_cell *cell, const trpi_upgrade_row *row, char *why)
{
    uint32_t asks = cell->extra == NULL ? 0 : cell->extra->asks.count;

    if (asks > 0) {
        (void)snprintf(why, TRPI_UPGRADE_WHY_BYTES, "it waits for the answers to %u asks", asks);
    } else if (row->recovers && (cell->marks & TRPI_MARK_FAILED) != 0) {
        (void)snprintf(why, TRPI_UPGRADE_WHY_BYTES, "it has failed, and its supervisor decides");
    } else if (row->recovers && row->is_busy != NULL && row->is_busy(cell->state)) {
        (void)snprintf(why, TRPI_UPGRADE_WHY_BYTES, "it recovers, or waits for its journal");
    } else {
        return false;
    }
    return true;
}

/* Have it restarted next, without its children; its restart takes the newest behaviour. */
static void
actor_recover(trp_ctx *ctx, const trpi_cell *cell)
{
    trp_ref self = trpi_cell_ref(cell);
    trp_failure what;

    trpi_failure_fill(&what, self, TRP_ECANCELED, "its code was upgraded");
    trpi_sys_to(ctx, self, TRPI_SYS_SUSPEND, 0, nobody, 0, NULL);
    trpi_sys_to(ctx, self, TRPI_SYS_RESTART, 1, nobody, 0, trpi_failure_new(&what));
}

static bool
is_same_layout(const trp_behaviour *a, const trp_behaviour *b)
{
    return a->version == b->version && a->state_bytes == b->state_bytes;
}

static enum state
actor_change(trp_ctx *ctx, trpi_cell *cell, const trpi_upgrade *upgrade, char *why)
{
    const trp_behaviour *old = cell->behaviour;
    const trpi_upgrade_row *row;

    if (cell->life == TRPI_LIFE_STOPPING || cell->life == TRPI_LIFE_FREE) {
        return GONE;
    }
    if (!trpi_upgrade_is_older(upgrade, old)) {
        return GONE; /* it was restarted meanwhile */
    }
    row = trpi_upgrade_row_of(upgrade, old->name);
    if (row == NULL) {
        (void)snprintf(why, TRPI_UPGRADE_WHY_BYTES, "the new file has no behaviour %.128s",
                       old->name);
        return FAILED;
    }
    if ((cell->marks & TRPI_MARK_STARTED) == 0 || trpi_cell_is_child_proxy(cell)) {
        behaviour_set(cell, row->change.behaviour); /* there is no state yet */
        return CHANGED;
    }
    if (!row->recovers && is_same_layout(old, row->change.behaviour)) {
        behaviour_set(cell, row->change.behaviour);
        return CHANGED;
    }
    if (is_busy(cell, row, why)) {
        return BUSY;
    }
    if (row->recovers) {
        actor_recover(ctx, cell);
        return CHANGED;
    }
    if (row->change.change == NULL) { /* it was not there when all were checked */
        (void)snprintf(why, TRPI_UPGRADE_WHY_BYTES, "there is no code_change from version %u",
                       old->version);
        return FAILED;
    }
    return state_change(ctx, cell, row, why);
}

void
trpi_upgrade_order(trp_ctx *ctx, trpi_cell *cell, void *job_, uint64_t number)
{
    char why[TRPI_UPGRADE_WHY_BYTES] = "";
    job *j = job_;
    order *o = &j->orders[number];
    enum state state;
    bool wanted;

    pthread_mutex_lock(&j->cond.lock);
    wanted = !j->over;
    if (wanted) {
        o->state = RUNNING;
        j->running++;
    }
    pthread_mutex_unlock(&j->cond.lock);
    state = wanted ? actor_change(ctx, cell, &j->upgrade, why) : GIVEN_UP;
    pthread_mutex_lock(&j->cond.lock);
    if (wanted) {
        o->why = why[0] == 0 ? NULL : trpi_alloc(strlen(why) + 1);
        if (o->why != NULL) {
            memcpy(o->why, why, strlen(why) + 1);
        }
        o->state = state;
        j->running--;
        j->open--;
        trpi_cond_broadcast(&j->cond);
    }
    unref_locked(j);
}

void
trpi_upgrade_gone(void *job_, uint64_t number)
{
    job *j = job_;

    pthread_mutex_lock(&j->cond.lock);
    if (!j->over) {
        j->orders[number].state = GONE;
        j->open--;
        trpi_cond_broadcast(&j->cond);
    }
    unref_locked(j);
}

/* ---- the caller ------------------------------------------------------------------------------ */

/* Call fn for each living actor with older code, from the slot behind *slot on; false: it wants no
 * more, and *slot is the last one that it had. */
static bool
older_visit(trp_system *system, const trpi_upgrade *upgrade, uint32_t *slot,
            bool (*fn)(void *arg, trp_ref ref, const trp_behaviour *behaviour), void *arg)
{
    uint32_t used = atomic_load_explicit(&system->cells->used, memory_order_relaxed);

    while (*slot < used) {
        const trpi_cell *cell = trpi_cells_at(system->cells, ++*slot);
        trp_ref ref = { TRPI_NODE_SELF, *slot, 0, 0 };
        const trp_behaviour *behaviour;

        if (cell == NULL) {
            continue;
        }
        ref.generation = atomic_load_explicit(&cell->generation, memory_order_acquire);
        behaviour = (ref.generation & 1u) == 0 ? NULL : trpi_look_behaviour(cell, ref.generation);
        if (behaviour != NULL && trpi_upgrade_is_older(upgrade, behaviour) &&
            !fn(arg, ref, behaviour)) {
            return false;
        }
    }
    return true;
}

typedef struct check {
    const trpi_upgrade *upgrade;
    char *why;
    size_t why_bytes;
} check;

static bool
check_one(void *arg, trp_ref ref, const trp_behaviour *old)
{
    const check *c = arg;
    const trpi_upgrade_row *row = trpi_upgrade_row_of(c->upgrade, old->name);
    const trp_behaviour *new = row == NULL ? NULL : row->change.behaviour;

    (void)ref;
    if (row == NULL) {
        return true; /* it keeps its code, and is listed */
    }
    if ((new->mailbox_requirement & ~old->mailbox_requirement) != 0) {
        (void)snprintf(c->why, c->why_bytes,
                       "behaviour %.128s: the new version needs another mailbox than its actors "
                       "have",
                       old->name);
        return false;
    }
    if (row->recovers || row->change.change != NULL || is_same_layout(old, new)) {
        return true;
    }
    (void)snprintf(c->why, c->why_bytes,
                   "behaviour %.128s: version %u with a state of %u bytes cannot become version %u "
                   "with %u bytes without a code_change",
                   old->name, old->version, old->state_bytes, new->version, new->state_bytes);
    return false;
}

trp_err
trpi_upgrade_check(trp_system *system, const trpi_upgrade *upgrade, char *why, size_t why_bytes)
{
    check c = { upgrade, why, why_bytes };
    uint32_t slot = 0;

    return older_visit(system, upgrade, &slot, check_one, &c) ? TRP_OK : TRP_EUNSUPPORTED;
}

typedef struct run {
    trp_system *system;
    const trpi_upgrade *upgrade;
    uint64_t deadline_ns;
    trpi_upgrade_kept_fn kept_fn;
    trpi_upgrade_wanted_fn wanted_fn; /* NULL: it is */
    void *arg;
    trpi_ref_map kept; /* actors that are not asked again */
    uint32_t slot;     /* where the next pass begins */
    job *job;          /* of this pass */
    trpi_upgraded sum;
} run;

static bool
order_add(void *arg, trp_ref ref, const trp_behaviour *behaviour)
{
    run *r = arg;

    (void)behaviour;
    if (trpi_ref_map_find(&r->kept, ref) == NULL) {
        r->job->orders[r->job->count++] = (order){ ref, WAITING, NULL };
    }
    return r->job->count < PASS_ACTORS_MAX;
}

static bool
pass_is_over(void *arg)
{
    const job *j = arg;

    return j->open == 0;
}

static bool
none_runs(void *arg)
{
    const job *j = arg;

    return j->running == 0;
}

static void
orders_send(run *r)
{
    job *j = r->job;
    trp_ctx *ctx = trpi_enter(r->system);

    j->refs = j->count + 1;
    j->open = j->count;
    for (uint32_t i = 0; i < j->count; i++) {
        trpi_sys_to(ctx, j->orders[i].ref, TRPI_SYS_UPGRADE, 0, nobody, i, j);
    }
    trpi_leave(ctx);
}

/* Wait until done, until_ns, or the deadline, which is now when the upgrade is no longer wanted.
 * With the lock of the job, which is given up while the caller is asked. */
static void
job_wait(run *r, trpi_done_fn done, uint64_t until_ns)
{
    trpi_cond *cond = &r->job->cond;
    uint64_t now_ns = trpi_world_mono_ns(r->system->world);

    while (r->wanted_fn != NULL && !done(r->job) && now_ns < until_ns && now_ns < r->deadline_ns) {
        uint64_t look_ns = now_ns + (uint64_t)WANTED_LOOK_MS * 1000000u;

        (void)trpi_cond_wait(cond, r->system->sched, done, r->job,
                             look_ns < until_ns ? look_ns : until_ns);
        pthread_mutex_unlock(&cond->lock);
        now_ns = trpi_world_mono_ns(r->system->world);
        if (!r->wanted_fn(r->arg) && now_ns < r->deadline_ns) {
            r->deadline_ns = now_ns;
        }
        pthread_mutex_lock(&cond->lock);
    }
    if (r->wanted_fn == NULL) {
        (void)trpi_cond_wait(cond, r->system->sched, done, r->job, until_ns);
    }
}

static void
orders_wait(run *r)
{
    uint64_t now_ns = trpi_world_mono_ns(r->system->world);
    uint64_t left_ns = now_ns < r->deadline_ns ? r->deadline_ns - now_ns : 0;
    job *j = r->job;

    pthread_mutex_lock(&j->cond.lock);
    job_wait(r, pass_is_over, now_ns + left_ns / PASSES_PATIENCE);
    j->over = true; /* upgrade-W3 */
    job_wait(r, none_runs, r->deadline_ns);
    pthread_mutex_unlock(&j->cond.lock);
}

static void
kept_add(run *r, const order *o, const char *why)
{
    char path[TRP_PATH_BYTES_MAX + 1];

    /* without memory it may be asked again, and be listed twice */
    (void)trpi_ref_map_put(&r->kept, o->ref, NULL);
    trpi_path_local(r->system, o->ref, path, sizeof path);
    r->sum.kept++;
    r->kept_fn(r->arg, path, o->why != NULL ? o->why : why);
}

/* Sum up what became of the orders. Return how many are to be asked again. */
static uint32_t
orders_take(run *r, bool last)
{
    uint32_t again = 0;

    for (uint32_t i = 0; i < r->job->count; i++) {
        const order *o = &r->job->orders[i];

        if (o->state == CHANGED) {
            r->sum.changed++;
        } else if (o->state == FAILED) {
            kept_add(r, o, "it could not change");
        } else if (o->state == RUNNING) { /* the deadline is over */
            kept_add(r, o,
                     "its code_change has not returned in time, and the actor stands still until "
                     "it does: it has the newer code then, or keeps its own");
        } else if (o->state != GONE && last) {
            kept_add(r, o, o->state == BUSY ? "it is busy" : "its turn has not ended in time");
        } else if (o->state != GONE) {
            again++;
        }
    }
    return again;
}

static bool
pause_is_over(void *arg)
{
    (void)arg;
    return false;
}

static void *
copy_of(const void *from, size_t bytes)
{
    void *copy = trpi_alloc(bytes + 1);

    return copy == NULL || bytes == 0 ? copy : memcpy(copy, from, bytes);
}

/* NULL: out of memory. */
static job *
job_new(const trpi_upgrade *upgrade)
{
    job *j = trpi_alloc(sizeof *j + PASS_ACTORS_MAX * sizeof j->orders[0]);

    if (j == NULL) {
        return NULL;
    }
    trpi_cond_init(&j->cond);
    j->refs = 1;
    j->upgrade = *upgrade;
    j->upgrade.rows = copy_of(upgrade->rows, upgrade->rows_count * sizeof upgrade->rows[0]);
    j->upgrade.codes = copy_of(upgrade->codes, upgrade->codes_count * sizeof upgrade->codes[0]);
    if (j->upgrade.rows == NULL || j->upgrade.codes == NULL) {
        pthread_mutex_lock(&j->cond.lock);
        unref_locked(j);
        return NULL;
    }
    return j;
}

/* Order a change of as many actors as a pass has, and wait for it. *ret_found: whether there were
 * any. Errors: TRP_ENOMEM. */
static trp_err
pass_run(run *r, bool *ret_found)
{
    uint64_t pause_ns = (uint64_t)BUSY_PAUSE_MS * 1000000u, now_ns;
    bool whole = r->slot == 0;
    uint32_t again;
    job *j = job_new(r->upgrade);

    if (j == NULL) {
        return TRP_ENOMEM;
    }
    r->job = j;
    if (older_visit(r->system, r->upgrade, &r->slot, order_add, r)) {
        r->slot = 0; /* the next one begins anew */
    } else {
        whole = false;
    }
    *ret_found = j->count > 0 || !whole;
    orders_send(r);
    orders_wait(r);
    now_ns = trpi_world_mono_ns(r->system->world);
    again = orders_take(r, now_ns + pause_ns >= r->deadline_ns);
    pthread_mutex_lock(&j->cond.lock);
    if (again > 0 && again == j->count) { /* none has changed: give them time */
        job_wait(r, pause_is_over, now_ns + pause_ns);
    }
    unref_locked(j);
    return TRP_OK;
}

trp_err
trpi_upgrade_run(trp_system *system, const trpi_upgrade *upgrade, uint64_t deadline_ns,
                 trpi_upgrade_kept_fn kept, trpi_upgrade_wanted_fn wanted, void *arg,
                 trpi_upgraded *ret_upgraded)
{
    run r = { .system = system,
              .upgrade = upgrade,
              .deadline_ns = deadline_ns,
              .kept_fn = kept,
              .wanted_fn = wanted,
              .arg = arg };
    bool found = true;
    trp_err err = trpi_versions_add(system, upgrade);

    while (err == TRP_OK && found) {
        err = pass_run(&r, &found);
    }
    if (err == TRP_OK) {
        *ret_upgraded = r.sum;
    }
    trpi_ref_map_fini(&r.kept);
    return err;
}
