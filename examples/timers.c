/* timers.c - a timer of an actor's own; a function scheduled from outside, and cancelled. */
#include <stdio.h>

#include <troupe/troupe.h>

#define CLOCK_TICK(F, S) F(S, u32, none)
#define CLOCK_MESSAGES(M, P) M(P, tick, CLOCK_TICK)
TRP_PROTOCOL(clock, CLOCK_MESSAGES)

static trp_err
clock_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    static const clock_tick tick = { 0 };
    (void)state;
    (void)args;
    return trp_timer_repeat(ctx, 1, 10, 10, &clock_tick_type, &tick, sizeof tick);
}

static trp_err
clock_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int *ticks = state;

    (void)msg;
    printf("tick %d\n", ++*ticks);
    if (*ticks == 3) {
        trp_timer_cancel(ctx, 1); /* none comes from here on */
        trp_system_shutdown(trp_ctx_system(ctx));
    }
    return TRP_OK;
}

static void
say(void *arg)
{
    printf("%s\n", (const char *)arg);
}

int
main(void)
{
    trp_behaviour clock = TRP_BEHAVIOUR_INIT("clock", int, clock_receive);
    trp_schedule later = TRP_SCHEDULE_NONE;
    trp_system *system;
    trp_ref ref;

    clock.pre_start = clock_pre_start;
    if (trp_system_new("timers", NULL, &system) != TRP_OK ||
        trp_protocol_register(&clock_protocol) != TRP_OK ||
        trp_schedule_run(system, 60000, 0, NULL, say, "never", &later) != TRP_OK) {
        return 1;
    }
    printf("cancelled: %d\n", trp_schedule_cancel(system, &later));
    if (trp_system_spawn(system, &clock, NULL, &ref) != TRP_OK ||
        trp_system_await(system, 10000) != TRP_OK) {
        return 1;
    }
    trp_system_free(system);
    return 0;
}
