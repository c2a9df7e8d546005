/* ending.c - to end children in an order: stop one, and wait for its end before the next. The
 * system ends when nothing is left to do, which a reaper knows that watches whoever works. */
#include <stdio.h>
#include <troupe/troupe.h>

enum { PARTS = 3 };
static const char *const names[PARTS] = { "store", "service",
                                          "door" }; /* the last one ends first */

static trp_err
part_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx, (void)state, (void)msg;
    return TRP_OK;
}
static void
part_stop(trp_ctx *ctx, void *state)
{
    char path[256];
    (void)state;
    printf("%s has ended\n", trp_path(trp_ctx_system(ctx), trp_self(ctx), path, sizeof path));
}
static const trp_behaviour part = { sizeof part, "part", .receive = part_receive,
                                    .post_stop = part_stop };

struct keeper {
    trp_ref parts[PARTS], next; /* next: told to end when this one has */
    int left;
};
static trp_err
keeper_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    struct keeper *k = state;
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_err err = TRP_OK;
    for ((void)args; err == TRP_OK && k->left < PARTS; k->left++) {
        options.name = names[k->left];
        err = trp_spawn(ctx, &part, &options, &k->parts[k->left]);
        err = err != TRP_OK ? err : trp_watch(ctx, k->parts[k->left]);
    }
    return err;
}
static trp_err
keeper_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct keeper *k = state; /* told to end, and who is next, then of each end */
    if (trp_msg_is(msg, &trp_terminated_type)) {
        k->left--;
    } else {
        k->next = *(const trp_ref *)trp_msg_payload(msg);
    }
    trp_stop(ctx, k->left > 0 ? k->parts[k->left - 1] : trp_self(ctx));
    if (k->left == 0 && !trp_ref_is_none(k->next)) {
        trp_ref none = TRP_REF_NONE;
        trp_tell(ctx, k->next, &trp_bytes_type, &none, sizeof none);
    }
    return TRP_OK;
}
static const trp_behaviour keeper = { sizeof keeper, "keeper", .state_bytes = sizeof(struct keeper),
                                      .receive = keeper_receive, .pre_start = keeper_start };

/* Watches each ref that it is told. */
static trp_err
reaper_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int *souls = state;
    if (!trp_msg_is(msg, &trp_terminated_type)) {
        ++*souls;
        return trp_watch(ctx, *(const trp_ref *)trp_msg_payload(msg));
    }
    if (--*souls == 0) {
        printf("all is done\n");
        trp_system_shutdown(trp_ctx_system(ctx));
    }
    return TRP_OK;
}
static const trp_behaviour reaper = { sizeof reaper, "reaper", .state_bytes = sizeof(int),
                                      .receive = reaper_receive };

int
main(void)
{
    trp_system *system;
    trp_ref grim, works[2];
    if (trp_system_new("end", NULL, &system) != TRP_OK ||
        trp_system_spawn(system, &reaper, NULL, &grim) != TRP_OK) {
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
        options.name = i == 0 ? "one" : "two";
        if (trp_system_spawn(system, &keeper, &options, &works[i]) != TRP_OK) {
            return 1;
        }
        trp_system_tell(system, grim, &trp_bytes_type, &works[i], sizeof works[i]);
    }
    trp_system_tell(system, works[0], &trp_bytes_type, &works[1], sizeof works[1]);
    if (trp_system_await(system, 10000) != TRP_OK) {
        return 1;
    }
    trp_system_free(system);
    return 0;
}
