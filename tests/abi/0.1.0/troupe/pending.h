/* troupe/pending.h - what waits in a mailbox: count it, look at it, take it back.
 *
 * Only ordinary messages are seen: text, JSON, bytes, numbers and the program's own types; not the
 * library's own messages. A mailbox belongs to its actor's thread, so another thread that looks
 * sends a directive, which goes before the messages, and the function is called there.
 */
#ifndef TROUPE_PENDING_H
#define TROUPE_PENDING_H

#include <troupe/base.h>
#include <troupe/message.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The result of trp_pending_fn; REMOVE may be joined with STOP by |. */
enum { TRP_PENDING_NEXT = 0, TRP_PENDING_STOP = 1, TRP_PENDING_REMOVE = 2 };

/* Look at one message that waits, borrowed for the call, oldest first (of a mailbox by priority: in
 * no order). A removed one is neither handled nor a dead letter; in a bounded mailbox its place is
 * free when its turn would have come. Runs as part of the actor: it must be short and must not
 * tell. */
typedef int (*trp_pending_fn)(void *arg, const trp_msg *msg, trp_ref sender);

/* Visit what waits for the running actor; fn NULL: only count. Returns how many were visited. The
 * present message and the stash are not among them. O(n).
 *
 * Ownership: arg is passed through.
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    UJ-07, -08, -09.  Since: 0.1 */
TRP_API uint32_t trp_pending_visit(trp_ctx *ctx, trp_pending_fn fn, void *arg);

/* Visit what waits for any actor of this system, between two of its messages. fn and arg are not
 * used any more after the return.
 *
 * Ownership: arg is passed through; ret_visited may be NULL.
 * Errors:    TRP_ENOENT        ref has ended
 *            TRP_ETIMEDOUT     the actor did not come to it in time: nothing was visited
 *            TRP_EINVAL        ref is TRP_REF_NONE
 *            TRP_EUNSUPPORTED  ref is another node's
 *            TRP_ESTATE        called from a behaviour
 *            TRP_ENOMEM        out of memory
 * Thread:    any; may block until the actor has ended its present message; never from a behaviour.
 * Source:    UJ-07, -08, -09.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_system_pending_visit(trp_system *system, trp_ref ref,
                                                        uint32_t timeout_ms, trp_pending_fn fn,
                                                        void *arg, uint32_t *ret_visited);

/* Take back what the running actor has told ref and ref has not come to: messages of this type;
 * NULL: of all. A message that is on its way may still arrive.
 *
 * Errors:    TRP_EINVAL        ref is TRP_REF_NONE, or type is not registered
 *            TRP_EUNSUPPORTED  ref is another node's
 *            TRP_ENOMEM        out of memory
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    UJ-08.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_withdraw(trp_ctx *ctx, trp_ref ref, const trp_type *type);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_PENDING_H */
