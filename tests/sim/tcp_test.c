/* tcp_test.c - actors that own simulated sockets (troupe/io.h): an echo server and its clients, in
 * systems on hosts of their own, under faults and seeds.
 *
 *     TROUPE_SIM_SEEDS=10000 [TROUPE_SIM_FIRST=SEED] tests/sim/tcp_test
 */
#include <errno.h>
#include <stdlib.h>

#include <troupe/io.h>

#include "actor/actor.h"
#include "base/hash.h"
#include "base/world_virtual.h"
#include "sim/sim_net.h"
#include "tests/unit/unit.h"

#define SYSTEMS 3u
#define CLIENTS 4u
#define PIECES_MAX 12u
#define PIECE_BYTES_MAX 6000u
#define SEEDS 300
#define LIMIT_MS 300000u /* of virtual time: a connect has 10 s, all else is a matter of seconds */
#define ROUND_MS 50u
#define ADDRESS "10.0.0.1:7000"

/* The answers that a client has seen. Its writes are numbered from 1: the ack is the number. */
struct seen {
    uint32_t number, pieces;
    uint64_t asked, got; /* bytes */
    uint32_t written, answered;
    bool done, wrong, failed;
    uint32_t how; /* it was closed */
    int error;
};
static struct seen seen[CLIENTS];
static uint32_t done_count, server_connections, server_closed;
static bool bound;
static uint64_t confirmed, broken; /* connections of all runs */

static uint8_t
byte_of(uint32_t client, uint64_t at)
{
    return (uint8_t)trpi_hash_u64((uint64_t)client << 40 | at);
}

static uint32_t
piece_bytes(uint32_t client, uint32_t piece)
{
    return 1 + (uint32_t)(trpi_hash_u64((uint64_t)client << 32 | piece) % PIECE_BYTES_MAX);
}

/* ---- the server ------------------------------------------------------------------------------ */

static trp_err
server_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const trp_tcp_received *received = trp_tcp_received_of(msg);
    trp_tcp_register_options how = TRP_TCP_REGISTER_OPTIONS_INIT;

    (void)state;
    if (received != NULL) {
        return trp_tcp_write(ctx, trp_sender(ctx), received->bytes, TRP_TCP_NO_ACK);
    }
    if (trp_msg_is(msg, &trp_tcp_connected_type)) {
        how.keep_open_on_peer_closed = 1;
        server_connections++;
        return trp_tcp_register(ctx, trp_sender(ctx), trp_self(ctx), &how);
    }
    if (trp_msg_is(msg, &trp_tcp_closed_type)) {
        const trp_tcp_closed *closed = trp_msg_payload(msg);

        if (closed->half_open) {
            trp_tell(ctx, trp_sender(ctx), &trp_tcp_close_type, NULL, 0);
        } else {
            server_closed++;
        }
    }
    bound = bound || trp_msg_is(msg, &trp_tcp_bound_type);
    return TRP_OK;
}

static trp_err
server_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state;
    (void)args;
    return trp_tcp_bind(ctx, ADDRESS, NULL);
}

static const trp_behaviour server = {
    sizeof(trp_behaviour),    "server", 1, sizeof(char), .receive = server_receive,
    .pre_start = server_start
};

/* ---- its clients ----------------------------------------------------------------------------- */

static void
client_done(struct seen *s)
{
    s->wrong = s->wrong || s->done; /* the end is told once */
    done_count += !s->done;
    s->done = true;
}

static trp_err
client_write_all(trp_ctx *ctx, struct seen *s)
{
    trp_tcp_register_options how = TRP_TCP_REGISTER_OPTIONS_INIT;
    trp_ref connection = trp_sender(ctx);
    uint8_t piece[PIECE_BYTES_MAX];
    trp_err err;

    how.low_bytes = 1000;
    how.high_bytes = 2000;
    err = trp_tcp_register(ctx, connection, trp_self(ctx), &how);
    for (; s->written < s->pieces && err == TRP_OK; s->written++) {
        uint32_t bytes = piece_bytes(s->number, s->written + 1);

        for (uint32_t i = 0; i < bytes; i++) {
            piece[i] = byte_of(s->number, s->asked + i);
        }
        s->asked += bytes;
        err = trp_tcp_write_copy(ctx, connection, piece, bytes, s->written + 1);
    }
    trp_tell(ctx, connection, &trp_tcp_confirmed_close_type, NULL, 0);
    return err;
}

static void
client_received(struct seen *s, trp_bytes bytes)
{
    uint8_t part[512];
    size_t length = trp_bytes_length(bytes), got;

    for (size_t at = 0; at < length; at += got) {
        got = trp_bytes_copy_out(bytes, at, part, sizeof part);
        for (size_t i = 0; i < got; i++) {
            s->wrong = s->wrong || part[i] != byte_of(s->number, s->got + i);
        }
        s->got += got;
    }
    s->wrong = s->wrong || s->got > s->asked;
}

/* Each write is answered once at most, in order; after a failure none is acknowledged. */
static void
client_answered(struct seen *s, uint64_t ack, bool failed)
{
    s->wrong = s->wrong || ack != s->answered + 1 || (s->failed && !failed);
    s->failed = s->failed || failed;
    s->answered++;
}

static trp_err
client_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct seen *s = *(struct seen **)state;
    const trp_tcp_received *received = trp_tcp_received_of(msg);

    if (received != NULL) {
        client_received(s, received->bytes);
    } else if (trp_msg_is(msg, &trp_tcp_connected_type)) {
        return client_write_all(ctx, s);
    } else if (trp_msg_is(msg, &trp_tcp_ack_type)) {
        client_answered(s, ((const trp_tcp_ack *)trp_msg_payload(msg))->ack, false);
    } else if (trp_msg_is(msg, &trp_tcp_command_failed_type)) {
        const trp_tcp_command_failed *failed = trp_msg_payload(msg);

        if (failed->command == TRP_TCP_WRITE) {
            client_answered(s, failed->ack, true);
        } else {
            s->error = failed->error;
            client_done(s);
        }
    } else if (trp_msg_is(msg, &trp_tcp_closed_type)) {
        const trp_tcp_closed *closed = trp_msg_payload(msg);

        s->how = closed->how;
        s->error = closed->error;
        client_done(s);
    }
    return TRP_OK;
}

static trp_err
client_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    *(struct seen **)state = *(struct seen *const *)trp_msg_payload(args);
    return trp_tcp_connect(ctx, ADDRESS, NULL);
}

static const trp_behaviour client = {
    sizeof(trp_behaviour),    "client", 1, sizeof(struct seen *), .receive = client_receive,
    .pre_start = client_start
};

/* ---- a run ----------------------------------------------------------------------------------- */

struct run {
    trpi_virtual *virt;
    trpi_world *world;
    trpi_sim_net *sockets;
    trp_system *systems[SYSTEMS];
};

static void
pass_until(struct run *run, const uint32_t *count, uint32_t wanted)
{
    for (uint32_t ms = 0; ms < LIMIT_MS && *count < wanted; ms += ROUND_MS) {
        trpi_system_pass(run->systems[0], ROUND_MS);
    }
}

static void
run_start(struct run *run, uint64_t seed, const trpi_sim_faults *faults)
{
    trpi_virtual_options options = { .seed = seed, .net = &trpi_sim_net_ops };
    trp_system_options system = TRP_SYSTEM_OPTIONS_INIT;
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;

    memset(seen, 0, sizeof seen);
    done_count = server_connections = server_closed = 0;
    bound = false;
    UNIT_REQUIRE(trpi_virtual_new(&options, &run->virt) == TRP_OK);
    run->world = trpi_virtual_world(run->virt);
    UNIT_REQUIRE(trpi_sim_net_new(run->world, seed, &run->sockets) == TRP_OK);
    trpi_sim_net_faults_set(run->sockets, faults);
    system.workers = 1;
    system.log_level = TRP_LOG_OFF;
    for (uint32_t i = 0; i < SYSTEMS; i++) {
        run->world->host = i;
        UNIT_REQUIRE(trpi_system_new_in(run->world, "host", &system, &run->systems[i]) == TRP_OK);
    }
    run->world->host = SYSTEMS;
    UNIT_REQUIRE(trp_system_spawn(run->systems[0], &server, NULL, &ref) == TRP_OK);
    for (uint32_t ms = 0; ms < LIMIT_MS && !bound; ms += ROUND_MS) {
        trpi_system_pass(run->systems[0], ROUND_MS);
    }
    UNIT_REQUIRE(bound);
    for (uint32_t i = 0; i < CLIENTS; i++) {
        struct seen *s = &seen[i];

        s->number = i;
        s->pieces = 1 + (uint32_t)(trpi_world_random(run->world) % PIECES_MAX);
        spawn.args_type = &trp_bytes_type;
        spawn.args = &s;
        spawn.args_bytes = sizeof s;
        UNIT_REQUIRE(trp_system_spawn(run->systems[1 + i % (SYSTEMS - 1)], &client, &spawn, &ref) ==
                     TRP_OK);
    }
}

static void
client_check(const struct seen *s, bool faulty)
{
    UNIT_TRUE(s->done);
    UNIT_FALSE(s->wrong);
    confirmed += s->how == TRP_TCP_CONFIRMED_CLOSED;
    broken += s->how != TRP_TCP_CONFIRMED_CLOSED;
    if (s->how == TRP_TCP_CONFIRMED_CLOSED) {
        UNIT_EQUAL(s->got, s->asked);
        UNIT_EQUAL(s->answered, s->pieces);
        UNIT_FALSE(s->failed);
    } else {
        UNIT_TRUE(faulty);
        UNIT_TRUE(s->error != 0);
    }
}

/* Return the hash of the trace. */
static uint64_t
run_seed(uint64_t seed, const trpi_sim_faults *faults)
{
    struct run run;
    uint64_t hash;

    run_start(&run, seed, faults);
    pass_until(&run, &done_count, CLIENTS);
    pass_until(&run, &server_closed, server_connections);
    UNIT_EQUAL(server_closed, server_connections);
    for (uint32_t i = 0; i < CLIENTS; i++) {
        client_check(&seen[i], faults->refused + faults->reset > 0);
        trpi_virtual_mix(run.virt, seen[i].got << 32 | seen[i].answered);
    }
    hash = trpi_virtual_hash(run.virt);
    for (uint32_t i = 0; i < SYSTEMS; i++) {
        UNIT_EQUAL(trp_system_stop(run.systems[i], 10000), TRP_OK);
    }
    for (uint32_t i = 0; i < SYSTEMS; i++) {
        trp_system_free(run.systems[i]);
        UNIT_EQUAL(trpi_sim_net_open(run.sockets, i), 0);
    }
    UNIT_EQUAL(trpi_sim_net_misuses(run.sockets), 0);
    trpi_sim_net_free(run.sockets);
    trpi_world_free(run.world);
    return hash;
}

static void
an_echo_server_bears_faults_under_every_seed(void)
{
    static const trpi_sim_faults kinds[] = {
        { .delay_ns = 20000000, .partial = 300, .spurious = 100 },
        { .delay_ns = 20000000, .partial = 300, .spurious = 100, .refused = 100, .reset = 20 },
    };
    const char *seeds = getenv("TROUPE_SIM_SEEDS");
    const char *first = getenv("TROUPE_SIM_FIRST");
    uint64_t from = first != NULL ? strtoull(first, NULL, 10) : 1;
    uint64_t count = seeds != NULL ? strtoull(seeds, NULL, 10) : SEEDS;

    for (uint64_t seed = from; seed < from + count && unit_failures() == 0; seed++) {
        const trpi_sim_faults *faults = &kinds[seed % 2];
        uint64_t hash = run_seed(seed, faults);

        if (seed % 10 < 2) {
            UNIT_TRUE(run_seed(seed, faults) == hash);
        }
        if (unit_failures() != 0) {
            printf("  replay: TROUPE_SIM_FIRST=%llu TROUPE_SIM_SEEDS=1 tests/sim/tcp_test\n",
                   (unsigned long long)seed);
        }
    }
    UNIT_TRUE(count < SEEDS || (broken > count / 10 && confirmed > broken));
}

UNIT_BEGIN("tcp_sim")
UNIT(an_echo_server_bears_faults_under_every_seed)
UNIT_END
