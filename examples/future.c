/* future.c - values that are not there yet: two asks at once, put together, without waiting. */
#include <stdio.h>
#include <troupe/troupe.h>

static trp_err
shop_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t price = *(const int64_t *)trp_msg_payload(msg) * 100;
    (void)state;
    trp_reply(ctx, &trp_i64_type, &price, sizeof price);
    return TRP_OK;
}
static const trp_behaviour shop = { sizeof shop, "shop", .receive = shop_receive };

static int64_t
number(const trp_msg *msg)
{
    return *(const int64_t *)trp_msg_payload(msg);
}
static trp_err
add(void *arg, const trp_outcome *in, trp_promise *out)
{
    int64_t sum = number(in->values[0]) + number(in->values[1]);
    (void)arg;
    return trp_promise_succeed(out, &trp_i64_type, &sum, sizeof sum);
}

int
main(void)
{
    const int64_t bread = 3, milk = 2;
    trp_future *a = NULL, *b = NULL, *both = NULL, *total = NULL;
    const trp_msg *sum;
    trp_system *system;
    trp_ref ref;
    if (trp_system_new("market", NULL, &system) != TRP_OK ||
        trp_system_spawn(system, &shop, NULL, &ref) != TRP_OK) {
        return 1;
    }
    trp_err err = trp_future_ask(system, ref, &trp_i64_type, &bread, sizeof bread, 5000, &a);
    err = err ? err : trp_future_ask(system, ref, &trp_i64_type, &milk, sizeof milk, 5000, &b);
    err = err ? err : trp_future_zip(a, b, &both);
    err = err ? err : trp_future_map(both, add, NULL, NULL, &total);
    err = err ? err : trp_future_result(total, 5000, &sum); /* main is no actor: it may wait */
    if (err == TRP_OK) {
        printf("total %lld\n", (long long)number(sum));
    }
    trp_future_unref(total);
    trp_future_unref(both);
    trp_future_unref(b);
    trp_future_unref(a);
    trp_system_free(system);
    return err == TRP_OK ? 0 : 1;
}
