/* custom_mailbox.c - a mailbox of the program's own: it keeps eight messages, the newest first. */
#include <stdio.h>
#include <troupe/troupe.h>
#include "lifo.h"

static trp_err
reader_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t *read = state;
    printf("%lld\n", *(const long long *)trp_msg_payload(msg));
    if (++*read == 9) { /* those that were not lost */
        trp_system_shutdown(trp_ctx_system(ctx));
    } else if (*read == 1) {
        for (int64_t i = 1; i <= 10; i++) {
            trp_tell(ctx, trp_self(ctx), &trp_i64_type, &i, 0);
        }
        trp_flush(ctx);
    }
    return TRP_OK;
}
static const trp_behaviour reader = TRP_BEHAVIOUR_INIT("reader", int64_t, reader_receive);

int
main(void)
{
    trp_system_stats stats = { .size = sizeof stats };
    trp_mailbox_options mailbox = TRP_MAILBOX_OPTIONS_INIT;
    const trp_spawn_options options = { sizeof options, .mailbox = "lifo" };
    const int64_t zero = 0;
    trp_system *system;
    trp_ref ref;
    mailbox.kind = TRP_MAILBOX_KIND_CUSTOM;
    mailbox.ops = &ops;
    if (trp_system_new("desk", NULL, &system) != TRP_OK ||
        trp_mailbox_register(system, "lifo", &mailbox) != TRP_OK ||
        trp_system_spawn(system, &reader, &options, &ref) != TRP_OK) {
        return 1;
    }
    trp_system_tell(system, ref, &trp_i64_type, &zero, 0);
    trp_err err = trp_system_await(system, 10000);
    trp_system_stats_get(system, &stats);
    printf("%llu lost\n", (unsigned long long)stats.dead_letters[TRP_DEAD_MAILBOX_FULL]);
    trp_system_free(system);
    return err == TRP_OK ? 0 : 1;
}
