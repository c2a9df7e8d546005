/* create.c - a million actors: alive at once (create: how fast, and what each one costs at rest),
 * and as a tree that sums up and ends (spawn_tree). */
#include "tests/bench/bench.h"

#define TURN 1000

static uint64_t start_ns, end_ns, answers;
static uint64_t goal;

typedef struct maker_state {
    uint64_t made, answered;
} maker_state;

/* Without state: the actor itself is measured. */
static trp_err
leaf_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    trp_tell(ctx, trp_sender(ctx), &trp_i64_type, trp_msg_payload(msg), 8);
    return TRP_OK;
}

static const trp_behaviour leaf = {
    .size = sizeof(trp_behaviour), .name = "leaf", .version = 1, .receive = leaf_receive
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

/* ---- spawn_tree: ten children each; each tells its parent its sum and ends ------------------ */

#define TREE_FAN 10

#define TREE_PART(F, S) F(S, i64, first) F(S, i64, count)
#define TREE_MESSAGES(M, P) M(P, part, TREE_PART)
TRP_PROTOCOL(tree, TREE_MESSAGES)

typedef struct tree_state {
    int64_t sum;
    int32_t left;
} tree_state;

static int64_t tree_sum;

static trp_err tree_receive(trp_ctx *ctx, void *state, const trp_msg *msg);
static const trp_behaviour tree_node = TRP_BEHAVIOUR_INIT("node", tree_state, tree_receive);

static void
tree_answer(trp_ctx *ctx, int64_t sum)
{
    trp_tell(ctx, trp_parent(ctx), &trp_i64_type, &sum, sizeof sum);
    trp_stop(ctx, trp_self(ctx));
}

static trp_err
tree_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    tree_state *self = state;

    if (trp_msg_is(msg, &trp_i64_type)) {
        self->sum += *(const int64_t *)trp_msg_payload(msg);
        if (--self->left == 0) {
            tree_answer(ctx, self->sum);
        }
    } else {
        const tree_part *part = trp_msg_payload(msg);
        tree_part below = { part->first, part->count / TREE_FAN };

        if (part->count == 1) {
            tree_answer(ctx, part->first);
            return TRP_OK;
        }
        self->left = TREE_FAN;
        for (int i = 0; i < TREE_FAN; i++, below.first += below.count) {
            trp_ref child;

            bench_check(trp_spawn(ctx, &tree_node, NULL, &child), "trp_spawn");
            trp_tell(ctx, child, &tree_part_type, &below, sizeof below);
        }
    }
    return TRP_OK;
}

/* The parent of the tree's top. */
static trp_err
tree_owner_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_ref top;

    (void)state;
    if (trp_msg_is(msg, &trp_i64_type)) {
        end_ns = bench_now_ns();
        tree_sum = *(const int64_t *)trp_msg_payload(msg);
        bench_done();
    } else {
        start_ns = bench_now_ns();
        bench_check(trp_spawn(ctx, &tree_node, NULL, &top), "trp_spawn");
        trp_tell(ctx, top, &tree_part_type, trp_msg_payload(msg), sizeof(tree_part));
    }
    return TRP_OK;
}

static const trp_behaviour tree_owner = {
    .size = sizeof(trp_behaviour), .name = "owner", .version = 1, .receive = tree_owner_receive
};

static int
run_spawn_tree(const bench_options *options)
{
    trp_system *system = bench_system(options);
    tree_part all = { 0, 1 };
    int64_t lost;

    goal = options->count != 0 ? options->count : 1000000;
    while ((uint64_t)all.count * TREE_FAN <= goal) { /* a power of ten */
        all.count *= TREE_FAN;
    }
    bench_check(trp_protocol_register(&tree_protocol), "trp_protocol_register");
    trp_system_tell(system, bench_spawn(system, &tree_owner), &tree_part_type, &all, sizeof all);
    bench_wait();
    bench_system_end(system);
    lost = all.count * (all.count - 1) / 2 - tree_sum; /* 0 only when all came back */
    bench_print("spawn_tree", "time", (double)(end_ns - start_ns) / 1e9, "s");
    bench_print("spawn_tree", "lost", (double)lost, "messages");
    return lost == 0 ? 0 : 1;
}

const bench_workload bench_create[] = {
    { "spawn_tree", "10-ary tree to 1 M leaves, the sum comes back", run_spawn_tree },
    { "create", "1 M actors alive at once, a message and an answer each", run_create },
    { NULL, NULL, NULL },
};
