/* echo.c - a plugin: an actor that sends back whatever it gets.
 *
 *     cc -shared -fPIC echo.c $(pkg-config --cflags --libs troupe) -o echo.so
 *     troupe node --load ./echo.so          (or --load ./echo.so:NAME for another name than "echo")
 *     troupe ask /user/echo hello
 */
#include <troupe/plugin.h>
#include <troupe/troupe.h>

typedef struct echo {
    uint64_t answered;
} echo;

static trp_err
echo_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    echo *e = state;
    e->answered++;
    trp_reply(ctx, trp_msg_type(msg), trp_msg_payload(msg), trp_msg_bytes(msg));
    return TRP_OK;
}

static const trp_behaviour echo_behaviour = TRP_BEHAVIOUR_INIT("echo", echo, echo_receive);

static trp_err
echo_init(trp_node *node, const char *arguments, void **ret_state, trp_plugin_error *ret_error)
{
    (void)ret_state;
    (void)ret_error; /* the node says what trp_err means */
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    options.name = arguments[0] ? arguments : "echo";
    return trp_system_spawn(trp_node_system(node), &echo_behaviour, &options, &ref);
}

TRP_PLUGIN("echo", echo_init, NULL)
