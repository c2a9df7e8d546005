/* troupe/interaction.h - which conversation a message belongs to.
 *
 * A message may carry an interaction: an id, the name of the protocol spoken, and a domain. A
 * conversation begins with trp_tell_in(). From then on the worker passes it on: all messages that
 * an actor tells while it handles such a message carry it, too, whether the actor knows of it or
 * not. Messages told by the function of a trp_ask() carry the interaction of the reply, or that of
 * the question where the reply has none (no answer in time, a reply from another node,
 * trp_resolve(), trp_graceful_stop()). Messages without one are not larger, and cost nothing.
 *
 * It does not travel with messages that were made by trp_msg_new(), nor to other nodes.
 */
#ifndef TROUPE_INTERACTION_H
#define TROUPE_INTERACTION_H

#include <troupe/base.h>
#include <troupe/message.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_INTERACTION_TEXT_BYTES 32 /* of protocol and domain, with the NUL */

typedef struct trp_interaction {
    uint64_t id_high, id_low; /* a UUID, or any number */
    char protocol[TRP_INTERACTION_TEXT_BYTES];
    char domain[TRP_INTERACTION_TEXT_BYTES];
} trp_interaction;

/* Do as trp_tell, as part of this interaction; NULL: of none, whatever is being handled.
 *
 * Ownership: borrows interaction and payload.
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    A4J-10.  Since: 0.1 */
TRP_API void trp_tell_in(trp_ctx *ctx, trp_ref to, const trp_interaction *interaction,
                         const trp_type *type, const void *payload, size_t bytes);

/* Do as trp_system_tell_as, as part of this interaction.
 *
 * Ownership: borrows interaction and payload.
 * Errors:    none
 * Thread:    any; takes a lock for a moment; outside of actors may block until a full mailbox has
 *            room.
 * Source:    A4J-10.  Since: 0.1 */
TRP_API void trp_system_tell_in(trp_system *system, trp_ref to, trp_ref sender,
                                const trp_interaction *interaction, const trp_type *type,
                                const void *payload, size_t bytes);

/* Borrow the interaction that msg is part of, as long as msg; NULL: none.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    A4J-10.  Since: 0.1 */
TRP_API const trp_interaction *trp_msg_interaction(const trp_msg *msg);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_INTERACTION_H */
