/* troupe/scheduler.h - things that happen later: messages and functions, once or again and again.
 *
 * One scheduler serves a system. It is not exact: what is due runs at the next tick, never early.
 * It runs what the world's clock says, so that a test or a simulation may hold the clock. Timers of
 * an actor's own, which end with it and whose cancelling also suppresses what is queued, are
 * trp_timer_once() and trp_timer_repeat() in troupe/actor.h.
 */
#ifndef TROUPE_SCHEDULER_H
#define TROUPE_SCHEDULER_H

#include <troupe/base.h>
#include <troupe/message.h>
#include <troupe/system.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_TICK_MS_DEFAULT 1
#define TRP_TICK_MS_MAX 1000
#define TRP_WHEEL_TICKS_DEFAULT 64
#define TRP_WHEEL_TICKS_MIN 2
#define TRP_WHEEL_TICKS_MAX 4096
#define TRP_DELAY_TICKS_MAX 0x7fffffffu     /* a delay may be so many ticks: 24.8 days at 1 ms */
#define TRP_SCHEDULES_MAX (16u * 1024u * 1024u) /* pending in one system, timers of actors too */
#define TRP_SCHEDULER_STOP_MS_DEFAULT 5000

/* All zero is the default. */
typedef struct trp_scheduler_options {
    size_t size;
    uint32_t tick_ms;         /* 0: TRP_TICK_MS_DEFAULT; at most TRP_TICK_MS_MAX */
    uint32_t ticks_per_wheel; /* slots of each wheel, a power of two; 0: TRP_WHEEL_TICKS_DEFAULT */
    uint32_t stop_ms;         /* for functions that are left at the end; 0: the default above */
} trp_scheduler_options;
#define TRP_SCHEDULER_OPTIONS_INIT { sizeof(trp_scheduler_options), 0, 0, 0 }

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_SCHEDULER_H */
