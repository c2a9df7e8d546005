/* bounded_mailbox.c - mailboxes with a bound or an order: admission, waiting for room, notices.
 *
 * Why.     The default queue has no bound and only the order of arrival, and costs one exchange.
 *          The other mailboxes keep this queue, with its token, and add admission before it and an
 *          order behind it, so that start, end and late messages are handled alike for all.
 * Shape.   sender: count + 1 <= capacity? -> push to head; else pending (with a deadline), and the
 *          sender's task waits here until there is room
 *          runner: queue -> order (priority, control first, the program's) -> count - 1 ->
 *          behaviour
 * Must hold.
 *   bounded-mailbox-B1  count is what was admitted and not taken out yet, and never above capacity.
 *   bounded-mailbox-B2  A sender that finds the mailbox full sets full_any, then reads count once
 *       more; the runner decrements count, then reads full_any. All seq_cst: one of the two sees
 *       the other.
 *   bounded-mailbox-B3  A task or message that waits here is released: when there is room, when its
 *       time is over, or when the owner ends.
 *   bounded-mailbox-B4  With an order, the tail of the cell's queue is the stub, or a message that
 *       was not taken yet (with the default mailbox it is the message taken last).
 *   bounded-mailbox-B5  A mailbox is freed when no thread can be between finding and using it
 *       (trpi_retire).
 * Threads. lock guards all that waits; only pushes to the owner's queue are called under it; the
 *          owner does not run on this thread meanwhile (nested-turn-E2).
 * Limits.  capacity, TRP_MAILBOX_PENDING_MAX.
 * Tests.   tests/unit/actor/bounded_mailbox_test.c
 * Sources. MBOX-1 to -6, -12 to -16; docs/architecture.md#back-pressure.
 */
#include "actor/kernel/schedule.h"
#include "actor/kernel/bounded_mailbox.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "actor/kernel/cells.h"
#include "actor/kernel/shared_mailbox.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomics.h"
#include "base/mutex.h"

const char trpi_bounded_name[] = "bounded mailbox";

/* ---- start and end --------------------------------------------------------------------------- */

static void
bounded_drop(trpi_cell *cell)
{
    trpi_bounded_free((trpi_bounded_mailbox *)(uintptr_t)cell->ops);
}

trp_err
trpi_bounded_new(trp_ctx *ctx, trpi_cell *cell, const trpi_mailbox_type *type)
{
    trpi_bounded_mailbox *mailbox = trpi_alloc_aligned(64, sizeof *mailbox);
    pthread_condattr_t attributes;

    if (mailbox == NULL) {
        return TRP_ENOMEM;
    }
    mailbox->ops = (trpi_kind_ops){ .name = trpi_bounded_name, .drop = bounded_drop };
    mailbox->system = ctx->system;
    mailbox->type = type;
    mailbox->owner = trpi_slot_ref(cell);
    mailbox->capacity = type->options.capacity;
    mailbox->will_receive = cell->behaviour->will_receive;
    pthread_mutex_init(&mailbox->lock, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&mailbox->room, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    if (type->options.ops != NULL) {
        trp_err err = type->options.ops->create(type->options.arg, ctx->system, mailbox->owner,
                                                &mailbox->custom);

        if (err != TRP_OK) {
            mailbox->custom = NULL;
            trpi_bounded_free(mailbox);
            return err;
        }
        /* a durable mailbox may have messages already */
        mailbox->inside = type->options.ops->count(mailbox->custom);
        atomic_init(&mailbox->count, mailbox->inside);
    }
    trpi_cell_ops_set(cell, &mailbox->ops);
    return TRP_OK;
}

void
trpi_bounded_free(void *object)
{
    trpi_bounded_mailbox *mailbox = object;

    if (mailbox->custom != NULL) {
        mailbox->type->options.ops->destroy(mailbox->custom);
    }
    trpi_ref_map_fini(&mailbox->ready);
    trpi_free(mailbox->heap);
    pthread_cond_destroy(&mailbox->room);
    trpi_mutex_destroy(&mailbox->lock);
    trpi_free(mailbox);
}

trpi_bounded_mailbox *
trpi_bounded_get(const trpi_cell *cell, uint32_t generation)
{
    const trpi_kind_ops *ops;

    /* as routed.c: the ops belong to this incarnation if the generation does before and after */
    if (atomic_load_explicit(&cell->generation, memory_order_acquire) != generation) {
        return NULL;
    }
    ops = __atomic_load_n(&cell->ops, __ATOMIC_ACQUIRE);
    if (atomic_load_explicit(&cell->generation, RELAXED) != generation) {
        return NULL;
    }
    return trpi_ops_are_bounded(ops) ? (trpi_bounded_mailbox *)(uintptr_t)ops : NULL;
}

/* ---- room ------------------------------------------------------------------------------------ */

/* Take one place, if there is one (bounded-mailbox-B1). */
static bool
place_take(trpi_bounded_mailbox *mailbox)
{
    uint32_t count = atomic_load_explicit(&mailbox->count, RELAXED);

    while (mailbox->capacity == 0 || count < mailbox->capacity) {
        if (atomic_compare_exchange_weak_explicit(&mailbox->count, &count, count + 1, SEQ_CST,
                                                  RELAXED)) {
            return true;
        }
    }
    return false;
}

/* Push to the cell's queue and schedule the cell. false: it is running already. */
static bool
queue_push(trp_ctx *ctx, trpi_cell *cell, trp_msg *msg)
{
    trpi_msg_next_set(msg, NULL, __ATOMIC_RELAXED);
    if (!trpi_mailbox_push(cell, msg, msg)) {
        return false;
    }
    trpi_schedule(ctx, cell);
    return true;
}

/* The same; then wait as trpi_tell_wait() does. Without the lock. */
static void
queue_push_and_wait(trp_ctx *ctx, trpi_cell *cell, trp_msg *msg)
{
    if (!queue_push(ctx, cell, msg)) {
        trpi_tell_wait(ctx, cell);
    }
}

static void
waiters_run(trp_ctx *ctx, trpi_mailbox_waiter *waiters)
{
    while (waiters != NULL) {
        trpi_mailbox_waiter *next = waiters->next;

        trpi_sched_inject(ctx->system->sched, waiters->task);
        trpi_free(waiters);
        waiters = next;
    }
}

static void
ready_tell(trp_ctx *ctx, const trpi_bounded_mailbox *mailbox, trpi_ref_map *ready)
{
    trp_mailbox_ready what = { mailbox->owner };
    uint32_t position = 0;
    trpi_ref_pair *pair;

    while ((pair = trpi_ref_map_next(ready, &position)) != NULL) {
        trpi_tell(ctx, pair->ref, mailbox->owner, &trp_mailbox_ready_type, &what, sizeof what);
    }
    trpi_ref_map_fini(ready);
}

/* Admit pending messages as far as there is room. Under the lock. */
static void
pending_admit(trp_ctx *ctx, trpi_cell *cell, trpi_bounded_mailbox *mailbox)
{
    while (mailbox->pending_first != NULL && place_take(mailbox)) {
        trpi_mailbox_pending *first = mailbox->pending_first;

        mailbox->pending_first = first->next;
        if (mailbox->pending_first == NULL) {
            mailbox->pending_last = NULL;
        }
        mailbox->pending_count--;
        (void)queue_push(ctx, cell, first->msg);
        trpi_free(first);
    }
}

/* There may be room: admit pending messages, release waiting senders, notify refused ones
 * (bounded-mailbox-B2, bounded-mailbox-B3). */
static void
room_made(trp_ctx *ctx, trpi_cell *cell, trpi_bounded_mailbox *mailbox)
{
    trpi_mailbox_waiter *waiters = NULL;
    trpi_ref_map ready = { 0 };

    trpi_nested_hold(ctx);
    pthread_mutex_lock(&mailbox->lock);
    pending_admit(ctx, cell, mailbox);
    if (mailbox->pending_first == NULL) {
        waiters = mailbox->waiters;
        mailbox->waiters = NULL;
        if (mailbox->blocked > 0) {
            pthread_cond_broadcast(&mailbox->room);
        }
        if (atomic_load_explicit(&mailbox->count, SEQ_CST) <= mailbox->capacity / 2) {
            ready = mailbox->ready;
            mailbox->ready = (trpi_ref_map){ 0 };
        }
        atomic_store_explicit(&mailbox->full_any, mailbox->blocked > 0 || mailbox->ready.count > 0,
                              SEQ_CST);
    }
    pthread_mutex_unlock(&mailbox->lock);
    waiters_run(ctx, waiters);
    ready_tell(ctx, mailbox, &ready);
    trpi_nested_release(ctx);
}

static inline void
place_give(trp_ctx *ctx, trpi_cell *cell, trpi_bounded_mailbox *mailbox)
{
    (void)atomic_fetch_sub_explicit(&mailbox->count, 1, SEQ_CST);
    /* bounded-mailbox-B2 */
    if (__builtin_expect(atomic_load_explicit(&mailbox->full_any, SEQ_CST), 0)) {
        room_made(ctx, cell, mailbox);
    }
}

/* ---- a full mailbox -------------------------------------------------------------------------- */

static trp_err
dead_full(trp_ctx *ctx, trp_ref to, trp_msg *msg)
{
    trpi_dead(ctx, to, msg, TRP_DEAD_MAILBOX_FULL);
    trpi_msg_free(ctx->cache, msg);
    return TRP_OK;
}

static void pending_expire(void *arg, uint64_t slot, uint64_t generation);

/* Under the lock. The oldest pending message expires first: all wait equally long. */
static void
pending_timer_arm(trpi_bounded_mailbox *mailbox)
{
    uint64_t now = trpi_world_mono_ns(mailbox->system->world), id;

    if (mailbox->pending_first == NULL || mailbox->timer_set ||
        mailbox->pending_first->until_ns == UINT64_MAX) {
        return;
    }
    mailbox->timer_set =
        trpi_timer_add(mailbox->system->sched,
                       mailbox->pending_first->until_ns > now
                           ? (mailbox->pending_first->until_ns - now + 999999) / 1000000
                           : 1,
                       pending_expire, mailbox->system, mailbox->owner.slot,
                       mailbox->owner.generation, &id) == TRP_OK;
}

static void
pending_expire(void *arg, uint64_t slot, uint64_t generation)
{
    trp_ctx *ctx = trpi_enter(arg);
    trpi_cell *cell = trpi_cells_find(ctx->cells, (uint32_t)slot);
    trpi_bounded_mailbox *mailbox = trpi_bounded_get(cell, (uint32_t)generation);
    uint64_t now = trpi_world_mono_ns(ctx->system->world);
    trpi_mailbox_pending *over = NULL, **end = &over;

    if (mailbox != NULL) {
        pthread_mutex_lock(&mailbox->lock);
        mailbox->timer_set = false;
        while (mailbox->pending_first != NULL && mailbox->pending_first->until_ns <= now) {
            *end = mailbox->pending_first;
            mailbox->pending_first = (*end)->next;
            end = &(*end)->next;
            mailbox->pending_count--;
        }
        *end = NULL;
        if (mailbox->pending_first == NULL) {
            mailbox->pending_last = NULL;
        }
        pending_timer_arm(mailbox);
        pthread_mutex_unlock(&mailbox->lock);
        while (over != NULL) {
            trpi_mailbox_pending *next = over->next;

            (void)dead_full(ctx, mailbox->owner, over->msg);
            trpi_free(over);
            over = next;
        }
        room_made(ctx, cell, mailbox); /* senders of the expired messages go on */
    }
    trpi_leave(ctx);
}

/* Let msg wait for room; the sender's turn ends after its present message. */
static trp_err
pending_append(trp_ctx *ctx, trpi_cell *cell, trpi_bounded_mailbox *mailbox, trp_ref to,
               trp_msg *msg)
{
    uint32_t timeout = mailbox->type->options.push_timeout_ms;
    trpi_mailbox_pending *pending = trpi_alloc(sizeof *pending);
    bool refused;

    if (pending == NULL) {
        return dead_full(ctx, to, msg);
    }
    pending->msg = msg;
    pending->until_ns = timeout == TRP_FOREVER ? UINT64_MAX
                                               : trpi_world_mono_ns(mailbox->system->world) +
                                                     (uint64_t)timeout * 1000000u;
    pthread_mutex_lock(&mailbox->lock);
    refused = mailbox->closed || mailbox->pending_count == TRP_MAILBOX_PENDING_MAX;
    if (!refused) {
        if (mailbox->pending_last != NULL) {
            mailbox->pending_last->next = pending;
        } else {
            mailbox->pending_first = pending;
        }
        mailbox->pending_last = pending;
        mailbox->pending_count++;
        atomic_store_explicit(&mailbox->full_any, true, SEQ_CST); /* bounded-mailbox-B2 */
        pending_timer_arm(mailbox);
    }
    pthread_mutex_unlock(&mailbox->lock);
    if (refused) {
        trpi_free(pending);
        return dead_full(ctx, to, msg);
    }
    ctx->turn.throttled = true;
    ctx->turn.throttled_home = TRPI_DEFER_HOLD;
    ctx->turn.full_mailbox = to;
    if (atomic_load_explicit(&mailbox->count, SEQ_CST) < mailbox->capacity) {
        room_made(ctx, cell, mailbox);
    }
    return TRP_OK;
}

bool
trpi_bounded_wait(trp_ctx *ctx, trpi_cell *cell)
{
    trpi_cell *full = trpi_cell_peek(ctx, ctx->turn.full_mailbox);
    trpi_bounded_mailbox *mailbox =
        full != NULL && full != cell ? trpi_bounded_get(full, ctx->turn.full_mailbox.generation)
                                     : NULL; /* a cell that waits for itself would wait for ever */
    trpi_mailbox_waiter *waiter = mailbox != NULL ? trpi_alloc(sizeof *waiter) : NULL;
    bool waits;

    ctx->turn.full_mailbox = (trp_ref)TRP_REF_NONE;
    if (waiter == NULL) {
        return false;
    }
    waiter->task = &cell->task;
    pthread_mutex_lock(&mailbox->lock);
    waits = mailbox->pending_first != NULL && !mailbox->closed;
    if (waits) {
        waiter->next = mailbox->waiters;
        mailbox->waiters = waiter;
    }
    pthread_mutex_unlock(&mailbox->lock);
    if (!waits) {
        trpi_free(waiter);
    }
    return waits;
}

/* Block a thread that is no actor until there is room. */
static trp_err
block_for_room(trp_ctx *ctx, trpi_cell *cell, trpi_bounded_mailbox *mailbox, trp_ref to,
               trp_msg *msg)
{
    uint32_t timeout = mailbox->type->options.push_timeout_ms;
    uint64_t ns = (uint64_t)(timeout == TRP_FOREVER ? 0 : timeout) * 1000000u;
    uint64_t until = trpi_world_mono_ns(mailbox->system->world) + ns;
    struct timespec deadline = { (time_t)(until / 1000000000u), (long)(until % 1000000000u) };
    bool in = false, over = false, runs = true;

    trpi_nested_hold(ctx); /* the owner may run on this thread when it gets the message */
    pthread_mutex_lock(&mailbox->lock);
    mailbox->blocked++;
    atomic_store_explicit(&mailbox->full_any, true, SEQ_CST); /* bounded-mailbox-B2 */
    while (!mailbox->closed && !over) {
        in = mailbox->pending_first == NULL && place_take(mailbox);
        if (in) {
            break;
        }
        over = (timeout == TRP_FOREVER ? pthread_cond_wait(&mailbox->room, &mailbox->lock)
                                       : pthread_cond_timedwait(&mailbox->room, &mailbox->lock,
                                                                &deadline)) == ETIMEDOUT;
    }
    mailbox->blocked--;
    if (in) {
        runs = queue_push(ctx, cell, msg);
    }
    pthread_mutex_unlock(&mailbox->lock);
    trpi_nested_release(ctx);
    if (!runs) {
        trpi_tell_wait(ctx, cell);
    }
    return in ? TRP_OK : dead_full(ctx, to, msg);
}

static trp_err
refuse_full(trp_ctx *ctx, trpi_cell *cell, trpi_bounded_mailbox *mailbox)
{
    if (mailbox->type->options.overflow == TRP_MAILBOX_NOTIFY && ctx->cell != NULL) {
        pthread_mutex_lock(&mailbox->lock);
        if (!mailbox->closed) {
            (void)trpi_ref_map_put(&mailbox->ready, ctx->self, NULL); /* no memory: it asks again */
            atomic_store_explicit(&mailbox->full_any, true, SEQ_CST); /* bounded-mailbox-B2 */
        }
        pthread_mutex_unlock(&mailbox->lock);
        if (atomic_load_explicit(&mailbox->count, SEQ_CST) <= mailbox->capacity / 2) {
            room_made(ctx, cell, mailbox);
        }
    }
    return TRP_EAGAIN;
}

/* Return the dead-letter reason for an error of admit or enqueue. */
static trp_dead_reason
reason_of_refusal(trp_err why)
{
    return why == TRP_EMSGSIZE                     ? TRP_DEAD_TOO_LARGE
           : why == TRP_ENOTYPE                    ? TRP_DEAD_NOT_ENCODABLE
           : why == TRP_ENOMEM                     ? TRP_DEAD_NO_MEMORY
           : why == TRP_EIO || why == TRP_EBREAKER ? TRP_DEAD_STORAGE
           : why == TRP_ECLOSED                    ? TRP_DEAD_STALE
                                                   : TRP_DEAD_MAILBOX_FULL;
}

/* A custom mailbox refused the message: a sender may retry only for want of room. */
static trp_err
not_admitted(trp_ctx *ctx, trp_ref to, trp_msg *msg, trp_err why, bool try_only)
{
    trp_dead_reason reason = reason_of_refusal(why);

    if (try_only && reason == TRP_DEAD_MAILBOX_FULL) {
        return TRP_EAGAIN;
    }
    trpi_dead(ctx, to, msg, reason);
    trpi_msg_free(ctx->cache, msg);
    return TRP_OK;
}

bool
trpi_msg_is_own(const trp_msg *msg)
{
    return msg->priv_type < TRPI_TYPE_AUTO_END;
}

trp_err
trpi_bounded_tell(trp_ctx *ctx, trpi_cell *cell, trp_ref to, trp_msg *msg, bool try_only)
{
    trpi_bounded_mailbox *mailbox = trpi_bounded_get(cell, to.generation);
    bool free_of_bound = trpi_msg_is_own(msg);

    if (mailbox == NULL) {
        queue_push_and_wait(ctx, cell, msg); /* the actor ends just now: msg will be stale */
        return TRP_OK;
    }
    if (mailbox->will_receive != NULL && trpi_type_is_ordinary(msg->priv_type) &&
        mailbox->will_receive(msg) == 0) { /* refused: takes no place, is not stored */
        trpi_dead(ctx, to, msg, TRP_DEAD_REFUSED);
        trpi_msg_free(ctx->cache, msg);
        return TRP_OK;
    }
    if (mailbox->custom != NULL && mailbox->type->options.ops->admit != NULL && !free_of_bound) {
        trp_err err = mailbox->type->options.ops->admit(mailbox->custom, to, msg);

        if (err != TRP_OK) {
            return not_admitted(ctx, to, msg, err, try_only);
        }
    }
    if (free_of_bound) {
        (void)atomic_fetch_add_explicit(&mailbox->count, 1, SEQ_CST);
        queue_push_and_wait(ctx, cell, msg);
        return TRP_OK;
    }
    if (mailbox->shared != NULL) {
        return trpi_shared_put(ctx, mailbox, to, msg, try_only);
    }
    /* pending messages go first */
    if (atomic_load_explicit(&mailbox->pending_count, RELAXED) == 0 && place_take(mailbox)) {
        if (mailbox->capacity == 0) {
            trpi_tell_note_unbounded(ctx, cell);
        }
        queue_push_and_wait(ctx, cell, msg);
        return TRP_OK;
    }
    if (try_only) {
        return refuse_full(ctx, cell, mailbox);
    }
    if (mailbox->type->options.overflow == TRP_MAILBOX_NOTIFY ||
        mailbox->type->options.push_timeout_ms == TRP_OFF) {
        return dead_full(ctx, to, msg);
    }
    if (ctx->worker == NULL && ctx->cell == NULL && !ctx->chaining) {
        return block_for_room(ctx, cell, mailbox, to, msg);
    }
    return pending_append(ctx, cell, mailbox, to, msg);
}

/* ---- the runner ------------------------------------------------------------------------------ */

void
trpi_bounded_done(trp_ctx *ctx)
{
    if (ctx->turn.unqueued != NULL) {
        trpi_msg_free(ctx->cache, ctx->turn.unqueued);
        ctx->turn.unqueued = NULL;
    }
}

/* Remove the next message from the queue entirely (bounded-mailbox-B4). */
static trpi_take
queue_detach(trpi_cell *cell, trp_msg **ret_msg)
{
    trp_msg *stub = trpi_cell_stub(cell);
    trp_msg *tail = cell->tail;
    trp_msg *next = trpi_msg_next(tail);

    if (tail == stub) {
        if (next == NULL) {
            return trpi_mailbox_has_more(cell) ? TRPI_TAKE_NOT_YET : TRPI_TAKE_EMPTY;
        }
        cell->tail = tail = next;
        next = trpi_msg_next(tail);
    }
    if (next == NULL && !trpi_mailbox_has_more(cell)) {
        /* the last one: the stub, which is not queued (mailbox-M2), becomes the dummy. This thread
         * holds the token, so the push returns none. */
        atomic_store_explicit(&cell->stub_next, NULL, RELAXED);
        (void)trpi_mailbox_push(cell, stub, stub);
        next = trpi_msg_next(tail);
    }
    if (next == NULL) {
        return TRPI_TAKE_NOT_YET;
    }
    cell->tail = next;
    *ret_msg = tail;
    return TRPI_TAKE_MSG;
}

static void
msg_lost(trp_ctx *ctx, const trpi_bounded_mailbox *mailbox, trp_msg *msg, trp_dead_reason reason)
{
    trp_ref to = mailbox->owner;

    to.generation = msg->priv_to_generation;
    trpi_dead(ctx, to, msg, reason);
    trpi_msg_free(ctx->cache, msg);
}

/* Move all messages from the queue into the order. */
static trpi_take
order_fill(trp_ctx *ctx, trpi_cell *cell, trpi_bounded_mailbox *mailbox)
{
    trpi_take taken;
    trp_msg *msg;
    trp_err err;

    while ((taken = queue_detach(cell, &msg)) == TRPI_TAKE_MSG) {
        if (msg->priv_to_generation != mailbox->owner.generation) {
            /* a late message to another incarnation: not counted */
            msg_lost(ctx, mailbox, msg, TRP_DEAD_STALE);
        } else if ((err = trpi_mailbox_order_put(mailbox, msg)) != TRP_OK) {
            msg_lost(ctx, mailbox, msg, reason_of_refusal(err));
            place_give(ctx, cell, mailbox);
        } else {
            mailbox->inside++;
        }
    }
    return taken;
}

void
trpi_bounded_recount(trp_ctx *ctx, trpi_cell *cell, trpi_bounded_mailbox *mailbox)
{
    uint32_t counted = mailbox->type->options.ops->count(mailbox->custom);

    while (mailbox->inside > counted) {
        mailbox->inside--;
        place_give(ctx, cell, mailbox);
    }
}

trpi_take
trpi_bounded_take(trp_ctx *ctx, trpi_cell *cell, trp_msg **ret_msg)
{
    trpi_bounded_mailbox *mailbox = (trpi_bounded_mailbox *)(uintptr_t)cell->ops;
    trpi_take taken;
    trp_msg *done;

    trpi_bounded_done(ctx);
    if (mailbox == NULL || !trpi_mailbox_is_ordered(mailbox)) { /* NULL: the cell has ended */
        taken = trpi_mailbox_take(cell, ret_msg, &done);
        if (taken == TRPI_TAKE_MSG) {
            if (done != NULL) {
                trpi_msg_free(ctx->cache, done);
            }
            if (mailbox != NULL && (*ret_msg)->priv_to_generation == mailbox->owner.generation) {
                place_give(ctx, cell, mailbox);
            }
        } else if (taken == TRPI_TAKE_EMPTY && mailbox != NULL && mailbox->shared != NULL) {
            *ret_msg = ctx->turn.unqueued = trpi_shared_take(ctx, mailbox);
            taken = *ret_msg != NULL ? TRPI_TAKE_MSG : TRPI_TAKE_EMPTY;
        }
        return taken;
    }
    taken = order_fill(ctx, cell, mailbox);
    *ret_msg = trpi_mailbox_order_take(mailbox);
    if (mailbox->custom != NULL) {
        trpi_bounded_recount(ctx, cell, mailbox);
    } else if (*ret_msg != NULL) {
        place_give(ctx, cell, mailbox);
    }
    if (*ret_msg == NULL) {
        return taken;
    }
    ctx->turn.unqueued = *ret_msg;
    return TRPI_TAKE_MSG;
}

bool
trpi_bounded_has_more(trpi_cell *cell)
{
    trpi_bounded_mailbox *mailbox =
        trpi_ops_are_bounded(cell->ops) ? (trpi_bounded_mailbox *)(uintptr_t)cell->ops : NULL;

    return trpi_mailbox_has_more(cell) || (mailbox != NULL && trpi_mailbox_is_ordered(mailbox) &&
                                           trpi_mailbox_order_count(mailbox) > 0);
}

bool
trpi_bounded_has_many(const trpi_cell *cell)
{
    trpi_bounded_mailbox *mailbox = (trpi_bounded_mailbox *)(uintptr_t)cell->ops;

    return mailbox->capacity == 0 && trpi_mailbox_is_ordered(mailbox) &&
           trpi_mailbox_order_count(mailbox) > 1;
}

static void
dead_left(void *arg, trp_msg *msg)
{
    trp_ctx *ctx = arg;
    trp_ref to = { TRPI_NODE_SELF, msg->priv_to_slot, msg->priv_to_generation, 0 };

    trpi_dead(ctx, to, msg, TRP_DEAD_STOPPED);
    trpi_msg_free(ctx->cache, msg);
}

void
trpi_bounded_close(trp_ctx *ctx, trpi_cell *cell, trpi_bounded_mailbox *mailbox)
{
    trpi_mailbox_waiter *waiters;
    trpi_mailbox_pending *pending;
    trpi_ref_map ready;
    trp_msg *msg;

    if (mailbox->shared != NULL) {
        trpi_shared_leave(ctx, mailbox);
    }
    trpi_nested_hold(ctx);
    pthread_mutex_lock(&mailbox->lock);
    mailbox->closed = true;
    pending = mailbox->pending_first;
    mailbox->pending_first = mailbox->pending_last = NULL;
    mailbox->pending_count = 0;
    waiters = mailbox->waiters;
    mailbox->waiters = NULL;
    ready = mailbox->ready;
    mailbox->ready = (trpi_ref_map){ 0 };
    pthread_cond_broadcast(&mailbox->room);
    pthread_mutex_unlock(&mailbox->lock);
    if (trpi_mailbox_is_ordered(mailbox)) { /* bounded-mailbox-B4: the loop drains later messages */
        while (order_fill(ctx, cell, mailbox) == TRPI_TAKE_NOT_YET) {
            (void)sched_yield(); /* a sender is between its two steps */
        }
        if (mailbox->custom != NULL) {
            mailbox->type->options.ops->clean_up(mailbox->custom, dead_left, ctx);
        } else {
            while ((msg = trpi_mailbox_order_take(mailbox)) != NULL) {
                dead_left(ctx, msg);
            }
        }
    }
    while (pending != NULL) {
        trpi_mailbox_pending *next = pending->next;

        dead_left(ctx, pending->msg);
        trpi_free(pending);
        pending = next;
    }
    waiters_run(ctx, waiters);
    ready_tell(ctx, mailbox, &ready);
    trpi_nested_release(ctx);
    trpi_system_retire(ctx->system, trpi_bounded_free, mailbox); /* bounded-mailbox-B5 */
}

/* ---- inspection ------------------------------------------------------------------------------ */

uint32_t
trpi_bounded_waiting(const trpi_bounded_mailbox *mailbox)
{
    uint32_t own = atomic_load_explicit(&mailbox->count, RELAXED);

    return mailbox->shared == NULL ? own
                                   : own + atomic_load_explicit(&mailbox->shared->count, RELAXED);
}

uint32_t
trp_mailbox_size(trp_ctx *ctx)
{
    trpi_cell *cell = ctx->cell;
    trpi_bounded_mailbox *mailbox;
    uint32_t count = 0;

    if (cell == NULL) {
        return 0;
    }
    mailbox = trpi_bounded_get(cell, cell->generation_run);
    if (mailbox != NULL) {
        return trpi_bounded_waiting(mailbox);
    }
    for (trp_msg *msg = trpi_mailbox_first(cell); msg != NULL; msg = trpi_msg_next(msg)) {
        count += msg->priv_type != TRPI_TYPE_MARK;
    }
    return count;
}

/* Line B belongs to the runner: values read here are hints, of different moments. */
#if defined(__clang__) || defined(__GNUC__)
__attribute__((no_sanitize("thread")))
#endif
static bool
seems_empty(const trpi_cell *cell, uintptr_t head, uint8_t *ret_suspended)
{
    const volatile uint8_t *suspended = &cell->suspended;
    trp_msg *const volatile *tail = &cell->tail;

    *ret_suspended = *suspended != 0;
    return (head & ~TRPI_TOKEN) == (uintptr_t)*tail;
}

trp_err
trp_mailbox_look(trp_system *system, trp_ref ref, trp_mailbox_view *ret_view)
{
    trp_mailbox_view view = { 0 };
    trp_err err = TRP_ENOENT;
    trpi_cell *cell;
    trp_ctx *ctx;

    if (!trpi_system_is_valid(system) || ret_view == NULL) {
        return TRP_EINVAL;
    }
    ctx = trpi_enter(system);
    cell = trpi_cell_peek(ctx, ref);
    if (cell != NULL) {
        uintptr_t head = atomic_load_explicit(&cell->head, memory_order_acquire);
        const trpi_bounded_mailbox *mailbox = trpi_bounded_get(cell, ref.generation);
        bool empty = seems_empty(cell, head, &view.suspended);

        if (mailbox != NULL) {
            view.exact = 1;
            view.messages = trpi_bounded_waiting(mailbox);
        } else if (!empty) {
            view.messages = atomic_load_explicit(&cell->overloaded, RELAXED) != 0
                                ? system->options.throughput
                                : 1;
        }
        view.idle = (head & TRPI_TOKEN) != 0 && view.messages == 0;
        *ret_view = view;
        err = TRP_OK;
    }
    trpi_leave(ctx);
    return err;
}
