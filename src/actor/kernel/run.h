/* run.h - the running actor's view (trp_ctx), telling, system messages. What a turn calls above the
 * kernel, its hooks, is in kernel_ops.h.
 *
 * A turn of a cell (run.c), with its token held:
 *   1. life STARTING: the hook start().
 *   2. before each message, if `attention`: order() for each system message in order (generation
 *      verified; a stale one goes to order_stale()), then, if RUNNING and not suspended and
 *      TRPI_MARK_FRONT, one message of front().
 *   3. user messages, while life == RUNNING and suspended == 0: number below TRPI_TYPE_AUTO_END to
 *      automatic(), all others to trpi_run_receive().
 *   4. life == FREE: what is left is stale: trpi_dead().
 * After each hook the loop reads life, suspended and generation_run again. Hooks run on the cell's
 * thread and own line B. A hook that calls user code does it through trpi_run_guarded(), or sets
 * its own jump.
 */
#ifndef TRPI_ACTOR_KERNEL_RUN_H
#define TRPI_ACTOR_KERNEL_RUN_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

#include <troupe/actor.h>

#include "actor/kernel/cell.h"
#include "actor/kernel/kernel_ops.h"
#include "actor/kernel/msg.h"
#include "actor/kernel/system.h"
#include "actor/kernel/type.h"
#include "sched/sched.h"

#define TRPI_CHAINS 64u         /* entries of a worker's chain table: one bit each in chains_open */
#define TRPI_CHAIN_MSGS_MAX 64u /* a chain so long is pushed */
#define TRPI_TOLD_MAX 1000      /* chained messages of a turn, which then ends */
#define TRPI_SYSMSG_RESERVE 64u /* per thread: sending a system message never fails */
#define TRPI_SLOTS_CACHED 512u  /* free slots that a worker keeps for itself */
#define TRPI_OVERLOADED_OUTSIDE                                                                    \
    2u /* cell->overloaded: what it waits for is no worker, but its network */
#define TRPI_ROUTE_DEPTH_MAX 16u /* routers that a message may pass on one teller's thread */
/* So many turns an overloaded cell has in a row. With the usual 100 messages a turn they are more
 * than one of its tellers tells in one (TRPI_TOLD_MAX): for each that is let in, its queue gets
 * shorter. */
#define TRPI_OVERLOAD_TURNS 16u

/* ---- system messages ----------------------------------------------------------------------------
 * */
/* One line (64 bytes) of a message pool. kinds are those of life/sys.h. What number and pointer
 * mean, and who frees what they lead to, is the kind's. */
typedef struct trpi_sysmsg {
    struct trpi_sysmsg *next;
    uint32_t to_generation;
    uint16_t kind;
    uint16_t flag;
    trp_ref from;
    uint64_t number;
    void *pointer;
} trpi_sysmsg;

/* ---- the running view ------------------------------------------------------------------------ */
/* A chain gathers messages to one cell during a run. first NULL: the cell was told once in this run
 * (that message was pushed at once) and the next one opens the chain. */
typedef struct trpi_chain {
    trpi_cell *cell;
    trp_msg *first;
    trp_msg *last;
    uint32_t count;
    uint32_t run; /* ctx->run when the entry was made; another number: the entry is void */
} trpi_chain;

struct trp_ctx {
    const trp_log_priv_gate *log_gate; /* first: trp_log_wants() reads it in line */
    const trp_msg *msg; /* second: trp_sender() does; the message being handled; NULL in hooks
                           without one */
    trp_system *system;
    trpi_worker *worker; /* NULL: a foreign thread (trpi_enter) */
    trpi_cell *cell;     /* the running cell; NULL on foreign threads and between runs */
    trpi_cells *cells;
    trpi_msg_cache *cache;
    jmp_buf *jump; /* where trp_fail() goes */
    /* whom trp_tell() may tell the short way: TRPI_NODE_SELF; 0, nobody, while something is
     * carried, and with serialize-messages */
    uint32_t fast_path_node;
    trp_ref self;          /* of cell, filled at the start of a turn */
    trpi_handoff *handoff; /* of the worker; of a foreign thread: one that keeps nothing */
    uint32_t run;          /* number of the turn, never 0 */
    uint8_t route_depth;   /* routers that lead to each other, at present (routed.c) */
    uint16_t index;        /* of the worker */
    bool chaining; /* chains are on (pool workers; foreign threads between inbound begin and end) */
    union {        /* what is rarely so, to be looked at at once */
        struct {
            union {
                struct {
                    bool throttled;   /* this turn told an overloaded cell */
                    bool sys_pending; /* the present message left something in sys_rest */
                };
                uint16_t turn_interrupted;
            };
            bool draining; /* this turn is an overloaded cell's */
            bool timed;    /* deadline_ns is not 0 */
        };
        uint32_t unusual;
    };
    uint32_t handoff_slot;   /* TRPI_OFFER_*, or the slot of whom the worker keeps meanwhile */
    uint8_t overload_turns;  /* such turns of it in a row */
    uint16_t throttled_home; /* of that cell */
    uint32_t throttled_msgs; /* messages so told */
    uint16_t budget_home;    /* of whom the last turn that told a thousand told last */
    uint64_t budget_seen;    /* what that worker had handled then */
    trp_ref full_mailbox;    /* the full mailbox that it told; none: none */
    trp_msg *
        unqueued; /* the message being handled, out of its queue (bounded_mailbox.c); NULL: in it */
    int32_t send_budget_left; /* chained messages that this turn may still push */
    uint64_t chains_open;     /* bit i: chains[i] holds messages */
    trpi_stats *stats;        /* count with trpi_count() only */
    /* messages of a turn after its first, of the dispatcher; in a driven run, the next turn's */
    uint32_t turn_more;
    uint64_t deadline_ns; /* of a turn, likewise; 0: none */
    /* messages that this turn may still handle after the present one, before it looks at
     * turn_rest; below 0: it is over */
    int32_t turn_left;
    uint32_t turn_rest; /* with a deadline: messages left after a look at the clock */
    uint64_t turn_until_ns;
    uint64_t turn_processed; /* cell->processed at the start of the turn */
    trpi_sysmsg *sys_rest;   /* taken from sys_head, not yet handled */
    trpi_sysmsg *reserve;    /* TRPI_SYSMSG_RESERVE of them, refilled between runs */
    uint32_t reserve_count;
    void *life;                            /* the room life's per-thread data; NULL at first */
    trp_ctx *foreign_next;                 /* of this thread; foreign only */
    uint32_t foreign_depth, foreign_phase; /* nesting of trpi_enter(); foreign only */
    const struct trp_interaction *carried; /* what is told is part of it; NULL: of none */
    trp_failure failure;                   /* filled by trp_fail before the jump */
    trpi_stats own_stats;   /* of a worker; all foreign threads count in system->foreign_stats */
    struct trpi_slot_list { /* free slots, the oldest at head; workers only */
        uint32_t head, count;
        uint32_t slots[TRPI_SLOTS_CACHED];
    } slots;
    bool in_job;                        /* runs a function of trp_dispatcher_execute(), no cell */
    uint32_t nested_depth, nested_held; /* nested_turn.c: nested turns; why none may begin now */
    trpi_task *nested_first, *nested_last; /* nested_turn.c: tasks that wait for one of these */
    /* Messages that overloaded cells have handled on this worker, and answers to them that were let
     * pass for it, by all workers: see throttle.c. Relaxed. */
    _Atomic uint64_t drained, granted;
    uint32_t credits[TRPI_POOL_MAX]; /* of each pool worker's, what is ours and not used yet */
    jmp_buf loop_jump;
    trpi_chain chains[TRPI_CHAINS];
};

_Static_assert(offsetof(struct trp_ctx, log_gate) == 0, "trp_log_wants() reads it in line");
_Static_assert(offsetof(struct trp_ctx, msg) == sizeof(void *), "trp_sender() reads it in line");
_Static_assert((offsetof(struct trp_ctx, self) + offsetof(trp_ref, slot)) % 8 == 0,
               "trpi_pair_set()");

/* Two neighbouring fields by one store. (Written apart, those of a message are put together in
 * vector registers, which costs more than all the rest of its header; and what was written by two
 * stores and is read by one load has to wait for both to reach the cache.) */
static inline void
trpi_pair_set(void *at, uint32_t low, uint32_t high)
{
    typedef uint64_t __attribute__((may_alias)) pair;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    __atomic_store_n((pair *)at, (uint64_t)high << 32 | low, __ATOMIC_RELAXED);
#else
    __atomic_store_n((pair *)at, (uint64_t)low << 32 | high, __ATOMIC_RELAXED);
#endif
}

/* Is the caller inside a behaviour or hook of this system (then it must not block)? */
bool trpi_in_behaviour(const trp_system *system);

/* Is it a ctx of this thread, which is no worker of its system, and in use? */
bool trpi_ctx_is_foreign_here(const trp_ctx *wanted);

/* What is told from now on is part of this interaction (NULL: of none). Returns the one before. */
const struct trp_interaction *trpi_carry(trp_ctx *ctx, const struct trp_interaction *interaction);

/* ---- telling (trpi_tell, trpi_send: actor.h) ------------------------------------------------- */
/* Push what the ctx has chained: before anything that may block. */
void trpi_chains_flush(trp_ctx *ctx);
/* Make what trpi_tell() would: with the interaction that is carried. NULL: no memory. */
trp_msg *trpi_tell_make(trp_ctx *ctx, trp_ref to, trp_ref sender, const trp_type *type,
                        const void *payload, size_t bytes);
/* A message goes to a cell whose mailbox has an order of its own and no bound: as one that is
 * chained, it may slow the teller, and counts for the end of its turn. */
void trpi_tell_note_unbounded(trp_ctx *ctx, trpi_cell *cell);
/* This thread has told a cell which another one is running: if it is no actor, and the cell is one
 * that runs on the thread that tells it, wait until it has handled that. Without a lock. */
void trpi_tell_wait(trp_ctx *ctx, const trpi_cell *cell);
/* Send a system message to a cell of this system. Never fails. Kept in order with other system
 * messages of the same sender. A slot that never existed: order_stale() is called at
 * once. */
void trpi_sys_tell(trp_ctx *ctx, uint32_t slot, uint32_t generation, uint16_t kind, uint16_t flag,
                   trp_ref from, uint64_t number, void *pointer);
/* The live cell of a local ref, or NULL; a hint unless the caller holds its token. */
trpi_cell *trpi_cell_peek(trp_ctx *ctx, trp_ref ref);

/* The kernel's own: scheduler callbacks, a worker's ctx. */
trpi_run_result trpi_run(void *data, trpi_task *task, uint32_t handoff_slot);
/* run-R5, for the cell of this turn, which told an overloaded one. (throttle.c) */
bool trpi_run_throttle_waived(trp_ctx *ctx, trpi_cell *cell);
void trpi_run_thread(void *arg, trpi_worker *worker);
void trpi_run_sleep(void *arg, trpi_worker *worker, bool all);
uint64_t trpi_run_work(void *data);
void trpi_run_batch(void *data, uint32_t messages);
bool trpi_run_urgent(const trpi_task *task);
/* trp_fail jumped out of the running cell: settle that, and go on with the turn. */
trpi_run_result trpi_run_after_jump(trp_ctx *ctx);
bool trpi_ctx_init_worker(trp_ctx *ctx, trp_system *system, trpi_worker *worker);
void trpi_ctx_fini_worker(trp_ctx *ctx);
/* The kernel's own: the reserve of system messages, filled between runs. */
void trpi_reserve_fill(trp_ctx *ctx);
void trpi_reserve_free(trp_ctx *ctx);
/* Give up a token that was taken outside a turn (a slot that was acquired): idle, or scheduled when
 * something came meanwhile. */
void trpi_run_release(trp_ctx *ctx, trpi_cell *cell);

/* ---- what hooks call, on the cell's thread ------------------------------------ */
/* Hand msg to the behaviour now (receive, counted; failure -> failed()). */
void trpi_run_receive(trp_ctx *ctx, trpi_cell *cell, trp_msg *msg);
/* The same, but a failure is the caller's: what receive returned, or what is in ctx->failure. */
trp_err trpi_run_direct(trp_ctx *ctx, trpi_cell *cell, trp_msg *msg);
/* Call fn(arg): TRP_OK, the error it returned, or what trp_fail() left in ctx->failure (err set, !=
 * OK). */
trp_err trpi_run_guarded(trp_ctx *ctx, trp_err (*fn)(trp_ctx *ctx, void *arg), void *arg);
/* The cell has ended: life = FREE, generation even, extra and state must be gone already. From here
 * tells are dead letters; the loop drains. Then notify watchers and parent. */
void trpi_run_ended(trp_ctx *ctx, trpi_cell *cell);
/* Ask the loop to look at system messages / front messages again before the next user message. */
static inline void
trpi_run_attention(trpi_cell *cell)
{
    atomic_store_explicit(&cell->attention, 1, memory_order_relaxed); /* own line, own thread */
}

#endif
