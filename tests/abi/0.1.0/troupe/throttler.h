/* troupe/throttler.h - an actor that passes messages on, and not more than so many in an interval.
 *
 * Put it before an actor whose service must not be called too often. It keeps messages that may not
 * pass yet and gives them to its target, in order and with their senders, when its timer fires.
 * Each time the timer grants `messages` permits; unused ones expire at the next. So no interval of
 * the timer has more than `messages`, though any other span of that length may have up to twice as
 * many, and only the beginning of the target's work is counted. Kept messages are in memory: a
 * restart or an end of the throttler makes them dead letters.
 */
#ifndef TROUPE_THROTTLER_H
#define TROUPE_THROTTLER_H

#include <troupe/actor.h>
#include <troupe/base.h>
#include <troupe/message.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_THROTTLER_INTERVAL_MS_MAX 86400000u /* a day */

/* Set the target of a throttler from now on; TRP_REF_NONE: it keeps everything. */
typedef struct trp_throttler_set_target {
    trp_ref target;
} trp_throttler_set_target;
TRP_API extern trp_type trp_throttler_set_target_type;

/* Tell a throttler its rate from now on; an interval begins with it. One with a 0, or an interval
 * above TRP_THROTTLER_INTERVAL_MS_MAX, is not handled (a warning says so). */
typedef struct trp_throttler_set_rate {
    uint32_t messages;
    uint32_t interval_ms;
} trp_throttler_set_rate;
TRP_API extern trp_type trp_throttler_set_rate_type;

/* The two types. The first spawn registers them; a node that has no throttler of its own and tells
 * one on another node registers them itself. */
TRP_API extern const trp_protocol trp_throttler_protocol;

typedef struct trp_throttler_options {
    size_t size;            /* sizeof(trp_throttler_options) */
    const char *name;       /* as trp_spawn_options.name */
    const char *dispatcher; /* as trp_spawn_options.dispatcher */
    uint32_t messages;      /* in an interval; at least 1 */
    uint32_t interval_ms;   /* 1 .. TRP_THROTTLER_INTERVAL_MS_MAX */
    trp_ref target;         /* TRP_REF_NONE: none yet */
    uint32_t msgs_max;      /* kept at once; one more is a dead letter (mailbox-full). 0: any */
    uint32_t zero;
} trp_throttler_options;
#define TRP_THROTTLER_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(trp_throttler_options), NULL, NULL, 0, 0, TRP_REF_NONE, 0, 0                        \
    }

/* Start a throttler as a child of the running actor.
 *
 * Ownership: borrows options.
 * Errors:    TRP_EINVAL   options is NULL, or messages or interval_ms is out of bounds
 *            and those of trp_spawn
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    CONTRIB-37, -38, -39.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_throttler_spawn(trp_ctx *ctx,
                                                   const trp_throttler_options *options,
                                                   trp_ref *ret_ref);

/* Start a throttler as a child of /user.
 *
 * Ownership: borrows options.
 * Errors:    as trp_throttler_spawn
 * Thread:    any; takes a lock for a moment.
 * Source:    CONTRIB-37, -38, -39.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_system_throttler_spawn(trp_system *system,
                                                          const trp_throttler_options *options,
                                                          trp_ref *ret_ref);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_THROTTLER_H */
