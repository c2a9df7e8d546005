/* fsm.h - a definition of a state machine, checked, without an actor. */
#ifndef TRPI_PATTERN_FSM_H
#define TRPI_PATTERN_FSM_H

#include <stdbool.h>

#include <troupe/fsm.h>
#include <troupe/log.h>

#define TRPI_FSM_WHY_BYTES 200

/* Check the tables; false: `why`, which names the state, says what is wrong. */
bool trpi_fsm_check(const trp_fsm_definition *definition, char why[TRPI_FSM_WHY_BYTES]);

static inline bool
trpi_fsm_has(const trp_fsm_definition *definition, uint32_t state)
{
    return state < definition->states_count && definition->states[state].name != NULL;
}

/* The key of the timer of time limits, and the seed of those of named timers. */
#define TRPI_FSM_TIMERS 0x66736d2e74696d65u

/* Are events, transitions and timers logged? */
static inline bool
trpi_fsm_is_traced(const trp_ctx *ctx)
{
    const trp_log_priv_gate *gate = *(const trp_log_priv_gate *const *)(const void *)ctx;
    return (__atomic_load_n(&gate->debug, __ATOMIC_RELAXED) & TRP_DEBUG_FSM) != 0 &&
           trp_log_wants(ctx, TRP_LOG_DEBUG);
}

/* May the machine go from one declared state to another one? */
bool trpi_fsm_may_go(const trp_fsm_definition *definition, uint32_t from, uint32_t to);

/* The part of a state that an event of a simple machine needs; two rows take half a cache line. */
#define TRPI_FSM_ROWS_MAX 64
struct trp_fsm_priv_row {
    trp_receive_fn receive;
    uint64_t ways; /* bit T: may go to the state T */
};

/* Has it neither limits nor hooks nor a history, and a function and a bit for each state? */
bool trpi_fsm_is_simple(const trp_fsm_definition *definition);
/* Fill states_count rows. */
void trpi_fsm_rows_fill(const trp_fsm_definition *definition, struct trp_fsm_priv_row *rows);

#endif
