/* echo_server.h - for echo_ack.c and echo_nack.c: listens, starts a handler for each connection. */
static trp_err
server_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{

    if (trp_msg_is(msg, &trp_tcp_connected_type)) {
        trp_ref connection = trp_sender(ctx), handler;
        trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
        trp_tcp_register_options how = TRP_TCP_REGISTER_OPTIONS_INIT;
        options.args_type = &trp_bytes_type;
        options.args = &connection;
        options.args_bytes = sizeof connection;
        how.writer = writer;
        how.keep_open_on_peer_closed = 1; /* it writes all back before it closes */
        trp_err err = trp_spawn(ctx, &echo_handler, &options, &handler);
        return err != TRP_OK ? err : trp_tcp_register(ctx, connection, handler, &how);
    }
    if (trp_msg_is(msg, &trp_tcp_bound_type)) {
        trp_ref inbox = *(trp_ref *)state;
        trp_tell(ctx, inbox, &trp_tcp_bound_type, trp_msg_payload(msg), trp_msg_bytes(msg));
    }
    return TRP_OK;
}
static trp_err
server_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    *(trp_ref *)state = *(const trp_ref *)trp_msg_payload(args);
    return trp_tcp_bind(ctx, "127.0.0.1:0", NULL);
}
static const trp_behaviour server = { sizeof(trp_behaviour), "server", 1, sizeof(trp_ref),
                                      .receive = server_receive, .pre_start = server_start };

int
main(void)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_system *system;
    trp_inbox *inbox;
    trp_ref ref, sender, self;
    trp_msg *bound;
    if (trp_system_new("echo", NULL, &system) != TRP_OK ||
        trp_inbox_open(system, NULL, &inbox) != TRP_OK) {
        return 1;
    }
    self = trp_inbox_ref(inbox);
    options.args_type = &trp_bytes_type;
    options.args = &self;
    options.args_bytes = sizeof self;
    if (trp_system_spawn(system, &server, &options, &ref) != TRP_OK ||
        trp_inbox_receive(inbox, 10000, &bound, &sender) != TRP_OK) {
        return 1;
    }
    uint16_t port = ((const trp_tcp_bound *)trp_msg_payload(bound))->local.port;
    trp_msg_free(bound);
    printf("%s\n", peer_run(port, 48 << 20) ? "48 MiB came back in order" : "bytes are missing");
    trp_inbox_close(inbox);
    trp_system_free(system);
    return 0;
}
