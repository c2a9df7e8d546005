/* reliable.c - two nodes; messages to a reliable proxy arrive at the other one, in order. */
#include <stdio.h>
#include <troupe/troupe.h>

static trp_err
clerk(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx, (void)state;
    printf("at work: %.*s\n", (int)trp_msg_bytes(msg), (const char *)trp_msg_payload(msg));
    return TRP_OK;
}
static const trp_behaviour clerk_behaviour = TRP_BEHAVIOUR_INIT("clerk", char, clerk);

/* Hears the proxy's state: idle means that the other node has all of it. */
static trp_err
hearer(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const trp_reliable_proxy_current *now = trp_msg_payload(msg);
    const trp_reliable_proxy_transition *change = trp_msg_payload(msg);
    (void)state;
    if ((trp_msg_is(msg, &trp_reliable_proxy_current_type) ? now->state : change->to) ==
        TRP_RELIABLE_PROXY_IDLE) {
        trp_system_shutdown(trp_ctx_system(ctx));
    }
    return TRP_OK;
}
static const trp_behaviour hearer_behaviour = TRP_BEHAVIOUR_INIT("hearer", char, hearer);

int
main(void)
{
    const char *const settings[] = { "remote.port=0", "log.level=error", NULL };
    const trp_node_options node = { sizeof node, .settings = settings, .environment_ignored = 1 };
    const trp_spawn_options named = { sizeof named, .name = "clerk" };
    trp_reliable_proxy_options options = TRP_RELIABLE_PROXY_OPTIONS_INIT;
    trp_reliable_proxy_subscribe subscribe;
    char path[TRP_PATH_BYTES_MAX];
    trp_node *home, *work;
    trp_ref ref, proxy;

    if (trp_node_open(&node, &home, NULL) || trp_node_open(&node, &work, NULL) ||
        trp_system_spawn(trp_node_system(work), &clerk_behaviour, &named, &ref) ||
        trp_system_spawn(trp_node_system(home), &hearer_behaviour, NULL, &subscribe.subscriber)) {
        return 1;
    }
    snprintf(path, sizeof path, "%s/user/clerk", trp_node_address(work));
    options.target_path = path;
    options.retry_after_ms = 100;
    if (trp_system_reliable_proxy_spawn(trp_node_system(home), &options, &proxy)) {
        return 1;
    }
    trp_system_tell(trp_node_system(home), proxy, &trp_string_type, "one", 3);
    trp_system_tell(trp_node_system(home), proxy, &trp_string_type, "two", 3);
    trp_system_tell(trp_node_system(home), proxy, &trp_reliable_proxy_subscribe_type, &subscribe,
                    0);
    trp_err err = trp_system_await(trp_node_system(home), 0); /* it does not give up */
    trp_node_close(home);
    trp_node_close(work);
    return err == TRP_OK ? 0 : 1;
}
