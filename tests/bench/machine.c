/* machine.c - fsm: what a message costs an actor that is a state machine, and one that is not.
 *
 * Two actors of a kind tell each other a number that counts down, and change between two states at
 * each message. The plain ones switch by a member of their state, as one would without a machine;
 * the machines have a function for each state and go to the other one. Processor time is measured,
 * not elapsed time; both kinds run by turns, and the medians are compared.
 */
#include <time.h>

#include <troupe/fsm.h>

#include "tests/bench/bench.h"

enum { ROUNDS = 9, LEFT = 0, RIGHT = 1 };

typedef struct plain {
    trp_ref peer;
    uint64_t turns[2];
    uint32_t state, zero;
} plain;

typedef struct machine {
    trp_fsm fsm;
    trp_ref peer;
    uint64_t turns[2];
} machine;

/* Tell the next number; the last one ends the round. */
static void
pass_on(trp_ctx *ctx, trp_ref peer, const trp_msg *msg)
{
    int64_t value = *(const int64_t *)trp_msg_payload(msg) - 1;
    if (value < 0) {
        bench_done();
    } else {
        trp_tell(ctx, peer, &trp_i64_type, &value, sizeof value);
    }
}

static trp_err
plain_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    plain *self = state;
    if (trp_msg_is(msg, &trp_bytes_type)) {
        self->peer = *(const trp_ref *)trp_msg_payload(msg);
        return TRP_OK;
    }
    switch (self->state) {
    case LEFT:
        self->turns[LEFT]++;
        self->state = RIGHT;
        break;
    default:
        self->turns[RIGHT]++;
        self->state = LEFT;
        break;
    }
    pass_on(ctx, self->peer, msg);
    return TRP_OK;
}

static trp_err
on_left(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    machine *self = state;
    if (trp_msg_is(msg, &trp_bytes_type)) {
        self->peer = *(const trp_ref *)trp_msg_payload(msg);
        return trp_fsm_stay(&self->fsm);
    }
    self->turns[LEFT]++;
    pass_on(ctx, self->peer, msg);
    return trp_fsm_goto(&self->fsm, RIGHT);
}

static trp_err
on_right(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    machine *self = state;
    self->turns[RIGHT]++;
    pass_on(ctx, self->peer, msg);
    return trp_fsm_goto(&self->fsm, LEFT);
}

static const trp_fsm_state states[] = { TRP_FSM_STATE(LEFT, on_left, 0),
                                        TRP_FSM_STATE(RIGHT, on_right, 0) };
static const trp_fsm_edge edges[] = { TRP_FSM_EDGE(LEFT, RIGHT, NULL),
                                      TRP_FSM_EDGE(RIGHT, LEFT, NULL) };
static const trp_fsm_definition definition = { .size = sizeof definition,
                                               .name = "machine",
                                               .states = states,
                                               .edges = edges,
                                               .states_count = 2,
                                               .edges_count = 2 };
TRP_FSM_BEHAVIOUR(machine_behaviour, "machine", machine, &definition)
static const trp_behaviour plain_behaviour = TRP_BEHAVIOUR_INIT("plain", plain, plain_receive);

static double
cpu_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Processor time of a message, in nanoseconds. */
static double
round_ns(trp_system *system, const trp_behaviour *behaviour, uint64_t messages)
{
    trp_ref one = bench_spawn(system, behaviour), other = bench_spawn(system, behaviour);
    bench_tell_ref(system, one, other);
    bench_tell_ref(system, other, one);
    double start = cpu_ns();
    bench_tell_i64(system, one, (int64_t)messages - 1);
    bench_wait();
    double spent = cpu_ns() - start;
    trp_system_stop_actor(system, one);
    trp_system_stop_actor(system, other);
    return spent / (double)messages;
}

static int
run_fsm(const bench_options *options)
{
    /* The clock of a process may have a resolution of 4 ms only. */
    uint64_t messages = options->count != 0 ? options->count : 6000000;
    trp_system *system = bench_system(options);
    double plains[ROUNDS], machines[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        plains[i] = round_ns(system, &plain_behaviour, messages);
        machines[i] = round_ns(system, &machine_behaviour, messages);
    }
    bench_system_end(system);
    double of_plain = bench_median(plains, ROUNDS), of_machine = bench_median(machines, ROUNDS);
    bench_print("fsm", "plain", of_plain, "ns");
    bench_print("fsm", "machine", of_machine, "ns");
    bench_print("fsm", "ratio", of_machine / of_plain, "x");
    bench_print("fsm", "lost", 0, "messages");
    return 0;
}

const bench_workload bench_machine[] = {
    { "fsm", "2 state machines against 2 plain actors, 9 rounds of 6 M messages", run_fsm },
    { NULL, NULL, NULL },
};
