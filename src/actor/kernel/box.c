/* box.c - mailboxes with a bound or an order of their own: who may put in, who waits, who is told.
 *
 * Why.     The default queue has neither a bound nor an order but that of arrival, and costs one
 *          exchange. The others keep this queue, with its token, and add what they need on either
 *          side of it, so that life, death and late messages are the same for all.
 * Shape.   teller: count + 1 <= capacity? -> push to head; else pending (with a deadline), and the
 *          teller's task waits here until there is room
 *          runner: queue -> order (priority, control first, the program's) -> count - 1 ->
 *          behaviour
 * Must hold.
 *   bounded-mailbox-B1  count is what was admitted and not taken out yet, and never above capacity.
 *   bounded-mailbox-B2  Who finds the box full says so (full_any), then looks at count once more;
 *       the runner takes one off count, then looks at full_any. All seq_cst: one of the two sees
 *       the other.
 *   bounded-mailbox-B3  Whoever waits here is given back: when there is room, when its time is
 *       over, or when the owner ends.
 *   bounded-mailbox-B4  The queue of a cell whose box has an order: its tail is the stub, or a
 *       message that is not taken yet (a plain cell's tail is one that is).
 *   bounded-mailbox-B5  A box is freed when no thread can be between finding and using it
 *       (trpi_retire).
 * Threads. lock guards what waits; nothing is called under it but pushes to the owner's queue,
 *          which then does not run on this thread (here-E2).
 * Limits.  capacity, TRP_MAILBOX_PENDING_MAX.
 * Tests.   tests/unit/actor/box_test.c
 * Sources. MBOX-1 to -6, -12 to -16; docs/architecture.md#back-pressure.
 */
#include "actor/kernel/schedule.h"
#include "actor/kernel/box.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "actor/kernel/cells.h"
#include "actor/kernel/team.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomics.h"
#include "base/mutex.h"

const char trpi_box_name[] = "box";

/* ---- birth and end --------------------------------------------------------------------------- */

static void
box_drop(trpi_cell *cell)
{
    trpi_box_free((trpi_box *)(uintptr_t)cell->ops);
}

trp_err
trpi_box_new(trp_ctx *ctx, trpi_cell *cell, const trpi_box_type *type)
{
    trpi_box *box = trpi_alloc_aligned(64, sizeof *box);
    pthread_condattr_t attributes;

    if (box == NULL) {
        return TRP_ENOMEM;
    }
    box->ops = (trpi_kind_ops){ .name = trpi_box_name, .drop = box_drop };
    box->system = ctx->system;
    box->type = type;
    box->owner = trpi_slot_ref(cell);
    box->capacity = type->options.capacity;
    box->will_receive = cell->behaviour->will_receive;
    pthread_mutex_init(&box->lock, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&box->room, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    if (type->options.ops != NULL) {
        trp_err err =
            type->options.ops->create(type->options.arg, ctx->system, box->owner, &box->custom);

        if (err != TRP_OK) {
            box->custom = NULL;
            trpi_box_free(box);
            return err;
        }
        box->inside = type->options.ops->count(box->custom); /* a durable one is born with mail */
        atomic_init(&box->count, box->inside);
    }
    trpi_cell_ops_set(cell, &box->ops);
    return TRP_OK;
}

void
trpi_box_free(void *object)
{
    trpi_box *box = object;

    if (box->custom != NULL) {
        box->type->options.ops->destroy(box->custom);
    }
    trpi_ref_map_fini(&box->ready);
    trpi_free(box->heap);
    pthread_cond_destroy(&box->room);
    trpi_mutex_destroy(&box->lock);
    trpi_free(box);
}

trpi_box *
trpi_box_get(const trpi_cell *cell, uint32_t generation)
{
    const trpi_kind_ops *ops;

    /* as routed.c: the ops are this incarnation's if the generation is, before and after */
    if (atomic_load_explicit(&cell->generation, memory_order_acquire) != generation) {
        return NULL;
    }
    ops = __atomic_load_n(&cell->ops, __ATOMIC_ACQUIRE);
    if (atomic_load_explicit(&cell->generation, RELAXED) != generation) {
        return NULL;
    }
    return trpi_box_is(ops) ? (trpi_box *)(uintptr_t)ops : NULL;
}

/* ---- room ------------------------------------------------------------------------------------ */

/* bounded-mailbox-B1: one place, if there is one. */
static bool
place_take(trpi_box *box)
{
    uint32_t count = atomic_load_explicit(&box->count, RELAXED);

    while (box->capacity == 0 || count < box->capacity) {
        if (atomic_compare_exchange_weak_explicit(&box->count, &count, count + 1, SEQ_CST,
                                                  RELAXED)) {
            return true;
        }
    }
    return false;
}

/* False: another one is running it. */
static bool
push(trp_ctx *ctx, trpi_cell *cell, trp_msg *msg)
{
    trpi_msg_next_set(msg, NULL, __ATOMIC_RELAXED);
    if (!trpi_mailbox_push(cell, msg, msg)) {
        return false;
    }
    trpi_schedule(ctx, cell);
    return true;
}

/* Without the lock. */
static void
push_and_wait(trp_ctx *ctx, trpi_cell *cell, trp_msg *msg)
{
    if (!push(ctx, cell, msg)) {
        trpi_tell_wait(ctx, cell);
    }
}

static void
waiters_run(trp_ctx *ctx, trpi_box_waiter *waiters)
{
    while (waiters != NULL) {
        trpi_box_waiter *next = waiters->next;

        trpi_sched_inject(ctx->system->sched, waiters->task);
        trpi_free(waiters);
        waiters = next;
    }
}

static void
ready_tell(trp_ctx *ctx, const trpi_box *box, trpi_ref_map *ready)
{
    trp_mailbox_ready what = { box->owner };
    uint32_t position = 0;
    trpi_ref_pair *pair;

    while ((pair = trpi_ref_map_next(ready, &position)) != NULL) {
        trpi_tell(ctx, pair->ref, box->owner, &trp_mailbox_ready_type, &what, sizeof what);
    }
    trpi_ref_map_fini(ready);
}

/* Under the lock: let in what waits, as far as there is room. */
static void
pending_admit(trp_ctx *ctx, trpi_cell *cell, trpi_box *box)
{
    while (box->pending_first != NULL && place_take(box)) {
        trpi_pending *first = box->pending_first;

        box->pending_first = first->next;
        if (box->pending_first == NULL) {
            box->pending_last = NULL;
        }
        box->pending_count--;
        (void)push(ctx, cell, first->msg);
        trpi_free(first);
    }
}

/* There may be room: for what waits, for who waits, for who wants to know (bounded-mailbox-B2,
 * bounded-mailbox-B3). */
static void
room_made(trp_ctx *ctx, trpi_cell *cell, trpi_box *box)
{
    trpi_box_waiter *waiters = NULL;
    trpi_ref_map ready = { 0 };

    trpi_here_hold(ctx);
    pthread_mutex_lock(&box->lock);
    pending_admit(ctx, cell, box);
    if (box->pending_first == NULL) {
        waiters = box->waiters;
        box->waiters = NULL;
        if (box->blocked > 0) {
            pthread_cond_broadcast(&box->room);
        }
        if (atomic_load_explicit(&box->count, SEQ_CST) <= box->capacity / 2) {
            ready = box->ready;
            box->ready = (trpi_ref_map){ 0 };
        }
        atomic_store_explicit(&box->full_any, box->blocked > 0 || box->ready.count > 0, SEQ_CST);
    }
    pthread_mutex_unlock(&box->lock);
    waiters_run(ctx, waiters);
    ready_tell(ctx, box, &ready);
    trpi_here_release(ctx);
}

static inline void
place_give(trp_ctx *ctx, trpi_cell *cell, trpi_box *box)
{
    (void)atomic_fetch_sub_explicit(&box->count, 1, SEQ_CST);
    /* bounded-mailbox-B2 */
    if (__builtin_expect(atomic_load_explicit(&box->full_any, SEQ_CST), 0)) {
        room_made(ctx, cell, box);
    }
}

/* ---- a full box ------------------------------------------------------------------------------ */

static trp_err
dead_full(trp_ctx *ctx, trp_ref to, trp_msg *msg)
{
    trpi_dead(ctx, to, msg, TRP_DEAD_MAILBOX_FULL);
    trpi_msg_free(ctx->cache, msg);
    return TRP_OK;
}

static void pending_over(void *arg, uint64_t slot, uint64_t generation);

/* Under the lock. The oldest ends first: all wait equally long. */
static void
timer_arm(trpi_box *box)
{
    uint64_t now = trpi_world_mono_ns(box->system->world), id;

    if (box->pending_first == NULL || box->timer_set ||
        box->pending_first->until_ns == UINT64_MAX) {
        return;
    }
    box->timer_set = trpi_timer_add(box->system->sched,
                                    box->pending_first->until_ns > now
                                        ? (box->pending_first->until_ns - now + 999999) / 1000000
                                        : 1,
                                    pending_over, box->system, box->owner.slot,
                                    box->owner.generation, &id) == TRP_OK;
}

static void
pending_over(void *arg, uint64_t slot, uint64_t generation)
{
    trp_ctx *ctx = trpi_enter(arg);
    trpi_cell *cell = trpi_cells_find(ctx->cells, (uint32_t)slot);
    trpi_box *box = trpi_box_get(cell, (uint32_t)generation);
    uint64_t now = trpi_world_mono_ns(ctx->system->world);
    trpi_pending *over = NULL, **end = &over;

    if (box != NULL) {
        pthread_mutex_lock(&box->lock);
        box->timer_set = false;
        while (box->pending_first != NULL && box->pending_first->until_ns <= now) {
            *end = box->pending_first;
            box->pending_first = (*end)->next;
            end = &(*end)->next;
            box->pending_count--;
        }
        *end = NULL;
        if (box->pending_first == NULL) {
            box->pending_last = NULL;
        }
        timer_arm(box);
        pthread_mutex_unlock(&box->lock);
        while (over != NULL) {
            trpi_pending *next = over->next;

            (void)dead_full(ctx, box->owner, over->msg);
            trpi_free(over);
            over = next;
        }
        room_made(ctx, cell, box); /* who waited only for what is over goes on */
    }
    trpi_leave(ctx);
}

/* Put msg where it waits for room; the teller's turn ends after its present message. */
static trp_err
wait_behind(trp_ctx *ctx, trpi_cell *cell, trpi_box *box, trp_ref to, trp_msg *msg)
{
    uint32_t timeout = box->type->options.push_timeout_ms;
    trpi_pending *pending = trpi_alloc(sizeof *pending);
    bool refused;

    if (pending == NULL) {
        return dead_full(ctx, to, msg);
    }
    pending->msg = msg;
    pending->until_ns = timeout == TRP_FOREVER
                            ? UINT64_MAX
                            : trpi_world_mono_ns(box->system->world) + (uint64_t)timeout * 1000000u;
    pthread_mutex_lock(&box->lock);
    refused = box->closed || box->pending_count == TRP_MAILBOX_PENDING_MAX;
    if (!refused) {
        if (box->pending_last != NULL) {
            box->pending_last->next = pending;
        } else {
            box->pending_first = pending;
        }
        box->pending_last = pending;
        box->pending_count++;
        atomic_store_explicit(&box->full_any, true, SEQ_CST); /* bounded-mailbox-B2 */
        timer_arm(box);
    }
    pthread_mutex_unlock(&box->lock);
    if (refused) {
        trpi_free(pending);
        return dead_full(ctx, to, msg);
    }
    ctx->cut = true;
    ctx->cut_home = TRPI_DEFER_HOLD;
    ctx->cut_box = to;
    if (atomic_load_explicit(&box->count, SEQ_CST) < box->capacity) {
        room_made(ctx, cell, box);
    }
    return TRP_OK;
}

bool
trpi_box_wait(trp_ctx *ctx, trpi_cell *cell)
{
    trpi_cell *full = trpi_cell_peek(ctx, ctx->cut_box);
    trpi_box *box = full != NULL && full != cell
                        ? trpi_box_get(full, ctx->cut_box.generation)
                        : NULL; /* who waits for itself would wait for ever */
    trpi_box_waiter *waiter = box != NULL ? trpi_alloc(sizeof *waiter) : NULL;
    bool waits;

    ctx->cut_box = (trp_ref)TRP_REF_NONE;
    if (waiter == NULL) {
        return false;
    }
    waiter->task = &cell->task;
    pthread_mutex_lock(&box->lock);
    waits = box->pending_first != NULL && !box->closed;
    if (waits) {
        waiter->next = box->waiters;
        box->waiters = waiter;
    }
    pthread_mutex_unlock(&box->lock);
    if (!waits) {
        trpi_free(waiter);
    }
    return waits;
}

/* A thread that is no actor waits here. */
static trp_err
block(trp_ctx *ctx, trpi_cell *cell, trpi_box *box, trp_ref to, trp_msg *msg)
{
    uint32_t timeout = box->type->options.push_timeout_ms;
    uint64_t ns = (uint64_t)(timeout == TRP_FOREVER ? 0 : timeout) * 1000000u;
    uint64_t until = trpi_world_mono_ns(box->system->world) + ns;
    struct timespec deadline = { (time_t)(until / 1000000000u), (long)(until % 1000000000u) };
    bool in = false, over = false, runs = true;

    trpi_here_hold(ctx); /* the owner may be one that runs here when it is given the message */
    pthread_mutex_lock(&box->lock);
    box->blocked++;
    atomic_store_explicit(&box->full_any, true, SEQ_CST); /* bounded-mailbox-B2 */
    while (!box->closed && !over) {
        in = box->pending_first == NULL && place_take(box);
        if (in) {
            break;
        }
        over = (timeout == TRP_FOREVER
                    ? pthread_cond_wait(&box->room, &box->lock)
                    : pthread_cond_timedwait(&box->room, &box->lock, &deadline)) == ETIMEDOUT;
    }
    box->blocked--;
    if (in) {
        runs = push(ctx, cell, msg);
    }
    pthread_mutex_unlock(&box->lock);
    trpi_here_release(ctx);
    if (!runs) {
        trpi_tell_wait(ctx, cell);
    }
    return in ? TRP_OK : dead_full(ctx, to, msg);
}

static trp_err
refuse(trp_ctx *ctx, trpi_cell *cell, trpi_box *box)
{
    if (box->type->options.overflow == TRP_MAILBOX_NOTIFY && ctx->cell != NULL) {
        pthread_mutex_lock(&box->lock);
        if (!box->closed) {
            (void)trpi_ref_map_put(&box->ready, ctx->self, NULL); /* no memory: it asks again */
            atomic_store_explicit(&box->full_any, true, SEQ_CST); /* bounded-mailbox-B2 */
        }
        pthread_mutex_unlock(&box->lock);
        if (atomic_load_explicit(&box->count, SEQ_CST) <= box->capacity / 2) {
            room_made(ctx, cell, box);
        }
    }
    return TRP_EAGAIN;
}

/* Why a mailbox did not take a message, by what its admit or enqueue said. */
static trp_dead_reason
reason_of(trp_err why)
{
    return why == TRP_EMSGSIZE                     ? TRP_DEAD_TOO_LARGE
           : why == TRP_ENOTYPE                    ? TRP_DEAD_NOT_ENCODABLE
           : why == TRP_ENOMEM                     ? TRP_DEAD_NO_MEMORY
           : why == TRP_EIO || why == TRP_EBREAKER ? TRP_DEAD_STORAGE
           : why == TRP_ECLOSED                    ? TRP_DEAD_STALE
                                                   : TRP_DEAD_MAILBOX_FULL;
}

/* Only want of room is worth another try. */
static trp_err
not_admitted(trp_ctx *ctx, trp_ref to, trp_msg *msg, trp_err why, bool try_only)
{
    trp_dead_reason reason = reason_of(why);

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
trpi_box_tell(trp_ctx *ctx, trpi_cell *cell, trp_ref to, trp_msg *msg, bool try_only)
{
    trpi_box *box = trpi_box_get(cell, to.generation);
    bool free_of_bound = trpi_msg_is_own(msg);

    if (box == NULL) {
        push_and_wait(ctx, cell, msg); /* it ends at this moment: the drain finds it stale */
        return TRP_OK;
    }
    if (box->will_receive != NULL && trpi_type_is_ordinary(msg->priv_type) &&
        box->will_receive(msg) == 0) { /* it takes no place, and is stored nowhere */
        trpi_dead(ctx, to, msg, TRP_DEAD_REFUSED);
        trpi_msg_free(ctx->cache, msg);
        return TRP_OK;
    }
    if (box->custom != NULL && box->type->options.ops->admit != NULL && !free_of_bound) {
        trp_err err = box->type->options.ops->admit(box->custom, to, msg);

        if (err != TRP_OK) {
            return not_admitted(ctx, to, msg, err, try_only);
        }
    }
    if (free_of_bound) {
        (void)atomic_fetch_add_explicit(&box->count, 1, SEQ_CST);
        push_and_wait(ctx, cell, msg);
        return TRP_OK;
    }
    if (box->team != NULL) {
        return trpi_team_put(ctx, box, to, msg, try_only);
    }
    /* who came before and waits goes first */
    if (atomic_load_explicit(&box->pending_count, RELAXED) == 0 && place_take(box)) {
        if (box->capacity == 0) {
            trpi_tell_note_unbounded(ctx, cell);
        }
        push_and_wait(ctx, cell, msg);
        return TRP_OK;
    }
    if (try_only) {
        return refuse(ctx, cell, box);
    }
    if (box->type->options.overflow == TRP_MAILBOX_NOTIFY ||
        box->type->options.push_timeout_ms == TRP_OFF) {
        return dead_full(ctx, to, msg);
    }
    if (ctx->worker == NULL && ctx->cell == NULL && !ctx->chaining) {
        return block(ctx, cell, box, to, msg);
    }
    return wait_behind(ctx, cell, box, to, msg);
}

/* ---- the runner ------------------------------------------------------------------------------ */

void
trpi_box_done(trp_ctx *ctx)
{
    if (ctx->boxed != NULL) {
        trpi_msg_free(ctx->cache, ctx->boxed);
        ctx->boxed = NULL;
    }
}

/* bounded-mailbox-B4. The next message, wholly out of the queue. */
static trpi_take
detach(trpi_cell *cell, trp_msg **ret_msg)
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
        /* the last one: the stub, which is out (mailbox-M2), takes its place as the dummy. We hold
         * the token, so the push gives none. */
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
lost(trp_ctx *ctx, const trpi_box *box, trp_msg *msg, trp_dead_reason reason)
{
    trp_ref to = box->owner;

    to.generation = msg->priv_to_generation;
    trpi_dead(ctx, to, msg, reason);
    trpi_msg_free(ctx->cache, msg);
}

/* Everything from the queue goes into the order. */
static trpi_take
gather(trp_ctx *ctx, trpi_cell *cell, trpi_box *box)
{
    trpi_take taken;
    trp_msg *msg;
    trp_err err;

    while ((taken = detach(cell, &msg)) == TRPI_TAKE_MSG) {
        if (msg->priv_to_generation != box->owner.generation) {
            /* a late one of another incarnation: not counted */
            lost(ctx, box, msg, TRP_DEAD_STALE);
        } else if ((err = trpi_order_put(box, msg)) != TRP_OK) {
            lost(ctx, box, msg, reason_of(err));
            place_give(ctx, cell, box);
        } else {
            box->inside++;
        }
    }
    return taken;
}

void
trpi_box_settle(trp_ctx *ctx, trpi_cell *cell, trpi_box *box)
{
    uint32_t counted = box->type->options.ops->count(box->custom);

    while (box->inside > counted) {
        box->inside--;
        place_give(ctx, cell, box);
    }
}

trpi_take
trpi_box_take(trp_ctx *ctx, trpi_cell *cell, trp_msg **ret_msg)
{
    trpi_box *box = (trpi_box *)(uintptr_t)cell->ops;
    trpi_take taken;
    trp_msg *done;

    trpi_box_done(ctx);
    if (box == NULL || !trpi_order_is_used(box)) { /* NULL: the cell has ended */
        taken = trpi_mailbox_take(cell, ret_msg, &done);
        if (taken == TRPI_TAKE_MSG) {
            if (done != NULL) {
                trpi_msg_free(ctx->cache, done);
            }
            if (box != NULL && (*ret_msg)->priv_to_generation == box->owner.generation) {
                place_give(ctx, cell, box);
            }
        } else if (taken == TRPI_TAKE_EMPTY && box != NULL && box->team != NULL) {
            *ret_msg = ctx->boxed = trpi_team_take(ctx, box);
            taken = *ret_msg != NULL ? TRPI_TAKE_MSG : TRPI_TAKE_EMPTY;
        }
        return taken;
    }
    taken = gather(ctx, cell, box);
    *ret_msg = trpi_order_take(box);
    if (box->custom != NULL) {
        trpi_box_settle(ctx, cell, box);
    } else if (*ret_msg != NULL) {
        place_give(ctx, cell, box);
    }
    if (*ret_msg == NULL) {
        return taken;
    }
    ctx->boxed = *ret_msg;
    return TRPI_TAKE_MSG;
}

bool
trpi_box_has_more(trpi_cell *cell)
{
    trpi_box *box = trpi_box_is(cell->ops) ? (trpi_box *)(uintptr_t)cell->ops : NULL;

    return trpi_mailbox_has_more(cell) ||
           (box != NULL && trpi_order_is_used(box) && trpi_order_count(box) > 0);
}

bool
trpi_box_has_many(const trpi_cell *cell)
{
    trpi_box *box = (trpi_box *)(uintptr_t)cell->ops;

    return box->capacity == 0 && trpi_order_is_used(box) && trpi_order_count(box) > 1;
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
trpi_box_close(trp_ctx *ctx, trpi_cell *cell, trpi_box *box)
{
    trpi_box_waiter *waiters;
    trpi_pending *pending;
    trpi_ref_map ready;
    trp_msg *msg;

    if (box->team != NULL) {
        trpi_team_leave(ctx, box);
    }
    trpi_here_hold(ctx);
    pthread_mutex_lock(&box->lock);
    box->closed = true;
    pending = box->pending_first;
    box->pending_first = box->pending_last = NULL;
    box->pending_count = 0;
    waiters = box->waiters;
    box->waiters = NULL;
    ready = box->ready;
    box->ready = (trpi_ref_map){ 0 };
    pthread_cond_broadcast(&box->room);
    pthread_mutex_unlock(&box->lock);
    if (trpi_order_is_used(box)) { /* bounded-mailbox-B4: a plain drain comes after us */
        while (gather(ctx, cell, box) == TRPI_TAKE_NOT_YET) {
            (void)sched_yield(); /* a teller is between its two steps */
        }
        if (box->custom != NULL) {
            box->type->options.ops->clean_up(box->custom, dead_left, ctx);
        } else {
            while ((msg = trpi_order_take(box)) != NULL) {
                dead_left(ctx, msg);
            }
        }
    }
    while (pending != NULL) {
        trpi_pending *next = pending->next;

        dead_left(ctx, pending->msg);
        trpi_free(pending);
        pending = next;
    }
    waiters_run(ctx, waiters);
    ready_tell(ctx, box, &ready);
    trpi_here_release(ctx);
    trpi_system_retire(ctx->system, trpi_box_free, box); /* bounded-mailbox-B5 */
}

/* ---- looking --------------------------------------------------------------------------------- */

uint32_t
trpi_box_waiting(const trpi_box *box)
{
    uint32_t own = atomic_load_explicit(&box->count, RELAXED);

    return box->team == NULL ? own : own + atomic_load_explicit(&box->team->count, RELAXED);
}

uint32_t
trp_mailbox_size(trp_ctx *ctx)
{
    trpi_cell *cell = ctx->cell;
    trpi_box *box;
    uint32_t count = 0;

    if (cell == NULL) {
        return 0;
    }
    box = trpi_box_get(cell, cell->generation_run);
    if (box != NULL) {
        return trpi_box_waiting(box);
    }
    for (trp_msg *msg = trpi_mailbox_first(cell); msg != NULL; msg = trpi_msg_next(msg)) {
        count += msg->priv_type != TRPI_TYPE_MARK;
    }
    return count;
}

/* Line B is the runner's: what is read of it here is a hint, and may be of another moment. */
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
        const trpi_box *box = trpi_box_get(cell, ref.generation);
        bool empty = seems_empty(cell, head, &view.suspended);

        if (box != NULL) {
            view.exact = 1;
            view.messages = trpi_box_waiting(box);
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
