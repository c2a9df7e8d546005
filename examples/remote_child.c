/* remote_child.c - two nodes; the child of an actor lives on the other one, and is supervised. */
#include <stdio.h>
#include <string.h>
#include <troupe/troupe.h>

static trp_err
work(trp_ctx *ctx, void *done, const trp_msg *msg)
{
    char text[80];
    if (trp_msg_bytes(msg) == 0) {
        trp_fail(ctx, 1, "nothing to do");
    }
    snprintf(text, sizeof text, "job %d done in the %s", ++*(int *)done,
             trp_system_name(trp_ctx_system(ctx)));
    trp_reply_text(ctx, text);
    return TRP_OK;
}
static const trp_behaviour worker = TRP_BEHAVIOUR_INIT("worker", int, work);
static trp_err
lead(trp_ctx *ctx, void *child, const trp_msg *msg) /* the first message says where */
{
    trp_spawn_options options = { sizeof options, .name = "worker" };
    if (!trp_ref_is_none(*(trp_ref *)child)) {
        trp_forward(ctx, *(trp_ref *)child, msg); /* as to any child */
        return TRP_OK;
    }
    options.node = trp_msg_payload(msg);
    return trp_spawn(ctx, &worker, &options, child);
}
static const trp_strategy quiet = { sizeof quiet, 0, 1, NULL, 0, 0, NULL };
static const trp_behaviour leader = { sizeof leader, "leader", .receive = lead,
                                      .state_bytes = sizeof(trp_ref), .strategy = &quiet };
int main(void)
{
    const char *const here[] = { "remote.port=0", "log.level=error", "system=office", NULL };
    const char *const there[] = { "remote.port=0", "log.level=error", "system=mill", NULL };
    const trp_node_options one = { sizeof one, .settings = here, .environment_ignored = 1 };
    const trp_node_options two = { sizeof two, .settings = there, .environment_ignored = 1 };
    trp_node *office, *mill;
    trp_msg *reply[2] = { NULL, NULL };
    trp_ref ref;
    if (trp_node_open(&one, &office, NULL) || trp_node_open(&two, &mill, NULL) ||
        trp_behaviour_register(trp_node_system(mill), &worker) || /* it may be made there */
        trp_system_spawn(trp_node_system(office), &leader, NULL, &ref)) {
        return 1;
    }
    trp_system *system = trp_node_system(office);
    trp_system_tell(system, ref, &trp_string_type,
                    trp_node_address(mill), strlen(trp_node_address(mill)) + 1);
    trp_err err = trp_system_ask(system, ref, &trp_string_type, "cut", 3, 30000, &reply[0]);
    trp_system_tell(system, ref, &trp_string_type, "", 0);
    err = err ? err : trp_system_ask(system, ref, &trp_string_type, "cut", 3, 30000, &reply[1]);
    for (int i = 0; i < 2 && err == TRP_OK; i++) {
        printf("%.*s\n", (int)trp_msg_bytes(reply[i]), (const char *)trp_msg_payload(reply[i]));
        trp_msg_free(reply[i]);
    }
    trp_node_close(office);
    trp_node_close(mill);
    return err == TRP_OK ? 0 : 1;
}
