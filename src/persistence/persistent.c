/* persistent.c - a persistent actor: its start, its commands, its stash and its end.
 *
 * Why.     State must survive its actor. A command is handled when the state is complete and no
 *          earlier command waits for the journal; others are kept, in order.
 * Shape.   spawn -> WAITS (for its turn) -> CLAIMS -> LOADS -> REPLAYS -> READY
 *                                    any error of the journal -> ENDED -> the supervisor
 *          READY: command -> fresh -> pending -> flight -> answer -> event -> callback.
 * Must hold.
 *   persistent-E1  Commands are handled in the order in which they came: while one is kept, all
 *       that come are. (trp_persistent_receive)
 *   persistent-E2  What a command that fails has persisted is forgotten. (fresh)
 *   persistent-E3  An actor whose event or callback has failed is not resumed: its state is not
 *       what the journal says. (is_broken)
 *   persistent-E4  The block ends with the instance; messages that are kept go in front of the
 *       mailbox: the next instance handles them first, or they are dead letters. (block_end)
 * Limits.  stash_msgs_max, pending_max; a slice of DRAIN_MAX kept commands before others get the
 *          thread.
 * Tests.   tests/unit/persistence/persistent_test.c
 * Sources. A4J-14, A4J-18, A4J-28; Akka Persistence.
 */
#include "persistence/persistent.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

#define DRAIN_MAX 100u

/* ---- kept commands --------------------------------------------------------------------------- */

void
trpi_kept_unref(trpi_kept *kept)
{
    if (kept != NULL && atomic_fetch_sub_explicit(&kept->refs, 1, memory_order_acq_rel) == 1) {
        trpi_msg_drop(kept->msg);
        trpi_trail_free(kept->trail);
        trpi_free(kept);
    }
}

trpi_persistent *
trpi_persistent_get(const trp_ctx *ctx)
{
    const trp_persistent_state *state =
        ctx != NULL && trpi_behaviour_is_persistent(trpi_ctx_behaviour(ctx)) ? trp_state(ctx)
                                                                             : NULL;

    return state == NULL ? NULL : state->priv;
}

bool
trpi_persistent_is_busy(const void *state)
{
    const trpi_persistent *p = ((const trp_persistent_state *)state)->priv;

    return p != NULL && (p->phase != TRPI_PHASE_READY || p->in_flight > 0 || p->stash_count > 0 ||
                         p->pending.count > 0 || p->applying != NULL || p->flight != NULL);
}

static uint32_t
or_default(uint32_t given, uint32_t otherwise)
{
    return given != 0 ? given : otherwise;
}

static trp_err
stash_refuse(trp_ctx *ctx, const trpi_persistent *p, const trp_msg *msg, trp_dead_reason reason)
{
    if (reason == TRP_DEAD_STASH_FULL && p->what->stash_quiet == 0 &&
        !trp_ref_is_none(trp_sender(ctx))) {
        trp_reply_failure(ctx, TRP_EAGAIN,
                          p->phase == TRPI_PHASE_READY
                              ? "the actor waits for its journal, and its stash is full"
                              : "the actor recovers, and its stash is full");
    }
    trpi_dead(ctx, trp_self(ctx), msg, reason);
    return TRP_OK;
}

/* Keep a command until its turn has come (persistent-E1). */
static trp_err
stash_put(trp_ctx *ctx, trpi_persistent *p, const trp_msg *msg)
{
    if (p->stash_count >= or_default(p->what->stash_msgs_max, TRP_PERSISTENT_STASH_DEFAULT) &&
        !trp_msg_is(msg, &trpi_behind_type)) {
        return stash_refuse(ctx, p, msg, TRP_DEAD_STASH_FULL);
    }
    trpi_kept *kept = trpi_alloc(sizeof *kept);
    if (kept == NULL || trp_msg_dup(msg, &kept->msg) != TRP_OK) {
        trpi_free(kept);
        return stash_refuse(ctx, p, msg, TRP_DEAD_NO_MEMORY);
    }
    trpi_msg_told_as(kept->msg, msg);
    kept->trail = trpi_trail_keep();
    atomic_init(&kept->refs, 1);
    if (p->stash == NULL) {
        p->stash = kept;
    } else {
        p->stash_last->next = kept;
    }
    p->stash_last = kept;
    p->stash_count++;
    return TRP_OK;
}

static trpi_kept *
stash_take(trpi_persistent *p)
{
    trpi_kept *kept = p->stash;

    if (kept != NULL) {
        p->stash = kept->next;
        p->stash_count--;
    }
    return kept;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void
block_end(void *arg) /* persistent-E4 */
{
    trpi_persistent *p = arg;
    trp_ctx *ctx = trpi_enter(p->system);
    trpi_kept *kept;

    trpi_recovery_leave(p->persistence, p->system, p->recovery);
    if (p->applying == NULL) { /* else it is the group's */
        trpi_kept_unref(p->current);
    }
    while ((kept = stash_take(p)) != NULL) {
        trp_msg *msg = trpi_trail_again(ctx, kept->trail, kept->msg);

        kept->msg = NULL;
        trpi_kept_unref(kept);
        trpi_front_keep(ctx, msg);
    }
    trpi_leave(ctx);
    trpi_groups_drop(&p->fresh);
    trpi_groups_drop(&p->pending);
    trpi_group_free(p->applying);
    trpi_msg_drop(p->replayed);
    trpi_free(p->snapshots);
    trpi_unconfirmed_fini(&p->deliveries);
    trpi_free(p);
}

void
trpi_persistent_end(trp_ctx *ctx, trpi_persistent *p, const trp_msg *event, trp_err err,
                    const char *format, ...)
{
    char why[TRP_JOURNAL_WHY_BYTES];
    bool recovers = p->phase < TRPI_PHASE_READY;
    trpi_kept *kept;
    va_list list;

    va_start(list, format);
    (void)vsnprintf(why, sizeof why, format, list); /* cut is fine */
    va_end(list);
    p->phase = TRPI_PHASE_ENDED;
    p->at = TRPI_AT_EVENT; /* a hook that jumps ends it, too */
    trpi_recovery_leave(p->persistence, p->system, p->recovery);
    p->recovery = NULL;
    while (recovers && (kept = stash_take(p)) != NULL) {
        trpi_dead(ctx, trp_self(ctx), kept->msg, TRP_DEAD_RECOVERY);
        trpi_kept_unref(kept);
    }
    if (p->what->failed != NULL) {
        p->what->failed(ctx, p->state, event, err, why);
    }
    trpi_fail_as(ctx, err, "%s", why);
}

/* ---- the start ------------------------------------------------------------------------------- */

static trp_err
events_register(const trp_protocol *const *events)
{
    trp_err err = TRP_OK;

    for (; events != NULL && *events != NULL && err == TRP_OK; events++) {
        err = trp_protocol_register(*events);
    }
    return err;
}

static bool
is_complete(const trp_persistent *what)
{
    return what->size == sizeof(trp_persistent) && what->command != NULL && what->event != NULL &&
           what->behaviour.state_bytes >= sizeof(trp_persistent_state) &&
           what->snapshots_keep <= TRP_PERSISTENT_SNAPSHOTS_MAX &&
           (what->snapshot_every == 0 || (what->snapshot != NULL && what->restore != NULL));
}

static trpi_persistent *
block_new(trp_ctx *ctx, void *state, const trp_persistent_start *how)
{
    const char *scope = how->scope[0] != '\0' ? how->scope : how->id;
    size_t id_bytes = strlen(how->id) + 1, scope_bytes = strlen(scope) + 1;
    trpi_persistent *p = trpi_alloc(sizeof *p + id_bytes + scope_bytes);

    if (p == NULL) {
        return NULL;
    }
    p->what = (const trp_persistent *)(const void *)trpi_ctx_behaviour(ctx);
    p->system = trp_ctx_system(ctx);
    p->state = state;
    p->command = p->what->command;
    p->epoch = how->epoch;
    p->to = how->to;
    p->reads_only = how->to != 0;
    p->no_snapshot = how->no_snapshot != 0 || p->what->restore == NULL;
    p->scope_at = (uint16_t)id_bytes;
    memcpy(p->names, how->id, id_bytes);
    memcpy(p->names + id_bytes, scope, scope_bytes);
    return p;
}

/* Fill how: by the owner of the actor, else by its path; then by `start`. */
static trp_err
how_decide(trp_ctx *ctx, void *state, const trp_msg *args, const trp_persistent *what,
           trpi_persistence *persistence, trp_persistent_start *how)
{
    char path[TRP_PATH_BYTES_MAX + 1];

    memset(how, 0, sizeof *how);
    how->size = sizeof *how;
    if (persistence->scope_fn == NULL ||
        !persistence->scope_fn(persistence->scope_arg, ctx, how->id, how->scope, &how->epoch)) {
        (void)trp_path(trp_ctx_system(ctx), trp_self(ctx), path, sizeof path);
        if (strlen(path) < sizeof how->id) {
            memcpy(how->id, path, strlen(path) + 1);
        }
    }
    trp_err err = what->start == NULL ? TRP_OK : what->start(ctx, state, args, how);
    if (err != TRP_OK) {
        return err;
    }
    if (memchr(how->id, 0, sizeof how->id) == NULL ||
        memchr(how->scope, 0, sizeof how->scope) == NULL || how->id[0] == '\0') {
        trpi_fail_as(ctx, TRP_EINVAL,
                     "no persistence id: it is empty, or longer than %d bytes; `start` sets it",
                     TRP_JOURNAL_ID_BYTES_MAX);
    }
    return TRP_OK;
}

trp_err
trp_persistent_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    const trp_persistent *what = (const trp_persistent *)(const void *)trpi_ctx_behaviour(ctx);
    const trp_journal_driver *journal;
    trpi_persistence *persistence = trpi_persistence_of(trp_ctx_system(ctx), &journal);
    trp_persistent_start how;

    if (persistence == NULL) {
        trpi_fail_as(ctx, TRP_ESTATE,
                     "this system has no journal: set persistence.journal, or call "
                     "trp_persistence_start()");
    }
    if (!is_complete(what)) {
        return TRP_EINVAL;
    }
    trp_err err = events_register(what->events);
    err = err != TRP_OK ? err : how_decide(ctx, state, args, what, persistence, &how);
    trpi_persistent *p = err != TRP_OK ? NULL : block_new(ctx, state, &how);
    if (p == NULL) {
        return err != TRP_OK ? err : TRP_ENOMEM;
    }
    p->journal = journal;
    p->persistence = persistence;
    p->instance = atomic_fetch_add_explicit(&persistence->instances, 1, memory_order_relaxed);
    err = trp_defer(ctx, block_end, p);
    if (err != TRP_OK) {
        trpi_free(p);
        return err;
    }
    ((trp_persistent_state *)state)->priv = p;
    err = trpi_recovery_enter(persistence, trp_self(ctx), &p->recovery);
    if (err == TRP_OK && !trpi_recovery_waits(persistence, p->recovery)) {
        trpi_recover_begin(ctx, p);
    }
    return err;
}

/* ---- commands -------------------------------------------------------------------------------- */

static void
behind_drop(void *held)
{
    trpi_behind *behind = held;

    if (!behind->was_reached && behind->gone != NULL) {
        behind->gone(behind->arg);
    }
}

trp_err
trpi_behind_new(void (*reached)(trp_ctx *ctx, void *arg), void (*gone)(void *arg), void *arg,
                trp_msg **ret_msg)
{
    void *held;
    trp_err err =
        trp_msg_new_held(&trpi_behind_type, sizeof(trpi_behind), behind_drop, ret_msg, &held);

    if (err == TRP_OK) {
        *(trpi_behind *)held = (trpi_behind){ reached, gone, arg, false };
    }
    return err;
}

static trp_err
command_run(trp_ctx *ctx, trpi_persistent *p, const trp_msg *msg)
{
    trpi_behind *behind = (trpi_behind *)(uintptr_t)trp_msg_held(msg, &trpi_behind_type);

    if (behind != NULL) {
        behind->was_reached = true;
        behind->reached(ctx, behind->arg);
        return TRP_OK;
    }
    p->at = TRPI_AT_COMMAND;
    trp_err err = p->command(ctx, p->state, msg);
    p->at = TRPI_AT_NONE;
    if (err != TRP_OK && err != TRP_EUNHANDLED) {
        trpi_groups_drop(&p->fresh); /* persistent-E2 */
        return err;
    }
    trpi_fresh_commit(p);
    return err;
}

static void
current_end(trpi_persistent *p)
{
    trpi_kept_unref(p->current);
    p->current = NULL;
}

/* Run the command that is kept as p->current. On a jump it stays there, and ends with p. */
static trp_err
current_run(trp_ctx *ctx, void *arg)
{
    trpi_persistent *p = arg;
    const trp_msg *msg = p->current->msg;
    trp_err err = command_run(ctx, p, msg);

    if (err == TRP_EUNHANDLED) {
        trp_unhandled_msg(ctx, msg);
        err = TRP_OK;
    }
    current_end(p);
    return err;
}

static bool
must_wait(const trpi_persistent *p)
{
    return p->phase != TRPI_PHASE_READY || p->sync_count > 0 || p->fresh.sync_count > 0;
}

void
trpi_persistent_wake(trp_ctx *ctx, trpi_persistent *p)
{
    if (!p->is_woken) {
        p->is_woken = true;
        trp_tell(ctx, trp_self(ctx), &trpi_persistent_type, NULL, 0);
    }
}

trp_err
trpi_persistent_go_on(trp_ctx *ctx, trpi_persistent *p)
{
    trp_err err = trpi_persistent_write(ctx, p);

    for (uint32_t handled = 0; err == TRP_OK && !must_wait(p) && p->stash != NULL; handled++) {
        if (handled == DRAIN_MAX) {
            trpi_persistent_wake(ctx, p);
            break;
        }
        p->current = stash_take(p);
        err = trpi_handle_as(ctx, p->current->msg, p->current->trail, current_run, p);
        err = err == TRP_OK ? trpi_persistent_write(ctx, p) : err;
    }
    return err;
}

trp_err
trpi_persistent_apply(trp_ctx *ctx, trpi_persistent *p, const trp_msg *event)
{
    p->at = TRPI_AT_EVENT;
    p->is_applying = true;
    trp_err err = p->what->event(ctx, p->state, event);
    p->is_applying = false;
    if (err == TRP_OK) {
        p->at = TRPI_AT_NONE;
        if (p->phase == TRPI_PHASE_READY) {
            trpi_deliveries_tell(ctx, p);
        }
    } else if (err == TRP_EUNHANDLED && p->phase == TRPI_PHASE_READY) {
        trpi_fail_as(ctx, TRP_EFAILED, "event %llu of '%s' (type %s) is not handled",
                     (unsigned long long)p->number, p->names, trp_msg_type(event)->name);
    }
    return err;
}

/* The answer of the journal, or a wake-up. */
static trp_err
own_handle(trp_ctx *ctx, trpi_persistent *p, const trp_msg *msg)
{
    trpi_flight *flight = (trpi_flight *)(uintptr_t)trp_msg_held(msg, &trpi_persistent_type);

    if (flight == NULL) {
        p->is_woken = false;
        if (p->phase == TRPI_PHASE_WAITS && !trpi_recovery_waits(p->persistence, p->recovery)) {
            trpi_recover_begin(ctx, p);
        } else if (p->phase > TRPI_PHASE_WAITS && p->phase < TRPI_PHASE_READY &&
                   trp_now_ms(ctx) >= p->until_ms) {
            trpi_persistent_end(
                ctx, p, NULL, TRP_EJOURNAL,
                "the recovery of '%s' stands still: the journal (%s) has not "
                "answered for %u ms",
                p->names, p->journal->name,
                or_default(p->what->recovery_ms, TRP_PERSISTENT_RECOVERY_MS_DEFAULT));
        } else if (p->phase == TRPI_PHASE_READY) {
            p->redelivers = false; /* or it was another wake-up: the timer is set anew */
            trpi_deliveries_tell(ctx, p);
            trpi_fresh_commit(p);
            return trpi_persistent_go_on(ctx, p);
        }
        return TRP_OK;
    }
    if (flight->instance != p->instance) {
        return TRP_OK; /* of the instance before */
    }
    switch (flight->op.kind) {
    case TRP_JOURNAL_APPEND: {
        trp_err err = trpi_persistent_written(ctx, p, flight);
        return err != TRP_OK ? err : trpi_persistent_go_on(ctx, p);
    }
    case TRP_JOURNAL_CLAIM:
    case TRP_JOURNAL_SNAPSHOT_LOAD:
    case TRP_JOURNAL_EVENTS: {
        trp_err err = trpi_recover_answer(ctx, p, flight);
        return err != TRP_OK || p->phase != TRPI_PHASE_READY ? err : trpi_persistent_go_on(ctx, p);
    }
    default:
        trpi_keep_answer(ctx, p, flight);
        return TRP_OK;
    }
}

/* persistent-E3. A function of the program was left by a jump, and the supervisor has resumed. */
static bool
is_broken(trpi_persistent *p)
{
    if (p->at == TRPI_AT_EVENT || p->phase == TRPI_PHASE_ENDED) {
        return true;
    }
    if (p->at == TRPI_AT_COMMAND) {
        p->at = TRPI_AT_NONE;
        trpi_groups_drop(&p->fresh); /* persistent-E2 */
    }
    trpi_kept_unref(p->current);
    p->current = NULL;
    return false;
}

trp_err
trp_persistent_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trpi_persistent *p = ((trp_persistent_state *)state)->priv;

    if (is_broken(p)) {
        p->phase = TRPI_PHASE_ENDED;
        if (!trp_msg_is(msg, &trpi_persistent_type)) {
            trpi_dead(ctx, trp_self(ctx), msg, TRP_DEAD_STOPPED);
        }
        trp_stop(ctx, trp_self(ctx));
        return TRP_OK;
    }
    if (trp_msg_is(msg, &trpi_persistent_type)) {
        return own_handle(ctx, p, msg);
    }
    if (must_wait(p) || p->stash != NULL) {
        return stash_put(ctx, p, msg);
    }
    trp_err err = command_run(ctx, p, msg);
    current_end(p);
    if (err == TRP_OK || err == TRP_EUNHANDLED) {
        trp_err next = trpi_persistent_write(ctx, p);

        err = next != TRP_OK ? next : err;
    }
    return err;
}

/* ---- looking --------------------------------------------------------------------------------- */

trp_err
trp_persistent_become(trp_ctx *ctx, trp_receive_fn command)
{
    trpi_persistent *p = trpi_persistent_get(ctx);

    if (p == NULL || command == NULL) {
        return TRP_EINVAL;
    }
    p->command = command;
    return TRP_OK;
}

uint64_t
trp_persistent_number(const trp_ctx *ctx)
{
    const trpi_persistent *p = trpi_persistent_get(ctx);

    return p == NULL ? 0 : p->number;
}

int
trp_persistent_recovers(const trp_ctx *ctx)
{
    const trpi_persistent *p = trpi_persistent_get(ctx);

    return p != NULL && p->phase < TRPI_PHASE_READY;
}

const char *
trp_persistent_id(const trp_ctx *ctx)
{
    const trpi_persistent *p = trpi_persistent_get(ctx);

    return p == NULL ? NULL : p->names;
}
