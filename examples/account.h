/* account.h - for transfer.c: an account that can hold an amount until it is decided upon. */
#define AMOUNT(F, S) F(S, i64, cents)
#define BANK(M, P) M(P, hold, AMOUNT) M(P, commit, AMOUNT) M(P, release, AMOUNT) M(P, look, AMOUNT)
TRP_PROTOCOL(bank, BANK)
static const trp_protocol *const bank_accepts[] = { &bank_protocol, NULL };
enum { LAPSE = 1, LAPSE_MS = 60000 }; /* a hold expires: its coordinator may die */

typedef struct account {
    int64_t cents, held;
} account;

static trp_err
account_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    account *a = state;
    const bank_hold what = *(const bank_hold *)trp_msg_payload(msg);
    trp_err err = TRP_OK;
    switch (trp_msg_tag(msg)) {
    case bank_hold_tag: /* one hold at a time, and no more than the balance */
        err = a->held != 0 || a->cents + what.cents < 0 ? TRP_EAGAIN : TRP_OK;
        a->held = err ? a->held : what.cents;
        err = err ? err : trp_timer_once(ctx, LAPSE, LAPSE_MS, &bank_release_type, &what, 0);
        break;
    case bank_commit_tag:
        err = a->held == what.cents ? TRP_OK : TRP_EAGAIN; /* the hold may have expired */
        a->cents += err ? 0 : a->held;
        a->held = err ? a->held : 0;
        break;
    case bank_release_tag:
        a->held = 0;
        break;
    }
    if (a->held == 0) {
        trp_timer_cancel(ctx, LAPSE);
    }
    if (err != TRP_OK) {
        trp_reply_failure(ctx, err, "not now, or not so much");
    } else if (!trp_ref_is_none(trp_sender(ctx))) {
        trp_reply(ctx, &bank_look_type, &(bank_look){ a->cents }, 0);
    }
    return TRP_OK;
}
static const trp_behaviour account_behaviour = { sizeof(trp_behaviour), "account",
    .state_bytes = sizeof(account), .receive = account_receive, .accepts = bank_accepts };
