/* shard_store.h - what one shard keeps in the journal: the permission to write, the entities that
 * are to live, and their reminders. Pure: the shell submits its operations and feeds the answers.
 *
 *     trpi_shard_store_new -> [claim] -> [newest snapshot -> events behind it] -> READY
 *     add, remove, remind, cancel, fired -> next() -> (the journal) -> answered() -> effect()
 *
 * One operation is under way at a time; what changes meanwhile is the next one's group, so that a
 * busy shard needs few appends. A change counts when its effect says so: then it is in the journal.
 */
#ifndef TRPI_CLUSTER_SHARD_STORE_H
#define TRPI_CLUSTER_SHARD_STORE_H

#include <stdbool.h>

#include <troupe/journal.h>

#include "base/check.h"

#define TRPI_SHARD_STORE_TYPE "troupe.shard"          /* of its events */
#define TRPI_SHARD_STORE_SNAPSHOT "troupe.shard.all"  /* of its snapshots */
#define TRPI_SHARD_STORE_VERSION 1u                   /* of both */
#define TRPI_SHARD_STORE_BYTES_MAX (3u << 20)         /* of ids and reminders of one shard */
#define TRPI_SHARD_STORE_GROUP_MAX 1000u              /* changes of one append */
#define TRPI_SHARD_STORE_SNAPSHOT_EVERY_DEFAULT 1000u /* appends */
#define TRPI_SHARD_ID_BYTES_MAX 255u                  /* of an entity's id */
#define TRPI_SHARD_REMINDER_NAME_MAX 127u
#define TRPI_SHARD_REMINDER_BYTES_MAX 65536u /* of a reminder's data */

typedef struct trpi_shard_store trpi_shard_store;

typedef struct trpi_shard_store_options {
    const char *type;        /* of the entities; copied */
    uint32_t shard;          /* number */
    const char *writer;      /* name of the claim: who writes, for those that are fenced; copied */
    bool memory;             /* false: the claim alone; nothing is read or remembered */
    uint32_t snapshot_every; /* appends; 0: the default */
    uint64_t bytes_max;      /* 0: TRPI_SHARD_STORE_BYTES_MAX, which is the most */
} trpi_shard_store_options;

typedef enum trpi_shard_store_state {
    TRPI_SHARD_STORE_OPENING = 0, /* claim, snapshot, events: no change is taken */
    TRPI_SHARD_STORE_READY = 1,
    TRPI_SHARD_STORE_LOST = 2 /* fenced, unreadable, or an append of unknown outcome: the shard must
                                 stop, and a new store claims anew */
} trpi_shard_store_state;

typedef enum trpi_shard_change_kind {
    TRPI_SHARD_ADD = 1,    /* the entity is to live */
    TRPI_SHARD_REMOVE = 2, /* it is not */
    TRPI_SHARD_REMIND = 3, /* a reminder of an entity; one of this name is replaced */
    TRPI_SHARD_CANCEL = 4,
    TRPI_SHARD_FIRED = 5 /* the reminder was handed over: it ends, or has its next time */
} trpi_shard_change_kind;

/* A reminder: a message to an entity at a time that outlives the node. */
typedef struct trpi_shard_reminder {
    const char *id; /* of the entity */
    const char *name;
    uint64_t due_ms;    /* wall clock, since 1970 */
    uint64_t period_ms; /* 0: once */
    const char *type;   /* of the message */
    uint32_t version;
    const void *data;
    size_t bytes;
} trpi_shard_reminder;

typedef struct trpi_shard_effect {
    trpi_shard_change_kind kind;
    trp_err err;      /* TRP_OK: it is in the journal; else certainly not, or the store is lost */
    uint64_t token;   /* of the caller's call */
    const char *id;   /* borrowed until the next call */
    const char *name; /* of a reminder; "" */
    uint64_t due_ms;  /* FIRED: the time for which it was */
    const char *why;  /* err's reason; "" */
} trpi_shard_effect;

/* Errors: TRP_EINVAL (a text is empty or too long, bytes_max too large), TRP_ENOMEM. */
trp_err trpi_shard_store_new(const trpi_shard_store_options *options, trpi_shard_store **ret_store);
/* The operation under way, if there is one, has been answered. NULL is fine. */
void trpi_shard_store_free(trpi_shard_store *store);

/* Return the operation to submit, or NULL: nothing is to be done, or one is under way. The caller
 * sets done and user, and gives the answer back with trpi_shard_store_answered(). The give function
 * is the store's: it runs on the driver's thread and touches what only OPENING uses. */
trp_journal_op *trpi_shard_store_next(trpi_shard_store *store, uint64_t wall_ms);
void trpi_shard_store_answered(trpi_shard_store *store, trp_journal_op *op);

trpi_shard_store_state trpi_shard_store_state_get(const trpi_shard_store *store);
trp_err trpi_shard_store_error(const trpi_shard_store *store, const char **ret_why); /* of LOST */
uint64_t trpi_shard_store_epoch(const trpi_shard_store *store); /* 0: not claimed yet */
const char *trpi_shard_store_scope(const trpi_shard_store *store);

/* Begin a change. Its effect bears token. Errors, nothing has begun: TRP_ESTATE (not READY),
 * TRP_EINVAL (a text is empty or too long), TRP_EMSGSIZE (data), TRP_ELIMIT (bytes_max),
 * TRP_ENOENT (fired: there is no such reminder), TRP_ENOMEM. */
trp_err trpi_shard_store_add(trpi_shard_store *store, const char *id, uint64_t token);
trp_err trpi_shard_store_remove(trpi_shard_store *store, const char *id, uint64_t token);
trp_err trpi_shard_store_remind(trpi_shard_store *store, const trpi_shard_reminder *reminder,
                                uint64_t token);
trp_err trpi_shard_store_cancel(trpi_shard_store *store, const char *id, const char *name,
                                uint64_t token);
/* The reminder was handed to its entity. It was due at due_ms: one that was set anew meanwhile
 * stays. One with a period is due next at the first multiple behind wall_ms: what was missed while
 * the shard stood still comes once. */
trp_err trpi_shard_store_fired(trpi_shard_store *store, const char *id, const char *name,
                               uint64_t due_ms, uint64_t wall_ms, uint64_t token);

/* Let the journal say whether the epoch still is the scope's, as an operation that changes nothing:
 * a store that was fenced is LOST then. READY. */
void trpi_shard_store_probe(trpi_shard_store *store);
bool trpi_shard_store_probes(const trpi_shard_store *store); /* the journal has not said so yet */

/* Take the next effect; false: there is none. */
bool trpi_shard_store_effect(trpi_shard_store *store, trpi_shard_effect *ret_effect);

/* Look at what the journal has. *position starts at 0; NULL: there are no more. No change in
 * between. */
const char *trpi_shard_store_entity(const trpi_shard_store *store, uint32_t *position);
bool trpi_shard_store_remembers(const trpi_shard_store *store, const char *id);
uint32_t trpi_shard_store_entities_count(const trpi_shard_store *store);
uint32_t trpi_shard_store_reminders_count(const trpi_shard_store *store);

/* When the next reminder is due (UINT64_MAX: none), and take one that is due at wall_ms: it is not
 * given again by this store before fired() or a new remind(). The reminder is borrowed until the
 * next call. */
uint64_t trpi_shard_store_next_due(const trpi_shard_store *store);
bool trpi_shard_store_due(trpi_shard_store *store, uint64_t wall_ms,
                          trpi_shard_reminder *ret_reminder);

/* It was handed over and got lost on the way: due() gives it again, if it was not set anew. */
void trpi_shard_store_unfired(trpi_shard_store *store, const char *id, const char *name,
                              uint64_t due_ms);
/* How many reminders an entity has, but for one of this name; those that are on their way into the
 * journal count. */
uint32_t trpi_shard_store_reminders_of(const trpi_shard_store *store, const char *id,
                                       const char *name);
/* Whether it has one of this name when all changes that have begun are in the journal. */
bool trpi_shard_store_has_reminder(const trpi_shard_store *store, const char *id, const char *name);
/* Look at the reminders of an entity, NULL: of all: as trpi_shard_store_entity(). */
const trpi_shard_reminder *trpi_shard_store_reminder(const trpi_shard_store *store, const char *id,
                                                     uint32_t *position);

/* Return NULL, or the invariant that is broken: shard-store-K1.. */
const char *trpi_shard_store_check(const trpi_shard_store *store, trpi_check *check);

#endif
