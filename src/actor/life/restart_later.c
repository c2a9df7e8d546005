/* restart_later.c - a pause before a restart, with the mailbox kept.
 *
 * Why.     An actor that fails at each message, or whose database is away, would restart as fast as
 *          its messages come. A supervisor of its own (troupe/backoff.h) loses the mailbox.
 * Shape.   The failed actor is suspended already: the order RESTART comes later, by a timer.
 * Must hold.
 *   restart-later-L1  Each failure is answered by one RESTART: the timer's, or that of whoever has
 *       cancelled it. An actor that ends meanwhile is another's business: the order is stale then.
 *   restart-later-L2  The pause itself belongs to the supervisor; the timer has a copy of what it
 *       needs, and counts the failure.
 * Tests.   tests/unit/actor/strategy_test.c
 * Sources. SUP-7; A4J-18; Akka's SupervisorStrategy.restartWithBackoff
 */
#include "actor/life/life.h"

#include "base/alloc.h"

#define DOUBLINGS_MAX 32u
#define JITTER_PERCENT 20u

static const trp_ref nobody = TRP_REF_NONE;

typedef struct later {
    trp_system *system;
    trp_ref child;
    trpi_failure *why; /* counted */
    uint16_t recover;
} later;

static void
restart_due(void *arg, uint64_t a, uint64_t b)
{
    later *l = arg;
    trp_ctx *ctx = trpi_enter(l->system);
    (void)a;
    (void)b;
    trpi_sys_to(ctx, l->child, TRPI_SYS_RESTART, l->recover, nobody, 0, l->why);
    l->why = NULL;
    trpi_leave(ctx);
}

static void
later_free(void *arg, uint64_t a, uint64_t b)
{
    later *l = arg;
    (void)a;
    (void)b;
    trpi_failure_unref(l->why);
    trpi_free(l);
}

uint32_t
trpi_pause_next_ms(trp_ctx *ctx, trpi_pause *pause, uint32_t min_ms, uint32_t max_ms)
{
    uint64_t longest_ms = max_ms == 0 ? TRP_STRATEGY_BACKOFF_MAX_MS_DEFAULT : max_ms;
    uint64_t delay_ms = min_ms, most_ms = trpi_delay_ms_max(ctx->system), now_ms = trp_now_ms(ctx);
    longest_ms = longest_ms < min_ms ? min_ms : longest_ms;
    if (now_ms >= pause->due_ms + longest_ms) {
        pause->number = 0;
    }
    for (uint32_t i = 0; i < pause->number && delay_ms < longest_ms; i++) {
        delay_ms *= 2;
    }
    if (pause->number < DOUBLINGS_MAX) {
        pause->number++;
    }
    delay_ms = delay_ms < longest_ms ? delay_ms : longest_ms;
    delay_ms += trpi_world_random(ctx->system->world) % (delay_ms * JITTER_PERCENT / 100 + 1);
    delay_ms = delay_ms < most_ms ? delay_ms : most_ms;
    delay_ms = delay_ms < UINT32_MAX ? delay_ms : UINT32_MAX;
    pause->due_ms = now_ms + delay_ms;
    return (uint32_t)delay_ms;
}

void
trpi_restart_later(trp_ctx *ctx, trpi_pause *pause, trp_ref child, uint32_t delay_ms,
                   uint16_t recover, trpi_failure *why)
{
    later *l = trpi_alloc(sizeof *l);
    trpi_timer timer = { 0 };
    trp_err err = TRP_ENOMEM;
    trpi_pause_fini(ctx->system, pause);
    if (l != NULL) {
        *l = (later){ ctx->system, child, trpi_failure_ref(why), recover };
        timer.due_ns = trpi_world_mono_ns(ctx->system->world) + (uint64_t)delay_ms * 1000000u;
        timer.fn = restart_due;
        timer.drop = later_free;
        timer.arg = l;
        err = trpi_timer_start(ctx->system->sched, &timer, &pause->timer);
    }
    if (err != TRP_OK) { /* a restart that comes too early, not one that never comes */
        if (l != NULL) {
            later_free(l, 0, 0);
        }
        pause->timer = 0;
        trpi_sys_to(ctx, child, TRPI_SYS_RESTART, recover, nobody, 0, trpi_failure_ref(why));
        return;
    }
    pause->why = trpi_failure_ref(why);
    pause->recover = recover;
}

void
trpi_pause_end(trp_ctx *ctx, trpi_pause *pause, trp_ref child)
{
    if (pause->timer != 0 && trpi_timer_cancel(ctx->system->sched, pause->timer)) {
        pause->timer = 0;
        trpi_sys_to(ctx, child, TRPI_SYS_RESTART, pause->recover, nobody, 0, pause->why);
        pause->why = NULL;
    }
}

void
trpi_pause_fini(trp_system *system, trpi_pause *pause)
{
    if (pause->timer != 0) {
        (void)trpi_timer_cancel(system->sched, pause->timer);
    }
    pause->timer = 0;
    trpi_failure_unref(pause->why);
    pause->why = NULL;
}
