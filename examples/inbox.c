/* inbox.c - a mailbox for a thread that is no actor: it tells, is answered, watches. */
#include <stdio.h>
#include <troupe/troupe.h>

static trp_err
echo_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    trp_reply(ctx, trp_msg_type(msg), trp_msg_payload(msg), trp_msg_bytes(msg));
    return TRP_OK;
}
static const trp_behaviour echo = { sizeof echo, "echo", .receive = echo_receive };

int
main(void)
{
    trp_system *system;
    trp_inbox *inbox;
    trp_ref ref, sender;
    trp_msg *msg = NULL;
    if (trp_system_new("post", NULL, &system) != TRP_OK ||
        trp_inbox_open(system, NULL, &inbox) != TRP_OK ||
        trp_system_spawn(system, &echo, NULL, &ref) != TRP_OK ||
        trp_inbox_watch(inbox, ref) != TRP_OK) {
        return 1;
    }
    trp_inbox_tell(inbox, ref, &trp_string_type, "hello", 5);
    trp_err err = trp_inbox_receive(inbox, 5000, &msg, &sender);
    if (err == TRP_OK) {
        printf("%.*s%s\n", (int)trp_msg_bytes(msg), (const char *)trp_msg_payload(msg),
               trp_ref_equal(sender, ref) ? ", says the echo" : "");
        trp_msg_free(msg);
    }
    trp_system_stop_actor(system, ref);
    err = err == TRP_OK ? trp_inbox_receive(inbox, 5000, &msg, &sender) : err;
    if (err == TRP_OK) {
        printf("%s\n", trp_msg_is(msg, &trp_terminated_type) ? "it has ended" : "what is this?");
        trp_msg_free(msg);
    }
    trp_inbox_close(inbox);
    trp_system_free(system);
    return err == TRP_OK ? 0 : 1;
}
