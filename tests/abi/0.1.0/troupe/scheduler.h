/* troupe/scheduler.h - things that happen later: messages and functions, once or again and again.
 *
 * One scheduler serves a system. It is not exact: a schedule that is due runs at the next tick,
 * never early. It follows the world's clock, so that a test or a simulation may hold the clock.
 * Timers of an actor's own, which end with it and whose cancelling also removes a message that is
 * queued, are trp_timer_once() and trp_timer_repeat() in troupe/actor.h.
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
#define TRP_DELAY_TICKS_MAX 0x7fffffffu /* a delay may be so many ticks: 24.8 days at 1 ms */
#define TRP_SCHEDULES_MAX (16u * 1024u * 1024u) /* pending in one system, timers of actors too */
#define TRP_SCHEDULER_STOP_MS_DEFAULT 5000

/* All zero is the default. */
typedef struct trp_scheduler_options {
    size_t size;
    uint32_t tick_ms;         /* 0: TRP_TICK_MS_DEFAULT; at most TRP_TICK_MS_MAX */
    uint32_t ticks_per_wheel; /* slots of each wheel, a power of two; 0: TRP_WHEEL_TICKS_DEFAULT */
    uint32_t stop_ms;         /* for functions that are left at the end; 0: the default above */
    uint32_t schedules_max;   /* pending at one time, timers of actors and of the system too;
                                 0: TRP_SCHEDULES_MAX, which is also the most */
} trp_scheduler_options;
#define TRP_SCHEDULER_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(trp_scheduler_options), 0, 0, 0, 0                                                  \
    }

/* Something scheduled. The caller's; to be cancelled and asked through the same one. All-zero is
 * nothing, which cannot be cancelled. */
typedef struct trp_schedule {
    uint64_t priv_id;
    uint32_t priv_cancelled;
    uint32_t priv_zero;
} trp_schedule;
#define TRP_SCHEDULE_NONE                                                                          \
    {                                                                                              \
        0, 0, 0                                                                                    \
    }

/* Tell `to` a message at or after delay_ms; sender may be TRP_REF_NONE. It is told although the
 * receiver may have ended meanwhile: then it is a dead letter. bytes is ignored for fixed-size
 * types. ret_schedule may be NULL.
 *
 * Ownership: borrows payload.
 * Errors:    TRP_EINVAL   an argument is invalid, or delay_ms above TRP_DELAY_TICKS_MAX ticks
 *            TRP_ENOTYPE  type is not registered
 *            TRP_ENOMEM   out of memory, or schedules_max are pending
 *            TRP_ECLOSED  the system has ended
 * Thread:    any; takes a lock for a moment.
 * Source:    SCH-01, -10.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_schedule_once(trp_system *system, uint64_t delay_ms, trp_ref to,
                                                 trp_ref sender, const trp_type *type,
                                                 const void *payload, size_t bytes,
                                                 trp_schedule *ret_schedule);

/* Do as trp_schedule_once, and again every interval_ms: the n-th time at the start plus delay_ms
 * plus n * interval_ms, without drift. It ends with a receiver of this system, which the last
 * message finds dead (SCH-06).
 *
 * Ownership: borrows payload.
 * Errors:    as trp_schedule_once; also
 *            TRP_EINVAL   interval_ms is less than a tick, or too long
 * Thread:    any; takes a lock for a moment.
 * Source:    SCH-01, -06, -07.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_schedule_repeat(trp_system *system, uint64_t delay_ms,
                                                   uint64_t interval_ms, trp_ref to, trp_ref sender,
                                                   const trp_type *type, const void *payload,
                                                   size_t bytes, trp_schedule *ret_schedule);

/* Run fn(arg) on a dispatcher (NULL: "default") at or after delay_ms, and with interval_ms not 0
 * again and again; two runs may overlap when one is slow. fn must not touch the state of an actor:
 * for that, schedule a message to it (SCH-09). A function that is pending when the system ends runs
 * then, early and once, as far as scheduler stop_ms allows.
 *
 * Ownership: arg is passed through; borrows dispatcher until return.
 * Errors:    TRP_EINVAL   fn is NULL, or as trp_schedule_repeat; dispatcher is longer than 63 bytes
 *            TRP_ENOMEM, TRP_ECLOSED  as trp_schedule_once
 * Thread:    any; takes a lock for a moment.
 * Source:    SCH-01, -05, -09.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_schedule_run(trp_system *system, uint64_t delay_ms,
                                                uint64_t interval_ms, const char *dispatcher,
                                                void (*fn)(void *arg), void *arg,
                                                trp_schedule *ret_schedule);

/* Cancel. Returns 1 for exactly one caller, when what was to come will not come any more (a run
 * that has begun goes on); 0 when it has run, or was cancelled before.
 *
 * Errors:    none
 * Thread:    any; takes a lock for a moment.
 * Source:    SCH-08, TRP-12.  Since: 0.1 */
TRP_API int trp_schedule_cancel(trp_system *system, trp_schedule *schedule);

/* Return 1 when this one was cancelled in time, else 0.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    SCH-08, TRP-12.  Since: 0.1 */
TRP_API int trp_schedule_is_cancelled(const trp_schedule *schedule);

/* Return the highest frequency of a repetition, in Hz: one each tick.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    SCH-07.  Since: 0.1 */
TRP_API double trp_scheduler_frequency_max(const trp_system *system);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_SCHEDULER_H */
