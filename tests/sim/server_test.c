/* server_test.c - a user's server in troupe/sim.h, with good peers and bad ones, under all faults:
 * a line server on TCP, and an echo server on UDP, on node 0; its peers are on node 1.
 *
 * Laws, each looked at when all is calm again:
 *   served-S1  A good peer gets the answers to its lines, in order, each once.
 *   served-S2  A bad peer is disconnected: one that says nothing, sends half a line, never reads,
 *       or sends a line above the limit; one that resets harms nobody.
 *   served-S3  No session is left when its peer is gone, and no socket when a node ends.
 *   served-S4  Each datagram that is sent often enough is answered; each answer was asked for.
 *
 *     TROUPE_SIM_SEEDS=10000 [TROUPE_SIM_FIRST=SEED] tests/sim/server_test
 */
#include <stdlib.h>

#include <troupe/sim.h>
#include <troupe/troupe.h>

#include "tests/unit/unit.h"

enum {
    LINE_BYTES_MAX = 200,
    LINES = 8, /* of a good peer */
    IDLE_MS = 3000,
    AGAIN_MS = 1000,
    FLOOD_BYTES = 200000, /* more than the machine keeps of two directions */
    FAULTS_MS = 6000,
    CALM_MS = 300000,
    ALL_MS = 30000,
    SEEDS = 20,
    ROUNDS = 5 /* datagrams of a peer */
};
#define TCP_AT "10.0.0.1:7000"
#define UDP_AT "10.0.0.1:7001"

enum kind { GOOD, SILENT, HALF, DEAF, LONG, RESETTER, KINDS };

static trp_sim *running;
static int sessions;                       /* that live */
static uint32_t done[KINDS], datagrams;    /* peers that have what they wait for */
static uint32_t all_sessions, all_refused; /* of all runs */

/* ---- the line server ------------------------------------------------------------------------- */

typedef struct session {
    trp_ref connection;
    trp_bytes rest;
    bool full; /* its answers are not read */
} session;

static trp_err
session_bytes(trp_ctx *ctx, session *s, trp_bytes bytes)
{
    trp_err err = trp_bytes_append(&s->rest, bytes);
    size_t end;

    while (err == TRP_OK && (end = trp_bytes_find(s->rest, 0, "\n", 1)) != TRP_BYTES_NOT_FOUND) {
        trp_bytes line = trp_bytes_split(&s->rest, end + 1);

        err = trp_tcp_write(ctx, s->connection, line, TRP_TCP_NO_ACK);
        trp_bytes_unref(&line);
    }
    if (err == TRP_OK && trp_bytes_length(s->rest) >= LINE_BYTES_MAX) {
        all_refused++;
        trp_tell(ctx, s->connection, &trp_tcp_abort_type, NULL, 0);
    }
    return err;
}

static trp_err
session_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    session *s = state;
    const trp_tcp_received *received = trp_tcp_received_of(msg);

    if (received != NULL) {
        return session_bytes(ctx, s, received->bytes);
    }
    if (trp_msg_is(msg, &trp_tcp_above_high_type)) {
        s->full = true;
        trp_tell(ctx, s->connection, &trp_tcp_suspend_reading_type, NULL, 0);
    } else if (trp_msg_is(msg, &trp_tcp_below_low_type)) {
        trp_tell(ctx, s->connection, &trp_tcp_resume_reading_type, NULL, 0);
    } else if (trp_msg_is(msg, &trp_receive_timeout_type)) {
        trp_tell(ctx, s->connection, &trp_tcp_abort_type, NULL, 0);
    } else if (trp_msg_is(msg, &trp_tcp_closed_type)) {
        done[DEAF] += s->full; /* it does not hear of the end, since it does not read */
        trp_stop(ctx, trp_self(ctx));
    }
    return TRP_OK;
}

static trp_err
session_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    session *s = state;
    trp_tcp_register_options options = TRP_TCP_REGISTER_OPTIONS_INIT;

    options.low_bytes = 2000;
    options.high_bytes = 8000;
    options.max_bytes = 200000;
    options.unhandled_bytes_max = 4000;
    s->connection = *(const trp_ref *)trp_msg_payload(args);
    sessions++;
    all_sessions++;
    trp_receive_timeout_set(ctx, IDLE_MS);
    return trp_tcp_register(ctx, s->connection, trp_self(ctx), &options);
}

static void
session_stop(trp_ctx *ctx, void *state)
{
    (void)ctx;
    trp_bytes_unref(&((session *)state)->rest);
    sessions--;
}

static const trp_behaviour session_behaviour = { sizeof(trp_behaviour),
                                                 "session",
                                                 1,
                                                 sizeof(session),
                                                 .receive = session_receive,
                                                 .pre_start = session_start,
                                                 .post_stop = session_stop };

static trp_err
server_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const trp_udp_received *received = trp_udp_received_of(msg);
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref connection = trp_sender(ctx), ref;

    (void)state;
    if (received != NULL) {
        return trp_udp_send(ctx, connection, received->bytes, &received->from, 0);
    }
    if (trp_msg_is(msg, &trp_tcp_connected_type)) {
        options.args_type = &trp_bytes_type;
        options.args = &connection;
        options.args_bytes = sizeof connection;
        return trp_spawn(ctx, &session_behaviour, &options, &ref);
    }
    return TRP_OK;
}

static trp_err
server_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    trp_err err = trp_tcp_bind(ctx, TCP_AT, NULL);

    (void)state;
    (void)args;
    return err == TRP_OK ? trp_udp_bind(ctx, UDP_AT, NULL) : err;
}

static const trp_behaviour server = {
    sizeof(trp_behaviour), "server", 1, 1, .receive = server_receive, .pre_start = server_start
};

/* ---- its peers ------------------------------------------------------------------------------- */

typedef struct peer {
    enum kind kind;
    trp_ref connection;
    uint32_t line; /* that is asked; 0: none yet */
    size_t got;    /* bytes of the answer */
} peer;

static size_t
line_make(char *text, uint32_t line)
{
    size_t bytes = 1 + line * 37 % (LINE_BYTES_MAX - 2);

    memset(text, 'a' + (int)(line % 26), bytes);
    text[bytes] = '\n';
    return bytes + 1;
}

static trp_err
line_ask(trp_ctx *ctx, peer *p)
{
    char text[LINE_BYTES_MAX];

    p->line++;
    p->got = 0;
    return trp_tcp_write_copy(ctx, p->connection, text, line_make(text, p->line), TRP_TCP_NO_ACK);
}

/* served-S1 */
static trp_err
line_answered(trp_ctx *ctx, peer *p, trp_bytes bytes)
{
    char wanted[LINE_BYTES_MAX], got[LINE_BYTES_MAX];
    size_t length = line_make(wanted, p->line), more = trp_bytes_length(bytes);

    if (p->line == 0 || p->got + more > length) {
        TRP_SIM_CHECK(running, p->line != 0 && p->got + more <= length);
        return TRP_OK;
    }
    (void)trp_bytes_copy_out(bytes, 0, got, sizeof got);
    TRP_SIM_CHECK(running, memcmp(got, wanted + p->got, more) == 0);
    p->got += more;
    if (p->got < length) {
        return TRP_OK;
    }
    if (p->line < LINES) {
        return line_ask(ctx, p);
    }
    done[GOOD]++;
    trp_stop(ctx, trp_self(ctx));
    return TRP_OK;
}

static trp_err
peer_connect(trp_ctx *ctx, void *state, const trp_msg *args)
{
    const trp_ref nobody = TRP_REF_NONE;
    peer *p = state;

    if (!trp_msg_is(args, &trp_receive_timeout_type)) {
        memcpy(&p->kind, trp_msg_payload(args), sizeof p->kind);
    }
    p->connection = nobody; /* what comes of an earlier one is late */
    trp_receive_timeout_set(ctx, p->kind == GOOD ? AGAIN_MS : 4 * IDLE_MS);
    return trp_tcp_connect(ctx, TCP_AT, NULL);
}

/* Many lines, or the beginning of a long one. */
static trp_err
flood(trp_ctx *ctx, const peer *p)
{
    char text[1000];
    size_t most = p->kind == DEAF ? FLOOD_BYTES : sizeof text;
    trp_err err = TRP_OK;

    memset(text, 'x', sizeof text);
    for (size_t at = 99; p->kind == DEAF && at < sizeof text; at += 100) {
        text[at] = '\n';
    }
    for (size_t sent = 0; sent < most && err == TRP_OK; sent += sizeof text) {
        err = trp_tcp_write_copy(ctx, p->connection, text, sizeof text, TRP_TCP_NO_ACK);
    }
    return err;
}

static trp_err
peer_connected(trp_ctx *ctx, peer *p)
{
    trp_tcp_register_options options = TRP_TCP_REGISTER_OPTIONS_INIT;
    trp_err err;

    p->connection = trp_sender(ctx);
    p->line = 0;
    options.pull = p->kind == DEAF; /* it never asks for any */
    err = trp_tcp_register(ctx, p->connection, trp_self(ctx), &options);
    switch (err == TRP_OK ? p->kind : KINDS) {
    case GOOD:
        return line_ask(ctx, p);
    case HALF:
        return trp_tcp_write_copy(ctx, p->connection, "half", 4, TRP_TCP_NO_ACK);
    case DEAF:
    case LONG:
        return flood(ctx, p);
    case RESETTER:
        err = trp_tcp_write_copy(ctx, p->connection, "a line\nhalf", 11, TRP_TCP_NO_ACK);
        trp_tell(ctx, p->connection, &trp_tcp_abort_type, NULL, 0);
        return err;
    case SILENT:
    case KINDS:
        break;
    }
    return err;
}

/* A peer that is not done connects again, after a while without a message. */
static trp_err
peer_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const trp_ref nobody = TRP_REF_NONE;
    peer *p = state;
    const trp_tcp_received *received = trp_tcp_received_of(msg);

    if (received != NULL && p->kind == GOOD && trp_ref_equal(trp_sender(ctx), p->connection)) {
        return line_answered(ctx, p, received->bytes);
    }
    if (trp_msg_is(msg, &trp_tcp_connected_type)) {
        return peer_connected(ctx, p);
    }
    if (trp_msg_is(msg, &trp_tcp_closed_type) && p->kind != GOOD && p->kind != DEAF) {
        done[p->kind]++; /* served-S2 */
        trp_stop(ctx, trp_self(ctx));
    } else if (trp_msg_is(msg, &trp_receive_timeout_type)) {
        if (!trp_ref_equal(p->connection, nobody)) {
            trp_tell(ctx, p->connection, &trp_tcp_abort_type, NULL, 0);
        }
        return peer_connect(ctx, state, msg);
    }
    return TRP_OK;
}

static const trp_behaviour peer_behaviour = {
    sizeof(trp_behaviour),    "peer", 1, sizeof(peer), .receive = peer_receive,
    .pre_start = peer_connect
};

typedef struct caller { /* on UDP */
    trp_ref socket;
    uint32_t number;
} caller;

static trp_err
caller_send(trp_ctx *ctx, const caller *c)
{
    trp_io_address to;
    trp_bytes bytes = TRP_BYTES_EMPTY;
    trp_err err = trp_io_address_parse(UDP_AT, &to);

    err = err == TRP_OK ? trp_bytes_copy(&c->number, sizeof c->number, &bytes) : err;
    err = err == TRP_OK ? trp_udp_send(ctx, c->socket, bytes, &to, 0) : err;
    trp_bytes_unref(&bytes);
    return err;
}

/* served-S4 */
static trp_err
caller_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    caller *c = state;
    const trp_udp_received *received = trp_udp_received_of(msg);
    uint32_t number = 0;

    if (trp_msg_is(msg, &trp_udp_bound_type)) {
        c->socket = trp_sender(ctx);
        c->number = 1;
        return caller_send(ctx, c);
    }
    if (received != NULL) {
        TRP_SIM_CHECK(running, trp_bytes_length(received->bytes) == sizeof number);
        (void)trp_bytes_copy_out(received->bytes, 0, &number, sizeof number);
        TRP_SIM_CHECK(running, number >= 1 && number <= c->number);
        if (number == c->number && number < ROUNDS) {
            c->number++;
            return caller_send(ctx, c);
        }
        if (number == c->number) {
            datagrams++;
            trp_stop(ctx, trp_self(ctx));
        }
    }
    return trp_msg_is(msg, &trp_receive_timeout_type) && c->number != 0 ? caller_send(ctx, c)
                                                                        : TRP_OK;
}

static trp_err
caller_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state;
    (void)args;
    trp_receive_timeout_set(ctx, AGAIN_MS);
    return trp_udp_bind(ctx, "10.0.0.2:0", NULL);
}

static const trp_behaviour caller_behaviour = {
    sizeof(trp_behaviour),    "caller", 1, sizeof(caller), .receive = caller_receive,
    .pre_start = caller_start
};

/* ---- a run ----------------------------------------------------------------------------------- */

static void
peers_start(trp_sim *sim)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_system *system = trp_sim_system(sim, 1);
    trp_ref ref;

    for (uint32_t i = 0; i < KINDS; i++) {
        enum kind kind = (enum kind)i;

        options.args_type = &trp_bytes_type;
        options.args = &kind;
        options.args_bytes = sizeof kind;
        TRP_SIM_CHECK(sim, trp_system_spawn(system, &peer_behaviour, &options, &ref) == TRP_OK);
    }
    TRP_SIM_CHECK(sim, trp_system_spawn(system, &caller_behaviour, NULL, &ref) == TRP_OK);
}

static void
node_started(trp_sim *sim, uint32_t node, void *arg)
{
    trp_ref ref;

    (void)arg;
    running = sim;
    if (node == 0) {
        TRP_SIM_CHECK(sim, trp_system_spawn(trp_sim_system(sim, 0), &server, NULL, &ref) == TRP_OK);
    } else {
        peers_start(sim);
    }
}

static int
all_are_served(void *arg)
{
    (void)arg;
    for (uint32_t i = 0; i < KINDS; i++) {
        if (done[i] == 0) {
            return 0;
        }
    }
    return datagrams > 0;
}

static int
no_session_is_left(void *arg)
{
    (void)arg;
    return sessions == 0;
}

static void
server_runs(trp_sim *sim, void *arg)
{
    (void)arg;
    trp_sim_faults(sim, FAULTS_MS);
    trp_sim_calm(sim, CALM_MS);
    trp_sim_await(sim, no_session_is_left, NULL, ALL_MS); /* served-S3 */
    memset(done, 0, sizeof done);
    datagrams = 0;
    peers_start(sim);
    trp_sim_await(sim, all_are_served, NULL, ALL_MS);
    trp_sim_await(sim, no_session_is_left, NULL, ALL_MS);
}

static void
a_server_bears_bad_peers_and_faults_under_every_seed(void)
{
    const char *seeds = getenv("TROUPE_SIM_SEEDS");
    const char *first = getenv("TROUPE_SIM_FIRST");
    trp_sim_options options = TRP_SIM_OPTIONS_INIT;
    trp_sim_result result = { .size = sizeof result };

    options.seed = first != NULL ? strtoull(first, NULL, 10) : 1;
    options.seeds = seeds != NULL ? (uint32_t)strtoul(seeds, NULL, 10) : SEEDS;
    options.nodes = 2;
    options.started = node_started;
    options.replay = "TROUPE_SIM_SEEDS=1 tests/sim/server_test with TROUPE_SIM_FIRST";
    UNIT_EQUAL(trp_sim_run(server_runs, NULL, &options, &result), TRP_OK);
    UNIT_EQUAL(result.failed, 0);
    UNIT_TRUE(all_sessions > result.runs * KINDS);
    UNIT_TRUE(all_refused >= result.runs);
}

UNIT_BEGIN("server_sim")
UNIT(a_server_bears_bad_peers_and_faults_under_every_seed)
UNIT_END
