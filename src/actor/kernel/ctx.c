/* ctx.c - contexts of workers and of foreign threads.
 *
 * Why.     Telling needs a message cache, a chain table and access to the scheduler. A worker has
 *          them; any other thread gets a context of its own at its first call and keeps it.
 * Must hold.
 *   ctx-X1  A foreign ctx belongs to one thread, and to one system from the outermost enter to its
 *       leave; a thread that enters a second system meanwhile uses another ctx of its own.
 *   ctx-X2  What a foreign ctx has chained is pushed at its outermost leave.
 * Tests.   tests/unit/actor/tell_test.c
 */
#include <pthread.h>
#include <string.h>
#include <time.h>

#include <troupe/interaction.h>

#include "actor/kernel/dispatcher.h"
#include "actor/kernel/misuse.h"
#include "actor/kernel/run.h"
#include "base/alloc.h"
#include "base/assert.h"

/* Thread contexts: process-wide by nature. */
static _Thread_local trp_ctx *foreign_first __attribute__((tls_model("initial-exec")));
static pthread_key_t foreign_key;
static pthread_once_t foreign_once = PTHREAD_ONCE_INIT;

static void
foreign_free(void *list)
{
    trp_ctx *ctx = list;

    foreign_first = NULL;
    while (ctx != NULL) {
        trp_ctx *next = ctx->foreign_next;

        ctx->cache = trpi_msg_cache_get(); /* the thread's cache may have been freed before */
        if (ctx->cache != NULL) {
            trpi_reserve_free(ctx);
        }
        trpi_free(ctx);
        ctx = next;
    }
}

static void
foreign_make_key(void)
{
    (void)pthread_key_create(&foreign_key,
                             foreign_free); /* no key left: contexts live until exit */
}

static trpi_handoff no_handoff; /* of foreign threads: retains no task */

/* Return a ctx of this thread that is not in use for another system. */
static trp_ctx *
foreign_get(trp_system *system)
{
    trp_ctx *unused = NULL;
    trp_ctx *ctx;

    for (ctx = foreign_first; ctx != NULL; ctx = ctx->foreign_next) {
        if (ctx->foreign_depth > 0 && ctx->system == system) {
            return ctx;
        }
        if (ctx->foreign_depth == 0) {
            unused = ctx;
        }
    }
    if (unused != NULL) {
        return unused;
    }
    (void)pthread_once(&foreign_once, foreign_make_key);
    while ((ctx = trpi_alloc_aligned(64, sizeof *ctx)) == NULL ||
           (ctx->cache = trpi_msg_cache_get()) == NULL) {
        struct timespec pause = { 0, 1000000 };

        trpi_free(ctx);
        (void)nanosleep(&pause, NULL); /* telling cannot fail by contract */
    }
    ctx->handoff = &no_handoff;
    ctx->foreign_next = foreign_first;
    foreign_first = ctx;
    (void)pthread_setspecific(foreign_key, ctx);
    return ctx;
}

trp_ctx *
trpi_enter(trp_system *system)
{
    trpi_worker *worker = trpi_worker_current();
    trp_ctx *ctx;

    if (worker != NULL && trpi_worker_sched(worker) == system->sched) {
        return trpi_worker_data(worker);
    }
    ctx = foreign_get(system);
    if (ctx->foreign_depth++ == 0) {
        ctx->system = system;
        ctx->log_gate = &system->log_gate;
        ctx->cells = system->cells;
        ctx->fast_path_node = system->fast_path_node;
        ctx->stats = &system->foreign_stats;
        ctx->cell = NULL;
        ctx->msg = NULL;
        ctx->self = (trp_ref)TRP_REF_NONE;
        ctx->chaining = false;
        ctx->turn.throttled = false;
        ctx->turn.throttled_msgs = 0;
        ctx->turn.full_mailbox = (trp_ref)TRP_REF_NONE;
        if (++ctx->run == 0) {
            memset(ctx->chains, 0, sizeof ctx->chains);
            ctx->run = 1;
        }
        ctx->foreign_phase = trpi_sched_enter(system->sched);
        if (ctx->reserve_count < TRPI_SYSMSG_RESERVE / 2) {
            trpi_reserve_fill(ctx);
        }
    }
    return ctx;
}

void
trpi_leave(trp_ctx *ctx)
{
    if (ctx->worker != NULL) {
        return;
    }
    trpi_assert(ctx->foreign_depth > 0);
    if (ctx->foreign_depth == 1) {
        if (ctx->chains_open != 0) {
            trpi_chains_flush(ctx); /* ctx-X2 */
        }
        trpi_sched_leave(ctx->system->sched, ctx->foreign_phase);
    }
    ctx->foreign_depth--;
}

bool
trpi_ctx_is_foreign_here(const trp_ctx *wanted)
{
    const trp_ctx *ctx = foreign_first;

    while (ctx != NULL && (ctx != wanted || ctx->foreign_depth == 0)) {
        ctx = ctx->foreign_next;
    }
    return ctx != NULL;
}

trp_ctx *
trpi_ctx_running(void)
{
    trpi_worker *worker = trpi_worker_current();
    trp_ctx *ctx = foreign_first;

    if (worker != NULL) {
        return trpi_worker_data(worker);
    }
    while (ctx != NULL && ctx->foreign_depth == 0) {
        ctx = ctx->foreign_next;
    }
    return ctx;
}

bool
trpi_in_behaviour(const trp_system *system)
{
    trpi_worker *worker = trpi_worker_current();

    if (worker != NULL && trpi_worker_sched(worker) == system->sched) {
        const trp_ctx *ctx = trpi_worker_data(worker);

        return ctx->cell != NULL || !trpi_worker_is_private(worker); /* a job there may block */
    }
    for (const trp_ctx *ctx = foreign_first; ctx != NULL; ctx = ctx->foreign_next) {
        if (ctx->foreign_depth > 0 && ctx->system == system) {
            return ctx->cell != NULL; /* calling-thread */
        }
    }
    return false;
}

bool
trpi_ctx_init_worker(trp_ctx *ctx, trp_system *system, trpi_worker *worker)
{
    const trpi_dispatcher *entry;

    ctx->cache = trpi_msg_cache_get();
    if (ctx->cache == NULL) {
        return false;
    }
    ctx->system = system;
    ctx->log_gate = &system->log_gate;
    ctx->worker = worker;
    ctx->handoff = trpi_worker_handoff(worker);
    ctx->index = (uint16_t)trpi_worker_index(worker);
    ctx->cells = system->cells;
    ctx->fast_path_node = system->fast_path_node;
    ctx->turn.more = system->options.throughput - 1;
    ctx->stats = &ctx->own_stats;    /* not reset when a private worker's index is reused */
    ctx->self.node = TRPI_NODE_SELF; /* slot and generation are set by each turn */
    ctx->cell = NULL;
    ctx->msg = NULL;
    entry = trpi_dispatcher_get(system, trpi_worker_number(worker));
    ctx->turn.more = entry->options.throughput - 1;
    ctx->turn.deadline_ns = entry->deadline_ns;
    ctx->turn.timed = entry->deadline_ns != 0;
    /* actors that may block must not hold messages back */
    ctx->chaining = entry->options.kind != TRP_DISPATCHER_PINNED &&
                    entry->options.kind != TRP_DISPATCHER_BLOCKING &&
                    entry->options.kind != TRP_DISPATCHER_SYSTEM;
    trpi_reserve_fill(ctx);
    return true;
}

void
trpi_ctx_fini_worker(trp_ctx *ctx)
{
    trpi_assert(ctx->chains_open == 0);
    trpi_reserve_free(ctx);
    trpi_free(ctx->gather.records);
    ctx->gather.records = NULL;
}

void
trpi_misuse_ctx(const trp_ctx *ctx, const char *verb)
{
    trpi_worker *worker = trpi_worker_current();

    if ((worker == NULL || trpi_worker_data(worker) != ctx) && !trpi_ctx_is_foreign_here(ctx)) {
        trpi_misuse_found(
            NULL, verb,
            "this ctx was kept and is used by another thread: a ctx is valid only within the call "
            "that received it");
    }
}

void
trpi_system_retire(trp_system *system, void (*fn)(void *object), void *object)
{
    trpi_retire(system->sched, fn, object);
}

void
trp_flush(trp_ctx *ctx)
{
    trpi_chains_flush(ctx);
}

trp_ref
trp_self(const trp_ctx *ctx)
{
    return ctx->self;
}

trp_system *
trp_ctx_system(const trp_ctx *ctx)
{
    return ctx->system;
}

void *
trp_state(const trp_ctx *ctx)
{
    return ctx->cell == NULL ? NULL : ctx->cell->state;
}
