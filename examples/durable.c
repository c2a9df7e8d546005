/* durable.c - a mailbox on disk: messages outlive their actor, and its process. */
#include <stdio.h>
#include <stdlib.h>
#include <troupe/troupe.h>

static trp_err
clerk_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state;
    for (int64_t i = 1; i <= *(const int64_t *)trp_msg_payload(args); i++) {
        trp_tell(ctx, trp_self(ctx), &trp_i64_type, &i, 0); /* stored, as if another had told */
    }
    return TRP_OK;
}
static trp_err
clerk_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t *handled = state;
    printf("order %lld\n", *(const long long *)trp_msg_payload(msg));
    if (++*handled == 2) { /* closing time, with orders on the desk perhaps */
        trp_stop(ctx, trp_self(ctx));
        trp_system_shutdown(trp_ctx_system(ctx));
    }
    return TRP_OK;
}
static const trp_behaviour clerk = { sizeof clerk, "clerk", .state_bytes = 8,
    .receive = clerk_receive, .pre_start = clerk_start };

static int
day(const char *directory, int64_t orders)
{
    trp_durable_options durable = TRP_DURABLE_OPTIONS_INIT;
    trp_system *system;
    trp_ref ref;
    const trp_spawn_options options = { /* the mail is found by this name */
        sizeof options, .name = "clerk", .mailbox = "orders",
        .args_type = &trp_i64_type, .args = &orders, .args_bytes = sizeof orders };
    durable.directory = directory;
    if (trp_system_new("shop", NULL, &system) != TRP_OK ||
        trp_durable_register(system, "orders", &durable) != TRP_OK ||
        trp_system_spawn(system, &clerk, &options, &ref) != TRP_OK) {
        return 1;
    }
    int wrong = trp_system_await(system, 10000) != TRP_OK;
    trp_system_free(system);
    printf("closed\n");
    return wrong;
}

int
main(void)
{
    char directory[] = "/tmp/troupe-mail-XXXXXX", command[64];
    if (mkdtemp(directory) == NULL) {
        return 1;
    }
    int wrong = day(directory, 4) + day(directory, 0); /* no new ones */
    snprintf(command, sizeof command, "rm -r %s", directory);
    return wrong + (system(command) != 0);
}
