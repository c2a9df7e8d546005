/* troupe/backoff.h - a supervisor that starts its child again after a pause, which grows.
 *
 *     trp_backoff_options options = TRP_BACKOFF_OPTIONS_INIT;
 *     options.name = "orders";
 *     options.min_ms = 200;
 *     options.max_ms = 10000;
 *     trp_backoff_spawn(ctx, &orders.behaviour, &child_options, &options, &ref);
 *
 * For a child that needs something else, such as a journal or a connection, which comes back in its
 * own time: without a pause thousands of restarts would keep it from doing so.
 *
 * Messages to the supervisor are forwarded to the child; those of the child to its parent go to the
 * parent of the supervisor. While the child is away a message is a dead letter, and its sender is
 * told a trp_status_failure with TRP_EAGAIN. Each start is a new instance, with the arguments of
 * the first one.
 */
#ifndef TROUPE_BACKOFF_H
#define TROUPE_BACKOFF_H

#include <troupe/actor.h>
#include <troupe/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_BACKOFF_MIN_MS_DEFAULT 200
#define TRP_BACKOFF_MAX_MS_DEFAULT 30000
#define TRP_BACKOFF_JITTER_DEFAULT 20 /* percent */

typedef struct trp_backoff_options {
    size_t size;
    const char *name; /* of the supervisor, copied; NULL: an automatic name */
    uint32_t min_ms;  /* the first pause; 0: TRP_BACKOFF_MIN_MS_DEFAULT */
    uint32_t max_ms;  /* each pause is twice the one before, up to this; 0: the default */
    /* Up to so many percent are added to a pause, at random; 0: TRP_BACKOFF_JITTER_DEFAULT;
     * TRP_OFF: none; at most 100 */
    uint32_t jitter_percent;
    /* A child that has lived for so long begins with the first pause again; 0: max_ms */
    uint32_t reset_ms;
    uint32_t retries_max; /* starts without such a life, then the supervisor stops; 0: no limit */
    uint32_t on_stop;     /* 1: also a child that stops is started again; 0: the supervisor stops */
} trp_backoff_options;
#define TRP_BACKOFF_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(trp_backoff_options), NULL, 0, 0, 0, 0, 0, 0                                        \
    }

/* Spawn a supervisor with back-off, a child of the running actor, and its child.
 *
 * Ownership: borrows behaviour until the system ends, also what it points to; borrows
 *            child_options and options (NULL: all defaults)
 * Errors:    TRP_EINVAL  behaviour or an option is invalid, or child_options names a node
 *            TRP_EMSGSIZE the arguments of the child are longer than 1 MiB
 *            and those of trp_spawn
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    A4J-18, A4J-26.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_backoff_spawn(trp_ctx *ctx, const trp_behaviour *behaviour,
                                                 const trp_spawn_options *child_options,
                                                 const trp_backoff_options *options,
                                                 trp_ref *ret_ref);

/* Do the same as a top-level actor of the system.
 *
 * Ownership: as trp_backoff_spawn
 * Errors:    as trp_backoff_spawn, and those of trp_system_spawn
 * Thread:    any; takes a lock for a moment.
 * Source:    A4J-18, A4J-26.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_system_backoff_spawn(trp_system *system,
                                                        const trp_behaviour *behaviour,
                                                        const trp_spawn_options *child_options,
                                                        const trp_backoff_options *options,
                                                        trp_ref *ret_ref);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_BACKOFF_H */
