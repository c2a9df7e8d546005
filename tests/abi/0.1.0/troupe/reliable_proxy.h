/* troupe/reliable_proxy.h - an actor that takes messages to another node and loses none on the way.
 *
 * Messages told to a proxy reach its target in order, once, and with their sender, even when
 * connections break and messages are lost with them. The proxy numbers its messages and keeps them;
 * an actor of the library on the target's node, its far end, takes only the number that is next,
 * passes the message on, and acknowledges. A message without an acknowledgement is sent again until
 * it has one. So a tell to the proxy is as good as a tell on one node, as long as neither node
 * ends. It goes one way; for answers the other side needs a proxy of its own. A full connection
 * refuses (trp_try_tell) and does not lose: the proxy waits.
 *
 * When the target ends, the proxy ends, and the messages that it still keeps are dead letters; with
 * a path and reconnect_after_ms it looks for a new target instead, which gets the messages that the
 * old one has not acknowledged (the last of them perhaps a second time). A failure of the far end
 * is the proxy's own; a restart of the proxy makes dead letters of the messages that it keeps. A
 * message that cannot travel at all (a local type, too large) is a dead letter as from any tell.
 * The target's node needs remoting, and does not serve proxies in untrusted mode.
 */
#ifndef TROUPE_RELIABLE_PROXY_H
#define TROUPE_RELIABLE_PROXY_H

#include <troupe/actor.h>
#include <troupe/base.h>
#include <troupe/message.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_RELIABLE_PROXY_DELAY_MS_MAX 86400000u /* a day */
#define TRP_RELIABLE_PROXY_RESOLVE_MS 10000u      /* to find an actor at target_path */
#define TRP_RELIABLE_PROXY_SUBSCRIBERS_MAX 64u    /* of one proxy */
#define TRP_RELIABLE_PROXY_ENDS_MAX 10000u        /* far ends on one node; then none is made */

typedef enum trp_reliable_proxy_state {
    TRP_RELIABLE_PROXY_IDLE = 1,  /* the far end has everything */
    TRP_RELIABLE_PROXY_ACTIVE = 2 /* something is not acknowledged yet */
} trp_reliable_proxy_state;

/* Subscribe an actor to the state of the proxy that is told this: it gets the present state, and
 * then each change. A subscription beyond TRP_RELIABLE_PROXY_SUBSCRIBERS_MAX is not handled (a
 * warning says so). */
typedef struct trp_reliable_proxy_subscribe {
    trp_ref subscriber;
} trp_reliable_proxy_subscribe;
TRP_API extern trp_type trp_reliable_proxy_subscribe_type;

/* End such a subscription. */
typedef struct trp_reliable_proxy_unsubscribe {
    trp_ref subscriber;
} trp_reliable_proxy_unsubscribe;
TRP_API extern trp_type trp_reliable_proxy_unsubscribe_type;

/* Told to a subscriber once, first. */
typedef struct trp_reliable_proxy_current {
    trp_ref proxy;
    uint32_t state; /* trp_reliable_proxy_state */
} trp_reliable_proxy_current;
TRP_API extern trp_type trp_reliable_proxy_current_type;

/* Told to subscribers at each change. From active to idle: all that was told to the proxy so far
 * has been passed on by the far end. */
typedef struct trp_reliable_proxy_transition {
    trp_ref proxy;
    uint32_t from, to; /* trp_reliable_proxy_state */
} trp_reliable_proxy_transition;
TRP_API extern trp_type trp_reliable_proxy_transition_type;

/* The four types. The first spawn, and the start of remoting, register them. */
TRP_API extern const trp_protocol trp_reliable_proxy_protocol;

typedef struct trp_reliable_proxy_options {
    size_t size;             /* sizeof(trp_reliable_proxy_options) */
    const char *name;        /* as trp_spawn_options.name */
    const char *dispatcher;  /* as trp_spawn_options.dispatcher */
    trp_ref target;          /* here or on another node; TRP_REF_NONE: the actor at target_path */
    const char *target_path; /* "troupe.tcp://demo@host:2552/user/echo"; NULL: target */
    /* Without an acknowledgement for so long, all that waits for one is sent again;
     * 1 .. TRP_RELIABLE_PROXY_DELAY_MS_MAX. */
    uint32_t retry_after_ms;
    /* With target_path: when no actor is there, or it has ended, look again after this; 0: end.
     * At most TRP_RELIABLE_PROXY_DELAY_MS_MAX. */
    uint32_t reconnect_after_ms;
    uint32_t reconnects_max; /* times in a row that it looks again, then end; 0: any number */
    uint32_t msgs_max; /* kept at once; one more is a dead letter (mailbox-full). 0: any number */
} trp_reliable_proxy_options;
#define TRP_RELIABLE_PROXY_OPTIONS_INIT                                                            \
    {                                                                                              \
        sizeof(trp_reliable_proxy_options), NULL, NULL, TRP_REF_NONE, NULL, 0, 0, 0, 0             \
    }

/* Start a reliable proxy as a child of the running actor.
 *
 * Ownership: borrows options.
 * Errors:    TRP_EINVAL   options is NULL; none or both of target and target_path; a delay is out
 *                         of bounds; reconnects without target_path; target_path is too long
 *            and those of trp_spawn
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    CONTRIB-31 to -36.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_reliable_proxy_spawn(trp_ctx *ctx,
                                                        const trp_reliable_proxy_options *options,
                                                        trp_ref *ret_ref);

/* Start a reliable proxy as a child of /user.
 *
 * Ownership: borrows options.
 * Errors:    as trp_reliable_proxy_spawn
 * Thread:    any; takes a lock for a moment.
 * Source:    CONTRIB-31 to -36.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_system_reliable_proxy_spawn(
    trp_system *system, const trp_reliable_proxy_options *options, trp_ref *ret_ref);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_RELIABLE_PROXY_H */
