/* open.h - what the rooms above src/actor may use of the room life: part of actor/actor.h. */
#ifndef TRPI_ACTOR_LIFE_OPEN_H
#define TRPI_ACTOR_LIFE_OPEN_H

#include "actor/kernel/open.h"
#include "base/buffer.h"

/* ---- dead letters ---------------------------------------------------------------------------- */
const char *trpi_dead_reason_text(trp_dead_reason reason); /* "stopped" */
/* Count a message that was lost in an upper room, and publish it as a dead letter: one whose
 * payload is not at hand, one that is known in parts, or one as it was told. Borrow everything. */
void trpi_dead_letter(trp_system *system, trp_ref sender, trp_ref recipient, trp_dead_reason reason,
                      const trp_type *type, size_t bytes);
void trpi_dead_letter_of(trp_system *system, trp_ref sender, trp_ref recipient,
                         trp_dead_reason reason, const trp_type *type, const void *payload,
                         size_t bytes);
void trpi_dead_letter_msg(trp_system *system, trp_ref recipient, const trp_msg *msg,
                          trp_dead_reason reason);

/* ---- serialize-messages: what is told here goes through its serializer and back ----------------
 * The upper room that has the serializers registers once, for the process, before main(). */
typedef struct trpi_round_trip_ops {
    /* Append what a receiver on another node would get for this payload. Inside a run, or entered.
     * Errors: TRP_ENOTYPE (does not travel), TRP_EDATA (cannot be read again), TRP_ELIMIT,
     * TRP_ENOMEM. */
    trp_err (*payload)(trp_system *system, const trp_type *type, const void *payload, size_t bytes,
                       trpi_buffer *out);
} trpi_round_trip_ops;
void trpi_round_trip_register(const trpi_round_trip_ops *ops);

/* ---- routed actors: who tells them is asked first where to --------------------------------------
 * An actor of kind router is an actor like any other (mailbox, life, supervision, watch, path), but
 * what it is told goes through `route`, on the teller's thread, and to its mailbox only when route
 * says so. Its first children are made before anybody knows it, so it can route from the first
 * tell on. */
typedef struct trpi_routed_ops {
    /* Any thread, several at once; inside a run, or between trpi_enter() and trpi_leave(): what is
     * retired with trpi_system_retire() stays until route has returned. true: it took msg. false:
     * msg goes to the actor's own mailbox. */
    bool (*route)(void *arg, trp_ctx *ctx, trp_ref self, trp_msg *msg);
    /* The actor has ended: no call of route begins any more, some may be under way. Its thread. */
    void (*ended)(void *arg, trp_system *system);
} trpi_routed_ops;
typedef struct trpi_embryo trpi_embryo;
/* Spawn a routed child of the running actor; ctx NULL: of /user, from any thread of `system`.
 * make(arg, embryo) is called before the actor is known; on its error, and on any other, nothing is
 * left behind and ended() is not called. Errors: as trp_spawn; those of make. */
trp_err trpi_spawn_routed(trp_ctx *ctx, trp_system *system, const trp_behaviour *behaviour,
                          const trp_spawn_options *options, const trpi_routed_ops *ops, void *arg,
                          trp_err (*make)(void *arg, trpi_embryo *embryo), trp_ref *ret_ref);
/* During make: a child of the actor that is being made. It runs when the actor is known. Errors: as
 * trp_spawn. */
trp_err trpi_embryo_spawn(trpi_embryo *embryo, const trp_behaviour *behaviour,
                          const trp_spawn_options *options, trp_ref *ret_ref);
/* What the actor's ref will be, and the path that it, or a child made here, will have. */
trp_ref trpi_embryo_ref(const trpi_embryo *embryo);
size_t trpi_embryo_path(const trpi_embryo *embryo, trp_ref ref, char *buffer, size_t bytes);
/* What a teller can see of an actor without asking it. A hint: it changes meanwhile. */
typedef struct trpi_look {
    bool local; /* false: on another node, all else is unknown */
    bool alive;
    bool suspended;   /* it, or one above it, has failed */
    bool busy;        /* it runs, or waits for a thread to run on */
    bool empty;       /* it is not busy and has no mail */
    uint64_t handled; /* messages so far, with the one that it is at */
    bool counted;     /* its mailbox knows how many wait: */
    uint32_t pending;
} trpi_look;
void trpi_actor_look(trp_ctx *ctx, trp_ref ref, trpi_look *ret_look);
/* Write the refs of actors of this system that run or have mail, but for the running one; `max` at
 * most. Those that are suspended, and those that stand for others elsewhere, do not count. Returns
 * how many. */
uint32_t trpi_actors_busy(trp_ctx *ctx, trp_ref *ret_refs, uint32_t max);
/* The arg of a live actor routed by these ops; NULL: ref is none. It stays until trpi_leave() of
 * the caller's bracket, or the end of its run. */
void *trpi_routed_find(trp_ctx *ctx, trp_ref ref, const trpi_routed_ops *ops);

/* ---- other ways to tell ---------------------------------------------------------------------- */
/* Tell, and say what came of it. Errors: TRP_ENOENT (it has ended: no dead letter), TRP_EUNHANDLED
 * (its will_receive refuses), TRP_EAGAIN (its mailbox is full), TRP_ENOTYPE, TRP_ENOMEM. */
trp_err trpi_offer(trp_ctx *ctx, trp_ref to, trp_ref sender, const trp_type *type,
                   const void *payload, size_t bytes);

/* Have receive handle a message that nobody queued, now, as part of the running actor. Borrows
 * payload. Returns what receive returns. */
trp_err trpi_receive_inside(trp_ctx *ctx, trp_receive_fn receive, void *state, trp_ref sender,
                            const trp_type *type, const void *payload, size_t bytes);

/* ---- services: cells that are no actors --------------------------------------------------------
 * What is told to the ref of a service is handed to its ops, one at a time, on a worker of the
 * default dispatcher. It has no children, no supervisor, and ends when an op says so. */
typedef struct trpi_service_ops {
    const char *name;
    /* One message; borrows msg. false: the service has ended. */
    bool (*deliver)(void *arg, trp_ctx *ctx, trp_ref self, const trp_msg *msg);
    /* The alarm went off. *ret_again_ms: when to call again, 0: never. false: ended. */
    bool (*alarm)(void *arg, trp_ctx *ctx, trp_ref self, uint32_t *ret_again_ms);
    /* It has ended, or the system has: free arg. Once. */
    void (*release)(void *arg);
    /* What was told in this service's name met `asked`, which is dead or cannot be reached (err).
     * false: ended. NULL: the service waits for its alarm. */
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

/* ---- what upper rooms ask of the tree -------------------------------------------------------- */
/* Spawn below /system, on the "system" dispatcher unless options say otherwise. Thread: any. */
trp_err trpi_system_spawn_internal(trp_system *system, const trp_behaviour *behaviour,
                                   const trp_spawn_options *options, trp_ref *ret_ref);
/* Has its end been ordered, or begun? Thread: any. */
bool trpi_system_is_ending(const trp_system *system);
/* As trp_system_ask, but a reply that means failure (trp_status_failure) is given, too: with an
 * error, *ret_reply is that message, or NULL. */
trp_err trpi_system_ask_whole(trp_system *system, trp_ref to, const trp_type *type,
                              const void *payload, size_t bytes, uint32_t timeout_ms,
                              trp_msg **ret_reply);

/* ---- how far an actor has come with its mail ------------------------------------------------- */
/* An actor's mail. A hint: it changes meanwhile. */
enum trpi_mail {
    TRPI_MAIL_NONE,     /* nothing waits there, or nobody is there */
    TRPI_MAIL_WAITS,    /* something does; how much, a mark tells */
    TRPI_MAIL_OF_OTHERS /* its mailbox has a bound, or an order of the program's own: that decides
                           what may wait; or it is a router, which hands its mail on */
};
enum trpi_mail trpi_inbound_mail(trp_system *system, uint32_t slot, uint32_t generation);
/* Put a mark behind what this thread has told that actor: fn(arg, number) is called once, when the
 * actor has handled all of that or never will. Thread of fn: any, also the caller's before this
 * returns; it must not block. */
typedef void (*trpi_mark_fn)(void *arg, uint64_t number);
void trpi_inbound_mark(trp_system *system, uint32_t slot, uint32_t generation, trpi_mark_fn fn,
                       void *arg, uint64_t number);

#endif
