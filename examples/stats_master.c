/* stats_master.c - a plugin: one service for all nodes, on the oldest of role compute.
 *
 *     deployment "/facade/statsService/workerRouter" {
 *         cluster { enabled = on  max-nr-of-instances-per-node = 3  allow-local-routees = off } }
 *     troupe node --role compute --load stats_master.so ...
 *     troupe ask /user/facade "this is the text that will be analyzed"            prints: 3.875
 */
#include "oldest.h"
#include "stats_service.h"
static trp_err
found(trp_ctx *ctx, void *master, void *arg, trp_err err, const trp_msg *reply)
{
    (void)ctx, (void)arg;
    if (err == TRP_OK) {
        *(trp_ref *)master = ((const trp_actor_identity *)trp_msg_payload(reply))->ref;
    }
    return TRP_OK;
}
static trp_err
receive(trp_ctx *ctx, void *master, const trp_msg *msg)
{
    trp_spawn_options options = { sizeof options, .name = "statsService" };
    char path[TRP_PATH_BYTES_MAX];
    trp_member oldest;
    trp_err err = TRP_OK;
    trp_ref ref;
    if (trp_msg_is(msg, &trp_string_type) && !trp_ref_is_none(*(trp_ref *)master)) {
        trp_forward(ctx, *(trp_ref *)master, msg);
        return TRP_OK;
    } else if (trp_msg_is(msg, &trp_string_type)) {
        trp_reply_text(ctx, "Service unavailable, try again later");
    }
    *(trp_ref *)master = (trp_ref)TRP_REF_NONE; /* the members have changed: find it again */
    if (!oldest_find(trp_ctx_system(ctx), "compute", &oldest)) {
        return TRP_OK;
    }
    if (oldest.self && trp_ref_is_none(trp_child(ctx, options.name))) {
        err = trp_spawn(ctx, &service, &options, &ref);
    }
    (void)snprintf(path, sizeof path, "%s/user/facade/statsService", oldest.address);
    return err == TRP_OK ? trp_resolve(ctx, path, 5000, found, NULL) : err;
}
static trp_err
start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state, (void)args;
    return trp_cluster_subscribe(trp_ctx_system(ctx), trp_self(ctx), TRP_CLUSTER_MEMBER_EVENTS);
}
static const trp_behaviour facade = { sizeof facade, "facade", .state_bytes = sizeof(trp_ref),
                                      .receive = receive, .pre_start = start };
static trp_err
init(trp_node *node, const char *arguments, void **ret_state, trp_plugin_error *ret_error)
{
    trp_spawn_options options = { sizeof options, .name = "facade" };
    trp_ref ref;
    (void)arguments, (void)ret_state, (void)ret_error;
    trp_err err = trp_behaviour_register(trp_node_system(node), &worker);
    return err != TRP_OK ? err : trp_system_spawn(trp_node_system(node), &facade, &options, &ref);
}
TRP_PLUGIN("stats_master", init, NULL)
