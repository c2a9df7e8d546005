/* region.h - the actor of one type of entities on this node, and what tellers see of it.
 *
 * The room's lock order: index.lock is a leaf; drains.lock is a leaf. No callback runs with either.
 */
#ifndef TRPI_CLUSTER_SHARDING_REGION_H
#define TRPI_CLUSTER_SHARDING_REGION_H

#include <troupe/sharding.h>

#include "cluster/sharding/entity_cache.h"
#include "cluster/sharding/entity_table.h"
#include "cluster/sharding/shard_frame.h"
#include "cluster/sharding/shard_store.h"
#include "cluster/sharding/sharding.h"
#include "pattern/pattern.h"

/* An entry's life, told by the region. Tellers reach it directly only while target is a ref. */
enum trpi_entry_state {
    TRPI_ENTRY_ABSENT = 0,    /* no incarnation; it starts when backoff is over */
    TRPI_ENTRY_RUNNING = 1,   /* messages are sent to it, by tellers or by the region */
    TRPI_ENTRY_CLOSING = 2,   /* target is NONE; waits until no teller has an older one */
    TRPI_ENTRY_STOPPING = 3,  /* its stop message stands behind all that was told to it */
    TRPI_ENTRY_ENDED = 4,     /* waits until no teller has its ref */
    TRPI_ENTRY_DRAINING = 5,  /* waits until its mailbox is empty */
    TRPI_ENTRY_NOTING = 6,    /* no incarnation; it starts when the journal has it */
    TRPI_ENTRY_FORGETTING = 7 /* no incarnation; it is forgotten when the journal has done so */
};

/* Things that the region does: the payload of its messages. Owned by the message, or by a queue. */
enum trpi_request_kind {
    TRPI_REQUEST_MISS = 1,      /* msg for {hash, id}; it is counted in the shard's misses */
    TRPI_REQUEST_LEFT = 2,      /* msg was in the mailbox of entry's incarnation when that ended */
    TRPI_REQUEST_ENDED = 3,     /* entry's incarnation has ended */
    TRPI_REQUEST_GRACE = 4,     /* no teller has what was closed before */
    TRPI_REQUEST_DRAINED = 5,   /* the mailbox of entry's incarnation is empty */
    TRPI_REQUEST_PASSIVATE = 6, /* entry, by hand */
    TRPI_REQUEST_RETURNED = 7,  /* the node that msg was sent to did not take it */
    TRPI_REQUEST_FENCE_ASKED = 8, /* origin wants an answer behind all that came from it */
    TRPI_REQUEST_FENCED = 9,      /* origin has answered a fence of shard */
    /* of the keeper, for shard */
    TRPI_REQUEST_OWN = 10,
    TRPI_REQUEST_BUFFER = 11, /* tell home no more */
    TRPI_REQUEST_STOP = 12,   /* end its entities */
    TRPI_REQUEST_STOP_NOW = 13,
    TRPI_REQUEST_HOME = 14,    /* it lives at home */
    TRPI_REQUEST_FENCE = 15,   /* ask home's gate, when a grace period has passed */
    TRPI_REQUEST_OPEN = 16,    /* of the region itself: ask for all shards from shard on */
    TRPI_REQUEST_RESTART = 17, /* start remembered entities */
    TRPI_REQUEST_FIRED = 18,   /* a reminder was handled; id and name, epoch: its time */
    TRPI_REQUEST_UNFIRED = 19, /* it got lost on its way */
    TRPI_REQUEST_MOVES = 20,   /* of the keeper: as BUFFER, and the home hands shard over */
    TRPI_REQUEST_DROPPED = 21  /* a gate made a dead letter of a message for shard */
};

#define TRPI_REQUEST_ATTACHED 1u /* the message that brought it lives */
#define TRPI_REQUEST_KEPT 2u     /* it was taken out of that */
#define TRPI_REQUEST_OVER 4u

typedef struct trpi_region trpi_region;
typedef struct trpi_request {
    struct trpi_request *next;
    trp_system *system;
    trp_msg *msg; /* owned; NULL: none */
    trpi_entry *entry;
    uint64_t hash;
    size_t bytes;               /* what it counts in a buffer */
    struct trpi_home *home;     /* HOME, FENCE: owned */
    struct trpi_request *fired; /* MISS: a reminder; told when its entity has handled it */
    trpi_region *region;        /* FIRED */
    trp_ref origin;             /* the gate of the node that sent it; none: it is of this node */
    uint64_t epoch;             /* with origin: the one that the sender knew */
    uint32_t shard;
    uint8_t kind, id_bytes;
    _Atomic uint8_t marks; /* request-O2 */
    char id[];
} trpi_request;

typedef struct trpi_request_queue {
    trpi_request *first, *last;
    uint32_t count;
} trpi_request_queue;

/* Messages for an entry that is not open. Region. */
typedef struct trpi_entry_wait {
    trpi_entry *entry;
    trpi_request_queue front, back; /* front: what reached the incarnation that has ended */
    struct trpi_entry_wait *next_closing, *next_opening, *next_later; /* in lists */
    bool is_closing, is_opening, is_later;
    bool closed;       /* a grace period has passed since target was set to NONE */
    uint64_t start_ms; /* ABSENT: not before */
} trpi_entry_wait;

/* Where a shard of another node is told. Retired when it has moved. */
typedef struct trpi_home {
    trp_ref gate;
    uint64_t epoch;
} trpi_home;

/* Where a message came from, if that was another node. */
typedef struct trpi_origin {
    trp_ref gate;
    uint64_t epoch; /* of the owner that the node knew */
} trpi_origin;

/* trpi_shard.route: REGION, LOCAL, OPENING, or a trpi_home */
#define TRPI_ROUTE_REGION ((uintptr_t)0)
#define TRPI_ROUTE_LOCAL ((uintptr_t)1)
#define TRPI_ROUTE_OPENING ((uintptr_t)2)

enum trpi_shard_state {
    TRPI_SHARD_UNKNOWN = 0, /* messages wait; the keeper was asked if there are any */
    TRPI_SHARD_OWN = 1,
    TRPI_SHARD_STOPPING = 2, /* own; its entities end, messages wait */
    TRPI_SHARD_AWAY = 3,     /* at home */
    TRPI_SHARD_OPENING = 4   /* own, and its store is not open yet: messages wait */
};

/* A shard's store, from the first try to open it until it is given up. Region. */
typedef struct trpi_shard_keep {
    struct trpi_region *region;
    trpi_shard_store *store; /* NULL: the next try is at open_ms */
    trp_journal_op *op;      /* under way; NULL: none */
    struct trpi_shard_keep *next_read;
    uint64_t open_ms;
    uint32_t number;              /* of the shard */
    uint32_t read_bytes;          /* of op, reserved */
    uint8_t tries;                /* that have failed, in a row */
    bool reads_later;             /* op is in region->reads */
    struct trpi_remind_ask *asks; /* orders of reminders that wait for the journal */
} trpi_shard_keep;

typedef struct trpi_shard {
    _Alignas(64) _Atomic uintptr_t route;
    trpi_entry_table entries;
    _Atomic uint32_t misses; /* orders on their way to the region; region-O1 */
    uint8_t state;           /* region, as all below */
    bool asked;              /* the keeper knows that messages wait */
    /* route was set to REGION: until a grace period has passed, which has begun; since */
    bool closing, closing_now;
    bool wants_stop, stops; /* STOPPING: its entities are to be told, and were */
    _Atomic uint64_t epoch; /* OWN: written before route, for those that deliver for other nodes */
    trpi_home *home;        /* AWAY */
    trpi_home *fence;       /* its gate is to be asked, when closing has ended; NULL: none */
    uint64_t told_epoch;    /* of the home that messages were passed on to last; 0: none yet */
    trpi_request_queue returned, waiting; /* what came back is before what waits */
    trpi_entry_wait *opening;             /* RUNNING, but target is NONE */
    bool route_opening;                   /* AWAY, but route is REGION */
    bool lost;                            /* STOPPING: because its store is lost */
    bool drops;                           /* UNKNOWN, STOPPING: what comes is a dead letter (2c) */
    bool remember_again;                  /* not all entries that restart were made */
    bool misplaced;                       /* its store has what belongs to other shards */
    uint32_t restarts, restart_place,
        restart_places;    /* entries with restarts; where to look next */
    trpi_shard_keep *keep; /* NULL: none is open or being opened */
    _Atomic uint64_t
        writes_as; /* epoch of the journal, for entities that start; release, acquire */
} trpi_shard;

#define TRPI_CLOCK_RING 9

/* region_move.c, as the region's other files call it. Thread: the region's. */
#define TRPI_MOVE_TOKEN UINT64_C(1) /* a bit of the token of an effect: it is a move's */
typedef struct trpi_region_mover {
    /* The shard's store is open: hand what belongs to other shards to these. */
    void (*open)(trp_ctx *ctx, trpi_region *region, uint32_t number);
    void (*tick)(trp_ctx *ctx, trpi_region *region);
    void (*effect)(trp_ctx *ctx, const trpi_shard_keep *keep, const trpi_shard_effect *effect);
    /* The shard's store is given up. */
    void (*abandon)(trpi_region *region, uint32_t number);
    void (*free)(trpi_region *region); /* the actor has ended */
} trpi_region_mover;
extern const trpi_region_mover trpi_region_mover_own;

struct trpi_region {
    struct trpi_sharding *sharding;
    trp_system *system;
    uint64_t type; /* XXH64 of name */
    char name[TRP_ENTITY_TYPE_BYTES_MAX + 1];
    trp_sharding_options options; /* defaults filled in */
    trpi_sharding_settings settings;
    trp_behaviour behaviour; /* of the region's actor */
    trp_strategy strategy;
    trp_ref actor;
    _Atomic bool closed;                /* the actor has ended: orders are dropped */
    _Atomic uint32_t clock;             /* of trpi_entry.used; relaxed */
    _Atomic(trpi_entity_cache *) cache; /* NULL: none yet */
    trpi_shard *shards;
    /* the actor's */
    uint32_t entities;                   /* entries */
    _Atomic uint32_t live, waiting_msgs; /* for status; relaxed */
    size_t buffered_bytes;
    trpi_entry_wait *closing_next, *closing_now; /* wait for a grace period */
    trpi_entry_wait *later;                      /* ABSENT, and their back-off is not over */
    uint32_t shards_closing;                     /* with closing */
    bool grace_runs, grace_wanted;
    _Atomic bool grace_called;   /* grace_over() has run: it comes no more */
    bool free_after_grace;       /* the system is being freed: grace_over() comes, and frees it */
    _Atomic uint32_t shards_own; /* for status; relaxed */
    uint32_t sweep_shard, sweep_slices, sweep_slice, sweep_ms;
    uint32_t ring[TRPI_CLOCK_RING], ring_at; /* clock at the last sweeps */
    bool keeps;                              /* a shard has a store; constant, as the next */
    bool remembers;                          /* what the store has is read, and added to */
    bool keeps_stuck;                        /* something was not done for lack of memory */
    uint32_t keeps_later;                    /* whose next try is at open_ms */
    uint64_t keeps_logged_ms;                /* 0: no store has failed to open */
    _Atomic uint32_t keeps_failed;           /* that could not be opened yet; for status; relaxed */
    uint32_t restarts, restart_shard;        /* entries with restarts; where to look next */
    uint64_t restart_cost;                   /* of an entity, in bytes; constant */
    _Atomic uint64_t restarting_bytes;       /* of those that recover */
    _Atomic bool restart_waits;              /* until some of these have recovered */
    trpi_shard_keep *reads, **reads_end;     /* want to read, and too much is being read */
    size_t reading_bytes;
    uint64_t remind_ms;             /* wall clock of the next look; UINT64_MAX: none */
    const trpi_region_mover *mover; /* constant */
    struct trpi_region_move *moves; /* under way, all of one shard: region_move.c */
    uint32_t misplaced;             /* shards that are */
    uint32_t move_shard;            /* where to look next */
    bool moves_later;               /* one has failed: the tick goes on */
    uint64_t moves_logged_ms;       /* 0: none has failed */
    trpi_request_queue unrecorded;  /* FIRED, and the journal refused to note it */
};

/* The keeper's part that a region calls. NULL ops: all shards are here. false: there was no memory
 * to say it, or the keeper has ended. */
typedef struct trpi_region_ops {
    /* A message waits for a shard without a home. Thread: the region's, as the next. */
    bool (*wanted)(void *arg, trp_ctx *ctx, trpi_region *region, uint32_t shard);
    /* All entities of the shard have ended, which it had with this epoch. */
    bool (*stopped)(void *arg, trp_ctx *ctx, trpi_region *region, uint32_t shard, uint64_t epoch);
    /* A gate has answered a fence: what was sent there before has been taken, or is in the shard's
     * queue again. */
    bool (*fenced)(void *arg, trp_ctx *ctx, trpi_region *region, uint32_t shard, trp_ref gate);
    /* A message came back; the home that it was sent to had this epoch. */
    bool (*returned)(void *arg, trp_ctx *ctx, trpi_region *region, uint32_t shard, uint64_t epoch);
} trpi_region_ops;

/* Incarnations that have ended, and whose mailbox may have messages: drains.c */
#define TRPI_DRAIN_BUCKETS 1024u
typedef struct trpi_drains {
    pthread_mutex_t lock;
    struct trpi_drain *buckets[TRPI_DRAIN_BUCKETS];
} trpi_drains;

/* The keeper, as the start of a type sees it. arg NULL: there is no cluster. */
typedef struct trpi_sharding_keeper {
    void *arg;
    bool (*started)(void *arg, trpi_region *region); /* false: no memory, or it has ended */
    /* Wait until a coordinator has taken the type, or for a time if there is none. false: it was
     * refused, and why says so. */
    bool (*await)(void *arg, const trpi_region *region, char *why, size_t why_bytes);
    void (*free)(void *arg);
} trpi_sharding_keeper;

struct trpi_sharding {
    trp_system *system;
    _Atomic(trpi_region *) regions[TRP_SHARDING_TYPES_MAX * 2]; /* by type, open addressing */
    uint32_t regions_count;                                     /* with lock */
    pthread_mutex_t lock;
    trpi_entry_index index;
    trpi_drains drains;
    trp_ref gate;
    trpi_sharding_keeper keeper; /* set before ops */
    _Atomic(const trpi_region_ops *) ops;
    void *_Atomic ops_arg;
};
typedef struct trpi_sharding trpi_sharding;

/* ---- sharding.c ------------------------------------------------------------------------------ */
/* The sharding of a system, made at the first call. Errors: TRP_ENOMEM, TRP_ECLOSED; those of a
 * spawn. Thread: any. */
trp_err trpi_sharding_of(trp_system *system, trpi_sharding **ret_sharding);
/* NULL: the running actor is no entity. */
static inline trpi_entry *
trpi_entry_of_self(const trp_ctx *ctx)
{
    const trpi_sharding *sharding = trpi_ctx_entities(ctx);
    trp_ref self = trp_self(ctx);
    trpi_entry *entry =
        sharding == NULL ? NULL : trpi_entry_index_find(&sharding->index, self.slot);
    return entry != NULL && trpi_entry_is(entry, self) ? entry : NULL;
}
/* NULL: that type is not started. Any thread. */
static inline trpi_region *
trpi_region_find(const trpi_sharding *sharding, uint64_t type)
{
    for (uint32_t i = 0; i < TRP_SHARDING_TYPES_MAX * 2; i++) {
        /* acquire: pairs with the release in trp_sharding_start() */
        trpi_region *region = atomic_load_explicit(
            &sharding->regions[(type + i) % (TRP_SHARDING_TYPES_MAX * 2)], memory_order_acquire);
        if (region == NULL || region->type == type) {
            return region;
        }
    }
    return NULL;
}

/* ---- drains.c: any thread -------------------------------------------------------------------- */
void trpi_drains_init(trpi_drains *drains);
void trpi_drains_fini(trpi_drains *drains);
/* false: no memory; what is left in its mailbox becomes dead letters. */
bool trpi_drains_add(trpi_drains *drains, uint32_t slot, uint32_t generation, trpi_entry *entry);
trpi_entry *trpi_drains_find(trpi_drains *drains, uint32_t slot, uint32_t generation);
void trpi_drains_remove(trpi_drains *drains, uint32_t slot, uint32_t generation);
extern const trpi_entity_ops trpi_sharding_entity_ops;

/* ---- tell.c: on the teller's thread ---------------------------------------------------------- */
uint32_t trpi_region_shard_of(const trpi_region *region, uint64_t hash, const void *id,
                              size_t id_bytes);
/* Send msg, which has its sender, to an entity: directly, to its node, or to the region. origin:
 * it came from another node, and goes back there if the shard is not here with that epoch; NULL: it
 * is of this node. Takes msg. */
void trpi_entity_pass(trpi_region *region, trp_ctx *ctx, const void *id, size_t id_bytes,
                      const trpi_origin *origin, trp_msg *msg);
/* Tell entities what has come for them from another node: at most TRPI_ARRIVALS_MAX, of one sender.
 * Return how many were told, from the first on; the next one is to pass as a message. */
uint32_t trpi_entities_arrived(const trpi_sharding *sharding, trp_ctx *ctx, trp_ref sender,
                               const trpi_carrier *what, uint32_t count);

/* ---- gate.c ---------------------------------------------------------------------------------- */
typedef struct trpi_gate_head {
    uint64_t epoch;
    const void *id;
    size_t id_bytes;
    uint32_t shard;
    uint8_t kind; /* enum trpi_envelope_kind */
} trpi_gate_head;
trp_err trpi_gate_spawn(trpi_sharding *sharding);
/* Tell an entity of another node, through the gate there, as the running actor. bytes: as of
 * trpi_tell(). */
void trpi_gate_tell(const trpi_region *region, trp_ctx *ctx, trp_ref gate, uint64_t epoch,
                    const void *id, size_t id_bytes, const trp_type *type, const void *payload,
                    size_t bytes);
/* trpi_entity_ops.arrived */
uint32_t trpi_gate_arrived(void *sharding, trp_ctx *ctx, trp_ref to, trp_ref sender,
                           const trpi_carrier *what, uint32_t count);
/* The same with a message. Takes msg. */
void trpi_gate_send(const trpi_region *region, trp_ctx *ctx, trp_ref gate, uint64_t epoch,
                    const void *id, size_t id_bytes, trp_msg *msg);
/* Give a message back to the node that it came from. Takes msg. */
void trpi_gate_return(const trpi_region *region, trp_ctx *ctx, const trpi_origin *origin,
                      const void *id, size_t id_bytes, trp_msg *msg);
/* Return whether an actor of this node has sent it. */
bool trpi_gate_is_own(const trp_msg *msg);
/* Say that a message was not taken and is no more: it was for a shard that has moved. */
void trpi_gate_dropped(const trpi_region *region, trp_ctx *ctx, const trpi_origin *origin,
                       uint32_t shard);
/* Ask a gate for an answer behind all that was sent to it, or answer. */
void trpi_gate_fence(const trpi_region *region, trp_ctx *ctx, trp_ref gate, uint32_t shard,
                     bool answer);

/* ---- entity_path.c --------------------------------------------------------------------------- */
size_t trpi_entity_path_write(const char *type, const trp_entity *entity, char *buffer,
                              size_t bytes);

/* ---- region_keep.c: the actor ---------------------------------------------------------------- */
extern trp_type trpi_keep_answer_type;
/* Open the store of a shard; trpi_shard_opened() or trpi_shard_lost() comes, also at once. Without
 * memory it is tried again. */
void trpi_keep_open(trp_ctx *ctx, trpi_region *region, uint32_t number);
/* The same after a back-off. */
void trpi_keep_open_later(trpi_region *region, uint32_t number);
/* Submit what the store has to do. */
void trpi_keep_go_on(trp_ctx *ctx, trpi_shard_keep *keep);
/* Give the store up. false: the journal has not answered yet, and trpi_shard_look() comes. */
bool trpi_keep_close(trpi_region *region, trpi_shard *shard);
void trpi_keep_answered(trp_ctx *ctx, trpi_region *region, const trp_msg *msg);
/* Find out whether the shard still has its permission to write. */
void trpi_keep_probe(trp_ctx *ctx, trpi_region *region, uint32_t number);
bool trpi_keep_probes(const trpi_region *region, uint32_t number); /* it is not known yet */
void trpi_keep_tick(trp_ctx *ctx, trpi_region *region);
/* The region's actor has ended: what is under way is freed with its answer. */
void trpi_keep_abandon(trpi_region *region, trpi_shard *shard);
bool trpi_keep_is_wanted(const trp_sharding_options *options); /* by a type. Any thread */
/* Check that the system has the journal that a type needs. why: a sentence. Errors: TRP_ESTATE,
 * TRP_ECONFIG; TRP_ENOMEM, TRP_ECLOSED. Thread: any. */
trp_err trpi_keep_check(trpi_sharding *sharding, const trp_sharding_options *options, char *why,
                        size_t why_bytes);

/* ---- region_remember.c: the actor ------------------------------------------------------------ */
/* Start an ABSENT entry, when it is noted. */
void trpi_entry_begin(trp_ctx *ctx, trpi_region *region, trpi_entry *entry);
/* Its incarnation has ended for good: have it forgotten, first by the journal. */
void trpi_entry_let_go(trp_ctx *ctx, trpi_region *region, trpi_entry *entry);
bool trpi_entry_is_remembered(const trpi_region *region, const trpi_entry *entry);
/* The journal has noted or forgotten it, or not. */
void trpi_entry_noted(trp_ctx *ctx, trpi_region *region, uint32_t number,
                      const trpi_shard_effect *effect);
/* The shard's store is open: start what it remembers. */
void trpi_remember_open(trp_ctx *ctx, trpi_region *region, uint32_t number);
void trpi_remember_go_on(trp_ctx *ctx, trpi_region *region);
void trpi_entry_restarts_clear(trpi_region *region, trpi_entry *entry);

extern trp_type trpi_remind_tick_type;
/* Carry out an order of reminder.c for a shard that is here. Takes request. */
void trpi_remind_order(trp_ctx *ctx, trpi_region *region, trpi_request *request);
void trpi_remind_effect(trp_ctx *ctx, trpi_shard_keep *keep, const trpi_shard_effect *effect);
void trpi_remind_asks_free(trpi_shard_keep *keep);
/* Hand over what is due. */
void trpi_remind_tick(trp_ctx *ctx, trpi_region *region);
/* Look again when the shard's next reminder is due. */
void trpi_remind_wait(trp_ctx *ctx, trpi_region *region, uint32_t number);
/* A reminder's message was told to the entity's incarnation. Takes fired. */
void trpi_remind_pushed(trp_ctx *ctx, trpi_region *region, const trpi_entry *entry,
                        trpi_request *fired);
/* It was handled (FIRED), or not (UNFIRED). */
void trpi_remind_fired(trp_ctx *ctx, trpi_region *region, const trpi_request *request);

/* ---- reminder.c ------------------------------------------------------------------------------ */
/* The payload of an order's message: behind it name, type and data, texts with their NUL. */
enum trpi_reminder_kind {
    TRPI_REMINDER_SET = 1,
    TRPI_REMINDER_CANCEL = 2,
    TRPI_REMINDER_LIST = 3,
    TRPI_REMINDER_REMEMBER = 4, /* no reminder: the entity is to live (region_move.c) */
    TRPI_REMINDER_MOVE = 5      /* set it, if none has its name */
};
typedef struct trpi_reminder_order {
    uint64_t due_ms, period_ms;
    uint32_t kind, name_bytes, type_bytes, data_bytes; /* texts: with their NUL */
} trpi_reminder_order;
/* One reminder of a list, with name and type behind it. */
typedef struct trpi_reminder_record {
    uint64_t due_ms, period_ms;
    uint32_t name_bytes, type_bytes;
} trpi_reminder_record;
extern trp_type trpi_reminder_order_type;
trp_err trpi_reminder_order_make(trpi_buffer *out, trpi_reminder_order *order, const char *name,
                                 const char *type, const void *data, size_t bytes);

/* ---- entity_name.c --------------------------------------------------------------------------- */
/* The id of an entity as a text that the journal takes: bytes that are no text are %XX, as is '%'.
 * Returns its bytes; 0: it is too long. */
#define TRPI_ENTITY_NAME_BYTES 192 /* with the NUL */
size_t trpi_entity_name(const void *id, size_t id_bytes, char name[TRPI_ENTITY_NAME_BYTES]);
/* The reverse. 0: it is no such text. */
size_t trpi_entity_unname(const char *name, char id[TRP_ENTITY_ID_BYTES_MAX]);

/* ---- request.c ------------------------------------------------------------------------------- */
extern trp_type trpi_request_type, trpi_region_tick_type;
/* NULL: no memory. Takes msg, on success only. */
trpi_request *trpi_request_new(trp_system *system, enum trpi_request_kind kind, trpi_entry *entry,
                               const void *id, size_t id_bytes, trp_msg *msg);
/* Tell it to the region. Takes order; without memory it is dropped. */
void trpi_request_tell(trp_ctx *ctx, trpi_region *region, trpi_request *order);
void trpi_request_free(trpi_request *order); /* NULL is fine */
/* Its message is a dead letter. Takes order. */
void trpi_request_dead(trpi_request *order, trp_dead_reason reason);
/* Tell a note about a reminder, FIRED or UNFIRED, to its region. Takes fired. Any thread. */
void trpi_request_fired(trpi_request *fired, enum trpi_request_kind kind);
void trpi_request_lost(void *fired); /* the same with UNFIRED; NULL is fine */
void trpi_request_append(trpi_request_queue *queue, trpi_request *order);
trpi_request *trpi_request_take(trpi_request_queue *queue); /* NULL: empty */

/* ---- region.c -------------------------------------------------------------------------------- */
/* Fill in everything but options and name, and spawn the actor. Errors: TRP_ENOMEM; those of a
 * spawn. */
trp_err trpi_region_spawn(trpi_region *region);
void trpi_region_free(void *region);
/* From the keeper. Takes home. false: no memory. Any thread. */
bool trpi_region_order(trp_ctx *ctx, trpi_region *region, enum trpi_request_kind kind,
                       uint32_t shard, uint64_t epoch, trpi_home *home);

/* ---- region_shard.c: the actor --------------------------------------------------------------- */
void trpi_shard_message(trp_ctx *ctx, trpi_region *region, trpi_request *order);
void trpi_shard_own(trp_ctx *ctx, trpi_region *region, uint32_t number, uint64_t epoch);
void trpi_shard_away(trp_ctx *ctx, trpi_region *region, uint32_t number, trpi_home *home);
/* As trpi_shard_buffer(), when its home hands it over. */
void trpi_shard_moves(trp_ctx *ctx, trpi_region *region, uint32_t number);
/* The home of that epoch made a dead letter of a message: it has moved. */
void trpi_shard_dropped(trp_ctx *ctx, trpi_region *region, uint32_t number, uint64_t epoch);
void trpi_shard_fence(trp_ctx *ctx, trpi_region *region, uint32_t number, trpi_home *home);
void trpi_shard_returned(trp_ctx *ctx, trpi_region *region, trpi_request *request);
void trpi_shard_fenced(trp_ctx *ctx, trpi_region *region, uint32_t number, trp_ref gate);
void trpi_shard_stop_now(trp_ctx *ctx, trpi_region *region, uint32_t number);
void trpi_shard_buffer(trp_ctx *ctx, trpi_region *region, uint32_t number);
void trpi_shard_stop(trp_ctx *ctx, trpi_region *region, uint32_t number, uint64_t epoch);
void trpi_shard_open(trp_ctx *ctx, trpi_region *region, trpi_shard *shard);
void trpi_shard_look(trp_ctx *ctx, trpi_region *region, uint32_t number);
/* Its store is open. */
void trpi_shard_opened(trp_ctx *ctx, trpi_region *region, uint32_t number);
/* Its store is lost: another one writes, or it is not known what was written. */
void trpi_shard_lost(trp_ctx *ctx, trpi_region *region, uint32_t number);
/* Take what waited for an entity of a shard that is lost. region-shard-S7 */
void trpi_shard_give_up(trp_ctx *ctx, trpi_region *region, trpi_shard *shard,
                        trpi_request *request);
/* Ask for all shards from number on: they have entities to start. */
void trpi_shards_want(trp_ctx *ctx, trpi_region *region, uint32_t number);
void trpi_shard_graced(trp_ctx *ctx, trpi_region *region, uint32_t number);

/* ---- region_entry.c: the actor --------------------------------------------------------------- */
/* Find or make the entry; it may be ABSENT. NULL: no memory. */
trpi_entry *trpi_entry_get(trpi_region *region, const trpi_request *order);
trpi_entry *trpi_entry_make(trpi_region *region, uint32_t number, uint64_t hash, const void *id,
                            size_t id_bytes);
/* Pass the order's message to the entity, or keep it. Takes order. */
void trpi_entry_message(trp_ctx *ctx, trpi_region *region, trpi_entry *entry, trpi_request *order);
void trpi_entry_passivate(trp_ctx *ctx, trpi_region *region, trpi_entry *entry);
void trpi_entry_ended(trp_ctx *ctx, trpi_region *region, trpi_entry *entry);
void trpi_entry_left(trpi_region *region, trpi_entry *entry, trpi_request *order);
void trpi_entry_drained(trp_ctx *ctx, trpi_region *region, trpi_entry *entry);
void trpi_entry_graced(trp_ctx *ctx, trpi_region *region, trpi_entry_wait *wait);
void trpi_entry_start_due(trp_ctx *ctx, trpi_region *region); /* those whose back-off is over */
void trpi_entry_start(trp_ctx *ctx, trpi_region *region, trpi_entry *entry);
/* Start it when its back-off is over. */
void trpi_entry_start_later(trpi_region *region, trpi_entry *entry);
bool trpi_entry_has_waiting(const trpi_entry *entry);
/* Tell it to stop; no teller has its ref any more. */
void trpi_entry_stop(trp_ctx *ctx, trpi_region *region, trpi_entry *entry);
void trpi_entry_forget(trpi_region *region, trpi_entry *entry); /* ABSENT, and nothing waits */
/* Its shard moves, and it is ABSENT: handle what waits for it, or forget it. */
void trpi_entry_settle(trp_ctx *ctx, trpi_region *region, trpi_entry *entry);
/* Keep the order in a queue, or make it a dead letter. Takes order. */
void trpi_region_keep(trpi_region *region, trpi_request_queue *queue, trpi_request *order);
trpi_request *trpi_region_unkeep(trpi_region *region, trpi_request_queue *queue);
/* Begin a grace period, if one is needed and none runs. */
void trpi_region_grace(trpi_region *region);
uint64_t trpi_region_now_ms(const trpi_region *region);

/* ---- region_sweep.c: the actor --------------------------------------------------------------- */
void trpi_region_sweep(trp_ctx *ctx, trpi_region *region);
/* One more entity is about to live: passivate those that were told longest ago. */
void trpi_region_limit(trp_ctx *ctx, trpi_region *region);

#endif
