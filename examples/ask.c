/* ask.c - ask without waiting: the answer comes as a call in the asking actor; forward; refusal. */
#include <stdio.h>
#include <troupe/troupe.h>
static trp_err
expert_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t n = *(const int64_t *)trp_msg_payload(msg), square = n * n;
    (void)state;
    if (n > 1000) {
        trp_reply_failure(ctx, TRP_EINVAL, "too large for me");
    } else {
        trp_reply(ctx, &trp_i64_type, &square, sizeof square);
    }
    return TRP_OK;
}
static const trp_behaviour expert = { sizeof expert, "expert", .receive = expert_receive };
static trp_err
answered(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    (void)state;
    if (err != TRP_OK) {
        printf("refused: %s\n", ((const trp_status_failure *)trp_msg_payload(reply))->reason);
        trp_system_shutdown(trp_ctx_system(ctx));
        return TRP_OK;
    }
    int64_t n = *(const int64_t *)trp_msg_payload(reply);
    printf("%lld\n", (long long)n);
    return trp_ask(ctx, *(trp_ref *)arg, &trp_i64_type, &n, sizeof n, 5000, answered, arg);
}
static trp_err
asker_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    int64_t n = 3;
    trp_err err = trp_spawn(ctx, &expert, NULL, state);
    (void)args;
    return err != TRP_OK ? err : trp_ask(ctx, *(trp_ref *)state, &trp_i64_type, &n, sizeof n, 5000,
                                         answered, state);
}
/* Pass on messages of others; the reply goes to their sender directly. */
static trp_err
asker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_forward(ctx, *(trp_ref *)state, msg);
    return TRP_OK;
}
static const trp_behaviour asker = { sizeof asker, "asker", .state_bytes = sizeof(trp_ref),
                                     .receive = asker_receive, .pre_start = asker_start };
int
main(void)
{
    trp_system *system;
    trp_ref ref;
    if (trp_system_new("questions", NULL, &system) != TRP_OK ||
        trp_system_spawn(system, &asker, NULL, &ref) != TRP_OK ||
        trp_system_await(system, 10000) != TRP_OK) {
        return 1;
    }
    trp_system_free(system);
    return 0;
}
