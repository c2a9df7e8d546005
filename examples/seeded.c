/* seeded.c - find the order that breaks a program: the second buyer comes 1 ms later, mostly. */
#include <stdio.h>
#include <troupe/troupe.h>

static trp_err
stock_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t *sold = state;
    if (trp_msg_is(msg, &trp_i64_type)) {
        *sold += *(const int64_t *)trp_msg_payload(msg); /* without a check of the stock */
    }
    trp_reply(ctx, &trp_i64_type, sold, sizeof *sold);
    return TRP_OK;
}
static const trp_behaviour stock = TRP_BEHAVIOUR_INIT("stock", int64_t, stock_receive);

static trp_err
buyer_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_ref *shop = state;
    if (trp_ref_is_none(*shop)) { /* is there one left? */
        *shop = *(const trp_ref *)trp_msg_payload(msg);
        trp_tell(ctx, *shop, &trp_string_type, "?", 1);
    } else if (*(const int64_t *)trp_msg_payload(msg) == 0) {
        trp_tell(ctx, *shop, &trp_i64_type, &(int64_t){ 1 }, 0);
    }
    return TRP_OK;
}
static const trp_behaviour buyer = TRP_BEHAVIOUR_INIT("buyer", trp_ref, buyer_receive);

static void
never_sells_twice(trp_testkit *kit, void *arg)
{
    trp_system *system = trp_testkit_system(kit);
    trp_probe *probe = trp_testkit_probe(kit);
    const trp_ref none = TRP_REF_NONE;
    trp_ref shop = none, first = none, second = none;
    (void)arg;
    TRP_TESTKIT_CHECK(kit, trp_system_spawn(system, &stock, NULL, &shop) == TRP_OK &&
                               trp_system_spawn(system, &buyer, NULL, &first) == TRP_OK &&
                               trp_system_spawn(system, &buyer, NULL, &second) == TRP_OK);
    trp_probe_tell(probe, first, &trp_bytes_type, &shop, sizeof shop);
    TRP_TESTKIT_CHECK(kit, trp_schedule_once(system, 1, second, none, &trp_bytes_type, &shop,
                                             sizeof shop, NULL) == TRP_OK);
    trp_testkit_advance(kit, 50); /* until no actor has anything to do */
    trp_probe_tell(probe, shop, &trp_string_type, "?", 1);
    trp_probe_expect(probe, TRP_TEST_TIME, &trp_i64_type, &(int64_t){ 1 }, sizeof(int64_t));
}

int
main(void)
{
    trp_seeded_options calm = TRP_SEEDED_OPTIONS_INIT, drawn = TRP_SEEDED_OPTIONS_INIT;
    calm.schedule = ""; /* first come, first served */
    drawn.seeds = 1000; /* until one fails, which is then shrunk to the few choices that matter */
    int once = trp_seeded_run(never_sells_twice, NULL, &calm, NULL) == TRP_OK;
    int twice = trp_seeded_run(never_sells_twice, NULL, &drawn, NULL) == TRP_EFAILED;
    printf("%s in the calm order, %s\n", once ? "once" : "?", twice ? "twice under a seed" : "?");
    return once && twice ? 0 : 1;
}
