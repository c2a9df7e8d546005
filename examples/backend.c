/* backend.c - a plugin: dials in with every frontend of the cluster, and writes texts in capitals.
 *
 *     troupe node --role backend --load backend.so       any number of them, at any time
 */
#include <ctype.h>

#include "transformation.h"

enum { TEXT_MAX = 80 };

static void
dial(trp_ctx *ctx, const trp_member *member)
{
    char path[TRP_PATH_BYTES_MAX];
    (void)snprintf(path, sizeof path, "%s/user/frontend", member->address);
    if (member->status == TRP_MEMBER_UP && trp_member_has_role(member, "frontend") &&
        trp_select_tell(ctx, path, &transformation_registration_type,
                        &(transformation_registration){ 1 }, 0) != TRP_OK) {
        trp_log(ctx, TRP_LOG_WARNING, "%s cannot be told", path);
    }
}
static trp_err
backend_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const trp_current_cluster_state *present = trp_msg_payload(msg);
    char text[TEXT_MAX + 1] = "";
    (void)state;
    for (size_t i = 0; i < trp_msg_bytes(msg) && i < TEXT_MAX; i++) {
        text[i] = (char)toupper(((const unsigned char *)trp_msg_payload(msg))[i]);
    }
    if (trp_msg_is(msg, &trp_string_type)) {
        trp_reply_text(ctx, text);
    } else if (trp_msg_is(msg, &trp_member_up_type)) {
        dial(ctx, &((const trp_member_event *)trp_msg_payload(msg))->member);
    } else if (trp_msg_is(msg, &trp_current_cluster_state_type)) {
        for (uint32_t i = 0; i < present->members_count; i++) {
            dial(ctx, &trp_current_cluster_state_members(present)[i]);
        }
    }
    return TRP_OK;
}
static trp_err
backend_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state, (void)args;
    return trp_cluster_subscribe(trp_ctx_system(ctx), trp_self(ctx), TRP_CLUSTER_MEMBER_UP);
}

static const trp_behaviour backend = { sizeof backend, "backend", .receive = backend_receive,
                                       .pre_start = backend_start };
static trp_err
init(trp_node *node, const char *arguments, void **ret_state, trp_plugin_error *ret_error)
{
    (void)arguments, (void)ret_state, (void)ret_error;
    return transformation_start(node, &backend);
}
TRP_PLUGIN("backend", init, NULL)
