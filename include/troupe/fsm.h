/* troupe/fsm.h - an actor written as a state machine: states, events, transitions.
 *
 *     enum { IDLE, ACTIVE };
 *     struct buncher {
 *         trp_fsm fsm; // first
 *         ...
 *     };
 *
 *     static trp_err
 *     on_idle(trp_ctx *ctx, void *state, const trp_msg *msg)
 *     {
 *         struct buncher *b = state;
 *         if (!trp_msg_is(msg, &bunch_queue_type)) {
 *             return TRP_EUNHANDLED;
 *         }
 *         return trp_fsm_goto(&b->fsm, ACTIVE);
 *     }
 *
 *     static const trp_fsm_state states[] = { TRP_FSM_STATE(IDLE, on_idle, 0),
 *                                             TRP_FSM_STATE(ACTIVE, on_active, 1000) };
 *     static const trp_fsm_definition definition =
 *         TRP_FSM_DEFINITION_INIT("buncher", states, IDLE);
 *     TRP_FSM_BEHAVIOUR(buncher, "buncher", struct buncher, &definition)
 *
 * Each state has a function, a receive like any other: trp_dispatch() and trp_or_else() compose
 * them. It ends with trp_fsm_stay(), trp_fsm_goto() or trp_fsm_stop(), TRP_EUNHANDLED, or the
 * error that the actor fails with. The transition is made when it has returned: replies, then
 * hooks, then subscribers, then the time limit of the state. A function that fails has changed
 * nothing of the machine.
 *
 * Every event restarts the time limit of the state that it leads to, also of the same one; when it
 * is over the state gets trp_fsm_state_timeout_type, and never after another event that came in
 * between. Named timers go on whatever is received. Both end with the incarnation of the actor.
 *
 * Functions that change the transition are for the function of a state and for init; elsewhere (a
 * hook, the function of an ask) they return TRP_ESTATE: tell self instead.
 */
#ifndef TROUPE_FSM_H
#define TROUPE_FSM_H

#include <troupe/actor.h>
#include <troupe/base.h>
#include <troupe/message.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_FSM_STATES_MAX 1024u
#define TRP_FSM_EDGES_MAX 16384u
#define TRP_FSM_HISTORY_MAX 65536u
#define TRP_FSM_SUBSCRIBERS_MAX 1024u /* one more is refused with a warning */
#define TRP_FSM_REPLIES_MAX 64u       /* held by one event */
#define TRP_FSM_WHY_BYTES 128     /* of the reason of a stop, with the NUL; longer ones are cut */
#define TRP_FSM_NAME_BYTES_MAX 31 /* of a state */
#define TRP_FSM_END 0xffffffffu   /* as the end of an edge: the machine stops */

/* The machine of an actor: the first member of its state. Part of the ABI, because trp_fsm_goto()
 * writes it in line. */
typedef struct trp_fsm {
    const struct trp_fsm_definition *priv_definition;
    const trp_msg *priv_event; /* of a simple machine, while it is handled */
    void *priv_data, *priv_next_data;
    void *priv_more;
    const char *priv_next_name;
    const struct trp_fsm_priv_row *priv_rows; /* of a simple machine, one for each state */
    uint64_t priv_due_ns, priv_armed_ns;
    uint32_t priv_state, priv_next;
    uint32_t priv_flags, priv_timeout_ms;
    uint32_t priv_own, priv_zero; /* number of the first type of messages to the machine itself */
} trp_fsm;

#define TRP_FSM_PRIV_EVENT 1u /* the function of a state runs, or init */

/* One row of the table of states, which is in the order of their numbers. */
typedef struct trp_fsm_state {
    const char *name;       /* at most TRP_FSM_NAME_BYTES_MAX */
    uint32_t id;            /* its place in the table */
    uint32_t timeout_ms;    /* its time limit; 0: none */
    trp_receive_fn receive; /* NULL: it handles no event */
} trp_fsm_state;
#define TRP_FSM_STATE(id_, receive_, timeout_ms_)                                                  \
    {                                                                                              \
#id_, (uint32_t)(id_), (timeout_ms_), (receive_)                                           \
    }

/* A transition that there may be. A machine with edges makes no others. */
typedef struct trp_fsm_edge {
    uint32_t from, to; /* to: also TRP_FSM_END */
    const char *from_name, *to_name;
    const char *on; /* for the drawing: what leads to it; NULL: nothing is said */
} trp_fsm_edge;
#define TRP_FSM_EDGE(from_, to_, on_)                                                              \
    {                                                                                              \
        (uint32_t)(from_), (uint32_t)(to_), #from_, #to_, (on_)                                    \
    }

typedef enum trp_fsm_reason {
    TRP_FSM_NORMAL = 1,   /* trp_fsm_stop() */
    TRP_FSM_SHUTDOWN = 2, /* the same, or the actor was stopped or is restarted */
    TRP_FSM_FAILURE = 3   /* trp_fsm_stop(); it is logged as an error */
} trp_fsm_reason;

typedef struct trp_fsm_stop_event {
    trp_fsm_reason reason;
    uint32_t state;   /* in which it ends */
    const void *data; /* as trp_fsm_data() */
    const char *why;  /* of trp_fsm_stop(), else "" */
} trp_fsm_stop_event;

/* A hook of a transition: from and to differ. trp_fsm_data() is what it was, trp_fsm_next_data()
 * what it will be. */
typedef void (*trp_fsm_hook)(trp_ctx *ctx, void *state, uint32_t from, uint32_t to);

/* Static: borrowed until the system ends. */
typedef struct trp_fsm_definition {
    size_t size;
    const char *name; /* for logs and the drawing */
    const trp_fsm_state *states;
    const trp_fsm_edge *edges; /* NULL: every transition between states may be made */
    uint32_t states_count, edges_count;
    uint32_t first;            /* the state that it begins in */
    uint32_t first_timeout_ms; /* of it, once; 0: as its row says; TRP_OFF: none */
    /* Data that is replaced by a transition (trp_fsm_using); 0: members behind trp_fsm will do */
    uint32_t data_bytes;
    uint32_t history; /* how many events are remembered; 0: none */
    const void *data; /* to begin with; NULL: zero */
    /* Called with the arguments of the spawn before the first state is entered, which it may
     * change by trp_fsm_goto(). NULL: nothing. An error is a failed start. */
    trp_err (*init)(trp_ctx *ctx, void *state, const trp_msg *args);
    /* Events that the function of the state answered with TRP_EUNHANDLED. NULL: a warning, and the
     * message is unhandled as of any actor (MSG-15), as it is when this answers the same. */
    trp_receive_fn unhandled;
    const trp_fsm_hook *hooks; /* NULL-terminated, all called in their order; NULL: none */
    /* The machine ends, once for each incarnation. NULL: nothing. */
    void (*terminated)(trp_ctx *ctx, void *state, const trp_fsm_stop_event *event);
} trp_fsm_definition;
#define TRP_FSM_DEFINITION_INIT(name_, states_, first_)                                            \
    {                                                                                              \
        sizeof(trp_fsm_definition), (name_), (states_), NULL,                                      \
            (uint32_t)(sizeof(states_) / sizeof((states_)[0])), 0, (uint32_t)(first_), 0, 0, 0,    \
            NULL, NULL, NULL, NULL, NULL                                                           \
    }

/* Define `variable`, the behaviour of a state machine whose actors have a state of `type`. Raise
 * the version in each version of a plugin that changes the table: an actor whose version and size
 * stay the same keeps the older one (trp_fsm_code_change). */
#define TRP_FSM_BEHAVIOUR(variable, name_, type_, definition_)                                     \
    TRP_FSM_BEHAVIOUR_VERSION(variable, name_, type_, definition_, 1)
#define TRP_FSM_BEHAVIOUR_VERSION(variable, name_, type_, definition_, version_)                   \
    static trp_err variable##_fsm_start(trp_ctx *ctx, void *state, const trp_msg *args)            \
    {                                                                                              \
        return trp_fsm_start(ctx, (trp_fsm *)state, (definition_), args);                          \
    }                                                                                              \
    static const trp_behaviour variable = { sizeof(trp_behaviour),                                 \
                                            (name_),                                               \
                                            (version_),                                            \
                                            (uint32_t)sizeof(type_),                               \
                                            trp_fsm_receive,                                       \
                                            variable##_fsm_start,                                  \
                                            trp_fsm_post_stop,                                     \
                                            NULL,                                                  \
                                            NULL,                                                  \
                                            NULL,                                                  \
                                            NULL,                                                  \
                                            NULL,                                                  \
                                            0,                                                     \
                                            0,                                                     \
                                            NULL };

/* Let `troupe fsm dot PLUGIN NAME` find the definition in a shared object. NAME is `name`. */
#define TRP_FSM_EXPORT(name, definition_)                                                          \
    TRP_API extern const trp_fsm_definition *const trp_fsm_export_##name;                          \
    const trp_fsm_definition *const trp_fsm_export_##name = (definition_);

/* ---- the behaviour -------------------------------------------------------------------------- */

/* Start the machine: the hook pre_start of its behaviour. Checks the tables, calls init and enters
 * the first state.
 *
 * Ownership: borrows definition until the system ends, and args until return.
 * Errors:    TRP_EINVAL   a table is wrong: the log names the state; and those of init
 *            TRP_ENOMEM   out of memory
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    FSM-2, -3, -6, -8.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_fsm_start(trp_ctx *ctx, trp_fsm *fsm,
                                             const trp_fsm_definition *definition,
                                             const trp_msg *args);

/* ---- upgrades ------------------------------------------------------------------------------- */

/* A state that has another name in the newer table. */
typedef struct trp_fsm_rename {
    const char *old_name, *name;
} trp_fsm_rename;

typedef struct trp_fsm_change {
    size_t size;
    const trp_fsm_rename *renames; /* of states; NULL: none. Several may become one */
    uint32_t renames_count;
    uint32_t zero;
    /* Fill data, data_bytes of the newer definition as it begins with, from old_data, which must
     * stay as it is. NULL: the same bytes; where their number differs the change fails. */
    trp_err (*data)(trp_ctx *ctx, void *data, const void *old_data);
} trp_fsm_change;
#define TRP_FSM_CHANGE_INIT                                                                        \
    {                                                                                              \
        sizeof(trp_fsm_change), NULL, 0, 0, NULL                                                   \
    }

/* Let a machine go on with another table of states: part of the code_change (troupe/plugin.h) of a
 * behaviour whose version is raised (TRP_FSM_BEHAVIOUR_VERSION), which takes over its own members
 * beside it.
 *
 *     static trp_err
 *     buncher_change(trp_ctx *ctx, void *state, void *old_state, uint32_t old_version)
 *     {
 *         struct buncher *b = state;
 *         const struct buncher_1 *old = old_state;
 *         b->count = old->count;
 *         return trp_fsm_code_change(ctx, &b->fsm, &old->fsm, &definition, NULL);
 *     }
 *
 * The state is found by its name, and none is entered: no hook runs, no subscriber is told. Data,
 * subscribers, limits of trp_fsm_state_timeout_set(), named timers and the time limit that runs go
 * on; the limits of the newer table count from the next event on. The history begins anew: it has
 * numbers of the older table.
 *
 * A state that the newer table lacks is a failure that names it, as are a wrong table and data that
 * cannot be taken over: the function does not return, and the actor keeps its older code, state and
 * machine, which this leaves as they were. An upgrade can be tried again when other messages have
 * led it to a state of both tables.
 *
 * Ownership: borrows definition until the system ends, change until return; old stays the caller's.
 * Errors:    TRP_EINVAL   a pointer is NULL, or change is not whole
 *            TRP_ESTATE   the older machine was not started, or has ended
 * Thread:    actor (inside its code_change only).
 * Source:    FSM-1, -9, -10.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_fsm_code_change(trp_ctx *ctx, trp_fsm *fsm, const trp_fsm *old,
                                                   const trp_fsm_definition *definition,
                                                   const trp_fsm_change *change);

/* ---- events --------------------------------------------------------------------------------- */

/* Handle an event: the receive of its behaviour. state begins with the trp_fsm. A behaviour with
 * messages of its own that are no events calls this last.
 *
 * Ownership: borrows msg.
 * Errors:    TRP_EUNHANDLED  nothing handles it; and those of the function of the state. A
 *                            transition that is not declared does not return: it is a failure
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    FSM-1, -5, -7, -8.  Since: 0.2 */
TRP_API trp_err trp_fsm_receive(trp_ctx *ctx, void *state, const trp_msg *msg);

/* End the machine: the hook post_stop of its behaviour; one of your own calls it.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    FSM-11.  Since: 0.2 */
TRP_API void trp_fsm_post_stop(trp_ctx *ctx, void *state);

/* ---- the outcome of an event ---------------------------------------------------------------- */

/* Stay in the present state, whose time limit begins anew.
 *
 * Errors:    TRP_ESTATE   no event is being handled
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    FSM-4.  Since: 0.2 */
static inline trp_err
trp_fsm_stay(trp_fsm *fsm)
{
    if ((fsm->priv_flags & TRP_FSM_PRIV_EVENT) == 0) {
        return TRP_ESTATE;
    }
    fsm->priv_next = fsm->priv_state;
    return TRP_OK;
}

/* Go to a state when the function of the present one returns: `return trp_fsm_goto(fsm, ACTIVE);`.
 * The same state: as trp_fsm_stay(). The last call counts. One that is not declared, or whose edge
 * is not, fails the actor with its name.
 *
 * Ownership: borrows name until the event is handled.
 * Errors:    TRP_ESTATE   no event is being handled
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    FSM-4, -8.  Since: 0.2 */
#define trp_fsm_goto(fsm, to) trp_fsm_goto_named((fsm), (uint32_t)(to), #to)
static inline trp_err
trp_fsm_goto_named(trp_fsm *fsm, uint32_t to, const char *name)
{
    if ((fsm->priv_flags & TRP_FSM_PRIV_EVENT) == 0) {
        return TRP_ESTATE;
    }
    fsm->priv_next = to;
    fsm->priv_next_name = name;
    return TRP_OK;
}

/* Stop the actor when the function of the state returns: `return trp_fsm_stop(fsm, reason, why);`.
 * terminated is told why, which is copied (TRP_FSM_WHY_BYTES); NULL: nothing. Subscribers are told
 * nothing; watchers are, as of any actor.
 *
 * Ownership: borrows why.
 * Errors:    TRP_ESTATE   no event is being handled
 *            TRP_EINVAL   reason is none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    FSM-11.  Since: 0.2 */
TRP_API trp_err trp_fsm_stop(trp_ctx *ctx, trp_fsm *fsm, trp_fsm_reason reason, const char *why);

/* Give the state that this event leads to a time limit other than that of its row, until the next
 * event; TRP_OFF: none.
 *
 * Errors:    TRP_ESTATE   no event is being handled
 *            TRP_EINVAL   ms is 0
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    FSM-4, -5.  Since: 0.2 */
TRP_API trp_err trp_fsm_for_max(trp_fsm *fsm, uint32_t ms);

/* Borrow a copy of the data to be changed: it takes the place of the data when the event has been
 * handled, and is forgotten when the function fails. The same one for the whole event. NULL: there
 * is no data, or no event is being handled. Pointers in the data are copied, not what they lead to.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    FSM-4.  Since: 0.2 */
TRP_API void *trp_fsm_using(trp_fsm *fsm);

/* Reply to the sender of this event when the transition is made, before its hooks; not if the
 * function fails.
 *
 * Ownership: borrows payload.
 * Errors:    TRP_ESTATE   no event is being handled
 *            TRP_EINVAL   bytes does not fit type
 *            TRP_ENOTYPE  type is not registered
 *            TRP_ELIMIT   TRP_FSM_REPLIES_MAX are held
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    FSM-4.  Since: 0.2 */
TRP_API trp_err trp_fsm_reply(trp_ctx *ctx, trp_fsm *fsm, const trp_type *type, const void *payload,
                              size_t bytes);

/* Change the time limit of a state of this machine from the next event on that leads to it; 0 or
 * TRP_OFF: none. A restart begins with the table again.
 *
 * Errors:    TRP_ENOENT   there is no such state
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    FSM-5.  Since: 0.2 */
TRP_API trp_err trp_fsm_state_timeout_set(trp_ctx *ctx, trp_fsm *fsm, uint32_t state, uint32_t ms);

/* ---- named timers --------------------------------------------------------------------------- */

/* Tell self a message once, after ms. A timer of this name is replaced. Named timers are kept apart
 * from those of trp_timer_once(), which are named by numbers.
 *
 * Ownership: borrows name and payload.
 * Errors:    as trp_timer_once; TRP_EINVAL also if name is NULL or empty
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    FSM-10.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_fsm_timer_once(trp_ctx *ctx, const char *name, uint32_t ms,
                                                  const trp_type *type, const void *payload,
                                                  size_t bytes);

/* Do as trp_fsm_timer_once, and again every ms, at a fixed rate.
 *
 * Ownership: borrows name and payload.
 * Errors:    as trp_timer_repeat; TRP_EINVAL also if name is NULL or empty
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    FSM-10.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_fsm_timer_repeat(trp_ctx *ctx, const char *name, uint32_t ms,
                                                    const trp_type *type, const void *payload,
                                                    size_t bytes);

/* End a named timer; its message is not handled any more, not even if it is queued already.
 *
 * Ownership: borrows name.
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    FSM-10.  Since: 0.2 */
TRP_API void trp_fsm_timer_cancel(trp_ctx *ctx, const char *name);

/* Return non-zero if a timer of this name is there: set, not cancelled, and, if it rings once, its
 * message not handled yet.
 *
 * Ownership: borrows name.
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    FSM-10.  Since: 0.2 */
TRP_API int trp_fsm_timer_is_active(const trp_ctx *ctx, const char *name);

/* ---- looking at it -------------------------------------------------------------------------- */

/* Return the present state, and its name. In a hook it is still the one that is left.
 *
 * Errors:    none
 * Thread:    actor, or the owner of a test kit through trp_testkit_state().
 * Source:    FSM-7, -15, -16.  Since: 0.2 */
TRP_API uint32_t trp_fsm_now(const trp_fsm *fsm);
TRP_API const char *trp_fsm_name(const trp_fsm *fsm);

/* Return the state that this event leads to, as far as is said by now: to finish the outcome of one
 * function by another one.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    FSM-13.  Since: 0.2 */
TRP_API uint32_t trp_fsm_next(const trp_fsm *fsm);

/* Borrow the data as it is, and as this event will make it; NULL: there is none. The same without
 * trp_fsm_using().
 *
 * Errors:    none
 * Thread:    actor, or the owner of a test kit through trp_testkit_state().
 * Source:    FSM-9, -13, -16.  Since: 0.2 */
TRP_API const void *trp_fsm_data(const trp_fsm *fsm);
TRP_API const void *trp_fsm_next_data(const trp_fsm *fsm);

/* Put the machine into a state, with this data (NULL: as it is), for a test: no hook runs, no
 * subscriber is told, and its time limit begins with the next event.
 *
 * Ownership: borrows data.
 * Errors:    TRP_ENOENT   there is no such state
 *            TRP_EINVAL   data, and the machine has none
 * Thread:    the owner of a test kit through trp_testkit_state().
 * Source:    FSM-16.  Since: 0.2 */
TRP_API trp_err trp_fsm_put(trp_fsm *fsm, uint32_t state, const void *data);

/* One event of the past. */
typedef struct trp_fsm_entry {
    uint64_t at_ms;        /* trp_now_ms() */
    const trp_type *event; /* what came */
    const void *data;      /* before it; NULL: the machine has none */
    trp_ref sender;
    uint32_t from, to; /* to: from, if it failed or stopped */
} trp_fsm_entry;

/* Return how many events are remembered: definition.history at most, the present one included.
 *
 * Errors:    none
 * Thread:    actor, or the owner of a test kit through trp_testkit_state().
 * Source:    FSM-14.  Since: 0.2 */
TRP_API uint32_t trp_fsm_history_count(const trp_fsm *fsm);

/* Get an event of the past; 0 is the oldest. Its data is valid until the next event.
 *
 * Errors:    TRP_ENOENT   there are not so many
 * Thread:    actor, or the owner of a test kit through trp_testkit_state().
 * Source:    FSM-14.  Since: 0.2 */
TRP_API trp_err trp_fsm_history_get(const trp_fsm *fsm, uint32_t index, trp_fsm_entry *ret_entry);

/* Draw the machine as a graph of Graphviz: NUL-terminated, cut at bytes - 1. Returns the bytes that
 * the whole drawing has, without the NUL.
 *
 * Ownership: borrows definition.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    FSM-2.  Since: 0.2 */
TRP_API size_t trp_fsm_dot(const trp_fsm_definition *definition, char *buffer, size_t bytes);

/* The program `troupe fsm dot PLUGIN NAME`: prints the drawing of a definition that the shared
 * object names by TRP_FSM_EXPORT. argv[0] is the name of the command. Returns the exit code.
 *
 * Ownership: borrows argv.
 * Errors:    none; the exit code says.
 * Thread:    any; may block until the shared object is loaded; never from a behaviour.
 * Source:    FSM-2.  Since: 0.2 */
TRP_API int trp_fsm_main(int argc, char **argv);

/* ---- messages ------------------------------------------------------------------------------- */

/* To a state whose time limit is over. The payload is not yours. */
TRP_API extern trp_type trp_fsm_state_timeout_type;
typedef struct trp_fsm_state_timeout {
    uint64_t priv_due_ns;
} trp_fsm_state_timeout;

/* To a machine: tell `subscriber`, an actor on any node, each transition from now on. It is told
 * trp_fsm_current at once. A subscriber that is not running is refused with a warning; one of this
 * node that has ended is removed at the next transition. Subscriptions end with the incarnation. */
typedef struct trp_fsm_subscribe {
    trp_ref subscriber;
} trp_fsm_subscribe;
TRP_API extern trp_type trp_fsm_subscribe_type;

/* To a machine: tell it no more. */
typedef struct trp_fsm_unsubscribe {
    trp_ref subscriber;
} trp_fsm_unsubscribe;
TRP_API extern trp_type trp_fsm_unsubscribe_type;

/* To a subscriber, once. */
typedef struct trp_fsm_current {
    trp_ref machine;
    uint32_t state;
    uint32_t zero;
    char name[TRP_FSM_NAME_BYTES_MAX + 1];
} trp_fsm_current;
TRP_API extern trp_type trp_fsm_current_type;

/* To a subscriber: a transition, from and to differ. */
typedef struct trp_fsm_transition {
    trp_ref machine;
    uint32_t from, to;
    char from_name[TRP_FSM_NAME_BYTES_MAX + 1], to_name[TRP_FSM_NAME_BYTES_MAX + 1];
} trp_fsm_transition;
TRP_API extern trp_type trp_fsm_transition_type;

/* The five types. The first machine of a process registers them; a program that subscribes before
 * that does it itself. */
TRP_API extern const trp_protocol trp_fsm_protocol;

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_FSM_H */
