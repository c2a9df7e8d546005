/* router.c - one name for many workers: a rotating pool, and a cache whose keys stay together. */
#include <stdio.h>
#include <troupe/troupe.h>

/* Counts numbers; replies to anything else how many there were. */
static trp_err
worker(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    if (trp_msg_is(msg, &trp_i64_type)) {
        ++*(int64_t *)state;
    } else {
        trp_reply(ctx, &trp_i64_type, state, sizeof(int64_t));
    }
    return TRP_OK;
}
static const trp_behaviour worker_behaviour = TRP_BEHAVIOUR_INIT("worker", int64_t, worker);

static void
show(trp_system *system, trp_ref router, const char *name)
{
    trp_ref routees[5];
    uint32_t count = 0;
    trp_err err = trp_router_routees(system, router, routees, 5, &count);
    printf("%s:", name);
    for (uint32_t i = 0; err == TRP_OK && i < count; i++) {
        trp_msg *reply = NULL;
        err = trp_system_ask(system, routees[i], &trp_string_type, "?", 1, 5000, &reply);
        if (err == TRP_OK) {
            printf(" %lld", (long long)*(const int64_t *)trp_msg_payload(reply));
        }
        trp_msg_free(reply);
    }
    printf("\n");
}

int
main(void)
{
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_ref none = TRP_REF_NONE, pool, cache;
    trp_system *system;
    options.instances = 5;
    if (trp_system_new("routing", NULL, &system) != TRP_OK ||
        trp_system_router_spawn(system, &worker_behaviour, NULL, "pool", &options, &pool)) {
        return 1;
    }
    options.logic = "consistent-hashing";
    trp_err err =
        trp_system_router_spawn(system, &worker_behaviour, NULL, "cache", &options, &cache);
    for (int64_t n = 0; err == TRP_OK && n < 100;
         n++) { /* 20 for each; and all of one key for one */
        trp_system_tell(system, pool, &trp_i64_type, &n, sizeof n);
        trp_system_router_tell_keyed(system, cache, none, "a key", 5, &trp_i64_type, &n, sizeof n);
    }
    show(system, pool, "pool");
    show(system, cache, "cache");
    err = err == TRP_OK ? trp_system_stop(system, 5000) : err;
    trp_system_free(system);
    return err == TRP_OK ? 0 : 1;
}
