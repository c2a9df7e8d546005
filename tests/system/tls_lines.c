/* tls_lines.c - a server of lines over TLS, and a client of one line, for tls_lines.sh.
 *
 *     tls_lines serve CERT KEY CA     prints its port; answers each line with itself, until killed
 *     tls_lines ask PORT CA NAME      asks "hello", prints the answer and how it ended
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <troupe/troupe.h>

static char **arguments;
static trp_tls *tls;
static const char *const protocols[] = { "lines/1" };

/* A session has the pipeline over its connection. */
typedef struct session {
    trp_ref lines;
} session;

static trp_err
line_say(trp_ctx *ctx, trp_ref lines, trp_bytes line)
{
    trp_item item = trp_item_of_bytes(trp_bytes_ref(line));

    return trp_tcp_pipeline_command(ctx, lines, &item);
}

static void
closed_print(const trp_tcp_closed *closed)
{
    printf("closed %" PRIu32 " %s\n", closed->how, closed->reason);
    fflush(stdout);
}

static trp_err
session_begin(trp_ctx *ctx, session *s, const trp_tcp_connected *connected, trp_ref connection)
{
    static const trp_stage_use stages[] = { { &trp_line_stage, NULL } };

    printf("connected protocol=%s peer=%s version=%" PRIx32 "\n", connected->tls.protocol,
           connected->tls.name, connected->tls.version);
    fflush(stdout);
    return trp_tcp_pipeline(ctx, connection, stages, 1, NULL, &s->lines);
}

/* ---- serve ----------------------------------------------------------------------------------- */

static trp_err
serve_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const trp_tcp_pipeline_event *event = trp_tcp_pipeline_event_of(msg);

    if (event != NULL && event->item.type == &trp_item_bytes) {
        return line_say(ctx, trp_sender(ctx), event->item.as.bytes);
    }
    if (trp_msg_is(msg, &trp_tcp_bound_type)) {
        printf("port %u\n", ((const trp_tcp_bound *)trp_msg_payload(msg))->local.port);
        fflush(stdout);
    } else if (trp_msg_is(msg, &trp_tcp_connected_type)) {
        return session_begin(ctx, state, trp_msg_payload(msg), trp_sender(ctx));
    } else if (trp_msg_is(msg, &trp_tcp_refused_type)) {
        printf("refused %s\n", ((const trp_tcp_refused *)trp_msg_payload(msg))->reason);
        fflush(stdout);
    } else if (trp_msg_is(msg, &trp_tcp_closed_type)) {
        closed_print(trp_msg_payload(msg));
    }
    return TRP_OK;
}

static trp_err
serve_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    trp_tcp_bind_options options = TRP_TCP_BIND_OPTIONS_INIT;

    (void)state;
    (void)args;
    options.tls = tls;
    return trp_tcp_bind(ctx, "127.0.0.1:0", &options);
}
static const trp_behaviour serve = { .size = sizeof(trp_behaviour),
                                     .name = "serve",
                                     .version = 1,
                                     .state_bytes = sizeof(session),
                                     .pre_start = serve_start,
                                     .receive = serve_receive };

/* ---- ask ------------------------------------------------------------------------------------- */

static trp_err
ask_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const trp_tcp_pipeline_event *event = trp_tcp_pipeline_event_of(msg);
    session *s = state;
    char text[64];

    if (event != NULL && event->item.type == &trp_item_bytes) {
        size_t bytes = trp_bytes_copy_out(event->item.as.bytes, 0, text, sizeof text);

        printf("answer %.*s\n", (int)bytes, text);
        fflush(stdout);
        trp_tell(ctx, s->lines, &trp_tcp_close_type, NULL, 0);
    } else if (trp_msg_is(msg, &trp_tcp_connected_type)) {
        trp_err err = session_begin(ctx, s, trp_msg_payload(msg), trp_sender(ctx));

        return err == TRP_OK ? line_say(ctx, s->lines, TRP_BYTES_LITERAL("hello")) : err;
    } else if (trp_msg_is(msg, &trp_tcp_command_failed_type)) {
        printf("failed %s\n", ((const trp_tcp_command_failed *)trp_msg_payload(msg))->reason);
        trp_system_shutdown(trp_ctx_system(ctx));
    } else if (trp_msg_is(msg, &trp_tcp_closed_type)) {
        closed_print(trp_msg_payload(msg));
        trp_system_shutdown(trp_ctx_system(ctx));
    }
    return TRP_OK;
}

static trp_err
ask_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    trp_tcp_connect_options options = TRP_TCP_CONNECT_OPTIONS_INIT;
    char to[64];

    (void)state;
    (void)args;
    options.tls = tls;
    options.server_name = arguments[4];
    snprintf(to, sizeof to, "127.0.0.1:%s", arguments[2]);
    return trp_tcp_connect(ctx, to, &options);
}
static const trp_behaviour ask = { .size = sizeof(trp_behaviour),
                                   .name = "ask",
                                   .version = 1,
                                   .state_bytes = sizeof(session),
                                   .pre_start = ask_start,
                                   .receive = ask_receive };

int
main(int argc, char **argv)
{
    trp_tls_options options = TRP_TLS_OPTIONS_INIT;
    char why[TRP_TLS_WHY_BYTES];
    trp_system *system;
    trp_ref ref;

    if (argc != 5) {
        fprintf(stderr, "tls_lines serve CERT KEY CA | ask PORT CA NAME\n");
        return 2;
    }
    arguments = argv;
    options.is_server = strcmp(argv[1], "serve") == 0;
    options.certificate = options.is_server ? argv[2] : NULL;
    options.key = options.is_server ? argv[3] : NULL;
    options.authorities = argv[options.is_server ? 4 : 3];
    options.peer = options.is_server ? TRP_TLS_PEER_OPTIONAL : TRP_TLS_PEER_REQUIRED;
    options.version_min = TRP_TLS_1_2;
    options.protocols = protocols;
    options.protocols_count = 1;
    options.protocol_optional = 1;
    if (trp_system_new("lines", NULL, &system) != TRP_OK ||
        trp_tls_new(system, &options, &tls, why, sizeof why) != TRP_OK) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    if (trp_system_spawn(system, options.is_server ? &serve : &ask, NULL, &ref) != TRP_OK) {
        return 1;
    }
    trp_err err = trp_system_await(system, 0);
    trp_tls_free(tls);
    trp_system_free(system);
    return err == TRP_OK ? 0 : 1;
}
