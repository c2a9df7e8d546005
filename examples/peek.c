/* peek.c - a mailbox that gives a message again until the actor acknowledges it. */
#include <stdio.h>
#include <string.h>
#include <troupe/troupe.h>

static trp_err
print(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    static int jammed = 1; /* a machine: a restart of the actor does not mend it */
    (void)state;
    printf("%.*s\n", (int)trp_msg_bytes(msg), (const char *)trp_msg_payload(msg));
    if (jammed && trp_msg_bytes(msg) > 5) {
        jammed = 0;
        trp_fail(ctx, 1, "paper jam");
    }
    trp_reply_text(ctx, "printed");
    return trp_mailbox_ack(ctx);
}
static const trp_behaviour printer = { sizeof printer, "printer", .receive = print };

int
main(void)
{
    static const char *const texts[] = { "Hello", "World, which fails at first", "Bye" };
    const trp_spawn_options options = { sizeof options, .name = "printer", .mailbox = "peek" };
    trp_mailbox_options peek = TRP_MAILBOX_OPTIONS_INIT;
    trp_err err = TRP_OK;
    trp_system *system;
    trp_ref ref;
    peek.kind = TRP_MAILBOX_KIND_PEEK; /* or mailbox "peek" { mailbox-type = peek } */
    peek.max_retries = 2;
    if (trp_system_new("office", NULL, &system) != TRP_OK ||
        trp_mailbox_register(system, "peek", &peek) != TRP_OK ||
        trp_system_spawn(system, &printer, &options, &ref) != TRP_OK) {
        return 1;
    }
    for (int i = 0; i < 3 && err == TRP_OK; i++) { /* the asker does not notice */
        trp_msg *reply = NULL;
        err = trp_system_ask(system, ref, &trp_string_type, texts[i], strlen(texts[i]), 10000,
                             &reply);
        if (err == TRP_OK) {
            printf("%.*s\n", (int)trp_msg_bytes(reply), (const char *)trp_msg_payload(reply));
        }
        trp_msg_free(reply);
    }
    trp_err end = trp_system_stop(system, 10000);
    trp_system_free(system);
    return err == TRP_OK && end == TRP_OK ? 0 : 1;
}
