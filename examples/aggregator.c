/* aggregator.c - the balances of a customer, from several actors: each answer is expected once, and
 * after half a second the retriever answers with what has come. */
#include <stdio.h>
#include <troupe/troupe.h>

static trp_err
account_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t *balance = state;
    *balance = *(const int64_t *)trp_msg_payload(msg) * 100;
    if (*balance != 300) { /* the third one never answers */
        trp_reply(ctx, &trp_i64_type, balance, 0);
    }
    return TRP_OK;
}
static const trp_behaviour account = TRP_BEHAVIOUR_INIT("account", int64_t, account_receive);

struct retriever {
    trp_aggregator aggregator;
    trp_ref asker; /* the sender of an answer is another one */
    int64_t sum, missing;
};

static trp_err
finish(trp_ctx *ctx, struct retriever *r)
{
    trp_tell(ctx, r->asker, &trp_i64_type, &r->sum, 0);
    trp_stop(ctx, trp_self(ctx));
    return TRP_OK;
}

static trp_err
expect_balance(trp_ctx *ctx, void *arg, const trp_msg *msg)
{
    struct retriever *r = arg;
    if (!trp_msg_is(msg, &trp_i64_type)) {
        return TRP_EUNHANDLED; /* perhaps another one expects it */
    }
    r->sum += *(const int64_t *)trp_msg_payload(msg);
    return --r->missing == 0 ? finish(ctx, r) : TRP_OK;
}

static trp_err
expect_timeout(trp_ctx *ctx, void *arg, const trp_msg *msg)
{
    struct retriever *r = arg;
    if (!trp_msg_is(msg, &trp_string_type)) {
        return TRP_EUNHANDLED;
    }
    printf("%d is %s\n", (int)r->missing, (const char *)trp_msg_payload(msg));
    return finish(ctx, r);
}

static trp_err
expect_request(trp_ctx *ctx, void *arg, const trp_msg *msg)
{
    struct retriever *r = arg;
    trp_err err = trp_timer_once(ctx, 1, 500, &trp_string_type, "late", 5);
    r->asker = trp_sender(ctx);
    r->missing = *(const int64_t *)trp_msg_payload(msg);
    for (int64_t i = 1; i <= r->missing && err == TRP_OK; i++) {
        trp_ref ref;
        err = trp_spawn(ctx, &account, NULL, &ref);
        err = err ? err : trp_aggregator_expect_once(ctx, &r->aggregator, expect_balance, r, NULL);
        trp_tell(ctx, ref, &trp_i64_type, &i, 0);
    }
    return err ? err : trp_aggregator_expect(ctx, &r->aggregator, expect_timeout, r, NULL);
}

static trp_err
retriever_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct retriever *r = state;
    trp_err err = trp_aggregator_receive(ctx, &r->aggregator, msg);
    return err == TRP_EUNHANDLED ? expect_request(ctx, r, msg) : err; /* nothing is expected yet */
}
static const trp_behaviour retriever =
    TRP_BEHAVIOUR_INIT("retriever", struct retriever, retriever_receive);

int
main(void)
{
    trp_system *system;
    if (trp_system_new("bank", NULL, &system) != TRP_OK) {
        return 1;
    }
    for (int64_t accounts = 2; accounts <= 3; accounts++) {
        trp_msg *reply;
        trp_ref ref;
        if (trp_system_spawn(system, &retriever, NULL, &ref) != TRP_OK ||
            trp_system_ask(system, ref, &trp_i64_type, &accounts, 0, 5000, &reply) != TRP_OK) {
            return 1;
        }
        printf("%d accounts: %d\n", (int)accounts, (int)*(const int64_t *)trp_msg_payload(reply));
        trp_msg_free(reply);
    }
    trp_system_free(system);
    return 0;
}
