/* troupe/interaction.h - which conversation a message belongs to.
 *
 * A message may carry an interaction: an id, the name of the protocol spoken, and a domain. Who
 * begins a conversation tells with trp_tell_in(). From then on the worker passes it on: whatever
 * an actor tells while it handles such a message carries it, too, whether the actor knows of it or
 * not. The function of a trp_ask() handles the reply, and what it tells is part of what the reply
 * is part of. Where that is nothing (nobody has answered in time, the reply came from another node,
 * trp_resolve(), trp_graceful_stop()), it is part of what the question was. Messages without one
 * are not larger, and cost nothing.
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
