/* dispatcher.h - private to the room: the dispatchers of a system, and binding cells to them. */
#ifndef TRPI_ACTOR_KERNEL_DISPATCHER_H
#define TRPI_ACTOR_KERNEL_DISPATCHER_H

#include <pthread.h>
#include <stdatomic.h>

#include <troupe/dispatcher.h>

#include "actor/kernel/run.h"

/* Numbers of the built-in dispatchers: a cell's task.number, a worker's number. */
enum {
    TRPI_DISPATCHER_DEFAULT = 0,
    TRPI_DISPATCHER_SYSTEM = 1,
    TRPI_DISPATCHER_INTERNAL = 6, /* the guardians: one thread for them alone */
    TRPI_DISPATCHER_LOGGING = 7,  /* loggers: a thread each, from the start */
    TRPI_DISPATCHERS_FIXED = 8
};

typedef struct trpi_dispatcher {
    char id[TRP_DISPATCHER_ID_BYTES_MAX + 1];
    /* defaults filled in; mailbox points to mailbox_id or is NULL */
    trp_dispatcher_options options;
    char mailbox_id[TRP_DISPATCHER_ID_BYTES_MAX + 1];
    uint8_t number;
    uint32_t threads_max;
    struct trpi_shared_mailbox *shared; /* BALANCING */
    bool lends, lent;                   /* lent to one router at a time; under the table's lock */
    uint64_t deadline_ns;               /* of a turn; 0: none */
    _Atomic uint32_t actors;            /* relaxed: statistics */
    _Atomic uint32_t turn; /* AFFINITY: thread that gets the next actor, round robin; relaxed */
    /* AFFINITY: threads made so far; release, under the table's lock */
    _Atomic uint32_t homes_count;
    /* SYSTEM: the first is its thread, written before there are actors */
    uint16_t homes[TRP_DISPATCHER_THREADS_CAP_DEFAULT];
} trpi_dispatcher;

typedef struct trpi_job { /* a function to run */
    trpi_call_task call;
    trp_system *system;
    void (*fn)(void *arg);
    void *arg;
    struct trpi_job *next, *prev; /* list of jobs that have not begun; the table's lock */
} trpi_job;

typedef struct trpi_dispatchers {
    /* registration, making of affine threads, the list of jobs; a leaf but for the scheduler's
     * locks and those of shared mailboxes */
    pthread_mutex_t lock;
    _Atomic uint32_t count; /* release; entries below it are complete */
    trpi_dispatcher *entries[TRP_DISPATCHERS_MAX];
    trpi_job *jobs;
} trpi_dispatchers;

/* Errors: TRP_ENOMEM. The scheduler need not exist yet. */
trp_err trpi_dispatchers_new(trp_system *system, const trp_dispatcher_options *standard);
/* Every thread has ended. NULL is fine. */
void trpi_dispatchers_free(trp_system *system);
trpi_dispatcher *trpi_dispatcher_get(const trp_system *system, uint8_t number);
/* Make the threads of the library's own dispatchers, which live as long as the scheduler. Errors:
 * TRP_ENOMEM, TRP_EIO. Before the first actor. */
trp_err trpi_dispatchers_start(trp_system *system);
/* NULL: no such id. Lock-free; any thread. */
trpi_dispatcher *trpi_dispatcher_find(const trp_system *system, const char *id);

/* Bind an acquired cell to a dispatcher: set its task, count it. Errors: as trp_spawn. */
trp_err trpi_dispatcher_join(trp_ctx *ctx, trpi_cell *cell, trpi_dispatcher *dispatcher);
/* Undo join: the cell has ended, or will not be published. With the token. */
void trpi_dispatcher_leave(trp_ctx *ctx, trpi_cell *cell);

/* ---- nested_turn.c: turns on the thread that submits the task -------------------------------- */
void trpi_nested(void *arg, trpi_task *task); /* the scheduler's op */
/* Between these two nested turns wait: locks are held. */
void trpi_nested_hold(trp_ctx *ctx);
void trpi_nested_release(trp_ctx *ctx);
/* A thread that is no actor told a cell that another thread runs: wait until that turn has ended,
 * at most TRPI_NESTED_WAIT_MS. */
void trpi_nested_wait(const trpi_cell *cell);
#define TRPI_NESTED_WAIT_MS 1000u
/* Run one turn, nested in the present work of this thread. */
trpi_run_result trpi_run_nested(trp_ctx *ctx, trpi_task *task);

/* Are its threads a group of the scheduler? */
static inline bool
trpi_dispatcher_has_group(uint32_t kind)
{
    return kind == TRP_DISPATCHER_POOL || kind == TRP_DISPATCHER_BLOCKING ||
           kind == TRP_DISPATCHER_BALANCING;
}

#endif
