/* persistent.h - private to the room: a persistent actor between its calls.
 *
 *     command -> fresh -> pending -> flight -> journal -> answer -> event, callback
 */
#ifndef TRPI_PERSISTENCE_PERSISTENT_H
#define TRPI_PERSISTENCE_PERSISTENT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <troupe/persistence.h>

#include "actor/actor.h"
#include "base/buffer.h"
#include "persistence/persistence.h"
#include "persistence/unconfirmed.h"

/* ---- what a system has (persistence.c, recoveries.c) ----------------------------------------- */

/* A place in the queue of actors that want to recover. */
typedef struct trpi_recovery {
    struct trpi_recovery *next, *prev;
    trp_ref actor;
    trp_msg *grant; /* told to it when its turn has come */
    bool waits;     /* else it has been granted */
} trpi_recovery;

typedef struct trpi_persistence {
    pthread_mutex_t lock; /* of what follows, but the journal for readers */
    /* persistence-P1: release in trp_persistence_start pairs with acquire in journal_of */
    const trp_journal_driver *_Atomic journal;
    bool is_local_enough; /* written before journal */
    uint32_t recoveries_max, recoveries;
    trpi_recovery *first, *last;
    _Atomic uint64_t instances; /* relaxed: a number for each */
    trpi_persistent_scope_fn scope_fn;
    void *scope_arg;
} trpi_persistence;

/* Find what a system has, with its journal; NULL: none was started, or it has ended. */
trpi_persistence *trpi_persistence_of(trp_system *system, const trp_journal_driver **ret_driver);

/* Take a place: *ret_recovery->waits says whether the actor has to wait to be told. Errors:
 * TRP_ENOMEM. */
trp_err trpi_recovery_enter(trpi_persistence *persistence, trp_ref actor,
                            trpi_recovery **ret_recovery);
bool trpi_recovery_waits(trpi_persistence *persistence, const trpi_recovery *recovery);
/* Give the place up, and free it: the next one is told. NULL is fine. */
void trpi_recovery_leave(trpi_persistence *persistence, trp_system *system,
                         trpi_recovery *recovery);

/* ---- commands and events --------------------------------------------------------------------- */

/* A command that is kept; shared with the groups that it persists, which any thread may free. */
typedef struct trpi_kept {
    struct trpi_kept *next; /* of the stash */
    _Atomic uint32_t refs;  /* acq_rel at the last one: it frees msg and trail */
    trp_msg *msg;
    trpi_trail *trail; /* of the handling that kept it; NULL: in no trace */
} trpi_kept;
void trpi_kept_unref(trpi_kept *kept); /* NULL is fine */

typedef struct trpi_group_event {
    trp_msg *msg;
    size_t data_at, data_bytes; /* in the group's bytes */
    size_t tags_at;
    uint32_t tags_count;
} trpi_group_event;

/* Events that one call persists; none: a deferred callback. */
typedef struct trpi_group {
    struct trpi_group *next;
    trp_persisted_fn fn;
    void *arg;
    trpi_kept *kept;
    trpi_trail *trail; /* of the handling that persisted; NULL: in no trace */
    trpi_buffer bytes; /* encoded events, and their tags */
    bool is_async;
    uint32_t count;
    trpi_group_event events[];
} trpi_group;
void trpi_group_free(trpi_group *group); /* NULL is fine */

typedef struct trpi_groups {
    trpi_group *first, *last;
    uint32_t count, sync_count;
} trpi_groups;
void trpi_groups_put(trpi_groups *groups, trpi_group *group);
trpi_group *trpi_groups_take(trpi_groups *groups); /* the first; NULL: none */
void trpi_groups_drop(trpi_groups *groups);

/* ---- an operation of an actor (flight.c) ----------------------------------------------------- */

/* It belongs to the message that brings its answer, so it outlives its actor. */
typedef struct trpi_flight {
    trp_journal_op op;
    trp_system *system;
    trp_ref to;
    trp_msg *msg;
    uint64_t instance;  /* of the actor */
    trpi_groups groups; /* of an append */
    trpi_buffer bytes;  /* of a read: records; of a snapshot: its data */
    trp_journal_event *events;
    const char **tags;
    char names[]; /* id and scope */
} trpi_flight;

/* A record of a read, in front of the name of its type, with its NUL, and its data. */
typedef struct trpi_flight_record {
    uint64_t number, time_ms;
    size_t data_bytes;
    uint32_t type_bytes, version;
} trpi_flight_record;
/* Read the record at *at, and move *at behind it; false: there are no more. */
bool trpi_flight_next(const trpi_flight *flight, size_t *at, trp_journal_event *ret_event);

extern trp_type trpi_persistent_type; /* without a flight: a wake-up */
extern trp_type trpi_behind_type;

typedef enum trpi_phase {
    TRPI_PHASE_WAITS = 0, /* for its turn to recover */
    TRPI_PHASE_CLAIMS = 1,
    TRPI_PHASE_LOADS = 2,
    TRPI_PHASE_REPLAYS = 3,
    TRPI_PHASE_READY = 4,
    TRPI_PHASE_ENDED = 5 /* it has failed, and is not resumed */
} trpi_phase;

/* Which function of the program runs; a jump may leave it so. */
typedef enum trpi_at { TRPI_AT_NONE = 0, TRPI_AT_COMMAND = 1, TRPI_AT_EVENT = 2 } trpi_at;

struct trpi_snapshots; /* persistent_keep.c */

typedef struct trpi_persistent {
    const trp_persistent *what;
    trp_system *system;
    trpi_persistence *persistence;
    const trp_journal_driver *journal;
    void *state;
    trp_receive_fn command;
    uint64_t number, epoch, instance;
    uint64_t to;       /* recover up to it; 0: all */
    uint64_t until_ms; /* of the recovery's next answer */
    uint64_t load_to;  /* no newer snapshot can be read; 0: none was tried */
    trpi_recovery *recovery;
    trpi_kept *stash, *stash_last;
    trpi_kept *current;   /* the command that runs, if it is kept */
    trpi_groups fresh;    /* of the function that runs */
    trpi_groups pending;  /* not sent yet */
    trpi_group *applying; /* stored */
    trp_msg *replayed;    /* an event or a snapshot of the recovery */
    trpi_flight *flight;  /* of an append; the message's */
    struct trpi_snapshots *snapshots;
    trpi_unconfirmed deliveries;
    uint32_t stash_count;
    uint32_t in_flight;  /* groups */
    uint32_t sync_count; /* groups of pending and flight for which commands wait */
    uint32_t split;      /* groups that are sent alone: together they were refused */
    uint8_t phase, at;   /* trpi_phase, trpi_at */
    bool is_woken;       /* a wake-up is on its way */
    bool is_reading;     /* an adapter may put events */
    bool no_snapshot;
    bool is_incomplete; /* a snapshot could not be read */
    bool reads_only;
    bool is_applying;  /* the event function runs */
    bool redelivers;   /* a timer runs */
    uint16_t scope_at; /* in names */
    char names[];      /* id, scope */
} trpi_persistent;

/* Return what the running actor has; NULL: it is not persistent. */
trpi_persistent *trpi_persistent_get(const trp_ctx *ctx);
static inline const char *
trpi_persistent_scope(const trpi_persistent *p)
{
    return p->names + p->scope_at;
}
/* Make the operation; its id, scope and epoch are set. NULL: out of memory. */
trpi_flight *trpi_flight_new(trp_ctx *ctx, const trpi_persistent *p, trp_journal_kind kind);
void trpi_flight_drop(trpi_flight *flight); /* one that was not submitted */
void trpi_flight_submit(const trpi_persistent *p, trpi_flight *flight);
/* Have the actor called again, behind what is in its mailbox. */
void trpi_persistent_wake(trp_ctx *ctx, trpi_persistent *p);
/* Apply an event. Errors: its. */
trp_err trpi_persistent_apply(trp_ctx *ctx, trpi_persistent *p, const trp_msg *event);
/* The actor cannot go on: tell `failed`, make what is stashed dead letters, and fail. */
TRP_NORETURN void trpi_persistent_end(trp_ctx *ctx, trpi_persistent *p, const trp_msg *event,
                                      trp_err err, const char *format, ...) TRP_PRINTF(5, 6);
/* Go on with what waits: writes, then stashed commands. Errors: those of commands. */
trp_err trpi_persistent_go_on(trp_ctx *ctx, trpi_persistent *p);

/* persistent_write.c. Let what the function that ran has persisted count from now on. */
void trpi_fresh_commit(trpi_persistent *p);
trp_err trpi_persistent_write(trp_ctx *ctx, trpi_persistent *p);
trp_err trpi_persistent_written(trp_ctx *ctx, trpi_persistent *p, trpi_flight *flight);

/* persistent_recover.c */
void trpi_recover_begin(trp_ctx *ctx, trpi_persistent *p);
trp_err trpi_recover_answer(trp_ctx *ctx, trpi_persistent *p, const trpi_flight *flight);

/* Give the trace of the command whose event is applied; all 0: none. */
void trpi_persistent_trace(const trpi_persistent *p, trp_trace *ret_trace);

/* persistent_deliver.c. Tell what is due; the actor is ready. */
void trpi_deliveries_tell(trp_ctx *ctx, trpi_persistent *p);

/* persistent_keep.c */
void trpi_snapshot_due(trp_ctx *ctx, trpi_persistent *p, uint64_t before);
void trpi_keep_answer(trp_ctx *ctx, trpi_persistent *p, const trpi_flight *flight);

#endif
