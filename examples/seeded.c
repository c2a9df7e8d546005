/* seeded.c - find the order of events that breaks a program: a stock that two buyers race for. */
#include <stdio.h>
#include <troupe/troupe.h>

static trp_err
stock_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t *sold = state;
    if (trp_msg_is(msg, &trp_i64_type)) {
        *sold += *(const int64_t *)trp_msg_payload(msg); /* without a look at what is left */
    }
    trp_reply(ctx, &trp_i64_type, sold, sizeof *sold);
    return TRP_OK;
}
static const trp_behaviour stock = TRP_BEHAVIOUR_INIT("stock", int64_t, stock_receive);

static trp_err
buyer_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const int64_t one = 1;
    trp_ref *shop = state;
    if (trp_ref_is_none(*shop)) { /* is there one left? */
        *shop = *(const trp_ref *)trp_msg_payload(msg);
        trp_tell(ctx, *shop, &trp_string_type, "?", 1);
    } else if (*(const int64_t *)trp_msg_payload(msg) == 0) {
        trp_tell(ctx, *shop, &trp_i64_type, &one, sizeof one);
    }
    return TRP_OK;
}
static const trp_behaviour buyer = TRP_BEHAVIOUR_INIT("buyer", trp_ref, buyer_receive);

static void
never_sells_twice(trp_testkit *kit, void *arg)
{
    trp_system *system = trp_testkit_system(kit);
    trp_probe *probe = trp_testkit_probe(kit);
    trp_ref shop, buyers[2];
    int64_t one = 1;
    (void)arg;
    TRP_TESTKIT_CHECK(kit, trp_system_spawn(system, &stock, NULL, &shop) == TRP_OK);
    for (int i = 0; i < 2; i++) {
        TRP_TESTKIT_CHECK(kit, trp_system_spawn(system, &buyer, NULL, &buyers[i]) == TRP_OK);
        trp_probe_tell(probe, buyers[i], &trp_bytes_type, &shop, sizeof shop);
    }
    trp_testkit_advance(kit, 0); /* until nobody has anything to do */
    trp_probe_tell(probe, shop, &trp_string_type, "?", 1);
    trp_probe_expect(probe, TRP_TEST_TIME, &trp_i64_type, &one, sizeof one);
}

int
main(void)
{
    trp_seeded_options options = TRP_SEEDED_OPTIONS_INIT;
    trp_seeded_result result = { .size = sizeof result };
    options.seeds = 100;
    trp_err err = trp_seeded_run(never_sells_twice, NULL, &options, &result);
    printf("%s\n", err == TRP_EFAILED ? "sold twice, as the seed shows" : "not found");
    return err == TRP_EFAILED ? 0 : 1;
}
