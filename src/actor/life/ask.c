/* ask.c - a question and its answer, or an error when none comes.
 *
 * Why.     An ask needs an address for exactly one reply. That address is a cell of kind promise:
 *          replies from near and far, timeouts, dead letters and late replies all meet in its
 *          mailbox, so nothing needs a lock or a special case.
 * Shape.   asker --tell, sender = promise--> asked --reply--> promise --CONTINUE--> asker's user
 *          queue A thread that asks waits on a condition variable instead of a CONTINUE.
 * Must hold.
 *   ask-P1  A promise completes once and its generation ends with that: a later reply is a dead
 *       letter.
 *   ask-P2  Completing needs no memory but for the copy of the reply: the asker makes the CONTINUE.
 *   ask-P3  A waiter is freed by the last of thread and promise.
 *   ask-P4  An Identify may be lost with a connection. A thread that resolves a path asks again for
 *       the same promise; the first answer counts (ask-P1).
 *   ask-P5  A thread that waits for the end of an actor also checks by itself, in case the
 *       promise's dispatcher is blocked.
 *   ask-P6  A thread that waits for an answer also looks by itself whether its system has ended, or
 *       whether its caller still wants the answer.
 * Limits.  actors-max counts promises too (TRP_ELIMIT).
 * Tests.   tests/unit/actor/ask_test.c
 * Sources. MSG-4, LIFE-14, SYS-25, SYS-26, MEM-5; docs/architecture.md#asks-and-watches.
 */
#include "actor/kernel/misuse.h"
#include "actor/life/ended.h"
#include "actor/life/life.h"
#include "actor/life/promise.h"

#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

#define AGAIN_MS 1000u /* then twice that, and so on */
#define AGAIN_TIMES 3  /* after 1, 3 and 7 s */
#define LOOK_MS 100u   /* between two checks whether the actor has ended (ask-P5) */

static const trp_ref nobody = TRP_REF_NONE;

typedef struct trpi_waiter { /* a thread that asks */
    trpi_cond cond;          /* guards all below */
    bool done;
    bool given_up;   /* the thread has stopped waiting: a reply is late */
    uint32_t owners; /* thread and promise */
    trp_err err;
    trp_msg *reply;
} waiter;

typedef struct trpi_continuation { /* payload of a CONTINUE, out of line */
    trp_ref promise;
    trp_err err;
    trp_msg *reply; /* owned */
} continuation;

typedef struct trpi_pending { /* in the asker's map */
    trp_reply_fn fn;
    void *arg;
    const trpi_trailer *in; /* what the question carried, behind this struct; NULL: nothing */
} trpi_pending;

/* ---- CONTINUE messages ----------------------------------------------------------------------- */

static void
continuation_release(void *data, void *arg)
{
    continuation *c = data;

    (void)arg;
    trpi_msg_drop(c->reply);
    trpi_free(c);
}

static trp_msg *
continue_new(trp_ctx *ctx, continuation **ret_data)
{
    continuation *data = trpi_alloc(sizeof *data);
    trp_msg *msg;
    void *payload;

    if (data == NULL) {
        return NULL;
    }
    msg =
        trpi_msg_make_empty(ctx->cache, &trpi_continue_type, sizeof(trp_msg_priv_moved), &payload);
    if (msg == NULL) {
        trpi_free(data);
        return NULL;
    }
    *(trp_msg_priv_moved *)payload =
        (trp_msg_priv_moved){ data, sizeof *data, continuation_release, NULL };
    msg->priv_from_node_flags |= TRP_MSG_PRIV_OUT_OF_LINE;
    *ret_data = data;
    return msg;
}

/* The payload of a CONTINUE made here; NULL: the program sent a message of this type. */
static const continuation *
continuation_of(const trp_msg *msg)
{
    const trp_msg_priv_moved *moved = (const void *)((const char *)msg + TRPI_MSG_HEADER_BYTES);

    if ((msg->priv_from_node_flags & TRP_MSG_PRIV_OUT_OF_LINE) == 0 ||
        moved->release != continuation_release) {
        return NULL;
    }
    return moved->data;
}

/* ---- waiters --------------------------------------------------------------------------------- */

static waiter *
waiter_new(void)
{
    waiter *w = trpi_alloc(sizeof *w);

    if (w == NULL) {
        return NULL;
    }
    trpi_cond_init(&w->cond);
    w->owners = 2;
    return w;
}

static void
waiter_unref(waiter *w)
{
    bool last;

    pthread_mutex_lock(&w->cond.lock);
    last = --w->owners == 0;
    pthread_mutex_unlock(&w->cond.lock);
    if (last) { /* ask-P3 */
        trpi_msg_drop(w->reply);
        trpi_cond_fini(&w->cond);
        trpi_free(w);
    }
}

/* Wake the thread. Takes reply, unless it comes too late: then false. */
static bool
waiter_wake(waiter *w, trp_err err, trp_msg *reply)
{
    bool taken;

    pthread_mutex_lock(&w->cond.lock);
    taken = !w->given_up;
    if (taken) {
        w->done = true;
        w->err = err;
        w->reply = reply;
        trpi_cond_broadcast(&w->cond);
    }
    pthread_mutex_unlock(&w->cond.lock);
    waiter_unref(w);
    return taken;
}

static void
reply_late(trp_ctx *ctx, trp_ref promise_ref, const trp_msg *reply)
{
    trpi_dead_letter_msg(ctx->system, promise_ref, reply, TRP_DEAD_STALE);
}

/* ---- promises: on a worker, with the cell's token -------------------------------------------- */

/* Takes reply. */
static void
promise_complete(trp_ctx *ctx, trpi_cell *cell, trp_err err, trp_msg *reply)
{
    trpi_promise *p = cell->state;

    trpi_assert(p != NULL);
    cell->state = NULL;
    if (p->timer_id != 0) {
        (void)trpi_timer_cancel(ctx->system->sched,
                                p->timer_id); /* a late one meets a stale generation */
    }
    if (p->purpose == TRPI_FOR_END && err != TRP_OK) {
        trpi_unwatch_send(ctx, trpi_cell_ref(cell), p->asked);
    }
    if (p->done != NULL) {
        p->data->err = err;
        p->data->reply = reply;
        trpi_send(ctx, p->asker, p->done);
    } else if (!waiter_wake(p->waiting, err, reply) && reply != NULL) {
        reply_late(ctx, trpi_cell_ref(cell), reply);
        trpi_msg_drop(reply);
    }
    trpi_free(p);
    trpi_run_ended(ctx, cell); /* ask-P1 */
}

/* Map the first message to the result of the ask. */
static trp_err
promise_judge(const trpi_promise *p, const trp_msg *msg)
{
    const void *payload = trp_msg_payload(msg);

    if (msg->priv_type == TRPI_TYPE_STATUS_FAILURE && trp_msg_bytes(msg) >= sizeof(int32_t)) {
        int32_t err;

        memcpy(&err, payload, sizeof err);
        return err == TRP_OK ? TRP_EFAILED : (trp_err)err;
    }
    if (p->purpose == TRPI_FOR_REF) {
        const trp_actor_identity *identity = payload;

        if (msg->priv_type != TRPI_TYPE_ACTOR_IDENTITY || trp_msg_bytes(msg) != sizeof *identity) {
            return TRP_EPROTO;
        }
        return trp_ref_is_none(identity->ref) ? TRP_ENOENT : TRP_OK;
    }
    return TRP_OK;
}

static void
promise_deliver(trp_ctx *ctx, trpi_cell *cell, trp_msg *msg)
{
    trpi_promise *p = cell->state;
    trp_msg *reply = NULL;
    trp_err err;

    if (p == NULL) {
        return; /* completed earlier in this turn */
    }
    if (p->purpose == TRPI_FOR_END) {
        if (msg->priv_type == TRPI_TYPE_TERMINATED) {
            promise_complete(ctx, cell, TRP_OK, NULL);
        }
        return;
    }
    if (msg->priv_type == TRPI_TYPE_ASK_UNHANDLED) { /* from another node */
        if (p->purpose == TRPI_FOR_REPLY && trp_ref_equal(trpi_msg_sender(msg), p->asked)) {
            promise_complete(ctx, cell, TRP_EUNHANDLED, NULL);
        }
        return;
    }
    err = promise_judge(p, msg);
    if ((p->purpose == TRPI_FOR_REPLY || (err != TRP_ENOENT && err != TRP_EPROTO)) &&
        trp_msg_dup(msg, &reply) != TRP_OK) {
        err = TRP_ENOMEM;
        reply = NULL;
    }
    promise_complete(ctx, cell, err, reply);
}

static bool
promise_system(trp_ctx *ctx, trpi_cell *cell, trpi_sysmsg *sysmsg)
{
    trpi_promise *p = cell->state;

    if (p == NULL) {
        if (sysmsg->kind == TRPI_SYS_WATCH) {
            trpi_watch_answer(ctx, sysmsg->from, sysmsg->pointer, false);
        }
        return true;
    }
    switch (sysmsg->kind) {
    case TRPI_SYS_PROMISE_TIMEOUT:
        promise_complete(ctx, cell, TRP_ETIMEDOUT, NULL);
        break;
    case TRPI_SYS_STOP: /* /temp/$x was stopped: the ask fails */
    case TRPI_SYS_PROMISE_CANCEL:
        promise_complete(ctx, cell, TRP_ECANCELED, NULL);
        break;
    case TRPI_SYS_PROMISE_DEAD:
        if (sysmsg->flag != 0 || trp_ref_equal(sysmsg->from, p->asked)) {
            promise_complete(ctx, cell, (trp_err)sysmsg->number, NULL);
        }
        break;
    case TRPI_SYS_WATCH: /* too short-lived to be worth a list */
        trpi_watch_answer(ctx, sysmsg->from, sysmsg->pointer, true);
        break;
    default:
        return false;
    }
    return true;
}

/* Free a promise without an answer: the system is being freed. */
static void
promise_drop(trpi_cell *cell)
{
    trpi_promise *p = cell->state;

    cell->state = NULL;
    if (p == NULL) {
        return;
    }
    trpi_msg_drop(p->done);
    if (p->waiting != NULL) {
        waiter_unref(p->waiting); /* its thread has given up */
    }
    trpi_free(p);
}

static const trpi_kind_ops promise_ops = { "promise", promise_deliver, promise_system, NULL,
                                           promise_drop };

static void
promise_timeout(void *arg, uint64_t slot, uint64_t generation)
{
    trp_ctx *ctx = trpi_enter(arg);

    trpi_sys_tell(ctx, (uint32_t)slot, (uint32_t)generation, TRPI_SYS_PROMISE_TIMEOUT, 0, nobody, 0,
                  NULL);
    trpi_leave(ctx);
}

/* Make a promise; timeout_ms 0: none. Takes w (then no CONTINUE) or makes one for asker. */
static trp_err
promise_new(trp_ctx *ctx, enum trpi_purpose purpose, trp_ref asked, trp_ref asker, waiter *w,
            uint32_t timeout_ms, trp_ref *ret_ref)
{
    trpi_promise *p = trpi_alloc(sizeof *p);
    trpi_cell *cell = NULL;
    trp_err err = p == NULL ? TRP_ENOMEM : trpi_slot_acquire(ctx, &cell);

    if (err != TRP_OK) {
        trpi_free(p);
        return err;
    }
    *ret_ref = trpi_slot_ref(cell);
    p->purpose = purpose;
    p->asked = asked;
    p->asker = asker;
    p->waiting = w;
    if (w == NULL) {
        p->done = continue_new(ctx, &p->data);
        err = p->done == NULL ? TRP_ENOMEM : TRP_OK;
        if (err == TRP_OK) {
            p->data->promise = *ret_ref;
            err = trpi_timer_add(ctx->system->sched, timeout_ms, promise_timeout, ctx->system,
                                 ret_ref->slot, ret_ref->generation, &p->timer_id);
        }
        if (err != TRP_OK) {
            if (p->done != NULL) {
                trpi_msg_free(ctx->cache, p->done);
            }
            trpi_free(p);
            trpi_slot_abandon(ctx, cell);
            return err;
        }
    }
    cell->state = p;
    trpi_cell_ops_set(cell, &promise_ops);
    cell->life = TRPI_LIFE_RUNNING;
    cell->marks = TRPI_MARK_ORPHAN;
    trpi_slot_publish_idle(ctx, cell, TRPI_KIND_PROMISE);
    return TRP_OK;
}

static void
promise_cancel(trp_ctx *ctx, trp_ref ref)
{
    trpi_sys_to(ctx, ref, TRPI_SYS_PROMISE_CANCEL, 0, nobody, 0, NULL);
}

void
trpi_ask_dead(trp_ctx *ctx, trp_ref ref, trp_ref asked, trp_err err)
{
    trpi_ask_dead_of(ctx, ref, asked, err, false);
}

void
trpi_ask_dead_of(trp_ctx *ctx, trp_ref ref, trp_ref asked, trp_err err, bool any)
{
    const trpi_cell *cell;
    uint8_t kind;

    if (ref.node != TRPI_NODE_SELF || trp_ref_is_none(asked)) {
        return;
    }
    cell = trpi_cells_find(ctx->cells, ref.slot);
    /* a hint that saves the system message for most dead letters; on arrival the generation is
     * checked */
    kind = cell == NULL ? TRPI_KIND_ACTOR : atomic_load_explicit(&cell->kind, memory_order_relaxed);
    if (kind == TRPI_KIND_PROMISE || kind == TRPI_KIND_SERVICE) {
        trpi_sys_to(ctx, ref, TRPI_SYS_PROMISE_DEAD, any, asked, (uint64_t)err, NULL);
    }
}

bool
trpi_ref_is_ask(trp_system *system, trp_ref ref)
{
    const trpi_cell *cell =
        ref.node == TRPI_NODE_SELF ? trpi_cells_find(system->cells, ref.slot) : NULL;
    uint8_t kind =
        cell == NULL ? TRPI_KIND_ACTOR : atomic_load_explicit(&cell->kind, memory_order_relaxed);
    return kind == TRPI_KIND_PROMISE || kind == TRPI_KIND_SERVICE;
}

/* ---- asking from an actor -------------------------------------------------------------------- */

static trp_err
ask_begin(trp_ctx *ctx, enum trpi_purpose purpose, trp_ref asked, uint32_t timeout_ms,
          trp_reply_fn fn, void *arg, trp_ref *ret_promise)
{
    trpi_extra *extra;
    trpi_pending *pending;
    size_t carried_bytes = ctx->carried == NULL ? 0 : sizeof *ctx->carried; /* a trailer */
    trp_err err;

    if (fn == NULL || timeout_ms == 0) {
        return TRP_EINVAL;
    }
    extra = trpi_extra_get(ctx->cell);
    pending = extra == NULL ? NULL : trpi_alloc(sizeof *pending + carried_bytes);
    if (pending == NULL) {
        return TRP_ENOMEM;
    }
    pending->fn = fn;
    pending->arg = arg;
    pending->in = carried_bytes == 0 ? NULL : memcpy(pending + 1, ctx->carried, carried_bytes);
    err = promise_new(ctx, purpose, asked, ctx->self, NULL, timeout_ms, ret_promise);
    if (err == TRP_OK) {
        err = trpi_ref_map_put(&extra->asks, *ret_promise, pending);
        if (err != TRP_OK) {
            promise_cancel(ctx, *ret_promise);
        }
    }
    if (err != TRP_OK) {
        trpi_free(pending);
    }
    return err;
}

static void
ask_forget(trp_ctx *ctx, trp_ref ref)
{
    void *pending;

    if (trpi_ref_map_remove(&ctx->cell->extra->asks, ref, &pending)) {
        trpi_free(pending);
    }
    promise_cancel(ctx, ref);
}

trp_err
trp_ask(trp_ctx *ctx, trp_ref to, const trp_type *type, const void *payload, size_t bytes,
        uint32_t timeout_ms, trp_reply_fn fn, void *arg)
{
    trp_ref ref;
    trp_err err;
    TRPI_USE(ctx);
    err = type == NULL ? TRP_EINVAL : ask_begin(ctx, TRPI_FOR_REPLY, to, timeout_ms, fn, arg, &ref);
    if (err == TRP_OK) {
        if (trp_ref_is_none(to)) {
            trpi_sys_to(ctx, ref, TRPI_SYS_PROMISE_DEAD, 0, to, TRP_ENOENT, NULL);
        } else {
            trpi_tell(ctx, to, ref, type, payload, bytes);
        }
    }
    return err;
}

trp_err
trpi_ask_msg(trp_ctx *ctx, trp_ref to, trp_msg *msg, uint32_t ms, trp_reply_fn fn, void *arg)
{
    trp_ref ref;
    trp_err err = ask_begin(ctx, TRPI_FOR_REPLY, to, ms, fn, arg, &ref);
    if (err == TRP_OK) {
        trpi_send_as(ctx, to, ref, msg);
    }
    return err;
}

trp_err
trp_graceful_stop(trp_ctx *ctx, trp_ref ref, uint32_t timeout_ms, trp_reply_fn fn, void *arg)
{
    trp_ref promise_ref;
    trp_err err;
    TRPI_USE(ctx);
    if (trp_ref_is_none(ref)) {
        return TRP_EINVAL;
    }
    err = ask_begin(ctx, TRPI_FOR_END, ref, timeout_ms, fn, arg, &promise_ref);
    if (err == TRP_OK) {
        err = trpi_watch_send(ctx, promise_ref, ref);
        if (err == TRP_OK) {
            trp_stop(ctx, ref);
        } else {
            ask_forget(ctx, promise_ref);
        }
    }
    return err;
}

/* Ask the actor at path for its ref; the answer goes to the promise. */
static trp_err
identify_path(trp_ctx *ctx, trp_ref anchor, const char *path, trp_ref promise_ref)
{
    trp_identify question = { 1 };
    trp_msg *msg = trpi_msg_make(ctx->cache, nobody, promise_ref, &trp_identify_type, &question,
                                 sizeof question);
    trp_err err;
    if (msg == NULL) {
        return TRP_ENOMEM;
    }
    err = strchr(path, '*') != NULL || strchr(path, '?') != NULL
              ? TRP_EINVAL /* one ref is asked for */
              : trpi_select(ctx, anchor, path, promise_ref, msg);
    trpi_msg_free(ctx->cache, msg);
    return err;
}

trp_err
trp_resolve(trp_ctx *ctx, const char *path, uint32_t timeout_ms, trp_reply_fn fn, void *arg)
{
    trp_ref promise_ref;
    trp_err err;
    TRPI_USE(ctx);
    if (path == NULL) {
        return TRP_EINVAL;
    }
    err = ask_begin(ctx, TRPI_FOR_REF, nobody, timeout_ms, fn, arg, &promise_ref);
    if (err == TRP_OK) {
        err = identify_path(ctx, ctx->self, path, promise_ref);
        if (err != TRP_OK) {
            ask_forget(ctx, promise_ref);
        }
    }
    return err;
}

typedef struct reply_call {
    trpi_pending *pending;
    void *state;
    const continuation *data;
} reply_call;

static trp_err
call_reply(trp_ctx *ctx, void *arg)
{
    const reply_call *call = arg;

    return call->pending->fn(ctx, call->state, call->pending->arg, call->data->err,
                             call->data->reply);
}

trp_err
trpi_ask_continue(trp_ctx *ctx, trpi_cell *cell, trp_msg *msg, const trp_msg **ret_reply)
{
    const continuation *data = continuation_of(msg);
    void *found = NULL;
    reply_call call;
    const trp_msg *before = ctx->msg;
    trpi_handling handling;
    trpi_trailer room;
    trp_err err;
    if (data == NULL || cell->extra == NULL ||
        !trpi_ref_map_remove(&cell->extra->asks, data->promise, &found)) {
        trpi_ask_late(ctx, msg); /* the instance that asked has ended */
        return TRP_OK;
    }
    call = (reply_call){ found, cell->state, data };
    ctx->failure.err = TRP_OK;
    ctx->msg = data->reply; /* trp_sender() is the actor that replied */
    handling = trpi_handling_begin(
        ctx, trpi_trailer_join(data->reply == NULL ? NULL : trpi_msg_trailer(data->reply),
                               call.pending->in, &room));
    if (data->reply == NULL || trpi_msg_traced(data->reply) == NULL) {
        handling.begun_ns = 0; /* the hop of what asked is another one */
    }
    err = trpi_run_guarded(ctx, call_reply, &call);
    trpi_handling_end(ctx, &handling, data->reply, err);
    trpi_free(found);
    ctx->msg = before;
    trpi_stash_turn_clear(cell);
    if (err != TRP_OK) {
        if (ctx->failure.err == TRP_OK) {
            trpi_failure_fill(&ctx->failure, trpi_cell_ref(cell), err, NULL);
        }
    } else if ((cell->marks & TRPI_MARK_TIMEOUT) != 0) {
        trpi_life_touched(ctx, cell);
    }
    *ret_reply = data->reply;
    return err;
}

void
trpi_ask_late(trp_ctx *ctx, const trp_msg *msg)
{
    const continuation *data = continuation_of(msg);

    if (data != NULL && data->reply != NULL) {
        reply_late(ctx, data->promise, data->reply);
    }
}

void
trpi_asks_drop(trp_ctx *ctx, trpi_cell *cell)
{
    trpi_ref_map asks = cell->extra->asks;
    const trpi_ref_pair *pair;
    uint32_t position = 0;

    memset(&cell->extra->asks, 0, sizeof cell->extra->asks);
    while ((pair = trpi_ref_map_next(&asks, &position)) != NULL) {
        promise_cancel(ctx, pair->ref);
        trpi_free(pair->value);
    }
    trpi_ref_map_fini(&asks);
}

/* ---- asking from a thread -------------------------------------------------------------------- */

static bool
waiter_is_done(void *arg)
{
    const waiter *w = arg;
    return w->done;
}

static trp_err
waiter_wait(waiter *w, trp_system *system, uint64_t deadline_ns, trp_msg **ret_reply)
{
    trp_err err = TRP_ETIMEDOUT;
    pthread_mutex_lock(&w->cond.lock);
    (void)trpi_cond_wait(&w->cond, system->sched, waiter_is_done, w, deadline_ns);
    if (w->done) {
        err = w->err;
        if (ret_reply != NULL) { /* with an error: the failure that the asked actor sent, or NULL */
            *ret_reply = w->reply;
            w->reply = NULL;
        }
    } else {
        w->given_up = true;
    }
    pthread_mutex_unlock(&w->cond.lock);
    return err;
}

static trp_err
question_send(trp_ctx *ctx, const trpi_question *q, trp_ref promise_ref)
{
    trp_err err = TRP_OK;

    switch (q->purpose) {
    case TRPI_FOR_REPLY:
        trpi_tell_traced(ctx, q->to, promise_ref, q->trace, q->type, q->payload, q->bytes);
        break;
    case TRPI_FOR_END:
        err = trpi_watch_send(ctx, promise_ref, q->to);
        if (err == TRP_OK) {
            trpi_stop_send(ctx, q->to);
        }
        break;
    case TRPI_FOR_REF:
        err = identify_path(ctx, ctx->system->top.root, q->path, promise_ref);
        break;
    }
    return err;
}

static bool
has_ended(trp_ctx *ctx, trp_ref ref)
{
    trpi_look look;
    trpi_actor_look(ctx, ref, &look);
    return look.local && !look.alive;
}

/* Return what ends a wait before its deadline (ask-P6). The wait for an end has its own. */
static trp_err
question_look(trp_system *system, const trpi_question *q)
{
    const trpi_patience *patience = q->patience;
    return q->purpose == TRPI_FOR_END           ? TRP_OK
           : trpi_system_has_ended(system)      ? TRP_ECLOSED
           : patience->is_wanted == NULL        ? TRP_OK
           : patience->is_wanted(patience->arg) ? TRP_OK
                                                : TRP_ECANCELED;
}

/* Wait for the answer or the deadline; meanwhile send the Identify again (ask-P4), check for the
 * end (ask-P5) and whether to go on (ask-P6). */
static trp_err
question_wait(trp_system *system, const trpi_question *q, trp_ref promise_ref, waiter *w,
              uint64_t deadline_ns, trp_msg **ret_reply)
{
    bool seen = false, ended = false, done = false, for_end = q->purpose == TRPI_FOR_END;
    int times = for_end ? INT_MAX : q->purpose == TRPI_FOR_REF ? AGAIN_TIMES : 0;
    uint64_t look_ns = LOOK_MS * UINT64_C(1000000);
    uint64_t pause_ns = for_end ? look_ns : AGAIN_MS * UINT64_C(1000000);
    uint64_t at_ns = trpi_world_mono_ns(system->world) + look_ns;
    uint64_t again_ns = at_ns - look_ns + pause_ns;
    trp_err given_up = TRP_OK;

    for (; !ended && at_ns < deadline_ns; at_ns += look_ns) {
        pthread_mutex_lock(&w->cond.lock);
        done = trpi_cond_wait(&w->cond, system->sched, waiter_is_done, w, at_ns);
        pthread_mutex_unlock(&w->cond.lock);
        given_up = done ? TRP_OK : question_look(system, q);
        if (done || given_up != TRP_OK) {
            break;
        }
        if (times == 0 || at_ns < again_ns) {
            continue;
        }
        times--;
        trp_ctx *ctx = trpi_enter(system);
        if (for_end) { /* seen twice: the actor's turn may be about to notify the promise */
            bool gone = has_ended(ctx, q->to);
            ended = gone && seen;
            seen = gone;
        } else {
            (void)question_send(ctx, q, promise_ref); /* best effort: the first one was sent */
            pause_ns *= 2;
        }
        trpi_leave(ctx);
        again_ns += pause_ns;
    }
    bool stops = ended || given_up != TRP_OK;
    trp_err err = waiter_wait(w, system, stops ? 0 : deadline_ns, ret_reply);
    return ended ? TRP_OK : err == TRP_ETIMEDOUT && given_up != TRP_OK ? given_up : err;
}

trp_err
trpi_thread_ask(trp_system *system, const trpi_question *q, trp_msg **ret_reply)
{
    uint64_t deadline_ns;
    trp_ref promise_ref;
    waiter *w;
    trp_ctx *ctx;
    trp_err err;
    if (!trpi_system_is_valid(system)) {
        return TRP_EINVAL;
    }
    if (trpi_in_behaviour(system)) {
        return TRP_ESTATE;
    }
    if (trpi_system_has_ended(system)) {
        return TRP_ECLOSED;
    }
    deadline_ns = trpi_world_mono_ns(system->world) + (uint64_t)q->patience->timeout_ms * 1000000u;
    w = waiter_new();
    if (w == NULL) {
        return TRP_ENOMEM;
    }
    ctx = trpi_enter(system);
    err = promise_new(ctx, q->purpose, q->to, nobody, w, 0, &promise_ref);
    if (err != TRP_OK) {
        trpi_leave(ctx);
        waiter_unref(w);
        waiter_unref(w);
        return err;
    }
    err = question_send(ctx, q, promise_ref);
    trpi_leave(ctx);
    if (err == TRP_OK) {
        err = question_wait(system, q, promise_ref, w, deadline_ns, ret_reply);
    }
    if (err != TRP_OK || q->purpose == TRPI_FOR_END) { /* the promise may still be waiting */
        ctx = trpi_enter(system);
        promise_cancel(ctx, promise_ref);
        trpi_leave(ctx);
    }
    waiter_unref(w);
    return err;
}
