/* troupe/embedded.h - light actors that live inside another one, and are called instead of told.
 *
 * An embedded actor has a behaviour and a state of its own, but no mailbox, no thread and no
 * supervisor: its host calls it, and has its answer when the call returns. Its calls through ctx
 * (tell, spawn, watch, timers) are the host's, and so is its failure. It ends with the host's
 * state, at stop or restart. Only one that is given an address has a queue: then others can tell
 * it, and the host hands their messages over with trp_embedded_dispatch().
 */
#ifndef TROUPE_EMBEDDED_H
#define TROUPE_EMBEDDED_H

#include <troupe/actor.h>
#include <troupe/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trp_embedded trp_embedded;

/* A host's embedded actors; zero it (it stands in the host's state). */
typedef struct trp_embedded_host {
    trp_embedded *priv_first;
    uint64_t priv_last_id;
} trp_embedded_host;

/* Make an embedded actor of the running one; its pre_start, if there is one, is called at once with
 * args (NULL: none), and its post_stop when it ends. Other hooks and fields of the behaviour but
 * name, state_bytes and receive are not used.
 *
 * Ownership: gives *ret_embedded until trp_embedded_end() or the end of the host's state; borrows
 *            behaviour until then.
 * Errors:    TRP_EINVAL   an argument is invalid
 *            TRP_ENOMEM   out of memory
 *            and those of pre_start
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    A4J-15.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_embedded_new(trp_ctx *ctx, trp_embedded_host *host,
                                                const trp_behaviour *behaviour, const trp_msg *args,
                                                trp_embedded **ret_embedded);

/* Call its receive now, on this stack, with the host as sender; return what it returned.
 *
 * Ownership: borrows payload until return.
 * Errors:    those of its receive
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    A4J-15.  Since: 0.1 */
TRP_API trp_err trp_embedded_call(trp_ctx *ctx, trp_embedded *embedded, const trp_type *type,
                                  const void *payload, size_t bytes);

/* Borrow its state.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    A4J-15.  Since: 0.1 */
TRP_API void *trp_embedded_state(const trp_embedded *embedded);

/* Give it an address that others can tell: a queue of its own, a child of the host, which passes
 * messages on to the host. A second call returns the same address.
 *
 * Errors:    as trp_spawn
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    A4J-15.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_embedded_address(trp_ctx *ctx, trp_embedded *embedded,
                                                    trp_ref *ret_ref);

/* Call the embedded actor that msg was told to, with its sender. A host whose embedded actors have
 * addresses does this first with every message, as a part of trp_or_else() perhaps.
 *
 * Ownership: borrows msg.
 * Errors:    TRP_EUNHANDLED  msg is the host's own; and those of the receive
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    A4J-15.  Since: 0.1 */
TRP_API trp_err trp_embedded_dispatch(trp_ctx *ctx, trp_embedded_host *host, const trp_msg *msg);

/* End one before its host: post_stop, and its address ends. NULL is fine.
 *
 * Ownership: takes embedded.
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    A4J-15.  Since: 0.1 */
TRP_API void trp_embedded_end(trp_ctx *ctx, trp_embedded_host *host, trp_embedded *embedded);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_EMBEDDED_H */
