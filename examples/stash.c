/* stash.c - become and stash: a file that is not open yet stashes lines to write. */
#include <stdio.h>
#include <troupe/troupe.h>
#define FILE_LINE(F, S) F(S, text32, text)
#define FILE_MESSAGES(M, P) \
    M(P, open, TRP_NO_FIELDS) M(P, line, FILE_LINE) M(P, end, TRP_NO_FIELDS)
TRP_PROTOCOL(file, FILE_MESSAGES)

static trp_err
opened(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    switch (trp_msg_tag(msg)) {
    case file_line_tag:
        printf("written: %s\n", ((const file_line *)trp_msg_payload(msg))->text);
        return TRP_OK;
    case file_end_tag:
        printf("closed\n");
        trp_unbecome(ctx); /* back to closed() */
        trp_system_shutdown(trp_ctx_system(ctx));
        return TRP_OK;
    default:
        return TRP_EUNHANDLED;
    }
}

static trp_err
closed(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_tag(msg) != file_open_tag) {
        return trp_stash(ctx, msg);
    }
    printf("open\n");
    trp_unstash_all(ctx);
    return trp_become(ctx, opened, 1);
}

int
main(void)
{
    static const trp_protocol *const accepts[] = { &file_protocol, NULL };
    static const trp_behaviour file = { sizeof file, "f", .receive = closed, .accepts = accepts };
    const file_line a = { "a" }, b = { "b" }, c = { "c" };
    const file_open none = { 0 };
    trp_system *system;
    trp_ref ref;
    if (trp_system_new("files", NULL, &system) != TRP_OK ||
        trp_system_spawn(system, &file, NULL, &ref) != TRP_OK) {
        return 1;
    }
    trp_system_tell(system, ref, &file_line_type, &a, 0); /* of a type of fixed size: bytes 0 */
    trp_system_tell(system, ref, &file_line_type, &b, 0);
    trp_system_tell(system, ref, &file_open_type, &none, 0);
    trp_system_tell(system, ref, &file_line_type, &c, 0);
    trp_system_tell(system, ref, &file_end_type, &none, 0);
    trp_err err = trp_system_await(system, 10000);
    trp_system_free(system);
    return err == TRP_OK ? 0 : 1;
}
