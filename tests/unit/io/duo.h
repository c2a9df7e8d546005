/* duo.h - the fixture of socket tests: actors that note what they are told, and plain sockets as
 * their peers, so that a test reads like a script.
 */
#ifndef TESTS_UNIT_IO_DUO_H
#define TESTS_UNIT_IO_DUO_H

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>

#include <troupe/io.h>

#include "tests/unit/actor/stage.h"

/* One actor of a test. Written by the actor, read by the test where it is atomic. */
typedef struct user {
    char name[8];
    trp_ref self, connection, listener;
    _Atomic uint32_t port; /* of the listener */
    _Atomic uint64_t received;
    _Atomic bool wrong; /* bytes were not those of pattern_at() */
    _Atomic uint32_t acks, failures;
    trp_tls_peer tls; /* of the last connection */
    char reason[128]; /* of the last failure, or end */
    bool quiet;       /* notes no bytes, and compares them with the pattern */
    bool registers, echoes;
    bool wait; /* handles received bytes only when the gate is open */
    trp_tcp_register_options how;
} user;

typedef void (*user_fn)(trp_ctx *ctx, user *u);
typedef struct user_order {
    user_fn fn;
} user_order;
static trp_type user_order_type = {
    .name = "duo.order", .bytes = sizeof(user_order), .tag = 1, .flags = TRP_TYPE_LOCAL
};
static trp_type *const user_types[] = { &user_order_type };
static const trp_protocol user_protocol = { "duo", user_types, 1, 0 };
static _Atomic bool user_gate;

static inline uint8_t
pattern_at(uint64_t at)
{
    return (uint8_t)(at * 31 + at / 256);
}

static inline const char *
how_text(uint32_t how)
{
    static const char *const texts[] = { "?", "closed", "aborted", "confirmed", "peer", "error" };
    return texts[how <= TRP_TCP_ERROR_CLOSED ? how : 0];
}

static inline void
user_received(trp_ctx *ctx, user *u, trp_bytes bytes)
{
    uint8_t data[256];
    size_t count = trp_bytes_length(bytes);

    if (u->echoes) {
        UNIT_EQUAL(trp_tcp_write(ctx, trp_sender(ctx), bytes, 0), TRP_OK);
    }
    if (u->quiet) {
        for (size_t from = 0, now; from < count; from += now) {
            now = trp_bytes_copy_out(bytes, from, data, sizeof data);
            for (size_t i = 0; i < now; i++) {
                if (data[i] != pattern_at(u->received + from + i)) {
                    u->wrong = true;
                }
            }
        }
    } else {
        size_t now = trp_bytes_copy_out(bytes, 0, data, sizeof data - 1);
        stage_note("%s:got(%.*s)", u->name, (int)now, (const char *)data);
    }
    u->received += count;
    while (u->wait && !user_gate) {
        unit_pause();
    }
}

static inline void
user_ended(user *u, const trp_tcp_closed *closed)
{
    memcpy(u->reason, closed->reason, sizeof u->reason);
    stage_note("%s:%s%s%s", u->name, how_text(closed->how), closed->half_open != 0 ? "-half" : "",
               closed->how == TRP_TCP_ERROR_CLOSED ? strerrorname_np(closed->error) : "");
}

static inline trp_err
user_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    user *u = *(user **)state;
    const trp_tcp_received *received = trp_tcp_received_of(msg);

    if (received != NULL) {
        user_received(ctx, u, received->bytes);
    } else if (trp_msg_is(msg, &user_order_type)) {
        ((const user_order *)trp_msg_payload(msg))->fn(ctx, u);
    } else if (trp_msg_is(msg, &trp_tcp_bound_type)) {
        u->listener = trp_sender(ctx);
        u->port = ((const trp_tcp_bound *)trp_msg_payload(msg))->local.port;
        stage_note("%s:bound", u->name);
    } else if (trp_msg_is(msg, &trp_tcp_connected_type)) {
        u->connection = trp_sender(ctx);
        u->tls = ((const trp_tcp_connected *)trp_msg_payload(msg))->tls;
        if (u->registers &&
            trp_tcp_register(ctx, u->connection, trp_self(ctx), &u->how) != TRP_OK) {
            stage_note("%s:register-failed", u->name);
        }
        stage_note("%s:connected", u->name);
    } else if (trp_msg_is(msg, &trp_tcp_ack_type)) {
        u->acks++;
        if (!u->quiet) {
            stage_note("%s:ack(%u)", u->name,
                       (unsigned)((const trp_tcp_ack *)trp_msg_payload(msg))->ack);
        }
    } else if (trp_msg_is(msg, &trp_tcp_command_failed_type)) {
        const trp_tcp_command_failed *failed = trp_msg_payload(msg);
        u->failures++;
        memcpy(u->reason, failed->reason, sizeof u->reason);
        if (!u->quiet) {
            stage_note("%s:failed(%u,%s,%u,%u)", u->name, failed->command,
                       strerrorname_np(failed->error), (unsigned)failed->ack,
                       (unsigned)(failed->write + failed->number));
        }
    } else if (trp_msg_is(msg, &trp_tcp_refused_type)) {
        const trp_tcp_refused *refused = trp_msg_payload(msg);
        memcpy(u->reason, refused->reason, sizeof u->reason);
        stage_note("%s:refused(%s)", u->name, strerrorname_np(refused->error));
    } else if (trp_msg_is(msg, &trp_tcp_closed_type)) {
        user_ended(u, trp_msg_payload(msg));
    } else if (trp_msg_is(msg, &trp_tcp_unbound_type)) {
        stage_note("%s:unbound", u->name);
    } else if (trp_msg_is(msg, &trp_tcp_writing_resumed_type)) {
        stage_note("%s:resumed", u->name);
    } else if (trp_msg_is(msg, &trp_tcp_above_high_type)) {
        stage_note("%s:high", u->name);
    } else if (trp_msg_is(msg, &trp_tcp_below_low_type)) {
        stage_note("%s:low", u->name);
    } else if (trp_msg_is(msg, &trp_terminated_type)) {
        stage_note("%s:terminated", u->name);
    } else {
        return TRP_EUNHANDLED;
    }
    return TRP_OK;
}

static inline trp_err
user_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    memcpy(state, trp_msg_payload(args), sizeof(user *));
    return TRP_OK;
}

static const trp_behaviour user_behaviour = { .size = sizeof(trp_behaviour),
                                              .name = "user",
                                              .version = 1,
                                              .state_bytes = sizeof(user *),
                                              .receive = user_receive,
                                              .pre_start = user_pre_start };

static inline void
user_start(trp_system *system, user *u, const char *name)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref manager;

    UNIT_REQUIRE(trp_protocol_register(&user_protocol) == TRP_OK);
    UNIT_REQUIRE(trp_tcp_manager(system, &manager) == TRP_OK);
    memset(u, 0, sizeof *u);
    u->registers = true;
    u->how = (trp_tcp_register_options)TRP_TCP_REGISTER_OPTIONS_INIT;
    snprintf(u->name, sizeof u->name, "%s", name);
    options.args_type = &trp_bytes_type;
    options.args = &u;
    options.args_bytes = sizeof u;
    UNIT_REQUIRE(trp_system_spawn(system, &user_behaviour, &options, &u->self) == TRP_OK);
}

static inline void
user_do(trp_system *system, const user *u, user_fn fn)
{
    user_order order = { fn };
    trp_system_tell(system, u->self, &user_order_type, &order, sizeof order);
}

/* Orders to the actor's connection. */
#define USER_ORDER(name, type_)                                                                    \
    static inline void name(trp_ctx *ctx, user *u)                                                 \
    {                                                                                              \
        trp_tell(ctx, u->connection, &trp_tcp_##type_##_type, NULL, 0);                            \
    }
USER_ORDER(close_it, close)
USER_ORDER(close_confirmed, confirmed_close)
USER_ORDER(abort_it, abort)
USER_ORDER(suspend_it, suspend_reading)
USER_ORDER(resume_it, resume_reading)

/* ---- plain sockets --------------------------------------------------------------------------- */

/* receive_bytes: of its buffer; 0: as usual */
static inline int
plain_connect_small(uint32_t port, int receive_bytes)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    struct timeval patience = { .tv_sec = 60 };
    int number = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    UNIT_REQUIRE(number >= 0);
    setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(number, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (receive_bytes != 0) {
        setsockopt(number, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    }
    UNIT_REQUIRE(connect(number, (struct sockaddr *)&to, sizeof to) == 0);
    return number;
}

static inline int
plain_connect(uint32_t port)
{
    return plain_connect_small(port, 0);
}

/* Read what is there. True, to stand in a condition. */
static inline bool
plain_swallow(int number)
{
    uint8_t data[16384];

    while (recv(number, data, sizeof data, MSG_DONTWAIT) > 0) {
    }
    return true;
}

/* Read until the end; the number of bytes, or -1 for an error. */
static inline ssize_t
plain_drain(int number, bool *ret_right)
{
    ssize_t total = 0;
    uint8_t data[16384];

    *ret_right = true;
    for (;;) {
        ssize_t got = recv(number, data, sizeof data, 0);
        if (got <= 0) {
            return got == 0 ? total : -1;
        }
        for (ssize_t i = 0; i < got; i++) {
            *ret_right = *ret_right && data[i] == pattern_at((uint64_t)(total + i));
        }
        total += got;
    }
}

#endif
