/* routing.c - routing of the program's own: odd numbers to one routee, even ones to the other. */
#include <stdio.h>
#include <troupe/troupe.h>

static trp_err
keeper(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t *sum = state;
    if (trp_msg_is(msg, &trp_i64_type)) {
        *sum += *(const int64_t *)trp_msg_payload(msg);
    } else {
        trp_reply(ctx, &trp_i64_type, sum, 0);
    }
    return TRP_OK;
}
static const trp_behaviour keeper_behaviour = TRP_BEHAVIOUR_INIT("keeper", int64_t, keeper);

/* Runs on the sender's thread, several at once: a function of its arguments. */
static void
by_parity(void *state, trp_route *route, trp_ref sender, const trp_msg *msg)
{
    if (trp_msg_is(msg, &trp_i64_type)) {
        int64_t number = *(const int64_t *)trp_msg_payload(msg);
        trp_route_to(route, ((const trp_ref *)state)[number & 1], sender);
    } else {
        trp_route_to_all(route, sender);
    }
}

int
main(void)
{
    trp_routing_logic logic = TRP_ROUTING_LOGIC_INIT("parity", by_parity);
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_system *system;
    trp_ref keepers[2], router;
    logic.arg = keepers;
    options.custom = &logic;
    options.routees = keepers;
    options.routees_count = 2;
    if (trp_system_new("sums", NULL, &system) != TRP_OK ||
        trp_system_spawn(system, &keeper_behaviour, NULL, &keepers[0]) != TRP_OK ||
        trp_system_spawn(system, &keeper_behaviour, NULL, &keepers[1]) != TRP_OK ||
        trp_system_router_spawn(system, NULL, NULL, "sums", &options, &router) != TRP_OK) {
        return 1;
    }
    for (int64_t i = 1; i <= 10; i++) {
        trp_system_tell(system, router, &trp_i64_type, &i, 0);
    }
    for (int i = 0; i < 2; i++) {
        trp_msg *sum = NULL;
        if (trp_system_ask(system, keepers[i], &trp_string_type, "?", 1, 5000, &sum) == TRP_OK) {
            printf("%s: %lld\n", i ? "odd" : "even", *(const long long *)trp_msg_payload(sum));
        }
        trp_msg_free(sum);
    }
    trp_system_free(system);
    return 0;
}
