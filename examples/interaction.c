/* interaction.c - the conversation that a message is part of, also when it is passed on. */
#include <stdio.h>
#include <troupe/troupe.h>

static trp_err
relay_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_forward(ctx, *(trp_ref *)state, msg);
    trp_tell_text(ctx, *(trp_ref *)state, "I passed it on"); /* is part of it, too */
    return TRP_OK;
}
static trp_err
relay_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    *(trp_ref *)state = *(const trp_ref *)trp_msg_payload(args);
    return TRP_OK;
}
static const trp_behaviour relay = { sizeof relay, "relay", .state_bytes = sizeof(trp_ref),
                                     .receive = relay_receive, .pre_start = relay_start };

static trp_err
clerk_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const trp_interaction *part_of = trp_msg_interaction(msg);
    (void)state;
    printf("%.*s: %s %llu\n", (int)trp_msg_bytes(msg), (const char *)trp_msg_payload(msg),
           part_of ? part_of->protocol : "of nothing",
           part_of ? (unsigned long long)part_of->id_low : 0);
    if (trp_msg_bytes(msg) > 10 && part_of != NULL) {
        trp_system_shutdown(trp_ctx_system(ctx));
    }
    return TRP_OK;
}
static const trp_behaviour clerk = { sizeof clerk, "clerk", .receive = clerk_receive };

int
main(void)
{
    const trp_interaction order = { 0, 4711, "ordering", "shop" };
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref none = TRP_REF_NONE, last, first;
    trp_system *system;
    options.args_type = &trp_bytes_type;
    options.args = &last;
    options.args_bytes = sizeof last;
    if (trp_system_new("shop", NULL, &system) != TRP_OK ||
        trp_system_spawn(system, &clerk, NULL, &last) != TRP_OK ||
        trp_system_spawn(system, &relay, &options, &first) != TRP_OK) {
        return 1;
    }
    trp_system_tell(system, last, &trp_string_type, "a remark", 8);
    trp_system_tell_in(system, first, none, &order, &trp_string_type, "an order", 8);
    trp_err err = trp_system_await(system, 10000);
    trp_system_free(system);
    return err == TRP_OK ? 0 : 1;
}
