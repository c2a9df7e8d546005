/* pool.c - a pool is told to grow and to shrink, takes in another actor, and ends as a whole. */
#include <stdio.h>
#include <troupe/troupe.h>

static trp_err
worker(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx, (void)state, (void)msg;
    return TRP_OK;
}
static const trp_behaviour worker_behaviour = { sizeof(trp_behaviour), "w", .receive = worker };

/* How many there are, once an order is done: a question is answered after it. */
static unsigned
size(trp_system *system, trp_ref router)
{
    trp_msg *reply = NULL;
    unsigned count = 0;
    if (trp_system_ask(system, router, &trp_get_routees_type, NULL, 0, 5000, &reply) == TRP_OK) {
        count = (unsigned)(trp_msg_bytes(reply) / sizeof(trp_ref));
    }
    trp_msg_free(reply);
    return count;
}

int
main(void)
{
    const trp_adjust_pool_size grow = { 3 }, shrink = { -2 };
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_add_routee add;
    trp_system *system;
    trp_ref pool;
    options.instances = 2;
    if (trp_system_new("crew", NULL, &system) != TRP_OK ||
        trp_system_router_spawn(system, &worker_behaviour, NULL, "pool", &options, &pool) ||
        trp_system_spawn(system, &worker_behaviour, NULL, &add.routee) != TRP_OK) {
        return 1;
    }
    printf("%u at first\n", size(system, pool));
    trp_system_tell(system, pool, &trp_adjust_pool_size_type, &grow, 0);
    printf("%u, grown\n", size(system, pool));
    trp_system_tell(system, pool, &trp_add_routee_type, &add, 0);
    printf("%u with the stranger\n", size(system, pool));
    trp_system_tell(system, pool, &trp_adjust_pool_size_type, &shrink, 0);
    printf("%u, shrunk\n", size(system, pool));
    /* by itself: options.resizer, of which this is the arithmetic */
    printf("all of 5 busy: %+d\n", (int)trp_resizer_capacity(NULL, 5, 5));
    trp_err err = trp_system_graceful_stop(system, pool, 10000); /* its children with it */
    trp_system_free(system);
    return err == TRP_OK ? 0 : 1;
}
