/* periodic.c - two ways to be told again and again, over a failure. A repeating timer belongs to
 * the instance: pre_start sets it anew. A message that is scheduled once, and again by each tick,
 * never floods a mailbox, since the next one is due a while later; it outlives a restart. */
#include <stdio.h>
#include <troupe/troupe.h>

static const int64_t tick = 1;
static int ticks; /* of all lives of the actor that runs */

static trp_err
work(trp_ctx *ctx, const char *who)
{
    printf("%s: tick %d\n", who, ++ticks);
    if (ticks == 4) {
        trp_system_shutdown(trp_ctx_system(ctx));
    }
    return ticks == 2 ? TRP_EDATA : TRP_OK; /* an error: it is restarted */
}

static trp_err
repeating_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state, (void)args;
    printf("repeating: starts its timer\n");
    return trp_timer_repeat(ctx, 1, 5, 10, &trp_i64_type, &tick, sizeof tick);
}
static trp_err
repeating_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state, (void)msg;
    return work(ctx, "repeating");
}

static trp_err
next_tick(trp_ctx *ctx, uint64_t delay_ms)
{
    trp_ref self = trp_self(ctx);
    return trp_schedule_once(trp_ctx_system(ctx), delay_ms, self, self, &trp_i64_type, &tick,
                             sizeof tick, NULL);
}
static trp_err
chained_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state, (void)args;
    printf("chained: schedules its first tick\n");
    return next_tick(ctx, 5);
}
static trp_err
chained_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_err err = next_tick(ctx, 10); /* before the work, which may fail */
    (void)state, (void)msg;
    return err != TRP_OK ? err : work(ctx, "chained");
}
static trp_err
chained_again(trp_ctx *ctx, void *state, const trp_failure *why, const trp_msg *args)
{
    (void)ctx, (void)state, (void)why, (void)args;
    return TRP_OK; /* instead of pre_start: a tick is on its way already */
}

int
main(void)
{
    static const trp_behaviour both[] = {
        { sizeof both[0], "repeating", .receive = repeating_receive, .pre_start = repeating_start },
        { sizeof both[0], "chained", .receive = chained_receive, .pre_start = chained_start,
          .post_restart = chained_again },
    };
    for (int i = 0; i < 2; i++) {
        trp_system *system;
        trp_ref ref;
        ticks = 0;
        if (trp_system_new("times", NULL, &system) != TRP_OK ||
            trp_system_spawn(system, &both[i], NULL, &ref) != TRP_OK ||
            trp_system_await(system, 10000) != TRP_OK) {
            return 1;
        }
        trp_system_free(system);
    }
    return 0;
}
