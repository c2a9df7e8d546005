/* once.c - a plugin for once.sh: what lives once in the cluster. The singleton "counter", with a
 * proxy at /user/counter, and entities of the type "tally", asked through /user/tally.
 *
 *     troupe node --load once.so:16               16 shards
 *     troupe ask /user/counter count              how often it was asked: handed over from host to
 *                                                 host, lost in a crash
 *     troupe ask /user/tally ID                   "N ADDRESS": how often that entity was asked
 *                                                 since it started, and where it lives
 */
#include <stdio.h>
#include <stdlib.h>

#include <troupe/plugin.h>
#include <troupe/troupe.h>

#define TOTAL_FIELDS(F, S) F(S, u64, count)
#define END_FIELDS(F, S) F(S, u32, unused)
#define COUNTER_MESSAGES(M, P) M(P, total, TOTAL_FIELDS) M(P, end, END_FIELDS)
TRP_PROTOCOL(counter, COUNTER_MESSAGES)

static char address[TRP_ADDRESS_BYTES]; /* of this node */

typedef struct counter {
    uint64_t count;
} counter;

/* ---- the singleton --------------------------------------------------------------------------- */

static trp_err
counter_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    counter *c = state;
    (void)ctx;
    if (args != NULL && trp_msg_is(args, &counter_total_type)) {
        c->count = ((const struct counter_total *)trp_msg_payload(args))->count;
    }
    return TRP_OK;
}

static trp_err
counter_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    counter *c = state;
    char text[32];
    if (trp_msg_is(msg, &counter_end_type)) {
        counter_total total = { c->count };
        trp_tell(ctx, trp_parent(ctx), &counter_total_type, &total, sizeof total);
        trp_stop(ctx, trp_self(ctx));
        return TRP_OK;
    }
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)++c->count);
    trp_reply_text(ctx, text);
    return TRP_OK;
}

static const trp_behaviour counter_behaviour = { .size = sizeof(trp_behaviour),
                                                 .name = "counter",
                                                 .version = 1,
                                                 .state_bytes = sizeof(counter),
                                                 .receive = counter_receive,
                                                 .pre_start = counter_start };

typedef struct front {
    trp_ref proxy;
} front;

static trp_err
front_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    trp_singleton_proxy_options proxy = TRP_SINGLETON_PROXY_OPTIONS_INIT;
    (void)args;
    proxy.name = "counter";
    return trp_singleton_proxy(trp_ctx_system(ctx), &proxy, &((front *)state)->proxy);
}

static trp_err
front_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_forward(ctx, ((front *)state)->proxy, msg);
    return TRP_OK;
}

static const trp_behaviour front_behaviour = { .size = sizeof(trp_behaviour),
                                               .name = "front",
                                               .version = 1,
                                               .state_bytes = sizeof(front),
                                               .receive = front_receive,
                                               .pre_start = front_start };

/* ---- entities -------------------------------------------------------------------------------- */

static trp_err
tally_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    counter *c = state;
    char text[TRP_ADDRESS_BYTES + 32];
    (void)msg;
    (void)snprintf(text, sizeof text, "%llu %s", (unsigned long long)++c->count, address);
    trp_reply_text(ctx, text);
    return TRP_OK;
}

static const trp_behaviour tally_behaviour = { .size = sizeof(trp_behaviour),
                                               .name = "tally",
                                               .version = 1,
                                               .state_bytes = sizeof(counter),
                                               .receive = tally_receive };

static trp_err
tallies_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (!trp_msg_is(msg, &trp_string_type)) {
        return TRP_EUNHANDLED;
    }
    trp_entity entity =
        trp_entity_of(trp_entity_type("tally"), trp_msg_payload(msg), trp_msg_bytes(msg));
    trp_entity_forward(ctx, &entity, msg);
    return TRP_OK;
}

static const trp_behaviour tallies_behaviour = {
    .size = sizeof(trp_behaviour), .name = "tallies", .version = 1, .receive = tallies_receive
};

/* ---- start ----------------------------------------------------------------------------------- */

static trp_err
singleton_start(trp_system *system)
{
    static const counter_end end = { 0 };
    trp_singleton_options options = TRP_SINGLETON_OPTIONS_INIT;
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    options.name = "counter";
    options.behaviour = &counter_behaviour;
    options.end_type = &counter_end_type;
    options.end = &end;
    options.end_bytes = sizeof end;
    spawn.name = "counter";
    trp_err err = trp_singleton_start(system, &options, &ref);
    return err == TRP_OK ? trp_system_spawn(system, &front_behaviour, &spawn, &ref) : err;
}

static trp_err
entities_start(trp_system *system, uint32_t shards, trp_plugin_error *ret_error)
{
    trp_sharding_options options = TRP_SHARDING_OPTIONS_INIT;
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    char why[512];
    trp_ref ref;
    options.type = "tally";
    options.behaviour = &tally_behaviour;
    options.shards = shards;
    spawn.name = "tally";
    trp_err err = trp_sharding_start(system, &options, why, sizeof why);
    if (err != TRP_OK) {
        (void)snprintf(ret_error->text, sizeof ret_error->text, "%s", why);
        return err;
    }
    return trp_system_spawn(system, &tallies_behaviour, &spawn, &ref);
}

static trp_err
init(trp_node *node, const char *arguments, void **ret_state, trp_plugin_error *ret_error)
{
    trp_system *system = trp_node_system(node);
    (void)ret_state;
    (void)snprintf(address, sizeof address, "%s", trp_node_address(node));
    trp_err err = trp_protocol_register(&counter_protocol);
    err = err == TRP_OK ? singleton_start(system) : err;
    return err == TRP_OK ? entities_start(system, (uint32_t)strtoul(arguments, NULL, 10), ret_error)
                         : err;
}
TRP_PLUGIN("once", init, NULL)
