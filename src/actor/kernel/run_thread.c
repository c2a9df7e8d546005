/* run_thread.c - callbacks of the scheduler beside turns: a worker's thread, calls, sleep, work
 * done.
 *
 * Why.     The failure jump needs a stack frame that outlives every run: the thread's.
 * Tests.   tests/unit/actor/life_test.c, tests/stress/churn_test.c
 */
#include <time.h>

#include "actor/kernel/cells.h"
#include "actor/kernel/fault.h"
#include "actor/kernel/run.h"
#include "base/atomics.h"

void
trpi_run_thread(void *arg, trpi_worker *worker)
{
    trp_system *system = arg;
    trp_ctx *ctx = trpi_worker_data(worker);

    while (!trpi_ctx_init_worker(ctx, system, worker)) {
        struct timespec pause = { 0, 1000000 };

        /* no memory: it may be the only worker, without which no actor runs or stops */
        (void)nanosleep(&pause, NULL);
    }
    trpi_fault_thread_begin(ctx);
    ctx->jump = &ctx->loop_jump;
    if (_setjmp(ctx->loop_jump) != 0) {
        trp_ctx *jumped = trpi_worker_data(worker);
        trpi_task *task = &jumped->cell->task;

        trpi_worker_settle(worker, task, trpi_run_after_jump(jumped));
    }
    trpi_worker_loop(worker);
    trpi_fault_thread_end(trpi_worker_data(worker));
    trpi_ctx_fini_worker(trpi_worker_data(worker));
}

trpi_run_result
trpi_run_call(trp_ctx *ctx, trpi_task *task)
{
    trpi_call_task *call = (trpi_call_task *)(void *)task;
    const trp_ref before = ctx->self;
    trpi_run_result result;

    _Static_assert(offsetof(trpi_call_task, task) == 0, "a call is its task");
    ctx->self = (trp_ref)TRP_REF_NONE; /* it has no actor as the sender */
    ctx->in_job = true;
    result = call->fn(call);
    ctx->in_job = false;
    ctx->self = before;
    trpi_chains_flush(ctx); /* tell-H2 */
    if (UNLIKELY(ctx->reserve_count < TRPI_SYSMSG_RESERVE)) {
        trpi_reserve_fill(ctx);
    }
    return result;
}

void
trpi_run_sleep(void *arg, trpi_worker *worker, bool all)
{
    trp_ctx *ctx = trpi_worker_data(worker);

    (void)arg;
    trpi_msg_cache_trim(ctx->cache, all);
}

uint64_t
trpi_run_work(void *data)
{
    trp_ctx *ctx = data;

    /* a spawn and a stop cost about a message each */
    return atomic_load_explicit(&ctx->own_stats.processed, RELAXED) +
           atomic_load_explicit(&ctx->own_stats.spawned, RELAXED) +
           atomic_load_explicit(&ctx->own_stats.stopped, RELAXED);
}

void
trpi_run_batch(void *data, uint32_t messages)
{
    trp_ctx *ctx = data;

    ctx->turn.more = (messages != 0 ? messages : ctx->system->options.throughput) - 1;
}

bool
trpi_run_urgent(const trpi_task *task)
{
    const trpi_cell *cell = trpi_cell_of_task((trpi_task *)(uintptr_t)task);

    /* relaxed: attention was set before the task was submitted, or before the urgent flag was
     * (affine-A2) */
    return task->id != 0 && atomic_load_explicit(&cell->attention, RELAXED) != 0;
}
