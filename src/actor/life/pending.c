/* pending.c - list the messages of a mailbox, and take messages back.
 *
 * Why.     A mailbox is a queue with one consumer: no other thread may walk it, and not even the
 *          consumer can unlink the last message, at which senders append.
 * Shape.   caller --errand (a system message)--> the actor's runner: it walks the front, the
 *          mailbox and the queue.
 *          A removed message keeps its place and becomes one of type WITHDRAWN, which the run loop
 *          hands to trpi_life_auto(), which drops it.
 * Must hold.
 *   actor-pending-P1  Only ordinary messages of this incarnation are shown and removed.
 *   actor-pending-P2  A caller gives up only an errand that has not begun: fn is not called after
 *       the caller returned.
 *   actor-pending-P3  A removed message is counted neither as processed nor as dead.
 * Tests.   tests/unit/actor/pending_test.c
 * Sources. UJ-07, -08, -09
 */
#include <troupe/pending.h>

#include "actor/kernel/bounded_mailbox.h"
#include "actor/life/life.h"
#include "actor/kernel/mailbox.h"
#include "base/alloc.h"
#include "base/assert.h"

/* ---- on the actor's thread ------------------------------------------------------------------- */

typedef struct walk {
    trpi_cell *cell;
    trp_pending_fn fn;
    void *arg;
    uint32_t visited;
    bool stopped;
} walk;

static void
walk_step(walk *w, trp_msg *msg)
{
    int answer;

    if (!trpi_type_is_ordinary(msg->priv_type) ||
        msg->priv_to_generation != w->cell->generation_run) { /* actor-pending-P1 */
        return;
    }
    w->visited++;
    answer = w->fn == NULL ? TRP_PENDING_NEXT : w->fn(w->arg, msg, trpi_msg_sender(msg));
    if ((answer & TRP_PENDING_REMOVE) != 0) {
        msg->priv_type = TRPI_TYPE_WITHDRAWN;
    }
    w->stopped = (answer & TRP_PENDING_STOP) != 0;
}

static void
walk_list(walk *w, const trpi_msg_list *list)
{
    for (trp_msg *msg = list->first; msg != NULL && !w->stopped; msg = msg->priv_next) {
        walk_step(w, msg);
    }
}

static uint32_t
walk_all(walk *w)
{
    trpi_cell *cell = w->cell;
    trpi_bounded_mailbox *mailbox = trpi_bounded_get(cell, cell->generation_run);

    if (cell->extra != NULL) {
        walk_list(w, &cell->extra->front);
    }
    if (mailbox != NULL) {
        walk_list(w, &mailbox->control);
        walk_list(w, &mailbox->plain);
        for (uint32_t i = 0; i < mailbox->heap_count && !w->stopped; i++) {
            walk_step(w, mailbox->heap[i].msg);
        }
    }
    for (trp_msg *msg = trpi_mailbox_first(cell); msg != NULL && !w->stopped;
         msg = trpi_msg_next(msg)) {
        walk_step(w, msg);
    }
    return w->visited;
}

uint32_t
trpi_pending_count(trpi_cell *cell)
{
    walk w = { cell, NULL, NULL, 0, false };

    return walk_all(&w);
}

uint32_t
trp_pending_visit(trp_ctx *ctx, trp_pending_fn fn, void *arg)
{
    walk w = { ctx->cell, fn, arg, 0, false };

    trpi_chains_flush(ctx); /* messages that it sent to itself */
    return walk_all(&w);
}

/* ---- errands --------------------------------------------------------------------------------- */

enum state { WAITING, RUNNING, DONE, GONE, GIVEN_UP };

typedef struct errand {
    trpi_cond cond; /* guards refs, state */
    uint32_t refs;  /* the waiting caller, and the message */
    enum state state;
    trp_pending_fn fn;
    void *arg;
    uint32_t visited; /* written while RUNNING */
    /* trp_withdraw(): the sender that takes its messages back; none: fn decides */
    trp_ref of;
    uint16_t type; /* trp_withdraw(): 0: all */
} errand;

static errand *
errand_new(trp_pending_fn fn, void *arg, uint32_t refs)
{
    errand *e = trpi_alloc(sizeof *e);

    if (e != NULL) {
        trpi_cond_init(&e->cond);
        e->fn = fn;
        e->arg = arg;
        e->refs = refs;
    }
    return e;
}

/* Unlocks. */
static void
unref_locked(errand *e)
{
    bool last = --e->refs == 0;

    pthread_mutex_unlock(&e->cond.lock);
    if (last) {
        trpi_cond_fini(&e->cond);
        trpi_free(e);
    }
}

static int
is_of(void *arg, const trp_msg *msg, trp_ref sender)
{
    const errand *e = arg;

    return trp_ref_equal(sender, e->of) && (e->type == 0 || msg->priv_type == e->type)
               ? TRP_PENDING_REMOVE
               : TRP_PENDING_NEXT;
}

void
trpi_errand_run(trpi_cell *cell, void *errand_)
{
    errand *e = errand_;
    walk w = { cell, e->fn, e->arg, 0, false };
    bool wanted;

    pthread_mutex_lock(&e->cond.lock);
    wanted = e->state == WAITING;
    if (wanted) {
        e->state = RUNNING;
    }
    pthread_mutex_unlock(&e->cond.lock);
    if (wanted) {
        e->visited = walk_all(&w);
    }
    pthread_mutex_lock(&e->cond.lock);
    e->state = wanted ? DONE : e->state;
    trpi_cond_broadcast(&e->cond);
    unref_locked(e);
}

void
trpi_errand_gone(void *errand_)
{
    errand *e = errand_;

    pthread_mutex_lock(&e->cond.lock);
    if (e->state == WAITING) {
        e->state = GONE;
    }
    trpi_cond_broadcast(&e->cond);
    unref_locked(e);
}

static bool
has_ended(void *arg)
{
    const errand *e = arg;

    return e->state == DONE || e->state == GONE;
}

static trp_err
ref_check(trp_ref ref)
{
    return trp_ref_is_none(ref)         ? TRP_EINVAL
           : ref.node != TRPI_NODE_SELF ? TRP_EUNSUPPORTED
                                        : TRP_OK;
}

trp_err
trp_system_pending_visit(trp_system *system, trp_ref ref, uint32_t timeout_ms, trp_pending_fn fn,
                         void *arg, uint32_t *ret_visited)
{
    const trp_ref nobody = TRP_REF_NONE;
    trp_err err = ref_check(ref);
    uint64_t deadline_ns;
    trp_ctx *ctx;
    errand *e;

    if (!trpi_system_is_valid(system) || err != TRP_OK) {
        return err != TRP_OK ? err : TRP_EINVAL;
    }
    if (trpi_in_behaviour(system)) {
        return TRP_ESTATE;
    }
    e = errand_new(fn, arg, 2);
    if (e == NULL) {
        return TRP_ENOMEM;
    }
    deadline_ns = trpi_world_mono_ns(system->world) + (uint64_t)timeout_ms * 1000000u;
    ctx = trpi_enter(system);
    trpi_sys_to(ctx, ref, TRPI_SYS_ERRAND, 0, nobody, 0, e);
    trpi_leave(ctx);
    pthread_mutex_lock(&e->cond.lock);
    (void)trpi_cond_wait(&e->cond, system->sched, has_ended, e, deadline_ns);
    if (e->state == WAITING) {
        e->state = GIVEN_UP; /* actor-pending-P2 */
    } else if (e->state == RUNNING) {
        (void)trpi_cond_wait(&e->cond, system->sched, has_ended, e, UINT64_MAX);
    }
    err = e->state == DONE ? TRP_OK : e->state == GONE ? TRP_ENOENT : TRP_ETIMEDOUT;
    if (err == TRP_OK && ret_visited != NULL) {
        *ret_visited = e->visited;
    }
    unref_locked(e);
    return err;
}

trp_err
trp_withdraw(trp_ctx *ctx, trp_ref ref, const trp_type *type)
{
    const trp_ref nobody = TRP_REF_NONE;
    trp_err err = ref_check(ref);
    errand *e;

    if (err != TRP_OK || (type != NULL && type->number == 0)) {
        return err != TRP_OK ? err : TRP_EINVAL;
    }
    e = errand_new(is_of, NULL, 1);
    if (e == NULL) {
        return TRP_ENOMEM;
    }
    e->arg = e;
    e->of = ctx->self;
    e->type = type == NULL ? 0 : (uint16_t)type->number;
    trpi_chains_flush(ctx); /* messages of this turn are to be found, too */
    trpi_sys_to(ctx, ref, TRPI_SYS_ERRAND, 0, nobody, 0, e);
    return TRP_OK;
}
