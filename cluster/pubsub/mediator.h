/* mediator.h - the mediator of one name on one node: the actor /system/pubsub[-NAME], its requests
 * and its frames; private to cluster/pubsub. The door is pubsub.h. */
#ifndef TRPI_CLUSTER_PUBSUB_MEDIATOR_H
#define TRPI_CLUSTER_PUBSUB_MEDIATOR_H

#include <pthread.h>

#include <troupe/registry.h>

#include "actor/actor.h"
#include "cluster/pubsub/audience.h"
#include "cluster/pubsub/pubsub.h"
#include "cluster/pubsub/registry.h"
#include "cluster/pubsub/route.h"
#include "cluster/pubsub/waits.h"

#define MEDIATOR_DEFAULT "default"
/* Of the registry (mediator_keys.c); no program can start or find one of this name. */
#define MEDIATOR_REGISTRY "~registry"
#define MEDIATOR_KEYS_GROUP_BYTES 8u
#define MEDIATOR_FRAMES_MAX 4096u /* waiting in the mailbox; more are dropped: they come again */
#define MEDIATOR_FRAMES_BYTES_MAX (32u << 20)
#define MEDIATOR_SHARE_BYTES 256u /* a larger payload is shared by all subscribers of a node */

enum mediator_request_kind {
    MEDIATOR_PUT = 1,
    MEDIATOR_REMOVE = 2,
    MEDIATOR_SUBSCRIBE = 3,
    MEDIATOR_UNSUBSCRIBE = 4,
    MEDIATOR_SEND = 5,
    MEDIATOR_SEND_TO_ALL = 6,
    MEDIATOR_PUBLISH = 7,
    MEDIATOR_LISTEN = 8, /* of the registry's mediator */
    MEDIATOR_UNLISTEN = 9
};

#define MEDIATOR_ASKS 0x80000000u /* flag of a publication: its sender gets a report */

/* A call of the program: this, the name, the group, 16-aligned the payload. */
typedef struct mediator_request {
    trp_ref ref;       /* subscriber, what is put, or the sender of what it carries */
    trp_ref answer_to; /* of subscribers; none: ref */
    uint32_t kind, flags;
    uint32_t name_bytes, group_bytes;
    uint32_t type, wait_ms; /* type: trp_type.number */
    uint32_t subscribers_min, timeout_ms;
} mediator_request;
_Static_assert(sizeof(mediator_request) % 16 == 0, "the payload behind it is 16-aligned");
static inline size_t
mediator_request_head_bytes(const mediator_request *request) /* without the payload */
{
    return sizeof *request +
           (((size_t)request->name_bytes + request->group_bytes + 15u) & ~(size_t)15u);
}

/* A message to one or more actors. Everything is borrowed. */
typedef struct mediator_parcel {
    trp_ref sender;
    const trp_type *type;
    const void *payload;
    size_t bytes;
} mediator_parcel;

/* A publication that awaits answers. */
typedef struct mediator_asker {
    trp_ref answer_to;
    uint32_t nodes, late; /* nodes: 1, when it was published here, too */
} mediator_asker;

/* A publication that waits for subscribers, or an acknowledgement for other nodes. */
typedef struct mediator_late_ack {
    struct mediator_late_ack *next;
    uint64_t version; /* of the registry */
    trp_ref answer_to;
    size_t bytes;
    char ack[]; /* trp_subscribe_ack */
} mediator_late_ack;

typedef struct mediator_peer { /* of the registry's index */
    trpi_node_id id;
    trp_ref ref; /* of its mediator; none: not met */
} mediator_peer;

struct mediators;
struct trp_mediator { /* freed with its system */
    struct trp_mediator *next;
    struct mediators *all;
    trp_system *system;
    trp_ref actor;
    char name[TRP_MEDIATOR_NAME_BYTES_MAX + 1];
    char role[TRP_ROLE_BYTES];
    bool is_registry;
    uint64_t life; /* of mediators of this name in this system, from 1 */
    /* Its actor has stopped, by an order from outside or because it could not start again: calls
     * are refused and peers hear that it is absent. Written once, by the actor, under all->lock. */
    _Atomic bool ended;
    _Atomic uint32_t frames_waiting;
    _Atomic uint64_t frames_bytes;            /* of these */
    _Atomic uint64_t frames_sent, bytes_sent; /* by the actor; for looks of other threads */
    /* lock: changes of the registry by the actor, looks of other threads; the actor reads without.
     */
    pthread_mutex_t lock;
    trpi_pubreg *registry;
    /* the rest is the actor's */
    trpi_audience audience;
    trpi_waits *waits;
    trpi_tallies *tallies;
    trpi_route route;
    uint64_t random;
    mediator_late_ack *acks, **acks_end;
    uint32_t acks_count;
    mediator_peer *peers;
    uint32_t peers_count, peers_room;
    trpi_buffer envelope;
    uint64_t timer_ms;
    /* of the registry's: who is told listings, when next, and what has been told of */
    trpi_audience listeners;
    uint64_t listings_ms, listings_changes;
};

typedef struct mediators { /* of one system */
    trp_system *system;
    pthread_mutex_t lock;       /* the list, remote, and what stands here */
    struct trpi_remote *remote; /* NULL: no cluster, or not any more */
    trp_mediator *list;         /* also those that have ended */
    uint32_t count;             /* of those that have not, without the registry's */
    char role[TRP_ROLE_BYTES];  /* of the default one, as configured */
    trpi_pubreg_options options;
} mediators;

extern trp_type mediator_request_type, mediator_frame_type, mediator_tick_type;
extern const trp_behaviour mediator_behaviour;

uint64_t mediator_now_ms(const trp_mediator *m);
/* A trpi_carried_fn: what a request or an envelope carries. */
void mediator_loss_show(const trp_type **type, const void **payload, size_t *bytes);
trpi_pubsub_key mediator_key(trpi_pubsub_kind kind, const void *name, uint32_t name_bytes,
                             const void *group, uint32_t group_bytes);

/* ---- mediator_start.c ------------------------------------------------------------------------ */
/* The mediators of a system; made at the first call. */
trp_err mediators_of(trp_system *system, mediators **ret_all);
/* false: there is no cluster (any more). */
bool mediators_address(mediators *all, trpi_address *ret_address);
/* Find one that has not ended by its name; under all->lock. */
trp_mediator *mediator_find(const mediators *all, const char *name);

/* That of the registry; made at the first call. */
trp_err mediators_registry(trp_system *system, trp_mediator **ret_mediator);

/* ---- mediator_keys.c: the registry's --------------------------------------------------------- */
void mediator_keys_group(trp_ref ref, uint8_t *ret_bytes);
/* The actors under a topic; returns how many there are, also beyond refs_max. The actor's, or under
 * m->lock. */
size_t mediator_keys_read(trp_mediator *m, const trpi_pubsub_key *topic, trp_ref *refs,
                          size_t refs_max);
/* Call fn with a topic of the registry as a person reads it. */
void mediator_keys_show(const trpi_pubreg_entry *entry,
                        void (*fn)(void *arg, const trp_topic_info *info), void *arg);
/* The rest is the actor's. */
void mediator_keys_listen(trp_mediator *m, trp_ctx *ctx, const mediator_request *request,
                          const char *name);
void mediator_keys_register_failed(trp_mediator *m, const mediator_request *request,
                                   const char *name, trp_err err);
void mediator_keys_ended(trp_mediator *m, trp_ctx *ctx, trp_ref ref);
void mediator_keys_step(trp_mediator *m, trp_ctx *ctx);
uint64_t mediator_keys_wake_ms(const trp_mediator *m); /* UINT64_MAX: never */

/* ---- mediator_cluster.c: the actor ----------------------------------------------------------- */
/* A transport thread. arg: mediators. */
void mediators_frame_arrived(void *arg, const trpi_node_id *from, const uint8_t *bytes,
                             size_t count, uint64_t arrived_ns);
void mediator_frame(trp_mediator *m, trp_ctx *ctx, const void *note, size_t bytes);
void mediator_members(trp_mediator *m, trp_ctx *ctx);
void mediator_actions(trp_mediator *m, trp_ctx *ctx);
/* Return whether the mediator of a node of the registry can be told: peers[index] is set. */
bool mediator_is_met(trp_mediator *m, uint32_t index);

/* ---- mediator_deliver.c: the actor ----------------------------------------------------------- */
/* Tell all who sit there; returns how many took it. A message that is refused is a dead
 * letter. */
uint64_t mediator_tell_seats(trp_mediator *m, trp_ctx *ctx, trpi_seats *seats,
                             const mediator_parcel *parcel);
void mediator_tell_missed(trp_mediator *m, trp_ctx *ctx, trpi_seats *seats, uint64_t count);
void mediator_dead(trp_mediator *m, const mediator_parcel *parcel, trp_ref recipient,
                   trp_dead_reason reason);
void mediator_publish(trp_mediator *m, trp_ctx *ctx, const trpi_pubsub_key *topic,
                      const mediator_parcel *parcel, const mediator_asker *asker,
                      uint32_t timeout_ms);
void mediator_send(trp_mediator *m, trp_ctx *ctx, const trpi_pubsub_key *path, uint32_t flags,
                   const mediator_parcel *parcel);
void mediator_send_to_all(trp_mediator *m, trp_ctx *ctx, const trpi_pubsub_key *path,
                          uint32_t flags, const mediator_parcel *parcel);
/* From another node's mediator. */
void mediator_envelope(trp_mediator *m, trp_ctx *ctx, const trp_msg *msg);
void mediator_report(trp_mediator *m, trp_ctx *ctx, const mediator_asker *asker, uint64_t delivered,
                     uint32_t answered, uint32_t silent);

#endif
