/* udp.c - datagrams: a bound socket that answers, a simple sender, and a connected socket. */
#include <stdio.h>
#include <troupe/troupe.h>

enum { SERVER = 1, SENDER = 2, CONNECTED = 3 }; /* numbers of the sockets, in their answers */

static trp_err
on_bound(trp_ctx *ctx, trp_io_address *server, const trp_udp_bound *bound)
{
    trp_udp_options options = TRP_UDP_OPTIONS_INIT;

    if (bound->number == SERVER) {
        *server = bound->local;
        options.number = SENDER;
        return trp_udp_simple_sender(ctx, &options);
    }
    if (bound->number == SENDER) { /* to any address; with an ack */
        return trp_udp_send(ctx, trp_sender(ctx), TRP_BYTES_LITERAL("one"), server, 1);
    }
    return trp_udp_send(ctx, trp_sender(ctx), TRP_BYTES_LITERAL("three"), NULL, 0);
}

static trp_err
post_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const trp_udp_received *received = trp_udp_received_of(msg);
    trp_io_address *server = state;
    trp_udp_options options = TRP_UDP_OPTIONS_INIT;
    char text[TRP_IO_ADDRESS_BYTES_MAX];

    if (trp_msg_is(msg, &trp_udp_bound_type)) {
        return on_bound(ctx, server, trp_msg_payload(msg));
    }
    if (trp_msg_is(msg, &trp_udp_ack_type)) { /* the sender has done its work */
        trp_tell(ctx, trp_sender(ctx), &trp_udp_unbind_type, NULL, 0);
        options.number = CONNECTED;
        return trp_udp_connect(ctx, trp_io_address_text(server, text, sizeof text), &options);
    }
    if (received != NULL) {
        size_t bytes = trp_bytes_copy_out(received->bytes, 0, text, sizeof text);
        int answer = received->from.port == server->port; /* what the connected socket got */
        printf("%s %.*s\n", answer ? "answer:" : "got", (int)bytes, text);
        if (answer) {
            trp_system_shutdown(trp_ctx_system(ctx));
        } else {
            return trp_udp_send(ctx, trp_sender(ctx), received->bytes, &received->from, 0);
        }
    }
    return TRP_OK;
}
static trp_err
post_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    trp_udp_options options = TRP_UDP_OPTIONS_INIT;
    (void)state, (void)args;
    options.number = SERVER;
    return trp_udp_bind(ctx, "127.0.0.1:0", &options);
}
static const trp_behaviour post = { sizeof post, "post", 1, sizeof(trp_io_address),
                                    .receive = post_receive, .pre_start = post_start };

int
main(void)
{
    trp_system *system;
    trp_ref ref;
    if (trp_system_new("post", NULL, &system) != TRP_OK ||
        trp_system_spawn(system, &post, NULL, &ref) != TRP_OK) {
        return 1;
    }
    trp_err err = trp_system_await(system, 0);
    trp_system_free(system);
    return err == TRP_OK ? 0 : 1;
}
