/* transfer.c - two actors change together or not at all: all are asked to hold, then told to commit
 * or to release. (main coordinates here; an actor would, with trp_ask().) */
#include <stdio.h>
#include <troupe/troupe.h>
#include "account.h"

static int64_t /* its balance; -1: it refused, or is not there */
call(trp_system *system, trp_ref ref, const trp_type *type, int64_t cents)
{
    trp_msg *reply = NULL;
    trp_err err = trp_system_ask(system, ref, type, &cents, 0, 5000, &reply);
    int64_t has = err ? -1 : ((const bank_look *)trp_msg_payload(reply))->cents;
    trp_msg_free(reply);
    return has;
}

static void
transfer(trp_system *system, trp_ref from, trp_ref to, int64_t cents)
{
    int held = call(system, from, &bank_hold_type, -cents) >= 0;
    int both = held && call(system, to, &bank_hold_type, cents) >= 0;
    if (both) { /* within LAPSE_MS neither can refuse */
        call(system, from, &bank_commit_type, -cents);
        call(system, to, &bank_commit_type, cents);
    } else if (held) {
        call(system, from, &bank_release_type, 0);
    }
    printf("%s: %lld, %lld\n", both ? "moved" : "not moved",
           (long long)call(system, from, &bank_look_type, 0),
           (long long)call(system, to, &bank_look_type, 0));
}

int
main(void)
{
    trp_system *system;
    trp_ref ann, bob, none = TRP_REF_NONE;
    if (trp_system_new("bank", NULL, &system) != TRP_OK ||
        trp_system_spawn(system, &account_behaviour, NULL, &ann) != TRP_OK ||
        trp_system_spawn(system, &account_behaviour, NULL, &bob) != TRP_OK ||
        call(system, ann, &bank_hold_type, 100) < 0 || /* the first hundred, from outside */
        call(system, ann, &bank_commit_type, 100) < 0) {
        return 1;
    }
    transfer(system, ann, bob, 30);
    transfer(system, ann, bob, 500); /* the first one refuses */
    transfer(system, ann, none, 10); /* the second one is not there: the first is released */
    transfer(system, bob, ann, 30);
    trp_system_free(system);
    return 0;
}
