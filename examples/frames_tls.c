/* frames_tls.c - frames with their length in front, over TLS, in both directions. Before it runs:
 * `troupe cert ca demo --dir pki; troupe cert node 127.0.0.1 --dir pki` */
#include <stdio.h>
#include <troupe/troupe.h>

static trp_tls *of_server, *of_client;
static const trp_stage_use frames[] = { { &trp_length_stage, NULL } };

static trp_err
say(trp_ctx *ctx, trp_ref pipeline, const char *text, size_t bytes)
{
    trp_item item = trp_item_of(&trp_item_bytes);
    trp_err err = trp_bytes_copy(text, bytes, &item.as.bytes);
    return err != TRP_OK ? err : trp_tcp_pipeline_command(ctx, pipeline, &item);
}

static trp_err
receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const trp_tcp_pipeline_event *event = trp_tcp_pipeline_event_of(msg);
    trp_ref *asker = state, pipeline; /* the client's pipeline */
    char text[64] = "";
    trp_err err = TRP_OK;

    if (trp_msg_is(msg, &trp_tcp_bound_type)) {
        trp_tcp_connect_options options = TRP_TCP_CONNECT_OPTIONS_INIT;
        options.tls = of_client;
        options.number = 1;
        trp_io_address_text(&((const trp_tcp_bound *)trp_msg_payload(msg))->local, text, 64);
        return trp_tcp_connect(ctx, text, &options);
    }
    if (trp_msg_is(msg, &trp_tcp_connected_type)) { /* once for each end */
        const trp_tcp_connected *connected = trp_msg_payload(msg);
        err = trp_tcp_pipeline(ctx, trp_sender(ctx), frames, 1, NULL, &pipeline);
        if (err == TRP_OK && connected->number == 1) {
            *asker = pipeline;
            printf("connected to %s\n", connected->tls.name);
            err = say(ctx, pipeline, "hello", 5);
        }
    } else if (event != NULL && event->item.type == &trp_item_bytes) {
        size_t bytes = trp_bytes_copy_out(event->item.as.bytes, 0, text, sizeof text);
        if (!trp_ref_equal(trp_sender(ctx), *asker)) {
            return say(ctx, trp_sender(ctx), text, bytes); /* the server's answer */
        }
        printf("answer: %.*s\n", (int)bytes, text);
        trp_tell(ctx, *asker, &trp_tcp_close_type, NULL, 0);
    } else if (trp_msg_is(msg, &trp_tcp_closed_type)) {
        trp_system_shutdown(trp_ctx_system(ctx));
    } else if (trp_msg_is(msg, &trp_tcp_command_failed_type)) {
        printf("%s\n", ((const trp_tcp_command_failed *)trp_msg_payload(msg))->reason);
        trp_system_shutdown(trp_ctx_system(ctx));
    }
    return err;
}

static trp_err
start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    trp_tcp_bind_options options = TRP_TCP_BIND_OPTIONS_INIT;
    (void)state, (void)args;
    options.tls = of_server;
    return trp_tcp_bind(ctx, "127.0.0.1:0", &options);
}
static const trp_behaviour both = {
    sizeof(trp_behaviour), "both", 1, sizeof(trp_ref), .receive = receive, .pre_start = start
};

int
main(void)
{
    trp_tls_options server = TRP_TLS_OPTIONS_INIT, client = TRP_TLS_OPTIONS_INIT;
    char why[TRP_TLS_WHY_BYTES] = "";
    trp_system *system;
    trp_ref ref;

    server.is_server = 1;
    server.certificate = "pki/127.0.0.1.pem";
    server.key = "pki/127.0.0.1.key";
    client.authorities = "pki/ca.pem";
    if (trp_system_new("frames", NULL, &system) != TRP_OK ||
        trp_tls_new(system, &server, &of_server, why, sizeof why) != TRP_OK ||
        trp_tls_new(system, &client, &of_client, why, sizeof why) != TRP_OK ||
        trp_system_spawn(system, &both, NULL, &ref) != TRP_OK) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    trp_err err = trp_system_await(system, 0);
    trp_tls_free(of_server);
    trp_tls_free(of_client);
    trp_system_free(system);
    return err == TRP_OK ? 0 : 1;
}
