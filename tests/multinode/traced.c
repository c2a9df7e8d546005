/* traced.c - a plugin for trace.sh: two actors, which know nothing of traces.
 *
 *     troupe node --load traced.so               the actors /user/front and /user/back
 *     troupe ask /user/front PATH                asks the actor at PATH, and gives its answer
 */
#include <stdio.h>
#include <string.h>

#include <troupe/plugin.h>
#include <troupe/troupe.h>

#define ASK_MS 5000u

typedef struct front {
    trp_ref asker; /* of the question that is under way */
} front;

static trp_err
answered(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    const front *f = state;
    (void)arg;
    if (err == TRP_OK) {
        trp_tell(ctx, f->asker, trp_msg_type(reply), trp_msg_payload(reply), trp_msg_bytes(reply));
    } else {
        trp_tell_text(ctx, f->asker, trp_strerror(err));
    }
    return TRP_OK;
}

static trp_err
found(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    const front *f = state;
    const trp_actor_identity *who = reply == NULL ? NULL : trp_msg_payload(reply);
    (void)arg;
    if (err == TRP_OK) {
        err = trp_ask(ctx, who->ref, &trp_string_type, "who", 3, ASK_MS, answered, NULL);
    }
    if (err != TRP_OK) {
        trp_tell_text(ctx, f->asker, trp_strerror(err));
    }
    return TRP_OK;
}

static trp_err
front_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    front *f = state;
    char path[256] = "";
    size_t bytes = trp_msg_bytes(msg);
    if (!trp_msg_is(msg, &trp_string_type) || bytes >= sizeof path) {
        return TRP_EUNHANDLED;
    }
    memcpy(path, trp_msg_payload(msg), bytes);
    f->asker = trp_sender(ctx);
    return trp_resolve(ctx, path, ASK_MS, found, NULL);
}

static trp_err
back_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    (void)msg;
    trp_reply_text(ctx, "back");
    return TRP_OK;
}

static const trp_behaviour front_behaviour = TRP_BEHAVIOUR_INIT("front", front, front_receive);
static const trp_behaviour back_behaviour = TRP_BEHAVIOUR_INIT("back", char, back_receive);

static trp_err
init(trp_node *node, const char *arguments, void **ret_state, trp_plugin_error *ret_error)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    (void)arguments;
    (void)ret_state;
    (void)ret_error;
    options.name = "front";
    trp_err err = trp_system_spawn(trp_node_system(node), &front_behaviour, &options, &ref);
    options.name = "back";
    return err != TRP_OK ? err
                         : trp_system_spawn(trp_node_system(node), &back_behaviour, &options, &ref);
}
TRP_PLUGIN("traced", init, NULL)
