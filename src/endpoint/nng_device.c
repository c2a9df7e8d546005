/* nng_device.c - an actor that owns two raw sockets of nng, between which messages pass on nng's
 * threads: one in each direction at a time, so that a slow side stops the other.
 *
 * Tests.   tests/unit/endpoint/nng_device_test.c
 * Sources. ZMQ-05
 */
#include <string.h>

#include "endpoint/nng_inner.h"

typedef struct device {
    trpi_nng *front, *back;
    trp_ref listener;
    trp_err err;
    char reason[TRPI_NNG_REASON_BYTES];
} device;

static trp_err
side_open(trp_ctx *ctx, device *d, const trpi_nng_args *args, trpi_nng **ret_nng)
{
    char address[TRPI_NNG_ADDRESS_BYTES];
    trpi_nng_settings settings = args->settings;
    settings.raw = true;
    trp_err err = trpi_nng_new(&settings, NULL, NULL, ret_nng);
    err = err == TRP_OK ? trpi_nng_addresses_open(*ret_nng, args, address, d->reason) : err;
    if (err == TRP_OK) {
        trpi_nng_event_tell(ctx, d->listener, TRP_NNG_OPENED, 0, TRP_OK, address, "");
    }
    return err;
}

static trp_err
device_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    device *d = state;
    trpi_nng_device_args given;
    memcpy(&given, trp_msg_payload(args), sizeof given);
    uint32_t kind = given.front.settings.kind;
    d->listener = given.front.listener;
    d->err = trp_watch(ctx, d->listener);
    d->err = d->err == TRP_OK ? side_open(ctx, d, &given.front, &d->front) : d->err;
    d->err = d->err == TRP_OK ? side_open(ctx, d, &given.back, &d->back) : d->err;
    d->err = d->err == TRP_OK ? trpi_nng_pump(d->front, d->back) : d->err;
    if (d->err == TRP_OK && kind != TRP_NNG_PULL && kind != TRP_NNG_SUB) {
        d->err = trpi_nng_pump(d->back, d->front);
    }
    if (d->err != TRP_OK) {
        trpi_nng_reason_write(d->err, d->reason);
        trp_stop(ctx, trp_self(ctx));
    }
    return TRP_OK;
}

static trp_err
device_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &trp_terminated_type)) {
        trp_stop(ctx, trp_self(ctx));
        return TRP_OK;
    }
    return TRP_EUNHANDLED;
}

static void
device_post_stop(trp_ctx *ctx, void *state)
{
    device *d = state;
    trpi_nng_close(ctx, d->front);
    trpi_nng_close(ctx, d->back);
    d->front = d->back = NULL;
    trpi_nng_event_tell(ctx, d->listener, TRP_NNG_CLOSED, 0, d->err, "", d->reason);
}

const trp_behaviour trpi_nng_device_behaviour = { .size = sizeof(trp_behaviour),
                                                  .name = "nng-device",
                                                  .version = 1,
                                                  .state_bytes = sizeof(device),
                                                  .receive = device_receive,
                                                  .pre_start = device_pre_start,
                                                  .post_stop = device_post_stop };
