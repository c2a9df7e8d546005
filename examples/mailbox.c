/* mailbox.c - mailboxes with an order, and with a bound at which the sender is refused. */
#include <stdio.h>
#include <troupe/troupe.h>
static int32_t
smallest_first(void *arg, const trp_msg *msg)
{
    (void)arg;
    return trp_msg_is(msg, &trp_i64_type) ? (int32_t)*(const int64_t *)trp_msg_payload(msg) : 99;
}

static trp_err
sorter_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &trp_mailbox_ready_type)) { /* as promised: there is room again */
        return TRP_OK;
    }
    int64_t number = *(const int64_t *)trp_msg_payload(msg);
    printf("%lld\n", (long long)number);
    if (number == 3) {
        trp_system_shutdown(trp_ctx_system(ctx));
    }
    return TRP_OK;
}
static trp_err
sorter_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    const int64_t numbers[] = { 3, 1, 2 };
    (void)state, (void)args;
    for (int i = 0; i < 3; i++) {
        trp_tell(ctx, trp_self(ctx), &trp_i64_type, &numbers[i], sizeof(int64_t));
    }
    int64_t four = 4; /* three fit into its mailbox */
    printf("%s\n", trp_err_name(trp_try_tell(ctx, trp_self(ctx), &trp_i64_type, &four, 8)));
    return TRP_OK;
}
static const trp_behaviour sorter = { sizeof sorter, "sorter", .receive = sorter_receive,
                                      .pre_start = sorter_start };

int
main(void)
{
    trp_mailbox_options mailbox = TRP_MAILBOX_OPTIONS_INIT;
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_system *system;
    trp_ref ref;
    mailbox.kind = TRP_MAILBOX_KIND_BOUNDED_PRIORITY;
    mailbox.priority = smallest_first;
    mailbox.capacity = 3;
    mailbox.overflow = TRP_MAILBOX_NOTIFY;
    options.mailbox = "sorted";
    if (trp_system_new("sorting", NULL, &system) != TRP_OK ||
        trp_mailbox_register(system, "sorted", &mailbox) != TRP_OK ||
        trp_system_spawn(system, &sorter, &options, &ref) != TRP_OK) {
        return 1;
    }
    trp_err err = trp_system_await(system, 10000);
    trp_system_free(system);
    return err == TRP_OK ? 0 : 1;
}
