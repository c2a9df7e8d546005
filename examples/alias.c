/* alias.c - a short name for an actor, wherever it stands in the tree. */
#include <stdio.h>
#include <troupe/troupe.h>

static trp_err
clerk_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    char path[TRP_PATH_BYTES_MAX + 1];
    (void)state, (void)msg;
    trp_reply_text(ctx, trp_path(trp_ctx_system(ctx), trp_self(ctx), path, sizeof path));
    return TRP_OK;
}
static const trp_behaviour clerk = { sizeof clerk, "clerk", .receive = clerk_receive };

static void
ask(trp_system *system, const char *path)
{
    trp_msg *reply = NULL;
    if (trp_system_ask_path(system, path, &trp_string_type, "?", 1, 5000, &reply) == TRP_OK) {
        printf("%s is %.*s\n", path, (int)trp_msg_bytes(reply),
               (const char *)trp_msg_payload(reply));
    }
    trp_msg_free(reply);
}

int
main(void)
{
    trp_spawn_options ann = TRP_SPAWN_OPTIONS_INIT, bob = TRP_SPAWN_OPTIONS_INIT;
    trp_system *system;
    trp_ref refs[2], found;
    ann.name = "ann";
    bob.name = "bob";
    if (trp_system_new("office", NULL, &system) != TRP_OK ||
        trp_system_spawn(system, &clerk, &ann, &refs[0]) != TRP_OK ||
        trp_system_spawn(system, &clerk, &bob, &refs[1]) != TRP_OK ||
        trp_alias_set(system, "on-duty", refs[0]) != TRP_OK) {
        return 1;
    }
    ask(system, "/alias/on-duty");
    printf("%s\n", trp_err_name(trp_alias_set(system, "on-duty", refs[1]))); /* it is ann's */
    if (trp_alias_clear(system, "on-duty") != TRP_OK ||
        trp_alias_set(system, "on-duty", refs[1]) != TRP_OK ||
        trp_alias_find(system, "on-duty", &found) != TRP_OK) {
        return 1;
    }
    ask(system, "/alias/on-duty");
    if (trp_system_graceful_stop(system, found, 5000) == TRP_OK) { /* and the alias with it */
        printf("%s\n", trp_err_name(trp_alias_find(system, "on-duty", &found)));
    }
    trp_system_free(system);
    return 0;
}
