/* run.h - the context of a running actor (trp_ctx), telling, system messages. The hooks, which a
 * turn calls in rooms above the kernel, are in kernel_ops.h.
 *
 * A turn of a cell (run.c), with its token held:
 *   1. life STARTING: the hook start().
 *   2. before each message, if `attention`: order() for each system message in order (generation
 *      verified; a stale one goes to order_stale()), then, if RUNNING and not suspended and
 *      TRPI_MARK_FRONT, one message of front().
 *   3. user messages, while life == RUNNING and suspended == 0: number below TRPI_TYPE_AUTO_END to
 *      automatic(), all others to trpi_run_receive().
 *   4. life == FREE: all messages left are stale: trpi_dead().
 * After each hook the loop reads life, suspended and generation_run again. Hooks run on the cell's
 * thread and own line B. A hook calls user code through trpi_run_guarded(), or sets its own jump.
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
#define TRPI_CHAIN_MSGS_MAX 64u /* a chain of this length is pushed */
#define TRPI_TOLD_MAX 1000      /* the send budget: chained messages of a turn, which then ends */
#define TRPI_SYSMSG_RESERVE 64u /* per thread: sending a system message never fails */
#define TRPI_SLOTS_CACHED 512u  /* free slots that a worker caches */
#define TRPI_OVERLOADED_OUTSIDE 2u /* cell->overloaded: it waits for a network, not for a worker */
#define TRPI_ROUTE_DEPTH_MAX 16u   /* routers that a message may pass on one sender's thread */
/* Turns in a row of an overloaded cell. With the usual 100 messages a turn they handle more than
 * one sender tells in a turn (TRPI_TOLD_MAX): its queue gets shorter with each sender that runs. */
#define TRPI_OVERLOAD_TURNS 16u

/* ---- system messages ----------------------------------------------------------------------------
 * */
/* A system message: a block of one line (64 bytes). kind: see life/sys.h; it defines the meaning of
 * number and pointer, and the ownership of the object behind pointer. */
typedef struct trpi_sysmsg {
    struct trpi_sysmsg *next;
    uint32_t to_generation;
    uint16_t kind;
    uint16_t flag;
    trp_ref from;
    uint64_t number;
    void *pointer;
} trpi_sysmsg;

/* ---- the context ----------------------------------------------------------------------------- */
/* A chain batches messages to one cell during a run. first NULL: the cell was told once in this run
 * (that message was pushed at once) and the next one opens the chain. */
typedef struct trpi_chain {
    trpi_cell *cell;
    trp_msg *first;
    trp_msg *last;
    uint32_t count;
    uint32_t run; /* ctx->run when the entry was made; with another number it is invalid */
} trpi_chain;

/* Messages of the running actor to one of another node, which are gathered as records without the
 * token of the proxy (in_place.c). proxy NULL: there are none. */
typedef struct trpi_gather {
    trp_ref to;
    const trp_type *type;    /* NULL: none, or messages that carry others */
    const trp_type *carrier; /* of those: records have their wire form; else NULL */
    uint8_t *at, *end;       /* of the next record, and of the room that was granted */
    uint8_t *records;        /* TRPI_GATHER_BYTES, made at first use */
    trpi_cell *proxy;
    size_t granted;
    uint32_t count;
    uint32_t last_bytes; /* with carrier: of the record before */
} trpi_gather;

/* The state of one turn; a nested turn saves and restores it whole (nested_turn.c). */
typedef struct trpi_turn {
    union { /* rare conditions, tested together */
        struct {
            union {
                struct {
                    bool throttled;   /* this turn told an overloaded cell */
                    bool sys_pending; /* the present message left a system message in sys_rest */
                };
                uint16_t interrupted;
            };
            bool draining; /* this turn is an overloaded cell's */
            bool timed;    /* deadline_ns is not 0 */
        };
        uint32_t unusual;
    };
    /* messages that it may still handle after the present one, before it uses rest; below 0: it is
     * over */
    int32_t left;
    uint32_t more; /* messages after the first one: of the dispatcher; driven: of the next turn */
    int32_t send_budget_left; /* chained messages that it may still push */
    uint64_t processed;       /* cell->processed at its start */
    trpi_sysmsg *sys_rest;    /* taken from sys_head, not yet handled */
    /* the message being handled, if it is out of its queue (bounded_mailbox.c); else NULL */
    trp_msg *unqueued;
    uint32_t throttled_msgs; /* messages that it told overloaded cells */
    uint16_t throttled_home; /* worker of the overloaded cell that it told */
    uint8_t overload_turns;  /* turns in a row of an overloaded cell */
    uint8_t route_depth;     /* nested routers at present (routed.c) */
    trp_ref full_mailbox;    /* owner of the full mailbox that it told; none: none */
    uint64_t deadline_ns;    /* of a turn of this dispatcher; 0: none */
    uint64_t until_ns;       /* with a deadline: its end */
    uint32_t rest;           /* with a deadline: messages left, each after a read of the clock */
} trpi_turn;

struct trp_ctx {
    const trp_log_priv_gate *log_gate; /* first: trp_log_wants() reads it inline */
    /* second: trp_sender() reads it inline; the message being handled; NULL in hooks without one */
    const trp_msg *msg;
    trp_system *system;
    trpi_worker *worker; /* NULL: a foreign thread (trpi_enter) */
    trpi_cell *cell;     /* the running cell; NULL on foreign threads and between runs */
    trpi_cells *cells;
    trpi_msg_cache *cache;
    jmp_buf *jump; /* target of trp_fail() */
    /* node whose actors trp_tell() tells by the fast path: TRPI_NODE_SELF; 0: none, while an
     * trailer is carried, and with serialize-messages */
    uint32_t fast_path_node;
    trp_ref self;          /* of cell, filled at the start of a turn */
    trpi_handoff *handoff; /* of the worker; of a foreign thread: an empty one */
    uint32_t run;          /* number of the turn, never 0 */
    uint16_t index;        /* of the worker */
    bool chaining; /* chains are on (pool workers; foreign threads between inbound begin and end) */
    trpi_turn turn;
    uint32_t handoff_slot;    /* TRPI_HANDOFF_*, or the slot of the cell that the worker retains */
    uint16_t budget_home;     /* worker of the last receiver when the send budget was used up */
    uint64_t budget_seen;     /* messages that this worker had handled then */
    uint64_t chains_open;     /* bit i: chains[i] holds messages, or its proxy does (in_place.c) */
    uint64_t in_place_bursts; /* bit i: a run told the proxy of chains[i] several messages */
    trpi_stats *stats;        /* written by trpi_count() only */
    trpi_sysmsg *reserve;     /* TRPI_SYSMSG_RESERVE of them, refilled between runs */
    uint32_t reserve_count;
    void *life;                            /* per-thread data of the room life; NULL at first */
    trp_ctx *foreign_next;                 /* of this thread; foreign only */
    uint32_t foreign_depth, foreign_phase; /* nesting of trpi_enter(); foreign only */
    const trpi_trailer *carried;           /* what told messages carry on (trailer.c), or NULL */
    trp_failure failure;                   /* filled by trp_fail before the jump */
    trpi_stats own_stats;   /* of a worker; all foreign threads count in system->foreign_stats */
    struct trpi_slot_list { /* free slots, the oldest at head; workers only */
        uint32_t head, count;
        uint32_t slots[TRPI_SLOTS_CACHED];
    } slots;
    bool in_job;                           /* runs a call (trpi_call_task), no cell */
    uint32_t nested_depth, nested_held;    /* nested_turn.c: nested turns; locks that forbid one */
    trpi_task *nested_first, *nested_last; /* nested_turn.c: tasks that wait for a nested turn */
    /* Messages that overloaded cells have handled on this worker, and credit for answers to them
     * that all workers took: see throttle.c. Relaxed. */
    _Atomic uint64_t drained, granted;
    uint32_t credits[TRPI_POOL_MAX]; /* unused credit that this worker took from each pool worker */
    jmp_buf loop_jump;
    /* 16: elsewhere GCC computes an entry's address twice, three instructions a tell */
    _Alignas(16) trpi_chain chains[TRPI_CHAINS];
    trpi_gather gather;
    /* The next message of this cell is to be timed, if a turn comes to it in its rare part
     * (run.c:turn_timed). slot 0: none. */
    struct {
        uint32_t slot, generation;
        uint64_t number;
        void (*fn)(void *arg, uint64_t number, uint64_t ns);
        void *arg;
    } timed;
};

_Static_assert(offsetof(struct trp_ctx, log_gate) == 0, "trp_log_wants() reads it inline");
_Static_assert(offsetof(struct trp_ctx, msg) == sizeof(void *), "trp_sender() reads it inline");
_Static_assert((offsetof(struct trp_ctx, self) + offsetof(trp_ref, slot)) % 8 == 0,
               "trpi_pair_set()");

/* Write two neighbouring fields by one store. (With two stores the compiler combines the fields of
 * a message in vector registers, which costs more than the rest of its header; and a load that
 * spans two stores waits for both to reach the cache.) */
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

/* Borrow the ctx that this thread has in use, of any system; NULL: none. */
trp_ctx *trpi_ctx_running(void);
/* Is it a ctx in use of this thread, which is no worker of its system? */
bool trpi_ctx_is_foreign_here(const trp_ctx *wanted);

/* ---- trailer.c ---- */
/* Let messages told from now on carry this on (NULL: nothing). Return what they carried before. */
const trpi_trailer *trpi_carry(trp_ctx *ctx, const trpi_trailer *trailer);
/* Make a message for later: part of the trace that is carried, if what is handled is no such
 * message itself (an actor that sets its timer at each tick would never leave its trace). NULL: no
 * memory. */
trp_msg *trpi_timed_make(trp_ctx *ctx, trp_ref to, trp_ref sender, const trp_type *type,
                         const void *payload, size_t bytes);
/* Combine what each of two carries, the first one before the second. NULL: neither carries any;
 * else the one or the other, or *room. */
const trpi_trailer *trpi_trailer_join(const trpi_trailer *first, const trpi_trailer *second,
                                      trpi_trailer *room);
/* The trailer of a handling that follows that of *first: below it, with a span of its own. */
void trpi_trailer_below(trp_system *system, const trpi_trailer *first, trpi_trailer *ret_below);
/* Let msg, a copy of what was handled as *first (NULL: in no trace), be handled again: in the same
 * trace, below that handling, told now. Takes msg, returns it or what replaces it. */
trp_msg *trpi_trailer_again(trp_ctx *ctx, const trpi_trailer *first, trp_msg *msg);
/* The trailer of the handling of msg on behalf of one that was kept; in *room. NULL: none. */
const trpi_trailer *trpi_trail_below(const trp_ctx *ctx, const trpi_trail *trail,
                                     const trp_msg *msg, trpi_trailer *room);
/* The handling of a message with a trailer: what it carries is carried on between the two, and the
 * hop of its trace is kept. A jump skips nothing of it: fn runs inside trpi_run_guarded(). */
typedef struct trpi_handling {
    const trpi_trailer *trailer, *before;
    uint64_t begun_ns; /* of a trace */
} trpi_handling;
/* Let the next messages told be those that arrive from another node: with the span that they have.
 * Return what was carried before. */
const trpi_trailer *trpi_carry_arrived(trp_ctx *ctx, const trpi_traced *traced, trpi_trailer *room);
/* The same for those that are copies of msg, on its way: of what it carries. */
const trpi_trailer *trpi_carry_along(trp_ctx *ctx, const trp_msg *msg, trpi_trailer *room);
trpi_handling trpi_handling_begin(trp_ctx *ctx, const trpi_trailer *trailer);
void trpi_handling_end(trp_ctx *ctx, const trpi_handling *handling, const trp_msg *msg,
                       trp_err err);

/* ---- telling (trpi_tell, trpi_send: actor.h) ------------------------------------------------- */
/* Push all chains of the ctx: before anything that may block. */
void trpi_chains_flush(trp_ctx *ctx);
/* entity.c: trpi_entity_ops. left: true, the message was taken over. */
bool trpi_entity_left(trp_ctx *ctx, trp_ref to, const trp_msg *msg);
void trpi_entity_ending(trp_ctx *ctx, trp_ref self, bool failed);
uint32_t trpi_entity_arrived(trp_ctx *ctx, trp_ref to, trp_ref sender, const trpi_carrier *what,
                             uint32_t count);
/* tell.c: queue msg for a cell of this system, or route it. Takes msg. */
void trpi_tell_deliver(trp_ctx *ctx, trpi_cell *cell, trp_ref to, trp_msg *msg);
/* Make the message that trpi_tell() would tell, with the carried interaction. NULL: no memory. */
trp_msg *trpi_tell_make(trp_ctx *ctx, trp_ref to, trp_ref sender, const trp_type *type,
                        const void *payload, size_t bytes);
/* Account for a message to an unbounded mailbox with an order of its own: like a chained one it may
 * throttle the sender, and uses its send budget. */
void trpi_tell_note_unbounded(trp_ctx *ctx, trpi_cell *cell);
/* This thread has told a cell that another thread is running: if this is no actor's thread, and the
 * cell belongs to the calling-thread dispatcher, wait until that turn has ended. Without a lock. */
void trpi_tell_wait(trp_ctx *ctx, const trpi_cell *cell);
/* Send a system message to a cell of this system. Never fails. In order with other system messages
 * of the same sender. For a slot that never existed order_stale() is called at once. */
void trpi_sys_tell(trp_ctx *ctx, uint32_t slot, uint32_t generation, uint16_t kind, uint16_t flag,
                   trp_ref from, uint64_t number, void *pointer);
/* Return the live cell of a local ref, or NULL; a hint unless the caller holds its token. */
trpi_cell *trpi_cell_peek(trp_ctx *ctx, trp_ref ref);

/* Used by the kernel only: callbacks of the scheduler, a worker's ctx. */
trpi_run_result trpi_run(void *data, trpi_task *task, uint32_t handoff_slot);
/* Run a call: a task whose id is 0. */
trpi_run_result trpi_run_call(trp_ctx *ctx, trpi_task *task);
/* May the cell of this turn, which told an overloaded one, go on without deferral? (run-R5,
 * throttle.c) */
bool trpi_run_throttle_waived(trp_ctx *ctx, trpi_cell *cell);
void trpi_run_thread(void *arg, trpi_worker *worker);
void trpi_run_sleep(void *arg, trpi_worker *worker, bool all);
uint64_t trpi_run_work(void *data);
void trpi_run_batch(void *data, uint32_t messages);
bool trpi_run_urgent(const trpi_task *task);
/* trp_fail() jumped out of the running cell: report the failure, and go on with the turn. */
trpi_run_result trpi_run_after_jump(trp_ctx *ctx);
bool trpi_ctx_init_worker(trp_ctx *ctx, trp_system *system, trpi_worker *worker);
void trpi_ctx_fini_worker(trp_ctx *ctx);
/* Used by the kernel only: the reserve of system messages, filled between runs. */
void trpi_reserve_fill(trp_ctx *ctx);
void trpi_reserve_free(trp_ctx *ctx);
/* Give up a token that was taken outside a turn (of an acquired slot): the cell goes idle, or is
 * scheduled if a message came meanwhile. */
void trpi_run_release(trp_ctx *ctx, trpi_cell *cell);

/* ---- called by hooks, on the cell's thread --------------------------------------------------- */
/* Deliver msg to the behaviour now (receive, counted; failure -> failed()). */
void trpi_run_receive(trp_ctx *ctx, trpi_cell *cell, trp_msg *msg);
/* The same, but the caller handles a failure: return receive's error, or that of ctx->failure. */
trp_err trpi_run_direct(trp_ctx *ctx, trpi_cell *cell, trp_msg *msg);
/* Call fn(arg) and catch its failure: return TRP_OK, its error, or the error of ctx->failure that
 * trp_fail() has filled. */
trp_err trpi_run_guarded(trp_ctx *ctx, trp_err (*fn)(trp_ctx *ctx, void *arg), void *arg);
/* End the cell: life = FREE, generation even; extra and state must be freed already. From now on
 * tells are dead letters; the loop drains the mailbox. The caller then notifies watchers and
 * parent. */
void trpi_run_ended(trp_ctx *ctx, trpi_cell *cell);
/* Make the loop handle system messages and front messages before the next user message. */
static inline void
trpi_run_attention(trpi_cell *cell)
{
    atomic_store_explicit(&cell->attention, 1, memory_order_relaxed); /* own line, own thread */
}

#endif
