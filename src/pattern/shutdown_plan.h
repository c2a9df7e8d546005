/* shutdown_plan.h - the phases of a coordinated shutdown: their order and their state. Pure: no
 * clock, no thread, no actor. shutdown.c is the shell.
 */
#ifndef TRPI_PATTERN_SHUTDOWN_PLAN_H
#define TRPI_PATTERN_SHUTDOWN_PLAN_H

#include <stdbool.h>

#include <troupe/config.h>
#include <troupe/shutdown.h>

#define TRPI_SHUTDOWN_NONE UINT32_MAX /* no such phase */

typedef enum trpi_shutdown_state {
    TRPI_SHUTDOWN_WAITS = 0,
    TRPI_SHUTDOWN_RUNS = 1,
    TRPI_SHUTDOWN_IS_DONE = 2,
    TRPI_SHUTDOWN_FAILED = 3, /* a task said so */
    TRPI_SHUTDOWN_LATE = 4,   /* its deadline passed */
    TRPI_SHUTDOWN_SKIPPED = 5 /* no tasks, switched off, or behind a crucial phase that failed */
} trpi_shutdown_state;

typedef struct trpi_shutdown_phase {
    char name[TRP_SHUTDOWN_NAME_BYTES_MAX + 1];
    uint64_t after; /* bits of phases that come before */
    uint32_t timeout_ms;
    bool off;        /* its tasks do not run */
    bool is_crucial; /* recover = off: when it fails or is late, nothing follows */
    trpi_shutdown_state state;
    uint32_t tasks, ended; /* when it began; of those, how many have ended */
    uint64_t began_ms, took_ms;
} trpi_shutdown_phase;

typedef struct trpi_shutdown_task {
    uint64_t id;
    uint32_t phase;
    char name[TRP_SHUTDOWN_NAME_BYTES_MAX + 1];
    enum {
        TRPI_TASK_WAITS,
        TRPI_TASK_IS_DUE,
        TRPI_TASK_RUNS,
        TRPI_TASK_ENDED,
        TRPI_TASK_LATE
    } state;
    trp_err err;
    /* the shell's: function to call, or actor to stop */
    trp_shutdown_fn fn;
    void *arg;
    trp_ref actor;
    bool is_own; /* of the library: called on the shutdown's own actor */
} trpi_shutdown_task;

typedef struct trpi_shutdown_plan {
    trpi_shutdown_phase phases[TRP_SHUTDOWN_PHASES_MAX];
    uint32_t phases_count;
    uint32_t order[TRP_SHUTDOWN_PHASES_MAX]; /* indexes of phases */
    trpi_shutdown_task *tasks;
    uint32_t tasks_count, tasks_room;
    uint64_t last_id;
    bool running, over, is_cut; /* is_cut: a crucial phase ended it */
    uint32_t at;                /* of order: the phase that runs */
    uint32_t told;              /* of order: phases before have been reported by take() */
    bool end_told;
} trpi_shutdown_plan;

/* The phases of troupe/shutdown.h and their timeouts, in order. leave_ms: of the phases in which
 * this node leaves. */
void trpi_shutdown_plan_init(trpi_shutdown_plan *plan, uint32_t default_ms, uint32_t leave_ms);
void trpi_shutdown_plan_fini(trpi_shutdown_plan *plan);
/* The same, with the changes of the configuration (NULL: none); ordered. Errors: TRP_ECONFIG,
 * *ret_error says what and where. */
trp_err trpi_shutdown_plan_read(trpi_shutdown_plan *plan, const trp_config *config,
                                trp_config_error *ret_error);

uint32_t trpi_shutdown_phase_find(const trpi_shutdown_plan *plan, const char *name);
/* Add a phase that depends on no other yet. Errors: TRP_ELIMIT, TRP_EINVAL (the name),
 * TRP_EEXIST. */
trp_err trpi_shutdown_phase_add(trpi_shutdown_plan *plan, const char *name, uint32_t timeout_ms);
/* Put the phases in an order in which each comes after those that it depends on, and otherwise as
 * they were added. TRP_EINVAL: they depend on each other in a circle, which is written into circle
 * ("a -> b -> a").
 */
trp_err trpi_shutdown_plan_order(trpi_shutdown_plan *plan, char *circle, size_t bytes);

/* Gives *ret_task, valid until the next add or remove. Errors: TRP_ESTATE, TRP_ELIMIT, TRP_ENOMEM.
 */
trp_err trpi_shutdown_task_add(trpi_shutdown_plan *plan, uint32_t phase, const char *name,
                               trpi_shutdown_task **ret_task);
bool trpi_shutdown_task_remove(trpi_shutdown_plan *plan, uint64_t id); /* unless it has begun */
trpi_shutdown_task *trpi_shutdown_task_find(const trpi_shutdown_plan *plan, uint64_t id);

/* ---- running --------------------------------------------------------------------------------- */
/* Begin with the phase from. false: it has begun already. */
bool trpi_shutdown_plan_run(trpi_shutdown_plan *plan, uint64_t now_ms, uint32_t from);
void trpi_shutdown_plan_done(trpi_shutdown_plan *plan, uint64_t now_ms, uint64_t id, trp_err err);
void trpi_shutdown_plan_tick(trpi_shutdown_plan *plan, uint64_t now_ms);
/* When the next tick is due; UINT64_MAX: never. */
uint64_t trpi_shutdown_plan_due_ms(const trpi_shutdown_plan *plan);

/* The next effect to carry out, one at a time, until NOTHING. */
typedef enum trpi_shutdown_effect {
    TRPI_SHUTDOWN_NOTHING = 0,
    TRPI_SHUTDOWN_START = 1,  /* *ret_id runs from now on */
    TRPI_SHUTDOWN_REPORT = 2, /* *ret_phase, which had tasks, is over */
    TRPI_SHUTDOWN_END = 3     /* once, the last */
} trpi_shutdown_effect;
trpi_shutdown_effect trpi_shutdown_plan_take(trpi_shutdown_plan *plan, uint64_t *ret_id,
                                             uint32_t *ret_phase);
/* "cluster-exiting late after 5000 ms, waited for: singletons, shards". Returns buffer. */
char *trpi_shutdown_phase_text(const trpi_shutdown_plan *plan, uint32_t phase, char *buffer,
                               size_t bytes);

#endif
