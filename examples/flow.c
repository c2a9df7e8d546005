/* flow.c - a function written in sequence that asks an actor and waits, without a thread. The
 * outcome of a flow is a future, so flows are made of flows. */
#include <stdio.h>
#include <troupe/troupe.h>

static trp_err
doubler_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t twice = *(const int64_t *)trp_msg_payload(msg) * 2;
    (void)state;
    trp_reply(ctx, &trp_i64_type, &twice, sizeof twice);
    return TRP_OK;
}
static const trp_behaviour doubler = { .size = sizeof(trp_behaviour),
                                       .name = "doubler",
                                       .receive = doubler_receive };
static trp_ref actor;

static trp_err
eightfold(trp_flow *flow, void *arg, trp_promise *out)
{
    int64_t number = *(const int64_t *)arg;
    for (int i = 0; i < 3; i++) { /* each ask needs the answer of the one before */
        trp_err err = trp_flow_ask(flow, actor, &trp_i64_type, &number, sizeof number, 10000,
                                   &trp_i64_type, &number);
        if (err != TRP_OK || number > 1000) {
            trp_flow_fail(flow, TRP_EDATA, "step %d: %s", i + 1, trp_err_name(err));
        }
    }
    return trp_promise_succeed(out, &trp_i64_type, &number, sizeof number);
}

/* Start two flows, and add what they make. */
static trp_err
sum_of_two(trp_flow *flow, void *arg, trp_promise *out)
{
    int64_t *numbers = arg, sum = 0, part = 0;
    for (int i = 0; i < 2; i++) {
        trp_future *made;
        trp_err err =
            trp_flow_start(trp_flow_system(flow), eightfold, &numbers[i], NULL, NULL, &made);
        if (err == TRP_OK) {
            err = trp_flow_read(flow, made, &trp_i64_type, &part); /* waits */
            trp_future_unref(made);
        }
        if (err != TRP_OK) {
            return err;
        }
        sum += part;
    }
    return trp_promise_succeed(out, &trp_i64_type, &sum, sizeof sum);
}

int
main(void)
{
    int64_t numbers[] = { 1, 4, 1, 200 };
    trp_system *system;
    if (trp_system_new("flows", NULL, &system) != TRP_OK ||
        trp_system_spawn(system, &doubler, NULL, &actor) != TRP_OK) {
        return 1;
    }
    for (int i = 0; i < 4; i += 2) {
        const trp_msg *sum;
        trp_future *made;
        if (trp_flow_start(system, sum_of_two, &numbers[i], NULL, NULL, &made) != TRP_OK) {
            return 1;
        }
        trp_err err = trp_future_result(made, 60000, &sum);
        printf("%s %d\n", trp_err_name(err),
               err == TRP_OK ? (int)*(const int64_t *)trp_msg_payload(sum) : 0);
        trp_future_unref(made);
    }
    trp_system_free(system);
    return 0;
}
