/* troupe/actor.h - what an actor is and what it can do.
 *
 * An actor is private state plus a behaviour, run by at most one thread at a time. The only way in
 * is a message. Everything in this header that takes a trp_ctx is for the actor that is running;
 * threads that are not actors use the functions of troupe/system.h.
 *
 * The receiver of a message sees all that its sender wrote before the tell, and the handling of a
 * message sees all that the handling of the one before wrote, on whatever threads: state needs no
 * lock and no atomics (MEM-1, -2). Refs and copies of values may leave the actor, in a message, in
 * a callback's arg or in another thread's hands. ctx, state and the message may not: ctx and the
 * message are valid in this call only, and state is the running actor's alone (MEM-6).
 */
#ifndef TROUPE_ACTOR_H
#define TROUPE_ACTOR_H

#include <troupe/base.h>
#include <troupe/message.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_NAME_BYTES_MAX 255       /* one path element */
#define TRP_PATH_BYTES_MAX 2048      /* a whole path with address, without the NUL */
#define TRP_PATH_DEPTH_MAX 64        /* elements */
#define TRP_FAILURE_REASON_BYTES 256 /* with the NUL; longer reasons are cut */
#define TRP_STRATEGY_BACKOFF_MAX_MS_DEFAULT 30000
#define TRP_STASH_DEFAULT 0        /* unbounded */
#define TRP_THROUGHPUT_DEFAULT 100 /* messages an actor may handle before it gives way */
#define TRP_THROUGHPUT_MAX 1000000
#define TRP_STATE_BYTES_MAX 1073741824u /* of a behaviour */

/* Why an actor failed; borrowed for the length of a hook. */
typedef struct trp_failure {
    trp_err err;      /* TRP_EFAILED unless a more precise one was given */
    int32_t code;     /* the code given to trp_fail(), else 0 */
    const char *file; /* where it was raised, NULL unknown */
    int line;
    char reason[TRP_FAILURE_REASON_BYTES];
    trp_ref actor; /* the one that failed; in a decider the child */
    uint32_t zero;
} trp_failure;

typedef enum trp_directive {
    TRP_RESUME = 1,
    TRP_RESTART = 2,
    TRP_STOP = 3,
    TRP_ESCALATE = 4,
    TRP_ACTIVATE = 5,   /* resume, and activate (trp_activate) */
    TRP_DEACTIVATE = 6, /* resume, but deactivated (trp_deactivate) until trp_activate() */
    /* Restart without its children: they stay, and resume. A persistent actor comes back to its
     * last state, in its own time (troupe/persistence.h). Elsewhere than here: TRP_RESTART. */
    TRP_RECOVER = 7
} trp_directive;

/* Decide what happens to a failed child. Runs as part of the supervisor: its state may be used. */
typedef trp_directive (*trp_decider)(trp_ctx *ctx, void *state, const trp_failure *failure);

typedef struct trp_strategy {
    size_t size;         /* sizeof(trp_strategy) */
    int all_for_one;     /* 0: one-for-one; 1: the directive goes to all children (SUP-6) */
    int quiet;           /* 1: failures are not logged (SUP-11) */
    trp_decider decider; /* NULL: trp_default_decider */
    /* restarts allowed within the window, one more stops; 0: TRP_FOREVER; TRP_OFF: none */
    uint32_t retries_max;
    uint32_t window_ms; /* 0: no window, the count is absolute (SUP-7) */
    /* Called instead of the log line of a failure that is not escalated; NULL: the line (SUP-11) */
    void (*log)(trp_ctx *ctx, void *state, const trp_failure *failure, trp_directive directive);
    /* A pause before each restart, in which the actor keeps its mailbox and handles nothing: the
     * first one, twice as long each time, up to the longest, and up to a fifth more, at random. An
     * actor that has run for the longest one since its last restart begins with the first again.
     * backoff_min_ms 0: no pause. backoff_max_ms 0: TRP_STRATEGY_BACKOFF_MAX_MS_DEFAULT.
     * Since: 0.2 */
    uint32_t backoff_min_ms, backoff_max_ms;
} trp_strategy;
#define TRP_STRATEGY_INIT                                                                          \
    {                                                                                              \
        sizeof(trp_strategy), 0, 0, NULL, 0, 0, NULL, 0, 0                                         \
    }
/* Limits of all_for_one (SUP-14): a restart empties no mailbox, so siblings handle the messages
 * that they had with a fresh state; and the failure of a short-lived child restarts or stops the
 * permanent ones too. Give short-lived children a supervisor of their own. */

/* Decide as Akka does by default: stop on TRP_EINIT, TRP_EKILLED and TRP_EDEATHPACT, escalate
 * TRP_EINTERNAL (the class of failures that no restart repairs), restart on every other failure; of
 * a persistent actor, stop on TRP_EJOURNAL and TRP_EFENCED.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    SUP-8.  Since: 0.1 */
TRP_API trp_directive trp_default_decider(trp_ctx *ctx, void *state, const trp_failure *failure);

/* Decide to stop, whatever the failure was.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    SUP-10.  Since: 0.1 */
TRP_API trp_directive trp_stopping_decider(trp_ctx *ctx, void *state, const trp_failure *failure);

/* Handle one message. TRP_EUNHANDLED says that it is not handled: the next part of trp_or_else() is
 * tried, else it is published as unhandled, and for trp_terminated it is a death pact
 * (trp_unhandled_msg). Any other result but TRP_OK is a failure. */
typedef trp_err (*trp_receive_fn)(trp_ctx *ctx, void *state, const trp_msg *msg);

/* A registered, static description of an actor, of which trp_spawn() makes one. Any result but
 * TRP_OK from a hook or from receive is a failure, reported to the supervisor; trp_fail() does the
 * same from any depth. The state is zeroed memory of state_bytes (16-aligned), rebuilt at
 * restart. */
typedef struct trp_behaviour {
    size_t size;      /* sizeof(trp_behaviour) */
    const char *name; /* for logs, remote deployment, plugins */
    uint32_t version;
    uint32_t state_bytes;
    trp_receive_fn receive;
    trp_err (*pre_start)(trp_ctx *ctx, void *state, const trp_msg *args); /* args: NULL if none */
    void (*post_stop)(trp_ctx *ctx, void *state);
    /* msg: the message that was being handled, NULL if the failure was another's. Default (NULL):
     * unwatch and stop all children, then post_stop (LIFE-1). */
    trp_err (*pre_restart)(trp_ctx *ctx, void *state, const trp_failure *why, const trp_msg *msg);
    /* Default (NULL): pre_start with the original arguments (LIFE-1). */
    trp_err (*post_restart)(trp_ctx *ctx, void *state, const trp_failure *why, const trp_msg *args);
    const trp_strategy *strategy; /* for its children; NULL: one-for-one, default decider */
    /* NULL-terminated; others are unhandled. NULL: everything */
    const trp_protocol *const *accepts;
    const trp_type *args_type;    /* what spawn's args must be, checked there (SYS-29). NULL: any */
    uint32_t mailbox_requirement; /* TRP_MAILBOX_* (troupe/mailbox.h) that its mailbox must have */
    uint32_t zero;
    /* Called before a message is handled, and by senders to a category before they tell. 0: the
     * message is refused, and becomes a dead letter. Not called for the library's own messages. On
     * any thread, several at once: it sees only the message. NULL: all are accepted */
    int (*will_receive)(const trp_msg *msg);
} trp_behaviour;
#define TRP_BEHAVIOUR_INIT(name_, type_, receive_)                                                 \
    {                                                                                              \
        sizeof(trp_behaviour), (name_), 1, (uint32_t)sizeof(type_), (receive_), NULL, NULL, NULL,  \
            NULL, NULL, NULL, NULL, 0, 0, NULL                                                     \
    }

/* Take over the state of an actor whose behaviour gets a newer version (troupe/plugin.h): fill
 * `state`, zeroed memory as for a new instance, from `old_state`, which `old_version` of the
 * behaviour had. Runs as part of the actor, between two messages; none of its asks is open. The new
 * state owns all that the old one did; old_state itself is freed. Functions of trp_become() are
 * dropped before: become again. Timers, stash, watches, children and memory of trp_alloc() stay.
 * Any result but TRP_OK, and trp_fail(), says that the actor keeps its old behaviour and old_state,
 * which must be as they were.
 * Not called where version and state_bytes are the same: the state is kept as it is. */
typedef trp_err (*trp_code_change_fn)(trp_ctx *ctx, void *state, void *old_state,
                                      uint32_t old_version);

/* A behaviour that replaces those of the same name in older versions of its plugin. */
typedef struct trp_code_change {
    const trp_behaviour *behaviour;
    /* NULL: actors with another version or state_bytes cannot change, and the upgrade is refused.
     * Not called of a persistent actor, which recovers with the newer code instead. */
    trp_code_change_fn change;
} trp_code_change;

typedef struct trp_spawn_options {
    size_t size;
    const char *name;        /* copied; NULL: an automatic name, "$..." */
    const char *dispatcher;  /* an id (troupe/dispatcher.h); NULL: "default" */
    uint32_t stash_msgs_max; /* 0: as configured; unbounded if nothing is */
    uint32_t zero;
    const trp_type *args_type;
    const void *args;    /* copied, kept for restart */
    size_t args_bytes;   /* 0 will do for a type of fixed size */
    const char *mailbox; /* an id (troupe/mailbox.h); NULL: what dispatcher and behaviour say */
    /* The node that it is to live on, "troupe.tcp://system@host:port", which knows the behaviour by
     * its name (trp_behaviour_register). The ref is then that of a local proxy, which passes
     * messages on; the parent supervises it as any child. The actor itself tells in the name of its
     * own ref, which answers Identify, too, and is reached without the proxy. NULL: here, unless
     * the configuration says otherwise; TRP_NODE_HERE: here, and a section that says otherwise is
     * an error (SYS-32, REMOTE-20, -22) */
    const char *node;
} trp_spawn_options;
#define TRP_SPAWN_OPTIONS_INIT                                                                     \
    {                                                                                              \
        sizeof(trp_spawn_options), NULL, NULL, 0, 0, NULL, NULL, 0, NULL, NULL                     \
    }
#define TRP_NODE_HERE "" /* arguments that mean nothing elsewhere; serialize-creators skips them */
#define TRP_DEPLOY_PATH_BYTES_MAX                                                                  \
    TRP_NAME_BYTES_MAX /* of a child elsewhere: "system@host:port/user/parent/child" */
#define TRP_DEPLOY_ARGS_BYTES_MAX 16384 /* of its arguments, encoded */

/* Start a child of the running actor. It starts by itself, in its own time; messages told to
 * *ret_ref at once are kept for it. Also usable with ctx->system guardians through
 * trp_system_spawn().
 *
 * Ownership: borrows behaviour until the system ends; borrows options.
 * Errors:    TRP_EINVAL   behaviour or an option is invalid; the name is empty, too long, starts
 *                         with '$' or has a character that a path cannot have (SYS-22)
 *            TRP_EEXIST   a sibling has the name, or had it and has not ended yet (SYS-18)
 *            TRP_ELIMIT   actors-max or TRP_PATH_DEPTH_MAX reached
 *            TRP_ENOMEM   out of memory
 *            TRP_ECLOSED  the actor or the system is stopping
 *            TRP_ENOENT   no dispatcher has that name
 *            besides, for an actor on another node:
 *            TRP_EINVAL   node is no address
 *            TRP_ESTATE   there is no remoting
 *            TRP_ECONFIG  the configuration moves an actor that must be here
 *            TRP_ELIMIT   TRP_DEPLOY_PATH_BYTES_MAX reached
 *            TRP_EMSGSIZE its arguments are above TRP_DEPLOY_ARGS_BYTES_MAX
 *            TRP_ENOTYPE  its arguments do not travel
 *            TRP_EUNSUPPORTED  this node trusts no other
 *            TRP_EINIT    as the child's failure, not as a result: the other node refuses it; a
 *                         node that does not answer is the child's end
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    SYS-19, -22, -23, LIFE-2.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_spawn(trp_ctx *ctx, const trp_behaviour *behaviour,
                                         const trp_spawn_options *options, trp_ref *ret_ref);

/* Return the ref of the running actor.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    SYS-10.  Since: 0.1 */
TRP_API trp_ref trp_self(const trp_ctx *ctx);

/* Return the ref of the parent: the supervisor; a guardian for a top-level actor.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    SUP-1.  Since: 0.1 */
TRP_API trp_ref trp_parent(const trp_ctx *ctx);

/* Return the sender of the current message; TRP_REF_NONE when it was told from outside.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    MSG-2.  Since: 0.1 */
static inline trp_ref
trp_sender(const trp_ctx *ctx)
{
    /* The second field of a ctx is the message. Part of the ABI. */
    const trp_msg *msg = ((const trp_msg *const *)(const void *)ctx)[1];
    trp_ref sender = TRP_REF_NONE;
    if (msg != NULL) {
        sender.node = msg->priv_from_node_flags & 0xffffffu;
        sender.slot = msg->priv_from_slot;
        sender.generation = msg->priv_from_generation;
        /* not by way of a vector register, which takes longer than all the rest */
        __asm__("" : "+r"(sender.slot));
    }
    return sender;
}

/* Borrow the system that the actor lives in, until the actor ends.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    SYS-1.  Since: 0.1 */
TRP_API trp_system *trp_ctx_system(const trp_ctx *ctx);

/* Borrow the state of the running actor, until it stops or restarts.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    LIFE-1.  Since: 0.1 */
TRP_API void *trp_state(const trp_ctx *ctx);

/* Copy a message of `type` into the mailbox of `to`, here or on another node; the sender is self.
 * At most once; in order per sender and receiver. Cannot fail by contract (MSG-1): a message that
 * reaches no actor is a dead letter. bytes is ignored for fixed-size types.
 *
 * Ownership: borrows payload.
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    MSG-1, -6, -7.  Since: 0.1 */
TRP_API void trp_tell(trp_ctx *ctx, trp_ref to, const trp_type *type, const void *payload,
                      size_t bytes);

/* Do as trp_tell, in the name of another sender.
 *
 * Ownership: borrows payload.
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    MSG-2.  Since: 0.1 */
TRP_API void trp_tell_as(trp_ctx *ctx, trp_ref to, trp_ref sender, const trp_type *type,
                         const void *payload, size_t bytes);

/* Tell NUL-terminated text as trp_string_type, without the NUL.
 *
 * Ownership: borrows text.
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    MSG-1.  Since: 0.1 */
TRP_API void trp_tell_text(trp_ctx *ctx, trp_ref to, const char *text);

/* Tell NUL-terminated JSON text as trp_json_type, without the NUL; the text is not checked.
 *
 * Ownership: borrows json.
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    MSG-1.  Since: 0.1 */
TRP_API void trp_tell_json(trp_ctx *ctx, trp_ref to, const char *json);

/* Put all messages told so far into the mailboxes before any that is told from now on. Between two
 * actors the order holds without it. Across three it does not (A tells C, then B, which tells C: C
 * may get B's message first), because the messages of a turn are batched by receiver.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    MSG-7, -10.  Since: 0.1 */
TRP_API void trp_flush(trp_ctx *ctx);

/* Pass the current message on; its sender stays.
 *
 * Ownership: borrows msg.
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    MSG-3.  Since: 0.1 */
TRP_API void trp_forward(trp_ctx *ctx, trp_ref to, const trp_msg *msg);

/* Tell the sender of the current message; a dead letter when it has none.
 *
 * Ownership: borrows payload.
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    MSG-5.  Since: 0.1 */
TRP_API void trp_reply(trp_ctx *ctx, const trp_type *type, const void *payload, size_t bytes);

/* Reply NUL-terminated text, as trp_tell_text tells it.
 *
 * Ownership: borrows text.
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    MSG-5.  Since: 0.1 */
TRP_API void trp_reply_text(trp_ctx *ctx, const char *text);

/* Reply NUL-terminated JSON text, as trp_tell_json tells it.
 *
 * Ownership: borrows json.
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    MSG-5.  Since: 0.1 */
TRP_API void trp_reply_json(trp_ctx *ctx, const char *json);

/* Fail the ask behind the current message: reply a trp_status_failure. A longer reason is cut.
 *
 * Ownership: borrows reason; NULL: the text of err.
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    MSG-4.  Since: 0.1 */
TRP_API void trp_reply_failure(trp_ctx *ctx, trp_err err, const char *reason);

/* Make an unsent message whose payload of `bytes` the caller fills (*ret_payload), then moves with
 * trp_send(). Above TRP_INLINE_PAYLOAD_MAX the payload is out of line.
 *
 * Ownership: gives *ret_msg (to trp_send(), or trp_msg_free()).
 * Errors:    TRP_ENOMEM   out of memory
 *            TRP_EINVAL   bytes does not fit type
 *            TRP_ENOTYPE  type is not registered
 * Thread:    any; takes a lock for a moment.
 * Source:    docs/architecture.md#messages-and-types.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_msg_new(const trp_type *type, size_t bytes, trp_msg **ret_msg,
                                           void **ret_payload);

/* Tell a message made by trp_msg_new(), without copying it. Immutable afterwards.
 *
 * Ownership: takes msg, always: a tell cannot fail (trp_tell).
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    docs/architecture.md#messages-and-types.  Since: 0.1 */
TRP_API void trp_send(trp_ctx *ctx, trp_ref to, trp_msg *msg);

/* Continuation of an ask: runs as part of the asking actor. err is TRP_OK with the reply;
 * TRP_ETIMEDOUT; the error of a trp_status_failure (reply given); TRP_ENOENT when the asked ref was
 * dead, TRP_EUNHANDLED when the asked actor did not handle the message (reply NULL). Borrows reply
 * until return. */
typedef trp_err (*trp_reply_fn)(trp_ctx *ctx, void *state, void *arg, trp_err err,
                                const trp_msg *reply);

/* Tell `to` and run fn with the first reply, or at the timeout; fn runs exactly once, unless the
 * actor stops or restarts before.
 *
 * Ownership: borrows payload; arg is passed through.
 * Errors:    TRP_EINVAL   fn is NULL or timeout_ms is 0
 *            TRP_ENOMEM   out of memory
 *            TRP_ELIMIT   no slot is left for the promise
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    MSG-4.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_ask(trp_ctx *ctx, trp_ref to, const trp_type *type,
                                       const void *payload, size_t bytes, uint32_t timeout_ms,
                                       trp_reply_fn fn, void *arg);

/* Stop an actor after its present message: itself, a child, or any ref. Asynchronous; what is left
 * in its mailbox becomes dead letters.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    LIFE-8.  Since: 0.1 */
TRP_API void trp_stop(trp_ctx *ctx, trp_ref ref);

/* Stop ref, and run fn when it has ended (TRP_OK, reply NULL; its post_stop happened before) or at
 * the timeout (TRP_ETIMEDOUT). Its name is free a moment later, when its parent has taken note.
 *
 * Ownership: arg is passed through.
 * Errors:    TRP_EINVAL, TRP_ENOMEM, TRP_ELIMIT as trp_ask
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    LIFE-14.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_graceful_stop(trp_ctx *ctx, trp_ref ref, uint32_t timeout_ms,
                                                 trp_reply_fn fn, void *arg);

/* Deactivate an actor of this system: from its present message on it gets only the library's own
 * messages (trp_terminated, receive timeout, replies to asks, directives, poison pill); all others
 * are dead letters with reason inactive. A directive: it goes before what is queued. It outlives a
 * restart.
 *
 * Errors:    TRP_EINVAL        ref is TRP_REF_NONE
 *            TRP_EUNSUPPORTED  ref is another node's
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    A4J-16, A4J-24, TRP-06.  Since: 0.1 */
TRP_API trp_err trp_deactivate(trp_ctx *ctx, trp_ref ref);

/* Activate an actor that was deactivated: it gets the messages that are told from now on.
 *
 * Errors:    as trp_deactivate
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    A4J-16, A4J-24.  Since: 0.1 */
TRP_API trp_err trp_activate(trp_ctx *ctx, trp_ref ref);

/* Be told trp_terminated, exactly once, when ref has ended or its node is lost. Watching twice is
 * one watch. A dead ref answers at once with existence_confirmed 0.
 *
 * Errors:    TRP_EINVAL   ref is TRP_REF_NONE
 *            TRP_ENOMEM   out of memory
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    WATCH-1 to -7.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_watch(trp_ctx *ctx, trp_ref ref);

/* End the watch; no trp_terminated arrives afterwards, not even one that is queued already.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    WATCH-4.  Since: 0.1 */
TRP_API void trp_unwatch(trp_ctx *ctx, trp_ref ref);

/* Fail: do not return, and let the supervisor decide; use it through trp_fail(ctx, code, "why %s",
 * ...). At restart or stop memory from trp_alloc() is released and the functions of trp_defer()
 * run; nothing else is released. In C++ the destructors of objects between the behaviour and this
 * call do not run: call it where no object has one, and never let an exception out of a behaviour
 * (docs/guide.md, From C++).
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    docs/architecture.md#failure.  Since: 0.1 */
#define trp_fail(ctx, code, ...) trp_fail_at((ctx), (code), __FILE__, __LINE__, __VA_ARGS__)
TRP_API TRP_NORETURN void trp_fail_at(trp_ctx *ctx, int32_t code, const char *file, int line,
                                      const char *format, ...) TRP_PRINTF(5, 6);

/* Allocate memory that belongs to the actor: released when it stops or restarts. Zeroed,
 * 16-aligned. Never NULL: out of memory is this actor's failure (TRP_ENOMEM).
 *
 * Ownership: gives the block (trp_alloc_free(), or the end of the actor).
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    docs/architecture.md#failure.  Since: 0.1 */
TRP_API void *trp_alloc(trp_ctx *ctx, size_t bytes);

/* Release one block from trp_alloc() before its time; NULL is fine.
 *
 * Ownership: takes memory.
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    docs/architecture.md#failure.  Since: 0.1 */
TRP_API void trp_alloc_free(trp_ctx *ctx, void *memory);

/* Run fn(arg) when the actor stops or restarts; last registered first.
 *
 * Ownership: arg is passed through.
 * Errors:    TRP_EINVAL   fn is NULL
 *            TRP_ENOMEM   out of memory
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    docs/architecture.md#failure.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_defer(trp_ctx *ctx, void (*fn)(void *arg), void *arg);

/* Replace the top of the behaviour stack (keep 0), or push on it (keep 1). Hooks and state stay.
 *
 * Errors:    TRP_EINVAL   receive is NULL
 *            TRP_ENOMEM   out of memory
 *            TRP_ELIMIT   the stack is too deep
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    BEH-1, -2.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_become(trp_ctx *ctx, trp_receive_fn receive, int keep);

/* Take the top off the behaviour stack; beyond the pushes, the original stays.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    BEH-3.  Since: 0.1 */
TRP_API void trp_unbecome(trp_ctx *ctx);

/* Handle msg by the first of the parts that does not answer TRP_EUNHANDLED, in their order; answer
 * what that part answered, or TRP_EUNHANDLED. Parts may themselves be composed.
 *
 * Ownership: borrows msg and parts.
 * Errors:    TRP_EUNHANDLED  no part handles msg; and those of the part that does
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    BEH-5.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_or_else(trp_ctx *ctx, void *state, const trp_msg *msg,
                                           const trp_receive_fn *parts, size_t parts_count);

/* Define a static receive function `name_` of partial ones, tried in the order given. A second
 * definition of the same name does not compile (Akka: "Already built"). */
#define TRP_OR_ELSE(name_, ...)                                                                    \
    static trp_err name_(trp_ctx *ctx, void *state, const trp_msg *msg)                            \
    {                                                                                              \
        static const trp_receive_fn name_##_parts[] = { __VA_ARGS__ };                             \
                                                                                                   \
        return trp_or_else(ctx, state, msg, name_##_parts,                                         \
                           sizeof(name_##_parts) / sizeof(name_##_parts[0]));                      \
    }

/* One row of a dispatch: the function that handles messages of this type. */
typedef struct trp_on {
    const trp_type *type;
    trp_receive_fn receive;
} trp_on;

/* Handle msg by the first row of its type, and answer what that answered; TRP_EUNHANDLED where no
 * row has it. In a handler bank_deposit_as(msg) is not NULL.
 *
 * Ownership: borrows msg and rows.
 * Errors:    TRP_EUNHANDLED  no row handles msg; and those of the row that does
 *            TRP_EDATA       msg has less payload than its type
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    BEH-5; MSG-15.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_dispatch(trp_ctx *ctx, void *state, const trp_msg *msg,
                                            const trp_on *rows, size_t rows_count);

/* Define a static receive function `name_` of rows { &bank_deposit_type, on_deposit }, ... */
#define TRP_RECEIVE(name_, ...)                                                                    \
    static trp_err name_(trp_ctx *ctx, void *state, const trp_msg *msg)                            \
    {                                                                                              \
        static const trp_on name_##_rows[] = { __VA_ARGS__ };                                      \
                                                                                                   \
        return trp_dispatch(ctx, state, msg, name_##_rows,                                         \
                            sizeof(name_##_rows) / sizeof(name_##_rows[0]));                       \
    }

/* Put the current message aside.
 *
 * Ownership: shares msg, on success only.
 * Errors:    TRP_EEXIST   it is stashed already
 *            TRP_ELIMIT   stash_msgs_max reached
 *            TRP_ENOMEM   out of memory
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    BEH-6.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_stash(trp_ctx *ctx, const trp_msg *msg);

/* Put all stashed messages back in front of the mailbox, in their order.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    BEH-7.  Since: 0.1 */
TRP_API void trp_unstash_all(trp_ctx *ctx);

/* Publish msg as unhandled, from a behaviour that has no case for it. For
 * trp_terminated it does not return: the actor fails with TRP_EDEATHPACT (WATCH-5).
 *
 * Ownership: borrows msg.
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    MSG-15.  Since: 0.1 */
TRP_API void trp_unhandled_msg(trp_ctx *ctx, const trp_msg *msg);

/* Tell self a message once, at or after delay_ms. key is any number of the actor's own: starting a
 * key again replaces its timer, and cancelling also removes its message that is queued. Timers end
 * with the incarnation of the state (stop or restart). bytes is ignored for fixed-size types.
 *
 * Ownership: borrows payload.
 * Errors:    TRP_EINVAL   type or its payload is NULL, or delay_ms is more than
 *                         TRP_DELAY_TICKS_MAX ticks
 *            TRP_ENOTYPE  type is not registered
 *            TRP_ENOMEM   out of memory
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    SCH-1, -8, -10.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_timer_once(trp_ctx *ctx, uint64_t key, uint32_t delay_ms,
                                              const trp_type *type, const void *payload,
                                              size_t bytes);

/* Do as trp_timer_once, and again every interval_ms after the first.
 *
 * Ownership: borrows payload.
 * Errors:    TRP_EINVAL   as trp_timer_once, or interval_ms is less than a tick
 *            TRP_ENOMEM   out of memory
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    SCH-1.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_timer_repeat(trp_ctx *ctx, uint64_t key, uint32_t delay_ms,
                                                uint32_t interval_ms, const trp_type *type,
                                                const void *payload, size_t bytes);

/* End the timer of this key, if there is one; a message of it that is queued is not delivered.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    SCH-8.  Since: 0.1 */
TRP_API void trp_timer_cancel(trp_ctx *ctx, uint64_t key);

/* Return non-zero if there is a timer of this key. One that has fired is set still until its last
 * message is handled.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    SCH-8, FSM-10.  Since: 0.2 */
TRP_API int trp_timer_is_set(const trp_ctx *ctx, uint64_t key);

/* Be told trp_receive_timeout after ms without a message; it repeats; 0 is off.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    MSG-16.  Since: 0.1 */
TRP_API void trp_receive_timeout_set(trp_ctx *ctx, uint32_t ms);

/* Return the monotonic time of the system's world, in milliseconds.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    docs/architecture.md#principles.  Since: 0.1 */
TRP_API uint64_t trp_now_ms(const trp_ctx *ctx);

/* Return the monotonic time of the system's world, in nanoseconds.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    docs/architecture.md#principles.  Since: 0.1 */
TRP_API uint64_t trp_now_ns(const trp_ctx *ctx);

/* Find a child by its name; TRP_REF_NONE when there is none.
 *
 * Ownership: borrows name.
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    SYS-19.  Since: 0.1 */
TRP_API trp_ref trp_child(trp_ctx *ctx, const char *name);

/* Return the child behind `after`, the first for TRP_REF_NONE; TRP_REF_NONE behind the last.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    SYS-19.  Since: 0.1 */
TRP_API trp_ref trp_child_next(trp_ctx *ctx, trp_ref after);

/* Return the number of children, those that are stopping included.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    SYS-23.  Since: 0.1 */
TRP_API uint32_t trp_children_count(const trp_ctx *ctx);

/* Tell every actor that `selection` matches at the moment of delivery (SYS-24): an absolute path
 * ("/user/a"), a relative one ("../b", "child/x"), with * and ? inside an element, or a full
 * address ("troupe.tcp://demo@host:2552/user/echo"). No match: dead letter no-such-actor.
 *
 * Errors:    TRP_EINVAL   the selection does not parse; the log says where
 *            TRP_ESTATE   a remote address, and this system has no remoting
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    SYS-24, REMOTE-08.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_select_tell(trp_ctx *ctx, const char *selection,
                                               const trp_type *type, const void *payload,
                                               size_t bytes);

/* Find the ref behind a path, here or on another node, by Identify. fn gets TRP_OK and a message of
 * trp_actor_identity_type, TRP_ENOENT (no actor is there) or TRP_ETIMEDOUT.
 *
 * Ownership: borrows path; arg is passed through.
 * Errors:    TRP_EINVAL   the path does not parse, fn is NULL, or timeout_ms is 0
 *            TRP_ESTATE   a remote address, and this system has no remoting
 *            TRP_ENOMEM   out of memory
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    SYS-25, -26.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_resolve(trp_ctx *ctx, const char *path, uint32_t timeout_ms,
                                           trp_reply_fn fn, void *arg);

/* Be told every event of this type that is published from now on; NULL: all events. Ends with the
 * actor.
 *
 * Errors:    TRP_ENOMEM   out of memory
 *            TRP_ENOTYPE  type is not registered
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    ES-1.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_subscribe(trp_ctx *ctx, const trp_type *type);

/* End a subscription; NULL: all of the actor's.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    ES-1.  Since: 0.1 */
TRP_API void trp_unsubscribe(trp_ctx *ctx, const trp_type *type);

/* Tell all subscribers of this type.
 *
 * Ownership: borrows payload.
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    ES-1.  Since: 0.1 */
TRP_API void trp_publish(trp_ctx *ctx, const trp_type *type, const void *payload, size_t bytes);

/* Write the path of ref ("/user/a", with its address when remote), NUL-terminated, cut at bytes -
 * 1, and return buffer.
 *
 * Errors:    none
 * Thread:    any; takes a lock for a moment.
 * Source:    SYS-13.  Since: 0.1 */
TRP_API char *trp_path(trp_system *system, trp_ref ref, char *buffer, size_t bytes);

/* Log a line with the actor's path as its source.
 *
 * Ownership: borrows format and its arguments.
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    MSG-22.  Since: 0.1 */
TRP_API void trp_log(trp_ctx *ctx, trp_log_level level, const char *format, ...) TRP_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_ACTOR_H */
