/* crash.c - let it crash: a keeper holds precious state, its worker does risky work. */
#include <stdio.h>
#include <troupe/troupe.h>

static int *volatile wild; /* an invalid pointer */
static trp_err
divide(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t by = *(const int64_t *)trp_msg_payload(msg);
    int64_t answer = by < 0 ? *wild : 1000 / by; /* a bug, and another one: fault-trap */
    (void)state;
    if (by == 13) {
        trp_fail(ctx, 13, "I do not like %d", 13);
    }
    trp_reply(ctx, &trp_i64_type, &answer, sizeof answer);
    return TRP_OK;
}
static const trp_behaviour divider = { sizeof divider, "divider", .receive = divide };

static trp_err
keeper_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)args;
    return trp_spawn(ctx, &divider, NULL, state);
}
static trp_err
keep(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_forward(ctx, *(trp_ref *)state, msg); /* the sender gets the answer, or none */
    return TRP_OK;
}
static const trp_strategy five_a_second = { sizeof five_a_second, 0, 0, NULL, 5, 1000 };
static const trp_behaviour keeper = { sizeof keeper, "keeper", .state_bytes = sizeof(trp_ref),
    .receive = keep, .pre_start = keeper_start, .strategy = &five_a_second };

int
main(void)
{
    static const int64_t questions[] = { 10, 13, 0, -1, 20 };
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *system;
    trp_ref ref;
    int answered = 0;
    options.fault_trap = TRP_FAULT_TRAP_ON;
    if (trp_system_new("crash", &options, &system) != TRP_OK ||
        trp_system_spawn(system, &keeper, NULL, &ref) != TRP_OK) {
        return 1;
    }
    for (int i = 0; i < 5; i++) {
        trp_msg *reply = NULL;
        uint32_t ms = i == 0 || i == 4 ? 10000 : 500; /* a failure sends no answer */
        answered += trp_system_ask(system, ref, &trp_i64_type, &questions[i], 8, ms, &reply) == 0;
        trp_msg_free(reply);
    }
    printf("%d of 5 answered, the keeper outlived the other three\n", answered);
    trp_system_free(system);
    return answered == 2 ? 0 : 1;
}
