/* tcp_pair.h - a listener and a user who connects to it, over loopback. */
#ifndef TESTS_UNIT_IO_TCP_PAIR_H
#define TESTS_UNIT_IO_TCP_PAIR_H

#include "tests/unit/io/duo.h"

static user server, client;

static inline void
bind_here(trp_ctx *ctx, user *u)
{
    (void)u;
    UNIT_EQUAL(trp_tcp_bind(ctx, "127.0.0.1:0", NULL), TRP_OK);
}

static inline void
connect_to(trp_ctx *ctx, const char *host)
{
    char to[64];

    snprintf(to, sizeof to, "%s:%u", host, server.port);
    UNIT_EQUAL(trp_tcp_connect(ctx, to, NULL), TRP_OK);
}

static inline void
connect_there(trp_ctx *ctx, user *u)
{
    (void)u;
    connect_to(ctx, "127.0.0.1");
}

/* Both are there; then the server is bound. */
static inline void
users_start(trp_system *system)
{
    user_gate = false;
    user_start(system, &server, "s");
    user_start(system, &client, "c");
}

static inline void
server_bind(trp_system *system)
{
    user_do(system, &server, bind_here);
    STAGE_EXPECT("s:bound");
    stage_clear(&stage_events);
}

static inline void
shut(trp_system *system)
{
    user_gate = true;
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
    trp_system_free(system);
}

#endif
