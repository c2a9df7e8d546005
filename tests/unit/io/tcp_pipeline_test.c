/* tcp_pipeline_test.c - pipelines over connections, with good and bad peers, also with TLS. */
#include <troupe/tcp_pipeline.h>

#include "tests/unit/io/tls_duo.h"

/* ---- an actor that serves whole frames ------------------------------------------------------- */

typedef struct server_state {
    trp_ref pipeline;
} server_state;

static trp_ref serving, connection_of_serving;
static trp_tcp_pipeline_options how;
static const trp_stage_use *serving_stages;
static size_t serving_count;
static bool echoes;
static _Atomic uint64_t heard_bytes;
static _Atomic bool slow;

static void
say(trp_ctx *ctx, trp_ref pipeline, const char *text, size_t bytes)
{
    trp_item item = trp_item_of(&trp_item_bytes);

    UNIT_REQUIRE(trp_bytes_copy(text, bytes, &item.as.bytes) == TRP_OK);
    UNIT_EQUAL(trp_tcp_pipeline_command(ctx, pipeline, &item), TRP_OK);
    UNIT_TRUE(item.type == NULL);
}

static void
heard(trp_ctx *ctx, const trp_item *item)
{
    char text[64] = "";

    if (item->type != &trp_item_bytes) {
        stage_note("<%s>", item->type->name);
        return;
    }
    heard_bytes += trp_bytes_length(item->as.bytes);
    (void)trp_bytes_copy_out(item->as.bytes, 0, text, sizeof text - 1);
    if (trp_bytes_length(item->as.bytes) < sizeof text) {
        stage_note("<%s>", text);
    }
    if (echoes) {
        say(ctx, trp_sender(ctx), text, strlen(text));
    }
    while (slow && !user_gate) {
        unit_pause();
    }
}

static trp_err
serving_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const trp_tcp_pipeline_event *event = trp_tcp_pipeline_event_of(msg);
    server_state *s = state;

    if (event != NULL) {
        heard(ctx, &event->item);
    } else if (trp_msg_is(msg, &trp_tcp_connected_type)) {
        connection_of_serving = trp_sender(ctx);
        UNIT_EQUAL(trp_tcp_pipeline(ctx, trp_sender(ctx), serving_stages, serving_count, &how,
                                    &s->pipeline),
                   TRP_OK);
        stage_note("connected");
    } else if (trp_msg_is(msg, &trp_tcp_pipeline_failed_type)) {
        const trp_tcp_pipeline_failed *failed = trp_msg_payload(msg);

        stage_note("failed(%s,%u,%s)", trp_err_name((trp_err)failed->error), failed->is_command,
                   failed->reason);
        if (how.keeps_broken != 0 && failed->is_command == 0) {
            say(ctx, s->pipeline, "bad", 3);
            trp_tell(ctx, s->pipeline, &trp_tcp_close_type, NULL, 0);
        }
    } else if (trp_msg_is(msg, &trp_tcp_closed_type)) {
        const trp_tcp_closed *closed = trp_msg_payload(msg);

        stage_note("closed(%s%s)", how_text(closed->how), closed->half_open != 0 ? ",half" : "");
        if (closed->half_open != 0) {
            say(ctx, s->pipeline, "last", 4);
            trp_tell(ctx, s->pipeline, &trp_tcp_close_type, NULL, 0);
        }
    } else if (trp_msg_is(msg, &user_order_type)) {
        user u = { .connection = s->pipeline };

        ((const user_order *)trp_msg_payload(msg))->fn(ctx, &u);
    } else if (trp_msg_is(msg, &trp_tcp_bound_type)) {
        server.port = ((const trp_tcp_bound *)trp_msg_payload(msg))->local.port;
        stage_note("bound");
    }
    return TRP_OK;
}

static trp_err
serving_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    trp_tcp_bind_options options = TRP_TCP_BIND_OPTIONS_INIT;

    (void)state;
    (void)args;
    options.tls = server_tls;
    return trp_tcp_bind(ctx, "127.0.0.1:0", &options);
}
static const trp_behaviour serving_behaviour = { .size = sizeof(trp_behaviour),
                                                 .name = "serving",
                                                 .version = 1,
                                                 .state_bytes = sizeof(server_state),
                                                 .pre_start = serving_start,
                                                 .receive = serving_receive };

static const trp_tcp_pipeline_options usual = TRP_TCP_PIPELINE_OPTIONS_INIT;
static const trp_stage_use framed[] = { { &trp_length_stage, NULL } };

static trp_system *
serve(const trp_stage_use *stages, size_t count)
{
    trp_system *system = stage_open();

    UNIT_REQUIRE(trp_protocol_register(&user_protocol) == TRP_OK);
    serving_stages = stages;
    serving_count = count;
    user_gate = false;
    serving = stage_spawn(system, &serving_behaviour, "serving");
    STAGE_EXPECT("bound");
    stage_clear(&stage_events);
    return system;
}

static void
leave(trp_system *system)
{
    user_gate = true;
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
    trp_system_free(system);
    slow = false;
    echoes = false;
    how = usual;
}

static void
order(trp_system *system, user_fn fn)
{
    user_order message = { fn };

    trp_system_tell(system, serving, &user_order_type, &message, sizeof message);
}

static void
send_all(int peer, const char *bytes, size_t count)
{
    UNIT_EQUAL(send(peer, bytes, count, MSG_NOSIGNAL), (ssize_t)count);
}

/* ---- good peers ------------------------------------------------------------------------------ */

/* PIPE-12 */
static void
whole_frames_come_and_go_however_the_bytes_are_cut(void)
{
    char got[16];

    how = usual;
    echoes = true;
    trp_system *system = serve(framed, 1);
    int peer = plain_connect(server.port);
    send_all(peer, "\0\0\0\7one\0\0", 9);
    UNIT_WAIT(stage_has("<one>"), 60000);
    send_all(peer, "\0\7two", 5);
    UNIT_WAIT(stage_has("<two>"), 60000);
    UNIT_EQUAL(recv(peer, got, 14, MSG_WAITALL), 14);
    UNIT_TRUE(memcmp(got, "\0\0\0\7one\0\0\0\7two", 14) == 0);
    shutdown(peer, SHUT_WR);
    UNIT_WAIT(stage_has("<two> <end> closed(peer)"), 60000); /* in this order */
    close(peer);
    leave(system);
}

/* The peer's end leaves our direction open: a close passes through the stages behind the rest. */
static void
orders_pass_through_the_stages_behind_what_was_written(void)
{
    static const trp_stage_use buffered[] = { { &trp_length_stage, NULL },
                                              { &trp_buffer_stage, NULL } };
    trp_tcp_register_options keep = TRP_TCP_REGISTER_OPTIONS_INIT;
    char got[8];

    how = usual;
    keep.keep_open_on_peer_closed = 1;
    keep.writer = TRP_TCP_REFUSING; /* one write at a time: the buffer's stage sees to it */
    how.how = &keep;
    trp_system *system = serve(buffered, 2);
    int peer = plain_connect(server.port);
    UNIT_WAIT(stage_has("connected"), 60000);
    shutdown(peer, SHUT_WR);
    UNIT_WAIT(stage_has("<end> closed(peer,half)"), 60000);
    UNIT_EQUAL(recv(peer, got, 8, MSG_WAITALL), 8);
    UNIT_TRUE(memcmp(got, "\0\0\0\x08last", 8) == 0);
    UNIT_EQUAL(recv(peer, got, 1, 0), 0);
    UNIT_WAIT(stage_has("closed(closed)"), 60000);
    close(peer);
    leave(system);
}

static trp_err
ticked(trp_port *port, void *state, const trp_item *management)
{
    (void)port;
    (void)state;
    stage_note("%s", management->type == &trp_item_tick ? "tick" : management->type->name);
    return TRP_OK;
}
static const trp_item_type asked = { "asked", NULL };
static void
manage_it(trp_ctx *ctx, user *u)
{
    trp_item item = trp_item_of(&asked);

    UNIT_EQUAL(trp_tcp_pipeline_manage(ctx, u->connection, &item), TRP_OK);
    UNIT_EQUAL(trp_tcp_pipeline_manage(ctx, u->connection, &item), TRP_EINVAL); /* none */
}

/* PIPE-08, PIPE-09 */
static void
ticks_and_management_reach_the_stages(void)
{
    static const trp_stage ticked_stage = { .size = sizeof(trp_stage),
                                            .name = "ticked",
                                            .manage = ticked };
    static trp_ticks_options ticks = TRP_TICKS_OPTIONS_INIT;
    const trp_stage_use stages[] = { { &trp_ticks_stage, &ticks }, { &ticked_stage, NULL } };

    how = usual;
    ticks.interval_ms = 20;
    trp_system *system = serve(stages, 2);
    int peer = plain_connect(server.port);
    UNIT_WAIT(stage_count("tick") >= 2, 60000);
    order(system, manage_it);
    UNIT_WAIT(stage_has("asked"), 60000);
    close(peer);
    leave(system);
}

/* A handler that is behind stops the peer, as without a pipeline. */
static void
items_that_wait_at_the_handler_count_as_unhandled_bytes(void)
{
    static char frame[65536];
    trp_tcp_register_options few = TRP_TCP_REGISTER_OPTIONS_INIT;
    uint64_t sent = 0;

    how = usual;
    few.unhandled_bytes_max = sizeof frame;
    how.how = &few;
    slow = true;
    heard_bytes = 0;
    memcpy(frame, "\0\1\0\0", 4); /* 65,536 */
    trp_system *system = serve(framed, 1);
    int peer = plain_connect(server.port);
    struct timeval patience = { .tv_usec = 300000 };
    setsockopt(peer, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    while (sent < (256u << 20)) {
        ssize_t now = send(peer, frame + sent % sizeof frame, sizeof frame - sent % sizeof frame,
                           MSG_NOSIGNAL);
        if (now <= 0) {
            break;
        }
        sent += (uint64_t)now;
    }
    UNIT_TRUE(sent < (256u << 20)); /* what the kernel's buffers take, and little more */
    user_gate = true;
    UNIT_WAIT(heard_bytes == sent / sizeof frame * (sizeof frame - 4), 60000);
    close(peer);
    leave(system);
}

/* ---- bad peers ------------------------------------------------------------------------------- */

static void
a_frame_above_the_limit_ends_the_connection(void)
{
    static trp_length_options small = TRP_LENGTH_OPTIONS_INIT;
    const trp_stage_use stages[] = { { &trp_length_stage, &small } };
    char got[8];

    how = usual;
    small.bytes_max = 8;
    trp_system *system = serve(stages, 1);
    int peer = plain_connect(server.port);
    send_all(peer, "\0\0\0\x08okok\0\0\0\x09", 12);
    UNIT_WAIT(stage_has("<okok> failed(TRP_EMSGSIZE,0,length: ") && stage_has("closed(aborted)"),
              60000);
    UNIT_TRUE(recv(peer, got, sizeof got, 0) < 0 && errno == ECONNRESET);
    close(peer);
    stage_clear(&stage_events);
    how.keeps_broken = 1; /* a last word */
    peer = plain_connect(server.port);
    send_all(peer, "\0\0\0\x09more and more", 17);
    UNIT_EQUAL(recv(peer, got, 7, MSG_WAITALL), 7);
    UNIT_TRUE(memcmp(got, "\0\0\0\7bad", 7) == 0);
    UNIT_WAIT(stage_has("closed(closed)"), 60000);
    UNIT_EQUAL(stage_count("failed"), 1);
    close(peer);
    leave(system);
}

static void
say_too_much(trp_ctx *ctx, user *u)
{
    say(ctx, u->connection, "123456789", 9);
    say(ctx, u->connection, "1234", 4);
}

/* A command that fails is told its giver, and the pipeline goes on. */
static void
a_command_that_fails_is_answered(void)
{
    static trp_length_options small = TRP_LENGTH_OPTIONS_INIT;
    const trp_stage_use stages[] = { { &trp_length_stage, &small } };
    char got[8];

    how = usual;
    small.bytes_max = 8;
    trp_system *system = serve(stages, 1);
    int peer = plain_connect(server.port);
    UNIT_WAIT(stage_has("connected"), 60000);
    order(system, say_too_much);
    UNIT_WAIT(stage_has("failed(TRP_EMSGSIZE,1,length: "), 60000);
    UNIT_EQUAL(recv(peer, got, 8, MSG_WAITALL), 8);
    UNIT_TRUE(memcmp(got,
                     "\0\0\0\x08"
                     "1234",
                     8) == 0);
    close(peer);
    leave(system);
}

/* PIPE-12 */
static void
half_a_frame_has_its_time_and_a_whole_one_resets_it(void)
{
    char got[8];

    how = usual;
    how.frame_timeout_ms = 50;
    trp_system *system = serve(framed, 1);
    int idle = plain_connect(server.port), peer = plain_connect(server.port);
    UNIT_WAIT(stage_count("connected") == 2, 60000);
    send_all(peer, "\0\0\0\5a\0\0\0", 8);
    UNIT_WAIT(stage_has("<a> failed(TRP_ETIMEDOUT,0,") && stage_has("closed(aborted)"), 60000);
    UNIT_TRUE(recv(peer, got, sizeof got, 0) < 0 && errno == ECONNRESET);
    UNIT_EQUAL(stage_count("closed"), 1); /* who has nothing begun may be silent */
    send_all(idle, "\0\0\0\5b", 5);
    UNIT_WAIT(stage_has("<b>"), 60000);
    close(peer);
    shutdown(idle, SHUT_WR);
    UNIT_WAIT(stage_has("<end> closed(peer)"), 60000);
    close(idle);
    leave(system);
}

/* The end of the stream within a frame is its error. */
static void
a_stream_that_ends_within_a_frame_fails(void)
{
    how = usual;
    trp_system *system = serve(framed, 1);
    int peer = plain_connect(server.port);
    send_all(peer, "\0\0\0\7on", 6);
    shutdown(peer, SHUT_WR);
    UNIT_WAIT(stage_has("failed(TRP_EPROTO,0,") && stage_has("closed(peer)"), 60000);
    UNIT_FALSE(stage_has("<end>"));
    close(peer);
    leave(system);
}

static trp_err
never_opens(trp_port *port, void *state, const void *options)
{
    (void)port;
    (void)state;
    (void)options;
    return TRP_EINVAL;
}
static void
try_badly(trp_ctx *ctx, user *u)
{
    static const trp_stage bad = { .size = sizeof(trp_stage), .name = "bad", .open = never_opens };
    static const trp_stage_use bad_use[] = { { &bad, NULL } };
    trp_ref ref;

    (void)u;
    UNIT_EQUAL(trp_tcp_pipeline(ctx, trp_self(ctx), bad_use, 1, NULL, &ref), TRP_EINVAL);
    UNIT_EQUAL(trp_tcp_pipeline(ctx, TRP_REF_NONE, framed, 1, NULL, &ref), TRP_EINVAL);
    UNIT_EQUAL(trp_tcp_pipeline(ctx, trp_self(ctx), framed, 0, NULL, &ref), TRP_EINVAL);
    /* over a connection that has ended */
    UNIT_EQUAL(trp_tcp_pipeline(ctx, connection_of_serving, framed, 1, NULL, &ref), TRP_OK);
    stage_note("tried");
}

static void
a_connection_that_has_ended_is_told_as_closed(void)
{
    how = usual;
    trp_system *system = serve(framed, 1);
    int peer = plain_connect(server.port);
    UNIT_WAIT(stage_has("connected"), 60000);
    close(peer);
    UNIT_WAIT(stage_has("closed(peer)"), 60000);
    stage_clear(&stage_events);
    order(system, try_badly);
    UNIT_WAIT(stage_has("tried") && stage_has("closed(error)"), 60000);
    leave(system);
}

/* ---- TLS below the stages -------------------------------------------------------------------- */

/* PIPE-12, PIPE-13 */
static void
frames_pass_over_tls(void)
{
    wire_end peer;
    uint8_t data[4096];
    char plain[16];
    size_t count = 0, total = 0;

    how = usual;
    echoes = true;
    ends_files_start(&files);
    trp_tls_options options = of_server();
    trp_system *system = stage_open();
    server_tls = tls_of(system, &options);
    UNIT_REQUIRE(trp_protocol_register(&user_protocol) == TRP_OK);
    serving_stages = framed;
    serving_count = 1;
    serving = stage_spawn(system, &serving_behaviour, "serving");
    STAGE_EXPECT("bound");
    const trpi_tls_options of_peer = ends_client(&files);
    wire_open(&peer, &of_peer);
    wire_say(&peer, "\0\0\0\7on", 6);
    wire_say(&peer, "e", 1);
    UNIT_WAIT(stage_has("<one>"), 60000);
    while (total < 7) {
        ssize_t got = recv(peer.number, data, sizeof data, 0);

        UNIT_REQUIRE(got > 0);
        trpi_tls_session_input(peer.end.session, data, (size_t)got);
        (void)trpi_tls_session_read(peer.end.session, (uint8_t *)plain + total,
                                    sizeof plain - total, &count, &peer.end.wire);
        UNIT_EQUAL(trpi_tls_session_input_end(peer.end.session), 0);
        total += count;
    }
    UNIT_TRUE(memcmp(plain, "\0\0\0\7one", 7) == 0);
    UNIT_EQUAL(trpi_tls_session_close(peer.end.session, &peer.end.wire), TRPI_TLS_OK);
    wire_send_all(peer.number, &peer.end.wire);
    UNIT_WAIT(stage_has("<end> closed(peer)"), 60000);
    wire_close(&peer);
    trp_tls_free(server_tls);
    server_tls = NULL;
    leave(system);
    pki_end(&files.pki);
}

UNIT_BEGIN("tcp_pipeline")
UNIT(whole_frames_come_and_go_however_the_bytes_are_cut)
UNIT(orders_pass_through_the_stages_behind_what_was_written)
UNIT(ticks_and_management_reach_the_stages)
UNIT(items_that_wait_at_the_handler_count_as_unhandled_bytes)
UNIT(a_frame_above_the_limit_ends_the_connection)
UNIT(a_command_that_fails_is_answered)
UNIT(half_a_frame_has_its_time_and_a_whole_one_resets_it)
UNIT(a_stream_that_ends_within_a_frame_fails)
UNIT(a_connection_that_has_ended_is_told_as_closed)
UNIT(frames_pass_over_tls)
UNIT_END
