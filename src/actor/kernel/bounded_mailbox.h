/* bounded_mailbox.h - private to the room: mailboxes with a bound or an order.
 *
 * A bounded mailbox does not replace the queue of the cell: messages still pass `head`, with its
 * token. It adds admission before the queue (a bound, waiting for room) and an order behind it
 * (priority, control first, the program's), the latter owned by the token's holder like line B. A
 * mailbox with an order alone has no bound: capacity 0.
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
    trpi_mailbox_type *first_default;       /* the replaced default, freed with the others */
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

/* the task of a sender that waits here until there is room */
typedef struct trpi_mailbox_waiter {
    struct trpi_mailbox_waiter *next;
    trpi_task *task;
} trpi_mailbox_waiter;

typedef struct trpi_bounded_mailbox {
    trpi_kind_ops ops; /* first: cell->ops points here; deliver is NULL: the cell is an actor */
    trp_system *system;
    const trpi_mailbox_type *type;
    trp_ref owner;
    uint32_t capacity;                       /* 0: none */
    int (*will_receive)(const trp_msg *msg); /* of its owner's behaviour; NULL: all */
    /* of a member of a shared mailbox; set before publication; cell and links under its lock */
    struct trpi_shared_mailbox *shared;
    trpi_cell *cell; /* NULL: it has left */
    struct trpi_bounded_mailbox *idle_next, *idle_prev;
    _Atomic bool listed; /* as idle; seq_cst: pairs with the token (shared-mailbox-T2) */
    /* written by senders and runner, seq_cst: pairs with full_any (bounded-mailbox-B2) */
    _Alignas(TRPI_CACHE_LINE) _Atomic uint32_t count; /* admitted and not taken out yet */
    _Atomic bool full_any; /* there are pending messages, waiters or senders to notify */
    /* under the lock */
    _Alignas(TRPI_CACHE_LINE) pthread_mutex_t lock;
    pthread_cond_t room;
    trpi_mailbox_pending *pending_first, *pending_last;
    _Atomic uint32_t pending_count; /* written under the lock; relaxed: a hint without */
    uint32_t blocked;               /* threads that wait for room */
    trpi_mailbox_waiter *waiters;
    trpi_ref_map ready;
    bool closed, timer_set;
    /* with the token */
    trpi_msg_list control, plain;
    trpi_heap_item *heap;
    uint32_t heap_count, heap_room;
    uint64_t arrivals;
    void *custom;
    uint32_t inside; /* messages that custom holds, as far as count says */
} trpi_bounded_mailbox;

/* ---- mailbox_type.c: registration and choice ------------------------------------------------- */
trp_err trpi_mailbox_types_new(trp_system *system);
void trpi_mailbox_types_free(trp_system *system);
trpi_mailbox_type *trpi_mailbox_type_find(const trp_system *system, const char *id);
/* Choose and make the mailbox of an acquired cell (MBOX-10); none for the default kind.
 * Errors: TRP_ENOENT, TRP_EINVAL (a requirement is not met), TRP_ENOMEM, those of create. */
trp_err trpi_mailbox_choose(trp_ctx *ctx, trpi_cell *cell, const trp_spawn_options *options);
/* May the actors of a balancing dispatcher share one of it? */
bool trpi_mailbox_type_can_share(const trpi_mailbox_type *type);
/* Undo trpi_mailbox_choose(): the cell will not be published. */
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
/* Return the mailbox of a member of a shared one; NULL: the cell is no member. With the token. */
static inline trpi_bounded_mailbox *
trpi_shared_member(const trpi_cell *cell)
{
    trpi_bounded_mailbox *mailbox =
        trpi_ops_are_bounded(cell->ops) ? (trpi_bounded_mailbox *)(uintptr_t)cell->ops : NULL;

    return mailbox != NULL && mailbox->shared != NULL ? mailbox : NULL;
}
trp_err trpi_bounded_new(trp_ctx *ctx, trpi_cell *cell, const trpi_mailbox_type *type);
/* Return the number of waiting messages, those of a shared mailbox included. */
uint32_t trpi_bounded_waiting(const trpi_bounded_mailbox *mailbox);
/* Return the mailbox of this incarnation, NULL: the default one, or the incarnation has ended.
 * Thread: any, in a run or entered. */
trpi_bounded_mailbox *trpi_bounded_get(const trpi_cell *cell, uint32_t generation);
/* Tell a cell of kind bounded. Takes msg but for TRP_EAGAIN, which only try_only returns. */
trp_err trpi_bounded_tell(trp_ctx *ctx, trpi_cell *cell, trp_ref to, trp_msg *msg, bool try_only);
/* Let the cell of this turn, which told a full mailbox, wait there for room. true: its task was
 * passed on: do not touch the cell. */
bool trpi_bounded_wait(trp_ctx *ctx, trpi_cell *cell);

/* ---- bounded_mailbox.c, mailbox_order.c: the runner ------------------------------------------ */
trpi_take trpi_bounded_take(trp_ctx *ctx, trpi_cell *cell, trp_msg **ret_msg);
/* Adjust the number of admitted messages to those that a custom mailbox still holds: it may have
 * dropped some (bounded-mailbox-B1). */
void trpi_bounded_recount(trp_ctx *ctx, trpi_cell *cell, trpi_bounded_mailbox *mailbox);
/* Free the message taken last, which has been handled. */
void trpi_bounded_done(trp_ctx *ctx);
/* Does a message wait behind the one that was taken last? */
bool trpi_bounded_has_more(trpi_cell *cell);
/* Does more than one message wait behind the queue, without a bound that holds the senders? */
bool trpi_bounded_has_many(const trpi_cell *cell);
/* The cell has ended (its generation is even, its ops are NULL): messages left are dead letters. */
void trpi_bounded_close(trp_ctx *ctx, trpi_cell *cell, trpi_bounded_mailbox *mailbox);
/* Free a mailbox that no thread uses. */
void trpi_bounded_free(void *mailbox);

/* mailbox_order.c: the order behind the queue. Errors of put: TRP_ENOMEM, those of enqueue. */
bool trpi_mailbox_is_ordered(const trpi_bounded_mailbox *mailbox);
trp_err trpi_mailbox_order_put(trpi_bounded_mailbox *mailbox, trp_msg *msg);
trp_msg *trpi_mailbox_order_take(trpi_bounded_mailbox *mailbox);
uint32_t trpi_mailbox_order_count(trpi_bounded_mailbox *mailbox);

/* peek.c; arg of its create(): the options of the registration. */
extern const trp_mailbox_ops trpi_peek_ops;

#endif
