/* deployed.c - a plugin: a service whose worker lives where the configuration says.
 *
 *     deployment "/service/worker" { remote = "troupe.tcp://demo@10.0.0.2:2552" }
 *     troupe node --load deployed.so                on that node: it only knows how to make workers
 *     troupe node --load deployed.so:service ...    on the other one, with that configuration
 *     troupe ask /user/service hello                prints: 1 from troupe.tcp://demo@10.0.0.2:2552
 */
#include <stdio.h>
#include <string.h>
#include <troupe/plugin.h>
#include <troupe/troupe.h>

static trp_err
work(trp_ctx *ctx, void *told, const trp_msg *msg)
{
    char path[TRP_PATH_BYTES_MAX], text[TRP_PATH_BYTES_MAX];
    if (trp_msg_bytes(msg) == 4 && memcmp(trp_msg_payload(msg), "fail", 4) == 0) {
        trp_reply_text(ctx, "failing");
        trp_fail(ctx, 1, "as it was told");
    }
    trp_path(trp_ctx_system(ctx), trp_self(ctx), path, sizeof path);
    (void)snprintf(text, sizeof text, "%d at %s", ++*(int *)told, path);
    trp_reply_text(ctx, text);
    return TRP_OK;
}
static const trp_behaviour worker = TRP_BEHAVIOUR_INIT("worker", int, work);

static trp_err
start(trp_ctx *ctx, void *child, const trp_msg *args)
{
    const trp_spawn_options options = { sizeof options, .name = "worker" }; /* no node */
    (void)args;
    trp_err err = trp_spawn(ctx, &worker, &options, child);
    return err != TRP_OK ? err : trp_watch(ctx, *(trp_ref *)child);
}

static trp_err
serve(trp_ctx *ctx, void *child, const trp_msg *msg)
{
    if (trp_msg_is(msg, &trp_terminated_type)) {
        return start(ctx, child, NULL); /* its node is gone: make another one */
    }
    trp_forward(ctx, *(trp_ref *)child, msg);
    return TRP_OK;
}
static const trp_behaviour service = { sizeof service, "service", .receive = serve,
                                       .state_bytes = sizeof(trp_ref), .pre_start = start };

static trp_err
init(trp_node *node, const char *arguments, void **ret_state, trp_plugin_error *ret_error)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    (void)ret_state, (void)ret_error, options.name = "service";
    trp_err err = trp_behaviour_register(trp_node_system(node), &worker);
    return err != TRP_OK || arguments[0] == '\0'
               ? err
               : trp_system_spawn(trp_node_system(node), &service, &options, &ref);
}
TRP_PLUGIN("deployed", init, NULL)
