/* pending.c - what waits in a mailbox: count it, look at it by subject, take it out. */
#include <stdio.h>
#include <troupe/troupe.h>

static int
is_old(void *arg, const trp_msg *msg, trp_ref sender)
{
    (void)sender;
    return trp_subject_matches(arg, msg) ? TRP_PENDING_REMOVE : TRP_PENDING_NEXT;
}
static int
look(void *arg, const trp_msg *msg, trp_ref sender)
{
    (void)arg, (void)sender;
    printf("next: %.*s\n", (int)trp_msg_bytes(msg), (const char *)trp_msg_payload(msg));
    return TRP_PENDING_STOP;
}

static trp_err
desk_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int *started = state;
    trp_subject *old = NULL;
    if (++*started > 1) {
        printf("handled: %.*s\n", (int)trp_msg_bytes(msg), (const char *)trp_msg_payload(msg));
        trp_system_shutdown(trp_ctx_system(ctx));
        return TRP_OK;
    }
    trp_tell_text(ctx, trp_self(ctx), "news of monday");
    trp_tell_text(ctx, trp_self(ctx), "news of friday");
    trp_tell_text(ctx, trp_self(ctx), "ads of monday");
    trp_flush(ctx); /* the messages of this turn are on their way now */
    printf("waiting: %u\n", (unsigned)trp_pending_visit(ctx, NULL, NULL));
    trp_err err = trp_subject_new(".* of monday", 1, &old);
    if (err == TRP_OK) {
        trp_pending_visit(ctx, is_old, old);
        trp_pending_visit(ctx, look, NULL);
    }
    trp_subject_free(old);
    printf("left: %u\n", (unsigned)trp_pending_visit(ctx, NULL, NULL));
    return err;
}
static const trp_behaviour desk = TRP_BEHAVIOUR_INIT("desk", int, desk_receive);

int
main(void)
{
    trp_system *system;
    trp_ref ref;
    if (trp_system_new("paper", NULL, &system) != TRP_OK ||
        trp_system_spawn(system, &desk, NULL, &ref) != TRP_OK) {
        return 1;
    }
    trp_system_tell(system, ref, &trp_string_type, "begin", 5);
    trp_err err = trp_system_await(system, 10000);
    trp_system_free(system);
    return err == TRP_OK ? 0 : 1;
}
