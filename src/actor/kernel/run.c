/* run.c - one turn of a cell.
 *
 * Why.     This loop runs for every message: take it, compare a generation, call a function. Rare
 *          cases (start, system messages, failure, stop) cost one test of a byte on the runner's
 *          own cache line, or happen at the ends of the turn.
 * Shape.   turn_begin -> messages -> turn_end: idle | parked | again | deferred
 *            open:    RUNNING and not suspended (deliver), or FREE (all messages left are stale)
 *            closed:  starting, stopping, restarting, recovering, suspended: only system messages
 *                     are handled
 * Must hold.
 *   run-R1  Chains are pushed before the token is given up (tell-H2) and before the turn ends in
 *       any other way.
 *   run-R2  A message is delivered only if its generation is the cell's: the sender's check may be
 *       outdated.
 *   run-R3  After a hook, life, suspended and generation_run are read again.
 *   run-R4  A failure jump loses no system message: those that were taken wait in turn.sys_rest.
 *   run-R5  A sender that tells an overloaded cell is deferred, unless overloaded cells have
 *       handled as many messages as it told (throttle.c): an overloaded cell gets no more than it
 *       handles, but for one turn of each sender in a millisecond.
 *   run-R7  A guarded actor (guard.h) handles a message, its first start included, only after the
 *       guard was asked for this very message.
 *   run-R8  A turn that takes an actor's receive function without asking for the mark BECOME ends
 *       or becomes a general one at the next message when the mark gets another cause: whoever sets
 *       it calls for attention (trpi_receive_mark).
 *   run-R6  A turn that has used up its send budget (TRPI_TOLD_MAX) ends with the present message:
 *       its messages are handled while they are in the cache, and an actor that tells itself to
 *       continue cannot flood others.
 * Limits.  `throughput` messages a turn, sixteen turns in a row for an overloaded cell; a turn also
 *          ends when a sender does not finish its push (it was preempted).
 * Tests.   tests/unit/actor/tell_test.c, life_test.c, tests/stress/churn_test.c
 */
#include <string.h>

#include "actor/kernel/bounded_mailbox.h"
#include "actor/kernel/cells.h"
#include "actor/kernel/dispatcher.h"
#include "actor/kernel/extra.h"
#include "actor/kernel/fault.h"
#include "actor/kernel/guard.h"
#include "actor/kernel/mailbox.h"
#include "actor/kernel/receive.h"
#include "actor/kernel/timed.h"
#include "actor/kernel/stats.h"
#include "actor/kernel/run.h"
#include "actor/kernel/shared_mailbox.h"
#include "base/assert.h"
#include "base/atomics.h"

/* Reads of a half-done push before the turn ends. */
#define NOT_YET_SPINS 200

/* A guarded actor is never open: guard_admits() is asked each time (run-R7). */
static inline bool
is_open(const trpi_cell *cell)
{
    return (cell->life == TRPI_LIFE_RUNNING && cell->suspended == 0 &&
            (cell->marks & TRPI_MARK_GUARDED) == 0) ||
           cell->life == TRPI_LIFE_FREE;
}

/* run-R7 */
static NOINLINE bool
guard_admits(trp_ctx *ctx, const trpi_cell *cell)
{
    return (cell->marks & TRPI_MARK_GUARDED) != 0 && cell->life == TRPI_LIFE_RUNNING &&
           cell->suspended == 0 && trpi_guard_passes(ctx->system->guard);
}

/* Is the cell exempt from run-R2? */
static inline bool
takes_any_generation(const trpi_cell *cell)
{
    return atomic_load_explicit(&cell->kind, RELAXED) == TRPI_KIND_ASSOCIATION;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Handle a message that is not a plain user message of a plain actor. */
static NOINLINE void
handle_special(trp_ctx *ctx, trpi_cell *cell, trp_msg *msg)
{
    /* marks-K1: the mark of an incarnation that had this slot before an association (run-R2) */
    if (trpi_cell_is_special(cell) && msg->priv_type != TRPI_TYPE_MARK) {
        cell->ops->deliver(ctx, cell, msg);
    } else {
        ctx->system->hooks->automatic(ctx, cell, msg);
    }
}

static NOINLINE void
handle_stale(trp_ctx *ctx, trpi_cell *cell, trp_msg *msg)
{
    trp_ref to = { TRPI_NODE_SELF, trpi_cell_slot(cell), msg->priv_to_generation, 0 };

    if ((msg->priv_from_node_flags & TRPI_MSG_ENTITY) != 0 && trpi_entity_left(ctx, to, msg)) {
        return;
    }
    /* STOPPED: told to the incarnation that has just ended; STALE: to an earlier one */
    trpi_dead(ctx, to, msg,
              cell->life == TRPI_LIFE_FREE && msg->priv_to_generation + 1 == cell->generation_run
                  ? TRP_DEAD_STOPPED
                  : TRP_DEAD_STALE);
}

/* Handle all system messages, then one message of the front queue. */
static NOINLINE void
handle_attention(trp_ctx *ctx, trpi_cell *cell)
{
    if (ctx->turn.sys_rest == NULL) {
        ctx->turn.sys_rest = trpi_mailbox_take_system(cell);
    }
    while (ctx->turn.sys_rest != NULL) {
        trpi_sysmsg *sysmsg = ctx->turn.sys_rest;

        ctx->turn.sys_rest = sysmsg->next; /* run-R4 */
        if (sysmsg->to_generation == cell->generation_run && cell->life != TRPI_LIFE_FREE &&
            !trpi_cell_is_special(cell)) {
            ctx->system->hooks->order(ctx, cell, sysmsg);
        } else if (sysmsg->to_generation != cell->generation_run || cell->life == TRPI_LIFE_FREE ||
                   cell->ops->system == NULL || !cell->ops->system(ctx, cell, sysmsg)) {
            ctx->system->hooks->order_stale(ctx, cell, trpi_cell_slot(cell), sysmsg);
        }
        trpi_line_free(ctx->cache, sysmsg);
    }
    ctx->turn.sys_pending = false;
    if ((cell->marks & TRPI_MARK_FRONT) != 0 && cell->life != TRPI_LIFE_FREE &&
        (is_open(cell) || guard_admits(ctx, cell))) {
        trp_msg *msg = ctx->system->hooks->front(ctx, cell);

        if ((cell->marks & TRPI_MARK_FRONT) != 0) {
            trpi_run_attention(cell);
        }
        if (msg != NULL) {
            ctx->turn.left--;
            cell->processed++;
            if (msg->priv_type < TRPI_TYPE_AUTO_END) {
                ctx->msg = msg;
                ctx->system->hooks->automatic(ctx, cell, msg);
            } else {
                trpi_run_receive(ctx, cell, msg);
            }
            ctx->msg = NULL;
            trpi_msg_free(ctx->cache, msg);
        }
    }
}

/* ---- the turn -------------------------------------------------------------------------------- */

static inline void
turn_finish(trp_ctx *ctx, uint64_t processed)
{
    if (UNLIKELY(ctx->chains_open != 0)) {
        trpi_chains_flush(ctx); /* run-R1 */
    }
    if (processed != ctx->turn.processed) {
        trpi_count(ctx, &ctx->stats->processed, processed - ctx->turn.processed);
    }
    if (UNLIKELY(ctx->turn.draining) && ctx->worker != NULL) {
        trpi_count(ctx, &ctx->drained, processed - ctx->turn.processed);
    }
    if (UNLIKELY(ctx->reserve_count < TRPI_SYSMSG_RESERVE)) {
        trpi_reserve_fill(ctx);
    }
}

/* End a turn with the mailbox closed; messages may be left. IDLE: the token was given up. */
static trpi_run_result
turn_park(trp_ctx *ctx, trpi_cell *cell)
{
    trpi_assert_hot_check(trpi_mailbox_check, cell);
    turn_finish(ctx, cell->processed);
    ctx->turn.processed = cell->processed;
    trpi_mailbox_park(cell);
    /* seq_cst: mailbox-M3 */
    if (atomic_load_explicit(&cell->sys_head, memory_order_seq_cst) != NULL &&
        trpi_mailbox_claim(cell)) {
        return TRPI_RUN_AGAIN;
    }
    return TRPI_RUN_IDLE;
}

enum idle { IDLE_GIVEN, IDLE_KEPT, IDLE_TAKEN_BACK };

/* Give the token up. KEPT: a message came meanwhile, the turn goes on. TAKEN_BACK: a system message
 * came after the token was given up; in between other threads may have run the cell, even as
 * another incarnation, so this turn is over. */
static enum idle
turn_go_idle(trp_ctx *ctx, trpi_cell *cell)
{
    bool release = (cell->marks & TRPI_MARK_ORPHAN) != 0 && cell->life == TRPI_LIFE_FREE;
    uint32_t slot = trpi_cell_slot(cell);
    trp_msg *done;

    trpi_assert_hot_check(trpi_mailbox_check, cell);
    if (UNLIKELY(atomic_load_explicit(&cell->overloaded, RELAXED) != 0) &&
        !trpi_cell_is_special(cell)) {
        atomic_store_explicit(&cell->overloaded, 0, RELAXED); /* other kinds set it in turn_end */
        ctx->turn.overload_turns = 0;
    }
    turn_finish(ctx, cell->processed);
    ctx->turn.processed = cell->processed;
    if (UNLIKELY(release)) {
        cell->marks &= (uint8_t)~TRPI_MARK_ORPHAN; /* once (conflict C1) */
    }
    if (!trpi_mailbox_go_idle(cell, &done)) {
        if (release) {
            cell->marks |= TRPI_MARK_ORPHAN;
        }
        return IDLE_KEPT;
    }
    if (done != NULL) {
        trpi_msg_free(ctx->cache, done);
        if (UNLIKELY(ctx->chains_open != 0)) {
            trpi_chains_flush(ctx); /* run-R1: what it held has told somebody */
        }
    }
    if (UNLIKELY(release)) {
        trpi_slot_release(ctx, slot);
    }
    /* seq_cst: mailbox-M3 */
    if (UNLIKELY(atomic_load_explicit(&cell->sys_head, memory_order_seq_cst) != NULL) &&
        trpi_mailbox_claim(cell)) {
        return IDLE_TAKEN_BACK;
    }
    return IDLE_GIVEN;
}

/* The queue is empty. A plain turn that handled a message may retain the token, since its peer may
 * answer at once. (As turn_finish(), without its cases that cannot occur here.) */
static inline bool
turn_retain(trp_ctx *ctx, trpi_cell *cell)
{
    uint64_t handled = cell->processed - ctx->turn.processed;

    if (handled == 0 || ctx->handoff_slot == TRPI_HANDOFF_OFF) {
        return false;
    }
    if (UNLIKELY(ctx->chains_open != 0)) {
        trpi_chains_flush(ctx); /* run-R1 */
        if (trpi_mailbox_has_more(cell)) {
            return false; /* it told itself: the turn goes on */
        }
    }
    /* one writer: relaxed, as trpi_count() does on a worker; only workers retain */
    atomic_store_explicit(&ctx->own_stats.processed,
                          atomic_load_explicit(&ctx->own_stats.processed, RELAXED) + handled,
                          RELAXED);
    if (UNLIKELY(ctx->reserve_count < TRPI_SYSMSG_RESERVE)) {
        trpi_reserve_fill(ctx);
    }
    return true;
}

/* The same for a bounded mailbox: a member of a shared one takes no message for now. */
static trpi_run_result
turn_park_bounded(trp_ctx *ctx, trpi_cell *cell)
{
    trpi_bounded_mailbox *member = trpi_shared_member(cell);

    if (member != NULL) {
        trpi_shared_step_back(ctx, member);
    }
    return turn_park(ctx, cell);
}

/* The same for a bounded mailbox: was a member of a shared one woken before it gave its token up?
 * (shared-mailbox-T2) */
static enum idle
turn_go_idle_bounded(trp_ctx *ctx, trpi_cell *cell)
{
    const trpi_bounded_mailbox *member =
        trpi_shared_member(cell); /* bounded-mailbox-B5: until this run ends */
    enum idle idle = turn_go_idle(ctx, cell);

    return idle == IDLE_GIVEN && member != NULL && trpi_shared_is_unlisted(member) &&
                   trpi_mailbox_claim(cell)
               ? IDLE_TAKEN_BACK
               : idle;
}

static trpi_run_result
turn_defer(trp_ctx *ctx, uint16_t home)
{
    if (ctx->worker == NULL) { /* nested_turn.c: this thread has no queue of deferred tasks */
        return TRPI_RUN_AGAIN;
    }
    trpi_worker_defer_to(ctx->worker, home);
    return TRPI_RUN_DEFER;
}

/* With a deadline the loop treats each message as a turn. true: there is time for one more. */
static bool
turn_has_time(trp_ctx *ctx)
{
    if (ctx->turn.rest == 0 || ctx->turn.throttled ||
        trpi_world_mono_ns(ctx->system->world) >= ctx->turn.until_ns) {
        return false;
    }
    ctx->turn.rest--;
    ctx->turn.left = 0;
    return true;
}

static bool
backlog_has_many(trpi_cell *cell)
{
    return trpi_mailbox_has_many(cell) ||
           (UNLIKELY(trpi_ops_are_bounded(cell->ops)) && trpi_bounded_has_many(cell));
}

/* End a turn with messages left. */
static trpi_run_result
turn_again(trp_ctx *ctx, trpi_cell *cell)
{
    bool overloaded = atomic_load_explicit(&cell->overloaded, RELAXED) != 0;
    /* it handled all messages of a turn without running empty */
    bool full = cell->processed - ctx->turn.processed > ctx->turn.more;

    turn_finish(ctx, cell->processed);
    if (overloaded ? !trpi_cell_is_special(cell) && !backlog_has_many(cell)
                   : full && backlog_has_many(cell)) {
        overloaded = !overloaded;
        atomic_store_explicit(&cell->overloaded, overloaded, RELAXED);
    }
    if (UNLIKELY(atomic_load_explicit(&cell->overloaded, RELAXED) == TRPI_OVERLOADED_OUTSIDE)) {
        /* A proxy whose network is slow: it could only drop messages now. Its senders wait too. */
        return turn_defer(ctx, TRPI_DEFER_HOLD);
    }
    if (UNLIKELY(ctx->turn.full_mailbox.generation != 0) && trpi_bounded_wait(ctx, cell)) {
        return TRPI_RUN_IDLE; /* the task waits in the full mailbox */
    }
    if (ctx->turn.throttled &&
        !overloaded) { /* an overloaded cell is never deferred: no deadlock */
        return turn_defer(ctx, ctx->turn.throttled_home);
    }
    if (overloaded && !ctx->turn.throttled && ++ctx->turn.overload_turns < TRPI_OVERLOAD_TURNS) {
        return TRPI_RUN_CONTINUE;
    }
    ctx->turn.overload_turns = 0;
    return TRPI_RUN_AGAIN;
}

static void
turn_end_of_kind(trp_ctx *ctx, trpi_cell *cell)
{
    if (cell->ops != NULL && cell->ops->turn_end != NULL) {
        uint8_t overloaded = cell->ops->turn_end(ctx, cell) ? TRPI_OVERLOADED_OUTSIDE : 0;

        atomic_store_explicit(&cell->overloaded, overloaded, RELAXED);
    }
}

/* Is it closed by nothing but the guard? */
static inline bool
waits_for_guard(const trpi_cell *cell)
{
    return (cell->marks & TRPI_MARK_GUARDED) != 0 && cell->suspended == 0 &&
           (cell->life == TRPI_LIFE_RUNNING || cell->life == TRPI_LIFE_STARTING);
}

/* The cell is closed, or guarded. true: it takes its next message all the same. */
static NOINLINE bool
turn_closed(trp_ctx *ctx, trpi_cell *cell, bool bounded, trpi_run_result *ret_result)
{
    bool guarded;

    while (guard_admits(ctx, cell)) {
        if ((cell->marks & TRPI_MARK_FRONT) == 0) {
            return true;
        }
        do { /* front messages come before the mailbox */
            handle_attention(ctx, cell);
        } while (ctx->turn.sys_rest != NULL);
        if (ctx->turn.throttled || (ctx->turn.left < 0 && !turn_has_time(ctx))) {
            *ret_result = turn_again(ctx, cell);
            return false;
        }
    }
    if (is_open(cell)) {
        return true; /* it has ended */
    }
    guarded = waits_for_guard(cell);
    *ret_result = bounded ? turn_park_bounded(ctx, cell) : turn_park(ctx, cell);
    if (guarded && *ret_result == TRPI_RUN_IDLE && trpi_guard_is_open(ctx->system->guard) &&
        trpi_mailbox_claim(cell)) { /* guard-U2 */
        *ret_result = TRPI_RUN_AGAIN;
    }
    return false;
}

static trpi_run_result
turn_over(trp_ctx *ctx, trpi_cell *cell, bool of_kind)
{
    if (of_kind) {
        turn_end_of_kind(ctx, cell);
    }
    return turn_again(ctx, cell);
}

/* Wait briefly until a half-done push is finished. true: it is. */
static NOINLINE bool
wait_for_link(trpi_cell *cell)
{
    for (int i = 0; i < NOT_YET_SPINS; i++) {
        if (trpi_msg_next(cell->tail) != NULL) {
            return true;
        }
        trpi_cpu_relax();
    }
    return false;
}

/* PLAIN is ANY under the conditions of trpi_cell_runs_all(), left when they may have changed.
 * SAMPLED is PLAIN for an actor whose mark BECOME stands for its sampling alone (run-R8). */
enum turn_mode { TURN_PLAIN, TURN_SAMPLED, TURN_ANY, TURN_BOUNDED };

/* Handle one message of this incarnation. true: a hook ran (run-R3). */
static inline __attribute__((always_inline)) bool
turn_message(trp_ctx *ctx, trpi_cell *cell, trp_msg *msg, bool of_kind, const enum turn_mode mode)
{
    bool hooked = false;

    ctx->msg = msg;
    cell->processed++;
    if (UNLIKELY(of_kind || msg->priv_type < TRPI_TYPE_AUTO_END)) {
        handle_special(ctx, cell, msg);
        hooked = true;
    } else if (UNLIKELY((msg->priv_from_node_flags & TRPI_MSG_TRAILER) != 0)) {
        trpi_run_receive(ctx, cell, msg);
        hooked = true;
    } else {
        trp_err err = trpi_receive_call(ctx, cell, msg, mode >= TURN_ANY);

        if (UNLIKELY(err != TRP_OK ||
                     (cell->marks & (mode == TURN_PLAIN ? TRPI_MARK_BECOME | TRPI_MARK_TIMEOUT
                                                        : TRPI_MARK_TIMEOUT)) != 0)) {
            trpi_receive_done(ctx, cell, msg, err);
            hooked = true;
        }
    }
    ctx->msg = NULL;
    return hooked;
}

/* The turn has handled its number of messages, or told an overloaded cell: does it go on? */
static bool
turn_goes_on(trp_ctx *ctx, trpi_cell *cell)
{
    return ctx->turn.sys_rest != NULL || /* a system message to itself comes first */
           (ctx->turn.throttled && ctx->turn.left >= 0 && trpi_run_throttle_waived(ctx, cell)) ||
           turn_has_time(ctx);
}

static trpi_run_result turn_continue(trp_ctx *ctx, trpi_cell *cell);

/* Continue a plain turn after a hook ran for the last message. */
static NOINLINE trpi_run_result
turn_hooked(trp_ctx *ctx, trpi_cell *cell)
{
    if ((--ctx->turn.left < 0 || ctx->turn.interrupted != 0) && !turn_goes_on(ctx, cell)) {
        return turn_again(ctx, cell);
    }
    return turn_continue(ctx, cell);
}

/* The queue is empty. true: the turn is over with this result; false: a message came. */
static inline __attribute__((always_inline)) bool
turn_empty(trp_ctx *ctx, trpi_cell *cell, bool of_kind, const enum turn_mode mode,
           trpi_run_result *ret_result)
{
    bool no_work = ctx->handoff_slot != TRPI_HANDOFF_OFF && cell->processed == ctx->turn.processed;
    enum idle idle;

    if (mode == TURN_PLAIN && LIKELY(turn_retain(ctx, cell))) {
        *ret_result = TRPI_RUN_RETAINED;
        return true;
    }
    if (of_kind) {
        turn_end_of_kind(ctx, cell);
    }
    idle = mode == TURN_BOUNDED ? turn_go_idle_bounded(ctx, cell) : turn_go_idle(ctx, cell);
    *ret_result = idle != IDLE_GIVEN ? TRPI_RUN_AGAIN : no_work ? TRPI_RUN_NO_WORK : TRPI_RUN_IDLE;
    return idle != IDLE_KEPT;
}

static inline __attribute__((always_inline)) trpi_take
turn_take(trp_ctx *ctx, trpi_cell *cell, const enum turn_mode mode, trp_msg **ret_msg)
{
    trp_msg *done = NULL;
    trpi_take taken;

    if (mode == TURN_BOUNDED) {
        return trpi_bounded_take(ctx, cell, ret_msg);
    }
    taken = mode < TURN_ANY ? trpi_mailbox_take_next(cell, ret_msg, &done)
                            : trpi_mailbox_take(cell, ret_msg, &done);
    if (done != NULL) {
        trpi_msg_free(ctx->cache, done);
    }
    return taken;
}

/* Run one turn of a cell: system messages first, then messages until none is left or the turn has
 * used up its number or time (ctx->turn.left). Compiled once for each mode; TURN_PLAIN and
 * TURN_SAMPLED leave rare cases to the general form (turn_continue). */
static inline __attribute__((always_inline)) trpi_run_result
turn_loop(trp_ctx *ctx, trpi_cell *cell, const enum turn_mode mode)
{
    const bool plain = mode < TURN_ANY;
    bool of_kind = !plain && trpi_cell_is_special(cell), open = plain || is_open(cell);
    bool any_generation = !plain && takes_any_generation(cell);
    trpi_run_result result;
    trpi_take taken;
    trp_msg *msg = NULL; /* for gcc -O1, which does not see that each label has one */

    if (plain) { /* trpi_cell_runs_all() has just checked for system messages */
        if (trpi_mailbox_has_direct(cell)) { /* first; there is no other while the cell runs */
            msg = trpi_mailbox_take_direct(cell);
            goto taken;
        }
        goto take;
    }
    for (;;) {
        /* relaxed: set by the sender of a system message; mailbox-M3 covers a late read */
        if (UNLIKELY(atomic_load_explicit(&cell->attention, RELAXED) != 0 ||
                     (!plain && ctx->turn.sys_rest != NULL))) {
            if (plain) {
                return turn_continue(ctx, cell);
            }
            handle_attention(ctx, cell);
            open = is_open(cell); /* run-R3 */
            of_kind = trpi_cell_is_special(cell);
            if (UNLIKELY(ctx->turn.sys_rest != NULL)) {
                continue; /* a front message told the cell itself a system message */
            }
            if (ctx->turn.throttled || (ctx->turn.left < 0 && !turn_has_time(ctx))) {
                return turn_again(ctx, cell);
            }
            if (open && atomic_load_explicit(&cell->attention, RELAXED) != 0) {
                continue; /* more front messages */
            }
        }
        if (UNLIKELY(!open) && !turn_closed(ctx, cell, mode == TURN_BOUNDED, &result)) {
            return result;
        }
    take:
        taken = turn_take(ctx, cell, mode, &msg);
        if (UNLIKELY(taken == TRPI_TAKE_EMPTY)) {
            if (turn_empty(ctx, cell, of_kind, mode, &result)) {
                return result;
            }
            continue;
        }
        if (UNLIKELY(taken == TRPI_TAKE_NOT_YET)) {
            if (wait_for_link(cell)) {
                continue;
            }
            return turn_again(ctx, cell);
        }
    taken:
        if (UNLIKELY(msg->priv_to_generation != cell->generation_run) && !any_generation) {
            handle_stale(ctx, cell, msg);
        } else if (UNLIKELY(turn_message(ctx, cell, msg, of_kind, mode))) {
            if (plain) {
                return turn_hooked(ctx, cell);
            }
            open = is_open(cell); /* run-R3 */
            of_kind = trpi_cell_is_special(cell);
        }
        if (UNLIKELY(--ctx->turn.left < 0 || ctx->turn.interrupted != 0)) {
            if (!turn_goes_on(ctx, cell)) {
                return turn_over(ctx, cell, of_kind);
            }
            if (plain) {
                return turn_continue(ctx, cell);
            }
        }
    }
}

static NOINLINE trpi_run_result
turn_bounded(trp_ctx *ctx, trpi_cell *cell)
{
    trpi_run_result result = turn_loop(ctx, cell, TURN_BOUNDED);

    trpi_bounded_done(ctx);
    return result;
}

/* Continue a turn whose next message may be one that is to be timed (timed.c). */
static NOINLINE trpi_run_result
turn_timed(trp_ctx *ctx, trpi_cell *cell)
{
    uint64_t begun_ns = trpi_timed_begin(ctx, cell);

    return trpi_timed_end(ctx, begun_ns, turn_continue(ctx, cell));
}

static NOINLINE trpi_run_result
turn_continue(trp_ctx *ctx, trpi_cell *cell)
{
    if (UNLIKELY(ctx->timed.slot != 0)) {
        return turn_timed(ctx, cell);
    }
    return UNLIKELY(atomic_load_explicit(&cell->kind, RELAXED) == TRPI_KIND_BOUNDED)
               ? turn_bounded(ctx, cell)
               : turn_loop(ctx, cell, TURN_ANY);
}

/* Is that all that makes the cell not plain, and no turn has more than one message to sample? */
static bool
turn_is_sampled(const trp_ctx *ctx, const trpi_cell *cell)
{
    return cell->extra != NULL && cell->extra->sample_alone &&
           cell->extra->sample_one_in > ctx->turn.more && !ctx->turn.timed &&
           ctx->timed.slot == 0 && ctx->turn.sys_rest == NULL &&
           atomic_load_explicit(&cell->kind, RELAXED) == TRPI_KIND_ACTOR &&
           !trpi_cell_is_special(cell) &&
           trpi_cell_runs(cell, TRPI_MARK_TIMEOUT | TRPI_MARK_GUARDED);
}

/* Run a turn of a sampled actor (life/sample.c): only the first message may begin a trace. */
static NOINLINE trpi_run_result
turn_sampled(trp_ctx *ctx, trpi_cell *cell)
{
    trp_msg *msg;

    if ((int64_t)(cell->processed - cell->extra->sample_at) >= 0) {
        trpi_take taken = turn_take(ctx, cell, TURN_ANY, &msg);

        if (taken == TRPI_TAKE_EMPTY || taken == TRPI_TAKE_NOT_YET) {
            return turn_continue(ctx, cell);
        }
        if (msg->priv_to_generation != cell->generation_run) {
            handle_stale(ctx, cell, msg);
        } else if (turn_message(ctx, cell, msg, false, TURN_ANY)) {
            return turn_hooked(ctx, cell);
        }
        if ((--ctx->turn.left < 0 || ctx->turn.interrupted != 0) && !turn_goes_on(ctx, cell)) {
            return turn_again(ctx, cell);
        }
        if (!turn_is_sampled(ctx, cell)) {
            return turn_continue(ctx, cell);
        }
    }
    return turn_loop(ctx, cell, TURN_SAMPLED);
}

/* Run a turn of a cell that is not plain. */
static NOINLINE trpi_run_result
turn_of_any(trp_ctx *ctx, trpi_cell *cell)
{
    ctx->turn.draining = atomic_load_explicit(&cell->overloaded, RELAXED) != 0;
    if (cell->life == TRPI_LIFE_STARTING &&
        ((cell->marks & TRPI_MARK_GUARDED) == 0 || trpi_guard_starts(ctx->system->guard))) {
        __builtin_prefetch(trpi_mailbox_first(cell)); /* told long ago, needed soon */
        ctx->system->hooks->start(ctx, cell);
    }
    return turn_is_sampled(ctx, cell) ? turn_sampled(ctx, cell) : turn_continue(ctx, cell);
}

static NOINLINE void
turn_begin_unusual(trp_ctx *ctx)
{
    ctx->turn.throttled = ctx->turn.draining = false;
    ctx->turn.throttled_msgs = 0;
    ctx->turn.full_mailbox.generation = 0;
    if (ctx->turn.timed) {
        ctx->turn.rest = ctx->turn.more;
        ctx->turn.left = 0;
        ctx->turn.until_ns = trpi_world_mono_ns(ctx->system->world) + ctx->turn.deadline_ns;
    }
}

/* Set the limits of a turn, and reset the conditions that the previous one left. */
static inline void
turn_begin(trp_ctx *ctx, uint32_t handoff_slot)
{
    ctx->handoff_slot = handoff_slot;
    ctx->turn.send_budget_left = TRPI_TOLD_MAX;
    ctx->turn.left = (int32_t)ctx->turn.more;
    if (UNLIKELY(ctx->turn.unusual != 0)) {
        turn_begin_unusual(ctx);
    }
}

trpi_run_result
trpi_run(void *data, trpi_task *task, uint32_t handoff_slot)
{
    trp_ctx *ctx = data;
    trpi_cell *cell = trpi_cell_of_task(task);
    trpi_run_result result;

    if (UNLIKELY(task->id == 0)) { /* no cell has slot 0 */
        return trpi_run_call(ctx, task);
    }
    /* The compiler forgets that cell derives from task, and keeps one address, not two. */
    __asm__("" : "+r"(cell));
    if (UNLIKELY(atomic_load_explicit(&cell->task.home, RELAXED) != ctx->index)) {
        atomic_store_explicit(&cell->task.home, ctx->index,
                              RELAXED); /* private tasks run at home only */
    }
    ctx->cell = cell;
    trpi_pair_set(&ctx->self.slot, cell->task.id, cell->generation_run);
    if (UNLIKELY(++ctx->run == 0)) { /* wrapped: entries of old runs would look valid */
        memset(ctx->chains, 0, sizeof ctx->chains);
        ctx->run = 1;
    }
    turn_begin(ctx, handoff_slot);
    ctx->turn.processed = cell->processed;
    if (LIKELY(trpi_cell_takes_all(cell) && trpi_cell_runs_all(cell))) {
        result = turn_loop(ctx, cell, TURN_PLAIN);
    } else {
        result = turn_of_any(ctx, cell);
    }
    ctx->cell = NULL;
    return result;
}

trpi_run_result
trpi_run_after_jump(trp_ctx *ctx)
{
    trpi_cell *cell = ctx->cell;
    trpi_run_result result;

    trpi_assert(cell != NULL);
    ctx->handoff_slot = TRPI_HANDOFF_OFF; /* trpi_worker_settle() cannot retain a task */
    ctx->turn.route_depth = 0;            /* the jump may have left a routing function */
    ctx->system->hooks->failed(ctx, cell, &ctx->failure, (trp_msg *)(uintptr_t)ctx->msg);
    ctx->msg = NULL;
    trpi_bounded_done(ctx);
    ctx->turn.left--;
    result = turn_continue(ctx, cell);
    ctx->cell = NULL;
    return result;
}
