/* philosophers.c - five philosophers and five forks, each a state machine: nobody waits for a fork
 * that another one holds, so that all of them come to eat. */
#include <stdatomic.h>
#include <stdio.h>
#include <troupe/troupe.h>

enum { PHILOSOPHERS = 5, MEALS = 3, THINK_MS = 2, EAT_MS = 2 };
#define TABLE_MESSAGES(M, P)                                                                       \
    M(P, take, TRP_NO_FIELDS)  /* to a fork */                                                     \
    M(P, put, TRP_NO_FIELDS)   /* to a fork */                                                     \
    M(P, taken, TRP_NO_FIELDS) /* from it */                                                       \
    M(P, busy, TRP_NO_FIELDS)  /* from it */
TRP_PROTOCOL(table, TABLE_MESSAGES)

/* ---- a fork ---------------------------------------------------------------------------------- */

enum { FREE, TAKEN };
struct fork_state {
    trp_fsm fsm;
    trp_ref holder;
};

static trp_err
on_free(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct fork_state *fork = state;
    if (table_take_as(msg) == NULL) {
        return TRP_EUNHANDLED;
    }
    fork->holder = trp_sender(ctx);
    trp_err err = trp_fsm_reply(ctx, &fork->fsm, &table_taken_type, &(table_taken){ 0 }, 0);
    return err != TRP_OK ? err : trp_fsm_goto(&fork->fsm, TAKEN);
}

static trp_err
on_taken(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct fork_state *fork = state;
    if (table_take_as(msg) != NULL) {
        return trp_fsm_reply(ctx, &fork->fsm, &table_busy_type, &(table_busy){ 0 }, 0);
    }
    return table_put_as(msg) != NULL && trp_ref_equal(trp_sender(ctx), fork->holder)
               ? trp_fsm_goto(&fork->fsm, FREE)
               : TRP_EUNHANDLED;
}

static const trp_fsm_state fork_states[] = { TRP_FSM_STATE(FREE, on_free, 0),
                                             TRP_FSM_STATE(TAKEN, on_taken, 0) };
static const trp_fsm_edge fork_edges[] = { TRP_FSM_EDGE(FREE, TAKEN, "take"),
                                           TRP_FSM_EDGE(TAKEN, FREE, "put") };
static const trp_fsm_definition fork_definition = {
    .size = sizeof fork_definition, .name = "fork", .states = fork_states, .states_count = 2,
    .edges = fork_edges, .edges_count = 2, .first = FREE
};
TRP_FSM_BEHAVIOUR(fork_behaviour, "fork", struct fork_state, &fork_definition)

/* ---- a philosopher --------------------------------------------------------------------------- */

enum { THINKING, HUNGRY, ONE_TAKEN, DENIED, EATING };
struct philosopher {
    trp_fsm fsm;
    trp_ref forks[2], first; /* first: the one that it has */
    int meals;
};
static atomic_int meals_eaten;

static void
put(trp_ctx *ctx, trp_ref fork)
{
    trp_tell(ctx, fork, &table_put_type, &(table_put){ 0 }, 0);
}

static trp_err
on_thinking(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct philosopher *p = state;
    if (!trp_msg_is(msg, &trp_fsm_state_timeout_type)) {
        return TRP_EUNHANDLED;
    }
    for (int i = 0; i < 2; i++) {
        trp_tell(ctx, p->forks[i], &table_take_type, &(table_take){ 0 }, 0);
    }
    return trp_fsm_goto(&p->fsm, HUNGRY);
}

static trp_err
on_hungry(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct philosopher *p = state;
    p->first = trp_sender(ctx);
    return table_taken_as(msg) != NULL  ? trp_fsm_goto(&p->fsm, ONE_TAKEN)
           : table_busy_as(msg) != NULL ? trp_fsm_goto(&p->fsm, DENIED)
                                        : TRP_EUNHANDLED;
}

static trp_err
on_one_taken(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct philosopher *p = state;
    if (table_taken_as(msg) != NULL) {
        return trp_fsm_goto(&p->fsm, EATING);
    }
    put(ctx, p->first); /* the other one is busy */
    return table_busy_as(msg) != NULL ? trp_fsm_goto(&p->fsm, THINKING) : TRP_EUNHANDLED;
}

static trp_err
on_denied(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct philosopher *p = state;
    if (table_taken_as(msg) != NULL) {
        put(ctx, trp_sender(ctx));
    }
    return trp_fsm_goto(&p->fsm, THINKING);
}

static trp_err
on_eating(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct philosopher *p = state;
    if (!trp_msg_is(msg, &trp_fsm_state_timeout_type)) {
        return TRP_EUNHANDLED;
    }
    put(ctx, p->forks[0]);
    put(ctx, p->forks[1]);
    if (atomic_fetch_add(&meals_eaten, 1) + 1 == PHILOSOPHERS * MEALS) {
        printf("%d philosophers have eaten %d times\n", PHILOSOPHERS, MEALS);
        trp_system_shutdown(trp_ctx_system(ctx));
    }
    return ++p->meals == MEALS ? trp_fsm_stop(ctx, &p->fsm, TRP_FSM_NORMAL, "it is full")
                               : trp_fsm_goto(&p->fsm, THINKING);
}

static trp_err
sit_down(trp_ctx *ctx, void *state, const trp_msg *args)
{
    struct philosopher *p = state;
    const trp_ref *forks = trp_msg_payload(args);
    (void)ctx;
    p->forks[0] = forks[0];
    p->forks[1] = forks[1];
    return TRP_OK;
}

static const trp_fsm_state states[] = {
    TRP_FSM_STATE(THINKING, on_thinking, THINK_MS), TRP_FSM_STATE(HUNGRY, on_hungry, 0),
    TRP_FSM_STATE(ONE_TAKEN, on_one_taken, 0), TRP_FSM_STATE(DENIED, on_denied, 0),
    TRP_FSM_STATE(EATING, on_eating, EAT_MS)
};
static const trp_fsm_edge edges[] = {
    TRP_FSM_EDGE(THINKING, HUNGRY, "time"),       TRP_FSM_EDGE(HUNGRY, ONE_TAKEN, "taken"),
    TRP_FSM_EDGE(HUNGRY, DENIED, "busy"),         TRP_FSM_EDGE(ONE_TAKEN, EATING, "taken"),
    TRP_FSM_EDGE(ONE_TAKEN, THINKING, "busy"),    TRP_FSM_EDGE(DENIED, THINKING, "taken, busy"),
    TRP_FSM_EDGE(EATING, THINKING, "time"),       TRP_FSM_EDGE(EATING, TRP_FSM_END, "full")
};
static const trp_fsm_definition definition = {
    .size = sizeof definition, .name = "philosopher", .states = states, .states_count = 5,
    .edges = edges, .edges_count = 8, .first = THINKING, .init = sit_down
};
TRP_FSM_BEHAVIOUR(philosopher, "philosopher", struct philosopher, &definition)
TRP_FSM_EXPORT(philosopher, &definition)

static trp_err
lay_table(trp_system *system, trp_ref philosophers[PHILOSOPHERS])
{
    trp_ref forks[PHILOSOPHERS];
    trp_err err = trp_protocol_register(&table_protocol);
    for (int i = 0; i < PHILOSOPHERS && err == TRP_OK; i++) {
        err = trp_system_spawn(system, &fork_behaviour, NULL, &forks[i]);
    }
    for (int i = 0; i < PHILOSOPHERS && err == TRP_OK; i++) {
        trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
        trp_ref both[2] = { forks[i], forks[(i + 1) % PHILOSOPHERS] };
        options.args_type = &trp_bytes_type;
        options.args = both;
        options.args_bytes = sizeof both;
        err = trp_system_spawn(system, &philosopher, &options, &philosophers[i]);
    }
    return err;
}

int
main(void)
{
    trp_ref philosophers[PHILOSOPHERS];
    trp_system *system;
    if (trp_system_new("table", NULL, &system) != TRP_OK ||
        lay_table(system, philosophers) != TRP_OK || trp_system_await(system, 20000) != TRP_OK) {
        return 1;
    }
    trp_system_free(system);
    return 0;
}
