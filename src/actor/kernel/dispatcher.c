/* dispatcher.c - the dispatchers of a system: looking one up, and binding a cell to one.
 *
 * Why.     An actor names its dispatcher once, at spawn; from then on its task says where it runs,
 *          without a lookup.
 * Shape.   entries[]: by number, which is in task.number of each cell and in each worker.
 * Must hold.
 *   dispatcher-F1  An entry is complete before `count` covers it, and stays until the system is
 *       freed: a reader needs no lock.
 *   dispatcher-F2  A cell's task.dispatch, home and number change only with its token: at spawn,
 *       and at its end back to the pool, which drains late messages. An affine cell keeps its home:
 *       its worker may read the task while others submit it.
 * Not here. Registration (dispatcher_table.c).
 * Tests.   tests/unit/actor/dispatcher_test.c
 * Sources. DISP-1 to -13, A4J-29 to -32; docs/architecture.md#scheduling.
 */
#include "actor/kernel/dispatcher.h"

#include <string.h>

#include "actor/kernel/open.h"
#include "actor/kernel/cells.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomics.h"
#include "base/sized.h"

_Static_assert(TRP_DISPATCHERS_MAX <= TRPI_GROUPS_MAX, "a number is also that of a group");
_Static_assert(TRP_DISPATCHER_THREADS_MAX == TRPI_PRIVATE_MAX, "they are the private workers");

trpi_dispatcher *
trpi_dispatcher_get(const trp_system *system, uint8_t number)
{
    return system->dispatchers->entries[number];
}

trpi_dispatcher *
trpi_dispatcher_find(const trp_system *system, const char *id)
{
    trpi_dispatchers *all = system->dispatchers;
    uint32_t count = atomic_load_explicit(&all->count, memory_order_acquire); /* dispatcher-F1 */

    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(all->entries[i]->id, id) == 0) {
            return all->entries[i];
        }
    }
    return NULL;
}

/* ---- inspection ------------------------------------------------------------------------------ */

static uint32_t
threads_now(const trp_system *system, const trpi_dispatcher *entry)
{
    switch (entry->options.kind) {
    case TRP_DISPATCHER_DEFAULT:
        return trpi_sched_pool_count(system->sched);
    case TRP_DISPATCHER_SYSTEM:
        return 1;
    case TRP_DISPATCHER_PINNED:
        return atomic_load_explicit(&entry->actors, RELAXED);
    case TRP_DISPATCHER_AFFINITY:
        return atomic_load_explicit(&entry->homes_count, RELAXED);
    default:
        return trpi_sched_group_threads(system->sched, entry->number);
    }
}

trp_err
trp_dispatcher_find(trp_system *system, const char *id, trp_dispatcher_info *ret_info)
{
    trp_dispatcher_info info = { 0 };
    const trpi_dispatcher *entry;

    if (!trpi_system_is_valid(system) || id == NULL || ret_info == NULL) {
        return TRP_EINVAL;
    }
    entry = trpi_dispatcher_find(system, id);
    if (entry == NULL) {
        return TRP_ENOENT;
    }
    info.kind = entry->options.kind;
    info.throughput = entry->options.throughput;
    info.threads = threads_now(system, entry);
    info.threads_max = entry->options.kind == TRP_DISPATCHER_DEFAULT  ? info.threads
                       : entry->options.kind == TRP_DISPATCHER_SYSTEM ? 1
                                                                      : entry->threads_max;
    info.actors = atomic_load_explicit(&entry->actors, RELAXED);
    return TRPI_SIZED_FILL(ret_info, &info, zero) ? TRP_OK : TRP_EINVAL;
}

const char *
trp_dispatcher_id(const trp_ctx *ctx)
{
    return trpi_dispatcher_get(ctx->system, ctx->cell != NULL ? ctx->cell->task.number : 0)->id;
}

/* ---- binding --------------------------------------------------------------------------------- */

/* AFFINITY: choose a thread round robin, and make it if it does not exist yet. */
static trp_err
affine_home(trp_system *system, trpi_dispatcher *entry, uint16_t *ret_home)
{
    uint32_t place = atomic_fetch_add_explicit(&entry->turn, 1, RELAXED) % entry->threads_max;
    trp_err err = TRP_OK;

    /* acquire: pairs with the release below; the home was written */
    if (atomic_load_explicit(&entry->homes_count, memory_order_acquire) <= place) {
        trpi_private_options options = { entry->id, false, true, entry->options.throughput,
                                         entry->number };

        pthread_mutex_lock(&system->dispatchers->lock);
        while (err == TRP_OK && atomic_load_explicit(&entry->homes_count, RELAXED) <= place) {
            uint32_t count = atomic_load_explicit(&entry->homes_count, RELAXED);

            err = trpi_sched_private_open(system->sched, &options, &entry->homes[count]);
            if (err == TRP_OK) {
                atomic_store_explicit(&entry->homes_count, count + 1, memory_order_release);
            }
        }
        pthread_mutex_unlock(&system->dispatchers->lock);
    }
    *ret_home = err == TRP_OK ? entry->homes[place] : 0;
    return err;
}

/* Set the place where a task of this dispatcher runs. */
static trp_err
place_task(trp_system *system, trpi_dispatcher *entry, const char *name, trpi_task *task)
{
    trpi_private_options options = { name, false, false, 0, entry->number, false };
    uint8_t dispatch = TRPI_DISPATCH_PRIVATE;
    uint16_t home = 0;
    trp_err err = TRP_OK;

    switch (entry->options.kind) {
    case TRP_DISPATCHER_DEFAULT:
        dispatch = TRPI_DISPATCH_POOL;
        break;
    case TRP_DISPATCHER_SYSTEM:
        home = entry->homes[0];
        break;
    case TRP_DISPATCHER_PINNED:
        err = trpi_sched_private_open(system->sched, &options, &home);
        break;
    case TRP_DISPATCHER_AFFINITY:
        err = affine_home(system, entry, &home);
        break;
    case TRP_DISPATCHER_CALLING:
    case TRP_DISPATCHER_CUSTOM:
        dispatch = TRPI_DISPATCH_HERE;
        break;
    default:
        dispatch = TRPI_DISPATCH_GROUP;
        trpi_sched_group_attach(system->sched, entry->number);
        break;
    }
    if (err == TRP_OK) {
        /* a hint to others: dispatcher-F2 */
        __atomic_store_n(&task->dispatch, dispatch, __ATOMIC_RELAXED);
        __atomic_store_n(&task->number, entry->number, __ATOMIC_RELAXED);
        atomic_store_explicit(&task->home, home, RELAXED);
    }
    return err;
}

static void
unplace_task(trp_system *system, const trpi_dispatcher *entry, const trpi_task *task)
{
    if (entry->options.kind == TRP_DISPATCHER_PINNED) {
        trpi_sched_private_release(system->sched, atomic_load_explicit(&task->home, RELAXED));
    } else if (trpi_dispatcher_has_group(entry->options.kind)) {
        trpi_sched_group_detach(system->sched, entry->number);
    }
}

trp_err
trpi_dispatcher_join(trp_ctx *ctx, trpi_cell *cell, trpi_dispatcher *entry)
{
    trp_err err;

    if (entry->number == TRPI_DISPATCHER_DEFAULT) {
        return TRP_OK; /* the default of an acquired slot */
    }
    err = place_task(ctx->system, entry, cell->behaviour != NULL ? cell->behaviour->name : NULL,
                     &cell->task);
    if (err == TRP_OK) {
        (void)atomic_fetch_add_explicit(&entry->actors, 1, RELAXED);
    }
    return err;
}

void
trpi_dispatcher_leave(trp_ctx *ctx, trpi_cell *cell)
{
    trpi_dispatcher *entry;

    if (cell->task.number == TRPI_DISPATCHER_DEFAULT) {
        return;
    }
    entry = trpi_dispatcher_get(ctx->system, cell->task.number);
    unplace_task(ctx->system, entry, &cell->task);
    (void)atomic_fetch_sub_explicit(&entry->actors, 1, RELAXED);
    if (entry->options.kind != TRP_DISPATCHER_AFFINITY) { /* dispatcher-F2 */
        __atomic_store_n(&cell->task.dispatch, TRPI_DISPATCH_POOL, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&cell->task.number, TRPI_DISPATCHER_DEFAULT, __ATOMIC_RELAXED); /* as above */
}

/* ---- functions ------------------------------------------------------------------------------- */

static void
job_link(trpi_dispatchers *all, trpi_job *job)
{
    pthread_mutex_lock(&all->lock);
    job->next = all->jobs;
    if (job->next != NULL) {
        job->next->prev = job;
    }
    all->jobs = job;
    pthread_mutex_unlock(&all->lock);
}

static void
job_unlink(trpi_dispatchers *all, trpi_job *job)
{
    pthread_mutex_lock(&all->lock);
    if (job->prev != NULL) {
        job->prev->next = job->next;
    } else {
        all->jobs = job->next;
    }
    if (job->next != NULL) {
        job->next->prev = job->prev;
    }
    pthread_mutex_unlock(&all->lock);
}

static trpi_run_result
job_run(trpi_call_task *call)
{
    trpi_job *job = (trpi_job *)(void *)call;
    trp_system *system = job->system;

    _Static_assert(offsetof(trpi_job, call) == 0, "a job is its call");
    job_unlink(system->dispatchers, job);
    job->fn(job->arg);
    unplace_task(system, trpi_dispatcher_get(system, call->task.number), &call->task);
    trpi_free(job);
    return TRPI_RUN_IDLE;
}

trp_err
trp_dispatcher_execute(trp_system *system, const char *id, void (*fn)(void *arg), void *arg)
{
    trpi_dispatcher *entry;
    trpi_job *job;
    trp_ctx *ctx;
    trp_err err;

    if (!trpi_system_is_valid(system) || id == NULL || fn == NULL) {
        return TRP_EINVAL;
    }
    entry = trpi_dispatcher_find(system, id);
    if (entry == NULL) {
        return TRP_ENOENT;
    }
    job = trpi_alloc(sizeof *job);
    if (job == NULL) {
        return TRP_ENOMEM;
    }
    job->fn = fn;
    job->arg = arg;
    job->call.fn = job_run;
    job->system = system;
    err = place_task(system, entry, "job", &job->call.task);
    if (err != TRP_OK) {
        trpi_free(job);
        return err;
    }
    ctx = trpi_enter(system);
    job_link(system->dispatchers, job);
    trpi_sched_inject(system->sched, &job->call.task);
    trpi_leave(ctx);
    return TRP_OK;
}
