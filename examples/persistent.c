/* persistent.c - an account whose state outlives its actor, its system and, with another journal
 * than this one in memory, its host.
 *
 *     persistent
 *
 * A command is checked against the state; what it changes is persisted as an event, and only a
 * stored event is applied and confirmed. The second system finds what the first one left: a
 * snapshot and the events behind it.
 */
#include <stdio.h>

#include <troupe/troupe.h>

#define SHOP_PAY(F, S) F(S, i64, cents)
#define SHOP_PAID(F, S) F(S, i64, cents)
#define SHOP_BALANCE(F, S) F(S, i64, cents)
#define SHOP_MESSAGES(M, P) M(P, pay, SHOP_PAY) M(P, paid, SHOP_PAID) M(P, balance, SHOP_BALANCE)
TRP_PROTOCOL(shop, SHOP_MESSAGES)
static const trp_protocol *const shop_events[] = { &shop_protocol, NULL };

typedef struct till {
    trp_persistent_state persistent; /* the first member */
    int64_t cents;
} till;

/* The event is stored and applied: now the sender may hear of it. */
static trp_err
till_confirm(trp_ctx *ctx, void *state, const trp_msg *event, void *arg)
{
    (void)event;
    (void)arg;
    trp_reply(ctx, &shop_balance_type, &(shop_balance){ ((till *)state)->cents }, 0);
    return TRP_OK;
}

static trp_err
till_command(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const shop_pay *pay = shop_pay_as(msg);
    const till *own = state;

    if (pay == NULL) {
        return TRP_EUNHANDLED;
    }
    if (own->cents + pay->cents < 0) {
        trp_reply_failure(ctx, TRP_EINVAL, "not so much is in the till");
        return TRP_OK;
    }
    return trp_persist(ctx, &shop_paid_type, &(shop_paid){ pay->cents }, 0, till_confirm, NULL);
}

/* Of new events and of a recovery: it changes the state, and does nothing else. */
static trp_err
till_event(trp_ctx *ctx, void *state, const trp_msg *event)
{
    (void)ctx;
    ((till *)state)->cents += shop_paid_as(event)->cents;
    return TRP_OK;
}

static trp_err
till_recovered(trp_ctx *ctx, void *state)
{
    printf("recovered: %lld cents, event %llu\n", (long long)((till *)state)->cents,
           (unsigned long long)trp_persistent_number(ctx));
    return TRP_OK;
}

static trp_err
till_snapshot(trp_ctx *ctx, const void *state, trp_msg **ret_msg)
{
    void *place;
    trp_err err = trp_msg_new(&shop_balance_type, 0, ret_msg, &place);

    (void)ctx;
    if (err == TRP_OK) {
        ((shop_balance *)place)->cents = ((const till *)state)->cents;
    }
    return err;
}

static trp_err
till_restore(trp_ctx *ctx, void *state, const trp_msg *snapshot)
{
    (void)ctx;
    ((till *)state)->cents = shop_balance_as(snapshot)->cents;
    return TRP_OK;
}

static trp_persistent till_behaviour = TRP_PERSISTENT_INIT("till", till, till_command, till_event);

static void
pay(trp_system *system, trp_ref ref, int64_t cents)
{
    trp_msg *reply = NULL;
    shop_pay payment = { cents };
    trp_err err = trp_system_ask(system, ref, &shop_pay_type, &payment, 0, 10000, &reply);

    if (err == TRP_OK) {
        printf("%+lld: %lld cents\n", (long long)cents, (long long)shop_balance_as(reply)->cents);
    } else {
        printf("%+lld: %s\n", (long long)cents, trp_err_name(err));
    }
    trp_msg_free(reply);
}

/* One day of the shop: a system of its own, over the same journal. */
static int
day(const trp_journal_driver *journal, const int64_t *payments)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_system *system = NULL;
    trp_ref ref;

    options.name = "till"; /* its path is its persistence id: /user/till */
    if (trp_system_new("shop", NULL, &system) != TRP_OK ||
        trp_persistence_start(system, journal, NULL) != TRP_OK ||
        trp_system_spawn(system, &till_behaviour.behaviour, &options, &ref) != TRP_OK) {
        return 1;
    }
    for (; *payments != 0; payments++) {
        pay(system, ref, *payments);
    }
    trp_err err = trp_system_stop(system, 10000);
    trp_system_free(system);
    return err != TRP_OK;
}

int
main(void)
{
    static const int64_t monday[] = { 500, 250, -900, 250, 0 }, tuesday[] = { -900, 0 };
    trp_journal_memory *memory = NULL;

    till_behaviour.recovered = till_recovered;
    till_behaviour.snapshot = till_snapshot;
    till_behaviour.restore = till_restore;
    till_behaviour.events = shop_events;
    till_behaviour.behaviour.accepts = shop_events; /* registered before the first command */
    till_behaviour.snapshot_every = 2;
    till_behaviour.snapshots_keep = 2;
    if (trp_journal_memory_new(&memory) != TRP_OK) {
        return 1;
    }
    const trp_journal_driver *journal = trp_journal_memory_driver(memory);
    int failed = day(journal, monday) || day(journal, tuesday);
    trp_journal_memory_free(memory);
    return failed;
}
