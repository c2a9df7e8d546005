/* health.c - a probe publishes figures of its machine; a logger subscribes to all of them, an
 * alerter to one, and any program with nng could. Here all three live in one process. */
#include <stdio.h>
#include <troupe/troupe.h>

enum { INTERVAL_MS = 20, WARN_ABOVE = 90, SAMPLES = 14 }; /* a real probe: 1000 ms, without end */
static const char url[] = "inproc://health"; /* between programs: "tcp://127.0.0.1:1235" */
struct heap {
    int64_t timestamp, used, max;
};
struct probe {
    trp_ref socket;
    uint32_t sample;
};
struct alerter {
    uint32_t count;
};

static trp_ref
open_socket(trp_ctx *ctx, uint32_t kind, const char *subscribe)
{
    trp_nng_options options = TRP_NNG_OPTIONS_INIT;
    trp_ref socket;
    options.kind = kind;
    options.framed = 1; /* the topic is one part, the figures are the other */
    options.subscribe = subscribe;
    *(kind == TRP_NNG_PUB ? &options.listen : &options.dial) = url;
    if (trp_nng_open(ctx, &options, &socket) != TRP_OK) {
        trp_fail(ctx, 1, "no socket for %s", url);
    }
    return socket;
}

static void
publish(trp_ctx *ctx, trp_ref socket, trp_bytes topic, const void *figures, size_t bytes)
{
    trp_bytes parts[2] = { topic, TRP_BYTES_EMPTY };
    trp_err err = trp_bytes_copy(figures, bytes, &parts[1]);
    err = err == TRP_OK ? trp_nng_send(ctx, socket, parts, 2, 0) : err;
    trp_bytes_unref(&parts[1]);
    if (err != TRP_OK) {
        trp_fail(ctx, (int32_t)err, "not published");
    }
}

static trp_err
probe_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct probe *p = state;
    if (trp_msg_is(msg, &trp_string_type) && p->sample < SAMPLES) { /* "tick" */
        struct heap heap = { (int64_t)trp_now_ms(ctx), p->sample == 1 ? 50 : 95, 100 };
        double load = 0.5;
        p->sample++;
        publish(ctx, p->socket, TRP_BYTES_LITERAL("health.heap"), &heap, sizeof heap);
        publish(ctx, p->socket, TRP_BYTES_LITERAL("health.load"), &load, sizeof load);
    } else if (trp_msg_is(msg, &trp_nng_event_type) &&
               ((const trp_nng_event *)trp_msg_payload(msg))->event == TRP_NNG_CONNECTED &&
               p->sample++ == 1) { /* both subscribers are there */
        p->sample = 0;
        return trp_timer_repeat(ctx, 1, INTERVAL_MS, INTERVAL_MS, &trp_string_type, "tick", 4);
    }
    return TRP_OK;
}

static trp_err
probe_start(trp_ctx *ctx, void *state, const trp_msg *args) /* after a restart, too: one timer */
{
    (void)args;
    ((struct probe *)state)->socket = open_socket(ctx, TRP_NNG_PUB, NULL);
    return TRP_OK;
}

static trp_err
logger_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const trp_nng_message *m = trp_nng_message_of(msg);
    (void)ctx;
    if (m != NULL && ++*(uint32_t *)state <= 2) {
        printf("%.*s: %zu bytes\n", (int)trp_bytes_length(m->parts[0]),
               (const char *)trp_bytes_flat(m->parts[0]), trp_bytes_length(m->parts[1]));
    }
    return TRP_OK;
}

static trp_err
logger_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state;
    (void)args;
    (void)open_socket(ctx, TRP_NNG_SUB, "health");
    return TRP_OK;
}

static trp_err
alerter_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const trp_nng_message *m = trp_nng_message_of(msg);
    struct alerter *a = state;
    struct heap heap;
    if (m == NULL || trp_bytes_copy_out(m->parts[1], 0, &heap, sizeof heap) != sizeof heap) {
        return TRP_OK;
    }
    a->count = 100 * heap.used / heap.max > WARN_ABOVE ? a->count + 1 : 0;
    if (a->count > 10) {
        printf("Need more memory, using %d %%\n", (int)(100 * heap.used / heap.max));
        trp_system_shutdown(trp_ctx_system(ctx));
    }
    return TRP_OK;
}

static trp_err
alerter_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state;
    (void)args;
    (void)open_socket(ctx, TRP_NNG_SUB, "health.heap");
    return TRP_OK;
}

int
main(void)
{
    trp_behaviour probe = TRP_BEHAVIOUR_INIT("probe", struct probe, probe_receive);
    trp_behaviour logger = TRP_BEHAVIOUR_INIT("logger", uint32_t, logger_receive);
    trp_behaviour alerter = TRP_BEHAVIOUR_INIT("alerter", struct alerter, alerter_receive);
    trp_system *system;
    trp_ref ref;
    trp_err err = trp_system_new("health", NULL, &system);
    if (err != TRP_OK) {
        return 1;
    }
    probe.pre_start = probe_start;
    logger.pre_start = logger_start;
    alerter.pre_start = alerter_start;
    err = trp_system_spawn(system, &probe, NULL, &ref);
    err = err == TRP_OK ? trp_system_spawn(system, &logger, NULL, &ref) : err;
    err = err == TRP_OK ? trp_system_spawn(system, &alerter, NULL, &ref) : err;
    err = err == TRP_OK ? trp_system_await(system, 20000) : err;
    trp_system_free(system);
    return err == TRP_OK ? 0 : 1;
}
