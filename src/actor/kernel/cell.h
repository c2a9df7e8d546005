/* cell.h - the cell: what an actor is in memory, byte by byte, and the table of all cells of a
 * system.
 *
 * Why.     128 bytes are all that an idle actor costs. Memory is type-stable: slabs are not
 *          returned while the system lives, so a stale reference always leads to a cell, never to
 *          the void.
 * Shape.   Cache line A is touched by senders, line B by the thread that runs the cell (the runner)
 *          alone. Links to other actors are slots.
 *
 *   A   0 head          8  last message pushed | token (bit 0); exchange by senders
 *       8 stub_next     8  the stub message's next; trpi_cell_stub() makes a message of it
 *      16 sys_head      8  stack of system messages
 *      24 generation    4  odd: alive; relaxed loads by senders, written with the token
 *      28 kind          1
 *      29 overloaded    1  senders slow down
 *      30 lines_spare   2
 *      32 task         16  run_next, home, dispatch, id (= slot)
 *      48 ops           8  kinds other than actor, and routers; NULL for an actor
 *      56 parent        4  slot, 0 none
 *      60 name          4  index in the name registry, 0: automatic
 *   B  64 tail          8  message last taken (the queue's dummy)
 *      72 behaviour     8  what the actor runs
 *      80 state         8
 *      88 extra         8  side block (struct trpi_extra), NULL for most
 *      96 generation_run 4  runner's copy
 *     100 life          1  trpi_life
 *     101 suspended     1  count; > 0: user queue waits
 *     102 attention     1  atomic: sys_head or the front queue has something
 *     103 marks         1  TRPI_MARK_*
 *     104 first_child   4
 *     108 next_sibling  4  written by the parent's runner only
 *     112 prev_sibling  4  written by the parent's runner only
 *     116 dying         4  used by the room life: children that are ending (31 bits);
 *           subscribed       subscribed to the event stream (1 bit)
 *     120 processed     8  messages handled
 *
 * The token. Bit 0 of head set means: no thread runs the cell and it is in no run queue. The thread
 * that clears the bit owns line B and task until it sets the bit again (the protocol is in
 * mailbox.h).
 *
 * Writers. line B, task, ops, parent, name: the holder of the token. generation, kind: the holder
 * of the token, release. next/prev_sibling: the parent's runner (also before the first
 * publication).
 */
#ifndef TRPI_ACTOR_KERNEL_CELL_H
#define TRPI_ACTOR_KERNEL_CELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/actor.h>

#include "actor/kernel/open.h"
#include "base/atomics.h"
#include "sched/sched.h"

struct trpi_extra;  /* actor/kernel/extra.h */
struct trpi_sysmsg; /* actor/kernel/run.h */
struct trpi_cell;

enum trpi_kind {
    TRPI_KIND_NONE = 0,        /* free slot */
    TRPI_KIND_ACTOR = 1,       /* behaviour, life, supervision */
    TRPI_KIND_PROMISE = 2,     /* of an ask: ops of life/ask.c */
    TRPI_KIND_ASSOCIATION = 3, /* proxy of a remote node: ops of nodes.c */
    TRPI_KIND_SERVICE = 4,     /* made by a room above: ops of service.c */
    TRPI_KIND_CHILD_PROXY = 5, /* the proxy of a child on another node (child_proxy.c) */
    TRPI_KIND_ROUTER = 6,      /* an actor whose senders ask routed.c for routees first */
    TRPI_KIND_BOUNDED = 7      /* an actor whose senders ask bounded_mailbox.c for room first */
};

static inline bool
trpi_kind_is_actor(uint8_t kind)
{
    return kind == TRPI_KIND_ACTOR || (kind >= TRPI_KIND_CHILD_PROXY && kind <= TRPI_KIND_BOUNDED);
}

/* Operations of cells that are no actors: these have no behaviour, children or supervisor. */
typedef struct trpi_kind_ops {
    const char *name;
    /* Handle one message; the loop frees it afterwards. Not filtered by generation for kind
     * association. NULL: an actor all the same; these ops concern its senders (kinds router,
     * bounded). */
    void (*deliver)(trp_ctx *ctx, struct trpi_cell *cell, trp_msg *msg);
    /* Handle one system message whose generation matches. false, or NULL: it is handled as a stale
     * one, so that its resources are freed and a watch is answered. */
    bool (*system)(trp_ctx *ctx, struct trpi_cell *cell, struct trpi_sysmsg *sysmsg);
    /* The turn ends (messages may be left). true: treat the cell as overloaded. May be NULL. */
    bool (*turn_end)(trp_ctx *ctx, struct trpi_cell *cell);
    /* The system is being freed and no thread runs: free what the cell owns. May be NULL. */
    void (*drop)(struct trpi_cell *cell);
} trpi_kind_ops;

/* FREE: the mailbox is drained to dead letters. STARTING: the next turn calls the hook start first.
 * User messages are delivered only in RUNNING with suspended == 0. All other states leave the
 * mailbox waiting (trpi_mailbox_park()) and handle system messages only. */
enum trpi_life {
    TRPI_LIFE_FREE = 0,
    TRPI_LIFE_STARTING = 1,
    TRPI_LIFE_RUNNING = 2,
    TRPI_LIFE_STOPPING = 3,   /* waits for the end of its children */
    TRPI_LIFE_RESTARTING = 4, /* waits for the end of its children, then is restarted */
    TRPI_LIFE_RECOVERING = 5  /* suspended itself; replies are handled */
};

enum {
    TRPI_MARK_FRONT = 1,   /* the hook front() has messages that precede the mailbox (unstash) */
    TRPI_MARK_BECOME = 2,  /* receive is the hook receive(), not behaviour->receive */
    TRPI_MARK_TIMEOUT = 4, /* call the hook touched() after each user message (receive timeout) */
    TRPI_MARK_ORPHAN =
        8, /* no parent frees the slot: the run loop does, when the cell goes idle free */
    TRPI_MARK_GUARDED = 0x40,   /* the guard is asked before each user message (guard.h) */
    TRPI_MARK_EXTRA_LIFE = 0xb0 /* bits of the room life */
};

/* Bits of cell->marks that the room life uses. */
enum {
    TRPI_MARK_FAILED = 0x10,  /* suspended by its own failure, waits for the supervisor */
    TRPI_MARK_STARTED = 0x20, /* an instance exists: post_stop will be called */
    TRPI_MARK_CREATED = 0x80  /* pre_start has returned once: from now on post_restart */
};

typedef struct trpi_cell {
    _Alignas(TRPI_CACHE_LINE_PAIR) _Atomic uintptr_t head;
    _Atomic(trp_msg *) stub_next;
    _Atomic(struct trpi_sysmsg *) sys_head;
    _Atomic uint32_t generation;
    _Atomic uint8_t kind;
    _Atomic uint8_t overloaded;
    uint16_t depth; /* elements of the path; written by the room life before publication */
    trpi_task task;
    const trpi_kind_ops *ops;
    uint32_t parent;
    uint32_t name;
    /* line B */
    trp_msg *tail;
    const trp_behaviour *behaviour;
    void *state;
    struct trpi_extra *extra;
    uint32_t generation_run;
    uint8_t life;
    uint8_t suspended;
    _Atomic uint8_t attention;
    uint8_t marks;
    uint32_t first_child;
    uint32_t next_sibling;
    uint32_t prev_sibling;
    uint32_t dying : 31;
    uint32_t subscribed : 1;
    uint64_t processed;
} trpi_cell;

_Static_assert(sizeof(trpi_task) == 16, "task is part of the layout");
_Static_assert(sizeof(trpi_cell) == 128, "a cell is two lines");
_Static_assert(offsetof(trpi_cell, task) == 32, "layout");
_Static_assert(offsetof(trpi_cell, ops) == 48, "layout");
_Static_assert(offsetof(trpi_cell, tail) == 64, "line B starts with tail");
_Static_assert(offsetof(trpi_cell, generation_run) == 96, "layout");
_Static_assert(offsetof(trpi_cell, processed) == 120, "layout");
_Static_assert(sizeof(struct trp_msg) == 32, "header of a message");

static inline uint32_t
trpi_cell_slot(const trpi_cell *cell)
{
    return cell->task.id;
}

/* Are messages delivered to ops, not to a behaviour? With the token. */
static inline bool
trpi_cell_is_special(const trpi_cell *cell)
{
    return cell->ops != NULL && cell->ops->deliver != NULL;
}
/* A sender's hint: is it an actor with the default mailbox that is not overloaded? Reads two bytes
 * at once; relaxed as each of them is. */
static inline bool
trpi_cell_takes_all(const trpi_cell *cell)
{
    typedef uint16_t __attribute__((may_alias)) both;
    static const uint8_t plain[2] = { TRPI_KIND_ACTOR, 0 };

    _Static_assert(offsetof(trpi_cell, overloaded) == offsetof(trpi_cell, kind) + 1, "neighbours");
    return __atomic_load_n((const both *)&cell->kind, __ATOMIC_RELAXED) ==
           *(const both *)(const void *)plain;
}

/* With the token: is it running, without suspension, attention or a mark, so that each message goes
 * straight to its behaviour? Reads four bytes at once; relaxed because of attention. */
static inline bool
trpi_cell_runs(const trpi_cell *cell, const uint8_t marks)
{
    typedef uint32_t __attribute__((may_alias)) four;
    const uint8_t mask[4] = { 0xff, 0xff, 0xff, marks };
    static const uint8_t plain[4] = { TRPI_LIFE_RUNNING, 0, 0, 0 };

    _Static_assert(offsetof(trpi_cell, marks) == offsetof(trpi_cell, life) + 3, "neighbours");
    return (__atomic_load_n((const four *)&cell->life, __ATOMIC_RELAXED) &
            *(const four *)(const void *)mask) == *(const four *)(const void *)plain;
}

static inline bool
trpi_cell_runs_all(const trpi_cell *cell)
{
    return trpi_cell_runs(cell, TRPI_MARK_BECOME | TRPI_MARK_TIMEOUT | TRPI_MARK_GUARDED);
}

/* With the token. release: pairs with the acquire of a router's senders, which read ops (routed.c).
 */
static inline void
trpi_cell_ops_set(trpi_cell *cell, const trpi_kind_ops *ops)
{
    __atomic_store_n(&cell->ops, ops, __ATOMIC_RELEASE);
}

static inline trpi_cell *
trpi_cell_of_task(trpi_task *task)
{
    return (trpi_cell *)(void *)((char *)task - offsetof(trpi_cell, task));
}

static inline trp_ref
trpi_ref_local(uint32_t slot, uint32_t generation)
{
    trp_ref ref = { TRPI_NODE_SELF, slot, generation, 0 };
    return ref;
}

/* Return the ref of a live cell. For its own runner or its parent's. */
static inline trp_ref
trpi_cell_ref(const trpi_cell *cell)
{
    return trpi_ref_local(trpi_cell_slot(cell),
                          atomic_load_explicit(&cell->generation, memory_order_acquire));
}

/* Parent and name are read by any thread (paths). The reader compares the generation before and
 * after, which proves that they are of that incarnation; acquire: the second read of the generation
 * stays behind this load. */
static inline uint32_t
trpi_cell_parent(const trpi_cell *cell)
{
    return __atomic_load_n(&cell->parent, __ATOMIC_ACQUIRE);
}

static inline uint32_t
trpi_cell_name_index(const trpi_cell *cell)
{
    return __atomic_load_n(&cell->name, __ATOMIC_ACQUIRE);
}

/* ---- the table ---------------------------------------------------------------------------------
 * Two levels: directory -> slab. The first slab is small (a system with a few actors costs a page),
 * the others hold TRPI_SLAB_CELLS. Slot 0 is never used. */
#define TRPI_SLAB_SHIFT 12u
#define TRPI_SLAB_CELLS (1u << TRPI_SLAB_SHIFT)
#define TRPI_SLAB_FIRST_CELLS 64u
#define TRPI_CELLS_MAX (100u * 1000u * 1000u)
#define TRPI_SLABS_MAX (TRPI_CELLS_MAX / TRPI_SLAB_CELLS + 2u)

/* Marks in the links of a child, written by its parent's runner. Slots are below TRPI_CELLS_MAX. */
#define TRPI_CHILD_DYING                                                                           \
    0x80000000u /* in prev_sibling: is stopping; counted in the parent's flags */
#define TRPI_CHILD_SURVIVOR 0x80000000u /* in next_sibling: lived before post_restart */
#define TRPI_CHILD_SLOT 0x7fffffffu
_Static_assert(TRPI_CELLS_MAX <= TRPI_CHILD_SLOT, "a slot leaves the top bit free");
/* false: the child has ended, and the parent is about to be notified. */
static inline bool
trpi_child_lives(const trpi_cell *child)
{
    return (atomic_load_explicit(&child->generation, memory_order_acquire) & 1u) != 0;
}
static inline bool
trpi_child_is_dying(const trpi_cell *child)
{
    return (child->prev_sibling & TRPI_CHILD_DYING) != 0;
}

typedef struct trpi_cells trpi_cells;

/* generation_key: random per system; generations follow from it. Errors: TRP_ENOMEM. */
trp_err trpi_cells_new(uint32_t cells_max, uint64_t generation_key, trpi_cells **ret_cells);
void trpi_cells_free(trpi_cells *cells); /* NULL is fine; every thread has ended */
/* Return the cell of a slot; NULL: the slot was never used. Lock-free; any thread. */
trpi_cell *trpi_cells_find(trpi_cells *cells, uint32_t slot);

/* ---- slots: acquire and release ----------------------------------------------------------------
 * Take a free slot. The caller holds the token of the cell, whose line B is reset: life = STARTING,
 * kind still NONE, generation still even; generation_run is what it will be. Then fill in
 * behaviour, extra, parent, name, ops, task.dispatch/home, and either publish or abandon.
 * Errors: TRP_ELIMIT (actors-max), TRP_ENOMEM. ctx: a worker's, or from trpi_enter(). */
trp_err trpi_slot_acquire(trp_ctx *ctx, trpi_cell **ret_cell);
/* Return the ref that the acquired cell will have. */
trp_ref trpi_slot_ref(const trpi_cell *cell);
/* Make the generation valid, and keep the token: the caller schedules the first turn. */
void trpi_slot_reveal(trp_ctx *ctx, trpi_cell *cell, enum trpi_kind kind);
/* Make the generation valid and schedule the first turn. This passes the token on: do not touch the
 * cell afterwards. */
void trpi_slot_publish(trp_ctx *ctx, trpi_cell *cell, enum trpi_kind kind);
/* As publish, but without a turn: the token is given up (promises, proxies: life = RUNNING). */
void trpi_slot_publish_idle(trp_ctx *ctx, trpi_cell *cell, enum trpi_kind kind);
/* Give back a cell that was acquired and not published (its name was taken, no memory...). */
void trpi_slot_abandon(trp_ctx *ctx, trpi_cell *cell);
/* Put the slot of an ended cell (life FREE) on the free list: by the parent's runner, after
 * unlinking. The cell may still be draining. */
void trpi_slot_release(trp_ctx *ctx, uint32_t slot);

#endif
