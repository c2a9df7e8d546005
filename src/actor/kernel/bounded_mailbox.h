/* bounded_mailbox.h - private to the room: mailboxes of other kinds than the default one.
 *
 * A box does not replace the queue of the cell: what is told still goes through `head`, with its
 * token. A box is what stands before it (how many are admitted) and behind it (in what order they
 * are taken out), the latter owned by the holder of the token like line B.
 */
#ifndef TRPI_ACTOR_KERNEL_BOUNDED_MAILBOX_H
#define TRPI_ACTOR_KERNEL_BOUNDED_MAILBOX_H

#include <pthread.h>
#include <stdatomic.h>

#include <troupe/mailbox.h>

#include "actor/kernel/dispatcher.h"
#include "actor/kernel/extra.h"
#include "actor/kernel/mailbox.h"
#include "actor/kernel/ref_map.h"
#include "actor/kernel/run.h"
#include "base/atomics.h"

typedef struct trpi_mailbox_type { /* a registered mailbox */
    char id[TRP_MAILBOX_ID_BYTES_MAX + 1];
    trp_mailbox_options options; /* defaults filled in */
    uint32_t capabilities;
} trpi_mailbox_type;

typedef struct trpi_mailbox_types {
    pthread_mutex_t lock;   /* registration; a leaf */
    _Atomic uint32_t count; /* release; entries below it are complete */
    trpi_mailbox_type *_Atomic entries[TRP_MAILBOXES_MAX];
    trpi_mailbox_type *_Atomic serving[16]; /* by bit of the requirement; release */
    trpi_mailbox_type *first_default;       /* replaced, freed with the rest */
} trpi_mailbox_types;

typedef struct trpi_heap_item {
    int64_t order; /* priority, then arrival */
    uint64_t arrival;
    trp_msg *msg;
} trpi_heap_item;

typedef struct trpi_mailbox_pending { /* a message that waits for room */
    struct trpi_mailbox_pending *next;
    trp_msg *msg;
    uint64_t until_ns; /* UINT64_MAX: no limit */
} trpi_mailbox_pending;

/* a sender that is not run until there is room: its task is ours */
typedef struct trpi_mailbox_waiter {
    struct trpi_mailbox_waiter *next;
    trpi_task *task;
} trpi_mailbox_waiter;

typedef struct trpi_bounded_mailbox {
    trpi_kind_ops ops; /* first: cell->ops leads here; deliver is NULL: the cell is an actor */
    trp_system *system;
    const trpi_mailbox_type *type;
    trp_ref owner;
    uint32_t capacity;                       /* 0: none */
    int (*will_receive)(const trp_msg *msg); /* of its owner's behaviour; NULL: all */
    /* the member of a team: set before it is known; cell and links under the team's lock */
    struct trpi_shared_mailbox *shared;
    trpi_cell *cell; /* NULL: it has left */
    struct trpi_bounded_mailbox *idle_next, *idle_prev;
    _Atomic bool listed; /* as idle; seq_cst: a pair with the token (shared-mailbox-T2) */
    /* written by senders and runner, seq_cst: a pair with full_any (bounded-mailbox-B2) */
    _Alignas(TRPI_CACHE_LINE) _Atomic uint32_t count; /* admitted and not taken out yet */
    _Atomic bool full_any;                            /* pending, waiting or to be told ready */
    /* under the lock */
    _Alignas(TRPI_CACHE_LINE) pthread_mutex_t lock;
    pthread_cond_t room;
    trpi_mailbox_pending *pending_first, *pending_last;
    _Atomic uint32_t pending_count; /* written under the lock; relaxed: a hint without */
    uint32_t blocked;               /* threads in the wait */
    trpi_mailbox_waiter *waiters;
    trpi_ref_map ready;
    bool closed, timer_set;
    /* with the token */
    trpi_msg_list control, plain;
    trpi_heap_item *heap;
    uint32_t heap_count, heap_size;
    uint64_t arrivals;
    void *custom;
    uint32_t inside; /* what custom should count */
} trpi_bounded_mailbox;

/* ---- mailbox_type.c: registration and choice ------------------------------------------------- */
trp_err trpi_mailbox_types_new(trp_system *system);
void trpi_mailbox_types_free(trp_system *system);
trpi_mailbox_type *trpi_mailbox_type_find(const trp_system *system, const char *id);
/* MBOX-10. Give the acquired cell the mailbox that is due; none for the default kind.
 * Errors: TRP_ENOENT, TRP_EINVAL (a requirement is not met), TRP_ENOMEM, those of create. */
trp_err trpi_mailbox_choose(trp_ctx *ctx, trpi_cell *cell, const trp_spawn_options *options);
/* May the actors of a balancing dispatcher share one of it? */
bool trpi_mailbox_type_can_share(const trpi_mailbox_type *type);
/* The cell will not live. */
void trpi_mailbox_undo(trp_ctx *ctx, trpi_cell *cell);
enum trpi_kind trpi_mailbox_cell_kind(
    const trpi_cell *cell); /* what to publish an actor's cell as */

/* ---- bounded_mailbox.c: senders -------------------------------------------------------------- */
static inline bool
trpi_ops_are_bounded(const trpi_kind_ops *ops)
{
    extern const char trpi_bounded_name[];

    return ops != NULL && ops->name == trpi_bounded_name;
}
/* The box of a team's member; NULL: the cell is none. With the token. */
static inline trpi_bounded_mailbox *
trpi_shared_member(const trpi_cell *cell)
{
    trpi_bounded_mailbox *mailbox =
        trpi_ops_are_bounded(cell->ops) ? (trpi_bounded_mailbox *)(uintptr_t)cell->ops : NULL;

    return mailbox != NULL && mailbox->shared != NULL ? mailbox : NULL;
}
trp_err trpi_bounded_new(trp_ctx *ctx, trpi_cell *cell, const trpi_mailbox_type *type);
/* Messages that wait in it; of a team: for all of its members. */
uint32_t trpi_bounded_waiting(const trpi_bounded_mailbox *mailbox);
/* The box of this incarnation, NULL: it has none, or is gone. Any thread in a run or bracket. */
trpi_bounded_mailbox *trpi_bounded_get(const trpi_cell *cell, uint32_t generation);
/* Tell a cell of kind boxed. Takes msg but for TRP_EAGAIN, which only try_only gives. */
trp_err trpi_bounded_tell(trp_ctx *ctx, trpi_cell *cell, trp_ref to, trp_msg *msg, bool try_only);
/* The turn's cell told a full box: true: it waits there, its task is not ours any more. */
bool trpi_bounded_wait(trp_ctx *ctx, trpi_cell *cell);

/* ---- bounded_mailbox.c, mailbox_order.c: the runner ------------------------------------------ */
trpi_take trpi_bounded_take(trp_ctx *ctx, trpi_cell *cell, trp_msg **ret_msg);
/* The mailbox behind the queue may have dropped what it had, and says so by its count
 * (bounded-mailbox-B1). */
void trpi_bounded_recount(trp_ctx *ctx, trpi_cell *cell, trpi_bounded_mailbox *mailbox);
/* The message taken last is handled: free it. */
void trpi_bounded_done(trp_ctx *ctx);
/* Does anything wait behind the message that was taken last? */
bool trpi_bounded_has_more(trpi_cell *cell);
/* More than one message waits behind the queue of a boxed cell, and no bound holds its tellers. */
bool trpi_bounded_has_many(const trpi_cell *cell);
/* The cell ends, its generation is even: all that is left is dead; ops are off the cell already. */
void trpi_bounded_close(trp_ctx *ctx, trpi_cell *cell, trpi_bounded_mailbox *mailbox);
/* Nothing uses it any more. */
void trpi_bounded_free(void *mailbox);

/* mailbox_order.c: what is behind the queue. Errors of put: TRP_ENOMEM, those of enqueue. */
bool trpi_mailbox_is_ordered(const trpi_bounded_mailbox *mailbox);
trp_err trpi_mailbox_order_put(trpi_bounded_mailbox *mailbox, trp_msg *msg);
trp_msg *trpi_mailbox_order_take(trpi_bounded_mailbox *mailbox);
uint32_t trpi_mailbox_order_count(trpi_bounded_mailbox *mailbox);

/* peek.c: made with the options of its registration. */
extern const trp_mailbox_ops trpi_peek_ops;

#endif
