/* troupe/router.h - one name for many actors.
 *
 * A router is an actor whose reference leads to other actors, its routees. A message to it is
 * routed on the sender's thread, over a table that is replaced as a whole: a router has no queue
 * and is no bottleneck. The sender of a message stays; a routee that wants replies to go to the
 * router answers with trp_tell_as(ctx, to, trp_parent(ctx), ...).
 *
 * Some messages are for the router itself: poison pill, kill, identify, and the orders below.
 * Envelopes (trp_router_broadcast(), trp_router_tell_keyed()) are opened by the router; they do not
 * leave the node.
 *
 *     trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
 *     options.logic = "smallest-mailbox";
 *     options.instances = 5;
 *     trp_router_spawn(ctx, &worker_behaviour, NULL, "workers", &options, &workers);
 */
#ifndef TROUPE_ROUTER_H
#define TROUPE_ROUTER_H

#include <troupe/actor.h>
#include <troupe/base.h>
#include <troupe/message.h>
#include <troupe/system.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_ROUTEES_MAX 65536               /* of one router */
#define TRP_ROUTER_WITHIN_MS_DEFAULT 5000   /* scatter-gather, tail-chopping */
#define TRP_ROUTER_INTERVAL_MS_DEFAULT 10   /* tail-chopping */
#define TRP_ROUTER_VIRTUAL_NODES_DEFAULT 10 /* consistent-hashing */
#define TRP_ROUTER_VIRTUAL_NODES_MAX 1000
#define TRP_ROUTER_STOP_DELAY_MS 100 /* from trp_remove_routee to the poison pill of a child */

/* ---- messages for a router ------------------------------------------------------------------ */

enum {
    trp_broadcast_tag = 0xff20,
    trp_keyed_tag = 0xff21,
    trp_get_routees_tag = 0xff22,
    trp_routees_tag = 0xff23,
    trp_add_routee_tag = 0xff24,
    trp_remove_routee_tag = 0xff25,
    trp_adjust_pool_size_tag = 0xff26
};
TRP_API extern trp_type trp_broadcast_type; /* envelope; made by trp_broadcast_new() */
TRP_API extern trp_type trp_keyed_type;     /* envelope; made by trp_keyed_new() */

/* No payload. The router answers with trp_routees_type, whose payload is an array of trp_ref. */
TRP_API extern trp_type trp_get_routees_type;
TRP_API extern trp_type trp_routees_type;

typedef struct trp_add_routee {
    trp_ref routee; /* any actor, here or elsewhere; not the router itself */
} trp_add_routee;
TRP_API extern trp_type trp_add_routee_type;

/* A child of the router that is removed gets a poison pill after TRP_ROUTER_STOP_DELAY_MS. */
typedef struct trp_remove_routee {
    trp_ref routee;
} trp_remove_routee;
TRP_API extern trp_type trp_remove_routee_type;

/* Make so many children more, or remove so many routees, the last first. */
typedef struct trp_adjust_pool_size {
    int32_t change;
} trp_adjust_pool_size;
TRP_API extern trp_type trp_adjust_pool_size_type;

/* ---- consistent hashing --------------------------------------------------------------------- */

/* The bytes that are hashed; borrowed until the routing function has returned. */
typedef struct trp_hash_key {
    const void *bytes;
    size_t count;
} trp_hash_key;
/* Give msg's key in *ret_key and return non-zero; zero: this message has none. Called by any
 * thread, by several at once. */
typedef int (*trp_hash_key_fn)(void *arg, const trp_msg *msg, trp_hash_key *ret_key);

/* ---- routing of one's own ------------------------------------------------------------------- */

typedef struct trp_route trp_route;                     /* the routing of one message */
typedef struct trp_routee_provider trp_routee_provider; /* the birth of one router */

/* All functions but create and destroy may be called by several threads at once. */
typedef struct trp_routing_logic {
    size_t size;      /* sizeof(trp_routing_logic) */
    const char *name; /* for trp_routing_logic_register(); else for logs */
    /* Make or find the routees and register them: a router without registered routees is refused
     * with TRP_EINIT. NULL: the routees that the options name. */
    trp_err (*create)(void *arg, trp_routee_provider *provider, void **ret_state);
    /* Send msg to where it belongs, by trp_route_to(). A message that is sent to no actor goes to
     * the mailbox of the router. It must be a function of its arguments, or protect its state
     * itself. */
    void (*route)(void *state, trp_route *route, trp_ref sender, const trp_msg *msg);
    /* The router has ended and no thread is in route; any thread. NULL: nothing to do. */
    void (*destroy)(void *state);
    trp_receive_fn receive; /* of the router's mailbox; NULL: unhandled */
    void *arg;              /* of create; the state where there is no create */
} trp_routing_logic;
#define TRP_ROUTING_LOGIC_INIT(name_, route_)                                                      \
    {                                                                                              \
        sizeof(trp_routing_logic), (name_), NULL, (route_), NULL, NULL, NULL                       \
    }

/* ---- pools that grow and shrink ------------------------------------------------------------- */

#define TRP_RESIZER_LOWER_BOUND_DEFAULT 1
#define TRP_RESIZER_UPPER_BOUND_DEFAULT 10
#define TRP_RESIZER_PRESSURE_THRESHOLD_DEFAULT 1
#define TRP_RESIZER_RAMPUP_RATE_DEFAULT 0.2
#define TRP_RESIZER_BACKOFF_THRESHOLD_DEFAULT 0.3
#define TRP_RESIZER_BACKOFF_RATE_DEFAULT 0.1
#define TRP_RESIZER_STOP_DELAY_MS_DEFAULT 1000
#define TRP_RESIZER_MESSAGES_PER_RESIZE_DEFAULT 10

/* All members mean what they say, zero too; the initializer has the defaults. */
typedef struct trp_resizer_options {
    size_t size;
    uint32_t lower_bound;        /* routees at least; >= 1 */
    uint32_t upper_bound;        /* and at most; >= lower_bound */
    uint32_t pressure_threshold; /* a routee is busy: 0: that handles a message; 1: that has more
                                     mail, too; > 1: that has so many messages */
    uint32_t zero;
    double rampup_rate;           /* when all are busy, grow by this share, rounded up */
    double backoff_threshold;     /* shrink when a smaller share than this is busy; <= 0: never */
    double backoff_rate;          /* by this share, rounded up */
    uint32_t stop_delay_ms;       /* from removal to the poison pill */
    uint32_t messages_per_resize; /* 1: before each message */
} trp_resizer_options;
#define TRP_RESIZER_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(trp_resizer_options), TRP_RESIZER_LOWER_BOUND_DEFAULT,                              \
            TRP_RESIZER_UPPER_BOUND_DEFAULT, TRP_RESIZER_PRESSURE_THRESHOLD_DEFAULT, 0,            \
            TRP_RESIZER_RAMPUP_RATE_DEFAULT, TRP_RESIZER_BACKOFF_THRESHOLD_DEFAULT,                \
            TRP_RESIZER_BACKOFF_RATE_DEFAULT, TRP_RESIZER_STOP_DELAY_MS_DEFAULT,                   \
            TRP_RESIZER_MESSAGES_PER_RESIZE_DEFAULT                                                \
    }

typedef struct trp_routee_load {
    trp_ref ref;
    uint32_t pending; /* messages that wait, as far as the router can know */
    uint8_t busy;     /* it is at a message */
    uint8_t suspended;
    uint8_t remote; /* nothing else is known */
    uint8_t zero;
} trp_routee_load;

/* A resizer of one's own. */
typedef struct trp_resizer {
    size_t size;
    /* Is it time, before the message of this number (from 1)? Any thread. */
    int (*is_time)(void *arg, uint64_t number);
    /* How many routees more (> 0) or fewer (< 0)? By the router's own actor; first, with count 0,
     * at its birth. */
    int32_t (*capacity)(void *arg, const trp_routee_load *routees, uint32_t count);
    uint32_t stop_delay_ms;
    uint32_t zero;
    void *arg;
} trp_resizer;

/* ---- routees all over a cluster ------------------------------------------------------------- */

#define TRP_CLUSTER_ROUTEES_DEFAULT 10000

/* A cluster-aware router has routees on the members that are Up: they are added with their nodes,
 * taken out while a node is unreachable, and removed as soon as it leaves; they still handle
 * messages that they got before. New ones are made on the nodes that have the fewest. A routee that
 * has ended, could not be made or is not there is tried again after half a second, then more
 * rarely. Such a router goes on without routees; messages to it are dead letters meanwhile. Any
 * logic works, except "balancing"; a custom create makes and registers no routee then
 * (trp_routees_create() and trp_routees_register() do nothing). All members mean what they say,
 * zero too; the initializer has the defaults. */
typedef struct trp_cluster_routees {
    size_t size;
    uint32_t total;    /* in the whole cluster, at most; > 0 */
    uint32_t per_node; /* on one node, at most; > 0, and 1 with path */
    /* "/user/worker": actors found there, one on each node, which many routers may share. NULL:
     * children of this router, made on the nodes, which must know the behaviour by its name
     * (trp_behaviour_register) */
    const char *path;
    const char *role; /* of the nodes; NULL: all */
    int local;        /* 0: none on the router's own node */
    uint32_t zero;
} trp_cluster_routees;
#define TRP_CLUSTER_ROUTEES_INIT                                                                   \
    {                                                                                              \
        sizeof(trp_cluster_routees), TRP_CLUSTER_ROUTEES_DEFAULT, 1, NULL, NULL, 1, 0              \
    }

/* ---- making a router ------------------------------------------------------------------------ */

typedef struct trp_router_options {
    size_t size;
    /* "round-robin" (NULL), "random", "smallest-mailbox", "broadcast", "scatter-gather",
     * "tail-chopping", "balancing", "consistent-hashing", or the name of a registered one.
     * balancing: its children share a mailbox (troupe/dispatcher.h), on a dispatcher of their own
     * if their options name none; a broadcast is one message for each, taken by any of them */
    const char *logic;
    uint32_t instances; /* children; 0: 1. Not used where routees are given */
    uint32_t routees_count;
    const trp_ref *routees;             /* to be found: not made, and not stopped with the router */
    const char *const *routee_paths;    /* the same by path; NULL-terminated */
    uint32_t within_ms;                 /* until scatter-gather and tail-chopping give up */
    uint32_t interval_ms;               /* tail-chopping: until the next routee is tried */
    uint32_t virtual_nodes;             /* consistent-hashing: places on the ring of each routee */
    int from_config;                    /* 1: everything is configured; without, an error */
    const trp_resizer_options *resizer; /* NULL: the pool keeps its size */
    const trp_resizer *own_resizer;     /* instead of resizer */
    const trp_strategy *strategy;       /* for children; NULL: always escalate */
    const char *dispatcher;       /* of the router itself, not of its routees; no balancing one */
    trp_hash_key_fn hash_mapping; /* consistent-hashing: asked first */
    void *hash_arg;
    const trp_routing_logic *custom; /* instead of logic; borrowed until the router has ended */
    const char *const *settings;     /* "key=value", NULL-terminated, for custom logic */
    /* Children are made on these in turn (trp_spawn_options.node), NULL-terminated; also the ones
     * that a resizer adds. NULL: as the options of the routees say. None with balancing */
    const char *const *target_nodes;
    /* Routees on the nodes of the cluster, instead of instances, routees, routee_paths, resizers
     * and target_nodes; NULL: none of that */
    const trp_cluster_routees *cluster;
} trp_router_options;
#define TRP_ROUTER_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(trp_router_options), NULL, 0, 0, NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL,    \
            NULL, NULL, NULL, NULL, NULL, NULL                                                     \
    }

/* Start a router as a child of the running actor. It routes from the first tell on. A deployment
 * section of its path overrides the options.
 *
 * Ownership: borrows routee until the system ends; copies the rest, but for what options says.
 * Errors:    TRP_EINVAL   an option is out of range, no logic has that name, routee is NULL where
 *                         children are to be made, routee_options names them, or cluster
 *                         contradicts another option; the log says which
 *            TRP_ECONFIG  the deployment section is wrong, or from_config and there is none
 *            TRP_EINIT    custom logic registered no routees
 *            TRP_ESTATE   cluster, and this system is no cluster node
 *            TRP_ELIMIT   more than TRP_ROUTEES_MAX
 *            those of trp_spawn, for router and routees
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    ROUTE-1, -3, -5, -26, CROUTE-11.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_router_spawn(trp_ctx *ctx, const trp_behaviour *routee,
                                                const trp_spawn_options *routee_options,
                                                const char *name, const trp_router_options *options,
                                                trp_ref *ret_ref);

/* Start a router as a child of /user.
 *
 * Ownership: borrows routee until the system ends; copies the rest, but for what options says.
 * Errors:    as trp_router_spawn
 * Thread:    any; takes a lock for a moment.
 * Source:    ROUTE-1, -3, -5.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_system_router_spawn(
    trp_system *system, const trp_behaviour *routee, const trp_spawn_options *routee_options,
    const char *name, const trp_router_options *options, trp_ref *ret_ref);

/* Let routers be made with this logic by its name, in options and in configuration. Process-wide.
 *
 * Ownership: borrows logic until the process ends.
 * Errors:    TRP_EINVAL   route or name is missing
 *            TRP_EEXIST   another logic has the name
 *            TRP_ELIMIT   too many are registered
 * Thread:    any; takes a lock for a moment.
 * Source:    ROUTE-4, -21.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_routing_logic_register(const trp_routing_logic *logic);

/* ---- telling -------------------------------------------------------------------------------- */

/* Tell every routee, however the router routes; also trp_poison_pill_type and trp_kill_type, which
 * reach the routees then, not the router.
 *
 * Ownership: borrows payload.
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    ROUTE-13, -14, -15.  Since: 0.1 */
TRP_API void trp_router_broadcast(trp_ctx *ctx, trp_ref router, const trp_type *type,
                                  const void *payload, size_t bytes);

/* Do as trp_router_broadcast, in the name of any sender, or none.
 *
 * Ownership: borrows payload.
 * Errors:    none
 * Thread:    any; takes a lock for a moment; outside of actors may block until a full mailbox has
 *            room.
 * Source:    ROUTE-13.  Since: 0.1 */
TRP_API void trp_system_router_broadcast(trp_system *system, trp_ref router, trp_ref sender,
                                         const trp_type *type, const void *payload, size_t bytes);

/* Tell the routee that this key leads to; a router that does not hash routes as usual.
 *
 * Ownership: borrows key and payload.
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    ROUTE-12.  Since: 0.1 */
TRP_API void trp_router_tell_keyed(trp_ctx *ctx, trp_ref router, const void *key, size_t key_bytes,
                                   const trp_type *type, const void *payload, size_t bytes);

/* Do as trp_router_tell_keyed, in the name of any sender, or none.
 *
 * Ownership: borrows key and payload.
 * Errors:    none
 * Thread:    any; takes a lock for a moment; outside of actors may block until a full mailbox has
 *            room.
 * Source:    ROUTE-12.  Since: 0.1 */
TRP_API void trp_system_router_tell_keyed(trp_system *system, trp_ref router, trp_ref sender,
                                          const void *key, size_t key_bytes, const trp_type *type,
                                          const void *payload, size_t bytes);

/* Make an envelope around a message of `type` whose payload the caller fills (*ret_payload); send
 * it with trp_send().
 *
 * Ownership: gives *ret_msg (to trp_send(), or trp_msg_free()).
 * Errors:    TRP_EINVAL   bytes does not fit type
 *            TRP_ENOTYPE  type is not registered
 *            TRP_ENOMEM   out of memory
 * Thread:    any; takes a lock for a moment.
 * Source:    ROUTE-13.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_broadcast_new(const trp_type *type, size_t bytes,
                                                 trp_msg **ret_msg, void **ret_payload);

/* Do as trp_broadcast_new, for one routee by a key.
 *
 * Ownership: borrows key; gives *ret_msg (to trp_send(), or trp_msg_free()).
 * Errors:    as trp_broadcast_new
 * Thread:    any; takes a lock for a moment.
 * Source:    ROUTE-12.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_keyed_new(const void *key, size_t key_bytes,
                                             const trp_type *type, size_t bytes, trp_msg **ret_msg,
                                             void **ret_payload);

/* Say that messages of this type carry their key, for all consistent-hashing routers; key NULL:
 * they do not. Process-wide.
 *
 * Ownership: arg is passed through.
 * Errors:    TRP_ENOTYPE  type is not registered
 *            TRP_ENOMEM   out of memory
 * Thread:    any; takes a lock for a moment.
 * Source:    ROUTE-12.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_type_hash_key_set(const trp_type *type, trp_hash_key_fn key,
                                                     void *arg);

/* ---- looking -------------------------------------------------------------------------------- */

typedef struct trp_destination {
    trp_ref sender; /* as the routee would see it */
    trp_ref to;
} trp_destination;

/* Find out where the router would send such a message, without sending it; the choice counts as one
 * (a rotation goes on). *ret_count may be larger than `max`, the entries that there are room for.
 *
 * Ownership: borrows payload.
 * Errors:    TRP_ENOENT   router is no live router of this system
 *            TRP_EINVAL   type is NULL
 *            TRP_ENOTYPE  type is not registered
 *            TRP_ENOMEM   out of memory
 * Thread:    any; takes a lock for a moment; the logic runs in it.
 * Source:    TEST-15, ROUTE-24.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_router_route(trp_system *system, trp_ref router, trp_ref sender,
                                                const trp_type *type, const void *payload,
                                                size_t bytes, trp_destination *ret_destinations,
                                                uint32_t max, uint32_t *ret_count);

/* Copy the present routees of a router; *ret_count may be larger than `max`.
 *
 * Errors:    TRP_ENOENT   router is no live router of this system
 * Thread:    any; takes a lock for a moment.
 * Source:    ROUTE-24.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_router_routees(trp_system *system, trp_ref router,
                                                  trp_ref *ret_routees, uint32_t max,
                                                  uint32_t *ret_count);

/* Return how many routees a pool of `routees`, `busy` of them, should get (> 0) or lose (< 0).
 * Options out of range, or NULL: the defaults.
 *
 * Ownership: borrows options.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    ROUTE-19.  Since: 0.1 */
TRP_API int32_t trp_resizer_capacity(const trp_resizer_options *options, uint32_t routees,
                                     uint32_t busy);

/* ---- inside trp_routing_logic.route --------------------------------------------------------- */

/* Return the number of routees.
 *
 * Errors:    none
 * Thread:    any; lock-free; inside trp_routing_logic.route only.
 * Source:    ROUTE-21.  Since: 0.1 */
TRP_API uint32_t trp_route_count(const trp_route *route);

/* Return a routee, index < trp_route_count(); TRP_REF_NONE beyond.
 *
 * Errors:    none
 * Thread:    any; lock-free; inside trp_routing_logic.route only.
 * Source:    ROUTE-21.  Since: 0.1 */
TRP_API trp_ref trp_route_routee(const trp_route *route, uint32_t index);

/* Return the number of this message among those that the router was told, from 0 on.
 *
 * Errors:    none
 * Thread:    any; lock-free; inside trp_routing_logic.route only.
 * Source:    ROUTE-7, -21.  Since: 0.1 */
TRP_API uint64_t trp_route_number(const trp_route *route);

/* Send the message to `to`, a routee or any other actor, as if `sender` had told it.
 *
 * Errors:    none
 * Thread:    any; takes a lock for a moment; inside trp_routing_logic.route only.
 * Source:    ROUTE-21, -25.  Since: 0.1 */
TRP_API void trp_route_to(trp_route *route, trp_ref to, trp_ref sender);

/* Send the message to all routees.
 *
 * Errors:    none
 * Thread:    any; takes a lock for a moment; inside trp_routing_logic.route only.
 * Source:    ROUTE-21.  Since: 0.1 */
TRP_API void trp_route_to_all(trp_route *route, trp_ref sender);

/* ---- inside trp_routing_logic.create -------------------------------------------------------- */

/* Make `count` children of the routee's behaviour and register them; 0: as many as the options
 * say.
 *
 * Errors:    TRP_EINVAL, TRP_ELIMIT, TRP_ENOMEM and others as trp_router_spawn
 * Thread:    any; takes a lock for a moment; inside trp_routing_logic.create only.
 * Source:    ROUTE-21.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_routees_create(trp_routee_provider *provider, uint32_t count);

/* Make one child of the router of any behaviour, without registering it.
 *
 * Ownership: borrows behaviour until the system ends; borrows options.
 * Errors:    as trp_spawn
 * Thread:    any; takes a lock for a moment; inside trp_routing_logic.create only.
 * Source:    ROUTE-21.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_routee_spawn(trp_routee_provider *provider,
                                                const trp_behaviour *behaviour,
                                                const trp_spawn_options *options, trp_ref *ret_ref);

/* Register routees; NULL and 0: those that the options name, none is fine.
 *
 * Ownership: borrows refs.
 * Errors:    TRP_EINVAL   one of them is TRP_REF_NONE or the router itself
 *            TRP_ELIMIT   more than TRP_ROUTEES_MAX
 *            TRP_ENOMEM   out of memory
 * Thread:    any; takes a lock for a moment; inside trp_routing_logic.create only.
 * Source:    ROUTE-21.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_routees_register(trp_routee_provider *provider,
                                                    const trp_ref *refs, uint32_t count);

/* Borrow the value of a setting (logic-settings of its deployment section, then options.settings)
 * until create returns; NULL: there is none.
 *
 * Errors:    none
 * Thread:    any; lock-free; inside trp_routing_logic.create only.
 * Source:    ROUTE-21.  Since: 0.1 */
TRP_API const char *trp_routee_setting(const trp_routee_provider *provider, const char *key);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_ROUTER_H */
