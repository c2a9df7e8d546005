/* troupe/mailbox.h - the queue in front of an actor: bounded, by priority, the program's own.
 *
 * A mailbox is registered with a system under an id, which trp_spawn_options.mailbox, a dispatcher
 * or a deployment section names; each actor then gets one of its own. It is chosen in this order:
 * deployment section, spawn options, dispatcher, requirement of the behaviour, requirement of the
 * dispatcher, "default-mailbox". Requirements of the behaviour or the dispatcher are checked at
 * spawn. From the start there are:
 *
 *     default-mailbox, unbounded, single-consumer   one exchange a message, no bound
 *     bounded                                       1000 messages, see overflow
 *     unbounded-deque, bounded-deque                the same, named for what stash requires in Akka
 *     control-aware, bounded-control-aware          types of TRP_TYPE_CONTROL first
 *
 * and, to be registered with its number of retries, one that gives a message again until the actor
 * acknowledges it (TRP_MAILBOX_KIND_PEEK).
 *
 * None of them ever blocks a worker. A thread that is no actor waits in front of a full bounded
 * mailbox, up to its push timeout; an actor that sends is not run meanwhile. The library's own
 * messages (trp_terminated, timers, replies to asks, poison pill) are never refused for want of
 * room.
 */
#ifndef TROUPE_MAILBOX_H
#define TROUPE_MAILBOX_H

#include <troupe/base.h>
#include <troupe/message.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_MAILBOX_ID_BYTES_MAX 127
#define TRP_MAILBOXES_MAX 128 /* of one system, those that are built in included */
#define TRP_MAILBOX_CAPACITY_DEFAULT 1000
#define TRP_MAILBOX_CAPACITY_MAX 100000000
#define TRP_MAILBOX_PUSH_TIMEOUT_DEFAULT_MS 10000
#define TRP_MAILBOX_PENDING_MAX 65536 /* messages that wait for room in one mailbox */
#define TRP_MAILBOX_RETRIES_DEFAULT 2
#define TRP_MAILBOX_RETRIES_MAX 1000000

/* Capabilities of a mailbox, which a behaviour or a dispatcher may require. */
enum {
    TRP_MAILBOX_UNBOUNDED = 1,
    TRP_MAILBOX_BOUNDED = 2,
    TRP_MAILBOX_DEQUE = 4,          /* unstashed messages go to its front: all of the library's */
    TRP_MAILBOX_MULTI_CONSUMER = 8, /* several actors may take from it: a balancing dispatcher's */
    TRP_MAILBOX_PRIORITY = 16,
    TRP_MAILBOX_STABLE = 32, /* equal priorities keep their order */
    TRP_MAILBOX_CONTROL_AWARE = 64,
    TRP_MAILBOX_DURABLE = 128,
    TRP_MAILBOX_COUNTED = 256, /* the number of its messages is known at once */
    TRP_MAILBOX_ALL = 511
};

typedef enum trp_mailbox_kind {
    TRP_MAILBOX_KIND_UNBOUNDED = 1, /* also Akka's single-consumer one: there is no faster one */
    TRP_MAILBOX_KIND_BOUNDED = 2,
    TRP_MAILBOX_KIND_PRIORITY = 3, /* by options.priority; stable */
    TRP_MAILBOX_KIND_BOUNDED_PRIORITY = 4,
    TRP_MAILBOX_KIND_CONTROL_AWARE = 5,
    TRP_MAILBOX_KIND_BOUNDED_CONTROL_AWARE = 6,
    TRP_MAILBOX_KIND_COUNTED = 7, /* unbounded; costs one locked instruction a message more */
    TRP_MAILBOX_KIND_CUSTOM = 8,  /* options.ops; bounded when options.capacity is not 0 */
    TRP_MAILBOX_KIND_PEEK = 9     /* unbounded; see trp_mailbox_ack() */
} trp_mailbox_kind;

/* Order messages: the lower the number, the earlier. Asked once for each message, trp_poison_pill
 * and the like included, on the receiver's thread. */
typedef int32_t (*trp_mailbox_priority_fn)(void *arg, const trp_msg *msg);

/* The fate of a message that finds a bounded mailbox full. */
typedef enum trp_mailbox_overflow {
    TRP_MAILBOX_DROP = 0,  /* wait for room up to push_timeout_ms, then it is a dead letter */
    TRP_MAILBOX_NOTIFY = 1 /* refuse: trp_try_tell() says TRP_EAGAIN, and trp_mailbox_ready is told
                              when there is room; trp_tell() makes a dead letter at once */
} trp_mailbox_overflow;

/* A mailbox of the program's own. But for admit, all are called by one thread at a time, the one
 * that runs the owner: nothing in them needs a lock. None may block. */
typedef struct trp_mailbox_ops {
    size_t size; /* sizeof(trp_mailbox_ops) */
    /* Make the mailbox of one actor. It may have messages from the start. Errors: any; the spawn
     * fails with it. */
    trp_err (*create)(void *arg, trp_system *system, trp_ref owner, void **ret_mailbox);
    /* Put in a message that the owner was told. Takes msg, on success only; an error: a dead
     * letter, for the reason that the same error of admit has. */
    trp_err (*enqueue)(void *mailbox, trp_ref receiver, trp_msg *msg);
    /* Take out the next one; NULL: there is none. Gives the message. */
    trp_msg *(*dequeue)(void *mailbox);
    /* The number of messages put in and neither taken out nor dropped. */
    uint32_t (*count)(void *mailbox);
    int (*has)(void *mailbox);
    /* The owner has ended: hand all that is left to dead(arg, msg), which takes it. */
    void (*clean_up)(void *mailbox, void (*dead)(void *arg, trp_msg *msg), void *arg);
    /* No thread can be in admit any more: free the mailbox. */
    void (*destroy)(void *mailbox);
    /* On the sender's thread, before the message is on its way; several at once. May refuse, and
     * the error says why: TRP_EMSGSIZE, TRP_ENOTYPE (not-encodable), TRP_ENOMEM, TRP_EIO and
     * TRP_EBREAKER (storage), TRP_ECLOSED (stale): a dead letter; any other: mailbox-full, and
     * TRP_EAGAIN for trp_try_tell(). Not asked about the library's own messages. NULL: all are
     * admitted. Borrows msg. */
    trp_err (*admit)(void *mailbox, trp_ref receiver, const trp_msg *msg);
} trp_mailbox_ops;

typedef struct trp_mailbox_options {
    size_t size;   /* sizeof(trp_mailbox_options) */
    uint32_t kind; /* trp_mailbox_kind */
    /* of the bounded kinds; 0: TRP_MAILBOX_CAPACITY_DEFAULT (CUSTOM: no bound) */
    uint32_t capacity;
    /* 0: TRP_MAILBOX_PUSH_TIMEOUT_DEFAULT_MS; TRP_FOREVER (two full mailboxes may deadlock);
     * TRP_OFF: do not wait */
    uint32_t push_timeout_ms;
    uint32_t overflow;                /* trp_mailbox_overflow */
    trp_mailbox_priority_fn priority; /* the PRIORITY kinds */
    const trp_mailbox_ops *ops;       /* CUSTOM; must outlive the system */
    void *arg;                        /* passed to priority and create */
    uint32_t capabilities; /* CUSTOM: what it can do beyond BOUNDED or UNBOUNDED; DEQUE is given */
    uint32_t max_retries;  /* PEEK: how often a message is given again; 0: 2 */
} trp_mailbox_options;
#define TRP_MAILBOX_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(trp_mailbox_options), 0, 0, 0, 0, NULL, NULL, NULL, 0, 0                            \
    }

/* Register a mailbox under an id, for actors that are spawned from now on. The first one of an id
 * stays; only "default-mailbox" may be replaced, once.
 *
 * Ownership: borrows id and options; arg is passed through.
 * Errors:    TRP_EINVAL  an option is out of range, or id is empty or too long
 *            TRP_EEXIST  the id is taken
 *            TRP_ELIMIT  TRP_MAILBOXES_MAX reached
 *            TRP_ENOMEM  out of memory
 * Thread:    any; takes a lock for a moment.
 * Source:    MBOX-1 to -6, -11, -12.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_mailbox_register(trp_system *system, const char *id,
                                                    const trp_mailbox_options *options);

typedef struct trp_mailbox_info {
    size_t size;           /* sizeof(trp_mailbox_info), set by the caller */
    uint32_t kind;         /* trp_mailbox_kind */
    uint32_t capabilities; /* TRP_MAILBOX_* */
    uint32_t capacity;     /* 0: no bound */
    uint32_t push_timeout_ms;
    uint32_t overflow;
    uint32_t zero;
} trp_mailbox_info;

/* Look a registered mailbox up by its id.
 *
 * Errors:    TRP_ENOENT  no mailbox has this id
 *            TRP_EINVAL  ret_info is NULL or its size is not set
 * Thread:    any; lock-free.
 * Source:    MBOX-11.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_mailbox_find(trp_system *system, const char *id,
                                                trp_mailbox_info *ret_info);

/* Say which mailbox serves a requirement (one TRP_MAILBOX_* bit) of a behaviour or a dispatcher
 * where none is named; later calls replace earlier ones. At first BOUNDED is served by "bounded",
 * CONTROL_AWARE by "control-aware", DEQUE by "unbounded-deque", COUNTED by "counted", UNBOUNDED and
 * MULTI_CONSUMER by "unbounded".
 *
 * Errors:    TRP_EINVAL  requirement is not one bit
 *            TRP_ENOENT  no mailbox has this id, or it lacks what is required
 * Thread:    any; lock-free.
 * Source:    MBOX-8.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_mailbox_require(trp_system *system, uint32_t requirement,
                                                   const char *id);

/* Do as trp_tell, but do not wait in front of a full mailbox. Where its overflow is notify, the
 * actor is told trp_mailbox_ready once, when half of the mailbox is free. An actor of another node
 * is told through a lane of the association, which is full above its high-water mark (a quarter of
 * its bytes, at most 512 KiB) and always notifies; a message that it has admitted is not dropped
 * for want of room.
 *
 * Ownership: borrows payload.
 * Errors:    TRP_EAGAIN  it is full; nothing was told
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    docs/architecture.md#back-pressure.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_try_tell(trp_ctx *ctx, trp_ref to, const trp_type *type,
                                            const void *payload, size_t bytes);

/* Do as trp_try_tell, without a sender: trp_mailbox_ready is not told.
 *
 * Ownership: borrows payload.
 * Errors:    TRP_EAGAIN  it is full; nothing was told
 *            TRP_EINVAL  system or type is NULL
 * Thread:    any; takes a lock for a moment.
 * Source:    docs/architecture.md#back-pressure.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_system_try_tell(trp_system *system, trp_ref to,
                                                   const trp_type *type, const void *payload,
                                                   size_t bytes);

/* Told once to each actor whose trp_try_tell() was refused: there is room again, or ref has ended,
 * or its node. */
typedef struct trp_mailbox_ready {
    trp_ref ref; /* the receiver that it had told */
} trp_mailbox_ready;
TRP_API extern trp_type trp_mailbox_ready_type;
enum { trp_mailbox_ready_tag = 0xff28 };

/* Count the messages in the running actor's mailbox, the present one not included. O(n) for the
 * mailboxes that do not count (all but the bounded and counted ones): it walks the queue.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    MBOX-14.  Since: 0.1 */
TRP_API uint32_t trp_mailbox_size(trp_ctx *ctx);

/* Acknowledge the message that is being handled, to a mailbox of kind PEEK. There a message stays
 * the first until then: it is given again when the actor has failed and was restarted or resumed,
 * and also when it has returned without an acknowledgement, up to max_retries times; then it is
 * dropped, as any other mailbox does at the first time. So work before the acknowledgement should
 * do no harm when it is done twice. A second call changes nothing. Until it is acknowledged, or
 * given up, the message counts as one that waits. The library's own messages are given once.
 * Messages that wait when the actor ends, unacknowledged ones too, are dead letters.
 *
 * Errors:    TRP_ESTATE  the actor's mailbox is of another kind
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    CONTRIB-40, CONTRIB-41.  Since: 0.1 */
TRP_API trp_err trp_mailbox_ack(trp_ctx *ctx);

/* The state of an actor's mailbox as seen from outside, now. */
typedef struct trp_mailbox_view {
    uint32_t messages; /* exact where exact is 1; else 0: none, 1: some, throughput: a full turn */
    uint8_t exact;
    uint8_t idle;      /* not running and no message */
    uint8_t suspended; /* waits for its supervisor's decision */
    uint8_t zero;
} trp_mailbox_view;

/* Look at the mailbox of an actor of this system, in O(1): a hint that may be old when it is read.
 *
 * Errors:    TRP_ENOENT  ref has ended, or is of another node
 * Thread:    any; takes a lock for a moment.
 * Source:    MBOX-14, ROUTE-9.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_mailbox_look(trp_system *system, trp_ref ref,
                                                trp_mailbox_view *ret_view);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_MAILBOX_H */
