/* watch.c - to learn that another actor has ended: watched once, told once. */
#include <stdio.h>
#include <troupe/troupe.h>
static trp_err
guest_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state, (void)msg;
    trp_stop(ctx, trp_self(ctx));
    return TRP_OK;
}
static const trp_behaviour guest = { sizeof guest, "guest", .receive = guest_receive };

static trp_err
host_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    static const char *const names[] = { "ann", "bob", "cid" };
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_err err = TRP_OK;
    (void)state, (void)args;
    for (int i = 0; err == TRP_OK && i < 3; i++) {
        trp_ref ref;
        options.name = names[i];
        err = trp_spawn(ctx, &guest, &options, &ref);
        if (err == TRP_OK) {
            err = trp_watch(ctx, ref);
            trp_tell_text(ctx, ref, "good night");
        }
    }
    return err;
}
static trp_err
host_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int *gone = state;
    if (!trp_msg_is(msg, &trp_terminated_type)) {
        return TRP_EUNHANDLED; /* of a trp_terminated this would be a death pact: host ends too */
    }
    printf("%d gone, %s\n", ++*gone,
           ((const trp_terminated *)trp_msg_payload(msg))->existence_confirmed ? "was here" : "?");
    if (*gone == 3) {
        trp_system_shutdown(trp_ctx_system(ctx));
    }
    return TRP_OK;
}
static const trp_behaviour host = { sizeof host, "host", .state_bytes = sizeof(int),
                                    .receive = host_receive, .pre_start = host_start };

int
main(void)
{
    trp_system *system;
    trp_ref ref;
    if (trp_system_new("party", NULL, &system) != TRP_OK ||
        trp_system_spawn(system, &host, NULL, &ref) != TRP_OK ||
        trp_system_await(system, 10000) != TRP_OK) {
        return 1;
    }
    trp_system_free(system);
    return 0;
}
