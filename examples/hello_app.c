/* hello_app.c - an application of a container: it asks a world for its hello, in capital letters.
 *
 *     mkdir -p apps/hello_app && cp hello_app.so apps/hello_app
 *     echo 'app { greeting = "Hello" }' >apps/hello_app/hello_app.conf
 *     troupe node --apps apps
 */
#include <ctype.h>
#include <stdio.h>
#include <troupe/bootable.h>
#include <troupe/troupe.h>

#ifndef WORLD
#define WORLD "world"
#endif
static trp_err
world_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    char text[64];
    size_t bytes = trp_msg_bytes(msg) < 40 ? trp_msg_bytes(msg) : 40;
    (void)state;
    for (size_t i = 0; i < bytes; i++) {
        text[i] = (char)toupper(((const unsigned char *)trp_msg_payload(msg))[i]);
    }
    snprintf(text + bytes, sizeof text - bytes, " %s!", WORLD);
    trp_reply_text(ctx, text);
    return TRP_OK;
}
static const trp_behaviour world = TRP_BEHAVIOUR_INIT("world", char, world_receive);

static trp_err
hello_startup(const trp_app *app, void **ret_state, trp_plugin_error *ret_error)
{
    static trp_ref ref;
    trp_system *system = trp_node_system(app->node);
    const char *greeting = "Hello";
    trp_msg *reply = NULL;
    trp_err err = trp_system_spawn(system, &world, NULL, &ref);
    if (trp_config_is_set(app->config, "app.greeting")) {
        err =
            err != TRP_OK ? err : trp_config_get_text(app->config, "app.greeting", &greeting, NULL);
    }
    err = err != TRP_OK ? err
                        : trp_system_ask(system, ref, &trp_string_type, greeting, strlen(greeting),
                                         5000, &reply);
    if (err == TRP_OK) {
        trp_system_log(system, TRP_LOG_INFO, app->name, "%.*s", (int)trp_msg_bytes(reply),
                       (const char *)trp_msg_payload(reply));
    }
    trp_msg_free(reply);
    (void)ret_error;
    *ret_state = &ref;
    return err;
}

static void
hello_shutdown(const trp_app *app, void *state)
{
    trp_system_tell(trp_node_system(app->node), *(trp_ref *)state, &trp_poison_pill_type, NULL, 0);
}
TRP_BOOTABLE(hello_startup, hello_shutdown)
