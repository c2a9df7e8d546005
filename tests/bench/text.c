/* text.c - the cost of a message of variable length: 100 bytes of text in a struct of fixed size,
 * and as a field of any length. Both write it, tell it, and read its first byte. */
#include <string.h>

#include "tests/bench/bench.h"

#define TURN 1000 /* tells of a producer before it tells itself to go on */
#define TEXT_BYTES 100

#define BENCH_FIXED(F, S) F(S, u64, n) F(S, text128, body)
#define BENCH_SAY(F, S) F(S, u64, n) F(S, text, body)
#define BENCH_MESSAGES(M, P) M(P, fixed, BENCH_FIXED) M(P, say, BENCH_SAY)
TRP_PROTOCOL(bench, BENCH_MESSAGES)

static char text[TEXT_BYTES + 1];
static uint64_t start_ns, end_ns, goal;
static trp_ref reader_ref; /* written before the producer is told to begin */

typedef struct role {
    uint64_t left, seen;
} role;

static trp_err
reader_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    role *self = state;
    char first;

    (void)ctx;
    if (trp_msg_is(msg, &bench_say_type)) {
        const bench_say *say = trp_msg_payload(msg);

        first = trp_msg_text(msg, say->body, NULL)[0];
    } else {
        first = ((const bench_fixed *)trp_msg_payload(msg))->body[0];
    }
    self->seen += first == 'x';
    if (self->seen == goal) {
        end_ns = bench_now_ns();
        bench_done();
    }
    return TRP_OK;
}
static const trp_behaviour reader = TRP_BEHAVIOUR_INIT("reader", role, reader_receive);

static void
tell_fixed(trp_ctx *ctx, uint64_t n)
{
    bench_fixed fixed;

    fixed.n = n;
    memcpy(fixed.body, text, strlen(text) + 1); /* as a program without trust in the text must */
    memset(fixed.body + TEXT_BYTES + 1, 0, sizeof fixed.body - TEXT_BYTES - 1);
    trp_tell(ctx, reader_ref, &bench_fixed_type, &fixed, 0);
}

static void
tell_any(trp_ctx *ctx, uint64_t n)
{
    trp_builder b;
    bench_say *say = TRP_BUILD(&b, bench_say);

    say->n = n;
    trp_build_text(&b, &say->body, text);
    trp_tell(ctx, reader_ref, TRP_BUILT(&b));
    trp_build_free(&b);
}

static void
texts_tell(trp_ctx *ctx, role *self, const trp_msg *msg, void (*tell)(trp_ctx *ctx, uint64_t n))
{
    int64_t value = *(const int64_t *)trp_msg_payload(msg);

    self->left = value != 0 ? (uint64_t)value : self->left;
    for (int i = 0; i < TURN && self->left > 0; i++, self->left--) {
        tell(ctx, self->left);
    }
    value = 0;
    if (self->left > 0) {
        trp_tell(ctx, trp_self(ctx), &trp_i64_type, &value, sizeof value);
    }
}

static trp_err
fixed_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    texts_tell(ctx, state, msg, tell_fixed);
    return TRP_OK;
}
static const trp_behaviour fixed_producer = TRP_BEHAVIOUR_INIT("fixed", role, fixed_receive);

static trp_err
any_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    texts_tell(ctx, state, msg, tell_any);
    return TRP_OK;
}
static const trp_behaviour any_producer = TRP_BEHAVIOUR_INIT("any", role, any_receive);

static int
text_run(const char *name, const bench_options *options, const trp_behaviour *producer)
{
    trp_system *system = bench_system(options);

    memset(text, 'x', TEXT_BYTES);
    bench_check(trp_protocol_register(&bench_protocol), "protocol");
    goal = options->count != 0 ? options->count : 10000000;
    reader_ref = bench_spawn(system, &reader);
    start_ns = bench_now_ns();
    bench_tell_i64(system, bench_spawn(system, producer), (int64_t)goal);
    bench_wait();
    bench_system_end(system);
    return bench_print_rate(name, goal, start_ns, end_ns, "messages/s", 0);
}

static int
run_fixed(const bench_options *options)
{
    return text_run("text_fixed", options, &fixed_producer);
}

static int
run_any(const bench_options *options)
{
    return text_run("text_any", options, &any_producer);
}

const bench_workload bench_text[] = {
    { "text_fixed", "count with 100 bytes of text in a fixed struct, 10 M times", run_fixed },
    { "text_any", "the same as a text of any length", run_any },
    { NULL, NULL, NULL },
};
