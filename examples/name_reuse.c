/* name_reuse.c - a name is free when its parent knows of the end of its actor: the parent itself
 * waits for trp_terminated; a thread outside, behind trp_system_graceful_stop(), tries again. */
#include <sched.h>
#include <stdio.h>
#include <troupe/troupe.h>

static trp_err
job_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx, (void)state, (void)msg;
    return TRP_OK;
}
static const trp_behaviour job = { sizeof job, "job", .receive = job_receive };

static trp_err
job_start(trp_ctx *ctx)
{
    trp_ref ref;
    const trp_spawn_options options = { .size = sizeof options, .name = "job" };
    trp_err err = trp_spawn(ctx, &job, &options, &ref);
    return err == TRP_OK ? trp_watch(ctx, ref) : err;
}
static trp_err
boss_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &trp_terminated_type)) {
        printf("its name is free: %s\n", trp_err_name(job_start(ctx)));
        trp_system_shutdown(trp_ctx_system(ctx));
        return TRP_OK;
    }
    printf("the first job: %s\n", trp_err_name(job_start(ctx)));
    trp_stop(ctx, trp_child(ctx, "job"));
    printf("it is told to end, and has its name: %s\n", trp_err_name(job_start(ctx)));
    return TRP_OK;
}
static const trp_behaviour boss = { sizeof boss, "boss", .receive = boss_receive };

int
main(void)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_system *system;
    trp_ref ref;
    options.name = "boss";
    if (trp_system_new("office", NULL, &system) != TRP_OK ||
        trp_system_spawn(system, &job, &options, &ref) != TRP_OK) {
        return 1;
    }
    trp_err err = trp_system_graceful_stop(system, ref, 10000); /* it has ended when this returns */
    while (err == TRP_OK && (err = trp_system_spawn(system, &boss, &options, &ref)) == TRP_EEXIST) {
        err = TRP_OK;
        sched_yield(); /* for the moment until /user knows of it */
    }
    printf("the name of another one, after a graceful stop: %s\n", trp_err_name(err));
    trp_system_tell(system, ref, &trp_string_type, "begin", 5);
    err = trp_system_await(system, 10000);
    trp_system_free(system);
    return err == TRP_OK ? 0 : 1;
}
