/* team.c - one mailbox for all actors of a balancing dispatcher: who is idle takes what is next.
 *
 * Why.     With a mailbox each, messages wait behind a slow actor while its like are idle.
 * Shape.   teller -> first..last of the team -> the member that runs next
 *          What is for one actor alone stays its own: system messages, and the messages that the
 *          runtime handles (Terminated, PoisonPill, Kill, Identify, timers) in the queue of its
 *          cell, which it empties before it looks here.
 * Must hold.
 *   shared-mailbox-T1  While a message waits, no open member stays listed as idle but by the order
 *       of no_teamwork: put, take and whoever goes away unlist one and run it.
 *   shared-mailbox-T2  A member is listed before it gives its token up, and looks at `listed` once
 *       more after it; who unlists it writes `listed` and then looks for its token. All seq_cst:
 *       one of the two sees the other, and the member runs.
 *   shared-mailbox-T3  A message is addressed to the member that takes it, from then on: its
 *       generation is compared when it is put in, under the lock, and the runner's look finds that
 *       of the taker.
 *   shared-mailbox-T4  When the last member leaves, what is left is dead, under the name of whom it
 *       was told to.
 * Threads. lock; claims of tokens are made under it, tasks are handed in after it.
 * Limits.  capacity of a bounded mailbox: one more is a dead letter. There is no waiting for room,
 *          and tellers of an unbounded one are not slowed down.
 * Tests.   tests/unit/actor/team_test.c
 * Sources. DISP-5, DISP-8, MBOX-13; docs/architecture.md#scheduling.
 */
#include "actor/kernel/schedule.h"
#include "actor/kernel/team.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomics.h"
#include "base/mutex.h"

trpi_team *
trpi_team_new(bool teamwork)
{
    trpi_team *team = trpi_alloc(sizeof *team);

    if (team != NULL) {
        team->teamwork = teamwork;
        pthread_mutex_init(&team->lock, NULL);
    }
    return team;
}

void
trpi_team_free(trpi_team *team)
{
    if (team == NULL) {
        return;
    }
    while (team->first != NULL) { /* its actors were not stopped */
        trp_msg *msg = team->first;

        team->first = trpi_msg_next(msg);
        trpi_msg_drop(msg);
    }
    trpi_mutex_destroy(&team->lock);
    trpi_free(team);
}

/* ---- under the lock -------------------------------------------------------------------------- */

static void
count_add(trpi_team *team, int32_t more)
{
    uint32_t count = atomic_load_explicit(&team->count, RELAXED);

    atomic_store_explicit(&team->count, count + (uint32_t)more, RELAXED);
}

static bool
is_listed(const trpi_box *box)
{
    return atomic_load_explicit(&box->listed, RELAXED);
}

static void
list(trpi_team *team, trpi_box *box)
{
    box->idle_next = NULL;
    box->idle_prev = team->idle_last;
    if (team->idle_last != NULL) {
        team->idle_last->idle_next = box;
    } else {
        team->idle_first = box;
    }
    team->idle_last = box;
    atomic_store_explicit(&box->listed, true, memory_order_seq_cst);
}

static void
unlist(trpi_team *team, trpi_box *box)
{
    if (!is_listed(box)) {
        return;
    }
    if (box->idle_prev != NULL) {
        box->idle_prev->idle_next = box->idle_next;
    } else {
        team->idle_first = box->idle_next;
    }
    if (box->idle_next != NULL) {
        box->idle_next->idle_prev = box->idle_prev;
    } else {
        team->idle_last = box->idle_prev;
    }
    atomic_store_explicit(&box->listed, false, memory_order_seq_cst); /* shared-mailbox-T2 */
}

/* true: the caller must schedule the member. Else it runs, or sees that it is not listed
 * (shared-mailbox-T2). */
static bool
claim(trpi_team *team, trpi_box *box)
{
    unlist(team, box);
    return trpi_mailbox_claim(box->cell);
}

/* shared-mailbox-T1. The cell to schedule; NULL: nobody is idle. */
static trpi_cell *
wake(trpi_team *team)
{
    while (team->idle_first != NULL) {
        trpi_box *box = team->idle_first;

        if (claim(team, box)) {
            return box->cell;
        }
    }
    return NULL;
}

/* The same for a new message: rather whom it was told to. */
static trpi_cell *
wake_for(trpi_team *team, trpi_box *told)
{
    if (is_listed(told) && claim(team, told)) {
        return told->cell;
    }
    return team->teamwork ? wake(team) : NULL;
}

/* ---- members --------------------------------------------------------------------------------- */

trp_err
trpi_team_join(trpi_team *team, trpi_cell *cell, trpi_box *box)
{
    trp_err err = TRP_OK;

    pthread_mutex_lock(&team->lock);
    if (team->members == 0) {
        team->behaviour = cell->behaviour;
        team->type = box->type;
    }
    if (team->behaviour != cell->behaviour || team->type != box->type) {
        err = TRP_EINVAL;
    } else {
        team->members++;
        box->team = team;
        box->cell = cell;
    }
    pthread_mutex_unlock(&team->lock);
    return err;
}

bool
trpi_team_is_empty(trpi_team *team)
{
    bool empty;

    pthread_mutex_lock(&team->lock);
    empty = team->members == 0;
    pthread_mutex_unlock(&team->lock);
    return empty;
}

static trp_err
dead(trp_ctx *ctx, trp_ref to, trp_msg *msg, trp_dead_reason reason)
{
    trpi_dead(ctx, to, msg, reason);
    trpi_msg_free(ctx->cache, msg);
    return TRP_OK;
}

void
trpi_team_leave(trp_ctx *ctx, trpi_box *box)
{
    trpi_team *team = box->team;
    trpi_cell *next = NULL;
    trp_msg *left = NULL;

    pthread_mutex_lock(&team->lock);
    unlist(team, box);
    box->cell = NULL;
    if (--team->members == 0) { /* shared-mailbox-T4 */
        left = team->first;
        team->first = team->last = NULL;
        atomic_store_explicit(&team->count, 0, RELAXED);
        team->behaviour = NULL;
        team->type = NULL;
    } else if (team->first != NULL) {
        next = wake(team);
    }
    pthread_mutex_unlock(&team->lock);
    if (next != NULL) {
        trpi_schedule(ctx, next);
    }
    while (left != NULL) {
        trp_ref to = { TRPI_NODE_SELF, left->priv_to_slot, left->priv_to_generation, 0 };
        trp_msg *msg = left;

        left = trpi_msg_next(msg);
        (void)dead(ctx, to, msg, TRP_DEAD_STOPPED);
    }
}

void
trpi_team_away(trp_ctx *ctx, trpi_box *box)
{
    trpi_team *team = box->team;
    trpi_cell *next = NULL;

    pthread_mutex_lock(&team->lock);
    unlist(team, box);
    if (team->first != NULL) {
        next = wake(team);
    }
    pthread_mutex_unlock(&team->lock);
    if (next != NULL) {
        trpi_schedule(ctx, next);
    }
}

/* ---- messages -------------------------------------------------------------------------------- */

trp_err
trpi_team_put(trp_ctx *ctx, trpi_box *box, trp_ref to, trp_msg *msg, bool try_only)
{
    trpi_team *team = box->team;
    uint32_t capacity = box->type->options.capacity;
    trpi_cell *next = NULL;
    bool ended, full;

    trpi_msg_next_set(msg, NULL, __ATOMIC_RELAXED);
    pthread_mutex_lock(&team->lock);
    ended = box->cell == NULL; /* shared-mailbox-T3 */
    full = !ended && capacity != 0 && atomic_load_explicit(&team->count, RELAXED) >= capacity;
    if (!ended && !full) {
        if (team->last != NULL) {
            trpi_msg_next_set(team->last, msg, __ATOMIC_RELAXED);
        } else {
            team->first = msg;
        }
        team->last = msg;
        count_add(team, 1);
        next = wake_for(team, box);
    }
    pthread_mutex_unlock(&team->lock);
    if (next != NULL) {
        trpi_schedule(ctx, next);
    }
    if (ended) {
        return dead(ctx, to, msg, TRP_DEAD_STOPPED);
    }
    if (full) {
        return try_only ? TRP_EAGAIN : dead(ctx, to, msg, TRP_DEAD_MAILBOX_FULL);
    }
    return TRP_OK;
}

trp_msg *
trpi_team_take(trp_ctx *ctx, trpi_box *box)
{
    trpi_team *team = box->team;
    trpi_cell *next = NULL;
    trp_msg *msg;

    pthread_mutex_lock(&team->lock);
    msg = team->first;
    if (msg != NULL) {
        unlist(team, box); /* it was run for what is its own */
        team->first = trpi_msg_next(msg);
        if (team->first == NULL) {
            team->last = NULL;
        } else if (team->teamwork) {
            next = wake(team); /* shared-mailbox-T1: ours may take long */
        }
        count_add(team, -1);
    } else if (!is_listed(box)) {
        list(team, box);
    }
    pthread_mutex_unlock(&team->lock);
    if (next != NULL) {
        trpi_schedule(ctx, next);
    }
    if (msg != NULL) {
        trpi_msg_next_set(msg, NULL, __ATOMIC_RELAXED);
        msg->priv_to_slot = box->owner.slot; /* shared-mailbox-T3 */
        msg->priv_to_generation = box->owner.generation;
    }
    return msg;
}
