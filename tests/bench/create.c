/* create.c - a million actors alive at once: how fast, and what each one costs at rest. */
#include "tests/bench/bench.h"

#define TURN 1000

static uint64_t start_ns, end_ns, answers;
static uint64_t goal;

typedef struct maker_state {
    uint64_t made, answered;
} maker_state;

/* Without state: what is counted is the actor. */
static trp_err
leaf_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    trp_tell(ctx, trp_sender(ctx), &trp_i64_type, trp_msg_payload(msg), 8);
    return TRP_OK;
}

static const trp_behaviour leaf = {
    sizeof(trp_behaviour), "leaf", 1, 0, leaf_receive, NULL, NULL, NULL, NULL, NULL, NULL
};

static void
make_some(trp_ctx *ctx, maker_state *self)
{
    for (int i = 0; i < TURN && self->made < goal; i++) {
        int64_t value = 1;
        trp_ref child;

        bench_check(trp_spawn(ctx, &leaf, NULL, &child), "trp_spawn");
        trp_tell(ctx, child, &trp_i64_type, &value, sizeof value);
        self->made++;
    }
    if (self->made < goal) {
        trp_tell(ctx, trp_self(ctx), &trp_bytes_type, NULL, 0);
    }
}

static trp_err
maker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    maker_state *self = state;

    if (trp_msg_is(msg, &trp_bytes_type)) {
        if (self->made == 0) {
            start_ns = bench_now_ns();
        }
        make_some(ctx, self);
    } else if (++self->answered == goal) {
        end_ns = bench_now_ns();
        answers = self->answered;
        bench_done();
    }
    return TRP_OK;
}

static const trp_behaviour maker = TRP_BEHAVIOUR_INIT("maker", maker_state, maker_receive);

static int
run_create(const bench_options *options)
{
    trp_system *system = bench_system(options);
    double bytes;
    size_t before;
    trp_ref ref;

    goal = options->count != 0 ? options->count : 1000000;
    bench_check(trp_system_spawn(system, &maker, NULL, &ref), "trp_system_spawn");
    before = bench_rss_bytes();
    trp_system_tell(system, ref, &trp_bytes_type, NULL, 0);
    bench_wait();
    bytes = ((double)bench_rss_idle_bytes() - (double)before) / (double)goal;
    bench_print("create", "bytes_per_live_actor", bytes, "bytes");
    bench_print("create", "actors_per_gib", 1024.0 * 1024.0 * 1024.0 / bytes, "actors");
    bench_system_end(system);
    return bench_print_rate("create", goal, start_ns, end_ns, "actors/s", goal - answers);
}

const bench_workload bench_create[] = {
    { "create", "1 M actors alive at once, a message and an answer each", run_create },
    { NULL, NULL, NULL },
};
