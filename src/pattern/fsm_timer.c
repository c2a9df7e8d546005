/* fsm_timer.c - the named timers of a state machine: timers of its actor, found by a hash.
 *
 * Must hold.
 *   fsm-timer-N1  The key of a name is none that a program counts up to, and not that of the time
 *       limit (TRPI_FSM_TIMERS): two names of a machine that share one are as likely as two equal
 *       random numbers of 64 bits.
 * Tests.   tests/unit/pattern/fsm_timer_test.c
 * Sources. FSM-10
 */
#include "pattern/fsm.h"

#include <string.h>

#include <troupe/log.h>

#include "base/hash.h"

static uint64_t
timer_key(const char *name)
{
    return trpi_hash(name, strlen(name), TRPI_FSM_TIMERS);
}

static void
timer_trace(trp_ctx *ctx, const char *name)
{
    if (trpi_fsm_is_traced(ctx)) { /* the timers of an actor are traced by their keys */
        trp_log(ctx, TRP_LOG_DEBUG, "timer %s has the key %llu", name,
                (unsigned long long)timer_key(name));
    }
}

trp_err
trp_fsm_timer_once(trp_ctx *ctx, const char *name, uint32_t ms, const trp_type *type,
                   const void *payload, size_t bytes)
{
    if (name == NULL || name[0] == '\0') {
        return TRP_EINVAL;
    }
    timer_trace(ctx, name);
    return trp_timer_once(ctx, timer_key(name), ms, type, payload, bytes);
}

trp_err
trp_fsm_timer_repeat(trp_ctx *ctx, const char *name, uint32_t ms, const trp_type *type,
                     const void *payload, size_t bytes)
{
    if (name == NULL || name[0] == '\0') {
        return TRP_EINVAL;
    }
    timer_trace(ctx, name);
    return trp_timer_repeat(ctx, timer_key(name), ms, ms, type, payload, bytes);
}

void
trp_fsm_timer_cancel(trp_ctx *ctx, const char *name)
{
    if (name != NULL) {
        timer_trace(ctx, name);
        trp_timer_cancel(ctx, timer_key(name));
    }
}

int
trp_fsm_timer_is_active(const trp_ctx *ctx, const char *name)
{
    return name != NULL && trp_timer_is_set(ctx, timer_key(name));
}
