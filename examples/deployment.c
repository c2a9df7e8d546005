/* deployment.c - an operator decides where actors run and how routers route. */
#include <stdio.h>
#include <troupe/troupe.h>

static const char text[] = "deployment \"/front\" { router = broadcast  nr-of-instances = 3 }\n"
                           "deployment \"/service/*\" { dispatcher = pinned }\n";
static trp_err
tell_where(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state, (void)msg;
    trp_reply_text(ctx, trp_dispatcher_id(ctx));
    return TRP_OK;
}
static const trp_behaviour worker = { sizeof worker, "worker", .receive = tell_where };
static trp_err
service_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)args;
    return trp_spawn(ctx, &worker, NULL, state);
}
static trp_err
service_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_forward(ctx, *(trp_ref *)state, msg);
    return TRP_OK;
}
static const trp_behaviour service = { sizeof service, "service", .receive = service_receive,
    .state_bytes = sizeof(trp_ref), .pre_start = service_start };

int
main(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_router_options router = TRP_ROUTER_OPTIONS_INIT;
    trp_spawn_options named = TRP_SPAWN_OPTIONS_INIT;
    trp_config *config;
    trp_config_error error;
    trp_system *system;
    trp_ref front, ref, routees[8];
    trp_msg *reply = NULL;
    uint32_t count;
    named.name = "service";
    if (trp_config_parse_text("shop.conf", text, &config, &error) != TRP_OK) {
        return fprintf(stderr, "%s\n", error.text), 78; /* file, line and what is wrong */
    }
    options.config = config;
    if (trp_system_new("shop", &options, &system) != TRP_OK || /* the code: round-robin over one */
        trp_system_router_spawn(system, &worker, NULL, "front", &router, &front) != TRP_OK ||
        trp_router_routees(system, front, routees, 8, &count) != TRP_OK ||
        trp_system_spawn(system, &service, &named, &ref) != TRP_OK ||
        trp_system_ask(system, ref, &trp_string_type, "?", 1, 5000, &reply) != TRP_OK) {
        return 1;
    }
    printf("%u behind /front; below /service: %.*s\n", (unsigned)count, (int)trp_msg_bytes(reply),
           (const char *)trp_msg_payload(reply));
    trp_msg_free(reply);
    trp_system_free(system);
    trp_config_unref(config);
    return 0;
}
