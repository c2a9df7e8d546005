/* hello.c - one system, one actor, one question.
 *
 *     cc hello.c $(pkg-config --cflags --libs troupe) -o hello && ./hello
 */
#include <stdio.h>

#include <troupe/troupe.h>

typedef struct greeter {
    int greeted;
} greeter;

static trp_err
greeter_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    greeter *g = state;
    char text[128];
    g->greeted++;
    snprintf(text, sizeof text, "hello, %.*s (you are number %d)", (int)trp_msg_bytes(msg),
             (const char *)trp_msg_payload(msg), g->greeted);
    trp_reply_text(ctx, text);
    return TRP_OK;
}

static const trp_behaviour greeter_behaviour =
    TRP_BEHAVIOUR_INIT("greeter", greeter, greeter_receive);

int
main(void)
{
    trp_system *system = NULL;
    trp_ref ref;
    trp_msg *reply = NULL;
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    options.name = "greeter";
    trp_err err = trp_system_new("hello", NULL, &system);
    if (err == TRP_OK) {
        err = trp_system_spawn(system, &greeter_behaviour, &options, &ref);
    }
    if (err == TRP_OK) {
        err = trp_system_ask(system, ref, &trp_string_type, "world", 5, 1000, &reply);
    }
    if (err == TRP_OK) {
        printf("%.*s\n", (int)trp_msg_bytes(reply), (const char *)trp_msg_payload(reply));
        trp_msg_free(reply);
    } else {
        fprintf(stderr, "hello: %s\n", trp_strerror(err));
    }
    if (system) {
        if (trp_system_stop(system, 5000) != TRP_OK) {
            fprintf(stderr, "hello: an actor is stuck\n");
        }
        trp_system_free(system);
    }
    return err == TRP_OK ? 0 : 1;
}
