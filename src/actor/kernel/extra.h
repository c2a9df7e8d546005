/* extra.h - the side block: fields of an actor that few actors need.
 *
 * Owned by the holder of the cell's token, like line B. Allocated on first use, freed when the
 * actor ends. Fields of the incarnation (arguments, watchers, restart counts of children) survive a
 * restart; fields of the instance (all from `asks` on) are dropped.
 */
#ifndef TRPI_ACTOR_KERNEL_EXTRA_H
#define TRPI_ACTOR_KERNEL_EXTRA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <troupe/actor.h>

#include "actor/kernel/cell.h"
#include "actor/kernel/ref_map.h"

/* Flag of a message that was stashed: it has been checked before (Terminated). */
#define TRPI_MSG_ADMITTED 0x80000000u

/* A failure that is escalated or sent back with a directive. Reference-counted. */
typedef struct trpi_failure {
    _Atomic uint32_t
        refs; /* 0: static, never freed. relaxed ref, acq_rel unref: the last one frees */
    trp_failure what;
} trpi_failure;

typedef struct trpi_block { /* trp_alloc(): the user's memory follows */
    struct trpi_block *next, *prev;
} trpi_block;

typedef struct trpi_deferred { /* trp_defer() */
    struct trpi_deferred *next;
    void (*fn)(void *arg);
    void *arg;
} trpi_deferred;

typedef struct trpi_level { /* trp_become() */
    struct trpi_level *below;
    trp_receive_fn receive;
} trpi_level;

typedef struct trpi_named_timer {
    struct trpi_named_timer *next;
    uint64_t key;
    uint64_t number;      /* a tick with another number is stale */
    uint64_t id;          /* trpi_timer_add's */
    uint64_t due_ns;      /* of the next tick, monotonic */
    uint32_t interval_ms; /* 0: once */
    trp_msg *msg;         /* told to the behaviour at each tick */
} trpi_named_timer;

typedef struct trpi_msg_list {
    trp_msg *first, *last; /* linked by priv_next */
    uint32_t count;
} trpi_msg_list;

typedef struct trpi_parked { /* a system message that waits until a restart has ended */
    struct trpi_parked *next;
    uint16_t kind, flag;
    trp_ref from;
    uint64_t number;
    void *pointer;
} trpi_parked;

typedef struct trpi_deployed { /* of a remote child: an actor that another node deployed here */
    trp_ref proxy, supervisor;
} trpi_deployed;

typedef struct trpi_extra {
    /* the incarnation's */
    struct trpi_child_proxy *proxy; /* of the proxy of a remote child; else NULL */
    struct trpi_deployed *deployed; /* of a remote child; NULL: the parent supervises it */
    trp_msg *args;                  /* NULL: none */
    trpi_ref_map watching;          /* watched -> NULL; outlives a restart, as in Akka */
    trpi_ref_map watchers;          /* watcher -> its Terminated message, allocated in advance */
    trpi_ref_map restarts;          /* child -> trpi_restarts */
    trpi_failure *why;              /* RESTARTING: the cause; else NULL */
    trp_msg *failed_msg; /* copy of the message that the failure interrupted, for pre_restart */
    trp_ref perpetrator; /* child whose escalated failure made this actor fail */
    trpi_parked *parked, **parked_end;
    uint32_t stash_max; /* 0: unbounded */
    uint32_t restarted; /* number of restarts, for trp_system_tree() */
    bool inactive;      /* trp_deactivate() */
    bool recovers;      /* the restart in progress leaves its children alone (TRP_RECOVER) */
    /* the instance's */
    trpi_ref_map asks;  /* promise -> trpi_pending */
    trpi_level *levels; /* top of the behaviour stack; NULL: the original */
    trpi_msg_list stash, front;
    uint64_t
        stashed_turn; /* processed + 1 when a message was stashed last: that one is in the stash */
    trpi_named_timer *timers;
    uint64_t timers_number;          /* last number given to a timer or receive timeout */
    uint32_t receive_timeout_ms;     /* 0: off */
    uint64_t receive_timeout_id;     /* 0: not armed */
    uint64_t receive_timeout_number; /* of the present arming */
    uint64_t touched_ms;
    trpi_block *blocks;
    trpi_deferred *deferred;
    struct trpi_log_context *log_context; /* NULL: none */
    bool log_receive;                     /* each message is logged (MSG-19) */
    /* of the messages that are handled one in so many begins a trace; 0: none does (sample.c) */
    uint32_t sample_one_in;
    bool sample_alone;  /* the mark BECOME stands for nothing else */
    uint64_t sample_at; /* as many are `processed` before the next that begins one */
} trpi_extra;

/* Return the side block, allocated if need be. NULL: out of memory. Thread: the token's holder. */
trpi_extra *trpi_extra_get(trpi_cell *cell);

/* Return a reference-counted copy; never NULL (without memory a static one: "out of memory"). */
trpi_failure *trpi_failure_new(const trp_failure *what);
trpi_failure *trpi_failure_ref(trpi_failure *failure);
void trpi_failure_unref(trpi_failure *failure); /* NULL is fine */
/* Fill a failure without jumping. */
void trpi_failure_fill(trp_failure *what, trp_ref actor, trp_err err, const char *reason);
/* Fail like trp_fail(), with an error of the library. */
TRP_NORETURN void trpi_life_throw(trp_ctx *ctx, trp_err err, const char *format, ...)
    TRP_PRINTF(3, 4);

static inline void
trpi_msg_list_append(trpi_msg_list *list, trp_msg *msg)
{
    msg->priv_next = NULL;
    if (list->last == NULL) {
        list->first = msg;
    } else {
        list->last->priv_next = msg;
    }
    list->last = msg;
    list->count++;
}

static inline trp_msg *
trpi_msg_list_take(trpi_msg_list *list)
{
    trp_msg *msg = list->first;

    if (msg != NULL) {
        list->first = msg->priv_next;
        list->count--;
        if (list->first == NULL) {
            list->last = NULL;
        }
    }
    return msg;
}

static inline bool
trpi_cell_is_child_proxy(const trpi_cell *cell) /* the token's holder */
{
    return cell->extra != NULL && cell->extra->proxy != NULL;
}

/* The current message is another one than that which was stashed last. */
static inline void
trpi_stash_turn_clear(trpi_cell *cell)
{
    if (cell->extra != NULL) {
        cell->extra->stashed_turn = 0;
    }
}

#endif
