/* multinode.c - a test over two nodes: a barrier, and a message there and back.
 *
 *     cc multinode.c $(pkg-config --cflags --libs troupe) -o multinode
 *     troupe multinode ./multinode
 */
#include <stdio.h>
#include <string.h>

#include <troupe/troupe.h>

static trp_err
ponger_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &trp_string_type)) {
        trp_reply_text(ctx, "pong");
    }
    return TRP_OK;
}

static void
a_message_goes_there_and_back(trp_multinode *test, void *arg)
{
    static const trp_behaviour ponger = TRP_BEHAVIOUR_INIT("ponger", char, ponger_receive);
    (void)arg;
    if (trp_multinode_is(test, "second")) { /* only this one runs the block */
        trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
        trp_ref ref;
        options.name = "ponger";
        TRP_MULTINODE_MUST(test,
                           trp_system_spawn(trp_multinode_system(test), &ponger, &options, &ref));
    }
    TRP_MULTINODE_MUST(test, trp_multinode_barrier(test, "deployed", 0));
    if (trp_multinode_is(test, "first")) {
        trp_ref to;
        trp_msg *reply;
        TRP_MULTINODE_MUST(test, trp_multinode_resolve(test, "second", "/user/ponger", 5000, &to));
        TRP_MULTINODE_MUST(test, trp_system_ask(trp_multinode_system(test), to, &trp_string_type,
                                                "ping", 4, 5000, &reply));
        printf("%.*s\n", (int)trp_msg_bytes(reply), (const char *)trp_msg_payload(reply));
        TRP_MULTINODE_CHECK(test, trp_msg_bytes(reply) == 4);
        trp_msg_free(reply);
    }
    TRP_MULTINODE_MUST(test, trp_multinode_barrier(test, "finished", 0));
}

int
main(int argc, char **argv)
{
    static const trp_multinode_role roles[] = { { "first", NULL }, { "second", NULL } };
    trp_multinode_options options = TRP_MULTINODE_OPTIONS_INIT;
    options.roles = roles;
    options.roles_count = 2;
    options.argc = argc;
    options.argv = argv;
    return trp_multinode_main(&options, a_message_goes_there_and_back, NULL);
}
