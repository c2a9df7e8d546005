/* supervise.c - a supervisor decides by the failure: go on, begin anew, or end. */
#include <stdio.h>
#include <troupe/troupe.h>
static trp_err
clerk_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t what = *(const int64_t *)trp_msg_payload(msg);
    if (what < 0) {
        trp_fail(ctx, (int32_t)-what, "cannot do %lld", (long long)what);
    }
    *(int64_t *)state += what;
    trp_reply(ctx, &trp_i64_type, state, sizeof(int64_t));
    return TRP_OK;
}
static const trp_behaviour clerk = TRP_BEHAVIOUR_INIT("clerk", int64_t, clerk_receive);
static trp_directive
decide(trp_ctx *ctx, void *state, const trp_failure *failure)
{
    (void)ctx, (void)state;
    return failure->code == 1 ? TRP_RESUME : failure->code == 2 ? TRP_RESTART : TRP_STOP;
}
static const trp_strategy strategy = { sizeof strategy, .decider = decide, .retries_max = 10,
                                       .window_ms = 1000, .quiet = 1 };

static trp_err
boss_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)args;
    return trp_spawn(ctx, &clerk, NULL, state);
}
static trp_err
boss_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_forward(ctx, *(trp_ref *)state, msg);
    return TRP_OK;
}
static const trp_behaviour boss = { sizeof boss, "boss", .state_bytes = sizeof(trp_ref),
    .receive = boss_receive, .pre_start = boss_start, .strategy = &strategy };

int
main(void)
{
    static const int64_t work[] = { 5, -1, 1, -2, 1, -3, 1 };
    trp_system *system;
    trp_ref ref;
    if (trp_system_new("firm", NULL, &system) != TRP_OK ||
        trp_system_spawn(system, &boss, NULL, &ref) != TRP_OK) {
        return 1;
    }
    for (int i = 0; i < 7; i++) {
        trp_msg *sum = NULL; /* a failure sends no answer: a timeout */
        uint32_t ms = work[i] < 0 || i == 6 ? 200 : 10000;
        trp_err err = trp_system_ask(system, ref, &trp_i64_type, &work[i], 8, ms, &sum);
        printf("%lld: %lld\n", (long long)work[i],
               err == TRP_OK ? (long long)*(const int64_t *)trp_msg_payload(sum) : -1LL);
        trp_msg_free(sum);
    }
    trp_system_free(system);
    return 0;
}
