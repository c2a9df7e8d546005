/* scheme_timer.c - timer:NAME, a message each period. Ticks that find no room become one.
 *
 * Tests.   tests/unit/endpoint/consumer_test.c
 * Sources. CAM-10
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "endpoint/endpoint.h"

enum { PERIOD_MS = 1000 };

typedef struct timer {
    uint32_t period_ms, delay_ms, count;
    uint64_t ticks;
} timer;

static trp_err
timer_read(const trpi_uri *uri, timer *t, char reason[TRP_ENDPOINT_REASON_BYTES])
{
    t->period_ms = PERIOD_MS;
    t->count = 0;
    trp_err err = trpi_uri_number(uri, "period", 1, INT32_MAX, &t->period_ms, reason);
    t->delay_ms = t->period_ms;
    err = err == TRP_OK ? trpi_uri_number(uri, "delay", 0, INT32_MAX, &t->delay_ms, reason) : err;
    err = err == TRP_OK ? trpi_uri_number(uri, "count", 0, UINT32_MAX, &t->count, reason) : err;
    if (err == TRP_OK && strlen(uri->path) == 0) {
        (void)snprintf(reason, TRP_ENDPOINT_REASON_BYTES, "timer: needs a name, timer:NAME");
        err = TRP_EINVAL;
    }
    return err;
}

static trp_err
timer_check(const trpi_uri *uri, char ret_reason[TRP_ENDPOINT_REASON_BYTES])
{
    timer t;
    return timer_read(uri, &t, ret_reason);
}

static trp_err
timer_consume(trp_ctx *ctx, trpi_endpoint *e)
{
    timer *t = trpi_alloc(sizeof *t);
    if (t == NULL) {
        return TRP_ENOMEM;
    }
    e->state = t;
    trp_err err = timer_read(&e->uri, t, e->reason);
    if (err == TRP_OK) {
        trpi_consumer_timer(ctx, e, t->delay_ms, t->period_ms);
    }
    return err;
}

static bool
timer_poll(trp_ctx *ctx, trpi_endpoint *e)
{
    timer *t = e->state;
    char count[24];
    if (t->count != 0 && t->ticks == t->count) {
        return false;
    }
    if (trpi_consumer_room(e) == 0) {
        return true;
    }
    t->ticks++;
    (void)snprintf(count, sizeof count, "%llu", (unsigned long long)t->ticks);
    const trp_endpoint_header headers[] = { { "timer.name", e->uri.path },
                                            { "timer.count", count } };
    (void)trpi_consumer_deliver(ctx, e, t->ticks, TRP_BYTES_EMPTY, headers, 2);
    return false;
}

static void
timer_stop(trp_ctx *ctx, trpi_endpoint *e)
{
    (void)ctx;
    trpi_free(e->state);
    e->state = NULL;
}

static const char *const options[] = { "period", "delay", "count", NULL };
const trpi_scheme trpi_scheme_timer = { .name = "timer",
                                        .consumer_options = options,
                                        .check = timer_check,
                                        .consume = timer_consume,
                                        .poll = timer_poll,
                                        .stop = timer_stop };
