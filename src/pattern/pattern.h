/* pattern.h - the door of the pattern room: functions for the rooms above it. */
#ifndef TRPI_PATTERN_PATTERN_H
#define TRPI_PATTERN_PATTERN_H

#include <stdbool.h>

#include <troupe/config.h>
#include <troupe/router.h>
#include <troupe/shutdown.h>

#include "base/config.h"

/* ---- routees from elsewhere --------------------------------------------------------------------
 * A source decides on which nodes a router has routees; the router's own actor carries it out. The
 * cluster room makes one for each cluster-aware router. Such a router may be without routees, and
 * does not end for that. Logics see the same table: any of them works with a source. */
typedef struct trpi_routee_source_ops {
    /* The actor has started, or was restarted: it watches only routees of the table. Its thread. */
    void (*start)(void *source, trp_ctx *ctx);
    /* The time that trpi_routees_poke() or trpi_routees_poke_in() set has come. Its thread. */
    void (*poked)(void *source, trp_ctx *ctx);
    /* A routee, in the table or not, has ended, or was removed by others. Its thread. */
    void (*routee_ended)(void *source, trp_ctx *ctx, trp_ref routee);
    /* The actor ends: none of the above is called any more. Its thread. */
    void (*stop)(void *source);
    void (*free)(void *source); /* any thread */
} trpi_routee_source_ops;
typedef struct trpi_routee_source {
    const trpi_routee_source_ops *ops; /* NULL: none */
    void *arg;
} trpi_routee_source;

/* Make the source of a new router: gives *ret_source, copies settings, which are valid. Errors:
 * TRP_ESTATE (the system is no cluster node), TRP_ENOMEM. Process-wide, like logics; idempotent. */
typedef trp_err (*trpi_routee_source_new_fn)(trp_system *system,
                                             const trp_cluster_routees *settings,
                                             trpi_routee_source *ret_source);
void trpi_routee_source_register(trpi_routee_source_new_fn make);

/* Make the message for trpi_routees_poke(). Gives *ret_msg (trp_msg_free()). Errors: TRP_ENOMEM.
 * Thread: any.
 */
trp_err trpi_routees_poke_new(trp_msg **ret_msg);
/* Have poked() called soon. Takes msg. Thread: any. */
void trpi_routees_poke(trp_system *system, trp_ref router, trp_msg *msg);
/* The rest is for the router's actor: inside the functions of the ops, and of replies to it. */
void trpi_routees_poke_in(trp_ctx *ctx, uint64_t delay_ms); /* instead of the one before */
void *trpi_routees_source(trp_ctx *ctx);
/* Make a child on a node, watched, in no table yet. Errors: those of trp_spawn. */
trp_err trpi_routee_make(trp_ctx *ctx, const char *name, const char *node, trp_ref *ret_ref);
/* Watch a routee, and put it into the next table. path: "/user/a" here, or with its address: its
 * identity on a ring. node: the address of the node where it lives. Errors: TRP_EINVAL, TRP_ELIMIT,
 * TRP_ENOMEM. */
trp_err trpi_routee_put(trp_ctx *ctx, trp_ref ref, bool child, const char *path, const char *node);
/* Leave it out of the next table; it is still watched. */
void trpi_routee_take(trp_ctx *ctx, trp_ref ref);
/* Swap the table in. Errors: TRP_ENOMEM: the one before stays. */
trp_err trpi_routees_publish(trp_ctx *ctx);
/* Stop watching a routee that is in no table. A child gets a poison pill after
 * TRP_ROUTER_STOP_DELAY_MS, when senders with the last table have finished, so it handles their
 * messages. */
void trpi_routee_dismiss(trp_ctx *ctx, trp_ref ref, bool child);

/* Check that routers can be made of the deployment sections. Names of logics are not checked: a
 * program may still register them. Errors: TRP_ECONFIG, TRP_ENOMEM. Thread: any. */
trp_err trpi_router_config_check(const trp_config *config, trp_config_error *ret_error);

/* ---- routing logics of other rooms -------------------------------------------------------------
 * In trp_routing_logic.create: return the system of the router; make or find its routees as for a
 * built-in logic. Errors: as trp_router_spawn. */
trp_system *trpi_routees_system(const trp_routee_provider *provider);
trp_err trpi_routees_of_options(trp_routee_provider *provider);
/* In trp_routing_logic.route: return the number of the table of routees; each table has its own. */
uint64_t trpi_route_serial(const trp_route *route);
/* The node on which a routee lives, index < trp_route_count(); its uid may be 0. */
uint32_t trpi_route_node(const trp_route *route, uint32_t index);
/* Make a message that cannot be routed a dead letter: it is not for the router itself. */
void trpi_route_nobody(trp_route *route);
/* Route to the routee of this index, and count it if the logic needs that. */
void trpi_route_to_index(trp_route *route, uint32_t index);
/* Return a pseudo-random number, from the router's seed and the message's number. */
uint64_t trpi_route_random(trp_route *route);

/* ---- drain -------------------------------------------------------------------------------------
 * Wait until the actors of the system have handled the messages in their mailboxes; done(arg) is
 * called once, on an actor of the library. pause_ms: before that, for messages on their way.
 * Errors: those of trpi_system_spawn_internal; then done is not called. Thread: any. */
trp_err trpi_drain_start(trp_system *system, uint64_t pause_ms, void (*done)(void *arg), void *arg);

/* ---- messages inside a message -----------------------------------------------------------------
 * A reliable proxy's message to its far end: this head, then the payload of the message that it
 * carries, 16-aligned. Between nodes it is the one form that the parcel serializer of the remote
 * room knows. type 0: its message cannot be read here, or could not be sent; the number counts. */
typedef struct trpi_parcel {
    trp_ref sender;
    uint64_t instance, number;
    uint32_t type; /* trp_type.number */
    uint32_t zero[3];
} trpi_parcel;
_Static_assert(sizeof(trpi_parcel) % 16 == 0, "the payload behind it is 16-aligned");
extern trp_type trpi_parcel_type;
/* Register the types of reliable proxies, and accept proxies of other nodes from now on.
 * Idempotent. Errors: TRP_ENOMEM, TRP_ELIMIT, TRP_ECLOSED. Thread: any. */
trp_err trpi_reliable_receive(trp_system *system);

/* A message for an entity of another node: this head, the id padded to 16 bytes, then the payload.
 * Between nodes it is the one form that the entity serializer of the remote room knows. type 0: its
 * message cannot be read here. */
typedef struct trpi_entity_envelope {
    uint64_t entity_type; /* XXH64 of its name */
    uint64_t epoch;       /* of the owner that the sender knows; 0: it knows none */
    trp_ref gate;         /* of the node that sends it, where it comes back to */
    uint32_t type;        /* trp_type.number */
    uint32_t shard;
    uint8_t id_bytes;
    uint8_t kind; /* what it is, a number of the room that makes it */
    uint8_t zero[6];
} trpi_entity_envelope;
_Static_assert(sizeof(trpi_entity_envelope) == 48, "the payload behind it is 16-aligned");
#define TRPI_ENVELOPE_ID_BYTES_MAX 255u
extern trp_type trpi_entity_envelope_type;
static inline size_t
trpi_envelope_head_bytes(uint8_t id_bytes)
{
    return sizeof(trpi_entity_envelope) + (((size_t)id_bytes + 15u) & ~(size_t)15u);
}

/* A message by way of a mediator of another node: this head, the mediators' own bytes padded to 16,
 * then the payload. Between nodes it is the one form that the topic serializer of the remote room
 * knows. type 0: it carries no message, or one that cannot be read here. */
typedef struct trpi_topic_envelope {
    trp_ref mediator; /* that sends it */
    uint32_t type;    /* trp_type.number */
    uint32_t head_bytes;
    uint32_t lost; /* 1: it carries a message that cannot be read here */
    uint32_t zero;
} trpi_topic_envelope;
_Static_assert(sizeof(trpi_topic_envelope) == 32, "the payload behind it is 16-aligned");
#define TRPI_TOPIC_HEAD_BYTES_MAX 65536u
extern trp_type trpi_topic_envelope_type;
/* A trpi_carried_fn for it. */
void trpi_topic_envelope_show(const trp_type **type, const void **payload, size_t *bytes);
static inline size_t
trpi_topic_envelope_bytes(uint32_t head_bytes) /* without the payload */
{
    return sizeof(trpi_topic_envelope) + (((size_t)head_bytes + 15u) & ~(size_t)15u);
}

/* Does a message of this type carry another one, which has a serializer of its own? */
static inline bool
trpi_type_carries(const trp_type *type)
{
    return type == &trpi_parcel_type || type == &trpi_entity_envelope_type ||
           type == &trpi_topic_envelope_type;
}

/* ---- coordinated shutdown (troupe/shutdown.h) ---------------------------------------------------
 * Set the function that runs after the last phase, on the shutdown's actor, instead of stopping the
 * system. Errors: those of trp_shutdown_run. Thread: any. */
trp_err trpi_shutdown_over_set(trp_system *system, void (*fn)(void *arg), void *arg);
/* A task of the library: as trp_shutdown_add, but called on the shutdown's actor, which is on the
 * "system" dispatcher: it runs also when the default one is blocked. */
trp_err trpi_shutdown_add_own(trp_system *system, const char *phase, const char *name,
                              trp_shutdown_fn fn, void *arg);
/* Write the result of a finished phase that had tasks; index 0 is the first. False: no more yet. */
bool trpi_shutdown_report(trp_system *system, uint32_t index, char *text, size_t bytes);
/* Return the timeout of a phase. 0: there is no such phase, or the shutdown of this system was not
 * used yet. */
uint32_t trpi_shutdown_timeout_ms(trp_system *system, const char *phase);
/* Check the phases of a configuration. Errors: TRP_ECONFIG, *ret_error says why. */
trp_err trpi_shutdown_config_check(const trp_config *config, trp_config_error *ret_error);

/* Keys of the configuration that routers, the shutdown, flows and the test kit read (keys.c). */
#define TRPI_FLOW_STACK_KIB_DEFAULT 256
#define TRPI_FLOW_IDLE_STACKS_DEFAULT 1024
extern const trpi_config_part trpi_router_keys, trpi_shutdown_keys, trpi_flow_keys,
    trpi_testkit_keys;

/* Built-in types (routing_types.c). */
extern const struct trpi_type_part trpi_router_types;

#endif
