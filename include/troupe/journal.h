/* troupe/journal.h - where the events and snapshots of persistent state are kept.
 *
 * A journal is a driver: one function that takes operations, and answers each once it is done. One
 * in memory comes with the library, below; a program may bring its own, which troupe/journal_kit.h
 * tests.
 *
 * It keeps:
 *   events     of a persistence id, numbered from 1 without gap. An append stores a group of them
 *              whole or not at all. Each event has an offset, which grows in the order in which
 *              events become readable: a reader that has read up to one misses nothing before it.
 *   tags       of an event; the events of one tag can be read in the order of their offsets
 *   snapshots  of a persistence id, each with the number of the last event that it contains
 *   epochs     of a scope (a persistence id, or the shard of many): the permission to write. A
 *              claim takes the next one; from then on what bears an earlier one is refused.
 *
 * The answers:
 *   TRP_JOURNAL_DONE     it is as durable as the driver promises
 *   TRP_JOURNAL_REFUSED  certainly nothing was changed, and why says the reason: the writer has
 *                        been fenced, there is no room, an argument is out of range
 *   TRP_JOURNAL_FAILED   the outcome is unknown: it may be found there later, or not
 */
#ifndef TROUPE_JOURNAL_H
#define TROUPE_JOURNAL_H

#include <troupe/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_JOURNAL_ID_BYTES_MAX 255
#define TRP_JOURNAL_SCOPE_BYTES_MAX 255
#define TRP_JOURNAL_WRITER_BYTES_MAX 255
#define TRP_JOURNAL_TAG_BYTES_MAX 127
#define TRP_JOURNAL_TYPE_BYTES_MAX 255
#define TRP_JOURNAL_TAGS_MAX 16 /* of one event */
#define TRP_JOURNAL_GROUP_EVENTS_MAX 1024
#define TRP_JOURNAL_GROUP_BYTES_MAX 67108864u /* data of one group, or of one snapshot */
#define TRP_JOURNAL_READ_EVENTS_DEFAULT 1000
#define TRP_JOURNAL_READ_BYTES_DEFAULT 4194304u
#define TRP_JOURNAL_WHY_BYTES 1024

typedef enum trp_journal_kind {
    TRP_JOURNAL_CLAIM = 1,         /* take the next epoch of scope for writer */
    TRP_JOURNAL_APPEND = 2,        /* store a group of events of id */
    TRP_JOURNAL_EVENTS = 3,        /* give events of id, numbers from .. to */
    TRP_JOURNAL_TAGGED = 4,        /* give events of tag (NULL: all) with offsets above from */
    TRP_JOURNAL_DELETE = 5,        /* delete the events of id with numbers up to to */
    TRP_JOURNAL_SNAPSHOT_SAVE = 6, /* store a snapshot of id; one of the same number is replaced */
    TRP_JOURNAL_SNAPSHOT_LOAD = 7, /* give the newest snapshot with a number up to to */
    TRP_JOURNAL_SNAPSHOT_DELETE = 8, /* delete those with numbers up to to, but the newest keep */
    TRP_JOURNAL_IDS = 9,             /* give the ids behind id (NULL: all), in the order of bytes */
    TRP_JOURNAL_SCOPES = 10          /* give the scopes behind scope, with writer and epoch */
} trp_journal_kind;

typedef enum trp_journal_outcome {
    TRP_JOURNAL_PENDING = 0,
    TRP_JOURNAL_DONE = 1,
    TRP_JOURNAL_REFUSED = 2,
    TRP_JOURNAL_FAILED = 3
} trp_journal_outcome;

/* An event or a snapshot. One that a driver gives is borrowed until give returns. */
typedef struct trp_journal_event {
    const char *id;          /* given; an append takes it from the operation */
    uint64_t number;         /* given, and of a snapshot; events of an append are numbered from the
                                operation's from */
    uint64_t offset;         /* given; 0 of a snapshot */
    uint64_t time_ms;        /* of the writer's wall clock, since 1970 */
    const char *type;        /* name of the type; its bytes are the business of the writer */
    uint32_t version;        /* of the form of the bytes */
    uint32_t tags_count;     /* at most TRP_JOURNAL_TAGS_MAX; 0 of a snapshot */
    const char *const *tags; /* none twice, none empty */
    const void *data;
    size_t bytes;
} trp_journal_event;

typedef struct trp_journal_op trp_journal_op;

/* Take one item of a read, borrowed until return: an event or a snapshot. Of IDS and SCOPES it
 * has an id, a number (highest of the id, or the epoch of the scope), offset 0, and for SCOPES
 * the writer in type. An error ends the read, which is refused with it. Thread: one of the
 * driver's, or the one that submits; it must not block. */
typedef trp_err (*trp_journal_give_fn)(trp_journal_op *op, const trp_journal_event *item);

/* Take the answer. The operation belongs to its maker again. Thread: as give; it must not block,
 * and may submit. */
typedef void (*trp_journal_done_fn)(trp_journal_op *op);

/* One operation. Its maker fills the first part, submits it, and leaves it and what it leads to
 * alone until done. */
struct trp_journal_op {
    size_t size; /* sizeof(trp_journal_op) */
    trp_journal_kind kind;
    /* Of an APPEND: 1: restore a backup. The id has no event yet, and the first number may be any
     * above those it has had; without events, from - 1 becomes its highest number. Of a CLAIM: 1:
     * take epoch instead of the next one, if it is above that. */
    uint32_t restore;
    const char *id; /* APPEND to SNAPSHOT_DELETE but TAGGED, of 1 to 255 bytes; IDS: may be NULL */
    const char *scope;  /* of what changes something, and SCOPES (NULL: all) */
    const char *writer; /* CLAIM: its name, which a fenced writer is told */
    const char *tag;    /* TAGGED; NULL: all events */
    uint64_t epoch;     /* of what changes something: that of the claim; CLAIM: only to restore */
    uint64_t from;      /* EVENTS: first number; TAGGED: offset; APPEND: number of the first event,
                           which must be the next one */
    uint64_t to;        /* last number; 0: no end. DELETE keeps what was numbered above it */
    const trp_journal_event *events; /* APPEND: the group; SNAPSHOT_SAVE: the snapshot */
    uint32_t events_count;
    uint32_t keep;            /* SNAPSHOT_DELETE */
    uint32_t max_events;      /* of a read; 0: TRP_JOURNAL_READ_EVENTS_DEFAULT */
    uint32_t timeout_ms;      /* how long it may wait before it is sent to where the data is; 0: the
                            driver's default */
    uint64_t max_bytes;       /* data of a read, exceeded by one item at most; 0:
                           TRP_JOURNAL_READ_BYTES_DEFAULT */
    trp_journal_give_fn give; /* of a read; NULL: items are only counted */
    trp_journal_done_fn done;
    void *user; /* the maker's */

    /* The answer. */
    trp_journal_outcome outcome;
    trp_err err;         /* TRP_OK if it is done */
    uint64_t ret_epoch;  /* CLAIM: the epoch */
    uint64_t ret_number; /* highest number that the id has had, with deleted ones: APPEND, EVENTS,
                            DELETE, SNAPSHOT_LOAD (0: none) */
    uint64_t ret_offset; /* TAGGED: from of the next read; APPEND: offset of the last event */
    uint32_t ret_count;  /* of given items; of snapshots that were deleted */
    uint32_t ret_more;   /* 1: the read has ended at max_events or max_bytes */
    char why[TRP_JOURNAL_WHY_BYTES]; /* what has happened, and what to do; "" if it is done */

    void *driver[4]; /* the driver's, zero at first */
};
#define TRP_JOURNAL_OP_INIT                                                                        \
    {                                                                                              \
        sizeof(trp_journal_op), TRP_JOURNAL_CLAIM, 0, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, 0, 0, \
            0, 0, 0, NULL, NULL, NULL, TRP_JOURNAL_PENDING, TRP_OK, 0, 0, 0, 0, 0, "",             \
        {                                                                                          \
            NULL, NULL, NULL, NULL                                                                 \
        }                                                                                          \
    }

typedef enum trp_journal_state {
    TRP_JOURNAL_OPEN = 0,      /* takes everything; why: the last change found no room, or "" */
    TRP_JOURNAL_AWAY = 1,      /* its server does not answer; operations wait */
    TRP_JOURNAL_READ_ONLY = 2, /* a flush has failed: nothing is written until it is opened again */
    TRP_JOURNAL_CLOSED = 3
} trp_journal_state;

typedef struct trp_journal_health {
    size_t size; /* sizeof(trp_journal_health), set by the caller */
    trp_journal_state state;
    uint32_t waiting;                /* operations that have no answer yet */
    uint64_t groups;                 /* appends that were done, since it was opened */
    uint64_t events;                 /* their events */
    uint64_t commits;                /* flushes or transactions that they took */
    uint64_t refused;                /* operations */
    uint64_t failed;                 /* operations */
    uint64_t bytes;                  /* of the store; 0: not known */
    char why[TRP_JOURNAL_WHY_BYTES]; /* state other than open: the reason, and what to do */
} trp_journal_health;
#define TRP_JOURNAL_HEALTH_INIT                                                                    \
    {                                                                                              \
        sizeof(trp_journal_health), TRP_JOURNAL_OPEN, 0, 0, 0, 0, 0, 0, 0, ""                      \
    }

/* A journal. Operations that name one id (or one scope) are carried out in the order in which they
 * were submitted, others in any. Reads see what was done before they were submitted.
 *
 * A failed operation keeps its place: it was carried out before those of its id (or scope) that
 * were submitted behind it, or never will be. A read tells what has become of it, and a writer that
 * has read goes on in its epoch: nothing that it sent before arrives later. So a driver that has
 * lost a connection makes sure that what was sent over it is over, before it carries out anything
 * more. Changes submitted through another driver, or before this one was closed, may arrive later:
 * a claim refuses them.
 *
 * A claim is durable before it is done. An APPEND, DELETE, SNAPSHOT_SAVE or SNAPSHOT_DELETE is
 * refused with TRP_EFENCED when scope has another epoch than epoch, and an APPEND when from is not
 * the next number of the id; why names both writers, or both numbers. A refused operation costs no
 * other one. After a failed flush all that wait are failed, and what changes something is refused
 * until the journal is opened again. */
typedef struct trp_journal_driver {
    size_t size;      /* sizeof(trp_journal_driver) */
    const char *name; /* for logs and `status`: "lmdb" */
    void *arg;        /* passed to all functions */
    /* 1: all nodes of a cluster that use it see the same data, so that what it keeps may move
     * between hosts; 0: this node's alone */
    uint32_t shared;
    uint32_t zero;
    /* Begin op. It must not wait for the store; done may be called before it returns. Thread:
     * any. */
    void (*submit)(void *arg, trp_journal_op *op);
    /* Say how it is. Thread: any; takes a lock for a moment. */
    void (*health)(void *arg, trp_journal_health *ret_health);
    /* End it: answer all that wait, and free arg. Nothing is submitted from now on. NULL: nothing
     * to do. Thread: any; may block until what has been begun is over. */
    void (*close)(void *arg);
} trp_journal_driver;

/* Check op as far as it can be checked without a store: a driver's submit begins with it. A wrong
 * one is answered as refused, with the error that is returned and its reason, and is its maker's
 * again. One without a done function, or of another size, cannot be answered and is left alone.
 *
 * Ownership: borrows op until done
 * Errors:    TRP_EINVAL       a field is missing or out of range
 *            TRP_ELIMIT       more events or tags than a group or an event may have
 *            TRP_EMSGSIZE     a text or the data is too long
 *            TRP_EUNSUPPORTED the kind is not known
 * Thread:    any; lock-free.
 * Source:    docs/adr, decision 286.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_journal_op_check(trp_journal_op *op);

/* Answer op: for drivers. format: the reason, NULL if it is done; a longer one is cut.
 *
 * Ownership: op is its maker's again
 * Errors:    none
 * Thread:    any; lock-free, but for what the maker's done does.
 * Source:    docs/adr, decision 286.  Since: 0.2 */
TRP_API void trp_journal_op_finish(trp_journal_op *op, trp_journal_outcome outcome, trp_err err,
                                   const char *format, ...) TRP_PRINTF(4, 5);

/* Submit op and wait for its answer; op->done is used by the call, op->give runs as always.
 *
 * Ownership: borrows driver and op
 * Errors:    op->err
 * Thread:    any; may block until the journal answers; never from a behaviour.
 * Source:    docs/adr, decision 286.  Since: 0.2 */
TRP_API trp_err trp_journal_call(const trp_journal_driver *driver, trp_journal_op *op);

typedef struct trp_journal_memory trp_journal_memory;

/* Make a journal in memory, which outlives systems but not the process: for tests. It answers on
 * the thread that submits, or on one that submits at the same time.
 *
 * Ownership: gives *ret_memory (trp_journal_memory_free, behind all that use it)
 * Errors:    TRP_EINVAL  ret_memory is NULL
 *            TRP_ENOMEM  out of memory
 * Thread:    any; lock-free.
 * Source:    docs/adr, decision 286.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_journal_memory_new(trp_journal_memory **ret_memory);

/* Free it and what is in it; operations that are held are failed. NULL is fine.
 *
 * Ownership: takes memory
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    docs/adr, decision 286.  Since: 0.2 */
TRP_API void trp_journal_memory_free(trp_journal_memory *memory);

/* Borrow the driver, as long as memory. Its close does nothing.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    docs/adr, decision 286.  Since: 0.2 */
TRP_API const trp_journal_driver *trp_journal_memory_driver(trp_journal_memory *memory);

/* Say whether it counts as shared between nodes (1 at first): for tests of what is refused over a
 * node-local store.
 *
 * Errors:    none
 * Thread:    owner, before it is used.
 * Source:    docs/adr, decision 286.  Since: 0.2 */
TRP_API void trp_journal_memory_shared(trp_journal_memory *memory, int shared);

/* Let the operations of this kind (0: of each that changes something) behind the next `skip` ones
 * end with outcome and err, `calls` of them: refused ones change nothing, of failed ones each
 * second has been carried out. 0 calls: none.
 *
 * Errors:    none
 * Thread:    any; takes a lock for a moment.
 * Source:    docs/adr, decision 286.  Since: 0.2 */
TRP_API void trp_journal_memory_fail(trp_journal_memory *memory, trp_journal_kind kind,
                                     uint32_t skip, uint32_t calls, trp_journal_outcome outcome,
                                     trp_err err);

/* With on = 1, keep operations unanswered and not carried out; with 0, carry out what was kept, in
 * its order. The health of its driver says how many wait.
 *
 * Errors:    none
 * Thread:    any; takes a lock for a moment.
 * Source:    docs/adr, decision 286.  Since: 0.2 */
TRP_API void trp_journal_memory_hold(trp_journal_memory *memory, int on);

/* Let it have no room for more than so many bytes of data; what does not fit is refused with
 * TRP_EAGAIN. 0: no bound.
 *
 * Errors:    none
 * Thread:    any; takes a lock for a moment.
 * Source:    docs/adr, decision 286.  Since: 0.2 */
TRP_API void trp_journal_memory_limit(trp_journal_memory *memory, uint64_t bytes);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_JOURNAL_H */
