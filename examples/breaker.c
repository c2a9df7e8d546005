/* breaker.c - a call that fails again and again is not made for a while, and then tried once. */
#include <stdio.h>
#include <unistd.h>

#include <troupe/troupe.h>

static int calls, broken = 1;

static trp_err
database(void *arg)
{
    (void)arg;
    calls++;
    return broken ? TRP_EIO : TRP_OK;
}

static void
opened(void *arg, trp_breaker_state state)
{
    (void)state;
    printf("%s\n", (const char *)arg);
}

int
main(void)
{
    trp_breaker_options options = TRP_BREAKER_OPTIONS_INIT;
    trp_breaker *breaker;
    trp_system *system;
    static char open_text[] = "open", closed_text[] = "closed";
    options.failures_max = 3;
    options.reset_timeout_ms = 500;
    if (trp_system_new("shop", NULL, &system) != TRP_OK ||
        trp_breaker_new(system, &options, &breaker) != TRP_OK ||
        trp_breaker_on(breaker, TRP_BREAKER_OPEN, opened, open_text) != TRP_OK ||
        trp_breaker_on(breaker, TRP_BREAKER_CLOSED, opened, closed_text) != TRP_OK) {
        return 1;
    }
    for (int i = 0; i < 5; i++) {
        printf("%s\n", trp_err_name(trp_breaker_sync(breaker, database, NULL)));
    }
    printf("%d calls\n", calls);
    broken = 0;
    while (trp_breaker_state_get(breaker) == TRP_BREAKER_OPEN) { /* for half a second */
        usleep(1000);
    }
    printf("%s\n", trp_err_name(trp_breaker_sync(breaker, database, NULL)));
    trp_breaker_unref(breaker);
    trp_system_free(system);
    return 0;
}
