/* troupe/inbox.h - an address for code that is no actor.
 *
 * An inbox is a ref that any actor can tell, and a queue from which a thread takes the messages:
 * several replies, news of watched actors. It ends when it is closed; later messages to it are dead
 * letters.
 */
#ifndef TROUPE_INBOX_H
#define TROUPE_INBOX_H

#include <troupe/base.h>
#include <troupe/message.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_INBOX_MSGS_DEFAULT 1000       /* akka.actor.dsl.inbox-size */
#define TRP_INBOX_TIMEOUT_DEFAULT_MS 5000 /* akka.actor.dsl.default-timeout */
#define TRP_INBOX_TIME UINT32_MAX         /* a timeout: the inbox's own */

typedef struct trp_inbox trp_inbox;

typedef struct trp_inbox_options {
    size_t size;
    uint32_t msgs_max;   /* that wait; one more is a dead letter "mailbox-full". 0: default */
    uint32_t timeout_ms; /* of TRP_INBOX_TIME; 0: default */
} trp_inbox_options;
#define TRP_INBOX_OPTIONS_INIT                                                                     \
    {                                                                                              \
        sizeof(trp_inbox_options), 0, 0                                                            \
    }

/* Return non-zero for a message that is wanted. Called with the inbox's lock held: it must not use
 * the inbox. */
typedef int (*trp_inbox_test_fn)(void *arg, const trp_msg *msg, trp_ref sender);

/* Open an inbox.
 *
 * Ownership: gives *ret_inbox (trp_inbox_close, before the system is freed); borrows options.
 * Errors:    TRP_EINVAL, TRP_ENOMEM
 *            TRP_ELIMIT   actors-max reached
 *            TRP_ECLOSED  the system has stopped
 * Thread:    any; takes a lock for a moment.
 * Source:    SYS-36.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_inbox_open(trp_system *system, const trp_inbox_options *options,
                                              trp_inbox **ret_inbox);

/* Close an inbox and drop what is in it. NULL is fine.
 *
 * Ownership: takes inbox.
 * Errors:    none
 * Thread:    any; takes a lock for a moment; no other thread may use the inbox any more.
 * Source:    SYS-36.  Since: 0.1 */
TRP_API void trp_inbox_close(trp_inbox *inbox);

/* Return the address of the inbox, to be told to or given away as a sender.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    SYS-36.  Since: 0.1 */
TRP_API trp_ref trp_inbox_ref(const trp_inbox *inbox);

/* Tell in the name of the inbox, so that replies come here.
 *
 * Ownership: borrows payload.
 * Errors:    none
 * Thread:    any; mostly lock-free, else takes a lock for a moment; outside of actors may
 *            block until a full mailbox has room.
 * Source:    SYS-36.  Since: 0.1 */
TRP_API void trp_inbox_tell(trp_inbox *inbox, trp_ref to, const trp_type *type, const void *payload,
                            size_t bytes);

/* Take the next message.
 *
 * Ownership: gives *ret_msg (trp_msg_free).
 * Errors:    TRP_ETIMEDOUT  none came in time (timeout_ms 0: looks once)
 *            TRP_ESTATE     called from a behaviour
 * Thread:    any; may block until a message or the timeout; never from a behaviour.
 * Source:    SYS-36.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_inbox_receive(trp_inbox *inbox, uint32_t timeout_ms,
                                                 trp_msg **ret_msg, trp_ref *ret_sender);

/* Take the first message that test wants; the others keep their place.
 *
 * Ownership: gives *ret_msg (trp_msg_free); arg is passed through.
 * Errors:    as trp_inbox_receive(); TRP_EINVAL  test is NULL
 * Thread:    any; may block until a message or the timeout; never from a behaviour.
 * Source:    SYS-36.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_inbox_select(trp_inbox *inbox, uint32_t timeout_ms,
                                                trp_inbox_test_fn test, void *arg,
                                                trp_msg **ret_msg, trp_ref *ret_sender);

/* Have a trp_terminated in the inbox when ref has ended.
 *
 * Errors:    TRP_EINVAL  ref is TRP_REF_NONE
 * Thread:    any; takes a lock for a moment.
 * Source:    SYS-36, WATCH-1.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_inbox_watch(trp_inbox *inbox, trp_ref ref);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_INBOX_H */
