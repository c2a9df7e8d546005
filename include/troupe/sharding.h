/* troupe/sharding.h - entities: actors with a name that live once in the cluster, wherever there is
 * room, and are found by that name alone.
 *
 * A type of entities is started on each node with the same name, number of shards and extractor
 * version. An entity is a value {type, id}; its id picks one of the shards, and each shard lives on
 * one node. A message goes to the node of the shard and starts the entity there, if it does not
 * live yet. On a system without a cluster all shards are on that system.
 *
 *     static trp_err order_receive(trp_ctx *ctx, void *state, const trp_msg *msg);
 *     static const trp_behaviour order = TRP_BEHAVIOUR_INIT("order", order_state, order_receive);
 *
 *     trp_sharding_options options = TRP_SHARDING_OPTIONS_INIT;
 *     options.type = "order";
 *     options.behaviour = &order;
 *     err = trp_sharding_start(system, &options, why, sizeof why);
 *
 *     trp_entity entity = trp_entity_of(trp_entity_type("order"), "4711", 4);
 *     trp_entity_tell(ctx, &entity, &order_add_type, &add, sizeof add);
 *
 * An entity with a persistent behaviour (troupe/persistence.h) has the persistence id "TYPE|ID",
 * where bytes of the id that are no text are %XX; one of more than 191 bytes so written has no
 * place in the journal, and what it is told is a dead letter (too large). Its events bear the epoch
 * of its shard, which is claimed once for all entities of it: after a shard has moved, no event of
 * its former home is stored. Until the claim is done, messages wait.
 *
 * Messages of one sender to one entity arrive in the order in which they were told, also while the
 * entity is passivated and starts again. They arrive at most once: what a node that crashes has, or
 * a connection that breaks, is lost (troupe/reliable_proxy.h).
 */
#ifndef TROUPE_SHARDING_H
#define TROUPE_SHARDING_H

#include <string.h>

#include <troupe/actor.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_ENTITY_ID_BYTES_MAX 119
#define TRP_ENTITY_TYPE_BYTES_MAX 63
#define TRP_SHARDING_TYPES_MAX 64 /* of one system */
#define TRP_SHARDING_SHARDS_DEFAULT 1000u
#define TRP_SHARDING_SHARDS_MAX 100000u
#define TRP_SHARDING_REBALANCE_MS_DEFAULT 10000u
#define TRP_SHARDING_PASSIVATE_MS_DEFAULT 120000u
#define TRP_SHARDING_BUFFER_BYTES_DEFAULT 16777216u
#define TRP_SHARDING_BACKOFF_MIN_MS_DEFAULT 200u
#define TRP_SHARDING_BACKOFF_MAX_MS_DEFAULT 10000u
#define TRP_ENTITY_PATH_BYTES_MAX 512 /* of trp_entity_path(), with its NUL */

/* The name of an entity. A plain value: copy it, compare it, send it in a message. */
typedef struct trp_entity {
    uint64_t type;    /* trp_entity_type() of the type's name: the same on each node */
    uint8_t id_bytes; /* 1 to TRP_ENTITY_ID_BYTES_MAX */
    char id[TRP_ENTITY_ID_BYTES_MAX]; /* any bytes */
} trp_entity;

/* Return the number of a type of entities: the 64-bit XXH64 of its name.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    FUTURE-20.  Since: 0.2 */
TRP_API uint64_t trp_entity_type(const char *name);

/* Write the name of an entity; an id of no bytes or of too many is one that nobody has (id_bytes
 * 0). Faster than to copy what trp_entity_of() returns. */
static inline void
trp_entity_set(trp_entity *entity, uint64_t type, const void *id, size_t id_bytes)
{
    size_t bytes = id_bytes <= TRP_ENTITY_ID_BYTES_MAX ? id_bytes : 0;

    entity->type = type;
    entity->id_bytes = (uint8_t)bytes;
    memcpy(entity->id, id, bytes);
    memset(entity->id + bytes, 0, sizeof entity->id - bytes);
}

static inline trp_entity
trp_entity_of(uint64_t type, const void *id, size_t id_bytes)
{
    trp_entity entity;

    trp_entity_set(&entity, type, id, id_bytes);
    return entity;
}

/* The recipe of the arguments of an entity. Write the payload of options.args_type to args. */
typedef trp_err (*trp_entity_args_fn)(void *arg, const trp_entity *entity, void *args);
/* Pick the shard of an id: 0 to shards - 1, the same on each node and in each version. */
typedef uint32_t (*trp_entity_shard_fn)(const void *id, size_t id_bytes, uint32_t shards);

/* How a shard without a home gets one, and which shards move when nodes come. Source: FUTURE-06,
 * -07, -10. */
typedef enum trp_sharding_allocation {
    TRP_ALLOCATION_LEAST_SHARDS = 0, /* the node with the fewest */
    TRP_ALLOCATION_METRICS = 1,      /* the fewest for its weight, of its figures (metrics.h) */
    TRP_ALLOCATION_FIRST_FIT = 2,    /* round the ring of nodes, in the order of addresses */
    TRP_ALLOCATION_USER = 3          /* the program's: options.allocate */
} trp_sharding_allocation;

#define TRP_ALLOCATION_NONE UINT32_MAX
#define TRP_ALLOCATION_ANSWER_MS_DEFAULT 5000u

/* A node that hosts entities of the type, as an allocation sees it. Borrowed during the call. */
typedef struct trp_allocation_region {
    const char *address;     /* of the node, as text */
    uint64_t uid;            /* of its incarnation */
    const char *app_version; /* of its member */
    uint32_t shards;         /* that it has, or will have */
    uint32_t weight;         /* 1 to 1001, by what it has left (metrics.h, "mix"); 0: not known */
    uint32_t may_get; /* 1: it may be given shards. 0: it leaves, or is of an older version */
    uint32_t zero;
} trp_allocation_region;

/* A question to the program, and room for its answer. All arrays are the library's. */
typedef struct trp_allocation_round {
    size_t size;
    const char *type;
    const trp_allocation_region *regions; /* in the order of addresses */
    uint32_t regions_count;
    uint32_t shards;        /* of the type */
    const uint32_t *homes;  /* [shards]: index of regions; TRP_ALLOCATION_NONE: none, or it moves */
    const uint32_t *wanted; /* [wanted_count]: shards that need a home now */
    uint32_t wanted_count;
    uint32_t moves_max;     /* shards that may move in this round; 0: none */
    uint32_t *wanted_homes; /* answer, [wanted_count]: index of regions that may_get;
                               TRP_ALLOCATION_NONE, as at first: the one with the fewest shards */
    uint32_t *moves;        /* answer, [moves_max]: shards that give up their home. Their new ones
                               are asked for in a later round, when they have stopped */
    uint32_t moves_count;   /* answer; 0 at first */
    uint32_t zero;
} trp_allocation_round;

/* Say where shards go. It is called on the node of the type's coordinator (the oldest member of
 * the role), as soon as a shard needs a home, and once in rebalance_ms (moves_max > 0); one call
 * at a time. It runs in an actor of its own and may block: shards that need a home wait for the
 * answer, and nothing else does. After TRP_ALLOCATION_ANSWER_MS_DEFAULT without one, the nodes
 * with the fewest shards get them, and an answer that comes later is not used. A wrong answer (no
 * such region, one that may not get, no such shard, one without a home) is refused, and logged; a
 * shard that needs a home goes to the node with the fewest then, and none moves. A node that has
 * gone since the question was asked is not used. Where the coordinator's node does not start the
 * type with a function, the fewest shards decide, and none moves.
 *
 * Ownership: borrows round and what it points to during the call.
 * Thread:    any of the system's, as the turn of an actor.
 * Source:    FUTURE-10.  Since: 0.2 */
typedef void (*trp_allocation_fn)(void *arg, trp_allocation_round *round);

/* How a shard moves. Source: FUTURE-11 to -16. */
typedef enum trp_sharding_hand_off {
    /* 2a: the old home runs until no node sends there; else it stops at once, and what arrives goes
     * back to its sender's node, which keeps it in order (2b) */
    TRP_HAND_OFF_KEEPS_ACTIVE = 1,
    TRP_HAND_OFF_UNORDERED = 2, /* 3a: a node sends to the new home without the old one's word */
    /* 2c: from the moment a node learns that the shard moves, until it knows the new home, what is
     * told there, or comes there, is a dead letter (shard-moves): nothing waits. An entity handles
     * all that was told to it before. Not with KEEPS_ACTIVE. A shard whose node is lost does not
     * move: messages wait for its new home */
    TRP_HAND_OFF_DROPS = 4,
    /* 4b: what reaches a former home, where the shard has ended, is a dead letter (shard-moves), in
     * place of going back to its sender's node */
    TRP_HAND_OFF_DROPS_LATE = 8
} trp_sharding_hand_off;

typedef struct trp_sharding_options {
    size_t size;
    const char *type; /* its name, 1 to TRP_ENTITY_TYPE_BYTES_MAX letters, digits, '-', '_', '.' */
    /* The behaviour of an entity. NULL: no entity lives here, messages go to nodes that have it */
    const trp_behaviour *behaviour;
    /* Arguments, made from the id when an entity starts; kept for a restart, which costs some 500
     * bytes an entity. NULL: none; an entity asks trp_entity_self() */
    trp_entity_args_fn args;
    const trp_type *args_type; /* of fixed size */
    void *arg;                 /* passed to args */
    uint32_t shards;           /* 0: TRP_SHARDING_SHARDS_DEFAULT */
    uint32_t extractor_version;
    trp_entity_shard_fn shard; /* NULL: by the XXH64 of the id */
    const char *role;          /* entities live on members with this role; NULL: on all */
    /* Told to an entity that is to end: it stops itself then (trp_stop). NULL: a poison pill */
    const trp_type *stop_type;
    const void *stop; /* borrowed until the system ends */
    size_t stop_bytes;
    const char *dispatcher; /* of entities; NULL: "default" */
    /* For failed entities. NULL: a failed entity stops, and starts again for the messages that wait
     * for it, after a back-off */
    const trp_strategy *strategy;
    uint32_t backoff_min_ms, backoff_max_ms; /* 0: TRP_SHARDING_BACKOFF_..._DEFAULT */
    /* An entity that was told nothing by its name for so long is passivated. 0:
     * TRP_SHARDING_PASSIVATE_MS_DEFAULT; TRP_OFF: never */
    uint32_t passivate_after_ms;
    uint32_t entities_max; /* on this node; more: those told longest ago are passivated. 0: none */
    uint32_t buffer_bytes_max; /* of messages that wait on this node for entities of this type; what
                                  is told beyond it is a dead letter (entity-buffer) */
    /* 1: entities, or actors below them, have state in the journal: a shard's permission to write
     * is claimed before they start. So it is for a persistent behaviour, whatever this says */
    uint32_t persistent;
    /* 1: an entity that has started is noted in the journal before it handles a message, and lives
     * from then on, also without messages: it is started again after its failure or its end, with
     * its node, and wherever its shard goes. It is forgotten when it is passivated by hand and
     * nothing was told to it meanwhile. There is no passivation by time or number then. The number
     * of shards must stay as it was */
    uint32_t remember_entities;
    /* Where shards live: all nodes should say the same. See trp_sharding_allocation */
    uint32_t allocation;
    /* Shards that move in one round of rebalancing: at most so many, 0: 100, and at most so many of
     * a thousand, 0: 100 */
    uint32_t rebalance_max, rebalance_permille;
    uint32_t rebalance_ms; /* period; 0: TRP_SHARDING_REBALANCE_MS_DEFAULT; TRP_OFF: by order */
    uint32_t members_min;  /* so many nodes have started the type before any shard is given out */
    uint32_t hand_off;     /* bits of trp_sharding_hand_off; 0: in order, and nothing is lost */
    uint32_t reminders;    /* 1: its entities may have reminders (trp_reminder_set) */
    trp_allocation_fn allocate; /* of TRP_ALLOCATION_USER, and only of that */
    void *allocate_arg;         /* borrowed until the system ends */
} trp_sharding_options;
#define TRP_SHARDING_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(trp_sharding_options), NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL,  \
            0, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL                    \
    }

/* Start a type of entities on this node. why gets a sentence when it is refused.
 *
 * Ownership: borrows behaviour, arg, stop, strategy until the system ends; borrows the rest.
 * Errors:    TRP_EINVAL   an option is out of range
 *            TRP_EEXIST   the type is started already
 *            TRP_ELIMIT   TRP_SHARDING_TYPES_MAX types are started
 *            TRP_ENOTYPE  stop_type or args_type is not registered
 *            TRP_ESTATE   cluster.downing.stable-after is too short for entities that live once; or
 *                         the entities have state, and the system has no journal
 *            TRP_ECONFIG  they have state, and the journal is this node's alone
 *                         (persistence.local-store-is-enough); or the type is started with other
 *                         shards or another extractor_version on other members: why says which. A
 *                         node that joins later is refused then: its type ends, and `troupe node`
 *                         leaves and ends with 78
 *            TRP_ENOMEM   out of memory
 *            TRP_ECLOSED  the system is stopping
 * Thread:    any; may block until the type's coordinator has answered, for 5 s at most; in a
 *            behaviour it does not wait.
 * Source:    CONTRIB-48, FUTURE-20.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_sharding_start(trp_system *system,
                                                  const trp_sharding_options *options, char *why,
                                                  size_t why_bytes);

/* Tell an entity, which starts if it does not live. A type that is not started on this node makes a
 * dead letter.
 *
 * Ownership: borrows entity and payload.
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    CONTRIB-48.  Since: 0.2 */
TRP_API void trp_entity_tell(trp_ctx *ctx, const trp_entity *entity, const trp_type *type,
                             const void *payload, size_t bytes);

/* Tell an entity from a thread that is no actor; nobody is the sender.
 *
 * Ownership: borrows entity and payload.
 * Errors:    TRP_EINVAL   system, entity or type is invalid
 * Thread:    any; takes a lock for a moment.
 * Source:    CONTRIB-48.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_system_entity_tell(trp_system *system, const trp_entity *entity,
                                                      const trp_type *type, const void *payload,
                                                      size_t bytes);

/* Tell an entity a message that was made before (trp_msg_new).
 *
 * Ownership: takes msg, always.
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    CONTRIB-48.  Since: 0.2 */
TRP_API void trp_entity_send(trp_ctx *ctx, const trp_entity *entity, trp_msg *msg);

/* Tell an entity the present message, with its sender.
 *
 * Ownership: borrows entity and msg.
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    CONTRIB-48.  Since: 0.2 */
TRP_API void trp_entity_forward(trp_ctx *ctx, const trp_entity *entity, const trp_msg *msg);

/* Ask an entity: as trp_ask.
 *
 * Ownership: borrows entity and payload; arg is passed through.
 * Errors:    TRP_EINVAL   fn is NULL, timeout_ms is 0, or entity is invalid
 *            TRP_ENOENT   its type is not started on this node
 *            TRP_ENOTYPE  type is not registered
 *            TRP_ENOMEM   out of memory
 *            TRP_ELIMIT   no slot is left for the promise
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    CONTRIB-48.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_entity_ask(trp_ctx *ctx, const trp_entity *entity,
                                              const trp_type *type, const void *payload,
                                              size_t bytes, uint32_t timeout_ms, trp_reply_fn fn,
                                              void *arg);

/* Ask an entity and wait for the reply: as trp_system_ask.
 *
 * Ownership: gives *ret_reply (free with trp_msg_free).
 * Errors:    TRP_EINVAL   entity or type is invalid
 *            TRP_ENOENT   its type is not started on this node; TRP_ENOTYPE  type is not registered
 *            TRP_ETIMEDOUT  no reply in time; TRP_EUNHANDLED  it did not handle the message
 *            TRP_ESTATE   called from a behaviour; TRP_ECLOSED  the system is stopping
 *            TRP_ENOMEM   out of memory
 * Thread:    any; may block until the reply or the timeout; never from a behaviour.
 * Source:    CONTRIB-48.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_system_entity_ask(trp_system *system, const trp_entity *entity,
                                                     const trp_type *type, const void *payload,
                                                     size_t bytes, uint32_t timeout_ms,
                                                     trp_msg **ret_reply);

/* Find out which entity the running actor is.
 *
 * Errors:    TRP_ENOENT   it is none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    CONTRIB-48.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_entity_self(trp_ctx *ctx, trp_entity *ret_entity);

/* Passivate the running entity: it gets its stop message behind all that was told to it so far.
 * Later messages wait, and start it again. One that is remembered is forgotten, if nothing waits
 * for it when it has ended.
 *
 * Errors:    TRP_ENOENT   the running actor is no entity
 *            TRP_ENOMEM   out of memory
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    CONTRIB-48.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_entity_passivate(trp_ctx *ctx);

/* ---- reminders -------------------------------------------------------------------------------
 * A reminder is a message to an entity at a time that outlives the entity, its node and its shard's
 * home: it is in the journal, and starts the entity. Its type of entities has reminders = 1 on all
 * nodes. One that became due while nobody ran is told as soon as the shard is open again; of one
 * with a period, what was missed comes once.
 *
 * It is told at least once: it counts as told when the entity has handled it (a persistent entity:
 * when what it persisted by trp_persist() for it is stored as well, and the entity has not failed
 * meanwhile), and until the journal has noted that, a crash or a hand-off tells it again. An entity
 * that must not do a thing twice keeps what it has done, by the reminder's content. */
#define TRP_REMINDER_NAME_BYTES_MAX 127
#define TRP_REMINDER_BYTES_MAX 65536u /* of its message, as it is stored */
#define TRP_REMINDER_PERIOD_MS_MIN 100u
#define TRP_REMINDERS_MAX 64 /* of one entity */

typedef struct trp_reminder {
    size_t size;
    const char *name; /* one of the entity's that has this name is replaced */
    uint64_t at_ms;   /* wall clock, since 1970; 0: in_ms from now */
    uint64_t in_ms;
    uint64_t period_ms; /* 0: once */
    const trp_type *type;
    const void *payload;
    size_t bytes; /* ignored for types of fixed size */
} trp_reminder;
#define TRP_REMINDER_INIT                                                                          \
    {                                                                                              \
        sizeof(trp_reminder), NULL, 0, 0, 0, NULL, NULL, 0                                         \
    }

/* The type of the answer to trp_reminder_list(). */
TRP_API extern trp_type trp_reminders_type;

typedef struct trp_reminder_view { /* of one in a list; borrowed from the message */
    const char *name;
    const char *type; /* name of its message's type */
    uint64_t at_ms;   /* when it is due next */
    uint64_t period_ms;
} trp_reminder_view;

/* Set a reminder of an entity, from any node that has its type. fn (NULL: nobody wants to know) is
 * called as of trp_ask when it is in the journal, or with the error: TRP_ESTATE (its type has no
 * reminders), TRP_ELIMIT (TRP_REMINDERS_MAX, or the shard's memory), TRP_ETIMEDOUT (it may be set
 * all the same), TRP_EJOURNAL and others of the journal.
 *
 * Ownership: borrows entity, reminder and its payload; arg is passed through.
 * Errors:    TRP_EINVAL    a field is missing or out of range
 *            TRP_EMSGSIZE  its message is larger than TRP_REMINDER_BYTES_MAX
 *            TRP_ENOENT    the type of the entity is not started on this node
 *            TRP_ENOTYPE   type is not registered, or has no form that can be stored
 *            TRP_ENOMEM    out of memory
 *            TRP_ELIMIT    no slot is left for the promise
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    docs/adr, decision 341.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_reminder_set(trp_ctx *ctx, const trp_entity *entity,
                                                const trp_reminder *reminder, uint32_t timeout_ms,
                                                trp_reply_fn fn, void *arg);

/* Cancel a reminder. It may be on its way to the entity. One that is not there is TRP_ENOENT, told
 * to fn.
 *
 * Ownership: borrows entity and name; arg is passed through.
 * Errors:    as trp_reminder_set
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    docs/adr, decision 341.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_reminder_cancel(trp_ctx *ctx, const trp_entity *entity,
                                                   const char *name, uint32_t timeout_ms,
                                                   trp_reply_fn fn, void *arg);

/* Ask for the reminders of an entity: fn gets a message of trp_reminders_type, read by
 * trp_reminder_next().
 *
 * Ownership: borrows entity; arg is passed through.
 * Errors:    as trp_reminder_set
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    docs/adr, decision 341.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_reminder_list(trp_ctx *ctx, const trp_entity *entity,
                                                 uint32_t timeout_ms, trp_reply_fn fn, void *arg);

/* Set a reminder, and wait until it is in the journal.
 *
 * Ownership: borrows entity, reminder and its payload.
 * Errors:    those of trp_reminder_set, and those that it tells fn
 *            TRP_ESTATE   called from a behaviour; TRP_ECLOSED  the system is stopping
 * Thread:    any; may block until the answer or the timeout; never from a behaviour.
 * Source:    docs/adr, decision 341.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_system_reminder_set(trp_system *system, const trp_entity *entity,
                                                       const trp_reminder *reminder,
                                                       uint32_t timeout_ms);

/* Cancel a reminder, and wait until it is out of the journal.
 *
 * Ownership: borrows entity and name.
 * Errors:    TRP_ENOENT  there is none of this name; and those of trp_system_reminder_set
 * Thread:    any; may block until the answer or the timeout; never from a behaviour.
 * Source:    docs/adr, decision 341.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_system_reminder_cancel(trp_system *system,
                                                          const trp_entity *entity,
                                                          const char *name, uint32_t timeout_ms);

/* List the reminders of an entity.
 *
 * Ownership: borrows entity; gives *ret_list (free with trp_msg_free).
 * Errors:    as trp_system_reminder_set
 * Thread:    any; may block until the answer or the timeout; never from a behaviour.
 * Source:    docs/adr, decision 341.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_system_reminder_list(trp_system *system,
                                                        const trp_entity *entity,
                                                        uint32_t timeout_ms, trp_msg **ret_list);

/* Read the next reminder of a list; *position is 0 at first. Returns 0 behind the last one.
 *
 * Ownership: borrows list; *ret_view points into it.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    docs/adr, decision 341.  Since: 0.2 */
TRP_API int trp_reminder_next(const trp_msg *list, size_t *position, trp_reminder_view *ret_view);

/* Write the path of an entity, "/cluster/TYPE/ID", which names no host. Bytes of the id other than
 * letters, digits and "-_.~" are written as %XX. Returns how many bytes it takes, without the NUL;
 * 0: the type is not started here.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    FUTURE-20.  Since: 0.2 */
TRP_API size_t trp_entity_path(trp_system *system, const trp_entity *entity, char *buffer,
                               size_t bytes);

/* Read the path of an entity.
 *
 * Errors:    TRP_EINVAL   it is no such path, or its type or id is too long
 * Thread:    any; lock-free.
 * Source:    FUTURE-20.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_entity_parse(const char *path, trp_entity *ret_entity);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_SHARDING_H */
