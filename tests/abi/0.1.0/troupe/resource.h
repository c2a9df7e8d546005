/* troupe/resource.h - actors that block or compute for long, on threads of their own.
 *
 * A resource actor runs on the threads of a "blocking" dispatcher, so that the workers of all
 * others stay free. One without a state of its own may be made several times behind one ref: then
 * several of its messages are handled at once, and their order is not kept.
 */
#ifndef TROUPE_RESOURCE_H
#define TROUPE_RESOURCE_H

#include <troupe/actor.h>
#include <troupe/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trp_resource_options {
    size_t size;            /* sizeof(trp_resource_options) */
    const char *name;       /* as trp_spawn_options.name */
    const char *dispatcher; /* of kind BLOCKING or POOL; NULL: "blocking" */
    /* messages at once, at most; 0 and 1: one. More: the behaviour must have no state_bytes */
    uint32_t parallel;
    uint32_t zero;
} trp_resource_options;
#define TRP_RESOURCE_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(trp_resource_options), NULL, NULL, 0, 0                                             \
    }

/* Start a resource actor as a child of the running actor.
 *
 * Ownership: borrows behaviour until the system ends; borrows options (NULL: all defaults).
 * Errors:    TRP_EINVAL  parallel is above 1 and the behaviour has a state
 *            and those of trp_spawn, or trp_router_spawn
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    A4J-12.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_resource_spawn(trp_ctx *ctx, const trp_behaviour *behaviour,
                                                  const trp_resource_options *options,
                                                  trp_ref *ret_ref);

/* Start a resource actor as a child of /user.
 *
 * Ownership: borrows behaviour until the system ends; borrows options (NULL: all defaults).
 * Errors:    as trp_resource_spawn
 * Thread:    any; takes a lock for a moment.
 * Source:    A4J-12.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_system_resource_spawn(trp_system *system,
                                                         const trp_behaviour *behaviour,
                                                         const trp_resource_options *options,
                                                         trp_ref *ret_ref);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_RESOURCE_H */
