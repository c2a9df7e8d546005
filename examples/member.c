/* member.c - a program that is a node of a cluster, with the options of `troupe node`.
 *
 *     cc member.c $(pkg-config --cflags --libs troupe) -o member
 *     ./member --port 2552 --seed self &
 *     ./member --port 0 --seed troupe.tcp://demo@127.0.0.1:2552 &
 *     troupe members; troupe ask troupe.tcp://demo@127.0.0.1:2552/user/greeter hello
 *     kill %2     it leaves the cluster first, and ends with 0
 */
#include <troupe/troupe.h>

static trp_err
greet(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state, (void)msg;
    trp_reply_text(ctx, "good day");
    return TRP_OK;
}
static const trp_behaviour greeter = TRP_BEHAVIOUR_INIT("greeter", char, greet);

/* The node is there and joins; another result than TRP_OK ends the program. */
static trp_err
start(trp_node *node, void *arg)
{
    trp_spawn_options named = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    (void)arg;
    named.name = "greeter";
    return trp_system_spawn(trp_node_system(node), &greeter, &named, &ref);
}

int
main(int argc, char **argv)
{
    return trp_node_run(argc, argv, NULL, start, NULL);
}
