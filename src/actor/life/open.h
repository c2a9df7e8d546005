/* open.h - what the rooms above src/actor may use of the room life: part of actor/actor.h. */
#ifndef TRPI_ACTOR_LIFE_OPEN_H
#define TRPI_ACTOR_LIFE_OPEN_H

#include "actor/kernel/open.h"
#include "actor/life/observed.h"
#include "actor/life/waiting_asks.h"
#include "base/buffer.h"

/* ---- dead letters ---------------------------------------------------------------------------- */
const char *trpi_dead_reason_text(trp_dead_reason reason); /* "stopped" */
/* Count a message that was lost in an upper room, and publish it as a dead letter: without its
 * payload, from its parts, or as a whole. Borrow everything. */
void trpi_dead_letter(trp_system *system, trp_ref sender, trp_ref recipient, trp_dead_reason reason,
                      const trp_type *type, size_t bytes);
void trpi_dead_letter_of(trp_system *system, trp_ref sender, trp_ref recipient,
                         trp_dead_reason reason, const trp_type *type, const void *payload,
                         size_t bytes);
void trpi_dead_letter_msg(trp_system *system, trp_ref recipient, const trp_msg *msg,
                          trp_dead_reason reason);
/* Show a lost message that carries another one: set type, payload and bytes to those of what it
 * carries, or leave them. Borrows all. On any thread, several at once. */
typedef void (*trpi_carried_fn)(const trp_type **type, const void **payload, size_t *bytes);
/* Show dead letters of this system so from now on. Thread: any. */
void trpi_dead_letters_show(trp_system *system, trpi_carried_fn fn);

/* Look at a dead letter that is reported. Called on the thread that lost the message, without any
 * lock of the engine: fn copies and returns. `what` has no payload. */
typedef void (*trpi_dead_fn)(void *arg, trp_system *system, const trp_dead_letter *what);
/* Set the one who looks, once; fn is called until the system is freed. Any thread. */
void trpi_dead_watch(trp_system *system, trpi_dead_fn fn, void *arg);

/* ---- serialize-messages: a local message goes through its serializer and back ------------------
 * The upper room that has the serializers registers once, for the process, before main(). */
typedef struct trpi_round_trip_ops {
    /* Append the payload that a receiver on another node would get. Inside a run, or entered.
     * Errors: TRP_ENOTYPE (does not travel), TRP_EDATA (cannot be read again), TRP_ELIMIT,
     * TRP_ENOMEM. */
    trp_err (*payload)(trp_system *system, const trp_type *type, const void *payload, size_t bytes,
                       trpi_buffer *out);
    /* The self-contained form of a message, for a store (as trp_serialize), and back (as
     * trp_deserialize). */
    trp_err (*store)(trp_system *system, const trp_type *type, const void *payload, size_t bytes,
                     trpi_buffer *out);
    trp_err (*load)(trp_system *system, const void *data, size_t bytes, trp_msg **ret_msg);
} trpi_round_trip_ops;
void trpi_round_trip_register(const trpi_round_trip_ops *ops);
/* Append the self-contained form of a message to out. Errors: those of trp_serialize;
 * TRP_EUNSUPPORTED (there are no serializers). Thread: any. */
trp_err trpi_stored_write(trp_system *system, const trp_type *type, const void *payload,
                          size_t bytes, trpi_buffer *out);
/* Make a message of such a form. Gives *ret_msg (trp_msg_free()). Errors: those of
 * trp_deserialize; TRP_EUNSUPPORTED. Thread: any. */
trp_err trpi_stored_read(trp_system *system, const void *data, size_t bytes, trp_msg **ret_msg);

/* ---- routed actors: their messages are routed on the sender's thread ----------------------------
 * An actor of kind router is an actor like any other (mailbox, life, supervision, watch, path), but
 * a message to it goes through `route`, on the sender's thread, and to its mailbox only when route
 * says so. Its first children are made before it is published, so it can route from the first
 * message on. */
typedef struct trpi_routed_ops {
    /* Route msg. true: msg was taken. false: it goes to the actor's own mailbox. Thread: any,
     * several at once, inside a run or between trpi_enter() and trpi_leave(): an object retired
     * with trpi_system_retire() stays until route has returned. */
    bool (*route)(void *arg, trp_ctx *ctx, trp_ref self, trp_msg *msg);
    /* The actor has ended: no call of route begins any more, some may still run. Thread: the
     * actor's. */
    void (*ended)(void *arg, trp_system *system);
} trpi_routed_ops;
typedef struct trpi_embryo trpi_embryo;
/* Spawn a routed child of the running actor; ctx NULL: of /user, from any thread of `system`.
 * make(arg, embryo) is called before the actor is published; on any error nothing is left behind
 * and ended() is not called. Errors: as trp_spawn; those of make. */
trp_err trpi_spawn_routed(trp_ctx *ctx, trp_system *system, const trp_behaviour *behaviour,
                          const trp_spawn_options *options, const trpi_routed_ops *ops, void *arg,
                          trp_err (*make)(void *arg, trpi_embryo *embryo), trp_ref *ret_ref);
/* Spawn one below /system, from any thread. Errors: as trp_spawn. */
trp_err trpi_system_spawn_routed(trp_system *system, const trp_behaviour *behaviour,
                                 const trp_spawn_options *options, const trpi_routed_ops *ops,
                                 void *arg, trp_ref *ret_ref);
/* Spawn, during make, a child of the actor that is being made. It runs after the actor is
 * published. Errors: as trp_spawn. */
trp_err trpi_embryo_spawn(trpi_embryo *embryo, const trp_behaviour *behaviour,
                          const trp_spawn_options *options, trp_ref *ret_ref);
/* The future ref of the actor, and the future path of it or of a child made here. */
trp_ref trpi_embryo_ref(const trpi_embryo *embryo);
size_t trpi_embryo_path(const trpi_embryo *embryo, trp_ref ref, char *buffer, size_t bytes);
/* The state of an actor as its senders can see it. A hint: it may be old at once. */
typedef struct trpi_look {
    bool local; /* false: on another node, all else is unknown */
    bool alive;
    bool suspended;   /* it, or one above it, has failed */
    bool busy;        /* it runs, or waits for a thread to run on */
    bool empty;       /* it is not busy and has no mail */
    uint64_t handled; /* messages so far, the current one included */
    bool counted;     /* its mailbox counts the waiting messages: */
    uint32_t pending;
} trpi_look;
void trpi_actor_look(trp_ctx *ctx, trp_ref ref, trpi_look *ret_look);
/* Write the refs of at most `max` actors of this system, other than the running one, that run or
 * have mail; suspended actors and proxies are left out. Returns how many. */
uint32_t trpi_actors_busy(trp_ctx *ctx, trp_ref *ret_refs, uint32_t max);
/* The arg of a live actor that is routed by these ops; NULL: ref is no such actor. Valid until the
 * caller's trpi_leave(), or the end of its run. */
void *trpi_routed_find(trp_ctx *ctx, trp_ref ref, const trpi_routed_ops *ops);

/* ---- a queue of one's own ----------------------------------------------------------------------
 * For an actor that keeps messages back besides its stash. */
/* Put msg, which the running actor has received and copied, behind those in front of its mailbox:
 * the next instance handles it first, or it is a dead letter of the stash. Takes msg. */
void trpi_front_keep(trp_ctx *ctx, trp_msg *msg);
/* Run fn(ctx, arg), which may free msg, while msg is the message being handled: its sender, its
 * interaction. In a trace it is a hop of its own below the handling in which trail was kept
 * (trpi_trail_keep; NULL: below that of msg). */
trp_err trpi_handle_as(trp_ctx *ctx, const trp_msg *msg, const trpi_trail *trail,
                       trp_err (*fn)(trp_ctx *ctx, void *arg), void *arg);
/* Return the behaviour of the running actor. */
const trp_behaviour *trpi_ctx_behaviour(const trp_ctx *ctx);
/* Run fn(ctx, arg), whose failure and jump become a result, with the reason in why. */
trp_err trpi_guarded(trp_ctx *ctx, trp_err (*fn)(trp_ctx *ctx, void *arg), void *arg, char *why,
                     size_t why_bytes);
/* As trp_fail(), with an error of the library's. */
TRP_NORETURN void trpi_fail_as(trp_ctx *ctx, trp_err err, const char *format, ...) TRP_PRINTF(3, 4);

/* ---- other ways to tell ---------------------------------------------------------------------- */
/* Tell, and report the result. Errors: TRP_ENOENT (the actor has ended; no dead letter),
 * TRP_EUNHANDLED (its will_receive refuses), TRP_EAGAIN (its mailbox is full), TRP_ENOTYPE,
 * TRP_ENOMEM. */
trp_err trpi_offer(trp_ctx *ctx, trp_ref to, trp_ref sender, const trp_type *type,
                   const void *payload, size_t bytes);
/* The same with a message that has its sender. Takes msg, on success only. */
trp_err trpi_offer_msg(trp_ctx *ctx, trp_ref to, trp_msg *msg);
/* Has this actor of this system ended? A hint: one that ends now may still seem to live. */
bool trpi_has_ended(trp_ctx *ctx, trp_ref ref);

/* Tell an actor of this system a message that it handles before all that waits in its mailbox.
 * Errors: TRP_EUNSUPPORTED (of another node), TRP_EINVAL, TRP_ENOMEM. */
trp_err trpi_tell_ahead(trp_ctx *ctx, trp_ref to, trp_ref sender, const trp_type *type,
                        const void *payload, size_t bytes);

/* A child of the running actor that waits for the end of a pause of its strategy is restarted now;
 * any other is left alone. */
void trpi_restart_now(trp_ctx *ctx, trp_ref child);
/* Has it all that a behaviour must have? NULL is none. Thread: any. */
bool trpi_behaviour_is_valid(const trp_behaviour *behaviour);
/* Restart an actor of this node as its supervisor does, with the error TRP_ECANCELED: state and
 * children are new, its ref, its mailbox and its watchers stay. Neither the supervisor's decider
 * nor its budget is asked, and siblings are left alone. Thread: any. */
void trpi_system_restart_actor(trp_system *system, trp_ref ref);

/* Call receive with a message that was never queued, as part of the running actor. Borrows payload.
 * Returns the result of receive. */
trp_err trpi_receive_inside(trp_ctx *ctx, trp_receive_fn receive, void *state, trp_ref sender,
                            const trp_type *type, const void *payload, size_t bytes);

/* As trp_spawn, or trpi_spawn_guarded(); prepare(arg, ref) is called before the child can run. Its
 * error is returned, and nothing is left behind. */
trp_err trpi_spawn_prepared(trp_ctx *ctx, const trp_behaviour *behaviour,
                            const trp_spawn_options *options, bool guarded,
                            trp_err (*prepare)(void *arg, trp_ref ref), void *arg,
                            trp_ref *ret_ref);

/* ---- services: cells that are no actors --------------------------------------------------------
 * A message to the ref of a service is handed to its ops, one at a time, on a worker of the
 * default dispatcher. A service has no children and no supervisor, and ends when an op says
 * so. */
typedef struct trpi_service_ops {
    const char *name;
    /* One message; borrows msg. false: the service has ended. */
    bool (*deliver)(void *arg, trp_ctx *ctx, trp_ref self, const trp_msg *msg);
    /* The alarm has fired. *ret_again_ms: when to call again, 0: never. false: the service has
     * ended. */
    bool (*alarm)(void *arg, trp_ctx *ctx, trp_ref self, uint32_t *ret_again_ms);
    /* The service or the system has ended: free arg. Called once. */
    void (*release)(void *arg);
    /* A message with this service as its sender did not reach `asked`, which has ended or cannot be
     * reached (err). false: the service has ended. NULL: the service waits for its alarm. */
    bool (*dead)(void *arg, trp_ctx *ctx, trp_ref asked, trp_err err);
} trpi_service_ops;
/* Takes arg on success. alarm_ms 0: none. Thread: any, between enter and leave or in a run.
 * Errors: TRP_ENOMEM, TRP_ELIMIT (actors-max), TRP_ECLOSED (the timers have stopped). */
trp_err trpi_service_new(trp_ctx *ctx, const trpi_service_ops *ops, void *arg, uint32_t alarm_ms,
                         trp_ref *ret_ref);
/* The same for a caller without a ctx. Thread: any. */
trp_err trpi_system_service_new(trp_system *system, const trpi_service_ops *ops, void *arg,
                                uint32_t alarm_ms, trp_ref *ret_ref);

/* ---- watches of other nodes ------------------------------------------------------------------ */
/* Does this system watch an actor of `node`, now? For remote watch heartbeats. */
bool trpi_node_is_watched(trp_system *system, uint32_t node);
/* How many watches of actors here does `node` have? */
uint32_t trpi_node_watches(trp_system *system, uint32_t node);

/* Ask by a message that was made: as trp_ask(). Takes msg, on success only. Thread: actor. */
trp_err trpi_ask_msg(trp_ctx *ctx, trp_ref to, trp_msg *msg, uint32_t timeout_ms, trp_reply_fn fn,
                     void *arg);
/* Return whether ref stands for an ask of this system that waits for its answer: it takes one.
 * Thread: any, in a run or entered. */
bool trpi_ref_is_ask(trp_system *system, trp_ref ref);

/* ---- the tree, for upper rooms --------------------------------------------------------------- */
/* Spawn below /system, on the "system" dispatcher unless options say otherwise. Thread: any. */
trp_err trpi_system_spawn_internal(trp_system *system, const trp_behaviour *behaviour,
                                   const trp_spawn_options *options, trp_ref *ret_ref);
/* Has its shutdown been requested, or begun? Thread: any. */
bool trpi_system_is_ending(const trp_system *system);
/* How long a thread waits for an answer. */
typedef struct trpi_patience {
    uint32_t timeout_ms;
    bool (*is_wanted)(void *arg); /* asked ten times a second; false: TRP_ECANCELED. NULL: it is */
    void *arg;
} trpi_patience;
/* As trp_system_ask, as part of this trace (NULL: of none); and a reply that reports a failure
 * (trp_status_failure) is given, too: with an error, *ret_reply is that message, or NULL. */
trp_err trpi_system_ask_whole(trp_system *system, trp_ref to, const trp_type *type,
                              const void *payload, size_t bytes, const trp_trace *trace,
                              const trpi_patience *patience, trp_msg **ret_reply);
/* As trp_system_resolve. */
trp_err trpi_system_resolve_whole(trp_system *system, const char *path,
                                  const trpi_patience *patience, trp_ref *ret_ref);

/* ---- marks: how far an actor has come with its mail ------------------------------------------ */
/* An actor's mail. A hint: it may be old at once. */
enum trpi_mail {
    TRPI_MAIL_NONE,  /* no message waits, or the actor has ended */
    TRPI_MAIL_WAITS, /* messages wait; a mark measures how many */
    /* its mailbox has its own bound or order, which decides what may wait; or it is a router, which
     * passes its mail on */
    TRPI_MAIL_OF_OTHERS
};
enum trpi_mail trpi_inbound_mail(trp_ctx *ctx, uint32_t slot, uint32_t generation);
/* Put a mark behind the messages that this thread has sent to that actor: fn(arg, number) is called
 * once, when the actor has handled all of them or never will. Thread of fn: any, also the caller's
 * before this returns; it must not block. */
typedef void (*trpi_mark_fn)(void *arg, uint64_t number);
void trpi_inbound_mark(trp_ctx *ctx, uint32_t slot, uint32_t generation, trpi_mark_fn fn, void *arg,
                       uint64_t number);

/* The same for an incarnation that may have ended: behind all that its slot's mailbox has. */
void trpi_mark_behind(trp_ctx *ctx, uint32_t slot, uint32_t generation, trpi_mark_fn fn, void *arg);

/* Built-in types (life_types.c). */
extern const struct trpi_type_part trpi_life_types;

#endif
