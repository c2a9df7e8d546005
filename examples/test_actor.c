/* test_actor.c - how to test an actor: a probe takes the place of its peers. A till adds what is
 * paid and answers the sum; after a minute without a payment it closes. The minute costs nothing.
 */
#include <stdio.h>
#include <troupe/troupe.h>

#define TILL_CENTS(F, S) F(S, i64, cents)
#define TILL_MESSAGES(M, P) M(P, pay, TILL_CENTS) M(P, sum, TILL_CENTS) M(P, closed, TILL_CENTS)
TRP_PROTOCOL(till, TILL_MESSAGES)

struct till {
    int64_t cents;
    trp_ref customer;
};

static trp_err
till_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct till *till = state;

    if (trp_msg_is(msg, &till_pay_type)) {
        till->customer = trp_sender(ctx);
        till->cents += ((const till_pay *)trp_msg_payload(msg))->cents;
        trp_reply(ctx, &till_sum_type, &(till_sum){ till->cents }, 0);
        trp_receive_timeout_set(ctx, 60000);
    } else if (trp_msg_is(msg, &trp_receive_timeout_type)) {
        trp_tell(ctx, till->customer, &till_closed_type, &(till_closed){ till->cents }, 0);
        trp_stop(ctx, trp_self(ctx));
    }
    return TRP_OK;
}

static const trp_behaviour till_behaviour = TRP_BEHAVIOUR_INIT("till", struct till, till_receive);

int
main(void)
{
    trp_testkit_options options = TRP_TESTKIT_OPTIONS_INIT;
    trp_testkit *kit;
    trp_ref till;

    options.clock = TRP_CLOCK_MANUAL;
    if (trp_protocol_register(&till_protocol) != TRP_OK ||
        trp_testkit_open(&options, &kit) != TRP_OK ||
        trp_testkit_spawn(kit, &till_behaviour, NULL, &till) != TRP_OK) {
        return 1;
    }
    trp_probe *customer = trp_testkit_probe(kit);
    for (int64_t sum = 250; sum <= 750; sum += 250) {
        trp_probe_tell(customer, till, &till_pay_type, &(till_pay){ 250 }, 0);
        trp_probe_expect(customer, TRP_TEST_TIME, &till_sum_type, &(till_sum){ sum }, 0);
    }
    TRP_TESTKIT_CHECK(kit, ((struct till *)trp_testkit_state(kit, till))->cents == 750);
    trp_testkit_advance(kit, 59999);
    trp_probe_expect_none(customer, 0);
    trp_testkit_advance(kit, 1);
    trp_probe_expect(customer, TRP_TEST_TIME, &till_closed_type, &(till_closed){ 750 }, 0);
    printf("the till is right\n");
    return trp_testkit_close(kit) == TRP_OK ? 0 : 1;
}
