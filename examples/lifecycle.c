/* lifecycle.c - the hooks of an actor in their order: start, failure, restart, stop. */
#include <stdio.h>
#include <troupe/troupe.h>

static void
say(void *arg)
{
    printf("%s\n", (const char *)arg);
}
static trp_err
start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)args;
    say("pre_start");
    *(char **)state = trp_alloc(ctx, 4096); /* the actor's: released at restart and stop */
    return trp_defer(ctx, say, "deferred: the connection is closed");
}
static void
stopped(trp_ctx *ctx, void *state)
{
    (void)ctx, (void)state;
    say("post_stop");
}
static trp_err
before(trp_ctx *ctx, void *state, const trp_failure *why, const trp_msg *msg)
{
    printf("pre_restart: %s%s\n", why->reason, msg != NULL ? ", while at a message" : "");
    return stopped(ctx, state), TRP_OK;
}
static trp_err
receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_bytes(msg) == 4) {
        trp_fail(ctx, 1, "I do not like that"); /* does not return */
    }
    trp_reply_text(ctx, "fine");
    return TRP_OK;
}
static const trp_behaviour behaviour = { sizeof behaviour, "b", .state_bytes = sizeof(char *),
    .receive = receive, .pre_start = start, .post_stop = stopped, .pre_restart = before };

int
main(void)
{
    trp_msg *reply = NULL;
    trp_system *system;
    trp_ref ref;
    if (trp_system_new("lives", NULL, &system) != TRP_OK ||
        trp_system_spawn(system, &behaviour, NULL, &ref) != TRP_OK) {
        return 1;
    }
    trp_system_tell(system, ref, &trp_string_type, "fail", 4);
    trp_err err = trp_system_ask(system, ref, &trp_string_type, "hello", 5, 10000, &reply);
    printf("%s\n", err == TRP_OK ? "the next message is handled" : trp_err_name(err));
    trp_msg_free(reply);
    err = err ? err : trp_system_graceful_stop(system, ref, 10000);
    trp_system_free(system);
    return err == TRP_OK ? 0 : 1;
}
