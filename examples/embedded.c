/* embedded.c - light actors inside another one: called instead of told, or told where it helps. */
#include <stdio.h>
#include <troupe/troupe.h>

static trp_err
sum(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t *total = state;
    *total += *(const int64_t *)trp_msg_payload(msg);
    if (!trp_ref_equal(trp_sender(ctx), trp_self(ctx))) { /* the host reads the state instead */
        trp_reply(ctx, &trp_i64_type, total, 0);
    }
    return TRP_OK;
}
static const trp_behaviour account = TRP_BEHAVIOUR_INIT("account", int64_t, sum);

static trp_err
bank_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_embedded *ann;
    int64_t gift = 100;
    trp_ref address;
    trp_err err = trp_embedded_dispatch(ctx, state, msg); /* is it for one of them? */
    if (err != TRP_EUNHANDLED) {
        return err;
    }
    err = trp_embedded_new(ctx, state, &account, NULL, &ann);
    err = err ? err : trp_embedded_call(ctx, ann, &trp_i64_type, &gift, 0); /* on this stack */
    printf("after the call: %lld\n", err ? 0 : *(long long *)trp_embedded_state(ann));
    err = err ? err : trp_embedded_address(ctx, ann, &address); /* now others can tell it */
    trp_reply(ctx, &trp_bytes_type, &address, sizeof address);
    return err;
}
static const trp_behaviour bank =
    TRP_BEHAVIOUR_INIT("bank", trp_embedded_host, bank_receive);

int
main(void)
{
    const int64_t deposit = 11;
    trp_msg *reply = NULL;
    trp_system *system;
    trp_ref ref;
    if (trp_system_new("bank", NULL, &system) != TRP_OK ||
        trp_system_spawn(system, &bank, NULL, &ref) != TRP_OK ||
        trp_system_ask(system, ref, &trp_string_type, "open", 4, 5000, &reply) != TRP_OK) {
        return 1;
    }
    ref = *(const trp_ref *)trp_msg_payload(reply);
    trp_msg_free(reply);
    if (trp_system_ask(system, ref, &trp_i64_type, &deposit, 0, 5000, &reply) != TRP_OK) {
        return 1;
    }
    printf("after the tell: %lld\n", *(const long long *)trp_msg_payload(reply));
    trp_msg_free(reply);
    trp_system_free(system);
    return 0;
}
