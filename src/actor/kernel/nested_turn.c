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

/* The per-turn fields of a ctx, saved for the outer turn. */
typedef struct outer {
    trpi_cell *cell;
    const trp_msg *msg;
    trp_ref self;
    jmp_buf *jump;
    const struct trp_interaction *carried;
    bool chaining, throttled, draining;
    uint8_t overload_turns, route_depth;
    uint16_t throttled_home;
    uint32_t throttled_msgs;
    trp_ref full_mailbox;
    trp_msg *unqueued;
    int32_t send_budget_left;
    uint32_t turn_more;
    uint64_t deadline_ns;
    uint32_t turn_rest;
    int32_t turn_left;
    uint64_t turn_until_ns, turn_processed;
    trpi_sysmsg *sys_rest;
    trp_failure failure;
} outer;

static void
outer_keep(const trp_ctx *ctx, outer *kept)
{
    *kept = (outer){ .cell = ctx->cell,
                     .msg = ctx->msg,
                     .self = ctx->self,
                     .jump = ctx->jump,
                     .carried = ctx->carried,
                     .chaining = ctx->chaining,
                     .throttled = ctx->throttled,
                     .draining = ctx->draining,
                     .overload_turns = ctx->overload_turns,
                     .route_depth = ctx->route_depth,
                     .throttled_home = ctx->throttled_home,
                     .throttled_msgs = ctx->throttled_msgs,
                     .full_mailbox = ctx->full_mailbox,
                     .unqueued = ctx->unqueued,
                     .send_budget_left = ctx->send_budget_left,
                     .turn_more = ctx->turn_more,
                     .deadline_ns = ctx->deadline_ns,
                     .turn_rest = ctx->turn_rest,
                     .turn_left = ctx->turn_left,
                     .turn_until_ns = ctx->turn_until_ns,
                     .turn_processed = ctx->turn_processed,
                     .sys_rest = ctx->sys_rest,
                     .failure = ctx->failure };
}

static void
outer_restore(trp_ctx *ctx, const outer *kept)
{
    ctx->cell = kept->cell;
    ctx->msg = kept->msg;
    ctx->self = kept->self;
    ctx->jump = kept->jump;
    (void)trpi_carry(ctx, kept->carried);
    ctx->chaining = kept->chaining;
    ctx->throttled = kept->throttled;
    ctx->draining = kept->draining;
    ctx->overload_turns = kept->overload_turns;
    ctx->route_depth = kept->route_depth;
    ctx->throttled_home = kept->throttled_home;
    ctx->throttled_msgs = kept->throttled_msgs;
    ctx->full_mailbox = kept->full_mailbox;
    ctx->unqueued = kept->unqueued;
    ctx->send_budget_left = kept->send_budget_left;
    ctx->turn_more = kept->turn_more;
    ctx->deadline_ns = kept->deadline_ns;
    ctx->timed = kept->deadline_ns != 0;
    ctx->turn_rest = kept->turn_rest;
    ctx->turn_left = kept->turn_left;
    ctx->turn_until_ns = kept->turn_until_ns;
    ctx->turn_processed = kept->turn_processed;
    ctx->sys_rest = kept->sys_rest;
    ctx->sys_pending = kept->sys_rest != NULL;
    ctx->failure = kept->failure;
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
    outer kept;

    trpi_chains_flush(ctx); /* messages of the outer turn go first */
    outer_keep(ctx, &kept);
    ctx->sys_rest = NULL;
    ctx->sys_pending = false;
    ctx->unqueued = NULL;
    ctx->full_mailbox = (trp_ref)TRP_REF_NONE;
    (void)trpi_carry(ctx, NULL);
    ctx->chaining = false;
    ctx->turn_more = entry->options.throughput - 1;
    ctx->deadline_ns = entry->deadline_ns;
    ctx->timed = entry->deadline_ns != 0;
    ctx->self.node = TRPI_NODE_SELF;
    ctx->nested_depth++;
    result = turn_caught(ctx, task);
    ctx->nested_depth--;
    outer_restore(ctx, &kept); /* nested-turn-E1 */
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
