/* shared_mailbox.c - one mailbox for all actors of a balancing dispatcher: an idle member takes the
 * next message.
 *
 * Why.     With a mailbox each, messages wait behind a slow actor while others of its kind are
 *          idle.
 * Shape.   sender -> first..last of the shared mailbox -> the member that runs next
 *          Messages for one actor alone stay in the queue of its cell, which it empties before it
 *          takes from here: system messages, and messages that the runtime handles (Terminated,
 *          PoisonPill, Kill, Identify, timers).
 * Must hold.
 *   shared-mailbox-T1  While a message waits, no open member stays listed as idle, but for
 *       no_teamwork: put, take, and a member that leaves, unlist an idle member and run it.
 *   shared-mailbox-T2  A member is listed before it gives its token up, and reads `listed` once
 *       more afterwards; a thread that unlists it writes `listed` and then claims its token. All
 *       seq_cst: one of the two sees the other, and the member runs.
 *   shared-mailbox-T3  A message is readdressed to the member that takes it: its generation is
 *       compared when it is put in, under the lock, and the runner's check finds that of the taker.
 *   shared-mailbox-T4  When the last member leaves, messages that are left are dead letters to the
 *       members that they were told to.
 * Threads. lock; tokens are claimed under it, tasks are submitted after it.
 * Limits.  capacity of a bounded mailbox: one more message is a dead letter. No sender waits for
 *          room, and senders to an unbounded one are not throttled.
 * Tests.   tests/unit/actor/shared_mailbox_test.c
 * Sources. DISP-5, DISP-8, MBOX-13; docs/architecture.md#scheduling.
 */
#include "actor/kernel/schedule.h"
#include "actor/kernel/shared_mailbox.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomics.h"
#include "base/mutex.h"

trpi_shared_mailbox *
trpi_shared_new(bool teamwork)
{
    trpi_shared_mailbox *shared = trpi_alloc(sizeof *shared);

    if (shared != NULL) {
        shared->teamwork = teamwork;
        pthread_mutex_init(&shared->lock, NULL);
    }
    return shared;
}

void
trpi_shared_free(trpi_shared_mailbox *shared)
{
    if (shared == NULL) {
        return;
    }
    while (shared->first != NULL) { /* its members were not stopped */
        trp_msg *msg = shared->first;

        shared->first = trpi_msg_next(msg);
        trpi_msg_drop(msg);
    }
    trpi_mutex_destroy(&shared->lock);
    trpi_free(shared);
}

/* ---- under the lock -------------------------------------------------------------------------- */

static void
count_add(trpi_shared_mailbox *shared, int32_t more)
{
    uint32_t count = atomic_load_explicit(&shared->count, RELAXED);

    atomic_store_explicit(&shared->count, count + (uint32_t)more, RELAXED);
}

static bool
member_is_listed(const trpi_bounded_mailbox *mailbox)
{
    return atomic_load_explicit(&mailbox->listed, RELAXED);
}

static void
member_list(trpi_shared_mailbox *shared, trpi_bounded_mailbox *mailbox)
{
    mailbox->idle_next = NULL;
    mailbox->idle_prev = shared->idle_last;
    if (shared->idle_last != NULL) {
        shared->idle_last->idle_next = mailbox;
    } else {
        shared->idle_first = mailbox;
    }
    shared->idle_last = mailbox;
    atomic_store_explicit(&mailbox->listed, true, memory_order_seq_cst);
}

static void
member_unlist(trpi_shared_mailbox *shared, trpi_bounded_mailbox *mailbox)
{
    if (!member_is_listed(mailbox)) {
        return;
    }
    if (mailbox->idle_prev != NULL) {
        mailbox->idle_prev->idle_next = mailbox->idle_next;
    } else {
        shared->idle_first = mailbox->idle_next;
    }
    if (mailbox->idle_next != NULL) {
        mailbox->idle_next->idle_prev = mailbox->idle_prev;
    } else {
        shared->idle_last = mailbox->idle_prev;
    }
    atomic_store_explicit(&mailbox->listed, false, memory_order_seq_cst); /* shared-mailbox-T2 */
}

/* Unlist a member and claim its token. true: the caller must schedule it. Else it runs, or sees
 * that it is not listed (shared-mailbox-T2). */
static bool
member_claim(trpi_shared_mailbox *shared, trpi_bounded_mailbox *mailbox)
{
    member_unlist(shared, mailbox);
    return trpi_mailbox_claim(mailbox->cell);
}

/* Claim an idle member, which the caller must schedule; NULL: none is idle. shared-mailbox-T1 */
static trpi_cell *
idle_member_wake(trpi_shared_mailbox *shared)
{
    while (shared->idle_first != NULL) {
        trpi_bounded_mailbox *mailbox = shared->idle_first;

        if (member_claim(shared, mailbox)) {
            return mailbox->cell;
        }
    }
    return NULL;
}

/* The same for a new message: preferably the member that it was told to. */
static trpi_cell *
receiver_wake(trpi_shared_mailbox *shared, trpi_bounded_mailbox *told)
{
    if (member_is_listed(told) && member_claim(shared, told)) {
        return told->cell;
    }
    return shared->teamwork ? idle_member_wake(shared) : NULL;
}

/* ---- members --------------------------------------------------------------------------------- */

trp_err
trpi_shared_join(trpi_shared_mailbox *shared, trpi_cell *cell, trpi_bounded_mailbox *mailbox)
{
    trp_err err = TRP_OK;

    pthread_mutex_lock(&shared->lock);
    if (shared->members == 0) {
        shared->behaviour = cell->behaviour;
        shared->type = mailbox->type;
    }
    if (shared->behaviour != cell->behaviour || shared->type != mailbox->type) {
        err = TRP_EINVAL;
    } else {
        shared->members++;
        mailbox->shared = shared;
        mailbox->cell = cell;
    }
    pthread_mutex_unlock(&shared->lock);
    return err;
}

void
trpi_shared_behaviour_set(trpi_shared_mailbox *shared, const trp_behaviour *behaviour)
{
    pthread_mutex_lock(&shared->lock);
    shared->behaviour = behaviour;
    pthread_mutex_unlock(&shared->lock);
}

bool
trpi_shared_is_empty(trpi_shared_mailbox *shared)
{
    bool empty;

    pthread_mutex_lock(&shared->lock);
    empty = shared->members == 0;
    pthread_mutex_unlock(&shared->lock);
    return empty;
}

static trp_err
dead_letter(trp_ctx *ctx, trp_ref to, trp_msg *msg, trp_dead_reason reason)
{
    trpi_dead(ctx, to, msg, reason);
    trpi_msg_free(ctx->cache, msg);
    return TRP_OK;
}

void
trpi_shared_leave(trp_ctx *ctx, trpi_bounded_mailbox *mailbox)
{
    trpi_shared_mailbox *shared = mailbox->shared;
    trpi_cell *next = NULL;
    trp_msg *left = NULL;

    pthread_mutex_lock(&shared->lock);
    member_unlist(shared, mailbox);
    mailbox->cell = NULL;
    if (--shared->members == 0) { /* shared-mailbox-T4 */
        left = shared->first;
        shared->first = shared->last = NULL;
        atomic_store_explicit(&shared->count, 0, RELAXED);
        shared->behaviour = NULL;
        shared->type = NULL;
    } else if (shared->first != NULL) {
        next = idle_member_wake(shared);
    }
    pthread_mutex_unlock(&shared->lock);
    if (next != NULL) {
        trpi_schedule(ctx, next);
    }
    while (left != NULL) {
        trp_ref to = { TRPI_NODE_SELF, left->priv_to_slot, left->priv_to_generation, 0 };
        trp_msg *msg = left;

        left = trpi_msg_next(msg);
        (void)dead_letter(ctx, to, msg, TRP_DEAD_STOPPED);
    }
}

void
trpi_shared_step_back(trp_ctx *ctx, trpi_bounded_mailbox *mailbox)
{
    trpi_shared_mailbox *shared = mailbox->shared;
    trpi_cell *next = NULL;

    pthread_mutex_lock(&shared->lock);
    member_unlist(shared, mailbox);
    if (shared->first != NULL) {
        next = idle_member_wake(shared);
    }
    pthread_mutex_unlock(&shared->lock);
    if (next != NULL) {
        trpi_schedule(ctx, next);
    }
}

/* ---- messages -------------------------------------------------------------------------------- */

trp_err
trpi_shared_put(trp_ctx *ctx, trpi_bounded_mailbox *mailbox, trp_ref to, trp_msg *msg,
                bool try_only)
{
    trpi_shared_mailbox *shared = mailbox->shared;
    uint32_t capacity = mailbox->type->options.capacity;
    trpi_cell *next = NULL;
    bool ended, full;

    trpi_msg_next_set(msg, NULL, __ATOMIC_RELAXED);
    pthread_mutex_lock(&shared->lock);
    ended = mailbox->cell == NULL; /* shared-mailbox-T3 */
    full = !ended && capacity != 0 && atomic_load_explicit(&shared->count, RELAXED) >= capacity;
    if (!ended && !full) {
        if (shared->last != NULL) {
            trpi_msg_next_set(shared->last, msg, __ATOMIC_RELAXED);
        } else {
            shared->first = msg;
        }
        shared->last = msg;
        count_add(shared, 1);
        next = receiver_wake(shared, mailbox);
    }
    pthread_mutex_unlock(&shared->lock);
    if (next != NULL) {
        trpi_schedule(ctx, next);
    }
    if (ended) {
        return dead_letter(ctx, to, msg, TRP_DEAD_STOPPED);
    }
    if (full) {
        return try_only ? TRP_EAGAIN : dead_letter(ctx, to, msg, TRP_DEAD_MAILBOX_FULL);
    }
    return TRP_OK;
}

trp_msg *
trpi_shared_take(trp_ctx *ctx, trpi_bounded_mailbox *mailbox)
{
    trpi_shared_mailbox *shared = mailbox->shared;
    trpi_cell *next = NULL;
    trp_msg *msg;

    pthread_mutex_lock(&shared->lock);
    msg = shared->first;
    if (msg != NULL) {
        member_unlist(shared, mailbox); /* listed if it runs for a message of its own */
        shared->first = trpi_msg_next(msg);
        if (shared->first == NULL) {
            shared->last = NULL;
        } else if (shared->teamwork) {
            next = idle_member_wake(shared); /* shared-mailbox-T1: this message may take long */
        }
        count_add(shared, -1);
    } else if (!member_is_listed(mailbox)) {
        member_list(shared, mailbox);
    }
    pthread_mutex_unlock(&shared->lock);
    if (next != NULL) {
        trpi_schedule(ctx, next);
    }
    if (msg != NULL) {
        trpi_msg_next_set(msg, NULL, __ATOMIC_RELAXED);
        msg->priv_to_slot = mailbox->owner.slot; /* shared-mailbox-T3 */
        msg->priv_to_generation = mailbox->owner.generation;
    }
    return msg;
}
