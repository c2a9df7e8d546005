/* troupe/persistence.h - actors whose state outlives them and their host.
 *
 * A persistent actor handles commands. A change that a command makes is an event: it is persisted,
 * and then applied to the state. When the actor starts again, on this host or another, its state is
 * made of its latest snapshot and the events behind it, before it handles a command.
 *
 *     #define SAVINGS_ADDED(F, S) F(S, i64, amount)
 *     #define SAVINGS_ADD(F, S) F(S, i64, amount)
 *     #define SAVINGS_MESSAGES(M, P) M(P, added, SAVINGS_ADDED) M(P, add, SAVINGS_ADD)
 *     TRP_PROTOCOL(savings, SAVINGS_MESSAGES)
 *
 *     struct savings {
 *         trp_persistent_state persistent; // the first member
 *         int64_t amount;
 *     };
 *     static trp_err command(trp_ctx *ctx, void *state, const trp_msg *msg)
 *     {
 *         struct savings_added added = { savings_add_as(msg)->amount };
 *         return trp_persist(ctx, &savings_added_type, &added, 0, NULL, NULL);
 *     }
 *     static trp_err event(trp_ctx *ctx, void *state, const trp_msg *msg)
 *     {
 *         ((struct savings *)state)->amount += savings_added_as(msg)->amount;
 *         return TRP_OK;
 *     }
 *     static const trp_persistent savings =
 *         TRP_PERSISTENT_INIT("savings", struct savings, command, event);
 *
 *     trp_spawn(ctx, &savings.behaviour, &options, &ref);
 *
 * Rules.
 *   - The function for events runs for new events and for those of a recovery alike. It changes the
 *     state and does nothing else: what tells others or persists belongs into the callback of
 *     trp_persist(), or into `recovered`. Persisting during a recovery is TRP_ESTATE.
 *   - Between trp_persist() and its callback no other command is handled: those that come are kept,
 *     in their order, up to stash_msgs_max. One more is a dead letter (stash full), and its sender
 *     is told a trp_status_failure with TRP_EAGAIN.
 *   - One writer: each start takes the next epoch of its id, in the journal. An actor that was
 *     replaced elsewhere fails with TRP_EFENCED at its next write, and nothing of it is stored.
 *   - A refused write (certainly not stored) is told to `rejected`, and the actor goes on. A failed
 *     one (it may be stored or not) is told to `failed`, then the actor fails with TRP_EJOURNAL:
 *     the default decider stops it, a supervisor with back-off (troupe/backoff.h) starts it again.
 *   - trp_become() replaces the receive function of the library: use trp_persistent_become().
 *
 * A system has one journal (troupe/journal.h), given by the configuration of its node
 * (persistence.journal), or by a program or plugin with trp_persistence_start().
 */
#ifndef TROUPE_PERSISTENCE_H
#define TROUPE_PERSISTENCE_H

#include <troupe/actor.h>
#include <troupe/base.h>
#include <troupe/journal.h>
#include <troupe/message.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_PERSISTENCE_RECOVERIES_DEFAULT 50
#define TRP_PERSISTENT_STASH_DEFAULT 4096        /* commands that are kept */
#define TRP_PERSISTENT_PENDING_DEFAULT 4096      /* groups of events that wait for their answer */
#define TRP_PERSISTENT_RECOVERY_MS_DEFAULT 30000 /* between two answers of the journal */
#define TRP_PERSISTENT_SNAPSHOTS_MAX 16          /* that may be asked to be kept */
#define TRP_PERSISTENT_REDELIVER_MS_DEFAULT 5000
#define TRP_PERSISTENT_REDELIVER_BURST_DEFAULT 1000
#define TRP_PERSISTENT_REDELIVER_WARN_DEFAULT 5
#define TRP_PERSISTENT_DELIVERIES_DEFAULT 100000

/* ---- the journal of a system ----------------------------------------------------------------- */

typedef struct trp_persistence_options {
    size_t size;
    /* 1: what may move between hosts is allowed also over a journal that only this node sees; 0: as
     * persistence.local-store-is-enough says */
    uint32_t local_store_is_enough;
    /* actors that recover at once; 0: persistence.max-concurrent-recoveries */
    uint32_t recoveries_max;
} trp_persistence_options;
#define TRP_PERSISTENCE_OPTIONS_INIT                                                               \
    {                                                                                              \
        sizeof(trp_persistence_options), 0, 0                                                      \
    }

/* Give a system its journal, before actors that use one are spawned.
 *
 * Ownership: takes driver, on success only: it is closed when the actors of the system have ended;
 *            borrows options (NULL: all defaults)
 * Errors:    TRP_EINVAL   driver is not complete, or an option has no meaning
 *            TRP_EEXIST   the system has a journal
 *            TRP_ELIMIT   the system has too many extensions
 *            TRP_ENOMEM   out of memory
 *            TRP_ECLOSED  the system has stopped
 * Thread:    any; takes a lock for a moment.
 * Source:    A4J-14, A4J-28.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_persistence_start(trp_system *system,
                                                     const trp_journal_driver *driver,
                                                     const trp_persistence_options *options);

/* ---- what a persistent actor is -------------------------------------------------------------- */

/* The first member of the state of a persistent actor. */
typedef struct trp_persistent_state {
    void *priv;
} trp_persistent_state;

/* How one incarnation begins: written by `start`, which finds the defaults in it. */
typedef struct trp_persistent_start {
    size_t size;
    char id[TRP_JOURNAL_ID_BYTES_MAX + 1]; /* its persistence id; its path at first */
    /* The scope with whose epoch it writes; "": its own id */
    char scope[TRP_JOURNAL_SCOPE_BYTES_MAX + 1];
    uint64_t epoch;       /* of scope, claimed by another; 0: the actor claims the next one */
    uint64_t to;          /* recover up to this number, and persist nothing; 0: all */
    uint32_t no_snapshot; /* 1: recover from events alone */
    uint32_t zero;
} trp_persistent_start;

/* Reads events of former versions: those whose stored type has this name, and at most this
 * version. */
typedef struct trp_event_adapter {
    const char *type;     /* as stored: "savings.added" */
    uint32_t version_max; /* of the form (event_version of the writer); 0: all */
    uint32_t zero;
    /* Give what the stored event means today: call trp_event_put() for each event that it is now,
     * not at all if it means nothing any more. msg: the event as its bytes say; NULL: this program
     * does not know the type. Borrows both. An error stops the recovery. */
    trp_err (*read)(trp_ctx *ctx, void *state, const trp_journal_event *stored, const trp_msg *msg);
} trp_event_adapter;

typedef struct trp_persistent {
    /* To be spawned. Its state begins with a trp_persistent_state; receive and pre_start are the
     * library's; the rest is free: post_stop, pre_restart, strategy, accepts ... */
    trp_behaviour behaviour;
    size_t size; /* sizeof(trp_persistent) */
    trp_receive_fn command;
    /* Apply an event, new or recovered. An error is a failure of the actor. */
    trp_err (*event)(trp_ctx *ctx, void *state, const trp_msg *event);
    /* Set up the state, as pre_start does elsewhere, and say how to begin. NULL: nothing to do */
    trp_err (*start)(trp_ctx *ctx, void *state, const trp_msg *args, trp_persistent_start *how);
    /* The state is complete; commands come next. Called also for an empty journal */
    trp_err (*recovered)(trp_ctx *ctx, void *state);
    /* event, the first of a group, is certainly not stored; its callback is not called */
    trp_err (*rejected)(trp_ctx *ctx, void *state, const trp_msg *event, trp_err err,
                        const char *why);
    /* The outcome of a write, or of the recovery (event NULL), is unknown; the actor fails next */
    void (*failed)(trp_ctx *ctx, void *state, const trp_msg *event, trp_err err, const char *why);
    /* Make a message that has the whole state: gives *ret_msg (trp_msg_new()) */
    trp_err (*snapshot)(trp_ctx *ctx, const void *state, trp_msg **ret_msg);
    /* Become what such a message says; the state is as `start` left it */
    trp_err (*restore)(trp_ctx *ctx, void *state, const trp_msg *snapshot);
    /* A snapshot, or a deletion, has ended; a failed one costs nothing. may be NULL */
    void (*kept)(trp_ctx *ctx, void *state, trp_journal_kind kind, uint64_t number, trp_err err,
                 const char *why);
    /* Write the tags of an event, borrowed until return, into ret_tags; return how many. */
    uint32_t (*tags)(trp_ctx *ctx, const void *state, const trp_msg *event,
                     const char *ret_tags[TRP_JOURNAL_TAGS_MAX]);
    const trp_protocol *const *events; /* NULL-terminated: registered at the first start */
    const trp_event_adapter *adapters;
    uint32_t adapters_count;
    uint32_t event_version;    /* stored with each event; 0: 1 */
    uint32_t snapshot_every;   /* events; 0: by hand only */
    uint32_t snapshots_keep;   /* of those; 0: all; at most TRP_PERSISTENT_SNAPSHOTS_MAX */
    uint32_t events_forget;    /* 1: delete events that all kept snapshots contain */
    uint32_t stash_msgs_max;   /* 0: TRP_PERSISTENT_STASH_DEFAULT */
    uint32_t stash_quiet;      /* 1: a sender is not told that the stash is full */
    uint32_t pending_max;      /* 0: TRP_PERSISTENT_PENDING_DEFAULT */
    uint32_t recovery_ms;      /* 0: TRP_PERSISTENT_RECOVERY_MS_DEFAULT */
    uint32_t write_timeout_ms; /* in the journal, before it is sent; 0: the driver's */
    /* Tell the message of a delivery (trp_deliver) to where it is for, with its number in it, by
     * which the receiver confirms it. Called when the event has been applied, at the end of a
     * recovery, and again every redeliver_ms until it is confirmed. */
    void (*deliver)(trp_ctx *ctx, void *state, uint64_t delivery, const trp_msg *msg);
    /* A delivery was told redeliver_warn times, and is told again. NULL: a line is logged */
    void (*unconfirmed)(trp_ctx *ctx, void *state, uint64_t delivery, const trp_msg *msg);
    uint32_t redeliver_ms;    /* 0: TRP_PERSISTENT_REDELIVER_MS_DEFAULT */
    uint32_t redeliver_burst; /* told at once; the others follow a tenth of redeliver_ms later.
                                 0: TRP_PERSISTENT_REDELIVER_BURST_DEFAULT */
    uint32_t redeliver_warn;  /* 0: TRP_PERSISTENT_REDELIVER_WARN_DEFAULT */
    uint32_t deliveries_max;  /* not confirmed, for trp_deliveries_room(); 0:
                                 TRP_PERSISTENT_DELIVERIES_DEFAULT */
} trp_persistent;
#define TRP_PERSISTENT_INIT(name_, type_, command_, event_)                                        \
    {                                                                                              \
        { sizeof(trp_behaviour),                                                                   \
          (name_),                                                                                 \
          1,                                                                                       \
          (uint32_t)sizeof(type_),                                                                 \
          trp_persistent_receive,                                                                  \
          trp_persistent_pre_start,                                                                \
          NULL,                                                                                    \
          NULL,                                                                                    \
          NULL,                                                                                    \
          NULL,                                                                                    \
          NULL,                                                                                    \
          NULL,                                                                                    \
          0,                                                                                       \
          0,                                                                                       \
          NULL },                                                                                  \
            sizeof(trp_persistent), (command_), (event_), NULL, NULL, NULL, NULL, NULL, NULL,      \
            NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, 0, 0, 0, 0           \
    }

/* Receive as a persistent actor does: for TRP_PERSISTENT_INIT.
 *
 * Errors:    those of command and event
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    A4J-14, A4J-18.  Since: 0.2 */
TRP_API trp_err trp_persistent_receive(trp_ctx *ctx, void *state, const trp_msg *msg);

/* Start as a persistent actor does: for TRP_PERSISTENT_INIT.
 *
 * Errors:    TRP_ESTATE  the system has no journal
 *            TRP_EINVAL  the behaviour is not complete, or its id is empty
 *            TRP_ENOMEM  out of memory
 *            and those of start
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    A4J-14, A4J-18.  Since: 0.2 */
TRP_API trp_err trp_persistent_pre_start(trp_ctx *ctx, void *state, const trp_msg *args);

/* ---- inside a persistent actor --------------------------------------------------------------- */

/* Called when the event is stored and applied, with the command of trp_persist() as the current
 * message: trp_reply() answers its sender. Borrows event (NULL: of trp_persist_defer). An error is
 * a failure of the actor. */
typedef trp_err (*trp_persisted_fn)(trp_ctx *ctx, void *state, const trp_msg *event, void *arg);

typedef struct trp_event {
    const trp_type *type;
    const void *payload;
    size_t bytes; /* ignored for types of fixed size */
} trp_event;

/* Persist an event when the present command has returned, apply it, and call fn (NULL: nothing).
 * Commands that come meanwhile are kept. A command that fails persists nothing.
 *
 * Ownership: borrows payload; arg is passed through
 * Errors:    TRP_EINVAL   the actor is not persistent, or bytes do not fit the type
 *            TRP_ESTATE   it recovers, recovers only up to a number, or has failed
 *            TRP_ENOTYPE  the type is not registered, or has no form that can be stored
 *            TRP_EAGAIN   pending_max groups wait
 *            TRP_EMSGSIZE the event is larger than TRP_JOURNAL_GROUP_BYTES_MAX
 *            TRP_ELIMIT   it has more tags than TRP_JOURNAL_TAGS_MAX, or names too many nodes
 *            TRP_ENOMEM   out of memory
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    A4J-14, A4J-28.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_persist(trp_ctx *ctx, const trp_type *type, const void *payload,
                                           size_t bytes, trp_persisted_fn fn, void *arg);

/* Do as trp_persist, while commands go on being handled.
 *
 * Ownership: borrows payload; arg is passed through
 * Errors:    as trp_persist
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    A4J-14, A4J-28.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_persist_async(trp_ctx *ctx, const trp_type *type,
                                                 const void *payload, size_t bytes,
                                                 trp_persisted_fn fn, void *arg);

/* Persist a group of events: all of them are stored, or none. fn is called for each one, when it is
 * applied. async 1: as trp_persist_async.
 *
 * Ownership: borrows events; arg is passed through
 * Errors:    TRP_EINVAL  there is no event
 *            TRP_ELIMIT  there are more than TRP_JOURNAL_GROUP_EVENTS_MAX
 *            and those of trp_persist
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    A4J-14, A4J-28.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_persist_all(trp_ctx *ctx, const trp_event *events,
                                               uint32_t count, int async, trp_persisted_fn fn,
                                               void *arg);

/* Call fn when all that was persisted so far has been applied, or rejected; nothing is stored.
 *
 * Ownership: arg is passed through
 * Errors:    TRP_EINVAL, TRP_ESTATE, TRP_EAGAIN, TRP_ENOMEM as trp_persist
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    A4J-28.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_persist_defer(trp_ctx *ctx, trp_persisted_fn fn, void *arg);

/* Put an event in place of a stored one: inside the read of an adapter only.
 *
 * Ownership: borrows payload
 * Errors:    TRP_EINVAL   no adapter reads, or bytes do not fit the type
 *            TRP_ENOTYPE  the type is not registered
 *            TRP_ENOMEM   out of memory
 *            and those of event
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    A4J-28.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_event_put(trp_ctx *ctx, const trp_type *type,
                                             const void *payload, size_t bytes);

/* ---- at-least-once delivery ------------------------------------------------------------------
 * A message of a persistent actor that reaches its receiver although either host crashes: the event
 * that decides it calls trp_deliver(), and an event that its confirmation makes calls
 * trp_deliver_confirm(). Until then the hook `deliver` tells it, again and again, in this
 * incarnation and each later one. The receiver may get it twice, and out of order. */

/* Deliver a message until it is confirmed: inside the event function only. Its number is one more
 * than that of the last delivery, and the same after each recovery. Since the event is stored, no
 * limit refuses it: a command looks at trp_deliveries_room() before it persists.
 *
 * Ownership: borrows payload; ret_delivery may be NULL
 * Errors:    TRP_EINVAL   the actor is not persistent, has no `deliver`, or bytes do not fit
 *            TRP_ESTATE   called elsewhere than in the event function
 *            TRP_ENOTYPE  the type is not registered
 *            TRP_ENOMEM   out of memory
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    MSG-18, A4J-28.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_deliver(trp_ctx *ctx, const trp_type *type, const void *payload,
                                           size_t bytes, uint64_t *ret_delivery);

/* Take a delivery as confirmed: inside the event function only. Returns 0 if it was confirmed
 * before, or was never made.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    MSG-18, A4J-28.  Since: 0.2 */
TRP_API int trp_deliver_confirm(trp_ctx *ctx, uint64_t delivery);

/* Return how many deliveries are not confirmed.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    MSG-18, A4J-28.  Since: 0.2 */
TRP_API uint32_t trp_deliveries_count(const trp_ctx *ctx);

/* Return how many deliveries more there is room for: 0 when deliveries_max are not confirmed, or
 * when the actor has no `deliver`. A command that would make one is refused then.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    MSG-18, A4J-28.  Since: 0.2 */
TRP_API uint32_t trp_deliveries_room(const trp_ctx *ctx);

/* Save the deliveries that are not confirmed, as bytes to be a part of a snapshot: inside
 * `snapshot`. Without them a recovery from that snapshot forgets these deliveries.
 *
 * Ownership: gives *ret_data (trp_msg_free), of trp_bytes_type
 * Errors:    TRP_EINVAL   the actor is not persistent
 *            TRP_ENOTYPE  the type of a message has no form that can be stored
 *            TRP_EMSGSIZE a message is too large
 *            TRP_ENOMEM   out of memory
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    MSG-18, A4J-28.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_deliveries_save(trp_ctx *ctx, trp_msg **ret_data);

/* Restore them from the bytes that trp_deliveries_save() gave: inside `restore` only.
 *
 * Ownership: borrows data
 * Errors:    TRP_EINVAL   the actor is not persistent, or has no `deliver`
 *            TRP_ESTATE   called elsewhere than in `restore`
 *            TRP_EDATA    these are no such bytes, or of a type that is not known
 *            TRP_ENOMEM   out of memory
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    MSG-18, A4J-28.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_deliveries_restore(trp_ctx *ctx, const void *data, size_t bytes);

/* Store a snapshot of the present state. `kept` is told the outcome.
 *
 * Errors:    TRP_EINVAL   the actor is not persistent, or has no `snapshot`
 *            TRP_ESTATE   it recovers, or recovers only up to a number
 *            TRP_EAGAIN   one is being stored
 *            TRP_ENOTYPE  it has no form that can be stored
 *            TRP_ENOMEM   out of memory
 *            and those of snapshot
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    A4J-28.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_snapshot_save(trp_ctx *ctx);

/* Delete snapshots of numbers up to `to`, but the newest `keep`. `kept` is told the outcome.
 *
 * Errors:    TRP_EINVAL, TRP_ESTATE, TRP_ENOMEM as trp_snapshot_save
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    A4J-28.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_snapshots_delete(trp_ctx *ctx, uint64_t to, uint32_t keep);

/* Delete the events of numbers up to `to`: their actor recovers from a snapshot behind them, or
 * without them. `kept` is told the outcome.
 *
 * Errors:    TRP_EINVAL, TRP_ESTATE, TRP_ENOMEM as trp_snapshot_save
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    A4J-28.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_events_delete(trp_ctx *ctx, uint64_t to);

/* Handle commands by another function from the next one on (trp_become() is not for persistent
 * actors). A recovery begins with the behaviour's own.
 *
 * Errors:    TRP_EINVAL  command is NULL, or the actor is not persistent
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    A4J-14.  Since: 0.2 */
TRP_API trp_err trp_persistent_become(trp_ctx *ctx, trp_receive_fn command);

/* Return the number of the last applied event, or of the snapshot; in an event function, that of
 * the event; 0: none yet, or the actor is not persistent.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    A4J-28.  Since: 0.2 */
TRP_API uint64_t trp_persistent_number(const trp_ctx *ctx);

/* Return 1 while the actor recovers.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    A4J-18.  Since: 0.2 */
TRP_API int trp_persistent_recovers(const trp_ctx *ctx);

/* Borrow its persistence id, until it ends; NULL: the actor is not persistent.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    A4J-14.  Since: 0.2 */
TRP_API const char *trp_persistent_id(const trp_ctx *ctx);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_PERSISTENCE_H */
