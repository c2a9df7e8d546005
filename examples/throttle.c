/* throttle.c - messages to a service that must not be called too often: three in an interval pass,
 * the others wait for the next one. */
#include <stdio.h>
#include <troupe/throttler.h>
#include <troupe/troupe.h>

enum { RATE = 3, INTERVAL_MS = 200, CALLS = 10 };

struct service {
    uint64_t first_ms;
    int calls;
};
static trp_err
service_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct service *s = state;
    uint64_t now = trp_now_ms(ctx);
    s->first_ms = s->calls == 0 ? now : s->first_ms;
    printf("call %d\n", (int)*(const int64_t *)trp_msg_payload(msg));
    if (++s->calls == CALLS) { /* four intervals: the first and the last may have less than all */
        printf("%s\n", now - s->first_ms >= 2 * INTERVAL_MS ? "not faster than that" : "too fast");
        trp_system_shutdown(trp_ctx_system(ctx));
    }
    return TRP_OK;
}
static const trp_behaviour service = { sizeof service, "service",
                                       .state_bytes = sizeof(struct service),
                                       .receive = service_receive };

int
main(void)
{
    trp_throttler_options options = TRP_THROTTLER_OPTIONS_INIT;
    trp_system *system;
    trp_ref throttler;
    options.messages = RATE;
    options.interval_ms = INTERVAL_MS;
    if (trp_system_new("mill", NULL, &system) != TRP_OK ||
        trp_system_spawn(system, &service, NULL, &options.target) != TRP_OK ||
        trp_system_throttler_spawn(system, &options, &throttler) != TRP_OK) {
        return 1;
    }
    for (int64_t i = 1; i <= CALLS; i++) {
        trp_system_tell(system, throttler, &trp_i64_type, &i, sizeof i);
    }
    trp_err err = trp_system_await(system, 10000);
    trp_system_free(system);
    return err == TRP_OK ? 0 : 1;
}
