/* nested_turn.c - turns on the thread that submits a task: the calling-thread dispatcher, and
 * executors of the program.
 *
 * Why.     In a test the whole path of a message should be on one call stack, and be done when the
 *          tell returns. Another program has an event loop of its own and runs its actors there.
 * Shape.   push -> token -> schedule -> here -> a turn, nested in the caller's work
 *          A cell that this thread runs already has no free token: the message is only queued, and
 *          handled by the turn that runs (TEST-12).
 * Must hold.
 *   nested-turn-E1  A nested turn restores the ctx, which belongs to another actor's turn.
 *   nested-turn-E2  No turn begins while this thread holds a lock of the library
 *       (trpi_nested_hold()).
 *   nested-turn-E3  A thread that waits for a turn of another one holds no token: two cannot
 *       wait for each other.
 * Limits.  TRP_CALLING_DEPTH_MAX nested turns; further tasks wait until one has ended.
 * Tests.   tests/unit/actor/calling_test.c
 * Sources. TEST-12, DISP-6, -7.
 */
#include <string.h>
#include <time.h>

#include "actor/kernel/dispatcher.h"
#include "actor/kernel/mailbox.h"
#include "base/assert.h"

/* The outer turn: its state, and the fields of the ctx that say what it runs. */
typedef struct outer {
    trpi_turn turn;
    trpi_cell *cell;
    const trp_msg *msg;
    trp_ref self;
    jmp_buf *jump;
    const trpi_trailer *carried;
    bool chaining;
    trp_failure failure;
} outer;

static void
outer_save(const trp_ctx *ctx, outer *saved)
{
    *saved = (outer){ .turn = ctx->turn,
                      .cell = ctx->cell,
                      .msg = ctx->msg,
                      .self = ctx->self,
                      .jump = ctx->jump,
                      .carried = ctx->carried,
                      .chaining = ctx->chaining,
                      .failure = ctx->failure };
}

static void
outer_restore(trp_ctx *ctx, const outer *saved)
{
    ctx->turn = saved->turn;
    ctx->cell = saved->cell;
    ctx->msg = saved->msg;
    ctx->self = saved->self;
    ctx->jump = saved->jump;
    (void)trpi_carry(ctx, saved->carried);
    ctx->chaining = saved->chaining;
    ctx->failure = saved->failure;
    if (++ctx->run == 0) { /* invalidates the chain entries of both turns */
        memset(ctx->chains, 0, sizeof ctx->chains);
        ctx->run = 1;
    }
}

/* Run a turn with a jump target of its own. */
static trpi_run_result
turn_caught(trp_ctx *ctx, trpi_task *task)
{
    jmp_buf here;

    ctx->jump = &here;
    if (_setjmp(here) != 0) {
        return trpi_run_after_jump(ctx);
    }
    return trpi_run(ctx, task, TRPI_HANDOFF_OFF);
}

trpi_run_result
trpi_run_nested(trp_ctx *ctx, trpi_task *task)
{
    const trpi_dispatcher *entry = trpi_dispatcher_get(ctx->system, task->number);
    trpi_run_result result;
    outer saved;

    trpi_chains_flush(ctx); /* messages of the outer turn go first */
    outer_save(ctx, &saved);
    ctx->turn.sys_rest = NULL;
    ctx->turn.sys_pending = false;
    ctx->turn.unqueued = NULL;
    ctx->turn.full_mailbox = (trp_ref)TRP_REF_NONE;
    (void)trpi_carry(ctx, NULL);
    ctx->chaining = false;
    ctx->turn.more = entry->options.throughput - 1;
    ctx->turn.deadline_ns = entry->deadline_ns;
    ctx->turn.timed = entry->deadline_ns != 0;
    ctx->self.node = TRPI_NODE_SELF;
    ctx->nested_depth++;
    result = turn_caught(ctx, task);
    ctx->nested_depth--;
    outer_restore(ctx, &saved); /* nested-turn-E1 */
    return result;
}

static void
waiting_push(trp_ctx *ctx, trpi_task *task)
{
    task->run_next = NULL;
    if (ctx->nested_last != NULL) {
        ctx->nested_last->run_next = task;
    } else {
        ctx->nested_first = task;
    }
    ctx->nested_last = task;
}

/* Run the tasks that wait for a nested turn, as far as they may run now. */
static void
waiting_run(trp_ctx *ctx)
{
    while (ctx->nested_first != NULL && ctx->nested_held == 0 &&
           ctx->nested_depth < TRP_CALLING_DEPTH_MAX) {
        trpi_task *task = ctx->nested_first;

        ctx->nested_first = task->run_next;
        if (ctx->nested_first == NULL) {
            ctx->nested_last = NULL;
        }
        if (trpi_run_nested(ctx, task) != TRPI_RUN_IDLE) {
            waiting_push(ctx, task);
        }
    }
}

void
trpi_nested(void *arg, trpi_task *task)
{
    trp_system *system = arg;
    const trpi_dispatcher *entry = trpi_dispatcher_get(system, task->number);
    trp_ctx *ctx;

    if (entry->options.kind == TRP_DISPATCHER_CUSTOM) {
        entry->options.execute(entry->options.arg, (trp_dispatcher_job *)task);
        return;
    }
    ctx = trpi_enter(system);
    waiting_push(ctx, task);
    waiting_run(ctx);
    trpi_leave(ctx);
}

void
trpi_nested_hold(trp_ctx *ctx)
{
    ctx->nested_held++;
}

void
trpi_nested_release(trp_ctx *ctx)
{
    trpi_assert(ctx->nested_held > 0);
    ctx->nested_held--;
    waiting_run(ctx);
}

void
trpi_nested_wait(const trpi_cell *cell)
{
    struct timespec pause = { 0, 50000 };

    for (uint32_t us = 0; us < TRPI_NESTED_WAIT_MS * 1000u; us += 50) {
        /* acquire: pairs with the release of the token; the effects of that turn are visible */
        if ((atomic_load_explicit(&cell->head, memory_order_acquire) & TRPI_TOKEN) != 0) {
            return;
        }
        (void)nanosleep(&pause, NULL);
    }
}

void
trp_dispatcher_job_run(trp_system *system, trp_dispatcher_job *job)
{
    trpi_task *task = (trpi_task *)job;
    trp_ctx *ctx;

    if (!trpi_system_is_valid(system) || job == NULL) {
        return;
    }
    ctx = trpi_enter(system);
    if (trpi_run_nested(ctx, task) != TRPI_RUN_IDLE) {
        trpi_sched_inject(system->sched, task);
    }
    trpi_leave(ctx);
}
