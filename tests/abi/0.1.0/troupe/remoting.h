/* troupe/remoting.h - changes of the associations with other nodes, as events on the event stream.
 *
 * Subscribe (trp_subscribe, trp_system_subscribe) to one kind, to all about associations, or to
 * all. The same changes are logged by the source "remote", unless
 * remote.log-remote-lifecycle-events says otherwise.
 */
#ifndef TROUPE_REMOTING_H
#define TROUPE_REMOTING_H

#include <troupe/base.h>
#include <troupe/message.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_REMOTING_ADDRESS_BYTES 352 /* an address as text, with its NUL */
#define TRP_REMOTING_REASON_BYTES 160

/* Payload of all of them. */
typedef struct trp_remoting_event {
    char local[TRP_REMOTING_ADDRESS_BYTES];  /* the address that this node advertises */
    char remote[TRP_REMOTING_ADDRESS_BYTES]; /* of the peer; "" where it is not about one */
    uint64_t remote_uid; /* of the peer's incarnation; 0: not known, or not about one */
    uint32_t inbound;    /* not 0: the peer called; 0: this node did */
    uint32_t next_ms;    /* association error: the time to the next attempt */
    char reason[TRP_REMOTING_REASON_BYTES]; /* a sentence; "" where there is nothing to say */
} trp_remoting_event;

enum { trp_remoting_tag = 0xff34 }; /* of all of them; trp_msg_is() tells them apart */

TRP_API extern trp_type trp_remoting_event_type;    /* parent of all */
TRP_API extern trp_type trp_association_event_type; /* parent of the next three */
/* A handshake has proved the peer's incarnation: messages can flow. */
TRP_API extern trp_type trp_associated_type;
/* That is over: goodbye, a broken or silent link, quarantine, or another incarnation. */
TRP_API extern trp_type trp_disassociated_type;
/* An attempt failed, or a link broke; reason says why. */
TRP_API extern trp_type trp_association_error_type;
/* Nothing is sent to this incarnation of the peer any more; its watchers are told. */
TRP_API extern trp_type trp_quarantined_type;
/* The reverse: the peer has quarantined this node. This node did not answer for long, so the peer
 * has told its watchers that the actors here have ended; no message of this process reaches it
 * again. Only a new process does, here or there. */
TRP_API extern trp_type trp_self_quarantined_type;
TRP_API extern trp_type trp_remoting_listen_type;   /* this node can be reached at local */
TRP_API extern trp_type trp_remoting_shutdown_type; /* it cannot any more: remoting was stopped */
TRP_API extern trp_type trp_remoting_error_type;    /* remoting could not start; reason says why */

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_REMOTING_H */
