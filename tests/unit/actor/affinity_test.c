/* affinity_test.c - actors that are bound to one thread, and the four queues of that thread. */
#include "tests/unit/actor/dispatch.h"

#include <pthread.h>

/* A4J-29, TRP-04: bound to one thread for life; two of them are shared by many. */
static void
an_affine_actor_never_changes_its_thread(void)
{
    enum { ROUNDS = 30 };
    trp_ref refs[4];
    pthread_t threads[4];

    start(0);
    reset();
    UNIT_EQUAL(add("bound", TRP_DISPATCHER_AFFINITY, 2), TRP_OK);
    for (int i = 0; i < 4; i++) {
        refs[i] = spawn(&noter, "bound");
    }
    for (uint64_t round = 0; round < ROUNDS; round++) {
        for (uint64_t i = 0; i < 4; i++) { /* from outside, and from the others */
            tell(refs[i], &dispatched_pass_type, i, refs[i]);
            tell(refs[(i + 1) % 4], &dispatched_pass_type, (i + 1) % 4, refs[(i + 1) % 4]);
        }
        UNIT_WAIT(atomic_load(&handled) == 8 * (round + 1), 5000);
    }
    for (uint32_t i = atomic_load(&seen_count); i-- > 0;) {
        threads[seen[i]] = seen_thread[i];
    }
    for (uint32_t i = 0; i < atomic_load(&seen_count); i++) {
        UNIT_TRUE(pthread_equal(threads[seen[i]], seen_thread[i]));
    }
    UNIT_EQUAL(info("bound").threads, 2);
    end();
}

/* An affine dispatcher "one" of one thread. */
static void
start_affine(uint32_t throughput)
{
    trp_dispatcher_options options = TRP_DISPATCHER_OPTIONS_INIT;

    start(0);
    reset();
    options.kind = TRP_DISPATCHER_AFFINITY;
    options.threads_min = options.threads_max = 1;
    options.throughput = throughput;
    UNIT_EQUAL(trp_dispatcher_register(system_, "one", &options), TRP_OK);
}

static void
hold_affine_thread(void)
{
    trp_ref gate = spawn(&noter, "one");

    tell(gate, &dispatched_block_type, 0, nobody);
    UNIT_WAIT(atomic_load(&gate_waiting) == 1, 5000);
}

/* MSG-8, SUP-16, A4J-31 (Execution 4): a directive goes before all mail, also that of actors which
 * waited longer; TRP-06, MBOX-15: and before the mail of its own actor. */
static void
directives_are_served_first_on_an_affine_thread(void)
{
    enum { OTHERS = 20 };
    trp_ref others[OTHERS], stopped_one;

    start_affine(0);
    hold_affine_thread();
    stopped_one = spawn(&noter, "one");
    for (uint64_t i = 0; i < OTHERS; i++) {
        others[i] = spawn(&noter, "one");
        tell(others[i], &dispatched_work_type, i + 1, nobody);
    }
    tell(stopped_one, &dispatched_work_type, 99, nobody);
    trp_system_stop_actor(system_, stopped_one);
    atomic_store(&gate_open, 1);
    UNIT_WAIT(atomic_load(&handled) == OTHERS, 5000);
    UNIT_EQUAL(seen[0], 0);          /* what held the thread */
    UNIT_EQUAL(seen[1], UINT64_MAX); /* post_stop, then all the others' mail */
    for (uint32_t i = 2; i < OTHERS + 2; i++) {
        UNIT_EQUAL(seen[i], i - 1); /* and they in their order */
    }
    end();
}

static trp_err
fan_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    dispatched_work work = { 100, TRP_REF_NONE };

    (void)state;
    (void)msg;
    for (int i = 0; i < 4; i++) { /* from the same thread: the inner queue */
        trp_tell(ctx, targets[i], &dispatched_work_type, &work, sizeof(work));
    }
    note(0);
    return TRP_OK;
}
static const trp_behaviour fan = {
    .size = sizeof(trp_behaviour), .name = "fan", .version = 1, .receive = fan_receive
};

/* A4J-30, A4J-31, A4J-32 (Execution 2, 3, 5): the queues of the thread have the same share, whoever
 * came first. */
static void
the_queues_of_an_affine_thread_have_equal_shares(void)
{
    trp_ref fanner, passer, to[4], others[8];
    uint32_t inner = 0, outer = 0, server = 0;

    start_affine(2);
    for (int i = 0; i < 8; i++) {
        if (i < 4) {
            targets[i] = spawn(&noter, "one");
            to[i] = spawn(&noter, "one");
            tell(targets[i], &dispatched_work_type, 1, nobody);
            tell(to[i], &dispatched_work_type, 1, nobody);
        }
        others[i] = spawn(&noter, "one");
        tell(others[i], &dispatched_work_type, 1, nobody);
    }
    fanner = spawn(&fan, "one");
    tell(fanner, &dispatched_work_type, 0, nobody);
    UNIT_WAIT(atomic_load(&handled) == 20, 5000); /* all have started and are idle */
    hold_affine_thread();
    reset_seen();
    tell(fanner, &dispatched_work_type, 0, nobody); /* the first of the thread's own work */
    passer = spawn(&noter, "default"); /* what it passes on comes from another worker: outer */
    for (uint32_t i = 0; i < 8; i++) {
        tell(others[i], &dispatched_work_type, 300, nobody); /* from a thread that is none */
        if (i < 4) {
            tell(passer, &dispatched_pass_type, 200, to[i]);
        }
    }
    UNIT_WAIT(atomic_load(&seen_count) == 4, 5000); /* passed; the thread is held */
    reset_seen();
    atomic_store(&gate_open, 1);
    UNIT_WAIT(atomic_load(&handled) == 36, 5000);
    for (uint32_t i = 0; inner < 4 || outer < 4; i++) {
        inner += seen[i] == 100;
        outer += seen[i] == 200;
        server += seen[i] == 300;
    }
    UNIT_TRUE(server >= 2); /* neither was it last */
    UNIT_TRUE(server <= 6); /* nor were the others behind all of it */
    end();
}

UNIT_BEGIN("affinity")
UNIT(an_affine_actor_never_changes_its_thread)
UNIT(directives_are_served_first_on_an_affine_thread)
UNIT(the_queues_of_an_affine_thread_have_equal_shares)
UNIT_END
