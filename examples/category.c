/* category.c - tell the least loaded member, or all of them, and learn which took it. */
#include <stdio.h>
#include <troupe/troupe.h>

static int /* which messages an actor wants is known before it gets one */
numbers_only(const trp_msg *msg)
{
    return trp_msg_is(msg, &trp_i64_type);
}
static trp_err
cook_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx, (void)state, (void)msg;
    return TRP_OK;
}
static const trp_behaviour cook = { sizeof cook, "cook", .receive = cook_receive };
static const trp_behaviour clerk = { sizeof clerk, "clerk", .receive = cook_receive,
                                     .will_receive = numbers_only };

static void
show(const char *what, trp_err err, const trp_delivery *delivery)
{
    printf("%s: %s, %u of %u took it", what, trp_err_name(err), (unsigned)delivery->accepted,
           (unsigned)delivery->targets);
    for (unsigned i = 0; i < delivery->errors_count; i++) {
        printf(", %s", trp_err_name(delivery->errors[i].err));
    }
    printf("\n");
}

int
main(void)
{
    trp_delivery_error errors[4];
    trp_delivery delivery = TRP_DELIVERY_INIT;
    trp_system *system;
    trp_ref refs[3];
    delivery.errors = errors;
    delivery.errors_max = 4;
    trp_err err = trp_system_new("kitchen", NULL, &system);
    for (int i = 0; i < 3 && err == TRP_OK; i++) { /* two cooks, and one that cannot read */
        err = trp_system_spawn(system, i < 2 ? &cook : &clerk, NULL, &refs[i]);
        err = err ? err : trp_category_join(system, "staff", refs[i]);
    }
    if (err != TRP_OK) {
        return 1;
    }
    const int64_t dish = 7;
    err = trp_system_category_send(system, "staff", &trp_i64_type, &dish, 0, &delivery);
    show("one", err, &delivery);
    err = trp_system_category_broadcast(system, "staff", &trp_string_type, "eat", 3, &delivery);
    show("all", err, &delivery);
    err = trp_system_category_send(system, "guests", &trp_i64_type, &dish, 0, &delivery);
    show("nobody", err, &delivery);
    trp_system_free(system);
    return 0;
}
