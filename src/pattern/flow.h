/* flow.h - shared by the files of flows: dataflow.c and dataflow_wait.c. */
#ifndef TRPI_PATTERN_FLOW_H
#define TRPI_PATTERN_FLOW_H

#include <pthread.h>
#include <stdatomic.h>

#include <troupe/dataflow.h>

#include "actor/actor.h"
#include "pattern/coroutine.h"
#include "pattern/executor.h"

/* The flows of a system, an extension of it. */
typedef struct trpi_flows {
    trp_system *system;
    trpi_executor *runs; /* counted */
    uint32_t live_max, idle_max;
    size_t stack_bytes;
    pthread_mutex_t lock; /* guards the rest */
    bool closed;
    trp_flow *first;
    uint32_t live, waiting, idle;
    uint64_t started, failed;
    trpi_stack *stacks; /* idle ones; each record is at the top of its stack */
} trpi_flows;

/* The wait of a suspended flow. */
typedef struct trpi_wait {
    trpi_callback of_future, of_alarm;
    _Atomic uint32_t refs; /* the flow, the turn that registers it, each callback */
    _Atomic bool over;     /* claimed (dataflow-W1) */
    trp_flow *flow;        /* the claimer's */
    trp_err err;           /* written by the claimer */
    trp_err alarm_err;     /* what an alarm means: TRP_OK, it was waited for */
    trp_future *future;    /* the flow's; NULL: none */
    trp_promise *alarm;    /* counted; NULL: none */
    trpi_alarm_id alarm_id;
} trpi_wait;

typedef struct trpi_deferred {
    struct trpi_deferred *next;
    trp_release_fn release;
    void *arg;
} trpi_deferred;

struct trp_flow {
    trpi_guest guest; /* where it jumps to */
    trpi_flows *all;
    trp_flow *before, *after; /* in all->first */
    trpi_stack stack;
    trpi_coroutine *co;
    const char *dispatcher; /* the executor's */
    trp_flow_fn fn;         /* NULL: has been called */
    void *arg;
    trp_release_fn release; /* NULL: nothing to do, or called */
    trp_promise *out;       /* counted */
    bool is_wanted;         /* somebody has the future */
    bool has_jumped;
    trp_err err;
    uint64_t deadline_ns; /* 0: none */
    trpi_deferred *deferred;
    trpi_wait *waiting_for; /* guarded by the lock; the one of the flow */
    trpi_wait *next_wait;   /* from the flow to its turn */
    _Atomic bool is_queued; /* a job of a dispatcher stands for it, unless the threads have ended */
    char name[TRP_FLOW_NAME_BYTES_MAX + 1];
};

/* Let a dispatcher run the next turn; where none does (no memory, or the threads end) it runs here.
 * The caller holds no lock, and does not touch the flow any more. */
void trpi_flow_ready(trp_flow *flow);
/* Is it this flow's function that calls? */
bool trpi_flow_is_here(const trp_flow *flow);
/* Claim the wait, and let the flow go on with err (dataflow-W1). Takes a count. */
void trpi_wait_end(trpi_wait *w, trp_err err);
/* Register what the suspended flow waits for. false: it goes on at once, since the system ends.
 * After true the flow is not the caller's (dataflow-W2). */
bool trpi_wait_begin(trp_flow *flow);

#endif
