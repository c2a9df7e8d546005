/* deactivate.c - an actor is deactivated for a while; messages to it are dead letters meanwhile. */
#include <stdio.h>
#include <troupe/troupe.h>

static trp_err
radio_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    trp_reply(ctx, trp_msg_type(msg), trp_msg_payload(msg), trp_msg_bytes(msg));
    return TRP_OK;
}
static const trp_behaviour radio = { sizeof radio, "radio", .receive = radio_receive };

static void
call(trp_inbox *inbox, trp_ref ref, const char *text, uint32_t timeout_ms)
{
    trp_msg *msg = NULL;
    trp_ref sender;
    trp_inbox_tell(inbox, ref, &trp_string_type, text, 5);
    trp_err err = trp_inbox_receive(inbox, timeout_ms, &msg, &sender);
    printf("%s: %s\n", text, err == TRP_OK ? "answered" : "silence");
    trp_msg_free(msg);
}

int
main(void)
{
    trp_system_stats stats = { .size = sizeof stats };
    trp_inbox *inbox;
    trp_system *system;
    trp_ref ref;
    if (trp_system_new("ship", NULL, &system) != TRP_OK ||
        trp_inbox_open(system, NULL, &inbox) != TRP_OK ||
        trp_system_spawn(system, &radio, NULL, &ref) != TRP_OK) {
        return 1;
    }
    call(inbox, ref, "one..", 10000);
    trp_err err = trp_system_deactivate(system, ref); /* goes before what is queued */
    call(inbox, ref, "two..", 100);
    while (err == TRP_OK && stats.dead_letters[TRP_DEAD_INACTIVE] == 0) {
        trp_system_stats_get(system, &stats); /* until it has lost one */
    }
    err = err ? err : trp_system_activate(system, ref); /* goes before it, too */
    call(inbox, ref, "three", 10000);
    printf("%llu lost\n", (unsigned long long)stats.dead_letters[TRP_DEAD_INACTIVE]);
    trp_inbox_close(inbox);
    trp_system_free(system);
    return err == TRP_OK ? 0 : 1;
}
