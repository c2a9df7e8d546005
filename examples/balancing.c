/* balancing.c - workers share a mailbox, an idle one takes the next; one is bound to a thread. */
#include <stdio.h>
#include <troupe/troupe.h>

static trp_err
work(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    trp_reply(ctx, trp_msg_type(msg), trp_msg_payload(msg), trp_msg_bytes(msg));
    return TRP_OK;
}
static const trp_behaviour worker = { sizeof worker, "worker", .receive = work };

int
main(void)
{
    trp_dispatcher_options balancing = TRP_DISPATCHER_OPTIONS_INIT;
    trp_spawn_options shared = TRP_SPAWN_OPTIONS_INIT, bound = TRP_SPAWN_OPTIONS_INIT;
    trp_ref refs[3], sender;
    trp_inbox *inbox;
    trp_system *system;
    balancing.kind = TRP_DISPATCHER_BALANCING;
    balancing.threads_min = balancing.threads_max = 2;
    shared.dispatcher = "balancing";
    bound.dispatcher = "affinity"; /* the same thread for life, with warm caches */
    if (trp_system_new("works", NULL, &system) != TRP_OK ||
        trp_inbox_open(system, NULL, &inbox) != TRP_OK ||
        trp_dispatcher_register(system, "balancing", &balancing) != TRP_OK ||
        trp_system_spawn(system, &worker, &shared, &refs[0]) != TRP_OK ||
        trp_system_spawn(system, &worker, &shared, &refs[1]) != TRP_OK ||
        trp_system_spawn(system, &worker, &bound, &refs[2]) != TRP_OK) {
        return 1;
    }
    for (int64_t i = 0; i < 100; i++) { /* any of them may be told, busy or not */
        trp_inbox_tell(inbox, refs[0], &trp_i64_type, &i, 0);
        trp_inbox_tell(inbox, refs[2], &trp_i64_type, &i, 0);
    }
    int of_shared = 0, of_bound = 0;
    for (int i = 0; i < 200; i++) {
        trp_msg *msg = NULL;
        if (trp_inbox_receive(inbox, 10000, &msg, &sender) == TRP_OK) {
            of_bound += trp_ref_equal(sender, refs[2]);
            of_shared += !trp_ref_equal(sender, refs[2]);
        }
        trp_msg_free(msg);
    }
    printf("%d by those that share, %d by the bound one\n", of_shared, of_bound);
    trp_inbox_close(inbox);
    trp_system_free(system);
    return 0;
}
